//! Files of timelines, which other processes can see.
//!
//! A file has a page of lines. The first line describes the file. A line is never given to a second
//! timeline, because other processes may still wait for the first one. The page is never unmapped,
//! because points may be read at any time.

use core::fmt;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex};

use super::descriptor::{InFile, Named, TimelineDescriptor};
use super::line::{LINES, Line};
use super::memory::{File, Life};
use super::pages;
use super::shared_failure::Failure;
use super::slot::{Slot, Whose};
use super::wait;
use super::watch::Watch;
use crate::error::{Error, Result, SharedTimelineError as Refusal};
use cuda_events::foundation::is_forked_child;
use cuda_events::sys::CUdeviceptr;
use cuda_events::sys::Function;
use cuda_events::{Context, Event, EventFlags, StreamRef};

#[cfg(doc)]
use crate::calls::*;
use crate::sync::lock;

/// The version of the layout.
const VERSION: u16 = 1;
const MAGIC: u32 = u32::from_le_bytes(*b"CUTL");

/// Memory for timelines that other processes see: those of streams
/// ([`Timeline::shared`](super::Timeline::shared)) and those of the host
/// ([`HostTimeline::shared`](super::HostTimeline::shared)).
///
/// It is a memory file (`memfd`): one page with room for 63 timelines. Every process that has its
/// file descriptor sees all of them. The processes need not share `/dev/shm`, a namespace or a
/// user.
///
/// Send two things to the other process:
///
/// * the file descriptor: over a Unix socket (`SCM_RIGHTS`; this type implements `AsFd`), or a
///   child inherits it;
/// * the [`TimelineDescriptor`](super::Timeline::descriptor) of each timeline, as bytes.
///
/// The other process makes an [`ImportedTimeline`](super::ImportedTimeline) from both. On
/// [Windows](#on-windows), send a handle instead of the file descriptor.
///
/// Create one file for each group of processes that may see the same timelines. If you cannot send
/// file descriptors, use [`TimelineMemory`](super::TimelineMemory), which guarantees less.
///
/// ```
/// # #[cfg(target_os = "linux")] {
/// use std::os::fd::AsFd;
///
/// use cuda_events::{Context, Device, Stream, StreamOptions};
/// use cuda_timelines::{
///     CudaStreamExt, ImportedTimeline, Timeline, TimelineDescriptor, TimelineFile,
/// };
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let stream = Stream::new(&context, StreamOptions::new())?;
/// let other = Stream::new(&context, StreamOptions::new())?;
/// // In the exporter:
/// let file = TimelineFile::new(&context)?;
/// let timeline = Timeline::shared(stream, &file)?;
/// let bytes = timeline.descriptor().expect("it is shared").to_bytes();
/// let sent = file.as_fd().try_clone_to_owned().expect("a file descriptor");
/// // ... send both over a Unix socket, and the value of each signal ...
/// let value = timeline.signal()?.value();
///
/// // In the importer:
/// let descriptor = TimelineDescriptor::from_bytes(&bytes)?;
/// let imported = ImportedTimeline::open(&context, sent, &descriptor)?;
/// let point = imported.point(value)?;
/// other.wait_point(point)?;
/// point.wait()?;
/// # }
/// # Ok::<(), cuda_timelines::Error>(())
/// ```
///
/// # Write access
///
/// | file from | importers' access | waits of importers' streams |
/// | --- | --- | --- |
/// | [`new`](Self::new) | Importers cannot write the file: the kernel enforces a seal, and the file descriptor is read-only. | The streams wait for a copy of the value in the importer's memory. The importer's [poller](crate#threads) makes the copy: `docs/timelines.md` has the cost. |
/// | [`writable`](Self::writable) | This crate maps the file read-only in importers. When this process has ended, an importer maps the file writable for a moment, to release waiting streams. | The streams wait for the file's memory directly, which is faster. |
///
/// Another process of the same user can keep importers from noticing the end of this process. To be
/// sure, let importers wait with a timeout.
///
/// The exporter cannot harm an importer's memory. With a file from `writable`, the exporter can
/// block the importer's streams. To prevent that, the importer can pass a read-only file descriptor
/// to [`ImportedTimeline::open`](super::ImportedTimeline::open). The importer's streams then wait
/// as with a file from `new`.
///
/// # Lifetime
///
/// Timelines keep their file alive. When the file and all its timelines are dropped, importers see
/// that the timelines have ended, after the last signals. Importers also see if this process ends
/// or is killed: [`ImportedTimeline`](super::ImportedTimeline) has the time bounds. A forked child
/// does not keep the file alive.
///
/// If the context of this process fails, importers get [`Error::Poisoned`] some milliseconds later:
/// `docs/timelines.md` has the bound. While a signal is pending, the [poller](crate#threads) calls
/// [`cuEventQuery`] every 5 ms for each file, between two calls of
/// [`cuThreadExchangeStreamCaptureMode`].
///
/// Each file that a process creates or imports keeps one mapping until the process ends. Linux
/// allows a process 65530 mappings (`vm.max_map_count`). So use one file for many timelines and
/// many importers. The page stays registered until the context ends.
///
/// On Linux this type needs `/proc`. Systems other than Linux and Windows have no such files: the
/// error is [`Platform`](Refusal::Platform).
///
/// # On Windows
///
/// On Windows the file is an unnamed section of the page file, and this type implements `AsHandle`.
/// Copy the handle into the other process with `DuplicateHandle`, or let a child inherit a copy.
///
/// * The handle of a section from [`new`](Self::new) is read-only, and so is every copy. But a
///   process with write access to this process can write the section, too. Most processes of the
///   same user have such access.
/// * For a section from [`writable`](Self::writable), you can give the importer a read-only copy of
///   the handle (`FILE_MAP_READ`). The importer's streams then wait as with a section from `new`.
/// * The importer watches the exporter's process, whose process id and start time are in the
///   section. The importer must be allowed to open that process (`SYNCHRONIZE`,
///   `PROCESS_QUERY_LIMITED_INFORMATION`).
pub struct TimelineFile(Arc<SharedFile>);

