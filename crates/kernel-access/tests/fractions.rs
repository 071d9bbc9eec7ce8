//! Functions that compute with fractions have a block for each call, in which nothing is followed, and
//! all others are followed.

mod common;

use common::cubin;
use cuda_kernel_access::code::{Code, Launch};
use cuda_kernel_access::container::Cubin;
use cuda_kernel_access::touch::{Span, may_touch, summary, surely_touched};

/// Instructions of sm_90.
const OUT: u128 = 0x000e_2200_0000_0a00_0000_8400_ff10_7b82; // LDC.64 R16, c[0x0][0x210]
const PAIR: u128 = OUT & !(0xff << 16) | 4 << 16; // LDC.64 R4, c[0x0][0x210]
const COMPARE: u128 = 0x000f_da00_03f0_5270_0000_00ff_ff00_720c; // ISETP.NE.AND P0, PT, RZ, RZ, PT
const STORE: u128 = 0x000f_e200_0c10_1906_0000_0006_1000_7986; // STG.E desc[UR6][R16.64], R6
const STORE_THERE: u128 = STORE & !(0xff << 24) | 4 << 24; // STG.E desc[UR6][R4.64], R6
const END: u128 = 0x000f_ea00_0380_0000_0000_0000_0000_794d; // EXIT
const ADD: u128 = 0x000f_e200_0000_0000_3f80_0000_0404_7421; // FADD R4, R4, 1
const ADD_UPPER: u128 = ADD & !(0xff << 16) | 5 << 16; // FADD R5, R4, 1
const ADD_ELSEWHERE: u128 = ADD & !(0xff << 16) | 9 << 16; // FADD R9, R4, 1
const COMPARE_FRACTIONS: u128 = 0x000f_da00_03f0_e000_0000_00ff_0000_720b; // FSETP.GEU.AND P0, PT, R0, RZ, PT
const MOVE: u128 = 0x000f_e400_0000_0f00_0000_0010_0004_7202; // MOV R4, R16
const TO_WHOLE: u128 = 0x000f_e200_0020_f000_0000_0004_0009_7305; // F2I.TRUNC.NTZ R9, R4
const MEET: u128 = 0x000f_ea00_0380_0000_0000_0000_0000_7941; // BSYNC B0
const BACK: u128 = 0x000f_ec00_03c3_ffff_ffff_fffc_1400_7950; // RET.REL.NODEC R20
const NOTHING: u128 = 0x000f_c000_0000_0000_0000_0000_0000_7918; // NOP

/// On `!P0`.
fn perhaps(word: u128) -> u128 {
    word & !0xf000 | 0x8000
}

/// `@!P0 BRA` to an instruction, by how many there are between.
fn branch(distance: u128) -> u128 {
    0x000f_ea00_0380_0000_0000_0000_0000_8947 | (distance * 4) << 16
}

const AT: u64 = 0x7f12_0000_0000;

/// A kernel that calls a function of up to four instructions and then stores at both addresses. Returns
/// how many instructions stand for the function, and of each access whether it is known where it is, and
/// whether it is sure.
fn called(function: &[u128]) -> (usize, Vec<(bool, bool)>) {
    // CALL.REL.NOINC
    let call = 0x021f_ea00_03c0_0000_0000_0000_0000_7944 | (4 * 4) << 16;
    let mut program = vec![OUT, PAIR, COMPARE, call, STORE, STORE_THERE, STORE & !0xf000, END];
    program.extend(function);
    program.push(BACK);
    program.resize(13, NOTHING);
    let bytes: Vec<u8> = program.iter().flat_map(|word| word.to_le_bytes()).collect();
    let image = cubin(90, 7, &[("kernel", &bytes, &[(0, 8)])]);
    let cubin = Cubin::parse(&image).expect("an image");
    let code = Code::new(90, &cubin.kernels[0]).unwrap_or_else(|error| panic!("{error}"));
    let launch = Launch::new([1; 3], [1; 3], AT.to_le_bytes());
    let sure = surely_touched(&code, &launch);
    let spans = may_touch(&code, &launch).expect("known").into_iter();
    let is_there = |of: &Span| of.bytes == Some(AT..AT + 4);
    let is_sure = |of: &Span| sure.iter().any(|touch| touch.at == of.at);
    let spans = spans.map(|of| (is_there(&of), is_sure(&of))).collect();
    // What may be in the register may have flowed there.
    assert!(summary(&code).expect("known").words[0].as_base.written);
    (code.instructions().len() - 13, spans)
}

const THERE: (bool, bool) = (true, true);
const ANYWHERE: (bool, bool) = (false, false);

