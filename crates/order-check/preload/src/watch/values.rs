//! Writes of values, and waits for them.

use cuda_order_check::feed::GraphWork;

use super::*;

/// How many values are looked at, at most, that the host may see.
const PENDING: usize = 64;

/// A few bytes that a stream will write where the host can see them.
pub(super) struct Pending {
    pub(super) place: u64,
    pub(super) cell: Cell,
    /// What is there before.
    old: u64,
    /// What will be there, if it is known, and the stream that writes it.
    new: Option<(StreamId, u64)>,
    /// The entry that protects the page of a flag from stores of the host.
    pub(super) page: Option<usize>,
    /// The stream's work up to the value.
    pub(super) work: Option<Awaited>,
}

/// So many bytes of memory that the host can read, at most eight.
pub(super) fn load(cell: Cell) -> u64 {
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
    new: Option<(StreamId, u64)>,
    page: Option<usize>,
}

impl Flag {
    /// The nodes of a graph have no order that is known here.
    pub(super) fn of_graph(self) -> Self {
        Self { new: None, ..self }
    }
}

impl Watch {
    /// Memory may end: what is pending there counts as seen.
    pub(super) fn stop_looking(&mut self) {
        std::mem::take(&mut self.pending).into_iter().for_each(|of| self.has_seen(of));
    }

    /// The host may have seen the value, and nothing more is to be seen there.
    pub(super) fn has_seen(&mut self, of: Pending) {
        self.ends_looking(of, true);
    }

    pub(super) fn ends_looking(&mut self, Pending { place, page, .. }: Pending, seen: bool) {
        page.into_iter().for_each(table::remove);
        self.begins_with(place);
        self.feed.written(place, seen);
    }

    /// Values that streams have written meanwhile: the host may have seen them.
    pub(super) fn look(&mut self) {
        self.look_before(false);
    }

    /// The same, or before accesses are judged that were too early.
    pub(super) fn look_before(&mut self, judged: bool) {
        self.accept_seen();
        let pending = std::mem::take(&mut self.pending);
        // The words that only one stream writes.
        let words: Vec<_> = pending.iter().map(|of| (of.cell.address, of.new)).collect();
        let is_alone = |word: u64, stream: StreamId| {
            let mut others = words.iter().filter(|(address, _)| *address == word);
            others.all(|(_, new)| new.is_some_and(|(of, _)| of == stream))
        };
        let mut there = Vec::new();
        for mut of in pending {
            let Pending { cell, old, new, page, .. } = of;
            let spent = page.and_then(table::spent);
            let early = spent.as_ref().is_some_and(|of| of.early && judged);
            let now = match spent.as_ref().and_then(|of| of.found) {
                // What comes after the access does not matter.
                Some(found) if found != old || early => found,
                // The host has not read what it must not read.
                _ if readable(cell.address as usize) => load(cell),
                _ => old,
            };
            // If the page was open, the host may have set the flag back.
            if now == old && (spent.is_none() || early) {
                self.pending.push(of);
                continue;
            }
            // It is the value before this one that the stream has written.
            if let Some((stream, value)) = new
                && page.is_some()
                && spent.is_none()
            {
                if value != now && there.contains(&(cell.address, stream, now)) {
                    of.old = now;
                    self.pending.push(of);
                    continue;
                }
                if value == now && is_alone(cell.address, stream) {
                    there.push((cell.address, stream, now));
                }
            }
            self.has_seen(of);
            if now != old
                && cell.address.is_multiple_of(u64::from(cell.bytes))
                && matches!(cell.bytes, 4 | 8)
            {
                self.feed.word_written(cell, now);
            }
        }
    }

    /// A word will be written, where the host may have stored a value.
    pub(super) fn find_stored(&mut self, address: Address, bytes: u64) {
        if matches!(bytes, 4 | 8) && address.is_multiple_of(bytes) {
            let cell = Cell { address, bytes: bytes as u8 };
            self.feed.find_stored(cell, || load(cell));
        }
    }

