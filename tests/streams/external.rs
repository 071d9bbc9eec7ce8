//! Semaphores of other APIs: order, values, who owns the descriptor, and what is refused.
//!
//! A maker of the software driver stands for the other API, so that no test here needs one. On a
//! real driver that takes Vulkan, as the rules of `external` do.

use crate::common::{self};

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use common::counting::{Watched, calls, counted_context, counting, fail_next};
use common::{Gpu, Latch, Other, TestDriver, not_run, own_process};
use cuda_events::capture::CaptureMode;
use cuda_events::external::{BinarySemaphore, SemaphorePoint, TimelineSemaphore};
use cuda_events::graph::Graph;
use cuda_events::sys::{CUresult, CUstreamCaptureMode, Function};
use cuda_events::{
    Context, Device, Driver, Error, EventFlags, Progress, Stream, StreamOptions, StreamRef, Uuid,
    Version,
};
use cuda_soft_driver::{ExternalSemaphore, Fault, SemaphoreKind, SoftDriver};

const SIGNAL: Function = Function::cuSignalExternalSemaphoresAsync;
const WAIT: Function = Function::cuWaitExternalSemaphoresAsync;
const IMPORT: Function = Function::cuImportExternalSemaphore;

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);

fn made(kind: SemaphoreKind) -> ExternalSemaphore {
    ExternalSemaphore::new(kind).expect("the system has files of memory")
}

fn descriptor(semaphore: &ExternalSemaphore) -> OwnedFd {
    semaphore.descriptor().expect("a descriptor")
}

fn uuid(context: &Context) -> Uuid {
    context.device().uuid().expect("the device has one")
}

fn timeline_of(context: &Context, semaphore: &ExternalSemaphore) -> TimelineSemaphore {
    // SAFETY: the descriptor is one of a timeline, for this one import; the tests wait for their
    // streams, and destroy their graphs first.
    unsafe { TimelineSemaphore::import_fd(context, descriptor(semaphore), uuid(context)) }
        .expect("the import")
}

fn binary_of(context: &Context, semaphore: &ExternalSemaphore) -> BinarySemaphore {
    // SAFETY: as above, of a binary semaphore.
    unsafe { BinarySemaphore::import_fd(context, descriptor(semaphore), uuid(context)) }
        .expect("the import")
}

/// A driver that takes what the software driver makes.
fn gpu() -> Option<Gpu> {
    let gpu = Gpu::new();
    if TestDriver::chosen() == TestDriver::Native {
        not_run("a real driver takes a semaphore of Vulkan, as in the rules `external`");
        return None;
    }
    // Timelines came with it.
    common::needs_version(gpu.driver, Version::new(11, 2), "timeline semaphores").then_some(gpu)
}

/// With a timeline, and the two sides of it.
fn with_timeline() -> Option<(Gpu, ExternalSemaphore, TimelineSemaphore)> {
    let gpu = gpu()?;
    let theirs = made(SemaphoreKind::Timeline);
    let ours = timeline_of(&gpu.context, &theirs);
    Some((gpu, theirs, ours))
}

/// Waits for the stream; a wait that nobody ends fails.
#[track_caller]
fn finish(stream: &StreamRef) {
    assert_eq!(stream.synchronize_timeout(LONG), Ok(Progress::Done), "the stream does not end");
}

#[test]
fn a_wait_is_pending_until_the_value() {
    let Some((gpu, theirs, ours)) = with_timeline() else { return };
    let stream = gpu.stream();
    stream.wait_external_semaphore(&ours, 3).expect("a wait");
    let behind = stream.record_event(EventFlags::empty()).expect("a record");
    assert_eq!(behind.query(), Ok(Progress::Pending));
    // A lower value ends what waits for that, and nothing else.
    let other = gpu.stream();
    other.wait_external_semaphore(&ours, 2).expect("a wait");
    theirs.signal(2);
    finish(&other);
    assert_eq!(behind.query(), Ok(Progress::Pending));
    theirs.signal(3);
    finish(&stream);
    // One that is reached, and one that is passed, hold nothing.
    for value in [0, 2, 3] {
        stream.wait_external_semaphore(&ours, value).expect("a wait");
    }
    finish(&stream);
    // Unsigned: the upper half is above the lower one.
    stream.wait_external_semaphore(&ours, u64::MAX - 1).expect("a wait");
    assert_eq!(stream.query(), Ok(Progress::Pending));
    theirs.signal(u64::MAX);
    finish(&stream);
}

