//! Without the feature `images`, or on another system: nobody looks at what is in an image.

use core::ffi::CStr;
use std::ffi::CString;
use std::path::Path;
use std::sync::Arc;

use crate::abi::*;
use crate::kernel::Kernel;

/// Whether this build reads images.
pub(crate) const READ: bool = false;

/// The memory or the file that has an image.
#[allow(dead_code, reason = "it is not looked at")]
pub(crate) enum Source<'a> {
    Memory(u64),
    File(&'a Path),
}

/// The image of a module.
#[derive(Default)]
pub(crate) struct Image(());

impl Image {
    pub(crate) fn read(_: &Source<'_>, _: bool) -> Result<Self, (CUresult, String)> {
        Ok(Self(()))
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &CString> {
        [].iter()
    }

    pub(crate) fn kernel(&self, _: &CStr) -> Option<&Arc<Kernel>> {
        None
    }
}
