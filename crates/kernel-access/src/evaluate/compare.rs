//! Comparisons of numbers.

use super::truth::Truth;
use super::{DOUBLE, Evaluator, State};
use crate::decode::{Comparison, Instruction, Source};
use crate::form::{Form, SINGLE};

impl Evaluator<'_> {
    pub(super) fn compare(
        &mut self,
        state: &State,
        one: &Instruction,
        comparison: Comparison,
        signed: bool,
        (wide, high): (bool, bool),
    ) -> Truth {
        use Comparison::{
            Always, Equal, Greater, GreaterOrEqual, Less, LessOrEqual, Never, NotEqual,
        };
        if matches!(comparison, Never | Always) {
            return Truth::known(comparison == Always);
        }
        let (Some(first), Some(second)) = (one.sources.first(), one.sources.get(1)) else {
            return Truth::default();
        };
        let get = |this: &mut Self, source: &Source| {
            if wide { this.long(state, source) } else { this.value(state, source.operand) }
        };
        let (mut x, mut y) = (get(self, first), get(self, second));
        // As less, less or equal, or equal.
        let (mut kind, negated, swapped) = match comparison {
            Less => (Less, false, false),
            LessOrEqual => (LessOrEqual, false, false),
            Greater => (Less, false, true),
            GreaterOrEqual => (LessOrEqual, false, true),
            Equal => (Equal, false, false),
            _ => (Equal, comparison == NotEqual, false),
        };
        if swapped {
            std::mem::swap(&mut x, &mut y);
        }
        let mut size = if wide { DOUBLE } else { SINGLE };
        let plain = (x.clone(), y.clone());
        if high {
            let low = one.predicates_read.get(1);
            let low = low.and_then(|&low| self.predicate(state, low).low);
            let Some((low_kind, low_x, low_y)) = low else { return Truth::default() };
            // Equal halves, or not equal ones, make the whole; of the others the lower decide.
            kind = match (kind, low_kind) {
                (Equal, Equal) if !negated => Equal,
                (Equal, NotEqual) if negated => Equal,
                (Less | LessOrEqual, Less | LessOrEqual) => low_kind,
                _ => return Truth::default(),
            };
            x = self.pair(state, &low_x, &x);
            y = self.pair(state, &low_y, &y);
            size = DOUBLE;
        }
        let views = [&x, &y].map(|form| self.view(&state.facts, form, size, signed));
        let mut truth = Truth::default();
        if let [Some(x), Some(y)] = &views {
            truth = order(kind, x, y);
            truth.known = self.is_so(state, kind, x, y);
        }
        // Where it is not known which of the numbers is meant it may be the one without overflow.
        let [guess_x, guess_y] =
            [(&views[0], &x), (&views[1], &y)].map(|(view, form)| match view {
                Some(view)
                    if view.plus(-1, form).is_some_and(|rest| rest.as_number().is_some()) =>
                {
                    view.clone()
                }
                // A lower half may come with its upper one.
                _ => {
                    let shift = if signed { size / 2 } else { 0 };
                    let constant = (form.constant + shift).rem_euclid(size) - shift;
                    Form { constant, terms: form.terms.clone() }
                }
            });
        truth.guesses = order(kind, &guess_x, &guess_y).holds;
        if !wide && !high && (!signed || kind == Equal) {
            truth.low = Some((kind, plain.0, plain.1));
        }
        if negated { truth.not() } else { truth }
    }

    /// Whether that is known of the two.
    fn is_so(&self, state: &State, kind: Comparison, x: &Form, y: &Form) -> Option<bool> {
        let (low, high) = self.symbols.bounds(&y.plus(-1, x)?, &state.facts);
        if kind == Comparison::Equal {
            return match (low, high) {
                (Some(0), Some(0)) => Some(true),
                (Some(1..), _) | (_, Some(..=-1)) => Some(false),
                _ => None,
            };
        }
        let less = i128::from(kind == Comparison::Less);
        match (low, high) {
            (Some(low), _) if low >= less => Some(true),
            (_, Some(high)) if high < less => Some(false),
            _ => None,
        }
    }
}

/// What holds of two numbers that are compared.
fn order(kind: Comparison, x: &Form, y: &Form) -> Truth {
    let Some(difference) = y.plus(-1, x) else { return Truth::default() };
    let one = |form: Option<Form>| form.into_iter().collect::<Vec<_>>();
    let mut truth = Truth::default();
    if kind == Comparison::Equal {
        truth.holds[0] = one(difference.times(-1));
        truth.holds[0].push(difference);
    } else {
        let less = i128::from(kind == Comparison::Less);
        truth.holds[1] = one(difference.times(-1).and_then(|form| form.and(less - 1)));
        truth.holds[0] = one(difference.and(-less));
    }
    truth
}
