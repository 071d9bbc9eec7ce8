//! The streams that were seen.

use std::collections::BTreeMap;

use cuda_order_check_engine::StreamId;
use cuda_order_check_engine::feed::Semaphore;

use crate::call::Handle;

#[derive(Default)]
pub(crate) struct Streams {
    /// The streams that calls have created, each with its context.
    pub(crate) created: BTreeMap<Handle, Handle>,
    /// The default streams, by context and thread (0: the legacy one).
    pub(crate) defaults: BTreeMap<(Handle, u64), StreamId>,
    pub(crate) external: ExternalSemaphores,
}

/// Semaphores of other APIs.
pub(crate) struct ExternalSemaphores {
    /// It stands for all of them. Its value is never written.
    pub(crate) semaphore: Semaphore,
    /// The calls that wait for one, since the last signal.
    pub(crate) waits: Vec<u64>,
}

impl Default for ExternalSemaphores {
    fn default() -> Self {
        Self { semaphore: Semaphore::new(false), waits: Vec::new() }
    }
}
