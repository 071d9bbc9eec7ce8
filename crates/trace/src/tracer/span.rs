//! A running span.

use core::fmt;
use core::sync::atomic::Ordering;
use std::borrow::Cow;
use std::sync::Arc;

use cuda_events::ext::PooledEvent;
use cuda_events::{Result, StreamRef};

use crate::stream_id::StreamId;
use crate::thread::{Quiet, Thread};
use crate::tracer::Inner;
#[cfg(doc)]
use crate::tracer::Tracer;
use crate::tracer::states::{End, Ended, Labels, Open, Start, shard_of};

/// A running span, from [`Tracer::span`].
///
/// It borrows neither the stream nor the tracer. If it is dropped without [`end`](Self::end), the
/// span is not collected, and [`Tracer::dropped`] counts it. The drop makes no driver call, unless
/// the pool destroys its event.
#[must_use = "a span that is dropped has no end, and is not kept"]
pub struct Span {
    inner: Arc<Inner>,
    shard: usize,
    place: usize,
    /// The event for the end, if the shard had one to spare.
    spare: Option<PooledEvent>,
    armed: bool,
    labels: Option<Box<Labels>>,
}

impl Span {
    pub(super) fn begin(
        inner: &Arc<Inner>,
        stream: &StreamRef,
        name: Cow<'static, str>,
    ) -> Result<Self> {
        let _quiet = Quiet::new();
        let begun = inner.host.now();
        let thread = Thread::current();
        let shard = shard_of(&thread);
        let (first, spare, due) = match inner.shard(shard) {
            Some(mut shard) => (shard.spare.pop(), shard.spare.pop(), shard.is_due(begun)),
            None => (None, None, false),
        };
        if due {
            inner.keep_anchored(begun, shard);
        }
        let start = Start::Recorded(inner.record(stream, first)?);
        let stream = StreamId::of(stream, &thread);
        let open = Open { name, stream, thread, begun, start, labels: None };
        let place = inner.shard(shard).map_or(usize::MAX, |mut shard| shard.open(open));
        Ok(Self { inner: Arc::clone(inner), shard, place, spare, armed: true, labels: None })
    }

    /// Adds an argument: a name and a value, which the trace shows with the span.
    ///
    /// ```
    /// # use cuda_events::{Context, Device, Stream, StreamOptions};
    /// # use cuda_events_trace::Tracer;
    /// # let soft = cuda_soft_driver::SoftDriver::new();
    /// # let driver = soft.driver();
    /// # let context = Context::primary(Device::new(driver, 0)?)?;
    /// # let stream = Stream::new(&context, StreamOptions::new())?;
    /// # let tracer = Tracer::new(&context)?;
    /// let span = tracer.span(&stream, "forward")?.category("model").arg("batch", 8);
    /// // ... submit work to the stream ...
    /// span.end(&stream)?;
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    pub fn arg(mut self, name: impl Into<Cow<'static, str>>, value: impl fmt::Display) -> Self {
        self.labels().args.push((name.into(), value.to_string()));
        self
    }

    /// Sets the category. In the page, spans of one category have one colour; other spans have a
    /// colour for each name. Perfetto filters by category. A span has no colour by itself: a colour
    /// shows what belongs together.
    pub fn category(mut self, category: impl Into<Cow<'static, str>>) -> Self {
        self.labels().category = Some(category.into());
        self
    }

    fn labels(&mut self) -> &mut Labels {
        self.labels.get_or_insert_default()
    }

    /// Ends the span: records a second timing event in the stream.
    ///
    /// The span's time ends when the work that is in the stream now is done. Usually this is the
    /// stream in which the span began. With another stream that waits for it, the span lasts until
    /// the work of that stream is done. The span is shown in the row of the stream in which it
    /// began.
    ///
    /// Driver calls: those of [`Tracer::span`].
    ///
    /// [`Tracer`] has an example.
    ///
    /// # Errors
    ///
    /// The errors of [`Tracer::span`]. The span is then counted as dropped.
    #[inline]
    pub fn end(self, stream: &StreamRef) -> Result<()> {
        self.end_in(stream)
    }

    fn end_in(mut self, stream: &StreamRef) -> Result<()> {
        let inner = &self.inner;
        let _quiet = Quiet::new();
        let spare = self.spare.take().or_else(|| inner.shard(self.shard)?.spare.pop());
        let end = End::Own(inner.record(stream, spare)?);
        let ended = inner.host.now();
        let mut due = false;
        if let Some(mut shard) = inner.shard(self.shard) {
            due = shard.is_due(ended);
            if let Some(mut open) = shard.close(self.place) {
                open.labels = self.labels.take();
                shard.ended.push(Ended { open, ended, end });
            }
        }
        if due {
            inner.keep_anchored(ended, self.shard);
        }
        self.armed = false;
        Ok(())
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if !self.armed {
            return;
        }
        let _quiet = Quiet::new();
        self.inner.dropped.fetch_add(1, Ordering::Relaxed);
        let forgotten = self.inner.shard(self.shard).and_then(|mut shard| shard.close(self.place));
        // Given back when the shard is free again.
        drop((forgotten, self.spare.take()));
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Span").finish_non_exhaustive()
    }
}
