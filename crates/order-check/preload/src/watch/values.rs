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

/// A word that a stream will write, where the host may wait for the value. It has seen the value if
/// the word changes, or if its page was open to stores of the host.
pub(super) struct Flag {
    cell: Cell,
    old: u64,
    page: Option<usize>,
}

impl Watch {
    /// A stream will write a value. The host may wait for it in a loop and then, before its next
    /// call, store the old one again. So its stores to the page are seen from now on. `None` if
    /// nothing can be looked at: then the value counts as seen at once, if anybody can see it.
    pub(super) fn flag(&mut self, stream: StreamId, cell: Cell, value: u64) -> Option<Flag> {
        if self.feed.capture_of(stream).is_some() {
            return None;
        }
        let (_, before) = self.before_write(cell.address, u64::from(cell.bytes))?;
        // The stream itself may set a flag back before anybody looks.
        let same = |of: &mut Pending| {
            of.page.is_some() && of.cell.address == cell.address && of.old == value
        };
        for of in self.pending.extract_if(.., same).collect::<Vec<_>>() {
            self.has_seen(of);
        }
        let page = self.pinned.guard(cell)?;
        // Not before the page is protected. But a look at a page that is closed would open it.
        let old = if readable(cell.address as usize) { load(cell) } else { before };
        Some(Flag { cell, old, page })
    }

    /// Flags that are looked at were submitted to a stream.
    pub(super) fn flags_submitted(&mut self, stream: StreamId) {
        if self.pending.iter().any(|of| of.page.is_some() && of.work.is_none()) {
            let work = self.feed.await_stream(stream);
            let new = |of: &&mut Pending| of.page.is_some() && of.work.is_none();
            self.pending.iter_mut().filter(new).for_each(|of| of.work = Some(work.clone()));
        }
    }

    /// The place of a write of a value.
    pub(super) fn place_of_value(&mut self, flag: Option<Flag>) -> Option<u64> {
        let Flag { cell, old, page } = flag?;
        let place = self.new_place();
        self.look_for(Pending { place, cell, old, page, work: None });
        Some(place)
    }
}

pub(crate) fn apply(
    call: &Call,
    real: impl FnOnce() -> Code,
    stream: Handle,
    values: &[Value],
) -> Code {
    let begun = begin(call, |watch| {
        let stream = watch.stream(call, stream);
        let mut flags: Vec<Option<Flag>> = Vec::with_capacity(values.len());
        for Value { cell, value, wait } in values {
            watch.feed.find_stored(*cell, || load(*cell));
            let write = wait.is_none();
            let same = |of: &mut Flag| of.cell.address == cell.address && of.old == *value && write;
            for flag in &mut flags {
                let set_back = flag.take_if(same).and_then(|of| of.page);
                set_back.into_iter().for_each(table::remove);
            }
            flags.push(if write { watch.flag(stream, *cell, *value) } else { None });
        }
        (flags, watch.feed.caller())
    });
    let code = real();
    let Some((flags, caller)) = begun else { return code };
    with(|watch| {
        watch.feed.resume(caller);
        watch.look();
        let stream = watch.stream(call, stream);
        for (Value { cell, value, wait }, flag) in values.iter().copied().zip(flags) {
            match (flag, wait) {
                (flag, _) if code != OK => {
                    flag.and_then(|of| of.page).into_iter().for_each(table::remove);
                }
                (_, Some(compare)) => {
                    watch.feed.wait_value(stream, cell, value, compare);
                    watch.node(stream, Node::WaitValue(cell));
                }
                (flag, None) => {
                    let place = watch.place_of_value(flag);
                    watch.feed.write_value(stream, place, cell, value);
                    watch.node(stream, Node::WriteValue(cell, value));
                }
            }
        }
        watch.flags_submitted(stream);
    });
    code
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
