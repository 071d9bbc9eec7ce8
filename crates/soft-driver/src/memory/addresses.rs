//! What an address names.

use core::ffi::c_void;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::abi::*;
use crate::memory::{Keeper, Kind, Place, READ_ONLY, Region};

/// A piece of memory that the program has.
pub(crate) struct Allocation {
    pub(crate) region: Arc<Region>,
    pub(crate) context: u32,
    pub(crate) device: usize,
    pub(crate) kind: Kind,
    /// What the program asked for.
    pub(crate) bytes: usize,
    /// A stream frees it, once it has come so far.
    pub(super) freeing: bool,
}

/// What can be asked about an address.
pub(crate) struct AddressInfo {
    pub(crate) base: u64,
    pub(crate) bytes: u64,
    /// Mapped memory is of none.
    pub(crate) context: Option<u32>,
    pub(crate) device: usize,
    pub(crate) host: bool,
    pub(crate) managed: bool,
    pub(crate) pool: Option<u32>,
}

/// What is allocated, by its first address.
pub(crate) struct Addresses(pub(super) BTreeMap<u64, Allocation>);

impl Addresses {
    /// The allocation that an address is in, and its first address.
    pub(crate) fn around(&self, address: u64) -> Option<(u64, &Allocation)> {
        let (base, allocation) = self.0.range(..=address).next_back()?;
        (address - base < allocation.bytes as u64).then_some((*base, allocation))
    }

    /// The allocation that begins at an address.
    pub(crate) fn starting_at(&self, address: u64) -> Option<&Allocation> {
        self.0.get(&address)
    }

    /// The allocation that holds a whole range.
    pub(super) fn within(&self, address: u64, bytes: usize) -> Option<Arc<Region>> {
        let (base, allocation) = self.around(address)?;
        if let Kind::Mapped(..) = allocation.kind {
            return self.within_mappings(address, bytes);
        }
        let end = (address - base).checked_add(bytes as u64)?;
        (end <= allocation.bytes as u64).then(|| allocation.region.clone())
    }

    /// The region of mappings that hold a whole range, which some device may at least read.
    fn within_mappings(&self, address: u64, bytes: usize) -> Option<Arc<Region>> {
        let end = address.checked_add(bytes as u64)?;
        let (mut next, mut region) = (address, None);
        while next < end || region.is_none() {
            let (base, allocation) = self.around(next)?;
            let Kind::Mapped(_, access) = allocation.kind else { return None };
            if access == [0; 8] {
                return None;
            }
            let first = region.get_or_insert_with(|| allocation.region.clone());
            if !Arc::ptr_eq(first, &allocation.region) {
                return None;
            }
            next = base + allocation.bytes as u64;
        }
        region
    }

    /// Whether a range overlaps with an allocation or a registration.
    pub(crate) fn overlaps(&self, base: u64, bytes: usize) -> bool {
        let end = base.saturating_add(bytes as u64);
        let last = self.0.range(..end).next_back();
        last.is_some_and(|(first, allocation)| first.saturating_add(allocation.bytes as u64) > base)
    }

    /// What can be asked about an address.
    pub(crate) fn describe(&self, address: u64) -> Option<AddressInfo> {
        let (base, allocation) = self.around(address)?;
        let host = allocation.kind.is_host();
        let (bytes, device) = (allocation.bytes as u64, allocation.device);
        let mapped = matches!(allocation.kind, Kind::Mapped(..));
        let context = (!mapped).then_some(allocation.context);
        let managed = allocation.kind == Kind::Managed;
        let pool = match allocation.kind {
            Kind::Pooled(pool) => Some(pool),
            _ => None,
        };
        Some(AddressInfo { base, bytes, context, device, host, managed, pool })
    }

    /// The memory of a range of device addresses, which must be in one allocation.
    pub(crate) fn device_range(&self, address: u64, bytes: usize) -> Result<Place, CUresult> {
        let region = self.within(address, bytes).ok_or(INVALID_VALUE)?;
        Ok(Place { address: address as usize, keeper: Keeper::Region(region) })
    }

