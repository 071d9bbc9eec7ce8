//! This process's state of a line: who may write it, what was submitted, its context.

use core::fmt;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use crate::error::{Error, Result};
use crate::sync::lock;
use cuda_events::sys::{CUdeviceptr, CUresult};
use cuda_events::{Context, Driver, Event, Progress};

use super::asked::Asked;
use super::foreign::Foreign;
use super::home::Home;
use super::line::{LARGEST, Line};
use super::queue::Queue;
use super::shared_failure::Failure;

/// The largest value at which a timeline begins.
const LARGEST_START: u64 = LARGEST / 2;

/// The value of `submitted` for a line to which values of another process are copied.
pub(super) const RELAYED: u64 = LARGEST;

/// The value of `submitted` for a line to which a stream copies values of another process.
const MIRRORED: u64 = LARGEST - 1;

/// This process's state of a line. It is aligned, so the use of one timeline does not slow
/// down its neighbour.
#[repr(align(128))]
pub(super) struct Slot {
    pub(super) line: &'static Line,
    /// The handle of the context that the page is registered in, and the line's address for
    /// devices. They change with the owner of the page. A point of an earlier owner may read the
    /// wrong ones. This is harmless: that point is reached, and a wait for it is over in any
    /// stream.
    context: AtomicUsize,
    /// The address of the driver's table.
    table: AtomicUsize,
    address: AtomicU64,
    /// Locked while a signal is submitted.
    pub(super) state: Mutex<State>,
    home: Home,
    pub(super) queue: Queue,
    /// When waits with a limit must ask whether the timeline works.
    pub(super) asked: Asked,
    whose: Whose,
}

/// No code of the program runs while it is locked.
impl core::panic::RefUnwindSafe for Slot {}

/// The visibility of a line.
pub(super) enum Whose {
    /// Visible to this process only.
    Own,
    /// Processes that were given its file. They may wait for any value. If it is `exposed`, they
    /// can also write any value, and nothing that is there decides what this process does.
    Shared { failure: Failure, exposed: bool },
    /// It is another process's, and is mapped for reading alone: a store there ends this process.
    Foreign(Foreign),
    /// Visible to this process only; a device copies to it what is in another process's memory.
    Mirror(OnceLock<Weak<dyn Mirrored>>),
}

/// Whatever a mirror shows: a timeline of another process.
pub(super) trait Mirrored: Send + Sync {
    /// Whether the exporter is certain to have ended. No driver call, and no lock.
    fn has_ended(&self) -> bool;
}

/// Interprets a look at a mirror.
///
/// Poison without a reason comes from the exporter, or from another importer that has seen the
/// exporter's end and releases its own waits. The latter may be noticed here before the end is.
#[cold]
fn judge_mirrored(
    mirrored: Option<&Weak<dyn Mirrored>>,
    seen: Result<Progress>,
) -> Result<Progress> {
    match (&seen, mirrored.and_then(Weak::upgrade)) {
        (Err(Error::Poisoned), Some(timeline)) if timeline.has_ended() => Err(Error::ExporterGone),
        _ => seen,
    }
}

#[derive(Default)]
pub(super) struct State {
    /// The value of the last signal that was given to the driver, or would have been.
    pub(super) submitted: u64,
    /// The last signal that the driver refused. It may have taken it all the same.
    pub(super) refused: Option<u64>,
    /// The largest value that a wait ahead was submitted for.
    pub(super) ahead: u64,
    /// Whether nothing is signalled any more.
    pub(super) over: bool,
    /// Whether this process has ended all waits for a line of a file.
    pub(super) ended: bool,
}

impl Slot {
    pub(super) fn new(line: &'static Line, whose: Whose) -> Self {
        Self {
            line,
            context: AtomicUsize::new(0),
            table: AtomicUsize::new(0),
            address: AtomicU64::new(0),
            state: Mutex::default(),
            home: Home::new(),
            queue: Queue::new(),
            asked: Asked::new(),
            whose,
        }
    }

    /// The exporter's state, if the line belongs to another process.
    #[inline(always)]
    pub(super) fn foreign(&self) -> Option<&Foreign> {
        match &self.whose {
            Whose::Foreign(foreign) => Some(foreign),
            _ => None,
        }
    }

    pub(super) fn is_shared(&self) -> bool {
        matches!(self.whose, Whose::Shared { .. })
    }

