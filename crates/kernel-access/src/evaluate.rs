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

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::time::Instant;

use crate::code::{Code, Constant, Counts, Launch};
use crate::decode::{
    Access, AccessKind, Comparison, INSTRUCTION, Instruction, Junction, Operand, Operation,
    Predicate, Register, Source, Space,
};
use crate::execute::{ZERO, after, always, logic};
use crate::form::{Bounds, Form, Gaps, SINGLE, Symbol, Symbols};
use crate::words::{MEMORY, Words};

const DOUBLE: i128 = 1 << 64;
/// Facts that a state keeps, and rounds and instructions after which there is no answer.
const MOST_FACTS: usize = 24;
const MOST_ROUNDS: usize = 60;
const MOST_STEPS: usize = 400_000;
const MOST_WORK: u64 = 2_000_000;

/// Instructions that read no more than one register at each place.
const SINGLES: [&str; 27] = [
    "FSEL",
    "FSET",
    "IDP",
    "MATCH",
    "SGXT",
    "VIMNMX3",
    "FMNMX",
    "FMUL",
    "FADD",
    "FFMA",
    "HFMA2",
    "HADD2",
    "HMUL2",
    "F2FP",
    "F2IP",
    "I2FP",
    "VIADDMNMX",
    "PRMT",
    "BMSK",
    "FLO",
    "BREV",
    "POPC",
    "SHFL",
    "UPRMT",
    "UBMSK",
    "UFLO",
    "UPOPC",
];

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
}

/// What the evaluation found.
pub(crate) struct Found {
    pub(crate) accesses: Vec<Seen>,
    /// Words that may be in memory of any kind.
    pub(crate) stored: Words,
}

/// No fixed point was found in the time that is allowed.
pub(crate) struct TooLong;

/// A predicate: what holds if it is true, and if it is false.
#[derive(Clone, Debug, Default, PartialEq)]
struct Truth {
    known: Option<bool>,
    /// Forms that are not negative if it is true, and if it is false.
    holds: [Vec<Form>; 2],
    /// The same if a number that was compared did not overflow: what a loop may turn out to keep.
    guesses: [Vec<Form>; 2],
    /// A carry, and the predicate that holds a part of it.
    carry: Option<(Form, Option<u16>)>,
    /// It is the comparison of two numbers without sign: the first is less, or also equal, or only
    /// equal, or not equal.
    low: Option<(Comparison, Form, Form)>,
    /// All of this only if that predicate has that value.
    only_if: Option<((bool, u16), bool)>,
}

impl Truth {
    fn known(value: bool) -> Self {
        Self { known: Some(value), ..Self::default() }
    }

    fn not(mut self) -> Self {
        self.known = self.known.map(|known| !known);
        self.holds.swap(0, 1);
        self.guesses.swap(0, 1);
        self.carry = None;
        self.low = match self.low {
            Some((Comparison::Less, x, y)) => Some((Comparison::LessOrEqual, y, x)),
            Some((Comparison::LessOrEqual, x, y)) => Some((Comparison::Less, y, x)),
            Some((Comparison::Equal, x, y)) => Some((Comparison::NotEqual, x, y)),
            Some((Comparison::NotEqual, x, y)) => Some((Comparison::Equal, x, y)),
            _ => None,
        };
        self
    }
}

/// A register: a form, or one of two by a predicate.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Plain(Rc<Form>),
    Chosen { by: (bool, u16), values: [Rc<Form>; 2] },
}

#[derive(Clone)]
struct State {
    registers: [Vec<Value>; 2],
    predicates: [Vec<Rc<Truth>>; 2],
    facts: Vec<Form>,
    guesses: Vec<Form>,
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
    symbols: Symbols,
    parameters: HashMap<u32, Symbol>,
    threads: [Symbol; 3],
    blocks: [Symbol; 3],
    sizes: [[Form; 3]; 2],
    stored: Words,
    heads: HashMap<usize, Head>,
    seen: Vec<Seen>,
    steps: usize,
    end: Option<Instant>,
    /// The block and the instruction in it that is evaluated, and how many symbols it made.
    place: (usize, usize, usize),
}

