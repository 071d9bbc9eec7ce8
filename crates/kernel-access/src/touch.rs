//! What a kernel does with the memory that its parameters lead to.
//!
//! [`summary`] says for each word of the parameters whether addresses are made from it, and what is
//! done there; [`may_touch`] says for a launch where each access can be, and [`surely_touched`] has
//! accesses that some threads make.
//!
//! The first two are bounds: all threads are evaluated at once, and what is not understood may be
//! anything. They are true if
//! * the kernel is well-formed: it reads no register that it has not written, and by the address of its
//!   parameters nothing beside them;
//! * no loop of it turns more than 2^48 times;
//! * it does not put an address together from conditions, one bit after the other;
//! * a tensor map among the parameters is as the driver makes it, in the layout that `ptxas` knows, and
//!   what a copy's box has outside of the tensor is not touched;
//! * what it divides by a number of the launch is divided as compilers do: code that makes the same
//!   product by hand, and leaves out the corrections after it, is taken for a division.
//!
//! Of PTX all of this is said of the text, which the driver compiles: reads of which nothing depends are
//! not sure, as it may leave them out.
//!
//! The last is true if the kernel ends, without a trap, and its tensor maps are such ones. That the code says so is all that is meant:
//! whether another kernel may run at the same time is another question.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

use crate::code::{Code, Launch};
use crate::decode::{Access, AccessKind, INSTRUCTION, Space};
use crate::evaluate::{Evaluator, Found, Seen};
use crate::parameters::{Unread, bytes_read_by};
use crate::symbols::Gaps;
use crate::words::{ADDRESS, MEMORY, STORED};

pub use crate::threads::surely_touched;

/// Why it is not known what a kernel touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unknown {
    /// It may read its parameters, or touch memory, in a way that is not seen.
    Parameters(Unread),
    /// Blocks run repeatedly that have no single entry.
    Irreducible,
    /// It has too many instructions and loops for an answer in the time that is allowed.
    TooLong,
    /// The access at this offset seems never to happen, so something was not understood.
    NeverReached(usize),
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unknown::Parameters(reason) => reason.fmt(f),
            Unknown::Irreducible => f.write_str("a loop has more than one entry"),
            Unknown::TooLong => f.write_str("there is no answer in the time that is allowed"),
            Unknown::NeverReached(at) => write!(f, "the access at {at:#x} seems never to happen"),
        }
    }
}

impl std::error::Error for Unknown {}

/// What is done at addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Uses {
    /// Memory there may be read.
    pub read: bool,
    /// Memory there may be written.
    pub written: bool,
    /// Memory there may be changed by atomic operations and reductions.
    pub atomic: bool,
    /// It is a part of addresses in another way, as an index is, or is kept in memory. What is touched
    /// by that may be anything.
    pub other: bool,
}

impl Uses {
    /// Whether none of them is known to be possible: no address is made from it.
    pub fn none(&self) -> bool {
        *self == Self::default()
    }

    fn add(&mut self, kind: AccessKind) {
        match kind {
            AccessKind::Read | AccessKind::CopyToShared => self.read = true,
            AccessKind::Write => self.written = true,
            AccessKind::Atomic | AccessKind::Reduce => self.atomic = true,
            AccessKind::Unknown => self.other = true,
        }
    }
}

/// Eight bytes of the parameters, at a multiple of eight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Word {
    /// Where they are.
    pub offset: u32,
    /// Whether the kernel reads any of them. What it does not read has no effect.
    pub used: bool,
    /// What may be done at addresses that are made from them.
    pub uses: Uses,
    /// What of it is done at addresses to which they are added. The rest is done where it is not known
    /// what is added: at an address of this word, or of another that is in the address.
    pub as_base: Uses,
}

/// What a kernel does with addresses among its parameters, whatever they are and however it is
/// launched.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Each word of the parameters, and behind them one for each variable in
    /// [`Code::variables`](Code::variables), as if its address were a parameter.
    pub words: Vec<Word>,
    /// What is done at addresses that come from memory: tables of pointers, variables of the module.
    /// `other` is an index from memory, beside a word.
    pub memory: Uses,
    /// The word by which blocks may signal each other, as those of a scan in one pass do: at addresses that
    /// it is the base of, strong stores come before all loads by which the kernel may wait, and there are
    /// no atomic operations.
    pub signals: Option<u32>,
}

/// Where the blocks of a launch seem to signal each other.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Table {
    /// Where they store: one place for each block.
    pub places: Range<u64>,
    /// From where on they may look for signals, as far as bounds tell: those of a few threads, which may be
    /// taken for those of all.
    pub first: u64,
}

