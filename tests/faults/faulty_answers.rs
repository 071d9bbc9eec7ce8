//! Safe calls at random, on a driver that does the work and then answers an error now and then, as
//! a real one does with the errors of earlier work. Whatever is answered, safe calls must never
//! hand the driver something that is gone: the software driver ends the process over that.

use crate::common;

use std::sync::Arc;
use std::time::Duration;

use common::Door;
use cuda_events::capture::{Capture, CaptureDependency, CaptureMode, DependencyUpdate};
use cuda_events::graph::{Graph, GraphExec, GraphNode};
use cuda_events::sys::CUresult;
use cuda_events::{Context, Device, Event, EventFlags, Result, Stream, StreamOptions, StreamRef};
use cuda_soft_driver::{Fault, SoftDriver};

const SEEDS: u64 = 1500;
const STEPS: usize = 150;

/// What fails after its work: all that makes, changes or uses nodes, streams' waits and captures.
const FAILING: &[&str] = &[
    "cuGraph*",
    "cuEventRecord*",
    "cuStreamWaitEvent*",
    "cuStreamBeginCapture*",
    "cuStreamEndCapture",
    "cuStreamUpdateCaptureDependencies*",
    "cuStreamGetCaptureInfo*",
    "cuCtxPopCurrent*",
];

/// Numbers from a seed (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// One of them, if there is any.
    fn of<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        if items.is_empty() { None } else { items.get(self.below(items.len())) }
    }

    fn taken<T>(&mut self, items: &mut Vec<T>) -> Option<T> {
        if items.is_empty() { None } else { Some(items.swap_remove(self.below(items.len()))) }
    }
}

#[derive(Default)]
struct Graphs {
    graphs: Vec<(Graph, Vec<GraphNode>)>,
    execs: Vec<GraphExec>,
}

/// One call, whose result says nothing here: what counts is what is handed to the driver later.
fn step<'a>(
    random: &mut Random,
    context: &Context,
    streams: &'a [Stream],
    events: &mut Vec<Arc<Event>>,
    has: &mut Graphs,
    capture: &mut Option<Capture<'a>>,
) -> Result<()> {
    let Some(stream) = random.of(streams) else { return Ok(()) };
    let Graphs { graphs, execs } = has;
    let choice = random.below(20);
    if choice == 0 || events.is_empty() {
        events.push(Arc::new(Event::new(context, EventFlags::empty())?));
    }
    let event = random.of(events).cloned();
    let Some(event) = event else { return Ok(()) };
    match choice {
        1 | 2 => drop(random.taken(events)),
        3 => event.record(stream)?,
        4 => stream.wait_event(&event)?,
        5 => stream.record_external(&event)?,
        6 => stream.wait_external(&event)?,
        7 if capture.is_none() => {
            *capture = Some(common::begin_capture(stream, CaptureMode::Relaxed)?)
        }
        7 | 8 => {
            let ended = capture.take().map(Capture::end).transpose()?;
            graphs.extend(ended.map(|graph| (graph, Vec::new())));
        }
        9 => graphs.push((Graph::new(context)?, Vec::new())),
        10 | 11 if !graphs.is_empty() => {
            let at = random.below(graphs.len());
            let (graph, nodes) = &mut graphs[at];
            let after: Vec<GraphNode> = random.of(nodes).copied().into_iter().collect();
            nodes.push(if choice == 10 {
                graph.add_event_record_node(&after, &event)?
            } else {
                graph.add_event_wait_node(&after, &event)?
            });
        }
        12 if !graphs.is_empty() => {
            let at = random.below(graphs.len());
            let (graph, nodes) = &mut graphs[at];
            let Some(&node) = random.of(nodes) else { return Ok(()) };
            // One of the two is of the node's kind.
            let set = graph.set_record_node_event(node, &event);
            graph.set_wait_node_event(node, &event).or(set)?;
            let _ = graph.record_node_event(node)?;
        }
        13 => {
            if let Some((graph, _)) = random.of(graphs) {
                execs.push(graph.instantiate()?);
            }
        }
        14 if !execs.is_empty() => {
            let at = random.below(execs.len());
            let Some((graph, nodes)) = random.of(graphs) else { return Ok(()) };
            let Some(&node) = random.of(nodes) else { return Ok(()) };
            let set = execs[at].set_record_node_event(graph, node, &event);
            execs[at].set_wait_node_event(graph, node, &event).or(set)?;
        }
        15 | 16 => {
            if let Some(exec) = random.of(execs) {
                exec.launch(stream)?;
            }
        }
        17 => drop((random.taken(graphs), random.taken(execs))),
        18 => {
            let other = random.of(streams).map(|stream| &**stream);
            let legacy = StreamRef::legacy_default(context);
            stream.wait_stream(other.filter(|_| random.below(4) > 0).unwrap_or(&legacy))?;
        }
        19 if capture.is_none() => {
            let Some((graph, nodes)) = random.taken(graphs) else { return Ok(()) };
            let after: Vec<GraphNode> = random.of(&nodes).copied().into_iter().collect();
            *capture =
                Some(common::begin_capture_to_graph(stream, graph, &after, CaptureMode::Relaxed)?);
        }
        19 => {
            let Some(capture) = capture else { return Ok(()) };
            // SAFETY: this thread is the only one.
            let known = unsafe { capture.dependencies(stream) }?;
            let some: Vec<CaptureDependency> = random.of(&known).copied().into_iter().collect();
            capture.update_dependencies(stream, &some, DependencyUpdate::Set)?;
        }
        _ => {
            let _ = event.synchronize_timeout(Duration::ZERO)?;
        }
    }
    Ok(())
}

