//! Work: the tasks in the queues of streams, the jobs for threads, and the lists that streams with
//! work are in.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::thread::JoinHandle;

use crate::engine::busy::Busy;
use crate::engine::channel::{Channels, DEFAULT_CHANNELS};
use crate::engine::point::Point;
use crate::engine::waits::Waits;
use crate::external::SemaphorePoint;
use crate::graph::user_object::References;
use crate::host_function::{Destroy, HostCall};
use crate::ipc;
use crate::memory::Region;
use crate::memory::work::MemoryWork;
use crate::random;
use crate::values::Values;
use crate::values::{ValueWait, ValueWrite};

/// Which call gave something to a stream: its name and number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub(crate) call: &'static str,
    pub(crate) number: u64,
}

/// A task in a stream's queue.
#[derive(Debug)]
pub(crate) struct Queued {
    /// Its place in the order of submission, of all streams. Of what must not be held back by other
    /// streams it is that of the task before it, or 0.
    pub(crate) at: u64,
    pub(crate) task: Task,
}

/// One piece of work in a stream.
#[derive(Debug)]
pub(crate) enum Task {
    Complete(Arc<Point>),
    Wait(Arc<Point>),
    WaitShared(ipc::Wait),
    Host(HostCall),
    Memory(MemoryWork),
    /// Nothing, for so many nanoseconds.
    Busy(u64),
    WaitValue(ValueWait, Origin),
    WriteValue(ValueWrite, Origin),
    WaitSemaphore(SemaphorePoint, Origin),
    SignalSemaphore(SemaphorePoint, Origin),
    /// Memory ends, in stream order.
    Free(Arc<Region>),
    /// The first task, while a thread does it; with the memory that it is about.
    Running(Option<MemoryWork>),
}

impl Task {
    /// Whether it reads or writes a piece of memory.
    pub(crate) fn uses(&self, region: &Arc<Region>) -> bool {
        match self {
            Self::Memory(work) | Self::Running(Some(work)) => work.uses(region),
            Self::WaitValue(wait, _) => wait.word.place.is_in(region),
            Self::WriteValue(write, _) => write.word.place.is_in(region),
            _ => false,
        }
    }

    /// Whether it is done by the device, so that it waits for its turn in its stream's channel.
    pub(crate) fn takes_turns(&self) -> bool {
        !matches!(self, Self::Wait(_) | Self::WaitShared(_) | Self::Running(_))
    }
}

pub(crate) enum Work {
    Host(HostCall),
    Memory(MemoryWork),
    /// The end of a user object; of no stream.
    Destroy(Destroy),
}

pub(crate) struct Job {
    pub(crate) stream: u32,
    /// The stream's own number: its place may have another one by the time the job is done.
    pub(crate) id: u64,
    /// The place of its task in the order of submission.
    pub(crate) at: u64,
    pub(crate) work: Work,
}

/// References that go once a launch is done.
pub(crate) type Deferred = Vec<(Arc<Point>, References)>;

/// What there is to do, and who does it.
pub(crate) struct Engine {
    pub(crate) ready: Vec<u32>,
    /// Streams by the point that their first task waits for.
    pub(crate) parked: BTreeMap<u64, Vec<u32>>,
    /// Streams whose first task waits for another process.
    pub(crate) shared_waits: Vec<u32>,
    /// Streams whose first task waits for a value in memory, or for an external semaphore.
    pub(crate) value_waits: Vec<u32>,
    /// How many channels a context has.
    pub(crate) channel_count: u32,
    /// The deadlocks that were found, in words.
    pub(crate) deadlocks: Vec<String>,
    /// The driver's own threads.
    pub(crate) threads: Vec<JoinHandle<()>>,
    /// Threads in `Machine::done`.
    pub(crate) waiters: usize,
    /// Where waits for values hold back what is behind them.
    pub(crate) channels: Channels,
    /// The waits and writes of values that are under way, for the search for deadlocks.
    pub(crate) values: Values,
    /// The place of the task that was submitted last.
    pub(crate) last_place: u64,
    pub(crate) host_queue: VecDeque<Job>,
    pub(crate) pool_queue: VecDeque<Job>,
    pub(crate) host_threads: usize,
    pub(crate) pool_threads: usize,
    pub(crate) pool_idle: usize,
    pub(crate) ticker_threads: usize,
    /// The threads that do jobs, as the system numbers them, as far as they have begun.
    pub(crate) workers: Vec<i32>,
    /// The thread that called last, where a seeded scheduler asks for that.
    pub(crate) caller: i32,
    /// Whether a call waits for what a seeded step began.
    pub(crate) stepping: bool,
    /// Jobs that a thread is doing.
    pub(crate) running: usize,
    /// Those of them that are functions of the program.
    pub(crate) in_host: usize,
    /// Streams that are busy for some time.
    pub(crate) busy: Busy,
    pub(crate) timer_threads: usize,
    /// Who waits in virtual time.
    pub(crate) waits: Waits,
    /// Virtual time has moved with a piece of work.
    pub(crate) time_moved: bool,
    pub(crate) next_point: u64,
    /// User objects that launches under way keep.
    pub(crate) deferred: Deferred,
    /// Threads that wait for a context to have no work, or for memory not to be used.
    pub(crate) idle_waiters: usize,
    /// The seeded scheduler's state.
    pub(crate) random: u64,
    /// Host functions are kept back while this is set.
    pub(crate) hold_host_functions: bool,
}

impl Engine {
    pub(crate) const fn new() -> Self {
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
            deferred: Vec::new(),
            idle_waiters: 0,
            random: 0,
            hold_host_functions: false,
        }
    }

    /// A number below `bound`, from the seed.
    pub(crate) fn draw(&mut self, bound: usize) -> usize {
        (random::next(&mut self.random) % bound.max(1) as u64) as usize
    }

    /// Drops all work that no thread has begun.
    pub(crate) fn abandon(&mut self) {
        self.ready.clear();
        self.parked.clear();
        self.shared_waits.clear();
        self.value_waits.clear();
        self.channels = Channels::new();
        self.values = Values::new();
        self.host_queue.clear();
        self.pool_queue.clear();
        self.busy.clear();
    }
}
