//! Timelines of streams.

use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::{detached, exception, plain};
use crate::foreign::{self, Stream, check_open, in_stream, substitute};
use crate::guard::Closing;
use crate::point::{Point, signalled};
use crate::shared::{TimelineFile, TimelineMemory};

const CLASS: &str = "Timeline";

/// A counter that a stream advances, and that hosts read without a driver call.
///
/// `stream` is any object with `__cuda_stream__`, or a handle as an int. The timeline keeps the
/// object. Whoever passes an int keeps the stream until the timeline is closed. With `file` or
/// `memory`, other processes can import it.
#[pyclass(frozen, module = "cuda_timelines")]
pub(crate) struct Timeline(Closing<Inner>);

struct Inner {
    /// None once it was given up.
    timeline: Option<cuda_timelines::Timeline>,
    stream: Arc<Stream>,
}

/// The stream's share that the timeline has.
struct Shared(Arc<Stream>);

impl AsRef<cuda_events::StreamRef> for Shared {
    fn as_ref(&self) -> &cuda_events::StreamRef {
        (*self.0).as_ref()
    }
}

impl Inner {
    fn timeline(&self) -> Result<&cuda_timelines::Timeline, cuda_timelines::Error> {
        // It is taken only by whoever has the last share.
        self.timeline.as_ref().ok_or(cuda_timelines::Error::Poisoned)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let Some(mut timeline) = self.timeline.take() else { return };
        // The drop may write to the stream, whose handle may be another one's if it was closed. Who
        // passed an integer keeps the stream.
        if self.stream.owner().is_none() {
            return;
        }
        match Python::try_attach(|py| check_open(py, &self.stream).is_ok()) {
            Some(true) => {}
            Some(false) => {
                let other = substitute(timeline.stream().context());
                if !other.is_ok_and(|other| timeline.move_to(other) == Ok(true)) {
                    core::mem::forget(timeline);
                }
            }
            // The interpreter is ending, and may have destroyed the stream: nobody can tell.
            None => core::mem::forget(timeline),
        }
    }
}

#[pymethods]
impl Timeline {
    #[new]
    #[pyo3(signature = (stream, *, file=None, memory=None))]
    fn new(
        stream: &Bound<'_, PyAny>,
        file: Option<&Bound<'_, TimelineFile>>,
        memory: Option<&Bound<'_, TimelineMemory>>,
    ) -> PyResult<Self> {
        let py = stream.py();
        if file.is_some() && memory.is_some() {
            return Err(PyTypeError::new_err(
                "a timeline is in a file or in memory, and not in both",
            ));
        }
        let file = file.map(|it| it.get().open(py)).transpose()?;
        let memory = memory.map(|it| it.get().open(py)).transpose()?;
        let stream = Arc::new(foreign::stream(stream)?);
        detached(py, move || {
            let shared = Shared(Arc::clone(&stream));
            let timeline = match (&file, &memory) {
                (Some(file), _) => cuda_timelines::Timeline::shared(shared, file),
                (None, Some(memory)) => cuda_timelines::Timeline::in_memory(shared, memory),
                (None, None) => cuda_timelines::Timeline::new(shared),
            }?;
            let inner = Inner { timeline: Some(timeline), stream };
            Ok::<_, cuda_timelines::Error>(Self(Closing::new(inner)))
        })
    }

    /// Signals the next value after all work that is in the stream now. Returns its point.
    fn signal(&self, py: Python<'_>) -> PyResult<Point> {
        let inner = self.0.open(py, CLASS)?;
        check_open(py, &inner.stream)?;
        let result = py.detach(move || {
            let timeline = inner.timeline()?;
            Ok((timeline.signal()?, timeline.stream().context().clone()))
        });
        signalled(py, result)
    }

    /// The value of the last point that was reached: one load.
    #[getter]
    fn completed(&self, py: Python<'_>) -> PyResult<u64> {
        let inner = self.0.open(py, CLASS)?;
        detached(py, move || inner.timeline().map(cuda_timelines::Timeline::completed))
    }

    /// The value of the last signal.
    #[getter]
    fn submitted(&self, py: Python<'_>) -> PyResult<u64> {
        let inner = self.0.open(py, CLASS)?;
        detached(py, move || inner.timeline()?.submitted())
    }

    /// What another process needs to import the timeline, beside the file: bytes. None if it is
    /// neither in a file nor in memory.
    #[getter]
    fn descriptor<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let inner = self.0.open(py, CLASS)?;
        let descriptor = inner.timeline.as_ref().and_then(cuda_timelines::Timeline::descriptor);
        Ok(descriptor.map(|it| PyBytes::new(py, &it.to_bytes())))
    }

    /// Makes all later work in `stream` wait for a value that may not be signalled yet. It can
    /// deadlock: see docs/timelines.md.
    fn wait_ahead(&self, stream: &Bound<'_, PyAny>, value: u64) -> PyResult<()> {
        let inner = self.0.open(stream.py(), CLASS)?;
        in_stream(stream, move |stream| inner.timeline()?.wait_ahead(stream, value))
    }

    /// Ends the timeline, after a failure: all waits for later values end, those of hosts with
    /// Poisoned.
    fn poison(&self, py: Python<'_>) -> PyResult<()> {
        let Some(inner) = self.0.get() else { return Ok(()) };
        let is_open = check_open(py, &inner.stream).is_ok();
        let ended = py.detach(move || {
            let context = inner.timeline.as_ref().map(|it| it.stream().context().clone());
            // A signal of another thread may be blocked that only the poison releases.
            if is_open && let Some(timeline) = &inner.timeline {
                let poisoned = timeline.poison();
                drop(inner);
                self.0.close();
                return Ok(poisoned);
            }
            drop(inner);
            let other = match context {
                Some(context) if !is_open => Some(Arc::new(substitute(&context)?)),
                _ => None,
            };
            // A signal may be blocked here, too. The rest comes once it is over.
            let busy = |inner: &Inner| match &inner.timeline {
                Some(timeline) => timeline.release_waits().map_err(|error| error.to_string()),
                None => Ok(()),
            };
            let taken = self.0.take_alone(busy, |inner| {
                let (Some(other), Some(timeline)) = (&other, &mut inner.timeline) else {
                    return Ok(());
                };
                match timeline.move_to(Arc::clone(other)) {
                    Ok(true) => Ok(()),
                    Ok(false) => Err("the stream of the timeline was closed while signals are \
                                      pending; call poison again when they are reached"
                        .to_owned()),
                    Err(error) => Err(error.to_string()),
                }
            })?;
            let timeline = taken.and_then(|mut inner| inner.timeline.take());
            Ok(timeline.map_or(Ok(()), |timeline| timeline.poison()))
        });
        let ended = ended.map_err(|text: String| plain(py, text))?;
        ended.map_err(|error| exception(py, &error))
    }

    /// Ends the timeline. Points that were signalled are reached; waits for later values end.
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

    fn __repr__(&self, py: Python<'_>) -> String {
        let open = |inner: Arc<Inner>| {
            let timeline = inner.timeline.as_ref()?;
            let (done, all) = (timeline.completed(), timeline.submitted());
            let all = all.map_or_else(|_| "?".to_owned(), |all| all.to_string());
            let stream = timeline.stream().as_raw();
            Some(format!(
                "<cuda_timelines.Timeline of stream {stream:p}, {done} of {all} signals reached>"
            ))
        };
        let closed = || "<cuda_timelines.Timeline, closed>".to_owned();
        // Another thread may be in a signal.
        py.detach(|| self.0.get().and_then(open)).unwrap_or_else(closed)
    }
}
