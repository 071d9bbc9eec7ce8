//! Which bytes of its parameters a kernel reads at all.

use std::fmt;
use std::ops::Range;

use crate::callees;
use crate::container::Kernel;
use crate::decode::{AccessKind, DecodeError, Instruction, Operand, Operation, Register};

/// Why it is not known which parameters a kernel reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unread {
    /// The code cannot be decoded.
    Code(DecodeError),
    /// The image does not say where the parameters are.
    NoParameters,
    /// The instruction at this offset is not known.
    Instruction(usize),
    /// The instruction at this offset accesses memory in a way that does not follow from it alone,
    /// as a tensor map among the parameters can say where.
    Description(usize),
    /// The instruction at this offset calls a function whose code may read parameters, too.
    Call(usize),
    /// The instruction at this offset reads a constant that may be the address of the parameters.
    Address(usize),
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unread::Code(error) => error.fmt(f),
            Unread::NoParameters => f.write_str("the image does not say where the parameters are"),
            Unread::Instruction(at) => write!(f, "the instruction at {at:#x} is not known"),
            Unread::Description(at) => write!(f, "the access at {at:#x} is described in memory"),
            Unread::Call(at) => write!(f, "the call at {at:#x} goes to another function"),
            Unread::Address(at) => {
                write!(f, "the constant read at {at:#x} may be the parameters' address")
            }
        }
    }
}

impl std::error::Error for Unread {}

/// The bytes of the parameters that some instruction of the kernel reads, in order and apart.
///
/// It is a bound: each byte outside of it is never read, so an address that lies there is never
/// used, whichever way the kernel goes. A byte inside may still have no effect. A parameter that is
/// chosen by a computed index, or by the address that all parameters have together, makes all
/// parameters count as read.
///
/// # Errors
///
/// When an instruction could read parameters in a way that is not seen: then nothing is known.
pub fn bytes_read(architecture: u32, kernel: &Kernel<'_>) -> Result<Vec<Range<u32>>, Unread> {
    let bank = kernel.parameter_bank.ok_or(Unread::NoParameters)?;
    let instructions = callees::instructions(architecture, kernel).map_err(Unread::Code)?;
    bytes_read_by(architecture, bank, &instructions)
}

pub(crate) fn bytes_read_by(
    architecture: u32,
    (base, size): (u32, u32),
    instructions: &[Instruction],
) -> Result<Vec<Range<u32>>, Unread> {
    let end = (instructions.len() * crate::decode::INSTRUCTION) as i64;
    let mut read = vec![false; size as usize];
    for (index, instruction) in instructions.iter().enumerate() {
        let at = index * crate::decode::INSTRUCTION;
        match instruction.operation {
            Operation::Unknown => return Err(Unread::Instruction(at)),
            Operation::Access(access) if access.kind == AccessKind::Unknown => {
                return Err(Unread::Description(at));
            }
            // A call within the code is to what is decoded here, too.
            Operation::Call
                if !instruction.target.is_some_and(|target| (0..end).contains(&target)) =>
            {
                return Err(Unread::Call(at));
            }
            _ => {}
        }
        for source in &instruction.sources {
            match source.operand {
                Operand::Constant { bank: 0, offset, index } => {
                    let offset = u32::from(offset);
                    let behind = offset + bytes_of(instruction) as u32;
                    let mut before = (offset..behind.min(base)).step_by(4);
                    let is_address = |word| address_half(architecture, word).is_some();
                    if index != Register::Zero || before.clone().any(is_address) {
                        read.fill(true);
                    }
                    if index != Register::Zero {
                        continue;
                    }
                    if !before
                        .all(|word| is_address(word) || is_launch_constant(architecture, word))
                    {
                        return Err(Unread::Address(at));
                    }
                    let [first, behind] =
                        [offset, behind].map(|at| read.len().min(at.saturating_sub(base) as usize));
                    read.get_mut(first..behind).unwrap_or_default().fill(true);
                }
                Operand::Unknown => return Err(Unread::Address(at)),
                _ => {}
            }
        }
    }
    let mut ranges: Vec<Range<u32>> = Vec::new();
    for (byte, _) in (0..).zip(&read).filter(|(_, read)| **read) {
        match ranges.last_mut() {
            Some(last) if last.end == byte => last.end += 1,
            _ => ranges.push(byte..byte + 1),
        }
    }
    Ok(ranges)
}

