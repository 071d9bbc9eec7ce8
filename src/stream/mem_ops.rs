//! Waiting for a value in memory, and writing one, in stream order.
//!
//! These operations order work that no event can order, for example with a device that is not
//! CUDA's. The caller keeps the memory alive, so the methods are unsafe. For a counter between
//! streams, hosts and processes, use a timeline of the crate `cuda-timelines`.
//!
//! ```
//! use cuda_events::foundation::call;
//! use cuda_events::mem_ops::{WaitCondition, WaitValueFlags, WriteValueFlags};
//! use cuda_events::{Context, Device, Stream, StreamOptions};
//!
//! # use cuda_soft_driver::examples::Driver;
//! let driver = Driver::load()?;
//! let context = Context::primary(Device::new(driver, 0)?)?;
//! let stream = Stream::new(&context, StreamOptions::new())?;
//! let _current = context.make_current()?;
//! let mut address = 0;
//! // SAFETY: the context is current, and the driver writes only the address.
//! unsafe { call!(driver, cuMemAlloc_v2(&mut address, 4)) }?;
//! // SAFETY: these are 4 bytes of device memory, which are freed when the stream is done.
//! unsafe {
//!     stream.write_value32(address, 1, WriteValueFlags::empty())?;
//!     stream.wait_value32(address, 1, WaitCondition::Equal, WaitValueFlags::empty())?;
//! }
//! stream.synchronize()?;
//! // SAFETY: the stream is done with the memory.
//! unsafe { call!(driver, cuMemFree_v2(address)) }?;
//! # Ok::<(), cuda_events::Error>(())
//! ```

use core::ffi::c_uint;
use core::fmt;

use bitflags::bitflags;

use crate::debug_by_names::debug_by_names;
use crate::driver::call::call;
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::stream::StreamRef;
use crate::sys::{
    CU_STREAM_MEMORY_BARRIER_TYPE_GPU, CU_STREAM_MEMORY_BARRIER_TYPE_SYS, CU_STREAM_WAIT_VALUE_AND,
    CU_STREAM_WAIT_VALUE_EQ, CU_STREAM_WAIT_VALUE_FLUSH, CU_STREAM_WAIT_VALUE_GEQ,
    CU_STREAM_WAIT_VALUE_NOR, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER, CUdeviceptr,
    CUstreamBatchMemOpParams, CUstreamBatchMemOpType, CUstreamMemOpFlushRemoteWritesParams,
    CUstreamMemOpMemoryBarrierParams, CUstreamMemOpWaitValueParams, CUstreamMemOpWaitValueParams_u,
    CUstreamMemOpWriteValueParams, CUstreamMemOpWriteValueParams_u,
};

#[cfg(doc)]
use crate::sys::calls::*;

/// The condition that ends a wait for a value; [`StreamRef::wait_value32`] and [`MemOp`] have
/// examples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
#[non_exhaustive]
pub enum WaitCondition {
    /// Memory minus value, as a signed number, is not negative. This is a greater-or-equal that
    /// also works when a counter wraps round.
    #[doc(alias = "CU_STREAM_WAIT_VALUE_GEQ")]
    GreaterOrEqual = CU_STREAM_WAIT_VALUE_GEQ,
    /// Memory equals the value.
    #[doc(alias = "CU_STREAM_WAIT_VALUE_EQ")]
    Equal = CU_STREAM_WAIT_VALUE_EQ,
    /// At least one bit is set in both memory and the value.
    #[doc(alias = "CU_STREAM_WAIT_VALUE_AND")]
    And = CU_STREAM_WAIT_VALUE_AND,
    /// At least one bit is clear in both memory and the value. Only devices with
    /// `CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR` support it.
    #[doc(alias = "CU_STREAM_WAIT_VALUE_NOR")]
    Nor = CU_STREAM_WAIT_VALUE_NOR,
}

bitflags! {
    /// Flags for a wait for a value; usually empty.
    ///
    /// [`StreamRef::wait_value32`] has an example.
    #[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
    pub struct WaitValueFlags: u32 {
        /// Work after the wait sees the writes of other devices that had reached this device when
        /// the wait ended. Only devices with `CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES` support
        /// it.
        const FLUSH = CU_STREAM_WAIT_VALUE_FLUSH;
    }
}

