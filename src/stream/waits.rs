//! Ordering streams: waits for events and for other streams.

use std::time::Duration;

use bitflags::bitflags;

use super::StreamRef;
use crate::context::Context;
use crate::debug_by_names::debug_by_names;
use crate::driver::call::call;
use crate::driver::capture_count;
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::event::{Event, EventFlags, EventRef};
use crate::progress::Progress;
use crate::sys::{CU_EVENT_WAIT_DEFAULT, CU_EVENT_WAIT_EXTERNAL, CUevent, Function};

#[cfg(doc)]
use crate::sys::calls::*;

bitflags! {
    /// Flags for [`StreamRef::wait_event_with`]; [`EventRef::record_with`] has an example.
    #[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
    pub struct WaitFlags: u32 {
        /// Makes the wait in a capture a node of the graph (`CU_EVENT_WAIT_EXTERNAL`). Each launch
        /// waits for the event's last record. Needs CUDA 11.1. In a stream that is not capturing,
        /// the flag is an error.
        const EXTERNAL = CU_EVENT_WAIT_EXTERNAL;
    }
}

debug_by_names!(WaitFlags);

/// # Order and waits
#[allow(unsafe_code)]
impl StreamRef {
    /// Creates an event in the stream's context, and records it in the stream.
    ///
    /// Driver calls: [`cuEventCreate`] with the context current, and [`cuEventRecord`].
    ///
    /// ```
    /// use cuda_events::{Context, Device, EventFlags, Stream, StreamOptions};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let stream = Stream::new(&context, StreamOptions::new())?;
    /// let other = Stream::new(&context, StreamOptions::new())?;
    /// // ... work is put into `stream` ...
    /// let event = stream.record_event(EventFlags::empty())?;
    /// other.wait_event(&event)?;
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Event::new`] and [`EventRef::record`].
    #[inline]
    pub fn record_event(&self, flags: EventFlags) -> Result<Event> {
        let event = Event::new(&self.context, flags)?;
        event.record(self)?;
        Ok(event)
    }

    /// Makes all later work in this stream wait for the event's last record. The calling thread
    /// does not wait.
    ///
    /// The event may belong to another context or another device. An interprocess event must belong
    /// to the stream's context. If the event was never recorded, the stream does not wait. A later
    /// record of the event does not change this.
    ///
    /// ```
    /// use cuda_events::{Context, Device, EventFlags, Stream, StreamOptions};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let producer = Stream::new(&context, StreamOptions::new())?;
    /// let consumer = Stream::new(&context, StreamOptions::new())?;
    /// // ... put work into `producer` ...
    /// let done = producer.record_event(EventFlags::empty())?;
    /// consumer.wait_event(&done)?;
    /// // Later work in `consumer` runs after that work.
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// One driver call: [`cuStreamWaitEvent`].
    ///
    /// # Errors
    ///
    /// * [`Error::ContextMismatch`]: the event is an interprocess event of another context.
    /// * `CUDA_ERROR_STREAM_CAPTURE_ISOLATION`: this stream is capturing, and the event was
    ///   recorded outside of its capture.
    /// * `CUDA_ERROR_INVALID_VALUE`: the event was last [recorded](EventRef::record) in a capture
    ///   that has ended.
    /// * [`Error::ForkedChild`].
    ///
    /// An error in a capture can invalidate the capture. For an event that is used outside of the
    /// graph, use [`record_external`](Self::record_external) and
    /// [`wait_external`](Self::wait_external).
    #[doc(alias = "cuStreamWaitEvent")]
    #[doc(alias = "wait")]
    #[inline(always)]
    pub fn wait_event(&self, event: &EventRef) -> Result<()> {
        if event.flags().contains(EventFlags::INTERPROCESS) {
            return self.wait_checked(event, WaitFlags::empty());
        }
        // SAFETY: the stream is alive as long as `self` is, the event as long as its reference is.
        unsafe {
            call!(self, event.driver();
                cuStreamWaitEvent(self.raw, event.as_raw(), CU_EVENT_WAIT_DEFAULT))
        }?
        .check()
    }

    /// Checks first that the driver does not crash: see [`EventRef::check_wait`].
    #[inline(never)]
    pub(super) fn wait_checked(&self, event: &EventRef, flags: WaitFlags) -> Result<()> {
        event.check_wait(Function::cuStreamWaitEvent, &self.context)?;
        // SAFETY: as in `wait_event`; the caller of `wait_event_with` answers for the flags.
        unsafe {
            call!(self, event.driver(); cuStreamWaitEvent(self.raw, event.as_raw(), flags.bits()))
        }?
        .check()
    }

    /// Makes all later work in this stream wait for all work that is now in `producer`. The calling
    /// thread does not wait.
    ///
    /// ```
    /// use cuda_events::{Context, Device, Stream, StreamOptions};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let producer = Stream::new(&context, StreamOptions::new())?;
    /// let consumer = Stream::new(&context, StreamOptions::new())?;
    /// // ... put work into `producer` ...
    /// consumer.wait_stream(&producer)?;
    /// // Later work in `consumer` runs after that work.
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// Two driver calls: [`cuEventRecord`] in the producer, and [`cuStreamWaitEvent`]. The event
    /// belongs to the producer's [`Context`], or to this stream's if the producer's has none yet and
    /// both are the same context. It is kept for later waits. The first wait creates it
    /// ([`cuEventCreate`] with the context current). A call that runs at the same time as another one
    /// in the same context may create and destroy one of its own, and one while a capture is in
    /// progress [anywhere in the process](crate::foundation::is_capture_under_way) does.
    ///
    /// If the producer is capturing, this stream joins its capture. A capturing stream cannot wait
    /// for a stream outside of its capture. Instead, record an event in the producer and use
    /// [`wait_external`](Self::wait_external).
    ///
    /// # Errors
    ///
    /// As [`wait_event`](Self::wait_event), [`Event::new`] and [`EventRef::record`].
    #[doc(alias = "wait")]
    #[doc(alias = "join")]
    #[inline]
    pub fn wait_stream(&self, producer: &Self) -> Result<()> {
        if capture_count::under_way() {
            return self.wait_by_a_new_event(producer);
        }
        match producer.context.take_join_event() {
            Some(event) => self.wait_and_keep(event, producer, &producer.context),
            None => self.wait_without_event(producer),
        }
    }

