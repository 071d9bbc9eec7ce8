//! Sums, products, quotients, shifts and bits.

use super::truth::Truth;
use super::{DOUBLE, Evaluator, State};
use crate::decode::{Instruction, Operand, Operation, Predicate, Register};
use crate::form::{Form, SINGLE};
use crate::instruction::{logic, permuted};
use crate::words::Words;

impl Evaluator<'_> {
    pub(super) fn halves(&mut self, state: &State, form: Form) -> Option<Vec<Form>> {
        let high = self.symbols.quotient(&form, SINGLE, &state.facts)?;
        Some(vec![form, high])
    }

    pub(super) fn product(&mut self, state: &State, first: &Form, second: &Form) -> Option<Form> {
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

    pub(super) fn multiply_long(
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

    pub(super) fn divide(
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

    pub(super) fn multiply_add(
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
    pub(super) fn carry(&mut self, state: &State, read: &[Predicate]) -> Form {
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

    pub(super) fn add(
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
            [Some(one), Some(two)] => vec![truth(Some(two)), truth(Some(one))],
            [Some(_), ..] if operands < 3 && negations < 2 || small => vec![truth(None)],
            _ => any.to_vec(),
        };
        let forms = if wide { self.halves(state, sum)? } else { vec![sum] };
        Some((forms, truths))
    }

    /// The lesser of two, or the greater, if their bounds and the predicate that says which are known.
    pub(super) fn minimum(
        &mut self,
        state: &State,
        one: &Instruction,
        both: [Form; 2],
        size: i128,
    ) -> Option<Form> {
        let least = one.predicates_read.first();
        let least = least.and_then(|&read| self.predicate(state, read).known)?;
        let bounds = both.each_ref().map(|form| self.symbols.bounds(form, &state.facts));
        let [(Some(a), Some(b)), (Some(c), Some(d))] = bounds else { return None };
        let words = self.words_of(&both.each_ref());
        let bounds = if least { (a.min(c), b.min(d)) } else { (a.max(c), b.max(d)) };
        Some(self.fresh(bounds, (-size, size), &words))
    }

    pub(super) fn shift_add(
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
        let carries = one.predicates_written.iter().any(|written| written.index.is_some());
        let over = (carries && !first.negated)
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

    pub(super) fn shift(&mut self, state: &State, one: &Instruction) -> Option<Form> {
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

    pub(super) fn logic(&mut self, state: &State, table: u8, sources: [&Form; 3]) -> Option<Form> {
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
        // The bits above the highest of all sources are those of zeros.
        let mut highest = 0;
        for &at in &open {
            let view = self.view(&state.facts, sources.get(at)?, SINGLE, false)?;
            match self.symbols.bounds(&view, &state.facts) {
                (Some(0..), Some(high)) => highest = highest.max(high),
                _ => highest = SINGLE - 1,
            }
        }
        let bits = 128 - highest.leading_zeros();
        let lower = (((1_u64 << bits.min(32)) - 1) & 0xffff_ffff) as u32;
        let (mask, above) = (possible & lower, with(0) & !lower);
        let words = self.words_of(&sources);
        self.fresh((0, mask.into()), (0, SINGLE - 1), &words).and(above.into())
    }

    /// Four bytes of two numbers, by a selector that is known: of what is not a number no signs.
    pub(super) fn permute(
        &mut self,
        state: &State,
        sources: [&Form; 2],
        selector: &Form,
    ) -> Option<Form> {
        let number = |form: &Form| form.as_number().map(|number| number.rem_euclid(SINGLE) as u32);
        let selector = number(selector)?;
        if let [Some(first), Some(third)] = sources.map(number) {
            return Some(Form::number(permuted(first, selector, third).into()));
        }
        let chosen = [0, 4, 8, 12].map(|shift| selector >> shift & 15);
        if chosen.iter().any(|byte| *byte > 7) {
            return None;
        }
        let mut sum = Form::number(0);
        let mut bytes = chosen.into_iter().zip(0_u32..).peekable();
        while let Some((begin, to)) = bytes.next() {
            // Bytes that follow each other in the same source.
            let mut count = 1;
            while begin % 4 + count < 4
                && bytes.next_if(|(byte, _)| *byte == begin + count).is_some()
            {
                count += 1;
            }
            let from = begin % 4;
            let form = self.number(state, sources.get(begin as usize / 4)?, false);
            let mask = ((1_u64 << (8 * count)) - 1) << (8 * from);
            let part = self.masked(state, &form, mask as u32)?;
            let part = match to.checked_sub(from) {
                Some(up) => part.times(1 << (8 * up))?,
                None => self.symbols.quotient(&part, 1 << (8 * (from - to)), &state.facts)?,
            };
            sum = sum.plus(1, &part)?;
        }
        Some(sum)
    }

    /// The bits of a form that a mask lets through.
    pub(super) fn masked(&mut self, state: &State, form: &Form, mask: u32) -> Option<Form> {
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
}
