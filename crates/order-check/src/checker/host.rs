//! What the host does: its accesses, and the order of its threads.

use std::sync::Arc;

use crate::checker::tasks::Tasks;
use crate::op::{Access, AccessKind, By, Call, Cell, Compare, ThreadId, TokenId};

/// One method for each operation of the host.
impl Tasks {
    pub(super) fn thread_name(&mut self, thread: ThreadId, name: &str) {
        let threads = &mut self.accesses.threads;
        threads.ensure(&mut self.accesses.slots, By::Thread(thread));
        threads.set_name(thread, name);
    }

    pub(super) fn thread_start(&mut self, call: &Call, thread: ThreadId) {
        let clock = self.clock_of(call.by);
        let threads = &mut self.accesses.threads;
        if threads.are_reported() {
            threads.leave(&mut self.accesses.slots, thread);
            threads.add(&mut self.accesses.slots, thread, clock);
        }
    }

    pub(super) fn thread_join(&mut self, call: &Call, thread: ThreadId) {
        if let Some(clock) = self.accesses.threads.joined(thread) {
            self.learn(call.by, &clock);
            self.accesses.threads.leave(&mut self.accesses.slots, thread);
        }
    }

    pub(super) fn thread_end(&mut self, call: &Call) {
        if let By::Thread(thread) = call.by {
            self.accesses.threads.end(thread);
        }
    }

    pub(super) fn hand_over(&mut self, call: &Call, token: TokenId) {
        let clock = self.clock_of(call.by);
        self.accesses.threads.tokens.entry(token).or_default().join(&clock);
    }

    pub(super) fn take_over(&mut self, call: &Call, token: TokenId) {
        if let Some(clock) = self.accesses.threads.tokens.get(&token).cloned() {
            self.learn(call.by, &clock);
        }
    }

    pub(super) fn allocate(&mut self, call: &Arc<Call>, address: u64, bytes: u64) {
        let access = Access::allocate(address, bytes);
        let range = access.range.clone();
        self.host(call, &[access]);
        self.accesses.allocations.begin(range, call);
    }

    pub(super) fn map(&mut self, call: &Arc<Call>, address: u64, bytes: u64) {
        self.allocate(call, address, bytes);
        self.accesses.allocations.join(address..address.saturating_add(bytes));
    }

    pub(super) fn host(&mut self, call: &Arc<Call>, accesses: &[Access]) {
        let (actor, mut clock) = self.actor(call);
        self.work(&actor, accesses, &mut clock);
        self.advance(call.by, &clock);
    }

    pub(super) fn host_write_value(&mut self, call: &Arc<Call>, cell: Cell, value: u64) {
        let (actor, mut clock) = self.actor(call);
        self.write_value(&actor, cell, value, &mut clock);
        self.advance(call.by, &clock);
    }

    pub(super) fn found_value(&mut self, call: &Arc<Call>, cell: Cell, value: u64) {
        let (actor, mut clock) = self.actor(call);
        let time = self.accesses.slots.tick(&actor, &mut clock);
        self.advance(call.by, &clock);
        let mut before = self.values.everything();
        before.join(&clock);
        self.set_value((actor.slot, time), cell, value, &before, &clock);
    }

    pub(super) fn host_saw_value(&mut self, call: &Arc<Call>, cell: Cell, value: u64) {
        let (actor, mut clock) = self.actor(call);
        let is_before = self.accesses.slots.is_before(&clock);
        if let Some(seen) = self.values.seen(cell, value, Compare::Equal, is_before) {
            clock.join(&seen);
        }
        self.touch_value(&actor, AccessKind::AtomicRead, cell, &mut clock);
        self.learn(call.by, &clock);
    }
}
