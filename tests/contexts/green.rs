//! Green contexts: a part of the device's multiprocessors, and streams and events that belong to
//! it.

use crate::common::{self, table};

use std::ffi::{c_uint, c_void};

use common::counting::Watched;
use common::{Gpu, Latch, current};
use cuda_events::green::SmResource;
use cuda_events::sys::{
    CU_STREAM_NON_BLOCKING, CUdevResource, CUdevResourceType, CUresult, Function,
};
use cuda_events::{
    Context, Device, Error, Event, EventFlags, Progress, Result, Stream, StreamOptions, StreamRef,
    Version,
};
use cuda_soft_driver::SoftDriver;

/// Two parts of one size.
fn halves(gpu: &Gpu) -> [SmResource; 2] {
    let split =
        gpu.device.sm_resource().and_then(|all| all.split_by_count(2, 16)).expect("two parts");
    split.groups.try_into().expect("as many as were asked for")
}

/// A green context, which the test that makes it uses from one thread at a time.
fn green(device: Device, parts: &[&SmResource]) -> Result<Context> {
    // SAFETY: as this function says of its callers.
    unsafe { Context::green(device, parts) }
}

/// The driver would create it. This crate refuses it, with the reason, also where other code owns
/// the context.
#[test]
fn a_blocking_stream_is_refused() {
    let Some(gpu) = Gpu::with(Function::cuGreenCtxCreate) else { return };
    let (_, context) = green_half(&gpu);
    // SAFETY: it lives until the end of the test.
    let named = unsafe { Context::from_raw(gpu.driver, context.as_raw()) }.expect("a context");
    for context in [&context, &named] {
        for options in [StreamOptions::new(), StreamOptions::new().priority_clamped(-1)] {
            let refused = Stream::new(context, options.blocking(true)).map(drop);
            assert_eq!(refused, Err(Error::BlockingInGreenContext));
            Stream::new(context, options).expect("a stream");
        }
    }
    let blocking = StreamOptions::new().blocking(true);
    assert_eq!(Stream::new(&gpu.context, blocking).and_then(|it| it.is_blocking()), Ok(true));
}

/// Two green contexts, each with a half.
fn green_halves(gpu: &Gpu) -> [Context; 2] {
    halves(gpu).each_ref().map(|part| green(gpu.device, &[part]).expect("a green context"))
}

/// A green context, and the half of the device that it has.
fn green_half(gpu: &Gpu) -> (SmResource, Context) {
    let [part, _] = halves(gpu);
    let context = green(gpu.device, &[&part]).expect("a green context");
    (part, context)
}

/// The one part of a split.
fn a_part(device: Device) -> SmResource {
    let split = device.sm_resource().and_then(|all| all.split_by_count(1, 16)).expect("a part");
    split.groups.into_iter().next().expect("as many as were asked for")
}

fn stream(context: &Context) -> Stream {
    Stream::new(context, StreamOptions::new()).expect("a stream")
}

fn event(context: &Context, flags: EventFlags) -> Event {
    Event::new(context, flags).expect("an event")
}

/// A driver that writes down the calls made through it, and the primary context of its first
/// device.
fn observed(gpu: &Gpu) -> (Context, impl Fn() -> Vec<Function>) {
    let watched = Watched::new(gpu.driver);
    (watched.context(), move || watched.made())
}