impl<'a> Evaluator<'a> {
    pub(crate) fn run(code: &'a Code, launch: Option<&'a Launch>) -> Result<Found, TooLong> {
        let mut symbols = Symbols::default();
        let size = |grid: bool, axis: usize| {
            launch.map(|launch| i128::from(if grid { launch.grid } else { launch.block }[axis]))
        };
        let most = |grid, axis| {
            size(grid, axis).unwrap_or(if grid { i128::from(i32::MAX) } else { 1024 }).max(1)
        };
        let mut one =
            |grid: bool, axis: usize| symbols.fixed(0, most(grid, axis) - 1, Words::new());
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
                    modes: HashMap::new(),
                    lost_predicates: BTreeSet::new(),
                    words: HashMap::new(),
                    invariants: Vec::new(),
                    refuted: Vec::new(),
                };
                (one.head, head)
            })
            .collect();
        let mut evaluator = Self {
            code,
            launch,
            symbols,
            parameters: HashMap::new(),
            threads,
            blocks,
            sizes,
            stored: Words::new(),
            heads,
            seen: Vec::new(),
            steps: MOST_STEPS,
            end: code.time.and_then(|time| Instant::now().checked_add(time)),
            place: (0, 0, 0),
        };
        evaluator.rounds()?;
        Ok(Found { accesses: evaluator.seen, stored: evaluator.stored })
    }

    fn rounds(&mut self) -> Result<(), TooLong> {
        let count = self.code.graph.blocks.len();
        let mut before = vec![Vec::new(); count];
        for (at, block) in self.code.graph.blocks.iter().enumerate() {
            for &next in &block.next {
                before[next].push(at);
            }
        }
        for _ in 0..MOST_ROUNDS {
            self.symbols.changed = false;
            self.seen.clear();
            let stored = self.stored.clone();
            // By the block that they come from, and where they go.
            let mut edges: HashMap<(usize, usize), State> = HashMap::new();
            let mut entries: HashMap<usize, (State, State)> = HashMap::new();
            for (at, ways_in) in before.iter().enumerate() {
                // Each way in comes from an earlier block, except around loops.
                let mut ways: Vec<&State> = ways_in
                    .iter()
                    .filter(|&&from| from < at)
                    .filter_map(|&from| edges.get(&(from, at)))
                    .collect();
                let start = (at == 0).then(|| self.start());
                ways.extend(&start);
                let Some(state) = self.join(at, &ways) else { continue };
                let state = if self.heads.contains_key(&at) {
                    let head = self.head(at, &state);
                    entries.insert(at, (state, head.clone()));
                    head
                } else {
                    state
                };
                for (to, state) in self.block(at, state)? {
                    edges.insert((at, to), state);
                }
            }
            let mut stable = !self.symbols.changed && stored == self.stored;
            let mut order: Vec<usize> = entries.keys().copied().collect();
            order.sort_unstable();
            for at in order {
                let Some((entry, head)) = entries.get(&at) else { continue };
                let back: Vec<&State> = before[at]
                    .iter()
                    .filter(|&&from| from >= at)
                    .filter_map(|&from| edges.get(&(from, at)))
                    .collect();
                stable &= self.check(at, entry, head, &back);
            }
            if stable && !self.symbols.changed {
                return Ok(());
            }
        }
        Err(TooLong)
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
            registers: registers.map(&mut any),
            predicates: predicates.map(|count| vec![unknown.clone(); count]),
            facts: Vec::new(),
            guesses: Vec::new(),
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

    /// What holds whichever way was taken.
    fn join(&mut self, at: usize, ways: &[&State]) -> Option<State> {
        let (first, rest) = ways.split_first()?;
        let mut state: State = (*first).clone();
        for (way, other) in rest.iter().enumerate() {
            for kind in 0..2 {
                for number in 0..state.registers[kind].len() {
                    let (one, two) =
                        (&state.registers[kind][number], &other.registers[kind][number]);
                    if one == two {
                        continue;
                    }
                    // Each way has places of its own.
                    self.place = (at, usize::MAX - 16 - way, (number + 256 * kind) * 16);
                    let (one, two) = (self.either(&state, &one.clone()), self.either(other, two));
                    let form = self.hull((&one, &state.facts), (&two, &other.facts));
                    state.registers[kind][number] = Value::Plain(Rc::new(form));
                }
                for number in 0..state.predicates[kind].len() {
                    if state.predicates[kind][number] != other.predicates[kind][number] {
                        state.predicates[kind][number] = Rc::default();
                    }
                }
            }
            let mut facts: Vec<Form> = Vec::new();
            for (own, others) in [(&state.facts, &other.facts), (&other.facts, &state.facts)] {
                for fact in own {
                    if !facts.contains(fact) && self.implied(fact, others) {
                        facts.push(fact.clone());
                    }
                }
            }
            state.facts = facts;
            state.guesses.retain(|guess| other.guesses.contains(guess));
        }
        Some(state)
    }

    fn implied(&self, fact: &Form, facts: &[Form]) -> bool {
        self.symbols.is_implied(fact, facts)
    }

    /// One form for what may be one or another.
    fn hull(&mut self, (one, facts): (&Form, &[Form]), (two, other): (&Form, &[Form])) -> Form {
        if one == two {
            return one.clone();
        }
        // What both have stays.
        let mut common = Form::number(0);
        common.terms = one.terms.iter().copied().filter(|term| two.terms.contains(term)).collect();
        let words = self.words_of(&[one, two]);
        let rests = one.plus(-1, &common).zip(two.plus(-1, &common));
        if let Some((first, second)) = rests
            && let (Some(low), Some(high)) = self.symbols.bounds(&first, facts)
            && let (Some(other_low), Some(other_high)) = self.symbols.bounds(&second, other)
            && low.min(other_low) > -(1 << 70)
            && high.max(other_high) < 1 << 70
        {
            let words = self.words_of(&[&first, &second]);
            let most = (-(1 << 70), 1 << 70);
            let rest = self.fresh((low.min(other_low), high.max(other_high)), most, &words);
            if let Some(form) = common.plus(1, &rest) {
                return form;
            }
        }
        self.place.2 += 1;
        self.single(&words)
    }

    /// The state at a loop's head, by what is assumed of the loop.
    fn head(&mut self, at: usize, entry: &State) -> State {
        let mut state = entry.clone();
        let Some(head) = self.heads.get(&at) else { return state };
        let turns = Form::symbol(head.turns);
        let modes = head.modes.clone();
        let lost = head.words.clone();
        for &(uniform, number) in &head.lost_predicates {
            state.predicates[usize::from(uniform)][number] = Rc::default();
        }
        state.facts.extend(head.invariants.iter().cloned());
        state.guesses.clear();
        // What is chosen by a predicate may be chosen by another value of it in the next turn.
        for kind in 0..2 {
            for number in 0..state.registers[kind].len() {
                let place = (at, usize::MAX - 3, (number + 256 * kind) * 16);
                if let Value::Chosen { .. } = &state.registers[kind][number] {
                    self.place = place;
                    let form = self.either(&state, &state.registers[kind][number].clone());
                    state.registers[kind][number] = Value::Plain(Rc::new(form));
                }
            }
        }
        let mut order: Vec<_> = modes.into_iter().collect();
        // Quotients last, of what the others are.
        order.sort_by_key(|((uniform, number), mode)| {
            (matches!(mode, Mode::High(..)), *uniform, *number)
        });
        let facts = state.facts.clone();
        for ((uniform, number), mode) in order {
            let (kind, slot) = (usize::from(uniform), usize::from(number));
            self.place = (at, usize::MAX - 4, (slot + 256 * kind) * 16);
            let own = plain(&state.registers[kind][slot]);
            let form = match mode {
                Mode::Same => continue,
                Mode::Step(step) => own.plus(step, &turns),
                Mode::High(uniform, number) => {
                    let low = plain(&state.registers[usize::from(uniform)][usize::from(number)]);
                    self.symbols.quotient(&low, SINGLE, &facts)
                }
                Mode::Lost => None,
            };
            let form = form.unwrap_or_else(|| {
                let mut words = lost.get(&(uniform, number)).cloned().unwrap_or_default();
                self.symbols.words(&own, &mut words);
                self.single(&words)
            });
            state.registers[kind][slot] = Value::Plain(Rc::new(form));
        }
        state
    }

    /// Whether what was assumed of a loop is so. What is not is assumed no more.
    fn check(&mut self, at: usize, entry: &State, state: &State, back: &[&State]) -> bool {
        let Some(mut head) = self.heads.remove(&at) else { return true };
        let mut stable = true;
        let next = Form::symbol(head.turns).and(1).unwrap_or_else(|| Form::number(0));
        let first = Form::number(0);
        for back in back {
            for kind in 0..2 {
                for slot in 0..state.registers[kind].len() {
                    let key = (kind == 1, slot as u16);
                    let mode = head.modes.get(&key).copied().unwrap_or(Mode::Same);
                    let value = &back.registers[kind][slot];
                    if mode == Mode::Lost {
                        let mut words = Words::new();
                        for form in forms(value) {
                            self.symbols.words(form, &mut words);
                        }
                        let known = head.words.entry(key).or_default();
                        if !words.is_subset(known) {
                            known.extend(words);
                            stable = false;
                        }
                        continue;
                    }
                    let assumed = plain(&state.registers[kind][slot]);
                    let found = match value {
                        Value::Plain(form) => Some(form),
                        Value::Chosen { .. } => None,
                    };
                    // What it is at the beginning of the next turn, if that is so.
                    let expected = (!self.varies(&assumed, &head, at))
                        .then(|| self.symbols.replace(&assumed, head.turns, &next))
                        .flatten();
                    let mut fits = found
                        .zip(expected.as_ref())
                        .is_some_and(|(found, expected)| found.is_congruent(expected));
                    if let Mode::High(uniform, number) = mode {
                        let of = head.modes.get(&(uniform, number));
                        fits &= !matches!(of, Some(Mode::Lost | Mode::High(..)))
                            && self.is_high(entry, key, (uniform, number));
                    }
                    if fits {
                        continue;
                    }
                    stable = false;
                    let difference =
                        found.zip(expected).and_then(|(found, expected)| found.plus(-1, &expected));
                    let step = difference.as_ref().and_then(Form::as_number);
                    let mode = match (mode, step, difference) {
                        (Mode::Same, Some(step), _) => Mode::Step(step),
                        (Mode::Same, None, Some(difference)) => {
                            self.high(key, &difference, &head, entry, state).unwrap_or(Mode::Lost)
                        }
                        _ => Mode::Lost,
                    };
                    head.modes.insert(key, mode);
                }
                for number in 0..state.predicates[kind].len() {
                    // One that is made in the loop may be about other numbers in each turn.
                    let same = entry.predicates[kind][number] == back.predicates[kind][number];
                    if !same && head.lost_predicates.insert((kind == 1, number)) {
                        stable = false;
                    }
                }
            }
        }
        // What is assumed must hold before the first turn, and after each.
        let mut kept = Vec::new();
        for fact in std::mem::take(&mut head.invariants) {
            let before = self.symbols.replace(&fact, head.turns, &first);
            let after = self.symbols.replace(&fact, head.turns, &next);
            let holds = before.is_some_and(|fact| self.implied(&fact, &entry.facts))
                && after
                    .is_some_and(|fact| back.iter().all(|back| self.implied(&fact, &back.facts)));
            if holds {
                kept.push(fact);
            } else {
                head.refuted.push(fact);
                stable = false;
            }
        }
        head.invariants = kept;
        // What holds at the end of a turn may hold at the beginning of each.
        if let Some((one, rest)) = back.split_first() {
            let last = Form::symbol(head.turns).and(-1).unwrap_or_else(|| Form::number(0));
            for fact in one.facts.iter().chain(&one.guesses) {
                let about_turns = fact.factor(head.turns) != 0;
                let everywhere = rest
                    .iter()
                    .all(|back| back.facts.contains(fact) || back.guesses.contains(fact));
                if !about_turns || !everywhere || self.varies(fact, &head, at) {
                    continue;
                }
                let Some(earlier) = self.symbols.replace(fact, head.turns, &last) else { continue };
                let at_first = self.symbols.replace(&earlier, head.turns, &first);
                if head.invariants.len() < 8
                    && head.refuted.len() < 16
                    && !head.invariants.contains(&earlier)
                    && !head.refuted.contains(&earlier)
                    && at_first.is_some_and(|fact| self.implied(&fact, &entry.facts))
                {
                    head.invariants.push(earlier);
                    stable = false;
                }
            }
        }
        self.heads.insert(at, head);
        stable
    }

    fn varies(&self, form: &Form, head: &Head, at: usize) -> bool {
        self.symbols.varies(form, at, &head.inside)
    }

    /// Whether a register is the quotient of another by 2^32.
    fn is_high(&mut self, state: &State, own: (bool, u16), of: (bool, u16)) -> bool {
        let get = |(uniform, number): (bool, u16)| match &state.registers[usize::from(uniform)]
            [usize::from(number)]
        {
            Value::Plain(form) => Some(form.clone()),
            Value::Chosen { .. } => None,
        };
        let (Some(own), Some(of)) = (get(own), get(of)) else { return false };
        let quotient = self.symbols.quotient(&of, SINGLE, &state.facts);
        quotient.is_some_and(|quotient| quotient.is_congruent(&own))
    }

    /// The register that this one is the upper half of: before the loop, and as far as it changes in a
    /// turn by `difference`.
    fn high(
        &mut self,
        own: (bool, u16),
        difference: &Form,
        head: &Head,
        entry: &State,
        state: &State,
    ) -> Option<Mode> {
        let mut steps: Vec<((bool, u16), i128)> = head
            .modes
            .iter()
            .filter_map(|(&key, mode)| match mode {
                Mode::Step(step) => Some((key, *step)),
                _ => None,
            })
            .collect();
        steps.sort_unstable();
        steps.into_iter().find_map(|(of, step)| {
            let low = plain(&state.registers[usize::from(of.0)][usize::from(of.1)]);
            let now = self.symbols.quotient(&low, SINGLE, &state.facts)?;
            let next = self.symbols.quotient(&low.and(step)?, SINGLE, &state.facts)?;
            let fits = next.plus(-1, &now)?.is_congruent(difference);
            (fits && self.is_high(entry, own, of)).then_some(Mode::High(of.0, of.1))
        })
    }

    /// The states in which the blocks after this one begin.
    fn block(&mut self, at: usize, mut state: State) -> Result<Vec<(usize, State)>, TooLong> {
        let code = self.code;
        let Some(block) = code.graph.blocks.get(at) else { return Ok(Vec::new()) };
        for index in block.instructions.clone() {
            self.steps = self.steps.checked_sub(1).ok_or(TooLong)?;
            // To ask for the time takes less than a step.
            let is_late = self.end.is_some_and(|end| Instant::now() >= end);
            if is_late || self.symbols.work() > MOST_WORK {
                return Err(TooLong);
            }
            self.place = (at, index, 0);
            if let Some(one) = code.instructions.get(index) {
                self.step(&mut state, one, index * INSTRUCTION);
            }
        }
        let last = block.instructions.end.saturating_sub(1);
        let Some(one) = code.instructions.get(last) else { return Ok(Vec::new()) };
        let (conditional, divergent) = match one.operation {
            Operation::Branch { divergent } => (true, divergent),
            Operation::Exit | Operation::Call | Operation::Return | Operation::Converge(_) => {
                (true, false)
            }
            _ => (false, false),
        };
        if !conditional || always(one) && !divergent {
            return Ok(block.next.iter().map(|&next| (next, state.clone())).collect());
        }
        let guard = self.predicate(&state, one.guard);
        let mut truth = guard.clone();
        for &read in &one.predicates_read {
            let read = self.predicate(&state, read);
            truth = both(truth, read);
        }
        if divergent {
            // One thread does not know whether it is taken.
            truth = if guard.known == Some(false) { guard } else { Truth::default() };
        }
        // A single predicate decides also what is chosen by it.
        let literals: Vec<Predicate> = std::iter::once(one.guard)
            .chain(one.predicates_read.iter().copied())
            .filter(|predicate| !predicate.is_true())
            .collect();
        let literal = match literals.as_slice() {
            &[literal] if !divergent => Some(literal),
            _ => None,
        };
        let ends = matches!(one.operation, Operation::Exit);
        let ways: Vec<(usize, Option<bool>)> = match (block.next.as_slice(), ends) {
            (&[next], true) => vec![(next, Some(false))],
            (&[next, target], _) => vec![(next, Some(false)), (target, Some(true))],
            (next, _) => next.iter().map(|&next| (next, None)).collect(),
        };
        let mut states = Vec::new();
        for (to, way) in ways {
            if way.is_some() && truth.known == way.map(|way| !way) {
                continue;
            }
            let mut state = state.clone();
            if let Some(way) = way {
                self.assume(&mut state, &truth, way);
                if let Some(literal) = literal {
                    self.decide(&mut state, literal, way != literal.negated);
                }
            }
            states.push((to, state));
        }
        Ok(states)
    }

    fn assume(&self, state: &mut State, truth: &Truth, way: bool) {
        let side = usize::from(!way);
        for (fact, known) in
            [(&truth.holds, &mut state.facts), (&truth.guesses, &mut state.guesses)]
        {
            for fact in &fact[side] {
                if known.len() < MOST_FACTS && !fact.terms.is_empty() && !known.contains(fact) {
                    known.push(fact.clone());
                }
            }
        }
    }

    fn decide(&self, state: &mut State, predicate: Predicate, value: bool) {
        let Some(index) = predicate.index else { return };
        let by = (predicate.uniform, index);
        for registers in &mut state.registers {
            for register in registers {
                if let Value::Chosen { by: other, values } = register
                    && *other == by
                {
                    *register = Value::Plain(values[usize::from(!value)].clone());
                }
            }
        }
        let slot = &mut state.predicates[usize::from(predicate.uniform)][usize::from(index)];
        let mut truth = (**slot).clone();
        truth.known = Some(value);
        *slot = Rc::new(truth);
    }

    fn predicate(&self, state: &State, predicate: Predicate) -> Truth {
        let truth = match predicate.index {
            None => Truth::known(true),
            Some(index) => {
                (*state.predicates[usize::from(predicate.uniform)][usize::from(index)]).clone()
            }
        };
        if let Some(((uniform, index), value)) = truth.only_if
            && state.predicates[usize::from(uniform)][usize::from(index)].known != Some(value)
        {
            return Truth::default();
        }
        if predicate.negated { truth.not() } else { truth }
    }

    fn step(&mut self, state: &mut State, one: &Instruction, at: usize) {
        let guard = self.predicate(state, one.guard);
        if guard.known == Some(false) {
            return;
        }
        // Where the instruction does something its guard holds.
        let sure = guard.known == Some(true);
        let mut inside;
        let reading: &State = if sure {
            state
        } else {
            inside = state.clone();
            self.assume(&mut inside, &guard, true);
            self.decide(&mut inside, one.guard, !one.guard.negated);
            &inside
        };
        let (values, truths) = self.result(reading, one, at);
        if let Some((mut register, _)) = one.destination {
            for form in values {
                self.write(state, register, form, (!sure).then_some(one.guard));
                register = after(register);
            }
        }
        // First of all: two that are written together belong together.
        for &predicate in &one.predicates_written {
            if let Some(index) = predicate.index {
                self.undecide(state, (predicate.uniform, index));
            }
        }
        // What holds by the guard holds by its old value.
        let writes_guard = one.predicates_written.iter().any(|written| {
            (written.uniform, written.index) == (one.guard.uniform, one.guard.index)
        });
        let mut truths = truths.into_iter();
        for &predicate in &one.predicates_written {
            let truth = truths.next().unwrap_or_default();
            if let Some(index) = predicate.index {
                let truth = match one.guard.index {
                    _ if sure => truth,
                    Some(guard) if !writes_guard => Truth {
                        only_if: Some(((one.guard.uniform, guard), !one.guard.negated)),
                        ..truth
                    },
                    _ => Truth::default(),
                };
                state.predicates[usize::from(predicate.uniform)][usize::from(index)] =
                    Rc::new(truth);
            }
        }
    }

    /// A predicate is written: what was chosen by its old value is one of both.
    fn undecide(&mut self, state: &mut State, by: (bool, u16)) {
        for kind in 0..2 {
            for number in 0..state.registers[kind].len() {
                let value = &state.registers[kind][number];
                if matches!(value, Value::Chosen { by: other, .. } if *other == by) {
                    let form = self.either(state, &value.clone());
                    state.registers[kind][number] = Value::Plain(Rc::new(form));
                }
            }
        }
        for predicates in &mut state.predicates {
            for truth in predicates {
                if truth.carry.as_ref().is_some_and(|carry| carry.1 == Some(by.1)) {
                    let mut without = (**truth).clone();
                    without.carry = None;
                    *truth = Rc::new(without);
                }
                if truth.only_if.is_some_and(|only_if| only_if.0 == by) {
                    *truth = Rc::default();
                }
            }
        }
    }

    fn either(&mut self, state: &State, value: &Value) -> Form {
        match value {
            Value::Plain(form) => (**form).clone(),
            Value::Chosen { values: [one, two], .. } => {
                self.hull((one, &state.facts), (two, &state.facts))
            }
        }
    }

    fn write(
        &mut self,
        state: &mut State,
        register: Register,
        form: Form,
        guard: Option<Predicate>,
    ) {
        let (kind, number) = match register {
            Register::General(number) => (0, usize::from(number)),
            Register::Uniform(number) => (1, usize::from(number)),
            Register::Zero => return,
        };
        let new = Rc::new(form);
        let value = match guard {
            Some(Predicate { index: Some(index), uniform, negated }) => {
                let by = (uniform, index);
                let mut values = match &state.registers[kind][number] {
                    Value::Plain(old) => [old.clone(), old.clone()],
                    Value::Chosen { by: other, values } if *other == by => values.clone(),
                    chosen @ Value::Chosen { .. } => {
                        let old = Rc::new(self.either(state, &chosen.clone()));
                        [old.clone(), old]
                    }
                };
                values[usize::from(negated)] = new;
                Value::Chosen { by, values }
            }
            _ => Value::Plain(new),
        };
        state.registers[kind][number] = value;
    }

    fn register(&mut self, state: &State, register: Register) -> Form {
        match register {
            Register::General(number) => {
                self.either(state, &state.registers[0][usize::from(number)])
            }
            Register::Uniform(number) => {
                self.either(state, &state.registers[1][usize::from(number)])
            }
            Register::Zero => Form::number(0),
        }
    }

    fn value(&mut self, state: &State, operand: Operand) -> Form {
        match operand {
            Operand::Register(register) => self.register(state, register),
            Operand::Immediate(number) => Form::number((number as i32).into()),
            Operand::Constant { bank, offset, index } => {
                self.constant(state, bank, offset, index, 4)
            }
            Operand::Unknown => self.single(&Words::from([MEMORY])),
        }
    }

    /// A number of 64 bits.
    fn wide(&mut self, state: &State, operand: Operand) -> Form {
        match operand {
            Operand::Register(register) => {
                let low = self.register(state, register);
                let high = self.register(state, after(register));
                self.pair(state, &low, &high)
            }
            // What is above an immediate with its highest bit is not known.
            Operand::Immediate(number) if number >> 31 == 0 => Form::number(number.into()),
            Operand::Immediate(_) => self.double(&Words::new()),
            Operand::Constant { bank, offset, index } => {
                self.constant(state, bank, offset, index, 8)
            }
            Operand::Unknown => self.double(&Words::from([MEMORY])),
        }
    }

    fn pair(&mut self, state: &State, low: &Form, high: &Form) -> Form {
        let low_view = self.view(&state.facts, low, SINGLE, false);
        let form = low_view.and_then(|low| low.plus(SINGLE, high));
        form.unwrap_or_else(|| {
            let words = self.words_of(&[low, high]);
            self.double(&words)
        })
    }

    /// The number between 0 and `size`, or from half of it below zero, that a form stands for.
    fn view(&mut self, facts: &[Form], form: &Form, size: i128, signed: bool) -> Option<Form> {
        let shift = if signed { size / 2 } else { 0 };
        let quotient = self.symbols.quotient(&form.and(shift)?, size, facts)?;
        form.plus(-size, &quotient)
    }

    /// The same, or any number that could be it.
    fn number(&mut self, state: &State, form: &Form, signed: bool) -> Form {
        self.view(&state.facts, form, SINGLE, signed).unwrap_or_else(|| {
            let words = self.words_of(&[form]);
            let bounds = if signed { (-SINGLE / 2, SINGLE / 2 - 1) } else { (0, SINGLE - 1) };
            self.fresh(bounds, bounds, &words)
        })
    }

    fn parameter(&mut self, at: u32, bytes: u32) -> Option<Form> {
        let word = at & !7;
        if let Some(launch) = self.launch {
            // The lower half stands for all of it: it is the same modulo 2^32.
            if at == word
                && bytes == 4
                && let Some(number) = launch.parameter(at, 8)
            {
                return Some(Form::number(number as i128));
            }
            return launch.parameter(at, bytes).map(|number| Form::number(number as i128));
        }
        let (_, size) = self.code.parameters;
        if !at.is_multiple_of(4)
            || bytes < 4
            || bytes == 8 && at != word
            || word + 8 > size.next_multiple_of(8)
        {
            return None;
        }
        let symbols = &mut self.symbols;
        let symbol = *self
            .parameters
            .entry(word)
            .or_insert_with(|| symbols.fixed(0, DOUBLE - 1, Words::from([word])));
        let form = Form::symbol(symbol);
        if at == word { Some(form) } else { self.symbols.quotient(&form, SINGLE, &[]) }
    }

    /// A constant of four or eight bytes, or less.
    fn constant(
        &mut self,
        state: &State,
        bank: u8,
        offset: u16,
        index: Register,
        bytes: u32,
    ) -> Form {
        let any = |this: &mut Self, words: &Words| match bytes {
            8 => this.double(words),
            4 => this.single(words),
            _ => this.fresh((0, (1 << (8 * bytes)) - 1), (0, SINGLE - 1), words),
        };
        let index = self.register(state, index);
        let at = self.number(state, &index, true).and(offset.into());
        let bounds = at.as_ref().map_or((None, None), |at| self.symbols.bounds(at, &state.facts));
        let (Some(low @ 0..=0x1_0000), Some(high @ 0..=0x1_0000)) = bounds else {
            let words = if bank == 0 { self.all() } else { Words::from([MEMORY]) };
            return any(self, &words);
        };
        let (low, high) = (low as u32, high as u32);
        if low != high {
            return self.one_of(bank, (low, high), at, bytes).unwrap_or_else(|| {
                let mut words = Words::from([MEMORY]);
                for at in low..high + bytes {
                    if let Constant::Parameter(at) = self.code.constant(at)
                        && bank == 0
                    {
                        words.insert(at & !7);
                    }
                }
                any(self, &words)
            });
        }
        let words_at = |at: u32| (at & !7..at + bytes).step_by(8).collect::<Words>();
        match (bank, self.code.constant(low)) {
            (2, _) => match self.code.number(low, bytes) {
                Some(number) => Form::number(number as i128),
                None => any(self, &Words::from([MEMORY])),
            },
            (0, Constant::Parameter(at)) => match self.parameter(at, bytes) {
                Some(form) => form,
                None => any(self, &words_at(at)),
            },
            (0, Constant::Block(axis)) if bytes == 4 => self.sizes[0][axis].clone(),
            (0, Constant::Grid(axis)) if bytes == 4 => self.sizes[1][axis].clone(),
            (0, Constant::Block(_) | Constant::Grid(_)) => {
                // Two sizes at once.
                let sizes = [low, low + 4].map(|at| match self.code.constant(at) {
                    Constant::Block(axis) if bytes == 8 => Some(self.sizes[0][axis].clone()),
                    Constant::Grid(axis) if bytes == 8 => Some(self.sizes[1][axis].clone()),
                    _ => None,
                });
                match sizes {
                    [Some(one), Some(two)] => {
                        one.plus(SINGLE, &two).unwrap_or_else(|| any(self, &Words::new()))
                    }
                    _ => any(self, &Words::new()),
                }
            }
            _ => any(self, &Words::from([MEMORY])),
        }
    }

    /// The numbers that an index chooses from, if they are known.
    fn one_of(
        &mut self,
        bank: u8,
        (low, high): (u32, u32),
        at: Option<Form>,
        bytes: u32,
    ) -> Option<Form> {
        let launch = self.launch?;
        let step = at?.terms.iter().fold(0_i128, |step, term| {
            let (mut one, mut two) = (step, term.1.abs());
            while two != 0 {
                (one, two) = (two, one % two);
            }
            one
        });
        let step = usize::try_from(step).ok().filter(|&step| step > 0)?;
        let (mut least, mut most) = (i128::MAX, i128::MIN);
        // The lowest is one of those that are chosen, at least as far as bounds tell.
        for at in (low..=high).step_by(step) {
            let number = match (bank, self.code.constant(at)) {
                (0, Constant::Parameter(at)) => launch.parameter(at, bytes)?,
                (2, _) => self.code.number(at, bytes)?,
                _ => return None,
            } as i128;
            (least, most) = (least.min(number), most.max(number));
        }
        let all = if bytes == 8 { DOUBLE - 1 } else { SINGLE - 1 };
        Some(self.fresh((least, most), (0, all), &Words::new()))
    }

    /// All words of the parameters.
    fn all(&self) -> Words {
        (0..self.code.parameters.1).step_by(8).chain([MEMORY]).collect()
    }

    /// What the instruction writes.
    #[expect(clippy::too_many_lines, reason = "one arm for each operation")]
    fn result(&mut self, state: &State, one: &Instruction, at: usize) -> (Vec<Form>, Vec<Truth>) {
        let operand =
            |at: usize| one.sources.get(at).map_or(Operand::Unknown, |source| source.operand);
        let count = one.destination.map_or(0, |(_, count)| usize::from(count));
        let found = match one.operation {
            Operation::Move { wide: false }
                if one.predicates_written.iter().all(|written| written.index.is_none()) =>
            {
                Some(vec![self.value(state, operand(0))])
            }
            Operation::Move { wide: true } => {
                let form = self.wide(state, operand(0));
                self.halves(state, form)
            }
            Operation::Special(number) => {
                let zero = || Some(vec![Form::number(0); count]);
                match (number, one.destination) {
                    (ZERO, _) => zero(),
                    // What the threads of a warp share is not one of theirs.
                    (0x21..=0x23, Some((Register::General(_), 1))) => {
                        Some(vec![Form::symbol(self.threads[usize::from(number - 0x21)])])
                    }
                    (0x25..=0x27, Some((_, 1))) => {
                        Some(vec![Form::symbol(self.blocks[usize::from(number - 0x25)])])
                    }
                    (0, Some((_, 1))) => Some(vec![self.fresh((0, 31), (0, 31), &Words::new())]),
                    (_, Some((_, 1))) => Some(vec![self.single(&Words::new())]),
                    _ => None,
                }
            }
            Operation::LoadConstant { bytes, signed } => {
                let Operand::Constant { bank, offset, index } = operand(0) else {
                    return self.unknown(state, one);
                };
                match bytes {
                    1 | 2 if signed => {
                        let form = self.constant(state, bank, offset, index, bytes.into());
                        self.view(&state.facts, &form, 1 << (8 * bytes), true)
                            .map(|form| vec![form])
                    }
                    16 => {
                        let low = self.constant(state, bank, offset, index, 8);
                        let high = self.constant(state, bank, offset.wrapping_add(8), index, 8);
                        let halves = self.halves(state, low).zip(self.halves(state, high));
                        halves.map(|(low, high)| [low, high].concat())
                    }
                    8 => {
                        let form = self.constant(state, bank, offset, index, 8);
                        self.halves(state, form)
                    }
                    _ => Some(vec![self.constant(state, bank, offset, index, bytes.into())]),
                }
            }
            Operation::MultiplyAdd { wide, high, signed, carry } => {
                self.multiply_add(state, one, (wide, high), signed, carry)
            }
            Operation::Add { wide, carry } => match self.add(state, one, wide, carry) {
                Some(found) => return found,
                None => None,
            },
            Operation::ShiftAdd { shift, high, extended, carry } => {
                match self.shift_add(state, one, shift, (high, extended), carry) {
                    Some(found) => return found,
                    None => None,
                }
            }
            Operation::Shift { .. } => self.shift(state, one).map(|form| vec![form]),
            Operation::Logic(table) => {
                let [first, second, third] = [0, 1, 2].map(|at| self.value(state, operand(at)));
                let form = self.logic(state, table, [&first, &second, &third]);
                let joined = one.predicates_read.first();
                let joined =
                    joined.map_or_else(Truth::default, |&read| self.predicate(state, read));
                let number = form.as_ref().and_then(Form::as_number);
                let own = Truth {
                    known: number.map(|number| number.rem_euclid(SINGLE) != 0),
                    ..Truth::default()
                };
                let truth = joined_by(Junction::Or, own, joined);
                let form = form.unwrap_or_else(|| {
                    let words = self.words_of(&[&first, &second, &third]);
                    self.single(&words)
                });
                return (vec![form], vec![truth]);
            }
            Operation::Select { wide } => {
                let chosen = one.predicates_read.first();
                let truth = chosen.map_or_else(Truth::default, |&read| self.predicate(state, read));
                let [first, second] = [true, false].map(|way| {
                    if truth.known == Some(!way) {
                        return None;
                    }
                    let mut state = state.clone();
                    self.assume(&mut state, &truth, way);
                    if let Some(&read) = chosen {
                        self.decide(&mut state, read, way != read.negated);
                    }
                    let operand = operand(usize::from(!way));
                    let form =
                        if wide { self.wide(&state, operand) } else { self.value(&state, operand) };
                    Some((form, state.facts))
                });
                let form = match (first, second) {
                    (Some((form, _)), None) | (None, Some((form, _))) => Some(form),
                    (Some((one, facts)), Some((two, other))) => {
                        Some(self.hull((&one, &facts), (&two, &other)))
                    }
                    (None, None) => None,
                };
                match form {
                    Some(form) if wide => self.halves(state, form),
                    form => form.map(|form| vec![form]),
                }
            }
            Operation::Minimum { signed } => {
                let [first, second] = [0, 1].map(|at| {
                    let source = one.sources.get(at);
                    let form = self.value(state, operand(at));
                    let form = if source.is_some_and(|source| source.negated) {
                        form.times(-1).unwrap_or_else(|| self.single(&Words::from([MEMORY])))
                    } else {
                        form
                    };
                    self.number(state, &form, signed)
                });
                let least = one.predicates_read.first();
                let least = least.and_then(|&read| self.predicate(state, read).known);
                let bounds = [&first, &second].map(|form| self.symbols.bounds(form, &state.facts));
                match (bounds, least) {
                    ([(Some(a), Some(b)), (Some(c), Some(d))], Some(least)) => {
                        let words = self.words_of(&[&first, &second]);
                        let bounds =
                            if least { (a.min(c), b.min(d)) } else { (a.max(c), b.max(d)) };
                        let all = (-SINGLE, SINGLE);
                        Some(vec![self.fresh(bounds, all, &words)])
                    }
                    _ => None,
                }
            }
            Operation::Compare { comparison, signed, junction, wide, high } => {
                let own = self.compare(state, one, comparison, signed, (wide, high));
                let joined = one.predicates_read.first();
                let joined =
                    joined.map_or_else(Truth::default, |&read| self.predicate(state, read));
                let other = joined_by(junction, own.clone().not(), joined.clone());
                return (Vec::new(), vec![joined_by(junction, own, joined), other]);
            }
            Operation::PredicateLogic(tables) => {
                let read: Vec<Truth> =
                    one.predicates_read.iter().map(|&read| self.predicate(state, read)).collect();
                return (Vec::new(), tables.map(|table| by_table(table, &read)).to_vec());
            }
            Operation::Absolute => {
                let form = self.value(state, operand(0));
                let form = self.number(state, &form, true);
                match self.symbols.bounds(&form, &state.facts) {
                    (Some(0..), _) => Some(vec![form]),
                    (_, Some(..=0)) => form.times(-1).map(|form| vec![form]),
                    (Some(low), Some(high)) => {
                        let words = self.words_of(&[&form]);
                        let all = (0, SINGLE);
                        Some(vec![self.fresh((0, high.max(-low)), all, &words)])
                    }
                    _ => None,
                }
            }
            Operation::Halves => Some(vec![self.value(state, operand(0))]),
            Operation::MultiplyLong => self.multiply_long(state, operand(0), operand(1)),
            Operation::Divide { signed, wide, remainder } => {
                self.divide(state, [operand(0), operand(1)], (signed, wide), remainder)
            }
            Operation::Access(access) => self.access(state, one, access, at),
            _ => None,
        };
        match found {
            Some(forms) if forms.len() >= count => (forms, Vec::new()),
            _ => self.unknown(state, one),
        }
    }

    /// Any numbers, into which what the instruction reads may have flowed.
    fn unknown(&mut self, state: &State, one: &Instruction) -> (Vec<Form>, Vec<Truth>) {
        let mut words = Words::new();
        if one.sources.is_empty() && matches!(one.operation, Operation::Other(_)) {
            words = self.all();
        }
        for source in &one.sources {
            match source.operand {
                Operand::Register(mut register) => {
                    // As many as the instruction reads at most.
                    let count = match one.operation {
                        Operation::Other(name) if SINGLES.contains(&name) => 1,
                        Operation::Other("DADD" | "DMUL" | "DFMA" | "F2F" | "F2I" | "I2F") => 2,
                        Operation::Other(_) => 4,
                        // Each register is named.
                        Operation::Computed
                        | Operation::Shift { .. }
                        | Operation::Logic(_)
                        | Operation::Minimum { .. }
                        | Operation::Absolute
                        | Operation::Move { wide: false }
                        | Operation::Add { wide: false, .. }
                        | Operation::Select { wide: false }
                        | Operation::MultiplyAdd { wide: false, high: false, .. }
                        | Operation::Divide { wide: false, .. } => 1,
                        _ => 2,
                    };
                    for _ in 0..count {
                        let form = self.register(state, register);
                        self.symbols.words(&form, &mut words);
                        register = after(register);
                    }
                }
                Operand::Constant { bank, offset, index } => {
                    for part in [0, 4, 8, 12] {
                        let offset = offset.wrapping_add(part);
                        let form = self.constant(state, bank, offset, index, 4);
                        self.symbols.words(&form, &mut words);
                    }
                }
                Operand::Immediate(_) => {}
                Operand::Unknown => words.extend(self.all()),
            }
        }
        let Some((mut register, count)) = one.destination else { return (Vec::new(), Vec::new()) };
        if matches!(one.operation, Operation::Computed) && count == 2 {
            // It may be an address.
            let form = self.double(&words);
            if let Some(halves) = self.halves(state, form) {
                return (halves, Vec::new());
            }
        }
        let mut forms = vec![self.single(&words)];
        for _ in 1..count {
            register = after(register);
            // It may write fewer registers: what was in this one may still be there.
            if matches!(one.operation, Operation::Other(_)) {
                let old = self.register(state, register);
                self.symbols.words(&old, &mut words);
            }
            forms.push(self.single(&words));
        }
        (forms, Vec::new())
    }

    fn halves(&mut self, state: &State, form: Form) -> Option<Vec<Form>> {
        let high = self.symbols.quotient(&form, SINGLE, &state.facts)?;
        Some(vec![form, high])
    }

    fn product(&mut self, state: &State, first: &Form, second: &Form) -> Option<Form> {
        if let Some(number) = second.as_number() {
            return first.times(number);
        }
        if let Some(number) = first.as_number() {
            return second.times(number);
        }
        let (Some(a), Some(b)) = self.symbols.bounds(first, &state.facts) else { return None };
        let (Some(c), Some(d)) = self.symbols.bounds(second, &state.facts) else { return None };
        let mut least = i128::MAX;
        let mut most = i128::MIN;
        for (one, two) in [(a, c), (a, d), (b, c), (b, d)] {
            let product = one.checked_mul(two).filter(|product| product.abs() < 1 << 70)?;
            (least, most) = (least.min(product), most.max(product));
        }
        let words = self.words_of(&[first, second]);
        Some(self.fresh((least, most), (-(1 << 70), 1 << 70), &words))
    }

    fn multiply_long(
        &mut self,
        state: &State,
        first: Operand,
        second: Operand,
    ) -> Option<Vec<Form>> {
        let (a, b) = (self.wide(state, first), self.wide(state, second));
        let product = match self.product(state, &a, &b) {
            Some(product) => product,
            None => {
                let a = self.view(&state.facts, &a, DOUBLE, true)?;
                let b = self.view(&state.facts, &b, DOUBLE, true)?;
                self.product(state, &a, &b)?
            }
        };
        self.halves(state, product)
    }

    fn divide(
        &mut self,
        state: &State,
        operands: [Operand; 2],
        (signed, wide): (bool, bool),
        remainder: bool,
    ) -> Option<Vec<Form>> {
        let size = if wide { DOUBLE } else { SINGLE };
        let [a, b] = operands.map(|operand| {
            let form = if wide { self.wide(state, operand) } else { self.value(state, operand) };
            self.view(&state.facts, &form, size, signed)
        });
        let (a, b) = (a?, b?);
        let (Some(low), Some(high)) = self.symbols.bounds(&a, &state.facts) else { return None };
        // By zero it may be any number.
        let (Some(least @ 1..), Some(most)) = self.symbols.bounds(&b, &state.facts) else {
            return None;
        };
        let form = match b.as_number() {
            Some(divisor) if low >= 0 => {
                let quotient = self.symbols.quotient(&a, divisor, &state.facts)?;
                if remainder { a.plus(-divisor, &quotient)? } else { quotient }
            }
            _ => {
                let bounds = if remainder {
                    (low.max(1 - most).min(0), high.min(most - 1).max(0))
                } else {
                    // What is divided by more is nearer to zero.
                    let by = |negative: bool| if negative { least } else { most };
                    (low / by(low < 0), high / by(high >= 0))
                };
                let words = self.words_of(&[&a, &b]);
                self.fresh(bounds, (-size, size), &words)
            }
        };
        if wide { self.halves(state, form) } else { Some(vec![form]) }
    }

    fn multiply_add(
        &mut self,
        state: &State,
        one: &Instruction,
        (wide, high): (bool, bool),
        signed: bool,
        carry: bool,
    ) -> Option<Vec<Form>> {
        let &[first, second, third] = one.sources.as_slice() else { return None };
        let a = self.value(state, first.operand);
        let b = self.value(state, second.operand);
        if wide || high {
            if first.negated || second.negated || third.negated || carry {
                return None;
            }
            let (a, b) = (self.number(state, &a, signed), self.number(state, &b, signed));
            let sum = self.product(state, &a, &b)?.plus(1, &self.wide(state, third.operand))?;
            // A sum of 64 bits stays what it is modulo 2^64, also in its upper half.
            let halves = self.halves(state, sum)?;
            return if high { halves.get(1).map(|high| vec![high.clone()]) } else { Some(halves) };
        }
        let c = self.value(state, third.operand);
        let product = match self.product(state, &a, &b) {
            Some(product) => product,
            None => {
                let (a, b) = (self.number(state, &a, false), self.number(state, &b, false));
                self.product(state, &a, &b)?
            }
        };
        let product = if first.negated != second.negated { product.times(-1)? } else { product };
        let sum = match (carry, third.negated) {
            (false, negated) => product.plus(if negated { -1 } else { 1 }, &c)?,
            (true, _) if first.negated || second.negated => return None,
            (true, false) => product.plus(1, &c)?,
            (true, true) => product.plus(-1, &c)?.and(-1)?,
        };
        if !carry {
            return Some(vec![sum]);
        }
        let carry = self.carry(state, &one.predicates_read);
        sum.plus(1, &carry).map(|sum| vec![sum])
    }

    /// The number that predicates are as carries.
    fn carry(&mut self, state: &State, read: &[Predicate]) -> Form {
        let truths: Vec<Truth> = read.iter().map(|&read| self.predicate(state, read)).collect();
        let [first, second] = [0, 1].map(|at| read.get(at).and_then(|read| read.index));
        let partner = |at: usize| truths.get(at).and_then(|truth| truth.carry.as_ref());
        if let (Some((total, Some(other))), Some((_, Some(back)))) = (partner(0), partner(1))
            && Some(*other) == second
            && Some(*back) == first
        {
            return total.clone();
        }
        let mut sum = Form::number(0);
        for truth in &truths {
            let one = match (truth.known, &truth.carry) {
                (Some(known), _) => Form::number(known.into()),
                (None, Some((carry, None))) => carry.clone(),
                (None, carry) => {
                    let forms: Vec<&Form> = carry.iter().map(|carry| &carry.0).collect();
                    let words = self.words_of(&forms);
                    self.fresh((0, 1), (0, 1), &words)
                }
            };
            sum = sum.plus(1, &one).unwrap_or_else(|| self.fresh((0, 2), (0, 2), &Words::new()));
        }
        sum
    }

    fn add(
        &mut self,
        state: &State,
        one: &Instruction,
        wide: bool,
        carry: bool,
    ) -> Option<(Vec<Form>, Vec<Truth>)> {
        let size = if wide { DOUBLE } else { SINGLE };
        let mut sum = Form::number(0);
        let carries = one.predicates_written.iter().any(|written| written.index.is_some());
        // Of the numbers without sign, for the carry.
        let mut total = carries.then(|| Form::number(0));
        let (mut negations, mut operands) = (0, 0);
        for source in &one.sources {
            let form = if wide {
                self.wide(state, source.operand)
            } else {
                self.value(state, source.operand)
            };
            let view = if carries { self.view(&state.facts, &form, size, false) } else { None };
            operands += u32::from(source.operand != Operand::Register(Register::Zero));
            if source.negated {
                // The complement, and one for each if there is no carry.
                sum = sum.plus(-1, &form)?.and(-1)?;
                total =
                    total.zip(view).and_then(|(total, view)| total.plus(-1, &view)?.and(size - 1));
                negations += 1;
            } else {
                sum = sum.plus(1, &form)?;
                total = total.zip(view).and_then(|(total, view)| total.plus(1, &view));
            }
        }
        let more =
            if carry { self.carry(state, &one.predicates_read) } else { Form::number(negations) };
        sum = sum.plus(1, &more)?;
        total = total.and_then(|total| total.plus(1, &more));
        let written: Vec<Option<u16>> =
            one.predicates_written.iter().map(|written| written.index).collect();
        let over = total.and_then(|total| self.symbols.quotient(&total, size, &state.facts));
        let truth = |partner: Option<u16>| Truth {
            known: None,
            carry: over.clone().map(|over| (over, partner)),
            ..Truth::default()
        };
        let small = over
            .as_ref()
            .is_some_and(|over| matches!(self.symbols.bounds(over, &state.facts).1, Some(..=1)));
        let words = self.words_of(&[&sum]);
        let any = [(); 2].map(|()| {
            let carry = Some((self.fresh((0, 1), (0, 1), &words), None));
            Truth { carry, ..Truth::default() }
        });
        let truths = match *written.as_slice() {
            _ if negations > 1 && !carry => any.to_vec(),
            [Some(one), Some(two)] => vec![truth(Some(two)), truth(Some(one))],
            [Some(_), ..] if operands < 3 || small => vec![truth(None)],
            _ => any.to_vec(),
        };
        let forms = if wide { self.halves(state, sum)? } else { vec![sum] };
        Some((forms, truths))
    }

    fn shift_add(
        &mut self,
        state: &State,
        one: &Instruction,
        shift: u8,
        (high, extended): (bool, bool),
        carry: bool,
    ) -> Option<(Vec<Form>, Vec<Truth>)> {
        let (&first, &second) = (one.sources.first()?, one.sources.get(1)?);
        let a = self.value(state, first.operand);
        let b = self.value(state, second.operand);
        let factor = 1_i128 << (shift & 31);
        let shifted = if high {
            if first.negated {
                return None;
            }
            let whole = match one.sources.get(2) {
                Some(upper) => {
                    let upper = self.value(state, upper.operand);
                    self.pair(state, &a, &upper)
                }
                None if extended => self.view(&state.facts, &a, SINGLE, true)?,
                None => return None,
            };
            self.symbols.quotient(&whole.times(factor)?, SINGLE, &state.facts)?
        } else {
            a.times(if first.negated { -factor } else { factor })?
        };
        let more = if carry {
            self.carry(state, &one.predicates_read)
        } else {
            Form::number(second.negated.into())
        };
        let addend = if second.negated { Form::number(-1).plus(-1, &b)? } else { b.clone() };
        let sum = shifted.plus(1, &addend)?.plus(1, &more)?;
        let over = (!first.negated)
            .then(|| {
                let shifted = self.view(&state.facts, &shifted, SINGLE, false)?;
                let addend = self.view(&state.facts, &addend, SINGLE, false)?;
                let total = shifted.plus(1, &addend)?.plus(1, &more)?;
                self.symbols.quotient(&total, SINGLE, &state.facts)
            })
            .flatten();
        let truth = Truth { carry: over.map(|over| (over, None)), ..Truth::default() };
        Some((vec![sum], vec![truth]))
    }

    fn shift(&mut self, state: &State, one: &Instruction) -> Option<Form> {
        let Operation::Shift { right, high, wide, signed, wrap } = one.operation else {
            return None;
        };
        let &[low, by, upper] = one.sources.as_slice() else { return None };
        let by = self.value(state, by.operand).as_number()?.rem_euclid(SINGLE);
        let most = if wide { 64 } else { 32 };
        let by = if wrap { by % most } else { by.min(most) };
        let factor = 1_i128 << by;
        let low = self.value(state, low.operand);
        let upper = self.value(state, upper.operand);
        if right && high && by < 32 {
            // Only the upper register counts.
            let upper = self.view(&state.facts, &upper, SINGLE, signed)?;
            return self.symbols.quotient(&upper, factor, &state.facts);
        }
        if !right && !high {
            return if by < 32 { low.times(factor) } else { Some(Form::number(0)) };
        }
        let whole = self.pair(state, &low, &upper);
        let whole = if right { self.view(&state.facts, &whole, DOUBLE, signed)? } else { whole };
        let shifted = if right {
            self.symbols.quotient(&whole, factor, &state.facts)?
        } else {
            whole.times(factor)?
        };
        if high { self.symbols.quotient(&shifted, SINGLE, &state.facts) } else { Some(shifted) }
    }

    fn logic(&mut self, state: &State, table: u8, sources: [&Form; 3]) -> Option<Form> {
        let numbers = sources.map(|form| form.as_number().map(|number| number as u32));
        if let [Some(first), Some(second), Some(third)] = numbers {
            return Some(Form::number((logic(table, first, second, third) as i32).into()));
        }
        // What it is of the sources that are not numbers, bit by bit.
        let [first, second, third] = numbers;
        let open: Vec<usize> = (0..3).filter(|&at| numbers[at].is_none()).collect();
        let with = |bits: u32| {
            let value = |at: usize, number: Option<u32>| {
                number.unwrap_or_else(|| {
                    let place = open.iter().position(|&open| open == at).unwrap_or(0);
                    if bits >> place & 1 != 0 { u32::MAX } else { 0 }
                })
            };
            logic(table, value(0, first), value(1, second), value(2, third))
        };
        if let &[at] = open.as_slice() {
            let (zeros, ones) = (with(0), with(1));
            let form = *sources.get(at)?;
            // Bits that the source decides, and bits that are set anyway.
            let (kept, turned, set) = (!zeros & ones, zeros & !ones, zeros & ones);
            if turned == 0 {
                return self.masked(state, form, kept)?.and(set.into());
            }
            if kept == 0 {
                let inverse = Form::number(-1).plus(-1, form)?;
                return self.masked(state, &inverse, turned)?.and(set.into());
            }
        }
        // Of two sources only the bits that are possible in both matter.
        let mut possible = 0;
        for bits in 0..1 << open.len() {
            possible |= with(bits);
        }
        let mut mask = possible;
        if with(0) == 0 {
            // No bit above the highest of all sources.
            let mut highest = 0;
            for &at in &open {
                let view = self.view(&state.facts, sources.get(at)?, SINGLE, false)?;
                match self.symbols.bounds(&view, &state.facts) {
                    (Some(0..), Some(high)) => highest = highest.max(high),
                    _ => highest = SINGLE - 1,
                }
            }
            let bits = 128 - highest.leading_zeros();
            mask &= (((1_u64 << bits.min(32)) - 1) & 0xffff_ffff) as u32;
        }
        let words = self.words_of(&sources);
        Some(self.fresh((0, mask.into()), (0, SINGLE - 1), &words))
    }

    /// The bits of a form that a mask lets through.
    fn masked(&mut self, state: &State, form: &Form, mask: u32) -> Option<Form> {
        let (first, last) = (mask.trailing_zeros(), 32 - mask.leading_zeros());
        if mask == 0 {
            return Some(Form::number(0));
        }
        if mask == u32::MAX {
            return Some(form.clone());
        }
        if u64::from(mask) == ((1_u64 << last) - 1) & !((1_u64 << first) - 1) {
            // A field: the number above its first bit, without what is above its last.
            let above = self.symbols.quotient(form, 1 << first, &state.facts)?.times(1 << first)?;
            if last == 32 {
                return Some(above);
            }
            let beyond = self.symbols.quotient(form, 1 << last, &state.facts)?.times(1 << last)?;
            return above.plus(-1, &beyond);
        }
        let words = self.words_of(&[form]);
        Some(self.fresh((0, mask.into()), (0, SINGLE - 1), &words))
    }

    fn compare(
        &mut self,
        state: &State,
        one: &Instruction,
        comparison: Comparison,
        signed: bool,
        (wide, high): (bool, bool),
    ) -> Truth {
        use Comparison::{
            Always, Equal, Greater, GreaterOrEqual, Less, LessOrEqual, Never, NotEqual,
        };
        if matches!(comparison, Never | Always) {
            return Truth::known(comparison == Always);
        }
        let (Some(first), Some(second)) = (one.sources.first(), one.sources.get(1)) else {
            return Truth::default();
        };
        let get = |this: &mut Self, operand| {
            if wide { this.wide(state, operand) } else { this.value(state, operand) }
        };
        let (mut x, mut y) = (get(self, first.operand), get(self, second.operand));
        // As less, less or equal, or equal.
        let (mut kind, negated, swapped) = match comparison {
            Less => (Less, false, false),
            LessOrEqual => (LessOrEqual, false, false),
            Greater => (Less, false, true),
            GreaterOrEqual => (LessOrEqual, false, true),
            Equal => (Equal, false, false),
            _ => (Equal, comparison == NotEqual, false),
        };
        if swapped {
            std::mem::swap(&mut x, &mut y);
        }
        let mut size = if wide { DOUBLE } else { SINGLE };
        let plain = (x.clone(), y.clone());
        if high {
            let low = one.predicates_read.get(1);
            let low = low.and_then(|&low| self.predicate(state, low).low);
            let Some((low_kind, low_x, low_y)) = low else { return Truth::default() };
            // Equal halves, or not equal ones, make the whole; of the others the lower decide.
            kind = match (kind, low_kind) {
                (Equal, Equal) if !negated => Equal,
                (Equal, NotEqual) if negated => Equal,
                (Less | LessOrEqual, Less | LessOrEqual) => low_kind,
                _ => return Truth::default(),
            };
            x = self.pair(state, &low_x, &x);
            y = self.pair(state, &low_y, &y);
            size = DOUBLE;
        }
        let views = [&x, &y].map(|form| self.view(&state.facts, form, size, signed));
        let mut truth = Truth::default();
        if let [Some(x), Some(y)] = &views {
            truth = self.order(state, kind, x, y);
        }
        // Where it is not known which of the numbers is meant it may be the one without overflow.
        let [guess_x, guess_y] =
            [(&views[0], &x), (&views[1], &y)].map(|(view, form)| match view {
                Some(view)
                    if view.plus(-1, form).is_some_and(|rest| rest.as_number().is_some()) =>
                {
                    view.clone()
                }
                // A lower half may come with its upper one.
                _ => {
                    let shift = if signed { size / 2 } else { 0 };
                    let constant = (form.constant + shift).rem_euclid(size) - shift;
                    Form { constant, terms: form.terms.clone() }
                }
            });
        truth.guesses = self.order(state, kind, &guess_x, &guess_y).holds;
        if !wide && !high && (!signed || kind == Equal) {
            truth.low = Some((kind, plain.0, plain.1));
        }
        if negated { truth.not() } else { truth }
    }

    fn order(&self, state: &State, kind: Comparison, x: &Form, y: &Form) -> Truth {
        let Some(difference) = y.plus(-1, x) else { return Truth::default() };
        let (low, high) = self.symbols.bounds(&difference, &state.facts);
        let one = |form: Option<Form>| form.into_iter().collect::<Vec<_>>();
        let mut truth = Truth::default();
        match kind {
            Comparison::Equal => {
                truth.known = match (low, high) {
                    (Some(0), Some(0)) => Some(true),
                    (Some(1..), _) | (_, Some(..=-1)) => Some(false),
                    _ => None,
                };
                truth.holds[0] = one(difference.times(-1));
                truth.holds[0].push(difference);
            }
            _ => {
                let less = i128::from(kind == Comparison::Less);
                truth.known = match (low, high) {
                    (Some(low), _) if low >= less => Some(true),
                    (_, Some(high)) if high < less => Some(false),
                    _ => None,
                };
                truth.holds[1] = one(difference.times(-1).and_then(|form| form.and(less - 1)));
                truth.holds[0] = one(difference.and(-less));
            }
        }
        truth
    }

    fn access(
        &mut self,
        state: &State,
        one: &Instruction,
        access: Access,
        at: usize,
    ) -> Option<Vec<Form>> {
        let global = matches!(access.space, Space::Global | Space::Generic);
        if global {
            let form = access.address.map(|address| {
                let base = if address.wide {
                    self.wide(state, Operand::Register(address.base))
                } else {
                    self.register(state, address.base)
                };
                let uniform = address
                    .uniform
                    .map(|uniform| self.wide(state, Operand::Register(uniform)))
                    .unwrap_or_else(|| Form::number(0));
                base.times(address.scale.into())
                    .and_then(|form| form.plus(1, &uniform)?.and(address.offset.into()))
                    .ok_or_else(|| self.words_of(&[&base, &uniform]))
            });
            let mut seen = Seen {
                at,
                access,
                bounds: (None, None),
                gaps: Vec::new(),
                bases: Words::new(),
                others: Words::new(),
            };
            match form {
                Some(Ok(form)) => {
                    seen.bounds = self.symbols.bounds(&form, &state.facts);
                    if let (Some(_), (Some(_), Some(_))) = (self.launch, seen.bounds) {
                        let bytes = i128::from(access.bytes);
                        seen.gaps = self.symbols.gaps(&form, &state.facts, bytes);
                    }
                    let mut rest = form.clone();
                    for (&word, &symbol) in &self.parameters {
                        if form.factor(symbol) == 1 {
                            seen.bases.insert(word);
                            rest.terms.retain(|term| term.0 != symbol);
                        }
                    }
                    self.symbols.words(&rest, &mut seen.others);
                }
                Some(Err(words)) => seen.others = words,
                None => seen.others = self.all(),
            }
            self.seen.push(seen);
        }
        match access.kind {
            // All registers that are written to memory are named.
            AccessKind::Atomic | AccessKind::Reduce if one.sources.len() > 1 => {
                for source in &one.sources {
                    let form = self.value(state, source.operand);
                    self.symbols.words(&form, &mut self.stored);
                }
            }
            AccessKind::Write | AccessKind::Reduce => {
                let mut register = match one.sources.first() {
                    Some(Source { operand: Operand::Register(register), .. }) => *register,
                    _ => Register::Zero,
                };
                for _ in 0..access.bytes.div_ceil(4) {
                    let form = self.register(state, register);
                    self.symbols.words(&form, &mut self.stored);
                    register = after(register);
                }
            }
            // Which register is written to memory is not decoded, or memory is copied.
            AccessKind::Atomic | AccessKind::Unknown => self.stored.extend(self.all()),
            AccessKind::Read | AccessKind::CopyToShared => {}
        }
        let mut words = self.stored.clone();
        words.insert(MEMORY);
        let count = one.destination.map_or(0, |(_, count)| count);
        // Two registers may have an address.
        if count == 2 || count == 4 {
            let mut forms = Vec::new();
            for _ in 0..count / 2 {
                let form = self.double(&words);
                forms.extend(self.halves(state, form)?);
            }
            return Some(forms);
        }
        Some((0..count).map(|_| self.single(&words)).collect())
    }
}

