//! What the order checker is told.
//!
//! Everything is told under the machine's lock, so that the checker hears of calls in the order in
//! which they took effect. While a capture is under way nothing is told of its streams: the nodes
//! of a graph are told when it is instantiated, and a launch names them.

use core::ops::Range;
use std::collections::VecDeque;

use cuda_order_check::{
    Access, By, Call, Cell, Compare, ContextId, EventId, FunctionId, GraphId, Location, Mark, Node,
    NodeWork, Op, StreamId, StreamKind, Stride, ThreadId, TokenId, What,
};

use crate::abi::*;
use crate::model::blocks::{Block, Extent};
use crate::model::call_frame::CallFrame;
use crate::model::event::EventState;
use crate::model::external::{Semaphore, SemaphorePoint};
use crate::model::graph::NodeKind;
use crate::model::machine::State;
use crate::model::mem_ops::{ValueOperation, ValueWait, Word};
use crate::model::memory::{Keeper, Kind, Place};
use crate::model::memory_work::MemoryWork;
use crate::model::order::{Caller, Launch, Visible};
use crate::model::shared_memory::Backing;
use crate::model::thread;
use crate::model::work::{Origin, Task};

fn cell(word: &Word) -> Cell {
    Cell { address: word.place.address as u64, bytes: if word.wide { 8 } else { 4 } }
}

