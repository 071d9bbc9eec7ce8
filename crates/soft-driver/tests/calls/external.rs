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
    let mut description = CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC::default();
    description.type_ = kind;
    description.handle.fd = fd;
    let mut semaphore = null_mut();
    let import = raw.cuImportExternalSemaphore.unwrap();
    let code = unsafe { import(&mut semaphore, &description) };
    (code.0, semaphore)
}

fn imported(raw: &Raw, theirs: &ExternalSemaphore) -> CUexternalSemaphore {
    let kind = if theirs.kind() == SemaphoreKind::Binary { OPAQUE } else { TIMELINE };
    let (code, semaphore) = import(raw, kind, theirs.descriptor().unwrap().into_raw_fd());
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
fn reporting() -> Builder {
    SoftDriver::builder().check_order(OrderCheck::Report).order_host(HostOrder::Reported)
}

/// Two streams write the same bytes: how many findings there are.
fn findings(kind: SemaphoreKind, waits: bool) -> usize {
    let raw = Raw::planting(reporting());
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
    order_texts(&raw.soft).len()
}

#[test]
fn a_signal_orders_what_waits_for_it() {
    cuda_events_test_support::own_process!();
    for kind in [SemaphoreKind::Timeline, SemaphoreKind::Binary] {
        assert_eq!(findings(kind, true), 0, "{kind:?}");
        assert!(findings(kind, false) > 0, "{kind:?}: without the waits there is no order");
    }
}

/// That a program tried to destroy a semaphore says nothing about the next one with its handle.
#[test]
fn a_handle_that_comes_back_is_lost_anew() {
    const MADE: usize = 16;
    let raw = Raw::with(SoftDriver::builder());
    let theirs = ExternalSemaphore::new(SemaphoreKind::Timeline).unwrap();
    let release = || assert_eq!(unsafe { (raw.cuDevicePrimaryCtxRelease_v2)(0) }.0, OK);
    let semaphore = imported(&raw, &theirs);
    raw.soft.inject(Fault::on("cuDestroyExternalSemaphore").answer(CUresult(7)));
    assert_eq!(destroy(&raw, semaphore), 7);
    raw.soft.clear_faults();
    release();
    assert_eq!(raw.soft.live().lost, 0);
    raw.set_current(raw.retain(0));
    let semaphores = [(); MADE].map(|()| imported(&raw, &theirs));
    assert!(semaphores.contains(&semaphore));
    release();
    assert_eq!(raw.soft.live().lost, MADE);
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
    assert_eq!(order_texts(&raw.soft), Vec::<String>::new());
    assert_eq!(destroy(&raw, ours), OK);
}

#[test]
fn semaphores_that_leak_are_reported() {
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

/// What the other side does too early is its own failure, and changes nothing.
#[test]
fn the_other_side_cannot_signal_too_early() {
    let refused = |theirs: &ExternalSemaphore, value| {
        let signal = std::panic::AssertUnwindSafe(|| theirs.signal(value));
        let printed = std::panic::catch_unwind(signal).expect_err("it is forbidden");
        printed.downcast_ref::<String>().expect("a message").clone()
    };
    let timeline = ExternalSemaphore::new(SemaphoreKind::Timeline).unwrap();
    timeline.signal(4);
    for value in [0, 3, 4] {
        let printed = refused(&timeline, value);
        assert!(
            printed.contains(&format!("a signal of {value}, where the value is 4")),
            "{printed}"
        );
        assert_eq!(timeline.value(), 4);
    }
    timeline.signal(5);
    let binary = ExternalSemaphore::new(SemaphoreKind::Binary).unwrap();
    binary.signal(0);
    let printed = refused(&binary, 0);
    assert!(printed.contains("a second signal, where no wait has consumed the first"), "{printed}");
    assert_eq!((timeline.value(), binary.value()), (5, 1));
}

/// The exported forms, which the shared library has under C names.
#[test]
fn the_c_functions() {
    use cuda_soft_driver::{
        external_semaphore_shared_library as make,
        signal_external_semaphore_shared_library as signal,
    };

    for (timeline, kind) in [(false, SemaphoreKind::Binary), (true, SemaphoreKind::Timeline)] {
        let number = make(timeline);
        assert_eq!(signal(number, 9).0, OK);
        assert_eq!(
            signal(number, 9).0,
            INVALID_VALUE,
            "it is not consumed, or not above the value"
        );
        let fd = unsafe { OwnedFd::from_raw_fd(number) };
        let made = ExternalSemaphore::from_descriptor(fd).unwrap();
        assert_eq!((made.kind(), made.value()), (kind, if timeline { 9 } else { 1 }));
    }
    assert_eq!(signal(-1, 1).0, INVALID_VALUE);
}

/// How many findings there are when a graph with a wait for a binary semaphore and a signal of
/// another one is launched four times.
fn findings_of_a_graph(waits: bool) -> usize {
    let raw = Raw::planting(reporting());
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
    order_texts(&raw.soft).len()
}

/// Each launch waits for the next signal, and signals for the next wait.
#[test]
fn the_order_checker_sees_binary_ones_in_graphs() {
    // Its reports are for nobody.
    cuda_events_test_support::own_process!();
    assert_eq!(findings_of_a_graph(true), 0);
    assert_ne!(findings_of_a_graph(false), 0);
}

/// The reports of misuse so far, of which there are `count`; the last one has all of these parts.
#[track_caller]
fn misused(raw: &Raw, count: usize, parts: &[&str]) {
    let misuses = raw.soft.misuses();
    assert_eq!(misuses.len(), count, "{misuses:?}");
    for part in parts {
        assert!(misuses[count - 1].contains(part), "{part:?} in {misuses:?}");
    }
}

/// Captures what `body` gives a stream, as an executable graph.
fn captured(raw: &Raw, stream: CUstream, body: impl FnOnce()) -> CUgraphExec {
    let (mut graph, mut exec) = (null_mut(), null_mut());
    unsafe {
        assert_eq!((raw.cuStreamBeginCapture_v2)(stream, CUstreamCaptureMode(2)).0, OK);
        body();
        assert_eq!((raw.cuStreamEndCapture)(stream, &mut graph).0, OK);
        assert_eq!(raw.cuGraphInstantiateWithFlags.unwrap()(&mut exec, graph, 0).0, OK);
        assert_eq!((raw.cuGraphDestroy)(graph).0, OK);
    }
    exec
}

#[test]
fn what_streams_still_use_is_not_destroyed() {
    let raw = Raw::new();
    let (one, two) = (raw.stream(NON_BLOCKING), raw.stream(NON_BLOCKING));
    let [gate, theirs] =
        [(), ()].map(|()| ExternalSemaphore::new(SemaphoreKind::Timeline).unwrap());
    let (gate_here, ours, again) =
        (imported(&raw, &gate), imported(&raw, &theirs), imported(&raw, &theirs));
    let name = format!("external semaphore {:#x}", ours.addr());
    // A wait, and a signal after it.
    assert_eq!(wait(&raw, one, ours, 1), OK);
    assert_eq!(destroy(&raw, ours), INVALID_HANDLE);
    let stream = format!("in stream {:#x}, from cuWaitExternalSemaphoresAsync, call ", one.addr());
    let parts = ["cuDestroyExternalSemaphore: ", &name, " has a pending wait ", &stream];
    misused(&raw, 1, &parts);
    theirs.signal(1);
    raw.sync(one);
    assert_eq!(wait(&raw, two, gate_here, 1), OK);
    assert_eq!(signal(&raw, two, ours, 2), OK);
    // Another import of the same semaphore is another handle.
    assert_eq!(destroy(&raw, again), OK);
    assert_eq!(destroy(&raw, ours), INVALID_HANDLE);
    misused(&raw, 2, &[&name, " has a pending signal ", "from cuSignalExternalSemaphoresAsync"]);
    gate.signal(1);
    raw.sync(two);
    // The same from a launch.
    let exec = captured(&raw, one, || assert_eq!(wait(&raw, one, ours, 3), OK));
    assert_eq!(unsafe { (raw.cuGraphLaunch)(exec, two) }.0, OK);
    assert_eq!(unsafe { (raw.cuGraphExecDestroy)(exec) }.0, OK);
    assert_eq!(destroy(&raw, ours), INVALID_HANDLE);
    misused(&raw, 3, &[&name, " has a pending wait ", "from cuGraphLaunch, call "]);
    assert_eq!(raw.soft.live().external_semaphores, 2, "what is refused is not done");
    theirs.signal(3);
    raw.sync(two);
    assert_eq!((destroy(&raw, ours), destroy(&raw, gate_here)), (OK, OK));
    misused(&raw, 3, &[]);
}

/// Only a launch would use the semaphore.
#[test]
fn a_graph_of_a_destroyed_semaphore_is_not_launched() {
    let raw = Raw::new();
    let stream = raw.stream(NON_BLOCKING);
    let [kept, theirs] =
        [(), ()].map(|()| ExternalSemaphore::new(SemaphoreKind::Timeline).unwrap());
    let (kept_here, ours) = (imported(&raw, &kept), imported(&raw, &theirs));
    let waits = captured(&raw, stream, || assert_eq!(wait(&raw, stream, ours, 1), OK));
    let signals = captured(&raw, stream, || {
        assert_eq!(signal(&raw, stream, kept_here, 1), OK);
        assert_eq!(signal(&raw, stream, ours, 1), OK);
    });
    assert_eq!(destroy(&raw, ours), OK);
    assert_eq!(raw.soft.misuses(), [""; 0]);
    let name = format!("external semaphore {:#x} was destroyed by", ours.addr());
    for (exec, count) in [(waits, 1), (signals, 2)] {
        assert_eq!(unsafe { (raw.cuGraphLaunch)(exec, stream) }.0, INVALID_HANDLE);
        misused(&raw, count, &["cuGraphLaunch: ", &name, "cuDestroyExternalSemaphore, call "]);
    }
    raw.sync(stream);
    assert_eq!((kept.value(), theirs.value()), (0, 0), "nothing of such a launch is done");
    for exec in [waits, signals] {
        assert_eq!(unsafe { (raw.cuGraphExecDestroy)(exec) }.0, OK);
    }
    assert_eq!(destroy(&raw, kept_here), OK);
    misused(&raw, 2, &[]);
}

#[test]
fn a_value_that_does_not_rise_is_misuse() {
    cuda_events_test_support::own_process!();
    let raw = Raw::new();
    let (one, two) = (raw.stream(NON_BLOCKING), raw.stream(NON_BLOCKING));
    let [gate, theirs] =
        [(), ()].map(|()| ExternalSemaphore::new(SemaphoreKind::Timeline).unwrap());
    let (gate_here, ours) = (imported(&raw, &gate), imported(&raw, &theirs));
    let name = format!("external semaphore {:#x}: ", ours.addr());
    let call = "cuSignalExternalSemaphoresAsync, call ";
    assert_eq!(signal(&raw, one, ours, 5), OK);
    raw.sync(one);
    assert_eq!(raw.soft.misuses(), [""; 0]);
    // Those that are equal or lower, the host's among the current value.
    let mut count = 0;
    for (value, current) in [(5, 5), (3, 5), (0, 5), (8, 9)] {
        if current == 9 {
            theirs.signal(9);
        }
        assert_eq!(signal(&raw, one, ours, value), OK, "the call cannot know");
        raw.sync(one);
        count += 1;
        let printed = format!("a signal of {value}, where the value is {current} already");
        misused(&raw, count, &[call, " of this driver: ", &name, &printed]);
        assert_eq!(theirs.value(), current);
    }
    // What counts is the value at the time of the signal, and not the order of the calls.
    assert_eq!(wait(&raw, one, gate_here, 1), OK);
    assert_eq!(signal(&raw, one, ours, 20), OK);
    assert_eq!(signal(&raw, two, ours, 10), OK);
    raw.sync(two);
    gate.signal(1);
    raw.sync(one);
    misused(&raw, 4, &[]);
    assert_eq!(wait(&raw, one, gate_here, 2), OK);
    assert_eq!(signal(&raw, one, ours, 30), OK);
    assert_eq!(signal(&raw, two, ours, 40), OK);
    raw.sync(two);
    misused(&raw, 4, &[]);
    gate.signal(2);
    raw.sync(one);
    misused(&raw, 5, &[call, &name, "a signal of 30, where the value is 40 already"]);
    // The second launch of a graph signals the same value.
    let exec = captured(&raw, one, || assert_eq!(signal(&raw, one, ours, 50), OK));
    for _ in 0..2 {
        misused(&raw, 5, &[]);
        assert_eq!(unsafe { (raw.cuGraphLaunch)(exec, one) }.0, OK);
        raw.sync(one);
    }
    misused(&raw, 6, &["cuGraphLaunch, call ", &name, "a signal of 50"]);
    assert_eq!(unsafe { (raw.cuGraphExecDestroy)(exec) }.0, OK);
    assert_eq!((destroy(&raw, ours), destroy(&raw, gate_here)), (OK, OK));
}

#[test]
fn a_second_signal_without_a_wait_is_misuse() {
    cuda_events_test_support::own_process!();
    let raw = Raw::new();
    let (one, two) = (raw.stream(NON_BLOCKING), raw.stream(NON_BLOCKING));
    let theirs = ExternalSemaphore::new(SemaphoreKind::Binary).unwrap();
    let ours = imported(&raw, &theirs);
    for _ in 0..3 {
        assert_eq!(signal(&raw, one, ours, 0), OK);
        assert_eq!(wait(&raw, two, ours, 0), OK);
        raw.sync(two);
    }
    theirs.signal(0);
    assert_eq!(wait(&raw, two, ours, 0), OK);
    raw.sync(two);
    assert_eq!(raw.soft.misuses(), [""; 0]);
    // The stream's own signal is the first, or that of the other side.
    for (count, host) in [(1, false), (2, true)] {
        match host {
            true => theirs.signal(0),
            false => assert_eq!(signal(&raw, one, ours, 0), OK),
        }
        raw.sync(one);
        misused(&raw, count - 1, &[]);
        assert_eq!(signal(&raw, one, ours, 0), OK);
        raw.sync(one);
        let printed = format!("external semaphore {:#x}: a second signal", ours.addr());
        misused(&raw, count, &["cuSignalExternalSemaphoresAsync, call ", &printed]);
        assert_eq!(theirs.value(), 1);
        assert_eq!(wait(&raw, two, ours, 0), OK);
        raw.sync(two);
        assert_eq!(theirs.value(), 0, "the two are one signal");
    }
    assert_eq!(destroy(&raw, ours), OK);
}

/// A process whose stream comes to a forbidden signal, with what it answers to misuse.
#[test]
fn forbidden_signal() {
    let raw = match cuda_events_test_support::child::role().as_deref() {
        None => return,
        Some("abort") => Raw::with_default_misuse(),
        Some(_) => Raw::new(),
    };
    let stream = raw.stream(NON_BLOCKING);
    let theirs = ExternalSemaphore::new(SemaphoreKind::Timeline).unwrap();
    let ours = imported(&raw, &theirs);
    assert_eq!(signal(&raw, stream, ours, 2), OK);
    raw.sync(stream);
    println!("so far");
    // A thread of the driver executes it.
    let latch = raw.latch(stream);
    assert_eq!(signal(&raw, stream, ours, 2), OK);
    latch.release();
    raw.sync(stream);
    println!("and further, with {} misuse", raw.soft.misuses().len());
}

/// A stream that comes to a forbidden signal has no call that could return an error: standard error
/// says it, once, also where the process goes on.
#[test]
fn a_forbidden_signal_is_reported_on_standard_error() {
    use cuda_events_test_support::child::{command, full_name, how_it_failed, own_binary};

    let signal = "cuda-soft-driver: cuSignalExternalSemaphoresAsync, call ";
    for (role, failed, last) in
        [("abort", Some("aborted"), "so far\n"), ("error", None, "and further, with 1 misuse\n")]
    {
        let output = command(&own_binary(), &full_name("forbidden_signal"), role).output().unwrap();
        let printed = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (printed(&output.stdout), printed(&output.stderr));
        assert_eq!(how_it_failed(output.status).as_deref(), failed, "{role}: {out}\n{err}");
        assert!(out.contains(last), "{role}: {out}");
        let lines: Vec<&str> = err.lines().filter(|line| line.starts_with(signal)).collect();
        let end = "a signal of 2, where the value is 2 already";
        assert!(matches!(&*lines, [line] if line.ends_with(end)), "{role}: {err}");
        let ended = err.contains("this is undefined on a real driver, so the process ends here");
        assert_eq!(ended, failed.is_some(), "{role}: {err}");
    }
}

/// Two streams write the same bytes, and the host sees the signal of the first one before it has
/// the second one write.
fn findings_after_a_seen_signal(kind: SemaphoreKind, graph: bool, seen: bool) -> usize {
    let raw = Raw::planting(SoftDriver::builder().check_order(OrderCheck::Report));
    let (one, two) = (raw.stream(NON_BLOCKING), raw.stream(NON_BLOCKING));
    let theirs = ExternalSemaphore::new(kind).unwrap();
    let ours = imported(&raw, &theirs);
    let mut memory = 0;
    assert_eq!(unsafe { (raw.cuMemAlloc_v2)(&mut memory, 64) }.0, OK);
    let latch = raw.latch(one);
    let work = || {
        assert_eq!(unsafe { (raw.cuMemsetD8Async)(memory, 1, 64, one) }.0, OK);
        assert_eq!(signal(&raw, one, ours, 1), OK);
    };
    if graph {
        let exec = captured(&raw, one, work);
        assert_eq!(unsafe { (raw.cuGraphLaunch)(exec, one) }.0, OK);
    } else {
        work();
    }
    let mut latch = Some(latch);
    if seen {
        latch.take();
        while theirs.value() != 1 {
            cuda_events_test_support::watch::alive();
            std::thread::yield_now();
        }
    }
    assert_eq!(unsafe { (raw.cuMemsetD8Async)(memory, 2, 64, two) }.0, OK);
    drop(latch);
    raw.sync(one);
    raw.sync(two);
    order_texts(&raw.soft).len()
}

/// The host reads a semaphore's value without a call, and so does the other API, which may tell the
/// host.
#[test]
fn a_signal_can_be_seen_by_the_host() {
    cuda_events_test_support::own_process!();
    for kind in [SemaphoreKind::Timeline, SemaphoreKind::Binary] {
        for graph in [false, true] {
            assert_eq!(findings_after_a_seen_signal(kind, graph, true), 0, "{kind:?}, {graph}");
            let unseen = findings_after_a_seen_signal(kind, graph, false);
            assert_eq!(unseen, 1, "{kind:?}, {graph}: nothing orders the two");
        }
    }
}

/// The other side signals when the host has seen that work is over: the wait is after that work,
/// though it was submitted before the host knew.
#[test]
fn a_wait_that_others_end_has_the_hosts_order() {
    cuda_events_test_support::own_process!();
    for kind in [SemaphoreKind::Timeline, SemaphoreKind::Binary] {
        for (order, synchronizes) in [HostOrder::Submission, HostOrder::Reported]
            .map(|order| [(order, true), (order, false)])
            .concat()
        {
            let builder = SoftDriver::builder().check_order(OrderCheck::Report).order_host(order);
            let raw = Raw::planting(builder);
            let (one, two) = (raw.stream(NON_BLOCKING), raw.stream(NON_BLOCKING));
            let theirs = ExternalSemaphore::new(kind).unwrap();
            let ours = imported(&raw, &theirs);
            let mut memory = 0;
            assert_eq!(unsafe { (raw.cuMemAlloc_v2)(&mut memory, 64) }.0, OK);
            assert_eq!(wait(&raw, one, ours, 1), OK);
            assert_eq!(unsafe { (raw.cuMemsetD8Async)(memory, 1, 64, one) }.0, OK);
            assert_eq!(unsafe { (raw.cuMemsetD8Async)(memory, 2, 64, two) }.0, OK);
            if synchronizes {
                raw.sync(two);
            }
            theirs.signal(1);
            raw.sync(one);
            raw.sync(two);
            let found = order_texts(&raw.soft);
            let expected = usize::from(!synchronizes);
            assert_eq!(found.len(), expected, "{kind:?}, {order:?}: {found:?}");
        }
    }
}
