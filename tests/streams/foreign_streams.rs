//! Streams of other libraries: whose context they have, and what keeps them alive.

use crate::common::{self, table};

use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::counting::{calls, counted_context};
use common::{Gpu, TestDriver, check, current, not_run};
use cuda_events::sys::{CUcontext, CUresult, CUstream, Function};
use cuda_events::{
    Context, Device, Driver, Error, EventFlags, ForeignStream, Stream, StreamOptions, StreamRef,
};
use cuda_soft_driver::SoftDriver;

/// What an older driver lacks of the calls that tell a stream's context or device.
const DIRECT: [Function; 3] =
    [Function::cuStreamGetDevice, Function::cuStreamGetCtx_v2, Function::cuCtxGetDevice_v2];

/// A stream of a library that uses the driver by itself, in a context that is not the primary one.
struct Library {
    driver: Driver,
    context: CUcontext,
    stream: CUstream,
}

impl Library {
    fn new(device: Device) -> Self {
        let driver = device.driver();
        let symbols = driver.symbols();
        let (mut context, mut stream, mut popped) = (null_mut(), null_mut(), null_mut());
        // SAFETY: places for the handles; creating the context makes it current.
        unsafe {
            check(
                Function::cuCtxCreate_v2,
                (symbols.cuCtxCreate_v2)(&mut context, 0, device.as_raw()),
            );
            check(Function::cuStreamCreate, (symbols.cuStreamCreate)(&mut stream, 1));
            check(Function::cuCtxPopCurrent_v2, (symbols.cuCtxPopCurrent_v2)(&mut popped));
        }
        Self { driver, context, stream }
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        let symbols = self.driver.symbols();
        // SAFETY: both were created above, and what tests make in the context is gone before.
        unsafe {
            check(Function::cuStreamDestroy_v2, (symbols.cuStreamDestroy_v2)(self.stream));
            check(Function::cuCtxDestroy_v2, (symbols.cuCtxDestroy_v2)(self.context));
        }
    }
}

/// The handle alone is enough, whatever is current.
fn is_of_its_context(driver: Driver, library: &Library, device: Device) {
    let before = current(driver);
    {
        // SAFETY: the library outlives it.
        let stream = unsafe { StreamRef::from_foreign(driver, library.stream) }.expect("a stream");
        assert_eq!(stream.as_raw(), library.stream);
        assert_eq!(stream.context().as_raw(), library.context);
        assert_eq!(stream.device().ordinal(), device.ordinal());
        // An event can be recorded only in a stream of its own context.
        let event = stream.record_event(EventFlags::TIMING).expect("an event");
        assert_eq!(event.synchronize(), Ok(()));
    }
    assert_eq!(current(driver), before);
}

#[test]
fn a_handle_has_a_context_and_a_device() {
    let gpu = Gpu::new();
    let library = Library::new(gpu.device);
    is_of_its_context(gpu.driver, &library, gpu.device);
    let _current = gpu.context.make_current().expect("the context can be made current");
    is_of_its_context(gpu.driver, &library, gpu.device);
}

#[test]
fn it_does_so_on_older_drivers() {
    let gpu = Gpu::new();
    let library = Library::new(gpu.device);
    let older = table::hiding(gpu.driver, &DIRECT);
    is_of_its_context(older, &library, gpu.device);
    let _current = gpu.context.make_current().expect("the context can be made current");
    is_of_its_context(older, &library, gpu.device);
}

#[test]
fn another_devices_handle_is_of_that_device() {
    let gpu = Gpu::new();
    let soft = (TestDriver::chosen() == TestDriver::Soft)
        .then(|| SoftDriver::builder().devices(2).build());
    let driver = soft.as_ref().map_or(gpu.driver, SoftDriver::driver);
    let Ok(second) = Device::new(driver, 1) else {
        return not_run("this machine has one device");
    };
    let library = Library::new(second);
    let first = Device::new(driver, 0).and_then(Context::primary).expect("the primary context");
    let _current = first.make_current().expect("the context can be made current");
    for driver in [driver, table::hiding(driver, &DIRECT)] {
        is_of_its_context(driver, &library, second);
    }
}

