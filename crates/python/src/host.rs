//! Timelines of the host.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::detached;
use crate::foreign::{self, in_stream};
use crate::guard::Closing;
use crate::point::{Point, signalled};
use crate::shared::TimelineFile;

const CLASS: &str = "HostTimeline";

/// A counter that the host advances: a stage of a pipeline that runs on the CPU.
///
/// `device` is the number of a device, a `cuda.core.Device`, a `torch.device`, or a stream. With
/// `file` in its place, other processes can import the timeline.
#[pyclass(frozen, module = "cuda_timelines")]
pub(crate) struct HostTimeline(Closing<cuda_timelines::HostTimeline>);

#[pymethods]
impl HostTimeline {
    #[new]
    #[pyo3(signature = (device=None, *, file=None))]
    fn new(
        py: Python<'_>,
        device: Option<&Bound<'_, PyAny>>,
        file: Option<&Bound<'_, TimelineFile>>,
    ) -> PyResult<Self> {
        let timeline = match (device, file) {
            (None, Some(file)) => {
                let file = file.get().open(py)?;
                detached(py, move || cuda_timelines::HostTimeline::shared(&file))
            }
            (Some(device), None) => {
                let context = foreign::context(device)?;
                detached(py, move || cuda_timelines::HostTimeline::new(&context))
            }
            _ => Err(PyTypeError::new_err("a HostTimeline takes a device or a file")),
        };
        Ok(Self(Closing::new(timeline?)))
    }

    /// Reaches the next value: no driver call. Returns its point.
    fn signal(&self, py: Python<'_>) -> PyResult<Point> {
        let inner = self.0.open(py, CLASS)?;
        let signal = move || Ok((inner.signal()?, inner.context().clone()));
        signalled(py, py.detach(signal))
    }

    /// The value of the last signal: one load.
    #[getter]
    fn completed(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.0.open(py, CLASS)?.completed())
    }

    /// What another process needs to import the timeline, beside the file: bytes. None if it is in
    /// no file.
    #[getter]
    fn descriptor<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let descriptor = self.0.open(py, CLASS)?.descriptor();
        Ok(descriptor.map(|it| PyBytes::new(py, &it.to_bytes())))
    }

    /// Makes all later work in `stream` wait for a value that may not be signalled yet. It can
    /// deadlock: see docs/timelines.md.
    fn wait_ahead(&self, stream: &Bound<'_, PyAny>, value: u64) -> PyResult<()> {
        let inner = self.0.open(stream.py(), CLASS)?;
        in_stream(stream, move |stream| inner.wait_ahead(stream, value))
    }

    /// Ends the timeline, after a failure: all waits for later values end, those of hosts with
    /// Poisoned.
    fn poison(&self, py: Python<'_>) -> PyResult<()> {
        let Some(host) = self.0.get() else { return Ok(()) };
        py.detach(move || {
            host.poison();
            drop(host);
            self.0.close();
        });
        Ok(())
    }

    /// Ends the timeline, and releases all waits for later values.
    fn close(&self) {
        self.0.close();
    }

    fn __enter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, _error: &Bound<'_, pyo3::types::PyTuple>) {
        self.close();
    }

    fn __repr__(&self) -> String {
        match self.0.get() {
            Some(inner) => {
                format!("<cuda_timelines.HostTimeline, {} signals>", inner.completed())
            }
            None => "<cuda_timelines.HostTimeline, closed>".to_owned(),
        }
    }
}
