//! Instructions of the machine code that kernels consist of, as far as addresses and accesses need
//! them.
//!
//! Known are the architectures of [`ARCHITECTURES`]. What an instruction does not tell of a value,
//! such as a rounding, is not here: an instruction that computes no address is an
//! [`Operation::Other`], of which only the registers matter that it writes. One that this version
//! does not know is [`Operation::Unknown`]: it may write any register and access any memory.
//!
//! Each instruction of a corpus has been compared with NVIDIA's disassembler.

mod access;
mod bits;
mod compute;
mod display;
mod names;

use std::fmt;

pub use access::{Access, AccessKind, Address, Space};
use bits::Bits;

/// The architectures whose instructions are known.
pub const ARCHITECTURES: [u32; 7] = [80, 86, 89, 90, 100, 103, 120];

/// The bytes of an instruction.
pub const INSTRUCTION: usize = 16;

/// Why code is not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// The code is for an architecture that is not among [`ARCHITECTURES`].
    UnknownArchitecture(u32),
    /// The code's length is no multiple of an instruction's.
    Incomplete,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::UnknownArchitecture(number) => {
                write!(f, "the instructions of sm_{number} are not known")
            }
            DecodeError::Incomplete => f.write_str("the code ends within an instruction"),
        }
    }
}

impl std::error::Error for DecodeError {}

/// A 32-bit register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Register {
    /// Each thread has its own.
    General(u16),
    /// The threads of a warp share it.
    Uniform(u16),
    /// Always zero. What is written to it is lost.
    Zero,
}

/// A truth value that guards an instruction, or that it reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Predicate {
    /// Its number, or `None` for the one that is always true, to which writes are lost.
    pub index: Option<u16>,
    /// Whether the threads of a warp share it.
    pub uniform: bool,
    /// Whether its opposite counts.
    pub negated: bool,
}

impl Predicate {
    fn new(number: u64, uniform: bool, negated: bool) -> Self {
        Self { index: (number < 7).then_some(number as u16), uniform, negated }
    }

    /// Whether it always holds.
    pub fn is_true(&self) -> bool {
        self.index.is_none() && !self.negated
    }
}

/// What an instruction reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operand {
    /// A register, or the first of a pair.
    Register(Register),
    /// A number in the instruction.
    Immediate(u32),
    /// A word of a constant bank; the parameters are in bank 0.
    Constant {
        /// The bank's number.
        bank: u8,
        /// Where the word is, without `index`.
        offset: u16,
        /// What is added to `offset`.
        index: Register,
    },
    /// Something else, of which nothing is known.
    Unknown,
}

/// An [`Operand`] with what is done to it first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Source {
    /// What is read.
    pub operand: Operand,
    /// Its negative is used; for an instruction that continues another's addition, its complement.
    pub negated: bool,
}

/// How two numbers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Comparison {
    Never,
    Less,
    Equal,
    LessOrEqual,
    Greater,
    NotEqual,
    GreaterOrEqual,
    Always,
}

/// How a result is joined with a predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Junction {
    And,
    Or,
    Xor,
}

