//! Captures in progress.

use core::fmt;
use core::marker::PhantomData;
use core::ptr::{null, null_mut};
use std::sync::Arc;

use super::registry;
use crate::driver::call::{Entry, entry};
use crate::driver::capture_count;
use crate::driver::capture_mode::CaptureMode;
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::graph::retained::Retained;
use crate::graph::{Graph, GraphNode};
use crate::stream::StreamRef;
use crate::stream::capture_info::CaptureStatus;
use crate::sys::CUresult;

#[cfg(doc)]
use crate::sys::calls::*;

/// A capture in progress: work that is put into the stream becomes a graph, and is not executed.
///
/// Work in streams that wait for events of this capture becomes part of the graph too.
/// [`end`](Self::end) returns the graph. If the guard is dropped instead, by an early return or a
/// panic, the capture is ended and its graph destroyed. In both cases the stream is usable again.
/// The guard stays on its thread, because another thread may not end the capture.
///
/// A call that the [`CaptureMode`] does not allow invalidates the capture. Later calls that put
/// work into its streams fail, and so does `end`.
///
/// An event that is recorded in a capture with [`record`](crate::EventRef::record) stands for a
/// place in the graph. It orders the streams of the capture, and has no other use until it is
/// recorded outside of a capture. To record an event at each launch, use
/// [`record_external`](StreamRef::record_external).
///
/// ```
/// use std::sync::Arc;
///
/// use cuda_events::{Context, Device, Event, EventFlags, Stream, StreamOptions};
/// use cuda_events::capture::{Capture, CaptureMode};
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
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
/// assert_eq!(capture.stream(), &*stream);
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
    /// The capture's number, once the driver has returned it.
    pub(super) id: Option<u64>,
    pub(super) retained: Arc<Retained>,
    ended: bool,
    _not_send: PhantomData<*mut ()>,
}

#[allow(unsafe_code)]
impl<'a> Capture<'a> {
    /// Begins a capture in the stream.
    ///
    /// Driver calls: [`cuStreamBeginCapture`], and the call of
    /// [`capture_info`](StreamRef::capture_info), for the capture's id. The [type](Self) has an
    /// example.
    ///
    /// # Errors
    ///
    /// * `CUDA_ERROR_ILLEGAL_STATE`: the stream is already capturing. The capture in progress is
    ///   not disturbed.
    /// * `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED`: the stream is the legacy default stream.
    /// * [`Error::ForkedChild`].
    ///
    /// # Safety
    ///
    /// Until the capture has ended, only one thread at a time may do any of the following:
    ///
    /// * use this stream, or a stream that joins the capture,
    /// * use an event that is recorded in the capture,
    /// * end the capture.
    ///
    /// The driver takes no lock there: two threads at once make it crash.
    ///
    /// Other threads may use events that are only used with
    /// [`record_external`](StreamRef::record_external) and
    /// [`wait_external`](StreamRef::wait_external).
    ///
    /// A pending `Completion` of the crate `cuda-timelines` queries its event on another thread.
    /// Await or drop the futures of an event before you record it in the capture.
    #[doc(alias = "cuStreamBeginCapture")]
    pub unsafe fn begin(stream: &'a StreamRef, mode: CaptureMode) -> Result<Self> {
        let begin = entry!(stream, cuStreamBeginCapture_v2);
        // SAFETY: the stream is alive as long as its reference is; the caller vouches that no other
        // thread uses it now.
        Self::start(stream, begin, None, |begin| unsafe {
            begin(stream.as_raw(), mode.to_driver())
        })
    }

    /// Begins a capture that adds to an existing graph. Needs CUDA 12.3.
    ///
    /// The first captured work depends on the nodes in `after`. The capture owns the graph until
    /// [`end`](Self::end) returns it. If this call or the capture fails, or the capture is dropped,
    /// the graph is destroyed.
    ///
    /// Driver calls: [`cuStreamBeginCaptureToGraph`], and the call of
    /// [`capture_info`](StreamRef::capture_info), for the capture's id.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use cuda_events::capture::{Capture, CaptureMode};
    /// use cuda_events::graph::Graph;
    /// use cuda_events::{Context, Device, Event, EventFlags, Stream, StreamOptions};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let stream = Stream::new(&context, StreamOptions::new())?;
    /// let before = Event::new(&context, EventFlags::TIMING)?;
    /// let after = Event::new(&context, EventFlags::TIMING)?;
    /// let (before, after) = (Arc::new(before), Arc::new(after));
    ///
    /// let mut graph = Graph::new(&context)?;
    /// let first = graph.add_event_record_node(&[], &before)?;
    /// // SAFETY: no other thread has this stream or these events.
    /// let capture =
    ///     unsafe { Capture::begin_to_graph(&stream, graph, &[first], CaptureMode::ThreadLocal) }?;
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
    /// [`Error::GraphMismatch`] for a node of another graph; [`Error::Unsupported`] if the driver
    /// is older than CUDA 12.3; otherwise as [`begin`](Self::begin).
    ///
    /// # Safety
    ///
    /// The caller has the duties of [`begin`](Self::begin).
    #[doc(alias = "cuStreamBeginCaptureToGraph")]
    pub unsafe fn begin_to_graph(
        stream: &'a StreamRef,
        graph: Graph,
        after: &[GraphNode],
        mode: CaptureMode,
    ) -> Result<Self> {
        let begin = entry!(stream, cuStreamBeginCaptureToGraph?)?;
        let after = graph.retained().handles(begin.function, after.iter().copied())?;
        stream.driver().check(graph.context().driver(), begin.function)?;
        let raw = graph.as_raw();
        // SAFETY: the stream is alive as long as its reference is; this function owns the graph,
        // and the nodes belong to it; NULL means that all edges are plain; the caller vouches that
        // no other thread uses the stream now.
        Self::start(stream, begin, Some(graph), |begin| unsafe {
            begin(stream.as_raw(), raw, after.as_ptr(), null(), after.len(), mode.to_driver())
        })
    }

