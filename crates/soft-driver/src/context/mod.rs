//! Contexts: the stack of each thread, creation and destruction, and the entry points about one
//! context. [`primary`] has the primary contexts, [`all_streams`] the calls about all streams of a
//! context.

use core::ffi::{c_int, c_uint, c_ulonglong};

use crate::abi::*;
use crate::allocation;
use crate::arg::{ContextArg, Ptr};
use crate::context::all_streams::after_work_of;
use crate::context::losses::Lost;
use crate::context::state::Context;
use crate::device;
use crate::engine::stream::Stream;
use crate::external_semaphore;
use crate::machine::call_frame::CallFrame;
use crate::machine::handles::{self, Table};
use crate::machine::{Locked, Machine, State};
use crate::threads;

exports! { $ [context]
    cuCtxCreate_v2 => ctx_create;
    cuCtxCreate_v4 => ctx_create_v4;
    cuCtxDestroy_v2 => ctx_destroy;
    cuCtxGetCurrent => ctx_get_current;
    cuCtxSetCurrent => ctx_set_current;
    cuCtxPushCurrent_v2 => ctx_push_current;
    cuCtxPopCurrent_v2 => ctx_pop_current;
    cuCtxGetDevice => ctx_get_device;
    cuCtxGetDevice_v2 => ctx_get_device_of;
    cuCtxGetStreamPriorityRange => ctx_get_stream_priority_range;
    cuCtxGetFlags => ctx_get_flags;
    cuCtxGetId => ctx_get_id;
    cuCtxDestroy => ctx_destroy;
    cuCtxPushCurrent => ctx_push_current;
    cuCtxPopCurrent => ctx_pop_current;
}

pub(crate) mod all_streams;
pub(crate) mod losses;
pub(crate) mod primary;
pub(crate) mod settings;
pub(crate) mod state;

impl State {
    /// The calling thread's current context, whatever its condition.
    pub(crate) fn top(&self, call: &CallFrame) -> Option<u32> {
        threads::with(call.machine.slot, self.life.epoch, |on| on.stack.last().copied())
    }

    /// The context whose default streams the call means, if work can be submitted to it.
    pub(crate) fn context_of_default_streams(&self, call: &CallFrame) -> Result<u32, CUresult> {
        let Some(handle) = call.context else { return self.current(call) };
        if call.machine.in_host_function(self.life.epoch) {
            return Err(NOT_PERMITTED);
        }
        let context = self.contexts.find(handle).map_err(|_| INVALID_CONTEXT)?;
        self.usable(context)?;
        Ok(context)
    }

    /// Whether the call is made outside of host functions.
    pub(crate) fn permitted(&self, call: &CallFrame) -> Answer {
        if call.machine.in_host_function(self.life.epoch) { Err(NOT_PERMITTED) } else { Ok(()) }
    }

    /// The current context, if work can be submitted to it.
    pub(crate) fn current(&self, call: &CallFrame) -> Result<u32, CUresult> {
        self.permitted(call)?;
        let context = self.top(call).ok_or(INVALID_CONTEXT)?;
        self.usable(context)?;
        Ok(context)
    }

    /// Whether work can be submitted to a context.
    pub(crate) fn usable(&self, index: u32) -> Answer {
        let context = &self.contexts[index];
        if !context.alive {
            return Err(self.destroyed_code(index));
        }
        match self.engine.contexts.failure(index) {
            Some(code) => Err(code),
            None => Ok(()),
        }
    }

    /// The context that a handle names.
    pub(crate) fn context(&self, call: &CallFrame, handle: ContextArg) -> Result<u32, CUresult> {
        let handle = handle.addr();
        self.contexts.find(handle).map_err(|bad| {
            match self.misuses.bad_handle(call, handles::Kind::Context, handle, bad) {
                INVALID_HANDLE => INVALID_CONTEXT,
                code => code,
            }
        })
    }

    pub(crate) fn new_context(
        &mut self,
        call: &CallFrame,
        device: CUdevice,
        flags: u32,
        primary: bool,
    ) -> Result<u32, CUresult> {
        let id = self.life.next_id();
        let uses = u32::from(!primary);
        let context =
            Context { device, flags, primary, alive: true, uses, id, ..Context::default() };
        let (index, handle) = self.contexts.insert(call.number, context).ok_or(OUT_OF_MEMORY)?;
        self.engine.contexts.add(index, handle);
        Ok(index)
    }

