//! A driver's calls, as operations of the checker.
//!
//! A [`Feed`] has a method for each call that orders work or touches memory. The methods take
//! handles, addresses and sizes, and no state of the driver. So a feed works for a software driver
//! and in front of a real one. It keeps the state that the checker's operations leave to their
//! caller: the memory that the host can read without a call, the words that streams and the host
//! write there, the events of other processes, the nodes of graphs, the host functions, and the
//! names of threads.
//!
//! Call [`Feed::begin`] when a call begins. Then call the methods for the actions of the call, in
//! the order in which the driver accepted the calls. Handles are the numbers of objects, as in
//! [`Op`].
//!
//! ```
//! use cuda_order_check::feed::{Feed, Memory, Observer};
//! use cuda_order_check::{Access, EventId, Finding, Options, StreamId, ThreadId};
//!
//! struct Print;
//!
//! impl Observer for Print {
//!     fn thread(&self) -> ThreadId {
//!         ThreadId(1)
//!     }
//!     fn thread_name(&self, thread: ThreadId) -> String {
//!         thread.0.to_string()
//!     }
//!     fn finding(&mut self, finding: Finding) {
//!         panic!("{finding}");
//!     }
//! }
//!
//! let (one, other, event) = (StreamId(0xa), StreamId(0xb), EventId(0xe));
//! let mut feed = Feed::new(Options::default(), Print);
//! feed.begin("cuMemAlloc_v2", 1, None);
//! feed.allocate(0x7000, 256, Memory::Device);
//! feed.begin("cuMemsetD8Async", 2, None);
//! feed.write(one, None, &[Access::write(0x7000, 256).filled(0)]);
//! feed.begin("cuEventRecord", 3, None);
//! feed.record(event, one);
//! feed.begin("cuStreamWaitEvent", 4, None);
//! feed.wait(other, event);
//! feed.begin("cuLaunchKernel", 5, None);
//! feed.work(other, &[Access::read(0x7000, 256)]);
//! ```

mod graphs;
mod memory;
mod streams;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::checker::{Checker, HostOrder, Mark, Options, Size, Warnings};
use crate::op::{
    Access, Backtrace, By, Call, Cell, EventId, FunctionId, GraphId, Location, Op, ThreadId,
    TokenId,
};
use crate::report::Finding;

pub use graphs::{GraphNode, GraphWork, Semaphore};
pub use memory::Memory;
pub use streams::{Awaited, Creator};

/// The program that sees the calls, as a feed uses it.
pub trait Observer {
    /// The calling thread.
    fn thread(&self) -> ThreadId;

    /// The name of a thread. Reports put "thread" before it.
    fn thread_name(&self, thread: ThreadId) -> String;

    /// The backtrace of the call that begins, if findings are to show it.
    fn backtrace(&self) -> Option<Arc<dyn Backtrace>> {
        None
    }

    /// The number of threads that have ended so far, if that is known.
    fn ended_threads(&self) -> usize {
        0
    }

    /// Whether a thread has ended.
    fn has_ended(&self, _thread: ThreadId) -> bool {
        false
    }

    /// Takes a finding. The feed calls this within the call that led to the finding.
    fn finding(&mut self, finding: Finding);
}

/// What threads and host functions may exchange, of which a driver sees nothing.
const EXCHANGE: TokenId = TokenId(u64::MAX);

/// A write that can be seen without a call.
struct Visible {
    /// The stream's work up to the write.
    work: Mark,
    /// The bytes, if a copy or a memset wrote them.
    polled: Option<Range<u64>>,
}

/// The operations of a launch, in the order of their submission.
struct Launch {
    functions: VecDeque<FunctionId>,
    /// The ends of the copies, memsets, writes of values and signals.
    writes: VecDeque<Mark>,
}

