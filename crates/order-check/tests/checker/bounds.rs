//! Tens of thousands of operations, in memory that does not grow.

use cuda_order_check_engine::{
    Access, Call, Cell, Checker, Compare, ContextId, EventId, GraphId, HostOrder, Node, NodeWork,
    Op, Options, StreamId, StreamKind, Stride, ThreadId, TokenId, Warnings, What,
};

const OPERATIONS: u64 = 60_000;
/// Where each thread is new.
const FEWER: u64 = 20_000;
const MAIN: ThreadId = ThreadId(1);

/// Applies operations, and keeps how large the checker ever was.
struct Watched {
    checker: Checker,
    number: u64,
    ranges: usize,
    agents: usize,
    tasks: usize,
    values: usize,
}

impl Watched {
    fn new(host_order: HostOrder) -> Self {
        let checker = Checker::new(Options::new().host_order(host_order));
        Self { checker, number: 0, ranges: 0, agents: 0, tasks: 0, values: 0 }
    }

    fn apply(&mut self, thread: ThreadId, op: Op<'_>) {
        self.number += 1;
        self.checker.apply(Call::new("call", self.number, thread), op);
        let size = self.checker.size();
        self.ranges = self.ranges.max(size.ranges);
        self.agents = self.agents.max(size.agents);
        self.tasks = self.tasks.max(size.tasks);
        self.values = self.values.max(size.values);
    }

    fn work(&mut self, stream: u64, access: Access) {
        self.apply(MAIN, Op::Work { stream: StreamId(stream), accesses: &[access] });
    }

    fn record(&mut self, event: u64, stream: u64) {
        self.apply(
            MAIN,
            Op::Record { event: EventId(event), stream: StreamId(stream), external: false },
        );
    }

    fn wait(&mut self, stream: u64, event: u64) {
        self.apply(
            MAIN,
            Op::Wait { stream: StreamId(stream), event: EventId(event), external: false },
        );
    }

    fn right(&mut self, ranges: usize, agents: usize, tasks: usize) {
        let findings = self.checker.take_findings();
        assert!(findings.is_empty(), "{}", findings[0]);
        let most = (self.ranges, self.agents, self.tasks);
        assert!(
            most.0 <= ranges && most.1 <= agents && most.2 <= tasks,
            "{most:?} of {ranges}, {agents}, {tasks}"
        );
    }
}

/// The host waits now and then; every buffer is at a new address.
#[test]
fn buffers_that_are_never_used_again_are_forgotten() {
    let mut all = Watched::new(HostOrder::Submission);
    let mut turn = 0;
    while all.number < OPERATIONS {
        turn += 1;
        let at = turn << 12;
        all.work(1, Access::write(at, 4096));
        all.record(1, 1);
        all.wait(2, 1);
        all.work(2, Access::read(at + 1024, 512));
        if turn % 500 == 0 {
            all.apply(MAIN, Op::Synchronize { what: What::Stream(StreamId(2)) });
        }
    }
    all.right(20_000, 3, 0);
}

/// The host never waits, and the same buffers go round.
#[test]
fn a_host_that_never_waits_takes_memory_for_its_buffers_only() {
    let mut all = Watched::new(HostOrder::Submission);
    let mut turn = 0;
    while all.number < OPERATIONS {
        let buffer = turn % 8;
        all.wait(1, 100 + buffer);
        all.work(1, Access::write(buffer << 16, 4096));
        all.record(buffer, 1);
        for stream in [2, 3] {
            all.wait(stream, buffer);
            all.work(stream, Access::read((buffer << 16) + stream * 256, 2048));
        }
        all.record(200, 3);
        all.wait(2, 200);
        all.record(100 + buffer, 2);
        turn += 1;
    }
    all.right(8 * 6, 4, 0);
}

/// Streams and events come and go.
#[test]
fn what_is_destroyed_is_forgotten() {
    let mut all = Watched::new(HostOrder::Submission);
    while all.number < OPERATIONS {
        let (stream, event) = (StreamId(all.number), EventId(all.number));
        let (context, kind) = (ContextId(0), StreamKind::NonBlocking);
        all.apply(MAIN, Op::StreamCreate { stream, context, kind, name: None });
        all.apply(MAIN, Op::EventCreate { event, interprocess: false, name: None });
        all.work(stream.0, Access::write(stream.0 * 64, 64));
        all.record(event.0, stream.0);
        all.apply(MAIN, Op::StreamDestroy { stream });
        all.apply(MAIN, Op::Synchronize { what: What::Event(event) });
        all.apply(MAIN, Op::EventDestroy { event });
        all.apply(MAIN, Op::Host { accesses: &[Access::free(stream.0 * 64, 64)] });
    }
    // 4096 freed ranges are remembered, and what came since.
    all.right(10_000, 2000, 0);
}

