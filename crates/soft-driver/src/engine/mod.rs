//! The engine: it moves the work in the queues of streams on, and completes points.
//!
//! A stream with work is in exactly one place: in `ready`, parked on what its first task waits for,
//! or with its first task on a thread. No stream has a thread of its own, and nothing spins.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

use crate::abi::*;
use crate::engine::channel::ChannelKey;
use crate::engine::point::Point;
use crate::engine::work::{Engine, Job, Queued, Task, Work};
use crate::host_function::HostCall;
use crate::ipc;
use crate::machine::config::Scheduler;
use crate::machine::{Machine, State};
use crate::memory::Region;
use crate::order::cell;
use crate::stream::Stream;

pub(crate) mod work;

pub(crate) mod workers;

pub(crate) mod channel;

pub(crate) mod deadlock;

pub(crate) mod waits;

pub(crate) mod time;

pub(crate) mod clock;

pub(crate) mod quiet;

pub(crate) mod patience;

pub(crate) mod ends;

pub(crate) mod point;

pub(crate) mod busy;
pub(crate) mod pump;

impl State {
    pub(crate) fn new_point(&mut self, timing: bool, shared: Option<ipc::Record>) -> Arc<Point> {
        self.engine.next_point += 1;
        Arc::new(Point {
            id: self.engine.next_point,
            timing,
            done: AtomicBool::new(false),
            stamp: AtomicU64::new(0),
            wanted: AtomicBool::new(false),
            shared,
        })
    }

    /// Whether a stream without work may do a task on the spot.
    pub(crate) fn prompt(&self) -> bool {
        matches!(self.config.scheduler, Scheduler::Prompt)
    }

    /// Puts a task at the end of a stream's queue, with no regard to what other streams do.
    pub(crate) fn push(&mut self, stream: u32, task: Task) {
        self.engine.last_place += 1;
        let at = self.engine.last_place;
        self.take_channel(stream);
        if let Task::WaitValue(..) | Task::WriteValue(..) = task {
            let entry = &self.streams[stream];
            self.engine.value_submitted((entry.context, entry.channel), at, stream, &task);
        }
        self.push_at(stream, Queued { at, task });
    }

    /// A stream with nothing to do takes the channel in which the fewest streams wait for values.
    /// Measured on an H200: beside as many waiting streams as there are channels all others are
    /// held back. Beside fewer a card holds some back, now this one and now that, where many
    /// streams are given work at once; here none is.
    fn take_channel(&mut self, stream: u32) {
        let entry = &self.streams[stream];
        if self.engine.channels.is_empty() || !entry.queue.is_empty() || entry.channel == u32::MAX {
            return;
        }
        let (context, own, count) = (entry.context, entry.channel, self.engine.channel_count);
        let waits = |channel: &u32| self.engine.channels.count((context, *channel));
        let others = (own..count).chain(0..own);
        if let Some(channel) = others.min_by_key(waits) {
            self.streams[stream].channel = channel;
        }
    }

    /// A record. Measured: in a stream that has nothing to do it is done at once, whatever holds
    /// back its channel.
    pub(crate) fn push_record(&mut self, stream: u32, point: Arc<Point>) {
        self.engine.last_place += 1;
        let at = if self.streams[stream].queue.is_empty() { 0 } else { self.engine.last_place };
        self.push_at(stream, Queued { at, task: Task::Complete(point) });
    }

    /// Has a point done when all is done that a stream has now: that is no work, which would wait
    /// for its turn.
    pub(crate) fn push_mark(&mut self, stream: u32, point: Arc<Point>) {
        let at = self.streams[stream].queue.back().map_or(0, |last| last.at);
        self.push_at(stream, Queued { at, task: Task::Complete(point) });
    }

    /// Points that are done when no stream uses a piece of memory any more: behind the last use in
    /// each.
    pub(crate) fn marks_behind(&mut self, region: &Arc<Region>) -> Vec<Arc<Point>> {
        let last_use =
            |stream: &Stream| stream.queue.iter().rposition(|queued| queued.task.uses(region));
        let uses: Vec<(u32, usize)> = self
            .streams
            .iter()
            .filter_map(|(stream, entry)| Some((stream, last_use(entry)?)))
            .collect();
        let mut points = Vec::new();
        for (stream, last) in uses {
            points.push(self.mark_behind(stream, last));
        }
        points
    }