#[test]
fn a_split_makes_equal_parts_and_a_remainder() {
    let Some(gpu) = Gpu::with(Function::cuDevSmResourceSplitByCount) else { return };
    let all = gpu.device.sm_resource().expect("what there is");
    assert_eq!(all.device(), gpu.device);
    assert_eq!(all.as_raw().type_, CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM);
    let attribute = cuda_events::sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
    assert_eq!(Ok(all.count() as i32), gpu.device.attribute(attribute));
    let has_sizes = gpu.driver.version() >= Version::new(13, 0);
    // No multiprocessor goes alone on any GPU that has such parts.
    assert_eq!(all.min_partition_size() > 1, has_sizes);
    assert_eq!(all.coscheduled_alignment() > 1, has_sizes);
    let expected = format!("SmResource {{ count: {}, device: 0", all.count());
    assert!(format!("{all:?}").starts_with(&expected), "{all:?}");

    for (groups, min_count) in [(1, 0), (1, 1), (2, 16), (u32::MAX, 16), (u32::MAX, 8)] {
        let split = all.split_by_count(groups, min_count).expect("parts");
        assert!(
            !split.groups.is_empty() && split.groups.len() <= groups as usize,
            "{groups} of {min_count}"
        );
        let size = split.groups[0].count();
        assert!(size >= min_count.max(1));
        assert!(
            split.groups.iter().all(|part| part.count() == size && part.device() == gpu.device)
        );
        let rest = split.remainder.as_ref().map_or(0, SmResource::count);
        assert_eq!(
            size * split.groups.len() as u32 + rest,
            all.count(),
            "nothing is lost: {split:?}"
        );
        assert!(split.remainder.is_none() || rest > 0);
    }
}

#[test]
fn a_green_context_has_its_part() {
    let Some(gpu) = Gpu::with(Function::cuGreenCtxCreate) else { return };
    let parts = halves(&gpu);
    let one = green(gpu.device, &[&parts[0]]).expect("a green context");
    let both =
        green(gpu.device, &[&parts[0], &parts[1]]).expect("parts may be in several contexts");
    assert!(current(gpu.driver).is_null(), "nothing was made current");
    assert_eq!(
        (one.is_green(), both.is_green(), gpu.context.is_green()),
        (Ok(true), Ok(true), Ok(false))
    );
    assert!(one != gpu.context && one != both);
    assert_eq!((one.device(), one.driver()), (gpu.device, gpu.driver));
    let count = |context: &Context| context.sm_resource().expect("its resource").count();
    assert_eq!(count(&one), parts[0].count());
    assert_eq!(count(&both), parts[0].count() + parts[1].count());
    assert_eq!(count(&gpu.context), gpu.device.sm_resource().expect("what there is").count());
    assert_eq!(one.sm_resource().expect("its resource").device(), gpu.device);

    // What a context has can be split further, and a context made of a part of it.
    let even = one.sm_resource().and_then(|all| all.split_by_count(2, 8)).expect("parts");
    let used: u32 = even.groups.iter().map(SmResource::count).sum();
    assert_eq!(even.remainder.is_none(), used == count(&one), "nothing is no remainder: {even:?}");
    let split = both.sm_resource().and_then(|all| all.split_by_count(1, 8)).expect("a part");
    let inner = green(gpu.device, &[&split.groups[0]]).expect("a green context");
    assert!(count(&inner) >= 8 && count(&inner) < count(&both));
    assert!(stream(&inner).query().is_ok_and(Progress::is_done));
    assert!(current(gpu.driver).is_null());
}

/// A driver that gives parts of nothing.
#[test]
fn a_part_without_multiprocessors_is_none() {
    unsafe extern "C" fn nothing(
        groups: *mut CUdevResource,
        count: *mut c_uint,
        input: *const CUdevResource,
        rest: *mut CUdevResource,
        _flags: c_uint,
        _least: c_uint,
    ) -> CUresult {
        // SAFETY: the caller has places for one part and for what remains, and the parts are plain
        // data.
        unsafe {
            let mut empty = *input;
            empty.u.sm.smCount = 0;
            (*groups, *rest, *count) = (empty, empty, 1);
        }
        CUresult::CUDA_SUCCESS
    }
    let soft = SoftDriver::new();
    let split = Function::cuDevSmResourceSplitByCount;
    let replace = |function| (function == split).then_some(nothing as *mut c_void);
    let device = Device::new(table::replaced(soft.driver(), replace), 0).expect("device 0");
    let split = device.sm_resource().and_then(|all| all.split_by_count(1, 8)).expect("a split");
    assert!(split.remainder.is_none(), "{split:?}");
    let refused = green(device, &[&split.groups[0]]);
    assert!(matches!(refused, Err(Error::ResourceMismatch { .. })), "{refused:?}");
}

