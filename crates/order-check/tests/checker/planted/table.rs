//! The table of planted programs, by subject.

use std::panic::Location;

use crate::common::Do;
use crate::planted::steps::{
    A, At, B, BUFFER, C, FLAG, LEGACY, OTHER, WIDE, allocates, context_sync, create, define, does,
    event_sync, frees, host_reads, host_writes, idle, in_context, launch, node, node_reads,
    node_writes, query, reads, record, reset, signal, step, stream_sync, touches, wait, wait_value,
    writes,
};
use crate::planted::{Expect, Planted};
use Expect::{
    CaptureLeak, Destroyed, IgnoredQuery, LostRecord, NeverRecorded, Race, Recorded, UseAfterFree,
    UselessWait,
};
use cuda_order_check_engine::StreamKind::{Blocking, Legacy, NonBlocking};
use cuda_order_check_engine::{Access, Compare, EventId, HostOrder, NodeWork, StreamId, What};

#[derive(Default)]
pub(super) struct Table(Vec<Planted>);

impl Table {
    #[track_caller]
    fn add(&mut self, kind: &'static str, expect: Expect, order: HostOrder, threads: Vec<Vec<At>>) {
        self.0.push(Planted { kind, expect, order, threads, line: Location::caller().line() });
    }

    /// A row whose calls are made by one thread.
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

impl Table {
    /// Two streams.
    #[rustfmt::skip] // A row a line or two.
    fn two_streams(&mut self) {
        self.row("a stream of the same number", Race, vec![
            create(A, NonBlocking), writes(A).one(), record(1, A).mended(), does(Do::Destroy(A)),
            create(A, NonBlocking),
            wait(A, 1).mended(), reads(A).two(),
        ]);
        self.row("an event of the same number", Race, vec![
            does(Do::Event(1, false)), writes(A).one(), record(1, A),
            does(Do::EventDestroy(1)).faulty(),
            does(Do::Event(1, false)).faulty(), wait(B, 1), reads(B).two(),
        ]);
    }

    /// The host.
    #[rustfmt::skip] // A row a line or two.
    fn host(&mut self) {
        self.row("a query that said no", Race, vec![
            writes(A).one(), record(1, A), query(1, false).faulty(), query(1, true).mended(),
            host_reads().two(),
        ]);
        self.row("the host overwrites a source", Race, vec![
            host_writes(), reads(A).one(), stream_sync(A).mended(), host_writes().two(),
        ]);
    }

    /// Frees.
    #[rustfmt::skip] // A row a line or two.
    fn frees(&mut self) {
        self.row("used after it was freed", UseAfterFree, vec![
            allocates(), frees().one(), allocates().mended(), reads(A).two(),
        ]);
        self.row("freed twice", UseAfterFree,
            vec![allocates(), frees().one(), allocates().mended(), frees().two()]);
        self.row("freed in stream order, used in another stream", Race, vec![
            allocates(), touches(A, Access::free(BUFFER, 64)).one().faulty(), reads(B).two(),
            record(1, B),
            wait(A, 1), touches(A, Access::free(BUFFER, 64)).one().mended(),
        ]);
        self.row("freed and then used in stream order", UseAfterFree, vec![
            allocates(), touches(A, Access::free(BUFFER, 64)).one(),
            touches(A, Access::allocate(BUFFER, 64)).mended(),
            reads(A).two(),
        ]);
        self.row("allocated in stream order, used in another stream", Race, vec![
            touches(A, Access::allocate(BUFFER, 64)).one(), record(1, A).mended(), wait(B, 1).mended(),
            writes(B).two(),
        ]);
        self.row("one byte after a smaller allocation", UseAfterFree, vec![
            allocates(), frees().one(), step(Do::Host(vec![Access::allocate(BUFFER, 32)])),
            touches(A, Access::read(BUFFER, 33)).two().faulty(),
            touches(A, Access::read(BUFFER, 32)).two().mended(),
        ]);
    }