    #[inline(always)]
    fn wait_and_keep(&self, event: CUevent, producer: &Self, context: &Context) -> Result<()> {
        let ordered = self.wait_for_record(event, producer);
        // A wait that is queued means this record, whatever the event records later.
        context.put_join_event(event);
        ordered
    }

    /// The producer's context has no event: it may have been made for this wait, as a reference to a
    /// foreign stream is. Then the event of this stream's context will do, if that is the same one.
    #[cold]
    #[inline(never)]
    fn wait_without_event(&self, producer: &Self) -> Result<()> {
        let is_same = self.context == producer.context;
        let context = if is_same { &self.context } else { &producer.context };
        let event = match context.take_join_event() {
            Some(event) => event,
            None => Event::new(context, EventFlags::empty())?.into_raw(),
        };
        self.wait_and_keep(event, producer, context)
    }

    /// An event that was recorded in a capture is the capture's thread's alone until the capture
    /// ends, so it is not kept for other threads.
    #[cold]
    #[inline(never)]
    fn wait_by_a_new_event(&self, producer: &Self) -> Result<()> {
        let event = Event::new(&producer.context, EventFlags::empty())?;
        self.wait_for_record(event.as_raw(), producer)
    }

    #[inline(always)]
    fn wait_for_record(&self, event: CUevent, producer: &Self) -> Result<()> {
        // SAFETY: the stream is alive as long as its reference is; the event was taken for this call.
        unsafe { call!(producer, cuEventRecord(event, producer.raw)) }?.check()?;
        // SAFETY: as above.
        unsafe {
            call!(self, producer.driver; cuStreamWaitEvent(self.raw, event, CU_EVENT_WAIT_DEFAULT))
        }?
        .check()
    }

    /// Returns whether all work in the stream is done. It does not wait.
    ///
    /// One driver call: [`cuStreamQuery`].
    ///
    /// ```
    /// use cuda_events::{Context, Device, Stream, StreamOptions};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let stream = Stream::new(&context, StreamOptions::new())?;
    /// // ... work is put into `stream` ...
    /// while stream.query()?.is_pending() {
    ///     // The host does other work.
    /// }
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// * Errors of work that was launched earlier.
    /// * `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED`: the stream is capturing. The call invalidates the
    ///   capture.
    /// * [`Error::ForkedChild`].
    #[doc(alias = "cuStreamQuery")]
    #[inline]
    pub fn query(&self) -> Result<Progress> {
        // SAFETY: the stream is alive as long as `self` is.
        unsafe { call!(self, cuStreamQuery(self.raw)) }?.progress()
    }

    /// Blocks the calling thread until all work in the stream is done.
    ///
    /// One driver call: [`cuStreamSynchronize`]. The
    /// [synchronization policy](Self::set_synchronization_policy) decides how the thread waits.
    ///
    /// ```
    /// use cuda_events::{Context, Device, Stream, StreamOptions};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let stream = Stream::new(&context, StreamOptions::new())?;
    /// // ... work is put into `stream` ...
    /// stream.synchronize()?;
    /// assert!(stream.query()?.is_done());
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`query`](Self::query).
    #[doc(alias = "cuStreamSynchronize")]
    #[doc(alias = "sync")]
    #[inline]
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: the stream is alive as long as `self` is.
        unsafe { call!(self, cuStreamSynchronize(self.raw)) }?.check()
    }

    /// Blocks the calling thread until all work now in the stream is done, but at most for
    /// `timeout`. Returns whether the work is done.
    ///
    /// The driver has no such call. If the stream is not idle, this method records an event and
    /// waits for it as [`EventRef::synchronize_timeout`](crate::EventRef::synchronize_timeout)
    /// does. Work that is put into the stream during the call does not prolong the wait.
    ///
    /// Driver calls: [`cuStreamQuery`]. If the stream is not idle, also those of
    /// [`record_event`](Self::record_event), then [`cuEventQuery`] repeatedly, and
    /// [`cuEventDestroy`].
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use cuda_events::{Context, Device, Stream, StreamOptions};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let stream = Stream::new(&context, StreamOptions::new())?;
    /// // ... work is put into `stream` ...
    /// if stream.synchronize_timeout(Duration::from_secs(10))?.is_pending() {
    ///     println!("the work takes longer than ten seconds");
    /// }
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`query`](Self::query) and [`record_event`](Self::record_event).
    pub fn synchronize_timeout(&self, timeout: Duration) -> Result<Progress> {
        let progress = self.query()?;
        if progress.is_done() || timeout.is_zero() {
            return Ok(progress);
        }
        self.record_event(EventFlags::empty())?.synchronize_timeout(timeout)
    }
}
