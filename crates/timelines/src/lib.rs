//! Timelines and futures for the streams and events of [`cuda_events`].
//!
//! * A [`Timeline`] is a counter that a stream advances. Any number of threads check it with one
//!   load. Streams of all contexts can wait for it. Other processes can see it.
//! * A [`HostTimeline`] is a counter that the host advances.
//! * A [`Completion`] is a future that resolves when an event, or all work of a stream, is done. A
//!   [`Point`] of a timeline is awaited in the same way. These futures work with any executor.
//!
//! ```
//! use cuda_events::{Context, Device, EventFlags, Stream, StreamOptions};
//! use cuda_timelines::{CudaEventExt, CudaStreamExt, Timeline};
//!
//! # use cuda_soft_driver::examples::Driver;
//! let driver = Driver::load()?;
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
//! // `block_on` comes from your executor, for example `pollster::block_on`.
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
//! The guides of `cuda-events` show this crate [inside
//! tokio](https://docs.rs/cuda-events/latest/cuda_events/guide/tokio/index.html) and [between
//! processes](https://docs.rs/cuda-events/latest/cuda_events/guide/processes/index.html). This
//! crate uses only the public API of `cuda-events`.
//!
//! # Threads
//!
//! The crate starts one thread for the process, when a future, a shared timeline or a wait between
//! contexts first needs it. The documentation calls this thread **the poller**. It sleeps while
//! nothing is pending, and never ends. If the poller has to drop an object whose drop may block, it
//! starts a short-lived thread for the drop. `docs/timelines.md` lists what each type keeps.
//!
//! # Supported platforms and versions
//!
//! * It compiles wherever `cuda-events` does, and needs the same Rust. It has no feature flags.
//! * Only on Linux and Windows can processes share timelines.
//! * Futures of events need CUDA 11.0. Timelines need CUDA 11.7.

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
    HostTimeline, ImportedTimeline, Point, PointCompletion, SignalGraph, Timeline,
    TimelineDescriptor, TimelineFile, TimelineMemory,
};

/// The driver's calls under the names that documentation uses.
#[cfg(doc)]
mod calls {
    pub(crate) use cuda_events::sys::functions::{
        cuDevicePrimaryCtxRelease_v2 as cuDevicePrimaryCtxRelease,
        cuEventDestroy_v2 as cuEventDestroy, cuIpcOpenMemHandle_v2 as cuIpcOpenMemHandle,
        cuMemAlloc_v2 as cuMemAlloc, cuMemHostGetDevicePointer_v2 as cuMemHostGetDevicePointer,
        cuMemHostRegister_v2 as cuMemHostRegister, cuMemcpyDtoHAsync_v2 as cuMemcpyDtoHAsync,
        cuStreamDestroy_v2 as cuStreamDestroy, *,
    };
}

/// These may be used again after a panic.
mod unwind {
    use core::panic::{RefUnwindSafe, UnwindSafe};

    macro_rules! unwind_safe {
        ($($type:ty),*) => {
            $(static_assertions::assert_impl_all!($type: UnwindSafe, RefUnwindSafe);)*
        };
    }

    unwind_safe!(
        crate::Error,
        crate::SharedTimelineError,
        crate::Completion,
        crate::HostTimeline,
        crate::ImportedTimeline,
        crate::Point,
        crate::PointCompletion,
        crate::Timeline,
        crate::TimelineDescriptor,
        crate::TimelineFile,
        crate::TimelineMemory
    );
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
