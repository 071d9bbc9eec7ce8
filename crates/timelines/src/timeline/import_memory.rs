//! Timelines of other processes that are opened by bytes alone.
//!
//! # How values arrive
//!
//! The exporter's device writes its values to device memory, which a host cannot load. So each
//! requested value takes two operations of a stream of the crate, the follower: it waits for the
//! value, and copies the word to a line of this process, the mirror. A [`Point`] is one of the
//! mirror: hosts, futures and streams wait for it as for any point of this process.
//!
//! The proof of `docs/timelines.md` holds: a point exists once its copy was submitted, which was
//! after the exporter's signal if the exporter has sent the value after it.
//!
//! # The end of the exporter
//!
//! The mirror is this process's own memory: a store of the host poisons it, and releases streams,
//! even if the device is blocked. The follower still waits for the exporter's word. Another stream,
//! the rescuer, releases it with a write of the poison's one byte to that word. The lower bytes
//! keep the last value, so its copies, here and in other importers, never decrease. Other streams
//! can block the rescuer, if followers of as many dead exporters as there are hardware channels
//! wait at once. Then only the followers are stuck, and no wait for a point is.
//!
//! The follower may copy a word without poison over the mirror's, if it was about to when the
//! exporter ended. So the thread poisons again, and a last time when the follower has nothing to
//! do.
//!
//! The rescue also reaches the followers of other importers, which copy the poison but not its
//! reason. So a poison without a reason is not believed before this process has looked for the
//! exporter: see [`Mirrored`].
//!
//! # No lock is held across a driver call that the thread may wait for
//!
//! A driver call for a full stream blocks. The crate's thread must go on then: it notices the
//! exporter's end, which is what ends such a call. So `work` is never locked during a driver call;
//! a flag in it shows that a submission is in progress. `pending` is locked during submissions, and
//! only [`point`](MemoryImport::point) uses it.

use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use super::descriptor::InMemory;
use super::device_memory::HEADER;
use super::foreign::Follow;
use super::leftover::{Leftover, Place};
use super::line::{LARGEST, Line};
use super::pages::{self, Mirror};
use super::point::Point;
use super::slot::{Mirrored, Slot};
use super::wait::Rest;
use super::{crossing, rounds, wait};
use crate::error::{Error, Result, SharedTimelineError as Refusal};
use crate::sync::lock;
use crate::thread::drop_apart;
use crate::time::Moment;
use cuda_events::capture::{CaptureMode, ThreadCaptureMode};
use cuda_events::foundation::{Origin, call, deferring_observers, is_forked_child, with_current};
use cuda_events::ipc::{ExporterProcess, ExporterState};
use cuda_events::mem_ops::{WaitCondition, WaitValueFlags};
use cuda_events::sys::{
    CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, CUdeviceptr, CUipcMemHandle, CUresult, Function,
};
use cuda_events::{Context, Device, Progress, Stream, StreamOptions};

#[cfg(doc)]
use crate::calls::*;

/// How long the follower has to come to what the exporter has written, before all else is given up.
const GRACE: Duration = wait::ASK;

/// How many values the follower waits for at most at a time. Of waits with a copy behind each, a
/// stream of an H200 holds 511, and the call for the next one blocks in the driver.
const MOST_PENDING: usize = 256;

/// A timeline of another process, by device memory.
pub(super) struct MemoryImport {
    link: Arc<Opened>,
    context: Context,
}

struct Opened {
    /// The slot of this process that mirrors the maker's.
    slot: &'static Slot,
    exporter: ExporterProcess,
    /// Whether the exporter was reported or seen to have ended.
    ended: AtomicBool,
    /// The values that the follower was given and that the mirror has not shown to be over, in the
    /// order of their submission. Locked during each submission.
    pending: Mutex<VecDeque<u64>>,
    /// Not locked during driver calls.
    work: Mutex<Work>,
}

/// The work for the points.
struct Work {
    /// Whether the thread has it.
    followed: bool,
    /// The largest value that a point was asked for.
    asked: u64,
    /// Whether the follower waits for one more, of which the copy was refused.
    stray: bool,
    /// How many submissions have begun. What was seen of the follower holds until the next one.
    submissions: u64,
    /// Whether one has not returned from the driver.
    submitting: bool,
    /// Until the drop, and as long after it as points are pending.
    streams: Option<Arc<Streams>>,
    /// Whether the user has dropped it.
    dropped: bool,
}

