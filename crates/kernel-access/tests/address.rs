//! All parameters have an address among those of memory, too: what is read by it is a parameter.

mod common;

use common::cubin;
use cuda_kernel_access::code::{Code, Launch};
use cuda_kernel_access::container::Cubin;
use cuda_kernel_access::decode::AccessKind;
use cuda_kernel_access::parameters::Unread;
use cuda_kernel_access::touch::{Unknown, may_touch, summary, surely_touched};

// Instructions of sm_90. Registers 16 and 17 have the parameters' address.
const ADDRESS: u128 = 0x000e_a200_0000_0a00_0000_6600_ff10_7b82; // LDC.64 R16, c[0x0][0x198]
const ANOTHER: u128 = 0x000e_a200_0000_0a00_0000_6400_ff10_7b82; // LDC.64 R16, c[0x0][0x190]
const HALF: u128 = 0x000f_e200_0000_0f00_0000_0000_0011_7802; // MOV R17, 0x0
const LOAD: u128 = 0x000e_a800_0c10_1b00_0000_0004_1002_7980; // LD.E.64 R2, desc[UR4][R16.64]
const THREAD: u128 = 0x000e_2e00_0000_2100_0000_0000_0005_7919; // S2R R5, SR_TID.X
const INDEX: u128 = 0x001f_ca00_078e_0210_0000_0008_0510_7825; // IMAD.WIDE R16, R5, 0x8, R16
const PLACE: u128 = 0x001f_ca00_078e_0202_0000_000c_0502_7825; // IMAD.WIDE R2, R5, 0xc, R2
const OUT: u128 = 0x000e_2200_0000_0a00_0000_8400_ff02_7b82; // LDC.64 R2, c[0x0][0x210]
const STORE: u128 = 0x020f_e800_0c10_1904_0000_0006_0200_7986; // STG.E desc[UR4][R2.64], R6
const STORE_ADDRESS: u128 = 0x020f_e800_0c10_1904_0000_0010_0200_7986; // STG.E desc[UR4][R2.64], R16
const END: u128 = 0x000f_ea00_0380_0000_0000_0000_0000_794d; // EXIT

const PLACES: [u64; 3] = [0x7f12_0000_0000, 0x7f13_0000_0000, 0x7f14_0000_0000];

fn code(architecture: u32, program: &[u128]) -> Code {
    let bytes: Vec<u8> = program.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut image = cubin(architecture, 7, &[("kernel", &bytes, &[(0, 8), (8, 8), (16, 8)])]);
    // Where the parameters are in their bank.
    let place = image.windows(4).position(|four| four == [0x10, 2, 24, 0]).expect("an attribute");
    let base: u16 = match architecture {
        80..90 => 0x160,
        90 => 0x210,
        _ => 0x380,
    };
    image[place..place + 2].copy_from_slice(&base.to_le_bytes());
    let cubin = Cubin::parse(&image).expect("an image");
    Code::new(architecture, &cubin.kernels[0]).unwrap_or_else(|error| panic!("{error}"))
}

/// What a launch of so many threads may touch.
fn touched(code: &Code, threads: u32) -> Vec<(AccessKind, Option<std::ops::Range<u64>>)> {
    let launch = Launch::new([1; 3], [threads, 1, 1], PLACES.map(u64::to_le_bytes).concat());
    let spans = may_touch(code, &launch).expect("known");
    // What is read there the executor does not know.
    assert!(surely_touched(code, &launch).iter().all(|touch| touch.kind == AccessKind::Write));
    spans.into_iter().map(|span| (span.kind, span.bytes)).collect()
}

/// Of each word whether it may be written by, and whether as a base.
fn written(code: &Code) -> Vec<(bool, bool)> {
    let words = summary(code).expect("known").words;
    assert!(words.iter().all(|word| word.used && !word.uses.read));
    words.iter().map(|word| (word.uses.written, word.as_base.written)).collect()
}

fn load(offset: u128) -> u128 {
    LOAD | offset << 40
}

#[test]
fn what_is_read_by_the_parameters_address_is_a_parameter() {
    for (at, place) in PLACES.into_iter().enumerate() {
        let code = code(90, &[THREAD, ADDRESS, load(8 * at as u128), PLACE, STORE, END]);
        let expected: Vec<_> = (0..3).map(|word| (word == at, word == at)).collect();
        assert_eq!(written(&code), expected);
        // The parameters are no memory that anyone writes.
        assert_eq!(touched(&code, 32), [(AccessKind::Write, Some(place..place + 31 * 12 + 4))]);
    }
}

