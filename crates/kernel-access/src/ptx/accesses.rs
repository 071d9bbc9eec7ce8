//! Instructions that access memory. A vector is an access for each of its elements.

use super::PtxError;
use super::error::Done;
use super::instructions::{Kind, Name, Written, sources};
use super::parse::{self, Operands, Space as Declared};
use super::translate::{BASE, CONSTANTS, Named, Translator};
use crate::decode::{Access, AccessKind, Address, Operand, Operation, Register, Source, Space};

/// What an instruction's name says of its space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Memory(Space),
    Constant,
    Parameter,
}

/// Whether an access is meant for what other threads do at the same time, or compiled as one that is.
fn is_kept(name: &Name<'_>) -> bool {
    let parts = ["volatile", "relaxed", "acquire", "release", "mmio", "cg", "cv", "wb", "wt"];
    parts.iter().any(|part| name.has(part))
}

fn set_strong(access: &mut Operation, name: &Name<'_>) {
    if let Operation::Access(access) = access {
        access.strong = access.address.is_some() && is_kept(name);
    }
}

fn place(name: &Name<'_>) -> Place {
    let mut spaces = name.parts.iter().map(|part| part.split("::").next().unwrap_or_default());
    spaces
        .find_map(|space| {
            Some(match space {
                "global" => Place::Memory(Space::Global),
                "shared" => Place::Memory(Space::Shared),
                "local" => Place::Memory(Space::Local),
                "const" => Place::Constant,
                "param" => Place::Parameter,
                _ => return None,
            })
        })
        .unwrap_or(Place::Memory(Space::Generic))
}

