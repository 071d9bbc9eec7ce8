//! What a driver loads from an image for its device: machine code if there is some for it, and
//! otherwise PTX, which it compiles.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

use crate::code::{Code, NoCode};
use crate::container::{Cubin, Error, Form, Image, Kernel, Parameter, entries_for};
use crate::decode::INSTRUCTION;
use crate::ptx::{Module, PtxError};

/// How much is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The bytes of all images of a fat binary for the device.
    pub decompressed: u64,
    /// The bytes of PTX.
    pub text: usize,
    /// The bytes of a kernel's code.
    pub code: usize,
}

/// Why there is no image for the device, or no code of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotLoaded {
    /// It is none, or it is damaged.
    Image(Error),
    /// It has nothing for this architecture.
    Architecture(u32),
    /// It has no kernel of this name.
    NoKernel,
    /// It has two kernels of this name.
    Two,
    /// The PTX is longer than allowed.
    LongText,
    /// The kernel's code is longer than allowed.
    LongCode,
    /// The PTX is for this architecture, and later ones.
    NewerPtx(u32),
    /// The PTX cannot be read.
    Ptx(PtxError),
    /// The kernel's code is not known.
    Code(NoCode),
}

impl fmt::Display for NotLoaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Image(error) => write!(f, "its image is {error}"),
            Self::Architecture(of) => write!(f, "its image has no code for sm_{of}"),
            Self::NoKernel => f.write_str("its image has no kernel of this name"),
            Self::Two => f.write_str("its image has two kernels of this name"),
            Self::LongText => f.write_str("its PTX is too long"),
            Self::LongCode => f.write_str("its code is too long"),
            Self::NewerPtx(of) => write!(f, "its PTX is for sm_{of} and later"),
            Self::Ptx(error) => error.fmt(f),
            Self::Code(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for NotLoaded {}

/// What the driver of a device takes of an image.
#[derive(Clone, Debug)]
pub struct Loaded<'a> {
    form: Forms<'a>,
    architecture: u32,
    limits: Limits,
}

