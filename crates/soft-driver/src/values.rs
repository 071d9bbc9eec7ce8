//! Values in memory: streams wait for them and write them, one by one and in batches. What is known
//! of the waits and writes that are under way says whether a wait may be ahead of its write.

use core::ffi::c_uint;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::collections::{BTreeMap, BTreeSet};

use crate::abi::*;
use crate::arg::{Array, StreamArg};
use crate::engine::work::{Origin, Queued, Task};
use crate::graph::NodeKind;
use crate::machine::call_frame::CallFrame;
use crate::machine::{Locked, Machine, State};
use crate::memory::Place;

/// The address of a word, and whether it has 64 bits.
pub(crate) type WordKey = (usize, bool);

/// A word in memory that a stream waits for or writes.
#[derive(Clone, Debug)]
pub(crate) struct Word {
    pub(crate) place: Place,
    pub(crate) wide: bool,
}

impl Word {
    /// Which word: an address and its width.
    pub(crate) fn key(&self) -> WordKey {
        (self.place.address, self.wide)
    }

    pub(crate) fn load(&self) -> u64 {
        // SAFETY: within a region that `place` keeps, aligned as submission checked. The program
        // reads and writes the same word from other threads, hence the atomics.
        unsafe {
            if self.wide {
                AtomicU64::from_ptr(self.place.pointer().cast()).load(Ordering::Acquire)
            } else {
                u64::from(AtomicU32::from_ptr(self.place.pointer().cast()).load(Ordering::Acquire))
            }
        }
    }

    fn store(&self, value: u64) {
        // SAFETY: as in `load`.
        unsafe {
            if self.wide {
                AtomicU64::from_ptr(self.place.pointer().cast()).store(value, Ordering::Release);
            } else {
                AtomicU32::from_ptr(self.place.pointer().cast())
                    .store(value as u32, Ordering::Release);
            }
        }
    }
}

/// A wait for a value.
#[derive(Clone, Debug)]
pub(crate) struct ValueWait {
    pub(crate) word: Word,
    pub(crate) value: u64,
    pub(crate) condition: u32,
}

impl ValueWait {
    pub(crate) fn is_done(&self) -> bool {
        self.is_met_by(self.word.load())
    }

    /// Whether it would be over with this value in memory.
    pub(crate) fn is_met_by(&self, now: u64) -> bool {
        let value = self.value;
        match self.condition {
            // Cyclic: the difference, as a signed number.
            CU_STREAM_WAIT_VALUE_GEQ if self.word.wide => now.wrapping_sub(value) as i64 >= 0,
            CU_STREAM_WAIT_VALUE_GEQ => (now as u32).wrapping_sub(value as u32) as i32 >= 0,
            CU_STREAM_WAIT_VALUE_EQ => now == value,
            CU_STREAM_WAIT_VALUE_AND => now & value != 0,
            _ => {
                let mask = if self.word.wide { u64::MAX } else { u64::from(u32::MAX) };
                !(now | value) & mask != 0
            }
        }
    }
}

/// A write of a value.
#[derive(Clone, Debug)]
pub(crate) struct ValueWrite {
    pub(crate) word: Word,
    pub(crate) value: u64,
}

impl ValueWrite {
    /// Whether it makes a difference.
    pub(crate) fn changes(&self) -> bool {
        let value = if self.word.wide { self.value } else { self.value & u64::from(u32::MAX) };
        self.word.load() != value
    }

    pub(crate) fn execute(&self) {
        self.word.store(self.value);
    }
}

/// What one operation of a batch does.
#[derive(Clone, Debug)]
pub(crate) enum ValueOperation {
    Wait(ValueWait),
    Write(ValueWrite),
    /// A barrier, or a flush: here there is nothing to be done.
    Nothing,
}

impl ValueOperation {
    /// The word that it is about.
    pub(crate) fn word(&self) -> Option<&Word> {
        match self {
            Self::Wait(wait) => Some(&wait.word),
            Self::Write(write) => Some(&write.word),
            Self::Nothing => None,
        }
    }
}

/// Operations as a node of a graph keeps them.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    /// The handle of the context that does them.
    pub(crate) context: u64,
    pub(crate) operations: Vec<ValueOperation>,
    /// As the program gave them, for it to read back: it is shown where they are.
    pub(crate) given: Vec<[u64; 6]>,
}

