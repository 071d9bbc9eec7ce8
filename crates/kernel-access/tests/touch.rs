//! What a kernel may touch contains what its threads touch, and what its source says.

mod common;
#[path = "common/programs.rs"]
mod programs;
#[path = "common/shapes.rs"]
mod shapes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use cuda_kernel_access::code::{Code, Launch};
use cuda_kernel_access::decode::AccessKind;
use cuda_kernel_access::execute::{Touch, execute};
use cuda_kernel_access::ptx::Module;
use cuda_kernel_access::touch::{Span, Unknown, Uses, may_touch, summary, surely_touched};
use programs::{Programs, Word};
use shapes::{array, case, memory, threads};

/// Whether each of these accesses is in what may happen.
fn contains(spans: &[Span], touched: &[Touch]) -> Result<usize, String> {
    for touch in touched {
        let Some(span) = spans.iter().find(|span| span.at == touch.at) else {
            return Err(format!("{touch:x?} is not in {spans:x?}"));
        };
        let end = touch.address.checked_add(touch.bytes.into());
        let inside = span.kind == touch.kind
            && span.bytes.as_ref().is_none_or(|bytes| {
                let all = || touch.address..touch.address + u64::from(touch.bytes);
                bytes.start <= touch.address
                    && end.is_some_and(|end| end <= bytes.end)
                    && all().all(|at| span.may_touch(&(at..at + 1)))
            });
        if !inside {
            return Err(format!("{touch:x?} is not in {span:x?}"));
        }
    }
    Ok(touched.len())
}

fn any_memory(seed: u64) -> impl FnMut(u64, u8) -> Option<u128> {
    move |address, bytes| {
        let mixed = (address | seed << 56).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let small = u128::from(mixed >> 59) << (mixed >> 20 & 1);
        Some(if bytes > 4 { small | small << 32 } else { small })
    }
}

#[test]
fn threads_stay_in_what_may_be_touched() {
    let mut touches = 0;
    for shape in shapes::shapes() {
        for which in 0..3 {
            let Some((launch, ..)) = case(&shape.name, which) else { continue };
            let place = format!("{} sm_{} {which}", shape.name, shape.architecture);
            let spans = match may_touch(&shape.code, &launch) {
                Ok(spans) => spans,
                Err(error) => panic!("{place}: {error}"),
            };
            for (block, thread) in threads(&launch) {
                let mut check = |memory: &mut dyn FnMut(u64, u8) -> Option<u128>| {
                    let run = execute(&shape.code, &launch, block, thread, memory, 100_000);
                    touches += contains(&spans, &run.touched)
                        .unwrap_or_else(|error| panic!("{place} {block:?} {thread:?}: {error}"));
                };
                check(&mut memory);
                check(&mut any_memory(1));
                check(&mut |_, _| None);
            }
        }
    }
    assert!(touches > 20_000, "{touches}");
}

/// A counter is taken to stay below its limit only if it cannot overflow on the way.
#[test]
fn counters_that_overflow_are_not_bounded_by_their_limit() {
    let programs = Programs::new();
    let spans = |first: u32, limit: u32, step| {
        let code = programs.counting(step).expect("a loop");
        let parameters = [first, limit].map(u32::to_le_bytes).concat();
        let launch = Launch::new([1; 3], [1; 3], parameters);
        let spans = may_touch(&code, &launch).expect("known");
        let run = execute(&code, &launch, [0; 3], [0; 3], &mut |_, _| None, 2000);
        contains(&spans, &run.touched[..run.known]).unwrap_or_else(|error| panic!("{error}"));
        (spans[0].bytes.clone(), run.touched.len())
    };
    // The third is less than the first.
    let (bytes, touched) = spans(0x5000_0000, 0xffff_0000, 0x7000_0001);
    assert!(touched > 2 && bytes.is_none_or(|bytes| bytes.start <= 0xffff_0000_3000_0002));
    let (bytes, touched) = spans(100, 1000, 7);
    assert_eq!((bytes, touched), (Some(1000 << 32 | 100..1000 << 32 | 1003), 129));
}

