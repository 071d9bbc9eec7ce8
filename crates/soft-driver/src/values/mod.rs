//! Values in memory: streams wait for them and write them, one by one and in batches. [`nodes`] has
//! the nodes of graphs that do.

pub(crate) mod nodes;

use core::ffi::c_uint;

use crate::abi::*;
use crate::allocation;
use crate::arg::{Array, StreamArg};
use crate::engine::work::{Origin, Task};
use crate::graph::NodeKind;
use crate::machine::call_frame::CallFrame;
use crate::machine::{Locked, State};
use crate::memory::word::{Batch, ValueOperation, ValueWait, ValueWrite, Word};

exports! { $ [values]
    cuStreamWaitValue32, cuStreamWaitValue32_ptsz => (stream_value::<u32, false>);
    cuStreamWaitValue32_v2, cuStreamWaitValue32_v2_ptsz => (stream_value::<u32, false>);
    cuStreamWaitValue64, cuStreamWaitValue64_ptsz => (stream_value::<u64, false>);
    cuStreamWaitValue64_v2, cuStreamWaitValue64_v2_ptsz => (stream_value::<u64, false>);
    cuStreamWriteValue32, cuStreamWriteValue32_ptsz => (stream_value::<u32, true>);
    cuStreamWriteValue32_v2, cuStreamWriteValue32_v2_ptsz => (stream_value::<u32, true>);
    cuStreamWriteValue64, cuStreamWriteValue64_ptsz => (stream_value::<u64, true>);
    cuStreamWriteValue64_v2, cuStreamWriteValue64_v2_ptsz => (stream_value::<u64, true>);
    cuStreamBatchMemOp, cuStreamBatchMemOp_ptsz => stream_batch_mem_op;
    cuStreamBatchMemOp_v2, cuStreamBatchMemOp_v2_ptsz => stream_batch_mem_op;
}

type Kind = CUstreamBatchMemOpType;

/// As documented: a batch has fewer operations.
pub(crate) const TOO_MANY: c_uint = 256;

/// Measured: a stream that waits for a value holds about so many commands. Waits, writes and small
/// copies are one each. The call for the next wait or write blocks until the first wait is over.
const FULL: usize = 1021;

/// The attribute that says that a device can flush remote writes is 0.
const CANNOT_FLUSH: CUresult = NOT_SUPPORTED;

fn word(state: &State, address: u64, wide: bool) -> Result<Word, CUresult> {
    let bytes = if wide { 8 } else { 4 };
    if address == 0 || !address.is_multiple_of(bytes as u64) {
        return Err(INVALID_VALUE);
    }
    Ok(Word { place: state.memory.addresses.device_range(address, bytes)?, wide })
}

fn checked_operation(
    state: &State,
    call: &CallFrame,
    given: &CUstreamBatchMemOpParams,
) -> Result<ValueOperation, CUresult> {
    // SAFETY: every variant begins with the operation, and all are plain integers: reading one
    // of them from bytes that another one wrote gives numbers, never an invalid value.
    let (kind, wait, write) = unsafe { (given.operation, given.waitValue, given.writeValue) };
    let wide = matches!(
        kind,
        Kind::CU_STREAM_MEM_OP_WAIT_VALUE_64 | Kind::CU_STREAM_MEM_OP_WRITE_VALUE_64
    );
    // SAFETY: both members are integers.
    let value = unsafe {
        let value = wait.u;
        if wide { value.value64 } else { u64::from(value.value) }
    };
    match kind {
        Kind::CU_STREAM_MEM_OP_WAIT_VALUE_32 | Kind::CU_STREAM_MEM_OP_WAIT_VALUE_64 => {
            if wait.flags & !(CU_STREAM_WAIT_VALUE_FLUSH | 3) != 0 {
                return Err(INVALID_VALUE);
            }
            if wait.flags & CU_STREAM_WAIT_VALUE_FLUSH != 0 {
                return Err(CANNOT_FLUSH);
            }
            let word = word(state, wait.address, wide)?;
            Ok(ValueOperation::Wait(ValueWait { word, value, condition: wait.flags & 3 }))
        }
        Kind::CU_STREAM_MEM_OP_WRITE_VALUE_32 | Kind::CU_STREAM_MEM_OP_WRITE_VALUE_64 => {
            // A card of CUDA 13.0 refuses it by the second form, which CUDA 11.7 has first.
            let is_old = state.config.version < 11070;
            let known = if is_old { CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER } else { 0 };
            if write.flags & !known != 0 {
                return Err(INVALID_VALUE);
            }
            let word = word(state, write.address, wide)?;
            allocation::may_write(state, call, &word.place)?;
            Ok(ValueOperation::Write(ValueWrite { word, value }))
        }
        Kind::CU_STREAM_MEM_OP_BARRIER => Ok(ValueOperation::Nothing),
        Kind::CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES => Err(CANNOT_FLUSH),
        Kind::CU_STREAM_MEM_OP_ATOMIC_REDUCTION if state.config.version >= 13010 => {
            state.misuses.say_unsupported(call, "CU_STREAM_MEM_OP_ATOMIC_REDUCTION");
            Err(NOT_SUPPORTED)
        }
        _ => Err(INVALID_VALUE),
    }
}