/// The last freed ranges are remembered, as many as documented, and all that one call has freed.
#[test]
fn the_last_freed_ranges_are_remembered() {
    const REMEMBERED: usize = 4096;
    let mut all = Watched::new(HostOrder::Submission);
    // With gaps: ranges side by side might become one.
    let free = |at: u64| Access::free(at * 128, 64);
    let mut before = 0;
    let last = loop {
        let at = all.number;
        all.apply(MAIN, Op::Host { accesses: &[free(at)] });
        let now = all.checker.size().ranges;
        if now < before {
            assert_eq!(now, REMEMBERED);
            break at;
        }
        before = now;
        assert!(at < OPERATIONS, "nothing was forgotten");
    };
    // It is the last ones that stay. (Each pair of places is reported once.)
    let oldest = last + 1 - REMEMBERED as u64;
    for (at, found) in [(oldest - 1, 0), (oldest, 1)] {
        all.apply(MAIN, Op::Host { accesses: &[Access::read(at * 128, 64)] });
        assert_eq!(all.checker.take_findings().len(), found, "{at} of {last}");
    }
    // A context or a pool may end with more than that at once.
    let mut all = Watched::new(HostOrder::Submission);
    let many: Vec<Access> = (0..REMEMBERED as u64 + 500).map(free).collect();
    all.apply(MAIN, Op::Host { accesses: &many });
    while all.number < FEWER {
        all.apply(MAIN, Op::Host { accesses: &[Access::read(1 << 40, 64)] });
    }
    assert!(all.checker.size().ranges >= many.len());
    all.apply(MAIN, Op::Host { accesses: &[Access::read(0, 64)] });
    assert_eq!(all.checker.take_findings().len(), 1);
}

/// Streams come and go, and the host never waits for any of them.
#[test]
fn streams_that_are_destroyed_give_their_places_away() {
    for host_order in [HostOrder::Submission, HostOrder::Reported] {
        let mut all = Watched::new(host_order);
        let (context, kind) = (ContextId(0), StreamKind::Blocking);
        while all.number < FEWER {
            let (stream, event) = (StreamId(2 + all.number), EventId(1));
            all.apply(MAIN, Op::StreamCreate { stream, context, kind, name: None });
            all.wait(stream.0, 0);
            all.work(stream.0, Access::write(0x1000, 64));
            all.record(event.0, stream.0);
            all.wait(1, event.0);
            all.apply(MAIN, Op::StreamDestroy { stream });
            all.work(1, Access::read(0x1000, 64));
            all.record(0, 1);
        }
        // As many as come between two times at which it is cleaned up.
        all.right(1, 4096 / 8 + 8, 0);
    }
}

/// A stream whose work may still be met keeps its place: one that has its handle is another one.
#[test]
fn a_stream_that_is_destroyed_keeps_its_place_while_its_work_is_kept() {
    for (at, found) in [(0x1000, 1), (0x2000, 0)] {
        let mut all = Watched::new(HostOrder::Submission);
        all.checker = Checker::new(Options::new().retire_every(1));
        let (stream, context, kind) = (StreamId(2), ContextId(0), StreamKind::NonBlocking);
        for at in [0x1000, at] {
            all.apply(MAIN, Op::StreamCreate { stream, context, kind, name: None });
            all.work(2, Access::write(at, 64));
            all.apply(MAIN, Op::StreamDestroy { stream });
            (0..64).for_each(|_| all.work(1, Access::write(0x3000, 64)));
        }
        assert_eq!(all.checker.take_findings().len(), found, "{at:x}");
    }
}

/// The same, where each stream writes a part of a buffer that one long ago has written, and another
/// stream waits for all of them. An operation costs the same after any number of rounds.
#[test]
fn streams_that_are_destroyed_leave_what_they_wrote() {
    const PARTS: u64 = 256;
    let mut all = Watched::new(HostOrder::Submission);
    let (context, kind) = (ContextId(0), StreamKind::NonBlocking);
    let mut touched = [0; 2];
    for round in 0..20_000 {
        let (stream, event) = (StreamId(2 + round), EventId(1));
        all.apply(MAIN, Op::StreamCreate { stream, context, kind, name: None });
        all.wait(stream.0, 0);
        all.work(stream.0, Access::write(0x1000 + round % PARTS * 64, 64));
        all.record(event.0, stream.0);
        all.wait(1, event.0);
        all.record(0, 1);
        all.apply(MAIN, Op::StreamDestroy { stream });
        if let Some(touched) = touched.get_mut((round / 10_000) as usize) {
            *touched = all.checker.size().touched;
        }
    }
    assert!(touched[1] <= 2 * touched[0], "{touched:?}");
    all.right(PARTS as usize, PARTS as usize + 4096 / 7 + 8, 0);
}

