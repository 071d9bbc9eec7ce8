//! One thread of a launch, instruction by instruction, as far as its values are known.
//!
//! Nothing here is an approximation: a value is known or it is not. What depends on other threads,
//! or on memory that the caller does not give, is not known, and where a branch depends on that, the
//! thread goes on where its ways meet, without what it could have done before. So each access that
//! is reported is one that this thread makes, if all loops on its way end.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use crate::code::{Code, Constant, Launch};
use crate::decode::{
    Access, AccessKind, Comparison, INSTRUCTION, Instruction, Junction, Operand, Operation,
    Predicate, Register, Source, Space,
};

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
    pub bytes: u8,
    /// As [`Access::strong`] has it.
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
    let mut state = State {
        code,
        launch,
        place: [thread, block],
        general: vec![None; code.counts.registers[0]],
        uniform: vec![None; code.counts.registers[1]],
        predicates: code.counts.predicates.map(|count| vec![None; count]),
        memory,
        wrote: false,
        known: None,
        touched: Vec::new(),
        missing: BTreeSet::new(),
        left: steps,
    };
    let end = state.run();
    if end != End::Exit {
        state.missing.extend(accesses(code));
    }
    Run {
        known: state.known.unwrap_or(state.touched.len()),
        touched: state.touched,
        end,
        missing: state.missing,
        steps: steps - state.left,
    }
}

/// The accesses to global memory that the ways through the code lead to, by their offsets.
pub(crate) fn accesses(code: &Code) -> impl Iterator<Item = usize> {
    let all = code.graph.blocks.iter().flat_map(|block| block.instructions.clone());
    all.filter(|&index| code.instructions.get(index).is_some_and(is_access))
        .map(|index| index * INSTRUCTION)
}

fn is_access(one: &Instruction) -> bool {
    matches!(one.operation, Operation::Access(access)
        if matches!(access.space, Space::Global | Space::Generic))
}

/// The number of the special register that is zero.
pub(crate) const ZERO: u8 = 0xff;

/// What may happen between a branch and where its ways meet. No way ends there: its end would be one
/// without that place.
struct Region {
    general: Vec<u16>,
    uniform: Vec<u16>,
    predicates: Vec<Predicate>,
    writes: bool,
    accesses: Vec<usize>,
}

