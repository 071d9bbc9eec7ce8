//! What tests of timelines need: a driver that has them, and patience.

use std::io::Write;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use cuda_events::ipc::SharedTimelineError as Refusal;
use cuda_events::sys::Function;
use cuda_events::{Error, Progress, Result, StreamRef};
use cuda_timelines::{Point, PointCompletion, Timeline};

pub use crate::futures::PATIENCE;
use crate::{Gpu, crc32, needs};

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

/// Waits, but not forever: a stream that waits forever would hold up all that comes after, so
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

/// A descriptor's or a handle's bytes after a change, with a check value that fits.
pub fn forged<const LEN: usize>(bytes: [u8; LEN], change: impl FnOnce(&mut [u8])) -> [u8; LEN] {
    let mut forged = bytes;
    let (body, check) = forged.split_at_mut(LEN - 4);
    change(body);
    check.copy_from_slice(&crc32(body).to_le_bytes());
    forged
}

/// Each damage to a descriptor's or a handle's bytes, which `read` reads, is its own refusal.
#[track_caller]
pub fn each_damage_is_refused<T: std::fmt::Debug, const LEN: usize>(
    bytes: [u8; LEN],
    read: impl Fn(&[u8]) -> Result<T>,
) {
    let refused = |bytes: &[u8]| match read(bytes) {
        Err(Error::SharedTimeline(refusal)) => refusal,
        other => panic!("{other:?}"),
    };
    let expected = LEN as u32;
    for length in 0..LEN {
        let found = length as u32;
        assert_eq!(refused(&bytes[..length]), Refusal::DescriptorLength { found, expected });
    }
    let longer = [&bytes[..], &[0]].concat();
    let found = expected + 1;
    assert_eq!(refused(&longer), Refusal::DescriptorLength { found, expected });
    for bit in 0..8 * LEN {
        let mut damaged = bytes;
        damaged[bit / 8] ^= 1 << (bit % 8);
        let expected = match bit / 8 {
            0..4 => Refusal::DescriptorMagic,
            4..6 => Refusal::DescriptorVersion { found: 1 ^ 1 << (bit - 32), expected: 1 },
            _ => Refusal::DescriptorChecksum,
        };
        assert_eq!(refused(&damaged), expected, "{bit}");
    }
    // Whole, and of a place that there is not.
    for index in [0, 64, u16::MAX] {
        let forged = forged(bytes, |body| body[6..8].copy_from_slice(&index.to_le_bytes()));
        assert_eq!(refused(&forged), Refusal::NoSuchTimeline { index });
    }
}
