//! Every hooked function has a row: what a call touches, to the byte, and what it orders.
//!
//! Each name is called through the stand-in: by the software driver, if that has the function, whose
//! own checker must find the same; otherwise by a driver that does nothing and says that it has; and
//! by one that refuses. What takes a stream gets one, and the default stream. Programs are around
//! the call. In some of them other streams touch all memory before: what is reported are the bytes
//! that the call touches. In the other one everybody who may be ordered writes a byte before the
//! call, and reads everybody's after it: what is not reported is what the call orders.

// Rows are read beside each other.
#[rustfmt::skip]
mod table;

mod around;
mod row;
mod run;

use std::collections::BTreeSet;
use std::ops::Range;

use cuda_events_test_support::aside;
use cuda_events_test_support::planted::NON_BLOCKING;
use cuda_events_test_support::raw::OK;
use cuda_order_check_engine::{Finding, Report};
use cuda_order_check_preload as preload;

use Area::{From, From1, Got, Host, To, To1};
use around::{Around, Probe};
use row::Row;
use run::{Mode, Run, TESTED, Tested};

/// Memory that calls touch, each with room around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Area {
    /// Device memory that calls write.
    To,
    From,
    /// That of the second device.
    To1,
    From1,
    /// Pinned memory.
    Host,
    /// What the call has given out, counted from its end.
    Got,
}

const AREAS: [Area; 6] = [To, From, To1, From1, Host, Got];
/// Where an area begins in its memory, and what its bytes are.
const BEGIN: u64 = 1024;
const BYTES: i64 = 512;

/// The bytes that a call touches.
type Touch = (bool, Area, Range<i64>);

fn reads(area: Area, range: Range<i64>) -> Vec<Touch> {
    vec![(false, area, range)]
}

fn writes(area: Area, range: Range<i64>) -> Vec<Touch> {
    vec![(true, area, range)]
}

/// So many rows of five bytes, each `pitch` after the one before it.
fn rows(write: bool, area: Area, first: i64, [pitch, height]: [i64; 2]) -> Vec<Touch> {
    (0..height).map(|row| (write, area, first + row * pitch..first + row * pitch + 5)).collect()
}

/// Who may be ordered: streams, and the host.
///
/// A and B do not block, L does, and P is the thread's default stream: all of the first device's
/// context. D does not block, and E does: they are of the second device's. T is of a third context.
const ACTORS: &str = "ABLPDETH";
const HOST: usize = 7;
/// The call that the accesses after the call have, as the stand-in reports each two calls once.
const LATER: &str = "later";
/// The place of the call itself in an order.
const CALL: usize = 8;

/// Pairs of operations of which the first is before the second.
type Order = BTreeSet<(usize, usize)>;

/// `AB>H *>T`; S is the stream of the call, with M also that of the second device if that takes
/// part in a legacy stream, and C what the call does.
fn order(text: &str, stream: &str) -> Order {
    let side = |text: &str| -> Vec<usize> {
        let text = text
            .replace('*', ACTORS)
            .replace('M', if stream == "LP" { "LPE" } else { stream })
            .replace('S', stream);
        let at = |letter| if letter == 'C' { CALL } else { ACTORS.find(letter).expect("an actor") };
        text.chars().map(at).collect()
    };
    let mut all = Order::new();
    for pair in text.split_whitespace() {
        let (one, two) = pair.split_once('>').expect("an order");
        all.extend(
            side(one).into_iter().flat_map(|one| side(two).into_iter().map(move |two| (one, two))),
        );
    }
    // What the host has done or seen is before what is submitted later.
    all.insert((HOST, CALL));
    all.extend((0..HOST).map(|at| (HOST, at)));
    let seen: Vec<usize> = all.iter().filter(|pair| pair.1 == HOST).map(|pair| pair.0).collect();
    all.extend(seen.into_iter().flat_map(|one| (0..HOST).map(move |at| (one, at))));
    all
}

/// The versions of a name that have its parameters, with and without suffixes, have one row.
fn row_of<'a>(table: &'a [Row], name: &str) -> Vec<&'a Row> {
    let plain = ["_ptsz", "_ptds"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    let base = match plain.rsplit_once("_v") {
        Some((base, version)) if version.parse::<u32>().is_ok() => base,
        _ => plain,
    };
    let rows = |name: &str| -> Vec<&Row> { table.iter().filter(|row| row.has(name)).collect() };
    let own = rows(plain);
    if own.is_empty() { rows(base) } else { own }
}

