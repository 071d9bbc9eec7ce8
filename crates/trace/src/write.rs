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
    /// calls. A span of a stream also has an arrow from the call that began it.
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
    /// The errors of the writer.
    pub fn write_chrome(&self, out: &mut impl Write) -> io::Result<()> {
        chrome::write(&Picture::of(self), out)
    }

    /// Writes the trace as one HTML file, which a browser shows without a network.
    ///
    /// It has the rows and arrows of [`write_chrome`](Self::write_chrome). At first it shows the
    /// range [`shown_first`](Self::shown_first).
    ///
    /// * To zoom, turn the wheel, or press the key `w` or `s`. To move, drag, or press `a`, `d` or
    ///   an arrow key. The key `0` shows the whole trace. The keys zoom around the middle of the
    ///   selected span or marker if that is in view.
    /// * Click a span to see its details as text. A button goes from a span of the GPU to the
    ///   host's span that began it, or back.
    /// * Press `/` to search for spans and markers by name, and for spans by argument. Enter goes
    ///   to the next match, and Enter with the shift key to the previous match.
    /// * Drag with the shift key to measure a range. The page then shows how busy each stream is,
    ///   and each thread that is not idle, and the count, total, mean and p99 of each name. Of a
    ///   span that is not wholly in the range, the part in it counts. The key `z` zooms to the
    ///   range.
    /// * Click the name of a stream or thread to see these numbers for it alone. Drag the border of
    ///   the names to make them wider.
    ///
    /// The key Escape ends the search, and closes the details and the range. All times on the
    /// screen have one unit.
    ///
    /// # Errors
    ///
    /// The errors of the writer.
    pub fn write_html(&self, out: &mut impl Write) -> io::Result<()> {
        html::write(&Picture::of(self), out)
    }
}
