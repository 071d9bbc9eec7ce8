//! By which accesses a kernel may wait for what others write.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::decode::{
    Access, AccessKind, INSTRUCTION, Instruction, Operand, Operation, Predicate, Register, Space,
};
use crate::flow::Graph;
use crate::instruction::{after, always, is_access, registers_of_a_source};

/// So many instructions are looked at, for all accesses together: some ten milliseconds. What is left may
/// be waited by.
const LOOKED_AT: usize = 1 << 17;

/// The offsets of reads of global memory by which a kernel may learn how far other work is: what is
/// read may decide which way a thread goes. In rising order.
pub(crate) fn polls(code: &[Instruction], graph: &Graph) -> Vec<usize> {
    let of = |at: usize| code.get(at).map(|one| one.operation);
    let of_blocks = |blocks: &[usize]| -> Vec<usize> {
        let blocks = blocks.iter().filter_map(|at| graph.blocks.get(*at));
        blocks.flat_map(|block| block.instructions.clone()).collect()
    };
    let whole: Vec<usize> = (0..graph.blocks.len()).collect();
    let mut loops: Vec<&[usize]> = graph.loops.iter().map(|one| &*one.blocks).collect();
    // Blocks that run repeatedly without a single entry are in no loop.
    if graph.irreducible {
        loops.push(&whole);
    }
    // A flag may be looked at once. What it says may also be where the thread goes on in memory: a writer
    // can fill another buffer first, and then say which one is to be read.
    let mut asked: Vec<(usize, &[usize], bool)> = Vec::new();
    asked.extend(
        of_blocks(&whole)
            .into_iter()
            .map(|at| (at, &*whole, true))
            .filter(|(at, ..)| of(*at).is_some_and(|one| is_read(one, true) && !is_atomic(one))),
    );
    for region in loops {
        let inside = of_blocks(region);
        // Without a fence the compiler may load once for all turns.
        let has_fence = inside.iter().filter_map(|at| of(*at)).any(is_fence);
        let may_poll = |at: &usize| {
            of(*at).is_some_and(|one| is_atomic(one) || has_fence && is_read(one, false))
        };
        asked.extend(inside.into_iter().filter(may_poll).map(|at| (at, region, false)));
    }
    let (mut left, mut found) = (LOOKED_AT, BTreeSet::new());
    for (at, region, is_flag) in asked {
        let offset = at * INSTRUCTION;
        let mut decides = || decides(code, graph, region, (at, is_flag), &mut left);
        if !found.contains(&offset) && decides().unwrap_or(true) {
            found.insert(offset);
        }
    }
    found.into_iter().collect()
}

fn is_read(operation: Operation, strong: bool) -> bool {
    let Operation::Access(access) = operation else { return false };
    let reads = matches!(access.kind, AccessKind::Read | AccessKind::Atomic);
    access.strong == strong && reads && matches!(access.space, Space::Global | Space::Generic)
}

fn is_atomic(operation: Operation) -> bool {
    let is = matches!(operation, Operation::Access(Access { kind: AccessKind::Atomic, .. }));
    is && is_read(operation, true)
}