/// The driver is not asked: over some of these a real one ended the process.
#[test]
fn parts_that_do_not_belong_together_make_no_context() {
    let Some(gpu) = Gpu::with(Function::cuGreenCtxCreate) else { return };
    let (primary, calls) = observed(&gpu);
    let device = primary.device();
    let split = |groups| {
        device.sm_resource().and_then(|all| all.split_by_count(groups, 16)).expect("parts")
    };
    let (first, second, all) = (split(2), split(2), device.sm_resource().expect("what there is"));
    let (rest, again) =
        (first.remainder.as_ref().expect("a rest"), device.sm_resource().expect("what there is"));
    let whole = green(device, &[&first.groups[0]])
        .and_then(|context| context.sm_resource())
        .expect("its resource");
    calls();
    let apart: [&[&SmResource]; 10] = [
        &[],
        &[&first.groups[0], &second.groups[1]],
        &[&first.groups[0], &first.groups[1], &second.groups[1]],
        &[&first.groups[0], &first.groups[0]],
        &[&first.groups[0], &first.groups[1], &first.groups[0]],
        &[rest, second.remainder.as_ref().expect("a rest")],
        &[rest, rest],
        &[&all, &first.groups[0]],
        &[&all, &again],
        &[&whole, &first.groups[1]],
    ];
    let function = Function::cuDevResourceGenerateDesc;
    for (index, parts) in apart.into_iter().enumerate() {
        assert_eq!(
            green(device, parts).map(drop),
            Err(Error::ResourceMismatch { function }),
            "number {index}"
        );
    }

    let soft = SoftDriver::new();
    let elsewhere =
        Device::new(soft.driver(), 0).expect("device 0").sm_resource().expect("what there is");
    assert_eq!(green(device, &[&elsewhere]).map(drop), Err(Error::DriverMismatch { function }));
    assert_eq!(
        green(device, &[&first.groups[0], &elsewhere]).map(drop),
        Err(Error::DriverMismatch { function })
    );
    assert_eq!(calls(), []);
    drop(
        green(device, &[&first.groups[0], &first.groups[1]])
            .expect("parts of one split belong together"),
    );
}

#[test]
fn resources_of_one_device_make_no_context_of_another() {
    let soft = SoftDriver::builder().devices(2).build();
    let [one, other] = [0, 1].map(|ordinal| Device::new(soft.driver(), ordinal).expect("a device"));
    let [mine, theirs] = [one, other].map(|device| device.sm_resource().expect("what there is"));
    let refused = Err(Error::ResourceMismatch { function: Function::cuDevResourceGenerateDesc });
    assert_eq!(green(one, &[&theirs]).map(drop), refused);
    assert_eq!(green(other, &[&mine, &theirs]).map(drop), refused);
    drop(green(other, &[&theirs]).expect("a green context"));
}

/// The primary context and all its green ones share their events.
#[test]
fn an_event_is_recorded_in_any_context_of_its_device() {
    let Some(gpu) = Gpu::with(Function::cuGreenCtxCreate) else { return };
    let [one, other] = green_halves(&gpu);
    let contexts = [gpu.context.clone(), one, other];
    for created_in in &contexts {
        for recording in &contexts {
            let (start, end) =
                (event(created_in, EventFlags::TIMING), event(recording, EventFlags::TIMING));
            let stream = stream(recording);
            let latch = Latch::hold(&stream);
            assert_eq!((start.record(&stream), end.record(&stream)), (Ok(()), Ok(())));
            assert_eq!(start.query(), Ok(Progress::Pending));
            latch.release();
            end.synchronize().expect("the work ends");
            assert_eq!(start.query(), Ok(Progress::Done));
            assert!(start.elapsed_ms(&end).expect("a time") >= 0.0);
            assert!(end.elapsed_ms(&start).expect("a time") <= 0.0);
            if created_in != recording {
                // What is wrong is named, and not that there are two contexts.
                let never = event(created_in, EventFlags::TIMING);
                let error = never.elapsed_ms(&end).expect_err("one was never recorded");
                assert!(matches!(error, Error::NotRecorded { .. }), "{error}");
            }
            if gpu.driver.symbols().cuCtxRecordEvent.is_some() {
                assert_eq!(start.record_context(recording), Ok(()));
            }
        }
    }
}

