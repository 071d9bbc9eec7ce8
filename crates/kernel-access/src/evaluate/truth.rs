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

#[cfg(test)]
mod tests {
    use super::*;

    const WAYS: [bool; 2] = [true, false];

    /// A predicate that may be known, with a form of its own for each side.
    fn truth(number: u32, known: Option<bool>) -> Truth {
        let form = |side| vec![Form::symbol(4 * number + side)];
        let (holds, guesses) = ([form(0), form(1)], [form(2), form(3)]);
        Truth { known, holds, guesses, ..Truth::default() }
    }

    fn value(junction: Junction, one: bool, other: bool) -> bool {
        match junction {
            Junction::And => one && other,
            Junction::Or => one || other,
            Junction::Xor => one != other,
        }
    }

    /// Of both what is known, by all that each may be, and on each side what surely holds there.
    #[test]
    fn predicates_are_joined_by_all_that_they_may_be() {
        let all = [None, Some(true), Some(false)];
        let known =
            |of: Option<bool>| WAYS.into_iter().filter(move |way| of.is_none_or(|of| of == *way));
        for junction in [Junction::And, Junction::Or, Junction::Xor] {
            for (one, other) in all.iter().flat_map(|one| all.map(|other| (*one, other))) {
                let both =
                    || known(one).flat_map(|one| known(other).map(move |other| (one, other)));
                let joined = joined_by(junction, truth(0, one), truth(1, other));
                let mut results = both().map(|(one, other)| value(junction, one, other));
                let first = results.next();
                let expected = first.filter(|first| results.all(|result| result == *first));
                assert_eq!(joined.known, expected, "{junction:?} {one:?} {other:?}");
                for (side, way) in WAYS.into_iter().enumerate() {
                    let mut ways = both().filter(|both| value(junction, both.0, both.1) == way);
                    let Some(only) = ways.next().filter(|_| ways.next().is_none()) else {
                        continue;
                    };
                    let own = |kind: u32| {
                        let of = |number: u32, value: bool| {
                            Form::symbol(4 * number + kind + u32::from(!value))
                        };
                        // What is known anyway holds no more than it says.
                        let mut forms = Vec::new();
                        forms.extend(one.is_none().then(|| of(0, only.0)));
                        forms.extend(other.is_none().then(|| of(1, only.1)));
                        forms
                    };
                    if expected.is_none() {
                        assert_eq!(joined.holds[side], own(0), "{junction:?} {one:?} {other:?}");
                        assert_eq!(joined.guesses[side], own(2), "{junction:?} {one:?} {other:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_opposite_of_a_predicate_has_what_holds_if_it_is_false() {
        use Comparison::{Equal, Less, LessOrEqual, NotEqual};
        let (x, y) = (Form::symbol(8), Form::symbol(9));
        for (own, opposite, is_turned) in [
            (Less, Some(LessOrEqual), true),
            (LessOrEqual, Some(Less), true),
            (Equal, Some(NotEqual), false),
            (NotEqual, Some(Equal), false),
            (Comparison::Greater, None, false),
        ] {
            for known in [None, Some(true), Some(false)] {
                let one = Truth {
                    low: Some((own, x.clone(), y.clone())),
                    carry: Some((x.clone(), None)),
                    ..truth(0, known)
                };
                let not = one.clone().not();
                let (x, y) = if is_turned { (&y, &x) } else { (&x, &y) };
                assert_eq!(not.low, opposite.map(|of| (of, x.clone(), y.clone())), "{own:?}");
                assert_eq!((not.known, not.carry), (known.map(|known| !known), None));
                let [yes, no] = one.holds;
                assert_eq!(not.holds, [no, yes]);
                let [yes, no] = one.guesses;
                assert_eq!(not.guesses, [no, yes]);
            }
        }
    }
}
