//! What an event loop of asyncio watches.

use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Wake;

use pyo3::prelude::*;

use cuda_timelines::PointCompletion;

use crate::error::exception;
use crate::point::Point;

/// The points for which one event loop waits.
///
/// The thread of `cuda_timelines` must never wait for the GIL: it serves the whole process. So it
/// notes the key of a point that is reached, and writes a byte to a socket that the loop watches.
#[pyclass(frozen, module = "cuda_timelines._native")]
pub(crate) struct Notifier {
    shared: Arc<Shared>,
    waiting: Mutex<HashMap<u64, PointCompletion>>,
    socket: UnixStream,
}

struct Shared {
    /// Keys of points to look at.
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
        let mut ready = self.shared.ready.lock().unwrap_or_else(PoisonError::into_inner);
        ready.push(self.key);
        // One byte until the loop has taken the keys. A full socket has one already.
        if ready.len() == 1 {
            let _ = (&self.shared.socket).write(&[0]);
        }
    }
}

impl Notifier {
    /// Polls, and returns the outcome, if there is one.
    fn poll(&self, key: u64, completion: &mut PointCompletion) -> Option<Outcome> {
        let waker = Waker::from(Arc::new(Key { key, shared: Arc::clone(&self.shared) }));
        match Pin::new(completion).poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(outcome) => Some(outcome),
            Poll::Pending => None,
        }
    }
}

type Outcome = Result<(), cuda_timelines::Error>;

#[pymethods]
impl Notifier {
    #[new]
    fn new() -> PyResult<Self> {
        let (ours, socket) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        socket.set_nonblocking(true)?;
        let shared = Arc::new(Shared { ready: Mutex::default(), socket });
        Ok(Self { shared, waiting: Mutex::default(), socket: ours })
    }

    /// Readable when `ready` has something.
    fn fileno(&self) -> i32 {
        self.socket.as_raw_fd()
    }

    /// Waits for the point under this key. Returns whether it is reached already.
    fn add(&self, py: Python<'_>, key: u64, point: &Bound<'_, Point>) -> PyResult<bool> {
        let point = point.get().raw();
        let outcome = py.detach(|| {
            let mut completion = point.into_future();
            let outcome = self.poll(key, &mut completion);
            if outcome.is_none() {
                let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
                waiting.insert(key, completion);
            }
            outcome
        });
        match outcome {
            None => Ok(false),
            Some(Ok(())) => Ok(true),
            Some(Err(error)) => Err(exception(py, &error)),
        }
    }

    /// Stops waiting.
    fn remove(&self, py: Python<'_>, key: u64) {
        py.detach(|| {
            let removed = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
            drop(removed);
        });
    }

    /// Returns the keys of points that are reached, or have failed with an exception.
    fn ready<'py>(&self, py: Python<'py>) -> Vec<(u64, Option<Bound<'py, PyAny>>)> {
        let outcomes: Vec<(u64, Outcome)> = py.detach(|| {
            while matches!((&self.socket).read(&mut [0; 64]), Ok(read) if read > 0) {}
            let mut ready = self.shared.ready.lock().unwrap_or_else(PoisonError::into_inner);
            let mut keys = core::mem::take(&mut *ready);
            drop(ready);
            keys.sort_unstable();
            keys.dedup();
            let mut outcomes = Vec::new();
            for key in keys {
                // Not under the lock: a poll may make driver calls.
                let lock = || self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
                let Some(mut completion) = lock().remove(&key) else { continue };
                match self.poll(key, &mut completion) {
                    Some(outcome) => outcomes.push((key, outcome)),
                    None => drop(lock().insert(key, completion)),
                }
            }
            outcomes
        });
        let exceptions = outcomes.into_iter().map(|(key, outcome)| {
            let error = outcome.err().map(|error| exception(py, &error));
            (key, error.map(|error| error.into_value(py).into_bound(py).into_any()))
        });
        exceptions.collect()
    }
}
