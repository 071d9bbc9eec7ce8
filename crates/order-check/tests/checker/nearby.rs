//! Launches with an address of an allocation, and work elsewhere in it.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use cuda_order_check_engine::{
    Access, AccessKind, Call, Checker, ContextId, EventId, Finding, Launch, Launched, Op, Options,
    Other, Report, StreamId, StreamKind, ThreadId, What,
};

const BASE: u64 = 0x10000;
const BYTES: u64 = 0x1000;

/// What launches were asked: the number of the one that was, and of the other one, or its first byte.
static ASKED: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());
/// Only one test at a time uses `ASKED`.
static TURN: Mutex<()> = Mutex::new(());

/// A launch that is near all others.
#[derive(Debug)]
struct Kernel(u64);

impl Launch for Kernel {
    fn number(&self) -> u64 {
        self.0
    }

    fn is_near(&self, allocations: &[Range<u64>], other: &Other<'_>) -> bool {
        assert!(
            allocations.iter().all(|range| range.end - range.start == BYTES),
            "{allocations:?}"
        );
        let which = match other.launch.and_then(|launch| launch.get::<Self>()) {
            Some(launch) => launch.0,
            None => other.accesses[0].range.start,
        };
        ASKED.lock().expect("a list").push((self.0, which));
        true
    }
}

struct Run {
    checker: Checker,
    calls: u64,
}

impl Run {
    fn new() -> Self {
        let mut run = Self { checker: Checker::default(), calls: 0 };
        run.allocate(BASE);
        run.allocate(BASE + BYTES);
        run
    }

    fn apply(&mut self, name: &'static str, op: Op<'_>) {
        self.calls += 1;
        self.checker.apply(Call::new(name, self.calls, ThreadId(1)), op);
    }

    fn allocate(&mut self, address: u64) {
        self.apply("cuMemAlloc", Op::Allocate { address, bytes: BYTES });
    }

    fn work(&mut self, stream: u64, name: &'static str, accesses: &[Access]) {
        self.apply(name, Op::Work { stream: StreamId(stream), accesses });
    }

    fn launch_of(&mut self, stream: u64, number: u64, kind: AccessKind, addresses: &[u64]) {
        let access = |at: &u64| Access::new(kind, *at, 1);
        let mut accesses: Vec<Access> = addresses.iter().map(access).collect();
        accesses[0].set_launch(Launched::new(Arc::new(Kernel(number))));
        self.work(stream, "cuLaunchKernel", &accesses);
    }

    fn launch(&mut self, stream: u64, number: u64) {
        self.launch_of(stream, number, AccessKind::Write, &[BASE]);
    }

    fn copy(&mut self, stream: u64, at: u64) {
        self.work(stream, "cuMemcpyHtoDAsync", &[Access::write(at, 16)]);
    }

    /// Later work of `to` is after the work of `from`.
    fn hand(&mut self, from: u64, to: u64) {
        let event = EventId(1);
        let record = Op::Record { event, stream: StreamId(from), external: false };
        self.apply("cuEventRecord", record);
        let wait = Op::Wait { stream: StreamId(to), event, external: false };
        self.apply("cuStreamWaitEvent", wait);
    }

    fn found(&mut self) -> Vec<Report> {
        let all = self.checker.take_findings().into_iter();
        all.filter_map(|finding| match finding {
            Finding::Report(report) => Some(report),
            _ => None,
        })
        .collect()
    }
}

fn asked() -> Vec<(u64, u64)> {
    std::mem::take(&mut *ASKED.lock().expect("a list"))
}

fn turn() -> impl Drop {
    let turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    asked();
    turn
}

const LATER: u64 = BASE + 0x800;
/// The two allocations.
const FIRST: Range<u64> = BASE..BASE + BYTES;
const SECOND: Range<u64> = BASE + BYTES..BASE + 2 * BYTES;