/// A register that rises in a loop by the carry of another one is its upper half only if it was so
/// before the loop.
#[test]
fn an_upper_half_in_a_loop_is_one_before_it() {
    let programs = Programs::new();
    // From below a border of the lower half to above it.
    let first = 0x7f00_ffff_ff80_u64;
    for more in [0, 1, 7, 0xffff_ffff_u32] {
        let code = programs.rising(64, more).expect("a loop");
        let parameters = [first, 8 << 32].map(u64::to_le_bytes).concat();
        let launch = Launch::new([1; 3], [1; 3], parameters);
        let spans = may_touch(&code, &launch).expect("known");
        let run = execute(&code, &launch, [0; 3], [0; 3], &mut |_, _| None, 1000);
        let begin = first.wrapping_add(u64::from(more) << 32);
        let touched: Vec<u64> = run.touched.iter().map(|touch| touch.address).collect();
        let expected: Vec<u64> = (0..8).map(|turn| begin + 64 * turn).collect();
        assert_eq!((touched, run.known), (expected, 8));
        contains(&spans, &run.touched).unwrap_or_else(|error| panic!("{more}: {error}"));
        let bounds = spans[0].bytes.clone();
        assert_eq!(bounds.is_some_and(|bytes| bytes.start == first), more == 0, "{spans:x?}");
    }
}

/// A predicate that is written only perhaps may still have what it had.
#[test]
fn predicates_that_are_perhaps_written_are_not_known() {
    let programs = Programs::new();
    let launch = Launch::new([1; 3], [1; 3], [0; 32]);
    let accesses = |words: &[Word]| {
        let code = programs.of(words).expect("a graph");
        may_touch(&code, &launch).expect("known").len()
    };
    assert_eq!(accesses(&[Word::StoreIf(0)]), 1);
    assert_eq!(accesses(&[Word::Clear, Word::StoreIf(0)]), 0);
    assert_eq!(accesses(&[Word::ClearPerhaps, Word::StoreIf(0)]), 1);
}

/// An instruction that is not followed reads as many registers as its kind of numbers takes, and what
/// was in any of them may be in its result.
#[test]
fn what_is_not_followed_depends_on_all_that_it_reads() {
    const FFMA: u16 = 0x23;
    const DFMA: u16 = 0x2b;
    const HMMA: u16 = 0x3c;
    let programs = Programs::new();
    // Register 1 is the upper half of the first word, 2 and 3 are the second, 4 is in the third.
    for (number, expected) in [(FFMA, 1), (DFMA, 2), (HMMA, 3)] {
        let code = programs.of(&[Word::Compute(number), Word::Store(8)]).expect("a graph");
        let words = summary(&code).expect("known").words;
        let written: Vec<u32> =
            words.iter().filter(|word| word.uses.written).map(|word| word.offset).collect();
        assert_eq!(written, (0..expected).map(|at| 8 * at).collect::<Vec<_>>(), "{number:#x}");
    }
}

/// How many random programs there are of each kind.
const PROGRAMS: u64 = 500;

