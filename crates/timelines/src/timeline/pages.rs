//! The lines of all timelines of the process, in pages that are shared and never freed.
//!
//! # Why nothing is ever freed
//!
//! Any thread may read a point at any time. A point is a plain value: it keeps nothing alive. So a
//! line stays readable forever. This also makes dropping a timeline free of waiting:
//! `cuMemHostUnregister` would block while the device has any work. A page stays registered as long
//! as its context lives. When the driver destroys the context, it ends the registration, and the
//! page serves the next context: registering it again succeeds then, and only then. A page of which
//! no line can be used again is forgotten. So the process has as many pages as it has ever needed
//! at one time, and one for each 64 lines that were lost.
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
//! too. The line of a mirror is always lost, and its page serves the next contexts with its other
//! lines.

use core::ffi::c_void;
use std::sync::{Mutex, OnceLock};

use crate::error::{Error, Result};
use cuda_events::capture::{CaptureMode, ThreadCaptureMode};
use cuda_events::foundation::{WeakContext, call, is_forked_child, with_current};
use cuda_events::sys::{
    CU_MEMHOSTREGISTER_DEVICEMAP, CU_MEMHOSTREGISTER_PORTABLE, CUdeviceptr, CUresult, Function,
};
use cuda_events::{Context, Device, Driver};

use super::line::{BYTES, LINES, Line};
use super::memory;
use super::slot::{Slot, Whose};

#[cfg(doc)]
use crate::calls::*;
use crate::sync::lock;

/// How many pages of ended contexts are tried before a new one is made.
const TRIES: usize = 8;

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
    free: Vec<&'static Slot>,
    /// Which lines streams may still write.
    dropped: Vec<&'static Slot>,
}

static PAGES: Mutex<Vec<Page>> = Mutex::new(Vec::new());

/// Pages of mirrors, each line of which is used once.
static MIRRORS: Mutex<Vec<Page>> = Mutex::new(Vec::new());

/// A line for a timeline of the context. No driver call unless a page must be registered.
pub(super) fn allocate(context: &Context) -> Result<&'static Slot> {
    allocate_in(&PAGES, || Whose::Own, context)
}

/// An unused line, which is zero, for a timeline of another process. No driver call unless a page
/// must be registered.
pub(super) fn allocate_mirror(context: &Context) -> Result<Mirror> {
    let slot = allocate_in(&MIRRORS, || Whose::Mirror(OnceLock::new()), context)?;
    slot.begin_mirror();
    Ok(Mirror(slot))
}

/// The use of a mirror's line. Drop it before the share of the context. The line itself stays
/// readable, and is never used again: a copy that the driver refused may come all the same.
pub(super) struct Mirror(&'static Slot);

impl Mirror {
    pub(super) fn slot(&self) -> &'static Slot {
        self.0
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        // In a forked child another thread of the parent may have the lock.
        if is_forked_child() {
            return;
        }
        self.0.leave();
        let mut pages = lock(&MIRRORS);
        if let Some(page) = pages.iter_mut().find(|page| page.has(self.0)) {
            page.live -= 1;
        }
    }
}

fn allocate_in(
    all: &Mutex<Vec<Page>>,
    whose: fn() -> Whose,
    context: &Context,
) -> Result<&'static Slot> {
    // Pages that are in the list for nobody else meanwhile, as driver calls are made about them.
    let mut taken = Vec::new();
    let found = find(all, whose, context, &mut taken);
    lock(all).append(&mut taken);
    found
}

