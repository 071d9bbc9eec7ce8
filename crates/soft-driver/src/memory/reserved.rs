//! Virtual memory: addresses that are reserved, and memory that is mapped there.
//!
//! A mapping is an allocation of [`Allocations`](super::allocations::Allocations), whose region is
//! that of the whole reservation: work in a queue keeps the addresses, and not what is mapped there.
//! As on a card it uses what is mapped when a stream gets there.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::abi::*;
use crate::machine::handles::{Kind, Table};
use crate::memory::{Place, Region, map};

/// The step of sizes and addresses. Measured.
pub(crate) const GRANULARITY: u64 = 2 << 20;

#[cfg(target_os = "linux")]
type File = std::os::fd::OwnedFd;
#[cfg(not(target_os = "linux"))]
type File = ();

/// What the program made memory with.
struct Props(CUmemAllocationProp);

// SAFETY: the pointer is the program's, and only returned to it.
unsafe impl Send for Props {}

/// Physical memory of `cuMemCreate`, which has no address until it is mapped.
pub(crate) struct Physical {
    file: File,
    pub(crate) bytes: u64,
    props: Props,
    pub(crate) device: usize,
    /// How many releases the program owes.
    pub(crate) handles: u32,
    pub(crate) maps: u32,
}

impl Physical {
    pub(crate) fn props(&self) -> CUmemAllocationProp {
        self.props.0
    }
}

struct Reservation {
    region: Arc<Region>,
    bytes: u64,
}

/// The reservations of a machine, and its memory without an address.
pub(crate) struct Reserved {
    by_address: BTreeMap<u64, Reservation>,
    pub(crate) memory: Table<Physical>,
}

impl Reserved {
    pub(crate) const fn new(slot: usize) -> Self {
        Self { by_address: BTreeMap::new(), memory: Table::new(Kind::Memory, slot) }
    }

    pub(crate) fn reset(&mut self, life: u64) {
        self.by_address = BTreeMap::new();
        self.memory.reset(life);
    }

    /// Reserves addresses, at a multiple of `alignment`.
    pub(crate) fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<u64, CUresult> {
        // As much as a card has addresses.
        const MOST: u64 = 1 << 46;
        let whole = bytes.checked_add(alignment).filter(|whole| *whole <= MOST);
        let whole = whole.ok_or(OUT_OF_MEMORY)? as usize;
        let base = map(whole).ok_or(OUT_OF_MEMORY)?;
        let region = Arc::new(Region::new(base, whole, true, None));
        let address = (base as u64).next_multiple_of(alignment);
        self.by_address.insert(address, Reservation { region, bytes });
        Ok(address)
    }

    /// Gives a reservation back, which must be a whole one.
    pub(crate) fn give_back(&mut self, address: u64, bytes: u64) -> Answer {
        if self.by_address.get(&address).is_none_or(|range| range.bytes != bytes) {
            return Err(INVALID_VALUE);
        }
        self.by_address.remove(&address);
        Ok(())
    }

    /// The region of the reservation that holds a whole range.
    pub(crate) fn around(&self, address: u64, bytes: u64) -> Option<&Arc<Region>> {
        let (base, range) = self.by_address.range(..=address).next_back()?;
        let end = (address - base).checked_add(bytes)?;
        (end <= range.bytes).then_some(&range.region)
    }

    /// Whether a place is in reserved addresses.
    pub(super) fn holds(&self, place: &Place) -> bool {
        !self.by_address.is_empty() && self.around(place.address as u64, 1).is_some()
    }

    pub(crate) fn create(
        &mut self,
        born: u64,
        bytes: u64,
        props: CUmemAllocationProp,
        device: usize,
    ) -> Result<u64, CUresult> {
        let file = file(bytes)?;
        let new = Physical { file, bytes, props: Props(props), device, handles: 1, maps: 0 };
        self.memory.insert(born, new).map(|(_, handle)| handle).ok_or(OUT_OF_MEMORY)
    }

    /// Ends memory that has no handle and no address. How much that was, and whose.
    pub(crate) fn settle(&mut self, memory: u32) -> Option<(usize, u64)> {
        let physical = self.memory.get(memory)?;
        if physical.handles > 0 || physical.maps > 0 {
            return None;
        }
        self.memory.remove(memory).map(|physical| (physical.device, physical.bytes))
    }

    /// Maps memory at reserved addresses.
    pub(crate) fn map(&mut self, memory: u32, address: u64) -> Answer {
        let physical = &mut self.memory[memory];
        place(address, physical.bytes, Some(&physical.file))?;
        physical.maps += 1;
        Ok(())
    }

    /// Nothing is mapped there any more. Work that still gets there finds other memory.
    pub(crate) fn unmap(&mut self, memory: u32, address: u64) {
        let physical = &mut self.memory[memory];
        physical.maps -= 1;
        // Where the system refuses, what was mapped stays until the addresses are given back.
        let _ = place(address, physical.bytes, None);
    }
}

#[cfg(target_os = "linux")]
fn file(bytes: u64) -> Result<File, CUresult> {
    use std::os::fd::FromRawFd as _;
    // SAFETY: a name; a new descriptor is nobody's yet.
    let file = unsafe {
        let number = libc::memfd_create(c"cuda-soft-driver".as_ptr(), libc::MFD_CLOEXEC);
        if number < 0 {
            return Err(OUT_OF_MEMORY);
        }
        std::fs::File::from_raw_fd(number)
    };
    file.set_len(bytes).map_err(|_| OUT_OF_MEMORY)?;
    Ok(file.into())
}

/// Other systems cannot map memory at two addresses.
#[cfg(not(target_os = "linux"))]
fn file(_bytes: u64) -> Result<File, CUresult> {
    Err(NOT_SUPPORTED)
}

#[cfg(not(target_os = "linux"))]
fn place(_address: u64, _bytes: u64, _file: Option<&File>) -> Answer {
    Err(NOT_SUPPORTED)
}

/// Puts the file, or empty memory, at addresses of a reservation.
#[cfg(target_os = "linux")]
fn place(address: u64, bytes: u64, file: Option<&File>) -> Answer {
    use std::os::fd::AsRawFd as _;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let (kind, number) = match file {
        Some(file) => (libc::MAP_SHARED, file.as_raw_fd()),
        None => (libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_NORESERVE, -1),
    };
    let at = core::ptr::with_exposed_provenance_mut(address as usize);
    // SAFETY: the addresses are of a reservation, which the driver has mapped for itself, and in
    // which nothing but work of streams, by atomic or raw accesses, reads and writes.
    let mapped =
        unsafe { libc::mmap(at, bytes as usize, protection, kind | libc::MAP_FIXED, number, 0) };
    if mapped == libc::MAP_FAILED { Err(OUT_OF_MEMORY) } else { Ok(()) }
}