/// Two streams work in the columns of one matrix, and one of them with the whole matrix, too. It
/// takes no more places than the matrix has columns that differ.
#[test]
fn rows_are_one_range() {
    const ROWS: u64 = 1 << 16;
    let mut all = Watched::new(HostOrder::Submission);
    let part = |access: Access, width| access.rows(ROWS, Stride { width, pitch: 64 });
    all.work(1, Access::allocate(0x1000, ROWS * 64));
    for _ in 0..1000 {
        all.record(1, 1);
        all.wait(2, 1);
        all.work(1, part(Access::write(0x1000, 0), 16));
        all.work(2, part(Access::write(0x1010, 0), 48));
        // A part of the rows, and some of them as one range.
        all.work(1, part(Access::read(0x1000, 0), 8));
        all.work(2, Access::read(0x1010, 48).rows(ROWS / 2, Stride { width: 48, pitch: 64 }));
        all.record(2, 2);
        all.wait(1, 2);
        all.work(1, Access::read(0x1000 + 64 * 100, 64 * 1000));
    }
    all.right(32, 3, 0);
}

/// Threads come and go, and hand over by tokens of their own; a counter in memory orders two
/// streams.
#[test]
fn threads_tokens_and_values_are_forgotten() {
    let mut all = Watched::new(HostOrder::Reported);
    let cell = Cell { address: 0x10, bytes: 8 };
    let mut value = 0;
    while all.number < FEWER {
        value += 1;
        let (thread, token) = (ThreadId(value + 1), TokenId(value));
        all.apply(MAIN, Op::ThreadStart { thread });
        all.apply(thread, Op::Work { stream: StreamId(1), accesses: &[Access::write(0x1000, 64)] });
        all.apply(thread, Op::WriteValue { stream: StreamId(1), cell, value });
        all.apply(thread, Op::HandOver { token });
        all.apply(thread, Op::ThreadEnd);
        all.apply(MAIN, Op::TakeOver { token });
        // The wait comes first every second time, and what follows it is held back.
        let compare = Compare::GreaterOrEqual;
        all.apply(
            MAIN,
            Op::WaitValue { stream: StreamId(2), cell, value: value + value % 2, compare },
        );
        all.work(2, Access::read(0x1000, 64));
        if value % 2 == 1 {
            continue;
        }
        all.apply(
            MAIN,
            Op::WriteValue { stream: StreamId(2), cell: Cell { address: 0x20, bytes: 8 }, value },
        );
        let (stream, cell) = (StreamId(1), Cell { address: 0x20, bytes: 8 });
        all.apply(MAIN, Op::WaitValue { stream, cell, value, compare });
        if value % 100 == 0 {
            all.apply(MAIN, Op::Synchronize { what: What::Stream(StreamId(1)) });
        }
    }
    let findings = all.checker.take_findings();
    // Every second write is before the read of the one before it is over: that is one pair of
    // places.
    assert!(findings.len() <= 2, "{}", findings[2]);
    let most = (all.ranges, all.agents, all.tasks);
    assert!(most.0 <= 4 && most.1 <= 1200 && most.2 <= 8, "{most:?}");
}

/// A thread gets the number of one that has ended, before anything of that was forgotten: in a clock
/// it has its place, too.
#[test]
fn a_thread_with_the_number_of_an_ended_one_gives_its_place_back() {
    for order in [HostOrder::Submission, HostOrder::Reported] {
        let mut all = Watched::new(order);
        all.checker = Checker::new(Options::new().host_order(order).retire_every(64));
        let thread = ThreadId(5);
        while all.number < 2000 {
            all.apply(MAIN, Op::Host { accesses: &[] });
            all.apply(thread, Op::Host { accesses: &[] });
            all.apply(thread, Op::ThreadEnd);
        }
        assert!(all.agents <= 80, "{} agents, {order:?}", all.agents);
    }
}

