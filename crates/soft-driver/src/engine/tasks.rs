//! What a stream does when it gets to a task.

use crate::abi::CUresult;
use crate::engine::Running;
use crate::engine::work::{HostCall, Job, Origin, Step, Task, Turn, Work};
use crate::memory::word::{ValueWait, ValueWrite};
use crate::memory::work::MemoryWork;
use crate::processes::semaphore::SemaphorePoint;

impl Running<'_> {
    /// Does a task whose turn it is. In a failed context its work is left out.
    pub(super) fn do_task(&mut self, turn: &Turn, task: Task) -> Step {
        match task {
            Task::Complete(point) => self.complete(&point),
            Task::Wait(point) if !turn.failed && !point.is_done() => {
                self.engine.parked.points.entry(point.id).or_default().push(turn.stream);
                return Step::Blocked(Task::Wait(point));
            }
            Task::WaitShared(wait) if !turn.failed && !wait.is_done() => {
                self.engine.threads.listen_for(&wait);
                self.engine.parked.shared.push(turn.stream);
                return Step::Blocked(Task::WaitShared(wait));
            }
            Task::Wait(_) | Task::WaitShared(_) => {}
            Task::WaitValue(wait, origin) => return turn.wait_value(self, wait, origin),
            Task::WriteValue(write, _) => turn.write_value(self, &write),
            Task::WaitSemaphore(point, origin) => return turn.wait_semaphore(self, point, origin),
            Task::SignalSemaphore(point, origin) => turn.signal_semaphore(self, &point, origin),
            Task::Host(call) => return turn.host(self, call),
            Task::Memory(work) => return turn.memory(self, work),
            Task::Device(work) if !turn.failed => {
                self.engine.jobs.give_pool(turn.job(Work::Device(work)));
                return Step::Running;
            }
            Task::Busy(ns) if !turn.failed => {
                self.begin_busy(turn.stream, turn.id, ns);
                return Step::Running;
            }
            Task::Device(_) | Task::Busy(_) => {}
            Task::Free(region) => self.memory.free_now(&region),
            Task::Running => return Step::Running,
        }
        Step::Done
    }
}

impl Turn {
    fn job(&self, work: Work) -> Job {
        Job { stream: self.stream, id: self.id, at: self.at, work }
    }

    /// The stream waits until the ticker, or a write, finds the value.
    fn park(&self, running: &mut Running, task: Task) -> Step {
        running.engine.parked.values.push(self.stream);
        running.engine.wake.ticker.notify_one();
        Step::Blocked(task)
    }

    fn wait_value(&self, running: &mut Running, wait: ValueWait, origin: Origin) -> Step {
        if !self.failed && !wait.is_done() {
            running.engine.values.waits(self.at, &wait);
            return self.park(running, Task::WaitValue(wait, origin));
        }
        running.engine.value_passed(self.key, self.at);
        if !self.failed {
            running.feed(|feed| feed.wait_ended(wait.word.cell(), origin.number));
        }
        Step::Done
    }

    fn write_value(&self, running: &mut Running, write: &ValueWrite) {
        if !self.failed {
            let changes = write.changes();
            write.execute();
            running.feed(|feed| {
                feed.word_written(write.word.cell(), write.value);
                feed.written(self.at, changes);
            });
        }
        running.engine.values.written(self.at, write);
        running.look_at_values();
    }

    fn wait_semaphore(&self, running: &mut Running, point: SemaphorePoint, origin: Origin) -> Step {
        if self.failed {
            return Step::Done;
        }
        if !point.take() {
            return self.park(running, Task::WaitSemaphore(point, origin));
        }
        running.feed(|feed| feed.wait_ended(point.semaphore.order.cell(), origin.number));
        Step::Done
    }

    fn signal_semaphore(&self, running: &mut Running, point: &SemaphorePoint, origin: Origin) {
        if self.failed {
            return;
        }
        if let Err(what) = point.signal() {
            let what = format!("external semaphore {:#x}: {what}", point.handle);
            running.misuses.undefined_later(origin, &what);
        }
        running.feed(|feed| feed.written(self.at, true));
        running.look_at_values();
    }

    fn host(&self, running: &mut Running, call: HostCall) -> Step {
        if self.failed && !matches!(call, HostCall::Callback(..)) {
            return Step::Done;
        }
        running.engine.jobs.give_host(self.job(Work::Host(call)));
        Step::Running
    }

    fn memory(&self, running: &mut Running, work: MemoryWork) -> Step {
        if self.failed {
            return Step::Done;
        }
        if work.places().any(|place| running.memory.is_unmapped(place)) {
            crate::say!("a stream is to use memory that is no longer mapped");
            running.fail(self.key.0, CUresult::CUDA_ERROR_LAUNCH_FAILED);
            return Step::Done;
        }
        // The host may see the bytes before the thread that writes them comes back.
        running.feed(|feed| work.begins(feed, self.at));
        if !running.engine.clock.is_virtual() {
            running.engine.jobs.give_pool(self.job(Work::Memory(work)));
            return Step::Running;
        }
        // At once: with another thread the time would depend on which is faster.
        work.execute();
        running.feed(|feed| work.ends(feed));
        running.engine.clock.advance(work.virtual_ns());
        running.engine.clock.moved = true;
        running.look_at_values();
        Step::Done
    }
}
