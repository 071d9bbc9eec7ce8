//! Calls of functions that are not in the code, by what the image says of their addresses.

use crate::container::{Kernel, Symbol};
use crate::decode::{
    Access, AccessKind, DecodeError, INSTRUCTION, Instruction, Operand, Operation, Register,
    Source, Space, decode,
};
use crate::instruction::after;

/// The constant bank in which the compiler keeps addresses that the driver fills in.
const ADDRESSES: u8 = 4;

/// Where a function has its first parameters and its result.
const FIRST: Register = Register::General(4);

/// The instructions of a kernel. In the place of a call of a function of the driver is what it does: a
/// thread that calls one that never returns ends there, and the others leave all registers but those of
/// their result to the caller. What they change besides is never read after the call, as the compiler
/// does not know more of them. They work on memory of the driver.
pub(crate) fn instructions(
    architecture: u32,
    kernel: &Kernel<'_>,
) -> Result<Vec<Instruction>, DecodeError> {
    let mut code = decode(architecture, kernel.code)?;
    for (number, place) in (0..=u16::MAX).cycle().zip(&kernel.filled_in) {
        let index = usize::try_from(place / INSTRUCTION as u64).ok();
        if let Some(one) = index.and_then(|index| code.get_mut(index)) {
            fill_in(one, number);
        }
    }
    if kernel.symbols.is_empty() {
        return Ok(code);
    }
    // What is behind a call without return is never reached, or by another way: such a call there may
    // use what was loaded before.
    loop {
        let begins = begins(&code, kernel);
        let replaced: Vec<(usize, Replaced)> = (0..code.len())
            .filter_map(|at| {
                let place = address(&code, &begins, at)?;
                Some((at, replaced(&code, &begins, at, kernel, place)?))
            })
            .collect();
        if replaced.is_empty() {
            return Ok(code);
        }
        for (at, (operation, destination)) in replaced {
            if let Some(call) = code.get_mut(at) {
                (call.operation, call.destination) = (operation, destination);
                call.sources.clear();
            }
        }
    }
}

/// A bank that no code has, for what the driver puts into an instruction: nothing is known of what is there.
const FILLED_IN: u8 = u8::MAX;

/// The driver puts a part of an address into the instruction: the number that the file has there is none.
fn fill_in(one: &mut Instruction, number: u16) {
    let mut is_number = false;
    for source in &mut one.sources {
        if matches!(source.operand, Operand::Immediate(_)) {
            // Each is another one.
            source.operand =
                Operand::Constant { bank: FILLED_IN, offset: number, index: Register::Zero };
            is_number = true;
        }
    }
    if !is_number || matches!(one.operation, Operation::Access(_)) {
        one.operation = Operation::Unknown;
    }
}

/// What is in the place of a call: what it does, and the registers of its result.
type Replaced = (Operation, Option<(Register, u8)>);

/// What a call of the function with this place does.
fn replaced(
    code: &[Instruction],
    begins: &[bool],
    at: usize,
    kernel: &Kernel<'_>,
    place: u32,
) -> Option<Replaced> {
    let function = symbol(kernel, place).filter(|function| !function.is_inside)?;
    Some(match function.name {
        _ if kernel.never_return.contains(&place) => (Operation::Exit, None),
        // Of a text among its arguments the address is there only.
        "vprintf" if !is_plain_format(code, begins, at, kernel) => {
            (Operation::Access(driver_reads()), Some((FIRST, 1)))
        }
        "vprintf" => (Operation::Other("vprintf"), Some((FIRST, 1))),
        "malloc" => (Operation::Other("malloc"), Some((FIRST, 2))),
        "free" => (Operation::Other("free"), None),
        _ => return None,
    })
}

/// A function of the driver reads what an address leads to that it is given, and nobody says which one.
pub(crate) fn driver_reads() -> Access {
    let (kind, space) = (AccessKind::Read, Space::Generic);
    Access { kind, space, bytes: 16, count: None, address: None, strong: false, signed: false }
}

