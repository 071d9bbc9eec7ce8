//! Timelines: counters that streams and the host advance, and that threads and processes can read.

use core::any::Any;
use core::fmt;
use core::sync::atomic::{AtomicU8, Ordering};
use std::sync::Arc;

use crate::error::{Error, Result};
use cuda_events::Error::{ForkedChild, Unsupported};
use cuda_events::capture::CaptureStatus;
use cuda_events::foundation::{deferring_observers, is_capture_under_way, is_forked_child};
use cuda_events::graph::{Graph, GraphNode};
use cuda_events::mem_ops::WriteValueFlags;
use cuda_events::sys::Function;
use cuda_events::{Stream, StreamRef};

mod asked;
mod crossing;
mod descriptor;
mod device_memory;
mod ending;
mod file;
mod followed;
mod foreign;
mod future;
mod graph;
mod home;
mod host;
mod import_file;
mod import_memory;
mod imported;
mod leftover;
mod line;
mod memory;
mod pages;
mod point;
mod queue;
mod rounds;
mod shared_failure;
mod slot;
mod wait;
mod watch;

use device_memory::Word;
use file::{SharedFile, same_context};
use slot::Slot;

pub use descriptor::TimelineDescriptor;
pub use device_memory::TimelineMemory;
pub use file::TimelineFile;
pub use future::PointCompletion;
pub use graph::SignalGraph;
pub use host::HostTimeline;
pub use imported::ImportedTimeline;
pub use point::Point;
pub(crate) use point::wait_point;

#[cfg(doc)]
use crate::calls::*;
use crate::sync::lock;

/// A counter that a stream advances.
///
/// Each [`signal`](Self::signal) returns a [`Point`]. The host checks a point with one load. Every
/// stream of the process can [wait](crate::CudaStreamExt::wait_point) for the point.
///
/// ```
/// use cuda_events::{Context, Device, Stream, StreamOptions};
/// use cuda_timelines::{CudaStreamExt, Timeline};
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let produced = Timeline::new(Stream::new(&context, StreamOptions::new())?)?;
/// let consumer = Stream::new(&context, StreamOptions::new())?;
/// // ... submit work to `produced.stream()` ...
/// let point = produced.signal()?;
/// consumer.wait_point(point)?;
/// // ... submit work that needs it to `consumer` ...
/// while !point.is_done() {
///     // The host does other work. After a failure `is_done` stays false forever. To leave the
///     // loop then, check with `point.query()?` instead.
/// #   point.wait()?;
/// }
/// assert!(produced.completed() >= point.value());
/// produced.stream().synchronize()?;
/// assert_eq!(produced.completed(), produced.submitted()?);
/// # Ok::<(), cuda_timelines::Error>(())
/// ```
///
/// Signals, and the waits of streams, cost several times as much as those of events
/// (`docs/performance.md`). In return a check on the host is one load, without a driver call and
/// without a lock.
///
/// | You want | Use |
/// | --- | --- |
/// | order between streams of one process | an [`Event`](cuda_events::Event): the cheapest dependency |
/// | a host that checks often, or from many threads | a timeline |
/// | many places in one stream to check or to wait for | a timeline: a point is a number, an event is an object |
/// | time stamps | an event with [`TIMING`](cuda_events::EventFlags::TIMING) |
/// | a signal within each launch of a graph | a timeline [in the graph](Timeline::in_graph), or an event, with [`record_external`](StreamRef::record_external) |
/// | a CPU stage between two GPU stages | a [`HostTimeline`]; or, for a short stage, a [host function](StreamRef::launch_host_function). The driver runs host functions one after the other, and none after a failure |
/// | to await a few completions | the future of an [event](crate::Completion) |
/// | to await thousands | a timeline: checking a point makes no driver call |
///
/// # One stream
///
/// A timeline takes one stream: a [`Stream`], an `Arc<Stream>`, a [`StreamRef`] or a
/// [`ForeignStream`](cuda_events::ForeignStream). It signals in this stream only, until
/// [`move_to`](Self::move_to) gives it another one. A stream does its work in order, so the values
/// only rise. Submit your work to [`stream`](Self::stream). A stream may have several timelines.
///
/// Several threads may signal one timeline at once. If they also submit work to the stream, they
/// must order that work themselves, as with events.
///
/// # Waiting
///
/// A wait takes a [`Point`]. A point of this timeline exists only after its signal was submitted. A
/// program that waits only for such points and for events cannot deadlock: `docs/timelines.md` has
/// the proof. Before you send a value to another process, [signal
/// it](ImportedTimeline#values). [`wait_ahead`](Self::wait_ahead) waits
/// for a value that was not signalled yet, and can deadlock.
///
/// # Captures
///
/// A signal in a capturing stream returns [`Error::TimelineInCapture`], because each launch of the
/// graph would set the counter back. Instead, signal in the launching stream after the launch, or
/// within the launch by [`in_graph`](Self::in_graph).
///
/// **A timeline of a [`Stream`] does not see captures that other code began.** A signal in such a
/// capture returns `Ok`, and each launch sets the counter back. If other code may capture, create
/// the timeline from a [`StreamRef::from_raw`] of the stream, or report captures by a
/// [`ForeignCapture`](cuda_events::foundation::ForeignCapture). For a `StreamRef`, each signal
/// first queries the driver ([`cuStreamIsCapturing`]).
///
/// # Dropping it
///
/// Dropping a timeline does not wait for its work. Its points stay valid: a point with a pending
/// signal is reached when the stream gets there.
///
/// Streams that wait by [`wait_ahead`](Self::wait_ahead) for a later value are released after the
/// last pending signal. `docs/timelines.md` has the time bound, and the driver calls of a drop.
///
/// The drop also drops the stream. A timeline keeps its context alive. Dropping the timeline can
/// block only if [nothing else keeps the context](cuda_events::Context#dropping-the-last-share).
///
/// # Memory
///
/// A timeline uses one cache line of pinned host memory, and 64 timelines of one context share a
/// page. The page stays pinned until the context ends. Later timelines reuse the lines, except
/// those of poisoned timelines. A point keeps nothing alive.
pub struct Timeline {
    slot: &'static Slot,
    /// Names the stream that `owner` keeps alive.
    stream: StreamRef,
    /// What a signal must look at before it is made: [`FOREIGN`], [`ENDS`].
    special: AtomicU8,
    /// Where other processes see it.
    file: Option<Arc<SharedFile>>,
    /// Where they see it by bytes alone.
    word: Option<Word>,
    /// If they can write its line: this process's own line, by which the stream shows the end.
    mark: Option<&'static Slot>,
    /// The owner of the stream, dropped last.
    _owner: Box<dyn Any + Send + Sync>,
}

