//! Functions of PTX as instructions of the form that machine code is decoded to.
//!
//! A register of 64 bits is a pair. Each register has a number of its own here; afterwards
//! [`registers`](super::registers) lets those share one that are not needed at the same time.

use std::collections::{HashMap, HashSet};

use super::error::Done;
use super::parse::{self, Parser, Space, Statement, Type, Variable};
use super::{Module, PtxError};
use crate::decode::{
    Comparison, INSTRUCTION, Instruction, Junction, Operand, Operation, Predicate, Register, Source,
};

/// A kernel of more instructions is too large.
const MOST: usize = 1 << 18;

/// Where parameters are in constant bank 0, and the architecture whose layout of this bank is used.
pub(super) const BASE: u32 = 0x160;
pub(super) const LAYOUT: u32 = 80;

/// An address of a parameter: far from all memory, with its place in the bank as its lower half.
const PARAMETERS: u64 = 1 << 62;

/// The bank of a module's constant variables, and that of the addresses of its other ones.
pub(super) const CONSTANTS: u8 = 3;
const VARIABLES: u8 = 4;

pub(super) const ALWAYS: Predicate = Predicate { index: None, uniform: false, negated: false };

/// Special registers that are any number here.
const SPECIAL: [&str; 24] = [
    "%tid",
    "%ntid",
    "%laneid",
    "%warpid",
    "%nwarpid",
    "%ctaid",
    "%nctaid",
    "%smid",
    "%nsmid",
    "%gridid",
    "%is_explicit_cluster",
    "%clusterid",
    "%nclusterid",
    "%cluster_ctaid",
    "%cluster_nctaid",
    "%cluster_ctarank",
    "%cluster_nctarank",
    "%clock",
    "%clock_hi",
    "%clock64",
    "%globaltimer",
    "%globaltimer_lo",
    "%globaltimer_hi",
    "%total_smem_size",
];

/// What a name stands for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Named {
    Predicate(u16),
    /// So many bits, in the register with this number and, for 64, the next.
    Register(u32, u16),
    Variable(Space),
    /// A parameter of the kernel, at this byte.
    Entry(u32),
    Passed(Passed),
}

/// A variable by which functions pass parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Passed {
    /// The caller's.
    Own(usize),
    /// Of a function, by its number: a parameter, or what it returns.
    Parameter(usize, usize),
    Return(usize, usize),
}

/// A part of a [`Passed`]: its first byte, and how many there are.
pub(super) type Piece = (Passed, u32, u32);

/// Between braces.
#[derive(Default)]
pub(super) struct Scope<'a> {
    parent: Option<usize>,
    names: HashMap<&'a str, Named>,
    /// `%r<9>`: the names from `%r0` to `%r8`.
    ranges: HashMap<&'a str, (u32, Type)>,
    labels: HashMap<&'a str, usize>,
    pub(super) targets: HashMap<&'a str, Vec<&'a str>>,
}

/// What a kernel's PTX becomes.
pub(super) struct Translated {
    pub(super) code: Vec<Instruction>,
    /// The line of each instruction.
    pub(super) lines: Vec<u32>,
    /// How many registers and predicates have numbers.
    pub(super) registers: usize,
    pub(super) predicates: usize,
    /// The first register of each pair.
    pub(super) pairs: HashSet<u16>,
    /// Reads that are made even if nothing depends on them.
    pub(super) kept: HashSet<usize>,
}