struct Streams {
    /// First, as it is dropped before the shares of the context are.
    #[expect(dead_code, reason = "held for its drop")]
    mirror: Mirror,
    follower: Stream,
    rescuer: Stream,
    memory: Opening,
    /// The timeline's word in that memory.
    word: CUdeviceptr,
}

/// Another process's memory, open in this one.
struct Opening {
    context: Context,
    place: Place,
    address: CUdeviceptr,
}

/// Memory that was open for timelines that were dropped: to close it, the driver waits for all work
/// of the device.
static LEFTOVER: Leftover<CUdeviceptr> = Leftover::new();

#[allow(unsafe_code)]
impl Opening {
    fn new(context: &Context, named: &InMemory) -> Result<Self> {
        let raw = CUipcMemHandle { reserved: named.memory };
        let flags = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS;
        let driver = context.driver();
        let place = Place::of(context)?;
        let opened = with_current(context, || {
            while let Some(address) = LEFTOVER.take(&place) {
                // A refusal leaves it to the context's end.
                // SAFETY: opened once, in this context, and its streams have nothing to do with it.
                let _ = unsafe { call!(driver, cuIpcCloseMemHandle(address)) };
            }
            let mut address = 0;
            // SAFETY: a place for the address, and the 64 bytes by value, which the caller of
            // `open` vouches for; the context is current.
            unsafe { call!(driver, cuIpcOpenMemHandle_v2?(&mut address, raw, flags)) }?;
            Ok(Self { context: context.clone(), place, address })
        });
        opened.map_err(|error| {
            let pid = named.maker.pid();
            // The same code of another call is the context's.
            let refused = error.code() == Some(CUresult::CUDA_ERROR_INVALID_CONTEXT)
                && error.function() == Some(Function::cuIpcOpenMemHandle_v2);
            if refused && pid == std::process::id() {
                Refusal::SameProcess { pid }.into()
            } else {
                error.into()
            }
        })
    }

    /// Copies the start of the word's line, or of the memory, to a line of this process.
    fn copy(
        &self,
        from: CUdeviceptr,
        to: &'static Line,
        bytes: usize,
        by: &Stream,
    ) -> cuda_events::Result<()> {
        let to = core::ptr::from_ref(to).cast_mut().cast();
        let driver = self.context.driver();
        with_current(&self.context, || {
            // SAFETY: the memory is open, and has so many bytes there. The line is pinned and never
            // freed, and all who look at it use atomics.
            unsafe { call!(driver, cuMemcpyDtoHAsync_v2(to, from, bytes, by.as_raw())) }
        })
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        if !is_forked_child() {
            LEFTOVER.put(self.place.clone(), self.address);
        }
    }
}

impl Streams {
    /// Has the follower copy the word once it has the value.
    #[allow(unsafe_code)]
    fn follow(&self, value: u64, slot: &'static Slot) -> cuda_events::Result<()> {
        let (condition, flags) = (WaitCondition::GreaterOrEqual, WaitValueFlags::empty());
        // SAFETY: 8 bytes of device memory, aligned to 64, which stay open until the stream is
        // done.
        unsafe { self.follower.wait_value64(self.word, value, condition, flags) }?;
        self.memory.copy(self.word, slot.line, size_of::<u64>(), &self.follower)
    }

    /// Whether the follower waits. In a context that has failed nothing does.
    fn is_pending(&self) -> bool {
        let _relaxed = relaxed(&self.memory.context);
        self.follower.query() == Ok(Progress::Pending)
    }

