//! What is left alive, and what is lost with its context.

use crate::common;

use std::ptr::null_mut;
#[cfg(target_os = "linux")]
use std::ptr::without_provenance_mut;

use common::*;
use cuda_events::sys::*;
use cuda_soft_driver::SoftDriver;

use crate::faults::fault;

const NO_TIMING: u32 = CU_EVENT_DISABLE_TIMING;

/// Registering memory makes nothing that has to be given back: the memory is the program's, and the
/// registration ends with the context.
#[test]
fn registered_memory_is_no_leak() {
    let raw = Raw::bare(SoftDriver::builder().log(100));
    assert_eq!(unsafe { (raw.cuInit)(0) }.0, OK);
    let context = raw.retain(0);
    raw.set_current(context);
    let memory = [0_u64; 8];
    let register =
        || unsafe { (raw.cuMemHostRegister_v2)(memory.as_ptr().cast_mut().cast(), 64, 3) }.0;
    assert_eq!(register(), OK);
    assert_eq!(register(), CUresult::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED.0);
    assert_eq!(raw.soft.live().allocations, 0);
    assert_eq!(unsafe { (raw.cuDevicePrimaryCtxRelease_v2)(0) }.0, OK);
    raw.soft.assert_no_leaks();
    raw.set_current(raw.retain(0));
    assert_eq!(register(), OK, "the registration ended with the context");
    assert_eq!(unsafe { (raw.cuDevicePrimaryCtxRelease_v2)(0) }.0, OK);
    raw.soft.assert_no_leaks();
}

/// Memory that other processes may have open, or this one from them, may end with its context.
#[test]
#[cfg(target_os = "linux")]
fn shared_memory_may_end_with_its_context() {
    let exporter = Raw::with(SoftDriver::builder());
    let importer = Raw::with(SoftDriver::builder());
    let (mut memory, mut opened) = (0, 0);
    let mut handle = CUipcMemHandle { reserved: [0; 64] };
    unsafe {
        assert_eq!((exporter.cuMemAlloc_v2)(&mut memory, 8).0, OK);
        assert_eq!((exporter.cuIpcGetMemHandle)(&mut handle, memory).0, OK);
        let open = importer.cuIpcOpenMemHandle_v2.expect("it has the call");
        assert_eq!(open(&mut opened, handle, 1).0, OK);
        let allocations = [&exporter, &importer].map(|raw| raw.soft.live().allocations);
        assert_eq!(allocations, [1, 1], "they are not freed");
        for raw in [&exporter, &importer] {
            assert_eq!((raw.cuDevicePrimaryCtxRelease_v2)(0).0, OK);
            raw.soft.assert_no_leaks();
        }
    }
}

/// Another process's memory has one address in a context, for as long as it is open there.
#[test]
#[cfg(target_os = "linux")]
fn shared_memory_is_closed_as_often_as_it_was_opened() {
    let exporter = Raw::with(SoftDriver::builder());
    let importer = Raw::with(SoftDriver::builder());
    let open = importer.cuIpcOpenMemHandle_v2.expect("it has the call");
    let (mut memory, mut handle) = (0, CUipcMemHandle { reserved: [0; 64] });
    unsafe {
        assert_eq!((exporter.cuMemAlloc_v2)(&mut memory, 8).0, OK);
        assert_eq!((exporter.cuIpcGetMemHandle)(&mut handle, memory).0, OK);
        for times in 1..4 {
            let opened = [(); 3].map(|()| {
                let mut opened = 0;
                assert_eq!(open(&mut opened, handle, 1).0, OK);
                opened
            });
            assert_eq!(opened, [opened[0]; 3], "{times}");
            for left in [2, 1, 0] {
                let set = (importer.cuMemsetD32Async)(opened[0], 1, 2, legacy()).0;
                assert_eq!((set, importer.soft.live().allocations), (OK, 1), "{left}");
                assert_eq!((importer.cuIpcCloseMemHandle)(opened[0]).0, OK, "{left}");
            }
            assert_eq!((importer.cuIpcCloseMemHandle)(opened[0]).0, INVALID_VALUE);
            assert_eq!(importer.soft.live().allocations, 0, "{times}");
        }
    }
}

