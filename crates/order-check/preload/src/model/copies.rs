//! Copies and memsets.

use core::ffi::c_uint;

use cuda_order_check_engine::{Access, Stride};

use crate::call::{Address, Handle};

/// What the function's name says about a side of a copy.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Device,
    Host,
    Any,
    /// An array, which is no memory that has an address.
    Array,
}

/// Where a copy reads or writes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Device,
    Pinned,
    /// Memory of the host from a pool or a map. The host may have no access yet, so it is never
    /// looked at.
    Mapped,
    Managed,
    /// Ordinary memory of the program.
    Pageable,
}

impl Place {
    pub(crate) fn is_on_host(self) -> bool {
        matches!(self, Self::Pinned | Self::Mapped | Self::Pageable)
    }
}

/// One side of a copy.
#[derive(Clone, Copy)]
pub(crate) struct Block {
    pub(crate) side: Side,
    pub(crate) address: Address,
    pub(crate) pitch: usize,
    pub(crate) slice: usize,
}

impl Block {
    pub(crate) fn at(side: Side, address: Address) -> Self {
        Self { side, address, pitch: 0, slice: 0 }
    }

    pub(crate) fn device(address: Address) -> Self {
        Self::at(Side::Device, address)
    }

    pub(crate) fn host(address: Address) -> Self {
        Self::at(Side::Host, address)
    }

    pub(crate) fn array() -> Self {
        Self::at(Side::Array, 0)
    }

    /// The function's name does not say where it is.
    pub(crate) fn any(address: Address) -> Self {
        Self::at(Side::Any, address)
    }

    pub(crate) fn rows(address: Address, pitch: usize) -> Self {
        Self { pitch, ..Self::device(address) }
    }
}

/// The bytes of a row, the rows of a layer, and the layers.
pub(crate) type Extent = [usize; 3];

/// The accesses of a block.
pub(crate) fn accesses(
    block: Block,
    extent: Extent,
    access: fn(u64, u64) -> Access,
) -> Vec<Access> {
    if block.side == Side::Array {
        return Vec::new();
    }
    let [width, height, depth] = extent.map(|it| it as u64);
    let (pitch, slice) = (block.pitch as u64, block.slice as u64);
    let layer = |layer: u64| {
        let address = block.address.wrapping_add(layer.wrapping_mul(slice));
        access(address, width).rows(height, Stride { width, pitch: pitch.max(width) })
    };
    (0..depth).map(layer).collect()
}

/// What a copy accesses, in the order of the driver's own checker, as reports name the nearest
/// access.
pub(crate) fn both([to, from]: [Block; 2], extent: Extent, rows: bool) -> Vec<Access> {
    let (writes, reads) =
        (accesses(to, extent, Access::write), accesses(from, extent, Access::read));
    match rows {
        false => reads.into_iter().chain(writes).collect(),
        true => writes.into_iter().chain(reads).collect(),
    }
}

/// What a copy node accesses.
pub(crate) fn copied_rows(copy: &Copy3D) -> Vec<Access> {
    both([copy.to.block(), copy.from.block()], copy.extent, true)
}

/// What a memset writes.
pub(crate) fn set_rows(to: Block, extent: Extent, (value, element): (u32, usize)) -> Vec<Access> {
    let content = repeated(value, element);
    accesses(to, extent, Access::write).into_iter().map(|write| write.filled(content)).collect()
}

/// A side of `CUDA_MEMCPY2D`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Side2D {
    pub(crate) x: usize,
    pub(crate) y: usize,
    pub(crate) kind: u32,
    pub(crate) host: Handle,
    pub(crate) device: Address,
    pub(crate) array: Handle,
    pub(crate) pitch: usize,
}

/// `CUDA_MEMCPY2D`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Copy2D {
    pub(crate) from: Side2D,
    pub(crate) to: Side2D,
    pub(crate) width: usize,
    pub(crate) height: usize,
}

/// A side of `CUDA_MEMCPY3D`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Side3D {
    pub(crate) x: usize,
    pub(crate) y: usize,
    pub(crate) z: usize,
    pub(crate) lod: usize,
    pub(crate) kind: u32,
    pub(crate) host: Handle,
    pub(crate) device: Address,
    pub(crate) array: Handle,
    /// Only copies between contexts have it.
    pub(crate) context: Handle,
    pub(crate) pitch: usize,
    pub(crate) height: usize,
}

/// `CUDA_MEMCPY3D`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Copy3D {
    pub(crate) from: Side3D,
    pub(crate) to: Side3D,
    pub(crate) extent: Extent,
}

impl From<Copy2D> for Copy3D {
    fn from(copy: Copy2D) -> Self {
        let side = |Side2D { x, y, kind, host, device, array, pitch }: Side2D| Side3D {
            x,
            y,
            kind,
            host,
            device,
            array,
            pitch,
            ..Side3D::default()
        };
        Self { from: side(copy.from), to: side(copy.to), extent: [copy.width, copy.height, 1] }
    }
}

