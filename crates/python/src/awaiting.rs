//! What an event loop of asyncio watches.

use pyo3::prelude::*;

use cuda_timelines::PointCompletion;

use crate::error::exception;
use crate::point::Point;
use crate::watched::Watched;

/// The points for which one event loop waits.
///
/// The thread of `cuda_timelines` wakes them. It serves the whole process.
#[pyclass(frozen, module = "cuda_timelines._native")]
pub(crate) struct Notifier(Watched<PointCompletion>);

#[pymethods]
impl Notifier {
    #[new]
    fn new() -> PyResult<Self> {
        Ok(Self(Watched::new()?))
    }

    /// Readable when `ready` has something.
    fn fileno(&self) -> i32 {
        self.0.fileno()
    }

    /// Waits for the point under this key. Returns whether it is reached already.
    fn add(&self, py: Python<'_>, key: u64, point: &Bound<'_, Point>) -> PyResult<bool> {
        let point = point.get().raw();
        match py.detach(|| self.0.add(key, point.into_future())) {
            None => Ok(false),
            Some(Ok(())) => Ok(true),
            Some(Err(error)) => Err(exception(py, &error)),
        }
    }

    /// Stops waiting.
    fn remove(&self, py: Python<'_>, key: u64) {
        py.detach(|| self.0.remove(key));
    }

    /// Returns the keys of points that are reached, or have failed with an exception.
    fn ready<'py>(&self, py: Python<'py>) -> Vec<(u64, Option<Bound<'py, PyAny>>)> {
        let outcomes = py.detach(|| self.0.take_ready());
        let exceptions = outcomes.into_iter().map(|(key, outcome)| {
            let error = outcome.err().map(|error| exception(py, &error));
            (key, error.map(|error| error.into_value(py).into_bound(py).into_any()))
        });
        exceptions.collect()
    }
}
