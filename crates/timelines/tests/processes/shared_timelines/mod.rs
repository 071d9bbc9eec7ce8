//! Timelines that processes share, by a file descriptor.
//!
//! The tests send commands to another process, their peer; see `peer`. Files go over
//! a Unix socket that the peer inherits.

use crate::common;

use std::future::IntoFuture;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use common::child::{Child, end_after, from_hex, read_line, role, say, to_hex};
use common::counting::{calls, counted_context};
use common::futures::{block_on, wait_until};
use common::handover::Handover;
use common::memory::{self, AsShared, Mapping, Shared, reading};
use common::timelines::{PATIENCE, WAIT, gpu, idle, reached};
use common::{Gpu, Latch, Other, cases, check};
use cuda_events::sys::{CUresult, Function};
use cuda_events::{Context, Device, Progress, Stream, StreamOptions, StreamRef};
use cuda_timelines::{
    CudaStreamExt, Error, HostTimeline, ImportedTimeline, SharedTimelineError as Refusal, Timeline,
    TimelineDescriptor, TimelineFile,
};

#[cfg(target_os = "linux")]
use self::children::fork_one_that_stays;

#[cfg(target_os = "linux")]
mod children;
mod ends;
mod failures;
mod forged;

/// The value of every word that was made so by a copy.
const WORDS: usize = 1 << 10;

/// How often a value races with the thread that relays it.
fn rounds() -> u64 {
    cases(1500, 4000)
}

/// Memory that the streams of two processes copy to and from.
pub struct Data(Mapping);

impl Data {
    pub fn file() -> Shared {
        memory::plain(4 * WORDS)
    }

    pub fn new(gpu: &Gpu, file: impl AsShared) -> Self {
        let mapping = Mapping::new(file, 4 * WORDS).expect("it can be mapped");
        let _current = gpu.context.make_current().expect("the context can be made current");
        let register = gpu.driver.symbols().cuMemHostRegister_v2;
        // For all contexts, and mapped for devices.
        // SAFETY: so many bytes.
        let code = unsafe { register(mapping.as_ptr(), 4 * WORDS, 3) };
        check(Function::cuMemHostRegister_v2, code);
        Self(mapping)
    }

    pub fn set(&self, stream: &StreamRef, value: u32) {
        let set = stream.context().driver().symbols().cuMemsetD32Async;
        // SAFETY: so many words that are registered; the stream is alive.
        let code = unsafe { set(self.0.address(), value, WORDS, stream.as_raw()) };
        check(Function::cuMemsetD32Async, code);
    }

    /// Has the stream read all of it.
    pub fn read(&self, stream: &StreamRef) -> Vec<u32> {
        let mut words = vec![u32::MAX; WORDS];
        let copy = stream.context().driver().symbols().cuMemcpyDtoHAsync_v2;
        let (from, to) = (self.0.address(), words.as_mut_ptr().cast());
        // SAFETY: both have so many words, and the stream is waited for.
        let code = unsafe { copy(to, from, 4 * WORDS, stream.as_raw()) };
        check(Function::cuMemcpyDtoHAsync_v2, code);
        idle(stream);
        words
    }
}

