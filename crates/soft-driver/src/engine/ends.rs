//! The end of memory: at once, in stream order, or with its context.

use std::sync::Arc;

use crate::machine::State;
use crate::memory::{Kind, Region};

impl State {
    /// Takes an address away, and counts what is left.
    pub(crate) fn forget(&mut self, address: u64) {
        let Some(allocation) = self.memory.by_address.remove(&address) else { return };
        let bytes = allocation.region.bytes as u64;
        // Of a pool of another process nothing is counted here.
        let counted = match allocation.kind {
            Kind::Pooled(pool) => self.left_pool(pool, bytes),
            kind => kind.is_counted(),
        };
        if counted {
            let device = self.contexts[allocation.context].device as usize;
            self.devices[device].used = self.devices[device].used.saturating_sub(bytes);
        }
    }

    /// A stream has come so far that memory ends.
    pub(crate) fn free_region(&mut self, region: &Arc<Region>) {
        let address = region.base as u64;
        let still = self.memory.by_address.get(&address);
        if still.is_some_and(|allocation| Arc::ptr_eq(&allocation.region, region)) {
            self.forget(address);
        }
    }

    /// Memory of a pool has ended. Whether it was of this process.
    fn left_pool(&mut self, pool: u32, bytes: u64) -> bool {
        let entry = &mut self.memory.pools[pool];
        entry.gave_back(bytes);
        let own = entry.imported.is_none();
        self.end_pool(pool);
        own
    }

    /// A pool that was destroyed ends with the last of its memory.
    pub(crate) fn end_pool(&mut self, pool: u32) {
        if self.memory.pools[pool].destroyed && self.memory.pools[pool].used == 0 {
            self.memory.pools.remove(pool);
        }
    }

    /// What a context takes with it is given back to its pools.
    pub(crate) fn forget_pooled(&mut self, context: u32) {
        let pooled = self.memory.by_address.iter().filter(|(_, of)| of.context == context);
        let pooled = pooled.filter(|(_, of)| matches!(of.kind, Kind::Pooled(_)));
        let pooled: Vec<u64> = pooled.map(|(address, _)| *address).collect();
        pooled.into_iter().for_each(|address| self.forget(address));
    }
}