pub(crate) fn checked_batch(
    state: &State,
    call: &CallFrame,
    context: u64,
    given: &[CUstreamBatchMemOpParams],
) -> Result<Batch, CUresult> {
    let operations = given
        .iter()
        .map(|given| checked_operation(state, call, given))
        .collect::<Result<_, _>>()?;
    // SAFETY: all variants of the union are plain data within these words.
    let given = given.iter().map(|given| unsafe { given.pad }).collect();
    Ok(Batch { context, operations, given })
}

/// Gives a batch to a stream.
pub(crate) fn submit_values(state: &mut State, stream: u32, batch: Batch, origin: Origin) {
    for operation in batch.operations {
        let task = match operation {
            ValueOperation::Wait(wait) => Task::WaitValue(wait, origin),
            ValueOperation::Write(write) => Task::WriteValue(write, origin),
            ValueOperation::Nothing => continue,
        };
        state.running().submit(stream, task);
    }
}

fn value_operations(
    call: &CallFrame,
    stream: StreamArg,
    given: &[CUstreamBatchMemOpParams],
) -> Answer {
    let mut state = call.ready()?;
    let stream = state.stream(call, stream)?;
    let context = state.contexts.handle(state.streams[stream].context);
    let batch = checked_batch(&state, call, context, given)?;
    state.engine.threads.ensure_ticker(call.machine)?;
    let State { captures, streams, graphs, .. } = &mut *state;
    let node = || NodeKind::Values(batch.clone());
    if batch.operations.is_empty() || captures.add(streams, graphs, call.number, stream, node)? {
        return Ok(());
    }
    if !call.in_host_function() {
        state = room_in(call, state, stream)?;
    }
    submit_values(&mut state, stream, batch, call.origin());
    state.running().look_for_deadlock()
}

/// Blocks while the stream waits for a value and is full of commands.
fn room_in(call: &CallFrame, mut state: Locked, stream: u32) -> Result<Locked, CUresult> {
    let is_wait = |task: &Task| matches!(task, Task::WaitValue(..));
    let is_command =
        |task: &&Task| matches!(task, Task::WaitValue(..) | Task::WriteValue(..) | Task::Memory(_));
    loop {
        let Some(entry) = state.streams.get(stream) else { return Err(INVALID_HANDLE) };
        if entry.tasks().len() < FULL {
            return Ok(state);
        }
        let commands = entry.tasks().filter(is_command).count();
        let Some(first) = entry.tasks().position(is_wait).filter(|_| commands >= FULL) else {
            return Ok(state);
        };
        let point = state.running().mark_after(stream, first);
        point.want();
        state = call.machine.wait_until(state, |_| point.is_done())?;
    }
}

/// One operation, as a batch has it. Waits and writes have the same form.
pub(crate) fn stream_value<T: Into<u64>, const WRITES: bool>(
    call: &CallFrame,
    stream: StreamArg,
    address: u64,
    value: T,
    flags: u32,
) -> Answer {
    let operation = match (WRITES, size_of::<T>()) {
        (false, 4) => Kind::CU_STREAM_MEM_OP_WAIT_VALUE_32,
        (false, _) => Kind::CU_STREAM_MEM_OP_WAIT_VALUE_64,
        (true, 4) => Kind::CU_STREAM_MEM_OP_WRITE_VALUE_32,
        (true, _) => Kind::CU_STREAM_MEM_OP_WRITE_VALUE_64,
    };
    let mut given = CUstreamBatchMemOpParams { pad: [0; 6] };
    given.waitValue = CUstreamMemOpWaitValueParams {
        operation,
        address,
        u: CUstreamMemOpWaitValueParams_u { value64: value.into() },
        flags,
        alias: 0,
    };
    value_operations(call, stream, &[given])
}

pub(crate) fn stream_batch_mem_op(
    call: &CallFrame,
    stream: StreamArg,
    count: c_uint,
    operations: Array<CUstreamBatchMemOpParams>,
    flags: c_uint,
) -> Answer {
    if flags != 0 || count >= TOO_MANY {
        return call.refuse(INVALID_VALUE);
    }
    value_operations(call, stream, &operations.read_array(count as usize)?)
}
