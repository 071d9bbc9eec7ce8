//! Accesses to memory, and the launches that may make them.

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

/// The kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AccessKind {
    /// Reads the bytes.
    Read,
    /// Writes the bytes.
    Write,
    /// Reads one value that others may write at the same time as one value.
    AtomicRead,
    /// Writes the bytes as one value.
    AtomicWrite,
    /// Makes a stream wait until the bytes have a value. The stream checks repeatedly, so it does
    /// not race with writes: a copy or a memset may end the wait, as a write of a value may.
    Wait,
    /// Makes the bytes memory of this program. Earlier accesses are forgotten.
    Allocate,
    /// Forgets earlier accesses, and is none itself: the bytes may be other memory by now, of which
    /// no call tells.
    Forget,
    /// Ends the memory. Nothing may access it before the next [`Allocate`](Self::Allocate).
    Free,
}

impl AccessKind {
    /// Whether two accesses need an order between them.
    pub(crate) fn conflicts(self, other: Self) -> bool {
        use AccessKind::{Allocate, AtomicRead, AtomicWrite, Free, Read, Wait};
        !matches!(
            (self, other),
            (Read | AtomicRead, Read | AtomicRead)
                | (AtomicWrite, AtomicRead | AtomicWrite)
                | (AtomicRead, AtomicWrite)
        ) && ![self, other].contains(&Wait)
            || [self, other].iter().any(|kind| matches!(kind, Allocate | Free))
    }

    /// Whether everything that conflicts with `earlier` conflicts with this one, which is after it,
    /// as well. Then `earlier` need not be kept. (A wait for a value would have to be after an
    /// allocation, and not after the writes that stand for it.)
    pub(crate) fn replaces(self, earlier: Self) -> bool {
        use AccessKind::{Allocate, AtomicRead, AtomicWrite, Forget, Free, Read, Wait, Write};
        match self {
            Write | Allocate | Forget | Free => true,
            Read => matches!(earlier, Read | AtomicRead | Wait),
            AtomicWrite => matches!(earlier, AtomicWrite | AtomicRead | Wait),
            AtomicRead => matches!(earlier, AtomicRead | Wait),
            Wait => earlier == Wait,
        }
    }

    pub(crate) fn verb(self) -> &'static str {
        match self {
            Self::Read | Self::AtomicRead | Self::Wait => "reads",
            Self::Write | Self::AtomicWrite => "writes",
            Self::Allocate | Self::Forget => "allocates",
            Self::Free => "frees",
        }
    }
}

/// A kernel's launch, of which more can be found out than the addresses among its parameters: what the
/// kernel does there. An access of it ([`Access::of_launch`]) is one that it may make.
///
/// Findings about such an access are candidates. Nothing is forgotten because of them: two launches
/// at the same bytes are both kept, and the next candidate of the same two places comes as well, until
/// the first is [confirmed](crate::feed::CallFeed::confirm).
pub trait Launch: Any + fmt::Debug + Send + Sync + UnwindSafe + RefUnwindSafe {
    /// Two launches with the same number access the same bytes in the same ways.
    fn number(&self) -> u64;

    /// The kernel's name, for reports whose call does not have it: those of a graph's node.
    fn kernel(&self) -> Option<String> {
        None
    }

    /// Whether it is known by now that the launch and the other operation need no order. It must
    /// answer at once: what takes longer is done when a candidate is looked at.
    fn is_apart(&self, _shared: &[Range<u64>], _other: &Other<'_>) -> bool {
        false
    }

    /// Whether the launch, which has addresses in these allocations, may meet another operation that is
    /// anywhere in them, and that is not ordered with it. If so, there is a candidate
    /// ([`Report::is_nearby`](crate::Report::is_nearby)), each time, also after one of the same two places
    /// was confirmed. It is asked often, and must answer at once.
    fn is_near(&self, _allocations: &[Range<u64>], _other: &Other<'_>) -> bool {
        false
    }
}

/// The operation that a launch meets.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Other<'a> {
    /// In which way it accesses the bytes.
    pub kind: AccessKind,
    /// All that it accesses in this way. Empty for a launch.
    pub accesses: &'a [Access],
    /// The launch, if it is one.
    pub launch: Option<&'a Launched>,
}

/// A launch that an access belongs to.
#[derive(Clone, Debug)]
pub struct Launched {
    pub(crate) number: u64,
    pub(crate) launch: Arc<dyn Launch>,
}

impl Launched {
    /// The launch is asked for its number now, and once.
    #[must_use]
    pub fn new(launch: Arc<dyn Launch>) -> Self {
        Self { number: launch.number(), launch }
    }

    /// The launch, if it is of this type.
    #[must_use]
    pub fn get<T: Launch>(&self) -> Option<&T> {
        let launch: &dyn Any = &*self.launch;
        launch.downcast_ref()
    }
}

/// Two are equal if they are of the same launch.
impl PartialEq for Launched {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.launch, &other.launch)
    }
}

impl Eq for Launched {}

/// Bytes that an operation accesses. Host memory and the memory of all devices are one address
/// space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The kind of the access.
    pub kind: AccessKind,
    /// The addresses, without the last one. An empty range accesses nothing. So the byte at the
    /// highest address, `u64::MAX`, is part of no access.
    pub range: Range<u64>,
    /// If the access is of rows with gaps between them: their size. The range begins where the
    /// first row begins, and ends where the last row ends.
    pub(crate) stride: Option<Stride>,
    /// Eight bytes that a write repeats from its begin on, or from the begin of each row.
    pub(crate) content: Option<u64>,
    /// The launch that may make it. Of the accesses of an operation the first of each kind has it.
    pub(crate) launch: Option<Launched>,
}