struct State<'a> {
    code: &'a Code,
    launch: &'a Launch,
    /// The thread in its block, and the block.
    place: [[u32; 3]; 2],
    general: Vec<Option<u32>>,
    uniform: Vec<Option<u32>>,
    predicates: [Vec<Option<bool>>; 2],
    memory: Memory<'a>,
    /// What was in memory may be no longer there.
    wrote: bool,
    /// How much was touched before a branch that is not known.
    known: Option<usize>,
    touched: Vec<Touch>,
    missing: BTreeSet<usize>,
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
                    self.forget(&region);
                    meeting
                }
            };
        }
        End::Exit
    }

    fn forget(&mut self, region: &Region) {
        for &number in &region.general {
            self.general[usize::from(number)] = None;
        }
        for &number in &region.uniform {
            self.uniform[usize::from(number)] = None;
        }
        for &predicate in &region.predicates {
            self.write_predicate(predicate, None);
        }
        self.wrote |= region.writes;
        self.missing.extend(&region.accesses);
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

    fn predicate(&self, predicate: Predicate) -> Option<bool> {
        let value = match predicate.index {
            None => true,
            Some(index) => self.predicates[usize::from(predicate.uniform)][usize::from(index)]?,
        };
        Some(value != predicate.negated)
    }

    fn write_predicate(&mut self, predicate: Predicate, value: Option<bool>) {
        if let Some(index) = predicate.index {
            self.predicates[usize::from(predicate.uniform)][usize::from(index)] = value;
        }
    }

    fn register(&self, register: Register) -> Option<u32> {
        match register {
            Register::General(number) => self.general[usize::from(number)],
            Register::Uniform(number) => self.uniform[usize::from(number)],
            Register::Zero => Some(0),
        }
    }

    fn write(&mut self, register: Register, value: Option<u32>) {
        match register {
            Register::General(number) => self.general[usize::from(number)] = value,
            Register::Uniform(number) => self.uniform[usize::from(number)] = value,
            Register::Zero => {}
        }
    }

    /// A constant of at most 16 bytes.
    fn constant(&self, bank: u8, offset: u16, index: Register, bytes: u32) -> Option<u128> {
        let offset = u32::from(offset).wrapping_add(self.register(index)?);
        match bank {
            0 => {}
            2 => return self.code.number(offset, bytes),
            _ => return None,
        }
        match self.code.constant(offset) {
            Constant::Parameter(at) => self.launch.parameter(at, bytes),
            Constant::Unknown => None,
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

    fn value(&self, operand: Operand) -> Option<u32> {
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
    fn wide(&self, operand: Operand) -> Option<u64> {
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

    fn long(&self, source: &Source) -> Option<u64> {
        let number = self.wide(source.operand)?;
        Some(if source.negated { number.wrapping_neg() } else { number })
    }

    fn step(&mut self, one: &Instruction, at: usize) {
        let holds = self.predicate(one.guard);
        if holds == Some(false) {
            return;
        }
        let result = self.result(one, at, holds);
        if let Some((register, count)) = one.destination {
            let mut register = register;
            for part in 0..count {
                let value = result.value.filter(|_| holds.is_some());
                self.write(register, value.map(|value| (value >> (32 * u32::from(part))) as u32));
                register = after(register);
            }
        }
        for (predicate, at) in one.predicates_written.iter().zip(0..) {
            let value = result.predicates.get(at).copied().flatten();
            self.write_predicate(*predicate, value.filter(|_| holds.is_some()));
        }
    }

    fn result(&mut self, one: &Instruction, at: usize, holds: Option<bool>) -> Outcome {
        let plain =
            |value: Option<u32>| Outcome { value: value.map(u128::from), predicates: [None; 2] };
        let source = |at: usize| one.sources.get(at).copied();
        let operand = |at: usize| source(at).map_or(Operand::Unknown, |source| source.operand);
        match one.operation {
            // The other threads of the warp may have something else, if the instruction asks that.
            Operation::Move { wide: false }
                if one.predicates_written.iter().any(|written| written.index.is_some()) =>
            {
                Outcome::UNKNOWN
            }
            Operation::Move { wide: false } => plain(self.value(operand(0))),
            Operation::Move { wide: true } => {
                Outcome::wide(source(0).and_then(|source| self.long(&source)))
            }
            Operation::Special(number) => {
                // Of a pair only the zero is one number.
                let known = one.destination.is_none_or(|(_, count)| count == 1) || number == ZERO;
                plain(self.special(number).filter(|_| known))
            }
            Operation::LoadConstant { bytes, signed } => {
                let Operand::Constant { bank, offset, index } = operand(0) else {
                    return Outcome::UNKNOWN;
                };
                let value = self.constant(bank, offset, index, bytes.into());
                Outcome {
                    value: value.map(|value| match (bytes, signed) {
                        (1, true) => (value as u8 as i8 as i32 as u32).into(),
                        (2, true) => (value as u16 as i16 as i32 as u32).into(),
                        _ => value,
                    }),
                    predicates: [None; 2],
                }
            }
            Operation::MultiplyAdd { wide, high, signed, carry } => self
                .multiply_add(one, wide || high, high, signed, carry)
                .unwrap_or(Outcome::UNKNOWN),
            Operation::Add { wide, carry } => {
                self.add(one, wide, carry).unwrap_or(Outcome::UNKNOWN)
            }
            Operation::ShiftAdd { shift, high, extended, carry } => {
                self.shift_add(one, shift, high, extended, carry).unwrap_or(Outcome::UNKNOWN)
            }
            Operation::Shift { right, high, wide, signed, wrap } => {
                let [Some(low), Some(by), Some(upper)] =
                    [0, 1, 2].map(|at| self.value(operand(at)))
                else {
                    return Outcome::UNKNOWN;
                };
                plain(Some(shift(low, by, upper, [right, high, wide, signed, wrap])))
            }
            Operation::Logic(table) => {
                let [Some(first), Some(second), Some(third)] =
                    [0, 1, 2].map(|at| self.value(operand(at)))
                else {
                    return Outcome::UNKNOWN;
                };
                let value = logic(table, first, second, third);
                let joined = one.predicates_read.first().and_then(|&read| self.predicate(read));
                let predicate = if value != 0 { Some(true) } else { joined };
                Outcome { value: Some(value.into()), predicates: [predicate, None] }
            }
            Operation::Permute => {
                let numbers = [0, 1, 2].map(|at| self.value(operand(at)));
                let [Some(first), Some(selector), Some(third)] = numbers else {
                    return Outcome::UNKNOWN;
                };
                plain(Some(permuted(first, selector, third)))
            }
            Operation::Select { wide } => {
                let Some(first) =
                    one.predicates_read.first().and_then(|&read| self.predicate(read))
                else {
                    return Outcome::UNKNOWN;
                };
                let chosen = operand(usize::from(!first));
                if wide { Outcome::wide(self.wide(chosen)) } else { plain(self.value(chosen)) }
            }
            Operation::Minimum { signed, wide } => {
                self.minimum(one, signed, wide).unwrap_or(Outcome::UNKNOWN)
            }
            Operation::Compare { comparison, signed, junction, wide, high } => {
                let compared = self.compare(one, comparison, signed, wide, high);
                let joined = one.predicates_read.first().and_then(|&read| self.predicate(read));
                Outcome {
                    value: None,
                    predicates: [
                        join(junction, compared, joined),
                        join(junction, compared.map(|compared| !compared), joined),
                    ],
                }
            }
            Operation::PredicateLogic(tables) => {
                let mut index = Some(0);
                for &read in &one.predicates_read {
                    let bit = self.predicate(read);
                    index = index.zip(bit).map(|(index, bit)| index << 1 | usize::from(bit));
                }
                Outcome {
                    value: None,
                    predicates: tables
                        .map(|table| index.map(|index| table >> (index & 7) & 1 != 0)),
                }
            }
            Operation::Absolute => {
                plain(self.value(operand(0)).map(|value| (value as i32).wrapping_abs() as u32))
            }
            Operation::Halves => plain(self.value(operand(0))),
            Operation::MultiplyLong => {
                let numbers = self.wide(operand(0)).zip(self.wide(operand(1)));
                Outcome::wide(numbers.map(|(a, b)| a.wrapping_mul(b)))
            }
            Operation::Divide { signed, wide, remainder } => {
                let number = |operand| match wide {
                    true => self.wide(operand),
                    false if signed => self.value(operand).map(|value| value as i32 as u64),
                    false => self.value(operand).map(u64::from),
                };
                let numbers = number(operand(0)).zip(number(operand(1))).filter(|(_, by)| *by != 0);
                let value = numbers.map(|(a, b)| match (signed, remainder) {
                    (true, false) => (a as i64).wrapping_div(b as i64) as u64,
                    (true, true) => (a as i64).wrapping_rem(b as i64) as u64,
                    (false, false) => a / b,
                    (false, true) => a % b,
                });
                Outcome::wide(value)
            }
            Operation::Access(access) => self.access(access, at, holds),
            _ => Outcome::UNKNOWN,
        }
    }

    fn special(&self, number: u8) -> Option<u32> {
        let [thread, block] = self.place;
        let [x, y, _] = self.launch.block;
        match number {
            // The lane: blocks fill warps along x first.
            0 => Some(
                thread[2]
                    .wrapping_mul(y)
                    .wrapping_add(thread[1])
                    .wrapping_mul(x)
                    .wrapping_add(thread[0])
                    % 32,
            ),
            0x21..=0x23 => Some(thread[usize::from(number - 0x21)]),
            0x25..=0x27 => Some(block[usize::from(number - 0x25)]),
            ZERO => Some(0),
            _ => None,
        }
    }

    fn multiply_add(
        &self,
        one: &Instruction,
        long: bool,
        high: bool,
        signed: bool,
        carry: bool,
    ) -> Option<Outcome> {
        let &[first, second, third] = one.sources.as_slice() else { return None };
        let (a, b) = (self.value(first.operand)?, self.value(second.operand)?);
        if long {
            // What a negation or a carry would mean here was never seen.
            if first.negated || second.negated || third.negated || carry {
                return None;
            }
            let product = if signed {
                (i64::from(a as i32) * i64::from(b as i32)) as u64
            } else {
                u64::from(a) * u64::from(b)
            };
            let sum = product.wrapping_add(self.wide(third.operand)?);
            return Some(Outcome::wide(Some(if high { sum >> 32 } else { sum })));
        }
        let c = self.value(third.operand)?;
        let product = a.wrapping_mul(b);
        let product =
            if first.negated != second.negated { product.wrapping_neg() } else { product };
        let sum = if carry {
            if first.negated || second.negated {
                return None;
            }
            let carry = one.predicates_read.first().and_then(|&read| self.predicate(read))?;
            product.wrapping_add(if third.negated { !c } else { c }).wrapping_add(carry.into())
        } else {
            product.wrapping_add(if third.negated { c.wrapping_neg() } else { c })
        };
        Some(Outcome { value: Some(sum.into()), predicates: [None; 2] })
    }

    fn add(&self, one: &Instruction, wide: bool, carry: bool) -> Option<Outcome> {
        let bits = if wide { 64 } else { 32 };
        let mask = if wide { u128::from(u64::MAX) } else { u128::from(u32::MAX) };
        let mut sum = 0;
        let (mut negations, mut operands) = (0, 0);
        for source in &one.sources {
            let value = if wide {
                self.wide(source.operand)?.into()
            } else {
                u128::from(self.value(source.operand)?)
            };
            operands += u32::from(source.operand != Operand::Register(Register::Zero));
            // The negative is the complement and one.
            sum += if source.negated { mask - value } else { value };
            negations += u128::from(source.negated);
        }
        if carry {
            for &read in &one.predicates_read {
                sum += u128::from(self.predicate(read)?);
            }
        } else {
            sum += negations;
        }
        // Two predicates together have a carry of up to two; how they share it is not known, and only
        // their sum is used. One alone has it if there is only one.
        let over = sum >> bits;
        let both = one.predicates_written.iter().filter(|one| one.index.is_some()).count() == 2;
        let clear = both || operands < 3 && negations < 2 || over == 0;
        let predicates = if clear { [Some(over > 0), Some(over > 1)] } else { [None; 2] };
        Some(Outcome { value: Some(sum & mask), predicates })
    }

    fn shift_add(
        &self,
        one: &Instruction,
        shift: u8,
        high: bool,
        extended: bool,
        carry: bool,
    ) -> Option<Outcome> {
        let (&first, &second) = (one.sources.first()?, one.sources.get(1)?);
        let (a, b) = (self.value(first.operand)?, self.value(second.operand)?);
        let shift = u32::from(shift & 31);
        let shifted = if high {
            if first.negated {
                return None;
            }
            let upper = match one.sources.get(2) {
                Some(upper) => self.value(upper.operand)?,
                None if extended => (a as i32 >> 31) as u32,
                None => return None,
            };
            ((u64::from(upper) << 32 | u64::from(a)) << shift >> 32) as u32
        } else {
            let shifted = a << shift;
            if first.negated { shifted.wrapping_neg() } else { shifted }
        };
        let mut sum = u64::from(shifted) + u64::from(if second.negated { !b } else { b });
        if carry {
            let read = one.predicates_read.first().and_then(|&read| self.predicate(read))?;
            sum += u64::from(read);
        } else {
            sum += u64::from(second.negated);
        }
        let over = (!first.negated).then_some(sum >> 32 != 0);
        Some(Outcome { value: Some((sum as u32).into()), predicates: [over, None] })
    }

    fn minimum(&self, one: &Instruction, signed: bool, wide: bool) -> Option<Outcome> {
        let value = |source: &Source| {
            if wide {
                return self.long(source);
            }
            let value = self.value(source.operand)?;
            let value = if source.negated { value.wrapping_neg() } else { value };
            Some(if signed { value as i32 as u64 } else { value.into() })
        };
        let (a, b) = (value(one.sources.first()?)?, value(one.sources.get(1)?)?);
        let least = one.predicates_read.first().and_then(|&read| self.predicate(read))?;
        let less = if signed { (a as i64) < (b as i64) } else { a < b };
        Some(Outcome::wide(Some(if less == least { a } else { b })))
    }

    fn compare(
        &self,
        one: &Instruction,
        comparison: Comparison,
        signed: bool,
        wide: bool,
        high: bool,
    ) -> Option<bool> {
        let (first, second) = (one.sources.first()?, one.sources.get(1)?);
        let number = |source: &Source| {
            Some(match (wide, signed) {
                (true, true) => i128::from(self.long(source)? as i64),
                (true, false) => self.long(source)?.into(),
                (false, true) => i128::from(self.value(source.operand)? as i32),
                (false, false) => self.value(source.operand)?.into(),
            })
        };
        let order = number(first)?.cmp(&number(second)?);
        // Of two upper halves that are equal the lower ones decide.
        if high && order.is_eq() && !matches!(comparison, Comparison::Never | Comparison::Always) {
            let lower = one.predicates_read.get(1).and_then(|&read| self.predicate(read));
            return lower;
        }
        Some(match comparison {
            Comparison::Never => false,
            Comparison::Less => order.is_lt(),
            Comparison::Equal => order.is_eq(),
            Comparison::LessOrEqual => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::NotEqual => order.is_ne(),
            Comparison::GreaterOrEqual => order.is_ge(),
            Comparison::Always => true,
        })
    }

    fn access(&mut self, access: Access, at: usize, holds: Option<bool>) -> Outcome {
        let place = access.address.and_then(|address| {
            let mut place = if address.wide {
                self.wide(Operand::Register(address.base))?
            } else {
                self.register(address.base)?.into()
            };
            place = place.wrapping_mul(address.scale.into());
            if let Some(uniform) = address.uniform {
                place = place.wrapping_add(self.wide(Operand::Register(uniform))?);
            }
            Some(place.wrapping_add(i64::from(address.offset) as u64))
        });
        let writes = !matches!(access.kind, AccessKind::Read | AccessKind::CopyToShared);
        let global = matches!(access.space, Space::Global | Space::Generic);
        if let Some(address) = place
            && holds == Some(true)
        {
            let Access { kind, bytes, strong, .. } = access;
            self.touched.push(Touch { at, kind, address, bytes, strong });
            // Of a part of a register the instruction does not tell how it is extended.
            if access.kind == AccessKind::Read && global && !self.wrote && access.bytes >= 4 {
                let value = (self.memory)(address, access.bytes);
                return Outcome { value, predicates: [None; 2] };
            }
        }
        if global && (place.is_none() || holds.is_none()) {
            self.missing.insert(at);
        }
        self.wrote |= writes && global;
        Outcome::UNKNOWN
    }
}

/// What an instruction writes: up to four registers, and up to two predicates.
#[derive(Clone, Copy)]
struct Outcome {
    value: Option<u128>,
    predicates: [Option<bool>; 2],
}

impl Outcome {
    const UNKNOWN: Self = Self { value: None, predicates: [None; 2] };

    fn wide(value: Option<u64>) -> Self {
        Self { value: value.map(u128::from), predicates: [None; 2] }
    }
}

impl Region {
    fn new(code: &Code, from: usize, meeting: usize) -> Self {
        let mut region = Self {
            general: Vec::new(),
            uniform: Vec::new(),
            predicates: Vec::new(),
            writes: false,
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
                if is_access(one) {
                    region.accesses.push(index * INSTRUCTION);
                }
                region.predicates.extend(&one.predicates_written);
                region.writes |= matches!(one.operation, Operation::Access(access)
                    if access.kind != AccessKind::Read);
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

/// Whether the instruction goes where it goes in any case.
pub(crate) fn always(one: &Instruction) -> bool {
    one.guard.is_true() && one.predicates_read.iter().all(Predicate::is_true)
}

/// The second register of a pair.
pub(crate) fn after(register: Register) -> Register {
    match register {
        // In machine code the number 255 is zero; code from elsewhere leaves these two out.
        Register::General(254 | u16::MAX) | Register::Uniform(254..) => Register::Zero,
        Register::General(number) => Register::General(number + 1),
        Register::Uniform(number) => Register::Uniform(number + 1),
        Register::Zero => Register::Zero,
    }
}

fn join(junction: Junction, one: Option<bool>, other: Option<bool>) -> Option<bool> {
    match (junction, one, other) {
        (Junction::And, Some(false), _) | (Junction::And, _, Some(false)) => Some(false),
        (Junction::Or, Some(true), _) | (Junction::Or, _, Some(true)) => Some(true),
        (Junction::And, one, other) => one.zip(other).map(|(one, other)| one && other),
        (Junction::Or, one, other) => one.zip(other).map(|(one, other)| one || other),
        (Junction::Xor, one, other) => one.zip(other).map(|(one, other)| one != other),
    }
}

/// Each bit of the result is the table's bit whose number is that of the three bits.
pub(crate) fn logic(table: u8, first: u32, second: u32, third: u32) -> u32 {
    let mut result = 0;
    for index in (0..8).filter(|index| table >> index & 1 != 0) {
        let pick = |value: u32, bit: u32| if index & bit != 0 { value } else { !value };
        result |= pick(first, 4) & pick(second, 2) & pick(third, 1);
    }
    result
}

/// Four bytes of eight, each chosen by four bits of the selector.
pub(crate) fn permuted(first: u32, selector: u32, third: u32) -> u32 {
    let all = u64::from(third) << 32 | u64::from(first);
    let byte = |at: u32| {
        let chosen = selector >> (4 * at);
        let byte = (all >> (8 * (chosen & 7))) as u8;
        let byte = if chosen & 8 == 0 { byte } else { ((byte as i8) >> 7) as u8 };
        u32::from(byte) << (8 * at)
    };
    (0..4).map(byte).sum()
}

/// Shifts `upper` and `low` as one number.
fn shift(low: u32, by: u32, upper: u32, [right, high, wide, signed, wrap]: [bool; 5]) -> u32 {
    let most = if wide { 64 } else { 32 };
    let by = if wrap { by & (most - 1) } else { by.min(most) };
    let number = u64::from(upper) << 32 | u64::from(low);
    // All bits may be shifted out.
    let shifted = match (right, signed) {
        (false, _) => number.checked_shl(by).unwrap_or(0),
        (true, false) => number.checked_shr(by).unwrap_or(0),
        (true, true) => ((number as i64) >> by.min(63)) as u64,
    };
    (if high { shifted >> 32 } else { shifted }) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of both numbers, and signs, as for a parameter of one byte that is made wider.
    #[test]
    fn bytes_are_chosen_by_four_bits_each() {
        for (selector, expected) in [
            (0x3210, 0x8070_6050),
            (0x7654, 0x4433_2211),
            (0x0617, 0x5033_6044),
            (0x8880, 0x0000_0050),
            (0xbbb3, 0xffff_ff80),
            (0xfba9, 0x00ff_0000),
            // Only the lower half of the selector counts.
            (0xffff_3210, 0x8070_6050),
        ] {
            let found = permuted(0x8070_6050, selector, 0x4433_2211);
            assert_eq!(found, expected, "{selector:x}: {found:x}");
        }
    }
}
