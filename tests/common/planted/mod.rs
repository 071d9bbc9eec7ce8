//! Small programs of real calls with one planted error each, and the same programs mended: what the
//! order checker in the software driver must find, and the library in front of a driver as well.
//! What a single call touches and orders is in the rows of the library's tests.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "each calls the raw table with handles that it gave out and places on the stack"
)]
#![allow(unused_unsafe, reason = "some calls by name are within blocks of calls of the table")]

pub mod desk;
pub mod host;
pub mod kinds;
pub mod streams;

use cuda_events::sys::*;
use cuda_soft_driver::{Builder, OrderCheck, Scheduler, SoftDriver, Time};
use cuda_test_harness::child::{command, own_binary, role, test_of};

use crate::raw::*;
pub use desk::Desk;

/// What the checker finds is the same in every order of the work, so few orders show an error.
pub const SEEDS: u64 = 2;
pub const NON_BLOCKING: u32 = 1;

/// The two calls of a report.
pub type Pair = (u64, u64);
pub type Program = fn(&Desk<'_>) -> Pair;

/// A kind of error, how the report of it begins, and the program.
pub type Row = (&'static str, &'static str, Program);

pub const RACE: &str = "error: missing order: ";
pub const FREED: &str = "error: use after free: ";

pub const GEQ: u32 = CU_STREAM_WAIT_VALUE_GEQ;
pub const EQ: u32 = CU_STREAM_WAIT_VALUE_EQ;

/// All of them.
pub fn table() -> impl Iterator<Item = &'static Row> {
    [streams::ROWS, kinds::ROWS, host::ROWS].into_iter().flatten()
}

pub fn builder(seed: u64) -> Builder {
    let builder = SoftDriver::builder().version(13, 0).time(Time::Virtual);
    builder.scheduler(Scheduler::Seeded(seed)).check_order(OrderCheck::Report)
}

pub fn checked(seed: u64) -> Raw {
    Raw::planting(builder(seed))
}

/// Runs the test from here on in a process of its own, whose reports nobody has to read.
#[macro_export]
macro_rules! aside {
    () => {
        fn here() {}
        if $crate::planted::passed_aside(std::any::type_name_of_val(&here)) {
            return;
        }
    };
}

/// As [`passed_alone`](cuda_test_harness::child::passed_alone), whose output is the test's own.
#[track_caller]
pub fn passed_aside(place: &str) -> bool {
    if role().is_some() {
        return false;
    }
    let output = command(&own_binary(), test_of(place), "aside")
        .output()
        .expect("the test's own program runs");
    let text = String::from_utf8_lossy(&output.stdout);
    if !(output.status.success() && text.contains("1 passed")) {
        let printed = String::from_utf8_lossy(&output.stderr);
        let end: Vec<&str> = printed.lines().rev().take(60).collect();
        let end: Vec<&str> = end.into_iter().rev().collect();
        panic!("{text}\n{}", end.join("\n"));
    }
    true
}

pub fn word<'a>(p: &'a Desk<'_>) -> &'a std::sync::atomic::AtomicU32 {
    unsafe { std::sync::atomic::AtomicU32::from_ptr(p.pinned.cast::<u32>().add(512)) }
}

pub fn word_address(p: &Desk<'_>) -> CUdeviceptr {
    std::ptr::from_ref(word(p)).addr() as u64
}

pub fn kernel_writes(p: &Desk<'_>, stream: CUstream, address: CUdeviceptr) {
    p.raw.work(stream, address, 64, true);
}
