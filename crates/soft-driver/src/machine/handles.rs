//! Handles: tagged numbers that are never dereferenced, so that a stale or foreign one is
//! recognised.
//!
//! They look like the real ones, which are addresses: below 2^47 and aligned, so that a program may
//! keep one in a signed or floating-point number. From the top: 4 bits of kind, 4 of machine, 4 of
//! the machine's life, 11 that are 0, 21 of number, 3 that are 0. The kinds are chosen so that
//! the addresses are in a part of the address space where no system maps anything: code that
//! mistakes a handle for a pointer faults at once.
//!
//! A handle comes back, as on a card, so that a program which keeps state by handle is caught. A
//! card gives the place of a destroyed stream, node or user object to the next one, also while the
//! work of that stream goes on. Of the other kinds it has some places that are free, and gives the
//! one that was free for longest.

use std::collections::VecDeque;

/// What a handle names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Kind {
    Context = 0b0010,
    Stream = 0b0011,
    Event = 0b0100,
    Graph = 0b0101,
    Node = 0b0110,
    Exec = 0b0111,
    UserObject = 0b1000,
    Green = 0b1001,
    Pool = 0b1010,
    Semaphore = 0b1011,
    Module = 0b1100,
    Function = 0b1101,
    Memory = 0b1110,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Context => "context",
            Self::Stream => "stream",
            Self::Event => "event",
            Self::Graph => "graph",
            Self::Node => "graph node",
            Self::Exec => "executable graph",
            Self::UserObject => "user object",
            Self::Green => "green context",
            Self::Pool => "memory pool",
            Self::Semaphore => "external semaphore",
            Self::Module => "module",
            Self::Function => "function",
            Self::Memory => "memory handle",
        }
    }

    /// The kind that a number claims to be.
    pub(crate) fn of(handle: u64) -> Option<Self> {
        let all = [Self::Context, Self::Stream, Self::Event, Self::Graph, Self::Node, Self::Exec];
        let more = [Self::UserObject, Self::Green, Self::Pool, Self::Semaphore];
        let all = all.into_iter().chain(more).chain([Self::Module, Self::Function]);
        let all = all.chain([Self::Memory]);
        all.into_iter().find(|kind| *kind as u64 == handle >> KIND_AT && handle & 7 == 0)
    }
}

/// How many places a table has at first where the one is given that was free for longest.
const PLACES_AT_FIRST: u32 = 4;

const INDEX_AT: u32 = 3;
const INDEX_BITS: u32 = 21;
const LIFE_AT: u32 = INDEX_AT + INDEX_BITS + 11;
const LIFE_BITS: u32 = 4;
const SLOT_AT: u32 = LIFE_AT + LIFE_BITS;
const KIND_AT: u32 = SLOT_AT + 4;

fn pack(kind: Kind, slot: usize, life: u64, number: u32) -> u64 {
    (kind as u64) << KIND_AT
        | (slot as u64) << SLOT_AT
        | (life & ((1 << LIFE_BITS) - 1)) << LIFE_AT
        | u64::from(number) << INDEX_AT
}

struct Entry<T> {
    /// The number of the call that made it.
    born: u64,
    value: Option<T>,
    /// That of its handle: mostly its index.
    number: u32,
    /// That of the next handle here. It is another one if the next object elsewhere has this handle.
    then: u32,
}

impl<T> Entry<T> {
    const fn free(number: u32) -> Self {
        Self { born: 0, value: None, number, then: number }
    }
}

/// Why a number is not a handle of something that lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Bad {
    /// Nothing that this crate gave out.
    Foreign,
    /// A handle of this kind instead.
    OtherKind(Kind),
    /// It came from the machine in that slot.
    OtherMachine(usize),
    /// Its object was destroyed.
    Stale,
    /// It was good on a driver that had this place before.
    EarlierLife,
}

/// Everything of one kind on one machine.
pub(crate) struct Table<T> {
    kind: Kind,
    slot: usize,
    /// Which owner of the machine this is.
    life: u64,
    entries: Vec<Entry<T>>,
    /// Where the last object of each number is.
    at: Vec<u32>,
    /// The places without anything: the one that was free for longest first.
    free: VecDeque<u32>,
    live: usize,
    /// How many there may be: as many as the bits of an index allow, and fewer in a test.
    pub(crate) places: usize,
}

impl<T> Table<T> {
    pub(crate) const fn new(kind: Kind, slot: usize) -> Self {
        Self {
            kind,
            slot,
            life: 0,
            entries: Vec::new(),
            at: Vec::new(),
            free: VecDeque::new(),
            live: 0,
            places: 1 << INDEX_BITS,
        }
    }

    /// Forgets everything, for the next life of the machine.
    pub(crate) fn reset(&mut self, life: u64) {
        self.life = life;
        self.entries = Vec::new();
        self.at = Vec::new();
        self.free = VecDeque::new();
        self.live = 0;
        self.places = 1 << INDEX_BITS;
    }

