//! Cubins: ELF files with a section of code and one of attributes for each kernel.

use std::collections::BTreeSet;

use super::{Error, damaged, starts_with};
use crate::bytes::{slice, text, u16, u32, u64};

const ELF: u32 = 0x464c_457f;
const CUDA: u16 = 190;
/// The ABI version that `sm_100` and later began with: the architecture is at another place.
const NEW_ABI: u8 = 8;

/// Attributes of `.nv.info.KERNEL`.
const PARAMETER: u8 = 0x17;
const PARAMETER_BANK: u8 = 0x0a;
const INDIRECT_BRANCHES: u8 = 0x34;
/// The format of an attribute that has a length of its own. The others have two bytes.
const SIZED: u8 = 4;

/// A kernel's parameter, as bytes of the launch's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parameter {
    /// Which parameter of the function it is, from 0.
    pub ordinal: u16,
    /// Where it begins in the launch's parameters.
    pub offset: u32,
    /// How many bytes it has.
    pub size: u32,
}

/// A kernel in a [`Cubin`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Kernel<'a> {
    /// The name as the driver has it, mangled.
    pub name: &'a str,
    /// Whether programs can launch it. Otherwise it is a function that kernels call.
    pub is_entry: bool,
    /// Its machine code, and that of functions that it calls and that were not inlined.
    pub code: &'a [u8],
    /// By their offsets. Empty also if the image does not say.
    pub parameters: Vec<Parameter>,
    /// Where the parameters are in constant bank 0, and how many bytes they have.
    pub parameter_bank: Option<(u32, u32)>,
    /// Constant bank 2, in which the compiler keeps numbers of this kernel. `None` if there is none,
    /// or the driver fills in some of it.
    pub constants: Option<&'a [u8]>,
    /// What the driver puts the addresses of into constant bank 4, by the places there.
    pub symbols: Vec<(u32, Symbol<'a>)>,
    /// Constant bank 3: the constant variables of the module. `None` if there are none.
    pub variables: Option<ConstantBank<'a>>,
    /// Where in constant bank 4 the addresses of functions are that never return: of `__assertfail`,
    /// which an `assert` calls.
    pub never_return: Vec<u32>,
    /// The places in the code that the driver changes when it loads it: it puts parts of addresses there.
    pub filled_in: Vec<u64>,
    /// The branches to computed places, by their offsets in the code, with all places that each may
    /// go to. Of a branch that is not here the image does not say.
    pub indirect_branches: Vec<(u32, Vec<u32>)>,
}

/// The constant variables of a module, which are side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConstantBank<'a> {
    /// How many bytes all of them have.
    pub size: u32,
    /// Where each begins, and its name, mangled. Two may have one name.
    pub names: Vec<(u32, &'a str)>,
}

/// A variable of the module, or a function of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Symbol<'a> {
    /// Its name, mangled.
    pub name: &'a str,
    /// Whether the image has it. Otherwise it is the driver's, or another image's.
    pub is_inside: bool,
    /// How many bytes it has, as far as the image says.
    pub size: u64,
    /// What is in it at first. `None` for zeros, and for what is not in the image.
    pub bytes: Option<&'a [u8]>,
}

/// Machine code for one architecture.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cubin<'a> {
    /// As in `sm_90`: 90.
    pub architecture: u32,
    /// What has machine code: kernels, and functions that kernels call.
    pub kernels: Vec<Kernel<'a>>,
}

/// The function of the driver that an `assert` calls when it fails.
pub(crate) const NEVER_RETURNS: &str = "__assertfail";

/// Whether it is an ELF file for this machine: a host's program is one, too.
pub(super) fn is_elf(image: &[u8]) -> bool {
    starts_with(image, ELF) && u16(image, 18) == Some(CUDA)
}

/// The end of the headers and of all sections and segments. A cubin's program headers may lie
/// behind everything else.
pub(super) fn length(start: &[u8]) -> Result<Option<u64>, u64> {
    let Some(headers) = Headers::parse(start) else { return Ok(None) };
    let (Some(sections), Some(segments)) = (headers.sections_end(), headers.segments_end()) else {
        return Ok(None);
    };
    let end = sections.max(segments);
    if (start.len() as u64) < end {
        return Err(end);
    }
    let mut end = end.max(64);
    for index in 0..u64::from(headers.count) {
        let Some(section) = Section::parse(start, headers.offset + index * SECTION) else {
            return Ok(None);
        };
        let Some(section_end) = section.offset.checked_add(section.bytes()) else {
            return Ok(None);
        };
        end = end.max(section_end);
    }
    for index in 0..u64::from(headers.segments) {
        let at = headers.segments_offset + index * SEGMENT;
        let (Some(offset), Some(size)) = (u64(start, at + 8), u64(start, at + 32)) else {
            return Ok(None);
        };
        let Some(segment_end) = offset.checked_add(size) else { return Ok(None) };
        end = end.max(segment_end);
    }
    Ok(Some(end))
}

