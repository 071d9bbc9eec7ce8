//! Processes beside this one, which share events and timelines with it and are killed.

use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;

use cuda_events::ipc::{ExporterProcess, ExporterState};
use cuda_events::{
    Context, Device, Driver, Event, EventFlags, IpcEventDescriptor, Progress, Stream, StreamOptions,
};
use cuda_soft_driver::SoftDriver;
use cuda_timelines::{
    CudaStreamExt, Error, ImportedTimeline, Point, Result, Timeline, TimelineDescriptor,
    TimelineFile,
};

use crate::cost::Clock;
use crate::worker::{PATIENCE, block_on};
use crate::{Generation, Random, TestDriver, Totals};

/// The child: `child exporter|importer soft|native seed`.
pub fn main(words: &[String]) {
    let [role, chosen, seed] = words else { panic!("{words:?} is no role") };
    let soft = (chosen == "soft").then(SoftDriver::new);
    let driver = match &soft {
        Some(soft) => soft.driver(),
        None => Driver::load().expect("the driver of the parent"),
    };
    let context = Device::new(driver, 0).and_then(Context::primary).expect("a context");
    let random = Random::new(seed.parse().expect("a seed"));
    let result = match role.as_str() {
        "exporter" => export(&context, random),
        _ => import(&context),
    };
    // The parent may have gone.
    if let Err(error) = result {
        eprintln!("churn: a child: {error}");
        std::process::exit(1);
    }
}

fn say(line: &str) {
    println!("{line}");
    if std::io::stdout().flush().is_err() {
        std::process::exit(0);
    }
}

fn hear() -> Option<String> {
    let mut line = String::new();
    let read = std::io::stdin().read_line(&mut line).unwrap_or(0);
    (read != 0).then(|| line.trim_end().to_owned())
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("digits");
    (0..text.len()).step_by(2).map(digits).collect()
}

/// The file of another process, opened anew.
fn file_of(process: &str, number: &str) -> std::io::Result<OwnedFd> {
    let path = format!("/proc/{process}/fd/{number}");
    std::fs::File::options().read(true).write(true).open(path).map(Into::into)
}

/// What another process needs.
fn offer(event: &Event, timeline: &Timeline, file: &TimelineFile) -> Result<String> {
    let descriptor = timeline.descriptor().expect("it is shared");
    Ok(format!(
        "{} {} {} {}",
        event.ipc_descriptor()?,
        std::process::id(),
        file.as_fd().as_raw_fd(),
        to_hex(&descriptor.to_bytes())
    ))
}

/// How many children of exporters there are for each whose timeline is imported.
const EVENTS_ALONE: u64 = 8;

fn file(context: &Context, random: &mut Random) -> Result<TimelineFile> {
    if random.one_in(2) { TimelineFile::writable(context) } else { TimelineFile::new(context) }
}

/// In the child: signals and records whenever it is told to, until it is killed or told to end.
fn export(context: &Context, mut random: Random) -> Result<()> {
    let stream = Stream::new(context, StreamOptions::new())?;
    let event = Event::new(context, EventFlags::INTERPROCESS)?;
    let file = file(context, &mut random)?;
    let timeline = Timeline::shared(stream, &file)?;
    event.record(timeline.stream())?;
    event.synchronize()?;
    say(&offer(&event, &timeline, &file)?);
    while hear().is_some_and(|line| line == "next") {
        let slow = Duration::from_micros(random.number() % 500);
        timeline.stream().launch_host_function(move || std::thread::sleep(slow))?;
        event.record(timeline.stream())?;
        say(&timeline.signal()?.value().to_string());
    }
    Ok(())
}

/// In the child: waits for what it is told, in each way.
fn import(context: &Context) -> Result<()> {
    let stream = Stream::new(context, StreamOptions::new())?;
    let Some(line) = hear() else { return Ok(()) };
    let (event, exporter) = opened_event(context, &line)?;
    let timeline = opened_timeline(context, &line)?;
    say("opened");
    while let Some(line) = hear() {
        let point = timeline.point(line.parse().expect("a value"))?;
        stream.wait_point(point)?;
        stream.synchronize()?;
        assert!(point.is_done());
        // The exporter may have recorded it again.
        let _ = exporter.wait_for(&event, PATIENCE)?;
        say("done");
    }
    Ok(())
}

