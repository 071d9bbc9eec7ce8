//! By which accesses a kernel may wait for what others write.

use std::collections::HashSet;

use crate::decode::{
    Access, AccessKind, Instruction, Operand, Operation, Predicate, Register, Space,
};
use crate::flow::Graph;
use crate::instruction::{after, registers_of_a_source};

/// Of so many the loops are looked through; with more each may be waited by.
const ASKED: usize = 64;

/// The indices of strong reads of global memory in loops, where what is read may decide whether the
/// loop goes on.
pub(crate) fn polls(code: &[Instruction], graph: &Graph) -> Vec<usize> {
    let all = |blocks: &mut dyn Iterator<Item = usize>| -> Vec<usize> {
        blocks
            .filter_map(|at| graph.blocks.get(at))
            .flat_map(|of| of.instructions.clone())
            .collect()
    };
    let mut regions: Vec<Vec<usize>> =
        graph.loops.iter().map(|one| all(&mut one.blocks.iter().copied())).collect();
    // Blocks that run repeatedly without a single entry are in no loop.
    if graph.irreducible {
        regions.push(all(&mut (0..graph.blocks.len())));
    }
    let may_poll = |at: usize| code.get(at).is_some_and(|one| is_strong_read(one.operation));
    let pairs = regions.iter().flat_map(|region| {
        region.iter().copied().filter(|&at| may_poll(at)).map(move |at| (region, at))
    });
    let pairs: Vec<_> = pairs.collect();
    let is_asked = pairs.len() <= ASKED;
    let decides = |(region, at): &(&Vec<usize>, usize)| !is_asked || decides(code, region, *at);
    pairs.into_iter().filter(decides).map(|(_, at)| at).collect()
}

fn is_strong_read(operation: Operation) -> bool {
    let Operation::Access(access) = operation else { return false };
    let reads = matches!(access.kind, AccessKind::Read | AccessKind::Atomic);
    access.strong && reads && matches!(access.space, Space::Global | Space::Generic)
}

/// Something that a value may be in.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    Register(Register),
    /// By its number, and whether it is uniform.
    Predicate(Option<u16>, bool),
    /// All of it.
    Memory,
}

impl From<&Predicate> for Place {
    fn from(of: &Predicate) -> Self {
        Self::Predicate(of.index, of.uniform)
    }
}

/// These of the others compute from the registers that they name, and from nothing else.
const PLAIN: [&str; 16] = [
    "FADD", "FMUL", "FFMA", "DADD", "DMUL", "DFMA", "HADD2", "HMUL2", "HFMA2", "F2FP", "F2F",
    "F2I", "I2F", "I2FP", "POPC", "FLO",
];

/// Whether the result of an access may decide how this loop goes on.
fn decides(code: &[Instruction], region: &[usize], access: usize) -> bool {
    let mut reached: HashSet<Place> = HashSet::new();
    if let Some(one) = code.get(access) {
        reached.extend(written(one));
    }
    // What is written in a turn may be read in the next one.
    loop {
        let before = reached.len();
        for one in region.iter().filter_map(|&at| code.get(at)) {
            let reads = reads_any(one, &reached);
            match one.operation {
                Operation::Unknown => return true,
                Operation::Branch { .. }
                | Operation::BranchIndirect
                | Operation::Exit
                | Operation::Call
                | Operation::Return
                    if reads =>
                {
                    return true;
                }
                Operation::Access(Access { kind, .. }) if reads && kind != AccessKind::Read => {
                    reached.insert(Place::Memory);
                    reached.extend(written(one));
                }
                Operation::Other(name) if reads || !PLAIN.contains(&name) => {
                    reached.extend(written(one));
                }
                _ if reads => reached.extend(written(one)),
                _ => {}
            }
        }
        if reached.len() == before {
            return false;
        }
    }
}

fn written(one: &Instruction) -> impl Iterator<Item = Place> {
    let registers =
        one.destination.into_iter().flat_map(|(first, count)| some(first, count.into()));
    let predicates = one.predicates_written.iter().filter(|of| of.index.is_some());
    registers.chain(predicates.map(Place::from))
}

/// So many registers from the first on.
fn some(first: Register, count: usize) -> impl Iterator<Item = Place> {
    let registers = std::iter::successors(Some(first), |&of| Some(after(of))).take(count);
    registers.filter(|&of| of != Register::Zero).map(Place::Register)
}

fn reads_any(one: &Instruction, reached: &HashSet<Place>) -> bool {
    let is = |place: Place| reached.contains(&place);
    if is((&one.guard).into()) || one.predicates_read.iter().any(|of| is(of.into())) {
        return true;
    }
    let (address, count) = match one.operation {
        Operation::Access(access) => {
            let reads = !matches!(access.kind, AccessKind::Write | AccessKind::Reduce);
            if reads && is(Place::Memory) {
                return true;
            }
            (access.address, usize::from(access.bytes).div_ceil(4).max(2))
        }
        operation => (None, registers_of_a_source(operation)),
    };
    let address = address.into_iter().flat_map(|of| [Some(of.base), of.uniform]).flatten();
    if one.sources.iter().any(|source| source.operand == Operand::Unknown) {
        return true;
    }
    let sources = one.sources.iter().flat_map(|source| match source.operand {
        Operand::Register(register) => some(register, count).collect(),
        Operand::Constant { index, .. } => some(index, 1).collect(),
        Operand::Immediate(_) | Operand::Unknown => Vec::new(),
    });
    address.flat_map(|of| some(of, 2)).chain(sources).any(is)
}
