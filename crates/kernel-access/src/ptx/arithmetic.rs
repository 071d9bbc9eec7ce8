//! Instructions that compute whole numbers, addresses and predicates.

use super::PtxError;
use super::error::Done;
use super::instructions::{Class, Kind, Name, Written, product, shift, sources};
use super::parse::{self, Operands};
use super::translate::{ALWAYS, Named, Translator};
use crate::decode::{Comparison, Junction, Operand, Operation, Predicate, Register, Source};

impl<'a> Translator<'_, 'a> {
    pub(super) fn copy_of(&mut self, name: &Name<'a>, operands: &Operands<'a>) -> Done {
        let Some(kind) = name.kind() else { return self.operands() };
        let [to, from] = operands else { return self.operands() };
        if kind.class == Class::Predicate {
            let Written::Predicate(to) = self.written(to)? else { return self.operands() };
            let table = match from {
                parse::Operand::Integer(number) => {
                    return self.predicates(to, if *number != 0 { 0xff } else { 0 }, [ALWAYS; 2]);
                }
                _ => 0xf0,
            };
            let from = self.condition(from)?;
            return self.predicates(to, table, [from, ALWAYS]);
        }
        match (to, from) {
            // A number of 64 bits in halves.
            (_, parse::Operand::Vector(parts)) if parts.len() == 2 && kind.bits == 64 => {
                let (first, _) = self.target(to, 64)?;
                for (half, part) in (first..).zip(parts) {
                    let part = self.value(part)?;
                    self.emit(Operation::Move { wide: false }, Some((half, 1)), sources([part]));
                }
                Ok(())
            }
            (parse::Operand::Vector(parts), _) if parts.len() == 2 && kind.bits == 64 => {
                let halves = Self::halves(self.wide(from)?);
                for (part, half) in parts.iter().zip(halves) {
                    match self.written(part)? {
                        Written::Register(0..=32, to) => {
                            let copy = Operation::Move { wide: false };
                            self.emit(copy, Some((to, 1)), sources([half]));
                        }
                        Written::Nothing => {}
                        _ => return self.operands(),
                    }
                }
                Ok(())
            }
            (parse::Operand::Vector(_), _) | (_, parse::Operand::Vector(_)) => {
                self.computed(operands)
            }
            _ if kind.bits == 128 => self.operands(),
            _ => {
                let to = self.target(to, kind.bits)?;
                let wide = kind.bits == 64;
                let from = self.number(from, kind.bits)?;
                self.emit(Operation::Move { wide }, Some(to), sources([from]));
                Ok(())
            }
        }
    }

    /// A predicate that is read.
    pub(super) fn condition(
        &mut self,
        operand: &parse::Operand<'a>,
    ) -> Result<Predicate, PtxError> {
        match operand {
            parse::Operand::Name(name) => self.predicate(name),
            parse::Operand::Not(name) => Ok(Predicate { negated: true, ..self.predicate(name)? }),
            _ => self.operands(),
        }
    }

    fn predicates(&mut self, to: u16, table: u8, [first, second]: [Predicate; 2]) -> Done {
        let one = self.emit(Operation::PredicateLogic([table, 0]), None, Vec::new());
        one.predicates_written = vec![Predicate { index: Some(to), ..ALWAYS }];
        one.predicates_read = vec![first, second, ALWAYS];
        Ok(())
    }

    pub(super) fn add(&mut self, name: &Name<'a>, operands: &Operands<'a>) -> Done {
        let Some(kind) = name.kind() else { return self.operands() };
        if name.has("cc") {
            return self.with_carry(name, operands);
        }
        if kind.is_float() || name.has("sat") {
            return self.computed(operands);
        }
        let [to, a, b] = operands else { return self.operands() };
        let a = self.number(a, kind.bits)?.into();
        let b = Source { operand: self.number(b, kind.bits)?, negated: name.base == "sub" };
        let to = self.target(to, kind.bits)?;
        self.emit(Operation::Add { wide: kind.bits == 64, carry: false }, Some(to), vec![a, b]);
        Ok(())
    }

    pub(super) fn multiply(&mut self, name: &Name<'a>, operands: &Operands<'a>) -> Done {
        let Some(kind) = name.kind() else { return self.operands() };
        if name.has("cc") {
            return self.with_carry(name, operands);
        }
        let part = ["lo", "hi", "wide"].into_iter().find(|part| name.has(part));
        let (Some(part), false, false) = (part, kind.is_float(), name.has("sat")) else {
            return self.computed(operands);
        };
        let [to, a, b, rest @ ..] = operands else { return self.operands() };
        let c = match (name.base, rest) {
            ("mul", []) => None,
            ("mad", [c]) => Some(c),
            _ => return self.operands(),
        };
        let zero = Operand::Register(Register::Zero);
        let (signed, carry) = (kind.signed(), false);
        match (part, kind.bits) {
            ("lo", 16 | 32) => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                let c = c.map_or(Ok(zero), |c| self.value(c))?;
                let to = self.target(to, kind.bits)?;
                self.emit(product(false, false, signed, carry), Some(to), sources([a, b, c]));
            }
            ("wide", 16) => {
                let (a, b) = (self.extended(a, kind)?, self.extended(b, kind)?);
                let c = c.map_or(Ok(zero), |c| self.value(c))?;
                let to = self.target(to, 32)?;
                self.emit(product(false, false, signed, carry), Some(to), sources([a, b, c]));
            }
            ("wide", 32) => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                let c = c.map_or(Ok(zero), |c| self.wide(c))?;
                let to = self.target(to, 64)?;
                self.emit(product(true, false, signed, carry), Some(to), sources([a, b, c]));
            }
            ("hi", 32) => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                let c = c.map(|c| self.value(c)).transpose()?;
                let to = self.target(to, 32)?;
                let high = product(false, true, signed, carry);
                match c {
                    None => {
                        self.emit(high, Some(to), sources([a, b, zero]));
                    }
                    Some(c) => {
                        let high = self.temporary(false, high, sources([a, b, zero]))?;
                        let high = Operand::Register(Register::General(high));
                        let add = Operation::Add { wide: false, carry: false };
                        self.emit(add, Some(to), sources([high, c]));
                    }
                }
            }
            ("lo", 64) => {
                let (a, b) = (self.wide(a)?, self.wide(b)?);
                let c = c.map(|c| self.wide(c)).transpose()?;
                let to = self.target(to, 64)?;
                match c {
                    None => {
                        self.emit(Operation::MultiplyLong, Some(to), sources([a, b]));
                    }
                    Some(c) => {
                        let low = self.temporary(true, Operation::MultiplyLong, sources([a, b]))?;
                        let low = Operand::Register(Register::General(low));
                        let add = Operation::Add { wide: true, carry: false };
                        self.emit(add, Some(to), sources([low, c]));
                    }
                }
            }
            _ => return self.computed(operands),
        }
        Ok(())
    }

    pub(super) fn divide(&mut self, name: &Name<'a>, operands: &Operands<'a>) -> Done {
        let Some(kind) = name.kind() else { return self.operands() };
        if kind.is_float() {
            return self.computed(operands);
        }
        let [to, a, b] = operands else { return self.operands() };
        let (a, b) = (self.extended(a, kind)?, self.extended(b, kind)?);
        let to = self.target(to, kind.bits)?;
        let operation = Operation::Divide {
            signed: kind.signed(),
            wide: kind.bits == 64,
            remainder: name.base == "rem",
        };
        self.emit(operation, Some(to), sources([a, b]));
        Ok(())
    }

    pub(super) fn shift(&mut self, name: &Name<'a>, operands: &Operands<'a>) -> Done {
        let Some(kind) = name.kind() else { return self.operands() };
        let [to, a, by] = operands else { return self.operands() };
        let zero = Operand::Register(Register::Zero);
        let right = name.base == "shr";
        let by = self.value(by)?;
        if kind.bits < 64 {
            let a = if right { self.extended(a, kind)? } else { self.value(a)? };
            let to = self.target(to, kind.bits)?;
            let (operation, from) = if right {
                let signed = kind.signed();
                let right =
                    Operation::Shift { right, high: true, wide: false, signed, wrap: false };
                (right, [zero, by, a])
            } else {
                (shift(false), [a, by, zero])
            };
            self.emit(operation, Some(to), sources(from));
            return Ok(());
        }
        let a = self.wide(a)?;
        let to = self.target(to, 64)?;
        if let (false, Operand::Immediate(by @ 0..=30)) = (right, by) {
            self.emit(Operation::MultiplyLong, Some(to), sources([a, Operand::Immediate(1 << by)]));
            return Ok(());
        }
        let [low, high] = Self::halves(a);
        let operation =
            |high| Operation::Shift { right, high, wide: true, signed: kind.signed(), wrap: false };
        // To the left the lower half needs nothing from above, to the right the upper from below.
        let lower = if right { [low, by, high] } else { [low, by, zero] };
        let upper = if right { [zero, by, high] } else { [low, by, high] };
        let lower = self.temporary(false, operation(false), sources(lower))?;
        let upper = self.temporary(false, operation(true), sources(upper))?;
        for (half, from) in (to.0..).zip([lower, upper]) {
            let from = Operand::Register(Register::General(from));
            self.emit(Operation::Move { wide: false }, Some((half, 1)), sources([from]));
        }
        Ok(())
    }

    pub(super) fn logic(&mut self, name: &Name<'a>, operands: &Operands<'a>) -> Done {
        let Some(kind) = name.kind() else { return self.operands() };
        let table = match name.base {
            "and" => 0xc0,
            "or" => 0xfc,
            "xor" => 0x3c,
            _ => 0x0f,
        };
        let (to, a, b) = match operands {
            [to, a] if name.base == "not" => (to, a, None),
            [to, a, b] if name.base != "not" => (to, a, Some(b)),
            _ => return self.operands(),
        };
        if kind.class == Class::Predicate {
            let a = self.condition(a)?;
            let b = b.map_or(Ok(ALWAYS), |b| self.condition(b))?;
            let Written::Predicate(to) = self.written(to)? else { return self.operands() };
            return self.predicates(to, table, [a, b]);
        }
        let zero = Operand::Register(Register::Zero);
        let a = self.number(a, kind.bits)?;
        let b = b.map_or(Ok(zero), |b| self.number(b, kind.bits))?;
        let to = self.target(to, kind.bits)?;
        if kind.bits < 64 {
            self.emit(Operation::Logic(table), Some(to), sources([a, b, zero]));
            return Ok(());
        }
        let (a, b) = (
            Self::halves(a),
            match b {
                Operand::Register(Register::Zero) => [zero; 2],
                b => Self::halves(b),
            },
        );
        for (half, (a, b)) in (to.0..).zip(a.into_iter().zip(b)) {
            self.emit(Operation::Logic(table), Some((half, 1)), sources([a, b, zero]));
        }
        Ok(())
    }

    pub(super) fn table(&mut self, name: &Name<'a>, operands: &Operands<'a>) -> Done {
        match operands {
            [to @ parse::Operand::Name(_), a, b, c, parse::Operand::Integer(table @ 0..=255)]
                if name.parts == ["b32"] =>
            {
                let from = [self.value(a)?, self.value(b)?, self.value(c)?];
                let to = self.target(to, 32)?;
                self.emit(Operation::Logic(*table as u8), Some(to), sources(from));
                Ok(())
            }
            _ => self.computed(operands),
        }
    }

    pub(super) fn funnel(&mut self, name: &Name<'a>, operands: &Operands<'a>) -> Done {
        let [to, low, high, by] = operands else { return self.operands() };
        let right = match (name.has("l"), name.has("r")) {
            (true, false) => false,
            (false, true) => true,
            _ => return self.operands(),
        };
        let wrap = match (name.has("wrap"), name.has("clamp")) {
            (true, false) => true,
            (false, true) => false,
            _ => return self.operands(),
        };
        let from = [self.value(low)?, self.value(by)?, self.value(high)?];
        let to = self.target(to, 32)?;
        let operation = Operation::Shift { right, high: !right, wide: false, signed: false, wrap };
        self.emit(operation, Some(to), sources(from));
        Ok(())
    }

    pub(super) fn minimum(&mut self, name: &Name<'a>, operands: &Operands<'a>) -> Done {
        let Some(kind) = name.kind() else { return self.operands() };
        let ([to, a, b], false) = (operands, kind.is_float() || name.has("relu")) else {
            return self.computed(operands);
        };
        let (a, b) = (self.extended(a, kind)?, self.extended(b, kind)?);
        let to = self.target(to, kind.bits)?;
        let least = name.base == "min";
        if kind.bits < 64 {
            let one = self.emit(
                Operation::Minimum { signed: kind.signed(), wide: false },
                Some(to),
                sources([a, b]),
            );
            one.predicates_read = vec![Predicate { negated: !least, ..ALWAYS }];
            return Ok(());
        }
        let less = self.compare((Comparison::Less, kind.signed(), true), [a, b])?;
        let one = self.emit(Operation::Select { wide: true }, Some(to), sources([a, b]));
        one.predicates_read = vec![Predicate { negated: !least, ..less }];
        Ok(())
    }

    pub(super) fn sign(&mut self, name: &Name<'a>, operands: &Operands<'a>) -> Done {
        let Some(kind) = name.kind() else { return self.operands() };
        let [to, a] = operands else { return self.operands() };
        if kind.is_float() || name.base == "abs" && kind.bits == 64 {
            return self.computed(operands);
        }
        let a = self.extended(a, kind)?;
        let to = self.target(to, kind.bits)?;
        if name.base == "abs" {
            self.emit(Operation::Absolute, Some(to), sources([a]));
        } else {
            let add = Operation::Add { wide: kind.bits == 64, carry: false };
            self.emit(add, Some(to), vec![Source { operand: a, negated: true }]);
        }
        Ok(())
    }

    pub(super) fn bits(&mut self, name: &Name<'a>, operands: &Operands<'a>) -> Done {
        let Some(kind) = name.kind() else { return self.operands() };
        let [to, a] = operands else { return self.operands() };
        if kind.bits != 32 {
            return self.computed(operands);
        }
        let a = self.extended(a, kind)?;
        let to = self.target(to, 32)?;
        let operation =
            if name.base == "brev" { Operation::ReverseBits } else { Operation::CountBits };
        self.emit(operation, Some(to), sources([a]));
        Ok(())
    }

    pub(super) fn comparison(&mut self, name: &Name<'a>, operands: &Operands<'a>) -> Done {
        let Some(kind) = name.kind() else { return self.operands() };
        if kind.is_float() {
            return self.computed(operands);
        }
        let (first, rest) = match name.parts.split_first() {
            Some((first, rest)) => (*first, rest),
            None => return self.operands(),
        };
        // Some are of numbers without sign, whatever the type.
        let (comparison, signed) = match first {
            "eq" => (Comparison::Equal, kind.signed()),
            "ne" => (Comparison::NotEqual, kind.signed()),
            "lt" => (Comparison::Less, kind.signed()),
            "le" => (Comparison::LessOrEqual, kind.signed()),
            "gt" => (Comparison::Greater, kind.signed()),
            "ge" => (Comparison::GreaterOrEqual, kind.signed()),
            "lo" => (Comparison::Less, false),
            "ls" => (Comparison::LessOrEqual, false),
            "hi" => (Comparison::Greater, false),
            "hs" => (Comparison::GreaterOrEqual, false),
            _ => return self.operands(),
        };
        let junction = match rest {
            ["and", _] => Some(Junction::And),
            ["or", _] => Some(Junction::Or),
            ["xor", _] => Some(Junction::Xor),
            [_] => None,
            _ => return self.operands(),
        };
        let (to, a, b, joined) = match (operands, junction) {
            ([to, a, b], None) => (to, a, b, ALWAYS),
            ([to, a, b, joined], Some(_)) => (to, a, b, self.condition(joined)?),
            _ => return self.operands(),
        };
        let (a, b) = (self.extended(a, kind)?, self.extended(b, kind)?);
        let both = match to {
            parse::Operand::Both(one, two) => [Some(*one), Some(*two)],
            parse::Operand::Name(one) => [Some(*one), None],
            _ => return self.operands(),
        };
        let mut written = Vec::new();
        for name in both {
            written.push(match name {
                Some("_") | None => ALWAYS,
                Some(name) => self.predicate(name)?,
            });
        }
        let operation = Operation::Compare {
            comparison,
            signed,
            junction: junction.unwrap_or(Junction::And),
            wide: kind.bits == 64,
            high: false,
        };
        let one = self.emit(operation, None, sources([a, b]));
        one.predicates_written = written;
        one.predicates_read = vec![joined];
        Ok(())
    }

    pub(super) fn select(&mut self, name: &Name<'a>, operands: &Operands<'a>) -> Done {
        let Some(kind) = name.kind() else { return self.operands() };
        let [to, a, b, by] = operands else { return self.operands() };
        let (a, b) = (self.number(a, kind.bits)?, self.number(b, kind.bits)?);
        let by = self.condition(by)?;
        let to = self.target(to, kind.bits)?;
        let one = self.emit(Operation::Select { wide: kind.bits == 64 }, Some(to), sources([a, b]));
        one.predicates_read = vec![by];
        Ok(())
    }

    pub(super) fn convert(&mut self, name: &Name<'a>, operands: &Operands<'a>) -> Done {
        let kinds: Vec<Kind> = name.parts.iter().filter_map(|part| Kind::parse(part)).collect();
        let integer = |kind: &Kind| !kind.is_float() && matches!(kind.bits, 8 | 16 | 32 | 64);
        let (&[into, of], false, [to, from]) = (kinds.as_slice(), name.has("sat"), operands) else {
            return self.computed(operands);
        };
        if !integer(&into) || !integer(&of) || name.has("pack") {
            return self.computed(operands);
        }
        let Written::Register(bits, first) = self.written(to)? else { return self.operands() };
        // The number of 32 bits, or its lower half.
        let low = match self.operand_bits(from)? {
            64 => {
                let from = self.wide(from)?;
                if of.bits == 64 && into.bits == 64 {
                    if bits != 64 {
                        return self.operands();
                    }
                    self.emit(Operation::Move { wide: true }, Some((first, 2)), sources([from]));
                    return Ok(());
                }
                let [low, _] = Self::halves(from);
                low
            }
            _ if of.bits == 64 => return self.operands(),
            _ => self.value(from)?,
        };
        // It has the value of its own type, then that of the result's.
        let mut value = self.extend(low, of.bits, of.signed())?;
        let mut signed = of.signed();
        if into.bits < 32 && into.bits < of.bits.max(bits.min(32)) {
            value = self.extend(value, into.bits, into.signed())?;
            signed = into.signed();
        }
        if bits == 64 {
            // A result of 32 bits in a register of 64 has its own sign.
            let signed = if into.bits == 64 { signed } else { into.signed() };
            let one = Operand::Immediate(1);
            let zero = Operand::Register(Register::Zero);
            let widen = product(true, false, signed, false);
            self.emit(widen, Some((first, 2)), sources([value, one, zero]));
        } else if into.bits == 64 {
            return self.operands();
        } else {
            self.emit(Operation::Move { wide: false }, Some((first, 1)), sources([value]));
        }
        Ok(())
    }

    /// How many bits the register has, or a number needs.
    fn operand_bits(&mut self, operand: &parse::Operand<'a>) -> Result<u32, PtxError> {
        Ok(match operand {
            parse::Operand::Name(name) => match self.named(name)? {
                Some(Named::Register(bits, _)) => bits,
                Some(Named::Variable(_)) => 64,
                Some(_) => return self.operands(),
                None => 32,
            },
            parse::Operand::Integer(_) => 64,
            _ => return self.operands(),
        })
    }

    pub(super) fn address_of(&mut self, name: &Name<'a>, operands: &Operands<'a>) -> Done {
        let [to, from] = operands else { return self.operands() };
        if name.has("param") || name.parts.iter().any(|part| part.starts_with("param::")) {
            return Err(PtxError::Address(self.line));
        }
        if name.has("global") && name.has("u64") {
            let from = self.wide(from)?;
            let to = self.target(to, 64)?;
            self.emit(Operation::Move { wide: true }, Some(to), sources([from]));
            return Ok(());
        }
        // Of the other memories an address is not followed.
        self.computed(operands)
    }

    /// Some bits of a number, where it is known which.
    pub(super) fn field(&mut self, name: &Name<'a>, operands: &Operands<'a>) -> Done {
        let [to, a, parse::Operand::Integer(at), parse::Operand::Integer(count)] = operands else {
            return self.computed(operands);
        };
        let (at, count) = (at & 255, count & 255);
        let (signed, fits) = (name.has("s32"), count > 0 && at + count <= 32);
        if !(signed || name.has("u32")) || !fits {
            return self.computed(operands);
        }
        let value = self.value(a)?;
        let to = self.target(to, 32)?;
        let zero = Operand::Register(Register::Zero);
        let left = Operand::Immediate(32 - (at + count) as u32);
        let left = self.temporary(false, shift(false), sources([value, left, zero]))?;
        let left = Operand::Register(Register::General(left));
        let by = Operand::Immediate(32 - count as u32);
        let right = Operation::Shift { right: true, high: true, wide: false, signed, wrap: false };
        self.emit(right, Some(to), sources([zero, by, left]));
        Ok(())
    }
}
