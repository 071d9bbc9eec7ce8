//! Events: what one holds, what a record and a wait mean, and its entry points.

use core::ffi::c_uint;

use cuda_order_check_engine::What;

use crate::abi::*;
use crate::arg::{EventArg, Ptr, StreamArg};
use crate::capture::UNSUPPORTED;
use crate::engine::clock;
use crate::engine::work::Task;
use crate::event::state::{Event, EventState};
use crate::graph::{NodeEvent, NodeKind};
use crate::machine::call_frame::CallFrame;
use crate::machine::handles::Kind;
use crate::machine::{Locked, State};
use crate::processes::{self, AVAILABLE, Exporter, SharedEvent};

exports! { $ [event]
    cuEventCreate => event_create;
    cuEventDestroy_v2 => event_destroy;
    cuEventRecord, cuEventRecord_ptsz => event_record;
    cuEventRecordWithFlags, cuEventRecordWithFlags_ptsz => event_record_with_flags;
    cuStreamWaitEvent, cuStreamWaitEvent_ptsz => stream_wait_event;
    cuEventQuery => event_query;
    cuEventSynchronize => event_synchronize;
    cuEventElapsedTime => event_elapsed_time;
    cuEventElapsedTime_v2 => event_elapsed_time;
    cuEventDestroy => event_destroy;
}

pub(crate) mod state;

impl State {
    /// The event that an argument names, if it and its context can be used.
    pub(crate) fn event(&self, call: &CallFrame, event: EventArg) -> Result<u32, CUresult> {
        let index = self.any_event(call, event)?;
        if let Some(what) = self.events[index].shared.as_ref().and_then(|shared| shared.misused()) {
            let what = format!("event {:#x} is an import of {what}", event.addr());
            return Err(self.misuses.undefined(call, &what, INVALID_HANDLE));
        }
        Ok(index)
    }

    /// The same, also if the exporter has destroyed its event.
    fn any_event(&self, call: &CallFrame, event: EventArg) -> Result<u32, CUresult> {
        let index = self.named_event(call, event)?;
        self.usable(self.events[index].context)?;
        Ok(index)
    }

    /// The event that an argument names, also if its context has failed, unless that was destroyed.
    fn named_event(&self, call: &CallFrame, event: EventArg) -> Result<u32, CUresult> {
        let handle = event.addr();
        if handle == 0 {
            return Err(INVALID_HANDLE);
        }
        let index = self
            .events
            .find(handle)
            .map_err(|bad| self.misuses.bad_handle(call, Kind::Event, handle, bad))?;
        if self.events[index].orphan {
            return Err(orphaned(self, call, handle));
        }
        Ok(index)
    }

    /// Whether an event is one that the program has to destroy.
    pub(crate) fn is_live_event(&self, index: u32) -> bool {
        let event = &self.events[index];
        !event.orphan && !self.given_back(event.context, self.events.handle(index))
    }

    /// Records an event: it is done when all is done that was submitted to the stream so far.
    pub(crate) fn record(&mut self, event: u32, stream: u32) {
        let waits = wait_for_unfinished(self, event);
        let timing = self.events[event].timing();
        let mut running = self.running();
        running.begin_operation(stream);
        waits.into_iter().for_each(|wait| running.push(stream, wait));
        if let Some(stamp) = running.record_now(stream, timing) {
            let entry = &mut self.events[event];
            entry.state = EventState::Done(stamp);
            if let Some(shared) = &entry.shared {
                shared.record_done();
                self.feed(|feed, ids| feed.record_exported(ids.event(event), None));
            }
        } else {
            let shared = self.events[event].shared.as_ref().map(|shared| shared.record());
            let point = self.engine.new_point(timing, shared);
            self.events[event].state = EventState::Pending(point.clone());
            if point.shared.is_some() {
                self.feed(|feed, ids| feed.record_exported(ids.event(event), Some(point.id)));
            }
            let mut running = self.running();
            running.push_record(stream, point);
            running.run();
        }
    }

    /// A stream waits for the latest record of an event. For an event that was never recorded, or
    /// whose record is done, there is nothing to wait for.
    pub(crate) fn wait_for(&mut self, stream: u32, event: u32) {
        let entry = &self.events[event];
        let mut waits = entry.waits().peekable();
        // Measured: in the legacy default stream a wait for what is done is an operation, one for
        // what was never recorded is not.
        let is_operation = self.streams[stream].is_legacy && !entry.was_never_recorded();
        if waits.peek().is_none() && !is_operation {
            return;
        }
        let mut running = self.running();
        running.begin_operation(stream);
        waits.for_each(|wait| running.push(stream, wait.task()));
        running.run();
    }
}

