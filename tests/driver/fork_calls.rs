//! What is asked or dropped in a process that was forked after the driver was initialised makes no
//! driver call there.
//!
//! It runs in a process of its own, because a fork of a process with other running tests takes
//! their locks along.

#![cfg(unix)]

use crate::common;

use common::counting::Watched;
use common::fork::in_child;
use common::own_process;
use common::{Gpu, Latch};
use cuda_events::capture::{CaptureMode, RecordFlags, ThreadCaptureMode};
use cuda_events::host_functions::pending_host_functions;
use cuda_events::sys::{CUdevice_attribute, Function};
use cuda_events::{Context, Device, Error, Event, EventFlags, LoadOptions, Stream, StreamOptions};

#[test]
fn what_is_asked_in_a_child_makes_no_call() {
    own_process!();
    let gpu = Gpu::new();
    let watched = Watched::new(gpu.driver);
    let device = Device::new(watched.driver, 0).expect("device 0");
    let context = Context::primary(device).expect("the primary context");
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");

    // A closure of the parent's is not the child's, whose driver never calls it.
    let latch = Latch::hold(&stream);
    stream.launch_host_function(|| ()).expect("a host function");
    assert_eq!(pending_host_functions(), 1);
    assert_eq!(watched.none_in_child(|| pending_host_functions().to_string()), "0");
    assert_eq!(pending_host_functions(), 1);
    latch.release();
    stream.synchronize().expect("the work ends");
    assert_eq!(pending_host_functions(), 0);

    let refused = |result: Result<(), Error>, function| {
        assert_eq!(result, Err(Error::ForkedChild { function }))
    };
    let mut mode =
        Some(ThreadCaptureMode::exchange(watched.driver, CaptureMode::Relaxed).expect("a guard"));
    let exchange = Function::cuThreadExchangeStreamCaptureMode;
    watched.none_in_child(|| {
        refused(
            ThreadCaptureMode::exchange(watched.driver, CaptureMode::Global).map(drop),
            exchange,
        );
        // The parent's guard, of which this is a copy.
        drop(mode.take());
        String::new()
    });
    watched.made();
    drop(mode);
    assert_eq!(watched.made(), [exchange], "the parent's guard restores");

    let names = device.name().expect("a name");
    let attribute = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED;
    let uuid = match watched.driver.symbols().cuDeviceGetUuid_v2 {
        Some(_) => Function::cuDeviceGetUuid_v2,
        None => Function::cuDeviceGetUuid,
    };
    watched.none_in_child(|| {
        refused(device.total_memory().map(drop), Function::cuDeviceTotalMem_v2);
        refused(device.name().map(drop), Function::cuDeviceGetName);
        refused(device.uuid().map(drop), uuid);
        refused(device.attribute(attribute).map(drop), Function::cuDeviceGetAttribute);
        refused(Device::new(watched.driver, 0).map(drop), Function::cuInit);
        refused(Device::count(watched.driver).map(drop), Function::cuInit);
        refused(Device::all(watched.driver).map(drop), Function::cuInit);
        String::new()
    });
    assert_eq!(device.name(), Ok(names), "the parent is unharmed");
    assert!(device.total_memory().expect("a size") > 0);
}

/// What a driver does not have is no news to a forked child, which could not call it either.
#[test]
fn a_child_of_an_old_driver_is_told_that_it_is_one() {
    own_process!("version=11.0");
    let gpu = Gpu::new();
    let context = Context::primary(gpu.device).expect("the primary context");
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let event = Event::new(&context, EventFlags::empty()).expect("an event");
    let id = || -> Result<(), Error> { stream.id().map(drop) };
    // SAFETY: the driver does not have the call.
    let record = || unsafe { event.record_with(&stream, RecordFlags::EXTERNAL) };
    let needs = |result, function| match result {
        Err(Error::Unsupported { function: named, .. }) => named == function,
        _ => false,
    };
    let (get, with) = (Function::cuStreamGetId, Function::cuEventRecordWithFlags);
    if !(needs(id(), get) && needs(record(), with)) {
        return common::not_run("this driver has them all");
    }
    let watched = Watched::new(gpu.driver);
    watched.none_in_child(|| {
        assert_eq!(id(), Err(Error::ForkedChild { function: get }));
        assert_eq!(record(), Err(Error::ForkedChild { function: with }));
        String::new()
    });
}

/// A driver that somebody else initialised before the fork says in the child that it is not
/// initialised. The same code means something else where nobody forked, and others do anywhere.
#[test]
fn who_cannot_initialise_is_told_why() {
    own_process!("init=3");
    let (driver, soft) = common::load(&LoadOptions::new());
    let said = || format!("{:?}", Device::count(driver).map(drop));
    if common::Door::chosen() == common::Door::Native {
        return common::not_run("this driver initialises");
    }
    let init = "CUDA_ERROR_NOT_INITIALIZED";
    assert!(said().contains(init) && said().starts_with("Err(cuInit"), "{}", said());
    let (told, status) = in_child(said);
    assert_eq!(status, 0, "{told}");
    assert!(told.contains("was forked"), "{told}");
    drop(soft);
}

#[test]
fn another_reason_is_the_same_in_a_child() {
    own_process!("init=100");
    let (driver, soft) = common::load(&LoadOptions::new());
    if common::Door::chosen() == common::Door::Native {
        return common::not_run("this driver initialises");
    }
    let said = || format!("{:?}", Device::count(driver).map(drop));
    let (told, status) = in_child(said);
    assert_eq!((told, status), (said(), 0));
    assert!(said().contains("CUDA_ERROR_NO_DEVICE"), "{}", said());
    drop(soft);
}
