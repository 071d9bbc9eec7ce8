//! A context that failed. After a kernel that trapped, nothing in the context works any more in
//! this process.
//!
//! On a real driver, such a kernel breaks the context. On the software driver, the test makes all
//! contexts fail.

use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::mpsc::channel;

use cuda_events::sys::more::*;
use cuda_test_harness::TestDriver;

use crate::raw::{INTERPROCESS, NO_TIMING, NON_BLOCKING, Rig, TIMING, code_text, elsewhere, must};
use crate::rules;
use crate::rules::NOT_RUN;

const FAILED: CUresult = CUresult::CUDA_ERROR_LAUNCH_FAILED;

/// A kernel that traps, as text for the driver's compiler.
const TRAP: &std::ffi::CStr = c".version 6.0\n.target sm_50\n.address_size 64\n\
    .visible .entry empty()\n{\n    ret;\n}\n\
    .visible .entry broken()\n{\n    trap;\n}\n";

/// The kernel that traps, on a real driver.
fn load_trap(rig: &Rig, stream: CUstream) -> CUfunction {
    let (mut module, mut empty, mut broken) = (null_mut(), null_mut(), null_mut());
    let code = rig.cuModuleLoadData(&mut module, TRAP.as_ptr().cast());
    // Such as a driver in software.
    if code == CUresult::CUDA_ERROR_NOT_SUPPORTED {
        panic!("{NOT_RUN}the driver loads no kernel that could fail");
    }
    must("cuModuleLoadData", code);
    for (place, name) in [(&mut empty, c"empty"), (&mut broken, c"broken")] {
        must!(rig.cuModuleGetFunction(place, module, name.as_ptr()));
    }
    // The first launch in a context waits for other work, and must not wait for a stream that is
    // held.
    launch(rig, empty, stream);
    rig.synchronize(stream);
    broken
}

fn launch(rig: &Rig, function: CUfunction, stream: CUstream) {
    must!(rig.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, null_mut(), null_mut()));
}

/// Makes the contexts of the software driver fail.
fn fail_software(rig: &Rig) {
    if let Some(soft) = rig.soft() {
        return soft.fail_contexts(FAILED);
    }
    type Control = unsafe extern "C" fn(*const c_char, *mut c_char, usize) -> c_int;
    let address = rig.export(c"cuda_soft_driver_control");
    assert!(!address.is_null(), "the driver is no software driver");
    // SAFETY: the type above is that of the library.
    let control = unsafe { std::mem::transmute::<*mut c_void, Control>(address) };
    let command = CString::new(format!("fail={}", FAILED.0)).expect("no NUL");
    // SAFETY: a C string, and no place for an output.
    let answer = unsafe { control(command.as_ptr(), null_mut(), 0) };
    assert_eq!(answer, 0, "the driver does not know how to fail");
}

/// Breaks the context by failing work in a stream. Before the work fails, `queued` submits more
/// work to the stream.
fn break_context(rig: &Rig, queued: impl FnOnce(CUstream)) {
    let stream = rig.stream(NON_BLOCKING);
    // This comes before the stream is held, because loading may wait for the context.
    let trap = (TestDriver::chosen() == TestDriver::Native).then(|| load_trap(rig, stream));
    let latch = rig.hold(stream);
    if let Some(trap) = trap {
        launch(rig, trap, stream);
    }
    queued(stream);
    if trap.is_none() {
        fail_software(rig);
    }
    latch.release();
    assert_eq!(rig.cuStreamSynchronize(stream), FAILED, "the context did not fail");
}

/// The number of times that each code came, in the order of the first times.
fn counted(codes: impl Iterator<Item = CUresult>) -> String {
    let mut seen: Vec<(CUresult, u32)> = Vec::new();
    for code in codes {
        match seen.iter_mut().find(|(known, _)| *known == code) {
            Some((_, times)) => *times += 1,
            None => seen.push((code, 1)),
        }
    }
    seen.iter()
        .map(|(code, times)| format!("{times} times {}", code_text(*code)))
        .collect::<Vec<_>>()
        .join(", ")
}

/// An empty graph, and an executable one made of it.
fn executable(rig: &Rig) -> (CUgraph, CUgraphExec) {
    let (mut graph, mut exec) = (null_mut(), null_mut());
    must!(rig.cuGraphCreate(&mut graph, 0));
    must!(rig.cuGraphInstantiateWithFlags(&mut exec, graph, 0));
    (graph, exec)
}

