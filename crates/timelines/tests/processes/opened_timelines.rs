//! Timelines that processes share by bytes alone: handles of device memory.
//!
//! The tests send commands to another process, their peer; see `handle_peer`.

use crate::common;

use std::future::IntoFuture;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::task::{Poll, Waker};
use std::time::Duration;

use common::child::{Child, end_after, from_hex, hear, role, say, starts_are_made_up, to_hex};
use common::counting::{Watched, calls, counting, fail_next};
use common::futures::{Unpark, block_on, wait_until};
use common::memory;
use common::timelines::{
    PATIENCE, WAIT, WRITE, each_damage_is_refused, forged, idle, poll, reached,
};
use common::{Gpu, Latch, Other};
use cuda_events::Error::ForkedChild;
use cuda_events::capture::{CaptureMode, CaptureStatus};
use cuda_events::graph::Graph;
use cuda_events::ipc::ExporterState;
use cuda_events::sys::{CUresult, CUstreamCaptureMode, Function};
use cuda_events::{Context, Device, Progress, Stream, StreamOptions, Version};
use cuda_soft_driver::{Fault, abi};
use cuda_timelines::{
    CudaStreamExt, Error, ImportedTimeline, Point, Result, SharedTimelineError as Refusal,
    Timeline, TimelineDescriptor, TimelineFile, TimelineMemory,
};

use crate::shared_timelines::Data;

const RECORD: Function = Function::cuEventRecord;
const COPY: Function = Function::cuMemcpyDtoHAsync_v2;
const PEER: &str = "handle-peer";

/// None where the maker of a handle cannot be found by the start of its process.
fn gpu() -> Option<Gpu> {
    if starts_are_made_up() { None } else { common::timelines::gpu() }
}

/// For tests in which a maker ends while points are pending. One byte of its word is written then,
/// without an order to copies of the word that are over: whatever they get is only compared.
macro_rules! rescued {
    () => {
        common::own_process!("order=off");
    };
}

fn open(context: &Context, handle: &TimelineDescriptor) -> Result<ImportedTimeline> {
    // SAFETY: the peer keeps the memory until it gets the command to end, or is killed.
    unsafe { ImportedTimeline::open_memory(context, handle) }
}

fn parse(text: &str) -> TimelineDescriptor {
    TimelineDescriptor::from_bytes(&from_hex(text)).expect("a handle")
}

/// Not a test: the other process. Each line that it hears is one step, which it answers with the
/// result.
#[test]
#[ignore = "the other process, which the tests start: cargo test -p cuda-timelines --test processes"]
fn handle_peer() {
    assert_eq!(role().as_deref(), Some(PEER), "this is no test of its own");
    end_after(300);
    let gpu = Gpu::new();
    let consumer = gpu.stream();
    let (mut memory, mut timeline, mut latch) = (None::<TimelineMemory>, None, None);
    let (mut opened, mut data) = (Vec::new(), None::<Data>);
    let report = |result: Result<Progress>| match result {
        Ok(Progress::Done) => say("done"),
        Ok(Progress::Pending) => say("pending"),
        Err(Error::ExporterGone) => say("gone"),
        Err(Error::Poisoned) => say("poisoned"),
        Err(error) => say(&format!("{error}")),
    };
    loop {
        let line = hear();
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse::<u64>().expect("a number");
        let point = || opened.last().map(|last: &ImportedTimeline| last.point(number(1)));
        let point = || point().expect("an import").expect("a point");
        match words[0] {
            "make" => {
                let made = TimelineMemory::new(&gpu.context).expect("memory");
                let own = Timeline::in_memory(gpu.stream(), &made).expect("a timeline");
                say(&to_hex(&own.descriptor().expect("it is in memory").to_bytes()));
                (memory, timeline) = (Some(made), Some(own));
            }
            "open" => {
                opened.push(open(&gpu.context, &parse(words[1])).expect("it can be opened"));
                say("opened");
            }
            "data" => {
                data = Some(Data::new(&gpu, memory::at(words[1])));
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
                say("done");
            }
            "wait" => report(point().wait_timeout(PATIENCE)),
            "await" => report(block_on(async { point().await }).map(|()| Progress::Done)),
            "query" => report(point().query()),
            "drop" => {
                timeline = None;
                say("dropped");
            }
            "end" => break,
            other => panic!("{other:?} is no step"),
        }
    }
    // What is held first: the memory waits for the streams.
    drop(latch);
    drop((timeline, memory));
}

/// In a test: the other process.
struct Peer(Child);

impl Peer {
    fn start() -> Self {
        Self(Child::start("handle_peer", PEER))
    }

    #[track_caller]
    fn step(&mut self, step: &str) -> String {
        self.0.send(step);
        self.0.receive()
    }

    #[track_caller]
    fn number(&mut self, step: &str) -> u64 {
        self.step(step).parse().expect("a number")
    }

    fn make(&mut self) -> TimelineDescriptor {
        parse(&self.step("make"))
    }

    #[track_caller]
    fn open(&mut self, timeline: &Timeline) {
        let handle = timeline.descriptor().expect("it is in memory");
        assert_eq!(self.step(&format!("open {}", to_hex(&handle.to_bytes()))), "opened");
    }

    #[track_caller]
    fn end(mut self) {
        self.0.send("end");
        self.0.finish();
    }
}

/// Another process, and its timeline here.
fn peer(gpu: &Gpu) -> (Peer, ImportedTimeline) {
    let mut peer = Peer::start();
    let opened = open(&gpu.context, &peer.make()).expect("it can be opened");
    (peer, opened)
}

