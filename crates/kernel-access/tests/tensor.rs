//! Copies by tensor maps: a map among the parameters says where the tensor is, any other nothing.

mod common;

use common::cubin;
use cuda_kernel_access::code::{Code, Launch};
use cuda_kernel_access::container::Cubin;
use cuda_kernel_access::decode::AccessKind;
use cuda_kernel_access::touch::{Rows, Span, may_touch, summary, surely_touched};

// Instructions of sm_90.
const MAPS: u128 = 0x000f_e400_0000_0a00_0000_6600_0004_7ab9; // ULDC.64 UR4, c[0x0][0x198]
const BANK: u128 = 0x000f_e400_0000_0a00_0000_3000_0004_7ab9; // ULDC.64 UR4, c[0x0][0xc0]
const NEXT: u128 = 0x000f_e200_0ff1_e03f_0000_0080_0404_7890; // UIADD3 UR4, UP0, UR4, 0x80, URZ
const CARRY: u128 = 0x000f_c600_087f_e43f_0000_0005_3f05_7290; // UIADD3.X UR5, URZ, UR5, URZ, UP0, !UPT
const ELSEWHERE: u128 = 0x000f_e400_0000_0a00_0000_c400_0004_7ab9; // ULDC.64 UR4, c[0x0][0x310]
const LOAD: u128 = 0x0011_d800_0800_9806_0000_0e08_0400_73b4; // UTMALDG.2D.MULTICAST [UR8], [UR4], UR6, desc[UR14]
const STORE: u128 = 0x0001_e200_0800_8000_0000_0010_0400_73b5; // UTMASTG.2D [UR16], [UR4]
const REDUCE: u128 = 0x0001_f000_0800_8000_0000_000c_0400_73b6; // UTMAREDG.2D.ADD [UR12], [UR4]
const END: u128 = 0x000f_ea00_0380_0000_0000_0000_0000_794d; // EXIT

const PLACE: u64 = 0x7f12_0000_0000;
const ELEMENTS: u32 = 1 << 7; // Of two bytes.

fn code(program: &[u128]) -> Code {
    let bytes: Vec<u8> = program.iter().flat_map(|word| word.to_le_bytes()).collect();
    let image = cubin(90, 7, &[("kernel", &bytes, &[(0, 128), (128, 128), (256, 8)])]);
    let cubin = Cubin::parse(&image).expect("an image");
    Code::new(90, &cubin.kernels[0]).unwrap_or_else(|error| panic!("{error}"))
}

/// A map of a tensor with these numbers of elements, and the bytes from one to the next along the
/// second axis and those after it.
fn map(kind: u32, sizes: &[u32], strides: &[u64]) -> Vec<u8> {
    let mut map = vec![0; 128];
    let mut put = |at: usize, bytes: &[u8]| map[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &PLACE.to_le_bytes());
    put(8, &(kind | (sizes.len() as u32 - 1) << 4).to_le_bytes());
    let mut upper = 0;
    for (at, stride) in strides.iter().enumerate() {
        put(0xc + 4 * at, &((stride >> 4) as u32).to_le_bytes());
        upper |= ((stride >> 36) as u32) << (4 * at);
    }
    put(0x1c, &upper.to_le_bytes());
    for (at, size) in sizes.iter().enumerate() {
        put(0x20 + 4 * at, &(size - 1).to_le_bytes());
    }
    map
}

fn touched(code: &Code, map: &[u8]) -> Vec<Span> {
    let parameters = [&[0xff; 128], map, &PLACE.to_le_bytes()].concat();
    let launch = Launch::new([4, 1, 1], [128, 1, 1], parameters);
    // Which of the elements it is is not followed.
    assert_eq!(surely_touched(code, &launch), []);
    may_touch(code, &launch).expect("known")
}

/// What a store by the second map may touch.
fn stored(map: &[u8]) -> (Option<std::ops::Range<u64>>, Vec<Rows>) {
    let spans = touched(&code(&[MAPS, NEXT, CARRY, STORE, END]), map);
    assert_eq!(spans.len(), 1);
    assert_eq!((spans[0].at, spans[0].kind), (0x30, AccessKind::Write));
    (spans[0].bytes.clone(), spans[0].rows.clone())
}

