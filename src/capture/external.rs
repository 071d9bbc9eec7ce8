//! Records and waits that concern those outside of the graph.

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
    /// Records an event for those outside of the graph: in a capturing stream the record becomes a
    /// node, so that each launch of the graph records the event; in any other it is a plain
    /// [`record`](crate::EventRef::record).
    ///
    /// Which of the two is decided by this very stream. The graph and its executable graphs keep
    /// the event alive, also when the driver fails the record, as it may have made the node all the
    /// same. If other code than this crate's [`Capture`](crate::capture::Capture) began the
    /// capture, nobody would: then the event is never destroyed.
    ///
    /// The event stands for nothing new until the graph is launched: a record of before stays, and
    /// without one a query says done.
    ///
    /// It is two driver calls: the first asks for the capture, the second is
    /// `cuEventRecordWithFlags` in a capture and `cuEventRecord` elsewhere. In a capture it takes
    /// CUDA 11.1.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`](crate::Error::Unsupported); else as
    /// [`record`](crate::EventRef::record).
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

    /// Waits for what an event stands for outside of the graph: in a capturing stream the wait
    /// becomes a node, so that each launch of the graph waits for what the event stands for then;
    /// in any other it is a plain [`wait_event`](Self::wait_event).
    ///
    /// Which of the two is decided, and the event kept, as by
    /// [`record_external`](Self::record_external). It is two driver calls, of which the second is
    /// `cuStreamWaitEvent`. In a capture it takes CUDA 11.1.
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
        // The driver may have made the node whatever it answered: it answers with errors of earlier
        // work, too. When the caller's context cannot be restored, the node is made already.
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
            // Others began this capture, and nobody says when its graph is gone.
            None if asked => forget(event.clone()),
            _ => {}
        }
        made
    }
}
