//! Whole numbers that are sums of multiples of unknown numbers, and how large they can be.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

use rustc_hash::FxHashMap as HashMap;

use crate::facts::{Facts, Known, Masked};
use crate::words::Words;

/// The number of a symbol in [`Symbols`].
pub(crate) type Symbol = u32;

/// Bounds, each if there is one.
pub(crate) type Bounds = (Option<i128>, Option<i128>);

/// How often a loop turns at most: at some instructions for each turn a day is not enough for more.
const MOST_TURNS: i128 = 1 << 48;

/// No form has more terms, and no factor is larger: what would be has a symbol of its own.
const MOST_TERMS: usize = 12;
const MOST: i128 = 1 << 100;

/// The numbers that a register can have.
pub(crate) const SINGLE: i128 = 1 << 32;

/// A number, and multiples of symbols.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Form {
    pub(crate) constant: i128,
    /// In the order of the symbols; no factor is zero.
    pub(crate) terms: Vec<(Symbol, i128)>,
}

/// The product: of small numbers, as nearly all are, at once.
fn product(one: i128, two: i128) -> Option<i128> {
    match (i64::try_from(one), i64::try_from(two)) {
        (Ok(one), Ok(two)) => Some(i128::from(one) * i128::from(two)),
        _ => one.checked_mul(two),
    }
}

impl Form {
    pub(crate) fn number(constant: i128) -> Self {
        Self { constant, terms: Vec::new() }
    }

    pub(crate) fn symbol(symbol: Symbol) -> Self {
        Self { constant: 0, terms: vec![(symbol, 1)] }
    }

    /// The number, if it is one without symbols.
    pub(crate) fn as_number(&self) -> Option<i128> {
        self.terms.is_empty().then_some(self.constant)
    }

    pub(crate) fn factor(&self, symbol: Symbol) -> i128 {
        self.terms
            .binary_search_by_key(&symbol, |term| term.0)
            .map_or(0, |at| self.terms.get(at).map_or(0, |term| term.1))
    }

    /// The sum of this and `times` the other.
    pub(crate) fn plus(&self, times: i128, other: &Self) -> Option<Self> {
        let mut sum = Self {
            constant: self.constant.checked_add(product(other.constant, times)?)?,
            terms: Vec::with_capacity(self.terms.len() + other.terms.len()),
        };
        let (mut first, mut second) =
            (self.terms.iter().copied().peekable(), other.terms.iter().copied().peekable());
        loop {
            let (symbol, factor) = match (first.peek().copied(), second.peek().copied()) {
                (None, None) => break,
                (Some(one), None) => {
                    first.next();
                    one
                }
                (Some(one), Some(other)) if one.0 < other.0 => {
                    first.next();
                    one
                }
                (Some(one), Some(other)) if one.0 == other.0 => {
                    first.next();
                    second.next();
                    (one.0, one.1.checked_add(product(other.1, times)?)?)
                }
                (_, Some(other)) => {
                    second.next();
                    (other.0, product(other.1, times)?)
                }
            };
            if factor != 0 {
                sum.terms.push((symbol, factor));
            }
        }
        let is_small = |number: i128| number.unsigned_abs() < MOST.unsigned_abs();
        let small = is_small(sum.constant) && sum.terms.iter().all(|term| is_small(term.1));
        (small && sum.terms.len() <= MOST_TERMS).then_some(sum)
    }

    pub(crate) fn times(&self, factor: i128) -> Option<Self> {
        Self::number(0).plus(factor, self)
    }

    /// Whether both are the same modulo 2^32.
    pub(crate) fn is_congruent(&self, other: &Self) -> bool {
        self.plus(-1, other).is_some_and(|rest| {
            rest.constant % SINGLE == 0 && rest.terms.iter().all(|term| term.1 % SINGLE == 0)
        })
    }

    /// A bit for each symbol. Forms whose masks have no bit in common have no symbol in common.
    pub(crate) fn mask(&self) -> u64 {
        self.terms.iter().fold(0, |mask, term| mask | 1 << (term.0 % 64))
    }

    pub(crate) fn and(&self, number: i128) -> Option<Self> {
        self.plus(number, &Self::number(1))
    }
}

/// What is known of a symbol.
#[derive(Clone, Debug)]
enum Kind {
    /// A number between bounds. Where an instruction of a loop makes it, each turn has another.
    Free { block: Option<usize>, low: i128, high: i128, changes: u32 },
    /// How often the loop with this head has gone back to it.
    Turns(usize),
    /// The quotient, rounded down, and what else is asked of it.
    Quotient(Rc<Form>, i128, Rc<Division>),
}

