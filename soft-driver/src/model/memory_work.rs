//! What is done with memory in streams: it is set, or copied.

use std::sync::Arc;

use crate::model::blocks::{Block, Extent};
use crate::model::memory::{Place, Region};

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
    /// Elements of 1, 2 or 4 bytes in rows.
    SetRows {
        to: Block,
        value: u32,
        element: usize,
        extent: Extent,
    },
    CopyRows {
        to: Block,
        from: Block,
        extent: Extent,
    },
}

impl MemoryWork {
    /// Whether it reads or writes a piece of memory.
    pub(crate) fn uses(&self, region: &Arc<Region>) -> bool {
        match self {
            Self::Set { to, .. } => to.is_in(region),
            Self::Copy { to, from, .. } => to.is_in(region) || from.is_in(region),
            Self::SetRows { to, .. } => to.is_in(region),
            Self::CopyRows { to, from, .. } => to.is_in(region) || from.is_in(region),
        }
    }

    /// Whether it is about one piece without gaps.
    pub(crate) fn is_one_row(&self) -> bool {
        match self {
            Self::Set { .. } | Self::Copy { .. } => true,
            Self::SetRows { extent, .. } | Self::CopyRows { extent, .. } => {
                extent.height == 1 && extent.depth == 1
            }
        }
    }

    /// Whether both are about the same rows of the same places, so that values alone differ.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::SetRows { to, extent, element, .. },
                Self::SetRows { to: other, extent: of, element: with, .. },
            ) => (extent, element) == (of, with) && to.is_at(other),
            (
                Self::CopyRows { to, from, extent },
                Self::CopyRows { to: at, from: of, extent: with },
            ) => extent == with && to.is_at(at) && from.is_at(of),
            _ => false,
        }
    }

    pub(crate) fn is_copy(&self) -> bool {
        matches!(self, Self::Copy { .. } | Self::CopyRows { .. })
    }

    pub(crate) fn execute(&self) {
        match self {
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
            Self::Copy { to, from, bytes } => {
                // SAFETY: device ranges were checked and are kept; host ranges are the program's
                // promise. They may overlap.
                unsafe { core::ptr::copy(from.pointer(), to.pointer(), *bytes) };
            }
            Self::SetRows { to, value, element, extent } => to.set(*value, *element, *extent),
            Self::CopyRows { to, from, extent } => to.copy(from, *extent),
        }
    }

    /// What it takes in virtual time: a nanosecond for each KiB.
    pub(crate) fn virtual_ns(&self) -> u64 {
        let bytes = match self {
            Self::Set { width, count, .. } => width * count,
            Self::Copy { bytes, .. } => *bytes,
            Self::SetRows { extent, .. } | Self::CopyRows { extent, .. } => extent.bytes(),
        };
        (bytes / 1024) as u64
    }
}
