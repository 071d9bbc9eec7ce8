//! Futures that wake an event loop by a socket, without Python.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::collections::HashMap;
use std::io::{Read, Result, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Wake;

/// The futures for which one event loop waits, by their keys.
///
/// Whoever wakes one must not wait for the GIL. So a waker notes the key, and writes a byte to a
/// socket that the loop watches.
pub(crate) struct Watched<F> {
    shared: Arc<Shared>,
    waiting: Mutex<HashMap<u64, F>>,
    socket: UnixStream,
}

struct Shared {
    /// Keys of futures to poll.
    ready: Mutex<Vec<u64>>,
    socket: UnixStream,
}

struct Key {
    key: u64,
    shared: Arc<Shared>,
}

impl Wake for Key {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut ready = lock(&self.shared.ready);
        ready.push(self.key);
        // One byte until the loop has taken the keys. A full socket has one already.
        if ready.len() == 1 {
            let _ = (&self.shared.socket).write(&[0]);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<F: Future + Unpin> Watched<F> {
    pub(crate) fn new() -> Result<Self> {
        let (ours, socket) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        socket.set_nonblocking(true)?;
        let shared = Arc::new(Shared { ready: Mutex::default(), socket });
        Ok(Self { shared, waiting: Mutex::default(), socket: ours })
    }

    /// Readable when `take_ready` may have something.
    pub(crate) fn fileno(&self) -> i32 {
        self.socket.as_raw_fd()
    }

    /// Polls, and returns the outcome, if there is one.
    fn poll(&self, key: u64, future: &mut F) -> Option<F::Output> {
        let waker = Waker::from(Arc::new(Key { key, shared: Arc::clone(&self.shared) }));
        match Pin::new(future).poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(outcome) => Some(outcome),
            Poll::Pending => None,
        }
    }

    /// Waits for a future under this key, unless it has its outcome already.
    pub(crate) fn add(&self, key: u64, mut future: F) -> Option<F::Output> {
        let outcome = self.poll(key, &mut future);
        if outcome.is_none() {
            lock(&self.waiting).insert(key, future);
        }
        outcome
    }

    /// Stops waiting.
    pub(crate) fn remove(&self, key: u64) {
        let removed = lock(&self.waiting).remove(&key);
        drop(removed);
    }

    /// The outcomes of futures that were woken, each with its key. One that was woken too early is
    /// waited for again.
    pub(crate) fn take_ready(&self) -> Vec<(u64, F::Output)> {
        while matches!((&self.socket).read(&mut [0; 64]), Ok(read) if read > 0) {}
        let mut keys = core::mem::take(&mut *lock(&self.shared.ready));
        keys.sort_unstable();
        keys.dedup();
        let mut outcomes = Vec::new();
        for key in keys {
            // Not under the lock: a poll may make driver calls.
            let removed = lock(&self.waiting).remove(&key);
            let Some(mut future) = removed else { continue };
            match self.poll(key, &mut future) {
                Some(outcome) => outcomes.push((key, outcome)),
                None => drop(lock(&self.waiting).insert(key, future)),
            }
        }
        outcomes
    }
}
