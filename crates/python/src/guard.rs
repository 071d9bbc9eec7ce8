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

    pub(crate) fn take(&self) -> Option<Arc<T>> {
        self.lock().take()
    }

    pub(crate) fn put(&self, value: Arc<T>) {
        *self.lock() = Some(value);
    }

    pub(crate) fn close(&self) {
        drop_detached(self.take());
    }
}

impl<T: Send + Sync> Drop for Closing<T> {
    fn drop(&mut self) {
        self.close();
    }
}

/// Drops with the GIL released, if this thread has it.
pub(crate) fn drop_detached<T: Send>(value: Option<T>) {
    let Some(value) = value else { return };
    let mut value = Some(value);
    // While Python ends there is no GIL to be had.
    let place = &mut value;
    let _ = Python::try_attach(|py| py.detach(|| drop(place.take())));
    drop(value);
}