/// A checker that takes a driver's calls. See the [module](self).
///
/// Some operations have a `place`: a number that the caller chooses. With the same number it
/// reports later that the operation begins or is done. An operation without a place may be done at
/// any time.
pub struct Feed<O> {
    checker: Checker,
    observer: O,
    /// Whether any warning is enabled.
    warns: bool,
    /// Whether only reported order orders the host's threads.
    reported_order: bool,
    /// The call under way. It is the thread's, also inside a host function.
    call: Call,
    ended_threads: usize,
    named: HashSet<ThreadId>,
    /// Host functions by their places.
    functions: BTreeMap<u64, FunctionId>,
    last_function: u64,
    last_event: u64,
    /// The host function that runs, and its thread.
    running: Option<(FunctionId, ThreadId)>,
    memory: memory::Places,
    /// Writes that can be seen without a call, by their places.
    visible: BTreeMap<u64, Visible>,
    /// The words in host memory that streams wrote last, by their addresses: their bytes, and the
    /// values. The host may store other values there.
    words: BTreeMap<u64, (u8, u64)>,
    /// Events that other processes may have.
    exported: BTreeSet<EventId>,
    /// Unfinished records of those, by their places.
    records: BTreeMap<u64, Mark>,
    graphs: HashMap<GraphId, Vec<GraphNode>>,
    /// The launches of destroyed graphs, by the user objects that they held.
    objects: BTreeMap<u64, Mark>,
    /// The launches that come before each destructor that has not begun.
    destructors: VecDeque<Mark>,
    /// The launch whose nodes are submitted.
    launch: Option<Launch>,
}

impl<O: fmt::Debug> fmt::Debug for Feed<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { call, observer, .. } = self;
        f.debug_struct("Feed").field("call", call).field("observer", observer).finish()
    }
}

impl<O: Observer> Feed<O> {
    /// Creates a feed without objects.
    #[must_use]
    pub fn new(options: Options, observer: O) -> Self {
        Self {
            checker: Checker::new(options),
            observer,
            warns: options.warnings != Warnings::NONE,
            reported_order: options.host_order == HostOrder::Reported,
            call: Call::new("", 0, ThreadId(0)),
            ended_threads: 0,
            named: HashSet::new(),
            functions: BTreeMap::new(),
            last_function: 0,
            last_event: 0,
            running: None,
            memory: memory::Places::default(),
            visible: BTreeMap::new(),
            words: BTreeMap::new(),
            exported: BTreeSet::new(),
            records: BTreeMap::new(),
            graphs: HashMap::new(),
            objects: BTreeMap::new(),
            destructors: VecDeque::new(),
            launch: None,
        }
    }

    /// The observer.
    pub fn observer(&self) -> &O {
        &self.observer
    }

