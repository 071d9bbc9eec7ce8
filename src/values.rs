//! Waits for values in memory and writes of values, in the order of a stream.

use core::ffi::c_uint;
use core::fmt;

use bitflags::bitflags;

use crate::error::{Error, Result};
use crate::stream::BorrowedStream;
use crate::sys::{
    CU_STREAM_MEMORY_BARRIER_TYPE_GPU, CU_STREAM_MEMORY_BARRIER_TYPE_SYS, CU_STREAM_WAIT_VALUE_AND,
    CU_STREAM_WAIT_VALUE_EQ, CU_STREAM_WAIT_VALUE_FLUSH, CU_STREAM_WAIT_VALUE_GEQ, CU_STREAM_WAIT_VALUE_NOR,
    CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER, CUdeviceptr, CUstreamBatchMemOpParams, CUstreamBatchMemOpType,
    CUstreamMemOpFlushRemoteWritesParams, CUstreamMemOpMemoryBarrierParams, CUstreamMemOpWaitValueParams,
    CUstreamMemOpWriteValueParams, Function,
};
