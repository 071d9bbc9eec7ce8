//! For cudarc, numba-cuda and cuda.core (the profiler), and programs of the CUDA runtime: questions
//! about modules, of which this driver loads none; names of functions, the profiler, tables of
//! other exports.

use core::ffi::{c_int, c_uchar, c_void};

use crate::abi::*;
use crate::arg::{In, Memory, Ptr};
use crate::machine::call_frame::CallFrame;

const EAGER_LOADING: c_int = 1;
const LAZY_LOADING: c_int = 2;

/// Documented: lazy, unless the environment asks for the other.
pub(crate) fn module_get_loading_mode(call: &CallFrame, mode: Ptr<c_int>) -> Answer {
    drop(call.ready()?);
    let eager = std::env::var_os("CUDA_MODULE_LOADING").is_some_and(|mode| mode == "EAGER");
    mode.put(if eager { EAGER_LOADING } else { LAZY_LOADING })
}

/// There is no profiler to start or stop, and that is no error.
pub(crate) fn profiler_switch(call: &CallFrame) -> Answer {
    let state = call.ready()?;
    state.current(call).map(drop)
}

/// The name of a kernel or a function: there is none that could have one.
pub(crate) fn function_name(
    call: &CallFrame,
    name: Ptr<*const c_uchar>,
    function: Memory,
) -> Answer {
    call.refuse(if name.is_null() || function.is_null() { INVALID_VALUE } else { NOT_SUPPORTED })
}

/// Tables of what is not exported by name. Measured: one that the driver does not know is an
/// invalid value, before `cuInit` too; this one knows none.
pub(crate) fn get_export_table(
    call: &CallFrame,
    _table: Ptr<*const c_void>,
    _id: In<CUuuid>,
) -> Answer {
    call.lock()?.misuses.say_unsupported(call.name());
    Err(INVALID_VALUE)
}
