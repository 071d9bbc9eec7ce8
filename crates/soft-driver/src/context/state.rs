//! A context as its machine has it, and the settings that the program can read back.

use std::collections::{BTreeMap, BTreeSet};

use crate::abi::CUdevice;
use crate::processes;

/// A context. It stays in the table: a destroyed one can still be current in a thread.
#[derive(Default)]
pub(crate) struct Context {
    pub(crate) device: CUdevice,
    pub(crate) flags: u32,
    pub(crate) primary: bool,
    /// Whether it stands for a green context, whose end leaves its streams.
    pub(crate) green: bool,
    pub(crate) alive: bool,
    /// How many detaches the program owes: one for creating it, one for each attach.
    pub(crate) uses: u32,
    pub(crate) id: u64,
    pub(crate) per_thread: BTreeMap<u32, u32>,
    pub(crate) settings: Settings,
    pub(crate) ipc: Option<processes::Exporter>,
}

/// Settings without an effect in software: the program can read them back.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) limits: [usize; LIMITS],
    pub(crate) cache: u32,
    pub(crate) shared_memory: u32,
    /// The contexts whose memory it may access.
    pub(crate) peers: BTreeSet<u32>,
}

/// How many limits there are here.
pub(crate) const LIMITS: usize = 7;

impl Default for Settings {
    /// The documented defaults: stack, printf buffer, heap, two of the device's own runtime, fetch
    /// granularity, and persisting cache. Banks of shared memory of 4 bytes (1).
    fn default() -> Self {
        let limits = [1024, 8 << 20, 8 << 20, 2, 2048, 64, 0];
        Self { limits, cache: 0, shared_memory: 1, peers: BTreeSet::new() }
    }
}