    /// The legacy default stream.
    #[rustfmt::skip] // A row a line or two.
    fn legacy(&mut self) {
        self.row("a blocking stream that is destroyed, and a wait of the host", Race, vec![
            create(LEGACY, Legacy), create(A, NonBlocking).faulty(), create(A, Blocking).mended(),
            writes(A).one(),
            does(Do::Destroy(A)), stream_sync(LEGACY), host_reads().two(),
        ]);
        self.row("a stream has the number of a legacy default stream that is destroyed", Race, vec![
            create(LEGACY, Legacy), touches(LEGACY, Access::write(OTHER, 64)),
            does(Do::Destroy(LEGACY)), create(LEGACY, NonBlocking), writes(LEGACY).one(),
            create(A, Blocking), record(1, LEGACY).mended(), wait(A, 1).mended(), reads(A).two(),
        ]);
        self.row("a non-blocking stream has the number of a blocking one that is destroyed", Race, vec![
            create(LEGACY, Legacy), create(A, Blocking), touches(A, Access::write(OTHER, 64)),
            does(Do::Destroy(A)), create(A, NonBlocking), writes(A).one(),
            record(1, A).mended(), wait(LEGACY, 1).mended(), reads(LEGACY).two(),
        ]);
    }

    /// Whole contexts.
    #[rustfmt::skip] // A row a line or two.
    fn contexts(&mut self) {
        let shares = |context, stream| does(Do::ContextShares(context, stream));
        self.row("a copy that is also another context's work, and a wait for that one", Race, vec![
            in_context(A, 1, NonBlocking), in_context(B, 2, NonBlocking), writes(A).one(),
            shares(2, A).mended(), context_sync(2), host_reads().two(),
        ]);
        self.row("another context's work, and what comes after it in the stream", Race, vec![
            in_context(A, 1, NonBlocking), in_context(B, 2, NonBlocking), shares(2, A).faulty(),
            writes(A).one(), shares(2, A).mended(), context_sync(2), host_reads().two(),
        ]);
        self.row("another context's work, and its streams", Race, vec![
            in_context(A, 1, NonBlocking), in_context(B, 2, NonBlocking), writes(A).one(),
            shares(2, A), does(Do::ContextRecord(2, 1)).mended(), wait(B, 1), reads(B).two(),
        ]);
        self.row("a context's wait, and a stream of another context", Race, vec![
            in_context(A, 1, NonBlocking), in_context(B, 2, NonBlocking), writes(A).one(), record(1, A),
            does(Do::ContextWait(1, 1)).faulty(), does(Do::ContextWait(2, 1)).mended(), reads(B).two(),
        ]);
        self.row("a context's wait does not order its streams", Race, vec![
            create(LEGACY, Legacy), create(A, Blocking), create(B, Blocking), writes(A).one(),
            record(2, C),
            record(1, A).mended(), does(Do::ContextWait(0, 2)), wait(B, 1).mended(), reads(B).two(),
        ]);
    }

    /// Values.
    #[rustfmt::skip] // A row a line or two.
    fn values(&mut self) {
        self.row("a bit of another stream", Race, vec![
            writes(A).one(), signal(A, 4), does(Do::Write(C, WIDE, 2)).faulty(),
            does(Do::WaitValue(B, FLAG, 4, Compare::And)).mended(), reads(B).two(),
        ]);
        // A copy or a memset may end a wait. What it is after, the wait is after.
        self.row("a copy releases a wait, and is too early", Race, vec![
            reset(A).faulty(), writes(A).one(), reset(A).mended(),
            wait_value(B, 1, Compare::GreaterOrEqual), stream_sync(B), reads(B).two(),
        ]);
        self.row("a copy releases a wait that comes before it", Race, vec![
            wait_value(B, 1, Compare::GreaterOrEqual), reset(A).faulty(), writes(A).one(),
            reset(A).mended(), stream_sync(B), reads(B).two(),
        ]);
        // With the wait itself neither copy needs an order.
        self.row("two copies to a value", Race, vec![
            reset(A).one(), wait_value(B, 1, Compare::GreaterOrEqual),
            record(1, A).mended(), wait(C, 1).mended(), reset(C).two(),
        ]);
        self.row("a wait for a value that is freed", Race, vec![
            touches(A, Access::allocate(FLAG.address, 4)), record(1, A), wait(B, 1),
            wait_value(B, 1, Compare::GreaterOrEqual).one(), signal(A, 1),
            record(2, B).mended(), wait(A, 2).mended(),
            touches(A, Access::free(FLAG.address, 4)).two(),
        ]);
        self.row("the host sees an earlier value", Race, vec![
            signal(A, 1), writes(A).one(), signal(A, 2), does(Do::HostSaw(FLAG, 1)).faulty(),
            does(Do::HostSaw(FLAG, 2)).mended(), host_reads().two(),
        ]);
        self.row("the host signals too early", Race, vec![
            wait_value(A, 1, Compare::GreaterOrEqual), reads(A).one(),
            does(Do::HostWrite(FLAG, 1)).faulty(),
            host_writes().two(), does(Do::HostWrite(FLAG, 1)).mended(),
        ]);
    }

