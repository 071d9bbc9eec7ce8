//! The unknown numbers of an evaluation, and what is known of them.

mod bounds;
mod gaps;
mod quotient;
mod search;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use rustc_hash::FxHashMap as HashMap;

use crate::facts::{Facts, Known};
use crate::form::{Form, Symbol};
use crate::words::Words;

pub(crate) use gaps::Gaps;

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
#[derive(Clone, Debug)]
struct Division {
    /// The symbols that the form and the facts are made of, and those that these are made of.
    reach: Vec<Symbol>,
    /// The form's negative.
    negative: Option<Form>,
    /// The remainder, and the largest one less it: neither is negative. More of them if it is also the
    /// quotient of another quotient.
    facts: Vec<Form>,
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

    /// When a symbol that one of the terms depends on has changed last. What else is known of a quotient may be
    /// about others, too, but then it is true of each number that they can be, also of those that they could be
    /// before they grew: bounds by it stay true.
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
}
