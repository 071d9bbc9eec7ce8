//! Work that was submitted: as long as something may hold it back it is a task, and afterwards only
//! a clock.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use crate::agent::Agent;
use crate::clock::{Clock, Slot};
use crate::op::{Access, Call, Cell, Compare};

/// The end of some work.
#[derive(Clone, Debug)]
pub(crate) enum Point {
    /// The work before it is known.
    Done(Clock),
    /// Something holds it back: a value that is not written yet, or a host function that runs.
    Pending(Arc<Unfinished>),
}

#[derive(Debug)]
pub(crate) struct Unfinished {
    pub(crate) task: u64,
    pub(crate) clock: OnceLock<Clock>,
}

impl Default for Point {
    fn default() -> Self {
        Self::Done(Clock::default())
    }
}

impl Point {
    pub(crate) fn clock(&self) -> Option<&Clock> {
        match self {
            Self::Done(clock) => Some(clock),
            Self::Pending(unfinished) => unfinished.clock.get(),
        }
    }

    /// Forgets what everybody knows. Says whether nothing is left.
    pub(crate) fn prune(&mut self, floor: &Clock) -> bool {
        if let Self::Pending(unfinished) = self {
            let Some(clock) = unfinished.clock.get() else { return false };
            *self = Self::Done(clock.clone());
        }
        let Self::Done(clock) = self else { return false };
        clock.prune(floor);
        clock.is_empty()
    }
}

/// The ends of several works, for something that comes after all of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Points {
    done: Clock,
    pending: Vec<Arc<Unfinished>>,
}

impl Points {
    pub(crate) fn push(&mut self, point: Point) {
        match point {
            Point::Done(clock) => self.done.join(&clock),
            Point::Pending(unfinished) => self.pending.push(unfinished),
        }
    }

    pub(crate) fn points(&self) -> impl Iterator<Item = Point> + use<> {
        let done = (!self.done.is_empty()).then(|| Point::Done(self.done.clone()));
        done.into_iter().chain(self.pending.clone().into_iter().map(Point::Pending))
    }

    /// Joins what is done by now, and forgets what everybody knows.
    pub(crate) fn prune(&mut self, floor: &Clock) {
        let done = &mut self.done;
        self.pending.retain(|unfinished| match unfinished.clock.get() {
            Some(clock) => {
                done.join(clock);
                false
            }
            None => true,
        });
        self.done.prune(floor);
    }
}

/// Work to wait for, from [`Checker::mark`](crate::Checker::mark).
#[derive(Clone, Debug, Default)]
pub struct Mark(pub(crate) Vec<Point>);

impl Mark {
    /// Whether there is no work to wait for.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Marks other work as well.
    pub(crate) fn join(&mut self, other: &Self) {
        let mut points = Points::default();
        self.0.drain(..).chain(other.0.iter().cloned()).for_each(|point| points.push(point));
        points.prune(&Clock::default());
        self.0.extend(points.points());
    }

    /// The clocks of the work of which all is known.
    pub(crate) fn clocks(&self) -> impl Iterator<Item = &Clock> {
        self.0.iter().filter_map(Point::clock)
    }

    /// The tasks that hold the rest back.
    pub(crate) fn pending(&self) -> impl Iterator<Item = u64> {
        self.0.iter().filter_map(|point| match point {
            Point::Pending(unfinished) if point.clock().is_none() => Some(unfinished.task),
            _ => None,
        })
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Action<'a> {
    /// It only joins the work that it waits for.
    Nothing,
    Work(Cow<'a, [Access]>),
    WriteValue(Cell, u64),
    WaitValue(Cell, u64, Compare),
    /// A host function whose end will be reported, with its accesses.
    Function(Cow<'a, [Access]>),
}

impl Action<'_> {
    pub(crate) fn into_owned(self) -> Action<'static> {
        match self {
            Self::Nothing => Action::Nothing,
            Self::Work(accesses) => Action::Work(Cow::Owned(accesses.into_owned())),
            Self::WriteValue(cell, value) => Action::WriteValue(cell, value),
            Self::WaitValue(cell, value, compare) => Action::WaitValue(cell, value, compare),
            Self::Function(accesses) => Action::Function(Cow::Owned(accesses.into_owned())),
        }
    }
}

/// Who does something, in which call.
#[derive(Clone, Debug)]
pub(crate) struct Actor {
    pub(crate) agent: Agent,
    pub(crate) slot: Slot,
    pub(crate) call: Arc<Call>,
}

#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) actor: Actor,
    pub(crate) action: Action<'static>,
    /// What is before it, as far as that is known.
    pub(crate) base: Clock,
    /// The tasks that must be over before it begins.
    pub(crate) after: Vec<u64>,
    /// How many of those are not over.
    pub(crate) left: usize,
    /// The tasks that wait for it.
    pub(crate) before: Vec<u64>,
    pub(crate) point: Arc<Unfinished>,
    /// It is a host function, and the stream has come to it.
    pub(crate) running: bool,
}
