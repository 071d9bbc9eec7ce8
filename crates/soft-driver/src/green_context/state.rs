//! Green contexts as their machine has them.

use crate::abi::CUdevice;
use crate::machine::handles::{Kind, Table};

/// The least part, and what the size of each is a multiple of, on compute capability 9.0.
pub(crate) const UNIT: u32 = 8;

pub(super) struct Green {
    /// The context that stands for it.
    pub(super) context: u32,
    /// The primary context that it keeps.
    pub(super) primary: u32,
    pub(super) part: Part,
}

/// Everything of green contexts on one machine.
pub(crate) struct Greens {
    pub(super) table: Table<Green>,
    /// What descriptors describe; they are never destroyed.
    pub(super) described: Vec<Part>,
    pub(super) splits: u32,
}

impl Greens {
    pub(crate) const fn new(slot: usize) -> Self {
        Self { table: Table::new(Kind::Green, slot), described: Vec::new(), splits: 0 }
    }

    pub(crate) fn reset(&mut self, life: u64) {
        self.table.reset(life);
        self.described = Vec::new();
        self.splits = 0;
    }

    /// The green context that a context stands for.
    pub(super) fn of(&self, context: u32) -> Option<(u32, &Green)> {
        self.table.iter().find(|(_, green)| green.context == context)
    }

    /// The primary context that a green one keeps; any other is its own.
    pub(crate) fn primary_behind(&self, context: u32) -> u32 {
        self.of(context).map_or(context, |(_, green)| green.primary)
    }

    /// How many retains of primary contexts are those of green contexts.
    pub(crate) fn retains(&self) -> usize {
        self.table.len()
    }

    /// A context, and if it is a primary one all green contexts of its device: what is asked of it
    /// is meant for them, too.
    pub(crate) fn with(&self, context: u32) -> Vec<u32> {
        let green = self.table.iter().filter(|(_, green)| green.primary == context);
        core::iter::once(context).chain(green.map(|(_, green)| green.context)).collect()
    }
}

/// Some multiprocessors of a device, one after the other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) device: CUdevice,
    pub(super) first: u32,
    pub(super) count: u32,
    pub(super) unit: u32,
    /// Which split it came from; 0 for a whole, which can be split.
    pub(super) split: u32,
}