/// The state that a file's timelines keep alive.
pub(super) struct SharedFile {
    #[cfg_attr(not(any(unix, windows)), expect(dead_code, reason = "nobody can be given it"))]
    file: File,
    number: u64,
    lines: &'static [Line],
    /// Whether other processes can write the lines.
    exposed: bool,
    /// Those that timelines have had, in the order of their places.
    slots: Mutex<Vec<&'static Slot>>,
    context: Context,
    address: CUdeviceptr,
    /// The lines of streams, which the crate's thread watches while signals are pending.
    watch: Arc<Watch>,
    /// The event that the thread queries.
    #[expect(dead_code, reason = "held for the watch")]
    health: Event,
    /// The lock on the file, which the drop releases.
    life: Option<Life>,
}

/// The lives of dropped files to which streams may still write.
static ENDING: Mutex<Vec<(Life, Vec<&'static Slot>)>> = Mutex::new(Vec::new());

/// Ends the lives of files to which no stream writes any more.
pub(super) fn sweep() {
    lock(&ENDING).retain(|(_, slots)| !slots.iter().all(|slot| slot.is_finished()));
}

impl TimelineFile {
    /// Creates a file that only this process can write. It needs Linux 5.1 or later, or Windows.
    ///
    /// Driver calls: [`cuEventCreate`], and [`cuMemHostRegister`] and [`cuMemHostGetDevicePointer`]
    /// between two calls of [`cuThreadExchangeStreamCaptureMode`], all with the context current.
    ///
    /// ```
    /// # #[cfg(target_os = "linux")] {
    /// use std::os::fd::AsFd;
    ///
    /// use cuda_events::{Context, Device};
    /// use cuda_timelines::{HostTimeline, ImportedTimeline, TimelineFile};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// // In the exporter:
    /// let file = TimelineFile::new(&context)?;
    /// assert_eq!(file.context(), &context);
    /// let timeline = HostTimeline::shared(&file)?;
    /// let descriptor = timeline.descriptor().expect("it is shared");
    /// let sent = file.as_fd().try_clone_to_owned().expect("a file descriptor");
    ///
    /// // In an importer, which cannot write the file:
    /// let imported = ImportedTimeline::open(&context, sent, &descriptor)?;
    /// assert_eq!(imported.context(), &context);
    /// let value = timeline.signal()?.value();
    /// assert!(imported.completed() >= value && imported.point(value)?.is_done());
    /// # }
    /// # Ok::<(), cuda_timelines::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// * [`Error::SharedTimeline`] with [`System`](Refusal::System) if the system refuses the file,
    ///   or with [`Platform`](Refusal::Platform) if the system is neither Linux nor Windows.
    /// * Errors of the driver, such as those of work that was launched earlier;
    ///   [`ForkedChild`](cuda_events::Error::ForkedChild).
    pub fn new(context: &Context) -> Result<Self> {
        Self::make(context, true)
    }

    /// Creates a file that importers can write. The importers' streams wait for the file's memory
    /// directly. Use it only for importers that you trust as much as this process.
    ///
    /// A process with the file descriptor can write any bytes at any time. So it can harm **each
    /// process with the file, this one included**:
    ///
    /// * A point of a [`Timeline::shared`](super::Timeline::shared) can look reached too early.
    ///   Work that waits for it then runs on unfinished data.
    /// * Waits for such a point can end with [`Error::Poisoned`], or never end, even after the drop
    ///   of the timeline. Use timeouts.
    /// * Importers can miss the end of this process or of a timeline.
    ///
    /// Such a process cannot read or write other memory.
    ///
    /// Driver calls: those of [`new`](Self::new).
    ///
    /// ```
    /// # #[cfg(target_os = "linux")] {
    /// use cuda_events::{Context, Device};
    /// use cuda_timelines::{HostTimeline, TimelineFile};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let file = TimelineFile::writable(&context)?;
    /// let timeline = HostTimeline::shared(&file)?;
    /// assert!(timeline.signal()?.is_done());
    /// # }
    /// # Ok::<(), cuda_timelines::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`new`](Self::new).
    pub fn writable(context: &Context) -> Result<Self> {
        Self::make(context, false)
    }

    #[allow(unsafe_code)]
    fn make(context: &Context, sealed: bool) -> Result<Self> {
        wait::refuse_fork()?;
        sweep();
        let health = Event::new(context, EventFlags::empty())?;
        let (file, lines, life) = File::create(LINES, sealed)?;
        let number = RandomState::new().hash_one(std::process::id());
        if let Some(first) = lines.first() {
            first.put([header(VERSION), number]);
        }
        let memory = lines.as_ptr().cast_mut().cast();
        // SAFETY: the lines are never unmapped. In the file are atomics only, for all processes.
        let address = unsafe { pages::register(context, memory, 0, false) }?;
        // Fresh memory is nobody else's.
        let address = address.ok_or_else(pages::no_memory)?;
        let slots = Mutex::default();
        let context = context.clone();
        Ok(Self(Arc::new(SharedFile {
            file,
            number,
            lines,
            exposed: !sealed,
            slots,
            context,
            address,
            watch: Watch::new(&health),
            health,
            life: Some(life),
        })))
    }

    /// Returns the context that the file was created in.
    ///
    /// [`new`](Self::new) has an example.
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

/// The registration of a file's page ends with its context, and the stream must not outlive it.
pub(super) fn same_context(stream: &StreamRef, context: &Context) -> Result<()> {
    let own = stream.context();
    if !own.driver().is_same_library(context.driver()) {
        return Err(cuda_events::Error::DriverMismatch {
            function: Function::cuStreamWriteValue64_v2,
        }
        .into());
    }
    if own.as_raw() == context.as_raw() {
        return Ok(());
    }
    let ordinal = |context: &Context| u16::try_from(context.device().ordinal()).unwrap_or(u16::MAX);
    let (device, other_device) = (ordinal(own), ordinal(context));
    Err(Error::ContextMismatch { device, other_device })
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
    /// Whether other processes can write the lines.
    pub(super) fn is_exposed(&self) -> bool {
        self.exposed
    }

    /// Returns an unused line, which has this value.
    pub(super) fn take(&self, value: u64) -> Result<&'static Slot> {
        wait::refuse_fork()?;
        let mut slots = lock(&self.slots);
        let index = slots.len() + 1;
        let line = self.lines.get(index).ok_or(Refusal::FileFull)?;
        // Whatever another process has written there.
        line.put([value, 0]);
        let whose = Whose::Shared { failure: Failure::default(), exposed: self.exposed };
        let slot: &'static Slot = Box::leak(Box::new(Slot::new(line, whose)));
        let address = self.address + (index * size_of::<Line>()) as CUdeviceptr;
        slot.begin_at(&self.context, address, value);
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
        Some(TimelineDescriptor(Named::File(InFile {
            index: u16::try_from(at).ok()?,
            file: self.number,
        })))
    }
}

impl Drop for SharedFile {
    fn drop(&mut self) {
        if is_forked_child() {
            return;
        }
        // The thread must not query the event once it is destroyed.
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

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use cuda_events::Device;
    use cuda_soft_driver::SoftDriver;

    /// A forked child drops a file without a lock: the thread that has it at the fork does not exist
    /// there.
    #[test]
    #[cfg_attr(miri, ignore = "Miri has no fork")]
    fn a_forked_child_takes_no_lock() {
        cuda_events_test_support::own_process!();
        let soft = SoftDriver::new();
        let context = Device::new(soft.driver(), 0).and_then(Context::primary).unwrap();
        let mut file = Some(TimelineFile::new(&context).unwrap());
        let ending = lock(&ENDING);
        let dropped = cuda_events_test_support::fork::in_child(|| {
            // Who waits for the lock ends by this.
            cuda_events_test_support::child::end_after(30);
            drop(file.take());
            String::from("dropped")
        });
        drop(ending);
        assert_eq!(dropped, (String::from("dropped"), 0));
        drop(file);
    }
}
