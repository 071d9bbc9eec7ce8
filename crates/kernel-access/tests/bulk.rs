//! Bulk copies touch as many bytes as a register says, one after the other.

mod common;

use std::ops::Range;

use common::cubin;
use cuda_kernel_access::code::{Code, Launch, NoCode};
use cuda_kernel_access::container::Cubin;
use cuda_kernel_access::decode::{AccessKind, decode};
use cuda_kernel_access::execute::execute;
use cuda_kernel_access::parameters::{Unread, bytes_read};
use cuda_kernel_access::threads::every_touch;
use cuda_kernel_access::touch::{Unknown, Uses, may_touch, summary, surely_touched};

/// Instructions of sm_90.
const SIZE: u128 = 0x000f_e200_0000_0800_0000_8800_0008_7ab9; // ULDC UR8, c[0x0][0x220]
const SHIFT: u128 = 0x000f_e200_0801_1608_0000_0004_3f08_7899; // USHF.R.U32.HI UR8, URZ, 0x4, UR8
const COUNT: u128 = 0x000f_e400_0800_003f_0000_5410_080c_7896; // UPRMT UR12, UR8, 0x5410, URZ
const FROM: u128 = 0x000f_e400_0000_0a00_0000_8400_0006_7ab9; // ULDC.64 UR6, c[0x0][0x210]
const TO: u128 = 0x000f_e200_0000_0a00_0000_8600_0004_7ab9; // ULDC.64 UR4, c[0x0][0x218]
const LOAD: u128 = 0x0011_d800_0800_020c_0000_000a_0600_73ba; // UBLKCP.S.G [UR10], [UR6], UR12
const MULTICAST: u128 = LOAD | 8 << 72; // UBLKCP.S.G.MULTICAST [UR10], [UR6], UR12
const STORE: u128 = 0x0003_e400_0800_040c_0000_0004_0a00_73ba; // UBLKCP.G.S [UR4], [UR10], UR12
const MASKED: u128 = STORE | 1 << 84; // UBLKCP.G.S.DST_G_BYTE_MASK [UR4], [UR10], UR12
const REDUCE: u128 = 0x0011_d800_0800_040c_0000_0004_0a00_73bb; // UBLKRED.G.S.ADD [UR4], [UR10], UR12
const AHEAD: u128 = 0x0003_e200_0800_000c_0000_0000_0600_73bc; // UBLKPF.L2 [UR6], UR12
const SHARED: u128 = 0x0011_d800_0800_060c_0000_000a_0400_73ba; // UBLKCP.S.S [UR10], [UR4], UR12
const TABLE: u128 = 0x000e_2200_0000_0a00_0000_8400_ff02_7b82; // LDC.64 R2, c[0x0][0x210]
const READ: u128 = 0x000e_a400_0c1e_1900_0000_0004_0200_7981; // LDG.E R0, desc[UR4][R2.64]
const UNIFORM: u128 = 0x000f_e200_000e_0000_0000_0000_000c_72ca; // R2UR UR12, R0
const END: u128 = 0x000f_ea00_0380_0000_0000_0000_0000_794d; // EXIT

const FROM_AT: u64 = 0x7f12_0000_0000;
const TO_AT: u64 = 0x7f34_0000_0000;

fn image(copies: &[u128]) -> Vec<u8> {
    let program = [&[SIZE, SHIFT, COUNT, FROM, TO], copies, &[END]].concat();
    let bytes: Vec<u8> = program.iter().flat_map(|word| word.to_le_bytes()).collect();
    cubin(90, 7, &[("kernel", &bytes, &[(0, 8), (8, 8), (16, 4)])])
}

fn code(copies: &[u128]) -> Result<Code, NoCode> {
    Code::new(90, &Cubin::parse(&image(copies)).expect("an image").kernels[0])
}

/// `None` leaves the size out.
fn launch(size: Option<u32>) -> Launch {
    let mut bytes = [FROM_AT, TO_AT].map(u64::to_le_bytes).concat();
    bytes.extend(size.into_iter().flat_map(u32::to_le_bytes));
    Launch::new([1; 3], [1; 3], bytes)
}

