//! Work of the device that the checker does not know of yet.
//!
//! Programs make many launches in a row, and between two of them their own work takes the checker
//! out of the processor's caches: to bring it back for each one takes several times as long as what
//! it does. So launches wait, and copies and memsets that the host has no part in. The next other
//! call, or the last one that there is a place for, brings all of them to the checker, in the order
//! of their calls. Nothing changes in between that they depend on: what changes is a call.

use cuda_order_check_engine::{Access, Call as Made, StreamId};

use crate::call::Handle;
use crate::code::launch::Sizes;

/// How many operations wait, at most.
pub(crate) const WAITING: usize = 64;

pub(crate) enum Submitted {
    /// The words of its parameters end at `end` among those of all launches that wait.
    Launch { function: Handle, sizes: Sizes, end: usize },
    /// A copy or a memset.
    Write(Vec<Access>),
}

pub(crate) struct Operation {
    pub(crate) call: Made,
    pub(crate) stream: StreamId,
    pub(crate) work: Submitted,
}

/// The operations that wait for the next call.
#[derive(Default)]
pub(crate) struct Waiting {
    pub(crate) operations: Vec<Operation>,
    /// The words of the launches' parameters.
    pub(crate) values: Vec<u64>,
}