    /// Has the rescuer poison the word, unless it is about to; whether one of the two still works.
    ///
    /// The follower is not queried during a submission: a driver call that blocks may hold a lock
    /// of the driver for that stream.
    #[allow(unsafe_code)]
    fn rescue(&self, submitting: bool) -> bool {
        let _relaxed = relaxed(&self.memory.context);
        let rescued = self.rescuer.query();
        if !submitting && !self.is_pending() {
            return rescued == Ok(Progress::Pending);
        }
        if rescued == Ok(Progress::Done) {
            let (at, byte) = Line::POISONED_BYTE;
            let driver = self.memory.context.driver();
            let _ = with_current(&self.memory.context, || {
                // SAFETY: one byte of the word. Its exporter has ended, and its readers only
                // compare it.
                unsafe {
                    let (at, by) = (self.word + at, self.rescuer.as_raw());
                    call!(driver, cuMemsetD8Async(at, byte, 1, by))
                }
            });
        }
        true
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        let _relaxed = relaxed(&self.memory.context);
        // The last copy has come, or the poison, so that this takes no time. Only after it the
        // memory may be closed.
        let _ = self.follower.synchronize();
        let _ = self.rescuer.synchronize();
    }
}

/// Keeps captures valid during queries, synchronizations and calls about memory, those of this
/// thread included. If the driver refuses, it refuses those calls as well.
fn relaxed(context: &Context) -> Option<ThreadCaptureMode> {
    ThreadCaptureMode::exchange(context.driver(), CaptureMode::Relaxed).ok()
}

impl Opened {
    /// Calls the driver about the streams, if they are there, with nothing locked; the second
    /// argument is whether a submission is in progress.
    fn with_streams<T>(&self, call: impl FnOnce(&Streams, bool) -> T) -> Option<T> {
        let work = lock(&self.work);
        let (streams, submitting) = (work.streams.clone()?, work.submitting);
        drop(work);
        let result = call(&streams, submitting);
        // If the timeline was dropped meanwhile, the last share is here, and its drop may block.
        if let Some(last) = Arc::into_inner(streams) {
            drop_apart(last);
        }
        Some(result)
    }

    /// Publishes that the exporter has ended; returns whether the follower still works.
    fn bury(&self) -> bool {
        self.ended.store(true, Ordering::Release);
        // Streams and hosts first, who depend on no driver call.
        self.slot.line.bury();
        let works = self.with_streams(Streams::rescue).unwrap_or(false);
        if !works {
            // The last copy may have come in between. There is none after it.
            self.slot.line.bury();
        }
        works
    }

    /// Blocks while the follower has as much as it may have, with nothing locked. Returns what it
    /// has, locked. The error is that of a wait for that.
    fn wait_for_room(&self) -> Result<MutexGuard<'_, VecDeque<u64>>> {
        loop {
            let mut pending = lock(&self.pending);
            let reached = self.slot.line.reached();
            while pending.front().is_some_and(|value| *value <= reached) {
                pending.pop_front();
            }
            let full = pending.len() >= MOST_PENDING;
            let Some(nearest) = pending.front().copied().filter(|_| full) else {
                return Ok(pending);
            };
            drop(pending);
            let waited = wait::wait(self.slot, nearest, wait::ASK, Rest::Sleep)?;
            // The mirror shows nothing of a value whose copy was refused.
            if waited.is_pending() && !self.is_pending() {
                lock(&self.pending).clear();
            }
        }
    }

    /// Whether the follower waits, as the driver reports.
    fn is_pending(&self) -> bool {
        self.with_streams(|streams, submitting| submitting || streams.is_pending()).unwrap_or(false)
    }

    fn state(&self) -> ExporterState {
        if self.ended.load(Ordering::Acquire) {
            return ExporterState::Ended;
        }
        self.exporter.state()
    }

    /// Whether the follower has nothing to wait for, as the mirror shows.
    fn is_reached(&self, work: &Work) -> bool {
        !work.stray && (self.slot.line.reached() >= work.asked || self.slot.line.has_ended())
    }
}

impl Follow for Opened {
    fn is_relayed(&self) -> bool {
        false
    }

    fn follow(&self, ask: bool, now: Moment, gone: &mut Option<Moment>) -> bool {
        // The submissions after which the driver has shown that the follower waits for nothing.
        let mut idle = None;
        if ask {
            let work = lock(&self.work);
            let (submissions, stray) = (work.submissions, work.stray);
            drop(work);
            let ended = self.ended.load(Ordering::Acquire);
            let mut buried = false;
            if ended || self.exporter.state() == ExporterState::Ended {
                let since = now - *gone.get_or_insert(now);
                if ended || since >= GRACE {
                    buried = !self.bury();
                }
            }
            idle = (buried || stray && !self.is_pending()).then_some(submissions);
        }
        let mut work = lock(&self.work);
        // Under the lock under which a submission begins, so that none comes in between.
        let is_over = idle == Some(work.submissions) || self.is_reached(&work);
        if work.submitting || !is_over {
            return true;
        }
        work.followed = false;
        let streams = if work.dropped { work.streams.take() } else { None };
        drop(work);
        // It may be the last share of the context.
        if let Some(streams) = streams.and_then(Arc::into_inner) {
            drop_apart(streams);
        }
        false
    }
}

