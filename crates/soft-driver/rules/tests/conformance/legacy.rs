//! The legacy default stream: it waits for the blocking streams of its context, and they wait for
//! it.

use cuda_events::sys::*;

use crate::capture::{RELAXED, begin, fate};
use crate::raw::{
    BLOCKING, LEGACY, NO_TIMING, NON_BLOCKING, NULL_STREAM, PER_THREAD, code_text, elsewhere,
};
use crate::rules;

rules! {
    /// An operation in the legacy stream waits for all blocking streams of the context.
    fn it_waits_for_blocking_streams(rig, saw) = "its event CUDA_ERROR_NOT_READY (600); then \
        success" {
        let stream = rig.stream(BLOCKING);
        let latch = rig.hold(stream);
        let event = rig.recorded(NULL_STREAM);
        saw.code("its event", rig.cuEventQuery(event));
        latch.release();
        saw.code("then", rig.cuEventSynchronize(event));
    }

    /// The legacy stream is not ready while a blocking stream is busy, even if the legacy stream
    /// itself has no work.
    fn it_is_busy_with_blocking_streams(rig, saw) =
        "NULL CUDA_ERROR_NOT_READY (600); legacy CUDA_ERROR_NOT_READY (600); then success"
    {
        let stream = rig.stream(BLOCKING);
        let latch = rig.hold(stream);
        saw.code("NULL", rig.cuStreamQuery(NULL_STREAM));
        saw.code("legacy", rig.cuStreamQuery(LEGACY));
        latch.release();
        saw.code("then", rig.cuStreamSynchronize(NULL_STREAM));
    }

    /// Later work of blocking streams waits for the legacy stream.
    fn blocking_streams_wait_for_it(rig, saw) = "a blocking stream's event CUDA_ERROR_NOT_READY \
        (600); then success" {
        let latch = rig.hold(NULL_STREAM);
        let event = rig.recorded(rig.stream(BLOCKING));
        saw.code("a blocking stream's event", rig.cuEventQuery(event));
        latch.release();
        saw.code("then", rig.cuEventSynchronize(event));
    }

    /// After an operation in the legacy stream, later work of one blocking stream waits for the
    /// other blocking streams. A query of a blocking stream covers only the work that was submitted
    /// to that stream.
    fn blocking_streams_wait_through_it(rig, saw) =
        "the other stream before success; after an operation in legacy success; its event \
         CUDA_ERROR_NOT_READY (600); then success"
    {
        let (held, other) = (rig.stream(BLOCKING), rig.stream(BLOCKING));
        let latch = rig.hold(held);
        saw.code("the other stream before", rig.cuStreamQuery(other));
        let _ = rig.recorded(NULL_STREAM);
        saw.code("after an operation in legacy", rig.cuStreamQuery(other));
        let event = rig.recorded(other);
        saw.code("its event", rig.cuEventQuery(event));
        latch.release();
        saw.code("then", rig.cuEventSynchronize(event));
    }

    /// Without an operation in the legacy stream, blocking streams do not wait for each other.
    fn blocking_streams_alone(rig, saw) = "success" {
        let (held, other) = (rig.stream(BLOCKING), rig.stream(BLOCKING));
        let latch = rig.hold(held);
        saw.text(crate::raw::code_text(rig.settled(rig.recorded(other))));
        latch.release();
        rig.synchronize(held);
    }

    /// The legacy stream does not wait for non-blocking streams.
    fn it_ignores_non_blocking_streams(rig, saw) = "query success; synchronize success; its event \
        success" {
        let stream = rig.stream(NON_BLOCKING);
        let latch = rig.hold(stream);
        saw.code("query", rig.cuStreamQuery(NULL_STREAM));
        saw.code("synchronize", rig.cuStreamSynchronize(NULL_STREAM));
        saw.code("its event", rig.settled(rig.recorded(NULL_STREAM)));
        latch.release();
        rig.synchronize(stream);
    }

    /// Non-blocking streams do not wait for the legacy stream.
    fn non_blocking_streams_ignore_it(rig, saw) = "success" {
        let latch = rig.hold(NULL_STREAM);
        saw.text(crate::raw::code_text(rig.settled(rig.recorded(rig.stream(NON_BLOCKING)))));
        latch.release();
        rig.synchronize(NULL_STREAM);
    }

    /// A wait in the legacy stream is an operation in it, even if the event is already done.
    fn a_wait_is_an_operation(rig, saw) = "another blocking stream's event CUDA_ERROR_NOT_READY \
        (600); then success" {
        let (held, other) = (rig.stream(BLOCKING), rig.stream(BLOCKING));
        let done = rig.recorded(rig.stream(NON_BLOCKING));
        must!(rig.cuEventSynchronize(done));
        let latch = rig.hold(held);
        must!(rig.cuStreamWaitEvent(NULL_STREAM, done, 0));
        let event = rig.recorded(other);
        saw.code("another blocking stream's event", rig.cuEventQuery(event));
        latch.release();
        saw.code("then", rig.cuEventSynchronize(event));
    }

    /// A wait in the legacy stream for an event that was never recorded is not an operation in it.
    fn a_wait_for_nothing_is_no_operation(rig, saw) = "another blocking stream's event success" {
        let (held, other, never) =
            (rig.stream(BLOCKING), rig.stream(BLOCKING), rig.event(NO_TIMING));
        let latch = rig.hold(held);
        must!(rig.cuStreamWaitEvent(NULL_STREAM, never, 0));
        saw.code("another blocking stream's event", rig.settled(rig.recorded(other)));
        latch.release();
        rig.synchronize(held);
    }

    /// A per-thread default stream is a blocking stream.
    fn a_per_thread_stream_is_blocking(rig, saw) =
        "legacy CUDA_ERROR_NOT_READY (600); its event CUDA_ERROR_NOT_READY (600); then success"
    {
        let latch = rig.hold(PER_THREAD);
        saw.code("legacy", rig.cuStreamQuery(NULL_STREAM));
        let event = rig.recorded(NULL_STREAM);
        saw.code("its event", rig.cuEventQuery(event));
        latch.release();
        saw.code("then", rig.cuEventSynchronize(event));
    }

    /// A per-thread default stream's later work waits for the legacy stream.
    fn a_per_thread_stream_waits_for_it(rig, saw) = "CUDA_ERROR_NOT_READY (600); then success" {
        let latch = rig.hold(NULL_STREAM);
        let event = rig.recorded(PER_THREAD);
        saw.text(crate::raw::code_text(rig.cuEventQuery(event)));
        latch.release();
        saw.code("then", rig.cuEventSynchronize(event));
    }

    /// The per-thread default streams of two threads do not wait for each other.
    fn per_thread_streams_alone(rig, saw) = "here CUDA_ERROR_NOT_READY (600); there success, \
        success" {
        let latch = rig.hold(PER_THREAD);
        saw.code("here", rig.cuStreamQuery(PER_THREAD));
        let there = elsewhere(|| {
            must!(rig.cuCtxSetCurrent(rig.context));
            [rig.cuStreamQuery(PER_THREAD), rig.settled(rig.recorded(PER_THREAD))]
        });
        saw.text(format_args!("there {}", there.map(crate::raw::code_text).join(", ")));
        latch.release();
        rig.synchronize(PER_THREAD);
    }

    /// A capture of a blocking stream leaves the legacy streams of other contexts alone.
    fn beside_a_capture_of_another_context(rig, saw) = "success, unharmed" {
        let (stream, other) = (rig.stream(BLOCKING), rig.new_context());
        begin(rig, stream, RELAXED);
        let code = rig.within(other, || {
            rig.cuStreamIsCapturing(NULL_STREAM, &mut CUstreamCaptureStatus(0))
        });
        saw.text(format_args!("{}, {}", code_text(code), fate(rig, stream)));
    }

    /// Each context has its own legacy stream. The legacy streams of two contexts do not wait for
    /// each other.
    fn each_context_has_its_own(rig, saw) = "here CUDA_ERROR_NOT_READY (600); in another context \
        success, success" {
        let (stream, other) = (rig.stream(BLOCKING), rig.new_context());
        let latch = rig.hold(stream);
        saw.code("here", rig.cuStreamQuery(NULL_STREAM));
        let there = rig.within(other, || {
            [rig.cuStreamQuery(NULL_STREAM), rig.cuStreamSynchronize(NULL_STREAM)]
        });
        saw.text(format_args!("in another context {}", there.map(crate::raw::code_text).join(", ")));
        latch.release();
        rig.synchronize(stream);
    }

    /// NULL and the legacy handle (`CU_STREAM_LEGACY`) name the same stream.
    fn by_either_handle(rig, saw) =
        "legacy CUDA_ERROR_NOT_READY (600); NULL CUDA_ERROR_NOT_READY (600); then success, success"
    {
        let stream = rig.stream(BLOCKING);
        let latch = rig.hold(stream);
        let events: [CUevent; 2] = [rig.recorded(LEGACY), rig.recorded(NULL_STREAM)];
        saw.code("legacy", rig.cuEventQuery(events[0]));
        saw.code("NULL", rig.cuEventQuery(events[1]));
        latch.release();
        saw.text(format_args!(
            "then {}",
            events.map(|event| crate::raw::code_text(rig.cuEventSynchronize(event))).join(", ")
        ));
    }
}
