//! Timelines and futures for the streams and events of [`cuda_events`].
//!
//! * A [`Timeline`] is a counter that a stream advances. The host checks it with one load, from any
//!   number of threads; streams of all contexts wait for it; other processes see it. A
//!   [`HostTimeline`] is one that the host advances.
//! * A [`Completion`] is a future that resolves when an event, or all work of a stream, is done. A
//!   [`Point`] of a timeline is awaited in the same way. They need no particular executor.
//!
//! ```
//! use cuda_events::{Context, Device, EventFlags, Stream, StreamOptions};
//! use cuda_timelines::{CudaEventExt, CudaStreamExt, Timeline};
//!
//! # let _ = || {
//! let driver = cuda_events::Driver::load()?;
//! # Ok::<_, cuda_events::Error>(driver) };
//! # let soft = cuda_soft_driver::SoftDriver::new();
//! # let driver = soft.driver();
//! # fn block_on<F: Future>(future: F) -> F::Output {
//! #     struct Unpark(std::thread::Thread);
//! #     impl std::task::Wake for Unpark {
//! #         fn wake(self: std::sync::Arc<Self>) { self.0.unpark() }
//! #     }
//! #     let waker = std::sync::Arc::new(Unpark(std::thread::current())).into();
//! #     let mut future = std::pin::pin!(future);
//! #     loop {
//! #         match future.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
//! #             std::task::Poll::Ready(output) => return output,
//! #             std::task::Poll::Pending => std::thread::park(),
//! #         }
//! #     }
//! # }
//! let context = Context::primary(Device::new(driver, 0)?)?;
//! let consumer = Stream::new(&context, StreamOptions::new())?;
//! let produced = Timeline::new(Stream::new(&context, StreamOptions::new())?)?;
//! // ... submit work to `produced.stream()` ...
//! let point = produced.signal()?;
//! consumer.wait_point(point)?;
//! point.wait()?;
//! assert!(point.is_done());
//!
//! // `block_on` is that of any executor.
//! block_on(async {
//!     consumer.record_event(EventFlags::empty())?.completion().await?;
//!     consumer.completion()?.await?;
//!     produced.signal()?.await
//! })?;
//! # Ok::<(), cuda_timelines::Error>(())
//! ```
//!
//! | for | use |
//! | --- | --- |
//! | a completion that many threads check | [`Timeline`] |
//! | signals from the host | [`HostTimeline`] |
//! | awaiting | [`CudaEventExt::completion`], [`CudaStreamExt::completion`], `point.await` |
//! | processes that can send each other file descriptors, also in other containers | [`TimelineFile`], [`ImportedTimeline::open`] |
//! | processes that can exchange bytes only | [`TimelineMemory`], [`ImportedTimeline::open_memory`] |
//!
//! It uses only the public API of `cuda-events`.
//!
//! # State and threads
//!
//! | item | for the process | in each object | locks | thread |
//! | --- | --- | --- | --- | --- |
//! | [`Completion`] | a list of the pending futures | the event | one for the thread's inbox, one for the list, one for each future | one for the process. It starts with the first future that is polled before its work is done, sleeps while no future is pending, and never ends |
//! | [`Timeline`], [`HostTimeline`], [`Point`], [`PointCompletion`] | pages of pinned host memory, which timelines share and which are never freed; a list of the pending waits between contexts, each with a share of both contexts; a list of the timelines that futures wait for; whether the thread was started for points; whether a driver with its own clock was used | a timeline has one line, and a second one if other processes can write the first | one for each timeline, for its signals; one for its futures; one for each list | futures of points use the thread of completions. That thread also releases streams that wait ahead for a timeline that was dropped while a signal was pending. While streams of other contexts wait for a pending signal, it queries whether the timeline's context works. A short-lived thread ends a context whose last share belonged to a wait between contexts |
//! | [`TimelineFile`], [`ImportedTimeline::open`] | the files of other processes, which stay mapped (on Windows with one handle each); a list of the imports that streams wait for; a list of its own dropped files that streams may still write to; a list of the descriptors that a forked child must close, with a fork handler | a file has one page and two file descriptors, an import has one file descriptor; on Windows a file has one handle, and an import has two | three for each file, one for each imported line, one for each list | the thread of completions, while a stream waits for another process or a signal of a shared timeline is pending. The first `Timeline::shared` starts it |
//! | [`TimelineMemory`], [`ImportedTimeline::open_memory`] | pages of pinned host memory for copied values, with 64 lines each, of which such an import keeps one forever | a memory has 2 MiB on the device, for 63 timelines; an import has two streams | one for each import | the thread of completions, while points are pending. A short-lived thread releases streams and memory that were dropped earlier |
//!
//! A line is the 64 bytes of memory that hold one timeline's value.

#![deny(missing_docs, unreachable_pub, unsafe_code)]
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::unreachable
)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

mod completion;
mod error;
mod extensions;
mod handle;
mod inbox;
mod precise_sleep;
mod sync;
mod thread;
mod time;
mod timeline;

pub use completion::Completion;
pub use error::{Error, Result, SharedTimelineError};
pub use extensions::{CudaEventExt, CudaStreamExt};
pub use timeline::{
    HostTimeline, ImportedTimeline, Point, PointCompletion, Timeline, TimelineDescriptor,
    TimelineFile, TimelineMemory,
};

/// The driver's calls under the names that documentation uses.
#[cfg(doc)]
mod calls {
    pub(crate) use cuda_events::sys::Function::{
        cuEventDestroy_v2 as cuEventDestroy, cuIpcOpenMemHandle_v2 as cuIpcOpenMemHandle,
        cuMemAlloc_v2 as cuMemAlloc, cuMemFree_v2 as cuMemFree,
        cuMemHostGetDevicePointer_v2 as cuMemHostGetDevicePointer,
        cuMemHostRegister_v2 as cuMemHostRegister, cuMemcpyDtoHAsync_v2 as cuMemcpyDtoHAsync,
        cuStreamDestroy_v2 as cuStreamDestroy, *,
    };
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
