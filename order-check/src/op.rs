//! The vocabulary: calls, handles, accesses and operations.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::panic;
use std::sync::Arc;

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(
            /// The number that the feeder uses for it: a handle, an address or a count.
            pub u64,
        );
    )*};
}

handles! {
    /// A context, or whatever else has a legacy default stream and is synchronized as a whole.
    ContextId;
    /// A stream. The default streams need numbers of their own in each context (and thread).
    StreamId;
    /// An event.
    EventId;
    /// A graph that was defined or captured.
    GraphId;
    /// A thread of the host.
    ThreadId;
    /// One host function in a stream: one number for each submission.
    FunctionId;
    /// What one thread hands to another: a lock, a channel, a message.
    TokenId;
}

/// Who makes a call, or touches memory on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum By {
    /// A thread of the program.
    Thread(ThreadId),
    /// A host function, between [`Op::FunctionBegin`] and [`Op::FunctionEnd`].
    Function(FunctionId),
}

/// A line of source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    /// The file's name.
    pub file: Cow<'static, str>,
    /// The line, from 1 on.
    pub line: u32,
    /// The column, from 1 on; 0 when it is not known.
    pub column: u32,
}

impl From<&'static panic::Location<'static>> for Location {
    fn from(location: &'static panic::Location<'static>) -> Self {
        Self {
            file: Cow::Borrowed(location.file()),
            line: location.line(),
            column: location.column(),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        if self.column > 0 { write!(f, ":{}", self.column) } else { Ok(()) }
    }
}

/// How a program came to a call: a [`std::backtrace::Backtrace`], or any text. Each line of it
/// becomes a line of a report.
pub trait Backtrace: fmt::Debug + fmt::Display + Send + Sync {}

impl<T: fmt::Debug + fmt::Display + Send + Sync> Backtrace for T {}

/// The call that an operation belongs to. Reports name it.
#[derive(Clone, Debug)]
pub struct Call {
    /// The name of the driver's function, or of what else was done.
    pub name: Cow<'static, str>,
    /// Its number in the sequence of calls.
    pub number: u64,
    /// Who made it.
    pub by: By,
    /// Where it was made, if that is known.
    pub location: Option<Location>,
    /// How the program came there, if that is known. Its text is made when a report is printed.
    pub backtrace: Option<Arc<dyn Backtrace>>,
}

impl Call {
    /// A call of a thread, without a source line.
    pub fn new(name: impl Into<Cow<'static, str>>, number: u64, thread: ThreadId) -> Self {
        Self { name: name.into(), number, by: By::Thread(thread), location: None, backtrace: None }
    }

    /// The same call, made at `location`.
    #[must_use]
    pub fn at(mut self, location: impl Into<Location>) -> Self {
        self.location = Some(location.into());
        self
    }
}

/// `call #12 (cuMemcpyHtoDAsync)`.
impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "call #{} ({})", self.number, self.name)
    }
}

/// How bytes are touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccessKind {
    /// They are read.
    Read,
    /// They are written.
    Write,
    /// They are read as one value that others may write at the same time as one value.
    AtomicRead,
    /// They are written as one value.
    AtomicWrite,
    /// A stream waits until they are a value. It looks until they are, so that whatever writes them
    /// meanwhile is seen or is not: a copy or a memset may end the wait as a write of a value may.
    Wait,
    /// They begin to be memory of this program. Whatever was there before is forgotten.
    Allocate,
    /// They end. Nothing may touch them before the next [`Allocate`](Self::Allocate).
    Free,
}

impl AccessKind {
    /// Whether two accesses need an order between them.
    pub(crate) fn conflicts(self, other: Self) -> bool {
        use AccessKind::{Allocate, AtomicRead, AtomicWrite, Free, Read, Wait};
        !matches!(
            (self, other),
            (Read | AtomicRead, Read | AtomicRead)
                | (AtomicWrite, AtomicRead | AtomicWrite)
                | (AtomicRead, AtomicWrite)
        ) && ![self, other].contains(&Wait)
            || [self, other].iter().any(|kind| matches!(kind, Allocate | Free))
    }

