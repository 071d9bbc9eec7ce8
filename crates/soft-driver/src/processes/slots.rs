//! Interprocess events: their slots, who exports them, and who waits.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use core::time::Duration;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use super::platform::{self, File, View};
use crate::abi::*;
use crate::sync::lock;

/// How many slots there are in one piece of shared memory.
const SLOTS: usize = 4096;
const MAGIC: u32 = 0x4543_5303;

/// The shared memory: nothing but atomics, so that any bytes at all are a valid value.
#[repr(C)]
struct Layout {
    magic: AtomicU32,
    /// Rings, by growing, when something is done that somebody may wait for.
    bell: AtomicU32,
    /// How many threads listen. One that was killed is counted forever: then the bell rings in
    /// vain.
    listeners: AtomicU32,
    _padding: AtomicU32,
    /// The exporter's nonce, its upper half first.
    nonce: [AtomicU64; 2],
    _more_padding: [AtomicU64; 4],
    slots: [Slot; SLOTS],
}

#[repr(C)]
struct Slot {
    /// A [`Word`], as one number.
    word: AtomicU64,
    /// Grows by one when an event takes the slot, and by one when it leaves: odd while an event has
    /// it.
    generation: AtomicU64,
}

/// The parts of a slot's word: 24 bits of records made, 24 of records done, and the low 16 of how
/// many events had the slot. Those are enough to tell a late completion from the next event's;
/// stale imports are known by the generation.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Word(u64);

const COUNT_MASK: u32 = (1 << 24) - 1;

impl Word {
    fn new(made: u32, done: u32, generation: u16) -> Self {
        Self(
            u64::from(made & COUNT_MASK) << 40
                | u64::from(done & COUNT_MASK) << 16
                | u64::from(generation),
        )
    }

    fn made(self) -> u32 {
        (self.0 >> 40) as u32
    }

    fn done(self) -> u32 {
        (self.0 >> 16) as u32 & COUNT_MASK
    }

    fn generation(self) -> u16 {
        self.0 as u16
    }
}

/// A piece of shared memory, mapped.
#[derive(Debug)]
struct Mapping {
    view: View,
    /// Open, as a name may live no longer than those who have it open.
    file: File,
    /// Which one it is, for those who hold it open more than once.
    name: String,
    /// Listening already for the streams of these machines, by slot and epoch.
    watchers: Mutex<Vec<(usize, u64)>>,
}

impl Mapping {
    fn new(file: File, name: String) -> Option<Self> {
        let view = file.map(size_of::<Layout>())?;
        Some(Self { view, file, name, watchers: Mutex::new(Vec::new()) })
    }

    fn layout(&self) -> &Layout {
        // SAFETY: mapped and as long as a `Layout` while `self` lives, page-aligned, and all of it
        // atomics.
        unsafe { &*self.view.address().cast() }
    }

    /// A slot that a peer made up may be none.
    fn slot(&self, slot: u32) -> &Slot {
        &self.layout().slots[slot as usize % SLOTS]
    }

    fn load(&self, slot: u32) -> Word {
        Word(self.slot(slot).word.load(Ordering::SeqCst))
    }

    fn generation(&self, slot: u32) -> u64 {
        self.slot(slot).generation.load(Ordering::SeqCst)
    }

    /// Whether the exporter's context has ended in peace. One that was killed has not.
    fn has_ended(&self) -> bool {
        self.layout().magic.load(Ordering::SeqCst) != MAGIC
    }

    fn ring(&self) {
        let layout = self.layout();
        layout.bell.fetch_add(1, Ordering::SeqCst);
        if layout.listeners.load(Ordering::SeqCst) > 0 {
            platform::wake(&layout.bell);
        }
    }

    /// Sleeps until the bell has rung since it showed `bell`, at most `limit`.
    fn listen(&self, bell: u32, limit: Duration) {
        platform::sleep(&self.layout().bell, bell, limit);
    }

    fn nonce(&self) -> u128 {
        let [high, low] = &self.layout().nonce;
        u128::from(high.load(Ordering::SeqCst)) << 64 | u128::from(low.load(Ordering::SeqCst))
    }
}