impl Mirrored for Opened {
    fn has_ended(&self) -> bool {
        self.state() == ExporterState::Ended
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // Nobody can look for the exporter after this. In a forked child the line is the parent's.
        if !is_forked_child() && self.slot.line.has_ended() && self.state() == ExporterState::Ended
        {
            self.slot.line.bury();
        }
    }
}

impl MemoryImport {
    /// The body of [`ImportedTimeline::open_memory`](super::ImportedTimeline::open_memory).
    ///
    /// # Safety
    ///
    /// The caller has the duties of that method.
    #[allow(unsafe_code)]
    pub(super) unsafe fn open(context: &Context, named: &InMemory) -> Result<Self> {
        wait::refuse_fork()?;
        // As soon as there is a handle: later the exporter may be gone from view.
        let exporter = ExporterProcess::of_origin(&named.maker);
        if Origin::of(context)?.device() != named.maker.device() {
            return Err(other_device(context, named).into());
        }
        // The calls below would invalidate captures, also of other threads.
        let _relaxed = ThreadCaptureMode::exchange(context.driver(), CaptureMode::Relaxed)?;
        let mirror = pages::allocate_mirror(context)?;
        let slot = mirror.slot();
        let stream = || Stream::new(context, StreamOptions::new());
        let (follower, rescuer) = (stream()?, stream()?);
        let memory = Opening::new(context, named)?;
        let at = CUdeviceptr::from(named.index) * size_of::<Line>() as CUdeviceptr;
        let streams = Streams { mirror, word: memory.address + at, follower, rescuer, memory };
        check_header(&streams, slot.line, named)?;
        let link = Arc::new(Opened {
            slot,
            exporter,
            ended: AtomicBool::new(false),
            pending: Mutex::default(),
            work: Mutex::new(Work {
                followed: false,
                asked: 0,
                stray: false,
                submissions: 0,
                submitting: false,
                streams: Some(Arc::new(streams)),
                dropped: false,
            }),
        });
        let mirrored: Weak<dyn Mirrored> =
            Arc::downgrade(&(Arc::clone(&link) as Arc<dyn Mirrored>));
        slot.mirror(mirrored);
        Ok(Self { link, context: context.clone() })
    }

    pub(super) fn point(&self, value: u64) -> Result<Point> {
        wait::refuse_fork()?;
        let (link, value) = (&self.link, value.min(LARGEST));
        let point = Point::new(link.slot, value);
        if point.look()?.is_done() {
            return Ok(point);
        }
        if value <= lock(&link.work).asked {
            return Ok(point);
        }
        // The follower gets the values in the order in which they are noted.
        let mut pending = deferring_observers(link.wait_for_room()?);
        let mut work = lock(&link.work);
        // Looked at again under the lock under which the thread decides to leave: it poisons the
        // line before that.
        if value <= work.asked || point.look()?.is_done() {
            return Ok(point);
        }
        // The thread first, so that there is no wait that nobody looks after.
        if !work.followed {
            work.followed = rounds::follow(Arc::clone(link) as Arc<dyn Follow>, true);
            if !work.followed {
                return Err(Error::NoThread);
            }
        }
        // They are there as long as `self`, which also keeps this from being the last share.
        let streams = work.streams.clone().ok_or(Error::ContextDropped)?;
        work.submissions += 1;
        work.submitting = true;
        drop(work);
        let submitted = streams.follow(value, link.slot);
        pending.push_back(value);
        let mut work = lock(&link.work);
        work.submitting = false;
        // A later copy comes after whatever was refused before it.
        work.stray = submitted.is_err();
        submitted?;
        work.asked = value;
        Ok(point)
    }

    pub(super) fn exporter_ended(&self) {
        self.link.bury();
    }

