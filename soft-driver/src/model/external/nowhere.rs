//! A platform without external semaphores in software; nothing of this is ever made.

use core::sync::atomic::AtomicU64;
use std::sync::Arc;

use super::{Semaphore, SemaphoreKind};

#[derive(Debug)]
pub(crate) enum Descriptor {}

#[derive(Debug)]
pub(crate) enum Page {}

impl Page {
    pub(crate) fn word(&self) -> &AtomicU64 {
        match *self {}
    }

    pub(super) fn create(_kind: SemaphoreKind) -> Option<(Self, Descriptor)> {
        None
    }

    pub(super) fn open(_descriptor: i32) -> Option<Arc<Semaphore>> {
        None
    }
}
