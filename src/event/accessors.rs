//! The flags, context and handle of an event, and events of other code.

use core::sync::atomic::Ordering;

#[cfg(doc)]
use super::Event;
use super::{EventFlags, EventRef};
use crate::context::Context;
use crate::device::Device;
use crate::sys::CUevent;

/// # Making an `EventRef`
#[allow(unsafe_code)]
impl EventRef {
    /// Wraps an event that other code created in `context` and continues to own.
    ///
    /// Dropping the result does not affect the event. `flags` are the flags that the event was
    /// created with: see [`Event::from_raw`]. [`EventRef`] has an example.
    ///
    /// # Safety
    ///
    /// `raw` must be a live event of `context` until the result is dropped. The rule for `flags` is
    /// that of [`Event::from_raw`].
    ///
    /// If the event is recorded in a capture: until the capture has ended, only one thread at a
    /// time may use the event or end the capture. The owner's threads count too. See
    /// [`Capture::begin`](crate::capture::Capture::begin).
    pub unsafe fn from_raw(context: &Context, raw: CUevent, flags: EventFlags) -> Self {
        Self::new(context, raw, flags, false)
    }
}

/// # The event itself
impl EventRef {
    /// Returns the context that the event was created or opened in.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Returns the device of the event's context.
    pub fn device(&self) -> Device {
        self.context.device()
    }

    /// Returns the flags that the event was created with. An imported event has
    /// [`INTERPROCESS`](EventFlags::INTERPROCESS), and [`BLOCKING_SYNC`](EventFlags::BLOCKING_SYNC)
    /// if its descriptor has it.
    pub fn flags(&self) -> EventFlags {
        self.flags
    }

    /// Returns whether the event was opened from another process's descriptor.
    pub fn is_imported(&self) -> bool {
        self.imported
    }

    /// Returns the driver's handle, for other bindings. It is valid as long as the event is.
    #[inline(always)]
    pub fn as_raw(&self) -> CUevent {
        self.raw
    }

    /// Marks the event as failed, so that a pool does not use it again.
    ///
    /// If a record, a query or a wait on the host returns an error, this crate marks the event
    /// itself. If your own driver call with the raw handle fails, call `mark_failed`. It makes no
    /// driver call.
    ///
    /// ```
    /// use cuda_events::ext::EventPool;
    /// use cuda_events::{Context, Device, EventFlags};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let pool = EventPool::new(&context, EventFlags::empty())?;
    /// let event = pool.take()?;
    /// // ... a call with `event.as_raw()` has returned an error ...
    /// event.mark_failed();
    /// drop(event);
    /// assert_eq!(pool.available(), 0);
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    pub fn mark_failed(&self) {
        // Relaxed: code that passes the event to another thread synchronizes by itself, after this
        // store.
        self.failed.store(true, Ordering::Relaxed);
    }
}