    /// The observer.
    pub fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }

    /// The memory use of the checker, and the number of unfinished operations that the feed keeps.
    #[must_use]
    pub fn size(&self) -> (Size, usize) {
        let places = self.functions.len() + self.visible.len() + self.records.len();
        (self.checker.size(), places + self.objects.len() + self.destructors.len())
    }

    /// A call of this thread begins. Findings about the next methods name this call.
    pub fn begin(&mut self, name: &'static str, number: u64, location: Option<Location>) {
        let thread = self.observer.thread();
        let other = self.call.by != By::Thread(thread) || self.named.is_empty();
        let backtrace = self.observer.backtrace();
        self.call = Call { name: name.into(), number, by: By::Thread(thread), location, backtrace };
        if self.reported_order {
            self.end_threads(thread);
        }
        // The thread of the host functions is none of the program's.
        let function = matches!(self.by(), By::Function(_));
        if other && !function && self.named.insert(thread) {
            let name = self.observer.thread_name(thread);
            let call = Call::new("", number, thread);
            self.checker.apply(call, Op::ThreadName { thread, name: &name });
        }
    }

    /// Whether a call of this thread has begun. Then another one of its calls may come without
    /// [`begin`](Self::begin), to be given to [`resume`](Self::resume).
    #[must_use]
    pub fn has_begun(&self, thread: ThreadId) -> bool {
        self.named.contains(&thread)
    }

    /// Nothing waits any longer for threads that have ended, and what a new thread is after does
    /// not depend on them.
    fn end_threads(&mut self, here: ThreadId) {
        let ended = self.observer.ended_threads();
        if std::mem::replace(&mut self.ended_threads, ended) == ended {
            return;
        }
        let (number, observer, checker) = (self.call.number, &self.observer, &mut self.checker);
        self.named.retain(|thread| {
            let ends = *thread != here && observer.has_ended(*thread);
            if ends {
                checker.apply(Call::new("", number, *thread), Op::ThreadEnd);
            }
            !ends
        });
    }

    /// A thread has ended, and makes no more calls. An observer that knows of the ends of threads
    /// ([`Observer::has_ended`]) need not call this.
    pub fn thread_ended(&mut self, thread: ThreadId) {
        if self.named.remove(&thread) {
            self.checker.apply(Call::new("", self.call.number, thread), Op::ThreadEnd);
        }
    }

    /// The current call. Keep it for [`resume`](Self::resume) if other calls may come while it
    /// waits.
    #[must_use]
    pub fn caller(&self) -> Call {
        self.call.clone()
    }

    /// A call goes on after it has waited: it is the current call again.
    pub fn resume(&mut self, caller: Call) {
        self.call = caller;
    }

    fn by(&self) -> By {
        match self.running {
            Some((function, thread)) if self.call.by == By::Thread(thread) => {
                By::Function(function)
            }
            _ => self.call.by,
        }
    }

    fn apply(&mut self, op: Op<'_>) {
        self.apply_as(Call { by: self.by(), ..self.call.clone() }, op);
    }

    fn apply_as(&mut self, call: Call, op: Op<'_>) {
        self.checker.apply(call, op);
        self.collect();
    }

    fn collect(&mut self) {
        for finding in self.checker.take_findings() {
            self.observer.finding(finding);
        }
    }

    fn reach(&mut self, mark: &Mark) {
        self.checker.reached(&self.call, mark);
        self.collect();
    }

    /// The host may have seen that this is done, without a call.
    fn may_have_seen(&mut self, Visible { work, polled }: &Visible) {
        if self.reported_order {
            return;
        }
        match polled {
            Some(range) => {
                self.checker.polled(&self.call, work, range.clone());
                self.collect();
            }
            None => self.reach(work),
        }
    }

    /// The host, or a host function, accesses memory.
    pub fn host(&mut self, accesses: &[Access]) {
        self.apply(Op::Host { accesses });
    }

    /// The calling thread or host function hands over: it unlocks, sends, or ends and is joined.
    pub fn hand_over(&mut self, token: TokenId) {
        self.apply(Op::HandOver { token });
    }

    /// The calling thread or host function takes over: it locks, receives, or has joined.
    pub fn take_over(&mut self, token: TokenId) {
        self.apply(Op::TakeOver { token });
    }

    /// The host has read a value that streams write.
    pub fn saw_value(&mut self, cell: Cell, value: u64) {
        self.apply(Op::HostSawValue { cell, value });
    }

    /// `to` may be after everything that `from` is after.
    fn exchange(&mut self, from: By, to: By) {
        if self.reported_order {
            return;
        }
        let both =
            [(from, Op::HandOver { token: EXCHANGE }), (to, Op::TakeOver { token: EXCHANGE })];
        for (by, op) in both {
            let call = Call { location: None, backtrace: None, by, ..self.call.clone() };
            self.apply_as(call, op);
        }
    }

    fn new_function(&mut self) -> FunctionId {
        self.last_function += 1;
        FunctionId(self.last_function)
    }

    fn begin_function(&mut self, function: FunctionId) {
        self.running = Some((function, self.observer.thread()));
        self.begin("a host function", self.call.number, None);
    }

    /// The host function with this place begins on the calling thread. Until its end, calls of this
    /// thread belong to the function.
    pub fn function_begins(&mut self, place: u64) {
        let Some(&function) = self.functions.get(&place) else { return };
        self.begin_function(function);
        self.apply(Op::FunctionBegin { function });
        self.exchange(By::Function(function), self.call.by);
    }

    /// The host function with this place was captured: a launch of its graph submits it anew.
    pub fn function_left(&mut self, place: u64) {
        self.functions.remove(&place);
    }

    /// The host function with this place has ended, or the driver does not call it.
    pub fn function_ends(&mut self, place: u64) {
        let Some(function) = self.functions.remove(&place) else { return };
        // One that is left out has no begin.
        self.begin_function(function);
        self.exchange(self.call.by, By::Function(function));
        self.apply(Op::FunctionEnd { function });
        self.running = None;
    }
}