/// How many calls failed, of how many.
fn run(soft: &SoftDriver, seed: u64) -> (usize, usize) {
    soft.clear_faults();
    let context = Device::new(soft.driver(), 0).and_then(Context::primary).expect("the context");
    let streams = [(); 3].map(|()| Stream::new(&context, StreamOptions::new()).expect("a stream"));
    for (index, pattern) in FAILING.iter().enumerate() {
        let code =
            [CUresult::CUDA_ERROR_INVALID_VALUE, CUresult::CUDA_ERROR_LAUNCH_FAILED][index % 2];
        let seed = seed.wrapping_mul(31).wrapping_add(index as u64);
        soft.inject(Fault::on(pattern).probability(0.15, seed).after_the_work().answer(code));
    }
    let mut random = Random(seed);
    let (mut events, mut has, mut capture) = (Vec::new(), Graphs::default(), None);
    let failed = (0..STEPS)
        .filter(|_| {
            step(&mut random, &context, &streams, &mut events, &mut has, &mut capture).is_err()
        })
        .count();
    (failed, STEPS)
}

#[test]
fn errors_after_the_work_leave_nothing_gone() {
    if Door::chosen() != Door::Soft {
        // It is about faults that only the software driver has.
        return;
    }
    let first = std::env::var("CUDA_EVENTS_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = first.map_or(0..SEEDS, |seed| seed..seed + 1);
    // One for all: a capture that was begun by a call that failed has nobody to end it, and so its
    // events stay forever, as they should, and the context with them.
    let soft = SoftDriver::builder().report_leaks(false).build();
    let (mut failed, mut calls) = (0, 0);
    for seed in seeds {
        // The thread's name is in what the software driver says before it ends the process.
        let thread = std::thread::Builder::new().name(format!("CUDA_EVENTS_SEED={seed}"));
        let (some, of) = std::thread::scope(|scope| {
            let run = thread.spawn_scoped(scope, || run(&soft, seed)).expect("a thread");
            run.join().expect("no panic")
        });
        failed += some;
        calls += of;
    }
    assert!(
        failed * 20 > calls && failed * 2 < calls,
        "{failed} of {calls} calls failed: that tries little"
    );
}