/// The symbol that a place of the bank of addresses is about.
pub(crate) fn symbol<'a>(kernel: &Kernel<'a>, place: u32) -> Option<Symbol<'a>> {
    let mut found = kernel.symbols.iter().filter(|(of, _)| *of == place);
    let (_, symbol) = found.next()?;
    found.next().is_none().then_some(*symbol)
}

/// Whether what is printed there are numbers, by a text of the compiler's, which nobody changes.
fn is_plain_format(code: &[Instruction], begins: &[bool], at: usize, kernel: &Kernel<'_>) -> bool {
    let half = |register| copied_from(code, begins, at, register);
    let (Some(place), Some(upper)) = (half(FIRST), half(after(FIRST))) else { return false };
    let text = symbol(kernel, place).filter(|of| of.is_inside && of.name.starts_with("$str"));
    let text = text.and_then(|of| of.bytes).and_then(|bytes| bytes.split(|byte| *byte == 0).next());
    place.checked_add(4) == Some(upper) && text.is_some_and(prints_numbers)
}

/// Whether each conversion of the format is of a number.
pub(crate) fn prints_numbers(format: &[u8]) -> bool {
    let mut rest = format.iter();
    while rest.any(|byte| *byte == b'%') {
        let is_modifier = |byte: &&u8| b"-+ #0123456789.*hlLjztq".contains(byte);
        match rest.find(|byte| !is_modifier(byte)) {
            Some(kind) if b"diouxXfFeEgGaAcp%".contains(kind) => {}
            _ => return false,
        }
    }
    true
}

/// Where in the bank of addresses the register's value was loaded from.
fn copied_from(
    code: &[Instruction],
    begins: &[bool],
    mut at: usize,
    mut register: Register,
) -> Option<u32> {
    loop {
        let (place, one, part) = written(code, begins, at, register, 1)?;
        at = place;
        let [first, second, third] = [0, 1, 2].map(|at| one.sources.get(at));
        let is_zero = |source: Option<&Source>| {
            source.is_some_and(|of| of.operand == Operand::Register(Register::Zero))
        };
        let source = match one.operation {
            Operation::Move { .. }
                if one.predicates_written.iter().all(|written| written.index.is_none()) =>
            {
                first
            }
            Operation::LoadConstant { bytes: 8, .. } => first,
            Operation::MultiplyAdd { wide: false, high: false, carry: false, .. }
                if is_zero(first) && is_zero(second) =>
            {
                third
            }
            _ => None,
        };
        let source = source.filter(|source| !source.negated)?;
        match source.operand {
            Operand::Constant { bank: ADDRESSES, offset, index: Register::Zero } => {
                return u32::from(offset).checked_add(4 * u32::from(part));
            }
            Operand::Register(from) => {
                register = (0..part).fold(from, |register, _| after(register));
            }
            _ => return None,
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
    let (at, load, 0) = written(code, begins, at, called, 2)? else { return None };
    let Operation::LoadConstant { bytes: 8, .. } = load.operation else { return None };
    let Some(Operand::Constant { bank: ADDRESSES, offset, index }) =
        load.sources.first().map(|source| source.operand)
    else {
        return None;
    };
    if index == Register::Zero {
        return Some(offset.into());
    }
    let (_, number, 0) = written(code, begins, at, index, 1)? else { return None };
    match (number.operation, number.sources.first()?.operand) {
        (Operation::Move { wide: false }, Operand::Immediate(number)) => {
            number.checked_add(offset.into())
        }
        _ => None,
    }
}

/// The instruction that wrote `count` registers as a thread has them at an instruction, and which of its
/// registers they begin with: the last one before it that writes any of them must write all, whatever its
/// guard is, on the only way there.
fn written<'a>(
    code: &'a [Instruction],
    begins: &[bool],
    mut at: usize,
    register: Register,
    count: u8,
) -> Option<(usize, &'a Instruction, u8)> {
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
        let part = wanted.1.checked_sub(range.1).and_then(|part| u8::try_from(part).ok())?;
        let is_all = part + count <= written && one.guard.is_true();
        return is_all.then_some((at, one, part));
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
