//! All memory, by addresses.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Who can read memory without a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Memory {
    /// Devices only.
    Device,
    /// The host: it is pinned.
    Host,
    /// The host, as the memory is managed.
    Managed,
    /// Another process, which may report it to the host.
    Exported,
}

/// How many hints there are, and of how many bits an address near another one has the same hint.
const HINTS: usize = 16;
const NEAR: u32 = 21;

/// All memory. It is looked up far more often than it changes: for each word of a kernel's
/// parameters.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// The first addresses, in their order.
    pub(super) starts: Vec<u64>,
    /// The bytes of each, and who can read it.
    pub(super) places: Vec<(u64, Memory)>,
    /// From the first byte of all to the last one.
    around: Range<u64>,
    /// Where an address was found last, by some of its bits. It is often there again.
    hints: [AtomicUsize; HINTS],
}

impl Places {
    pub(super) fn insert(&mut self, address: u64, place: (u64, Memory)) {
        match self.starts.binary_search(&address) {
            Ok(at) => self.places.get_mut(at).into_iter().for_each(|old| *old = place),
            Err(at) => {
                self.starts.insert(at, address);
                self.places.insert(at, place);
            }
        }
        self.measure();
    }

    fn measure(&mut self) {
        let first = self.starts.first().copied().unwrap_or_default();
        let last = self.starts.last().zip(self.places.last());
        self.around = first..last.map_or(first, |(start, (bytes, _))| start.saturating_add(*bytes));
    }

    pub(super) fn remove(&mut self, address: u64) -> Option<(u64, Memory)> {
        let at = self.starts.binary_search(&address).ok()?;
        self.starts.remove(at);
        let removed = self.places.remove(at);
        self.measure();
        Some(removed)
    }

    /// Whether this memory, and no later one, begins before an address and has it.
    #[inline]
    fn has(&self, at: usize, address: u64) -> bool {
        let place = self.starts.get(at).zip(self.places.get(at));
        place.is_some_and(|(start, (bytes, _))| address.wrapping_sub(*start) < *bytes)
            && self.starts.get(at + 1).is_none_or(|next| address < *next)
    }

    /// The place in the lists of the memory at an address.
    #[inline]
    pub(super) fn at(&self, address: u64) -> Option<usize> {
        // Most words that are no addresses are small numbers, or two of them.
        if self.around.contains(&address) { self.near(address) } else { None }
    }

    fn near(&self, address: u64) -> Option<usize> {
        let hint = self.hints.get((address >> NEAR) as usize % HINTS)?;
        let at = hint.load(Ordering::Relaxed);
        if self.has(at, address) { Some(at) } else { self.find(address, hint) }
    }

    fn find(&self, address: u64, hint: &AtomicUsize) -> Option<usize> {
        let at = self.starts.partition_point(|start| *start <= address).checked_sub(1)?;
        let has = self.has(at, address);
        if has {
            hint.store(at, Ordering::Relaxed);
        }
        has.then_some(at)
    }
}
