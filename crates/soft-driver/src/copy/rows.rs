//! For FFmpeg (rows) and cuda.core (layers): copies of rows, and of layers of rows; memsets of
//! rows.

use core::ffi::{c_uint, c_void};

use cuda_order_check_engine::Access;

use crate::abi::*;
use crate::allocation;
use crate::arg::{In, Ptr, StreamArg};
use crate::copy::synchronous::{peers, synchronous, synchronous_between};
use crate::copy::{HostAfter, feed_pageable, submit, waits_for_copy};
use crate::machine::State;
use crate::machine::call_frame::CallFrame;
use crate::memory::Place;
use crate::memory::blocks::{Block, Extent};
use crate::memory::work::{CopyRows, MemoryWork, SetRows};
use crate::stream::wait_idle;

exports! { $ [copy::rows]
    cuMemcpy2D_v2, cuMemcpy2D_v2_ptds => memcpy_2d;
    cuMemcpy2DUnaligned_v2, cuMemcpy2DUnaligned_v2_ptds => memcpy_2d;
    cuMemcpy2DAsync_v2, cuMemcpy2DAsync_v2_ptsz => memcpy_2d_async;
    cuMemcpy3D_v2, cuMemcpy3D_v2_ptds => memcpy_3d;
    cuMemcpy3DAsync_v2, cuMemcpy3DAsync_v2_ptsz => memcpy_3d_async;
    cuMemcpy3DPeer, cuMemcpy3DPeer_ptds => memcpy_3d_peer;
    cuMemcpy3DPeerAsync, cuMemcpy3DPeerAsync_ptsz => memcpy_3d_peer_async;
    cuMemsetD2D8_v2, cuMemsetD2D8_v2_ptds => memset_2d_8;
    cuMemsetD2D8Async, cuMemsetD2D8Async_ptsz => memset_2d_8_async;
    cuMemsetD2D16_v2, cuMemsetD2D16_v2_ptds => memset_2d_16;
    cuMemsetD2D16Async, cuMemsetD2D16Async_ptsz => memset_2d_16_async;
    cuMemsetD2D32_v2, cuMemsetD2D32_v2_ptds => memset_2d_32;
    cuMemsetD2D32Async, cuMemsetD2D32Async_ptsz => memset_2d_32_async;
}

/// Where the rows of a copy are: in memory of the host, of the device, in an array, or wherever the
/// address says.
pub(crate) const MEMORY_HOST: CUmemorytype = CUmemorytype::CU_MEMORYTYPE_HOST;
pub(crate) const MEMORY_DEVICE: CUmemorytype = CUmemorytype::CU_MEMORYTYPE_DEVICE;
const MEMORY_ARRAY: CUmemorytype = CUmemorytype::CU_MEMORYTYPE_ARRAY;
const MEMORY_UNIFIED: CUmemorytype = CUmemorytype::CU_MEMORYTYPE_UNIFIED;

/// One side of a copy of rows or layers.
pub(crate) struct Side {
    /// Bytes, rows and layers before the copied ones.
    pub(crate) x: usize,
    pub(crate) y: usize,
    pub(crate) z: usize,
    pub(crate) memory_type: CUmemorytype,
    pub(crate) host: *mut c_void,
    pub(crate) device: CUdeviceptr,
    pub(crate) array: CUarray,
    /// The bytes from one row to the next.
    pub(crate) pitch: usize,
    /// The rows from one layer to the next.
    pub(crate) height: usize,
}

/// A copy of rows or layers, in whichever structure of the driver it is given.
pub(crate) struct CopyOfRows {
    pub(crate) from: Side,
    pub(crate) to: Side,
    pub(crate) extent: Extent,
}

