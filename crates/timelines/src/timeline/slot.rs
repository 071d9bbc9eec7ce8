//! The lines of all timelines of the process, in pages that are shared and never freed.
//!
//! # Why nothing is ever freed
//!
//! Any thread may read a point at any time. A point is a plain value: it keeps nothing alive. So a
//! line stays readable forever. This also makes dropping a timeline free of waiting:
//! `cuMemHostUnregister` would block while a stream waits for a value in the page. A page stays
//! registered as long as its context lives. When the driver destroys the context, it ends the
//! registration, and the page serves the next context: registering it again succeeds then, and only
//! then. A page of which no line can be used again is forgotten. So the process has as many pages
//! as it has ever needed at one time, and one for each 64 lines that were lost.
//!
//! # When a line is used again
//!
//! A line goes to another timeline when the old one was dropped and the value is the last submitted
//! one. Then no stream has a pending write, because the writes of one timeline happen in order.
//! Waits that streams have not reached yet are over when they look: each is for a point, which is
//! not above that value, and the next timeline continues from there, so the value never decreases.
//! Waits ahead, for values above it, are ended when the last signal has happened after the drop:
//! the host raises the value to the largest of them, and the next timeline continues from there.
//! The same holds for waits for another process's line that a stream makes at a relay.
//!
//! A line is lost if it is poisoned and not a relay: a point of an older timeline may not be
//! reached, and must not look reached later. A line that has reached half of all values is lost,
//! too.

use core::ffi::c_void;
use core::fmt;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use super::asked::Asked;
use super::foreign::Foreign;
use super::known::Known;
use super::line::{BYTES, LARGEST, LINES, Line};
use super::memory;
use super::queue::Queue;
pub(super) use super::queue::lock;
use crate::time::note_clock;
use cuda_events::capture::{CaptureMode, ThreadCaptureMode};
use cuda_events::foundation::{WeakContext, call, with_current};
use cuda_events::ipc::SharedTimelineError;
use cuda_events::sys::{
    CU_MEMHOSTREGISTER_DEVICEMAP, CU_MEMHOSTREGISTER_PORTABLE, CUdeviceptr, CUresult, Function,
};
use cuda_events::{Context, Device, Driver, Error, Event, EventFlags, Progress, Result};

#[cfg(doc)]
use crate::calls::*;

/// The largest value at which a timeline begins.
const LARGEST_START: u64 = LARGEST / 2;

/// The value of `submitted` for a line to which values of another process are copied.
pub(super) const RELAYED: u64 = LARGEST;

/// The value of `submitted` for a line to which a stream copies values of another process.
const MIRRORED: u64 = LARGEST - 1;

/// How many pages of ended contexts are tried before a new one is made.
const TRIES: usize = 8;

/// This process's knowledge about a line. It is aligned, so the use of one timeline does not slow
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
    home: Mutex<Option<Home>>,
    pub(super) queue: Queue,
    /// When waits with a limit must ask whether the timeline works.
    pub(super) asked: Asked,
    whose: Whose,
}

/// The visibility of a line.
pub(super) enum Whose {
    /// Visible to this process only.
    Own,
    /// Processes that were given its file. They may wait for any value. If it is `exposed`, they
    /// can also write any value, and nothing that is there decides what this process does.
    Shared { known: Known, exposed: bool },
    /// It is another process's, and is mapped for reading alone: a store there ends this process.
    Foreign(Foreign),
    /// Visible to this process only; a device copies to it what is in another process's memory.
    Mirror(OnceLock<Weak<dyn Mirrored>>),
}

/// Whatever a mirror shows: a timeline of another process.
pub(super) trait Mirrored: Send + Sync {
    /// Whether the maker is certain to have ended. No driver call, and no lock.
    fn has_ended(&self) -> bool;
}

