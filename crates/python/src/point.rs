//! Points.

use core::time::Duration;
use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBool;

use cuda_events::{Context, Progress};
use cuda_timelines::CudaStreamExt;

use crate::error::{detached, exception};
use crate::foreign::in_stream;
use crate::guard::drop_detached;

/// How long a wait runs before it looks for signals of the system, such as that of Ctrl-C.
const SIGNALS: Duration = Duration::from_millis(50);

/// A place in a timeline: the work that was in the stream when `signal` was called.
///
/// Check it with `done`, wait for it with `wait`, make a stream wait for it with `stream_wait`, or
/// await it under asyncio. It may outlive its timeline.
#[pyclass(frozen, module = "cuda_timelines")]
pub(crate) struct Point {
    point: cuda_timelines::Point,
    #[expect(dead_code, reason = "held for its share")]
    keeps: Keeps,
}

/// What keeps the answer to whether the point will be reached.
pub(crate) enum Keeps {
    Context(Option<Context>),
    Import(Option<Arc<cuda_timelines::ImportedTimeline>>),
}

impl Drop for Keeps {
    fn drop(&mut self) {
        // The last share of either can block.
        match self {
            Self::Context(context) => {
                drop_detached(context.take().and_then(Context::drop_unless_last));
            }
            Self::Import(import) => drop_detached(import.take().and_then(Arc::into_inner)),
        }
    }
}

impl Point {
    pub(crate) fn new(point: cuda_timelines::Point, keeps: Keeps) -> Self {
        Self { point, keeps }
    }

    pub(crate) fn raw(&self) -> cuda_timelines::Point {
        self.point
    }
}

#[pymethods]
impl Point {
    /// The value of the point. Values of one timeline rise by one from signal to signal.
    #[getter]
    fn value(&self) -> u64 {
        self.point.value()
    }

    /// Returns whether the point is reached: one load, no driver call.
    ///
    /// After False it may never be: `query` and `wait` raise if so.
    fn done(&self) -> bool {
        self.point.is_done()
    }

    /// Returns whether the point is reached, and raises if it never will be.
    ///
    /// If it is not reached, this is a query of the driver.
    fn query(&self, py: Python<'_>) -> PyResult<bool> {
        let point = self.point;
        detached(py, move || point.query()).map(Progress::is_done)
    }

    /// Blocks until the point is reached, for at most `timeout` seconds. Returns whether it is.
    ///
    /// The GIL is released. Raises ExporterGone, Poisoned or DriverError if the point will never be
    /// reached. With `spin` it returns sooner, and uses a core.
    #[pyo3(signature = (timeout=None, *, spin=false))]
    fn wait(
        &self,
        py: Python<'_>,
        timeout: Option<Bound<'_, PyAny>>,
        spin: bool,
    ) -> PyResult<bool> {
        let mut left = timeout.map_or(Ok(Duration::MAX), |it| duration(&it))?;
        let point = self.point;
        loop {
            let part = left.min(SIGNALS);
            let waited = move || {
                if spin { point.spin_timeout(part) } else { point.wait_timeout(part) }
            };
            if detached(py, waited)?.is_done() {
                return Ok(true);
            }
            if left != Duration::MAX {
                left = left.saturating_sub(part);
                if left.is_zero() {
                    return Ok(false);
                }
            }
            py.check_signals()?;
        }
    }

    /// Makes all later work in `stream` wait for the point. The host does not wait.
    fn stream_wait(&self, stream: &Bound<'_, PyAny>) -> PyResult<()> {
        let point = self.point;
        in_stream(stream, move |stream| stream.wait_point(point))
    }

    fn __await__<'py>(this: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let module = this.py().import("cuda_timelines._awaiting")?;
        module.call_method1("wait", (this,))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.point == other.get().point)
    }

    fn __hash__(&self) -> u64 {
        use core::hash::{BuildHasher, BuildHasherDefault};
        BuildHasherDefault::<std::hash::DefaultHasher>::default().hash_one(self.point)
    }

    fn __repr__(&self) -> String {
        let state = if self.point.is_done() { "done" } else { "not done" };
        format!("<cuda_timelines.Point {}, {state}>", self.point.value())
    }
}

/// Python's seconds.
fn duration(seconds: &Bound<'_, PyAny>) -> PyResult<Duration> {
    if seconds.is_instance_of::<PyBool>() {
        return Err(PyTypeError::new_err("timeout is a number of seconds, and not a bool"));
    }
    let seconds: f64 = seconds.extract()?;
    if seconds.is_nan() || seconds < 0.0 {
        return Err(PyValueError::new_err(format!(
            "timeout is a number of seconds, 0 or more, and not {seconds}; None waits for ever"
        )));
    }
    Ok(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

/// A point of a timeline, from its signal.
pub(crate) fn signalled(
    py: Python<'_>,
    result: Result<(cuda_timelines::Point, Context), cuda_timelines::Error>,
) -> PyResult<Point> {
    match result {
        Ok((point, context)) => Ok(Point::new(point, Keeps::Context(Some(context)))),
        Err(error) => Err(exception(py, &error)),
    }
}