impl Summary {
    /// Of a launch that may wait, the table by which its blocks seem to signal each other. All strong stores are of the table, which has one place for
    /// each block, and what is waited for are earlier places: of as many as a block has threads, where bounds
    /// say it. Nothing waits for the last place, as partners do that answer there, and blocks that meet; and
    /// the first block does not wait, as that of a later part does, whose table goes on where another
    /// launch's ends.
    ///
    /// Another launch may use the same table all the same: `launch` and `spans` say nothing of others.
    pub fn signals_in(&self, code: &Code, launch: &Launch, spans: &[Span]) -> Option<Table> {
        self.signals?;
        let product =
            |sizes: [u32; 3]| sizes.iter().try_fold(1, |all, &of| u64::checked_mul(all, of.into()));
        let (blocks, threads) = (product(launch.grid)?, product(launch.block)?);
        let is_store = |span: &&Span| span.strong && span.kind == AccessKind::Write;
        let stores = || spans.iter().filter(is_store);
        let place = code.access(stores().next()?.at)?.bytes;
        let hull = |all: &Range<u64>, of: &Range<u64>| all.start.min(of.start)..all.end.max(of.end);
        let mut table: Option<Range<u64>> = None;
        for store in stores() {
            let bytes = store.bytes.as_ref()?;
            table = Some(table.map_or(bytes.clone(), |all| hull(&all, bytes)));
        }
        let (table, place) = (table?, u64::from(place));
        let before = table.start.checked_sub(threads.checked_mul(place)?)?;
        let is_place = |span: &Span| {
            let bytes = code.access(span.at).map(|access| u64::from(access.bytes));
            let start = span.bytes.as_ref().map(|of| of.start % place);
            bytes == Some(place) && start == Some(table.start % place)
        };
        let mut is_waited = false;
        for poll in spans.iter().filter(|span| code.polls_at(span.at)) {
            let bytes = poll.bytes.as_ref().filter(|_| is_place(poll))?;
            // An index that is counted down by what is found there may be any.
            if bytes.end - bytes.start < 1 << 32 {
                is_waited = true;
                if bytes.start < before || bytes.end > table.end - place {
                    return None;
                }
            }
        }
        let is_table = blocks > 1
            && Some(table.end - table.start) == blocks.checked_mul(place)
            && stores().all(is_place);
        let first_waits = || {
            let spans = may_touch(code, &launch.first_block());
            spans.map_or(true, |spans| code.may_wait_in(&spans))
        };
        let found = Table { places: table, first: before };
        (is_table && is_waited && !first_waits()).then_some(found)
    }
}

/// What the kernel does with each word of its parameters.
///
/// # Errors
///
/// When it may touch memory in a way that is not seen: nothing is known of any word then.
pub fn summary(code: &Code) -> Result<Summary, Unknown> {
    let read = bytes_read_by(code.architecture, code.parameters, &code.instructions)
        .map_err(Unknown::Parameters)?;
    let mut found = evaluate(code, None, true)?;
    let missing = |found: &Found| {
        let seen: BTreeSet<usize> = found.accesses.iter().map(|seen| seen.at).collect();
        code.accesses().find(|at| !seen.contains(at))
    };
    // Compilers leave code that never runs. What it would do is no reason to know nothing of the rest, and
    // that it never runs none to leave it out.
    if missing(&found).is_some() {
        found = evaluate(code, None, false)?;
    }
    if let Some(at) = missing(&found) {
        return Err(Unknown::NeverReached(at));
    }
    let end = code.parameters.1;
    let is_read = |offset: u32| {
        let mut read = read.iter();
        offset >= end || read.any(|range| range.start < offset + 8 && offset < range.end)
    };
    let mut words: Vec<Word> = code
        .words()
        .map(|offset| Word {
            offset,
            used: is_read(offset),
            uses: Uses::default(),
            as_base: Uses::default(),
        })
        .collect();
    let mut based = vec![Uses::default(); words.len()];
    let mut memory = Uses::default();
    let mut of = |offset: u32, use_it: &dyn Fn(&mut Uses)| {
        // What is done by a variable is done where no parameter says it.
        if offset == MEMORY || offset >= end && offset < STORED.min(ADDRESS) {
            use_it(&mut memory);
        }
        if let Some(word) = words.get_mut(offset as usize / 8) {
            use_it(&mut word.uses);
        }
    };
    for Seen { access, bases, others, is_of_launch, .. } in &found.accesses {
        if *is_of_launch {
            continue;
        }
        for offset in bases.iter() {
            of(offset, &|uses| uses.add(access.kind));
            if let Some(word) = based.get_mut(offset as usize / 8) {
                word.add(access.kind);
            }
        }
        for offset in others.iter() {
            // Without a base each of them may be it.
            of(offset, &|uses| {
                if bases.is_empty() { uses.add(access.kind) } else { uses.other = true }
            });
        }
    }
    for offset in found.stored.iter() {
        if let Some(word) = words.get_mut(offset as usize / 8) {
            word.uses.other = true;
        }
    }
    for (word, based) in words.iter_mut().zip(based) {
        word.as_base = based;
    }
    let signals = signals(code, &found.accesses, &words);
    Ok(Summary { words, memory, signals })
}