/// A timeline of this process, for others.
fn own(gpu: &Gpu) -> (TimelineMemory, Timeline) {
    let memory = TimelineMemory::new(&gpu.context).expect("memory");
    assert_eq!(memory.context(), &gpu.context);
    let timeline = Timeline::in_memory(gpu.stream(), &memory).expect("a timeline");
    (memory, timeline)
}

#[track_caller]
fn error(result: Result<Progress>) -> Error {
    match result {
        Err(error) => error,
        Ok(progress) => panic!("{progress:?}, and no error"),
    }
}

/// Each launch of a graph writes the device's memory, which the peer reads, and the own line.
#[test]
fn a_graph_signals_by_handles() {
    let Some(gpu) = gpu() else { return };
    if !common::needs(gpu.driver, Function::cuGraphAddBatchMemOpNode) {
        return;
    }
    let (memory, timeline) = own(&gpu);
    let mut peer = Peer::start();
    peer.open(&timeline);
    let graph = Graph::new(&gpu.context).expect("a graph");
    let before = timeline.completed();
    let replay = timeline.in_graph(graph, &[&[], &[]]).expect("two signals");
    for launch in 1..=3 {
        let points: Vec<_> = replay.launch().expect("a launch").collect();
        let last = before + 2 * launch;
        assert_eq!(points.iter().map(Point::value).collect::<Vec<_>>(), [last - 1, last]);
        assert_eq!(peer.step(&format!("wait {last}")), "done");
        assert_eq!(peer.step(&format!("stream {last}")), "done");
        points.into_iter().for_each(reached);
    }
    assert_eq!(peer.step(&format!("query {}", before + 7)), "pending");
    drop(replay);
    peer.end();
    drop(memory);
}

/// The peer writes, and this process reads; and each waits for the other, by its stream.
#[test]
fn data_is_in_order_by_handles() {
    let Some(gpu) = gpu() else { return };
    let (mut peer, full) = peer(&gpu);
    let file = Data::file();
    assert_eq!(peer.step(&format!("data {}", memory::path(&file))), "registered");
    let data = Data::new(&gpu, file);
    let (_memory, empty) = own(&gpu);
    peer.open(&empty);
    let other = gpu.stream();
    data.set(empty.stream(), 0);
    let mut read = empty.signal().expect("a signal");
    for round in 1..=12 {
        let held = (round % 2 == 0).then(|| peer.step("hold"));
        let value = peer.number(&format!("produce {} {round}", read.value()));
        let point = full.point(value).expect("a point");
        assert!(held.is_none() || !point.is_done());
        if round % 4 < 2 {
            other.wait_point(point).expect("a wait");
            assert!(held.is_none() || other.query() == Ok(Progress::Pending));
        }
        if held.is_some() {
            peer.step("release");
        }
        let words = match round % 4 {
            0 | 1 => data.read(&other),
            rest => {
                match rest {
                    2 => block_on(point.into_future()).expect("it comes"),
                    _ => reached(point),
                }
                data.read(empty.stream())
            }
        };
        assert!(words.iter().all(|word| *word == round), "{round}: {}", words[0]);
        // The maker's own hosts see it as well.
        read = empty.signal().expect("a signal");
        reached(read);
    }
    peer.end();
}

/// Any number of processes wait for one timeline, each in its own way.
#[test]
fn many_processes_open_one_handle() {
    let Some(gpu) = gpu() else { return };
    let (_memory, timeline) = own(&gpu);
    let mut peers = ["stream", "wait", "await", "stream"].map(|way| (way, Peer::start()));
    let latch = Latch::hold(timeline.stream());
    let value = timeline.signal().expect("a signal").value();
    for (way, peer) in &mut peers {
        peer.open(&timeline);
        assert_eq!(peer.step(&format!("query {value}")), "pending");
        peer.0.send(&format!("{way} {value}"));
    }
    let late = timeline.signal().expect("a signal").value();
    latch.release();
    for (way, mut peer) in peers {
        assert_eq!(peer.0.receive(), "done", "{way}");
        assert_eq!(peer.step(&format!("wait {late}")), "done", "{way}");
        peer.end();
    }
}

/// The maker is killed: every wait ends, streams go on, and all can be dropped.
#[test]
fn a_killed_maker_of_a_handle_releases_all() {
    rescued!();
    let Some(gpu) = gpu() else { return };
    let (mut peer, opened) = peer(&gpu);
    assert_eq!(opened.context(), &gpu.context);
    let done = opened.point(peer.number("signal")).expect("a point");
    reached(done);
    peer.step("hold");
    let pending = opened.point(peer.number("signal")).expect("a point");
    let other = Other::new(&gpu);
    let theirs = Stream::new(&other, StreamOptions::new()).expect("a stream");
    let stream = gpu.stream();
    stream.wait_point(pending).expect("a wait");
    theirs.wait_point(pending).expect("a wait");
    let unpark = Unpark::new();
    let mut future = pending.into_future();
    assert_eq!(poll(&mut future, &Waker::from(Arc::clone(&unpark))), Poll::Pending);
    assert_eq!(pending.query(), Ok(Progress::Pending));
    assert_eq!(opened.exporter_state(), ExporterState::Running);
    std::thread::scope(|scope| {
        let waiters = [Point::wait_timeout, Point::spin_timeout]
            .map(|wait| scope.spawn(move || wait(&pending, PATIENCE)));
        peer.0.kill();
        for waiter in waiters {
            let found = error(waiter.join().expect("no panic"));
            assert_eq!(found, Error::ExporterGone);
        }
    });
    wait_until("the future is woken", || unpark.woken() == 1);
    assert_eq!(poll(&mut future, Waker::noop()), Poll::Ready(Err(Error::ExporterGone)));
    idle(&stream);
    idle(&theirs);
    assert_eq!(opened.exporter_state(), ExporterState::Ended);
    // They get the error at once from now on, and what was reached stays reached.
    assert_eq!(pending.query(), Err(Error::ExporterGone));
    assert_eq!(stream.wait_point(pending), Err(Error::ExporterGone));
    assert_eq!(opened.point(pending.value() + 1).map(drop), Err(Error::ExporterGone));
    assert!(done.is_done() && !pending.is_done());
    // The follower goes on as well, so that the context can end.
    drop((opened, stream, theirs, future));
    drop(Timeline::new(gpu.stream()));
    ends_with_its_context(gpu, other);
    assert!(done.is_done() && !pending.is_done());
}

