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
//! | in `shared_waits`, for another process | the thread that listens calls [`Running::recheck_shared`] |
//! | in `value_waits`, for a word or a semaphore | [`Running::look_at_values`], after each write of a stream and, for writes of the host, now and then by the ticker |
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
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::thread::JoinHandle;

use crate::abi::*;
use crate::engine::busy::Busy;
use crate::engine::channel::{ChannelKey, Channels, DEFAULT_CHANNELS};
use crate::engine::clock::Clock;
use crate::engine::context::ContextWork;
use crate::engine::deadlock::Values;
use crate::engine::point::Point;
use crate::engine::stream::Stream;
use crate::engine::user_object::UserObjects;
use crate::engine::virtual_time::Waits;
use crate::engine::work::{HostCall, Job, Queued, Task, Work};
use crate::machine::Machine;
use crate::machine::config::{Config, OnDeadlock, Scheduler, Time};
use crate::machine::handles::Table;
use crate::machine::misuse::Misuses;
use crate::memory::allocations::Allocations;
use crate::order::Feed;
use crate::processes::Record;
use crate::random;

pub(crate) mod busy;
pub(crate) mod channel;
pub(crate) mod clock;
pub(crate) mod context;
#[cfg(feature = "courtesy")]
mod courtesy;
pub(crate) mod deadlock;
mod default_stream;
mod feed;
pub(crate) mod host_wait;
pub(crate) mod idle_threads;
mod marks;
pub(crate) mod point;
pub(crate) mod stream;
pub(crate) mod thread_time;
pub(crate) mod time;
pub(crate) mod user_object;
pub(crate) mod virtual_time;
pub(crate) mod work;
pub(crate) mod workers;

/// What there is to do, and who does it.
pub(crate) struct Engine {
    clock: Clock,
    /// What the streams of each context share, by context.
    contexts: Vec<ContextWork>,
    /// Whether an idle stream does its work at once; otherwise a seeded scheduler does.
    prompt: bool,
    virtual_time: bool,
    on_deadlock: OnDeadlock,
    ready: Vec<u32>,
    /// Streams by the point that their first task waits for.
    parked: BTreeMap<u64, Vec<u32>>,
    /// Streams whose first task waits for another process.
    shared_waits: Vec<u32>,
    /// Streams whose first task waits for a value in memory, or for an external semaphore.
    value_waits: Vec<u32>,
    /// How many channels a context has.
    channel_count: u32,
    /// The deadlocks that were found, in words.
    deadlocks: Vec<String>,
    /// The driver's own threads.
    threads: Vec<JoinHandle<()>>,
    /// Threads in `Machine::done`.
    waiters: usize,
    /// Where waits for values hold back what was submitted after them.
    channels: Channels,
    /// The waits and writes of values that are under way, for the search for deadlocks.
    values: Values,
    /// The place of the task that was submitted last.
    last_place: u64,
    host_queue: VecDeque<Job>,
    pool_queue: VecDeque<Job>,
    host_threads: usize,
    /// Threads that were started to set and copy memory, and those for other work of the device.
    pool_threads: usize,
    device_threads: usize,
    pool_idle: usize,
    ticker_threads: usize,
    /// The threads that do jobs, as the system numbers them, as far as they have begun.
    workers: Vec<i32>,
    /// The thread that called last, where a seeded scheduler asks for that.
    caller: i32,
    /// Whether a call waits for what a seeded step began.
    stepping: bool,
    /// Jobs that a thread is doing.
    running: usize,
    /// Those of them that run functions of the program.
    in_host: usize,
    /// And those that do other work of the device than to set and copy memory.
    in_device: usize,
    /// Streams that are busy for some time.
    busy: Busy,
    timer_threads: usize,
    /// Who waits in virtual time.
    waits: Waits,
    /// Virtual time has moved with a piece of work.
    time_moved: bool,
    next_point: u64,
    /// User objects, which the thread of the host functions destroys.
    objects: UserObjects,
    /// Threads that wait for a context to have no work, or for memory not to be used.
    idle_waiters: usize,
    /// The seeded scheduler's state.
    random: u64,
    /// Host functions do not start while this is set.
    hold_host_functions: bool,
}