    /// Poisons a line of this process, whose context has failed with this code.
    pub(super) fn fail(&self, code: CUresult) {
        match &self.whose {
            Whose::Shared { failure, .. } => failure.record(self.line, code),
            _ => self.line.poison(Some(code)),
        }
    }

    /// Whether the value is reached, or an error if it will not be.
    #[inline(always)]
    pub(super) fn look(&self, value: u64) -> Result<Progress> {
        match self.line.look(value) {
            Ok(Progress::Done) => Ok(Progress::Done),
            seen => self.judge(value, seen),
        }
    }

    /// What is seen of a value that is not reached, as it is to be understood here.
    #[inline(always)]
    pub(super) fn judge(&self, value: u64, seen: Result<Progress>) -> Result<Progress> {
        match &self.whose {
            Whose::Own => seen,
            Whose::Shared { failure, .. } => failure.judge(seen, || self.line.reached() >= value),
            Whose::Foreign(foreign) => foreign.judge(seen, || self.line.look(value)),
            Whose::Mirror(mirrored) => judge_mirrored(mirrored.get(), seen),
        }
    }

    /// The result for a waiter whose question ended with this error: what happened meanwhile. An
    /// exporter reaches a value, or drops the timeline, before it ends.
    #[cold]
    pub(super) fn look_after(&self, value: u64, error: Error) -> Result<Progress> {
        match self.look(value) {
            Ok(Progress::Pending) => Err(error),
            // The question shows which call failed; the line does not.
            Err(_) if self.foreign().is_none() => Err(error),
            seen => seen,
        }
    }

    /// Notes what the mirror shows, once.
    pub(super) fn mirror(&self, timeline: Weak<dyn Mirrored>) {
        if let Whose::Mirror(mirrored) = &self.whose {
            let _ = mirrored.set(timeline);
        }
    }

    /// Whether no more values will be reached, as far as this process has seen.
    pub(super) fn is_over(&self) -> bool {
        let ended = match &self.whose {
            Whose::Own | Whose::Mirror(_) => false,
            Whose::Shared { failure, .. } => failure.error().is_some(),
            Whose::Foreign(foreign) => foreign.is_gone(),
        };
        ended || self.line.is_poisoned()
    }