/// Not a test: the other process. Each line that it hears is one step, which it answers with the
/// result.
#[test]
#[ignore = "the other process, which the tests start: cargo test -p cuda-timelines --test processes"]
fn peer() {
    let handover = Handover::of_role(&role().expect("this is no test of its own"));
    end_after(300);
    let gpu = Gpu::new();
    let consumer = gpu.stream();
    let (mut file, mut timeline, mut host, mut latch) = (None, None, None, None);
    let (mut imported, mut data): (Vec<ImportedTimeline>, _) = (Vec::new(), None::<Data>);
    loop {
        let line = read_line();
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse::<u64>().expect("a number");
        let point = || imported.last().expect("an import").point(number(1)).expect("a point");
        match words[0] {
            "make" => {
                let made = match words[1] {
                    "writable" => TimelineFile::writable(&gpu.context),
                    "sealed" => TimelineFile::new(&gpu.context),
                    other => panic!("{other:?} is no kind of a file"),
                };
                let made = made.expect("a file");
                let own = Timeline::shared(gpu.stream(), &made).expect("a timeline");
                handover.give(&made);
                say(&to_hex(&own.descriptor().expect("it is shared").to_bytes()));
                (file, timeline) = (Some(made), Some(own));
            }
            "host" => {
                let own = HostTimeline::shared(file.as_ref().expect("a file")).expect("a timeline");
                say(&to_hex(&own.descriptor().expect("it is shared").to_bytes()));
                host = Some(own);
            }
            "import" => {
                let descriptor =
                    TimelineDescriptor::from_bytes(&from_hex(words[1])).expect("a descriptor");
                let received = handover.take();
                imported.push(
                    ImportedTimeline::open(&gpu.context, received, &descriptor).expect("an import"),
                );
                say("imported");
            }
            "data" => {
                data = Some(Data::new(&gpu, handover.take()));
                say("registered");
            }
            "hold" => {
                let own: &Timeline = timeline.as_ref().expect("a timeline");
                latch = Some(Latch::hold(own.stream()));
                say("held");
            }
            "release" => {
                latch.take().expect("a held stream").release();
                say("released");
            }
            "signal" => {
                let point = timeline.as_ref().expect("a timeline").signal();
                say(&point.expect("a signal").value().to_string());
            }
            "host-signal" => {
                let point = host.as_ref().expect("a timeline").signal();
                say(&point.expect("a signal").value().to_string());
            }
            "fail" => {
                let code = CUresult::CUDA_ERROR_ILLEGAL_ADDRESS;
                gpu.soft().expect("the software driver in the process").fail_contexts(code);
                let signal = timeline.as_ref().expect("a timeline").signal();
                say(&format!("{:?}", signal.map_err(|error| error.code() == Some(code))));
            }
            // Its host does nothing about it.
            "fail-quietly" => {
                let code = CUresult::CUDA_ERROR_ILLEGAL_ADDRESS;
                gpu.soft().expect("the software driver in the process").fail_contexts(code);
                say("failed");
            }
            // Waits for a value of the parent's, writes the data, and signals.
            "produce" => {
                let own: &Timeline = timeline.as_ref().expect("a timeline");
                own.stream().wait_point(point()).expect("a wait");
                data.as_ref().expect("data").set(own.stream(), number(2) as u32);
                say(&own.signal().expect("a signal").value().to_string());
            }
            "stream" => {
                consumer.wait_point(point()).expect("a wait");
                idle(&consumer);
                say("Ok(Done)");
            }
            "wait" => say(&format!("{:?}", point().wait_timeout(PATIENCE))),
            "await" => say(&format!("{:?}", block_on(async { point().await }).map(|()| "Done"))),
            "query" => say(&format!("{:?}", point().query())),
            "submit" => {
                consumer.wait_point(point()).expect("a wait");
                say("submitted");
            }
            "idle" => {
                idle(&consumer);
                say("idle");
            }
            "drop" => {
                timeline = None;
                host = None;
                file = None;
                say("dropped");
            }
            "fork" => say(&fork_one_that_stays().to_string()),
            // Its driver is there by then.
            "signals-nothing" => say("nothing"),
            "end" => break,
            other => panic!("{other:?} is no step"),
        }
    }
}

/// In a test: the other process.
pub struct Peer {
    pub child: Child,
    handover: Handover,
}

impl Peer {
    fn start() -> Self {
        Self::start_with(|_| {})
    }

    fn start_with(configure: impl FnOnce(&mut Command)) -> Self {
        Self::of_test("peer", configure)
    }