    pub(super) fn exporter_state(&self) -> ExporterState {
        self.link.state()
    }

    pub(super) fn completed(&self) -> u64 {
        self.link.slot.line.reached()
    }

    pub(super) fn debug(&self, debug: &mut fmt::DebugStruct<'_, '_>) {
        debug
            .field("completed", &self.completed())
            .field("poisoned", &self.link.slot.line.is_poisoned())
            .field("exporter", &self.exporter_state())
            .field("context", &self.context);
    }

    pub(super) fn context(&self) -> &Context {
        &self.context
    }
}

/// Looks whether the memory is that of the handle, by way of the line, which is fresh.
fn check_header(streams: &Streams, line: &'static Line, named: &InMemory) -> Result<()> {
    let (memory, stream) = (&streams.memory, &streams.follower);
    memory.copy(memory.address, line, 2 * size_of::<u64>(), stream)?;
    stream.synchronize()?;
    let found = line.words();
    line.put([0, 0]);
    if found == [HEADER, named.number] { Ok(()) } else { Err(Refusal::OtherMemory.into()) }
}

#[cold]
fn other_device(context: &Context, named: &InMemory) -> Refusal {
    let ordinal = |device: Device| u16::try_from(device.ordinal()).unwrap_or(u16::MAX);
    let visible = Device::all(context.driver()).ok();
    let theirs = visible
        .and_then(|mut devices| devices.find(|device| device.uuid() == Ok(named.maker.device())));
    Refusal::MemoryOfOtherDevice {
        exported: theirs.map(ordinal),
        context: ordinal(context.device()),
    }
}

impl Drop for MemoryImport {
    fn drop(&mut self) {
        if is_forked_child() {
            return;
        }
        let link = &self.link;
        let mut work = lock(&link.work);
        work.dropped = true;
        let over = !work.followed || link.is_reached(&work);
        drop(work);
        // While the follower has something to wait for, the thread has it, and drops them then.
        let ended = link.ended.load(Ordering::Acquire);
        if over || ended && !link.with_streams(Streams::rescue).unwrap_or(false) {
            let streams = lock(&link.work).streams.take();
            // The thread may be using them, and drops them then.
            drop(streams.and_then(Arc::into_inner));
        }
        crossing::sweep(crossing::ALL);
    }
}

