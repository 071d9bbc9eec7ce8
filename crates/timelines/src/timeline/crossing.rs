//! Waits of streams of another context than the timeline's.
//!
//! The page of a timeline is registered in the timeline's context, for the devices of all contexts.
//! The registration ends with that context. A stream of the same context has no pending wait then,
//! because the driver ends a context after its work. A stream of another context may have one: its
//! signal has happened, but the stream may not have reached the wait, and would read memory that is
//! no longer registered. So such a wait holds a share of the timeline's context until it is over.
//! An event that is recorded right after the wait shows when that is.
//!
//! A wait in a capture is one of the same context, too. Its graph may be launched in a stream of
//! any context, and be made in another one, if the stream joined the capture. So the graph keeps
//! the stream's context. A launch keeps nothing: the driver ends a context after the launches of
//! its nodes, wherever they are (the rules `values.a-launch-elsewhere` and
//! `values.captured-elsewhere`), and the drop of the last share waits for that.
//!
//! A failed context writes no value, and fails no stream of another context. Nothing but the poison
//! of the line ends such a stream's wait. So while a signal is pending for which a stream of
//! another context waits, the crate's thread asks whether the timeline's context works.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use super::foreign::Follow;
use super::slot::{RELAYED, Slot};
use super::{rounds, wait};
use crate::error::{Error, Result};
use crate::sync::lock;
use crate::thread::give_back;
use crate::time::Moment;
use cuda_events::Error::DriverMismatch;
use cuda_events::capture::{CaptureMode, CaptureStatus, ThreadCaptureMode};
use cuda_events::foundation::{GraphValue, OwnCapture, deferring_observers, is_capture_under_way};
use cuda_events::mem_ops::{WaitCondition, WaitValueFlags};
use cuda_events::sys::Function;
use cuda_events::{Context, Event, EventFlags, Progress, StreamRef};

/// How many older waits are asked for at a new one: more than one, so that the list shrinks.
const LOOKS: usize = 4;
/// How many are asked for when a timeline is dropped.
pub(super) const ALL: usize = 64;

/// A wait that may not be over, and the share that it holds.
struct Crossing {
    /// Recorded in the stream after its wait, so it shows that the stream has passed it.
    passed: Event,
    /// The timeline's context.
    context: Context,
    slot: &'static Slot,
    value: u64,
    /// Shows whether the timeline's context works. All crossings of a timeline share one.
    health: Option<Arc<Event>>,
}

impl Crossing {
    /// Drops its events, and returns its shares of the two contexts.
    fn end(self) -> [Context; 2] {
        let Self { passed, context, .. } = self;
        [passed.context().clone(), context]
    }

    /// Whether a stream may wait for a signal that its context still owes.
    fn is_owed(&self) -> bool {
        self.slot.foreign().is_none()
            && matches!(self.slot.line.look(self.value), Ok(Progress::Pending))
    }

    /// Whether the thread asks about its context. One that somebody else owns may end with the last
    /// share that this program holds knowingly, and only the program's own calls ask about it.
    fn is_watched(&self) -> bool {
        self.is_owed() && !self.context.is_borrowed()
    }
}

struct Crossings {
    waits: VecDeque<Crossing>,
    /// How many waits are not in the list now and will be, because a thread submits them or asks
    /// for them.
    coming: usize,
    /// Whether [`Watch`] was given to the thread.
    watched: bool,
}

impl Crossings {
    const fn new() -> Self {
        Self { waits: VecDeque::new(), coming: 0, watched: false }
    }

    /// Whether there are none, and no thread has any in its hands.
    fn is_empty(&self) -> bool {
        self.waits.is_empty() && self.coming == 0
    }
}

static CROSSINGS: Mutex<Crossings> = Mutex::new(Crossings::new());

/// Whether the stream is of another context than the line, or may be part of a capture, or that
/// must be looked at more closely. While a timeline has the line, its context lives, and no other
/// one of the same library has the same handle. Drivers of one library have several tables only
/// where they are observed or attach a clock.
#[inline(always)]
pub(super) fn is_needed(stream: &StreamRef, slot: &Slot) -> bool {
    let table = core::ptr::from_ref(stream.context().driver().symbols()).addr();
    is_capture_under_way()
        || stream.context().as_raw().addr() != slot.context()
        || table != slot.table()
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
    if !stream.context().driver().is_same_library(driver) {
        return Err(DriverMismatch { function: FUNCTION }.into());
    }
    submit_at(stream, slot, value, home, None)
}