/// Nothing is left in the context, which its last drop would wait for; and that drop comes.
#[track_caller]
fn ends_with_its_context(gpu: Gpu, other: Other) {
    drop(other);
    let Some(soft) = gpu.soft() else { return drop(gpu) };
    wait_until("all is given back", || {
        let live = soft.live();
        live.streams == 0 && live.retains == 1
    });
    drop(gpu);
}

/// What this process drops while points are pending goes on, and is given back when the maker's end
/// or the value has come.
#[test]
fn dropped_with_points_that_are_pending() {
    rescued!();
    for killed in [true, false] {
        let Some(gpu) = gpu() else { return };
        let other = Other::new(&gpu);
        let (mut peer, opened) = peer(&gpu);
        peer.step("hold");
        let pending = opened.point(peer.number("signal")).expect("a point");
        let stream = gpu.stream();
        stream.wait_point(pending).expect("a wait");
        drop(opened);
        assert_eq!(pending.query(), Ok(Progress::Pending));
        if killed {
            peer.0.kill();
            idle(&stream);
            assert_eq!(pending.query(), Err(Error::ExporterGone));
        } else {
            peer.step("release");
            idle(&stream);
            assert_eq!(pending.query(), Ok(Progress::Done));
            peer.end();
        }
        drop(stream);
        ends_with_its_context(gpu, other);
    }
}

/// Where nobody can see the maker's end, it can be reported: this process's waits end, and those of
/// other importers.
#[test]
fn the_end_of_a_maker_can_be_reported() {
    rescued!();
    let Some(gpu) = gpu() else { return };
    let mut maker = Peer::start();
    let handle = maker.make();
    let (opened, second) = (open(&gpu.context, &handle), open(&gpu.context, &handle));
    let (opened, second) = (opened.expect("it can be opened"), second.expect("and again"));
    let mut far = Peer::start();
    assert_eq!(far.step(&format!("open {}", to_hex(&handle.to_bytes()))), "opened");
    maker.step("hold");
    let value = maker.number("signal");
    let (pending, same) = (opened.point(value), second.point(value));
    let (pending, same) = (pending.expect("a point"), same.expect("a point"));
    assert!(pending != same);
    let stream = gpu.stream();
    stream.wait_point(pending).expect("a wait");
    far.0.send(&format!("wait {value}"));
    assert_eq!(opened.exporter_ended(), Ok(()));
    assert_eq!(pending.query(), Err(Error::ExporterGone));
    assert_eq!(opened.exporter_state(), ExporterState::Ended);
    idle(&stream);
    assert_eq!(error(same.wait_timeout(PATIENCE)), Error::Poisoned);
    assert_eq!(far.0.receive(), "poisoned");
    far.end();
    drop((opened, second));
    maker.0.kill();
}

/// How many values the follower is given at once; `ImportedTimeline::point` documents it.
const MOST: u64 = 256;

/// A follower that has as much as it may have keeps `point` waiting before the driver does. Each
/// value that comes makes room for one, and the maker's end lets everybody go.
#[test]
fn points_wait_while_a_follower_is_full() {
    // The driver's calls are counted.
    common::own_process!("order=off");
    let Some(gpu) = gpu() else { return };
    let watched = Watched::new(gpu.driver);
    let context = watched.context();
    let seen = AtomicU64::new(0);
    let waits = || {
        let more = watched.made().iter().filter(|made| **made == WAIT).count() as u64;
        seen.fetch_add(more, Ordering::Relaxed) + more
    };
    let mut peer = Peer::start();
    let opened = open(&context, &peer.make()).expect("it can be opened");
    let first = peer.number("signal");
    reached(opened.point(first).expect("a point"));
    let before = waits();
    let points: Vec<Result<Point>> = std::thread::scope(|scope| {
        let value = |at| first + 1 + at;
        let values = value(0)..value(MOST + 40);
        let asking = scope.spawn(|| values.map(|value| opened.point(value)).collect());
        wait_until("the follower is full", || waits() - before == MOST);
        // Who asks for what was asked for waits for nobody.
        let nearest = opened.point(value(0)).expect("a point");
        assert_eq!(nearest.query(), Ok(Progress::Pending));
        assert_eq!(peer.number("signal"), value(0));
        reached(nearest);
        wait_until("there is room for one", || waits() - before == MOST + 1);
        assert_eq!(peer.number("signal"), value(1));
        wait_until("there is room for two", || waits() - before == MOST + 2);
        assert_eq!(opened.exporter_state(), ExporterState::Running);
        peer.0.kill();
        asking.join().expect("no panic")
    });
    assert_eq!(waits() - before, MOST + 2, "the driver gets no more");
    for (at, point) in points.into_iter().enumerate() {
        let end = point.and_then(|point| point.wait_timeout(PATIENCE));
        let expected = if at < 2 { Ok(Progress::Done) } else { Err(Error::ExporterGone) };
        assert_eq!(end, expected, "{at}");
    }
    drop(opened);
}

