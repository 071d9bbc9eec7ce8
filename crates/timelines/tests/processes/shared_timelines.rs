//! Timelines that processes share, by a file descriptor.
//!
//! The tests send commands to another process, their peer; see `peer`. Files go over
//! a Unix socket that the peer inherits.

use crate::common;

use std::future::IntoFuture;
#[cfg(target_os = "linux")]
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Poll, Waker};
use std::time::Duration;

use common::child::{Child, end_after, from_hex, hear, role, say, to_hex};
use common::counting::{calls, counting, fail_next};
use common::futures::{Unpark, block_on, wait_until};
use common::handover::Handover;
use common::memory::{self, AsShared, Mapping, PAGE, Shared, reading};
use common::timelines::{
    PATIENCE, WAIT, WRITE, each_damage_is_refused, forged, gpu, idle, poll, reached,
};
use common::{Gpu, Latch, Other, cases, check};
use cuda_events::Error::ForkedChild;
use cuda_events::capture::CaptureMode;
use cuda_events::sys::{CUresult, Function};
use cuda_events::{Context, Device, Progress, Stream, StreamOptions, StreamRef};
use cuda_timelines::{
    CudaStreamExt, Error, HostTimeline, ImportedTimeline, Point, Result,
    SharedTimelineError as Refusal, Timeline, TimelineDescriptor, TimelineFile,
};

/// The value of every word that was made so by a copy.
const WORDS: usize = 1 << 10;
/// How often a value races with the thread that relays it.
fn rounds() -> u64 {
    cases(1500, 4000)
}

