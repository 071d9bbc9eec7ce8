//! A machine: one independent instance of the driver, in a slot of this process.

pub(crate) mod call_frame;
pub(crate) mod config;
pub(crate) mod drop_unlocked;
pub(crate) mod handles;
mod life;
mod locked;
pub(crate) mod misuse;
pub(crate) mod places;
pub(crate) mod switches;

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, TryLockError};
#[cfg(unix)]
use std::time::{Duration, Instant};

use cuda_order_check_engine::feed::Awaited;
use cuda_order_check_engine::{ContextId, EventId, GraphId, StreamId};

use crate::capture::Captures;
use crate::context::state::Context;
use crate::device::state::Device;
use crate::engine::stream::Stream;
use crate::engine::wake::{WAKES, Wake};
use crate::engine::{Engine, Running};
use crate::event::state::Event;
use crate::graph::Graphs;
use crate::green_context::state::Greens;
use crate::kernel::Modules;
use crate::machine::config::Config;
use crate::machine::handles::{Kind, Table};
use crate::machine::life::Life;
use crate::machine::misuse::Misuses;
use crate::machine::places::{Owed, SLOTS};
use crate::machine::switches::Switches;
use crate::memory::allocations::Allocations;
use crate::order::Feed;
use crate::processes::semaphore::Imported;
use crate::sync::lock;
use crate::threads;

pub(crate) use crate::machine::locked::Locked;

/// The machines. The C functions are compiled once for each, so a plain function pointer finds its
/// own.
pub(crate) static MACHINES: [Machine; SLOTS] = [
    Machine::new(0),
    Machine::new(1),
    Machine::new(2),
    Machine::new(3),
    Machine::new(4),
    Machine::new(5),
    Machine::new(6),
    Machine::new(7),
    Machine::new(8),
    Machine::new(9),
    Machine::new(10),
    Machine::new(11),
    Machine::new(12),
    Machine::new(13),
    Machine::new(14),
    Machine::new(15),
];

pub(crate) struct Machine {
    pub(crate) slot: usize,
    state: Mutex<State>,
    /// The threads that wait for the state now.
    held_up: AtomicUsize,
    /// How often a thread had to wait for it.
    hold_ups: AtomicU64,
    pub(crate) wake: &'static Wake,
    pub(crate) switches: Switches,
    calls: AtomicU64,
    /// The state's epoch, which a call reads before it has the lock.
    epoch: AtomicU64,
}

impl Machine {
    const fn new(slot: usize) -> Self {
        Self {
            slot,
            state: Mutex::new(State::new(slot)),
            held_up: AtomicUsize::new(0),
            hold_ups: AtomicU64::new(0),
            wake: &WAKES[slot],
            switches: Switches::new(),
            calls: AtomicU64::new(0),
            epoch: AtomicU64::new(0),
        }
    }

    pub(crate) fn lock(&'static self) -> Locked {
        threads::ready();
        match self.state.try_lock() {
            Ok(state) => return Locked::new(self, state),
            // A panic in this crate is a bug in it, but must not take every later test with it.
            Err(TryLockError::Poisoned(state)) => return Locked::new(self, state.into_inner()),
            Err(TryLockError::WouldBlock) => {}
        }
        self.held_up.fetch_add(1, Ordering::SeqCst);
        self.hold_ups.fetch_add(1, Ordering::SeqCst);
        let state = self.lock_uncounted();
        self.held_up.fetch_sub(1, Ordering::SeqCst);
        state
    }

    /// The same without being counted as a thread that waits, for one that asks for
    /// [`hold_ups`](Self::hold_ups).
    pub(crate) fn lock_uncounted(&'static self) -> Locked {
        threads::ready();
        Locked::new(self, lock(&self.state))
    }

    /// The same, for at most this time: the calling thread may have the lock itself, if a signal
    /// handler of the program ends the process.
    #[cfg(unix)]
    pub(crate) fn lock_within(&'static self, limit: Duration) -> Option<Locked> {
        let start = Instant::now();
        loop {
            match self.state.try_lock() {
                Ok(state) => return Some(Locked::new(self, state)),
                Err(TryLockError::Poisoned(state)) => {
                    return Some(Locked::new(self, state.into_inner()));
                }
                Err(TryLockError::WouldBlock) if start.elapsed() < limit => {
                    std::thread::sleep(Duration::from_micros(100));
                }
                Err(TryLockError::WouldBlock) => return None,
            }
        }
    }

    /// How often a thread had to wait for the state; `None` while one does. The system shows such a
    /// thread asleep, but it is at work.
    pub(crate) fn hold_ups(&self) -> Option<u64> {
        let count = self.hold_ups.load(Ordering::SeqCst);
        (self.held_up.load(Ordering::SeqCst) == 0).then_some(count)
    }

