//! Contexts: the stack of each thread, primary contexts, and what needs one.

use std::ptr::null_mut;
use std::sync::mpsc::channel;
use std::time::Duration;

use cuda_events::sys::*;

use crate::raw::{
    BLOCKING, INTERPROCESS, LEGACY, NO_TIMING, NON_BLOCKING, NULL_STREAM, PER_THREAD, Raw, Rig,
    Sent, TIMING, code_text, elsewhere, must,
};
use crate::rules;

/// The calling thread's stack from the top, emptied; named by letters in the order given.
fn stack(raw: &Raw, names: &[(&str, CUcontext)]) -> String {
    let mut found = Vec::new();
    loop {
        let mut popped = null_mut();
        if raw.cuCtxPopCurrent_v2(&mut popped) != CUresult::CUDA_SUCCESS {
            break;
        }
        found.push(
            names
                .iter()
                .find(|(_, context)| *context == popped)
                .map_or("another", |(name, _)| name),
        );
    }
    if found.is_empty() { "empty".to_owned() } else { found.join(" over ") }
}

/// Whether the primary context is active.
fn active(raw: &Raw, device: CUdevice) -> bool {
    let (mut flags, mut active) = (0, 0);
    must!(raw.cuDevicePrimaryCtxGetState(device, &mut flags, &mut active));
    active != 0
}

fn retain(raw: &Raw, device: CUdevice) -> CUcontext {
    let mut context = null_mut();
    must!(raw.cuDevicePrimaryCtxRetain(&mut context, device));
    context
}

/// Work in a stream that sees whether a call waits for it: `Beside::returned` is said after the
/// call, and the work, which lasts a while, must not hear that. A call that waits is waited out;
/// one that does not is noticed unless the machine stands still for the whole while.
struct Beside {
    returned: std::sync::mpsc::Sender<()>,
    heard: std::sync::mpsc::Receiver<bool>,
}

impl Beside {
    fn in_stream(raw: &Raw, stream: CUstream) -> Self {
        let ((returned, heard_returned), (tell, heard)) = (channel(), channel());
        let work = move || {
            let heard = heard_returned.recv_timeout(Duration::from_millis(300)).is_ok();
            // Nobody may listen any more.
            let _ = tell.send(heard);
        };
        must("cuLaunchHostFunc", raw.host(stream, work));
        Self { returned, heard }
    }

    /// After the call: whether the work was done then.
    fn was_done(self) -> bool {
        let _ = self.returned.send(());
        self.heard.recv() == Ok(false)
    }
}

/// Ends a context that has work in a stream: whether the call waited for it.
fn ends_with_work(rig: &Rig, saw: &crate::rules::Saw, end: impl FnOnce() -> CUresult) -> CUresult {
    let work = Beside::in_stream(rig, rig.stream(NON_BLOCKING));
    let code = end();
    saw.text(crate::raw::code_text(code));
    saw.holds("the work was done", work.was_done());
    code
}

/// The driver after `cuInit`, with no context anywhere.
fn initialised(rig: &Rig) {
    must!(rig.cuInit(0));
}

