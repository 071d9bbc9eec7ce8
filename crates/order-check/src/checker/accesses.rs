//! Accesses to bytes and to objects, by agents, and what is found of them.

use std::ops::Range;
use std::sync::Arc;

use crate::agent::{Agent, Part, Who};
use crate::allocations::Allocations;
use crate::checker::nearby::Nearby;
use crate::checker::options::HostOrder;
use crate::checker::reports::Reports;
use crate::checker::slots::Slots;
use crate::checker::threads::Threads;
use crate::clock::{Clock, Slot};
use crate::op::{Access, AccessKind, By, Call, EventId, Other, StreamId, ThreadId};
use crate::report::{Between, Finding, Found, Problem, Report, Side, Warning, by_name};
use crate::shadow::{Check, Entry, Hit, Origin, Shadow};
use crate::task::{Actor, Mark};

/// The maximum of polled writes that are kept.
const POLLED: usize = 64;

/// Where an object is among the objects: events at even places, streams at odd ones.
pub(super) fn is_event(event: EventId) -> Range<u64> {
    let at = event.0 << 1;
    at..at + 1
}

pub(super) fn is_stream(stream: StreamId) -> Range<u64> {
    let at = stream.0 << 1 | 1;
    at..at.saturating_add(1)
}

/// Whether a launch is known to need no order with what it meets.
fn are_apart(shared: &[Range<u64>], [one, two]: [&Entry; 2]) -> bool {
    [[one, two], [two, one]].into_iter().any(|[own, other]| {
        let Origin { accesses, launch, .. } = &*other.origin;
        let other = Other { kind: other.kind, accesses, launch: launch.as_ref() };
        own.origin.launch.as_ref().is_some_and(|own| own.launch.is_apart(shared, &other))
    })
}

#[derive(Debug, Default)]
pub(super) struct Accesses {
    pub(super) slots: Slots,
    pub(super) threads: Threads,
    pub(super) reports: Reports,
    /// For the texts of reports.
    pub(super) allocations: Allocations,
    memory: Shadow,
    nearby: Nearby,
    /// Events and streams, as if each were a byte.
    objects: Shadow,
    hits: Vec<Hit>,
    /// Bytes that the host may have polled, and their last writes. No call has waited for these
    /// writes, so the host may not read the bytes as data.
    pub(super) polled: Vec<(Range<u64>, Entry)>,
}

impl Accesses {
    /// The number of byte ranges with different accesses.
    pub(super) fn len(&self) -> usize {
        self.memory.len()
    }

    /// The number of events and streams that threads have used.
    pub(super) fn objects(&self) -> usize {
        self.objects.len()
    }

    pub(super) fn touched(&self) -> u64 {
        self.memory.touched()
    }

    /// One operation touches these bytes in one way.
    pub(super) fn touch(
        &mut self,
        actor: &Actor,
        kind: AccessKind,
        accesses: &[Access],
        time: u64,
        clock: &Clock,
    ) {
        let Actor { agent, slot, call } = actor;
        let launch = accesses.iter().find_map(|access| access.launch.clone());
        let all = if launch.is_none() { accesses.into() } else { Box::default() };
        let (call, agent) = (call.clone(), agent.clone());
        let origin = Arc::new(Origin { call, agent, accesses: all, launch });
        let entry = Entry::new(*slot, time, kind, origin);
        self.touch_polled(accesses, &entry);
        self.touch_memory(accesses, &entry, clock);
        if matches!(kind, AccessKind::Allocate | AccessKind::Forget | AccessKind::Free) {
            for access in accesses.iter().filter(|access| access.stride.is_none()) {
                match kind {
                    AccessKind::Free => self.allocations.free(&access.range),
                    _ => self.allocations.forget(&access.range),
                }
                // Memory that begins on the host does so by `Op::Allocate`, or is ordinary memory.
                let Actor { agent, call, .. } = actor;
                if kind == AccessKind::Allocate && agent.stream().is_some() {
                    self.allocations.begin(access.range.clone(), call);
                }
            }
        }
    }

