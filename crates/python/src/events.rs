//! Events that other processes import by bytes alone, for LMCache: see `cuda_timelines.lmcache`.
//!
//! Each recording stream has a timeline in a file that importers map. The bytes of an event name a
//! socket in Linux's abstract namespace, from which the importer gets the file: a peer needs no
//! common folder, `/dev/shm` or process ids, but the same network namespace.

use core::time::Duration;
use std::collections::{HashMap, HashSet};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use cuda_events::foundation::{Envelope, is_forked_child};
use cuda_events::ipc::ExporterState;
use cuda_events::sys::{CUstream, Function};
use cuda_events::{Context, Device, Driver, Progress, Stream, StreamOptions, StreamRef};
use cuda_timelines::{
    CudaStreamExt, Error, ImportedTimeline, Point, Timeline, TimelineDescriptor, TimelineFile,
};

use crate::error::{exception, plain};
use crate::foreign::primary;
use crate::handover::{self, Place};

/// How many timelines without a stream `create` keeps ready, so that a record makes none.
const READY: usize = 8;
/// Timelines of a file.
const IN_A_FILE: usize = 63;

const ENVELOPE: Envelope = Envelope { magic: *b"CUTE", version: 1 };
const FILE_LEN: usize = TimelineDescriptor::FILE_LEN;
/// The bytes of an event: a value, a place, a descriptor, and what the envelope adds.
const LEN: usize = 8 + Place::LEN + FILE_LEN + 10;

/// What went wrong, here or in a timeline.
enum Fault {
    Timeline(Error),
    Text(String),
    /// Of a handler of a signal.
    Python(PyErr),
}

impl<E: Into<Error>> From<E> for Fault {
    fn from(error: E) -> Self {
        Self::Timeline(error.into())
    }
}

type Result<T> = core::result::Result<T, Fault>;

fn text<T>(text: impl Into<String>) -> Result<T> {
    Err(Fault::Text(text.into()))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the closure with the GIL released. In a forked child, whose locks other threads of the
/// parent may have had, it does not run.
fn run<T: Send>(py: Python<'_>, run: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    if is_forked_child() {
        let function = Function::cuStreamWriteValue64_v2;
        return Err(exception(py, &cuda_events::Error::ForkedChild { function }.into()));
    }
    py.detach(run).map_err(|fault| match fault {
        Fault::Timeline(error) => exception(py, &error),
        Fault::Text(text) => plain(py, text),
        Fault::Python(error) => error,
    })
}

/// A stream's handle, and its id: the driver gives handles again, and ids never. Without ids, before
/// CUDA 12.0, it is 0.
type Named = (usize, u64);

/// A timeline of a recording stream.
struct Line {
    place: Place,
    descriptor: [u8; FILE_LEN],
    state: Mutex<Recorded>,
}

struct Recorded {
    timeline: Timeline,
    /// The stream that it belongs to; none while it is ready for any.
    stream: Option<Named>,
}

/// The timelines of a device. None is ever dropped: importers may wait for each as long as the
/// process lives.
struct Recording {
    context: Context,
    /// The stream of timelines that are ready for any.
    nobody: Arc<Stream>,
    lines: Mutex<Lines>,
}

#[derive(Default)]
struct Lines {
    by_stream: HashMap<Named, Arc<Line>>,
    ready: Vec<Arc<Line>>,
    /// All, those that were used longest ago first.
    order: Vec<Arc<Line>>,
}

static DEVICES: Mutex<Vec<(u32, Arc<Recording>)>> = Mutex::new(Vec::new());

/// The timelines of the device, which the first call allocates.
fn recording(driver: Driver, device: u32) -> Result<Arc<Recording>> {
    let mut devices = lock(&DEVICES);
    if let Some((_, found)) = devices.iter().find(|it| it.0 == device) {
        return Ok(Arc::clone(found));
    }
    let context = primary(Device::new(driver, device)?)?;
    let nobody = Arc::new(Stream::new(&context, StreamOptions::new())?);
    let made = Arc::new(Recording { context, nobody, lines: Mutex::default() });
    made.grow()?;
    devices.push((device, Arc::clone(&made)));
    Ok(made)
}

fn raw(handle: usize) -> CUstream {
    core::ptr::with_exposed_provenance_mut(handle)
}

