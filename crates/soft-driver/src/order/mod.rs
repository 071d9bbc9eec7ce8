//! What the order checker's feed is given: handles for the places in this driver's tables, and the
//! accesses of this driver's tasks and nodes.
//!
//! It is given everything under the machine's lock, so in the order in which the calls took effect.
//! While a capture is under way it is given nothing of its streams: the nodes of a graph are given
//! when it is instantiated, and a launch names them.

pub(crate) mod findings;
pub(crate) mod reports;

use std::sync::Arc;

use cuda_order_check::feed::{self, Creator, GraphNode, GraphWork, Memory, Observer};
use cuda_order_check::findings::Findings;
use cuda_order_check::trace::Trace;
use cuda_order_check::{
    Access, Backtrace, Cell, Compare, ContextId, EventId, Finding, GraphId, Options, StreamId,
    StreamKind, Stride, ThreadId,
};

use crate::abi::*;
use crate::context::Context;
use crate::engine::work::Task;
use crate::event::Event;
use crate::graph::{Exec, NodeKind};
use crate::machine::State;
use crate::machine::config::{Config, OrderCheck};
use crate::machine::handles::Table;
use crate::machine::thread;
use crate::memory::blocks::{Block, Extent};
use crate::memory::work::MemoryWork;
use crate::memory::{Keeper, Kind, Place};
use crate::stream::Stream;
use crate::values::{ValueOperation, ValueWait, Word};

/// What the feed is given, and where its findings go.
pub(crate) type Feed = feed::Feed<Reports>;

/// The threads of this process, and the findings.
pub(crate) struct Reports {
    pub(crate) findings: Findings,
    aborts: bool,
    backtraces: bool,
    /// Whether it is still to be printed that reports can show stacks.
    hint: bool,
    exitcode: u8,
}

impl Observer for Reports {
    fn thread(&self) -> ThreadId {
        ThreadId(u64::from(thread::number()))
    }

    fn thread_name(&self, thread: ThreadId) -> String {
        let name = thread::label(thread.0 as u32);
        name.strip_prefix("thread ").unwrap_or(&name).to_owned()
    }

    fn backtrace(&self) -> Option<Arc<dyn Backtrace>> {
        self.backtraces.then(|| Arc::new(Trace::here()) as _)
    }

    fn ended_threads(&self) -> usize {
        thread::ended()
    }

    fn has_ended(&self, thread: ThreadId) -> bool {
        thread::has_ended(thread.0 as u32)
    }

    fn finding(&mut self, finding: Finding) {
        if !self.findings.add(finding, "") {
            return;
        }
        if std::mem::take(&mut self.hint) {
            self.findings.note("set order_backtraces=on to see how the program came to the calls");
        }
        if self.exitcode != 0 {
            findings::exit::set(self.exitcode);
        }
        if self.aborts {
            crate::say!(
                "such accesses may happen in any order on a real device, so the process ends; \
                 with order=report it goes on"
            );
            std::process::abort();
        }
    }
}

/// The feed of a driver, if its order is to be checked.
pub(crate) fn new_feed(config: &Config) -> Option<Box<Feed>> {
    let aborts = match config.check_order {
        OrderCheck::Off => return None,
        OrderCheck::Report => false,
        OrderCheck::Abort => true,
    };
    let (warnings, host_order) = (config.order_warnings, config.order_host);
    let options = Options::new().warnings(warnings).host_order(host_order);
    let backtraces = config.order_backtraces;
    let findings = findings::new(config);
    let (hint, exitcode) = (!backtraces, config.order_exitcode);
    let reports = Reports { findings, aborts, backtraces, hint, exitcode };
    Some(Box::new(Feed::new(options, reports)))
}

/// The tables whose handles the feed is given.
pub(crate) struct Handles<'a> {
    contexts: &'a Table<Context>,
    streams: &'a Table<Stream>,
    events: &'a Table<Event>,
    execs: &'a Table<Exec>,
}

impl Handles<'_> {
    pub(crate) fn context(&self, context: u32) -> ContextId {
        ContextId(self.contexts.handle(context))
    }

    pub(crate) fn contexts(&self, contexts: &[u32]) -> Vec<ContextId> {
        contexts.iter().map(|context| self.context(*context)).collect()
    }

    pub(crate) fn stream(&self, stream: u32) -> StreamId {
        StreamId(self.streams.handle(stream))
    }

    pub(crate) fn event(&self, event: u32) -> EventId {
        EventId(self.events.handle(event))
    }

    pub(crate) fn graph(&self, exec: u32) -> GraphId {
        GraphId(self.execs.handle(exec))
    }
}

pub(crate) fn cell(word: &Word) -> Cell {
    Cell { address: word.place.address as u64, bytes: if word.wide { 8 } else { 4 } }
}

