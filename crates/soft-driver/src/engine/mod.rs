//! The engine: which stream may run its next operation, and who runs it.
//!
//! A stream is a queue of tasks in the order of submission, and only its first task can run. That
//! one may run when what it waits for has happened: a point is done, another process has recorded,
//! a word or an external semaphore has the value. If the device runs it, no wait for a value that
//! was submitted before it to the same [channel] may be left, either. In a failed context every
//! task may run, and leaves out its work.
//!
//! Nothing is overlooked, because a stream with work is in exactly one of these places, and each
//! has something that empties it:
//!
//! | the stream is | until |
//! | --- | --- |
//! | in `ready` | [`Running::run`] takes it; with a seeded scheduler a step does |
//! | in `parked`, by the point that it waits for | [`Running::complete`] |
//! | in `parked`, for another process | the thread that listens calls [`Running::recheck_shared`] |
//! | in `parked`, for a word or a semaphore | [`Running::look_at_values`], after each write of a stream and, for writes of the host, now and then by the ticker |
//! | held by its channel | the wait in front of it is over |
//! | with its first task on a thread, or busy until a time | [`Running::go_on`] |
//!
//! A context that fails empties all of them ([`Running::fail`]). All this is under the machine's
//! lock, and with the prompt scheduler `ready` is empty whenever the lock is free. No stream has a
//! thread of its own, and nothing spins. Threads that wait for streams are in [`host_wait`] and
//! [`virtual_time`], those that do work for them in [`workers`].
//!
//! Work in streams touches few other parts; [`Running`] names them.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::JoinHandle;

use crate::abi::*;
use crate::engine::busy::Busy;
use crate::engine::channel::{ChannelKey, Channels};
use crate::engine::clock::Clock;
use crate::engine::context::Contexts;
use crate::engine::jobs::Jobs;
use crate::engine::point::Point;
use crate::engine::schedule::Schedule;
use crate::engine::stream::Stream;
use crate::engine::threads::{Listen, Threads};
use crate::engine::user_object::UserObjects;
use crate::engine::values::Values;
use crate::engine::virtual_waiters::Waits;
use crate::engine::wake::{WAKES, Wake};
use crate::engine::work::{Queued, Step, Task, Turn};
use crate::machine::config::Config;
use crate::machine::handles::Table;
use crate::machine::misuse::Misuses;
use crate::memory::allocations::Allocations;
use crate::order::Feed;
use crate::processes::Record;

pub(crate) mod busy;
pub(crate) mod channel;
pub(crate) mod clock;
pub(crate) mod context;
pub(crate) mod deadlock;
mod default_stream;
mod feed;
pub(crate) mod host_wait;
pub(crate) mod jobs;
mod lost_memory;
mod marks;
pub(crate) mod passing_time;
pub(crate) mod pending;
pub(crate) mod point;
mod schedule;
pub(crate) mod stream;
mod tasks;
pub(crate) mod threads;
pub(crate) mod user_object;
mod values;
pub(crate) mod virtual_time;
mod virtual_waiters;
pub(crate) mod wake;
pub(crate) mod work;
pub(crate) mod workers;

/// What there is to do, and who does it.
pub(crate) struct Engine {
    pub(crate) clock: Clock,
    pub(crate) contexts: Contexts,
    schedule: Schedule,
    parked: Parked,
    pub(crate) channels: Channels,
    /// The waits and writes of values that are under way, for the search for deadlocks.
    pub(crate) values: Values,
    /// The place of the task that was submitted last.
    last_place: u64,
    next_point: u64,
    pub(crate) threads: Threads,
    pub(crate) jobs: Jobs,
    /// Streams that are busy for some time.
    busy: Busy,
    /// What the driver's threads sleep on.
    wake: &'static Wake,
    /// Threads of the program that wait for work to be done.
    pub(crate) waiters: Waiters,
    /// Who waits in virtual time.
    waits: Waits,
    /// User objects, which the thread of the host functions destroys.
    pub(crate) objects: UserObjects,
}

/// Streams whose first task waits.
struct Parked {
    /// By the point that it waits for.
    points: BTreeMap<u64, Vec<u32>>,
    /// Streams that wait for an event of another process.
    shared: Vec<u32>,
    /// For a value in memory, or for an external semaphore.
    values: Vec<u32>,
}

/// How many threads of the program wait for work to be done.
pub(crate) struct Waiters {
    wake: &'static Wake,
    count: usize,
    /// Those that wait for a context to have no work, or for memory not to be used.
    pub(crate) for_idle: usize,
}

impl Waiters {
    /// The streams that wait look again whether they may go on.
    fn wake(&self) {
        if self.count > 0 {
            self.wake.done.notify_all();
        }
    }
}

impl Parked {
    const fn new() -> Self {
        Self { points: BTreeMap::new(), shared: Vec::new(), values: Vec::new() }
    }
}