    /// A point behind what is at this index of the stream's queue.
    pub(crate) fn mark_behind(&mut self, stream: u32, index: usize) -> Arc<Point> {
        let point = self.new_point(false, None);
        let queue = &mut self.streams[stream].queue;
        let at = queue.get(index).map_or(0, |queued| queued.at);
        queue.insert(index + 1, Queued { at, task: Task::Complete(point.clone()) });
        point
    }

    fn push_at(&mut self, stream: u32, queued: Queued) {
        let entry = &mut self.streams[stream];
        let was_idle = entry.queue.is_empty();
        entry.queue.push_back(queued);
        let context = entry.context;
        if was_idle {
            self.contexts[context].busy.insert(stream);
            self.engine.ready.push(stream);
        }
    }

    /// Submits an operation to a stream: after what the legacy default stream's rule puts before
    /// it.
    pub(crate) fn submit(&mut self, machine: &'static Machine, stream: u32, task: Task) {
        self.join_default(stream);
        self.streams[stream].submitted += 1;
        self.feed_task(stream, self.engine.last_place + 1, &task);
        self.push(stream, task);
        self.run(machine);
    }

    /// The legacy default stream's rule: its operations first wait for all blocking streams of the
    /// context, and later work of those waits for it.
    pub(crate) fn join_default(&mut self, stream: u32) {
        self.pass_gates(stream);
        let entry = &self.streams[stream];
        let context = entry.context;
        if entry.is_legacy {
            let others: Vec<u32> =
                self.contexts[context].busy.iter().copied().filter(|k| *k != stream).collect();
            for other in others {
                let entry = &mut self.streams[other];
                // The legacy stream is in order: it waits once for each other stream's state, not
                // once an operation.
                if !entry.blocking() || entry.joined == Some(entry.submitted) {
                    continue;
                }
                entry.joined = Some(entry.submitted);
                let point = self.new_point(false, None);
                self.push_mark(other, point.clone());
                self.push(stream, Task::Wait(point));
            }
        } else if entry.blocking()
            && let Some(legacy) = self.contexts[context].legacy
            && !self.streams[legacy].queue.is_empty()
        {
            let seen = self.streams[legacy].submitted;
            if self.streams[stream].legacy_seen == Some(seen) {
                return;
            }
            self.streams[stream].legacy_seen = Some(seen);
            let point = self.new_point(false, None);
            self.push_mark(legacy, point.clone());
            self.push(stream, Task::Wait(point));
        }
    }

    /// Has a stream wait for what its whole context waits for, before an operation.
    pub(crate) fn pass_gates(&mut self, stream: u32) {
        let (context, seen) = (self.streams[stream].context, self.streams[stream].gates_seen);
        if self.contexts[context].last_gate == seen {
            return;
        }
        self.streams[stream].gates_seen = self.contexts[context].last_gate;
        let gates = &self.contexts[context].gates;
        let tasks: Vec<Task> = gates
            .iter()
            .filter(|(at, gate)| *at > seen && !gate.is_done())
            .map(|(_, gate)| gate.task())
            .collect();
        for task in tasks {
            self.push(stream, task);
        }
    }

    /// Does what can be done now.
    pub(crate) fn run(&mut self, machine: &'static Machine) {
        if self.prompt() {
            while let Some(stream) = self.engine.ready.pop() {
                while self.step(machine, stream) {}
            }
        } else if !self.engine.ready.is_empty() {
            machine.ticker.notify_one();
        }
    }

    /// Whether a thread has yet to take a job, or is at one.
    fn at_work(&self) -> bool {
        self.engine.running > 0
            || !self.engine.pool_queue.is_empty()
            || !self.engine.host_queue.is_empty()
    }

    /// Does one task of one ready stream, chosen by the seed. Whether there was one.
    pub(crate) fn step_at_random(&mut self, machine: &'static Machine) -> bool {
        if self.engine.ready.is_empty() {
            return false;
        }
        let count = self.engine.ready.len();
        let chosen = self.engine.draw(count);
        let stream = self.engine.ready.swap_remove(chosen);
        if self.step(machine, stream) {
            self.engine.ready.push(stream);
        }
        true
    }