    pub(crate) fn count_call(&self) -> u64 {
        self.calls.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Makes the machine as new, for its next driver or for none: calls that began before fail.
    pub(crate) fn reset(&self, state: &mut State) {
        state.reset();
        self.epoch.store(state.life.epoch, Ordering::Release);
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Counts calls from 1 again, for a new owner.
    pub(crate) fn restart_calls(&self) {
        self.calls.store(0, Ordering::Relaxed);
    }

    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Whether the calling thread is the one that runs this machine's host functions.
    pub(crate) fn in_host_function(&self, epoch: u64) -> bool {
        self.switches.in_host_functions()
            && threads::with(self.slot, epoch, |on| on.in_host_function)
    }
}

/// Everything that a machine's lock protects.
pub(crate) struct State {
    pub(crate) life: Life,
    pub(crate) config: Config,
    pub(crate) devices: Vec<Device>,
    pub(crate) contexts: Table<Context>,
    pub(crate) streams: Table<Stream>,
    pub(crate) events: Table<Event>,
    pub(crate) graphs: Graphs,
    /// External semaphores that were imported.
    pub(crate) semaphores: Table<Imported>,
    pub(crate) greens: Greens,
    pub(crate) captures: Captures,
    pub(crate) modules: Modules,
    pub(crate) engine: Engine,
    pub(crate) memory: Allocations,
    pub(crate) misuses: Misuses,
    /// The order checker's feed, if it is on.
    pub(crate) feed: Option<Box<Feed>>,
}

impl State {
    const fn new(slot: usize) -> Self {
        Self {
            life: Life::new(),
            config: Config::DEFAULT,
            devices: Vec::new(),
            contexts: Table::new(Kind::Context, slot),
            streams: Table::new(Kind::Stream, slot),
            events: Table::new(Kind::Event, slot),
            graphs: Graphs::new(slot),
            semaphores: Table::new(Kind::Semaphore, slot),
            greens: Greens::new(slot),
            captures: Captures::new(slot, 0),
            modules: Modules::new(slot),
            engine: Engine::new(slot),
            memory: Allocations::new(slot),
            misuses: Misuses::new(),
            feed: None,
        }
    }

    /// The retains of primary contexts that the program has not released.
    pub(crate) fn held(&self) -> Owed {
        let mut held = Owed::default();
        for (held, device) in held.iter_mut().zip(&self.devices) {
            *held = device.owed();
        }
        held
    }

    fn reset(&mut self) {
        self.life.reset();
        // It grows twice with each owner, and handles have little room for it.
        let life = self.life.epoch / 2;
        self.config = Config::DEFAULT;
        self.devices = Vec::new();
        self.contexts.reset(life);
        self.streams.reset(life);
        self.events.reset(life);
        self.graphs.reset(life);
        self.semaphores.reset(life);
        self.greens.reset(life);
        self.captures = Captures::new(self.streams.slot(), self.life.epoch);
        self.modules.reset(life);
        self.engine.reset(life);
        self.memory.reset(life);
        self.misuses = Misuses::new();
        self.feed = None;
    }

    /// The engine and the parts that work in streams touches.
    #[inline]
    pub(crate) fn running(&mut self) -> Running<'_> {
        let Self { engine, streams, memory, feed, misuses, .. } = self;
        Running { engine, streams, memory, feed: feed.as_deref_mut(), misuses }
    }

    /// Whether no capture is under way, and the order checker is off: most calls look no further.
    #[inline]
    pub(crate) fn quiet(&self) -> bool {
        self.captures.is_empty() && self.feed.is_none()
    }
}

/// The tables whose handles the feed is given.
pub(crate) struct Handles<'a> {
    contexts: &'a Table<Context>,
    streams: &'a Table<Stream>,
    events: &'a Table<Event>,
    graphs: &'a Graphs,
}

impl Handles<'_> {
    pub(crate) fn context(&self, context: u32) -> ContextId {
        ContextId(self.contexts.handle(context))
    }

    pub(crate) fn contexts(&self, contexts: &[u32]) -> Vec<ContextId> {
        contexts.iter().map(|context| self.context(*context)).collect()
    }

    pub(crate) fn stream(&self, stream: u32) -> StreamId {
        StreamId(self.streams.handle(stream))
    }

    pub(crate) fn event(&self, event: u32) -> EventId {
        EventId(self.events.handle(event))
    }

    pub(crate) fn graph(&self, exec: u32) -> GraphId {
        GraphId(self.graphs.execs.handle(exec))
    }
}

impl State {
    /// Gives the feed something, if the order is checked.
    #[inline]
    pub(crate) fn feed<R>(&mut self, give: impl FnOnce(&mut Feed, Handles<'_>) -> R) -> Option<R> {
        if self.feed.is_none() { None } else { self.feed_now(give) }
    }

    /// The host has waited for what it asked the feed for.
    pub(crate) fn reached(&mut self, awaited: Option<Awaited>) {
        if let Some(awaited) = awaited {
            self.feed(|feed, _| feed.reached(&awaited));
        }
    }

    #[cold]
    #[inline(never)]
    fn feed_now<R>(&mut self, give: impl FnOnce(&mut Feed, Handles<'_>) -> R) -> Option<R> {
        let Self { contexts, streams, events, graphs, feed, .. } = self;
        feed.as_mut().map(|feed| give(feed, Handles { contexts, streams, events, graphs }))
    }
}