#[test]
fn what_a_function_of_fractions_writes_is_not_known() {
    // The registers one after the other, the predicates, and the way back.
    for (function, count, all, why) in [
        (vec![ADD], 3, vec![THERE, ANYWHERE], "the lower half"),
        (vec![ADD_UPPER], 3, vec![THERE, ANYWHERE], "the upper half"),
        (vec![ADD, ADD_UPPER], 3, vec![THERE, ANYWHERE], "both halves"),
        (vec![perhaps(ADD)], 3, vec![THERE, ANYWHERE], "on a condition"),
        (vec![branch(1), ADD_ELSEWHERE, ADD], 4, vec![THERE, ANYWHERE], "on one of two ways"),
        (vec![ADD_ELSEWHERE], 3, vec![THERE, THERE], "another register"),
        (vec![ADD_ELSEWHERE, MOVE], 4, vec![THERE, ANYWHERE], "not only fractions"),
    ] {
        assert_eq!(called(&function), (count, all), "{why}");
    }
    // The third store happens if the predicate does not hold, which it does before the call.
    let all = vec![THERE, THERE, (true, false)];
    assert_eq!(called(&[ADD_ELSEWHERE, COMPARE_FRACTIONS]), (3, all));
}

#[test]
fn other_functions_are_followed() {
    for (function, second, why) in [
        (vec![MOVE], THERE, "it has no fractions"),
        (vec![ADD_ELSEWHERE, TO_WHOLE, MOVE], THERE, "a fraction becomes a whole number"),
    ] {
        assert_eq!(called(&function), (0, vec![THERE, second]), "{why}");
    }
    let (count, all) = called(&[ADD_ELSEWHERE, STORE, ADD]);
    assert_eq!((count, all.len()), (0, 3), "it stores");
}

/// Where the caller's threads meet the function is left.
#[test]
#[should_panic(expected = "the place to meet")]
fn a_function_in_which_threads_of_the_caller_meet_is_followed() {
    called(&[ADD_ELSEWHERE, MEET]);
}

/// A function that loads a parameter by an index of its own.
#[test]
fn what_a_function_loads_by_an_index_may_be_in_its_results() {
    const ZERO: u128 = 0x000f_e400_0000_0f00_0000_00ff_0009_7202; // MOV R9, RZ
    const OTHER: u128 = 0x000f_e200_0000_0f00_0000_0010_0009_7802; // MOV R9, 0x10
    const INDEXED: u128 = PAIR & !(0xff << 24) | 9 << 24; // LDC.64 R4, c[0x0][R9+0x210]
    const ADD_BEHIND: u128 = ADD & !(0xff << 16) | 10 << 16; // FADD R10, R4, 1
    let call = 0x021f_ea00_03c0_0000_0000_0000_0000_7944 | (2 * 4) << 16;
    let back = BACK - (2 << 32);
    for (index, word) in [(NOTHING, 0), (OTHER, 2)] {
        let program = [ZERO, call, STORE_THERE, END, index, INDEXED, ADD_BEHIND, back];
        let bytes: Vec<u8> = program.iter().flat_map(|word| word.to_le_bytes()).collect();
        let image = cubin(90, 7, &[("kernel", &bytes, &[(0, 8), (8, 8), (16, 8)])]);
        let cubin = Cubin::parse(&image).expect("an image");
        let code = Code::new(90, &cubin.kernels[0]).unwrap_or_else(|error| panic!("{error}"));
        assert!(summary(&code).expect("known").words[word].uses.written, "{word}");
    }
}

/// A flag may come into a function as a predicate, or be in one that the function writes on a condition.
#[test]
fn a_flag_goes_through_a_function_by_a_predicate() {
    const FLAG: u128 = 0x000e_a800_0c10_f900_0000_0006_0204_7980; // LD.E.STRONG.GPU R4, desc[UR6][R2.64]
    const OF_FLAG: u128 = COMPARE & !(0xff << 24) | 4 << 24; // ISETP.NE.AND P0, PT, R4, RZ, PT
    const OF_RESULT: u128 = COMPARE & !(0xff << 24) | 9 << 24 | 1 << 81; // ISETP.NE.AND P1, PT, R9, RZ, PT
    const ONE: u128 = ADD_ELSEWHERE | 0xff << 24; // FADD R9, RZ, 1
    let on = |predicate: u128, word: u128| word & !0xf000 | predicate << 12;
    let call = 0x021f_ea00_03c0_0000_0000_0000_0000_7944 | (4 * 4) << 16;
    let waits = |function: [u128; 2], decides: u128| {
        let program = [FLAG, OF_FLAG, call, OF_RESULT, on(decides, branch(1)), STORE, END];
        let program = [&program[..], &function, &[BACK]].concat();
        let bytes: Vec<u8> = program.iter().flat_map(|word| word.to_le_bytes()).collect();
        let image = cubin(90, 7, &[("kernel", &bytes, &[(0, 8)])]);
        let cubin = Cubin::parse(&image).expect("an image");
        let code = Code::new(90, &cubin.kernels[0]).unwrap_or_else(|error| panic!("{error}"));
        assert!(code.instructions().len() > program.len());
        code.may_wait()
    };
    assert!(waits([on(0, ONE), NOTHING], 1), "the result is there on the flag");
    assert!(!waits([ONE, NOTHING], 1), "the result is always there");
    assert!(waits([ONE, on(2, COMPARE_FRACTIONS)], 0), "the predicate may be what it was");
}

/// Where a function may return before its end, what it leaves is not known.
#[test]
fn a_function_may_return_early() {
    assert_eq!(called(&[ADD_ELSEWHERE, perhaps(BACK), ADD]).1, vec![THERE, ANYWHERE]);
}