pub(crate) fn is_fence(operation: Operation) -> bool {
    matches!(operation, Operation::Other("MEMBAR"))
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

/// Whether the result of an access may decide how a thread goes on in these blocks, or, of a flag, which
/// memory it accesses. `None` if no more instructions may be looked at.
fn decides(
    code: &[Instruction],
    graph: &Graph,
    region: &[usize],
    (access, is_flag): (usize, bool),
    left: &mut usize,
) -> Option<bool> {
    let instructions = |block: usize| graph.blocks.get(block).map(|of| of.instructions.clone());
    // Where the result may be when a block begins. A function has blocks for each call.
    let mut begin: BTreeMap<usize, HashSet<Place>> = BTreeMap::new();
    let mut waiting: Vec<usize> = region.to_vec();
    waiting.retain(|&block| instructions(block).is_some_and(|all| all.contains(&access)));
    while let Some(block) = waiting.pop() {
        let mut reached = begin.get(&block).cloned().unwrap_or_default();
        let all = instructions(block).unwrap_or_default();
        *left = left.checked_sub(all.len())?;
        for at in all {
            let Some(one) = code.get(at) else { continue };
            if !reached.is_empty() && goes_on(one, &mut reached, is_flag) {
                return Some(true);
            }
            if at == access {
                reached.extend(written(one));
            }
        }
        for next in graph.blocks.get(block).into_iter().flat_map(|of| &of.next) {
            if region.binary_search(next).is_err() {
                continue;
            }
            let known = begin.entry(*next).or_default();
            let before = known.len();
            known.extend(reached.iter().copied());
            if known.len() > before && !waiting.contains(next) {
                waiting.push(*next);
            }
        }
    }
    Some(false)
}

/// What an instruction does with a value that may be in these places. Says whether it may decide which way
/// the thread goes, or, of a flag, where it accesses memory.
fn goes_on(one: &Instruction, reached: &mut HashSet<Place>, is_flag: bool) -> bool {
    // A compiler makes a short way of a condition, instead of a branch, or gives it to the access.
    let mut conditions = std::iter::once(&one.guard).chain(&one.predicates_read);
    if is_access(one) && conditions.any(|condition| reached.contains(&Place::from(condition))) {
        return true;
    }
    if is_flag && is_access(one) && address(one).any(|of| reached.contains(&Place::Register(of))) {
        return true;
    }
    let reads = reads_any(one, reached);
    let is_kept = match one.operation {
        Operation::Unknown => return true,
        Operation::Branch { .. }
        | Operation::BranchIndirect
        | Operation::Converge(_)
        | Operation::Exit
        | Operation::Call
        | Operation::Return
            if reads =>
        {
            return true;
        }
        Operation::Access(Access { kind, .. }) if reads && kind != AccessKind::Read => {
            reached.insert(Place::Memory);
            true
        }
        Operation::Other(name) => reads || !PLAIN.contains(&name),
        _ => reads,
    };
    if is_kept {
        reached.extend(written(one));
    } else if always(one) {
        surely_written(one).for_each(|place| _ = reached.remove(&place));
    }
    false
}

/// What holds nothing of before: of some instructions it is only known how many registers they write at
/// most.
fn surely_written(one: &Instruction) -> impl Iterator<Item = Place> {
    let most = match one.operation {
        Operation::Access(Access {
            kind: AccessKind::Read,
            address: Some(_),
            bytes: ..=16,
            ..
        }) => usize::MAX,
        Operation::Access(_) => 0,
        Operation::Other(_) => 1,
        _ => usize::MAX,
    };
    let is_register = |place: &Place| matches!(place, Place::Register(_));
    let registers = written(one).filter(is_register).take(most);
    registers.chain(written(one).filter(move |place| !is_register(place)))
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
    let count = match one.operation {
        Operation::Access(access) => {
            let reads = !matches!(access.kind, AccessKind::Write | AccessKind::Reduce);
            if reads && is(Place::Memory) {
                return true;
            }
            usize::from(access.bytes).div_ceil(4).max(2)
        }
        operation => registers_of_a_source(operation),
    };
    if one.sources.iter().any(|source| source.operand == Operand::Unknown) {
        return true;
    }
    // Of a product only what is added to it may be wide.
    let count = |at: usize| match one.operation {
        Operation::MultiplyAdd { .. } if at < 2 => 1,
        _ => count,
    };
    let sources = one.sources.iter().enumerate().flat_map(|(at, source)| match source.operand {
        Operand::Register(register) => some(register, count(at)).collect(),
        Operand::Constant { index, .. } => some(index, 1).collect(),
        Operand::Immediate(_) | Operand::Unknown => Vec::new(),
    });
    address(one).map(Place::Register).chain(sources).any(is)
}

/// The registers that the address of an access is in.
fn address(one: &Instruction) -> impl Iterator<Item = Register> {
    let address = match one.operation {
        Operation::Access(access) => access.address,
        _ => None,
    };
    let bases = address.into_iter().flat_map(|of| [Some(of.base), of.uniform]).flatten();
    bases.flat_map(|of| [of, after(of)]).filter(|&of| of != Register::Zero)
}
