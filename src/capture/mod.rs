//! Stream capture: work that is put into streams becomes a graph instead of being done.

use core::fmt;
use core::marker::PhantomData;
use core::ptr::{null, null_mut};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use crate::driver::Driver;
use crate::error::{Error, Result};
use crate::graph::{Graph, GraphNode, Kept};
use crate::stream::StreamRef;
use crate::sys::{
    CU_STREAM_ADD_CAPTURE_DEPENDENCIES, CU_STREAM_SET_CAPTURE_DEPENDENCIES, CUgraph, CUgraphEdgeData, CUresult,
    CUstreamCaptureMode, CUstreamCaptureStatus, Function,
};

mod external;

pub use crate::order::{RecordFlags, WaitFlags};

/// What a capture forbids while it is under way, because it might belong to the work that is captured: calls such as
/// queries and synchronization of other streams and events. Shown at [`Capture`] and [`ThreadCaptureMode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CaptureMode {
    /// Such calls fail in all threads, and invalidate the capture, but in threads that [are exempt](ThreadCaptureMode).
    Global,
    /// Such calls fail in the thread that captures.
    ThreadLocal,
    /// Such calls are allowed. What concerns the captured streams and events themselves is not.
    Relaxed,
}

impl CaptureMode {
    const fn to_driver(self) -> CUstreamCaptureMode {
        match self {
            Self::Global => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL,
            Self::ThreadLocal => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
            Self::Relaxed => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED,
        }
    }
}

/// Whether a stream captures; see [`StreamRef::capture_status`].
///
/// ```
/// use cuda_events::StreamRef;
/// use cuda_events::capture::{Capture, CaptureMode, CaptureStatus};
/// # use cuda_events::{Context, Device, Stream, StreamOptions};
/// # let soft = cuda_soft_driver::SoftDriver::new();
/// # let driver = soft.driver();
/// # let context = Context::primary(Device::new(driver, 0)?)?;
/// # let stream = Stream::new(&context, StreamOptions::new())?;
///
/// /// Waits, unless that would harm a capture.
/// fn wait(stream: &StreamRef) -> cuda_events::Result<bool> {
///     match stream.capture_status()? {
///         CaptureStatus::None => stream.synchronize().map(|()| true),
///         CaptureStatus::Active | CaptureStatus::Invalidated => Ok(false),
///     }
/// }
/// assert!(wait(&stream)?);
/// // SAFETY: no other thread has this stream.
/// let capture = unsafe { Capture::begin(&stream, CaptureMode::ThreadLocal) }?;
/// assert!(!wait(&stream)?);
/// capture.end()?;
/// # Ok::<(), cuda_events::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CaptureStatus {
    /// It does not: what is put into it is done.
    None,
    /// It does: what is put into it becomes a part of a graph.
    Active,
    /// It takes part in a capture that an earlier call has invalidated. What is put into it fails, until the capture is
    /// ended. A status of a newer driver that this crate does not know counts as this one.
    Invalidated,
}

impl CaptureStatus {
    fn from_driver(status: CUstreamCaptureStatus) -> Self {
        match status {
            CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE => Self::None,
            CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE => Self::Active,
            _ => Self::Invalidated,
        }
    }
}

/// What the driver says of the capture that a stream takes part in; see [`StreamRef::capture_info`].
///
/// ```
/// use cuda_events::capture::{Capture, CaptureMode, CaptureStatus};
/// # use cuda_events::{Context, Device, Stream, StreamOptions};
/// # let soft = cuda_soft_driver::SoftDriver::new();
/// # let driver = soft.driver();
/// # let context = Context::primary(Device::new(driver, 0)?)?;
/// # let (stream, other) = (Stream::new(&context, StreamOptions::new())?, Stream::new(&context, StreamOptions::new())?);
///
/// // SAFETY: no other thread has these streams.
/// let capture = unsafe { Capture::begin(&stream, CaptureMode::ThreadLocal) }?;
/// other.wait_stream(&stream)?; // `other` joins the capture,
/// assert_eq!(other.capture_info()?.id, stream.capture_info()?.id);
/// stream.wait_stream(&other)?; // and must be joined before the end.
/// capture.end()?;
/// assert_eq!(stream.capture_status()?, CaptureStatus::None);
/// # Ok::<(), cuda_events::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CaptureInfo {
    /// Whether it takes part in one.
    pub status: CaptureStatus,
    /// The capture's id, which no other capture of the process ever has; none unless the capture is active.
    pub id: Option<u64>,
    /// The graph that is made; NULL unless the capture is active, and on drivers before CUDA 11.3. It is the capture's: it
    /// may be given nodes, but must not be destroyed or instantiated.
    pub graph: CUgraph,
}

