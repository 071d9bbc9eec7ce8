//! Timelines that other processes import with bytes only: the exporter's side.
//!
//! The values are written twice: to device memory, which the driver's interprocess handles name,
//! and to a line of this process, for its own hosts and streams. Like a file, the memory has lines,
//! the first of which describes it. A line is never given to a second timeline, because other
//! processes may still wait for the first one.

use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use core::time::Duration;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, PoisonError};

use super::descriptor::{InMemory, Named, TimelineDescriptor};
use super::line::{LINES, Line};
use super::slot::Slot;
use super::wait::{self, Rest};
use crate::error::{Result, SharedTimelineError as Refusal};
use cuda_events::capture::{CaptureMode, ThreadCaptureMode};
use cuda_events::foundation::{Origin, call, is_forked_child, with_current};
use cuda_events::mem_ops::WriteValueFlags;
use cuda_events::sys::{CUdeviceptr, CUipcMemHandle};
use cuda_events::{Context, Event, EventFlags, Stream, StreamOptions, StreamRef};

#[cfg(doc)]
use crate::calls::*;
use crate::sync::lock;

/// The first word of a page.
pub(super) const HEADER: u64 = u64::from_le_bytes(*b"CUTH\x01\0\0\0");

/// Device memory for timelines of [`Timeline::in_memory`](super::Timeline::in_memory). Other
/// processes import them with the bytes of a [descriptor](TimelineDescriptor) alone.
///
/// It has room for 63 timelines. A process with the descriptor of one of them can open the memory,
/// if the process belongs to the same user on the same system. It may be in another container.
/// Create one memory for each group of processes that may see the same timelines. If you can send
/// file descriptors, prefer a [file](super::TimelineFile), which guarantees more:
/// `docs/timelines.md` compares the two.
///
/// **Keep it until no other process uses its timelines.** The memory is freed when this object and
/// all its timelines are dropped. The last of these drops blocks: it waits for the last writes of
/// the timelines' streams ([`cuEventSynchronize`]), and then for all work of the device
/// ([`cuMemFree`]). While you keep this object, dropping its timelines never blocks. Captures of
/// other threads go on ([`cuThreadExchangeStreamCaptureMode`] before and after these calls).
///
/// It takes 2 MiB. The driver shares device memory in blocks of that size, so a smaller allocation
/// would expose other data of the block to the other processes.
///
/// ```
/// use cuda_events::{Context, Device, Stream, StreamOptions};
/// use cuda_timelines::{Timeline, TimelineMemory};
///
/// # let _ = || {
/// let driver = cuda_events::Driver::load()?;
/// # Ok::<_, cuda_events::Error>(driver) };
/// # let soft = cuda_soft_driver::SoftDriver::new();
/// # let driver = soft.driver();
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let stream = Stream::new(&context, StreamOptions::new())?;
///
/// fn send(bytes: &[u8]) {
///     // ... over a socket or a pipe ...
/// }
///
/// # if cfg!(target_os = "linux") {
/// let memory = TimelineMemory::new(&context)?;
/// let timeline = Timeline::in_memory(stream, &memory)?;
/// let descriptor = timeline.descriptor().expect("it is in such memory");
/// assert_eq!(descriptor.exporter_pid(), Some(std::process::id()));
/// assert_eq!(descriptor.device_uuid(), Some(context.device().uuid()?));
/// assert_eq!(memory.context(), &context);
/// send(&descriptor.to_bytes());
/// // ... and the value of each signal:
/// send(&timeline.signal()?.value().to_le_bytes());
/// # }
/// # Ok::<(), cuda_timelines::Error>(())
/// ```
pub struct TimelineMemory(Arc<Memory>);

/// The state that the timelines keep alive.
pub(super) struct Memory {
    context: Context,
    address: CUdeviceptr,
    /// Names the first line, which is the memory's own.
    named: InMemory,
    /// How many lines were given out.
    given: AtomicU16,
    /// The last writes of the timelines that were dropped.
    last: Mutex<Vec<LastWrite>>,
    /// Whether nothing shows when the last write is done. The memory is then the context's until
    /// that ends.
    lost: AtomicBool,
}

/// What shows that a stream writes no more to the memory.
enum LastWrite {
    /// It was recorded in the stream after the last write.
    Event(Event),
    /// A signal writes to the memory before it writes its value to the line.
    Signal(&'static Slot, u64),
}

impl LastWrite {
    fn wait(&self) -> Result<()> {
        match self {
            Self::Event(event) => Ok(event.synchronize()?),
            Self::Signal(slot, value) => {
                wait::wait(slot, *value, Duration::MAX, Rest::Sleep).map(drop)
            }
        }
    }
}

/// A line in such memory.
pub(super) struct Word {
    pub(super) address: CUdeviceptr,
    pub(super) named: InMemory,
    /// Created in advance, because the drop of the timeline has nobody to give an error to.
    passed: Event,
    memory: Arc<Memory>,
}

impl Word {
    pub(super) fn descriptor(&self) -> TimelineDescriptor {
        TimelineDescriptor(Named::Memory(self.named))
    }

