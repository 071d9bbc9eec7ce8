//! Small programs with one planted error each, and the same programs mended. Independent threads
//! make their calls in forty orders; the error is reported in each, and the mended program is
//! silent in each.

use std::collections::BTreeSet;
use std::panic::Location;

use crate::common::{Do, Random, Step, lines, tell};
use cuda_order_check_engine::{
    Access, By, Cell, Checker, Compare, ContextId, EventId, Finding, FunctionId, HostOrder, Node,
    NodeWork, Options, Problem, StreamId, StreamKind, ThreadId, Warning, Warnings, What,
};

const SEEDS: u64 = 40;

/// What should be reported.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Expect {
    /// A race between the calls that are marked 1 and 2.
    Race,
    UseAfterFree,
    Destroyed,
    Recorded,
    NeverRecorded,
    LostRecord,
    IgnoredQuery,
    UselessWait,
    CaptureLeak,
}

use Expect::{
    CaptureLeak, Destroyed, IgnoredQuery, LostRecord, NeverRecorded, Race, Recorded, UseAfterFree,
    UselessWait,
};

/// A step of a thread: unmarked, or one of the two that are reported; or only in the mended
/// program, or only in the faulty one.
#[derive(Clone)]
struct At {
    step: Step,
    mark: u8,
    only: Option<bool>,
    /// It comes after all steps with a lower stage, whichever thread makes them: a barrier that the
    /// driver does not see.
    stage: u8,
    /// The same in the faulty program.
    faulty_stage: u8,
}

#[derive(Clone)]
struct Planted {
    kind: &'static str,
    expect: Expect,
    order: HostOrder,
    /// The steps of each thread.
    threads: Vec<Vec<At>>,
    line: u32,
}

fn of(does: Do) -> At {
    At {
        step: Step { by: By::Thread(ThreadId(0)), does },
        mark: 0,
        only: None,
        stage: 0,
        faulty_stage: 0,
    }
}

impl At {
    /// One of the two places of the report.
    fn mark(mut self, mark: u8) -> Self {
        self.mark = mark;
        self
    }

    fn one(self) -> Self {
        self.mark(1)
    }

    fn two(self) -> Self {
        self.mark(2)
    }

    /// What the faulty program lacks.
    fn mended(mut self) -> Self {
        self.only = Some(true);
        self
    }

    /// What the mended program lacks.
    fn faulty(mut self) -> Self {
        self.only = Some(false);
        self
    }

    fn stage(mut self, stage: u8) -> Self {
        (self.stage, self.faulty_stage) = (stage, stage);
        self
    }

    /// A stage that only the mended program needs: nothing keeps the faulty one from being earlier.
    fn late(mut self, stage: u8) -> Self {
        (self.stage, self.faulty_stage) = (stage, 1);
        self
    }

    fn in_function(mut self, function: u64) -> Self {
        self.step.by = By::Function(FunctionId(function));
        self
    }
}

// ---- Words of the programs. Streams A to D are 1 to 4, the legacy default stream of context 0 is
// 9.

const A: u64 = 1;
const B: u64 = 2;
const C: u64 = 3;
const LEGACY: u64 = 9;
/// A buffer of 64 bytes; others follow it.
const BUFFER: u64 = 0x1000;
const OTHER: u64 = 0x2000;
const FLAG: Cell = Cell { address: 0x3000, bytes: 4 };
const WIDE: Cell = Cell { address: 0x3000, bytes: 8 };

fn writes(stream: u64) -> At {
    of(Do::Work(stream, vec![Access::write(BUFFER, 64)]))
}

fn reads(stream: u64) -> At {
    of(Do::Work(stream, vec![Access::read(BUFFER, 64)]))
}

fn copies(stream: u64, from: u64, to: u64, len: u64) -> At {
    of(Do::Work(stream, vec![Access::read(from, len), Access::write(to, len)]))
}

fn touches(stream: u64, access: Access) -> At {
    of(Do::Work(stream, vec![access]))
}

fn host_reads() -> At {
    of(Do::Host(vec![Access::read(BUFFER, 64)]))
}

fn host_writes() -> At {
    of(Do::Host(vec![Access::write(BUFFER, 64)]))
}

fn frees() -> At {
    of(Do::Host(vec![Access::free(BUFFER, 64)]))
}

fn allocates() -> At {
    of(Do::Host(vec![Access::allocate(BUFFER, 64)]))
}

fn record(event: u64, stream: u64) -> At {
    of(Do::Record(event, stream))
}

fn wait(stream: u64, event: u64) -> At {
    of(Do::Wait(stream, event))
}

fn stream_sync(stream: u64) -> At {
    of(Do::Sync(What::Stream(StreamId(stream))))
}

fn event_sync(event: u64) -> At {
    of(Do::Sync(What::Event(EventId(event))))
}

fn context_sync(context: u64) -> At {
    of(Do::Sync(What::Context(ContextId(context))))
}

fn query(event: u64, done: bool) -> At {
    of(Do::Query(What::Event(EventId(event)), done))
}

fn create(stream: u64, kind: StreamKind) -> At {
    of(Do::Create(stream, 0, kind))
}

fn in_context(stream: u64, context: u64, kind: StreamKind) -> At {
    of(Do::Create(stream, context, kind))
}

fn signal(stream: u64, value: u64) -> At {
    of(Do::Write(stream, FLAG, value))
}

/// A copy or a memset of a value.
fn reset(stream: u64) -> At {
    touches(stream, Access::write(FLAG.address, 4))
}

fn wait_value(stream: u64, value: u64, compare: Compare) -> At {
    of(Do::WaitValue(stream, FLAG, value, compare))
}

