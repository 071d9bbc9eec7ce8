//! The threads that make calls, and their ends.

use super::*;

/// How many threads have made calls.
static THREADS: AtomicU64 = AtomicU64::new(0);

pub(super) fn threads() -> u64 {
    THREADS.load(Ordering::Relaxed)
}

pub(crate) fn thread() -> u64 {
    thread_local!(static NUMBER: u64 = THREADS.fetch_add(1, Ordering::Relaxed) + 1);
    NUMBER.try_with(|number| *number).unwrap_or(0)
}

/// The threads that have ended since the last call.
pub(super) static ENDED: Mutex<Vec<u64>> = Mutex::new(Vec::new());

pub(super) static HAVE_ENDED: AtomicBool = AtomicBool::new(false);

/// The calling thread is known from now on, and its end will be noted. It is noted after the
/// destructors of all variables of the thread, which may make calls.
pub(super) fn note_end() {
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

impl Watch {
    /// The default streams of threads end with them. Their work goes on.
    pub(super) fn threads_ended(&mut self) {
        if !HAVE_ENDED.swap(false, Ordering::Acquire) {
            return;
        }
        let ended = match ENDED.try_lock() {
            Ok(mut all) => std::mem::take(&mut *all),
            Err(TryLockError::Poisoned(of)) => std::mem::take(&mut *of.into_inner()),
            // This call may be one of a signal handler that has interrupted the end of a thread.
            Err(TryLockError::WouldBlock) => return HAVE_ENDED.store(true, Ordering::Release),
        };
        let mut streams = Vec::new();
        self.defaults.retain(|(_, thread), stream| {
            let ends = ended.contains(thread);
            streams.extend(ends.then_some(*stream));
            !ends
        });
        streams.into_iter().for_each(|stream| self.feed.stream_destroy(stream));
        ended.into_iter().for_each(|thread| self.feed.thread_ended(ThreadId(thread)));
    }
}
