//! Likely mistakes that are no missing order: each is warned of when that is asked for and not
//! otherwise, and the mended program is silent.

use std::ptr::null_mut;
use std::time::Duration;

use cuda_soft_driver::{Builder, OrderCheck, OrderWarnings, SoftDriver};

use crate::common::*;
use cuda_events_test_support::aside;
use cuda_events_test_support::planted::{Desk, SEEDS, builder};

/// A kind of mistake, its name in the environment, what the warning says, and the program. The
/// program returns the number of the call that the warning begins with.
type Row = (&'static str, &'static str, &'static str, fn(&Desk<'_>) -> u64);

#[rustfmt::skip] // A row in few lines.
const ROWS: &[Row] = &[
    ("a stream waits for an event that was never recorded", "never_recorded",
        "waits for nothing: event ", |p| {
        if p.mended { p.writes(p.a); p.record(0, p.a); }
        p.wait(p.b, 0)
    }),
    ("the host waits for an event that was never recorded", "never_recorded",
        "waits for nothing: event ", |p| {
        if p.mended { p.record(0, p.a); }
        p.event_sync(0);
        p.raw.soft.calls()
    }),
    ("a record is lost, and another stream waits", "lost_record",
        "does not wait for the work before call #", |p| {
        p.writes(p.a);
        p.record(0, p.a);
        if p.mended { p.wait(p.c, 0); }
        p.set(p.b, p.other, 64);
        p.record(0, p.b);
        p.wait(p.c, 0)
    }),
    ("a record is lost, and the host waits", "lost_record",
        "does not wait for the work before call #", |p| {
        p.writes(p.a);
        p.record(0, p.a);
        if p.mended { p.event_sync(0); }
        p.set(p.b, p.other, 64);
        p.record(0, p.b);
        p.event_sync(0);
        p.raw.soft.calls()
    }),
    ("an event's query says no, and the host reads", "ignored_query",
        "touches the result of work that was not done at call #", |p| {
        p.raw.keep_busy(p.a, Duration::from_secs(1));
        p.download(p.a);
        p.record(0, p.a);
        assert_eq!(p.raw.query(p.e[0]), NOT_READY);
        if p.mended { p.event_sync(0); }
        p.host_reads()
    }),
    ("a stream's query says no, and the host reads", "ignored_query",
        "touches the result of work that was not done at call #", |p| {
        p.raw.keep_busy(p.a, Duration::from_secs(1));
        p.download(p.a);
        assert!(p.raw.busy(p.a));
        if p.mended { p.raw.sync(p.a); }
        p.host_reads()
    }),
    ("a wait for the stream's own event", "useless_wait", "adds no order: ", |p| {
        p.writes(p.a);
        p.record(0, p.a);
        p.wait(if p.mended { p.b } else { p.a }, 0)
    }),
    ("a wait twice", "useless_wait", "adds no order: ", |p| {
        p.writes(p.a);
        p.record(0, p.a);
        p.wait(p.b, 0);
        p.wait(if p.mended { p.c } else { p.b }, 0)
    }),
    ("a wait for work that the host has waited for", "useless_wait", "adds no order: ", |p| {
        p.writes(p.a);
        p.record(0, p.a);
        if !p.mended { p.event_sync(0); }
        p.wait(p.b, 0)
    }),
    ("a wait for an event that was captured", "capture_leak", "leaves a capture: event ", |p| {
        p.captured(|| { p.writes(p.c); p.record(0, p.c); });
        if p.mended { p.writes(p.a); p.record(0, p.a); }
        let code = unsafe { (p.raw.cuStreamWaitEvent)(p.b, p.e[0], 0) };
        assert_eq!(code.0 == OK, p.mended);
        p.raw.soft.calls()
    }),
    ("the host waits for an event that was captured", "capture_leak",
        "leaves a capture: event ", |p| {
        p.captured(|| { p.writes(p.c); p.record(0, p.c); });
        if p.mended { p.writes(p.a); p.record(0, p.a); }
        let code = unsafe { (p.raw.cuEventSynchronize)(p.e[0]) };
        assert_eq!(code.0 == OK, p.mended);
        p.raw.soft.calls()
    }),
    ("a stream is left in a capture", "capture_leak", "leaves a capture: stream ", |p| {
        p.capture(p.c);
        p.record(0, p.c);
        p.wait(p.b, 0);
        p.writes(p.b);
        if p.mended { p.joined(p.b, p.c); }
        let mut graph = null_mut();
        let code = unsafe { (p.raw.cuStreamEndCapture)(p.c, &mut graph) };
        let number = p.raw.soft.calls();
        assert_eq!(code.0 == OK, p.mended);
        if p.mended { p.number(unsafe { (p.raw.cuGraphDestroy)(graph) }); }
        number
    }),
];