/// Random instructions, and changed ones: what a thread does with any contents of memory is in what
/// may happen.
#[test]
fn threads_of_any_program_stay_in_what_may_be_touched() {
    let programs = Programs::new();
    let launch = |number: u64| {
        let parameters: Vec<u8> = (0..32)
            .map(|at| match (number % 3, at % 4) {
                (0, _) => [3, 1, 0, 0][at % 4] * (at as u8 / 4),
                (1, 0) => 200_u8.wrapping_mul(at as u8),
                (2, 3) => 0xff,
                (_, _) => (number >> (at % 4 * 3)) as u8,
            })
            .collect();
        Launch::new([3, 1, 1], [64, 1, 1], parameters)
    };
    let words = |number| programs.whole(programs.words(number));
    let random = (0..PROGRAMS).filter_map(|number| Some((words(number)?, launch(number))));
    let loops = |number| programs.whole(programs.looping(number));
    let looping = (0..PROGRAMS).filter_map(|number| Some((loops(number)?, launch(number))));
    let random = random.chain(looping).map(|((text, code), launch)| (text, code, launch));
    let changed = shapes::mutated()
        .into_iter()
        .step_by(16)
        .filter_map(|(name, code)| case(&name, 0).map(|(launch, ..)| (name, code, launch)));
    let (mut touches, mut bounded, mut unbounded, mut rows, mut failed) = (0, 0, 0, 0, 0);
    for (name, code, launch) in random.chain(changed) {
        let Ok(spans) = may_touch(&code, &launch) else {
            failed += 1;
            continue;
        };
        bounded += spans.iter().filter(|span| span.bytes.is_some()).count();
        unbounded += spans.iter().filter(|span| span.bytes.is_none()).count();
        for (block, thread) in [([0; 3], [0; 3]), ([1, 0, 0], [33, 0, 0]), ([2, 0, 0], [63, 0, 0])]
        {
            let is_there =
                |axis: usize| block[axis] < launch.grid[axis] && thread[axis] < launch.block[axis];
            if !(0..3).all(is_there) {
                continue;
            }
            rows += spans.iter().filter(|span| !span.rows.is_empty()).count();
            for seed in 0..4 {
                let memory = &mut any_memory(seed);
                let run = execute(&code, &launch, block, thread, memory, 2000);
                // Random branches may go around without an end.
                touches += contains(&spans, &run.touched[..run.known])
                    .unwrap_or_else(|error| panic!("{name} {block:?} {thread:?}: {error}"));
            }
        }
    }
    assert!(touches > 3000 && bounded > 500, "{touches} {bounded} {unbounded} {failed}");
    assert!(rows > 500, "{rows}");
}

/// What the source says of its parameters: 'r', 'w' and 'a' of each that is an address, and of memory.
fn source(name: &str) -> Option<(&'static [&'static str], &'static str)> {
    Some(match name {
        "unused_word" => (&["", "w"], ""),
        "axpy" => (&["r", "rw"], ""),
        "grid_stride"
        | "offset_and_stride"
        | "vectors"
        | "divided"
        | "remainders"
        | "backwards"
        | "wide_numbers"
        | "copied_asynchronously"
        | "transpose"
        | "sum"
        | "local_array" => (&["r", "w"], ""),
        "bytes_and_halves" => (&["r", "w", "w"], ""),
        "gather" | "multiply" => (&["r", "r", "w"], ""),
        "half_math" => (&["r", "r", "rw"], ""),
        "called" | "sizes" => (&["w"], ""),
        "histogram" => (&["r", "a"], ""),
        "reductions" => (&["a", "a", "a", "a", "r"], ""),
        "pointers_in_memory" => (&["r"], "w"),
        "module_variables" => (&["w"], "rw"),
        "branches" => (&["r", "rw", "r"], ""),
        _ => return None,
    })
}

fn text(uses: Uses) -> String {
    let all = [(uses.read, 'r'), (uses.written, 'w'), (uses.atomic, 'a')];
    all.into_iter().filter(|one| one.0).map(|one| one.1).collect()
}