fn node(work: NodeWork, after: &[usize]) -> Node {
    Node { work, after: after.to_vec() }
}

fn node_writes(after: &[usize]) -> Node {
    node(NodeWork::Work(vec![Access::write(BUFFER, 64)]), after)
}

fn node_reads(after: &[usize]) -> Node {
    node(NodeWork::Work(vec![Access::read(BUFFER, 64)]), after)
}

fn idle(after: &[usize]) -> Node {
    node(NodeWork::Work(Vec::new()), after)
}

fn define(graph: u64, nodes: Vec<Node>) -> At {
    of(Do::Define(graph, nodes))
}

fn launch(stream: u64, graph: u64) -> At {
    of(Do::Launch(stream, graph))
}

fn does(does: Do) -> At {
    of(does)
}

use StreamKind::{Blocking, Legacy, NonBlocking};

#[derive(Default)]
struct Table(Vec<Planted>);

impl Table {
    #[track_caller]
    fn add(&mut self, kind: &'static str, expect: Expect, order: HostOrder, threads: Vec<Vec<At>>) {
        self.0.push(Planted { kind, expect, order, threads, line: Location::caller().line() });
    }

    /// One thread.
    #[track_caller]
    fn row(&mut self, kind: &'static str, expect: Expect, steps: Vec<At>) {
        self.add(kind, expect, HostOrder::Submission, vec![steps]);
    }

    /// Threads, of which only the steps are reported.
    #[track_caller]
    fn reported(&mut self, kind: &'static str, expect: Expect, threads: Vec<Vec<At>>) {
        self.add(kind, expect, HostOrder::Reported, threads);
    }

    /// Threads that make their calls in any order.
    #[track_caller]
    fn threads(&mut self, kind: &'static str, expect: Expect, threads: Vec<Vec<At>>) {
        self.add(kind, expect, HostOrder::Submission, threads);
    }
}

