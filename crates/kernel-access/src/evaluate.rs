//! All threads of a kernel at once: each register as a sum of multiples of numbers that are the same
//! for a thread, with bounds.
//!
//! A register holds its form modulo 2^32, a pair of registers one modulo 2^64. So sums and products
//! need no thought of overflows; only where a number is compared, divided, shifted to the right or
//! made wider it matters which of the numbers it is, and then the form gets a multiple of its
//! quotient by 2^32, which is 0 where the bounds say so.
//!
//! A symbol is one number in one turn of the loops around it, so what is known of it stays true as
//! long as it is meant. Where a loop begins again, forms with symbols that it made are forgotten.
//! A register at a loop's head is what it was before the loop, plus a step for each turn, or the
//! quotient of another that is, or any number. What is assumed there is looked at after each round,
//! and dropped if it is not what the loop's end has, until nothing changes.

mod accesses;
mod arithmetic;
mod blocks;
mod compare;
mod loops;
mod results;
mod truth;
mod values;

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use rustc_hash::FxHashMap as HashMap;

use crate::code::{Code, Launch};
use crate::decode::Access;
use crate::facts::Facts;
use crate::form::{Bounds, Form, SINGLE, Symbol};
use crate::live::Counts;
use crate::symbols::{Gaps, Symbols};
use crate::words::{ADDRESS, MEMORY, STORED, Words};
use truth::Truth;

const DOUBLE: i128 = 1 << 64;
/// Facts that a state keeps, and rounds of all blocks and instructions after which there is no answer.
const MOST_FACTS: usize = 24;
const MOST_ROUNDS: usize = 60;
const MOST_STEPS: usize = 400_000;
const MOST_WORK: u64 = 2_000_000;
/// What was found is kept of the blocks of a kernel if they have so many registers together: a block has
/// up to four states with 40 bytes for each.
const MOST_KEPT: usize = 1 << 18;

/// An access to global memory as it may happen.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) at: usize,
    pub(crate) access: Access,
    /// The address's bounds.
    pub(crate) bounds: Bounds,
    /// What it leaves out between them, of a launch.
    pub(crate) gaps: Vec<Gaps>,
    /// The words that are in it with all their value, once, and are nothing else there.
    pub(crate) bases: Words,
    /// The other words that may be in it.
    pub(crate) others: Words,
    /// It is a copy of tiles, and where these begin does not depend on memory.
    pub(crate) is_tile: bool,
    /// It is a bulk copy, and memory says how many bytes it has, or nothing does.
    pub(crate) is_of_any_size: bool,
    /// It is of what only this launch has, and of no other memory: it reads the parameters, or is where the
    /// blocks of a cooperative launch meet.
    pub(crate) is_of_launch: bool,
}

impl Seen {
    fn new(at: usize, access: Access) -> Self {
        Self {
            at,
            access,
            bounds: (None, None),
            gaps: Vec::new(),
            bases: Words::new(),
            others: Words::new(),
            is_tile: false,
            is_of_any_size: false,
            is_of_launch: false,
        }
    }
}

/// What the evaluation found.
pub(crate) struct Found {
    pub(crate) accesses: Vec<Seen>,
    /// Words that may be in memory of any kind.
    pub(crate) stored: Words,
}

/// No fixed point was found in the time that is allowed.
pub(crate) struct TooLong;

/// A register: a form, or one of two by a predicate.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Plain(Rc<Form>),
    Chosen { by: (bool, u16), values: [Rc<Form>; 2] },
}

#[derive(Clone, PartialEq)]
struct State {
    /// Copied where one of them is written.
    registers: [Rc<Vec<Value>>; 2],
    predicates: [Vec<Rc<Truth>>; 2],
    facts: Rc<Facts>,
    guesses: Rc<Vec<Form>>,
}

impl State {
    fn set(&mut self, kind: usize, number: usize, value: Value) {
        Rc::make_mut(&mut self.registers[kind])[number] = value;
    }
}

/// What an evaluation of a block found. With the same state it is the same until a symbol changes that
/// the state depends on: those that the block makes change only where it makes them, and what it reads
/// of them comes after that.
struct Known {
    /// How many changes there were before.
    changes: u64,
    /// What it begins with, and what is made of that: where a loop begins the second is another.
    ways: Vec<Rc<State>>,
    joined: Rc<State>,
    state: Rc<State>,
    next: Vec<(usize, Rc<State>)>,
}

