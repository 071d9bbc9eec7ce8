//! Tasks: what waits, what runs, and what a call has waited for.

use super::memory::cell_access;
use super::{Act, Reference, Task, one};
use cuda_order_check_engine::{AccessKind, By, StreamId, StreamKind, What};

impl Reference {
    pub(super) fn submit(&mut self, before: Vec<usize>, act: Act) -> usize {
        let node = self.graph.node(before);
        self.tasks.insert(node, Task { act, running: None });
        self.run(node, false);
        node
    }

    pub(super) fn held(&self, node: usize) -> bool {
        self.graph.before[node].iter().any(|before| self.tasks.contains_key(before))
    }

    /// Lets a node run if it may. Returns whether something changed.
    pub(super) fn run(&mut self, node: usize, force: bool) -> bool {
        let Some(task) = self.tasks.get(&node).cloned() else { return false };
        if self.held(node) || task.running.is_some() && !force {
            return false;
        }
        match task.act {
            Act::Nothing => {}
            Act::Work(accesses) => {
                self.memory.accesses(&self.graph, node, &accesses);
            }
            Act::Write(cell, value) => self.memory.write(&self.graph, node, cell, value),
            Act::Wait(cell, value, compare) => {
                self.memory.expect(cell);
                let before = self.graph.before[node].clone();
                match self.memory.seen(&self.graph, &before, cell, value, compare) {
                    Some(seen) => self.graph.before[node].extend(seen),
                    None if force => {
                        let all = self
                            .memory
                            .writes
                            .iter()
                            .filter(|write| write.0 == cell.address)
                            .map(|write| write.1);
                        let all: Vec<usize> = all.collect();
                        self.graph.before[node].extend(all);
                    }
                    None => {
                        self.memory.width(cell);
                        return false;
                    }
                }
                self.memory.access(&self.graph, node, &cell_access(AccessKind::Wait, cell));
            }
            Act::Function(accesses) => {
                if task.running.is_none() {
                    let begin = self.graph.node(self.graph.before[node].clone());
                    self.graph.lines[begin] = self.graph.lines[node];
                    self.memory.accesses(&self.graph, begin, &accesses);
                    self.tasks.get_mut(&node).unwrap().running = Some(one(begin));
                    if !force {
                        return true;
                    }
                }
                self.graph.before[node].extend(self.tasks[&node].running.clone().unwrap());
            }
        }
        self.tasks.remove(&node);
        true
    }

    pub(super) fn drain(&mut self) {
        while self
            .tasks
            .keys()
            .copied()
            .collect::<Vec<_>>()
            .into_iter()
            .any(|node| self.run(node, false))
        {}
    }

    pub(super) fn force_one(&mut self, node: usize) -> bool {
        let before = self.graph.closure(&one(node));
        let stuck = before
            .into_iter()
            .find(|other| *other != node && self.tasks.contains_key(other) && !self.held(*other));
        stuck.is_some_and(|stuck| {
            self.run(stuck, true);
            self.drain();
            true
        })
    }

    pub(super) fn reach(&mut self, by: By, what: What) {
        let points = match what {
            What::Stream(StreamId(stream)) => {
                let Some(state) = self.streams.get(&stream) else { return };
                let mut points: Vec<usize> = state.tail.into_iter().collect();
                if state.kind == Some(StreamKind::Legacy) {
                    points.extend(self.blocking(state.context));
                }
                points
            }
            What::Event(event) => {
                self.events.get(&event.0).and_then(|state| state.record).into_iter().collect()
            }
            What::Context(context) => self.context_work(context.0),
        };
        for point in points {
            while self.tasks.contains_key(&point) {
                if !self.force_one(point) {
                    self.run(point, true);
                    self.drain();
                }
            }
            self.learn(by, &[point]);
        }
    }
}