    /// Makes the call that begins a capture, into a graph or a new one.
    fn start<F: Copy>(
        stream: &'a StreamRef,
        entry: Entry<F>,
        mut graph: Option<Graph>,
        begin: impl FnOnce(F) -> CUresult,
    ) -> Result<Self> {
        let retained = graph.as_ref().map_or_else(Retained::new, |graph| graph.retained().clone());
        let mut begun = None;
        let called = entry.call(stream, |pointer| {
            let code = begin(pointer);
            if code == CUresult::CUDA_SUCCESS {
                // Made before any later step can fail, such as restoring the caller's context: its
                // drop then ends the capture.
                begun = Some(Self {
                    stream,
                    id: None,
                    retained: retained.clone(),
                    ended: false,
                    _not_send: PhantomData,
                });
                capture_count::add();
                // From here on the capture owns the graph: a capture that fails destroys it.
                if let Some(graph) = graph.take() {
                    graph.disarm();
                }
            }
            code
        });
        let answer = called?;
        let Some(mut capture) = begun else {
            if let Some(graph) = graph {
                Self::take_back(stream, graph);
            }
            return Err(answer.error());
        };
        capture.id = stream.capture_info()?.id;
        if let Some(id) = capture.id {
            registry::add(stream.driver(), id, &capture.retained);
        }
        Ok(capture)
    }

    /// Destroys the graph after the driver refused to capture into it. The error may be that of
    /// earlier work, and the capture in progress all the same: then it is ended. If that is not
    /// known, the graph is leaked: an H200 refused to destroy a graph that is captured into (401),
    /// but this is not documented for other drivers.
    fn take_back(stream: &'a StreamRef, graph: Graph) {
        match stream.capture_info() {
            Ok(info) if info.status == CaptureStatus::Active && info.graph == graph.as_raw() => {
                capture_count::add();
                let retained = graph.retained().clone();
                graph.disarm();
                drop(Self { stream, id: None, retained, ended: false, _not_send: PhantomData });
            }
            Ok(info) if info.status != CaptureStatus::Invalidated => drop(graph),
            _ => core::mem::forget(graph),
        }
    }

    /// Ends the capture and returns the graph.
    ///
    /// One driver call: [`cuStreamEndCapture`].
    ///
    /// # Errors
    ///
    /// * `CUDA_ERROR_STREAM_CAPTURE_INVALIDATED`: an earlier call invalidated the capture.
    /// * `CUDA_ERROR_STREAM_CAPTURE_UNJOINED`: this stream does not wait for all work of another
    ///   stream of the capture.
    /// * [`Error::ForkedChild`].
    ///
    /// The capture ends even if the call returns an error.
    #[doc(alias = "cuStreamEndCapture")]
    pub fn end(mut self) -> Result<Graph> {
        self.end_now()
    }

    fn end_now(&mut self) -> Result<Graph> {
        let Self { stream, retained, ended, .. } = self;
        let end = entry!(*stream, cuStreamEndCapture);
        let mut raw = null_mut();
        let mut graph = None;
        let called = end.call(*stream, |end| {
            // Set when the call is made, not earlier: making the stream's context current may fail.
            *ended = true;
            // SAFETY: the stream is alive as long as its reference is; a place for the handle. The
            // caller of `begin` vouched that no other thread uses the stream now.
            let code = unsafe { end(stream.as_raw(), &mut raw) };
            capture_count::subtract();
            if code == CUresult::CUDA_SUCCESS {
                // Made here, so it is dropped if the caller's context cannot be restored.
                graph = Some(Graph::with(stream.context(), raw, retained.clone()));
            }
            code
        });
        let answer = called?;
        graph.ok_or_else(|| answer.error())
    }

    /// Returns the stream in which the capture began.
    pub fn stream(&self) -> &'a StreamRef {
        self.stream
    }
}

impl Drop for Capture<'_> {
    fn drop(&mut self) {
        if !self.ended {
            // The graph is destroyed. An error cannot be handled here. A forked child makes no
            // call.
            drop(self.end_now());
        }
    }
}

impl fmt::Debug for Capture<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Capture").field("stream", &self.stream).finish_non_exhaustive()
    }
}

static_assertions::assert_not_impl_any!(Capture<'static>: Send, Sync);