/// A node that the next work in a capturing stream will depend on, and how.
///
/// ```
/// use std::sync::Arc;
///
/// use cuda_events::{Event, EventFlags};
/// use cuda_events::capture::{Capture, CaptureMode, DependencyUpdate};
/// # use cuda_events::{Context, Device, Stream, StreamOptions};
/// # let soft = cuda_soft_driver::SoftDriver::new();
/// # let driver = soft.driver();
/// # let context = Context::primary(Device::new(driver, 0)?)?;
/// # let stream = Stream::new(&context, StreamOptions::new())?;
/// # let event = Arc::new(Event::new(&context, EventFlags::empty())?);
///
/// // SAFETY: no other thread has this stream or this event.
/// let capture = unsafe { Capture::begin(&stream, CaptureMode::ThreadLocal) }?;
/// stream.record_external(&event)?;
/// // SAFETY: as above.
/// let after_the_record = unsafe { capture.dependencies(&stream) }?;
/// assert_eq!(after_the_record.len(), 1);
/// // What follows shall not wait for the record: it begins at the root of the graph.
/// capture.update_dependencies(&stream, &[], DependencyUpdate::Set)?;
/// capture.end()?;
/// # Ok::<(), cuda_events::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CaptureDependency {
    /// The node.
    pub node: GraphNode,
    /// How it depends; all zero as a rule. Anything else takes CUDA 12.3.
    pub edge: CUgraphEdgeData,
}

impl From<GraphNode> for CaptureDependency {
    fn from(node: GraphNode) -> Self {
        Self { node, edge: CUgraphEdgeData::default() }
    }
}

/// What becomes of the dependencies that a capturing stream has. Shown at [`CaptureDependency`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DependencyUpdate {
    /// They stay, and more are added (`CU_STREAM_ADD_CAPTURE_DEPENDENCIES`).
    Add,
    /// They are replaced (`CU_STREAM_SET_CAPTURE_DEPENDENCIES`).
    Set,
}

#[allow(unsafe_code)]
impl StreamRef {
    /// Whether the stream captures. It is one driver call, `cuStreamIsCapturing`, which harms no capture.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_STREAM_CAPTURE_IMPLICIT` for the legacy default stream while a blocking stream captures; what else the
    /// driver answers; [`Error::ForkedChild`].
    #[doc(alias = "cuStreamIsCapturing")]
    #[doc(alias = "is_capturing")]
    pub fn capture_status(&self) -> Result<CaptureStatus> {
        const FUNCTION: Function = Function::cuStreamIsCapturing;
        let is_capturing = self.driver().symbols().cuStreamIsCapturing;
        let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: the stream is alive as long as `self` is; a place for the status.
        let code = self.call(FUNCTION, || unsafe { is_capturing(self.as_raw(), &mut status) })?;
        Error::check(FUNCTION, code)?;
        Ok(CaptureStatus::from_driver(status))
    }

    /// What the driver says of the capture that the stream takes part in. It is one driver call, which harms no capture.
    ///
    /// It asks the newest of `cuStreamGetCaptureInfo_v3` (CUDA 12.3), `_v2` (11.3) and the first that the driver has.
    ///
    /// # Errors
    ///
    /// As [`capture_status`](Self::capture_status).
    #[doc(alias = "cuStreamGetCaptureInfo")]
    pub fn capture_info(&self) -> Result<CaptureInfo> {
        let symbols = self.driver().symbols();
        let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        let (mut id, mut graph) = (0, null_mut());
        let stream = self.as_raw();
        let (function, code) = if let Some(info) = symbols.cuStreamGetCaptureInfo_v3 {
            const FUNCTION: Function = Function::cuStreamGetCaptureInfo_v3;
            // SAFETY: the stream is alive as long as `self` is; places for what is wanted, and NULL for what is not.
            let code = self.call(FUNCTION, || unsafe {
                info(stream, &mut status, &mut id, &mut graph, null_mut(), null_mut(), null_mut())
            })?;
            (FUNCTION, code)
        } else if let Some(info) = symbols.cuStreamGetCaptureInfo_v2 {
            const FUNCTION: Function = Function::cuStreamGetCaptureInfo_v2;
            // SAFETY: as above.
            let code = self
                .call(FUNCTION, || unsafe { info(stream, &mut status, &mut id, &mut graph, null_mut(), null_mut()) })?;
            (FUNCTION, code)
        } else {
            const FUNCTION: Function = Function::cuStreamGetCaptureInfo;
            let info = self.driver().require(FUNCTION, symbols.cuStreamGetCaptureInfo)?;
            // SAFETY: as above.
            (FUNCTION, self.call(FUNCTION, || unsafe { info(stream, &mut status, &mut id) })?)
        };
        Error::check(function, code)?;
        let status = CaptureStatus::from_driver(status);
        // Of a stream that does not capture the driver says nothing else.
        Ok(match status {
            CaptureStatus::Active => CaptureInfo { status, id: Some(id), graph },
            _ => CaptureInfo { status, id: None, graph: null_mut() },
        })
    }
}