#[test]
fn a_binary_semaphore_is_for_one_wait() {
    let Some(gpu) = gpu() else { return };
    let theirs = made(SemaphoreKind::Binary);
    let ours = binary_of(&gpu.context, &theirs);
    let (one, two) = (gpu.stream(), gpu.stream());
    theirs.signal(1);
    one.wait_external_binary(&ours).expect("a wait");
    finish(&one);
    assert_eq!(theirs.value(), 0, "a wait takes the signal");
    // So another one waits for another signal.
    one.wait_external_binary(&ours).expect("a wait");
    assert_eq!(one.query(), Ok(Progress::Pending));
    let latch = Latch::hold(&two);
    two.signal_external_binary(&ours).expect("a signal");
    assert_eq!(one.query(), Ok(Progress::Pending));
    latch.release();
    finish(&one);
    finish(&two);
    assert_eq!(theirs.value(), 0);
}

#[test]
fn several_at_once() {
    let Some(gpu) = gpu() else { return };
    let timelines: Vec<_> = (0..9).map(|_| made(SemaphoreKind::Timeline)).collect();
    let ours: Vec<_> = timelines.iter().map(|theirs| timeline_of(&gpu.context, theirs)).collect();
    let their_binary = made(SemaphoreKind::Binary);
    let binary = binary_of(&gpu.context, &their_binary);
    let (one, two) = (gpu.stream(), gpu.stream());
    // Few, with a binary one; more than have room on the stack; and none.
    for count in [3, 9, 0] {
        let points: Vec<SemaphorePoint<'_>> = ours
            .iter()
            .zip(1..)
            .take(count)
            .map(|(timeline, value)| timeline.at(value + 10 * count as u64))
            .chain((count == 3).then(|| binary.once()))
            .collect();
        let latch = Latch::hold(&two);
        one.wait_externals(&points).expect("waits");
        two.signal_externals(&points).expect("signals");
        assert_eq!(one.query().expect("a query").is_done(), count == 0);
        latch.release();
        finish(&one);
        finish(&two);
        for (theirs, value) in timelines.iter().zip(1..).take(count) {
            assert_eq!(theirs.value(), value + 10 * count as u64);
        }
    }
    // Each of them is waited for, the last one too.
    for (count, value) in [(2, 1000), (8, 2000), (9, 3000)] {
        let points: Vec<_> = ours.iter().take(count).map(|ours| ours.at(value)).collect();
        one.wait_externals(&points).expect("waits");
        for theirs in timelines.iter().take(count) {
            assert_eq!(one.query(), Ok(Progress::Pending), "{count}");
            theirs.signal(value);
        }
        finish(&one);
    }
}

/// Two signals of a binary semaphore need a wait between them, and two waits a signal.
#[test]
fn a_batch_has_a_binary_semaphore_once() {
    let Some((gpu, theirs, timeline)) = with_timeline() else { return };
    let watched = Watched::new(gpu.driver);
    let context = watched.context();
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let makers: Vec<_> = (0..10).map(|_| made(SemaphoreKind::Binary)).collect();
    let binaries: Vec<_> = makers.iter().map(|theirs| binary_of(&context, theirs)).collect();
    let [first, second] = [&binaries[0], &binaries[1]];
    // Few of them, and more than have room on the stack; with the first and the last alike.
    let many = |last| binaries.iter().take(9).chain([last]).map(BinarySemaphore::once).collect();
    let batches: [Vec<SemaphorePoint<'_>>; 5] = [
        vec![first.once(), first.once()],
        vec![first.once(), second.once(), first.once()],
        vec![second.once(), timeline.at(1), first.once(), first.once()],
        many(first),
        many(&binaries[8]),
    ];
    watched.made();
    for points in &batches {
        for (function, call) in [
            (SIGNAL, StreamRef::signal_externals as fn(&StreamRef, &[_]) -> _),
            (WAIT, StreamRef::wait_externals),
        ] {
            let error = call(&stream, points).expect_err("one is there twice");
            assert_eq!(error, Error::NotASemaphore { function, code: None });
        }
    }
    assert_eq!(watched.made(), [], "the driver is not asked");
    // Different ones are good, and so is one value of a timeline twice.
    let different: Vec<_> = many(&binaries[9]);
    let points = [first.once(), timeline.at(1), second.once(), timeline.at(1), timeline.at(0)];
    stream.wait_externals(&points[1..2]).expect("a wait");
    theirs.signal(1);
    stream.signal_externals(&different).expect("signals");
    stream.wait_externals(&different).expect("waits");
    stream.signal_externals(&[first.once(), second.once()]).expect("signals");
    stream.wait_externals(&points).expect("waits");
    finish(&stream);
}

