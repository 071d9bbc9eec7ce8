//! Stream capture: what is allowed while a stream captures, in the three modes, and what a refusal
//! does to the capture.

use std::ffi::c_void;
use std::ptr::null_mut;

use cuda_events::sys::*;

use crate::raw::{
    BLOCKING, INTERPROCESS, LEGACY, NO_TIMING, NON_BLOCKING, NULL_STREAM, PER_THREAD, Raw, Rig,
    TIMING, elsewhere, must, said,
};
use crate::rules;
use crate::rules::Saw;

pub const GLOBAL: CUstreamCaptureMode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
pub const THREAD_LOCAL: CUstreamCaptureMode =
    CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
pub const RELAXED: CUstreamCaptureMode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;

const INVALIDATED: CUresult = CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
const ILLEGAL_STATE: CUresult = CUresult::CUDA_ERROR_ILLEGAL_STATE;

/// A stream whose capture has begun.
pub fn capturing(raw: &Raw, mode: CUstreamCaptureMode) -> CUstream {
    let stream = raw.stream(NON_BLOCKING);
    begin(raw, stream, mode);
    stream
}

#[track_caller]
pub fn begin(raw: &Raw, stream: CUstream, mode: CUstreamCaptureMode) {
    must("cuStreamBeginCapture", raw.cuStreamBeginCapture_v2(stream, mode));
}

/// The number of a stream's capture status: 0 none, 1 active, 2 invalidated.
pub fn status(raw: &Raw, stream: CUstream) -> Result<u32, CUresult> {
    let mut status = CUstreamCaptureStatus(77);
    match raw.cuStreamIsCapturing(stream, &mut status) {
        CUresult::CUDA_SUCCESS => Ok(status.0),
        code => Err(code),
    }
}

/// Ends a capture: the code, and the graph, which the call is given a handle to write over.
pub fn end(raw: &Raw, stream: CUstream) -> (CUresult, CUgraph) {
    let mut graph = std::ptr::without_provenance_mut(77);
    let code = raw.cuStreamEndCapture(stream, &mut graph);
    (code, graph)
}

/// Ends a capture, and says in a word what had become of it.
pub fn fate(raw: &Raw, stream: CUstream) -> String {
    let status = status(raw, stream);
    let (code, graph) = end(raw, stream);
    let null = graph.is_null();
    if code == CUresult::CUDA_SUCCESS && !null {
        must("cuGraphDestroy", raw.cuGraphDestroy(graph));
    }
    match (status, code, null) {
        (Ok(1), CUresult::CUDA_SUCCESS, false) => "unharmed".to_owned(),
        (Ok(2), INVALIDATED, true) => "invalidated".to_owned(),
        (Ok(0), ILLEGAL_STATE, true) => "over".to_owned(),
        (status, code, null) => {
            format!("status {status:?}, end {}{}", said(code), if null { " and NULL" } else { "" })
        }
    }
}

/// The same thing in the three modes.
fn in_each_mode(saw: &Saw, work: impl Fn(CUstreamCaptureMode) -> String) {
    let [global, local, relaxed] = [GLOBAL, THREAD_LOCAL, RELAXED].map(work);
    if global == local && local == relaxed {
        saw.text(format_args!("each mode: {global}"));
    } else {
        saw.text(format_args!("global: {global}"));
        saw.text(format_args!("thread-local: {local}"));
        saw.text(format_args!("relaxed: {relaxed}"));
    }
}

/// In each mode: begins a capture, makes a call, and says what it answered and what had become of
/// the capture.
fn call_in_each_mode(rig: &Rig, saw: &Saw, call: impl Fn(CUstream) -> CUresult) {
    in_each_mode(saw, |mode| {
        let stream = capturing(rig, mode);
        let code = said(call(stream));
        format!("{code}, {}", fate(rig, stream))
    });
}

/// Several calls, each in a capture of its own.
fn calls_in_each_mode(rig: &Rig, saw: &Saw, calls: &[(&str, &dyn Fn(CUstream) -> CUresult)]) {
    in_each_mode(saw, |mode| grouped(rig, calls, || capturing(rig, mode)));
}

/// What the calls answer, each in the capture of a stream of its own, and what becomes of that; the
/// names of those with one answer together.
fn grouped(
    rig: &Rig,
    calls: &[(&str, &dyn Fn(CUstream) -> CUresult)],
    capturing: impl Fn() -> CUstream,
) -> String {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for (name, call) in calls {
        let stream = capturing();
        let code = said(call(stream));
        let answer = format!("{code}, {}", fate(rig, stream));
        match groups.iter_mut().find(|(seen, _)| *seen == answer) {
            Some((_, names)) => names.push(name),
            None => groups.push((answer, vec![name])),
        }
    }
    let groups: Vec<String> = groups
        .into_iter()
        .map(|(answer, names)| format!("{answer} ({})", names.join(", ")))
        .collect();
    groups.join(", ")
}

