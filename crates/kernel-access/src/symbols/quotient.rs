//! Quotients of forms.

use std::cell::Cell;
use std::rc::Rc;

use super::{Changed, Division, Kind, Symbols};
use crate::facts::Facts;
use crate::form::{Bounds, Form, MOST, SINGLE, Symbol, gcd};
use crate::words::Words;

/// No quotient keeps more about remainders.
const MOST_RELATED: usize = 8;

impl Symbols {
    /// `form / divisor`, rounded down.
    pub(crate) fn quotient(&mut self, form: &Form, divisor: i128, facts: &Facts) -> Option<Form> {
        if divisor <= 0 || divisor >= MOST {
            return None;
        }
        // Mostly the symbols' own bounds tell, or what follows from them without the facts.
        let one = |(low, high): Bounds| {
            let (low, high) = (low?.div_euclid(divisor), high?.div_euclid(divisor));
            (low == high).then_some(Form::number(low))
        };
        let quotient =
            one(self.own_bounds(form)).or_else(|| one(self.bounds(form, &Facts::default())));
        let with_facts = || if facts.is_empty() { None } else { one(self.bounds(form, facts)) };
        if let Some(quotient) = quotient.or_else(with_facts) {
            return Some(quotient);
        }
        // The quotient of a sum with another quotient is one.
        let inner = form.terms.iter().find_map(|term| match self.symbols.get(term.0 as usize) {
            Some((Kind::Quotient(of, by, _), _)) if term.1 == 1 => Some((term.0, of.clone(), *by)),
            _ => None,
        });
        if let Some((symbol, of, by)) = inner
            && let Some(by_both) = by.checked_mul(divisor).filter(|&by| by < MOST)
            && let Some(both) =
                form.plus(-1, &Form::symbol(symbol)).and_then(|others| of.plus(by, &others))
        {
            let quotient = self.quotient(&both, by_both, facts)?;
            self.relate(form, divisor, (&both, by_both), &quotient);
            return Some(quotient);
        }
        let common = form.terms.iter().fold(0, |common, term| gcd(common, term.1));
        // A product with a number that stands for the division by another.
        if common > 1 && form.constant == 0 && divisor >= SINGLE && common < divisor {
            let dividend = Form {
                constant: 0,
                terms: form.terms.iter().map(|term| (term.0, term.1 / common)).collect(),
            };
            let by = (divisor + common / 2) / common;
            let excess = common.checked_mul(by)? - divisor;
            if by > 1
                && excess >= 0
                && let (Some(0..), Some(most)) = self.bounds(&dividend, facts)
                && excess.checked_mul(most).is_some_and(|excess| excess < divisor)
            {
                return self.quotient(&dividend, by, facts);
            }
        }
        // Multiples of the divisor are whole. What is above 2^32 is a register's upper half, of which
        // each multiple counts; other sums are not torn apart, so that their terms belong together.
        let mut whole = Form::number(form.constant.div_euclid(divisor));
        let mut rest = Form::number(form.constant.rem_euclid(divisor));
        for &(symbol, factor) in &form.terms {
            let mut part = factor.rem_euclid(divisor);
            if part > divisor / 2 {
                part -= divisor;
            }
            if divisor < SINGLE && part != 0 {
                part = factor;
            }
            if part != 0 {
                rest.terms.push((symbol, part));
            }
            let multiple = (factor - part) / divisor;
            if multiple != 0 {
                whole.terms.push((symbol, multiple));
            }
        }
        if rest.terms.is_empty() {
            return Some(whole);
        }
        if rest != *form {
            let quotient = self.quotient(&rest, divisor, facts)?;
            return whole.plus(1, &quotient);
        }
        let shared = gcd(common, divisor);
        if shared > 1 {
            let smaller = Form {
                constant: rest.constant.div_euclid(shared),
                terms: rest.terms.iter().map(|term| (term.0, term.1 / shared)).collect(),
            };
            return self.quotient(&smaller, divisor / shared, facts);
        }
        let key = (rest, divisor);
        let symbol = match self.quotients.get(&key) {
            Some(&symbol) => symbol,
            None => {
                let own = Form::symbol(self.symbols.len() as Symbol);
                let rest = key.0.plus(-divisor, &own);
                let other = rest.as_ref().and_then(|of| Form::number(divisor - 1).plus(-1, of));
                let most = Cell::new((u64::MAX, [None; 2]));
                let changed = Cell::new((u64::MAX, Changed::default()));
                let negative = key.0.times(-1);
                let reach = self.reach_of(&key.0);
                let division = Division {
                    reach,
                    negative,
                    facts: [rest, other].into_iter().flatten().collect(),
                    most,
                    changed,
                };
                let kind = Kind::Quotient(Rc::new(key.0.clone()), divisor, Rc::new(division));
                let symbol = self.push(kind, Words::new());
                self.quotients.insert(key, symbol);
                symbol
            }
        };
        Some(Form::symbol(symbol))
    }