#[derive(Clone, Debug)]
enum Forms<'a> {
    Cubins(Vec<Cow<'a, [u8]>>),
    Texts(Vec<Cow<'a, str>>),
}

impl<'a> Loaded<'a> {
    /// What is for a device of this architecture: 90 for `sm_90`.
    ///
    /// # Errors
    ///
    /// When there is no image for the device, or an image is damaged.
    pub fn new(image: &'a [u8], architecture: u32, limits: Limits) -> Result<Self, NotLoaded> {
        // Code runs on later architectures of the same generation, and PTX on all later ones.
        let runs = |of: u32| of / 10 == architecture / 10 && of <= architecture;
        let newest_text = Cell::new(None);
        let wanted = |form: Form, of: u32| match form {
            Form::Cubin => runs(of),
            Form::Ptx => {
                if of <= architecture {
                    newest_text.set(newest_text.get().max(Some(of)));
                }
                false
            }
        };
        let entries = |wanted: &dyn Fn(Form, u32) -> bool| {
            entries_for(image, wanted, limits.decompressed).map_err(NotLoaded::Image)
        };
        let mut cubins: Vec<(u32, Cow<'_, [u8]>)> = Vec::new();
        let mut texts = Vec::new();
        for entry in entries(&wanted)? {
            match entry.image {
                Image::Cubin(bytes) => {
                    let of = match entry.architecture {
                        Some(of) => of,
                        None => Cubin::parse(&bytes).map_err(NotLoaded::Image)?.architecture,
                    };
                    cubins.push((of, bytes));
                }
                Image::Ptx(text) => texts.push(text),
            }
        }
        if let Some(newest) = cubins.iter().map(|of| of.0).filter(|of| runs(*of)).max() {
            let newest = cubins.into_iter().filter(|of| of.0 == newest).map(|of| of.1);
            return Ok(Self { form: Forms::Cubins(newest.collect()), architecture, limits });
        }
        if let Some(newest) = newest_text.get() {
            let wanted = |form: Form, of: u32| form == Form::Ptx && of == newest;
            for entry in entries(&wanted)? {
                if let Image::Ptx(text) = entry.image {
                    texts.push(text);
                }
            }
        }
        match texts.is_empty() {
            true => Err(NotLoaded::Architecture(architecture)),
            false => Ok(Self { form: Forms::Texts(texts), architecture, limits }),
        }
    }

    /// The names of all kernels, with their parameters by their offsets.
    ///
    /// # Errors
    ///
    /// When an image is damaged.
    pub fn kernels(&self) -> Result<Vec<(String, Vec<Parameter>)>, NotLoaded> {
        let mut all = Vec::new();
        match &self.form {
            Forms::Cubins(cubins) => {
                for bytes in cubins {
                    let cubin = Cubin::parse(bytes).map_err(NotLoaded::Image)?;
                    let kernels = cubin.kernels.into_iter().filter(|of| of.is_entry);
                    all.extend(kernels.map(|of| (of.name.to_owned(), of.parameters)));
                }
            }
            Forms::Texts(texts) => {
                for text in texts {
                    let entries = self.module(text)?.entries.into_iter();
                    all.extend(entries.map(|of| (of.name.to_owned(), of.parameters)));
                }
            }
        }
        Ok(all)
    }

    /// A kernel's code, and how many bytes it has, or would have as machine code.
    ///
    /// # Errors
    ///
    /// When there is none of this name, or it is not understood.
    pub fn code(&self, name: &str) -> Result<(usize, Code), NotLoaded> {
        match &self.form {
            Forms::Cubins(cubins) => self.of_cubins(cubins, name),
            Forms::Texts(texts) => self.of_texts(texts, name),
        }
    }

    fn of_cubins(&self, cubins: &[Cow<'_, [u8]>], name: &str) -> Result<(usize, Code), NotLoaded> {
        let mut found: Option<(u32, Kernel<'_>)> = None;
        for bytes in cubins {
            let cubin = Cubin::parse(bytes).map_err(NotLoaded::Image)?;
            let Some(kernel) = cubin.kernel(name) else { continue };
            if found.as_ref().is_some_and(|(_, other)| other != kernel) {
                return Err(NotLoaded::Two);
            }
            found = Some((cubin.architecture, kernel.clone()));
        }
        let (architecture, kernel) = found.ok_or(NotLoaded::NoKernel)?;
        let bytes = kernel.code.len();
        if bytes > self.limits.code {
            return Err(NotLoaded::LongCode);
        }
        Ok((bytes, Code::new(architecture, &kernel).map_err(NotLoaded::Code)?))
    }

    fn of_texts(&self, texts: &[Cow<'_, str>], name: &str) -> Result<(usize, Code), NotLoaded> {
        let mut found = None;
        // Most texts of an image are about other kernels.
        for text in texts.iter().filter(|text| text.contains(name)) {
            let module = self.module(text)?;
            if module.entry(name).is_none() {
                continue;
            }
            if found.is_some() {
                return Err(NotLoaded::Two);
            }
            found = Some(Code::from_ptx(&module, name).map_err(NotLoaded::Code)?);
        }
        let code = found.ok_or(NotLoaded::NoKernel)?;
        let bytes = code.instructions().len() * INSTRUCTION;
        if bytes > self.limits.code {
            return Err(NotLoaded::LongCode);
        }
        Ok((bytes, code))
    }

    fn module<'t>(&self, text: &'t str) -> Result<Module<'t>, NotLoaded> {
        if text.len() > self.limits.text {
            return Err(NotLoaded::LongText);
        }
        let module = Module::parse(text).map_err(NotLoaded::Ptx)?;
        match module.architecture > self.architecture {
            true => Err(NotLoaded::NewerPtx(module.architecture)),
            false => Ok(module),
        }
    }
}
