//! An object that Python can close.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;

use crate::error::plain;

/// What an object of Python owns until it is closed. Methods that run hold a share, so closing
/// never pulls it away under another thread. Its drop may make driver calls, and so runs with the
/// GIL released.
pub(crate) struct Closing<T: Send + Sync>(Mutex<Option<Arc<T>>>);

impl<T: Send + Sync> Closing<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Mutex::new(Some(Arc::new(value))))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The share, or none after the close.
    pub(crate) fn get(&self) -> Option<Arc<T>> {
        self.lock().clone()
    }

    /// The share, or an exception after the close.
    pub(crate) fn open(&self, py: Python<'_>, class: &str) -> PyResult<Arc<T>> {
        self.get().ok_or_else(|| plain(py, format!("this {class} is closed; make another one")))
    }

    /// Closes the object and returns its value, or none if it is closed. The object stays open, and
    /// the text says why, if another thread uses it, for which `busy` is called, or if `ready`
    /// refuses. Both run under a lock that others take with the GIL: they must not touch Python, nor
    /// make driver calls.
    pub(crate) fn take_alone(
        &self,
        busy: impl FnOnce(&T) -> Result<(), String>,
        ready: impl FnOnce(&mut T) -> Result<(), String>,
    ) -> Result<Option<T>, String> {
        let mut place = self.lock();
        let Some(shared) = place.as_mut() else { return Ok(None) };
        let Some(own) = Arc::get_mut(shared) else {
            busy(shared)?;
            return Err("another thread uses the timeline right now; call poison again".to_owned());
        };
        ready(own)?;
        Ok(place.take().and_then(Arc::into_inner))
    }

    pub(crate) fn close(&self) {
        let taken = self.lock().take();
        drop_detached(taken.and_then(Arc::into_inner));
    }
}

impl<T: Send + Sync> Drop for Closing<T> {
    fn drop(&mut self) {
        self.close();
    }
}

/// Drops with the GIL released, if this thread has it.
///
/// Python also ends objects while an exception is on its way. The drop may call Python, which must
/// not find it.
pub(crate) fn drop_detached<T: Send>(value: Option<T>) {
    let Some(value) = value else { return };
    let mut value = Some(value);
    // While Python ends there is no GIL to be had.
    let place = &mut value;
    let _ = Python::try_attach(|py| {
        let pending = PyErr::take(py);
        py.detach(|| drop(place.take()));
        if let Some(pending) = pending {
            pending.restore(py);
        }
    });
    drop(value);
}