#[test]
fn the_last_user_destroys_it_once() {
    let Some(gpu) = Gpu::with(Function::cuGreenCtxCreate) else { return };
    let (primary, calls) = observed(&gpu);
    let device = primary.device();
    let part = a_part(device);
    calls();
    let context = green(device, &[&part]).expect("a green context");
    let create = [
        Function::cuDevResourceGenerateDesc,
        Function::cuGreenCtxCreate,
        Function::cuCtxFromGreenCtx,
    ];
    assert_eq!(calls(), create);
    let (clone, stream) = (context.clone(), stream(&context));
    let event = stream.record_event(EventFlags::empty()).expect("an event");
    event.synchronize().expect("no work");
    let resource = context.sm_resource().expect("its resource");
    let inner = resource.split_by_count(1, 8).expect("a part");
    calls();
    drop((context, clone, stream));
    assert_eq!(calls(), [Function::cuStreamDestroy_v2]);
    assert_eq!(event.query(), Ok(Progress::Done), "its context is there");
    calls();
    drop(event);
    assert_eq!(calls(), [Function::cuEventDestroy_v2]);
    drop(resource);
    assert_eq!(calls(), [], "what was split from it keeps it");
    drop(inner);
    assert_eq!(calls(), [Function::cuGreenCtxDestroy]);
    drop(primary);
    assert_eq!(calls(), [Function::cuDevicePrimaryCtxRelease_v2]);
}

/// A green context whose handle came from elsewhere: named, current, or that of a foreign stream.
#[test]
fn foreign_green_contexts_are_recognised() {
    let Some(gpu) = Gpu::with(Function::cuGreenCtxStreamCreate) else { return };
    let (primary, calls) = observed(&gpu);
    let (part, context) = green_half(&gpu);
    calls();
    // SAFETY: both contexts live as long as what names them.
    let (named, plain) = unsafe {
        let named = Context::from_raw(primary.driver(), context.as_raw()).expect("a context");
        (named, Context::from_raw(primary.driver(), gpu.context.as_raw()).expect("a context"))
    };
    calls();
    assert_eq!(named.is_green(), Ok(true));
    let asked = [
        Function::cuCtxGetCurrent,
        Function::cuCtxPushCurrent_v2,
        Function::cuStreamGetGreenCtx,
        Function::cuCtxPopCurrent_v2,
    ];
    assert_eq!(calls(), asked);
    assert_eq!(plain.is_green(), Ok(false));
    assert_eq!(calls(), asked);
    assert_eq!(primary.is_green(), Ok(false));
    assert_eq!(calls(), [], "what this crate retained needs no asking");
    assert_eq!(named, context);
    assert_eq!(named.sm_resource().expect("its resource").count(), part.count());
    drop((named, plain));

    {
        let _guard = context.make_current().expect("it can be current");
        // SAFETY: the context lives to the end of the test.
        let top = unsafe { Context::current(gpu.driver) }.expect("no error").expect("a context");
        assert_eq!((&top, top.is_green()), (&context, Ok(true)));
    }
    assert!(current(gpu.driver).is_null());

    // The stream of a library that knows green contexts only.
    let symbols = gpu.driver.symbols();
    let own = stream(&context);
    let (mut handle, mut raw) = (std::ptr::null_mut(), std::ptr::null_mut());
    let (get, create) = (symbols.cuStreamGetGreenCtx, symbols.cuGreenCtxStreamCreate);
    let (get, create) = (get.expect("of 12.4"), create.expect("of 12.5"));
    // SAFETY: places for the handles, and a stream that lives.
    unsafe {
        common::check(Function::cuStreamGetGreenCtx, get(own.as_raw(), &mut handle));
        assert!(!handle.is_null(), "a stream that was created in it");
        common::check(
            Function::cuGreenCtxStreamCreate,
            create(&mut raw, handle, CU_STREAM_NON_BLOCKING, 0),
        );
    }
    // SAFETY: it was just created, and lives until its owner below is dropped; so does its context.
    let foreign = unsafe { StreamRef::from_foreign(gpu.driver, raw) }.expect("a stream");
    assert_eq!(foreign.context(), &context, "the context that stands for the green one");
    assert_eq!(foreign.context().is_green(), Ok(true));
    let done = foreign.record_event(EventFlags::empty()).expect("an event");
    gpu.stream().wait_event(&done).expect("a wait");
    done.synchronize().expect("no work");
    drop((done, foreign));
    // SAFETY: nobody else destroys it.
    drop(unsafe { Stream::from_raw(&context, raw) });
}