    /// Keeps what the remainder of a form can be, if its quotient is also another form's: the row of a
    /// picture, which is a quotient, has a remainder among the rows of all pictures.
    ///
    /// Only if the quotient is by definition the one of `both`, or of that without a common factor: one
    /// that was made simpler by what is known just now is not the other form's everywhere.
    fn relate(
        &mut self,
        form: &Form,
        divisor: i128,
        (both, by_both): (&Form, i128),
        quotient: &Form,
    ) {
        let &[(symbol, 1)] = &quotient.terms[..] else { return };
        let Some((Kind::Quotient(of, by, _), _)) = self.symbols.get(symbol as usize) else {
            return;
        };
        let factor = by_both / by;
        let is_same = quotient.constant == 0
            && by.checked_mul(factor) == Some(by_both)
            && of.constant == both.constant.div_euclid(factor)
            && of.times(factor).is_some_and(|of| of.terms == both.terms);
        let Some(rest) = form.plus(-divisor, quotient).filter(|_| is_same) else { return };
        let other = Form::number(divisor - 1).plus(-1, &rest);
        let mut reach = self.reach_of(&rest);
        if let Some((Kind::Quotient(_, _, division), _)) = self.symbols.get_mut(symbol as usize)
            && division.facts.len() < MOST_RELATED
            && !division.facts.contains(&rest)
        {
            let division = Rc::make_mut(division);
            division.facts.extend([Some(rest), other].into_iter().flatten());
            reach.extend(&division.reach);
            reach.retain(|&one| one != symbol);
            reach.sort_unstable();
            reach.dedup();
            division.reach = reach;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Symbols;
    use crate::facts::Facts;
    use crate::form::Form;
    use crate::symbols::Kind;
    use crate::words::Words;

    /// Quotients of random forms have the value that they say, and lie in their bounds.
    #[test]
    fn quotients_and_bounds_are_true_of_numbers() {
        let mut state = 9_u64;
        let mut random = |below: i128| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            i128::from(state >> 20) % below
        };
        let mut simplified = 0;
        'sums: for _ in 0..3000 {
            let mut symbols = Symbols::default();
            let mut values = Vec::new();
            for _ in 0..3 {
                let (low, bits) = (random(200) - 100, 1 + random(40));
                let size = random(1 << bits) + 1;
                symbols.fixed(low, low + size, Words::new());
                values.push(low + random(size + 1));
            }
            // Facts that are true of these values.
            let mut facts = Facts::default();
            let mut forms = Vec::new();
            for symbol in 0..3 {
                forms.push(Form::symbol(symbol));
            }
            for _ in 0..6 {
                let pick = |random: &mut dyn FnMut(i128) -> i128, forms: &[Form]| {
                    forms[random(forms.len() as i128) as usize].clone()
                };
                let (one, two) = (pick(&mut random, &forms), pick(&mut random, &forms));
                let factor = [1, -1, 4, 1 << 32, 0x5555_5556, -3][random(6) as usize];
                let sum = one.times(factor).and_then(|one| one.plus(1, &two));
                let Some(sum) = sum.and_then(|sum| sum.and(random(50) - 25)) else { continue };
                let Some(value) = value(&symbols, &sum, &values) else { continue 'sums };
                if random(3) == 0 {
                    facts.extend(sum.and(random(3) - value).into_iter());
                }
                let divisor = [2, 8, 1 << 32, 1 << 35, 24, 7][random(6) as usize];
                let count = symbols.symbols.len();
                if let Some(quotient) = symbols.quotient(&sum, divisor, &facts) {
                    let expected = value.div_euclid(divisor);
                    let found = self::value(&symbols, &quotient, &values);
                    assert!(found.is_none_or(|found| found == expected), "{sum:?} / {divisor}");
                    simplified += usize::from(symbols.symbols.len() == count);
                    forms.push(quotient);
                }
                forms.push(sum);
            }
            for form in &forms {
                let Some(value) = value(&symbols, form, &values) else { continue };
                let (low, high) = symbols.bounds(form, &facts);
                assert!(low.is_none_or(|low| low <= value), "{form:?} {:?}", &*facts);
                assert!(high.is_none_or(|high| value <= high), "{form:?} {:?}", &*facts);
            }
        }
        assert!(simplified > 1000, "{simplified}");
    }

    /// Bounds that were asked for before are not given where a symbol grew since, whatever it is in: quotients
    /// of quotients know of each other.
    #[test]
    fn bounds_stay_true_while_symbols_grow() {
        let mut state = 3_u64;
        let mut random = |below: i128| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            i128::from(state >> 20) % below
        };
        let mut looked_at = 0;
        for _ in 0..150 {
            let mut symbols = Symbols::default();
            let mut highest = [0_i128; 4];
            let grow = |symbols: &mut Symbols, highest: &mut [i128; 4], at: usize, by| {
                highest[at] += by;
                symbols.at((0, 0, at), (0, highest[at]), (0, 1 << 40), &Words::new())
            };
            let one = |at| Form::symbol(at);
            (0..4).for_each(|at| _ = grow(&mut symbols, &mut highest, at, 3));
            let mut forms: Vec<Form> = (0..4).map(one).collect();
            // A fact of two of them.
            let fact = forms[0].plus(-1, &forms[1]).and_then(|of| of.and(5)).expect("small");
            let facts = [Facts::default(), Facts::from(vec![fact.clone()])];
            for _ in 0..5 {
                let at = random(4) as usize;
                let bits = 1 + random(12);
                let by = random(1 << bits);
                grow(&mut symbols, &mut highest, at, by);
                let pick =
                    |random: &mut dyn FnMut(i128) -> i128| random(forms.len() as i128) as usize;
                let (first, second) = (pick(&mut random), pick(&mut random));
                let factor = [1, -1, 4, -12, 100][random(5) as usize];
                if let Some(sum) = forms[first].plus(factor, &forms[second]) {
                    let divisor = [2, 3, 8, 100][random(4) as usize];
                    forms.extend(symbols.quotient(&sum, divisor, &facts[0]));
                    forms.push(sum);
                }
                for _ in 0..4 {
                    let values: Vec<i128> = highest.iter().map(|high| random(high + 1)).collect();
                    let holds = value(&symbols, &fact, &values).is_some_and(|fact| fact >= 0);
                    for (form, known) in
                        forms.iter().flat_map(|of| facts.iter().map(move |at| (of, at)))
                    {
                        let (low, high) = symbols.bounds(form, known);
                        let Some(value) = value(&symbols, form, &values) else { continue };
                        if known.is_empty() || holds {
                            let is_in = low.is_none_or(|low| low <= value)
                                && high.is_none_or(|high| value <= high);
                            assert!(is_in, "{form:?} {low:?} {value} {high:?}");
                            looked_at += 1;
                        }
                    }
                }
            }
        }
        assert!(looked_at > 20_000, "{looked_at}");
    }