bitflags! {
    /// Flags for a write of a value; usually empty.
    ///
    /// [`StreamRef::wait_value32`] has an example.
    #[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
    pub struct WriteValueFlags: u32 {
        /// The write may overtake writes of earlier work in the stream. Only drivers before CUDA
        /// 11.7 accept this flag.
        const NO_MEMORY_BARRIER = CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER;
    }
}

debug_by_names!(WaitValueFlags, WriteValueFlags);

/// The scope of a memory barrier; [`MemOp`] has an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
#[non_exhaustive]
pub enum BarrierScope {
    /// The host and all devices.
    #[doc(alias = "CU_STREAM_MEMORY_BARRIER_TYPE_SYS")]
    System = CU_STREAM_MEMORY_BARRIER_TYPE_SYS,
    /// This device.
    #[doc(alias = "CU_STREAM_MEMORY_BARRIER_TYPE_GPU")]
    Device = CU_STREAM_MEMORY_BARRIER_TYPE_GPU,
}

/// One operation of [`StreamRef::batch_mem_op`].
///
/// Creating a `MemOp` makes no driver call.
///
/// ```
/// use cuda_events::foundation::call;
/// use cuda_events::mem_ops::{BarrierScope, MemOp, WaitCondition, WaitValueFlags, WriteValueFlags};
/// use cuda_events::sys::CUdevice_attribute;
/// use cuda_events::{Context, Device, Stream, StreamOptions};
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let _current = context.make_current()?;
/// let mut counter = 0;
/// // SAFETY: the context is current, and the driver writes only the address.
/// unsafe { call!(driver, cuMemAlloc_v2(&mut counter, 8)) }?;
/// let stream = Stream::new(&context, StreamOptions::new())?;
///
/// let mut operations = [
///     MemOp::write_value32(counter, 3, WriteValueFlags::empty()),
///     MemOp::barrier(BarrierScope::System),
///     MemOp::wait_value32(counter, 2, WaitCondition::GreaterOrEqual, WaitValueFlags::empty()),
///     MemOp::write_value64(counter, 1 << 40, WriteValueFlags::empty()),
///     MemOp::wait_value64(counter, 1 << 40, WaitCondition::Equal, WaitValueFlags::empty()),
/// ];
/// // SAFETY: `counter` is the address of device memory, which is freed when the stream is done.
/// unsafe { stream.batch_mem_op(&mut operations) }?;
/// // Only some devices can flush remote writes.
/// let can_flush = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES;
/// if context.device().attribute(can_flush)? == 1 {
///     // SAFETY: the operation has no address.
///     unsafe { stream.batch_mem_op(&mut [MemOp::flush_remote_writes()]) }?;
/// }
/// stream.synchronize()?;
/// let raw = operations[0].as_raw(); // a `CUstreamBatchMemOpParams`, for another binding
/// // SAFETY: the stream is done with the memory.
/// unsafe { call!(driver, cuMemFree_v2(counter)) }?;
/// # Ok::<(), cuda_events::Error>(())
/// ```
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct MemOp(CUstreamBatchMemOpParams);

impl MemOp {
    /// Creates an operation that waits for 32 bits, as [`StreamRef::wait_value32`] does.
    #[doc(alias = "CU_STREAM_MEM_OP_WAIT_VALUE_32")]
    pub fn wait_value32(
        address: CUdeviceptr,
        value: u32,
        condition: WaitCondition,
        flags: WaitValueFlags,
    ) -> Self {
        let operation = CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WAIT_VALUE_32;
        Self::wait(operation, address, value.into(), condition, flags)
    }

    /// Creates an operation that waits for 64 bits, as [`StreamRef::wait_value64`] does.
    #[doc(alias = "CU_STREAM_MEM_OP_WAIT_VALUE_64")]
    pub fn wait_value64(
        address: CUdeviceptr,
        value: u64,
        condition: WaitCondition,
        flags: WaitValueFlags,
    ) -> Self {
        let operation = CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WAIT_VALUE_64;
        Self::wait(operation, address, value, condition, flags)
    }