fn semaphore_cell(semaphore: &Semaphore) -> Cell {
    Cell { address: semaphore.address(), bytes: 8 }
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

/// Tells what a memset or copy touches. What was copied aside was read before. `content` is what a
/// copy writes, if that is known.
fn with_accesses<R>(
    work: &MemoryWork,
    content: Option<u64>,
    tell: impl FnOnce(&[Access]) -> R,
) -> R {
    let none = Access::read(0, 0);
    let aside = |place: &Place| matches!(place.keeper, Keeper::Staged(_));
    match work {
        MemoryWork::Set { to, value, width, count } => {
            let set = Access::write(to.address as u64, (width * count) as u64);
            tell(&[set.filled(repeated(*value, *width))])
        }
        MemoryWork::Copy { to, from, bytes } => {
            let read = match aside(from) {
                true => none,
                false => Access::read(from.address as u64, *bytes as u64),
            };
            let write = Access::write(to.address as u64, *bytes as u64);
            let known = content.map(|content| write.clone().filled(content));
            tell(&[read, known.unwrap_or(write)])
        }
        MemoryWork::SetRows(set) => {
            let mut all = rows(&set.to, set.extent, Access::write);
            for row in &mut all {
                *row = row.clone().filled(repeated(set.value, set.element));
            }
            tell(&all)
        }
        MemoryWork::CopyRows(copy) => {
            let mut all = rows(&copy.to, copy.extent, Access::write);
            if !aside(&copy.from.place) {
                all.extend(rows(&copy.from, copy.extent, Access::read));
            }
            tell(&all)
        }
    }
}

/// The accesses of a block. Other work may be about what is between its rows.
fn rows(block: &Block, extent: Extent, access: fn(u64, u64) -> Access) -> Vec<Access> {
    let pieces = block.pieces(extent).into_iter();
    let alike = |(address, bytes, rows, pitch): (usize, usize, usize, usize)| {
        let (width, pitch) = (bytes as u64, pitch as u64);
        access(address as u64, width).rows(rows as u64, Stride { width, pitch })
    };
    pieces.map(alike).collect()
}

/// Memory that begins: whatever was there before is forgotten.
fn anew(base: u64, bytes: u64) -> Access {
    Access::allocate(base, bytes)
}

/// The most bytes of a flag that the host polls.
const FLAG: usize = 8;

/// What a call waits for, from its begin to its end.
pub(crate) struct Awaited(Vec<Mark>);

impl State {
    /// A call begins.
    #[cold]
    #[inline(never)]
    pub(crate) fn order_call(&mut self, call: &CallFrame) {
        if let Some(order) = &mut self.order {
            order.begin(call.name(), call.number, None);
        }
    }

    /// The call under way, before it gives up the lock.
    #[cold]
    pub(crate) fn order_caller(&self) -> Option<Caller> {
        self.order.as_ref().map(|order| order.caller())
    }

    /// That call has the lock again.
    #[cold]
    pub(crate) fn order_resumes(&mut self, caller: Option<Caller>) {
        if let (Some(order), Some(caller)) = (&mut self.order, caller) {
            order.resume(caller);
        }
    }

    /// What the program tells begins, as a call of its own.
    pub(crate) fn order_call_at(&mut self, call: &CallFrame, location: Option<Location>) {
        if let Some(order) = &mut self.order {
            order.begin(call.name(), call.number, location);
        }
    }

    fn tell(&mut self, op: Op<'_>) {
        if let Some(order) = &mut self.order {
            order.tell(op);
        }
    }

    fn stream_id(&self, stream: u32) -> StreamId {
        StreamId(self.streams.handle(stream))
    }

    fn event_id(&self, event: u32) -> EventId {
        EventId(self.events.handle(event))
    }

    fn context_id(&self, context: u32) -> ContextId {
        ContextId(self.contexts.handle(context))
    }

    pub(crate) fn order_stream(&mut self, stream: u32, per_thread: bool) {
        if self.order.is_none() {
            return;
        }
        let of = &self.streams[stream];
        let kind = match of.flags & CU_STREAM_NON_BLOCKING {
            _ if of.is_legacy => StreamKind::Legacy,
            0 => StreamKind::Blocking,
            _ => StreamKind::NonBlocking,
        };
        let (created, id) = (of.created, self.stream_id(stream));
        let device = self.contexts[of.context].device;
        let (stream, context) = (id, self.context_id(of.context));
        // Each context, and each thread in it, has its own, of one and the same handle.
        let whose = format!("context {:#x}, device {device}", context.0);
        let name = match kind {
            StreamKind::Legacy => Some(format!("0x1 (the legacy default stream of {whose})")),
            _ if per_thread => {
                let thread = thread::label(thread::number());
                let thread = thread.strip_prefix("thread ").unwrap_or(&thread);
                Some(format!("0x2 (the per-thread default stream of thread {thread}, {whose})"))
            }
            _ => None,
        };
        let name = name.as_deref();
        let Some(order) = &mut self.order else { return };
        order.stream(Op::StreamCreate { stream, context, kind, name }, created);
    }

    pub(crate) fn order_stream_ends(&mut self, stream: u32) {
        let stream = self.stream_id(stream);
        self.tell(Op::StreamDestroy { stream });
    }

    pub(crate) fn order_event(&mut self, event: u32) {
        let interprocess = self.events[event].exported;
        let event = self.event_id(event);
        self.tell(Op::EventCreate { event, interprocess, name: None });
    }

    /// The program takes an event's handle: from now on other processes may record it, and wait for
    /// its records.
    pub(crate) fn order_event_exported(&mut self, event: u32) {
        if std::mem::replace(&mut self.events[event].exported, true) || self.order.is_none() {
            return;
        }
        let point = match &self.events[event].state {
            EventState::Pending(point) if !point.is_done() => Some(point.id),
            _ => None,
        };
        let id = self.event_id(event);
        self.tell(Op::EventShared { event: id });
        self.order_shared_record(event, point);
    }

    pub(crate) fn order_event_ends(&mut self, event: u32) {
        let event = self.event_id(event);
        self.tell(Op::EventDestroy { event });
    }

    pub(crate) fn order_context_ends(&mut self, context: u32) {
        let context = self.context_id(context);
        self.tell(Op::ContextDestroy { context });
    }

    /// A record, that the caller then makes.
    #[cold]
    #[inline(never)]
    pub(crate) fn order_record(&mut self, event: u32, stream: u32) {
        if self.order.is_none() {
            return;
        }
        let shared = self.events[event].exported;
        let (event, stream) = (self.event_id(event), self.stream_id(stream));
        if shared {
            // It does not replace an unfinished one.
            self.tell(Op::Wait { stream, event, external: false });
        }
        self.tell(Op::Record { event, stream, external: false });
    }

    /// The events through which other processes can have been told: who waits for one of them may
    /// be after all that was recorded here in any.
    fn shared_events(&self) -> Vec<EventId> {
        let shared = self.events.iter().filter(|(_, event)| event.exported);
        shared.map(|(event, _)| self.event_id(event)).collect()
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn order_wait(&mut self, event: u32, stream: u32) {
        if self.order.is_none() {
            return;
        }
        let shared = self.events[event].exported;
        let (event, stream) = (self.event_id(event), self.stream_id(stream));
        if shared {
            for event in self.shared_events().into_iter().filter(|other| *other != event) {
                self.tell(Op::Join { stream, event });
            }
        }
        self.tell(Op::Wait { stream, event, external: false });
    }

    /// A host call has asked whether a record is done.
    #[cold]
    #[inline(never)]
    pub(crate) fn order_event_asked(&mut self, event: u32, done: bool) {
        let shared = done && self.events[event].exported;
        let events = if shared { self.shared_events() } else { Vec::new() };
        let event = self.event_id(event);
        let Some(order) = &mut self.order else { return };
        order.asked(What::Event(event), done);
        for event in events {
            order.asked(What::Event(event), done);
        }
    }

    /// A host call waits for a record that is done, of an event of this process alone.
    #[cold]
    #[inline(never)]
    pub(crate) fn order_event_over(&mut self, event: u32) {
        let what = What::Event(self.event_id(event));
        if let Some(order) = &mut self.order {
            order.need_not_wait(what);
        }
    }

    /// A call is refused that uses an event whose record is in a graph, outside its capture.
    #[cold]
    #[inline(never)]
    pub(crate) fn order_event_captured(&mut self, event: u32) {
        let what = What::Event(self.event_id(event));
        self.tell(Op::CaptureLeft { what });
    }

    /// A capture cannot end, as these streams have not joined its first one.
    #[cold]
    #[inline(never)]
    pub(crate) fn order_streams_captured(&mut self, streams: &[u32]) {
        for stream in streams {
            let what = What::Stream(self.stream_id(*stream));
            self.tell(Op::CaptureLeft { what });
        }
    }

    /// A host call has asked whether a stream has nothing to do.
    #[cold]
    #[inline(never)]
    pub(crate) fn order_stream_asked(&mut self, stream: u32, done: bool) {
        let what = What::Stream(self.stream_id(stream));
        if let Some(order) = &mut self.order {
            order.asked(what, done);
        }
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn order_await_stream(&self, stream: u32) -> Option<Awaited> {
        let order = self.order.as_ref()?;
        Some(Awaited(vec![order.checker.mark(What::Stream(self.stream_id(stream)))]))
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn order_await_event(&mut self, event: u32) -> Option<Awaited> {
        let shared = self.events[event].exported;
        let others = if shared { self.shared_events() } else { Vec::new() };
        let event = self.event_id(event);
        let order = self.order.as_mut()?;
        let own = order.begin_wait(What::Event(event));
        let mark = |event: EventId| order.checker.mark(What::Event(event));
        let others = others.into_iter().filter(|other| *other != event).map(mark);
        Some(Awaited([own].into_iter().chain(others).collect()))
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn order_await_contexts(&self, contexts: &[u32]) -> Option<Awaited> {
        let order = self.order.as_ref()?;
        let mark = |context: &u32| order.checker.mark(What::Context(self.context_id(*context)));
        Some(Awaited(contexts.iter().map(mark).collect()))
    }

    /// A host call has waited for this.
    #[cold]
    #[inline(never)]
    pub(crate) fn order_reached(&mut self, awaited: Awaited) {
        if let Some(order) = &mut self.order {
            for mark in &awaited.0 {
                order.reached(mark);
            }
        }
    }

    /// An event records all work of a context, and of those that belong to it.
    pub(crate) fn order_context_record(&mut self, contexts: &[u32], event: u32, collector: u32) {
        if self.order.is_none() {
            return;
        }
        if let [context] = contexts {
            let (context, event) = (self.context_id(*context), self.event_id(event));
            self.tell(Op::ContextRecord { context, event });
            return;
        }
        // Through events and a stream that nobody else has.
        let stream = self.stream_id(collector);
        for context in contexts {
            let context = self.context_id(*context);
            let Some(part) = self.order.as_mut().map(|order| order.new_part()) else { return };
            self.tell(Op::ContextRecord { context, event: part });
            self.tell(Op::Join { stream, event: part });
            self.tell(Op::EventDestroy { event: part });
        }
        let event = self.event_id(event);
        self.tell(Op::Record { event, stream, external: false });
    }

    /// Work of a stream begins that comes after all work of these contexts.
    pub(crate) fn order_serial_begins(&mut self, contexts: &[u32], stream: u32) {
        let Some(part) = self.order.as_mut().map(|order| order.new_part()) else { return };
        let stream = self.stream_id(stream);
        for context in contexts {
            let context = self.context_id(*context);
            self.tell(Op::ContextRecord { context, event: part });
            self.tell(Op::Join { stream, event: part });
        }
        self.tell(Op::EventDestroy { event: part });
    }

    /// All later work of these contexts comes after it.
    pub(crate) fn order_serial_ends(&mut self, contexts: &[u32], stream: u32) {
        let Some(part) = self.order.as_mut().map(|order| order.new_part()) else { return };
        let stream = self.stream_id(stream);
        self.tell(Op::Record { event: part, stream, external: false });
        for context in contexts {
            let context = self.context_id(*context);
            self.tell(Op::ContextWait { context, event: part });
        }
        self.tell(Op::EventDestroy { event: part });
    }

    pub(crate) fn order_context_wait(&mut self, contexts: &[u32], event: u32) {
        if self.order.is_none() {
            return;
        }
        let event = self.event_id(event);
        for context in contexts {
            let context = self.context_id(*context);
            self.tell(Op::ContextWait { context, event });
        }
    }

    /// The program names a stream.
    pub(crate) fn order_stream_name(&mut self, stream: u32, name: &str) {
        let stream = self.stream_id(stream);
        self.tell(Op::StreamName { stream, name });
    }

    /// The call allocates memory.
    pub(crate) fn order_allocated(&mut self, base: u64, bytes: usize) {
        if let Some(order) = &mut self.order {
            order.forget_words(base, bytes as u64);
            self.tell(Op::Allocate { address: base, bytes: bytes as u64 });
        }
    }

    /// Memory is given back to its lender.
    pub(crate) fn order_given_back(&mut self, base: u64, bytes: usize) {
        if let Some(order) = &mut self.order {
            order.forget_words(base, bytes as u64);
            self.tell(Op::Host { accesses: &[anew(base, bytes as u64)] });
        }
    }

    pub(crate) fn order_freed(&mut self, base: u64, bytes: usize) {
        if self.order.is_some() {
            self.tell(Op::Host { accesses: &[Access::free(base, bytes as u64)] });
        }
    }

    /// The call itself touches ordinary memory of the program, which may have been anything before.
    pub(crate) fn order_pageable(&mut self, place: &Place, bytes: usize, reads: bool) {
        if self.order.is_none() || !place.pageable() {
            return;
        }
        let address = place.address as u64;
        let anew = anew(address, bytes as u64);
        if reads {
            self.tell(Op::Host { accesses: &[anew, Access::read(address, bytes as u64)] });
        } else {
            self.tell(Op::Host { accesses: &[anew] });
        }
    }

    /// The same for a block.
    pub(crate) fn order_pageable_rows(&mut self, block: &Block, extent: Extent, reads: bool) {
        if self.order.is_none() || !block.place.pageable() {
            return;
        }
        let mut accesses = rows(block, extent, anew);
        if reads {
            accesses.extend(rows(block, extent, Access::read));
        }
        self.tell(Op::Host { accesses: &accesses });
    }

    /// What the program says that its own work touches.
    pub(crate) fn order_told(&mut self, stream: Option<u32>, access: Access) {
        let accesses = &[access];
        match stream {
            Some(stream) => {
                let stream = self.stream_id(stream);
                self.tell(Op::Work { stream, accesses });
            }
            None => self.tell(Op::Host { accesses }),
        }
    }

    /// A thread or a host function hands something on, or takes what was handed on.
    pub(crate) fn order_handed(&mut self, token: u64, over: bool) {
        let token = TokenId(token);
        self.tell(if over { Op::HandOver { token } } else { Op::TakeOver { token } });
    }

    /// The host has read a value that streams write.
    pub(crate) fn order_host_saw(&mut self, cell: Cell, value: u64) {
        self.tell(Op::HostSawValue { cell, value });
    }

    /// A task is given to a stream, at this place in the order of submission.
    #[cold]
    #[inline(never)]
    pub(crate) fn order_task(&mut self, stream: u32, at: u64, task: &Task) {
        let id = self.stream_id(stream);
        self.find_stored(task);
        let polled = match task {
            Task::Memory(work) => self.polled(work),
            _ => None,
        };
        let visible = match task {
            Task::WriteValue(write, _) => self.others_see(&write.word.place),
            // The host and other processes have it too.
            Task::SignalSemaphore(..) => true,
            _ => polled.is_some(),
        };
        let content = match task {
            Task::Memory(work) => self.copied_content(work),
            _ => None,
        };
        let Some(order) = &mut self.order else { return };
        if let Some(Launch { functions, writes }) = &mut order.launch {
            // It was told with the launch.
            match task {
                Task::Host(_) => {
                    if let Some(function) = functions.pop_front() {
                        order.functions.insert(at, function);
                    }
                }
                Task::Memory(_) | Task::WriteValue(..) | Task::SignalSemaphore(..) => {
                    if let Some(work) = writes.pop_front().filter(|_| visible) {
                        order.visible.insert(at, Visible { work, polled });
                    }
                }
                _ => {}
            }
            return;
        }
        match task {
            Task::Memory(work) => {
                let tell = |accesses: &[Access]| order.tell(Op::Work { stream: id, accesses });
                with_accesses(work, content, tell);
                if visible {
                    let work = order.checker.mark(What::Stream(id));
                    order.visible.insert(at, Visible { work, polled });
                }
            }
            Task::Busy(_) => order.tell(Op::Work { stream: id, accesses: &[] }),
            Task::Host(_) => {
                let function = order.new_function();
                order.functions.insert(at, function);
                order.tell(Op::Function { stream: id, function: Some(function), accesses: &[] });
            }
            Task::WaitValue(wait, _) => {
                let (cell, value, compare) = (cell(&wait.word), wait.value, compare(wait));
                order.tell(Op::WaitValue { stream: id, cell, value, compare });
            }
            Task::WriteValue(write, _) => {
                let (cell, value) = (cell(&write.word), write.value);
                order.tell(Op::WriteValue { stream: id, cell, value });
                if visible {
                    let work = order.checker.mark(What::Stream(id));
                    order.visible.insert(at, Visible { work, polled: None });
                }
            }
            Task::WaitSemaphore(SemaphorePoint { semaphore, value, .. }, _) => {
                let (cell, value) = (semaphore_cell(semaphore), semaphore.told_wait(*value));
                let compare = Compare::GreaterOrEqual;
                order.tell(Op::WaitValue { stream: id, cell, value, compare });
            }
            Task::SignalSemaphore(SemaphorePoint { semaphore, value, .. }, _) => {
                let (cell, value) = (semaphore_cell(semaphore), semaphore.told_signal(*value));
                order.tell(Op::WriteValue { stream: id, cell, value });
                let work = order.checker.mark(What::Stream(id));
                order.visible.insert(at, Visible { work, polled: None });
            }
            Task::Free(region) => {
                let bytes = self.memory.0.get(&(region.base as u64)).map_or(0, |of| of.bytes);
                let accesses = &[Access::free(region.base as u64, bytes as u64)];
                order.tell(Op::Work { stream: id, accesses });
            }
            Task::Complete(_) | Task::Wait(_) | Task::WaitShared(_) | Task::Running(_) => {}
        }
    }

    /// What a small copy from host memory writes: what is there now.
    fn copied_content(&self, work: &MemoryWork) -> Option<u64> {
        let MemoryWork::Copy { from, .. } = work else { return None };
        let around = || self.memory.around(from.address as u64);
        let host = matches!(from.keeper, Keeper::Staged(_))
            || around().is_some_and(|(_, allocation)| allocation.kind.is_host());
        host.then(|| work.content()).flatten()
    }

    /// A stream will wait for a word, or write it, where the host can store values as well. If
    /// there is another value than the one that streams have written, the host has stored it.
    fn find_stored(&mut self, task: &Task) {
        match task {
            Task::WaitValue(wait, _) => self.find_stored_word(&wait.word),
            Task::WriteValue(write, _) => self.find_stored_word(&write.word),
            Task::Memory(work) => {
                if let Some(word) = work.word() {
                    self.find_stored_word(&word);
                }
            }
            _ => {}
        }
    }

    fn find_stored_word(&mut self, word: &Word) {
        let cell = cell(word);
        let Some(order) = &mut self.order else { return };
        let Some((bytes, written)) = order.words.get_mut(&cell.address) else { return };
        if *bytes != cell.bytes {
            return;
        }
        let value = word.load();
        if std::mem::replace(written, value) != value {
            order.tell(Op::FoundValue { cell, value });
        }
    }

    /// A memset or a copy begins. Until its end nobody knows what is there.
    pub(crate) fn order_memory_begins(&mut self, work: &MemoryWork) {
        if let Some(order) = &mut self.order
            && let Some(to) = work.places().next()
        {
            order.forget_words(to.address as u64, work.bytes() as u64);
        }
    }

    /// It has ended.
    pub(crate) fn order_memory_ends(&mut self, work: &MemoryWork) {
        if let (Some(word), Some(content)) = (work.word(), work.content()) {
            self.order_word_written(&word, content);
        }
    }

    /// A stream has written a word.
    pub(crate) fn order_word_written(&mut self, word: &Word, value: u64) {
        let around = self.memory.around(word.place.address as u64);
        if around.is_some_and(|(_, allocation)| allocation.kind.is_host())
            && let Some(order) = &mut self.order
        {
            let cell = cell(word);
            let value = if word.wide { value } else { value & u64::from(u32::MAX) };
            order.word_written(cell.address, cell.bytes, value);
        }
    }

    /// The bytes that a copy or a memset writes, if the host may poll them as a flag: as many as one
    /// load of the host reads, in memory that the host can read.
    fn polled(&self, work: &MemoryWork) -> Option<Range<u64>> {
        let (place, bytes) = match work {
            MemoryWork::Set { to, width, count, .. } => (to, width * count),
            MemoryWork::Copy { to, bytes, .. } => (to, *bytes),
            MemoryWork::SetRows(_) | MemoryWork::CopyRows(_) => return None,
        };
        let start = place.address as u64;
        (bytes <= FLAG && self.others_see(place)).then(|| start..start + bytes as u64)
    }

    /// Whether the host can read what is there without a call, or another process can, which may
    /// tell the host.
    fn others_see(&self, place: &Place) -> bool {
        let around = self.memory.around(place.address as u64);
        around.is_some_and(|(_, allocation)| {
            let exported = |backing: &Backing| backing.is_exported();
            allocation.kind.is_host()
                || matches!(allocation.kind, Kind::Imported(..) | Kind::Managed)
                || allocation.region.backing.as_ref().is_some_and(exported)
        })
    }

    /// An interprocess event was recorded, at this point or with nothing to wait for. Once that is
    /// done another process may tell the host.
    #[cold]
    #[inline(never)]
    pub(crate) fn order_shared_record(&mut self, event: u32, point: Option<u64>) {
        let what = What::Event(self.event_id(event));
        let Some(order) = &mut self.order else { return };
        let mark = order.checker.mark(what);
        match point {
            Some(point) => {
                order.shared.insert(point, mark);
            }
            None => order.may_have_seen(&mark),
        }
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn order_shared_done(&mut self, point: u64) {
        if let Some(order) = &mut self.order
            && let Some(mark) = order.shared.remove(&point)
        {
            order.may_have_seen(&mark);
        }
    }

    /// A value was written. If that can be seen without a call, then the host may know from now on
    /// that the stream has come so far; but not if it was there before.
    #[cold]
    #[inline(never)]
    pub(crate) fn order_written(&mut self, at: u64, changes: bool) {
        if let Some(order) = &mut self.order
            && let Some(Visible { work, polled }) = order.visible.remove(&at)
            && changes
        {
            match polled {
                Some(range) => order.may_have_polled(&work, range),
                None => order.may_have_seen(&work),
            }
        }
    }

    /// A wait for a value is over.
    #[cold]
    #[inline(never)]
    pub(crate) fn order_wait_ended(&mut self, wait: &ValueWait, origin: Origin) {
        self.tell_wait_ended(cell(&wait.word), origin);
    }

    /// A wait for an external semaphore is over. The other API may have ended it, of which nothing
    /// is told.
    #[cold]
    #[inline(never)]
    pub(crate) fn order_semaphore_waited(&mut self, point: &SemaphorePoint, origin: Origin) {
        self.tell_wait_ended(semaphore_cell(&point.semaphore), origin);
    }

    fn tell_wait_ended(&mut self, cell: Cell, origin: Origin) {
        let Some(order) = &mut self.order else { return };
        // No thread's call: whichever thread came to see it has done nothing.
        let call = Call::new(order.name, order.number, ThreadId(0));
        let call = Call { by: By::Function(FunctionId(0)), ..call };
        order.tell_as(call, Op::WaitEnded { call: origin.number, cell });
    }

    /// The thread of the host functions begins one.
    pub(crate) fn order_function_begins(&mut self, at: u64) {
        let Some(order) = &mut self.order else { return };
        let Some(&function) = order.functions.get(&at) else { return };
        order.running = Some((function, thread::number()));
        order.begin("a host function", order.number, None);
        order.tell(Op::FunctionBegin { function });
        order.hear_of(function);
    }

    /// It has ended, or is left out.
    pub(crate) fn order_function_ends(&mut self, at: u64) {
        let Some(order) = &mut self.order else { return };
        let Some(function) = order.functions.remove(&at) else { return };
        // One that is left out has no begin.
        order.running = Some((function, thread::number()));
        order.begin("a host function", order.number, None);
        order.tell_to(function);
        order.tell(Op::FunctionEnd { function });
        order.running = None;
    }

    /// The last reference to a user object is gone: its destructor will run.
    pub(crate) fn order_destructor(&mut self, object: u32) {
        if let Some(order) = &mut self.order {
            let launches = order.objects.remove(&object).unwrap_or_default();
            order.destructors.push_back(launches);
        }
    }

    /// The thread of the host functions begins a destructor. They run in the order of
    /// [`order_destructor`](Self::order_destructor).
    pub(crate) fn order_destructor_begins(&mut self) {
        let Some(order) = &mut self.order else { return };
        let launches = order.destructors.pop_front().unwrap_or_default();
        order.begin("a destructor", order.number, None);
        for launches in &launches {
            order.reached(launches);
        }
    }

    pub(crate) fn order_destructor_ends(&mut self) {
        let Some(order) = &mut self.order else { return };
        order.begin("a destructor", order.number, None);
        // It is no thread of the program, and the next function has an order of its own.
        order.tell(Op::ThreadEnd);
    }

    /// The nodes of an executable graph, as they are now.
    pub(crate) fn order_graph(&mut self, exec: u32) {
        self.order_nodes(exec, false);
    }

    /// The same. The signals and waits of binary semaphores have numbers, which each launch takes
    /// anew.
    fn order_nodes(&mut self, exec: u32, launches: bool) {
        if self.order.is_none() {
            return;
        }
        let graph = GraphId(self.execs.handle(exec));
        let mut nodes: Vec<Node> = Vec::new();
        // The last node here of each one there.
        let mut ends: Vec<usize> = Vec::new();
        for node in &self.execs[exec].nodes {
            let mut after: Vec<usize> =
                node.after.iter().filter_map(|node| ends.get(*node).copied()).collect();
            let mut works = match &node.kind {
                // Child graphs have been replaced by their nodes.
                NodeKind::Empty | NodeKind::Busy(_) | NodeKind::Child(_) => {
                    vec![NodeWork::Work(Vec::new())]
                }
                NodeKind::Told(accesses) => vec![NodeWork::Work(accesses.clone())],
                NodeKind::Host(_) => vec![NodeWork::Function(Vec::new())],
                NodeKind::Memory(work) => {
                    vec![NodeWork::Work(with_accesses(work, None, <[Access]>::to_vec))]
                }
                NodeKind::Record(event) => vec![NodeWork::Record(EventId(*event))],
                NodeKind::Wait(event) => vec![NodeWork::Wait(EventId(*event))],
                NodeKind::Values(batch) => {
                    let work = |operation: &ValueOperation| match operation {
                        ValueOperation::Wait(wait) => {
                            NodeWork::WaitValue(cell(&wait.word), wait.value, compare(wait))
                        }
                        ValueOperation::Write(write) => {
                            NodeWork::WriteValue(cell(&write.word), write.value)
                        }
                        ValueOperation::Nothing => NodeWork::Work(Vec::new()),
                    };
                    batch.operations.iter().map(work).collect()
                }
                NodeKind::Semaphores(of) => {
                    let work = |SemaphorePoint { semaphore, value, .. }: &SemaphorePoint| {
                        let cell = semaphore_cell(semaphore);
                        let number = match (semaphore.is_numbered() && !launches, of.signals) {
                            (true, _) => 0,
                            (false, true) => semaphore.told_signal(*value),
                            (false, false) => semaphore.told_wait(*value),
                        };
                        match of.signals {
                            true => NodeWork::WriteValue(cell, number),
                            false => NodeWork::WaitValue(cell, number, Compare::GreaterOrEqual),
                        }
                    };
                    of.points.iter().map(work).collect()
                }
            };
            if works.is_empty() {
                works.push(NodeWork::Work(Vec::new()));
            }
            for work in works {
                nodes.push(Node { work, after });
                after = vec![nodes.len() - 1];
            }
            ends.push(nodes.len() - 1);
        }
        self.tell(Op::GraphDefine { graph, nodes: &nodes });
    }

    /// An executable graph is destroyed. The last destructor of its user objects runs after its
    /// launches.
    pub(crate) fn order_graph_ends(&mut self, exec: u32) {
        let handle = self.execs.handle(exec);
        if let Some(order) = &mut self.order {
            let launches = order.checker.mark(What::Event(EventId(handle)));
            for (object, _) in &self.execs[exec].objects {
                order.objects.entry(*object).or_default().push(launches.clone());
            }
        }
        self.tell(Op::GraphDestroy { graph: GraphId(handle) });
        self.tell(Op::EventDestroy { event: EventId(handle) });
    }

    /// An executable graph is launched, whose nodes are then submitted one after the other.
    pub(crate) fn order_launch_begins(&mut self, exec: u32, stream: u32) {
        if self.order.is_none() {
            return;
        }
        let numbered = |node: &NodeKind| match node {
            NodeKind::Semaphores(of) => of.points.iter().any(|point| point.semaphore.is_numbered()),
            _ => false,
        };
        if self.execs[exec].nodes.iter().any(|node| numbered(&node.kind)) {
            self.order_nodes(exec, true);
        }
        let mut words = Vec::new();
        if self.order.as_ref().is_some_and(|order| !order.words.is_empty()) {
            for node in &self.execs[exec].nodes {
                let NodeKind::Values(batch) = &node.kind else { continue };
                words.extend(batch.operations.iter().filter_map(|operation| match operation {
                    ValueOperation::Wait(wait) => Some(wait.word.clone()),
                    ValueOperation::Write(write) => Some(write.word.clone()),
                    ValueOperation::Nothing => None,
                }));
            }
        }
        words.iter().for_each(|word| self.find_stored_word(word));
        let handle = self.execs.handle(exec);
        let stream = self.stream_id(stream);
        let (graph, last) = (GraphId(handle), EventId(handle));
        let hosts = self.execs[exec].nodes.iter();
        let hosts = hosts.filter(|node| matches!(node.kind, NodeKind::Host(_))).count();
        let Some(order) = &mut self.order else { return };
        let functions: Vec<FunctionId> = (0..hosts).map(|_| order.new_function()).collect();
        // Launches of one graph do not overlap.
        order.tell(Op::Join { stream, event: last });
        order.tell(Op::Launch { stream, graph, functions: &functions });
        let ends = order.checker.launched();
        order.tell(Op::Record { event: last, stream, external: false });
        let mut ends = ends.into_iter();
        let mut writes = VecDeque::new();
        for node in &self.execs[exec].nodes {
            match &node.kind {
                NodeKind::Values(batch) if !batch.operations.is_empty() => {
                    for (operation, end) in batch.operations.iter().zip(&mut ends) {
                        if let ValueOperation::Write(_) = operation {
                            writes.push_back(end);
                        }
                    }
                }
                NodeKind::Semaphores(of) if !of.points.is_empty() => {
                    let ends = ends.by_ref().take(of.points.len());
                    writes.extend(ends.filter(|_| of.signals));
                }
                NodeKind::Memory(_) => writes.extend(ends.next()),
                _ => drop(ends.next()),
            }
        }
        order.launch = Some(Launch { functions: functions.into(), writes });
    }

    pub(crate) fn order_launch_ends(&mut self) {
        if let Some(order) = &mut self.order {
            order.launch = None;
        }
    }
}
