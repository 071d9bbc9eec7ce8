//! Memory: what is allocated, where it is, and what an address names. [`work`] is what a stream does
//! to it, [`word`] what it waits for and writes.

use core::ffi::c_void;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::BTreeMap;
use std::sync::Arc;

use cuda_order_check::feed::Memory;

use crate::abi::*;
use crate::machine::State;
use crate::machine::call_frame::CallFrame;
use crate::machine::handles::{self, Table};
use crate::memory::pool::Pool;
use crate::processes::shared_memory::{Arena, Backing, Named};

pub(crate) mod work;

pub(crate) mod blocks;

pub(crate) mod pool;
pub(crate) mod word;

/// Memory that the driver gave out, or that the program registered. Work in a queue keeps it:
/// freeing takes the address away at once and the memory when nothing uses it any more.
#[derive(Debug)]
pub(crate) struct Region {
    pub(crate) base: usize,
    pub(crate) bytes: usize,
    pub(crate) owned: bool,
    /// Where it lies in the file that other processes may have.
    pub(crate) backing: Option<Backing>,
    /// Of pinned memory: another mapping of the same pages, through which streams access it once it
    /// is there; otherwise 0. A device has its own mapping as well.
    pub(crate) alias: AtomicUsize,
}

pub(crate) const ALIGNMENT: usize = 512;

/// Of registered memory: the device only reads it (`CU_MEMHOSTREGISTER_READ_ONLY`).
pub(crate) const READ_ONLY: u32 = 8;