    /// Ends the use of the line, after its timeline's last write, in this stream. If the stream
    /// captures, a record would be a part of the graph; the last signal shows the same. `signal` is
    /// none if that was refused.
    pub(super) fn end(
        self,
        stream: &StreamRef,
        captures: bool,
        signal: Option<(&'static Slot, u64)>,
    ) {
        let Self { passed, memory, .. } = self;
        let last = if captures {
            signal.map(|(slot, value)| LastWrite::Signal(slot, value))
        } else {
            passed.record(stream).is_ok().then_some(LastWrite::Event(passed))
        };
        match last {
            Some(last) => lock(&memory.last).push(last),
            None => memory.lost.store(true, Ordering::Relaxed),
        }
    }
}

impl TimelineMemory {
    /// Allocates memory on the context's device.
    ///
    /// Driver calls, with the context current where they need it: those of [`Stream::new`],
    /// [`cuMemAlloc`], [`cuMemsetD8Async`], [`cuIpcGetMemHandle`], [`cuStreamWriteValue64`] twice,
    /// [`cuStreamSynchronize`] and [`cuStreamDestroy`]. They are between two calls of
    /// [`cuThreadExchangeStreamCaptureMode`], so captures go on. The first call for a context makes
    /// one more driver call, for the device's UUID. Drivers before CUDA 11.7 need the setting of
    /// [`Timeline::new`](super::Timeline::new).
    ///
    /// # Errors
    ///
    /// * The driver's error, such as `CUDA_ERROR_NOT_SUPPORTED` if device memory cannot be shared
    ///   between processes here, or `CUDA_ERROR_OUT_OF_MEMORY`.
    /// * [`Unsupported`](cuda_events::Error::Unsupported);
    ///   [`ForkedChild`](cuda_events::Error::ForkedChild).
    #[doc(alias = "cuIpcGetMemHandle")]
    pub fn new(context: &Context) -> Result<Self> {
        let maker = Origin::of(context)?;
        // The calls below would invalidate captures, also of other threads.
        let _relaxed = ThreadCaptureMode::exchange(context.driver(), CaptureMode::Relaxed)?;
        let stream = Stream::new(context, StreamOptions::new())?;
        // Before the rest, which frees the memory where anything fails.
        let mut memory = Memory::new(context, maker)?;
        if let Err(error) = memory.fill(&stream) {
            *memory.lost.get_mut() = stream.synchronize().is_err();
            return Err(error.into());
        }
        Ok(Self(Arc::new(memory)))
    }

    /// Returns the context that the memory was allocated in.
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// Returns an unused line.
    pub(super) fn take(&self) -> Result<Word> {
        let memory = Arc::clone(&self.0);
        let passed = Event::new(&memory.context, EventFlags::empty())?;
        let room = |given: u16| (usize::from(given) + 1 < LINES).then_some(given + 1);
        let order = Ordering::Relaxed;
        let given = memory.given.fetch_update(order, order, room).map_err(|_| Refusal::FileFull)?;
        let index = given + 1;
        let address = memory.address + CUdeviceptr::from(index) * size_of::<Line>() as CUdeviceptr;
        Ok(Word { address, named: InMemory { index, ..memory.named }, passed, memory })
    }
}

const BLOCK: usize = 2 << 20;

#[allow(unsafe_code)]
impl Memory {
    fn new(context: &Context, maker: Origin) -> cuda_events::Result<Self> {
        let number = RandomState::new().hash_one(maker.pid());
        let driver = context.driver();
        with_current(context, || {
            let mut address = 0;
            // SAFETY: a place for the address; the context is current.
            unsafe { call!(driver, cuMemAlloc_v2(&mut address, BLOCK)) }?;
            let named = InMemory { index: 0, maker, memory: [0; 64], number };
            Ok(Self {
                context: context.clone(),
                address,
                named,
                given: AtomicU16::new(0),
                last: Mutex::default(),
                lost: AtomicBool::new(false),
            })
        })
    }

    /// Writes the description of the memory, and gets its handle from the driver.
    fn fill(&mut self, stream: &Stream) -> cuda_events::Result<()> {
        let address = self.address;
        let driver = self.context.driver();
        self.named.memory = with_current(&self.context, || {
            // SAFETY: so many bytes were allocated there; the stream is alive.
            unsafe { call!(driver, cuMemsetD8Async(address, 0, BLOCK, stream.as_raw())) }?;
            let mut handle = CUipcMemHandle { reserved: [0; 64] };
            // SAFETY: a place for the handle, and the start of an allocation.
            unsafe { call!(driver, cuIpcGetMemHandle(&mut handle, address)) }?;
            Ok(handle.reserved)
        })?;
        for (at, word) in [(0, HEADER), (8, self.named.number)] {
            // SAFETY: 8 bytes of the memory, aligned, which nothing else uses yet.
            unsafe { stream.write_value64(address + at, word, WriteValueFlags::empty()) }?;
        }
        stream.synchronize()
    }
}

impl Drop for Memory {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        if is_forked_child() {
            return;
        }
        // The calls below would invalidate captures, also of other threads.
        let driver = self.context.driver();
        let Ok(_relaxed) = ThreadCaptureMode::exchange(driver, CaptureMode::Relaxed) else {
            return;
        };
        // What streams have still to write there: whether the driver waits for it when it frees the
        // memory was not seen on a card. A failed wait leaves the memory to the context's end.
        let last = self.last.get_mut().unwrap_or_else(PoisonError::into_inner);
        if *self.lost.get_mut() || last.iter().any(|last| last.wait().is_err()) {
            return;
        }
        let _ = with_current(&self.context, || {
            // SAFETY: allocated once; of this process's timelines none is left, and no stream has
            // anything to write there.
            unsafe { call!(driver, cuMemFree_v2(self.address)) }
        });
    }
}

impl fmt::Debug for TimelineMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimelineMemory")
            .field("number", &format_args!("{:#018x}", self.0.named.number))
            .field("context", &self.0.context)
            .finish_non_exhaustive()
    }
}

static_assertions::assert_impl_all!(TimelineMemory: Send, Sync);