#[test]
fn words_are_used_as_the_source_says() {
    let mut compared = 0;
    for shape in shapes::shapes() {
        let Some((expected, memory)) = source(&shape.name) else { continue };
        let place = format!("{} sm_{}", shape.name, shape.architecture);
        let summary = summary(&shape.code).unwrap_or_else(|error| panic!("{place}: {error}"));
        for (at, word) in summary.words.iter().enumerate() {
            assert_eq!(word.offset, 8 * at as u32);
            // Numbers are no addresses.
            let expected = expected.get(at).copied().unwrap_or_default();
            let found = text(word.uses);
            if shape.name == "branches" {
                // Addresses that loops count up by numbers from memory: more may be in them.
                assert!(
                    expected.chars().all(|one| found.contains(one)),
                    "{place} {at}: {summary:?}"
                );
            } else {
                assert_eq!(found, expected, "{place} {at}: {summary:?}");
                assert_eq!(text(word.as_base), expected, "{place} {at}: {summary:?}");
            }
            assert!(word.used || word.uses.none(), "{place}");
            compared += 1;
        }
        assert!(text(summary.memory) == memory || shape.name == "branches", "{place}: {summary:?}");
        let unused: Vec<u32> =
            summary.words.iter().filter(|word| !word.used).map(|word| word.offset).collect();
        assert_eq!(unused, if shape.name == "unused_word" { vec![0] } else { vec![] }, "{place}");
    }
    assert!(compared > 150, "{compared}");
}

/// Either of two addresses, by a condition or by an index, and one that an index is added to.
#[test]
fn chosen_words_are_used_in_both_ways() {
    let mut compared = 0;
    for shape in shapes::shapes() {
        let words = match shape.name.as_str() {
            "chosen" | "many_tensors" => summary(&shape.code).expect("known").words,
            _ => continue,
        };
        let count = if shape.name == "chosen" { 2 } else { 16 };
        for word in &words[..count] {
            assert!(word.used && word.uses.written, "{} {word:?}", shape.name);
            assert_eq!(word.uses.read, shape.name == "many_tensors", "{} {word:?}", shape.name);
            compared += 1;
        }
    }
    assert!(compared >= 54, "{compared}");
}

/// By kind and array, the first byte and the end.
type Hulls = BTreeMap<(char, u64), (u64, u64)>;

fn add(hulls: &mut Hulls, kind: char, (first, end): (u64, u64)) {
    // An array may be touched before it begins, too.
    let hull = hulls.entry((kind, (first + (1 << 31)) >> 32)).or_insert((first, end));
    *hull = (hull.0.min(first), hull.1.max(end));
}

#[test]
fn bounds_are_those_of_the_source() {
    const EXACT: [&str; 15] = [
        "unused_word",
        "axpy",
        "grid_stride",
        "offset_and_stride",
        "vectors",
        "bytes_and_halves",
        "called",
        "wide_numbers",
        "backwards",
        "sum",
        "half_math",
        "chosen",
        "local_array",
        "switched",
        "transpose",
    ];
    let mut compared = 0;
    for shape in shapes::shapes().iter().filter(|shape| EXACT.contains(&shape.name.as_str())) {
        for which in 0..3 {
            let (launch, expected, _) = case(&shape.name, which).expect("one");
            let mut bytes = BTreeSet::new();
            let line = |size: u32| (0..i64::from(size)).collect::<Vec<_>>();
            for block in line(launch.grid[0]) {
                for y in line(launch.grid[1]) {
                    for thread in line(launch.block[0]) {
                        for thread_y in line(launch.block[1]) {
                            expected(&launch, [block, y, 0], [thread, thread_y, 0], &mut bytes);
                        }
                    }
                }
            }
            let (mut source, mut found) = (Hulls::new(), Hulls::new());
            for (kind, byte) in bytes {
                add(&mut source, kind, (byte, byte + 1));
            }
            for span in may_touch(&shape.code, &launch).expect("known") {
                let kind = if span.kind == AccessKind::Write { 'w' } else { 'r' };
                let bytes = span.bytes.unwrap_or_else(|| panic!("{}", shape.name));
                add(&mut found, kind, (bytes.start, bytes.end));
            }
            assert_eq!(found, source, "{} sm_{} {which}", shape.name, shape.architecture);
            compared += 1;
        }
    }
    assert!(compared > 100, "{compared}");
}

