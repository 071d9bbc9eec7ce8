//! Accesses to bytes and to objects, and what is found of them.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use crate::checker::{Checker, HostOrder, Mark, PLACES, Place, TRACES};
use crate::clock::{Clock, Slot};
use crate::op::{Access, AccessKind, By, Call};
use crate::report::{Agent, Finding, Found, Part, Problem, Report, Side, Warning, Who, by_name};
use crate::shadow::{Entry, Hit, Origin};

impl Checker {
    /// One operation touches these bytes in one way.
    pub(super) fn touch(
        &mut self,
        kind: AccessKind,
        accesses: &[Access],
        (slot, time): (Slot, u64),
        clock: &Clock,
        agent: &Agent,
        call: &Arc<Call>,
    ) {
        let origin = Arc::new(Origin { call: call.clone(), agent: agent.clone() });
        let entry = Entry { slot, time, kind, origin };
        if !self.polled.is_empty() {
            self.touch_polled(accesses, &entry);
        }
        self.touch_memory(accesses, &entry, clock);
        if matches!(kind, AccessKind::Allocate | AccessKind::Free) {
            for access in accesses.iter().filter(|access| access.stride.is_none()) {
                match kind {
                    AccessKind::Free => self.allocations.free(&access.range),
                    _ => self.allocations.forget(&access.range),
                }
                // Memory that begins on the host does so by `Op::Allocate`, or is ordinary memory.
                if kind == AccessKind::Allocate && agent.stream().is_some() {
                    self.allocations.begin(access.range.clone(), call);
                }
            }
        }
    }

    /// The host reads what it may have polled, or something else is written there.
    fn touch_polled(&mut self, accesses: &[Access], new: &Entry) {
        let touched = |of: &Range<u64>| accesses.iter().any(|access| access.touches(of));
        let reads = matches!(new.kind, AccessKind::Read | AccessKind::AtomicRead);
        if !reads {
            self.polled.retain(|(of, _)| !touched(of));
        } else if matches!(new.origin.agent.0, Who::Thread(_)) && new.kind == AccessKind::Read {
            let polled = self.polled.iter().filter(|(of, _)| touched(of));
            let hits: Vec<Hit> = polled
                .map(|(of, earlier)| Hit {
                    earlier: earlier.clone(),
                    ordered: false,
                    ranges: vec![of.clone()],
                })
                .collect();
            for hit in hits {
                self.report(Problem::Race, hit, new, &Clock::default());
            }
        }
    }

    fn touch_memory(&mut self, accesses: &[Access], entry: &Entry, clock: &Clock) {
        let floor = &self.floor;
        let mut hits = std::mem::take(&mut self.hits);
        let is_before = |slot, time| clock.get(slot) >= time || floor.get(slot) >= time;
        for Access { range, stride, .. } in accesses {
            match stride {
                None => self.memory.access(range, entry, &is_before, &mut hits),
                Some(stride) => {
                    self.memory.access_rows(range, *stride, entry, &is_before, &mut hits);
                }
            }
        }
        for mut hit in hits.drain(..) {
            // Rows may come in any order.
            hit.ranges.sort_unstable_by_key(|range| range.start);
            let problem = if hit.ordered { Problem::UseAfterFree } else { Problem::Race };
            self.report(problem, hit, entry, clock);
        }
        self.hits = hits;
    }

    /// A call uses an event or a stream, or destroys it.
    pub(super) fn object(&mut self, call: &Arc<Call>, range: Range<u64>, kind: AccessKind) {
        // Where calls are in one order, so are these.
        if self.options.host_order == HostOrder::Submission || matches!(call.by, By::Function(_)) {
            return;
        }
        let (slot, mut clock) = self.actor(call.by);
        let time = self.tick(slot, &mut clock, call);
        self.learn(call.by, &clock);
        let origin = Arc::new(Origin { call: call.clone(), agent: self.agent(call.by) });
        let entry = Entry { slot, time, kind, origin };
        let floor = &self.floor;
        let mut hits = Vec::new();
        let is_before = |slot, time| clock.get(slot) >= time || floor.get(slot) >= time;
        self.objects.access(&range, &entry, &is_before, &mut hits);
        for hit in hits {
            // A record and a wait leave the object as it is.
            let destroyed = [hit.earlier.kind, kind].contains(&AccessKind::Write);
            let problem = match destroyed {
                true => Problem::DestroyedWhileUsed,
                false => Problem::RecordedWhileAwaited,
            };
            self.report(problem, hit, &entry, &clock);
        }
    }

    /// The second call uses an event or a stream that the first has destroyed, or destroys one that
    /// the first, which is under way, uses.
    pub(crate) fn object_misused(&mut self, problem: Problem, calls: [Arc<Call>; 2]) {
        let [first, second] = calls.map(|call| {
            let kind = AccessKind::Write;
            let origin = Arc::new(Origin { agent: self.agent(call.by), call });
            self.side(Entry { slot: 0, time: 0, kind, origin })
        });
        let [one, two] = [&first, &second].map(|side| traced_place(&side.call, &side.agent));
        if !once(&mut self.reported, one, two) {
            return;
        }
        let found = Found {
            problem,
            first,
            second,
            shared: Vec::new(),
            known: None,
            turned: false,
            siblings: false,
            under_way: true,
            outside: Vec::new(),
        };
        self.findings.push(Finding::Report(found.into()));
    }

    pub(super) fn side(&self, entry: Entry) -> Side {
        let name = |thread| {
            self.threads.get(&thread).map_or_else(|| thread.0.to_string(), |of| of.name.to_string())
        };
        let Origin { call, agent } = &*entry.origin;
        let thread = by_name(call.by, name);
        Side { call: call.clone(), agent: agent.clone(), kind: entry.kind, thread }
    }

