//! What needs an order, what bounds say, and what two launches mean.

use std::sync::Arc;

use cuda_kernel_access::code::{Code, Launch};
use cuda_kernel_access::decode::AccessKind as KernelAccess;
use cuda_kernel_access::ptx::Module;
use cuda_kernel_access::touch::{Uses, may_touch, summary, surely_touched};
use cuda_order_check_engine::AccessKind;

use super::accesses::{conflict, is_bounded, is_of_either, matters, may_be_of, some_of};
use super::search::LATE;
use super::two_launches::of_two_launches;
use super::{Bytes, Question, Reach, Verdict, WAITS, unless_it_waits};
use crate::code::evaluated::{Bounds, Evaluated, Threads, Waits};
use crate::code::kernel::KernelCode;
use crate::code::launch::Values;
use crate::code::time::Time;

const MEMORY: u64 = 0x7000;

/// Stores four bytes at the address in its parameter.
const KERNEL: &str = ".version 8.0\n.target sm_90\n.address_size 64\n\
    .entry kernel(.param .u64 to)\n{ .reg .b64 a; ld.param.u64 a, [to]; st.u32 [a], 1; ret; }\n";

/// Accesses of four bytes, by their places: some that are sure, and some that may be.
fn evaluated(sure: &[(u64, KernelAccess)], perhaps: &[(u64, KernelAccess)]) -> Evaluated {
    let module = Module::parse(KERNEL).expect("it is PTX");
    let code = Code::from_ptx(&module, "kernel").expect("it is known");
    let launch = Launch::new([1; 3], [1; 3], MEMORY.to_le_bytes().to_vec());
    let touch = |(place, kind): &(u64, KernelAccess)| {
        let mut touch = surely_touched(&code, &launch).remove(0);
        (touch.kind, touch.address) = (*kind, MEMORY + 64 * place);
        touch
    };
    let span = |(place, kind): &(u64, KernelAccess)| {
        let mut span = may_touch(&code, &launch).expect("it is known").remove(0);
        span.kind = *kind;
        span.bytes = Some(MEMORY + 64 * place..MEMORY + 64 * place + 4);
        span
    };
    let spans = sure.iter().chain(perhaps).map(span).collect();
    let summary = Arc::new(summary(&code).expect("it is known"));
    let bounds = Ok(Bounds { summary, spans });
    let threads = Threads::default();
    Evaluated { sure: sure.iter().map(touch).collect(), bounds, waits: Waits::None, threads }
}

/// Each kind of access with each: `+` needs an order.
#[test]
fn what_needs_an_order_is_in_this_table() {
    let does = [
        KernelAccess::Read,
        KernelAccess::CopyToShared,
        KernelAccess::Write,
        KernelAccess::Unknown,
        KernelAccess::Atomic,
        KernelAccess::Reduce,
    ];
    let text = |all: Vec<bool>| -> String {
        all.into_iter().map(|needs| if needs { '+' } else { '.' }).collect()
    };
    let kernels = ["..++++", "..++++", "++++++", "++++++", "++++..", "++++.."];
    for (one, expected) in does.into_iter().zip(kernels) {
        let weak = does.map(|two| conflict((one, false), (two, false)));
        assert_eq!(text(weak.into()), expected, "{one:?}");
        for (own, other, needs) in [(true, false, true), (false, true, true), (true, true, false)] {
            let found = text(does.map(|two| conflict((one, own), (two, other))).into());
            assert_eq!(found, if needs { expected } else { "......" }, "{one:?} {own} {other}");
        }
    }
    for (other, expected) in [
        (AccessKind::Read, "..++++"),
        (AccessKind::AtomicRead, "..++++"),
        (AccessKind::Wait, "..++++"),
        (AccessKind::Write, "++++++"),
        (AccessKind::AtomicWrite, "++++++"),
        (AccessKind::Free, "++++++"),
    ] {
        assert_eq!(text(does.map(|does| matters(does, other)).into()), expected, "{other:?}");
    }
}

/// A word's uses, by themselves and together, with each kind of access.
#[test]
fn an_access_may_be_by_a_word_that_is_used_so() {
    for uses in 0..16 {
        let [read, written, atomic, other] = [0, 1, 2, 3].map(|at| uses >> at & 1 == 1);
        let mut all = Uses::default();
        (all.read, all.written, all.atomic, all.other) = (read, written, atomic, other);
        for (does, expected) in [
            (KernelAccess::Read, read || other),
            (KernelAccess::CopyToShared, read || other),
            (KernelAccess::Write, written || other),
            (KernelAccess::Atomic, atomic || other),
            (KernelAccess::Reduce, atomic || other),
            (KernelAccess::Unknown, true),
        ] {
            let found = evaluated(&[], &[(0, does)]);
            let span = &found.bounds.as_ref().expect("they are known").spans[0];
            assert_eq!(may_be_of(span, Some(all)), expected, "{does:?} {all:?}");
            assert!(may_be_of(span, None), "{does:?}");
        }
    }
}

