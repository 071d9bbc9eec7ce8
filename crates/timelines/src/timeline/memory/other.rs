//! Platforms without memory that can safely be given to another process.

use super::Line;
use crate::error::{Result, SharedTimelineError as Refusal};

/// A file of timelines, which this platform never creates.
pub(crate) struct File {
    pub(crate) writable: bool,
    never: Life,
}

pub(crate) enum Life {}

#[derive(PartialEq)]
pub(crate) enum Identity {}

impl File {
    pub(crate) fn create(
        _lines: usize,
        _protected: bool,
    ) -> Result<(Self, &'static [Line], Life), Refusal> {
        Err(Refusal::Platform)
    }

    #[cfg(unix)]
    pub(crate) fn open(_file: std::os::fd::OwnedFd, _lines: usize) -> Result<Self, Refusal> {
        Err(Refusal::Platform)
    }

    pub(crate) fn identity(&self) -> Result<Identity, Refusal> {
        match self.never {}
    }

    pub(crate) fn map(
        &self,
        _lines: usize,
        _check: impl FnOnce(&[Line]) -> Result<(), Refusal>,
    ) -> Result<&'static [Line], Refusal> {
        match self.never {}
    }

    pub(crate) fn find_maker(&mut self, _header: &'static Line) -> Result<(), Refusal> {
        match self.never {}
    }

    pub(crate) fn write(&self, _lines: usize, _write: impl FnOnce(&[Line])) -> Result<(), Refusal> {
        match self.never {}
    }

    pub(crate) fn is_orphaned(&self) -> bool {
        match self.never {}
    }
}

#[cfg(unix)]
impl std::os::fd::AsFd for File {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        match self.never {}
    }
}