/// Captures in the stream may begin unseen, or must not pass unseen.
const FOREIGN: u8 = 1;
/// A poison has come, and may wait for the lock of the slot's state.
const ENDS: u8 = 2;

/// The owner of the stream is only dropped.
impl core::panic::RefUnwindSafe for Timeline {}
impl core::panic::UnwindSafe for Timeline {}

/// The visibility of a new timeline.
enum Place<'a> {
    Own,
    File(&'a Arc<SharedFile>),
    Memory(&'a TimelineMemory),
}

const WRITE: Function = Function::cuStreamWriteValue64_v2;

/// # Signals
impl Timeline {
    /// Creates a timeline of the stream, and takes the stream.
    ///
    /// Pass an `Arc<Stream>` to use the stream elsewhere too.
    ///
    /// The first value is not always 1.
    ///
    /// No driver call if a memory page of the context has room; a page holds 64 timelines.
    /// Otherwise [`cuMemHostRegister`] and [`cuMemHostGetDevicePointer`] with the context current,
    /// between two calls of [`cuThreadExchangeStreamCaptureMode`]. Drivers before CUDA 11.7
    /// support timelines only if their kernel module was loaded with
    /// `NVreg_EnableStreamMemOPs=1`.
    ///
    /// # Errors
    ///
    /// * [`Error::PerThreadTimeline`] for the per-thread default stream.
    /// * [`Unsupported`]; [`ForkedChild`].
    /// * The driver's error, such as `CUDA_ERROR_OUT_OF_MEMORY`.
    pub fn new<S: AsRef<StreamRef> + Send + Sync + 'static>(stream: S) -> Result<Self> {
        Self::make(stream, Place::Own)
    }

    /// Signals the next value after all work that is in the stream now.
    ///
    /// One driver call: [`cuStreamWriteValue64`]. The method may call [`cuStreamIsCapturing`] first:
    /// see [captures](Self#captures). A timeline from [`in_memory`](Self::in_memory) makes three
    /// calls.
    ///
    /// # Errors
    ///
    /// * [`Error::TimelineInCapture`] if the stream captures.
    /// * [`Error::Poisoned`] after [`poison`](Self::poison).
    /// * Errors of work that was launched earlier. The value of a failed signal is skipped.
    /// * [`ForkedChild`].
    #[doc(alias = "cuStreamWriteValue64")]
    #[allow(unsafe_code)]
    #[inline]
    pub fn signal(&self) -> Result<Point> {
        // SAFETY: the slot's state is locked.
        let value = self.submit(1, |value| unsafe { self.write(value) })?;
        Ok(Point::new(self.slot, value))
    }

    /// Returns the value of the last point that was reached: one load, like [`Point::is_done`].
    ///
    /// Points with this [`value`](Point::value) or a lower one are reached.
    #[must_use]
    #[inline]
    pub fn completed(&self) -> u64 {
        self.slot.line.reached()
    }

    /// Returns the value of the last signal that was submitted, or the start value before the first
    /// signal. It waits while another thread is in [`signal`](Self::signal).
    ///
    /// # Errors
    ///
    /// [`ForkedChild`].
    pub fn submitted(&self) -> Result<u64> {
        wait::refuse_fork()?;
        Ok(lock(&self.slot.state).submitted)
    }

    /// Returns the stream of the timeline.
    #[inline]
    pub fn stream(&self) -> &StreamRef {
        &self.stream
    }
}