#[test]
fn an_older_driver_is_unsupported() {
    let soft = SoftDriver::builder().version(12, 3).build();
    let driver = soft.driver();
    let device = Device::new(driver, 0).expect("device 0");
    let context = Context::primary(device).expect("the context");
    // SAFETY: the context lives as long as what is named here.
    let named = unsafe { Context::from_raw(driver, context.as_raw()) }.expect("a context");
    let unsupported = |function| Error::Unsupported {
        function,
        since: Version::new(12, 4),
        driver: Version::new(12, 3),
    };
    assert_eq!((context.is_green(), named.is_green()), (Ok(false), Ok(false)), "there are none");
    assert_eq!(device.sm_resource().map(drop), Err(unsupported(Function::cuDeviceGetDevResource)));
    assert_eq!(context.sm_resource().map(drop), Err(unsupported(Function::cuCtxGetDevResource)));
    assert_eq!(green(device, &[]).map(drop), Err(unsupported(Function::cuDevResourceGenerateDesc)));
}

/// Nothing of the driver is called there, whatever is dropped.
#[test]
#[cfg(unix)]
fn a_forked_child_leaves_it_alone() {
    // A fork of a process with other running tests takes their locks along.
    common::own_process!();
    let Some(gpu) = Gpu::with(Function::cuGreenCtxCreate) else { return };
    let (primary, calls) = observed(&gpu);
    let device = primary.device();
    let part = a_part(device);
    let mut context = Some(green(device, &[&part]).expect("a green context"));
    calls();
    let (reply, status) = common::fork::in_child(|| {
        let mut wrong = String::new();
        let mut refused = |result: Result<()>, function| {
            if result != Err(Error::ForkedChild { function }) {
                wrong += &format!("{function}: {result:?} ");
            }
        };
        let context = context.take().expect("the child has its copy");
        refused(device.sm_resource().map(drop), Function::cuDeviceGetDevResource);
        refused(context.sm_resource().map(drop), Function::cuCtxGetDevResource);
        refused(part.split_by_count(1, 1).map(drop), Function::cuDevSmResourceSplitByCount);
        refused(green(device, &[&part]).map(drop), Function::cuInit);
        // SAFETY: nothing is done with what is named in a forked child.
        let named = unsafe { StreamRef::from_raw(&context, std::ptr::null_mut()) };
        refused(named.query().map(drop), Function::cuStreamQuery);
        drop((named, context));
        wrong + &calls().iter().map(|call| format!("called {call} ")).collect::<String>()
    });
    assert_eq!(status, 0, "the child crashed or panicked");
    assert_eq!(reply, "");
    let context = context.take().expect("the parent has its own");
    stream(&context).synchronize().expect("the parent is unharmed");
    drop(context);
    assert!(calls().ends_with(&[Function::cuGreenCtxDestroy]));
}
