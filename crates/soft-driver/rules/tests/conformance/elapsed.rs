//! The time between two events.

use std::ptr::null_mut;

use cuda_events::sys::*;

use crate::raw::{NON_BLOCKING, Raw, Rig, TIMING, code_text};
use crate::rules;

/// Two events with timing, recorded one after the other and done.
fn pair(raw: &Raw) -> (CUevent, CUevent) {
    let stream = raw.stream(NON_BLOCKING);
    let (start, end) = (raw.event(TIMING), raw.event(TIMING));
    raw.record(start, stream);
    raw.record(end, stream);
    raw.synchronize(stream);
    (start, end)
}

/// One of the two functions for the time between two events.
type Elapsed<'a> = &'a dyn Fn(CUevent, CUevent) -> CUresult;

/// The cases that return an error: the name and the code of each.
fn refusals(rig: &Rig, elapsed: Elapsed) -> Vec<(&'static str, CUresult)> {
    let stream = rig.stream(NON_BLOCKING);
    let (done, _) = pair(rig);
    let (never, untimed) = (rig.event(TIMING), rig.recorded(stream));
    let other = rig.new_context();
    let (others, _) = rig.within(other, || pair(rig));
    rig.synchronize(stream);
    let latch = rig.hold(stream);
    let pending = rig.event(TIMING);
    rig.record(pending, stream);
    let answers = vec![
        ("never to done", elapsed(never, done)),
        ("done to never", elapsed(done, never)),
        ("never twice", elapsed(never, never)),
        ("untimed to done", elapsed(untimed, done)),
        ("done to untimed", elapsed(done, untimed)),
        ("never to pending", elapsed(never, pending)),
        ("pending to never", elapsed(pending, never)),
        ("untimed to pending", elapsed(untimed, pending)),
        ("another context to done", elapsed(others, done)),
        ("done to another context", elapsed(done, others)),
        ("another context to pending", elapsed(others, pending)),
        ("done to pending", elapsed(done, pending)),
        ("pending to done", elapsed(pending, done)),
        ("pending twice", elapsed(pending, pending)),
    ];
    latch.release();
    rig.synchronize(stream);
    answers
}