pub(super) struct Translator<'m, 'a> {
    pub(super) module: &'m Module<'a>,
    pub(super) out: Translated,
    /// Of the instruction that is translated.
    pub(super) line: u32,
    pub(super) guard: Predicate,
    /// Whether it is the entry's, not that of a function that it calls.
    pub(super) in_entry: bool,
    pub(super) scopes: Vec<Scope<'a>>,
    pub(super) scope: usize,
    function: usize,
    /// Where functions begin, and those that are still to be translated.
    starts: HashMap<usize, usize>,
    pub(super) waiting: Vec<usize>,
    pub(super) calls: Vec<(usize, usize, u32)>,
    pub(super) branches: Vec<(usize, usize, &'a str, u32)>,
    /// The registers in which functions get and return what has no variable.
    bound: HashMap<(usize, bool, usize), Named>,
    pub(super) pieces: HashMap<Piece, u16>,
    pub(super) stored: HashSet<Piece>,
    /// Pieces that were read, and those that each call has given.
    pub(super) loaded: Vec<(Piece, u32)>,
    pub(super) given: Vec<(usize, HashSet<Piece>)>,
    /// Returned variables of the last call, as long as nothing can have come between.
    pub(super) results: HashMap<usize, Passed>,
    own: usize,
    /// The carry of additions in parts.
    pub(super) carry: Option<u16>,
}

pub(super) fn translate(module: &Module<'_>, entry: usize) -> Result<Translated, PtxError> {
    let mut translator = Translator {
        module,
        out: Translated {
            code: Vec::new(),
            lines: Vec::new(),
            registers: 0,
            predicates: 0,
            pairs: HashSet::new(),
            kept: HashSet::new(),
        },
        line: 0,
        guard: ALWAYS,
        in_entry: true,
        scopes: Vec::new(),
        scope: 0,
        function: entry,
        starts: HashMap::new(),
        waiting: vec![entry],
        calls: Vec::new(),
        branches: Vec::new(),
        bound: HashMap::new(),
        pieces: HashMap::new(),
        stored: HashSet::new(),
        loaded: Vec::new(),
        given: Vec::new(),
        results: HashMap::new(),
        own: 0,
        carry: None,
    };
    while let Some(function) = translator.waiting.pop() {
        if !translator.starts.contains_key(&function) {
            translator.in_entry = function == entry;
            translator.function(function)?;
        }
    }
    translator.finish()
}

impl<'a> Translator<'_, 'a> {
    pub(super) fn operands<T>(&self) -> Result<T, PtxError> {
        Err(PtxError::Operands(self.line))
    }

