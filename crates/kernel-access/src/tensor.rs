//! Tensor maps: 128 bytes that say where a tensor is, and what a copy of a part of it does.
//!
//! Their layout is not documented. What is read of it here is where `ptxas` puts what the PTX
//! instruction `tensormap.replace` sets, on all architectures that have it. A copy begins at the element
//! of its coordinates, which have signs, and has as many along each axis as the box of the map.

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

struct Axis {
    count: i128,
    stride: i128,
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

    /// The axes of the tensor: how many elements each has, and the bytes between them.
    fn axes(&self) -> Option<Vec<Axis>> {
        let kind = self.word(8)?;
        let is_interleaved = kind >> 11 & 3 != 0;
        let rank = (kind >> 4 & 7) + 1;
        let element = *ELEMENTS.get(kind as usize >> 7 & 15)?;
        if is_interleaved || rank > 5 {
            return None;
        }
        let high = self.word(0x1c)?;
        let axis = |axis: u32| {
            let stride = match axis.checked_sub(1) {
                None => element,
                Some(at) => {
                    let low = self.word(0xc + 4 * at)?;
                    (i128::from(high >> (4 * at) & 15) << 32 | i128::from(low)) << 4
                }
            };
            Some(Axis { count: i128::from(self.word(0x20 + 4 * axis)?) + 1, stride })
        };
        (0..rank).map(axis).collect()
    }

    /// Of a copy how many elements along an axis it has at most, and whether it has each of them.
    fn box_of(&self, axis: u32) -> Option<(i128, bool)> {
        let bytes = self.launch.parameter(self.at + 0x34, 8)? as u64;
        let count = bytes >> (24 + 8 * axis) & 0xff;
        Some((i128::from(count) + 1, bytes >> (3 * axis) & 7 == 0))
    }

    /// Where the tensor is. What a copy's box has outside of it is neither read nor written.
    pub(crate) fn tensor(&self) -> Option<Tensor> {
        let axes = self.axes()?;
        let all: Vec<_> = axes.iter().map(|axis| (0, axis.count - 1)).collect();
        self.part(&axes, &all)
    }

    /// The part of the tensor where tiles are that begin between these coordinates. `None` if it is not known, or
    /// if there is none.
    pub(crate) fn tiles(&self, begins: &[(i128, i128)]) -> Option<Tensor> {
        let axes = self.axes()?;
        self.part(&axes, &self.elements(&axes, begins)?)
    }

    /// The elements along each axis of boxes that begin there.
    fn elements(&self, axes: &[Axis], begins: &[(i128, i128)]) -> Option<Vec<(i128, i128)>> {
        if axes.len() != begins.len() {
            return None;
        }
        let all = axes.iter().zip(begins).zip(0..).map(|((axis, &(low, high)), at)| {
            let (count, _) = self.box_of(at)?;
            let (low, high) = (low.max(0), high.checked_add(count - 1)?.min(axis.count - 1));
            (low <= high).then_some((low, high))
        });
        all.collect()
    }

    fn part(&self, axes: &[Axis], all: &[(i128, i128)]) -> Option<Tensor> {
        let mut first = self.launch.parameter(self.at, 8)? as i128;
        let (&(low, high), axis) = (all.first()?, axes.first()?);
        let width = (high - low + 1) * axis.stride - 1;
        let mut last = width;
        for (axis, &(low, high)) in axes.iter().zip(all) {
            first += low.checked_mul(axis.stride)?;
            last += (high - low).checked_mul(axis.stride)?;
        }
        last += first - (high - low) * axis.stride;
        let mut gaps = Vec::new();
        if let Some(row) = axes.get(1) {
            let pitch = row.stride;
            let mut others = axes.iter().skip(2);
            let are_rows = pitch > 0 && others.all(|axis| axis.stride % pitch == 0);
            if are_rows && width + 1 < pitch {
                gaps.push(Gaps { first, width, pitch });
            }
        }
        Some(Tensor { first, last, gaps })
    }

    /// The bytes of the tile that begins at these coordinates, in rows: what a copy of it copies of the tensor.
    /// `None` if that is not known.
    pub(crate) fn tile(&self, begin: &[i128]) -> Option<Vec<(u64, u32)>> {
        /// How many rows are given of a tile; of a larger one it is none.
        const ROWS: i128 = 1 << 10;
        let axes = self.axes()?;
        let begins: Vec<_> = begin.iter().map(|&at| (at, at)).collect();
        let elements = self.elements(&axes, &begins)?;
        let is_whole = |at| self.box_of(at).is_some_and(|(_, each)| each);
        let rows = elements.iter().skip(1).map(|(low, high)| high - low + 1).product::<i128>();
        if !(0..axes.len() as u32).all(is_whole) || rows > ROWS {
            return None;
        }
        let base = self.launch.parameter(self.at, 8)? as i128;
        let (&(low, high), inner) = (elements.first()?, axes.first()?);
        let width = u32::try_from((high - low + 1) * inner.stride).ok()?;
        let mut rows = vec![base + low * inner.stride];
        for (axis, &(low, high)) in axes.iter().zip(&elements).skip(1) {
            let next =
                (low..=high).flat_map(|at| rows.iter().map(move |row| row + at * axis.stride));
            rows = next.collect();
        }
        rows.into_iter().map(|row| Some((u64::try_from(row).ok()?, width))).collect()
    }
}
