//! The call under way, the thread that makes it, and what it does to the order of the host.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::checker::{Checker, HostOrder, Options};
use crate::map::{Map, Set};
use crate::op::{
    Access, Backtrace, By, Call, Cell, FunctionId, Location, Op, StreamId, ThreadId, TokenId,
};
use crate::report::{Finding, Problem, Report};
use crate::task::Mark;

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
pub(super) struct Visible {
    /// The stream's work up to the write.
    pub(super) work: Mark,
    /// The bytes, if a copy or a memset wrote them.
    pub(super) polled: Option<Range<u64>>,
    pub(super) call: Call,
}

/// The part of a [`Feed`](super::Feed) that knows the call under way and the threads.
pub struct CallFeed<O> {
    pub(super) checker: Checker,
    pub(super) observer: O,
    /// Whether only reported order orders the host's threads.
    pub(super) reported_order: bool,
    /// The call under way. It is the thread's, also inside a host function.
    pub(super) call: Arc<Call>,
    ended_threads: usize,
    named: Set<ThreadId>,
    /// One of these, whose call began last: most calls are the last thread's again.
    last_named: Option<ThreadId>,
    /// Host functions by their places.
    pub(super) functions: BTreeMap<u64, FunctionId>,
    last_function: u64,
    /// The host functions that run, by their threads: each context has a thread of its own for them.
    running: Map<ThreadId, FunctionId>,
}

