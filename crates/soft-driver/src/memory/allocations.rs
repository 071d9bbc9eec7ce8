//! What is allocated: how memory begins and how it ends.

use std::collections::BTreeMap;
use std::sync::Arc;

use cuda_order_check_engine::feed::Memory;

use crate::abi::*;
use crate::memory::addresses::{Addresses, Allocation};
use crate::memory::pool::Pools;
use crate::memory::reserved::Reserved;
use crate::memory::{ALIGNMENT, Kind, Region, map};
use crate::order::Feed;
use crate::processes::shared_memory::{Arena, Backing, Named};

mod information;

/// All memory of a machine.
pub(crate) struct Allocations {
    pub(crate) addresses: Addresses,
    /// The file that device memory lies in, from the first piece on.
    arena: Option<Arena>,
    /// How much of each device is in use.
    used: BTreeMap<usize, u64>,
    pub(crate) pools: Pools,
    pub(crate) reserved: Reserved,
}

impl Allocations {
    pub(crate) const fn new(slot: usize) -> Self {
        Self {
            addresses: Addresses(BTreeMap::new()),
            arena: None,
            used: BTreeMap::new(),
            pools: Pools::new(slot),
            reserved: Reserved::new(slot),
        }
    }

    pub(crate) fn reset(&mut self, life: u64) {
        self.addresses.0.clear();
        self.arena = None;
        self.used = BTreeMap::new();
        self.pools.reset(life);
        self.reserved.reset(life);
    }

    /// What the program has to free. Memory that it registered is its own: the registration may end
    /// with the context, and nothing is lost.
    fn to_free(&self) -> impl Iterator<Item = (&u64, &Allocation)> {
        let to_free = |allocation: &Allocation| {
            !allocation.freeing && !matches!(allocation.kind, Kind::Registered(_))
        };
        self.addresses.0.iter().filter(move |(_, allocation)| to_free(allocation))
    }

    /// The addresses of what the program has to free before a context ends. What processes share
    /// may end with the context, because to give it back may mean to wait for other work.
    pub(crate) fn of_context(&self, context: u32) -> impl Iterator<Item = u64> {
        let shared = |allocation: &Allocation| {
            matches!(allocation.kind, Kind::Imported(..))
                || allocation.region.backing.as_ref().is_some_and(Backing::is_exported)
        };
        self.to_free()
            .filter(move |(_, allocation)| allocation.context == context && !shared(allocation))
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
}

/// The context and the device that memory is allocated for.
#[derive(Clone, Copy)]
pub(crate) struct Owner {
    pub(crate) context: u32,
    pub(crate) device: usize,
}

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
        self.addresses.0.insert(base, Allocation { region, context, device, kind, bytes, freeing });
        if let Kind::Pooled(pool) = kind {
            self.pools.get_mut(pool).took(size);
        }
        if let Some(feed) = feed {
            let memory = match kind {
                Kind::Device | Kind::Pooled(_) => Memory::Device,
                Kind::Host(_) | Kind::Registered(_) => Memory::Host,
                Kind::Managed => Memory::Managed,
                Kind::Imported(..) => Memory::Exported,
                Kind::Mapped(..) => Memory::Device,
            };
            feed.allocate(base, bytes as u64, memory);
        }
        base
    }

    /// Lets other processes open device memory: the name that they open it by.
    pub(crate) fn export(&mut self, address: u64) -> Result<Named, CUresult> {
        let Some((_, Allocation { kind: Kind::Device, region, bytes, .. })) =
            self.addresses.around(address)
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
        self.addresses.0.iter_mut().find_map(|(address, allocation)| match &mut allocation.kind {
            Kind::Imported(opened, count) if opened == named && allocation.context == context => {
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
        match self.addresses.0.get(&address) {
            Some(Allocation { kind: Kind::Imported(..), .. }) => return Err(INVALID_VALUE),
            Some(Allocation { freeing: true, .. }) => return Err(INVALID_VALUE),
            Some(Allocation { kind: Kind::Mapped(..), .. }) => return Err(INVALID_VALUE),
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
        let still = self.addresses.0.get(&address);
        if still.is_some_and(|allocation| Arc::ptr_eq(&allocation.region, region)) {
            self.forget(address);
        }
    }

    /// The device whose work a free of this memory waits for. Documented: memory of a pool is freed
    /// without a wait.
    pub(crate) fn freed_after_work_of(&self, address: u64) -> Option<usize> {
        match self.addresses.0.get(&address)? {
            Allocation { kind: Kind::Device | Kind::Managed, device, freeing: false, .. } => {
                Some(*device)
            }
            _ => None,
        }
    }

    /// The device on which another process's memory is open here.
    pub(crate) fn opened_on(&self, address: u64) -> Option<usize> {
        let allocation = self.addresses.0.get(&address)?;
        matches!(allocation.kind, Kind::Imported(..)).then_some(allocation.device)
    }

    /// Closes another process's memory, as often as it was opened.
    pub(crate) fn close(&mut self, feed: Option<&mut Feed>, address: u64) -> Answer {
        match self.addresses.0.get_mut(&address) {
            Some(Allocation { kind: Kind::Imported(_, count), .. }) if *count > 1 => {
                *count -= 1;
                Ok(())
            }
            Some(Allocation { kind: Kind::Imported(..), .. }) => {
                self.addresses.0.remove(&address);
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
        let theirs =
            self.addresses.0.iter().filter(|(_, allocation)| allocation.context == context);
        let theirs: Vec<(u64, Kind, bool)> = theirs
            .map(|(address, allocation)| (*address, allocation.kind, allocation.freeing))
            .collect();
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
        let Some(allocation) = self.addresses.0.remove(&address) else { return };
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