#[test]
fn a_pair_in_one_allocation_is_a_candidate() {
    let _turn = turn();
    for launch_first in [true, false] {
        asked();
        let mut run = Run::new();
        if launch_first {
            run.launch(1, 7);
        }
        run.copy(2, LATER);
        if !launch_first {
            run.launch(1, 7);
        }
        assert_eq!(asked(), [(7, LATER)]);
        let found = run.found();
        assert_eq!(found.len(), 1);
        assert!(found[0].is_nearby());
        assert_eq!(found[0].shared, [FIRST]);
        assert_eq!(found[0].first.launch().is_some(), launch_first);
        // The same pair comes again, and is confirmed once.
        run.copy(2, LATER);
        if !launch_first {
            run.launch(1, 7);
        }
        let again = run.found();
        assert!(!again.is_empty());
        assert!(run.checker.confirm(&again[0]) && !run.checker.confirm(&again[0]));
        run.copy(2, LATER);
        run.launch(1, 7);
        assert!(!run.found().is_empty());
    }
    // Of a candidate by the bytes it is said that it is one.
    let mut run = Run::new();
    run.launch(1, 7);
    run.copy(2, BASE);
    let nearby: Vec<bool> = run.found().iter().map(Report::is_nearby).collect();
    assert_eq!(nearby, [false, true]);
}

/// A kernel gets from one map to the next, and not over a gap or to other memory beside it.
#[test]
fn maps_beside_each_other_are_one_memory() {
    let _turn = turn();
    const PART: u64 = BYTES / 4;
    let part = |at: u64| BASE + at * PART;
    // The parts that are mapped, in this order, one that is unmapped then, and whether the first and the
    // last one are one memory.
    let cases: [(&[u64], Option<u64>, bool); 7] = [
        (&[0, 1, 2, 3], None, true),
        (&[3, 1, 0, 2], None, true),
        (&[0, 1, 3], None, false),
        (&[0, 3], None, false),
        (&[0, 1, 2, 3], Some(1), false),
        (&[0, 1, 2, 3, 4], Some(4), true),
        (&[0, 1, 2, 4, 3], Some(4), true),
    ];
    for (mapped, unmapped, expected) in cases {
        let mut run = Run { checker: Checker::default(), calls: 0 };
        for &at in mapped {
            run.apply("cuMemMap", Op::Map { address: part(at), bytes: PART });
        }
        if let Some(at) = unmapped {
            let accesses = [Access::free(part(at), PART)];
            run.apply("cuMemUnmap", Op::Host { accesses: &accesses });
        }
        for launch_first in [true, false] {
            run.hand(1, 2);
            run.hand(2, 1);
            if launch_first {
                run.launch(1, 7);
            }
            run.copy(2, part(3));
            if !launch_first {
                run.launch(1, 7);
            }
            let asked = if expected { vec![(7, part(3))] } else { Vec::new() };
            assert_eq!(self::asked(), asked, "{mapped:?} {unmapped:?} {launch_first}");
        }
    }
    // An allocation beside a map is another memory.
    let mut run = Run { checker: Checker::default(), calls: 0 };
    run.apply("cuMemMap", Op::Map { address: BASE, bytes: PART });
    run.apply("cuMemAlloc", Op::Allocate { address: part(1), bytes: 3 * PART });
    run.launch(1, 7);
    run.copy(2, part(3));
    assert_eq!(asked(), []);
}

#[test]
fn what_needs_no_order_is_not_asked_for() {
    let _turn = turn();
    let mut run = Run::new();
    // Another allocation, on both sides.
    run.launch(1, 1);
    run.copy(2, BASE + BYTES);
    run.hand(2, 1);
    run.launch_of(1, 1, AccessKind::Write, &[BASE + BYTES - 1]);
    run.copy(2, BASE + BYTES);
    run.copy(2, BASE + 3 * BYTES);
    // Work of one stream is ordered.
    run.copy(1, LATER);
    run.launch(1, 2);
    // Order by an event, before and after.
    run.hand(1, 2);
    run.copy(2, LATER);
    run.hand(2, 1);
    run.launch(1, 3);
    run.hand(1, 2);
    // Two accesses that read do not conflict.
    run.launch_of(1, 4, AccessKind::Read, &[BASE]);
    run.work(2, "cuMemcpyDtoHAsync", &[Access::read(LATER, 16)]);
    run.hand(2, 1);
    // Accesses of the whole of a memory, the host's, and those that make an order.
    run.work(
        1,
        "cuLaunchKernel",
        &[Access::write(BASE + BYTES, BYTES).of_launch(Launched::new(Arc::new(Kernel(5))))],
    );
    run.work(2, "cuStreamWriteValue", &[Access::new(AccessKind::AtomicWrite, LATER, 4)]);
    assert_eq!(asked(), []);
    run.copy(2, BASE + BYTES + 16);
    assert_eq!(asked(), []);
    // They are not all that is asked.
    run.copy(2, LATER);
    assert_eq!(asked(), [(4, LATER)]);
    let accesses = [Access::write(LATER, 16)];
    run.apply("host", Op::Host { accesses: &accesses });
    assert_eq!(asked(), []);
}

