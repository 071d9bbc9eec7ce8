//! cudarc's objects, adopted. cudarc finds the driver by its own names, so each test runs in a
//! process that finds the software driver under them, or with `CUDA_EVENTS_TEST_DRIVER=native` the
//! machine's own.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use cuda_events::ext::EventPool;
use cuda_events::sys::{CUresult, Function};
use cuda_events::{Error, Event, EventFlags, Stream, StreamOptions, StreamRef};
use cuda_events_cudarc::{
    AdoptedStream, OfCall, adopt_capture, adopt_context, adopt_event, adopt_stream, declare_reads,
    declare_writes, lend_context, lend_stream,
};
use cuda_test_harness::child::{Child, role, turn};
use cuda_test_harness::{TestDriver, say_not_run, shared_library, soft_settings};
use cuda_timelines::{CudaStreamExt, Timeline};
use cudarc::driver::sys::{CUctx_flags, CUevent_flags, CUgraphInstantiate_flags};
use cudarc::driver::{CudaContext, CudaStream, sys};

const LIMIT: Duration = Duration::from_secs(60);
const NO_FLAGS: CUgraphInstantiate_flags = CUgraphInstantiate_flags(0);
const THREAD: sys::CUstreamCaptureMode =
    sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;

/// A folder with the software driver under the names that cudarc tries.
struct Links(PathBuf);