#[test]
fn corners_of_a_launch_are_surely_touched() {
    let mut compared = 0;
    for shape in shapes::shapes().iter().filter(|shape| shape.name == "axpy") {
        let (launch, ..) = case("axpy", 0).expect("one");
        let touched = surely_touched(&shape.code, &launch);
        // Threads 0, 63, 128; 191 has no element, and 149 the last one.
        let first = |kind, index| -> Vec<u64> {
            let of =
                |touch: &&Touch| touch.kind == kind && touch.address >> 32 == array(index) >> 32;
            touched.iter().filter(of).map(|touch| touch.address - array(index)).collect()
        };
        assert_eq!(first(AccessKind::Read, 0), [0, 63 * 4, 128 * 4, 149 * 4]);
        assert_eq!(first(AccessKind::Write, 1), [0, 63 * 4, 128 * 4, 149 * 4]);
        let mut none = launch.clone();
        none.grid[1] = 0;
        assert!(surely_touched(&shape.code, &none).is_empty());
        compared += 1;
    }
    assert!(compared > 2);
    // Of an atomic operation one byte is sure, of a copy to shared memory none.
    for shape in shapes::shapes() {
        let Some((launch, ..)) = case(&shape.name, 0) else { continue };
        for touch in surely_touched(&shape.code, &launch) {
            match touch.kind {
                AccessKind::Read | AccessKind::Write => {}
                AccessKind::Atomic | AccessKind::Reduce => assert_eq!(touch.bytes, 1),
                _ => panic!("{touch:?}"),
            }
        }
    }
}

/// Where an address changes with a word, the word is said to have to do with it.
#[test]
fn words_that_change_addresses_are_used() {
    let programs = Programs::new();
    let (mut changes, mut without) = (0, 0);
    for number in 0..600 {
        let Some(code) = programs.straight(number) else { continue };
        let Ok(summary) = summary(&code) else { continue };
        let run = |changed: Option<usize>| {
            let mut parameters: Vec<u8> = (1..33).map(|at| at * 7).collect();
            if let Some(word) = changed {
                parameters[8 * word..8 * word + 8].fill(number as u8 | 1);
            }
            let launch = Launch::new([1; 3], [32, 1, 1], parameters);
            // Each address has the same number, so that nothing flows through memory.
            let memory = &mut |_, _| Some(5 << 64 | 3 << 32 | 9);
            execute(&code, &launch, [0; 3], [3, 0, 0], memory, 100).touched
        };
        let plain = run(None);
        for word in 0..4 {
            let changed = run(Some(word));
            let uses = summary.words[word].uses;
            for touch in &plain {
                let Some(other) = changed.iter().find(|other| other.at == touch.at) else {
                    continue;
                };
                let of_kind = match touch.kind {
                    AccessKind::Write => uses.written,
                    _ => uses.read,
                };
                if other.address != touch.address {
                    assert!(
                        uses.other || of_kind,
                        "{number} {word} {touch:x?} {other:x?} {uses:?} {code:x?}"
                    );
                    changes += 1;
                } else {
                    without += u32::from(!uses.other && !of_kind);
                }
            }
        }
    }
    assert!(changes > 800 && without > 800, "{changes} {without}");
}

#[test]
fn an_answer_may_be_given_up_after_a_time() {
    let shape = shapes::shapes().into_iter().find(|shape| shape.name == "axpy").expect("one");
    let launch = Launch::new([3, 1, 1], [64, 1, 1], [0; 24]);
    // A clock that moves on only as often as it is asked: nothing else decides.
    fn clock() -> Duration {
        static ASKED: AtomicU32 = AtomicU32::new(0);
        Duration::from_secs(ASKED.fetch_add(1, Ordering::Relaxed).into())
    }
    for seconds in [0, 1] {
        let late = shape.code.clone().within(clock, Duration::from_secs(seconds));
        assert_eq!(summary(&late), Err(Unknown::TooLong));
        assert_eq!(may_touch(&late, &launch), Err(Unknown::TooLong));
    }
    let in_time = shape.code.clone().within(clock, Duration::from_secs(3600));
    assert_eq!(may_touch(&in_time, &launch), may_touch(&shape.code, &launch));
    let stopped = shape.code.clone().within(|| Duration::MAX, Duration::MAX);
    assert_eq!(may_touch(&stopped, &launch), Err(Unknown::TooLong));
    let begins = shape.code.clone().within(|| Duration::ZERO, Duration::from_nanos(1));
    assert_eq!(may_touch(&begins, &launch), may_touch(&shape.code, &launch));
}

