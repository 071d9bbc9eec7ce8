//! The vocabulary: calls, handles, accesses and operations.

mod access;
mod call;
mod handle;
mod value;

pub use access::{Access, AccessKind, Launch, Launched, Other, Stride};
pub use call::{Backtrace, Call, Location};
pub use handle::{By, ContextId, EventId, FunctionId, GraphId, StreamId, ThreadId, TokenId};
pub use value::{Cell, Compare};

/// A stream's relation to the legacy default stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StreamKind {
    /// It waits for the legacy default stream of its context, and that stream waits for it.
    /// Per-thread default streams are of this kind.
    Blocking,
    /// It does not wait for the legacy default stream (`CU_STREAM_NON_BLOCKING`).
    NonBlocking,
    /// It is the legacy default stream of its context.
    Legacy,
}

/// The work of a graph's node.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum NodeWork {
    /// Accesses memory, or nothing: copies, memsets, kernels, empty nodes.
    Work(Vec<Access>),
    /// Calls a host function. The accesses are those known in advance. A launch gives it its number
    /// ([`Op::Launch`]).
    Function(Vec<Access>),
    /// Records an event.
    Record(EventId),
    /// Waits for the last record of an event before the launch.
    Wait(EventId),
    /// Writes a value.
    WriteValue(Cell, u64),
    /// Waits for a value.
    WaitValue(Cell, u64, Compare),
    /// Contains another graph, in its state when this node is defined.
    Child(GraphId),
}

/// A node of a graph.
#[derive(Clone, Debug)]
pub struct Node {
    /// The work of the node.
    pub work: NodeWork,
    /// The nodes that it waits for, by index. Each index is less than the node's own.
    pub after: Vec<usize>,
}

/// The object of a host call that waits or queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// The work submitted to a stream; for a legacy default stream also that of the blocking
    /// streams of its context.
    Stream(StreamId),
    /// The last record of an event.
    Event(EventId),
    /// All work of a context.
    Context(ContextId),
}

