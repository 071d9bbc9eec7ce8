//! Calls about all streams of a context: waiting for them, recording an event after them, holding
//! them.

use crate::abi::*;
use crate::arg::{ContextArg, EventArg};
use crate::engine::context::ContextWait;
use crate::engine::work::Task;
use crate::machine::call_frame::CallFrame;
use crate::machine::{Locked, State};

impl State {
    /// The streams with work of a context, and of what belongs to it.
    fn busy_streams(&self, context: u32) -> Vec<u32> {
        let contexts = self.greens.with(context);
        contexts.into_iter().flat_map(|context| self.engine.busy_in(context)).collect()
    }
}

fn synchronize(call: &CallFrame, mut state: Locked, context: u32) -> Answer {
    state.usable(context)?;
    state.captures.refuse_in_context(context)?;
    let streams = state.busy_streams(context);
    let contexts = state.greens.with(context);
    let awaited = state.feed(|feed, of| feed.await_contexts(&of.contexts(&contexts)));
    let points = state.running(call.machine).marks(streams);
    let mut state =
        call.machine.wait_until(state, |_| points.iter().all(|point| point.is_done()))?;
    state.usable(context)?;
    if let Some(awaited) = awaited {
        state.feed(|feed, _| feed.reached(&awaited));
    }
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

fn context_or_current(
    state: &State,
    call: &CallFrame,
    context: ContextArg,
) -> Result<u32, CUresult> {
    let context =
        if context.is_null() { state.current(call)? } else { state.context(call, context)? };
    state.usable(context)?;
    Ok(context)
}

/// Records all work of a context: done when every stream has done what it has now.
pub(crate) fn ctx_record_event(call: &CallFrame, context: ContextArg, event: EventArg) -> Answer {
    let state = call.ready()?;
    let context = context_or_current(&state, call, context)?;
    let event = state.event(call, event)?;
    if !state.go_together(state.events[event].context, context) {
        return Err(INVALID_HANDLE);
    }
    record_all(call, state, context, event)
}

pub(crate) fn record_all(call: &CallFrame, mut state: Locked, context: u32, event: u32) -> Answer {
    state.captures.refuse_in_context(context)?;
    let busy = state.busy_streams(context);
    let collector = state.hidden_stream(call, context)?;
    let mut running = state.running(call.machine);
    for point in running.marks(busy) {
        running.push(collector, Task::Wait(point));
    }
    let contexts = state.greens.with(context);
    state.feed(|feed, of| {
        feed.context_record(&of.contexts(&contexts), of.event(event), of.stream(collector));
    });
    state.record(call.machine, event, collector);
    state.destroy_stream(call, collector);
    Ok(())
}

/// Has all streams of a context wait, those too that are made before the event is done. Measured: a
/// stream waits from its next operation on; until then it is as idle as it was.
pub(crate) fn ctx_wait_event(call: &CallFrame, context: ContextArg, event: EventArg) -> Answer {
    let mut state = call.ready()?;
    let context = context_or_current(&state, call, context)?;
    let event = state.event(call, event)?;
    state.captures.refuse_in_context(context)?;
    let entry = &state.events[event];
    if entry.mark().is_some() {
        return Err(INVALID_VALUE);
    }
    let waits: Vec<ContextWait> = entry.waits().collect();
    let contexts = state.greens.with(context);
    state.feed(|feed, of| feed.context_wait(&of.contexts(&contexts), of.event(event)));
    for context in contexts {
        state.engine.add_context_waits(context, waits.iter().cloned());
    }
    Ok(())
}