/// A slot of a piece of shared memory.
#[derive(Debug)]
struct Cell {
    mapping: Arc<Mapping>,
    slot: u32,
}

impl Cell {
    fn load(&self) -> Word {
        self.mapping.load(self.slot)
    }

    /// Adds to what was made and done, unless the slot has another generation than the given one.
    /// The answer is the slot's generation.
    fn count(&self, made: u32, done: u32, generation: Option<u16>) -> u16 {
        let add = |word: Word| Word::new(word.made() + made, word.done() + done, word.generation());
        let shared = &self.mapping.slot(self.slot).word;
        let order = Ordering::SeqCst;
        let mut word = Word(shared.load(order));
        loop {
            let now = word.generation();
            if generation.is_some_and(|generation| generation != now) {
                return now;
            }
            // Others may have counted since.
            match shared.compare_exchange_weak(word.0, add(word).0, order, order) {
                Ok(_) => return now,
                Err(newer) => word = Word(newer),
            }
        }
    }
}

/// A record in a stream, that has to be counted as done one day.
#[derive(Debug)]
pub(crate) struct Record {
    cell: Arc<Cell>,
    generation: u16,
}

impl Record {
    /// Counts it as done, unless the slot has another event by now.
    pub(crate) fn complete(&self) {
        self.cell.count(0, 1, Some(self.generation));
        self.cell.mapping.ring();
    }
}

/// Waiting for the records that all processes had made when the wait was. A record waits for those
/// before it, so that they are done in the order in which they were made.
#[derive(Clone, Debug)]
pub(crate) struct Wait {
    cell: Arc<Cell>,
    made: u32,
    generation: u16,
}

impl Wait {
    pub(crate) fn is_done(&self) -> bool {
        let word = self.cell.load();
        // Another event in the slot: the one that was waited for is destroyed, which its owner must
        // not do.
        word.generation() != self.generation || reached(word.done(), self.made)
    }
}

/// Whether one 24-bit counter is at or past another.
fn reached(counter: u32, target: u32) -> bool {
    counter.wrapping_sub(target) & COUNT_MASK < 1 << 23
}

/// The interprocess side of an event.
pub(crate) struct SharedEvent {
    cell: Arc<Cell>,
    descriptor: Descriptor,
    imported: bool,
    /// The slot's generation that an import refers to. After the exporter has destroyed that event,
    /// the slot has another one.
    expected: Option<u64>,
    /// Whether an import of a destroyed event is misuse after its exporter's context has ended,
    /// too. Measured: the event is then done.
    strict: bool,
}

impl SharedEvent {
    pub(crate) fn imported(&self) -> bool {
        self.imported
    }

    pub(crate) fn descriptor(&self, strict: bool) -> [u8; 64] {
        self.descriptor.bytes(strict)
    }

    /// Whether all that was recorded is done, by whatever process.
    pub(crate) fn is_done(&self) -> bool {
        let word = self.cell.load();
        word.made() == word.done()
    }

    /// What is left to wait for of what was recorded.
    pub(crate) fn wait(&self) -> Option<Wait> {
        let word = self.cell.load();
        let (made, generation) = (word.made(), word.generation());
        (made != word.done()).then(|| Wait { cell: self.cell.clone(), made, generation })
    }

    /// What is wrong with using this import, if anything is.
    pub(crate) fn misused(&self) -> Option<String> {
        let Descriptor { process, context, slot, .. } = self.descriptor;
        let named = || format!("slot {slot} of context {context} of process {process}");
        if self.imported && slot as usize >= SLOTS {
            return Some(format!(
                "{}, which has only {SLOTS} slots: the descriptor was damaged or forged",
                named()
            ));
        }
        let now = self.cell.mapping.generation(slot);
        self.expected.filter(|expected| *expected != now)?;
        // After the generation: a context that ends gives up its slots first.
        if !self.strict && self.cell.mapping.has_ended() {
            return None;
        }
        let taken = if now.is_multiple_of(2) { "is free" } else { "has another event" };
        Some(format!("{}, whose event the exporter destroyed; the slot {taken} now", named()))
    }

