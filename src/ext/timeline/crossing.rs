//! Waits of streams of another context than the timeline's.
//!
//! The page of a timeline is registered in the timeline's context, for the devices of all contexts.
//! The registration ends with that context. A stream of the same context has no pending wait then,
//! because the driver ends a context after its work. A stream of another context may have one: its
//! signal has happened, but the stream may not have reached the wait, and would read memory that is
//! no longer registered. So such a wait holds a share of the timeline's context until it is over.
//! An event that is recorded right after the wait shows when that is.

use std::collections::VecDeque;
use std::sync::Mutex;

use super::slot::{Slot, lock};
use crate::capture::{CaptureMode, CaptureStatus, ThreadCaptureMode};
use crate::ext::needs::{is_same_library, unusual};
use crate::ext::poller::give_back;
use crate::mem_ops::{WaitCondition, WaitValueFlags};
use crate::sys::Function;
use crate::{Context, Error, Event, EventFlags, Progress, Result, StreamRef};

/// How many older waits are asked for at a new one: more than one, so that the list shrinks.
const LOOKS: usize = 4;
/// How many are asked for when a timeline is dropped.
pub(super) const ALL: usize = 64;

/// A wait that may not be over, and the share that it holds.
struct Crossing {
    /// Recorded after the wait.
    passed: Event,
    /// The timeline's.
    context: Context,
}

impl Crossing {
    /// Gives back its shares of the two contexts. The calling thread may have nothing to do with
    /// these contexts, so it must not be blocked by the end of one.
    fn end(self) {
        let Self { passed, context } = self;
        let waited = passed.context().clone();
        drop(passed);
        give_back(waited);
        give_back(context);
    }
}

static CROSSINGS: Mutex<VecDeque<Crossing>> = Mutex::new(VecDeque::new());

/// Whether the stream is of another context than the line, or that must be looked at more closely.
#[inline(always)]
pub(super) fn is_needed(stream: &StreamRef, slot: &Slot) -> bool {
    unusual() || stream.context().as_raw().addr() != slot.context()
}

const FUNCTION: Function = Function::cuStreamWaitValue64_v2;

#[cold]
#[inline(never)]
#[allow(unsafe_code)]
pub(super) fn submit_wait(stream: &StreamRef, slot: &'static Slot, value: u64) -> Result<()> {
    if let Some(foreign) = slot.foreign() {
        return foreign.link()?.submit_wait(stream, value);
    }
    let Some((driver, home)) = slot.home() else { return Err(Error::ContextDropped) };
    if !is_same_library(stream.driver(), driver) {
        return Err(Error::DriverMismatch { function: FUNCTION });
    }
    if stream.context().as_raw().addr() == slot.context() {
        // SAFETY: the page is registered in the stream's context, which the stream keeps alive.
        return unsafe { wait_value(stream, slot, value) };
    }
    submit_across(stream, slot, value, home)
}

/// Has a stream of another context wait. `home` is the context in which the page is registered.
#[allow(unsafe_code)]
pub(super) fn submit_across(
    stream: &StreamRef,
    slot: &'static Slot,
    value: u64,
    home: Option<Context>,
) -> Result<()> {
    let Some(context) = home else {
        // Reached meanwhile, or never to be known.
        return match slot.look(value)? {
            Progress::Done => Ok(()),
            Progress::Pending => Err(Error::ContextDropped),
        };
    };
    // An event that is recorded in a capture would tell nothing.
    if stream.capture_status()? != CaptureStatus::None {
        return Err(Error::TimelineInCapture { function: FUNCTION });
    }
    sweep(LOOKS);
    // Made first: once the wait is submitted, nothing may go wrong.
    let passed = Event::new(stream.context(), EventFlags::empty())?;
    // SAFETY: the share of the context is kept until the event says that the wait is over.
    unsafe { wait_value(stream, slot, value) }?;
    match passed.record(stream) {
        Ok(()) => {
            lock(&CROSSINGS).push_back(Crossing { passed, context });
            Ok(())
        }
        Err(error) => {
            // Nobody can tell when the wait is over.
            context.abandon();
            Err(error)
        }
    }
}

/// Asks for some of the waits, the oldest first, and gives back the shares of those that are over.
pub(super) fn sweep(most: usize) {
    // Not within the loop's own expressions, which would keep it locked.
    let count = lock(&CROSSINGS).len().min(most);
    for _ in 0..count {
        let oldest = lock(&CROSSINGS).pop_front();
        let Some(crossing) = oldest else { return };
        let driver = crossing.passed.context().driver();
        let Ok(relaxed) = ThreadCaptureMode::exchange(driver, CaptureMode::Relaxed) else {
            lock(&CROSSINGS).push_back(crossing);
            return;
        };
        let pending = matches!(crossing.passed.query(), Ok(Progress::Pending));
        drop(relaxed);
        if pending {
            lock(&CROSSINGS).push_back(crossing);
        } else {
            // With nothing locked. A wait in a context that has failed is over, too.
            crossing.end();
        }
    }
}

/// # Safety
///
/// The context in which the line's page is registered must live until the wait is over.
#[inline(always)]
#[allow(unsafe_code)]
pub(super) unsafe fn wait_value(stream: &StreamRef, slot: &'static Slot, value: u64) -> Result<()> {
    let (condition, flags) = (WaitCondition::GreaterOrEqual, WaitValueFlags::empty());
    // SAFETY: the address is that of 8 bytes in pinned host memory, aligned to 64, which is never
    // freed, and which the host changes by atomics only. The caller vouches for its registration.
    unsafe { stream.wait_value64(slot.address(), value, condition, flags) }
}
