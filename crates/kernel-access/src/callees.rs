//! Calls of functions that are not in the code, by what the image says of their addresses.

use crate::container::Kernel;
use crate::decode::{DecodeError, INSTRUCTION, Instruction, Operand, Operation, Register, decode};

/// The constant bank in which the compiler keeps addresses that the driver fills in.
const ADDRESSES: u8 = 4;

/// The instructions of a kernel. A call of a function that never returns is where the thread ends.
pub(crate) fn instructions(
    architecture: u32,
    kernel: &Kernel<'_>,
) -> Result<Vec<Instruction>, DecodeError> {
    let mut code = decode(architecture, kernel.code)?;
    if kernel.never_return.is_empty() {
        return Ok(code);
    }
    // What is behind a call without return is never reached, or by another way: such a call there may
    // use what was loaded before.
    loop {
        let begins = begins(&code, kernel);
        let ends: Vec<usize> = (0..code.len())
            .filter(|&at| {
                address(&code, &begins, at).is_some_and(|at| kernel.never_return.contains(&at))
            })
            .collect();
        if ends.is_empty() {
            return Ok(code);
        }
        for at in ends {
            if let Some(call) = code.get_mut(at) {
                call.operation = Operation::Exit;
                call.sources.clear();
            }
        }
    }
}

/// Whether a thread may come to each instruction from another one than that before it.
///
/// A branch to a computed place of which the image does not say where that may be could go anywhere,
/// but then there is no [`Graph`](crate::flow::Graph).
fn begins(code: &[Instruction], kernel: &Kernel<'_>) -> Vec<bool> {
    let mut begins = vec![false; code.len()];
    for &place in kernel.indirect_branches.iter().flat_map(|(_, places)| places) {
        if let Some(begin) = begins.get_mut(place as usize / INSTRUCTION) {
            *begin = true;
        }
    }
    for (at, one) in code.iter().enumerate() {
        let target = one.target.and_then(|target| usize::try_from(target).ok());
        // What is behind a call is where it returns to.
        let after = matches!(one.operation, Operation::Call).then_some(at + 1);
        for place in target.map(|target| target / INSTRUCTION).into_iter().chain(after) {
            if let Some(begin) = begins.get_mut(place) {
                *begin = true;
            }
        }
    }
    begins
}

/// Where in the bank of addresses that of the function is which the instruction calls.
fn address(code: &[Instruction], begins: &[bool], at: usize) -> Option<u32> {
    let call = code.get(at).filter(|call| matches!(call.operation, Operation::Call))?;
    let Some(Operand::Register(called)) = call.sources.first().map(|source| source.operand) else {
        return None;
    };
    let (at, load) = written(code, begins, at, called, 2)?;
    let Operation::LoadConstant { bytes: 8, .. } = load.operation else { return None };
    let Some(Operand::Constant { bank: ADDRESSES, offset, index }) =
        load.sources.first().map(|source| source.operand)
    else {
        return None;
    };
    if index == Register::Zero {
        return Some(offset.into());
    }
    let (_, number) = written(code, begins, at, index, 1)?;
    match (number.operation, number.sources.first()?.operand) {
        (Operation::Move { wide: false }, Operand::Immediate(number)) => {
            number.checked_add(offset.into())
        }
        _ => None,
    }
}

/// The instruction that wrote `count` registers as a thread has them at an instruction: the last one
/// before it that writes any of them must write all, whatever its guard is, on the only way there.
fn written<'a>(
    code: &'a [Instruction],
    begins: &[bool],
    mut at: usize,
    register: Register,
    count: u8,
) -> Option<(usize, &'a Instruction)> {
    let wanted = range(register, count)?;
    loop {
        if begins.get(at).copied().unwrap_or(true) {
            return None;
        }
        at = at.checked_sub(1)?;
        let one = code.get(at)?;
        if matches!(one.operation, Operation::Unknown) {
            return None;
        }
        let Some((first, written)) = one.destination else { continue };
        let Some(range) = range(first, written) else { continue };
        if range.0 != wanted.0 || range.1 + range.2 <= wanted.1 || wanted.1 + wanted.2 <= range.1 {
            continue;
        }
        return (range == wanted && one.guard.is_true()).then_some((at, one));
    }
}

/// Whether a warp shares them, the first and their count.
fn range(first: Register, count: u8) -> Option<(bool, usize, usize)> {
    match first {
        Register::General(first) => Some((false, first.into(), count.into())),
        Register::Uniform(first) => Some((true, first.into(), count.into())),
        Register::Zero => None,
    }
}
