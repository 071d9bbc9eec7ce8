//! Stream capture: the calls that are allowed during a capture, in the three modes, and the effect
//! of the other calls on the capture.

use std::ptr::null_mut;

use cuda_events::sys::*;

use crate::raw::{
    BLOCKING, INTERPROCESS, LEGACY, NO_TIMING, NON_BLOCKING, NULL_STREAM, PER_THREAD, Raw, Rig,
    TIMING, code_text, elsewhere, must,
};
use crate::rules;
use crate::rules::Saw;

pub const GLOBAL: CUstreamCaptureMode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
pub const THREAD_LOCAL: CUstreamCaptureMode =
    CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
pub const RELAXED: CUstreamCaptureMode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;

const INVALIDATED: CUresult = CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
const ILLEGAL_STATE: CUresult = CUresult::CUDA_ERROR_ILLEGAL_STATE;

/// A stream that captures in this mode.
pub fn capturing(raw: &Raw, mode: CUstreamCaptureMode) -> CUstream {
    let stream = raw.stream(NON_BLOCKING);
    begin(raw, stream, mode);
    stream
}

#[track_caller]
pub fn begin(raw: &Raw, stream: CUstream, mode: CUstreamCaptureMode) {
    must!(raw.cuStreamBeginCapture_v2(stream, mode));
}

/// The number of a stream's capture status: 0 none, 1 active, 2 invalidated.
pub fn status(raw: &Raw, stream: CUstream) -> Result<u32, CUresult> {
    let mut status = CUstreamCaptureStatus(77);
    match raw.cuStreamIsCapturing(stream, &mut status) {
        CUresult::CUDA_SUCCESS => Ok(status.0),
        code => Err(code),
    }
}

/// Ends a capture, and returns the code and the graph. The place for the graph first has another
/// handle, so that a call that writes nothing shows.
pub fn end(raw: &Raw, stream: CUstream) -> (CUresult, CUgraph) {
    let mut graph = std::ptr::without_provenance_mut(77);
    let code = raw.cuStreamEndCapture(stream, &mut graph);
    (code, graph)
}

/// Ends a capture, and returns its state in a word.
pub fn fate(raw: &Raw, stream: CUstream) -> String {
    let status = status(raw, stream);
    let (code, graph) = end(raw, stream);
    let null = graph.is_null();
    if code == CUresult::CUDA_SUCCESS && !null {
        must!(raw.cuGraphDestroy(graph));
    }
    match (status, code, null) {
        (Ok(1), CUresult::CUDA_SUCCESS, false) => "unharmed".to_owned(),
        (Ok(2), INVALIDATED, true) => "invalidated".to_owned(),
        (Ok(0), ILLEGAL_STATE, true) => "over".to_owned(),
        (status, code, null) => {
            format!(
                "status {status:?}, end {}{}",
                code_text(code),
                if null { " and NULL" } else { "" }
            )
        }
    }
}

/// Does the same in the three modes.
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

/// In each mode, begins a capture, makes a call, and reports its code and the state of the capture.
fn call_in_each_mode(rig: &Rig, saw: &Saw, call: impl Fn(CUstream) -> CUresult) {
    in_each_mode(saw, |mode| {
        let stream = capturing(rig, mode);
        let code = code_text(call(stream));
        format!("{code}, {}", fate(rig, stream))
    });
}

/// Makes several calls, each in its own capture.
pub fn calls_in_each_mode(rig: &Rig, saw: &Saw, calls: &[(&str, &dyn Fn(CUstream) -> CUresult)]) {
    in_each_mode(saw, |mode| grouped(rig, calls, || capturing(rig, mode)));
}

