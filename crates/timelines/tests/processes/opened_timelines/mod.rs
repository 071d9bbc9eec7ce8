//! Timelines that processes share by bytes alone: handles of device memory.
//!
//! The tests send commands to another process, their peer; see `handle_peer`.

use crate::common;

use std::future::IntoFuture;
use std::sync::Arc;

use common::child::{end_after, from_hex, read_line, role, say, starts_are_made_up, to_hex};
use common::counting::{calls, counted_context};
use common::futures::block_on;
use common::handover::Handover;
use common::timelines::{PATIENCE, WAIT, WRITE, each_damage_is_refused, forged, idle, reached};
use common::{Gpu, Latch, Other};
use cuda_events::Error::ForkedChild;
use cuda_events::graph::Graph;
use cuda_events::sys::{CUresult, Function};
use cuda_events::{Context, Progress, Stream, StreamOptions};
use cuda_soft_driver::Fault;
use cuda_timelines::{
    CudaStreamExt, Error, ImportedTimeline, Point, Result, SharedTimelineError as Refusal,
    Timeline, TimelineDescriptor, TimelineFile, TimelineMemory,
};

use crate::shared_timelines::{Data, Peer};

const RECORD: Function = Function::cuEventRecord;
const COPY: Function = Function::cuMemcpyDtoHAsync_v2;

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

mod ends;
mod following;

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
    let handover = Handover::of_role(&role().expect("this is no test of its own"));
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
        let line = read_line();
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
fn start() -> Peer {
    Peer::of_test("handle_peer", |_| {})
}

impl Peer {
    fn make_in_memory(&mut self) -> TimelineDescriptor {
        parse(&self.step("make"))
    }

    #[track_caller]
    fn open(&mut self, timeline: &Timeline) {
        let handle = timeline.descriptor().expect("it is in memory");
        assert_eq!(self.step(&format!("open {}", to_hex(&handle.to_bytes()))), "opened");
    }
}

/// Another process, and its timeline here.
fn peer(gpu: &Gpu) -> (Peer, ImportedTimeline) {
    let mut peer = start();
    let opened = open(&gpu.context, &peer.make_in_memory()).expect("it can be opened");
    (peer, opened)
}

/// A timeline of this process, for others.
fn own(gpu: &Gpu) -> (TimelineMemory, Timeline) {
    let memory = TimelineMemory::new(&gpu.context).expect("memory");
    assert_eq!(memory.context(), &gpu.context);
    let timeline = Timeline::in_memory(gpu.stream(), &memory).expect("a timeline");
    (memory, timeline)
}

/// Each launch of a graph writes the device's memory, which the peer reads, and the own line.
#[test]
fn a_graph_signals_by_handles() {
    let Some(gpu) = gpu() else { return };
    if !common::needs(gpu.driver, Function::cuGraphAddBatchMemOpNode) {
        return;
    }
    let (memory, timeline) = own(&gpu);
    let mut peer = start();
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
    let data = peer.share(&gpu);
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
    let mut peers = ["stream", "wait", "await", "stream"].map(|way| (way, start()));
    let latch = Latch::hold(timeline.stream());
    let value = timeline.signal().expect("a signal").value();
    for (way, peer) in &mut peers {
        peer.open(&timeline);
        assert_eq!(peer.step(&format!("query {value}")), "pending");
        peer.begin(&format!("{way} {value}"));
    }
    let late = timeline.signal().expect("a signal").value();
    latch.release();
    for (way, mut peer) in peers {
        assert_eq!(peer.child.receive(), "done", "{way}");
        assert_eq!(peer.step(&format!("wait {late}")), "done", "{way}");
        peer.end();
    }
}

/// A signal writes twice, a point takes a wait and a copy, and what was asked for costs nothing.
#[test]
fn what_a_handle_costs_in_driver_calls() {
    // The crate's thread uses the counting driver, too.
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    let context = counted_context(gpu.driver);
    let memory = TimelineMemory::new(&context).expect("memory");
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let timeline = Timeline::in_memory(stream, &memory).expect("a timeline");
    let (point, made) = calls(|| timeline.signal().expect("a signal"));
    assert_eq!(made, [Function::cuStreamIsCapturing, WRITE, WRITE]);
    reached(point);
    let mut peer = start();
    let opened = open(&context, &peer.make_in_memory()).expect("it can be opened");
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
    let descriptor = peer.make_in_memory();
    let (next, made) = calls(|| open(&context, &descriptor));
    let open = Function::cuIpcOpenMemHandle_v2;
    let opens = made.iter().filter(|function| [close, open].contains(function));
    assert_eq!(opens.copied().collect::<Vec<_>>(), [close, open], "{made:?}");
    drop(next);
    peer.end();
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
    let mut peer = start();
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
    let mut peer = start();
    let handle = peer.make_in_memory();
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
    let handle = peer.make_in_memory();
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