impl<O: Observer> CallFeed<O> {
    pub(super) fn new(options: Options, observer: O) -> Self {
        Self {
            checker: Checker::new(options),
            observer,
            reported_order: options.host_order == HostOrder::Reported,
            call: Arc::new(Call::new("", 0, ThreadId(0))),
            ended_threads: 0,
            named: Set::default(),
            last_named: None,
            functions: BTreeMap::new(),
            last_function: 0,
            running: Map::default(),
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

    /// A call of this thread begins. Findings about the next methods name this call.
    pub fn begin(&mut self, name: &'static str, number: u64, location: Option<Location>) {
        let thread = self.observer.thread();
        let backtrace = self.observer.backtrace();
        let by = By::Thread(thread);
        self.set_current(Call { name: name.into(), number, by, location, backtrace });
        if self.reported_order {
            self.end_threads(thread);
        }
        // The thread of the host functions is none of the program's.
        let function = matches!(self.by(), By::Function(_));
        if !function && self.last_named.replace(thread) != Some(thread) && self.named.insert(thread)
        {
            let name = self.observer.thread_name(thread);
            let call = Call::new("", number, thread);
            self.checker.apply(call, Op::ThreadName { thread, name: &name });
        }
    }

    /// The driver calls something within the call under way.
    pub(super) fn begin_within(&mut self, name: &'static str) {
        self.begin(name, self.call.number, None);
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
        self.last_named = None;
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
        self.last_named = None;
        if self.named.remove(&thread) {
            self.checker.apply(Call::new("", self.call.number, thread), Op::ThreadEnd);
        }
    }

    /// The current call. Keep it for [`resume`](Self::resume) if other calls may come while it
    /// waits.
    #[must_use]
    pub fn caller(&self) -> Call {
        Call::clone(&self.call)
    }

    /// The number of the call under way.
    pub fn call_number(&self) -> u64 {
        self.call.number
    }

    /// A call goes on after it has waited: it is the current call again.
    pub fn resume(&mut self, caller: Call) {
        self.set_current(caller);
    }

    /// This is the call under way. One that nothing was kept of gives its place to the next.
    fn set_current(&mut self, call: Call) {
        match Arc::get_mut(&mut self.call) {
            Some(place) => *place = call,
            None => self.call = Arc::new(call),
        }
    }

    pub(super) fn by(&self) -> By {
        match self.call.by {
            By::Thread(thread) if !self.running.is_empty() => {
                self.running.get(&thread).copied().map_or(self.call.by, By::Function)
            }
            by => by,
        }
    }

    pub(super) fn apply(&mut self, op: Op<'_>) {
        let by = self.by();
        if by == self.call.by {
            self.checker.apply_shared(&self.call, op);
            self.collect();
        } else {
            self.apply_as(Call { by, ..self.caller() }, op);
        }
    }

    pub(super) fn apply_as(&mut self, call: Call, op: Op<'_>) {
        self.checker.apply(call, op);
        self.collect();
    }

    #[inline]
    pub(super) fn collect(&mut self) {
        if !self.checker.has_findings() {
            return;
        }
        for finding in self.checker.take_findings() {
            self.observer.finding(finding);
        }
    }

    /// A report about a [launch](crate::Launch) is one for the program: no other one of the same two
    /// places is made. Says whether there was none before.
    pub fn confirm(&mut self, report: &Report) -> bool {
        self.checker.confirm(report)
    }

    /// How often the two places of each report were found without an order.
    pub fn times(&mut self, reports: &[Report]) -> Vec<u64> {
        reports.iter().map(|report| self.checker.times(report)).collect()
    }

    pub(super) fn reach(&mut self, mark: &Mark) {
        self.checker.reached(&self.call, mark);
        self.collect();
    }

    /// The host may have seen that this is done, without a call.
    pub(super) fn may_have_seen(&mut self, Visible { work, polled, call }: &Visible) {
        if self.reported_order {
            return;
        }
        self.checker.assume("the host has seen what a stream writes for it", call);
        match polled {
            Some(range) => {
                self.checker.polled(&self.call, work, range.clone());
                self.collect();
            }
            None => self.reach(work),
        }
    }

    pub(super) fn may_have_seen_now(&mut self, work: Mark) {
        self.may_have_seen(&Visible { work, polled: None, call: self.caller() });
    }

    /// A call of the current thread has failed with this code: it would have ordered something, in a
    /// stream or for the thread. A report about accesses that it would have ordered names it.
    pub fn call_failed(&mut self, stream: Option<StreamId>, code: u32) {
        let call = Call { by: self.by(), ..self.caller() };
        self.checker.failed(call, stream, code);
    }

    /// The current call makes an order that is not known, but counts as one: an error may be missed.
    pub fn assume(&mut self, what: &'static str) {
        self.checker.assume(what, &self.call);
    }

    /// The orders that were assumed: of what, after which function, and how often.
    pub fn assumed(&self) -> impl Iterator<Item = (&'static str, &str, u64)> {
        self.checker.assumed()
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
            let call = Call { location: None, backtrace: None, by, ..self.caller() };
            self.apply_as(call, op);
        }
    }

    /// The call under way uses an event or a stream that an earlier call has destroyed
    /// ([`Problem::UseAfterDestroy`]), or destroys one that another thread's earlier call, which
    /// has not returned, uses ([`Problem::DestroyedWhileUsed`]).
    pub fn object_misused(&mut self, problem: Problem, earlier: Call) {
        let calls = [earlier, self.caller()].map(Arc::new);
        self.checker.object_misused(problem, calls);
        self.collect();
    }

    /// The call may order anything, or access anything. All work before it, including the host's,
    /// counts as ordered before all work after it.
    pub fn barrier(&mut self) {
        self.apply(Op::Barrier);
    }

    fn begin_function(&mut self, function: FunctionId) {
        self.running.insert(self.observer.thread(), function);
        self.begin_within("a host function");
    }

    /// Whether a host function runs on this thread: it has begun and not ended.
    #[must_use]
    pub fn runs_function(&self, thread: ThreadId) -> bool {
        self.running.contains_key(&thread)
    }

    pub(super) fn new_function(&mut self) -> FunctionId {
        self.last_function += 1;
        FunctionId(self.last_function)
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
        self.running.retain(|_, running| *running != function);
    }
}