impl Side3D {
    /// Where it is; nowhere for an array.
    pub(crate) fn block(&self) -> Block {
        let (side, address) = match self.kind {
            1 => (Side::Host, self.host as u64),
            2 => (Side::Device, self.device),
            4 => (Side::Any, self.device),
            _ => return Block::array(),
        };
        let slice = self.pitch * self.height;
        let address = address + (self.x + self.y * self.pitch + self.z * slice) as u64;
        Block { side, address, pitch: self.pitch, slice }
    }
}

/// `CUmemcpy3DOperand`: an address, the elements of a row and the rows of a layer, or an array.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Operand {
    pub(crate) kind: c_uint,
    pub(crate) of: [usize; 4],
}

/// `CUDA_MEMCPY3D_BATCH_OP`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct BatchCopy {
    pub(crate) from: Operand,
    pub(crate) to: Operand,
    /// In elements.
    pub(crate) extent: Extent,
    /// When the source is read, and flags.
    pub(crate) settings: [c_uint; 2],
}

/// When a copy reads its source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Reads {
    #[default]
    InStream,
    /// It has read it when the call returns, and does not wait for the stream.
    DuringCall,
    /// Until the copy is over, also before the stream comes to it.
    AnyTime,
}

impl Reads {
    /// As `CUmemcpySrcAccessOrder` has them. The driver refuses others.
    pub(crate) fn new(order: c_uint) -> Self {
        match order {
            2 => Self::DuringCall,
            3 => Self::AnyTime,
            _ => Self::InStream,
        }
    }
}

/// `CUmemcpyAttributes`: the order, and hints.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Attributes {
    pub(crate) order: c_uint,
    hints: [c_uint; 5],
}

/// The attributes of a batch: each counts from the copy with its index on.
#[derive(Clone, Copy)]
pub(crate) struct OfBatch {
    pub(crate) all: *const Attributes,
    pub(crate) first: *const usize,
    pub(crate) count: usize,
}

impl OfBatch {
    /// When the copy at this place reads.
    ///
    /// # Safety
    ///
    /// NULL, or lists of so many.
    pub(crate) unsafe fn reads(&self, at: usize) -> Reads {
        let count = if self.all.is_null() || self.first.is_null() { 0 } else { self.count };
        // SAFETY: the caller's lists.
        let begins = |of: &usize| unsafe { self.first.add(*of).read() } <= at;
        let last = (0..count).take_while(begins).last();
        // SAFETY: as above.
        last.map(|of| Reads::new(unsafe { self.all.add(of).read() }.order)).unwrap_or_default()
    }
}

/// `CUDA_ARRAY3D_DESCRIPTOR`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Array {
    pub(crate) sizes: [usize; 3],
    pub(crate) format: c_uint,
    pub(crate) channels: c_uint,
    pub(crate) flags: c_uint,
}

impl Array {
    /// The bytes of an element, of the formats that do not compress.
    pub(crate) fn element(&self) -> Option<usize> {
        let channel = match self.format {
            1 | 8 => 1,
            2 | 9 | 0x10 => 2,
            3 | 0xa | 0x20 => 4,
            _ => return None,
        };
        Some(channel * self.channels as usize)
    }
}

impl Operand {
    pub(crate) fn array(&self) -> Option<Handle> {
        (self.kind == 2).then_some(self.of[0])
    }

    pub(crate) fn block(&self, element: usize, [width, height, _]: Extent) -> Block {
        let [address, row, layer, _] = self.of;
        if self.array().is_some() {
            return Block::array();
        }
        let pitch = element.saturating_mul(if row == 0 { width } else { row });
        let slice = pitch.saturating_mul(if layer == 0 { height } else { layer });
        Block { pitch, slice, ..Block::any(address as Address) }
    }
}

/// A value of so many bytes, until it has eight.
pub(crate) fn repeated(value: u32, width: usize) -> u64 {
    let bytes = value.to_le_bytes();
    u64::from_le_bytes(core::array::from_fn(|at| {
        bytes.get(at % width.clamp(1, 4)).copied().unwrap_or_default()
    }))
}

const _: () = assert!(size_of::<Copy2D>() == 128 && size_of::<Copy3D>() == 200);

const _: () = assert!(size_of::<Attributes>() == 24);
const _: () = assert!(size_of::<Operand>() == 40 && size_of::<BatchCopy>() == 112);

#[cfg(test)]
mod tests {
    use super::*;

    /// As a memset has it in memory.
    #[test]
    fn a_value_is_repeated_in_its_width() {
        let all = [1, 2, 4].map(|width| repeated(0x8877_6655, width));
        assert_eq!(all, [0x5555_5555_5555_5555, 0x6655_6655_6655_6655, 0x8877_6655_8877_6655]);
    }
}