/// A capture under way: what is put into the stream becomes a graph instead of being done, and what is put into streams
/// that wait for events of this capture, too.
///
/// [`end`](Self::end) gives the graph. A capture that is dropped instead, by an early return or a panic, is ended and its
/// graph destroyed: the stream is usable again either way. The guard stays on its thread, since another one may not end
/// the capture.
///
/// A call that is not allowed invalidates the capture (see [`CaptureMode`]); from then on work for its streams fails, and
/// so does `end`.
///
/// An event that is recorded in a capture with [`record`](crate::EventRef::record) stands for a place in the graph: it
/// orders the streams of the capture and can be used for nothing else, until it is recorded outside of one. An event that
/// each launch shall record is for [`record_external`](StreamRef::record_external).
///
/// ```
/// use std::sync::Arc;
///
/// use cuda_events::{Context, Device, Event, EventFlags, Stream, StreamOptions};
/// use cuda_events::capture::{Capture, CaptureMode};
///
/// # let soft = cuda_soft_driver::SoftDriver::new();
/// # let driver = soft.driver();
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let stream = Stream::new(&context, StreamOptions::new())?;
/// let start = Arc::new(Event::new(&context, EventFlags::TIMING)?);
/// let end = Arc::new(Event::new(&context, EventFlags::TIMING)?);
///
/// // SAFETY: no other thread has this stream or these events.
/// let capture = unsafe { Capture::begin(&stream, CaptureMode::ThreadLocal) }?;
/// stream.record_external(&start)?;
/// // ... work ...
/// stream.record_external(&end)?;
/// let exec = capture.end()?.instantiate()?;
///
/// exec.launch(&stream)?;
/// stream.synchronize()?;
/// println!("the work took {:?}", start.elapsed(&end)?);
/// # Ok::<(), cuda_events::Error>(())
/// ```
#[must_use = "dropping it ends the capture and destroys the graph"]
pub struct Capture<'a> {
    stream: &'a StreamRef,
    kept: Arc<Kept>,
    ended: bool,
    _not_send: PhantomData<*mut ()>,
}

/// How many captures that began here have not ended.
static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);

/// Whether an event that this thread has at hand may have been recorded in a capture that has not ended. Whoever has it from
/// the thread that captures, sees that.
#[inline(always)]
pub(crate) fn under_way() -> bool {
    UNDER_WAY.load(Ordering::Relaxed) != 0
}

