//! Contexts: the thread's context stack is the caller's, whatever is made and whether it fails.

use crate::common::{self, table};

use std::cell::{Cell, RefCell};
use std::hash::{BuildHasher, RandomState};
use std::ptr::null_mut;
use std::sync::Arc;
use std::time::Duration;

use common::counting::{calls, counted_context, counting, fail_next};
use common::{Gpu, Latch, check, current};
use cuda_events::foundation::with_current;
use cuda_events::sys::{CUcontext, CUevent, CUresult, CUstream, Function};
use cuda_events::{
    Context, Device, Driver, Event, EventFlags, Progress, Result, Stream, StreamOptions, StreamRef,
};

/// More than a busy machine needs.
const PATIENCE: Duration = Duration::from_secs(120);

/// A context that is not the primary one, current on this thread until it is dropped.
struct Other {
    raw: CUcontext,
    driver: Driver,
}

impl Other {
    fn current(gpu: &Gpu) -> Self {
        let mut raw = null_mut();
        // SAFETY: a place for the handle.
        let code =
            unsafe { (gpu.driver.symbols().cuCtxCreate_v2)(&mut raw, 0, gpu.device.as_raw()) };
        check(Function::cuCtxCreate_v2, code);
        Self { raw, driver: gpu.driver }
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        // SAFETY: the context was created above, and what was made in it is gone.
        check(Function::cuCtxDestroy_v2, unsafe {
            (self.driver.symbols().cuCtxDestroy_v2)(self.raw)
        });
    }
}

#[test]
fn a_guard_makes_current_and_restores() {
    let gpu = Gpu::new();
    assert!(current(gpu.driver).is_null());
    {
        let _outer = gpu.context.make_current().expect("the context can be made current");
        assert_eq!(current(gpu.driver), gpu.context.as_raw());
        let other = Other::current(&gpu);
        {
            let _inner = gpu.context.make_current().expect("the context can be made current");
            assert_eq!(current(gpu.driver), gpu.context.as_raw());
        }
        assert_eq!(current(gpu.driver), other.raw);
        drop(other);
        assert_eq!(current(gpu.driver), gpu.context.as_raw());
    }
    assert!(current(gpu.driver).is_null());
}

/// What a crate on top does with a context current may panic.
#[test]
fn a_panic_with_a_context_current_restores() {
    let gpu = Gpu::new();
    let panics = || with_current(&gpu.context, || -> Result<()> { panic!("expected") });
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics));
    assert!(caught.is_err_and(|payload| payload.downcast_ref() == Some(&"expected")));
    assert!(current(gpu.driver).is_null());
    // One that was current before stays.
    let guard = gpu.context.make_current().expect("the context can be made current");
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics));
    assert!(caught.is_err());
    assert_eq!(current(gpu.driver), gpu.context.as_raw());
    drop(guard);
    assert!(current(gpu.driver).is_null());
}

#[test]
fn a_guard_whose_end_is_refused_is_ended_once_more() {
    const POP: Function = Function::cuCtxPopCurrent_v2;
    let gpu = Gpu::new();
    let counted = counted_context(gpu.driver);
    let outer = counted.make_current().expect("the context can be made current");
    let inner = counted.make_current().expect("the context can be made current");
    fail_next(POP, CUresult(4242));
    // The context is current afterwards whether the driver has popped it or not. The outer guard's
    // must not go.
    assert_eq!(calls(|| drop(inner)).1, [POP]);
    let mut popped = null_mut();
    // SAFETY: a place for the handle. It is the inner guard's, which the failed call has left
    // there.
    check(POP, unsafe { (gpu.driver.symbols().cuCtxPopCurrent_v2)(&mut popped) });
    assert_eq!(current(gpu.driver), counted.as_raw());
    fail_next(POP, CUresult(4242));
    assert_eq!(calls(|| drop(outer)).1, [POP, Function::cuCtxGetCurrent, POP]);
    assert!(current(gpu.driver).is_null());
}

#[test]
fn a_context_of_somebody_else_is_named_and_not_owned() {
    let gpu = Gpu::new();
    // SAFETY: nothing is current, so that nothing is named.
    assert!(unsafe { Context::current(gpu.driver) }.expect("an answer").is_none());
    let other = Other::current(&gpu);
    // SAFETY: `other` outlives both.
    let named = unsafe { Context::from_raw(gpu.driver, other.raw) }.expect("its device is known");
    // SAFETY: as above.
    let current =
        unsafe { Context::current(gpu.driver) }.expect("an answer").expect("a context is current");
    assert_eq!(named, current);
    assert_ne!(named, gpu.context);
    assert_eq!(named.device(), gpu.device);
    assert_eq!(named.as_raw(), other.raw);
    let hasher = RandomState::new();
    assert_eq!(hasher.hash_one(&named), hasher.hash_one(&current));
    assert_ne!(hasher.hash_one(&named), hasher.hash_one(&gpu.context));
    drop(current);
    let event = Event::new(&named, EventFlags::empty()).expect("an event");
    let stream = Stream::new(&named, StreamOptions::new()).expect("a stream");
    event.record(&stream).expect("both are of the named context");
    event.synchronize().expect("no work");
    let legacy = |context| StreamRef::legacy_default(context);
    assert_ne!(
        legacy(&named),
        legacy(&gpu.context),
        "one handle, and another stream in each context"
    );
    assert_eq!(legacy(&named), legacy(&named));
    drop((event, stream, named));
    assert_eq!(common::current(gpu.driver), other.raw, "dropping the name destroys nothing");
}