    /// The one that runs the ignored test of this name in the caller's file.
    #[track_caller]
    pub fn of_test(name: &str, configure: impl FnOnce(&mut Command)) -> Self {
        let (child, handover) = Handover::start(name, configure);
        Self { child, handover }
    }

    /// Lets it take a step that may last.
    pub fn begin(&mut self, step: &str) {
        self.child.send(step);
    }

    #[track_caller]
    pub fn step(&mut self, step: &str) -> String {
        self.begin(step);
        self.child.receive()
    }

    #[track_caller]
    pub fn number(&mut self, step: &str) -> u64 {
        self.step(step).parse().expect("a number")
    }

    #[track_caller]
    fn make(&mut self, kind: &str) -> (Shared, TimelineDescriptor) {
        self.begin(&format!("make {kind}"));
        let file = self.handover.take_from(&mut self.child);
        let descriptor = TimelineDescriptor::from_bytes(&from_hex(&self.child.receive()));
        (file, descriptor.expect("a descriptor"))
    }

    /// Gives it one of this process's.
    #[track_caller]
    fn give(&mut self, file: impl AsShared, descriptor: &TimelineDescriptor) {
        self.begin(&format!("import {}", to_hex(&descriptor.to_bytes())));
        self.handover.give_to(&mut self.child, file);
        assert_eq!(self.child.receive(), "imported");
    }

    /// Gives the other process memory for data that both use.
    #[track_caller]
    pub fn share(&mut self, gpu: &Gpu) -> Data {
        let file = Data::file();
        self.begin("data");
        self.handover.give_to(&mut self.child, &file);
        assert_eq!(self.child.receive(), "registered");
        Data::new(gpu, file)
    }

    #[track_caller]
    pub fn end(mut self) {
        self.begin("end");
        self.child.finish();
    }
}

fn open(gpu: &Gpu, made: (Shared, TimelineDescriptor)) -> ImportedTimeline {
    open_in(&gpu.context, made)
}

fn open_in(
    context: &Context,
    (file, descriptor): (Shared, TimelineDescriptor),
) -> ImportedTimeline {
    ImportedTimeline::open(context, file, &descriptor).expect("an import")
}

/// Each way in which an importer may have a file.
const WAYS: [&str; 3] = ["writable", "sealed", "reading"];

fn make_and_open(context: &Context, peer: &mut Peer, way: &str) -> ImportedTimeline {
    let (file, descriptor) = peer.make(if way == "sealed" { way } else { "writable" });
    let file = if way == "reading" { reading(&file) } else { file };
    open_in(context, (file, descriptor))
}

/// The peer writes, and this process reads; and each waits for the other, by its stream.
#[test]
fn data_is_in_order_between_processes() {
    let Some(gpu) = gpu() else { return };
    for kind in ["writable", "sealed"] {
        let mut peer = Peer::start();
        let data = peer.share(&gpu);
        let full = make_and_open(&gpu.context, &mut peer, kind);
        let file = match kind {
            "writable" => TimelineFile::writable(&gpu.context),
            _ => TimelineFile::new(&gpu.context),
        };
        let file = file.expect("a file");
        let empty = Timeline::shared(gpu.stream(), &file).expect("a timeline");
        let other = gpu.stream();
        peer.give(&file, &empty.descriptor().expect("it is shared"));
        data.set(empty.stream(), 0);
        let mut read = empty.signal().expect("a signal");
        for round in 1..=12 {
            let held = (round % 2 == 0).then(|| peer.step("hold"));
            let value = peer.number(&format!("produce {} {round}", read.value()));
            let point = full.point(value).expect("a point");
            assert!(held.is_none() || !point.is_done());
            let words = match round % 4 {
                0 | 1 => {
                    other.wait_point(point).expect("a wait");
                    if held.is_some() {
                        assert_eq!(other.query(), Ok(Progress::Pending));
                        peer.step("release");
                    }
                    data.read(&other)
                }
                rest => {
                    if held.is_some() {
                        peer.step("release");
                    }
                    match rest {
                        2 => block_on(point.into_future()).expect("it comes"),
                        _ => reached(point),
                    }
                    data.read(empty.stream())
                }
            };
            assert!(point.is_done() && full.completed() >= value);
            assert!(words.iter().all(|word| *word == round), "{kind}, {round}: {}", words[0]);
            read = empty.signal().expect("a signal");
        }
        peer.end();
    }
}

