//! Timelines: counters that streams and the host advance, and that everybody sees.
//!
//! | file | |
//! | --- | --- |
//! | `line` | what is in memory, shared with devices and other processes |
//! | `slot` | what this process knows of a line; who gets which |
//! | `point`, `wait`, `future`, `queue`, `poller` | who waits |
//! | `asked` | when somebody last asked whether it works |
//! | `ending` | what becomes of who waits when it is dropped |
//! | `crossing` | waits of streams of another context |
//! | `host` | timelines of the host |
//! | `file`, `descriptor` | timelines that processes share: the maker's side, and their name |
//! | `watch` | what the crate's thread does for them |
//! | `foreign`, `import` | the other side: what it knows of a line, and how it gets that |
//! | `handle`, `opened` | the same by bytes alone: the maker's side, and the other |
//! | `memory` | the memory that lines are in |

use core::any::Any;
use core::fmt;
use std::sync::Arc;

use crate::capture::CaptureStatus;
use crate::ext::needs::{capture_under_way, entry, forked, is_same_library};
use crate::mem_ops::WriteValueFlags;
use crate::sys::Function;
use crate::{Context, Error, Result, Stream, StreamRef};

mod asked;
mod crossing;
mod descriptor;
mod ending;
mod file;
mod followed;
mod foreign;
mod future;
mod handle;
mod host;
mod import;
mod line;
mod memory;
mod opened;
mod point;
mod poller;
mod queue;
mod slot;
mod wait;
mod watch;

use file::SharedFile;
use handle::Word;
use line::Line;
use slot::{Slot, State, lock};

pub use descriptor::TimelineDescriptor;
pub use file::TimelineFile;
pub use future::PointCompletion;
pub use handle::{TimelineHandle, TimelineMemory};
pub use host::HostTimeline;
pub use import::ImportedTimeline;
pub use opened::OpenedTimeline;
pub use point::Point;