/// What was found so far.
struct Progress {
    /// Of each block those that it may come after.
    before: Vec<Vec<usize>>,
    blocks: Vec<Option<Known>>,
    is_kept: bool,
    /// The accesses of each block.
    seen: Vec<Vec<Seen>>,
    /// By the block that they come from, and where they go.
    edges: HashMap<(usize, usize), Rc<State>>,
    /// Of heads of loops the state before the loop, and in each turn.
    entries: HashMap<usize, (Rc<State>, Rc<State>)>,
    start: Rc<State>,
    /// How many blocks may be looked at yet.
    visits: usize,
}

/// What a register is at a loop's head.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Same,
    Step(i128),
    /// The quotient of another register by 2^32.
    High(bool, u16),
    Lost,
}

struct Head {
    inside: Vec<bool>,
    turns: Symbol,
    modes: HashMap<(bool, u16), Mode>,
    lost_predicates: BTreeSet<(bool, usize)>,
    /// What was in lost registers.
    words: HashMap<(bool, u16), Words>,
    invariants: Vec<Form>,
    refuted: Vec<Form>,
}

pub(crate) struct Evaluator<'a> {
    code: &'a Code,
    launch: Option<&'a Launch>,
    /// Ways that cannot be taken are left out.
    prunes: bool,
    symbols: Symbols,
    parameters: HashMap<u32, Symbol>,
    /// What constants say of clusters, by their offsets.
    clusters: HashMap<u32, Symbol>,
    /// The parameters' address.
    address: Option<Symbol>,
    /// Where the blocks of a cooperative launch meet.
    meeting: Option<Symbol>,
    threads: [Symbol; 3],
    blocks: [Symbol; 3],
    sizes: [[Form; 3]; 2],
    stored: Words,
    heads: HashMap<usize, Head>,
    /// What registers have where nobody reads it: it need not be followed where ways meet.
    unread: [Vec<Value>; 2],
    seen: Vec<Seen>,
    steps: usize,
    end: Option<(fn() -> Duration, Duration)>,
    /// The block and the instruction in it that is evaluated, and how many symbols it made.
    place: (usize, usize, usize),
}

impl<'a> Evaluator<'a> {
    pub(crate) fn run(
        code: &'a Code,
        launch: Option<&'a Launch>,
        prunes: bool,
    ) -> Result<Found, TooLong> {
        let mut symbols = Symbols::default();
        let size = |grid: bool, axis: usize| {
            launch.map(|launch| i128::from(if grid { launch.grid } else { launch.block }[axis]))
        };
        let most = |grid, axis| {
            size(grid, axis).unwrap_or(if grid { i128::from(i32::MAX) } else { 1024 }).max(1)
        };
        let is_first = launch.is_some_and(|launch| launch.is_first_block);
        let mut one = |grid: bool, axis: usize| {
            let last = if grid && is_first { 0 } else { most(grid, axis) - 1 };
            symbols.fixed(0, last, Words::new())
        };
        let threads = [0, 1, 2].map(|axis| one(false, axis));
        let blocks = [0, 1, 2].map(|axis| one(true, axis));
        let sizes = [false, true].map(|grid| {
            [0, 1, 2].map(|axis| match size(grid, axis) {
                Some(size) => Form::number(size),
                None => Form::symbol(symbols.fixed(1, most(grid, axis), Words::new())),
            })
        });
        let heads = code
            .graph
            .loops
            .iter()
            .map(|one| {
                let mut inside = vec![false; code.graph.blocks.len()];
                for &block in &one.blocks {
                    inside[block] = true;
                }
                let head = Head {
                    inside,
                    turns: symbols.turns(one.head),
                    modes: HashMap::default(),
                    lost_predicates: BTreeSet::new(),
                    words: HashMap::default(),
                    invariants: Vec::new(),
                    refuted: Vec::new(),
                };
                (one.head, head)
            })
            .collect();
        let mut all: Words = code.words().collect();
        all.extend(Words::from([MEMORY, STORED, ADDRESS]));
        let mut any = || {
            let symbol = symbols.fixed(0, SINGLE - 1, all.clone());
            Value::Plain(Rc::new(Form::symbol(symbol)))
        };
        let unread = code.counts.registers.map(|count| (0..count).map(|_| any()).collect());
        let mut evaluator = Self {
            code,
            launch,
            prunes,
            symbols,
            parameters: HashMap::default(),
            clusters: HashMap::default(),
            address: None,
            meeting: None,
            threads,
            blocks,
            sizes,
            stored: Words::new(),
            heads,
            unread,
            seen: Vec::new(),
            steps: MOST_STEPS,
            end: code.time.map(|(clock, time)| (clock, clock().saturating_add(time))),
            place: (0, 0, 0),
        };
        evaluator.rounds()?;
        let Self { mut seen, mut stored, .. } = evaluator;
        // What is stored may have been loaded. With the parameters' address each of them may be.
        stored.resolve(&Words::new());
        for one in &mut seen {
            one.bases.resolve(&stored);
            one.others.resolve(&stored);
        }
        Ok(Found { accesses: seen, stored })
    }

