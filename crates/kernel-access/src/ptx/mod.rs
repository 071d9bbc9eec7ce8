//! PTX: the text that the driver compiles for its device when a program brings no machine code for it.
//!
//! A [`Module`] has the kernels of a text with their parameters, which lie in a launch as they do
//! for machine code. [`Code::from_ptx`](crate::code::Code::from_ptx) makes the same instructions of
//! a kernel that machine code is decoded to, so everything that is said of a kernel's code is said of
//! its PTX in the same way.
//!
//! An instruction that is not known has no effect on memory only if it is in a list of those; any other
//! makes the kernel unknown. The driver may leave out a read of which nothing depends, so none of
//! these is sure.

mod accesses;
mod arithmetic;
mod calls;
pub(crate) mod error;
mod instructions;
mod lexer;
mod parse;
mod registers;
mod translate;

use std::collections::HashMap;

use crate::code::{Code, NoCode};
use crate::container::Parameter;
use crate::decode::INSTRUCTION;
use crate::flow::Graph;
use crate::live::Counts;

pub use error::PtxError;

/// The longest text that is read.
pub const MAX_TEXT: usize = 64 << 20;

/// A kernel in PTX.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry<'a> {
    /// The name as the driver has it, mangled.
    pub name: &'a str,
    /// In their order, which is that of their offsets.
    pub parameters: Vec<Parameter>,
    pub(crate) function: usize,
}

/// What a PTX text contains.
#[derive(Clone, Debug)]
pub struct Module<'a> {
    /// As in `.target sm_90`: 90, the oldest that it is for.
    pub architecture: u32,
    /// Its kernels, in their order.
    pub entries: Vec<Entry<'a>>,
    functions: Vec<parse::Function<'a>>,
    variables: HashMap<&'a str, parse::Space>,
}

impl<'a> Module<'a> {
    /// The kernels of a text.
    ///
    /// # Errors
    ///
    /// When anything but the instructions of a function is damaged, or addresses have 32 bits.
    /// Instructions are read with the kernel that they belong to.
    pub fn parse(text: &'a str) -> Result<Self, PtxError> {
        if text.len() > MAX_TEXT {
            return Err(PtxError::TooLarge);
        }
        parse::module(text)
    }

    /// The kernel of that name.
    pub fn entry(&self, name: &str) -> Option<&Entry<'a>> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// The function with code of that name.
    fn function(&self, name: &str) -> Option<usize> {
        // A declaration may come before the function itself.
        self.functions.iter().position(|one| one.name == name && one.body.is_some())
    }
}

impl Code {
    /// The kernel of this name in PTX, and its ways, with the parameters where they are in a launch.
    ///
    /// # Errors
    ///
    /// When there is none, or any of its ways or instructions is not known.
    pub fn from_ptx(module: &Module<'_>, name: &str) -> Result<Self, NoCode> {
        let entry = module.entry(name).ok_or(NoCode::Ptx(PtxError::NoKernel))?;
        let mut translated = translate::translate(module, entry.function).map_err(NoCode::Ptx)?;
        let graph = Graph::new(&translated.code).map_err(NoCode::Graph)?;
        let idle = registers::idle(&translated);
        let idle = idle.into_iter().map(|index| index * INSTRUCTION).collect();
        let counts: Counts = registers::assign(&mut translated, &graph).map_err(NoCode::Ptx)?;
        let last = entry.parameters.last();
        let size = last.map_or(0, |last| last.offset + last.size);
        let parameters = (translate::BASE, size);
        Ok(Code::of_ptx(translate::LAYOUT, translated.code, graph, parameters, counts)
            .with_lines(translated.lines, idle))
    }
}
