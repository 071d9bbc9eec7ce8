//! Timelines that other processes see.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyInt};

use cuda_events::ipc::ExporterState;
use cuda_timelines::TimelineDescriptor;

use crate::error::{detached, exception};
use crate::foreign;
use crate::guard::Closing;
use crate::point::{Keeps, Point};

/// A file in memory for up to 63 timelines that other processes see.
///
/// Send its descriptor (`fileno`) over a Unix socket with `socket.send_fds`, or let a child inherit
/// it. Importers cannot write it, and a thread copies values for their streams. With `writable`
/// they can, and their streams wait for it directly: for processes that you trust.
#[pyclass(frozen, module = "cuda_timelines")]
pub(crate) struct TimelineFile(Closing<cuda_timelines::TimelineFile>);

impl TimelineFile {
    pub(crate) fn open(&self, py: Python<'_>) -> PyResult<Arc<cuda_timelines::TimelineFile>> {
        self.0.open(py, "TimelineFile")
    }
}

#[pymethods]
impl TimelineFile {
    #[new]
    #[pyo3(signature = (device, *, writable=false))]
    fn new(device: &Bound<'_, PyAny>, writable: bool) -> PyResult<Self> {
        let context = foreign::context(device)?;
        let made = detached(device.py(), move || {
            if writable {
                cuda_timelines::TimelineFile::writable(&context)
            } else {
                cuda_timelines::TimelineFile::new(&context)
            }
        })?;
        Ok(Self(Closing::new(made)))
    }

    /// The file's descriptor, which the object keeps.
    fn fileno(&self, py: Python<'_>) -> PyResult<i32> {
        Ok(self.open(py)?.as_fd().as_raw_fd())
    }

    /// Closes the descriptor. Timelines in the file keep what they need.
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
            Some(file) => {
                format!("<cuda_timelines.TimelineFile, descriptor {}>", file.as_fd().as_raw_fd())
            }
            None => "<cuda_timelines.TimelineFile, closed>".to_owned(),
        }
    }
}

/// Device memory for up to 63 timelines that other processes import by bytes alone. It guarantees
/// less than a TimelineFile: see docs/timelines.md.
#[pyclass(frozen, module = "cuda_timelines")]
pub(crate) struct TimelineMemory(Closing<cuda_timelines::TimelineMemory>);

impl TimelineMemory {
    pub(crate) fn open(&self, py: Python<'_>) -> PyResult<Arc<cuda_timelines::TimelineMemory>> {
        self.0.open(py, "TimelineMemory")
    }
}

#[pymethods]
impl TimelineMemory {
    #[new]
    fn new(device: &Bound<'_, PyAny>) -> PyResult<Self> {
        let context = foreign::context(device)?;
        let made = detached(device.py(), move || cuda_timelines::TimelineMemory::new(&context))?;
        Ok(Self(Closing::new(made)))
    }

    /// Keep it open until no other process uses it. The next memory of the device has its place.
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
            Some(memory) => format!(
                "<cuda_timelines.TimelineMemory of device {}>",
                memory.context().device().ordinal()
            ),
            None => "<cuda_timelines.TimelineMemory, closed>".to_owned(),
        }
    }
}

/// A timeline of another process.
///
/// `descriptor` is the exporter's `descriptor`. `file` is the descriptor of its TimelineFile, or an
/// object with `fileno`; it is duplicated. Without `file` the timeline is in device memory, and the
/// bytes must come from a process that you trust.
#[pyclass(frozen, module = "cuda_timelines")]
pub(crate) struct ImportedTimeline(Closing<cuda_timelines::ImportedTimeline>);

const CLASS: &str = "ImportedTimeline";

#[pymethods]
impl ImportedTimeline {
    #[new]
    #[pyo3(signature = (device, descriptor, file=None))]
    #[allow(unsafe_code)]
    fn new(
        device: &Bound<'_, PyAny>,
        descriptor: &Bound<'_, PyBytes>,
        file: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = device.py();
        let descriptor = TimelineDescriptor::from_bytes(descriptor.as_bytes())
            .map_err(|error| exception(py, &error))?;
        let file = file.map(duplicate).transpose()?;
        let context = foreign::context(device)?;
        let made = detached(py, move || match file {
            Some(file) => cuda_timelines::ImportedTimeline::open(&context, file, &descriptor),
            // SAFETY: the page of this class asks for bytes of a process that is trusted.
            None => unsafe { cuda_timelines::ImportedTimeline::open_memory(&context, &descriptor) },
        })?;
        Ok(Self(Closing::new(made)))
    }

    /// Returns the point of a value that the exporter has sent.
    fn point(&self, py: Python<'_>, value: u64) -> PyResult<Point> {
        let inner = self.0.open(py, CLASS)?;
        let point = {
            let inner = Arc::clone(&inner);
            detached(py, move || inner.point(value))
        }?;
        Ok(Point::new(point, Keeps::Import(Some(inner))))
    }

    /// The value of the last point that was reached: one load.
    #[getter]
    fn completed(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.0.open(py, CLASS)?.completed())
    }

    /// Whether the exporter's process lives. None if that cannot be known: in device memory, from
    /// another pid namespace.
    #[getter]
    fn exporter_alive(&self, py: Python<'_>) -> PyResult<Option<bool>> {
        let inner = self.0.open(py, CLASS)?;
        Ok(match py.detach(move || inner.exporter_state()) {
            ExporterState::Running => Some(true),
            ExporterState::Ended => Some(false),
            _ => None,
        })
    }

    /// Reports that the exporter's process has ended, and releases all waits. Call it only then.
    fn exporter_ended(&self, py: Python<'_>) -> PyResult<()> {
        let inner = self.0.open(py, CLASS)?;
        detached(py, move || inner.exporter_ended())
    }

    /// Drops the import. Its points keep what they need.
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
                format!("<cuda_timelines.ImportedTimeline, {} reached>", inner.completed())
            }
            None => "<cuda_timelines.ImportedTimeline, closed>".to_owned(),
        }
    }
}

/// A descriptor of the same file, which the caller's does not end with.
#[allow(unsafe_code)]
fn duplicate(file: &Bound<'_, PyAny>) -> PyResult<OwnedFd> {
    let number = match file.getattr_opt(intern!(file.py(), "fileno"))? {
        Some(method) => method.call0()?,
        None => file.clone(),
    };
    if !number.is_instance_of::<PyInt>() || number.is_instance_of::<PyBool>() {
        return Err(PyTypeError::new_err(format!(
            "file is a file descriptor or an object with fileno, and not {}",
            file.repr()?
        )));
    }
    let number: i32 = number
        .extract()
        .ok()
        .filter(|number| *number >= 0)
        .ok_or_else(|| PyValueError::new_err(format!("{number} is not a file descriptor")))?;
    // SAFETY: it is not -1. If it is closed, the system refuses to duplicate it.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    Ok(borrowed.try_clone_to_owned()?)
}