rules! {
    /// In a failed context, all calls on events and streams return the context's error, even if the
    /// work was done before.
    [environment("CUDA_MODULE_LOADING", "EAGER"), undisturbed]
    fn events_and_streams(rig, saw) =
        "CUDA_ERROR_LAUNCH_FAILED (719) from query of a done event, query of a never recorded \
         event, event synchronize, stream query, stream synchronize, wait, record, elapsed, flags, \
         priority, host function, NULL query, event destroy, stream destroy"
    {
        let (stream, done, never) =
            (rig.stream(NON_BLOCKING), rig.event(TIMING), rig.event(NO_TIMING));
        rig.record(done, stream);
        rig.synchronize(stream);
        break_context(rig, |_| {});
        let (mut flags, mut priority) = (0, 0);
        saw.codes(&[
            ("query of a done event", rig.cuEventQuery(done)),
            ("query of a never recorded event", rig.cuEventQuery(never)),
            ("event synchronize", rig.cuEventSynchronize(done)),
            ("stream query", rig.cuStreamQuery(stream)),
            ("stream synchronize", rig.cuStreamSynchronize(stream)),
            ("wait", rig.cuStreamWaitEvent(stream, done, 0)),
            ("record", rig.cuEventRecord(done, stream)),
            ("elapsed", rig.elapsed_code(done, done)),
            ("flags", rig.cuStreamGetFlags(stream, &mut flags)),
            ("priority", rig.cuStreamGetPriority(stream, &mut priority)),
            ("host function", rig.host(stream, || {})),
            ("NULL query", rig.cuStreamQuery(null_mut())),
            ("event destroy", rig.cuEventDestroy_v2(done)),
            ("stream destroy", rig.cuStreamDestroy_v2(stream)),
        ]);
    }

    /// Destroying events of a failed context returns the context's error. Later queries of these
    /// events, and destroying them again, return the same error.
    [environment("CUDA_MODULE_LOADING", "EAGER"), undisturbed]
    fn destroying_events(rig, saw) =
        "1000 times CUDA_ERROR_LAUNCH_FAILED (719); then query CUDA_ERROR_LAUNCH_FAILED (719); \
         destroyed again CUDA_ERROR_LAUNCH_FAILED (719)"
    {
        let events: Vec<CUevent> = (0..1000).map(|_| rig.event(NO_TIMING)).collect();
        break_context(rig, |_| {});
        let codes = events.iter().map(|event| rig.cuEventDestroy_v2(*event));
        saw.text(counted(codes));
        saw.code("then query", rig.cuEventQuery(events[0]));
        saw.code("destroyed again", rig.cuEventDestroy_v2(events[0]));
        // The rest may be impossible to clean up.
        cuda_test_harness::child::end_at_once(0);
    }

    /// Destroying streams of a failed context returns the context's error. Later queries of these
    /// streams, and destroying them again, return the same error.
    [environment("CUDA_MODULE_LOADING", "EAGER"), undisturbed]
    fn destroying_streams(rig, saw) =
        "100 times CUDA_ERROR_LAUNCH_FAILED (719); then query CUDA_ERROR_LAUNCH_FAILED (719); \
         destroyed again CUDA_ERROR_LAUNCH_FAILED (719)"
    {
        let streams: Vec<CUstream> = (0..100).map(|_| rig.stream(NON_BLOCKING)).collect();
        break_context(rig, |_| {});
        let codes = streams.iter().map(|stream| rig.cuStreamDestroy_v2(*stream));
        saw.text(counted(codes));
        saw.code("then query", rig.cuStreamQuery(streams[0]));
        saw.code("destroyed again", rig.cuStreamDestroy_v2(streams[0]));
        cuda_test_harness::child::end_at_once(0);
    }

    /// Graphs and executable graphs can be destroyed after a context failed.
    [environment("CUDA_MODULE_LOADING", "EAGER"), undisturbed, since(11, 4)]
    fn destroying_graphs(rig, saw) = "executable graphs 100 times success; graphs 100 times \
        success" {
        let made: Vec<(CUgraph, CUgraphExec)> = (0..100).map(|_| executable(rig)).collect();
        break_context(rig, |_| {});
        let execs = made.iter().map(|(_, exec)| rig.cuGraphExecDestroy(*exec));
        saw.text(format_args!("executable graphs {}", counted(execs)));
        let graphs = made.iter().map(|(graph, _)| rig.cuGraphDestroy(*graph));
        saw.text(format_args!("graphs {}", counted(graphs)));
        cuda_test_harness::child::end_at_once(0);
    }

    /// No object can be created in a failed context. `cuCtxSynchronize` and the export of an event
    /// return the context's error, too.
    [environment("CUDA_MODULE_LOADING", "EAGER"), undisturbed]
    fn making_things(rig, saw) =
        "CUDA_ERROR_LAUNCH_FAILED (719) from event create, stream create, context synchronize, \
            export"
    {
        let shared = rig.event(INTERPROCESS);
        break_context(rig, |_| {});
        saw.codes(&[
            ("event create", rig.cuEventCreate(&mut null_mut(), NO_TIMING)),
            ("stream create", rig.cuStreamCreate(&mut null_mut(), NON_BLOCKING)),
            ("context synchronize", rig.cuCtxSynchronize()),
            (
                "export",
                rig.cuIpcGetEventHandle(&mut CUipcEventHandle { reserved: [0; 64] }, shared),
            ),
        ]);
    }

    /// Importing a semaphore in a failed context returns the context's error for every handle.
    #[cfg(target_os = "linux")]
    [environment("CUDA_MODULE_LOADING", "EAGER"), undisturbed]
    fn importing_a_semaphore(rig, saw) = "CUDA_ERROR_LAUNCH_FAILED (719)" {
        use std::os::fd::AsRawFd as _;
        let file = std::fs::File::open("/dev/null").expect("it is there");
        break_context(rig, |_| {});
        let mut description = CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC::default();
        description.type_ =
            CUexternalSemaphoreHandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD;
        description.handle.fd = file.as_raw_fd();
        saw.text(code_text(rig.cuImportExternalSemaphore(&mut null_mut(), &description)));
    }

    /// In a failed context, `cuStreamGetId` returns the context's error.
    [environment("CUDA_MODULE_LOADING", "EAGER"), undisturbed, since(12, 0)]
    fn ids(rig, saw) = "CUDA_ERROR_LAUNCH_FAILED (719)" {
        let stream = rig.stream(NON_BLOCKING);
        break_context(rig, |_| {});
        saw.text(code_text(rig.cuStreamGetId(stream, &mut 0)));
    }

    /// In a failed context, the second version of `cuEventElapsedTime` returns the context's error,
    /// too.
    [environment("CUDA_MODULE_LOADING", "EAGER"), undisturbed, since(12, 8)]
    fn the_second_version_of_elapsed_time(rig, saw) = "CUDA_ERROR_LAUNCH_FAILED (719)" {
        let (stream, event) = (rig.stream(NON_BLOCKING), rig.event(TIMING));
        rig.record(event, stream);
        rig.synchronize(stream);
        break_context(rig, |_| {});
        saw.text(code_text(rig.cuEventElapsedTime_v2(&mut 0.0, event, event)));
    }

    /// After a context failed, the current context can still be queried and changed, devices can be
    /// queried, and the primary context can be released.
    [environment("CUDA_MODULE_LOADING", "EAGER"), undisturbed]
    fn contexts_and_devices(rig, saw) =
        "success from current, set current, push, pop, device count, device of the context, \
            primary release"
    {
        break_context(rig, |_| {});
        let (mut current, mut count, mut device) = (null_mut(), 0, 0);
        saw.codes(&[
            ("current", rig.cuCtxGetCurrent(&mut current)),
            ("set current", rig.cuCtxSetCurrent(rig.context)),
            ("push", rig.cuCtxPushCurrent_v2(rig.context)),
            ("pop", rig.cuCtxPopCurrent_v2(&mut current)),
            ("device count", rig.cuDeviceGetCount(&mut count)),
            ("device of the context", rig.cuCtxGetDevice(&mut device)),
            ("primary release", rig.cuDevicePrimaryCtxRelease_v2(rig.device)),
        ]);
        std::process::exit(0);
    }

    /// A failed primary context does not recover when it is released and retained again. Only
    /// another process can use the device.
    [environment("CUDA_MODULE_LOADING", "EAGER"), undisturbed]
    fn no_recovery(rig, saw) =
        "release success; retain CUDA_ERROR_LAUNCH_FAILED (719); then event create \
         CUDA_ERROR_CONTEXT_IS_DESTROYED (709)"
    {
        break_context(rig, |_| {});
        saw.code("release", rig.cuDevicePrimaryCtxRelease_v2(rig.device));
        saw.code("retain", rig.cuDevicePrimaryCtxRetain(&mut null_mut(), rig.device));
        saw.code("then event create", rig.cuEventCreate(&mut null_mut(), NO_TIMING));
        std::process::exit(0);
    }

    /// A host function that was submitted after the failing work is not called. A callback of the
    /// old form (`cuStreamAddCallback`) is called, and gets the error.
    [environment("CUDA_MODULE_LOADING", "EAGER"), undisturbed]
    fn what_was_queued(rig, saw) = "the callback got CUDA_ERROR_LAUNCH_FAILED (719); the host \
        function was not called" {
        unsafe extern "C" fn called(_stream: CUstream, status: CUresult, sender: *mut c_void) {
            // SAFETY: the pointer is the box that was leaked below for this one call.
            let sender =
                unsafe { Box::from_raw(sender.cast::<std::sync::mpsc::Sender<CUresult>>()) };
            let _ = sender.send(status);
        }
        let ((sender, statuses), (call, calls)) = (channel(), channel::<()>());
        break_context(rig, |stream| {
            must(
                "cuLaunchHostFunc",
                rig.host(stream, move || {
                    let _ = call.send(());
                }),
            );
            let sender = Box::into_raw(Box::new(sender)).cast();
            must!(rig.cuStreamAddCallback(stream, Some(called), sender, 0));
        });
        // The callback drops its sender; a callback that is never called keeps the rule from going
        // on forever.
        let status = statuses.recv().expect("the callback is called");
        saw.text(format_args!("the callback got {}", code_text(status)));
        saw.holds("the host function was not called", calls.try_recv().is_err());
    }

    /// A call that submits work to a stream directly after the launch that will fail returns
    /// success. The failure shows later.
    [environment("CUDA_MODULE_LOADING", "EAGER"), undisturbed]
    fn right_behind_the_failure(rig, saw) = "success from record, wait, host function, callback" {
        unsafe extern "C" fn nothing(_stream: CUstream, _status: CUresult, _data: *mut c_void) {}
        let event = rig.event(NO_TIMING);
        break_context(rig, |stream| {
            saw.codes(&[
                ("record", rig.cuEventRecord(event, stream)),
                ("wait", rig.cuStreamWaitEvent(stream, event, 0)),
                ("host function", rig.host(stream, || {})),
                ("callback", rig.cuStreamAddCallback(stream, Some(nothing), null_mut(), 0)),
            ]);
        });
    }

    /// A kernel that traps breaks all contexts of the process, those of other devices included.
    [environment("CUDA_MODULE_LOADING", "EAGER"), undisturbed, two_devices]
    fn contexts_of_other_devices(rig, saw) =
        "CUDA_ERROR_LAUNCH_FAILED (719) from stream query, record, event create"
    {
        let (mut second, mut context) = (0, null_mut());
        must!(rig.cuDeviceGet(&mut second, 1));
        must!(rig.cuDevicePrimaryCtxRetain(&mut context, second));
        let (stream, event) =
            rig.within(context, || (rig.stream(NON_BLOCKING), rig.event(NO_TIMING)));
        break_context(rig, |_| {});
        let created = rig.within(context, || rig.cuEventCreate(&mut null_mut(), NO_TIMING));
        saw.codes(&[
            ("stream query", rig.cuStreamQuery(stream)),
            ("record", rig.cuEventRecord(event, stream)),
            ("event create", created),
        ]);
    }

    /// A query or a synchronization of an event that was pending when the context failed returns
    /// the error.
    [environment("CUDA_MODULE_LOADING", "EAGER"), undisturbed]
    fn an_event_that_was_pending(rig, saw) = "CUDA_ERROR_LAUNCH_FAILED (719) from query, \
        synchronize" {
        let event = rig.event(NO_TIMING);
        break_context(rig, |stream| rig.record(event, stream));
        saw.codes(&[
            ("query", rig.cuEventQuery(event)),
            ("synchronize", rig.cuEventSynchronize(event)),
        ]);
    }

    /// The error belongs to the context: it is the same in every thread, and does not depend on the
    /// thread's current context.
    [environment("CUDA_MODULE_LOADING", "EAGER"), undisturbed]
    fn in_another_thread(rig, saw) = "CUDA_ERROR_LAUNCH_FAILED (719)" {
        let event = rig.event(NO_TIMING);
        break_context(rig, |_| {});
        saw.text(code_text(elsewhere(|| rig.cuEventQuery(event))));
    }
}