    /// Does the first task of a stream. Whether the stream can go on.
    fn step(&mut self, machine: &'static Machine, stream: u32) -> bool {
        let goes_on = self.do_first_task(machine, stream);
        if core::mem::take(&mut self.engine.time_moved) {
            self.time_moved(machine);
        }
        goes_on
    }

    fn do_first_task(&mut self, machine: &'static Machine, stream: u32) -> bool {
        let Some(entry) = self.streams.get_mut(stream) else { return false };
        let (context, id, key) = (entry.context, entry.id, (entry.context, entry.channel));
        let Some(Queued { at, task }) = entry.queue.pop_front() else {
            self.went_idle(machine, stream);
            return false;
        };
        let failed = self.contexts[context].failed;
        let again = |task| Queued { at, task };
        let in_turn = self.engine.channels.is_empty() || failed.is_some() || !task.takes_turns();
        if !in_turn && self.engine.channels.hold(key, at, stream) {
            self.streams[stream].queue.push_front(again(task));
            return false;
        }
        match task {
            Task::Complete(point) => self.complete(machine, &point),
            Task::Wait(point) if point.is_done() || failed.is_some() => {}
            Task::Wait(point) => {
                self.engine.parked.entry(point.id).or_default().push(stream);
                self.streams[stream].queue.push_front(again(Task::Wait(point)));
                return false;
            }
            Task::WaitShared(wait) if wait.is_done() || failed.is_some() => {}
            Task::WaitShared(wait) => {
                self.listen_for(machine, &wait);
                self.engine.shared_waits.push(stream);
                self.streams[stream].queue.push_front(again(Task::WaitShared(wait)));
                return false;
            }
            Task::WaitValue(wait, origin) if wait.is_done() || failed.is_some() => {
                self.engine.value_passed(key, at);
                if failed.is_none() {
                    self.feed(|feed, _| feed.wait_ended(cell(&wait.word), origin.number));
                }
            }
            Task::WaitValue(wait, origin) => {
                self.engine.values.parked(at, &wait);
                self.engine.value_waits.push(stream);
                self.streams[stream].queue.push_front(again(Task::WaitValue(wait, origin)));
                machine.ticker.notify_one();
                return false;
            }
            Task::WriteValue(write, _) => {
                if failed.is_none() {
                    let changes = write.changes();
                    write.execute();
                    self.feed(|feed, _| {
                        feed.word_written(cell(&write.word), write.value);
                        feed.written(at, changes);
                    });
                }
                self.engine.values.written(at, &write);
                self.look_at_values();
            }
            Task::WaitSemaphore(point, origin) => {
                if failed.is_none() && !point.take() {
                    self.engine.value_waits.push(stream);
                    self.streams[stream]
                        .queue
                        .push_front(again(Task::WaitSemaphore(point, origin)));
                    machine.ticker.notify_one();
                    return false;
                }
                if failed.is_none() {
                    let cell = || point.semaphore.order.cell();
                    self.feed(|feed, _| feed.wait_ended(cell(), origin.number));
                }
            }
            Task::SignalSemaphore(point, origin) => {
                if failed.is_none() {
                    if let Err(what) = point.signal() {
                        let what = format!("external semaphore {:#x}: {what}", point.handle);
                        self.late_misuse(origin, &what);
                    }
                    self.feed(|feed, _| feed.written(at, true));
                    self.look_at_values();
                }
            }
            Task::Host(call) => {
                if failed.is_none() || matches!(call, HostCall::Callback(..)) {
                    self.streams[stream].queue.push_front(again(Task::Running(None)));
                    let work = Work::Host(call);
                    self.engine.host_queue.push_back(Job { stream, id, at, work });
                    machine.host.notify_one();
                    return false;
                }
            }
            // At once: with another thread the time would depend on which is faster.
            Task::Memory(work) if failed.is_none() && self.virtual_time() => {
                self.feed_memory_begins(at, &work);
                work.execute();
                self.feed_memory_ends(&work);
                self.clock.advance(work.virtual_ns());
                self.engine.time_moved = true;
                self.look_at_values();
            }
            Task::Memory(work) => {
                if failed.is_none() {
                    // The host may see the bytes before the thread that writes them comes back.
                    self.feed_memory_begins(at, &work);
                    self.streams[stream].queue.push_front(again(Task::Running(Some(work.clone()))));
                    let work = Work::Memory(work);
                    self.engine.pool_queue.push_back(Job { stream, id, at, work });
                    machine.pool.notify_one();
                    return false;
                }
            }
            Task::Free(region) => self.free_region(&region),
            Task::Busy(ns) => {
                if failed.is_none() {
                    self.streams[stream].queue.push_front(again(Task::Running(None)));
                    self.begin_busy(machine, stream, id, ns);
                    return false;
                }
            }
            running @ Task::Running(_) => {
                self.streams[stream].queue.push_front(again(running));
                return false;
            }
        }
        if self.streams[stream].queue.is_empty() {
            self.went_idle(machine, stream);
            return false;
        }
        true
    }

