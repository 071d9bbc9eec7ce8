//! What a number leaves out between its bounds.

use super::{Kind, Symbols};
use crate::facts::Facts;
use crate::form::{Form, Symbol, gcd};

/// Where a number may be: `width` or less behind a multiple of `pitch` from `first`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gaps {
    pub(crate) first: i128,
    pub(crate) width: i128,
    pub(crate) pitch: i128,
}

/// A term of a sum: a symbol, or the remainder of a division, from 0 to a number.
#[derive(Clone, Copy)]
enum Part {
    Symbol(Symbol),
    Remainder(i128),
}

impl Symbols {
    /// The gaps between the places where accesses of so many bytes may be: a tile of a matrix leaves
    /// out what is beside it in each row, and one of a cube what is beside it in each plane, too.
    pub(crate) fn gaps(&self, form: &Form, facts: &Facts, bytes: i128) -> Vec<Gaps> {
        self.levels(form, facts, bytes).unwrap_or_default()
    }

    fn levels(&self, form: &Form, facts: &Facts, bytes: i128) -> Option<Vec<Gaps>> {
        let (form, mut parts) = self.with_remainders(form)?;
        parts.sort_by_key(|part| core::cmp::Reverse(part.1.unsigned_abs()));
        let mut levels = Vec::new();
        let mut pitch = 0;
        for outer in 1..=parts.len() {
            pitch = gcd(pitch, parts.get(outer - 1)?.1);
            if pitch <= bytes {
                break;
            }
            let mut inner = Form::number(form.constant);
            let (mut less, mut more) = (0_i128, 0_i128);
            for &(part, factor) in parts.get(outer..)? {
                match part {
                    Part::Symbol(symbol) => inner.terms.push((symbol, factor)),
                    Part::Remainder(most) => {
                        let most = most.checked_mul(factor)?;
                        less = less.checked_add(most.min(0))?;
                        more = more.checked_add(most.max(0))?;
                    }
                }
            }
            inner.terms.sort_unstable_by_key(|term| term.0);
            let (Some(low), Some(high)) = self.bounds(&inner, facts) else { continue };
            let first = low.checked_add(less)?;
            let width = high.checked_add(more)?.checked_sub(first)?;
            if width.checked_add(bytes)? < pitch {
                levels.push(Gaps { first, width, pitch });
            }
        }
        Some(levels)
    }

    /// The terms of a sum. Where a number and its quotient are in it, its remainder is a term: of a
    /// number that was divided into a row and a column the column is one.
    fn with_remainders(&self, form: &Form) -> Option<(Form, Vec<(Part, i128)>)> {
        let mut rest = form.clone();
        let mut parts = Vec::new();
        for &(quotient, _) in &form.terms {
            let Some((Kind::Quotient(of, divisor, _), _)) = self.symbols.get(quotient as usize)
            else {
                continue;
            };
            let Some(&(symbol, factor)) = of.terms.first() else { continue };
            let own = rest.factor(symbol);
            if own == 0 || own % factor != 0 {
                continue;
            }
            let times = own / factor;
            let row = Form::symbol(quotient).times(divisor.checked_mul(times)?)?;
            let Some(less) = rest.plus(-times, of).and_then(|less| less.plus(1, &row)) else {
                continue;
            };
            if less.terms.len() < rest.terms.len() {
                rest = less;
                parts.push((Part::Remainder(divisor - 1), times));
            }
        }
        let mut constant = rest.constant;
        for &(symbol, factor) in &rest.terms {
            match self.symbols.get(symbol as usize)? {
                (Kind::Free { low, high, .. }, _) if low == high => {
                    constant = constant.checked_add(low.checked_mul(factor)?)?;
                }
                _ => parts.push((Part::Symbol(symbol), factor)),
            }
        }
        Some((Form::number(constant), parts))
    }
}

#[cfg(test)]
mod tests {
    use crate::facts::Facts;
    use crate::form::Form;
    use crate::symbols::Symbols;
    use crate::words::Words;

    #[test]
    fn bounds_that_are_too_far_apart_leave_no_gaps() {
        let mut symbols = Symbols::default();
        let [a, b, c] = [1 << 64, 1 << 64, 3].map(|high| symbols.fixed(0, high, Words::new()));
        for (times, some) in [(1_i128 << 62, false), (1 << 30, true)] {
            let form = Form { constant: 0, terms: vec![(a, times), (b, -times), (c, 1 << 100)] };
            let gaps = symbols.gaps(&form, &Facts::default(), 4);
            assert_eq!(!gaps.is_empty(), some, "{times:#x}");
        }
    }
}
