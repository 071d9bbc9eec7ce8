//! Memory: allocations, what streams do with them, and values that the host can see.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use super::calls::{Observer, Visible};
use super::nodes::Semaphore;
use super::places::{Memory, Places};
use super::streams::StreamFeed;
use crate::checker::Options;
use crate::op::{
    Access, AccessKind, By, Call, Cell, Compare, FunctionId, Op, StreamId, ThreadId, What,
};
use crate::task::Mark;

/// How many words are kept that streams wrote in host memory.
const WORDS: usize = 4096;

/// The most bytes of a flag that the host polls.
const FLAG: u64 = 8;

/// The operations of a launch, in the order of their submission.
pub(super) struct Launch {
    pub(super) functions: VecDeque<FunctionId>,
    /// The ends of the copies, memsets, writes of values and signals.
    pub(super) writes: VecDeque<Mark>,
}

/// The part of a [`Feed`](super::Feed) that knows memory, and what the host can see there.
pub struct MemoryFeed<O> {
    streams: StreamFeed<O>,
    memory: Places,
    /// Writes that can be seen without a call, by their places.
    pub(super) visible: BTreeMap<u64, Visible>,
    /// The words in host memory that streams wrote last, by their addresses: their bytes, and the
    /// values. The host may store other values there.
    words: BTreeMap<u64, (u8, u64)>,
    /// The launch whose nodes are submitted.
    pub(super) launch: Option<Launch>,
}

part!(MemoryFeed, streams: StreamFeed);

impl<O: Observer> MemoryFeed<O> {
    pub(super) fn new(options: Options, observer: O) -> Self {
        Self {
            streams: StreamFeed::new(options, observer),
            memory: Places::default(),
            visible: BTreeMap::new(),
            words: BTreeMap::new(),
            launch: None,
        }
    }

    /// The call allocates memory, registers it, or opens memory of another process.
    pub fn allocate(&mut self, address: u64, bytes: u64, memory: Memory) {
        self.forget_words(address, bytes);
        self.memory.insert(address, (bytes, memory));
        self.apply(Op::Allocate { address, bytes });
    }

    /// Memory is mapped at a part of the addresses that the program reserved.
    pub fn map_memory(&mut self, address: u64, bytes: u64, memory: Memory) {
        self.forget_words(address, bytes);
        self.memory.insert(address, (bytes, memory));
        self.apply(Op::Map { address, bytes });
    }

    /// Memory is allocated in stream order.
    pub fn allocate_async(&mut self, stream: StreamId, address: u64, bytes: u64) {
        self.memory.insert(address, (bytes, Memory::Device));
        self.work(stream, &[Access::allocate(address, bytes)]);
    }

    /// Another process may open this memory from now on.
    pub fn memory_exported(&mut self, address: u64) {
        let place = self.memory.at(address).and_then(|at| self.memory.places.get_mut(at));
        if let Some((_, memory)) = place {
            *memory = Memory::Exported;
        }
    }

    /// The call frees memory.
    pub fn free(&mut self, address: u64) {
        if let Some((bytes, _)) = self.memory.remove(address) {
            self.host(&[Access::free(address, bytes)]);
        }
    }

    /// Memory is freed in stream order.
    pub fn free_async(&mut self, stream: StreamId, address: u64) {
        if let Some((bytes, _)) = self.memory.remove(address) {
            self.work(stream, &[Access::free(address, bytes)]);
        }
    }

    /// The call unregisters memory, which remains memory of the program. It counts as a free: what
    /// the call has waited for is [reached](super::Feed::reached) before.
    pub fn unregister(&mut self, address: u64) {
        if let Some(bytes) = self.bytes_at(address) {
            self.host(&[Access::free(address, bytes)]);
        }
        self.registration_ends(address);
    }

    /// Memory is no longer registered, as its context has ended.
    pub fn registration_ends(&mut self, address: u64) {
        if let Some((bytes, _)) = self.memory.remove(address) {
            self.host(&[Access::allocate(address, bytes)]);
        }
    }

    /// Who can read the memory at an address without a call; `None` for memory that no call has
    /// allocated or registered.
    #[inline]
    #[must_use]
    pub fn memory(&self, address: u64) -> Option<Memory> {
        Some(self.memory.places.get(self.memory.at(address)?)?.1)
    }

