//! Context calls: the stack of each thread, create and destroy, synchronize, and records of a whole
//! context.

use core::ffi::{c_int, c_uint, c_ulonglong};
use std::collections::{BTreeMap, BTreeSet};

use crate::abi::*;
use crate::arg::{ContextArg, EventArg, Ptr};
use crate::device;
use crate::event::{Event, EventState};
use crate::memory::Kind;
use crate::model::call_frame::CallFrame;
use crate::model::context::{Context, Gate, Settings};
use crate::model::handles;
use crate::model::machine::{Locked, Machine, State};
use crate::model::thread;
use crate::model::work::Task;

impl State {
    /// The calling thread's current context, whatever its condition.
    pub(crate) fn top(&self, call: &CallFrame) -> Option<u32> {
        thread::with(call.machine.slot, self.epoch, |on| on.stack.last().copied())
    }

    /// The current context, for a call that needs a good one.
    pub(crate) fn current(&self, call: &CallFrame) -> Result<u32, CUresult> {
        if call.machine.in_host_function(self.epoch) {
            return Err(NOT_PERMITTED);
        }
        let context = self.top(call).ok_or(INVALID_CONTEXT)?;
        self.usable(context)?;
        Ok(context)
    }

    /// Whether work can be given to a context.
    pub(crate) fn usable(&self, index: u32) -> Answer {
        let context = &self.contexts[index];
        if !context.alive {
            return Err(self.destroyed_code(index));
        }
        match context.failed {
            Some(code) => Err(code),
            None => Ok(()),
        }
    }

    /// The context that a handle names.
    pub(crate) fn context(&self, call: &CallFrame, handle: ContextArg) -> Result<u32, CUresult> {
        let handle = handle.addr();
        self.contexts.find(handle).map_err(|bad| {
            match self.bad_handle(call, handles::Kind::Context, handle, bad) {
                INVALID_HANDLE => INVALID_CONTEXT,
                code => code,
            }
        })
    }

    pub(crate) fn new_context(
        &mut self,
        device: CUdevice,
        flags: u32,
        primary: bool,
    ) -> Result<u32, CUresult> {
        let id = self.next_id();
        let context = Context {
            device,
            flags,
            primary,
            green: false,
            alive: true,
            uses: u32::from(!primary),
            id,
            failed: None,
            legacy: None,
            per_thread: BTreeMap::new(),
            settings: Settings::default(),
            busy: BTreeSet::new(),
            elsewhere: Vec::new(),
            ipc: None,
            gates: Vec::new(),
            last_gate: 0,
            streams_made: 0,
        };
        self.contexts.insert(self.call_number, context).map(|(index, _)| index).ok_or(OUT_OF_MEMORY)
    }

    pub(crate) fn context_handle(&self, context: u32) -> CUcontext {
        core::ptr::without_provenance_mut(self.contexts.handle(context) as usize)
    }

    /// Notes what the program has not destroyed in a context that ends.
    fn note_lost(&mut self, context: u32) {
        let streams = self.streams_lost_with(context);
        let events = self.events.iter().filter(|(_, of)| of.context == context && !of.orphan);
        let events =
            events.map(|(index, _)| ("event", self.events.handle(index), self.events.born(index)));
        let memory = self.memory.of_context(context).map(|address| ("piece of memory", address, 0));
        let semaphores = self.semaphores.iter().filter(|(_, of)| of.context == context);
        let semaphores = semaphores.map(|(index, _)| {
            let (handle, born) = (self.semaphores.handle(index), self.semaphores.born(index));
            ("external semaphore", handle, born)
        });
        let lost = streams.into_iter().chain(events).chain(semaphores).chain(memory);
        let lost: Vec<_> = lost.filter(|(_, handle, _)| !self.given_up.contains(handle)).collect();
        self.lost.extend(lost);
    }

    /// The streams of a context that the program has to destroy.
    fn streams_lost_with(&self, context: u32) -> Vec<(&'static str, u64, u64)> {
        let streams = self
            .streams
            .iter()
            .filter(|(_, of)| of.context == context && of.created && !of.destroyed);
        streams
            .map(|(index, _)| ("stream", self.streams.handle(index), self.streams.born(index)))
            .collect()
    }

