//! What is known to hold where a form is looked at, and the bounds that follow from it.

use std::cell::RefCell;
use std::ops::Deref;
use std::rc::Rc;

use rustc_hash::FxHashMap as HashMap;

use crate::form::{Bounds, Form, Symbol};

/// Forms that are not negative.
#[derive(Default)]
pub(crate) struct Facts {
    forms: Vec<Form>,
    /// Made when it is asked for.
    parts: RefCell<Option<Parts>>,
}

/// Facts about the same symbols, together: of a number only those matter that are about one of its
/// symbols, or about one of theirs.
struct Parts {
    /// In order, with the facts that belong to each: bits, of which the last is for all others.
    symbols: Vec<(Symbol, u64)>,
    /// A bit for each of the symbols, modulo 64.
    mask: u64,
    /// Where bounds by some of the facts are in [`Known`], of that generation.
    places: Vec<(u64, usize)>,
    generation: u64,
}

impl Facts {
    pub(crate) fn push(&mut self, fact: Form) {
        self.forms.push(fact);
        self.parts = RefCell::default();
    }

    /// The facts that matter for bounds of these terms, as bits. `reach` has what a symbol is made of,
    /// without itself.
    pub(crate) fn matter<'a>(
        &self,
        terms: &[(Symbol, i128)],
        reach: impl Fn(Symbol) -> &'a [Symbol],
    ) -> u64 {
        if self.forms.is_empty() {
            return 0;
        }
        let mut parts = self.parts.borrow_mut();
        let parts = parts.get_or_insert_with(|| Parts::new(&self.forms, &reach));
        let mut bits = 0;
        for &(symbol, _) in terms {
            bits |= parts.of(symbol);
            for &symbol in reach(symbol) {
                bits |= parts.of(symbol);
            }
        }
        bits
    }

    pub(crate) fn extend(&mut self, facts: impl Iterator<Item = Form>) {
        self.forms.extend(facts);
        self.parts = RefCell::default();
    }
}

impl Clone for Facts {
    fn clone(&self) -> Self {
        Self::from(self.forms.clone())
    }
}

impl From<Vec<Form>> for Facts {
    fn from(forms: Vec<Form>) -> Self {
        Self { forms, parts: RefCell::default() }
    }
}

impl Deref for Facts {
    type Target = [Form];

    fn deref(&self) -> &[Form] {
        &self.forms
    }
}

impl PartialEq for Facts {
    fn eq(&self, other: &Self) -> bool {
        self.forms == other.forms
    }
}

impl Parts {
    /// `reach` has what a symbol is made of, without itself.
    fn new<'a>(forms: &[Form], reach: impl Fn(Symbol) -> &'a [Symbol]) -> Self {
        let mut symbols: Vec<(Symbol, u64)> = Vec::new();
        for (at, form) in forms.iter().enumerate() {
            let bit = 1 << at.min(63);
            for &(symbol, _) in &form.terms {
                symbols.push((symbol, bit));
                symbols.extend(reach(symbol).iter().map(|&symbol| (symbol, bit)));
            }
        }
        symbols.sort_unstable();
        symbols.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            if is_same {
                kept.1 |= next.1;
            }
            is_same
        });
        let mut parts: Vec<u64> = Vec::new();
        for &(_, bits) in &symbols {
            let mut all = bits;
            parts.retain(|part| {
                let is_apart = part & bits == 0;
                if !is_apart {
                    all |= part;
                }
                is_apart
            });
            parts.push(all);
        }
        let mut mask = 0;
        for (symbol, bits) in &mut symbols {
            mask |= 1 << (*symbol % 64);
            *bits = parts.iter().copied().find(|part| part & *bits != 0).unwrap_or(*bits);
        }
        Self { symbols, mask, places: Vec::new(), generation: 0 }
    }

    fn of(&self, symbol: Symbol) -> u64 {
        if self.mask >> (symbol % 64) & 1 == 0 {
            return 0;
        }
        let found = self.symbols.binary_search_by_key(&symbol, |entry| entry.0).ok();
        found.and_then(|at| self.symbols.get(at)).map_or(0, |entry| entry.1)
    }
}

/// Forms that are not negative, with their masks.
pub(crate) type Masked = [(u64, Form)];

/// The bounds that were asked for.
#[derive(Default)]
pub(crate) struct Known {
    places: HashMap<Vec<Form>, usize>,
    bounds: Vec<Remembered>,
    /// How many bounds there are.
    pub(crate) count: usize,
    /// How often all were forgotten.
    generation: u64,
}

/// Bounds by the same facts.
pub(crate) struct Remembered {
    pub(crate) facts: Rc<Masked>,
    /// By the terms of a form, with how many changes there were before they were asked for.
    pub(crate) bounds: HashMap<Vec<(Symbol, i128)>, (u64, Bounds)>,
    /// How many changes there were when the facts were looked at, and when they had grown last.
    pub(crate) grown: (u64, u64),
}

/// How many bounds are remembered.
const REMEMBERED: usize = 1 << 15;

impl Known {
    /// Those by some of the facts.
    pub(crate) fn with(&mut self, facts: &Facts, matter: u64) -> Option<&mut Remembered> {
        if self.count > REMEMBERED {
            *self = Self { generation: self.generation + 1, ..Self::default() };
        }
        let mut parts = facts.parts.borrow_mut();
        let at = match parts.as_mut().filter(|_| matter != 0) {
            None => self.place(Vec::new()),
            Some(parts) => {
                if parts.generation != self.generation {
                    parts.generation = self.generation;
                    parts.places.clear();
                }
                match parts.places.iter().find(|place| place.0 == matter) {
                    Some(&(_, at)) => at,
                    None => {
                        let forms = facts.forms.iter().enumerate();
                        let forms = forms.filter(|&(at, _)| matter >> at.min(63) & 1 != 0);
                        let at = self.place(forms.map(|(_, form)| form.clone()).collect());
                        parts.places.push((matter, at));
                        at
                    }
                }
            }
        };
        self.bounds.get_mut(at)
    }

    fn place(&mut self, facts: Vec<Form>) -> usize {
        if let Some(&at) = self.places.get(&facts) {
            return at;
        }
        let masked = facts.iter().map(|fact| (fact.mask(), fact.clone())).collect();
        let remembered =
            Remembered { facts: masked, bounds: HashMap::default(), grown: (u64::MAX, 0) };
        self.bounds.push(remembered);
        self.places.insert(facts, self.bounds.len() - 1);
        self.bounds.len() - 1
    }
}