    pub(crate) fn context_handle(&self, context: u32) -> CUcontext {
        core::ptr::without_provenance_mut(self.contexts.handle(context) as usize)
    }

    /// Whether something of a context can be destroyed. In a failed context the program has done
    /// what it can when it has tried, and nothing counts as alive that it tried to destroy.
    pub(crate) fn may_destroy(&mut self, context: u32, handle: u64) -> Answer {
        match self.usable(context) {
            // Documented: a stream outlives its green context, and can do no more than be
            // destroyed.
            Err(STREAM_DETACHED) => Ok(()),
            Err(code) => {
                // Measured: the driver keeps it until the context is released, and calls
                // about the handle return what they returned before.
                self.misuses.losses.give_up(handle);
                Err(code)
            }
            Ok(()) => Ok(()),
        }
    }

    /// Whether the program has tried to destroy something of a failed context, or can no longer.
    pub(crate) fn given_back(&self, context: u32, handle: u64) -> bool {
        let failed = self.engine.contexts.failure(context).is_some();
        (failed || !self.contexts[context].alive) && self.misuses.losses.is_given_up(handle)
    }
}

/// Things of a kind that are lost.
fn lost<T>(
    kind: &'static str,
    table: &Table<T>,
    counts: impl Fn(&T) -> bool,
) -> impl Iterator<Item = Lost> {
    let live = table.live(|_, value| counts(value)).into_iter();
    live.map(move |(handle, born)| (kind, handle, born))
}

/// Notes what the program has not destroyed in a context that ends.
fn note_lost(state: &mut State, context: u32) {
    let events =
        lost("event", &state.events, |event| event.context == context && !event.is_orphan());
    let semaphores =
        lost("external semaphore", &state.semaphores, |semaphore| semaphore.context == context);
    let memory = state.memory.of_context(context).map(|address| ("piece of memory", address, 0));
    let streams = streams_lost_with(state, context).into_iter();
    state.misuses.losses.lose(streams.chain(events).chain(semaphores).chain(memory));
}

/// The streams of a context that the program has to destroy.
fn streams_lost_with(state: &State, context: u32) -> Vec<Lost> {
    let counts = |stream: &Stream| stream.context == context && stream.created && !stream.destroyed;
    lost("stream", &state.streams, counts).collect()
}

/// The streams of a green context end with it, and calls about them fail.
pub(crate) fn end_streams_of(state: &mut State, context: u32) {
    let lost = streams_lost_with(state, context);
    if state.engine.contexts.failure(context).is_none() {
        state.misuses.losses.lose(lost.clone());
    }
    // Nothing more can be done with them.
    lost.iter().for_each(|(_, handle, _)| state.misuses.losses.give_up(*handle));
}

/// What a context takes with it: at its own end, or at a `reset` of its device.
pub(crate) fn tear_down(state: &mut State, call: &CallFrame, context: u32, reset: bool) {
    let primary = state.contexts[context].primary;
    let State { captures, graphs, engine, feed, .. } = state;
    captures.end_of_context(context, graphs, engine, feed.as_deref_mut());
    // In a failed context nothing can be destroyed; and a reset is asked to.
    if state.engine.contexts.failure(context).is_none() && !reset {
        note_lost(state, context);
    }
    for stream in state.streams.indices(|stream| stream.context == context) {
        let handle = state.streams.handle(stream);
        let State { captures, graphs, engine, feed, .. } = state;
        captures.leave(stream, graphs, engine, feed.as_deref_mut());
        state.running().forget_values(stream);
        state.streams.remove(stream);
        state.misuses.losses.forget(handle);
        state.misuses.note_destroyed(call, handle);
    }
    for event in state.events.indices(|event| event.context == context) {
        let handle = state.events.handle(event);
        state.feed(|feed, ids| feed.event_destroy(ids.event(event)));
        state.misuses.note_destroyed(call, handle);
        if primary {
            // Measured: after the last release the memory of these is gone.
            state.events.remove(event);
            state.misuses.losses.forget(handle);
        } else {
            // Measured: calls about these still returned that their context is destroyed. It is
            // documented as undefined.
            state.events[event].lose_context();
        }
    }
    external_semaphore::end_semaphores_of(state, call, context);
    state.feed(|feed, ids| feed.context_destroy(ids.context(context)));
    state.memory.end_of_context(state.feed.as_deref_mut(), context);
    let entry = &mut state.contexts[context];
    entry.alive = false;
    entry.per_thread.clear();
    entry.ipc = None;
    state.engine.contexts.end(context);
}

