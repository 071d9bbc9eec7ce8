//! Where a texture's or a surface's memory is, its handle says: such an access may be anywhere, and all
//! others are what they are without it.

mod common;

use common::cubin;
use cuda_kernel_access::code::{Code, Launch};
use cuda_kernel_access::container::Cubin;
use cuda_kernel_access::decode::{AccessKind, decode};
use cuda_kernel_access::touch::{Uses, may_touch, summary, surely_touched};

/// Instructions of sm_90: out[thread] of twelve bytes each.
const THREAD: u128 = 0x000e_2e00_0000_2100_0000_0000_0005_7919; // S2R R5, SR_TID.X
const HANDLE: u128 = 0x000f_c800_0000_0800_0000_8600_0004_7ab9; // ULDC UR4, c[0x0][0x218]
const OUT: u128 = 0x000e_2200_0000_0a00_0000_8400_ff02_7b82; // LDC.64 R2, c[0x0][0x210]
const PLACE: u128 = 0x001f_ca00_078e_0202_0000_000c_0502_7825; // IMAD.WIDE R2, R5, 0xc, R2
const TEXTURE: u128 = 0x000f_6200_099e_0709_2000_0409_0606_7f60; // TEX.LL R9, R6, R6, R9, UR4, 0x0, 2D, 0x7
const SURFACE: u128 = 0x020f_e200_0810_ad00_7000_0404_0200_7f9d; // SUST.D.BA.2D.128.STRONG.SM.TRAP [R2], R4, UR4
const STORE: u128 = 0x020f_e800_0c10_1904_0000_0006_0200_7986; // STG.E desc[UR4][R2.64], R6
const END: u128 = 0x000f_ea00_0380_0000_0000_0000_0000_794d; // EXIT

fn code(program: &[u128]) -> Code {
    let bytes: Vec<u8> = program.iter().flat_map(|word| word.to_le_bytes()).collect();
    let image = cubin(90, 7, &[("kernel", &bytes, &[(0, 8), (8, 8), (16, 8)])]);
    let cubin = Cubin::parse(&image).expect("an image");
    Code::new(90, &cubin.kernels[0]).unwrap_or_else(|error| panic!("{error}"))
}

const OUT_AT: u64 = 0x7f12_0000_0000;

fn launch() -> Launch {
    let words: [u64; 3] = [OUT_AT, 5, 0];
    Launch::new([1, 1, 1], [32, 1, 1], words.map(u64::to_le_bytes).concat())
}

fn uses(of: &[fn(&mut Uses) -> &mut bool]) -> Uses {
    let mut uses = Uses::default();
    for of in of {
        *of(&mut uses) = true;
    }
    uses
}

const READ: fn(&mut Uses) -> &mut bool = |uses| &mut uses.read;
const WRITTEN: fn(&mut Uses) -> &mut bool = |uses| &mut uses.written;

#[test]
fn what_a_texture_does_not_touch_is_known() {
    let code = code(&[THREAD, OUT, HANDLE, TEXTURE, PLACE, STORE, END]);
    let found = summary(&code).expect("known");
    // Its memory may be that of any word, and only the first is written.
    let words: Vec<_> =
        found.words.iter().map(|word| (word.used, word.uses, word.as_base)).collect();
    let any = uses(&[READ]);
    assert_eq!(
        words,
        [
            (true, uses(&[READ, WRITTEN]), uses(&[WRITTEN])),
            (true, any, Uses::default()),
            (false, any, Uses::default())
        ]
    );
    assert_eq!(found.memory, any);
    let spans = may_touch(&code, &launch()).expect("known");
    let said: Vec<_> = spans.iter().map(|span| (span.kind, span.bytes.clone())).collect();
    let written = OUT_AT..OUT_AT + 31 * 12 + 4;
    assert_eq!(said, [(AccessKind::Read, None), (AccessKind::Write, Some(written.clone()))]);
    // No byte is known to be read.
    let sure = surely_touched(&code, &launch());
    assert!(!sure.is_empty());
    for touch in sure {
        assert_eq!((touch.kind, written.contains(&touch.address)), (AccessKind::Write, true));
    }
}

/// Between the registers of its two places are some that it leaves alone.
#[test]
fn an_address_among_a_texture_s_registers_is_not_lost() {
    // R1 and R2, and R4 or R3 alone: the store's address is in R2 and R3.
    let places = |first: u128, second: u128, channels: u128| {
        TEXTURE & !(0xff << 16 | 0xfff << 64) | first << 16 | second << 64 | channels << 72
    };
    for texture in [places(0, 4, 7), places(1, 4, 7), places(2, 255, 3), places(0, 2, 15)] {
        let code = code(&[THREAD, OUT, HANDLE, PLACE, texture, STORE, END]);
        let found = summary(&code).expect("known");
        assert_eq!(found.words[0].uses, uses(&[READ, WRITTEN]), "{texture:x}");
        assert!(found.memory.written, "{texture:x}");
        // It is not known to be there, either.
        assert_eq!(found.words[0].as_base, Uses::default(), "{texture:x}");
        assert!(surely_touched(&code, &launch()).is_empty(), "{texture:x}");
    }
    let elsewhere = code(&[THREAD, OUT, HANDLE, PLACE, places(4, 255, 3), STORE, END]);
    assert_eq!(summary(&elsewhere).expect("known").words[0].as_base, uses(&[WRITTEN]));
}

