//! What is allocated: what an address names, how memory begins and how it ends.

use core::ffi::c_void;
use std::collections::BTreeMap;
use std::sync::Arc;

use cuda_order_check::feed::Memory;

use crate::abi::*;
use crate::memory::pool::Pools;
use crate::memory::{ALIGNMENT, Keeper, Kind, Place, READ_ONLY, Region, map};
use crate::order::Feed;
use crate::processes::shared_memory::{Arena, Backing, Named};

#[cfg(feature = "courtesy")]
mod courtesy;

/// A piece of memory that the program has.
pub(crate) struct Allocation {
    pub(crate) region: Arc<Region>,
    pub(crate) context: u32,
    pub(crate) device: usize,
    pub(crate) kind: Kind,
    /// What the program asked for.
    pub(crate) bytes: usize,
    /// A stream frees it, once it has come so far.
    freeing: bool,
}

/// All memory of a machine.
pub(crate) struct Allocations {
    /// What is allocated, by its first address.
    by_address: BTreeMap<u64, Allocation>,
    /// The file that device memory lies in, from the first piece on.
    arena: Option<Arena>,
    /// How much of each device is in use.
    used: BTreeMap<usize, u64>,
    pub(crate) pools: Pools,
}

impl Allocations {
    pub(crate) const fn new(slot: usize) -> Self {
        Self {
            by_address: BTreeMap::new(),
            arena: None,
            used: BTreeMap::new(),
            pools: Pools::new(slot),
        }
    }

    pub(crate) fn reset(&mut self, life: u64) {
        self.by_address = BTreeMap::new();
        self.arena = None;
        self.used = BTreeMap::new();
        self.pools.reset(life);
    }

    /// The allocation that an address is in, and its first address.
    pub(crate) fn around(&self, address: u64) -> Option<(u64, &Allocation)> {
        let (base, allocation) = self.by_address.range(..=address).next_back()?;
        (address - base < allocation.bytes as u64).then_some((*base, allocation))
    }

    /// Whether a range overlaps with an allocation or a registration.
    pub(crate) fn overlaps(&self, base: u64, bytes: usize) -> bool {
        let end = base.saturating_add(bytes as u64);
        let last = self.by_address.range(..end).next_back();
        last.is_some_and(|(first, allocation)| first.saturating_add(allocation.bytes as u64) > base)
    }

    /// Whether an address is in memory that was registered for reading alone.
    pub(crate) fn is_read_only(&self, address: u64) -> bool {
        let read_only = |kind| matches!(kind, Kind::Registered(flags) if flags & READ_ONLY != 0);
        self.around(address).is_some_and(|(_, allocation)| read_only(allocation.kind))
    }

    /// The allocation that holds a whole range.
    fn within(&self, address: u64, bytes: usize) -> Option<Arc<Region>> {
        let (base, allocation) = self.around(address)?;
        let end = (address - base).checked_add(bytes as u64)?;
        (end <= allocation.bytes as u64).then(|| allocation.region.clone())
    }

    /// Whether memory was freed, unregistered, or has ended with its context since a place in it
    /// was given. Memory of the program that was registered again is the same.
    pub(crate) fn is_gone(&self, place: &Place) -> bool {
        let Keeper::Region(region) = &place.keeper else { return false };
        let same =
            |of: &Allocation| Arc::ptr_eq(&of.region, region) || !region.owned && !of.region.owned;
        !self.around(place.address as u64).is_some_and(|(_, of)| same(of))
    }

    /// What the program has to free. Memory that it registered is its own: the registration may end
    /// with the context, and nothing is lost.
    fn to_free(&self) -> impl Iterator<Item = (&u64, &Allocation)> {
        let to_free = |of: &Allocation| !of.freeing && !matches!(of.kind, Kind::Registered(_));
        self.by_address.iter().filter(move |(_, allocation)| to_free(allocation))
    }

    /// The addresses of what the program has to free in a context.
    pub(crate) fn of_context(&self, context: u32) -> impl Iterator<Item = u64> {
        self.to_free()
            .filter(move |(_, allocation)| allocation.context == context)
            .map(|(address, _)| *address)
    }

    /// How many allocations the program has to free.
    pub(crate) fn len(&self) -> usize {
        self.to_free().count()
    }

    /// How much of a device is in use.
    pub(crate) fn used(&self, device: usize) -> u64 {
        self.used.get(&device).copied().unwrap_or(0)
    }

