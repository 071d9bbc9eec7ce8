//! The vocabulary: calls, handles, accesses and operations.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::panic::{self, RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(
            /// The number of the object: a handle, an address or a count.
            pub u64,
        );
    )*};
}

handles! {
    /// A context, or another object that has a legacy default stream and is synchronized as a
    /// whole.
    ContextId;
    /// A stream. A default stream needs its own number in each context (and thread).
    StreamId;
    /// An event.
    EventId;
    /// A graph that was defined or captured.
    GraphId;
    /// A thread of the host.
    ThreadId;
    /// A host function in a stream, with one number for each submission.
    FunctionId;
    /// A handover from one thread to another: a lock, a channel, a message.
    TokenId;
}

/// The thread or the host function that makes a call, or that accesses memory on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum By {
    /// A thread of the program.
    Thread(ThreadId),
    /// A host function, between [`Op::FunctionBegin`] and [`Op::FunctionEnd`].
    Function(FunctionId),
}

/// A line of source code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    /// The file's name.
    pub file: Cow<'static, str>,
    /// The line, from 1 on.
    pub line: u32,
    /// The column, from 1 on; 0 if it is not known.
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

/// The path of a program to a call: a [`std::backtrace::Backtrace`], or any text.
///
/// A report shows the lines that are of the program, the call's own function first. Such a line is
/// `upload, at game.cpp:7`, or the name of the function.
pub trait Backtrace: fmt::Debug + fmt::Display + Send + Sync {
    /// A number that only this path has, if that is known. The text is then made once for all calls
    /// that come on this path.
    fn path(&self) -> Option<u64> {
        None
    }

    /// The lines that are enough to know whether two calls came from the same lines of the program.
    fn outline(&self) -> String {
        self.to_string()
    }
}

impl Backtrace for std::backtrace::Backtrace {}
impl Backtrace for String {}
impl Backtrace for &'static str {}

/// The call that an operation belongs to. Findings name it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Call {
    /// The name of the driver's function, or of another action.
    pub name: Cow<'static, str>,
    /// Its number in the sequence of calls.
    pub number: u64,
    /// The thread or the host function that made the call.
    pub by: By,
    /// The source line of the call, if it is known.
    pub location: Option<Location>,
    /// The backtrace of the call, if it is known. Its text is created when a report is printed.
    pub backtrace: Option<Arc<dyn Backtrace>>,
}

impl Call {
    /// A call of a thread, without a source line.
    pub fn new(name: impl Into<Cow<'static, str>>, number: u64, thread: ThreadId) -> Self {
        Self { name: name.into(), number, by: By::Thread(thread), location: None, backtrace: None }
    }

    /// Sets the source line of the call.
    #[must_use]
    pub fn at(mut self, location: impl Into<Location>) -> Self {
        self.location = Some(location.into());
        self
    }
}

/// Backtraces do not count: their text is not there before a report is printed.
impl PartialEq for Call {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, self.number, &self.by, &self.location)
            == (&other.name, other.number, &other.by, &other.location)
    }
}

/// `call #12 (cuMemcpyHtoDAsync)`.
impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "call #{} ({})", self.number, self.name)
    }
}

/// The kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AccessKind {
    /// Reads the bytes.
    Read,
    /// Writes the bytes.
    Write,
    /// Reads one value that others may write at the same time as one value.
    AtomicRead,
    /// Writes the bytes as one value.
    AtomicWrite,
    /// Makes a stream wait until the bytes have a value. The stream checks repeatedly, so it does
    /// not race with writes: a copy or a memset may end the wait, as a write of a value may.
    Wait,
    /// Makes the bytes memory of this program. Earlier accesses are forgotten.
    Allocate,
    /// Forgets earlier accesses, and is none itself: the bytes may be other memory by now, of which
    /// no call tells.
    Forget,
    /// Ends the memory. Nothing may access it before the next [`Allocate`](Self::Allocate).
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
        use AccessKind::{Allocate, AtomicRead, AtomicWrite, Forget, Free, Read, Wait, Write};
        match self {
            Write | Allocate | Forget | Free => true,
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
            Self::Allocate | Self::Forget => "allocates",
            Self::Free => "frees",
        }
    }
}

/// A kernel's launch, of which more can be found out than the addresses among its parameters: what the
/// kernel does there. An access of it ([`Access::of_launch`]) is one that it may make.
///
/// Findings about such an access are candidates. Nothing is forgotten because of them: two launches
/// at the same bytes are both kept, and the next candidate of the same two places comes as well, until
/// the first is [confirmed](crate::feed::CallFeed::confirm).
pub trait Launch: Any + fmt::Debug + Send + Sync + UnwindSafe + RefUnwindSafe {
    /// Two launches with the same number access the same bytes in the same ways.
    fn number(&self) -> u64;

