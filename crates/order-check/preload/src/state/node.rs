//! The work of a node at a launch of its graph, as far as the host may see it.

use std::sync::Arc;

use cuda_order_check_engine::{Access, Cell};

use crate::state::executions::Host;

#[derive(Clone)]
pub(crate) enum Node {
    Host(Arc<Host>),
    Write(Access),
    WriteValue(Cell, u64),
    WaitValue(Cell),
    /// Work that the host does not poll, and that writes.
    Work,
}
