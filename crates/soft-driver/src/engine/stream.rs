//! A stream as the engine has it: a queue of work that is done in order.

use std::collections::{BTreeMap, VecDeque};

use crate::abi::*;
use crate::engine::work::{Queued, Task};

/// A stream: a queue of work that is done in order.
#[derive(Default)]
pub(crate) struct Stream {
    pub(crate) context: u32,
    pub(crate) flags: u32,
    pub(crate) priority: i32,
    pub(crate) id: u64,
    pub(crate) is_legacy: bool,
    /// Whether the program made it.
    pub(crate) created: bool,
    /// One that the program has no handle of any more.
    pub(crate) destroyed: bool,
    pub(super) queue: VecDeque<Queued>,
    /// Which of its context's channels its work is in, or was last.
    pub(super) channel: u32,
    /// How many operations were submitted.
    pub(super) submitted: u64,
    /// Up to which of them the legacy stream waits already.
    pub(super) joined: Option<u64>,
    /// Up to which operation of the legacy stream this one waits already.
    pub(super) legacy_seen: Option<u64>,
    /// Up to which wait of the whole context this stream waits already.
    pub(super) context_waits_seen: u64,
    pub(crate) attributes: BTreeMap<u32, [u8; 64]>,
}

impl Stream {
    pub(super) fn new(
        context: u32,
        id: u64,
        (flags, priority): (u32, i32),
        is_legacy: bool,
        channel: u32,
    ) -> Self {
        Self { context, flags, priority, id, is_legacy, channel, ..Self::default() }
    }

    /// Whether it has work of its own that is not done.
    pub(crate) fn has_work(&self) -> bool {
        !self.queue.is_empty()
    }

    /// What it has to do, the next first.
    pub(crate) fn tasks(&self) -> impl ExactSizeIterator<Item = &Task> {
        self.queue.iter().map(|queued| &queued.task)
    }

    /// Whether the legacy default stream waits for it, and it for that.
    pub(crate) fn blocking(&self) -> bool {
        self.flags & CU_STREAM_NON_BLOCKING == 0 && !self.is_legacy
    }
}