impl Engine {
    pub(crate) const fn new(slot: usize) -> Self {
        Self {
            clock: Clock::new(),
            contexts: Vec::new(),
            prompt: true,
            virtual_time: false,
            on_deadlock: OnDeadlock::Misuse,
            ready: Vec::new(),
            parked: BTreeMap::new(),
            shared_waits: Vec::new(),
            value_waits: Vec::new(),
            channel_count: DEFAULT_CHANNELS,
            deadlocks: Vec::new(),
            threads: Vec::new(),
            waiters: 0,
            channels: Channels::new(),
            values: Values::new(),
            last_place: 0,
            host_queue: VecDeque::new(),
            pool_queue: VecDeque::new(),
            host_threads: 0,
            pool_threads: 0,
            device_threads: 0,
            pool_idle: 0,
            ticker_threads: 0,
            workers: Vec::new(),
            caller: 0,
            stepping: false,
            running: 0,
            in_host: 0,
            in_device: 0,
            busy: Busy::new(),
            timer_threads: 0,
            waits: Waits::new(),
            time_moved: false,
            next_point: 0,
            objects: UserObjects::new(slot),
            idle_waiters: 0,
            random: 0,
            hold_host_functions: false,
        }
    }

    pub(crate) fn reset(&mut self, life: u64) {
        let objects = self.objects.next_life(life);
        *self = Self { objects, ..Self::new(0) };
    }