    /// None of a number that is too large.
    fn value(symbols: &Symbols, form: &Form, values: &[i128]) -> Option<i128> {
        let mut sum = form.constant;
        for &(symbol, factor) in &form.terms {
            let number = match &symbols.symbols[symbol as usize].0 {
                Kind::Quotient(of, divisor, _) => value(symbols, of, values)?.div_euclid(*divisor),
                _ => values[symbol as usize],
            };
            sum = sum.checked_add(number.checked_mul(factor)?)?;
        }
        Some(sum)
    }

    /// What makes a quotient simple on one path says nothing on another.
    #[test]
    fn a_quotient_under_facts_bounds_nothing_without_them() {
        let mut symbols = Symbols::default();
        let [block, thread] =
            [63, 255].map(|most| Form::symbol(symbols.fixed(0, most, Words::new())));
        let none = Facts::default();
        let row = symbols.quotient(&block, 8, &none).unwrap();
        let quarter = symbols.quotient(&thread, 4, &none).unwrap();
        let place = quarter.plus(32, &row).unwrap();
        let mut facts = Facts::default();
        facts.push(Form::number(127).plus(-1, &thread).unwrap());
        assert_eq!(symbols.quotient(&place, 32, &facts), Some(row));
        let mut others = Facts::default();
        others.push(Form::number(300).plus(-1, &place).unwrap());
        for facts in [none, others] {
            let (low, high) = symbols.bounds(&place, &facts);
            assert!(low <= Some(0) && high >= Some(7 * 32 + 63), "{high:?}");
        }
    }