#[expect(clippy::too_many_lines, reason = "a table")]
#[rustfmt::skip] // A row a line or two.
fn table() -> Vec<Planted> {
    let mut t = Table::default();

    // Two streams.
    t.row("write and read", Race, vec![
        writes(A).one(), record(1, A).mended(), wait(B, 1).mended(), reads(B).two(),
    ]);
    t.row("read and write", Race, vec![
        reads(A).one(), record(1, A).mended(), wait(B, 1).mended(), writes(B).two(),
    ]);
    t.row("write and write", Race, vec![
        writes(A).one(), record(1, A).mended(), wait(B, 1).mended(), writes(B).two(),
    ]);
    t.row("recorded too early", Race, vec![
        record(1, A).faulty(), writes(A).one(), record(1, A).mended(), wait(B, 1), reads(B).two(),
    ]);
    t.row("waited too late", Race, vec![
        writes(A).one(), record(1, A), wait(B, 1).mended(), reads(B).two(), wait(B, 1).faulty(),
    ]);
    t.row("waited in the wrong stream", Race, vec![
        writes(A).one(), record(1, A), wait(C, 1).faulty(), wait(B, 1).mended(), reads(B).two(),
    ]);
    t.row("recorded in the wrong stream", Race, vec![
        writes(A).one(), record(1, C).faulty(), record(1, A).mended(), wait(B, 1), reads(B).two(),
    ]);
    t.row("waited for the wrong event", Race, vec![
        record(2, A), writes(A).one(), record(1, A), wait(B, 2).faulty(), wait(B, 1).mended(),
        reads(B).two(),
    ]);
    t.row("the event was recorded anew elsewhere", Race, vec![
        writes(A).one(), record(1, A), record(1, C).faulty(), wait(B, 1), reads(B).two(),
    ]);
    t.row("a wait keeps the record that it saw", Race, vec![
        record(1, A), wait(B, 1).faulty(), writes(A).one(), record(1, A), wait(B, 1).mended(),
        reads(B).two(),
    ]);
    t.row("the last byte is shared", Race, vec![
        touches(A, Access::write(BUFFER, 64)).one(),
        touches(B, Access::read(BUFFER + 63, 16)).two().faulty(),
        touches(B, Access::read(BUFFER + 64, 16)).two().mended(),
    ]);
    t.row("the first byte is shared", Race, vec![
        touches(A, Access::write(BUFFER, 64)).one(),
        touches(B, Access::read(BUFFER - 15, 16)).two().faulty(),
        touches(B, Access::read(BUFFER - 16, 16)).two().mended(),
    ]);
    t.row("one range is in the other", Race, vec![
        touches(A, Access::write(BUFFER, 4096)).one(),
        record(1, A).mended(),
        wait(B, 1).mended(),
        touches(B, Access::read(BUFFER + 1000, 8)).two(),
    ]);
    t.row("a copy's source is overwritten", Race, vec![
        copies(A, BUFFER, OTHER, 64).one(), record(1, A).mended(), wait(B, 1).mended(),
        writes(B).two(),
    ]);
    t.row("a copy's target is read", Race, vec![
        copies(A, OTHER, BUFFER, 64).one(), record(1, A).mended(), wait(B, 1).mended(),
        reads(B).two(),
    ]);
    t.row("halves of a buffer, and one byte more", Race, vec![
        touches(A, Access::write(BUFFER, 33)).one().faulty(),
        touches(A, Access::write(BUFFER, 32)).one().mended(),
        touches(B, Access::write(BUFFER + 32, 32)).two(),
    ]);
    t.row("through a third stream, one hop missing", Race, vec![
        writes(A).one(), record(1, A), wait(C, 1).mended(), record(2, C), wait(B, 2),
        reads(B).two(),
    ]);
    t.row("through a third stream, the second hop missing", Race, vec![
        writes(A).one(), record(1, A), wait(C, 1), record(2, C), wait(B, 2).mended(),
        reads(B).two(),
    ]);
    t.row("a ring of two buffers, used a third time", Race, vec![
        touches(A, Access::write(BUFFER, 64)), record(1, A), wait(B, 1),
        touches(B, Access::read(BUFFER, 64)).one(), record(3, B),
        touches(A, Access::write(OTHER, 64)), record(2, A), wait(B, 2),
        touches(B, Access::read(OTHER, 64)),
        wait(A, 3).mended(), touches(A, Access::write(BUFFER, 64)).two(),
    ]);
    t.row("one of two readers is not waited for", Race, vec![
        writes(A), record(1, A), wait(B, 1), wait(C, 1), reads(B), reads(C).one(),
        record(2, B), record(3, C), wait(A, 2), wait(A, 3).mended(), writes(A).two(),
    ]);
    t.row("an event of one stream does not order another", Race, vec![
        touches(A, Access::write(OTHER, 64)), writes(B).one(), record(1, A), record(2, B).mended(),
        wait(C, 1), wait(C, 2).mended(), reads(C).two(),
    ]);
    t.row("a stream that is destroyed with work", Race, vec![
        create(A, NonBlocking), writes(A).one(), record(1, A).mended(), does(Do::Destroy(A)),
        wait(B, 1).mended(), reads(B).two(),
    ]);
    t.row("a stream of the same number", Race, vec![
        create(A, NonBlocking), writes(A).one(), record(1, A).mended(), does(Do::Destroy(A)),
        create(A, NonBlocking),
        wait(A, 1).mended(), reads(A).two(),
    ]);
    t.row("an event of the same number", Race, vec![
        does(Do::Event(1, false)), writes(A).one(), record(1, A),
        does(Do::EventDestroy(1)).faulty(),
        does(Do::Event(1, false)).faulty(), wait(B, 1), reads(B).two(),
    ]);

    // The host.
    t.row("the host reads too early", Race,
        vec![writes(A).one(), stream_sync(A).mended(), host_reads().two()]);
    t.row("the host writes too early", Race,
        vec![reads(A).one(), stream_sync(A).mended(), host_writes().two()]);
    t.row("the host waits for the wrong stream", Race, vec![
        writes(A).one(), stream_sync(B).faulty(), stream_sync(A).mended(), host_reads().two(),
    ]);
    t.row("the host waits for an event before the work", Race, vec![
        record(1, A), writes(A).one(), record(1, A).mended(), event_sync(1), host_reads().two(),
    ]);
    t.row("the host waits before the work", Race, vec![
        stream_sync(A).faulty(), writes(A).one(), stream_sync(A).mended(), host_reads().two(),
    ]);
    t.row("a query that said no", Race, vec![
        writes(A).one(), record(1, A), query(1, false).faulty(), query(1, true).mended(),
        host_reads().two(),
    ]);
    t.row("another context is synchronized", Race, vec![
        in_context(A, 1, Blocking), in_context(B, 2, Blocking), writes(A).one(),
        context_sync(2).faulty(), context_sync(1).mended(), host_reads().two(),
    ]);
    t.row("the host overwrites a source", Race, vec![
        host_writes(), reads(A).one(), stream_sync(A).mended(), host_writes().two(),
    ]);
    t.row("the host's wait orders other streams that it submits to", Race, vec![
        writes(A).one(), stream_sync(A).mended(), reads(B).two(),
    ]);
    t.row("the host waits after it submitted", Race, vec![
        writes(A).one(), stream_sync(A).mended(), reads(B).two(), stream_sync(A).faulty(),
    ]);

    // Frees.
    t.row("freed while it is read", Race, vec![
        allocates(), reads(A).one(), stream_sync(A).mended(), frees().two(),
    ]);
    t.row("freed while it is written", Race, vec![
        allocates(), writes(A).one(), stream_sync(A).mended(), frees().two(),
    ]);
    t.row("used after it was freed", UseAfterFree, vec![
        allocates(), frees().one(), allocates().mended(), reads(A).two(),
    ]);
    t.row("freed twice", UseAfterFree,
        vec![allocates(), frees().one(), allocates().mended(), frees().two()]);
    t.row("freed in stream order, used in another stream", Race, vec![
        allocates(), touches(A, Access::free(BUFFER, 64)).one().faulty(), reads(B).two(),
        record(1, B),
        wait(A, 1), touches(A, Access::free(BUFFER, 64)).one().mended(),
    ]);
    t.row("freed and then used in stream order", UseAfterFree, vec![
        allocates(), touches(A, Access::free(BUFFER, 64)).one(),
        touches(A, Access::allocate(BUFFER, 64)).mended(),
        reads(A).two(),
    ]);
    t.row("allocated in stream order, used in another stream", Race, vec![
        touches(A, Access::allocate(BUFFER, 64)).one(), record(1, A).mended(), wait(B, 1).mended(),
        writes(B).two(),
    ]);
    t.row("one byte after a smaller allocation", UseAfterFree, vec![
        allocates(), frees().one(), of(Do::Host(vec![Access::allocate(BUFFER, 32)])),
        touches(A, Access::read(BUFFER, 33)).two().faulty(),
        touches(A, Access::read(BUFFER, 32)).two().mended(),
    ]);

    // The legacy default stream.
    t.row("a non-blocking stream and the legacy default stream", Race, vec![
        create(LEGACY, Legacy), create(A, NonBlocking).faulty(), create(A, Blocking).mended(),
        writes(A).one(), reads(LEGACY).two(),
    ]);
    t.row("the legacy default stream and a non-blocking stream", Race, vec![
        create(LEGACY, Legacy), create(A, NonBlocking).faulty(), create(A, Blocking).mended(),
        writes(LEGACY).one(), reads(A).two(),
    ]);
    t.row("the legacy default stream of another context", Race, vec![
        in_context(LEGACY, 1, Legacy).faulty(), in_context(LEGACY, 0, Legacy).mended(),
        create(A, Blocking),
        writes(A).one(), reads(LEGACY).two(),
    ]);
    t.row("no legacy operation between two blocking streams", Race, vec![
        create(LEGACY, Legacy), create(A, Blocking), create(B, Blocking),
        writes(A).one(), record(7, LEGACY).mended(), reads(B).two(),
    ]);
    t.row("a legacy operation before the work", Race, vec![
        create(LEGACY, Legacy), create(A, Blocking), create(B, Blocking),
        touches(LEGACY, Access::read(OTHER, 1)).faulty(), writes(A).one(),
        touches(LEGACY, Access::read(OTHER, 1)).mended(), reads(B).two(),
    ]);
    t.row("a legacy operation, and then one stream is not blocking", Race, vec![
        create(LEGACY, Legacy), create(A, Blocking), create(B, NonBlocking).faulty(),
        create(B, Blocking).mended(),
        writes(A).one(), touches(LEGACY, Access::read(OTHER, 1)), reads(B).two(),
    ]);
    t.row("a blocking stream is synchronized after a legacy operation", Race, vec![
        // The operation is not in that stream: to wait for it, wait for the legacy default stream.
        create(LEGACY, Legacy), create(A, Blocking), writes(LEGACY).one(),
        stream_sync(A).faulty(), stream_sync(LEGACY).mended(), host_reads().two(),
    ]);
    t.row("the legacy default stream is synchronized, a non-blocking one works", Race, vec![
        create(LEGACY, Legacy), create(A, NonBlocking).faulty(), create(A, Blocking).mended(),
        writes(A).one(), stream_sync(LEGACY), host_reads().two(),
    ]);
    t.row("a blocking stream that is destroyed, and a wait of the host", Race, vec![
        create(LEGACY, Legacy), create(A, NonBlocking).faulty(), create(A, Blocking).mended(),
        writes(A).one(),
        does(Do::Destroy(A)), stream_sync(LEGACY), host_reads().two(),
    ]);
    t.row("a blocking stream that is destroyed", Race, vec![
        create(LEGACY, Legacy), create(A, NonBlocking).faulty(), create(A, Blocking).mended(),
        writes(A).one(),
        does(Do::Destroy(A)), reads(LEGACY).two(),
    ]);

    // Whole contexts.
    t.row("a context's record is before the work", Race, vec![
        create(A, NonBlocking), does(Do::ContextRecord(0, 1)).faulty(), writes(A).one(),
        does(Do::ContextRecord(0, 1)).mended(), wait(B, 1), reads(B).two(),
    ]);
    t.row("a context's record is of another context", Race, vec![
        in_context(A, 1, NonBlocking), in_context(B, 2, NonBlocking), writes(A).one(),
        does(Do::ContextRecord(2, 1)).faulty(), does(Do::ContextRecord(1, 1)).mended(), wait(B, 1),
        reads(B).two(),
    ]);
    let shares = |context, stream| does(Do::ContextShares(context, stream));
    t.row("a copy that is also another context's work, and a wait for that one", Race, vec![
        in_context(A, 1, NonBlocking), in_context(B, 2, NonBlocking), writes(A).one(),
        shares(2, A).mended(), context_sync(2), host_reads().two(),
    ]);
    t.row("another context's work, and what comes after it in the stream", Race, vec![
        in_context(A, 1, NonBlocking), in_context(B, 2, NonBlocking), shares(2, A).faulty(),
        writes(A).one(), shares(2, A).mended(), context_sync(2), host_reads().two(),
    ]);
    t.row("another context's work, and its streams", Race, vec![
        in_context(A, 1, NonBlocking), in_context(B, 2, NonBlocking), writes(A).one(),
        shares(2, A), does(Do::ContextRecord(2, 1)).mended(), wait(B, 1), reads(B).two(),
    ]);
    t.row("a context's wait is after the work", Race, vec![
        create(A, NonBlocking), create(B, NonBlocking), writes(A).one(), record(1, A),
        does(Do::ContextWait(0, 1)).mended(), reads(B).two(), does(Do::ContextWait(0, 1)).faulty(),
    ]);
    t.row("a context's wait, and a stream that is created later", Race, vec![
        create(A, NonBlocking), writes(A).one(), record(1, A), does(Do::ContextWait(0, 1)).mended(),
        create(B, NonBlocking), reads(B).two(), does(Do::ContextWait(0, 1)).faulty(),
    ]);
    t.row("a context's wait, and a stream of another context", Race, vec![
        in_context(A, 1, NonBlocking), in_context(B, 2, NonBlocking), writes(A).one(), record(1, A),
        does(Do::ContextWait(1, 1)).faulty(), does(Do::ContextWait(2, 1)).mended(), reads(B).two(),
    ]);
    t.row("a context's wait does not order its streams", Race, vec![
        create(LEGACY, Legacy), create(A, Blocking), create(B, Blocking), writes(A).one(),
        record(2, C),
        record(1, A).mended(), does(Do::ContextWait(0, 2)), wait(B, 1).mended(), reads(B).two(),
    ]);

    // Values.
    t.row("a value that is not waited for", Race, vec![
        writes(A).one(), signal(A, 1), wait_value(B, 1, Compare::GreaterOrEqual).mended(),
        reads(B).two(),
    ]);
    t.row("a value is written before the work", Race, vec![
        signal(A, 1).faulty(), writes(A).one(), signal(A, 1).mended(),
        wait_value(B, 1, Compare::GreaterOrEqual), reads(B).two(),
    ]);
    t.row("an earlier value suffices", Race, vec![
        signal(A, 1), writes(A).one(), signal(A, 2),
        wait_value(B, 1, Compare::GreaterOrEqual).faulty(),
        wait_value(B, 2, Compare::GreaterOrEqual).mended(), reads(B).two(),
    ]);
    t.row("a value is waited for before it is written", Race, vec![
        wait_value(B, 1, Compare::GreaterOrEqual), reads(B).two(), signal(A, 1).faulty(),
        writes(A).one(),
        signal(A, 1).mended(),
    ]);
    t.row("two streams write the value", Race, vec![
        writes(A).one(), signal(A, 1), does(Do::Write(C, FLAG, 1)).faulty(),
        wait_value(B, 1, Compare::Equal), reads(B).two(),
    ]);
    t.row("a flag goes to and fro, and once it is not waited for", Race, vec![
        writes(A), signal(A, 1), wait_value(B, 1, Compare::Equal), reads(B).one(), signal(B, 0),
        wait_value(A, 0, Compare::Equal).mended(), writes(A).two(),
    ]);
    t.row("a bit of another stream", Race, vec![
        writes(A).one(), signal(A, 4), does(Do::Write(C, WIDE, 2)).faulty(),
        does(Do::WaitValue(B, FLAG, 4, Compare::And)).mended(), reads(B).two(),
    ]);
    t.row("a value is copied over", Race, vec![
        // The reset has no order with the second signal.
        signal(A, 1), record(1, A), wait(C, 1), touches(C, Access::write(FLAG.address, 4)).one(),
        record(2, C),
        wait(A, 2).mended(), signal(A, 2).two(),
    ]);
    // A copy or a memset may end a wait. What it is after, the wait is after.
    t.row("a copy releases a wait, and is too early", Race, vec![
        reset(A).faulty(), writes(A).one(), reset(A).mended(),
        wait_value(B, 1, Compare::GreaterOrEqual), stream_sync(B), reads(B).two(),
    ]);
    t.row("a copy releases a wait that comes before it", Race, vec![
        wait_value(B, 1, Compare::GreaterOrEqual), reset(A).faulty(), writes(A).one(),
        reset(A).mended(), stream_sync(B), reads(B).two(),
    ]);
    // With the wait itself neither copy needs an order.
    t.row("two copies to a value", Race, vec![
        reset(A).one(), wait_value(B, 1, Compare::GreaterOrEqual),
        record(1, A).mended(), wait(C, 1).mended(), reset(C).two(),
    ]);
    t.row("a wait for a value that is freed", Race, vec![
        touches(A, Access::allocate(FLAG.address, 4)), record(1, A), wait(B, 1),
        wait_value(B, 1, Compare::GreaterOrEqual).one(), signal(A, 1),
        record(2, B).mended(), wait(A, 2).mended(),
        touches(A, Access::free(FLAG.address, 4)).two(),
    ]);
    t.row("the host sees an earlier value", Race, vec![
        signal(A, 1), writes(A).one(), signal(A, 2), does(Do::HostSaw(FLAG, 1)).faulty(),
        does(Do::HostSaw(FLAG, 2)).mended(), host_reads().two(),
    ]);
    t.row("the host signals too early", Race, vec![
        wait_value(A, 1, Compare::GreaterOrEqual), reads(A).one(),
        does(Do::HostWrite(FLAG, 1)).faulty(),
        host_writes().two(), does(Do::HostWrite(FLAG, 1)).mended(),
    ]);

    // Graphs.
    t.row("two nodes lack an edge", Race, vec![
        define(1, vec![node_writes(&[]), node_reads(&[])]).faulty(),
        define(1, vec![node_writes(&[]), node_reads(&[0])]).mended(), launch(A, 1).one().two(),
    ]);
    t.row("branches of a graph", Race, vec![
        define(1, vec![idle(&[]), node_writes(&[0]), idle(&[0]), node_reads(&[2]),
            idle(&[1, 3])]).faulty(),
        define(1, vec![idle(&[]), node_writes(&[0]), idle(&[0]), node_reads(&[1, 2]),
            idle(&[1, 3])]).mended(),
        launch(A, 1).one().two(),
    ]);
    t.row("a graph and another stream", Race, vec![
        define(1, vec![idle(&[]), node_writes(&[0]), idle(&[0])]), launch(A, 1).one(),
        record(1, A).mended(),
        wait(B, 1).mended(), reads(B).two(),
    ]);
    t.row("one graph in two streams", Race, vec![
        define(1, vec![node_writes(&[])]), launch(A, 1).one(), record(1, A).mended(),
        wait(B, 1).mended(),
        launch(B, 1).two(),
    ]);
    t.row("a graph's record comes too early", Race, vec![
        define(1, vec![node(NodeWork::Record(EventId(1)), &[]), node_writes(&[])]).faulty(),
        define(1, vec![node_writes(&[]), node(NodeWork::Record(EventId(1)), &[0])]).mended(),
        launch(A, 1).one(), wait(B, 1), reads(B).two(),
    ]);
    t.row("a graph's wait is in another branch", Race, vec![
        define(1, vec![node(NodeWork::Wait(EventId(1)), &[]), node_reads(&[])]).faulty(),
        define(1, vec![node(NodeWork::Wait(EventId(1)), &[]), node_reads(&[0])]).mended(),
        writes(A).one(), record(1, A), launch(B, 1).two(),
    ]);
    t.row("a child graph", Race, vec![
        define(1, vec![idle(&[]), node_writes(&[0])]),
        define(2, vec![node(NodeWork::Child(cuda_order_check_engine::GraphId(1)), &[]),
            node_reads(&[])]).faulty(),
        define(2, vec![node(NodeWork::Child(cuda_order_check_engine::GraphId(1)), &[]),
            node_reads(&[0])]).mended(),
        launch(A, 2).one().two(),
    ]);
    t.row("a captured graph forks, and its branches race", Race, vec![
        does(Do::Capture(A)), record(1, A), wait(B, 1), writes(A), record(3, A).mended(),
        wait(B, 3).mended(), reads(B),
        record(2, B), wait(A, 2), does(Do::EndCapture(A, 1)), launch(C, 1).one().two(),
    ]);
    t.row("a captured stream goes on before it has joined", Race, vec![
        does(Do::Capture(A)), touches(A, Access::write(OTHER, 4)), record(1, A), wait(B, 1),
        writes(B), record(2, B),
        wait(A, 2).mended(), reads(A), wait(A, 2).faulty(), does(Do::EndCapture(A, 1)),
        launch(C, 1).one().two(),
    ]);
    t.row("a captured graph is launched twice, in two streams", Race, vec![
        does(Do::Capture(A)), writes(A), does(Do::EndCapture(A, 1)), launch(B, 1).one(),
        record(1, B).mended(),
        wait(C, 1).mended(), launch(C, 1).two(),
    ]);
    t.row("captured work does not run", Race, vec![
        // The copy in the capture is no order for the one outside it.
        writes(A).one(), does(Do::Capture(B)), touches(B, Access::read(OTHER, 4)),
        does(Do::EndCapture(B, 1)),
        record(1, A).mended(), wait(B, 1).mended(), reads(B).two(),
    ]);

    // Host functions.
    t.row("a host function reads", Race, vec![
        writes(A).one(), record(1, A).mended(), wait(B, 1).mended(),
        does(Do::Function(B, None, vec![Access::read(BUFFER, 64)])).two(),
    ]);
    t.reported("a host function begins and ends, and nothing is handed over", Race, vec![vec![
        writes(A), does(Do::Function(A, Some(1), Vec::new())), does(Do::Begin(1)).in_function(1),
        of(Do::Host(vec![Access::write(BUFFER, 64)])).in_function(1).one(),
        does(Do::HandOver(1)).in_function(1), does(Do::End(1)).in_function(1),
        does(Do::TakeOver(1)).mended(), host_reads().two(),
    ]]);
    t.reported("a host function writes after it has handed over", Race, vec![vec![
        does(Do::Function(A, Some(1), Vec::new())), does(Do::Begin(1)).in_function(1),
        does(Do::HandOver(1)).in_function(1).faulty(),
        of(Do::Host(vec![Access::write(BUFFER, 64)])).in_function(1).one(),
        does(Do::HandOver(1)).in_function(1).mended(), does(Do::End(1)).in_function(1),
        does(Do::TakeOver(1)), host_reads().two(),
    ]]);
    t.row("work after a host function is in another stream", Race, vec![
        does(Do::Function(A, Some(1), Vec::new())), record(1, A), wait(B, 1).mended(),
        reads(B).two(),
        does(Do::Begin(1)).in_function(1),
        of(Do::Host(vec![Access::write(BUFFER, 64)])).in_function(1).one(),
        does(Do::End(1)).in_function(1),
    ]);

    // Threads. In submission order they are independent, but each error is there in every order.
    t.threads("two threads, each with a stream", Race, vec![
        vec![writes(A).one().stage(1), record(1, A).mended().stage(1)],
        vec![wait(B, 1).mended().late(2), reads(B).two().late(2)],
    ]);
    t.threads("a third thread's wait does not help", Race, vec![
        vec![writes(A).one(), record(1, A)],
        vec![wait(B, 1).mended().stage(1), reads(B).two().stage(1)],
        vec![wait(C, 1).stage(1), touches(C, Access::read(BUFFER, 64)).stage(1)],
    ]);
    t.threads("threads that record one event", Race, vec![
        vec![writes(A).one(), record(1, A).mended(), record(1, A).faulty()],
        vec![touches(C, Access::write(OTHER, 4)), record(1, C).faulty().stage(1),
            record(2, C).mended().stage(1)],
        vec![wait(B, 1).stage(2), reads(B).two().stage(2)],
    ]);
    t.threads("halves by two threads, and the whole by a third", Race, vec![
        vec![touches(A, Access::write(BUFFER, 32)).one(), record(1, A)],
        vec![touches(C, Access::write(BUFFER + 32, 32)), record(2, C)],
        vec![wait(B, 2).stage(1), wait(B, 1).mended().stage(1), reads(B).two().stage(1)],
    ]);

    // Threads that only reported operations order.
    t.reported("one thread waits, another one reads", Race, vec![
        vec![does(Do::Start(1)), writes(A).one().stage(1), stream_sync(A).stage(1),
            does(Do::HandOver(1)).mended().stage(1)],
        vec![touches(C, Access::read(OTHER, 1)).stage(1), does(Do::TakeOver(1)).mended().stage(2),
            host_reads().two().stage(2)],
    ]);
    t.reported("handed over before the wait", Race, vec![
        vec![does(Do::Start(1)), does(Do::HandOver(1)).faulty().stage(1), writes(A).one().stage(1),
            stream_sync(A).stage(1), does(Do::HandOver(1)).mended().stage(1)],
        vec![touches(C, Access::read(OTHER, 1)).stage(1), does(Do::TakeOver(1)).stage(2),
            host_reads().two().stage(2)],
    ]);
    t.reported("two threads hand over, one of them too early", Race, vec![
        vec![does(Do::Start(1)), does(Do::Start(2)), does(Do::HandOver(1)).faulty().stage(1),
            host_writes().one().stage(1),
            does(Do::HandOver(1)).mended().stage(1)],
        vec![touches(C, Access::read(OTHER, 1)).stage(1), does(Do::HandOver(1)).stage(1)],
        vec![touches(B, Access::read(OTHER, 1)).stage(1), does(Do::TakeOver(1)).stage(2),
            host_reads().two().stage(2)],
    ]);
    t.reported("two threads write host memory", Race, vec![
        vec![does(Do::Start(1)), host_writes().one().stage(1),
            does(Do::HandOver(1)).mended().stage(1)],
        vec![touches(B, Access::read(OTHER, 1)).stage(1), does(Do::TakeOver(1)).mended().late(2),
            host_writes().two().late(2)],
    ]);
    t.reported("a started thread, and what its parent does later", Race, vec![
        vec![host_writes().one().mended(), does(Do::Start(1)), host_writes().one().faulty()],
        vec![host_reads().two().stage(1)],
    ]);
    t.reported("a thread that is not joined", Race, vec![
        vec![does(Do::Start(1)), does(Do::Join(1)).mended().late(2), host_reads().two().late(2)],
        vec![host_writes().one().stage(1)],
    ]);
    t.reported("an event is destroyed while another thread records it", Destroyed, vec![
        vec![does(Do::Event(1, false)), does(Do::Start(1)), does(Do::TakeOver(1)).mended().stage(2),
            does(Do::EventDestroy(1)).one().late(2)],
        vec![record(1, A).two().stage(1), does(Do::HandOver(1)).mended().stage(1)],
    ]);
    t.reported("a stream waits for an event while another thread records it", Recorded, vec![
        vec![does(Do::Event(1, false)), does(Do::Start(1)), does(Do::TakeOver(1)).mended().stage(2),
            wait(B, 1).one().late(2)],
        vec![record(1, A).two().stage(1), does(Do::HandOver(1)).mended().stage(1)],
    ]);
    t.reported("a stream is destroyed while another thread submits to it", Destroyed, vec![
        vec![create(A, NonBlocking), does(Do::Start(1)), does(Do::TakeOver(1)).mended().stage(2),
            does(Do::Destroy(A)).one().late(2)],
        vec![writes(A).two().stage(1), does(Do::HandOver(1)).mended().stage(1)],
    ]);
    t.reported("memory is freed while another thread submits work for it", Race, vec![
        vec![allocates(), does(Do::Start(1)), does(Do::TakeOver(1)).mended().stage(2),
            frees().one().late(2)],
        vec![writes(A).two().stage(1), stream_sync(A).stage(1),
            does(Do::HandOver(1)).mended().stage(1)],
    ]);

    // Other processes.
    t.row("an interprocess event orders only what was recorded", Race, vec![
        does(Do::Event(1, true)), writes(A).one(), record(1, A).mended(), wait(B, 1),
        reads(B).two(),
    ]);

    // Warnings.
    t.row("an event that was never recorded", NeverRecorded, vec![
        writes(A), record(1, A).mended(), wait(B, 1).one().two(),
        touches(B, Access::read(OTHER, 4)),
    ]);
    t.row("a synchronize for an event that was never recorded", NeverRecorded, vec![
        writes(A), record(1, A).mended(), event_sync(1).one().two(),
    ]);
    t.row("an event that was created anew", NeverRecorded, vec![
        writes(A), record(1, A), does(Do::Event(1, false)).faulty(), wait(B, 1).one().two(),
    ]);
    t.row("a record that is lost", LostRecord, vec![
        writes(A), record(1, A).one(), wait(C, 1).mended(), touches(B, Access::write(OTHER, 4)),
        record(1, B), wait(C, 1).two(),
    ]);
    t.row("a record whose work is pending is lost", LostRecord, vec![
        writes(A), record(1, A).one(), stream_sync(A).mended(),
        touches(B, Access::write(OTHER, 4)), record(1, B),
        event_sync(1).two(),
    ]);
    t.row("a query is not looked at", IgnoredQuery, vec![
        writes(A), record(1, A), query(1, false).one(), event_sync(1).mended(), host_reads().two(),
    ]);
    t.row("a stream's query is not looked at", IgnoredQuery, vec![
        writes(A), does(Do::Query(What::Stream(StreamId(A)), false)).one(),
        stream_sync(A).mended(), host_reads().two(),
    ]);
    t.row("a wait for the stream's own event", UselessWait, vec![
        writes(A), record(1, A), wait(A, 1).one().two().faulty(), wait(B, 1).mended(),
        reads(B).mended(),
    ]);
    t.row("a wait twice", UselessWait, vec![
        writes(A), record(1, A), wait(B, 1), wait(B, 1).one().two().faulty(), reads(B),
    ]);
    t.row("a wait after the host has waited", UselessWait, vec![
        writes(A), record(1, A), event_sync(1).faulty(), wait(B, 1).one().two(), reads(B),
    ]);
    t.row("a wait for an event that was captured", CaptureLeak, vec![
        does(Do::Capture(A)), writes(A), record(1, A), does(Do::EndCapture(A, 1)),
        record(1, A).mended(),
        wait(B, 1).one().two(),
    ]);
    t.row("a stream that is left in a capture", CaptureLeak, vec![
        does(Do::Capture(A)), record(1, A), wait(B, 1), writes(B), record(2, B),
        wait(A, 2).mended(),
        does(Do::EndCapture(A, 1)).one().two(),
    ]);
    t.0
}