#[cfg(target_os = "linux")]
fn page_size() -> usize {
    // SAFETY: it has no preconditions.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// Whether memory of the program can be pinned: it is there, and can be read, or written too. As a
/// driver that pins pages it has them made; where the system cannot tell, it is taken to be good.
#[cfg(target_os = "linux")]
pub(crate) fn can_pin(base: usize, bytes: usize, read_only: bool) -> bool {
    let page = page_size();
    let first = base - base % page;
    let Some(end) = base.checked_add(bytes).and_then(|end| end.checked_next_multiple_of(page))
    else {
        return false;
    };
    let populate = |advice| {
        // SAFETY: it changes no contents; what is not mapped is an error.
        let code = unsafe {
            libc::madvise(core::ptr::with_exposed_provenance_mut(first), end - first, advice)
        };
        if code == 0 { Ok(()) } else { Err(std::io::Error::last_os_error().raw_os_error()) }
    };
    match populate(libc::MADV_POPULATE_READ) {
        Err(Some(libc::ENOMEM | libc::EFAULT)) => false,
        Err(_) => true,
        Ok(()) => read_only || populate(libc::MADV_POPULATE_WRITE).is_ok(),
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn can_pin(_base: usize, _bytes: usize, _read_only: bool) -> bool {
    true
}

#[cfg(unix)]
pub(crate) fn map(bytes: usize) -> Option<usize> {
    // SAFETY: a new private mapping; no existing memory is named. Pages are only there once they
    // are touched.
    let address = unsafe {
        libc::mmap(
            core::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    (address != libc::MAP_FAILED).then_some(address.expose_provenance())
}

#[cfg(unix)]
fn unmap(base: usize, bytes: usize) {
    // SAFETY: a mapping that `map` made, unmapped once, by the drop of its only owner.
    unsafe { libc::munmap(core::ptr::with_exposed_provenance_mut(base), bytes) };
}

#[cfg(not(unix))]
pub(crate) fn map(bytes: usize) -> Option<usize> {
    let layout = core::alloc::Layout::from_size_align(bytes, ALIGNMENT).ok()?;
    // SAFETY: the size is not 0; `alloc` answers that itself.
    let address = unsafe { std::alloc::alloc_zeroed(layout) };
    (!address.is_null()).then_some(address.expose_provenance())
}

#[cfg(not(unix))]
fn unmap(base: usize, bytes: usize) {
    if let Ok(layout) = core::alloc::Layout::from_size_align(bytes, ALIGNMENT) {
        // SAFETY: made by `map` with this layout, freed once, by the drop of its only owner.
        unsafe { std::alloc::dealloc(core::ptr::with_exposed_provenance_mut(base), layout) };
    }
}

impl Region {
    /// Maps the pages once more. The memory must be shared, or the driver's own and untouched.
    #[cfg(target_os = "linux")]
    pub(crate) fn make_alias(&self) -> bool {
        if self.alias.load(Ordering::Relaxed) != 0 {
            return true;
        }
        let page = page_size();
        let (first, offset) = (self.base - self.base % page, self.base % page);
        let bytes = offset + self.bytes;
        let first = core::ptr::with_exposed_provenance_mut(first);
        if self.owned {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_SHARED | libc::MAP_ANON | libc::MAP_NORESERVE | libc::MAP_FIXED;
            // SAFETY: it takes the place of the driver's own mapping, which nobody has written.
            if unsafe { libc::mmap(first, bytes, protection, flags, -1, 0) } == libc::MAP_FAILED {
                return false;
            }
        }
        // SAFETY: documented: 0 old bytes of a shared mapping leave it as it is, and map it again.
        let alias = unsafe { libc::mremap(first, 0, bytes, libc::MREMAP_MAYMOVE) };
        if alias == libc::MAP_FAILED {
            return false;
        }
        self.alias.store(alias.expose_provenance() + offset, Ordering::Release);
        true
    }

    /// Only Linux has what is needed.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn make_alias(&self) -> bool {
        false
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        #[cfg(target_os = "linux")]
        if let alias @ 1.. = *self.alias.get_mut() {
            let offset = alias % page_size();
            // SAFETY: the mapping that `make_alias` made, which nobody else has.
            unsafe {
                let first = core::ptr::with_exposed_provenance_mut(alias - offset);
                libc::munmap(first, offset + self.bytes)
            };
        }
        if self.owned {
            unmap(self.base, self.bytes);
        }
    }
}

/// Whose memory it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Device,
    /// Of the device and the host alike.
    Managed,
    /// From a pool.
    Pooled(u32),
    /// From `cuMemHostAlloc`, with its flags.
    Host(u32),
    Registered(u32),
    /// Another process's, opened so many times.
    Imported(Named, u32),
}

impl Kind {
    pub(crate) fn is_host(self) -> bool {
        matches!(self, Self::Host(_) | Self::Registered(_))
    }

    /// Whether it counts as memory of its device that is in use.
    pub(crate) fn is_counted(self) -> bool {
        matches!(self, Self::Device | Self::Pooled(_))
    }
}

/// A piece of memory that the program has.
pub(crate) struct Allocation {
    pub(crate) region: Arc<Region>,
    pub(crate) context: u32,
    pub(crate) kind: Kind,
    /// What the program asked for.
    pub(crate) bytes: usize,
    /// A stream frees it, once it has come so far.
    pub(crate) freeing: bool,
}

/// What is known of an address.
pub(crate) struct Known {
    pub(crate) base: u64,
    pub(crate) bytes: u64,
    pub(crate) context: u32,
    pub(crate) host: bool,
    pub(crate) managed: bool,
    pub(crate) pool: Option<u32>,
}

/// All memory of a machine.
pub(crate) struct Allocations {
    /// What is allocated, by its first address.
    pub(crate) by_address: BTreeMap<u64, Allocation>,
    /// The file that device memory lies in, from the first piece on.
    pub(crate) arena: Option<Arena>,
    pub(crate) pools: Table<Pool>,
}

impl Allocations {
    pub(crate) const fn new(slot: usize) -> Self {
        Self {
            by_address: BTreeMap::new(),
            arena: None,
            pools: Table::new(handles::Kind::Pool, slot),
        }
    }

    pub(crate) fn reset(&mut self, life: u64) {
        self.by_address = BTreeMap::new();
        self.arena = None;
        self.pools.reset(life);
    }

    /// The allocation that an address is in, and how far.
    pub(crate) fn around(&self, address: u64) -> Option<(u64, &Allocation)> {
        let (base, allocation) = self.by_address.range(..=address).next_back()?;
        (address - base < allocation.bytes as u64).then_some((*base, allocation))
    }

    /// Whether a range has memory that is known already.
    pub(crate) fn overlaps(&self, base: u64, bytes: usize) -> bool {
        let end = base.saturating_add(bytes as u64);
        let last = self.by_address.range(..end).next_back();
        last.is_some_and(|(first, allocation)| first.saturating_add(allocation.bytes as u64) > base)
    }

    /// Whether an address is in memory that was registered for reading alone.
    pub(crate) fn read_only(&self, address: u64) -> bool {
        let read_only = |kind| matches!(kind, Kind::Registered(flags) if flags & READ_ONLY != 0);
        self.around(address).is_some_and(|(_, allocation)| read_only(allocation.kind))
    }

    /// The allocation that holds a whole range.
    pub(crate) fn within(&self, address: u64, bytes: usize) -> Option<Arc<Region>> {
        let (base, allocation) = self.around(address)?;
        let end = (address - base).checked_add(bytes as u64)?;
        (end <= allocation.bytes as u64).then(|| allocation.region.clone())
    }

    /// Whether memory was freed, unregistered, or has ended with its context since a place in it was
    /// given. Memory of the program that was registered again is the same.
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

    /// Frees what a context has. How much of it was device memory.
    pub(crate) fn forget_context(&mut self, context: u32) -> u64 {
        let mut used = 0;
        self.by_address.retain(|_, allocation| {
            let theirs = allocation.context == context;
            if theirs && allocation.kind.is_counted() {
                used += allocation.region.bytes as u64;
            }
            !theirs
        });
        used
    }

    /// What is known of an address.
    pub(crate) fn describe(&self, address: u64) -> Option<Known> {
        let (base, allocation) = self.around(address)?;
        let host = allocation.kind.is_host();
        let (bytes, context) = (allocation.bytes as u64, allocation.context);
        let managed = allocation.kind == Kind::Managed;
        let pool = match allocation.kind {
            Kind::Pooled(pool) => Some(pool),
            _ => None,
        };
        Some(Known { base, bytes, context, host, managed, pool })
    }

    /// New device memory, where others can open it if the system has that.
    pub(crate) fn map_device(&mut self, bytes: usize) -> Option<(usize, Option<Backing>)> {
        if self.arena.is_none() {
            self.arena = Arena::new();
        }
        match self.arena.as_mut().and_then(|arena| arena.map(bytes)) {
            Some((base, backing)) => Some((base, Some(backing))),
            None => Some((map(bytes)?, None)),
        }
    }

    /// What a context has opened by a handle already.
    pub(crate) fn imported(&mut self, context: u32, named: &Named) -> Option<(u64, &mut u32)> {
        self.by_address.iter_mut().find_map(|(address, allocation)| match &mut allocation.kind {
            Kind::Imported(of, count) if of == named && allocation.context == context => {
                Some((*address, count))
            }
            _ => None,
        })
    }

    /// How many allocations the program has to free.
    pub(crate) fn len(&self) -> usize {
        self.to_free().count()
    }
}

/// Some memory, kept while work uses it.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) address: usize,
    pub(crate) keeper: Keeper,
}

/// What keeps a place.
#[derive(Clone, Debug)]
pub(crate) enum Keeper {
    Region(Arc<Region>),
    /// A copy that was taken of the program's bytes.
    Staged(#[allow(dead_code, reason = "held, not looked at")] Arc<[u8]>),
    /// The program itself.
    Program,
}

impl Place {
    pub(crate) fn is_in(&self, region: &Arc<Region>) -> bool {
        matches!(&self.keeper, Keeper::Region(kept) if Arc::ptr_eq(kept, region))
    }

    /// Whether it is ordinary memory of the program, which the driver knows nothing of.
    pub(crate) fn pageable(&self) -> bool {
        matches!(self.keeper, Keeper::Program)
    }

    /// A copy of what is there now.
    pub(crate) fn staged(&self, bytes: usize) -> Self {
        // SAFETY: the program promises so many bytes at its address.
        let copy: Arc<[u8]> = unsafe { core::slice::from_raw_parts(self.pointer(), bytes) }.into();
        Self { address: copy.as_ptr().expose_provenance(), keeper: Keeper::Staged(copy) }
    }

    /// Where the driver accesses it.
    pub(crate) fn pointer(&self) -> *mut u8 {
        let address = match &self.keeper {
            Keeper::Region(region) => match region.alias.load(Ordering::Acquire) {
                0 => self.address,
                alias => alias + (self.address - region.base),
            },
            _ => self.address,
        };
        core::ptr::with_exposed_provenance_mut(address)
    }
}

impl State {
    pub(crate) fn allocate(
        &mut self,
        context: u32,
        bytes: usize,
        kind: Kind,
    ) -> Result<u64, CUresult> {
        if bytes == 0 {
            return Err(INVALID_VALUE);
        }
        let rounded = bytes.checked_next_multiple_of(ALIGNMENT).ok_or(OUT_OF_MEMORY)?;
        let device = self.contexts[context].device as usize;
        let used = self.devices[device].used;
        if kind.is_counted() {
            if used.checked_add(rounded as u64).is_none_or(|wanted| wanted > self.config.memory) {
                return Err(OUT_OF_MEMORY);
            }
            self.devices[device].used += rounded as u64;
        }
        let mapped = match kind {
            Kind::Device => self.memory.map_device(rounded),
            Kind::Pooled(pool) => match &mut self.memory.pools[pool].arena {
                Some(arena) => arena.map(rounded).map(|(base, backing)| (base, Some(backing))),
                None => map(rounded).map(|base| (base, None)),
            },
            _ => map(rounded).map(|base| (base, None)),
        };
        let Some((base, backing)) = mapped else {
            self.devices[device].used = used;
            return Err(OUT_OF_MEMORY);
        };
        let region = Arc::new(Region {
            base,
            bytes: rounded,
            owned: true,
            backing,
            alias: Default::default(),
        });
        let freeing = false;
        self.memory
            .by_address
            .insert(base as u64, Allocation { region, context, kind, bytes, freeing });
        match kind {
            // In stream order, which the caller tells.
            Kind::Pooled(pool) => self.memory.pools[pool].took(rounded as u64),
            _ => self.feed_allocation(base, bytes, kind),
        }
        Ok(base as u64)
    }

    /// The call allocates memory, registers it, or opens that of another process.
    pub(crate) fn feed_allocation(&mut self, base: usize, bytes: usize, kind: Kind) {
        let memory = match kind {
            Kind::Device | Kind::Pooled(_) => Memory::Device,
            Kind::Host(_) | Kind::Registered(_) => Memory::Host,
            Kind::Managed => Memory::Managed,
            Kind::Imported(..) => Memory::Exported,
        };
        self.feed(|feed, _| feed.allocate(base as u64, bytes as u64, memory));
    }

    pub(crate) fn free(&mut self, address: u64, host: bool) -> Answer {
        match self.memory.by_address.get(&address) {
            Some(Allocation { kind: Kind::Imported(..), .. }) => return Err(INVALID_VALUE),
            Some(Allocation { freeing: true, .. }) => return Err(INVALID_VALUE),
            Some(allocation) if allocation.kind.is_host() == host => {}
            _ => return Err(INVALID_VALUE),
        }
        self.feed(|feed, _| feed.free(address));
        self.forget(address);
        Ok(())
    }

    /// The memory behind a device address, whole.
    pub(crate) fn device_range(&self, address: u64, bytes: usize) -> Result<Place, CUresult> {
        let region = self.memory.within(address, bytes).ok_or(INVALID_VALUE)?;
        Ok(Place { address: address as usize, keeper: Keeper::Region(region) })
    }

    /// Refuses what would have the device write memory that was registered for reading alone: on a
    /// card its context fails.
    pub(crate) fn may_write(&self, call: &CallFrame, place: &Place) -> Answer {
        let address = place.address as u64;
        if !self.memory.read_only(address) {
            return Ok(());
        }
        Err(self.misuse(
            call,
            &format!("{address:#x} is written, but was registered as read-only"),
            INVALID_VALUE,
        ))
    }

    /// The memory behind a host pointer: the driver's if it knows it, else the program's, for which
    /// it answers.
    pub(crate) fn host_range(&self, pointer: *const c_void, bytes: usize) -> Place {
        let address = pointer.expose_provenance();
        let keeper =
            self.memory.within(address as u64, bytes).map_or(Keeper::Program, Keeper::Region);
        Place { address, keeper }
    }

    /// The memory behind an address that says itself whose it is.
    pub(crate) fn any_range(&self, address: u64, bytes: usize) -> Result<Place, CUresult> {
        match self.memory.around(address) {
            Some(_) => self.device_range(address, bytes),
            None => {
                Ok(self.host_range(core::ptr::with_exposed_provenance(address as usize), bytes))
            }
        }
    }
}