    /// Evaluates all blocks until nothing changes: a loop, with those in it, before what comes after it.
    fn rounds(&mut self) -> Result<(), TooLong> {
        let count = self.code.graph.blocks.len();
        let mut before = vec![Vec::new(); count];
        for (at, block) in self.code.graph.blocks.iter().enumerate() {
            for &next in &block.next {
                before[next].push(at);
            }
        }
        let is_kept = count * self.code.counts.registers.iter().sum::<usize>() <= MOST_KEPT;
        let mut progress = Progress {
            before,
            blocks: (0..count).map(|_| None).collect(),
            is_kept,
            seen: vec![Vec::new(); count],
            edges: HashMap::default(),
            entries: HashMap::default(),
            start: Rc::new(self.start()),
            visits: count.saturating_mul(MOST_ROUNDS),
        };
        let order = self.order();
        // The last time nothing changes.
        loop {
            let changes = self.symbols.changes;
            self.settle(&order, &mut progress)?;
            if changes == self.symbols.changes {
                break;
            }
        }
        self.seen = progress.seen.into_iter().flatten().collect();
        Ok(())
    }

    /// The blocks in their order, but those of a loop together, and with its head how many these are.
    fn order(&self) -> Vec<(usize, usize)> {
        let graph = &self.code.graph;
        let mut order: Vec<(usize, usize)> = Vec::new();
        let mut is_placed = vec![false; graph.blocks.len()];
        let all: Vec<usize> = (0..graph.blocks.len()).collect();
        // What is to be placed, and where the head is that it belongs to.
        let mut open = vec![(all.iter(), None)];
        while let Some((blocks, head)) = open.last_mut() {
            let Some(&at) = blocks.next() else {
                let length = head.map(|head: usize| (head, order.len() - head));
                if let Some((head, length)) = length
                    && let Some(head) = order.get_mut(head)
                {
                    head.1 = length;
                }
                open.pop();
                continue;
            };
            let is_new = is_placed.get_mut(at).is_some_and(|done| !std::mem::replace(done, true));
            if is_new {
                let own = graph.loops.binary_search_by_key(&at, |own| own.head);
                if let Some(own) = own.ok().and_then(|own| graph.loops.get(own)) {
                    open.push((own.blocks.iter(), Some(order.len())));
                }
                order.push((at, 0));
            }
        }
        order
    }

    /// Evaluates all blocks, and those of a loop until what is assumed of it holds.
    fn settle(&mut self, order: &[(usize, usize)], progress: &mut Progress) -> Result<(), TooLong> {
        // Where the loops that are open begin and end, and how many changes there were before a turn.
        let mut open: Vec<(usize, usize, u64)> = Vec::new();
        let mut next = 0;
        loop {
            if let Some((first, end, changes)) = open.last_mut()
                && next == *end
            {
                let Some(&(head, _)) = order.get(*first) else { break };
                if self.holds(head, progress) && *changes == self.symbols.changes {
                    open.pop();
                    continue;
                }
                *changes = self.symbols.changes;
                next = *first;
            } else if let Some((_, length @ 1..)) = order.get(next) {
                open.push((next, next + length, self.symbols.changes));
            }
            let Some(&(at, _)) = order.get(next) else { break };
            progress.visits = progress.visits.checked_sub(1).ok_or(TooLong)?;
            self.visit(at, progress)?;
            next += 1;
        }
        Ok(())
    }

