//! Writes of values, and waits for them.

use cuda_order_check::feed::GraphWork;

use super::*;

#[derive(Clone, Copy)]
pub(crate) struct Value {
    cell: Cell,
    value: u64,
    /// The condition of a wait.
    wait: Option<Compare>,
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
    pub(super) fn work(&self) -> GraphWork {
        match self.wait {
            Some(compare) => GraphWork::WaitValue(self.cell, self.value, compare),
            None => GraphWork::WriteValue(self.cell, self.value),
        }
    }

    pub(super) fn node(&self) -> Node {
        match self.wait {
            Some(_) => Node::WaitValue(self.cell),
            None => Node::WriteValue(self.cell, self.value),
        }
    }
}

fn compare(flags: c_uint) -> Compare {
    match flags & 3 {
        0 => Compare::GreaterOrEqual,
        1 => Compare::Equal,
        2 => Compare::And,
        _ => Compare::Nor,
    }
}

pub(crate) fn apply(
    call: &Call,
    real: impl FnOnce() -> Code,
    stream: Handle,
    values: &[Value],
) -> Code {
    let before = |watch: &mut Watch| -> Vec<_> {
        let flag = |Value { cell, .. }: &Value| {
            watch.feed.find_stored(*cell, || load(*cell));
            watch.before_write(cell.address, u64::from(cell.bytes))
        };
        values.iter().map(flag).collect()
    };
    around(call, before, real, |watch, flags| {
        let stream = watch.stream(call, stream);
        for (Value { cell, value, wait }, flag) in values.iter().copied().zip(flags) {
            match wait {
                Some(compare) => {
                    watch.feed.wait_value(stream, cell, value, compare);
                    watch.node(stream, Node::WaitValue(cell));
                }
                None => {
                    let place = watch.place_of(stream, flag);
                    watch.feed.write_value(stream, place, cell, value);
                    watch.node(stream, Node::WriteValue(cell, value));
                }
            }
        }
    })
}

pub(crate) fn batch(
    call: &Call,
    real: impl FnOnce() -> Code,
    stream: Handle,
    count: c_uint,
    operations: *const [u64; 6],
) -> Code {
    apply(call, real, stream, &self::operations(operations, count))
}

/// The operations of a batch.
pub(super) fn operations(operations: *const [u64; 6], count: c_uint) -> Vec<Value> {
    let count = if operations.is_null() { 0 } else { count as usize };
    // SAFETY: the program's operations, so many.
    let all = (0..count).map(|at| unsafe { operations.add(at).read() });
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
    all.filter_map(value).collect()
}
