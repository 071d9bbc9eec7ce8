//! What tests of timelines need: a driver that has them, and patience.

use std::io::Write;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use cuda_events::ext::{Point, PointCompletion, Timeline};
use cuda_events::sys::Function;
use cuda_events::{Progress, Result, StreamRef};

pub use crate::futures::PATIENCE;
use crate::{Gpu, needs};

pub const WRITE: Function = Function::cuStreamWriteValue64_v2;
pub const WAIT: Function = Function::cuStreamWaitValue64_v2;

/// A driver that has values in memory; a machine where that is a matter of a module parameter is
/// too old.
pub fn gpu() -> Option<Gpu> {
    let gpu = Gpu::new();
    (needs(gpu.driver, WRITE) && needs(gpu.driver, WAIT)).then_some(gpu)
}

pub fn timeline(gpu: &Gpu) -> Timeline {
    Timeline::new(gpu.stream()).expect("a timeline")
}

/// Waits, but not for ever: a stream that waits for ever would hold up all that comes after, so
/// that the process ends.
#[track_caller]
pub fn comes(what: &str, done: Result<Progress>) {
    if done != Ok(Progress::Done) {
        let caller = std::panic::Location::caller();
        // Not eprintln, which the test harness keeps to itself.
        let _ = writeln!(std::io::stderr(), "{caller}: {what} does not come: {done:?}");
        std::process::abort();
    }
}

#[track_caller]
pub fn reached(point: Point) {
    comes("the point", point.wait_timeout(PATIENCE));
}

#[track_caller]
pub fn idle(stream: &StreamRef) {
    comes("the stream's end", stream.synchronize_timeout(PATIENCE));
}

pub fn poll(future: &mut PointCompletion, waker: &Waker) -> Poll<Result<()>> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}