/// Interprets a look at a mirror.
///
/// Poison without a reason comes from the maker, or from another importer that has seen the maker's
/// end and releases its own waits. The latter may be noticed here before the end is.
#[cold]
fn judge_mirrored(of: Option<&Weak<dyn Mirrored>>, seen: Result<Progress>) -> Result<Progress> {
    match (&seen, of.and_then(Weak::upgrade)) {
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

/// Where a timeline is at home.
struct Home {
    driver: Driver,
    context: WeakContext,
    /// An event of that context which is never recorded: asking for it tells whether the context
    /// has failed, and disturbs no capture. It is shared by all who wait.
    health: Weak<Event>,
}

impl Slot {
    pub(super) fn new(line: &'static Line, whose: Whose) -> Self {
        Self {
            line,
            context: AtomicUsize::new(0),
            table: AtomicUsize::new(0),
            address: AtomicU64::new(0),
            state: Mutex::default(),
            home: Mutex::new(None),
            queue: Queue::new(),
            asked: Asked::new(),
            whose,
        }
    }

    /// The maker's state, if the line belongs to another process.
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
            Whose::Shared { known, .. } => known.fail(self.line, code),
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
            Whose::Shared { known, .. } => known.judge(seen, || self.line.reached() >= value),
            Whose::Foreign(foreign) => foreign.judge(seen, || self.line.reached() >= value),
            Whose::Mirror(of) => judge_mirrored(of.get(), seen),
        }
    }

    /// Notes what the mirror shows, once.
    pub(super) fn mirror(&self, timeline: Weak<dyn Mirrored>) {
        if let Whose::Mirror(of) = &self.whose {
            let _ = of.set(timeline);
        }
    }

    /// Whether no more values will be reached, as far as this process knows.
    pub(super) fn is_over(&self) -> bool {
        let known = match &self.whose {
            Whose::Own | Whose::Mirror(_) => false,
            Whose::Shared { known, .. } => known.failure().is_some(),
            Whose::Foreign(foreign) => foreign.is_gone(),
        };
        known || self.line.is_poisoned()
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
        lock(&self.home).as_ref().map(|home| (home.driver, home.context.upgrade()))
    }

    /// The event that shows whether the context works. It has a share of the context.
    pub(super) fn health(&self) -> Result<Arc<Event>> {
        let (weak, context) = {
            let home = lock(&self.home);
            let Some(home) = home.as_ref() else { return Err(Error::ContextDropped) };
            if let Some(event) = home.health.upgrade() {
                return Ok(event);
            }
            (home.context.clone(), home.context.upgrade())
        };
        let context = context.ok_or(Error::ContextDropped)?;
        // Created with nothing locked: an observer of the driver's calls may wait for a point, too.
        let event = Arc::new(Event::new(&context, EventFlags::empty())?);
        let mut home = lock(&self.home);
        let Some(home) = home.as_mut().filter(|home| home.context.is_same(&weak)) else {
            return Ok(event);
        };
        match home.health.upgrade() {
            // Another thread was faster. All must share one, for the sake of the queue.
            Some(theirs) => Ok(theirs),
            None => {
                home.health = Arc::downgrade(&event);
                Ok(event)
            }
        }
    }

    /// Gives the line to a timeline of the context.
    pub(super) fn begin(&self, context: &Context, address: CUdeviceptr) {
        self.begin_at(context, address, self.line.reached());
    }

    /// As [`begin`](Self::begin), for a line that has this value unless another process wrote it.
    pub(super) fn begin_at(&self, context: &Context, address: CUdeviceptr, value: u64) {
        *lock(&self.state) = State { submitted: value, ahead: value, ..State::default() };
        let (driver, weak) = (context.driver(), context.downgrade());
        note_clock(driver);
        *lock(&self.home) = Some(Home { driver, context: weak, health: Weak::new() });
        self.context.store(context.as_raw().addr(), Ordering::Relaxed);
        self.table.store(core::ptr::from_ref(driver.symbols()).addr(), Ordering::Relaxed);
        self.address.store(address, Ordering::Relaxed);
        self.asked.begin();
        self.line.begin();
    }

    /// Notes where a line of another process is imported. The line itself cannot be written, and
    /// its context is left out, so that each wait of a stream comes to [`Foreign`].
    pub(super) fn import(&self, context: &Context, address: Option<CUdeviceptr>) {
        let mut home = lock(&self.home);
        if !home.as_ref().is_some_and(|home| home.context.is_alive()) {
            let (driver, weak) = (context.driver(), context.downgrade());
            note_clock(driver);
            *home = Some(Home { driver, context: weak, health: Weak::new() });
        }
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
            Whose::Shared { known, exposed: true } => known.failure().is_some() || state.ended,
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

    /// Whether no stream has anything to write here, now or later; see the top of the file.
    fn is_idle(&self) -> bool {
        let state = lock(&self.state);
        !state.over && state.submitted <= LARGEST_START && self.line.is_exactly(state.submitted)
    }

    /// Whether it never will be.
    fn is_lost(&self) -> bool {
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

/// Some lines, and their owners.
struct Page {
    slots: &'static [Slot],
    /// Where it was registered last.
    driver: Driver,
    context: usize,
    /// The device, if that was its primary context or a green one: then the registration is the
    /// primary context's, and serves all of these. A green context retains the primary one.
    device: Option<Device>,
    held: WeakContext,
    address: CUdeviceptr,
    /// How many lines belong to timelines that were not dropped. Each of them has a share of the
    /// context.
    live: usize,
    /// The unused lines.
    free: Vec<&'static Slot>,
    /// Which lines streams may still write.
    dropped: Vec<&'static Slot>,
}

static PAGES: Mutex<Vec<Page>> = Mutex::new(Vec::new());

/// A line for a timeline of the context. No driver call unless a page must be registered.
pub(super) fn allocate(context: &Context) -> Result<&'static Slot> {
    // Pages that are in the list for nobody else meanwhile, as driver calls are made about them.
    let mut taken = Vec::new();
    let found = find(context, &mut taken);
    lock(&PAGES).append(&mut taken);
    found
}

fn find(context: &Context, taken: &mut Vec<Page>) -> Result<&'static Slot> {
    {
        let mut pages = lock(&PAGES);
        let mut fit = pages.iter_mut().filter(|page| page.is_registered_in(context));
        if let Some(slot) = fit.find_map(|page| page.take(context)) {
            return Ok(slot);
        }
        pages.retain(|page| !page.is_lost());
    }
    // Pages of contexts that may have ended. Those of this very context come first, as it may live.
    for same in [true, false] {
        while let Some(mut page) = take_unused(context, same, taken.len()) {
            let ours = page.register(context);
            let slot = ours.map(|ours| if ours { page.take(context) } else { None });
            taken.push(page);
            if let Some(slot) = slot? {
                return Ok(slot);
            }
        }
    }
    let mut page = Page::new(context, || Whose::Own)?;
    let registered = page.register(context);
    let slot = registered.and_then(|_| page.take(context).ok_or_else(no_memory));
    // Also where it failed: it may be registered all the same, and serve the next attempt.
    taken.push(page);
    slot
}

/// Pages of mirrors, whose lines are given out once, in contexts that live.
static FRESH: Mutex<Vec<Page>> = Mutex::new(Vec::new());

/// An unused line, which is zero, and which is never used again. No driver call unless a page must
/// be registered.
pub(super) fn allocate_fresh(context: &Context) -> Result<&'static Slot> {
    let known = |pages: &mut Vec<Page>| {
        pages.retain(|page| page.held.is_alive() && !page.free.is_empty());
        let weak = context.downgrade();
        let same = |page: &&mut Page| {
            page.held.is_same(&weak) && page.driver.is_same_library(context.driver())
        };
        pages.iter_mut().find(same).and_then(|page| page.take(context))
    };
    let fresh = |slot: &'static Slot| {
        lock(&slot.state).submitted = MIRRORED;
        slot
    };
    if let Some(slot) = known(&mut lock(&FRESH)) {
        return Ok(fresh(slot));
    }
    let mut page = Page::new(context, || Whose::Mirror(OnceLock::new()))?;
    page.register(context)?;
    let slot = page.take(context).ok_or_else(no_memory)?;
    lock(&FRESH).push(page);
    Ok(fresh(slot))
}