fn forms(value: &Value) -> impl Iterator<Item = &Form> {
    let (one, two) = match value {
        Value::Plain(form) => (form, None),
        Value::Chosen { values: [one, two], .. } => (one, Some(two)),
    };
    std::iter::once(&**one).chain(two.map(|form| &**form))
}

/// The form of a register that is not chosen.
fn plain(value: &Value) -> Form {
    match value {
        Value::Plain(form) => (**form).clone(),
        // Both are possible, so who asks must have made one of them before.
        Value::Chosen { values, .. } => (*values[0]).clone(),
    }
}

fn both(one: Truth, other: Truth) -> Truth {
    joined_by(Junction::And, one, other)
}

fn joined_by(junction: Junction, one: Truth, other: Truth) -> Truth {
    match junction {
        Junction::And => match (one.known, other.known) {
            // What is compared is kept: it may be the lower half of a longer comparison.
            (_, Some(true)) => one,
            (Some(true), _) => other,
            (Some(false), _) | (_, Some(false)) => Truth::known(false),
            _ => Truth {
                holds: [[&*one.holds[0], &*other.holds[0]].concat(), Vec::new()],
                guesses: [[&*one.guesses[0], &*other.guesses[0]].concat(), Vec::new()],
                ..Truth::default()
            },
        },
        Junction::Or => joined_by(Junction::And, one.not(), other.not()).not(),
        Junction::Xor => match (one.known, other.known) {
            (Some(known), _) => {
                if known {
                    other.not()
                } else {
                    other
                }
            }
            (_, Some(known)) => {
                if known {
                    one.not()
                } else {
                    one
                }
            }
            _ => Truth::default(),
        },
    }
}

/// Three predicates by a table.
fn by_table(table: u8, read: &[Truth]) -> Truth {
    let [_, _, _] = read else { return Truth::default() };
    let mut ways = [Vec::new(), Vec::new()];
    for index in 0..8_u8 {
        let bits = [index >> 2 & 1 != 0, index >> 1 & 1 != 0, index & 1 != 0];
        let possible =
            read.iter().zip(bits).all(|(truth, bit)| truth.known.is_none_or(|known| known == bit));
        if possible {
            ways[usize::from(table >> index & 1 == 0)].push(bits);
        }
    }
    let mut truth = Truth::default();
    for (side, ways) in ways.iter().enumerate() {
        if ways.is_empty() {
            return Truth::known(side == 1);
        }
        // Only one way to it: all that belongs to it holds.
        if let [bits] = ways.as_slice() {
            for (one, &bit) in read.iter().zip(bits) {
                let own = usize::from(!bit);
                truth.holds[side].extend(one.holds[own].iter().cloned());
                truth.guesses[side].extend(one.guesses[own].iter().cloned());
            }
        }
    }
    truth
}
