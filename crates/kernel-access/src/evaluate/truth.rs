//! Predicates: what holds if they are true or false.

use crate::decode::{Comparison, Junction};
use crate::form::Form;

/// A predicate: what holds if it is true, and if it is false.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Truth {
    pub(super) known: Option<bool>,
    /// Forms that are not negative if it is true, and if it is false.
    pub(super) holds: [Vec<Form>; 2],
    /// The same if a number that was compared did not overflow: what a loop may turn out to keep.
    pub(super) guesses: [Vec<Form>; 2],
    /// A carry, and the predicate that holds a part of it.
    pub(super) carry: Option<(Form, Option<u16>)>,
    /// It is the comparison of two numbers without sign: the first is less, or also equal, or only
    /// equal, or not equal.
    pub(super) low: Option<(Comparison, Form, Form)>,
    /// All of this only if that predicate has that value.
    pub(super) only_if: Option<((bool, u16), bool)>,
}

impl Truth {
    pub(super) fn known(value: bool) -> Self {
        Self { known: Some(value), ..Self::default() }
    }

    /// All that it depends on.
    pub(super) fn forms(&self) -> impl Iterator<Item = &Form> {
        let facts = self.holds.iter().chain(&self.guesses).flatten();
        let carry = self.carry.iter().map(|carry| &carry.0);
        facts.chain(carry).chain(self.low.iter().flat_map(|(_, x, y)| [x, y]))
    }

    pub(super) fn not(mut self) -> Self {
        self.known = self.known.map(|known| !known);
        self.holds.swap(0, 1);
        self.guesses.swap(0, 1);
        self.carry = None;
        self.low = match self.low {
            Some((Comparison::Less, x, y)) => Some((Comparison::LessOrEqual, y, x)),
            Some((Comparison::LessOrEqual, x, y)) => Some((Comparison::Less, y, x)),
            Some((Comparison::Equal, x, y)) => Some((Comparison::NotEqual, x, y)),
            Some((Comparison::NotEqual, x, y)) => Some((Comparison::Equal, x, y)),
            _ => None,
        };
        self
    }
}

pub(super) fn both(one: Truth, other: Truth) -> Truth {
    joined_by(Junction::And, one, other)
}

pub(super) fn joined_by(junction: Junction, one: Truth, other: Truth) -> Truth {
    match junction {
        Junction::And => match (one.known, other.known) {
            // What is compared is kept: it may be the lower half of a longer comparison.
            (_, Some(true)) => one,
            (Some(true), _) => other,
            (Some(false), _) | (_, Some(false)) => Truth::known(false),
            _ => Truth {
                holds: [[&*one.holds[0], &*other.holds[0]].concat(), Vec::new()],
                guesses: [[&*one.guesses[0], &*other.guesses[0]].concat(), Vec::new()],
                ..Truth::default()
            },
        },
        Junction::Or => joined_by(Junction::And, one.not(), other.not()).not(),
        Junction::Xor => match (one.known, other.known) {
            (Some(known), _) => {
                if known {
                    other.not()
                } else {
                    other
                }
            }
            (_, Some(known)) => {
                if known {
                    one.not()
                } else {
                    one
                }
            }
            _ => Truth::default(),
        },
    }
}

/// Three predicates by a table.
pub(super) fn by_table(table: u8, read: &[Truth]) -> Truth {
    let [_, _, _] = read else { return Truth::default() };
    let mut ways = [Vec::new(), Vec::new()];
    for index in 0..8_u8 {
        let bits = [index >> 2 & 1 != 0, index >> 1 & 1 != 0, index & 1 != 0];
        let possible =
            read.iter().zip(bits).all(|(truth, bit)| truth.known.is_none_or(|known| known == bit));
        if possible {
            ways[usize::from(table >> index & 1 == 0)].push(bits);
        }
    }
    let mut truth = Truth::default();
    for (side, ways) in ways.iter().enumerate() {
        if ways.is_empty() {
            return Truth::known(side == 1);
        }
        // Only one way to it: all that belongs to it holds.
        if let [bits] = ways.as_slice() {
            for (one, &bit) in read.iter().zip(bits) {
                let own = usize::from(!bit);
                truth.holds[side].extend(one.holds[own].iter().cloned());
                truth.guesses[side].extend(one.guesses[own].iter().cloned());
            }
        }
    }
    truth
}
