//! A platform without interprocess events in software; nothing of this is ever made.

use std::thread::JoinHandle;

use crate::abi::*;

#[derive(Debug)]
pub(crate) enum Record {}

impl Record {
    pub(crate) fn complete(&self) {
        match *self {}
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Wait {}

impl Wait {
    pub(crate) fn is_done(&self) -> bool {
        match *self {}
    }
}

pub(crate) enum SharedEvent {}

impl SharedEvent {
    pub(crate) fn import(_descriptor: &[u8; 64], _strict: bool) -> Result<Box<Self>, CUresult> {
        Err(NOT_SUPPORTED)
    }

    pub(crate) fn imported(&self) -> bool {
        match *self {}
    }

    pub(crate) fn descriptor(&self, _strict: bool) -> [u8; 64] {
        match *self {}
    }

    pub(crate) fn is_done(&self) -> bool {
        match *self {}
    }

    pub(crate) fn wait(&self) -> Option<Wait> {
        match *self {}
    }

    pub(crate) fn misused(&self) -> Option<String> {
        match *self {}
    }

    pub(crate) fn record(&self) -> Record {
        match *self {}
    }

    pub(crate) fn record_done(&self) {
        match *self {}
    }
}

pub(crate) enum Exporter {}

impl Exporter {
    pub(crate) fn create(_slots: u32) -> Result<Self, CUresult> {
        Err(NOT_SUPPORTED)
    }

    pub(crate) fn take_slot(&mut self) -> Result<Box<SharedEvent>, CUresult> {
        match *self {}
    }

    pub(crate) fn owns(&self, _event: &SharedEvent) -> bool {
        match *self {}
    }

    pub(crate) fn free_slot(&mut self, _event: SharedEvent) {
        match *self {}
    }

    pub(crate) fn live(&self) -> usize {
        match *self {}
    }
}

pub(crate) fn watch<Locked: 'static>(
    wait: &Wait,
    _watcher: (usize, u64),
    _look: impl Fn() -> Option<Locked> + Send + 'static,
) -> Option<JoinHandle<()>> {
    match *wait {}
}

pub(crate) fn block(wait: &Wait, _look: impl Fn() -> Option<Answer>) -> Answer {
    match *wait {}
}

/// There is nothing to leave behind.
pub(crate) fn tidy_up() {}