    /// A driver starts with this configuration.
    pub(crate) fn start(&mut self, config: &Config) {
        self.clock.start(config.time);
        self.virtual_time = config.time == Time::Virtual;
        self.on_deadlock = config.on_deadlock;
        self.prompt = true;
        if let Scheduler::Seeded(seed) = config.scheduler {
            (self.prompt, self.random) = (false, seed);
        }
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

    /// A number below `bound`, from the seed.
    pub(crate) fn draw(&mut self, bound: usize) -> usize {
        (random::next(&mut self.random) % bound.max(1) as u64) as usize
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
    /// Whose threads are woken.
    pub(crate) machine: &'static Machine,
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
        let now = self.engine.prompt && self.streams[stream].queue.is_empty();
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

    fn push_at(&mut self, stream: u32, queued: Queued) {
        let entry = &mut self.streams[stream];
        let was_idle = entry.queue.is_empty();
        entry.queue.push_back(queued);
        let context = entry.context;
        if was_idle {
            self.engine.contexts[context as usize].busy.insert(stream);
            self.engine.ready.push(stream);
        }
    }

    /// Does what can be done now.
    pub(crate) fn run(&mut self) {
        if self.engine.prompt {
            while let Some(stream) = self.engine.ready.pop() {
                while self.step(stream) {}
            }
        } else if !self.engine.ready.is_empty() {
            self.machine.ticker.notify_one();
        }
    }

    /// Does one task of one ready stream, chosen by the seed. Whether there was one.
    pub(crate) fn step_at_random(&mut self) -> bool {
        if self.engine.ready.is_empty() {
            return false;
        }
        let count = self.engine.ready.len();
        let chosen = self.engine.draw(count);
        let stream = self.engine.ready.swap_remove(chosen);
        if self.step(stream) {
            self.engine.ready.push(stream);
        }
        true
    }

    /// Does the first task of a stream. Whether the stream can go on.
    fn step(&mut self, stream: u32) -> bool {
        let goes_on = self.do_first_task(stream);
        if core::mem::take(&mut self.engine.time_moved) {
            self.time_moved();
        }
        goes_on
    }

    fn do_first_task(&mut self, stream: u32) -> bool {
        let Some(entry) = self.streams.get_mut(stream) else { return false };
        let (context, id, key) = (entry.context, entry.id, (entry.context, entry.channel));
        let Some(Queued { at, task }) = entry.queue.pop_front() else {
            self.went_idle(stream);
            return false;
        };
        let failed = self.engine.failure(context);
        let again = |task| Queued { at, task };
        let in_turn = self.engine.channels.is_empty() || failed.is_some() || !task.takes_turns();
        if !in_turn && self.engine.channels.hold(key, at, stream) {
            self.streams[stream].queue.push_front(again(task));
            return false;
        }
        match task {
            Task::Complete(point) => self.complete(&point),
            Task::Wait(point) if point.is_done() || failed.is_some() => {}
            Task::Wait(point) => {
                self.engine.parked.entry(point.id).or_default().push(stream);
                self.streams[stream].queue.push_front(again(Task::Wait(point)));
                return false;
            }
            Task::WaitShared(wait) if wait.is_done() || failed.is_some() => {}
            Task::WaitShared(wait) => {
                self.listen_for(&wait);
                self.engine.shared_waits.push(stream);
                self.streams[stream].queue.push_front(again(Task::WaitShared(wait)));
                return false;
            }
            Task::WaitValue(wait, origin) if wait.is_done() || failed.is_some() => {
                self.engine.value_passed(key, at);
                if failed.is_none() {
                    self.feed(|feed| feed.wait_ended(wait.word.cell(), origin.number));
                }
            }
            Task::WaitValue(wait, origin) => {
                self.engine.values.waits(at, &wait);
                self.engine.value_waits.push(stream);
                self.streams[stream].queue.push_front(again(Task::WaitValue(wait, origin)));
                self.machine.ticker.notify_one();
                return false;
            }
            Task::WriteValue(write, _) => {
                if failed.is_none() {
                    let changes = write.changes();
                    write.execute();
                    self.feed(|feed| {
                        feed.word_written(write.word.cell(), write.value);
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
                    self.machine.ticker.notify_one();
                    return false;
                }
                if failed.is_none() {
                    let cell = || point.semaphore.order.cell();
                    self.feed(|feed| feed.wait_ended(cell(), origin.number));
                }
            }
            Task::SignalSemaphore(point, origin) => {
                if failed.is_none() {
                    if let Err(what) = point.signal() {
                        let what = format!("external semaphore {:#x}: {what}", point.handle);
                        self.misuses.undefined_later(origin, &what);
                    }
                    self.feed(|feed| feed.written(at, true));
                    self.look_at_values();
                }
            }
            Task::Host(call) => {
                if failed.is_none() || matches!(call, HostCall::Callback(..)) {
                    self.streams[stream].queue.push_front(again(Task::Running));
                    let work = Work::Host(call);
                    self.engine.host_queue.push_back(Job { stream, id, at, work });
                    self.machine.host.notify_one();
                    return false;
                }
            }
            // At once: with another thread the time would depend on which is faster.
            Task::Memory(work) if failed.is_none() && self.engine.virtual_time => {
                self.feed(|feed| work.begins(feed, at));
                work.execute();
                self.feed(|feed| work.ends(feed));
                self.engine.clock.advance(work.virtual_ns());
                self.engine.time_moved = true;
                self.look_at_values();
            }
            Task::Memory(work) => {
                if failed.is_none() {
                    // The host may see the bytes before the thread that writes them comes back.
                    self.feed(|feed| work.begins(feed, at));
                    let work = Work::Memory(work);
                    self.streams[stream].queue.push_front(again(Task::Running));
                    self.engine.pool_queue.push_back(Job { stream, id, at, work });
                    self.machine.pool.notify_one();
                    return false;
                }
            }
            Task::Device(work) => {
                if failed.is_none() {
                    let work = Work::Device(work);
                    self.streams[stream].queue.push_front(again(Task::Running));
                    self.engine.pool_queue.push_back(Job { stream, id, at, work });
                    self.machine.pool.notify_one();
                    return false;
                }
            }
            Task::Free(region) => self.memory.free_now(&region),
            Task::Busy(ns) => {
                if failed.is_none() {
                    self.streams[stream].queue.push_front(again(Task::Running));
                    self.begin_busy(stream, id, ns);
                    return false;
                }
            }
            Task::Running => {
                self.streams[stream].queue.push_front(again(Task::Running));
                return false;
            }
        }
        if self.streams[stream].queue.is_empty() {
            self.went_idle(stream);
            return false;
        }
        true
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
        if let Some(streams) = self.engine.parked.remove(&point.id) {
            self.engine.ready.extend(streams);
        }
        for references in self.engine.objects.take_done() {
            self.engine.release_objects(self.feed.as_deref_mut(), references);
        }
        if point.wanted.load(Ordering::Relaxed) && self.engine.waiters > 0 {
            self.machine.done.notify_all();
        }
    }

    fn went_idle(&mut self, stream: u32) {
        let Some(entry) = self.streams.get(stream) else { return };
        let (context, destroyed) = (entry.context, entry.destroyed);
        self.engine.contexts[context as usize].busy.remove(&stream);
        self.engine.waits.changed();
        if destroyed {
            self.streams.remove(stream);
        }
        if self.engine.idle_waiters > 0 && self.engine.waiters > 0 {
            self.machine.done.notify_all();
        }
    }

    /// Looks again at the streams that wait for other processes.
    pub(crate) fn recheck_shared(&mut self) {
        let waiting = core::mem::take(&mut self.engine.shared_waits);
        self.engine.ready.extend(waiting);
        self.run();
    }

    /// Looks at the words that streams wait for. Whether one of those can go on.
    pub(crate) fn look_at_values(&mut self) -> bool {
        if self.engine.value_waits.is_empty() {
            return false;
        }
        let (streams, contexts) = (&*self.streams, &self.engine.contexts);
        let before = self.engine.ready.len();
        let goes_on = |stream: &mut u32| match streams
            .get(*stream)
            .map(|entry| (entry.context, entry.queue.front()))
        {
            Some((context, Some(Queued { task: Task::WaitValue(wait, _), .. }))) => {
                wait.is_done() || contexts[context as usize].failed.is_some()
            }
            Some((context, Some(Queued { task: Task::WaitSemaphore(point, _), .. }))) => {
                point.is_reached() || contexts[context as usize].failed.is_some()
            }
            _ => true,
        };
        let going: Vec<u32> = self.engine.value_waits.extract_if(.., goes_on).collect();
        self.engine.ready.extend(going);
        self.engine.ready.len() > before
    }

    /// Moves every stream that waits back to `ready`, to be looked at again.
    pub(crate) fn look_again(&mut self) {
        let parked = core::mem::take(&mut self.engine.parked);
        self.engine.ready.extend(parked.into_values().flatten());
        let values = core::mem::take(&mut self.engine.value_waits);
        self.engine.ready.extend(values);
        let held = self.engine.channels.take_held();
        self.engine.ready.extend(held);
        self.end_busy_of_failed();
        self.engine.waits.changed();
        self.recheck_shared();
        if self.engine.waiters > 0 {
            self.machine.done.notify_all();
        }
    }

    /// A context fails for good, with the green contexts of its device: what it had to do is left
    /// out, and every call about it returns the code.
    pub(crate) fn fail(&mut self, context: u32, code: CUresult) {
        if self.engine.fail_contexts_with(context, code) {
            self.look_again();
            // What is held back is held no longer.
            self.machine.host.notify_all();
        }
    }

    /// The first task of a stream is over, which a thread did, or which took its time.
    pub(crate) fn go_on(&mut self, stream: u32, id: u64) {
        if let Some(entry) = self.streams.get_mut(stream)
            && entry.id == id
            && let Some(Queued { task: Task::Running, .. }) = entry.queue.front()
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
