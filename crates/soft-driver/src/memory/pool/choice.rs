//! For cudarc and cuda.core: how pools are made, found and chosen. The core only takes back memory
//! of a pool.

use super::{Pool, Pools};
use crate::abi::*;
use crate::machine::handles::Bad;

impl Pool {
    pub(crate) fn new(device: usize) -> Self {
        Self { device, reuse: [1; 3], ..Self::default() }
    }

    /// Whether there is room for so many bytes more.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        self.max_size == 0
            || self.used.checked_add(bytes).is_some_and(|wanted| wanted <= self.max_size)
    }
}

impl Pools {
    pub(crate) fn find(&self, handle: u64) -> Result<u32, Bad> {
        match self.all.find(handle) {
            Ok(pool) if self.all[pool].destroyed => Err(Bad::Stale),
            found => found,
        }
    }

    pub(crate) fn get(&self, pool: u32) -> &Pool {
        &self.all[pool]
    }

    pub(crate) fn handle(&self, pool: u32) -> u64 {
        self.all.handle(pool)
    }

    pub(crate) fn add(&mut self, born: u64, pool: Pool) -> Result<u32, CUresult> {
        self.all.insert(born, pool).map(|(pool, _)| pool).ok_or(OUT_OF_MEMORY)
    }

    /// The default pool of a device.
    pub(crate) fn default_of(&mut self, device: usize, born: u64) -> Result<u32, CUresult> {
        if let Some(pool) = self.defaults.get(&device) {
            return Ok(*pool);
        }
        let pool = self.add(born, Pool { default: true, ..Pool::new(device) })?;
        self.defaults.insert(device, pool);
        Ok(pool)
    }

    /// The pool of a device's allocations that name none.
    pub(crate) fn current_of(&mut self, device: usize, born: u64) -> Result<u32, CUresult> {
        match self.current.get(&device) {
            Some(pool) => Ok(*pool),
            None => self.default_of(device, born),
        }
    }

    pub(crate) fn set_current(&mut self, device: usize, pool: u32) -> Answer {
        if self.all[pool].device != device || self.all[pool].imported.is_some() {
            return Err(INVALID_VALUE);
        }
        self.current.insert(device, pool);
        Ok(())
    }

    /// Destroys a pool. Documented: its device goes back to the default pool.
    pub(crate) fn destroy(&mut self, pool: u32) {
        self.all[pool].destroyed = true;
        self.current.retain(|_, current| *current != pool);
        self.end(pool);
    }
}
