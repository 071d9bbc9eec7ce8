//! What a future needs that is awaited without an executor.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Until when a test has failed that waits for something.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Wakes the thread that made it, and counts.
pub struct Unpark(Thread, AtomicUsize);

impl Unpark {
    pub fn new() -> Arc<Self> {
        Arc::new(Self(thread::current(), AtomicUsize::new(0)))
    }

    pub fn woken(&self) -> usize {
        self.1.load(Ordering::SeqCst)
    }
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.unpark();
    }
}

/// Polls until it is resolved, when it is woken.
#[track_caller]
pub fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Unpark::new());
    let mut future = pin!(future);
    let started = Instant::now();
    loop {
        // Before it polls, which would find the result even if nobody was woken.
        assert!(started.elapsed() < PATIENCE, "nobody is woken");
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park_timeout(PATIENCE),
        }
    }
}

/// Polls once, which must not resolve it.
#[track_caller]
pub fn pend<F: Future<Output: PartialEq + std::fmt::Debug> + Unpin>(future: &mut F, waker: &Waker) {
    assert_eq!(Pin::new(future).poll(&mut Context::from_waker(waker)), Poll::Pending);
}

#[track_caller]
pub fn wait_until(what: &str, is: impl Fn() -> bool) {
    let started = Instant::now();
    while !is() {
        assert!(started.elapsed() < PATIENCE, "{what}");
        thread::yield_now();
    }
}