/// Takes a page out of the list that has no timeline, has a free line, and whose context may have
/// ended. So each driver call about a page serves a timeline, unless other code keeps its context
/// alive.
fn take_unused(context: &Context, same: bool, tried: usize) -> Option<Page> {
    let mut pages = lock(&PAGES);
    let serves = |page: &mut Page| {
        page.live == 0
            && page.driver.is_same_library(context.driver())
            && page.is_of(context) == same
            && !(page.address != 0 && page.held.is_alive())
            && page.has_room()
    };
    let at = pages.iter_mut().position(serves).filter(|_| same || tried < TRIES)?;
    Some(pages.swap_remove(at))
}

/// Gives a line back. It never waits.
pub(super) fn release(slot: &'static Slot) {
    // The context may end from now on, and another one may get its handle.
    slot.context.store(0, Ordering::Relaxed);
    let mut pages = lock(&PAGES);
    let owner = pages.iter_mut().find(|page| page.slots.as_ptr_range().contains(&&raw const *slot));
    if let Some(page) = owner {
        page.live -= 1;
        page.dropped.push(slot);
    }
}

/// The device, if the context is its primary context or a green one. The driver registers memory for
/// these in the primary context. For a context that other code owns this is not certain.
fn registers_for(context: &Context) -> Option<Device> {
    context.is_retained().then(|| context.device())
}

