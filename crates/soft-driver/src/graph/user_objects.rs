//! For cuda.core (its graph definitions): user objects. Graphs keep such an object of the program,
//! and it is destroyed when the last of them is done.

use core::ffi::{c_uint, c_void};

use crate::abi::*;
use crate::arg::{Memory, Ptr};
use crate::engine::work::{Destroy, UserData};
use crate::machine::State;
use crate::machine::call_frame::CallFrame;

exports! { $ [graph::user_objects]
    cuUserObjectCreate => user_object_create;
    cuUserObjectRetain => user_object_retain;
    cuUserObjectRelease => user_object_release;
    cuGraphRetainUserObject => graph_retain_user_object;
    cuGraphReleaseUserObject => graph_release_user_object;
}

/// The only flag there is, and a duty: destroying is not waited for.
const NO_DESTRUCTOR_SYNC: u32 = 1;

/// A graph takes over the program's references instead of adding its own.
const MOVE: u32 = 1;

fn find_object(state: &State, object: Memory) -> Result<u32, CUresult> {
    state.engine.objects.find(object.addr()).map_err(|_| INVALID_VALUE)
}

pub(crate) fn user_object_create(
    call: &CallFrame,
    object: Ptr<*mut c_void>,
    data: Memory,
    destroy: CUhostFn,
    count: c_uint,
    flags: c_uint,
) -> Answer {
    let mut state = call.ready()?;
    object.required()?;
    let destroy = destroy.ok_or(INVALID_VALUE)?;
    if flags != NO_DESTRUCTOR_SYNC || count == 0 {
        return Err(INVALID_VALUE);
    }
    state.engine.threads.ensure_host(call.machine)?;
    let destroy = Destroy(destroy, UserData(data.raw()));
    let handle = state.engine.objects.insert(call.number, count, destroy).ok_or(OUT_OF_MEMORY)?;
    object.put(core::ptr::without_provenance_mut(handle as usize))
}

pub(crate) fn user_object_retain(call: &CallFrame, object: Memory, count: c_uint) -> Answer {
    let mut state = call.ready()?;
    let object = find_object(&state, object)?;
    if count == 0 {
        return Err(INVALID_VALUE);
    }
    state.engine.objects.retain(object, count);
    Ok(())
}

pub(crate) fn user_object_release(call: &CallFrame, object: Memory, count: c_uint) -> Answer {
    let mut state = call.ready()?;
    let object = find_object(&state, object)?;
    if count == 0 || u64::from(count) > state.engine.objects.references(object) {
        return Err(INVALID_VALUE);
    }
    let State { engine, feed, .. } = &mut *state;
    engine.objects.release(&mut engine.jobs, feed.as_deref_mut(), object, count);
    Ok(())
}

pub(crate) fn graph_retain_user_object(
    call: &CallFrame,
    graph: Ptr<CUgraph_st>,
    object: Memory,
    count: c_uint,
    flags: c_uint,
) -> Answer {
    let mut state = call.ready()?;
    if flags & !MOVE != 0 || count == 0 {
        return Err(INVALID_VALUE);
    }
    let graph = state.graphs.find(graph)?;
    let object = find_object(&state, object)?;
    if flags & MOVE == 0 {
        state.engine.objects.retain(object, count);
    }
    let held = &mut state.graphs.graph_mut(graph).objects;
    match held.iter_mut().find(|(other, _)| *other == object) {
        Some((_, held)) => *held += count,
        None => held.push((object, count)),
    }
    Ok(())
}

pub(crate) fn graph_release_user_object(
    call: &CallFrame,
    graph: Ptr<CUgraph_st>,
    object: Memory,
    count: c_uint,
) -> Answer {
    let mut state = call.ready()?;
    let graph = state.graphs.find(graph)?;
    let object = find_object(&state, object)?;
    let held = &mut state.graphs.graph_mut(graph).objects;
    let at = held
        .iter()
        .position(|(other, held)| *other == object && *held >= count && count > 0)
        .ok_or(INVALID_VALUE)?;
    held[at].1 -= count;
    if held[at].1 == 0 {
        held.swap_remove(at);
    }
    let State { engine, feed, .. } = &mut *state;
    engine.objects.release(&mut engine.jobs, feed.as_deref_mut(), object, count);
    Ok(())
}