/// One of the programs around a call: what is wrong.
fn program(row: &Row, name: &str, (mode, default): (Mode, bool), probe: Probe) -> Vec<String> {
    *TESTED.lock().unwrap() = Tested {
        name: name.to_owned(),
        like: row.like,
        mode: Mode::Soft,
        gives: Vec::new(),
        real: [0; 2],
        memory: 0,
    };
    let mut run = Run::new(mode, default);
    if mode == Mode::Soft && TESTED.lock().unwrap().real == [0; 2] {
        run.mode = Mode::Stub;
    }
    let (run, mode) = (&run, run.mode);
    run.raw.set_current(run.contexts[3]);
    let others = AREAS.map(|_| run.raw.stream(NON_BLOCKING));
    run.raw.set_current(run.contexts[0]);
    let (claims, touches, finds) = match mode {
        Mode::Refused => (row.refused.0, &row.refused.1, row.refused.2),
        _ => (row.orders, &row.touches, row.finds),
    };
    let of_touch =
        |(_, area, range): &Touch| range.clone().map(|at| (*area, at)).collect::<Vec<_>>();
    let bytes = touches.iter().flat_map(of_touch).collect();
    let around = Around { row, run, probe, touches, bytes, others };
    (row.setup)(run);
    let words = (row.args)(run);
    around.before();
    let code = around.call(name, &words);
    around.after();
    let found = preload::take_findings();
    let reports: Vec<_> = found.iter().filter_map(Finding::report).collect();
    let mut wrong = Vec::new();
    if (code == OK) == (mode == Mode::Refused) {
        wrong.push(format!("it returned {code}"));
    }
    if mode == Mode::Soft && !row.differs {
        let mut own: Vec<_> = run.raw.soft.order_findings().iter().map(parts).collect();
        let mut found: Vec<_> = reports.iter().map(|report| parts(report)).collect();
        own.sort();
        found.sort();
        if own != found {
            wrong.push(format!("the driver finds\n  {own:x?}\n  and not\n  {found:x?}"));
        }
    }
    let stream = match (default, name.ends_with("_ptsz") || name.ends_with("_ptds")) {
        (false, _) => "A",
        (true, false) => "LP",
        (true, true) => "P",
    };
    wrong.extend(match probe {
        Probe::Order => around.ordered(&reports, order(claims, stream)),
        _ => around.touched(&reports, finds),
    });
    wrong
}

/// What the stand-in and the driver say alike of an error. (A default stream has another number
/// here and there.)
fn parts(report: &Report) -> (String, Vec<(u64, u64)>) {
    let ranges = report.shared.iter().map(|range| (range.start, range.end));
    (format!("{:?}", report.problem), ranges.collect())
}

/// The names of the hooked functions.
fn names() -> impl Iterator<Item = &'static str> {
    preload::names().map(|name| name.to_str().expect("a name of the driver"))
}

#[test]
fn each_hooked_function_has_a_row() {
    let table = table::table();
    let without: Vec<_> = names().filter(|name| row_of(&table, name).is_empty()).collect();
    assert_eq!(without, [""; 0], "hooks without a row");
    let has = |own: &str| names().any(|name| row_of(&table, name).iter().any(|row| row.has(own)));
    let unused: Vec<_> =
        table.iter().flat_map(|row| row.names.split_whitespace()).filter(|own| !has(own)).collect();
    assert_eq!(unused, [""; 0], "rows of functions that are not hooked");
}

/// How many tests have a part of the names each.
const PARTS: usize = 4;

/// The calls of some of the names do what their rows say.
#[track_caller]
fn rows_hold(part: usize) {
    let table = table::table();
    let (mut wrong, mut calls) = (Vec::new(), 0);
    for name in names().skip(part).step_by(PARTS) {
        for row in row_of(&table, name) {
            let programs = row.modes.iter().flat_map(|mode| {
                let first = if *mode == Mode::Refused { row.streams.len() - 1 } else { 0 };
                row.streams[first..].iter().map(move |default| (*mode, *default))
            });
            // With writes alone, it does not matter whether others have written or read.
            let reads = row.touches.iter().any(|(write, ..)| !write);
            for (mode, default) in programs {
                for probe in [Probe::Read, Probe::Written, Probe::Order] {
                    if match probe {
                        Probe::Read => reads && mode == Mode::Refused,
                        Probe::Written => !reads,
                        Probe::Order => false,
                    } {
                        continue;
                    }
                    calls += 1;
                    let all = program(row, name, (mode, default), probe).into_iter();
                    let stream = if default { "default stream" } else { "stream" };
                    wrong.extend(
                        all.map(|wrong| format!("{name} ({mode:?}, {stream}, {probe:?}): {wrong}")),
                    );
                }
            }
        }
    }
    let count = wrong.len();
    assert_eq!(count, 0, "of {calls} programs {count} differ:\n{}", wrong.join("\n"));
}

#[test]
fn rows_hold_1() {
    aside!();
    rows_hold(0);
}

#[test]
fn rows_hold_2() {
    aside!();
    rows_hold(1);
}

#[test]
fn rows_hold_3() {
    aside!();
    rows_hold(2);
}

#[test]
fn rows_hold_4() {
    aside!();
    rows_hold(3);
}