#[test]
fn a_surface_may_be_written_anywhere() {
    let code = code(&[THREAD, OUT, HANDLE, SURFACE, PLACE, STORE, END]);
    let found = summary(&code).expect("known");
    for (word, used) in found.words.iter().zip([true, true, false]) {
        assert_eq!((word.used, word.uses), (used, uses(&[WRITTEN])), "{word:?}");
    }
    let spans = may_touch(&code, &launch()).expect("known");
    assert_eq!((spans[0].kind, &spans[0].bytes), (AccessKind::Write, &None));
}

/// Each compared with NVIDIA's disassembler.
#[test]
fn textures_and_surfaces_have_their_registers() {
    let text = |architecture, bits: u128| {
        let all = decode(architecture, &bits.to_le_bytes()).expect("whole instructions");
        (all[0].to_string(), all[0].destination.map_or(0, |of| of.1))
    };
    for (architecture, bits, wanted, count) in [
        // TEX.SCR.LL R7, R4, R4, R7, 0x0, 0x5a, 2D, 0x7
        (80, 0x001f_4200_019e_0707_3000_5a07_0404_7b60_u128, "LOAD.GLOBAL.16 R4, c[0x0][0x168]", 4),
        // TEX.SCR.LL RZ, R4, R4, R6, 0x0, 0x5a, 2D, 0xa
        (80, 0x001f_4200_019e_0aff_3000_5a06_0404_7b60, "LOAD.GLOBAL.16 R4, c[0x0][0x168]", 2),
        // TEX.SCR.B.LL R10, R8, R10, R8, 2D
        (86, 0x044f_c200_019e_0f0a_3800_0008_0a08_7361, "LOAD.GLOBAL.16 R8", 4),
        // TLD4.SCR.G.B R18, R16, R20, R7, 2D
        (80, 0x110f_4200_009e_0f12_3800_0007_1410_7364, "LOAD.GLOBAL.16 R16", 4),
        // TXD R6, R4, R4, R12, 0x0, 0x5a, 2D
        (89, 0x000f_4200_001e_0f06_2000_5a0c_0404_7b6c, "LOAD.GLOBAL.16 R4, c[0x0][0x168]", 4),
        // TXQ RZ, R5, R4, TEX_HEADER_DIMENSION, 0x0, 0x5a, 0x2
        (80, 0x100f_4200_0000_02ff_0000_5a00_0405_7b6f, "LOAD.GLOBAL.16 R5, c[0x0][0x168]", 1),
        // TLD.LZ RZ, R7, R5, UR4, 0x0, 1D, 0x1
        (90, 0x000f_6200_089e_01ff_0000_04ff_0507_7f66, "LOAD.GLOBAL.16 R7", 1),
        // TEX.LL R8, R6, R6, R17, UR4, 2D
        (100, 0x0011_6400_089e_0f08_28ff_0411_0606_7f60, "LOAD.GLOBAL.16 R6", 4),
        // SULD.D.BA.2D.U8.STRONG.SM R5, [R4], 0x0, 0x58
        (80, 0x002f_6200_001e_a100_6800_5800_0405_7b99, "LOAD.GLOBAL.1 R5, c[0x0][0x160]", 1),
        // SULD.D.BA.2D.STRONG.SM.TRAP R9, [R8], R4
        (80, 0x004f_6200_001e_a904_7000_0000_0809_799a, "LOAD.GLOBAL.4 R9", 1),
        // SUST.D.BA.2D.128.STRONG.SM.TRAP [R2], R4, 0x0, 0x5a
        (80, 0x020f_e200_0010_ad00_7000_5a04_0200_7b9d, "STORE.GLOBAL.16 R4, c[0x0][0x168]", 0),
        // @!P1 SUST.D.BA.2D.STRONG.SM.TRAP [R6], R0, UR4
        (100, 0x0003_f000_0810_a900_70ff_0400_0600_9f9d, "@!P1 STORE.GLOBAL.4 R0", 0),
        // IMMA.16832.U8.U8 R8, R8.ROW, R22.COL, R12; DMMA.16x8x16 R8, R16, R32, R8
        (100, 0x0020_6400_0040_0c0c_0000_0016_0808_7237, "IMMA R8", 4),
        (90, 0x004e_2800_0000_3008_0000_0020_1008_723f, "DMMA R8", 8),
        // BMMA.88128.XOR.POPC R4, R4.ROW, R5.COL, R2
        (80, 0x000f_e200_0001_0402_0000_0005_0404_723d, "BMMA R4", 4),
    ] {
        assert_eq!(text(architecture, bits), (wanted.to_owned(), count), "{bits:x}");
    }
    // With a format, and with a constant where there is none any more.
    assert_eq!(text(80, 0x002f_6200_001e_a000_6800_5800_0405_7b99).0, "?");
    assert_eq!(text(100, 0x001f_4200_019e_0707_3000_5a07_0404_7b60).0, "?");
}
