//! What operands are, as far as the thread knows them.

use super::State;
use crate::code::Constant;
use crate::decode::{Operand, Predicate, Register, Source};
use crate::instruction::after;

impl State<'_> {
    pub(super) fn predicate(&self, predicate: Predicate) -> Option<bool> {
        let value = match predicate.index {
            None => true,
            Some(index) => self.predicates[usize::from(predicate.uniform)][usize::from(index)]?,
        };
        Some(value != predicate.negated)
    }

    pub(super) fn write_predicate(&mut self, predicate: Predicate, value: Option<bool>) {
        if let Some(index) = predicate.index {
            self.predicates[usize::from(predicate.uniform)][usize::from(index)] = value;
        }
    }

    pub(super) fn register(&self, register: Register) -> Option<u32> {
        match register {
            Register::General(number) => self.general[usize::from(number)],
            Register::Uniform(number) => self.uniform[usize::from(number)],
            Register::Zero => Some(0),
        }
    }

    pub(super) fn write(&mut self, register: Register, value: Option<u32>) {
        match register {
            Register::General(number) => self.general[usize::from(number)] = value,
            Register::Uniform(number) => self.uniform[usize::from(number)] = value,
            Register::Zero => {}
        }
    }

    /// A constant of at most 16 bytes.
    pub(super) fn constant(
        &self,
        bank: u8,
        offset: u16,
        index: Register,
        bytes: u32,
    ) -> Option<u128> {
        let offset = u32::from(offset).wrapping_add(self.register(index)?);
        match bank {
            0 => {}
            2 => return self.code.number(offset, bytes),
            4 => {
                let (number, half) = self.code.variables.at(offset)?;
                let address = self.launch.variable(number)?;
                return match (half, bytes) {
                    (0, 8) => Some(address.into()),
                    (0, 4) => Some((address as u32).into()),
                    (4, 4) => Some((address >> 32).into()),
                    _ => None,
                };
            }
            _ => return None,
        }
        match self.code.constant(offset) {
            Constant::Parameter(at) => self.launch.parameter(at, bytes),
            // What is read there is not what its memory holds.
            Constant::Address { .. }
            | Constant::Meeting(_)
            | Constant::Stack
            | Constant::Unknown => None,
            // A launch does not say which clusters it has.
            Constant::Cluster(_) => None,
            // Two sizes may be read at once.
            Constant::Block(_) | Constant::Grid(_) => {
                let mut number = 0;
                for part in 0..bytes.div_ceil(4) {
                    let size = match self.code.constant(offset + part * 4) {
                        Constant::Block(axis) => self.launch.block[axis],
                        Constant::Grid(axis) => self.launch.grid[axis],
                        _ => return None,
                    };
                    number |= u128::from(size) << (32 * part);
                }
                Some(number)
            }
        }
    }

    pub(super) fn value(&self, operand: Operand) -> Option<u32> {
        match operand {
            Operand::Register(register) => self.register(register),
            Operand::Immediate(number) => Some(number),
            Operand::Constant { bank, offset, index } => {
                self.constant(bank, offset, index, 4).map(|number| number as u32)
            }
            Operand::Unknown => None,
        }
    }

    /// A number of 64 bits. Of an immediate with its highest bit it is not known what the upper half
    /// is.
    pub(super) fn wide(&self, operand: Operand) -> Option<u64> {
        match operand {
            Operand::Register(register) => {
                let upper = self.register(after(register))?;
                Some(u64::from(self.register(register)?) | u64::from(upper) << 32)
            }
            Operand::Immediate(number) => (number >> 31 == 0).then_some(number.into()),
            Operand::Constant { bank, offset, index } => {
                self.constant(bank, offset, index, 8).map(|number| number as u64)
            }
            Operand::Unknown => None,
        }
    }

    pub(super) fn long(&self, source: &Source) -> Option<u64> {
        let number = self.wide(source.operand)?;
        Some(if source.negated { number.wrapping_neg() } else { number })
    }
}