    /// Graphs.
    #[rustfmt::skip] // A row a line or two.
    fn graphs(&mut self) {
        self.row("two nodes lack an edge", Race, vec![
            define(1, vec![node_writes(&[]), node_reads(&[])]).faulty(),
            define(1, vec![node_writes(&[]), node_reads(&[0])]).mended(), launch(A, 1).one().two(),
        ]);
        self.row("branches of a graph", Race, vec![
            define(1, vec![idle(&[]), node_writes(&[0]), idle(&[0]), node_reads(&[2]),
                idle(&[1, 3])]).faulty(),
            define(1, vec![idle(&[]), node_writes(&[0]), idle(&[0]), node_reads(&[1, 2]),
                idle(&[1, 3])]).mended(),
            launch(A, 1).one().two(),
        ]);
        self.row("one graph in two streams", Race, vec![
            define(1, vec![node_writes(&[])]), launch(A, 1).one(), record(1, A).mended(),
            wait(B, 1).mended(),
            launch(B, 1).two(),
        ]);
        self.row("a graph's wait is in another branch", Race, vec![
            define(1, vec![node(NodeWork::Wait(EventId(1)), &[]), node_reads(&[])]).faulty(),
            define(1, vec![node(NodeWork::Wait(EventId(1)), &[]), node_reads(&[0])]).mended(),
            writes(A).one(), record(1, A), launch(B, 1).two(),
        ]);
        self.row("a child graph", Race, vec![
            define(1, vec![idle(&[]), node_writes(&[0])]),
            define(2, vec![node(NodeWork::Child(cuda_order_check_engine::GraphId(1)), &[]),
                node_reads(&[])]).faulty(),
            define(2, vec![node(NodeWork::Child(cuda_order_check_engine::GraphId(1)), &[]),
                node_reads(&[0])]).mended(),
            launch(A, 2).one().two(),
        ]);
        self.row("a captured graph is launched twice, in two streams", Race, vec![
            does(Do::Capture(A)), writes(A), does(Do::EndCapture(A, 1)), launch(B, 1).one(),
            record(1, B).mended(),
            wait(C, 1).mended(), launch(C, 1).two(),
        ]);
    }

    /// Host functions.
    #[rustfmt::skip] // A row a line or two.
    fn host_functions(&mut self) {
        self.row("a host function reads", Race, vec![
            writes(A).one(), record(1, A).mended(), wait(B, 1).mended(),
            does(Do::Function(B, None, vec![Access::read(BUFFER, 64)])).two(),
        ]);
        self.reported("a host function begins and ends, and nothing is handed over", Race, vec![vec![
            writes(A), does(Do::Function(A, Some(1), Vec::new())), does(Do::Begin(1)).in_function(1),
            step(Do::Host(vec![Access::write(BUFFER, 64)])).in_function(1).one(),
            does(Do::HandOver(1)).in_function(1), does(Do::End(1)).in_function(1),
            does(Do::TakeOver(1)).mended(), host_reads().two(),
        ]]);
        self.reported("a host function writes after it has handed over", Race, vec![vec![
            does(Do::Function(A, Some(1), Vec::new())), does(Do::Begin(1)).in_function(1),
            does(Do::HandOver(1)).in_function(1).faulty(),
            step(Do::Host(vec![Access::write(BUFFER, 64)])).in_function(1).one(),
            does(Do::HandOver(1)).in_function(1).mended(), does(Do::End(1)).in_function(1),
            does(Do::TakeOver(1)), host_reads().two(),
        ]]);
        self.row("work after a host function is in another stream", Race, vec![
            does(Do::Function(A, Some(1), Vec::new())), record(1, A), wait(B, 1).mended(),
            reads(B).two(),
            does(Do::Begin(1)).in_function(1),
            step(Do::Host(vec![Access::write(BUFFER, 64)])).in_function(1).one(),
            does(Do::End(1)).in_function(1),
        ]);
    }

