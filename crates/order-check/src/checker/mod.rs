//! The checker: the order of all agents, and the operations that create it.
//!
//! Each layer has its own state, and uses only those below it: graphs, events, streams, tasks, and
//! the accesses with the agents that do them.

mod accesses;
mod events;
mod graphs;
mod host;
mod nearby;
mod options;
mod queue;
mod reports;
mod slots;
mod streams;
mod tasks;
mod threads;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use crate::checker::events::Events;
use crate::checker::graphs::Graphs;
use crate::checker::tasks::Tasks;
use crate::op::{By, Call, GraphId, Node, Op, StreamId, What};
use crate::report::{Finding, Problem, Report};
use crate::shadow::Origin;
use crate::task::{Action, Mark};

pub use options::{HostOrder, Options, Size, Warnings};

/// The maximum of tasks that are held back. Beyond it the oldest go on, as if ordered from outside.
const TASKS: usize = 1 << 16;

/// Finds unordered accesses in a sequence of operations. See the [crate].
#[derive(Debug)]
pub struct Checker {
    events: Events,
    graphs: Graphs,
    retire_every: usize,
    until_retire: usize,
}

impl Default for Checker {
    fn default() -> Self {
        Self::new(Options::default())
    }
}

impl Checker {
    /// Creates a checker without operations.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let Options { host_order, warnings, unseen_writers, retire_every } = options;
        let mut events = Events::default();
        let tasks = &mut events.streams.tasks;
        tasks.unseen_writers = unseen_writers;
        tasks.accesses.threads.order = host_order;
        tasks.accesses.reports.warnings = warnings;
        // The first slot is the host's.
        tasks.accesses.slots.begin();
        let graphs = Graphs::default();
        Self { events, graphs, retire_every, until_retire: retire_every }
    }

    fn tasks(&mut self) -> &mut Tasks {
        &mut self.events.streams.tasks
    }

    /// Adds a thread whose start was not reported.
    fn ensure(&mut self, by: By) {
        let accesses = &mut self.tasks().accesses;
        accesses.threads.ensure(&mut accesses.slots, by);
    }

    /// Returns the findings since the last call.
    ///
    /// Each pair of places is reported once. A place is the source line of the call; without a
    /// source line it is the lines of the program in the call's backtrace; without a backtrace it is
    /// the function and its stream or thread.
    pub fn take_findings(&mut self) -> Vec<Finding> {
        self.tasks().accesses.reports.take()
    }

    #[inline]
    pub(crate) fn has_findings(&self) -> bool {
        self.events.streams.tasks.accesses.reports.has_some()
    }

    /// The current memory use.
    #[must_use]
    pub fn size(&self) -> Size {
        let tasks = &self.events.streams.tasks;
        Size {
            ranges: tasks.accesses.len(),
            agents: tasks.accesses.slots.len(),
            events: self.events.len(),
            objects: tasks.accesses.objects(),
            tasks: tasks.queue.len(),
            values: tasks.values.len(),
            touched: tasks.accesses.touched() + tasks.values.touched(),
        }
    }

    /// Marks the work for which a call is about to wait.
    ///
    /// Use it in programs with several threads. [`Op::Synchronize`], reported when the call
    /// returns, would also count work that another thread submitted meanwhile.
    #[must_use]
    pub fn mark(&self, what: What) -> Mark {
        self.events.mark(what)
    }

    /// Marks the work for which a call is about to wait, and adds the warnings about that wait.
    ///
    /// It is [`mark`](Self::mark) with warnings.
    pub fn begin_wait(&mut self, call: Call, what: What) -> Mark {
        self.ensure(call.by);
        self.events.begin_wait(&Arc::new(call), what)
    }

    /// Reports a call that would have made an order, and that failed with this code. Reports about
    /// accesses that it would have ordered name it.
    pub(crate) fn failed(&mut self, call: Call, stream: Option<StreamId>, code: u32) {
        self.tasks().accesses.reports.failed(call, stream, code);
    }

    /// An order that is not known counts as one, so an error may be missed.
    pub(crate) fn assume(&mut self, what: &'static str, after: &Call) {
        self.tasks().accesses.reports.assume(what, after);
    }

    /// The orders that were assumed: of what, after which call, and how often.
    pub(crate) fn assumed(&self) -> impl Iterator<Item = (&'static str, &str, u64)> {
        self.events.streams.tasks.accesses.reports.assumed()
    }

    /// The call whose end some work waits for: that of a host function, or of a wait for a value.
    pub(crate) fn held_back_by(&self, mark: &Mark) -> Option<&Arc<Call>> {
        self.events.streams.tasks.queue.held_back_by(mark.pending().next()?)
    }

    /// Whether some work waits for the end of a host function.
    pub(crate) fn is_behind_function(&self, mark: &Mark) -> bool {
        mark.pending().any(|task| self.events.streams.tasks.queue.is_behind_function(task))
    }

    /// Marks the nodes of the last graph that [`Op::Launch`] has launched. Each mark is the end of
    /// a node: the work of the node, and all work that comes before it. A second call returns
    /// nothing.
    ///
    /// A launch into a stream that is captured has no such marks.
    pub fn launched(&mut self) -> Vec<Mark> {
        self.graphs.launched()
    }

    /// The capture that a stream is in.
    pub(crate) fn capture_of(&self, stream: StreamId) -> Option<u64> {
        self.events.streams.capture_of(stream)
    }

    /// The nodes of a graph.
    pub(crate) fn nodes(&self, graph: GraphId) -> Option<Arc<[Node]>> {
        self.graphs.nodes(graph).cloned()
    }

    /// Reports that a host call has waited for the marked work, and has returned without an error.
    pub fn reached(&mut self, call: &Call, mark: &Mark) {
        self.ensure(call.by);
        self.events.streams.acquire(call.by, mark);
    }

    /// Whether the host is after the marked work: calls have waited for it, or have seen that it is
    /// done. The threads of the host count as one, as in [`HostOrder::Submission`].
    #[must_use]
    pub fn host_is_after(&self, mark: &Mark) -> bool {
        self.events.host_is_after(mark)
    }

    /// Reports that the host has seen that this work is done.
    ///
    /// This is [`Op::Query`] with `done`, but without a call, so no finding names one. It is
    /// cheaper than that operation.
    pub fn saw(&mut self, by: By, what: What) {
        self.ensure(by);
        self.events.saw(by, what);
    }

    /// Reports that the marked work is done, and that the host may have seen this without a call,
    /// by polling `range`: bytes that the last operation of the work wrote.
    ///
    /// Later calls are after the work. But a read of `range` by the host ([`Op::Host`]) is reported
    /// unless a call has waited for that write, or has seen that it is done: only a value shows that
    /// it was polled, and the checker does not see it.
    pub fn polled(&mut self, call: &Call, mark: &Mark, range: Range<u64>) {
        self.ensure(call.by);
        // It has waited for nothing.
        let polled = std::mem::take(&mut self.tasks().accesses.polled);
        self.events.streams.acquire(call.by, mark);
        self.tasks().accesses.polled = polled;
        self.tasks().accesses.may_be_polled(mark, &range);
    }

    /// The second call uses an event or a stream that the first has destroyed, or destroys one that
    /// the first, which is under way, uses.
    pub(crate) fn object_misused(&mut self, problem: Problem, calls: [Arc<Call>; 2]) {
        let tasks = self.tasks();
        let origins = calls.map(|call| {
            let agent = tasks.actor(&call).0.agent;
            Origin::new(call, agent)
        });
        tasks.accesses.object_misused(problem, origins);
    }

    /// A report about a launch is one for the program: no other one of the same two places is made.
    /// Says whether there was none before.
    pub fn confirm(&mut self, report: &Report) -> bool {
        let sides = [&report.first, &report.second].map(|side| (&*side.call, &side.agent));
        self.tasks().accesses.reports.is_new(sides)
    }

    /// How often the two places of a report were found without an order.
    pub fn times(&mut self, report: &Report) -> u64 {
        let sides = [&report.first, &report.second].map(|side| (&*side.call, &side.agent));
        self.tasks().accesses.reports.times(sides)
    }

    /// Applies the next operation, which is a part of `call`. [`Call::by`] is the thread or host
    /// function that made the call.
    pub fn apply(&mut self, call: Call, op: Op<'_>) {
        self.apply_shared(&Arc::new(call), op);
    }

    pub(crate) fn apply_shared(&mut self, call: &Arc<Call>, op: Op<'_>) {
        self.ensure(call.by);
        self.operation(call, op);
        let streams = &mut self.events.streams;
        streams.tasks.drain();
        while streams.tasks.queue.len() > TASKS
            && let Some(oldest) = streams.tasks.queue.oldest()
        {
            streams.force(oldest);
        }
        self.until_retire = self.until_retire.saturating_sub(1);
        if self.until_retire == 0 {
            self.until_retire = self.retire_every.max(2 * self.events.retire());
        }
    }

    fn operation(&mut self, call: &Arc<Call>, op: Op<'_>) {
        let (events, graphs) = (&mut self.events, &mut self.graphs);
        match op {
            Op::StreamCreate { stream, context, kind, name } => {
                events.streams.stream_create(call, stream, context, kind, name);
            }
            Op::StreamName { stream, name } => events.streams.stream_name(stream, name),
            Op::StreamDestroy { stream } => events.streams.stream_destroy(call, stream),
            Op::EventCreate { event, interprocess, name } => {
                events.event_create(call, event, interprocess, name);
            }
            Op::EventShared { event } => events.event_shared(event),
            Op::EventDestroy { event } => events.event_destroy(call, event),
            Op::ContextDestroy { context } => events.streams.context_destroy(call, context),
            Op::ThreadName { thread, name } => events.streams.tasks.thread_name(thread, name),
            Op::Work { stream, accesses } => {
                events.streams.work(call, stream, Action::Work(Cow::Borrowed(accesses)));
            }
            Op::Record { event, stream, external } => events.record(call, event, stream, external),
            Op::Wait { stream, event, external } => events.wait(call, stream, event, external),
            Op::Join { stream, event } => events.join(call, stream, event),
            Op::CaptureLeft { what } => events.capture_left(call, what),
            Op::ContextRecord { context, event } => events.context_record(call, context, event),
            Op::ContextWait { context, event } => events.context_wait(call, context, event),
            Op::ContextShares { context, stream } => events.streams.context_shares(context, stream),
            Op::Barrier => events.streams.barrier(call),
            Op::WriteValue { stream, cell, value } => {
                events.streams.work(call, stream, Action::WriteValue(cell, value));
            }
            Op::WaitValue { stream, cell, value, compare } => {
                events.streams.work(call, stream, Action::WaitValue(cell, value, compare));
            }
            Op::Function { stream, function, accesses } => {
                events.streams.function(call, stream, function, accesses);
            }
            Op::FunctionBegin { function } => events.streams.function_begin(function),
            Op::FunctionEnd { function } => events.streams.tasks.function_end(function),
            Op::CaptureBegin { stream } => events.streams.capture_begin(stream),
            Op::CaptureEnd { stream, graph } => {
                let nodes = events.capture_end(call, stream);
                nodes.zip(graph).into_iter().for_each(|(nodes, graph)| graphs.insert(graph, nodes));
            }
            Op::GraphDefine { graph, nodes } => graphs.graph_define(graph, nodes),
            Op::GraphCopy { from, to } => graphs.graph_copy(from, to),
            Op::GraphDestroy { graph } => graphs.graph_destroy(graph),
            Op::Launch { stream, graph, functions } => {
                graphs.launch(events, call, stream, graph, functions);
            }
            Op::WaitEnded { call: wait, cell } => events.streams.wait_ended(call, wait, cell),
            Op::Allocate { address, bytes } => events.streams.tasks.allocate(call, address, bytes),
            Op::Map { address, bytes } => events.streams.tasks.map(call, address, bytes),
            Op::Host { accesses } => events.streams.tasks.host(call, accesses),
            Op::HostWriteValue { cell, value } => {
                events.streams.tasks.host_write_value(call, cell, value);
            }
            Op::FoundValue { cell, value } => events.streams.tasks.found_value(call, cell, value),
            Op::HostSawValue { cell, value } => {
                events.streams.tasks.host_saw_value(call, cell, value);
            }
            Op::Synchronize { what } => events.synchronize(call, what),
            Op::Query { what, done } => events.query(call, what, done),
            Op::HandOver { token } => events.streams.tasks.hand_over(call, token),
            Op::TakeOver { token } => events.streams.tasks.take_over(call, token),
            Op::ThreadStart { thread } => events.streams.tasks.thread_start(call, thread),
            Op::ThreadJoin { thread } => events.streams.tasks.thread_join(call, thread),
            Op::ThreadEnd => events.streams.tasks.thread_end(call),
        }
    }
}
