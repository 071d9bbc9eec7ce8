//! A thread's accesses are those of the kernel's source.

mod common;
#[path = "common/programs.rs"]
mod programs;
#[path = "common/shapes.rs"]
mod shapes;

use cuda_kernel_access::code::{Code, Launch};
use cuda_kernel_access::decode::AccessKind;
use cuda_kernel_access::execute::{End, Run, execute};
use cuda_kernel_access::touch::may_touch;
use programs::{Programs, Word};
use shapes::{Bytes, case, memory, threads};

fn run(code: &Code, launch: &Launch, block: [u32; 3], thread: [u32; 3]) -> Run {
    execute(code, launch, block, thread, &mut memory, 100_000)
}

fn bytes(run: &Run) -> Bytes {
    let mut bytes = Bytes::new();
    for one in &run.touched {
        let (kind, count) = match one.kind {
            AccessKind::Read | AccessKind::CopyToShared => ('r', one.bytes),
            AccessKind::Write => ('w', one.bytes),
            _ => ('a', 1),
        };
        bytes.extend((one.address..one.address + u64::from(count)).map(|byte| (kind, byte)));
    }
    bytes
}

#[test]
fn a_thread_touches_what_the_source_says() {
    let (mut compared, mut whole) = (0, 0);
    for shape in shapes::shapes() {
        for which in 0..3 {
            let Some((launch, expected, knowable)) = case(&shape.name, which) else { continue };
            for (block, thread) in threads(&launch) {
                let run = run(&shape.code, &launch, block, thread);
                let touched = bytes(&run);
                let mut source = Bytes::new();
                expected(&launch, block.map(i64::from), thread.map(i64::from), &mut source);
                let place = format!(
                    "{} sm_{} {which} {block:?} {thread:?}: {:x?}",
                    shape.name, shape.architecture, run.end
                );
                let wrong: Vec<_> = touched.difference(&source).take(3).collect();
                assert!(wrong.is_empty(), "{place}: {wrong:x?}");
                let missing: Vec<_> = source.difference(&touched).take(3).collect();
                assert!(!knowable || missing.is_empty(), "{place}: without {missing:x?}");
                assert!(!knowable || run.end == End::Exit, "{place}");
                compared += 1;
                whole += usize::from(missing.is_empty() && !source.is_empty());
            }
        }
    }
    assert!(compared > 2500 && whole > 1500, "{compared} {whole}");
}

/// Where a parameter is not given, only what does not depend on it is known.
#[test]
fn missing_parameters_are_unknown() {
    let mut compared = 0;
    for shape in shapes::shapes() {
        let Some((launch, ..)) = case(&shape.name, 0) else { continue };
        let whole = bytes(&run(&shape.code, &launch, [0; 3], [1, 0, 0]));
        for kept in (0..launch.parameters.len()).step_by(4) {
            let mut cut = launch.clone();
            cut.parameters.truncate(kept);
            let part = bytes(&run(&shape.code, &cut, [0; 3], [1, 0, 0]));
            assert!(part.is_subset(&whole), "{} sm_{} {kept}", shape.name, shape.architecture);
            assert!(kept > 0 || part.is_empty(), "{} sm_{}", shape.name, shape.architecture);
            compared += 1;
        }
    }
    assert!(compared > 300, "{compared}");
}

#[test]
fn a_run_has_no_more_steps_than_allowed() {
    let shapes = shapes::shapes();
    let shape = shapes.iter().find(|shape| shape.name == "grid_stride").expect("one");
    let (launch, ..) = case(&shape.name, 2).expect("one");
    let run = |steps| execute(&shape.code, &launch, [0; 3], [0; 3], &mut memory, steps);
    assert_eq!(run(10_000).end, End::Exit);
    assert_eq!((run(40).end, run(0).end), (End::Steps, End::Steps));
    assert!(run(40).touched.len() < run(10_000).touched.len());
}

/// Bits of instructions changed: another thread runs, or none, but nothing breaks.
#[test]
fn changed_instructions_are_no_panic() {
    let mut ends = [0; 3];
    for (name, code) in shapes::mutated() {
        let Some((launch, ..)) = case(&name, 0) else { continue };
        for (block, thread) in [([0; 3], [0; 3]), ([2, 0, 0], [63, 0, 0])] {
            match execute(&code, &launch, block, thread, &mut memory, 3000).end {
                End::Exit => ends[0] += 1,
                End::Unknown(_) => ends[1] += 1,
                _ => ends[2] += 1,
            }
        }
    }
    assert!(ends.iter().all(|&count| count > 0), "{ends:?}");
}

