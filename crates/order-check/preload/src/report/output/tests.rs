//! What is reported of findings, when, and with which stacks.

use core::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cuda_order_check_engine::feed::Observer as _;
use cuda_order_check_engine::{
    Access, AccessKind, Backtrace, Call, Checker, Finding, Op, Report, StreamId, ThreadId,
};

use super::{
    ALLOWANCE, ALWAYS, HELD, LAUNCHES, LOOKS, Ordering, Output, PAIRS, REASONS, SHOWN, counted,
};
use crate::call::thread;
use crate::code::verdict::{Bytes, Verdict};
use crate::report::regions::{pop_region, push_region};
use crate::report::unsettled::HELD_FOR;
use crate::settings::{Settings, launched};

/// A finding about two calls by their names and accesses, each in a stream of its own, in memory of 256
/// bytes at `0x1000`. Both calls have this stack.
fn found(all: [(&'static str, Access); 2], trace: Option<&'static str>) -> Report {
    let mut checker = Checker::default();
    let memory = Op::Allocate { address: 0x1000, bytes: 0x100 };
    checker.apply(Call::new("cuMemAlloc_v2", 1, ThreadId(1)), memory);
    for (number, (name, access)) in (2..).zip(all) {
        let mut call = Call::new(name, number, ThreadId(1));
        call.backtrace = trace.map(|trace| Arc::new(trace) as Arc<dyn Backtrace>);
        let accesses = &[access][..];
        checker.apply(call, Op::Work { stream: StreamId(number), accesses });
    }
    match checker.take_findings().pop() {
        Some(Finding::Report(report)) => report,
        other => panic!("no report: {other:?}"),
    }
}

fn bytes(range: Range<u64>, writes: [bool; 2]) -> Bytes {
    Bytes { ranges: vec![range], writes }
}

fn write() -> Access {
    Access::write(0x1010, 64)
}

fn read() -> Access {
    Access::read(0x1010, 64)
}

/// With an output of these settings.
fn with_output<R>(settings: &str, does: impl FnOnce(&mut Output) -> R) -> R {
    let _turn = crate::lock::TURN.lock();
    does(&mut Output::new(&Settings::from_text(settings).expect("it is valid")))
}

/// A launch reads or writes as its code says. Where that is not known, it may only read beside what
/// writes.
#[test]
fn a_report_has_what_the_code_says() {
    use AccessKind::{Read, Write};
    let kernel = |name: &'static str| (name, launched(write()));
    let (k, l) = (kernel("cuLaunchKernel of k"), kernel("cuLaunchKernel of l"));
    let (copies, sets) = (("cuMemcpyDtoHAsync_v2", read()), ("cuMemsetD8Async", write()));
    let own = |writes| bytes(0x1014..0x1018, writes);
    let possible = |at| Verdict::Possible(at, "nobody knows".into());
    type Expected = Option<([AccessKind; 2], Range<u64>, bool)>;
    let at = |kinds| Some((kinds, 0x1014..0x1018, true));
    let all = |kinds| Some((kinds, 0x1010..0x1050, true));
    type Case = ([(&'static str, Access); 2], Verdict, Expected, &'static str);
    let cases: [Case; 14] = [
        ([k.clone(), copies.clone()], Verdict::Certain(own([true, false])), at([Write, Read]), ""),
        ([k.clone(), sets.clone()], Verdict::Certain(own([false; 2])), at([Read, Write]), ""),
        ([sets.clone(), k.clone()], Verdict::Likely(own([false, true])), at([Write; 2]), ""),
        ([k.clone(), l.clone()], Verdict::Likely(own([true, false])), at([Write, Read]), ""),
        ([k.clone(), l.clone()], Verdict::Certain(own([false, true])), at([Read, Write]), ""),
        // Bytes of other memory than the addresses of the two.
        (
            [k.clone(), l.clone()],
            Verdict::Certain(bytes(0x1100..0x1104, [true; 2])),
            Some(([Write; 2], 0x1100..0x1104, false)),
            "",
        ),
        ([k.clone(), l.clone()], Verdict::Refuted, None, ""),
        ([copies.clone(), sets.clone()], Verdict::Known, all([Read, Write]), ""),
        ([k.clone(), copies.clone()], possible(0), all([Write, Read]), "k"),
        ([k.clone(), sets.clone()], possible(0), all([Read, Write]), "k"),
        ([sets.clone(), k.clone()], possible(1), all([Write, Read]), "k"),
        ([k.clone(), l.clone()], possible(0), all([Write; 2]), "k"),
        ([k.clone(), l.clone()], possible(1), all([Write; 2]), "l"),
        ([copies, sets], possible(1), all([Read, Write]), "cuMemsetD8Async"),
    ];
    for (calls, verdict, expected, named) in cases {
        let case = format!("{verdict:?} of {calls:?}");
        let judged = |settings: &str| {
            with_output(settings, |output| {
                output.judged(found(calls.clone(), None), verdict.clone());
                let errors = output.findings.errors().iter().map(|report| {
                    let kinds = [report.first.kind, report.second.kind];
                    assert_eq!(report.shared.len(), 1, "{case}");
                    (kinds, report.shared[0].clone(), report.allocation.is_some())
                });
                (errors.collect::<Vec<_>>(), output.lines_of_possible())
            })
        };
        let (errors, lines) = judged("log=/dev/null,stacks=off,possible=on");
        assert_eq!(errors.first().cloned(), expected, "{case}");
        assert_eq!(lines, [""; 0], "{case}");
        let (errors, lines) = judged("log=/dev/null,stacks=off");
        let is_counted = matches!(verdict, Verdict::Possible(..));
        assert_eq!(errors.first().cloned(), expected.filter(|_| !is_counted), "{case}");
        let line = format!("possible, 1 time: {named}: nobody knows");
        assert_eq!(lines.get(1).cloned(), is_counted.then_some(line), "{case}");
    }
}

/// How sure a finding is comes with it, also if it has waited.
#[test]
fn a_report_says_how_sure_it_is() {
    let log = std::env::temp_dir().join(format!("order-check-sure-{}", std::process::id()));
    let calls = || [("cuLaunchKernel of k", launched(write())), ("cuMemsetD8Async", write())];
    let bytes = || bytes(0x1010..0x1014, [true, false]);
    for (verdict, word) in [
        (Verdict::Known, "[certain]"),
        (Verdict::Certain(bytes()), "[certain]"),
        (Verdict::Likely(bytes()), "[likely]"),
        (Verdict::Possible(0, "nobody knows".into()), "[possible]"),
    ] {
        for stacks in ["on", "off"] {
            let _ = std::fs::remove_file(&log);
            let settings = format!("log={},possible=on,stacks={stacks}", log.display());
            with_output(&settings, |output| {
                output.open();
                output.judged(found(calls(), None), verdict.clone());
                assert_eq!(output.held.len(), usize::from(stacks == "on"), "{verdict:?}");
                output.release_held();
            });
            let text = std::fs::read_to_string(&log).expect("it was written");
            assert!(text.contains(word), "{verdict:?}: {text}");
            assert_eq!(text.contains("nobody knows"), word == "[possible]", "{text}");
        }
    }
    std::fs::remove_file(&log).expect("it is there");
}

/// A pair is the same in either order, and is looked at so often.
#[test]
fn a_possible_pair_is_looked_at_so_often() {
    let pair = |names: [&'static str; 2]| found(names.map(|name| (name, write())), Some("f"));
    with_output("log=/dev/null", |output| {
        let (one, other) = (pair(["a", "b"]), pair(["a", "c"]));
        let mut turned = pair(["a", "b"]);
        core::mem::swap(&mut turned.first, &mut turned.second);
        for look in 1..=LOOKS {
            let report = if look % 2 == 1 { &one } else { &turned };
            assert_eq!(output.is_possible(report), [look == 1, look == LOOKS], "{look}");
        }
        assert_eq!(output.is_possible(&other), [true, false]);
        // Of those that there is no place for nobody asks again.
        for at in output.possible.pairs.len()..PAIRS {
            output.possible.pairs.insert([at.to_string(), String::new()], 1);
        }
        assert_eq!(output.is_possible(&pair(["a", "d"])), [false, true]);
        assert_eq!(output.is_possible(&other), [false, false]);
    });
}

/// Those that there is a place for are counted on.
#[test]
fn reasons_are_bounded() {
    with_output("log=/dev/null", |output| {
        let possible = |output: &mut Output, at: usize| {
            output.possible(format!("kernel {at}"), "it may".into());
        };
        (0..=REASONS).for_each(|at| possible(output, at));
        (0..3).for_each(|_| possible(output, 7));
        assert_eq!((output.possible.count, output.possible.reasons.len()), (260, REASONS));
        let lines = output.lines_of_possible();
        assert_eq!(lines[1], "possible, 4 times: kernel 7: it may");
    });
}

/// A name of a function is wanted as long as a pair with it waits. A pair waits its time, and so many do.
#[test]
fn findings_wait_for_the_stacks_of_launches() {
    let launch = ("cuLaunchKernel of k", launched(write()));
    let pair = |other: &'static str, trace| found([launch.clone(), (other, write())], trace);
    with_output("log=/dev/null", |output| {
        let wanted = |output: &Output| {
            let mut all: Vec<String> = output.stacks.wanted.iter().cloned().collect();
            all.sort();
            all
        };
        assert!(output.hold(pair("a", None), None).is_none());
        let mut turned = pair("a", None);
        core::mem::swap(&mut turned.first, &mut turned.second);
        assert!(output.hold(turned, None).is_none());
        assert!(output.hold(pair("b", None), None).is_none());
        assert_eq!(output.held.len(), 2);
        assert_eq!(wanted(output), ["a", "b", "cuLaunchKernel of k"]);
        assert!(output.hold(pair("a", Some("fill")), None).is_some());
        assert_eq!((wanted(output), output.held.len()), (vec!["b".into(), launch.0.into()], 1));
        output.begins("cuNext");
        assert_eq!(output.held.len(), 1);
        let long_ago = Instant::now().checked_sub(2 * HELD_FOR).expect("it runs for long");
        output.held[0].since = long_ago;
        output.begins("cuNext");
        assert_eq!((output.held.len(), output.findings.errors().len()), (0, 1));
        for at in 0..=HELD {
            let name: &'static str = String::leak(format!("call {at}"));
            assert_eq!(output.hold(pair(name, None), None).is_some(), at == HELD);
        }
    });
    // Without stacks there is nothing to wait for.
    with_output("log=/dev/null,stacks=off", |output| {
        assert!(output.hold(pair("a", None), None).is_some());
    });
}

/// Which calls have a stack.
#[test]
fn stacks_are_taken_where_they_are_shown() {
    let has = |output: &mut Output, call: &'static str| {
        output.begins(call);
        output.backtrace().is_some()
    };
    with_output("log=/dev/null", |output| {
        let launches = LAUNCHES.swap(false, Ordering::Relaxed);
        for begin in ALWAYS {
            assert!(has(output, String::leak(format!("{begin}Async"))), "{begin}");
        }
        let seldom = ["cuLaunchKernel of k", "cuEventRecord", "cuStreamWaitEvent", "cuCtxCreate"];
        assert_eq!(seldom.map(|call| has(output, call)), [false; 4]);
        output.want_stack("cuLaunchKernel of k");
        assert_eq!(seldom.map(|call| has(output, call)), [true, true, true, false]);
        assert!(!has(output, "cuLaunchKernel of l"));
        LAUNCHES.store(true, Ordering::Relaxed);
        assert!(has(output, "cuLaunchKernel of l"));
        LAUNCHES.store(launches, Ordering::Relaxed);
        // Work that this thread comes to see was done by another one.
        output.thread_of_host_function = Some(thread() + 1);
        assert!(!has(output, "cuMemAlloc_v2"));
        assert_eq!(output.thread(), ThreadId(thread() + 1));
        output.thread_of_host_function = Some(thread());
        assert!(has(output, "cuMemAlloc_v2"));
        output.thread_of_host_function = None;
        output.stacks.spent.set(ALLOWANCE + Duration::from_secs(3600));
        assert!(!has(output, "cuMemAlloc_v2"), "it would take too long");
    });
    with_output("log=/dev/null,stacks=off", |output| {
        assert!(!has(output, "cuMemAlloc_v2"));
        // A region costs nothing.
        push_region("step");
        assert!(has(output, "cuMemAlloc_v2") && has(output, "cuLaunchKernel of k"));
        pop_region();
    });
}

/// The name of a thread is its own, and that of another one is a number.
#[test]
fn a_thread_has_its_own_name() {
    with_output("log=/dev/null", |output| {
        let own = std::thread::current().name().expect("that of the test").to_owned();
        assert_eq!(output.thread_name(ThreadId(thread())), own);
        assert_eq!(output.thread_name(ThreadId(1 << 40)), (1_u64 << 40).to_string());
    });
}

/// A record that was lost is left out by its class.
#[test]
fn lost_records_have_their_class() {
    use cuda_order_check_engine::findings::Suppression;
    use cuda_order_check_engine::{EventId, Options, Warnings};
    let lost = || {
        let mut checker = Checker::new(Options::new().warnings(Warnings::all()));
        let work = [Access::write(0x1010, 64)];
        for (number, stream) in [(1, StreamId(1)), (3, StreamId(2))] {
            let call = |number| Call::new("call", number, ThreadId(1));
            checker
                .apply(call(number), Op::Work { stream, accesses: &work[..number as usize % 2] });
            let event = EventId(7);
            checker.apply(call(number + 1), Op::Record { event, stream, external: false });
        }
        let wait = Op::Wait { stream: StreamId(3), event: EventId(7), external: false };
        checker.apply(Call::new("call", 9, ThreadId(1)), wait);
        checker.take_findings()
    };
    for (class, left) in [("records", 0), ("objects", 1)] {
        with_output("log=/dev/null", |output| {
            output.settings.suppressed.push(Suppression::Class(class.to_owned()));
            output.open();
            lost().into_iter().for_each(|finding| output.finding(finding));
            let warnings = output.findings.warnings();
            let lost = warnings.iter().filter(|warning| warning.name() == "lost_record");
            assert_eq!(lost.count(), left, "{class}");
        });
    }
}

/// The reasons that came most often come first, and the number of others is said.
#[test]
fn possible_findings_are_summed_up() {
    for kernels in [0, 1, 2, SHOWN, SHOWN + 1, SHOWN + 5] {
        let lines = with_output("log=/dev/null", |output| {
            for (at, _) in (0..kernels).flat_map(|at| (0..=at).map(move |other| (at, other))) {
                output.possible(format!("kernel {at}"), "it may".into());
            }
            output.lines_of_possible()
        });
        let count = kernels * (kernels + 1) / 2;
        let first = match count {
            0 => None,
            1 => Some("1 possible finding was not reported: --possible".to_owned()),
            _ => Some(format!("{count} possible findings were not reported: --possible")),
        };
        let line = |at: usize| {
            let times = counted(at as u64 + 1, "times");
            format!("possible, {times}: kernel {at}: it may")
        };
        let mut expected: Vec<String> = first.into_iter().collect();
        expected.extend((0..kernels).rev().take(SHOWN).map(line));
        let others = kernels.saturating_sub(SHOWN);
        let last = format!("possible: and {others} other kernels");
        expected.extend((others > 0).then_some(last));
        assert_eq!(lines, expected);
    }
}

/// A launch without a stack waits for one that has it; a region is no stack.
#[test]
fn a_finding_is_held_until_its_launch_has_a_stack() {
    let pair = [("cuLaunchKernel of k", write()), ("cuMemsetD8Async", write())];
    let report = |trace| found(pair.clone(), trace);
    for trace in [None, Some("Region: step")] {
        let all = with_output("log=/dev/null", |output| {
            let held = output.hold(report(trace), None).is_none();
            let wanted = output.stacks.wanted.len();
            let known = output.hold(report(trace), None).is_none();
            let found = output.hold(report(Some("Region: step\nfill")), None).is_some();
            (held, wanted, known, found, output.stacks.wanted.len(), output.held.len())
        });
        assert_eq!(all, (true, 2, true, true, 0, 0), "{trace:?}");
    }
}
