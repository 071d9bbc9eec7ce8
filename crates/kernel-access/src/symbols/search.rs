//! A search for bounds by facts.

use rustc_hash::FxHashMap as HashMap;

use super::{Kind, Symbols};
use crate::facts::Masked;
use crate::form::{Bounds, Form, product};

/// How many facts are tried for a bound.
const TRIED: u32 = 256;

/// A search for bounds by facts.
pub(super) struct Search<'a> {
    symbols: &'a Symbols,
    facts: &'a Masked,
    /// How many facts may be tried yet.
    left: u32,
    /// The largest numbers that were found on the way, by the depth, and how many facts were tried for
    /// each: facts that are added one after the other lead to the same in any order.
    found: [HashMap<Form, (Option<i128>, u32)>; 2],
}

impl<'a> Search<'a> {
    pub(super) fn new(symbols: &'a Symbols, facts: &'a Masked) -> Self {
        Self { symbols, facts, left: 0, found: Default::default() }
    }

    pub(super) fn bounds(&mut self, form: &Form) -> Bounds {
        self.left = TRIED;
        let negative = form.times(-1);
        let low = negative.and_then(|negative| self.new_most(&negative, 3));
        self.left = TRIED;
        (low.and_then(i128::checked_neg), self.new_most(form, 3))
    }

    /// The largest that the form can be. What was found before is found again if as many facts may be
    /// tried.
    fn most(&mut self, form: &Form, depth: u32) -> Option<i128> {
        let place = (depth as usize).checked_sub(1);
        let Some(place) = place.filter(|_| !form.terms.is_empty()) else {
            return self.symbols.own_most(form, 1);
        };
        let known = self.found.get(place).and_then(|found| found.get(form));
        if let Some(&(most, tried)) = known
            && let Some(left) = self.left.checked_sub(tried)
        {
            self.left = left;
            return most;
        }
        let left = self.left;
        let most = self.new_most(form, depth);
        if self.left > 0
            && let Some(found) = self.found.get_mut(place)
        {
            found.insert(form.clone(), (most, left - self.left));
        }
        most
    }

    fn new_most(&mut self, form: &Form, depth: u32) -> Option<i128> {
        let symbols = self.symbols;
        let mut best = self.plain(form, depth);
        let mask = form.mask();
        for (_, fact) in self.facts.iter().filter(|fact| fact.0 & mask != 0) {
            self.with(fact, form, depth, &mut best);
        }
        for &(symbol, _) in &form.terms {
            if let Some((Kind::Quotient(.., division), _)) = symbols.symbols.get(symbol as usize) {
                for fact in &division.facts {
                    self.with(fact, form, depth, &mut best);
                }
            }
        }
        best
    }

    /// A multiple of what is not negative makes the number only larger.
    fn with(&mut self, fact: &Form, form: &Form, depth: u32, best: &mut Option<i128>) {
        for &(symbol, factor) in &fact.terms {
            let own = form.factor(symbol);
            if own == 0 || (own > 0) == (factor > 0) || self.left == 0 {
                continue;
            }
            let times = match factor {
                1 => -own,
                -1 => own,
                _ if own % factor == 0 => -(own / factor),
                _ => continue,
            };
            self.left -= 1;
            self.symbols.tried.set(self.symbols.tried.get() + 1);
            let Some((terms, sum)) = self.symbols.most_of_sum(form, times, fact) else { continue };
            let most = match terms < form.terms.len() {
                true => {
                    let Some(larger) = form.plus(times, fact) else { continue };
                    self.most(&larger, depth - 1)
                }
                false => sum,
            };
            *best = match (*best, most) {
                (Some(best), Some(most)) => Some(best.min(most)),
                (best, most) => best.or(most),
            };
        }
    }

    /// The sum of the largest terms.
    fn plain(&mut self, form: &Form, depth: u32) -> Option<i128> {
        let symbols = self.symbols;
        form.terms.iter().try_fold(form.constant, |sum, &(symbol, factor)| {
            let limit = match symbols.symbols.get(symbol as usize)? {
                (Kind::Quotient(of, divisor, division), _) => {
                    let depth = depth.saturating_sub(1);
                    let limit = if factor > 0 {
                        self.most(of, depth)?
                    } else {
                        -self.most(division.negative.as_ref()?, depth)?
                    };
                    limit.div_euclid(*divisor)
                }
                _ => symbols.most_of_symbol(symbol, factor)?,
            };
            sum.checked_add(product(limit, factor)?)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Search;
    use crate::facts::Facts;
    use crate::form::Form;
    use crate::symbols::Symbols;
    use crate::words::Words;

    /// The bounds by those facts that matter are those by all.
    #[test]
    fn other_facts_do_not_matter() {
        let mut state = 7_u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % below
        };
        let mut better = 0;
        for _ in 0..2000 {
            let mut symbols = Symbols::default();
            let mut forms: Vec<Form> =
                (0..12).map(|_| Form::symbol(symbols.fixed(-50, 100, Words::new()))).collect();
            for divisor in [3, 7, 1 << 32] {
                let (one, two) = (random(forms.len()), random(forms.len()));
                let sum = forms[one].times(5).and_then(|one| one.plus(1, &forms[two]));
                forms.extend(symbols.quotient(&sum.expect("small"), divisor, &Facts::default()));
            }
            let mut sum = || {
                let (one, two) = (random(forms.len()), random(forms.len()));
                let sum = forms[one].plus([1, -1, 3][random(3)], &forms[two]);
                sum.and_then(|sum| sum.and(random(20) as i128)).expect("small")
            };
            // Some of them lead from two symbols to one.
            let mut fact =
                |at| if at % 2 == 0 { sum() } else { sum().plus(-1, &sum()).expect("small") };
            let facts = Facts::from((0..8).map(&mut fact).collect::<Vec<_>>());
            let all: Vec<_> = facts.iter().map(|fact| (fact.mask(), fact.clone())).collect();
            for _ in 0..8 {
                let form = sum().plus(1, &sum()).expect("small");
                let bounds = symbols.bounds(&form, &facts);
                assert_eq!(
                    bounds,
                    Search::new(&symbols, &all).bounds(&form),
                    "{form:?} {:?}",
                    &*facts
                );
                better += usize::from(bounds != symbols.own_bounds(&form));
            }
        }
        assert!(better > 1000, "{better}");
        // A sum is not more than a third of a number that is at most 10.
        let mut symbols = Symbols::default();
        let [x, y, z] = [(); 3].map(|()| Form::symbol(symbols.fixed(0, 100, Words::new())));
        let third = symbols.quotient(&x, 3, &Facts::default()).expect("a quotient");
        let sum = y.plus(1, &z).expect("small");
        let less = third.plus(-1, &sum).expect("small");
        let facts = Facts::from(vec![less, Form::number(10).plus(-1, &x).expect("small")]);
        assert_eq!(symbols.bounds(&sum, &facts), (Some(0), Some(3)));
    }
}