const REGISTER: Function = Function::cuMemHostRegister_v2;

/// The error where the system starts no thread for the crate's work.
pub(super) fn no_thread() -> Error {
    Error::SharedTimeline(SharedTimelineError::NoThread)
}

pub(super) fn no_memory() -> Error {
    Error::Driver { function: REGISTER, code: CUresult::CUDA_ERROR_OUT_OF_MEMORY }
}

#[allow(unsafe_code)]
impl Page {
    fn new(context: &Context, whose: fn() -> Whose) -> Result<Self> {
        let lines = memory::fresh(LINES).ok_or_else(no_memory)?;
        let slots: &'static [Slot] =
            lines.iter().map(|line| Slot::new(line, whose())).collect::<Vec<_>>().leak();
        Ok(Self {
            slots,
            driver: context.driver(),
            context: context.as_raw().addr(),
            device: registers_for(context),
            held: context.downgrade(),
            address: 0,
            live: 0,
            free: slots.iter().rev().collect(),
            dropped: Vec::new(),
        })
    }

    /// Whether the page is certainly registered in this context: it was, and a share has kept the
    /// context alive since then.
    fn is_registered_in(&self, context: &Context) -> bool {
        self.is_of(context)
            && self.driver.is_same_library(context.driver())
            && self.address != 0
            && (self.live > 0 || self.held.is_alive())
    }

    /// Whether the page was registered last where the driver would register it for this context,
    /// if no other context has got the same handle since.
    fn is_of(&self, context: &Context) -> bool {
        self.context == context.as_raw().addr()
            || self.device.is_some() && self.device == registers_for(context)
    }

    /// Whether there is a line to give.
    fn has_room(&mut self) -> bool {
        if self.free.is_empty() {
            let free = &mut self.free;
            self.dropped.retain(|slot| {
                let idle = slot.is_idle();
                if idle {
                    free.push(slot);
                }
                !idle && !slot.is_lost()
            });
        }
        !self.free.is_empty()
    }

    /// Whether it will never have one again, as [`has_room`](Self::has_room) has last seen it.
    fn is_lost(&self) -> bool {
        self.live == 0 && self.free.is_empty() && self.dropped.is_empty()
    }