pub(crate) fn is_live_created_context(state: &State, index: u32) -> bool {
    state.contexts[index].alive && !state.contexts[index].primary
}

/// The taken slots, without those of events that a failed context keeps although the program
/// destroyed them.
pub(crate) fn live_ipc_slots(state: &State) -> usize {
    let exporters = state.contexts.iter().filter_map(|(_, context)| context.ipc.as_ref());
    let taken: usize = exporters.map(|exporter| exporter.live()).sum();
    let kept = state.events.iter().filter(|(index, event)| {
        event.own_slot().is_some() && !event.is_orphan() && !state.is_live_event(*index)
    });
    taken.saturating_sub(kept.count())
}

/// Who holds primary contexts: retains that were not released.
pub(crate) fn live_retains(state: &State) -> usize {
    let all: usize = state.devices.iter().map(|device| device.retains() as usize).sum();
    // A green context counts as a context, and not once more for what it keeps.
    all.saturating_sub(state.greens.retains())
}

impl Machine {
    /// Waits until a context has no work, and until launches of its work in streams of other
    /// contexts are done, as measured. The thread of the host functions does not: it would wait
    /// for itself.
    pub(crate) fn drain(&'static self, state: Locked, context: u32) -> Result<Locked, CUresult> {
        if self.in_host_function(state.life.epoch) {
            return Ok(state);
        }
        let drained =
            self.wait_until_idle(state, |state| state.engine.contexts.is_drained(context));
        drained.map(|mut state| {
            state.feed(|feed, ids| {
                let awaited = feed.await_contexts(&[ids.context(context)]);
                feed.reached(&awaited);
            });
            state
        })
    }
}

fn push(call: &CallFrame, state: &State, context: u32) {
    threads::with(call.machine.slot, state.life.epoch, |on| on.stack.push(context));
}

/// All that are defined up to CUDA 13.
const FLAGS: u32 = 0xFF;

pub(crate) fn check_flags(flags: u32) -> Answer {
    let schedule = flags & CU_CTX_SCHED_MASK;
    if flags & !FLAGS != 0 || !matches!(schedule, 0 | 1 | 2 | 4) {
        Err(INVALID_VALUE)
    } else {
        Ok(())
    }
}

pub(crate) fn ctx_create(
    call: &CallFrame,
    context: Ptr<CUcontext>,
    flags: c_uint,
    device: CUdevice,
) -> Answer {
    let mut state = call.ready()?;
    context.required()?;
    check_flags(flags)?;
    device::check(&state, device)?;
    let new = state.new_context(call, device, flags, false)?;
    push(call, &state, new);
    context.put(state.context_handle(new))
}

