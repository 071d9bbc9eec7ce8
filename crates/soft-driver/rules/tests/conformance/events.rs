//! Events: what a record means, and what is refused.

use std::ptr::null_mut;

use cuda_events::sys::*;

use crate::raw::{BLOCKING, INTERPROCESS, NO_TIMING, NON_BLOCKING, NULL_STREAM, TIMING, code_text};
use crate::rules;

rules! {
    /// The flags of an event are blocking wait, timing off, and interprocess, which needs timing
    /// off. All such combinations work; all other flags return an error.
    fn flags(rig, saw) =
        "success from 0, 1, 2, 3, 6, 7; CUDA_ERROR_INVALID_VALUE (1) from 4, 5, 8, 16, 0x80000000, \
            all bits"
    {
        let create = |flags| {
            let mut event = null_mut();
            rig.cuEventCreate(&mut event, flags)
        };
        saw.codes(&[
            ("0", create(0)),
            ("1", create(1)),
            ("2", create(2)),
            ("3", create(3)),
            ("6", create(6)),
            ("7", create(7)),
            ("4", create(4)),
            ("5", create(5)),
            ("8", create(8)),
            ("16", create(16)),
            ("0x80000000", create(0x8000_0000)),
            ("all bits", create(u32::MAX)),
        ]);
    }

    /// A new event needs a place for its handle.
    fn no_place_for_the_handle(rig, saw) = "CUDA_ERROR_INVALID_VALUE (1)" {
        saw.text(code_text(rig.cuEventCreate(null_mut(), 0)));
    }

    /// An event that was never recorded stands for no work: it is done, and waiting for it is
    /// nothing.
    fn never_recorded(rig, saw) = "success from query, synchronize, wait; the stream that waited \
        success" {
        let (event, stream) = (rig.event(NO_TIMING), rig.stream(NON_BLOCKING));
        saw.codes(&[
            ("query", rig.cuEventQuery(event)),
            ("synchronize", rig.cuEventSynchronize(event)),
            ("wait", rig.cuStreamWaitEvent(stream, event, 0)),
        ]);
        saw.code("the stream that waited", rig.cuStreamQuery(stream));
    }

    /// An event is not done while the work before its record is not, and then it is.
    fn pending_and_done(rig, saw) = "query CUDA_ERROR_NOT_READY (600); synchronize success; query \
        success" {
        let stream = rig.stream(NON_BLOCKING);
        let latch = rig.hold(stream);
        let event = rig.recorded(stream);
        saw.code("query", rig.cuEventQuery(event));
        latch.release();
        saw.code("synchronize", rig.cuEventSynchronize(event));
        saw.code("query", rig.cuEventQuery(event));
    }

    /// Synchronizing with an event that has the blocking flag waits for it.
    fn a_blocking_event(rig, saw) = "query CUDA_ERROR_NOT_READY (600); synchronize success; query \
        success" {
        let (stream, event) = (rig.stream(NON_BLOCKING), rig.event(CU_EVENT_BLOCKING_SYNC));
        let latch = rig.hold(stream);
        rig.record(event, stream);
        saw.code("query", rig.cuEventQuery(event));
        latch.release();
        saw.code("synchronize", rig.cuEventSynchronize(event));
        saw.code("query", rig.cuEventQuery(event));
    }

    /// A record covers the work that is in the stream at the call. Later work does not delay the
    /// event.
    fn later_work_does_not_delay(rig, saw) = "the event success; the stream CUDA_ERROR_NOT_READY \
        (600)" {
        let stream = rig.stream(NON_BLOCKING);
        let first = rig.hold(stream);
        let event = rig.recorded(stream);
        let second = rig.hold(stream);
        first.release();
        saw.code("the event", rig.settled(event));
        saw.code("the stream", rig.cuStreamQuery(stream));
        second.release();
        rig.synchronize(stream);
    }

    /// A later record replaces the earlier one. A wait that was submitted before the later record
    /// still waits for the earlier one.
    fn a_later_record_replaces(rig, saw) =
        "recorded in an idle stream success; the stream that waited before CUDA_ERROR_NOT_READY \
            (600); then success"
    {
        let (held, idle, waiting) =
            (rig.stream(NON_BLOCKING), rig.stream(NON_BLOCKING), rig.stream(NON_BLOCKING));
        let latch = rig.hold(held);
        let event = rig.recorded(held);
        must!(rig.cuStreamWaitEvent(waiting, event, 0));
        rig.record(event, idle);
        saw.code("recorded in an idle stream", rig.settled(event));
        saw.code("the stream that waited before", rig.cuStreamQuery(waiting));
        latch.release();
        saw.code("then", rig.cuStreamSynchronize(waiting));
    }

    /// A later record in a busy stream makes an event that was done pending again.
    fn a_later_record_is_pending(rig, saw) = "done success; recorded again CUDA_ERROR_NOT_READY \
        (600); then success" {
        let stream = rig.stream(NON_BLOCKING);
        let event = rig.recorded(stream);
        rig.synchronize(stream);
        saw.code("done", rig.cuEventQuery(event));
        let latch = rig.hold(stream);
        rig.record(event, stream);
        saw.code("recorded again", rig.cuEventQuery(event));
        latch.release();
        saw.code("then", rig.cuEventSynchronize(event));
    }

    /// A stream that waits for an event continues when the event is done.
    fn a_stream_waits(rig, saw) = "wait success; CUDA_ERROR_NOT_READY (600); then success" {
        let (held, waiting) = (rig.stream(NON_BLOCKING), rig.stream(NON_BLOCKING));
        let latch = rig.hold(held);
        let event = rig.recorded(held);
        saw.code("wait", rig.cuStreamWaitEvent(waiting, event, 0));
        saw.text(code_text(rig.cuStreamQuery(waiting)));
        latch.release();
        saw.code("then", rig.cuStreamSynchronize(waiting));
    }

    /// Waiting in a stream for an event that was recorded in the same stream is legal.
    fn waiting_in_the_same_stream(rig, saw) = "wait success; stream success" {
        let stream = rig.stream(NON_BLOCKING);
        let latch = rig.hold(stream);
        let event = rig.recorded(stream);
        saw.code("wait", rig.cuStreamWaitEvent(stream, event, 0));
        latch.release();
        saw.code("stream", rig.cuStreamSynchronize(stream));
    }

    /// Two streams that wait for each other's earlier records do not block each other.
    fn crossed_waits(rig, saw) = "both success, success" {
        let streams = [rig.stream(NON_BLOCKING), rig.stream(NON_BLOCKING)];
        let latch = rig.hold(streams[0]);
        let events = streams.map(|stream| rig.recorded(stream));
        must!(rig.cuStreamWaitEvent(streams[0], events[1], 0));
        must!(rig.cuStreamWaitEvent(streams[1], events[0], 0));
        latch.release();
        saw.text(format_args!(
            "both {}",
            streams.map(|stream| code_text(rig.cuStreamSynchronize(stream))).join(", ")
        ));
    }

    /// Event and stream of different contexts cannot be recorded.
    fn recording_across_contexts(rig, saw) = "CUDA_ERROR_INVALID_HANDLE (400) from event of A, \
        event of B" {
        let other = rig.new_context();
        let (stream, event) = (rig.stream(NON_BLOCKING), rig.event(NO_TIMING));
        let (others_stream, others_event) =
            rig.within(other, || (rig.stream(NON_BLOCKING), rig.event(NO_TIMING)));
        saw.codes(&[
            ("event of A", rig.cuEventRecord(event, others_stream)),
            ("event of B", rig.cuEventRecord(others_event, stream)),
        ]);
    }

    /// The NULL stream is the current context's: an event of another context cannot be recorded in
    /// it.
    fn the_null_stream_is_the_current_contexts(rig, saw) =
        "with A current success; with B current CUDA_ERROR_INVALID_HANDLE (400)"
    {
        let (other, event) = (rig.new_context(), rig.event(NO_TIMING));
        saw.code("with A current", rig.cuEventRecord(event, NULL_STREAM));
        saw.code("with B current", rig.within(other, || rig.cuEventRecord(event, NULL_STREAM)));
    }

    /// Which context is current makes no difference to an event and a stream of one context.
    fn the_current_context_does_not_matter(rig, saw) = "success from record, query, synchronize, \
        wait" {
        let other = rig.new_context();
        let (stream, event) =
            rig.within(other, || (rig.stream(NON_BLOCKING), rig.event(NO_TIMING)));
        let (record, synchronize) =
            (rig.cuEventRecord(event, stream), rig.cuEventSynchronize(event));
        saw.codes(&[
            ("record", record),
            ("query", rig.cuEventQuery(event)),
            ("synchronize", synchronize),
            ("wait", rig.cuStreamWaitEvent(stream, event, 0)),
        ]);
    }

    /// A wait may cross contexts.
    fn waiting_across_contexts(rig, saw) =
        "wait success; CUDA_ERROR_NOT_READY (600); then success" {
        let (other, held) = (rig.new_context(), rig.stream(NON_BLOCKING));
        let waiting = rig.within(other, || rig.stream(NON_BLOCKING));
        let latch = rig.hold(held);
        let event = rig.recorded(held);
        saw.code("wait", rig.cuStreamWaitEvent(waiting, event, 0));
        saw.text(code_text(rig.cuStreamQuery(waiting)));
        latch.release();
        saw.code("then", rig.cuStreamSynchronize(waiting));
    }

    /// A NULL event is an invalid handle everywhere.
    fn null(rig, saw) =
        "CUDA_ERROR_INVALID_HANDLE (400) from query, synchronize, record, destroy, wait, elapsed \
            from, elapsed to"
    {
        let (event, stream) = (rig.event(TIMING), rig.stream(NON_BLOCKING));
        rig.record(event, stream);
        rig.synchronize(stream);
        saw.codes(&[
            ("query", rig.cuEventQuery(null_mut())),
            ("synchronize", rig.cuEventSynchronize(null_mut())),
            ("record", rig.cuEventRecord(null_mut(), stream)),
            ("destroy", rig.cuEventDestroy_v2(null_mut())),
            ("wait", rig.cuStreamWaitEvent(stream, null_mut(), 0)),
            ("elapsed from", rig.elapsed_code(null_mut(), event)),
            ("elapsed to", rig.elapsed_code(event, null_mut())),
        ]);
    }

    /// The external flag of a wait is an illegal state outside a capture; other bits are invalid.
    fn the_flags_of_a_wait(rig, saw) =
        "0 success; external CUDA_ERROR_ILLEGAL_STATE (401); 2 CUDA_ERROR_INVALID_VALUE (1); all \
         bits CUDA_ERROR_INVALID_VALUE (1)"
    {
        let (event, stream) = (rig.event(NO_TIMING), rig.stream(NON_BLOCKING));
        saw.code("0", rig.cuStreamWaitEvent(stream, event, 0));
        saw.code("external", rig.cuStreamWaitEvent(stream, event, CU_EVENT_WAIT_EXTERNAL));
        saw.code("2", rig.cuStreamWaitEvent(stream, event, 2));
        saw.code("all bits", rig.cuStreamWaitEvent(stream, event, u32::MAX));
    }

    /// The external flag of a record is an illegal state outside a capture; other bits are invalid.
    [since(11, 1)]
    fn the_flags_of_a_record(rig, saw) =
        "0 success; external CUDA_ERROR_ILLEGAL_STATE (401); 2 CUDA_ERROR_INVALID_VALUE (1); all \
         bits CUDA_ERROR_INVALID_VALUE (1)"
    {
        let (event, stream) = (rig.event(NO_TIMING), rig.stream(NON_BLOCKING));
        saw.code("0", rig.cuEventRecordWithFlags(event, stream, 0));
        saw.code("external", rig.cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_EXTERNAL));
        saw.code("2", rig.cuEventRecordWithFlags(event, stream, 2));
        saw.code("all bits", rig.cuEventRecordWithFlags(event, stream, u32::MAX));
    }

    /// Destroying a pending event returns at once. Waits that were submitted for it stay in effect.
    fn destroying_a_pending_event(rig, saw) =
        "destroy success; the stream that waits CUDA_ERROR_NOT_READY (600); then success"
    {
        let (held, waiting) = (rig.stream(NON_BLOCKING), rig.stream(NON_BLOCKING));
        let latch = rig.hold(held);
        let event = rig.recorded(held);
        must!(rig.cuStreamWaitEvent(waiting, event, 0));
        saw.code("destroy", rig.cuEventDestroy_v2(event));
        saw.code("the stream that waits", rig.cuStreamQuery(waiting));
        latch.release();
        saw.code("then", rig.cuStreamSynchronize(waiting));
    }

    /// An event outlives the stream that it was recorded in.
    fn an_event_outlives_its_stream(rig, saw) = "query CUDA_ERROR_NOT_READY (600); synchronize \
        success" {
        let stream = rig.stream(NON_BLOCKING);
        let latch = rig.hold(stream);
        let event = rig.recorded(stream);
        must!(rig.cuStreamDestroy_v2(stream));
        saw.code("query", rig.cuEventQuery(event));
        latch.release();
        saw.code("synchronize", rig.cuEventSynchronize(event));
    }

    /// In the process that created it, an interprocess event works as any other event.
    fn an_interprocess_event_here(rig, saw) =
        "query CUDA_ERROR_NOT_READY (600); the stream that waits CUDA_ERROR_NOT_READY (600); \
         synchronize success; the stream that waits success"
    {
        let (event, stream, waiting) =
            (rig.event(INTERPROCESS), rig.stream(NON_BLOCKING), rig.stream(NON_BLOCKING));
        let latch = rig.hold(stream);
        rig.record(event, stream);
        must!(rig.cuStreamWaitEvent(waiting, event, 0));
        saw.code("query", rig.cuEventQuery(event));
        saw.code("the stream that waits", rig.cuStreamQuery(waiting));
        latch.release();
        saw.code("synchronize", rig.cuEventSynchronize(event));
        saw.code("the stream that waits", rig.cuStreamSynchronize(waiting));
    }

    /// A new record of an interprocess event does not replace an unfinished record: the stream of
    /// the new record waits for the unfinished one first.
    fn an_interprocess_event_recorded_again(rig, saw) =
        "recorded in an idle stream success; event CUDA_ERROR_NOT_READY (600); stream \
         CUDA_ERROR_NOT_READY (600); then event success, stream success"
    {
        let (event, held, idle) =
            (rig.event(INTERPROCESS), rig.stream(NON_BLOCKING), rig.stream(NON_BLOCKING));
        let latch = rig.hold(held);
        rig.record(event, held);
        saw.code("recorded in an idle stream", rig.cuEventRecord(event, idle));
        saw.code("event", rig.cuEventQuery(event));
        saw.code("stream", rig.cuStreamQuery(idle));
        latch.release();
        let after = [rig.cuEventSynchronize(event), rig.cuStreamSynchronize(idle)].map(code_text);
        saw.text(format_args!("then event {}, stream {}", after[0], after[1]));
    }

    /// The number of events has no small limit: hundreds of thousands can be alive at once.
    fn many_events(rig, saw) = "300000 created, recorded and destroyed" {
        let stream = rig.stream(NON_BLOCKING);
        let events: Vec<CUevent> = (0..300_000).map(|_| rig.event(NO_TIMING)).collect();
        for event in &events {
            rig.record(*event, stream);
        }
        rig.synchronize(stream);
        let done = events
            .iter()
            .filter(|event| rig.cuEventQuery(**event) == CUresult::CUDA_SUCCESS)
            .count();
        let gone = events
            .iter()
            .filter(|event| rig.cuEventDestroy_v2(**event) == CUresult::CUDA_SUCCESS)
            .count();
        if done == gone {
            saw.text(format_args!("{done} created, recorded and destroyed"))
        } else {
            saw.text(format_args!("{done} done, {gone} destroyed"))
        }
    }

    /// A whole-context record takes in all streams of the context. A whole-context wait holds them,
    /// but asking an idle stream is about the work that was given to it.
    [since(12, 5)]
    fn whole_contexts(rig, saw) =
        "record success; query CUDA_ERROR_NOT_READY (600); wait success; an idle stream success; \
            synchronize success"
    {
        let (held, idle) = (rig.stream(NON_BLOCKING), rig.stream(NON_BLOCKING));
        let event = rig.event(NO_TIMING);
        let latch = rig.hold(held);
        saw.code("record", rig.cuCtxRecordEvent(rig.context, event));
        saw.code("query", rig.cuEventQuery(event));
        saw.code("wait", rig.cuCtxWaitEvent(rig.context, event));
        saw.code("an idle stream", rig.cuStreamQuery(idle));
        latch.release();
        saw.code("synchronize", rig.cuEventSynchronize(event));
    }

    /// A whole-context wait (`cuCtxWaitEvent`) holds back work that is submitted to a stream
    /// afterwards.
    [since(12, 5)]
    fn a_whole_context_wait_holds_later_work(rig, saw) =
        "an event recorded after the wait CUDA_ERROR_NOT_READY (600); then success"
    {
        let (held, idle) = (rig.stream(NON_BLOCKING), rig.stream(NON_BLOCKING));
        let latch = rig.hold(held);
        let event = rig.recorded(held);
        must!(rig.cuCtxWaitEvent(rig.context, event));
        let after = rig.recorded(idle);
        saw.code("an event recorded after the wait", rig.cuEventQuery(after));
        latch.release();
        saw.code("then", rig.cuEventSynchronize(after));
    }

    /// The whole-context calls name their context: none needs to be current.
    [since(12, 5)]
    fn whole_contexts_need_none_current(rig, saw) =
        "record success; wait success; record in NULL CUDA_ERROR_INVALID_CONTEXT (201)"
    {
        let event = rig.event(NO_TIMING);
        crate::raw::elsewhere(|| {
            saw.code("record", rig.cuCtxRecordEvent(rig.context, event));
            saw.code("wait", rig.cuCtxWaitEvent(rig.context, event));
            saw.code("record in NULL", rig.cuCtxRecordEvent(null_mut(), event));
        });
    }

    /// The event of a whole-context record is of that context; the event of a whole-context wait
    /// may be of any.
    [since(12, 5)]
    fn whole_contexts_and_other_contexts(rig, saw) =
        "record CUDA_ERROR_INVALID_HANDLE (400); wait success; NULL event \
         CUDA_ERROR_INVALID_HANDLE (400), CUDA_ERROR_INVALID_HANDLE (400)"
    {
        let other = rig.new_context();
        let event = rig.within(other, || rig.event(NO_TIMING));
        saw.code("record", rig.cuCtxRecordEvent(rig.context, event));
        saw.code("wait", rig.cuCtxWaitEvent(rig.context, event));
        let null = [
            rig.cuCtxRecordEvent(rig.context, null_mut()),
            rig.cuCtxWaitEvent(rig.context, null_mut()),
        ];
        saw.text(format_args!("NULL event {}", null.map(code_text).join(", ")));
    }

    /// A whole-context record (`cuCtxRecordEvent`) accepts an interprocess event.
    [since(12, 5)]
    fn a_whole_context_record_of_an_interprocess_event(rig, saw) = "record success; synchronize \
        success" {
        let event = rig.event(INTERPROCESS);
        saw.code("record", rig.cuCtxRecordEvent(rig.context, event));
        saw.code("synchronize", rig.cuEventSynchronize(event));
    }

    /// A whole-context record (`cuCtxRecordEvent`) also covers the default streams.
    [since(12, 5)]
    fn a_whole_context_record_and_the_legacy_stream(rig, saw) =
        "query CUDA_ERROR_NOT_READY (600); synchronize success"
    {
        let event = rig.event(NO_TIMING);
        let latch = rig.hold(NULL_STREAM);
        must!(rig.cuCtxRecordEvent(rig.context, event));
        saw.code("query", rig.cuEventQuery(event));
        latch.release();
        saw.code("synchronize", rig.cuEventSynchronize(event));
    }

    /// An event can be recorded in a blocking stream, in the NULL stream and in a per-thread
    /// default stream.
    fn every_kind_of_stream(rig, saw) = "success from blocking, NULL, legacy, per-thread" {
        let event = rig.event(NO_TIMING);
        saw.codes(&[
            ("blocking", rig.cuEventRecord(event, rig.stream(BLOCKING))),
            ("NULL", rig.cuEventRecord(event, NULL_STREAM)),
            ("legacy", rig.cuEventRecord(event, crate::raw::LEGACY)),
            ("per-thread", rig.cuEventRecord(event, crate::raw::PER_THREAD)),
        ]);
    }
}