/// A counter that a stream advances: each [`signal`](Self::signal) gives a [`Point`], which the
/// host sees by one load, and for which every stream of the process can wait.
///
/// A signal costs about seven times what a record of an event costs, and so does a wait of a stream
/// for a point beside one for an event (`docs/performance.md`). In return looking is one load
/// instead of a driver call under the driver's lock, from as many threads as you like.
///
/// | You want | Use |
/// | --- | --- |
/// | order between streams of one process, and nobody else looks | an [`Event`](crate::Event): the cheapest edge |
/// | a host that looks often, or many threads that look | a timeline |
/// | many places in one stream to look at or wait for | a timeline: a point is a number, an event is an object |
/// | time stamps | an event with [`TIMING`](crate::EventFlags::TIMING) |
/// | something that each launch of a graph signals | an event, with [`record_external`](StreamRef::record_external) |
/// | a stage of the CPU between two stages of the GPU | a [`HostTimeline`], or a [host function](StreamRef::launch_host_function) if it is short: it needs no thread, but the driver runs them one after the other, and none after a failure |
/// | to await a few completions | either; the future of an [event](crate::ext::Completion) needs no timeline |
/// | to await thousands | a timeline: looking at a point makes no driver call |
///
/// # One stream
///
/// A timeline belongs to one stream, and takes it: a [`Stream`], an `Arc<Stream>`, a [`StreamRef`]
/// or a [`ForeignStream`](crate::ForeignStream). No method signals in another. A stream does its
/// work in order, so that values only rise. [`stream`](Self::stream) lends it for everything else.
/// A stream may have several timelines.
///
/// Threads may signal one timeline at once. The value and its place in the stream are one step:
/// `signal` holds a lock of the timeline while it makes its driver call. Two threads that put work
/// into one stream and signal are in an order that only they can make, as with events.
///
/// # What is waited for
///
/// A wait takes a [`Point`], which exists only once its signal was submitted. So a program that
/// only waits for points cannot deadlock, as one that only waits for events cannot;
/// `docs/timelines.md` has the proof. [`wait_ahead`](Self::wait_ahead) is for the rest, and can.
///
/// # Captures
///
/// A signal in a capturing stream is [`Error::TimelineInCapture`]: each launch of the graph would
/// write its one value again, and the counter would go back. For a graph, signal in the stream of
/// the launch after the launch.
///
/// Noticing it costs nothing where the timeline was given a [`Stream`] or an `Arc<Stream>`: a flag
/// of this crate tells whether a [`Capture`](crate::capture::Capture) is under way anywhere, and
/// only then the driver is asked. Any other stream is asked before each signal
/// (`cuStreamIsCapturing`), because other code has it and may begin a capture unseen.
///
/// **One case stays unnoticed: a capture that other code has begun**, by the raw handle. It may
/// have begun it in a `Stream` of yours. Or it captures a stream of its own, and yours becomes a
/// part of that capture by a wait: also by your own [`wait_event`](StreamRef::wait_event) for an
/// event that was recorded in the capturing stream, or [`wait_stream`](StreamRef::wait_stream) for
/// that stream. These are one driver call, and do not look. A signal is `Ok` then, and each launch
/// of the graph puts the counter back. So if a stream waits for work of other code that captures,
/// give its timeline a [`StreamRef::from_raw`] of it, and it is asked.
///
/// # Dropping it
///
/// Dropping a timeline never waits for work. Its points stay valid: those whose signal is pending
/// are reached when the stream gets there. Streams that [wait ahead](Self::wait_ahead) for values
/// that nobody can signal any more are released: by the drop itself, or if a signal is pending by
/// the crate's thread, within 5 ms of the last signal and a round. The stream is dropped as it
/// would be without the timeline. Like an event, a timeline holds a share of its context, and only
/// [the last share](crate::Context#dropping-the-last-share) can block. The drop makes no driver
/// call of its own, except as [`poison`](Self::poison) if the last signal was an error, and for a
/// timeline [in memory](Self::in_memory).
///
/// # What it keeps
///
/// One cache line of pinned host memory, in a page of 64 that timelines of one context share. Pages
/// are the process's own memory, registered for all devices, and serve other timelines later. The
/// driver's own release of them would wait for streams, so that the crate leaves it to the end of
/// the context. Only the line of a timeline that was poisoned serves no other one. Points keep
/// nothing.
///
/// ```
/// use cuda_events::ext::Timeline;
/// use cuda_events::{Context, Device, Stream, StreamOptions};
///
/// # let soft = cuda_soft_driver::SoftDriver::new();
/// # let driver = soft.driver();
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let produced = Timeline::new(Stream::new(&context, StreamOptions::new())?)?;
/// let consumer = Stream::new(&context, StreamOptions::new())?;
/// // ... work is put into `produced.stream()` ...
/// let point = produced.signal()?;
/// consumer.wait_point(point)?;
/// // ... work that needs it is put into `consumer` ...
/// while !point.is_done() {
///     // The host does something else. Where nothing else ends the loop, ask `query` instead.
/// #   point.wait()?;
/// }
/// assert!(produced.completed() >= point.value());
/// # Ok::<(), cuda_events::Error>(())
/// ```
pub struct Timeline {
    slot: &'static Slot,
    /// Names the stream that `owner` keeps alive.
    stream: StreamRef,
    /// Whether captures in the stream may begin unseen.
    foreign: bool,
    /// Where other processes see it.
    file: Option<Arc<SharedFile>>,
    /// Where they see it by bytes alone.
    word: Option<Word>,
    /// Dropped last.
    _owner: Box<dyn Any + Send + Sync>,
}