fn compare(wait: &ValueWait) -> Compare {
    match wait.condition {
        CU_STREAM_WAIT_VALUE_GEQ => Compare::GreaterOrEqual,
        CU_STREAM_WAIT_VALUE_EQ => Compare::Equal,
        CU_STREAM_WAIT_VALUE_AND => Compare::And,
        _ => Compare::Nor,
    }
}

/// Elements of so many bytes, until they are eight.
fn repeated(value: u32, width: usize) -> u64 {
    let bytes = value.to_le_bytes();
    u64::from_le_bytes(core::array::from_fn(|at| bytes[at % width.clamp(1, 4)]))
}

/// What a memset or copy accesses. What was copied aside was read before. `content` is what a copy
/// writes, if that is known.
fn with_accesses<R>(
    work: &MemoryWork,
    content: Option<u64>,
    give: impl FnOnce(&[Access]) -> R,
) -> R {
    let aside = |place: &Place| matches!(place.keeper, Keeper::Staged(_));
    match work {
        MemoryWork::Set { to, value, width, count } => {
            let set = Access::write(to.address as u64, (width * count) as u64);
            give(&[set.filled(repeated(*value, *width))])
        }
        MemoryWork::Copy { to, from, bytes } => {
            let read = if aside(from) { 0 } else { *bytes as u64 };
            let read = Access::read(from.address as u64, read);
            let write = Access::write(to.address as u64, *bytes as u64);
            let filled = content.map(|content| write.clone().filled(content));
            give(&[read, filled.unwrap_or(write)])
        }
        MemoryWork::SetRows(set) => {
            let content = repeated(set.value, set.element);
            let rows = rows(&set.to, set.extent, Access::write).into_iter();
            give(&rows.map(|row| row.filled(content)).collect::<Vec<_>>())
        }
        MemoryWork::CopyRows(copy) => {
            let mut all = rows(&copy.to, copy.extent, Access::write);
            if !aside(&copy.from.place) {
                all.extend(rows(&copy.from, copy.extent, Access::read));
            }
            give(&all)
        }
    }
}

/// The accesses of a block. Other work may be about what is between its rows.
pub(crate) fn rows(block: &Block, extent: Extent, access: fn(u64, u64) -> Access) -> Vec<Access> {
    let pieces = block.pieces(extent).into_iter();
    let alike = |(address, bytes, rows, pitch): (usize, usize, usize, usize)| {
        let (width, pitch) = (bytes as u64, pitch as u64);
        access(address as u64, width).rows(rows as u64, Stride { width, pitch })
    };
    pieces.map(alike).collect()
}

/// What the small copy from host memory writes: what is there now.
fn copied_content(feed: &Feed, work: &MemoryWork) -> Option<u64> {
    let MemoryWork::Copy { from, .. } = work else { return None };
    let host = matches!(from.keeper, Keeper::Staged(_))
        || feed.memory(from.address as u64) == Some(Memory::Host);
    host.then(|| work.content()).flatten()
}

/// The work of a graph's node.
fn node_work(kind: &NodeKind) -> Vec<GraphWork> {
    match kind {
        // Child graphs have been replaced by their nodes.
        NodeKind::Empty | NodeKind::Busy(_) | NodeKind::Child(_) => Vec::new(),
        NodeKind::Declared(accesses) => vec![GraphWork::Work(accesses.clone())],
        NodeKind::Host(_) => vec![GraphWork::Function],
        NodeKind::Memory(work) => {
            vec![GraphWork::Write(with_accesses(work, None, <[Access]>::to_vec))]
        }
        NodeKind::Record(event) => vec![GraphWork::Record(EventId(*event))],
        NodeKind::Wait(event) => vec![GraphWork::Wait(EventId(*event))],
        NodeKind::Values(batch) => {
            let work = |operation: &ValueOperation| match operation {
                ValueOperation::Wait(wait) => {
                    GraphWork::WaitValue(cell(&wait.word), wait.value, compare(wait))
                }
                ValueOperation::Write(write) => {
                    GraphWork::WriteValue(cell(&write.word), write.value)
                }
                ValueOperation::Nothing => GraphWork::Work(Vec::new()),
            };
            batch.operations.iter().map(work).collect()
        }
        NodeKind::Semaphores(of) => {
            let work = if of.signals { GraphWork::Signal } else { GraphWork::WaitSemaphore };
            let points = of.points.iter();
            points.map(|point| work(point.semaphore.order.clone(), point.value)).collect()
        }
    }
}

