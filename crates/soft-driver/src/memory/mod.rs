//! Memory: pieces of it, and places in them. [`allocations`] has what is allocated and what an
//! address names, [`work`] what a stream does to memory, [`word`] what it waits for and writes.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use crate::processes::shared_memory::{Backing, Named};

pub(crate) mod addresses;
pub(crate) mod allocations;
pub(crate) mod blocks;
mod pieces;
pub(crate) mod pool;
pub(crate) mod reserved;
pub(crate) mod word;
pub(crate) mod work;

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
    alias: AtomicUsize,
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
/// driver that pins pages it has them made; where the system does not show it, it counts as good.
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
    // SAFETY: the size is not 0, which `allocate` refuses.
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
    pub(crate) fn new(base: usize, bytes: usize, owned: bool, backing: Option<Backing>) -> Self {
        Self { base, bytes, owned, backing, alias: AtomicUsize::new(0) }
    }

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
            // SAFETY: it takes the place of the driver's own mapping, which nothing has written to.
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

/// What kind of memory an allocation is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Device,
    /// Of the device and the host alike.
    Managed,
    /// Of the pool with this number.
    Pooled(u32),
    /// From `cuMemHostAlloc`, with its flags.
    Host(u32),
    Registered(u32),
    /// Mapped at reserved addresses: which memory, and what each device may do there.
    Mapped(u32, [u8; 8]),
    /// Another process's, opened so many times.
    Imported(Named, u32),
}

impl Kind {
    pub(crate) fn is_host(self) -> bool {
        matches!(self, Self::Host(_) | Self::Registered(_))
    }

    /// Whether it is a device's: its own, or another process's.
    fn is_of_device(self) -> bool {
        if matches!(self, Self::Mapped(..)) {
            return true;
        }
        self.is_counted() || matches!(self, Self::Imported(..))
    }

    /// Whether it counts as memory of its device that is in use.
    fn is_counted(self) -> bool {
        matches!(self, Self::Device | Self::Pooled(_))
    }
}

/// A place in memory, which stays valid while work uses it.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) address: usize,
    pub(crate) keeper: Keeper,
}

/// What keeps a place valid.
#[derive(Clone, Debug)]
pub(crate) enum Keeper {
    Region(Arc<Region>),
    /// A copy that was taken of the program's bytes.
    Staged(#[allow(dead_code, reason = "held, not looked at")] Arc<[u8]>),
    /// Memory of the program itself.
    Program,
}

impl Place {
    /// Whether it is ordinary (pageable) memory of the program.
    pub(crate) fn pageable(&self) -> bool {
        matches!(self.keeper, Keeper::Program)
    }

    /// A copy of what is there now.
    pub(crate) fn staged(&self, bytes: usize) -> Self {
        // SAFETY: the program promises so many bytes at its address.
        let copy: Arc<[u8]> = unsafe { core::slice::from_raw_parts(self.pointer(), bytes) }.into();
        Self { address: copy.as_ptr().expose_provenance(), keeper: Keeper::Staged(copy) }
    }

    /// Makes many bytes zero without touching them; whether it did.
    pub(crate) fn clear(&self, bytes: usize) -> bool {
        /// Fewer are written in less time.
        const MANY: usize = 64 << 10;
        let Keeper::Region(region) = &self.keeper else { return false };
        let Some(backing) = region.backing.as_ref().filter(|_| bytes >= MANY) else { return false };
        backing.clear((self.address - region.base) as u64, bytes as u64)
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