#[test]
fn a_map_bounds_what_is_copied() {
    let sizes = [40, 7, 3];
    let (far, farther) = (0x10_0000_0010_u64, 0x80_0000_0040_u64);
    for (sizes, strides, bytes, rows) in [
        (&sizes[..1], &[][..], 80, None),
        // Without gaps, and with them.
        (&sizes[..2], &[80], 6 * 80 + 80, None),
        (&sizes[..2], &[96], 6 * 96 + 80, Some(96)),
        (&sizes[..], &[96, 96 * 8], 2 * 96 * 8 + 6 * 96 + 80, Some(96)),
        // Planes that are shifted against the rows, and in the other order.
        (&sizes[..], &[96, 16 * 43], 2 * 16 * 43 + 6 * 96 + 80, None),
        (&sizes[..], &[96 * 3, 96], 6 * 96 * 3 + 2 * 96 + 80, None),
        // Strides of more than 36 bits, each with four of its own.
        (&sizes[..], &[far, farther], 2 * farther + 6 * far + 80, None),
        (&[1, 1, 1, 2, 3], &[16, 16, 0x30, farther], 2 * farther + 0x30 + 2, Some(16)),
    ] {
        let width = 2 * u64::from(sizes[0]);
        let expected = rows.map(|pitch| Rows::new(PLACE % pitch, width, pitch));
        let expected = (Some(PLACE..PLACE + bytes), expected.into_iter().collect());
        assert_eq!(stored(&map(ELEMENTS, sizes, strides)), expected, "{sizes:?} {strides:x?}");
    }
}

/// `UMOV`.
fn number(register: u128, number: i32) -> u128 {
    0x000f_e200_0000_0000 << 64 | u128::from(number as u32) << 32 | register << 16 | 0x7882
}

/// A map of 40 by 7 elements of two bytes in rows of 96 bytes, whose tiles have 16 by 3 of them.
fn tiled(strides: u64) -> Vec<u8> {
    let mut map = map(ELEMENTS, &[40, 7], &[96]);
    map[0x34..0x3c].copy_from_slice(&((15 << 24 | 2 << 32) | strides).to_le_bytes());
    map
}

/// What a copy of the tile that begins there surely touches, and where it may be.
fn tile(copy: u128, first: u128, begin: [i32; 2], map: &[u8]) -> (Vec<(u64, u32)>, Vec<Span>) {
    let [x, y] = [number(first, begin[0]), number(first + 1, begin[1])];
    let code = code(&[x, y, MAPS, NEXT, CARRY, copy, END]);
    let parameters = [&[0xff; 128], map, &PLACE.to_le_bytes()].concat();
    let launch = Launch::new([1; 3], [1; 3], parameters);
    let sure = surely_touched(&code, &launch);
    assert!(sure.iter().all(|touch| touch.at == 0x50));
    let sure = sure.iter().map(|touch| (touch.address - PLACE, touch.bytes)).collect();
    (sure, may_touch(&code, &launch).expect("known"))
}

#[test]
fn a_tile_is_what_of_its_box_is_in_the_tensor() {
    let rows = |first: u64, last: u64, from: u64, bytes: u32| -> Vec<(u64, u32)> {
        (first..=last).map(|row| (96 * row + from, bytes)).collect()
    };
    for (begin, expected) in [
        ([0, 0], rows(0, 2, 0, 32)),
        ([8, 2], rows(2, 4, 16, 32)),
        ([30, 5], rows(5, 6, 60, 20)),
        ([-15, -2], rows(0, 0, 0, 2)),
        ([39, 6], rows(6, 6, 78, 2)),
    ] {
        let (sure, spans) = tile(STORE, 17, begin, &tiled(0));
        assert_eq!(sure, expected, "{begin:?}");
        let [first, last] = [expected.first(), expected.last()].map(|row| row.expect("a row"));
        let bytes = PLACE + first.0..PLACE + last.0 + u64::from(last.1);
        assert_eq!((&spans[0].bytes, spans[0].from_memory), (&Some(bytes), false), "{begin:?}");
        // Elements are left out.
        for strides in [1, 1 << 3] {
            let (sure, again) = tile(STORE, 17, begin, &tiled(strides));
            assert_eq!((sure, &again[0].bytes), (Vec::new(), &spans[0].bytes), "{begin:?}");
        }
    }
    // Outside, and of a copy that has other rows than those of a box.
    let (map, whole) = (tiled(0), 6 * 96 + 80);
    for (copy, first, begin, end) in [
        (STORE, 17, [40, 0], whole),
        (STORE, 17, [0, -3], whole),
        (STORE | 1 << 83, 17, [0, 0], whole),
        (LOAD | 1 << 84, 10, [0, 0], whole),
        // Of another number of axes than the map has.
        (STORE + (1 << 79), 17, [0, 0], whole),
        // One of the coordinates is not known, and the other one bounds the rows.
        (STORE, 18, [0, 0], 2 * 96 + 80),
    ] {
        let (sure, spans) = tile(copy, first, begin, &map);
        assert_eq!((sure, &spans[0].bytes), (Vec::new(), &Some(PLACE..PLACE + end)), "{begin:?}");
        assert!(spans[0].from_memory, "{begin:?}");
    }
    // Each kind has its coordinates at another place.
    for (copy, first, bytes) in [(LOAD, 10, 32), (STORE, 17, 32), (REDUCE, 13, 1)] {
        let (sure, spans) = tile(copy, first, [8, 2], &map);
        assert_eq!(sure, rows(2, 4, 16, bytes), "{first}");
        assert_eq!(spans[0].bytes, Some(PLACE + 208..PLACE + 432), "{first}");
        // The next one is not the first.
        let (sure, _) = tile(copy, first + 1, [8, 2], &map);
        assert_eq!(sure, [], "{first}");
    }
}

