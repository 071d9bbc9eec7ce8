//! Instructions that access memory.

use super::bits::{Bits, Form};
use crate::instruction::after;

use super::{Instruction, Operand, Operation, Predicate, Register, Source};

/// Which memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Space {
    /// The device's memory, and what it reaches.
    Global,
    /// Any, by the address.
    Generic,
    /// That of a block.
    Shared,
    /// That of a thread.
    Local,
    /// The device's memory as a tensor map describes it, whose address is given.
    Tensor,
}

/// In which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AccessKind {
    /// The destination is read.
    Read,
    /// A register is written.
    Write,
    /// Memory is changed, and what it was is the destination.
    Atomic,
    /// Memory is changed.
    Reduce,
    /// Memory of a block becomes a copy of the global memory that is read.
    CopyToShared,
    /// A bulk copy or something like it, of which it is not decoded which bytes it copies.
    Unknown,
}

/// An address: the sum of what is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Address {
    /// A register, or the first of a pair if `wide`.
    pub base: Register,
    /// The base has 64 bits. Otherwise it is a number without sign.
    pub wide: bool,
    /// By how much the base is multiplied.
    pub scale: u8,
    /// The first of a pair.
    pub uniform: Option<Register>,
    /// Bytes.
    pub offset: i32,
}

/// An access. Only the address of one to global or generic memory is given, or that of its tensor map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Access {
    /// In which way.
    pub kind: AccessKind,
    /// Which memory.
    pub space: Space,
    /// How many bytes: exactly, for reads and writes; for the others at most. One where the tensor map
    /// says how many.
    pub bytes: u8,
    /// Of a bulk copy, how often so many bytes follow each other: the lower half of this register.
    pub count: Option<Register>,
    /// Where, if it is known how it is computed: not of textures and surfaces, which have a handle.
    pub address: Option<Address>,
    /// It is meant for what other threads do at the same time, as a flag's: a load or store that is
    /// `volatile`, `relaxed`, `acquire` or `release`, and each atomic operation on integers. Nobody waits
    /// for a sum of floats.
    pub strong: bool,
    /// It loads one or two bytes with their sign. The others are loaded without.
    pub signed: bool,
}

/// Fills in an instruction if it is one of these.
pub(super) fn decode(bits: Bits, to: &mut Instruction) -> bool {
    fill(bits, to).is_some()
}

/// Fills in an instruction that reads or writes what a texture or a surface is made of, if it is one.
/// Its handle says where that is.
pub(super) fn described(bits: Bits, to: &mut Instruction) -> bool {
    fill_described(bits, to).is_some()
}

fn fill_described(bits: Bits, to: &mut Instruction) -> Option<()> {
    let (constant, uniform) = (Form::SecondConstant, Form::ThirdUniform);
    let is_surface = matches!(bits.number(), 0x199 | 0x19a | 0x19d | 0x19e);
    // Where the handle is: at the place that the instruction names, or in a register.
    let by_register = match bits.number() {
        // TEX, TLD4, TLD, TXD, TXQ; SULD, SUST
        0x160 | 0x163 | 0x166 | 0x16c | 0x16f | 0x199 | 0x19d => {
            matches!(bits.form(), form if form == uniform || form == constant && !bits.late)
                .then_some(false)?
        }
        0x161 | 0x164 | 0x167 | 0x16d | 0x170 => {
            (bits.form() == Form::Registers).then_some(true)?
        }
        0x19a | 0x19e => (bits.form() == Form::SecondImmediate).then_some(true)?,
        _ => return None,
    };
    let handle = match bits.form() == constant && !by_register {
        true => Some(Operand::Constant {
            bank: bits.field(54, 59) as u8,
            offset: bits.field(40, 54) as u16 * 4,
            index: Register::Zero,
        }),
        false => None,
    };
    let is_write = matches!(bits.number(), 0x19d | 0x19e);
    let size = match is_surface {
        // Without a format.
        true => bits.bit(72).then(|| super::compute::width(bits))??.0,
        false => 16,
    };
    let kind = if is_write { AccessKind::Write } else { AccessKind::Read };
    let space = Space::Global;
    let (address, count) = (None, None);
    let strong = is_surface;
    let access = Access { kind, space, bytes: size, count, address, strong, signed: false };
    to.operation = Operation::Access(access);
    if is_write {
        to.sources = vec![Operand::Register(bits.general(32)).into()];
    } else {
        to.destination = Some(match is_surface {
            true => (bits.general(16), size.div_ceil(4)),
            false => texels(bits)?,
        });
        // A question about a texture has no answer of this kind.
        if !matches!(bits.number(), 0x16f | 0x170) {
            to.predicates_written = vec![bits.predicate(81)];
        }
    }
    to.sources.extend(handle.map(Source::from));
    Some(())
}