    /// Whether it is known by now that the launch and the other operation need no order. It must
    /// answer at once: what takes longer is done when a candidate is looked at.
    fn is_apart(&self, _shared: &[Range<u64>], _other: &Other<'_>) -> bool {
        false
    }

    /// Whether the launch, which has addresses in these allocations, may meet another operation that is
    /// anywhere in them, and that is not ordered with it. If so, there is a candidate
    /// ([`Report::is_nearby`](crate::Report::is_nearby)), each time, also after one of the same two places
    /// was confirmed. It is asked often, and must answer at once.
    fn is_near(&self, _allocations: &[Range<u64>], _other: &Other<'_>) -> bool {
        false
    }
}

/// The operation that a launch meets.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Other<'a> {
    /// In which way it accesses the bytes.
    pub kind: AccessKind,
    /// All that it accesses in this way. Empty for a launch.
    pub accesses: &'a [Access],
    /// The launch, if it is one.
    pub launch: Option<&'a Launched>,
}

/// A launch that an access belongs to.
#[derive(Clone, Debug)]
pub struct Launched {
    pub(crate) number: u64,
    pub(crate) launch: Arc<dyn Launch>,
}

impl Launched {
    /// The launch is asked for its number now, and once.
    #[must_use]
    pub fn new(launch: Arc<dyn Launch>) -> Self {
        Self { number: launch.number(), launch }
    }

    /// The launch, if it is of this type.
    #[must_use]
    pub fn get<T: Launch>(&self) -> Option<&T> {
        let launch: &dyn Any = &*self.launch;
        launch.downcast_ref()
    }
}

/// The same launch.
impl PartialEq for Launched {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.launch, &other.launch)
    }
}

impl Eq for Launched {}

/// Bytes that an operation accesses. Host memory and the memory of all devices are one address
/// space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The kind of the access.
    pub kind: AccessKind,
    /// The addresses, without the last one. An empty range accesses nothing. So the byte at the
    /// highest address, `u64::MAX`, is part of no access.
    pub range: Range<u64>,
    /// If the access is of rows with gaps between them: their size. The range begins where the
    /// first row begins, and ends where the last row ends.
    pub(crate) stride: Option<Stride>,
    /// Eight bytes that a write repeats from its begin on, or from the begin of each row.
    pub(crate) content: Option<u64>,
    /// The launch that may make it. Of the accesses of an operation the first of each kind has it.
    pub(crate) launch: Option<Launched>,
}

/// The size of rows that have gaps between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stride {
    /// The bytes of a row.
    pub width: u64,
    /// The bytes from the begin of a row to the begin of the next one; more than the width.
    pub pitch: u64,
}

impl Access {
    /// Accesses `len` bytes.
    #[inline]
    #[must_use]
    pub fn new(kind: AccessKind, address: u64, len: u64) -> Self {
        let range = address..address.saturating_add(len);
        Self { kind, range, stride: None, content: None, launch: None }
    }

    /// Accesses rows of this size. The first row begins where the range of `self` begins. A row of
    /// zero bytes accesses nothing; rows without gaps are one range.
    #[must_use]
    pub fn rows(self, rows: u64, stride: Stride) -> Self {
        let Stride { width, pitch } = stride;
        let start = self.range.start;
        let all = rows.checked_sub(1).and_then(|more| more.checked_mul(pitch)?.checked_add(width));
        let end = match all.filter(|_| width > 0) {
            Some(bytes) => start.checked_add(bytes),
            None if rows == 0 || width == 0 => Some(start),
            None => None,
        };
        // Nobody has so many bytes.
        let strided = end.is_some() && rows > 1 && width > 0 && pitch > width;
        let range = start..end.unwrap_or(u64::MAX);
        Self { range, stride: strided.then_some(stride), ..self }
    }

    /// Sets the written bytes: these eight, in little-endian order, repeated from the begin of the
    /// range, or of each row, to its end.
    ///
    /// Set them for a memset, and for a copy of at most eight bytes. The checker uses them if a
    /// stream waits for a value among the bytes.
    #[must_use]
    pub fn filled(self, content: u64) -> Self {
        Self { content: Some(content), ..self }
    }

    /// A launch may make the access. The first access of each kind that the launch has needs this.
    #[must_use]
    pub fn of_launch(mut self, launch: Launched) -> Self {
        self.set_launch(launch);
        self
    }

    /// The same of an access that is in its place already.
    pub fn set_launch(&mut self, launch: Launched) {
        self.launch = Some(launch);
    }

