//! What a thread has stored in its own memory is there when it loads it, unless something else may be.

mod common;
#[path = "common/shapes.rs"]
mod shapes;

use cuda_kernel_access::code::{Code, Launch};
use cuda_kernel_access::execute::{Run, execute};

const STACK: u128 = 0x000e_3000_0000_0800_0000_0a00_ff01_7b82; // LDC R1, c[0x0][0x28]
const FIRST: u128 = 0x000e_a200_0000_0a00_0000_8400_ff04_7b82; // LDC.64 R4, c[0x0][0x210]
const KEEP: u128 = 0x0001_e800_0010_0a00_0000_0004_0100_7387; // STL.64 [R1], R4
const LOAD: u128 = 0x004e_a400_0010_0a00_0000_0000_0102_7983; // LDL.64 R2, [R1]
const STORE: u128 = 0x000f_e200_0c10_1904_0000_0005_0200_7985; // ST.E [R2.64], R5
const SKIP: u128 = 0x000f_ea00_0380_0000_0000_0000_0004_0947; // @P0 BRA over the next
const END: u128 = 0x000f_ea00_0380_0000_0000_0000_0000_794d; // EXIT

/// The store with another base, this many bytes behind it, of this register: R255 is zero.
fn store(base: u8, offset: u128, from: u8) -> u128 {
    0x0001_e800_0010_0800_0000_0000_0000_7387
        | u128::from(base) << 24
        | u128::from(from) << 32
        | offset << 40
}

fn code(program: &[u128]) -> Code {
    let shape = shapes::shapes().into_iter();
    let mut shape = shape.filter(|one| one.architecture == 90 && one.name == "chosen_pointer");
    let bytes: Vec<u8> = program.iter().flat_map(|one| one.to_le_bytes()).collect();
    shape.next().expect("it is there").with(&bytes).expect("known")
}

/// A thread keeps its first parameter, does something, and stores where the loaded address says.
fn run(program: &[u128]) -> Run {
    let code = code(program);
    let launch = Launch::new([1; 3], [1; 3], 0x7f12_3456_7000_u64.to_le_bytes());
    execute(&code, &launch, [0; 3], [0; 3], &mut |_, _| None, 1000)
}

#[test]
fn what_was_stored_is_loaded() {
    const BYTE: u128 = 0x0001_e800_0010_0000_0000_0000_0000_7387;
    const IF_UNKNOWN: u128 = !(7 << 12);
    let guarded = |word: u128| word & IF_UNKNOWN;
    let there = Some(0x7f12_3456_7000);
    for (what, between, expected) in [
        ("nothing", vec![], there),
        ("another place", vec![store(1, 8, 255)], there),
        ("the upper half", vec![store(1, 4, 255)], Some(0x3456_7000)),
        ("the lower half, if", vec![guarded(store(1, 0, 255))], None),
        ("another place, if", vec![guarded(store(1, 8, 255))], there),
        ("some place", vec![store(9, 0, 255)], None),
        ("a byte", vec![BYTE | 1 << 24 | 255 << 32 | 5 << 40], None),
        ("on one way", vec![SKIP, store(1, 0, 255)], None),
        ("some place of any memory", vec![STORE & !(0xff << 24) | 8 << 24], None),
        ("a place in global memory", vec![STORE & !(0xff << 24) | 4 << 24], there),
    ] {
        let program = [&[STACK, FIRST, KEEP][..], &between, &[LOAD, STORE, END]].concat();
        let run = run(&program);
        let at = 16 * (program.len() - 2);
        let last = run.touched.iter().find(|touch| touch.at == at).map(|touch| touch.address);
        assert_eq!(last, expected, "{what}: {run:x?}");
        assert_eq!(run.missing.contains(&at), expected.is_none(), "{what}");
    }
    // Without a store nothing is known, and neither is a place without the stack.
    for program in [[STACK, FIRST, LOAD, STORE, END], [FIRST, KEEP, LOAD, STORE, END]] {
        assert!(run(&program).touched.is_empty());
    }
}