/// Has a stream wait. `home` is the context in which the page is registered, if a share of it
/// exists. A context without a share may have ended, and another one may have its handle. The graph
/// of a capture keeps `captured`.
#[allow(unsafe_code)]
pub(super) fn submit_at(
    stream: &StreamRef,
    slot: &'static Slot,
    value: u64,
    home: Option<Context>,
    captured: Option<Arc<dyn GraphValue>>,
) -> Result<()> {
    match home {
        Some(home) if home == *stream.context() => {
            let submitted = submit_within(stream, slot, value, &home, captured);
            give_back(home);
            submitted
        }
        home => submit_across(stream, slot, value, home),
    }
}

/// Has a stream of the timeline's context wait.
#[allow(unsafe_code)]
fn submit_within(
    stream: &StreamRef,
    slot: &'static Slot,
    value: u64,
    home: &Context,
    captured: Option<Arc<dyn GraphValue>>,
) -> Result<()> {
    // SAFETY: the page is registered in the stream's context: a share has held that alive since
    // then. Work of the stream is over when the context ends, and so are launches of its nodes in
    // streams of other contexts. Between launches the graph of a capture keeps the context.
    let wait = || unsafe { wait_value(stream, slot, value) };
    let Some(capture) = OwnCapture::of(stream)? else { return Ok(wait()?) };
    // The graph's own context may be another one.
    let wait = || capture.keep(Arc::new(home.clone()), FUNCTION, wait);
    Ok(match captured {
        Some(captured) => capture.keep(captured, FUNCTION, wait),
        None => wait(),
    }?)
}

/// Has a stream of another context wait.
#[allow(unsafe_code)]
fn submit_across(
    stream: &StreamRef,
    slot: &'static Slot,
    value: u64,
    home: Option<Context>,
) -> Result<()> {
    let Some(context) = home else {
        // Reached meanwhile, or it cannot be found out.
        return match slot.look(value)? {
            Progress::Done => Ok(()),
            Progress::Pending => Err(Error::ContextDropped),
        };
    };
    // An event that is recorded in a capture shows nothing.
    if stream.capture_status()? != CaptureStatus::None {
        return Err(Error::TimelineInCapture { function: FUNCTION });
    }
    sweep(LOOKS);
    // A wait in the timeline's own context gets this error from the driver.
    let mut health = None;
    if has_pending_signal(slot)
        && let Err(error) = wait::ask(slot, &mut health)
    {
        return if slot.line.reached() >= value { Ok(()) } else { Err(error) };
    }
    // Made first: once the wait is submitted, nothing may go wrong.
    let passed = Event::new(stream.context(), EventFlags::empty())?;
    let coming = Coming::new(slot, &context)?;
    // SAFETY: the share of the context is held until the event shows that the wait is over.
    unsafe { wait_value(stream, slot, value) }?;
    match passed.record(stream) {
        Ok(()) => {
            let crossing = Crossing { passed, context, slot, value, health };
            lock(&CROSSINGS).waits.push_back(crossing);
            drop(coming);
            Ok(())
        }
        Err(error) => {
            // Nothing shows when the wait is over.
            context.abandon();
            Err(error.into())
        }
    }
}

/// Whether a signal that was submitted has not come. The signals of a host come at once. False
/// while another thread submits a signal: the driver may block that thread.
fn has_pending_signal(slot: &Slot) -> bool {
    let owed = |submitted| submitted != RELAYED && slot.line.reached() < submitted;
    slot.foreign().is_none() && slot.state.try_lock().is_ok_and(|state| owed(state.submitted))
}

/// A wait that is being submitted. The thread does not stop watching before the wait is in the
/// list.
struct Coming;

impl Coming {
    /// Calls the thread, unless it watches already, or never would for this wait.
    fn new(slot: &Slot, context: &Context) -> Result<Self> {
        let first = {
            let mut crossings = lock(&CROSSINGS);
            crossings.coming += 1;
            if slot.foreign().is_some() || context.is_borrowed() {
                return Ok(Self);
            }
            !core::mem::replace(&mut crossings.watched, true)
        };
        let coming = Self;
        // With nothing locked: the thread takes this lock, too. An earlier wait may have found no
        // thread.
        if (first || !rounds::is_started()) && !rounds::follow(Arc::new(Watch), first) {
            return Err(Error::NoThread);
        }
        Ok(coming)
    }
}

impl Drop for Coming {
    fn drop(&mut self) {
        lock(&CROSSINGS).coming -= 1;
    }
}

/// The thread's work: the timelines for which streams of other contexts wait.
struct Watch;

impl Follow for Watch {
    fn is_relayed(&self) -> bool {
        false
    }

