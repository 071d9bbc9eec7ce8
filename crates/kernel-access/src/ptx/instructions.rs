//! Instructions that compute, and those that say where a thread goes on.

use super::PtxError;
use super::error::Done;
use super::parse::{self, Instruction, Operands};
use super::translate::{ALWAYS, Named, Translator};
use crate::decode::{Operand, Operation, Predicate, Register, Source};

/// Instructions whose result depends on what they read, and that have no effect besides: the first
/// operand is written.
const COMPUTED: [&str; 58] = [
    "fma",
    "sqrt",
    "rsqrt",
    "rcp",
    "sin",
    "cos",
    "ex2",
    "lg2",
    "tanh",
    "copysign",
    "testp",
    "clz",
    "bfind",
    "fns",
    "szext",
    "bmsk",
    "dp4a",
    "dp2a",
    "sad",
    "mul24",
    "mad24",
    "set",
    "slct",
    "shfl",
    "vote",
    "match",
    "activemask",
    "redux",
    "elect",
    "mma",
    "prmt",
    "vadd",
    "vsub",
    "vabsdiff",
    "vmin",
    "vmax",
    "vshl",
    "vshr",
    "vmad",
    "vset",
    "vadd2",
    "vsub2",
    "vavrg2",
    "vabsdiff2",
    "vmin2",
    "vmax2",
    "vset2",
    "vadd4",
    "vsub4",
    "vavrg4",
    "vabsdiff4",
    "vmin4",
    "vmax4",
    "vset4",
    "isspacep",
    "getctarank",
    "mapa",
    "createpolicy",
];

/// Instructions that write no register and no memory but that of a block. A prefetch is no access.
const WITHOUT_RESULT: [&str; 8] = [
    "nanosleep",
    "pmevent",
    "griddepcontrol",
    "prefetch",
    "prefetchu",
    "applypriority",
    "setmaxnreg",
    "brkpt",
];

/// A type in an instruction's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) bits: u32,
    pub(super) class: Class,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Signed,
    /// Also bits without a meaning.
    Unsigned,
    Float,
    Predicate,
}

impl Kind {
    pub(super) fn parse(name: &str) -> Option<Self> {
        let (class, digits) = match name {
            "pred" => return Some(Self { bits: 1, class: Class::Predicate }),
            "f16x2" | "bf16x2" | "tf32" => {
                return Some(Self { bits: 32, class: Class::Float });
            }
            _ => match (name.strip_prefix("bf"), name.split_at_checked(1)?) {
                (Some(digits), _) => (Class::Float, digits),
                (None, ("s", digits)) => (Class::Signed, digits),
                (None, ("u" | "b", digits)) => (Class::Unsigned, digits),
                (None, ("f", digits)) => (Class::Float, digits),
                _ => return None,
            },
        };
        let bits = match digits {
            "8" => 8,
            "16" => 16,
            "32" => 32,
            "64" => 64,
            "128" => 128,
            _ => return None,
        };
        Some(Self { bits, class })
    }

    pub(super) fn is_float(self) -> bool {
        self.class == Class::Float
    }

    pub(super) fn signed(self) -> bool {
        self.class == Class::Signed
    }
}

/// An instruction's name in its parts.
pub(super) struct Name<'a> {
    pub(super) base: &'a str,
    pub(super) parts: Vec<&'a str>,
}

impl<'a> Name<'a> {
    fn new(name: &'a str) -> Self {
        let mut parts = name.split('.');
        Self { base: parts.next().unwrap_or_default(), parts: parts.collect() }
    }

    pub(super) fn has(&self, part: &str) -> bool {
        self.parts.contains(&part)
    }

    /// The type that is named last.
    pub(super) fn kind(&self) -> Option<Kind> {
        self.parts.iter().rev().find_map(|part| Kind::parse(part))
    }
}

/// A register that an instruction writes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Written {
    Predicate(u16),
    /// So many bits.
    Register(u32, u16),
    /// The result is lost.
    Nothing,
}