#[allow(unsafe_code)]
impl<'a> Capture<'a> {
    /// Begins a capture in the stream.
    ///
    /// Driver calls: `cuStreamBeginCapture`, and one for the capture's id
    /// ([`capture_info`](StreamRef::capture_info)).
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_ILLEGAL_STATE` for a stream that captures already, which goes on unharmed;
    /// `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED` for the legacy default stream; what else the driver answers;
    /// [`Error::ForkedChild`].
    ///
    /// # Safety
    ///
    /// From this call until the capture has ended, nothing may be done in one thread with this
    /// stream, with a stream that joins the capture, or with an event that is recorded in it, while
    /// another thread does something with any of them, ending the capture included. The driver does
    /// not guard what it builds, and crashes.
    ///
    /// * An event is recorded in the capture by [`record`](crate::EventRef::record). One that is
    ///   only named by [`record_external`](StreamRef::record_external) or
    ///   [`wait_external`](StreamRef::wait_external) is not: other threads may use it meanwhile.
    /// * One of the other threads is this crate's own: the poller, which queries the event of each
    ///   pending [`Completion`](crate::ext::Completion). Await or drop the futures of an event before
    ///   you record it in the capture. When the drop has returned, the poller asks no more.
    /// * An [`EventPool`](crate::ext::EventPool) hands nothing out again that was given back to it
    ///   meanwhile.
    #[doc(alias = "cuStreamBeginCapture")]
    pub unsafe fn begin(stream: &'a StreamRef, mode: CaptureMode) -> Result<Self> {
        const FUNCTION: Function = Function::cuStreamBeginCapture_v2;
        let begin = stream.driver().symbols().cuStreamBeginCapture_v2;
        // SAFETY: the stream is alive as long as its reference is; the caller vouches that no other thread uses it now.
        Self::start(stream, FUNCTION, None, || unsafe { begin(stream.as_raw(), mode.to_driver()) })
    }

    /// Begins a capture in the stream that adds to a graph; the first work depends on the nodes in `after`. CUDA 12.3.
    ///
    /// The graph is taken: [`end`](Self::end) gives it back. If this or the capture fails, or the capture is dropped, the
    /// graph is destroyed.
    ///
    /// Driver calls: `cuStreamBeginCaptureToGraph`, and one for the capture's id.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use cuda_events::{Event, EventFlags};
    /// use cuda_events::capture::{Capture, CaptureMode};
    /// use cuda_events::graph::Graph;
    /// # use cuda_events::{Context, Device, Stream, StreamOptions};
    /// # let soft = cuda_soft_driver::SoftDriver::new();
    /// # let driver = soft.driver();
    /// # let context = Context::primary(Device::new(driver, 0)?)?;
    /// # let stream = Stream::new(&context, StreamOptions::new())?;
    /// # let (before, after) = (Event::new(&context, EventFlags::TIMING)?, Event::new(&context, EventFlags::TIMING)?);
    /// # let (before, after) = (Arc::new(before), Arc::new(after));
    ///
    /// let mut graph = Graph::new(&context)?;
    /// let first = graph.add_event_record_node(&[], &before)?;
    /// // SAFETY: no other thread has this stream or these events.
    /// let capture = unsafe { Capture::begin_to_graph(&stream, graph, &[first], CaptureMode::ThreadLocal) }?;
    /// stream.record_external(&after)?;
    /// let exec = capture.end()?.instantiate()?;
    /// exec.launch(&stream)?;
    /// stream.synchronize()?;
    /// assert!(before.elapsed_ms(&after)? >= 0.0);
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NodeOfOtherGraph`]; [`Error::Unsupported`]; else as [`begin`](Self::begin).
    ///
    /// # Safety
    ///
    /// As for [`begin`](Self::begin).
    #[doc(alias = "cuStreamBeginCaptureToGraph")]
    pub unsafe fn begin_to_graph(
        stream: &'a StreamRef,
        graph: Graph,
        after: &[GraphNode],
        mode: CaptureMode,
    ) -> Result<Self> {
        const FUNCTION: Function = Function::cuStreamBeginCaptureToGraph;
        let begin = stream.driver().require(FUNCTION, stream.driver().symbols().cuStreamBeginCaptureToGraph)?;
        let after = graph.kept().handles(FUNCTION, after.iter().copied())?;
        stream.driver().check_same(graph.context().driver(), FUNCTION)?;
        let raw = graph.as_raw();
        // SAFETY: the stream is alive as long as its reference is; the graph is ours alone, and the nodes are of it; NULL
        // says that all edges are plain; the caller vouches that no other thread uses the stream now.
        Self::start(stream, FUNCTION, Some(graph), || unsafe {
            begin(stream.as_raw(), raw, after.as_ptr(), null(), after.len(), mode.to_driver())
        })
    }

    /// Makes the call that begins a capture, into a graph or a new one.
    fn start(
        stream: &'a StreamRef,
        function: Function,
        mut graph: Option<Graph>,
        begin: impl Fn() -> CUresult,
    ) -> Result<Self> {
        let kept = graph.as_ref().map_or_else(Kept::new, |graph| graph.kept().clone());
        let mut begun = None;
        let called = stream.call(function, || {
            let code = begin();
            if code == CUresult::CUDA_SUCCESS {
                // Before anything can fail, restoring the caller's context among it, so that the capture is ended then.
                begun = Some(Self { stream, kept: kept.clone(), ended: false, _not_send: PhantomData });
                UNDER_WAY.fetch_add(1, Ordering::Relaxed);
                // From here on it is the capture's: a capture that fails destroys it.
                if let Some(graph) = graph.take() {
                    graph.disarm();
                }
            }
            code
        });
        let code = called?;
        let Some(capture) = begun else {
            if let Some(graph) = graph {
                Self::take_back(stream, graph);
            }
            return Err(Error::driver(function, code));
        };
        if let Some(id) = stream.capture_info()?.id {
            external::register(stream.driver(), id, &capture.kept);
        }
        Ok(capture)
    }

    /// Destroys the graph that a capture was to add to, which the driver refused. The refusal may be the error of earlier
    /// work, and the capture under way all the same: then it is ended. If that cannot be told, the graph is left alone:
    /// an H200 refused to destroy a graph that is captured into (401), and no document says so of other drivers.
    fn take_back(stream: &'a StreamRef, graph: Graph) {
        match stream.capture_info() {
            Ok(info) if info.status == CaptureStatus::Active && info.graph == graph.as_raw() => {
                UNDER_WAY.fetch_add(1, Ordering::Relaxed);
                let kept = graph.kept().clone();
                graph.disarm();
                drop(Self { stream, kept, ended: false, _not_send: PhantomData });
            }
            Ok(info) if info.status != CaptureStatus::Invalidated => drop(graph),
            _ => core::mem::forget(graph),
        }
    }

    /// Ends the capture and gives the graph.
    ///
    /// One driver call: `cuStreamEndCapture`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_STREAM_CAPTURE_INVALIDATED`; `CUDA_ERROR_STREAM_CAPTURE_UNJOINED` when work of another stream of the
    /// capture is not waited for by this one; what else the driver answers; [`Error::ForkedChild`]. The capture is over
    /// all the same.
    #[doc(alias = "cuStreamEndCapture")]
    pub fn end(mut self) -> Result<Graph> {
        self.end_now()
    }

    fn end_now(&mut self) -> Result<Graph> {
        const FUNCTION: Function = Function::cuStreamEndCapture;
        let end = self.stream.driver().symbols().cuStreamEndCapture;
        let Self { stream, kept, ended, .. } = self;
        let mut raw = null_mut();
        let mut graph = None;
        let called = stream.call(FUNCTION, || {
            // Once it is called, and not when the stream's context could not even be made current.
            *ended = true;
            // SAFETY: the stream is alive as long as its reference is; a place for the handle. Whoever began the capture
            // vouched that no other thread uses it now.
            let code = unsafe { end(stream.as_raw(), &mut raw) };
            UNDER_WAY.fetch_sub(1, Ordering::Relaxed);
            if code == CUresult::CUDA_SUCCESS {
                // Here, so that it is dropped when the caller's context cannot be restored.
                graph = Some(Graph::with(stream.context(), raw, kept.clone()));
            }
            code
        });
        let code = called?;
        graph.ok_or_else(|| Error::driver(FUNCTION, code))
    }

    /// The stream that the capture began in.
    pub fn stream(&self) -> &'a StreamRef {
        self.stream
    }

    /// The nodes that the next work in a stream of this capture will depend on.
    ///
    /// Driver calls: two of `cuStreamGetCaptureInfo_v3` (CUDA 12.3), on older drivers `_v2` (11.3): one tells whether the
    /// stream is of this capture.
    ///
    /// # Errors
    ///
    /// [`Error::OtherCapture`] for a stream that is not of this capture; [`Error::Unsupported`]; what the driver answers;
    /// [`Error::ForkedChild`].
    ///
    /// # Safety
    ///
    /// No other thread may make a call for `stream` meanwhile: the driver names memory of its own, which such a call
    /// may change while it is copied.
    #[doc(alias = "cuStreamGetCaptureInfo")]
    pub unsafe fn dependencies(&self, stream: &StreamRef) -> Result<Vec<CaptureDependency>> {
        let symbols = stream.driver().symbols();
        let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        let (mut nodes, mut edges, mut count) = (null(), null(), 0);
        let raw = stream.as_raw();
        self.check(stream, Function::cuStreamGetCaptureInfo_v2)?;
        let (function, code) = if let Some(info) = symbols.cuStreamGetCaptureInfo_v3 {
            const FUNCTION: Function = Function::cuStreamGetCaptureInfo_v3;
            // SAFETY: the stream is alive as long as its reference is; places for what is wanted, NULL for what is not.
            let code = stream.call(FUNCTION, || unsafe {
                info(raw, &mut status, null_mut(), null_mut(), &mut nodes, &mut edges, &mut count)
            })?;
            (FUNCTION, code)
        } else {
            const FUNCTION: Function = Function::cuStreamGetCaptureInfo_v2;
            let info = stream.driver().require(FUNCTION, symbols.cuStreamGetCaptureInfo_v2)?;
            // SAFETY: as above.
            let code = stream
                .call(FUNCTION, || unsafe { info(raw, &mut status, null_mut(), null_mut(), &mut nodes, &mut count) })?;
            (FUNCTION, code)
        };
        Error::check(function, code)?;
        if CaptureStatus::from_driver(status) != CaptureStatus::Active || nodes.is_null() {
            return Ok(Vec::new());
        }
        let dependency = |at: usize| {
            // SAFETY: the driver has said that `count` nodes are there, and as many edges if any; they stay until the next
            // call for the stream, of which the caller promises that it is not before this one is over.
            let (node, edge) = unsafe { (nodes.add(at).read(), (!edges.is_null()).then(|| edges.add(at).read())) };
            CaptureDependency { node: self.kept.node(node), edge: edge.unwrap_or_default() }
        };
        Ok((0..count).map(dependency).collect())
    }

    /// Changes what the next work in a stream of this capture will depend on. CUDA 11.3.
    ///
    /// Driver calls: that of [`capture_info`](StreamRef::capture_info), and
    /// `cuStreamUpdateCaptureDependencies_v2` (CUDA 12.3), on older drivers the first, which takes plain edges only.
    ///
    /// # Errors
    ///
    /// [`Error::NodeOfOtherGraph`]; [`Error::OtherCapture`] for a stream that is not of this capture;
    /// [`Error::Unsupported`]; what the driver answers; [`Error::ForkedChild`].
    #[doc(alias = "cuStreamUpdateCaptureDependencies")]
    pub fn update_dependencies(
        &self,
        stream: &StreamRef,
        dependencies: &[CaptureDependency],
        update: DependencyUpdate,
    ) -> Result<()> {
        let symbols = stream.driver().symbols();
        let flags = match update {
            DependencyUpdate::Add => CU_STREAM_ADD_CAPTURE_DEPENDENCIES,
            DependencyUpdate::Set => CU_STREAM_SET_CAPTURE_DEPENDENCIES,
        };
        let edges: Vec<_> = dependencies.iter().map(|dependency| dependency.edge).collect();
        let newest = symbols.cuStreamUpdateCaptureDependencies_v2;
        let function = if newest.is_some() || edges.iter().any(|edge| *edge != CUgraphEdgeData::default()) {
            Function::cuStreamUpdateCaptureDependencies_v2
        } else {
            Function::cuStreamUpdateCaptureDependencies
        };
        self.check(stream, function)?;
        let mut nodes = self.kept.handles(function, dependencies.iter().map(|dependency| dependency.node))?;
        let (raw, nodes, count) = (stream.as_raw(), nodes.as_mut_ptr(), nodes.len());
        let code = if function == Function::cuStreamUpdateCaptureDependencies_v2 {
            let update = stream.driver().require(function, newest)?;
            // SAFETY: the stream is alive as long as its reference is; as many edges as nodes; the nodes are of the graph
            // that the stream is captured into, which lives as long as the capture, and so longer than `self`'s borrow.
            stream.call(function, || unsafe { update(raw, nodes, edges.as_ptr(), count, flags) })?
        } else {
            let update = stream.driver().require(function, symbols.cuStreamUpdateCaptureDependencies)?;
            // SAFETY: as above.
            stream.call(function, || unsafe { update(raw, nodes, count, flags) })?
        };
        Error::check(function, code)
    }

    /// An error unless the stream is of this capture; then it stays one at least as long as `self` is borrowed.
    fn check(&self, stream: &StreamRef, function: Function) -> Result<()> {
        let info = stream.capture_info()?;
        let own = |id| external::kept(stream.driver(), id).is_some_and(|kept| Arc::ptr_eq(&kept, &self.kept));
        match info.status {
            // Such a capture does not tell its id. It is what the driver answers whatever is done with it.
            CaptureStatus::Invalidated => Err(Error::driver(function, CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)),
            CaptureStatus::Active if info.id.is_some_and(own) => Ok(()),
            _ => Err(Error::OtherCapture { function }),
        }
    }
}

