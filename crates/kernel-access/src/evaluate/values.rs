//! What operands are: registers, predicates, parameters and constants.

use std::rc::Rc;

use super::truth::Truth;
use super::{DOUBLE, Evaluator, State, Value};
use crate::code::Constant;
use crate::decode::{Operand, Predicate, Register, Source};
use crate::facts::Facts;
use crate::form::{Form, SINGLE, gcd};
use crate::instruction::after;
use crate::parameters::Cluster;
use crate::variables::Place;
use crate::words::{ADDRESS, MEMORY, Words};

/// How many blocks a cluster has at most.
const MOST_OF_A_CLUSTER: i128 = 16;

impl Evaluator<'_> {
    pub(super) fn predicate(&self, state: &State, predicate: Predicate) -> Truth {
        let truth = match predicate.index {
            None => Truth::known(true),
            Some(index) => {
                (*state.predicates[usize::from(predicate.uniform)][usize::from(index)]).clone()
            }
        };
        if let Some(((uniform, index), value)) = truth.only_if
            && state.predicates[usize::from(uniform)][usize::from(index)].known != Some(value)
        {
            return Truth::default();
        }
        if predicate.negated { truth.not() } else { truth }
    }

    pub(super) fn either(&mut self, state: &State, value: &Value) -> Form {
        match value {
            Value::Plain(form) => (**form).clone(),
            Value::Chosen { values: [one, two], .. } => {
                self.hull((one, &state.facts), (two, &state.facts))
            }
        }
    }

    pub(super) fn write(
        &mut self,
        state: &mut State,
        register: Register,
        form: Form,
        guard: Option<Predicate>,
    ) {
        let (kind, number) = match register {
            Register::General(number) => (0, usize::from(number)),
            Register::Uniform(number) => (1, usize::from(number)),
            Register::Zero => return,
        };
        let new = Rc::new(form);
        let value = match guard {
            Some(Predicate { index: Some(index), uniform, negated }) => {
                let by = (uniform, index);
                let mut values = match &state.registers[kind][number] {
                    Value::Plain(old) => [old.clone(), old.clone()],
                    Value::Chosen { by: other, values } if *other == by => values.clone(),
                    chosen @ Value::Chosen { .. } => {
                        let old = Rc::new(self.either(state, &chosen.clone()));
                        [old.clone(), old]
                    }
                };
                values[usize::from(negated)] = new;
                Value::Chosen { by, values }
            }
            _ => Value::Plain(new),
        };
        state.set(kind, number, value);
    }

    pub(super) fn register(&mut self, state: &State, register: Register) -> Form {
        match register {
            Register::General(number) => {
                self.either(state, &state.registers[0][usize::from(number)])
            }
            Register::Uniform(number) => {
                self.either(state, &state.registers[1][usize::from(number)])
            }
            Register::Zero => Form::number(0),
        }
    }

    pub(super) fn value(&mut self, state: &State, operand: Operand) -> Form {
        match operand {
            Operand::Register(register) => self.register(state, register),
            Operand::Immediate(number) => Form::number((number as i32).into()),
            Operand::Constant { bank, offset, index } => {
                self.constant(state, bank, offset, index, 4)
            }
            Operand::Unknown => self.single(&Words::from([MEMORY])),
        }
    }

    /// A number of 64 bits.
    pub(super) fn wide(&mut self, state: &State, operand: Operand) -> Form {
        match operand {
            Operand::Register(register) => {
                let low = self.register(state, register);
                let high = self.register(state, after(register));
                self.pair(state, &low, &high)
            }
            // What is above an immediate with its highest bit is not known.
            Operand::Immediate(number) if number >> 31 == 0 => Form::number(number.into()),
            Operand::Immediate(_) => self.double(&Words::new()),
            Operand::Constant { bank, offset, index } => {
                self.constant(state, bank, offset, index, 8)
            }
            Operand::Unknown => self.double(&Words::from([MEMORY])),
        }
    }

    /// A number of 64 bits, or its opposite.
    pub(super) fn long(&mut self, state: &State, source: &Source) -> Form {
        let form = self.wide(state, source.operand);
        let opposite = if source.negated { form.times(-1) } else { Some(form.clone()) };
        opposite.unwrap_or_else(|| {
            let words = self.words_of(&[&form]);
            self.double(&words)
        })
    }

    pub(super) fn pair(&mut self, state: &State, low: &Form, high: &Form) -> Form {
        let low_view = self.view(&state.facts, low, SINGLE, false);
        let form = low_view.and_then(|low| low.plus(SINGLE, high));
        form.unwrap_or_else(|| {
            let words = self.words_of(&[low, high]);
            self.double(&words)
        })
    }

    /// The number between 0 and `size`, or from half of it below zero, that a form stands for.
    pub(super) fn view(
        &mut self,
        facts: &Facts,
        form: &Form,
        size: i128,
        signed: bool,
    ) -> Option<Form> {
        let shift = if signed { size / 2 } else { 0 };
        let quotient = self.symbols.quotient(&form.and(shift)?, size, facts)?;
        form.plus(-size, &quotient)
    }

    /// The same, or any number that could be it.
    pub(super) fn number(&mut self, state: &State, form: &Form, signed: bool) -> Form {
        self.view(&state.facts, form, SINGLE, signed).unwrap_or_else(|| {
            let words = self.words_of(&[form]);
            let bounds = if signed { (-SINGLE / 2, SINGLE / 2 - 1) } else { (0, SINGLE - 1) };
            self.fresh(bounds, bounds, &words)
        })
    }

    pub(super) fn parameter(&mut self, at: u32, bytes: u32) -> Option<Form> {
        let word = at & !7;
        if let Some(launch) = self.launch {
            // The lower half stands for all of it: it is the same modulo 2^32.
            if at == word
                && bytes == 4
                && let Some(number) = launch.parameter(at, 8)
            {
                return Some(Form::number(number as i128));
            }
            return launch.parameter(at, bytes).map(|number| Form::number(number as i128));
        }
        let (_, size) = self.code.parameters;
        if !at.is_multiple_of(4)
            || bytes < 4
            || bytes == 8 && at != word
            || word + 8 > size.next_multiple_of(8)
        {
            return None;
        }
        let symbols = &mut self.symbols;
        let symbol = *self
            .parameters
            .entry(word)
            .or_insert_with(|| symbols.fixed(0, DOUBLE - 1, Words::from([word])));
        let form = Form::symbol(symbol);
        if at == word {
            Some(form)
        } else {
            self.symbols.quotient(&form, SINGLE, &Facts::default())
        }
    }

    /// The address of a variable of the module, or the half of it that begins there.
    pub(super) fn variable(&mut self, (number, half): Place, bytes: u32) -> Option<Form> {
        let form = match self.launch {
            Some(launch) => Form::number(launch.variable(number)?.into()),
            None => {
                let word = self.code.word_of_variable(number);
                let symbols = &mut self.symbols;
                let new = || symbols.fixed(0, DOUBLE - 1, Words::from([word]));
                Form::symbol(*self.parameters.entry(word).or_insert_with(new))
            }
        };
        match (half, bytes) {
            // The lower half is the same modulo 2^32.
            (0, 4 | 8) => Some(form),
            (4, 4) => self.symbols.quotient(&form, SINGLE, &Facts::default()),
            _ => None,
        }
    }

    /// The address that the parameters have together, as a constant has it: so many bytes before them.
    fn address(&mut self, before: u32) -> Form {
        let symbol = *self.address.get_or_insert_with(|| {
            let all = (0..self.code.parameters.1).step_by(8).chain([ADDRESS]);
            self.symbols.fixed(0, DOUBLE - 1, all.collect())
        });
        Form { constant: -i128::from(before), terms: vec![(symbol, 1)] }
    }

    /// Where in the parameters an address is, if it is theirs and a number: from the first place to the
    /// last one. Nothing else is read by their address.
    pub(super) fn in_parameters(
        &self,
        state: &State,
        address: &Form,
        bytes: u32,
    ) -> Option<(Form, (u32, u32))> {
        let symbol = self.address?;
        if address.factor(symbol) != 1 {
            return None;
        }
        let place = address.plus(-1, &Form::symbol(symbol))?;
        // A half of it may be in the rest.
        if self.words_of(&[&place]).has_address() {
            return None;
        }
        let last = self.code.parameters.1.checked_sub(bytes)?;
        let (low, high) = self.symbols.bounds(&place, &state.facts);
        let (low, high) =
            (low.unwrap_or(0).max(0), high.map_or(last.into(), |high| high.min(last.into())));
        let low = first_of(&place, low);
        (low <= high).then_some((place, (low as u32, high as u32)))
    }

    /// The parameter of at most eight bytes that is there.
    pub(super) fn parameter_at(&mut self, at: &Form, (low, high): (u32, u32), bytes: u32) -> Form {
        let any = |this: &mut Self, words: &Words| match bytes {
            8 => this.double(words),
            // Of less than a register it is not known how it is made wider.
            _ => this.single(words),
        };
        if low == high && bytes >= 4 {
            if let Some(form) = self.parameter(low, bytes) {
                return form;
            }
        } else if bytes >= 4 {
            let base = self.code.parameters.0;
            let chosen = self.one_of(0, (base + low, base + high), Some(at.clone()), bytes);
            if let Some(form) = chosen {
                return form;
            }
        }
        let words = (low & !7..high + bytes).step_by(8).collect();
        any(self, &words)
    }

    /// A constant of four or eight bytes, or less.
    pub(super) fn constant(
        &mut self,
        state: &State,
        bank: u8,
        offset: u16,
        index: Register,
        bytes: u32,
    ) -> Form {
        let any = |this: &mut Self, words: &Words| match bytes {
            8 => this.double(words),
            4 => this.single(words),
            _ => this.fresh((0, (1 << (8 * bytes)) - 1), (0, SINGLE - 1), words),
        };
        let index = self.register(state, index);
        let at = self.number(state, &index, true).and(offset.into());
        let bounds = at.as_ref().map_or((None, None), |at| self.symbols.bounds(at, &state.facts));
        let low = at.as_ref().zip(bounds.0).map(|(at, low)| first_of(at, low));
        let (Some(low @ 0..=0x1_0000), Some(high @ 0..=0x1_0000)) = (low, bounds.1) else {
            let words = if bank == 0 { self.all() } else { Words::from([MEMORY]) };
            return any(self, &words);
        };
        let (low, high) = (low as u32, high as u32);
        if low != high {
            return self.one_of(bank, (low, high), at, bytes).unwrap_or_else(|| {
                let mut words = Words::from([MEMORY]);
                for at in low..high + bytes {
                    if let Constant::Parameter(at) = self.code.constant(at)
                        && bank == 0
                    {
                        words.insert(at & !7);
                    }
                }
                any(self, &words)
            });
        }
        let words_at = |at: u32| (at & !7..at + bytes).step_by(8).collect::<Words>();
        match (bank, self.code.constant(low)) {
            (2, _) => match self.code.number(low, bytes) {
                Some(number) => Form::number(number as i128),
                None => any(self, &Words::from([MEMORY])),
            },
            (4, _) => {
                let place = self.code.variables.at(low);
                let form = place.and_then(|place| self.variable(place, bytes));
                form.unwrap_or_else(|| {
                    let mut words = Words::from([MEMORY]);
                    let places =
                        [low, low + 4].into_iter().filter_map(|at| self.code.variables.at(at));
                    words.extend(
                        places.map(|place| self.code.word_of_variable(place.0)).collect::<Words>(),
                    );
                    any(self, &words)
                })
            }
            (0, Constant::Parameter(at)) => match self.parameter(at, bytes) {
                Some(form) => form,
                None => any(self, &words_at(at)),
            },
            (0, Constant::Address { half, before }) => {
                let form = self.address(before);
                let high = |this: &mut Self| this.symbols.quotient(&form, SINGLE, &state.facts);
                match (half, bytes) {
                    // The lower half is the same modulo 2^32.
                    (0, 4 | 8) => Some(form),
                    (4, 4) => high(self),
                    _ => None,
                }
                .unwrap_or_else(|| {
                    let mut words = self.all();
                    words.insert(ADDRESS);
                    any(self, &words)
                })
            }
            (0, Constant::Meeting(half)) if bytes == 4 => {
                let symbols = &mut self.symbols;
                let new = || symbols.fixed(0, DOUBLE - 1, Words::from([MEMORY]));
                let form = Form::symbol(*self.meeting.get_or_insert_with(new));
                match half {
                    // It is the same modulo 2^32.
                    0 => form,
                    _ => {
                        let upper = self.symbols.quotient(&form, SINGLE, &state.facts);
                        upper.unwrap_or_else(|| any(self, &Words::from([MEMORY])))
                    }
                }
            }
            (0, Constant::Block(axis)) if bytes == 4 => self.sizes[0][axis].clone(),
            (0, Constant::Grid(axis)) if bytes == 4 => self.sizes[1][axis].clone(),
            (0, Constant::Cluster(what)) if bytes == 4 => self.cluster(low, what),
            (0, Constant::Block(_) | Constant::Grid(_)) => {
                // Two sizes at once.
                let sizes = [low, low + 4].map(|at| match self.code.constant(at) {
                    Constant::Block(axis) if bytes == 8 => Some(self.sizes[0][axis].clone()),
                    Constant::Grid(axis) if bytes == 8 => Some(self.sizes[1][axis].clone()),
                    _ => None,
                });
                match sizes {
                    [Some(one), Some(two)] => {
                        one.plus(SINGLE, &two).unwrap_or_else(|| any(self, &Words::new()))
                    }
                    _ => any(self, &Words::new()),
                }
            }
            _ => any(self, &Words::from([MEMORY])),
        }
    }

    /// What the constant says of the clusters, which are parts of the grid.
    fn cluster(&mut self, offset: u32, what: Cluster) -> Form {
        let along = |axis: usize| self.sizes[1][axis].as_number().unwrap_or(i32::MAX.into());
        let most = match what {
            Cluster::Size(axis) => along(axis).min(MOST_OF_A_CLUSTER),
            Cluster::Count(axis) => along(axis),
            Cluster::Blocks => self.most_of_a_cluster(),
            Cluster::Other => SINGLE - 1,
        };
        let symbols = &mut self.symbols;
        let fixed = || symbols.fixed(0, most, Words::new());
        Form::symbol(*self.clusters.entry(offset).or_insert_with(fixed))
    }

    /// How many blocks of the grid can be one.
    pub(super) fn most_of_a_cluster(&self) -> i128 {
        let blocks = self.sizes[1].iter().map(|size| size.as_number().unwrap_or(i32::MAX.into()));
        blocks.product::<i128>().clamp(1, MOST_OF_A_CLUSTER)
    }

    /// The numbers that an index chooses from, if they are known.
    pub(super) fn one_of(
        &mut self,
        bank: u8,
        (low, high): (u32, u32),
        at: Option<Form>,
        bytes: u32,
    ) -> Option<Form> {
        let launch = self.launch?;
        let step = at?.terms.iter().fold(0, |step, term| gcd(step, term.1));
        let step = usize::try_from(step).ok().filter(|&step| step > 0)?;
        let (mut least, mut most) = (i128::MAX, i128::MIN);
        // The lowest is one of those that are chosen, as far as bounds tell.
        for at in (low..=high).step_by(step) {
            let number = match (bank, self.code.constant(at)) {
                (0, Constant::Parameter(at)) => launch.parameter(at, bytes)?,
                (2, _) => self.code.number(at, bytes)?,
                _ => return None,
            } as i128;
            (least, most) = (least.min(number), most.max(number));
        }
        let all = if bytes == 8 { DOUBLE - 1 } else { SINGLE - 1 };
        (least <= most).then(|| self.fresh((least, most), (0, all), &Words::new()))
    }
}

/// The first from `low` on of the numbers that a form can be, which are the same modulo its factors.
fn first_of(form: &Form, low: i128) -> i128 {
    let step = form.terms.iter().fold(0, |step, term| gcd(step, term.1));
    low + (form.constant - low).checked_rem_euclid(step).unwrap_or(0)
}

pub(super) fn forms(value: &Value) -> impl Iterator<Item = &Form> {
    let (one, two) = match value {
        Value::Plain(form) => (form, None),
        Value::Chosen { values: [one, two], .. } => (one, Some(two)),
    };
    std::iter::once(&**one).chain(two.map(|form| &**form))
}

/// The form of a register that is not chosen.
pub(super) fn plain(value: &Value) -> Form {
    match value {
        Value::Plain(form) => (**form).clone(),
        // Both are possible, so who asks must have made one of them before.
        Value::Chosen { values, .. } => (*values[0]).clone(),
    }
}