impl State {
    /// Gives the feed something, if the order is checked.
    #[inline]
    pub(crate) fn feed<R>(&mut self, give: impl FnOnce(&mut Feed, Handles<'_>) -> R) -> Option<R> {
        if self.feed.is_none() { None } else { self.feed_now(give) }
    }

    #[cold]
    #[inline(never)]
    fn feed_now<R>(&mut self, give: impl FnOnce(&mut Feed, Handles<'_>) -> R) -> Option<R> {
        let Self { contexts, streams, events, graphs, feed, .. } = self;
        let execs = &graphs.execs;
        feed.as_mut().map(|feed| give(feed, Handles { contexts, streams, events, execs }))
    }

    /// A new stream.
    pub(crate) fn feed_stream(&mut self, stream: u32, creator: Creator) {
        let of = &self.streams[stream];
        let kind = match of.flags & CU_STREAM_NON_BLOCKING {
            _ if of.is_legacy => StreamKind::Legacy,
            0 => StreamKind::Blocking,
            _ => StreamKind::NonBlocking,
        };
        let (context, device) = (of.context, self.contexts[of.context].device);
        self.feed(|feed, of| {
            feed.stream_create(of.stream(stream), (of.context(context), device), kind, creator);
        });
    }

    /// The call allocates memory, registers it, or opens that of another process.
    pub(crate) fn feed_allocation(&mut self, base: usize, bytes: usize, kind: Kind) {
        let memory = match kind {
            Kind::Device | Kind::Pooled(_) => Memory::Device,
            Kind::Host(_) | Kind::Registered(_) => Memory::Host,
            Kind::Managed => Memory::Managed,
            Kind::Imported(..) => Memory::Exported,
        };
        self.feed(|feed, _| feed.allocate(base as u64, bytes as u64, memory));
    }

    /// A task is given to a stream, at this place in the order of submission.
    pub(crate) fn feed_task(&mut self, stream: u32, place: u64, task: &Task) {
        self.feed(|feed, of| {
            let (stream, at) = (of.stream(stream), Some(place));
            match task {
                Task::Memory(work) => {
                    if let Some(word) = work.word() {
                        feed.find_stored(cell(&word), || word.load());
                    }
                    let content = copied_content(feed, work);
                    with_accesses(work, content, |all| feed.write(stream, at, all));
                }
                Task::Busy(_) => feed.work(stream, &[]),
                Task::Host(_) => feed.function(stream, place),
                Task::WaitValue(wait, _) => {
                    let cell = cell(&wait.word);
                    feed.find_stored(cell, || wait.word.load());
                    feed.wait_value(stream, cell, wait.value, compare(wait));
                }
                Task::WriteValue(write, _) => {
                    let cell = cell(&write.word);
                    feed.find_stored(cell, || write.word.load());
                    feed.write_value(stream, at, cell, write.value);
                }
                Task::WaitSemaphore(of, _) => {
                    feed.wait_semaphore(stream, &of.semaphore.order, of.value);
                }
                Task::SignalSemaphore(of, _) => {
                    feed.signal(stream, at, &of.semaphore.order, of.value);
                }
                Task::Free(region) => feed.free_async(stream, region.base as u64),
                Task::Complete(_) | Task::Wait(_) | Task::WaitShared(_) | Task::Running(_) => {}
            }
        });
    }

    /// The call itself reads, or will write, ordinary memory of the program.
    pub(crate) fn feed_pageable(&mut self, place: &Place, accesses: impl FnOnce() -> Vec<Access>) {
        if place.pageable() {
            self.feed(|feed, _| feed.pageable(&accesses()));
        }
    }

    /// A memset or a copy begins. The host may see the bytes before it has ended.
    pub(crate) fn feed_memory_begins(&mut self, place: u64, work: &MemoryWork) {
        self.feed(|feed, _| {
            feed.written(place, work.changes());
            if let Some(to) = work.places().next() {
                feed.forget_words(to.address as u64, work.bytes() as u64);
            }
        });
    }

    /// It has ended.
    pub(crate) fn feed_memory_ends(&mut self, work: &MemoryWork) {
        self.feed(|feed, _| {
            if let (Some(word), Some(content)) = (work.word(), work.content()) {
                feed.word_written(cell(&word), content);
            }
        });
    }

    /// The nodes of an executable graph, as they are now.
    pub(crate) fn feed_graph(&mut self, exec: u32) {
        if self.feed.is_none() {
            return;
        }
        let nodes = self.graphs.execs[exec].nodes.iter();
        let node = |(kind, after): (&NodeKind, &Vec<usize>)| GraphNode {
            work: node_work(kind),
            after: after.clone(),
        };
        let nodes = nodes.map(|of| node((&of.kind, &of.after))).collect();
        self.feed(|feed, of| feed.graph(of.graph(exec), nodes));
    }

    /// An executable graph is launched, whose nodes are then submitted one after the other.
    pub(crate) fn feed_launch(&mut self, exec: u32, stream: u32) {
        if self.feed.is_none() {
            return;
        }
        // What the host has stored before is before the whole launch.
        let batches = self.graphs.execs[exec].nodes.iter().filter_map(|node| match &node.kind {
            NodeKind::Values(batch) => Some(&batch.operations),
            _ => None,
        });
        let words: Vec<Word> =
            batches.flatten().filter_map(ValueOperation::word).cloned().collect();
        self.feed(|feed, of| {
            words.iter().for_each(|word| feed.find_stored(cell(word), || word.load()));
            feed.launch(of.stream(stream), of.graph(exec));
        });
    }
}
