//! Memsets and copies in streams.

use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering, fence};

use cuda_order_check_engine::Access;
use cuda_order_check_engine::feed::Memory;

use crate::memory::blocks::{Block, Extent};
use crate::memory::word::Word;
use crate::memory::{Keeper, Place};
use crate::order::Feed;

/// A memset or a copy.
#[derive(Clone, Debug)]
pub(crate) enum MemoryWork {
    /// `count` elements of `width` bytes.
    Set {
        to: Place,
        value: u32,
        width: usize,
        count: usize,
    },
    Copy {
        to: Place,
        from: Place,
        bytes: usize,
    },
    /// Apart, so that what every task takes with it stays small.
    SetRows(Box<SetRows>),
    CopyRows(Box<CopyRows>),
}

/// Elements of 1, 2 or 4 bytes in rows.
#[derive(Clone, Debug)]
pub(crate) struct SetRows {
    pub(crate) to: Block,
    pub(crate) value: u32,
    pub(crate) element: usize,
    pub(crate) extent: Extent,
}

/// A copy of rows, and of layers of rows.
#[derive(Clone, Debug)]
pub(crate) struct CopyRows {
    pub(crate) to: Block,
    pub(crate) from: Block,
    pub(crate) extent: Extent,
}

impl MemoryWork {
    /// The destination and the source of a copy.
    pub(crate) fn copied(&self) -> Option<[&Place; 2]> {
        match self {
            Self::Copy { to, from, .. } => Some([to, from]),
            Self::CopyRows(rows) => Some([&rows.to.place, &rows.from.place]),
            Self::Set { .. } | Self::SetRows(_) => None,
        }
    }
}

/// One that is on its way to a queue is moved several times.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<MemoryWork>() <= 72);

/// A byte within memory that the place keeps. The host may write it meanwhile, hence the atomic.
fn load(place: &Place, at: usize) -> u8 {
    // SAFETY: the callers ask for bytes that the work reads or writes. Submission checked those of
    // the driver, the place keeps them, and the others are the program's promise.
    unsafe { AtomicU8::from_ptr(place.pointer().cast::<u8>().add(at)).load(Ordering::Relaxed) }
}

impl MemoryWork {
    /// Whether it changes the few bytes that it writes.
    pub(crate) fn changes(&self) -> bool {
        let (Some(content), Some(to)) = (self.content(), self.places().next()) else { return true };
        let written = content.to_le_bytes();
        (0..self.bytes()).any(|at| Some(&load(to, at)) != written.get(at))
    }