    /// Threads. In submission order they are independent, but each error is there in every order.
    #[rustfmt::skip] // A row a line or two.
    fn threads_in_submission_order(&mut self) {
        self.threads("two threads, each with a stream", Race, vec![
            vec![writes(A).one().stage(1), record(1, A).mended().stage(1)],
            vec![wait(B, 1).mended().late(2), reads(B).two().late(2)],
        ]);
        self.threads("a third thread's wait does not help", Race, vec![
            vec![writes(A).one(), record(1, A)],
            vec![wait(B, 1).mended().stage(1), reads(B).two().stage(1)],
            vec![wait(C, 1).stage(1), touches(C, Access::read(BUFFER, 64)).stage(1)],
        ]);
        self.threads("threads that record one event", Race, vec![
            vec![writes(A).one(), record(1, A).mended(), record(1, A).faulty()],
            vec![touches(C, Access::write(OTHER, 4)), record(1, C).faulty().stage(1),
                record(2, C).mended().stage(1)],
            vec![wait(B, 1).stage(2), reads(B).two().stage(2)],
        ]);
        self.threads("halves by two threads, and the whole by a third", Race, vec![
            vec![touches(A, Access::write(BUFFER, 32)).one(), record(1, A)],
            vec![touches(C, Access::write(BUFFER + 32, 32)), record(2, C)],
            vec![wait(B, 2).stage(1), wait(B, 1).mended().stage(1), reads(B).two().stage(1)],
        ]);
    }

    /// Threads that only reported operations order.
    #[rustfmt::skip] // A row a line or two.
    fn threads_in_reported_order(&mut self) {
        self.reported("one thread waits, another one reads", Race, vec![
            vec![does(Do::Start(1)), writes(A).one().stage(1), stream_sync(A).stage(1),
                does(Do::HandOver(1)).mended().stage(1)],
            vec![touches(C, Access::read(OTHER, 1)).stage(1), does(Do::TakeOver(1)).mended().stage(2),
                host_reads().two().stage(2)],
        ]);
        self.reported("handed over before the wait", Race, vec![
            vec![does(Do::Start(1)), does(Do::HandOver(1)).faulty().stage(1), writes(A).one().stage(1),
                stream_sync(A).stage(1), does(Do::HandOver(1)).mended().stage(1)],
            vec![touches(C, Access::read(OTHER, 1)).stage(1), does(Do::TakeOver(1)).stage(2),
                host_reads().two().stage(2)],
        ]);
        self.reported("two threads hand over, one of them too early", Race, vec![
            vec![does(Do::Start(1)), does(Do::Start(2)), does(Do::HandOver(1)).faulty().stage(1),
                host_writes().one().stage(1),
                does(Do::HandOver(1)).mended().stage(1)],
            vec![touches(C, Access::read(OTHER, 1)).stage(1), does(Do::HandOver(1)).stage(1)],
            vec![touches(B, Access::read(OTHER, 1)).stage(1), does(Do::TakeOver(1)).stage(2),
                host_reads().two().stage(2)],
        ]);
        self.reported("two threads write host memory", Race, vec![
            vec![does(Do::Start(1)), host_writes().one().stage(1),
                does(Do::HandOver(1)).mended().stage(1)],
            vec![touches(B, Access::read(OTHER, 1)).stage(1), does(Do::TakeOver(1)).mended().late(2),
                host_writes().two().late(2)],
        ]);
        self.reported("a started thread, and what its parent does later", Race, vec![
            vec![host_writes().one().mended(), does(Do::Start(1)), host_writes().one().faulty()],
            vec![host_reads().two().stage(1)],
        ]);
        self.reported("a thread that is not joined", Race, vec![
            vec![does(Do::Start(1)), does(Do::Join(1)).mended().late(2), host_reads().two().late(2)],
            vec![host_writes().one().stage(1)],
        ]);
        self.reported("an event is destroyed while another thread records it", Destroyed, vec![
            vec![does(Do::Event(1, false)), does(Do::Start(1)), does(Do::TakeOver(1)).mended().stage(2),
                does(Do::EventDestroy(1)).one().late(2)],
            vec![record(1, A).two().stage(1), does(Do::HandOver(1)).mended().stage(1)],
        ]);
        self.reported("a stream waits for an event while another thread records it", Recorded, vec![
            vec![does(Do::Event(1, false)), does(Do::Start(1)), does(Do::TakeOver(1)).mended().stage(2),
                wait(B, 1).one().late(2)],
            vec![record(1, A).two().stage(1), does(Do::HandOver(1)).mended().stage(1)],
        ]);
        self.reported("a stream is destroyed while another thread submits to it", Destroyed, vec![
            vec![create(A, NonBlocking), does(Do::Start(1)), does(Do::TakeOver(1)).mended().stage(2),
                does(Do::Destroy(A)).one().late(2)],
            vec![writes(A).two().stage(1), does(Do::HandOver(1)).mended().stage(1)],
        ]);
        self.reported("memory is freed while another thread submits work for it", Race, vec![
            vec![allocates(), does(Do::Start(1)), does(Do::TakeOver(1)).mended().stage(2),
                frees().one().late(2)],
            vec![writes(A).two().stage(1), stream_sync(A).stage(1),
                does(Do::HandOver(1)).mended().stage(1)],
        ]);
    }

