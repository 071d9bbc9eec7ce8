//! Processes that are killed at each of their calls, exporters and importers: what the one that
//! survives sees, and what is left when it has ended.
//!
//! A test starts a victim, which goes through all that its side does and is killed at its first
//! driver call; then one that is killed at its second; and so on, until one comes to its end. It is
//! killed by the software driver, by the fault `kill` that the environment names. On a real driver
//! an observer does it, after the call.

use crate::common;

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use common::child::{Child, end_after, from_hex, hear, role, say, starts_are_made_up, to_hex};
use common::futures::{block_on, wait_until};
use common::handover::Handover;
use common::timelines::{PATIENCE, WAIT, WRITE, idle, reached};
use common::{Door, Gpu, Latch, load, needs, soft_settings};
use cuda_events::ext::IpcLease;
use cuda_events::ipc::{ExporterProcess, ExporterState};
use cuda_events::{
    Context, Device, Driver, Error, Event, EventFlags, IpcEventDescriptor, LoadOptions, Progress,
    Result, Stream, StreamOptions,
};
use cuda_timelines::{
    CudaStreamExt, ImportedTimeline, Point, Timeline, TimelineDescriptor, TimelineFile,
    TimelineMemory,
};

/// Which side of what the victim is, and at which of its calls it is killed.
const PART: &str = "CUDA_EVENTS_TEST_VICTIM";

/// The thread that is killed, and with it the process.
const VICTIM: &str = "victim";

/// Not a test: the process that is killed. Its role says how files come to it.
#[test]
#[ignore = "the other process, which the tests start: cargo test --test ipc"]
fn victim() {
    let role = role().expect("this is no test of its own");
    let part = std::env::var(PART).expect("a victim has a part");
    let words: Vec<&str> = part.split(' ').collect();
    let [side, kind, nth] = words[..] else { panic!("{part:?} is no part") };
    let nth = nth.parse().expect("a number");
    let handover = Handover::of_role(&role);
    end_after(150);
    let (driver, _soft) = load(&LoadOptions::new());
    let driver = if Door::chosen() == Door::Native { mortal(driver, nth) } else { driver };
    let work = || match (side, kind) {
        ("exporter", "events") => exporter_of_events(driver),
        ("importer", "events") => importer_of_events(driver),
        ("exporter", _) => exporter_of_timelines(driver, kind, &handover),
        ("importer", _) => importer_of_timelines(driver, kind, &handover),
        _ => panic!("{part:?} is no part"),
    };
    std::thread::scope(|scope| {
        let named = std::thread::Builder::new().name(VICTIM.to_owned());
        let thread = named.spawn_scoped(scope, work).expect("a thread");
        thread.join().expect("no panic").expect("no call fails");
    });
    say("end");
}

/// The driver with an observer that kills the process after that call of the victim's thread.
fn mortal(driver: Driver, nth: u64) -> Driver {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let observed = driver.observe(move |_| {
        let is_victim = std::thread::current().name() == Some(VICTIM);
        if is_victim && CALLS.fetch_add(1, Ordering::Relaxed) + 1 == nth {
            kill_this_process();
        }
    });
    observed.expect("the first observer of this process")
}

fn kill_this_process() {
    unsafe extern "C" {
        fn kill(process: i32, signal: i32) -> i32;
    }
    // SAFETY: it is this process.
    unsafe { kill(std::process::id() as i32, 9) };
}

/// In the victim: says where it is, and hears what comes next.
fn told(line: &str) -> String {
    say(line);
    hear()
}

