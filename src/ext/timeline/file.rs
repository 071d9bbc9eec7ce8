//! Files of timelines: what a process lets others see.
//!
//! A file has a page of lines. The first line is the file's own: it says what the file is. A line
//! is never given to a second timeline, as nobody can know what other processes still wait for. The
//! page is never unmapped, as points may be looked at for ever.

use core::fmt;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex};

use super::descriptor::TimelineDescriptor;
use super::line::{LINES, Line};
use super::memory::{File, Life};
use super::slot::{self, Known, Slot, Whose, lock};
use super::wait;
use super::watch::Watch;
use crate::ext::needs::forked;
use crate::ipc::SharedTimelineError as Refusal;
use crate::sys::CUdeviceptr;
use crate::{Context, Event, EventFlags, Result};

/// The version of the layout.
const VERSION: u16 = 1;
const MAGIC: u32 = u32::from_le_bytes(*b"CUTL");

/// Memory for timelines that other processes see: of streams
/// ([`Timeline::shared`](super::Timeline::shared)) and of the host
/// ([`HostTimeline::shared`](super::HostTimeline::shared)).
///
/// It is a file of memory (`memfd`), a page of 63 timelines. Whoever has its file descriptor sees
/// all of them, and needs nothing else in common with this process: no `/dev/shm`, no namespace, no
/// user. Send the descriptor over a Unix socket (`SCM_RIGHTS`, for which this type is `AsFd`) or
/// let a child inherit it, and send each timeline's
/// [descriptor](super::Timeline::descriptor) as bytes. The other process makes an
/// [`ImportedTimeline`](super::ImportedTimeline) of the two. [Windows](#on-windows) has handles in
/// place of file descriptors. Make a file for each group of
/// processes that may see the same timelines. Where no file descriptor can be sent, there is
/// [`TimelineMemory`](super::TimelineMemory), which promises less.
///
/// # Who can write it
///
/// | | importers | streams of an importer |
/// | --- | --- | --- |
/// | [`new`](Self::new) | see it read-only. When this process ends they write, once, to release their streams | wait for the shared memory itself: the fastest |
/// | [`protected`](Self::protected) | cannot write it, by a seal that the kernel holds them to; the descriptor is for reading alone | wait for memory of the importer's own, to which a thread copies the value: some tens of microseconds more |
///
/// A process that has the file of `new` and means harm can write any bytes. It can make points seem
/// reached or poisoned, and nothing else, in all processes that have the file. In this one, too:
/// the error is [`Error::Poisoned`](crate::Error::Poisoned) unless this process's own driver has
/// said otherwise. It could also take the page out of the file or a value back, or lock the file
/// as this process does and so pretend, after this process has ended, that it lives. Then other
/// importers would go on waiting. Give it to processes that you trust, and one of `protected` to
/// others.
///
/// Of `protected` an importer can do none of that with the descriptor that it is given. One gap is
/// the system's: a process of the same user, or of root, can change the file's mode and open it
/// again by `/proc`. It still cannot write the file, but it can lock it. Where that matters, let
/// importers run as other users, and let them wait with a limit.
///
/// An importer does not have to trust the maker for memory safety. If it does not trust the maker
/// to let it go on, it opens the file for reading alone before it imports: its streams then wait as
/// for one of `protected`.
///
/// # Its life
///
/// A context that fails signals nothing any more, and other processes cannot ask this one's driver.
/// So while a signal of a [`Timeline::shared`](super::Timeline::shared) is pending for longer, the
/// crate's thread asks: one `cuEventQuery` for each file every 5 ms, between two of
/// `cuThreadExchangeStreamCaptureMode`. If the context has failed, importers get
/// [`Error::Poisoned`](crate::Error::Poisoned) within 10 ms and a round of the thread. The first
/// signal of a shared timeline starts that thread. It makes no call while no signal is pending.
///
/// Timelines keep their file. When the last of them and this are dropped, and the streams have
/// passed the last signals, importers see an end. If this process is killed, they see that: at once
/// in [`ImportedTimeline`](super::ImportedTimeline). A forked child takes no part in it.
///
/// A timeline that is dropped with its file while a signal is pending is looked after in the same
/// way as long as this process holds a share of its context, unless that context is only
/// [named](Context::from_raw).
///
/// The page stays mapped until the process ends, and registered until the context does. Each file
/// that a process makes or imports takes one mapping so, and Linux gives a process 65530 of them
/// (`vm.max_map_count`): a process that lives long uses a file for many timelines and many peers,
/// and does not make one for each.
///
/// On Linux it takes `/proc`. On other systems than Linux and Windows it is
/// [`Platform`](Refusal::Platform).
///
/// # On Windows
///
/// It is a section of the page file without a name, and this type is `AsHandle`. Copy the handle
/// into the other process with `DuplicateHandle`, or let a child inherit a copy.
///
/// * The handle of a [`protected`](Self::protected) section only reads, and Windows gives no
///   stronger copy of it. A process that may open this process for writing, such as most of the
///   same user, can write the memory nevertheless.
/// * For streams that wait without a detour give a handle of [`new`](Self::new) as it is. A copy
///   that only reads (`FILE_MAP_READ`) serves as for one of `protected`.
/// * The importer watches the maker's process, whose number and start time stand in the section. It
///   must be allowed to open it (`SYNCHRONIZE`, `PROCESS_QUERY_LIMITED_INFORMATION`).
///
/// ```
/// # #[cfg(target_os = "linux")] {
/// use std::os::fd::AsFd;
///
/// use cuda_events::ext::{ImportedTimeline, Timeline, TimelineDescriptor, TimelineFile};
/// # use cuda_events::{Context, Device, Stream, StreamOptions};
/// # let soft = cuda_soft_driver::SoftDriver::new();
/// # let context = Context::primary(Device::new(soft.driver(), 0)?)?;
/// # let stream = Stream::new(&context, StreamOptions::new())?;
/// # let other = Stream::new(&context, StreamOptions::new())?;
/// // In the maker:
/// let file = TimelineFile::new(&context)?;
/// let timeline = Timeline::shared(stream, &file)?;
/// let bytes = timeline.descriptor().expect("it is shared").to_bytes();
/// let sent = file.as_fd().try_clone_to_owned().expect("a file descriptor");
/// // ... both go over a Unix socket, and for each signal its value ...
/// let value = timeline.signal()?.value();
///
/// // In the importer:
/// let descriptor = TimelineDescriptor::from_bytes(&bytes)?;
/// let imported = ImportedTimeline::open(&context, sent, &descriptor)?;
/// let point = imported.point(value);
/// other.wait_point(point)?;
/// point.wait()?;
/// # }
/// # Ok::<(), cuda_events::Error>(())
/// ```
pub struct TimelineFile(Arc<SharedFile>);