    pub(super) fn report(&mut self, problem: Problem, hit: Hit, second: &Entry, clock: &Clock) {
        let first = hit.earlier;
        if self.options.warnings.ignored_query {
            self.ignored_query(&first, second);
        }
        let mut places = [&first, second].map(|side| place(&side.origin.call, &side.origin.agent));
        if [&first, second].iter().any(|side| has_trace(&side.origin.call)) {
            // Making text of a backtrace takes long. A program that is wrong in a loop comes here
            // in each round.
            let looked = self.traced.entry(places.clone()).or_default();
            *looked += 1;
            if *looked > TRACES {
                return;
            }
            places =
                [&first, second].map(|side| traced_place(&side.origin.call, &side.origin.agent));
        }
        let [one, two] = places;
        if !once(&mut self.reported, one, two) {
            return;
        }
        let known = clock.get(first.slot).max(self.floor.get(first.slot));
        let recent = self.slots.get(first.slot as usize).map(|state| &state.recent);
        let known = recent
            .into_iter()
            .flatten()
            .rev()
            .find(|call| call.0 <= known)
            .map(|call| call.1.clone());
        let nodes = [&first, second]
            .map(|side| matches!(side.origin.agent.0, Who::Stream(_, Part::Node(_))));
        let stream = second.origin.agent.stream().and_then(|stream| self.streams.get(&stream.id));
        // Work that was held back is come to late. An order that the program can make follows its
        // calls.
        let one_sequence = match (first.origin.call.by, second.origin.call.by) {
            (By::Thread(_), By::Thread(_)) if self.options.host_order == HostOrder::Submission => {
                true
            }
            (one, two) => one == two,
        };
        let found = Found {
            problem,
            turned: problem == Problem::Race
                && one_sequence
                && second.origin.call.number < first.origin.call.number,
            under_way: false,
            siblings: nodes == [true, true] && Arc::ptr_eq(&first.origin.call, &second.origin.call),
            first: self.side(first),
            second: self.side(second.clone()),
            shared: hit.ranges,
            known,
            outside: stream
                .map(|stream| {
                    // What the stream waited for later is no order of this call's.
                    let before =
                        stream.outside.iter().filter(|of| of.0 <= second.origin.call.number);
                    before.map(|of| of.1.clone()).collect()
                })
                .unwrap_or_default(),
        };
        let mut report = Report::from(found);
        if !problem.is_of_an_object() {
            report.allocation =
                report.shared.first().and_then(|bytes| self.allocations.around(bytes.start));
        }
        self.findings.push(Finding::Report(report));
    }

    pub(super) fn ignored_query(&mut self, first: &Entry, second: &Entry) {
        let (Some(_), By::Thread(thread), Who::Thread(_)) =
            (first.origin.agent.stream(), second.origin.call.by, &second.origin.agent.0)
        else {
            return;
        };
        let Some(thread) = self.threads.get(&thread) else { return };
        let about = |mark: &Mark| {
            mark.0
                .iter()
                .any(|point| point.clock().is_some_and(|clock| clock.get(first.slot) >= first.time))
        };
        let query =
            thread.queries.iter().rev().find(|query| about(&query.0)).map(|query| query.1.clone());
        if let Some(query) = query {
            self.warn(
                &query.clone(),
                &second.origin.call,
                Warning::IgnoredQuery { query, access: second.origin.call.clone() },
            );
        }
    }

    pub(super) fn warn(&mut self, one: &Arc<Call>, two: &Arc<Call>, warning: Warning) {
        let place = |call: &Arc<Call>| {
            let location = call.location.clone();
            // One call may be wrong in several ways.
            let (kind, what) = match &warning {
                Warning::NeverRecorded { event, .. } => ("never recorded", &**event),
                Warning::LostRecord { event, .. } => ("lost record", &**event),
                Warning::IgnoredQuery { .. } => ("ignored query", ""),
                Warning::UselessWait { event, .. } => ("useless wait", &**event),
                Warning::CaptureLeak { what, .. } => ("capture leak", &**what),
            };
            let place = location.ok_or_else(|| format!("{} {what}", call.name));
            (Cow::Borrowed(kind), place)
        };
        if once(&mut self.warned, place(one), place(two)) {
            self.findings.push(Finding::Warning(warning));
        }
    }
}

fn place(call: &Call, agent: &Agent) -> Place {
    // Default streams of several contexts or threads have one name.
    let agent = || match agent.stream() {
        Some(stream) => format!("{agent} {:#x}", stream.id.0),
        None => agent.to_string(),
    };
    (call.name.clone(), call.location.clone().ok_or_else(agent))
}

/// Whether its backtrace says more than the place does.
fn has_trace(call: &Call) -> bool {
    call.location.is_none() && call.backtrace.is_some()
}

/// The place given by the backtrace. If its frames have no names, the place also contains the
/// stream or thread.
fn traced_place(call: &Call, agent: &Agent) -> Place {
    let (name, place) = place(call, agent);
    let text = match &call.backtrace {
        Some(trace) if has_trace(call) => trace.to_string(),
        _ => return (name, place),
    };
    if text.trim().is_empty() || text.contains("<unknown>") {
        return (name, place.map_err(|agent| format!("{agent} {text}")));
    }
    (name, Err(text))
}

/// Whether a pair of places is new. Beyond [`PLACES`] of them none is.
fn once(seen: &mut HashSet<(Place, Place)>, one: Place, two: Place) -> bool {
    let turned = (two, one);
    if seen.len() >= PLACES || seen.contains(&turned) {
        return false;
    }
    seen.insert((turned.1, turned.0))
}
