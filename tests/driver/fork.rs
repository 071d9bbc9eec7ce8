//! A process that was forked after the driver was initialised: every operation is a clear error,
//! and dropping what was inherited does nothing.
//!
//! It runs in a process of its own, because a fork of a process with other running tests takes
//! their locks along.

#![cfg(unix)]

use crate::common;

use std::ptr::null_mut;

use common::child::{Child, role};
use common::counting::{calls, counting};
use common::own_process;
use common::{Gpu, check, load};
use cuda_events::ext::EventPool;
use cuda_events::sys::{CUdevice_attribute, Function};
use cuda_events::{
    Context, Device, Error, Event, EventFlags, EventRef, IpcEventDescriptor, LoadOptions, Stream,
    StreamOptions, StreamRef,
};

/// Runs `work` in a forked child and gives what it returned; panics when the child crashed.
fn in_forked_child(work: impl FnOnce() -> String) -> String {
    let (said, status) = common::fork::in_child(work);
    assert_eq!(status, 0, "the child crashed or panicked: wait status {status}");
    said
}

#[test]
fn a_forked_child() {
    own_process!();
    // Loading does not initialise, so a child that is forked after it can use the device.
    let (driver, soft) = load(&LoadOptions::new());
    let used = in_forked_child(|| {
        let context =
            Device::new(driver, 0).and_then(Context::primary).expect("a context in the child");
        let stream = Stream::new(&context, StreamOptions::new()).expect("a stream in the child");
        let event = stream.record_event(EventFlags::empty()).expect("an event in the child");
        event.synchronize().expect("no work");
        format!("{:?}", event.query())
    });
    assert_eq!(used, "Ok(Done)");
    drop(soft);

    let gpu = Gpu::new();
    let stream = gpu.stream();
    let timed = Event::new(&gpu.context, EventFlags::TIMING).expect("an event");
    let shared = Event::new(&gpu.context, EventFlags::INTERPROCESS).expect("an event");
    timed.record(&stream).expect("a record");
    stream.synchronize().expect("no work");
    let mut pool = Some(EventPool::new(&gpu.context, EventFlags::empty()).expect("a pool"));
    pool.iter().for_each(|pool| pool.reserve(1).expect("an event"));

    let refused = |result: Result<(), Error>, function: Function| -> String {
        let expected = Error::ForkedChild { function };
        if result == Err(expected) { String::new() } else { format!("{function}: {result:?}\n") }
    };
    let wrong = in_forked_child(|| {
        let legacy = StreamRef::legacy_default(&gpu.context);
        let descriptor = IpcEventDescriptor::from_raw([0; 64], false);
        let mut wrong = String::new();
        wrong += &refused(timed.record(&stream), Function::cuEventRecord);
        wrong += &refused(timed.record(&legacy), Function::cuEventRecord);
        wrong += &refused(timed.query().map(drop), Function::cuEventQuery);
        wrong += &refused(timed.synchronize(), Function::cuEventSynchronize);
        wrong += &refused(
            timed.synchronize_timeout(std::time::Duration::MAX).map(drop),
            Function::cuEventQuery,
        );
        let elapsed = match gpu.driver.symbols().cuEventElapsedTime_v2 {
            Some(_) => Function::cuEventElapsedTime_v2,
            None => Function::cuEventElapsedTime,
        };
        wrong += &refused(timed.elapsed_ms(&timed).map(drop), elapsed);
        wrong += &refused(stream.query().map(drop), Function::cuStreamQuery);
        wrong += &refused(stream.synchronize(), Function::cuStreamSynchronize);
        wrong += &refused(stream.wait_event(&timed), Function::cuStreamWaitEvent);
        wrong += &refused(stream.priority().map(drop), Function::cuStreamGetPriority);
        wrong += &refused(stream.is_blocking().map(drop), Function::cuStreamGetFlags);
        wrong += &refused(
            Event::new(&gpu.context, EventFlags::empty()).map(drop),
            Function::cuCtxGetCurrent,
        );
        wrong += &refused(
            Stream::new(&gpu.context, StreamOptions::new()).map(drop),
            Function::cuCtxGetCurrent,
        );
        wrong += &refused(stream.wait_stream(&stream), Function::cuCtxGetCurrent);
        wrong += &refused(shared.ipc_descriptor().map(drop), Function::cuCtxGetCurrent);
        // SAFETY: nothing is opened in a forked child.
        let opened = unsafe { Event::from_ipc_descriptor(&gpu.context, &descriptor) };
        wrong += &refused(opened.map(drop), Function::cuCtxGetCurrent);
        wrong += &refused(gpu.context.make_current().map(drop), Function::cuCtxPushCurrent_v2);
        wrong += &refused(gpu.context.synchronize(), Function::cuCtxGetCurrent);
        wrong += &refused(Device::new(gpu.driver, 0).map(drop), Function::cuInit);
        wrong += &refused(Device::count(gpu.driver).map(drop), Function::cuInit);
        wrong += &refused(Context::primary(gpu.device).map(drop), Function::cuInit);
        wrong += &refused(gpu.device.name().map(drop), Function::cuDeviceGetName);
        wrong += &refused(gpu.device.total_memory().map(drop), Function::cuDeviceTotalMem_v2);
        let attribute = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR;
        wrong +=
            &refused(gpu.device.attribute(attribute).map(drop), Function::cuDeviceGetAttribute);
        let uuid = match gpu.driver.symbols().cuDeviceGetUuid_v2 {
            Some(_) => Function::cuDeviceGetUuid_v2,
            None => Function::cuDeviceGetUuid,
        };
        wrong += &refused(gpu.device.uuid().map(drop), uuid);
        let pool = pool.take().expect("the child has its copy");
        wrong += &refused(pool.take().map(drop), Function::cuEventCreate);
        drop(pool);
        wrong
    });
    assert_eq!(wrong, "");

    // What the child inherited is a copy of this process's memory: taking it apart there leaves it
    // whole here.
    let raw_event = timed.as_raw();
    let raw_stream = stream.as_raw();
    let said = in_forked_child(|| {
        // SAFETY: in this child nobody else destroys the copies; `stream` and `timed` end through
        // `_exit`, not by drop.
        unsafe {
            drop(Stream::from_raw(&gpu.context, raw_stream));
            drop(Event::from_raw(&gpu.context, raw_event, EventFlags::TIMING));
            drop(EventRef::from_raw(&gpu.context, raw_event, EventFlags::TIMING));
            let stream = Stream::from_raw(&gpu.context, raw_stream).close();
            let event = Event::from_raw(&gpu.context, raw_event, EventFlags::TIMING).close();
            let not_called = [stream, event].map(|closed| match closed {
                Err(Error::ForkedChild { function }) => function.name().to_owned(),
                other => format!("{other:?}"),
            });
            not_called.join(" ")
        }
    });
    assert_eq!(said, "cuStreamDestroy_v2 cuEventDestroy_v2");

    // No drop of what was inherited calls the driver, whoever has the last share of a context.
    let device = Device::new(counting(gpu.driver), 0).expect("device 0");
    let context = Context::primary(device).expect("the primary context");
    let inherited = || {
        // One guard over nothing, one over the same context.
        let guards =
            [(); 2].map(|()| context.make_current().expect("the context can be made current"));
        let own = Context::primary(device).expect("the primary context");
        let stream = Stream::new(&own, StreamOptions::new()).expect("a stream");
        let event = Event::new(&own, EventFlags::empty()).expect("an event");
        let last = Context::primary(device).expect("the primary context");
        drop(own);
        let [outer, inner] = guards;
        (inner, outer, stream, event, last)
    };
    let there = calls(|| drop(inherited())).1;
    let dropped = [
        Function::cuCtxPopCurrent_v2,
        Function::cuCtxPopCurrent_v2,
        Function::cuStreamDestroy_v2,
        Function::cuEventDestroy_v2,
        Function::cuDevicePrimaryCtxRelease_v2,
        Function::cuDevicePrimaryCtxRelease_v2,
    ];
    assert!(there.ends_with(&dropped), "the parent calls: {there:?}");
    let copies = inherited();
    let said = in_forked_child(move || {
        let ((), made) = calls(|| drop(copies));
        format!("{made:?}")
    });
    assert_eq!(said, "[]");

    // The same in a process where only other code has initialised the driver.
    Child::start("named_contexts", "parent").finish();

    timed.record(&stream).expect("the parent is unharmed");
    timed.synchronize().expect("the parent is unharmed");
    pool.take().and_then(|pool| pool.record_event(&stream).ok()).expect("the parent is unharmed");
    assert_eq!(stream.close(), Ok(()));
    assert_eq!(timed.close(), Ok(()));
}

