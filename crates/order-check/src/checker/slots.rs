//! The slots of all agents: their times, and the use of a slot by a later agent.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::clock::{Clock, Slot};
use crate::op::Call;
use crate::task::{Actor, Point};

/// The number of an agent's calls that are kept for reports about their order.
const RECENT: usize = 16;

#[derive(Debug, Default)]
struct State {
    time: u64,
    /// The last time of the agent that had it before. No access has this time or an earlier one.
    former: u64,
    recent: VecDeque<(u64, Arc<Call>)>,
}

#[derive(Debug, Default)]
pub(super) struct Slots {
    all: Vec<State>,
    spare: Vec<Slot>,
    /// Slots whose owners are gone, and the end of their work.
    leaving: Vec<(Slot, Point)>,
    /// What all that may still come is after. Clocks do not repeat it.
    pub(super) floor: Clock,
}

impl Slots {
    pub(super) fn begin(&mut self) -> Slot {
        self.spare.pop().unwrap_or_else(|| {
            self.all.push(State::default());
            // There is no memory for more slots than numbers.
            (self.all.len() - 1) as Slot
        })
    }

    /// The owner of a slot is gone, and its work ends here.
    pub(super) fn leave(&mut self, slot: Slot, end: Point) {
        self.leaving.push((slot, end));
    }

    /// The last time of the agent that had a slot before its owner.
    pub(super) fn former(&self, slot: Slot) -> u64 {
        self.all.get(slot as usize).map_or(0, |state| state.former)
    }

    /// How many slots have owners.
    pub(super) fn len(&self) -> usize {
        self.all.len() - self.spare.len()
    }

    /// The next operation of an agent: a time, which the clock knows from now on.
    #[inline]
    pub(super) fn tick(&mut self, actor: &Actor, clock: &mut Clock) -> u64 {
        let Some(state) = self.all.get_mut(actor.slot as usize) else { return 0 };
        state.time += 1;
        if state.recent.len() == RECENT {
            state.recent.pop_front();
        }
        state.recent.push_back((state.time, actor.call.clone()));
        clock.raise(actor.slot, state.time);
        state.time
    }

    /// Whether the operation of an agent at a time happens before all that has this clock.
    pub(super) fn is_before(&self, clock: &Clock) -> impl Fn(Slot, u64) -> bool {
        move |slot, time| clock.get(slot) >= time || self.floor.get(slot) >= time
    }

    /// Whether `clock` knows all that `other` knows. The answer is `unsure` if that depends on the
    /// work of a stream that is gone, and whose slot another one has now.
    pub(super) fn covers(&self, clock: &Clock, other: &Clock, unsure: bool) -> bool {
        other.all(|slot, time| {
            let former = self.all.get(slot as usize).map_or(0, |state| state.former);
            let seen = clock.get(slot);
            if self.floor.get(slot) >= time {
                return true;
            }
            if time <= former && seen > former { unsure } else { seen >= time }
        })
    }

    /// The last recent call of an agent that happens before all that has this clock.
    pub(super) fn last_before(&self, slot: Slot, clock: &Clock) -> Option<Arc<Call>> {
        let seen = clock.get(slot).max(self.floor.get(slot));
        let mut calls = self.all.get(slot as usize)?.recent.iter().rev();
        calls.find(|(time, _)| *time <= seen).map(|(_, call)| call.clone())
    }

    /// The slots of which accesses are kept. If none is to be used again, nobody looks at them.
    pub(super) fn used(&self, mark_all: impl FnOnce(&mut dyn FnMut(Slot))) -> Vec<bool> {
        let mut used = vec![false; self.all.len()];
        if !self.leaving.is_empty() {
            mark_all(&mut |slot| {
                used.get_mut(slot as usize).into_iter().for_each(|used| *used = true)
            });
        }
        used
    }

    /// Slots of agents that are gone, and of which no access is kept, can be had anew. `clock.rs`
    /// proves it sound.
    pub(super) fn reuse(&mut self, used: &[bool], mut forget: impl FnMut(Slot)) {
        let Self { all, spare, leaving, floor } = self;
        // The next owner goes on with the time of the former one. So what clocks know of the former
        // one is nothing about the next one.
        leaving.retain_mut(|(slot, end)| {
            let Some(state) = all.get_mut(*slot as usize) else { return false };
            let used = used.get(*slot as usize).is_none_or(|used| *used);
            if end.clock().is_none() || used && state.time > floor.get(*slot) {
                return true;
            }
            state.recent = VecDeque::new();
            state.former = state.time;
            forget(*slot);
            spare.push(*slot);
            false
        });
    }
}