    /// The launch that may make it.
    #[must_use]
    pub fn launch(&self) -> Option<&Launched> {
        self.launch.as_ref()
    }

    /// The value that it writes to these bytes, if it is known. They are at most eight.
    pub(crate) fn content(&self, bytes: &Range<u64>) -> Option<u64> {
        let content = self.content?;
        let mut start = bytes.start.checked_sub(self.range.start)?;
        let len = bytes.end.checked_sub(bytes.start)?;
        let mut all = self.range.end.checked_sub(self.range.start)?;
        if let Some(Stride { width, pitch }) = self.stride {
            start %= pitch;
            all = width;
        }
        let within = start.checked_add(len)? <= all;
        within.then(|| content.rotate_right(8 * (start % 8) as u32))
    }

    /// The size of the rows, if there are gaps between them.
    #[must_use]
    pub fn stride(&self) -> Option<Stride> {
        self.stride
    }

    /// Whether it touches some of these bytes.
    #[must_use]
    pub fn touches(&self, bytes: &Range<u64>) -> bool {
        let within = bytes.start.max(self.range.start)..bytes.end.min(self.range.end);
        match self.stride {
            None => !within.is_empty(),
            Some(_) if within.is_empty() => false,
            Some(Stride { width, pitch }) => {
                let column = (within.start - self.range.start) % pitch;
                column < width || within.end - within.start > pitch - column
            }
        }
    }

    /// Its rows, or all of it.
    pub fn each_row(&self) -> impl Iterator<Item = Range<u64>> {
        let Range { start, end } = self.range;
        let (width, pitch) = match self.stride {
            Some(Stride { width, pitch }) => (width, pitch),
            None => (end - start, u64::MAX),
        };
        let next = move |at: &u64| at.checked_add(pitch).filter(|at| *at < end);
        let first = (start < end).then_some(start);
        std::iter::successors(first, next).map(move |at| at..at.saturating_add(width).min(end))
    }

    /// Reads `len` bytes.
    #[inline]
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

/// A value in memory that streams write and wait for: 4 or 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cell {
    /// Its address. All operations on one value must use the same address.
    pub address: u64,
    /// 4 or 8.
    pub bytes: u8,
}

impl Cell {
    /// Its bytes. The kind is given apart.
    pub(crate) fn access(self) -> Access {
        Access::read(self.address, u64::from(self.bytes))
    }
}

/// The condition that ends a wait for a value, as in `CUstreamWaitValue_flags`.
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

#[cfg(test)]
mod tests {
    use super::Compare::{And, Equal, GreaterOrEqual, Nor};

    #[test]
    fn a_part_has_its_share_of_the_content() {
        use super::{Access, Stride};
        let set = Access::write(0x10, 0x20).filled(0x0807_0605_0403_0201);
        assert_eq!(set.content(&(0x10..0x18)), Some(0x0807_0605_0403_0201));
        assert_eq!(set.content(&(0x14..0x18)).map(|four| four as u32), Some(0x0807_0605));
        assert_eq!(set.content(&(0x2C..0x30)).map(|four| four as u32), Some(0x0807_0605));
        assert_eq!(set.content(&(0x2C..0x34)).or(set.content(&(0xC..0x14))), None);
        assert_eq!(Access::write(0x10, 0x20).content(&(0x10..0x18)), None);
        let rows = set.rows(4, Stride { width: 12, pitch: 20 });
        assert_eq!(rows.content(&(0x24..0x28)).map(|four| four as u32), Some(0x0403_0201));
        assert_eq!(rows.content(&(0x2C..0x30)).map(|four| four as u32), Some(0x0403_0201));
        assert_eq!(rows.content(&(0x18..0x20)), None);
    }

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
        // The sign is that of the word: a difference of half its range is negative.
        let at_zero = |bytes, seen| GreaterOrEqual.holds(bytes, seen, 0);
        assert_eq!([1 << 31, (1 << 31) - 1, 1 << 40].map(|of| at_zero(4, of)), [false, true, true]);
        assert_eq!(
            [1 << 31, 1 << 40, 1 << 63, (1 << 63) - 1].map(|of| at_zero(8, of)),
            [true, true, false, true]
        );
        // Only the low half counts in 32 bits.
        assert!(Equal.holds(4, 0x1_0000_0007, 7) && !Equal.holds(8, 0x1_0000_0007, 7));
        assert!(And.holds(4, 6, 2) && !And.holds(4, 6, 9) && !And.holds(4, 1 << 32, 1 << 32));
        assert!(
            Nor.holds(4, 6, 9) && !Nor.holds(4, 0xFFFF_FFF0, 0xF) && Nor.holds(8, 0xFFFF_FFF0, 0xF)
        );
    }
}