#[test]
fn each_is_one_call() {
    // A capture of another test would cost one more.
    own_process!();
    let Some(gpu) = gpu() else { return };
    let context = counted_context(gpu.driver);
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let (theirs, their_binary) = (made(SemaphoreKind::Timeline), made(SemaphoreKind::Binary));
    let (timeline, binary) = (timeline_of(&context, &theirs), binary_of(&context, &their_binary));
    let points = [timeline.at(2), binary.once()];
    let one = |function: Function, call: &dyn Fn() -> cuda_events::Result<()>| {
        let (result, made) = calls(call);
        assert_eq!((result, made), (Ok(()), vec![function]));
    };
    one(SIGNAL, &|| stream.signal_external(&timeline, 1));
    one(WAIT, &|| stream.wait_external_semaphore(&timeline, 1));
    one(SIGNAL, &|| stream.signal_external_binary(&binary));
    one(WAIT, &|| stream.wait_external_binary(&binary));
    one(SIGNAL, &|| stream.signal_externals(&points));
    one(WAIT, &|| stream.wait_externals(&points));
    let (results, made) = calls(|| (stream.signal_externals(&[]), stream.wait_externals(&[])));
    assert_eq!((results, made), ((Ok(()), Ok(())), vec![]));
    finish(&stream);
    // Of a default stream the context is current.
    let default = StreamRef::legacy_default(&context);
    let (result, made) = calls(|| default.signal_external(&timeline, 3));
    assert_eq!(result, Ok(()));
    assert_eq!(
        made,
        [
            Function::cuCtxGetCurrent,
            Function::cuCtxPushCurrent_v2,
            SIGNAL,
            Function::cuCtxPopCurrent_v2
        ]
    );
    finish(&default);
    assert_eq!(theirs.value(), 3);
    // It is destroyed with its context current.
    assert_eq!(calls(|| timeline.close()), (Ok(()), DESTROYED.to_vec()));
    assert_eq!(calls(|| drop(binary)).1, DESTROYED);
}

/// How many descriptors of this process are of a semaphore.
fn open_descriptors(semaphore: &ExternalSemaphore) -> usize {
    use std::os::unix::fs::MetadataExt as _;

    let number = |path: &std::path::Path| {
        std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
    };
    let own = descriptor(semaphore);
    let wanted = number(format!("/proc/self/fd/{}", own.as_raw_fd()).as_ref());
    drop(own);
    let all = std::fs::read_dir("/proc/self/fd").expect("Linux has it").flatten();
    all.filter(|entry| wanted.is_some() && number(&entry.path()) == wanted).count()
}

