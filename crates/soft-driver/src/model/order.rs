//! The order checker, and what is remembered for it.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use cuda_order_check::{
    By, Call, Checker, EventId, FunctionId, HostOrder, Location, Mark, Op, Options, ThreadId,
    TokenId, Warnings, What,
};

use crate::model::config::{Config, OrderCheck};
use crate::model::findings::Findings;
use crate::model::thread;
use crate::model::trace::Trace;

/// How many words are remembered that streams wrote in host memory.
const WORDS: usize = 4096;

/// What the host's threads and host functions may tell each other, of which a driver sees nothing.
const TALK: TokenId = TokenId(u64::MAX);

/// A write that can be seen without a call.
pub(crate) struct Visible {
    /// The stream's work up to the write.
    pub(crate) work: Mark,
    /// The bytes, if a copy or a memset wrote them.
    pub(crate) polled: Option<Range<u64>>,
}

/// The checker, and what is remembered for it.
pub(crate) struct Order {
    pub(crate) checker: Checker,
    on: OrderCheck,
    /// The call at work.
    pub(crate) name: &'static str,
    pub(crate) number: u64,
    pub(crate) thread: u32,
    location: Option<Location>,
    /// How the program came there, if it wants that to be said.
    trace: Option<Arc<Trace>>,
    backtraces: bool,
    /// Whether any warning is asked for.
    warns: bool,
    /// Whether only what is told orders the host's threads.
    pub(crate) told: bool,
    /// How many threads had ended when that was looked at last.
    ended: usize,
    /// Threads that have told their names.
    named: HashSet<u32>,
    pub(crate) findings: Findings,
    /// Host functions by the places of their tasks.
    pub(crate) functions: BTreeMap<u64, FunctionId>,
    last_function: u64,
    last_part: u64,
    /// The one that runs, and its thread.
    pub(crate) running: Option<(FunctionId, u32)>,
    /// Writes of values that can be seen without a call, by the places of their tasks.
    pub(crate) visible: BTreeMap<u64, Visible>,
    /// The words in host memory that streams wrote last, by their addresses: their bytes, and the
    /// values. The host may store other values there.
    pub(crate) words: BTreeMap<u64, (u8, u64)>,
    /// Records that other processes see, by their points.
    pub(crate) shared: BTreeMap<u64, Mark>,
    /// The launches of destroyed graphs, by the user objects that they held.
    pub(crate) objects: BTreeMap<u32, Vec<Mark>>,
    /// The launches that come before each destructor that has not begun.
    pub(crate) destructors: VecDeque<Vec<Mark>>,
    /// The launch whose nodes are submitted.
    pub(crate) launch: Option<Launch>,
}

/// What the tasks of a launch are in the checker, in the order of their submission.
pub(crate) struct Launch {
    pub(crate) functions: VecDeque<FunctionId>,
    /// The ends of the copies, memsets, writes of values and signals.
    pub(crate) writes: VecDeque<Mark>,
}

/// A call that waits, from [`Order::caller`].
pub(crate) struct Caller {
    name: &'static str,
    number: u64,
    thread: u32,
    location: Option<Location>,
    trace: Option<Arc<Trace>>,
}

impl Order {
    pub(crate) fn new(config: &Config) -> Option<Box<Self>> {
        if config.check_order == OrderCheck::Off {
            return None;
        }
        let warnings = config.order_warnings;
        Some(Box::new(Self {
            checker: Checker::new(Options {
                warnings,
                host_order: config.order_host,
                ..Options::default()
            }),
            on: config.check_order,
            name: "",
            number: 0,
            thread: 0,
            location: None,
            trace: None,
            backtraces: config.order_backtraces,
            warns: warnings != Warnings::NONE,
            told: config.order_host == HostOrder::Told,
            ended: 0,
            named: HashSet::new(),
            findings: Findings::new(config),
            functions: BTreeMap::new(),
            last_function: 0,
            last_part: 0,
            running: None,
            visible: BTreeMap::new(),
            words: BTreeMap::new(),
            shared: BTreeMap::new(),
            objects: BTreeMap::new(),
            destructors: VecDeque::new(),
            launch: None,
        }))
    }

