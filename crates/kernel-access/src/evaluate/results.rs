//! What an instruction makes of its operands.

use super::truth::{Truth, by_table, joined_by};
use super::{DOUBLE, Evaluator, State};
use crate::decode::{Instruction, Junction, Operand, Operation, Register};
use crate::form::{Form, SINGLE};
use crate::instruction::{ZERO, after, registers_of_a_source};
use crate::words::{MEMORY, Words};

/// Instructions whose result is a number with a fraction, or numbers packed: never an address.
const FRACTIONS: [&str; 14] = [
    "FADD", "FMUL", "FFMA", "MUFU", "MUFU.RCP", "F2FP", "HADD2", "HMUL2", "HFMA2", "HMMA", "DADD",
    "DMUL", "DFMA", "DMMA",
];

/// Products of matrices that are in the memory of a block, the states of barriers and of the memory
/// of a tensor core, and what functions of the driver return: no address is made from a parameter by them.
const NEVER_OF_PARAMETERS: [&str; 9] =
    ["HGMMA", "IGMMA", "BGMMA", "QGMMA", "SYNCS", "UTCATOMSWS", "vprintf", "malloc", "free"];

/// Those that write as many registers as the decoder says.
const EXACT: [&str; 4] = ["HGMMA", "QGMMA", "MOV", "malloc"];

impl Evaluator<'_> {
    /// What the instruction writes.
    #[expect(clippy::too_many_lines, reason = "one arm for each operation")]
    pub(super) fn result(
        &mut self,
        state: &State,
        one: &Instruction,
        at: usize,
    ) -> (Vec<Form>, Vec<Truth>) {
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
                let Some(source) = one.sources.first() else { return self.unknown(state, one) };
                let form = self.long(state, source);
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
                    // The block's place in its cluster.
                    (0x88, Some((_, 1))) if self.code.architecture >= 90 => {
                        let all = (0, self.most_of_a_cluster() - 1);
                        Some(vec![self.fresh(all, all, &Words::new())])
                    }
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
            Operation::Permute => {
                let [first, selector, third] = [0, 1, 2].map(|at| self.value(state, operand(at)));
                self.permute(state, [&first, &third], &selector).map(|form| vec![form])
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
            Operation::Minimum { signed, wide } => {
                let size = if wide { DOUBLE } else { SINGLE };
                let [first, second] = [0, 1].map(|at| {
                    if wide {
                        let form = self.long(state, one.sources.get(at)?);
                        return self.view(&state.facts, &form, size, signed);
                    }
                    let source = one.sources.get(at);
                    let form = self.value(state, operand(at));
                    let form = if source.is_some_and(|source| source.negated) {
                        form.times(-1).unwrap_or_else(|| self.single(&Words::from([MEMORY])))
                    } else {
                        form
                    };
                    Some(self.number(state, &form, signed))
                });
                let (Some(first), Some(second)) = (first, second) else {
                    return self.unknown(state, one);
                };
                let form = self.minimum(state, one, [first, second], size);
                if wide {
                    form.and_then(|form| self.halves(state, form))
                } else {
                    form.map(|form| vec![form])
                }
            }
            Operation::MinimumOfSum { signed } => {
                let [first, second, third] = [0, 1, 2].map(|at| self.value(state, operand(at)));
                let sum = first.plus(1, &second).map(|sum| self.number(state, &sum, signed));
                let third = self.number(state, &third, signed);
                let form = sum.and_then(|sum| self.minimum(state, one, [sum, third], SINGLE));
                form.map(|form| vec![form])
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
            Operation::ReverseBits => match self.value(state, operand(0)).as_number() {
                Some(number) => {
                    let number = number.rem_euclid(SINGLE) as u32;
                    Some(vec![Form::number(number.reverse_bits().into())])
                }
                None => None,
            },
            Operation::CountBits => {
                let source = self.value(state, operand(0));
                let words = self.words_of(&[&source]);
                Some(vec![self.fresh((0, 32), (0, 32), &words)])
            }
            Operation::HighestBit { .. } => {
                let source = self.value(state, operand(0));
                let words = self.words_of(&[&source]);
                Some(vec![self.fresh((-1, 31), (-1, 31), &words)])
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
    pub(super) fn unknown(&mut self, state: &State, one: &Instruction) -> (Vec<Form>, Vec<Truth>) {
        let mut words = Words::new();
        let is_apart =
            matches!(one.operation, Operation::Other(name) if NEVER_OF_PARAMETERS.contains(&name));
        if is_apart {
            words.insert(MEMORY);
        } else if one.sources.is_empty() && matches!(one.operation, Operation::Other(_)) {
            words = self.all();
        }
        for source in one.sources.iter().filter(|_| !is_apart) {
            match source.operand {
                Operand::Register(mut register) => {
                    let count = registers_of_a_source(one.operation);
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
        if matches!(one.operation, Operation::Other(name) if FRACTIONS.contains(&name)) {
            words.forget_address();
        }
        let Some((mut register, count)) = one.destination else { return (Vec::new(), Vec::new()) };
        if matches!(one.operation, Operation::Computed | Operation::Other("malloc")) && count == 2 {
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
            if matches!(one.operation, Operation::Other(name) if !EXACT.contains(&name)) {
                let old = self.register(state, register);
                self.symbols.words(&old, &mut words);
            }
            forms.push(self.single(&words));
        }
        (forms, Vec::new())
    }
}
