//! Instructions that compute addresses, and conditions.

use super::bits::{Bits, Form};
use super::{Comparison, Instruction, Junction, Operand, Operation, Register, Source};

/// Fills in an instruction if it is one of these.
pub(super) fn decode(bits: Bits, to: &mut Instruction) -> bool {
    fill(bits, to).is_some()
}

fn fill(bits: Bits, to: &mut Instruction) -> Option<()> {
    let number = bits.number();
    match (number, bits.field(9, 12)) {
        // A number of 64 bits. Those that an operand cannot have, most of them floats, are not followed.
        (0x02 | 0x82, 2) if bits.architecture >= 120 => {
            let number = bits.signed(24, 88);
            let size = number.unsigned_abs();
            let is_small = size < 1 << 31;
            to.operation =
                if is_small { Operation::Move { wide: true } } else { Operation::Other("MOV") };
            to.destination = Some((bits.own(16), 2));
            let operand = Operand::Immediate(if is_small { size as u32 } else { 0 });
            to.sources = vec![Source { operand, negated: is_small && number < 0 }];
        }
        (0x02, _) => {
            (number_of_lanes(bits) == 15).then_some(())?;
            move_from(bits, to)?;
        }
        (0x82, _) => move_from(bits, to)?,
        // S2R, S2UR
        (0x119, 4) => {
            to.operation = Operation::Special(bits.field(72, 80) as u8);
            to.destination = Some((bits.general(16), 1));
        }
        (0x1c3, 4) => {
            to.operation = Operation::Special(bits.field(72, 80) as u8);
            to.destination = Some((bits.uniform(16), 1));
        }
        // CS2R: a pair, except with the bit that makes it one register.
        (0x05, 4) => {
            to.operation = Operation::Special(bits.field(72, 80) as u8);
            to.destination = Some((bits.general(16), if bits.bit(80) { 2 } else { 1 }));
        }
        // R2UR
        (0xca, 1) => {
            to.operation = Operation::Move { wide: false };
            to.destination = Some((bits.uniform(16), 1));
            to.sources = vec![Operand::Register(bits.general(24)).into()];
            to.guard.uniform = false;
            to.predicates_written = vec![super::Predicate { uniform: false, ..bits.predicate(81) }];
        }
        // The same before sm_90, without the mode that joins the threads'.
        (0x1c2, 1) if bits.architecture < 90 && bits.field(64, 81) == 0 => {
            to.operation = Operation::Move { wide: false };
            to.destination = Some((bits.uniform(16), 1));
            to.sources = vec![Operand::Register(bits.general(24)).into()];
            to.predicates_written = vec![bits.predicate(81)];
        }
        (0x182, 5) if !bits.bit(91) => {
            load_constant(bits, to, bits.constant(bits.general(24)), bits.general(16))?
        }
        (0xb9, 5) if !bits.bit(91) => {
            load_constant(bits, to, bits.constant(Register::Zero), bits.uniform(16))?
        }
        (0xbb, 5) if bits.bit(91) && !bits.late => {
            load_constant(bits, to, bits.constant(bits.uniform(24)), bits.uniform(16))?
        }
        (0x1ac, 3) => {
            load_constant(bits, to, bits.constant_lower(bits.uniform(24)), bits.uniform(16))?
        }
        (0x24 | 0x25 | 0x27 | 0xa4 | 0xa5 | 0xa7, _) => multiply_add(bits, to)?,
        (0x10 | 0x90 | 0x97, _) => add3(bits, to, number == 0x97)?,
        (0x36, _) => add2(bits, to, false)?,
        (0x35, _) if bits.architecture >= 120 => add2(bits, to, bits.bit(73))?,
        (0x11 | 0x91, _) => shift_add(bits, to)?,
        (0x19 | 0x99, _) => shift(bits, to)?,
        (0x12 | 0x92, _) => {
            to.operation = Operation::Logic(bits.field(72, 80) as u8);
            to.destination = Some((bits.own(16), 1));
            to.sources = bits.three()?.map(Source::from).to_vec();
            to.predicates_written = vec![bits.predicate(81)];
            to.predicates_read = vec![bits.predicate_read(87, 90)];
            // The bit that joins the predicate in another way.
            (!bits.bit(80)).then_some(())?;
        }
        // PRMT. In its other modes the selection is another one.
        (0x16 | 0x96, _) if bits.field(72, 75) == 0 => {
            to.operation = Operation::Permute;
            to.destination = Some((bits.own(16), 1));
            to.sources = bits.three()?.map(Source::from).to_vec();
        }
        (0x07 | 0x87, form) => {
            // Three of the forms are those of 64 bits, from a register, from an immediate and from a uniform
            // register, and another one if all registers are uniform.
            let wide = matches!(form, 2 | 3)
                || form == 7 && !bits.is_uniform()
                || form == 6 && bits.is_uniform();
            (!wide || bits.architecture >= 120).then_some(())?;
            let second = match form {
                2 => Operand::Immediate(bits.field(32, 64) as u32),
                3 => Operand::Register(bits.own(32)),
                7 if wide => Operand::Register(bits.uniform(32)),
                7 => return None,
                _ => bits.three()?[1],
            };
            to.operation = Operation::Select { wide };
            to.destination = Some((bits.own(16), if wide { 2 } else { 1 }));
            to.sources = vec![Operand::Register(bits.own(24)).into(), second.into()];
            to.predicates_read = vec![bits.predicate_read(87, 90)];
        }
        (0x17 | 0x48, _) => minimum(bits, to)?,
        (0x46, _) => minimum_of_sum(bits, to)?,
        (0x0c | 0x8c, _) => compare(bits, to)?,
        (0x1c | 0x9c, 4) => {
            let table = bits.field(64, 67) as u8 | (bits.field(72, 77) as u8) << 3;
            to.operation = Operation::PredicateLogic([table, bits.field(16, 24) as u8]);
            to.predicates_written = vec![bits.predicate(81), bits.predicate(84)];
            let mut read = [
                bits.predicate_read(87, 90),
                bits.predicate_read(77, 80),
                bits.predicate_read(68, 71),
            ];
            // The last may be of the other kind.
            read[2].uniform |= bits.bit(67);
            to.predicates_read = read.to_vec();
        }
        // IABS
        (0x13, _) => {
            to.operation = Operation::Absolute;
            to.destination = Some((bits.general(16), 1));
            to.sources = vec![bits.three()?[1].into()];
        }
        // BREV and POPC of a register as it is: an inverted one was never seen.
        (0x101 | 0x109, 1)
            if bits.field(24, 32) == 0 && bits.field(40, 64) == 0 && bits.field(64, 105) == 0 =>
        {
            to.operation = match bits.number() {
                0x101 => Operation::ReverseBits,
                _ => Operation::CountBits,
            };
            to.destination = Some((bits.general(16), 1));
            to.sources = vec![Operand::Register(bits.general(32)).into()];
        }
        // FLO of a register as it is, without a predicate of its own.
        (0x100, _)
            if bits.field(24, 32) == 0
                && !bits.bit(63)
                && bits.field(64, 73) == 0
                && bits.field(75, 91) == 0x1c0 =>
        {
            let Some([_, source @ Operand::Register(_), _]) = bits.three() else { return None };
            to.operation = Operation::HighestBit { signed: bits.bit(73), from_top: bits.bit(74) };
            to.destination = Some((bits.general(16), 1));
            to.sources = vec![source.into()];
        }
        // HFMA2 as a constant: minus zero times zero, and two halves.
        (0x31 | 0x35, 2)
            if bits.field(24, 32) == 255 && bits.field(64, 72) == 255 && bits.bit(72) =>
        {
            to.operation = Operation::Halves;
            to.destination = Some((bits.general(16), 1));
            to.sources = vec![Operand::Immediate(bits.field(32, 64) as u32).into()];
        }
        _ => return None,
    }
    Some(())
}