    /// A few bytes of pinned memory will be written: what is there now. Managed memory is never
    /// loaded: it may be closed to the host while the device is busy, and a load may move it. In
    /// shared memory others may set a value back, which nobody here sees.
    pub(super) fn before_write(&self, address: Address, bytes: u64) -> Option<(Cell, u64)> {
        let cell = Cell { address, bytes: u8::try_from(bytes).ok().filter(|it| *it <= 8)? };
        let pinned = self.feed.memory(address) == Some(Memory::Host);
        (pinned && !self.pinned.is_shared(address)).then(|| (cell, load(cell)))
    }

    /// The place of a write that is looked for. Others have none: if anybody can see them, they may
    /// have been seen at any time.
    pub(super) fn place_of(
        &mut self,
        stream: StreamId,
        before: Option<(Cell, u64)>,
    ) -> Option<u64> {
        let (cell, old) = before.filter(|_| self.feed.capture_of(stream).is_none())?;
        let place = self.new_place();
        self.look_for(Pending { place, cell, old, new: None, page: None, work: None });
        Some(place)
    }

    fn look_for(&mut self, of: Pending) {
        if self.pending.len() >= PENDING {
            let oldest = self.pending.remove(0);
            self.seen.crowded += 1;
            self.has_seen(oldest);
        }
        self.pending.push(of);
    }

    /// A value that a later one of the same call sets back, or that was one too many, counts as seen
    /// at once.
    pub(super) fn keep_pending(&self, place: &mut Option<u64>) {
        place.take_if(|place| self.pending.iter().all(|of| of.place != *place));
    }

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
        Some(Flag { cell, old, new: Some((stream, value)), page })
    }

    /// The place of a write of a value.
    pub(super) fn place_of_value(&mut self, flag: Option<Flag>) -> Option<u64> {
        let Flag { cell, old, new, page } = flag?;
        let place = self.new_place();
        self.look_for(Pending { place, cell, old, new, page, work: None });
        Some(place)
    }
}

pub(crate) fn apply(
    call: &Call,
    real: impl FnOnce() -> Code,
    stream: Handle,
    values: &[Value],
) -> Code {
    let number = begin(call, |watch| {
        let stream = watch.stream(call, stream);
        let with_place = |value: &Value| {
            watch.feed.find_stored(value.cell, || load(value.cell));
            let place = match value.wait {
                Some(_) => None,
                None => {
                    let flag = watch.flag(stream, value.cell, value.value);
                    watch.place_of_value(flag)
                }
            };
            (*value, place)
        };
        let mut values: Vec<_> = values.iter().map(with_place).collect();
        values.iter_mut().for_each(|(_, place)| watch.keep_pending(place));
        let places = values.iter().filter_map(|(_, place)| *place).collect();
        let at_once = watch.feed.capture_of(stream).is_none()
            && values.iter().any(|(value, place)| value.wait.is_none() && place.is_none());
        watch.under_way(Visible { stream, places, at_once }, move |watch| {
            for (Value { cell, value, wait }, place) in values {
                match wait {
                    Some(compare) => {
                        watch.feed.wait_value(stream, cell, value, compare);
                        watch.node(stream, Node::WaitValue(cell));
                    }
                    None => {
                        watch.feed.write_value(stream, place, cell, value);
                        watch.node(stream, Node::WriteValue(cell, value));
                    }
                }
            }
        })
    });
    let code = real();
    if let Some(number) = number {
        with(|watch| watch.returned(number, code));
    }
    code
}

pub(crate) fn batch(
    call: &Call,
    real: impl FnOnce() -> Code,
    stream: Handle,
    count: c_uint,
    operations: *const [u64; 6],
) -> Code {
    if let Some(values) = self::operations(operations, count) {
        return apply(call, real, stream, &values);
    }
    begin(call, |watch| {
        watch.seen.operations += 1;
        watch.order_everything();
        watch.note_captures();
    });
    real()
}

/// The operations of a batch; `None` if it has one of an unknown kind.
pub(super) fn operations(operations: *const [u64; 6], count: c_uint) -> Option<Vec<Value>> {
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
    // CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES and CU_STREAM_MEM_OP_BARRIER touch nothing.
    all.filter(|of| ![3, 6].contains(&(of[0] as u32))).map(value).collect()
}
