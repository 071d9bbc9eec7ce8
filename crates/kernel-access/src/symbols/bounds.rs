//! How large forms can be.

use std::borrow::Cow;

use super::search::Search;
use super::{Kind, Symbols};
use crate::facts::Facts;
use crate::form::{Bounds, Form, MOST, MOST_TERMS, Symbol, product};

/// How often a loop turns at most: at some instructions for each turn a day is not enough for more.
const MOST_TURNS: i128 = 1 << 48;

impl Symbols {
    /// Bounds of the number by those of its symbols alone: wider than [`bounds`](Self::bounds), and
    /// had at once.
    pub(super) fn own_bounds(&self, form: &Form) -> Bounds {
        self.own_bounds_of(form.constant, &form.terms)
    }

    fn own_bounds_of(&self, constant: i128, terms: &[(Symbol, i128)]) -> Bounds {
        let low = self.own_most_of(constant, terms, -1).and_then(i128::checked_neg);
        (low, self.own_most_of(constant, terms, 1))
    }

    /// The largest that the number, or its negative, can be by that.
    pub(super) fn own_most(&self, form: &Form, sign: i128) -> Option<i128> {
        self.own_most_of(form.constant, &form.terms, sign)
    }

    fn own_most_of(&self, constant: i128, terms: &[(Symbol, i128)], sign: i128) -> Option<i128> {
        terms.iter().try_fold(product(constant, sign)?, |sum, &(symbol, factor)| {
            let factor = product(factor, sign)?;
            sum.checked_add(product(self.most_of_symbol(symbol, factor)?, factor)?)
        })
    }

    /// Whether the number is not negative where all `facts` are not.
    pub(crate) fn is_implied(&self, form: &Form, facts: &Facts) -> bool {
        facts.contains(form)
            || matches!(self.own_bounds(form).0, Some(0..))
            || matches!(self.bounds(form, facts).0, Some(0..))
    }

    /// Bounds of the number where all `facts` are not negative.
    pub(crate) fn bounds(&self, form: &Form, facts: &Facts) -> Bounds {
        let Some(&(_, factor)) = form.terms.first() else {
            return (Some(form.constant), Some(form.constant));
        };
        // Those of its terms, and of their negative: unrolled code asks for the same at many offsets.
        let is_negative = factor < 0 && form.terms.iter().all(|&(_, factor)| factor != i128::MIN);
        let negative = || form.terms.iter().map(|&(symbol, factor)| (symbol, -factor)).collect();
        let terms: Cow<'_, [(Symbol, i128)]> =
            if is_negative { Cow::Owned(negative()) } else { Cow::Borrowed(&form.terms) };
        let (low, high) = self.bounds_of(&terms, facts);
        let with = |number: Option<i128>| number?.checked_add(form.constant);
        if is_negative {
            (with(high.and_then(i128::checked_neg)), with(low.and_then(i128::checked_neg)))
        } else {
            (with(low), with(high))
        }
    }

    fn bounds_of(&self, terms: &[(Symbol, i128)], facts: &Facts) -> Bounds {
        let reach = |symbol| self.reach(symbol);
        let matter = facts.matter(terms, reach);
        let is_plain = |term: &(Symbol, i128)| {
            !matches!(self.symbols.get(term.0 as usize), None | Some((Kind::Quotient(..), _)))
        };
        if matter == 0 && terms.iter().all(is_plain) {
            return self.own_bounds_of(0, terms);
        }
        let mut known = self.known.borrow_mut();
        let Some(all) = known.with(facts, matter) else { return (None, None) };
        if all.grown.0 != self.changes {
            let grown = all.facts.iter().map(|fact| self.changed(&fact.1.terms).grown).max();
            all.grown = (self.changes, grown.unwrap_or_default());
        }
        if let Some((changes, bounds)) = all.bounds.get(terms)
            && (*changes == self.changes || all.grown.1.max(self.changed(terms).grown) <= *changes)
        {
            return *bounds;
        }
        let form = Form { constant: 0, terms: terms.to_vec() };
        let bounds = Search::new(self, &all.facts).bounds(&form);
        all.bounds.insert(terms.to_vec(), (self.changes, bounds));
        known.count += 1;
        bounds
    }

    /// The number of terms of `form` and `times` the other, and the sum of the largest of them, without
    /// the form itself; `None` where there is none.
    pub(super) fn most_of_sum(
        &self,
        form: &Form,
        times: i128,
        other: &Form,
    ) -> Option<(usize, Option<i128>)> {
        let is_small = |number: i128| number.unsigned_abs() < MOST.unsigned_abs();
        let constant = form.constant.checked_add(product(other.constant, times)?)?;
        let mut count = 0;
        let mut sum = Some(constant);
        let mut add = |symbol: Symbol, factor: i128| {
            if factor != 0 {
                count += 1;
                let most = || product(self.most_of_symbol(symbol, factor)?, factor);
                sum = sum.and_then(|sum| sum.checked_add(most()?));
            }
            is_small(factor)
        };
        let (mut own, mut others) = (form.terms.as_slice(), other.terms.as_slice());
        let mut small = is_small(constant);
        loop {
            small &= match (own, others) {
                ([], []) => break,
                ([(symbol, factor), rest @ ..], _)
                    if others.first().is_none_or(|other| symbol < &other.0) =>
                {
                    own = rest;
                    add(*symbol, *factor)
                }
                ([(symbol, factor), rest @ ..], [(other, more), last @ ..]) if symbol == other => {
                    (own, others) = (rest, last);
                    add(*symbol, factor.checked_add(product(*more, times)?)?)
                }
                (_, [(symbol, factor), rest @ ..]) => {
                    others = rest;
                    add(*symbol, product(*factor, times)?)
                }
                // The second arm has those.
                (_, []) => break,
            };
        }
        (small && count <= MOST_TERMS).then_some((count, sum))
    }