#[test]
fn a_default_handle_means_the_current_context() {
    let gpu = Gpu::new();
    let handles = [
        StreamRef::default_stream(&gpu.context),
        StreamRef::legacy_default(&gpu.context),
        StreamRef::per_thread_default(&gpu.context),
    ];
    for known in handles {
        // SAFETY: a default stream's handle.
        let refused =
            unsafe { StreamRef::from_foreign(gpu.driver, known.as_raw()) }.expect_err("an error");
        assert_eq!(refused.function(), Some(Function::cuStreamGetCtx));
        assert_eq!(refused.code(), Some(CUresult::CUDA_ERROR_INVALID_CONTEXT));

        let stream = {
            let _current = gpu.context.make_current().expect("the context can be made current");
            // SAFETY: as above.
            unsafe { StreamRef::from_foreign(gpu.driver, known.as_raw()) }.expect("a stream")
        };
        assert_eq!(stream, known);
        let library = Library::new(gpu.device);
        // SAFETY: the library's context outlives the guard.
        let other = unsafe { Context::from_raw(gpu.driver, library.context) }.expect("a context");
        let _current = other.make_current().expect("the context can be made current");
        assert_eq!(stream.context(), &gpu.context);
        // Recording works in the event's own context only.
        assert!(
            stream.record_event(EventFlags::empty()).and_then(|event| event.synchronize()).is_ok()
        );
    }
}

#[test]
fn an_owner_is_dropped_after_all_else() {
    let gpu = Gpu::new();
    let context = counted_context(gpu.driver);
    let owner = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let other = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let raw = owner.as_raw();
    // SAFETY: the owner is the stream itself.
    let foreign = unsafe { ForeignStream::new(&context, raw, owner) }.expect("a stream");
    assert_eq!(foreign.owner().as_raw(), foreign.as_raw());
    // Leaves an event in the context, and nothing in `foreign`.
    other.wait_stream(&foreign).expect("a join");
    let ((), made) = calls(|| drop(foreign));
    assert_eq!(made, [Function::cuStreamDestroy_v2], "by the owner");
}

#[test]
fn an_owner_can_be_shared_and_given_back() {
    let gpu = Gpu::new();
    let owner = Arc::new(gpu.stream());
    let new = || {
        // SAFETY: the owner keeps the stream.
        let stream = unsafe { ForeignStream::new(&gpu.context, owner.as_raw(), owner.clone()) };
        stream.expect("a stream")
    };
    let (first, second) = (new(), new());
    assert_eq!(*first, *second);
    assert_eq!(Arc::strong_count(&owner), 3);
    drop(first);
    assert_eq!(Arc::strong_count(&owner), 2);
    let back = second.into_owner();
    assert!(Arc::ptr_eq(&back, &owner));
    assert_eq!(Arc::strong_count(&owner), 2);
    assert_eq!(back.synchronize(), Ok(()));
}

#[test]
fn a_stream_goes_to_python_as_two_numbers() {
    let gpu = Gpu::new();
    let stream = gpu.stream();
    assert_eq!(stream.cuda_stream(), (0, stream.as_raw().addr()));
    assert_eq!(StreamRef::default_stream(&gpu.context).cuda_stream(), (0, 0));
    assert_eq!(StreamRef::legacy_default(&gpu.context).cuda_stream(), (0, 1));
    assert_eq!(StreamRef::per_thread_default(&gpu.context).cuda_stream(), (0, 2));
}

#[test]
fn what_a_stream_made_outlives_its_owner() {
    let gpu = Gpu::new();
    let context = counted_context(gpu.driver);
    let owner = Stream::new(&context, StreamOptions::new()).expect("a stream");
    // Of the device's primary context, as most libraries' streams are: retained once more.
    let ours = Context::primary(context.device()).expect("the same context");
    let raw = owner.as_raw();
    // SAFETY: the owner is the stream itself.
    let new = || unsafe { ForeignStream::new(&ours, raw, (owner, context)) };
    let (foreign, made) = calls(new);
    assert_eq!(made, [Function::cuStreamGetCtx]);
    let event =
        foreign.as_ref().expect("a stream").record_event(EventFlags::empty()).expect("an event");
    drop((foreign, ours));
    event.synchronize().expect("the event keeps the context");
    let ((), made) = calls(|| drop(event));
    assert_eq!(made, [Function::cuEventDestroy_v2, Function::cuDevicePrimaryCtxRelease_v2]);
}

