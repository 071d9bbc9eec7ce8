//! The checker of a process: the model of its subjects and the feed, behind one lock.

use cuda_order_check_engine::feed::Feed;

use crate::lock::{Lock, Rank};
use crate::model::contexts::Contexts;
use crate::model::driver::Questions;
use crate::model::graphs::Graphs;
use crate::model::host_functions::state::HostFunctions;
use crate::model::kernels::state::Kernels;
use crate::model::memory::state::Allocations;
use crate::model::objects::Objects;
use crate::model::pinned::state::Pinned;
use crate::model::streams::state::{ExternalSemaphores, Streams};
use crate::model::under_way::state::UnderWay;
use crate::model::values::state::Values;
use crate::model::waiting::state::Waiting;
use crate::report::counts::Seen;
use crate::report::output::Output;

pub(crate) struct Watch {
    pub(crate) feed: Feed<Output>,
    pub(crate) questions: Questions,
    pub(crate) seen: Seen,
    pub(crate) contexts: Contexts,
    pub(crate) streams: Streams,
    pub(crate) external: ExternalSemaphores,
    pub(crate) memory: Allocations,
    pub(crate) pinned: Pinned,
    pub(crate) values: Values,
    pub(crate) graphs: Graphs,
    pub(crate) kernels: Kernels,
    pub(crate) host_functions: HostFunctions,
    /// Events and streams that were destroyed, and those that are waited for.
    pub(crate) in_use: Objects,
    /// Work that the feed does not have yet.
    pub(crate) waiting: Waiting,
    pub(crate) under_way: Vec<UnderWay<Self>>,
}

pub(crate) static WATCH: Lock<Option<Watch>> = Lock::new(Rank::Checker, None);