/// A close of another process's memory waits for the device, as a free does.
#[test]
#[cfg(target_os = "linux")]
fn a_close_of_shared_memory_waits() {
    let exporter = Raw::with(SoftDriver::builder());
    let importer = Raw::with(SoftDriver::builder());
    let (mut memory, mut opened) = (0, 0);
    let mut handle = CUipcMemHandle { reserved: [0; 64] };
    let open = importer.cuIpcOpenMemHandle_v2.expect("it has the call");
    let close = importer.cuIpcCloseMemHandle;
    let mut context = null_mut();
    unsafe {
        assert_eq!((exporter.cuMemAlloc_v2)(&mut memory, 8).0, OK);
        assert_eq!((exporter.cuIpcGetMemHandle)(&mut handle, memory).0, OK);
        assert_eq!((importer.cuCtxGetCurrent)(&mut context).0, OK);
    }
    let stream = importer.stream(1);
    let latch = importer.latch(stream);
    assert_eq!(unsafe { open(&mut opened, handle, 1) }.0, OK, "to open it does not wait");
    let (set, context) = (importer.cuCtxSetCurrent, context.addr());
    let closing = std::thread::spawn(move || unsafe {
        assert_eq!(set(without_provenance_mut(context)).0, OK);
        close(opened).0
    });
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert!(!closing.is_finished());
    latch.release();
    assert_eq!(closing.join().expect("no panic"), OK);
    assert_eq!(unsafe { (importer.cuStreamDestroy_v2)(stream) }.0, OK);
}

#[test]
fn leaks_are_counted_and_reported() {
    let raw = Raw::bare(SoftDriver::builder().log(100));
    assert_eq!(unsafe { (raw.cuInit)(0) }.0, OK);
    raw.soft.assert_no_leaks();
    let context = raw.retain(0);
    raw.set_current(context);
    let (stream, event) = (raw.stream(0), raw.event(CU_EVENT_INTERPROCESS | NO_TIMING));
    // Default streams are nobody's to give back.
    raw.sync(legacy());
    raw.sync(per_thread());
    let mut memory = 0;
    assert_eq!(unsafe { (raw.cuMemAlloc_v2)(&mut memory, 8) }.0, OK);
    let live = raw.soft.live();
    assert_eq!((live.retains, live.contexts, live.streams, live.events), (1, 0, 1, 1));
    assert_eq!((live.ipc_slots, live.allocations, live.graphs), (1, 1, 0));
    let report = raw.soft.leak_report();
    assert!(report.starts_with(
        "1 retain of a primary context, 1 stream, 1 event, 1 interprocess slot, 1 piece of memory"
    ));
    assert!(report.contains("stream 0x") && report.contains("cuStreamCreate("), "{report}");
    let failed =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| raw.soft.assert_no_leaks()));
    assert!(failed.is_err());
    unsafe {
        // A stream with work is given back all the same.
        let latch = raw.latch(stream);
        assert_eq!((raw.cuStreamDestroy_v2)(stream).0, OK);
        assert_eq!(raw.soft.live().streams, 0);
        latch.release();
        assert_eq!((raw.cuEventDestroy_v2)(event).0, OK);
        assert_eq!((raw.cuMemFree_v2)(memory).0, OK);
        assert_eq!((raw.cuDevicePrimaryCtxRelease_v2)(0).0, OK);
    }
    raw.soft.assert_no_leaks();
}

#[test]
fn what_only_its_context_destroys_is_a_leak() {
    let raw = Raw::with(SoftDriver::builder().log(100));
    let made = |raw: &Raw| (raw.stream(1), raw.event(NO_TIMING));
    // The driver's own are nobody's to destroy.
    raw.sync(legacy());
    raw.sync(per_thread());
    let (stream, event) = made(&raw);
    let mut memory = 0;
    let mut other = null_mut();
    unsafe {
        assert_eq!((raw.cuMemAlloc_v2)(&mut memory, 8).0, OK);
        // What was tried is not counted.
        raw.soft.inject(fault("cu*Destroy_v2", 7));
        let (stream, event) = made(&raw);
        assert_eq!(((raw.cuStreamDestroy_v2)(stream).0, (raw.cuEventDestroy_v2)(event).0), (7, 7));
        raw.soft.clear_faults();
        assert_eq!((raw.cuDevicePrimaryCtxRelease_v2)(0).0, OK);
        assert_eq!(raw.soft.live().lost, 3);
        assert_eq!((raw.cuCtxCreate_v2)(&mut other, 0, 0).0, OK);
        made(&raw);
        assert_eq!((raw.cuCtxDestroy_v2)(other).0, OK);
        // Nothing can be destroyed in a context that failed.
        assert_eq!((raw.cuCtxCreate_v2)(&mut other, 0, 0).0, OK);
        made(&raw);
        raw.soft.fail_contexts(CUresult(719));
        assert_eq!((raw.cuCtxDestroy_v2)(other).0, OK);
    }
    assert_eq!(raw.soft.live().lost, 5);
    let report = raw.soft.leak_report();
    assert!(report.starts_with("5 objects destroyed only with their context\n"), "{report}");
    for (what, handle) in
        [("stream", stream.addr()), ("event", event.addr()), ("piece of memory", memory as usize)]
    {
        assert!(report.contains(&format!("lost {what} {handle:#x}")), "{report}");
    }
    let failed =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| raw.soft.assert_no_leaks()));
    assert!(failed.is_err());
}