fn stream_of(driver: Driver) -> Result<(Context, Stream)> {
    let context = Context::primary(Device::new(driver, 0)?)?;
    let stream = Stream::new(&context, StreamOptions::new())?;
    Ok((context, stream))
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

fn exporter_of_timelines(driver: Driver, kind: &str, handover: &Handover) -> Result<()> {
    let (context, stream) = stream_of(driver)?;
    let (mut file, mut memory) = (None, None);
    let timeline = match kind {
        "handle" => {
            let memory = memory.insert(TimelineMemory::new(&context)?);
            Timeline::in_memory(stream, memory)?
        }
        _ => {
            let made = match kind {
                "writable" => TimelineFile::writable(&context)?,
                _ => TimelineFile::new(&context)?,
            };
            let timeline = Timeline::shared(stream, &made)?;
            handover.give(&made);
            file = Some(made);
            timeline
        }
    };
    told(&format!("made {}", name(&timeline)));
    let point = timeline.signal()?;
    point.wait()?;
    told(&format!("reached {}", point.value()));
    let latch = Latch::hold(timeline.stream());
    told(&format!("pending {}", timeline.signal()?.value()));
    latch.release();
    timeline.stream().synchronize()?;
    told("done");
    timeline.signal()?;
    drop(timeline);
    drop((file, memory));
    Ok(())
}

/// What another process opens a timeline by.
fn name(timeline: &Timeline) -> String {
    to_hex(&timeline.descriptor().expect("it is shared").to_bytes())
}

fn importer_of_timelines(driver: Driver, kind: &str, handover: &Handover) -> Result<()> {
    let (context, stream) = stream_of(driver)?;
    let reply = told("ready");
    let (name, first) = reply.split_once(' ').expect("a name and a value");
    let import = open(&context, kind, name, handover)?;
    import.point(first.parse().expect("a value"))?.wait()?;
    let value = told("opened").parse().expect("a value");
    let pending = import.point(value)?;
    assert_eq!(pending.query(), Ok(Progress::Pending));
    stream.wait_point(pending)?;
    told("waiting");
    stream.synchronize()?;
    block_on(async { pending.await })?;
    drop(import);
    stream.close()
}

fn open(
    context: &Context,
    kind: &str,
    name: &str,
    handover: &Handover,
) -> Result<ImportedTimeline> {
    let descriptor = TimelineDescriptor::from_bytes(&from_hex(name))?;
    if kind == "handle" {
        // SAFETY: the other process keeps the memory, or is killed.
        return unsafe { ImportedTimeline::open_memory(context, &descriptor) };
    }
    ImportedTimeline::open(context, handover.take(), &descriptor)
}

/// In a test: the process that is killed.
struct Victim {
    child: Child,
    handover: Handover,
}

impl Victim {
    fn start(side: &str, kind: &str, nth: u64) -> Self {
        let (child, handover) = Handover::start("victim", |command| {
            command.env(PART, format!("{side} {kind} {nth}"));
            if Door::chosen() != Door::Native {
                let fault = format!("fault=*:thread={VICTIM}:nth={nth}:kill");
                command.env("CUDA_SOFT_DRIVER", soft_settings(&fault));
            }
        });
        Self { child, handover }
    }

    /// What it says next, as a word and the rest; none when it was killed.
    #[track_caller]
    fn next(&mut self) -> Option<(String, String)> {
        match self.child.receive_or_end() {
            Ok(line) => {
                let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
                Some((word.to_owned(), rest.to_owned()))
            }
            Err(status) => {
                assert_eq!(status.signal(), Some(9), "it failed: {}", self.child.said());
                None
            }
        }
    }
}

/// What became of a run.
struct Outcome {
    /// Whether the victim came to its end.
    ended: bool,
    /// Whether the survivor had opened what the victim made.
    opened: bool,
}

/// The survivor can do all that it could before.
fn works(gpu: &Gpu) {
    let (stream, other) = (gpu.stream(), gpu.stream());
    let event = Event::new(&gpu.context, EventFlags::INTERPROCESS).expect("an event");
    event.record(&stream).expect("a record");
    other.wait_event(&event).expect("a wait");
    idle(&other);
    assert_eq!(event.query(), Ok(Progress::Done));
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
    while let Some((word, rest)) = victim.next() {
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
    while let Some((word, _)) = victim.next() {
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

fn an_exporter_of_timelines(gpu: &Gpu, victim: &mut Victim, kind: &str) -> Outcome {
    let (stream, never_done) = (gpu.stream(), gpu.stream());
    let (mut import, mut reached_one, mut pending, mut never) = (None, None, None, None);
    let mut ended = false;
    while let Some((word, rest)) = victim.next() {
        let point = || -> Point {
            let import: &ImportedTimeline = import.as_ref().expect("it was made first");
            import.point(rest.parse().expect("a value")).expect("a point")
        };
        match word.as_str() {
            "made" => {
                let made = open(&gpu.context, kind, &rest, &victim.handover);
                import = Some(made.expect("it opens"));
            }
            "reached" => {
                let point = point();
                reached(point);
                reached_one = Some(point);
            }
            "pending" => {
                let point = point();
                assert_eq!(point.query(), Ok(Progress::Pending));
                stream.wait_point(point).expect("a wait");
                pending = Some(point);
            }
            "done" => reached(pending.expect("it was pending first")),
            _ => {
                ended = true;
                break;
            }
        }
        // A point of a handle is reached no sooner than those that were asked for before.
        if word == if kind == "handle" { "done" } else { "made" } {
            let import = import.as_ref().expect("it was made first");
            let point = import.point(1 << 40).expect("a point");
            never_done.wait_point(point).expect("a wait");
            never = Some(point);
        }
        victim.child.send("go");
    }
    let over = |result: &Result<Progress>| {
        matches!(result, Err(Error::ExporterGone)) || matches!(result, Err(Error::Poisoned))
    };
    if let Some(never) = never {
        let result = never.wait_timeout(PATIENCE);
        assert!(over(&result), "{result:?}");
        let result = never.query();
        assert!(over(&result), "{result:?}");
    }
    if let Some(pending) = pending {
        let result = pending.wait_timeout(PATIENCE);
        assert!(result == Ok(Progress::Done) || over(&result), "{result:?}");
        let again = gpu.stream().wait_point(pending).map(|()| Progress::Done);
        assert!(again == Ok(Progress::Done) || over(&again), "{again:?}");
        assert!(again.is_ok() || result.is_err(), "what was reached stays reached: {again:?}");
    }
    if let Some(point) = reached_one {
        assert_eq!(point.query(), Ok(Progress::Done));
    }
    idle(&stream);
    idle(&never_done);
    Outcome { ended, opened: import.is_some() }
}

fn an_importer_of_timelines(gpu: &Gpu, victim: &mut Victim, kind: &str) -> Outcome {
    let (mut file, mut memory) = (None, None);
    let timeline = match kind {
        "handle" => {
            let memory = memory.insert(TimelineMemory::new(&gpu.context).expect("memory"));
            Timeline::in_memory(gpu.stream(), memory)
        }
        "writable" => {
            let file = file.insert(TimelineFile::writable(&gpu.context).expect("a file"));
            Timeline::shared(gpu.stream(), file)
        }
        _ => {
            let file = file.insert(TimelineFile::new(&gpu.context).expect("a file"));
            Timeline::shared(gpu.stream(), file)
        }
    };
    let timeline = timeline.expect("a timeline");
    let other = gpu.stream();
    let first = timeline.signal().expect("a signal");
    reached(first);
    let (mut latch, mut ended) = (None, false);
    while let Some((word, _)) = victim.next() {
        let mut reply = "go".to_owned();
        match word.as_str() {
            "ready" => {
                if let Some(file) = &file {
                    victim.handover.give_to(&mut victim.child, file);
                }
                reply = format!("{} {}", name(&timeline), first.value());
            }
            "opened" => {
                latch = Some(Latch::hold(timeline.stream()));
                reply = timeline.signal().expect("a signal").value().to_string();
            }
            "waiting" => latch.take().expect("a latch").release(),
            _ => {
                ended = true;
                break;
            }
        }
        victim.child.send(&reply);
    }
    drop(latch);
    let point = timeline.signal().expect("a signal");
    other.wait_point(point).expect("a wait");
    idle(&other);
    reached(point);
    assert_eq!(timeline.completed(), point.value());
    Outcome { ended, opened: false }
}

/// What a process has left in shared memory.
fn left_by(process: u32) -> Vec<PathBuf> {
    let prefix = format!("cuda-soft-driver.{process}.");
    let files = std::fs::read_dir("/dev/shm").expect("it can be listed").flatten();
    let ours = files.filter(|file| file.file_name().to_string_lossy().starts_with(&prefix));
    ours.map(|file| file.path()).collect()
}

/// Nothing is left of the victim once the survivor has ended.
fn nothing_is_left(victim: u32, opened: bool) {
    if opened && Door::chosen() == Door::Soft {
        // The crate's thread may have the last share of what was open, for one more pass.
        return wait_until("the survivor lets go of it", || left_by(victim).is_empty());
    }
    let left = left_by(victim);
    // Whoever comes next finds it, a minute later.
    for file in &left {
        let file = std::fs::File::options().append(true).open(file).expect("it is ours");
        file.set_modified(SystemTime::now() - Duration::from_secs(3600)).expect("it is ours");
    }
    let gpu = Gpu::new();
    drop(Event::new(&gpu.context, EventFlags::INTERPROCESS).expect("an event"));
    if Door::chosen() == Door::Shared {
        // Its one context has its file already, and looks when it opens one. Another of its
        // contexts makes a file, and looks too.
        let other = common::Other::new(&gpu);
        drop(Event::new(&other, EventFlags::INTERPROCESS).expect("an event"));
    }
    assert_eq!(left_by(victim), [] as [PathBuf; 0], "it was old, and nobody's");
}

/// Kills a victim at each of its calls, and gives how many those are.
fn at_every_call(
    side: &str,
    kind: &str,
    survive: fn(&Gpu, &mut Victim, &str) -> Outcome,
) -> Option<u64> {
    for nth in 1.. {
        let gpu = Gpu::new();
        if kind != "events" && !(needs(gpu.driver, WRITE) && needs(gpu.driver, WAIT)) {
            return None;
        }
        let looks_for_its_end = kind == "handle" || (side, kind) == ("exporter", "events");
        if looks_for_its_end && starts_are_made_up() {
            return None;
        }
        let mut victim = Victim::start(side, kind, nth);
        let outcome = survive(&gpu, &mut victim, kind);
        works(&gpu);
        let process = victim.child.id();
        if outcome.ended {
            victim.child.finish();
        }
        drop(gpu);
        if Door::chosen() != Door::Native {
            nothing_is_left(process, outcome.opened && !outcome.ended);
        }
        if outcome.ended {
            return Some(nth - 1);
        }
    }
    unreachable!("there is an end of numbers")
}

/// How many calls were fatal, which a scenario that shrinks would not notice.
#[track_caller]
fn at_least(least: u64, side: &str, kind: &str, calls: Option<u64>) {
    let Some(calls) = calls else { return };
    println!("{calls:4} calls of an {side} of {kind}, at each of which it was killed");
    assert!(calls >= least, "{calls} calls of an {side} of {kind}, and {least} are expected");
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

/// One byte of the victim's word is written when it has ended, without an order to copies of the
/// word that are over: whatever they get is only compared. The order checker would report that.
#[test]
fn an_exporter_of_timelines_is_killed() {
    common::own_process!("order=off");
    for (kind, least) in [("writable", 20), ("sealed", 20), ("handle", 45)] {
        let calls = at_every_call("exporter", kind, an_exporter_of_timelines);
        at_least(least, "exporter", kind, calls);
    }
}

#[test]
fn an_importer_of_timelines_is_killed() {
    for (kind, least) in [("writable", 24), ("sealed", 24), ("handle", 55)] {
        let calls = at_every_call("importer", kind, an_importer_of_timelines);
        at_least(least, "importer", kind, calls);
    }
}
