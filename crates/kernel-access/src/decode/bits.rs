//! The fields that many instructions have at the same place.

use super::{Operand, Predicate, Register, Source};

/// An instruction's 128 bits.
#[derive(Clone, Copy)]
pub(super) struct Bits {
    word: u128,
    /// From `sm_100` on there are more uniform registers, and some fields moved.
    pub(super) late: bool,
    /// `sm_120` uses a number again that was another instruction's before.
    pub(super) architecture: u32,
}

/// Where the second and third source are, by the three bits after an instruction's number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Registers,
    SecondImmediate,
    SecondConstant,
    SecondUniform,
    ThirdImmediate,
    ThirdConstant,
    ThirdUniform,
    Other,
}

impl Bits {
    pub(super) fn new(architecture: u32, word: u128) -> Self {
        Self { word, late: architecture >= 100, architecture }
    }

    /// The bits from `low` to before `high`.
    pub(super) fn field(self, low: u32, high: u32) -> u64 {
        (self.word >> low) as u64 & (u64::MAX >> (64 - (high - low)))
    }

    pub(super) fn signed(self, low: u32, high: u32) -> i64 {
        let unused = 64 - (high - low);
        (self.field(low, high) << unused) as i64 >> unused
    }

    pub(super) fn bit(self, at: u32) -> bool {
        self.field(at, at + 1) != 0
    }

    /// The instruction's number without its form.
    pub(super) fn number(self) -> u64 {
        self.field(0, 9)
    }

    pub(super) fn form(self) -> Form {
        match self.field(9, 12) {
            1 => Form::Registers,
            2 => Form::ThirdImmediate,
            3 => Form::ThirdConstant,
            4 => Form::SecondImmediate,
            5 => Form::SecondConstant,
            6 => Form::SecondUniform,
            7 => Form::ThirdUniform,
            _ => Form::Other,
        }
    }

    pub(super) fn guard(self) -> Predicate {
        Predicate::new(self.field(12, 15), self.is_uniform(), self.bit(15))
    }

    /// Whether it runs once for a warp, and has uniform registers and predicates.
    pub(super) fn is_uniform(self) -> bool {
        matches!(self.field(0, 9), 0x5a | 0x80..=0xc0 | 0x1b2 | 0x1b4..=0x1bc)
            || matches!(self.field(0, 9), 0x1c3 | 0x1c7..=0x1ca | 0x1e3 | 0x1e7 | 0x1e9 | 0x1ea)
            || matches!(self.field(0, 9), 0x1ed | 0x1ee) && !matches!(self.number(), 0x80 | 0x81)
            || matches!(self.field(0, 12), 0x7ac | 0x84c)
            || self.architecture >= 120 && matches!(self.field(0, 9), 0x4a | 0x51..=0x5e)
    }

    pub(super) fn general(self, low: u32) -> Register {
        match self.field(low, low + 8) as u16 {
            255 => Register::Zero,
            number => Register::General(number),
        }
    }

    pub(super) fn uniform(self, low: u32) -> Register {
        let (number, zero) = if self.late {
            (self.field(low, low + 8), 255)
        } else {
            (self.field(low, low + 6), 63)
        };
        if number == zero { Register::Zero } else { Register::Uniform(number as u16) }
    }

    /// A register of the kind that the instruction works on.
    pub(super) fn own(self, low: u32) -> Register {
        if self.is_uniform() { self.uniform(low) } else { self.general(low) }
    }

    pub(super) fn predicate(self, low: u32) -> Predicate {
        Predicate::new(self.field(low, low + 3), self.is_uniform(), false)
    }

    /// One that is read, whose opposite is meant by the bit at `negated`.
    pub(super) fn predicate_read(self, low: u32, negated: u32) -> Predicate {
        Predicate { negated: self.bit(negated), ..self.predicate(low) }
    }

    pub(super) fn constant(self, index: Register) -> Operand {
        Operand::Constant {
            bank: self.field(54, 59) as u8,
            offset: self.field(38, 54) as u16,
            index,
        }
    }

    /// For the one instruction that has the place of the word a bit lower.
    pub(super) fn constant_lower(self, index: Register) -> Operand {
        Operand::Constant {
            bank: self.field(54, 59) as u8,
            offset: self.field(37, 53) as u16,
            index,
        }
    }

    /// The three sources of an instruction that has them all, without what is done to them. Only a
    /// register or an immediate of that form is possible where the bit for bindless banks is clear.
    pub(super) fn three(self) -> Option<[Operand; 3]> {
        let first = Operand::Register(self.own(24));
        let last = Operand::Register(self.own(64));
        let wide = match self.form() {
            Form::Registers => Operand::Register(self.own(32)),
            Form::SecondImmediate | Form::ThirdImmediate => {
                Operand::Immediate(self.field(32, 64) as u32)
            }
            // Bit 91 chooses a bank whose address is in a register.
            Form::SecondConstant | Form::ThirdConstant if self.bit(91) => Operand::Unknown,
            Form::SecondConstant | Form::ThirdConstant => self.constant(Register::Zero),
            Form::SecondUniform | Form::ThirdUniform => Operand::Register(self.uniform(32)),
            Form::Other => return None,
        };
        Some(match self.form() {
            Form::ThirdImmediate | Form::ThirdConstant | Form::ThirdUniform => [first, last, wide],
            _ => [first, wide, last],
        })
    }

    /// Whether the sources' negations are set. The second's bit belongs to its immediate, if it is one.
    pub(super) fn negated(self) -> [bool; 3] {
        match self.form() {
            Form::SecondImmediate => [self.bit(72), false, self.bit(75)],
            Form::ThirdImmediate => [self.bit(72), self.bit(75), false],
            // The two are swapped, with their bits.
            Form::ThirdConstant | Form::ThirdUniform => [self.bit(72), self.bit(75), self.bit(63)],
            _ => [self.bit(72), self.bit(63), self.bit(75)],
        }
    }
}

impl From<Operand> for Source {
    fn from(operand: Operand) -> Self {
        Source { operand, negated: false }
    }
}
