//! Host functions and callbacks in a stream. One thread runs them all, in the order in which
//! streams reach them. In a failed context functions are skipped, and callbacks get the error.

use core::ffi::{c_uint, c_void};

use crate::abi::*;
use crate::arg::{Memory, Ptr, StreamArg};
use crate::engine::work::{HostCall, Task, UserData};
use crate::graph::NodeKind;
use crate::machine::State;
use crate::machine::call_frame::CallFrame;

exports! { $ [host_function]
    cuStreamAddCallback, cuStreamAddCallback_ptsz => stream_add_callback;
    cuLaunchHostFunc, cuLaunchHostFunc_ptsz => launch_host_func;
    cuLaunchHostFunc_v2, cuLaunchHostFunc_v2_ptsz => launch_host_func_v2;
}

pub(crate) fn launch_host_func(
    call: &CallFrame,
    stream: StreamArg,
    host_fn: CUhostFn,
    user_data: Memory,
) -> Answer {
    let mut state = call.ready()?;
    let function = host_fn.ok_or(INVALID_VALUE)?;
    let stream = state.stream(call, stream)?;
    let host = HostCall::Function(function, UserData(user_data.raw()));
    let State { captures, streams, graphs, .. } = &mut *state;
    if captures.add(streams, graphs, call.number, stream, || NodeKind::Host(host))? {
        return Ok(());
    }
    state.engine.threads.ensure_host(call.machine)?;
    state.running().submit(stream, Task::Host(host));
    Ok(())
}

pub(crate) fn launch_host_func_v2(
    call: &CallFrame,
    stream: StreamArg,
    host_fn: CUhostFn,
    user_data: Memory,
    sync_mode: c_uint,
) -> Answer {
    if sync_mode > CU_HOST_TASK_SPINWAIT {
        return call.refuse(INVALID_VALUE);
    }
    launch_host_func(call, stream, host_fn, user_data)
}

pub(crate) fn stream_add_callback(
    call: &CallFrame,
    stream: StreamArg,
    callback: CUstreamCallback,
    user_data: Ptr<c_void>,
    flags: c_uint,
) -> Answer {
    let mut state = call.ready()?;
    let function = callback.ok_or(INVALID_VALUE)?;
    if flags != 0 {
        return Err(INVALID_VALUE);
    }
    let index = state.stream(call, stream)?;
    let State { captures, streams, .. } = &mut *state;
    captures.refuse_in(streams, index)?;
    state.engine.threads.ensure_host(call.machine)?;
    let host = HostCall::Callback(function, stream.addr(), UserData(user_data.raw()));
    state.running().submit(index, Task::Host(host));
    Ok(())
}
