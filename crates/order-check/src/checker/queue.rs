//! The tasks that something holds back, and what they wait for.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::sync::{Arc, OnceLock};

use crate::clock::Clock;
use crate::map::Map;
use crate::op::{Call, Cell, FunctionId};
use crate::task::{Action, Actor, Point, Task, Unfinished};

#[derive(Debug, Default)]
pub(super) struct Queue {
    tasks: Map<u64, Task>,
    /// Those that nothing holds back, the oldest first.
    ready: BinaryHeap<Reverse<u64>>,
    last: u64,
    /// The tasks of host functions that are not over.
    functions: Map<FunctionId, u64>,
}

impl Queue {
    /// A new task, which is after `after` of the others. Returns its end.
    pub(super) fn insert(
        &mut self,
        id: u64,
        (actor, action): (Actor, Action<'_>),
        base: Clock,
        after: Vec<u64>,
        running: bool,
    ) -> Point {
        for earlier in &after {
            if let Some(task) = self.tasks.get_mut(earlier) {
                task.before.push(id);
            }
        }
        let point = Arc::new(Unfinished { task: id, clock: OnceLock::new() });
        let task = Task {
            actor,
            action: action.into_owned(),
            base,
            left: after.len(),
            after,
            before: Vec::new(),
            point: point.clone(),
            running,
        };
        self.tasks.insert(id, task);
        Point::Pending(point)
    }

    /// The number of the next task.
    pub(super) fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    pub(super) fn put_back(&mut self, id: u64, task: Task) {
        self.tasks.insert(id, task);
    }

    /// These may be able to go on.
    #[inline]
    pub(super) fn wake(&mut self, tasks: Vec<u64>) {
        self.ready.extend(tasks.into_iter().map(Reverse));
    }

    /// The oldest task that may be able to go on.
    #[inline]
    pub(super) fn pop_ready(&mut self) -> Option<u64> {
        self.ready.pop().map(|Reverse(id)| id)
    }

    /// All that tasks have in common with what may still come.
    pub(super) fn meet(&self, clock: Clock) -> Clock {
        self.tasks.values().fold(clock, |one, task| one.meet(&task.base))
    }

    pub(super) fn len(&self) -> usize {
        self.tasks.len()
    }

    pub(super) fn oldest(&self) -> Option<u64> {
        self.tasks.keys().min().copied()
    }

    pub(super) fn has(&self, id: u64) -> bool {
        self.tasks.contains_key(&id)
    }

    /// A task for which nothing is left to wait.
    pub(super) fn take(&mut self, id: u64) -> Option<Task> {
        self.tasks.get(&id).filter(|task| task.left == 0)?;
        self.tasks.remove(&id)
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
        // A task ends once, so the clock is not set yet.
        let _ = task.point.clock.set(task.base);
    }

    /// The oldest one of what a task waits for.
    pub(super) fn oldest_before(&self, id: u64) -> Option<u64> {
        let (mut seen, mut open, mut oldest) = (HashSet::from([id]), vec![id], None);
        while let Some(at) = open.pop() {
            let Some(task) = self.tasks.get(&at) else { continue };
            if at != id && task.left == 0 {
                oldest = Some(oldest.map_or(at, |oldest: u64| oldest.min(at)));
            }
            let held = task.after.iter().filter(|task| self.tasks.contains_key(task));
            open.extend(held.filter(|task| seen.insert(**task)));
        }
        oldest
    }

    /// The oldest task that waits for a value, and was submitted by the call with this number.
    pub(super) fn wait_of_call(&self, number: u64, cell: Cell) -> Option<u64> {
        let is_it = |task: &Task| {
            task.actor.call.number == number
                && matches!(task.action, Action::WaitValue(awaited, ..) if awaited == cell)
        };
        self.tasks.iter().filter(|(_, task)| is_it(task)).map(|(&id, _)| id).min()
    }

    /// A task is after all that is in this clock.
    pub(super) fn put_after(&mut self, id: u64, clock: &Clock) {
        if let Some(task) = self.tasks.get_mut(&id) {
            task.base.join(clock);
        }
    }

    /// The call whose end a task waits for: that of a host function, or of a wait for a value.
    pub(super) fn held_back_by(&self, id: u64) -> Option<&Arc<Call>> {
        let mut task = self.tasks.get(&id)?;
        while let Some(before) = task.after.iter().find_map(|id| self.tasks.get(id)) {
            task = before;
        }
        Some(&task.actor.call)
    }

    /// Whether a task is a host function that is not over, or waits for one.
    pub(super) fn is_behind_function(&self, id: u64) -> bool {
        let (mut seen, mut open) = (HashSet::from([id]), vec![id]);
        while let Some(at) = open.pop() {
            let Some(task) = self.tasks.get(&at) else { continue };
            if self.functions.values().any(|task| *task == at) {
                return true;
            }
            open.extend(task.after.iter().filter(|task| seen.insert(**task)));
        }
        false
    }

    pub(super) fn remove_function(&mut self, function: FunctionId) -> Option<Task> {
        self.tasks.remove(&self.functions.remove(&function)?)
    }

    /// The submitted work is a host function with a number, whose end will be reported.
    pub(super) fn is_function(&mut self, function: FunctionId, point: &Point) {
        if let Point::Pending(unfinished) = point {
            self.functions.insert(function, unfinished.task);
        }
    }

    /// The task of a host function that is not over.
    pub(super) fn function(&self, function: FunctionId) -> Option<(u64, &Task)> {
        let id = *self.functions.get(&function)?;
        Some((id, self.tasks.get(&id)?))
    }

    pub(super) fn function_mut(&mut self, function: FunctionId) -> Option<&mut Task> {
        self.tasks.get_mut(self.functions.get(&function)?)
    }
}