    pub(crate) fn complete(&mut self, machine: &'static Machine, point: &Point) {
        if point.timing {
            point.stamp.store(self.clock.stamp(), Ordering::Relaxed);
        }
        point.done.store(true, Ordering::Relaxed);
        self.engine.waits.changed();
        if let Some(shared) = &point.shared {
            shared.complete();
            self.feed(|feed, _| feed.record_done(point.id));
        }
        if let Some(streams) = self.engine.parked.remove(&point.id) {
            self.engine.ready.extend(streams);
        }
        if !self.engine.deferred.is_empty() {
            for (_, references) in
                self.engine.deferred.extract_if(.., |(last, _)| last.is_done()).collect::<Vec<_>>()
            {
                self.release_objects(references);
            }
        }
        if point.wanted.load(Ordering::Relaxed) && self.engine.waiters > 0 {
            machine.done.notify_all();
        }
    }

    fn went_idle(&mut self, machine: &'static Machine, stream: u32) {
        let Some(entry) = self.streams.get(stream) else { return };
        let (context, destroyed) = (entry.context, entry.destroyed);
        self.contexts[context].busy.remove(&stream);
        self.engine.waits.changed();
        if destroyed {
            self.streams.remove(stream);
        }
        if self.engine.idle_waiters > 0 && self.engine.waiters > 0 {
            machine.done.notify_all();
        }
    }

    /// Looks again at the streams that wait for other processes.
    pub(crate) fn recheck_shared(&mut self, machine: &'static Machine) {
        let waiting = core::mem::take(&mut self.engine.shared_waits);
        self.engine.ready.extend(waiting);
        self.run(machine);
    }

    /// Looks at the words that streams wait for. Whether one of those can go on.
    pub(crate) fn look_at_values(&mut self) -> bool {
        if self.engine.value_waits.is_empty() {
            return false;
        }
        let (streams, contexts) = (&self.streams, &self.contexts);
        let before = self.engine.ready.len();
        let goes_on = |stream: &mut u32| match streams
            .get(*stream)
            .map(|entry| (entry.context, entry.queue.front()))
        {
            Some((context, Some(Queued { task: Task::WaitValue(wait, _), .. }))) => {
                wait.is_done() || contexts[context].failed.is_some()
            }
            Some((context, Some(Queued { task: Task::WaitSemaphore(point, _), .. }))) => {
                point.is_reached() || contexts[context].failed.is_some()
            }
            _ => true,
        };
        let going: Vec<u32> = self.engine.value_waits.extract_if(.., goes_on).collect();
        self.engine.ready.extend(going);
        self.engine.ready.len() > before
    }

    /// Forgets the work of a stream that goes with its context.
    pub(crate) fn forget_values(&mut self, stream: u32) {
        let Some(entry) = self.streams.get(stream) else { return };
        for queued in &entry.queue {
            match &queued.task {
                Task::WaitValue(..) => {
                    let held = self.engine.channels.pass((entry.context, entry.channel), queued.at);
                    self.engine.ready.extend(held);
                    self.engine.values.passed(queued.at);
                }
                Task::WriteValue(write, _) => self.engine.values.written(queued.at, write),
                _ => {}
            }
        }
    }