/// Of whichever side the kernel is that waits, nothing but what needs no order is said for sure.
#[test]
fn beside_a_kernel_that_waits_a_finding_is_possible_only() {
    let bytes = || Bytes { ranges: vec![0..4, 8..9], writes: [true, false] };
    let own = Verdict::Possible(1, "its own reason".into());
    let sure = [Verdict::Certain(bytes()), Verdict::Likely(bytes())];
    for (waits, at) in [
        ([false; 2], None),
        ([true, false], Some(0)),
        ([false, true], Some(1)),
        ([true; 2], Some(0)),
    ] {
        for verdict in &sure {
            let expected = at.map(|at| Verdict::Possible(at, WAITS.into()));
            let expected = expected.unwrap_or_else(|| verdict.clone());
            assert_eq!(unless_it_waits(verdict.clone(), waits), expected, "{waits:?}");
        }
        for verdict in [&Verdict::Refuted, &own] {
            assert_eq!(unless_it_waits(verdict.clone(), waits), *verdict, "{waits:?}");
        }
    }
}

/// Bounds by their ends, in memory that is known or not, and of either of two ranges.
#[test]
fn bounds_say_something_up_to_their_ends() {
    let memory = 100..200;
    for (bytes, known) in [(100..200, true), (99..200, false), (100..201, false), (150..151, true)]
    {
        assert_eq!(is_bounded(&bytes, Some(&memory)), known, "{bytes:?}");
    }
    assert!(is_bounded(&(8..(1 << 32) + 7), None) && !is_bounded(&(8..(1 << 32) + 8), None));
    let found = evaluated(&[], &[(1, KernelAccess::Read)]);
    let mut span = found.bounds.expect("they are known").spans.remove(0);
    let own = span.bytes.clone().expect("they are known");
    let (far, less) = (0..own.start, own.start + 1..own.end);
    for (all, covers) in [
        (vec![own.clone()], true),
        (vec![far.clone(), own.clone()], true),
        (vec![own.start - 1..own.end + 1, far.clone()], true),
        (vec![less.clone(), own.start..own.end - 1], false),
        (vec![far], false),
        (vec![], false),
    ] {
        span.from_memory = true;
        assert_eq!(is_of_either(&span, &all), covers, "{all:?}");
        span.from_memory = false;
        assert!(is_of_either(&span, &all), "{all:?}");
    }
    // What is asked of a range: the first of those that it touches, one between, and the last.
    let ranges = |count: u64| (0..count).map(|at| own.start + at..own.start + at + 1);
    for (count, expected) in
        [(0, &[][..]), (1, &[0]), (2, &[0, 1]), (3, &[0, 1, 2]), (4, &[0, 2, 3])]
    {
        let all: Vec<_> = std::iter::once(less.end..less.end + 9).chain(ranges(count)).collect();
        let found = some_of(&span, &all);
        let expected: Vec<_> =
            expected.iter().map(|at| own.start + at..own.start + at + 1).collect();
        assert_eq!(found, expected, "{count}");
    }
    let all = std::iter::once(0..u64::MAX).collect::<Vec<_>>();
    assert_eq!(some_of(&span, &all), [own]);
}

/// Each kernel reads what the other writes, at two places: all pairs count.
#[test]
fn a_kernel_writes_if_it_does_at_any_of_the_places() {
    let code = || Arc::new(KernelCode::new("kernel".to_owned(), 90, None));
    let [one, two] = [(); 2].map(|()| Values::new(code(), [1; 6], &[], false));
    let (memory, places) = (MEMORY..MEMORY + 4096, [MEMORY..MEMORY + 4, MEMORY + 64..MEMORY + 68]);
    let question = Question { shared: &[], memory: Some(&memory), reach: Reach::Code, time: None };
    let none: &[(u64, KernelAccess)] = &[];
    for (first, second) in
        [(KernelAccess::Read, KernelAccess::Write), (KernelAccess::Write, KernelAccess::Read)]
    {
        let (all, others) = ([(0, first), (1, second)], [(0, second), (1, first)]);
        let both = Bytes { ranges: places.to_vec(), writes: [true; 2] };
        for (ours, theirs, expected) in [
            ((&all[..], none), (&others[..], none), Verdict::Certain(both.clone())),
            ((&all, none), (none, &others), Verdict::Likely(both.clone())),
            ((none, &all), (&others, none), Verdict::Likely(both)),
        ] {
            let [ours, theirs] = [ours, theirs].map(|(sure, more)| evaluated(sure, more));
            let verdict = of_two_launches([(&one, &ours), (&two, &theirs)], &question);
            assert_eq!(verdict, expected, "{ours:?} {theirs:?}");
        }
    }
    // There is no time to ask the threads.
    let late = Time { is_left: || false, spend: |_| () };
    let question = Question { time: Some(late), ..question };
    let (ours, theirs) =
        (evaluated(&[(1, KernelAccess::Write)], none), evaluated(none, &[(1, KernelAccess::Read)]));
    let verdict = of_two_launches([(&one, &ours), (&two, &theirs)], &question);
    assert_eq!(verdict, Verdict::Possible(0, LATE.into()));
    let question = Question { time: None, ..question };
    // Of one place the other kernel only reads.
    let (ours, theirs) =
        (evaluated(&[(1, KernelAccess::Write)], none), evaluated(none, &[(1, KernelAccess::Read)]));
    for (pair, writes) in [([&ours, &theirs], [true, false]), ([&theirs, &ours], [false, true])] {
        let verdict = of_two_launches([(&one, pair[0]), (&two, pair[1])], &question);
        let bytes = Bytes { ranges: vec![places[1].clone()], writes };
        assert_eq!(verdict, Verdict::Likely(bytes));
    }
}