#[test]
fn each_value_retains_once_until_its_last_object() {
    let gpu = Gpu::new();
    let device = Device::new(counting(gpu.driver), 0).expect("device 0");
    let (context, made) = calls(|| Context::primary(device).expect("the primary context"));
    assert_eq!(made, [Function::cuDevicePrimaryCtxRetain]);
    let event = Event::new(&context, EventFlags::empty()).expect("an event");
    assert_eq!(calls(|| drop(context.clone())).1, []);
    assert_eq!(calls(|| drop(context)).1, []);
    assert_eq!(
        calls(|| drop(event)).1,
        [Function::cuEventDestroy_v2, Function::cuDevicePrimaryCtxRelease_v2]
    );
}

#[test]
fn a_leaked_context_is_never_released() {
    let gpu = Gpu::new();
    let device = Device::new(counting(gpu.driver), 0).expect("device 0");
    let context = Context::primary(device).expect("the primary context");
    // One of those that were there before, and one of those that come after.
    let (before, counted) =
        (context.clone(), Event::new(&context, EventFlags::empty()).expect("an event"));
    let context = context.leak();
    let after = Event::new(&context, EventFlags::empty()).expect("an event");
    assert_eq!(calls(|| drop((before, context.clone(), context))).1, []);
    assert_eq!(calls(|| drop((counted, after))).1, [Function::cuEventDestroy_v2; 2]);
    // Another value of the same context is still released.
    let other = Context::primary(device).expect("the primary context");
    assert_eq!(calls(|| drop(other)).1, [Function::cuDevicePrimaryCtxRelease_v2]);
}

#[test]
fn an_abandoned_context_is_never_released() {
    let gpu = Gpu::new();
    let device = Device::new(counting(gpu.driver), 0).expect("device 0");
    let context = Context::primary(device).expect("the primary context");
    let (before, event) =
        (context.clone(), Event::new(&context, EventFlags::empty()).expect("an event"));
    assert_eq!(calls(|| context.abandon()).1, []);
    // What is left of it can be used.
    let after = Event::new(&before, EventFlags::empty()).expect("an event");
    assert_eq!(calls(|| drop((event, after))).1, [Function::cuEventDestroy_v2; 2]);
    assert_eq!(calls(|| drop(before)).1, []);
    // From an event, which has the last share.
    let event = Context::primary(device)
        .and_then(|context| Event::new(&context, EventFlags::empty()))
        .expect("an event");
    assert_eq!(calls(|| event.context().clone().abandon()).1, []);
    assert_eq!(calls(|| event.close()), (Ok(()), vec![Function::cuEventDestroy_v2]));
    // Another value of the same context is still released.
    let other = Context::primary(device).expect("the primary context");
    assert_eq!(calls(|| drop(other)).1, [Function::cuDevicePrimaryCtxRelease_v2]);
    // One that is only named is its owner's.
    // SAFETY: the primary context is retained by `gpu`.
    let named = unsafe { Context::from_raw(device.driver(), gpu.context.as_raw()) }
        .expect("its device is known");
    assert_eq!(calls(|| named.abandon()).1, []);
}

thread_local! {
    static REAL: Cell<Option<Driver>> = const { Cell::new(None) };
}

const AFTER_THE_WORK: CUresult = CUresult(4242);

/// Pops, and answers an error all the same.
unsafe extern "C" fn pop_and_fail(popped: *mut CUcontext) -> CUresult {
    let real = REAL.get().expect("the test has set it");
    // SAFETY: the caller's argument, passed on. One pop too many is an error, and shows in what is
    // current.
    let _ = unsafe { (real.symbols().cuCtxPopCurrent_v2)(popped) };
    AFTER_THE_WORK
}

#[test]
fn guards_pop_what_they_pushed_and_no_more() {
    let gpu = Gpu::new();
    REAL.set(Some(gpu.driver));
    let pop: unsafe extern "C" fn(*mut CUcontext) -> CUresult = pop_and_fail;
    let driver = table::replaced(gpu.driver, |function| {
        (function == Function::cuCtxPopCurrent_v2).then_some(pop as *mut _)
    });
    let context = Device::new(driver, 0).and_then(Context::primary).expect("the primary context");
    let outer = context.make_current().expect("the context can be made current");
    // The same context again: that it is current afterwards does not mean that the pop did nothing.
    let inner = context.make_current().expect("the context can be made current");
    drop(inner);
    assert_eq!(current(gpu.driver), context.as_raw());
    drop(outer);
    assert!(current(gpu.driver).is_null());
}