/// The steps in an order in which the threads may have made them: each thread's in its own, stages
/// one after the other.
fn shuffled(planted: &Planted, mended: bool, random: &mut Random) -> Vec<At> {
    let mut threads: Vec<Vec<At>> = Vec::new();
    for (number, steps) in planted.threads.iter().enumerate() {
        let steps = steps.iter().filter(|at| at.only.is_none_or(|only| only == mended)).cloned();
        let of_thread = |mut at: At| {
            at.stage = if mended { at.stage } else { at.faulty_stage };
            if at.step.by == By::Thread(ThreadId(0)) {
                at.step.by = By::Thread(ThreadId(number as u64));
            }
            at
        };
        threads.push(steps.map(of_thread).rev().collect());
    }
    let mut all = Vec::new();
    loop {
        let stage = threads.iter().flatten().map(|at| at.stage).min();
        let ready: Vec<usize> = (0..threads.len())
            .filter(|&thread| threads[thread].last().is_some_and(|at| Some(at.stage) == stage))
            .collect();
        if ready.is_empty() {
            return all;
        }
        let thread = ready[random.below(ready.len() as u64) as usize];
        all.extend(threads[thread].pop());
    }
}

fn matches(expect: Expect, finding: &Finding) -> bool {
    match (expect, finding) {
        (Race, Finding::Report(report)) => report.problem == Problem::Race,
        (UseAfterFree, Finding::Report(report)) => report.problem == Problem::UseAfterFree,
        (Destroyed, Finding::Report(report)) => report.problem == Problem::DestroyedWhileUsed,
        (Recorded, Finding::Report(report)) => report.problem == Problem::RecordedWhileAwaited,
        (NeverRecorded, Finding::Warning(Warning::NeverRecorded { .. }))
        | (LostRecord, Finding::Warning(Warning::LostRecord { .. }))
        | (IgnoredQuery, Finding::Warning(Warning::IgnoredQuery { .. }))
        | (UselessWait, Finding::Warning(Warning::UselessWait { .. }))
        | (CaptureLeak, Finding::Warning(Warning::CaptureLeak { .. })) => true,
        _ => false,
    }
}