/// Who else sees a new timeline.
enum Place<'a> {
    Own,
    File(&'a Arc<SharedFile>),
    Memory(&'a TimelineMemory),
}

const WRITE: Function = Function::cuStreamWriteValue64_v2;

impl Timeline {
    /// A timeline of the stream, which it takes. Pass an `Arc<Stream>` to go on using the stream
    /// elsewhere too. It calls `as_ref` once.
    ///
    /// Its values go on from where another timeline ended that had the same line in memory, so that
    /// the first is not always 1.
    ///
    /// No driver call, unless 64 timelines of the context share no page of memory that has room:
    /// then `cuMemHostRegister` and `cuMemHostGetDevicePointer` with the context current, between
    /// two of `cuThreadExchangeStreamCaptureMode`. CUDA 9.0; a driver before 11.7 has it where its
    /// kernel module was told to: see [`StreamRef::write_value64`].
    ///
    /// # Errors
    ///
    /// [`Error::PerThreadTimeline`] for the per-thread default stream; [`Error::Unsupported`]; what
    /// the driver returns; [`Error::ForkedChild`].
    pub fn new<S: AsRef<StreamRef> + Send + Sync + 'static>(stream: S) -> Result<Self> {
        Self::make(stream, Place::Own)
    }

    /// A timeline of the stream that other processes see: those which have the file. It is as one
    /// of [`new`](Self::new) in everything else, and its [descriptor](Self::descriptor) names it
    /// for them.
    ///
    /// Dropping it releases all that wait for it in other processes, after the last signal.
    ///
    /// No driver call.
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new); [`Error::ContextMismatch`] if the file was made in another
    /// context than the stream's; [`Error::SharedTimeline`] with
    /// [`FileFull`](crate::ipc::SharedTimelineError::FileFull).
    pub fn shared<S: AsRef<StreamRef> + Send + Sync + 'static>(
        stream: S,
        file: &TimelineFile,
    ) -> Result<Self> {
        Self::make(stream, Place::File(file.shared()))
    }

    /// A timeline of the stream that other processes open by bytes alone, its
    /// [handle](Self::handle). In this process it is as one of [`new`](Self::new).
    ///
    /// Each [`signal`](Self::signal) makes one driver call more, `cuStreamWriteValue64` to the
    /// device memory. So do the drop and [`poison`](Self::poison), which release all that wait in
    /// other processes, after the last signal. A timeline whose stream captures or whose context
    /// has failed cannot do that; see `docs/timelines.md`.
    ///
    /// Driver calls as for [`new`](Self::new).
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new); [`Error::ContextMismatch`] if the memory is of another context
    /// than the stream; [`Error::SharedTimeline`] with
    /// [`FileFull`](crate::ipc::SharedTimelineError::FileFull).
    pub fn in_memory<S: AsRef<StreamRef> + Send + Sync + 'static>(
        stream: S,
        memory: &TimelineMemory,
    ) -> Result<Self> {
        Self::make(stream, Place::Memory(memory))
    }

    #[allow(unsafe_code)]
    fn make<S: AsRef<StreamRef> + Send + Sync + 'static>(
        stream: S,
        shared: Place<'_>,
    ) -> Result<Self> {
        let owner = Box::new(stream);
        let named: &StreamRef = (*owner).as_ref();
        let driver = named.driver();
        refuse_fork()?;
        if *named == StreamRef::per_thread_default(named.context()) {
            return Err(Error::PerThreadTimeline);
        }
        // An older driver has it, or is told apart here from one that has not.
        entry!(driver, cuStreamWriteValue64_v2 or cuStreamWriteValue64?)?;
        let (slot, file, word) = match shared {
            Place::Own => (slot::allocate(named.context())?, None, None),
            Place::File(file) => {
                same_context(named, file.context())?;
                let slot = file.take()?;
                file.watch().add(slot);
                (slot, Some(Arc::clone(file)), None)
            }
            Place::Memory(memory) => {
                same_context(named, memory.context())?;
                let word = memory.take()?;
                (slot::allocate(named.context())?, None, Some(word))
            }
        };
        let kind: &dyn Any = &*owner;
        let foreign = !(kind.is::<Stream>() || kind.is::<Arc<Stream>>());
        // SAFETY: `as_ref` gave the stream for a borrow of the box's content, and that borrow can
        // go on until the box is dropped: it neither moves its content nor lends it mutably. It is
        // dropped after this name.
        let stream = unsafe { StreamRef::from_raw(named.context(), named.as_raw()) };
        Ok(Self { slot, stream, foreign, file, word, _owner: owner })
    }

    /// Signals the next value after all work that is in the stream now.
    ///
    /// One driver call: `cuStreamWriteValue64`; two where the stream
    /// [may capture unseen](Self#captures).
    ///
    /// # Errors
    ///
    /// [`Error::TimelineInCapture`]; what the driver returns, among it errors of work that was
    /// launched before; [`Error::ForkedChild`]. A signal that fails leaves its value out.
    #[doc(alias = "cuStreamWriteValue64")]
    #[allow(unsafe_code)]
    #[inline]
    pub fn signal(&self) -> Result<Point> {
        // Before the lock, which another thread may have had when this process was forked.
        refuse_fork()?;
        if self.foreign || capture_under_way() {
            self.refuse_capture()?;
        }
        let mut state = lock(&self.slot.state);
        // The lock is held across the call, so that the order of the values is that of the writes.
        // The value is used up even if the call fails: the driver may have taken it all the same,
        // and then another signal of that value would be seen too early.
        let value = state.submitted + 1;
        state.submitted = value;
        // SAFETY: as for `write`.
        if let Err(error) = unsafe { self.write(value) } {
            state.refused = Some(value);
            // Whoever waits in another process learns of it from nobody else.
            self.slot.condemn(&error);
            return Err(error);
        }
        drop(state);
        if let Some(file) = &self.file {
            file.watch().signalled();
        }
        Ok(Point::new(self.slot, value))
    }

    /// # Safety
    ///
    /// The slot's state must be locked.
    #[allow(unsafe_code)]
    #[inline(always)]
    unsafe fn write(&self, value: u64) -> Result<()> {
        if let Some(word) = &self.word {
            self.write_word(word, value)?;
        }
        // SAFETY: the address is that of 8 bytes in pinned host memory, aligned to 64, which is
        // never freed, is registered as long as the stream's context lives, and is read by atomics
        // only.
        unsafe { self.stream.write_value64(self.slot.address(), value, WriteValueFlags::empty()) }
    }

    #[allow(unsafe_code)]
    #[inline(never)]
    fn write_word(&self, word: &Word, value: u64) -> Result<()> {
        // SAFETY: 8 bytes of device memory, aligned to 64, which are freed no sooner than the
        // driver has done this. Nobody but this timeline writes them while its process lives.
        unsafe { self.stream.write_value64(word.address, value, WriteValueFlags::empty()) }
    }

    #[cold]
    #[inline(never)]
    fn refuse_capture(&self) -> Result<()> {
        match self.stream.capture_status()? {
            CaptureStatus::None => Ok(()),
            _ => Err(Error::TimelineInCapture { function: WRITE }),
        }
    }

    /// The value of the last point that was reached: one load, as for [`Point::is_done`]. Each
    /// point whose [`value`](Point::value) is not above it is reached.
    #[must_use]
    #[inline]
    pub fn completed(&self) -> u64 {
        self.slot.line.reached()
    }

    /// The value of the last signal, or what the first one counts on from. Other threads may signal
    /// at any time. It waits for a signal that is under way.
    ///
    /// # Errors
    ///
    /// [`Error::ForkedChild`].
    pub fn submitted(&self) -> Result<u64> {
        wait::refuse_fork()?;
        Ok(lock(&self.slot.state).submitted)
    }

    /// Opens the timeline in other processes, if it is [in device memory](Self::in_memory).
    pub fn handle(&self) -> Option<TimelineHandle> {
        self.word.as_ref().map(|word| word.handle)
    }

    /// Names the timeline for other processes, if it is [shared](Self::shared).
    pub fn descriptor(&self) -> Option<TimelineDescriptor> {
        self.file.as_ref().and_then(|file| file.descriptor(self.slot))
    }

    /// The stream that the timeline belongs to.
    #[inline]
    pub fn stream(&self) -> &StreamRef {
        &self.stream
    }

    /// Makes all work that is put into `stream` from now on wait for a value that may not have been
    /// signalled yet. **It can deadlock**; [`StreamRef::wait_point`] cannot.
    ///
    /// The deadlock need not be a circle in your program. Streams share a few hardware channels,
    /// `CUDA_DEVICE_MAX_CONNECTIONS` of them, 8 unless that variable says otherwise. A wait at the
    /// head of a channel holds back all that is submitted to that channel later, also in other
    /// streams, and even the signal that would end the wait. With as many waits as channels every
    /// other stream is held back. With fewer some can be, where many streams are given work at
    /// once. So keep waits ahead few and short, do not put bursts of work behind them, and signal
    /// from a thread that waits for none of them. A signal of the [host](HostTimeline) needs no
    /// channel. Create streams before: creating many while a stream waits can block until the wait
    /// is over.
    ///
    /// It is safe: a deadlock harms no memory. The wait ends when the value is reached, and when
    /// the timeline is [poisoned](Self::poison). If the timeline is dropped before it has signalled
    /// the value, the wait ends [after the last signal](Self#dropping-it), if that can happen.
    ///
    /// Driver calls and captures as for [`StreamRef::wait_point`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn wait_ahead(&self, stream: &StreamRef, value: u64) -> Result<()> {
        host::wait_ahead(self.slot, stream, value)
    }

    /// Gives the timeline up, at once: hosts that wait for a point that is not reached get
    /// [`Error::Poisoned`], and **streams that wait are released as if it were**. What they do then
    /// may find data that is not there. It is the way out when a signal can never come, as in a
    /// deadlock that [`wait_ahead`](Self::wait_ahead) has made.
    ///
    /// Signals that were submitted happen nevertheless, if the stream gets there, and a point that
    /// is reached is done. Dropping the timeline is gentler: it releases nobody before the last
    /// signal.
    ///
    /// One driver call, for streams that come to their waits later: `cuStreamWriteValue64`;
    /// `cuStreamIsCapturing` before it as for [`signal`](Self::signal).
    ///
    /// # Errors
    ///
    /// As [`signal`](Self::signal). The timeline is poisoned nevertheless. But if the stream still
    /// works, streams that come to their waits only after its next signal may not be released.
    pub fn poison(self) -> Result<()> {
        refuse_fork()?;
        self.slot.line.poison(None);
        self.end(&mut lock(&self.slot.state))
    }

    /// Has the stream end all waits after its last signal, if it still works.
    #[allow(unsafe_code)]
    fn end(&self, state: &mut State) -> Result<()> {
        state.over = true;
        if self.foreign || capture_under_way() {
            self.refuse_capture()?;
        }
        // SAFETY: the state is locked.
        unsafe { self.write(Line::end_after(state.submitted)) }
    }
}

