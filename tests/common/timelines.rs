//! What tests of timelines need: a driver that has them, and patience.

use std::io::Write;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use cuda_events::sys::Function;
use cuda_events::{Progress, StreamRef};
use cuda_timelines::{
    Error, Point, PointCompletion, Result, SharedTimelineError as Refusal, Timeline,
    TimelineDescriptor,
};

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
pub fn comes<E: std::fmt::Debug>(what: &str, done: Result<Progress, E>) {
    if !matches!(done, Ok(Progress::Done)) {
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

/// An error, within the tests' patience, and no other end.
#[track_caller]
pub fn error(result: Result<Progress>) -> Error {
    match result {
        Err(error) => error,
        Ok(progress) => panic!("{progress:?}, and no error"),
    }
}

pub fn poll(future: &mut PointCompletion, waker: &Waker) -> Poll<Result<()>> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

/// A descriptor's bytes after a change, with a check value that fits.
pub fn forged(bytes: Vec<u8>, change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut forged = bytes;
    let (body, check) = forged.split_last_chunk_mut::<4>().expect("it is longer");
    change(body);
    check.copy_from_slice(&crc32(body).to_le_bytes());
    forged
}

/// Each damage to a descriptor's bytes is its own refusal.
#[track_caller]
pub fn each_damage_is_refused(bytes: &[u8]) {
    let refused = |bytes: &[u8]| match TimelineDescriptor::from_bytes(bytes) {
        Err(Error::SharedTimeline(refusal)) => refusal,
        other => panic!("{other:?}"),
    };
    let expected = bytes.len() as u32;
    for length in 0..bytes.len() {
        let found = length as u32;
        let expected = match length {
            // Without its first bytes it is of neither kind.
            0..4 => {
                let expected = TimelineDescriptor::FILE_LEN as u32;
                Refusal::DescriptorLength { found, expected }
            }
            TimelineDescriptor::FILE_LEN => Refusal::DescriptorMagic,
            _ => Refusal::DescriptorLength { found, expected },
        };
        assert_eq!(refused(&bytes[..length]), expected);
    }
    let longer = [bytes, &[0]].concat();
    let found = expected + 1;
    assert_eq!(refused(&longer), Refusal::DescriptorLength { found, expected });
    for bit in 0..8 * bytes.len() {
        let mut damaged = bytes.to_vec();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let expected = match bit / 8 {
            0..4 => Refusal::DescriptorMagic,
            4..6 => Refusal::DescriptorVersion { found: 1 ^ 1 << (bit - 32), expected: 1 },
            _ => Refusal::DescriptorChecksum,
        };
        assert_eq!(refused(&damaged), expected, "{bit}");
    }
    // Whole, and of a place that there is not.
    let places = if bytes.len() == TimelineDescriptor::FILE_LEN { 64 } else { 1 << 15 };
    for index in [0, places, u16::MAX] {
        let forged =
            forged(bytes.to_vec(), |body| body[6..8].copy_from_slice(&index.to_le_bytes()));
        assert_eq!(refused(&forged), Refusal::NoSuchTimeline { index });
    }
}