/// How many bytes of a constant the instruction reads at most.
fn bytes_of(instruction: &Instruction) -> usize {
    match instruction.operation {
        Operation::LoadConstant { bytes, .. } => usize::from(bytes),
        Operation::MultiplyAdd { wide: true, .. }
        | Operation::MultiplyAdd { high: true, .. }
        | Operation::Add { wide: true, .. }
        | Operation::Move { wide: true }
        | Operation::Select { wide: true }
        | Operation::Minimum { wide: true, .. }
        | Operation::Compare { wide: true, .. } => 8,
        // Some of these read a number of 64 bits.
        Operation::Other(_) => 8,
        _ => 4,
    }
}

/// Whose address among all addresses a constant is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    Parameters,
    /// That of the bank that they are in.
    Bank,
}

/// Which half of the parameters' address, or of their bank's, the word is, if it is one: 0 or 4. `ptxas`
/// reads the bank's before `sm_90` only; on that, kernels of cuBLASLt have tensor maps at places from
/// there on (as the launches on a card say).
pub(crate) fn address_half(architecture: u32, offset: u32) -> Option<(u32, Whose)> {
    let all: &[(u32, Whose)] = match architecture {
        80..90 => &[(0x40, Whose::Bank)],
        90 => &[(0xc0, Whose::Bank), (0x198, Whose::Parameters)],
        _ => &[(0x348, Whose::Parameters)],
    };
    all.iter().find_map(|&(first, whose)| {
        let half = offset.checked_sub(first).filter(|half| matches!(half, 0 | 4))?;
        Some((half, whose))
    })
}

/// Which half the word is, 0 or 4, of the address of what the driver has for the blocks of a cooperative
/// launch, which meet there: `%envreg2`, and above it `%envreg1`.
pub(crate) fn meeting_half(architecture: u32, offset: u32) -> Option<u32> {
    let upper = match architecture {
        80..90 => 0x8c,
        90 => 0x44,
        _ => return None,
    };
    match offset.checked_sub(upper)? {
        0 => Some(4),
        4 => Some(0),
        _ => None,
    }
}

/// What a constant says of a launch's clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cluster {
    /// How many blocks one has along an axis: `%cluster_nctaid`.
    Size(usize),
    /// How many there are along an axis: `%nclusterid`.
    Count(usize),
    /// How many blocks one has: `%cluster_nctarank`.
    Blocks,
    /// Whether they were asked for, how much shared memory all of one have, or a fraction by which the
    /// compiler divides by a size.
    Other,
}

/// What `ptxas` reads for these, before they are found by an index.
pub(crate) fn cluster(architecture: u32, offset: u32) -> Option<Cluster> {
    if architecture != 90 {
        return None;
    }
    let axis = |first: u32| (offset - first) as usize / 4;
    Some(match offset {
        0x13c | 0x140 | 0x150 | 0x154 | 0x158 => Cluster::Other,
        0x144 | 0x148 | 0x14c => Cluster::Size(axis(0x144)),
        0x15c | 0x160 | 0x164 => Cluster::Count(axis(0x15c)),
        0x188 => Cluster::Blocks,
        _ => return None,
    })
}

/// The word with the address of the stack in the memory of a thread.
pub(crate) fn stack(architecture: u32) -> u32 {
    if architecture < 100 { 0x28 } else { 0x37c }
}

/// Whether the word before the parameters is one of those that compilers read: the sizes of the
/// launch, the stack, where local memory is among all addresses, the descriptor of global memory, and
/// what PTX has as `%dynamic_smem_size`, `%total_smem_size`, `%gridid`, `%nsmid` and `%envreg` (the
/// memory by which a grid's blocks wait for each other is in two of them). Others may lead to the
/// parameters.
fn is_launch_constant(architecture: u32, offset: u32) -> bool {
    const SIZES: Range<u32> = 0..0x18;
    let descriptor = match architecture {
        80..90 => 0x118,
        90 => 0x208,
        _ => 0x358,
    };
    let (sizes, local) = if architecture < 100 { (SIZES, 0x20) } else { (0x360..0x37c, 0x2f8) };
    // The dynamic size and the grid's number are side by side at first.
    let (numbers, environment, words) = match architecture {
        80..90 => (0x2c..0x38, 0x88..0x108, [0x10c, 0x114]),
        90 => (0x2c..0x38, 0x40..0xc0, [0x10c, 0x114]),
        _ => (0x140..0x148, 0xd0..0x110, [0x16c, 0x2d0]),
    };
    let pairs = [local, descriptor].map(|first| first..first + 8);
    let ranges = [sizes, numbers, environment];
    ranges.iter().chain(&pairs).any(|range| range.contains(&offset))
        || words.contains(&offset)
        || offset.is_multiple_of(4) && cluster(architecture, offset).is_some()
        || offset == stack(architecture)
}