impl Drop for Capture<'_> {
    fn drop(&mut self) {
        if !self.ended {
            // The graph is destroyed. What is answered cannot be acted on here. A forked child makes no call.
            drop(self.end_now());
        }
    }
}

impl fmt::Debug for Capture<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Capture").field("stream", &self.stream).finish_non_exhaustive()
    }
}

/// The calling thread's own capture mode, changed until the guard is dropped, which restores the one before.
///
/// The mode says which calls of this thread are dangerous to captures: those of
/// [`ThreadLocal`](CaptureMode::ThreadLocal) captures of its own and [`Global`](CaptureMode::Global) captures of any thread
/// by default. In a thread that has set [`ThreadLocal`](CaptureMode::ThreadLocal), calls leave the global captures of
/// others alone; in one that has set [`Relaxed`](CaptureMode::Relaxed), its own too. It is what a thread that polls events
/// needs, so that it does not break the captures of others.
///
/// The guard stays on its thread. Drop guards in the reverse order of making them.
///
/// ```
/// use cuda_events::capture::{CaptureMode, ThreadCaptureMode};
/// # use cuda_events::{Context, Device, Event, EventFlags, Stream, StreamOptions};
/// # use cuda_events::capture::Capture;
/// # let soft = cuda_soft_driver::SoftDriver::new();
/// # let driver = soft.driver();
/// # let context = Context::primary(Device::new(driver, 0)?)?;
/// # let stream = Stream::new(&context, StreamOptions::new())?;
/// # let event = Event::new(&context, EventFlags::empty())?;
/// # // SAFETY: no other thread has this stream.
/// # let capture = unsafe { Capture::begin(&stream, CaptureMode::Global) }?;
///
/// let relaxed = ThreadCaptureMode::exchange(driver, CaptureMode::Relaxed)?;
/// let _ = event.query()?; // harms no capture
/// drop(relaxed);
/// # capture.end()?;
/// # Ok::<(), cuda_events::Error>(())
/// ```
#[must_use = "the mode is changed only as long as the guard lives"]
pub struct ThreadCaptureMode {
    driver: Driver,
    before: CUstreamCaptureMode,
    _not_send: PhantomData<*mut ()>,
}