/// A value may come at any moment of the thread's round that copies it to the relay.
#[test]
fn a_relayed_value_is_never_lost() {
    let Some(gpu) = gpu() else { return };
    let file = TimelineFile::new(&gpu.context).expect("a file");
    let maker = HostTimeline::shared(&file).expect("a timeline");
    let descriptor = maker.descriptor().expect("it is shared");
    let readable = memory::copy(&file);
    let import = ImportedTimeline::open(&gpu.context, readable, &descriptor).expect("an import");
    let (stream, next) = (gpu.stream(), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let signaller = scope.spawn(|| {
            for round in 1..=rounds() {
                wait_until("a round", || next.load(Ordering::Acquire) >= round);
                // Somewhere in the round that the wait began.
                (0..round % 512).for_each(|_| std::hint::spin_loop());
                maker.signal().expect("a signal");
            }
        });
        for round in 1..=rounds() {
            next.store(round, Ordering::Release);
            stream.wait_point(import.point(round).expect("a point")).expect("a wait");
            idle(&stream);
        }
        signaller.join().expect("it signals");
    });
}

/// Has other code capture a stream while `work` runs.
fn captured_by_others(stream: &StreamRef, work: impl FnOnce()) {
    let symbols = *stream.context().driver().symbols();
    let mode = cuda_events::sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    let mut graph = std::ptr::null_mut();
    // SAFETY: no other thread has the stream.
    let begun = unsafe { (symbols.cuStreamBeginCapture_v2)(stream.as_raw(), mode) };
    check(Function::cuStreamBeginCapture_v2, begun);
    work();
    // SAFETY: a place for the graph, which is destroyed.
    unsafe {
        let ended = (symbols.cuStreamEndCapture)(stream.as_raw(), &mut graph);
        check(Function::cuStreamEndCapture, ended);
        check(Function::cuGraphDestroy, (symbols.cuGraphDestroy)(graph));
    }
}

/// Other code has captured a wait for an import, so that the crate looks after it for as long as
/// the maker lives, although nothing is launched. Its context ends meanwhile, and the next one has
/// the same handle: nothing of the old import is used there, and a new import of the file is.
#[test]
fn an_import_is_not_taken_for_one_of_the_next_context() {
    // With one library alone contexts are compared by their handles first.
    common::own_process!("devices=2");
    let Some(gpu) = gpu() else { return };
    let Ok(second) = Device::new(gpu.driver, 1) else {
        return common::not_run("this machine has one device");
    };
    let stream = |context: &Context| Stream::new(context, StreamOptions::new()).expect("a stream");
    for file in [TimelineFile::writable(&gpu.context), TimelineFile::new(&gpu.context)] {
        let file = file.expect("a file");
        let timeline = Timeline::shared(gpu.stream(), &file).expect("a timeline");
        let value = timeline.completed() + 1;
        let import = |context: &Context| {
            let descriptor = timeline.descriptor().expect("it is shared");
            open_in(context, (memory::copy(&file), descriptor))
        };
        let ended = Context::primary(second).expect("a context");
        let handle = ended.as_raw();
        let captures = stream(&ended);
        let imported = import(&ended);
        captured_by_others(&captures, || {
            captures.wait_point(imported.point(value).expect("a point")).expect("a wait");
        });
        let point = imported.point(value).expect("a point");
        drop((imported, captures, ended));
        let next = Context::primary(second).expect("a context");
        assert_eq!(next.as_raw(), handle, "the same device has the same one");
        let waits = stream(&next);
        assert_eq!(waits.wait_point(point), Err(Error::ContextDropped));
        let imported = import(&next);
        waits.wait_point(imported.point(value).expect("a point")).expect("a wait");
        assert_eq!(waits.query(), Ok(Progress::Pending));
        timeline.signal().expect("a signal");
        idle(&waits);
    }
}

