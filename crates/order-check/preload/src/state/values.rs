//! Writes of values and waits for them, and the words that are looked at.

use core::ffi::c_uint;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use cuda_events::sys::CUstreamBatchMemOpParams;
use cuda_order_check_engine::feed::{Awaited, GraphWork};
use cuda_order_check_engine::{Cell, Compare, StreamId};

use crate::call::Address;
use crate::state::node::Node;

/// How many values are looked at, at most, that the host may see.
pub(crate) const PENDING: usize = 64;

/// A few bytes that a stream will write where the host can see them.
pub(crate) struct Pending {
    /// The number of the write.
    pub(crate) id: u64,
    pub(crate) cell: Cell,
    /// The value that is there before.
    pub(crate) old: u64,
    /// The stream that writes it, and what will be there, if the call says it.
    pub(crate) new: Option<(StreamId, u64)>,
    /// The entry that protects the page of a flag from stores of the host.
    pub(crate) page: Option<usize>,
    /// The stream's work up to the value.
    pub(crate) work: Option<Awaited>,
}

/// So many bytes of memory that the host can read, at most eight.
pub(crate) fn load(cell: Cell) -> u64 {
    let aligned = cell.address.is_multiple_of(u64::from(cell.bytes));
    let address = cell.address as usize;
    // SAFETY: the callers ask for pinned memory that is not freed, or for memory that the program
    // gives to the call under way. Others may write it, hence the atomics.
    unsafe {
        match cell.bytes {
            4 if aligned => {
                let word = core::ptr::with_exposed_provenance_mut(address);
                u64::from(AtomicU32::from_ptr(word).load(Ordering::Acquire))
            }
            8 if aligned => {
                let word = core::ptr::with_exposed_provenance_mut(address);
                AtomicU64::from_ptr(word).load(Ordering::Acquire)
            }
            count => {
                let first: *const u8 = core::ptr::with_exposed_provenance(address);
                let byte = |at: usize| match at < usize::from(count) {
                    true => first.add(at).read_volatile(),
                    false => 0,
                };
                u64::from_le_bytes(core::array::from_fn(byte))
            }
        }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Value {
    pub(crate) cell: Cell,
    pub(crate) value: u64,
    /// The condition of a wait.
    pub(crate) wait: Option<Compare>,
}

impl Value {
    pub(crate) fn write(address: Address, bytes: u8, value: u64) -> Self {
        Self { cell: Cell { address, bytes }, value, wait: None }
    }

    pub(crate) fn wait(address: Address, bytes: u8, value: u64, flags: c_uint) -> Self {
        Self { wait: Some(compare(flags)), ..Self::write(address, bytes, value) }
    }
}

impl Value {
    /// The part of a graph's node.
    pub(crate) fn work(&self) -> GraphWork {
        match self.wait {
            Some(compare) => GraphWork::WaitValue(self.cell, self.value, compare),
            None => GraphWork::WriteValue(self.cell, self.value),
        }
    }

    pub(crate) fn node(&self) -> Node {
        match self.wait {
            Some(_) => Node::WaitValue(self.cell),
            None => Node::WriteValue(self.cell, self.value),
        }
    }
}

pub(crate) fn compare(flags: c_uint) -> Compare {
    match flags & 3 {
        0 => Compare::GreaterOrEqual,
        1 => Compare::Equal,
        2 => Compare::And,
        _ => Compare::Nor,
    }
}

/// A word that a stream will write, where the host may wait for the value. It has seen the value if
/// the word changes, or if its page was open to stores of the host.
pub(crate) struct Flag {
    pub(crate) cell: Cell,
    pub(crate) old: u64,
    pub(crate) new: Option<(StreamId, u64)>,
    pub(crate) page: Option<usize>,
}

impl Flag {
    /// The order of the nodes of a graph is not looked at here.
    pub(crate) fn of_graph(self) -> Self {
        Self { new: None, ..self }
    }
}

/// The operations of a batch; `None` if it has one of an unknown kind.
pub(crate) fn operations_at(
    operations: *const CUstreamBatchMemOpParams,
    count: c_uint,
) -> Option<Vec<Value>> {
    let count = if operations.is_null() { 0 } else { count as usize };
    // SAFETY: the program's operations, so many; each of their bytes is the program's.
    let all = (0..count).map(|at| unsafe { operations.add(at).read().pad });
    let value = |[kind, address, value, flags, ..]: [u64; 6]| {
        let (short, flags) = (value & u64::from(u32::MAX), flags as u32);
        match kind as u32 {
            1 => Some(Value::wait(address, 4, short, flags)),
            2 => Some(Value::write(address, 4, short)),
            4 => Some(Value::wait(address, 8, value, flags)),
            5 => Some(Value::write(address, 8, value)),
            _ => None,
        }
    };
    // CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES and CU_STREAM_MEM_OP_BARRIER touch nothing.
    all.filter(|operation| ![3, 6].contains(&(operation[0] as u32))).map(value).collect()
}

/// The writes that the host may see.
#[derive(Default)]
pub(crate) struct Values {
    pub(crate) pending: Vec<Pending>,
}

impl Values {
    /// A value that a later one of the same call sets back, or that was one too many, counts as seen
    /// at once.
    pub(crate) fn clear_unless_pending(&self, id: &mut Option<u64>) {
        id.take_if(|id| self.pending.iter().all(|pending| pending.id != *id));
    }
}

#[cfg(test)]
mod tests {
    use cuda_order_check_engine::{Cell, Compare};

    use super::{compare, load};

    /// Wherever they are, and no byte beside them.
    #[test]
    fn a_load_has_so_many_bytes() {
        let memory: [u64; 2] = core::array::from_fn(|word| {
            u64::from_le_bytes(core::array::from_fn(|at| (8 * word + at + 1) as u8))
        });
        let first = memory.as_ptr().expose_provenance() as u64;
        for (at, bytes) in (0..8).flat_map(|at| (1..=8).map(move |bytes| (at, bytes))) {
            let all = (0..u64::from(bytes)).rev().map(|byte| at + byte + 1);
            let expected = all.fold(0, |value, byte| value << 8 | byte);
            assert_eq!(load(Cell { address: first + at, bytes }), expected, "{bytes} at {at}");
        }
    }

    /// Beside the way to compare there may be `CU_STREAM_WAIT_VALUE_FLUSH`.
    #[test]
    fn a_wait_compares_as_its_flags_say() {
        for flush in [0, 1 << 30] {
            let all = [0, 1, 2, 3].map(|flags| compare(flags | flush));
            let expected = [Compare::GreaterOrEqual, Compare::Equal, Compare::And, Compare::Nor];
            assert_eq!(all, expected);
        }
    }
}