fn find(
    all: &Mutex<Vec<Page>>,
    whose: fn() -> Whose,
    context: &Context,
    taken: &mut Vec<Page>,
) -> Result<&'static Slot> {
    {
        let mut pages = lock(all);
        let mut fit = pages.iter_mut().filter(|page| page.is_registered_in(context));
        if let Some(slot) = fit.find_map(|page| page.take(context)) {
            return Ok(slot);
        }
        pages.retain(|page| !page.is_lost());
    }
    // Pages of contexts that may have ended. Pages of this very context come
    // first, as it may live.
    for same in [true, false] {
        while let Some(mut page) = take_unused(all, context, same, taken.len()) {
            let ours = page.register(context);
            let slot = ours.map(|ours| if ours { page.take(context) } else { None });
            taken.push(page);
            if let Some(slot) = slot? {
                return Ok(slot);
            }
        }
    }
    let mut page = Page::new(context, whose)?;
    let registered = page.register(context);
    let slot = registered.and_then(|_| page.take(context).ok_or_else(no_memory));
    // Also where it failed: it may be registered all the same, and serve the next attempt.
    taken.push(page);
    slot
}

/// Takes a page out of the list that has no timeline, has a free line, and whose context may have
/// ended. So each driver call about a page serves a timeline, unless other code keeps its context
/// alive.
fn take_unused(
    all: &Mutex<Vec<Page>>,
    context: &Context,
    same: bool,
    tried: usize,
) -> Option<Page> {
    let mut pages = lock(all);
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
    slot.leave();
    let mut pages = lock(&PAGES);
    if let Some(page) = pages.iter_mut().find(|page| page.has(slot)) {
        page.live -= 1;
        page.dropped.push(slot);
    }
}

/// The device, if the context is its primary context or a green one. The driver registers memory
/// for these in the primary context. For a context that other code owns this is not certain.
fn registers_for(context: &Context) -> Option<Device> {
    context.is_retained().then(|| context.device())
}

const REGISTER: Function = Function::cuMemHostRegister_v2;