/// The structures have one set of names; that of rows has fewer of them.
macro_rules! from_params {
    ($($params:ident: |$copy:ident| $from_z:expr, $from_height:expr, $to_z:expr, $to_height:expr,
        $depth:expr;)*) => {$(
        impl From<$params> for CopyOfRows {
            fn from($copy: $params) -> Self {
                let from = Side {
                    x: $copy.srcXInBytes,
                    y: $copy.srcY,
                    z: $from_z,
                    memory_type: $copy.srcMemoryType,
                    host: $copy.srcHost.cast_mut(),
                    device: $copy.srcDevice,
                    array: $copy.srcArray,
                    pitch: $copy.srcPitch,
                    height: $from_height,
                };
                let to = Side {
                    x: $copy.dstXInBytes,
                    y: $copy.dstY,
                    z: $to_z,
                    memory_type: $copy.dstMemoryType,
                    host: $copy.dstHost,
                    device: $copy.dstDevice,
                    array: $copy.dstArray,
                    pitch: $copy.dstPitch,
                    height: $to_height,
                };
                let (width, height) = ($copy.WidthInBytes, $copy.Height);
                Self { from, to, extent: Extent { width, height, depth: $depth } }
            }
        }
    )*};
}

from_params! {
    CUDA_MEMCPY2D: |copy| 0, 0, 0, 0, 1;
    CUDA_MEMCPY3D: |copy| copy.srcZ, copy.srcHeight, copy.dstZ, copy.dstHeight, copy.Depth;
    CUDA_MEMCPY3D_PEER: |copy| copy.srcZ, copy.srcHeight, copy.dstZ, copy.dstHeight, copy.Depth;
}

impl From<CopyOfRows> for CUDA_MEMCPY3D {
    fn from(copy: CopyOfRows) -> Self {
        let CopyOfRows { from, to, extent } = copy;
        Self {
            srcXInBytes: from.x,
            srcY: from.y,
            srcZ: from.z,
            srcMemoryType: from.memory_type,
            srcHost: from.host,
            srcDevice: from.device,
            srcArray: from.array,
            srcPitch: from.pitch,
            srcHeight: from.height,
            dstXInBytes: to.x,
            dstY: to.y,
            dstZ: to.z,
            dstMemoryType: to.memory_type,
            dstHost: to.host,
            dstDevice: to.device,
            dstArray: to.array,
            dstPitch: to.pitch,
            dstHeight: to.height,
            WidthInBytes: extent.width,
            Height: extent.height,
            Depth: extent.depth,
            ..Self::default()
        }
    }
}

/// The bytes from a block's first to its last, in the kind of memory that the copy names.
fn span(state: &State, side: &Side, offset: usize, bytes: usize) -> Result<Place, CUresult> {
    let device = side.device.checked_add(offset as u64).ok_or(INVALID_VALUE);
    match side.memory_type {
        MEMORY_HOST if side.host.is_null() => Err(INVALID_VALUE),
        MEMORY_HOST => {
            Ok(state.memory.addresses.host_range(side.host.wrapping_byte_add(offset), bytes))
        }
        MEMORY_DEVICE => state.memory.addresses.device_range(device?, bytes),
        MEMORY_UNIFIED if side.device == 0 => Err(INVALID_VALUE),
        MEMORY_UNIFIED => state.memory.addresses.any_range(device?, bytes),
        MEMORY_ARRAY if side.array.is_null() => Err(INVALID_VALUE),
        // The software driver has no arrays.
        MEMORY_ARRAY => Err(NOT_SUPPORTED),
        _ => Err(INVALID_VALUE),
    }
}