/// The size of rows that have gaps between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stride {
    /// The bytes of a row.
    pub width: u64,
    /// The bytes from the begin of a row to the begin of the next one; more than the width.
    pub pitch: u64,
}

impl Access {
    /// Accesses `len` bytes.
    #[inline]
    #[must_use]
    pub fn new(kind: AccessKind, address: u64, len: u64) -> Self {
        let range = address..address.saturating_add(len);
        Self { kind, range, stride: None, content: None, launch: None }
    }

    /// Accesses rows of this size. The first row begins where the range of `self` begins. A row of
    /// zero bytes accesses nothing; rows without gaps are one range.
    #[must_use]
    pub fn rows(self, rows: u64, stride: Stride) -> Self {
        let Stride { width, pitch } = stride;
        let start = self.range.start;
        let all = rows.checked_sub(1).and_then(|more| more.checked_mul(pitch)?.checked_add(width));
        let end = match all.filter(|_| width > 0) {
            Some(bytes) => start.checked_add(bytes),
            None if rows == 0 || width == 0 => Some(start),
            None => None,
        };
        // Nobody has so many bytes.
        let strided = end.is_some() && rows > 1 && width > 0 && pitch > width;
        let range = start..end.unwrap_or(u64::MAX);
        Self { range, stride: strided.then_some(stride), ..self }
    }

    /// Sets the written bytes: these eight, in little-endian order, repeated from the begin of the
    /// range, or of each row, to its end.
    ///
    /// Set them for a memset, and for a copy of at most eight bytes. The checker uses them if a
    /// stream waits for a value among the bytes.
    #[must_use]
    pub fn filled(self, content: u64) -> Self {
        Self { content: Some(content), ..self }
    }

    /// A launch may make the access. The first access of each kind that the launch has needs this.
    #[must_use]
    pub fn of_launch(mut self, launch: Launched) -> Self {
        self.set_launch(launch);
        self
    }

    /// The same of an access that is in its place already.
    pub fn set_launch(&mut self, launch: Launched) {
        self.launch = Some(launch);
    }

    /// The launch that may make it.
    #[must_use]
    pub fn launch(&self) -> Option<&Launched> {
        self.launch.as_ref()
    }

    /// The value that it writes to these bytes, if it is known. They are at most eight.
    pub(crate) fn content(&self, bytes: &Range<u64>) -> Option<u64> {
        let content = self.content?;
        let mut start = bytes.start.checked_sub(self.range.start)?;
        let len = bytes.end.checked_sub(bytes.start)?;
        let mut all = self.range.end.checked_sub(self.range.start)?;
        if let Some(Stride { width, pitch }) = self.stride {
            start %= pitch;
            all = width;
        }
        let within = start.checked_add(len)? <= all;
        within.then(|| content.rotate_right(8 * (start % 8) as u32))
    }

    /// The size of the rows, if there are gaps between them.
    #[must_use]
    pub fn stride(&self) -> Option<Stride> {
        self.stride
    }

    /// Whether it touches some of these bytes.
    #[must_use]
    pub fn touches(&self, bytes: &Range<u64>) -> bool {
        let within = bytes.start.max(self.range.start)..bytes.end.min(self.range.end);
        match self.stride {
            None => !within.is_empty(),
            Some(_) if within.is_empty() => false,
            Some(Stride { width, pitch }) => {
                let column = (within.start - self.range.start) % pitch;
                column < width || within.end - within.start > pitch - column
            }
        }
    }

    /// Its rows, or all of it.
    pub fn each_row(&self) -> impl Iterator<Item = Range<u64>> {
        let Range { start, end } = self.range;
        let (width, pitch) = match self.stride {
            Some(Stride { width, pitch }) => (width, pitch),
            None => (end - start, u64::MAX),
        };
        let next = move |at: &u64| at.checked_add(pitch).filter(|at| *at < end);
        let first = (start < end).then_some(start);
        std::iter::successors(first, next).map(move |at| at..at.saturating_add(width).min(end))
    }

    /// Reads `len` bytes.
    #[inline]
    #[must_use]
    pub fn read(address: u64, len: u64) -> Self {
        Self::new(AccessKind::Read, address, len)
    }

    /// Writes `len` bytes.
    #[must_use]
    pub fn write(address: u64, len: u64) -> Self {
        Self::new(AccessKind::Write, address, len)
    }

    /// Allocates `len` bytes.
    #[must_use]
    pub fn allocate(address: u64, len: u64) -> Self {
        Self::new(AccessKind::Allocate, address, len)
    }

    /// Frees `len` bytes.
    #[must_use]
    pub fn free(address: u64, len: u64) -> Self {
        Self::new(AccessKind::Free, address, len)
    }
}

#[cfg(test)]
mod tests {
    use super::{Access, Stride};

    #[test]
    fn a_part_has_its_share_of_the_content() {
        let set = Access::write(0x10, 0x20).filled(0x0807_0605_0403_0201);
        assert_eq!(set.content(&(0x10..0x18)), Some(0x0807_0605_0403_0201));
        assert_eq!(set.content(&(0x14..0x18)).map(|four| four as u32), Some(0x0807_0605));
        assert_eq!(set.content(&(0x2C..0x30)).map(|four| four as u32), Some(0x0807_0605));
        assert_eq!(set.content(&(0x2C..0x34)).or(set.content(&(0xC..0x14))), None);
        assert_eq!(Access::write(0x10, 0x20).content(&(0x10..0x18)), None);
        let rows = set.rows(4, Stride { width: 12, pitch: 20 });
        assert_eq!(rows.content(&(0x24..0x28)).map(|four| four as u32), Some(0x0403_0201));
        assert_eq!(rows.content(&(0x2C..0x30)).map(|four| four as u32), Some(0x0403_0201));
        assert_eq!(rows.content(&(0x18..0x20)), None);
    }
}