    pub(crate) fn record(&self) -> Record {
        Record { cell: self.cell.clone(), generation: self.cell.count(1, 0, None) }
    }

    /// A record that has nothing to wait for.
    pub(crate) fn record_done(&self) {
        self.cell.count(1, 1, None);
        self.cell.mapping.ring();
    }

    /// Opens another process's event.
    pub(crate) fn import(bytes: &[u8; 64], strict: bool) -> Result<Box<Self>, CUresult> {
        let descriptor = Descriptor::parse(bytes).ok_or(MAP_FAILED)?;
        if descriptor.process == std::process::id() {
            return Err(INVALID_CONTEXT);
        }
        let before = opened();
        let found = descriptor.find(strict);
        // Not at each event of one exporter.
        if found.is_none() || opened() != before {
            platform::sweep();
        }
        let mapping = found.ok_or(MAP_FAILED)?;
        let now = mapping.generation(descriptor.slot);
        let expected = match descriptor.generation {
            // Any descriptor opens, one of a free slot included: such an import refers to the next
            // event of the slot.
            _ if !strict => Some(now).filter(|now| !now.is_multiple_of(2)),
            // An exporter with the faithful rules does not put it into the descriptor.
            0 => Some(now),
            generation => Some(generation),
        };
        let cell = Arc::new(Cell { mapping, slot: descriptor.slot });
        Ok(Box::new(Self { cell, descriptor, imported: true, expected, strict }))
    }
}

/// What the 64 bytes say. Measured: process, context and slot are all that the real driver looks
/// at. The nonce finds the right file among those that dead processes of the same number left.
#[derive(Clone)]
struct Descriptor {
    process: u32,
    context: u64,
    slot: u32,
    generation: u64,
    nonce: u128,
}

impl Descriptor {
    fn bytes(&self, strict: bool) -> [u8; 64] {
        let mut bytes = [0; 64];
        bytes[0..4].copy_from_slice(&self.process.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.context.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.slot.to_le_bytes());
        if strict {
            bytes[24..32].copy_from_slice(&self.generation.to_le_bytes());
        }
        bytes[32..48].copy_from_slice(&self.nonce.to_be_bytes());
        bytes
    }

    fn parse(bytes: &[u8; 64]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let double = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        Some(Self {
            process: word(0)?,
            context: double(8)?,
            slot: word(16)?,
            generation: double(24)?,
            nonce: u128::from_be_bytes(bytes.get(32..48)?.try_into().ok()?),
        })
    }

    fn name(&self) -> String {
        platform::name(self.process, self.context, self.nonce)
    }

    fn find(&self, strict: bool) -> Option<Arc<Mapping>> {
        let name = self.name();
        let found = open(&name).or_else(|| find_open(|opened| opened == name));
        if strict {
            return found.filter(|mapping| mapping.nonce() == self.nonce);
        }
        let stem = platform::stem(self.process, self.context);
        found
            .or_else(|| platform::names(&stem).find_map(|name| open(&name)))
            .or_else(|| find_open(|opened| opened.starts_with(&stem)))
    }
}

/// What this process has opened. Measured: what was opened once can be opened again after its
/// exporter has ended in peace, whether the import was destroyed meanwhile or not.
static OPEN: Mutex<Vec<Arc<Mapping>>> = Mutex::new(Vec::new());

/// Holds the list, for a fork.
#[cfg(all(unix, not(miri)))]
pub(crate) fn hold() -> impl Sized + 'static {
    lock(&OPEN)
}

/// How many files this process has opened.
fn opened() -> usize {
    lock(&OPEN).len()
}

fn find_open(is: impl Fn(&str) -> bool) -> Option<Arc<Mapping>> {
    let opened = lock(&OPEN);
    opened.iter().find(|mapping| is(&mapping.name)).cloned()
}