/// The program named an event whose context was destroyed before it.
#[cold]
pub(crate) fn orphaned(state: &State, call: &CallFrame, event: u64) -> CUresult {
    let what = format!("event {event:#x} {} (its context was)", state.misuses.fate_of(event));
    state.misuses.undefined(call, &what, CONTEXT_IS_DESTROYED)
}

/// Measured: a record of an interprocess event does not replace an unfinished one, of whatever
/// process: its stream waits for that first.
fn wait_for_unfinished(state: &State, event: u32) -> Vec<Task> {
    let entry = &state.events[event];
    if !entry.is_interprocess() {
        return Vec::new();
    }
    entry.waits().map(|wait| wait.task()).collect()
}

/// Gives a new event its slot.
fn take_slot(state: &mut State, context: u32) -> Result<Box<SharedEvent>, CUresult> {
    if !state.config.ipc || !AVAILABLE {
        return Err(NOT_SUPPORTED);
    }
    let slots = state.config.ipc_slots;
    let exporter = match &mut state.contexts[context].ipc {
        Some(exporter) => exporter,
        none => none.insert(Exporter::create(slots)?),
    };
    exporter.take_slot()
}

/// Takes an event's slot back, when it is this process's to give.
fn free_slot(state: &mut State, context: u32, event: SharedEvent) {
    if let Some(exporter) = &mut state.contexts[context].ipc
        && exporter.owns(&event)
    {
        exporter.free_slot(event);
    }
}

pub(crate) fn event_create(call: &CallFrame, event: Ptr<CUevent>, flags: c_uint) -> Answer {
    let mut state = call.ready()?;
    event.required()?;
    let interprocess = flags & CU_EVENT_INTERPROCESS != 0;
    let known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    if flags & !known != 0 || (interprocess && flags & CU_EVENT_DISABLE_TIMING == 0) {
        return Err(INVALID_VALUE);
    }
    let context = state.current(call)?;
    let shared = if interprocess { Some(take_slot(&mut state, context)?) } else { None };
    let new = Event::new(context, flags, shared);
    let (index, handle) = state.events.insert(call.number, new).ok_or(OUT_OF_MEMORY)?;
    state.feed(|feed, ids| feed.event_create(ids.event(index), false));
    event.put(core::ptr::without_provenance_mut(handle as usize))
}

pub(crate) fn event_destroy(call: &CallFrame, event: EventArg) -> Answer {
    if event.is_null() {
        return Err(INVALID_HANDLE);
    }
    let mut state = call.ready()?;
    let index = state.named_event(call, event)?;
    let context = state.events[index].context;
    state.may_destroy(context, event.addr())?;
    state.misuses.note_destroyed(call, event.addr());
    state.feed(|feed, ids| feed.event_destroy(ids.event(index)));
    // Streams that wait for it share its point.
    if let Some(Event { context, shared: Some(shared), .. }) = state.events.remove(index) {
        free_slot(&mut state, context, *shared);
    }
    Ok(())
}

pub(crate) fn event_record(call: &CallFrame, event: EventArg, stream: StreamArg) -> Answer {
    record_with(call, event, stream, false)
}

fn record_with(call: &CallFrame, event: EventArg, stream: StreamArg, external: bool) -> Answer {
    if event.is_null() {
        return Err(INVALID_HANDLE);
    }
    let mut state = call.ready()?;
    let event = state.event(call, event)?;
    let stream = state.stream(call, stream)?;
    // Measured: a capture takes an external record of any context's event.
    let foreign = !state.go_together(state.events[event].context, state.streams[stream].context);
    if foreign && !(external && state.captures.is_capturing(stream)) {
        return Err(INVALID_HANDLE);
    }
    if !state.quiet() {
        return record_captured_or_checked(call, state, event, stream, external);
    }
    if external {
        return Err(ILLEGAL_STATE);
    }
    state.record(event, stream);
    Ok(())
}