#[test]
fn a_refusal_gives_the_descriptor_back() {
    let Some(gpu) = gpu() else { return };
    let device = uuid(&gpu.context);
    let null = || OwnedFd::from(File::open("/dev/null").expect("it is there"));
    let fd = null();
    let number = fd.as_raw_fd();
    // SAFETY: it is no semaphore; the software driver sees that.
    let refused = unsafe { TimelineSemaphore::import_fd(&gpu.context, fd, device) };
    let (error, fd) = refused.expect_err("it is no timeline").into_parts();
    let code = Some(CUresult::CUDA_ERROR_UNKNOWN);
    assert_eq!(error, Error::NotASemaphore { function: IMPORT, code });
    assert_eq!(fd.as_raw_fd(), number);
    fd.try_clone().expect("it is open");
    // SAFETY: as above.
    let refused = unsafe { BinarySemaphore::import_fd(&gpu.context, null(), device) };
    assert_eq!(Error::from(refused.expect_err("it is no binary semaphore")), error);
    // What became an error is closed.
    let context = counted_context(gpu.driver);
    let timeline = made(SemaphoreKind::Timeline);
    fail_next(IMPORT, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
    // SAFETY: a descriptor of a timeline, for the one import.
    let refused = unsafe { TimelineSemaphore::import_fd(&context, descriptor(&timeline), device) };
    drop(Error::from(refused.expect_err("it fails")));
    assert_eq!(open_descriptors(&timeline), 1);
}

/// The driver's codes for a handle that is not such a semaphore are one error, and its other codes
/// are themselves. The descriptor comes back with each.
#[test]
fn each_refusal_has_its_error() {
    let Some(gpu) = gpu() else { return };
    let context = counted_context(gpu.driver);
    let theirs = made(SemaphoreKind::Timeline);
    for (code, is_none) in [
        (CUresult::CUDA_ERROR_INVALID_VALUE, true),
        (CUresult::CUDA_ERROR_INVALID_HANDLE, true),
        (CUresult::CUDA_ERROR_OPERATING_SYSTEM, true),
        (CUresult::CUDA_ERROR_UNKNOWN, true),
        (CUresult::CUDA_ERROR_OUT_OF_MEMORY, false),
        (CUresult::CUDA_ERROR_NOT_SUPPORTED, false),
        (CUresult::CUDA_ERROR_ILLEGAL_ADDRESS, false),
    ] {
        fail_next(IMPORT, code);
        let uuid = uuid(&context);
        // SAFETY: a timeline's, for this import.
        let refused = unsafe { TimelineSemaphore::import_fd(&context, descriptor(&theirs), uuid) };
        let (error, fd) = refused.expect_err("it is refused").into_parts();
        assert_eq!(error.code(), Some(code));
        assert_eq!(error.function(), Some(IMPORT));
        assert_eq!(matches!(error, Error::NotASemaphore { .. }), is_none, "{error}");
        fd.try_clone().expect("it is open");
    }
}

/// `CUDA_ERROR_UNKNOWN` is the driver's word for a file that is no semaphore, and also that of a
/// context that has failed with it.
#[test]
fn a_failed_context_is_not_blamed_on_the_handle() {
    let (soft, context, _stream) = driver();
    let counted = Context::primary(Device::new(counting(soft.driver()), 0).expect("the device"));
    let counted = counted.expect("the context");
    let theirs = made(SemaphoreKind::Timeline);
    let code = CUresult::CUDA_ERROR_UNKNOWN;
    let device = uuid(&context);
    let import = |fd| {
        // SAFETY: a timeline's, or none; the software driver sees that.
        let (imported, made) =
            calls(|| unsafe { TimelineSemaphore::import_fd(&counted, fd, device) });
        let asked = made.iter().filter(|call| **call == Function::cuEventCreate).count();
        (imported.map_err(Error::from), asked)
    };
    let no_semaphore = || OwnedFd::from(File::open("/dev/null").expect("it is there"));
    let (refused, asked) = import(no_semaphore());
    let refused = refused.expect_err("it is none");
    assert_eq!((refused, asked), (Error::NotASemaphore { function: IMPORT, code: Some(code) }, 1));
    assert_eq!(import(descriptor(&theirs)).1, 0, "a success asks nothing");

    soft.fail_contexts(code);
    let (refused, asked) = import(descriptor(&theirs));
    let refused = refused.expect_err("the context has failed");
    assert_eq!((refused, asked), (Error::Driver { function: Function::cuEventCreate, code }, 1));
    // Other codes need no question.
    let soft = SoftDriver::new();
    let context = Device::new(soft.driver(), 0).and_then(Context::primary).expect("the context");
    let code = CUresult::CUDA_ERROR_ILLEGAL_ADDRESS;
    soft.fail_contexts(code);
    // SAFETY: a timeline's, for this import.
    let refused = unsafe { TimelineSemaphore::import_fd(&context, descriptor(&theirs), device) };
    let (error, _fd) = refused.expect_err("the context has failed").into_parts();
    assert_eq!(error, Error::Driver { function: IMPORT, code });
}

/// Streams of a green context cannot use semaphores, and what is imported in one belongs to the
/// primary context.
#[test]
fn a_green_context_has_no_semaphores() {
    let Some((gpu, theirs, ours)) = with_timeline() else { return };
    if !common::needs(gpu.driver, Function::cuGreenCtxCreate) {
        return;
    }
    let split = gpu.device.sm_resource().and_then(|all| all.split_by_count(2, 16));
    let split = split.expect("two parts");
    // SAFETY: this thread alone uses it.
    let green = unsafe { Context::green(gpu.device, &[&split.groups[0]]) };
    let green = green.expect("a green context");
    let stream = Stream::new(&green, StreamOptions::new()).expect("a stream");
    for (function, result) in [
        (SIGNAL, stream.signal_external(&ours, 5)),
        (WAIT, stream.wait_external_semaphore(&ours, 5)),
    ] {
        let (device, other_device) = (0, 0);
        let refused = Error::ContextMismatch { function, code: None, device, other_device };
        assert_eq!(result, Err(refused));
    }
    assert_eq!(theirs.value(), 0);
    let before = open_descriptors(&theirs);
    // SAFETY: a timeline's, for this import.
    let refused =
        unsafe { TimelineSemaphore::import_fd(&green, descriptor(&theirs), uuid(&green)) };
    let (error, fd) = refused.expect_err("it is green").into_parts();
    let (device, other_device) = (0, 0);
    assert_eq!(
        error,
        Error::ContextMismatch { function: IMPORT, code: None, device, other_device }
    );
    // The descriptor was given back whole.
    // SAFETY: as above; it was not taken.
    let taken = unsafe { TimelineSemaphore::import_fd(&gpu.context, fd, uuid(&gpu.context)) };
    drop(taken.expect("the import"));
    assert_eq!(open_descriptors(&theirs), before);
}

/// What is taken over is not given back, whatever comes after it.
#[test]
fn a_pop_that_fails_gives_nothing_back() {
    let Some(gpu) = gpu() else { return };
    let context = counted_context(gpu.driver);
    let theirs = made(SemaphoreKind::Timeline);
    common::counting::fail_next(Function::cuCtxPopCurrent_v2, CUresult::CUDA_ERROR_UNKNOWN);
    let ours = timeline_of(&context, &theirs);
    assert_eq!(open_descriptors(&theirs), 2);
    assert!(common::current(gpu.driver).is_null(), "it is popped all the same");
    drop(ours);
    assert_eq!(open_descriptors(&theirs), 1);
}

#[test]
fn another_device_is_refused() {
    let soft = SoftDriver::builder().devices(2).build();
    let driver = counting(soft.driver());
    let [first, second] = [0, 1].map(|ordinal| {
        Context::primary(Device::new(driver, ordinal).expect("a device")).expect("a context")
    });
    let theirs = made(SemaphoreKind::Timeline);
    let refused = |context: &Context, device: Uuid| {
        let (result, made) = calls(|| {
            // SAFETY: a descriptor of a timeline, for the one import.
            unsafe { TimelineSemaphore::import_fd(context, descriptor(&theirs), device) }
        });
        assert!(!made.contains(&IMPORT), "the driver is not asked: {made:?}");
        Error::from(result.expect_err("it is of another device"))
    };
    let error = refused(&first, uuid(&second));
    let other_device =
        |semaphore, context| Error::SemaphoreOfOtherDevice { function: IMPORT, semaphore, context };
    assert_eq!(error, other_device(Some(1), 0));
    assert_eq!(refused(&second, uuid(&first)), other_device(Some(0), 1));
    let error = refused(&first, Uuid::from_bytes([0xA5; 16]));
    assert_eq!(error, other_device(None, 0));
    assert_eq!(open_descriptors(&theirs), 1);
}

#[test]
fn another_context_is_refused() {
    let Some((gpu, theirs, ours)) = with_timeline() else { return };
    let their_binary = made(SemaphoreKind::Binary);
    let binary = binary_of(&gpu.context, &their_binary);
    let other = Other::new(&gpu);
    {
        let stream = Stream::new(&other, StreamOptions::new()).expect("a stream");
        let there = timeline_of(&other, &theirs);
        // Each of them is looked at, not the first alone.
        let points = [there.at(1), ours.at(1)];
        for (function, result) in [
            (SIGNAL, stream.signal_external(&ours, 1)),
            (SIGNAL, stream.signal_external_binary(&binary)),
            (SIGNAL, stream.signal_externals(&points)),
            (WAIT, stream.wait_external_semaphore(&ours, 1)),
            (WAIT, stream.wait_external_binary(&binary)),
            (WAIT, stream.wait_externals(&points)),
        ] {
            let error = result.expect_err("the stream is of another context");
            let (device, other_device) = (0, 0);
            assert_eq!(
                error,
                Error::ContextMismatch { function, code: None, device, other_device }
            );
        }
        assert_eq!(stream.query(), Ok(Progress::Done));
        // Imported there, it is the same semaphore.
        stream.signal_external(&there, 4).expect("a signal");
        finish(&stream);
    }
    assert_eq!((theirs.value(), their_binary.value()), (4, 0));
}

/// A driver, its context and a stream.
fn driver() -> (SoftDriver, Context, Stream) {
    let soft = common::ordered(SoftDriver::builder()).build();
    let context =
        Device::new(soft.driver(), 0).and_then(Context::primary).expect("the primary context");
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    (soft, context, stream)
}

#[test]
fn a_forked_child_calls_nothing() {
    own_process!();
    let Some(gpu) = gpu() else { return };
    let watched = Watched::new(gpu.driver);
    let context = watched.context();
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let (theirs, their_binary) = (made(SemaphoreKind::Timeline), made(SemaphoreKind::Binary));
    let ours = [timeline_of(&context, &theirs), timeline_of(&context, &theirs)];
    let binary = binary_of(&context, &their_binary);
    let fd = descriptor(&theirs);
    let device = uuid(&context);
    let [first, second] = ours;
    let reply = watched.none_in_child(|| {
        // SAFETY: a descriptor of a timeline; nothing is imported in a forked child.
        let import = unsafe { TimelineSemaphore::import_fd(&context, fd, device) };
        let reply = format!(
            "{:?} {:?} {:?} {:?} {:?} {:?}",
            import.map(drop).map_err(|refused| refused.into_parts().0),
            stream.signal_external(&first, 1),
            stream.wait_externals(&[binary.once()]),
            stream.signal_externals(&[]),
            first.close(),
            binary.close(),
        );
        drop(second);
        reply
    });
    assert_eq!(reply.matches("does not survive a fork").count(), 6, "{reply}");
    assert_eq!(theirs.value(), 0);
    drop(context);
}

#[test]
fn imports_are_unsupported_on_older_drivers() {
    let theirs = made(SemaphoreKind::Timeline);
    let context = |driver: Driver| {
        Device::new(driver, 0).and_then(Context::primary).expect("the primary context")
    };
    let soft = SoftDriver::builder().version(11, 1).build();
    let old = context(soft.driver());
    // SAFETY: a descriptor of a timeline, for the one import.
    let refused = unsafe { TimelineSemaphore::import_fd(&old, descriptor(&theirs), uuid(&old)) };
    let (error, fd) = refused.expect_err("it is too old").into_parts();
    let since = Version::new(11, 2);
    assert_eq!(error, Error::Unsupported { function: IMPORT, since, driver: Version::new(11, 1) });
    drop(fd);
    let their_binary = made(SemaphoreKind::Binary);
    let binary = binary_of(&old, &their_binary);
    let stream = Stream::new(&old, StreamOptions::new()).expect("a stream");
    stream.signal_external_binary(&binary).expect("a signal");
    finish(&stream);
    assert_eq!(their_binary.value(), 1);
}

/// Code that takes the handle takes nothing else with it, and gives all of it back.
#[test]
fn a_handle_given_up_leaves_nothing() {
    if TestDriver::chosen() != TestDriver::Soft {
        return not_run("what is left is counted by a software driver in this process");
    }
    let (soft, context, stream) = driver();
    let theirs = made(SemaphoreKind::Timeline);
    let raw = timeline_of(&context, &theirs).into_raw();
    // SAFETY: it was given up just now, and is of this context.
    let ours = unsafe { TimelineSemaphore::from_raw(&context, raw) };
    let given_up = timeline_of(&context, &theirs).into_raw();
    assert_eq!(soft.live().retains, 1);
    drop((ours, stream));
    // SAFETY: nobody else has it.
    drop(unsafe { TimelineSemaphore::from_raw(&context, given_up) });
    let raw = timeline_of(&context, &theirs).into_raw();
    drop(context);
    assert!(!raw.is_null());
    assert_eq!(soft.live().retains, 0, "a share of the context is left");
}

/// What destroys a semaphore, with its context current.
const DESTROYED: [Function; 4] = [
    Function::cuCtxGetCurrent,
    Function::cuCtxPushCurrent_v2,
    Function::cuDestroyExternalSemaphore,
    Function::cuCtxPopCurrent_v2,
];

/// How often the calls of `work` destroy a semaphore.
fn destroyed<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let (result, made) = calls(work);
    (result, made.into_iter().filter(|call| *call == DESTROYED[2]).count())
}

