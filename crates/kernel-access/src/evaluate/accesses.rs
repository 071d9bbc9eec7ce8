//! Accesses to memory.

use super::{Evaluator, Seen, State};
use crate::decode::{
    Access, AccessKind, Instruction, Operand, Operation, Predicate, Register, Source, Space,
};
use crate::form::{Form, SINGLE};
use crate::instruction::after;
use crate::tensor::{MAP, Map};
use crate::variables::constant;
use crate::words::{MEMORY, STORED, Words};

impl Evaluator<'_> {
    pub(super) fn access(
        &mut self,
        state: &State,
        one: &Instruction,
        access: Access,
        at: usize,
    ) -> Option<Vec<Form>> {
        if access.space == Space::Tensor {
            self.tensor(state, one, access, at);
            return Some(Vec::new());
        }
        let global = matches!(access.space, Space::Global | Space::Generic);
        // What may be in memory that is read.
        let mut words = Words::from([MEMORY, STORED]);
        if global {
            let form = access.address.map(|address| {
                let base = if address.wide {
                    self.wide(state, Operand::Register(address.base))
                } else {
                    let base = self.register(state, address.base);
                    self.number(state, &base, false)
                };
                let uniform = address
                    .uniform
                    .map(|uniform| self.wide(state, Operand::Register(uniform)))
                    .unwrap_or_else(|| Form::number(0));
                base.times(address.scale.into())
                    .and_then(|form| form.plus(1, &uniform)?.and(address.offset.into()))
                    .ok_or_else(|| self.words_of(&[&base, &uniform]))
            });
            let size = u32::from(access.bytes);
            let of_parameters = match &form {
                Some(Ok(form)) if access.kind == AccessKind::Read => {
                    self.in_parameters(state, form, size)
                }
                _ => None,
            };
            if let Some((place, range)) = of_parameters {
                self.seen.push(Seen { is_of_launch: true, ..Seen::new(at, access) });
                if !one.predicates_read.iter().all(Predicate::is_true) {
                    // With a condition that does not hold the registers get zero.
                    let all = self.all();
                    return Some((0..size.div_ceil(4)).map(|_| self.single(&all)).collect());
                }
                return self.parameters_read(state, &place, range, size);
            }
            let mut seen = Seen::new(at, access);
            match form {
                Some(Ok(form)) if self.is_meeting(state, &form) => seen.is_of_launch = true,
                Some(Ok(form)) => {
                    seen.bounds = self.symbols.bounds(&form, &state.facts);
                    if let Some(count) = access.count {
                        (seen.bounds.1, seen.is_of_any_size) =
                            self.last_of(state, &form, (count, access.bytes.into()));
                    } else if let (Some(_), (Some(_), Some(_))) = (self.launch, seen.bounds) {
                        let bytes = i128::from(access.bytes);
                        seen.gaps = self.symbols.gaps(&form, &state.facts, bytes);
                    }
                    let mut rest = form.clone();
                    for (&word, &symbol) in &self.parameters {
                        if form.factor(symbol) == 1 {
                            seen.bases.insert(word);
                            rest.terms.retain(|term| term.0 != symbol);
                        }
                    }
                    self.symbols.words(&rest, &mut seen.others);
                }
                Some(Err(words)) => seen.others = words,
                None => seen.others = self.all(),
            }
            if seen.others.has_address() {
                // It may read any of them.
                words.extend(self.all());
            }
            self.seen.push(seen);
        }
        match access.kind {
            // All registers that are written to memory are named.
            AccessKind::Atomic | AccessKind::Reduce if one.sources.len() > 1 => {
                for source in &one.sources {
                    let form = self.value(state, source.operand);
                    self.symbols.words(&form, &mut self.stored);
                }
            }
            AccessKind::Write | AccessKind::Reduce => {
                // Each the first of as many.
                let count = usize::from(access.bytes).div_ceil(4) / one.sources.len().max(1);
                for source in &one.sources {
                    let Source { operand: Operand::Register(mut register), .. } = *source else {
                        continue;
                    };
                    for _ in 0..count {
                        let form = self.register(state, register);
                        self.symbols.words(&form, &mut self.stored);
                        register = after(register);
                    }
                }
            }
            // Which register is written to memory is not decoded, or memory is copied.
            AccessKind::Atomic | AccessKind::Unknown => self.stored.extend(self.all()),
            AccessKind::Read | AccessKind::CopyToShared => {}
        }
        let count = one.destination.map_or(0, |(_, count)| count);
        if global && (access.address.is_none() || count > access.bytes.div_ceil(4)) {
            // Textures, and loads to two places, may write fewer registers: what was in each may still be there.
            let (mut register, _) = one.destination?;
            let mut forms = Vec::new();
            for _ in 0..count {
                let old = self.register(state, register);
                let mut words = words.clone();
                self.symbols.words(&old, &mut words);
                forms.push(self.single(&words));
                register = after(register);
            }
            return Some(forms);
        }
        if access.kind == AccessKind::Read
            && matches!(access.bytes, 1 | 2)
            && !access.signed
            && count == 1
        {
            let all = (0, (1 << (8 * access.bytes)) - 1);
            return Some(vec![self.fresh(all, all, &words)]);
        }
        // Two registers may have an address.
        if matches!(count, 2 | 4 | 8) {
            let mut forms = Vec::new();
            for _ in 0..count / 2 {
                let form = self.double(&words);
                forms.extend(self.halves(state, form)?);
            }
            return Some(forms);
        }
        Some((0..count).map(|_| self.single(&words)).collect())
    }

    /// The constant variables that an instruction reads: they are in memory, where others may write them.
    pub(super) fn constants_read(&mut self, state: &State, one: &Instruction, at: usize) {
        let Some((number, size)) = self.code.variables.bank() else { return };
        for read in self.code.variables.read_by(one).collect::<Vec<_>>() {
            let index = self.register(state, read.index);
            let place = self.number(state, &index, true).and(read.offset.into());
            let mut seen = Seen::new(at, constant(read.bytes));
            seen.bases.insert(self.code.word_of_variable(number));
            match &place {
                Some(place) => self.symbols.words(place, &mut seen.others),
                None => seen.others.extend(self.words_of(&[&index])),
            }
            if let Some(begin) = self.launch.and_then(|launch| launch.variable(number)) {
                // What is behind the bank is no memory.
                let last = i128::from(size.saturating_sub(read.bytes));
                let bounds = place.as_ref().map(|place| self.symbols.bounds(place, &state.facts));
                let (low, high) = bounds.unwrap_or((None, None));
                let [low, high] = [low.unwrap_or(0), high.unwrap_or(last)];
                let bounds = [low, high].map(|at| at.clamp(0, last) + i128::from(begin));
                seen.bounds = (Some(bounds[0]), Some(bounds[1]));
            }
            if self.launch.is_some() {
                // It is not known which of these bytes are used.
                seen.others.insert(MEMORY);
            }
            self.seen.push(seen);
        }
    }

    /// Where the last of so many bytes may be of those that follow each other as often as the lower half
    /// of the register says, and whether the launch and the code do not say how often.
    fn last_of(
        &mut self,
        state: &State,
        first: &Form,
        (count, bytes): (Register, i128),
    ) -> (Option<i128>, bool) {
        const MOST: i128 = 0xffff;
        let count = self.register(state, count);
        let is_from_memory = self.words_of(&[&count]).iter().any(|word| word == MEMORY);
        let counted = self.masked(state, &count, MOST as u32);
        let bounds = counted.as_ref().map(|count| self.symbols.bounds(count, &state.facts));
        let is_bounded = matches!(bounds, Some((Some(low), Some(high))) if high - low < MOST);
        let last = match counted {
            Some(count) => first.plus(bytes, &count).and_then(|end| end.and(-bytes)),
            None => first.and(bytes * (MOST - 1)),
        };
        let high = |form: &Form| self.symbols.bounds(form, &state.facts).1;
        let last = high(first).zip(last.as_ref().and_then(high));
        (last.map(|(first, last)| first.max(last)), is_from_memory || !is_bounded)
    }

    /// An access by a tensor map: of one among the parameters a launch says where the tensor is.
    fn tensor(&mut self, state: &State, one: &Instruction, access: Access, at: usize) {
        let mut seen = Seen::new(at, access);
        let Some(place) = access.address.and_then(|address| address.uniform) else {
            seen.others = self.all();
            self.seen.push(seen);
            return;
        };
        let form = self.wide(state, Operand::Register(place));
        match self.in_parameters(state, &form, MAP) {
            Some((_, (low, high))) if low == high => {
                let map = self.launch.and_then(|launch| Map::new(launch, low));
                let begins: Vec<_> =
                    one.sources.iter().map(|source| self.coordinate(state, source)).collect();
                let bounds: Option<Vec<_>> = begins.iter().map(|begin| begin.0).collect();
                let tiles =
                    map.as_ref().and_then(|map| bounds.and_then(|bounds| map.tiles(&bounds)));
                // Which thread of a warp is elected to copy is not followed.
                let is_elected = |one: &Instruction| one.operation == Operation::Other("ELECT");
                seen.is_tile = tiles.is_some()
                    && begins.iter().all(|begin| begin.1)
                    && !self.code.instructions.iter().any(is_elected);
                if let Some(tensor) = tiles.or_else(|| map?.tensor()) {
                    seen.bounds = (Some(tensor.first), Some(tensor.last));
                    seen.gaps = tensor.gaps;
                }
                // The address is the first word.
                let words: Words = (low & !7..low + MAP).step_by(8).collect();
                seen.bases.insert(low & !7);
                seen.others.extend(words);
            }
            _ => {
                seen.others = Words::from([MEMORY, STORED]);
                seen.others.extend(self.words_of(&[&form]));
                if seen.others.has_address() {
                    seen.others.extend(self.all());
                }
            }
        }
        self.seen.push(seen);
    }

    /// Whether an address is where the blocks of a cooperative launch meet: a few bytes of the driver's.
    fn is_meeting(&self, state: &State, address: &Form) -> bool {
        const BYTES: i128 = 256;
        let Some(symbol) = self.meeting.filter(|symbol| address.factor(*symbol) == 1) else {
            return false;
        };
        let place = address.plus(-1, &Form::symbol(symbol));
        place.is_some_and(|place| {
            let (low, high) = self.symbols.bounds(&place, &state.facts);
            low.is_some_and(|low| low >= 0) && high.is_some_and(|high| high < BYTES)
        })
    }

    /// The least and the largest number that a coordinate can be, and whether the launch and the code say it.
    fn coordinate(&mut self, state: &State, source: &Source) -> (Option<(i128, i128)>, bool) {
        let form = self.value(state, source.operand);
        let form = self.number(state, &form, true);
        let (low, high) = self.symbols.bounds(&form, &state.facts);
        let is_any = |(low, high): (i128, i128)| high - low >= SINGLE - 1;
        let words = self.words_of(&[&form]);
        let is_known = low.zip(high).is_some_and(|both| !is_any(both));
        (low.zip(high), is_known && !words.iter().any(|word| word == MEMORY))
    }

    /// What registers have of parameters that are read by their address.
    fn parameters_read(
        &mut self,
        state: &State,
        place: &Form,
        (low, high): (u32, u32),
        bytes: u32,
    ) -> Option<Vec<Form>> {
        if bytes <= 4 {
            return Some(vec![self.parameter_at(place, (low, high), bytes)]);
        }
        let mut forms = Vec::new();
        for part in (0..bytes).step_by(8) {
            let place = place.and(part.into())?;
            let form = self.parameter_at(&place, (low + part, high + part), 8);
            forms.extend(self.halves(state, form)?);
        }
        Some(forms)
    }
}
