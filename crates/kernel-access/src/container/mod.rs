//! What programs hand to the driver: a fat binary with one image for each of several architectures,
//! a cubin alone, or PTX text.

mod elf;
mod fatbin;
mod locate;

use std::borrow::Cow;
use std::fmt;

pub(crate) use elf::NEVER_RETURNS;
pub use elf::{ConstantBank, Cubin, Kernel, Parameter, Symbol};
pub use fatbin::{MAX_DECOMPRESSED, Wrapper};
pub use locate::{Located, NotLocated, locate};

use crate::bytes;

/// Why an image cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// Nothing that the driver loads begins like this.
    NotAnImage,
    /// The image ends before the named part of it, or contradicts itself there.
    Damaged(&'static str),
    /// The image has a form that this version does not read.
    Unsupported(&'static str),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotAnImage => f.write_str("neither a fat binary, nor a cubin, nor PTX"),
            Error::Damaged(part) => write!(f, "damaged: {part}"),
            Error::Unsupported(form) => write!(f, "not supported: {form}"),
        }
    }
}

impl std::error::Error for Error {}

/// One architecture's image.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Image<'a> {
    /// Machine code in an ELF file, for [`Cubin::parse`].
    Cubin(Cow<'a, [u8]>),
    /// PTX text without the zero that ends it.
    Ptx(Cow<'a, str>),
}

/// One entry of what a program loads.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry<'a> {
    /// The architecture that the fat binary names, as in `sm_90` or `compute_90`. `None` for an
    /// image alone, which names it itself.
    pub architecture: Option<u32>,
    /// The image itself.
    pub image: Image<'a>,
}

/// What an entry of a fat binary is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Form {
    /// Machine code.
    Cubin,
    /// PTX text.
    Ptx,
}

/// All images in `image`, decompressed.
///
/// The bytes of a fat binary's [`Wrapper`] contain only an address. The images are at that address.
///
/// # Errors
///
/// When the bytes are no image, or any entry is damaged: an image that is read in part would answer
/// for kernels that it does not show.
pub fn entries(image: &[u8]) -> Result<Vec<Entry<'_>>, Error> {
    entries_for(image, &|_, _| true, MAX_DECOMPRESSED)
}

/// The images in `image` of the forms and architectures that are wanted, decompressed to at most `most`
/// bytes together. An image alone, which names its architecture itself, is always there.
///
/// # Errors
///
/// As [`entries`], of what is wanted; and when it is larger.
pub fn entries_for<'a>(
    image: &'a [u8],
    wanted: &dyn Fn(Form, u32) -> bool,
    most: u64,
) -> Result<Vec<Entry<'a>>, Error> {
    if fatbin::is_fatbin(image) {
        return fatbin::entries(image, wanted, most);
    }
    if Wrapper::parse(image).is_some() {
        return Err(Error::Unsupported("a wrapper, whose images are at its address"));
    }
    if elf::is_elf(image) {
        return Ok(vec![Entry { architecture: None, image: Image::Cubin(image.into()) }]);
    }
    ptx(image.into()).map(|image| vec![Entry { architecture: None, image }])
}

/// The fat binaries that a program or a library contains, as they lie in its file.
///
/// They are found by how they begin, so a file may contain one that it never loads. The result may
/// also contain bytes that only look like one, of which [`entries`] makes an error.
pub fn find(file: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    let mut rest = file;
    // Each begins at a multiple of eight bytes, in a section that does too.
    while rest.len() >= 16 {
        match fatbin::is_fatbin(rest)
            .then(|| fatbin::length(rest))
            .flatten()
            .and_then(|length| bytes::slice(rest, 0, length))
        {
            Some(image) => {
                found.push(image);
                let next = image.len().next_multiple_of(8).max(8);
                rest = rest.get(next..).unwrap_or_default();
            }
            None => rest = rest.get(8..).unwrap_or_default(),
        }
    }
    found
}

/// The length of the image that begins with `start`, for images of which a program only has the
/// address.
///
/// `Ok(length)` if `start` is long enough to tell. Otherwise `Err(needed)`: at least so many bytes
/// of the image exist and are needed. The caller reads these and asks again.
///
/// # Errors
///
/// `None` instead of the length for bytes that are no image, or whose headers make no sense.
pub fn length(start: &[u8]) -> Result<Option<u64>, u64> {
    if start.len() < 64 {
        // The shortest PTX needs less. Its first bytes are looked at singly, up to its end.
        return match ptx_length(start) {
            Some(length) => Ok(Some(length)),
            None if could_be_text(start) => Err(start.len() as u64 + 1),
            None => Err(64),
        };
    }
    if fatbin::is_fatbin(start) {
        return Ok(fatbin::length(start));
    }
    if elf::is_elf(start) {
        return elf::length(start);
    }
    if let Some(length) = ptx_length(start) {
        return Ok(Some(length));
    }
    if could_be_text(start) { Err(start.len() as u64 + 1) } else { Ok(None) }
}

fn could_be_text(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| byte >= 0x20 || matches!(byte, b'\t' | b'\n' | b'\r'))
        && bytes.first().is_none_or(|&byte| byte < 0x7f)
}

fn ptx_length(bytes: &[u8]) -> Option<u64> {
    let end = bytes.iter().position(|&byte| byte == 0)?;
    could_be_text(bytes.get(..end)?).then_some(end as u64 + 1)
}

/// PTX begins, after comments, with its version.
fn ptx(bytes: Cow<'_, [u8]>) -> Result<Image<'_>, Error> {
    let text = match bytes {
        Cow::Borrowed(bytes) => {
            Cow::Borrowed(std::str::from_utf8(bytes).map_err(|_| Error::NotAnImage)?)
        }
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8(bytes).map_err(|_| Error::NotAnImage)?),
    };
    let end = text.find('\0').unwrap_or(text.len());
    if !without_comments(text.get(..end).unwrap_or_default()).starts_with(".version") {
        return Err(Error::NotAnImage);
    }
    Ok(Image::Ptx(match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.get(..end).unwrap_or_default()),
        Cow::Owned(mut text) => {
            text.truncate(end);
            Cow::Owned(text)
        }
    }))
}

/// The rest of the text after blanks and comments.
fn without_comments(mut text: &str) -> &str {
    loop {
        text = text.trim_start();
        if let Some(rest) = text.strip_prefix("//") {
            text = rest.split_once('\n').map_or("", |(_, rest)| rest);
        } else if let Some(rest) = text.strip_prefix("/*") {
            text = rest.split_once("*/").map_or("", |(_, rest)| rest);
        } else {
            return text;
        }
    }
}

/// A damaged part, for `?`.
fn damaged<T>(value: Option<T>, part: &'static str) -> Result<T, Error> {
    value.ok_or(Error::Damaged(part))
}

fn starts_with(image: &[u8], magic: u32) -> bool {
    bytes::u32(image, 0) == Some(magic)
}