    /// Evaluates a block, if what it begins with is not what it was.
    fn visit(&mut self, at: usize, progress: &mut Progress) -> Result<(), TooLong> {
        let Some(ways_in) = progress.before.get(at) else { return Ok(()) };
        // Each way in comes from an earlier block, except around loops.
        let mut ways: Vec<Rc<State>> = ways_in
            .iter()
            .filter(|&&from| from < at)
            .filter_map(|&from| progress.edges.get(&(from, at)).cloned())
            .collect();
        if at == 0 {
            ways.push(progress.start.clone());
        }
        let mut known = progress.blocks.get_mut(at).and_then(Option::take);
        // The same ways meet in the same state: what a way depends on did not change either, or
        // the block that it comes from is evaluated again, at the latest in the next round, and
        // the last round is one without changes.
        let is_same = |of: &Known| {
            of.ways.len() == ways.len()
                && of.ways.iter().zip(&ways).all(|(own, way)| Rc::ptr_eq(own, way))
        };
        let joined = match &known {
            Some(of) if is_same(of) => Some(of.joined.clone()),
            _ => self.join(at, &ways),
        };
        if let Some(block) = self.code.graph.blocks.get(at) {
            for &next in &block.next {
                progress.edges.remove(&(at, next));
            }
        }
        progress.entries.remove(&at);
        let Some(joined) = joined else {
            if let Some(seen) = progress.seen.get_mut(at) {
                seen.clear();
            }
            return Ok(());
        };
        let state = if self.heads.contains_key(&at) {
            let head = Rc::new(self.head(at, &joined));
            progress.entries.insert(at, (joined.clone(), head.clone()));
            head
        } else {
            joined.clone()
        };
        known.take_if(|of| {
            !Rc::ptr_eq(&of.state, &state) && of.state != state
                || of.changes != self.symbols.changes && self.changed(&state) > of.changes
        });
        let known = match known {
            Some(known) => Known { ways, joined, ..known },
            None => {
                let changes = self.symbols.changes;
                self.seen.clear();
                let next = self.block(at, State::clone(&state))?.into_iter();
                let next = next.map(|(to, state)| (to, Rc::new(state))).collect();
                if let Some(seen) = progress.seen.get_mut(at) {
                    *seen = std::mem::take(&mut self.seen);
                }
                Known { changes, ways, joined, state, next }
            }
        };
        progress.edges.extend(known.next.iter().map(|(to, state)| ((at, *to), state.clone())));
        if progress.is_kept
            && let Some(place) = progress.blocks.get_mut(at)
        {
            *place = Some(known);
        }
        Ok(())
    }

    /// Whether what is assumed of a loop holds.
    fn holds(&mut self, at: usize, progress: &Progress) -> bool {
        let Some((entry, head)) = progress.entries.get(&at) else { return true };
        let ways = progress.before.get(at).into_iter().flatten();
        let back: Vec<&State> = ways
            .filter(|&&from| from >= at)
            .filter_map(|&from| progress.edges.get(&(from, at)).map(Rc::as_ref))
            .collect();
        self.check(at, entry, head, &back)
    }

    /// When a symbol that the state depends on has changed last.
    fn changed(&self, state: &State) -> u64 {
        let registers = state.registers.iter().flat_map(|all| all.iter());
        let registers = registers.flat_map(values::forms);
        let truths = state.predicates.iter().flatten().flat_map(|truth| truth.forms());
        let facts = state.facts.iter().chain(state.guesses.iter());
        let all = registers.chain(truths).chain(facts);
        all.map(|form| self.symbols.changed(&form.terms).last).max().unwrap_or_default()
    }

    /// Each register has something in it that is no parameter.
    fn start(&mut self) -> State {
        self.place = (0, usize::MAX, 0);
        let Counts { registers, predicates } = self.code.counts;
        let mut any = |count: usize| -> Vec<Value> {
            (0..count).map(|_| Value::Plain(Rc::new(self.single(&Words::new())))).collect()
        };
        let unknown = Rc::new(Truth::default());
        State {
            registers: registers.map(|count| Rc::new(any(count))),
            predicates: predicates.map(|count| vec![unknown.clone(); count]),
            facts: Rc::default(),
            guesses: Rc::default(),
        }
    }

    /// A new symbol for what the current instruction makes.
    fn fresh(&mut self, bounds: (i128, i128), most: (i128, i128), words: &Words) -> Form {
        let place = self.place;
        self.place.2 += 1;
        Form::symbol(self.symbols.at(place, bounds, most, words))
    }

    /// Any number of a register.
    fn single(&mut self, words: &Words) -> Form {
        self.fresh((0, SINGLE - 1), (0, SINGLE - 1), words)
    }

    /// Any number of a pair of registers.
    fn double(&mut self, words: &Words) -> Form {
        self.fresh((0, DOUBLE - 1), (0, DOUBLE - 1), words)
    }

    fn words_of(&self, forms: &[&Form]) -> Words {
        let mut words = Words::new();
        for form in forms {
            self.symbols.words(form, &mut words);
        }
        words
    }

    /// All words of the parameters and variables.
    fn all(&self) -> Words {
        self.code.words().chain([MEMORY]).collect()
    }
}