type Said = Vec<(AccessKind, Option<Range<u64>>)>;

fn said(copies: &[u128], size: Option<u32>) -> Said {
    let spans = may_touch(&code(copies).expect("known"), &launch(size)).expect("known");
    spans.into_iter().map(|span| (span.kind, span.bytes)).collect()
}

const ALL: [u128; 5] = [LOAD, MULTICAST, STORE, REDUCE, SHARED];

#[test]
fn a_bulk_copy_has_the_bytes_that_a_register_says() {
    use AccessKind::{CopyToShared, Reduce, Write};
    for size in [16, 2048, 0x1_0000, 0xf_fff0] {
        let bytes = |at: u64| Some(at..at + u64::from(size));
        let expected = [
            (CopyToShared, bytes(FROM_AT)),
            (CopyToShared, bytes(FROM_AT)),
            (Write, bytes(TO_AT)),
            (Reduce, bytes(TO_AT)),
        ];
        assert_eq!(said(&ALL, Some(size)), expected, "{size}");
        let code = code(&ALL).expect("known");
        let run = execute(&code, &launch(Some(size)), [0; 3], [0; 3], &mut |_, _| None, 100);
        let touched: Vec<_> = run
            .touched
            .iter()
            .map(|of| (of.kind, Some(of.address..of.address + u64::from(of.bytes))))
            .collect();
        assert_eq!((touched, run.missing.len()), (expected.to_vec(), 0), "{size}");
        // All is copied and reduced for certain.
        let sure: Vec<_> = surely_touched(&code, &launch(Some(size)))
            .iter()
            .map(|of| (of.address, of.kind, of.bytes))
            .collect();
        let expected = [
            (FROM_AT, CopyToShared, size),
            (FROM_AT, CopyToShared, size),
            (TO_AT, Write, size),
            (TO_AT, Reduce, size),
        ];
        assert_eq!(sure, expected, "{size}");
        let every = every_touch(&code, &launch(Some(size)), 1000).expect("little");
        assert!(every.missing.is_empty() && every.sure.len() == 4);
    }
    // Only the lower half counts: the upper one has the mask of those that get it, too.
    assert_eq!(said(&[LOAD], Some(0x10_0010)), said(&[LOAD], Some(16)));
    let with_mask = COUNT & !(0xff << 64) | 8 << 64; // UPRMT UR12, UR8, 0x5410, UR8
    assert_eq!(said(&[with_mask, LOAD], Some(64)), said(&[LOAD], Some(64)));
    let sure = surely_touched(&code(&[with_mask, LOAD]).expect("known"), &launch(Some(64)));
    assert_eq!(sure.iter().map(|of| of.bytes).collect::<Vec<_>>(), [64]);
    // One of no bytes touches none, and may touch what it would with some.
    let code = code(&ALL).expect("known");
    let run = execute(&code, &launch(Some(0)), [0; 3], [0; 3], &mut |_, _| None, 100);
    assert!(run.touched.is_empty() && run.missing.is_empty());
    assert_eq!(said(&[LOAD], Some(0)), said(&[LOAD], Some(16)));
}

#[test]
fn a_size_that_is_not_known_has_an_end() {
    let most = 16 * 0xffff;
    let expected = [(AccessKind::CopyToShared, Some(FROM_AT..FROM_AT + most))];
    assert_eq!(said(&[LOAD], None), expected);
    let code = code(&ALL).expect("known");
    let run = execute(&code, &launch(None), [0; 3], [0; 3], &mut |_, _| None, 100);
    assert_eq!((run.touched.len(), run.missing.len()), (0, 4));
    assert!(surely_touched(&code, &launch(None)).is_empty());
}

