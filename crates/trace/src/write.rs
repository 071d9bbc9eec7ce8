//! The two forms in which a trace is written.

use std::io::{self, Write};

use crate::picture::Picture;
use crate::trace::Trace;
use crate::{chrome, html};

impl Trace {
    /// Writes the trace as Chrome trace JSON, which Perfetto opens.
    ///
    /// Each stream and each thread of the host has a row. Spans of one stream that overlap without
    /// nesting take another row. A wait of a stream for an event is an arrow: from the span before
    /// the record to the span after the wait. Without such spans the arrow connects the two driver
    /// calls. Another arrow goes from the host's span or call to the span that it began.
    ///
    /// ```
    /// use cuda_events::{Context, Device, Stream, StreamOptions};
    /// use cuda_events_trace::Tracer;
    /// use std::time::Duration;
    ///
    /// # let soft = cuda_soft_driver::SoftDriver::new();
    /// # let driver = soft.driver();
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let stream = Stream::new(&context, StreamOptions::new())?;
    /// let tracer = Tracer::new(&context)?;
    /// tracer.span(&stream, "work")?.end(&stream)?;
    ///
    /// let trace = tracer.finish(Duration::from_secs(10));
    /// // Any writer works, such as a file.
    /// let mut json = Vec::new();
    /// trace.write_chrome(&mut json)?;
    /// assert!(String::from_utf8(json)?.contains("\"name\":\"work\""));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of the writer.
    pub fn write_chrome(&self, out: &mut impl Write) -> io::Result<()> {
        chrome::write(&Picture::of(self), out)
    }

    /// Writes the trace as one HTML file, which a browser shows without a network.
    ///
    /// It has the rows and arrows of [`write_chrome`](Self::write_chrome). At first it shows the
    /// range [`shown_first`](Self::shown_first).
    ///
    /// * The wheel and the keys `w` and `s` zoom. A drag, `a`, `d` and the arrow keys move. `0`
    ///   shows all.
    /// * A click on a span shows its details as text. A button goes from a span of the GPU to the
    ///   host's span that began it, or back.
    /// * `/` goes to the search, which finds spans and markers by name, and spans by argument.
    ///   Enter goes to the next, and Enter with the shift key to the one before.
    /// * A drag with the shift key measures a range. It shows the busy share of each stream and
    ///   thread, and the count, total, mean and p99 of each name. `z` zooms to the range.
    /// * A click on the name of a stream or thread shows these numbers for it alone. The border of
    ///   the names can be dragged.
    ///
    /// Escape closes what is shown. All times of a view have one unit.
    ///
    /// # Errors
    ///
    /// Those of the writer.
    pub fn write_html(&self, out: &mut impl Write) -> io::Result<()> {
        html::write(&Picture::of(self), out)
    }
}
