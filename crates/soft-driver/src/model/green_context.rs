//! Green contexts, and the parts of a device that they have.

use crate::abi::*;
use crate::model::handles::{Kind, Table};

/// As an H200 has them.
pub(crate) const MULTIPROCESSORS: u32 = 132;
/// The least part, and what the size of each is a multiple of, on compute capability 9.0.
pub(crate) const UNIT: u32 = 8;

/// A green context.
pub(crate) struct Green {
    /// The context that stands for it.
    pub(crate) context: u32,
    /// The primary context that it keeps.
    pub(crate) primary: u32,
    pub(crate) part: Part,
}

/// Everything of green contexts on one machine.
pub(crate) struct Greens {
    pub(crate) table: Table<Green>,
    /// What descriptors describe; they are never destroyed.
    pub(crate) described: Vec<Part>,
    pub(crate) splits: u32,
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
    pub(crate) fn of(&self, context: u32) -> Option<(u32, &Green)> {
        self.table.iter().find(|(_, green)| green.context == context)
    }

    /// The primary context that a green one keeps; any other is its own.
    pub(crate) fn primary_behind(&self, context: u32) -> u32 {
        self.of(context).map_or(context, |(_, green)| green.primary)
    }

    /// A context, and if it is a primary one all green contexts of its device.
    pub(crate) fn with(&self, context: u32) -> Vec<u32> {
        let green = self.table.iter().filter(|(_, green)| green.primary == context);
        core::iter::once(context).chain(green.map(|(_, green)| green.context)).collect()
    }
}

/// Some multiprocessors of a device, one after the other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) device: CUdevice,
    pub(crate) first: u32,
    pub(crate) count: u32,
    pub(crate) unit: u32,
    /// Which split it came from; 0 for a whole, which can be split.
    pub(crate) split: u32,
}
