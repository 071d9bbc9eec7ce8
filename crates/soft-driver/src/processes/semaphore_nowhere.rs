//! A platform without external semaphores in software; nothing of this is ever made.

use core::sync::atomic::AtomicU64;

#[derive(Debug)]
pub(crate) enum Descriptor {}

#[derive(Debug)]
pub(super) enum Page {}

impl Page {
    pub(super) fn word(&self) -> &AtomicU64 {
        match *self {}
    }

    pub(super) fn kind(&self) -> u64 {
        match *self {}
    }

    pub(super) fn create(_kind: u64) -> Option<(Self, Descriptor)> {
        None
    }

    pub(super) fn open(_descriptor: i32) -> Option<(Self, [u64; 2])> {
        None
    }
}
