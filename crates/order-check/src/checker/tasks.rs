//! Tasks: operations that something holds back, and what is done when nothing does.

use std::sync::Arc;

use crate::agent::{Agent, Part, Who};
use crate::checker::accesses::Accesses;
use crate::checker::queue::Queue;
use crate::clock::{Clock, Slot};
use crate::op::{Access, AccessKind, By, Call, Cell, FunctionId};
use crate::task::{Action, Actor, Point, Task};
use crate::values::Values;

/// What became of a task for which nothing was left to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Done,
    /// No known write ends the wait for this value.
    Blocked(Cell),
    /// A host function has begun, and its end will be reported.
    Running,
}

#[derive(Debug, Default)]
pub(super) struct Tasks {
    pub(super) accesses: Accesses,
    pub(super) values: Values,
    /// Whether writers that nobody reports may write the values that streams wait for.
    pub(super) unseen_writers: bool,
    pub(super) queue: Queue,
}

impl Tasks {
    /// Work that comes after `base` and `after`: done at once, if nothing holds it back.
    pub(super) fn submit(
        &mut self,
        mut actor: Actor,
        action: Action<'_>,
        mut base: Clock,
        after: Vec<Point>,
    ) -> Point {
        let mut waits = Vec::new();
        for point in &after {
            match point {
                Point::Pending(unfinished) if unfinished.clock.get().is_none() => {
                    waits.push(unfinished.task)
                }
                _ => base.join(point.clock().unwrap_or(&Clock::default())),
            }
        }
        waits.sort_unstable();
        waits.dedup();
        let id = self.queue.next();
        let mut running = false;
        if waits.is_empty() {
            match self.run(&mut actor, &action, &mut base) {
                Step::Done => return Point::Done(base),
                Step::Blocked(cell) => self.values.wait(cell, id),
                Step::Running => running = true,
            }
        }
        self.queue.insert(id, (actor, action), base, waits, running)
    }

    /// Does what is to be done, as nothing it comes after is left.
    fn run(&mut self, actor: &mut Actor, action: &Action<'_>, clock: &mut Clock) -> Step {
        match action {
            Action::Nothing => {}
            Action::Work(accesses) => self.work(actor, accesses, clock),
            Action::WriteValue(cell, value) => self.write_value(actor, *cell, *value, clock),
            Action::WaitValue(cell, value, compare) => {
                self.values.expect(*cell);
                let is_before = self.accesses.slots.is_before(clock);
                match self.values.seen(*cell, *value, *compare, is_before) {
                    Some(seen) => clock.join(&seen),
                    None => return Step::Blocked(*cell),
                }
                self.touch_value(actor, AccessKind::Wait, *cell, clock);
            }
            Action::Function(accesses) => {
                if let Who::Stream(stream, _) = &actor.agent.0 {
                    actor.agent = Agent(Who::Stream(stream.clone(), Part::Function));
                }
                self.work(actor, accesses, clock);
                return Step::Running;
            }
        }
        Step::Done
    }

    pub(super) fn work(&mut self, actor: &Actor, accesses: &[Access], clock: &mut Clock) {
        let time = self.accesses.slots.tick(actor, clock);
        // What one call does to several ranges, the rows of a copy, say, is one access.
        for alike in accesses.chunk_by(|one, two| one.kind == two.kind) {
            let Some(first) = alike.first() else { continue };
            self.accesses.touch(actor, first.kind, alike, time, clock);
        }
        for access in accesses {
            let anew = matches!(access.kind, AccessKind::Allocate | AccessKind::Forget);
            if anew || access.kind == AccessKind::Write {
                let is_before = self.accesses.slots.is_before(clock);
                let at = (actor.slot, time);
                let woken = self.values.overwrite(access, at, clock, is_before, anew);
                self.queue.wake(woken);
            }
        }
    }

    pub(super) fn write_value(&mut self, actor: &Actor, cell: Cell, value: u64, clock: &mut Clock) {
        let time = self.touch_value(actor, AccessKind::AtomicWrite, cell, clock);
        self.set_value((actor.slot, time), cell, value, clock, clock);
    }

    /// A value is there, by a write that is after all that has the clock `by`.
    pub(super) fn set_value(
        &mut self,
        at: (Slot, u64),
        cell: Cell,
        value: u64,
        clock: &Clock,
        by: &Clock,
    ) {
        let is_before = self.accesses.slots.is_before(by);
        let woken = self.values.write(cell, value, at, clock, is_before);
        self.queue.wake(woken);
    }

    /// An operation of one value. Returns its time.
    pub(super) fn touch_value(
        &mut self,
        actor: &Actor,
        kind: AccessKind,
        cell: Cell,
        clock: &mut Clock,
    ) -> u64 {
        let time = self.accesses.slots.tick(actor, clock);
        self.accesses.touch(actor, kind, &[cell.access()], time, clock);
        time
    }