/// What comes after loops is looked at when these are done: once.
#[test]
fn what_follows_loops_is_evaluated_once() {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    // Two loops, one in the other, and what they count is added to the address many times.
    let asked = |times: usize| {
        let text = format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n
            .visible .entry sum(.param .u64 to, .param .u32 high, .param .u32 wide) {{
            .reg .pred %p; .reg .b32 %x, %y, %at, %high, %wide; .reg .b64 %to, %offset;
            ld.param.u64 %to, [to]; ld.param.u32 %high, [high]; ld.param.u32 %wide, [wide];
            mov.u32 %y, 0; mov.u32 %at, 0;
            ROW: mov.u32 %x, 0;
            COLUMN: add.s32 %at, %at, 4; add.s32 %x, %x, 1;
            setp.lt.s32 %p, %x, %wide; @%p bra COLUMN;
            add.s32 %y, %y, 1;
            setp.lt.s32 %p, %y, %high; @%p bra ROW;
            mul.wide.s32 %offset, %y, 4;
            {} st.global.u32 [%to], %x; ret; }}",
            "add.s64 %to, %to, %offset;".repeat(times)
        );
        let module = Module::parse(&text).expect("PTX");
        let code = Code::from_ptx(&module, "sum").unwrap_or_else(|error| panic!("{error}"));
        // A clock that counts how often it is asked: at each sixteenth instruction.
        let clock = || Duration::from_nanos(ASKED.fetch_add(1, Ordering::Relaxed).into());
        let before = ASKED.load(Ordering::Relaxed);
        summary(&code.within(clock, Duration::MAX)).expect("known");
        ASKED.load(Ordering::Relaxed) - before
    };
    let (few, many) = (asked(0), asked(1600));
    assert!(few < 20 && (100..=101).contains(&(many - few)), "{few} {many}");
}

/// A tile of a matrix leaves out what is beside it, and a column of pairs the other half of each.
#[test]
fn a_tile_leaves_out_what_is_beside_it() {
    let mut found = 0;
    for shape in shapes::shapes() {
        let Some((launch, ..)) = case(&shape.name, 0).filter(|_| shape.name == "multiply") else {
            continue;
        };
        let spans = may_touch(&shape.code, &launch).expect("known");
        for span in spans.iter().filter(|span| !span.rows.is_empty()) {
            let (bytes, rows) =
                (span.bytes.clone().expect("bounds"), span.rows[span.rows.len() - 1]);
            assert!(rows.width < rows.pitch, "{rows:?}");
            // From its first byte to its last it covers rows, and there is something between two.
            assert!(span.may_touch(&(bytes.start..bytes.start + 1)), "{span:x?}");
            assert!(span.may_touch(&(bytes.end - 1..bytes.end)), "{span:x?}");
            let gap = bytes.start + rows.width..bytes.start + rows.pitch;
            assert!(!span.may_touch(&gap), "{span:x?} {gap:x?}");
            assert!(span.may_touch(&(gap.start - 1..gap.end)), "{span:x?} {gap:x?}");
            assert!(span.may_touch(&(gap.start..gap.end + 1)), "{span:x?} {gap:x?}");
            found += 1;
        }
    }
    assert!(found > 0, "{found}");
}