/// Kernels of cuBLASLt have the address of the parameters' bank, and the parameters begin behind 0x210.
#[test]
fn a_map_is_found_from_the_bank_on() {
    let next = |bytes: u128| NEXT & !(0xffff_ffff << 32) | bytes << 32;
    for (from, by, known) in
        [(BANK, 0x290, true), (MAPS, 0x80, true), (BANK, 0x80, false), (MAPS, 0x290, false)]
    {
        let code = code(&[from, next(by), CARRY, STORE, END]);
        let spans = touched(&code, &map(ELEMENTS, &[40, 7], &[96]));
        assert_eq!(spans.len(), 1);
        let bytes = known.then_some(PLACE..PLACE + 6 * 96 + 80);
        assert_eq!(spans[0].bytes, bytes, "{from:x} {by:#x}");
    }
}

#[test]
fn each_type_of_elements_has_its_size() {
    for (kind, bytes) in [1, 2, 4, 4, 8, 8, 2, 4, 4, 8, 2].into_iter().enumerate() {
        let found = stored(&map((kind as u32) << 7, &[5], &[])).0;
        assert_eq!(found, Some(PLACE..PLACE + 5 * bytes), "{kind}");
    }
    // A float of which a part counts, and what does not change where the tensor is.
    for more in [7 << 7 | 1 << 16, 2 << 7 | 3 << 13, 2 << 7 | 1 << 15, 2 << 7 | 1 << 21] {
        assert_eq!(stored(&map(more, &[5], &[])).0, Some(PLACE..PLACE + 20), "{more:x}");
    }
}

/// Packed elements, interleaved ones, and more axes than there are.
#[test]
fn maps_that_are_not_understood_may_be_of_anything() {
    let kinds = (11..16).map(|of| of << 7).chain([ELEMENTS | 1 << 11, ELEMENTS | 2 << 11]);
    for kind in kinds.chain([ELEMENTS | 5 << 4, ELEMENTS | 6 << 4]) {
        assert_eq!(stored(&map(kind, &[5], &[])), (None, Vec::new()), "{kind:x}");
    }
    // A map of which a part is missing.
    let code = code(&[MAPS, NEXT, CARRY, STORE, END]);
    let parameters = [vec![0xff; 128], map(ELEMENTS, &[5], &[])[..120].to_vec()].concat();
    let spans = may_touch(&code, &Launch::new([1; 3], [1; 3], parameters)).expect("known");
    assert_eq!(spans[0].bytes, None);
}

#[test]
fn kinds_of_copies_are_told_apart() {
    for (copy, kind) in
        [(LOAD, AccessKind::CopyToShared), (STORE, AccessKind::Write), (REDUCE, AccessKind::Reduce)]
    {
        let code = code(&[MAPS, NEXT, CARRY, copy, END]);
        let spans = touched(&code, &map(ELEMENTS, &[40], &[]));
        let found: Vec<_> = spans.iter().map(|span| (span.kind, span.bytes.clone())).collect();
        assert_eq!(found, [(kind, Some(PLACE..PLACE + 80))]);
        // Of any launch: the second map's address, and not the first's.
        let words = summary(&code).expect("known").words;
        let uses: Vec<_> = [0, 128, 136, 256]
            .map(|offset| {
                let word = words.iter().find(|word| word.offset == offset).expect("a word");
                let uses = word.uses;
                let as_base = (word.as_base.read, word.as_base.written, word.as_base.atomic);
                assert_eq!(as_base, (uses.read, uses.written, uses.atomic));
                (uses.read, uses.written, uses.atomic, uses.other)
            })
            .into();
        let read = kind == AccessKind::CopyToShared;
        let (written, atomic) = (kind == AccessKind::Write, kind == AccessKind::Reduce);
        let other = (false, false, false, true);
        let none = (false, false, false, false);
        assert_eq!(uses, [none, (read, written, atomic, true), other, none], "{kind:?}");
    }
}

/// Where those are that convolutions read by is not known.
#[test]
fn a_map_of_another_kind_may_be_of_anything() {
    let code = code(&[MAPS, NEXT, CARRY, STORE | 1 << 82, END]);
    let spans = touched(&code, &map(ELEMENTS, &[40], &[]));
    assert_eq!((spans[0].kind, spans[0].bytes.clone()), (AccessKind::Write, None));
    let words = summary(&code).expect("known").words;
    assert!(words.iter().all(|word| word.uses.written && !word.as_base.written));
}

/// Such as one that the kernel has made in memory.
#[test]
fn a_map_elsewhere_may_be_of_anything() {
    let code = code(&[ELSEWHERE, STORE, END]);
    let spans = touched(&code, &map(ELEMENTS, &[40], &[]));
    assert_eq!((spans[0].bytes.clone(), spans[0].from_memory), (None, true));
    let found = summary(&code).expect("known");
    assert!(found.memory.written);
}
