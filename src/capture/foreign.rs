//! Captures that other code began.

use core::any::Any;
use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use std::sync::Arc;

use super::registry;
use crate::driver::capture_count;
use crate::error::Result;
use crate::graph::retained::Retained;
use crate::stream::StreamRef;

/// A capture that other code began. While this value exists, this crate treats the capture as its
/// own.
///
/// A crate that adopts another library's streams uses this type for that library's captures, as
/// soon as they have begun. (A capture that this crate begins is a
/// [`Capture`](crate::capture::Capture).) While the value exists:
///
/// * [`is_capture_under_way`](crate::foundation::is_capture_under_way) returns true. So pools reuse
///   no event of the capture, and timelines query the driver before a signal.
/// * [`OwnCapture`](crate::foundation::OwnCapture) finds the capture.
/// * [`record_external`](StreamRef::record_external) leaks nothing.
///
/// Dropping the value does not end the capture. The objects that the nodes refer to are then never
/// dropped. The value cannot leave its thread, and the capture cannot either.
///
/// ```
/// use core::ptr::null_mut;
///
/// use cuda_events::ext::EventPool;
/// use cuda_events::foundation::{ForeignCapture, call, is_capture_under_way};
/// use cuda_events::sys::CUstreamCaptureMode;
/// use cuda_events::{Context, Device, EventFlags, Stream, StreamOptions};
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let stream = Stream::new(&context, StreamOptions::new())?;
/// let pool = EventPool::new(&context, EventFlags::empty())?;
///
/// let (raw, mut graph) = (stream.as_raw(), null_mut());
/// let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
/// // Stands for another library.
/// // SAFETY: the stream is alive, and no other thread has it.
/// unsafe { call!(driver, cuStreamBeginCapture_v2(raw, mode)) }?;
/// let capture = ForeignCapture::of(&stream)?.expect("the stream captures");
/// assert!(is_capture_under_way());
/// drop(pool.record_event(&stream)?);
/// assert_eq!(pool.available(), 0, "the event is not reused");
/// // SAFETY: as above, and the driver writes only the handle.
/// unsafe { call!(driver, cuStreamEndCapture(raw, &mut graph)) }?;
/// // SAFETY: the values are dropped after the graph, of which there is no executable one.
/// let values = unsafe { capture.end() };
/// // SAFETY: the graph is owned, and not used afterwards.
/// unsafe { call!(driver, cuGraphDestroy(graph)) }?;
/// drop(values);
/// assert!(!is_capture_under_way());
/// # Ok::<(), cuda_events::Error>(())
/// ```
#[must_use = "dropping it stops counting the capture"]
pub struct ForeignCapture {
    id: u64,
    retained: ManuallyDrop<Arc<Retained>>,
    _not_send: PhantomData<*mut ()>,
}

impl ForeignCapture {
    /// Returns the capture that the stream takes part in; `None` if it takes part in none.
    ///
    /// One driver call, the call of [`capture_info`](StreamRef::capture_info).
    ///
    /// # Errors
    ///
    /// The errors of [`capture_info`](StreamRef::capture_info).
    pub fn of(stream: &StreamRef) -> Result<Option<Self>> {
        let Some(id) = stream.active_capture()? else { return Ok(None) };
        let retained = registry::find(stream.driver(), id).unwrap_or_else(|| {
            let retained = Retained::new();
            registry::add(stream.driver(), id, &retained);
            retained
        });
        capture_count::add();
        let retained = ManuallyDrop::new(retained);
        Ok(Some(Self { id, retained, _not_send: PhantomData }))
    }

    /// Returns the capture's id, as in [`CaptureInfo::id`](crate::capture::CaptureInfo::id).
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Stops counting the capture, and returns the owner of the values that its nodes refer to.
    ///
    /// Call it after the other code has ended the capture. It makes no driver call.
    ///
    /// # Safety
    ///
    /// The result must be dropped after the graph of the capture and all its executable graphs.
    #[allow(unsafe_code)]
    pub unsafe fn end(self) -> Arc<dyn Any + Send + Sync> {
        // Launches by the other code are not seen.
        self.retained.prepare();
        let mut this = ManuallyDrop::new(self);
        capture_count::subtract();
        // SAFETY: taken once, as the destructor does not run.
        let retained: Arc<Retained> = unsafe { ManuallyDrop::take(&mut this.retained) };
        retained
    }
}

impl Drop for ForeignCapture {
    fn drop(&mut self) {
        // The share of the values is not dropped: the graph may exist.
        capture_count::subtract();
    }
}

impl fmt::Debug for ForeignCapture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForeignCapture").field("id", &self.id).finish_non_exhaustive()
    }
}

static_assertions::assert_not_impl_any!(ForeignCapture: Send, Sync);
