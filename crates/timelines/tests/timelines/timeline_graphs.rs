//! Timelines that graphs signal.

use crate::common;

use std::sync::Arc;
use std::time::Instant;

use common::counting::{calls, calls_with_arguments, counted_context};
use common::timelines::{WRITE, gpu, reached};
use common::{Gpu, Latch};
use cuda_events::capture::CaptureMode;
use cuda_events::graph::{Graph, GraphNode};
use cuda_events::sys::Function;
use cuda_events::{Context, Event, EventFlags, Progress, Stream, StreamOptions, StreamRef};
use cuda_timelines::{CudaStreamExt, Error, Point, SignalGraph, Timeline};

const ADD: Function = Function::cuGraphAddBatchMemOpNode;
const SET: Function = Function::cuGraphExecBatchMemOpNodeSetParams;

/// A device whose driver has nodes of memory operations.
fn with_nodes() -> Option<Gpu> {
    gpu().filter(|gpu| common::needs(gpu.driver, ADD))
}

fn timeline(gpu: &Gpu) -> Timeline {
    Timeline::new(gpu.stream()).expect("a timeline")
}

fn event(context: &Context) -> Arc<Event> {
    Arc::new(Event::new(context, EventFlags::empty()).expect("an event"))
}

/// A graph that does nothing, then waits for `gate`, and its two nodes.
fn gated(context: &Context, gate: &Arc<Event>) -> (Graph, GraphNode, GraphNode) {
    let mut graph = Graph::new(context).expect("a graph");
    let first = graph.add_event_record_node(&[], &event(context)).expect("a node");
    let second = graph.add_event_wait_node(&[first], gate).expect("a node");
    (graph, first, second)
}

fn launch(graph: &SignalGraph) -> Vec<Point> {
    graph.launch().expect("a launch").collect()
}

/// Each launch signals its next values, between plain signals, with one call for each signal.
#[test]
fn each_launch_signals_its_own_points() {
    let Some(gpu) = with_nodes() else { return };
    let context = counted_context(gpu.driver);
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let timeline = Timeline::new(stream).expect("a timeline");
    // A timeline goes on where the one before it, in the same memory, has ended.
    let before = timeline.signal().expect("a signal");
    reached(before);
    let (graph, first, second) = gated(&context, &event(&context));
    let (replay, made) =
        calls_with_arguments(|| timeline.in_graph(graph, &[&[first], &[second], &[]]));
    let replay = replay.expect("a graph");
    // Each after the nodes of its list and after the signal before it: values only rise.
    let dependencies = made.iter().filter(|(made, _)| *made == ADD).map(|(_, given)| given[3]);
    assert_eq!(dependencies.collect::<Vec<_>>(), [1, 2, 1], "{made:?}");
    for launched in 0..3 {
        let (points, made) = calls(|| launch(&replay));
        assert_eq!(made, [SET, SET, SET, Function::cuGraphLaunch]);
        let values: Vec<_> = points.iter().map(Point::value).collect();
        let next = before.value() + 1 + 4 * launched;
        assert_eq!(values, [next, next + 1, next + 2]);
        points.into_iter().for_each(reached);
        assert_eq!(replay.timeline().completed(), next + 2);
        reached(replay.timeline().signal().expect("a signal"));
    }
}

/// The first point of a launch is reached while the rest of the graph is held.
#[test]
fn a_point_in_the_middle_comes_before_the_end() {
    let Some(gpu) = with_nodes() else { return };
    let (gating, other, gate) = (gpu.stream(), gpu.stream(), event(&gpu.context));
    let (graph, first, second) = gated(&gpu.context, &gate);
    let replay = timeline(&gpu).in_graph(graph, &[&[first], &[second]]).expect("a graph");
    let latch = Latch::hold(&gating);
    gate.record(&gating).expect("a record");
    let points = launch(&replay);
    reached(points[0]);
    assert_eq!(points[1].query(), Ok(Progress::Pending));
    assert_eq!(replay.timeline().stream().query(), Ok(Progress::Pending));
    other.wait_point(points[1]).expect("a wait");
    assert_eq!(other.query(), Ok(Progress::Pending));
    latch.release();
    reached(points[1]);
    other.synchronize().expect("the wait ends");
}

