//! A call of an entry point on its way: the frame that its body, the log and the faults are given.

use crate::abi::*;
use crate::engine::work::Origin;
use crate::machine::{Locked, Machine};

/// An exported function: its place in the list of exports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Id(pub(crate) u16);

impl Id {
    /// Its place in the list.
    pub const fn place(self) -> usize {
        self.0 as usize
    }
}

/// The arguments of a call, as numbers: at most eight.
pub(crate) type Words = ([u64; 8], usize);

pub(crate) fn words(arguments: &[u64]) -> Words {
    let mut kept = [0; 8];
    let count = arguments.len().min(8);
    kept[..count].copy_from_slice(&arguments[..count]);
    (kept, count)
}

/// An entry point, as its calls know it.
pub(crate) struct EntryPoint {
    pub(crate) id: Id,
    /// The exported name.
    pub(crate) name: &'static str,
    /// Whether NULL means the per-thread default stream.
    pub(crate) per_thread: bool,
}

/// One call of one entry point.
pub(crate) struct CallFrame {
    pub(crate) machine: &'static Machine,
    pub(crate) entry: &'static EntryPoint,
    /// The number of the call on its machine, from 1.
    pub(crate) number: u64,
    /// Which owner of the machine it was made to.
    pub(crate) epoch: u64,
    /// The handle of the context whose default streams the call means, if it is not the thread's
    /// current one: a `StreamRef` has its context.
    pub(crate) context: Option<u64>,
}

impl From<&CallFrame> for Origin {
    fn from(call: &CallFrame) -> Self {
        call.origin()
    }
}

impl CallFrame {
    pub(crate) fn id(&self) -> Id {
        self.entry.id
    }

    pub(crate) fn name(&self) -> &'static str {
        self.entry.name
    }

    /// What it is called in reports about what it submitted.
    pub(crate) fn origin(&self) -> Origin {
        Origin { call: self.name(), number: self.number }
    }

    /// Whether NULL means the per-thread default stream.
    pub(crate) fn per_thread(&self) -> bool {
        self.entry.per_thread
    }

    /// Whether the machine's owner is still the one that it was made to.
    pub(crate) fn is_current(&self) -> bool {
        self.machine.epoch() == self.epoch
    }

    /// Whether it is made inside a host function.
    pub(crate) fn in_host_function(&self) -> bool {
        self.machine.in_host_function(self.machine.epoch())
    }

    /// The machine's state, for a call that works before `cuInit`.
    pub(crate) fn lock(&self) -> Result<Locked, CUresult> {
        let state = self.machine.lock();
        if state.life.taken && state.life.epoch == self.epoch {
            Ok(state)
        } else {
            Err(DEINITIALIZED)
        }
    }

    /// The machine's state, for a call that needs `cuInit` first.
    pub(crate) fn ready(&self) -> Result<Locked, CUresult> {
        let mut state = self.lock()?;
        if state.life.initialised && state.feed.is_none() {
            return Ok(state);
        }
        state.feed(|feed, _| feed.begin(self.name(), self.number, None));
        if state.life.initialised { Ok(state) } else { Err(NOT_INITIALIZED) }
    }

    /// Refuses the call, but before `cuInit` for that reason alone.
    pub(crate) fn refuse(&self, code: CUresult) -> Answer {
        self.ready().and(Err(code))
    }
}
