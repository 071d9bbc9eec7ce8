//! Functions of the program that a stream calls.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cuda_events::sys::*;

use crate::raw::{
    BLOCKING, INTERPROCESS, NO_TIMING, NON_BLOCKING, NULL_STREAM, Raw, Rig, Sent, TIMING, Word,
    code_text, must,
};
use crate::rules;
use crate::rules::Saw;

/// The arguments of a stream callback: the stream and the status.
type Called = (usize, CUresult);

/// Makes a stream call a callback of the old form once. The callback sends its arguments.
fn callback(raw: &Raw, stream: CUstream, sender: Sender<Called>, flags: u32) -> CUresult {
    unsafe extern "C" fn call(stream: CUstream, status: CUresult, sender: *mut c_void) {
        // SAFETY: the pointer is the box that was leaked below for this one call.
        let sender = unsafe { Box::from_raw(sender.cast::<Sender<Called>>()) };
        let _ = sender.send((stream.addr(), status));
    }
    raw.cuStreamAddCallback(stream, Some(call), Box::into_raw(Box::new(sender)).cast(), flags)
}

/// Makes calls, each while a host function or a callback of the old form runs. Returns those that
/// waited for its end.
fn beside(rig: &Rig, old_form: bool, calls: &[(&str, &dyn Fn() -> CUresult)]) -> String {
    type Work = Box<dyn FnOnce() + Send>;
    unsafe extern "C" fn call(_stream: CUstream, _status: CUresult, work: *mut c_void) {
        // SAFETY: the pointer is the box that was leaked below for this one call.
        (unsafe { Box::from_raw(work.cast::<Work>()) })();
    }
    let mut waiting = Vec::new();
    for (name, make_call) in calls {
        let stream = rig.stream(NON_BLOCKING);
        let ((begin, begun), (answer, answered), (send_result, result)) =
            (channel(), channel(), channel());
        let work = move || {
            let _ = begin.send(());
            // If the call waits for this function, no time is enough.
            let _ = send_result.send(answered.recv_timeout(Duration::from_secs(5)).is_ok());
        };
        let code = if old_form {
            let work: Box<Work> = Box::new(Box::new(work));
            rig.cuStreamAddCallback(stream, Some(call), Box::into_raw(work).cast(), 0)
        } else {
            rig.host(stream, work)
        };
        must("giving the function to the stream", code);
        begun.recv().expect("the function is called");
        must(name, make_call());
        // The function may have ended.
        let _ = answer.send(());
        rig.synchronize(stream);
        if !result.recv().expect("the function has ended") {
            waiting.push(*name);
        }
    }
    if waiting.is_empty() { "none".to_owned() } else { waiting.join(", ") }
}

