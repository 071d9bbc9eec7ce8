//! Submissions whose real calls are under way. Before such a call returns, others may see what it
//! writes, and its host functions may begin. Or the call fails, and there is no work.

use cuda_order_check_engine::{Call as Made, StreamId};

/// The part of a submission that others may see.
pub(crate) struct Visible {
    pub(crate) stream: StreamId,
    /// The numbers of host functions, and of writes that the host may see.
    pub(crate) ids: Vec<u64>,
    /// Whether it writes something that counts as seen at once.
    pub(crate) at_once: bool,
}

pub(crate) struct UnderWay<W> {
    pub(crate) caller: Made,
    pub(crate) visible: Visible,
    pub(crate) accepted: Box<dyn FnOnce(&mut W) + Send>,
}