impl Recording {
    /// Makes the timelines of one more file.
    fn grow(&self) -> Result<()> {
        let file = TimelineFile::writable(&self.context)?;
        let Ok(copy) = file.as_fd().try_clone_to_owned() else {
            return text("the process has no file descriptor left; raise RLIMIT_NOFILE");
        };
        let place = handover::offer(copy).map_err(|error| {
            Fault::Text(format!("other processes cannot be given the timelines: {error}"))
        })?;
        let mut made = Vec::with_capacity(IN_A_FILE);
        for _ in 0..IN_A_FILE {
            let timeline = Timeline::shared(Arc::clone(&self.nobody), &file)?;
            let bytes = timeline.descriptor().map(|it| it.to_bytes()).unwrap_or_default();
            let Ok(descriptor) = bytes.try_into() else {
                return text("a timeline has no descriptor");
            };
            let state = Mutex::new(Recorded { timeline, stream: None });
            made.push(Arc::new(Line { place, descriptor, state }));
        }
        lock(&self.lines).ready.append(&mut made);
        Ok(())
    }

    /// Makes sure that records find timelines: first of streams whose signals are all reached.
    fn prepare(&self) -> Result<()> {
        let mut lines = lock(&self.lines);
        if lines.ready.len() >= READY {
            return Ok(());
        }
        lines.reclaim();
        if lines.ready.len() >= READY {
            return Ok(());
        }
        drop(lines);
        self.grow()
    }

    /// The stream that somebody records in.
    #[allow(unsafe_code)]
    fn stream(&self, handle: usize) -> StreamRef {
        // SAFETY: a live stream of the device's primary context, as the caller of the backend
        // promises by recording in it. It is used for a record only.
        unsafe { StreamRef::from_raw(&self.context, raw(handle)) }
    }

    /// Records. Three driver calls: the handle may be that of a new stream, while the signal of a
    /// destroyed one is pending; and other code may capture in the stream, and a graph would set the
    /// timeline back at each launch, so the second asks for that.
    fn record(&self, handle: usize) -> Result<(Point, Arc<Line>)> {
        let id = match self.stream(handle).id() {
            Ok(id) => id,
            Err(cuda_events::Error::Unsupported { .. }) => 0,
            Err(error) => return Err(error.into()),
        };
        let named = (handle, id);
        loop {
            let line = match self.line_of(named)? {
                Some(line) => line,
                None => {
                    self.grow()?;
                    continue;
                }
            };
            let recorded = lock(&line.state);
            // Meanwhile it may have become another stream's.
            if recorded.stream == Some(named) {
                let point = recorded.timeline.signal()?;
                drop(recorded);
                return Ok((point, line));
            }
        }
    }

    fn line_of(&self, named: Named) -> Result<Option<Arc<Line>>> {
        let mut lines = lock(&self.lines);
        if let Some(line) = lines.by_stream.get(&named) {
            return Ok(Some(Arc::clone(line)));
        }
        if lines.ready.is_empty() {
            lines.reclaim();
        }
        let Some(line) = lines.ready.pop() else { return Ok(None) };
        let mut recorded = lock(&line.state);
        match recorded.timeline.move_to(self.stream(named.0)) {
            Ok(true) => recorded.stream = Some(named),
            // It failed in an earlier stream: it is not used again.
            Ok(false) => return Ok(None),
            Err(error) => {
                drop(recorded);
                lines.ready.push(line);
                return Err(error.into());
            }
        }
        drop(recorded);
        lines.by_stream.insert(named, Arc::clone(&line));
        lines.order.push(Arc::clone(&line));
        Ok(Some(line))
    }
}

impl Lines {
    /// Takes timelines from the streams that have had them longest, if their signals are all
    /// reached.
    fn reclaim(&mut self) {
        let mut kept = Vec::with_capacity(self.order.len());
        for line in self.order.drain(..) {
            let taken = self.ready.len() < 2 * READY && {
                // If it is locked, a record is under way.
                line.state.try_lock().is_ok_and(|mut recorded| {
                    let timeline = &recorded.timeline;
                    let is_idle = timeline.submitted() == Ok(timeline.completed());
                    if is_idle && let Some(named) = recorded.stream.take() {
                        self.by_stream.remove(&named);
                    }
                    is_idle
                })
            };
            if taken { self.ready.push(line) } else { kept.push(line) }
        }
        self.order = kept;
    }
}

/// The timelines of other processes.
static IMPORTED: Mutex<Option<Imports>> = Mutex::new(None);

#[derive(Default)]
struct Imports {
    files: HashMap<[u8; Place::LEN], OwnedFd>,
    /// By their device and bytes.
    timelines: HashMap<(u32, [u8; FILE_LEN]), Import>,
}

struct Import {
    place: [u8; Place::LEN],
    timeline: Arc<ImportedTimeline>,
}

