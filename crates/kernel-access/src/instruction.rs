//! What instructions make of bits, and what else is asked of them wherever they are run.

use crate::decode::{Instruction, Operation, Predicate, Register, Space};

/// The number of the special register that is zero.
pub(crate) const ZERO: u8 = 0xff;

/// Whether the instruction goes where it goes in any case.
pub(crate) fn always(one: &Instruction) -> bool {
    one.guard.is_true() && one.predicates_read.iter().all(Predicate::is_true)
}

/// Whether it accesses global memory.
pub(crate) fn is_access(one: &Instruction) -> bool {
    matches!(one.operation, Operation::Access(access)
        if matches!(access.space, Space::Global | Space::Generic | Space::Tensor))
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

/// Instructions that read no more than one register at each place.
const SINGLES: [&str; 33] = [
    "USGXT",
    "UI2F.U32.RP",
    "I2F.U32.RP",
    "I2F.RP",
    "MUFU.RCP",
    "F2I.U32.TRUNC",
    "FSEL",
    "FSET",
    "IDP",
    "MATCH",
    "SGXT",
    "VIMNMX3",
    "FMNMX",
    "FMUL",
    "FADD",
    "FFMA",
    "HFMA2",
    "HADD2",
    "HMUL2",
    "F2FP",
    "F2IP",
    "I2FP",
    "VIADDMNMX",
    "PRMT",
    "BMSK",
    "FLO",
    "BREV",
    "POPC",
    "SHFL",
    "UPRMT",
    "UBMSK",
    "UFLO",
    "UPOPC",
];

/// How many registers an instruction reads at most from the one that a source names.
pub(crate) fn registers_of_a_source(operation: Operation) -> usize {
    match operation {
        Operation::Other(name) if SINGLES.contains(&name) => 1,
        Operation::Other("DADD" | "DMUL" | "DFMA" | "F2F" | "F2I" | "I2F") => 2,
        Operation::Other(_) => 4,
        // Each register is named.
        Operation::Computed
        | Operation::Shift { .. }
        | Operation::Logic(_)
        | Operation::Permute
        | Operation::Minimum { wide: false, .. }
        | Operation::MinimumOfSum { .. }
        | Operation::Compare { wide: false, .. }
        | Operation::Absolute
        | Operation::ReverseBits
        | Operation::CountBits
        | Operation::HighestBit { .. }
        | Operation::Move { wide: false }
        | Operation::Add { wide: false, .. }
        | Operation::Select { wide: false }
        | Operation::MultiplyAdd { wide: false, high: false, .. }
        | Operation::Divide { wide: false, .. } => 1,
        _ => 2,
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
pub(crate) fn shift(
    low: u32,
    by: u32,
    upper: u32,
    [right, high, wide, signed, wrap]: [bool; 5],
) -> u32 {
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
    use super::{permuted, shift};

    /// All ways to shift, by each count near the ends of one number and of two.
    #[test]
    fn two_numbers_are_shifted_as_one() {
        let (low, upper) = (0x8123_4567_u32, 0x9abc_def1_u32);
        let whole = i128::from((u64::from(upper) << 32 | u64::from(low)) as i64);
        for mode in 0..32_u8 {
            let [right, high, wide, signed, wrap] = [1, 2, 4, 8, 16].map(|bit| mode & bit != 0);
            for by in [0, 1, 7, 31, 32, 33, 63, 64, 65, 95, 200, u32::MAX] {
                let most = if wide { 64 } else { 32 };
                let count = if wrap { by % most } else { by.min(most) };
                let number = if signed { whole } else { whole & i128::from(u64::MAX) };
                let shifted = if right { number >> count } else { number << count };
                let expected = (if high { shifted >> 32 } else { shifted }) as u32;
                let found = shift(low, by, upper, [right, high, wide, signed, wrap]);
                assert_eq!(found, expected, "{right} {high} {wide} {signed} {wrap} by {by}");
            }
        }
    }

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
