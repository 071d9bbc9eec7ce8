//! A drop during a capture harms no capture, in any mode.

use crate::common;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Waker};

use common::timelines::{gpu, reached, timeline};
use common::{Gpu, begin_capture};
use cuda_events::capture::{CaptureMode, CaptureStatus};
use cuda_events::graph::Graph;
use cuda_timelines::{CudaStreamExt, HostTimeline, Timeline, TimelineMemory};

/// Drops what it is given during a capture.
type During<'a> = &'a dyn Fn(&mut dyn FnMut());

fn drops<T>(during: During<'_>, object: T) {
    let mut object = Some(object);
    during(&mut || drop(object.take()));
}

/// A future that somebody waits for.
fn polled<F: Future>(future: F) -> Pin<Box<F>> {
    let mut future = Box::pin(future);
    let _ = future.as_mut().poll(&mut TaskContext::from_waker(Waker::noop()));
    future
}

type Row = (&'static str, fn(&Gpu, During<'_>));

const ROWS: &[Row] = &[
    ("Timeline", |gpu, during| {
        let timeline = timeline(gpu);
        reached(timeline.signal().expect("a signal"));
        drops(during, timeline);
    }),
    ("a timeline for which a stream of another one waits", |gpu, during| {
        let (timeline, stream) = (timeline(gpu), gpu.stream());
        stream.wait_point(timeline.signal().expect("a signal")).expect("a wait");
        drops(during, (timeline, stream));
    }),
    ("HostTimeline", |gpu, during| {
        let timeline = HostTimeline::new(&gpu.context).expect("a timeline");
        timeline.signal().expect("a signal");
        drops(during, timeline);
    }),
    ("SignalGraph", |gpu, during| {
        let graph = Graph::new(&gpu.context).expect("a graph");
        if let Ok(graph) = timeline(gpu).in_graph(graph, &[&[]]) {
            drops(during, graph);
        }
    }),
    ("PointCompletion", |gpu, during| {
        let timeline = timeline(gpu);
        let future = timeline.signal().expect("a signal").into_future();
        drops(during, (polled(future), timeline));
    }),
    ("Completion", |gpu, during| {
        let stream = gpu.stream();
        drops(during, polled(stream.completion().expect("a completion")));
    }),
    ("TimelineMemory", |gpu, during| {
        let Ok(memory) = TimelineMemory::new(&gpu.context) else { return };
        let timeline = Timeline::in_memory(gpu.stream(), &memory).expect("a timeline");
        reached(timeline.signal().expect("a signal"));
        drops(during, timeline);
        drops(during, memory);
    }),
    #[cfg(target_os = "linux")]
    ("TimelineFile", |gpu, during| {
        use cuda_timelines::{ImportedTimeline, TimelineFile};
        let file = TimelineFile::writable(&gpu.context).expect("a file");
        let timeline = Timeline::shared(gpu.stream(), &file).expect("a timeline");
        let point = timeline.signal().expect("a signal");
        let descriptor = timeline.descriptor().expect("it is shared");
        let copy = common::memory::copy(&file);
        let imported = ImportedTimeline::open(&gpu.context, copy, &descriptor).expect("an import");
        reached(imported.point(point.value()).expect("a point"));
        drops(during, imported);
        drops(during, timeline);
        drops(during, file);
    }),
];

#[test]
fn no_drop_harms_a_capture() {
    let Some(gpu) = gpu() else { return };
    for mode in [CaptureMode::Global, CaptureMode::ThreadLocal, CaptureMode::Relaxed] {
        for (name, row) in ROWS {
            row(&gpu, &|dropped| {
                let stream = Arc::new(gpu.stream());
                let capture = begin_capture(&stream, mode).expect("a capture");
                dropped();
                let status = stream.capture_status();
                assert_eq!(status, Ok(CaptureStatus::Active), "{name} in mode {mode:?}");
                capture.end().unwrap_or_else(|error| panic!("{name} in mode {mode:?}: {error}"));
            });
        }
    }
}