impl Links {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("cuda-events-cudarc-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir(&folder).unwrap();
        for name in ["libcuda.so", "libcuda.so.1"] {
            symlink(shared_library(), folder.join(name)).unwrap();
        }
        Self(folder)
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Whether the test ran in another process, which has the driver; not so in that process.
fn ran_elsewhere(place: &str, configure: impl FnOnce(&mut Command)) -> bool {
    if role().is_some() {
        return false;
    }
    let path = place.split_once("::").and_then(|(_, path)| path.rsplit_once("::"));
    let test = path.unwrap().0;
    let links = (TestDriver::chosen() != TestDriver::Native).then(Links::new);
    let _turn = turn();
    let child = Child::start_named(test, "cudarc", |command| {
        if let Some(links) = &links {
            command.env("LD_LIBRARY_PATH", &links.0);
        }
        configure(command);
    });
    child.finish();
    true
}

macro_rules! with_cudarc {
    () => {
        with_cudarc!(|_| {})
    };
    ($configure:expr) => {
        fn here() {}
        if ran_elsewhere(std::any::type_name_of_val(&here), $configure) {
            return;
        }
    };
}

/// Holds the stream until the result is dropped.
fn hold(stream: &StreamRef) -> mpsc::Sender<()> {
    let (release, released) = mpsc::channel();
    stream
        .launch_host_function(move || {
            let _ = released.recv();
        })
        .unwrap();
    release
}

fn two_streams() -> (Arc<CudaContext>, Arc<CudaStream>, AdoptedStream) {
    let context = CudaContext::new(0).unwrap();
    let theirs = context.new_stream().unwrap();
    let adopted = adopt_stream(&theirs).unwrap();
    (context, theirs, adopted)
}

#[test]
fn a_primary_context_outlives_cudarcs() {
    with_cudarc!();
    let (theirs, their_stream, adopted) = two_streams();
    let context = adopt_context(&theirs).unwrap();
    assert_eq!(context.as_raw().cast(), theirs.cu_ctx());
    assert!(context.is_retained(), "events and registrations are shared with other contexts");
    assert_eq!(adopted.context(), &context);
    let ours = Stream::new(&context, StreamOptions::new()).unwrap();
    let (weak, weak_stream) = (Arc::downgrade(&theirs), Arc::downgrade(&their_stream));
    let release = hold(&ours);
    drop((theirs, their_stream, context));
    assert!(weak_stream.upgrade().is_some(), "the adopted stream keeps cudarc's");
    let same = adopted.into_owner();
    assert_eq!(Arc::strong_count(&same), 1);
    drop(same);
    assert!(weak.upgrade().is_none(), "cudarc has released the context");
    let done = ours.record_event(EventFlags::empty()).unwrap();
    drop(release);
    assert!(done.synchronize_timeout(LIMIT).unwrap().is_done());
}

#[test]
fn an_event_retains_a_context_of_cudarc() {
    with_cudarc!();
    let flags = CUctx_flags::CU_CTX_SCHED_AUTO as u32;
    let theirs = CudaContext::new_non_primary(0, flags).unwrap();
    let adopted = adopt_stream(&theirs.new_stream().unwrap()).unwrap();
    let weak = Arc::downgrade(&theirs);
    drop(theirs);
    let done = adopted.record_event(EventFlags::empty()).unwrap();
    drop(adopted);
    assert!(done.synchronize_timeout(LIMIT).unwrap().is_done());
    assert!(weak.upgrade().is_some(), "the event keeps cudarc's context");
    drop(done);
    assert!(weak.upgrade().is_none(), "nothing else does");
}

#[test]
fn events_order_both_ways() {
    with_cudarc!();
    let (_theirs, their_stream, adopted) = two_streams();
    let ours = Stream::new(adopted.context(), StreamOptions::new()).unwrap();

    let release = hold(&adopted);
    let event = adopt_event(their_stream.record_event(None).unwrap(), EventFlags::empty()).unwrap();
    ours.wait_event(&event).unwrap();
    assert!(event.query().unwrap().is_pending() && ours.query().unwrap().is_pending());
    drop(release);
    assert!(ours.synchronize_timeout(LIMIT).unwrap().is_done());
    assert!(event.into_owner().is_complete());

    let release = hold(&ours);
    let event = ours.record_event(EventFlags::empty()).unwrap();
    adopted.wait_event(&event).unwrap();
    let after = their_stream.record_event(None).unwrap();
    assert!(!after.try_is_complete().unwrap());
    drop(release);
    after.synchronize().unwrap();
}

#[test]
fn timing_events_are_adopted() {
    with_cudarc!();
    let (_theirs, their_stream, adopted) = two_streams();
    let flags = Some(CUevent_flags::CU_EVENT_DEFAULT);
    let start = Arc::new(their_stream.record_event(flags).unwrap());
    let start = adopt_event(start, EventFlags::TIMING).unwrap();
    let end = adopted.record_event(EventFlags::TIMING).unwrap();
    end.synchronize().unwrap();
    assert!(start.elapsed_ms(&end).unwrap() >= 0.0);
    let without = adopt_event(their_stream.record_event(None).unwrap(), EventFlags::empty());
    let refused = without.unwrap().elapsed_ms(&end).unwrap_err();
    assert!(matches!(refused, Error::TimingDisabled { .. }), "{refused}");
    assert_eq!(start.flags(), EventFlags::TIMING);
}

#[test]
fn pools_reuse_no_event_of_a_capture() {
    with_cudarc!();
    let (_theirs, their_stream, adopted) = two_streams();
    assert!(adopt_capture(&adopted).unwrap().is_none(), "none is under way");
    let pool = EventPool::new(adopted.context(), EventFlags::empty()).unwrap();
    their_stream.begin_capture(THREAD).unwrap();
    let capture = adopt_capture(&adopted).unwrap().unwrap();
    drop(pool.record_event(&adopted).unwrap());
    assert_eq!(pool.available(), 0, "destroyed, because it is part of the capture");
    let graph = capture.end(NO_FLAGS).unwrap().unwrap();
    drop(pool.record_event(&adopted).unwrap());
    assert_eq!(pool.available(), 1);
    graph.launch().unwrap();
    their_stream.synchronize().unwrap();
}

#[test]
fn timelines_refuse_signals_and_graphs_keep_what_they_wait_for() {
    with_cudarc!();
    let (_theirs, their_stream, adopted) = two_streams();
    let context = adopted.context().clone();
    let ours = Arc::new(Stream::new(&context, StreamOptions::new()).unwrap());
    let elsewhere = Stream::new(&context, StreamOptions::new()).unwrap();
    // A stream of this crate's own, of which the timeline queries the driver only if it must.
    let timeline = Timeline::new(ours.clone()).unwrap();
    let other = Timeline::new(elsewhere).unwrap();
    let point = other.signal().unwrap();
    let external = Arc::new(Event::new(&context, EventFlags::empty()).unwrap());

    their_stream.begin_capture(THREAD).unwrap();
    let capture = adopt_capture(&adopted).unwrap().unwrap();
    ours.wait_stream(&adopted).unwrap();
    let refused = timeline.signal().unwrap_err();
    assert!(
        matches!(refused, cuda_timelines::Error::TimelineInCapture { .. }),
        "each launch would set it back: {refused}"
    );
    adopted.wait_point(point).unwrap();
    adopted.record_external(&external).unwrap();
    adopted.wait_stream(&ours).unwrap();
    let graph = capture.end(NO_FLAGS).unwrap().unwrap();
    assert_eq!(Arc::strong_count(&external), 2, "the graph keeps it");

    graph.launch().unwrap();
    external.synchronize().unwrap();
    their_stream.synchronize().unwrap();
    timeline.signal().unwrap().wait().unwrap();
    drop(graph);
    assert_eq!(Arc::strong_count(&external), 1);
}

#[test]
fn a_capture_that_cudarc_ends_leaks_what_its_nodes_refer_to() {
    with_cudarc!();
    let (_theirs, their_stream, adopted) = two_streams();
    let external = Arc::new(Event::new(adopted.context(), EventFlags::empty()).unwrap());
    their_stream.begin_capture(THREAD).unwrap();
    let capture = adopt_capture(&adopted).unwrap().unwrap();
    adopted.record_external(&external).unwrap();
    let first = their_stream.end_capture(NO_FLAGS).unwrap().unwrap();
    // The guard is that of the first capture; it must not take the second one's graph for its own.
    their_stream.begin_capture(THREAD).unwrap();
    let second = capture.end(NO_FLAGS).unwrap().unwrap();
    drop(second);
    assert_eq!(Arc::strong_count(&external), 2, "the first graph refers to it");
    first.launch().unwrap();
    external.synchronize().unwrap();
    assert!(!cuda_events::foundation::is_capture_under_way());
}

#[test]
fn errors_name_the_call_and_the_code() {
    with_cudarc!();
    let context = CudaContext::new(0).unwrap();
    // The driver demands that interprocess events have no timing.
    let refused = context.new_event(Some(CUevent_flags::CU_EVENT_INTERPROCESS));
    let error = refused.of_call(Function::cuEventCreate).unwrap_err();
    assert_eq!(error.function(), Some(Function::cuEventCreate));
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
    assert_eq!(error.to_string(), "cuEventCreate failed with CUDA_ERROR_INVALID_VALUE (1)");
    // There is no such flag of a graph.
    let (_theirs, their_stream, adopted) = two_streams();
    their_stream.begin_capture(THREAD).unwrap();
    let capture = adopt_capture(&adopted).unwrap().unwrap();
    assert!(capture.end(CUgraphInstantiate_flags(1 << 20)).is_err());
    assert!(adopt_capture(&adopted).unwrap().is_none(), "it has ended all the same");
}

/// Neither library has anything of the other one's then.
#[test]
fn nothing_is_left() {
    with_cudarc!();
    let theirs = CudaContext::new(0).unwrap();
    let context = adopt_context(&theirs).unwrap();
    let stream = Stream::new(&context, StreamOptions::new()).unwrap();
    let lent = lend_stream(&theirs, stream).unwrap();
    let (weak, ours) = (Arc::downgrade(&theirs), context.downgrade());
    drop((theirs, context));
    assert!(weak.upgrade().is_some() && ours.is_alive());
    drop(lent);
    assert!(weak.upgrade().is_none() && !ours.is_alive());
}

#[test]
fn lent_streams_are_destroyed_after_cudarcs_last_use() {
    with_cudarc!(|command| {
        command.env("CUDA_SOFT_DRIVER", soft_settings("devices=2"));
    });
    let theirs = CudaContext::new(0).unwrap();
    let context = adopt_context(&theirs).unwrap();
    assert_eq!(lend_context(&context).unwrap().cu_ctx(), theirs.cu_ctx());
    let stream = || Stream::new(&context, StreamOptions::new()).unwrap();
    let lent = lend_stream(&theirs, stream()).unwrap();
    assert!(theirs.is_in_multi_stream_mode(), "cudarc orders its slices");
    let data = lent.clone_htod(&[7_u32; 1024]).unwrap();
    let done = lent.stream().record_event(EventFlags::empty()).unwrap();
    assert_eq!(lent.clone_dtoh(&data).unwrap(), [7; 1024]);
    assert!(done.query().unwrap().is_done());
    // The slice frees its memory in the stream, which is there.
    drop(lent);
    let stream_of_slice = data.stream().clone();
    drop(data);
    stream_of_slice.synchronize().unwrap();
    drop(stream_of_slice);
    drop(lend_stream(&theirs, stream()).unwrap());

    let flags = CUctx_flags::CU_CTX_SCHED_AUTO as u32;
    let another = CudaContext::new_non_primary(0, flags).unwrap();
    let refused = lend_stream(&another, stream()).unwrap_err();
    assert!(matches!(refused, Error::ContextMismatch { .. }), "{refused}");
    if let Ok(second) = CudaContext::new(1) {
        let refused = lend_stream(&second, stream()).unwrap_err();
        let devices = Error::ContextMismatch {
            function: Function::cuStreamCreate,
            code: None,
            device: 0,
            other_device: 1,
        };
        assert_eq!(refused, devices);
    }
    let refused = lend_context(&adopt_context(&another).unwrap()).unwrap_err();
    assert_eq!(refused.0, sys::CUresult::CUDA_ERROR_INVALID_CONTEXT);
}

/// Uploads 4096 bytes in one stream, and declares that a kernel in another one reads and writes
/// them.
fn compute(ordered: bool) {
    let (theirs, uploads, adopted) = two_streams();
    let work = theirs.new_stream().unwrap();
    // SAFETY: what follows is submitted to no kernel, and the missing order is the test's.
    unsafe { theirs.disable_event_tracking() };
    let mut data = uploads.alloc_zeros::<u32>(1024).unwrap();
    theirs.synchronize().unwrap();
    uploads.memcpy_htod(&[1; 1024], &mut data).unwrap();
    if ordered {
        let uploaded = adopted.record_event(EventFlags::empty()).unwrap();
        adopt_stream(&work).unwrap().wait_event(&uploaded).unwrap();
    }
    declare_reads(&work, &data);
    declare_writes(&work, &mut data.slice_mut(512..));
    theirs.synchronize().unwrap();
    if ordered {
        // SAFETY: no stream has work.
        unsafe { theirs.enable_event_tracking() };
        let mut data = uploads.alloc_zeros::<u32>(1024).unwrap();
        declare_reads(&work, &data);
        uploads.memcpy_htod(&[1; 1024], &mut data).unwrap();
        declare_writes(&work, &mut data);
        uploads.memcpy_htod(&[1; 1024], &mut data).unwrap();
        theirs.synchronize().unwrap();
    }
}

/// What the order checker of the software driver says about a test of this file.
fn report(test: &str) -> Option<String> {
    if TestDriver::chosen() == TestDriver::Native {
        say_not_run("the order checker is in the software driver");
        return None;
    }
    let links = Links::new();
    let log = links.0.join("log");
    let settings = soft_settings(&format!("order=report,order_log={}", log.display()));
    let child = Child::start_named(test, "cudarc", |command| {
        command.env("LD_LIBRARY_PATH", &links.0).env("CUDA_SOFT_DRIVER", settings);
    });
    child.finish();
    Some(fs::read_to_string(log).unwrap_or_default())
}

#[test]
fn a_declared_slice_is_reported() {
    if role().is_some() {
        return compute(false);
    }
    let Some(report) = report("a_declared_slice_is_reported") else { return };
    assert!(report.contains("nothing makes it wait"), "{report}");
    assert!(report.contains("  reads    reads in stream "), "{report}");
    assert!(report.contains("the whole of 4 KiB that"), "{report}");
    assert!(report.contains("  writes   writes in stream "), "{report}");
    assert!(report.contains("bytes 2048 to 4095 of the 4 KiB that"), "{report}");
}

#[test]
fn an_ordered_slice_is_not_reported() {
    if role().is_some() {
        return compute(true);
    }
    let Some(report) = report("an_ordered_slice_is_not_reported") else { return };
    assert!(!report.contains("missing order"), "{report}");
}