    /// Whether [`insert`](Self::insert) has a place.
    pub(crate) fn has_room(&self) -> bool {
        self.room() > 0
    }

    /// How many more places there are.
    pub(crate) fn room(&self) -> usize {
        self.places.saturating_sub(self.live)
    }

    /// Takes a place; `None` when all 2 million are taken.
    pub(crate) fn insert(&mut self, born: u64, value: T) -> Option<(u32, u64)> {
        if !self.has_room() {
            return None;
        }
        let index = match self.next_free() {
            Some(index) => index,
            None => {
                let more = self.entries.is_empty() && !self.is_last_first();
                let fresh = if more { PLACES_AT_FIRST } else { 1 };
                let first = self.add(fresh)?;
                self.free.extend(first + 1..first + fresh);
                first
            }
        };
        let entry = &mut self.entries[index as usize];
        (entry.born, entry.value) = (born, Some(value));
        self.at[entry.number as usize] = index;
        self.live += 1;
        Some((index, self.handle(index)))
    }

    /// Adds places, each with a number of its own. The first of them.
    fn add(&mut self, fresh: u32) -> Option<u32> {
        let first = u32::try_from(self.entries.len()).ok()?;
        self.entries.extend((first..first + fresh).map(Entry::free));
        self.at.extend(first..first + fresh);
        Some(first)
    }

    /// What is at `index` was destroyed, and goes on: the next object gets its handle, which finds
    /// that one from then on. If all places are taken, the handle comes back when it ends.
    pub(crate) fn hand_on(&mut self, index: u32) {
        let place = match self.free.pop_back() {
            Some(place) => place,
            None if self.entries.len() < self.places => match self.add(1) {
                Some(place) => place,
                None => return,
            },
            None => return,
        };
        let (ends, next) = (index as usize, place as usize);
        self.entries[ends].then = self.entries[next].number;
        self.entries[next] = Entry::free(self.entries[ends].number);
        self.free.push_back(place);
    }

    /// Whether the next one gets the place of the one that went last. Measured.
    const fn is_last_first(&self) -> bool {
        matches!(self.kind, Kind::Stream | Kind::Node | Kind::UserObject)
    }

    fn next_free(&mut self) -> Option<u32> {
        if self.is_last_first() { self.free.pop_back() } else { self.free.pop_front() }
    }

    /// The index of a handle.
    pub(crate) fn find(&self, handle: u64) -> Result<u32, Bad> {
        let number = (handle >> INDEX_AT) as u32 & ((1 << INDEX_BITS) - 1);
        if let Some(index) = self.at.get(number as usize).copied()
            && handle == self.handle(index)
            && self.get(index).is_some()
        {
            return Ok(index);
        }
        let slot = (handle >> SLOT_AT & 0xF) as usize;
        Err(match Kind::of(handle) {
            None => Bad::Foreign,
            Some(kind) if kind != self.kind => Bad::OtherKind(kind),
            Some(_) if slot != self.slot => Bad::OtherMachine(slot),
            Some(_)
                if handle >> LIFE_AT & ((1 << LIFE_BITS) - 1)
                    != self.life & ((1 << LIFE_BITS) - 1) =>
            {
                Bad::EarlierLife
            }
            Some(_) => Bad::Stale,
        })
    }

    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        self.entries.get(index as usize)?.value.as_ref()
    }

    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.entries.get_mut(index as usize)?.value.as_mut()
    }

    pub(crate) fn remove(&mut self, index: u32) -> Option<T> {
        let entry = self.entries.get_mut(index as usize)?;
        let value = entry.value.take()?;
        entry.number = entry.then;
        self.free.push_back(index);
        self.live -= 1;
        Some(value)
    }

    /// The slot of the machine.
    pub(crate) fn slot(&self) -> usize {
        self.slot
    }

    /// How many objects are alive.
    pub(crate) fn len(&self) -> usize {
        self.live
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.entries
            .iter()
            .enumerate()
            .filter_map(|(index, entry)| Some((index as u32, entry.value.as_ref()?)))
    }

    /// The indices of some of those that live.
    pub(crate) fn indices(&self, counts: impl Fn(&T) -> bool) -> Vec<u32> {
        self.iter().filter(|(_, value)| counts(value)).map(|(index, _)| index).collect()
    }

    /// The handles of some of those that live, with the calls that made them.
    pub(crate) fn live(&self, counts: impl Fn(u32, &T) -> bool) -> Vec<(u64, u64)> {
        let live = self.iter().filter(|(index, value)| counts(*index, value));
        live.map(|(index, _)| (self.handle(index), self.born(index))).collect()
    }

    /// The number of the call that made what lives at `index`.
    pub(crate) fn born(&self, index: u32) -> u64 {
        self.entries.get(index as usize).map_or(0, |entry| entry.born)
    }

    /// The handle of what lives at `index`.
    pub(crate) fn handle(&self, index: u32) -> u64 {
        let number = self.entries.get(index as usize).map_or(index, |entry| entry.number);
        pack(self.kind, self.slot, self.life, number)
    }
}