impl Drop for Timeline {
    fn drop(&mut self) {
        if forked() {
            return;
        }
        let mut state = lock(&self.slot.state);
        if state.refused == Some(state.submitted) && self.slot.is_awaited(&state) {
            // Only the stream knows when it has passed a signal that may not be there.
            if self.end(&mut state).is_err() {
                self.slot.line.poison(None);
            }
        } else if let Some(word) = self.word.as_ref().filter(|_| !state.over)
            && (!(self.foreign || capture_under_way()) || self.refuse_capture().is_ok())
        {
            // The host cannot store there. A failure is nobody's to know.
            let _ = self.write_word(word, Line::end_after(state.submitted));
        }
        drop(state);
        ending::end(self.slot);
        slot::release(self.slot);
        crossing::sweep(crossing::ALL);
    }
}

/// In a forked child nothing is signalled.
#[inline(always)]
fn refuse_fork() -> Result<()> {
    if forked() { Err(Error::ForkedChild { function: WRITE }) } else { Ok(()) }
}

/// The registration of a file's page ends with its context, and the stream must not outlive it.
fn same_context(stream: &StreamRef, context: &Context) -> Result<()> {
    let own = stream.context();
    if !is_same_library(own.driver(), context.driver()) {
        return Err(Error::DriverMismatch { function: WRITE });
    }
    if own.as_raw() == context.as_raw() {
        return Ok(());
    }
    let ordinal = |context: &Context| u16::try_from(context.device().ordinal()).unwrap_or(u16::MAX);
    let (device, other_device) = (ordinal(own), ordinal(context));
    Err(Error::ContextMismatch { function: WRITE, code: None, device, other_device })
}

/// So that a timeline can share its stream.
impl AsRef<StreamRef> for Arc<Stream> {
    fn as_ref(&self) -> &StreamRef {
        self
    }
}

impl fmt::Debug for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timeline")
            .field("completed", &self.completed())
            .field("poisoned", &self.slot.line.is_poisoned())
            .field("stream", &self.stream)
            .finish()
    }
}

static_assertions::assert_impl_all!(Timeline: Send, Sync);