fn opened_event(context: &Context, line: &str) -> Result<(Event, ExporterProcess)> {
    let descriptor = line.split(' ').next().expect("a word");
    let descriptor: IpcEventDescriptor = descriptor.parse()?;
    let exporter = ExporterProcess::of(&descriptor);
    // SAFETY: the exporter keeps the event until it ends.
    let event = unsafe { Event::from_ipc_descriptor(context, &descriptor) }?;
    Ok((event, exporter))
}

fn opened_timeline(context: &Context, line: &str) -> Result<ImportedTimeline> {
    let words: Vec<&str> = line.split(' ').collect();
    let [_, process, number, name] = words[..] else { panic!("{line:?}") };
    let file = file_of(process, number).expect("the exporter lives");
    let name = TimelineDescriptor::from_bytes(&from_hex(name))?;
    ImportedTimeline::open(context, file, &name)
}

/// A child process, which is killed at the end.
struct Beside {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Beside {
    fn start(role: &str, chosen: TestDriver, seed: u64) -> Self {
        let program = std::env::current_exe().expect("this program has a path");
        let mut process = Command::new(program)
            .args(["child", role, chosen.name(), &seed.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program starts again");
        let input = process.stdin.take().expect("a pipe");
        let output = BufReader::new(process.stdout.take().expect("a pipe"));
        Self { process, input, output }
    }

    fn send(&mut self, line: &str) {
        writeln!(self.input, "{line}").expect("the child reads");
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        let read = self.output.read_line(&mut line).expect("the child writes");
        assert_ne!(read, 0, "a child has ended before it was told to");
        line.trim_end().to_owned()
    }

    fn kill(&mut self) {
        self.process.kill().expect("it can be killed");
        self.process.wait().expect("it has ended");
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Looks after one child after the other, until the generation ends.
pub fn look_after(generation: &Generation, number: usize, clock: &Clock, totals: &Totals) {
    let mut random = Random::new(generation.seed ^ (number as u64) << 32);
    // For some dozens of importers.
    let mut shared = None;
    while !generation.ends() {
        let result = if number.is_multiple_of(2) {
            outlive_an_exporter(generation, &mut random, clock, totals)
        } else {
            outlive_an_importer(generation, &mut random, &mut shared, clock, totals)
        };
        match result {
            Ok(()) => {}
            Err(error) if generation.expects(error.code()) => {
                totals.refused.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => panic!("beside a child: {error}"),
        }
    }
}

fn outlive_an_exporter(
    generation: &Generation,
    random: &mut Random,
    clock: &Clock,
    totals: &Totals,
) -> Result<()> {
    let context = &generation.context;
    let mut child = Beside::start("exporter", generation.chosen, random.number());
    let line = child.line();
    let with_timeline = random.one_in(EVENTS_ALONE);
    let (event, exporter) = clock.time("an import", || opened_event(context, &line))?;
    let timeline = if with_timeline {
        totals.kept.fetch_add(1, Ordering::Relaxed);
        Some(clock.time("an import of a timeline", || opened_timeline(context, &line))?)
    } else {
        None
    };
    let (stream, other) =
        (Stream::new(context, StreamOptions::new())?, Stream::new(context, StreamOptions::new())?);
    let rounds = 1 + random.below(20);
    let mut last: Option<Point> = None;
    for round in 0..rounds {
        child.send("next");
        let value = child.line().parse().expect("a value");
        let point = timeline.as_ref().map(|timeline| timeline.point(value)).transpose()?;
        if let Some(point) = point {
            clock.time("wait_point", || stream.wait_point(point))?;
            match random.below(3) {
                0 => clock.time("Point::wait", || point.wait())?,
                1 => clock.time("a future of a point", || block_on(point.into_future()))?,
                _ => {}
            }
        } else {
            let done =
                clock.time("a wait for an import", || exporter.wait_for(&event, PATIENCE))?;
            assert_eq!(done, Progress::Done);
            clock.time("wait_event", || stream.wait_event(&event))?;
        }
        if round % 2 == 0 {
            clock.time("synchronize of a stream", || stream.synchronize())?;
            assert!(point.is_none_or(|point| point.is_done()), "the stream has waited for it");
            let recorded =
                clock.time("a wait for an import", || event.synchronize_timeout(PATIENCE));
            assert_eq!(recorded?, Progress::Done);
            totals.checked.fetch_add(1, Ordering::Relaxed);
        }
        totals.operations.fetch_add(4, Ordering::Relaxed);
        last = point;
    }
    // At any moment of a round.
    child.send("next");
    (0..random.below(200_000)).for_each(|_| std::hint::spin_loop());
    let never = timeline.as_ref().map(|timeline| timeline.point(1 << 40)).transpose()?;
    if let Some(never) = never {
        clock.time("wait_point", || other.wait_point(never))?;
    }
    child.kill();
    totals.killed.fetch_add(1, Ordering::Relaxed);
    assert_eq!(exporter.state(), ExporterState::Ended);
    let result =
        never.map(|never| clock.time("a wait for the dead", || never.wait_timeout(PATIENCE)));
    match result {
        None | Some(Err(Error::ExporterGone | Error::Poisoned)) => {}
        Some(Err(error)) => return Err(error),
        Some(Ok(progress)) => panic!("a point that cannot come is {progress:?}"),
    }
    for stream in [&stream, &other] {
        let drained = clock
            .time("the end of a stream that waited", || stream.synchronize_timeout(PATIENCE))?;
        assert_eq!(drained, Progress::Done, "streams that wait for the dead are released");
    }
    let done = match clock.time("a wait for the dead", || exporter.wait_for(&event, PATIENCE)) {
        Err(cuda_events::Error::ExporterGone) => Progress::Pending,
        waited => waited?,
    };
    assert_eq!(event.query()?, done, "the dead change nothing");
    if let Some(last) = last.filter(Point::is_done) {
        assert_eq!(last.query()?, Progress::Done);
    }
    totals.checked.fetch_add(3, Ordering::Relaxed);
    clock.time("the drop of imports", || drop((event, timeline, stream, other)));
    Ok(())
}

fn outlive_an_importer(
    generation: &Generation,
    random: &mut Random,
    shared: &mut Option<(TimelineFile, u32)>,
    clock: &Clock,
    totals: &Totals,
) -> Result<()> {
    let context = &generation.context;
    let stream = Stream::new(context, StreamOptions::new())?;
    let event = Event::new(context, EventFlags::INTERPROCESS)?;
    if shared.as_ref().is_none_or(|(_, timelines)| *timelines == 60) {
        totals.kept.fetch_add(1, Ordering::Relaxed);
        *shared = Some((file(context, random)?, 0));
    }
    let Some((file, timelines)) = shared else { unreachable!("it was made") };
    *timelines += 1;
    let timeline = Timeline::shared(stream, file)?;
    event.record(timeline.stream())?;
    event.synchronize()?;
    let line = offer(&event, &timeline, file)?;
    let mut child = Beside::start("importer", generation.chosen, random.number());
    child.send(&line);
    assert_eq!(child.line(), "opened");
    for _ in 0..random.below(20) {
        clock.time("record", || event.record(timeline.stream()))?;
        let point = clock.time("signal", || timeline.signal())?;
        child.send(&point.value().to_string());
        if !generation.ends() {
            assert_eq!(child.line(), "done");
        }
        totals.operations.fetch_add(2, Ordering::Relaxed);
    }
    let point = clock.time("signal", || timeline.signal())?;
    child.send(&point.value().to_string());
    (0..random.below(200_000)).for_each(|_| std::hint::spin_loop());
    child.kill();
    totals.killed.fetch_add(1, Ordering::Relaxed);
    clock.time("record", || event.record(timeline.stream()))?;
    let point = clock.time("signal", || timeline.signal())?;
    clock.time("Point::wait", || point.wait())?;
    assert_eq!(
        clock.time("a wait for an own event", || event.synchronize_timeout(PATIENCE))?,
        Progress::Done
    );
    totals.checked.fetch_add(1, Ordering::Relaxed);
    clock.time("the drop of exports", || drop((event, timeline)));
    Ok(())
}
