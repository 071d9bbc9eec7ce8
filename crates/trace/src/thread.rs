//! The host's threads, as rows of a trace.

use core::cell::Cell;
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A thread of the host: a number that is unique in this process, and its name.
///
/// ```
/// let thread = cuda_events_trace::Thread::current();
/// assert_eq!(thread, cuda_events_trace::Thread::current());
/// println!("{thread}: number {}", thread.number());
/// ```
#[derive(Clone)]
pub struct Thread(Arc<Row>);

struct Row {
    number: u64,
    name: Option<String>,
}

thread_local! {
    static CURRENT: Thread = Thread::new();
    /// The number of tracer calls that this thread is in. This thread-local has no destructor,
    /// because driver calls in the destructors of other thread-locals are observed, too.
    static QUIET: Cell<u32> = const { Cell::new(0) };
}

impl Thread {
    /// The calling thread. Its name is the name at the first call.
    pub fn current() -> Self {
        // In a destructor after this one's: a row of its own.
        CURRENT.try_with(Self::clone).unwrap_or_else(|_| Self::new())
    }

    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(Arc::new(Row { number, name: std::thread::current().name().map(str::to_owned) }))
    }

    /// The thread's number, which is unique in this process.
    pub fn number(&self) -> u64 {
        self.0.number
    }

    /// The thread's name, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.0.name.as_deref()
    }
}

impl PartialEq for Thread {
    fn eq(&self, other: &Self) -> bool {
        self.number() == other.number()
    }
}

impl Eq for Thread {}

/// Prints the thread's name, or its number.
impl fmt::Display for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => write!(f, "thread {}", self.number()),
        }
    }
}

impl fmt::Debug for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Thread")
            .field("number", &self.0.number)
            .field("name", &self.0.name)
            .finish()
    }
}

/// As long as this lives, the thread's driver calls are a tracer's own, and no recorder keeps them.
pub(crate) struct Quiet(());

impl Quiet {
    #[inline]
    pub(crate) fn new() -> Self {
        QUIET.set(QUIET.get() + 1);
        Self(())
    }

    pub(crate) fn is_on() -> bool {
        QUIET.get() > 0
    }
}

impl Drop for Quiet {
    #[inline]
    fn drop(&mut self) {
        QUIET.set(QUIET.get() - 1);
    }
}

/// Locks. A panic of another thread is no error: what is locked is never left half changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