/// With a condition of its own the load may also give zero, which is no parameter.
#[test]
fn a_load_with_a_condition_may_give_zero() {
    for (condition, is_known) in [(0, true), (7, false)] {
        let load = load(8) | condition << 64;
        let code = code(90, &[THREAD, ADDRESS, load, PLACE, STORE, END]);
        let bytes = is_known.then_some(PLACES[1]..PLACES[1] + 31 * 12 + 4);
        assert_eq!(touched(&code, 32), [(AccessKind::Write, bytes)], "{condition}");
    }
}

/// Before `sm_90` the address is that of the bank, with what is before the parameters.
#[test]
fn each_architecture_has_a_place_for_the_address() {
    let old = [
        0x000f_e200_0000_0a00_0000_1000_0004_7ab9, // ULDC.64 UR4, c[0x0][0x40]
        0x000f_e200_0ff1_e03f_0000_0160_0404_7890, // UIADD3 UR4, UP0, UR4, 0x160, URZ
        0x000f_c600_087f_e43f_0000_0005_3f05_7290, // UIADD3.X UR5, URZ, UR5, URZ, UP0, !UPT
        0x000f_e200_0800_0f00_0000_0004_0002_7c02, // MOV R2, UR4
        0x000f_e200_0800_0f00_0000_0005_0003_7c02, // MOV R3, UR5
        0x000e_e200_0c10_1b00_0000_0808_0202_7980, // LD.E.64 R2, [R2.64+0x8]
        0x0041_e600_0c10_1904_0000_0003_0200_7986, // STG.E [R2.64], R3
        END,
    ];
    let new = [
        0x000e_6200_0800_0a00_0000_6900_ff04_77ac, // LDCU.64 UR4, c[0x0][0x348]
        0x000f_e400_0800_0f00_0000_0004_0002_7c02, // MOV R2, UR4
        0x000f_ca00_0800_0f00_0000_0005_0003_7c02, // MOV R3, UR5
        0x000e_a800_0c10_1b00_0000_0806_0202_7980, // LD.E.64 R2, desc[UR6][R2.64+0x8]
        0x000f_e200_0c10_1906_0000_0005_0200_7986, // STG.E desc[UR6][R2.64], R5
        END,
    ];
    let programs: [(&[u32], &[u128]); 2] = [(&[80, 86, 89], &old), (&[100, 103, 120], &new)];
    for (architectures, program) in programs {
        for &architecture in architectures {
            let code = code(architecture, program);
            assert_eq!(written(&code), [(false, false), (true, true), (false, false)]);
            let place = PLACES[1];
            assert_eq!(touched(&code, 1), [(AccessKind::Write, Some(place..place + 4))]);
        }
    }
}

#[test]
fn an_index_chooses_one_of_the_parameters() {
    let code = code(90, &[THREAD, ADDRESS, INDEX, LOAD, STORE, END]);
    // Of any launch each, but none is known to be the one.
    assert_eq!(written(&code), [(true, false); 3]);
    let span = PLACES[0]..PLACES[1] + 4;
    assert_eq!(touched(&code, 2), [(AccessKind::Write, Some(span))]);
    // Pairs of words, the second of each. The pair before the first one has none among the parameters.
    let pairs = INDEX + (8 << 32);
    let code = self::code(90, &[THREAD, ADDRESS, pairs, load(0xff_fff8), STORE, END]);
    let span = PLACES[1]..PLACES[1] + 4;
    assert_eq!(touched(&code, 2), [(AccessKind::Write, Some(span))]);
}

/// What is known of an index may be less than that it is a multiple.
#[test]
fn an_index_of_the_bank_chooses_multiples_only() {
    const TIMES_16: u128 = 0x000f_c800_0000_06ff_0000_0004_0505_7819; // SHF.L.U32 R5, R5, 0x4, RZ
    const IS_LARGE: u128 = 0x001f_c400_03f0_6270_0000_0001_0500_780c; // ISETP.GE.AND P0, R5, 0x1
    const END_OTHERS: u128 = END ^ 0xf000; // @!P0 EXIT
    const BY_INDEX: u128 = 0x000e_2200_0000_0a00_0000_8400_0502_7b82; // LDC.64 R2, c[0x0][R5+0x210]
    let program = [THREAD, TIMES_16, IS_LARGE, END_OTHERS, BY_INDEX, STORE, END];
    let span = PLACES[2]..PLACES[2] + 4;
    assert_eq!(touched(&code(90, &program), 2), [(AccessKind::Write, Some(span))]);
}

/// Half of the address is another one.
#[test]
fn what_is_read_elsewhere_may_be_anything() {
    let code = code(90, &[ADDRESS, HALF, LOAD, STORE, END]);
    let read = (AccessKind::Read, Some(0..0x1_0000_0007));
    assert_eq!(touched(&code, 1), [read, (AccessKind::Write, None)]);
    let found = summary(&code).expect("known");
    assert!(found.words.iter().all(|word| word.uses.read && word.uses.written));
    assert!(found.memory.written);
}