impl Imports {
    /// Takes out what no event uses and whose exporter has ended, for a drop without the lock.
    fn take_ended(&mut self) -> (Vec<Arc<ImportedTimeline>>, Vec<OwnedFd>) {
        let ended = self.timelines.extract_if(|_, Import { timeline, .. }| {
            // More shares are made under the lock only.
            Arc::strong_count(timeline) == 1 && timeline.exporter_state() == ExporterState::Ended
        });
        let ended: Vec<_> = ended.map(|(_, it)| it.timeline).collect();
        let mut files = Vec::new();
        if !ended.is_empty() {
            let in_use: HashSet<_> = self.timelines.values().map(|it| it.place).collect();
            let unused = self.files.extract_if(|place, _| !in_use.contains(place));
            files.extend(unused.map(|(_, file)| file));
        }
        (ended, files)
    }
}

fn import(
    driver: Driver,
    device: u32,
    place: [u8; Place::LEN],
    descriptor: [u8; FILE_LEN],
) -> Result<Arc<ImportedTimeline>> {
    let none_left = || "the process has no file descriptor left; raise RLIMIT_NOFILE".to_owned();
    let (found, ended) = {
        let mut imports = lock(&IMPORTED);
        let imports = imports.get_or_insert_default();
        if let Some(found) = imports.timelines.get(&(device, descriptor)) {
            return Ok(Arc::clone(&found.timeline));
        }
        let ended = imports.take_ended();
        (imports.files.get(&place).map(OwnedFd::try_clone), ended)
    };
    drop(ended);
    // Not under the lock: the exporter may take its time.
    let file = match found {
        Some(file) => file.map_err(|_| Fault::Text(none_left()))?,
        None => {
            let signals = || Python::attach(|py| py.check_signals());
            let fetched = handover::fetch(&Place::from_bytes(place), &signals);
            fetched.map_err(Fault::Python)?.map_err(|error| {
                Fault::Text(format!(
                    "the exporter of the event does not answer: {error}; it has ended, or runs in \
                     another network namespace: give both containers one network (one pod, or \
                     hostNetwork)"
                ))
            })?
        }
    };
    let Ok(copy) = file.try_clone() else { return text(none_left()) };
    let named = TimelineDescriptor::from_bytes(&descriptor)?;
    let context = primary(Device::new(driver, device)?)?;
    let made = Arc::new(ImportedTimeline::open(&context, file, &named)?);
    let mut imports = lock(&IMPORTED);
    let Imports { files, timelines } = imports.get_or_insert_default();
    // Not before the file has shown to be one of timelines: a refused one is closed.
    files.entry(place).or_insert(copy);
    // Another thread may have been sooner.
    let import = Import { place, timeline: Arc::clone(&made) };
    let found = Arc::clone(&timelines.entry((device, descriptor)).or_insert(import).timeline);
    drop(imports);
    Ok(found)
}

/// An event of `cuda_timelines.lmcache`.
#[pyclass(frozen, module = "cuda_timelines.lmcache")]
pub(crate) struct TimelineEvent {
    device: u32,
    imported: bool,
    driver: Driver,
    state: Mutex<State>,
}

/// None of it before the first record: such an event is complete.
#[derive(Default)]
struct State {
    point: Option<Point>,
    source: Option<Source>,
}

/// What keeps the answer to whether the point will be reached, and what an export names.
enum Source {
    Own(Arc<Line>),
    Imported {
        /// Keeps the import alive.
        _timeline: Arc<ImportedTimeline>,
        bytes: [u8; LEN],
    },
}

/// How many threads spin at once in `synchronize`; the others sleep between looks.
static SPINNING: AtomicUsize = AtomicUsize::new(0);

struct Spinning;

impl Spinning {
    fn begin() -> Option<Self> {
        let most = std::thread::available_parallelism().map_or(1, |all| all.get().div_ceil(2));
        let order = Ordering::Relaxed;
        let mut spinning = SPINNING.load(order);
        while spinning < most {
            match SPINNING.compare_exchange_weak(spinning, spinning + 1, order, order) {
                Ok(_) => return Some(Self),
                Err(now) => spinning = now,
            }
        }
        None
    }
}

impl Drop for Spinning {
    fn drop(&mut self) {
        SPINNING.fetch_sub(1, Ordering::Relaxed);
    }
}

#[pymethods]
impl TimelineEvent {
    /// A new event of the device, which is complete until it is recorded.
    #[new]
    fn new(py: Python<'_>, device: u32) -> PyResult<Self> {
        let driver = crate::foreign::driver(py)?;
        run(py, move || {
            recording(driver, device)?.prepare()?;
            Ok(Self { device, imported: false, driver, state: Mutex::default() })
        })
    }

    /// Allocates what events of the device need, and tries it out.
    #[staticmethod]
    fn check_support(py: Python<'_>, device: u32) -> PyResult<()> {
        let driver = crate::foreign::driver(py)?;
        run(py, move || {
            let recording = recording(driver, device)?;
            recording.prepare()?;
            // The reserve takes it back with the next reclaim.
            let (point, _) = recording.record(recording.nobody.as_raw().addr())?;
            recording.nobody.wait_point(point)?;
            Ok(point.wait()?)
        })
    }