#[allow(unsafe_code)]
impl ThreadCaptureMode {
    /// Changes the calling thread's capture mode.
    ///
    /// One driver call, `cuThreadExchangeStreamCaptureMode`, and one more when the guard is dropped.
    ///
    /// # Errors
    ///
    /// What the driver answers; [`Error::ForkedChild`].
    #[doc(alias = "cuThreadExchangeStreamCaptureMode")]
    #[doc(alias = "CaptureModeGuard")]
    pub fn exchange(driver: Driver, mode: CaptureMode) -> Result<Self> {
        let mut before = mode.to_driver();
        exchange(driver, &mut before)?;
        Ok(Self { driver, before, _not_send: PhantomData })
    }
}

/// Sets the thread's mode to `mode`, which becomes the one that was set before.
#[allow(unsafe_code)]
fn exchange(driver: Driver, mode: &mut CUstreamCaptureMode) -> Result<()> {
    const FUNCTION: Function = Function::cuThreadExchangeStreamCaptureMode;
    driver.check_fork(FUNCTION)?;
    // SAFETY: the one argument is a place with a valid mode, of this module or from an earlier exchange.
    Error::check(FUNCTION, unsafe { (driver.symbols().cuThreadExchangeStreamCaptureMode)(mode) })
}

impl Drop for ThreadCaptureMode {
    fn drop(&mut self) {
        // What it answers cannot be acted on here.
        let _ = exchange(self.driver, &mut self.before);
    }
}

impl fmt::Debug for ThreadCaptureMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadCaptureMode").field("before", &self.before).finish_non_exhaustive()
    }
}

static_assertions::assert_not_impl_any!(Capture<'static>: Send, Sync);
static_assertions::assert_not_impl_any!(ThreadCaptureMode: Send, Sync);
