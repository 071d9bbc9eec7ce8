//! The driver's log: why it refused a call. Here it has the reports of misuse, for a driver that
//! goes on after them.

use core::ffi::{c_char, c_uint};

use crate::abi::*;
use crate::arg::Ptr;
use crate::machine::call_frame::CallFrame;
use crate::sync::lock;

exports! { $ [driver_log]
    cuLogsCurrent => logs_current;
    cuLogsDumpToMemory => logs_dump_to_memory;
}

pub(crate) mod lines;

pub(crate) fn logs_current(
    call: &CallFrame,
    iterator: Ptr<CUlogIterator>,
    flags: c_uint,
) -> Answer {
    let state = call.lock()?;
    if flags != 0 {
        return Err(INVALID_VALUE);
    }
    iterator.put(lock(&state.misuses.log.0).next)
}

/// Documented: an iterator moves to the end, the text ends with a zero that its size does not
/// count, and no room for any line is an invalid value.
pub(crate) fn logs_dump_to_memory(
    call: &CallFrame,
    iterator: Ptr<CUlogIterator>,
    buffer: Ptr<c_char>,
    size: Ptr<usize>,
    flags: c_uint,
) -> Answer {
    let state = call.lock()?;
    buffer.required()?;
    let room = size.get()?;
    if flags != 0 || room == 0 {
        return Err(INVALID_VALUE);
    }
    let log = lock(&state.misuses.log.0);
    let from = if iterator.is_null() { None } else { Some(iterator.get()?) };
    let text = log.from(from, room - 1);
    let nothing = text.is_empty() && !log.from(from, usize::MAX).is_empty();
    // SAFETY: the C call says that the buffer has `room` bytes, and the text has fewer.
    unsafe {
        buffer.raw().copy_from_nonoverlapping(text.as_ptr().cast(), text.len());
        buffer.raw().add(text.len()).write(0);
    }
    size.put(text.len())?;
    if nothing {
        return Err(INVALID_VALUE);
    }
    iterator.put_if(log.next);
    Ok(())
}