/// What follows from a division of a form.
#[derive(Debug)]
struct Division {
    /// The symbols that the form is made of, and those that these are made of.
    reach: Vec<Symbol>,
    /// The form's negative.
    negative: Option<Form>,
    /// The remainder, and the largest one less it: neither is negative.
    facts: [Option<Form>; 2],
    /// The largest and the least quotient by the bounds of symbols alone, as they were last.
    most: Cell<(u64, [Option<i128>; 2])>,
    /// When the form has changed last, as it was asked last.
    changed: Cell<(u64, Changed)>,
}

/// When a number has changed last, counted in changes of all symbols: in any way, and in its bounds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Changed {
    pub(crate) last: u64,
    grown: u64,
}

impl Changed {
    fn max(self, other: Self) -> Self {
        Self { last: self.last.max(other.last), grown: self.grown.max(other.grown) }
    }
}

/// All symbols of an evaluation.
#[derive(Default)]
pub(crate) struct Symbols {
    symbols: Vec<(Kind, Words)>,
    /// Of each symbol.
    changed: Vec<Changed>,
    quotients: HashMap<(Form, i128), Symbol>,
    places: HashMap<(usize, usize, usize), Symbol>,
    turns: HashMap<usize, Symbol>,
    /// How often bounds or words of a symbol became more.
    pub(crate) changes: u64,
    /// How many facts were tried for bounds.
    tried: Cell<u64>,
    /// How often bounds of a symbol have grown.
    grown: u64,
    /// The bounds that were asked for.
    known: RefCell<Known>,
}

/// How many facts are tried for a bound.
const TRIED: u32 = 256;

impl Symbols {
    fn push(&mut self, kind: Kind, words: Words) -> Symbol {
        self.symbols.push((kind, words));
        self.changed.push(Changed::default());
        (self.symbols.len() - 1) as Symbol
    }

    /// One that is the same everywhere.
    pub(crate) fn fixed(&mut self, low: i128, high: i128, words: Words) -> Symbol {
        self.push(Kind::Free { block: None, low, high, changes: 0 }, words)
    }

    /// How much work was done: it decides how long an evaluation takes.
    pub(crate) fn work(&self) -> u64 {
        self.tried.get()
    }

    pub(crate) fn turns(&mut self, head: usize) -> Symbol {
        if let Some(&symbol) = self.turns.get(&head) {
            return symbol;
        }
        let symbol = self.push(Kind::Turns(head), Words::new());
        self.turns.insert(head, symbol);
        symbol
    }

    /// What is made at a place of a block. Its bounds only grow, and at last have `most`.
    pub(crate) fn at(
        &mut self,
        place: (usize, usize, usize),
        (low, high): (i128, i128),
        most: (i128, i128),
        words: &Words,
    ) -> Symbol {
        let Some(&symbol) = self.places.get(&place) else {
            let kind = Kind::Free { block: Some(place.0), low, high, changes: 0 };
            let symbol = self.push(kind, words.clone());
            // Nothing was made of it yet.
            self.places.insert(place, symbol);
            return symbol;
        };
        if let Some((Kind::Free { low: old_low, high: old_high, changes, .. }, old)) =
            self.symbols.get_mut(symbol as usize)
        {
            if low < *old_low || high > *old_high {
                *changes += 1;
                (*old_low, *old_high) = if *changes > 4 {
                    (most.0.min(low).min(*old_low), most.1.max(high).max(*old_high))
                } else {
                    (low.min(*old_low), high.max(*old_high))
                };
                self.changes += 1;
                self.grown += 1;
                if let Some(changed) = self.changed.get_mut(symbol as usize) {
                    *changed = Changed { last: self.changes, grown: self.changes };
                }
            }
            if !words.is_subset(old) {
                old.extend(words);
                self.changes += 1;
                if let Some(changed) = self.changed.get_mut(symbol as usize) {
                    changed.last = self.changes;
                }
            }
        }
        symbol
    }

    /// When a symbol that one of the terms depends on has changed last.
    pub(crate) fn changed(&self, terms: &[(Symbol, i128)]) -> Changed {
        terms.iter().fold(Changed::default(), |all, term| {
            all.max(match self.symbols.get(term.0 as usize) {
                Some((Kind::Quotient(of, _, division), _)) => {
                    let (changes, mut changed) = division.changed.get();
                    if changes != self.changes {
                        changed = self.changed(&of.terms);
                        division.changed.set((self.changes, changed));
                    }
                    changed
                }
                _ => self.changed.get(term.0 as usize).copied().unwrap_or_default(),
            })
        })
    }