    /// The memory of a host pointer: the driver's if it was allocated or registered, otherwise the
    /// program's, which is responsible for it.
    pub(crate) fn host_range(&self, pointer: *const c_void, bytes: usize) -> Place {
        let address = pointer.expose_provenance();
        let keeper = self.within(address as u64, bytes).map_or(Keeper::Program, Keeper::Region);
        Place { address, keeper }
    }

    /// The memory of an address of any kind.
    pub(crate) fn any_range(&self, address: u64, bytes: usize) -> Result<Place, CUresult> {
        match self.around(address) {
            Some(_) => self.device_range(address, bytes),
            None => {
                Ok(self.host_range(core::ptr::with_exposed_provenance(address as usize), bytes))
            }
        }
    }

    /// Where managed memory begins that has a whole range.
    pub(crate) fn managed(&self, address: u64, bytes: usize) -> Result<u64, CUresult> {
        let (base, allocation) = self.around(address).ok_or(INVALID_VALUE)?;
        if allocation.kind != Kind::Managed || self.within(address, bytes).is_none() {
            return Err(INVALID_VALUE);
        }
        Ok(base)
    }

    /// Whether a place is in the memory of a device.
    pub(crate) fn is_of_device(&self, place: &Place) -> bool {
        self.around(place.address as u64)
            .is_some_and(|(_, allocation)| allocation.kind.is_of_device())
    }

    /// Whether the host owns this memory: ordinary, pinned or registered memory.
    pub(crate) fn is_of_host(&self, place: &Place) -> bool {
        match self.around(place.address as u64) {
            Some((_, allocation)) => allocation.kind.is_host(),
            None => place.pageable(),
        }
    }

    /// Whether an address is in memory that was registered for reading alone.
    pub(crate) fn is_read_only(&self, address: u64) -> bool {
        let read_only = |kind| matches!(kind, Kind::Registered(flags) if flags & READ_ONLY != 0);
        self.around(address).is_some_and(|(_, allocation)| read_only(allocation.kind))
    }

    /// Whether memory is mapped for reading alone.
    pub(crate) fn is_mapped_read_only(&self, place: &Place) -> bool {
        let writes = |access: [u8; 8]| access.contains(&3);
        let kind = self.around(place.address as u64).map(|(_, allocation)| allocation.kind);
        matches!(kind, Some(Kind::Mapped(_, access)) if !writes(access))
    }

    /// Whether memory was freed, unregistered, or has ended with its context since a place in it
    /// was given. Memory of the program that was registered again is the same.
    pub(crate) fn is_gone(&self, place: &Place) -> bool {
        let Keeper::Region(region) = &place.keeper else { return false };
        let same = |allocation: &Allocation| {
            Arc::ptr_eq(&allocation.region, region) || !region.owned && !allocation.region.owned
        };
        !self.around(place.address as u64).is_some_and(|(_, allocation)| same(allocation))
    }

    /// Whether memory of the program was unregistered since a place in it was given.
    pub(crate) fn is_lost(&self, place: &Place) -> bool {
        matches!(&place.keeper, Keeper::Region(region) if !region.owned) && self.is_gone(place)
    }

    /// The mappings that fill a range, one after the other: their addresses, and what they map.
    pub(crate) fn mappings(&self, address: u64, bytes: usize) -> Result<Vec<(u64, u32)>, CUresult> {
        let end = address.checked_add(bytes as u64).filter(|_| bytes > 0).ok_or(INVALID_VALUE)?;
        let (mut found, mut next) = (Vec::new(), address);
        for (at, allocation) in self.0.range(address..end) {
            let Kind::Mapped(memory, _) = allocation.kind else { return Err(INVALID_VALUE) };
            if *at != next {
                return Err(INVALID_VALUE);
            }
            next = at + allocation.bytes as u64;
            found.push((*at, memory));
        }
        if next == end { Ok(found) } else { Err(INVALID_VALUE) }
    }

    pub(crate) fn set_access(&mut self, address: u64, device: usize, flags: u8) {
        if let Some(Allocation { kind: Kind::Mapped(_, access), .. }) = self.0.get_mut(&address) {
            access[device] = flags;
        }
    }
}