/// The last of the semaphore, the graphs and the executable graphs destroys the import.
#[test]
fn a_graph_keeps_its_semaphores() {
    let Some(gpu) = gpu() else { return };
    let context = counted_context(gpu.driver);
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let (theirs, their_binary) = (made(SemaphoreKind::Timeline), made(SemaphoreKind::Binary));
    let imported = || (timeline_of(&context, &theirs), binary_of(&context, &their_binary));
    let begin = || common::begin_capture(&stream, CaptureMode::ThreadLocal).expect("a capture");

    // The value that a call is given may go at once, whichever call it is.
    let (timeline, binary) = imported();
    let ((graph, ends), gone) = destroyed(|| {
        let capture = begin();
        stream.wait_external_semaphore(&timeline, 1).expect("a wait");
        // The wait keeps the timeline already, and only this call the second one.
        stream.signal_externals(&[timeline.at(2), binary.once()]).expect("signals");
        drop(binary);
        let closed = timeline.close();
        (capture.end().expect("a graph"), closed)
    });
    assert_eq!((ends, gone), (Ok(()), 0), "the graph needs them");
    let exec = graph.instantiate().expect("an executable graph");
    assert_eq!(destroyed(|| drop(graph)).1, 0, "the executable graph needs them");
    exec.launch(&stream).expect("a launch");
    theirs.signal(1);
    finish(&stream);
    assert_eq!((theirs.value(), their_binary.value()), (2, 1));
    assert_eq!(destroyed(|| drop(exec)).1, 2, "nothing needs them any more");
    assert_eq!((open_descriptors(&theirs), open_descriptors(&their_binary)), (1, 1));

    // Or the graph goes first.
    let (timeline, binary) = imported();
    let capture = begin();
    stream.wait_external_binary(&binary).expect("a wait");
    assert_eq!(destroyed(|| drop(capture)).1, 0);
    assert_eq!(calls(|| binary.close()), (Ok(()), DESTROYED.to_vec()));
    // A graph that a capture adds to keeps what it had, and what it gets. An executable graph keeps
    // what the graph had when it was made.
    if common::needs(gpu.driver, Function::cuStreamBeginCaptureToGraph) {
        let capture = begin();
        stream.signal_external(&timeline, 3).expect("a signal");
        let graph = capture.end().expect("a graph");
        let exec = graph.instantiate().expect("an executable graph");
        let capture = common::begin_capture_to_graph(&stream, graph, &[], CaptureMode::ThreadLocal)
            .expect("a capture");
        let (_, second) = imported();
        stream.signal_external_binary(&second).expect("a signal");
        assert_eq!(destroyed(|| drop((second, timeline))).1, 0);
        assert_eq!(destroyed(|| drop(capture.end().expect("a graph"))).1, 1, "the second one");
        assert_eq!(destroyed(|| drop(exec)).1, 1, "the first one");
    }

    // The code that takes the handle out destroys it, and no other.
    let (timeline, _binary) = imported();
    let capture = begin();
    stream.signal_external(&timeline, 4).expect("a signal");
    let (raw, gone) = destroyed(|| timeline.into_raw());
    let (graph, gone_too) = destroyed(|| drop(capture));
    assert_eq!((gone, gone_too, graph), (0, 0, ()));
    // SAFETY: it was given up just now, and is of this context.
    let again = unsafe { TimelineSemaphore::from_raw(&context, raw) };
    assert_eq!(calls(|| again.close()), (Ok(()), DESTROYED.to_vec()));
}

