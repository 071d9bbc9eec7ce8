//! Captures under way.

use core::fmt;
use core::marker::PhantomData;
use core::ptr::{null, null_mut};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use super::mode::CaptureMode;
use super::registry;
use crate::driver::call::{Entry, entry};
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::graph::kept::Kept;
use crate::graph::{Graph, GraphNode};
use crate::stream::StreamRef;
use crate::stream::capture_info::CaptureStatus;
use crate::sys::CUresult;

/// A capture under way: what is put into the stream becomes a graph instead of being done, and what
/// is put into streams that wait for events of this capture, too.
///
/// [`end`](Self::end) gives the graph. A capture that is dropped instead, by an early return or a
/// panic, is ended and its graph destroyed: the stream is usable again either way. The guard stays
/// on its thread, since another one may not end the capture.
///
/// A call that is not allowed invalidates the capture (see [`CaptureMode`]); from then on work for
/// its streams fails, and so does `end`.
///
/// An event that is recorded in a capture with [`record`](crate::EventRef::record) stands for a
/// place in the graph: it orders the streams of the capture and can be used for nothing else, until
/// it is recorded outside of one. An event that each launch shall record is for
/// [`record_external`](StreamRef::record_external).
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
    /// The capture's number, once the driver has told it.
    pub(super) id: Option<u64>,
    pub(super) kept: Arc<Kept>,
    ended: bool,
    _not_send: PhantomData<*mut ()>,
}

/// How many captures that began here have not ended.
static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);

/// Whether an event that this thread has at hand may have been recorded in a capture that has not
/// ended.
///
/// Why a relaxed load is enough:
///
/// 1. `start` counts the capture when the driver has begun it, before anything can be recorded in
///    it.
/// 2. A record in the capture happens after that: whoever makes it knows of the capture from the
///    thread of step 1. [`Capture::begin`] demands that no two threads use such things at once, so
///    that something synchronizes between them.
/// 3. Whoever asks here has the event from the thread that recorded it. So step 1 happens before
///    this load, which sees that count or a later one: 0 only if the capture has ended since.
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
    /// `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED` for the legacy default stream; what else the driver
    /// answers; [`Error::ForkedChild`].
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
    ///   pending [`Completion`](crate::ext::Completion). Await or drop the futures of an event
    ///   before you record it in the capture. When the drop has returned, the poller asks no more.
    /// * An [`EventPool`](crate::ext::EventPool) hands nothing out again that was given back to it
    ///   meanwhile.
    #[doc(alias = "cuStreamBeginCapture")]
    pub unsafe fn begin(stream: &'a StreamRef, mode: CaptureMode) -> Result<Self> {
        let begin = entry!(stream, cuStreamBeginCapture_v2);
        // SAFETY: the stream is alive as long as its reference is; the caller vouches that no other
        // thread uses it now.
        Self::start(stream, begin, None, |begin| unsafe {
            begin(stream.as_raw(), mode.to_driver())
        })
    }

    /// Begins a capture in the stream that adds to a graph; the first work depends on the nodes in
    /// `after`. CUDA 12.3.
    ///
    /// The graph is taken: [`end`](Self::end) gives it back. If this or the capture fails, or the
    /// capture is dropped, the graph is destroyed.
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
    /// # let before = Event::new(&context, EventFlags::TIMING)?;
    /// # let after = Event::new(&context, EventFlags::TIMING)?;
    /// # let (before, after) = (Arc::new(before), Arc::new(after));
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
    /// [`Error::GraphMismatch`]; [`Error::Unsupported`]; else as [`begin`](Self::begin).
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
        let begin = entry!(stream, cuStreamBeginCaptureToGraph?)?;
        let after = graph.kept().handles(begin.function, after.iter().copied())?;
        stream.driver().check_same(graph.context().driver(), begin.function)?;
        let raw = graph.as_raw();
        // SAFETY: the stream is alive as long as its reference is; the graph is ours alone, and the
        // nodes are of it; NULL says that all edges are plain; the caller vouches that no other
        // thread uses the stream now.
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
        let kept = graph.as_ref().map_or_else(Kept::new, |graph| graph.kept().clone());
        let mut begun = None;
        let called = entry.ask(stream, |pointer| {
            let code = begin(pointer);
            if code == CUresult::CUDA_SUCCESS {
                // Before anything can fail, restoring the caller's context among it, so that the
                // capture is ended then.
                begun = Some(Self {
                    stream,
                    id: None,
                    kept: kept.clone(),
                    ended: false,
                    _not_send: PhantomData,
                });
                UNDER_WAY.fetch_add(1, Ordering::Relaxed);
                // From here on it is the capture's: a capture that fails destroys it.
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
            registry::add(stream.driver(), id, &capture.kept);
        }
        Ok(capture)
    }

    /// Destroys the graph that a capture was to add to, which the driver refused. The refusal may
    /// be the error of earlier work, and the capture under way all the same: then it is ended. If
    /// that cannot be told, the graph is left alone: an H200 refused to destroy a graph that is
    /// captured into (401), and no document says so of other drivers.
    fn take_back(stream: &'a StreamRef, graph: Graph) {
        match stream.capture_info() {
            Ok(info) if info.status == CaptureStatus::Active && info.graph == graph.as_raw() => {
                UNDER_WAY.fetch_add(1, Ordering::Relaxed);
                let kept = graph.kept().clone();
                graph.disarm();
                drop(Self { stream, id: None, kept, ended: false, _not_send: PhantomData });
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
    /// `CUDA_ERROR_STREAM_CAPTURE_INVALIDATED`; `CUDA_ERROR_STREAM_CAPTURE_UNJOINED` when work of
    /// another stream of the capture is not waited for by this one; what else the driver returns;
    /// [`Error::ForkedChild`]. The capture is over all the same.
    #[doc(alias = "cuStreamEndCapture")]
    pub fn end(mut self) -> Result<Graph> {
        self.end_now()
    }

    fn end_now(&mut self) -> Result<Graph> {
        let Self { stream, kept, ended, .. } = self;
        let end = entry!(*stream, cuStreamEndCapture);
        let mut raw = null_mut();
        let mut graph = None;
        let called = end.ask(*stream, |end| {
            // Once it is called, and not when the stream's context could not even be made current.
            *ended = true;
            // SAFETY: the stream is alive as long as its reference is; a place for the handle.
            // Whoever began the capture vouched that no other thread uses it now.
            let code = unsafe { end(stream.as_raw(), &mut raw) };
            UNDER_WAY.fetch_sub(1, Ordering::Relaxed);
            if code == CUresult::CUDA_SUCCESS {
                // Here, so that it is dropped when the caller's context cannot be restored.
                graph = Some(Graph::with(stream.context(), raw, kept.clone()));
            }
            code
        });
        let answer = called?;
        graph.ok_or_else(|| answer.error())
    }

    /// The stream that the capture began in.
    pub fn stream(&self) -> &'a StreamRef {
        self.stream
    }
}

impl Drop for Capture<'_> {
    fn drop(&mut self) {
        if !self.ended {
            // The graph is destroyed. What is answered cannot be acted on here. A forked child
            // makes no call.
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
