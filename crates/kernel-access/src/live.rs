//! Which registers may be read where a block begins, before they are written.

use crate::decode::{Access, AccessKind, Instruction, Operand, Operation, Register};
use crate::flow::Graph;
use crate::instruction::{after, registers_of_a_source};

/// How many registers and predicates there are: of a thread, and shared by those of a warp.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    pub(crate) registers: [usize; 2],
    pub(crate) predicates: [usize; 2],
}

impl Counts {
    /// Of machine code: a state has a place for each register, and most kernels have few.
    pub(crate) fn of(instructions: &[Instruction]) -> Self {
        let mut registers = [0; 2];
        for one in instructions {
            let (address, count) = match one.operation {
                Operation::Access(access) => (access.address, access.count),
                _ => (None, None),
            };
            let address = address.into_iter().flat_map(|of| [Some(of.base), of.uniform]).flatten();
            let address = address.chain(count);
            let sources = one.sources.iter().filter_map(|source| match source.operand {
                Operand::Register(register) => Some(register),
                Operand::Constant { index, .. } => Some(index),
                _ => None,
            });
            // Each that is read may be the first of up to eight.
            let read = address.chain(sources).map(|register| (register, 8));
            for (register, count) in read.chain(one.destination) {
                let (kind, end) = match register {
                    Register::General(number) => (0, usize::from(number) + usize::from(count)),
                    Register::Uniform(number) => (1, usize::from(number) + usize::from(count)),
                    Register::Zero => continue,
                };
                // The last number is no register.
                registers[kind] = registers[kind].max(end.min(255));
            }
        }
        Self { registers, predicates: [8; 2] }
    }
}

/// Of each block a bit for each register.
#[derive(Clone, Debug)]
pub(crate) struct Live {
    counts: [usize; 2],
    blocks: Vec<Vec<u64>>,
}

impl Live {
    pub(crate) fn new(code: &[Instruction], graph: &Graph, counts: Counts) -> Self {
        let counts = counts.registers;
        let words = (counts[0] + counts[1]).div_ceil(64);
        let mut live = Self { counts, blocks: vec![vec![0; words]; graph.blocks.len()] };
        // What each block leaves alone of what is read after it.
        let mut passed = vec![vec![u64::MAX; words]; graph.blocks.len()];
        let mut before = vec![Vec::new(); graph.blocks.len()];
        let blocks = live.blocks.iter_mut().zip(&mut passed).zip(&graph.blocks).enumerate();
        for (at, ((read, passed), block)) in blocks {
            for &next in &block.next {
                if let Some(before) = before.get_mut(next) {
                    before.push(at);
                }
            }
            for one in code.get(block.instructions.clone()).unwrap_or_default().iter().rev() {
                for (word, bit) in written(one).filter_map(|of| place(counts, of)) {
                    if let (Some(read), Some(passed)) = (read.get_mut(word), passed.get_mut(word)) {
                        (*read, *passed) = (*read & !bit, *passed & !bit);
                    }
                }
                each_read(one, |of| {
                    if let Some((word, bit)) = place(counts, of)
                        && let (Some(read), Some(passed)) =
                            (read.get_mut(word), passed.get_mut(word))
                    {
                        (*read, *passed) = (*read | bit, *passed & !bit);
                    }
                });
            }
        }
        let mut waiting: Vec<usize> = (0..graph.blocks.len()).collect();
        let mut waits = vec![true; graph.blocks.len()];
        while let Some(at) = waiting.pop() {
            if let Some(waits) = waits.get_mut(at) {
                *waits = false;
            }
            let own = live.blocks.get(at).cloned().unwrap_or_default();
            for &from in before.get(at).into_iter().flatten() {
                let (Some(read), Some(passed), Some(waits)) =
                    (live.blocks.get_mut(from), passed.get(from), waits.get_mut(from))
                else {
                    continue;
                };
                let mut is_more = false;
                for ((read, passed), own) in read.iter_mut().zip(passed).zip(&own) {
                    let more = own & passed & !*read;
                    *read |= more;
                    is_more |= more != 0;
                }
                if is_more && !std::mem::replace(waits, true) {
                    waiting.push(from);
                }
            }
        }
        live
    }

    /// Whether what the register has where the block begins may be read.
    pub(crate) fn is_read(&self, block: usize, kind: usize, number: usize) -> bool {
        let number = if kind == 0 { number } else { self.counts[0] + number };
        let word = self.blocks.get(block).and_then(|of| of.get(number / 64));
        word.is_none_or(|word| word >> (number % 64) & 1 != 0)
    }
}

/// The word and the bit of a register.
fn place(counts: [usize; 2], register: Register) -> Option<(usize, u64)> {
    let number = match register {
        Register::General(number) => usize::from(number),
        Register::Uniform(number) => counts[0] + usize::from(number),
        Register::Zero => return None,
    };
    Some((number / 64, 1 << (number % 64)))
}

fn some(first: Register, count: usize) -> impl Iterator<Item = Register> {
    std::iter::successors(Some(first), |&of| Some(after(of))).take(count)
}

/// The registers that have nothing left of what was in them. Of some instructions it is only known how
/// many they write at most.
fn written(one: &Instruction) -> impl Iterator<Item = Register> {
    let is_plain = |access: &Access| {
        access.kind == AccessKind::Read && access.address.is_some() && access.bytes <= 16
    };
    let most = match one.operation {
        _ if !one.guard.is_true() => 0,
        Operation::Access(access) if !is_plain(&access) => 0,
        Operation::Other(_) => 1,
        _ => usize::MAX,
    };
    one.destination
        .into_iter()
        .flat_map(move |(first, count)| some(first, usize::from(count).min(most)))
}

/// Each register that an instruction reads, or may read.
pub(crate) fn each_read(one: &Instruction, mut read: impl FnMut(Register)) {
    let count = match one.operation {
        Operation::Access(access) => {
            let address = access.address.into_iter();
            let parts = address.flat_map(|of| [Some(of.base), of.uniform]).flatten();
            let parts = parts.chain(access.count);
            parts.flat_map(|first| some(first, 2)).for_each(&mut read);
            usize::from(access.bytes).div_ceil(4).max(2)
        }
        operation => registers_of_a_source(operation),
    };
    for source in &one.sources {
        match source.operand {
            Operand::Register(first) => some(first, count).for_each(&mut read),
            Operand::Constant { index, .. } => read(index),
            Operand::Immediate(_) | Operand::Unknown => {}
        }
    }
    // What may be left in one of several registers may be in those after it, too.
    if let (Operation::Other(_), Some((first, count @ 2..))) = (one.operation, one.destination) {
        some(first, count.into()).for_each(read);
    }
}