/// Numbers on both sides of a thread's own, up to the ends of an array: a sum and a limit at once.
#[test]
fn the_neighbours_of_a_thread_are_bounded() {
    let shape =
        shapes::shapes().into_iter().find(|of| of.architecture == 90 && of.name == "switched");
    let words: [u128; 9] = [
        0x000e_2e00_0000_2100_0000_0000_000b_7919, // S2R R11, SR_TID.X
        0x000e_2200_0000_0800_0000_8600_ff00_7b82, // LDC R0, c[0x0][0x218]
        0x000e_6200_0000_0a00_0000_8400_ff06_7b82, // LDC.64 R6, c[0x0][0x210]
        0x000f_e200_0780_01ff_ffff_ffff_0b03_7846, // VIADDMNMX R3, R11, 0xffffffff, RZ, !PT
        0x000f_e200_0380_0100_0000_0001_0b09_7846, // VIADDMNMX R9, R11, 0x1, R0, PT
        0x002f_c800_078e_0206_0000_0004_0302_7825, // IMAD.WIDE R2, R3, 0x4, R6
        0x000f_e400_078e_0206_0000_0004_0906_7825, // IMAD.WIDE R6, R9, 0x4, R6
        0x000e_e200_0c1e_1900_0000_0004_0603_7981, // LDG.E R3, desc[UR4][R6.64]
        0x000f_ea00_0380_0000_0000_0000_0000_794d, // EXIT
    ];
    let lower = 0x000e_a400_0c1e_1900_0000_0004_0203_7981_u128; // LDG.E R3, desc[UR4][R2.64]
    for (load, expected) in [(lower, 0..4 * 127), (words[7], 4..4 * 100)] {
        let mut words = words;
        words[7] = load;
        let bytes = words.map(u128::to_le_bytes).concat();
        let code = shape.as_ref().and_then(|of| of.with(&bytes)).expect("a graph");
        let begin = 0x7f00_0000_0000_u64;
        let parameters = [&begin.to_le_bytes()[..], &99_u32.to_le_bytes(), &[0; 4]].concat();
        let launch = Launch::new([1; 3], [128, 1, 1], parameters);
        let spans = may_touch(&code, &launch).expect("known");
        let wanted = begin + expected.start..begin + expected.end;
        assert_eq!(spans[0].bytes.as_ref(), Some(&wanted));
        let mut hull = (u64::MAX, 0);
        for thread in 0..128 {
            let run = execute(&code, &launch, [0; 3], [thread, 0, 0], &mut |_, _| None, 1000);
            contains(&spans, &run.touched).unwrap_or_else(|error| panic!("{thread}: {error}"));
            let at = run.touched[0].address;
            hull = (hull.0.min(at), hull.1.max(at + 4));
        }
        assert_eq!(hull, (wanted.start, wanted.end));
    }
}

/// What a kernel stores may be what it loads, also if it is stored later.
#[test]
fn a_stored_address_may_be_loaded() {
    const TEXT: &str = ".version 8.0\n.target sm_80\n.address_size 64\n\
        .visible .entry k(.param .u64 p, .param .u64 q)\n{\n.reg .b64 %rd<6>;\n.reg .b32 %r<4>;\n\
        .shared .align 8 .b8 s[8];\nld.param.u64 %rd1, [p];\nld.param.u64 %rd2, [q];\n\
        mov.u64 %rd4, s;\nld.shared.u64 %rd3, [%rd4];\nst.shared.u64 [%rd4], %rd1;\n\
        ld.global.u32 %r1, [%rd3];\nst.global.u32 [%rd2], %r1;\nret;\n}\n";
    let module = cuda_kernel_access::ptx::Module::parse(TEXT).expect("it is PTX");
    let code = cuda_kernel_access::code::Code::from_ptx(&module, "k").expect("it is known");
    let summary = cuda_kernel_access::touch::summary(&code).expect("it is known");
    assert!(summary.words[0].uses.read, "{summary:?}");
    assert!(!summary.words[1].uses.read, "{summary:?}");
}

fn of_ptx(body: &str) -> Code {
    let text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n\
        .visible .entry k(.param .u64 p, .param .u64 q)\n{{\n.reg .b64 %rd<8>;\n\
        .reg .b32 %r<8>;\n.reg .pred %p<4>;\nld.param.u64 %rd1, [p];\nld.param.u64 %rd2, [q];\n\
        {body}\nret;\n}}\n"
    );
    let module = Module::parse(&text).expect("it is PTX");
    Code::from_ptx(&module, "k").expect("it is known")
}

