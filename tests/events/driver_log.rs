//! What the driver logged for a call that failed.

use std::ptr::null_mut;

use common::Gpu;
use common::counting::Watched;
use cuda_events::foundation::{call, with_current};
use cuda_events::sys::{CUevent, CUresult, Function};
use cuda_events::{
    Context, Device, Driver, Error, Event, EventFlags, EventRef, Stream, StreamOptions,
};
use cuda_soft_driver::{Fault, OnMisuse, SoftDriver};

use crate::common;

const READ: Function = Function::cuLogsDumpToMemory;

fn context(driver: Driver) -> Context {
    Device::new(driver, 0).and_then(Context::primary).expect("the primary context")
}

/// A driver that goes on after misuse, and the handle of an event that was destroyed.
fn with_a_destroyed_event(version: (u32, u32)) -> (SoftDriver, CUevent) {
    let builder = SoftDriver::builder().version(version.0, version.1);
    let soft = builder.on_misuse(OnMisuse::Error).build();
    let event = Event::new(&context(soft.driver()), EventFlags::empty()).expect("an event");
    (soft, event.as_raw())
}

fn query(driver: Driver, event: CUevent) -> Error {
    // SAFETY: the software driver says what is wrong with a handle, and makes no use of it.
    unsafe { call!(driver, cuEventQuery(event)) }.expect_err("the event is destroyed")
}

#[test]
fn an_unexpected_code_has_the_drivers_lines() {
    let (soft, destroyed) = with_a_destroyed_event((13, 0));
    let error = query(soft.driver(), destroyed);
    let log = error.driver_log().expect("the driver has logged it");
    assert!(log.contains("was destroyed by cuEventDestroy_v2"), "{log}");
    assert_eq!(log.lines().count(), 1, "{log}");
    assert_eq!(format!("{error:?}"), format!("{error}\n  the driver: {log}"));
    // The lines are the thread's.
    let elsewhere = error.clone();
    let elsewhere = std::thread::spawn(move || elsewhere.driver_log()).join();
    assert_eq!(elsewhere.expect("no panic"), None);
    // Those of one call only, although another one's come before.
    let other = destroyed.wrapping_byte_add(4096);
    let log = query(soft.driver(), other).driver_log().expect("it is logged, too");
    assert!(!log.contains("cuEventDestroy_v2") && log.lines().count() == 1, "{log}");
    // Of the next failures the driver logs nothing, and an earlier call's lines are not theirs.
    for code in [CUresult::CUDA_ERROR_UNKNOWN, CUresult::CUDA_ERROR_INVALID_HANDLE] {
        soft.inject(Fault::on("cuEventQuery").once().answer(code));
        assert_eq!(query(soft.driver(), destroyed).driver_log(), None);
    }
}

/// An error that names a probable cause has what the driver said about the call, too.
#[test]
fn a_probable_cause_has_the_drivers_lines() {
    let builder = SoftDriver::builder().version(13, 0).devices(2);
    let soft = builder.on_misuse(OnMisuse::Error).build();
    let (own, other) = (context(soft.driver()), {
        Device::new(soft.driver(), 1).and_then(Context::primary).expect("the second device's")
    });
    let timing = |context: &Context| Event::new(context, EventFlags::TIMING).expect("an event");
    let stream = Stream::new(&own, StreamOptions::new()).expect("a stream");
    let destroyed = timing(&own).as_raw();
    // SAFETY: the software driver says what is wrong with a handle, and makes no use of it.
    let borrowed =
        |context: &Context, flags| unsafe { EventRef::from_raw(context, destroyed, flags) };
    let (timed, plain) = (borrowed(&own, EventFlags::TIMING), borrowed(&own, EventFlags::empty()));
    let elsewhere = borrowed(&other, EventFlags::TIMING);
    let never = timing(&own);
    type Call<'a> = &'a dyn Fn() -> Option<Error>;
    type IsNamed = fn(&Error) -> bool;
    let cases: [(Call<'_>, IsNamed); 4] = [
        (&|| plain.elapsed_ms(&timed).err(), |it| matches!(it, Error::TimingDisabled { .. })),
        (&|| timed.elapsed_ms(&elsewhere).err(), |it| matches!(it, Error::ContextMismatch { .. })),
        (&|| timed.elapsed_ms(&never).err(), |it| matches!(it, Error::NotRecorded { .. })),
        (&|| elsewhere.record(&stream).err(), |it| matches!(it, Error::ContextMismatch { .. })),
    ];
    for (call, is_named) in cases {
        let error = call().expect("it is destroyed");
        assert!(is_named(&error), "{error}");
        let log = error.driver_log().unwrap_or_else(|| panic!("a log of {error}"));
        assert!(log.contains("was destroyed by cuEventDestroy_v2"), "{log}");
        assert!(format!("{error:?}").ends_with(&format!("\n  the driver: {log}")), "{error:?}");
    }
}

#[test]
fn a_driver_without_a_log_is_not_asked() {
    let (soft, destroyed) = with_a_destroyed_event((12, 8));
    assert_eq!(query(soft.driver(), destroyed).driver_log(), None);
}

/// After an unexpected code there is one call more, for a thread's first two, and otherwise none.
#[test]
fn the_log_is_read_after_an_unexpected_code_only() {
    let soft = SoftDriver::new();
    let watched = Watched::new(soft.driver());
    let event = Event::new(&watched.context(), EventFlags::empty()).expect("an event");
    watched.made();
    let made = |code: u32| {
        soft.inject(Fault::on("cuEventSynchronize").once().answer(CUresult(code)));
        assert_eq!(event.synchronize().expect_err("a fault").code(), Some(CUresult(code)));
        watched.made()
    };
    let call = Function::cuEventSynchronize;
    assert_eq!(made(2), [call, READ, Function::cuLogsCurrent], "the thread's first");
    for unexpected in [1, 400, 719, 999, 4242] {
        assert_eq!(made(unexpected), [call, READ], "{unexpected}");
    }
    // Not ready, the driver is shutting down, and a host function.
    for expected in [600, 4, 800] {
        assert_eq!(made(expected), [call], "{expected}");
    }
    event.synchronize().expect("an event without a record is done");
    assert_eq!(watched.made(), [call]);
}

/// A real driver's lines: it logs why it refuses a size of zero. The test prints them.
#[test]
fn what_this_driver_logs() {
    let Some(gpu) = Gpu::with(READ) else { return };
    let (driver, mut address) = (gpu.driver, 0);
    // SAFETY: a place for the address.
    let alloc = || unsafe { call!(driver, cuMemAlloc_v2(&mut address, 0)) };
    let error = with_current(&gpu.context, alloc).expect_err("a size of zero");
    // A driver may write a line too much.
    let (mut text, mut size) = (vec![0_u8; 28 << 10], 26 << 10);
    // SAFETY: the buffer has more than `size` bytes, and NULL stands for all lines.
    let read = unsafe {
        call!(driver, cuLogsDumpToMemory?(null_mut(), text.as_mut_ptr().cast(), &mut size, 0))
    };
    read.expect("the log can be read");
    println!("the log:\n{}", String::from_utf8_lossy(&text[..size]));
    println!("of the error: {:?}", error.driver_log());
    if let Some(log) = error.driver_log() {
        assert!(!log.is_empty() && !log.contains("Returning"), "{log}");
    }
}
