//! External semaphores: importing and destroying them, and their signals and waits in streams.
//! [`processes::semaphore`](crate::processes::semaphore) has their words.

use core::ffi::c_uint;

use crate::abi::*;
use crate::arg::{In, Ptr, StreamArg};
use crate::engine::work::{Origin, Task};
use crate::graph::NodeKind;
use crate::machine::State;
use crate::machine::call_frame::CallFrame;
use crate::machine::handles::Kind;
use crate::processes::semaphore::{
    AVAILABLE, Descriptor, Imported, Semaphore, SemaphoreKind, SemaphorePoint, Semaphores,
};

exports! { $ [external_semaphore]
    cuImportExternalSemaphore => import_external_semaphore;
    cuDestroyExternalSemaphore => destroy_external_semaphore;
    cuSignalExternalSemaphoresAsync, cuSignalExternalSemaphoresAsync_ptsz
        => signal_external_semaphores_async;
    cuWaitExternalSemaphoresAsync, cuWaitExternalSemaphoresAsync_ptsz
        => wait_external_semaphores_async;
}

type HandleType = CUexternalSemaphoreHandleType;

/// The version that brought the descriptors of timelines.
const TIMELINES: i32 = 11_020;

pub(crate) fn find_semaphore(
    state: &State,
    call: &CallFrame,
    handle: u64,
) -> Result<u32, CUresult> {
    state
        .semaphores
        .find(handle)
        .map_err(|bad| state.misuses.bad_handle(call, Kind::Semaphore, handle, bad))
}

/// The kind that a type of handle is for.
fn kind_of(state: &State, handle: HandleType) -> Result<SemaphoreKind, CUresult> {
    match handle {
        HandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD => Ok(SemaphoreKind::Binary),
        HandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD
            if state.config.version >= TIMELINES =>
        {
            Ok(SemaphoreKind::Timeline)
        }
        // Measured: those of other systems are this, too.
        _ => Err(INVALID_VALUE),
    }
}

/// Gives what one call is about to a stream.
pub(crate) fn submit_semaphores(
    state: &mut State,
    stream: u32,
    semaphores: Semaphores,
    origin: Origin,
) {
    for point in semaphores.points {
        let task = match semaphores.signals {
            true => Task::SignalSemaphore(point, origin),
            false => Task::WaitSemaphore(point, origin),
        };
        state.running().submit(stream, task);
    }
}

/// A signal or a wait of a semaphore that a stream has not done yet: what that is, in words.
fn pending_semaphore(state: &State, handle: u64) -> Option<String> {
    let pending = |task: &Task| match task {
        Task::SignalSemaphore(point, origin) if point.handle == handle => Some(("signal", *origin)),
        Task::WaitSemaphore(point, origin) if point.handle == handle => Some(("wait", *origin)),
        _ => None,
    };
    state.streams.iter().find_map(|(stream, entry)| {
        let (what, Origin { call, number }) = entry.tasks().find_map(pending)?;
        Some(format!(
            "external semaphore {handle:#x} has a pending {what} in stream {:#x}, from {call}, \
             call {number} of this driver",
            state.streams.handle(stream)
        ))
    })
}

/// Whether a semaphore is one that the program has to destroy.
pub(crate) fn is_live_semaphore(state: &State, index: u32) -> bool {
    !state.given_back(state.semaphores[index].context, state.semaphores.handle(index))
}

/// What a context takes with it.
pub(crate) fn end_semaphores_of(state: &mut State, call: &CallFrame, context: u32) {
    for index in state.semaphores.indices(|semaphore| semaphore.context == context) {
        let handle = state.semaphores.handle(index);
        state.misuses.note_destroyed(call, handle);
        state.semaphores.remove(index);
        state.misuses.losses.forget(handle);
    }
}

/// A success takes the descriptor over; whatever is refused is the program's as before.
pub(crate) fn import_external_semaphore(
    call: &CallFrame,
    semaphore: Ptr<CUexternalSemaphore>,
    description: In<CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC>,
) -> Answer {
    let mut state = call.ready()?;
    semaphore.required()?;
    let description = description.get()?;
    // Measured: a green context has none of its own.
    let context = state.current(call).map(|current| state.greens.primary_behind(current))?;
    if description.flags != 0 {
        return Err(INVALID_VALUE);
    }
    let kind = kind_of(&state, description.type_)?;
    if !state.config.ipc || !AVAILABLE {
        return Err(NOT_SUPPORTED);
    }
    // SAFETY: both types have a descriptor there, and any bits are a number.
    let number = unsafe { description.handle.fd };
    // Measured. Of a binary semaphore it is the system's refusal, as for any file.
    if number < 0 && kind == SemaphoreKind::Timeline {
        return Err(INVALID_VALUE);
    }
    let opened = Semaphore::open(number).ok_or(CUresult::CUDA_ERROR_UNKNOWN)?;
    if opened.kind != kind {
        // Measured: the real driver takes it. What it then does is not documented.
        let what = format!("the descriptor of a {} is imported as a {}", opened.kind, kind);
        return Err(state.misuses.undefined(call, &what, CUresult::CUDA_ERROR_UNKNOWN));
    }
    // Nothing may fail after the descriptor is taken: it would be closed here and by the program.
    if !state.semaphores.has_room() {
        return Err(OUT_OF_MEMORY);
    }
    let descriptor = taken(number)?;
    let new = Imported { context, semaphore: opened, descriptor };
    let (_, handle) = state.semaphores.insert(call.number, new).ok_or(OUT_OF_MEMORY)?;
    semaphore.put(core::ptr::without_provenance_mut(handle as usize))
}

