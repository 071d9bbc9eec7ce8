//! Timelines of other processes: an import of either kind.

use core::fmt;

#[cfg(doc)]
use crate::error::Error;
use crate::error::{Result, SharedTimelineError as Refusal};
use cuda_events::Context;
use cuda_events::ipc::ExporterState;

use super::descriptor::TimelineDescriptor;
use super::import_file::FileImport;
use super::import_memory::MemoryImport;
use super::point::Point;
use super::wait::refuse_fork;

#[cfg(doc)]
use crate::calls::*;
#[cfg(doc)]
use cuda_events::ipc::ExporterProcess;

/// A timeline that another process advances.
///
/// ```
/// # #[cfg(unix)] {
/// use std::os::fd::OwnedFd;
///
/// use cuda_events::{Context, StreamRef};
/// use cuda_timelines::{CudaStreamExt, ImportedTimeline, Result, TimelineDescriptor};
///
/// /// Waits for a value. The exporter has sent the file, the descriptor's bytes and the value.
/// fn follow(
///     context: &Context,
///     stream: &StreamRef,
///     file: OwnedFd,
///     bytes: &[u8],
///     value: u64,
/// ) -> Result<()> {
///     let descriptor = TimelineDescriptor::from_bytes(bytes)?;
///     let timeline = ImportedTimeline::open(context, file, &descriptor)?;
///     let point = timeline.point(value)?;
///     stream.wait_point(point)?; // the stream's later work waits
///     point.wait() // the host waits, too; it gets an error if the exporter is killed
/// }
/// # }
/// ```
///
/// Streams, hosts and futures wait for its [points](Self::point) as for points of this process. Any
/// number of processes can import one timeline, and two processes can import each other's
/// timelines. There are two ways:
///
/// * [`open`](Self::open): by the file descriptor of the exporter's
///   [`TimelineFile`](super::TimelineFile). Prefer it.
/// * [`open_memory`](Self::open_memory): by bytes alone, for processes that cannot send each other
///   file descriptors. It guarantees less: `docs/timelines.md` compares the two.
///
/// # Values
///
/// The exporter sends the value of each signal ([`Point::value`]), by any means. It should send a
/// value only after the call of `signal`: then a wait for the value [cannot
/// deadlock](super::Timeline#waiting). A wait for a value that the exporter has not signalled yet
/// can deadlock: see [`Timeline::wait_ahead`](super::Timeline::wait_ahead).
///
/// # When the exporter ends
///
/// If the exporter's process exits or is killed before it has signalled a value, all waits for that
/// value end:
///
/// * Hosts and futures get [`Error::ExporterGone`].
/// * Streams go on **as if the value were reached**. Their next work may then find data missing. So
///   check the point on the host with [`Point::query`] before you trust a result of the stream. You
///   can use and drop streams and contexts as usual.
///
/// Where the end is detected, and how soon, depends on the import:
///
/// | | by a file | by memory |
/// | --- | --- | --- |
/// | where the end is detected | in every container | in the exporter's pid namespace only: see [`ExporterProcess`] |
/// | hosts and futures | within 5 ms | within 10 ms and one pass of the poller |
/// | streams | within 5 ms and one pass of the poller | within 10 ms and one pass of the poller |
///
/// The [poller](crate#threads) is a thread of this crate, which checks all pending points in turn.
/// All these times are longer on a busy machine.
///
/// **By memory, the end is never detected in another pid namespace**, such as another container. If
/// your program detects the end itself, for example by a closed connection, call
/// [`exporter_ended`](Self::exporter_ended).
///
/// # When the exporter lives and the timeline ends
///
/// If the exporter drops or [poisons](super::Timeline::poison) the timeline, hosts get
/// [`Error::Poisoned`], and streams are released. By memory this happens only after the last
/// signal.
///
/// If the exporter's context fails, an import by a file [ends in the same
/// way](super::TimelineFile#lifetime). **By memory, a failed context is not detected while the
/// exporter's process lives.** Let the exporter report the failure, or wait with a timeout.
///
/// # Dropping it
///
/// By a file, the drop never waits. Streams that already wait go on waiting, and are released as
/// described above. A host that starts to wait for a pending point afterwards gets
/// [`Error::ContextDropped`]. Each imported file keeps 4 KiB mapped until the process ends, so put
/// many timelines into one file.
///
/// By memory, the drop can block like the [last drop of a
/// context](Context#dropping-the-last-share).
pub struct ImportedTimeline(Import);

enum Import {
    File(FileImport),
    Memory(MemoryImport),
}

