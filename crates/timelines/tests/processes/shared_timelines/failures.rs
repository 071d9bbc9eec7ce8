//! Contexts and signals that fail, and poison.

use crate::common;

use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Poll, Waker};

use common::Latch;
use common::counting::{counted_context, fail_next};
use common::futures::{Unpark, wait_until};
use common::memory::{self, Mapping, PAGE};
use common::timelines::{PATIENCE, WRITE, error, gpu, idle, poll, reached};
use cuda_events::sys::CUresult;
use cuda_events::{Progress, Stream, StreamOptions};
use cuda_timelines::{CudaStreamExt, Error, HostTimeline, Result, Timeline, TimelineFile};

use super::{Peer, WAYS, make_and_open, open};

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

/// A write of the dead maker's device may come late, and take the poison away. A stream that comes
/// to its wait only then goes on nevertheless.
#[test]
fn poison_is_looked_after() {
    common::own_process!();
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
    // Not for ever.
    drop(imported);
    #[cfg(target_os = "linux")]
    wait_until("the file is closed", || crate::untrusted_files::open_files() == 0);
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
    let context = counted_context(gpu.driver);
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
