//! What a thread learns without a driver call of its own, as the order checker of the software
//! driver learns it: from points and futures.

use crate::common;

use std::sync::mpsc;
use std::thread;

use common::futures::block_on;
use cuda_events::foundation::{call, with_current};
use cuda_events::sys::CUdeviceptr;
use cuda_events::{Context, Device, Stream, StreamOptions, StreamRef};
use cuda_soft_driver::{HostOrder, OrderCheck, SoftDriver};
use cuda_timelines::{CudaStreamExt, Point, Timeline};

/// How the second thread, with its stream, learns that the first one's work is done: from the first
/// one's stream, or from the point after the work.
type Learn = fn(&Stream, &StreamRef, Point);

/// One thread's stream writes memory, and has done so when another thread's stream does: before the
/// point that this one learns of, or `after` it and before the next one. Returns the number of
/// reports.
fn reports(learn: Learn, after: bool) -> usize {
    let soft = SoftDriver::builder()
        .check_order(OrderCheck::Report)
        .order_host(HostOrder::Reported)
        .order_log("/dev/null")
        .build();
    let device = Device::new(soft.driver(), 0).expect("a device");
    let context = Context::primary(device).expect("a context");
    let stream = || Stream::new(&context, StreamOptions::new()).expect("a stream");
    let (mine, theirs) = (stream(), stream());
    let address = memory(&context);
    let timeline = Timeline::new(mine).expect("a timeline");
    let (send, receive) = mpsc::channel();
    let (ready, begun) = mpsc::channel();
    thread::scope(|scope| {
        let (context, first) = (&context, timeline.stream());
        scope.spawn(move || {
            // It has made a call before the other thread's work, so nothing orders the two.
            assert!(theirs.query().expect("a query").is_done());
            ready.send(()).expect("the first thread");
            let point = receive.recv().expect("the first thread's");
            learn(&theirs, first, point);
            write(context, &theirs, address, 2);
            theirs.synchronize().expect("the end");
        });
        begun.recv().expect("the other thread's query");
        let write_first = || write(context, first, address, 1);
        if !after {
            write_first();
        }
        let point = timeline.signal().expect("a signal");
        if after {
            write_first();
            timeline.signal().expect("a signal");
        }
        first.synchronize().expect("the end");
        send.send(point).expect("the other thread");
    });
    let findings = soft.order_findings();
    findings.iter().for_each(|finding| println!("{finding}"));
    findings.len()
}

fn memory(context: &Context) -> CUdeviceptr {
    let mut address = 0;
    // SAFETY: a place for the address; the context is current.
    let made = || unsafe { call!(context.driver(), cuMemAlloc_v2(&mut address, 64)) };
    with_current(context, made).expect("memory");
    address
}

fn write(context: &Context, stream: &StreamRef, address: CUdeviceptr, value: u8) {
    let raw = stream.as_raw();
    // SAFETY: memory of 64 bytes, which lives as long as the driver.
    let set = || unsafe { call!(context.driver(), cuMemsetD8Async(address, value, 64, raw)) };
    with_current(context, set).expect("a memset");
}

/// The ways that are about the point.
const WAYS: [(&str, Learn); 5] = [
    ("is_done", |_, _, point| assert!(point.is_done())),
    ("query", |_, _, point| assert!(point.query().expect("a query").is_done())),
    ("wait", |_, _, point| point.wait().expect("a wait")),
    ("point.await", |_, _, point| block_on(async { point.await }).expect("a future")),
    ("wait_point", |stream, _, point| stream.wait_point(point).expect("a wait")),
];

#[test]
fn what_a_thread_reads_orders_its_work() {
    let completion: (&str, Learn) = ("completion", |_, first, _| {
        block_on(first.completion().expect("one")).expect("a future");
    });
    for (name, learn) in WAYS.into_iter().chain([completion]) {
        assert_eq!(reports(learn, false), 0, "{name}");
    }
}

/// The other thread must learn it: that it is so orders nothing.
#[test]
fn what_nobody_reads_orders_nothing() {
    assert_eq!(reports(|_, _, _| (), false), 1);
}

/// A thread that awaits a point has not read the next one, also if that is reached by then.
#[test]
fn a_point_orders_no_work_after_it() {
    for (name, learn) in WAYS {
        assert_eq!(reports(learn, true), 1, "{name}");
    }
}