/// Sets this thread's capture mode for the time of the work.
fn with_mode<T>(raw: &Raw, mode: CUstreamCaptureMode, work: impl FnOnce() -> T) -> T {
    let mut exchanged = mode;
    must(
        "cuThreadExchangeStreamCaptureMode",
        raw.cuThreadExchangeStreamCaptureMode(&mut exchanged),
    );
    let result = work();
    must(
        "cuThreadExchangeStreamCaptureMode",
        raw.cuThreadExchangeStreamCaptureMode(&mut exchanged),
    );
    result
}

/// What a capture forbids in some modes: asking about an uncaptured event or another stream, and
/// waiting for it.
fn unsafe_calls(rig: &Rig) -> (CUevent, CUstream) {
    let (event, other) = (rig.event(NO_TIMING), rig.stream(NON_BLOCKING));
    rig.record(event, other);
    rig.synchronize(other);
    (event, other)
}

fn unsafe_calls_in_each_mode(
    rig: &Rig,
    saw: &Saw,
    around: impl Fn(&dyn Fn() -> CUresult) -> CUresult,
) {
    let (event, other) = unsafe_calls(rig);
    calls_in_each_mode(
        rig,
        saw,
        &[
            ("event query", &|_| around(&|| rig.cuEventQuery(event))),
            ("event synchronize", &|_| around(&|| rig.cuEventSynchronize(event))),
            ("stream query", &|_| around(&|| rig.cuStreamQuery(other))),
            ("stream synchronize", &|_| around(&|| rig.cuStreamSynchronize(other))),
        ],
    );
}

unsafe extern "C" fn nothing(_stream: CUstream, _status: CUresult, _data: *mut c_void) {}