/// Of two in streams of their own the later one is before what comes, and the earlier one is not.
#[test]
fn what_is_ordered_may_be_among_what_is_not() {
    let _turn = turn();
    for what in 0..3 {
        let mut run = Run::new();
        for (stream, number) in [(1, 1), (2, 2)] {
            match what {
                0 | 1 => run.launch_of(stream, number, AccessKind::Read, &[BASE + number]),
                _ => run.work(stream, "cuMemcpyDtoHAsync", &[Access::read(LATER + number, 1)]),
            }
        }
        run.hand(2, 3);
        match what {
            0 => run.copy(3, LATER),
            _ => run.launch(3, 9),
        }
        let expected = [(1, LATER), (9, 1), (9, LATER + 1)][what];
        assert_eq!(asked(), [expected], "{what}");
    }
}

#[test]
fn two_launches_in_one_allocation_are_a_candidate() {
    let _turn = turn();
    let mut run = Run::new();
    run.launch_of(1, 1, AccessKind::Write, &[BASE + BYTES, BASE + 0x100]);
    run.launch_of(2, 2, AccessKind::Write, &[BASE + 0x200]);
    assert_eq!(asked(), [(2, 1)]);
    run.launch_of(3, 3, AccessKind::Write, &[BASE + BYTES + 8]);
    assert_eq!(asked(), [(3, 1)]);
    run.launch_of(1, 4, AccessKind::Write, &[BASE + 3 * BYTES]);
    assert_eq!(asked(), [], "no allocation");
    let [one, two] = &run.found()[..] else { panic!("two") };
    assert_eq!([&one.shared[..], &two.shared[..]], [[FIRST], [SECOND]]);
    run.hand(1, 2);
    run.hand(3, 2);
    run.launch_of(2, 5, AccessKind::Write, &[BASE + 0x300]);
    assert_eq!(asked(), []);
    // Both allocations are those of both.
    run.launch_of(1, 6, AccessKind::Write, &[BASE + 0x10, BASE + BYTES + 0x10]);
    run.launch_of(4, 7, AccessKind::Write, &[BASE + BYTES, BASE]);
    let all: Vec<(u64, u64)> = asked();
    assert!(all.contains(&(7, 6)) && all.contains(&(6, 5)), "{all:?}");
    let found = run.found();
    let both = [SECOND, FIRST];
    assert!(found.iter().any(|report| report.shared == both), "{found:?}");
}

/// Memory that is freed, and other memory in its place.
#[test]
fn memory_that_ended_has_no_neighbours() {
    let _turn = turn();
    for launch_first in [true, false] {
        for freed in [0, 1, 2] {
            let mut run = Run::new();
            if launch_first {
                run.launch(1, 1);
            } else {
                run.copy(1, LATER);
            }
            if freed > 0 {
                run.apply("cuMemFree", Op::Host { accesses: &[Access::free(BASE, BYTES)] });
            }
            if freed == 2 {
                run.allocate(BASE);
            }
            if launch_first {
                run.copy(2, LATER);
            } else {
                run.launch(2, 1);
            }
            assert_eq!(asked().len(), usize::from(freed == 0), "{freed}");
        }
    }
    // Two launches are compared only within memory that was not freed between them.
    for freed in [0, 1, 2] {
        let mut run = Run::new();
        run.launch_of(1, 1, AccessKind::Write, &[BASE + 0x10]);
        if freed > 0 {
            run.apply("cuMemFree", Op::Host { accesses: &[Access::free(BASE, BYTES)] });
        }
        if freed == 2 {
            run.allocate(BASE);
        }
        run.launch(2, 2);
        assert_eq!(asked().len(), usize::from(freed == 0), "{freed}");
    }
    // The copy's allocation was looked up before it ended.
    let mut run = Run::new();
    run.copy(1, LATER);
    run.launch(2, 1);
    assert_eq!(asked().len(), 1);
    run.apply("cuMemFree", Op::Host { accesses: &[Access::free(BASE, BYTES)] });
    run.allocate(BASE);
    run.launch(2, 2);
    assert_eq!(asked(), []);
}

type Act = fn(&mut Run, u64);

