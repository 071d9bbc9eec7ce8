//! The counts for the summary.

use std::sync::OnceLock;

/// What the summary counts.
#[derive(Clone, Copy, Default)]
pub(crate) struct Seen {
    /// The calls, each with its number.
    pub(crate) calls: u64,
    /// Whether the summary was written.
    pub(crate) ended: bool,
    pub(crate) kernels: u64,
    /// Copies and memsets.
    pub(crate) copies: u64,
    /// Launches of graphs.
    pub(crate) graphs: u64,
    /// Launches of graphs whose nodes are not all modelled.
    pub(crate) unknown: u64,
    /// Copies of arrays whose elements have an unknown size.
    pub(crate) formats: u64,
    /// Batches with operations of an unknown kind.
    pub(crate) operations: u64,
    /// Values that counted as seen, as too many were pending.
    pub(crate) crowded: u64,
    /// Nodes of graphs that allocate memory.
    pub(crate) allocating: u64,
    /// Graphs that kernels may launch.
    pub(crate) launchable: u64,
    /// Nodes that kernels may change.
    pub(crate) changeable: u64,
    /// Nodes whose graphs run on a condition.
    pub(crate) conditional: u64,
}

/// Gives each function that is not hooked, and how often it was called.
pub(crate) type Counted = fn(&mut dyn FnMut(&'static str, u64));

pub(crate) static COUNTED: OnceLock<Counted> = OnceLock::new();

/// Sets what counts the calls of functions that are not hooked.
pub fn count_by(counted: Counted) {
    let _ = COUNTED.set(counted);
}

#[cfg(test)]
pub(crate) mod tests {
    use core::sync::atomic::{AtomicU64, Ordering};

    /// How often tables of functions without names were asked for.
    pub(crate) static TABLES: AtomicU64 = AtomicU64::new(0);

    pub(crate) fn counts(each: &mut dyn FnMut(&'static str, u64)) {
        each("cuDriverGetVersion", 5);
        each("cuGetExportTable", TABLES.load(Ordering::Relaxed));
    }
}
