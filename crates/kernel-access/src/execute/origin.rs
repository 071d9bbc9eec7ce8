//! Which of the values that are not known depend on what memory contains.

use super::State;
use crate::code::Code;
use crate::decode::{Access, AccessKind, Instruction, Operand, Operation, Predicate, Register};
use crate::live::each_read;

/// The registers and predicates with such values, the general ones and the uniform ones.
pub(super) struct Origins {
    registers: [Vec<bool>; 2],
    predicates: [Vec<bool>; 2],
}

impl Origins {
    pub(super) fn new(code: &Code) -> Self {
        Self {
            registers: code.counts.registers.map(|count| vec![false; count]),
            predicates: code.counts.predicates.map(|count| vec![false; count]),
        }
    }

    pub(super) fn has(&self, register: Register) -> bool {
        // An instruction may seem to read more registers than the code has.
        let at = |all: &[bool], number: u16| all.get(usize::from(number)).copied();
        let found = match register {
            Register::General(number) => at(&self.registers[0], number),
            Register::Uniform(number) => at(&self.registers[1], number),
            Register::Zero => None,
        };
        found.unwrap_or(false)
    }

    pub(super) fn set(&mut self, register: Register, is: bool) {
        match register {
            Register::General(number) => self.registers[0][usize::from(number)] = is,
            Register::Uniform(number) => self.registers[1][usize::from(number)] = is,
            Register::Zero => {}
        }
    }

    pub(super) fn has_predicate(&self, predicate: Predicate) -> bool {
        let all = &self.predicates[usize::from(predicate.uniform)];
        predicate.index.is_some_and(|index| all[usize::from(index)])
    }

    pub(super) fn set_predicate(&mut self, predicate: Predicate, is: bool) {
        if let Some(index) = predicate.index {
            self.predicates[usize::from(predicate.uniform)][usize::from(index)] = is;
        }
    }
}

impl State<'_> {
    /// Whether what an instruction does, or its result, depends on what memory contains.
    pub(super) fn depends_on_memory(&self, one: &Instruction) -> bool {
        let is_load = matches!(
            one.operation,
            Operation::Access(Access { kind: AccessKind::Read | AccessKind::Atomic, .. })
        );
        let mut predicates = [one.guard].into_iter().chain(one.predicates_read.iter().copied());
        if is_load || predicates.any(|predicate| self.of_memory.has_predicate(predicate)) {
            return true;
        }
        // Votes read no registers.
        if matches!(one.operation, Operation::Other("VOTE" | "VOTEU" | "ELECT")) {
            return false;
        }
        // The variables of a module are in memory, too.
        let is_variable = |operand| matches!(operand, Operand::Constant { bank: 3, .. });
        let mut depends = one.sources.iter().any(|source| is_variable(source.operand));
        each_read(one, |register| depends |= self.of_memory.has(register));
        depends
    }
}