/// What a file's timelines keep.
pub(super) struct SharedFile {
    #[cfg_attr(not(any(unix, windows)), expect(dead_code, reason = "nobody can be given it"))]
    file: File,
    number: u64,
    lines: &'static [Line],
    /// Those that timelines have had, in the order of their places.
    slots: Mutex<Vec<&'static Slot>>,
    context: Context,
    address: CUdeviceptr,
    /// Those of streams, of which the crate's thread asks while signals are pending.
    watch: Arc<Watch>,
    /// What it asks the driver for.
    #[expect(dead_code, reason = "kept for the watch")]
    health: Event,
    /// Until the drop.
    life: Option<Life>,
}

/// The lives of files that nobody has any more, and to which streams may still have to write.
static ENDING: Mutex<Vec<(Life, Vec<&'static Slot>)>> = Mutex::new(Vec::new());

/// Ends those to which nobody writes any more.
pub(super) fn sweep() {
    // A line is poisoned at its end.
    lock(&ENDING).retain(|(_, slots)| !slots.iter().all(|slot| slot.line.is_poisoned()));
}

impl TimelineFile {
    /// A file that importers can write, so that their streams may wait for it without a detour.
    ///
    /// Driver calls: `cuEventCreate`, and `cuMemHostRegister` and `cuMemHostGetDevicePointer`
    /// between two of `cuThreadExchangeStreamCaptureMode`, all with the context current. CUDA 9.0.
    ///
    /// # Errors
    ///
    /// [`Error::SharedTimeline`](crate::Error::SharedTimeline) with [`System`](Refusal::System) or
    /// [`Platform`](Refusal::Platform); what the driver returns;
    /// [`Error::ForkedChild`](crate::Error::ForkedChild).
    pub fn new(context: &Context) -> Result<Self> {
        Self::make(context, false)
    }

    /// A file that nobody but this process can write, for importers that are not trusted. Linux
    /// 5.1.
    ///
    /// Driver calls as for [`new`](Self::new).
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new).
    pub fn protected(context: &Context) -> Result<Self> {
        Self::make(context, true)
    }

    #[allow(unsafe_code)]
    fn make(context: &Context, protected: bool) -> Result<Self> {
        wait::refuse_fork()?;
        sweep();
        let health = Event::new(context, EventFlags::empty())?;
        let (file, lines, life) = File::create(LINES, protected)?;
        let number = RandomState::new().hash_one(std::process::id());
        if let Some(first) = lines.first() {
            first.put([header(VERSION), number]);
        }
        let memory = lines.as_ptr().cast_mut().cast();
        // SAFETY: the lines are never unmapped. In the file are atomics only, for all processes.
        let address = unsafe { slot::register(context, memory, 0, false) }?;
        // Fresh memory is nobody else's.
        let address = address.ok_or_else(slot::no_memory)?;
        let slots = Mutex::default();
        let context = context.clone();
        Ok(Self(Arc::new(SharedFile {
            file,
            number,
            lines,
            slots,
            context,
            address,
            watch: Watch::new(&health),
            health,
            life: Some(life),
        })))
    }

    /// The context that it was made in.
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    pub(super) fn shared(&self) -> &Arc<SharedFile> {
        &self.0
    }
}