/// So many are kept, and looked at.
#[test]
fn what_is_kept_is_bounded() {
    let _turn = turn();
    // Launches, for a copy: sixteen candidates, and the last 128.
    let mut run = Run::new();
    (1..=300).for_each(|number| run.launch(1, number));
    run.copy(2, LATER);
    assert_eq!(asked(), (285..=300).rev().map(|number| (number, LATER)).collect::<Vec<_>>());
    assert_eq!(run.found().len(), 16);
    let launch: Act = |run, number| run.launch_of(1, number, AccessKind::Write, &[BASE + 0x10]);
    let other: Act = |run, number| run.launch_of(1, number, AccessKind::Write, &[BASE + BYTES]);
    let own: Act = |run, number| run.launch_of(2, number, AccessKind::Write, &[BASE + BYTES]);
    let copy: Act = |run, _| run.copy(1, LATER);
    let other_copy: Act = |run, _| run.copy(1, BASE + BYTES);
    let last_copy: Act = |run, _| run.copy(2, LATER);
    let last_launch: Act = |run, number| run.launch(2, number);
    for (name, first, between, last, bound) in [
        ("launches, for a copy", launch, other, last_copy, 128),
        ("copies, for a launch", copy, other_copy, last_launch, 64),
        ("launches, for a launch", launch, other, last_launch, 16),
        ("launches of its own stream, for a launch", launch, own, last_launch, 64),
    ] {
        for (others, expected) in [(bound - 1, 1), (bound, 0)] {
            let mut run = Run::new();
            first(&mut run, 1);
            (0..others).for_each(|number| between(&mut run, 2 + number));
            last(&mut run, 1000);
            assert_eq!(asked().len(), expected, "{name}, {others}");
        }
    }
    // Of a launch with many addresses only the first ones are kept.
    for (before, expected) in [(31, 1), (32, 0)] {
        let mut run = Run::new();
        let mut addresses = vec![BASE + BYTES; before];
        addresses.push(BASE);
        run.launch_of(1, 1, AccessKind::Write, &addresses);
        // The next one has its own.
        run.launch_of(1, 2, AccessKind::Write, &[BASE + BYTES]);
        run.copy(2, LATER);
        assert_eq!(asked().len(), expected, "{before}");
    }
    // Of a copy with many accesses only the first ones are kept.
    for (before, expected) in [(15, 1), (16, 0)] {
        let mut run = Run::new();
        run.launch(1, 1);
        let mut accesses = vec![Access::write(BASE + BYTES, 4); before];
        accesses.push(Access::write(LATER, 4));
        run.work(2, "cuMemcpyBatchAsync", &accesses);
        assert_eq!(asked().len(), expected, "{before}");
    }
}

/// The same work of a stream again stands for what was before it, and for nothing else.
#[test]
fn work_that_is_repeated_counts_once() {
    let _turn = turn();
    let mut run = Run::new();
    (0..3).for_each(|_| run.copy(1, LATER));
    run.launch(2, 1);
    assert_eq!(asked(), [(1, LATER)]);
    run.copy(1, LATER + 16);
    asked();
    run.launch(2, 2);
    assert_eq!(asked(), [(2, LATER + 16), (2, LATER)]);
    // It is not before what the last one is not before.
    run.hand(1, 2);
    run.copy(1, LATER);
    asked();
    run.launch(2, 3);
    assert_eq!(asked()[0], (3, LATER));
    // Another stream, and other accesses of the same bytes.
    for others in 0..3 {
        let mut run = Run::new();
        run.copy(1, LATER);
        match others {
            0 => run.copy(2, LATER),
            1 => run.work(1, "cuMemcpyDtoHAsync", &[Access::read(LATER, 16)]),
            _ => run.work(1, "cuMemcpyHtoDAsync", &[Access::write(LATER, 15)]),
        }
        asked();
        run.launch(3, 1);
        assert_eq!(asked(), [(1, LATER), (1, LATER)], "{others}");
    }
}

