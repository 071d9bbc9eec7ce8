//! Memory pools: what stream-ordered allocations come from.

use std::collections::BTreeMap;

use crate::machine::handles::{Kind, Table};
use crate::processes::shared_memory::{Arena, PoolFile};

mod choice;

/// A pool. Its memory is taken from the system when it is allocated, and given back when it is
/// freed; how much a pool would keep is counted all the same.
#[derive(Default)]
pub(crate) struct Pool {
    pub(crate) device: usize,
    /// Whether it is the device's default pool, which cannot be destroyed.
    pub(crate) default: bool,
    /// Which kinds of handles other processes can be given for it.
    pub(crate) handle_types: u32,
    /// The most that it has at a time; 0 for as much as there is.
    pub(crate) max_size: u64,
    /// Whether memory is used again: after events, when it happens to be done, with new waits.
    pub(crate) reuse: [u32; 3],
    /// How much it keeps when nothing uses it.
    pub(crate) threshold: u64,
    pub(crate) used: u64,
    pub(crate) used_high: u64,
    pub(crate) reserved: u64,
    pub(crate) reserved_high: u64,
    /// What other devices may do with its memory.
    pub(crate) access: BTreeMap<usize, u32>,
    /// It ends when the last of its memory is freed.
    destroyed: bool,
    /// Where its memory lies, if other processes can have it.
    pub(crate) arena: Option<Arena>,
    /// Another process's pool, whose memory comes by its addresses alone.
    pub(crate) imported: Option<PoolFile>,
}

/// What a pool takes from the device at a time.
const CHUNK: u64 = 2 << 20;

impl Pool {
    pub(crate) fn took(&mut self, bytes: u64) {
        self.used = self.used.saturating_add(bytes);
        self.used_high = self.used_high.max(self.used);
        self.reserved = self.reserved.max(self.used.next_multiple_of(CHUNK));
        self.reserved_high = self.reserved_high.max(self.reserved);
    }

    pub(crate) fn gave_back(&mut self, bytes: u64) {
        self.used = self.used.saturating_sub(bytes);
        if self.reserved > self.threshold {
            self.trim(self.threshold);
        }
    }

    /// Keeps so much, or what is used.
    pub(crate) fn trim(&mut self, keep: u64) {
        let least = self.used.next_multiple_of(CHUNK);
        self.reserved = self.reserved.min(keep.max(least));
    }
}

/// The pools of a machine.
pub(crate) struct Pools {
    all: Table<Pool>,
    /// The default pool of each device, once it was used.
    defaults: BTreeMap<usize, u32>,
    /// The pool of allocations that name none, where it is not the default pool.
    current: BTreeMap<usize, u32>,
}

impl Pools {
    pub(super) const fn new(slot: usize) -> Self {
        let all = Table::new(Kind::Pool, slot);
        Self { all, defaults: BTreeMap::new(), current: BTreeMap::new() }
    }

    pub(super) fn reset(&mut self, life: u64) {
        self.all.reset(life);
        self.defaults.clear();
        self.current.clear();
    }

    pub(crate) fn get_mut(&mut self, pool: u32) -> &mut Pool {
        &mut self.all[pool]
    }

    /// Memory of a pool has ended. Whether it was of this process.
    pub(super) fn gave_back(&mut self, pool: u32, bytes: u64) -> bool {
        self.all[pool].gave_back(bytes);
        let own = self.all[pool].imported.is_none();
        self.end(pool);
        own
    }

    /// A pool that was destroyed ends with the last of its memory.
    fn end(&mut self, pool: u32) {
        if self.all[pool].destroyed && self.all[pool].used == 0 {
            self.all.remove(pool);
        }
    }
}
