//! A hooked call, the types of its arguments, and the thread that makes it.

use core::ffi::{c_uint, c_void};
use core::sync::atomic::{AtomicU64, Ordering};

pub(crate) type Code = c_uint;

pub(crate) type Handle = usize;

pub(crate) type Address = u64;

/// A host function of the program.
pub(crate) type Function = Option<unsafe extern "C" fn(*mut c_void)>;

/// `CUstreamCallback`.
pub(crate) type Callback = Option<unsafe extern "C" fn(Handle, Code, *mut c_void)>;

pub(crate) const OK: Code = 0;

pub(crate) const NOT_READY: Code = 600;

/// `CU_EVENT_RECORD_EXTERNAL` and `CU_EVENT_WAIT_EXTERNAL`.
pub(crate) const EXTERNAL: c_uint = 1;

/// A call of a function that the checker hooks.
pub(crate) struct Call {
    pub(crate) name: &'static str,
    /// Whether NULL means the per-thread default stream.
    pub(crate) per_thread: bool,
}

impl Call {
    /// The thread that a default stream belongs to; 0 for the legacy one.
    pub(crate) fn thread_of_default(&self, stream: Handle) -> u64 {
        if stream == 2 || stream == 0 && self.per_thread { thread() } else { 0 }
    }
}

/// What a call has written to a place of the program.
///
/// # Safety
///
/// The place must be NULL or hold a value.
pub(crate) unsafe fn read<T: Copy + Default>(place: *const T) -> T {
    // SAFETY: as the caller says.
    if place.is_null() { T::default() } else { unsafe { place.read() } }
}

#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Bytes([u8; 64]);

/// How many threads have made calls.
pub(crate) static THREADS: AtomicU64 = AtomicU64::new(0);

pub(crate) fn threads() -> u64 {
    THREADS.load(Ordering::Relaxed)
}

pub(crate) fn thread() -> u64 {
    thread_local!(static NUMBER: u64 = THREADS.fetch_add(1, Ordering::Relaxed) + 1);
    NUMBER.try_with(|number| *number).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{Call, thread};

    #[test]
    fn handles_of_default_streams_name_whose_they_are() {
        // NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, and another stream.
        let own = [false, true].map(|per_thread| {
            let call = Call { name: "cuMemsetD8Async", per_thread };
            [0, 1, 2, 0x100].map(|stream| call.thread_of_default(stream) == thread())
        });
        assert_eq!(own, [[false, false, true, false], [true, false, true, false]]);
    }
}
