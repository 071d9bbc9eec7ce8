//! Functions that compute with fractions and do nothing else, as those of slow divisions, roots and
//! powers do.
//!
//! No address comes from what they compute. In the place of such a function, of which each call would have
//! all blocks, there is one block that writes the same registers: any number that may depend on what the
//! function reads.

use std::collections::{BTreeMap, BTreeSet};

use crate::decode::{INSTRUCTION, Instruction, Operand, Operation, Predicate, Register, Source};
use crate::instruction::{after, always};
use crate::live::each_read;

/// A longer function is followed.
const MOST: usize = 4096;

/// Instructions of fractions.
const FRACTIONS: [&str; 14] = [
    "FADD", "FMUL", "FFMA", "DADD", "DMUL", "DFMA", "MUFU", "MUFU.RCP", "HADD2", "HMUL2", "HFMA2",
    "F2F", "FRND", "FCHK",
];

/// What else such functions have. A fraction that is made a whole number may become an index.
const OTHERS: [&str; 26] = [
    "FSET",
    "FSETP",
    "DSETP",
    "HSETP2",
    "FSEL",
    "FMNMX",
    "FMNMX3",
    "F2FP",
    "I2F",
    "I2F.RP",
    "I2F.U32.RP",
    "I2FP",
    "UI2F",
    "FLO",
    "UFLO",
    "POPC",
    "UPOPC",
    "BREV",
    "PRMT",
    "UPRMT",
    "SGXT",
    "USGXT",
    "BMSK",
    "UBMSK",
    "NOP",
    "YIELD",
];

/// Puts such blocks behind the code, and lets the calls go there.
pub(crate) fn replace(code: &mut Vec<Instruction>) {
    let place = |one: &Instruction| {
        let target = one.target.filter(|_| one.operation == Operation::Call)?;
        usize::try_from(target).ok().filter(|at| at.is_multiple_of(INSTRUCTION))
    };
    let called: BTreeSet<usize> = code.iter().filter_map(place).collect();
    let mut found = BTreeMap::new();
    for target in called {
        if let Some(block) = block(code, target / INSTRUCTION) {
            found.insert(target, (code.len() * INSTRUCTION) as i64);
            code.extend(block);
        }
    }
    for one in code {
        if let Some(block) = place(one).and_then(|target| found.get(&target)) {
            one.target = Some(*block);
        }
    }
}

/// What stands for the function that begins there.
fn block(code: &[Instruction], first: usize) -> Option<Vec<Instruction>> {
    let mut seen = BTreeSet::new();
    let mut waiting = vec![first];
    let (mut set, mut waited) = (BTreeSet::new(), BTreeSet::new());
    let (mut returns, mut has_fractions) = (false, false);
    let mut registers = BTreeSet::new();
    let mut predicates: Vec<Predicate> = Vec::new();
    let mut conditions: Vec<Predicate> = Vec::new();
    let mut read: BTreeSet<Register> = BTreeSet::new();
    let mut constants: Vec<Operand> = Vec::new();
    while let Some(at) = waiting.pop() {
        if !seen.insert(at) {
            continue;
        }
        let one = code.get(at).filter(|_| seen.len() <= MOST)?;
        let target = || {
            let target = usize::try_from(one.target?).ok()?;
            target.is_multiple_of(INSTRUCTION).then_some(target / INSTRUCTION)
        };
        let goes_on = match one.operation {
            Operation::Branch { divergent } => {
                waiting.push(target()?);
                divergent || !always(one)
            }
            Operation::Call => {
                waiting.push(target()?);
                true
            }
            Operation::Return => {
                returns = true;
                !always(one)
            }
            Operation::SetConvergence(number) => {
                set.insert(number);
                waiting.push(target()?);
                true
            }
            Operation::Converge(number) => {
                waited.insert(number);
                !always(one)
            }
            Operation::Other(name) => {
                let is_fraction = FRACTIONS.contains(&name);
                has_fractions |= is_fraction;
                (is_fraction || OTHERS.contains(&name)).then_some(true)?
            }
            Operation::Unknown
            | Operation::Access(_)
            | Operation::BranchIndirect
            | Operation::Exit
            | Operation::SaveConvergence { .. }
            | Operation::RestoreConvergence(_) => return None,
            _ => true,
        };
        if goes_on {
            waiting.push(at + 1);
        }
        each_read(one, |register| _ = read.insert(register));
        for source in &one.sources {
            match source.operand {
                constant @ Operand::Constant { .. } if !constants.contains(&constant) => {
                    constants.push(constant);
                }
                Operand::Unknown => return None,
                _ => {}
            }
        }
        if let Some((first, count)) = one.destination {
            let all = std::iter::successors(Some(first), |&of| Some(after(of)));
            registers.extend(all.take(count.into()));
        }
        for read in std::iter::once(&one.guard).chain(&one.predicates_read) {
            if read.index.is_some() && !conditions.contains(read) {
                conditions.push(*read);
            }
        }
        for written in one.predicates_written.iter().filter(|written| written.index.is_some()) {
            if !predicates.contains(written) {
                predicates.push(*written);
            }
        }
    }
    // Threads that meet where the caller says would leave the function.
    (returns && has_fractions && waited.is_subset(&set)).then_some(())?;
    registers.remove(&Register::Zero);
    // Which constant that is depends on what the function writes, and is not what it would be before.
    let is_chosen =
        |one: &Operand| matches!(one, Operand::Constant { index, .. } if registers.contains(index));
    (!constants.iter().any(is_chosen)).then_some(())?;
    // What is not written on some way is what it was.
    read.extend(&registers);
    read.remove(&Register::Zero);
    let sources = read.into_iter().map(Operand::Register).chain(constants);
    let sources: Vec<Source> = sources.map(Source::from).collect();
    let one = |operation, destination| Instruction {
        guard: Predicate { index: None, uniform: false, negated: false },
        operation,
        destination,
        sources: if operation == Operation::Return { Vec::new() } else { sources.clone() },
        predicates_written: Vec::new(),
        predicates_read: match operation {
            Operation::Return => Vec::new(),
            _ => conditions.clone(),
        },
        target: None,
    };
    let mut ranges: Vec<(Register, u8)> = Vec::new();
    for register in registers {
        match ranges.last_mut() {
            Some((first, count))
                if *count < u8::MAX
                    && std::iter::successors(Some(*first), |&of| Some(after(of)))
                        .nth((*count).into())
                        == Some(register) =>
            {
                *count += 1;
            }
            _ => ranges.push((register, 1)),
        }
    }
    let mut block: Vec<Instruction> =
        ranges.into_iter().map(|range| one(Operation::Computed, Some(range))).collect();
    block.push(Instruction { predicates_written: predicates, ..one(Operation::Computed, None) });
    block.push(one(Operation::Return, None));
    Some(block)
}