/// Where the copy ends depends on memory then, as an index from there has the bounds of its type.
#[test]
fn a_size_from_memory_says_so() {
    let spans = |copies: &[u128]| {
        may_touch(&code(copies).expect("known"), &launch(Some(64))).expect("known")
    };
    for (copies, from_memory) in [
        (&[TABLE, READ, UNIFORM, LOAD][..], true),
        (&[TABLE, READ, UNIFORM, STORE], true),
        (&[TABLE, READ, LOAD], false),
    ] {
        let all = spans(copies);
        let [read, copy] = all.as_slice() else { panic!("{all:?}") };
        assert_eq!((read.from_memory, copy.from_memory), (false, from_memory), "{copies:x?}");
    }
    // Nobody says it.
    let unknown = may_touch(&code(&[LOAD]).expect("known"), &launch(None)).expect("known");
    assert!(unknown[0].from_memory);
}

/// What is at the words of the parameters in any launch.
#[test]
fn bulk_copies_are_by_their_words() {
    let code = code(&ALL).expect("known");
    let words = summary(&code).expect("known").words;
    let uses = |of: fn(&mut Uses)| {
        let mut uses = Uses::default();
        of(&mut uses);
        uses
    };
    let found: Vec<Uses> = words.iter().map(|word| word.as_base).collect();
    let both = |uses: &mut Uses| (uses.written, uses.atomic) = (true, true);
    assert_eq!(found, [uses(|of| of.read = true), uses(both), Uses::default()]);
    assert!(!code.may_wait() && !code.may_signal());
    let image = image(&ALL);
    let read = bytes_read(90, &Cubin::parse(&image).expect("an image").kernels[0]);
    let ends = |of: &Range<u32>| (of.start, of.end);
    assert_eq!(read.expect("known").iter().map(ends).collect::<Vec<_>>(), [(0, 20)]);
}

/// Ahead of time nothing is touched, and where a mask says which bytes they are nothing is known.
#[test]
fn other_bulk_instructions() {
    assert_eq!(said(&[AHEAD, SHARED], Some(64)), []);
    let masked = code(&[MASKED]).expect("decoded");
    let unread = Unknown::Parameters(Unread::Description(5 * 16));
    assert_eq!(may_touch(&masked, &launch(Some(64))), Err(unread));
    assert_eq!(summary(&masked).err(), Some(unread));
}

/// Each compared with NVIDIA's disassembler.
#[test]
fn bulk_copies_have_their_registers() {
    for (architecture, bits, wanted) in [
        // UBLKCP.S.G.MULTICAST [UR4], [UR10], UR7, desc[UR8]
        (90, 0x0001_e400_0800_1a07_0000_0804_0a00_73ba_u128, "COPY.GLOBAL.16 [RZ+UR10], UR7"),
        // UBLKCP.G.S [UR8], [UR36], UR4, desc[UR6]
        (120, 0x0001_f000_0800_1404_0000_0608_2400_73ba, "STORE.GLOBAL.16 [RZ+UR8], UR4"),
        // UBLKRED.G.S.MIN.U64 [UR10], [UR4], UR6, desc[UR8]
        (90, 0x0001_e400_0884_1406_0000_080a_0400_73bb, "REDUCE.GLOBAL.16 [RZ+UR10], UR6"),
        // UBLKRED.G.S.ADD.F32.RN [UR8], [UR4], UR6
        (100, 0x0001_e400_080a_0406_0000_0008_0400_73bb, "REDUCE.GLOBAL.16 [RZ+UR8], UR6"),
        // UBLKCP.S.S [UR10], [UR4], UR12
        (90, SHARED, "STORE.SHARED.16 UR12"),
        // UBLKPF.L2 [UR4], UR6, desc[UR8]
        (90, 0x0001_f000_0800_1006_0000_0800_0400_73bc, "UBLKPF"),
        // UBLKCP.G.S.DST_G_BYTE_MASK [UR8], [UR4], UR7
        (100, 0x0001_f000_0810_0407_0000_0008_0400_73ba, "UNKNOWN.GLOBAL.16"),
    ] {
        let all = decode(architecture, &bits.to_le_bytes()).expect("whole");
        assert_eq!(all[0].to_string(), wanted, "{bits:x}");
    }
}