/// One side of a copy. Documented: a distance between rows that is given is at least as long as
/// what is before the row's bytes and they themselves; with none the rows follow each other.
pub(crate) fn block(state: &State, side: &Side, extent: Extent) -> Result<Block, CUresult> {
    let Extent { width, height, depth } = extent;
    let row = side.x.checked_add(width).ok_or(INVALID_VALUE)?;
    let rows = side.y.checked_add(height).ok_or(INVALID_VALUE)?;
    let pitch = if side.pitch == 0 { row } else { side.pitch };
    let layer = if side.height == 0 { rows } else { side.height };
    // Measured: one that is too long for the device (`MAX_PITCH`) is no error.
    if pitch < row || (depth > 1 && layer < rows) {
        return Err(INVALID_VALUE);
    }
    let places = || {
        let slice = pitch.checked_mul(layer)?;
        let before = side.z.checked_mul(slice)?.checked_add(side.y.checked_mul(pitch)?)?;
        let layers = (depth - 1).checked_mul(slice)?;
        let bytes = layers.checked_add((height - 1).checked_mul(pitch)?)?.checked_add(width)?;
        Some((slice, before.checked_add(side.x)?, bytes))
    };
    let (slice, offset, bytes) = places().ok_or(INVALID_VALUE)?;
    Ok(Block { place: span(state, side, offset, bytes)?, pitch, slice })
}

/// What a copy does; none if it is of nothing.
pub(crate) fn copy_of_rows(
    state: &State,
    call: &CallFrame,
    copy: &CopyOfRows,
) -> Result<Option<CopyRows>, CUresult> {
    let extent = copy.extent;
    if extent.width == 0 || extent.height == 0 || extent.depth == 0 {
        return Ok(None);
    }
    let (to, from) = (block(state, &copy.to, extent)?, block(state, &copy.from, extent)?);
    allocation::may_write(state, call, &to.place)?;
    Ok(Some(CopyRows { to, from, extent }))
}

fn copy(
    call: &CallFrame,
    copy: Result<CopyOfRows, CUresult>,
    stream: StreamArg,
) -> Result<HostAfter, CUresult> {
    let mut state = call.ready()?;
    let copy = copy?;
    let stream = state.stream(call, stream)?;
    let Some(mut rows) = copy_of_rows(&state, call, &copy)? else { return Ok(HostAfter::Nothing) };
    if state.captures.is_capturing(stream) {
        submit(call, state, stream, MemoryWork::CopyRows(Box::new(rows)))?;
        return Ok(HostAfter::Nothing);
    }
    let after = HostAfter::copy(&state.memory, &rows.to.place, &rows.from.place);
    let waits = waits_for_copy(&state.memory, &rows.to.place, &rows.from.place);
    // As for a copy of bytes: ordinary memory has been read when the call returns, and written.
    if rows.from.place.pageable() {
        feed_pageable(state.feed.as_deref_mut(), &rows.from.place, || {
            rows.from.accesses(rows.extent, Access::read)
        });
        rows.from = rows.from.staged(rows.extent);
    }
    feed_pageable(state.feed.as_deref_mut(), &rows.to.place, || {
        rows.to.accesses(rows.extent, Access::write)
    });
    submit(call, state, stream, MemoryWork::CopyRows(Box::new(rows)))?;
    if waits {
        wait_idle(call, call.ready()?, stream, true)?;
    }
    Ok(after)
}

pub(crate) fn memcpy_2d_async(
    call: &CallFrame,
    rows: In<CUDA_MEMCPY2D>,
    stream: StreamArg,
) -> Answer {
    copy(call, rows.get().map(CopyOfRows::from), stream).map(drop)
}

pub(crate) fn memcpy_2d(call: &CallFrame, rows: In<CUDA_MEMCPY2D>) -> Answer {
    synchronous(call, |stream| copy(call, rows.get().map(CopyOfRows::from), stream))
}

pub(crate) fn memcpy_3d_async(
    call: &CallFrame,
    layers: In<CUDA_MEMCPY3D>,
    stream: StreamArg,
) -> Answer {
    copy(call, layers.get().map(CopyOfRows::from), stream).map(drop)
}

pub(crate) fn memcpy_3d(call: &CallFrame, layers: In<CUDA_MEMCPY3D>) -> Answer {
    synchronous(call, |stream| copy(call, layers.get().map(CopyOfRows::from), stream))
}

/// The contexts of a copy between contexts.
fn between(call: &CallFrame, copy: &CUDA_MEMCPY3D_PEER) -> Result<Vec<u32>, CUresult> {
    peers(call, Ptr::of_handle(copy.dstContext), Ptr::of_handle(copy.srcContext))
}