    /// Other processes.
    #[rustfmt::skip] // A row a line or two.
    fn processes(&mut self) {
        self.row("an interprocess event orders only what was recorded", Race, vec![
            does(Do::Event(1, true)), writes(A).one(), record(1, A).mended(), wait(B, 1),
            reads(B).two(),
        ]);
    }

    /// Warnings.
    #[rustfmt::skip] // A row a line or two.
    fn warnings(&mut self) {
        self.row("a synchronize for an event that was never recorded", NeverRecorded, vec![
            writes(A), record(1, A).mended(), event_sync(1).one().two(),
        ]);
        self.row("a record that is lost", LostRecord, vec![
            writes(A), record(1, A).one(), wait(C, 1).mended(), touches(B, Access::write(OTHER, 4)),
            record(1, B), wait(C, 1).two(),
        ]);
        self.row("a record whose work is pending is lost", LostRecord, vec![
            writes(A), record(1, A).one(), stream_sync(A).mended(),
            touches(B, Access::write(OTHER, 4)), record(1, B),
            event_sync(1).two(),
        ]);
        self.row("a query is not looked at", IgnoredQuery, vec![
            writes(A), record(1, A), query(1, false).one(), event_sync(1).mended(), host_reads().two(),
        ]);
        self.row("a stream's query is not looked at", IgnoredQuery, vec![
            writes(A), does(Do::Query(What::Stream(StreamId(A)), false)).one(),
            stream_sync(A).mended(), host_reads().two(),
        ]);
        self.row("a wait for the stream's own event", UselessWait, vec![
            writes(A), record(1, A), wait(A, 1).one().two().faulty(), wait(B, 1).mended(),
            reads(B).mended(),
        ]);
        self.row("a wait twice", UselessWait, vec![
            writes(A), record(1, A), wait(B, 1), wait(B, 1).one().two().faulty(), reads(B),
        ]);
        self.row("a wait after the host has waited", UselessWait, vec![
            writes(A), record(1, A), event_sync(1).faulty(), wait(B, 1).one().two(), reads(B),
        ]);
        self.row("a wait for an event that was captured", CaptureLeak, vec![
            does(Do::Capture(A)), writes(A), record(1, A), does(Do::EndCapture(A, 1)),
            record(1, A).mended(),
            wait(B, 1).one().two(),
        ]);
        self.row("a stream that is left in a capture", CaptureLeak, vec![
            does(Do::Capture(A)), record(1, A), wait(B, 1), writes(B), record(2, B),
            wait(A, 2).mended(),
            does(Do::EndCapture(A, 1)).one().two(),
        ]);
    }
}

pub(super) fn table() -> Vec<Planted> {
    let mut t = Table::default();
    t.two_streams();
    t.host();
    t.frees();
    t.legacy();
    t.contexts();
    t.values();
    t.graphs();
    t.host_functions();
    t.threads_in_submission_order();
    t.threads_in_reported_order();
    t.processes();
    t.warnings();
    t.0
}