/// Makes some calls inside a host function of a stream, and reports their codes.
fn inside(
    rig: &Rig,
    stream: CUstream,
    saw: &Saw,
    calls: impl FnOnce(&Raw) -> Vec<(&'static str, CUresult)> + Send + 'static,
) {
    let (answer, answers) = channel();
    // The rule waits for the codes, so the driver's table exists while the function runs.
    let raw = **rig;
    must(
        "cuLaunchHostFunc",
        rig.host(stream, move || answer.send(calls(&raw)).expect("the rule waits")),
    );
    saw.codes(&answers.recv().expect("the function was called"));
    rig.synchronize(stream);
}

rules! {
    /// A host function is called once, after the earlier work of its stream and before the later
    /// work.
    fn order(rig, saw) = "1 2 3 4 5, then the event" {
        let (stream, seen) = (rig.stream(NON_BLOCKING), Arc::new(Mutex::new(Vec::new())));
        let latch = rig.hold(stream);
        for number in 1..=5 {
            let seen = seen.clone();
            must(
                "cuLaunchHostFunc",
                rig.host(stream, move || seen.lock().expect("no panic").push(number.to_string())),
            );
        }
        let event = rig.recorded(stream);
        let early = rig.cuEventQuery(event) == CUresult::CUDA_SUCCESS
            || !seen.lock().expect("no panic").is_empty();
        latch.release();
        must!(rig.cuEventSynchronize(event));
        let seen = seen.lock().expect("no panic").join(" ");
        saw.text(format_args!(
            "{seen}, {}",
            if early { "some too early" } else { "then the event" }
        ));
    }

    /// Work after a host function waits until the function has returned.
    fn the_stream_waits_for_its_return(rig, saw) =
        "while it runs CUDA_ERROR_NOT_READY (600), CUDA_ERROR_NOT_READY (600); then success"
    {
        let stream = rig.stream(NON_BLOCKING);
        let ((begin, begun), (end, ended)) = (channel(), channel::<()>());
        let code = rig.host(stream, move || {
            begin.send(()).expect("the rule waits");
            let _ = ended.recv();
        });
        must("cuLaunchHostFunc", code);
        let event = rig.recorded(stream);
        begun.recv().expect("the function was called");
        let codes = [rig.cuEventQuery(event), rig.cuStreamQuery(stream)];
        saw.text(format_args!("while it runs {}", codes.map(code_text).join(", ")));
        drop(end);
        saw.code("then", rig.cuEventSynchronize(event));
    }

    /// A host function or a callback cannot be NULL.
    fn no_function(rig, saw) = "CUDA_ERROR_INVALID_VALUE (1) from host function, callback" {
        let stream = rig.stream(NON_BLOCKING);
        saw.codes(&[
            ("host function", rig.cuLaunchHostFunc(stream, None, null_mut())),
            ("callback", rig.cuStreamAddCallback(stream, None, null_mut(), 0)),
        ]);
    }

    /// The NULL stream also calls host functions.
    fn in_the_null_stream(rig, saw) = "success; called" {
        let (call, called) = channel();
        saw.text(code_text(rig.host(NULL_STREAM, move || call.send(()).expect("the rule waits"))));
        rig.synchronize(NULL_STREAM);
        saw.holds("called", called.try_recv().is_ok());
    }

    /// A host function runs in a thread of the driver, not in a thread that the program created.
    fn in_a_thread_of_the_drivers(rig, saw) = "another thread" {
        let (stream, (call, called)) = (rig.stream(NON_BLOCKING), channel());
        must(
            "cuLaunchHostFunc",
            rig.host(stream, move || {
                call.send(std::thread::current().id()).expect("the rule waits")
            }),
        );
        rig.synchronize(stream);
        saw.holds(
            "another thread",
            called.recv().is_ok_and(|thread| thread != std::thread::current().id()),
        );
    }

    /// Host functions of independent streams run one at a time.
    fn one_at_a_time(rig, saw) = "400 called, at most 1 at a time" {
        let (running, most, count) = (
            Arc::new(AtomicUsize::new(0)),
            Arc::new(AtomicUsize::new(0)),
            Arc::new(AtomicUsize::new(0)),
        );
        let streams = [0; 4].map(|_| rig.stream(NON_BLOCKING));
        for _ in 0..100 {
            for stream in streams {
                let (running, most, count) = (running.clone(), most.clone(), count.clone());
                let code = rig.host(stream, move || {
                    most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    // This is time in which the driver could begin another one.
                    (0..20).for_each(|_| std::thread::yield_now());
                    count.fetch_add(1, Ordering::SeqCst);
                    running.fetch_sub(1, Ordering::SeqCst);
                });
                must("cuLaunchHostFunc", code);
            }
        }
        streams.iter().for_each(|stream| rig.synchronize(*stream));
        let (count, most) = (count.load(Ordering::SeqCst), most.load(Ordering::SeqCst));
        saw.text(format_args!("{count} called, at most {most} at a time"));
    }

    /// A callback of the old form (`cuStreamAddCallback`) gets its stream and a status. Without an
    /// error, the status is `CUDA_SUCCESS`.
    fn what_a_callback_gets(rig, saw) = "its stream, success" {
        let (stream, (sender, called)) = (rig.stream(NON_BLOCKING), channel());
        must("cuStreamAddCallback", callback(rig, stream, sender, 0));
        rig.synchronize(stream);
        let (handle, status) = called.recv().expect("it was called");
        saw.text(format_args!(
            "{}, {}",
            if handle == stream.addr() { "its stream" } else { "another stream" },
            code_text(status)
        ));
    }

    /// A callback in the NULL stream gets NULL as its stream.
    fn what_a_callback_in_the_null_stream_gets(rig, saw) = "NULL, success" {
        let (sender, called) = channel();
        must("cuStreamAddCallback", callback(rig, NULL_STREAM, sender, 0));
        rig.synchronize(NULL_STREAM);
        let (handle, status) = called.recv().expect("it was called");
        saw.text(format_args!(
            "{}, {}",
            if handle == 0 { "NULL" } else { "another handle" },
            code_text(status)
        ));
    }

    /// The flags of a callback must be 0.
    fn the_flags_of_a_callback(rig, saw) = "CUDA_ERROR_INVALID_VALUE (1) from 1, all bits" {
        let (stream, (sender, _called)) = (rig.stream(NON_BLOCKING), channel());
        saw.codes(&[
            ("1", callback(rig, stream, sender.clone(), 1)),
            ("all bits", callback(rig, stream, sender, u32::MAX)),
        ]);
    }

    /// Callbacks and host functions of a stream run in the order in which they were submitted.
    fn callbacks_and_host_functions_in_order(rig, saw) = "function callback function callback" {
        let (stream, (sender, received)) = (rig.stream(NON_BLOCKING), channel::<Called>());
        let latch = rig.hold(stream);
        for _ in 0..2 {
            let from_function = sender.clone();
            must(
                "cuLaunchHostFunc",
                rig.host(stream, move || {
                    let _ = from_function.send((0, CUresult::CUDA_SUCCESS));
                }),
            );
            must("cuStreamAddCallback", callback(rig, stream, sender.clone(), 0));
        }
        latch.release();
        rig.synchronize(stream);
        drop(sender);
        let order: Vec<&str> = received
            .iter()
            .take(4)
            .map(|(stream, _)| if stream == 0 { "function" } else { "callback" })
            .collect();
        saw.text(order.join(" "));
    }

    /// While a host function or a callback of the old form runs, calls in other threads do not wait
    /// for it.
    [alone]
    fn calls_beside_a_callback(rig, saw) = "waiting for a host function: none; waiting for a \
        callback: none" {
        let (event, stream, other) =
            (rig.event(NO_TIMING), rig.stream(NON_BLOCKING), rig.stream(NON_BLOCKING));
        let calls: &[(&str, &dyn Fn() -> CUresult)] = &[
            ("event query", &|| rig.cuEventQuery(event)),
            ("stream query", &|| rig.cuStreamQuery(stream)),
            ("record", &|| rig.cuEventRecord(event, stream)),
            ("wait", &|| rig.cuStreamWaitEvent(stream, event, 0)),
            ("event create", &|| rig.cuEventCreate(&mut null_mut(), NO_TIMING)),
            ("host function", &|| rig.host(other, || {})),
            ("current context", &|| rig.cuCtxGetCurrent(&mut null_mut())),
            ("version", &|| rig.cuDriverGetVersion(&mut 0)),
        ];
        saw.text(format_args!("waiting for a host function: {}", beside(rig, false, calls)));
        saw.text(format_args!("waiting for a callback: {}", beside(rig, true, calls)));
    }

    /// Inside a host function, calls on events and on streams that the program created work,
    /// although NVIDIA forbids all calls there.
    [alone]
    fn calls_that_are_not_refused(rig, saw) =
        "success from cuEventQuery, cuEventSynchronize, cuEventRecord, cuEventElapsedTime, \
         cuStreamQuery, cuStreamWaitEvent, cuLaunchHostFunc, cuStreamGetFlags, \
         cuStreamGetPriority, cuStreamGetCtx, cuEventDestroy, cuStreamDestroy, cuInit, \
         cuDriverGetVersion, cuGetErrorName"
    {
        let (stream, other) = (rig.stream(NON_BLOCKING), Sent::new(rig.stream(NON_BLOCKING)));
        let (done, unrecorded) = (rig.event(TIMING), Sent::new(rig.event(NO_TIMING)));
        rig.record(done, other.get());
        rig.synchronize(other.get());
        let done = Sent::new(done);
        inside(rig, stream, saw, move |raw| {
            let (mut flags, mut priority, mut context, mut version, mut name) =
                (0, 0, null_mut(), 0, std::ptr::null());
            // The stream has no work now.
            let idle = raw.cuStreamQuery(other.get());
            vec![
                ("cuEventQuery", raw.cuEventQuery(done.get())),
                ("cuEventSynchronize", raw.cuEventSynchronize(done.get())),
                ("cuEventRecord", raw.cuEventRecord(unrecorded.get(), other.get())),
                ("cuEventElapsedTime", raw.elapsed_code(done.get(), done.get())),
                ("cuStreamQuery", idle),
                ("cuStreamWaitEvent", raw.cuStreamWaitEvent(other.get(), done.get(), 0)),
                ("cuLaunchHostFunc", raw.host(other.get(), || {})),
                ("cuStreamGetFlags", raw.cuStreamGetFlags(other.get(), &mut flags)),
                ("cuStreamGetPriority", raw.cuStreamGetPriority(other.get(), &mut priority)),
                ("cuStreamGetCtx", raw.cuStreamGetCtx(other.get(), &mut context)),
                ("cuEventDestroy", raw.cuEventDestroy_v2(done.get())),
                ("cuStreamDestroy", raw.cuStreamDestroy_v2(other.get())),
                ("cuInit", raw.cuInit(0)),
                ("cuDriverGetVersion", raw.cuDriverGetVersion(&mut version)),
                ("cuGetErrorName", raw.cuGetErrorName(CUresult::CUDA_SUCCESS, &mut name)),
            ]
        });
    }

    /// Inside a host function, these calls return `CUDA_ERROR_NOT_PERMITTED`: calls on contexts and
    /// devices, calls that create or export an object, and calls that name a default stream.
    [alone]
    fn calls_that_are_refused(rig, saw) =
        "CUDA_ERROR_NOT_PERMITTED (800) from cuCtxGetCurrent, cuCtxSetCurrent, cuCtxPushCurrent, \
         cuDevicePrimaryCtxRetain, cuCtxSynchronize, cuDeviceGet, cuDeviceGetCount, cuEventCreate, \
         cuStreamCreate, cuIpcGetEventHandle, cuStreamQuery(NULL)"
    {
        let (stream, shared) = (rig.stream(NON_BLOCKING), Sent::new(rig.event(INTERPROCESS)));
        let (context, device) = (Sent::new(rig.context), rig.device);
        inside(rig, stream, saw, move |raw| {
            let (mut current, mut count, mut ordinal, mut event, mut made) =
                (null_mut(), 0, 0, null_mut(), null_mut());
            let mut handle = CUipcEventHandle { reserved: [0; 64] };
            vec![
                ("cuCtxGetCurrent", raw.cuCtxGetCurrent(&mut current)),
                ("cuCtxSetCurrent", raw.cuCtxSetCurrent(context.get())),
                ("cuCtxPushCurrent", raw.cuCtxPushCurrent_v2(context.get())),
                ("cuDevicePrimaryCtxRetain", raw.cuDevicePrimaryCtxRetain(&mut current, device)),
                ("cuCtxSynchronize", raw.cuCtxSynchronize()),
                ("cuDeviceGet", raw.cuDeviceGet(&mut ordinal, 0)),
                ("cuDeviceGetCount", raw.cuDeviceGetCount(&mut count)),
                ("cuEventCreate", raw.cuEventCreate(&mut event, 0)),
                ("cuStreamCreate", raw.cuStreamCreate(&mut made, 0)),
                ("cuIpcGetEventHandle", raw.cuIpcGetEventHandle(&mut handle, shared.get())),
                ("cuStreamQuery(NULL)", raw.cuStreamQuery(NULL_STREAM)),
            ]
        });
    }

    /// With the strict rules, which are the documented ones, every call inside a host function
    /// returns `CUDA_ERROR_NOT_PERMITTED`.
    [soft_only, settings("rules=strict")]
    fn strict_rules(rig, saw) =
        "CUDA_ERROR_NOT_PERMITTED (800) from cuEventQuery, cuStreamQuery, cuCtxGetCurrent, \
            cuLaunchHostFunc"
    {
        let (stream, other) = (rig.stream(NON_BLOCKING), Sent::new(rig.stream(NON_BLOCKING)));
        let event = Sent::new(rig.event(NO_TIMING));
        inside(rig, stream, saw, move |raw| {
            let mut current = null_mut();
            vec![
                ("cuEventQuery", raw.cuEventQuery(event.get())),
                ("cuStreamQuery", raw.cuStreamQuery(other.get())),
                ("cuCtxGetCurrent", raw.cuCtxGetCurrent(&mut current)),
                ("cuLaunchHostFunc", raw.host(other.get(), || {})),
            ]
        });
    }

    /// The second version of `cuLaunchHostFunc` has an argument for the way in which the stream
    /// waits for the function: blocking or spinning. For other values it returns
    /// `CUDA_ERROR_INVALID_VALUE`.
    [since(13, 1), settings("version=13.5")]
    fn how_to_wait_for_a_host_function(rig, saw) =
        "success from blocking, spinning; CUDA_ERROR_INVALID_VALUE (1) from 2, all bits, no \
            function; called twice"
    {
        static CALLED: AtomicUsize = AtomicUsize::new(0);
        unsafe extern "C" fn count(_data: *mut c_void) {
            CALLED.fetch_add(1, Ordering::SeqCst);
        }
        let stream = rig.stream(NON_BLOCKING);
        let launch = |mode| rig.cuLaunchHostFunc_v2(stream, Some(count), null_mut(), mode);
        saw.codes(&[
            ("blocking", launch(CU_HOST_TASK_BLOCKING)),
            ("spinning", launch(CU_HOST_TASK_SPINWAIT)),
            ("2", launch(2)),
            ("all bits", launch(u32::MAX)),
            (
                "no function",
                rig.cuLaunchHostFunc_v2(stream, None, null_mut(), CU_HOST_TASK_BLOCKING),
            ),
        ]);
        rig.synchronize(stream);
        saw.holds("called twice", CALLED.load(Ordering::SeqCst) == 2);
    }

    /// A host function in the legacy stream waits for the blocking streams.
    [since(11, 7)]
    fn in_the_legacy_stream(rig, saw) = "held back; then called" {
        // A host function must not hold the stream, because no other one would run beside it.
        let (stream, word) = (rig.stream(BLOCKING), Word::new(rig));
        let (free, (call, called)) = (rig.stream(NON_BLOCKING), channel());
        must!(rig.cuStreamWaitValue32_v2(stream, word.device, 1, CU_STREAM_WAIT_VALUE_EQ));
        must(
            "cuLaunchHostFunc",
            rig.host(NULL_STREAM, move || call.send(()).expect("the rule waits")),
        );
        // Later host functions of a stream that is not held run meanwhile.
        for _ in 0..10 {
            must("cuLaunchHostFunc", rig.host(free, || {}));
            rig.synchronize(free);
        }
        saw.holds("held back", called.try_recv().is_err());
        word.word().store(1, Ordering::SeqCst);
        rig.synchronize(NULL_STREAM);
        saw.holds("then called", called.try_recv().is_ok());
    }
}