    /// The event of another process, or of this one, from its bytes.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &Bound<'_, PyBytes>, device: u32) -> PyResult<Self> {
        let driver = crate::foreign::driver(py)?;
        let bytes = bytes.as_bytes();
        run(py, move || {
            let damaged = |damage| Fault::Text(format!("event handle refused: {damage}"));
            let mut fields = ENVELOPE.unseal(bytes, LEN).map_err(damaged)?;
            let value = u64::from_le_bytes(fields.take().map_err(damaged)?);
            let place = fields.take().map_err(damaged)?;
            let descriptor = fields.take().map_err(damaged)?;
            let mut state = State::default();
            if value != 0 {
                let timeline = import(driver, device, place, descriptor)?;
                state.point = Some(timeline.point(value)?);
                let Ok(bytes) = bytes.try_into() else { return text("event handle refused") };
                state.source = Some(Source::Imported { _timeline: timeline, bytes });
            }
            Ok(Self { device, imported: true, driver, state: Mutex::new(state) })
        })
    }

    /// Whether the event came from bytes.
    #[getter]
    fn imported(&self) -> bool {
        self.imported
    }

    /// The device's number.
    #[getter]
    fn device_index(&self) -> u32 {
        self.device
    }

    /// Records the event after all work that is in the stream now.
    fn record(&self, py: Python<'_>, stream: usize) -> PyResult<()> {
        run(py, || {
            if self.imported {
                return text("an imported event cannot be recorded; record it in its own process");
            }
            let (point, line) = recording(self.driver, self.device)?.record(stream)?;
            *lock(&self.state) = State { point: Some(point), source: Some(Source::Own(line)) };
            Ok(())
        })
    }

    /// The bytes of the last record, for other processes. A later record does not change them.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let state = lock(&self.state);
        let bytes = match (&state.point, &state.source) {
            (Some(point), Some(Source::Own(line))) => ENVELOPE
                .seal::<LEN>(&[
                    &point.value().to_le_bytes(),
                    &line.place.to_bytes(),
                    &line.descriptor,
                ])
                .ok(),
            (_, Some(Source::Imported { bytes, .. })) => Some(*bytes),
            _ => ENVELOPE.seal::<LEN>(&[&[0; 8], &[0; Place::LEN], &[0; FILE_LEN]]).ok(),
        };
        // The fields have this length. Zeros are no message of any kind.
        PyBytes::new(py, &bytes.unwrap_or([0; LEN]))
    }

    /// Makes later work of a stream of the device wait for the last record.
    #[allow(unsafe_code)]
    fn stream_wait(&self, py: Python<'_>, stream: usize, device: u32) -> PyResult<()> {
        let Some(point) = self.point() else { return Ok(()) };
        run(py, || {
            let context = primary(Device::new(self.driver, device)?)?;
            // SAFETY: a live stream of the device's primary context, as the caller promises.
            let stream = unsafe { StreamRef::from_raw(&context, raw(stream)) };
            Ok(stream.wait_point(point)?)
        })
    }

    /// Returns whether the last record is reached; raises if it never will be.
    fn query(&self, py: Python<'_>) -> PyResult<bool> {
        match self.point() {
            None => Ok(true),
            Some(point) if point.is_done() => Ok(true),
            // It asks the driver, and whether the exporter lives, every 5 ms at most.
            Some(point) => {
                run(py, move || Ok(point.wait_timeout(Duration::ZERO)?)).map(Progress::is_done)
            }
        }
    }

    /// Blocks until the last record is reached; raises if it never will be.
    fn synchronize(&self, py: Python<'_>) -> PyResult<()> {
        let Some(point) = self.point() else { return Ok(()) };
        let mut part = Duration::from_millis(50);
        loop {
            let wait = move || match Spinning::begin() {
                Some(_spinning) => Ok(point.spin_timeout(part)?),
                None => Ok(point.wait_timeout(part)?),
            };
            if run(py, wait)?.is_done() {
                return Ok(());
            }
            py.check_signals()?;
            part = (2 * part).min(Duration::from_secs(1));
        }
    }

    fn __repr__(&self) -> String {
        let state = match self.point() {
            None => "never recorded".to_owned(),
            Some(point) if point.is_done() => format!("{}, done", point.value()),
            Some(point) => format!("{}, not done", point.value()),
        };
        let kind = if self.imported { ", imported" } else { "" };
        format!("<cuda_timelines.lmcache event of device {}{kind}: {state}>", self.device)
    }
}

impl TimelineEvent {
    fn point(&self) -> Option<Point> {
        lock(&self.state).point
    }
}