/// For which of its bytes a move counts.
fn number_of_lanes(bits: Bits) -> u64 {
    bits.field(72, 76)
}

fn move_from(bits: Bits, to: &mut Instruction) -> Option<()> {
    let wide = bits.bit(80);
    to.operation = Operation::Move { wide };
    to.destination = Some((bits.own(16), if wide { 2 } else { 1 }));
    to.sources = vec![bits.three()?[1].into()];
    // The forms of other sources are another instruction's.
    (!matches!(bits.form(), Form::ThirdImmediate | Form::ThirdConstant | Form::ThirdUniform))
        .then_some(())
}

fn load_constant(
    bits: Bits,
    to: &mut Instruction,
    source: Operand,
    destination: Register,
) -> Option<()> {
    let (bytes, signed) = width(bits)?;
    // The modes that index another bank, and banks by address.
    (bits.field(78, 80) == 0).then_some(())?;
    to.operation = Operation::LoadConstant { bytes, signed };
    to.destination = Some((destination, bytes.div_ceil(4)));
    to.sources = vec![source.into()];
    Some(())
}

/// How much an access moves, and whether a part of a register keeps its sign.
pub(super) fn width(bits: Bits) -> Option<(u8, bool)> {
    Some(match bits.field(73, 76) {
        0 => (1, false),
        1 => (1, true),
        2 => (2, false),
        3 => (2, true),
        4 => (4, false),
        5 => (8, false),
        6 => (16, false),
        _ => return None,
    })
}