    /// Creates an operation that writes 32 bits, as [`StreamRef::write_value32`] does.
    #[doc(alias = "CU_STREAM_MEM_OP_WRITE_VALUE_32")]
    pub fn write_value32(address: CUdeviceptr, value: u32, flags: WriteValueFlags) -> Self {
        let operation = CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WRITE_VALUE_32;
        Self::write(operation, address, value.into(), flags)
    }

    /// Creates an operation that writes 64 bits, as [`StreamRef::write_value64`] does.
    #[doc(alias = "CU_STREAM_MEM_OP_WRITE_VALUE_64")]
    pub fn write_value64(address: CUdeviceptr, value: u64, flags: WriteValueFlags) -> Self {
        Self::write(CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WRITE_VALUE_64, address, value, flags)
    }

    /// Creates an operation that flushes remote writes: the effect of [`WaitValueFlags::FLUSH`] as
    /// a separate operation.
    #[doc(alias = "CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES")]
    pub fn flush_remote_writes() -> Self {
        let operation = CUstreamBatchMemOpType::CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES;
        let mut params = CUstreamBatchMemOpParams::default();
        params.flushRemoteWrites = CUstreamMemOpFlushRemoteWritesParams { operation, flags: 0 };
        Self(params)
    }

    /// Creates an operation that is a memory barrier. Needs CUDA 11.7.
    #[doc(alias = "CU_STREAM_MEM_OP_BARRIER")]
    pub fn barrier(scope: BarrierScope) -> Self {
        let operation = CUstreamBatchMemOpType::CU_STREAM_MEM_OP_BARRIER;
        let mut params = CUstreamBatchMemOpParams::default();
        params.memoryBarrier =
            CUstreamMemOpMemoryBarrierParams { operation, flags: scope as c_uint };
        Self(params)
    }

    /// Returns the driver's own struct, for other bindings.
    pub fn as_raw(&self) -> &CUstreamBatchMemOpParams {
        &self.0
    }

    fn wait(
        operation: CUstreamBatchMemOpType,
        address: CUdeviceptr,
        value64: u64,
        condition: WaitCondition,
        flags: WaitValueFlags,
    ) -> Self {
        let mut params = CUstreamBatchMemOpParams::default();
        params.waitValue = CUstreamMemOpWaitValueParams {
            operation,
            address,
            // The 32-bit value is the low half: every platform that has a driver is little-endian.
            u: CUstreamMemOpWaitValueParams_u { value64 },
            flags: condition as c_uint | flags.bits(),
            alias: 0,
        };
        Self(params)
    }

    fn write(
        operation: CUstreamBatchMemOpType,
        address: CUdeviceptr,
        value64: u64,
        flags: WriteValueFlags,
    ) -> Self {
        let mut params = CUstreamBatchMemOpParams::default();
        params.writeValue = CUstreamMemOpWriteValueParams {
            operation,
            address,
            // The 32-bit value is the low half, as for a wait.
            u: CUstreamMemOpWriteValueParams_u { value64 },
            flags: flags.bits(),
            alias: 0,
        };
        Self(params)
    }
}

impl fmt::Debug for MemOp {
    #[allow(unsafe_code)]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: every operation begins with its kind, and every constructor has written it.
        f.debug_tuple("MemOp").field(unsafe { &self.0.operation }).finish()
    }
}