    #[inline(always)]
    pub(super) fn context(&self) -> usize {
        self.context.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(super) fn table(&self) -> usize {
        self.table.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(super) fn address(&self) -> CUdeviceptr {
        self.address.load(Ordering::Relaxed)
    }

    /// The driver of the timeline, and a share of its context unless the last one was dropped.
    pub(super) fn home(&self) -> Option<(Driver, Option<Context>)> {
        self.home.get()
    }

    /// The event that shows whether the context works. It has a share of the context.
    pub(super) fn health(&self) -> Result<Arc<Event>> {
        self.home.health()
    }

    /// Gives the line to a timeline of the context.
    pub(super) fn begin(&self, context: &Context, address: CUdeviceptr) {
        self.begin_at(context, address, self.line.reached());
    }

    /// As [`begin`](Self::begin), for a line that has this value unless another process wrote it.
    pub(super) fn begin_at(&self, context: &Context, address: CUdeviceptr, value: u64) {
        *lock(&self.state) = State { submitted: value, ahead: value, ..State::default() };
        self.home.set(context);
        let table = core::ptr::from_ref(context.driver().symbols()).addr();
        self.context.store(context.as_raw().addr(), Ordering::Relaxed);
        self.table.store(table, Ordering::Relaxed);
        self.address.store(address, Ordering::Relaxed);
        self.asked.begin();
        self.line.begin();
    }

    /// Notes where a line of another process is imported. The line itself cannot be written, and
    /// its context is left out, so that each wait of a stream comes to [`Foreign`].
    pub(super) fn import(&self, context: &Context, address: Option<CUdeviceptr>) {
        self.home.set_unless_alive(context);
        if let Some(address) = address {
            self.address.store(address, Ordering::Relaxed);
        }
    }

    /// Whether a stream may wait for a value above the last signal.
    pub(super) fn is_awaited(&self, state: &State) -> bool {
        // Other processes may wait for any value.
        !state.over && (self.is_shared() || state.ahead > state.submitted)
    }

    /// Notes that there are no more signals; returns whether a stream may wait for more.
    pub(super) fn close(&self) -> bool {
        let mut state = lock(&self.state);
        let awaited = self.is_awaited(&state);
        state.over |= awaited;
        awaited
    }

    /// Releases the waits for values above the last signal, if that has happened; returns whether
    /// there is nothing left to do. The timeline was dropped.
    pub(super) fn release_waits(&self) -> bool {
        let mut state = lock(&self.state);
        if self.is_finished_as(&state) {
            return true;
        }
        if self.line.reached() < state.submitted {
            return false;
        }
        if self.is_shared() {
            self.line.end();
            state.ended = true;
        } else if state.ahead > LARGEST_START {
            self.line.poison(None);
        } else {
            // Nobody has a point above the last signal, so that none seems reached by this.
            self.line.raise(state.ahead);
            *state = State { submitted: state.ahead, ..State::default() };
        }
        true
    }

    /// Ends all waits for a line of a file, to which this process's streams write no more.
    pub(super) fn finish(&self) {
        self.line.end();
        lock(&self.state).ended = true;
    }

    /// Whether this process has ended all waits for its line.
    pub(super) fn is_finished(&self) -> bool {
        self.is_finished_as(&lock(&self.state))
    }

    fn is_finished_as(&self, state: &State) -> bool {
        match &self.whose {
            // Another process may have written or erased a poison.
            Whose::Shared { failure, exposed: true } => failure.error().is_some() || state.ended,
            _ => self.line.is_poisoned(),
        }
    }

    /// Whether a signal that was submitted has not come, and may come.
    pub(super) fn is_pending(&self) -> bool {
        // While it is locked, somebody signals.
        let submitted = self.state.try_lock().map_or(LARGEST, |state| state.submitted);
        self.line.reached() < submitted && !self.is_over()
    }

    /// Makes a line of this process the relay of another's: this process's host alone writes it.
    pub(super) fn begin_relay(&self) {
        lock(&self.state).submitted = RELAYED;
    }

    /// Ends a relay. Streams that wait for values up to this one go on, even if it was poisoned. No
    /// point of it exists.
    pub(super) fn end_relay(&self, value: u64) {
        let mut state = lock(&self.state);
        *state = State { submitted: self.line.settle(value), ..State::default() };
    }

    /// Makes a line of this process a mirror, which a stream of the crate writes.
    pub(super) fn begin_mirror(&self) {
        lock(&self.state).submitted = MIRRORED;
    }

    /// Notes that the timeline was dropped: its context may end from now on, and another one may
    /// get its handle.
    pub(super) fn leave(&self) {
        self.context.store(0, Ordering::Relaxed);
    }

    /// Whether no stream has anything to write here, now or later; see the top of `pages.rs`.
    pub(super) fn is_idle(&self) -> bool {
        let state = lock(&self.state);
        !state.over && state.submitted <= LARGEST_START && self.line.is_exactly(state.submitted)
    }

    /// Whether it never will be.
    pub(super) fn is_lost(&self) -> bool {
        let submitted = lock(&self.state).submitted;
        submitted != RELAYED && (submitted > LARGEST_START || self.line.is_poisoned())
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot")
            .field("reached", &self.line.reached())
            .field("poisoned", &self.line.is_poisoned())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuda_events::sys::Function;

    fn slot(whose: Whose) -> &'static Slot {
        // As the library does, so that Miri does not take them for leaked.
        static SLOTS: Mutex<Vec<&'static Slot>> = Mutex::new(Vec::new());
        let line: &Line = Box::leak(Box::new(Line::default()));
        let slot: &Slot = Box::leak(Box::new(Slot::new(line, whose)));
        lock(&SLOTS).push(slot);
        slot
    }

    fn shared(exposed: bool) -> &'static Slot {
        slot(Whose::Shared { failure: Failure::default(), exposed })
    }

    /// Only a wait for a value above the last signal is owed something, and nothing is owed twice.
    /// Who has the file may wait for any value.
    #[test]
    fn a_wait_above_the_last_signal_is_owed_its_end() {
        let own = || slot(Whose::Own);
        let cases = [
            (own(), false, 6, true),
            (own(), false, 5, false),
            (own(), false, 4, false),
            (own(), true, 6, false),
            (shared(false), false, 4, true),
            (shared(true), false, 5, true),
            (shared(true), true, 6, false),
        ];
        for (at, (slot, over, ahead, awaited)) in cases.into_iter().enumerate() {
            *lock(&slot.state) = State { submitted: 5, ahead, over, ..State::default() };
            assert_eq!(slot.is_awaited(&lock(&slot.state)), awaited, "case {at}");
            assert_eq!(slot.close(), awaited, "case {at}");
            assert_eq!(lock(&slot.state).over, over || awaited, "case {at}");
            assert!(!slot.close(), "case {at}: it was closed already");
        }
    }

    /// The thread asks the driver about what was submitted, has not come, and may come.
    #[test]
    fn a_signal_is_pending_until_it_has_come_or_cannot() {
        let code = CUresult::CUDA_ERROR_LAUNCH_FAILED;
        let begun = |slot: &'static Slot| {
            lock(&slot.state).submitted = 2;
            slot.line.raise(1);
            assert!(slot.is_pending());
            slot
        };
        let reached = begun(slot(Whose::Own));
        reached.line.raise(2);
        assert!(!reached.is_pending());
        // While somebody signals, what is submitted is not known.
        let signals = lock(&reached.state);
        assert!(reached.is_pending());
        drop(signals);
        assert!(!reached.is_pending());
        // Poisoned: nobody looks at the driver again for what will not come.
        for slot in [begun(slot(Whose::Own)), begun(shared(false)), begun(shared(true))] {
            slot.fail(code);
            assert!(!slot.is_pending());
        }
        // Another process has erased the poison, and not what this one's driver has said.
        let erased = begun(shared(true));
        erased.fail(code);
        erased.line.put([1, 0]);
        assert!(!erased.line.is_poisoned() && !erased.is_pending());
    }