/// What is loaded from memory may be the address then, and what is read by it a parameter.
#[test]
fn an_address_in_memory_leads_to_any_parameter() {
    let again = LOAD & !(0xff << 24) | 2 << 24; // LD.E.64 R2, desc[UR4][R2.64]
    let uses = |program: &[u128]| -> Vec<(bool, bool)> {
        let words = summary(&code(90, program)).expect("known").words;
        words.iter().map(|word| (word.uses.written, word.uses.other)).collect()
    };
    let (unused, kept) = ((false, false), (false, true));
    assert_eq!(uses(&[OUT, again, again, STORE, END])[1..], [unused; 2]);
    assert_eq!(uses(&[OUT, ADDRESS, STORE_ADDRESS, END]), [(true, true), kept, kept]);
    let program = [OUT, ADDRESS, STORE_ADDRESS, again, again, STORE, END];
    assert_eq!(uses(&program), [(true, true); 3]);
    let code = code(90, &[OUT, ADDRESS, STORE_ADDRESS, END]);
    let span = PLACES[0]..PLACES[0] + 4;
    assert_eq!(touched(&code, 1), [(AccessKind::Write, Some(span))]);
}

/// What is read beside the parameters is none of them.
#[test]
fn before_and_behind_the_parameters_is_something_else() {
    for offset in [0xff_fff8, 24, 20] {
        let code = code(90, &[ADDRESS, load(offset), STORE, END]);
        let anywhere = [(AccessKind::Read, None), (AccessKind::Write, None)];
        assert_eq!(touched(&code, 1), anywhere, "{offset:#x}");
    }
}

#[test]
fn another_constant_may_be_anything() {
    let code = code(90, &[ANOTHER, LOAD, STORE, END]);
    assert_eq!(summary(&code), Err(Unknown::Parameters(Unread::Address(0))));
}

/// The blocks of a cooperative launch meet at a place of the driver's, which is nobody else's.
#[test]
fn where_blocks_meet_is_no_memory_of_the_program() {
    let program = |lower: u128, upper: u128, offset: u128| {
        [
            0x000f_e200_0000_0800_0000_0000_0008_7ab9 | lower << 38, // ULDC UR8, c[0x0][lower]
            0x000f_e200_0000_0800_0000_0000_0009_7ab9 | upper << 38, // ULDC UR9, c[0x0][upper]
            0x000f_e200_0800_0f00_0000_0008_0002_7c02,               // MOV R2, UR8
            0x000f_d800_0f8e_00ff_0000_0009_ff03_7e24,               // IMAD.U32 R3, RZ, RZ, UR9
            0x000e_a800_0c10_f900_0000_0006_0206_7980 | offset << 40, // LD.E.STRONG.GPU R6, desc[UR6][R2.64]
            0x000f_c800_078e_3cff_0000_0005_0606_7212, // LOP3.LUT R6, R6, R5, RZ, 0x3c, !PT
            0x000f_da00_03f0_4270_ffff_ffff_0600_780c, // ISETP.GT.AND P0, PT, R6, -0x1, PT
            0x000f_ea00_0383_ffff_ffff_fffc_00f0_0947, // @P0 BRA, to the load
            END,
        ]
    };
    for (words, offset, is_there) in
        [([0x48, 0x44], 4, true), ([0x44, 0x48], 4, false), ([0x48, 0x44], 0x100, false)]
    {
        let code = code(90, &program(words[0], words[1], offset));
        let launch = Launch::new([1; 3], [32, 1, 1], PLACES.map(u64::to_le_bytes).concat());
        let spans = may_touch(&code, &launch).expect("known");
        assert_eq!((spans.is_empty(), code.may_wait()), (is_there, true), "{words:x?} {offset:x}");
        assert_eq!(code.may_wait_in(&spans), !is_there, "{words:x?} {offset:x}");
    }
}

/// A flag says where a thread loads if it is the index, and not if it is in the register behind that.
#[test]
fn a_flag_beside_an_index_is_not_in_it() {
    const FLAG: u128 = 0x000e_a800_0c10_f900_0000_0006_0200_7980; // LD.E.STRONG.GPU, desc[UR6][R2.64]
    const WIDE: u128 = 0x001f_ca00_078e_0204_0000_0004_0d0c_7825; // IMAD.WIDE R12, R13, 0x4, R4
    const AT: u128 = 0x000e_a800_0c10_1b00_0000_0004_0c14_7980; // LD.E.64 R20, desc[UR4][R12.64]
    for (to, waits) in [(4, true), (5, true), (6, false), (12, false), (13, true), (14, false)] {
        let code = code(90, &[FLAG | to << 16, WIDE, AT, END]);
        assert_eq!(code.may_wait(), waits, "{to}");
    }
}
