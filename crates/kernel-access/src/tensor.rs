//! Tensor maps: 128 bytes that say where a tensor is, and what a copy of a part of it does.
//!
//! Their layout is not documented. What is read of it here is where `ptxas` puts what the PTX
//! instruction `tensormap.replace` sets, on all architectures that have it.

use crate::code::Launch;
use crate::symbols::Gaps;

/// The bytes of a map.
pub(crate) const MAP: u32 = 128;

/// The bytes of an element, by its type: whole numbers and floats, as `cuTensorMapEncodeTiled` writes
/// them too (an H200, all types of CUDA 12). Of the others, which are packed, it is not known.
const ELEMENTS: [i128; 11] = [1, 2, 4, 4, 8, 8, 2, 4, 4, 8, 2];

/// Where a tensor's elements are.
pub(crate) struct Tensor {
    /// The first byte and the last.
    pub(crate) first: i128,
    pub(crate) last: i128,
    /// What its rows leave out between them.
    pub(crate) gaps: Vec<Gaps>,
}

/// A map among the parameters of a launch.
pub(crate) struct Map<'a> {
    launch: &'a Launch,
    at: u32,
}

impl<'a> Map<'a> {
    /// The map that begins there, if all of it is known.
    pub(crate) fn new(launch: &'a Launch, at: u32) -> Option<Self> {
        launch.parameter(at.checked_add(MAP - 16)?, 16)?;
        Some(Self { launch, at })
    }

    fn word(&self, offset: u32) -> Option<u32> {
        self.launch.parameter(self.at + offset, 4).map(|number| number as u32)
    }

    /// Where the tensor is. What a copy's box has outside of it is neither read nor written.
    pub(crate) fn tensor(&self) -> Option<Tensor> {
        let first = self.launch.parameter(self.at, 8)? as i128;
        let kind = self.word(8)?;
        let is_interleaved = kind >> 11 & 3 != 0;
        let rank = (kind >> 4 & 7) + 1;
        let element = *ELEMENTS.get(kind as usize >> 7 & 15)?;
        if is_interleaved || rank > 5 {
            return None;
        }
        // The number of elements along an axis less one, and the bytes between them.
        let most = |axis: u32| self.word(0x20 + 4 * axis).map(i128::from);
        let stride = |axis: u32| {
            let (low, high) = (self.word(0xc + 4 * (axis - 1))?, self.word(0x1c)?);
            Some((i128::from(high >> (4 * (axis - 1)) & 15) << 32 | i128::from(low)) << 4)
        };
        let width = most(0)? * element + element - 1;
        let mut last = first + width;
        let mut gaps = Vec::new();
        for axis in 1..rank {
            last += most(axis)?.checked_mul(stride(axis)?)?;
        }
        if rank > 1 {
            let pitch = stride(1)?;
            let mut others = (2..rank).map(stride);
            let are_rows = pitch > 0 && others.all(|of| of.is_some_and(|of| of % pitch == 0));
            if are_rows && width + 1 < pitch {
                gaps.push(Gaps { first, width, pitch });
            }
        }
        Some(Tensor { first, last, gaps })
    }
}