thread_local! {
    /// What another thread does while this one creates an event.
    static MEANWHILE: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

/// Creates an event, after what happens meanwhile.
unsafe extern "C" fn create_late(event: *mut CUevent, flags: u32) -> CUresult {
    if let Some(meanwhile) = MEANWHILE.take() {
        meanwhile();
    }
    let real = REAL.get().expect("the test has set it");
    // SAFETY: the caller's arguments, passed on.
    unsafe { (real.symbols().cuEventCreate)(event, flags) }
}

#[test]
fn of_two_first_waits_one_event_stays() {
    let gpu = Gpu::new();
    let counted = counting(gpu.driver);
    REAL.set(Some(counted));
    let create: unsafe extern "C" fn(*mut CUevent, u32) -> CUresult = create_late;
    let driver = table::replaced(counted, |function| {
        (function == Function::cuEventCreate).then_some(create as *mut _)
    });
    let ((), made) = calls(|| {
        let context =
            Device::new(driver, 0).and_then(Context::primary).expect("the primary context");
        let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
        let faster = context.clone();
        MEANWHILE.set(Some(Box::new(move || {
            let stream = Stream::new(&faster, StreamOptions::new()).expect("a stream");
            stream.wait_stream(&StreamRef::legacy_default(&faster)).expect("a join");
        })));
        stream.wait_stream(&StreamRef::legacy_default(&context)).expect("a join");
        stream.synchronize().expect("no work");
    });
    let count = |function| made.iter().filter(|made| **made == function).count();
    assert_eq!(
        (count(Function::cuEventCreate), count(Function::cuEventDestroy_v2)),
        (2, 2),
        "{made:?}"
    );
}

/// Records an event, before what happens meanwhile.
unsafe extern "C" fn record_early(event: CUevent, stream: CUstream) -> CUresult {
    let real = REAL.get().expect("the test has set it");
    // SAFETY: the caller's arguments, passed on.
    let code = unsafe { (real.symbols().cuEventRecord)(event, stream) };
    if let Some(meanwhile) = MEANWHILE.take() {
        meanwhile();
    }
    code
}

/// A wait means the record of its own call, whatever another call records before it is queued.
#[test]
fn waits_at_once_have_an_event_each() {
    let gpu = Gpu::new();
    REAL.set(Some(gpu.driver));
    let record: unsafe extern "C" fn(CUevent, CUstream) -> CUresult = record_early;
    let driver = table::replaced(gpu.driver, |function| {
        (function == Function::cuEventRecord).then_some(record as *mut _)
    });
    let context = Device::new(driver, 0).and_then(Context::primary).expect("the primary context");
    let new = || Arc::new(Stream::new(&context, StreamOptions::new()).expect("a stream"));
    let (waiting, idle, other, held) = (new(), new(), new(), new());
    let latch = Latch::hold(&held);
    waiting.wait_stream(&idle).expect("a join, which leaves an event");
    let meanwhile = (other.clone(), held.clone());
    MEANWHILE.set(Some(Box::new(move || {
        meanwhile.0.wait_stream(&meanwhile.1).expect("a join within another");
    })));
    waiting.wait_stream(&idle).expect("a join");
    assert_eq!(waiting.synchronize_timeout(PATIENCE), Ok(Progress::Done), "it waits for idle work");
    assert_eq!(other.query(), Ok(Progress::Pending), "and the other one for held work");
    latch.release();
    other.synchronize().expect("the work ends");
}

#[test]
fn a_device_has_its_attributes() {
    let gpu = Gpu::new();
    let count = Device::count(gpu.driver).expect("a count");
    assert!(count >= 1);
    let devices: Vec<Device> = Device::all(gpu.driver).expect("all devices").collect();
    assert_eq!(devices.len(), count as usize);
    assert_eq!(devices[0], gpu.device);
    assert_eq!(gpu.device.ordinal(), 0);
    assert!(!gpu.device.name().expect("a name").is_empty());
    assert!(gpu.device.total_memory().expect("a size") > 0);
    let uuid = gpu.device.uuid().expect("a UUID");
    assert_ne!(uuid.as_bytes(), &[0; 16]);
    assert!(uuid.to_string().starts_with("GPU-"), "{uuid}");
    assert_eq!(uuid.to_string().len(), "GPU-".len() + 36);
    assert_eq!(format!("{uuid:?}"), uuid.to_string());
    for (ordinal, device) in devices.iter().enumerate() {
        assert_eq!(device.ordinal() as usize, ordinal);
        assert_eq!(format!("{device:?}"), format!("Device {{ ordinal: {ordinal}, .. }}"));
    }
}

#[test]
fn devices_have_their_ordinals() {
    let soft = cuda_soft_driver::SoftDriver::builder().devices(3).build();
    let devices = Device::all(soft.driver()).expect("all devices");
    assert_eq!(devices.map(Device::ordinal).collect::<Vec<_>>(), [0, 1, 2]);
}
