//! Records and waits of a graph for events that are also used outside of it.

use core::mem::forget;
use std::sync::Arc;

use super::registry;
use crate::error::Result;
use crate::event::Event;
use crate::order::{RecordFlags, WaitFlags};
use crate::stream::StreamRef;
use crate::stream::capture_info::CaptureStatus;
use crate::sys::Function;

#[allow(unsafe_code)]
impl StreamRef {
    /// Records an event for use outside of the graph; in a capture, each launch of the graph
    /// records it.
    ///
    /// If this stream is capturing, the record becomes a node of the graph. Otherwise it is a plain
    /// [`record`](crate::EventRef::record). The capture itself does not change the event: until the
    /// graph is launched, its last record stays valid. [`Capture`](crate::capture::Capture) has an
    /// example.
    ///
    /// The graph and its executable graphs keep the event alive. They keep it even if the driver
    /// returns an error, because it may have made the node. If other code than this
    /// crate's [`Capture`](crate::capture::Capture) began the capture, the event is never
    /// destroyed.
    ///
    /// Two driver calls: that of [`capture_info`](Self::capture_info), then
    /// `cuEventRecordWithFlags` (CUDA 11.1) in a capture, otherwise `cuEventRecord`.
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
            || event.record(self),
            || unsafe { event.record_with(self, RecordFlags::EXTERNAL) },
        )
    }

    /// Waits for an event that is recorded outside of the graph; in a capture, each launch of the
    /// graph waits for it.
    ///
    /// If this stream is capturing, the wait becomes a node of the graph: each launch waits for the
    /// event's last record at that time. Otherwise it is a plain [`wait_event`](Self::wait_event).
    /// The event is kept alive as in [`record_external`](Self::record_external).
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
    /// Two driver calls: that of [`capture_info`](Self::capture_info), then `cuStreamWaitEvent`. In
    /// a capture it needs CUDA 11.1.
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
            || self.wait_event(event),
            || unsafe { self.wait_event_with(event, WaitFlags::EXTERNAL) },
        )
    }

    fn external(
        &self,
        event: &Arc<Event>,
        plain: impl FnOnce() -> Result<()>,
        external: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let info = self.capture_info()?;
        let Some(id) = info.id.filter(|_| info.status == CaptureStatus::Active) else {
            return plain();
        };
        let kept = registry::find(self.driver(), id);
        if let Some(kept) = &kept {
            kept.keep(event);
        }
        let made = external();
        // The driver may have made the node even if it returned an error, because it also returns
        // errors of earlier work. If restoring the caller's context fails, the node is already
        // made.
        let asked = made.as_ref().err().is_none_or(|error| {
            let function = error.function().filter(|_| error.code().is_some());
            matches!(
                function,
                Some(
                    Function::cuEventRecordWithFlags
                        | Function::cuStreamWaitEvent
                        | Function::cuCtxPopCurrent_v2
                )
            )
        });
        match kept {
            Some(kept) if !asked => kept.forget(event),
            // Other code began this capture, and the end of its graph is not known.
            None if asked => forget(event.clone()),
            _ => {}
        }
        made
    }
}
