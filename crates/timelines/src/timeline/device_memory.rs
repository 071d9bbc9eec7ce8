//! Timelines that other processes import with bytes only: the exporter's side.
//!
//! The values are written twice: to device memory, which the driver's interprocess handles name,
//! and to a line of this process, for its own hosts and streams. Like a file, the memory has lines,
//! the first of which describes it. A line is never given to a second timeline, because other
//! processes may still wait for the first one.

use core::fmt;
use core::sync::atomic::{AtomicU16, Ordering};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use super::descriptor::{InMemory, Named, TimelineDescriptor};
use super::leftover::{Leftover, Place};
use super::line::{LINES, Line};
use crate::error::{Result, SharedTimelineError as Refusal};
use cuda_events::capture::{CaptureMode, ThreadCaptureMode};
use cuda_events::foundation::{Origin, call, is_forked_child, with_current};
use cuda_events::mem_ops::WriteValueFlags;
use cuda_events::sys::{CUdeviceptr, CUipcMemHandle};
use cuda_events::{Context, Stream, StreamOptions};

#[cfg(doc)]
use crate::calls::*;

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
/// **Keep it until no other process uses its timelines.** Dropping it makes no driver call, because
/// the driver frees device memory only after all work of the device. The next memory of the context
/// uses the same 2 MiB, with other lines. So processes that opened the earlier memory can open that
/// one, too. The driver frees it with the context.
///
/// It takes 2 MiB. The driver shares device memory in blocks of that size, so a smaller allocation
/// would expose other data of the block to the other processes.
///
/// ```
/// use cuda_events::{Context, Device, Stream, StreamOptions};
/// use cuda_timelines::{Timeline, TimelineMemory};
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
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
pub struct TimelineMemory {
    context: Context,
    block: Block,
    /// How many lines of the block were given out.
    given: AtomicU16,
}

/// What the driver has allocated.
#[derive(Clone)]
struct Block {
    address: CUdeviceptr,
    /// Names the first line, which is the memory's own.
    named: InMemory,
    place: Place,
    /// How many of its lines earlier memories have given out.
    given: u16,
}

/// The blocks of memories that were dropped.
static LEFTOVER: Leftover<Block> = Leftover::new();

const BLOCK: usize = 2 << 20;

/// How many lines a block has, the first of which is its own.
pub(super) const PLACES: usize = BLOCK / size_of::<Line>();

/// How many lines a memory has.
const ROOM: u16 = LINES as u16 - 1;

/// A line in such memory.
pub(super) struct Word {
    pub(super) address: CUdeviceptr,
    pub(super) named: InMemory,
}

impl Word {
    pub(super) fn descriptor(&self) -> TimelineDescriptor {
        TimelineDescriptor(Named::Memory(self.named))
    }
}

impl TimelineMemory {
    /// Allocates memory on the context's device, or uses that of an earlier memory again.
    ///
    /// Driver calls: [`cuDevicePrimaryCtxRetain`], [`cuCtxGetId`] (CUDA 12.0) and
    /// [`cuDevicePrimaryCtxRelease`] and, if the memory is allocated, those of [`Stream::new`],
    /// [`cuMemAlloc`], [`cuMemsetD8Async`], [`cuIpcGetMemHandle`], [`cuStreamWriteValue64`] twice,
    /// [`cuStreamSynchronize`] and [`cuStreamDestroy`], with the context current where they need
    /// it. They are between two calls of [`cuThreadExchangeStreamCaptureMode`], so captures go on.
    /// The first call for a context makes one more driver call, for the device's UUID. Drivers
    /// before CUDA 11.7 need the setting of [`Timeline::new`](super::Timeline::new).
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
        let place = Place::of(context)?;
        let block = match LEFTOVER.take(&place) {
            Some(block) => Block { place, ..block },
            None => Block::new(context, maker, place)?,
        };
        Ok(Self { context: context.clone(), given: AtomicU16::new(block.given), block })
    }

    /// Returns the context that the memory was allocated in.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Returns an unused line. None is given twice, as other processes may wait for it for as long
    /// as they have the memory open.
    pub(super) fn take(&self) -> Result<Word> {
        let most = self.block.given + ROOM;
        let order = Ordering::Relaxed;
        let mut given = self.given.load(order);
        let index = loop {
            if given >= most {
                return Err(Refusal::FileFull.into());
            }
            match self.given.compare_exchange_weak(given, given + 1, order, order) {
                Ok(_) => break given + 1,
                Err(now) => given = now,
            }
        };
        let offset = CUdeviceptr::from(index) * size_of::<Line>() as CUdeviceptr;
        let address = self.block.address + offset;
        Ok(Word { address, named: InMemory { index, ..self.block.named } })
    }
}