pub(crate) fn ctx_create_v4(
    call: &CallFrame,
    context: Ptr<CUcontext>,
    params: Ptr<CUctxCreateParams>,
    flags: c_uint,
    device: CUdevice,
) -> Answer {
    if !params.is_null() && params.get()?.numExecAffinityParams != 0 {
        return call.refuse(CUresult::CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
    }
    ctx_create(call, context, flags, device)
}

pub(crate) fn ctx_destroy(call: &CallFrame, context: ContextArg) -> Answer {
    let state = call.ready()?;
    if context.is_null() {
        return Err(INVALID_VALUE);
    }
    let handle = context.addr();
    let context = state.context(call, context)?;
    if state.contexts[context].primary {
        return Err(INVALID_CONTEXT);
    }
    if state.contexts[context].green {
        let what = format!(
            "context {handle:#x} belongs to a green context, which must be destroyed instead"
        );
        return Err(state.misuses.undefined(call, &what, INVALID_CONTEXT));
    }
    if !state.contexts[context].alive {
        let what = format!("context {handle:#x} {}", state.misuses.fate_of(handle));
        return Err(state.misuses.undefined(call, &what, CONTEXT_IS_DESTROYED));
    }
    // Measured: for the other contexts of the device as well.
    let device = allocation::owner(&state, context).device;
    let state = after_work_of(call, state, device)?;
    let mut state = call.machine.drain(state, context)?;
    if !state.contexts[context].alive {
        return Err(CONTEXT_IS_DESTROYED);
    }
    tear_down(&mut state, call, context, false);
    state.misuses.note_destroyed(call, handle);
    threads::with(call.machine.slot, state.life.epoch, |on| {
        if on.stack.last() == Some(&context) {
            on.stack.pop();
        }
    });
    Ok(())
}

pub(crate) fn ctx_get_current(call: &CallFrame, context: Ptr<CUcontext>) -> Answer {
    let state = call.ready()?;
    context.put(state.top(call).map_or(core::ptr::null_mut(), |top| state.context_handle(top)))
}

pub(crate) fn ctx_set_current(call: &CallFrame, context: ContextArg) -> Answer {
    let state = call.ready()?;
    let new = if context.is_null() { None } else { Some(state.context(call, context)?) };
    threads::with(call.machine.slot, state.life.epoch, |on| {
        on.stack.pop();
        on.stack.extend(new);
    });
    Ok(())
}

pub(crate) fn ctx_push_current(call: &CallFrame, context: ContextArg) -> Answer {
    let state = call.ready()?;
    if context.is_null() {
        return Err(INVALID_VALUE);
    }
    let context = state.context(call, context)?;
    push(call, &state, context);
    Ok(())
}

pub(crate) fn ctx_pop_current(call: &CallFrame, context: Ptr<CUcontext>) -> Answer {
    let state = call.ready()?;
    let popped = threads::with(call.machine.slot, state.life.epoch, |on| on.stack.pop())
        .ok_or(INVALID_CONTEXT)?;
    context.put_if(state.context_handle(popped));
    Ok(())
}

pub(crate) fn ctx_get_device(call: &CallFrame, device: Ptr<CUdevice>) -> Answer {
    let state = call.ready()?;
    device.required()?;
    let top = state.top(call).ok_or(INVALID_CONTEXT)?;
    device.put(state.contexts[top].device)
}

pub(crate) fn ctx_get_device_of(
    call: &CallFrame,
    device: Ptr<CUdevice>,
    context: ContextArg,
) -> Answer {
    if context.is_null() {
        return ctx_get_device(call, device);
    }
    let state = call.ready()?;
    device.required()?;
    let context = state.context(call, context)?;
    device.put(state.contexts[context].device)
}

/// The range of an H200.
pub(crate) const LEAST_PRIORITY: i32 = 0;

pub(crate) const GREATEST_PRIORITY: i32 = -5;

pub(crate) fn ctx_get_stream_priority_range(
    call: &CallFrame,
    least: Ptr<c_int>,
    greatest: Ptr<c_int>,
) -> Answer {
    let state = call.ready()?;
    state.current(call)?;
    least.put_if(LEAST_PRIORITY);
    greatest.put_if(GREATEST_PRIORITY);
    Ok(())
}

pub(crate) fn ctx_get_flags(call: &CallFrame, flags: Ptr<c_uint>) -> Answer {
    let state = call.ready()?;
    flags.required()?;
    let context = state.top(call).ok_or(INVALID_CONTEXT)?;
    // Drivers add `CU_CTX_MAP_HOST`, as every context can map memory of the host.
    flags.put(state.contexts[context].flags | 8)
}

pub(crate) fn ctx_get_id(call: &CallFrame, context: ContextArg, id: Ptr<c_ulonglong>) -> Answer {
    let state = call.ready()?;
    id.required()?;
    let context =
        if context.is_null() { state.current(call)? } else { state.context(call, context)? };
    if !state.contexts[context].alive {
        return Err(CONTEXT_IS_DESTROYED);
    }
    id.put(state.contexts[context].id)
}