pub(super) fn no_memory() -> Error {
    let code = CUresult::CUDA_ERROR_OUT_OF_MEMORY;
    cuda_events::Error::Driver { function: REGISTER, code }.into()
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

    fn has(&self, slot: &'static Slot) -> bool {
        self.slots.as_ptr_range().contains(&&raw const *slot)
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
        let at = self.slots.iter().position(|other| core::ptr::eq(other, slot))?;
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
/// another context has it; `same` means that this context may have it from before.
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
) -> cuda_events::Result<Option<CUdeviceptr>> {
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

    /// A new software driver may have the place of one that has ended, as other tests leave it. Its
    /// pages would serve here.
    fn forget_former(pages: &Mutex<Vec<Page>>, driver: Driver) {
        lock(pages).retain(|page| !page.driver.is_same_library(driver));
    }

    /// Lines of poisoned timelines serve nobody, and a page that has no other is forgotten.
    #[test]
    fn pages_without_usable_lines_are_forgotten() {
        let soft = cuda_soft_driver::SoftDriver::new();
        let driver = soft.driver();
        forget_former(&PAGES, driver);
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
            all.iter().for_each(HostTimeline::poison);
            seen.extend(pages());
            assert_eq!(seen.len(), round + 1, "a poisoned line was used again");
            assert!(pages().len() <= 2, "{:?}", pages());
        }
    }

    /// A page stays registered in a context that others keep alive, and serves its next timelines.
    #[test]
    #[allow(unsafe_code)]
    fn a_page_that_its_context_has_is_used_again() {
        let soft = cuda_soft_driver::SoftDriver::new();
        let driver = soft.driver();
        forget_former(&PAGES, driver);
        let device = Device::new(driver, 0).unwrap();
        let mine = |page: &&Page| page.driver.is_same_library(driver);
        {
            let context = Context::primary(device).unwrap();
            // It is registered, and serves the next attempt.
            let fault = cuda_soft_driver::Fault::on("cuMemHostGetDevicePointer*").once();
            soft.inject(fault.answer(cuda_soft_driver::abi::CUresult(2)));
            assert!(HostTimeline::new(&context).is_err());
            assert_eq!(lock(&PAGES).iter().filter(mine).count(), 1);
        }
        let mut kept = core::ptr::null_mut();
        // SAFETY: a place for the handle.
        let code = unsafe { (driver.symbols().cuDevicePrimaryCtxRetain)(&mut kept, 0) };
        assert_eq!(code, CUresult::CUDA_SUCCESS);
        for round in 0..3 {
            let context = Context::primary(device).unwrap();
            let timeline = HostTimeline::new(&context).unwrap();
            assert!(timeline.signal().unwrap().is_done());
            let point = timeline.signal().unwrap();
            assert_eq!(point.slot().context(), context.as_raw().addr());
            drop((timeline, context));
            // Another context may get the handle.
            assert_eq!(point.slot().context(), 0);
            assert_eq!(lock(&PAGES).iter().filter(mine).count(), 1, "{round}");
        }
        // SAFETY: it was retained once more than the contexts here do.
        let code = unsafe { (driver.symbols().cuDevicePrimaryCtxRelease_v2)(0) };
        assert_eq!(code, CUresult::CUDA_SUCCESS);
    }

    /// A forked child drops timelines without a lock: the thread that has it at the fork does not
    /// exist there.
    #[test]
    #[cfg(target_os = "linux")]
    #[cfg_attr(miri, ignore = "Miri has no fork")]
    fn a_forked_child_takes_no_lock() {
        use std::os::fd::AsFd;

        cuda_events_test_support::own_process!();
        let soft = cuda_soft_driver::SoftDriver::new();
        let context = Device::new(soft.driver(), 0).and_then(Context::primary).unwrap();
        let file = crate::TimelineFile::new(&context).unwrap();
        let shared = HostTimeline::shared(&file).unwrap();
        let sent = file.as_fd().try_clone_to_owned().unwrap();
        let import = crate::ImportedTimeline::open(&context, sent, &shared.descriptor().unwrap());
        let host = HostTimeline::new(&context).unwrap();
        let mut all = Some((host, import.unwrap(), allocate_mirror(&context).unwrap()));
        let held = (lock(&PAGES), lock(&MIRRORS));
        let dropped = cuda_events_test_support::fork::in_child(|| {
            // Who waits for the lock ends by this.
            cuda_events_test_support::child::end_after(30);
            drop(all.take());
            String::from("dropped")
        });
        drop(held);
        assert_eq!(dropped, (String::from("dropped"), 0));
    }

    /// Mirrors of contexts that come one after the other share pages, also where the primary
    /// context lives on and the pages stay registered in it.
    #[test]
    #[allow(unsafe_code)]
    fn mirrors_of_green_contexts_share_pages() {
        const CONTEXTS: usize = 2 * LINES - 1;
        let soft = cuda_soft_driver::SoftDriver::new();
        let driver = soft.driver();
        forget_former(&MIRRORS, driver);
        let device = Device::new(driver, 0).unwrap();
        let part = device.sm_resource().unwrap();
        let mut seen = std::collections::BTreeSet::new();
        let mut use_one = |context: &Context| {
            let mirror = allocate_mirror(context).unwrap();
            assert_eq!(mirror.slot().line.words(), [0, 0]);
            let first = mirror.slot().line;
            // A page of lines is aligned to its size.
            let page = core::ptr::from_ref(first).addr() / BYTES;
            // What a timeline leaves there nobody sees again.
            first.put([7, 0]);
            seen.insert(page);
            drop(mirror);
        };
        for _ in 0..CONTEXTS {
            // SAFETY: one thread uses it.
            let context = unsafe { Context::green(device, &[&part]) }.unwrap();
            use_one(&context);
        }
        // With the primary context alive all the time.
        let primary = Context::primary(device).unwrap();
        use_one(&primary);
        for _ in 0..CONTEXTS {
            // SAFETY: as above.
            let context = unsafe { Context::green(device, &[&part]) }.unwrap();
            use_one(&context);
        }
        use_one(&primary);
        assert_eq!(seen.len(), 4, "each line was used once, and each page was used up");
        let mine = |page: &&Page| page.driver.is_same_library(driver);
        let left: Vec<_> = lock(&MIRRORS).iter().filter(mine).map(|page| page.live).collect();
        assert!(left.is_empty() || left == [0], "a page without lines, or a use, stays: {left:?}");
    }
}