    /// The memory that an address is in; `None` where a call has allocated, registered or opened none.
    #[must_use]
    pub fn memory_around(&self, address: u64) -> Option<Range<u64>> {
        let at = self.memory.at(address)?;
        let start = *self.memory.starts.get(at)?;
        Some(start..start.saturating_add(self.memory.places.get(at)?.0))
    }

    /// The bytes of the memory that begins at an address; `None` where none begins that a call has
    /// allocated, registered or opened.
    #[must_use]
    pub fn bytes_at(&self, start: u64) -> Option<u64> {
        let at = self.memory.starts.binary_search(&start).ok()?;
        Some(self.memory.places.get(at)?.0)
    }

    /// The call itself accesses pageable memory of the program: it reads the memory before it
    /// returns, or a stream writes the memory. Earlier uses of these addresses do not matter.
    pub fn pageable(&mut self, accesses: &[Access]) {
        let anew = |access: &Access| {
            let kind = match access.kind {
                AccessKind::Read => AccessKind::Forget,
                _ => AccessKind::Allocate,
            };
            Access { kind, ..access.clone() }
        };
        let reads = accesses.iter().filter(|access| access.kind == AccessKind::Read);
        let all: Vec<Access> = accesses.iter().map(anew).chain(reads.cloned()).collect();
        self.host(&all);
    }

    /// A kernel, or other work that the host does not poll.
    pub fn work(&mut self, stream: StreamId, accesses: &[Access]) {
        if self.launch.is_none() {
            self.apply(Op::Work { stream, accesses });
        }
    }

    /// A copy or a memset. [`written`](Self::written) with the same place reports its begin.
    pub fn write(&mut self, stream: StreamId, place: Option<u64>, accesses: &[Access]) {
        self.work(stream, accesses);
        let polled = self.polled(accesses);
        self.may_be_seen(stream, place, polled.is_some(), polled);
    }

    /// The bytes that a copy or a memset writes, if the host may poll them as a flag: as many as
    /// one load of the host reads, in memory that the host can read.
    fn polled(&self, accesses: &[Access]) -> Option<Range<u64>> {
        let mut writes = accesses.iter().filter(|access| access.kind == AccessKind::Write);
        let Range { start, end } = writes.next()?.range;
        (end - start <= FLAG && self.others_see(start)).then_some(start..end)
    }

    /// Whether the host can read what is there without a call, or another process can, which may
    /// report it to the host.
    fn others_see(&self, address: u64) -> bool {
        self.memory(address).is_some_and(|memory| memory != Memory::Device)
    }

    /// An operation is submitted that writes. In a launch it is the next node that does.
    fn may_be_seen(
        &mut self,
        stream: StreamId,
        place: Option<u64>,
        visible: bool,
        polled: Option<Range<u64>>,
    ) {
        // The write is of its launches, whose caller says nothing of it.
        if self.capture_of(stream).is_some() {
            return;
        }
        let work = match &mut self.launch {
            Some(launch) => launch.writes.pop_front(),
            None if visible => Some(self.checker.mark(What::Stream(stream))),
            None => None,
        };
        let Some(work) = work.filter(|_| visible) else { return };
        let visible = Visible { work, polled, call: self.caller() };
        match place {
            Some(place) => {
                self.visible.insert(place, visible);
            }
            None => self.may_have_seen(&visible),
        }
    }

    /// The write with this place is done, or begins. If the host can read the memory without a
    /// call, it may have seen from now on that the stream has come so far. Pass `false` for
    /// `changes` if the same value was there before: the host then sees nothing new.
    pub fn written(&mut self, place: u64, changes: bool) {
        if let Some(visible) = self.visible.remove(&place)
            && changes
        {
            self.may_have_seen(&visible);
        }
    }

    /// Whether the write with this place waits for a host function, whose end was not reported yet: nobody
    /// has seen it then.
    #[must_use]
    pub fn is_behind_function(&self, place: u64) -> bool {
        let visible = self.visible.get(&place);
        visible.is_some_and(|visible| self.checker.is_behind_function(&visible.work))
    }

