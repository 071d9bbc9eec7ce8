//! For numba-cuda and cuda.core: frees in stream order, the end of a registration, and mapped
//! memory.

use std::sync::Arc;

use super::Allocations;
use cuda_order_check_engine::feed::Memory;

use crate::abi::*;
use crate::memory::addresses::Allocation;
use crate::memory::{Kind, Place, Region};
use crate::order::Feed;

impl Allocations {
    /// A stream is to free this memory once it has come so far: until then the memory is the
    /// program's.
    pub(crate) fn free_later(&mut self, address: u64) -> Result<Arc<Region>, CUresult> {
        let allocation = self.addresses.0.get_mut(&address).ok_or(INVALID_VALUE)?;
        let can_be = matches!(allocation.kind, Kind::Device | Kind::Managed | Kind::Pooled(_));
        if !can_be || allocation.freeing {
            return Err(INVALID_VALUE);
        }
        allocation.freeing = true;
        Ok(allocation.region.clone())
    }

    /// Ends a registration, if it still is that of this region.
    pub(crate) fn unregister(&mut self, feed: Option<&mut Feed>, region: &Arc<Region>) -> bool {
        let address = region.base as u64;
        let still = self.addresses.0.get(&address);
        let still = still.is_some_and(|allocation| Arc::ptr_eq(&allocation.region, region));
        if still {
            self.addresses.0.remove(&address);
            if let Some(feed) = feed {
                feed.unregister(address);
            }
        }
        still
    }
}

/// A context that there is not: mapped memory ends with none.
const NO_CONTEXT: u32 = u32::MAX;

impl Allocations {
    /// Counts memory of a device that has so much of it as `limit`.
    pub(crate) fn take(&mut self, device: usize, limit: u64, bytes: u64) -> Answer {
        let used = self.used(device).checked_add(bytes).filter(|used| *used <= limit);
        self.used.insert(device, used.ok_or(OUT_OF_MEMORY)?);
        Ok(())
    }

    pub(crate) fn gave_back(&mut self, device: usize, bytes: u64) {
        if let Some(used) = self.used.get_mut(&device) {
            *used = used.saturating_sub(bytes);
        }
    }

    pub(crate) fn add_mapping(
        &mut self,
        feed: Option<&mut Feed>,
        address: u64,
        region: Arc<Region>,
        (bytes, device): (usize, usize),
        memory: u32,
    ) {
        let (context, kind) = (NO_CONTEXT, Kind::Mapped(memory, [0; 8]));
        let new = Allocation { region, context, device, kind, bytes, freeing: false };
        self.addresses.0.insert(address, new);
        if let Some(feed) = feed {
            feed.map_memory(address, bytes as u64, Memory::Device);
        }
    }

    pub(crate) fn remove_mapping(&mut self, feed: Option<&mut Feed>, address: u64) {
        self.addresses.0.remove(&address);
        if let Some(feed) = feed {
            feed.free(address);
        }
    }

    /// The mappings in a range of reserved addresses, each whole; there may be holes between them.
    pub(crate) fn mappings_within(
        &self,
        address: u64,
        bytes: usize,
    ) -> Result<Vec<(u64, u32)>, CUresult> {
        let end = address.checked_add(bytes as u64).filter(|_| bytes > 0).ok_or(INVALID_VALUE)?;
        self.reserved.around(address, bytes as u64).ok_or(INVALID_VALUE)?;
        if self.addresses.around(address).is_some_and(|(base, _)| base != address) {
            return Err(INVALID_VALUE);
        }
        let mapping = |(at, allocation): (&u64, &Allocation)| match allocation.kind {
            Kind::Mapped(memory, _) if at + allocation.bytes as u64 <= end => Ok((*at, memory)),
            _ => Err(INVALID_VALUE),
        };
        self.addresses.0.range(address..end).map(mapping).collect()
    }

    /// Whether nothing is mapped at a reserved address any more.
    pub(crate) fn is_unmapped(&self, place: &Place) -> bool {
        self.reserved.holds(place) && self.addresses.around(place.address as u64).is_none()
    }
}