/// Uses of events and streams are forgotten as accesses to memory are.
#[test]
fn objects_of_threads_are_forgotten() {
    let mut all = Watched::new(HostOrder::Reported);
    all.checker = Checker::new(Options::new().host_order(HostOrder::Reported).retire_every(64));
    let mut most = 0;
    while all.number < 4000 {
        let (event, stream) = (EventId(all.number), StreamId(all.number));
        let (context, kind) = (ContextId(1), StreamKind::NonBlocking);
        all.apply(MAIN, Op::EventCreate { event, interprocess: false, name: None });
        all.apply(MAIN, Op::StreamCreate { stream, context, kind, name: None });
        all.apply(MAIN, Op::StreamDestroy { stream });
        all.apply(MAIN, Op::EventDestroy { event });
        most = most.max(all.checker.size().objects);
    }
    assert!((1..200).contains(&most), "{most}");
}

/// Each launch of a graph has the branches of the one before it, also of a graph that was defined
/// anew.
#[test]
fn branches_of_launches_keep_their_places() {
    let node = |index: u64, after: &[usize]| Node {
        work: NodeWork::Work(vec![Access::write(index << 12, 64)]),
        after: after.to_vec(),
    };
    let nodes = [node(1, &[]), node(2, &[0]), node(3, &[0]), node(4, &[0]), node(5, &[1, 2, 3])];
    let (graph, stream) = (GraphId(1), StreamId(1));
    let mut all = Watched::new(HostOrder::Submission);
    for round in 0..2000 {
        if round % 100 == 0 {
            all.apply(MAIN, Op::GraphDefine { graph, nodes: &nodes });
        }
        all.apply(MAIN, Op::Launch { stream, graph, functions: &[] });
    }
    all.right(5, 4, 0);
}

/// Nobody ever writes the value: what it holds back does not pile up forever.
#[test]
fn work_behind_a_value_that_never_comes_is_bounded() {
    let mut all = Watched::new(HostOrder::Submission);
    let (cell, compare) = (Cell { address: 0x10, bytes: 4 }, Compare::Equal);
    all.apply(MAIN, Op::WaitValue { stream: StreamId(1), cell, value: 1, compare });
    for _ in 0..70_000 {
        all.work(1, Access::write(0x1000, 64));
    }
    all.right(2, 2, (1 << 16) + 1);
}

/// Copies of a value each, which somebody could have waited for.
#[test]
fn small_copies_are_forgotten() {
    let mut all = Watched::new(HostOrder::Submission);
    for turn in 0..OPERATIONS / 2 {
        all.work(1, Access::write(turn << 3, 8));
        if turn % 500 == 0 {
            all.apply(MAIN, Op::Synchronize { what: What::Stream(StreamId(1)) });
        }
    }
    all.right(20_000, 2, 0);
    assert!(all.values > 1 && all.values <= 20_000, "{}", all.values);
}

/// A stream that is gone has recorded an event, and another stream has its place in the clocks now.
/// Who knows the new stream's work does not know the old one's.
#[test]
fn a_place_that_comes_back_says_nothing_of_its_former_owner() {
    const KEPT: u64 = 3;
    let program = |destroyed: bool, of_the_other: bool| {
        let mut warnings = Warnings::default();
        warnings.useless_wait = true;
        let options = Options::new().warnings(warnings).retire_every(1);
        let mut watched = Watched::new(HostOrder::Submission);
        watched.checker = Checker::new(options);
        let create = |watched: &mut Watched, stream| {
            let (stream, context) = (StreamId(stream), ContextId(1));
            let kind = StreamKind::NonBlocking;
            watched.apply(MAIN, Op::StreamCreate { stream, context, kind, name: None });
        };
        let idle = |watched: &mut Watched, count| {
            let work = Op::Work { stream: StreamId(KEPT), accesses: &[] };
            (0..count).for_each(|_| watched.apply(MAIN, work.clone()));
        };
        create(&mut watched, KEPT);
        create(&mut watched, 1);
        watched.apply(MAIN, Op::Work { stream: StreamId(1), accesses: &[] });
        watched.record(1, 1);
        let before = watched.checker.size().agents;
        if destroyed {
            watched.apply(MAIN, Op::StreamDestroy { stream: StreamId(1) });
        }
        idle(&mut watched, 64);
        create(&mut watched, 2);
        let added = watched.checker.size().agents - before;
        assert_eq!(added, usize::from(!destroyed), "the place comes back");
        for _ in 0..8 {
            watched.apply(MAIN, Op::Work { stream: StreamId(2), accesses: &[] });
        }
        watched.record(2, 2);
        watched.wait(KEPT, 2);
        watched.wait(KEPT, if of_the_other { 1 } else { 2 });
        watched.checker.take_findings().len()
    };
    for destroyed in [true, false] {
        assert_eq!(program(destroyed, true), 0, "it waits for more, destroyed: {destroyed}");
        assert_eq!(program(destroyed, false), 1, "it has waited for this, destroyed: {destroyed}");
    }
}
