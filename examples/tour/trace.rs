//! `--trace`: a trace of the tour, as a page for a browser.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use cuda_events::{Context, Driver, Error, StreamRef};
use cuda_events_trace::{HostRecorder, Tracer};

use crate::gpu::TIMEOUT;
use crate::report::Failure;

/// The spans of `order.rs`. Those of `timing.rs` before the first have the last name, too.
const ORDER: [&str; 3] = ["memset, old", "memset, new", "copy"];

/// The recorder of the driver calls, and the file for the trace.
pub(crate) struct Trace {
    path: PathBuf,
    file: File,
    recorder: HostRecorder,
}

impl Trace {
    /// Creates the file first, so an error is reported before the tour starts.
    pub(crate) fn new(path: &Path) -> Result<Self, Failure> {
        let file = File::create(path)
            .map_err(|error| Failure::Usage(format!("--trace {}: {error}", path.display())))?;
        Ok(Self { path: path.to_owned(), file, recorder: HostRecorder::new() })
    }

    pub(crate) fn observe(&self, driver: Driver) -> Result<Driver, Error> {
        self.recorder.observe(driver)
    }

    pub(crate) fn write(self, out: &mut impl Write, spans: &Spans) -> Result<(), Failure> {
        let Spans(Some(tracer)) = spans else { return Ok(()) };
        let mut trace = tracer.finish(TIMEOUT);
        tracer.context().driver().stop_observing();
        trace.add_host(self.recorder.take());
        // The page opens on the order of the streams: the whole trace takes long, and a copy some
        // microseconds.
        if let Some(old) = trace.spans.iter().find(|span| span.name == ORDER[0]) {
            let part = trace.spans.iter().filter(|span| ORDER.contains(&&*span.name));
            let end = part.filter(|span| span.start >= old.start).map(|span| span.end).max();
            let end = end.unwrap_or(old.end);
            let margin = (end - old.start) / 5;
            trace.shown_first =
                Some(old.start.checked_sub(margin).unwrap_or(old.start)..end + margin);
        }
        let mut file = BufWriter::new(self.file);
        trace.write_html(&mut file)?;
        file.flush()?;
        writeln!(out, "\nThe trace is in {}: {trace}.", self.path.display())?;
        Ok(())
    }
}

/// The spans of the tour's streams; none without `--trace`.
pub(crate) struct Spans(Option<Tracer>);

impl Spans {
    pub(crate) fn new(context: &Context, wanted: bool) -> Result<Self, Error> {
        Ok(Self(if wanted { Some(Tracer::new(context)?) } else { None }))
    }

    pub(crate) fn name(&self, stream: &StreamRef, name: &str) {
        if let Self(Some(tracer)) = self {
            tracer.name_stream(stream, name);
        }
    }

    /// Runs `work`, which submits to the stream, in a span.
    pub(crate) fn show<T, E: From<Error>>(
        &self,
        stream: &StreamRef,
        name: &'static str,
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        match self {
            Self(Some(tracer)) => tracer.time(stream, name, work),
            Self(None) => work(),
        }
    }
}