#[cfg(target_os = "linux")]
fn taken(number: i32) -> Result<Descriptor, CUresult> {
    use std::os::fd::FromRawFd as _;
    // SAFETY: it was just found open, and by the contract of the C call it is the driver's from now
    // on.
    Ok(unsafe { std::os::fd::OwnedFd::from_raw_fd(number) })
}

#[cfg(not(target_os = "linux"))]
fn taken(_number: i32) -> Result<Descriptor, CUresult> {
    Err(NOT_SUPPORTED)
}

/// The descriptor is closed here. Documented: signals and waits must be over before. A graph may
/// still have some, as long as it is not launched.
pub(crate) fn destroy_external_semaphore(
    call: &CallFrame,
    semaphore: Ptr<CUextSemaphore_st>,
) -> Answer {
    let mut state = call.ready()?;
    if semaphore.is_null() {
        return Err(INVALID_VALUE);
    }
    let index = find_semaphore(&state, call, semaphore.addr())?;
    let context = state.semaphores[index].context;
    state.may_destroy(context, semaphore.addr())?;
    if let Some(what) = pending_semaphore(&state, semaphore.addr()) {
        return Err(state.misuses.undefined(call, &what, INVALID_HANDLE));
    }
    state.misuses.note_destroyed(call, semaphore.addr());
    state.semaphores.remove(index);
    Ok(())
}

/// Documented: it can be captured, and becomes a node of the graph.
fn give(
    call: &CallFrame,
    semaphores: In<CUexternalSemaphore>,
    values: &[(u64, c_uint)],
    signals: bool,
    stream: StreamArg,
) -> Answer {
    let mut state = call.ready()?;
    let stream = state.stream(call, stream)?;
    if values.is_empty() {
        return Err(INVALID_VALUE);
    }
    let mut points = Vec::with_capacity(values.len());
    for (semaphore, (value, flags)) in semaphores.read_array(values.len())?.into_iter().zip(values)
    {
        // Measured: over a signal the real driver crashes, and a wait it refuses.
        if semaphore.is_null() && signals {
            return Err(state.misuses.undefined(
                call,
                "NULL where the real driver dereferences",
                INVALID_VALUE,
            ));
        }
        // The flags are for memory of NvSciBuf, which this driver has none of.
        if semaphore.is_null() || *flags != 0 {
            return Err(INVALID_VALUE);
        }
        let handle = semaphore.addr() as u64;
        let index = find_semaphore(&state, call, handle)?;
        // Both codes were measured on an H200.
        let context = state.streams[stream].context;
        if state.contexts[context].green {
            return Err(INVALID_HANDLE);
        }
        if state.semaphores[index].context != context {
            return Err(INVALID_VALUE);
        }
        let semaphore = state.semaphores[index].semaphore.clone();
        points.push(SemaphorePoint { semaphore, handle, value: *value });
    }
    state.engine.threads.ensure_ticker(call.machine)?;
    let given = Semaphores { signals, points };
    let State { captures, streams, graphs, .. } = &mut *state;
    let node = || NodeKind::Semaphores(given.clone());
    if !captures.add(streams, graphs, call.number, stream, node)? {
        submit_semaphores(&mut state, stream, given, call.origin());
    }
    Ok(())
}

pub(crate) fn signal_external_semaphores_async(
    call: &CallFrame,
    semaphores: In<CUexternalSemaphore>,
    params: In<CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS>,
    count: c_uint,
    stream: StreamArg,
) -> Answer {
    let params = params.read_array(count as usize)?;
    let values: Vec<_> = params.iter().map(|one| (one.params.fence.value, one.flags)).collect();
    give(call, semaphores, &values, true, stream)
}

pub(crate) fn wait_external_semaphores_async(
    call: &CallFrame,
    semaphores: In<CUexternalSemaphore>,
    params: In<CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS>,
    count: c_uint,
    stream: StreamArg,
) -> Answer {
    let params = params.read_array(count as usize)?;
    let values: Vec<_> = params.iter().map(|one| (one.params.fence.value, one.flags)).collect();
    give(call, semaphores, &values, false, stream)
}