/// An error, within the tests' patience, and no other end.
#[track_caller]
fn error(result: Result<Progress>) -> Error {
    match result {
        Err(error) => error,
        Ok(progress) => panic!("{progress:?}, and no error"),
    }
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
        let line = hear();
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

#[cfg(target_os = "linux")]
unsafe extern "C" {
    fn fork() -> i32;
    fn pause() -> i32;
    fn unshare(flags: i32) -> i32;
    fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
    fn _exit(status: i32) -> !;
    fn prctl(option: i32, ...) -> i32;
    fn kill(process: i32, signal: i32) -> i32;
    fn close(file: i32) -> i32;
    fn mount(
        source: *const std::ffi::c_char,
        target: *const std::ffi::c_char,
        kind: *const std::ffi::c_char,
        flags: u64,
        data: *const std::ffi::c_void,
    ) -> i32;
}

/// A child that goes on living with all that it was given.
#[cfg(target_os = "linux")]
fn fork_one_that_stays() -> i32 {
    // SAFETY: the child makes system calls only.
    let child = unsafe { fork() };
    if child == 0 {
        end_after(300);
        loop {
            // SAFETY: it has no preconditions.
            unsafe { pause() };
        }
    }
    child
}

#[cfg(windows)]
fn fork_one_that_stays() -> i32 {
    panic!("there is no such step here")
}

/// In a test: the other process.
struct Peer {
    child: Child,
    handover: Handover,
}

impl Peer {
    #[track_caller]
    fn start() -> Self {
        Self::start_with(|_| {})
    }

    #[track_caller]
    fn start_with(configure: impl FnOnce(&mut Command)) -> Self {
        let (child, handover) = Handover::start("peer", configure);
        Self { child, handover }
    }

    /// Lets it take a step that may last.
    fn begin(&mut self, step: &str) {
        self.child.send(step);
    }

    #[track_caller]
    fn step(&mut self, step: &str) -> String {
        self.begin(step);
        self.child.receive()
    }

    #[track_caller]
    fn number(&mut self, step: &str) -> u64 {
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

    /// Shares data with it.
    #[track_caller]
    fn share(&mut self, gpu: &Gpu) -> Data {
        let file = Data::file();
        self.begin("data");
        self.handover.give_to(&mut self.child, &file);
        assert_eq!(self.child.receive(), "registered");
        Data::new(gpu, file)
    }

    #[track_caller]
    fn end(mut self) {
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
        // Of the host, too.
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

/// The maker is killed: every wait ends, streams go on, and all can be dropped.
#[test]
fn a_killed_maker_releases_all_who_wait() {
    // Other tests' files would be seen.
    common::own_process!();
    for way in WAYS {
        let Some(gpu) = gpu() else { return };
        let mut peer = Peer::start();
        peer.step("signals-nothing");
        let before = [in_shm(std::process::id()), in_shm(peer.child.id())];
        let imported = make_and_open(&gpu.context, &mut peer, way);
        let done = imported.point(peer.number("signal")).expect("a point");
        reached(done);
        peer.step("hold");
        let pending = imported.point(peer.number("signal")).expect("a point");
        let (stream, other) = (gpu.stream(), gpu.stream());
        stream.wait_point(pending).expect("a wait");
        other.wait_point(pending).expect("a wait");
        let unpark = Unpark::new();
        let mut future = pending.into_future();
        assert_eq!(poll(&mut future, &Waker::from(Arc::clone(&unpark))), Poll::Pending);
        assert_eq!(pending.query(), Ok(Progress::Pending));
        let now = [in_shm(std::process::id()), in_shm(peer.child.id())];
        assert_eq!(now, before, "{way}: what the two have of /dev/shm");
        std::thread::scope(|scope| {
            let waiters = [Point::wait_timeout, Point::spin_timeout]
                .map(|wait| scope.spawn(move || wait(&pending, PATIENCE)));
            peer.child.kill();
            for waiter in waiters {
                let found = error(waiter.join().expect("no panic"));
                assert_eq!(found, Error::ExporterGone, "{way}");
            }
        });
        wait_until("the future is woken", || unpark.woken() == 1);
        assert_eq!(poll(&mut future, Waker::noop()), Poll::Ready(Err(Error::ExporterGone)));
        idle(&stream);
        idle(&other);
        // They get the error at once from now on, and what was reached stays reached.
        assert_eq!(pending.query(), Err(Error::ExporterGone));
        assert_eq!(stream.wait_point(pending), Err(Error::ExporterGone));
        assert!(done.is_done() && !pending.is_done());
        assert_eq!((done.query(), stream.wait_point(done)), (Ok(Progress::Done), Ok(())));
        drop((imported, stream, other, future));
        assert!(done.is_done());
        drop(gpu);
    }
}

/// What a process has of /dev/shm, open or mapped. (What a maker leaves there is looked at in
/// `two_containers_share_timelines`, where it has one of its own.)
#[cfg(target_os = "linux")]
fn in_shm(process: u32) -> Vec<String> {
    let files = std::fs::read_dir(format!("/proc/{process}/fd")).expect("the process lives");
    let files = files.flatten().filter_map(|file| std::fs::read_link(file.path()).ok());
    let files = files.map(|file| file.to_string_lossy().into_owned());
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).expect("it lives");
    let maps = maps.lines().filter_map(|line| line.split_once('/').map(|(_, path)| path));
    let mut all: Vec<_> = files.chain(maps.map(|path| format!("/{path}"))).collect();
    all.retain(|path| path.starts_with("/dev/shm"));
    all.sort();
    all
}

/// Elsewhere there is none.
#[cfg(not(target_os = "linux"))]
fn in_shm(_: u32) -> [String; 0] {
    []
}

/// Streams alone wait: nobody on the host asks. They are released all the same, also when nothing
/// of the import is left.
#[test]
fn streams_alone_are_released() {
    for way in WAYS {
        for dropped in [false, true] {
            let Some(gpu) = gpu() else { return };
            let mut peer = Peer::start();
            let imported = make_and_open(&gpu.context, &mut peer, way);
            peer.step("hold");
            let pending = imported.point(peer.number("signal")).expect("a point");
            let stream = gpu.stream();
            stream.wait_point(pending).expect("a wait");
            let open = if dropped {
                drop(imported);
                None
            } else {
                Some(imported)
            };
            assert_eq!(stream.query(), Ok(Progress::Pending), "the maker lives");
            peer.child.kill();
            idle(&stream);
            drop(open);
        }
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

/// The bound, in counts: a wait ends the first time that it asks, by no call of the
/// driver.
#[test]
fn the_first_query_finds_the_end() {
    let Some(gpu) = gpu() else { return };
    let driver = counting(gpu.driver);
    let context = Device::new(driver, 0).and_then(Context::primary).expect("a context");
    for way in WAYS {
        for wait in [Point::query, Point::wait_minute, Point::spin_minute] {
            let mut peer = Peer::start();
            let (file, descriptor) = peer.make(if way == "sealed" { way } else { "writable" });
            let file = if way == "reading" { reading(&file) } else { file };
            let imported = ImportedTimeline::open(&context, file, &descriptor).expect("an import");
            peer.step("hold");
            let pending = imported.point(peer.number("signal")).expect("a point");
            peer.child.kill();
            assert_eq!(calls(|| wait(&pending)), (Err(Error::ExporterGone), vec![]), "{way}");
        }
    }
}

/// A loop of short waits ends, too.
#[test]
fn short_waits_learn_of_the_end() {
    let Some(gpu) = gpu() else { return };
    for way in WAYS {
        let mut peer = Peer::start();
        let imported = make_and_open(&gpu.context, &mut peer, way);
        peer.step("hold");
        let pending = imported.point(peer.number("signal")).expect("a point");
        let wait = || pending.spin_timeout(Duration::ZERO);
        assert_eq!(wait(), Ok(Progress::Pending));
        peer.child.kill();
        wait_until("the end is found", || wait() != Ok(Progress::Pending));
        assert_eq!(wait(), Err(Error::ExporterGone), "{way}");
    }
}

trait Minute {
    fn wait_minute(&self) -> Result<Progress>;
    fn spin_minute(&self) -> Result<Progress>;
}

impl Minute for Point {
    fn wait_minute(&self) -> Result<Progress> {
        self.wait_timeout(PATIENCE)
    }

    fn spin_minute(&self) -> Result<Progress> {
        self.spin_timeout(PATIENCE)
    }
}

/// One importer finds the maker dead and poisons the file: the others see that.
#[test]
fn other_importers_see_the_poison() {
    let Some(gpu) = gpu() else { return };
    let (mut maker, mut second) = (Peer::start(), Peer::start());
    let (file, descriptor) = maker.make("writable");
    second.give(&file, &descriptor);
    let raw = Mapping::new(&file, PAGE).expect("it can be mapped");
    let imported = open(&gpu, (file, descriptor));
    maker.step("hold");
    let value = maker.number("signal");
    second.step(&format!("submit {value}"));
    maker.child.kill();
    assert_eq!(second.step("idle"), "idle");
    wait_until("it is in the file", || raw.words()[8].load(Ordering::SeqCst) & 1 << 62 != 0);
    // By its words alone, in each process.
    assert_eq!(imported.point(value).expect("a point").query(), Err(Error::ExporterGone));
    assert_eq!(
        second.step(&format!("query {value}")),
        "Err(the process that had to signal the timeline has ended before it did; import from its \
         successor)"
    );
    second.end();
}

/// Who says that the maker has ended has it looked at, though nobody waits. That of one that lives has
/// no effect.
#[test]
fn an_import_by_a_file_is_asked_when_its_maker_is_said_to_have_ended() {
    let Some(gpu) = gpu() else { return };
    let mut peer = Peer::start();
    let imported = make_and_open(&gpu.context, &mut peer, "writable");
    let is_gone = || format!("{imported:?}").contains("exporter_gone: true");
    assert_eq!(imported.exporter_ended(), Ok(()));
    assert!(!is_gone(), "{imported:?}");
    peer.child.kill();
    assert!(!is_gone(), "nobody has asked: {imported:?}");
    assert_eq!(imported.exporter_ended(), Ok(()));
    assert!(is_gone(), "{imported:?}");
}

/// A write of the dead maker's device may come late, and take the poison away. A stream that comes
/// to its wait only then goes on nevertheless.
#[test]
fn poison_is_looked_after() {
    let Some(gpu) = gpu() else { return };
    let mut peer = Peer::start();
    let (file, descriptor) = peer.make("writable");
    let raw = Mapping::new(&file, PAGE).expect("it can be mapped");
    let word = &raw.words()[8 * usize::from(descriptor.to_bytes()[6])];
    let imported = open(&gpu, (file, descriptor));
    let pending = imported.point(100).expect("a point");
    let stream = gpu.stream();
    let latch = Latch::hold(&stream);
    stream.wait_point(pending).expect("a wait");
    peer.child.kill();
    wait_until("the end is seen", || word.load(Ordering::SeqCst) > 100);
    word.store(7, Ordering::SeqCst);
    latch.release();
    idle(&stream);
    assert_eq!(pending.query(), Err(Error::ExporterGone));
}

/// A forked child of the maker has all that the maker had, and does not pass for it.
#[cfg(target_os = "linux")]
#[test]
fn a_forked_child_of_the_maker_is_none() {
    let Some(gpu) = gpu() else { return };
    let mut peer = Peer::start();
    let imported = make_and_open(&gpu.context, &mut peer, "writable");
    peer.step("hold");
    let pending = imported.point(peer.number("signal")).expect("a point");
    let child = peer.number("fork");
    assert_eq!(pending.query(), Ok(Progress::Pending), "the maker lives");
    peer.child.kill();
    let found = pending.wait_timeout(PATIENCE);
    // SAFETY: it is the process that the peer has forked, which ends by this or by its alarm.
    let killed = unsafe { kill(child as i32, 9) };
    assert_eq!((found, killed), (Err(Error::ExporterGone), 0));
}

/// In peace: who waits for signals gets them, and then an end.
#[test]
fn a_dropped_timeline_ends_after_its_signals() {
    let Some(gpu) = gpu() else { return };
    for way in WAYS {
        let mut peer = Peer::start();
        let imported = make_and_open(&gpu.context, &mut peer, way);
        peer.step("hold");
        let pending = imported.point(peer.number("signal")).expect("a point");
        let never = imported.point(pending.value() + 1).expect("a point");
        let (stream, other) = (gpu.stream(), gpu.stream());
        stream.wait_point(pending).expect("a wait");
        other.wait_point(never).expect("a wait");
        peer.step("drop");
        // The maker has nothing of it any more, and the signal will come.
        assert_eq!(pending.query(), Ok(Progress::Pending), "{way}");
        assert_eq!(never.wait_timeout(Duration::from_millis(20)), Ok(Progress::Pending));
        assert_eq!(stream.query(), Ok(Progress::Pending));
        peer.step("release");
        reached(pending);
        idle(&stream);
        assert_eq!(error(never.wait_timeout(PATIENCE)), Error::Poisoned);
        idle(&other);
        peer.end();
        assert_eq!((pending.query(), never.query()), (Ok(Progress::Done), Err(Error::Poisoned)));
    }
}

/// The maker drops the whole file, and lives. A wait for a place that never was a timeline
/// ends, too.
#[test]
fn a_dropped_file_is_an_end() {
    let Some(gpu) = gpu() else { return };
    let file = TimelineFile::writable(&gpu.context).expect("a file");
    let timeline = HostTimeline::shared(&file).expect("a timeline");
    let bytes = timeline.descriptor().expect("it is shared").to_bytes();
    let empty = forged(bytes, |body| body[6] = 63);
    let empty = TimelineDescriptor::from_bytes(&empty).expect("a descriptor");
    let imported = open(&gpu, (memory::copy(&file), empty));
    drop(timeline);
    assert_eq!(
        imported.point(1).expect("a point").query(),
        Ok(Progress::Pending),
        "the file is there"
    );
    drop(file);
    // At once, unless another test starts a child at this moment: until its `exec`, the child has
    // the file open as well.
    let point = imported.point(1).expect("a point");
    assert_eq!(error(point.wait_timeout(PATIENCE)), Error::ExporterGone);
}

/// Counts this process's descriptors of `file`. Those of other files do not count: the thread may
/// still close what the maker has of a file that ended before.
#[cfg(target_os = "linux")]
fn descriptors(file: &TimelineFile) -> impl Fn() -> usize {
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::MetadataExt as _;
    let inode = |path: &Path| std::fs::metadata(path).map(|data| (data.dev(), data.ino()));
    let number = file.as_fd().as_raw_fd();
    let this = inode(&Path::new("/proc/self/fd").join(number.to_string())).expect("it is open");
    move || {
        let open = std::fs::read_dir("/proc/self/fd").expect("this process's files").flatten();
        open.flat_map(|file| inode(&file.path())).filter(|file| *file == this).count()
    }
}

/// After the end of a timeline nobody looks after those who waited for it: the thread lets go of
/// the import, and so of the file, while the maker lives.
#[cfg(target_os = "linux")]
#[test]
fn an_ended_timeline_is_let_go() {
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    for way in WAYS {
        let file = match way {
            "sealed" => TimelineFile::new(&gpu.context),
            _ => TimelineFile::writable(&gpu.context),
        };
        let file = file.expect("a file");
        let files = descriptors(&file);
        let timeline = Timeline::shared(gpu.stream(), &file).expect("a timeline");
        let descriptor = timeline.descriptor().expect("it is shared");
        let own = files();
        let given = match way {
            "reading" => reading(&file),
            _ => file.as_fd().try_clone_to_owned().expect("a file"),
        };
        let imported = open(&gpu, (given, descriptor));
        let stream = gpu.stream();
        stream
            .wait_point(imported.point(timeline.completed() + 1).expect("a point"))
            .expect("a wait");
        drop(imported);
        assert_eq!(files(), own + 1, "{way}: a stream waits");
        drop(timeline);
        idle(&stream);
        wait_until(&format!("{way}: the file is closed"), || files() == own);
    }
}

/// A graph that is never launched has captured a wait for an import. The file is open as long as
/// the graph may be launched, and no longer, while the maker lives.
#[cfg(target_os = "linux")]
#[test]
fn an_import_goes_with_the_graph_that_captured_it() {
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    for way in WAYS {
        let file = match way {
            "sealed" => TimelineFile::new(&gpu.context),
            _ => TimelineFile::writable(&gpu.context),
        };
        let file = file.expect("a file");
        let timeline = Timeline::shared(gpu.stream(), &file).expect("a timeline");
        let stream = gpu.stream();
        let files = descriptors(&file);
        let own = files();
        let captured = || {
            let given = match way {
                "reading" => reading(&file),
                _ => file.as_fd().try_clone_to_owned().expect("a file"),
            };
            let imported = open(&gpu, (given, timeline.descriptor().expect("it is shared")));
            let capture = common::begin_capture(&stream, CaptureMode::Relaxed).expect("a capture");
            stream
                .wait_point(imported.point(timeline.completed() + 1).expect("a point"))
                .expect("a wait");
            capture
        };
        for _ in 0..50 {
            drop(captured());
        }
        assert_eq!(files(), own, "{way}: no graph came about");
        let graph = captured().end().expect("a graph");
        let exec = graph.instantiate().expect("it is instantiated");
        drop(graph);
        assert_eq!(files(), own + 1, "{way}: it may be launched");
        drop(exec);
        assert_eq!(files(), own, "{way}: no launch can come");
        // A launch is a wait like any other.
        let exec = captured().end().and_then(|graph| graph.instantiate()).expect("a graph");
        exec.launch(&stream).expect("a launch");
        drop(exec);
        assert_eq!(files(), own + 1, "{way}: a stream waits");
        timeline.signal().expect("a signal");
        idle(&stream);
        wait_until("the file is closed", || files() == own);
    }
}

/// The maker is killed while a launch waits for it, or before the launch. The stream goes on, also
/// when nothing is left of the import and the graph.
#[test]
fn a_killed_maker_releases_launches() {
    for way in WAYS {
        for launched_before in [false, true] {
            let Some(gpu) = gpu() else { return };
            let mut peer = Peer::start();
            let imported = make_and_open(&gpu.context, &mut peer, way);
            peer.step("hold");
            let pending = imported.point(peer.number("signal")).expect("a point");
            let stream = gpu.stream();
            let capture = common::begin_capture(&stream, CaptureMode::Relaxed).expect("a capture");
            stream.wait_point(pending).expect("a wait");
            let exec = capture.end().and_then(|graph| graph.instantiate()).expect("a graph");
            drop(imported);
            if launched_before {
                exec.launch(&stream).expect("a launch");
                assert_eq!(stream.query(), Ok(Progress::Pending), "{way}");
            }
            peer.child.kill();
            if !launched_before {
                exec.launch(&stream).expect("a launch");
            }
            drop(exec);
            idle(&stream);
        }
    }
}

/// The maker's context fails: its signals return that, and importers get the poison.
#[test]
fn a_makers_failed_context_poisons() {
    let Some(gpu) = gpu() else { return };
    if gpu.soft().is_none() {
        return common::not_run(
            "a context that fails is the software driver's; on a GPU it would be everybody's",
        );
    }
    for way in WAYS {
        let mut peer = Peer::start();
        let imported = make_and_open(&gpu.context, &mut peer, way);
        peer.step("hold");
        let pending = imported.point(peer.number("signal")).expect("a point");
        let stream = gpu.stream();
        stream.wait_point(pending).expect("a wait");
        let mut future = pending.into_future();
        let unpark = Unpark::new();
        assert_eq!(poll(&mut future, &Waker::from(Arc::clone(&unpark))), Poll::Pending);
        assert_eq!(peer.step("fail"), "Err(true)");
        assert_eq!(error(pending.wait_timeout(PATIENCE)), Error::Poisoned);
        wait_until("the future is woken", || unpark.woken() == 1);
        assert_eq!(poll(&mut future, Waker::noop()), Poll::Ready(Err(Error::Poisoned)));
        idle(&stream);
        assert!(gpu.context.synchronize().is_ok(), "this one works");
        peer.child.kill();
    }
}

/// The maker's context fails while its host sleeps, and also when it has dropped all that it had of
/// the timeline.
#[test]
fn a_quiet_makers_failed_context_poisons() {
    let Some(gpu) = gpu() else { return };
    if gpu.soft().is_none() {
        return common::not_run(
            "a context that fails is the software driver's; on a GPU it would be everybody's",
        );
    }
    for way in WAYS {
        for dropped in [false, true] {
            let mut peer = Peer::start();
            let imported = make_and_open(&gpu.context, &mut peer, way);
            peer.step("hold");
            let pending = imported.point(peer.number("signal")).expect("a point");
            let stream = gpu.stream();
            stream.wait_point(pending).expect("a wait");
            if dropped {
                peer.step("drop");
            }
            assert_eq!(pending.query(), Ok(Progress::Pending), "{way}");
            peer.step("fail-quietly");
            assert_eq!(error(pending.wait_timeout(PATIENCE)), Error::Poisoned, "{way}");
            idle(&stream);
            peer.child.kill();
        }
    }
}

/// Importers learn of a signal that failed with its context. After any other error the next signal
/// reaches the point.
#[test]
fn a_failed_signal_ends_the_waits_of_importers() {
    // The crate's thread uses the counting driver, too.
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    let driver = counting(gpu.driver);
    let context = Device::new(driver, 0).and_then(Context::primary).expect("a context");
    for make in [TimelineFile::writable, TimelineFile::new] {
        let file = make(&context).expect("a file");
        let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
        let timeline = Timeline::shared(stream, &file).expect("a timeline");
        let mut peer = Peer::start();
        peer.give(memory::copy(&file), &timeline.descriptor().expect("it is shared"));
        let refused = timeline.submitted().expect("a value") + 1;
        fail_next(WRITE, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        assert!(timeline.signal().is_err());
        assert_eq!(peer.step(&format!("query {refused}")), "Ok(Pending)");
        reached(timeline.signal().expect("a signal"));
        assert_eq!(peer.step(&format!("wait {refused}")), "Ok(Done)");
        assert_eq!(peer.step(&format!("submit {}", refused + 2)), "submitted");
        fail_next(WRITE, CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
        assert!(timeline.signal().is_err());
        let ended = format!("{:?}", Err::<(), _>(Error::Poisoned));
        assert_eq!(peer.step(&format!("wait {}", refused + 2)), ended);
        assert_eq!(peer.step("idle"), "idle");
        peer.end();
    }
}

/// At once, and not when the timeline is dropped.
#[test]
fn poison_ends_the_waits_of_importers() {
    let Some(gpu) = gpu() else { return };
    for make in [TimelineFile::writable, TimelineFile::new] {
        let file = make(&gpu.context).expect("a file");
        let of_stream = Timeline::shared(gpu.stream(), &file).expect("a timeline");
        let of_host = HostTimeline::shared(&file).expect("a timeline");
        let poisons: [(_, u64, &dyn Fn() -> Result<()>); 2] = [
            (of_stream.descriptor(), of_stream.completed(), &|| of_stream.poison()),
            (of_host.descriptor(), of_host.completed(), &|| {
                of_host.poison();
                Ok(())
            }),
        ];
        for (descriptor, value, poison) in poisons {
            let mut peer = Peer::start();
            peer.give(memory::copy(&file), &descriptor.expect("it is shared"));
            assert_eq!(peer.step(&format!("submit {}", value + 1)), "submitted");
            assert_eq!(poison(), Ok(()));
            let ended = format!("{:?}", Err::<(), _>(Error::Poisoned));
            assert_eq!(peer.step(&format!("wait {}", value + 1)), ended);
            assert_eq!(peer.step("idle"), "idle");
            peer.end();
        }
    }
}

/// The crate's thread looks after what processes share. Where none shares anything, there is none.
/// Only Linux has a file with the number of threads of a process.
#[cfg(target_os = "linux")]
#[test]
fn only_what_is_shared_has_a_thread() {
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    let threads = || {
        let all = std::fs::read_dir("/proc/self/task").expect("this process's threads").flatten();
        let names = all.flat_map(|thread| std::fs::read_to_string(thread.path().join("comm")));
        names.filter(|name| name.trim_end() == "cuda-events").count()
    };
    let file = TimelineFile::writable(&gpu.context).expect("a file");
    let own = Timeline::new(gpu.stream()).expect("a timeline");
    let host = HostTimeline::shared(&file).expect("a timeline");
    for _ in 0..100 {
        reached(own.signal().expect("a signal"));
        reached(host.signal().expect("a signal"));
    }
    assert_eq!(threads(), 0);
    let shared = Timeline::shared(gpu.stream(), &file).expect("a timeline");
    wait_until("the thread starts", || threads() == 1);
    reached(shared.signal().expect("a signal"));
}

/// The importer's own context fails: a wait gets that error, and the maker's timeline is as
/// it was.
#[test]
fn an_importers_failed_context_ends_its_waits() {
    let Some(gpu) = gpu() else { return };
    let Some(soft) = gpu.soft() else {
        return common::not_run(
            "a context that fails is the software driver's; on a GPU it would be everybody's",
        );
    };
    let mut peer = Peer::start();
    let (file, descriptor) = peer.make("writable");
    let raw = Mapping::new(&file, PAGE).expect("it can be mapped");
    let imported = open(&gpu, (file, descriptor));
    peer.step("hold");
    let pending = imported.point(peer.number("signal")).expect("a point");
    let mut future = pending.into_future();
    let unpark = Unpark::new();
    assert_eq!(poll(&mut future, &Waker::from(Arc::clone(&unpark))), Poll::Pending);
    let code = CUresult::CUDA_ERROR_ILLEGAL_ADDRESS;
    soft.fail_contexts(code);
    assert_eq!(error(pending.wait_timeout(PATIENCE)).code(), Some(code));
    wait_until("the future is woken", || unpark.woken() == 1);
    let polled = poll(&mut future, Waker::noop());
    assert!(matches!(&polled, Poll::Ready(Err(error)) if error.code() == Some(code)), "{polled:?}");
    assert_eq!(raw.words()[9].load(Ordering::SeqCst), 0, "nobody poisoned it");
    peer.step("release");
    wait_until("it is reached", || pending.is_done());
    peer.end();
}

/// Numbers from a seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
}

/// Somebody writes any bytes, all the time. Points seem reached, pending, or at an end; nothing
/// else happens, and at the maker's end everybody is released.
#[test]
fn any_bytes_in_the_file_do_no_harm() {
    const ROUNDS: usize = 150;
    for way in WAYS {
        let Some(gpu) = gpu() else { return };
        let mut peer = Peer::start();
        let (file, descriptor) = peer.make("writable");
        let raw = Mapping::new(&file, PAGE).expect("it can be mapped");
        let file = if way == "reading" { reading(&file) } else { file };
        let imported = open(&gpu, (file, descriptor));
        let over = AtomicBool::new(false);
        let streams: Vec<Stream> = (0..3).map(|_| gpu.stream()).collect();
        std::thread::scope(|scope| {
            let (words, over) = (raw.words(), &over);
            let scribble = scope.spawn(move || {
                let mut random = Random(0x5EED);
                while !over.load(Ordering::SeqCst) {
                    for word in words {
                        let interesting =
                            [0, 1, random.next(), 1 << 62, (1 << 62) - 1, u64::MAX, 1 << 63, 7];
                        let value = interesting[random.next() as usize % interesting.len()];
                        word.store(value, Ordering::Relaxed);
                    }
                }
            });
            let mut random = Random(0xF00D);
            let allowed = |result: Result<Progress>| {
                let expected = [
                    Ok(Progress::Done),
                    Ok(Progress::Pending),
                    Err(Error::Poisoned),
                    Err(Error::ExporterGone),
                ];
                assert!(expected.contains(&result), "{result:?}");
            };
            let mut futures = Vec::new();
            for round in 0..ROUNDS {
                let point = imported.point(random.next() >> (round % 64)).expect("a point");
                let _ = (point.is_done(), imported.completed(), format!("{point:?} {imported:?}"));
                allowed(point.query());
                allowed(point.wait_timeout(Duration::from_micros(50)));
                allowed(point.spin_timeout(Duration::from_micros(50)));
                allowed(streams[round % streams.len()].wait_point(point).map(|()| Progress::Done));
                let mut future = point.into_future();
                if let Poll::Ready(result) = poll(&mut future, Waker::noop()) {
                    allowed(result.map(|()| Progress::Done));
                }
                futures.push(future);
            }
            // The last words: nobody is released by them.
            over.store(true, Ordering::SeqCst);
            scribble.join().expect("no panic");
            words.iter().for_each(|word| word.store(0, Ordering::SeqCst));
            peer.child.kill();
            // A value that was reached and taken back is nobody's to look after, until one asks. A
            // query asks seldom.
            let last = imported.point(u64::MAX).expect("a point");
            wait_until("somebody asks", || last.query().is_err());
            for stream in &streams {
                idle(stream);
            }
            for future in futures {
                let result = block_on(future).map(|()| Progress::Done);
                allowed(result.clone());
                assert_ne!(result, Ok(Progress::Pending));
            }
        });
    }
}

/// The maker has ended, and somebody erases the poison before a stream comes to its wait. A
/// query of a point then releases the stream again.
#[test]
fn a_query_puts_erased_poison_back() {
    common::own_process!("order=off");
    let Some(gpu) = gpu() else { return };
    let mut peer = Peer::start();
    let (file, descriptor) = peer.make("writable");
    let raw = Mapping::new(&file, PAGE).expect("it can be mapped");
    let imported = open(&gpu, (file, descriptor));
    peer.step("hold");
    let lost = imported.point(peer.number("signal")).expect("a point");
    let stream = gpu.stream();
    let latch = Latch::hold(&stream);
    stream.wait_point(lost).expect("a wait");
    peer.child.kill();
    wait_until("somebody asks", || lost.query() == Err(Error::ExporterGone));
    // For a second the crate's thread would put it back.
    std::thread::sleep(Duration::from_millis(1500));
    raw.words()[8..10].iter().for_each(|word| word.store(0, Ordering::SeqCst));
    latch.release();
    assert_eq!(lost.query(), Err(Error::ExporterGone));
    idle(&stream);
}

/// A process that has the file can write any reason for which the timeline is poisoned. The maker
/// does not believe that its own driver has reported it.
#[test]
fn a_forged_reason_is_not_believed() {
    let Some(gpu) = gpu() else { return };
    let file = TimelineFile::writable(&gpu.context).expect("a file");
    let raw = Mapping::new(&file, PAGE).expect("it can be mapped");
    let timeline = Timeline::shared(gpu.stream(), &file).expect("a timeline");
    let latch = Latch::hold(timeline.stream());
    let point = timeline.signal().expect("a signal");
    let (value, reason) = (&raw.words()[8], &raw.words()[9]);
    let other = gpu.stream();
    let untouched = value.load(Ordering::SeqCst);
    let unpark = Unpark::new();
    let mut future = point.into_future();
    assert_eq!(poll(&mut future, &Waker::from(Arc::clone(&unpark))), Poll::Pending);
    let errors = || {
        [
            point.query(),
            point.wait().map(|()| Progress::Done),
            point.spin().map(|()| Progress::Done),
            point.spin_timeout(PATIENCE),
            other.wait_point(point).map(|()| Progress::Done),
            timeline.wait_ahead(&other, point.value() + 1).map(|()| Progress::Done),
        ]
    };
    // Errors of the driver, of which some are sticky; the marks of this crate; and nothing but the
    // bit in the value.
    for forged in [700, 719, 600, 4, 0xFFFF_FFFF, u64::MAX - 1, u64::MAX, 1 << 40, 0] {
        reason.store(forged, Ordering::SeqCst);
        value.fetch_or(1 << 62, Ordering::SeqCst);
        assert!(errors().iter().all(|seen| *seen == Err(Error::Poisoned)), "{forged}");
    }
    wait_until("the future is woken", || unpark.woken() > 0);
    assert_eq!(poll(&mut future, Waker::noop()), Poll::Ready(Err(Error::Poisoned)));
    // All of it is taken back.
    reason.store(0, Ordering::SeqCst);
    value.store(untouched, Ordering::SeqCst);
    assert_eq!(point.query(), Ok(Progress::Pending));
    if let Some(soft) = gpu.soft() {
        let code = CUresult::CUDA_ERROR_ILLEGAL_ADDRESS;
        soft.fail_contexts(code);
        // What this process has found by itself stays so, whatever is written there.
        for forged in [0, 719, u64::MAX] {
            let codes = errors().map(|seen| seen.map_err(|error| error.code()));
            assert!(codes.iter().all(|seen| *seen == Err(Some(code))), "{codes:?}");
            reason.store(forged, Ordering::SeqCst);
            value.store(untouched, Ordering::SeqCst);
        }
    }
    drop(latch);
}

/// Somebody takes a value back after a future was woken for it, and before the task has looked. It
/// waits anew.
#[test]
fn a_future_waits_anew_for_a_value_taken_back() {
    let Some(gpu) = gpu() else { return };
    let mut peer = Peer::start();
    let (file, descriptor) = peer.make("writable");
    let raw = Mapping::new(&file, PAGE).expect("it can be mapped");
    let word = &raw.words()[8];
    let imported = open(&gpu, (file, descriptor));
    let unpark = Unpark::new();
    let waker = Waker::from(Arc::clone(&unpark));
    let mut future = imported.point(5).expect("a point").into_future();
    assert_eq!(poll(&mut future, &waker), Poll::Pending);
    word.store(5, Ordering::SeqCst);
    wait_until("the future is woken", || unpark.woken() == 1);
    word.store(4, Ordering::SeqCst);
    assert_eq!(poll(&mut future, &waker), Poll::Pending);
    // It has asked to be polled again, at once.
    assert_eq!(unpark.woken(), 2);
    assert_eq!(poll(&mut future, &waker), Poll::Pending);
    word.store(5, Ordering::SeqCst);
    wait_until("the future is woken again", || unpark.woken() == 3);
    assert_eq!(poll(&mut future, &waker), Poll::Ready(Ok(())));
    peer.end();
}

fn refused(gpu: &Gpu, file: Shared, descriptor: &TimelineDescriptor) -> Refusal {
    match ImportedTimeline::open(&gpu.context, file, descriptor) {
        Err(Error::SharedTimeline(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

/// What is not safe to look at, and why it is refused.
#[cfg(target_os = "linux")]
fn unsafe_files() -> Vec<(Shared, Refusal)> {
    use common::memory::{ALL_SEALS, SealFlags};
    // Not memory at all.
    let (socket, _other) = std::os::unix::net::UnixStream::pair().expect("a socket");
    let exe = std::fs::File::open("/proc/self/exe").expect("this binary");
    let mut files = vec![(socket.into(), Refusal::NotMemory), (exe.into(), Refusal::NotMemory)];
    // Without one of the seals.
    for missing in [SealFlags::SHRINK, SealFlags::GROW, SealFlags::SEAL] {
        files.push((memory::file(PAGE as u64, ALL_SEALS - missing), Refusal::Unsealed));
    }
    // Of another size, also one that was truncated before it was sealed.
    for bytes in [0, 64, PAGE as u64 - 1, PAGE as u64 + 1, 1 << 33] {
        let found = u32::try_from(bytes).unwrap_or(u32::MAX);
        let expected = Refusal::FileSize { found, expected: PAGE as u32 };
        files.push((memory::file(bytes, ALL_SEALS), expected));
    }
    files
}

#[cfg(windows)]
fn unsafe_files() -> Vec<(Shared, Refusal)> {
    // Not memory at all, and memory of a file on a disk.
    let exe =
        || std::fs::File::open(std::env::current_exe().expect("a path")).expect("this binary");
    let named = std::env::temp_dir().join(format!("cuda-events-test-{}", std::process::id()));
    let mut disk = std::fs::File::options();
    let disk =
        disk.read(true).write(true).create(true).truncate(true).open(&named).expect("a file");
    disk.set_len(PAGE as u64).expect("a file");
    let of_disk = memory::of_file(&disk, PAGE as u64);
    let mut files = vec![(exe().into(), Refusal::NotMemory), (of_disk, Refusal::NotMemory)];
    // With pages that are not there.
    let reserved = memory::of_kind(PAGE as u64, memory::RESERVED);
    files.push((reserved, Refusal::Unsealed));
    // Of another size. The system counts in pages.
    for pages in [2, 16, 1 << 12] {
        let found = pages * PAGE as u32;
        let expected = Refusal::FileSize { found, expected: PAGE as u32 };
        files.push((memory::plain(found as usize), expected));
    }
    files
}

/// Each reason for which a file is refused is its own error.
#[test]
fn files_that_are_not_safe_are_refused() {
    let Some(gpu) = gpu() else { return };
    let file = TimelineFile::writable(&gpu.context).expect("a file");
    let timeline = Timeline::shared(gpu.stream(), &file).expect("a timeline");
    let descriptor = timeline.descriptor().expect("it is shared");
    for (number, (bad, refusal)) in unsafe_files().into_iter().enumerate() {
        assert_eq!(refused(&gpu, bad, &descriptor), refusal, "{number}");
    }
    // Of the right size, and something else.
    assert_eq!(refused(&gpu, memory::safe(&[]), &descriptor), Refusal::FileMagic);
    let strange = memory::safe(&[u64::from(u32::from_le_bytes(*b"CUTL")) | 9 << 32]);
    let version = Refusal::FileVersion { found: 9, expected: 1 };
    assert_eq!(refused(&gpu, strange, &descriptor), version);
    // Another file than the descriptor's.
    let other = TimelineFile::writable(&gpu.context).expect("a file");
    let copy = memory::copy(&other);
    assert_eq!(refused(&gpu, copy, &descriptor), Refusal::OtherFile);
    // And the right one.
    let copy = memory::copy(&file);
    let imported = open(&gpu, (copy, descriptor));
    let point = imported.point(timeline.signal().expect("a signal").value()).expect("a point");
    reached(point);
}

#[test]
fn damaged_descriptors_are_refused() {
    let Some(gpu) = gpu() else { return };
    let file = TimelineFile::writable(&gpu.context).expect("a file");
    let timeline = HostTimeline::shared(&file).expect("a timeline");
    let descriptor = timeline.descriptor().expect("it is shared");
    let bytes = descriptor.to_bytes();
    assert_eq!(TimelineDescriptor::from_bytes(&bytes), Ok(descriptor));
    each_damage_is_refused(&bytes);
    assert_eq!(Timeline::new(gpu.stream()).expect("a timeline").descriptor(), None);
}

/// The kernel holds importers to what they may do.
#[cfg(target_os = "linux")]
#[test]
fn importers_cannot_change_the_file() {
    use common::memory::SealFlags;
    use std::os::fd::{AsFd as _, AsRawFd as _};
    let Some(gpu) = gpu() else { return };
    let exposed = TimelineFile::writable(&gpu.context).expect("a file");
    let sealed = TimelineFile::new(&gpu.context).expect("a file");
    // As it is lent, and opened again for writing, which root and the same user may do.
    let path = format!("/proc/self/fd/{}", sealed.as_fd().as_raw_fd());
    let again = std::fs::File::options().read(true).write(true).open(path).ok();
    let again = again.as_ref().map(|file| (file.as_fd(), false));
    let files = [(exposed.as_fd(), true), (sealed.as_fd(), false)];
    for (file, writable) in files.into_iter().chain(again) {
        for bytes in [0, 64, 2 * PAGE as u64] {
            assert!(rustix::fs::ftruncate(file, bytes).is_err(), "{bytes}");
        }
        assert!(rustix::fs::fcntl_add_seals(file, SealFlags::WRITE).is_err());
        assert_eq!(Mapping::new(file, PAGE).is_ok(), writable);
        assert_eq!(rustix::io::pwrite(file, &[0; 8], 64).is_ok(), writable);
        let punch = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
        assert_eq!(rustix::fs::fallocate(file, punch, 0, PAGE as u64).is_ok(), writable);
    }
    // Another user who is given it for reading cannot open it for writing.
    for file in [&exposed, &sealed] {
        let mode = rustix::fs::fstat(file).expect("an open file").st_mode;
        assert_eq!(mode & 0o777, 0o400);
    }
    let read_only = reading(&exposed);
    assert!(Mapping::new(&read_only, PAGE).is_err());
}

/// The system holds importers to what they may do, and gives them no stronger handle.
#[cfg(windows)]
#[test]
fn importers_cannot_change_the_file() {
    let Some(gpu) = gpu() else { return };
    let exposed = TimelineFile::writable(&gpu.context).expect("a file");
    let sealed = TimelineFile::new(&gpu.context).expect("a file");
    assert!(Mapping::new(&exposed, PAGE).is_ok());
    for file in [memory::copy(&sealed), reading(&exposed), reading(&sealed)] {
        assert!(Mapping::for_reading(&file, PAGE).is_ok());
        assert!(Mapping::new(&file, PAGE).is_err());
        for (what, access) in memory::STRONGER {
            assert!(memory::with_access(&file, access).is_err(), "{what}");
        }
    }
    // One with the same words that is another: what was seen of the first is not taken for it.
    let timeline = HostTimeline::shared(&sealed).expect("a timeline");
    let descriptor = timeline.descriptor().expect("it is shared");
    let forged = Mapping::for_reading(&sealed, PAGE).expect("it can be mapped");
    let words: Vec<u64> = forged.words().iter().map(|word| word.load(Ordering::SeqCst)).collect();
    let forged = memory::safe(&words);
    let mapped = Mapping::new(&forged, PAGE).expect("it is ours");
    let seen = open(&gpu, (forged, descriptor));
    mapped.words()[8].store(7, Ordering::SeqCst);
    assert_eq!(seen.completed(), 7);
    assert_eq!(open(&gpu, (memory::copy(&sealed), descriptor)).completed(), 0);
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
    let driver = counting(gpu.driver);
    let context = Device::new(driver, 0).and_then(Context::primary).expect("a context");
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

/// A process that is given a sealed file cannot pass for its maker: it gets no lock, now or later,
/// and the maker's end is seen.
#[cfg(target_os = "linux")]
#[test]
fn nobody_passes_for_the_maker_of_a_sealed_file() {
    use rustix::fs::OFlags;
    use std::os::fd::AsFd as _;
    let Some(gpu) = gpu() else { return };
    let mut peer = Peer::start();
    let (file, descriptor) = peer.make("sealed");
    let flags = rustix::fs::fcntl_getfl(&file).expect("an open file");
    assert_eq!(flags & OFlags::ACCMODE, OFlags::RDONLY);
    let imported = open(&gpu, (file.try_clone().expect("a file"), descriptor));
    peer.step("hold");
    let pending = imported.point(peer.number("signal")).expect("a point");
    let stream = gpu.stream();
    stream.wait_point(pending).expect("a wait");
    let mine = reading(&file);
    for (what, file) in [("the description", &file), ("another", &mine)] {
        let refused = lock(file.as_fd(), 1).expect_err(what);
        assert_eq!(refused.raw_os_error(), Some(rustix::io::Errno::BADF.raw_os_error()), "{what}");
    }
    // A lock for reading keeps nobody from asking.
    lock(file.as_fd(), 0).expect_err("the maker has its own");
    peer.child.kill();
    wait_until("the maker's lock is gone", || lock(mine.as_fd(), 0).is_ok());
    assert_eq!(error(pending.wait_timeout(PATIENCE)), Error::ExporterGone);
    idle(&stream);
}

/// Takes a lock of the whole file's description, for reading (0) or writing (1), if it is free.
#[cfg(target_os = "linux")]
fn lock(file: std::os::fd::BorrowedFd<'_>, kind: i16) -> std::io::Result<()> {
    /// `struct flock`, with 64-bit offsets.
    #[repr(C)]
    struct Lock {
        kind: i16,
        whence: i16,
        start: i64,
        length: i64,
        process: i32,
    }
    unsafe extern "C" {
        fn fcntl(file: i32, command: i32, ...) -> i32;
    }
    const SET_LOCK: i32 = 37;
    let lock = Lock { kind, whence: 0, start: 0, length: 0, process: 0 };
    // SAFETY: the command takes a lock of this layout.
    match unsafe { fcntl(std::os::fd::AsRawFd::as_raw_fd(&file), SET_LOCK, &raw const lock) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// A server imports a timeline for each request: the thousandth import costs what the first ones
/// did, also where streams wait for a relay and where makers have died.
#[test]
fn old_imports_cost_new_ones_nothing() {
    const MANY: usize = 1000;
    let Some(gpu) = gpu() else { return };
    let driver = counting(gpu.driver);
    let context = Device::new(driver, 0).and_then(Context::primary).expect("a context");
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
        // Gives the shares back.
        drop(HostTimeline::new(&gpu.context));
        peer.end();
    }
}

/// In a forked child nothing of it works, and dropping does nothing to the parent.
#[cfg(target_os = "linux")]
#[test]
fn a_forked_child_imports_nothing() {
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    let mut peer = Peer::start();
    let (theirs, descriptor) = peer.make("sealed");
    let copy = theirs.try_clone().expect("a file");
    let imported = open(&gpu, (theirs, descriptor));
    let file = TimelineFile::writable(&gpu.context).expect("a file");
    let own = Timeline::shared(gpu.stream(), &file).expect("a timeline");
    let copy_of_own = memory::copy(&file);
    let seen = open(&gpu, (copy_of_own, own.descriptor().expect("it is shared")));
    peer.step("hold");
    let value = peer.number("signal");
    let stream = gpu.stream();
    stream.wait_point(imported.point(value).expect("a point")).expect("a wait");
    // One that no stream waits for, so that nobody else has a share of it.
    let mut second = Peer::start();
    let quiet = make_and_open(&gpu.context, &mut second, "sealed");
    let mut inherited = Some((imported, file, own, copy, quiet));
    let (output, status) = common::fork::in_child(|| {
        let (imported, file, own, copy, quiet) = inherited.take().expect("it was there");
        let forked = |result: Result<()>| match result {
            Err(error @ Error::Cuda(ForkedChild { .. })) => error.is_sticky(),
            other => panic!("{other:?}"),
        };
        let point = imported.point(value).expect("a point");
        assert!(forked(TimelineFile::writable(&gpu.context).map(drop)));
        assert!(forked(HostTimeline::shared(&file).map(drop)));
        assert!(forked(ImportedTimeline::open(&gpu.context, copy, &descriptor).map(drop)));
        assert!(forked(point.query().map(drop)));
        assert!(forked(point.wait()));
        assert!(forked(stream.wait_point(point)));
        let polled = poll(&mut point.into_future(), Waker::noop());
        assert!(matches!(polled, Poll::Ready(Err(Error::Cuda(ForkedChild { .. })))));
        drop((imported, file, own, quiet));
        String::from("well")
    });
    assert_eq!((output.as_str(), status), ("well", 0));
    let (imported, file, own, _, quiet) = inherited.expect("the child took its own");
    let late = gpu.stream();
    late.wait_point(quiet.point(1).expect("a point")).expect("a wait");
    assert_eq!(late.synchronize_timeout(Duration::from_millis(20)), Ok(Progress::Pending));
    assert_eq!(second.number("signal"), 1);
    idle(&late);
    second.end();
    // The parent's files live, and nobody is released.
    assert_eq!(stream.query(), Ok(Progress::Pending));
    assert_eq!(
        seen.point(1).expect("a point").query(),
        Ok(Progress::Pending),
        "this process lives"
    );
    peer.step("release");
    idle(&stream);
    assert!(imported.point(value).expect("a point").is_done());
    let point = own.signal().expect("a signal");
    reached(seen.point(point.value()).expect("a point"));
    drop(file);
    peer.end();
}

/// A forked child that drops an import leaves the line alone for which the parent's streams waited.
/// The parent may have given that line to another timeline.
#[cfg(target_os = "linux")]
#[test]
fn a_forked_child_settles_no_line_of_the_parent() {
    use std::io::{Read as _, Write as _};
    /// More than a page has.
    const MANY: usize = 65;
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    let file = TimelineFile::new(&gpu.context).expect("a file");
    let maker = HostTimeline::shared(&file).expect("a timeline");
    let imported = open(&gpu, (memory::copy(&file), maker.descriptor().expect("it is shared")));
    let imported = std::sync::Mutex::new(Some(imported));
    let (mut forked, mut has_forked) = std::io::pipe().expect("a pipe");
    let (mut dropped, mut has_dropped) = std::io::pipe().expect("a pipe");
    std::thread::scope(|scope| {
        let child = scope.spawn(|| {
            common::fork::in_child(|| {
                let imported = imported.lock().expect("nobody has it").take();
                has_forked.write_all(&[1]).expect("the parent reads");
                dropped.read_exact(&mut [0]).expect("the parent writes");
                drop(imported);
                String::from("well")
            })
        });
        forked.read_exact(&mut [0]).expect("the child writes");
        // Another timeline gets its line, and is poisoned.
        drop(imported.lock().expect("nobody has it").take());
        let stream = Arc::new(gpu.stream());
        let latch = Latch::hold(&stream);
        let points: Vec<Point> = (0..MANY)
            .map(|_| {
                let timeline = Timeline::new(Arc::clone(&stream)).expect("a timeline");
                let point = timeline.signal().expect("a signal");
                timeline.poison().expect("the stream works");
                point
            })
            .collect();
        has_dropped.write_all(&[1]).expect("the child reads");
        assert_eq!(child.join().expect("no panic"), (String::from("well"), 0));
        for point in points {
            assert_eq!(point.query(), Err(Error::Poisoned));
        }
        latch.release();
        idle(&stream);
    });
}

/// Puts a process that is about to start into mounts, process ids and interprocess objects of its
/// own, as a container does.
#[cfg(target_os = "linux")]
fn contain() -> std::io::Result<()> {
    const NEW_MOUNTS: i32 = 0x0002_0000;
    const NEW_IPC: i32 = 0x0800_0000;
    const NEW_PIDS: i32 = 0x2000_0000;
    const DIE_WITH_THE_PARENT: i32 = 1;
    let (recursive, private) = (1 << 14, 1 << 18);
    let (none, nothing) = (std::ptr::null(), std::ptr::null());
    // SAFETY: C strings and NULL where nothing is meant; only this process's own surroundings
    // change.
    let done = unsafe {
        unshare(NEW_MOUNTS | NEW_IPC | NEW_PIDS) == 0
            && mount(none, c"/".as_ptr(), none, recursive | private, nothing) == 0
            && mount(c"tmpfs".as_ptr(), c"/dev/shm".as_ptr(), c"tmpfs".as_ptr(), 0, nothing) == 0
    };
    if !done {
        return Err(std::io::Error::last_os_error());
    }
    // The first process of the new ids is a child; this one ends with it, and it with this one.
    // SAFETY: this process has one thread, and both go on with system calls only.
    unsafe {
        let child = fork();
        if child > 0 {
            // So that nobody waits for this one to close them.
            for file in 0..1024 {
                close(file);
            }
            let mut status = 0;
            waitpid(child, &mut status, 0);
            _exit(if status == 0 { 0 } else { 1 });
        }
        prctl(DIE_WITH_THE_PARENT, 9);
        // Its own view of the process ids.
        mount(c"proc".as_ptr(), c"/proc".as_ptr(), c"proc".as_ptr(), 0, nothing);
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn contained(command: &mut Command) {
    // SAFETY: it makes system calls only.
    unsafe { std::os::unix::process::CommandExt::pre_exec(command, contain) };
}

/// Two processes that share nothing but a socket, as two containers do: the one is in namespaces of
/// its own, where the other's process id means nothing. Orders go both ways, and a killed one is
/// noticed.
#[cfg(target_os = "linux")]
#[test]
fn two_containers_share_timelines() {
    let mut command = Command::new("true");
    contained(&mut command);
    if let Err(error) = command.status() {
        return common::say_not_run(&format!("no namespaces can be made here: {error}"));
    }
    let Some(gpu) = gpu() else { return };
    for kind in ["writable", "sealed"] {
        let mut peer = Peer::start_with(contained);
        peer.step("signals-nothing");
        // It stays as long as it is open here.
        let shm = std::fs::File::open(format!("/proc/{}/root/dev/shm", peer.child.id()));
        let shm = shm.expect("its own");
        let names = || {
            let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&shm));
            let entries = std::fs::read_dir(path).expect("a folder").flatten();
            entries.map(|entry| entry.file_name()).collect::<std::collections::BTreeSet<_>>()
        };
        let before = names();
        let imported = make_and_open(&gpu.context, &mut peer, kind);
        let file = TimelineFile::writable(&gpu.context).expect("a file");
        let own = Timeline::shared(gpu.stream(), &file).expect("a timeline");
        peer.give(&file, &own.descriptor().expect("it is shared"));
        for way in ["stream", "wait", "await"] {
            let latch = Latch::hold(own.stream());
            let value = own.signal().expect("a signal").value();
            peer.begin(&format!("{way} {value}"));
            latch.release();
            let reply = peer.child.receive();
            assert!(matches!(reply.as_str(), "Ok(Done)" | "Ok(\"Done\")"), "{way}: {reply}");
            let point = imported.point(peer.number("signal")).expect("a point");
            let stream = gpu.stream();
            stream.wait_point(point).expect("a wait");
            idle(&stream);
            reached(point);
        }
        peer.step("hold");
        let pending = imported.point(peer.number("signal")).expect("a point");
        let stream = gpu.stream();
        stream.wait_point(pending).expect("a wait");
        assert_eq!(pending.query(), Ok(Progress::Pending));
        // It dies with its parent. Its input is open until then: the end of that would end it, too,
        // and not by a signal.
        peer.child.kill_only();
        assert_eq!(error(pending.wait_timeout(PATIENCE)), Error::ExporterGone);
        idle(&stream);
        assert_eq!(names(), before, "nothing stays in /dev/shm");
    }
}