    fn take(&mut self, context: &Context) -> Option<&'static Slot> {
        if !self.has_room() {
            return None;
        }
        let slot = self.free.pop()?;
        let at = self.slots.iter().position(|of| core::ptr::eq(of, slot))?;
        slot.begin(context, self.address + (at * size_of::<Line>()) as CUdeviceptr);
        self.live += 1;
        Some(slot)
    }

    /// Has the page registered in the context, in which it may have been registered before; whether
    /// it is. It is not where another context has it.
    fn register(&mut self, context: &Context) -> Result<bool> {
        let same = self.is_of(context);
        // SAFETY: so many bytes that are never freed, and in which there are atomics only.
        let found = unsafe { register(context, self.memory(), 0, same) }?;
        let Some(address) = found else { return Ok(false) };
        self.driver = context.driver();
        self.context = context.as_raw().addr();
        self.device = registers_for(context);
        self.held = context.downgrade();
        self.address = address;
        Ok(true)
    }

    fn memory(&self) -> *mut c_void {
        let first = self.slots.first().map_or(core::ptr::null(), |slot| &raw const *slot.line);
        first.cast_mut().cast()
    }
}

/// Registers a page of lines in the context, for all devices: its address for them. None where
/// another context has it; `same` says that this context may have it from before.
///
/// Driver calls: [`cuMemHostRegister`] and [`cuMemHostGetDevicePointer`] with the context current,
/// between two of [`cuThreadExchangeStreamCaptureMode`], so that a capture of another thread goes
/// on.
///
/// # Safety
///
/// `BYTES` bytes at `memory` must stay mapped until the process ends, and be changed by atomics
/// only. With the flag for reading alone devices may only wait there.
#[allow(unsafe_code)]
pub(super) unsafe fn register(
    context: &Context,
    memory: *mut c_void,
    more: u32,
    same: bool,
) -> Result<Option<CUdeviceptr>> {
    const THERE: CUresult = CUresult::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    let flags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | more;
    let _relaxed = ThreadCaptureMode::exchange(context.driver(), CaptureMode::Relaxed)?;
    let driver = context.driver();
    with_current(context, || {
        // SAFETY: the caller vouches for the memory.
        match unsafe { call!(driver, cuMemHostRegister_v2(memory, BYTES, flags)) } {
            // The context that has it has lived ever since. It is this one or another.
            Err(error) if error.code() == Some(THERE) && same => {}
            Err(error) if error.code() == Some(THERE) => return Ok(None),
            registered => registered?,
        }
        let mut address = 0;
        // SAFETY: a place for the address.
        unsafe { call!(driver, cuMemHostGetDevicePointer_v2(&mut address, memory, 0)) }?;
        Ok(Some(address))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HostTimeline;
    use cuda_events::LoadOptions;

    /// Lines of poisoned timelines serve nobody, and a page that has no other is forgotten.
    #[test]
    #[allow(unsafe_code)]
    fn pages_without_usable_lines_are_forgotten() {
        let soft = cuda_soft_driver::SoftDriver::new();
        // SAFETY: the software driver has the driver's ABI, and its functions are part of this
        // program.
        let driver = unsafe {
            Driver::from_resolver(&mut |name| soft.resolve(name), &LoadOptions::new()).unwrap()
        };
        let context = Device::new(driver, 0).and_then(Context::primary).unwrap();
        let new = || HostTimeline::new(&context).unwrap();
        let mine = |page: &&Page| page.driver.is_same_library(driver);
        let pages = || -> Vec<usize> {
            let pages = lock(&PAGES);
            pages.iter().filter(mine).map(|page| page.slots.as_ptr().addr()).collect()
        };
        let mut seen = std::collections::BTreeSet::new();
        for round in 0..8 {
            let all: Vec<_> = (0..LINES).map(|_| new()).collect();
            all.into_iter().for_each(HostTimeline::poison);
            seen.extend(pages());
            assert_eq!(seen.len(), round + 1, "a poisoned line was used again");
            assert!(pages().len() <= 2, "{:?}", pages());
        }
    }
}