    /// The streams of a green context end with it, and answer so.
    pub(crate) fn end_streams_of(&mut self, context: u32) {
        let mut lost = self.streams_lost_with(context);
        lost.retain(|(_, handle, _)| !self.given_up.contains(handle));
        // Nothing more can be done with them.
        self.given_up.extend(lost.iter().map(|(_, handle, _)| *handle));
        if self.contexts[context].failed.is_none() {
            self.lost.extend(lost);
        }
    }

    /// What a context takes with it: at its own end, or at a `reset` of its device.
    pub(crate) fn tear_down(&mut self, call: &CallFrame, context: u32, reset: bool) {
        let primary = self.contexts[context].primary;
        self.end_captures_of(context);
        // In a failed context nothing can be destroyed; and a reset is asked to.
        if self.contexts[context].failed.is_none() && !reset {
            self.note_lost(context);
        }
        let streams: Vec<u32> = self
            .streams
            .iter()
            .filter(|(_, stream)| stream.context == context)
            .map(|(index, _)| index)
            .collect();
        for stream in streams {
            let handle = self.streams.handle(stream);
            self.forget_values(stream);
            self.streams.remove(stream);
            self.bury(call, handle);
        }
        let events: Vec<u32> = self
            .events
            .iter()
            .filter(|(_, event)| event.context == context)
            .map(|(index, _)| index)
            .collect();
        for event in events {
            self.feed(|feed, of| feed.event_destroy(of.event(event)));
            if primary {
                // Measured: after the last release the memory of these is gone.
                let handle = self.events.handle(event);
                self.events.remove(event);
                self.bury(call, handle);
            } else {
                // Measured: these still answered that their context is destroyed. It is documented
                // as undefined.
                let handle = self.events.handle(event);
                self.bury(call, handle);
                self.events[event].orphan = true;
                self.events[event].shared = None;
            }
        }
        self.end_semaphores_of(call, context);
        self.feed(|feed, of| feed.context_destroy(of.context(context)));
        if self.feed.is_some() {
            let theirs = self.memory.0.iter();
            let theirs = theirs.filter(|(_, of)| of.context == context && !of.freeing);
            let theirs: Vec<_> = theirs.map(|(&base, of)| (base, of.kind)).collect();
            self.feed(|feed, _| {
                for (base, kind) in theirs {
                    match kind {
                        Kind::Registered(_) => feed.unregister(base),
                        _ => feed.free(base),
                    }
                }
            });
        }
        self.forget_pooled(context);
        let used = self.memory.forget_context(context);
        let entry = &mut self.contexts[context];
        entry.alive = false;
        entry.legacy = None;
        entry.per_thread.clear();
        entry.busy.clear();
        entry.elsewhere.clear();
        entry.ipc = None;
        entry.gates.clear();
        let device = entry.device as usize;
        self.devices[device].used = self.devices[device].used.saturating_sub(used);
    }

    fn add_gates(&mut self, context: u32, gates: impl Iterator<Item = Gate>) {
        let context = &mut self.contexts[context];
        context.gates.retain(|(_, gate)| !gate.is_done());
        for gate in gates {
            context.last_gate += 1;
            context.gates.push((context.last_gate, gate));
        }
    }

    /// The streams with work of a context, and of what belongs to it.
    fn busy_streams(&self, context: u32) -> Vec<u32> {
        let contexts = self.with_greens(context);
        contexts
            .into_iter()
            .flat_map(|context| self.contexts[context].busy.iter().copied())
            .collect()
    }

    pub(crate) fn is_live_created_context(&self, index: u32) -> bool {
        self.contexts[index].alive && !self.contexts[index].primary
    }

    /// The taken slots, without those of events that a failed context keeps although the program
    /// destroyed them.
    pub(crate) fn live_ipc_slots(&self) -> usize {
        let exporters = self.contexts.iter().filter_map(|(_, context)| context.ipc.as_ref());
        let taken: usize = exporters.map(|exporter| exporter.live()).sum();
        let own = |event: &Event| event.shared.as_ref().is_some_and(|shared| !shared.imported());
        let kept = self
            .events
            .iter()
            .filter(|(index, event)| own(event) && !event.orphan && !self.is_live_event(*index));
        taken.saturating_sub(kept.count())
    }

