//! Nodes of a capture that refer to a value outside of the graph, which the graph must keep.

use core::mem::forget;
use std::sync::Arc;

use super::registry;
use crate::driver::capture_count;
use crate::error::Result;
use crate::event::Event;
use crate::event::RecordFlags;
use crate::graph::retained::{Captured, GraphValue};
use crate::stream::StreamRef;
use crate::stream::WaitFlags;
use crate::stream::capture_info::CaptureStatus;
use crate::sys::Function;

#[cfg(doc)]
use crate::sys::calls::*;

/// # External events in captures
#[allow(unsafe_code)]
impl StreamRef {
    /// Records an event. In a capture, the record becomes a node of the graph: each launch records
    /// the event, for use outside of the graph.
    ///
    /// If this stream is not capturing, this is a plain [`record`](crate::EventRef::record).
    /// [`Capture`](crate::capture::Capture) has an example.
    ///
    /// The graph and its executable graphs keep the event alive, even if this method returns an
    /// error. If other code began the capture, the event is never destroyed.
    ///
    /// Two driver calls: the call of [`capture_info`](Self::capture_info), then
    /// [`cuEventRecordWithFlags`] (CUDA 11.1) in a capture, otherwise [`cuEventRecord`].
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`](crate::Error::Unsupported) in a capture, if the driver is older than
    /// CUDA 11.1; otherwise as [`record`](crate::EventRef::record).
    #[doc(alias = "CU_EVENT_RECORD_EXTERNAL")]
    #[doc(alias = "cuEventRecordWithFlags")]
    #[doc(alias = "external")]
    pub fn record_external(&self, event: &Arc<Event>) -> Result<()> {
        // SAFETY: `external` keeps the event for the graph.
        self.external(
            event,
            Function::cuEventRecordWithFlags,
            || event.record(self),
            || unsafe { event.record_with(self, RecordFlags::EXTERNAL) },
        )
    }

    /// Makes all later work in this stream wait for an event. In a capture, the wait becomes a node
    /// of the graph.
    ///
    /// Record the event before you launch the graph: the launch waits for the event's last record.
    ///
    /// If this stream is not capturing, this is a plain [`wait_event`](Self::wait_event). The graph
    /// keeps the event alive as in [`record_external`](Self::record_external). For a semaphore
    /// there is [`wait_external_semaphore`](Self::wait_external_semaphore).
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
    /// let input = Stream::new(&context, StreamOptions::new())?;
    /// let ready = Arc::new(Event::new(&context, EventFlags::empty())?);
    ///
    /// // SAFETY: no other thread has this stream.
    /// let capture = unsafe { Capture::begin(&stream, CaptureMode::ThreadLocal) }?;
    /// stream.wait_external(&ready)?;
    /// // ... work on the input ...
    /// let exec = capture.end()?.instantiate()?;
    ///
    /// // ... put the input's work into `input` ...
    /// ready.record(&input)?;
    /// exec.launch(&stream)?; // waits for that work
    /// stream.synchronize()?;
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// Two driver calls: the call of [`capture_info`](Self::capture_info), then
    /// [`cuStreamWaitEvent`]. In a capture it needs CUDA 11.1.
    ///
    /// # Errors
    ///
    /// As [`wait_event`](Self::wait_event).
    #[doc(alias = "CU_EVENT_WAIT_EXTERNAL")]
    #[doc(alias = "external")]
    pub fn wait_external(&self, event: &Arc<Event>) -> Result<()> {
        // SAFETY: `external` keeps the event for the graph.
        self.external(
            event,
            Function::cuStreamWaitEvent,
            || self.wait_event(event),
            || unsafe { self.wait_event_with(event, WaitFlags::EXTERNAL) },
        )
    }

    fn external(
        &self,
        event: &Arc<Event>,
        function: Function,
        plain: impl FnOnce() -> Result<()>,
        external: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        match self.active_capture()? {
            Some(id) => self.keeping(id, function, &[Captured::Event(event.clone())], external),
            None => plain(),
        }
    }

    /// The number of the capture that the stream takes part in.
    pub(crate) fn active_capture(&self) -> Result<Option<u64>> {
        let info = self.capture_info()?;
        Ok(info.id.filter(|_| info.status == CaptureStatus::Active))
    }

    /// Makes the driver call `function`, which puts nodes into the graph of the capture. The graph
    /// keeps the values that the nodes refer to. If other code began the capture, the values are
    /// leaked.
    pub(crate) fn keeping(
        &self,
        capture: u64,
        function: Function,
        values: &[Captured],
        call: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let retained = registry::find(self.driver(), capture);
        if let Some(retained) = &retained {
            values.iter().for_each(|value| retained.keep(value));
        }
        let made = call();
        // The driver may have made the node even if it returned an error, because it also returns
        // errors of earlier work. If restoring the caller's context fails, the node is already
        // made.
        let asked = made.as_ref().err().is_none_or(|error| {
            let failed = error.function().filter(|_| error.code().is_some());
            failed.is_some_and(|it| it == function || it == Function::cuCtxPopCurrent_v2)
        });
        match retained {
            Some(retained) if !asked => values.iter().for_each(|value| retained.forget(value)),
            // The end of the graph is not known.
            None if asked => values.iter().cloned().for_each(forget),
            _ => {}
        }
        made
    }
}

/// A [`Capture`](super::Capture) that a stream takes part in.
///
/// A captured call becomes a node, which may refer to an object by its address or its handle. Each
/// launch of the graph uses that object, so the graph must keep the object alive. If you make the
/// call within [`keep`](Self::keep), the graph keeps the object.
///
/// ```
/// use std::sync::Arc;
///
/// use cuda_events::capture::{Capture, CaptureMode};
/// use cuda_events::foundation::{GraphValue, OwnCapture, call, with_current};
/// use cuda_events::sys::{CUdeviceptr, Function};
/// use cuda_events::{Context, Device, Result, Stream, StreamOptions, StreamRef};
///
/// /// Memory of a device; dropping it frees it.
/// struct Buffer(Context, CUdeviceptr);
///
/// impl GraphValue for Buffer {}
///
/// impl Drop for Buffer {
///     fn drop(&mut self) {
///         // SAFETY: this value owns the memory.
///         let free = || unsafe { call!(self.0.driver(), cuMemFree_v2(self.1)) };
///         let _ = with_current(&self.0, free);
///     }
/// }
///
/// /// Sets the first byte. A graph that captures this keeps the memory.
/// fn clear(buffer: &Arc<Buffer>, stream: &StreamRef) -> Result<()> {
///     let (at, raw) = (buffer.1, stream.as_raw());
///     // SAFETY: the memory stays allocated until the stream or the graph is done with it.
///     let clear = || unsafe { call!(buffer.0.driver(), cuMemsetD8Async(at, 0, 1, raw)) };
///     match OwnCapture::of(stream)? {
///         Some(capture) => capture.keep(buffer.clone(), Function::cuMemsetD8Async, clear),
///         None => clear(),
///     }
/// }
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let stream = Stream::new(&context, StreamOptions::new())?;
/// let mut at = 0;
/// // SAFETY: the context is current, and the driver writes only the address.
/// with_current(&context, || unsafe { call!(driver, cuMemAlloc_v2(&mut at, 4096)) })?;
/// let buffer = Arc::new(Buffer(context.clone(), at));
/// // SAFETY: no other thread has this stream.
/// let capture = unsafe { Capture::begin(&stream, CaptureMode::ThreadLocal) }?;
/// clear(&buffer, &stream)?;
/// let graph = capture.end()?;
/// assert_eq!(Arc::strong_count(&buffer), 2, "the graph keeps it");
/// # drop(graph);
/// # Ok::<(), cuda_events::Error>(())
/// ```
#[derive(Debug)]
pub struct OwnCapture<'a> {
    stream: &'a StreamRef,
    id: u64,
}

impl<'a> OwnCapture<'a> {
    /// Returns the capture that the stream takes part in, if [`Capture`](super::Capture) began it.
    ///
    /// While no such capture is in progress it makes no driver call, otherwise the call of
    /// [`capture_info`](StreamRef::capture_info).
    ///
    /// # Errors
    ///
    /// The errors of [`capture_info`](StreamRef::capture_info).
    pub fn of(stream: &'a StreamRef) -> Result<Option<Self>> {
        if !capture_count::under_way() {
            return Ok(None);
        }
        let id = stream.active_capture()?;
        let own = id.filter(|id| registry::find(stream.driver(), *id).is_some());
        Ok(own.map(|id| Self { stream, id }))
    }

    /// Calls `add`, which adds nodes to the capture, and makes the graph keep the value. `function`
    /// is the driver function that `add` calls.
    ///
    /// The graph keeps the value even if `add` fails, because the driver may have added the nodes.
    ///
    /// # Errors
    ///
    /// The errors of `add`.
    pub fn keep(
        &self,
        value: Arc<dyn GraphValue>,
        function: Function,
        add: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        self.stream.keeping(self.id, function, &[Captured::Prepared(value)], add)
    }
}