/// Any number of processes wait for one timeline, each in its own way.
#[test]
fn many_importers_see_one_signal() {
    let Some(gpu) = gpu() else { return };
    let files = [TimelineFile::writable(&gpu.context), TimelineFile::new(&gpu.context)];
    for file in files {
        let file = file.expect("a file");
        let timeline = Timeline::shared(gpu.stream(), &file).expect("a timeline");
        let host = HostTimeline::shared(&file).expect("a timeline");
        let mut peers = ["stream", "wait", "await"].map(|way| (way, Peer::start()));
        let latch = Latch::hold(timeline.stream());
        let value = timeline.signal().expect("a signal").value();
        for (way, peer) in &mut peers {
            peer.give(&file, &timeline.descriptor().expect("it is shared"));
            assert_eq!(peer.step(&format!("query {value}")), "Ok(Pending)");
            peer.begin(&format!("{way} {value}"));
        }
        latch.release();
        for (way, peer) in &mut peers {
            let reply = peer.child.receive();
            assert!(matches!(reply.as_str(), "Ok(Done)" | "Ok(\"Done\")"), "{way}: {reply}");
        }
        // A timeline of the host is refused in the same ways.
        for (way, peer) in &mut peers {
            peer.give(&file, &host.descriptor().expect("it is shared"));
            peer.begin(&format!("{way} {}", host.completed() + 1));
        }
        host.signal().expect("a signal");
        for (_, mut peer) in peers {
            let reply = peer.child.receive();
            assert!(matches!(reply.as_str(), "Ok(Done)" | "Ok(\"Done\")"), "{reply}");
            peer.end();
        }
    }
}

/// The importer's streams are of another device than the maker's. They wait, and are released when
/// the maker is killed.
#[test]
fn another_device_waits_for_a_peer() {
    common::own_process!("devices=2");
    let Some(gpu) = gpu() else { return };
    let Ok(second) = Device::new(gpu.driver, 1) else {
        return common::not_run("this machine has one device");
    };
    let there = Context::primary(second).expect("a context");
    for way in WAYS {
        let mut peer = Peer::start();
        let imported = make_and_open(&there, &mut peer, way);
        let stream = Stream::new(&there, StreamOptions::new()).expect("a stream");
        peer.step("hold");
        let point = imported.point(peer.number("signal")).expect("a point");
        stream.wait_point(point).expect("a wait");
        assert_eq!(stream.query(), Ok(Progress::Pending), "{way}");
        peer.step("release");
        idle(&stream);
        reached(point);
        peer.step("hold");
        let lost = imported.point(peer.number("signal")).expect("a point");
        stream.wait_point(lost).expect("a wait");
        // A stream of the maker's device waits for it through the other one's context.
        let here = gpu.stream();
        here.wait_point(lost).expect("a wait");
        assert_eq!(here.query(), Ok(Progress::Pending), "{way}");
        peer.child.kill();
        idle(&stream);
        idle(&here);
        assert_eq!(lost.query(), Err(Error::ExporterGone), "{way}");
    }
}

/// Without an import there is nobody to ask; what is reached is seen nevertheless.
#[test]
fn a_point_without_an_import_is_refused() {
    let Some(gpu) = gpu() else { return };
    for way in WAYS {
        let mut peer = Peer::start();
        let imported = make_and_open(&gpu.context, &mut peer, way);
        peer.step("hold");
        let pending = imported.point(peer.number("signal")).expect("a point");
        let future = pending.into_future();
        drop(imported);
        assert_eq!(pending.query(), Err(Error::ContextDropped));
        assert_eq!(pending.wait(), Err(Error::ContextDropped));
        assert_eq!(block_on(future), Err(Error::ContextDropped));
        assert_eq!(gpu.stream().wait_point(pending), Err(Error::ContextDropped));
        peer.step("release");
        wait_until("it is reached", || pending.is_done());
        assert_eq!(pending.wait(), Ok(()));
        peer.end();
    }
}

