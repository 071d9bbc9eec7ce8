//! Calls about all streams of a context: waiting for them, recording an event after them, holding
//! them.

use crate::abi::*;
use crate::arg::{ContextArg, EventArg};
use crate::engine::context::ContextWait;
use crate::engine::work::Task;
use crate::machine::call_frame::CallFrame;
use crate::machine::{Locked, State};

exports! { $ [context::all_streams]
    cuCtxSynchronize => ctx_synchronize;
    cuCtxSynchronize_v2 => ctx_synchronize_of;
    cuCtxRecordEvent => ctx_record_event;
    cuCtxWaitEvent => ctx_wait_event;
}

/// The streams with work of a context, and of what belongs to it.
fn busy_streams(state: &State, context: u32) -> Vec<u32> {
    let contexts = state.greens.with(context);
    contexts.into_iter().flat_map(|context| state.engine.contexts.busy_in(context)).collect()
}

fn synchronize(call: &CallFrame, mut state: Locked, context: u32) -> Answer {
    state.usable(context)?;
    state.captures.refuse_in_context(context)?;
    let streams = busy_streams(&state, context);
    let contexts = state.greens.with(context);
    let awaited = state.feed(|feed, ids| feed.await_contexts(&ids.contexts(&contexts)));
    let mut points = state.running().marks(streams);
    points.extend(state.engine.contexts.copies_elsewhere(&contexts));
    let mut state =
        call.machine.wait_until(state, |_| points.iter().all(|point| point.is_done()))?;
    state.usable(context)?;
    state.reached(awaited);
    Ok(())
}

pub(crate) fn ctx_synchronize(call: &CallFrame) -> Answer {
    let state = call.ready()?;
    let context = state.current(call)?;
    synchronize(call, state, context)
}

pub(crate) fn ctx_synchronize_of(call: &CallFrame, context: ContextArg) -> Answer {
    if context.is_null() {
        return ctx_synchronize(call);
    }
    let state = call.ready()?;
    let context = state.context(call, context)?;
    synchronize(call, state, context)
}

/// A context that must be named: none is not the current one.
pub(crate) fn named_context(
    state: &State,
    call: &CallFrame,
    context: ContextArg,
) -> Result<u32, CUresult> {
    if context.is_null() {
        return Err(INVALID_CONTEXT);
    }
    let context = state.context(call, context)?;
    state.usable(context)?;
    Ok(context)
}

/// Records all work of a context: done when every stream has done what it has now.
pub(crate) fn ctx_record_event(call: &CallFrame, context: ContextArg, event: EventArg) -> Answer {
    let state = call.ready()?;
    let context = named_context(&state, call, context)?;
    let event = state.event(call, event)?;
    if !state.go_together(state.events[event].context, context) {
        return Err(INVALID_HANDLE);
    }
    record_all(call, state, context, event)
}

pub(crate) fn record_all(call: &CallFrame, mut state: Locked, context: u32, event: u32) -> Answer {
    state.captures.refuse_in_context(context)?;
    let busy = busy_streams(&state, context);
    let collector = state.hidden_stream(call, context)?;
    let contexts = state.greens.with(context);
    let copies = state.engine.contexts.copies_elsewhere(&contexts);
    let mut running = state.running();
    for point in running.marks(busy).into_iter().chain(copies) {
        running.push(collector, Task::Wait(point));
    }
    state.feed(|feed, ids| {
        feed.context_record(&ids.contexts(&contexts), ids.event(event), ids.stream(collector));
    });
    state.record(event, collector);
    state.destroy_stream(call, collector);
    Ok(())
}

/// Has all streams of a context wait, those too that are made before the event is done. Measured: a
/// stream waits from its next operation on; until then it is as idle as it was.
pub(crate) fn ctx_wait_event(call: &CallFrame, context: ContextArg, event: EventArg) -> Answer {
    let mut state = call.ready()?;
    let context = named_context(&state, call, context)?;
    let event = state.event(call, event)?;
    state.captures.refuse_in_context(context)?;
    let entry = &state.events[event];
    if entry.mark().is_some() {
        return Err(INVALID_VALUE);
    }
    let waits: Vec<ContextWait> = entry.waits().collect();
    let contexts = state.greens.with(context);
    state.feed(|feed, ids| feed.context_wait(&ids.contexts(&contexts), ids.event(event)));
    for context in contexts {
        state.engine.contexts.add_waits(context, waits.iter().cloned());
    }
    Ok(())
}

/// What gives memory back, loads code, or makes or ends a context may wait for the work of its
/// device that was submitted before. Measured: not for that of other devices.
pub(crate) fn after_work_of(
    call: &CallFrame,
    mut state: Locked,
    device: usize,
) -> Result<Locked, CUresult> {
    if call.in_host_function() {
        return Ok(state);
    }
    // Green contexts are among them.
    let contexts =
        state.contexts.indices(|context| context.alive && context.device as usize == device);
    let awaited = state.feed(|feed, ids| feed.await_contexts(&ids.contexts(&contexts)));
    let busy: Vec<u32> =
        contexts.iter().flat_map(|context| state.engine.contexts.busy_in(*context)).collect();
    let mut points = state.running().marks(busy);
    points.extend(state.engine.contexts.copies_elsewhere(&contexts));
    if !points.is_empty() {
        state =
            call.machine.wait_until_idle(state, |_| points.iter().all(|point| point.is_done()))?;
    }
    state.reached(awaited);
    Ok(state)
}
