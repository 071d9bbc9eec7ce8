//! Warnings.

use std::borrow::Cow;

use crate::common::Do;
use crate::reports::{Program, write};
use cuda_order_check_engine::{
    Access, Call, Checker, EventId, Finding, Op, Options, StreamId, ThreadId, Warnings, What,
};

/// As many pairs of places are kept as documented, of warnings as well.
#[test]
fn warnings_are_bounded() {
    let mut checker = Checker::new(Options::new().warnings(Warnings::all()));
    let wait = |checker: &mut Checker, line| {
        let file = Cow::Borrowed("a.rs");
        let at = cuda_order_check_engine::Location { file, line, column: 1 };
        let wait = Op::Wait { stream: StreamId(1), event: EventId(1), external: false };
        checker.apply(Call::new("wait", 1, ThreadId(1)).at(at), wait);
    };
    (0..(1 << 16) + 8).for_each(|line| wait(&mut checker, line));
    assert_eq!(checker.take_findings().len(), 1 << 16);
}

/// A record that replaces an earlier one in the same stream covers it. Only a wait of the host, of a
/// third thread, may mean the earlier one.
#[test]
fn a_record_that_is_covered_is_lost_to_a_thread_that_waits() {
    for (threads, waits, found) in [
        ([1, 1, 2], Do::Sync(What::Event(EventId(1))), 1),
        ([1, 2, 3], Do::Sync(What::Event(EventId(1))), 1),
        ([1, 2, 1], Do::Sync(What::Event(EventId(1))), 0),
        ([1, 2, 2], Do::Sync(What::Event(EventId(1))), 0),
        ([1, 1, 3], Do::Wait(2, 1), 0),
        ([1, 2, 3], Do::Wait(2, 1), 0),
    ] {
        let mut warnings = Warnings::default();
        warnings.lost_record = true;
        let mut checker = Checker::new(Options::new().warnings(warnings));
        let mut apply = |number, thread, does: Do| {
            checker.apply(Call::new("call", number, ThreadId(thread)), does.op());
        };
        apply(1, threads[0], write(1));
        apply(2, threads[0], Do::Record(1, 1));
        apply(3, threads[1], write(1));
        apply(4, threads[1], Do::Record(1, 1));
        apply(5, threads[2], waits);
        assert_eq!(checker.take_findings().len(), found, "{threads:?}");
    }
}

/// Of several records that are lost, the first one whose work is not waited for at all is named, whatever
/// comes after it.
#[test]
fn the_worst_of_lost_records_is_named() {
    for (streams, named) in [
        // Covered, and then not; not, and then covered; twice not, the second of which is later.
        (&[1, 1, 2][..], Some((4, 6))),
        (&[1, 2, 2], Some((2, 4))),
        (&[1, 2, 3], Some((4, 6))),
        (&[1, 1, 1], None),
    ] {
        let mut warnings = Warnings::NONE;
        warnings.lost_record = true;
        let mut program = Program::with(Options::new().warnings(warnings));
        for (at, stream) in (1..).zip(streams) {
            let work = vec![Access::write(0x1000 * at, 64)];
            program.apply("work", Do::Work(*stream, work)).apply("record", Do::Record(1, *stream));
        }
        program.apply("wait", Do::Wait(4, 1));
        let findings = program.findings();
        assert_eq!(findings.len(), usize::from(named.is_some()), "{streams:?}: {findings:?}");
        if let Some((lost, by)) = named {
            let text = format!("before call #{lost} (record): call #{by} (record) recorded");
            assert!(findings[0].contains(&text), "{streams:?}: {findings:?}");
        }
    }
}

/// Other processes may have recorded an event of theirs: a wait for it may wait for more than is known.
#[test]
fn a_wait_for_an_event_of_other_processes_is_no_mistake() {
    for (interprocess, records, expected) in
        [(false, false, 1), (false, true, 1), (true, false, 0), (true, true, 0)]
    {
        let mut program = Program::with(Options::new().warnings(Warnings::all()));
        program.apply("create", Do::Event(1, interprocess)).apply("work", write(1));
        if records {
            program.apply("record", Do::Record(1, 1));
        }
        program.apply("wait", Do::Wait(1, 1));
        let findings = program.findings();
        assert_eq!(findings.len(), expected, "{interprocess} {records}: {findings:?}");
    }
}