/// What is known without the contents of memory and some of the parameters is true whatever these
/// are: also of random instructions, so that all of them meet unknown numbers.
#[test]
fn what_is_known_of_less_is_known_of_all() {
    let (mut compared, mut touched) = (0, 0);
    let programs = Programs::new();
    let parameters: Vec<u8> = (0..32).map(|at| [3, 1, 0, 0][at % 4] * (at as u8 / 4)).collect();
    let launch = Launch::new([3, 1, 1], [64, 1, 1], parameters);
    let random =
        (0..3000).filter_map(|number| Some((programs.text(number), programs.program(number)?)));
    let random = random.map(|(text, code)| (text, code, launch.clone()));
    let compiled = shapes::shapes().into_iter().map(|shape| (shape.name, shape.code));
    let compiled = compiled
        .chain(shapes::mutated())
        .filter_map(|(name, code)| case(&name, 0).map(|(launch, ..)| (name, code, launch)));
    for (name, code, launch) in compiled.chain(random) {
        let mut cut = launch.clone();
        cut.parameters.truncate(launch.parameters.len() - 4);
        let mut none = launch.clone();
        none.parameters.truncate(8);
        let thread = [33, 0, 0];
        let less = [&launch, &cut, &none]
            .map(|launch| execute(&code, launch, [1, 0, 0], thread, &mut |_, _| None, 1000));
        for seed in 1..6_u64 {
            let mut memory = |address: u64, bytes: u8| {
                let mixed = (address | seed << 56).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let small = u128::from(mixed >> 59) << (mixed >> 20 & 1);
                Some(if bytes > 4 { small | small << 32 } else { small })
            };
            let all = execute(&code, &launch, [1, 0, 0], thread, &mut memory, 2000);
            if all.end == End::Steps {
                continue;
            }
            for less in less.iter().filter(|less| less.end != End::Steps) {
                let mut rest = all.touched.iter();
                for one in &less.touched {
                    assert!(rest.any(|other| one == other), "{name} {one:x?}");
                    touched += 1;
                }
                compared += 1;
            }
        }
    }
    assert!(compared > 30_000 && touched > 20_000, "{compared} {touched}");
}

/// Memory that this thread may have written is not known any more, and a part of a register neither.
#[test]
fn memory_is_known_until_it_may_be_written() {
    let programs = Programs::new();
    let addresses = |first: [Word; 2], load: Word| {
        let code = programs.of(&[first[0], first[1], load, Word::Store(2)]).expect("a graph");
        let parameters = [1_u32, 1, 0, 0, 2, 2, 0, 0].map(u32::to_le_bytes).concat();
        let launch = Launch::new([1; 3], [1; 3], parameters);
        let run = execute(&code, &launch, [0; 3], [0; 3], &mut |_, _| Some(7 << 32), 100);
        run.touched.last().expect("at least the load").address
    };
    let (known, load) = (7 << 32, 2 | 2 << 32);
    let nothing = [Word::Nothing; 2];
    assert_eq!(addresses(nothing, Word::Load(8)), known);
    assert_eq!(addresses(nothing, Word::Load(1)), load);
    assert_eq!(addresses([Word::Store(0), Word::Nothing], Word::Load(8)), load);
    assert_eq!(addresses([Word::StorePerhaps(0), Word::Nothing], Word::Load(8)), load);
    // Within a branch on a number that is not known.
    assert_eq!(addresses([Word::SkipPerhaps, Word::Store(0)], Word::Load(8)), load);
    assert_eq!(addresses([Word::SkipPerhaps, Word::Nothing], Word::Load(8)), known);
}

/// After a branch that is taken perhaps, a predicate that is written in between is not known.
#[test]
fn predicates_are_known_until_they_may_be_written() {
    let programs = Programs::new();
    let stores = |words: &[Word]| {
        let code = programs.of(words).expect("a graph");
        let launch = Launch::new([1; 3], [1; 3], [0; 32]);
        let run = execute(&code, &launch, [0; 3], [0; 3], &mut |_, _| None, 100);
        assert_eq!(run.end, End::Exit);
        run.touched.len()
    };
    assert_eq!(stores(&[Word::StoreIf(0)]), 1);
    assert_eq!(stores(&[Word::Clear, Word::StoreIf(0)]), 0);
    assert_eq!(stores(&[Word::SkipPerhaps, Word::Clear, Word::StoreIf(0), Word::Store(0)]), 1);
    assert_eq!(stores(&[Word::SkipPerhaps, Word::Nothing, Word::StoreIf(0), Word::Store(0)]), 2);
}

/// Zero less zero twice has a carry of two: two predicates have one each, and one is not known.
#[test]
fn the_carry_of_two_differences_needs_two_predicates() {
    let programs = Programs::new();
    // IADD3 R8, P0, P1, RZ, -RZ, -RZ
    let both = 0x000f_e200_0791_e8ff_8000_00ff_ff08_7210;
    let one = both | 7 << 84;
    for (sum, known) in [(both, true), (one, false)] {
        let code = programs.of(&[Word::Bits(sum), Word::StoreIf(0)]).expect("a graph");
        let launch = Launch::new([1; 3], [1; 3], [0; 32]);
        let run = execute(&code, &launch, [0; 3], [0; 3], &mut |_, _| None, 100);
        assert_eq!((run.touched.len(), run.missing.is_empty()), (usize::from(known), known));
        // Either way it may be.
        assert!(
            may_touch(&code, &launch)
                .expect("known")
                .iter()
                .any(|span| span.kind == AccessKind::Write)
        );
    }
}