const SECTION: u64 = 64;
const SEGMENT: u64 = 56;

/// Of the file's header: where the sections' and the segments' headers are.
struct Headers {
    offset: u64,
    count: u16,
    names: u16,
    segments_offset: u64,
    segments: u16,
}

impl Headers {
    fn parse(image: &[u8]) -> Option<Self> {
        // 64 bits, little-endian.
        (slice(image, 4, 2)? == [2, 1]).then_some(())?;
        let headers = Self {
            offset: u64(image, 0x28)?,
            count: u16(image, 0x3c)?,
            names: u16(image, 0x3e)?,
            segments_offset: u64(image, 0x20)?,
            segments: u16(image, 0x38)?,
        };
        let sizes = (headers.count == 0 || u64::from(u16(image, 0x3a)?) == SECTION)
            && (headers.segments == 0 || u64::from(u16(image, 0x36)?) == SEGMENT);
        sizes.then_some(headers)
    }

    fn sections_end(&self) -> Option<u64> {
        self.offset.checked_add(u64::from(self.count) * SECTION)
    }

    fn segments_end(&self) -> Option<u64> {
        self.segments_offset.checked_add(u64::from(self.segments) * SEGMENT)
    }
}

struct Section {
    name: u32,
    kind: u32,
    offset: u64,
    size: u64,
}

impl Section {
    fn parse(image: &[u8], at: u64) -> Option<Self> {
        let header = slice(image, at, SECTION)?;
        Some(Self {
            name: u32(header, 0)?,
            kind: u32(header, 4)?,
            offset: u64(header, 0x18)?,
            size: u64(header, 0x20)?,
        })
    }

    /// How many bytes of the file it has.
    fn bytes(&self) -> u64 {
        const NO_BITS: u32 = 8;
        // Shared memory and zeroed variables have a size, and no bytes.
        const CUDA_NO_BITS: std::ops::RangeInclusive<u32> = 0x7000_0007..=0x7000_0015;
        if self.kind == NO_BITS || CUDA_NO_BITS.contains(&self.kind) { 0 } else { self.size }
    }
}