/// The registers that a texture's values go to, and all between: the first two channels to one place,
/// the others to a second.
fn texels(bits: Bits) -> Option<(Register, u8)> {
    let channels = bits.field(72, 76).count_ones() as u16;
    let places = [(16, channels.min(2)), (64, channels.saturating_sub(2))];
    let all = places.into_iter().filter_map(|(at, count)| match bits.general(at) {
        Register::General(first) if count > 0 => Some((first, first + count)),
        _ => None,
    });
    let all: Vec<(u16, u16)> = all.collect();
    let Some(first) = all.iter().map(|of| of.0).min() else { return Some((Register::Zero, 0)) };
    let end = all.iter().map(|of| of.1).max()?;
    Some((Register::General(first), u8::try_from(end - first).ok()?))
}

/// Where in a tensor a tile is that a copy by a tensor map copies: behind the place in shared memory, and
/// behind that of the barrier.
fn coordinates(bits: Bits) -> Vec<Source> {
    let before = match bits.number() {
        0x1b4 => 2,
        0x1b5 | 0x1b6 => 1,
        _ => return Vec::new(),
    };
    // Neither a map for convolutions, nor rows that are gathered.
    if bits.field(82, 85) != 0 {
        return Vec::new();
    }
    let first = std::iter::successors(Some(bits.uniform(32)), |&of| Some(after(of)));
    let rank = bits.field(79, 82) as usize + 1;
    first.skip(before).take(rank).map(|of| Operand::Register(of).into()).collect()
}

fn fill(bits: Bits, to: &mut Instruction) -> Option<()> {
    use AccessKind::{Atomic, CopyToShared, Read, Reduce, Unknown, Write};
    use Space::{Generic, Global, Local, Shared, Tensor};
    let number = bits.number();
    let (kind, space) = match number {
        // Matrices, of one register to four.
        0x03b => (Read, Shared),
        0x044 => (Write, Shared),
        0x180 => (Read, Generic),
        0x181 => (Read, Global),
        0x183 => (Read, Local),
        0x184 => (Read, Shared),
        0x185 => (Write, Generic),
        0x186 => (Write, Global),
        0x187 => (Write, Local),
        0x188 => (Write, Shared),
        0x18e | 0x1a6 => (Reduce, Global),
        0x1a8 | 0x1a9 => (Atomic, Global),
        0x18a | 0x18b => (Atomic, Generic),
        // Of halves, and of floats.
        0x1a2 if bits.form() == Form::SecondImmediate => (Atomic, Generic),
        0x1a3 if matches!(bits.form(), Form::Registers | Form::SecondImmediate) => (Atomic, Global),
        // Of 32 bytes.
        0x17e if bits.late && bits.form() == Form::SecondImmediate => (Read, Global),
        0x17f if bits.late && bits.form() == Form::SecondImmediate => (Write, Global),
        0x18c | 0x18d => (Atomic, Shared),
        0x1ae => (CopyToShared, Global),
        // Copies by a tensor map: to shared memory, ahead of time, from it, and with a reduction.
        0x1b4..=0x1b6 | 0x1b8 if !matches!(bits.form(), Form::Registers | Form::ThirdImmediate) => {
            return None;
        }
        0x1b4 | 0x1b8 => (CopyToShared, Tensor),
        0x1b5 => (Write, Tensor),
        0x1b6 => (Reduce, Tensor),
        // Bulk copies, and those with a reduction. Where a mask says which bytes, they are not known.
        0x1ba if bits.field(77, 91) == 0 && bits.architecture >= 90 => match bits.field(72, 75) {
            2 => (CopyToShared, Global),
            4 => (Write, Global),
            6 => (Write, Shared),
            _ => (Unknown, Global),
        },
        0x1bb if bits.field(72, 75) == 4 && bits.architecture >= 90 => (Reduce, Global),
        0x1ba | 0x1bb => (Unknown, Global),
        _ => return None,
    };
    let is_bulk = matches!(number, 0x1ba | 0x1bb) && kind != Unknown;
    // Their register has the bytes divided by this, and multicast's mask above.
    let count = is_bulk.then(|| bits.uniform(64));
    let bytes = match kind {
        _ if space == Tensor => 1,
        _ if is_bulk => 16,
        Read | Write if matches!(number, 0x03b | 0x044) => match bits.field(72, 74) {
            0 => 4,
            1 => 8,
            2 => 16,
            _ => return None,
        },
        Read | Write if matches!(number, 0x17e | 0x17f) => 32,
        Read | Write => super::compute::width(bits)?.0,
        Reduce if number == 0x1a6 => floats(bits).unwrap_or(16),
        Atomic if matches!(number, 0x1a2 | 0x1a3) => floats(bits)?,
        Atomic | Reduce => match bits.field(73, 76) {
            0 | 1 => 4,
            2 | 3 => 8,
            _ => 16,
        },
        CopyToShared | Unknown => 16,
    };
    let address = match (kind, space) {
        (Unknown, _) | (_, Shared) => None,
        (_, Local) => local(bits),
        (_, Global) if is_bulk => {
            let uniform = Some(bits.uniform(if kind == CopyToShared { 24 } else { 32 }));
            Some(Address { base: Register::Zero, wide: true, scale: 1, uniform, offset: 0 })
        }
        // Maps for convolutions are of another kind, of which less is known.
        (_, Tensor) => (!bits.bit(82)).then_some(Address {
            base: Register::Zero,
            wide: true,
            scale: 1,
            uniform: Some(bits.uniform(24)),
            offset: 0,
        }),
        _ => Some(global(bits)?),
    };
    let strong = match kind {
        _ if space == Tensor => false,
        // Weak, and of memory that nobody writes. The others have a scope.
        Read | Write if !is_bulk => {
            matches!(space, Global | Generic) && !matches!(bits.field(77, 81), 0 | 4)
        }
        _ => matches!(kind, Atomic | Reduce) && !is_bulk && !is_of_floats(bits),
    };
    let signed =
        kind == Read && bytes < 4 && super::compute::width(bits).is_none_or(|width| width.1);
    to.operation = Operation::Access(Access { kind, space, bytes, count, address, strong, signed });
    match kind {
        Read if bytes == 32 => to.destination = Some(both(bits)),
        Read => {
            to.destination = Some((bits.general(16), bytes.div_ceil(4)));
            if matches!(number, 0x180 | 0x181) {
                to.predicates_read = vec![condition(bits)];
            }
            // Of a load, whether it is a hit, for some.
            if space == Global {
                to.predicates_written = vec![bits.predicate(81)];
            }
        }
        // A comparison in shared memory that says only whether it was equal.
        Atomic if number == 0x18d && bits.form() == Form::ThirdImmediate => {
            to.predicates_written = vec![bits.predicate(81)];
        }
        Atomic => {
            to.destination = Some((bits.general(16), bytes.div_ceil(4)));
            if space != Shared {
                to.predicates_written = vec![bits.predicate(81)];
            }
        }
        _ if space == Tensor => to.sources = coordinates(bits),
        // From shared memory.
        Write | Reduce if is_bulk => {}
        Write if bytes == 32 => {
            to.sources = [32, 16].map(|at| Operand::Register(bits.general(at)).into()).to_vec();
        }
        Write if is_short_store(bits) => {
            to.sources = vec![Operand::Register(bits.general(64)).into()];
        }
        Write => to.sources = vec![Operand::Register(bits.general(32)).into()],
        Reduce => to.sources = vec![Operand::Register(bits.general(32)).into()],
        CopyToShared | Unknown => {}
    }
    Some(())
}