    #[test]
    fn a_product_with_a_magic_number_is_a_division() {
        let mut symbols = Symbols::default();
        let n = Form::symbol(symbols.fixed(0, 100_000, Words::new()));
        let high =
            symbols.quotient(&n.times(0x5555_5556).expect("small"), 1 << 32, &Facts::default());
        let sum = high.and_then(|high| high.plus(1, &n)).expect("small");
        let quotient = symbols.quotient(&sum, 32, &Facts::default()).expect("small");
        assert_eq!(Some(quotient.clone()), symbols.quotient(&n, 24, &Facts::default()));
        // A remainder is less than its divisor.
        let rest = n.plus(-24, &quotient).expect("small");
        assert_eq!(symbols.bounds(&rest, &Facts::default()), (Some(0), Some(23)));
        assert_eq!(symbols.bounds(&quotient, &Facts::default()), (Some(0), Some(4166)));
    }

    /// A number is taken apart into a column, a row, and a picture, whichever way it is written.
    #[test]
    fn the_remainder_of_a_quotient_is_less_than_its_divisor() {
        let mut symbols = Symbols::default();
        let none = Facts::default();
        let n = Form::symbol(symbols.fixed(0, 99_999, Words::new()));
        let rows = symbols.quotient(&n, 100, &none).expect("small");
        let picture = symbols.quotient(&rows, 50, &none).expect("small");
        assert_eq!(Some(picture.clone()), symbols.quotient(&n, 5000, &none));
        let [column, row] = [(&n, 100, &rows), (&rows, 50, &picture)]
            .map(|(of, by, quotient)| of.plus(-by, quotient).expect("small"));
        assert_eq!(symbols.bounds(&column, &none), (Some(0), Some(99)));
        assert_eq!(symbols.bounds(&row, &none), (Some(0), Some(49)));
        // In another order.
        let place = picture.times(100).and_then(|of| column.plus(1, &of));
        let place = place.and_then(|of| of.plus(2000, &row)).expect("small");
        assert_eq!(symbols.bounds(&place, &none), (Some(0), Some(49 * 2000 + 19 * 100 + 99)));
    }
}