fn sources(bits: Bits) -> Option<Vec<Source>> {
    let negated = bits.negated();
    Some(
        bits.three()?
            .into_iter()
            .zip(negated)
            .map(|(operand, negated)| Source { operand, negated })
            .collect(),
    )
}

/// Of a sum, a comparison and a minimum of 64 bits an immediate with its highest bit is below zero. The
/// compiler takes a register for numbers from 2^31 to 2^32. Of a sum that continues another the sign
/// stands for the complement: there such an immediate stays what it is.
fn extend(source: &mut Source) {
    if let Operand::Immediate(number @ 0x8000_0001..) = source.operand {
        *source =
            Source { operand: Operand::Immediate(number.wrapping_neg()), negated: !source.negated };
    }
}

fn multiply_add(bits: Bits, to: &mut Instruction) -> Option<()> {
    let (wide, high) = match bits.number() & 0x7f {
        0x25 => (true, false),
        0x27 => (false, true),
        _ => (false, false),
    };
    let carry = bits.bit(74);
    to.operation = Operation::MultiplyAdd { wide, high, signed: bits.bit(73), carry };
    to.destination = Some((bits.own(16), if wide { 2 } else { 1 }));
    to.sources = sources(bits)?;
    if wide || high {
        to.predicates_written = vec![bits.predicate(81)];
    }
    if carry {
        to.predicates_read = vec![bits.predicate_read(87, 90)];
    }
    Some(())
}

fn add3(bits: Bits, to: &mut Instruction, wide: bool) -> Option<()> {
    let carry = bits.bit(74);
    to.operation = Operation::Add { wide, carry };
    to.destination = Some((bits.own(16), if wide { 2 } else { 1 }));
    to.sources = sources(bits)?;
    if wide && !carry {
        to.sources.iter_mut().for_each(extend);
    }
    to.predicates_written = vec![bits.predicate(81), bits.predicate(84)];
    if carry {
        to.predicates_read = vec![bits.predicate_read(87, 90), bits.predicate_read(77, 80)];
    }
    Some(())
}

fn add2(bits: Bits, to: &mut Instruction, wide: bool) -> Option<()> {
    // One of the two has no carries.
    let carries = bits.number() == 0x35;
    let carry = carries && bits.bit(74);
    to.operation = Operation::Add { wide, carry };
    to.destination = Some((bits.own(16), if wide { 2 } else { 1 }));
    to.sources = sources(bits)?;
    to.sources.truncate(2);
    if wide && !carry {
        to.sources.iter_mut().for_each(extend);
    }
    if carries {
        to.predicates_written = vec![bits.predicate(81)];
    }
    if carry {
        to.predicates_read = vec![bits.predicate_read(87, 90)];
    }
    Some(())
}

fn shift_add(bits: Bits, to: &mut Instruction) -> Option<()> {
    let (high, carry, extended) = (bits.bit(80), bits.bit(74), bits.bit(73));
    to.operation = Operation::ShiftAdd { shift: bits.field(75, 80) as u8, high, extended, carry };
    to.destination = Some((bits.own(16), 1));
    let [first, second, third] = bits.three()?;
    let (negated_first, negated_second) =
        (bits.bit(72), bits.form() != Form::SecondImmediate && bits.bit(63));
    to.sources = vec![
        Source { operand: first, negated: negated_first },
        Source { operand: second, negated: negated_second },
    ];
    if high && !extended {
        to.sources.push(third.into());
    }
    to.predicates_written = vec![bits.predicate(81)];
    if carry {
        to.predicates_read = vec![bits.predicate_read(87, 90)];
    }
    Some(())
}

