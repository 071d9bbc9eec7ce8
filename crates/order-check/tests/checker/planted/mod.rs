//! Small programs with one planted error each, and the same programs mended. Independent threads
//! make their calls in forty orders; the error is reported in each, and the mended program is
//! silent in each.
//!
//! Those that a program can make with real calls and one thread are in `tests/common/planted`, where
//! the software driver and the library in front of a driver run them.

mod steps;
mod table;

use std::collections::BTreeSet;

use crate::common::{Random, apply, lines};
use crate::planted::steps::At;
use crate::planted::table::table;
use cuda_order_check_engine::{
    By, Checker, Finding, HostOrder, Options, Problem, ThreadId, Warning, Warnings,
};

const SEEDS: u64 = 40;

/// What should be reported.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Expect {
    /// A race between the calls that are marked 1 and 2.
    Race,
    UseAfterFree,
    Destroyed,
    Recorded,
    NeverRecorded,
    LostRecord,
    IgnoredQuery,
    UselessWait,
    CaptureLeak,
}

use Expect::{
    CaptureLeak, Destroyed, IgnoredQuery, LostRecord, NeverRecorded, Race, Recorded, UseAfterFree,
    UselessWait,
};

#[derive(Clone)]
struct Planted {
    kind: &'static str,
    expect: Expect,
    order: HostOrder,
    /// The steps of each thread.
    threads: Vec<Vec<At>>,
    line: u32,
}

/// The steps in an order in which the threads may have made them: each thread's in its own, stages
/// one after the other.
fn shuffled(planted: &Planted, mended: bool, random: &mut Random) -> Vec<At> {
    let mut threads: Vec<Vec<At>> = Vec::new();
    for (number, steps) in planted.threads.iter().enumerate() {
        let steps = steps.iter().filter(|at| at.only.is_none_or(|only| only == mended)).cloned();
        let of_thread = |mut at: At| {
            at.stage = if mended { at.stage } else { at.faulty_stage };
            if at.step.by == By::Thread(ThreadId(0)) {
                at.step.by = By::Thread(ThreadId(number as u64));
            }
            at
        };
        threads.push(steps.map(of_thread).rev().collect());
    }
    let mut all = Vec::new();
    loop {
        let stage = threads.iter().flatten().map(|at| at.stage).min();
        let ready: Vec<usize> = (0..threads.len())
            .filter(|&thread| threads[thread].last().is_some_and(|at| Some(at.stage) == stage))
            .collect();
        if ready.is_empty() {
            return all;
        }
        let thread = ready[random.below(ready.len() as u64) as usize];
        all.extend(threads[thread].pop());
    }
}

fn matches(expect: Expect, finding: &Finding) -> bool {
    match (expect, finding) {
        (Race, Finding::Report(report)) => report.problem == Problem::Race,
        (UseAfterFree, Finding::Report(report)) => report.problem == Problem::UseAfterFree,
        (Destroyed, Finding::Report(report)) => report.problem == Problem::DestroyedWhileUsed,
        (Recorded, Finding::Report(report)) => report.problem == Problem::RecordedWhileAwaited,
        (NeverRecorded, Finding::Warning(Warning::NeverRecorded { .. }))
        | (LostRecord, Finding::Warning(Warning::LostRecord { .. }))
        | (IgnoredQuery, Finding::Warning(Warning::IgnoredQuery { .. }))
        | (UselessWait, Finding::Warning(Warning::UselessWait { .. }))
        | (CaptureLeak, Finding::Warning(Warning::CaptureLeak { .. })) => true,
        _ => false,
    }
}

/// The lines that a warning names.
fn warned(warning: &Warning) -> BTreeSet<u64> {
    let calls: Vec<u64> = match warning {
        Warning::NeverRecorded { wait, .. } | Warning::UselessWait { wait, .. } => {
            vec![wait.number]
        }
        Warning::LostRecord { lost, wait, .. } => vec![lost.number, wait.number],
        Warning::IgnoredQuery { query, access } => vec![query.number, access.number],
        Warning::CaptureLeak { call, .. } => vec![call.number],
        _ => Vec::new(),
    };
    calls.into_iter().collect()
}

fn findings(planted: &Planted, steps: &[At]) -> Vec<Finding> {
    // Only the warning that is looked for, so that each is seen to have a switch of its own.
    let mut warnings = Warnings::NONE;
    warnings.never_recorded = planted.expect == NeverRecorded;
    warnings.lost_record = planted.expect == LostRecord;
    warnings.ignored_query = planted.expect == IgnoredQuery;
    warnings.useless_wait = planted.expect == UselessWait;
    warnings.capture_leak = planted.expect == CaptureLeak;
    let mut checker = Checker::new(Options::new().host_order(planted.order).warnings(warnings));
    for (line, at) in steps.iter().enumerate() {
        apply(&mut checker, line + 1, &at.step);
    }
    checker.take_findings()
}

fn text(planted: &Planted, seed: u64, steps: &[At], findings: &[Finding]) -> String {
    let mut text = format!("line {}, {}, seed {seed}:\n", planted.line, planted.kind);
    for (line, at) in steps.iter().enumerate() {
        text += &format!("{:3} {:?} {:?}\n", line + 1, at.step.by, at.step.does);
    }
    for finding in findings {
        text += &format!("{finding}\n");
    }
    text
}

#[test]
fn planted_errors_are_reported_and_mended_ones_are_not() {
    let table = table();
    let kinds: BTreeSet<_> = table.iter().map(|planted| planted.kind).collect();
    assert!(
        kinds.len() >= 60 && kinds.len() == table.len(),
        "{} kinds of {}",
        kinds.len(),
        table.len()
    );
    for planted in &table {
        for seed in 0..SEEDS {
            let steps = shuffled(planted, false, &mut Random(seed));
            let marked: BTreeSet<u64> =
                (1..).zip(&steps).filter(|(_, at)| at.mark > 0).map(|(line, _)| line).collect();
            assert!(!marked.is_empty() && marked.len() <= 2);
            let found = findings(planted, &steps);
            let right = found.iter().filter(|finding| {
                let (one, two) = match finding {
                    Finding::Report(_) => lines(finding).unwrap(),
                    Finding::Warning(warning) => {
                        return warned(warning) == marked && matches(planted.expect, finding);
                    }
                    _ => return false,
                };
                matches(planted.expect, finding)
                    && marked == BTreeSet::from([one as u64, two as u64])
            });
            assert_eq!(right.count(), 1, "{}", text(planted, seed, &steps, &found));
            // A query that was not looked at is a race as well, by the same two places or others.
            let others = found.iter().filter(|finding| !matches(planted.expect, finding)).count();
            let same = found.iter().filter(|finding| matches(planted.expect, finding)).count();
            let extra = usize::from(planted.expect == IgnoredQuery);
            assert_eq!((same, others), (1, extra), "{}", text(planted, seed, &steps, &found));

            let steps = shuffled(planted, true, &mut Random(seed));
            let found = findings(planted, &steps);
            assert!(found.is_empty(), "mended, {}", text(planted, seed, &steps, &found));
        }
    }
}