/// # Other processes
impl Timeline {
    /// Creates a timeline of the stream, and shares it with every process that has the file.
    ///
    /// It works like a timeline from [`new`](Self::new). Its [descriptor](Self::descriptor)
    /// identifies it in the other processes. Dropping the timeline releases all waits there, after
    /// the last signal.
    ///
    /// This method starts the crate's [poller](crate#threads), which watches pending signals. For a
    /// [writable](TimelineFile::writable) file it makes the driver calls of [`new`](Self::new); for
    /// others it makes none. [`TimelineFile`] has an example.
    ///
    /// # Errors
    ///
    /// The errors of [`new`](Self::new), and
    ///
    /// * [`Error::NoThread`] if the system refuses to start the poller;
    /// * [`Error::ContextMismatch`] if the file was created in another context than the stream's;
    /// * [`Error::SharedTimeline`] with [`FileFull`](crate::SharedTimelineError::FileFull) if the
    ///   file already had 63 timelines.
    pub fn shared<S: AsRef<StreamRef> + Send + Sync + 'static>(
        stream: S,
        file: &TimelineFile,
    ) -> Result<Self> {
        Self::make(stream, Place::File(file.shared()))
    }

    /// Creates a timeline of the stream in device memory. Other processes import it with the bytes
    /// of its [descriptor](Self::descriptor) only.
    ///
    /// In this process it works like a timeline from [`new`](Self::new). Each
    /// [`signal`](Self::signal) makes three driver calls: [`cuStreamIsCapturing`],
    /// [`cuStreamWriteValue64`] to the device memory, and the same to host memory. A signal in any
    /// capture is refused, even if [other code began the capture](Self#captures).
    ///
    /// Dropping or [poisoning](Self::poison) the timeline ends all waits in other processes, after
    /// the last signal. But the waits do not end while the stream captures, or if the context has
    /// failed. `docs/timelines.md` has the driver calls.
    ///
    /// Driver calls: those of [`new`](Self::new). [`TimelineMemory`] has an example.
    ///
    /// # Errors
    ///
    /// The errors of [`new`](Self::new), and
    ///
    /// * [`Error::ContextMismatch`] if the memory belongs to another context than the stream;
    /// * [`Error::SharedTimeline`] with [`FileFull`](crate::SharedTimelineError::FileFull) if the
    ///   memory already had 63 timelines.
    pub fn in_memory<S: AsRef<StreamRef> + Send + Sync + 'static>(
        stream: S,
        memory: &TimelineMemory,
    ) -> Result<Self> {
        Self::make(stream, Place::Memory(memory))
    }

    /// Returns the descriptor for other processes, if the timeline is [shared](Self::shared) or [in
    /// device memory](Self::in_memory).
    ///
    /// [`TimelineFile`] and [`TimelineMemory`] have examples.
    pub fn descriptor(&self) -> Option<TimelineDescriptor> {
        match (&self.file, &self.word) {
            (Some(file), _) => file.descriptor(self.slot),
            (None, word) => word.as_ref().map(Word::descriptor),
        }
    }
}

