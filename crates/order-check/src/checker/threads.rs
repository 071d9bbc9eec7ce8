//! The threads of the host, and what they are after.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::checker::options::HostOrder;
use crate::checker::slots::Slots;
use crate::clock::{Clock, Slot};
use crate::map::Map;
use crate::op::{By, Call, ThreadId, TokenId};
use crate::task::{Mark, Point};

/// Failed queries of a thread that are kept.
const QUERIES: usize = 8;

#[derive(Debug)]
struct Thread {
    name: Arc<str>,
    slot: Slot,
    clock: Clock,
    live: bool,
    /// The last queries that returned "not done".
    queries: VecDeque<(Mark, Arc<Call>)>,
}

#[derive(Debug, Default)]
pub(super) struct Threads {
    pub(super) order: HostOrder,
    /// The slot and the clock of all threads, in [`HostOrder::Submission`].
    pub(super) host: (Slot, Clock),
    threads: Map<ThreadId, Thread>,
    /// What the thread knew that handed each token over.
    pub(super) tokens: Map<TokenId, Clock>,
}

impl Threads {
    pub(super) fn are_reported(&self) -> bool {
        self.order == HostOrder::Reported
    }

    pub(super) fn len(&self) -> usize {
        self.threads.len()
    }

    pub(super) fn add(&mut self, slots: &mut Slots, thread: ThreadId, clock: Clock) {
        let slot = if self.are_reported() { slots.begin() } else { self.host.0 };
        let name = Arc::from(thread.0.to_string());
        self.threads
            .insert(thread, Thread { name, slot, clock, live: true, queries: VecDeque::new() });
    }

    pub(super) fn end(&mut self, thread: ThreadId) {
        // If it is the last one, the next one is after all that it is after.
        if self.are_reported() {
            self.host.1.join(&self.agreed());
        }
        if let Some(thread) = self.threads.get_mut(&thread) {
            thread.live = false;
            thread.queries.clear();
        }
    }

    pub(super) fn leave(&mut self, slots: &mut Slots, thread: ThreadId) {
        self.end(thread);
        if let Some(thread) = self.threads.remove(&thread) {
            slots.leave(thread.slot, Point::Done(thread.clock));
        }
    }

    /// Adds a thread whose start was not reported.
    #[inline]
    pub(super) fn ensure(&mut self, slots: &mut Slots, by: By) {
        let By::Thread(thread) = by else { return };
        let reported = self.are_reported();
        match self.threads.get_mut(&thread) {
            // Its number is another thread's now.
            Some(ended) if !ended.live && reported => self.leave(slots, thread),
            Some(thread) => {
                thread.live = true;
                return;
            }
            None => {}
        }
        let clock = if reported { self.agreed() } else { Clock::default() };
        self.add(slots, thread, clock);
    }

    /// What all threads are after.
    pub(super) fn agreed(&self) -> Clock {
        // In submission order there is one clock for all of them, and otherwise it is what the last
        // ones agreed about.
        let all = || self.host.1.clone();
        if !self.are_reported() {
            return all();
        }
        let live = self.threads.values().filter(|thread| thread.live);
        live.map(|thread| thread.clock.clone())
            .reduce(|one, two| one.meet(&two))
            .unwrap_or_else(all)
    }

    /// What any of the threads is after.
    pub(super) fn join_all(&self, clock: &mut Clock) {
        self.threads.values().for_each(|thread| clock.join(&thread.clock));
    }

    #[inline]
    pub(super) fn clock(&self, thread: ThreadId) -> Clock {
        if !self.are_reported() {
            return self.host.1.clone();
        }
        self.threads.get(&thread).map_or_else(Clock::default, |thread| thread.clock.clone())
    }

    pub(super) fn advance(&mut self, thread: ThreadId, clock: &Clock) {
        if !self.are_reported() {
            self.host.1.join(clock);
        } else if let Some(thread) = self.threads.get_mut(&thread) {
            thread.clock.join(clock);
        }
    }

    pub(super) fn slot(&self, thread: ThreadId) -> Slot {
        self.threads.get(&thread).map_or(self.host.0, |thread| thread.slot)
    }

    pub(super) fn name(&self, thread: ThreadId) -> Option<&Arc<str>> {
        self.threads.get(&thread).map(|thread| &thread.name)
    }

    pub(super) fn set_name(&mut self, thread: ThreadId, name: &str) {
        if let Some(thread) = self.threads.get_mut(&thread) {
            thread.name = name.into();
        }
    }

    /// A query has returned "not done".
    pub(super) fn queried(&mut self, thread: ThreadId, mark: Mark, call: &Arc<Call>) {
        let Some(thread) = self.threads.get_mut(&thread) else { return };
        if thread.queries.len() == QUERIES {
            thread.queries.pop_front();
        }
        thread.queries.push_back((mark, call.clone()));
    }

    /// The last query that returned "not done" of work after this time of an agent.
    pub(super) fn last_query(&self, thread: ThreadId, slot: Slot, time: u64) -> Option<Arc<Call>> {
        let about = |mark: &Mark| mark.clocks().any(|clock| clock.get(slot) >= time);
        let mut queries = self.threads.get(&thread)?.queries.iter().rev();
        queries.find(|(mark, _)| about(mark)).map(|(_, call)| call.clone())
    }

    /// The clock of a thread that was waited for, whose end was reported.
    pub(super) fn joined(&self, thread: ThreadId) -> Option<Clock> {
        let thread = self.threads.get(&thread).filter(|_| self.are_reported())?;
        Some(thread.clock.clone())
    }

    pub(super) fn prune(&mut self, floor: &Clock) {
        self.host.1.prune(floor);
        for thread in self.threads.values_mut() {
            thread.clock.prune(floor);
        }
        self.tokens.retain(|_, clock| {
            clock.prune(floor);
            !clock.is_empty()
        });
    }

    /// Forgets the threads that have ended, and of which nothing is left.
    pub(super) fn retire(&mut self, slots: &mut Slots) {
        if !self.are_reported() {
            self.threads.retain(|_, thread| thread.live);
            return;
        }
        let gone =
            self.threads.iter().filter(|(_, thread)| !thread.live && thread.clock.is_empty());
        for thread in gone.map(|(&thread, _)| thread).collect::<Vec<_>>() {
            self.leave(slots, thread);
        }
    }
}