/// A launch that waits has its own values, although the nodes were given others for the next one.
#[test]
fn pending_launches_have_their_own_values() {
    let Some(gpu) = with_nodes() else { return };
    let (streams, gate) = ([gpu.stream(), gpu.stream()], event(&gpu.context));
    let (graph, _, second) = gated(&gpu.context, &gate);
    let replay = timeline(&gpu).in_graph(graph, &[&[second]]).expect("a graph");
    let before = replay.timeline().completed();
    let launched = streams.each_ref().map(|stream| {
        let latch = Latch::hold(stream);
        // A launch waits for the last record before it.
        gate.record(stream).expect("a record");
        (latch, launch(&replay)[0])
    });
    let [(latch, one), (next, two)] = launched;
    assert_eq!(replay.timeline().completed(), before);
    latch.release();
    reached(one);
    assert_eq!(two.query(), Ok(Progress::Pending), "the first launch wrote its own value");
    assert_eq!(replay.timeline().completed(), before + 1);
    next.release();
    reached(two);
}

/// A captured graph is taken over like any other.
#[test]
fn a_captured_graph_signals() {
    let Some(gpu) = with_nodes() else { return };
    let (stream, done) = (Arc::new(gpu.stream()), event(&gpu.context));
    let timeline = Timeline::new(Arc::clone(&stream)).expect("a timeline");
    let capture = common::begin_capture(&stream, CaptureMode::Relaxed).expect("a capture");
    stream.record_external(&done).expect("a record");
    // SAFETY: no other thread has the stream or the event.
    let after = unsafe { capture.dependencies(&stream) }.expect("the nodes so far");
    let after: Vec<_> = after.iter().map(|it| it.node).collect();
    let graph = capture.end().expect("a graph");
    let replay = timeline.in_graph(graph, &[&after]).expect("a graph");
    let before = replay.timeline().completed();
    for launched in 1..=3 {
        let points = launch(&replay);
        assert_eq!(points[0].value(), before + launched);
        reached(points[0]);
        assert_eq!(done.query(), Ok(Progress::Done), "the signal is after it");
    }

    // A launch into a capture would leave a value for each replay of that.
    let capture = common::begin_capture(&stream, CaptureMode::Relaxed).expect("a capture");
    let refused = replay.launch().err();
    assert_eq!(refused, Some(Error::TimelineInCapture { function: WRITE }));
    drop(capture);
    assert_eq!(launch(&replay)[0].value(), before + 4);
}

/// Nothing is put into a graph that does not fit.
#[test]
fn nodes_of_another_graph_are_refused() {
    let Some(gpu) = with_nodes() else { return };
    let gate = event(&gpu.context);
    let (graph, _, _) = gated(&gpu.context, &gate);
    let (_other, node, _) = gated(&gpu.context, &gate);
    let refused = timeline(&gpu).in_graph(graph, &[&[node]]).unwrap_err();
    assert_eq!(refused, Error::Cuda(cuda_events::Error::GraphMismatch { function: ADD }));
}

/// The end of the graph is not the end of its launches.
#[test]
fn a_dropped_graph_reaches_its_points() {
    let Some(gpu) = with_nodes() else { return };
    let (gating, gate) = (gpu.stream(), event(&gpu.context));
    let (graph, _, second) = gated(&gpu.context, &gate);
    let replay = timeline(&gpu).in_graph(graph, &[&[second]]).expect("a graph");
    let latch = Latch::hold(&gating);
    gate.record(&gating).expect("a record");
    let point = launch(&replay)[0];
    drop(replay);
    assert_eq!(point.query(), Ok(Progress::Pending));
    latch.release();
    reached(point);
}

/// Prints the nanoseconds of the host's calls: a launch, one with a plain signal after it, and one
/// with a signal in the graph.
#[test]
#[ignore = "it prints times; on a GPU they decide between the two signals"]
fn what_a_signal_costs() {
    const LAUNCHES: u32 = 1000;
    let Some(gpu) = with_nodes() else { return };
    let timeline = timeline(&gpu);
    let graph = || {
        let mut graph = Graph::new(&gpu.context).expect("a graph");
        let node = graph.add_event_record_node(&[], &event(&gpu.context)).expect("a node");
        (graph, node)
    };
    let exec = graph().0.instantiate().expect("an executable graph");
    let (inside, node) = graph();
    let inside = self::timeline(&gpu).in_graph(inside, &[&[node]]).expect("a graph");
    let time = |name: &str, stream: &StreamRef, work: &dyn Fn()| {
        let mut best = u128::MAX;
        for _ in 0..10 {
            let begun = Instant::now();
            (0..LAUNCHES).for_each(|_| work());
            best = best.min(begun.elapsed().as_nanos() / u128::from(LAUNCHES));
            stream.synchronize().expect("it ends");
        }
        println!("{name}: {best} ns");
    };
    let launch = || exec.launch(timeline.stream()).expect("a launch");
    time("a launch", timeline.stream(), &launch);
    time("a launch, then a signal", timeline.stream(), &|| {
        launch();
        timeline.signal().expect("a signal");
    });
    time("a launch with a signal in it", inside.timeline().stream(), &|| {
        drop(inside.launch().expect("a launch"));
    });
}