/// What an instruction does with its [`sources`](Instruction::sources), in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// The source.
    Move {
        /// Of 64 bits.
        wide: bool,
    },
    /// A special register, by its number.
    Special(u8),
    /// A constant word, or the first of two or four.
    LoadConstant {
        /// How many bytes.
        bytes: u8,
        /// Whether a value of less than four bytes keeps its sign.
        signed: bool,
    },
    /// The product of the first two and the sum with the third.
    MultiplyAdd {
        /// The result is 64 bits wide, and so is the third source.
        wide: bool,
        /// The result is the upper half of that sum.
        high: bool,
        /// The factors are signed.
        signed: bool,
        /// The carry of another instruction is added.
        carry: bool,
    },
    /// The sum of two or three.
    Add {
        /// Of 64 bits.
        wide: bool,
        /// The carries of another instruction are added.
        carry: bool,
    },
    /// The first, shifted left, and the sum with the second.
    ShiftAdd {
        /// By how many bits.
        shift: u8,
        /// The upper half of 64 bits, whose upper half before the shift is the third source.
        high: bool,
        /// That upper half is the sign of the first source.
        extended: bool,
        /// The carry of another instruction is added.
        carry: bool,
    },
    /// The first and the third source as 64 bits, shifted by the second.
    Shift {
        /// To the right.
        right: bool,
        /// The result is the upper half.
        high: bool,
        /// What is shifted has 64 bits.
        wide: bool,
        /// The sign moves in from the left.
        signed: bool,
        /// Of the amount only the lower bits count.
        wrap: bool,
    },
    /// Each bit by a table of eight, whose index is a bit of each source.
    Logic(u8),
    /// The first if the first predicate holds, otherwise the second.
    Select {
        /// Of 64 bits.
        wide: bool,
    },
    /// The lesser of two if the first predicate holds, otherwise the greater.
    Minimum {
        /// The numbers are signed.
        signed: bool,
        /// Of 64 bits.
        wide: bool,
    },
    /// The lesser of the third and the sum of the first two if the first predicate holds, otherwise
    /// the greater.
    MinimumOfSum {
        /// The numbers are signed. The sum has 32 bits.
        signed: bool,
    },
    /// The first predicate written is the comparison of the two sources, joined with the first that
    /// is read, and the second is that of the opposite.
    Compare {
        /// How they are compared.
        comparison: Comparison,
        /// The numbers are signed.
        signed: bool,
        /// How it is joined.
        junction: Junction,
        /// The numbers have 64 bits.
        wide: bool,
        /// These are the upper halves, and the second predicate read is the comparison of the lower.
        high: bool,
    },
    /// Each byte is one of those of the first and the third source, by four bits of the second: of these
    /// three are the byte's number, and with the highest the byte's sign stands for all of its bits.
    Permute,
    /// Each predicate written by a table of eight, whose index is the three that are read.
    PredicateLogic([u8; 2]),
    /// The absolute value of a signed number.
    Absolute,
    /// The bits in the opposite order: the lowest is the highest.
    ReverseBits,
    /// How many bits are set.
    CountBits,
    /// The number of the highest bit that is set, and all ones if none is.
    HighestBit {
        /// Of a negative number the highest one that is not.
        signed: bool,
        /// The bits are counted from the highest one on.
        from_top: bool,
    },
    /// Two halves of 16 bits, as constants: a way to write a number.
    Halves,
    /// A number of which only this is known: it depends on nothing but the sources, exactly these
    /// registers, and all of the destination is written. Not in machine code.
    Computed,
    /// The lower half of the product of two numbers of 64 bits. In PTX only.
    MultiplyLong,
    /// The first divided by the second, towards zero. In machine code it stands for the product by
    /// which the compiler divides, and is in [`Code`](crate::code::Code) only.
    Divide {
        /// The numbers are signed.
        signed: bool,
        /// Of 64 bits.
        wide: bool,
        /// The result is the remainder.
        remainder: bool,
    },
    /// Memory is accessed.
    Access(Access),
    /// To [`target`](Instruction::target), if the guard and the predicates read hold.
    Branch {
        /// Whether it is taken depends on other threads also.
        divergent: bool,
    },
    /// To a place that was computed.
    BranchIndirect,
    /// The thread ends, if the guard and the predicate read hold.
    Exit,
    /// A function at [`target`](Instruction::target), or at an unknown place if there is none.
    Call,
    /// Back from a function.
    Return,
    /// The threads that run here meet again at [`target`](Instruction::target).
    SetConvergence(u8),
    /// Waits for the threads of a [`SetConvergence`](Operation::SetConvergence), and goes on there.
    Converge(u8),
    /// The destination becomes what says which threads meet by a
    /// [`SetConvergence`](Operation::SetConvergence), for a function that has its own.
    SaveConvergence {
        /// Its number.
        number: u8,
        /// No threads meet by the number after that.
        clears: bool,
    },
    /// The threads of the source, to which they were saved, meet by this number again.
    RestoreConvergence(u8),
    /// Computes what is of no use in an address, or waits. Its name is NVIDIA's, with the mode of those
    /// that divisions are made of.
    Other(&'static str),
    /// Not known.
    Unknown,
}

/// One instruction.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Instruction {
    /// Nothing of it happens where this does not hold.
    pub guard: Predicate,
    /// What it does.
    pub operation: Operation,
    /// The first register that it writes, and how many after each other at most.
    pub destination: Option<(Register, u8)>,
    /// What it reads. Of an [`Operation::Other`] it may be more than it reads, and each register may be
    /// the first of up to four.
    pub sources: Vec<Source>,
    /// The predicates that it writes.
    pub predicates_written: Vec<Predicate>,
    /// The predicates that it reads besides the guard.
    pub predicates_read: Vec<Predicate>,
    /// Where it may go, in bytes from the start of the code.
    pub target: Option<i64>,
}

/// The instructions of a kernel's code, in their order.
///
/// # Errors
///
/// When the architecture is not among [`ARCHITECTURES`], or the code is cut off.
pub fn decode(architecture: u32, code: &[u8]) -> Result<Vec<Instruction>, DecodeError> {
    if !ARCHITECTURES.contains(&architecture) {
        return Err(DecodeError::UnknownArchitecture(architecture));
    }
    let (words, []) = code.as_chunks::<INSTRUCTION>() else { return Err(DecodeError::Incomplete) };
    Ok(words
        .iter()
        .enumerate()
        .map(|(index, word)| {
            one(Bits::new(architecture, u128::from_le_bytes(*word)), (index * INSTRUCTION) as i64)
        })
        .collect())
}

fn one(bits: Bits, at: i64) -> Instruction {
    let mut instruction = Instruction {
        guard: bits.guard(),
        operation: Operation::Unknown,
        destination: None,
        sources: Vec::new(),
        predicates_written: Vec::new(),
        predicates_read: Vec::new(),
        target: None,
    };
    let known = compute::decode(bits, &mut instruction)
        || access::decode(bits, &mut instruction)
        || access::described(bits, &mut instruction)
        || names::flow(bits, at, &mut instruction)
        || names::other(bits, &mut instruction);
    if !known {
        instruction = Instruction {
            guard: bits.guard(),
            operation: Operation::Unknown,
            destination: None,
            sources: Vec::new(),
            predicates_written: Vec::new(),
            predicates_read: Vec::new(),
            target: None,
        };
    }
    instruction
}
