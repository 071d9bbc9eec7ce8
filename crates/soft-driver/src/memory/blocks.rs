//! Blocks of memory: rows with a distance between them, and layers of such rows.

use cuda_order_check_engine::{Access, Stride};

use crate::memory::Place;

/// How much of a block is touched: bytes in a row, rows in a layer, layers. None of them is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) depth: usize,
}

impl Extent {
    pub(crate) fn bytes(self) -> usize {
        self.width * self.height * self.depth
    }
}

/// One side of a copy, or what is set.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    /// Where its first byte is.
    pub(crate) place: Place,
    /// From one row to the next.
    pub(crate) pitch: usize,
    /// From one layer to the next.
    pub(crate) slice: usize,
}

impl Block {
    /// The pieces without a gap, as many as follow each other at the same distance together: the
    /// address of the first one, the length of each, their number and their distance.
    pub(crate) fn pieces(&self, extent: Extent) -> Vec<(usize, usize, usize, usize)> {
        let Extent { width, height, depth } = extent;
        if depth == 0 || height == 0 || width == 0 {
            return Vec::new();
        }
        let whole_rows = height == 1 || self.pitch == width;
        let row = if whole_rows { width * height } else { width };
        let layer = |layer| self.place.address + layer * self.slice;
        if whole_rows {
            return vec![(layer(0), row, depth, self.slice)];
        }
        if depth == 1 || self.slice == self.pitch * height {
            return vec![(layer(0), row, height * depth, self.pitch)];
        }
        (0..depth).map(|each| (layer(each), row, height, self.pitch)).collect()
    }

    /// The accesses of a block. Other work may be about what is between its rows.
    pub(crate) fn accesses(&self, extent: Extent, access: fn(u64, u64) -> Access) -> Vec<Access> {
        let pieces = self.pieces(extent).into_iter();
        let alike = |(address, bytes, rows, pitch): (usize, usize, usize, usize)| {
            let (width, pitch) = (bytes as u64, pitch as u64);
            access(address as u64, width).rows(rows as u64, Stride { width, pitch })
        };
        pieces.map(alike).collect()
    }

    /// The bytes from the first one to the last one, those between rows included.
    pub(crate) fn span(&self, extent: Extent) -> usize {
        let end = |(address, bytes, count, distance): (usize, usize, usize, usize)| {
            address - self.place.address + bytes + count.saturating_sub(1) * distance
        };
        self.pieces(extent).into_iter().map(end).max().unwrap_or(0)
    }

    pub(super) fn row(&self, layer: usize, row: usize) -> *mut u8 {
        self.place.pointer().wrapping_add(layer * self.slice + row * self.pitch)
    }

    /// Copies row by row.
    pub(crate) fn copy(&self, from: &Self, extent: Extent) {
        for layer in 0..extent.depth {
            for row in 0..extent.height {
                let (to, from) = (self.row(layer, row), from.row(layer, row));
                // SAFETY: device blocks were checked and are kept; host blocks are the program's
                // promise. Rows may overlap.
                unsafe { core::ptr::copy(from, to, extent.width) };
            }
        }
    }

    /// Sets row by row: elements of 1, 2 or 4 bytes.
    pub(crate) fn set(&self, value: u32, element: usize, extent: Extent) {
        let bytes = value.to_ne_bytes();
        let little = cfg!(target_endian = "little");
        let pattern = if little { &bytes[..element] } else { &bytes[4 - element..] };
        for layer in 0..extent.depth {
            for row in 0..extent.height {
                let start = self.row(layer, row);
                // SAFETY: a row of a block that was checked and is kept.
                let row = unsafe { core::slice::from_raw_parts_mut(start, extent.width) };
                row.chunks_exact_mut(element).for_each(|one| one.copy_from_slice(pattern));
            }
        }
    }
}
