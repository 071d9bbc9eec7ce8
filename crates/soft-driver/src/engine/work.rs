//! Work: the tasks in the queues of streams, and the jobs for threads.

use core::any::Any;
use core::ffi::c_void;
use core::fmt::Debug;
use std::sync::Arc;

use cuda_order_check_engine::Access;

use crate::abi::*;
use crate::engine::channel::ChannelKey;
use crate::engine::point::Point;
use crate::memory::Region;
use crate::memory::word::{ValueWait, ValueWrite};
use crate::memory::work::MemoryWork;
use crate::processes;
use crate::processes::semaphore::SemaphorePoint;

/// The pointer argument of a program's function, which is only handed back to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UserData(pub(crate) *mut c_void);

// SAFETY: never dereferenced here; the program gave it for another thread to get.
unsafe impl Send for UserData {}

/// A function of the program, to be called in stream order.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HostCall {
    Function(unsafe extern "C" fn(*mut c_void), UserData),
    Callback(unsafe extern "C" fn(CUstream, CUresult, *mut c_void), u64, UserData),
}

/// Work of the device that the engine does not know, such as a kernel of a test. A thread does it
/// without the machine's lock.
pub(crate) trait DeviceWork: Any + Debug + Send + Sync {
    /// Does it. An error fails the stream's context.
    fn run(&self) -> Answer;

    /// What it reads and writes, if that is declared.
    fn accesses(&self) -> Option<&[Access]>;
}

/// What destroys a user object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Destroy(pub(crate) unsafe extern "C" fn(*mut c_void), pub(crate) UserData);

/// The call that submitted something to a stream: its name and number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub(crate) call: &'static str,
    pub(crate) number: u64,
}

/// A task in a stream's queue.
#[derive(Debug)]
pub(crate) struct Queued {
    /// Its place in the order of submission, of all streams. A task that other streams must not
    /// hold back has the place of the task before it, or 0.
    pub(crate) at: u64,
    pub(crate) task: Task,
}

/// One piece of work in a stream.
#[derive(Debug)]
pub(crate) enum Task {
    Complete(Arc<Point>),
    Wait(Arc<Point>),
    WaitShared(processes::Wait),
    Host(HostCall),
    Memory(MemoryWork),
    Device(Arc<dyn DeviceWork>),
    /// The stream is busy for so many nanoseconds.
    Busy(u64),
    WaitValue(ValueWait, Origin),
    WriteValue(ValueWrite, Origin),
    WaitSemaphore(SemaphorePoint, Origin),
    SignalSemaphore(SemaphorePoint, Origin),
    /// Memory is freed in stream order (`cuMemFreeAsync`).
    Free(Arc<Region>),
    /// Stands for the first task while a thread does it.
    Running,
}

impl Task {
    /// Whether the device does it, so that it waits for its turn in its stream's channel.
    pub(crate) fn takes_turns(&self) -> bool {
        !matches!(self, Self::Wait(_) | Self::WaitShared(_) | Self::Running)
    }
}

/// What became of the first task of a stream.
pub(super) enum Step {
    Done,
    /// It waits, and is looked at again when what it waits for may have happened.
    Blocked(Task),
    /// A thread does it, or it takes its time.
    Running,
}

/// A task that its stream got to.
pub(super) struct Turn {
    pub(super) stream: u32,
    pub(super) id: u64,
    pub(super) key: ChannelKey,
    /// The task's place in the order of submission.
    pub(super) at: u64,
    /// Whether the context has failed.
    pub(super) failed: bool,
}

#[derive(Debug)]
pub(crate) enum Work {
    Host(HostCall),
    Memory(MemoryWork),
    Device(Arc<dyn DeviceWork>),
    /// A user object is destroyed; this is the work of no stream.
    Destroy(Destroy),
}

pub(crate) struct Job {
    pub(crate) stream: u32,
    /// The stream's id: another stream may have its index by the time the job is done.
    pub(crate) id: u64,
    /// The place of its task in the order of submission.
    pub(crate) at: u64,
    pub(crate) work: Work,
}