impl<'a> Translator<'_, 'a> {
    /// How many elements a vector of this instruction has, and what each is.
    fn elements(&self, name: &Name<'_>) -> Result<(usize, Kind), PtxError> {
        let count = match name.parts.iter().find(|part| matches!(**part, "v2" | "v4" | "v8")) {
            Some(&"v2") => 2,
            Some(&"v4") => 4,
            Some(_) => 8,
            None => 1,
        };
        let kind = name.kind().filter(|kind| matches!(kind.bits, 8 | 16 | 32 | 64));
        kind.map(|kind| (count, kind)).ok_or(PtxError::Operands(self.line))
    }

    /// The elements of an operand.
    fn parts(
        &self,
        operand: &parse::Operand<'a>,
        count: usize,
    ) -> Result<Vec<parse::Operand<'a>>, PtxError> {
        let all = match operand {
            parse::Operand::Vector(all) => all.clone(),
            one => vec![one.clone()],
        };
        if all.len() == count { Ok(all) } else { self.operands() }
    }

    /// An address in memory that is not a block's or a thread's own.
    fn address(&mut self, base: Option<&'a str>, offset: i64) -> Result<Address, PtxError> {
        let plain = |base, offset| {
            let base = Register::General(base);
            Address { base, wide: true, scale: 1, uniform: None, offset }
        };
        let (register, offset) = match base {
            None => {
                let number = self.long(offset as u64)?;
                (self.temporary(true, Operation::Move { wide: true }, sources([number]))?, 0)
            }
            Some(name) => match self.named(name)? {
                Some(Named::Register(64, first)) => (first, offset),
                Some(Named::Register(32, first)) => {
                    let from = Operand::Register(Register::General(first));
                    let widen = Operation::MultiplyAdd {
                        wide: true,
                        high: false,
                        signed: false,
                        carry: false,
                    };
                    let zero = Operand::Register(Register::Zero);
                    let from = sources([from, Operand::Immediate(1), zero]);
                    (self.temporary(true, widen, from)?, offset)
                }
                Some(Named::Variable(Declared::Global | Declared::Constant)) => {
                    (self.variable_address()?, offset)
                }
                _ => return self.operands(),
            },
        };
        if let Ok(offset) = i32::try_from(offset) {
            return Ok(plain(register, offset));
        }
        let number = self.long(offset as u64)?;
        let register = Operand::Register(Register::General(register));
        let add = Operation::Add { wide: true, carry: false };
        Ok(plain(self.temporary(true, add, sources([register, number]))?, 0))
    }

    /// The access, at so many bytes after the address that the operand is.
    fn access(
        &mut self,
        kind: AccessKind,
        space: Space,
        bytes: u32,
        operand: &parse::Operand<'a>,
        after: u32,
    ) -> Result<Operation, PtxError> {
        let parse::Operand::Address(base, offset) = *operand else { return self.operands() };
        let offset = offset.checked_add(after.into()).ok_or(PtxError::Operands(self.line))?;
        let address = match space {
            Space::Shared | Space::Local => None,
            _ => Some(self.address(base, offset)?),
        };
        let strong = matches!(kind, AccessKind::Atomic | AccessKind::Reduce);
        Ok(Operation::Access(Access {
            kind,
            space,
            bytes: bytes as u8,
            count: None,
            address,
            strong,
            signed: false,
        }))
    }

    pub(super) fn load(&mut self, name: &Name<'a>, operands: &Operands<'a>) -> Done {
        let (count, kind) = self.elements(name)?;
        let [to, address, ..] = operands else { return self.operands() };
        let bytes = kind.bits / 8;
        let parts = self.parts(to, count)?;
        // A register that a part overwrites may be that of the address.
        let base = match address {
            parse::Operand::Address(Some(base), _) => Some(*base),
            _ => None,
        };
        let in_base = |part: &parse::Operand<'a>| match part {
            parse::Operand::Name(name) => count > 1 && Some(*name) == base,
            _ => false,
        };
        let is_direct = !parts.iter().any(in_base);
        let mut loaded = Vec::new();
        for (part, after) in parts.iter().zip((0..).step_by(bytes as usize)) {
            let (operation, from) = match place(name) {
                Place::Memory(space) => {
                    let mut read = self.access(AccessKind::Read, space, bytes, address, after)?;
                    set_strong(&mut read, name);
                    if let Operation::Access(access) = &mut read {
                        access.signed = bytes < 4 && kind.signed();
                    }
                    (read, Vec::new())
                }
                Place::Constant => {
                    let from =
                        Operand::Constant { bank: CONSTANTS, offset: 0, index: Register::Zero };
                    (constant(bytes, kind), sources([from]))
                }
                Place::Parameter => match self.parameter(address, after, bytes)? {
                    Ok(from) => (constant(bytes, kind), sources([from])),
                    Err(passed) => (Operation::Move { wide: bytes == 8 }, sources([passed])),
                },
            };
            let register = match self.written(part)? {
                Written::Register(bits, to) if is_direct && bits == kind.bits => to,
                _ => {
                    let register = self.fresh(bytes == 8)?;
                    loaded.push((part, register));
                    register
                }
            };
            if is_kept(name) && matches!(operation, Operation::Access(_)) {
                self.out.kept.insert(self.out.code.len());
            }
            self.emit(operation, Some((register, if bytes == 8 { 2 } else { 1 })), from);
        }
        for (part, register) in loaded {
            let (bits, to) = match self.written(part)? {
                Written::Register(bits, to) => (bits, to),
                Written::Nothing => continue,
                Written::Predicate(_) => return self.operands(),
            };
            let from = Operand::Register(Register::General(register));
            if bytes == 8 {
                if bits != 64 {
                    return self.operands();
                }
                self.emit(Operation::Move { wide: true }, Some((to, 2)), sources([from]));
                continue;
            }
            let from = match bits > kind.bits {
                true => self.extend(from, kind.bits, kind.signed())?,
                false => from,
            };
            if bits == 64 {
                let widen = Operation::MultiplyAdd {
                    wide: true,
                    high: false,
                    signed: kind.signed(),
                    carry: false,
                };
                let zero = Operand::Register(Register::Zero);
                self.emit(widen, Some((to, 2)), sources([from, Operand::Immediate(1), zero]));
            } else {
                self.emit(Operation::Move { wide: false }, Some((to, 1)), sources([from]));
            }
        }
        Ok(())
    }

    /// A constant of the kernel's parameters, or the register that has what was passed.
    fn parameter(
        &mut self,
        operand: &parse::Operand<'a>,
        after: u32,
        bytes: u32,
    ) -> Result<Result<Operand, Operand>, PtxError> {
        let parse::Operand::Address(Some(name), offset) = *operand else { return self.operands() };
        let at = offset.checked_add(after.into()).ok_or(PtxError::Operands(self.line))?;
        let line = self.line;
        let offset = |at: i64| u16::try_from(at).map_err(|_| PtxError::Operands(line));
        Ok(match self.named(name)? {
            Some(Named::Entry(first)) => {
                let offset = offset(i64::from(BASE + first).saturating_add(at))?;
                Ok(Operand::Constant { bank: 0, offset, index: Register::Zero })
            }
            // The address of a parameter was computed.
            Some(Named::Register(64, first)) if self.in_entry => {
                let index = Register::General(first);
                Ok(Operand::Constant { bank: 0, offset: offset(at)?, index })
            }
            Some(Named::Passed(from)) => {
                let at = u32::try_from(at).map_err(|_| PtxError::Operands(self.line))?;
                let register = self.passed(from, at, bytes)?;
                Err(Operand::Register(Register::General(register)))
            }
            _ => return self.operands(),
        })
    }

    /// The register, or the pair, that is written to memory.
    fn stored(&mut self, operand: &parse::Operand<'a>, bytes: u32) -> Result<Operand, PtxError> {
        if bytes == 8 {
            return self.wide(operand);
        }
        match operand {
            parse::Operand::Name(name) => match self.named(name)? {
                // Of a longer one the lower part.
                Some(Named::Register(_, first)) => Ok(Operand::Register(Register::General(first))),
                _ => self.value(operand),
            },
            _ => self.value(operand),
        }
    }

    pub(super) fn store(&mut self, name: &Name<'a>, operands: &Operands<'a>) -> Done {
        if name.has("async") || name.has("bulk") {
            return Err(PtxError::Instruction(self.line));
        }
        let (count, kind) = self.elements(name)?;
        let [address, from, ..] = operands else { return self.operands() };
        let bytes = kind.bits / 8;
        let parts = self.parts(from, count)?;
        for (part, after) in parts.iter().zip((0..).step_by(bytes as usize)) {
            let from = self.stored(part, bytes)?;
            match place(name) {
                Place::Memory(space) => {
                    let mut access =
                        self.access(AccessKind::Write, space, bytes, address, after)?;
                    set_strong(&mut access, name);
                    self.emit(access, None, sources([from]));
                }
                Place::Constant => return self.operands(),
                Place::Parameter => {
                    let parse::Operand::Address(Some(to), at) = *address else {
                        return self.operands();
                    };
                    let at = at.checked_add(after.into()).and_then(|at| u32::try_from(at).ok());
                    let (Some(Named::Passed(to)), Some(at)) = (self.named(to)?, at) else {
                        return self.operands();
                    };
                    let register = self.passes(to, at, bytes)?;
                    let wide = bytes == 8;
                    let to = (register, if wide { 2 } else { 1 });
                    self.emit(Operation::Move { wide }, Some(to), sources([from]));
                }
            }
        }
        Ok(())
    }

    /// Of an atomic operation: how many bytes, and where.
    fn changed(
        &mut self,
        name: &Name<'a>,
        kind: AccessKind,
        address: &parse::Operand<'a>,
    ) -> Result<(Operation, u32), PtxError> {
        if name.has("async") {
            return Err(PtxError::Instruction(self.line));
        }
        let (count, of) = self.elements(name)?;
        let Place::Memory(space) = place(name) else { return self.operands() };
        let bytes = count as u32 * (of.bits / 8);
        let mut access = self.access(kind, space, bytes, address, 0)?;
        if of.is_float()
            && let Operation::Access(access) = &mut access
        {
            access.strong = false;
        }
        Ok((access, of.bits))
    }

    /// Each register that is written to memory, with a last one that is none: so they are more than
    /// one.
    fn all_stored(&mut self, operands: &Operands<'a>) -> Result<Vec<Source>, PtxError> {
        let (mut registers, mut predicates) = (Vec::new(), Vec::new());
        for operand in operands {
            self.named_in(operand, &mut registers, &mut predicates)?;
        }
        let zero = Source::from(Operand::Register(Register::Zero));
        registers.extend([zero; 2]);
        Ok(registers)
    }

    pub(super) fn atomic(&mut self, name: &Name<'a>, operands: &Operands<'a>) -> Done {
        let [to, address, rest @ ..] = operands else { return self.operands() };
        let (access, bits) = self.changed(name, AccessKind::Atomic, address)?;
        let stored = self.all_stored(rest)?;
        let to = match self.written(to)? {
            Written::Register(64, to) if bits == 64 => Some((to, 2)),
            Written::Register(0..=32, to) if bits <= 32 => Some((to, 1)),
            Written::Nothing => None,
            _ => return self.operands(),
        };
        self.emit(access, to, stored);
        Ok(())
    }

    pub(super) fn reduce(&mut self, name: &Name<'a>, operands: &Operands<'a>) -> Done {
        let [address, rest @ ..] = operands else { return self.operands() };
        let (access, _) = self.changed(name, AccessKind::Reduce, address)?;
        let stored = self.all_stored(rest)?;
        self.emit(access, None, stored);
        Ok(())
    }

    /// Copies of single elements, which a thread waits for itself. What waits for these and other
    /// copies is no access.
    pub(super) fn copy_to_shared(&mut self, name: &Name<'a>, operands: &Operands<'a>) -> Done {
        let waits = ["commit_group", "wait_group", "wait_all", "mbarrier"];
        match name.parts.as_slice() {
            ["async", wait, ..] if waits.contains(wait) => Ok(()),
            ["async", "ca" | "cg", ..] => {
                let [_, address, parse::Operand::Integer(bytes @ (4 | 8 | 16)), ..] = operands
                else {
                    return self.operands();
                };
                let kind = AccessKind::CopyToShared;
                let access = self.access(kind, Space::Global, *bytes as u32, address, 0)?;
                self.emit(access, None, Vec::new());
                Ok(())
            }
            _ => Err(PtxError::Instruction(self.line)),
        }
    }

    pub(super) fn store_matrix(&mut self, operands: &Operands<'a>) -> Done {
        let [_, from] = operands else { return self.operands() };
        let (mut registers, mut predicates) = (Vec::new(), Vec::new());
        self.named_in(from, &mut registers, &mut predicates)?;
        for register in registers {
            let access = Access {
                kind: AccessKind::Write,
                space: Space::Shared,
                bytes: 4,
                count: None,
                address: None,
                strong: false,
                signed: false,
            };
            self.emit(Operation::Access(access), None, vec![register]);
        }
        Ok(())
    }
}

fn constant(bytes: u32, kind: Kind) -> Operation {
    Operation::LoadConstant { bytes: bytes as u8, signed: kind.signed() && bytes < 4 }
}