    /// Whether everything that conflicts with `earlier` conflicts with this one, which is after it,
    /// as well. Then `earlier` need not be kept. (A wait for a value would have to be after an
    /// allocation, and not after the writes that stand for it.)
    pub(crate) fn replaces(self, earlier: Self) -> bool {
        use AccessKind::{Allocate, AtomicRead, AtomicWrite, Free, Read, Wait, Write};
        match self {
            Write | Allocate | Free => true,
            Read => matches!(earlier, Read | AtomicRead | Wait),
            AtomicWrite => matches!(earlier, AtomicWrite | AtomicRead | Wait),
            AtomicRead => matches!(earlier, AtomicRead | Wait),
            Wait => earlier == Wait,
        }
    }

    pub(crate) fn verb(self) -> &'static str {
        match self {
            Self::Read | Self::AtomicRead | Self::Wait => "reads",
            Self::Write | Self::AtomicWrite => "writes",
            Self::Allocate => "allocates",
            Self::Free => "frees",
        }
    }
}

/// Bytes that an operation touches. Host memory and the memory of all devices are one address
/// space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// How.
    pub kind: AccessKind,
    /// The addresses, the last one excluded. An empty range touches nothing. So the byte at the
    /// last address of all, `u64::MAX`, is part of no access.
    pub range: Range<u64>,
}

impl Access {
    fn new(kind: AccessKind, address: u64, len: u64) -> Self {
        Self { kind, range: address..address.saturating_add(len) }
    }

    /// Reads `len` bytes.
    #[must_use]
    pub fn read(address: u64, len: u64) -> Self {
        Self::new(AccessKind::Read, address, len)
    }

    /// Writes `len` bytes.
    #[must_use]
    pub fn write(address: u64, len: u64) -> Self {
        Self::new(AccessKind::Write, address, len)
    }

    /// Allocates `len` bytes.
    #[must_use]
    pub fn allocate(address: u64, len: u64) -> Self {
        Self::new(AccessKind::Allocate, address, len)
    }

    /// Frees `len` bytes.
    #[must_use]
    pub fn free(address: u64, len: u64) -> Self {
        Self::new(AccessKind::Free, address, len)
    }
}

/// How a stream takes part in the rule of the legacy default stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StreamKind {
    /// It waits for the legacy default stream of its context, and that waits for it. Also a
    /// per-thread default stream.
    Blocking,
    /// It takes no part (`CU_STREAM_NON_BLOCKING`).
    NonBlocking,
    /// It is the legacy default stream of its context.
    Legacy,
}

/// A value in memory that streams write and wait for: 4 or 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cell {
    /// Where it is. Operations on one value must agree about this address.
    pub address: u64,
    /// 4 or 8.
    pub bytes: u8,
}

impl Cell {
    pub(crate) fn range(self) -> Range<u64> {
        self.address..self.address.saturating_add(u64::from(self.bytes))
    }
}

/// When a wait for a value ends, as in `CUstreamWaitValue_flags`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compare {
    /// `(signed)(seen - value) >= 0`, which also holds when a counter wraps.
    GreaterOrEqual,
    /// `seen == value`.
    Equal,
    /// `(seen & value) != 0`.
    And,
    /// `!(seen | value) != 0`.
    Nor,
}

impl Compare {
    pub(crate) fn holds(self, bytes: u8, seen: u64, value: u64) -> bool {
        // The low half, as a number with a sign, for those of 32 bits.
        let narrow = |number: u64| if bytes == 4 { number & 0xFFFF_FFFF } else { number };
        let (seen, value) = (narrow(seen), narrow(value));
        match self {
            Self::GreaterOrEqual => {
                narrow(seen.wrapping_sub(value)) & if bytes == 4 { 1 << 31 } else { 1 << 63 } == 0
            }
            Self::Equal => seen == value,
            Self::And => seen & value != 0,
            Self::Nor => narrow(!(seen | value)) != 0,
        }
    }
}

/// What a graph's node does.
#[derive(Clone, Debug)]
pub enum NodeWork {
    /// It touches memory, or nothing: copies, memsets, kernels, empty nodes.
    Work(Vec<Access>),
    /// It calls a host function, which touches what is known of it beforehand. A launch gives it
    /// its number ([`Op::Launch`]).
    Function(Vec<Access>),
    /// It records an event.
    Record(EventId),
    /// It waits for the last record of an event that was made before the launch.
    Wait(EventId),
    /// It writes a value.
    WriteValue(Cell, u64),
    /// It waits for a value.
    WaitValue(Cell, u64, Compare),
    /// It is another graph, as it is when this node is defined.
    Child(GraphId),
}