/// What a load asks for besides its guard: otherwise the destination becomes zero.
fn condition(bits: Bits) -> Predicate {
    Predicate::new(7 - bits.field(64, 67), false, bits.bit(67))
}

/// The registers that the halves of 32 bytes go to, and all between.
fn both(bits: Bits) -> (Register, u8) {
    let halves = [16, 64].map(|at| bits.general(at));
    let numbers = halves.iter().filter_map(|half| match half {
        Register::General(number) => Some(*number),
        _ => None,
    });
    let (first, last) = (numbers.clone().min(), numbers.max());
    match first.zip(last) {
        Some((first, last)) => (Register::General(first), (last - first) as u8 + 4),
        None => (Register::Zero, 0),
    }
}

/// The bytes of the numbers that some atomic operations and reductions work on: two halves to eight, of
/// both kinds, one float to four, and a double.
fn floats(bits: Bits) -> Option<u8> {
    Some(match bits.field(73, 77) {
        0 | 3 | 9 => 4,
        1 | 4 | 10 | 15 => 8,
        2 | 5 | 11 => 16,
        _ => return None,
    })
}

/// Whether an atomic operation or a reduction is one of floats, before sm_90 by its type.
fn is_of_floats(bits: Bits) -> bool {
    match bits.number() {
        0x1a2 | 0x1a3 | 0x1a6 => true,
        0x18a | 0x18e | 0x1a8 => matches!(bits.field(73, 76), 3 | 4 | 6),
        _ => false,
    }
}

/// A store to generic memory without uniform registers has its fields at other places.
fn is_short_store(bits: Bits) -> bool {
    bits.number() == 0x185 && bits.form() == Form::Registers
}

/// Whether the uniform registers of loads, stores and copies are a descriptor. Otherwise they are
/// added to the address.
const DESCRIPTOR: u32 = 76;