impl ImportedTimeline {
    /// Opens a timeline of another process by the exporter's file. `context` should be the context
    /// of the streams that will wait for the timeline.
    ///
    /// `file` is the file descriptor; on Windows it is an `OwnedHandle` of the section. The
    /// exporter may also be this process. `open` works on Linux and on Windows.
    ///
    /// This method checks the file before it reads timelines from it. A refused file does not stay
    /// mapped. [`TimelineFile`](super::TimelineFile) has an example.
    ///
    /// The file descriptor stays open while anything waits for the timeline, and while a graph with
    /// a captured wait exists.
    ///
    /// Driver calls:
    ///
    /// * For a file from [`TimelineFile::new`](super::TimelineFile::new), or with a read-only file
    ///   descriptor: those of [`HostTimeline::new`](super::HostTimeline::new).
    /// * For the first timeline of a [writable](super::TimelineFile#write-access) file in a
    ///   context: [`cuDeviceGetAttribute`]. Then [`cuMemHostRegister`] and
    ///   [`cuMemHostGetDevicePointer`] with the context current, between two calls of
    ///   [`cuThreadExchangeStreamCaptureMode`].
    /// * For later timelines of the file: none.
    ///
    /// # Errors
    ///
    /// * [`Error::SharedTimeline`] with [`OtherKind`](Refusal::OtherKind),
    ///   [`NotMemory`](Refusal::NotMemory), [`Unsealed`](Refusal::Unsealed),
    ///   [`FileSize`](Refusal::FileSize), [`FileMagic`](Refusal::FileMagic),
    ///   [`FileVersion`](Refusal::FileVersion), [`OtherFile`](Refusal::OtherFile),
    ///   [`System`](Refusal::System) or [`Platform`](Refusal::Platform).
    /// * Errors of work that was launched earlier;
    ///   [`ForkedChild`](cuda_events::Error::ForkedChild).
    #[cfg(any(unix, windows))]
    pub fn open(
        context: &Context,
        #[cfg(unix)] file: std::os::fd::OwnedFd,
        #[cfg(windows)] file: std::os::windows::io::OwnedHandle,
        descriptor: &TimelineDescriptor,
    ) -> Result<Self> {
        let named = descriptor.in_file().ok_or(Refusal::OtherKind { in_memory: true })?;
        FileImport::open(context, file, named).map(|import| Self(Import::File(import)))
    }

    /// Opens a timeline of another process by bytes alone. `context` must be a context of the
    /// timeline's device. Streams of other devices can wait for the timeline's points, too.
    ///
    /// This method copies 16 bytes to check that the memory still belongs to the descriptor. So a
    /// descriptor of freed memory is refused.
    ///
    /// Driver calls, with the context current where they need it: [`cuDevicePrimaryCtxRetain`],
    /// [`cuCtxGetId`] (CUDA 12.0), [`cuDevicePrimaryCtxRelease`], [`cuIpcOpenMemHandle`], those of
    /// [`Stream::new`](cuda_events::Stream::new) twice, [`cuMemcpyDtoHAsync`] and
    /// [`cuStreamSynchronize`]. The memory of imports that were dropped is closed first
    /// ([`cuIpcCloseMemHandle`]), which waits for all work of the device. The first call for a
    /// context makes one more call, for the device's UUID.
    /// The first import in a context, and then each 64th, may also call [`cuMemHostRegister`] and
    /// [`cuMemHostGetDevicePointer`], between two calls of [`cuThreadExchangeStreamCaptureMode`].
    ///
    /// Each import uses 64 bytes of host memory that stay mapped until the process ends.
    ///
    /// ```
    /// use cuda_events::{Context, StreamRef};
    /// use cuda_timelines::{CudaStreamExt, ImportedTimeline, Result, TimelineDescriptor};
    ///
    /// /// Makes the stream wait for a value that the exporter has sent with the bytes.
    /// fn follow(
    ///     context: &Context,
    ///     stream: &StreamRef,
    ///     bytes: &[u8],
    ///     value: u64,
    /// ) -> Result<ImportedTimeline> {
    ///     let descriptor = TimelineDescriptor::from_bytes(bytes)?;
    ///     // SAFETY: the bytes come from a process of ours, which keeps its memory until we report
    ///     // that we are done.
    ///     let timeline = unsafe { ImportedTimeline::open_memory(context, &descriptor) }?;
    ///     stream.wait_point(timeline.point(value)?)?;
    ///     assert_eq!(timeline.context(), context);
    ///     Ok(timeline)
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// * [`Error::SharedTimeline`] with [`OtherKind`](Refusal::OtherKind),
    ///   [`MemoryOfOtherDevice`](Refusal::MemoryOfOtherDevice),
    ///   [`SameProcess`](Refusal::SameProcess) or [`OtherMemory`](Refusal::OtherMemory).
    /// * The driver's error, such as `CUDA_ERROR_INVALID_VALUE` for memory that was freed.
    /// * [`Unsupported`](cuda_events::Error::Unsupported);
    ///   [`ForkedChild`](cuda_events::Error::ForkedChild).
    ///
    /// # Safety
    ///
    /// The descriptor must come from a trusted process. While this process uses the result, that
    /// process must not drop its [`TimelineMemory`](super::TimelineMemory). That process may end at
    /// any time. The driver cannot detect a forged descriptor, and may open other device memory of
    /// the same user.
    #[doc(alias = "cuIpcOpenMemHandle")]
    #[allow(unsafe_code)]
    pub unsafe fn open_memory(context: &Context, descriptor: &TimelineDescriptor) -> Result<Self> {
        let named = descriptor.in_memory().ok_or(Refusal::OtherKind { in_memory: false })?;
        // SAFETY: the duties are those of the caller.
        let import = unsafe { MemoryImport::open(context, named) };
        import.map(|import| Self(Import::Memory(import)))
    }