/// A record while a capture is under way, or the order is checked.
#[cold]
#[inline(never)]
fn record_captured_or_checked(
    call: &CallFrame,
    mut state: Locked,
    event: u32,
    stream: u32,
    external: bool,
) -> Answer {
    let State { captures, streams, graphs, events, .. } = &mut *state;
    if external {
        // A record that the graph makes at each launch.
        let record = || NodeKind::Record(NodeEvent::new(events, event));
        let captured = captures.add(streams, graphs, call.number, stream, record)?;
        return if captured { Ok(()) } else { Err(ILLEGAL_STATE) };
    }
    if let Some(mark) = captures.mark(streams, stream)? {
        if events[event].flags & CU_EVENT_INTERPROCESS != 0 {
            return Err(UNSUPPORTED);
        }
        events[event].state = EventState::Captured(Box::new(mark));
        return Ok(());
    }
    state.feed(|feed, ids| feed.record(ids.event(event), ids.stream(stream)));
    state.record(event, stream);
    Ok(())
}

pub(crate) fn event_record_with_flags(
    call: &CallFrame,
    event: EventArg,
    stream: StreamArg,
    flags: c_uint,
) -> Answer {
    if flags & !CU_EVENT_RECORD_EXTERNAL != 0 {
        return call.refuse(INVALID_VALUE);
    }
    record_with(call, event, stream, flags == CU_EVENT_RECORD_EXTERNAL)
}

/// An event that was never recorded, or whose record is done, holds back nothing. In a capturing
/// stream a wait for an event that was never recorded has no effect, and one for an event that was
/// recorded outside of the capture invalidates the capture ([`Captures::wait`]).
///
/// [`Captures::wait`]: crate::capture::Captures::wait
pub(crate) fn stream_wait_event(
    call: &CallFrame,
    stream: StreamArg,
    event: EventArg,
    flags: c_uint,
) -> Answer {
    if event.is_null() {
        return Err(INVALID_HANDLE);
    }
    let mut state = call.ready()?;
    if flags & !CU_EVENT_WAIT_EXTERNAL != 0 {
        return Err(INVALID_VALUE);
    }
    let event = state.event(call, event)?;
    let stream = state.stream(call, stream)?;
    let external = flags == CU_EVENT_WAIT_EXTERNAL;
    let captured = state.events[event].mark().is_some();
    if (captured || !state.quiet())
        && wait_captured_or_checked(call, &mut state, stream, event, external)?
    {
        return Ok(());
    }
    if external {
        return Err(ILLEGAL_STATE);
    }
    if state.events[event].is_interprocess()
        && state.events[event].context != state.streams[stream].context
    {
        // Measured: plain events cross contexts, the real driver crashes on these.
        let handle = state.events.handle(event);
        let what =
            format!("a stream waits for the interprocess event {handle:#x} of another context");
        return Err(state.misuses.undefined(call, &what, INVALID_HANDLE));
    }
    if !state.quiet() {
        state.feed(|feed, ids| feed.wait(ids.stream(stream), ids.event(event)));
    }
    state.wait_for(stream, event);
    Ok(())
}

/// A wait while a capture is under way, after the event's capture, or while the order is checked.
/// Whether the wait has become a part of a capture.
#[cold]
#[inline(never)]
fn wait_captured_or_checked(
    call: &CallFrame,
    state: &mut State,
    stream: u32,
    event: u32,
    external: bool,
) -> Result<bool, CUresult> {
    let State { captures, streams, graphs, events, .. } = state;
    if external {
        // A wait that the graph makes at each launch.
        let wait = || NodeKind::Wait(NodeEvent::new(events, event));
        return captures.add(streams, graphs, call.number, stream, wait);
    }
    let (mark, never) = (events[event].mark(), events[event].was_never_recorded());
    let left = mark.is_some_and(|mark| captures.is_over(mark)) && !captures.is_capturing(stream);
    let captured = captures.wait(streams, stream, mark, never);
    if left {
        state.feed(|feed, ids| feed.capture_left(What::Event(ids.event(event))));
    }
    captured
}

pub(crate) fn event_query(call: &CallFrame, event: EventArg) -> Answer {
    if event.is_null() {
        return Err(INVALID_HANDLE);
    }
    let mut state = call.ready()?;
    let index = state.event(call, event)?;
    if !state.quiet() {
        query_captured_or_checked(&mut state, index)?;
    } else if !state.events[index].is_done() {
        // It may be part of a capture that has ended.
        refuse_captured(&mut state, index)?;
        return Err(NOT_READY);
    }
    settle(&mut state, index);
    Ok(())
}