fn signals(code: &Code, all: &[Seen], words: &[Word]) -> Option<u32> {
    let only = |seen: &Seen| {
        let mut bases = seen.bases.iter();
        bases.next().filter(|&base| base != MEMORY && bases.next().is_none())
    };
    let polls: Vec<&Seen> = all.iter().filter(|seen| code.polls_at(seen.at)).collect();
    let word = only(polls.first()?)?;
    let is_loaded = |seen: &&Seen| only(seen) == Some(word) && seen.access.kind == AccessKind::Read;
    let uses = words.get(word as usize / 8)?.uses;
    if uses.atomic || !polls.iter().all(is_loaded) {
        return None;
    }
    // A block comes before those that follow it. A function has blocks for each call.
    let places = |at: usize| {
        let blocks = code.graph.blocks.iter().enumerate();
        blocks
            .filter(move |(_, block)| block.instructions.contains(&(at / INSTRUCTION)))
            .map(move |(block, _)| (block, at))
    };
    let is_store = |seen: &&Seen| {
        only(seen) == Some(word) && seen.access.strong && seen.access.kind == AccessKind::Write
    };
    let stored = all.iter().filter(is_store).filter_map(|seen| places(seen.at).max()).min()?;
    let polled = polls.iter().filter_map(|seen| places(seen.at).min()).min()?;
    (stored < polled).then_some(word)
}

/// An access, and where it may be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Span {
    /// The instruction's offset in the code.
    pub at: usize,
    /// In which way.
    pub kind: AccessKind,
    /// All bytes that it may touch are in here. `None` if it may be anywhere.
    pub bytes: Option<Range<u64>>,
    /// All that it may touch is in these rows, too: those of a matrix, or the planes of a cube and the
    /// rows in them. None if it may touch all of the bytes.
    pub rows: Vec<Rows>,
    /// Where it is depends on what memory contains, as that of a gather does.
    pub from_memory: bool,
    /// As [`Access::strong`](crate::decode::Access::strong) has it.
    pub strong: bool,
}

impl Code {
    /// [`may_wait`](Self::may_wait) for a launch, with what [`may_touch`] says of it: the
    /// parameters may leave the loop out, as those of a matrix product that is not split do.
    pub fn may_wait_in(&self, launch: &[Span]) -> bool {
        launch.iter().any(|span| self.polls_at(span.at))
    }
}

impl Span {
    /// Whether it may touch any of these bytes.
    pub fn may_touch(&self, bytes: &Range<u64>) -> bool {
        let Some(own) = &self.bytes else { return !bytes.is_empty() };
        let common = own.start.max(bytes.start)..own.end.min(bytes.end);
        !common.is_empty() && self.rows.iter().all(|rows| rows.touch(&common))
    }

    /// The same for those of the bytes that are in rows, which may be too many to ask for each.
    pub fn may_touch_rows(&self, bytes: &Range<u64>, rows: &Rows) -> bool {
        let apart = self.bytes.is_some() && self.rows.iter().any(|own| own.are_apart(rows));
        self.may_touch(bytes) && !apart
    }

    /// Whether both may touch the same byte.
    pub fn may_meet(&self, other: &Self) -> bool {
        let (Some(own), Some(others)) = (&self.bytes, &other.bytes) else { return true };
        let are_apart = |rows: &Rows| other.rows.iter().any(|others| rows.are_apart(others));
        self.may_touch(others) && other.may_touch(own) && !self.rows.iter().any(are_apart)
    }
}

/// Runs of bytes, the first bytes of which are at the same distance from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rows {
    /// Where one of them begins: it may be any of them.
    pub start: u64,
    /// How many bytes each has: less than `pitch`.
    pub width: u64,
    /// How far the next one's first byte is.
    pub pitch: u64,
}