    /// Whether something that nobody reports may have written a value.
    pub(super) fn may_be_unseen(&self, cell: Cell) -> bool {
        self.unseen_writers && !self.values.is_copied(cell)
    }

    /// Somebody has written the value for which a task waits.
    pub(super) fn unseen_write(&mut self, cell: Cell, task: &mut Task) {
        // All that could have been the one are before it, to be safe.
        task.base.join(&self.values.all(cell));
        let what = "a value that no known write set is after all work so far";
        self.accesses.reports.assume(what, &task.actor.call);
        self.touch_value(&task.actor, AccessKind::Wait, cell, &mut task.base);
    }

    /// Runs what nothing holds back any more, the oldest first.
    #[inline]
    pub(super) fn drain(&mut self) {
        while let Some(id) = self.queue.pop_ready() {
            let Some(mut task) = self.queue.take(id) else { continue };
            match self.step(&mut task) {
                Step::Done => {
                    self.queue.finish(task);
                    continue;
                }
                Step::Blocked(cell) => self.values.wait(cell, id),
                Step::Running => {}
            }
            self.queue.put_back(id, task);
        }
    }

    pub(super) fn step(&mut self, task: &mut Task) -> Step {
        if task.running {
            return Step::Running;
        }
        let step = self.run(&mut task.actor, &task.action, &mut task.base);
        task.running = step == Step::Running;
        step
    }

    /// A stream has come to a host function, which the host begins.
    pub(super) fn function_began(&mut self, function: FunctionId) {
        if !self.accesses.threads.are_reported() {
            let host = self.accesses.threads.host.1.clone();
            self.advance(By::Function(function), &host);
        }
    }

    /// [`Op::FunctionEnd`](crate::Op::FunctionEnd).
    pub(super) fn function_end(&mut self, function: FunctionId) {
        let Some(task) = self.queue.remove_function(function) else { return };
        if !self.accesses.threads.are_reported() {
            self.accesses.threads.host.1.join(&task.base);
            let what = "a host function has waited for all calls before its end";
            self.accesses.reports.assume(what, &task.actor.call);
        }
        self.queue.finish(task);
    }

    #[inline]
    pub(super) fn clock_of(&self, by: By) -> Clock {
        match by {
            By::Thread(thread) => self.accesses.threads.clock(thread),
            By::Function(function) => match self.queue.function(function) {
                Some((_, task)) => task.base.clone(),
                None => self.accesses.threads.host.1.clone(),
            },
        }
    }

    /// The thread or host function that makes a call, and its clock.
    pub(super) fn actor(&self, call: &Arc<Call>) -> (Actor, Clock) {
        let threads = &self.accesses.threads;
        let (slot, agent) = match call.by {
            By::Thread(thread) => (threads.slot(thread), self.accesses.thread(thread)),
            By::Function(function) => match self.queue.function(function) {
                Some((_, task)) => (task.actor.slot, task.actor.agent.clone()),
                None => {
                    let name = format!("of host function {}", function.0);
                    (threads.host.0, Agent(Who::Thread(Arc::from(name))))
                }
            },
        };
        (Actor { agent, slot, call: call.clone() }, self.clock_of(call.by))
    }

    /// Puts the thread or host function after everything in `clock`.
    pub(super) fn learn(&mut self, by: By, clock: &Clock) {
        self.accesses.waited(clock);
        self.advance(by, clock);
    }

    /// The same for operations of the thread or host function itself: it has waited for nothing.
    pub(super) fn advance(&mut self, by: By, clock: &Clock) {
        match by {
            By::Thread(thread) => self.accesses.threads.advance(thread, clock),
            // If it is gone, it is over, for all that was reported.
            By::Function(function) => {
                if let Some(task) = self.queue.function_mut(function) {
                    task.base.join(clock);
                }
            }
        }
    }

    /// A thread has seen that this is done. False if that takes more than to join its clock.
    pub(super) fn saw(&mut self, by: By, point: &Point) -> bool {
        let Point::Done(clock) = point else { return false };
        let simple = matches!(by, By::Thread(_)) && !self.accesses.threads.are_reported();
        if simple {
            self.accesses.waited(clock);
            self.accesses.threads.host.1.join(clock);
        }
        simple
    }

    /// Forgets what nothing can race with any more: it is before all that may still come. Returns
    /// how much is left.
    pub(super) fn retire(&mut self) -> usize {
        let Self { accesses, values, queue, .. } = self;
        let mut floor = queue.meet(accesses.threads.agreed());
        floor.join(&accesses.slots.floor);
        accesses.slots.floor = floor;
        accesses.retire();
        let floor = &accesses.slots.floor;
        values.retire(|slot, time| floor.get(slot) >= time, floor);
        let used = accesses.slots.used(|mut mark| {
            accesses.slots(mark);
            values.slots(&mut mark);
        });
        accesses.slots.reuse(&used, |slot| values.forget_copies(slot));
        accesses.threads.retire(&mut accesses.slots);
        accesses.len() + accesses.threads.len() + queue.len()
    }
}
