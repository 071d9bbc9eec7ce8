//! The engine: it moves the work in the queues of streams on, and completes points.
//!
//! A stream with work is in exactly one place: in `ready`, parked on what its first task waits for,
//! or with its first task on a thread. No stream has a thread of its own, and nothing spins.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::thread::JoinHandle;

use crate::abi::*;
use crate::engine::busy::Busy;
use crate::engine::channel::{ChannelKey, Channels, DEFAULT_CHANNELS};
use crate::engine::deadlock::Values;
use crate::engine::point::Point;
use crate::engine::stream::Stream;
use crate::engine::user_object::UserObjects;
use crate::engine::waits::Waits;
use crate::engine::work::{HostCall, Job, Queued, Task, Work};
use crate::machine::config::Scheduler;
use crate::machine::{Machine, State};
use crate::memory::Region;
use crate::{processes, random};

pub(crate) mod busy;
pub(crate) mod channel;
pub(crate) mod clock;
pub(crate) mod deadlock;
pub(crate) mod patience;
pub(crate) mod point;
pub(crate) mod pump;
pub(crate) mod quiet;
pub(crate) mod stream;
pub(crate) mod time;
pub(crate) mod user_object;
pub(crate) mod waits;
pub(crate) mod work;
pub(crate) mod workers;

/// What there is to do, and who does it.
pub(crate) struct Engine {
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
    /// Where waits for values hold back what is behind them.
    channels: Channels,
    /// The waits and writes of values that are under way, for the search for deadlocks.
    values: Values,
    /// The place of the task that was submitted last.
    last_place: u64,
    host_queue: VecDeque<Job>,
    pool_queue: VecDeque<Job>,
    host_threads: usize,
    pool_threads: usize,
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
    /// Those of them that are functions of the program.
    in_host: usize,
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
    /// Host functions are kept back while this is set.
    hold_host_functions: bool,
}

impl Engine {
    pub(crate) const fn new(slot: usize) -> Self {
        Self {
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
            pool_idle: 0,
            ticker_threads: 0,
            workers: Vec::new(),
            caller: 0,
            stepping: false,
            running: 0,
            in_host: 0,
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

    /// A number below `bound`, from the seed.
    pub(crate) fn draw(&mut self, bound: usize) -> usize {
        (random::next(&mut self.random) % bound.max(1) as u64) as usize
    }

    /// Where the choices of a seeded scheduler begin.
    pub(crate) fn seed(&mut self, seed: u64) {
        self.random = seed;
    }

    pub(crate) fn set_channels(&mut self, count: u32) {
        self.channel_count = count;
    }

    /// The channel in which a context's n-th stream begins.
    pub(crate) fn channel_of(&self, stream: u32) -> u32 {
        stream % self.channel_count
    }

    /// The deadlocks that were found, in words.
    pub(crate) fn deadlocks(&self) -> &[String] {
        &self.deadlocks
    }

    /// How many threads wait for a context to have no work, or for memory not to be used.
    pub(crate) fn waiting_for_idle(&self) -> usize {
        self.idle_waiters
    }

    /// Whether a thread does a job, which may be a function of the program.
    pub(crate) fn does_a_job(&self) -> bool {
        self.running > 0
    }

    /// Whether a thread does a job, or waits in a call.
    pub(crate) fn has_threads_inside(&self) -> bool {
        self.running > 0 || self.waiters > 0
    }

    /// Drops all work that no thread has begun. The driver's own threads.
    pub(crate) fn abandon(&mut self) -> Vec<JoinHandle<()>> {
        self.ready.clear();
        self.parked.clear();
        self.shared_waits.clear();
        self.value_waits.clear();
        self.channels = Channels::new();
        self.values = Values::new();
        self.host_queue.clear();
        self.pool_queue.clear();
        self.busy.clear();
        core::mem::take(&mut self.threads)
    }
}

impl State {
    pub(crate) fn new_point(
        &mut self,
        timing: bool,
        shared: Option<processes::Record>,
    ) -> Arc<Point> {
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

    /// A task is given to a stream, at this place in the order of submission.
    pub(crate) fn feed_task(&mut self, stream: u32, place: u64, task: &Task) {
        self.feed(|feed, of| {
            let (stream, at) = (of.stream(stream), Some(place));
            match task {
                Task::Memory(work) => {
                    if let Some(word) = work.word() {
                        feed.find_stored(word.cell(), || word.load());
                    }
                    let content = work.copied_content(feed);
                    work.accesses(content, |all| feed.write(stream, at, all));
                }
                Task::Busy(_) => feed.work(stream, &[]),
                Task::Host(_) => feed.function(stream, place),
                Task::WaitValue(wait, _) => {
                    let cell = wait.word.cell();
                    feed.find_stored(cell, || wait.word.load());
                    feed.wait_value(stream, cell, wait.value, wait.compare());
                }
                Task::WriteValue(write, _) => {
                    let cell = write.word.cell();
                    feed.find_stored(cell, || write.word.load());
                    feed.write_value(stream, at, cell, write.value);
                }
                Task::WaitSemaphore(of, _) => {
                    feed.wait_semaphore(stream, &of.semaphore.order, of.value);
                }
                Task::SignalSemaphore(of, _) => {
                    feed.signal(stream, at, &of.semaphore.order, of.value);
                }
                Task::Free(region) => feed.free_async(stream, region.base as u64),
                Task::Complete(_) | Task::Wait(_) | Task::WaitShared(_) | Task::Running(_) => {}
            }
        });
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
                    self.feed(|feed, _| feed.wait_ended(wait.word.cell(), origin.number));
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
                self.feed(|feed, _| work.begins(feed, at));
                work.execute();
                self.feed(|feed, _| work.ends(feed));
                self.clock.advance(work.virtual_ns());
                self.engine.time_moved = true;
                self.look_at_values();
            }
            Task::Memory(work) => {
                if failed.is_none() {
                    // The host may see the bytes before the thread that writes them comes back.
                    self.feed(|feed, _| work.begins(feed, at));
                    self.streams[stream].queue.push_front(again(Task::Running(Some(work.clone()))));
                    let work = Work::Memory(work);
                    self.engine.pool_queue.push_back(Job { stream, id, at, work });
                    machine.pool.notify_one();
                    return false;
                }
            }
            Task::Free(region) => self.memory.free_now(&region),
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
        for references in self.engine.objects.take_done() {
            self.engine.release_objects(self.feed.as_deref_mut(), references);
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
    fn listen_for(&mut self, machine: &'static Machine, wait: &processes::Wait) {
        let epoch = self.epoch;
        let look = move || {
            let mut state = machine.lock();
            let ended = state.epoch != epoch || state.stopping;
            if !ended {
                state.recheck_shared(machine);
            }
            (ended || state.engine.shared_waits.is_empty()).then_some(state)
        };
        if let Some(thread) = processes::watch(wait, (machine.slot, epoch), look) {
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