    fn function(&mut self, number: usize) -> Done {
        let module = self.module;
        let function = module.functions.get(number).ok_or(PtxError::NoKernel)?;
        let (body, line) = function.body.ok_or(PtxError::NoKernel)?;
        self.function = number;
        self.starts.insert(number, self.out.code.len());
        self.scopes.push(Scope::default());
        self.scope = self.scopes.len() - 1;
        self.results.clear();
        let entry = module.entries.iter().find(|entry| entry.function == number);
        for (ordinal, one) in function.parameters.iter().enumerate() {
            let named = match (one.space, entry) {
                (None, _) => self.bound(number, false, ordinal)?,
                (Some(_), Some(entry)) if self.in_entry => {
                    let parameter = entry.parameters.get(ordinal).ok_or(PtxError::NoKernel)?;
                    Named::Entry(parameter.offset)
                }
                _ => Named::Passed(Passed::Parameter(number, ordinal)),
            };
            self.name(one.name, named);
        }
        for (ordinal, one) in function.returns.iter().enumerate() {
            let named = match one.space {
                None => self.bound(number, true, ordinal)?,
                Some(_) => Named::Passed(Passed::Return(number, ordinal)),
            };
            self.name(one.name, named);
        }
        let mut parser = Parser::new(body, line);
        let mut last = None;
        let mut depth = 0_u32;
        while let Some(statement) = parser.statement()? {
            match statement {
                Statement::Open => {
                    // Each looks for names in all those around it.
                    depth += 1;
                    if depth > 64 {
                        return Err(PtxError::TooLarge);
                    }
                    let parent = Some(self.scope);
                    self.scopes.push(Scope { parent, ..Scope::default() });
                    self.scope = self.scopes.len() - 1;
                }
                Statement::Close => {
                    depth = depth.saturating_sub(1);
                    let parent = self.scopes.get(self.scope).and_then(|scope| scope.parent);
                    self.scope = parent.ok_or(PtxError::Damaged(self.line))?;
                }
                Statement::Variable(variable, count) => self.variable(variable, count)?,
                Statement::Registers(kind, names) => {
                    for name in names {
                        let named = self.register_of(kind)?;
                        self.name(name, named);
                    }
                }
                Statement::Label(name) => {
                    self.results.clear();
                    let at = self.out.code.len();
                    let line = self.line;
                    let scope = self.own_scope()?;
                    if scope.labels.insert(name, at).is_some() {
                        return Err(PtxError::Damaged(line));
                    }
                    last = Some(name);
                    continue;
                }
                Statement::Targets(targets) => {
                    let name = last.ok_or(PtxError::Damaged(self.line))?;
                    self.own_scope()?.targets.insert(name, targets);
                }
                Statement::Instruction(one) => {
                    self.line = one.line;
                    self.guard = match one.guard {
                        Some((name, negated)) => Predicate { negated, ..self.predicate(name)? },
                        None => ALWAYS,
                    };
                    self.instruction(&one)?;
                }
            }
            last = None;
            if self.out.code.len() > MOST {
                return Err(PtxError::TooLarge);
            }
        }
        // Who comes to the end of a function goes back.
        self.guard = ALWAYS;
        self.leave();
        let branches = std::mem::take(&mut self.branches);
        for (at, scope, label, line) in branches {
            let target = self.find(scope, |scope| scope.labels.get(label).copied());
            let target = target.ok_or(PtxError::Damaged(line))?;
            if let Some(one) = self.out.code.get_mut(at) {
                one.target = Some((target * INSTRUCTION) as i64);
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Translated, PtxError> {
        for &(at, function, line) in &self.calls {
            let start = self.starts.get(&function).ok_or(PtxError::Call(line))?;
            if let Some(one) = self.out.code.get_mut(at) {
                one.target = Some((start * INSTRUCTION) as i64);
            }
        }
        // What a function reads each of its callers must have given, in the same pieces.
        for (piece, line) in &self.loaded {
            let known = match piece.0 {
                Passed::Parameter(function, _) => self
                    .given
                    .iter()
                    .all(|(callee, given)| *callee != function || given.contains(piece)),
                _ => self.stored.contains(piece),
            };
            if !known {
                return Err(PtxError::Operands(*line));
            }
        }
        Ok(self.out)
    }

    fn own_scope(&mut self) -> Result<&mut Scope<'a>, PtxError> {
        let line = self.line;
        self.scopes.get_mut(self.scope).ok_or(PtxError::Damaged(line))
    }

    fn name(&mut self, name: &'a str, named: Named) {
        if let Some(scope) = self.scopes.get_mut(self.scope) {
            scope.names.insert(name, named);
        }
    }

    /// In a scope, or the next one around it.
    pub(super) fn find<T>(
        &self,
        mut at: usize,
        find: impl Fn(&Scope<'a>) -> Option<T>,
    ) -> Option<T> {
        loop {
            let scope = self.scopes.get(at)?;
            match find(scope) {
                Some(found) => return Some(found),
                None => at = scope.parent?,
            }
        }
    }

    /// A new register, or two.
    pub(super) fn fresh(&mut self, wide: bool) -> Result<u16, PtxError> {
        let first = u16::try_from(self.out.registers).map_err(|_| PtxError::TooLarge)?;
        self.out.registers += if wide { 2 } else { 1 };
        // These two have a meaning in machine code.
        if (253..256).contains(&first) {
            self.out.registers = 256;
            return self.fresh(wide);
        }
        if self.out.registers >= usize::from(u16::MAX) {
            return Err(PtxError::TooLarge);
        }
        if wide {
            self.out.pairs.insert(first);
        }
        Ok(first)
    }

    pub(super) fn fresh_predicate(&mut self) -> Result<u16, PtxError> {
        let number = u16::try_from(self.out.predicates).map_err(|_| PtxError::TooLarge)?;
        self.out.predicates += 1;
        Ok(number)
    }

    fn register_of(&mut self, kind: Type) -> Result<Named, PtxError> {
        Ok(match kind {
            Type::Predicate => Named::Predicate(self.fresh_predicate()?),
            Type::Bits(bits @ 0..=64) => Named::Register(bits, self.fresh(bits == 64)?),
            Type::Bits(_) => return Err(PtxError::Operands(self.line)),
        })
    }

    /// The register in which a function gets a parameter, or returns one.
    pub(super) fn bound(
        &mut self,
        function: usize,
        is_return: bool,
        ordinal: usize,
    ) -> Result<Named, PtxError> {
        let key = (function, is_return, ordinal);
        if let Some(&named) = self.bound.get(&key) {
            return Ok(named);
        }
        let of = self.module.functions.get(function).ok_or(PtxError::NoKernel)?;
        let all = if is_return { &of.returns } else { &of.parameters };
        let kind = all.get(ordinal).ok_or(PtxError::Operands(self.line))?.kind;
        let named = self.register_of(kind)?;
        self.bound.insert(key, named);
        Ok(named)
    }

    fn variable(&mut self, variable: Variable<'a>, count: Option<u32>) -> Done {
        let named = match (variable.space, count) {
            (None, Some(count)) => {
                self.own_scope()?.ranges.insert(variable.name, (count, variable.kind));
                return Ok(());
            }
            (None, None) => self.register_of(variable.kind)?,
            (Some(Space::Parameter), _) => {
                self.own += 1;
                Named::Passed(Passed::Own(self.own))
            }
            (Some(space), _) => Named::Variable(space),
        };
        self.name(variable.name, named);
        Ok(())
    }

    /// `None` for a name that is declared nowhere.
    pub(super) fn named(&mut self, name: &'a str) -> Result<Option<Named>, PtxError> {
        // The numbers of a range are written without zeros in front.
        let prefix = name.trim_end_matches(|digit: char| digit.is_ascii_digit());
        let digits = name.get(prefix.len()..).unwrap_or_default();
        let in_range = |prefix: &str, digits: &str, scope: &Scope<'a>| {
            let &(count, kind) = scope.ranges.get(prefix)?;
            let plain = digits == "0" || !digits.starts_with('0');
            (plain && digits.parse::<u32>().is_ok_and(|number| number < count)).then_some(kind)
        };
        let mut at = self.scope;
        loop {
            let Some(scope) = self.scopes.get(at) else { return Ok(None) };
            if let Some(&named) = scope.names.get(name) {
                return Ok(Some(named));
            }
            // A name of a range may have digits itself, as in `%f64_<3>` it has not at its end.
            let mut found = None;
            for cut in 0..digits.len().min(10) {
                let split = prefix.len() + cut;
                let parts = name.get(..split).zip(name.get(split..));
                found = parts.and_then(|(prefix, digits)| in_range(prefix, digits, scope));
                if found.is_some() {
                    break;
                }
            }
            if let Some(kind) = found {
                let named = self.register_of(kind)?;
                if let Some(scope) = self.scopes.get_mut(at) {
                    scope.names.insert(name, named);
                }
                return Ok(Some(named));
            }
            match scope.parent {
                Some(parent) => at = parent,
                None => break,
            }
        }
        Ok(self.module.variables.get(name).map(|&space| Named::Variable(space)))
    }

    /// The predicate of that name.
    pub(super) fn predicate(&mut self, name: &'a str) -> Result<Predicate, PtxError> {
        match self.named(name)? {
            Some(Named::Predicate(index)) => Ok(Predicate { index: Some(index), ..ALWAYS }),
            _ => self.operands(),
        }
    }

    /// Appends an instruction with the guard.
    pub(super) fn emit(
        &mut self,
        operation: Operation,
        destination: Option<(u16, u8)>,
        sources: Vec<Source>,
    ) -> &mut Instruction {
        self.out.lines.push(self.line);
        self.out.code.push(Instruction {
            guard: self.guard,
            operation,
            destination: destination.map(|(first, count)| (Register::General(first), count)),
            sources,
            predicates_written: Vec::new(),
            predicates_read: Vec::new(),
            target: None,
        });
        let last = self.out.code.len() - 1;
        // One was just pushed.
        &mut self.out.code[last]
    }

    /// A value in a new register: it is computed whether the guard holds or not.
    pub(super) fn temporary(
        &mut self,
        wide: bool,
        operation: Operation,
        sources: Vec<Source>,
    ) -> Result<u16, PtxError> {
        let register = self.fresh(wide)?;
        let guard = std::mem::replace(&mut self.guard, ALWAYS);
        self.emit(operation, Some((register, if wide { 2 } else { 1 })), sources);
        self.guard = guard;
        Ok(register)
    }

    /// A number of 64 bits as a source.
    pub(super) fn long(&mut self, number: u64) -> Result<Operand, PtxError> {
        if number >> 31 == 0 {
            return Ok(Operand::Immediate(number as u32));
        }
        let register = self.fresh(true)?;
        let guard = std::mem::replace(&mut self.guard, ALWAYS);
        let halves = [number as u32, (number >> 32) as u32];
        for (half, number) in (register..).zip(halves) {
            let number = Operand::Immediate(number).into();
            self.emit(Operation::Move { wide: false }, Some((half, 1)), vec![number]);
        }
        self.guard = guard;
        Ok(Operand::Register(Register::General(register)))
    }

    /// What a special register has: of most it is not known.
    fn special(&mut self, name: &str) -> Result<u16, PtxError> {
        let (register, axis) = name.split_once('.').unwrap_or((name, ""));
        let axis = ["x", "y", "z"].iter().position(|one| *one == axis);
        let constant = |first: usize, axis: usize| {
            let offset = (first + 4 * axis) as u16;
            vec![Operand::Constant { bank: 0, offset, index: Register::Zero }.into()]
        };
        let load = Operation::LoadConstant { bytes: 4, signed: false };
        match (register, axis) {
            ("%tid", Some(axis)) => {
                self.temporary(false, Operation::Special(0x21 + axis as u8), Vec::new())
            }
            ("%ctaid", Some(axis)) => {
                self.temporary(false, Operation::Special(0x25 + axis as u8), Vec::new())
            }
            ("%laneid", None) => self.temporary(false, Operation::Special(0), Vec::new()),
            ("%ntid", Some(axis)) => self.temporary(false, load, constant(0, axis)),
            ("%nctaid", Some(axis)) => self.temporary(false, load, constant(12, axis)),
            _ => {
                let prefixes = [
                    "%lanemask_",
                    "%pm",
                    "%envreg",
                    "%reserved_smem_",
                    "%dynamic_smem_",
                    "%aggr_smem_",
                ];
                let known = SPECIAL.contains(&register)
                    || prefixes.iter().any(|prefix| register.starts_with(prefix));
                if known {
                    self.temporary(false, Operation::Computed, Vec::new())
                } else {
                    self.operands()
                }
            }
        }
    }

    /// A number of at most 32 bits. Of one with 8 or 16 the bits above may be any.
    pub(super) fn value(&mut self, operand: &parse::Operand<'a>) -> Result<Operand, PtxError> {
        Ok(match operand {
            parse::Operand::Integer(number) => Operand::Immediate(*number as u32),
            parse::Operand::Single(bits) => Operand::Immediate(*bits),
            parse::Operand::Double(bits) => {
                Operand::Immediate((f64::from_bits(*bits) as f32).to_bits())
            }
            parse::Operand::Name("WARP_SZ") => Operand::Immediate(32),
            parse::Operand::Name(name) => match self.named(name)? {
                Some(Named::Register(bits, first)) if bits <= 32 => {
                    Operand::Register(Register::General(first))
                }
                Some(Named::Variable(space)) => match space {
                    // The lower half of an address.
                    Space::Global | Space::Constant => {
                        let address = self.variable_address()?;
                        Operand::Register(Register::General(address))
                    }
                    _ => {
                        let any = self.temporary(false, Operation::Computed, Vec::new())?;
                        Operand::Register(Register::General(any))
                    }
                },
                None if name.starts_with('%') => {
                    Operand::Register(Register::General(self.special(name)?))
                }
                _ => return self.operands(),
            },
            parse::Operand::Place(name, _) => match self.named(name)? {
                Some(Named::Variable(Space::Shared | Space::Local)) => {
                    let any = self.temporary(false, Operation::Computed, Vec::new())?;
                    Operand::Register(Register::General(any))
                }
                _ => return self.operands(),
            },
            _ => return self.operands(),
        })
    }

    /// The address of a variable in global memory: it is not known, and may be as one that comes from
    /// memory.
    pub(super) fn variable_address(&mut self) -> Result<u16, PtxError> {
        let from = Operand::Constant { bank: VARIABLES, offset: 0, index: Register::Zero };
        let load = Operation::LoadConstant { bytes: 8, signed: false };
        self.temporary(true, load, vec![from.into()])
    }

    /// A number of 64 bits.
    pub(super) fn wide(&mut self, operand: &parse::Operand<'a>) -> Result<Operand, PtxError> {
        let (name, offset) = match operand {
            parse::Operand::Integer(number) | parse::Operand::Double(number) => {
                return self.long(*number);
            }
            parse::Operand::Name(name) => (*name, 0),
            parse::Operand::Place(name, offset) => (*name, *offset),
            _ => return self.operands(),
        };
        let pair = |first| Ok(Operand::Register(Register::General(first)));
        match self.named(name)? {
            Some(Named::Register(64, first)) if offset == 0 => pair(first),
            Some(Named::Variable(Space::Global | Space::Constant)) => {
                pair(self.variable_address()?)
            }
            Some(Named::Variable(_)) => {
                pair(self.temporary(true, Operation::Computed, Vec::new())?)
            }
            Some(Named::Entry(at)) => {
                let at = u64::from(BASE + at).wrapping_add(offset as u64);
                self.long(PARAMETERS.wrapping_add(at))
            }
            None if name.starts_with('%') => {
                // Of 64 bits there are only times and the like.
                self.special(name)?;
                pair(self.temporary(true, Operation::Computed, Vec::new())?)
            }
            _ => self.operands(),
        }
    }

    /// The lower and the upper half.
    pub(super) fn halves(operand: Operand) -> [Operand; 2] {
        match operand {
            Operand::Register(Register::General(first)) => {
                [first, first + 1].map(|number| Operand::Register(Register::General(number)))
            }
            // Only those without the highest bit are immediates of 64 bits.
            Operand::Immediate(_) => [operand, Operand::Immediate(0)],
            other => [other, Operand::Unknown],
        }
    }

    /// The predicate that says whether one number is less than the other, or in another way.
    pub(super) fn compare(
        &mut self,
        (comparison, signed, wide): (Comparison, bool, bool),
        operands: [Operand; 2],
    ) -> Result<Predicate, PtxError> {
        let index = Some(self.fresh_predicate()?);
        let guard = std::mem::replace(&mut self.guard, ALWAYS);
        let operation =
            Operation::Compare { comparison, signed, junction: Junction::And, wide, high: false };
        let one = self.emit(operation, None, operands.map(Source::from).to_vec());
        one.predicates_written = vec![Predicate { index, ..ALWAYS }];
        one.predicates_read = vec![ALWAYS];
        self.guard = guard;
        Ok(Predicate { index, ..ALWAYS })
    }
}