#[cfg(windows)]
fn fork_one_that_stays() -> i32 {
    panic!("there is no such step here")
}

/// A child may inherit the handle. It has the same number there.
#[cfg(windows)]
#[test]
fn a_child_inherits_a_section() {
    let Some(gpu) = gpu() else { return };
    let file = TimelineFile::new(&gpu.context).expect("a file");
    let timeline = HostTimeline::shared(&file).expect("a timeline");
    let inherited = memory::inherited(&file);
    let mut peer = Peer::start();
    peer.begin(&format!("import {}", to_hex(&timeline.descriptor().expect("one").to_bytes())));
    let number = std::os::windows::io::AsRawHandle::as_raw_handle(&inherited).addr();
    peer.begin(&number.to_string());
    assert_eq!(peer.child.receive(), "imported");
    assert_eq!(peer.step("query 1"), "Ok(Pending)");
    let point = timeline.signal().expect("a signal");
    assert_eq!(peer.step(&format!("query {}", point.value())), "Ok(Done)");
    peer.end();
}

/// A wait of a stream is one call, also for another process's point; looking is none. The page of a
/// file is registered once for a context.
#[test]
fn what_an_import_costs_in_driver_calls() {
    let Some(gpu) = gpu() else { return };
    let context = counted_context(gpu.driver);
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let mut peer = Peer::start();
    let (file, descriptor) = peer.make("writable");
    let again = file.try_clone().expect("a file");
    let register = Function::cuMemHostRegister_v2;
    let count = |made: &[Function]| made.iter().filter(|function| **function == register).count();
    let (imported, made) = calls(|| ImportedTimeline::open(&context, file, &descriptor));
    let imported = imported.expect("an import");
    assert_eq!(count(&made), 1, "{made:?}");
    let (second, made) = calls(|| ImportedTimeline::open(&context, again, &descriptor));
    assert_eq!(made, []);
    let second = second.expect("an import");
    peer.step("hold");
    let point = imported.point(peer.number("signal")).expect("a point");
    assert!(point == second.point(point.value()).expect("a point"));
    assert_eq!(calls(|| (point.is_done(), imported.completed())).1, []);
    assert_eq!(calls(|| stream.wait_point(point)), (Ok(()), vec![WAIT]));
    // One of the two is enough.
    drop(imported);
    assert_eq!(point.query(), Ok(Progress::Pending));
    peer.step("release");
    reached(point);
    idle(&stream);
    assert_eq!(calls(|| stream.wait_point(point)), (Ok(()), vec![]));
    assert_eq!(calls(|| point.query()), (Ok(Progress::Done), vec![]));
    assert_eq!(calls(|| drop(second)).1, []);
    peer.end();
}