/// # Values in memory
///
/// Methods that make the stream wait for a value in memory, or write one.
///
/// The memory is device memory or mapped pinned host memory, given by its *device* address; managed
/// memory is not allowed. From CUDA 11.7 on ([`cuStreamWaitValue32_v2`] and similar calls) these
/// methods need no setup. On older drivers they need the option `NVreg_EnableStreamMemOPs=1` of the
/// driver's kernel module; without it they return `CUDA_ERROR_NOT_SUPPORTED`.
///
/// CUDA does not know which write a wait needs. It may put the wait into a hardware queue before
/// the write, and then neither ever ends. If both sides are streams, also order them by an event,
/// with the write before the wait.
#[allow(unsafe_code)]
impl StreamRef {
    /// Makes all later work in this stream wait until the 32 bits at `address` fulfil the
    /// condition.
    ///
    /// The wait can hang if the write comes from another stream and no event orders the two: see
    /// [values in memory](StreamRef#values-in-memory).
    ///
    /// One driver call: [`cuStreamWaitValue32_v2`] (CUDA 11.7), on older drivers
    /// [`cuStreamWaitValue32`].
    ///
    /// ```
    /// use cuda_events::foundation::call;
    /// use cuda_events::mem_ops::{WaitCondition, WaitValueFlags, WriteValueFlags};
    /// use cuda_events::{Context, Device, Stream, StreamOptions};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let _current = context.make_current()?;
    /// let mut flag = 0;
    /// // SAFETY: the context is current, and the driver writes only the address.
    /// unsafe { call!(driver, cuMemAlloc_v2(&mut flag, 16)) }?;
    /// let producer = Stream::new(&context, StreamOptions::new())?;
    /// let consumer = Stream::new(&context, StreamOptions::new())?;
    /// // SAFETY: `flag` is the address of 16 bytes of device memory, which are freed when both
    /// // streams are done.
    /// unsafe {
    ///     producer.write_value32(flag, 1, WriteValueFlags::empty())?;
    ///     producer.write_value64(flag + 8, 1, WriteValueFlags::empty())?;
    ///     // Both sides are streams, so an event must also put the writes before the waits.
    ///     consumer.wait_stream(&producer)?;
    ///     consumer.wait_value32(flag, 1, WaitCondition::Equal, WaitValueFlags::empty())?;
    ///     consumer.wait_value64(flag + 8, 1, WaitCondition::Equal, WaitValueFlags::empty())?;
    /// }
    /// consumer.synchronize()?;
    /// // SAFETY: both streams are done with the memory.
    /// unsafe { call!(driver, cuMemFree_v2(flag)) }?;
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// * `CUDA_ERROR_NOT_SUPPORTED`: the device does not support [`WaitCondition::Nor`] or
    ///   [`WaitValueFlags::FLUSH`]. Or the driver is older than CUDA 11.7 and was loaded without
    ///   `NVreg_EnableStreamMemOPs=1`.
    /// * `CUDA_ERROR_INVALID_VALUE`: the address is not valid on the device.
    /// * [`Error::Unsupported`]: the driver lacks the call.
    /// * [`Error::ForkedChild`].
    ///
    /// # Safety
    ///
    /// `address` must be a device address, and a multiple of 4. The 4 bytes there must be device
    /// memory or mapped pinned host memory. Managed memory is not allowed. The bytes must stay
    /// allocated until the wait is over. Until then the host may change them only with atomic or
    /// volatile writes.
    #[doc(alias = "cuStreamWaitValue32")]
    pub unsafe fn wait_value32(
        &self,
        address: CUdeviceptr,
        value: u32,
        condition: WaitCondition,
        flags: WaitValueFlags,
    ) -> Result<()> {
        let flags = condition as c_uint | flags.bits();
        // SAFETY: the stream is alive as long as `self` is; the caller vouches for the address.
        unsafe {
            call!(self,
                cuStreamWaitValue32_v2(self.as_raw(), address, value, flags)
                or cuStreamWaitValue32?(self.as_raw(), address, value, flags))
        }?
        .check()
    }

    /// Makes all later work in this stream wait until the 64 bits at `address` fulfil the
    /// condition.
    ///
    /// It works as [`wait_value32`](Self::wait_value32), which has an example. Only devices with
    /// `CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS` support it.
    ///
    /// One driver call: [`cuStreamWaitValue64_v2`] (CUDA 11.7), on older drivers
    /// [`cuStreamWaitValue64`].
    ///
    /// # Errors
    ///
    /// As [`wait_value32`](Self::wait_value32).
    ///
    /// # Safety
    ///
    /// That of [`wait_value32`](Self::wait_value32), with 8 instead of 4.
    #[doc(alias = "cuStreamWaitValue64")]
    pub unsafe fn wait_value64(
        &self,
        address: CUdeviceptr,
        value: u64,
        condition: WaitCondition,
        flags: WaitValueFlags,
    ) -> Result<()> {
        let flags = condition as c_uint | flags.bits();
        // SAFETY: the stream is alive as long as `self` is; the caller vouches for the address.
        unsafe {
            call!(self,
                cuStreamWaitValue64_v2(self.as_raw(), address, value, flags)
                or cuStreamWaitValue64?(self.as_raw(), address, value, flags))
        }?
        .check()
    }