/// One operation. See the [crate] for the order in which to report operations.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Op<'a> {
    /// Creates a stream. A stream that is never created is a blocking stream of context 0.
    StreamCreate {
        /// The stream.
        stream: StreamId,
        /// Its context.
        context: ContextId,
        /// Its relation to the legacy default stream.
        kind: StreamKind,
        /// Its name in reports; without a name reports use its number.
        name: Option<&'a str>,
    },
    /// Gives a stream a name. Reports show it beside the stream's number, also reports about
    /// earlier work.
    StreamName {
        /// The stream.
        stream: StreamId,
        /// The name.
        name: &'a str,
    },
    /// Destroys a stream. Its work goes on.
    StreamDestroy {
        /// The stream.
        stream: StreamId,
    },
    /// Creates an event.
    EventCreate {
        /// The event.
        event: EventId,
        /// Whether other processes may record it: it was opened from a descriptor, or its
        /// descriptor was sent to another process.
        interprocess: bool,
        /// Its name in reports.
        name: Option<&'a str>,
    },
    /// Reports that other processes may record an event from now on: its descriptor was taken.
    EventShared {
        /// The event.
        event: EventId,
    },
    /// Destroys an event. Submitted waits stay valid.
    EventDestroy {
        /// The event.
        event: EventId,
    },
    /// Destroys a context with its streams.
    ContextDestroy {
        /// The context.
        context: ContextId,
    },
    /// Names a thread for reports.
    ThreadName {
        /// The thread.
        thread: ThreadId,
        /// The name.
        name: &'a str,
    },

    /// Submits work to a stream: a copy, a memset, a kernel, a free in stream order. A kernel with
    /// unknown accesses has none.
    Work {
        /// The stream.
        stream: StreamId,
        /// Its accesses.
        accesses: &'a [Access],
    },
    /// Records an event in a stream.
    Record {
        /// The event.
        event: EventId,
        /// The stream.
        stream: StreamId,
        /// Whether it becomes a node in a capture (`CU_EVENT_RECORD_EXTERNAL`).
        external: bool,
    },
    /// Makes a stream wait for the last record of an event before this call.
    Wait {
        /// The stream.
        stream: StreamId,
        /// The event.
        event: EventId,
        /// Whether it becomes a node in a capture (`CU_EVENT_WAIT_EXTERNAL`).
        external: bool,
    },
    /// Makes a stream wait for the last record of an event as a part of another operation, such as
    /// the order between launches of one graph. This is [`Op::Wait`] without warnings, and reports
    /// do not mention other processes for it.
    Join {
        /// The stream.
        stream: StreamId,
        /// The event.
        event: EventId,
    },
    /// Reports that the driver refused a call because work is part of a capture. There are two
    /// cases. A call used an event after the end of the capture that contains the event's last
    /// record. Or a capture could not end, because a stream with captured work had not joined. The
    /// only effect is [`Warning::CaptureLeak`](crate::Warning::CaptureLeak). If you report
    /// captures, the checker detects this by itself.
    CaptureLeft {
        /// The event, or the stream.
        what: What,
    },
    /// Records an event for all work of a context (`cuCtxRecordEvent`).
    ContextRecord {
        /// The context.
        context: ContextId,
        /// The event.
        event: EventId,
    },
    /// Makes all later work of a context wait for an event (`cuCtxWaitEvent`).
    ContextWait {
        /// The context.
        context: ContextId,
        /// The event.
        event: EventId,
    },
    /// All work that a stream has by now is also work of another context: a wait for the context
    /// waits for it. So it is of a copy that the other context's device makes.
    ContextShares {
        /// The context.
        context: ContextId,
        /// The stream.
        stream: StreamId,
    },
    /// Orders all work before this call before all work after it, of all streams and contexts and
    /// of the host. In a capture, all earlier nodes come before all later nodes. Use it for a call
    /// that may order something in a way that no other operation describes.
    Barrier,
    /// Writes a value in a stream.
    WriteValue {
        /// The stream.
        stream: StreamId,
        /// The place of the value.
        cell: Cell,
        /// The value.
        value: u64,
    },
    /// Makes a stream wait for a value.
    WaitValue {
        /// The stream.
        stream: StreamId,
        /// The place of the value.
        cell: Cell,
        /// The value it is compared with.
        value: u64,
        /// The condition that ends the wait.
        compare: Compare,
    },
    /// Submits a host function to a stream.
    Function {
        /// The stream.
        stream: StreamId,
        /// The number of this host function. Report [`Op::FunctionBegin`] and [`Op::FunctionEnd`]
        /// with it, and the operations of the function between them. A function without a number is
        /// over when the stream reaches it.
        function: Option<FunctionId>,
        /// Its accesses, as far as they are known in advance.
        accesses: &'a [Access],
    },
    /// A host function begins.
    FunctionBegin {
        /// Its number.
        function: FunctionId,
    },
    /// A host function ends.
    FunctionEnd {
        /// Its number.
        function: FunctionId,
    },
    /// Begins a capture in a stream. Until it ends, operations of the stream and of streams that
    /// join become nodes of a graph.
    CaptureBegin {
        /// The stream.
        stream: StreamId,
    },
    /// Ends a capture.
    CaptureEnd {
        /// The stream in which it began.
        stream: StreamId,
        /// The number of the graph; `None` if the driver returned no graph.
        graph: Option<GraphId>,
    },
    /// Defines the nodes of a graph. Earlier launches keep the earlier nodes.
    GraphDefine {
        /// The graph.
        graph: GraphId,
        /// The nodes.
        nodes: &'a [Node],
    },
    /// Copies the current nodes of one graph to another, as for a clone or an executable graph.
    GraphCopy {
        /// The graph to copy from.
        from: GraphId,
        /// The graph to copy to.
        to: GraphId,
    },
    /// Destroys a graph. Earlier launches go on.
    GraphDestroy {
        /// The graph.
        graph: GraphId,
    },
    /// Launches a graph into a stream.
    Launch {
        /// The stream.
        stream: StreamId,
        /// The graph.
        graph: GraphId,
        /// The numbers of its host functions, in the order of their nodes. A function without a
        /// number is over when the graph reaches it.
        functions: &'a [FunctionId],
    },
    /// Reports that the driver saw the end of a wait for a value.
    ///
    /// If a reported write may have ended the wait, this has no effect. Otherwise an unreported
    /// writer ended it: the host, another process, or a copy. The work after the wait is then also
    /// ordered after everything that the host is ordered after now, and after all reported writes
    /// of values.
    WaitEnded {
        /// The number of the call that submitted the wait.
        call: u64,
        /// The place of the value.
        cell: Cell,
    },

    /// The call allocates memory. It is an access of the host of the kind
    /// [`Allocate`](AccessKind::Allocate), and reports name the allocation of their bytes.
    Allocate {
        /// The first address.
        address: u64,
        /// The number of bytes.
        bytes: u64,
    },
    /// The same of a part of an address range that the program reserved. Parts beside each other are one
    /// memory for whatever has an address in one of them.
    Map {
        /// The first address.
        address: u64,
        /// The number of bytes.
        bytes: u64,
    },
    /// The host accesses memory, or a call does so before it returns.
    Host {
        /// The accesses.
        accesses: &'a [Access],
    },
    /// The host stores a value that streams wait for.
    HostWriteValue {
        /// The place of the value.
        cell: Cell,
        /// The value.
        value: u64,
    },
    /// A value was found in memory that no reported write has written: the host or another process
    /// has stored it, at some time before this report. An operation that sees the value is ordered
    /// after everything that the host is ordered after now, and after all reported writes of
    /// values.
    FoundValue {
        /// The place of the value.
        cell: Cell,
        /// The value.
        value: u64,
    },
    /// The host has read a value that streams write.
    HostSawValue {
        /// The place of the value.
        cell: Cell,
        /// The value that it read.
        value: u64,
    },
    /// A host call has waited, and has returned without an error. It waited for all work submitted
    /// up to this report. If that is too much, use [`Checker::mark`](crate::Checker::mark) when the
    /// call begins and [`Checker::reached`](crate::Checker::reached) when it returns.
    Synchronize {
        /// The object that it waited for.
        what: What,
    },
    /// A host call has queried, and has returned without an error.
    Query {
        /// The object that it queried.
        what: What,
        /// Whether the work was done.
        done: bool,
    },

    /// A thread hands over: it unlocks, sends, or stores with release order.
    HandOver {
        /// The handover.
        token: TokenId,
    },
    /// A thread takes over: it locks, receives, or loads with acquire order.
    TakeOver {
        /// The handover.
        token: TokenId,
    },
    /// A thread starts another thread, which has made no call yet.
    ThreadStart {
        /// The new thread.
        thread: ThreadId,
    },
    /// A thread has waited for the end of another thread.
    ThreadJoin {
        /// The thread that ended.
        thread: ThreadId,
    },
    /// A thread ends.
    ThreadEnd,
}