impl Batch {
    /// What it reads and writes.
    pub(crate) fn places(&self) -> impl Iterator<Item = &Place> {
        self.operations.iter().filter_map(ValueOperation::word).map(|word| &word.place)
    }

    /// Whether another one has as many operations, and of the same kinds.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let kind = |given: &[u64; 6]| given[0] as u32;
        self.context == other.context
            && self.given.iter().map(kind).eq(other.given.iter().map(kind))
    }
}

/// The waits and writes of values that were submitted and are not done.
pub(crate) struct Values {
    /// Waits by their places, that neither memory nor an earlier write had the value for.
    ahead: BTreeMap<u64, ValueWait>,
    /// Writes by their words and places.
    writes: BTreeMap<WordKey, BTreeMap<u64, u64>>,
    /// The waits of a reported deadlock that lasts.
    reported: BTreeSet<u64>,
}

impl Values {
    pub(crate) const fn new() -> Self {
        Self { ahead: BTreeMap::new(), writes: BTreeMap::new(), reported: BTreeSet::new() }
    }

    /// Whether a write that is under way, and was submitted before a place, is for a wait.
    fn has_write(&self, wait: &ValueWait, before: u64) -> bool {
        let writes = self.writes.get(&wait.word.key()).map(|writes| writes.range(..before));
        // The latest is most likely the one.
        writes.is_some_and(|writes| writes.rev().any(|(_, value)| wait.is_met_by(*value)))
    }

    /// A wait is submitted.
    pub(crate) fn waits(&mut self, at: u64, wait: &ValueWait) {
        if !wait.is_done() {
            self.parked(at, wait);
        }
    }

    /// A wait came to its turn, and the value is not there.
    pub(crate) fn parked(&mut self, at: u64, wait: &ValueWait) {
        if !self.ahead.contains_key(&at) && !self.has_write(wait, at) {
            self.ahead.insert(at, wait.clone());
        }
    }

    pub(crate) fn passed(&mut self, at: u64) {
        self.ahead.remove(&at);
        self.reported.remove(&at);
    }

    pub(crate) fn writes(&mut self, at: u64, write: &ValueWrite) {
        self.writes.entry(write.word.key()).or_default().insert(at, write.value);
    }

    pub(crate) fn written(&mut self, at: u64, write: &ValueWrite) {
        if let Some(writes) = self.writes.get_mut(&write.word.key()) {
            writes.remove(&at);
            if writes.is_empty() {
                self.writes.remove(&write.word.key());
            }
        }
    }

    /// Whether there can be a deadlock that was not reported: a wait ahead of its write.
    pub(crate) fn suspicious(&self) -> bool {
        self.reported.is_empty() && self.ahead.values().any(|wait| self.has_write(wait, u64::MAX))
    }

    /// The writes that are under way, by their words and places.
    pub(crate) fn to_write(&self) -> BTreeMap<WordKey, BTreeMap<u64, u64>> {
        self.writes.clone()
    }

    /// A deadlock of these waits is reported: until all of them are over nothing else is.
    pub(crate) fn tell(&mut self, waits: BTreeSet<u64>) {
        self.reported = waits;
    }
}

type Kind = CUstreamBatchMemOpType;

/// As documented: a batch has fewer operations.
pub(crate) const TOO_MANY: c_uint = 256;

/// Measured: a stream that waits for a value holds about so many commands. Waits, writes and small
/// copies are one each. The call for the next wait or write blocks until the first wait is over.
const FULL: usize = 1021;

impl State {
    fn word(&self, address: u64, wide: bool) -> Result<Word, CUresult> {
        let bytes = if wide { 8 } else { 4 };
        if address == 0 || !address.is_multiple_of(bytes as u64) {
            return Err(INVALID_VALUE);
        }
        Ok(Word { place: self.device_range(address, bytes)?, wide })
    }