/// That a program tried to destroy an object says nothing about the next one with its handle.
#[test]
fn a_handle_that_comes_back_is_lost_anew() {
    const MADE: usize = 16;
    let raw = Raw::with(SoftDriver::builder());
    let release = || assert_eq!(unsafe { (raw.cuDevicePrimaryCtxRelease_v2)(0) }.0, OK);
    let made = || (raw.stream(1), raw.event(NO_TIMING));
    let (stream, event) = made();
    raw.soft.inject(fault("cu*Destroy_v2", 7));
    unsafe {
        assert_eq!((raw.cuStreamDestroy_v2)(stream).0, 7);
        assert_eq!((raw.cuEventDestroy_v2)(event).0, 7);
    }
    raw.soft.clear_faults();
    release();
    assert_eq!(raw.soft.live().lost, 0);
    raw.set_current(raw.retain(0));
    let (streams, events): (Vec<_>, Vec<_>) = [(); MADE].map(|()| made()).into_iter().unzip();
    assert!(streams.contains(&stream) && events.contains(&event));
    release();
    assert_eq!(raw.soft.live().lost, 2 * MADE);
}

/// A green context ends its streams before CUDA 13.1, and leaves them to their owner from then on.
#[test]
fn what_a_green_context_leaves_of_its_streams() {
    for (minor, destroyed, live, lost) in [(0, DESTROYED, 0, 1), (1, OK, 1, 0)] {
        let raw = Raw::with(SoftDriver::builder().version(13, minor));
        let mut all = CUdevResource::default();
        let (mut description, mut green, mut stream) = (null_mut(), null_mut(), null_mut());
        unsafe {
            let sm = CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM;
            assert_eq!(raw.cuDeviceGetDevResource.expect("of 12.4")(0, &mut all, sm).0, OK);
            let describe = raw.cuDevResourceGenerateDesc.expect("of 12.4");
            assert_eq!(describe(&mut description, &mut all, 1).0, OK);
            assert_eq!(raw.cuGreenCtxCreate.expect("of 12.4")(&mut green, description, 0, 1).0, OK);
            let create = raw.cuGreenCtxStreamCreate.expect("of 12.5");
            assert_eq!(create(&mut stream, green, CU_STREAM_NON_BLOCKING, 0).0, OK);
            assert_eq!(raw.cuGreenCtxDestroy.expect("of 12.4")(green).0, OK);
            let left = raw.soft.live();
            assert_eq!((left.streams, left.lost), (live, lost), "13.{minor}");
            assert_eq!((raw.cuStreamDestroy_v2)(stream).0, destroyed, "13.{minor}");
            let left = raw.soft.live();
            assert_eq!((left.streams, left.lost), (0, lost), "13.{minor}");
        }
        assert!(raw.soft.misuses().is_empty(), "13.{minor}");
    }
}

#[test]
fn what_was_destroyed_in_a_failed_context_is_no_leak() {
    let raw = Raw::with(SoftDriver::builder().log(100));
    let (stream, other) = (raw.stream(1), raw.stream(1));
    let (event, kept) = (raw.event(NO_TIMING), raw.event(NO_TIMING));
    let shared = if cfg!(target_os = "linux") {
        raw.event(CU_EVENT_INTERPROCESS | NO_TIMING)
    } else {
        raw.event(0)
    };
    raw.soft.fail_contexts(CUresult(719));
    for event in [event, shared] {
        assert_eq!(unsafe { (raw.cuEventDestroy_v2)(event) }.0, 719);
    }
    assert_eq!(unsafe { (raw.cuStreamDestroy_v2)(stream) }.0, 719);
    // What the program has not tried to destroy is still its own.
    let live = raw.soft.live();
    assert_eq!((live.streams, live.events, live.ipc_slots, live.lost), (1, 1, 0, 0));
    let report = raw.soft.leak_report();
    let in_report = |handle: usize| report.contains(&format!("{handle:#x}"));
    assert_eq!([other.addr(), kept.addr()].map(in_report), [true; 2], "{report}");
    assert_eq!([stream.addr(), event.addr(), shared.addr()].map(in_report), [false; 3], "{report}");
    unsafe {
        assert_eq!(
            ((raw.cuEventDestroy_v2)(kept).0, (raw.cuStreamDestroy_v2)(other).0),
            (719, 719)
        );
        assert_eq!((raw.cuDevicePrimaryCtxRelease_v2)(0).0, OK);
    }
    raw.soft.assert_no_leaks();
}