impl<'a> Translator<'_, 'a> {
    pub(super) fn instruction(&mut self, one: &Instruction<'a>) -> Done {
        let name = Name::new(one.name);
        let operands = one.operands.as_slice();
        match name.base {
            // Two numbers in one register.
            "add" | "sub" | "mul" | "min" | "max" | "neg" | "abs" if kind_is_pair(&name) => {
                self.computed(operands)?;
            }
            "bra" => match operands {
                [parse::Operand::Name(label)] => self.branch(label, None),
                _ => return self.operands(),
            },
            "brx" => match operands {
                [index, parse::Operand::Name(list)] => self.branch_by(index, list)?,
                _ => return self.operands(),
            },
            "call" => self.call(operands)?,
            "ret" => self.leave(),
            // A trap ends more than the thread.
            "exit" | "trap" => {
                self.emit(Operation::Exit, None, Vec::new());
            }
            "mov" => self.copy_of(&name, operands)?,
            "add" | "sub" => self.add(&name, operands)?,
            "mul" | "mad" => self.multiply(&name, operands)?,
            "div" | "rem" => self.divide(&name, operands)?,
            "shl" | "shr" => self.shift(&name, operands)?,
            "and" | "or" | "xor" | "not" => self.logic(&name, operands)?,
            "lop3" => self.table(&name, operands)?,
            "shf" => self.funnel(&name, operands)?,
            "min" | "max" => self.minimum(&name, operands)?,
            "neg" | "abs" => self.sign(&name, operands)?,
            "brev" | "popc" => self.bits(&name, operands)?,
            "setp" => self.comparison(&name, operands)?,
            "selp" => self.select(&name, operands)?,
            "cvt" => self.convert(&name, operands)?,
            "cvta" => self.address_of(&name, operands)?,
            "bfe" => self.field(&name, operands)?,
            "bfi" | "cnot" => self.computed(operands)?,
            // The carry is a register more.
            "addc" | "subc" | "madc" => self.with_carry(&name, operands)?,
            "ld" | "ldu" => self.load(&name, operands)?,
            "st" => self.store(&name, operands)?,
            "atom" => self.atomic(&name, operands)?,
            "red" => self.reduce(&name, operands)?,
            "cp" => self.copy_to_shared(&name, operands)?,
            // Only of a block's memory.
            "ldmatrix" | "movmatrix" => self.computed(operands)?,
            "stmatrix" => self.store_matrix(operands)?,
            "wmma" if name.has("mma") => self.computed(operands)?,
            "wmma"
                if name.has("load") && name.parts.iter().any(|part| part.starts_with("shared")) =>
            {
                self.computed(operands)?
            }
            "bar" | "barrier" if name.has("red") => self.computed(operands)?,
            "bar" | "barrier" => {}
            "mbarrier" if !matches!(operands.first(), Some(parse::Operand::Name(_))) => {}
            "mbarrier" => self.computed(operands)?,
            // Its name is that of machine code.
            "membar" | "fence" => drop(self.emit(Operation::Other("MEMBAR"), None, Vec::new())),
            base if WITHOUT_RESULT.contains(&base) => {}
            base if COMPUTED.contains(&base) => self.computed(operands)?,
            _ => return Err(PtxError::Instruction(self.line)),
        }
        Ok(())
    }

    pub(super) fn written(&mut self, operand: &parse::Operand<'a>) -> Result<Written, PtxError> {
        match operand {
            parse::Operand::Name("_") => Ok(Written::Nothing),
            parse::Operand::Name(name) => match self.named(name)? {
                Some(Named::Register(bits, first)) => Ok(Written::Register(bits, first)),
                Some(Named::Predicate(index)) => Ok(Written::Predicate(index)),
                _ => self.operands(),
            },
            _ => self.operands(),
        }
    }

    /// All registers of 32 bits, and predicates, that an operand names.
    pub(super) fn named_in(
        &mut self,
        operand: &parse::Operand<'a>,
        registers: &mut Vec<Source>,
        predicates: &mut Vec<Predicate>,
    ) -> Done {
        use parse::Operand::{Address, Both, List, Name, Not, Place, Vector};
        match operand {
            Vector(all) | List(all) => {
                for one in all {
                    self.named_in(one, registers, predicates)?;
                }
            }
            Both(one, two) => {
                self.named_in(&Name(one), registers, predicates)?;
                self.named_in(&Name(two), registers, predicates)?;
            }
            Name("_" | "WARP_SZ") => {}
            Not(name) | Name(name) | Address(Some(name), _) | Place(name, _) => {
                match self.named(name)? {
                    Some(Named::Register(bits, first)) => {
                        let last = if bits == 64 { first + 1 } else { first };
                        registers
                            .extend((first..=last).map(|one| {
                                Source::from(Operand::Register(Register::General(one)))
                            }));
                    }
                    Some(Named::Predicate(index)) => {
                        predicates.push(Predicate { index: Some(index), ..ALWAYS });
                    }
                    // An address of the module's.
                    Some(Named::Variable(_)) => {
                        let first = self.variable_address()?;
                        registers
                            .extend([first, first + 1].map(|one| {
                                Source::from(Operand::Register(Register::General(one)))
                            }));
                    }
                    Some(_) => return self.operands(),
                    None if name.starts_with('%') => {}
                    None => return self.operands(),
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The first operand is written, by the others.
    pub(super) fn computed(&mut self, operands: &Operands<'a>) -> Done {
        let Some((first, rest)) = operands.split_first() else { return self.operands() };
        self.computed_from(first, rest, &[])
    }

    pub(super) fn computed_from(
        &mut self,
        to: &parse::Operand<'a>,
        from: &Operands<'a>,
        more: &[u16],
    ) -> Done {
        let (mut sources, mut predicates) = (Vec::new(), Vec::new());
        for operand in from {
            self.named_in(operand, &mut sources, &mut predicates)?;
        }
        let register = |one: &u16| Source::from(Operand::Register(Register::General(*one)));
        sources.extend(more.iter().map(register));
        let all = match to {
            parse::Operand::Vector(all) => all.clone(),
            parse::Operand::Both(one, two) => {
                vec![parse::Operand::Name(one), parse::Operand::Name(two)]
            }
            other => vec![other.clone()],
        };
        // What is written first may be read for the others.
        if all.len() > 1 {
            for source in &mut sources {
                let copy = vec![Source::from(source.operand)];
                let copy = self.temporary(false, Operation::Move { wide: false }, copy)?;
                source.operand = Operand::Register(Register::General(copy));
            }
        }
        for one in &all {
            match self.written(one)? {
                Written::Nothing => {}
                Written::Register(bits, first) => {
                    let count = if bits == 64 { 2 } else { 1 };
                    let one = self.emit(Operation::Computed, Some((first, count)), sources.clone());
                    one.predicates_read.clone_from(&predicates);
                }
                Written::Predicate(index) => {
                    let one = self.emit(Operation::Computed, None, sources.clone());
                    one.predicates_read.clone_from(&predicates);
                    one.predicates_written = vec![Predicate { index: Some(index), ..ALWAYS }];
                }
            }
        }
        Ok(())
    }

    /// Additions in parts: the carry depends on all that was added.
    pub(super) fn with_carry(&mut self, name: &Name<'a>, operands: &Operands<'a>) -> Done {
        let Some((to, from)) = operands.split_first() else { return self.operands() };
        let carry = match self.carry {
            Some(carry) => carry,
            None => self.fresh(false)?,
        };
        self.carry = Some(carry);
        let reads: &[u16] = if name.base.ends_with('c') { &[carry] } else { &[] };
        if name.has("cc") {
            let (mut sources, mut predicates) = (Vec::new(), Vec::new());
            for operand in from {
                self.named_in(operand, &mut sources, &mut predicates)?;
            }
            let register = |one: &u16| Source::from(Operand::Register(Register::General(*one)));
            sources.extend(reads.iter().map(register));
            self.emit(Operation::Computed, Some((carry, 1)), sources);
        }
        // What is in the carry now has flowed there from all that was in it before.
        self.computed_from(to, from, reads)
    }

    /// Writes a register of this width.
    pub(super) fn target(
        &mut self,
        operand: &parse::Operand<'a>,
        bits: u32,
    ) -> Result<(u16, u8), PtxError> {
        match self.written(operand)? {
            Written::Register(own, first) if (own == 64) == (bits == 64) => {
                Ok((first, if own == 64 { 2 } else { 1 }))
            }
            Written::Nothing => Ok((self.fresh(bits == 64)?, if bits == 64 { 2 } else { 1 })),
            _ => self.operands(),
        }
    }

    /// A source of an integer instruction: of one with 16 bits those above may be any.
    pub(super) fn number(
        &mut self,
        operand: &parse::Operand<'a>,
        bits: u32,
    ) -> Result<Operand, PtxError> {
        if bits == 64 { self.wide(operand) } else { self.value(operand) }
    }

    /// The number of so many bits as one of 32.
    pub(super) fn extend(
        &mut self,
        operand: Operand,
        bits: u32,
        signed: bool,
    ) -> Result<Operand, PtxError> {
        if bits >= 32 {
            return Ok(operand);
        }
        let by = Operand::Immediate(32 - bits);
        let zero = Operand::Register(Register::Zero);
        let register = if signed {
            let left = self.temporary(false, shift(false), sources([operand, by, zero]))?;
            let left = Operand::Register(Register::General(left));
            let right = Operation::Shift {
                right: true,
                high: true,
                wide: false,
                signed: true,
                wrap: false,
            };
            self.temporary(false, right, sources([zero, by, left]))?
        } else {
            let mask = Operand::Immediate((1 << bits) - 1);
            self.temporary(false, Operation::Logic(0xc0), sources([operand, mask, zero]))?
        };
        Ok(Operand::Register(Register::General(register)))
    }

    /// The same of an operand.
    pub(super) fn extended(
        &mut self,
        operand: &parse::Operand<'a>,
        kind: Kind,
    ) -> Result<Operand, PtxError> {
        if kind.bits == 64 {
            return self.wide(operand);
        }
        let value = self.value(operand)?;
        self.extend(value, kind.bits, kind.signed())
    }
}

/// Whether the type is two numbers in one register.
fn kind_is_pair(name: &Name<'_>) -> bool {
    name.parts.iter().any(|part| part.ends_with("x2"))
}

pub(super) fn product(wide: bool, high: bool, signed: bool, carry: bool) -> Operation {
    Operation::MultiplyAdd { wide, high, signed, carry }
}

/// To the left, or to the right without a sign, of 32 bits.
pub(super) fn shift(right: bool) -> Operation {
    Operation::Shift { right, high: right, wide: false, signed: false, wrap: false }
}

pub(super) fn sources<const N: usize>(operands: [Operand; N]) -> Vec<Source> {
    operands.map(Source::from).to_vec()
}