    /// How much is remembered: places in memory, agents and tasks of the checker, and what is kept
    /// here for work under way.
    #[cfg(test)]
    pub(crate) fn size(&self) -> [usize; 4] {
        let size = self.checker.size();
        let here = self.functions.len() + self.visible.len() + self.shared.len();
        let here = here + self.objects.len() + self.destructors.len();
        [size.ranges, size.agents, size.tasks, here]
    }

    fn call(&self) -> Call {
        let mut call = Call::new(self.name, self.number, ThreadId(u64::from(self.thread)));
        call.location.clone_from(&self.location);
        call.backtrace = self.trace.clone().map(|trace| trace as _);
        call.by = self.by();
        call
    }

    fn by(&self) -> By {
        match self.running {
            Some((function, thread)) if thread == self.thread => By::Function(function),
            _ => By::Thread(ThreadId(u64::from(self.thread))),
        }
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn begin(&mut self, name: &'static str, number: u64, location: Option<Location>) {
        self.name = name;
        self.number = number;
        self.location = location;
        self.trace = self.backtraces.then(|| Arc::new(Trace::here()));
        let thread = thread::number();
        let other = self.thread != thread || self.named.is_empty();
        self.thread = thread;
        if self.told {
            self.forget_threads();
        }
        // The thread of the host functions is none of the program's.
        let function = matches!(self.by(), By::Function(_));
        if other && !function && self.named.insert(thread) {
            let thread = ThreadId(u64::from(self.thread));
            let name = thread::label(self.thread);
            // Reports put the word before it.
            let name = name.strip_prefix("thread ").unwrap_or(&name);
            let call = Call::new("", number, thread);
            self.checker.apply(call, Op::ThreadName { thread, name });
        }
    }

    /// Threads that have ended are no longer waited for by what is forgotten, and what a new thread
    /// knows does not depend on them.
    fn forget_threads(&mut self) {
        let ended = thread::ended();
        if ended == self.ended {
            return;
        }
        self.ended = ended;
        let (number, here) = (self.number, self.thread);
        let gone: Vec<u32> =
            self.named.iter().copied().filter(|it| *it != here && thread::has_ended(*it)).collect();
        for thread in gone {
            self.named.remove(&thread);
            let call = Call::new("", number, ThreadId(u64::from(thread)));
            self.checker.apply(call, Op::ThreadEnd);
        }
    }

    /// The call under way. Other threads' calls and host functions come between, if it waits.
    pub(crate) fn caller(&self) -> Caller {
        let (location, trace) = (self.location.clone(), self.trace.clone());
        Caller { name: self.name, number: self.number, thread: self.thread, location, trace }
    }

    /// A call goes on after it has waited.
    pub(crate) fn resume(&mut self, caller: Caller) {
        Caller {
            name: self.name,
            number: self.number,
            thread: self.thread,
            location: self.location,
            trace: self.trace,
        } = caller;
    }

    pub(crate) fn tell(&mut self, op: Op<'_>) {
        let call = self.call();
        self.tell_as(call, op);
    }

    /// A stream begins. If the program did not create it, reports name no call that did.
    pub(crate) fn stream(&mut self, op: Op<'_>, created: bool) {
        let mut call = self.call();
        if !created {
            call.name = "".into();
        }
        self.tell_as(call, op);
    }

    pub(crate) fn tell_as(&mut self, call: Call, op: Op<'_>) {
        self.checker.apply(call, op);
        self.look();
    }

    fn look(&mut self) {
        for finding in self.checker.take_findings() {
            let error = self.findings.add(finding);
            if error && self.on == OrderCheck::Abort {
                crate::say!(
                    "such accesses may happen in any order on a real device, so the process ends; \
                     with order=report it goes on"
                );
                std::process::abort();
            }
        }
    }

    /// A call has asked about this.
    pub(crate) fn asked(&mut self, what: What, done: bool) {
        if done {
            self.checker.saw(self.by(), what);
            self.look();
        } else if self.warns {
            self.tell(Op::Query { what, done });
        }
    }

    /// A call waits for what is over when it begins.
    pub(crate) fn need_not_wait(&mut self, what: What) {
        if self.warns {
            let mark = self.begin_wait(what);
            self.reached(&mark);
        } else {
            self.asked(what, true);
        }
    }

    /// A call begins to wait.
    pub(crate) fn begin_wait(&mut self, what: What) -> Mark {
        let call = self.call();
        let mark = self.checker.begin_wait(call, what);
        self.look();
        mark
    }

    pub(crate) fn reached(&mut self, mark: &Mark) {
        let call = Call::new(self.name, self.number, ThreadId(u64::from(self.thread)));
        self.checker.reached(&call, mark);
        self.look();
    }

    /// The host may have seen that this is over, without a call.
    pub(crate) fn may_have_seen(&mut self, mark: &Mark) {
        if !self.told {
            self.reached(mark);
        }
    }

    /// The host may have polled these bytes, which the marked work wrote.
    pub(crate) fn may_have_polled(&mut self, mark: &Mark, range: Range<u64>) {
        if !self.told {
            let call = Call::new(self.name, self.number, ThreadId(u64::from(self.thread)));
            self.checker.polled(&call, mark, range);
            self.look();
        }
    }

    /// The host is after what a host function is after that runs: it may have been told so.
    pub(crate) fn hear_of(&mut self, function: FunctionId) {
        if self.told {
            return;
        }
        let (name, number) = (self.name, self.number);
        let thread = By::Thread(ThreadId(u64::from(self.thread)));
        let function = Call { by: By::Function(function), ..Call::new(name, number, ThreadId(0)) };
        self.tell_as(function, Op::HandOver { token: TALK });
        let host = Call { by: thread, ..Call::new(name, number, ThreadId(0)) };
        self.tell_as(host, Op::TakeOver { token: TALK });
    }

    /// A host function is after what the host is after: it may have waited for that.
    pub(crate) fn tell_to(&mut self, function: FunctionId) {
        if self.told {
            return;
        }
        let (name, number) = (self.name, self.number);
        let thread = By::Thread(ThreadId(u64::from(self.thread)));
        let host = Call { by: thread, ..Call::new(name, number, ThreadId(0)) };
        self.tell_as(host, Op::HandOver { token: TALK });
        let function = Call { by: By::Function(function), ..Call::new(name, number, ThreadId(0)) };
        self.tell_as(function, Op::TakeOver { token: TALK });
    }

    /// A stream has written a word in host memory. Where only what is told orders threads, nobody
    /// knows which of them stores another value there.
    pub(crate) fn word_written(&mut self, address: u64, bytes: u8, value: u64) {
        if self.told {
            return;
        }
        if self.words.len() >= WORDS {
            self.words.clear();
        }
        self.words.insert(address, (bytes, value));
    }

    /// These bytes are no longer what a stream wrote to a word.
    pub(crate) fn forget_words(&mut self, base: u64, bytes: u64) {
        let around = base.saturating_sub(7)..base.saturating_add(bytes);
        if self.words.range(around.clone()).next().is_some() {
            self.words.retain(|address, _| !around.contains(address));
        }
    }

    /// A number that no event of the program has.
    pub(crate) fn new_part(&mut self) -> EventId {
        self.last_part += 1;
        EventId((1 << 62) + self.last_part)
    }

    pub(crate) fn new_function(&mut self) -> FunctionId {
        self.last_function += 1;
        FunctionId(self.last_function)
    }
}