/// Not a test of its own process: the crate knows of the driver by a context that it is given, and
/// by nothing else.
#[test]
#[ignore = "a process of its own, which the other test starts"]
fn named_contexts() {
    assert!(role().is_some(), "this is no test of its own");
    let (driver, _soft) = load(&LoadOptions::new());
    let (symbols, mut device, mut raw) = (driver.symbols(), Default::default(), null_mut());
    // SAFETY: places for the handles.
    unsafe {
        check(Function::cuInit, (symbols.cuInit)(0));
        check(Function::cuDeviceGet, (symbols.cuDeviceGet)(&mut device, 0));
        check(
            Function::cuDevicePrimaryCtxRetain,
            (symbols.cuDevicePrimaryCtxRetain)(&mut raw, device),
        );
    }
    // SAFETY: it is released when all is done.
    let context = unsafe { Context::from_raw(driver, raw) }.expect("its device is known");
    let said = in_forked_child(|| format!("{:?}", context.synchronize()));
    assert_eq!(
        said,
        format!("{:?}", Err::<(), _>(Error::ForkedChild { function: Function::cuCtxGetCurrent }))
    );
    assert_eq!(context.synchronize(), Ok(()));
    drop(context);
    // SAFETY: one release for the one retain.
    check(Function::cuDevicePrimaryCtxRelease_v2, unsafe {
        (symbols.cuDevicePrimaryCtxRelease_v2)(device)
    });
}