/// The driver may have made the node although it returned an error.
#[test]
fn a_semaphore_is_retained_despite_an_error() {
    let (soft, context, stream) = driver();
    let theirs = made(SemaphoreKind::Timeline);
    let code = CUresult::CUDA_ERROR_LAUNCH_FAILED;
    for (function, work) in [
        (SIGNAL, StreamRef::signal_external as fn(&StreamRef, &TimelineSemaphore, u64) -> _),
        (WAIT, StreamRef::wait_external_semaphore),
    ] {
        for made_all_the_same in [true, false] {
            let ours = timeline_of(&context, &theirs);
            let capture = common::begin_capture(&stream, CaptureMode::ThreadLocal);
            let capture = capture.expect("a capture");
            let fault = Fault::on(function.name()).once().answer(code);
            soft.inject(if made_all_the_same { fault.after_the_work() } else { fault });
            assert_eq!(work(&stream, &ours, 1), Err(Error::Driver { function, code }));
            drop(ours);
            assert_eq!(open_descriptors(&theirs), 2, "{function}: a node may refer to it");
            let graph = capture.end().expect("a graph");
            assert_eq!(open_descriptors(&theirs), 2);
            drop(graph);
            assert_eq!(open_descriptors(&theirs), 1);
        }
    }
    // What the driver was not asked for, it did not do.
    let ours = timeline_of(&context, &theirs);
    let own = StreamRef::per_thread_default(&context);
    let capture = common::begin_capture(&own, CaptureMode::ThreadLocal).expect("a capture");
    // The first push is for the question whether the stream captures.
    soft.inject(Fault::on("cuCtxPushCurrent_v2").nth(2).answer(code));
    let function = Function::cuCtxPushCurrent_v2;
    assert_eq!(own.signal_external(&ours, 2), Err(Error::Driver { function, code }));
    soft.clear_faults();
    drop(ours);
    assert_eq!(open_descriptors(&theirs), 1, "no node refers to it");
    drop(capture);
}