    /// How many bytes it writes, those between rows included.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Set { width, count, .. } => width * count,
            Self::Copy { bytes, .. } => *bytes,
            Self::SetRows(rows) => rows.to.span(rows.extent),
            Self::CopyRows(rows) => rows.to.span(rows.extent),
        }
    }

    /// What it writes, if that is in one piece of at most eight bytes: those that a copy has there
    /// now, in little-endian order.
    pub(crate) fn content(&self) -> Option<u64> {
        let is_word = |bytes: &usize| *bytes <= size_of::<u64>();
        match self {
            Self::Set { value, width, .. } if is_word(&self.bytes()) => {
                let bytes = value.to_le_bytes();
                let at = |at: usize| bytes.get(at % width).copied().unwrap_or_default();
                Some(u64::from_le_bytes(core::array::from_fn(at)))
            }
            Self::Copy { from, bytes, .. } if is_word(bytes) => {
                let at = |at: usize| if at < *bytes { load(from, at) } else { 0 };
                Some(u64::from_le_bytes(core::array::from_fn(at)))
            }
            _ => None,
        }
    }

    /// The word that it writes, if that is all that it writes.
    pub(crate) fn word(&self) -> Option<Word> {
        let (Self::Set { to, .. } | Self::Copy { to, .. }) = self else { return None };
        let bytes = self.bytes();
        let is_word = matches!(bytes, 4 | 8) && to.address.is_multiple_of(bytes);
        is_word.then(|| Word { place: to.clone(), wide: bytes == 8 })
    }

    /// What it reads and writes.
    pub(crate) fn places(&self) -> impl Iterator<Item = &Place> {
        let (to, from) = match self {
            Self::Set { to, .. } => (to, None),
            Self::Copy { to, from, .. } => (to, Some(from)),
            Self::SetRows(rows) => (&rows.to.place, None),
            Self::CopyRows(rows) => (&rows.to.place, Some(&rows.from.place)),
        };
        core::iter::once(to).chain(from)
    }

    pub(crate) fn execute(&self) {
        match self {
            // Streams and programs read the word that such an element is in, as that of a timeline,
            // of which one byte says that it has ended. A card writes an element in one piece.
            Self::Set { to, value, width, count: 1 } => {
                let to = to.pointer();
                // SAFETY: an element of this width within a region that `to` keeps, aligned as
                // submission checked. Who reads it meanwhile does so by atomics.
                unsafe {
                    match width {
                        1 => AtomicU8::from_ptr(to).store(*value as u8, Ordering::Release),
                        2 => {
                            AtomicU16::from_ptr(to.cast()).store(*value as u16, Ordering::Release);
                        }
                        _ => AtomicU32::from_ptr(to.cast()).store(*value, Ordering::Release),
                    }
                }
            }
            Self::Set { to, value: 0, width, count } if to.clear(width * count) => {}
            Self::Set { to, value, width: 1, count } => {
                // SAFETY: `count` bytes within a region that `to` keeps.
                unsafe { to.pointer().write_bytes(*value as u8, *count) };
            }
            Self::Set { to, value, width: 2, count } => {
                // SAFETY: `count` values of 2 bytes within a region that `to` keeps, aligned as
                // submission checked.
                unsafe { core::slice::from_raw_parts_mut(to.pointer().cast::<u16>(), *count) }
                    .fill(*value as u16);
            }
            Self::Set { to, value, count, .. } => {
                // SAFETY: `count` values of 4 bytes within a region that `to` keeps, aligned as
                // submission checked.
                unsafe { core::slice::from_raw_parts_mut(to.pointer().cast::<u32>(), *count) }
                    .fill(*value);
            }
            // Programs read such a word while it changes, as the value of a timeline. A card writes
            // it in one piece.
            Self::Copy { to, from, bytes: 8 } if (to.address | from.address) % 8 == 0 => {
                let [to, from] = [to, from].map(|place| place.pointer().cast());
                // SAFETY: as for the next copy, and both are aligned. `from` may be read-only: a
                // relaxed load of a word may read such memory.
                let (to, from) = unsafe { (AtomicU64::from_ptr(to), AtomicU64::from_ptr(from)) };
                let value = from.load(Ordering::Relaxed);
                fence(Ordering::Acquire);
                to.store(value, Ordering::Release);
            }
            Self::Copy { to, from, bytes } => {
                // SAFETY: device ranges were checked and are kept; host ranges are the program's
                // promise. They may overlap.
                unsafe { core::ptr::copy(from.pointer(), to.pointer(), *bytes) };
            }
            Self::SetRows(rows) => rows.to.set(rows.value, rows.element, rows.extent),
            Self::CopyRows(rows) => rows.to.copy(&rows.from, rows.extent),
        }
    }

    /// What it takes in virtual time: a nanosecond for each KiB.
    pub(crate) fn virtual_ns(&self) -> u64 {
        let bytes = match self {
            Self::Set { width, count, .. } => width * count,
            Self::Copy { bytes, .. } => *bytes,
            Self::SetRows(rows) => rows.extent.bytes(),
            Self::CopyRows(rows) => rows.extent.bytes(),
        };
        (bytes / 1024) as u64
    }
}

/// What the order checker is given of it.
impl MemoryWork {
    /// What a memset or copy accesses. What was copied aside was read before. `content` is what a
    /// copy writes, if that is known.
    pub(crate) fn accesses<R>(&self, content: Option<u64>, give: impl FnOnce(&[Access]) -> R) -> R {
        let aside = |place: &Place| matches!(place.keeper, Keeper::Staged(_));
        match self {
            Self::Set { to, value, width, count } => {
                let set = Access::write(to.address as u64, (width * count) as u64);
                give(&[set.filled(repeated(*value, *width))])
            }
            Self::Copy { to, from, bytes } => {
                let read = if aside(from) { 0 } else { *bytes as u64 };
                let read = Access::read(from.address as u64, read);
                let write = Access::write(to.address as u64, *bytes as u64);
                let filled = content.map(|content| write.clone().filled(content));
                give(&[read, filled.unwrap_or(write)])
            }
            Self::SetRows(set) => {
                let content = repeated(set.value, set.element);
                let rows = set.to.accesses(set.extent, Access::write).into_iter();
                give(&rows.map(|row| row.filled(content)).collect::<Vec<_>>())
            }
            Self::CopyRows(copy) => {
                let mut all = copy.to.accesses(copy.extent, Access::write);
                if !aside(&copy.from.place) {
                    all.extend(copy.from.accesses(copy.extent, Access::read));
                }
                give(&all)
            }
        }
    }

    /// What the small copy from host memory writes: what is there now.
    pub(crate) fn copied_content(&self, feed: &Feed) -> Option<u64> {
        let Self::Copy { from, .. } = self else { return None };
        let host = matches!(from.keeper, Keeper::Staged(_))
            || feed.memory(from.address as u64) == Some(Memory::Host);
        host.then(|| self.content()).flatten()
    }