    /// Whether something of a context can be destroyed. In a failed context the program has done
    /// what it can when it has tried, and nothing counts as alive that it tried to destroy.
    pub(crate) fn may_destroy(&mut self, context: u32, handle: u64) -> Answer {
        match self.usable(context) {
            // Documented: a stream outlives its green context, and can do no more than be
            // destroyed.
            Err(STREAM_DETACHED) => Ok(()),
            Err(code) => {
                // Measured: the driver keeps it until the context is released, and the handle
                // answers as before.
                self.given_up.insert(handle);
                Err(code)
            }
            Ok(()) => Ok(()),
        }
    }

    /// Whether the program has tried to destroy something of a failed context, or can no longer.
    pub(crate) fn given_back(&self, context: u32, handle: u64) -> bool {
        let context = &self.contexts[context];
        (context.failed.is_some() || !context.alive) && self.given_up.contains(&handle)
    }

    /// Who holds primary contexts: retains that were not released.
    pub(crate) fn live_retains(&self) -> usize {
        let all: usize = self.devices.iter().map(|device| device.retained as usize).sum();
        // A green context counts as a context, and not once more for what it keeps.
        all.saturating_sub(self.retains_of_greens())
    }

    /// The live primary context of a device.
    pub(crate) fn primary_of(&self, device: usize) -> Option<u32> {
        self.devices.get(device).filter(|device| device.retained > 0)?.primary
    }
}

impl Machine {
    /// Waits until a context has no work, and until launches of its work in streams of other
    /// contexts are done, as measured. The thread of the host functions does not: it would wait
    /// for itself.
    pub(crate) fn drain(
        &'static self,
        mut state: Locked,
        context: u32,
    ) -> Result<Locked, CUresult> {
        if self.in_host_function(state.epoch) {
            return Ok(state);
        }
        state.engine.idle_waiters += 1;
        let drained = self.wait_until(state, |state| {
            let context = &mut state.contexts[context];
            context.elsewhere.retain(|end| !end.is_done());
            context.elsewhere.iter().for_each(|end| end.want());
            context.busy.is_empty() && context.elsewhere.is_empty()
        });
        drained.map(|mut state| {
            state.engine.idle_waiters -= 1;
            state.feed(|feed, of| {
                let awaited = feed.await_contexts(&[of.context(context)]);
                feed.reached(&awaited);
            });
            state
        })
    }
}

fn push(call: &CallFrame, state: &State, context: u32) {
    thread::with(call.machine.slot, state.epoch, |on| on.stack.push(context));
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
    let new = state.new_context(device, flags, false)?;
    push(call, &state, new);
    context.put(state.context_handle(new))
}

pub(crate) fn ctx_create_v3(
    call: &CallFrame,
    context: Ptr<CUcontext>,
    _params: Ptr<CUexecAffinityParam>,
    count: c_int,
    flags: c_uint,
    device: CUdevice,
) -> Answer {
    if count != 0 {
        return call.refuse(CUresult::CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
    }
    ctx_create(call, context, flags, device)
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
        return Err(state.misuse(call, &what, INVALID_CONTEXT));
    }
    if !state.contexts[context].alive {
        let what = format!("context {handle:#x} {}", state.epitaph(handle));
        return Err(state.misuse(call, &what, CONTEXT_IS_DESTROYED));
    }
    let mut state = call.machine.drain(state, context)?;
    if !state.contexts[context].alive {
        return Err(CONTEXT_IS_DESTROYED);
    }
    state.tear_down(call, context, false);
    state.bury(call, handle);
    thread::with(call.machine.slot, state.epoch, |on| {
        if on.stack.last() == Some(&context) {
            on.stack.pop();
        }
    });
    Ok(())
}

/// One more use of the current context.
pub(crate) fn ctx_attach(call: &CallFrame, context: Ptr<CUcontext>, flags: c_uint) -> Answer {
    let mut state = call.ready()?;
    context.required()?;
    if flags != 0 {
        return Err(INVALID_VALUE);
    }
    let current = state.current(call)?;
    state.contexts[current].uses += 1;
    context.put(state.context_handle(current))
}

/// One use less. Documented: the context is current in the calling thread, and the last use
/// destroys it. A primary context is kept by its retains, and lives on.
pub(crate) fn ctx_detach(call: &CallFrame, context: ContextArg) -> Answer {
    let mut state = call.ready()?;
    if context.is_null() {
        return Err(INVALID_CONTEXT);
    }
    let index = state.context(call, context)?;
    if state.top(call) != Some(index) || state.contexts[index].uses == 0 {
        return Err(INVALID_CONTEXT);
    }
    let entry = &mut state.contexts[index];
    if entry.uses > 1 || entry.primary {
        entry.uses -= 1;
        return Ok(());
    }
    drop(state);
    ctx_destroy(call, context)
}

