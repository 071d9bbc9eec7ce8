//! The two sides of a copy, its extent, and the accesses of both.

use core::ffi::c_void;

use cuda_events::sys::CUdeviceptr;
use cuda_events::sys::more::{
    CUDA_ARRAY3D_DESCRIPTOR, CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER, CUarray_format,
    CUmemcpy3DOperand, CUmemcpy3DOperand_ptr_u, CUmemcpy3DOperandType, CUmemcpyAttributes,
    CUmemcpySrcAccessOrder, CUmemorytype,
};
use cuda_order_check_engine::{Access, Stride};

use crate::call::{Address, Handle};

/// A side of a copy, as far as the function's name says where it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Device,
    Host,
    Any,
    /// An array, which is no memory that has an address.
    Array,
}

/// Where the memory is that a copy reads or writes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Location {
    Device,
    Pinned,
    /// Memory of the host from a pool or a map. The host may have no access yet, so it is never
    /// looked at.
    Mapped,
    Managed,
    /// Ordinary memory of the program.
    Pageable,
}

impl Location {
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

/// A copy of a block of bytes to another one.
#[derive(Clone, Copy)]
pub(crate) struct Transfer {
    /// Where to, and where from.
    pub(crate) blocks: [Block; 2],
    pub(crate) extent: Extent,
    pub(crate) reads: Reads,
    /// Which of its accesses the driver's own checker looks at first: reports name the nearest one.
    pub(crate) writes_first: bool,
}

impl Transfer {
    pub(crate) fn of_bytes(blocks: [Block; 2], extent: Extent) -> Self {
        Self { blocks, extent, reads: Reads::InStream, writes_first: false }
    }

    pub(crate) fn of_rows(blocks: [Block; 2], extent: Extent) -> Self {
        Self { writes_first: true, ..Self::of_bytes(blocks, extent) }
    }

    pub(crate) fn accesses(&self) -> Vec<Access> {
        let [to, from] = self.blocks;
        let writes = accesses(to, self.extent, Access::write);
        let reads = accesses(from, self.extent, Access::read);
        match self.writes_first {
            false => reads.into_iter().chain(writes).collect(),
            true => writes.into_iter().chain(reads).collect(),
        }
    }
}

/// The accesses of a copy node.
pub(crate) fn copied_rows(copy: &Rows) -> Vec<Access> {
    Transfer::of_rows(copy.blocks, copy.extent).accesses()
}

/// The writes of a memset.
pub(crate) fn set_rows(to: Block, extent: Extent, (value, element): (u32, usize)) -> Vec<Access> {
    let content = repeated(value, element);
    accesses(to, extent, Access::write).into_iter().map(|write| write.filled(content)).collect()
}

/// A copy of rows: where to and where from, and the contexts of the two, which only copies between
/// contexts have.
#[derive(Clone, Copy)]
pub(crate) struct Rows {
    pub(crate) blocks: [Block; 2],
    pub(crate) extent: Extent,
    pub(crate) contexts: [Handle; 2],
}

/// One side of a copy of rows: nowhere for an array.
fn block_of(
    kind: CUmemorytype,
    (host, device): (*const c_void, CUdeviceptr),
    [x, y, z]: [usize; 3],
    [pitch, height]: [usize; 2],
) -> Block {
    let (side, address) = match kind {
        CUmemorytype::CU_MEMORYTYPE_HOST => (Side::Host, host.addr() as u64),
        CUmemorytype::CU_MEMORYTYPE_DEVICE => (Side::Device, device),
        CUmemorytype::CU_MEMORYTYPE_UNIFIED => (Side::Any, device),
        _ => return Block::array(),
    };
    let slice = pitch * height;
    let address = address + (x + y * pitch + z * slice) as u64;
    Block { side, address, pitch, slice }
}

impl From<CUDA_MEMCPY2D> for Rows {
    fn from(copy: CUDA_MEMCPY2D) -> Self {
        let to = block_of(
            copy.dstMemoryType,
            (copy.dstHost, copy.dstDevice),
            [copy.dstXInBytes, copy.dstY, 0],
            [copy.dstPitch, 0],
        );
        let from = block_of(
            copy.srcMemoryType,
            (copy.srcHost, copy.srcDevice),
            [copy.srcXInBytes, copy.srcY, 0],
            [copy.srcPitch, 0],
        );
        let extent = [copy.WidthInBytes, copy.Height, 1];
        Self { blocks: [to, from], extent, contexts: [0; 2] }
    }
}

macro_rules! rows {
    ($($copy:ident $contexts:expr;)*) => {$(
        impl From<$copy> for Rows {
            fn from(copy: $copy) -> Self {
                let to = block_of(
                    copy.dstMemoryType,
                    (copy.dstHost, copy.dstDevice),
                    [copy.dstXInBytes, copy.dstY, copy.dstZ],
                    [copy.dstPitch, copy.dstHeight],
                );
                let from = block_of(
                    copy.srcMemoryType,
                    (copy.srcHost, copy.srcDevice),
                    [copy.srcXInBytes, copy.srcY, copy.srcZ],
                    [copy.srcPitch, copy.srcHeight],
                );
                let extent = [copy.WidthInBytes, copy.Height, copy.Depth];
                let contexts: fn(&$copy) -> [Handle; 2] = $contexts;
                Self { blocks: [to, from], extent, contexts: contexts(&copy) }
            }
        }
    )*};
}

rows! {
    CUDA_MEMCPY3D |_| [0; 2];
    CUDA_MEMCPY3D_PEER |copy| [copy.dstContext.addr(), copy.srcContext.addr()];
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
    /// The driver refuses other numbers.
    pub(crate) fn new(order: CUmemcpySrcAccessOrder) -> Self {
        match order {
            CUmemcpySrcAccessOrder::CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL => Self::DuringCall,
            CUmemcpySrcAccessOrder::CU_MEMCPY_SRC_ACCESS_ORDER_ANY => Self::AnyTime,
            _ => Self::InStream,
        }
    }
}

/// The attributes of a batch: each counts from the copy with its index on.
#[derive(Clone, Copy)]
pub(crate) struct OfBatch {
    pub(crate) all: *const CUmemcpyAttributes,
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
        let begins = |index: &usize| unsafe { self.first.add(*index).read() } <= at;
        let last = (0..count).take_while(begins).last();
        // SAFETY: as above.
        last.map(|index| Reads::new(unsafe { self.all.add(index).read() }.srcAccessOrder))
            .unwrap_or_default()
    }
}