/// Only while there is a capture, a call asks whether the stream takes part in it.
#[test]
fn a_capture_costs_one_more_call() {
    let Some(gpu) = gpu() else { return };
    let context = counted_context(gpu.driver);
    let [stream, other] =
        [(); 2].map(|()| Stream::new(&context, StreamOptions::new()).expect("a stream"));
    let theirs = made(SemaphoreKind::Timeline);
    let ours = timeline_of(&context, &theirs);
    let capture = common::begin_capture(&other, CaptureMode::ThreadLocal).expect("a capture");
    let (result, made) = calls(|| stream.signal_external(&ours, 1));
    assert_eq!((result, made.len(), made.last()), (Ok(()), 2, Some(&SIGNAL)));
    assert!(made[0].name().starts_with("cuStreamGetCaptureInfo"), "{made:?}");
    let (result, made) = calls(|| other.signal_external(&ours, 2));
    assert_eq!((result, made.len(), made.last()), (Ok(()), 2, Some(&SIGNAL)));
    let (results, made) = calls(|| (other.signal_externals(&[]), other.wait_externals(&[])));
    assert_eq!((results, made), ((Ok(()), Ok(())), vec![]));
    drop(capture.end().expect("a graph"));
    finish(&stream);
    // Only the one that captures keeps it.
    assert_eq!(theirs.value(), 1);
    assert_eq!(destroyed(|| drop(ours)).1, 1);
}