    /// Writes 32 bits to `address` after all work that is now in the stream. A reader that sees
    /// the new value also sees all writes of that work.
    ///
    /// One driver call: [`cuStreamWriteValue32_v2`] (CUDA 11.7), on older drivers
    /// [`cuStreamWriteValue32`]. [`wait_value32`](Self::wait_value32) has an example.
    ///
    /// # Errors
    ///
    /// As [`wait_value32`](Self::wait_value32).
    ///
    /// # Safety
    ///
    /// `address` must be a device address, and a multiple of 4. The 4 bytes there must be device
    /// memory or mapped pinned host memory. Managed memory is not allowed. The bytes must stay
    /// allocated until the write is done. Until then the host may read them only with atomic or
    /// volatile reads. A reference to the bytes may exist only if it is a reference to an atomic.
    #[doc(alias = "cuStreamWriteValue32")]
    pub unsafe fn write_value32(
        &self,
        address: CUdeviceptr,
        value: u32,
        flags: WriteValueFlags,
    ) -> Result<()> {
        // SAFETY: the stream is alive as long as `self` is; the caller vouches for the address.
        unsafe {
            call!(self,
                cuStreamWriteValue32_v2(self.as_raw(), address, value, flags.bits())
                or cuStreamWriteValue32?(self.as_raw(), address, value, flags.bits()))
        }?
        .check()
    }

    /// Writes 64 bits to `address` after all work that is now in the stream. A reader that sees
    /// the new value also sees all writes of that work.
    ///
    /// Only devices with `CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS` support it.
    ///
    /// One driver call: [`cuStreamWriteValue64_v2`] (CUDA 11.7), on older drivers
    /// [`cuStreamWriteValue64`]. [`wait_value32`](Self::wait_value32) has an example.
    ///
    /// # Errors
    ///
    /// As [`wait_value32`](Self::wait_value32).
    ///
    /// # Safety
    ///
    /// That of [`write_value32`](Self::write_value32), with 8 instead of 4.
    #[doc(alias = "cuStreamWriteValue64")]
    pub unsafe fn write_value64(
        &self,
        address: CUdeviceptr,
        value: u64,
        flags: WriteValueFlags,
    ) -> Result<()> {
        // SAFETY: the stream is alive as long as `self` is; the caller vouches for the address.
        unsafe {
            call!(self,
                cuStreamWriteValue64_v2(self.as_raw(), address, value, flags.bits())
                or cuStreamWriteValue64?(self.as_raw(), address, value, flags.bits()))
        }?
        .check()
    }

    /// Performs up to 255 operations in their order, with one driver call. The driver may write to
    /// the slice: do not rely on its contents afterwards.
    ///
    /// One driver call: [`cuStreamBatchMemOp_v2`] (CUDA 11.7), on older drivers
    /// [`cuStreamBatchMemOp`]. [`MemOp`] has an example.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for more than 255 operations; otherwise as
    /// [`wait_value32`](Self::wait_value32).
    ///
    /// # Safety
    ///
    /// Each operation must follow the safety rules of the single methods, such as
    /// [`wait_value32`](Self::wait_value32).
    #[doc(alias = "cuStreamBatchMemOp")]
    pub unsafe fn batch_mem_op(&self, operations: &mut [MemOp]) -> Result<()> {
        let count = c_uint::try_from(operations.len()).unwrap_or(c_uint::MAX);
        let first = operations.as_mut_ptr().cast::<CUstreamBatchMemOpParams>();
        // SAFETY: the stream is alive as long as `self` is; `MemOp` is the driver's type, and there
        // are `count` of them (more than that many do not fit into memory); the caller vouches for
        // the addresses in them.
        unsafe {
            call!(self,
                cuStreamBatchMemOp_v2(self.as_raw(), count, first, 0)
                or cuStreamBatchMemOp?(self.as_raw(), count, first, 0))
        }?
        .check()
    }
}

static_assertions::assert_eq_size!(MemOp, CUstreamBatchMemOpParams);