/// # Less common operations
impl Timeline {
    /// Moves the timeline to another stream of its context, if its signals are all reached.
    ///
    /// Returns `true` if the timeline was moved. Its points stay valid, and the next signal has the
    /// next value. Otherwise this method returns `false`, and drops `stream`. No driver call.
    ///
    /// A moved timeline keeps its place in its [`TimelineFile`].
    ///
    /// ```
    /// use cuda_events::{Context, Device, Stream, StreamOptions};
    /// use cuda_timelines::Timeline;
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let mut timeline = Timeline::new(Stream::new(&context, StreamOptions::new())?)?;
    /// let first = timeline.signal()?;
    /// first.wait()?;
    /// assert!(timeline.move_to(Stream::new(&context, StreamOptions::new())?)?);
    /// assert_eq!(timeline.signal()?.value(), first.value() + 1);
    /// # Ok::<(), cuda_timelines::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// * [`Error::PerThreadTimeline`] for the per-thread default stream.
    /// * [`Error::ContextMismatch`] for a stream of another context.
    /// * [`ForkedChild`].
    pub fn move_to<S: AsRef<StreamRef> + Send + Sync + 'static>(
        &mut self,
        stream: S,
    ) -> Result<bool> {
        refuse_fork()?;
        let (stream, is_own, owner) = Self::adopt(stream)?;
        same_context(&stream, self.stream.context())?;
        // What two streams write has no order. So nothing may be pending, and a signal that the
        // driver refused may still come.
        let (submitted, over) = {
            let state = lock(&self.slot.state);
            (state.submitted, state.over)
        };
        // Of a poison that only released the waits, the stream has nothing to write.
        let is_released = *self.special.get_mut() & ENDS != 0 && !over;
        let is_poisoned = self.slot.line.is_poisoned() && !is_released;
        if self.slot.line.reached() != submitted || is_poisoned {
            return Ok(false);
        }
        let foreign = self.word.is_some() || !is_own;
        *self.special.get_mut() = if foreign { FOREIGN } else { 0 };
        // The name before its owner.
        self.stream = stream;
        self._owner = owner;
        Ok(true)
    }

    /// Makes an executable graph that signals this timeline in each launch.
    ///
    /// The method adds one signal for each list of nodes in `after`. The signal comes after the
    /// nodes of its list, and after the previous signal.
    ///
    /// The graph may come from a capture. Where you want a signal, call
    /// [`Capture::dependencies`](cuda_events::capture::Capture::dependencies) during the capture:
    /// it returns such a list.
    ///
    /// Each launch of a [`SignalGraph`] writes new values. Another executable graph of the same
    /// graph would write old values, so this method consumes the graph. To signal the timeline
    /// outside of the graph, use [`SignalGraph::timeline`].
    ///
    /// Driver calls: [`cuGraphAddBatchMemOpNode`] (CUDA 11.7) for each signal, and those of
    /// [`Graph::instantiate`].
    ///
    /// # Errors
    ///
    /// * [`Error::ContextMismatch`] for a graph of another context
    ///   than the timeline's.
    /// * [`GraphMismatch`](cuda_events::Error::GraphMismatch) for a node of another graph.
    /// * [`Unsupported`]: the driver is older than CUDA 11.7.
    /// * The errors of [`Graph::instantiate`].
    ///
    /// After an error the graph and the timeline are dropped.
    #[doc(alias = "cuGraphAddBatchMemOpNode")]
    pub fn in_graph(self, graph: Graph, after: &[&[GraphNode]]) -> Result<SignalGraph> {
        self.sign_graph(graph, after)
    }

    /// Makes all later work in `stream` wait for a value that may not have been signalled yet.
    ///
    /// **It can deadlock**; [`CudaStreamExt::wait_point`](crate::CudaStreamExt::wait_point) cannot.
    ///
    /// A deadlock does not need a cycle in your program. Streams share a few hardware channels: 8,
    /// or `CUDA_DEVICE_MAX_CONNECTIONS` if that variable is set. A wait at the head of a channel
    /// blocks all later work in that channel, from every stream. The blocked work may contain the
    /// signal that would end the wait.
    ///
    /// To make a deadlock unlikely:
    ///
    /// * Make few such waits, and signal their values soon.
    /// * Submit little work to any stream until the value is signalled.
    /// * Do not wait for a stream in the thread that will submit the signal.
    /// * Create your streams before the first such wait. Creating many streams while a stream waits
    ///   can block until the wait ends.
    /// * Use a [`HostTimeline`] where you can: the host's signals need no channel.
    ///
    /// A deadlock is memory-safe: it corrupts no data. The wait ends when the value is reached, or
    /// when the timeline is [poisoned](Self::poison). The drop of the timeline also ends the wait,
    /// [after the last signal](Self#dropping-it).
    ///
    /// Its driver calls, and its effect in a capture, are those of
    /// [`CudaStreamExt::wait_point`](crate::CudaStreamExt::wait_point).
    ///
    /// ```
    /// use cuda_events::{Context, Device, Stream, StreamOptions};
    /// use cuda_timelines::Timeline;
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let stream = Stream::new(&context, StreamOptions::new())?;
    /// let consumer = Stream::new(&context, StreamOptions::new())?;
    /// let produced = Timeline::new(stream)?;
    /// // The consumer is set up before the producer has submitted anything.
    /// produced.wait_ahead(&consumer, produced.submitted()? + 1)?;
    /// // ... work is put into `produced.stream()` ...
    /// produced.signal()?;
    /// consumer.synchronize()?;
    /// # Ok::<(), cuda_timelines::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`CudaStreamExt::wait_point`](crate::CudaStreamExt::wait_point).
    pub fn wait_ahead(&self, stream: &StreamRef, value: u64) -> Result<()> {
        host::wait_ahead(self.slot, stream, value)
    }

    /// Ends the timeline now and releases all waits.
    ///
    /// Hosts that still wait get [`Error::Poisoned`]. **Streams that wait go on as if the point
    /// were reached**, and their next work may find data missing. Use it when a signal can never
    /// come, as in a deadlock of [`wait_ahead`](Self::wait_ahead).
    ///
    /// Pending signals still happen if the stream gets there, and their points are then reached.
    /// Later signals return [`Error::Poisoned`]. Dropping the timeline is gentler: it releases no
    /// wait before the last signal.
    ///
    /// Another thread may be in [`signal`](Self::signal), for which there is no room in the stream
    /// until this releases a wait.
    ///
    /// Driver calls: those of a [`signal`](Self::signal).
    ///
    /// ```
    /// use cuda_events::{Context, Device, Stream, StreamOptions};
    /// use cuda_timelines::Timeline;
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let stream = Stream::new(&context, StreamOptions::new())?;
    /// let consumer = Stream::new(&context, StreamOptions::new())?;
    /// let produced = Timeline::new(stream)?;
    /// produced.wait_ahead(&consumer, produced.submitted()? + 1)?;
    /// // The producer has failed: its signal will never come.
    /// produced.poison()?;
    /// consumer.synchronize()?; // the stream is released
    /// # Ok::<(), cuda_timelines::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`signal`](Self::signal). The timeline is poisoned even then, but streams that wait
    /// for it may stay blocked.
    pub fn poison(&self) -> Result<()> {
        self.poison_now()
    }

    /// The begin of [`poison`](Self::poison): all that it does without the stream, which may be gone.
    ///
    /// A signal that is pending takes the poison away from streams once more. So when the signals are
    /// reached, the timeline must be [moved](Self::move_to) and poisoned.
    #[doc(hidden)]
    pub fn release_waits(&self) -> Result<()> {
        refuse_fork()?;
        self.release_now();
        Ok(())
    }

    #[allow(unsafe_code)]
    fn make<S: AsRef<StreamRef> + Send + Sync + 'static>(
        stream: S,
        shared: Place<'_>,
    ) -> Result<Self> {
        refuse_fork()?;
        let (stream, is_own, owner) = Self::adopt(stream)?;
        let (named, driver) = (&stream, stream.context().driver());
        let symbols = driver.symbols();
        if symbols.cuStreamWriteValue64_v2.is_none() && symbols.cuStreamWriteValue64.is_none() {
            let since = WRITE.entry_point().version;
            return Err(Unsupported { function: WRITE, since, driver: driver.version() }.into());
        }
        let mut mark = None;
        let (slot, file, word) = match shared {
            Place::Own => (pages::allocate(named.context())?, None, None),
            Place::File(file) => {
                same_context(named, file.context())?;
                // Its signals use the thread, and cannot return that there is none.
                rounds::start()?;
                if file.is_exposed() {
                    mark = Some(pages::allocate(named.context())?);
                }
                let taken = file.take(0).inspect_err(|_| mark.into_iter().for_each(pages::release));
                let slot = taken?;
                file.watch().add(slot);
                (slot, Some(Arc::clone(file)), None)
            }
            Place::Memory(memory) => {
                same_context(named, memory.context())?;
                let word = memory.take()?;
                (pages::allocate(named.context())?, None, Some(word))
            }
        };
        // A graph that has captured a signal would write to the memory at each launch. So there a
        // capture that other code began must not pass, whatever the stream is.
        let foreign = word.is_some() || !is_own;
        Ok(Self {
            slot,
            stream,
            special: AtomicU8::new(if foreign { FOREIGN } else { 0 }),
            file,
            word,
            mark,
            _owner: owner,
        })
    }

    /// Names the stream, and boxes it. Also returns whether it is one of this crate's types, in
    /// which no other code captures.
    #[allow(unsafe_code)]
    fn adopt<S: AsRef<StreamRef> + Send + Sync + 'static>(
        stream: S,
    ) -> Result<(StreamRef, bool, Box<dyn Any + Send + Sync>)> {
        let owner = Box::new(stream);
        let named: &StreamRef = (*owner).as_ref();
        if *named == StreamRef::per_thread_default(named.context()) {
            return Err(Error::PerThreadTimeline);
        }
        let kind: &dyn Any = &*owner;
        let is_own = kind.is::<Stream>() || kind.is::<Arc<Stream>>();
        // SAFETY: `as_ref` gave the stream for a borrow of the box's content, and that borrow can
        // go on until the box is dropped: it neither moves its content nor lends it mutably. It is
        // dropped after this name.
        let stream = unsafe { StreamRef::from_raw(named.context(), named.as_raw()) };
        Ok((stream, is_own, owner))
    }

    /// Submits signals of the next `count` values by `put`, which gets the first of them. Returns
    /// the first.
    #[inline(always)]
    fn submit(&self, count: u64, put: impl FnOnce(u64) -> cuda_events::Result<()>) -> Result<u64> {
        // Before the lock, which another thread may have had when this process was forked.
        refuse_fork()?;
        if self.special.load(Ordering::Relaxed) != 0 || is_capture_under_way() {
            self.look_closely()?;
        }
        let mut state = deferring_observers(lock(&self.slot.state));
        if state.over {
            return Err(Error::Poisoned);
        }
        // The lock is held across the call, so that the order of the values is that of the writes.
        // The values are used up even if the call fails: the driver may have taken them all the
        // same, and then another signal of such a value would be seen too early.
        let first = state.submitted + 1;
        state.submitted += count;
        if let Err(error) = put(first).map_err(Error::from) {
            state.refused = Some(state.submitted);
            // Nothing else ends the waits of other processes.
            self.slot.condemn(&error);
            return Err(error);
        }
        drop(state);
        if let Some(file) = &self.file {
            file.watch().signalled();
        }
        Ok(first)
    }

    /// # Safety
    ///
    /// The slot's state must be locked.
    #[allow(unsafe_code)]
    #[inline(always)]
    unsafe fn write(&self, value: u64) -> cuda_events::Result<()> {
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
    fn write_word(&self, word: &Word, value: u64) -> cuda_events::Result<()> {
        // SAFETY: 8 bytes of device memory, aligned to 64, which are freed with the stream's context
        // alone. Nobody but this timeline writes them while its process lives.
        unsafe { self.stream.write_value64(word.address, value, WriteValueFlags::empty()) }
    }

    #[cold]
    #[inline(never)]
    fn look_closely(&self) -> Result<()> {
        // A thread that signals in a loop would have the lock again before a poison that waits for it.
        if self.special.load(Ordering::Relaxed) & ENDS != 0 {
            return Err(Error::Poisoned);
        }
        self.refuse_capture()
    }

    fn is_foreign(&self) -> bool {
        self.special.load(Ordering::Relaxed) & FOREIGN != 0
    }

    #[cold]
    #[inline(never)]
    fn refuse_capture(&self) -> Result<()> {
        match self.stream.capture_status()? {
            CaptureStatus::None => Ok(()),
            _ => Err(Error::TimelineInCapture { function: WRITE }),
        }
    }
}

/// In a forked child nothing is signalled.
#[inline(always)]
fn refuse_fork() -> Result<()> {
    if is_forked_child() { Err(ForkedChild { function: WRITE }.into()) } else { Ok(()) }
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
