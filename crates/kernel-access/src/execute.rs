//! One thread of a launch, instruction by instruction, as far as its values are known.
//!
//! Nothing here is an approximation: a value is known or it is not. What depends on other threads,
//! or on memory that the caller does not give, is not known, and where a branch depends on that, the
//! thread goes on where its ways meet, without what it could have done before. So each access that
//! is reported is one that this thread makes, if all loops on its way end.

mod arithmetic;
mod local;
mod maps;
mod operands;
mod origin;
mod region;
mod results;

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use crate::code::{Code, Launch};
use crate::decode::{AccessKind, INSTRUCTION, Instruction, Operation, Register};
use crate::instruction::{after, always};
use maps::Half;
use origin::Origins;
use region::Region;

/// An access to global memory that a thread makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Touch {
    /// The instruction's offset in the code.
    pub at: usize,
    /// In which way.
    pub kind: AccessKind,
    /// The first byte.
    pub address: u64,
    /// How many bytes: exactly for reads and writes. For the others at most, and a copy to shared
    /// memory may also fill that with zeros and read nothing.
    pub bytes: u32,
    /// As [`Access::strong`](crate::decode::Access::strong) has it.
    pub strong: bool,
}

/// Where a thread's run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// The thread ended.
    Exit,
    /// It is not known whether the thread goes on after the instruction at this offset.
    Unknown(usize),
    /// The limit of steps was reached.
    Steps,
}

/// What one thread does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Run {
    /// Its accesses, in order. Some may be missing: those that are made only perhaps, and those
    /// whose address is not known.
    pub touched: Vec<Touch>,
    /// How many of them come before the first branch that is not known. Those after it are made only
    /// if the loops that may begin there end.
    pub known: usize,
    /// How it ended.
    pub end: End,
    /// The instructions of which accesses may be missing, by their offsets: all that this thread does
    /// with global memory is in `touched`, or is done by one of them.
    pub missing: BTreeSet<usize>,
    /// Those of them that this thread runs or does not by what memory contains, and those that read constant
    /// variables, which may not be used.
    pub conditional: BTreeSet<usize>,
    /// How many instructions it ran.
    pub steps: usize,
}

/// What memory holds before the launch: up to 16 bytes at an address, the first the lowest, or
/// `None` where that is not known or may change before this thread reads it.
pub type Memory<'a> = &'a mut dyn FnMut(u64, u8) -> Option<u128>;

/// Runs the thread `thread` of the block `block`.
///
/// The thread has at most `steps` instructions.
pub fn execute(
    code: &Code,
    launch: &Launch,
    block: [u32; 3],
    thread: [u32; 3],
    memory: Memory<'_>,
    steps: usize,
) -> Run {
    // Before it begins another block may take over what it would do.
    if let Some(at) = code.cancels() {
        let end = End::Unknown(at);
        let (missing, conditional) = (code.accesses().collect(), BTreeSet::new());
        return Run { touched: Vec::new(), known: 0, end, missing, conditional, steps: 0 };
    }
    let mut state = State {
        code,
        launch,
        place: [thread, block],
        general: vec![None; code.counts.registers[0]],
        uniform: vec![None; code.counts.registers[1]],
        predicates: code.counts.predicates.map(|count| vec![None; count]),
        of_memory: Origins::new(code),
        halves: HashMap::new(),
        local: HashMap::new(),
        memory,
        wrote: false,
        known: None,
        touched: Vec::new(),
        missing: BTreeSet::new(),
        conditional: BTreeSet::new(),
        left: steps,
    };
    let end = state.run();
    if end != End::Exit {
        state.missing.extend(code.accesses());
    }
    if let End::Unknown(at) = end
        && let Some(one) = code.instructions.get(at / INSTRUCTION)
        && state.depends_on_memory(one)
    {
        state.conditional.extend(region::behind(code, at / INSTRUCTION));
    }
    Run {
        known: state.known.unwrap_or(state.touched.len()),
        touched: state.touched,
        end,
        missing: state.missing,
        conditional: state.conditional,
        steps: steps - state.left,
    }
}

struct State<'a> {
    code: &'a Code,
    launch: &'a Launch,
    /// The thread in its block, and the block.
    place: [[u32; 3]; 2],
    general: Vec<Option<u32>>,
    uniform: Vec<Option<u32>>,
    predicates: [Vec<Option<bool>>; 2],
    /// What is not known since it depends on what memory contains.
    of_memory: Origins,
    /// Of the registers that have an address among the parameters, or on the stack.
    halves: HashMap<Register, Half>,
    /// Words of the thread's own memory, by how far they are from where the stack begins.
    local: HashMap<u32, u32>,
    memory: Memory<'a>,
    /// What was in memory may be no longer there.
    wrote: bool,
    /// How much was touched before a branch that is not known.
    known: Option<usize>,
    touched: Vec<Touch>,
    missing: BTreeSet<usize>,
    conditional: BTreeSet<usize>,
    /// How many more instructions it may run.
    left: usize,
}

