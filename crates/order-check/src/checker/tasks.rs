//! Tasks: operations that something holds back, and what is done when nothing does.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use crate::checker::{Checker, HostOrder};
use crate::clock::{Clock, Slot};
use crate::op::{Access, AccessKind, By, Call, Cell};
use crate::report::{Agent, Part, Who};
use crate::task::{Action, Job, Point, Task, Unfinished};

impl Checker {
    /// Work that comes after `base` and `after`: done at once, if nothing holds it back.
    pub(super) fn submit(&mut self, mut job: Job<'_>, mut base: Clock, after: Vec<Point>) -> Point {
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
        self.counter += 1;
        let id = self.counter;
        if waits.is_empty() && self.run(&mut job, &mut base, id, false) {
            return Point::Done(base);
        }
        for wait in &waits {
            if let Some(task) = self.tasks.get_mut(wait) {
                task.before.push(id);
            }
        }
        let point = Arc::new(Unfinished { task: id, clock: OnceLock::new() });
        let running = waits.is_empty() && matches!(job.action, Action::Function(_));
        let task = Task {
            job: job.into_owned(),
            base,
            left: waits.len(),
            after: waits,
            before: Vec::new(),
            point: point.clone(),
            running,
        };
        self.tasks.insert(id, task);
        Point::Pending(point)
    }

    /// Does what a job does, as nothing it comes after is left. Says whether it is over.
    pub(super) fn run(
        &mut self,
        job: &mut Job<'_>,
        clock: &mut Clock,
        id: u64,
        force: bool,
    ) -> bool {
        let Job { agent, slot, action, call } = job;
        match action {
            Action::Nothing => true,
            Action::Work(accesses) => {
                self.work(accesses, *slot, clock, agent, call);
                true
            }
            Action::WriteValue(cell, value) => {
                self.write_value(*cell, *value, *slot, clock, agent, call);
                true
            }
            Action::WaitValue(cell, value, compare) => {
                self.values.expect(*cell);
                let floor = &self.floor;
                let is_before = |slot, time| clock.get(slot) >= time || floor.get(slot) >= time;
                match self.values.seen(*cell, *value, *compare, is_before) {
                    Some(seen) => clock.join(&seen),
                    None if force => {
                        // Somebody has written it. All that could have been the one are before it,
                        // to be safe.
                        clock.join(&self.values.all(*cell));
                        if self.options.unseen_writers && !self.values.is_copied(*cell) {
                            self.join_all(clock);
                        }
                        if let Some(stream) = agent.stream() {
                            let text = format!(
                                "stream {stream} waited in {call} for a value that no known write \
                                 set"
                            );
                            self.outside(stream.id, call.number, text);
                        }
                    }
                    None => {
                        self.values.wait(*cell, id);
                        return false;
                    }
                }
                let time = self.tick(*slot, clock, call);
                let kind = AccessKind::Wait;
                self.touch(kind, &[cell.access()], (*slot, time), clock, agent, call);
                true
            }
            Action::Function(accesses) => {
                if !force {
                    if let Who::Stream(stream, _) = &agent.0 {
                        *agent = Agent(Who::Stream(stream.clone(), Part::Function));
                    }
                    self.work(accesses, *slot, clock, agent, call);
                }
                force
            }
        }
    }

    /// All that is over, and all that threads know.
    fn join_all(&self, clock: &mut Clock) {
        let points = self.contexts.keys().flat_map(|context| self.of_context(*context));
        points.filter_map(|point| point.clock().cloned()).for_each(|of| clock.join(&of));
        clock.join(&self.host.1);
        self.threads.values().for_each(|thread| clock.join(&thread.clock));
    }

    pub(super) fn work(
        &mut self,
        accesses: &[Access],
        slot: Slot,
        clock: &mut Clock,
        agent: &Agent,
        call: &Arc<Call>,
    ) {
        let time = self.tick(slot, clock, call);
        // What one call does to several ranges, the rows of a copy, say, is one access.
        for alike in accesses.chunk_by(|one, two| one.kind == two.kind) {
            let Some(first) = alike.first() else { continue };
            self.touch(first.kind, alike, (slot, time), clock, agent, call);
        }
        for access in accesses {
            self.overwrite(access, (slot, time), clock);
        }
    }

