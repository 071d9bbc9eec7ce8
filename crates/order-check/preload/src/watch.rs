//! The checker of a process: the model of its subjects and the feed, behind one lock.

use cuda_order_check_engine::feed::Feed;

use crate::lock::{Lock, Rank};
use crate::model::contexts::Contexts;
use crate::model::destroyed::Destroyed;
use crate::model::driver::Questions;
use crate::model::graphs::by_handle::Graphs;
use crate::model::kernels::parameters::Kernels;
use crate::model::memory::allocations::Allocations;
use crate::model::pinned::regions::Pinned;
use crate::model::streams::created::Streams;
use crate::model::under_way::submission::UnderWay;
use crate::model::uploads::Uploads;
use crate::model::user_objects::destructors::UserObjects;
use crate::model::values::pending::Values;
use crate::model::waiting::operations::Waiting;
use crate::report::counts::Seen;
use crate::report::output::Output;

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