    /// The host reads what it may have polled, or something else is written there.
    fn touch_polled(&mut self, accesses: &[Access], new: &Entry) {
        let touched = |bytes: &Range<u64>| accesses.iter().any(|access| access.touches(bytes));
        let reads = matches!(new.kind, AccessKind::Read | AccessKind::AtomicRead);
        if !reads {
            self.polled.retain(|(bytes, _)| !touched(bytes));
        } else if matches!(new.origin.agent.0, Who::Thread(_)) && new.kind == AccessKind::Read {
            let polled = self.polled.iter().filter(|(bytes, _)| touched(bytes));
            let hits: Vec<Hit> = polled
                .map(|(bytes, earlier)| Hit {
                    earlier: earlier.clone(),
                    ordered: false,
                    ranges: vec![bytes.clone()],
                })
                .collect();
            for hit in hits {
                self.report(Problem::Race, hit, new, &Clock::default());
            }
        }
    }

    fn touch_memory(&mut self, accesses: &[Access], entry: &Entry, clock: &Clock) {
        let mut hits = std::mem::take(&mut self.hits);
        for Access { range, stride, .. } in accesses {
            let (memory, is_before) = (&mut self.memory, &self.slots.is_before(clock));
            let check = &mut Check { new: entry, is_before, hits: &mut hits };
            match stride {
                None => memory.access(range, check),
                Some(stride) => memory.access_rows(range, *stride, check),
            }
        }
        let near = {
            let Self { nearby, slots, allocations, .. } = self;
            let (former, is_before) = (slots.former(entry.slot), &slots.is_before(clock));
            nearby.touch(accesses, entry, former, allocations, is_before)
        };
        for mut hit in hits.drain(..) {
            // Rows may come in any order.
            hit.ranges.sort_unstable_by_key(|range| range.start);
            let problem = if hit.ordered { Problem::UseAfterFree } else { Problem::Race };
            self.report(problem, hit, entry, clock);
        }
        self.hits = hits;
        if !near.is_empty() {
            near.into_iter().for_each(|hit| self.report_as(Problem::Race, hit, entry, clock, true));
        }
    }