/// The driver does not return from the call of one point: nobody else waits for that. Futures of
/// other timelines are woken, and the maker's end is noticed and frees everyone.
#[test]
fn a_point_that_the_driver_holds_holds_nobody() {
    rescued!();
    let Some(gpu) = gpu() else { return };
    let Some(soft) = gpu.soft() else {
        return common::not_run("only the software driver can be made to hold a call");
    };
    let (mut peer, opened) = peer(&gpu);
    let (mut other, second) = self::peer(&gpu);
    let pending = opened.point(peer.number("signal") + 1).expect("a point");
    let never = second.point(other.number("signal") + 1).expect("a point");
    let (stream, theirs) = (gpu.stream(), gpu.stream());
    stream.wait_point(pending).expect("a wait");
    theirs.wait_point(never).expect("a wait");
    let own = common::timelines::timeline(&gpu);
    let latch = Latch::hold(own.stream());
    let unpark = Unpark::new();
    let mut future = own.signal().expect("a signal").into_future();
    assert_eq!(poll(&mut future, &Waker::from(Arc::clone(&unpark))), Poll::Pending);
    let fault = Fault::on("cuStreamWaitValue64_v2").block();
    soft.inject(fault.in_thread("holds").once());
    std::thread::scope(|scope| {
        let ask = || opened.point(pending.value() + 1);
        let holds = std::thread::Builder::new().name("holds".into()).spawn_scoped(scope, ask);
        let holds = holds.expect("a thread");
        wait_until("the driver holds it", || soft.blocked() == 1);
        latch.release();
        wait_until("the future is woken", || unpark.woken() == 1);
        // A maker whose end nobody can see, and one that is seen.
        assert_eq!(second.exporter_ended(), Ok(()));
        assert_eq!(never.query(), Err(Error::ExporterGone));
        idle(&theirs);
        peer.0.kill();
        assert_eq!(error(pending.wait_timeout(PATIENCE)), Error::ExporterGone);
        idle(&stream);
        assert_eq!(opened.exporter_ended(), Ok(()));
        assert_eq!(opened.point(pending.value() + 2).map(drop), Err(Error::ExporterGone));
        assert_eq!(soft.blocked(), 1);
        assert_eq!(soft.release(), 1);
        let held = holds.join().expect("no panic").and_then(|point| point.query());
        assert_eq!(held, Err(Error::ExporterGone));
    });
    other.0.kill();
    drop((opened, second, stream, theirs, own, future));
    wait_until("all is given back", || soft.live().streams == 0);
}

/// An observer may ask for a point in the very call that another one makes.
#[test]
fn an_observer_may_ask_for_a_point() {
    let Some(gpu) = gpu() else { return };
    let opened = Arc::new(OnceLock::<Arc<ImportedTimeline>>::new());
    let (asked, asks) = channel();
    let driver = gpu.driver.observe({
        let opened = Arc::clone(&opened);
        move |call| {
            if let (WAIT, Some(opened)) = (call.function, opened.get()) {
                let _ = asked.send(opened.point(call.arguments[2] + 1));
            }
        }
    });
    let driver = driver.expect("there is room");
    let context = Device::new(driver, 0).and_then(Context::primary).expect("a context");
    let mut peer = Peer::start();
    let own = Arc::new(open(&context, &peer.make()).expect("it can be opened"));
    opened.set(Arc::clone(&own)).expect("it is set once");
    let value = peer.number("signal") + 1;
    let asking = std::thread::spawn({
        let own = Arc::clone(&own);
        move || own.point(value)
    });
    wait_until("the point returns", || asking.is_finished());
    let first = asking.join().expect("no panic").expect("a point");
    let second = asks.try_recv().expect("the observer has run").expect("a point");
    assert_eq!([first, second].map(|point| point.value()), [value, value + 1]);
    for point in [first, second] {
        assert_eq!(point.query(), Ok(Progress::Pending));
        assert_eq!(peer.number("signal"), point.value());
        reached(point);
    }
    assert!(driver.stop_observing());
    drop((opened, own));
    peer.end();
}

/// Another importer sees the maker's end first, and its rescue poisons the maker's memory. That is
/// the maker's end here, too, and no poison of the maker's.
#[test]
fn an_end_that_another_importer_sees_first_is_the_end() {
    rescued!();
    let Some(gpu) = gpu() else { return };
    let mut maker = Peer::start();
    let handle = maker.make();
    let opened = [open(&gpu.context, &handle), open(&gpu.context, &handle)];
    let [first, second] = opened.map(|opened| opened.expect("it can be opened"));
    let value = maker.number("signal") + 1;
    let [one, other] = [&first, &second].map(|opened| opened.point(value).expect("a point"));
    maker.0.kill();
    // Sooner than the thread believes the end.
    assert_eq!(first.exporter_ended(), Ok(()));
    assert_eq!(one.query(), Err(Error::ExporterGone));
    assert_eq!(error(other.wait_timeout(PATIENCE)), Error::ExporterGone);
    assert_eq!(second.point(value + 1).map(drop), Err(Error::ExporterGone));
    let stream = gpu.stream();
    assert_eq!(stream.wait_point(other), Err(Error::ExporterGone));
}

/// A maker that has dropped its timeline and then ended: the end is what is seen from then on.
#[test]
fn an_end_after_a_drop_is_the_end() {
    let Some(gpu) = gpu() else { return };
    let (mut peer, opened) = peer(&gpu);
    let never = opened.point(peer.number("signal") + 1).expect("a point");
    peer.step("drop");
    assert_eq!(error(never.wait_timeout(PATIENCE)), Error::Poisoned);
    peer.end();
    assert_eq!(never.query(), Err(Error::ExporterGone));
    drop(opened);
    assert_eq!(never.query(), Err(Error::ExporterGone), "also when nobody can look any more");
}