    /// The allocation that begins at an address.
    pub(crate) fn starting_at(&self, address: u64) -> Option<&Allocation> {
        self.by_address.get(&address)
    }

    /// Where managed memory begins that has a whole range.
    pub(crate) fn managed(&self, address: u64, bytes: usize) -> Result<u64, CUresult> {
        let (base, allocation) = self.around(address).ok_or(INVALID_VALUE)?;
        if allocation.kind != Kind::Managed || self.within(address, bytes).is_none() {
            return Err(INVALID_VALUE);
        }
        Ok(base)
    }
}

/// What an address names.
impl Allocations {
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

    /// Whether a place is in the memory of a device.
    pub(crate) fn is_of_device(&self, place: &Place) -> bool {
        self.around(place.address as u64).is_some_and(|(_, of)| of.kind.is_of_device())
    }

    /// Whether the host owns this memory: ordinary, pinned or registered memory.
    pub(crate) fn is_of_host(&self, place: &Place) -> bool {
        match self.around(place.address as u64) {
            Some((_, allocation)) => allocation.kind.is_host(),
            None => place.pageable(),
        }
    }
}

/// Who asks for memory.
#[derive(Clone, Copy)]
pub(crate) struct Owner {
    pub(crate) context: u32,
    pub(crate) device: usize,
}

/// How memory begins.
impl Allocations {
    /// New memory. A device has so much of it as `limit`.
    pub(crate) fn allocate(
        &mut self,
        feed: Option<&mut Feed>,
        owner: Owner,
        limit: u64,
        bytes: usize,
        kind: Kind,
    ) -> Result<u64, CUresult> {
        if bytes == 0 {
            return Err(INVALID_VALUE);
        }
        let rounded = bytes.checked_next_multiple_of(ALIGNMENT).ok_or(OUT_OF_MEMORY)?;
        let used = self.used(owner.device).checked_add(rounded as u64);
        let used = used.filter(|used| !kind.is_counted() || *used <= limit);
        let used = used.ok_or(OUT_OF_MEMORY)?;
        let private = || map(rounded).map(|base| (base, None));
        let mapped = match kind {
            Kind::Device => self.map_device(rounded),
            Kind::Pooled(pool) => match &mut self.pools.get_mut(pool).arena {
                Some(arena) => arena.map(rounded).map(|(base, backing)| (base, Some(backing))),
                None => private(),
            },
            _ => private(),
        };
        let (base, backing) = mapped.ok_or(OUT_OF_MEMORY)?;
        if kind.is_counted() {
            self.used.insert(owner.device, used);
        }
        let region = Region::new(base, rounded, true, backing);
        // Of a pool it is allocated in stream order, which the caller reports.
        let feed = feed.filter(|_| !matches!(kind, Kind::Pooled(_)));
        Ok(self.add(feed, owner, region, bytes, kind))
    }

    /// New device memory, where others can open it if the system has that.
    fn map_device(&mut self, bytes: usize) -> Option<(usize, Option<Backing>)> {
        if self.arena.is_none() {
            self.arena = Arena::new();
        }
        match self.arena.as_mut().and_then(|arena| arena.map(bytes)) {
            Some((base, backing)) => Some((base, Some(backing))),
            None => Some((map(bytes)?, None)),
        }
    }

    /// Memory that the program registers, or that is another process's. Its address.
    pub(crate) fn add(
        &mut self,
        feed: Option<&mut Feed>,
        owner: Owner,
        region: Region,
        bytes: usize,
        kind: Kind,
    ) -> u64 {
        let (base, size) = (region.base as u64, region.bytes as u64);
        let Owner { context, device } = owner;
        let (region, freeing) = (Arc::new(region), false);
        self.by_address.insert(base, Allocation { region, context, device, kind, bytes, freeing });
        if let Kind::Pooled(pool) = kind {
            self.pools.get_mut(pool).took(size);
        }
        if let Some(feed) = feed {
            let memory = match kind {
                Kind::Device | Kind::Pooled(_) => Memory::Device,
                Kind::Host(_) | Kind::Registered(_) => Memory::Host,
                Kind::Managed => Memory::Managed,
                Kind::Imported(..) => Memory::Exported,
            };
            feed.allocate(base, bytes as u64, memory);
        }
        base
    }

