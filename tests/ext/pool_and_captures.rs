//! A pool beside captures. In a process of its own, because a pool looks at all captures of the
//! process.

use crate::common;

use common::Gpu;
use common::own_process;
use cuda_events::EventFlags;
use cuda_events::capture::{Capture, CaptureMode};
use cuda_events::ext::EventPool;

/// Else another thread, which knows nothing of the capture, could be given an event that is part of
/// it.
#[test]
fn nothing_of_a_capture_is_handed_out() {
    own_process!();
    let gpu = Gpu::new();
    let (stream, other) = (gpu.stream(), gpu.stream());
    let pool = EventPool::new(&gpu.context, EventFlags::empty()).expect("a pool");
    drop(pool.take().expect("an event"));
    assert_eq!(pool.available(), 1);
    // SAFETY: no other thread has these streams, nor what is recorded in them.
    let capture = unsafe { Capture::begin(&stream, CaptureMode::ThreadLocal) }.expect("a capture");
    let fork = pool.record_event(&stream).expect("a record");
    other.wait_event(&fork).expect("a wait");
    drop(fork);
    assert_eq!(pool.available(), 0);
    let join = pool.record_event(&other).expect("a record");
    stream.wait_event(&join).expect("a wait");
    drop(join);
    assert_eq!(pool.available(), 0);
    pool.reserve(2).expect("events");
    assert_eq!(pool.available(), 2, "new ones are part of nothing");
    pool.clear();
    capture.end().expect("the capture is whole");
    drop(pool.take().expect("an event"));
    assert_eq!(pool.available(), 1, "the capture has ended");

    // SAFETY: as above.
    drop(unsafe { Capture::begin(&stream, CaptureMode::ThreadLocal) }.expect("a capture"));
    drop(pool.take().expect("an event"));
    assert_eq!(pool.available(), 1, "one that is dropped has ended, too");
}
