//! All memory, by addresses.

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

/// All memory. It is looked up far more often than it changes: for each word of a kernel's
/// parameters.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// The first addresses, in their order.
    pub(super) starts: Vec<u64>,
    /// The bytes of each, and who can read it.
    pub(super) places: Vec<(u64, Memory)>,
    /// Which one was found last. The next one is often the same, or one beside it.
    last: AtomicUsize,
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
    }

    pub(super) fn remove(&mut self, address: u64) -> Option<(u64, Memory)> {
        let at = self.starts.binary_search(&address).ok()?;
        self.starts.remove(at);
        Some(self.places.remove(at))
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
        // Most words that are no addresses are small numbers.
        if address < *self.starts.first()? {
            return None;
        }
        let last = self.last.load(Ordering::Relaxed);
        if self.has(last, address) {
            return Some(last);
        }
        self.elsewhere(address, last)
    }

    fn elsewhere(&self, address: u64, last: usize) -> Option<usize> {
        if let Some(at) =
            [last.wrapping_sub(1), last + 1].into_iter().find(|at| self.has(*at, address))
        {
            self.last.store(at, Ordering::Relaxed);
            return Some(at);
        }
        let at = self.starts.partition_point(|start| *start <= address).checked_sub(1)?;
        self.last.store(at, Ordering::Relaxed);
        self.has(at, address).then_some(at)
    }
}
