//! Stream memory operations: waits for values, writes of values, and batches of both.

use core::ffi::c_uint;

use crate::abi::*;
use crate::arg::{Ptr, StreamArg};
use crate::model::call_frame::CallFrame;
use crate::model::graph::NodeKind;
use crate::model::machine::State;
use crate::model::mem_ops::{ValueWait, ValueWrite, Word};
use crate::model::work::Task;

impl State {
    fn word(&self, address: u64, wide: bool) -> Result<Word, CUresult> {
        let bytes = if wide { 8 } else { 4 };
        if address == 0 || !address.is_multiple_of(bytes as u64) {
            return Err(INVALID_VALUE);
        }
        Ok(Word { place: self.device_range(address, bytes)?, wide })
    }

    fn value_wait(
        &self,
        address: u64,
        value: u64,
        flags: u32,
        wide: bool,
    ) -> Result<NodeKind, CUresult> {
        if flags & !(CU_STREAM_WAIT_VALUE_FLUSH | 3) != 0 {
            return Err(INVALID_VALUE);
        }
        Ok(NodeKind::WaitValue(ValueWait {
            word: self.word(address, wide)?,
            value,
            condition: flags & 3,
        }))
    }

    fn value_write(
        &self,
        address: u64,
        value: u64,
        flags: u32,
        wide: bool,
    ) -> Result<NodeKind, CUresult> {
        if flags & !CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER != 0 {
            return Err(INVALID_VALUE);
        }
        Ok(NodeKind::WriteValue(ValueWrite { word: self.word(address, wide)?, value }))
    }
}

fn value_operations(
    call: &CallFrame,
    stream: StreamArg,
    operations: impl FnOnce(&State) -> Result<Vec<NodeKind>, CUresult>,
) -> Answer {
    let mut state = call.ready()?;
    let stream = state.stream(call, stream)?;
    let operations = operations(&state)?;
    state.ensure_ticker_thread(call.machine)?;
    for operation in operations {
        if state.captured(stream, operation.clone())? {
            continue;
        }
        let task = match operation {
            NodeKind::WaitValue(wait) => Task::WaitValue(wait),
            NodeKind::WriteValue(write) => Task::WriteValue(write),
            _ => continue,
        };
        state.submit(call.machine, stream, task);
    }
    Ok(())
}

pub(crate) fn stream_wait_value32(
    call: &CallFrame,
    stream: StreamArg,
    address: u64,
    value: u32,
    flags: u32,
) -> Answer {
    value_operations(call, stream, |state| {
        Ok(vec![state.value_wait(address, u64::from(value), flags, false)?])
    })
}

pub(crate) fn stream_wait_value64(
    call: &CallFrame,
    stream: StreamArg,
    address: u64,
    value: u64,
    flags: u32,
) -> Answer {
    value_operations(call, stream, |state| Ok(vec![state.value_wait(address, value, flags, true)?]))
}

pub(crate) fn stream_write_value32(
    call: &CallFrame,
    stream: StreamArg,
    address: u64,
    value: u32,
    flags: u32,
) -> Answer {
    value_operations(call, stream, |state| {
        Ok(vec![state.value_write(address, u64::from(value), flags, false)?])
    })
}

pub(crate) fn stream_write_value64(
    call: &CallFrame,
    stream: StreamArg,
    address: u64,
    value: u64,
    flags: u32,
) -> Answer {
    value_operations(call, stream, |state| {
        Ok(vec![state.value_write(address, value, flags, true)?])
    })
}

pub(crate) fn stream_batch_mem_op(
    call: &CallFrame,
    stream: StreamArg,
    count: c_uint,
    operations: Ptr<CUstreamBatchMemOpParams>,
    flags: c_uint,
) -> Answer {
    type Op = CUstreamBatchMemOpType;
    // As documented: fewer than 256.
    if flags != 0 || count >= 256 {
        drop(call.ready()?);
        return Err(INVALID_VALUE);
    }
    let operations = operations.read_array(count as usize)?;
    value_operations(call, stream, |state| {
        let mut tasks = Vec::new();
        for operation in &operations {
            // SAFETY: every variant begins with the operation, and all are plain integers: reading
            // one of them from bytes that another one wrote gives numbers, never an invalid value.
            let (kind, wait, write) =
                unsafe { (operation.operation, operation.waitValue, operation.writeValue) };
            // SAFETY: both members are integers.
            let (narrow, wide) = unsafe { (wait.u.value, wait.u.value64) };
            match kind {
                Op::CU_STREAM_MEM_OP_WAIT_VALUE_32 => {
                    tasks.push(state.value_wait(
                        wait.address,
                        u64::from(narrow),
                        wait.flags,
                        false,
                    )?);
                }
                Op::CU_STREAM_MEM_OP_WAIT_VALUE_64 => {
                    tasks.push(state.value_wait(wait.address, wide, wait.flags, true)?);
                }
                Op::CU_STREAM_MEM_OP_WRITE_VALUE_32 => {
                    tasks.push(state.value_write(
                        write.address,
                        u64::from(narrow),
                        write.flags,
                        false,
                    )?);
                }
                Op::CU_STREAM_MEM_OP_WRITE_VALUE_64 => {
                    tasks.push(state.value_write(write.address, wide, write.flags, true)?);
                }
                Op::CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES | Op::CU_STREAM_MEM_OP_BARRIER => {}
                _ => return Err(INVALID_VALUE),
            }
        }
        Ok(tasks)
    })
}