/// A launch is asked about the work in its allocation, whichever allocations other work was in before.
#[test]
fn work_in_several_allocations() {
    let _turn = turn();
    let mut run = Run::new();
    run.copy(1, BASE + BYTES);
    run.launch_of(2, 1, AccessKind::Write, &[BASE]);
    assert_eq!(asked(), []);
    run.copy(1, LATER);
    run.copy(1, BASE + BYTES);
    asked();
    run.launch_of(2, 2, AccessKind::Write, &[BASE]);
    assert_eq!(asked(), [(2, LATER)]);
    asked();
    run.launch_of(2, 3, AccessKind::Write, &[BASE + BYTES + 1]);
    assert_eq!(asked(), [(3, BASE + BYTES)]);
    // What was looked up long ago.
    run.copy(4, LATER + 32);
    run.launch_of(5, 1, AccessKind::Write, &[BASE + 8 * BYTES]);
    run.copy(4, BASE + BYTES + 32);
    asked();
    run.launch_of(2, 4, AccessKind::Write, &[BASE]);
    assert!(asked().contains(&(4, LATER + 32)));
    run.hand(4, 3);
    // What is before it, and what is not.
    run.hand(1, 3);
    run.hand(2, 3);
    asked();
    run.launch_of(3, 4, AccessKind::Read, &[BASE]);
    assert_eq!(asked(), []);
    run.copy(1, LATER + 16);
    asked();
    run.launch_of(3, 5, AccessKind::Read, &[BASE]);
    assert_eq!(asked(), [(5, LATER + 16)]);
    // A copy to both allocations is compared with the launches in both.
    let both = [Access::write(LATER, 8), Access::write(BASE + BYTES, 8)];
    run.work(1, "cuMemcpyBatchAsync", &both);
    run.found();
    asked();
    run.launch_of(4, 6, AccessKind::Read, &[BASE + BYTES + 1, BASE]);
    assert_eq!(asked()[0], (6, LATER));
    let found = run.found();
    let both = [FIRST, SECOND];
    assert!(found.iter().any(|report| report.shared == both), "{found:?}");
    // Each launch has its own addresses.
    let mut run = Run::new();
    run.launch_of(1, 1, AccessKind::Write, &[BASE + 1, BASE + 2]);
    run.launch_of(1, 2, AccessKind::Write, &[BASE + BYTES]);
    run.launch_of(1, 3, AccessKind::Write, &[BASE + 3]);
    asked();
    run.launch_of(2, 4, AccessKind::Write, &[BASE + BYTES + 4]);
    assert_eq!(asked(), [(4, 2)]);
    run.copy(3, BASE + BYTES);
    assert_eq!(asked(), [(4, BASE + BYTES), (2, BASE + BYTES)]);
}

/// What the host is after is forgotten, and the addresses stay those of their launches.
#[test]
fn what_is_over_is_forgotten() {
    let _turn = turn();
    let mut run = Run::new();
    for round in 0..3 {
        (0..3000).for_each(|number| {
            run.launch_of(1, number, AccessKind::Write, &[BASE + BYTES, BASE]);
        });
        run.apply("cuStreamSynchronize", Op::Synchronize { what: What::Stream(StreamId(1)) });
        asked();
        run.copy(2, LATER);
        assert_eq!(asked(), [], "{round}");
        run.apply("cuStreamSynchronize", Op::Synchronize { what: What::Stream(StreamId(2)) });
        run.launch_of(1, 1, AccessKind::Write, &[BASE + BYTES]);
        run.launch_of(1, 2, AccessKind::Write, &[BASE]);
        run.copy(2, LATER);
        assert_eq!(asked(), [(2, LATER)], "{round}");
        run.hand(2, 1);
    }
}

/// A stream that gets the place of one that was destroyed has waited for nothing.
#[test]
fn a_new_stream_is_after_nothing() {
    const CHAIN: u64 = 9;
    let _turn = turn();
    let mut run = Run::new();
    run.checker = Checker::new(Options::new().retire_every(64));
    [BASE, BASE + BYTES].into_iter().for_each(|at| run.allocate(at));
    run.launch(1, 7);
    run.hand(1, CHAIN);
    let (context, kind) = (ContextId(0), StreamKind::NonBlocking);
    for turn in 0..2000 {
        let stream = StreamId(100 + turn);
        run.apply("create", Op::StreamCreate { stream, context, kind, name: None });
        // Most are after the launch, and after those before them.
        if turn % 100 == 99 {
            run.copy(stream.0, LATER);
            assert_eq!(asked(), [(7, LATER)], "{turn}");
        } else {
            run.hand(CHAIN, stream.0);
            run.copy(stream.0, LATER);
            assert_eq!(asked(), [], "{turn}");
        }
        run.hand(stream.0, CHAIN);
        run.apply("destroy", Op::StreamDestroy { stream });
        run.found();
    }
    assert!(run.checker.size().agents < 100, "{:?}", run.checker.size());
}