/// Indexing is for indices that came out of the same table under the same lock.
impl<T> core::ops::Index<u32> for Table<T> {
    type Output = T;

    fn index(&self, index: u32) -> &T {
        match self.get(index) {
            Some(value) => value,
            None => gone(self.kind, index),
        }
    }
}

impl<T> core::ops::IndexMut<u32> for Table<T> {
    fn index_mut(&mut self, index: u32) -> &mut T {
        let kind = self.kind;
        match self.get_mut(index) {
            Some(value) => value,
            None => gone(kind, index),
        }
    }
}

#[cold]
fn gone(kind: Kind, index: u32) -> ! {
    panic!(
        "cuda-soft-driver: a bug in the software driver itself: {} {index} is gone",
        kind.name()
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_come_back_as_on_a_card() {
        let [mut streams, mut events] = [Kind::Stream, Kind::Event].map(|kind| Table::new(kind, 0));
        let made = |table: &mut Table<()>| table.insert(0, ()).unwrap();
        // A place that became free last is used first.
        let [a, b, c] = [(); 3].map(|()| made(&mut streams));
        for (index, _) in [b, c] {
            streams.remove(index);
        }
        assert_eq!([(); 2].map(|()| made(&mut streams)), [c, b]);
        assert!(![a, b, c].contains(&made(&mut streams)));
        // The first one first, and four in turn.
        let mut round = || {
            let entry = made(&mut events);
            events.remove(entry.0);
            entry
        };
        let first = [(); 4].map(|()| round());
        assert_eq!([(); 4].map(|()| round()), first);
        assert!(!first[1..].contains(&first[0]));
    }

    #[test]
    fn the_handle_of_what_goes_on_is_that_of_the_next_one() {
        let mut table = Table::new(Kind::Stream, 0);
        let [(first, handle), (_, other)] = [0, 1].map(|born| table.insert(born, born).unwrap());
        table.hand_on(first);
        assert_eq!(table.find(handle), Ok(first), "until there is another one");
        let (second, again) = table.insert(2, 2).unwrap();
        assert_eq!((again, table.find(handle)), (handle, Ok(second)));
        assert_eq!([first, second].map(|index| table.handle(index)), [handle; 2]);
        // Once more, and the first one ends before the second one.
        table.hand_on(second);
        let (third, again) = table.insert(3, 3).unwrap();
        assert_eq!((again, table.find(handle)), (handle, Ok(third)));
        assert_eq!(table.remove(first), Some(0));
        assert_eq!(table.find(handle), Ok(third));
        assert_eq!(table.remove(second), Some(2));
        assert_eq!(table.remove(third), Some(3));
        assert_eq!(table.find(handle), Err(Bad::Stale));
        // Each number is there once.
        let all: Vec<_> = (0..6).map(|born| table.insert(born, born).unwrap()).collect();
        let mut handles: Vec<_> = all.iter().map(|entry| entry.1).chain([other]).collect();
        assert!(all.iter().all(|(index, handle)| table.find(*handle) == Ok(*index)));
        handles.sort_unstable();
        handles.dedup();
        assert_eq!(handles.len(), 7);
        // Where all places are taken, it comes back at the end.
        let mut full = Table::new(Kind::Stream, 0);
        full.places = 1;
        let (only, handle) = full.insert(0, ()).unwrap();
        full.hand_on(only);
        assert!(full.insert(1, ()).is_none() && full.find(handle) == Ok(only));
        full.remove(only);
        assert_eq!(full.insert(1, ()), Some((only, handle)));
    }

    #[test]
    fn stale_handles_are_recognised() {
        let mut table = Table::new(Kind::Event, 3);
        let (index, handle) = table.insert(1, "a").unwrap();
        assert_eq!(table.find(handle), Ok(index));
        assert!(handle < 1 << 47 && handle.is_multiple_of(8), "{handle:#x}");
        assert!(
            (1 << 44..5 << 44).contains(&handle),
            "{handle:#x} may be where something is mapped"
        );

        let elsewhere: Table<&str> = Table::new(Kind::Event, 4);
        assert_eq!(elsewhere.find(handle), Err(Bad::OtherMachine(3)));
        assert_eq!(table.find(0xdead_beef), Err(Bad::Foreign));
        let mut streams = Table::new(Kind::Stream, 3);
        let (_, stream) = streams.insert(1, ()).unwrap();
        assert_eq!(table.find(stream), Err(Bad::OtherKind(Kind::Stream)));

        table.remove(index);
        assert_eq!(table.find(handle), Err(Bad::Stale));
        let (second, other) = table.insert(2, "b").unwrap();
        assert_eq!(table.find(handle), Err(Bad::Stale));
        assert_eq!(table.find(other), Ok(second));
        table.reset(1);
        assert_eq!(table.find(other), Err(Bad::EarlierLife));
        let (_, third) = table.insert(3, "c").unwrap();
        assert_ne!(third, other);
    }
}