/// A stream that joins the capture is one of it.
#[test]
fn a_stream_that_joined_retains_semaphores() {
    let Some(gpu) = gpu() else { return };
    let (stream, joined) = (gpu.stream(), gpu.stream());
    let theirs = made(SemaphoreKind::Timeline);
    let ours = timeline_of(&gpu.context, &theirs);
    let capture = common::begin_capture(&stream, CaptureMode::ThreadLocal).expect("a capture");
    joined.wait_stream(&stream).expect("it joins");
    joined.signal_external(&ours, 1).expect("a signal");
    stream.wait_stream(&joined).expect("it is joined");
    let graph: Graph = capture.end().expect("a graph");
    drop(ours);
    assert_eq!(open_descriptors(&theirs), 2);
    let exec = graph.instantiate().expect("an executable graph");
    exec.launch(&stream).expect("a launch");
    finish(&stream);
    assert_eq!(theirs.value(), 1);
    drop((graph, exec));
    assert_eq!(open_descriptors(&theirs), 1);
}

/// A capture that other code began has no graph of this crate that could keep a semaphore.
#[test]
fn a_foreign_capture_retains_no_semaphore() {
    // A capture of another test, anywhere in the process, would make it one of those that leak.
    own_process!();
    let Some(gpu) = gpu() else { return };
    let context = counted_context(gpu.driver);
    let [stream, other] =
        [(); 2].map(|()| Stream::new(&context, StreamOptions::new()).expect("a stream"));
    let theirs = made(SemaphoreKind::Timeline);
    let symbols = context.driver().symbols();
    for capture in [false, true] {
        let ours = timeline_of(&context, &theirs);
        let capture = capture
            .then(|| common::begin_capture(&other, CaptureMode::ThreadLocal).expect("a capture"));
        let mut graph = std::ptr::null_mut();
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: a stream of this test, and places for the answers. Nothing else uses the stream.
        unsafe {
            let code = (symbols.cuStreamBeginCapture_v2)(stream.as_raw(), mode);
            assert_eq!(code, CUresult::CUDA_SUCCESS);
            stream.signal_external(&ours, 1).expect("a signal");
            let code = (symbols.cuStreamEndCapture)(stream.as_raw(), &mut graph);
            assert_eq!(code, CUresult::CUDA_SUCCESS);
            assert_eq!((symbols.cuGraphDestroy)(graph), CUresult::CUDA_SUCCESS);
        }
        // Beside a capture of this crate it is leaked: it might be a part of that.
        let leaked = capture.is_some();
        drop(capture.map(|capture| capture.end().expect("a graph")));
        assert_eq!(destroyed(|| drop(ours)).1, usize::from(!leaked), "leaked: {leaked}");
        assert_eq!(open_descriptors(&theirs), 1 + usize::from(leaked));
    }
    assert_eq!(theirs.value(), 0, "nothing was launched");
}
