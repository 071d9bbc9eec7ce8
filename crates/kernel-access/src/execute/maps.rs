//! Copies by tensor maps among the parameters.
//!
//! A map is named by its address, which is not known. So of registers it is followed which of them have
//! the address of the parameters, and how much is added to it. The same is done for the address of the stack.

use super::{State, Touch};
use crate::code::Constant;
use crate::decode::{Access, AccessKind, Instruction, Operand, Operation, Register, Source};
use crate::instruction::after;
use crate::tensor::Map;

/// What a register has of an address among the parameters.
#[derive(Clone, Copy)]
pub(super) enum Half {
    /// The lower half of that of this byte of them.
    Lower(u32),
    Upper,
    /// An address so far behind the stack's first one.
    Stack(u32),
}

impl State<'_> {
    fn half(&self, operand: Operand) -> Option<Half> {
        match operand {
            Operand::Register(register) => self.halves.get(&register).copied(),
            Operand::Constant { bank: 0, offset, index: Register::Zero } => {
                match self.code.constant(offset.into()) {
                    Constant::Stack if self.code.has_local => Some(Half::Stack(0)),
                    Constant::Address { half: 0, before } => {
                        Some(Half::Lower(0_u32.wrapping_sub(before)))
                    }
                    Constant::Address { half: 4, .. } => Some(Half::Upper),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The half that is next to one.
    fn second(&self, operand: Operand) -> Option<Half> {
        match operand {
            Operand::Register(register) => self.half(Operand::Register(after(register))),
            Operand::Constant { bank, offset, index } => {
                let offset = offset.checked_add(4)?;
                self.half(Operand::Constant { bank, offset, index })
            }
            _ => None,
        }
    }

    /// What the registers that an instruction writes have of such an address.
    fn made(&self, one: &Instruction) -> [Option<Half>; 2] {
        let operand = |at: usize| one.sources.get(at).map(|source| source.operand);
        let is_zero = |at: usize| operand(at).and_then(|of| self.value(of)) == Some(0);
        let both = |of: Operand| [self.half(of), self.second(of)];
        match one.operation {
            Operation::LoadConstant { bytes: 4, .. } | Operation::Move { wide: false } => {
                [operand(0).and_then(|of| self.half(of)), None]
            }
            Operation::LoadConstant { bytes: 8, .. } | Operation::Move { wide: true } => {
                operand(0).map_or([None; 2], both)
            }
            Operation::MultiplyAdd { wide: false, high: false, carry: false, .. }
                if is_zero(0) || is_zero(1) =>
            {
                let third = one.sources.get(2).filter(|source| !source.negated);
                [third.and_then(|source| self.half(source.operand)), None]
            }
            // An index is a factor's multiple, or is shifted.
            Operation::MultiplyAdd { wide: false, high: false, carry: false, .. }
                if one.sources.iter().all(|source| !source.negated) =>
            {
                let [first, second, third] = [0, 1, 2].map(operand);
                let [one, factor, added] =
                    [first, second, third].map(|operand| operand.and_then(|one| self.value(one)));
                let product = one.zip(factor).map(|(one, factor)| one.wrapping_mul(factor));
                let sum = || self.further_on_stack(first, added.filter(|_| factor == Some(1)));
                [self.further_on_stack(third, product).or_else(sum), None]
            }
            Operation::ShiftAdd { shift, high: false, carry: false, .. }
                if one.sources.iter().all(|source| !source.negated) =>
            {
                let index = operand(0).and_then(|one| self.value(one));
                [self.further_on_stack(operand(1), index.map(|index| index << (shift & 31))), None]
            }
            Operation::Add { wide, carry } => {
                let is_half = |operand| self.half(operand).is_some();
                let mut own = one.sources.iter().filter(|source| is_half(source.operand));
                let (Some(base), None) = (own.next(), own.next()) else { return [None; 2] };
                let mut sum = Some(0_u32);
                for source in one.sources.iter().filter(|source| !is_half(source.operand)) {
                    let value = match wide {
                        true => self.wide(source.operand).map(|value| value as u32),
                        false => self.value(source.operand),
                    };
                    sum = sum.zip(value).map(|(sum, value)| match source.negated {
                        false => sum.wrapping_add(value),
                        true => sum.wrapping_sub(value),
                    });
                }
                match (self.half(base.operand), sum) {
                    _ if base.negated => [None; 2],
                    (Some(Half::Lower(at)), Some(sum)) if !carry => {
                        let upper = if wide { self.second(base.operand) } else { None };
                        [Some(Half::Lower(at.wrapping_add(sum))), upper]
                    }
                    (Some(Half::Stack(at)), Some(sum)) if !carry && !wide => {
                        [Some(Half::Stack(at.wrapping_add(sum))), None]
                    }
                    // What is added is the carry of the lower half.
                    (Some(Half::Upper), Some(0)) if carry && !wide => [Some(Half::Upper), None],
                    _ => [None; 2],
                }
            }
            _ => [None; 2],
        }
    }

    /// An address on the stack, so many bytes behind another one.
    fn further_on_stack(&self, base: Option<Operand>, by: Option<u32>) -> Option<Half> {
        match self.half(base?)? {
            Half::Stack(at) => Some(Half::Stack(at.wrapping_add(by?))),
            _ => None,
        }
    }

    /// Follows the parameters' address through an instruction, before its result is written.
    pub(super) fn follow(&mut self, one: &Instruction, holds: Option<bool>) {
        let Some((first, count)) = one.destination else { return };
        let is_constant =
            |source: &Source| matches!(source.operand, Operand::Constant { bank: 0, .. });
        if self.halves.is_empty() && !one.sources.iter().any(is_constant) {
            return;
        }
        let made = self.made(one);
        let mut register = first;
        for at in 0..usize::from(count) {
            match made.get(at).copied().flatten().filter(|_| holds == Some(true)) {
                Some(half) if register != Register::Zero => self.halves.insert(register, half),
                _ => self.halves.remove(&register),
            };
            register = after(register);
        }
    }

    /// What a copy of a tile touches of the tensor.
    pub(super) fn copy_tile(&mut self, one: &Instruction, access: Access, at: usize) -> Option<()> {
        let place = Operand::Register(access.address?.uniform?);
        let (Some(Half::Lower(map)), Some(Half::Upper)) = (self.half(place), self.second(place))
        else {
            return None;
        };
        let begin: Option<Vec<i128>> = one
            .sources
            .iter()
            .map(|source| Some((self.value(source.operand)? as i32).into()))
            .collect();
        let kind = match access.kind {
            // None of it is filled with zeros: that is outside of the tensor.
            AccessKind::CopyToShared => AccessKind::Read,
            kind => kind,
        };
        for (address, bytes) in Map::new(self.launch, map)?.tile(&begin?)? {
            self.touched.push(Touch { at, kind, address, bytes, strong: access.strong });
        }
        Some(())
    }
}
