//! Two drivers in one process: what belongs to one is refused by the other, and the crate's thread
//! serves both.

use crate::common;

use std::pin::Pin;
use std::sync::mpsc::{Sender, channel};
use std::task::{Context as Task, Waker};

use common::futures::{block_on, wait_until};
use common::timelines::{idle, reached};
use cuda_events::capture::{CaptureMode, CaptureStatus};
use cuda_events::graph::Graph;
use cuda_events::sys::{CUresult, Function};
use cuda_events::{Context, Device, EventFlags, Progress, Stream, StreamOptions, StreamRef};
use cuda_soft_driver::SoftDriver;
use cuda_timelines::{CudaEventExt, CudaStreamExt, HostTimeline, Result, Timeline};

struct Machine {
    soft: SoftDriver,
    context: Context,
}

impl Machine {
    fn new() -> Self {
        let soft = SoftDriver::builder().log(1 << 16).build();
        let context = Device::new(soft.driver(), 0).and_then(Context::primary).expect("a context");
        Self { soft, context }
    }

    fn stream(&self) -> Stream {
        Stream::new(&self.context, StreamOptions::new()).expect("a stream")
    }

    fn timeline(&self) -> Timeline {
        Timeline::new(self.stream()).expect("a timeline")
    }

    /// How often an event was queried.
    fn queries(&self) -> usize {
        let log = self.soft.log();
        log.iter().filter(|call| call.function == Function::cuEventQuery.name()).count()
    }
}

/// A stream does nothing until the sender is dropped.
fn hold(stream: &StreamRef) -> Sender<()> {
    let (release, released) = channel::<()>();
    let wait = move || {
        let _ = released.recv();
    };
    stream.launch_host_function(wait).expect("a function");
    release
}

#[track_caller]
fn refused<T>(result: Result<T>, function: Function) {
    let error = result.err().expect("it is of another driver");
    assert_eq!(error, cuda_events::Error::DriverMismatch { function }.into());
}

#[test]
fn what_belongs_to_another_driver_is_refused() {
    const WAIT: Function = Function::cuStreamWaitValue64_v2;
    const WRITE: Function = Function::cuStreamWriteValue64_v2;
    let (one, two) = (Machine::new(), Machine::new());
    let mut timeline = one.timeline();
    let theirs = two.stream();
    // A wait for what is reached is none.
    let release = hold(timeline.stream());
    let first = timeline.signal().expect("a signal");
    refused(theirs.wait_point(first), WAIT);
    refused(timeline.wait_ahead(&theirs, first.value() + 1), WAIT);
    refused(timeline.move_to(two.stream()), WRITE);
    let host = HostTimeline::new(&one.context).expect("a timeline");
    refused(host.wait_ahead(&theirs, host.completed() + 9), WAIT);
    let graph = Graph::new(&two.context).expect("a graph");
    refused(one.timeline().in_graph(graph, &[&[]]), WRITE);
    drop(release);
    #[cfg(target_os = "linux")]
    {
        use cuda_timelines::{ImportedTimeline, TimelineFile, TimelineMemory};
        use std::os::fd::AsFd;

        let file = TimelineFile::new(&one.context).expect("a file");
        refused(Timeline::shared(two.stream(), &file), WRITE);
        let memory = TimelineMemory::new(&one.context).expect("memory");
        refused(Timeline::in_memory(two.stream(), &memory), WRITE);
        let shared = Timeline::shared(one.stream(), &file).expect("a timeline");
        let copy = file.as_fd().try_clone_to_owned().expect("a file");
        let descriptor = shared.descriptor().expect("it is shared");
        // By the other driver of this process, whose streams alone may wait for it.
        let imported = ImportedTimeline::open(&two.context, copy, &descriptor).expect("an import");
        let release = hold(shared.stream());
        let value = shared.signal().expect("a signal").value();
        let point = imported.point(value).expect("a point");
        refused(one.stream().wait_point(point), WAIT);
        theirs.wait_point(point).expect("a wait");
        drop(release);
        reached(point);
    }
    // Nothing of that has harmed anything.
    reached(timeline.signal().expect("a signal"));
    idle(&theirs);
}

/// The thread asks both drivers, and leaves captures of both alone.
#[test]
fn one_thread_asks_both_drivers() {
    let machines = [Machine::new(), Machine::new()];
    let mut pending = Vec::new();
    for machine in &machines {
        let stream = machine.stream();
        let release = hold(&stream);
        let event = stream.record_event(EventFlags::empty()).expect("a record");
        let mut completion = event.completion();
        let polled = Pin::new(&mut completion).poll(&mut Task::from_waker(Waker::noop()));
        assert!(polled.is_pending());
        pending.push((stream, release, completion));
    }
    for machine in &machines {
        let stream = machine.stream();
        let capture =
            // SAFETY: nothing else uses the stream.
            unsafe { cuda_events::capture::Capture::begin(&stream, CaptureMode::Global) };
        let capture = capture.expect("a capture");
        let before = machine.queries();
        wait_until("the thread asks", || machine.queries() > before + 1);
        assert_eq!(stream.capture_status(), Ok(CaptureStatus::Active));
        capture.end().expect("a graph");
    }
    for (stream, release, completion) in pending {
        drop(release);
        block_on(completion).expect("it is done");
        drop(stream);
    }
}

/// What fails in one is not the other's failure.
#[test]
fn the_failure_of_one_is_not_the_others() {
    let [bad, good] = [Machine::new(), Machine::new()];
    let timelines = [&bad, &good].map(Machine::timeline);
    let held = timelines.each_ref().map(|timeline| hold(timeline.stream()));
    let [failing, working] =
        timelines.each_ref().map(|timeline| timeline.signal().expect("a signal"));
    bad.soft.fail_contexts(CUresult::CUDA_ERROR_LAUNCH_FAILED);
    assert_eq!(working.query(), Ok(Progress::Pending));
    let failed = failing.query().expect_err("its context has failed");
    assert_eq!(failed.code(), Some(CUresult::CUDA_ERROR_LAUNCH_FAILED));
    let error = block_on(failing.into_future()).expect_err("its context has failed");
    assert_eq!(error.code(), failed.code());
    drop(held);
    reached(working);
}
