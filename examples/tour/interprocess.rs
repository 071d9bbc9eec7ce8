//! Part 4: an event that two processes share.
//!
//! The parent holds its stream, queues work after the hold, and records an interprocess event after
//! the work. The child opens the event from its descriptor and lets a stream wait for it. Only then
//! does the parent release its stream.
//!
//! Two facts prove that the child's stream waited. Data: the parent's work ends by writing a file,
//! which the child's stream reads; a stream of the child that does not wait finds it empty. Time:
//! after the parent has read that the child's work is queued, it holds its stream for some time;
//! the child's stream waited at least as long. Each process reads its own clock only.

pub(crate) mod child;
mod process;

use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use cuda_events::{Context, Event, EventFlags, Stream, StreamOptions};

use crate::gpu::{Latch, finish, run_on_host};
use crate::memory::{DeviceBuffer, HostBuffer};
use crate::options::Choice;
use crate::report::{Failure, Table};
use crate::trace::Spans;
use process::{Child, to_hex};

/// How long the parent holds its stream after the child has queued its work.
const HOLD: Duration = Duration::from_millis(50);
const BYTES: usize = 4096;

pub(crate) fn show(
    out: &mut impl Write,
    table: &mut Table,
    context: &Context,
    spans: &Spans,
    driver: &Choice,
) -> Result<(), Failure> {
    writeln!(
        out,
        "\n4. Interprocess: a stream of another process waits for an event of this process"
    )?;
    // A value that the child cannot know.
    let value = RandomState::new().build_hasher().finish() as u32;
    let shared = Shared::create()?;
    let mut written = Ok(());

    let buffer = DeviceBuffer::new(context, BYTES)?;
    let on_host = HostBuffer::new(context, BYTES)?;
    let stream = Stream::new(context, StreamOptions::new())?;
    let event = Event::new(context, EventFlags::INTERPROCESS)?;
    // Values that are declared before these two are dropped after them: the event stays until the
    // child has ended, and the buffers until the stream is no longer held.
    let mut child = Child::start(driver, &shared.path)?;
    let latch = Latch::hold(&stream)?;

    spans.name(&stream, "4. exporter");
    spans.show(&stream, "memset and copy", || {
        buffer.fill(value, &stream)?;
        buffer.download(&on_host, &stream)
    })?;
    let write = || {
        // SAFETY: this runs in the order of the stream, after the only copy that writes there.
        let words = unsafe { on_host.words() };
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        written = (&shared.file).write_all(&bytes);
    };
    // SAFETY: the values that it borrows are dropped after the buffers, whose drop waits for the
    // stream.
    unsafe { run_on_host(&stream, write) }?;
    event.record(&stream)?;

    let descriptor = event.ipc_descriptor()?.to_bytes();
    child.send(&to_hex(&descriptor))?;
    let careless = child.receive("queued")?;
    let heard = Instant::now();
    writeln!(
        out,
        "   This process holds its stream. Process {} opened the event from {} bytes.",
        child.id(),
        descriptor.len()
    )?;
    writeln!(
        out,
        "   In that process, a stream that does not wait for the event read {careless}."
    )?;

    std::thread::sleep(HOLD);
    child.send("query")?;
    let state = child.receive("state")?;
    writeln!(out, "   A stream that waits for the event is {state}.")?;
    let held = heard.elapsed();
    latch.release();
    let answer = child.receive("read")?;
    let after = heard.elapsed() - held;
    finish(&event)?;
    written.map_err(|error| {
        Failure::Runtime(format!("writing {} failed: {error}", shared.path.display()))
    })?;
    child.finish()?;

    let Some((read, waited)) =
        answer.split_once(" after ").and_then(|(read, nanos)| Some((read, nanos.parse().ok()?)))
    else {
        return Err(Failure::Runtime(format!("the child process sent {answer:?}")));
    };
    let waited = Duration::from_nanos(waited);
    writeln!(
        out,
        "   This process released its stream {} later. The stream that waits was done after {}: it \
         read {read}.\n   The child process reported that {} after the release.",
        ms(held),
        ms(waited),
        ms(after)
    )?;
    let wrote = format!("{value:#010x}");
    if careless != "nothing" || state != "pending" || read != wrote || waited < held {
        return Err(Failure::Runtime(format!(
            "the child's stream did not wait for this process, which wrote {wrote}"
        )));
    }
    table.row("parent's stream, held", &ms(held), "", &format!("{wrote}, written when released"));
    table.row("child's stream that does not wait", "", "", careless.as_str());
    table.row(
        "child's stream after the event",
        &ms(waited),
        "",
        &format!("{read}, read when done"),
    );
    Ok(())
}

fn ms(duration: Duration) -> String {
    format!("{:.3} ms", duration.as_secs_f64() * 1e3)
}

/// The file that the parent's work writes and the child's work reads. It takes the place of device
/// memory that two processes would really share (`cuIpcGetMemHandle`, which is not in this crate).
struct Shared {
    path: PathBuf,
    file: File,
}

impl Shared {
    fn create() -> Result<Self, Failure> {
        let path = std::env::temp_dir().join(format!("cuda-events-tour-{}", std::process::id()));
        // A new file, so no other process can have put a link to another file there.
        let create = || File::create_new(&path);
        let file = create().or_else(|error| match error.kind() {
            // Left by a process of the same number that was killed.
            io::ErrorKind::AlreadyExists => fs::remove_file(&path).and_then(|()| create()),
            _ => Err(error),
        });
        match file {
            Ok(file) => Ok(Self { path, file }),
            Err(error) => {
                Err(Failure::Runtime(format!("creating {} failed: {error}", path.display())))
            }
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // A file that is left does no harm.
        let _ = fs::remove_file(&self.path);
    }
}
