//! External semaphores: what the order checker sees of them, what is left alive, what a failed
//! context and the end of one do, and the other side of a semaphore.

use std::os::fd::{AsRawFd as _, FromRawFd as _, IntoRawFd as _, OwnedFd};
use std::ptr::null_mut;

use cuda_events::sys::*;
use cuda_soft_driver::{
    Builder, ExternalSemaphore, Fault, HostOrder, OnMisuse, OrderCheck, SemaphoreKind, SoftDriver,
};

use crate::common::*;

const NON_BLOCKING: u32 = 1;
const OPAQUE: CUexternalSemaphoreHandleType =
    CUexternalSemaphoreHandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD;
const TIMELINE: CUexternalSemaphoreHandleType =
    CUexternalSemaphoreHandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD;

fn import(raw: &Raw, kind: CUexternalSemaphoreHandleType, fd: i32) -> (u32, CUexternalSemaphore) {
    let description = CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC {
        type_: kind,
        handle: CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_u { fd },
        ..Default::default()
    };
    let mut semaphore = null_mut();
    let import = raw.cuImportExternalSemaphore.unwrap();
    let code = unsafe { import(&mut semaphore, &description) };
    (code.0, semaphore)
}

fn imported(raw: &Raw, of: &ExternalSemaphore) -> CUexternalSemaphore {
    let kind = if of.kind() == SemaphoreKind::Binary { OPAQUE } else { TIMELINE };
    let (code, semaphore) = import(raw, kind, of.descriptor().unwrap().into_raw_fd());
    assert_eq!(code, OK);
    semaphore
}

fn signal(raw: &Raw, stream: CUstream, semaphore: CUexternalSemaphore, value: u64) -> u32 {
    let mut params = CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS::default();
    params.params.fence.value = value;
    let signal = raw.cuSignalExternalSemaphoresAsync.unwrap();
    unsafe { signal(&semaphore, &params, 1, stream) }.0
}

fn wait(raw: &Raw, stream: CUstream, semaphore: CUexternalSemaphore, value: u64) -> u32 {
    let mut params = CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS::default();
    params.params.fence.value = value;
    let wait = raw.cuWaitExternalSemaphoresAsync.unwrap();
    unsafe { wait(&semaphore, &params, 1, stream) }.0
}

fn destroy(raw: &Raw, semaphore: CUexternalSemaphore) -> u32 {
    unsafe { raw.cuDestroyExternalSemaphore.unwrap()(semaphore) }.0
}

/// The order checker, for which a signal that is done by the next call orders nothing: the host may
/// have seen it, and on a slow machine it often is.
fn told() -> Builder {
    SoftDriver::builder().check_order(OrderCheck::Report).order_host(HostOrder::Told)
}

/// Two streams write the same bytes: how many findings there are.
fn findings(kind: SemaphoreKind, waits: bool) -> usize {
    let raw = Raw::planting(told());
    let (one, two) = (raw.stream(NON_BLOCKING), raw.stream(NON_BLOCKING));
    // One for each way: a binary one would be taken by the stream that signals it. Two handles of
    // one semaphore are one semaphore.
    let [there, back] = [(), ()].map(|()| {
        let theirs = ExternalSemaphore::new(kind).unwrap();
        [imported(&raw, &theirs), imported(&raw, &theirs)]
    });
    let mut memory = 0;
    unsafe {
        assert_eq!((raw.cuMemAlloc_v2)(&mut memory, 64).0, OK);
        for round in 1..4 {
            assert_eq!((raw.cuMemsetD8Async)(memory, 1, 64, one).0, OK);
            assert_eq!(signal(&raw, one, there[0], 2 * round), OK);
            if waits {
                assert_eq!(wait(&raw, two, there[1], 2 * round), OK);
            }
            assert_eq!((raw.cuMemsetD8Async)(memory, 2, 64, two).0, OK);
            if waits {
                assert_eq!(signal(&raw, two, back[0], 2 * round + 1), OK);
                assert_eq!(wait(&raw, one, back[1], 2 * round + 1), OK);
            } else if kind == SemaphoreKind::Binary {
                break;
            }
        }
        raw.sync(one);
        raw.sync(two);
        assert_eq!((raw.cuMemFree_v2)(memory).0, OK);
    }
    for semaphore in there.into_iter().chain(back) {
        assert_eq!(destroy(&raw, semaphore), OK);
    }
    raw.soft.order_findings().len()
}

