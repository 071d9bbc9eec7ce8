//! The threads that make calls, and their ends.

use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::{OnceLock, PoisonError, TryLockError};

use cuda_order_check_engine::ThreadId;

use crate::call::thread;
use crate::guard;
use crate::lock::{Lock, Rank};
use crate::watch::Watch;

/// The default streams of threads end with them. Their work goes on.
pub(crate) fn threads_ended(watch: &mut Watch) {
    if !HAVE_ENDED.swap(false, Ordering::Acquire) {
        return;
    }
    let ended = match ENDED.try_lock() {
        Ok(mut all) => std::mem::take(&mut *all),
        Err(TryLockError::Poisoned(poisoned)) => std::mem::take(&mut *poisoned.into_inner()),
        // This call may be one of a signal handler that has interrupted the end of a thread.
        Err(TryLockError::WouldBlock) => return HAVE_ENDED.store(true, Ordering::Release),
    };
    let mut streams = Vec::new();
    watch.streams.defaults.retain(|(_, thread), stream| {
        let ends = ended.contains(thread);
        streams.extend(ends.then_some(*stream));
        !ends
    });
    streams.into_iter().for_each(|stream| watch.feed.stream_destroy(stream));
    ended.into_iter().for_each(|thread| watch.feed.thread_ended(ThreadId(thread)));
}

/// The threads that have ended since the last call.
pub(crate) static ENDED: Lock<Vec<u64>> = Lock::new(Rank::EndedThreads, Vec::new());

pub(crate) static HAVE_ENDED: AtomicBool = AtomicBool::new(false);

/// The calling thread has made a call, and its end will be noted. It is noted after the
/// destructors of all variables of the thread, which may make calls.
pub(crate) fn note_end() {
    /// Its value in a thread is the thread's number.
    static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();
    extern "C" fn ended(number: *mut c_void) {
        if !guard::off() {
            let mut all = ENDED.lock().unwrap_or_else(PoisonError::into_inner);
            all.push(number.addr() as u64);
            HAVE_ENDED.store(true, Ordering::Release);
        }
    }
    let key = KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: a place for the key, and a function of this library, which nothing unloads.
        (unsafe { libc::pthread_key_create(&mut key, Some(ended)) } == 0).then_some(key)
    });
    if let Some(key) = key {
        // SAFETY: a key that was made.
        unsafe {
            libc::pthread_setspecific(*key, core::ptr::without_provenance(thread() as usize))
        };
    }
}
