//! For numba-cuda and cuda.core: what is known of an address, frees in stream order, and the end of
//! a registration.

use std::sync::Arc;

use super::Allocations;
use crate::abi::*;
use crate::memory::{Keeper, Kind, Place, Region};
use crate::order::Feed;

/// What can be asked about an address.
pub(crate) struct AddressInfo {
    pub(crate) base: u64,
    pub(crate) bytes: u64,
    pub(crate) context: u32,
    pub(crate) host: bool,
    pub(crate) managed: bool,
    pub(crate) pool: Option<u32>,
}

impl Allocations {
    /// What can be asked about an address.
    pub(crate) fn describe(&self, address: u64) -> Option<AddressInfo> {
        let (base, allocation) = self.around(address)?;
        let host = allocation.kind.is_host();
        let (bytes, context) = (allocation.bytes as u64, allocation.context);
        let managed = allocation.kind == Kind::Managed;
        let pool = match allocation.kind {
            Kind::Pooled(pool) => Some(pool),
            _ => None,
        };
        Some(AddressInfo { base, bytes, context, host, managed, pool })
    }

    /// A stream is to free this memory once it has come so far: until then the memory is the
    /// program's.
    pub(crate) fn free_later(&mut self, address: u64) -> Result<Arc<Region>, CUresult> {
        let allocation = self.by_address.get_mut(&address).ok_or(INVALID_VALUE)?;
        let can_be = matches!(allocation.kind, Kind::Device | Kind::Managed | Kind::Pooled(_));
        if !can_be || allocation.freeing {
            return Err(INVALID_VALUE);
        }
        allocation.freeing = true;
        Ok(allocation.region.clone())
    }

    /// Whether memory of the program was unregistered since a place in it was given.
    pub(crate) fn is_lost(&self, place: &Place) -> bool {
        matches!(&place.keeper, Keeper::Region(region) if !region.owned) && self.is_gone(place)
    }

    /// Ends a registration, if it still is that of this region.
    pub(crate) fn unregister(&mut self, feed: Option<&mut Feed>, region: &Arc<Region>) -> bool {
        let address = region.base as u64;
        let still = self.by_address.get(&address);
        let still = still.is_some_and(|of| Arc::ptr_eq(&of.region, region));
        if still {
            self.by_address.remove(&address);
            if let Some(feed) = feed {
                feed.unregister(address);
            }
        }
        still
    }
}