#[test]
fn a_signal_orders_what_waits_for_it() {
    cuda_events_test_support::own_process!();
    for kind in [SemaphoreKind::Timeline, SemaphoreKind::Binary] {
        assert_eq!(findings(kind, true), 0, "{kind:?}");
        assert!(findings(kind, false) > 0, "{kind:?}: without the waits there is no order");
    }
}

/// A wait that the other side has ended: nothing is known of it, and nothing is told.
#[test]
fn a_signal_of_others_is_no_finding() {
    let raw = Raw::planting(SoftDriver::builder().check_order(OrderCheck::Report));
    let stream = raw.stream(NON_BLOCKING);
    let theirs = ExternalSemaphore::new(SemaphoreKind::Timeline).unwrap();
    let ours = imported(&raw, &theirs);
    assert_eq!(wait(&raw, stream, ours, 5), OK);
    assert!(raw.busy(stream));
    theirs.signal(6);
    raw.sync(stream);
    assert_eq!(raw.soft.order_findings(), Vec::<String>::new());
    assert_eq!(destroy(&raw, ours), OK);
}

#[test]
fn what_is_not_destroyed_is_told() {
    let raw = Raw::with(SoftDriver::builder().on_misuse(OnMisuse::Error).log(100));
    let theirs = ExternalSemaphore::new(SemaphoreKind::Binary).unwrap();
    let ours = imported(&raw, &theirs);
    assert_eq!(raw.soft.live().external_semaphores, 1);
    let report = raw.soft.leak_report();
    assert!(report.contains("1 external semaphore"), "{report}");
    assert!(report.contains("made by") && report.contains("cuImportExternalSemaphore"), "{report}");
    assert_eq!(destroy(&raw, ours), OK);
    assert_eq!(raw.soft.live().external_semaphores, 0);
    // A handle that is gone, and one of something else, are known.
    assert_eq!(destroy(&raw, ours), INVALID_HANDLE);
    let stream = raw.stream(NON_BLOCKING);
    assert_eq!(signal(&raw, stream, ours, 1), INVALID_HANDLE);
    assert_ne!(wait(&raw, stream, stream.cast(), 1), OK);
    let misuses = raw.soft.misuses();
    assert_eq!(misuses.len(), 3, "{misuses:?}");
    assert!(misuses[0].contains("external semaphore"), "{misuses:?}");
}

/// A fault that comes after the work would have the descriptor closed twice.
#[test]
fn an_import_that_fails_leaves_the_descriptor() {
    let raw = Raw::new();
    let theirs = ExternalSemaphore::new(SemaphoreKind::Timeline).unwrap();
    let fd = theirs.descriptor().unwrap();
    for fault in [Fault::on("cuImport*"), Fault::on("cuImport*").after_the_work()] {
        raw.soft.inject(fault.once().answer(CUresult(2)));
        assert_eq!(import(&raw, TIMELINE, fd.as_raw_fd()).0, 2);
        assert_eq!(raw.soft.live().external_semaphores, 0);
        fd.try_clone().unwrap();
    }
}

#[test]
fn a_failed_context_waits_no_more_and_signals_nothing() {
    let raw = Raw::new();
    let stream = raw.stream(NON_BLOCKING);
    let theirs = ExternalSemaphore::new(SemaphoreKind::Timeline).unwrap();
    let ours = imported(&raw, &theirs);
    assert_eq!(wait(&raw, stream, ours, 1), OK);
    assert_eq!(signal(&raw, stream, ours, 2), OK);
    let code = CUresult::CUDA_ERROR_LAUNCH_FAILED;
    raw.soft.fail_contexts(code);
    assert_eq!(unsafe { (raw.cuStreamSynchronize)(stream) }, code);
    assert_eq!(theirs.value(), 0);
    assert_eq!(destroy(&raw, ours), code.0);
    assert_eq!(raw.soft.live().external_semaphores, 0, "it was tried");
}

