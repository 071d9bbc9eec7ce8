//! An event: it holds the completion point of its latest record.

use std::sync::Arc;

use crate::abi::*;
use crate::model::capture::Mark;
use crate::model::ipc;
use crate::model::point::Point;

/// What the latest record left.
#[derive(Clone, Debug)]
pub(crate) enum EventState {
    Never,
    /// Done, with its stamp: no point is needed any more.
    Done(u64),
    Pending(Arc<Point>),
    /// Recorded in a stream capture.
    Captured(Box<Mark>),
}

/// An event.
pub(crate) struct Event {
    pub(crate) context: u32,
    pub(crate) flags: u32,
    /// Whether its context was destroyed under it.
    pub(crate) orphan: bool,
    pub(crate) state: EventState,
    /// An interprocess event's slot.
    pub(crate) shared: Option<Box<ipc::SharedEvent>>,
}

impl Event {
    pub(crate) fn timing(&self) -> bool {
        self.flags & CU_EVENT_DISABLE_TIMING == 0
    }

    /// Whether the latest record is done, as this process sees it.
    pub(crate) fn is_done(&self) -> bool {
        let here = match &self.state {
            EventState::Never | EventState::Done(_) => true,
            EventState::Pending(point) => point.is_done(),
            EventState::Captured(_) => false,
        };
        here && self.shared.as_ref().is_none_or(|shared| shared.others_done())
    }
}