    /// Looks again at everything that waits for something.
    pub(crate) fn look_again(&mut self, machine: &'static Machine) {
        let parked = core::mem::take(&mut self.engine.parked);
        self.engine.ready.extend(parked.into_values().flatten());
        let values = core::mem::take(&mut self.engine.value_waits);
        self.engine.ready.extend(values);
        let held = self.engine.channels.take_held();
        self.engine.ready.extend(held);
        self.end_busy_of_failed();
        self.engine.waits.changed();
        self.recheck_shared(machine);
        if self.engine.waiters > 0 {
            machine.done.notify_all();
        }
    }

    /// A context fails for good: what it had to do is left out, and everything answers the code.
    pub(crate) fn fail_context(&mut self, machine: &'static Machine, context: u32, code: CUresult) {
        if self
            .contexts
            .get(context)
            .is_none_or(|context| context.failed.is_some() || !context.alive)
        {
            return;
        }
        // Documented: a green context is the primary one with other resources.
        for context in self.greens.with(self.greens.primary_behind(context)) {
            self.contexts[context].failed = Some(code);
        }
        self.look_again(machine);
        // What is held back is held no longer.
        machine.host.notify_all();
    }

    /// Has a thread look again, for as long as a stream waits for other processes.
    fn listen_for(&mut self, machine: &'static Machine, wait: &ipc::Wait) {
        let epoch = self.epoch;
        let look = move || {
            let mut state = machine.lock();
            let ended = state.epoch != epoch || state.stopping;
            if !ended {
                state.recheck_shared(machine);
            }
            (ended || state.engine.shared_waits.is_empty()).then_some(state)
        };
        if let Some(thread) = ipc::watch(wait, (machine.slot, epoch), look) {
            self.engine.threads.retain(|thread| !thread.is_finished());
            self.engine.threads.push(thread);
        }
    }

    /// Why the context of a stream failed, if it did.
    pub(crate) fn failure_of(&self, stream: u32, id: u64) -> Option<CUresult> {
        let entry = self.streams.get(stream).filter(|entry| entry.id == id)?;
        self.contexts[entry.context].failed
    }

    /// The next job for the thread of the host functions. Those that are held back stay in the
    /// queue, except in a failed context: it leaves its functions out, and tells its callbacks.
    pub(crate) fn next_host_job(&mut self) -> Option<Job> {
        if !self.engine.hold_host_functions {
            return self.engine.host_queue.pop_front();
        }
        let failed = |job: &Job| self.failure_of(job.stream, job.id).is_some();
        let at = self.engine.host_queue.iter().position(failed)?;
        self.engine.host_queue.remove(at)
    }

    /// What a thread does when it has done a job.
    pub(crate) fn finish(&mut self, machine: &'static Machine, stream: u32, id: u64) {
        self.engine.running -= 1;
        self.engine.waits.changed();
        self.go_on(stream, id);
        // The job may have written what others wait for.
        self.look_at_values();
        self.run(machine);
        let steps = !self.prompt() || !self.engine.busy.is_empty();
        if steps && self.engine.waiters > 0 {
            // A waiter may have to do the next step itself, or to let time pass.
            machine.done.notify_all();
        }
    }

    /// The first task of a stream is over, which was done elsewhere.
    pub(crate) fn go_on(&mut self, stream: u32, id: u64) {
        if let Some(entry) = self.streams.get_mut(stream)
            && entry.id == id
            && let Some(Queued { task: Task::Running(_), .. }) = entry.queue.front()
        {
            entry.queue.pop_front();
            self.engine.ready.push(stream);
        }
    }
}

impl Engine {
    /// A wait or a write of a value takes its place.
    fn value_submitted(&mut self, key: ChannelKey, at: u64, stream: u32, task: &Task) {
        match task {
            Task::WaitValue(wait, _) => {
                self.channels.wait(key, at, stream);
                self.values.waits(at, wait);
            }
            Task::WriteValue(write, _) => self.values.writes(at, write),
            _ => {}
        }
    }

    /// A wait for a value is over: what it held back can go on.
    fn value_passed(&mut self, key: ChannelKey, at: u64) {
        let held = self.channels.pass(key, at);
        self.ready.extend(held);
        self.values.passed(at);
    }
}