/// Opens what somebody else made, and trusts it only if it is of the same user and of the right
/// shape.
fn open(name: &str) -> Option<Arc<Mapping>> {
    let mut opened = lock(&OPEN);
    let file = File::open(name, size_of::<Layout>())?;
    let mapping = Mapping::new(file, name.to_owned())?;
    if mapping.has_ended() {
        return None;
    }
    // A process may have the number of one that has ended, and with it the name.
    let is_it = |known: &&Arc<Mapping>| known.name == name && known.nonce() == mapping.nonce();
    if let Some(known) = opened.iter().find(is_it) {
        return Some(known.clone());
    }
    let mapping = Arc::new(mapping);
    opened.push(mapping.clone());
    forget_most(&mut opened);
    Some(mapping)
}

/// How many files of dead exporters a process keeps that nothing of it uses.
const KEPT: usize = 16;

/// Lets go of what was opened first, of what nobody uses and whose exporter has ended: a process
/// that lives long may see thousands of exporters.
fn forget_most(opened: &mut Vec<Arc<Mapping>>) {
    let is_idle = |mapping: &Arc<Mapping>| Arc::strong_count(mapping) == 1;
    let mut excess = opened.iter().filter(|mapping| is_idle(mapping)).count().saturating_sub(KEPT);
    opened.retain(|mapping| {
        let goes = excess > 0 && is_idle(mapping) && mapping.file.is_orphan();
        excess -= usize::from(goes);
        !goes
    });
}

/// At the end of a driver: what exporters left behind that were killed, and this process has open,
/// is removed, as nobody else may ever look. What only others find they sweep up.
pub(crate) fn tidy_up() {
    let opened = lock(&OPEN);
    for mapping in opened.iter().filter(|mapping| mapping.file.is_orphan()) {
        platform::remove(&mapping.name);
    }
}

/// A context's shared memory, and which of its slots are free.
pub(crate) struct Exporter {
    mapping: Arc<Mapping>,
    descriptor: Descriptor,
    /// The next one to take is the last.
    free: Vec<u32>,
    slots: u32,
    process: u32,
}

impl Exporter {
    /// Makes the shared memory, under a name that is not there already.
    pub(crate) fn create(slots: u32) -> Result<Self, CUresult> {
        /// How many names are tried, as others may have them.
        const TRIES: u32 = 64;
        static CONTEXTS: AtomicU64 = AtomicU64::new(0);
        platform::sweep();
        let nonce = platform::nonce().ok_or(OPERATING_SYSTEM)?;
        let process = std::process::id();
        // A name may be taken: importers keep what a dead process of this number had.
        let made = (0..TRIES).find_map(|_| {
            let context = CONTEXTS.fetch_add(1, Ordering::Relaxed);
            let descriptor = Descriptor { process, context, slot: 0, generation: 0, nonce };
            let name = descriptor.name();
            File::create(&name, size_of::<Layout>()).map(|file| (descriptor, name, file))
        });
        let (descriptor, name, file) = made.ok_or(OPERATING_SYSTEM)?;
        let Some(mapping) = Mapping::new(file, name.clone()) else {
            platform::remove(&name);
            return Err(OPERATING_SYSTEM);
        };
        let layout = mapping.layout();
        let [high, low] = &layout.nonce;
        high.store((nonce >> 64) as u64, Ordering::SeqCst);
        low.store(nonce as u64, Ordering::SeqCst);
        layout.magic.store(MAGIC, Ordering::SeqCst);
        let slots = slots.min(SLOTS as u32);
        // Measured: slots are given out from the top.
        let free = (SLOTS as u32 - slots..SLOTS as u32).collect();
        Ok(Self { mapping: Arc::new(mapping), descriptor, free, slots, process })
    }

