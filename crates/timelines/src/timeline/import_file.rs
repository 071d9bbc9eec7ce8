//! Timelines of other processes, by a file.
//!
//! # Nothing in the file is trusted
//!
//! The page is mapped read-only. Its words are only compared. So another process can only make a
//! point look reached or poisoned.
//!
//! # How the end of the exporter is detected, and what follows
//!
//! The exporter holds a [lock](super::memory::Life) on the file, which the system releases when the
//! process ends. On Windows importers have a handle of its process. Hosts that wait check this as
//! often as they ask the driver. The crate's thread checks it for futures and for streams that
//! wait. The first to detect the end releases the streams:
//!
//! * If the file can be written, the line is poisoned in the file, which is mapped for writing for
//!   that moment. Other importers see the poison, too. The device of a killed process may still
//!   execute an earlier write, and overwrite the poison. So the thread checks for a second whether
//!   the poison is there, and poisons again. One case is handled only when a host asks again: the
//!   value was reached, but a process with write access set it back before the stream came to its
//!   wait.
//! * Otherwise streams wait for a line of this process, the relay, to which the thread copies the
//!   value. The thread then poisons the relay.
//!
//! # Why the page stays mapped
//!
//! Points are plain values and may be read at any time, so the page is never unmapped. The file
//! descriptor is closed when nothing waits any more, and the page serves the next import of the
//! same file in the same context.

use core::fmt;
use core::time::Duration;
use std::sync::{Arc, Mutex};

use super::descriptor::InFile;
use super::followed::Followed;
use super::foreign::{Follow, Foreign, Link};
use super::line::{LARGEST, LINES, Line};
use super::memory::{File, Identity};
use super::pages;
use super::point::Point;
use super::slot::{Slot, Whose};
use super::{crossing, file, rounds};
use crate::error::{Error, Result, SharedTimelineError as Refusal};
use crate::sync::lock;
use crate::time::Moment;
use cuda_events::Error::DriverMismatch;
use cuda_events::foundation::{GraphValue, OwnCapture, WeakContext, is_forked_child};
use cuda_events::ipc::ExporterState;
use cuda_events::sys::{CU_MEMHOSTREGISTER_READ_ONLY, CUdevice_attribute, CUdeviceptr, Function};
use cuda_events::{Context, Driver, StreamRef};

#[cfg(doc)]
use crate::calls::*;

/// For how long the poison of a dead process's line is looked after.
const AFTERLIFE: Duration = Duration::from_secs(1);

/// A timeline of another process, by a file.
pub(super) struct FileImport {
    link: Arc<Import>,
    context: Context,
}

/// One import of a line.
struct Import {
    slot: &'static Slot,
    index: usize,
    file: File,
    driver: Driver,
    /// The context that it was imported in.
    held: WeakContext,
    relay: Option<Relay>,
    /// Until when the thread has it.
    followed: Followed,
}

/// A line of this process, for which streams wait in the other one's place.
struct Relay {
    slot: &'static Slot,
    /// The relay's value that corresponds to 0.
    base: u64,
}

impl Relay {
    fn value(&self, value: u64) -> u64 {
        self.base + value.min(LARGEST - self.base)
    }
}

impl Import {
    /// Publishes that the exporter has ended.
    fn bury(&self) {
        if let Some(foreign) = self.slot.foreign() {
            foreign.note_end();
        }
        if let Some(relay) = &self.relay {
            relay.slot.line.poison(None);
        }
        if self.file.writable && !self.slot.line.releases_all() {
            // Where it fails there is no memory for it, and the thread tries again.
            let _ = self.file.write(LINES, |lines| {
                if let Some(line) = lines.get(self.index) {
                    line.bury();
                }
            });
        }
    }
}

impl Link for Import {
    fn ask(&self) -> Result<()> {
        if self.file.is_orphaned() {
            self.bury();
            return Err(Error::ExporterGone);
        }
        Ok(())
    }

    fn is_held(&self) -> bool {
        self.held.is_alive()
    }

    fn submit_wait(self: Arc<Self>, stream: &StreamRef, value: u64) -> Result<()> {
        let function = Function::cuStreamWaitValue64_v2;
        if !stream.context().driver().is_same_library(self.driver) {
            return Err(DriverMismatch { function }.into());
        }
        let mut captured: Option<Arc<dyn GraphValue>> = None;
        if OwnCapture::of(stream)?.is_some() {
            // Nothing waits before the graph is launched, which may never happen. With the thread,
            // no launch can fail for want of it.
            rounds::start()?;
            captured = Some(Arc::new(CapturedWait { import: Arc::clone(&self), value }));
        } else {
            // Before the wait, so that there is none that nobody looks after.
            self.begin_to_follow(value)?;
        }
        let (slot, value) = match &self.relay {
            Some(relay) => (relay.slot, relay.value(value)),
            None => (self.slot, value),
        };
        crossing::submit_at(stream, slot, value, self.held.upgrade(), captured)
    }
}