impl State<'_> {
    fn run(&mut self) -> End {
        let code = self.code;
        let mut regions: HashMap<usize, Rc<Region>> = HashMap::new();
        let mut at = 0;
        while let Some(block) = code.graph.blocks.get(at) {
            for index in block.instructions.clone() {
                let Some(left) = self.left.checked_sub(1) else { return End::Steps };
                self.left = left;
                let Some(one) = code.instructions.get(index) else { break };
                self.step(one, index * INSTRUCTION);
            }
            let last = block.instructions.end.saturating_sub(1);
            let Some(one) = code.instructions.get(last) else { return End::Exit };
            if let Some(target) = self.computed(one) {
                let mut next = block.next.iter().copied();
                let starts = |at: &usize| {
                    let next = code.graph.blocks.get(*at);
                    next.is_some_and(|next| next.instructions.start * INSTRUCTION == target)
                };
                let Some(next) = next.find(starts) else {
                    return End::Unknown(last * INSTRUCTION);
                };
                at = next;
                continue;
            }
            let goes = match one.operation {
                Operation::Branch { divergent: true } | Operation::BranchIndirect => {
                    match self.holds(one) {
                        Some(false) => Some(false),
                        _ => None,
                    }
                }
                Operation::Branch { .. }
                | Operation::Exit
                | Operation::Call
                | Operation::Return
                | Operation::Converge(_) => self.holds(one),
                _ => Some(false),
            };
            let ends = matches!(one.operation, Operation::Exit)
                || matches!(one.operation, Operation::Return)
                    && block.next.len() < 1 + usize::from(!always(one));
            at = match (goes, ends) {
                (Some(true), true) => return End::Exit,
                (None, true) => return End::Unknown(last * INSTRUCTION),
                (Some(goes), _) => {
                    match if goes { block.next.last() } else { block.next.first() } {
                        Some(&next) => next,
                        None => return End::Exit,
                    }
                }
                (None, false) => {
                    let Some(meeting) = code.graph.post_dominators.get(at).copied().flatten()
                    else {
                        return End::Unknown(last * INSTRUCTION);
                    };
                    let region = regions
                        .entry(at)
                        .or_insert_with(|| Rc::new(Region::new(code, at, meeting)))
                        .clone();
                    self.known.get_or_insert(self.touched.len());
                    self.forget(&region, one);
                    meeting
                }
            };
        }
        End::Exit
    }

    /// What may happen after a branch of which it is not known where it goes.
    fn forget(&mut self, region: &Region, branch: &Instruction) {
        let is_conditional = self.depends_on_memory(branch);
        let of_memory = is_conditional || region.reads;
        let general = region.general.iter().map(|&number| Register::General(number));
        let uniform = region.uniform.iter().map(|&number| Register::Uniform(number));
        for register in general.chain(uniform) {
            self.write(register, None);
            self.of_memory.set(register, of_memory);
            self.halves.remove(&register);
        }
        for &predicate in &region.predicates {
            self.write_predicate(predicate, None);
            self.of_memory.set_predicate(predicate, of_memory);
        }
        self.wrote |= region.writes;
        if region.writes_local {
            self.local.clear();
        }
        self.missing.extend(&region.accesses);
        if is_conditional {
            self.conditional.extend(&region.accesses);
        }
    }

    /// Where a branch to a computed place goes, if it does and that is known.
    fn computed(&self, one: &Instruction) -> Option<usize> {
        let (Operation::BranchIndirect, Some(true)) = (one.operation, self.holds(one)) else {
            return None;
        };
        let &[place, base] = one.sources.as_slice() else { return None };
        let sum = self.wide(place.operand)?.checked_add(self.wide(base.operand)?)?;
        usize::try_from(sum).ok()
    }

    /// Whether the guard and all that is read besides hold.
    fn holds(&self, one: &Instruction) -> Option<bool> {
        let mut result = Some(true);
        for &predicate in [one.guard].iter().chain(&one.predicates_read) {
            match self.predicate(predicate) {
                Some(false) => return Some(false),
                Some(true) => {}
                None => result = None,
            }
        }
        result
    }

    fn step(&mut self, one: &Instruction, at: usize) {
        let holds = self.predicate(one.guard);
        if holds == Some(false) {
            return;
        }
        // Which of the bytes are used that it reads of constant variables is not known, or whether any is: the
        // compiler may read one before the branch that asks for it.
        if self.code.variables.read_by(one).next().is_some() {
            self.missing.insert(at);
            self.conditional.insert(at);
        }
        let result = self.result(one, at, holds);
        self.follow(one, holds);
        let value = result.value.filter(|_| holds.is_some());
        let predicates: [Option<bool>; 2] =
            result.predicates.map(|value| value.filter(|_| holds.is_some()));
        let is_unknown = value.is_none() && one.destination.is_some()
            || one.predicates_written.iter().enumerate().any(|(at, predicate)| {
                predicate.index.is_some() && predicates.get(at).copied().flatten().is_none()
            });
        let of_memory = is_unknown && self.depends_on_memory(one);
        if let Some((register, count)) = one.destination {
            let mut register = register;
            for part in 0..count {
                self.write(register, value.map(|value| (value >> (32 * u32::from(part))) as u32));
                let was = holds.is_none() && self.of_memory.has(register);
                self.of_memory.set(register, value.is_none() && (of_memory || was));
                register = after(register);
            }
        }
        for (predicate, at) in one.predicates_written.iter().zip(0..) {
            let value = predicates.get(at).copied().flatten();
            self.write_predicate(*predicate, value);
            let was = holds.is_none() && self.of_memory.has_predicate(*predicate);
            self.of_memory.set_predicate(*predicate, value.is_none() && (of_memory || was));
        }
    }
}