rules! {
    /// Two events that are done have an elapsed time, and it is not negative.
    fn done(rig, saw) = "success, not negative" {
        let (start, end) = pair(rig);
        match rig.elapsed(start, end) {
            Ok(time) => saw.text(format_args!(
                "success, {}",
                if time >= 0.0 { "not negative" } else { "negative" }
            )),
            Err(code) => saw.text(code_text(code)),
        }
    }

    /// The time from an event to itself is exactly zero.
    fn the_same_event_twice(rig, saw) = "0" {
        let (start, _) = pair(rig);
        saw.text(rig.elapsed(start, start).map_or_else(code_text, |time| time.to_string()));
    }

    /// If the two events are swapped, the time is the exact negative.
    fn reversed_is_negative(rig, saw) = "the exact negative" {
        let stream = rig.stream(NON_BLOCKING);
        let (start, end) = (rig.event(TIMING), rig.event(TIMING));
        rig.record(start, stream);
        // This takes some time, so that the two times differ.
        assert_eq!(rig.host(stream, || {}), CUresult::CUDA_SUCCESS);
        rig.record(end, stream);
        rig.synchronize(stream);
        let (there, back) = (rig.elapsed(start, end), rig.elapsed(end, start));
        match (there, back) {
            (Ok(there), Ok(back)) if there > 0.0 && back == -there => {
                saw.text("the exact negative")
            }
            other => saw.text(format_args!("{other:?}")),
        }
    }

    /// If an event was never recorded, has no timing or belongs to another context,
    /// `cuEventElapsedTime` returns `CUDA_ERROR_INVALID_HANDLE`, even if the other event is
    /// pending. Otherwise it returns `CUDA_ERROR_NOT_READY` while either event is pending.
    fn refused(rig, saw) =
        "CUDA_ERROR_INVALID_HANDLE (400) from never to done, done to never, never twice, untimed \
         to done, done to untimed, never to pending, pending to never, untimed to pending, another \
         context to done, done to another context, another context to pending; \
         CUDA_ERROR_NOT_READY (600) from done to pending, pending to done, pending twice"
    {
        saw.codes(&refusals(rig, &|start, end| rig.elapsed_code(start, end)));
    }

    /// The second version of `cuEventElapsedTime` returns the same errors as the first.
    [since(12, 8)]
    fn refused_by_the_second_version(rig, saw) =
        "CUDA_ERROR_INVALID_HANDLE (400) from never to done, done to never, never twice, untimed \
         to done, done to untimed, never to pending, pending to never, untimed to pending, another \
         context to done, done to another context, another context to pending; \
         CUDA_ERROR_NOT_READY (600) from done to pending, pending to done, pending twice"
    {
        saw.codes(&refusals(rig, &|start, end| rig.cuEventElapsedTime_v2(&mut 0.0, start, end)));
    }

    /// Both versions of `cuEventElapsedTime` return the same time.
    [since(12, 8)]
    fn the_second_version_agrees(rig, saw) = "the same, and the same reversed" {
        let (start, end) = pair(rig);
        let second = |start, end| {
            let mut milliseconds = f32::NAN;
            (rig.cuEventElapsedTime_v2(&mut milliseconds, start, end), milliseconds)
        };
        let same = [(start, end), (end, start)].map(|(start, end)| {
            rig.elapsed(start, end)
                .is_ok_and(|time| second(start, end) == (CUresult::CUDA_SUCCESS, time))
        });
        saw.holds("the same, and the same reversed", same == [true, true]);
    }

    /// If the place for the time is NULL, `cuEventElapsedTime` returns `CUDA_ERROR_INVALID_HANDLE`,
    /// not `CUDA_ERROR_INVALID_VALUE`.
    fn no_place_for_the_result(rig, saw) = "CUDA_ERROR_INVALID_HANDLE (400)" {
        let (start, end) = pair(rig);
        saw.text(code_text(rig.cuEventElapsedTime(null_mut(), start, end)));
    }

    /// If the place for the time is NULL, the second version of `cuEventElapsedTime` also returns
    /// `CUDA_ERROR_INVALID_HANDLE`.
    [since(12, 8)]
    fn no_place_for_the_result_of_the_second_version(rig, saw) = "CUDA_ERROR_INVALID_HANDLE (400)" {
        let (start, end) = pair(rig);
        saw.text(code_text(rig.cuEventElapsedTime_v2(null_mut(), start, end)));
    }

    /// Events of different streams of one context have an elapsed time.
    fn across_streams(rig, saw) = "success" {
        let events = [0, 1].map(|_| {
            let (stream, event) = (rig.stream(NON_BLOCKING), rig.event(TIMING));
            rig.record(event, stream);
            rig.synchronize(stream);
            event
        });
        saw.text(code_text(rig.elapsed_code(events[0], events[1])));
    }

    /// A call that returns an error writes no time.
    fn a_refusal_writes_nothing(rig, saw) = "nothing written" {
        let (never, mut milliseconds) = (rig.event(TIMING), 77.5);
        assert_ne!(rig.cuEventElapsedTime(&mut milliseconds, never, never), CUresult::CUDA_SUCCESS);
        saw.holds("nothing written", milliseconds == 77.5);
    }

    /// Times are multiples of 32 nanoseconds.
    fn resolution(rig, saw) = "all of 500 on the grid" {
        let stream = rig.stream(NON_BLOCKING);
        let events: Vec<CUevent> = (0..501).map(|_| rig.event(TIMING)).collect();
        let (mut judged, mut on_grid) = (0, 0);
        // The result is a float: below 8 ms its error is less than a hundredth of a step. If the
        // machine stood still between two records, the time is too long to judge, and the rule
        // takes another one.
        for _ in 0..20 {
            for event in &events {
                rig.record(*event, stream);
            }
            rig.synchronize(stream);
            let times = events
                .windows(2)
                .map(|pair| rig.elapsed(pair[0], pair[1]).map_or(f32::NAN, f32::abs));
            for time in times.filter(|time| !(8.0..).contains(time)).take(500 - judged) {
                let steps = f64::from(time) * 1e6 / 32.0;
                judged += 1;
                on_grid += usize::from((steps - steps.round()).abs() < 0.01);
            }
        }
        saw.text(if (judged, on_grid) == (500, 500) {
            "all of 500 on the grid".to_owned()
        } else {
            format!("{on_grid} of {judged} on the grid")
        });
    }

    /// A later record in a stream never has an earlier time.
    fn time_does_not_run_back(rig, saw) = "never" {
        let stream = rig.stream(NON_BLOCKING);
        let events: Vec<CUevent> = (0..200).map(|_| rig.event(TIMING)).collect();
        for event in &events {
            rig.record(*event, stream);
        }
        rig.synchronize(stream);
        let back = events
            .windows(2)
            .filter(|pair| !rig.elapsed(pair[0], pair[1]).is_ok_and(|time| time >= 0.0))
            .count();
        saw.text(if back == 0 { "never".to_owned() } else { format!("{back} times") });
    }

    /// The blocking flag does not turn the timing off.
    fn a_blocking_event(rig, saw) = "success" {
        let (stream, event) = (rig.stream(NON_BLOCKING), rig.event(CU_EVENT_BLOCKING_SYNC));
        rig.record(event, stream);
        rig.synchronize(stream);
        saw.text(code_text(rig.elapsed_code(event, event)));
    }

    /// The call for the elapsed time needs no current context, and any context may be current.
    fn no_context(rig, saw) = "success with none current; success with another current" {
        let (start, end) = pair(rig);
        let other = rig.new_context();
        saw.text(format_args!(
            "{} with none current",
            code_text(crate::raw::elsewhere(|| rig.elapsed_code(start, end)))
        ));
        saw.text(format_args!(
            "{} with another current",
            code_text(rig.within(other, || rig.elapsed_code(start, end)))
        ));
    }
}