impl Engine {
    pub(crate) const fn new(slot: usize) -> Self {
        let wake = &WAKES[slot];
        Self {
            clock: Clock::new(),
            contexts: Contexts::new(),
            schedule: Schedule::new(),
            parked: Parked::new(),
            channels: Channels::new(),
            values: Values::new(),
            last_place: 0,
            next_point: 0,
            threads: Threads::new(),
            jobs: Jobs::new(wake),
            busy: Busy::new(),
            wake,
            waiters: Waiters { wake, count: 0, for_idle: 0 },
            waits: Waits::new(),
            objects: UserObjects::new(slot),
        }
    }

    pub(crate) fn reset(&mut self, life: u64) {
        let slot = self.objects.slot();
        let objects = self.objects.next_life(life);
        *self = Self { objects, ..Self::new(slot) };
    }

    /// A driver starts with this configuration.
    pub(crate) fn start(&mut self, config: &Config, listen: Listen) {
        self.clock.start(config.work.time);
        self.values.reaction = config.on_deadlock;
        self.schedule.start(config.work.scheduler);
        self.threads.listen = Some(listen);
    }

    /// Whether a thread does a job, or waits in a call.
    pub(crate) fn has_threads_inside(&self) -> bool {
        self.jobs.are_under_way() || self.waiters.count > 0
    }

    /// Drops all work that no thread has begun. The driver's own threads.
    pub(crate) fn abandon(&mut self) -> Vec<JoinHandle<()>> {
        self.schedule.ready.clear();
        self.parked = Parked::new();
        self.channels.clear();
        self.values.clear();
        self.jobs.clear();
        self.busy.clear();
        core::mem::take(&mut self.threads.handles)
    }

    pub(crate) fn new_point(&mut self, timing: bool, shared: Option<Record>) -> Arc<Point> {
        self.next_point += 1;
        Arc::new(Point {
            id: self.next_point,
            timing,
            done: AtomicBool::new(false),
            stamp: AtomicU64::new(0),
            wanted: AtomicBool::new(false),
            shared,
        })
    }
}

/// The engine at work, with the parts that work in streams touches: a free ends memory, the order
/// checker is given what happens, and a forbidden signal is misuse.
pub(crate) struct Running<'a> {
    pub(crate) engine: &'a mut Engine,
    pub(crate) streams: &'a mut Table<Stream>,
    pub(crate) memory: &'a mut Allocations,
    pub(crate) feed: Option<&'a mut Feed>,
    pub(crate) misuses: &'a Misuses,
}

