//! The child: it opens the parent's event. One of its streams waits for the event, another does
//! not.

use std::io::{self, BufRead, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use cuda_events::ipc::ExporterProcess;
use cuda_events::{
    Context, Device, Event, EventFlags, IpcEventDescriptor, Stream, StreamOptions, StreamRef,
};

use super::process::{FAILED, from_hex};
use crate::Opened;
use crate::gpu::{TIMEOUT, finish, run_on_host};
use crate::options::Options;
use crate::report::Failure;

/// Runs the child. Its results and its errors go to the parent.
pub(crate) fn run(options: &Options, file: &Path) -> Result<(), Failure> {
    match work(options, file) {
        Err(Failure::Usage(text) | Failure::Runtime(text)) => {
            say(&format!("{FAILED} {}", text.replace('\n', " ")))?;
            Err(Failure::OutputClosed)
        }
        done => done,
    }
}

fn work(options: &Options, file: &Path) -> Result<(), Failure> {
    let parent = listen();
    let opened = Opened::new(options.driver.as_ref())?;
    let descriptor =
        from_hex(&receive(&parent)?).ok_or_else(|| runtime("the descriptor did not arrive"))?;
    let descriptor =
        IpcEventDescriptor::from_bytes(&descriptor).map_err(cuda_events::Error::from)?;

    // By its UUID: the same device may have another number here.
    let same = |device: &Device| device.uuid().ok() == descriptor.device_uuid();
    let device = Device::all(opened.driver)?
        .find(same)
        .ok_or_else(|| runtime("the parent's device is not visible"))?;
    let context = Context::primary(device)?;
    let exporter = ExporterProcess::of(&descriptor);
    let waiting = Stream::new(&context, StreamOptions::new())?;
    let careless = Stream::new(&context, StreamOptions::new())?;
    // SAFETY: the descriptor came from the parent, which is this same program, and which keeps the
    // event until this process has ended.
    let event = unsafe { Event::from_ipc_descriptor(&context, &descriptor) }?;

    // A stream may wait for an event that is not done yet only because this process ends with the
    // parent (see `listen`). Otherwise `exporter.wait_for` comes first: nothing ends a stream's
    // wait for a process that has died.
    let queued = Instant::now();
    waiting.wait_event(&event)?;
    let behind_the_event = read_in_order(&waiting, file)?;
    let done = waiting.record_event(EventFlags::empty())?;

    let too_early = read_in_order(&careless, file)?;
    let (_, contents) = too_early
        .recv_timeout(TIMEOUT)
        .map_err(|_| runtime("the stream without a wait did not finish"))?;
    say(&format!("queued {contents}"))?;

    receive(&parent)?;
    say(if done.query()?.is_done() { "state done" } else { "state pending" })?;

    if exporter.wait_for(&event, TIMEOUT)?.is_pending() {
        return Err(runtime("the parent did not complete its work"));
    }
    finish(&done)?;
    let (at, contents) =
        behind_the_event.recv().map_err(|_| runtime("the host function was not called"))?;
    say(&format!("read {contents} after {}", at.duration_since(queued).as_nanos()))?;
    Ok(())
}

/// Reads the file in stream order, and sends the time and the contents.
fn read_in_order(stream: &StreamRef, file: &Path) -> Result<Receiver<(Instant, String)>, Failure> {
    let (send, receive) = channel();
    let file = file.to_owned();
    let read = move || {
        let at = Instant::now();
        let contents = match std::fs::read(&file) {
            Ok(bytes) => describe(&bytes),
            Err(error) => error.to_string(),
        };
        // No thread receives this if the tour has failed already.
        let _ = send.send((at, contents));
    };
    // SAFETY: the closure owns what it uses.
    unsafe { run_on_host(stream, read) }?;
    Ok(receive)
}

/// The value that all words have.
fn describe(bytes: &[u8]) -> String {
    let (words, rest) = bytes.as_chunks::<4>();
    match words {
        [] if rest.is_empty() => "nothing".to_owned(),
        [first, others @ ..] if rest.is_empty() && others.iter().all(|word| word == first) => {
            format!("{:#010x}", u32::from_le_bytes(*first))
        }
        _ => format!("{} bytes that are not one value", bytes.len()),
    }
}

fn say(line: &str) -> Result<(), Failure> {
    Ok(writeln!(io::stdout(), "{line}")?)
}

/// Reads the parent's lines. When the parent ends, this process ends, too, even if it waits.
fn listen() -> Receiver<String> {
    let (send, lines) = channel();
    std::thread::spawn(move || {
        io::stdin().lock().lines().map_while(Result::ok).for_each(|line| drop(send.send(line)));
        std::process::exit(1);
    });
    lines
}

fn receive(parent: &Receiver<String>) -> Result<String, Failure> {
    parent.recv_timeout(TIMEOUT).map_err(|_| runtime("the parent sent no line in time"))
}

fn runtime(text: &str) -> Failure {
    Failure::Runtime(text.to_owned())
}