pub(crate) fn ctx_get_current(call: &CallFrame, context: Ptr<CUcontext>) -> Answer {
    let state = call.ready()?;
    context.put(state.top(call).map_or(core::ptr::null_mut(), |top| state.context_handle(top)))
}

pub(crate) fn ctx_set_current(call: &CallFrame, context: ContextArg) -> Answer {
    let state = call.ready()?;
    let new = if context.is_null() { None } else { Some(state.context(call, context)?) };
    thread::with(call.machine.slot, state.epoch, |on| {
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
    let popped =
        thread::with(call.machine.slot, state.epoch, |on| on.stack.pop()).ok_or(INVALID_CONTEXT)?;
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

fn synchronize(call: &CallFrame, mut state: Locked, context: u32) -> Answer {
    state.usable(context)?;
    state.invalidate_captures_of(context)?;
    let streams = state.busy_streams(context);
    let contexts = state.with_greens(context);
    let awaited = state.feed(|feed, of| feed.await_contexts(&of.contexts(&contexts)));
    let points: Vec<_> = streams
        .into_iter()
        .map(|stream| {
            let point = state.new_point(false, None);
            point.want();
            state.push_mark(stream, point.clone());
            point
        })
        .collect();
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
    flags.put(state.contexts[context].flags)
}

pub(crate) fn ctx_set_flags(call: &CallFrame, flags: c_uint) -> Answer {
    let mut state = call.ready()?;
    check_flags(flags)?;
    let context = state.current(call)?;
    state.contexts[context].flags = flags;
    Ok(())
}

pub(crate) fn ctx_get_api_version(
    call: &CallFrame,
    context: ContextArg,
    version: Ptr<c_uint>,
) -> Answer {
    let state = call.ready()?;
    version.required()?;
    if context.is_null() {
        state.current(call)?;
    } else {
        state.context(call, context)?;
    }
    version.put(3020)
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

pub(crate) fn ctx_enable_peer_access(call: &CallFrame, peer: ContextArg, flags: c_uint) -> Answer {
    let mut state = call.ready()?;
    let current = state.current(call)?;
    if flags != 0 {
        return Err(INVALID_VALUE);
    }
    let peer =
        if peer.is_null() { return Err(INVALID_CONTEXT) } else { state.context(call, peer)? };
    // Measured: also the current context itself, for which INVALID_CONTEXT is documented.
    if state.contexts[peer].device == state.contexts[current].device {
        return Err(CUresult::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    }
    match state.peers.insert((current, peer), 1) {
        None => Ok(()),
        Some(_) => Err(CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED),
    }
}

pub(crate) fn ctx_disable_peer_access(call: &CallFrame, peer: ContextArg) -> Answer {
    let mut state = call.ready()?;
    let current = state.current(call)?;
    let peer =
        if peer.is_null() { return Err(INVALID_CONTEXT) } else { state.context(call, peer)? };
    match state.peers.remove(&(current, peer)) {
        Some(_) => Ok(()),
        None => Err(CUresult::CUDA_ERROR_PEER_ACCESS_NOT_ENABLED),
    }
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
    state.invalidate_captures_of(context)?;
    let busy = state.busy_streams(context);
    let collector = state.hidden_stream(context)?;
    for stream in busy {
        let point = state.new_point(false, None);
        state.push_mark(stream, point.clone());
        state.push(collector, Task::Wait(point));
    }
    let contexts = state.with_greens(context);
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
    state.invalidate_captures_of(context)?;
    let entry = &state.events[event];
    let point = match &entry.state {
        EventState::Captured(_) => return Err(INVALID_VALUE),
        EventState::Pending(point) if !point.is_done() => Some(Gate::Point(point.clone())),
        _ => None,
    };
    let others =
        entry.shared.as_ref().and_then(|shared| shared.wait_for_others()).map(Gate::Shared);
    let gates: Vec<Gate> = point.into_iter().chain(others).collect();
    let contexts = state.with_greens(context);
    state.feed(|feed, of| feed.context_wait(&of.contexts(&contexts), of.event(event)));
    for context in contexts {
        state.add_gates(context, gates.iter().cloned());
    }
    Ok(())
}
