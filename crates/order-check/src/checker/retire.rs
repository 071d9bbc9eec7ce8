//! What is forgotten: what nothing can race with any more.

use std::collections::VecDeque;

use crate::checker::{Checker, HostOrder};
use crate::clock::Slot;
use crate::op::ThreadId;

impl Checker {
    /// Forgets what nothing can race with any more: it is before all that may still come.
    pub(super) fn retire(&mut self) {
        let held = self.tasks.values().map(|task| task.base.clone());
        let mut floor = held.fold(self.agreed(), |one, two| one.meet(&two));
        floor.join(&self.floor);
        self.floor = floor;
        let floor = &self.floor;
        let known = |slot, time| floor.get(slot) >= time;
        self.memory.retire(&known);
        self.objects.retire(&known);
        self.values.retire(known, floor);
        self.host.1.prune(floor);
        for thread in self.threads.values_mut() {
            thread.clock.prune(floor);
        }
        self.tokens.retain(|_, clock| {
            clock.prune(floor);
            !clock.is_empty()
        });
        for stream in self.streams.values_mut() {
            stream.tail.prune(floor);
            stream.joined.prune(floor);
        }
        for record in self.events.values_mut().filter_map(|event| event.record.as_mut()) {
            record.point.prune(floor);
        }
        for context in self.contexts.values_mut() {
            for points in [&mut context.gone, &mut context.fresh_gone, &mut context.entry] {
                points.prune(floor);
            }
        }
        self.graceful();
        self.until_retire = self.options.retire_every.max(
            2 * (self.memory.len()
                + self.streams.len()
                + self.events.len()
                + self.threads.len()
                + self.tasks.len()),
        );
    }

    /// Slots of agents that are gone, and of which no access is kept, can be had anew.
    pub(super) fn graceful(&mut self) {
        let mut used = vec![false; self.slots.len()];
        let mut mark = |slot: Slot| {
            if let Some(used) = used.get_mut(slot as usize) {
                *used = true;
            }
        };
        if !self.leaving.is_empty() {
            self.memory.slots(&mut mark);
            self.objects.slots(&mut mark);
            self.values.slots(&mut mark);
            self.polled.iter().for_each(|(_, entry)| mark(entry.slot));
        }
        let (floor, slots, spare) = (&self.floor, &mut self.slots, &mut self.spare);
        let values = &mut self.values;
        // The next owner goes on with the time of the former one. So what clocks know of the former
        // one is nothing about the next one.
        self.leaving.retain_mut(|(slot, end)| {
            let Some(state) = slots.get_mut(*slot as usize) else { return false };
            let used = used.get(*slot as usize).is_none_or(|used| *used);
            if end.clock().is_none() || used && state.time > floor.get(*slot) {
                return true;
            }
            state.recent = VecDeque::new();
            state.former = state.time;
            values.forget_copies(*slot);
            spare.push(*slot);
            false
        });
        if self.options.host_order == HostOrder::Reported {
            let gone: Vec<ThreadId> = self
                .threads
                .iter()
                .filter(|(_, thread)| !thread.live && thread.clock.is_empty())
                .map(|(&thread, _)| thread)
                .collect();
            for thread in gone {
                self.leave_thread(thread);
            }
        } else {
            self.threads.retain(|_, thread| thread.live);
        }
    }
}