#[test]
fn the_other_side_in_another_process() {
    let theirs = ExternalSemaphore::new(SemaphoreKind::Timeline).unwrap();
    let again = ExternalSemaphore::from_descriptor(theirs.descriptor().unwrap()).unwrap();
    again.signal(4);
    assert_eq!((theirs.value(), again.kind()), (4, SemaphoreKind::Timeline));
    let file = std::fs::File::open("/dev/null").unwrap();
    assert!(ExternalSemaphore::from_descriptor(file.into()).is_err());
    let binary = ExternalSemaphore::new(SemaphoreKind::Binary).unwrap();
    binary.signal(77);
    assert_eq!(binary.value(), 1, "it has no other value");
}

/// The exported forms, which the shared library has under C names.
#[test]
fn the_c_functions() {
    use cuda_soft_driver::{
        external_semaphore_shared_library as make, signal_external_semaphore_shared_library as tell,
    };

    for (timeline, kind) in [(false, SemaphoreKind::Binary), (true, SemaphoreKind::Timeline)] {
        let number = make(timeline);
        assert_eq!(tell(number, 9).0, OK);
        let fd = unsafe { OwnedFd::from_raw_fd(number) };
        let made = ExternalSemaphore::from_descriptor(fd).unwrap();
        assert_eq!((made.kind(), made.value()), (kind, if timeline { 9 } else { 1 }));
    }
    assert_eq!(tell(-1, 1).0, INVALID_VALUE);
}

/// How many findings there are when a graph with a wait for a binary semaphore and a signal of
/// another one is launched four times.
fn findings_of_a_graph(waits: bool) -> usize {
    let raw = Raw::planting(told());
    let (one, two) = (raw.stream(NON_BLOCKING), raw.stream(NON_BLOCKING));
    let [there, back] =
        [(), ()].map(|()| imported(&raw, &ExternalSemaphore::new(SemaphoreKind::Binary).unwrap()));
    let mut memory = 0;
    unsafe {
        assert_eq!((raw.cuMemAlloc_v2)(&mut memory, 64).0, OK);
        assert_eq!((raw.cuStreamBeginCapture_v2)(two, CUstreamCaptureMode(2)).0, OK);
        if waits {
            assert_eq!(wait(&raw, two, there, 0), OK);
        }
        assert_eq!((raw.cuMemsetD8Async)(memory, 2, 64, two).0, OK);
        assert_eq!(signal(&raw, two, back, 0), OK);
        let (mut graph, mut exec) = (null_mut(), null_mut());
        assert_eq!((raw.cuStreamEndCapture)(two, &mut graph).0, OK);
        let instantiate = raw.cuGraphInstantiateWithFlags.unwrap();
        assert_eq!(instantiate(&mut exec, graph, 0).0, OK);
        for _ in 0..4 {
            assert_eq!((raw.cuMemsetD8Async)(memory, 1, 64, one).0, OK);
            if waits {
                assert_eq!(signal(&raw, one, there, 0), OK);
            }
            assert_eq!((raw.cuGraphLaunch)(exec, two).0, OK);
            assert_eq!(wait(&raw, one, back, 0), OK);
            // Without a wait the next launch could signal `back` before this one's signal is
            // consumed: one of them would be lost, and the last wait would never end.
            if !waits {
                raw.sync(one);
            }
        }
    }
    raw.sync(one);
    raw.sync(two);
    raw.soft.order_findings().len()
}

/// Each launch waits for the next signal, and signals for the next wait.
#[test]
fn the_order_checker_sees_binary_ones_in_graphs() {
    // Its reports are for nobody.
    cuda_events_test_support::own_process!();
    assert_eq!(findings_of_a_graph(true), 0);
    assert_ne!(findings_of_a_graph(false), 0);
}
