//! Random safe calls beside streams that wait ahead for signals of the host.
//!
//! Threads make such waits, and make and drop what they like. None of them waits for a stream. One
//! more thread makes the signals, each after a call of the driver that does not wait. So every
//! program comes to its end, unless a drop holds the driver until the device is idle.

use std::io::{BufRead, BufReader, Write as _};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cuda_events::graph::Graph;
use cuda_events::{Context, Device, Driver, Event, EventFlags, Stream, StreamOptions, StreamRef};
use cuda_soft_driver::{OnDeadlock, SoftDriver};
use cuda_timelines::{CudaStreamExt, HostTimeline, Timeline, TimelineFile, TimelineMemory};

use crate::{Random, TestDriver};

const WORKERS: usize = 3;
const STREAMS: usize = 6;
const STEPS: usize = 120;

/// Runs the programs of `seeds` in other processes, and reports which of them did not come to their
/// end within the limit.
pub fn run(chosen: TestDriver, seed: u64, seeds: u64, limit: Duration) -> ExitCode {
    let program = std::env::current_exe().expect("this program");
    let (mut next, end) = (seed, seed.saturating_add(seeds));
    let mut hung = Vec::new();
    while next < end {
        let mut child = Command::new(&program);
        // A process has room for so many mappings: files of timelines stay mapped.
        let end = end.min(next + 1000);
        child.args(["ahead", chosen.name(), &next.to_string(), &end.to_string()]);
        let mut child = child.stdout(Stdio::piped()).spawn().expect("a process");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let (sender, lines) = channel();
        let reader = std::thread::spawn(move || {
            output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        // The first takes as long as the driver takes to start.
        let mut patience = limit.max(Duration::from_secs(60));
        let stuck = loop {
            match lines.recv_timeout(patience) {
                Ok(line) => (next, patience) = (line.parse().expect("a seed"), limit),
                Err(RecvTimeoutError::Disconnected) => break false,
                Err(RecvTimeoutError::Timeout) => break true,
            }
        };
        if stuck {
            let _ = child.kill();
        }
        let status = child.wait().expect("it has ended");
        let _ = reader.join();
        if stuck {
            println!("churn: HUNG: seed {next}");
            hung.push(next);
        } else if !status.success() {
            println!("churn: seed {next} ended with {status}");
            return ExitCode::FAILURE;
        }
        next += 1;
    }
    let ended = seeds - hung.len() as u64;
    println!("churn: {ended} of {seeds} seeds came to their end; these hung: {hung:?}");
    if hung.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The other process: the programs of all these seeds, each of which it names before.
pub fn child(given: &[String]) {
    let [chosen, first, end] = given else { panic!("ahead soft|native FIRST END") };
    let soft;
    let driver = if chosen == TestDriver::Native.name() {
        Driver::load().expect("this machine has an NVIDIA driver")
    } else {
        soft = SoftDriver::builder().devices(2).on_deadlock(OnDeadlock::Hang).build();
        soft.driver()
    };
    let contexts: Vec<_> = Device::all(driver)
        .expect("devices")
        .take(2)
        .map(|device| Context::primary(device).expect("a context"))
        .collect();
    // Before anything waits: the driver may not make one afterwards.
    let streams: Vec<Vec<_>> = contexts
        .iter()
        .map(|context| {
            let new = || Stream::new(context, StreamOptions::new()).expect("a stream");
            (0..STREAMS).map(|_| Arc::new(new())).collect()
        })
        .collect();
    let [first, end] = [first, end].map(|number| number.parse::<u64>().expect("a seed"));
    for seed in first..end {
        println!("{seed}");
        std::io::stdout().flush().expect("the parent listens");
        program(&contexts, &streams, seed);
    }
}

/// What the threads of a program share.
struct Shared<'a> {
    contexts: &'a [Context],
    streams: &'a [Vec<Arc<Stream>>],
    hosts: Vec<HostTimeline>,
    timelines: Mutex<Vec<Arc<Timeline>>>,
    done: AtomicBool,
}

fn program(contexts: &[Context], streams: &[Vec<Arc<Stream>>], seed: u64) {
    let hosts = contexts.iter().map(|context| HostTimeline::new(context).expect("a timeline"));
    let shared = Shared {
        contexts,
        streams,
        hosts: hosts.collect(),
        timelines: Mutex::default(),
        done: AtomicBool::new(false),
    };
    std::thread::scope(|scope| {
        let shared = &shared;
        let workers: Vec<_> = (0..WORKERS as u64)
            .map(|worker| scope.spawn(move || work(shared, Random::new(seed << 8 | worker))))
            .collect();
        let signals = scope.spawn(move || signal(shared, Random::new(seed << 8 | 0xFF)));
        workers.into_iter().for_each(|worker| worker.join().expect("no panic"));
        shared.done.store(true, Ordering::Release);
        signals.join().expect("no panic");
    });
    // The drop of a host's timeline ends the waits for it.
    drop(shared);
    for stream in streams.iter().flatten() {
        stream.synchronize().expect("it works");
    }
}

impl Shared<'_> {
    fn place(&self, random: &mut Random) -> (usize, &Context, &Arc<Stream>) {
        let at = random.below(self.contexts.len());
        (at, &self.contexts[at], &self.streams[at][random.below(STREAMS)])
    }

    fn keep(&self, timeline: Timeline, random: &mut Random) {
        let mut timelines = self.timelines.lock().expect("no panic");
        timelines.push(Arc::new(timeline));
        let old = (timelines.len() > 6).then(|| {
            let at = random.below(timelines.len());
            timelines.swap_remove(at)
        });
        drop(timelines);
        drop(old);
    }

    fn timeline(&self, random: &mut Random) -> Option<Arc<Timeline>> {
        let timelines = self.timelines.lock().expect("no panic");
        timelines.get(random.below(timelines.len())).cloned()
    }
}

fn work(shared: &Shared<'_>, mut random: Random) {
    let mut memories: Vec<TimelineMemory> = Vec::new();
    let random = &mut random;
    for _ in 0..STEPS {
        let (at, context, stream) = shared.place(random);
        match random.below(8) {
            0 | 1 => wait_ahead(shared, stream, random),
            2 => {
                let memory = TimelineMemory::new(context).expect("memory");
                let timeline = Timeline::in_memory(Arc::clone(stream), &memory).expect("room");
                timeline.signal().expect("a signal");
                shared.keep(timeline, random);
                memories.push(memory);
            }
            3 if !memories.is_empty() => {
                drop(memories.swap_remove(random.below(memories.len())));
            }
            4 => {
                let timeline = Timeline::new(Arc::clone(stream)).expect("a timeline");
                timeline.signal().expect("a signal");
                shared.keep(timeline, random);
            }
            5 if random.one_in(8) => {
                let file = TimelineFile::new(context).expect("a file");
                let timeline = Timeline::shared(Arc::clone(stream), &file).expect("room");
                timeline.signal().expect("a signal");
                shared.keep(timeline, random);
            }
            6 if random.one_in(4) => {
                let timeline = Timeline::new(Arc::clone(stream)).expect("a timeline");
                let graph = Graph::new(context).expect("a graph");
                let graph = timeline.in_graph(graph, &[&[]]).expect("a graph");
                graph.launch().expect("a launch").for_each(drop);
            }
            _ => {
                let other = &shared.streams[at][random.below(STREAMS)];
                call(shared, stream, other, random);
            }
        }
    }
}

fn wait_ahead(shared: &Shared<'_>, stream: &StreamRef, random: &mut Random) {
    let host = &shared.hosts[random.below(shared.hosts.len())];
    let value = host.completed() + 1 + random.below(3) as u64;
    host.wait_ahead(stream, value).expect("a wait");
}

/// A call of the driver that does not wait.
fn call(shared: &Shared<'_>, stream: &Stream, other: &Stream, random: &mut Random) {
    match random.below(6) {
        0 => drop(stream.query()),
        1 => drop(stream.record_event(EventFlags::empty()).expect("a record")),
        2 => drop(Event::new(stream.context(), EventFlags::empty()).expect("an event")),
        3 => stream.wait_stream(other).expect("a wait"),
        4 => drop(stream.capture_status().expect("it works")),
        _ => {
            let Some(timeline) = shared.timeline(random) else { return };
            let point = timeline.signal().expect("a signal");
            stream.wait_point(point).expect("a wait");
            drop(point.query());
        }
    }
}

/// Makes the signals until the others are done.
fn signal(shared: &Shared<'_>, mut random: Random) {
    let random = &mut random;
    while !shared.done.load(Ordering::Acquire) {
        let (at, _, stream) = shared.place(random);
        call(shared, stream, &shared.streams[at][random.below(STREAMS)], random);
        shared.hosts[random.below(shared.hosts.len())].signal().expect("a signal");
        // So that others come to their calls while a stream waits.
        std::thread::sleep(Duration::from_micros(random.number() % 200));
    }
}