/// A query while a capture is under way, or the order is checked.
#[cold]
#[inline(never)]
fn query_captured_or_checked(state: &mut State, event: u32) -> Answer {
    refuse_captured(state, event)?;
    let done = state.events[event].is_done();
    state.feed(|feed, ids| feed.event_query(ids.event(event), done));
    if done { Ok(()) } else { Err(NOT_READY) }
}

/// Refuses a question or a wait of the host about an event that was recorded in a capture, and
/// invalidates the capture. Of any other event it is refused as what may block.
fn refuse_captured(state: &mut State, event: u32) -> Answer {
    let EventState::Captured(mark) = &state.events[event].state else {
        return state.captures.refuse_unsafe();
    };
    let code = state.captures.invalidate_by(mark);
    state.feed(|feed, ids| feed.capture_left(What::Event(ids.event(event))));
    Err(code)
}

/// Keeps the stamp alone of a record that is done.
fn settle(state: &mut State, event: u32) {
    if let EventState::Pending(point) = &state.events[event].state
        && point.is_done()
    {
        let stamp = point.stamp();
        state.events[event].state = EventState::Done(stamp);
    }
}

pub(crate) fn event_synchronize(call: &CallFrame, event: EventArg) -> Answer {
    if event.is_null() {
        return Err(INVALID_HANDLE);
    }
    let mut state = call.ready()?;
    let index = state.event(call, event)?;
    let entry = &state.events[index];
    let over =
        entry.shared.is_none() && matches!(entry.state, EventState::Never | EventState::Done(_));
    if over && state.quiet() {
        return Ok(());
    }
    refuse_captured(&mut state, index)?;
    if over {
        state.feed(|feed, ids| feed.event_synchronize(ids.event(index)));
        return Ok(());
    }
    if state.quiet() {
        return await_event(call, state, index).map(drop);
    }
    let awaited = state.feed(|feed, ids| feed.await_event(ids.event(index)));
    let mut state = await_event(call, state, index)?;
    state.reached(awaited);
    Ok(())
}

/// Waits for the last record of an event, of whatever process.
fn await_event(call: &CallFrame, mut state: Locked, index: u32) -> Result<Locked, CUresult> {
    let context = state.events[index].context;
    let others = state.events[index].shared.as_ref().and_then(|shared| shared.wait());
    if let EventState::Pending(point) = &state.events[index].state {
        let point = point.clone();
        point.want();
        state = call.machine.wait_until(state, |_| point.is_done())?;
    }
    if let Some(others) = others {
        let (epoch, caller) = (state.life.epoch, state.feed(|feed, _| feed.caller()));
        drop(state);
        processes::block(&others, || {
            let state = call.machine.lock();
            if state.life.is_over(epoch) {
                return Some(Err(DEINITIALIZED));
            }
            others.is_done().then_some(Ok(()))
        })?;
        state = call.lock()?;
        state.life.owned_by(epoch)?;
        state.feed(|feed, _| caller.map(|caller| feed.resume(caller)));
    }
    state.usable(context)?;
    Ok(state)
}

pub(crate) fn event_elapsed_time(
    call: &CallFrame,
    milliseconds: Ptr<f32>,
    start: EventArg,
    end: EventArg,
) -> Answer {
    if start.is_null() || end.is_null() {
        return Err(INVALID_HANDLE);
    }
    let mut state = call.ready()?;
    // Measured: the driver returns this code for a NULL result, too.
    if milliseconds.is_null() {
        return Err(INVALID_HANDLE);
    }
    let both = (state.event(call, start)?, state.event(call, end)?);
    let (start, end) = (&state.events[both.0], &state.events[both.1]);
    if !state.go_together(start.context, end.context) || !start.timing() || !end.timing() {
        return Err(INVALID_HANDLE);
    }
    let (start, end) = (stamp(&state, start)?, stamp(&state, end)?);
    match (start, end) {
        (Some(start), Some(end)) => {
            state.feed(|feed, ids| {
                feed.event_query(ids.event(both.0), true);
                feed.event_query(ids.event(both.1), true);
            });
            milliseconds.put(clock::milliseconds(start, end))
        }
        _ => Err(NOT_READY),
    }
}

/// The stamp of the latest record, none while it is not done.
fn stamp(state: &State, event: &Event) -> Result<Option<u64>, CUresult> {
    match &event.state {
        EventState::Never => Err(INVALID_HANDLE),
        EventState::Done(stamp) => Ok(Some(*stamp)),
        EventState::Pending(point) => Ok(point.is_done().then(|| point.stamp())),
        EventState::Captured(mark) => Err(state.captures.code_of(mark)),
    }
}