    /// `since` is when a wait was first seen to be pending: most are over by the next question, and
    /// take none.
    fn follow(&self, ask: bool, now: Moment, since: &mut Option<Moment>) -> bool {
        if !ask {
            return true;
        }
        let watched: Vec<_> = {
            let mut crossings = lock(&CROSSINGS);
            let watched = crossings.waits.iter().filter(|crossing| crossing.is_watched());
            let watched = watched
                .map(|crossing| (crossing.slot, crossing.context.clone(), crossing.health.clone()));
            let watched: Vec<_> = watched.collect();
            if watched.is_empty() && crossings.coming == 0 {
                crossings.watched = false;
                return false;
            }
            watched
        };
        let due = since.replace(now).is_some();
        let mut answers: Vec<(Context, Result<()>)> = Vec::new();
        for (slot, context, mut health) in watched {
            if due && has_pending_signal(slot) {
                match answers.iter().find(|(asked, _)| *asked == context) {
                    Some((_, Ok(()))) => {}
                    Some((_, Err(error))) => slot.condemn(error),
                    None => answers.push((context.clone(), wait::ask(slot, &mut health))),
                }
            }
            drop(health);
            give_back(context);
        }
        answers.into_iter().for_each(|(context, _)| give_back(context));
        true
    }
}

/// Locked while a thread asks for waits, and drops the events of those that are over.
///
/// The owner of a [borrowed](Context::from_raw) context may destroy it after the last timeline was
/// dropped, and then no thread may use an event of it. So the drop of a timeline waits for the
/// thread that has one in its hands: for a few driver calls for each of at most [`ALL`] waits. No
/// code of the program runs under this lock, and no work of the crate's own thread takes it.
static SWEEP: Mutex<()> = Mutex::new(());

/// Asks for some of the waits, the oldest first, and gives back the shares of those that are over.
/// If another thread does so now, the drop of a timeline waits for it, and a new wait leaves it to
/// that thread.
pub(super) fn sweep(most: usize) {
    if lock(&CROSSINGS).is_empty() {
        return;
    }
    let turn = if most == ALL { Some(lock(&SWEEP)) } else { SWEEP.try_lock().ok() };
    let Some(turn) = turn.map(deferring_observers) else { return };
    let mut shares = Vec::new();
    sweep_locked(most, &mut shares);
    drop(turn);
    // With nothing locked. This thread may have nothing to do with these contexts, so it must not
    // be blocked by the end of one.
    shares.into_iter().flatten().for_each(give_back);
}

fn sweep_locked(most: usize, shares: &mut Vec<[Context; 2]>) {
    // Not within the loop's own expressions, which would keep it locked.
    let count = lock(&CROSSINGS).waits.len().min(most);
    for _ in 0..count {
        let oldest = {
            let mut crossings = lock(&CROSSINGS);
            let oldest = crossings.waits.pop_front();
            crossings.coming += usize::from(oldest.is_some());
            oldest
        };
        let Some(mut crossing) = oldest else { return };
        let coming = Coming;
        let driver = crossing.passed.context().driver();
        let Ok(relaxed) = ThreadCaptureMode::exchange(driver, CaptureMode::Relaxed) else {
            lock(&CROSSINGS).waits.push_back(crossing);
            return;
        };
        let pending = matches!(crossing.passed.query(), Ok(Progress::Pending));
        drop(relaxed);
        if pending {
            if most == ALL && crossing.is_owed() && has_pending_signal(crossing.slot) {
                // The thread does not ask about each context, and poison is all that ends the wait.
                let _ = wait::ask(crossing.slot, &mut crossing.health);
            }
            lock(&CROSSINGS).waits.push_back(crossing);
        } else {
            // A wait in a context that has failed is over, too.
            shares.push(crossing.end());
        }
        drop(coming);
    }
}