/// The lines that a warning names.
fn warned(warning: &Warning) -> BTreeSet<u64> {
    let calls: Vec<u64> = match warning {
        Warning::NeverRecorded { wait, .. } | Warning::UselessWait { wait, .. } => {
            vec![wait.number]
        }
        Warning::LostRecord { lost, wait, .. } => vec![lost.number, wait.number],
        Warning::IgnoredQuery { query, access } => vec![query.number, access.number],
        Warning::CaptureLeak { call, .. } => vec![call.number],
        _ => Vec::new(),
    };
    calls.into_iter().collect()
}

fn findings(planted: &Planted, steps: &[At]) -> Vec<Finding> {
    // Only the warning that is looked for, so that each is seen to have a switch of its own.
    let mut warnings = Warnings::NONE;
    warnings.never_recorded = planted.expect == NeverRecorded;
    warnings.lost_record = planted.expect == LostRecord;
    warnings.ignored_query = planted.expect == IgnoredQuery;
    warnings.useless_wait = planted.expect == UselessWait;
    warnings.capture_leak = planted.expect == CaptureLeak;
    let mut checker = Checker::new(Options::new().host_order(planted.order).warnings(warnings));
    for (line, at) in steps.iter().enumerate() {
        tell(&mut checker, line + 1, &at.step);
    }
    checker.take_findings()
}

