//! The checker of a process: the model of its subjects and the feed, behind one lock.

use cuda_order_check_engine::feed::Feed;

use crate::lock::{Lock, Rank};
use crate::report::counts::Seen;
use crate::report::output::Output;
use crate::state::allocations::Allocations;
use crate::state::contexts::Contexts;
use crate::state::destroyed::Destroyed;
use crate::state::driver::Questions;
use crate::state::graphs::Graphs;
use crate::state::kernels::Kernels;
use crate::state::pinned::Pinned;
use crate::state::streams::Streams;
use crate::state::under_way::UnderWay;
use crate::state::uploads::Uploads;
use crate::state::user_objects::UserObjects;
use crate::state::values::Values;
use crate::state::waiting::Waiting;

pub(crate) struct Watch {
    pub(crate) feed: Feed<Output>,
    pub(crate) questions: Questions,
    pub(crate) seen: Seen,
    pub(crate) contexts: Contexts,
    pub(crate) streams: Streams,
    pub(crate) memory: Allocations,
    pub(crate) pinned: Pinned,
    pub(crate) values: Values,
    pub(crate) graphs: Graphs,
    pub(crate) kernels: Kernels,
    pub(crate) user_objects: UserObjects,
    pub(crate) destroyed: Destroyed,
    /// Work that the feed does not have yet.
    pub(crate) waiting: Waiting,
    pub(crate) under_way: Vec<UnderWay<Self>>,
    pub(crate) uploads: Uploads,
    /// The last number that was given.
    pub(crate) last_id: u64,
}

impl Watch {
    /// A number that nothing has yet: for a write that is looked for, an execution of a host function, a
    /// user object, or a default stream.
    pub(crate) fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }
}

pub(crate) static WATCH: Lock<Option<Watch>> = Lock::new(Rank::Checker, None);