impl Running<'_> {
    /// Submits an operation to a stream: after what the legacy default stream's rule puts before
    /// it.
    pub(crate) fn submit(&mut self, stream: u32, task: Task) {
        self.begin_operation(stream);
        self.feed_task(stream, self.engine.last_place + 1, &task);
        self.push(stream, task);
        self.run();
    }

    /// A record in a stream that has nothing to do is done at once: its stamp, 0 without timing.
    pub(crate) fn record_now(&mut self, stream: u32, timing: bool) -> Option<u64> {
        let now = self.engine.schedule.prompt && self.streams[stream].queue.is_empty();
        now.then(|| if timing { self.engine.clock.stamp() } else { 0 })
    }

    /// Puts a task at the end of a stream's queue, without the rules of [`submit`](Self::submit).
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
    /// held back. Beside fewer, a card holds back some of them if many streams get work at once,
    /// and not always the same ones; this driver holds back none.
    fn take_channel(&mut self, stream: u32) {
        let entry = &self.streams[stream];
        if self.engine.channels.is_empty() || !entry.queue.is_empty() || entry.channel == u32::MAX {
            return;
        }
        let (context, own, count) =
            (entry.context, entry.channel, self.engine.channels.per_context);
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

    fn push_at(&mut self, stream: u32, queued: Queued) {
        let entry = &mut self.streams[stream];
        let was_idle = entry.queue.is_empty();
        entry.queue.push_back(queued);
        let context = entry.context;
        if was_idle {
            self.engine.contexts[context].busy.insert(stream);
            self.engine.schedule.ready.push(stream);
        }
    }

    /// Does what can be done now.
    pub(crate) fn run(&mut self) {
        if self.engine.schedule.prompt {
            while let Some(stream) = self.engine.schedule.ready.pop() {
                while self.step(stream) {}
            }
        } else if !self.engine.schedule.ready.is_empty() {
            self.engine.wake.ticker.notify_one();
        }
    }

    /// Does one task of one ready stream, chosen by the seed. Whether there was one.
    pub(crate) fn step_at_random(&mut self) -> bool {
        if self.engine.schedule.ready.is_empty() {
            return false;
        }
        let count = self.engine.schedule.ready.len();
        let chosen = self.engine.schedule.draw(count);
        let stream = self.engine.schedule.ready.swap_remove(chosen);
        if self.step(stream) {
            self.engine.schedule.ready.push(stream);
        }
        true
    }

    /// Does the first task of a stream. Whether the stream can go on.
    fn step(&mut self, stream: u32) -> bool {
        let goes_on = self.do_first_task(stream);
        if core::mem::take(&mut self.engine.clock.moved) {
            self.time_moved();
        }
        goes_on
    }

    fn do_first_task(&mut self, stream: u32) -> bool {
        let Some(entry) = self.streams.get_mut(stream) else { return false };
        let (id, key) = (entry.id, (entry.context, entry.channel));
        let Some(Queued { at, task }) = entry.queue.pop_front() else {
            self.went_idle(stream);
            return false;
        };
        let failed = self.engine.contexts.failure(key.0).is_some();
        let channels = &mut self.engine.channels;
        let in_turn = channels.is_empty() || failed || !task.takes_turns();
        let step = if in_turn || !channels.hold(key, at, stream) {
            self.do_task(&Turn { stream, id, key, at, failed }, task)
        } else {
            Step::Blocked(task)
        };
        let queue = &mut self.streams[stream].queue;
        match step {
            Step::Done if queue.is_empty() => self.went_idle(stream),
            Step::Done => return true,
            Step::Blocked(task) => queue.push_front(Queued { at, task }),
            Step::Running => queue.push_front(Queued { at, task: Task::Running }),
        }
        false
    }

    pub(crate) fn complete(&mut self, point: &Point) {
        if point.timing {
            point.stamp.store(self.engine.clock.stamp(), Ordering::Relaxed);
        }
        point.done.store(true, Ordering::Relaxed);
        self.engine.waits.changed();
        if let Some(shared) = &point.shared {
            shared.complete();
            self.feed(|feed| feed.record_done(point.id));
        }
        if let Some(streams) = self.engine.parked.points.remove(&point.id) {
            self.engine.schedule.ready.extend(streams);
        }
        let Engine { objects, jobs, .. } = &mut *self.engine;
        for references in objects.take_done() {
            objects.release_all(jobs, self.feed.as_deref_mut(), references);
        }
        if point.wanted.load(Ordering::Relaxed) {
            self.engine.waiters.wake();
        }
    }

    fn went_idle(&mut self, stream: u32) {
        let Some(entry) = self.streams.get(stream) else { return };
        let (context, destroyed) = (entry.context, entry.destroyed);
        self.engine.contexts[context].busy.remove(&stream);
        self.engine.waits.changed();
        if destroyed {
            self.streams.remove(stream);
        }
        if self.engine.waiters.for_idle > 0 {
            self.engine.waiters.wake();
        }
    }

    /// Looks again at the streams that wait for other processes.
    pub(crate) fn recheck_shared(&mut self) {
        let waiting = core::mem::take(&mut self.engine.parked.shared);
        self.engine.schedule.ready.extend(waiting);
        self.run();
    }

    /// Looks at the words that streams wait for. Whether one of those can go on.
    pub(crate) fn look_at_values(&mut self) -> bool {
        if self.engine.parked.values.is_empty() {
            return false;
        }
        let (streams, contexts) = (&*self.streams, &self.engine.contexts);
        let before = self.engine.schedule.ready.len();
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
        let going: Vec<u32> = self.engine.parked.values.extract_if(.., goes_on).collect();
        self.engine.schedule.ready.extend(going);
        self.engine.schedule.ready.len() > before
    }

    /// Moves every stream that waits back to `ready`, to be looked at again.
    pub(crate) fn look_again(&mut self) {
        let parked = core::mem::take(&mut self.engine.parked.points);
        self.engine.schedule.ready.extend(parked.into_values().flatten());
        let values = core::mem::take(&mut self.engine.parked.values);
        self.engine.schedule.ready.extend(values);
        let held = self.engine.channels.take_held();
        self.engine.schedule.ready.extend(held);
        self.end_busy_of_failed();
        self.engine.waits.changed();
        self.recheck_shared();
        self.engine.waiters.wake();
    }

    /// A context fails for good, with the green contexts of its device: what it had to do is left
    /// out, and every call about it returns the code.
    pub(crate) fn fail(&mut self, context: u32, code: CUresult) {
        if self.engine.contexts.fail_with(context, code) {
            self.look_again();
            // Tasks of a failed context wait for nothing: threads that wait for them look again.
            self.engine.wake.host.notify_all();
        }
    }

    /// The first task of a stream is over, which a thread did, or which took its time.
    pub(crate) fn go_on(&mut self, stream: u32, id: u64) {
        if let Some(entry) = self.streams.get_mut(stream)
            && entry.id == id
            && let Some(Queued { task: Task::Running, .. }) = entry.queue.front()
        {
            entry.queue.pop_front();
            self.engine.schedule.ready.push(stream);
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
        self.schedule.ready.extend(held);
        self.values.passed(at);
    }
}