impl Import {
    /// Has the thread follow the exporter until a wait for this value is over.
    fn begin_to_follow(self: &Arc<Self>, value: u64) -> Result<()> {
        let first = self.followed.begin(value);
        // An earlier wait may have found no thread.
        if (first || self.relay.is_some() || !rounds::is_started())
            && !rounds::follow(Arc::clone(self) as Arc<dyn Follow>, first)
        {
            return Err(Error::NoThread);
        }
        Ok(())
    }
}

/// A wait that a graph has captured, and which keeps the import as long as it may be launched.
///
/// A launch may still wait when the graph is gone, so from the first launch on the thread follows
/// the exporter, as for any other wait.
struct CapturedWait {
    import: Arc<Import>,
    value: u64,
}

impl GraphValue for CapturedWait {
    fn prepare(&self) {
        // The capture has started the thread.
        let _ = self.import.begin_to_follow(self.value);
    }
}

impl Follow for Import {
    fn is_relayed(&self) -> bool {
        self.relay.is_some()
    }

    fn follow(&self, ask: bool, now: Moment, gone: &mut Option<Moment>) -> bool {
        if let Some(relay) = &self.relay {
            relay.slot.line.raise(relay.value(self.slot.line.reached()));
            if self.slot.line.is_poisoned() {
                relay.slot.line.poison(None);
            }
        }
        if ask && self.ask().is_err() && gone.is_none() {
            *gone = Some(now);
        }
        let is_over = |waited| {
            // A stream that comes to its wait later finds the line as it is now. Where it waits for
            // the relay, that is what counts: the value may have come after it was copied.
            let released = match &self.relay {
                Some(Relay { slot, .. }) if slot.line.is_poisoned() => true,
                Some(relay) => relay.slot.line.reached() >= relay.value(waited),
                None => self.slot.line.reached() >= waited || self.slot.line.has_ended(),
            };
            released || gone.is_some_and(|gone| now - gone >= AFTERLIFE)
        };
        !self.followed.is_over(is_over)
    }
}

impl Drop for Import {
    fn drop(&mut self) {
        // In a forked child the relay is the parent's.
        let waited = self.followed.largest();
        if let Some(relay) = self.relay.as_ref().filter(|_| !is_forked_child()) {
            // Nobody copies values any more. No stream waits for more than this.
            relay.slot.end_relay(relay.value(waited));
        }
    }
}

/// A file that is mapped in this process.
struct Page {
    identity: Identity,
    lines: &'static [Line],
    slots: Vec<Option<&'static Slot>>,
    driver: Driver,
    context: usize,
    held: WeakContext,
    /// Its address for devices, if it was ever registered.
    address: Option<CUdeviceptr>,
    /// Whether it is, in a context that lives.
    registered: bool,
}

/// The files of other processes.
static IMPORTED: Mutex<Vec<Page>> = Mutex::new(Vec::new());

#[cfg_attr(not(any(unix, windows)), expect(dead_code, reason = "nobody gives a file"))]
impl Page {
    /// The file's page in the context, as it is from an earlier import, or mapped anew. It is in
    /// nobody else's hands. A file without timelines of this number is not left mapped, nor one
    /// whose exporter cannot be watched.
    fn take(context: &Context, file: &mut File, number: u64) -> Result<Self> {
        let identity = file.identity()?;
        let is_it = |page: &Page| {
            page.identity == identity
                && page.context == context.as_raw().addr()
                && page.driver.is_same_library(context.driver())
        };
        let mapped = {
            let mut pages = lock(&IMPORTED);
            pages.iter().position(is_it).map(|at| pages.swap_remove(at))
        };
        if let Some(mut page) = mapped {
            let found = page.lines.first().map_or(Ok(()), |header| file.find_maker(header));
            if let Err(refusal) = file::check_header(page.lines, number).and(found) {
                lock(&IMPORTED).push(page);
                return Err(refusal.into());
            }
            if !page.held.is_alive() {
                page.held = context.downgrade();
                page.registered = false;
            }
            return Ok(page);
        }
        let lines = file.map(LINES, |lines| file::check_header(lines, number))?;
        Ok(Self {
            identity,
            lines,
            slots: vec![None; LINES],
            driver: context.driver(),
            context: context.as_raw().addr(),
            held: context.downgrade(),
            address: None,
            registered: false,
        })
    }