rules! {
    /// A capture begins and ends, with a graph.
    fn begin_and_end(rig, saw) = "each mode: status 0, status 1, success with a graph, status 0" {
        in_each_mode(saw, |mode| {
            let stream = rig.stream(NON_BLOCKING);
            let before = status(rig, stream).expect("a status");
            begin(rig, stream, mode);
            let during = status(rig, stream).expect("a status");
            let (code, graph) = end(rig, stream);
            let after = status(rig, stream).expect("a status");
            must("cuGraphDestroy", rig.cuGraphDestroy(graph));
            format!("status {before}, status {during}, {} with a graph, status {after}", said(code))
        });
    }

    /// The legacy stream cannot capture, by either handle.
    fn beginning_in_the_legacy_stream(rig, saw) =
        "each mode: NULL CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900), legacy \
         CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900)"
    {
        in_each_mode(saw, |mode| {
            let codes =
                [NULL_STREAM, LEGACY].map(|stream| said(rig.cuStreamBeginCapture_v2(stream, mode)));
            format!("NULL {}, legacy {}", codes[0], codes[1])
        });
    }

    /// A per-thread default stream can capture.
    fn beginning_in_a_per_thread_stream(rig, saw) = "each mode: success, unharmed" {
        in_each_mode(saw, |mode| {
            let code = said(rig.cuStreamBeginCapture_v2(PER_THREAD, mode));
            format!("{code}, {}", fate(rig, PER_THREAD))
        });
    }

    /// Beginning twice in one stream is an illegal state.
    fn beginning_twice(rig, saw) = "each mode: CUDA_ERROR_ILLEGAL_STATE (401), unharmed" {
        call_in_each_mode(rig, saw, |stream| rig.cuStreamBeginCapture_v2(stream, GLOBAL));
    }

    /// There are three modes; other numbers are refused.
    fn a_mode_that_there_is_not(rig, saw) = "CUDA_ERROR_INVALID_VALUE (1) from 3, -1; status 0" {
        let stream = rig.stream(NON_BLOCKING);
        saw.codes(&[
            ("3", rig.cuStreamBeginCapture_v2(stream, CUstreamCaptureMode(3))),
            ("-1", rig.cuStreamBeginCapture_v2(stream, CUstreamCaptureMode(u32::MAX))),
        ]);
        saw.text(format_args!("status {}", status(rig, stream).expect("a status")));
    }

    /// Asking or waiting for the capturing stream itself invalidates the capture.
    fn asking_the_capturing_stream(rig, saw) =
        "each mode: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900), invalidated (query, synchronize)"
    {
        calls_in_each_mode(
            rig,
            saw,
            &[
                ("query", &|stream| rig.cuStreamQuery(stream)),
                ("synchronize", &|stream| rig.cuStreamSynchronize(stream)),
            ],
        );
    }

    /// Waiting for the whole context invalidates the captures in it.
    fn waiting_for_the_context(rig, saw) = "each mode: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED \
        (900), invalidated" {
        call_in_each_mode(rig, saw, |_| rig.cuCtxSynchronize());
    }

    /// Waiting for the whole context in another thread invalidates the captures in it, too.
    fn waiting_for_the_context_in_another_thread(rig, saw) =
        "each mode: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900), invalidated"
    {
        call_in_each_mode(rig, saw, |_| {
            elsewhere(|| {
                must("cuCtxSetCurrent", rig.cuCtxSetCurrent(rig.context));
                rig.cuCtxSynchronize()
            })
        });
    }

    /// The capturing thread may ask and wait for uncaptured events and other streams only in the
    /// relaxed mode.
    fn unsafe_calls_in_the_capturing_thread(rig, saw) =
        "global: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900), invalidated (event query, event \
         synchronize, stream query, stream synchronize); thread-local: \
         CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900), invalidated (event query, event synchronize, \
         stream query, stream synchronize); relaxed: success, unharmed (event query, event \
         synchronize, stream query, stream synchronize)"
    {
        unsafe_calls_in_each_mode(rig, saw, |call| call());
    }

    /// Another thread may not ask or wait for uncaptured events and other streams while there is a
    /// global capture.
    fn unsafe_calls_in_another_thread(rig, saw) =
        "global: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900), invalidated (event query, event \
         synchronize, stream query, stream synchronize); thread-local: success, unharmed (event \
         query, event synchronize, stream query, stream synchronize); relaxed: success, unharmed \
         (event query, event synchronize, stream query, stream synchronize)"
    {
        unsafe_calls_in_each_mode(rig, saw, |call| elsewhere(call));
    }

    /// A thread that set itself to the relaxed mode may ask and wait for uncaptured events and
    /// other streams beside any capture.
    fn unsafe_calls_in_another_relaxed_thread(rig, saw) =
        "each mode: success, unharmed (event query, event synchronize, stream query, stream \
            synchronize)"
    {
        unsafe_calls_in_each_mode(rig, saw, |call| elsewhere(|| with_mode(rig, RELAXED, call)));
    }

    /// A thread that set itself to the thread-local mode may ask and wait for uncaptured events and
    /// other streams beside the captures of other threads.
    fn unsafe_calls_in_another_thread_local_thread(rig, saw) =
        "each mode: success, unharmed (event query, event synchronize, stream query, stream \
            synchronize)"
    {
        unsafe_calls_in_each_mode(rig, saw, |call| {
            elsewhere(|| with_mode(rig, THREAD_LOCAL, call))
        });
    }

    /// The capturing thread may ask and wait for uncaptured events and other streams while it is
    /// set to the relaxed mode.
    fn unsafe_calls_in_the_capturing_thread_made_relaxed(rig, saw) =
        "each mode: success, unharmed (event query, event synchronize, stream query, stream \
            synchronize)"
    {
        unsafe_calls_in_each_mode(rig, saw, |call| with_mode(rig, RELAXED, call));
    }

    /// The thread-local mode does not allow the capturing thread to ask and wait for uncaptured
    /// events and other streams.
    fn unsafe_calls_in_the_thread_made_thread_local(rig, saw) =
        "global: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900), invalidated (event query, event \
         synchronize, stream query, stream synchronize); thread-local: \
         CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900), invalidated (event query, event synchronize, \
         stream query, stream synchronize); relaxed: success, unharmed (event query, event \
         synchronize, stream query, stream synchronize)"
    {
        unsafe_calls_in_each_mode(rig, saw, |call| with_mode(rig, THREAD_LOCAL, call));
    }

    /// What a capture forbids in its own context, it forbids in the other contexts of the device
    /// too; waiting for another context as a whole is allowed.
    fn another_context(rig, saw) =
        "global: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900), invalidated (event query, event \
         synchronize, stream query, stream synchronize), success, unharmed (context synchronize); \
         thread-local: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900), invalidated (event query, \
         event synchronize, stream query, stream synchronize), success, unharmed (context \
         synchronize); relaxed: success, unharmed (event query, event synchronize, stream query, \
         stream synchronize, context synchronize)"
    {
        let other = rig.new_context();
        let (event, stream) = rig.within(other, || unsafe_calls(rig));
        calls_in_each_mode(
            rig,
            saw,
            &[
                ("event query", &|_| rig.cuEventQuery(event)),
                ("event synchronize", &|_| rig.cuEventSynchronize(event)),
                ("stream query", &|_| rig.cuStreamQuery(stream)),
                ("stream synchronize", &|_| rig.cuStreamSynchronize(stream)),
                ("context synchronize", &|_| rig.within(other, || rig.cuCtxSynchronize())),
            ],
        );
    }

    /// A global capture forbids other threads, too, to ask about events and streams of other
    /// contexts.
    fn another_context_in_another_thread(rig, saw) =
        "global: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900), invalidated (event query, stream \
         query); thread-local: success, unharmed (event query, stream query); relaxed: success, \
         unharmed (event query, stream query)"
    {
        let other = rig.new_context();
        let (event, stream) = rig.within(other, || unsafe_calls(rig));
        calls_in_each_mode(
            rig,
            saw,
            &[
                ("event query", &|_| elsewhere(|| rig.cuEventQuery(event))),
                ("stream query", &|_| elsewhere(|| rig.cuStreamQuery(stream))),
            ],
        );
    }

    /// Making and destroying events and streams, exporting, and timing uncaptured events is
    /// allowed.
    fn safe_calls(rig, saw) =
        "each mode: success, unharmed (event create, event destroy, stream create, stream destroy, \
            export, elapsed)"
    {
        let stream = rig.stream(NON_BLOCKING);
        let (timed, shared) = (rig.event(TIMING), rig.event(INTERPROCESS));
        rig.record(timed, stream);
        rig.synchronize(stream);
        calls_in_each_mode(
            rig,
            saw,
            &[
                ("event create", &|_| rig.cuEventCreate(&mut null_mut(), NO_TIMING)),
                ("event destroy", &|_| rig.cuEventDestroy_v2(rig.event(NO_TIMING))),
                ("stream create", &|_| rig.cuStreamCreate(&mut null_mut(), NON_BLOCKING)),
                ("stream destroy", &|_| rig.cuStreamDestroy_v2(rig.stream(NON_BLOCKING))),
                ("export", &|_| {
                    rig.cuIpcGetEventHandle(&mut CUipcEventHandle { reserved: [0; 64] }, shared)
                }),
                ("elapsed", &|_| rig.elapsed_code(timed, timed)),
            ],
        );
    }

    /// An event that was recorded in a capture is not one to ask or to wait for.
    fn asking_a_captured_event(rig, saw) =
        "each mode: CUDA_ERROR_CAPTURED_EVENT (907), invalidated (query, synchronize)"
    {
        let captured = |stream| rig.recorded(stream);
        calls_in_each_mode(
            rig,
            saw,
            &[
                ("query", &|stream| rig.cuEventQuery(captured(stream))),
                ("synchronize", &|stream| rig.cuEventSynchronize(captured(stream))),
            ],
        );
    }

    /// There is no time of an event that was recorded in a capture, but to ask for it does no harm.
    fn timing_a_captured_event(rig, saw) = "each mode: CUDA_ERROR_CAPTURED_EVENT (907), unharmed \
        (twice, from, to)" {
        let stream = rig.stream(NON_BLOCKING);
        let done = rig.event(TIMING);
        rig.record(done, stream);
        rig.synchronize(stream);
        let captured = |stream| {
            let event = rig.event(TIMING);
            rig.record(event, stream);
            event
        };
        calls_in_each_mode(
            rig,
            saw,
            &[
                ("twice", &|stream| {
                    let event = captured(stream);
                    rig.elapsed_code(event, event)
                }),
                ("from", &|stream| rig.elapsed_code(captured(stream), done)),
                ("to", &|stream| rig.elapsed_code(done, captured(stream))),
            ],
        );
    }

    /// After its capture has ended, a captured event is an invalid value to every use.
    fn a_captured_event_afterwards(rig, saw) =
        "each mode: CUDA_ERROR_INVALID_VALUE (1) from query, synchronize, wait, elapsed"
    {
        in_each_mode(saw, |mode| {
            let (stream, event) = (capturing(rig, mode), rig.event(TIMING));
            rig.record(event, stream);
            let (code, graph) = end(rig, stream);
            must("cuStreamEndCapture", code);
            let one = Saw::default();
            one.codes(&[
                ("query", rig.cuEventQuery(event)),
                ("synchronize", rig.cuEventSynchronize(event)),
                ("wait", rig.cuStreamWaitEvent(stream, event, 0)),
                ("elapsed", rig.elapsed_code(event, event)),
            ]);
            must("cuGraphDestroy", rig.cuGraphDestroy(graph));
            one.all()
        });
    }

    /// After a capture that failed, an event that was recorded in it is an invalid value, too.
    fn a_captured_event_after_a_failure(rig, saw) = "CUDA_ERROR_INVALID_VALUE (1) from query, \
        wait, elapsed" {
        let (stream, event) = (capturing(rig, GLOBAL), rig.event(TIMING));
        rig.record(event, stream);
        let _ = rig.cuStreamQuery(stream);
        let _ = end(rig, stream);
        saw.codes(&[
            ("query", rig.cuEventQuery(event)),
            ("wait", rig.cuStreamWaitEvent(stream, event, 0)),
            ("elapsed", rig.elapsed_code(event, event)),
        ]);
    }

    /// A record outside makes a captured event an ordinary one again.
    fn recording_a_captured_event_outside(rig, saw) =
        "record success; synchronize success; query success; elapsed success"
    {
        let (stream, event) = (capturing(rig, GLOBAL), rig.event(TIMING));
        rig.record(event, stream);
        must("cuGraphDestroy", rig.cuGraphDestroy(end(rig, stream).1));
        saw.code("record", rig.cuEventRecord(event, stream));
        saw.code("synchronize", rig.cuEventSynchronize(event));
        saw.code("query", rig.cuEventQuery(event));
        saw.code("elapsed", rig.elapsed_code(event, event));
    }

    /// A captured stream cannot wait for an event that was recorded outside.
    fn waiting_for_an_outside_event(rig, saw) = "each mode: CUDA_ERROR_STREAM_CAPTURE_ISOLATION \
        (905), invalidated" {
        let other = rig.stream(NON_BLOCKING);
        let event = rig.recorded(other);
        rig.synchronize(other);
        call_in_each_mode(rig, saw, |stream| rig.cuStreamWaitEvent(stream, event, 0));
    }

    /// A captured stream may wait for an event that was never recorded: there is nothing to wait
    /// for.
    fn waiting_for_a_never_recorded_event(rig, saw) = "each mode: success, unharmed" {
        let never = rig.event(NO_TIMING);
        call_in_each_mode(rig, saw, |stream| rig.cuStreamWaitEvent(stream, never, 0));
    }

    /// An external wait is captured, whatever the event was recorded in.
    fn an_external_wait(rig, saw) = "each mode: success, unharmed (recorded, never recorded)" {
        let other = rig.stream(NON_BLOCKING);
        let (recorded, never) = (rig.recorded(other), rig.event(NO_TIMING));
        rig.synchronize(other);
        calls_in_each_mode(
            rig,
            saw,
            &[
                ("recorded", &|stream| {
                    rig.cuStreamWaitEvent(stream, recorded, CU_EVENT_WAIT_EXTERNAL)
                }),
                ("never recorded", &|stream| {
                    rig.cuStreamWaitEvent(stream, never, CU_EVENT_WAIT_EXTERNAL)
                }),
            ],
        );
    }

    /// An external record is captured.
    [since(11, 1)]
    fn an_external_record(rig, saw) = "each mode: success, unharmed" {
        let event = rig.event(NO_TIMING);
        call_in_each_mode(rig, saw, |stream| {
            rig.cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_EXTERNAL)
        });
    }

    /// An event with an external record only is not a captured one: it stands for what it stood
    /// for.
    [since(11, 1)]
    fn an_externally_recorded_event(rig, saw) = "query success; elapsed CUDA_ERROR_INVALID_HANDLE \
        (400); unharmed" {
        let (stream, event) = (capturing(rig, RELAXED), rig.event(TIMING));
        must(
            "cuEventRecordWithFlags",
            rig.cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_EXTERNAL),
        );
        saw.code("query", rig.cuEventQuery(event));
        saw.code("elapsed", rig.elapsed_code(event, event));
        saw.text(fate(rig, stream));
    }

    /// An external record takes an interprocess event, and one of another context.
    [since(11, 1)]
    fn what_an_external_record_takes(rig, saw) = "each mode: success, unharmed (interprocess, of \
        another context)" {
        let (shared, other) = (rig.event(INTERPROCESS), rig.new_context());
        let others = rig.within(other, || rig.event(NO_TIMING));
        calls_in_each_mode(
            rig,
            saw,
            &[
                ("interprocess", &|stream| {
                    rig.cuEventRecordWithFlags(shared, stream, CU_EVENT_RECORD_EXTERNAL)
                }),
                ("of another context", &|stream| {
                    rig.cuEventRecordWithFlags(others, stream, CU_EVENT_RECORD_EXTERNAL)
                }),
            ],
        );
    }

    /// A plain record in a capture takes no event of another context.
    fn recording_an_event_of_another_context(rig, saw) = "each mode: CUDA_ERROR_INVALID_HANDLE \
        (400), unharmed" {
        let other = rig.new_context();
        let others = rig.within(other, || rig.event(NO_TIMING));
        call_in_each_mode(rig, saw, |stream| rig.cuEventRecord(others, stream));
    }

    /// A plain record of an interprocess event cannot be captured, but does no harm.
    fn recording_an_interprocess_event(rig, saw) =
        "each mode: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900), unharmed" {
        let shared = rig.event(INTERPROCESS);
        call_in_each_mode(rig, saw, |stream| rig.cuEventRecord(shared, stream));
    }

    /// A stream that waits for a captured event joins the capture.
    fn joining(rig, saw) = "each mode: wait success, status 1, after the end 0" {
        in_each_mode(saw, |mode| {
            let (stream, joined) = (capturing(rig, mode), rig.stream(NON_BLOCKING));
            let event = rig.recorded(stream);
            let code = said(rig.cuStreamWaitEvent(joined, event, 0));
            let during = status(rig, joined).expect("a status");
            must("cuGraphDestroy", rig.cuGraphDestroy(end(rig, stream).1));
            format!(
                "wait {code}, status {during}, after the end {}",
                status(rig, joined).expect("a status")
            )
        });
    }

    /// A stream of one capture that waits for an event of another one spoils both.
    fn merging(rig, saw) = "each mode: CUDA_ERROR_STREAM_CAPTURE_MERGE (902), invalidated and \
        invalidated" {
        in_each_mode(saw, |mode| {
            let (one, two) = (capturing(rig, mode), capturing(rig, mode));
            let event = rig.recorded(one);
            let code = said(rig.cuStreamWaitEvent(two, event, 0));
            format!("{code}, {} and {}", fate(rig, one), fate(rig, two))
        });
    }

    /// An event of a capture that has ended spoils another capture that waits for it.
    fn waiting_for_an_event_of_an_ended_capture(rig, saw) = "each mode: CUDA_ERROR_INVALID_VALUE \
        (1), invalidated" {
        let first = capturing(rig, GLOBAL);
        let event = rig.recorded(first);
        must("cuGraphDestroy", rig.cuGraphDestroy(end(rig, first).1));
        call_in_each_mode(rig, saw, |stream| rig.cuStreamWaitEvent(stream, event, 0));
    }

    /// A capture ends in the stream that it began in; ended in a joined one it is spoiled.
    fn ending_in_a_joined_stream(rig, saw) =
        "each mode: CUDA_ERROR_STREAM_CAPTURE_UNMATCHED (903) and NULL, invalidated"
    {
        in_each_mode(saw, |mode| {
            let (stream, joined) = (capturing(rig, mode), rig.stream(NON_BLOCKING));
            let event = rig.recorded(stream);
            must("cuStreamWaitEvent", rig.cuStreamWaitEvent(joined, event, 0));
            let (code, graph) = end(rig, joined);
            let graph = if graph.is_null() { "NULL" } else { "a graph" };
            format!("{} and {graph}, {}", said(code), fate(rig, stream))
        });
    }

    /// Work in a forked stream must be joined before the end; otherwise the capture is over,
    /// without a graph.
    fn unjoined_work(rig, saw) = "each mode: CUDA_ERROR_STREAM_CAPTURE_UNJOINED (904) and NULL, \
        origin 0, forked 0" {
        in_each_mode(saw, |mode| {
            let (stream, forked) = (capturing(rig, mode), rig.stream(NON_BLOCKING));
            let event = rig.recorded(stream);
            must("cuStreamWaitEvent", rig.cuStreamWaitEvent(forked, event, 0));
            must("cuLaunchHostFunc", rig.host(forked, || {}));
            let (code, graph) = end(rig, stream);
            let graph = if graph.is_null() { "NULL" } else { "a graph" };
            let after = [stream, forked].map(|stream| status(rig, stream).expect("a status"));
            format!("{} and {graph}, origin {}, forked {}", said(code), after[0], after[1])
        });
    }

    /// A forked stream without work of its own needs no joining.
    fn a_forked_stream_without_work(rig, saw) = "each mode: unharmed" {
        in_each_mode(saw, |mode| {
            let (stream, forked) = (capturing(rig, mode), rig.stream(NON_BLOCKING));
            let event = rig.recorded(stream);
            must("cuStreamWaitEvent", rig.cuStreamWaitEvent(forked, event, 0));
            fate(rig, stream)
        });
    }

    /// A forked stream whose work was joined is good.
    fn joined_work(rig, saw) = "each mode: unharmed" {
        in_each_mode(saw, |mode| {
            let (stream, forked) = (capturing(rig, mode), rig.stream(NON_BLOCKING));
            let fork = rig.recorded(stream);
            must("cuStreamWaitEvent", rig.cuStreamWaitEvent(forked, fork, 0));
            must("cuLaunchHostFunc", rig.host(forked, || {}));
            let join = rig.recorded(forked);
            must("cuStreamWaitEvent", rig.cuStreamWaitEvent(stream, join, 0));
            fate(rig, stream)
        });
    }

    /// A forked stream that is destroyed before the end leaves its work unjoined.
    fn a_destroyed_stream_with_unjoined_work(rig, saw) =
        "each mode: destroy success, CUDA_ERROR_STREAM_CAPTURE_UNJOINED (904) and NULL, origin 0"
    {
        in_each_mode(saw, |mode| {
            let (stream, forked) = (capturing(rig, mode), rig.stream(NON_BLOCKING));
            let event = rig.recorded(stream);
            must("cuStreamWaitEvent", rig.cuStreamWaitEvent(forked, event, 0));
            must("cuLaunchHostFunc", rig.host(forked, || {}));
            let destroyed = said(rig.cuStreamDestroy_v2(forked));
            let (code, graph) = end(rig, stream);
            let graph = if graph.is_null() { "NULL" } else { "a graph" };
            let after = status(rig, stream).expect("a status");
            format!("destroy {destroyed}, {} and {graph}, origin {after}", said(code))
        });
    }

    /// A forked stream without work of its own can be destroyed before the end.
    fn a_destroyed_stream_without_work(rig, saw) = "each mode: success, unharmed" {
        call_in_each_mode(rig, saw, |stream| {
            let (forked, event) = (rig.stream(NON_BLOCKING), rig.recorded(stream));
            must("cuStreamWaitEvent", rig.cuStreamWaitEvent(forked, event, 0));
            rig.cuStreamDestroy_v2(forked)
        });
    }

    /// A forked stream can be destroyed between its work and the join.
    fn a_stream_destroyed_before_it_is_joined(rig, saw) = "each mode: success, unharmed" {
        call_in_each_mode(rig, saw, |stream| {
            let (forked, fork) = (rig.stream(NON_BLOCKING), rig.recorded(stream));
            must("cuStreamWaitEvent", rig.cuStreamWaitEvent(forked, fork, 0));
            must("cuLaunchHostFunc", rig.host(forked, || {}));
            let join = rig.recorded(forked);
            let destroyed = rig.cuStreamDestroy_v2(forked);
            must("cuStreamWaitEvent", rig.cuStreamWaitEvent(stream, join, 0));
            destroyed
        });
    }

    /// Only a relaxed capture can be ended by another thread; the others are over then all the
    /// same.
    fn ending_in_another_thread(rig, saw) =
        "global: CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD (908) and NULL, over; thread-local: \
         CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD (908) and NULL, over; relaxed: success and a \
         graph, over"
    {
        in_each_mode(saw, |mode| {
            let stream = capturing(rig, mode);
            let (code, graph) = elsewhere(|| end(rig, stream));
            if code == CUresult::CUDA_SUCCESS {
                must("cuGraphDestroy", rig.cuGraphDestroy(graph));
            }
            let graph = if graph.is_null() { "NULL" } else { "a graph" };
            format!("{} and {graph}, {}", said(code), fate(rig, stream))
        });
    }

    /// Ending where nothing began is an illegal state, without a graph.
    fn ending_without_a_capture(rig, saw) =
        "CUDA_ERROR_ILLEGAL_STATE (401), NULL; NULL stream CUDA_ERROR_ILLEGAL_STATE (401), NULL"
    {
        let answer = |stream| {
            let (code, graph) = end(rig, stream);
            format!("{}, {}", said(code), if graph.is_null() { "NULL" } else { "something else" })
        };
        saw.text(answer(rig.stream(NON_BLOCKING)));
        saw.text(format_args!("NULL stream {}", answer(NULL_STREAM)));
    }

    /// Nobody has to ask for the graph.
    fn no_place_for_the_graph(rig, saw) = "success; over" {
        let stream = capturing(rig, GLOBAL);
        saw.text(said(rig.cuStreamEndCapture(stream, null_mut())));
        saw.text(fate(rig, stream));
    }

    /// A host function is captured, and not called by that.
    fn a_host_function(rig, saw) = "each mode: success, unharmed, not called" {
        in_each_mode(saw, |mode| {
            let (stream, (call, called)) = (capturing(rig, mode), std::sync::mpsc::channel::<()>());
            let code = said(rig.host(stream, move || {
                let _ = call.send(());
            }));
            let fate = fate(rig, stream);
            rig.synchronize(stream);
            format!(
                "{code}, {fate}, {}",
                if called.try_recv().is_err() { "not called" } else { "called" }
            )
        });
    }

    /// A callback of the old form cannot be captured.
    fn a_callback(rig, saw) =
        "each mode: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900), invalidated" {
        call_in_each_mode(rig, saw, |stream| {
            rig.cuStreamAddCallback(stream, Some(nothing), null_mut(), 0)
        });
    }

    /// While a blocking stream captures, the legacy stream cannot be used: it would have to wait
    /// for the capture.
    fn the_legacy_stream_beside_a_blocking_capture(rig, saw) =
        "each mode: CUDA_ERROR_STREAM_CAPTURE_IMPLICIT (906), invalidated (record, wait, query, \
         synchronize, host function)"
    {
        let event = rig.event(NO_TIMING);
        let calls: [(&str, &dyn Fn(CUstream) -> CUresult); 5] = [
            ("record", &|_| rig.cuEventRecord(event, NULL_STREAM)),
            ("wait", &|_| rig.cuStreamWaitEvent(NULL_STREAM, event, 0)),
            ("query", &|_| rig.cuStreamQuery(NULL_STREAM)),
            ("synchronize", &|_| rig.cuStreamSynchronize(NULL_STREAM)),
            ("host function", &|_| rig.host(NULL_STREAM, || {})),
        ];
        in_each_mode(saw, |mode| {
            grouped(rig, &calls, || {
                let stream = rig.stream(BLOCKING);
                begin(rig, stream, mode);
                stream
            })
        });
    }

    /// While a blocking stream captures, the legacy stream cannot even be asked whether it
    /// captures; that does no harm.
    fn asking_the_legacy_stream_beside_a_blocking_capture(rig, saw) =
        "each mode: CUDA_ERROR_STREAM_CAPTURE_IMPLICIT (906), unharmed"
    {
        in_each_mode(saw, |mode| {
            let stream = rig.stream(BLOCKING);
            begin(rig, stream, mode);
            let code =
                status(rig, NULL_STREAM).map_or_else(said, |status| format!("status {status}"));
            format!("{code}, {}", fate(rig, stream))
        });
    }

    /// Beside a non-blocking capture the legacy stream can be used.
    fn the_legacy_stream_beside_a_non_blocking_capture(rig, saw) =
        "each mode: success, unharmed (record, wait, host function, capturing)"
    {
        let event = rig.event(NO_TIMING);
        calls_in_each_mode(
            rig,
            saw,
            &[
                ("record", &|_| rig.cuEventRecord(event, NULL_STREAM)),
                ("wait", &|_| rig.cuStreamWaitEvent(NULL_STREAM, event, 0)),
                ("host function", &|_| rig.host(NULL_STREAM, || {})),
                ("capturing", &|_| {
                    status(rig, NULL_STREAM).err().unwrap_or(CUresult::CUDA_SUCCESS)
                }),
            ],
        );
    }

    /// The legacy stream cannot join a capture.
    fn the_legacy_stream_cannot_join(rig, saw) = "each mode: CUDA_ERROR_STREAM_CAPTURE_IMPLICIT \
        (906), invalidated" {
        call_in_each_mode(rig, saw, |stream| {
            let event = rig.recorded(stream);
            rig.cuStreamWaitEvent(NULL_STREAM, event, 0)
        });
    }

    /// Destroying the capturing stream ends its capture.
    fn destroying_the_capturing_stream(rig, saw) = "each mode: success, others success" {
        in_each_mode(saw, |mode| {
            let (event, other) = unsafe_calls(rig);
            let stream = capturing(rig, mode);
            let code = said(rig.cuStreamDestroy_v2(stream));
            // Nothing forbids these any more.
            let others =
                [rig.cuEventQuery(event), rig.cuStreamQuery(other), rig.cuCtxSynchronize()];
            let failed = others.into_iter().find(|code| *code != CUresult::CUDA_SUCCESS);
            format!("{code}, others {}", said(failed.unwrap_or(CUresult::CUDA_SUCCESS)))
        });
    }

    /// An event that was recorded in a capture can be destroyed in it.
    fn destroying_a_captured_event(rig, saw) = "each mode: success, unharmed" {
        call_in_each_mode(rig, saw, |stream| rig.cuEventDestroy_v2(rig.recorded(stream)));
    }

    /// What is given to an invalidated capture is refused.
    [since(11, 3)]
    fn in_an_invalidated_capture(rig, saw) =
        "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED (901) from wait, external wait, record, external \
         record, host function, dependencies"
    {
        let (stream, event) = (capturing(rig, GLOBAL), rig.event(NO_TIMING));
        let _ = rig.cuStreamQuery(stream);
        saw.codes(&[
            ("wait", rig.cuStreamWaitEvent(stream, event, 0)),
            ("external wait", rig.cuStreamWaitEvent(stream, event, CU_EVENT_WAIT_EXTERNAL)),
            ("record", rig.cuEventRecord(event, stream)),
            (
                "external record",
                rig.cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_EXTERNAL),
            ),
            ("host function", rig.host(stream, || {})),
            ("dependencies", rig.cuStreamUpdateCaptureDependencies(stream, null_mut(), 0, 1)),
        ]);
        let _ = end(rig, stream);
    }

    /// Asking or waiting for the stream of an invalidated capture is answered as before it was
    /// invalidated.
    fn asking_the_stream_of_an_invalidated_capture(rig, saw) =
        "each mode: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900), invalidated (query, synchronize)"
    {
        calls_in_each_mode(
            rig,
            saw,
            &[
                ("query", &|stream| {
                    let _ = rig.cuStreamQuery(stream);
                    rig.cuStreamQuery(stream)
                }),
                ("synchronize", &|stream| {
                    let _ = rig.cuStreamQuery(stream);
                    rig.cuStreamSynchronize(stream)
                }),
            ],
        );
    }

    /// A stream cannot join an invalidated capture: the event is an invalid value, as after the
    /// capture's end.
    fn joining_an_invalidated_capture(rig, saw) =
        "each mode: CUDA_ERROR_INVALID_VALUE (1), status 0, invalidated"
    {
        in_each_mode(saw, |mode| {
            let (stream, other) = (capturing(rig, mode), rig.stream(NON_BLOCKING));
            let event = rig.recorded(stream);
            let _ = rig.cuStreamQuery(stream);
            let code = said(rig.cuStreamWaitEvent(other, event, 0));
            format!(
                "{code}, status {}, {}",
                status(rig, other).map_or_else(said, |status| status.to_string()),
                fate(rig, stream)
            )
        });
    }

    /// A thread's mode is exchanged for the one that was set; numbers that are no mode are taken,
    /// too.
    fn exchanging_the_mode(rig, saw) = "was 0; was 2; was 7; was 1" {
        elsewhere(|| {
            for new in [2, 7, 1, 0] {
                let mut mode = CUstreamCaptureMode(new);
                must(
                    "cuThreadExchangeStreamCaptureMode",
                    rig.cuThreadExchangeStreamCaptureMode(&mut mode),
                );
                saw.text(format_args!("was {}", mode.0));
            }
        });
    }

    /// Whole-context calls invalidate the captures in the context, relaxed ones too.
    [since(12, 5)]
    fn whole_context_calls(rig, saw) =
        "each mode: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900), invalidated (record, wait)"
    {
        let event = rig.event(NO_TIMING);
        calls_in_each_mode(
            rig,
            saw,
            &[
                ("record", &|_| rig.cuCtxRecordEvent(rig.context, event)),
                ("wait", &|_| rig.cuCtxWaitEvent(rig.context, event)),
            ],
        );
    }

    /// Two captures in one context are two: one goes on when the other ends.
    fn two_captures(rig, saw) = "each mode: unharmed and unharmed" {
        in_each_mode(saw, |mode| {
            let (one, two) = (capturing(rig, mode), capturing(rig, mode));
            format!("{} and {}", fate(rig, one), fate(rig, two))
        });
    }

    /// A forbidden call invalidates every capture that forbids it.
    fn a_forbidden_call_and_two_captures(rig, saw) =
        "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900); global invalidated; relaxed unharmed"
    {
        let (event, _) = unsafe_calls(rig);
        let (global, relaxed) = (capturing(rig, GLOBAL), capturing(rig, RELAXED));
        saw.text(said(rig.cuEventQuery(event)));
        saw.text(format_args!("global {}", fate(rig, global)));
        saw.text(format_args!("relaxed {}", fate(rig, relaxed)));
    }
}