    fn value_operation(
        &self,
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
                let word = self.word(wait.address, wide)?;
                Ok(ValueOperation::Wait(ValueWait { word, value, condition: wait.flags & 3 }))
            }
            Kind::CU_STREAM_MEM_OP_WRITE_VALUE_32 | Kind::CU_STREAM_MEM_OP_WRITE_VALUE_64 => {
                if write.flags & !CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER != 0 {
                    return Err(INVALID_VALUE);
                }
                let word = self.word(write.address, wide)?;
                self.may_write(call, &word.place)?;
                Ok(ValueOperation::Write(ValueWrite { word, value }))
            }
            Kind::CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES | Kind::CU_STREAM_MEM_OP_BARRIER => {
                Ok(ValueOperation::Nothing)
            }
            _ => Err(INVALID_VALUE),
        }
    }

    pub(crate) fn batch(
        &self,
        call: &CallFrame,
        context: u64,
        given: &[CUstreamBatchMemOpParams],
    ) -> Result<Batch, CUresult> {
        let operations = given
            .iter()
            .map(|given| self.value_operation(call, given))
            .collect::<Result<_, _>>()?;
        // SAFETY: all variants of the union are plain data within these words.
        let given = given.iter().map(|given| unsafe { given.pad }).collect();
        Ok(Batch { context, operations, given })
    }

    /// Gives a batch to a stream.
    pub(crate) fn submit_values(
        &mut self,
        machine: &'static Machine,
        stream: u32,
        batch: Batch,
        origin: Origin,
    ) {
        for operation in batch.operations {
            let task = match operation {
                ValueOperation::Wait(wait) => Task::WaitValue(wait, origin),
                ValueOperation::Write(write) => Task::WriteValue(write, origin),
                ValueOperation::Nothing => continue,
            };
            self.submit(machine, stream, task);
        }
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
    let batch = state.batch(call, context, given)?;
    state.ensure_ticker_thread(call.machine)?;
    if batch.operations.is_empty() || state.captured(stream, NodeKind::Values(batch.clone()))? {
        return Ok(());
    }
    if !call.in_host_function() {
        state = room_in(call, state, stream)?;
    }
    state.submit_values(call.machine, stream, batch, call.origin());
    state.look_for_deadlock(call.machine)
}

/// Blocks while the stream waits for a value and is full of commands.
fn room_in(call: &CallFrame, mut state: Locked, stream: u32) -> Result<Locked, CUresult> {
    let is_wait = |queued: &Queued| matches!(queued.task, Task::WaitValue(..));
    let is_command = |queued: &&Queued| {
        matches!(queued.task, Task::WaitValue(..) | Task::WriteValue(..) | Task::Memory(_))
    };
    loop {
        let Some(entry) = state.streams.get(stream) else { return Err(INVALID_HANDLE) };
        if entry.queue.len() < FULL {
            return Ok(state);
        }
        let commands = entry.queue.iter().filter(is_command).count();
        let Some(first) = entry.queue.iter().position(is_wait).filter(|_| commands >= FULL) else {
            return Ok(state);
        };
        let point = state.mark_behind(stream, first);
        point.want();
        state = call.machine.wait_until(state, |_| point.is_done())?;
    }
}

/// One operation, as a batch has it. Waits and writes have the same form.
fn one(kind: Kind, address: u64, value: u64, flags: u32) -> [CUstreamBatchMemOpParams; 1] {
    let mut given = CUstreamBatchMemOpParams { pad: [0; 6] };
    given.waitValue = CUstreamMemOpWaitValueParams {
        operation: kind,
        address,
        u: CUstreamMemOpWaitValueParams_u { value64: value },
        flags,
        alias: 0,
    };
    [given]
}

pub(crate) fn stream_wait_value32(
    call: &CallFrame,
    stream: StreamArg,
    address: u64,
    value: u32,
    flags: u32,
) -> Answer {
    value_operations(
        call,
        stream,
        &one(Kind::CU_STREAM_MEM_OP_WAIT_VALUE_32, address, u64::from(value), flags),
    )
}

pub(crate) fn stream_wait_value64(
    call: &CallFrame,
    stream: StreamArg,
    address: u64,
    value: u64,
    flags: u32,
) -> Answer {
    value_operations(
        call,
        stream,
        &one(Kind::CU_STREAM_MEM_OP_WAIT_VALUE_64, address, value, flags),
    )
}

pub(crate) fn stream_write_value32(
    call: &CallFrame,
    stream: StreamArg,
    address: u64,
    value: u32,
    flags: u32,
) -> Answer {
    value_operations(
        call,
        stream,
        &one(Kind::CU_STREAM_MEM_OP_WRITE_VALUE_32, address, u64::from(value), flags),
    )
}

pub(crate) fn stream_write_value64(
    call: &CallFrame,
    stream: StreamArg,
    address: u64,
    value: u64,
    flags: u32,
) -> Answer {
    value_operations(
        call,
        stream,
        &one(Kind::CU_STREAM_MEM_OP_WRITE_VALUE_64, address, value, flags),
    )
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
