//! Choices, branches by an index, functions.

use cuda_kernel_access::code::Launch;
use cuda_kernel_access::execute::execute;
use cuda_kernel_access::touch::{Uses, may_touch, summary, surely_touched};

use crate::text::code;

/// An address that is chosen by one condition and then by another may be each that was not surely
/// replaced, and by one condition and its opposite it is none of those before.
#[test]
fn addresses_chosen_by_several_conditions() {
    const GUARDS: [&str; 4] = ["@%p1", "@!%p1", "@%p2", "@!%p2"];
    let holds = |guard: usize, thread: usize| {
        let bit = thread >> (guard / 2) & 1 != 0;
        bit == guard.is_multiple_of(2)
    };
    let parameters: Vec<u8> = (1..5_u64).flat_map(|array| (array << 32).to_le_bytes()).collect();
    let launch = Launch::new([1; 3], [4, 1, 1], parameters);
    for number in 0..64 {
        let guards = [number % 4, number / 4 % 4, number / 16];
        let moves: Vec<String> = guards
            .iter()
            .zip(["%rd2", "%rd3", "%rd4"])
            .map(|(guard, from)| format!("{} mov.u64 %rd5, {from};\n", GUARDS[*guard]))
            .collect();
        let text = format!(
            ".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d)\n{{\n\
             .reg .pred %p<3>; .reg .b32 %r<4>; .reg .b64 %rd<6>;\n\
             ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b];\n\
             ld.param.u64 %rd3, [c]; ld.param.u64 %rd4, [d];\n\
             mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 1; and.b32 %r3, %r1, 2;\n\
             setp.ne.s32 %p1, %r2, 0; setp.ne.s32 %p2, %r3, 0;\n\
             mov.u64 %rd5, %rd1;\n{}st.global.u32 [%rd5], 1; ret;\n}}",
            moves.concat()
        );
        let code = code(&text).expect("known");
        let words = summary(&code).expect("known").words;
        let spans = may_touch(&code, &launch).expect("known");
        let mut chosen = [false; 4];
        for thread in 0..4 {
            let last = (0..3).rev().find(|at| holds(guards[*at], thread));
            let word = last.map_or(0, |at| at + 1);
            chosen[word] = true;
            let place = [thread as u32, 0, 0];
            let run = execute(&code, &launch, [0; 3], place, &mut |_, _| None, 100);
            assert_eq!(run.touched[0].address >> 32, word as u64 + 1, "{guards:?} {thread}");
            let bytes = run.touched[0].address..run.touched[0].address + 4;
            assert!(spans.iter().any(|span| span.may_touch(&bytes)), "{guards:?} {thread}");
        }
        for (at, chosen) in chosen.iter().enumerate() {
            assert!(!chosen || words[at].uses.written, "{guards:?} {at}");
        }
        // The last two are of one condition, one for each way: nothing else is left.
        if guards[1] ^ 1 == guards[2] {
            let written: Vec<bool> = words.iter().map(|word| word.uses.written).collect();
            assert_eq!(written, [false, false, true, true], "{guards:?}");
        }
    }
}

/// A branch by an index goes to one of its targets, and never on to what comes behind it.
#[test]
fn a_branch_by_an_index_goes_to_one_of_its_targets() {
    let code = code(
        ".entry k(.param .u64 to, .param .u32 i)\n{ .reg .b64 %a; .reg .b32 %i;\
         ld.param.u64 %a, [to]; ld.param.u32 %i, [i]; L: .branchtargets A, B; brx.idx %i, L;\
         st.global.u8 [%a], 1; A: ret; B: ret; }\n",
    );
    let found = summary(&code.expect("it is known")).expect("it is known");
    assert_eq!(found.words[0].uses, Uses::default(), "nothing stores there");
}