/// Nothing about device memory harms a capture of whichever thread in whichever mode: neither what
/// this thread does, nor what the crate's threads do for what was dropped.
#[test]
fn captures_go_on_beside_device_memory() {
    // Closed memory is counted, and a maker is killed.
    common::own_process!("order=off");
    let Some(gpu) = gpu() else { return };
    let watched = Watched::new(gpu.driver);
    let context = watched.context();
    // Both of its streams, one after the other: the second would count for the next one.
    let destroyed = AtomicUsize::new(0);
    let closed = || {
        let made = watched.made().into_iter();
        let now = made.filter(|made| *made == Function::cuStreamDestroy_v2).count();
        destroyed.fetch_add(now, Ordering::Relaxed) + now == 2
    };
    let close = |opened| {
        watched.made();
        destroyed.store(0, Ordering::Relaxed);
        drop::<ImportedTimeline>(opened);
    };
    // What harms a capture of another mode harms one of these.
    for (mode, other_thread) in
        [(CaptureMode::Global, false), (CaptureMode::Global, true), (CaptureMode::Relaxed, false)]
    {
        let beside = |name: &str, work: &(dyn Fn() + Sync)| {
            let stream = gpu.stream();
            let capture = common::begin_capture(&stream, mode).expect("a capture");
            if other_thread {
                std::thread::scope(|scope| scope.spawn(work).join().expect("no panic"));
            } else {
                work();
            }
            let status = stream.capture_status();
            assert_eq!(status, Ok(CaptureStatus::Active), "{name} {mode:?} {other_thread}");
            capture.end().expect("a graph");
        };
        let in_memory = || {
            let memory = TimelineMemory::new(&context).expect("memory");
            let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
            let timeline = Timeline::in_memory(stream, &memory).expect("a timeline");
            reached(timeline.signal().expect("a signal"));
            timeline
        };
        beside("memory without signals", &|| drop(TimelineMemory::new(&context)));
        beside("memory", &|| drop(in_memory()));
        beside("an opened timeline", &|| {
            let mut peer = Peer::start();
            let opened = open(&context, &peer.make()).expect("it can be opened");
            reached(opened.point(peer.number("signal")).expect("a point"));
            close(opened);
            // The host may see the value before the stream is done with its copy.
            wait_until("the streams are destroyed", closed);
            peer.end();
        });
        beside("one with a pending point", &|| {
            let mut peer = Peer::start();
            let opened = open(&context, &peer.make()).expect("it can be opened");
            peer.step("hold");
            let point = opened.point(peer.number("signal")).expect("a point");
            close(opened);
            assert!(!closed() && destroyed.load(Ordering::Relaxed) == 0);
            peer.step("release");
            reached(point);
            wait_until("the thread destroys the streams", closed);
            peer.end();
        });
        // Then only the driver knows whether the stream still waits: the thread asks it.
        if let Some(soft) = gpu.soft() {
            beside("one with a refused copy", &|| {
                let mut peer = Peer::start();
                let opened = open(&context, &peer.make()).expect("it can be opened");
                peer.step("hold");
                let value = peer.number("signal");
                soft.inject(Fault::on(COPY.name()).once().answer(abi::CUresult(999)));
                assert!(opened.point(value).is_err());
                close(opened);
                wait_until("the thread asks", || watched.made().contains(&Function::cuStreamQuery));
                peer.step("release");
                wait_until("the thread destroys the streams", closed);
                peer.end();
            });
        }
        beside("one of a maker that ends", &|| {
            let mut peer = Peer::start();
            let opened = open(&context, &peer.make()).expect("it can be opened");
            let point = opened.point(peer.number("signal") + 1).expect("a point");
            peer.0.kill();
            assert_eq!(error(point.wait_timeout(PATIENCE)), Error::ExporterGone);
            assert_eq!(opened.exporter_ended(), Ok(()));
            close(opened);
            wait_until("the streams are destroyed", closed);
        });
    }
}

/// A timeline in memory that is dropped while its stream captures puts nothing into the graph, which
/// each launch would write.
#[test]
fn a_drop_in_a_capture_captures_nothing() {
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    let watched = Watched::new(gpu.driver);
    let symbols = gpu.driver.symbols();
    for by_other_code in [false, true] {
        let stream = Stream::new(&watched.context(), StreamOptions::new()).map(Arc::new);
        let stream = stream.expect("a stream");
        let memory = TimelineMemory::new(stream.context()).expect("memory");
        let timeline = Timeline::in_memory(Arc::clone(&stream), &memory).expect("a timeline");
        timeline.signal().expect("a signal");
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        let ours = if by_other_code {
            // SAFETY: no other thread has the stream.
            let begun = unsafe { (symbols.cuStreamBeginCapture_v2)(stream.as_raw(), mode) };
            common::check(Function::cuStreamBeginCapture_v2, begun);
            None
        } else {
            Some(common::begin_capture(&stream, CaptureMode::Relaxed).expect("a capture"))
        };
        watched.made();
        drop(timeline);
        let made = watched.made();
        let captured = made.iter().filter(|made| [WRITE, RECORD].contains(made)).count();
        assert_eq!(captured, 0, "{by_other_code}: {made:?}");
        drop(memory);
        assert_eq!(watched.made(), []);
        match ours {
            Some(capture) => drop(capture.end().expect("a graph")),
            // SAFETY: a place for the graph, which is destroyed.
            None => unsafe {
                let mut graph = std::ptr::null_mut();
                let ended = (symbols.cuStreamEndCapture)(stream.as_raw(), &mut graph);
                common::check(Function::cuStreamEndCapture, ended);
                common::check(Function::cuGraphDestroy, (symbols.cuGraphDestroy)(graph));
            },
        }
    }
}