/// A program that is wrong in each way that there is a warning for.
fn doubtful(warnings: Warnings) -> Vec<String> {
    let mut program = Program::with(Options::new().warnings(warnings));
    program
        .apply("never", Do::Wait(2, 1))
        .apply("work", write(1))
        .apply("lost", Do::Record(2, 1))
        .apply("work", Do::Work(2, vec![Access::write(0x2000, 64)]))
        .apply("again", Do::Record(2, 2))
        .apply("late", Do::Wait(3, 2))
        .apply("useless", Do::Wait(2, 2))
        .apply("query", Do::Query(What::Stream(StreamId(1)), false))
        .apply("capture", Do::Capture(2))
        .apply("captured", Do::Record(4, 2))
        .apply("captured", Do::EndCapture(2, 1))
        .apply("leak", Do::Wait(3, 4))
        .apply("read", Do::Host(vec![Access::read(0x1000, 64)]));
    let warning =
        |finding: &Finding| matches!(finding, Finding::Warning(_)).then(|| finding.to_string());
    program.checker.take_findings().iter().filter_map(warning).collect()
}

#[test]
fn each_warning_has_its_switch_and_its_sentence() {
    assert!(doubtful(Warnings::default()).is_empty());
    let never = "warning: call #1 (never) waits for nothing: event 0x1 was never recorded";
    let lost = "warning: call #6 (late) does not wait for the work before call #3 (lost): call #5 \
                (again) recorded event 0x2 again while that work was pending and before anything \
                had waited for it";
    let useless = "warning: call #7 (useless) adds no order: its stream is already after the work \
                   that event 0x2 recorded";
    let leak = "warning: call #12 (leak) leaves a capture: event 0x4 has work in a graph only, and \
        orders nothing outside it";
    let query =
        "warning: call #13 (read) touches the result of work that was not done at call #8 (query)";
    assert_eq!(doubtful(Warnings::all()), [never, lost, useless, leak, query]);
    let only = |enable: fn(&mut Warnings)| {
        let mut warnings = Warnings::NONE;
        enable(&mut warnings);
        doubtful(warnings)
    };
    assert_eq!(only(|warnings| warnings.never_recorded = true), [never]);
    assert_eq!(only(|warnings| warnings.lost_record = true), [lost]);
    assert_eq!(only(|warnings| warnings.useless_wait = true), [useless]);
    assert_eq!(only(|warnings| warnings.capture_leak = true), [leak]);
    assert_eq!(only(|warnings| warnings.ignored_query = true), [query]);
}

/// A call that waits for long is warned about as one that is reported at its end.
#[test]
fn a_wait_that_begins_is_warned_about() {
    let mut program = Program::with(Options::new().warnings(Warnings::all()));
    program.apply("create", Do::Event(1, false));
    let wait = Call::new("wait", 7, ThreadId(1));
    let mark = program.checker.begin_wait(wait.clone(), What::Event(EventId(1)));
    program.checker.reached(&wait, &mark);
    assert_eq!(
        program.findings(),
        ["warning: call #7 (wait) waits for nothing: event 0x1 was never recorded"]
    );
    // It has waited for the first record, which is therefore not lost.
    program.apply("write", write(1)).apply("record", Do::Record(1, 1));
    program.checker.begin_wait(wait, What::Event(EventId(1)));
    program.apply("record", Do::Record(1, 1)).apply("wait", Do::Wait(2, 1));
    assert_eq!(program.findings(), [""; 0]);
}

/// Where a driver refuses what leaves a capture, it says so.
#[test]
fn a_refused_use_of_captured_work_is_a_warning() {
    for (warnings, expected) in [(Warnings::default(), 0), (Warnings::all(), 2)] {
        let mut program = Program::with(Options::new().warnings(warnings));
        for what in [What::Event(EventId(1)), What::Stream(StreamId(1))] {
            let call = Call::new("cuStreamEndCapture", 3, ThreadId(1));
            program.checker.apply(call, Op::CaptureLeft { what });
        }
        let findings = program.findings();
        assert_eq!(findings.len(), expected);
        if let [event, stream] = &findings[..] {
            assert!(event.contains("leaves a capture: event 0x1 has work in a graph only"));
            assert!(stream.contains("leaves a capture: stream copies has work"), "{stream}");
        }
    }
}