/// The findings of one run that say a warning.
fn warned(builder: Builder, mended: bool, program: fn(&Desk<'_>) -> u64) -> (Vec<String>, u64) {
    let raw = Raw::planting(builder);
    let desk = Desk::new(&raw, mended);
    let number = program(&desk);
    desk.end();
    let mut found = order_texts(&raw.soft);
    found.retain(|found| found.starts_with("warning: "));
    (found, number)
}

#[test]
fn each_warning_is_given_when_it_is_asked_for() {
    aside!();
    for seed in 0..SEEDS {
        for &(kind, _, says, program) in ROWS {
            let all = || builder(seed).order_warnings(OrderWarnings::all());
            let (found, number) = warned(all(), false, program);
            let [found] = &found[..] else { panic!("{kind}, seed {seed}: {found:?}") };
            let begins = format!("warning: call #{number} (");
            assert!(found.starts_with(&begins) && found.contains(says), "{kind}: {found}");
            let (found, _) = warned(all(), true, program);
            assert_eq!(found, [""; 0], "{kind}, mended, seed {seed}");
            let (found, _) = warned(builder(seed), false, program);
            assert_eq!(found, [""; 0], "{kind}, nothing asked for");
        }
    }
}

/// Each has a name in the environment's text, and that turns on no other one.
#[test]
fn the_environment_names_each_warning() {
    aside!();
    let text = |names: &str| {
        Builder::from_text(&format!("time=virtual,order=report,order_warnings={names}"))
            .expect("it is good")
    };
    let names: Vec<&str> = {
        let mut names: Vec<_> = ROWS.iter().map(|row| row.1).collect();
        names.dedup();
        names
    };
    assert_eq!(names.len(), 5);
    for &(kind, name, says, program) in ROWS {
        let others: Vec<&str> = names.iter().copied().filter(|other| *other != name).collect();
        for (settings, expected) in
            [(name.to_owned(), 1), (others.join("+"), 0), ("all".to_owned(), 1)]
        {
            let (found, _) = warned(text(&settings), false, program);
            assert_eq!(found.len(), expected, "{kind}, {settings}: {found:?}");
            assert!(found.iter().all(|found| found.contains(says)));
        }
    }
    let error = Builder::from_text("order_warnings=lost").expect_err("there is no such name");
    assert!(error.contains("`lost` is not a value") || error.contains("lost_record"), "{error}");
    // They are no errors: order=abort does not end the process.
    let builder = text("all").check_order(OrderCheck::Abort);
    assert_eq!(warned(builder, false, ROWS[0].3).0.len(), 1);
}

/// A report says how the program came to both calls, if that is asked for.
#[test]
fn backtraces_are_reported_on_request() {
    #[inline(never)]
    fn fills_the_buffer(p: &Desk<'_>) -> u64 {
        std::hint::black_box(p.writes(p.a))
    }
    #[inline(never)]
    fn looks_at_the_buffer(p: &Desk<'_>) -> u64 {
        std::hint::black_box(p.reads(p.b))
    }
    aside!();
    let report = |builder: Builder| {
        let raw = Raw::planting(builder.check_order(OrderCheck::Report));
        let desk = Desk::new(&raw, false);
        fills_the_buffer(&desk);
        looks_at_the_buffer(&desk);
        desk.end();
        order_texts(&raw.soft).concat()
    };
    let text = "order=report,order_backtraces=on";
    for builder in [
        SoftDriver::builder().order_backtraces(true),
        Builder::from_text(text).expect("it is good"),
    ] {
        let found = report(builder);
        let lines: Vec<&str> = found.lines().collect();
        let at = |name: &str| lines.iter().position(|line| line.contains(name)).expect(name);
        let (first, second) = (at("  writes   "), at("  reads    "));
        assert!(first < at("fills_the_buffer") && at("fills_the_buffer") < second, "{found}");
        assert!(second < at("looks_at_the_buffer"), "{found}");
        // The driver's own frames are left out, and those below the test.
        for own in ["cuda_soft_driver::", "__rust_begin_short_backtrace"] {
            assert!(!found.contains(own), "{own}: {found}");
        }
    }
    let found = report(SoftDriver::builder());
    assert!(found.contains("missing order") && !found.contains("fills_the_buffer"), "{found}");
}