    pub(super) fn write_value(
        &mut self,
        cell: Cell,
        value: u64,
        slot: Slot,
        clock: &mut Clock,
        agent: &Agent,
        call: &Arc<Call>,
    ) {
        let time = self.tick(slot, clock, call);
        self.touch(AccessKind::AtomicWrite, &[cell.access()], (slot, time), clock, agent, call);
        let floor = &self.floor;
        let is_before = |slot, time| clock.get(slot) >= time || floor.get(slot) >= time;
        let woken = self.values.write(cell, value, (slot, time), clock, is_before);
        self.ready.extend(woken.into_iter().map(Reverse));
    }

    pub(super) fn overwrite(&mut self, access: &Access, at: (Slot, u64), clock: &Clock) {
        let anew = access.kind == AccessKind::Allocate;
        if anew || access.kind == AccessKind::Write {
            let floor = &self.floor;
            let is_before = |slot, time| clock.get(slot) >= time || floor.get(slot) >= time;
            let woken = self.values.overwrite(access, at, clock, is_before, anew);
            self.ready.extend(woken.into_iter().map(Reverse));
        }
    }

    /// Runs what nothing holds back any more, the oldest first.
    pub(super) fn drain(&mut self) {
        while let Some(Reverse(id)) = self.ready.pop() {
            self.step(id, false);
        }
    }

    pub(super) fn step(&mut self, id: u64, force: bool) {
        let Some(mut task) = self.tasks.remove(&id) else { return };
        if task.left > 0 || task.running && !force {
            self.tasks.insert(id, task);
            return;
        }
        let function = matches!(task.job.action, Action::Function(_));
        if function && force && !task.running {
            // It touches what it touches before it is taken to be over.
            self.run(&mut task.job, &mut task.base, id, false);
        }
        if self.run(&mut task.job, &mut task.base, id, force) {
            self.finish(task);
        } else {
            task.running = function;
            self.tasks.insert(id, task);
        }
    }

    pub(super) fn finish(&mut self, task: Task) {
        for id in &task.before {
            if let Some(later) = self.tasks.get_mut(id) {
                later.base.join(&task.base);
                later.left -= 1;
                if later.left == 0 {
                    self.ready.push(Reverse(*id));
                }
            }
        }
        // Nobody else sets it.
        let _ = task.point.clock.set(task.base);
    }

    /// A wait for a value is over. If its task still exists, an unreported writer ended it.
    pub(super) fn end_wait(&mut self, by: By, wait: u64, cell: Cell) {
        let is_it = |task: &Task| {
            task.job.call.number == wait
                && matches!(task.job.action, Action::WaitValue(of, ..) if of == cell)
        };
        let found = self.tasks.iter().filter(|(_, task)| is_it(task)).map(|(&id, _)| id).min();
        let Some(id) = found else { return };
        let mut known = self.clock_of(by);
        if self.options.host_order == HostOrder::Reported {
            // Any thread may have written it.
            for thread in self.threads.values() {
                known.join(&thread.clock);
            }
        }
        known.join(&self.values.everything());
        if let Some(task) = self.tasks.get_mut(&id) {
            task.base.join(&known);
        }
        self.force(id);
    }

    /// Ends a task, even if something still holds it back here.
    pub(super) fn force(&mut self, id: u64) {
        while self.tasks.contains_key(&id) {
            if !self.force_one(id) {
                self.step(id, true);
                self.drain();
            }
        }
    }

    /// Takes the oldest one of what a task waits for to be over. False if it waits for nothing.
    pub(super) fn force_one(&mut self, id: u64) -> bool {
        let (mut seen, mut open, mut oldest) = (HashSet::from([id]), vec![id], None);
        while let Some(at) = open.pop() {
            let Some(task) = self.tasks.get(&at) else { continue };
            if at != id && task.left == 0 {
                oldest = Some(oldest.map_or(at, |oldest: u64| oldest.min(at)));
            }
            open.extend(
                task.after
                    .iter()
                    .filter(|task| self.tasks.contains_key(task) && seen.insert(**task)),
            );
        }
        let Some(oldest) = oldest else { return false };
        self.step(oldest, true);
        self.drain();
        true
    }
}
