//! A thread's own memory, as far as it is known what the thread has stored there.
//!
//! Where it is in memory is not known, so addresses there are followed by how far they are from the
//! stack's first address: compilers keep arrays there that have an index, and registers.

use super::State;
use super::maps::Half;
use crate::decode::{Access, AccessKind, Instruction, Operand, Register, Space};
use crate::instruction::after;

impl State<'_> {
    /// Where on the stack an access is.
    fn place_on_stack(&self, access: Access) -> Option<u32> {
        let address = access.address?;
        let uniform = address.uniform.unwrap_or(Register::Zero);
        let on_stack = |base: Register, other: Register| match self.halves.get(&base)? {
            Half::Stack(at) => Some(at.wrapping_add(self.register(other)?)),
            _ => None,
        };
        let at = on_stack(address.base, uniform).or_else(|| on_stack(uniform, address.base))?;
        Some(at.wrapping_add_signed(address.offset))
    }

    /// What a load gets from the thread's own memory: four bytes, or a multiple of that.
    pub(super) fn load_local(&self, access: Access) -> Option<u128> {
        let first = self.place_on_stack(access)?;
        if access.bytes < 4 || !first.is_multiple_of(4) {
            return None;
        }
        let places = (0..u32::from(access.bytes)).step_by(4).map(|at| first.wrapping_add(at));
        let words: Option<Vec<u32>> = places.map(|at| self.local.get(&at).copied()).collect();
        Some(words?.into_iter().rev().fold(0, |number, word| number << 32 | u128::from(word)))
    }

    /// An access may write to the thread's own memory.
    pub(super) fn store_local(&mut self, one: &Instruction, access: Access, holds: Option<bool>) {
        let first = match access.space {
            Space::Local => self.place_on_stack(access),
            // An address that is known is not one of the stack's.
            Space::Generic if access.address.is_some_and(|address| self.is_known(address)) => {
                return;
            }
            Space::Generic => None,
            Space::Global | Space::Shared | Space::Tensor => return,
        };
        let Some(first) = first else { return self.local.clear() };
        let mut register = match one.sources.first().map(|source| source.operand) {
            Some(Operand::Register(register)) if access.kind == AccessKind::Write => register,
            _ => return self.local.clear(),
        };
        let is_whole = access.bytes >= 4 && first.is_multiple_of(4);
        let words = (first & !3..first.saturating_add(access.bytes.into())).step_by(4);
        for at in words {
            let value = self.register(register).filter(|_| is_whole && holds == Some(true));
            match value {
                Some(value) => self.local.insert(at, value),
                None => self.local.remove(&at),
            };
            register = after(register);
        }
    }

    /// Whether the registers of an address are known.
    fn is_known(&self, address: crate::decode::Address) -> bool {
        let base = match address.wide {
            true => self.wide(Operand::Register(address.base)).is_some(),
            false => self.register(address.base).is_some(),
        };
        base && address
            .uniform
            .is_none_or(|register| self.wide(Operand::Register(register)).is_some())
    }
}

/// Whether an instruction may write to the memory of a thread.
pub(super) fn may_store(access: Access) -> bool {
    let writes = !matches!(access.kind, AccessKind::Read | AccessKind::CopyToShared);
    writes && matches!(access.space, Space::Local | Space::Generic)
}