    /// A memset or a copy begins. The host may see the bytes before it has ended.
    pub(crate) fn begins(&self, feed: &mut Feed, place: u64) {
        feed.written(place, self.changes());
        if let Some(to) = self.places().next() {
            feed.forget_words(to.address as u64, self.bytes() as u64);
        }
    }

    /// The work has ended, so the order checker gets the word that it wrote.
    pub(crate) fn ends(&self, feed: &mut Feed) {
        if let (Some(word), Some(content)) = (self.word(), self.content()) {
            feed.word_written(word.cell(), content);
        }
    }
}

/// Elements of so many bytes, until they are eight.
fn repeated(value: u32, width: usize) -> u64 {
    let bytes = value.to_le_bytes();
    u64::from_le_bytes(core::array::from_fn(|at| bytes[at % width.clamp(1, 4)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: usize) -> Place {
        Place { address, keeper: Keeper::Program }
    }

    /// What a stream may wait for has the bytes of a word, and is where one may be.
    #[test]
    fn a_word_is_all_that_is_written() {
        for (address, bytes, expected) in [
            (0x1000, 4, Some(4)),
            (0x1000, 8, Some(8)),
            (0x1004, 4, Some(4)),
            (0x1004, 8, None),
            (0x1002, 4, None),
            (0x1000, 2, None),
            (0x1000, 16, None),
        ] {
            let set = MemoryWork::Set { to: at(address), value: 0, width: 2, count: bytes / 2 };
            let copy = MemoryWork::Copy { to: at(address), from: at(0x2001), bytes };
            for work in [set, copy] {
                let word = work.word().map(|word| word.cell());
                let found = word.map(|cell| (cell.address, usize::from(cell.bytes)));
                assert_eq!(found, expected.map(|bytes| (address as u64, bytes)), "{work:?}");
            }
        }
    }

    #[test]
    fn a_kib_takes_a_nanosecond() {
        for (bytes, ns) in [(0, 0), (1023, 0), (1024, 1), (4095, 3), (1 << 20, 1024)] {
            let set = MemoryWork::Set { to: at(0), value: 0, width: 1, count: bytes };
            let copy = MemoryWork::Copy { to: at(0), from: at(0), bytes };
            assert_eq!((set.virtual_ns(), copy.virtual_ns()), (ns, ns), "{bytes}");
        }
    }

    /// What was copied aside was read before, whatever the program does there since.
    #[test]
    fn a_copy_from_aside_reads_nothing_of_the_programs() {
        use cuda_order_check_engine::AccessKind;
        let extent = Extent { width: 8, height: 2, depth: 1 };
        for (keeper, count) in [(Keeper::Program, 1), (Keeper::Staged([0; 64][..].into()), 0)] {
            let from = || Place { address: 0x1000, keeper: keeper.clone() };
            let block = |place| Block { place, pitch: 32, slice: 64 };
            let rows = CopyRows { to: block(at(0x2000)), from: block(from()), extent };
            for work in [
                MemoryWork::Copy { to: at(0x2000), from: from(), bytes: 8 },
                MemoryWork::CopyRows(Box::new(rows)),
            ] {
                let reads = work.accesses(None, |all| {
                    let reads = all.iter().filter(|access| access.kind == AccessKind::Read);
                    reads.filter(|read| !read.range.is_empty()).count()
                });
                assert_eq!(reads, count, "{work:?}");
            }
        }
    }

    /// As a memset has it in memory.
    #[test]
    fn a_value_is_repeated_in_its_width() {
        let all = [1, 2, 4].map(|width| repeated(0x8877_6655, width));
        assert_eq!(all, [0x5555_5555_5555_5555, 0x6655_6655_6655_6655, 0x8877_6655_8877_6655]);
        let set = |width, give: fn(&[Access]) -> bool| {
            MemoryWork::Set { to: at(0x1000), value: 0x55, width, count: 4 }.accesses(None, give)
        };
        let is_filled =
            |all: &[Access]| *all == [Access::write(0x1000, 4).filled(0x5555_5555_5555_5555)];
        assert!(set(1, is_filled));
    }

    /// The bytes after the copy change nothing.
    #[test]
    fn a_small_copys_content_is_of_its_bytes() {
        let from: [u8; 9] = core::array::from_fn(|at| at as u8 + 1);
        let place =
            || Place { address: from.as_ptr().expose_provenance(), keeper: Keeper::Program };
        for bytes in 0..=9 {
            let copy = MemoryWork::Copy { to: place(), from: place(), bytes };
            let expected =
                from[..bytes].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
            assert_eq!(copy.content(), (bytes <= 8).then_some(expected), "{bytes}");
        }
    }
}