pub(crate) fn memcpy_3d_peer_async(
    call: &CallFrame,
    layers: In<CUDA_MEMCPY3D_PEER>,
    stream: StreamArg,
) -> Answer {
    let layers = layers.get()?;
    between(call, &layers)?;
    copy(call, Ok(layers.into()), stream).map(drop)
}

pub(crate) fn memcpy_3d_peer(call: &CallFrame, layers: In<CUDA_MEMCPY3D_PEER>) -> Answer {
    let layers = layers.get()?;
    let contexts = between(call, &layers)?;
    synchronous_between(call, contexts, |stream| copy(call, Ok(layers.into()), stream))
}

/// What is set: rows of elements.
#[derive(Clone, Copy)]
pub(crate) struct Rows {
    pub(crate) address: u64,
    pub(crate) pitch: usize,
    pub(crate) value: u32,
    pub(crate) element: usize,
    /// The number of elements in a row.
    pub(crate) width: usize,
    pub(crate) height: usize,
}

/// The work that sets rows, and what the host is after if it is not given a stream; none if
/// there is nothing to set.
pub(crate) fn set_of_rows(
    state: &State,
    call: &CallFrame,
    rows: Rows,
) -> Result<Option<(MemoryWork, HostAfter)>, CUresult> {
    let Rows { address, pitch, value, element, width, height } = rows;
    let width = width.checked_mul(element).ok_or(INVALID_VALUE)?;
    let one = height <= 1;
    let aligned = |number: u64| number.is_multiple_of(element as u64);
    if !aligned(address) || (!one && (!aligned(pitch as u64) || pitch < width)) {
        return Err(INVALID_VALUE);
    }
    if width == 0 || height == 0 {
        return Ok(None);
    }
    let extent = Extent { width, height, depth: 1 };
    let bytes = (height - 1).checked_mul(pitch).and_then(|rows| rows.checked_add(width));
    let place = state.memory.addresses.device_range(address, bytes.ok_or(INVALID_VALUE)?)?;
    allocation::may_write(state, call, &place)?;
    let after = HostAfter::set(&state.memory, &place);
    let to = Block { place, pitch: if one { width } else { pitch }, slice: 0 };
    let work = MemoryWork::SetRows(Box::new(SetRows { to, value, element, extent }));
    Ok(Some((work, after)))
}

fn set(call: &CallFrame, rows: Rows, stream: StreamArg) -> Result<HostAfter, CUresult> {
    let mut state = call.ready()?;
    let stream = state.stream(call, stream)?;
    let Some((work, after)) = set_of_rows(&state, call, rows)? else {
        return Ok(HostAfter::Nothing);
    };
    submit(call, state, stream, work)?;
    Ok(after)
}

macro_rules! sets_of_rows {
    ($($asynchronous:ident, $synchronous:ident: $value:ty, $element:literal;)*) => {$(
        pub(crate) fn $asynchronous(
            call: &CallFrame,
            address: CUdeviceptr,
            pitch: usize,
            value: $value,
            width: usize,
            height: usize,
            stream: StreamArg,
        ) -> Answer {
            let (value, element) = (c_uint::from(value), $element);
            set(call, Rows { address, pitch, value, element, width, height }, stream).map(drop)
        }

        pub(crate) fn $synchronous(
            call: &CallFrame,
            address: CUdeviceptr,
            pitch: usize,
            value: $value,
            width: usize,
            height: usize,
        ) -> Answer {
            let (value, element) = (c_uint::from(value), $element);
            let rows = Rows { address, pitch, value, element, width, height };
            synchronous(call, |stream| set(call, rows, stream))
        }
    )*};
}

sets_of_rows! {
    memset_2d_8_async, memset_2d_8: core::ffi::c_uchar, 1;
    memset_2d_16_async, memset_2d_16: core::ffi::c_ushort, 2;
    memset_2d_32_async, memset_2d_32: c_uint, 4;
}