fn shift(bits: Bits, to: &mut Instruction) -> Option<()> {
    let kind = bits.field(73, 75);
    to.operation = Operation::Shift {
        right: bits.bit(76),
        high: bits.bit(80),
        wide: kind < 2,
        signed: kind.is_multiple_of(2),
        wrap: bits.bit(75),
    };
    to.destination = Some((bits.own(16), 1));
    to.sources = bits.three()?.map(Source::from).to_vec();
    Some(())
}

/// One of the numbers has further sources on later architectures, which only some forms have.
fn minimum(bits: Bits, to: &mut Instruction) -> Option<()> {
    let number = bits.number();
    let wide = number == 0x17
        && bits.architecture >= 120
        && !bits.bit(72)
        && bits.field(74, 77) == 1
        // What another predicate than the one that never holds would mean was never seen.
        && bits.field(77, 81) == 15;
    let comparable =
        if number == 0x17 { wide || bits.architecture < 100 } else { bits.field(73, 80) == 0 };
    comparable.then_some(())?;
    let [first, second, _] = bits.three()?;
    matches!(
        bits.form(),
        Form::Registers | Form::SecondImmediate | Form::SecondConstant | Form::SecondUniform
    )
    .then_some(())?;
    let signed = bits.bit(if number == 0x17 { 73 } else { 72 });
    to.operation = Operation::Minimum { signed, wide };
    to.destination = Some((bits.own(16), if wide { 2 } else { 1 }));
    let negated = if number == 0x17 && !wide { bits.negated() } else { [false; 3] };
    to.sources = vec![
        Source { operand: first, negated: negated[0] },
        Source { operand: second, negated: negated[1] },
    ];
    to.predicates_read = vec![bits.predicate_read(87, 90)];
    if wide {
        to.sources.iter_mut().for_each(extend);
        to.predicates_read.push(bits.predicate_read(77, 80));
    }
    if wide || number == 0x48 {
        to.predicates_written = vec![bits.predicate(81), bits.predicate(84)];
    }
    Some(())
}

/// Without a negation. Other kinds are of two halves of 16 bits, or not below zero.
fn minimum_of_sum(bits: Bits, to: &mut Instruction) -> Option<()> {
    let negates = match bits.form() {
        Form::SecondImmediate | Form::ThirdImmediate => false,
        _ => bits.field(62, 64) != 0,
    };
    let plain = bits.field(73, 81) == 0 && !negates;
    (plain && (90..120).contains(&bits.architecture)).then_some(())?;
    to.operation = Operation::MinimumOfSum { signed: bits.bit(72) };
    to.destination = Some((bits.own(16), 1));
    to.sources = bits.three()?.map(Source::from).to_vec();
    to.predicates_read = vec![bits.predicate_read(87, 90)];
    Some(())
}

fn compare(bits: Bits, to: &mut Instruction) -> Option<()> {
    let comparison = match bits.field(76, 79) {
        0 => Comparison::Never,
        1 => Comparison::Less,
        2 => Comparison::Equal,
        3 => Comparison::LessOrEqual,
        4 => Comparison::Greater,
        5 => Comparison::NotEqual,
        6 => Comparison::GreaterOrEqual,
        _ => Comparison::Always,
    };
    let junction = match bits.field(74, 76) {
        0 => Junction::And,
        1 => Junction::Or,
        2 => Junction::Xor,
        _ => return None,
    };
    let high = bits.bit(72);
    to.operation =
        Operation::Compare { comparison, signed: bits.bit(73), junction, wide: bits.bit(80), high };
    let [first, second, _] = bits.three()?;
    matches!(
        bits.form(),
        Form::Registers | Form::SecondImmediate | Form::SecondConstant | Form::SecondUniform
    )
    .then_some(())?;
    to.sources = vec![first.into(), second.into()];
    if bits.bit(80) {
        to.sources.iter_mut().for_each(extend);
    }
    to.predicates_written = vec![bits.predicate(81), bits.predicate(84)];
    to.predicates_read = vec![bits.predicate_read(87, 90)];
    if high {
        to.predicates_read.push(bits.predicate_read(68, 71));
    }
    Some(())
}