    /// Registers the page, so streams can wait for it; returns whether they can.
    #[allow(unsafe_code)]
    fn register(&mut self, context: &Context) -> Result<bool> {
        const ATTRIBUTE: CUdevice_attribute =
            CUdevice_attribute::CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED;
        if !self.registered {
            if context.device().attribute(ATTRIBUTE)? == 0 {
                return Ok(false);
            }
            let memory = self.lines.as_ptr().cast_mut().cast();
            let (flags, again) = (CU_MEMHOSTREGISTER_READ_ONLY, self.address.is_some());
            // SAFETY: the page is never unmapped, and streams only wait there.
            let address = unsafe { pages::register(context, memory, flags, again) }?;
            self.registered = address.is_some();
            self.address = address.or(self.address);
        }
        Ok(self.registered)
    }

    fn slot(&mut self, index: usize) -> Option<&'static Slot> {
        let line = self.lines.get(index)?;
        let place = self.slots.get_mut(index)?;
        let new = || &*Box::leak(Box::new(Slot::new(line, Whose::Foreign(Foreign::new()))));
        Some(*place.get_or_insert_with(new))
    }
}

impl FileImport {
    /// The body of [`ImportedTimeline::open`](super::ImportedTimeline::open).
    #[cfg(any(unix, windows))]
    pub(super) fn open(
        context: &Context,
        #[cfg(unix)] file: std::os::fd::OwnedFd,
        #[cfg(windows)] file: std::os::windows::io::OwnedHandle,
        named: &InFile,
    ) -> Result<Self> {
        super::wait::refuse_fork()?;
        let mut file = File::open(file, LINES)?;
        let mut page = Page::take(context, &mut file, named.file)?;
        let opened = Self::open_page(context, file, &mut page, named);
        // Also where it was refused: the page stays mapped, and serves the next attempt.
        lock(&IMPORTED).push(page);
        opened
    }

    #[cfg_attr(not(any(unix, windows)), expect(dead_code, reason = "nobody gives a file"))]
    fn open_page(context: &Context, file: File, page: &mut Page, named: &InFile) -> Result<Self> {
        let index = usize::from(named.index);
        let unknown = Refusal::NoSuchTimeline { index: named.index };
        let slot = page.slot(index).ok_or(unknown)?;
        let relay = if file.writable && page.register(context)? {
            None
        } else {
            let slot = pages::allocate(context)?;
            // Nobody but this writes it.
            slot.begin_relay();
            Some(Relay { slot, base: slot.line.reached() })
        };
        let at = (index * size_of::<Line>()) as CUdeviceptr;
        slot.import(context, page.address.map(|address| address + at));
        let link = Arc::new(Import {
            slot,
            index,
            file,
            driver: context.driver(),
            held: context.downgrade(),
            relay,
            followed: Followed::new(),
        });
        if let Some(foreign) = slot.foreign() {
            foreign.link_by(&(Arc::clone(&link) as Arc<dyn Link>));
        }
        Ok(Self { link, context: context.clone() })
    }

    pub(super) fn point(&self, value: u64) -> Point {
        Point::new(self.link.slot, value.min(LARGEST))
    }

    pub(super) fn completed(&self) -> u64 {
        self.link.slot.line.reached()
    }

    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    /// Whether the exporter has ended, as the system shows now.
    pub(super) fn exporter_state(&self) -> ExporterState {
        match self.link.ask() {
            Ok(()) => ExporterState::Running,
            Err(_) => ExporterState::Ended,
        }
    }

    pub(super) fn debug(&self, debug: &mut fmt::DebugStruct<'_, '_>) {
        let gone = self.link.slot.foreign().is_some_and(Foreign::is_gone);
        debug
            .field("completed", &self.completed())
            .field("poisoned", &self.link.slot.line.is_poisoned())
            .field("exporter_gone", &gone)
            .field("context", &self.context);
    }
}

impl Drop for FileImport {
    fn drop(&mut self) {
        if is_forked_child() {
            return;
        }
        if let Some(relay) = &self.link.relay {
            pages::release(relay.slot);
        }
        crossing::sweep(crossing::ALL);
    }
}

static_assertions::assert_impl_all!(FileImport: Send, Sync);