/// The first word of a file.
fn header(version: u16) -> u64 {
    u64::from(MAGIC) | u64::from(version) << 32
}

/// Looks whether there are timelines in the file, with this number.
pub(super) fn check_header(lines: &[Line], number: u64) -> Result<(), Refusal> {
    let [word, found] = lines.first().map(Line::words).unwrap_or_default();
    let version = (word >> 32) as u16;
    if word != header(version) {
        return Err(Refusal::FileMagic);
    }
    if version != VERSION {
        return Err(Refusal::FileVersion { found: version, expected: VERSION });
    }
    if found == number { Ok(()) } else { Err(Refusal::OtherFile) }
}

impl SharedFile {
    /// A line that nobody has had.
    pub(super) fn take(&self) -> Result<&'static Slot> {
        wait::refuse_fork()?;
        let mut slots = lock(&self.slots);
        let index = slots.len() + 1;
        let line = self.lines.get(index).ok_or(Refusal::FileFull)?;
        // Whatever another process has written there.
        line.put([0, 0]);
        let slot: &'static Slot =
            Box::leak(Box::new(Slot::new(line, Whose::Shared(Known::default()))));
        slot.begin(&self.context, self.address + (index * size_of::<Line>()) as CUdeviceptr);
        slots.push(slot);
        Ok(slot)
    }

    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    pub(super) fn watch(&self) -> &Arc<Watch> {
        &self.watch
    }

    pub(super) fn descriptor(&self, slot: &Slot) -> Option<TimelineDescriptor> {
        let at = self.lines.iter().position(|line| core::ptr::eq(line, slot.line))?;
        Some(TimelineDescriptor { index: u16::try_from(at).ok()?, file: self.number })
    }
}

impl Drop for SharedFile {
    fn drop(&mut self) {
        if forked() {
            return;
        }
        // Before the event goes.
        self.watch.end();
        let slots = core::mem::take(&mut *lock(&self.slots));
        lock(&ENDING).extend(self.life.take().map(|life| (life, slots)));
        sweep();
    }
}

/// For `SCM_RIGHTS`, and for a child that inherits it.
#[cfg(unix)]
impl std::os::fd::AsFd for TimelineFile {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.file.as_fd()
    }
}

/// For `DuplicateHandle` into another process, and for a child that inherits a copy.
#[cfg(windows)]
impl std::os::windows::io::AsHandle for TimelineFile {
    fn as_handle(&self) -> std::os::windows::io::BorrowedHandle<'_> {
        self.0.file.as_handle()
    }
}

impl fmt::Debug for TimelineFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimelineFile")
            .field("number", &format_args!("{:#018x}", self.0.number))
            .field("context", &self.0.context)
            .finish_non_exhaustive()
    }
}

static_assertions::assert_impl_all!(TimelineFile: Send, Sync);