/// # Safety
///
/// The context in which the line's page is registered must live until the wait is over.
#[inline(always)]
#[allow(unsafe_code)]
pub(super) unsafe fn wait_value(
    stream: &StreamRef,
    slot: &'static Slot,
    value: u64,
) -> cuda_events::Result<()> {
    let (condition, flags) = (WaitCondition::GreaterOrEqual, WaitValueFlags::empty());
    // SAFETY: the address is that of 8 bytes in pinned host memory, aligned to 64, which is never
    // freed, and which the host changes by atomics only. The caller vouches for its registration.
    unsafe { stream.wait_value64(slot.address(), value, condition, flags) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::now;
    use crate::{CudaStreamExt, HostTimeline, Timeline};
    use core::ptr::null_mut;
    use cuda_events::sys::CUresult;
    use cuda_events::{Device, Stream, StreamOptions};
    use cuda_soft_driver::SoftDriver;

    fn stream(context: &Context) -> Stream {
        Stream::new(context, StreamOptions::new()).unwrap()
    }

    /// The context and the table of the driver decide.
    #[test]
    fn it_is_for_streams_of_others() {
        let soft = SoftDriver::new();
        let (one, two) = (soft.driver(), soft.driver());
        let [one, two] =
            [one, two].map(|driver| Device::new(driver, 0).and_then(Context::primary).unwrap());
        let timeline = Timeline::new(stream(&one)).unwrap();
        let needed = [&one, &two].map(|context| is_needed(&stream(context), timeline.slot));
        assert_eq!((needed, one.as_raw()), ([false, true], two.as_raw()));
    }

    /// Between the submission of a wait and the list, too.
    #[test]
    fn it_watches_while_a_wait_is_submitted() {
        cuda_events_test_support::own_process!();
        let soft = SoftDriver::new();
        let context = Device::new(soft.driver(), 0).and_then(Context::primary).unwrap();
        let timeline = Timeline::new(stream(&context)).unwrap();
        let slot = timeline.slot;
        let look = || (Watch.follow(true, now(), &mut None), lock(&CROSSINGS).watched);
        let [first, second] = [(); 2].map(|()| Coming::new(slot, &context).unwrap());
        assert_eq!(look(), (true, true));
        drop(first);
        assert_eq!(look(), (true, true));
        drop(second);
        assert_eq!(look(), (false, false));
    }

    /// A wait that stays pending keeps none of those that are over. A drop asks about it, and leaves
    /// captures alone.
    #[test]
    fn the_list_of_waits_stays_short() {
        cuda_events_test_support::own_process!();
        let soft = SoftDriver::builder().devices(2).build();
        let [one, two] =
            [0, 1].map(|at| Device::new(soft.driver(), at).and_then(Context::primary).unwrap());
        let (host, held, waiting) = (HostTimeline::new(&one).unwrap(), stream(&two), stream(&two));
        host.wait_ahead(&held, host.completed() + 1000).unwrap();
        for _ in 0..64 {
            host.wait_ahead(&waiting, host.completed() + 1).unwrap();
            host.signal().unwrap();
            waiting.synchronize().unwrap();
        }
        let left = lock(&CROSSINGS).waits.len();
        assert!(left <= LOOKS, "{left}");
        let mode = CaptureMode::Global;
        let captured = stream(&one);
        let capture = cuda_events_test_support::begin_capture(&captured, mode).unwrap();
        drop(HostTimeline::new(&two).unwrap());
        capture.end().unwrap();
        assert_eq!(lock(&CROSSINGS).waits.len(), 1);
        host.poison();
        held.synchronize().unwrap();
        drop(host);
        assert!(lock(&CROSSINGS).waits.is_empty());
    }

    /// The owner of a context may end it as soon as the program has dropped its timelines.
    #[test]
    #[allow(unsafe_code)]
    fn it_leaves_contexts_of_other_code_alone() {
        cuda_events_test_support::own_process!();
        let soft = SoftDriver::builder().log(4096).build();
        let driver = soft.driver();
        let primary = Device::new(driver, 0).and_then(Context::primary).unwrap();
        let mut raw = null_mut();
        let create = driver.symbols().cuCtxCreate_v2;
        // SAFETY: a place for the handle; the context lives until the end of the test.
        let borrowed = unsafe {
            assert_eq!(create(&mut raw, 0, 0), CUresult::CUDA_SUCCESS);
            Context::from_raw(driver, raw).unwrap()
        };
        let asked = || {
            let log = soft.log();
            log.iter().filter(|call| call.function == Function::cuEventQuery.name()).count()
        };
        // Each waits for a pending signal of the other.
        let owed = |signals: &Context, by: &Context| {
            let timeline = Timeline::new(stream(signals)).unwrap();
            let (release, released) = std::sync::mpsc::channel::<()>();
            let wait = move || {
                let _ = released.recv();
            };
            timeline.stream().launch_host_function(wait).unwrap();
            let waiting = stream(by);
            waiting.wait_point(timeline.signal().unwrap()).unwrap();
            (timeline, waiting, release)
        };
        let mut since = None;
        let mut look = || {
            let before = asked();
            (Watch.follow(true, now(), &mut since), asked() - before)
        };
        let theirs = owed(&borrowed, &primary);
        assert!(!lock(&CROSSINGS).watched, "the thread was called for it");
        assert_eq!((look(), look()), ((false, 0), (false, 0)), "it asks about nothing");
        let ours = owed(&primary, &borrowed);
        assert_eq!((look(), look(), look()), ((true, 0), (true, 1), (true, 1)));
        for (timeline, waiting, release) in [theirs, ours] {
            drop(release);
            waiting.synchronize().unwrap();
            drop((timeline, waiting));
        }
        // The drop of a timeline frees what the waits that are over had.
        drop(HostTimeline::new(&primary).unwrap());
        assert!(lock(&CROSSINGS).waits.is_empty());
        assert_eq!(look(), (false, 0));
    }
}