    /// Whether the number may be another one in each turn of a loop with these blocks. The turns of
    /// the loop itself are not.
    pub(crate) fn varies(&self, form: &Form, head: usize, inside: &[bool]) -> bool {
        let is_inside = |block: usize| inside.get(block).copied().unwrap_or(true);
        form.terms.iter().any(|term| match self.symbols.get(term.0 as usize) {
            Some((Kind::Free { block, .. }, _)) => block.is_some_and(is_inside),
            Some((Kind::Turns(other), _)) => *other != head && is_inside(*other),
            Some((Kind::Quotient(of, ..), _)) => self.varies(of, head, inside),
            None => true,
        })
    }

    /// Adds what may have flowed into the number.
    pub(crate) fn words(&self, form: &Form, into: &mut Words) {
        for term in &form.terms {
            match self.symbols.get(term.0 as usize) {
                Some((Kind::Quotient(of, ..), _)) => self.words(of, into),
                Some((_, words)) => into.extend(words),
                None => {}
            }
        }
    }

    /// The form with another in the place of a symbol.
    pub(crate) fn replace(&mut self, form: &Form, symbol: Symbol, by: &Form) -> Option<Form> {
        let mut result = Form::number(form.constant);
        for &(one, factor) in &form.terms {
            let value = if one == symbol {
                by.clone()
            } else if let Some((Kind::Quotient(of, divisor, _), _)) = self.symbols.get(one as usize)
            {
                let (of, divisor) = (of.clone(), *divisor);
                let of = self.replace(&of, symbol, by)?;
                self.quotient(&of, divisor, &Facts::default())?
            } else {
                Form::symbol(one)
            };
            result = result.plus(factor, &value)?;
        }
        Some(result)
    }

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
            && let Some(form) =
                form.plus(-1, &Form::symbol(symbol)).and_then(|others| of.plus(by, &others))
        {
            return self.quotient(&form, by_both, facts);
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
                let division = Division { reach, negative, facts: [rest, other], most, changed };
                let kind = Kind::Quotient(Rc::new(key.0.clone()), divisor, Rc::new(division));
                let symbol = self.push(kind, Words::new());
                self.quotients.insert(key, symbol);
                symbol
            }
        };
        Some(Form::symbol(symbol))
    }

    /// Bounds of the number by those of its symbols alone: wider than [`bounds`](Self::bounds), and
    /// had at once.
    fn own_bounds(&self, form: &Form) -> Bounds {
        self.own_bounds_of(form.constant, &form.terms)
    }

    fn own_bounds_of(&self, constant: i128, terms: &[(Symbol, i128)]) -> Bounds {
        let low = self.own_most_of(constant, terms, -1).and_then(i128::checked_neg);
        (low, self.own_most_of(constant, terms, 1))
    }

    /// The largest that the number, or its negative, can be by that.
    fn own_most(&self, form: &Form, sign: i128) -> Option<i128> {
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

    fn reach_of(&self, form: &Form) -> Vec<Symbol> {
        let own = form.terms.iter().map(|term| term.0);
        let mut all: Vec<Symbol> =
            own.flat_map(|symbol| self.reach(symbol).iter().copied().chain([symbol])).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The symbols that a symbol is made of, without itself.
    fn reach(&self, symbol: Symbol) -> &[Symbol] {
        match self.symbols.get(symbol as usize) {
            Some((Kind::Quotient(_, _, division), _)) => &division.reach,
            _ => &[],
        }
    }

    /// The number of terms of `form` and `times` the other, and the sum of the largest of them, without
    /// the form itself; `None` where there is none.
    fn most_of_sum(&self, form: &Form, times: i128, other: &Form) -> Option<(usize, Option<i128>)> {
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
    fn most_of_symbol(&self, symbol: Symbol, factor: i128) -> Option<i128> {
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

/// A search for bounds by facts.
struct Search<'a> {
    symbols: &'a Symbols,
    facts: &'a Masked,
    /// How many facts may be tried yet.
    left: u32,
    /// The largest numbers that were found on the way, by the depth, and how many facts were tried for
    /// each: facts that are added one after the other lead to the same in any order.
    found: [HashMap<Form, (Option<i128>, u32)>; 2],
}

impl<'a> Search<'a> {
    fn new(symbols: &'a Symbols, facts: &'a Masked) -> Self {
        Self { symbols, facts, left: 0, found: Default::default() }
    }

    fn bounds(&mut self, form: &Form) -> Bounds {
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
                for fact in division.facts.iter().flatten() {
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

fn gcd(first: i128, second: i128) -> i128 {
    let (mut first, mut second) = (first.abs(), second.abs());
    while second != 0 {
        (first, second) = (second, first % second);
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