impl<'a> Cubin<'a> {
    /// The kernels of a cubin.
    ///
    /// # Errors
    ///
    /// When the bytes are no cubin, or a part of it that is needed is damaged.
    pub fn parse(image: &'a [u8]) -> Result<Self, Error> {
        if !is_elf(image) {
            return Err(Error::NotAnImage);
        }
        let headers = damaged(Headers::parse(image), "a cubin's header")?;
        let flags = damaged(u32(image, 0x30), "a cubin's header")?;
        let abi = damaged(slice(image, 8, 1), "a cubin's header")?;
        let architecture = if abi >= &[NEW_ABI] { flags >> 8 & 0xffff } else { flags & 0xff };
        damaged(headers.sections_end(), "a cubin's sections")?;
        let sections: Vec<Section> = (0..u64::from(headers.count))
            .map(|index| {
                damaged(
                    Section::parse(image, headers.offset + index * SECTION),
                    "a cubin's sections",
                )
            })
            .collect::<Result<_, _>>()?;
        let names = damaged(sections.get(usize::from(headers.names)), "a cubin's section names")?;
        let names = damaged(slice(image, names.offset, names.size), "a cubin's section names")?;
        let mut named = Vec::with_capacity(sections.len());
        for section in &sections {
            named.push((damaged(text(names, section.name.into()), "a section's name")?, section));
        }
        let symbols = damaged(symbols(image, &named), "a cubin's table of addresses")?;
        let is_without_return =
            |(_, of): &&(u32, Symbol<'_>)| !of.is_inside && of.name == NEVER_RETURNS;
        let never_return: Vec<u32> =
            symbols.iter().filter(is_without_return).map(|(place, _)| *place).collect();
        let called = called(image, &named).unwrap_or_default();
        let variables = constant_bank(image, &named);
        let mut kernels = Vec::new();
        for (name, section) in &named {
            let Some(name) = name.strip_prefix(".text.") else { continue };
            let code = damaged(slice(image, section.offset, section.size), "a kernel's code")?;
            let mut kernel = Kernel {
                name,
                is_entry: !called.contains(name),
                code,
                parameters: Vec::new(),
                parameter_bank: None,
                constants: None,
                symbols: symbols.clone(),
                variables: variables.clone(),
                never_return: never_return.clone(),
                filled_in: Vec::new(),
                indirect_branches: Vec::new(),
            };
            // Functions that kernels call have code of their own, too, but no parameter bank.
            let info =
                named.iter().find(|(other, _)| other.strip_prefix(".nv.info.") == Some(name));
            if let Some((_, info)) = info {
                let info = damaged(slice(image, info.offset, info.size), "a kernel's attributes")?;
                kernel.read_attributes(info)?;
            }
            let bank = |prefix: &str| {
                let of_kernel = |other: &str| other.strip_prefix(prefix) == Some(name);
                named.iter().find(|(other, section)| of_kernel(other) && section.size > 0)
            };
            if kernel.parameters.is_empty() && kernel.parameter_bank.is_none() {
                // A kernel without parameters has no attribute for them; they would be at the end.
                kernel.parameter_bank = bank(".nv.constant0.")
                    .and_then(|(_, section)| Some((section.size.try_into().ok()?, 0)));
            }
            for (prefix, size) in [(".rel.text.", 16), (".rela.text.", 24)] {
                let Some((_, section)) = bank(prefix) else { continue };
                let table = slice(image, section.offset, section.size);
                let entries = damaged(table, "a kernel's table of addresses")?.chunks(size);
                for entry in entries {
                    let place = damaged(u64(entry, 0), "a kernel's table of addresses")?;
                    kernel.filled_in.push(place);
                }
            }
            let filled_in = [".rel.nv.constant2.", ".rela.nv.constant2."];
            if let Some((_, section)) = bank(".nv.constant2.")
                && filled_in.into_iter().all(|prefix| bank(prefix).is_none())
            {
                let bytes = slice(image, section.offset, section.size);
                kernel.constants = Some(damaged(bytes, "a kernel's constants")?);
            }
            kernel.parameters.sort_by_key(|parameter| parameter.offset);
            kernels.push(kernel);
        }
        Ok(Self { architecture, kernels })
    }

    /// The kernel of that name.
    pub fn kernel(&self, name: &str) -> Option<&Kernel<'a>> {
        self.kernels.iter().find(|kernel| kernel.name == name)
    }
}

/// The functions that kernels call, by the table of symbols.
fn called<'a>(image: &'a [u8], sections: &[(&str, &Section)]) -> Option<BTreeSet<&'a str>> {
    const SYMBOL: usize = 24;
    const FUNCTION: u8 = 2;
    /// Among the other bits of a symbol.
    const ENTRY: u8 = 0x10;
    let bytes = |wanted: &str| {
        let (_, section) = sections.iter().find(|(name, _)| *name == wanted)?;
        slice(image, section.offset, section.size)
    };
    let names = bytes(".strtab")?;
    let is_called = |symbol: &[u8]| {
        let &[kind, other] = slice(symbol, 4, 2)? else { return None };
        let named = (kind & 15 == FUNCTION && other & ENTRY == 0).then(|| u32(symbol, 0))?;
        text(names, named?.into())
    };
    let (symbols, _) = bytes(".symtab")?.as_chunks::<SYMBOL>();
    Some(symbols.iter().filter_map(|symbol| is_called(symbol)).collect())
}

