//! Conveniences that CUDA does not have, built on the rest of this crate.
//!
//! The rest of the crate starts no thread and has no hidden state beyond [a short
//! list](crate#process-wide-state). The items here keep more state, and futures share one thread:
//!
//! | item | for the process | in each object | locks | thread |
//! | --- | --- | --- | --- | --- |
//! | [`Completion`], `event.await`, [`StreamRef::completion`](crate::StreamRef::completion) | a list of the pending futures | the event | one for the thread's inbox, one for the list, one for each future | one for the process. It starts with the first future that is polled before its work is done, sleeps while no future is pending, and never ends |
//! | [`EventPool`], [`PooledEvent`] | a number for each thread that uses a pool | the pool's free events | one for each pool, for events that do not fit into its slots | none |
//! | [`LazyEvent`] | nothing | its event, once it is created | none | none |
//! | [`StreamScope`], [`CurrentStream`], [`current_stream()`] | for each thread, a list of the scopes it is in, with a share of each stream | nothing | none | none |
//! | [`Timer`], [`Timing`] | nothing | two events | none | none |
//! | [`IpcLease`] | nothing | a share of the event | none | none |
//! | [`Timeline`], [`HostTimeline`], [`Point`], [`PointCompletion`] | pages of pinned host memory, which timelines share and which are never freed; a list of the pending waits between contexts, each with a share of both contexts; a list of the timelines that futures wait for; whether the thread was started for points | a timeline has one line, and a second one if other processes can write the first | one for each timeline, for its signals; one for its futures; one for each list | futures of points use the thread of completions. That thread also releases streams that wait ahead for a timeline that was dropped while a signal was pending. While streams of other contexts wait for a pending signal, it queries whether the timeline's context works. A short-lived thread ends a context whose last share belonged to a wait between contexts |
//! | [`TimelineFile`], [`ImportedTimeline`], [`TimelineDescriptor`] | the files of other processes, which stay mapped (on Windows with one handle each); a list of the imports that streams wait for; a list of its own dropped files that streams may still write to; a list of the descriptors that a forked child must close, with a fork handler | a file has one page and two file descriptors, an import has one file descriptor; on Windows a file has one handle, and an import has two | three for each file, one for each imported line, one for each list | the thread of completions, while a stream waits for another process or a signal of a shared timeline is pending. The first `Timeline::shared` starts it |
//! | [`TimelineMemory`], [`TimelineHandle`], [`OpenedTimeline`] | pages of pinned host memory for copied values, with 64 lines each, of which an opened timeline keeps one forever | a memory has 2 MiB on the device, for 63 timelines; an opened timeline has two streams | one for each opened timeline | the thread of completions, while points are pending. A short-lived thread releases streams and memory that were dropped earlier |
//!
//! A line is the 64 bytes of memory that hold one timeline's value.
//!
//! ```
//! use cuda_events::ext::{EventPool, Timeline, Timer};
//! use cuda_events::{Context, Device, EventFlags, Stream, StreamOptions};
//!
//! # let soft = cuda_soft_driver::SoftDriver::new();
//! # let driver = soft.driver();
//! let context = Context::primary(Device::new(driver, 0)?)?;
//! let stream = Stream::new(&context, StreamOptions::new())?;
//! let pool = EventPool::new(&context, EventFlags::empty())?;
//! let timer = Timer::start(&stream)?;
//! // ... work is put into `stream` ...
//! println!("the work took {:?}", timer.stop()?.synchronize()?);
//! assert!(pool.record_event(&stream)?.synchronize().is_ok());
//!
//! let timeline = Timeline::new(stream)?;
//! let point = timeline.signal()?;
//! point.wait()?;
//! assert!(point.is_done());
//! # Ok::<(), cuda_events::Error>(())
//! ```

mod completion;
mod current_stream;
mod event_pool;
mod inbox;
mod ipc_lease;
mod lazy_event;
mod needs;
mod poller;
mod precise_sleep;
mod timeline;
mod timer;

pub use completion::Completion;
pub use current_stream::{CurrentStream, StreamScope, current_stream};
pub use event_pool::{EventPool, PooledEvent};
pub use ipc_lease::IpcLease;
pub use lazy_event::{LazyEvent, LazyState};
pub use timeline::{
    HostTimeline, ImportedTimeline, OpenedTimeline, Point, PointCompletion, Timeline,
    TimelineDescriptor, TimelineFile, TimelineHandle, TimelineMemory,
};
pub use timer::{Timer, Timing};