/// A function may get and return registers in place of parameters.
#[test]
fn registers_are_passed_to_functions() {
    let code = code(
        ".func (.reg .b64 %r) f(.reg .b64 %a) { st.global.u32 [%a], 7; add.u64 %r, %a, 16; ret; }\n\
         .entry k(.param .u64 to)\n{ .reg .b64 %rd<4>; ld.param.u64 %rd0, [to];\
         add.u64 %rd1, %rd0, 16; call (%rd2), f, (%rd1); st.global.u32 [%rd2], 1; ret; }\n",
    );
    let launch = Launch::new([1; 3], [1; 3], 0x7000_u64.to_le_bytes().to_vec());
    let touched = surely_touched(&code.expect("it is known"), &launch);
    let addresses: Vec<u64> = touched.iter().map(|touch| touch.address).collect();
    assert_eq!(addresses, [0x7010, 0x7020], "{touched:?}");
}

/// Where a loop begins at one of several numbers it is the same in all turns.
#[test]
fn loops_begin_at_one_of_several_numbers() {
    let text = "
.visible .entry k(.param .u64 p, .param .u32 n)
{
    .reg .pred %p<3>; .reg .b32 %r<6>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n]; mov.u32 %r3, %tid.x; mov.u32 %r4, 0;
O:  setp.eq.u32 %p1, %r3, 0; @%p1 bra C;
    add.u32 %r2, %r4, 3; bra A;
C:  add.u32 %r2, %r4, 1;
A:  mul.wide.u32 %rd2, %r2, 4; add.u64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r2;
    add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, %r1; @%p2 bra A;
    add.u32 %r4, %r4, 100; setp.lt.u32 %p2, %r4, 200; @%p2 bra O;
    ret;
}";
    let place = 0x7f12_0000_0000_u64;
    let touched = |text: &str, count: u32| {
        let parameters = [&place.to_le_bytes()[..], &count.to_le_bytes()].concat();
        let launch = Launch::new([1; 3], [2, 1, 1], parameters);
        let spans = may_touch(&code(text).expect("known"), &launch).expect("known");
        spans.into_iter().map(|span| span.bytes).collect::<Vec<_>>()
    };
    // It is entered twice, with numbers from 1 and from 101 on.
    let all = touched(text, 150)[0].clone().expect("bounds");
    assert!(all.start <= place + 4 && place + 600 <= all.end, "{all:x?}");
    let once =
        text.replace("    add.u32 %r4, %r4, 100; setp.lt.u32 %p2, %r4, 200; @%p2 bra O;\n", "");
    for count in [4, 5, 150] {
        assert_eq!(
            touched(&once, count),
            [Some(place + 4..place + 4 * u64::from(count))],
            "{count}"
        );
    }
}

/// A loop that is entered at two places: each has its first turn, and the same last one.
#[test]
fn loops_with_two_entries_are_bounded() {
    let text = "
.visible .entry k(.param .u64 p, .param .u32 n)
{
    .reg .pred %p<3>; .reg .b32 %r<6>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n];
    mov.u32 %r2, 0; mov.u32 %r3, %tid.x;
    setp.eq.u32 %p1, %r3, 0; @%p1 bra B;
A:  mul.wide.u32 %rd2, %r2, 4; add.u64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r2;
B:  add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, %r1; @%p2 bra A;
    ret;
}";
    let code = code(text).expect("known");
    assert!(summary(&code).expect("known").words[0].as_base.written);
    let place = 0x7f12_0000_0000_u64;
    for count in [1_u32, 2, 10] {
        let parameters = [&place.to_le_bytes()[..], &count.to_le_bytes()].concat();
        let launch = Launch::new([1; 3], [2, 1, 1], parameters);
        let spans = may_touch(&code, &launch).expect("known");
        let bytes: Vec<_> = spans.into_iter().map(|span| span.bytes).collect();
        assert_eq!(bytes, [Some(place..place + 4 * u64::from(count))], "{count}");
        for thread in 0..2 {
            let run = execute(&code, &launch, [0; 3], [thread, 0, 0], &mut |_, _| None, 1000);
            let touched: Vec<u64> = run.touched.iter().map(|one| one.address - place).collect();
            let first = u64::from(1 - thread);
            let expected: Vec<u64> = (first..u64::from(count)).map(|index| 4 * index).collect();
            assert_eq!(touched, expected, "{count} {thread}");
        }
    }
}