rules! {
    /// A new thread has no current context: `cuCtxGetCurrent` returns success with NULL.
    fn none_current(rig, saw) = "success, NULL" {
        elsewhere(|| {
            let mut context = std::ptr::without_provenance_mut(77);
            let code = rig.cuCtxGetCurrent(&mut context);
            saw.text(format_args!(
                "{}, {}",
                crate::raw::code_text(code),
                if context.is_null() { "NULL" } else { "a context" }
            ));
        });
    }

    /// Each thread has its own stack of contexts.
    fn a_stack_for_each_thread(rig, saw) = "there: empty; here: primary" {
        let theirs = elsewhere(|| stack(rig, &[]));
        saw.text(format_args!("there: {theirs}"));
        saw.text(format_args!("here: {}", stack(rig, &[("primary", rig.context)])));
    }

    /// Creating a context pushes it onto the calling thread's stack.
    fn creating_pushes(rig, saw) = "new over primary" {
        let mut context = null_mut();
        must!(rig.cuCtxCreate_v2(&mut context, 0, rig.device));
        saw.text(stack(rig, &[("new", context), ("primary", rig.context)]));
        must!(rig.cuCtxDestroy_v2(context));
    }

    /// Making a context current replaces the top of the stack.
    fn setting_replaces_the_top(rig, saw) = "C over A" {
        let (a, b, c) = (rig.context, rig.new_context(), rig.new_context());
        must!(rig.cuCtxPushCurrent_v2(b));
        must!(rig.cuCtxSetCurrent(c));
        saw.text(stack(rig, &[("A", a), ("B", b), ("C", c)]));
    }

    /// On an empty stack, making a context current pushes it.
    fn setting_on_an_empty_stack_pushes(rig, saw) = "primary" {
        elsewhere(|| {
            must!(rig.cuCtxSetCurrent(rig.context));
            saw.text(stack(rig, &[("primary", rig.context)]));
        });
    }

    /// Making NULL current pops the top of the stack. On an empty stack the call succeeds and does
    /// nothing.
    fn setting_null_pops(rig, saw) = "success; A; success; success; empty" {
        let (a, b) = (rig.context, rig.new_context());
        must!(rig.cuCtxPushCurrent_v2(b));
        saw.text(crate::raw::code_text(rig.cuCtxSetCurrent(null_mut())));
        saw.text(if rig.current() == a { "A" } else { "another" });
        saw.text(crate::raw::code_text(rig.cuCtxSetCurrent(null_mut())));
        saw.text(crate::raw::code_text(rig.cuCtxSetCurrent(null_mut())));
        saw.text(stack(rig, &[]));
    }

    /// A context can be in a stack more than once.
    fn pushing_twice(rig, saw) = "A over B over A" {
        let (a, b) = (rig.context, rig.new_context());
        must!(rig.cuCtxPushCurrent_v2(b));
        must!(rig.cuCtxPushCurrent_v2(a));
        saw.text(stack(rig, &[("A", a), ("B", b)]));
    }

    /// Popping an empty stack returns `CUDA_ERROR_INVALID_CONTEXT`.
    fn popping_an_empty_stack(rig, saw) = "CUDA_ERROR_INVALID_CONTEXT (201)" {
        let mut popped = null_mut();
        saw.text(crate::raw::code_text(elsewhere(|| rig.cuCtxPopCurrent_v2(&mut popped))));
    }

    /// The place for the popped context may be NULL.
    fn no_place_for_the_popped(rig, saw) = "success; empty" {
        saw.text(crate::raw::code_text(rig.cuCtxPopCurrent_v2(null_mut())));
        saw.text(stack(rig, &[]));
    }

    /// Pushing NULL returns `CUDA_ERROR_INVALID_VALUE`.
    fn pushing_null(rig, saw) = "CUDA_ERROR_INVALID_VALUE (1)" {
        saw.text(crate::raw::code_text(rig.cuCtxPushCurrent_v2(null_mut())));
    }

    /// If the place for a required result is NULL, the call returns an error.
    fn no_place_for_the_result(rig, saw) =
        "CUDA_ERROR_INVALID_VALUE (1) from cuCtxGetCurrent, cuCtxCreate, cuCtxGetDevice, \
            cuDevicePrimaryCtxRetain"
    {
        saw.codes(&[
            ("cuCtxGetCurrent", rig.cuCtxGetCurrent(null_mut())),
            ("cuCtxCreate", rig.cuCtxCreate_v2(null_mut(), 0, rig.device)),
            ("cuCtxGetDevice", rig.cuCtxGetDevice(null_mut())),
            ("cuDevicePrimaryCtxRetain", rig.cuDevicePrimaryCtxRetain(null_mut(), rig.device)),
        ]);
    }

    /// A context's flags may have one scheduling flag and known bits; other flags return an error.
    fn flags(rig, saw) =
        "success from automatic, spin, yield, blocking, map; CUDA_ERROR_INVALID_VALUE (1) from two \
            ways, unknown bit"
    {
        let create = |flags| {
            let mut context = null_mut();
            let code = rig.cuCtxCreate_v2(&mut context, flags, rig.device);
            if code == CUresult::CUDA_SUCCESS {
                must!(rig.cuCtxDestroy_v2(context));
            }
            code
        };
        saw.codes(&[
            ("automatic", create(CU_CTX_SCHED_AUTO)),
            ("spin", create(CU_CTX_SCHED_SPIN)),
            ("yield", create(CU_CTX_SCHED_YIELD)),
            ("blocking", create(CU_CTX_SCHED_BLOCKING_SYNC)),
            ("map", create(CU_CTX_MAP_HOST)),
            ("two ways", create(CU_CTX_SCHED_SPIN | CU_CTX_SCHED_YIELD)),
            ("unknown bit", create(1 << 20)),
        ]);
    }

    /// `cuCtxGetDevice` returns the device of the current context, and an error if no context is
    /// current.
    fn the_device_of_the_current_context(rig, saw) = "success, its device; with none \
        CUDA_ERROR_INVALID_CONTEXT (201)" {
        let mut device = 77;
        let code = rig.cuCtxGetDevice(&mut device);
        let its = if device == rig.device { "its device" } else { "another device" };
        saw.text(format_args!("{}, {its}", crate::raw::code_text(code)));
        saw.code("with none", elsewhere(|| rig.cuCtxGetDevice(&mut device)));
    }

    /// The forms of CUDA 13 take the context as an argument and work without a current context.
    /// NULL means the current context.
    [since(13, 0)]
    fn a_context_as_an_argument(rig, saw) =
        "named: success from cuCtxGetDevice_v2, cuCtxSynchronize_v2; NULL: success from \
         cuCtxGetDevice_v2, cuCtxSynchronize_v2; NULL with none current: \
         CUDA_ERROR_INVALID_CONTEXT (201) from cuCtxGetDevice_v2, cuCtxSynchronize_v2"
    {
        let ask = |context: CUcontext| {
            let mut device = 77;
            let one = crate::rules::Saw::default();
            one.codes(&[
                ("cuCtxGetDevice_v2", rig.cuCtxGetDevice_v2(&mut device, context)),
                ("cuCtxSynchronize_v2", rig.cuCtxSynchronize_v2(context)),
            ]);
            one.all()
        };
        saw.text(format_args!("named: {}", elsewhere(|| ask(rig.context))));
        saw.text(format_args!("NULL: {}", ask(null_mut())));
        saw.text(format_args!("NULL with none current: {}", elsewhere(|| ask(null_mut()))));
    }

    /// Different contexts have different ids. For NULL, `cuCtxGetId` returns the id of the current
    /// context.
    [since(12, 0)]
    fn ids(rig, saw) = "success, success, success; all different but NULL's, which is the current \
        one's" {
        let other = rig.new_context();
        let (mut primary, mut current, mut others) = (0, 0, 0);
        let codes = [
            rig.cuCtxGetId(rig.context, &mut primary),
            rig.cuCtxGetId(null_mut(), &mut current),
            rig.cuCtxGetId(other, &mut others),
        ];
        saw.text(codes.map(crate::raw::code_text).join(", "));
        saw.holds(
            "all different but NULL's, which is the current one's",
            primary == current && primary != others,
        );
    }

    /// The driver counts the retains of the primary context. It needs as many releases, and one
    /// more release returns `CUDA_ERROR_INVALID_CONTEXT`.
    [bare]
    fn the_primary_context_is_counted(rig, saw) =
        "at first inactive; retained twice active; released once active; released twice inactive; \
         released again CUDA_ERROR_INVALID_CONTEXT (201)"
    {
        initialised(rig);
        let state = || if active(rig, 0) { "active" } else { "inactive" };
        saw.text(format_args!("at first {}", state()));
        retain(rig, 0);
        retain(rig, 0);
        saw.text(format_args!("retained twice {}", state()));
        must!(rig.cuDevicePrimaryCtxRelease_v2(0));
        saw.text(format_args!("released once {}", state()));
        must!(rig.cuDevicePrimaryCtxRelease_v2(0));
        saw.text(format_args!("released twice {}", state()));
        saw.code("released again", rig.cuDevicePrimaryCtxRelease_v2(0));
    }

    /// Releasing a primary context that was never retained returns `CUDA_ERROR_INVALID_CONTEXT`.
    [bare]
    fn a_release_without_a_retain(rig, saw) = "CUDA_ERROR_INVALID_CONTEXT (201)" {
        initialised(rig);
        saw.text(crate::raw::code_text(rig.cuDevicePrimaryCtxRelease_v2(0)));
    }

    /// Retaining the primary context does not make it current.
    [bare]
    fn retaining_does_not_push(rig, saw) = "empty" {
        initialised(rig);
        let context = retain(rig, 0);
        saw.text(stack(rig, &[("primary", context)]));
    }

    /// Retaining the primary context again gives the same handle.
    fn retaining_again(rig, saw) = "the same handle" {
        saw.holds("the same handle", retain(rig, rig.device) == rig.context);
        must!(rig.cuDevicePrimaryCtxRelease_v2(rig.device));
    }

    /// After the last release of the primary context, it stays current. Calls that need a live
    /// context then return `CUDA_ERROR_CONTEXT_IS_DESTROYED`.
    [bare]
    fn the_last_release_leaves_it_current(rig, saw) =
        "still current; its device success; CUDA_ERROR_CONTEXT_IS_DESTROYED (709) from \
         cuEventCreate, cuStreamCreate, cuStreamQuery(NULL)"
    {
        initialised(rig);
        let context = retain(rig, 0);
        must!(rig.cuCtxSetCurrent(context));
        must!(rig.cuDevicePrimaryCtxRelease_v2(0));
        let (mut device, mut event, mut stream) = (77, null_mut(), null_mut());
        saw.holds("still current", rig.current() == context);
        saw.code("its device", rig.cuCtxGetDevice(&mut device));
        saw.codes(&[
            ("cuEventCreate", rig.cuEventCreate(&mut event, 0)),
            ("cuStreamCreate", rig.cuStreamCreate(&mut stream, 0)),
            ("cuStreamQuery(NULL)", rig.cuStreamQuery(NULL_STREAM)),
        ]);
    }

    /// If the primary context is retained again after its last release, it has the same handle, and
    /// works in threads where it is still current.
    [bare]
    fn retaining_after_the_last_release(rig, saw) =
        "the same handle; cuEventCreate success; cuStreamQuery(NULL) success"
    {
        initialised(rig);
        let context = retain(rig, 0);
        must!(rig.cuCtxSetCurrent(context));
        must!(rig.cuDevicePrimaryCtxRelease_v2(0));
        let mut event = null_mut();
        saw.holds("the same handle", retain(rig, 0) == context);
        saw.code("cuEventCreate", rig.cuEventCreate(&mut event, 0));
        saw.code("cuStreamQuery(NULL)", rig.cuStreamQuery(NULL_STREAM));
    }

    /// The last release of the primary context waits for the work in it.
    [bare]
    fn the_last_release_waits(rig, saw) = "success; the work was done" {
        initialised(rig);
        let context = retain(rig, 0);
        must!(rig.cuCtxSetCurrent(context));
        let code = ends_with_work(rig, saw, || rig.cuDevicePrimaryCtxRelease_v2(0));
        must("cuDevicePrimaryCtxRelease", code);
    }

    /// Destroying a context waits for the work in it.
    [alone]
    fn destroying_waits(rig, saw) = "success; the work was done" {
        let context = rig.new_context();
        must!(rig.cuCtxPushCurrent_v2(context));
        let code = ends_with_work(rig, saw, || rig.destroy_context(context));
        must("cuCtxDestroy", code);
    }

    /// `cuCtxDestroy` of the primary context returns `CUDA_ERROR_INVALID_CONTEXT`.
    [alone]
    fn destroying_the_primary_context(rig, saw) = "CUDA_ERROR_INVALID_CONTEXT (201)" {
        saw.text(crate::raw::code_text(rig.cuCtxDestroy_v2(rig.context)));
        std::process::exit(0);
    }

    /// Destroying a context pops it from the calling thread's stack.
    [alone]
    fn destroying_pops(rig, saw) = "success; primary" {
        let context = rig.new_context();
        must!(rig.cuCtxPushCurrent_v2(context));
        saw.text(crate::raw::code_text(rig.destroy_context(context)));
        saw.text(stack(rig, &[("new", context), ("primary", rig.context)]));
    }

    /// A context that is destroyed while it is current in another thread stays current there. In
    /// that thread, calls that need a live context return `CUDA_ERROR_CONTEXT_IS_DESTROYED`.
    [alone]
    fn destroyed_while_current_elsewhere(rig, saw) =
        "there: still current; CUDA_ERROR_CONTEXT_IS_DESTROYED (709) from cuEventCreate, \
         cuStreamCreate, cuStreamQuery(NULL)"
    {
        let context = rig.new_context();
        let raw: &Raw = rig;
        let handle = Sent::new(context);
        let (destroyed, wait) = channel::<()>();
        let (ready, begun) = channel::<()>();
        let there = std::thread::scope(|scope| {
            let thread = scope.spawn(move || {
                let (mut event, mut stream) = (null_mut(), null_mut());
                must!(raw.cuCtxSetCurrent(handle.get()));
                ready.send(()).expect("the rule waits");
                wait.recv().expect("the rule says when");
                let there = crate::rules::Saw::default();
                there.holds("still current", raw.current() == handle.get());
                there.codes(&[
                    ("cuEventCreate", raw.cuEventCreate(&mut event, 0)),
                    ("cuStreamCreate", raw.cuStreamCreate(&mut stream, 0)),
                    ("cuStreamQuery(NULL)", raw.cuStreamQuery(NULL_STREAM)),
                ]);
                there.all()
            });
            begun.recv().expect("the thread began");
            must("cuCtxDestroy", rig.destroy_context(context));
            destroyed.send(()).expect("the thread waits");
            thread.join().expect("no panic")
        });
        saw.text(format_args!("there: {there}"));
    }

    /// A destroyed context can be made current.
    [alone]
    fn setting_a_destroyed_context(rig, saw) = "success; then cuEventCreate \
        CUDA_ERROR_CONTEXT_IS_DESTROYED (709)" {
        let context = rig.new_context();
        must("cuCtxDestroy", rig.destroy_context(context));
        let mut event = null_mut();
        saw.text(crate::raw::code_text(rig.cuCtxSetCurrent(context)));
        saw.code("then cuEventCreate", rig.cuEventCreate(&mut event, 0));
        // To make another one current in its place ended a real driver's process, and at times its
        // exit handlers did.
        cuda_test_harness::child::end_at_once(0);
    }

    /// A call on an event, or on a stream that the program created, needs no current context.
    fn calls_that_need_none(rig, saw) =
        "success from cuEventRecord, cuEventQuery, cuEventSynchronize, cuEventElapsedTime, \
         cuStreamWaitEvent, cuStreamQuery, cuStreamSynchronize, cuStreamGetFlags, \
         cuStreamGetPriority, cuStreamGetCtx, cuStreamIsCapturing, cuLaunchHostFunc, \
         cuStreamAddCallback, cuEventDestroy, cuStreamDestroy"
    {
        unsafe extern "C" fn nothing(
            _stream: CUstream,
            _status: CUresult,
            _data: *mut std::ffi::c_void,
        ) {
        }
        let (stream, event) = (rig.stream(NON_BLOCKING), rig.event(TIMING));
        elsewhere(|| {
            let (mut flags, mut priority, mut context) = (0, 0, null_mut());
            let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
            // Done before it is asked about.
            let record = rig.cuEventRecord(event, stream);
            let (event_synchronize, wait) =
                (rig.cuEventSynchronize(event), rig.cuStreamWaitEvent(stream, event, 0));
            let stream_synchronize = rig.cuStreamSynchronize(stream);
            saw.codes(&[
                ("cuEventRecord", record),
                ("cuEventQuery", rig.cuEventQuery(event)),
                ("cuEventSynchronize", event_synchronize),
                ("cuEventElapsedTime", rig.elapsed_code(event, event)),
                ("cuStreamWaitEvent", wait),
                ("cuStreamQuery", rig.cuStreamQuery(stream)),
                ("cuStreamSynchronize", stream_synchronize),
                ("cuStreamGetFlags", rig.cuStreamGetFlags(stream, &mut flags)),
                ("cuStreamGetPriority", rig.cuStreamGetPriority(stream, &mut priority)),
                ("cuStreamGetCtx", rig.cuStreamGetCtx(stream, &mut context)),
                ("cuStreamIsCapturing", rig.cuStreamIsCapturing(stream, &mut status)),
                ("cuLaunchHostFunc", rig.host(stream, || {})),
                (
                    "cuStreamAddCallback",
                    rig.cuStreamAddCallback(stream, Some(nothing), null_mut(), 0),
                ),
                ("cuEventDestroy", rig.cuEventDestroy_v2(event)),
                ("cuStreamDestroy", rig.cuStreamDestroy_v2(stream)),
            ]);
        });
    }

    /// A stream's id needs no current context.
    [since(12, 0)]
    fn the_id_needs_none(rig, saw) = "success" {
        let (stream, mut id) = (rig.stream(NON_BLOCKING), 0);
        saw.text(crate::raw::code_text(elsewhere(|| rig.cuStreamGetId(stream, &mut id))));
    }

    /// A stream's device needs no current context.
    [since(12, 8)]
    fn the_device_needs_none(rig, saw) = "success" {
        let (stream, mut device) = (rig.stream(NON_BLOCKING), 77);
        saw.text(crate::raw::code_text(elsewhere(|| rig.cuStreamGetDevice(stream, &mut device))));
    }

    /// A capture in a stream that the program created needs no current context.
    fn a_capture_needs_none(rig, saw) = "success from cuStreamBeginCapture, cuStreamEndCapture" {
        let (stream, mut graph) = (rig.stream(NON_BLOCKING), null_mut());
        elsewhere(|| {
            saw.codes(&[
                (
                    "cuStreamBeginCapture",
                    rig.cuStreamBeginCapture_v2(stream, CUstreamCaptureMode(0)),
                ),
                ("cuStreamEndCapture", rig.cuStreamEndCapture(stream, &mut graph)),
            ]);
        });
        must!(rig.cuGraphDestroy(graph));
    }

    /// A call that creates an object, queries the context or names a default stream needs a current
    /// context.
    fn calls_that_need_one(rig, saw) =
        "CUDA_ERROR_INVALID_CONTEXT (201) from cuEventCreate, cuStreamCreate, \
         cuStreamCreateWithPriority, cuCtxSynchronize, cuCtxGetStreamPriorityRange, \
         cuIpcGetEventHandle, cuIpcOpenEventHandle"
    {
        let shared = rig.event(INTERPROCESS);
        elsewhere(|| {
            let (mut event, mut stream, mut least, mut greatest) = (null_mut(), null_mut(), 0, 0);
            let mut handle = CUipcEventHandle { reserved: [0; 64] };
            saw.codes(&[
                ("cuEventCreate", rig.cuEventCreate(&mut event, 0)),
                ("cuStreamCreate", rig.cuStreamCreate(&mut stream, 0)),
                ("cuStreamCreateWithPriority", rig.cuStreamCreateWithPriority(&mut stream, 0, 0)),
                ("cuCtxSynchronize", rig.cuCtxSynchronize()),
                (
                    "cuCtxGetStreamPriorityRange",
                    rig.cuCtxGetStreamPriorityRange(&mut least, &mut greatest),
                ),
                ("cuIpcGetEventHandle", rig.cuIpcGetEventHandle(&mut handle, shared)),
                ("cuIpcOpenEventHandle", rig.open([0; 64]).0),
            ]);
        });
    }

    /// Each call on a default stream (NULL, legacy or per-thread) needs a current context.
    fn default_streams_need_one(rig, saw) =
        "NULL: CUDA_ERROR_INVALID_CONTEXT (201) from record, wait, query, synchronize, flags, \
         priority, context, host function, capturing; legacy: CUDA_ERROR_INVALID_CONTEXT (201) \
         from record, wait, query, synchronize, flags, priority, context, host function, \
         capturing; per-thread: CUDA_ERROR_INVALID_CONTEXT (201) from record, wait, query, \
         synchronize, flags, priority, context, host function, capturing"
    {
        let event = rig.event(NO_TIMING);
        elsewhere(|| {
            for (name, stream) in
                [("NULL", NULL_STREAM), ("legacy", LEGACY), ("per-thread", PER_THREAD)]
            {
                let (mut flags, mut priority, mut context) = (0, 0, null_mut());
                let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
                let one = crate::rules::Saw::default();
                one.codes(&[
                    ("record", rig.cuEventRecord(event, stream)),
                    ("wait", rig.cuStreamWaitEvent(stream, event, 0)),
                    ("query", rig.cuStreamQuery(stream)),
                    ("synchronize", rig.cuStreamSynchronize(stream)),
                    ("flags", rig.cuStreamGetFlags(stream, &mut flags)),
                    ("priority", rig.cuStreamGetPriority(stream, &mut priority)),
                    ("context", rig.cuStreamGetCtx(stream, &mut context)),
                    ("host function", rig.host(stream, || {})),
                    ("capturing", rig.cuStreamIsCapturing(stream, &mut status)),
                ]);
                saw.text(format_args!("{name}: {}", one.all()));
            }
        });
    }

    /// The id of a default stream needs a current context.
    [since(12, 0)]
    fn the_id_of_a_default_stream_needs_one(rig, saw) =
        "CUDA_ERROR_INVALID_CONTEXT (201) from NULL, legacy, per-thread"
    {
        elsewhere(|| {
            let mut id = 0;
            saw.codes(&[
                ("NULL", rig.cuStreamGetId(NULL_STREAM, &mut id)),
                ("legacy", rig.cuStreamGetId(LEGACY, &mut id)),
                ("per-thread", rig.cuStreamGetId(PER_THREAD, &mut id)),
            ]);
        });
    }

    /// `cuCtxSynchronize` waits for all streams of the context, non-blocking ones too.
    fn synchronizing_waits_for_all_streams(rig, saw) = "success; then both streams success, \
        success" {
        let streams = [rig.stream(BLOCKING), rig.stream(NON_BLOCKING)];
        let work = streams.map(|stream| Beside::in_stream(rig, stream));
        saw.text(crate::raw::code_text(rig.cuCtxSynchronize()));
        let queried = streams.map(|stream| crate::raw::code_text(rig.cuStreamQuery(stream)));
        saw.text(format_args!("then both streams {}", queried.join(", ")));
        // The work of a call that did not wait is let go.
        let _ = work.map(Beside::was_done);
    }

    /// `cuCtxSynchronize` does not wait for the work of other contexts.
    fn synchronizing_leaves_other_contexts(rig, saw) = "success; the other's stream \
        CUDA_ERROR_NOT_READY (600)" {
        let other = rig.new_context();
        let stream = rig.within(other, || rig.stream(NON_BLOCKING));
        let latch = rig.hold(stream);
        saw.text(crate::raw::code_text(rig.cuCtxSynchronize()));
        saw.code("the other's stream", rig.cuStreamQuery(stream));
        latch.release();
        rig.synchronize(stream);
    }

    /// `cuCtxAttach` adds a use of the current context, and `cuCtxDetach` removes one; the last
    /// detach destroys the context. Only the current context can be detached.
    [alone]
    fn attaching_and_detaching(rig, saw) =
        "attach success, the same; flags CUDA_ERROR_INVALID_VALUE (1); no place \
         CUDA_ERROR_INVALID_VALUE (1); NULL CUDA_ERROR_INVALID_CONTEXT (201); another one \
         CUDA_ERROR_INVALID_CONTEXT (201); detach success; then success; detach success; then the \
         one before is current"
    {
        let (mut created, mut attached) = (null_mut(), null_mut());
        must!(rig.cuCtxCreate_v2(&mut created, 0, rig.device));
        let code = rig.cuCtxAttach(&mut attached, 0);
        let same = if attached == created { "the same" } else { "another one" };
        saw.text(format_args!("attach {}, {same}", code_text(code)));
        saw.code("flags", rig.cuCtxAttach(&mut attached, 1));
        saw.code("no place", rig.cuCtxAttach(null_mut(), 0));
        saw.code("NULL", rig.cuCtxDetach(null_mut()));
        saw.code("another one", rig.cuCtxDetach(rig.context));
        saw.code("detach", rig.cuCtxDetach(created));
        saw.code("then", rig.cuCtxSynchronize());
        saw.code("detach", rig.cuCtxDetach(created));
        saw.holds("then the one before is current", rig.current() == rig.context);
    }
}