/// The block after a loop begins with the same registers in each round, as long as the loop's counter
/// is in none of them: what is known of it is no longer so once a number that the loop made may be
/// more.
#[test]
fn a_block_is_evaluated_again_when_a_number_may_be_more() {
    let code = of_ptx(
        "mov.u32 %r1, 0;\nTURN:\nmin.u32 %r2, %r1, 100;\nadd.u32 %r1, %r1, 1;\n\
        ld.global.u32 %r3, [%rd2];\nsetp.ne.u32 %p1, %r3, 0;\n@%p1 bra TURN;\n\
        mov.u32 %r1, 0;\nbra DONE;\nDONE:\nmul.wide.u32 %rd3, %r2, 4;\n\
        add.u64 %rd4, %rd1, %rd3;\nst.global.u32 [%rd4], %r1;",
    );
    let parameters = [array(0), array(1)].map(u64::to_le_bytes).concat();
    let launch = Launch::new([1; 3], [1; 3], parameters);
    let spans = may_touch(&code, &launch).expect("it is known");
    for turns in [0, 1, 50, 100, 200] {
        let mut left = turns;
        let memory = &mut |_, _| {
            let more = left > 0;
            left -= i32::from(more);
            Some(more.into())
        };
        let run = execute(&code, &launch, [0; 3], [0; 3], memory, 10_000);
        let written = run.touched.iter().find(|touch| touch.kind == AccessKind::Write);
        let expected = array(0) + 4 * turns.min(100) as u64;
        assert_eq!(written.map(|touch| touch.address), Some(expected));
        contains(&spans, &run.touched).unwrap_or_else(|error| panic!("{turns}: {error}"));
    }
}

/// The same of the words that may be in a number, which has the same bounds in each round.
#[test]
fn a_block_is_evaluated_again_when_more_words_may_be_in_a_number() {
    for (end, is_written) in
        [("st.global.u32 [%rd4], %r1;", true), ("st.global.u64 [%rd2], %rd4;", false)]
    {
        let code = of_ptx(&format!(
            "mov.u32 %r1, %tid.x;\nTURN:\nadd.f32 %r2, %r1, %r1;\ncvt.u32.u64 %r1, %rd1;\n\
            ld.global.u32 %r3, [%rd2];\nsetp.ne.u32 %p1, %r3, 0;\n@%p1 bra TURN;\n\
            mov.u32 %r1, 0;\nmov.u64 %rd1, 0;\nbra DONE;\nDONE:\nmul.wide.u32 %rd4, %r2, 4;\n{end}",
        ));
        let word = summary(&code).expect("it is known").words[0];
        assert!(word.uses.written == is_written && word.uses.other != is_written, "{word:?}");
    }
}

/// A number of one or two bytes from memory has the bounds of its type.
#[test]
fn a_short_number_from_memory_is_bounded() {
    for (kind, numbers) in [("u8", 1 << 8), ("b8", 1 << 8), ("u16", 1 << 16), ("u32", 1_u64 << 32)]
    {
        let code = of_ptx(&format!(
            "ld.global.{kind} %r1, [%rd2];\nmul.wide.u32 %rd3, %r1, 4;\n\
            add.u64 %rd4, %rd1, %rd3;\nst.global.u32 [%rd4], %r1;",
        ));
        let parameters = [array(0), array(1)].map(u64::to_le_bytes).concat();
        let launch = Launch::new([1; 3], [1; 3], parameters);
        let spans = may_touch(&code, &launch).expect("it is known");
        let written = spans.iter().find(|span| span.kind == AccessKind::Write).expect("it stores");
        assert_eq!(written.bytes, Some(array(0)..array(0) + 4 * numbers), "{kind}");
        assert!(written.from_memory, "{kind}");
    }
}