    /// A thread uses an event or a stream, or destroys it.
    pub(super) fn object(&mut self, call: &Arc<Call>, range: Range<u64>, kind: AccessKind) {
        // Where calls are in one order, so are these.
        let (HostOrder::Reported, By::Thread(thread)) = (self.threads.order, call.by) else {
            return;
        };
        let (slot, mut clock) = (self.threads.slot(thread), self.threads.clock(thread));
        let actor = Actor { agent: self.thread(thread), slot, call: call.clone() };
        let time = self.slots.tick(&actor, &mut clock);
        self.waited(&clock);
        self.threads.advance(thread, &clock);
        let origin = Arc::new(Origin::new(actor.call, actor.agent));
        let entry = Entry::new(slot, time, kind, origin);
        let mut hits = Vec::new();
        {
            let is_before = &self.slots.is_before(&clock);
            self.objects.access(&range, &mut Check { new: &entry, is_before, hits: &mut hits });
        }
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
    pub(super) fn object_misused(&mut self, problem: Problem, origins: [Origin; 2]) {
        let origins = origins.map(Arc::new);
        let [first, second] = &origins;
        if !self.reports.is_new_misuse([first, second]) {
            return;
        }
        let kind = AccessKind::Write;
        let found = Found {
            problem,
            first: self.side(first, kind),
            second: self.side(second, kind),
            shared: Vec::new(),
            turned: false,
            between: Between { under_way: true, ..Between::default() },
        };
        self.reports.push(Finding::Report(found.into()));
    }

    /// A thread, as reports name it.
    pub(super) fn thread(&self, thread: ThreadId) -> Agent {
        Agent(Who::Thread(self.threads.name(thread).cloned().unwrap_or_else(|| Arc::from("?"))))
    }

    fn side(&self, origin: &Arc<Origin>, kind: AccessKind) -> Side {
        let name = |thread| match self.threads.name(thread) {
            Some(name) => name.to_string(),
            None => thread.0.to_string(),
        };
        let (call, agent, origin) = (origin.call.clone(), origin.agent.clone(), origin.clone());
        let thread = by_name(call.by, name);
        Side { call, agent, kind, thread, origin }
    }

    fn report(&mut self, problem: Problem, hit: Hit, second: &Entry, clock: &Clock) {
        if self.reports.warnings.ignored_query {
            self.ignored_query(&hit.earlier, second);
        }
        if !are_apart(&hit.ranges, [&hit.earlier, second]) {
            self.report_as(problem, hit, second, clock, false);
        }
    }

    /// `nearby`: a launch may meet other work in allocations, which the hit has.
    fn report_as(
        &mut self,
        problem: Problem,
        hit: Hit,
        second: &Entry,
        clock: &Clock,
        nearby: bool,
    ) {
        let first = hit.earlier;
        let sides = [&*first.origin, &*second.origin];
        let places = sides.map(|side| (&*side.call, &side.agent));
        let is_new = match sides.iter().any(|side| side.launch.is_some()) {
            // Most turn out to be none: only what is to be confirmed is looked up.
            true if nearby => true,
            true => !self.reports.was_reported(places),
            false => self.reports.is_new(places),
        };
        if !is_new {
            return;
        }
        let nodes = sides.map(|side| matches!(side.agent.0, Who::Stream(_, Part::Node(_))));
        let [one, two] = sides.map(|side| &side.call);
        // Work that was held back is come to late. An order that the program can make follows its
        // calls.
        let one_sequence = match (one.by, two.by) {
            (By::Thread(_), By::Thread(_)) if !self.threads.are_reported() => true,
            (one, two) => one == two,
        };
        let failed = self.reports.failed_between(&first.origin, &second.origin);
        let stream = second.origin.agent.stream_id();
        let (recorded, awaited) =
            self.reports.recorded_between(&first.origin, &second.origin).unzip();
        let between = Between {
            failed: failed.filter(|_| problem == Problem::Race),
            under_way: false,
            nearby,
            siblings: nodes == [true, true] && Arc::ptr_eq(one, two),
            last_before: self.slots.last_before(first.slot, clock),
            recorded,
            awaited: awaited.flatten(),
            apart: None,
            // What the stream waited for later is no order of this call's.
            unseen: stream
                .map_or_else(Vec::new, |stream| self.reports.unknown_before(stream, two.number)),
        };
        let found = Found {
            problem,
            turned: problem == Problem::Race && one_sequence && two.number < one.number,
            first: self.side(&first.origin, first.kind),
            second: self.side(&second.origin, second.kind),
            shared: hit.ranges,
            between,
        };
        let mut report = Report::from(found);
        if !problem.is_of_an_object() {
            report.allocation =
                report.shared.first().and_then(|bytes| self.allocations.around(bytes.start));
        }
        self.reports.push(Finding::Report(report));
    }

    fn ignored_query(&mut self, first: &Entry, second: &Entry) {
        let access = &second.origin.call;
        if let (Some(_), By::Thread(thread), Who::Thread(_)) =
            (first.origin.agent.stream(), access.by, &second.origin.agent.0)
            && let Some(query) = self.threads.last_query(thread, first.slot, first.time)
        {
            let access = access.clone();
            let warning = Warning::IgnoredQuery { query: query.clone(), access: access.clone() };
            self.reports.warn(&query, &access, warning);
        }
    }

    /// The host has waited for all that is in this clock: it may read what it polled.
    pub(super) fn waited(&mut self, clock: &Clock) {
        self.polled.retain(|(_, entry)| clock.get(entry.slot) < entry.time);
    }

    /// The host may have polled what the marked work wrote to these bytes.
    pub(super) fn may_be_polled(&mut self, mark: &Mark, range: &Range<u64>) {
        let over = |entry: &Entry| {
            let covers = |clock: &Clock| clock.get(entry.slot) >= entry.time;
            entry.kind == AccessKind::Write && mark.clocks().any(covers)
        };
        let writes = self.memory.entries_in(range).filter(|(_, entry)| over(entry));
        self.polled.extend(writes.map(|(range, entry)| (range, entry.clone())));
        let excess = self.polled.len().saturating_sub(POLLED);
        self.polled.drain(..excess);
    }

    /// Forgets accesses that are before all that may still come.
    pub(super) fn retire(&mut self) {
        let is_over = |slot, time| self.slots.floor.get(slot) >= time;
        self.memory.retire(&is_over);
        self.nearby.retire(&is_over);
        self.objects.retire(&is_over);
        self.threads.prune(&self.slots.floor);
    }

    /// The slots of all kept accesses.
    pub(super) fn slots(&self, mut mark: &mut dyn FnMut(Slot)) {
        self.memory.slots(&mut mark);
        self.objects.slots(&mut mark);
        self.polled.iter().for_each(|(_, entry)| mark(entry.slot));
    }
}
