//! Sums, products and comparisons.

use super::State;
use super::results::Outcome;
use crate::decode::{Comparison, Instruction, Operand, Register, Source};

impl State<'_> {
    pub(super) fn multiply_add(
        &self,
        one: &Instruction,
        long: bool,
        high: bool,
        signed: bool,
        carry: bool,
    ) -> Option<Outcome> {
        let &[first, second, third] = one.sources.as_slice() else { return None };
        let (a, b) = (self.value(first.operand)?, self.value(second.operand)?);
        if long {
            // What a negation or a carry would mean here was never seen.
            if first.negated || second.negated || third.negated || carry {
                return None;
            }
            let product = if signed {
                (i64::from(a as i32) * i64::from(b as i32)) as u64
            } else {
                u64::from(a) * u64::from(b)
            };
            let sum = product.wrapping_add(self.wide(third.operand)?);
            return Some(Outcome::wide(Some(if high { sum >> 32 } else { sum })));
        }
        let c = self.value(third.operand)?;
        let product = a.wrapping_mul(b);
        let product =
            if first.negated != second.negated { product.wrapping_neg() } else { product };
        let sum = if carry {
            if first.negated || second.negated {
                return None;
            }
            let carry = one.predicates_read.first().and_then(|&read| self.predicate(read))?;
            product.wrapping_add(if third.negated { !c } else { c }).wrapping_add(carry.into())
        } else {
            product.wrapping_add(if third.negated { c.wrapping_neg() } else { c })
        };
        Some(Outcome { value: Some(sum.into()), predicates: [None; 2] })
    }

    pub(super) fn add(&self, one: &Instruction, wide: bool, carry: bool) -> Option<Outcome> {
        let bits = if wide { 64 } else { 32 };
        let mask = if wide { u128::from(u64::MAX) } else { u128::from(u32::MAX) };
        let mut sum = 0;
        let (mut negations, mut operands) = (0, 0);
        for source in &one.sources {
            let value = if wide {
                self.wide(source.operand)?.into()
            } else {
                u128::from(self.value(source.operand)?)
            };
            operands += u32::from(source.operand != Operand::Register(Register::Zero));
            // The negative is the complement and one.
            sum += if source.negated { mask - value } else { value };
            negations += u128::from(source.negated);
        }
        if carry {
            for &read in &one.predicates_read {
                sum += u128::from(self.predicate(read)?);
            }
        } else {
            sum += negations;
        }
        // Two predicates together have a carry of up to two; how they share it is not known, and only
        // their sum is used. One alone has it if there is only one.
        let over = sum >> bits;
        let both = one.predicates_written.iter().filter(|one| one.index.is_some()).count() == 2;
        let clear = both || operands < 3 && negations < 2 || over == 0;
        let predicates = if clear { [Some(over > 0), Some(over > 1)] } else { [None; 2] };
        Some(Outcome { value: Some(sum & mask), predicates })
    }

    pub(super) fn shift_add(
        &self,
        one: &Instruction,
        shift: u8,
        high: bool,
        extended: bool,
        carry: bool,
    ) -> Option<Outcome> {
        let (&first, &second) = (one.sources.first()?, one.sources.get(1)?);
        let (a, b) = (self.value(first.operand)?, self.value(second.operand)?);
        let shift = u32::from(shift & 31);
        let shifted = if high {
            if first.negated {
                return None;
            }
            let upper = match one.sources.get(2) {
                Some(upper) => self.value(upper.operand)?,
                None if extended => (a as i32 >> 31) as u32,
                None => return None,
            };
            ((u64::from(upper) << 32 | u64::from(a)) << shift >> 32) as u32
        } else {
            let shifted = a << shift;
            if first.negated { shifted.wrapping_neg() } else { shifted }
        };
        let mut sum = u64::from(shifted) + u64::from(if second.negated { !b } else { b });
        if carry {
            let read = one.predicates_read.first().and_then(|&read| self.predicate(read))?;
            sum += u64::from(read);
        } else {
            sum += u64::from(second.negated);
        }
        let over = (!first.negated).then_some(sum >> 32 != 0);
        Some(Outcome { value: Some((sum as u32).into()), predicates: [over, None] })
    }

    pub(super) fn minimum(&self, one: &Instruction, signed: bool, wide: bool) -> Option<Outcome> {
        let value = |source: &Source| {
            if wide {
                return self.long(source);
            }
            let value = self.value(source.operand)?;
            let value = if source.negated { value.wrapping_neg() } else { value };
            Some(if signed { value as i32 as u64 } else { value.into() })
        };
        let (a, b) = (value(one.sources.first()?)?, value(one.sources.get(1)?)?);
        let least = one.predicates_read.first().and_then(|&read| self.predicate(read))?;
        let less = if signed { (a as i64) < (b as i64) } else { a < b };
        Some(Outcome::wide(Some(if less == least { a } else { b })))
    }

    pub(super) fn minimum_of_sum(&self, one: &Instruction, signed: bool) -> Option<Outcome> {
        let value = |at: usize| self.value(one.sources.get(at)?.operand);
        let (sum, other) = (value(0)?.wrapping_add(value(1)?), value(2)?);
        let least = one.predicates_read.first().and_then(|&read| self.predicate(read))?;
        let less = if signed { (sum as i32) < (other as i32) } else { sum < other };
        Some(Outcome::wide(Some(if less == least { sum } else { other }.into())))
    }

    pub(super) fn compare(
        &self,
        one: &Instruction,
        comparison: Comparison,
        signed: bool,
        wide: bool,
        high: bool,
    ) -> Option<bool> {
        let (first, second) = (one.sources.first()?, one.sources.get(1)?);
        let number = |source: &Source| {
            Some(match (wide, signed) {
                (true, true) => i128::from(self.long(source)? as i64),
                (true, false) => self.long(source)?.into(),
                (false, true) => i128::from(self.value(source.operand)? as i32),
                (false, false) => self.value(source.operand)?.into(),
            })
        };
        let order = number(first)?.cmp(&number(second)?);
        // Of two upper halves that are equal the lower ones decide.
        if high && order.is_eq() && !matches!(comparison, Comparison::Never | Comparison::Always) {
            let lower = one.predicates_read.get(1).and_then(|&read| self.predicate(read));
            return lower;
        }
        Some(match comparison {
            Comparison::Never => false,
            Comparison::Less => order.is_lt(),
            Comparison::Equal => order.is_eq(),
            Comparison::LessOrEqual => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::NotEqual => order.is_ne(),
            Comparison::GreaterOrEqual => order.is_ge(),
            Comparison::Always => true,
        })
    }
}