#[allow(unsafe_code)]
impl Block {
    fn new(context: &Context, maker: Origin, place: Place) -> cuda_events::Result<Self> {
        let driver = context.driver();
        let stream = Stream::new(context, StreamOptions::new())?;
        let mut address = 0;
        // SAFETY: a place for the address; the context is current.
        with_current(context, || unsafe { call!(driver, cuMemAlloc_v2(&mut address, BLOCK)) })?;
        let number = RandomState::new().hash_one(maker.pid());
        match fill(&stream, address, number) {
            Ok(memory) => {
                let named = InMemory { index: 0, maker, memory, number };
                Ok(Self { address, named, place, given: 0 })
            }
            Err(error) => {
                // If the stream may still write there, the memory is the context's until that ends.
                if stream.synchronize().is_ok() {
                    // SAFETY: allocated above, and nothing uses it.
                    let free = || unsafe { call!(driver, cuMemFree_v2(address)) };
                    let _ = with_current(context, free);
                }
                Err(error)
            }
        }
    }
}

/// Writes the description of the memory, and gets its handle from the driver.
#[allow(unsafe_code)]
fn fill(stream: &Stream, address: CUdeviceptr, number: u64) -> cuda_events::Result<[u8; 64]> {
    let driver = stream.context().driver();
    let mut handle = CUipcMemHandle { reserved: [0; 64] };
    with_current(stream.context(), || {
        // SAFETY: so many bytes were allocated there; the stream is alive.
        unsafe { call!(driver, cuMemsetD8Async(address, 0, BLOCK, stream.as_raw())) }?;
        // SAFETY: a place for the handle, and the start of an allocation.
        unsafe { call!(driver, cuIpcGetMemHandle(&mut handle, address)) }
    })?;
    for (at, word) in [(0, HEADER), (8, number)] {
        // SAFETY: 8 bytes of the memory, aligned, which nothing else uses yet.
        unsafe { stream.write_value64(address + at, word, WriteValueFlags::empty()) }?;
    }
    stream.synchronize()?;
    Ok(handle.reserved)
}

impl Drop for TimelineMemory {
    fn drop(&mut self) {
        // Streams and other processes may still use the lines that were given out.
        let given = *self.given.get_mut();
        if !is_forked_child() && usize::from(given + ROOM) < PLACES {
            LEFTOVER.put(self.block.place.clone(), Block { given, ..self.block.clone() });
        }
    }
}

impl fmt::Debug for TimelineMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimelineMemory")
            .field("number", &format_args!("{:#018x}", self.block.named.number))
            .field("context", &self.context)
            .finish_non_exhaustive()
    }
}

static_assertions::assert_impl_all!(TimelineMemory: Send, Sync);

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use cuda_events::Device;

    /// A block serves memories while it has lines for all timelines of one.
    #[test]
    fn a_block_is_used_up() {
        let soft = cuda_soft_driver::SoftDriver::new();
        let context = Device::new(soft.driver(), 0).and_then(Context::primary).unwrap();
        let last = (PLACES - 1) as u16;
        for (given, is_used) in [(last - ROOM, true), (last - ROOM + 1, false)] {
            let mut memory = TimelineMemory::new(&context).unwrap();
            let address = memory.block.address;
            *memory.given.get_mut() = given;
            drop(memory);
            let next = TimelineMemory::new(&context).unwrap();
            assert_eq!(next.block.address == address, is_used, "{given}");
            let first = next.block.given;
            let words: Vec<_> = (0..ROOM).map(|_| next.take().unwrap()).collect();
            assert!(words.iter().zip(first + 1..).all(|(word, index)| word.named.index == index));
            assert!(words.iter().all(|word| {
                let end = next.block.address + BLOCK as CUdeviceptr;
                (next.block.address..end).contains(&word.address)
            }));
            assert_eq!(next.take().map(drop), Err(Refusal::FileFull.into()));
            let last = words.last().unwrap().descriptor();
            assert_eq!(TimelineDescriptor::from_bytes(&last.to_bytes()), Ok(last));
        }
    }

    /// A driver that shares no memory keeps none.
    #[test]
    fn what_cannot_be_shared_is_freed() {
        let soft = cuda_soft_driver::SoftDriver::new();
        let context = Device::new(soft.driver(), 0).and_then(Context::primary).unwrap();
        for call in ["cuMemsetD8Async*", "cuIpcGetMemHandle", "cuStreamWriteValue64*"] {
            let fault = cuda_soft_driver::Fault::on(call).once();
            soft.inject(fault.answer(cuda_soft_driver::abi::CUresult(801)));
            assert!(TimelineMemory::new(&context).is_err(), "{call}");
            assert_eq!(soft.live().allocations, 0, "{call}");
        }
        drop(TimelineMemory::new(&context).unwrap());
    }
}