/// The bytes of an array's element, of the formats that do not compress.
pub(crate) fn element(array: &CUDA_ARRAY3D_DESCRIPTOR) -> Option<usize> {
    let channel = match array.Format {
        CUarray_format::CU_AD_FORMAT_UNSIGNED_INT8 | CUarray_format::CU_AD_FORMAT_SIGNED_INT8 => 1,
        CUarray_format::CU_AD_FORMAT_UNSIGNED_INT16
        | CUarray_format::CU_AD_FORMAT_SIGNED_INT16
        | CUarray_format::CU_AD_FORMAT_HALF => 2,
        CUarray_format::CU_AD_FORMAT_UNSIGNED_INT32
        | CUarray_format::CU_AD_FORMAT_SIGNED_INT32
        | CUarray_format::CU_AD_FORMAT_FLOAT => 4,
        _ => return None,
    };
    Some(channel * array.NumChannels as usize)
}

/// The array that a side of a batch's copy is.
pub(crate) fn array_of(operand: &CUmemcpy3DOperand) -> Option<Handle> {
    (operand.type_ == CUmemcpy3DOperandType::CU_MEMCPY_OPERAND_TYPE_ARRAY).then(|| {
        // SAFETY: the type says that it is an array; each of its bytes is the program's.
        unsafe { operand.op.array.array.addr() }
    })
}

/// A side of a batch's copy: an address, the elements of a row and the rows of a layer, or an array.
pub(crate) fn operand(
    operand: &CUmemcpy3DOperand,
    element: usize,
    [width, height, _]: Extent,
) -> Block {
    if array_of(operand).is_some() {
        return Block::array();
    }
    // SAFETY: the type says that it is memory; each of its bytes is the program's.
    let CUmemcpy3DOperand_ptr_u { ptr, rowLength: row, layerHeight: layer, .. } =
        unsafe { operand.op.ptr };
    let pitch = element.saturating_mul(if row == 0 { width } else { row });
    let slice = pitch.saturating_mul(if layer == 0 { height } else { layer });
    Block { pitch, slice, ..Block::any(ptr) }
}

/// A value of so many bytes, until it has eight.
pub(crate) fn repeated(value: u32, width: usize) -> u64 {
    let bytes = value.to_le_bytes();
    u64::from_le_bytes(core::array::from_fn(|at| {
        bytes.get(at % width.max(1)).copied().unwrap_or_default()
    }))
}

#[cfg(test)]
mod tests {
    use super::repeated;

    /// As a memset has it in memory.
    #[test]
    fn a_value_is_repeated_in_its_width() {
        let all = [1, 2, 4].map(|width| repeated(0x8877_6655, width));
        assert_eq!(all, [0x5555_5555_5555_5555, 0x6655_6655_6655_6655, 0x8877_6655_8877_6655]);
    }
}
