//! Processes that are killed at each of their calls, exporters and importers of events: see
//! `tests/common/victims.rs`.

use crate::common;

use std::time::Duration;

use common::timelines::{PATIENCE, idle};
use common::victims::{Outcome, Victim, at_every_call, at_least, be_a_victim, stream_of, told};
use common::{Door, Gpu, Latch};
use cuda_events::ext::IpcLease;
use cuda_events::ipc::{ExporterProcess, ExporterState};
use cuda_events::{Driver, Error, Event, EventFlags, IpcEventDescriptor, Progress, Result, Stream};

/// Not a test: the process that is killed.
#[test]
#[ignore = "the other process, which the tests start: cargo test --test ipc"]
fn victim() {
    be_a_victim(|side, _kind, driver, _handover| match side {
        "exporter" => exporter_of_events(driver),
        "importer" => importer_of_events(driver),
        _ => panic!("{side:?} is no side"),
    });
}

fn exporter_of_events(driver: Driver) -> Result<()> {
    let (context, stream) = stream_of(driver)?;
    let event = Event::new(&context, EventFlags::INTERPROCESS)?;
    event.record(&stream)?;
    event.synchronize()?;
    told(&format!("made {}", event.ipc_descriptor()?));
    let latch = Latch::hold(&stream);
    event.record(&stream)?;
    told("pending");
    latch.release();
    event.synchronize()?;
    told("done");
    event.record(&stream)?;
    stream.synchronize()?;
    // What an importer does with an event after its exporter has destroyed it is undefined.
    told("closing");
    event.close()?;
    stream.close()
}

fn importer_of_events(driver: Driver) -> Result<()> {
    let (context, stream) = stream_of(driver)?;
    let descriptor = told("ready").parse()?;
    // SAFETY: the parent keeps the event.
    let event = unsafe { Event::from_ipc_descriptor(&context, &descriptor) }?;
    assert_eq!(event.query(), Ok(Progress::Done));
    told("opened");
    assert_eq!(event.query(), Ok(Progress::Pending));
    stream.wait_event(&event)?;
    assert_eq!(stream.query(), Ok(Progress::Pending));
    told("waiting");
    event.synchronize()?;
    stream.synchronize()?;
    if Door::chosen() != Door::Native {
        // A record that a killed importer leaves unfinished is the event's forever. Here it is
        // finished by the call that makes it.
        event.record(&stream)?;
        event.synchronize()?;
    }
    event.close()?;
    stream.close()
}

/// What the survivor has of the exporter's event.
struct Imported {
    event: Event,
    exporter: ExporterProcess,
    descriptor: IpcEventDescriptor,
}

impl Imported {
    /// Uses it, as far as it can be used now, and closes it. `last` is what the exporter said last.
    fn finish(self, gpu: &Gpu, stream: &Stream, last: &str, is_killed: bool) {
        let Self { event, exporter, descriptor } = self;
        // Nothing happens in the exporter now, so that no wait lasts, and no look differs from
        // another.
        let done = match exporter.wait_for(&event, PATIENCE) {
            Err(Error::ExporterGone) => Progress::Pending,
            waited => waited.expect("a look"),
        };
        let state = if is_killed { ExporterState::Ended } else { ExporterState::Running };
        assert_eq!(exporter.state(), state);
        let may_be_pending = last == "pending" || (is_killed && Door::chosen() == Door::Native);
        assert!(done.is_done() || may_be_pending, "{last}");
        assert_eq!(event.query(), Ok(done));
        assert_eq!(event.synchronize_timeout(Duration::ZERO), Ok(done));
        if done.is_done() {
            stream.wait_event(&event).expect("a wait");
        }
        if is_killed {
            // As the vendor's driver does: the file is still there.
            // SAFETY: nobody can destroy the event any more.
            let again = unsafe { Event::from_ipc_descriptor(&gpu.context, &descriptor) };
            assert_eq!(again.expect("it opens").query(), Ok(done));
        }
        event.close().expect("it can be closed");
    }
}

fn an_exporter_of_events(gpu: &Gpu, victim: &mut Victim, _kind: &str) -> Outcome {
    let stream = gpu.stream();
    let mut import: Option<Imported> = None;
    let (mut last, mut ended) = (String::new(), false);
    while let Some((word, rest)) = victim.next_line() {
        match (word.as_str(), &import) {
            ("made", None) => {
                let descriptor: IpcEventDescriptor = rest.parse().expect("a descriptor");
                let exporter = ExporterProcess::of(&descriptor);
                // SAFETY: the exporter keeps it until it is closed here, or is killed.
                let event = unsafe { Event::from_ipc_descriptor(&gpu.context, &descriptor) };
                let event = event.expect("it opens");
                assert_eq!(event.query(), Ok(Progress::Done));
                import = Some(Imported { event, exporter, descriptor });
            }
            ("pending", Some(Imported { event, exporter, .. })) => {
                assert_eq!(exporter.wait_for(event, Duration::ZERO), Ok(Progress::Pending));
            }
            ("done", Some(Imported { event, exporter, .. })) => {
                assert_eq!(exporter.wait_for(event, PATIENCE), Ok(Progress::Done));
                stream.wait_event(event).expect("a wait");
            }
            ("closing", Some(_)) => {
                let import = import.take().expect("it was made first");
                import.finish(gpu, &stream, &word, false);
                // A wait that is not done would use the event that is destroyed next.
                idle(&stream);
            }
            ("end", None) => {
                ended = true;
                break;
            }
            _ => panic!("{word} after {last}"),
        }
        last = word;
        victim.child.send("go");
    }
    let opened = import.is_some();
    if let Some(import) = import {
        import.finish(gpu, &stream, &last, true);
    }
    idle(&stream);
    Outcome { ended, opened }
}

fn an_importer_of_events(gpu: &Gpu, victim: &mut Victim, _kind: &str) -> Outcome {
    let (stream, other) = (gpu.stream(), gpu.stream());
    let event = Event::new(&gpu.context, EventFlags::INTERPROCESS).expect("an event");
    event.record(&stream).and_then(|()| event.synchronize()).expect("a record");
    let lease = IpcLease::new(event.into()).expect("a lease");
    let (mut latch, mut ended) = (None, false);
    while let Some((word, _)) = victim.next_line() {
        let mut reply = "go".to_owned();
        match word.as_str() {
            "ready" => reply = lease.descriptor().to_string(),
            "opened" => {
                latch = Some(Latch::hold(&stream));
                lease.event().record(&stream).expect("a record");
            }
            "waiting" => latch.take().expect("a latch").release(),
            _ => {
                ended = true;
                break;
            }
        }
        victim.child.send(&reply);
    }
    // Its wait was the importer's alone.
    drop(latch);
    let done = lease.event().synchronize_timeout(PATIENCE);
    assert_eq!(done, Ok(Progress::Done));
    lease.event().record(&stream).expect("a record");
    other.wait_event(lease.event()).expect("a wait");
    idle(&other);
    drop(lease);
    idle(&stream);
    Outcome { ended, opened: false }
}

#[test]
fn an_exporter_of_events_is_killed() {
    let calls = at_every_call("exporter", "events", an_exporter_of_events);
    at_least(24, "exporter", "events", calls);
}

#[test]
fn an_importer_of_events_is_killed() {
    let calls = at_every_call("importer", "events", an_importer_of_events);
    at_least(20, "importer", "events", calls);
}