static_assertions::assert_impl_all!(MemoryImport: Send, Sync);

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use crate::{Timeline, TimelineMemory};
    use cuda_soft_driver::SoftDriver;

    fn context(soft: &SoftDriver) -> Context {
        Device::new(soft.driver(), 0).and_then(Context::primary).unwrap()
    }

    fn exported(theirs: &SoftDriver) -> (Timeline, TimelineMemory) {
        let context = context(theirs);
        let memory = TimelineMemory::new(&context).unwrap();
        let stream = Stream::new(&context, StreamOptions::new()).unwrap();
        (Timeline::in_memory(stream, &memory).unwrap(), memory)
    }

    /// Holds the timeline's stream until what is returned is dropped.
    fn hold(timeline: &Timeline) -> std::sync::mpsc::Sender<()> {
        let (release, released) = std::sync::mpsc::channel::<()>();
        let wait = move || {
            let _ = released.recv();
        };
        timeline.stream().launch_host_function(wait).unwrap();
        release
    }

    /// The device may need a moment for what the exporter has written just before its end.
    #[test]
    #[allow(unsafe_code)]
    fn the_last_values_have_time_to_come() {
        let (theirs, ours) = (SoftDriver::new(), SoftDriver::new());
        let (importing, (timeline, _memory)) = (context(&ours), exported(&theirs));
        let mut named = *timeline.descriptor().unwrap().in_memory().unwrap();
        // Of a process that has ended: this number has been another's since.
        let mut maker = named.maker.to_bytes();
        maker[20] ^= 1;
        named.maker = Origin::from_bytes(&maker);
        // SAFETY: the memory lives until the end of the test.
        let import = unsafe { MemoryImport::open(&importing, &named) }.unwrap();
        assert_eq!(import.exporter_state(), ExporterState::Ended);
        let release = hold(&timeline);
        let last = timeline.signal().unwrap().value();
        let [last, never] = [last, last + 1].map(|value| import.point(value).unwrap());
        // The time of the crate's own thread does not go on here.
        let (start, mut gone) = (crate::time::now(), None);
        let mut look = |after: Duration| import.link.follow(true, start + after, &mut gone);
        for after in [Duration::ZERO, GRACE - Duration::from_nanos(1)] {
            assert!(look(after));
            assert_eq!(last.look(), Ok(Progress::Pending), "{after:?}");
        }
        drop(release);
        while last.look() == Ok(Progress::Pending) {
            std::thread::yield_now();
        }
        assert_eq!(last.look(), Ok(Progress::Done));
        assert_eq!(never.look(), Ok(Progress::Pending));
        look(GRACE);
        assert_eq!((last.look(), never.look()), (Ok(Progress::Done), Err(Error::ExporterGone)));
    }

    /// The mirror shows nothing of a value whose copy was refused, and of such values there may be as
    /// many as the follower may have. After that it is as before, and a drop ends it later.
    #[test]
    #[allow(unsafe_code)]
    fn refused_copies_take_no_room() {
        let (theirs, ours) = (SoftDriver::new(), SoftDriver::new());
        let (importing, (timeline, _memory)) = (context(&ours), exported(&theirs));
        let mut named = *timeline.descriptor().unwrap().in_memory().unwrap();
        // SAFETY: the memory lives until the end of the test.
        let open = |named: &InMemory| unsafe { MemoryImport::open(&importing, named) };
        let import = open(&named).unwrap();
        let most = MOST_PENDING as u64;
        (0..most).for_each(|_| _ = timeline.signal().unwrap());
        timeline.stream().synchronize().unwrap();
        let code = cuda_soft_driver::abi::CUresult(999);
        ours.inject(cuda_soft_driver::Fault::on("cuMemcpyDtoHAsync*").answer(code));
        for value in 1..=most {
            assert!(import.point(value).is_err());
        }
        ours.clear_faults();
        let release = hold(&timeline);
        let pending = import.point(timeline.signal().unwrap().value()).unwrap();
        let streams = ours.live().streams;
        let link = Arc::clone(&import.link);
        drop(import);
        assert_eq!(ours.live().streams, streams);
        drop(release);
        while pending.look() == Ok(Progress::Pending) {
            std::thread::yield_now();
        }
        // The follower and the rescuer.
        while ours.live().streams + 2 > streams {
            link.follow(true, crate::time::now(), &mut None);
        }
        // Another process's memory that cannot be opened is not this one's.
        ours.inject(
            cuda_soft_driver::Fault::on("cuIpcOpenMemHandle*")
                .answer(cuda_soft_driver::abi::CUresult(CUresult::CUDA_ERROR_INVALID_CONTEXT.0)),
        );
        let pid = named.maker.pid();
        assert_eq!(open(&named).map(drop), Err(Refusal::SameProcess { pid }.into()));
        let mut maker = named.maker.to_bytes();
        maker[0] ^= 1;
        named.maker = Origin::from_bytes(&maker);
        let refused = open(&named).map(drop).unwrap_err();
        assert!(matches!(refused, Error::Cuda(_)), "{refused}");
    }

    /// A forked child drops an import without a lock: the thread that has it at the fork does not
    /// exist there.
    #[test]
    #[cfg_attr(miri, ignore = "Miri has no fork")]
    #[allow(unsafe_code)]
    fn a_forked_child_takes_no_lock() {
        cuda_events_test_support::own_process!();
        let (theirs, ours) = (SoftDriver::new(), SoftDriver::new());
        let (importing, (timeline, _memory)) = (context(&ours), exported(&theirs));
        let named = *timeline.descriptor().unwrap().in_memory().unwrap();
        // SAFETY: the memory lives until the end of the test.
        let import = unsafe { MemoryImport::open(&importing, &named) }.unwrap();
        let link = Arc::clone(&import.link);
        let mut import = Some(import);
        let work = lock(&link.work);
        let dropped = cuda_events_test_support::fork::in_child(|| {
            // Who waits for the lock ends by this.
            cuda_events_test_support::child::end_after(30);
            drop(import.take());
            String::from("dropped")
        });
        drop(work);
        assert_eq!(dropped, (String::from("dropped"), 0));
        drop(import);
    }
}