#[test]
fn a_stream_is_named_with_its_own_context_only() {
    let gpu = Gpu::new();
    let context = counted_context(gpu.driver);
    let library = Library::new(gpu.device);
    // SAFETY: the library outlives it.
    let refused = unsafe { ForeignStream::new(&context, library.stream, ()) }
        .expect_err("it is of another context");
    let expected = Error::ContextMismatch {
        function: Function::cuStreamGetCtx,
        code: None,
        device: 0,
        other_device: 0,
    };
    assert_eq!(refused, expected);
    assert!(refused.to_string().contains("another context of device 0"), "{refused}");
    // SAFETY: the library outlives it.
    let theirs = unsafe { Context::from_raw(gpu.driver, library.context) }.expect("a context");
    // SAFETY: as above.
    let stream = unsafe { ForeignStream::new(&theirs, library.stream, ()) }.expect("a stream");
    assert_eq!(stream.context().as_raw(), library.context);
    // A default stream's handle is that of the context that is named, whatever is current, and
    // nothing is asked.
    for raw in [0, 1, 2].map(std::ptr::without_provenance_mut) {
        // SAFETY: a default stream's handle.
        let (stream, made) =
            calls(|| unsafe { ForeignStream::new(&context, raw, ()) }.expect("a stream"));
        assert_eq!(made, []);
        assert_eq!(stream.context(), &context);
        stream
            .record_event(EventFlags::empty())
            .and_then(|event| event.synchronize())
            .expect("an event");
    }
}

#[test]
fn a_context_keeps_its_owner() {
    struct Owner {
        _library: Library,
        dropped: Arc<AtomicUsize>,
    }
    impl Drop for Owner {
        fn drop(&mut self) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
    // SAFETY: the handles are addresses that this test never dereferences.
    unsafe impl Send for Owner {}
    // SAFETY: as above.
    unsafe impl Sync for Owner {}
    let gpu = Gpu::new();
    let dropped = Arc::new(AtomicUsize::new(0));
    let count = || dropped.load(Ordering::Relaxed);
    let library = Library::new(gpu.device);
    let (raw, stream) = (library.context, library.stream);
    let owner = Owner { _library: library, dropped: dropped.clone() };
    // SAFETY: the owner is the library that has the context.
    let context =
        unsafe { Context::from_raw_with_owner(gpu.driver, raw, owner) }.expect("a context");
    // SAFETY: the context keeps the library, and so the stream.
    let stream =
        unsafe { ForeignStream::new(&context, stream, context.clone()) }.expect("a stream");
    // Leaves an event with the context, which goes before the context does.
    stream.wait_stream(&StreamRef::legacy_default(&context)).expect("a join");
    let event = stream.record_event(EventFlags::empty()).expect("an event");
    let clone = context.clone();
    drop((stream, context));
    event.synchronize().expect("no work");
    drop(clone);
    assert_eq!(count(), 0, "the event keeps it");
    drop(event);
    assert_eq!(count(), 1, "and nothing else");

    // A context that cannot be named is not kept.
    let library = Library::new(gpu.device);
    let raw = library.context;
    let failing = table::replaced(gpu.driver, |function| match function {
        Function::cuCtxGetDevice_v2 => Some(null_mut()),
        Function::cuCtxGetDevice => Some(fail as *mut std::ffi::c_void),
        _ => None,
    });
    extern "C" fn fail(_: *mut i32) -> CUresult {
        CUresult(4242)
    }
    let owner = Owner { _library: library, dropped: dropped.clone() };
    // SAFETY: as above.
    let refused =
        unsafe { Context::from_raw_with_owner(failing, raw, owner) }.expect_err("no device");
    assert_eq!((refused.code(), count()), (Some(CUresult(4242)), 2));
}
