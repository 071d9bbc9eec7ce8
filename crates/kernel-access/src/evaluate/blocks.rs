//! What the instructions of a block do to a state, and with which ones the next blocks begin.

use std::rc::Rc;

use super::truth::{Truth, both};
use super::{DOUBLE, Evaluator, MOST_FACTS, MOST_STEPS, MOST_WORK, State, TooLong, Value};
use crate::decode::{INSTRUCTION, Instruction, Operation, Predicate};
use crate::form::Form;
use crate::instruction::{after, always};

impl Evaluator<'_> {
    /// The states in which the blocks after this one begin.
    pub(super) fn block(
        &mut self,
        at: usize,
        mut state: State,
    ) -> Result<Vec<(usize, State)>, TooLong> {
        let code = self.code;
        let Some(block) = code.graph.blocks.get(at) else { return Ok(Vec::new()) };
        for index in block.instructions.clone() {
            self.steps = self.steps.checked_sub(1).ok_or(TooLong)?;
            // A clock of processor time is a system call: not at each step.
            let asks = self.steps % 16 == MOST_STEPS.wrapping_sub(1) % 16;
            let is_late = asks && self.end.is_some_and(|(clock, end)| clock() >= end);
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
        if let Some(next) = self.computed(&state, one, &block.next) {
            return Ok(vec![(next, state)]);
        }
        let (conditional, divergent) = match one.operation {
            Operation::Branch { divergent } => (true, divergent),
            Operation::Exit | Operation::Call | Operation::Return | Operation::Converge(_) => {
                (true, false)
            }
            // No condition says which way it goes.
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
            if self.prunes && way.is_some() && truth.known == way.map(|way| !way) {
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

    /// The one of these blocks that a branch to a computed place goes to in this launch, if that is known.
    fn computed(&mut self, state: &State, one: &Instruction, next: &[usize]) -> Option<usize> {
        let [place, base] = one.sources.as_slice() else { return None };
        if one.operation != Operation::BranchIndirect || !self.prunes || !always(one) {
            return None;
        }
        let (place, base) = (self.long(state, place), self.long(state, base));
        let target = place.plus(1, &base)?.as_number()?.rem_euclid(DOUBLE);
        let blocks = &self.code.graph.blocks;
        let begins = |at: &&usize| {
            let begin = blocks.get(**at).map(|block| block.instructions.start * INSTRUCTION);
            begin.is_some_and(|begin| begin as i128 == target)
        };
        next.iter().find(begins).copied()
    }

    pub(super) fn assume(&self, state: &mut State, truth: &Truth, way: bool) {
        let side = usize::from(!way);
        let is_new = |fact: &Form, known: &[Form]| {
            known.len() < MOST_FACTS && !fact.terms.is_empty() && !known.contains(fact)
        };
        for fact in &truth.holds[side] {
            if is_new(fact, &state.facts) {
                Rc::make_mut(&mut state.facts).push(fact.clone());
            }
        }
        for guess in &truth.guesses[side] {
            if is_new(guess, &state.guesses) {
                Rc::make_mut(&mut state.guesses).push(guess.clone());
            }
        }
    }

    pub(super) fn decide(&self, state: &mut State, predicate: Predicate, value: bool) {
        let Some(index) = predicate.index else { return };
        let by = (predicate.uniform, index);
        for registers in &mut state.registers {
            let is_by = |of: &Value| matches!(of, Value::Chosen { by: other, .. } if *other == by);
            if !registers.iter().any(is_by) {
                continue;
            }
            for register in Rc::make_mut(registers) {
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

    fn step(&mut self, state: &mut State, one: &Instruction, at: usize) {
        let mut guard = self.predicate(state, one.guard);
        if guard.known == Some(false) {
            if self.prunes {
                return;
            }
            guard = Truth::default();
        }
        // Where the instruction does something its guard holds.
        let sure = guard.known == Some(true);
        let (values, truths) = if sure {
            self.constants_read(state, one, at);
            self.result(state, one, at)
        } else {
            let mut inside = state.clone();
            self.assume(&mut inside, &guard, true);
            self.decide(&mut inside, one.guard, !one.guard.negated);
            self.constants_read(&inside, one, at);
            self.result(&inside, one, at)
        };
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
                    state.set(kind, number, Value::Plain(Rc::new(form)));
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
}
