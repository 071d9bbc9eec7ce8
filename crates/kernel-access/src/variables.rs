//! The variables of its module that a kernel uses. The driver decides where they are: it puts the address
//! of a variable into constant bank 4, and constant variables are side by side in bank 3.

use std::collections::BTreeSet;

use crate::callees::symbol;
use crate::container::Kernel;
use crate::decode::{Access, AccessKind, Instruction, Operand, Operation, Register, Space};
use crate::instruction::registers_of_a_source;

const CONSTANTS: u8 = 3;
const ADDRESSES: u8 = 4;

/// Where a word is in constant bank 4: the number of its variable, and which half it is, 0 or 4.
pub(crate) type Place = (usize, u32);

/// Each has a number: those of bank 4 first, and then bank 3 as one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Variables {
    /// The places of the addresses that the kernel reads, and the names.
    addresses: Vec<(u32, String)>,
    /// If the kernel reads bank 3: its size, and where in it each variable begins.
    bank: Option<(u32, Vec<(u32, String)>)>,
}

impl Variables {
    pub(crate) fn new(kernel: &Kernel<'_>, code: &[Instruction]) -> Self {
        let constants = code.iter().flat_map(constants);
        let (mut places, mut has_bank) = (BTreeSet::new(), false);
        for (bank, offset, index) in constants {
            match (bank, index) {
                (ADDRESSES, Register::Zero) => _ = places.insert(u32::from(offset) & !7),
                (CONSTANTS, _) => has_bank = true,
                _ => {}
            }
        }
        let address = |place: u32| {
            let inside = symbol(kernel, place).filter(|one| one.is_inside && !one.name.is_empty());
            // The compiler's own have names of this kind, of which there may be several.
            let named = inside.filter(|one| !one.name.starts_with('$'))?;
            Some((place, named.name.to_owned()))
        };
        let addresses = places.into_iter().filter_map(address).collect();
        let bank = kernel.variables.as_ref().filter(|_| has_bank).map(|bank| {
            let names = bank.names.iter();
            // Of two with one name it is not known which is meant.
            let is_one =
                |name: &str| names.clone().filter(|(_, other)| *other == name).count() == 1;
            let named = names.clone().filter(|(_, name)| is_one(name));
            (bank.size, named.map(|(at, name)| (*at, (*name).to_owned())).collect())
        });
        Self { addresses, bank }
    }

    pub(crate) fn count(&self) -> usize {
        self.addresses.len() + usize::from(self.bank.is_some())
    }

    /// What is at this place in bank 4.
    pub(crate) fn at(&self, place: u32) -> Option<Place> {
        let half = place % 8;
        let number = self.addresses.iter().position(|(first, _)| *first == place - half)?;
        matches!(half, 0 | 4).then_some((number, half))
    }

    /// The number and the size of bank 3.
    pub(crate) fn bank(&self) -> Option<(usize, u32)> {
        self.bank.as_ref().map(|(size, _)| (self.addresses.len(), *size))
    }

    /// The constants of bank 3 that an instruction reads, and how many bytes of each at most.
    pub(crate) fn read_by(&self, one: &Instruction) -> impl Iterator<Item = Read> {
        let bytes = match one.operation {
            Operation::LoadConstant { bytes, .. } => bytes.into(),
            other if registers_of_a_source(other) == 1 => 4,
            _ => 8,
        };
        let is_known = self.bank.is_some();
        constants(one)
            .filter(move |(bank, ..)| is_known && *bank == CONSTANTS)
            .map(move |(_, offset, index)| Read { offset, index, bytes })
    }

    /// Where all of them are, by where those are whose addresses the driver gives.
    pub(crate) fn found(&self, address_of: &dyn Fn(&str) -> Option<u64>) -> Vec<Option<u64>> {
        let addresses = self.addresses.iter().map(|(_, name)| address_of(name));
        let bank = self.bank.iter().map(|(_, names)| {
            let begin = |(at, name): &(u32, String)| address_of(name)?.checked_sub((*at).into());
            let mut begins = names.iter().filter_map(begin);
            let first = begins.next()?;
            // They are side by side, or something was not understood.
            begins.all(|other| other == first).then_some(first)
        });
        addresses.chain(bank).collect()
    }

    /// All names, each with its number.
    pub(crate) fn names(&self) -> impl Iterator<Item = (usize, &str)> {
        let bank = self.bank.iter().flat_map(|(_, names)| names);
        let bank = bank.map(|(_, name)| (self.addresses.len(), name));
        let addresses = self.addresses.iter().enumerate().map(|(at, (_, name))| (at, name));
        addresses.chain(bank).map(|(number, name)| (number, &**name))
    }
}

/// A constant of bank 3 that an instruction reads. The compiler reads more than the program has asked for: a
/// word for a byte, of which other variables may have a part. So no byte of it is sure, but one of all is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    pub(crate) offset: u16,
    pub(crate) index: Register,
    pub(crate) bytes: u32,
}

fn constants(one: &Instruction) -> impl Iterator<Item = (u8, u16, Register)> {
    one.sources.iter().filter_map(|source| match source.operand {
        Operand::Constant { bank, offset, index } => Some((bank, offset, index)),
        _ => None,
    })
}

/// The access by which a constant variable is read.
pub(crate) fn constant(bytes: u32) -> Access {
    let (kind, space, bytes) = (AccessKind::Read, Space::Global, bytes.min(16) as u8);
    Access { kind, space, bytes, count: None, address: None, strong: false, signed: false }
}
