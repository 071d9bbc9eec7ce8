//! What an instruction makes of its operands.

use super::{State, Touch, local};
use crate::decode::{
    Access, AccessKind, Instruction, Junction, Operand, Operation, Predicate, Space,
};
use crate::instruction::{ZERO, logic, permuted, shift};

/// What an instruction writes: up to four registers, and up to two predicates.
#[derive(Clone, Copy)]
pub(super) struct Outcome {
    pub(super) value: Option<u128>,
    pub(super) predicates: [Option<bool>; 2],
}

impl Outcome {
    pub(super) const UNKNOWN: Self = Self { value: None, predicates: [None; 2] };

    pub(super) fn wide(value: Option<u64>) -> Self {
        Self { value: value.map(u128::from), predicates: [None; 2] }
    }
}

impl State<'_> {
    pub(super) fn result(&mut self, one: &Instruction, at: usize, holds: Option<bool>) -> Outcome {
        let plain =
            |value: Option<u32>| Outcome { value: value.map(u128::from), predicates: [None; 2] };
        let source = |at: usize| one.sources.get(at).copied();
        let operand = |at: usize| source(at).map_or(Operand::Unknown, |source| source.operand);
        match one.operation {
            // The other threads of the warp may have something else, if the instruction asks that.
            Operation::Move { wide: false }
                if one.predicates_written.iter().any(|written| written.index.is_some()) =>
            {
                Outcome::UNKNOWN
            }
            Operation::Move { wide: false } => plain(self.value(operand(0))),
            Operation::Move { wide: true } => {
                Outcome::wide(source(0).and_then(|source| self.long(&source)))
            }
            Operation::Special(number) => {
                // Of a pair only the zero is one number.
                let known = one.destination.is_none_or(|(_, count)| count == 1) || number == ZERO;
                plain(self.special(number).filter(|_| known))
            }
            Operation::LoadConstant { bytes, signed } => {
                let Operand::Constant { bank, offset, index } = operand(0) else {
                    return Outcome::UNKNOWN;
                };
                let value = self.constant(bank, offset, index, bytes.into());
                Outcome {
                    value: value.map(|value| match (bytes, signed) {
                        (1, true) => (value as u8 as i8 as i32 as u32).into(),
                        (2, true) => (value as u16 as i16 as i32 as u32).into(),
                        _ => value,
                    }),
                    predicates: [None; 2],
                }
            }
            Operation::MultiplyAdd { wide, high, signed, carry } => self
                .multiply_add(one, wide || high, high, signed, carry)
                .unwrap_or(Outcome::UNKNOWN),
            Operation::Add { wide, carry } => {
                self.add(one, wide, carry).unwrap_or(Outcome::UNKNOWN)
            }
            Operation::ShiftAdd { shift, high, extended, carry } => {
                self.shift_add(one, shift, high, extended, carry).unwrap_or(Outcome::UNKNOWN)
            }
            Operation::Shift { right, high, wide, signed, wrap } => {
                let [Some(low), Some(by), Some(upper)] =
                    [0, 1, 2].map(|at| self.value(operand(at)))
                else {
                    return Outcome::UNKNOWN;
                };
                plain(Some(shift(low, by, upper, [right, high, wide, signed, wrap])))
            }
            Operation::Logic(table) => {
                let [Some(first), Some(second), Some(third)] =
                    [0, 1, 2].map(|at| self.value(operand(at)))
                else {
                    return Outcome::UNKNOWN;
                };
                let value = logic(table, first, second, third);
                let joined = one.predicates_read.first().and_then(|&read| self.predicate(read));
                let predicate = if value != 0 { Some(true) } else { joined };
                Outcome { value: Some(value.into()), predicates: [predicate, None] }
            }
            Operation::Permute => {
                let numbers = [0, 1, 2].map(|at| self.value(operand(at)));
                let [Some(first), Some(selector), Some(third)] = numbers else {
                    return Outcome::UNKNOWN;
                };
                plain(Some(permuted(first, selector, third)))
            }
            Operation::Select { wide } => {
                let Some(first) =
                    one.predicates_read.first().and_then(|&read| self.predicate(read))
                else {
                    return Outcome::UNKNOWN;
                };
                let chosen = operand(usize::from(!first));
                if wide { Outcome::wide(self.wide(chosen)) } else { plain(self.value(chosen)) }
            }
            Operation::Minimum { signed, wide } => {
                self.minimum(one, signed, wide).unwrap_or(Outcome::UNKNOWN)
            }
            Operation::MinimumOfSum { signed } => {
                self.minimum_of_sum(one, signed).unwrap_or(Outcome::UNKNOWN)
            }
            Operation::Compare { comparison, signed, junction, wide, high } => {
                let compared = self.compare(one, comparison, signed, wide, high);
                let joined = one.predicates_read.first().and_then(|&read| self.predicate(read));
                Outcome {
                    value: None,
                    predicates: [
                        join(junction, compared, joined),
                        join(junction, compared.map(|compared| !compared), joined),
                    ],
                }
            }
            Operation::PredicateLogic(tables) => {
                let mut index = Some(0);
                for &read in &one.predicates_read {
                    let bit = self.predicate(read);
                    index = index.zip(bit).map(|(index, bit)| index << 1 | usize::from(bit));
                }
                Outcome {
                    value: None,
                    predicates: tables
                        .map(|table| index.map(|index| table >> (index & 7) & 1 != 0)),
                }
            }
            Operation::Absolute => {
                plain(self.value(operand(0)).map(|value| (value as i32).wrapping_abs() as u32))
            }
            Operation::ReverseBits => plain(self.value(operand(0)).map(u32::reverse_bits)),
            Operation::CountBits => plain(self.value(operand(0)).map(u32::count_ones)),
            Operation::HighestBit { signed, from_top } => {
                let highest = |value: u32| {
                    let value = if signed && value >> 31 != 0 { !value } else { value };
                    match value.checked_ilog2() {
                        Some(bit) if from_top => 31 - bit,
                        Some(bit) => bit,
                        None => u32::MAX,
                    }
                };
                plain(self.value(operand(0)).map(highest))
            }
            Operation::Halves => plain(self.value(operand(0))),
            Operation::MultiplyLong => {
                let numbers = self.wide(operand(0)).zip(self.wide(operand(1)));
                Outcome::wide(numbers.map(|(a, b)| a.wrapping_mul(b)))
            }
            Operation::Divide { signed, wide, remainder } => {
                let number = |operand| match wide {
                    true => self.wide(operand),
                    false if signed => self.value(operand).map(|value| value as i32 as u64),
                    false => self.value(operand).map(u64::from),
                };
                let numbers = number(operand(0)).zip(number(operand(1))).filter(|(_, by)| *by != 0);
                let value = numbers.map(|(a, b)| match (signed, remainder) {
                    (true, false) => (a as i64).wrapping_div(b as i64) as u64,
                    (true, true) => (a as i64).wrapping_rem(b as i64) as u64,
                    (false, false) => a / b,
                    (false, true) => a % b,
                });
                Outcome::wide(value)
            }
            // Of a condition of its own it is not followed whether it holds.
            Operation::Access(access) => {
                if holds.is_none() && self.of_memory.has_predicate(one.guard) {
                    self.conditional.insert(at);
                }
                let is_plain = one.predicates_read.iter().all(Predicate::is_true);
                self.access(one, access, at, holds.filter(|_| is_plain))
            }
            _ => Outcome::UNKNOWN,
        }
    }

    fn special(&self, number: u8) -> Option<u32> {
        let [thread, block] = self.place;
        let [x, y, _] = self.launch.block;
        match number {
            // The lane: blocks fill warps along x first.
            0 => Some(
                thread[2]
                    .wrapping_mul(y)
                    .wrapping_add(thread[1])
                    .wrapping_mul(x)
                    .wrapping_add(thread[0])
                    % 32,
            ),
            0x21..=0x23 => Some(thread[usize::from(number - 0x21)]),
            0x25..=0x27 => Some(block[usize::from(number - 0x25)]),
            ZERO => Some(0),
            _ => None,
        }
    }

    fn access(
        &mut self,
        one: &Instruction,
        access: Access,
        at: usize,
        holds: Option<bool>,
    ) -> Outcome {
        if access.space == Space::Tensor {
            if holds != Some(true) || self.copy_tile(one, access, at).is_none() {
                self.missing.insert(at);
            }
            self.wrote |= access.kind != AccessKind::CopyToShared;
            return Outcome::UNKNOWN;
        }
        if local::may_store(access) {
            self.store_local(one, access, holds);
        }
        if access.space == Space::Local {
            let value =
                if access.kind == AccessKind::Read { self.load_local(access) } else { None };
            return Outcome { value: value.filter(|_| holds.is_some()), predicates: [None; 2] };
        }
        let place = access.address.and_then(|address| {
            let mut place = if address.wide {
                self.wide(Operand::Register(address.base))?
            } else {
                self.register(address.base)?.into()
            };
            place = place.wrapping_mul(address.scale.into());
            if let Some(uniform) = address.uniform {
                place = place.wrapping_add(self.wide(Operand::Register(uniform))?);
            }
            Some(place.wrapping_add(i64::from(address.offset) as u64))
        });
        // All of it, or none at all.
        let size = match access.count {
            Some(count) => self.register(count).map(|count| 16 * (count & 0xffff)),
            None => Some(access.bytes.into()),
        };
        let place = place.filter(|_| size.is_some());
        let writes = !matches!(access.kind, AccessKind::Read | AccessKind::CopyToShared);
        let global = matches!(access.space, Space::Global | Space::Generic);
        if let Some(address) = place
            && holds == Some(true)
        {
            let Access { kind, strong, .. } = access;
            if let Some(bytes @ 1..) = size {
                self.touched.push(Touch { at, kind, address, bytes, strong });
            }
            // Of a part of a register the instruction does not tell how it is extended.
            let is_followed = (4..=16).contains(&access.bytes);
            if access.kind == AccessKind::Read && global && !self.wrote && is_followed {
                let value = (self.memory)(address, access.bytes);
                return Outcome { value, predicates: [None; 2] };
            }
        }
        if global && (place.is_none() || holds.is_none()) {
            self.missing.insert(at);
        }
        self.wrote |= writes && global;
        Outcome::UNKNOWN
    }
}

fn join(junction: Junction, one: Option<bool>, other: Option<bool>) -> Option<bool> {
    match (junction, one, other) {
        (Junction::And, Some(false), _) | (Junction::And, _, Some(false)) => Some(false),
        (Junction::Or, Some(true), _) | (Junction::Or, _, Some(true)) => Some(true),
        (Junction::And, one, other) => one.zip(other).map(|(one, other)| one && other),
        (Junction::Or, one, other) => one.zip(other).map(|(one, other)| one || other),
        (Junction::Xor, one, other) => one.zip(other).map(|(one, other)| one != other),
    }
}