impl Rows {
    /// Rows of `width` bytes, one of which begins at `start`, and the next one `pitch` bytes behind it.
    pub fn new(start: u64, width: u64, pitch: u64) -> Self {
        Self { start, width, pitch }
    }

    /// Where a place is in its row, and behind it.
    fn column(&self, at: u64) -> u64 {
        (i128::from(at) - i128::from(self.start)).rem_euclid(self.pitch.max(1).into()) as u64
    }

    /// Whether any of these bytes is in a row.
    pub fn touch(&self, bytes: &Range<u64>) -> bool {
        let column = self.column(bytes.start);
        !bytes.is_empty()
            && (column < self.width || self.pitch.saturating_sub(column) < bytes.end - bytes.start)
    }

    /// Whether the columns of both are apart, in all rows that there could be.
    fn are_apart(&self, other: &Self) -> bool {
        let (mut pitch, mut rest) = (self.pitch, other.pitch);
        while rest > 0 {
            (pitch, rest) = (rest, pitch % rest);
        }
        let column = Rows { pitch, ..*self }.column(other.start);
        self.width <= column && column.checked_add(other.width).is_some_and(|end| end <= pitch)
    }
}

/// Where each access to global memory may be, of all threads of a launch. One that is not here does
/// not happen.
///
/// # Errors
///
/// When the kernel may touch memory in a way that is not seen.
pub fn may_touch(code: &Code, launch: &Launch) -> Result<Vec<Span>, Unknown> {
    bytes_read_by(code.architecture, code.parameters, &code.instructions)
        .map_err(Unknown::Parameters)?;
    let found = evaluate(code, Some(launch), true)?;
    let mut spans: Vec<Span> = Vec::new();
    for seen in found.accesses {
        let Seen { at, access, bounds, gaps, others, is_tile, is_of_any_size, .. } = seen;
        if seen.is_of_launch {
            continue;
        }
        let count = i128::from(access.bytes);
        let bytes = match bounds {
            (Some(low), Some(high)) => range(low, high.saturating_add(count)),
            _ => None,
        };
        let rows: Vec<Rows> = match (&bytes, bounds.0) {
            (Some(_), Some(low)) => gaps.iter().filter_map(|gaps| rows(gaps, count, low)).collect(),
            _ => Vec::new(),
        };
        // Otherwise which part of a tensor is copied is not known, as with an index from memory. Neither is
        // how far a bulk copy of any size goes.
        let is_unknown = access.space == Space::Tensor && !is_tile || is_of_any_size;
        let from_memory = is_unknown || others.iter().any(|word| word == MEMORY);
        // A function that is called from several places has several.
        match spans.iter_mut().find(|span| span.at == at) {
            None => {
                let Access { kind, strong, .. } = access;
                spans.push(Span { at, kind, bytes, rows, from_memory, strong });
            }
            Some(span) => {
                span.bytes = span
                    .bytes
                    .take()
                    .zip(bytes)
                    .map(|(one, two)| one.start.min(two.start)..one.end.max(two.end));
                span.rows.retain(|of| rows.contains(of));
                span.from_memory |= from_memory;
            }
        }
    }
    Ok(spans)
}

/// Addresses are numbers of 64 bits.
const ALL: i128 = 1 << 64;

/// What is taken from a number with this least value to make it an address.
fn shift(low: i128) -> i128 {
    low.div_euclid(ALL) * ALL
}

fn range(low: i128, end: i128) -> Option<Range<u64>> {
    let shift = shift(low);
    let (start, end) = (u64::try_from(low - shift), u64::try_from(end - shift));
    start.ok().zip(end.ok()).filter(|(start, end)| start < end).map(|(start, end)| start..end)
}

/// Rows in which accesses are of so many bytes.
fn rows(gaps: &Gaps, bytes: i128, low: i128) -> Option<Rows> {
    let start = u64::try_from((gaps.first - shift(low)).rem_euclid(gaps.pitch)).ok()?;
    let width = u64::try_from(gaps.width.checked_add(bytes)?).ok()?;
    let pitch = u64::try_from(gaps.pitch).ok()?;
    Some(Rows { start, width, pitch })
}

/// Ranges of bytes in rising order, without overlaps.
pub fn joined(mut all: Vec<Range<u64>>) -> Vec<Range<u64>> {
    all.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in all {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

fn evaluate(code: &Code, launch: Option<&Launch>, prunes: bool) -> Result<Found, Unknown> {
    if code.graph.irreducible {
        return Err(Unknown::Irreducible);
    }
    Evaluator::run(code, launch, prunes).map_err(|_| Unknown::TooLong)
}