    pub(crate) fn take_slot(&mut self) -> Result<Box<SharedEvent>, CUresult> {
        let slot = self.free.pop().ok_or(OUT_OF_MEMORY)?;
        let generation = self.mapping.slot(slot).generation.fetch_add(1, Ordering::SeqCst) + 1;
        let fresh = Word::new(0, 0, generation.div_ceil(2) as u16);
        self.mapping.slot(slot).word.store(fresh.0, Ordering::SeqCst);
        // Ends the waits for the earlier event of the slot.
        self.mapping.ring();
        let cell = Arc::new(Cell { mapping: self.mapping.clone(), slot });
        let descriptor = Descriptor { slot, generation, ..self.descriptor.clone() };
        Ok(Box::new(SharedEvent {
            cell,
            descriptor,
            imported: false,
            expected: None,
            strict: false,
        }))
    }

    pub(crate) fn owns(&self, event: &SharedEvent) -> bool {
        !event.imported() && Arc::ptr_eq(&self.mapping, &event.cell.mapping)
    }

    pub(crate) fn free_slot(&mut self, event: SharedEvent) {
        self.mapping.slot(event.cell.slot).generation.fetch_add(1, Ordering::SeqCst);
        self.free.push(event.cell.slot);
    }

    /// How many slots are taken.
    pub(crate) fn live(&self) -> usize {
        self.slots as usize - self.free.len()
    }
}

impl Drop for Exporter {
    /// The creator removes the name, and has nobody open it who still finds one; those who have it
    /// open keep what they have. A forked child is not the creator.
    fn drop(&mut self) {
        if self.process == std::process::id() {
            self.mapping.layout().magic.store(0, Ordering::SeqCst);
            platform::remove(&self.mapping.name);
        }
    }
}

/// Counts a listener while it lives.
struct Listener<'a>(&'a Mapping);

impl<'a> Listener<'a> {
    fn new(mapping: &'a Mapping) -> Self {
        mapping.layout().listeners.fetch_add(1, Ordering::SeqCst);
        Self(mapping)
    }
}

impl Drop for Listener<'_> {
    fn drop(&mut self) {
        self.0.layout().listeners.fetch_sub(1, Ordering::SeqCst);
    }
}

/// How long a listener sleeps before it looks whether its machine is still there.
const PATIENCE: Duration = Duration::from_millis(100);

/// Has the calling thread wait until `look` has an answer: it is asked first, and after each ring
/// of the bell.
pub(crate) fn block(wait: &Wait, look: impl Fn() -> Option<Answer>) -> Answer {
    let mapping = &wait.cell.mapping;
    let _listener = Listener::new(mapping);
    loop {
        let bell = mapping.layout().bell.load(Ordering::SeqCst);
        if let Some(answer) = look() {
            return answer;
        }
        mapping.listen(bell, PATIENCE);
    }
}

/// Has a thread listen for the streams of a machine, by its slot and epoch: one for each file and
/// machine. It ends when `look` says that none of them waits any more, with the lock under which it
/// looked: a stream that waits from then on finds no listener. The answer is the thread, if a new
/// one was needed.
pub(crate) fn watch<Locked: 'static>(
    wait: &Wait,
    watcher: (usize, u64),
    look: impl Fn() -> Option<Locked> + Send + 'static,
) -> Option<JoinHandle<()>> {
    let mapping = wait.cell.mapping.clone();
    let mut watchers = lock(&mapping.watchers);
    if watchers.contains(&watcher) {
        return None;
    }
    let watched = mapping.clone();
    let thread = std::thread::Builder::new()
        .name("cuda-soft-ipc".to_owned())
        .spawn(move || listen_for_streams(&watched, watcher, look));
    match thread {
        Ok(thread) => {
            watchers.push(watcher);
            Some(thread)
        }
        Err(error) => {
            crate::say!(
                "cannot start a thread that waits for another process's event, so a stream waits \
                 forever: {error}"
            );
            None
        }
    }
}

fn listen_for_streams<Locked>(
    mapping: &Mapping,
    watcher: (usize, u64),
    look: impl Fn() -> Option<Locked>,
) {
    let _listener = Listener::new(mapping);
    loop {
        let bell = mapping.layout().bell.load(Ordering::SeqCst);
        if let Some(_locked) = look() {
            let mut watchers = lock(&mapping.watchers);
            watchers.retain(|other| *other != watcher);
            return;
        }
        mapping.listen(bell, PATIENCE);
    }
}