fn text(planted: &Planted, seed: u64, steps: &[At], findings: &[Finding]) -> String {
    let mut text = format!("line {}, {}, seed {seed}:\n", planted.line, planted.kind);
    for (line, at) in steps.iter().enumerate() {
        text += &format!("{:3} {:?} {:?}\n", line + 1, at.step.by, at.step.does);
    }
    for finding in findings {
        text += &format!("{finding}\n");
    }
    text
}

#[test]
fn planted_errors_are_reported_and_mended_ones_are_not() {
    let table = table();
    let kinds: BTreeSet<_> = table.iter().map(|planted| planted.kind).collect();
    assert!(
        kinds.len() >= 60 && kinds.len() == table.len(),
        "{} kinds of {}",
        kinds.len(),
        table.len()
    );
    for planted in &table {
        for seed in 0..SEEDS {
            let steps = shuffled(planted, false, &mut Random(seed));
            let marked: BTreeSet<u64> =
                (1..).zip(&steps).filter(|(_, at)| at.mark > 0).map(|(line, _)| line).collect();
            assert!(!marked.is_empty() && marked.len() <= 2);
            let found = findings(planted, &steps);
            let right = found.iter().filter(|finding| {
                let (one, two) = match finding {
                    Finding::Report(_) => lines(finding).unwrap(),
                    Finding::Warning(warning) => {
                        return warned(warning) == marked && matches(planted.expect, finding);
                    }
                    _ => return false,
                };
                matches(planted.expect, finding)
                    && marked == BTreeSet::from([one as u64, two as u64])
            });
            assert_eq!(right.count(), 1, "{}", text(planted, seed, &steps, &found));
            // A query that was not looked at is a race as well, by the same two places or others.
            let others = found.iter().filter(|finding| !matches(planted.expect, finding)).count();
            let same = found.iter().filter(|finding| matches(planted.expect, finding)).count();
            let extra = usize::from(planted.expect == IgnoredQuery);
            assert_eq!((same, others), (1, extra), "{}", text(planted, seed, &steps, &found));

            let steps = shuffled(planted, true, &mut Random(seed));
            let found = findings(planted, &steps);
            assert!(found.is_empty(), "mended, {}", text(planted, seed, &steps, &found));
        }
    }
}
