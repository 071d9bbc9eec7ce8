//! For cuda.core (its graph definitions), cudarc and FFmpeg: comparisons of memory work, the pieces
//! that it is about, and copies of rows that are there now.

use std::sync::Arc;

use crate::memory::blocks::{Block, Extent};
use crate::memory::work::MemoryWork;
use crate::memory::{Keeper, Place};

impl MemoryWork {
    /// Whether it is about one piece without gaps.
    pub(crate) fn is_one_row(&self) -> bool {
        match self {
            Self::Set { .. } | Self::Copy { .. } => true,
            Self::SetRows(rows) => rows.extent.is_one_row(),
            Self::CopyRows(rows) => rows.extent.is_one_row(),
        }
    }

    /// Whether both are about the same rows of the same places, so that values alone differ.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::SetRows(one), Self::SetRows(other)) => {
                (one.extent, one.element) == (other.extent, other.element)
                    && one.to.is_at(&other.to)
            }
            (Self::CopyRows(one), Self::CopyRows(other)) => {
                one.extent == other.extent && one.to.is_at(&other.to) && one.from.is_at(&other.from)
            }
            _ => false,
        }
    }

    pub(crate) fn is_copy(&self) -> bool {
        matches!(self, Self::Copy { .. } | Self::CopyRows(_))
    }
}

impl Extent {
    pub(crate) fn is_one_row(self) -> bool {
        self.height == 1 && self.depth == 1
    }
}

impl Block {
    /// Whether both have their rows at the same places.
    pub(crate) fn is_at(&self, other: &Self) -> bool {
        let places = |block: &Self| (block.place.address, block.pitch, block.slice);
        places(self) == places(other)
    }

    /// A copy of what is there now, without gaps.
    pub(crate) fn staged(&self, extent: Extent) -> Self {
        let mut bytes = Vec::with_capacity(extent.bytes());
        for layer in 0..extent.depth {
            for row in 0..extent.height {
                // SAFETY: the program promises the rows of its block.
                let row =
                    unsafe { core::slice::from_raw_parts(self.row(layer, row), extent.width) };
                bytes.extend_from_slice(row);
            }
        }
        let copy: Arc<[u8]> = bytes.into();
        Self {
            place: Place {
                address: copy.as_ptr().expose_provenance(),
                keeper: Keeper::Staged(copy),
            },
            pitch: extent.width,
            slice: extent.width * extent.height,
        }
    }
}