    /// Returns the point of a value that the exporter has sent: the exporter's [`Point::value`].
    ///
    /// Any value gives a point. If the exporter ends without a signal of the value, waits end [with
    /// an error](Self#when-the-exporter-ends).
    /// [`TimelineFile`](super::TimelineFile) has an example.
    ///
    /// By a file this method makes no driver call, and returns no error.
    ///
    /// Driver calls by memory: [`cuStreamWaitValue64`], and [`cuMemcpyDtoHAsync`] with the context
    /// current. There are none if the value is reached, or if an earlier call was for the same
    /// value.
    ///
    /// By memory, call `point` for values in rising order. Otherwise the point of a lower value may
    /// be reached late, after the points of earlier calls.
    ///
    /// **By memory it blocks while 256 points of the timeline are pending.** Calls for one timeline
    /// take turns.
    ///
    /// # Errors
    ///
    /// By memory only:
    ///
    /// * [`Error::ExporterGone`] or [`Error::Poisoned`] if the value is known to be
    ///   [unreachable](Self#when-the-exporter-ends).
    /// * [`Error::NoThread`] if the system refuses to start the poller.
    /// * Errors of work that was launched earlier;
    ///   [`ForkedChild`](cuda_events::Error::ForkedChild).
    #[inline]
    pub fn point(&self, value: u64) -> Result<Point> {
        match &self.0 {
            Import::File(import) => Ok(import.point(value)),
            Import::Memory(import) => import.point(value),
        }
    }

    /// Returns the value of the last point that was reached, with one load. By memory, it sees only
    /// values for which [`point`](Self::point) was called.
    ///
    /// [`TimelineFile::new`](super::TimelineFile::new) has an example.
    #[must_use]
    #[inline]
    pub fn completed(&self) -> u64 {
        match &self.0 {
            Import::File(import) => import.completed(),
            Import::Memory(import) => import.completed(),
        }
    }

    /// Reports that the exporter's process has ended, and releases all waits.
    ///
    /// Use it for an import by memory, if this process [cannot detect](Self#when-the-exporter-ends)
    /// the end. **It also releases other importers of the timeline**, so call it only after the
    /// process has ended. By a file the end is always detected, and this method only checks for the
    /// end at once.
    ///
    /// Driver calls, by memory and if points are pending: [`cuStreamQuery`] twice, and
    /// [`cuMemsetD8Async`] with the context current. The [poller](crate#threads) repeats these
    /// calls until no point is pending.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use cuda_events::ipc::ExporterState;
    /// use cuda_timelines::{ImportedTimeline, Result};
    ///
    /// /// Waits for a value of an exporter in another container, to which there is a connection.
    /// fn wait(
    ///     timeline: &ImportedTimeline,
    ///     value: u64,
    ///     is_connected: impl Fn() -> bool,
    /// ) -> Result<()> {
    ///     let point = timeline.point(value)?;
    ///     while point.wait_timeout(Duration::from_millis(10))?.is_pending() {
    ///         if timeline.exporter_state() == ExporterState::Unknown && !is_connected() {
    ///             timeline.exporter_ended()?; // now `wait_timeout` returns `Error::ExporterGone`
    ///         }
    ///     }
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// Only [`ForkedChild`](cuda_events::Error::ForkedChild).
    pub fn exporter_ended(&self) -> Result<()> {
        refuse_fork()?;
        match &self.0 {
            Import::File(import) => drop(import.exporter_state()),
            Import::Memory(import) => import.exporter_ended(),
        }
        Ok(())
    }

    /// Returns the current state of the exporter's process.
    ///
    /// [`exporter_ended`](Self::exporter_ended) has an example.
    pub fn exporter_state(&self) -> ExporterState {
        match &self.0 {
            Import::File(import) => import.exporter_state(),
            Import::Memory(import) => import.exporter_state(),
        }
    }

    /// Returns the context that the timeline was imported in.
    ///
    /// [`TimelineFile::new`](super::TimelineFile::new) has an example.
    pub fn context(&self) -> &Context {
        match &self.0 {
            Import::File(import) => import.context(),
            Import::Memory(import) => import.context(),
        }
    }
}

impl fmt::Debug for ImportedTimeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("ImportedTimeline");
        match &self.0 {
            Import::File(import) => import.debug(&mut debug),
            Import::Memory(import) => import.debug(&mut debug),
        }
        debug.finish()
    }
}

static_assertions::assert_impl_all!(ImportedTimeline: Send, Sync);