    /// The largest or the least that a symbol can be, for a positive or a negative factor, by the bounds
    /// of symbols alone.
    pub(super) fn most_of_symbol(&self, symbol: Symbol, factor: i128) -> Option<i128> {
        Some(match self.symbols.get(symbol as usize)? {
            (Kind::Free { low, high, .. }, _) => *if factor > 0 { high } else { low },
            (Kind::Turns(_), _) => {
                if factor > 0 {
                    MOST_TURNS
                } else {
                    0
                }
            }
            (Kind::Quotient(of, divisor, division), _) => {
                let (grown, mut most) = division.most.get();
                if grown != self.grown {
                    most = [1, -1].map(|sign| {
                        let most = self.own_most(of, sign)?.checked_mul(sign)?;
                        most.checked_div_euclid(*divisor)
                    });
                    division.most.set((self.grown, most));
                }
                most[usize::from(factor < 0)]?
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::facts::Facts;
    use crate::form::{Form, MOST, Symbol};
    use crate::symbols::Symbols;
    use crate::words::Words;

    /// What was asked before counts no longer once a symbol may be more.
    #[test]
    fn bounds_grow_with_their_symbols() {
        let mut symbols = Symbols::default();
        let place = |symbols: &mut Symbols, high| {
            symbols.at((0, 0, 0), (0, high), (0, 1000), &Words::new())
        };
        let one = Form::symbol(place(&mut symbols, 5));
        let third = symbols.quotient(&one, 3, &Facts::default()).expect("a quotient");
        let symbol = third.terms.first().expect("a symbol").0;
        // The symbol is at most 4.
        let facts = Facts::from(vec![Form::number(4).plus(-1, &one).expect("a difference")]);
        for high in [5, 9, 20] {
            assert_eq!(place(&mut symbols, high), one.terms.first().expect("a symbol").0);
            assert_eq!(symbols.bounds(&one, &Facts::default()), (Some(0), Some(high)));
            assert_eq!(symbols.bounds(&one, &facts), (Some(0), Some(4)));
            assert_eq!(symbols.bounds(&third, &Facts::default()), (Some(0), Some(high / 3)));
            let limits = [1, -1].map(|factor| symbols.most_of_symbol(symbol, factor));
            assert_eq!(limits, [Some(high / 3), Some(0)]);
        }
        // A symbol that is not more than one which grows.
        let place = |symbols: &mut Symbols, high| {
            Form::symbol(symbols.at((0, 0, 1), (0, high), (0, 1000), &Words::new()))
        };
        let most = place(&mut symbols, 5);
        let less = Form::symbol(symbols.fixed(0, 100, Words::new()));
        let facts = Facts::from(vec![most.plus(-1, &less).expect("a difference")]);
        for high in [5, 9, 20] {
            assert_eq!(place(&mut symbols, high), most);
            assert_eq!(symbols.bounds(&less, &facts), (Some(0), Some(high)));
            let negative = less.times(-1).and_then(|less| less.and(1)).expect("small");
            assert_eq!(symbols.bounds(&negative, &facts), (Some(1 - high), Some(1)));
        }
    }

    /// Sums that are not made have the bounds of those that are.
    #[test]
    fn sums_have_their_bounds_without_being_made() {
        let mut symbols = Symbols::default();
        let all: Vec<Symbol> =
            (0..4).map(|at| symbols.fixed(-at, 3 * at + 1, Words::new())).collect();
        let form = |constant, factors: [i128; 4]| {
            let terms = all.iter().copied().zip(factors).filter(|term| term.1 != 0).collect();
            Form { constant, terms }
        };
        let forms: Vec<Form> = (0..81)
            .map(|at| form(at - 40, [at % 3 - 1, at / 3 % 3 - 1, at / 9 % 3 - 1, at / 27 % 3 - 1]))
            .collect();
        for one in &forms {
            for two in &forms {
                for times in [-2, 1, 3] {
                    let made = one.plus(times, two);
                    let made = made.map(|of| (of.terms.len(), symbols.own_most(&of, 1)));
                    assert_eq!(
                        symbols.most_of_sum(one, times, two),
                        made,
                        "{one:?} {times} {two:?}"
                    );
                }
            }
        }
        let large = form(0, [MOST - 1, 1, 0, 0]);
        assert_eq!(symbols.most_of_sum(&large, 2, &large), None);
        // Of too many terms there is no form.
        for more in [8, 9] {
            let others = (0..more).map(|_| (symbols.fixed(0, 1, Words::new()), 1)).collect();
            let others = Form { constant: 0, terms: others };
            let own = form(1, [1, 1, 1, 1]);
            let made = own.plus(1, &others).map(|of| of.terms.len());
            assert_eq!(made, (more == 8).then_some(12));
            assert_eq!(symbols.most_of_sum(&own, 1, &others).map(|of| of.0), made);
        }
    }
}
