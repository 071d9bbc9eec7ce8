//! A context: its streams with work, its condition, and the settings that it keeps.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::abi::*;
use crate::ipc;
use crate::model::point::Point;
use crate::model::work::Task;

/// A context. It is never forgotten: a destroyed one can still be current somewhere.
pub(crate) struct Context {
    pub(crate) device: CUdevice,
    pub(crate) flags: u32,
    pub(crate) primary: bool,
    /// Whether it stands for a green context, whose end leaves its streams.
    pub(crate) green: bool,
    pub(crate) alive: bool,
    /// How often the program has it to detach: once for creating it, once for each attach.
    pub(crate) uses: u32,
    pub(crate) id: u64,
    /// The error that everything in it answers from now on.
    pub(crate) failed: Option<CUresult>,
    pub(crate) legacy: Option<u32>,
    pub(crate) per_thread: BTreeMap<u32, u32>,
    pub(crate) settings: Settings,
    /// Streams with work.
    pub(crate) busy: BTreeSet<u32>,
    /// The ends of launches with work of the context in streams of other contexts.
    pub(crate) elsewhere: Vec<Arc<Point>>,
    pub(crate) ipc: Option<ipc::Exporter>,
    /// What every stream of the context waits for from its next operation on, in the order in which
    /// that came.
    pub(crate) gates: Vec<(u64, Gate)>,
    pub(crate) last_gate: u64,
    /// How many streams it has had: each begins in the next channel.
    pub(crate) streams_made: u32,
}

/// What a whole context waits for.
#[derive(Clone)]
pub(crate) enum Gate {
    Point(Arc<Point>),
    Shared(ipc::Wait),
}

impl Gate {
    pub(crate) fn is_done(&self) -> bool {
        match self {
            Self::Point(point) => point.is_done(),
            Self::Shared(wait) => wait.is_done(),
        }
    }

    #[cfg_attr(
        not(any(target_os = "linux", windows)),
        allow(unreachable_code, reason = "elsewhere there is no such wait")
    )]
    pub(crate) fn task(&self) -> Task {
        match self {
            Self::Point(point) => Task::Wait(point.clone()),
            Self::Shared(wait) => Task::WaitShared(wait.clone()),
        }
    }
}

/// Settings that nothing in software depends on: they are kept for the program to read back.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) limits: [usize; LIMITS],
    pub(crate) cache: u32,
    pub(crate) shared_memory: u32,
}

/// How many limits there are here.
pub(crate) const LIMITS: usize = 7;

impl Default for Settings {
    /// The documented defaults: stack, printf buffer, heap, two of the device's own runtime, fetch
    /// granularity, and persisting cache.
    fn default() -> Self {
        Self { limits: [1024, 8 << 20, 8 << 20, 2, 2048, 64, 0], cache: 0, shared_memory: 0 }
    }
}