/// What the driver fills in addresses of in constant bank 4. `None` if the bank's table is damaged.
fn symbols<'a>(image: &'a [u8], sections: &[(&str, &Section)]) -> Option<Vec<(u32, Symbol<'a>)>> {
    /// An address of 64 bits.
    const ADDRESS: u64 = 2;
    let bytes = |wanted: &str| {
        let found = sections.iter().find(|(name, _)| *name == wanted);
        found.map(|(_, section)| slice(image, section.offset, section.size))
    };
    let mut places = Vec::new();
    for (name, size) in [(".rel.nv.constant4", 16), (".rela.nv.constant4", 24)] {
        let Some(table) = bytes(name) else { continue };
        let (symbols, names) = (bytes(".symtab")??, bytes(".strtab")??);
        for entry in table?.chunks_exact(size) {
            let (place, info) = (u64(entry, 0)?, u64(entry, 8)?);
            let symbol = slice(symbols, (info >> 32).checked_mul(24)?, 24)?;
            let is_itself = entry.get(16..).is_none_or(|added| added.iter().all(|&byte| byte == 0));
            if info & u64::from(u32::MAX) != ADDRESS || !is_itself {
                continue;
            }
            let (section, value, size) = (u16(symbol, 6)?, u64(symbol, 8)?, u64(symbol, 16)?);
            let within = sections.get(usize::from(section)).filter(|_| section != 0);
            let within = within.filter(|(_, of)| of.bytes() > 0);
            let bytes =
                within.and_then(|(_, of)| slice(slice(image, of.offset, of.size)?, value, size));
            let (name, is_inside) = (text(names, u32(symbol, 0)?.into())?, section != 0);
            places.push((u32::try_from(place).ok()?, Symbol { name, is_inside, size, bytes }));
        }
    }
    Some(places)
}

/// The constant variables, by the table of symbols. `None` also if that is damaged.
fn constant_bank<'a>(image: &'a [u8], sections: &[(&str, &Section)]) -> Option<ConstantBank<'a>> {
    const SYMBOL: usize = 24;
    const OBJECT: u8 = 1;
    let is_bank = |(name, _): &(&str, &Section)| *name == ".nv.constant3";
    let number = sections.iter().position(is_bank)?;
    let size = u32::try_from(sections.get(number)?.1.size).ok()?;
    let bytes = |wanted: &str| {
        let (_, section) = sections.iter().find(|(name, _)| *name == wanted)?;
        slice(image, section.offset, section.size)
    };
    let names = bytes(".strtab")?;
    let variable = |symbol: &[u8]| {
        let is_object = slice(symbol, 4, 1)?.iter().all(|kind| kind & 15 == OBJECT);
        let is_there = is_object && usize::from(u16(symbol, 6)?) == number;
        let name = text(names, u32(symbol, 0)?.into())?;
        is_there.then_some((u32::try_from(u64(symbol, 8)?).ok()?, name))
    };
    let (symbols, _) = bytes(".symtab")?.as_chunks::<SYMBOL>();
    let names: Vec<_> = symbols.iter().filter_map(|symbol| variable(symbol)).collect();
    (!names.is_empty()).then_some(ConstantBank { size, names })
}

/// Each has its own place, a word that is not used, the number of its places, and these.
fn branches(value: &[u8]) -> Option<Vec<(u32, Vec<u32>)>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < value.len() as u64 {
        let (branch, count) = (u32(value, at)?, u32(value, at + 8)?);
        let places = slice(value, at + 12, u64::from(count) * 4)?;
        let places = (0..u64::from(count)).map(|place| u32(places, place * 4));
        found.push((branch, places.collect::<Option<_>>()?));
        at += 12 + u64::from(count) * 4;
    }
    Some(found)
}

impl Kernel<'_> {
    fn read_attributes(&mut self, info: &[u8]) -> Result<(), Error> {
        let mut at = 0;
        while at < info.len() as u64 {
            let head = damaged(slice(info, at, 4), "an attribute of a kernel")?;
            let &[format, attribute, ..] = head else {
                return Err(Error::Damaged("an attribute of a kernel"));
            };
            at += 4;
            if format != SIZED {
                continue;
            }
            let size = damaged(u16(head, 2), "an attribute of a kernel")?;
            let value = damaged(slice(info, at, size.into()), "an attribute of a kernel")?;
            at += u64::from(size);
            match attribute {
                PARAMETER => {
                    let parameter = (|| {
                        Some(Parameter {
                            ordinal: u16(value, 4)?,
                            offset: u16(value, 6)?.into(),
                            // The lower bits are its alignment and its bank.
                            size: u32(value, 8)? >> 18,
                        })
                    })();
                    self.parameters.push(damaged(parameter, "a parameter of a kernel")?);
                }
                PARAMETER_BANK => {
                    let bank = u16(value, 4)
                        .zip(u16(value, 6))
                        .map(|(base, size)| (base.into(), size.into()));
                    self.parameter_bank = Some(damaged(bank, "a kernel's parameter bank")?);
                }
                INDIRECT_BRANCHES => {
                    let branches = branches(value).ok_or(Error::Damaged("a list of branches"))?;
                    self.indirect_branches.extend(branches);
                }
                _ => {}
            }
        }
        Ok(())
    }
}
