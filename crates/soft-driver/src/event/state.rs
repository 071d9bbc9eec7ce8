//! An event as its machine has it: its latest record.

use std::sync::Arc;

use crate::abi::{CU_EVENT_DISABLE_TIMING, CU_EVENT_INTERPROCESS};
use crate::capture::mark::Mark;
use crate::engine::context::ContextWait;
use crate::engine::point::Point;
use crate::processes::SharedEvent;

/// The latest record of an event.
#[derive(Clone, Debug)]
pub(super) enum EventState {
    Never,
    /// The record is done, with this stamp.
    Done(u64),
    Pending(Arc<Point>),
    /// Recorded in a stream capture.
    Captured(Box<Mark>),
}

pub(crate) struct Event {
    pub(crate) context: u32,
    pub(super) flags: u32,
    /// Whether its context was destroyed before it.
    pub(super) orphan: bool,
    pub(super) state: EventState,
    /// The slot in shared memory, if the event is interprocess.
    pub(super) shared: Option<Box<SharedEvent>>,
}

impl Event {
    pub(super) fn new(context: u32, flags: u32, shared: Option<Box<SharedEvent>>) -> Self {
        Self { context, flags, orphan: false, state: EventState::Never, shared }
    }

    /// An event of another process.
    pub(crate) fn import(context: u32, shared: Box<SharedEvent>) -> Self {
        Self::new(context, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS, Some(shared))
    }

    pub(crate) fn is_interprocess(&self) -> bool {
        self.shared.is_some()
    }

    /// The slot of an interprocess event that this process created.
    pub(crate) fn own_slot(&self) -> Option<&SharedEvent> {
        self.shared.as_deref().filter(|shared| !shared.imported())
    }

    /// Whether its context was destroyed before it.
    pub(crate) fn is_orphan(&self) -> bool {
        self.orphan
    }

    /// Its context is destroyed, and the program still has its handle.
    pub(crate) fn lose_context(&mut self) {
        self.orphan = true;
        self.shared = None;
    }

    pub(crate) fn was_never_recorded(&self) -> bool {
        matches!(self.state, EventState::Never)
    }

    /// Where in a capture it was recorded.
    pub(crate) fn mark(&self) -> Option<&Mark> {
        match &self.state {
            EventState::Captured(mark) => Some(mark),
            _ => None,
        }
    }

    /// Its latest record in this process, until that is done.
    pub(crate) fn pending(&self) -> Option<&Arc<Point>> {
        match &self.state {
            EventState::Pending(point) => Some(point).filter(|point| !point.is_done()),
            _ => None,
        }
    }

    /// What a wait for it waits for: its latest record in this process, and those of others. For an
    /// event that was never recorded, or whose record is done, that is nothing.
    pub(crate) fn waits(&self) -> impl Iterator<Item = ContextWait> + use<> {
        let own = self.pending().cloned().map(ContextWait::Point);
        let others = self.shared.as_ref().and_then(|shared| shared.wait());
        [own, others.map(ContextWait::Shared)].into_iter().flatten()
    }

    pub(super) fn timing(&self) -> bool {
        self.flags & CU_EVENT_DISABLE_TIMING == 0
    }

    /// Whether the latest record is done, as this process sees it.
    pub(super) fn is_done(&self) -> bool {
        let here = match &self.state {
            EventState::Never | EventState::Done(_) => true,
            EventState::Pending(point) => point.is_done(),
            EventState::Captured(_) => false,
        };
        here && self.shared.as_ref().is_none_or(|shared| shared.is_done())
    }
}