/// In peace: who waits for signals gets them, and then an end.
#[test]
fn a_dropped_timeline_in_memory_ends() {
    let Some(gpu) = gpu() else { return };
    let (mut peer, opened) = peer(&gpu);
    peer.step("hold");
    let value = peer.number("signal");
    let pending = opened.point(value).expect("a point");
    let never = opened.point(value + 1).expect("a point");
    let stream = gpu.stream();
    stream.wait_point(never).expect("a wait");
    assert_eq!(never.wait_timeout(Duration::from_millis(20)), Ok(Progress::Pending));
    assert_eq!(peer.step("drop"), "dropped");
    assert_eq!((pending.query(), stream.query()), (Ok(Progress::Pending), Ok(Progress::Pending)));
    peer.step("release");
    reached(pending);
    assert_eq!(error(never.wait_timeout(PATIENCE)), Error::Poisoned);
    idle(&stream);
    let late = opened.point(value + 2);
    assert_eq!(late.map(drop), Err(Error::Poisoned));
    assert_eq!((pending.query(), never.query()), (Ok(Progress::Done), Err(Error::Poisoned)));
    peer.end();
    // It may also be given up.
    let (_memory, timeline) = own(&gpu);
    let mut peer = Peer::start();
    peer.open(&timeline);
    let value = timeline.submitted().expect("a value");
    peer.0.send(&format!("wait {}", value + 1));
    timeline.poison().expect("the stream works");
    assert_eq!(peer.0.receive(), "poisoned");
    peer.end();
}

/// Who waits for what the maker has ended in peace has nothing pending, and keeps no context.
#[test]
fn an_ended_timeline_in_memory_is_given_back() {
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    let other = Other::new(&gpu);
    let (mut peer, opened) = peer(&gpu);
    let value = peer.number("signal");
    let never = opened.point(value + 1).expect("a point");
    peer.step("drop");
    assert_eq!(error(never.wait_timeout(PATIENCE)), Error::Poisoned);
    drop(opened);
    ends_with_its_context(gpu, other);
    peer.end();
}

/// A signal writes twice, a point takes a wait and a copy, and what was asked for costs nothing.
#[test]
fn what_a_handle_costs_in_driver_calls() {
    // The crate's thread uses the counting driver, too.
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    let driver = counting(gpu.driver);
    let context = Device::new(driver, 0).and_then(Context::primary).expect("a context");
    let memory = TimelineMemory::new(&context).expect("memory");
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let timeline = Timeline::in_memory(stream, &memory).expect("a timeline");
    let (point, made) = calls(|| timeline.signal().expect("a signal"));
    assert_eq!(made, [Function::cuStreamIsCapturing, WRITE, WRITE]);
    reached(point);
    let mut peer = Peer::start();
    let opened = open(&context, &peer.make()).expect("it can be opened");
    peer.step("hold");
    let value = peer.number("signal");
    let (point, made) = calls(|| opened.point(value).expect("a point"));
    let ours = made.iter().filter(|function| [WAIT, COPY].contains(function));
    assert_eq!(ours.copied().collect::<Vec<_>>(), [WAIT, COPY]);
    assert_eq!(calls(|| opened.point(value)), (Ok(point), vec![]));
    assert_eq!(calls(|| opened.point(value - 1).map(drop)), (Ok(()), vec![]));
    let other = Stream::new(&context, StreamOptions::new()).expect("a stream");
    assert_eq!(calls(|| other.wait_point(point)), (Ok(()), vec![WAIT]));
    assert_eq!(calls(|| point.is_done()), (false, vec![]));
    peer.step("release");
    reached(point);
    assert_eq!(calls(|| opened.point(value)), (Ok(point), vec![]));
    idle(&other);
    let (_, made) = calls(|| drop(opened));
    // Both streams have nothing to do with the memory any more. To close it would wait for the
    // device, so the next import does.
    let (await_stream, close) = (Function::cuStreamSynchronize, Function::cuIpcCloseMemHandle);
    let ends = made.iter().filter(|function| [await_stream, close].contains(function));
    let ends: Vec<_> = ends.copied().collect();
    assert_eq!(ends, [await_stream, await_stream], "{made:?}");
    let descriptor = peer.make();
    let (next, made) = calls(|| open(&context, &descriptor));
    let open = Function::cuIpcOpenMemHandle_v2;
    let opens = made.iter().filter(|function| [close, open].contains(function));
    assert_eq!(opens.copied().collect::<Vec<_>>(), [close, open], "{made:?}");
    drop(next);
    peer.end();
}

/// Runs `work` in a thread, as it may wait for what this one holds.
fn returns(work: impl FnOnce() + Send + 'static) {
    let worker = std::thread::spawn(work);
    wait_until("it returns", || worker.is_finished());
    worker.join().expect("no panic");
}