/// The address of an access to a thread's own memory, of one of the forms that are known.
fn local(bits: Bits) -> Option<Address> {
    let is_store = bits.number() == 0x187;
    let is_known = match bits.form() {
        Form::Registers => is_store,
        form => form == Form::SecondImmediate && (!is_store || bits.bit(91)),
    };
    let uniform = || bits.uniform(if is_store { 64 } else { 32 });
    is_known.then_some(Address {
        base: bits.general(24),
        wide: false,
        scale: 1,
        uniform: bits.bit(91).then(uniform).filter(|of| *of != Register::Zero),
        offset: bits.signed(40, 64) as i32,
    })
}

/// The address of an access to global memory, where the instruction has one of the forms that are
/// known. The uniform registers are those of a descriptor, which is not a part of the address, or
/// are added to it, depending on bits that moved with the architecture.
fn global(bits: Bits) -> Option<Address> {
    let added = |register| (register != Register::Zero).then_some(register);
    // The bit for addresses of 64 bits.
    (matches!(bits.number(), 0x17e | 0x17f | 0x1ae) || bits.bit(72)).then_some(())?;
    let with_uniform = bits.bit(91);
    let base_is_wide = bits.bit(90);
    let plain = Address {
        base: bits.general(24),
        wide: true,
        scale: 1,
        uniform: None,
        offset: bits.signed(40, 64) as i32,
    };
    match bits.number() {
        number @ (0x180 | 0x181 | 0x185 | 0x186) => {
            let store = number >= 0x185;
            let added = added(bits.uniform(if store { 64 } else { 32 }));
            match (with_uniform, base_is_wide) {
                (false, _) if is_short_store(bits) => (bits.field(55, 64) == 0)
                    .then_some(Address { offset: bits.field(32, 55) as i32, ..plain }),
                (false, _) if number == 0x180 && bits.form() == Form::SecondImmediate => {
                    Some(Address { offset: bits.signed(32, 64) as i32, ..plain })
                }
                (false, _) => (bits.form() == Form::Registers).then_some(plain),
                (true, true) if bits.bit(DESCRIPTOR) => Some(plain),
                (true, true) => Some(Address { uniform: added, ..plain }),
                (true, false) => {
                    let wide = plain.base == Register::Zero;
                    (!bits.bit(DESCRIPTOR)).then_some(Address { wide, uniform: added, ..plain })
                }
            }
        }
        // What of the 32 bytes counts is in a mask; all of them, and no condition of its own.
        number @ (0x17e | 0x17f) => {
            let (offset, first, all) = match number {
                0x17e => (bits.signed(40, 57), 32, [(57, 64), (72, 73), (91, 92)]),
                _ => (bits.signed(40, 59), 64, [(59, 64), (88, 91), (91, 92)]),
            };
            let is_whole =
                all.iter().all(|&(low, high)| bits.field(low, high) + 1 == 1 << (high - low));
            let is_sure = number == 0x17f || bits.field(87, 91) == 0;
            let uniform = added(bits.uniform(first)).filter(|_| !bits.bit(DESCRIPTOR));
            (is_whole && is_sure).then_some(Address {
                offset: (offset * 32) as i32,
                uniform,
                ..plain
            })
        }
        0x18e | 0x1a6 => match (with_uniform, base_is_wide) {
            (false, _) => Some(plain),
            (true, false) => None,
            _ if bits.late || bits.bit(71) => Some(plain),
            _ => Some(Address { uniform: Some(bits.uniform(64)), ..plain }),
        },
        // Without a descriptor.
        0x1a3 | 0x1a8 if !with_uniform => (bits.form() == Form::Registers).then_some(plain),
        0x1a2 | 0x1a3 | 0x1a8 | 0x18a if bits.late => (with_uniform && bits.bit(63))
            .then_some(Address { offset: bits.signed(40, 63) as i32, ..plain }),
        0x1a2 | 0x1a3 | 0x1a8 | 0x18a => {
            (!bits.late && with_uniform && bits.field(70, 72) == 3).then_some(plain)
        }
        0x1a9 | 0x18b => (!with_uniform).then_some(plain),
        // The bits above the offset are that of the shared memory's address. Which bytes are copied
        // may depend on a predicate; it is as if all were.
        0x1ae => {
            let offset = bits.signed(32, 44) as i32;
            let plain = Address { offset, wide: true, ..plain };
            let known = with_uniform && (bits.late || bits.bit(70));
            let address = match bits.form() {
                // The uniform register is a part of the shared memory's address.
                Form::SecondUniform => plain,
                Form::ThirdUniform if bits.bit(DESCRIPTOR) => plain,
                Form::ThirdUniform => Address { uniform: added(bits.uniform(64)), ..plain },
                _ => return None,
            };
            known.then_some(address)
        }
        _ => None,
    }
}