    /// A stream writes a value. [`written`](Self::written) reports its end.
    pub fn write_value(&mut self, stream: StreamId, place: Option<u64>, cell: Cell, value: u64) {
        if self.launch.is_none() {
            self.apply(Op::WriteValue { stream, cell, value });
        }
        self.may_be_seen(stream, place, self.others_see(cell.address), None);
    }

    /// A stream waits for a value.
    pub fn wait_value(&mut self, stream: StreamId, cell: Cell, value: u64, compare: Compare) {
        if self.launch.is_none() {
            self.apply(Op::WaitValue { stream, cell, value, compare });
        }
    }

    /// A stream signals an external semaphore. [`written`](Self::written) reports the signal.
    pub fn signal(
        &mut self,
        stream: StreamId,
        place: Option<u64>,
        semaphore: &Semaphore,
        value: u64,
    ) {
        if self.launch.is_none() {
            let value = semaphore.signal(value);
            self.apply(Op::WriteValue { stream, cell: semaphore.cell(), value });
        }
        // The host and other processes have it too.
        self.may_be_seen(stream, place, true, None);
    }

    /// A stream waits for an external semaphore.
    pub fn wait_semaphore(&mut self, stream: StreamId, semaphore: &Semaphore, value: u64) {
        if self.launch.is_none() {
            let value = semaphore.wait(value);
            self.wait_value(stream, semaphore.cell(), value, Compare::GreaterOrEqual);
        }
    }

    /// A wait for a value or a semaphore is over. The call with this number had submitted the wait.
    /// The host or another API may have ended it.
    pub fn wait_ended(&mut self, cell: Cell, call: u64) {
        // No thread's call: the thread that came to see it has done nothing.
        let by = By::Function(FunctionId(0));
        let no_thread = Call::new(self.call.name.clone(), self.call.number, ThreadId(0));
        self.apply_as(Call { by, ..no_thread }, Op::WaitEnded { call, cell });
    }

    /// A host function is submitted.
    pub fn function(&mut self, stream: StreamId, place: u64) {
        let function = match &mut self.launch {
            Some(launch) => launch.functions.pop_front(),
            None => {
                let function = Some(self.new_function());
                self.apply(Op::Function { stream, function, accesses: &[] });
                function
            }
        };
        self.functions.extend(function.map(|function| (place, function)));
    }

    /// A stream has written a word. The host may store another value there, which
    /// [`find_stored`](Self::find_stored) finds. With
    /// [`HostOrder::Reported`](crate::HostOrder::Reported) nothing is kept, because the storing
    /// thread is not known.
    pub fn word_written(&mut self, cell: Cell, value: u64) {
        if self.reported_order || self.memory(cell.address) != Some(Memory::Host) {
            return;
        }
        if self.words.len() >= WORDS {
            self.words.clear();
        }
        let value = if cell.bytes == 8 { value } else { value & u64::from(u32::MAX) };
        self.words.insert(cell.address, (cell.bytes, value));
    }

    /// A copy or a memset of these bytes begins, or the bytes become other memory. The words there
    /// are no longer the values that streams wrote.
    pub fn forget_words(&mut self, address: u64, bytes: u64) {
        let around = address.saturating_sub(7)..address.saturating_add(bytes);
        let words =
            self.words.range(around).filter(|(at, (bytes, _))| *at + u64::from(*bytes) > address);
        for at in words.map(|(at, _)| *at).collect::<Vec<u64>>() {
            self.words.remove(&at);
        }
    }

    /// A stream will wait for a word, or write it, and the host can store values there, too. If the
    /// word differs from the value that streams have written, the host has stored it.
    pub fn find_stored(&mut self, cell: Cell, load: impl FnOnce() -> u64) {
        // It may be other memory by now, or none.
        if self.memory(cell.address) != Some(Memory::Host) {
            return;
        }
        let Some((bytes, written)) = self.words.get_mut(&cell.address) else { return };
        if *bytes != cell.bytes {
            return;
        }
        let value = load();
        if std::mem::replace(written, value) != value {
            self.apply(Op::FoundValue { cell, value });
        }
    }
}