/// The driver would wait for the device to free it, and others for the driver. So the memory serves
/// the next object of its context, with other lines, and ends with the context.
#[test]
fn dropped_memory_serves_the_next() {
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    let watched = Watched::new(gpu.driver);
    let driver_bytes = |timeline: &Timeline| {
        let descriptor = timeline.descriptor().expect("it is in memory").to_bytes();
        let index = u16::from_le_bytes([descriptor[6], descriptor[7]]);
        (descriptor[60..132].to_vec(), index)
    };
    let make = |context: &Context| {
        let memory = TimelineMemory::new(context).expect("memory");
        assert!(format!("{memory:?}").starts_with("TimelineMemory { number: 0x"));
        let stream = Stream::new(context, StreamOptions::new()).expect("a stream");
        let timeline = Timeline::in_memory(stream, &memory).expect("a timeline");
        (memory, timeline)
    };
    let has_cleared = || watched.made().contains(&Function::cuMemsetD8Async);
    let allocations = || gpu.soft().map(|soft| soft.live().allocations);
    let context = watched.context();
    let (memory, timeline) = make(&context);
    let (first, index) = driver_bytes(&timeline);
    assert!(index == 1 && has_cleared());
    // Two at once do not share.
    let (other_memory, other) = make(&context);
    assert_ne!(driver_bytes(&other).0, first);
    // A peer waits for what no signal ends.
    let mut peer = Peer::start();
    peer.open(&timeline);
    let value = timeline.signal().expect("a signal").value();
    assert_eq!(peer.step(&format!("wait {value}")), "done");
    // With work that does not end, also of the memory's own stream.
    let latch = Latch::hold(timeline.stream());
    watched.made();
    returns(move || drop(memory));
    assert_eq!(watched.made(), []);
    returns(move || drop(timeline));
    let (memory, timeline) = make(&context);
    assert_eq!(driver_bytes(&timeline), (first.clone(), 2));
    assert!(!has_cleared(), "other processes may use its lines");
    latch.release();
    // The old one has ended, and is not taken for the new one.
    assert_eq!(peer.step(&format!("wait {}", value + 1)), "poisoned");
    let value = timeline.signal().expect("a signal").value();
    peer.open(&timeline);
    assert_eq!(peer.step(&format!("wait {value}")), "done");
    peer.end();
    drop((memory, timeline, other_memory, other));
    // Objects that were made apart are of one context, if that lives. Before CUDA 12.0, which gave
    // contexts numbers, nothing shows it.
    let has_numbers = gpu.driver.version() >= Version::new(12, 0);
    let same = watched.context();
    drop(context);
    let (memory, timeline) = make(&same);
    assert_eq!(has_cleared(), !has_numbers);
    drop((memory, timeline));
    let expected = if has_numbers { 2 } else { 3 };
    assert_eq!(allocations().unwrap_or(expected), expected);
    // Another context has none of it, whatever its handle is.
    for _ in 0..2 {
        let apart = Other::new(&gpu);
        let (_memory, timeline) = make(&apart);
        assert_eq!(driver_bytes(&timeline).1, 1);
    }
}

#[test]
fn device_memory_has_63_timelines() {
    let Some(gpu) = gpu() else { return };
    let memory = TimelineMemory::new(&gpu.context).expect("memory");
    let stream = Arc::new(gpu.stream());
    let make = || Timeline::in_memory(Arc::clone(&stream), &memory);
    let many: Vec<_> = (0..63).map(|_| make().expect("there is room")).collect();
    let handles: std::collections::HashSet<_> =
        many.iter().map(|one| one.descriptor().expect("it is in memory")).collect();
    assert_eq!(handles.len(), 63);
    let full = Err(Error::SharedTimeline(Refusal::FileFull));
    assert_eq!(make().map(drop), full);
    // One more peer sees the first and the last of them apart.
    let (first, last) = (&many[0], &many[62]);
    let mut peer = Peer::start();
    let value = first.signal().expect("a signal").value();
    peer.open(last);
    assert_eq!(peer.step(&format!("query {value}")), "pending");
    let value = last.signal().expect("a signal").value();
    assert_eq!(peer.step(&format!("wait {value}")), "done");
    peer.end();
    drop(many);
    assert_eq!(make().map(drop), full, "importers may wait for the old ones");
    let other = Other::new(&gpu);
    let theirs = Stream::new(&other, StreamOptions::new()).expect("a stream");
    let mismatch = Error::ContextMismatch { device: 0, other_device: 0 };
    assert_eq!(Timeline::in_memory(theirs, &memory).map(drop), Err(mismatch));
}

#[test]
fn damaged_handles_are_refused() {
    let Some(gpu) = gpu() else { return };
    let (_memory, timeline) = own(&gpu);
    let handle = timeline.descriptor().expect("it is in memory");
    let bytes = handle.to_bytes();
    assert_eq!(TimelineDescriptor::from_bytes(&bytes), Ok(handle));
    assert_eq!(handle.exporter_pid(), Some(std::process::id()));
    assert_eq!(handle.device_uuid(), gpu.context.device().uuid().ok());
    assert!(format!("{handle:?}").starts_with("TimelineDescriptor { index: 1, exporter_pid: "));
    each_damage_is_refused(&bytes);
    // It is of no file, and that of a file of no memory.
    #[cfg(target_os = "linux")]
    {
        let file = TimelineFile::new(&gpu.context).expect("a file");
        let copy = common::memory::copy(&file);
        let refused = ImportedTimeline::open(&gpu.context, copy, &handle).map(drop);
        assert_eq!(refused, Err(Refusal::OtherKind { in_memory: true }.into()));
        let shared = Timeline::shared(gpu.stream(), &file).expect("a timeline");
        let in_file = shared.descriptor().expect("it is shared");
        let refused = open(&gpu.context, &in_file).map(drop);
        assert_eq!(refused, Err(Refusal::OtherKind { in_memory: false }.into()));
    }
    // Fields are where the table has them.
    let moved = forged(handle.to_bytes(), |body| body[124] ^= 1);
    let moved = TimelineDescriptor::from_bytes(&moved).expect("whole");
    assert!(moved != handle && moved.exporter_pid() == handle.exporter_pid());
}