/// A node of a graph.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it does.
    pub work: NodeWork,
    /// The nodes that it waits for, by their index. Each is less than the index of the node.
    pub after: Vec<usize>,
}

/// What a host call waits for or asks about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// The work that was submitted to a stream. For a legacy default stream also the blocking
    /// streams of its context.
    Stream(StreamId),
    /// The last record of an event.
    Event(EventId),
    /// All work of a context.
    Context(ContextId),
}

/// One operation. See the [crate] for the order in which they are told.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Op<'a> {
    /// A stream begins. One that was never created is a blocking stream of context 0.
    StreamCreate {
        /// The stream.
        stream: StreamId,
        /// Its context.
        context: ContextId,
        /// Its part in the rule of the legacy default stream.
        kind: StreamKind,
        /// Its name in reports; otherwise its number is used.
        name: Option<&'a str>,
    },
    /// A stream ends. Its work goes on.
    StreamDestroy {
        /// The stream.
        stream: StreamId,
    },
    /// An event begins.
    EventCreate {
        /// The event.
        event: EventId,
        /// Whether other processes may record it: it was opened from a descriptor, or its
        /// descriptor was given away.
        interprocess: bool,
        /// Its name in reports.
        name: Option<&'a str>,
    },
    /// An event ends. Waits that were submitted keep what they wait for.
    EventDestroy {
        /// The event.
        event: EventId,
    },
    /// A context ends, and its streams with it.
    ContextDestroy {
        /// The context.
        context: ContextId,
    },
    /// A thread gets a name for reports.
    ThreadName {
        /// The thread.
        thread: ThreadId,
        /// The name.
        name: &'a str,
    },

    /// A stream does work: a copy, a memset, a kernel, a free in stream order. A kernel whose
    /// accesses nobody knows has none.
    Work {
        /// The stream.
        stream: StreamId,
        /// What it touches.
        accesses: &'a [Access],
    },
    /// An event is recorded in a stream.
    Record {
        /// The event.
        event: EventId,
        /// The stream.
        stream: StreamId,
        /// Whether a capture makes a node of it (`CU_EVENT_RECORD_EXTERNAL`).
        external: bool,
    },
    /// A stream waits for the last record of an event, as it is at this call.
    Wait {
        /// The stream.
        stream: StreamId,
        /// The event.
        event: EventId,
        /// Whether a capture makes a node of it (`CU_EVENT_WAIT_EXTERNAL`).
        external: bool,
    },
    /// A stream waits for the last record of an event as a part of something else: the
    /// launches of one graph come one after the other, say. This is [`Op::Wait`] without warnings
    /// and without a word about other processes.
    Join {
        /// The stream.
        stream: StreamId,
        /// The event.
        event: EventId,
    },
    /// A call was refused because a capture took the work that it is about: an event whose last
    /// record became part of a graph was used after the capture ended, or a capture could not end
    /// because a stream with work in it had not joined. This only gives
    /// [`Warning::CaptureLeak`](crate::Warning::CaptureLeak). Where captures are told the checker
    /// finds that by itself.
    CaptureLeft {
        /// The event, or the stream.
        what: What,
    },
    /// An event records all work of a context (`cuCtxRecordEvent`).
    ContextRecord {
        /// The context.
        context: ContextId,
        /// The event.
        event: EventId,
    },
    /// All later work of a context waits for an event (`cuCtxWaitEvent`).
    ContextWait {
        /// The context.
        context: ContextId,
        /// The event.
        event: EventId,
    },
    /// A stream writes a value.
    WriteValue {
        /// The stream.
        stream: StreamId,
        /// Where.
        cell: Cell,
        /// The value.
        value: u64,
    },
    /// A stream waits for a value.
    WaitValue {
        /// The stream.
        stream: StreamId,
        /// Where.
        cell: Cell,
        /// The value it is compared with.
        value: u64,
        /// How it is compared.
        compare: Compare,
    },
    /// A stream calls a host function.
    Function {
        /// The stream.
        stream: StreamId,
        /// The number of this host function. [`Op::FunctionBegin`] and [`Op::FunctionEnd`] are told
        /// for it, and what it does between them. Without a number it is over as soon as the stream
        /// comes to it.
        function: Option<FunctionId>,
        /// What it touches, as far as that is known beforehand.
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
    /// A capture begins in a stream. Until it ends, what is told of the stream, and of streams that
    /// join, is a node of a graph.
    CaptureBegin {
        /// The stream.
        stream: StreamId,
    },
    /// A capture ends.
    CaptureEnd {
        /// The stream in which it began.
        stream: StreamId,
        /// The number of the graph; None if the driver gave none.
        graph: Option<GraphId>,
    },
    /// A graph has these nodes from now on. What was launched before keeps what it had.
    GraphDefine {
        /// The graph.
        graph: GraphId,
        /// The nodes.
        nodes: &'a [Node],
    },
    /// A graph gets the nodes that another one has now, as a clone or an executable graph does.
    GraphCopy {
        /// The graph that has the nodes.
        from: GraphId,
        /// The graph that gets them.
        to: GraphId,
    },
    /// A graph ends. What was launched goes on.
    GraphDestroy {
        /// The graph.
        graph: GraphId,
    },
    /// A graph is launched into a stream.
    Launch {
        /// The stream.
        stream: StreamId,
        /// The graph.
        graph: GraphId,
        /// The numbers of its host functions, in the order of their nodes. A function that has none
        /// is over as soon as the graph comes to it.
        functions: &'a [FunctionId],
    },
    /// A wait for a value has ended, for all that the driver sees. If a write that was told may
    /// have ended it, then this changes nothing. Otherwise somebody wrote the value whom nobody
    /// told of: the host, another process, or a copy. What comes after the wait is then also after
    /// all that the host is after now, and after all writes of values that were told.
    WaitEnded {
        /// The number of the call that gave the stream the wait.
        call: u64,
        /// Where.
        cell: Cell,
    },

    /// The host touches memory itself, or a call does before it returns.
    Host {
        /// What it touches.
        accesses: &'a [Access],
    },
    /// The host stores a value that streams wait for.
    HostWriteValue {
        /// Where.
        cell: Cell,
        /// The value.
        value: u64,
    },
    /// The host has read this value, which streams write.
    HostSawValue {
        /// Where.
        cell: Cell,
        /// What it read.
        value: u64,
    },
    /// A host call waited, and has returned without an error. All that is submitted when this is
    /// told was waited for; where that is too much, [`Checker::mark`](crate::Checker::mark) when
    /// the call begins and [`Checker::reached`](crate::Checker::reached) after it.
    Synchronize {
        /// What it waited for.
        what: What,
    },
    /// A host call asked, and has returned without an error.
    Query {
        /// What it asked about.
        what: What,
        /// Whether that was done.
        done: bool,
    },

    /// A thread hands something on: it unlocks, sends, or stores with release order.
    HandOver {
        /// What it hands on.
        token: TokenId,
    },
    /// A thread takes what was handed on before: it locks, receives, or loads with acquire order.
    TakeOver {
        /// What it takes.
        token: TokenId,
    },
    /// A thread starts another one, which has made no call yet.
    ThreadStart {
        /// The new thread.
        thread: ThreadId,
    },
    /// A thread has waited for the end of another one.
    ThreadJoin {
        /// The thread that ended.
        thread: ThreadId,
    },
    /// A thread ends.
    ThreadEnd,
}

