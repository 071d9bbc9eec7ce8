//! The calls that write values and wait for them.

use core::ffi::c_uint;

use cuda_events::sys::CUstreamBatchMemOpParams;

use crate::call::{Call, Code, Handle};
use crate::model::values::operations_begin;
use crate::state::values::{Value, operations_at};
use crate::walk::{begin_call, caught_up};

pub(crate) fn apply(
    call: &Call,
    real: impl FnOnce() -> Code,
    stream: Handle,
    values: &[Value],
) -> Code {
    let number = begin_call(call, |watch| {
        let stream = watch.stream(call, stream);
        operations_begin(watch, stream, values)
    });
    let code = real();
    if let Some(number) = number {
        caught_up(|watch| watch.submission_returned(number, code));
    }
    code
}

pub(crate) fn batch(
    call: &Call,
    real: impl FnOnce() -> Code,
    stream: Handle,
    count: c_uint,
    operations: *const CUstreamBatchMemOpParams,
) -> Code {
    if let Some(values) = operations_at(operations, count) {
        return apply(call, real, stream, &values);
    }
    begin_call(call, |watch| {
        watch.seen.operations += 1;
        watch.order_everything();
        watch.note_captures();
    });
    real()
}
