//! Slots and clocks; threads and host functions, and what they are after.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::checker::{Checker, HostOrder, Mark, RECENT, SlotState, Thread};
use crate::clock::{Clock, Slot};
use crate::op::{By, Call, FunctionId, ThreadId};
use crate::report::{Agent, Who};
use crate::task::Point;

impl Checker {
    pub(super) fn new_slot(&mut self) -> Slot {
        self.spare.pop().unwrap_or_else(|| {
            self.slots.push(SlotState::default());
            // There is no memory for more slots than numbers.
            (self.slots.len() - 1) as Slot
        })
    }

    /// The next operation of an agent: a time, which the clock knows from now on.
    pub(super) fn tick(&mut self, slot: Slot, clock: &mut Clock, call: &Arc<Call>) -> u64 {
        let Some(state) = self.slots.get_mut(slot as usize) else { return 0 };
        state.time += 1;
        if state.recent.len() == RECENT {
            state.recent.pop_front();
        }
        state.recent.push_back((state.time, call.clone()));
        clock.raise(slot, state.time);
        state.time
    }

    /// Whether `clock` knows all that `other` knows. The answer is `unsure` if that depends on the
    /// work of a stream that is gone, and whose slot another one has now.
    pub(super) fn covers(&self, clock: &Clock, other: &Clock, unsure: bool) -> bool {
        other.all(|slot, time| {
            let former = self.slots.get(slot as usize).map_or(0, |state| state.former);
            let known = clock.get(slot);
            if self.floor.get(slot) >= time {
                return true;
            }
            if time <= former && known > former { unsure } else { known >= time }
        })
    }

    pub(super) fn add_thread(&mut self, thread: ThreadId, clock: Clock) {
        let slot = match self.options.host_order {
            HostOrder::Submission => self.host.0,
            HostOrder::Reported => self.new_slot(),
        };
        let name = Arc::from(thread.0.to_string());
        self.threads
            .insert(thread, Thread { name, slot, clock, live: true, queries: VecDeque::new() });
    }

    pub(super) fn end_thread(&mut self, thread: ThreadId) {
        // If it is the last one, the next one is after all that it is after.
        if self.options.host_order == HostOrder::Reported {
            self.host.1.join(&self.agreed());
        }
        if let Some(thread) = self.threads.get_mut(&thread) {
            thread.live = false;
            thread.queries.clear();
        }
    }

    pub(super) fn leave_thread(&mut self, thread: ThreadId) {
        self.end_thread(thread);
        if let Some(of) = self.threads.remove(&thread) {
            self.leaving.push((of.slot, Point::Done(of.clock)));
        }
    }

    /// Adds a thread whose start was not reported.
    pub(super) fn ensure(&mut self, by: By) {
        let By::Thread(thread) = by else { return };
        let reported = self.options.host_order == HostOrder::Reported;
        match self.threads.get_mut(&thread) {
            // Its number is another thread's now.
            Some(of) if !of.live && reported => self.leave_thread(thread),
            Some(of) => {
                of.live = true;
                return;
            }
            None => {}
        }
        let clock = if reported { self.agreed() } else { Clock::default() };
        self.add_thread(thread, clock);
    }

    /// What all threads are after.
    pub(super) fn agreed(&self) -> Clock {
        // In submission order there is one clock for all of them, and otherwise it is what the last
        // ones agreed about.
        let all = || self.host.1.clone();
        if self.options.host_order == HostOrder::Submission {
            return all();
        }
        let live = self.threads.values().filter(|thread| thread.live);
        live.map(|thread| thread.clock.clone())
            .reduce(|one, two| one.meet(&two))
            .unwrap_or_else(all)
    }

    pub(super) fn clock_of(&self, by: By) -> Clock {
        let reported = self.options.host_order == HostOrder::Reported;
        match by {
            By::Function(function) => self
                .functions
                .get(&function)
                .and_then(|task| self.tasks.get(task))
                .map_or_else(|| self.host.1.clone(), |task| task.base.clone()),
            By::Thread(thread) if reported => {
                self.threads.get(&thread).map_or_else(Clock::default, |of| of.clock.clone())
            }
            By::Thread(_) => self.host.1.clone(),
        }
    }

    /// The slot and the clock of the thread or host function that accesses memory.
    pub(super) fn actor(&self, by: By) -> (Slot, Clock) {
        let slot = match by {
            By::Function(function) => self
                .functions
                .get(&function)
                .and_then(|task| self.tasks.get(task))
                .map(|task| task.job.slot),
            By::Thread(thread) => self.threads.get(&thread).map(|thread| thread.slot),
        };
        (slot.unwrap_or(self.host.0), self.clock_of(by))
    }

    pub(super) fn agent(&self, by: By) -> Agent {
        match by {
            By::Thread(thread) => Agent(Who::Thread(
                self.threads.get(&thread).map_or_else(|| Arc::from("?"), |of| of.name.clone()),
            )),
            By::Function(function) => {
                let task = self.functions.get(&function).and_then(|task| self.tasks.get(task));
                task.map_or_else(
                    || Agent(Who::Thread(Arc::from(format!("of host function {}", function.0)))),
                    |task| task.job.agent.clone(),
                )
            }
        }
    }

    /// Puts the thread or host function after everything in `clock`.
    pub(super) fn learn(&mut self, by: By, clock: &Clock) {
        if !self.polled.is_empty() {
            self.polled.retain(|(_, entry)| clock.get(entry.slot) < entry.time);
        }
        self.advance(by, clock);
    }

    /// The same for operations of the thread or host function itself: it has waited for nothing.
    pub(super) fn advance(&mut self, by: By, clock: &Clock) {
        let mine = match by {
            By::Function(function) => {
                match self.functions.get(&function).and_then(|task| self.tasks.get_mut(task)) {
                    Some(task) => &mut task.base,
                    // It is over, for all that was reported.
                    None => return,
                }
            }
            By::Thread(thread) if self.options.host_order == HostOrder::Reported => {
                match self.threads.get_mut(&thread) {
                    Some(thread) => &mut thread.clock,
                    None => return,
                }
            }
            By::Thread(_) => &mut self.host.1,
        };
        mine.join(clock);
    }

    pub(super) fn acquire(&mut self, by: By, mark: &Mark) {
        for point in &mark.0 {
            // The call has returned, so the work is over, whatever it was that it waited for.
            if let Point::Pending(unfinished) = point
                && unfinished.clock.get().is_none()
            {
                self.force(unfinished.task);
            }
            if let Some(clock) = point.clock() {
                self.learn(by, clock);
            }
        }
    }

    pub(super) fn begin_function(&mut self, function: FunctionId) {
        let Some(&id) = self.functions.get(&function) else { return };
        while self.tasks.get(&id).is_some_and(|task| !task.running) && self.force_one(id) {}
        if self.options.host_order == HostOrder::Submission
            && let Some(task) = self.tasks.get_mut(&id)
        {
            task.base.join(&self.host.1);
        }
    }

    pub(super) fn end_function(&mut self, function: FunctionId) {
        let Some(id) = self.functions.remove(&function) else { return };
        let Some(task) = self.tasks.remove(&id) else { return };
        if self.options.host_order == HostOrder::Submission {
            self.host.1.join(&task.base);
        }
        self.finish(task);
    }
}