#[cfg(test)]
mod tests {
    use super::Compare::{And, Equal, GreaterOrEqual, Nor};

    #[test]
    fn values_compare_as_the_driver_compares_them() {
        // A counter that wraps is still greater, of either width.
        assert!(
            GreaterOrEqual.holds(4, 1, 0xFFFF_FFFE) && !GreaterOrEqual.holds(4, 0xFFFF_FFFE, 1)
        );
        assert!(
            GreaterOrEqual.holds(8, 1, u64::MAX)
                && !GreaterOrEqual.holds(8, 0xFFFF_FFFE, 0xFFFF_FFFF)
        );
        assert!(GreaterOrEqual.holds(4, 5, 5) && !GreaterOrEqual.holds(4, 4, 5));
        // Only the low half counts in 32 bits.
        assert!(Equal.holds(4, 0x1_0000_0007, 7) && !Equal.holds(8, 0x1_0000_0007, 7));
        assert!(And.holds(4, 6, 2) && !And.holds(4, 6, 9) && !And.holds(4, 1 << 32, 1 << 32));
        assert!(
            Nor.holds(4, 6, 9) && !Nor.holds(4, 0xFFFF_FFF0, 0xF) && Nor.holds(8, 0xFFFF_FFF0, 0xF)
        );
    }
}