    /// A point that was reached while the driver was asked is reached. Otherwise a waiter gets the
    /// error of the call that failed, except from the line of another process: of that the line
    /// knows more.
    #[test]
    fn what_has_happened_meanwhile_comes_before_the_question() {
        let code = CUresult::CUDA_ERROR_OUT_OF_MEMORY;
        let function = Function::cuEventCreate;
        let asked = || Error::from(cuda_events::Error::Driver { function, code });
        let kinds: [fn() -> &'static Slot; 4] = [
            || slot(Whose::Own),
            || shared(true),
            || slot(Whose::Mirror(OnceLock::new())),
            || slot(Whose::Foreign(Foreign::new())),
        ];
        for (at, kind) in kinds.into_iter().enumerate() {
            let pending = kind();
            assert_eq!(pending.look_after(1, asked()), Err(asked()), "pending, {at}");
            let reached = kind();
            reached.line.raise(1);
            assert_eq!(reached.look_after(1, asked()), Ok(Progress::Done), "reached, {at}");
            // The value after it is not.
            assert_eq!(reached.look_after(2, asked()), Err(asked()), "the next, {at}");
            let given_up = kind();
            given_up.line.poison(None);
            let is_foreign = given_up.foreign().is_some();
            let error = if is_foreign { Error::Poisoned } else { asked() };
            assert_eq!(given_up.look_after(1, asked()), Err(error), "poisoned, {at}");
        }
    }

    /// A line whose writes have come serves the next timeline, unless its values come near the
    /// largest. Each line either will, or never will; a relay that is not over yet is neither.
    #[test]
    fn a_line_without_writes_is_idle_or_lost() {
        let cases = [(0, true), (LARGEST_START, true), (LARGEST_START + 1, false)];
        for (at, idle) in cases.into_iter().chain([(MIRRORED, false)]) {
            let slot = slot(Whose::Own);
            slot.line.raise(at);
            lock(&slot.state).submitted = at;
            assert_eq!((slot.is_idle(), slot.is_lost()), (idle, !idle), "{at:#x}");
            slot.line.poison(None);
            assert_eq!((slot.is_idle(), slot.is_lost()), (false, true), "{at:#x}, poisoned");
            // The waits above it are released by a value that may be that large, or a poison.
            let awaited = self::slot(Whose::Own);
            *lock(&awaited.state) = State { ahead: at, ..State::default() };
            assert!(awaited.release_waits());
            assert_eq!(awaited.line.is_poisoned(), !idle, "{at:#x}, awaited");
        }
        let relay = slot(Whose::Own);
        relay.begin_relay();
        assert_eq!((relay.is_idle(), relay.is_lost()), (false, false));
    }
}
