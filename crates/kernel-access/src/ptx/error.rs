//! Why PTX is not understood.

use std::fmt;

/// The end of a step that may meet text that is not understood.
pub(super) type Done = Result<(), PtxError>;

/// Why PTX cannot be read, or what its kernel touches is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PtxError {
    /// The text is damaged in this line, or has a form that is not read.
    Damaged(u32),
    /// It is longer than [`MAX_TEXT`](super::MAX_TEXT), or a kernel has more instructions or registers than are read.
    TooLarge,
    /// Addresses have 32 bits.
    Narrow,
    /// There is no kernel of this name, or its code is not in the text.
    NoKernel,
    /// The instruction in this line is not known.
    Instruction(u32),
    /// The operands of the instruction in this line are not understood.
    Operands(u32),
    /// The instruction in this line calls a function that is not in the text.
    Call(u32),
    /// The instruction in this line takes the address of the kernel's parameters.
    Address(u32),
}

impl fmt::Display for PtxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PtxError::Damaged(line) => write!(f, "PTX is not understood in line {line}"),
            PtxError::TooLarge => f.write_str("the PTX is too large"),
            PtxError::Narrow => f.write_str("PTX with addresses of 32 bits is not read"),
            PtxError::NoKernel => f.write_str("the PTX has no kernel of this name"),
            PtxError::Instruction(line) => {
                write!(f, "the PTX instruction in line {line} is not known")
            }
            PtxError::Operands(line) => {
                write!(f, "the operands of the PTX instruction in line {line} are not understood")
            }
            PtxError::Call(line) => write!(f, "the call in line {line} goes to another function"),
            PtxError::Address(line) => {
                write!(f, "the PTX takes the address of the parameters in line {line}")
            }
        }
    }
}

impl std::error::Error for PtxError {}
