//! When the work is done and the caller's context cannot be restored: what the work has left behind
//! is not forgotten.

use std::ptr::null_mut;
use std::sync::Arc;

use cuda_events::capture::{Capture, CaptureMode};
use cuda_events::graph::Graph;
use cuda_events::sys::{CUresult, Function};
use cuda_events::{Context, Device, Error, Event, EventFlags, Result, StreamRef};
use cuda_soft_driver::{Fault, SoftDriver};

use crate::exhaustive::soft_driver;

const CODE: CUresult = CUresult::CUDA_ERROR_LAUNCH_FAILED;

/// The next time that a context is popped, or each time from then on, it fails.
fn fail_pops(soft: &SoftDriver, from_then_on: bool) {
    let fault = Fault::on("cuCtxPopCurrent_v2").nth(1).answer(CODE);
    soft.inject(if from_then_on { fault.from_then_on() } else { fault.once() });
}

/// What a pop that failed for good has left, which is `count` contexts.
fn clear_stack(soft: &SoftDriver, count: usize) {
    soft.clear_faults();
    let pop = soft.driver().symbols().cuCtxPopCurrent_v2;
    // SAFETY: the handle is not wanted.
    let popped = std::iter::repeat_with(|| unsafe { pop(null_mut()) })
        .take_while(|code| *code == CUresult::CUDA_SUCCESS);
    assert_eq!(popped.count(), count, "contexts on the stack");
}

fn expect_code<T>(result: Result<T>) {
    let error = result.err();
    assert_eq!(error, Some(Error::Driver { function: Function::cuCtxPopCurrent_v2, code: CODE }));
}

/// The driver crashes over a node whose event is gone, so the graph keeps the event of a node that
/// was made.
#[test]
fn a_node_that_was_made_keeps_its_event() {
    for (own, from_then_on) in [(true, false), (true, true), (false, false), (false, true)] {
        let soft = soft_driver((13, 0));
        let driver = soft.driver();
        let context =
            Context::primary(Device::new(driver, 0).expect("device 0")).expect("a context");
        let stream = StreamRef::per_thread_default(&context);
        let event = Arc::new(Event::new(&context, EventFlags::empty()).expect("an event"));
        // SAFETY: no other thread knows the stream.
        let capture = unsafe { Capture::begin(&stream, CaptureMode::Relaxed) }.expect("a capture");
        // A capture that others began is one that this crate was told nothing of: of another table
        // of the same driver.
        let theirs = StreamRef::per_thread_default(&context_of(&soft));
        let stream = if own { &stream } else { &theirs };
        // After the call that asks for the capture, which restores the context too.
        let fault = Fault::on("cuCtxPopCurrent_v2").nth(2).answer(CODE);
        soft.inject(if from_then_on { fault.from_then_on() } else { fault.once() });
        expect_code(stream.record_external(&event));
        clear_stack(&soft, usize::from(from_then_on));
        drop(event);
        let graph: Graph = capture.end().expect("a graph");
        // An event that is gone is a misuse here, and a crash on a real driver.
        let exec = graph.instantiate().expect("an executable graph");
        exec.launch(stream).expect("a launch");
        stream.synchronize().expect("the end of it");
        assert!(soft.misuses().is_empty(), "{:?}", soft.misuses());
    }
}

fn context_of(soft: &SoftDriver) -> Context {
    Context::primary(Device::new(soft.driver(), 0).expect("device 0")).expect("a context")
}

/// A capture whose begin was not told as such is ended, and the graph of one that was ended is
/// destroyed.
#[test]
fn a_capture_of_a_default_stream_leaves_nothing() {
    for from_then_on in [false, true] {
        let soft = soft_driver((13, 0));
        let context = context_of(&soft);
        let stream = StreamRef::per_thread_default(&context);
        fail_pops(&soft, from_then_on);
        // SAFETY: no other thread knows the stream.
        expect_code(unsafe { Capture::begin(&stream, CaptureMode::Relaxed) });
        // The end of the capture finds the context current that could not be popped.
        clear_stack(&soft, usize::from(from_then_on));
        assert_eq!((soft.live().captures, soft.live().graphs), (0, 0));

        // SAFETY: as above.
        let capture = unsafe { Capture::begin(&stream, CaptureMode::Relaxed) }.expect("a capture");
        fail_pops(&soft, from_then_on);
        expect_code(capture.end());
        clear_stack(&soft, usize::from(from_then_on));
        assert_eq!((soft.live().captures, soft.live().graphs), (0, 0));

        let graph = Graph::new(&context).expect("a graph");
        fail_pops(&soft, from_then_on);
        // SAFETY: as above.
        expect_code(unsafe { Capture::begin_to_graph(&stream, graph, &[], CaptureMode::Relaxed) });
        clear_stack(&soft, usize::from(from_then_on));
        assert_eq!((soft.live().captures, soft.live().graphs), (0, 0));
        assert!(soft.misuses().is_empty(), "{:?}", soft.misuses());
    }
}

/// A pop that has failed and popped all the same is not made again.
#[test]
fn nothing_is_popped_twice() {
    let soft = soft_driver((13, 0));
    let driver = soft.driver();
    let [first, second] = [0, 1].map(|ordinal| {
        Context::primary(Device::new(driver, ordinal).expect("a device")).expect("a context")
    });
    let _current = first.make_current().expect("a guard");
    for after in [false, true] {
        let fault = Fault::on("cuCtxPopCurrent_v2").once().answer(CODE);
        soft.inject(if after { fault.after_the_work() } else { fault });
        expect_code(Event::new(&second, EventFlags::empty()));
        soft.clear_faults();
        // SAFETY: both contexts live on.
        assert_eq!(unsafe { Context::current(driver) }, Ok(Some(first.clone())));
        drop(second.make_current().expect("a guard"));
        // SAFETY: as above.
        assert_eq!(unsafe { Context::current(driver) }, Ok(Some(first.clone())));
        assert_eq!(soft.live().events, 0);
    }
}
