//! What holds where ways meet, and where a loop begins again.

use std::rc::Rc;

use super::values::{forms, plain};
use super::{Evaluator, Head, Mode, State, Value};
use crate::facts::Facts;
use crate::form::{Form, SINGLE};
use crate::words::Words;

impl Evaluator<'_> {
    /// What holds whichever way was taken.
    pub(super) fn join(&mut self, at: usize, ways: &[Rc<State>]) -> Option<Rc<State>> {
        let (first, rest) = ways.split_first()?;
        if rest.is_empty() {
            return Some(first.clone());
        }
        // Where a loop begins, what is one of several numbers before it is the same in all of its turns: it
        // is made where the ways to it parted.
        let parted = self.code.graph.dominators.get(at).copied().flatten();
        let parted = parted.filter(|_| self.heads.contains_key(&at));
        let mut state = State::clone(first);
        self.leave_unread(at, &mut state);
        for (way, other) in rest.iter().enumerate() {
            for kind in 0..2 {
                let is_same = Rc::ptr_eq(&state.registers[kind], &other.registers[kind]);
                let count = if is_same { 0 } else { state.registers[kind].len() };
                for number in 0..count {
                    let (one, two) =
                        (&state.registers[kind][number], &other.registers[kind][number]);
                    if one == two || !self.code.live().is_read(at, kind, number) {
                        continue;
                    }
                    // Each way has places of its own.
                    let (block, way) = match parted {
                        Some(block) => (block, (at + 1) * 65_536 + way),
                        None => (at, 16 + way),
                    };
                    self.place = (block, usize::MAX - way, (number + 256 * kind) * 16);
                    let (one, two) = (self.either(&state, &one.clone()), self.either(other, two));
                    let form = self.hull((&one, &state.facts), (&two, &other.facts));
                    state.set(kind, number, Value::Plain(Rc::new(form)));
                }
                for number in 0..state.predicates[kind].len() {
                    if state.predicates[kind][number] != other.predicates[kind][number] {
                        state.predicates[kind][number] = Rc::default();
                    }
                }
            }
            if state.facts != other.facts {
                let mut facts: Vec<Form> = Vec::new();
                for (own, others) in [(&state.facts, &other.facts), (&other.facts, &state.facts)] {
                    for fact in own.iter() {
                        if !facts.contains(fact) && self.implied(fact, others) {
                            facts.push(fact.clone());
                        }
                    }
                }
                state.facts = Rc::new(facts.into());
            }
            if state.guesses != other.guesses {
                Rc::make_mut(&mut state.guesses).retain(|guess| other.guesses.contains(guess));
            }
        }
        Some(Rc::new(state))
    }

    fn leave_unread(&self, at: usize, state: &mut State) {
        let live = self.code.live();
        for (kind, all) in self.unread.iter().enumerate() {
            for (number, any) in all.iter().enumerate() {
                if !live.is_read(at, kind, number) && state.registers[kind][number] != *any {
                    state.set(kind, number, any.clone());
                }
            }
        }
    }

    pub(super) fn implied(&self, fact: &Form, facts: &Facts) -> bool {
        self.symbols.is_implied(fact, facts)
    }

    /// One form for what may be one or another.
    pub(super) fn hull(
        &mut self,
        (one, facts): (&Form, &Facts),
        (two, other): (&Form, &Facts),
    ) -> Form {
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
    pub(super) fn head(&mut self, at: usize, entry: &State) -> State {
        let mut state = entry.clone();
        let Some(head) = self.heads.get(&at) else { return state };
        self.leave_unread(at, &mut state);
        let turns = Form::symbol(head.turns);
        let modes = head.modes.clone();
        let lost = head.words.clone();
        for &(uniform, number) in &head.lost_predicates {
            state.predicates[usize::from(uniform)][number] = Rc::default();
        }
        Rc::make_mut(&mut state.facts).extend(head.invariants.iter().cloned());
        state.guesses = Rc::default();
        // What is chosen by a predicate may be chosen by another value of it in the next turn.
        for kind in 0..2 {
            for number in 0..state.registers[kind].len() {
                let place = (at, usize::MAX - 3, (number + 256 * kind) * 16);
                if let Value::Chosen { .. } = &state.registers[kind][number] {
                    self.place = place;
                    let form = self.either(&state, &state.registers[kind][number].clone());
                    state.set(kind, number, Value::Plain(Rc::new(form)));
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
            state.set(kind, slot, Value::Plain(Rc::new(form)));
        }
        state
    }

    /// Whether what was assumed of a loop is so. What is not is assumed no more.
    pub(super) fn check(
        &mut self,
        at: usize,
        entry: &State,
        state: &State,
        back: &[&State],
    ) -> bool {
        let Some(mut head) = self.heads.remove(&at) else { return true };
        let mut stable = true;
        let next = Form::symbol(head.turns).and(1).unwrap_or_else(|| Form::number(0));
        let first = Form::number(0);
        for back in back {
            for kind in 0..2 {
                for slot in 0..state.registers[kind].len() {
                    if !self.code.live().is_read(at, kind, slot) {
                        continue;
                    }
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
                            self.high(&difference, &head, state).unwrap_or(Mode::Lost)
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
            for fact in one.facts.iter().chain(one.guesses.iter()) {
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

    pub(super) fn varies(&self, form: &Form, head: &Head, at: usize) -> bool {
        self.symbols.varies(form, at, &head.inside)
    }

    /// Whether a register is the quotient of another by 2^32.
    pub(super) fn is_high(&mut self, state: &State, own: (bool, u16), of: (bool, u16)) -> bool {
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

    /// The register that one is the upper half of as far as it changes in a turn by `difference`. The
    /// next check asks whether it is one before the loop.
    pub(super) fn high(&mut self, difference: &Form, head: &Head, state: &State) -> Option<Mode> {
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
            fits.then_some(Mode::High(of.0, of.1))
        })
    }
}