/// Makes each call in its own capture. Returns the codes and the states of the captures; calls with
/// the same result are in one group.
fn grouped(
    rig: &Rig,
    calls: &[(&str, &dyn Fn(CUstream) -> CUresult)],
    capturing: impl Fn() -> CUstream,
) -> String {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for (name, call) in calls {
        let stream = capturing();
        let code = code_text(call(stream));
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

/// Sets this thread's capture mode during the work.
pub fn with_mode<T>(raw: &Raw, mode: CUstreamCaptureMode, work: impl FnOnce() -> T) -> T {
    let mut exchanged = mode;
    must!(raw.cuThreadExchangeStreamCaptureMode(&mut exchanged));
    let result = work();
    must!(raw.cuThreadExchangeStreamCaptureMode(&mut exchanged));
    result
}

/// An uncaptured event and another stream. Some modes forbid queries and synchronizations of them.
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

/// Allocates device memory, and frees memory that was allocated before the capture.
fn memory_calls_in_each_mode(
    rig: &Rig,
    saw: &Saw,
    around: impl Fn(&dyn Fn() -> CUresult) -> CUresult,
) {
    let allocate = || {
        let mut address = 0;
        (rig.cuMemAlloc_v2(&mut address, 4096), address)
    };
    let there = std::cell::RefCell::new([(); 3].map(|()| allocate().1).to_vec());
    calls_in_each_mode(
        rig,
        saw,
        &[
            ("allocate", &|_| around(&|| allocate().0)),
            ("free", &|_| {
                let address = there.borrow_mut().pop().expect("one a mode");
                around(&|| rig.cuMemFree_v2(address))
            }),
        ],
    );
}

rules! {
    /// A capture begins and ends. Its end returns a graph, and the stream no longer captures.
    fn begin_and_end(rig, saw) = "each mode: status 0, status 1, success with a graph, status 0" {
        in_each_mode(saw, |mode| {
            let stream = rig.stream(NON_BLOCKING);
            let before = status(rig, stream).expect("a status");
            begin(rig, stream, mode);
            let during = status(rig, stream).expect("a status");
            let (code, graph) = end(rig, stream);
            let after = status(rig, stream).expect("a status");
            must!(rig.cuGraphDestroy(graph));
            format!("status {before}, status {during}, {} with a graph, status {after}", code_text(code))
        });
    }

    /// A capture cannot begin in the legacy stream, by either of its handles (NULL and
    /// `CU_STREAM_LEGACY`).
    fn beginning_in_the_legacy_stream(rig, saw) =
        "each mode: NULL CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900), legacy \
         CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900)"
    {
        in_each_mode(saw, |mode| {
            let codes =
                [NULL_STREAM, LEGACY].map(|stream| code_text(rig.cuStreamBeginCapture_v2(stream, mode)));
            format!("NULL {}, legacy {}", codes[0], codes[1])
        });
    }

    /// A capture can begin in a per-thread default stream.
    fn beginning_in_a_per_thread_stream(rig, saw) = "each mode: success, unharmed" {
        in_each_mode(saw, |mode| {
            let code = code_text(rig.cuStreamBeginCapture_v2(PER_THREAD, mode));
            format!("{code}, {}", fate(rig, PER_THREAD))
        });
    }

    /// Beginning a capture in a stream that already captures returns `CUDA_ERROR_ILLEGAL_STATE`,
    /// and does not harm the capture.
    fn beginning_twice(rig, saw) = "each mode: CUDA_ERROR_ILLEGAL_STATE (401), unharmed" {
        call_in_each_mode(rig, saw, |stream| rig.cuStreamBeginCapture_v2(stream, GLOBAL));
    }

    /// There are three capture modes. For any other number the call returns
    /// `CUDA_ERROR_INVALID_VALUE`, and no capture begins.
    fn a_mode_that_there_is_not(rig, saw) = "CUDA_ERROR_INVALID_VALUE (1) from 3, -1; status 0" {
        let stream = rig.stream(NON_BLOCKING);
        saw.codes(&[
            ("3", rig.cuStreamBeginCapture_v2(stream, CUstreamCaptureMode(3))),
            ("-1", rig.cuStreamBeginCapture_v2(stream, CUstreamCaptureMode(u32::MAX))),
        ]);
        saw.text(format_args!("status {}", status(rig, stream).expect("a status")));
    }

    /// A query or a synchronization of the capturing stream itself invalidates the capture.
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

    /// `cuCtxSynchronize` invalidates the captures in the context.
    fn waiting_for_the_context(rig, saw) = "each mode: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED \
        (900), invalidated" {
        call_in_each_mode(rig, saw, |_| rig.cuCtxSynchronize());
    }

    /// `cuCtxSynchronize` in another thread also invalidates the captures in the context.
    fn waiting_for_the_context_in_another_thread(rig, saw) =
        "each mode: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900), invalidated"
    {
        call_in_each_mode(rig, saw, |_| {
            elsewhere(|| {
                must!(rig.cuCtxSetCurrent(rig.context));
                rig.cuCtxSynchronize()
            })
        });
    }

    /// The capturing thread may query and synchronize uncaptured events and other streams only if
    /// the mode of the capture is relaxed.
    fn unsafe_calls_in_the_capturing_thread(rig, saw) =
        "global: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900), invalidated (event query, event \
         synchronize, stream query, stream synchronize); thread-local: \
         CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900), invalidated (event query, event synchronize, \
         stream query, stream synchronize); relaxed: success, unharmed (event query, event \
         synchronize, stream query, stream synchronize)"
    {
        unsafe_calls_in_each_mode(rig, saw, |call| call());
    }

    /// During a global capture, other threads may not query or synchronize uncaptured events and
    /// other streams. During a thread-local or a relaxed capture, they may.
    fn unsafe_calls_in_another_thread(rig, saw) =
        "global: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900), invalidated (event query, event \
         synchronize, stream query, stream synchronize); thread-local: success, unharmed (event \
         query, event synchronize, stream query, stream synchronize); relaxed: success, unharmed \
         (event query, event synchronize, stream query, stream synchronize)"
    {
        unsafe_calls_in_each_mode(rig, saw, |call| elsewhere(call));
    }

    /// A thread that set its own mode to relaxed may query and synchronize uncaptured events and
    /// other streams during any capture of another thread.
    fn unsafe_calls_in_another_relaxed_thread(rig, saw) =
        "each mode: success, unharmed (event query, event synchronize, stream query, stream \
            synchronize)"
    {
        unsafe_calls_in_each_mode(rig, saw, |call| elsewhere(|| with_mode(rig, RELAXED, call)));
    }

    /// A thread that set its own mode to thread-local may query and synchronize uncaptured events
    /// and other streams during any capture of another thread.
    fn unsafe_calls_in_another_thread_local_thread(rig, saw) =
        "each mode: success, unharmed (event query, event synchronize, stream query, stream \
            synchronize)"
    {
        unsafe_calls_in_each_mode(rig, saw, |call| {
            elsewhere(|| with_mode(rig, THREAD_LOCAL, call))
        });
    }

    /// The capturing thread may query and synchronize uncaptured events and other streams while its
    /// own mode is relaxed.
    fn unsafe_calls_in_the_capturing_thread_made_relaxed(rig, saw) =
        "each mode: success, unharmed (event query, event synchronize, stream query, stream \
            synchronize)"
    {
        unsafe_calls_in_each_mode(rig, saw, |call| with_mode(rig, RELAXED, call));
    }

    /// The capturing thread may allocate and free device memory only if the mode of the capture is
    /// relaxed.
    fn memory_calls_in_the_capturing_thread(rig, saw) =
        "global: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900), invalidated (allocate, free); \
         thread-local: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900), invalidated (allocate, free); \
         relaxed: success, unharmed (allocate, free)"
    {
        memory_calls_in_each_mode(rig, saw, |call| call());
    }

    /// A thread may allocate and free device memory during any capture while its own mode is
    /// relaxed.
    fn memory_calls_in_a_thread_made_relaxed(rig, saw) =
        "each mode: success, unharmed (allocate, free)"
    {
        memory_calls_in_each_mode(rig, saw, |call| with_mode(rig, RELAXED, call));
    }

    /// If the capturing thread sets its own mode to thread-local, it still may not query or
    /// synchronize uncaptured events and other streams, unless the mode of the capture is relaxed.
    fn unsafe_calls_in_the_thread_made_thread_local(rig, saw) =
        "global: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900), invalidated (event query, event \
         synchronize, stream query, stream synchronize); thread-local: \
         CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900), invalidated (event query, event synchronize, \
         stream query, stream synchronize); relaxed: success, unharmed (event query, event \
         synchronize, stream query, stream synchronize)"
    {
        unsafe_calls_in_each_mode(rig, saw, |call| with_mode(rig, THREAD_LOCAL, call));
    }

    /// A capture that forbids queries and synchronizations of events and streams in its own context
    /// forbids them in the other contexts of the device, too. `cuCtxSynchronize` of another context
    /// is allowed.
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

    /// A global capture also forbids other threads to query events and streams of other contexts.
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

    /// During a capture, these calls are allowed: creating and destroying events and streams,
    /// exporting an event, and measuring the time between uncaptured events.
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

    /// A query or a synchronization of an event that was recorded in a capture returns
    /// `CUDA_ERROR_CAPTURED_EVENT`, and invalidates the capture.
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

    /// An event that was recorded in a capture has no elapsed time. The call returns
    /// `CUDA_ERROR_CAPTURED_EVENT`, and does not harm the capture.
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

    /// After the end of a capture, its events cannot be used until they are recorded again.
    /// Queries, synchronizations, waits and calls for the elapsed time return
    /// `CUDA_ERROR_INVALID_VALUE`.
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
            must!(rig.cuGraphDestroy(graph));
            one.all()
        });
    }

    /// After a capture failed, its events cannot be used. Queries, waits and calls for the elapsed
    /// time return `CUDA_ERROR_INVALID_VALUE`.
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

    /// A record outside a capture makes a captured event an ordinary event again.
    fn recording_a_captured_event_outside(rig, saw) =
        "record success; synchronize success; query success; elapsed success"
    {
        let (stream, event) = (capturing(rig, GLOBAL), rig.event(TIMING));
        rig.record(event, stream);
        must!(rig.cuGraphDestroy(end(rig, stream).1));
        saw.code("record", rig.cuEventRecord(event, stream));
        saw.code("synchronize", rig.cuEventSynchronize(event));
        saw.code("query", rig.cuEventQuery(event));
        saw.code("elapsed", rig.elapsed_code(event, event));
    }

    /// A capturing stream cannot wait for an event that was recorded outside the capture. The call
    /// invalidates the capture.
    fn waiting_for_an_outside_event(rig, saw) = "each mode: CUDA_ERROR_STREAM_CAPTURE_ISOLATION \
        (905), invalidated" {
        let other = rig.stream(NON_BLOCKING);
        let event = rig.recorded(other);
        rig.synchronize(other);
        call_in_each_mode(rig, saw, |stream| rig.cuStreamWaitEvent(stream, event, 0));
    }

    /// A capturing stream may wait for an event that was never recorded. The wait does nothing.
    fn waiting_for_a_never_recorded_event(rig, saw) = "each mode: success, unharmed" {
        let never = rig.event(NO_TIMING);
        call_in_each_mode(rig, saw, |stream| rig.cuStreamWaitEvent(stream, never, 0));
    }

    /// An external wait (`CU_EVENT_WAIT_EXTERNAL`) can be captured, both for an event that was
    /// recorded outside the capture and for an event that was never recorded.
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

    /// An external record (`CU_EVENT_RECORD_EXTERNAL`) can be captured.
    [since(11, 1)]
    fn an_external_record(rig, saw) = "each mode: success, unharmed" {
        let event = rig.event(NO_TIMING);
        call_in_each_mode(rig, saw, |stream| {
            rig.cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_EXTERNAL)
        });
    }

    /// An external record in a capture does not make the event a captured event: the event keeps
    /// its state from before.
    [since(11, 1)]
    fn an_externally_recorded_event(rig, saw) = "query success; elapsed CUDA_ERROR_INVALID_HANDLE \
        (400); unharmed" {
        let (stream, event) = (capturing(rig, RELAXED), rig.event(TIMING));
        must!(rig.cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_EXTERNAL));
        saw.code("query", rig.cuEventQuery(event));
        saw.code("elapsed", rig.elapsed_code(event, event));
        saw.text(fate(rig, stream));
    }

    /// An external record accepts an interprocess event and an event of another context.
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

    /// A plain record in a capture returns `CUDA_ERROR_INVALID_HANDLE` for an event of another
    /// context, and does not harm the capture.
    fn recording_an_event_of_another_context(rig, saw) = "each mode: CUDA_ERROR_INVALID_HANDLE \
        (400), unharmed" {
        let other = rig.new_context();
        let others = rig.within(other, || rig.event(NO_TIMING));
        call_in_each_mode(rig, saw, |stream| rig.cuEventRecord(others, stream));
    }

    /// A plain record of an interprocess event cannot be captured, but the call does not harm the
    /// capture.
    fn recording_an_interprocess_event(rig, saw) =
        "each mode: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900), unharmed" {
        let shared = rig.event(INTERPROCESS);
        call_in_each_mode(rig, saw, |stream| rig.cuEventRecord(shared, stream));
    }

    /// A stream that waits for a captured event joins the capture. After the end of the capture, it
    /// no longer captures.
    fn joining(rig, saw) = "each mode: wait success, status 1, after the end 0" {
        in_each_mode(saw, |mode| {
            let (stream, joined) = (capturing(rig, mode), rig.stream(NON_BLOCKING));
            let event = rig.recorded(stream);
            let code = code_text(rig.cuStreamWaitEvent(joined, event, 0));
            let during = status(rig, joined).expect("a status");
            must!(rig.cuGraphDestroy(end(rig, stream).1));
            format!(
                "wait {code}, status {during}, after the end {}",
                status(rig, joined).expect("a status")
            )
        });
    }

    /// If a stream of one capture waits for an event of another capture, both captures are
    /// invalidated.
    fn merging(rig, saw) = "each mode: CUDA_ERROR_STREAM_CAPTURE_MERGE (902), invalidated and \
        invalidated" {
        in_each_mode(saw, |mode| {
            let (one, two) = (capturing(rig, mode), capturing(rig, mode));
            let event = rig.recorded(one);
            let code = code_text(rig.cuStreamWaitEvent(two, event, 0));
            format!("{code}, {} and {}", fate(rig, one), fate(rig, two))
        });
    }

    /// If a capturing stream waits for an event of a capture that has ended, the stream's own
    /// capture is invalidated.
    fn waiting_for_an_event_of_an_ended_capture(rig, saw) = "each mode: CUDA_ERROR_INVALID_VALUE \
        (1), invalidated" {
        let first = capturing(rig, GLOBAL);
        let event = rig.recorded(first);
        must!(rig.cuGraphDestroy(end(rig, first).1));
        call_in_each_mode(rig, saw, |stream| rig.cuStreamWaitEvent(stream, event, 0));
    }

    /// A capture must end in the stream in which it began. Ending it in a joined stream invalidates
    /// it.
    fn ending_in_a_joined_stream(rig, saw) =
        "each mode: CUDA_ERROR_STREAM_CAPTURE_UNMATCHED (903) and NULL, invalidated"
    {
        in_each_mode(saw, |mode| {
            let (stream, joined) = (capturing(rig, mode), rig.stream(NON_BLOCKING));
            let event = rig.recorded(stream);
            must!(rig.cuStreamWaitEvent(joined, event, 0));
            let (code, graph) = end(rig, joined);
            let graph = if graph.is_null() { "NULL" } else { "a graph" };
            format!("{} and {graph}, {}", code_text(code), fate(rig, stream))
        });
    }

    /// Work in a forked stream must be joined before the end of the capture. Otherwise the end
    /// returns an error and no graph, and the capture is over.
    fn unjoined_work(rig, saw) = "each mode: CUDA_ERROR_STREAM_CAPTURE_UNJOINED (904) and NULL, \
        origin 0, forked 0" {
        in_each_mode(saw, |mode| {
            let (stream, forked) = (capturing(rig, mode), rig.stream(NON_BLOCKING));
            let event = rig.recorded(stream);
            must!(rig.cuStreamWaitEvent(forked, event, 0));
            must("cuLaunchHostFunc", rig.host(forked, || {}));
            let (code, graph) = end(rig, stream);
            let graph = if graph.is_null() { "NULL" } else { "a graph" };
            let after = [stream, forked].map(|stream| status(rig, stream).expect("a status"));
            format!("{} and {graph}, origin {}, forked {}", code_text(code), after[0], after[1])
        });
    }

    /// A forked stream that has no work need not be joined.
    fn a_forked_stream_without_work(rig, saw) = "each mode: unharmed" {
        in_each_mode(saw, |mode| {
            let (stream, forked) = (capturing(rig, mode), rig.stream(NON_BLOCKING));
            let event = rig.recorded(stream);
            must!(rig.cuStreamWaitEvent(forked, event, 0));
            fate(rig, stream)
        });
    }

    /// If the work of a forked stream was joined, the capture ends with a graph.
    fn joined_work(rig, saw) = "each mode: unharmed" {
        in_each_mode(saw, |mode| {
            let (stream, forked) = (capturing(rig, mode), rig.stream(NON_BLOCKING));
            let fork = rig.recorded(stream);
            must!(rig.cuStreamWaitEvent(forked, fork, 0));
            must("cuLaunchHostFunc", rig.host(forked, || {}));
            let join = rig.recorded(forked);
            must!(rig.cuStreamWaitEvent(stream, join, 0));
            fate(rig, stream)
        });
    }

    /// If a forked stream is destroyed and its work is not joined, the end of the capture returns
    /// an error and no graph.
    fn a_destroyed_stream_with_unjoined_work(rig, saw) =
        "each mode: destroy success, CUDA_ERROR_STREAM_CAPTURE_UNJOINED (904) and NULL, origin 0"
    {
        in_each_mode(saw, |mode| {
            let (stream, forked) = (capturing(rig, mode), rig.stream(NON_BLOCKING));
            let event = rig.recorded(stream);
            must!(rig.cuStreamWaitEvent(forked, event, 0));
            must("cuLaunchHostFunc", rig.host(forked, || {}));
            let destroyed = code_text(rig.cuStreamDestroy_v2(forked));
            let (code, graph) = end(rig, stream);
            let graph = if graph.is_null() { "NULL" } else { "a graph" };
            let after = status(rig, stream).expect("a status");
            format!("destroy {destroyed}, {} and {graph}, origin {after}", code_text(code))
        });
    }

    /// A forked stream that has no work can be destroyed before the end of the capture.
    fn a_destroyed_stream_without_work(rig, saw) = "each mode: success, unharmed" {
        call_in_each_mode(rig, saw, |stream| {
            let (forked, event) = (rig.stream(NON_BLOCKING), rig.recorded(stream));
            must!(rig.cuStreamWaitEvent(forked, event, 0));
            rig.cuStreamDestroy_v2(forked)
        });
    }

    /// A forked stream can be destroyed between the record after its work and the wait that joins
    /// it.
    fn a_stream_destroyed_before_it_is_joined(rig, saw) = "each mode: success, unharmed" {
        call_in_each_mode(rig, saw, |stream| {
            let (forked, fork) = (rig.stream(NON_BLOCKING), rig.recorded(stream));
            must!(rig.cuStreamWaitEvent(forked, fork, 0));
            must("cuLaunchHostFunc", rig.host(forked, || {}));
            let join = rig.recorded(forked);
            let destroyed = rig.cuStreamDestroy_v2(forked);
            must!(rig.cuStreamWaitEvent(stream, join, 0));
            destroyed
        });
    }

    /// Another thread can end only a relaxed capture. For a global or a thread-local capture, the
    /// call returns an error and no graph, and the capture is over.
    fn ending_in_another_thread(rig, saw) =
        "global: CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD (908) and NULL, over; thread-local: \
         CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD (908) and NULL, over; relaxed: success and a \
         graph, over"
    {
        in_each_mode(saw, |mode| {
            let stream = capturing(rig, mode);
            let (code, graph) = elsewhere(|| end(rig, stream));
            if code == CUresult::CUDA_SUCCESS {
                must!(rig.cuGraphDestroy(graph));
            }
            let graph = if graph.is_null() { "NULL" } else { "a graph" };
            format!("{} and {graph}, {}", code_text(code), fate(rig, stream))
        });
    }

    /// Ending a capture in a stream that does not capture returns `CUDA_ERROR_ILLEGAL_STATE`, and
    /// writes NULL as the graph.
    fn ending_without_a_capture(rig, saw) =
        "CUDA_ERROR_ILLEGAL_STATE (401), NULL; NULL stream CUDA_ERROR_ILLEGAL_STATE (401), NULL"
    {
        let answer = |stream| {
            let (code, graph) = end(rig, stream);
            format!("{}, {}", code_text(code), if graph.is_null() { "NULL" } else { "something else" })
        };
        saw.text(answer(rig.stream(NON_BLOCKING)));
        saw.text(format_args!("NULL stream {}", answer(NULL_STREAM)));
    }

    /// At the end of a capture, the place for the graph may be NULL.
    fn no_place_for_the_graph(rig, saw) = "success; over" {
        let stream = capturing(rig, GLOBAL);
        saw.text(code_text(rig.cuStreamEndCapture(stream, null_mut())));
        saw.text(fate(rig, stream));
    }

    /// A host function can be captured. The capture does not call it.
    fn a_host_function(rig, saw) = "each mode: success, unharmed, not called" {
        in_each_mode(saw, |mode| {
            let (stream, (call, called)) = (capturing(rig, mode), std::sync::mpsc::channel::<()>());
            let code = code_text(rig.host(stream, move || {
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

    /// While a blocking stream captures, the legacy stream cannot be used, because it would have to
    /// wait for the capture. A call that uses it invalidates the capture.
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

    /// While a blocking stream captures, `cuStreamIsCapturing` of the legacy stream returns an
    /// error, but does not harm the capture.
    fn asking_the_legacy_stream_beside_a_blocking_capture(rig, saw) =
        "each mode: CUDA_ERROR_STREAM_CAPTURE_IMPLICIT (906), unharmed"
    {
        in_each_mode(saw, |mode| {
            let stream = rig.stream(BLOCKING);
            begin(rig, stream, mode);
            let code =
                status(rig, NULL_STREAM).map_or_else(code_text, |status| format!("status {status}"));
            format!("{code}, {}", fate(rig, stream))
        });
    }

    /// While a non-blocking stream captures, the legacy stream can be used.
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

    /// The legacy stream cannot join a capture. Its wait for a captured event invalidates the
    /// capture.
    fn the_legacy_stream_cannot_join(rig, saw) = "each mode: CUDA_ERROR_STREAM_CAPTURE_IMPLICIT \
        (906), invalidated" {
        call_in_each_mode(rig, saw, |stream| {
            let event = rig.recorded(stream);
            rig.cuStreamWaitEvent(NULL_STREAM, event, 0)
        });
    }

    /// Destroying the capturing stream ends its capture. Calls that the capture forbade are then
    /// allowed again.
    fn destroying_the_capturing_stream(rig, saw) = "each mode: success, others success" {
        in_each_mode(saw, |mode| {
            let (event, other) = unsafe_calls(rig);
            let stream = capturing(rig, mode);
            let code = code_text(rig.cuStreamDestroy_v2(stream));
            // No capture forbids these any more.
            let others =
                [rig.cuEventQuery(event), rig.cuStreamQuery(other), rig.cuCtxSynchronize()];
            let failed = others.into_iter().find(|code| *code != CUresult::CUDA_SUCCESS);
            format!("{code}, others {}", code_text(failed.unwrap_or(CUresult::CUDA_SUCCESS)))
        });
    }

    /// An event that was recorded in a capture can be destroyed during the capture.
    fn destroying_a_captured_event(rig, saw) = "each mode: success, unharmed" {
        call_in_each_mode(rig, saw, |stream| rig.cuEventDestroy_v2(rig.recorded(stream)));
    }

    /// After a capture was invalidated, calls that submit work to its stream or change its
    /// dependencies return `CUDA_ERROR_STREAM_CAPTURE_INVALIDATED`.
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

    /// A query or a synchronization of the stream of an invalidated capture returns the same error
    /// as before it was invalidated.
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

    /// A stream cannot join an invalidated capture. The wait for its event returns
    /// `CUDA_ERROR_INVALID_VALUE`, as after the end of the capture.
    fn joining_an_invalidated_capture(rig, saw) =
        "each mode: CUDA_ERROR_INVALID_VALUE (1), status 0, invalidated"
    {
        in_each_mode(saw, |mode| {
            let (stream, other) = (capturing(rig, mode), rig.stream(NON_BLOCKING));
            let event = rig.recorded(stream);
            let _ = rig.cuStreamQuery(stream);
            let code = code_text(rig.cuStreamWaitEvent(other, event, 0));
            format!(
                "{code}, status {}, {}",
                status(rig, other).map_or_else(code_text, |status| status.to_string()),
                fate(rig, stream)
            )
        });
    }

    /// `cuThreadExchangeStreamCaptureMode` sets a thread's mode and returns the previous mode. It
    /// also accepts numbers that are not modes.
    fn exchanging_the_mode(rig, saw) = "was 0; was 2; was 7; was 1" {
        elsewhere(|| {
            for new in [2, 7, 1, 0] {
                let mut mode = CUstreamCaptureMode(new);
                must!(rig.cuThreadExchangeStreamCaptureMode(&mut mode));
                saw.text(format_args!("was {}", mode.0));
            }
        });
    }

    /// The whole-context calls (`cuCtxRecordEvent` and `cuCtxWaitEvent`) invalidate the captures in
    /// the context, including relaxed captures.
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

    /// Two captures in one context are independent. When one ends, the other continues.
    fn two_captures(rig, saw) = "each mode: unharmed and unharmed" {
        in_each_mode(saw, |mode| {
            let (one, two) = (capturing(rig, mode), capturing(rig, mode));
            format!("{} and {}", fate(rig, one), fate(rig, two))
        });
    }

    /// A forbidden call invalidates every capture that forbids it, and leaves the others unharmed.
    fn a_forbidden_call_and_two_captures(rig, saw) =
        "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900); global invalidated; relaxed unharmed"
    {
        let (event, _) = unsafe_calls(rig);
        let (global, relaxed) = (capturing(rig, GLOBAL), capturing(rig, RELAXED));
        saw.text(code_text(rig.cuEventQuery(event)));
        saw.text(format_args!("global {}", fate(rig, global)));
        saw.text(format_args!("relaxed {}", fate(rig, relaxed)));
    }
}