    /// Lets other processes open device memory: the name that they open it by.
    pub(crate) fn export(&mut self, address: u64) -> Result<Named, CUresult> {
        let Some((_, Allocation { kind: Kind::Device, region, bytes, .. })) = self.around(address)
        else {
            return Err(INVALID_VALUE);
        };
        let (region, bytes) = (region.clone(), *bytes);
        // Without them the system has no such files.
        let (Some(backing), Some(arena)) = (&region.backing, &mut self.arena) else {
            return Err(NOT_SUPPORTED);
        };
        arena.export(backing, bytes)
    }

    /// Whether a name is of this machine's own memory.
    pub(crate) fn exports(&self, named: &Named) -> bool {
        self.arena.as_ref().is_some_and(|arena| arena.is_of(named))
    }

    /// Opens what a context has opened by a name already once more.
    pub(crate) fn open_again(&mut self, context: u32, named: &Named) -> Option<u64> {
        self.by_address.iter_mut().find_map(|(address, allocation)| match &mut allocation.kind {
            Kind::Imported(of, count) if of == named && allocation.context == context => {
                *count += 1;
                Some(*address)
            }
            _ => None,
        })
    }
}

/// How memory ends: at once, in stream order, or with its context.
impl Allocations {
    pub(crate) fn free(&mut self, feed: Option<&mut Feed>, address: u64, host: bool) -> Answer {
        match self.by_address.get(&address) {
            Some(Allocation { kind: Kind::Imported(..), .. }) => return Err(INVALID_VALUE),
            Some(Allocation { freeing: true, .. }) => return Err(INVALID_VALUE),
            Some(allocation) if allocation.kind.is_host() == host => {}
            _ => return Err(INVALID_VALUE),
        }
        if let Some(feed) = feed {
            feed.free(address);
        }
        self.forget(address);
        Ok(())
    }

    /// A stream has come so far that memory ends.
    pub(crate) fn free_now(&mut self, region: &Arc<Region>) {
        let address = region.base as u64;
        let still = self.by_address.get(&address);
        if still.is_some_and(|allocation| Arc::ptr_eq(&allocation.region, region)) {
            self.forget(address);
        }
    }

    /// The device whose work a free of this memory waits for. Documented: memory of a pool is freed
    /// without a wait.
    pub(crate) fn freed_after_work_of(&self, address: u64) -> Option<usize> {
        match self.by_address.get(&address)? {
            Allocation { kind: Kind::Device | Kind::Managed, device, freeing: false, .. } => {
                Some(*device)
            }
            _ => None,
        }
    }

    /// Closes another process's memory, as often as it was opened.
    pub(crate) fn close(&mut self, feed: Option<&mut Feed>, address: u64) -> Answer {
        match self.by_address.get_mut(&address) {
            Some(Allocation { kind: Kind::Imported(_, count), .. }) if *count > 1 => {
                *count -= 1;
                Ok(())
            }
            Some(Allocation { kind: Kind::Imported(..), .. }) => {
                self.by_address.remove(&address);
                if let Some(feed) = feed {
                    feed.free(address);
                }
                Ok(())
            }
            _ => Err(INVALID_VALUE),
        }
    }

    /// Frees what a context has.
    pub(crate) fn end_of_context(&mut self, feed: Option<&mut Feed>, context: u32) {
        let theirs = self.by_address.iter().filter(|(_, of)| of.context == context);
        let theirs: Vec<(u64, Kind, bool)> =
            theirs.map(|(address, of)| (*address, of.kind, of.freeing)).collect();
        if let Some(feed) = feed {
            for (address, kind, freeing) in &theirs {
                match kind {
                    _ if *freeing => {}
                    Kind::Registered(_) => feed.registration_ends(*address),
                    _ => feed.free(*address),
                }
            }
        }
        theirs.into_iter().for_each(|(address, ..)| self.forget(address));
    }

    /// Takes an address away, and counts what is left.
    fn forget(&mut self, address: u64) {
        let Some(allocation) = self.by_address.remove(&address) else { return };
        let bytes = allocation.region.bytes as u64;
        // Of a pool of another process nothing is counted here.
        let counted = match allocation.kind {
            Kind::Pooled(pool) => self.pools.gave_back(pool, bytes),
            kind => kind.is_counted(),
        };
        if counted && let Some(used) = self.used.get_mut(&allocation.device) {
            *used = used.saturating_sub(bytes);
        }
    }
}
