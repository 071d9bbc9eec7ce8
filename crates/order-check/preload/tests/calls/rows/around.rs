//! A call, what is around it, and what is read from the findings.

use std::collections::{BTreeMap, BTreeSet};

use cuda_events::sys::CUstream;
use cuda_events_test_support::raw::{NOT_READY, OK};
use cuda_order_check_engine::{Problem, Report, Side};

use super::Area::{Got, Host};
use super::row::Row;
use super::run::{Mode, Run, TESTED};
use super::{ACTORS, AREAS, Area, BEGIN, BYTES, CALL, HOST, LATER, Order, Touch};

/// Which of the programs it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Probe {
    /// Other streams have read everything.
    Read,
    /// Other streams have written everything.
    Written,
    Order,
}

/// A call, and what is around it.
pub(super) struct Around<'a> {
    pub(super) row: &'a Row,
    pub(super) run: &'a Run,
    pub(super) probe: Probe,
    /// What it is to touch, and each byte of that.
    pub(super) touches: &'a [Touch],
    pub(super) bytes: Vec<(Area, i64)>,
    /// The streams that have read or written everything.
    pub(super) others: [CUstream; 6],
}

impl Around<'_> {
    /// The byte that an actor writes.
    pub(super) fn byte(&self, actor: usize) -> u64 {
        self.run.at(Host) - BEGIN + actor as u64
    }

    /// A byte of the call's for each actor before it, and then for each after it. Those of the
    /// call's streams come first, where there are few bytes.
    pub(super) fn spot(&self, at: usize) -> Option<(Area, i64)> {
        let (at, count) = (at / 8 * 8 + [0, 3, 2, 1, 4, 5, 6, 7][at % 8], self.bytes.len());
        self.bytes.get(if count < 16 { at } else { at * count / 16 }).copied()
    }

    pub(super) fn address(&self, (area, byte): (Area, i64)) -> u64 {
        self.run.at(area).wrapping_add_signed(byte)
    }

    /// The call gives out the memory that it touches.
    pub(super) fn gives(&self) -> bool {
        self.bytes.iter().any(|(area, _)| *area == Got)
    }

    /// Another stream reads or writes a whole area.
    pub(super) fn other(&self, area: Area) {
        let (run, write) = (self.run, self.probe == Probe::Written);
        let before = if area == Got { BYTES as u64 / 2 } else { 0 };
        let place = (run.at(area) - before, BYTES as usize);
        let stream = self.others[area as usize];
        run.in_context(run.contexts[3], || run.stream_work(area as usize, stream, place, write));
    }

    pub(super) fn before(&self) {
        if self.probe != Probe::Order {
            return AREAS.into_iter().filter(|area| *area != Got).for_each(|area| self.other(area));
        }
        for one in 0..CALL {
            self.run.work(one, false, (self.byte(one), 1), true);
            if let Some(at) = self.spot(one).filter(|(area, _)| *area != Got) {
                self.run.work(one, false, (self.address(at), 1), true);
            }
        }
    }

    pub(super) fn after(&self) {
        if self.probe != Probe::Order {
            if self.run.end.get() != 0 {
                self.other(Got);
            }
            return (self.row.then)(self.run);
        }
        (self.row.then)(self.run);
        for two in 0..CALL {
            self.run.work(two, true, (self.byte(0), CALL), false);
            if let Some(at) = self.spot(8 + two) {
                self.run.work(two, true, (self.address(at), 1), true);
            }
        }
    }

    /// Makes the call.
    pub(super) fn call(&self, name: &str, words: &[u64]) -> u32 {
        let (row, run) = (self.row, self.run);
        (row.before)(run);
        {
            let mut tested = TESTED.lock().unwrap();
            (tested.mode, tested.gives) = (run.mode, (row.gives)(run));
        }
        run.raw.set_current(run.contexts[row.current]);
        let mut code = run.call(name, words);
        while code == NOT_READY {
            std::thread::yield_now();
            code = run.call(name, words);
        }
        TESTED.lock().unwrap().mode = Mode::Soft;
        run.raw.set_current(run.contexts[0]);
        run.done.set(code == OK);
        if code == OK && run.end.get() == 0 && self.gives() {
            run.end.set(run.got(0) + 64);
        }
        code
    }

    /// What is wrong with the order that the call makes.
    pub(super) fn ordered(&self, reports: &[&Report], mut claimed: Order) -> Option<String> {
        let pairs = (0..=CALL).flat_map(|one| (0..=CALL).map(move |two| (one, two)));
        let asked = |&(one, two): &(usize, usize)| match (one, two) {
            (CALL, two) => two != CALL && self.spot(8 + two).is_some(),
            // Nobody was there before memory that the call gives out.
            (one, CALL) => self.spot(one).is_some() && !self.gives(),
            (one, two) => one != two,
        };
        let mut all: Order = pairs.filter(asked).collect();
        for report in reports {
            let sides = [&report.first, &report.second];
            let Some(at) = report.shared.first().map(|range| range.start) else { continue };
            let later = sides.into_iter().find(|side| *side.call.name == *LATER);
            let one = at.wrapping_sub(self.byte(0)) as usize;
            if let Some(by) = later.filter(|_| one < CALL) {
                // The default stream has another number here.
                let is = |stream: u64| {
                    self.run.actors.iter().position(|own| own.addr() as u64 == stream)
                };
                let two = by.agent.stream_id().map_or(HOST, |stream| is(stream.0).unwrap_or(3));
                all.remove(&(one, two));
            }
            let looks = ["writes", "host_writes", LATER];
            let looks = sides.into_iter().any(|side| looks.contains(&&*side.call.name));
            let is_at =
                |spot| looks && self.spot(spot).is_some_and(|spot| self.address(spot) == at);
            for actor in 0..CALL {
                if is_at(actor) {
                    all.remove(&(actor, CALL));
                }
                if is_at(8 + actor) {
                    all.remove(&(CALL, actor));
                }
            }
        }
        claimed.retain(asked);
        let text = |order: &Order, without: &Order| -> String {
            let name = |at: &usize| ACTORS.chars().nth(*at).unwrap_or('C');
            order
                .difference(without)
                .map(|(one, two)| format!(" {}>{}", name(one), name(two)))
                .collect()
        };
        let (lacks, more) = (text(&claimed, &all), text(&all, &claimed));
        (all != claimed).then(|| format!("no order{lacks}; unclaimed{more}"))
    }

    /// What is wrong with the bytes that it touches, and with the errors.
    pub(super) fn touched(&self, reports: &[&Report], wanted: usize) -> Option<String> {
        let mut touched: BTreeMap<Area, BTreeSet<i64>> = BTreeMap::new();
        let mut finds = String::new();
        let mut count = 0;
        for report in reports {
            let by = |side: &Side| {
                let stream = side.agent.stream_id()?.0;
                self.others.iter().position(|other| other.addr() as u64 == stream)
            };
            match [&report.first, &report.second].into_iter().find_map(by) {
                Some(area) if report.problem == Problem::Race => {
                    let area = AREAS[area];
                    for range in &report.shared {
                        let bytes =
                            range.clone().map(|at| at.wrapping_sub(self.run.at(area)) as i64);
                        touched.entry(area).or_default().extend(bytes);
                    }
                }
                _ => {
                    count += 1;
                    finds += &format!("\n{report}");
                }
            }
        }
        let mut claimed: BTreeMap<Area, BTreeSet<i64>> = BTreeMap::new();
        for (write, area, range) in self.touches {
            if *write || self.probe == Probe::Written {
                claimed.entry(*area).or_default().extend(range.clone());
            }
        }
        let right = touched == claimed && count == wanted;
        let text = |all: BTreeMap<Area, BTreeSet<i64>>| -> String {
            all.iter().map(|(area, bytes)| format!(" {area:?}{}", ranges(bytes))).collect()
        };
        let [touched, claimed] = [touched, claimed].map(text);
        let errors = format!("{count} errors and not {wanted}{finds}");
        (!right).then(|| format!("it touches{touched} and not{claimed}; {errors}"))
    }
}

/// ` 3..7 9..10`
fn ranges(bytes: &BTreeSet<i64>) -> String {
    let mut text = String::new();
    for byte in bytes {
        if !bytes.contains(&(byte - 1)) {
            text += &format!(" {byte}..");
        }
        if !bytes.contains(&(byte + 1)) {
            text += &(byte + 1).to_string();
        }
    }
    text
}