/// A server imports a timeline for each request: the thousandth import costs what the first ones
/// did, also where streams wait for a relay and where makers have died.
#[test]
fn old_imports_cost_new_ones_nothing() {
    const MANY: usize = 1000;
    let Some(gpu) = gpu() else { return };
    let context = counted_context(gpu.driver);
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let file = TimelineFile::new(&gpu.context).expect("a file");
    let orphan = memory::orphan(&file, true);
    let maker = HostTimeline::shared(&file).expect("a timeline");
    let descriptor = maker.descriptor().expect("it is shared");
    let import =
        |file: Shared| ImportedTimeline::open(&context, file, &descriptor).expect("an import");
    let register = Function::cuMemHostRegister_v2;
    let registers = |made: &[Function]| made.iter().filter(|made| **made == register).count();
    let ((), made) = calls(|| (0..MANY).for_each(|_| drop(import(memory::copy(&file)))));
    assert!(registers(&made) <= 1, "{}", registers(&made));
    for dead in [false, true] {
        let ((), made) = calls(|| {
            for round in 0..MANY {
                let imported =
                    import(if dead { memory::copy(&orphan) } else { memory::copy(&file) });
                let point = imported.point(maker.completed() + 1).expect("a point");
                let waits = stream.wait_point(point);
                if dead {
                    // Only the first may succeed.
                    assert!(round == 0 || waits == Err(Error::ExporterGone), "{waits:?}");
                } else {
                    waits.expect("a wait");
                    maker.signal().expect("a signal");
                }
                // Some of them go on together.
                if round % 16 == 0 {
                    idle(&stream);
                }
            }
            idle(&stream);
        });
        // The thread has those that streams wait for, until it has had a round.
        assert!(registers(&made) <= 2, "{dead}: {}", registers(&made));
    }
}

#[test]
fn a_file_has_63_timelines_of_one_context() {
    let Some(gpu) = gpu() else { return };
    let file = TimelineFile::new(&gpu.context).expect("a file");
    assert_eq!(file.context(), &gpu.context);
    let many: Vec<_> =
        (0..63).map(|_| HostTimeline::shared(&file).expect("there is room")).collect();
    let points: Vec<_> = many.iter().map(|one| one.signal().expect("a signal")).collect();
    assert!(points.iter().all(|point| point.is_done() && point.value() == 1));
    let full = Err(Error::SharedTimeline(Refusal::FileFull));
    assert_eq!(Timeline::shared(gpu.stream(), &file).map(drop), full);
    drop(many);
    assert_eq!(HostTimeline::shared(&file).map(drop), full, "importers may wait for the old ones");
    let other = Other::new(&gpu);
    let theirs = Stream::new(&other, StreamOptions::new()).expect("a stream");
    let file = TimelineFile::writable(&gpu.context).expect("a file");
    let mismatch = Error::ContextMismatch { device: 0, other_device: 0 };
    assert_eq!(Timeline::shared(theirs, &file).map(drop), Err(mismatch));
}

/// A timeline that finds no room gives back what it had taken elsewhere.
#[test]
fn a_full_file_takes_nothing() {
    // The crate's thread uses the counting driver, too.
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    let context = counted_context(gpu.driver);
    let file = TimelineFile::writable(&context).expect("a file");
    let stream = || Stream::new(&context, StreamOptions::new()).expect("a stream");
    let many: Vec<_> =
        (0..63).map(|_| Timeline::shared(stream(), &file).expect("there is room")).collect();
    let full = Err(Error::SharedTimeline(Refusal::FileFull));
    let (_, made) = calls(|| {
        for _ in 0..200 {
            assert_eq!(Timeline::shared(stream(), &file).map(drop), full);
        }
    });
    assert!(!made.contains(&Function::cuMemHostRegister_v2), "a page for more lines");
    drop(many);
}

/// Streams of another context than the import's wait, too.
#[test]
fn streams_of_another_context_wait_for_a_peer() {
    // Other tests may be looking at the wait when the other context is destroyed.
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    for way in WAYS {
        let mut peer = Peer::start();
        let imported = make_and_open(&gpu.context, &mut peer, way);
        let other = Other::new(&gpu);
        let theirs = Stream::new(&other, StreamOptions::new()).expect("a stream");
        peer.step("hold");
        let point = imported.point(peer.number("signal")).expect("a point");
        theirs.wait_point(point).expect("a wait");
        assert_eq!(theirs.query(), Ok(Progress::Pending));
        peer.step("release");
        idle(&theirs);
        assert!(point.is_done());
        drop((imported, theirs));
        // A new timeline gives back the shares of those before it.
        drop(HostTimeline::new(&gpu.context));
        peer.end();
    }
}