/// Whole handles of something else: each is its own error, and nothing of this process changes.
#[test]
fn handles_of_something_else_are_refused() {
    let Some(gpu) = gpu() else { return };
    let (_memory, timeline) = own(&gpu);
    let own = timeline.descriptor().expect("it is in memory");
    let refused = |bytes: &[u8]| {
        let handle = TimelineDescriptor::from_bytes(bytes).expect("it is whole");
        open(&gpu.context, &handle).map(drop).expect_err("it is refused")
    };
    let pid = std::process::id();
    assert_eq!(refused(&own.to_bytes()), Refusal::SameProcess { pid }.into());
    if let Some(soft) = gpu.soft() {
        // The same code of another call, in all places, has another cause.
        let code = CUresult::CUDA_ERROR_INVALID_CONTEXT;
        let (mut nth, mut struck) = (0, 0);
        while struck == nth {
            nth += 1;
            soft.inject(Fault::on("cuCtxPushCurrent_v2").nth(nth).answer(code));
            let (before, error) = (soft.injected(), refused(&own.to_bytes()));
            soft.clear_faults();
            if soft.injected() > before {
                struck = nth;
                let function = Function::cuCtxPushCurrent_v2;
                assert_eq!(error, cuda_events::Error::Driver { function, code }.into(), "{nth}");
            }
        }
        assert!(struck > 0);
    }
    let mut peer = Peer::start();
    let handle = peer.make();
    let other = forged(handle.to_bytes(), |body| body[124] ^= 1);
    assert_eq!(refused(&other), Refusal::OtherMemory.into());
    let unknown = forged(handle.to_bytes(), |body| body[12..28].fill(0xEE));
    let expected = Refusal::MemoryOfOtherDevice { exported: None, context: 0 };
    assert_eq!(refused(&unknown), expected.into());
    if gpu.soft().is_some() {
        // A card's driver may open any other memory; a stream would not look at it before the
        // header was seen.
        for byte in [60, 70, 84] {
            let refusal = refused(&forged(handle.to_bytes(), |body| body[byte] ^= 0x40));
            assert_eq!(refusal.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE), "{byte}");
        }
    }
    let opened = open(&gpu.context, &handle).expect("the whole one");
    reached(opened.point(peer.number("signal")).expect("a point"));
    peer.end();
}

/// In a forked child nothing of it works, and dropping does nothing to the parent.
#[test]
fn a_forked_child_opens_nothing() {
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    let (mut peer, opened) = peer(&gpu);
    let handle = peer.make();
    let (memory, timeline) = own(&gpu);
    peer.step("hold");
    let value = peer.number("signal");
    let mut inherited = Some((opened, memory, timeline));
    let (output, status) = common::fork::in_child(|| {
        let (opened, memory, timeline) = inherited.take().expect("it was there");
        let forked = |result: Result<()>| match result {
            Err(error @ Error::Cuda(ForkedChild { .. })) => error.is_sticky(),
            other => panic!("{other:?}"),
        };
        assert!(forked(opened.point(value).map(drop)));
        // Also of what is reached.
        assert!(forked(opened.point(0).map(drop)));
        assert!(forked(opened.exporter_ended()));
        assert!(forked(open(&gpu.context, &handle).map(drop)));
        assert!(forked(TimelineMemory::new(&gpu.context).map(drop)));
        assert!(forked(timeline.signal().map(drop)));
        drop((opened, memory, timeline));
        String::from("well")
    });
    assert_eq!((output.as_str(), status), ("well", 0));
    let (opened, memory, timeline) = inherited.expect("the child took its own");
    let second = open(&gpu.context, &handle).expect("it can be opened");
    let point = second.point(value).expect("a point");
    assert_eq!(point.query(), Ok(Progress::Pending));
    peer.step("release");
    reached(point);
    reached(timeline.signal().expect("a signal"));
    drop((opened, second, memory));
    peer.end();
}

/// A context of this process that fails ends the waits here, and not those of the maker.
#[test]
fn an_openers_failed_context_ends_its_waits() {
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    let Some(soft) = gpu.soft() else {
        return common::not_run(
            "a context that fails is the software driver's; on a GPU it would be everybody's",
        );
    };
    let (mut peer, opened) = peer(&gpu);
    peer.step("hold");
    let pending = opened.point(peer.number("signal")).expect("a point");
    let code = CUresult::CUDA_ERROR_ILLEGAL_ADDRESS;
    soft.fail_contexts(code);
    assert_eq!(error(pending.wait_timeout(PATIENCE)).code(), Some(code));
    assert_eq!(pending.query().map_err(|error| error.code()), Err(Some(code)));
    drop(opened);
    peer.end();
}

/// A wait or a copy that the driver refuses makes no point, and the next one works.
#[test]
fn a_refused_wait_makes_no_point() {
    // The crate's thread uses the counting driver, too.
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    let driver = counting(gpu.driver);
    let context = Device::new(driver, 0).and_then(Context::primary).expect("a context");
    let mut peer = Peer::start();
    let opened = open(&context, &peer.make()).expect("it can be opened");
    peer.step("hold");
    let value = peer.number("signal");
    let code = CUresult::CUDA_ERROR_UNKNOWN;
    for refused in [WAIT, COPY] {
        fail_next(refused, code);
        assert_eq!(opened.point(value).map_err(|error| error.code()), Err(Some(code)));
    }
    let point = opened.point(value).expect("a point");
    assert_eq!(point.query(), Ok(Progress::Pending));
    peer.step("release");
    reached(point);
    // And where the last one was refused.
    peer.step("hold");
    let value = peer.number("signal");
    fail_next(COPY, code);
    assert!(opened.point(value).is_err());
    drop(opened);
    peer.step("release");
    peer.end();
}
