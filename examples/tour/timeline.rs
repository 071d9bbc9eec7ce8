//! `--trace`: a timeline of the tour, as a page for a browser.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use cuda_events::{Context, Driver, Error, StreamRef};
use cuda_events_trace::{HostRecorder, Tracer};

use crate::gpu::TIMEOUT;
use crate::report::Failure;

/// The recorder of the driver calls, and the file for the timeline.
pub(crate) struct Timeline {
    path: PathBuf,
    file: File,
    recorder: HostRecorder,
}

impl Timeline {
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
        let mut file = BufWriter::new(self.file);
        trace.write_html(&mut file)?;
        file.flush()?;
        writeln!(out, "\nThe timeline is in {}: {trace}.", self.path.display())?;
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
