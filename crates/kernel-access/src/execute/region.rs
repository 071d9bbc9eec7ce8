//! What may happen between a branch and where its ways meet.

use super::local::may_store;
use crate::code::Code;
use crate::decode::{AccessKind, INSTRUCTION, Operation, Predicate, Register};
use crate::instruction::after;

/// What may happen between a branch and where its ways meet. No way ends there: its end would be one
/// without that place.
pub(super) struct Region {
    pub(super) general: Vec<u16>,
    pub(super) uniform: Vec<u16>,
    pub(super) predicates: Vec<Predicate>,
    pub(super) writes: bool,
    /// It may write to the thread's own memory.
    pub(super) writes_local: bool,
    pub(super) reads: bool,
    pub(super) accesses: Vec<usize>,
}

impl Region {
    pub(super) fn new(code: &Code, from: usize, meeting: usize) -> Self {
        let mut region = Self {
            general: Vec::new(),
            uniform: Vec::new(),
            predicates: Vec::new(),
            writes: false,
            writes_local: false,
            reads: false,
            accesses: Vec::new(),
        };
        let blocks = &code.graph.blocks;
        let mut seen = vec![false; blocks.len()];
        let mut waiting = blocks.get(from).map_or(Vec::new(), |block| block.next.clone());
        while let Some(at) = waiting.pop() {
            let (Some(block), Some(seen)) = (blocks.get(at), seen.get_mut(at)) else { continue };
            if at == meeting || std::mem::replace(seen, true) {
                continue;
            }
            waiting.extend(&block.next);
            let all = code.instructions.get(block.instructions.clone()).unwrap_or_default();
            for (index, one) in block.instructions.clone().zip(all) {
                if code.is_access(one) {
                    region.accesses.push(index * INSTRUCTION);
                }
                region.predicates.extend(&one.predicates_written);
                region.reads |= matches!(one.operation, Operation::Access(access)
                    if matches!(access.kind, AccessKind::Read | AccessKind::Atomic));
                region.writes |= matches!(one.operation, Operation::Access(access)
                    if access.kind != AccessKind::Read);
                region.writes_local |=
                    matches!(one.operation, Operation::Access(access) if may_store(access));
                if let Some((mut register, count)) = one.destination {
                    for _ in 0..count {
                        match register {
                            Register::General(number) => region.general.push(number),
                            Register::Uniform(number) => region.uniform.push(number),
                            Register::Zero => {}
                        }
                        register = after(register);
                    }
                }
            }
        }
        region
    }
}

/// The accesses that may come after this instruction, which is the last one of a block.
pub(super) fn behind(code: &Code, last: usize) -> Vec<usize> {
    let blocks = &code.graph.blocks;
    let own = blocks.iter().position(|block| block.instructions.contains(&last));
    let mut seen = vec![false; blocks.len()];
    let mut waiting = own.and_then(|at| blocks.get(at)).map_or(Vec::new(), |own| own.next.clone());
    let mut accesses = Vec::new();
    while let Some(at) = waiting.pop() {
        let (Some(block), Some(seen)) = (blocks.get(at), seen.get_mut(at)) else { continue };
        if std::mem::replace(seen, true) {
            continue;
        }
        waiting.extend(&block.next);
        let all = code.instructions.get(block.instructions.clone()).unwrap_or_default();
        let all = block.instructions.clone().zip(all).filter(|(_, one)| code.is_access(one));
        accesses.extend(all.map(|(index, _)| index * INSTRUCTION));
    }
    accesses
}
