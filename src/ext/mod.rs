//! Conveniences that CUDA does not have, made of the rest of this crate.
//!
//! The rest of the crate has no thread and tracks nothing behind your back: its page lists [what it
//! keeps](crate#what-is-kept-for-the-process). The items here keep more, and futures share one
//! thread:
//!
//! | item | what it keeps | locks | thread |
//! | --- | --- | --- | --- |
//! | [`Completion`], `event.await`, [`StreamRef::completion`](crate::StreamRef::completion) | for the process, a list of the futures that are pending; a future has its event | one for the thread's inbox, one for the list, one for each future | one for the process. The first future that is polled while its work is not done starts it. It sleeps while nothing is pending, and never ends |
//! | [`EventPool`], [`PooledEvent`] | the pool's free events; a number for each thread that uses a pool | one for each pool, for the events that its slots have no place for | none |
//! | [`LazyEvent`] | its event, once it is created | none | none |
//! | [`StreamScope`], [`CurrentStream`], [`current_stream()`] | for each thread, a list of the scopes it is in, with a share of each stream | none | none |
//! | [`Timer`], [`Timing`] | two events | none | none |
//! | [`IpcLease`] | a share of the event | none | none |
//! | [`Timeline`], [`HostTimeline`], [`Point`], [`PointCompletion`] | for the process, pages of pinned host memory, which timelines share and which are never given back; a list of the waits between contexts, each with a share of both, until it is over; a list of the timelines that futures wait for | one for each timeline, for its signals; one for its futures; one for each list | none of its own: futures of points have the one of completions. That one also releases streams that wait ahead for a timeline which was dropped while a signal was pending. A short one ends a context whose last share a wait between contexts had |
//! | [`TimelineFile`], [`ImportedTimeline`], [`TimelineDescriptor`] | for the process, the files of other processes, which stay mapped; a list of the imports that streams wait for; a list of those of its own files that nobody has any more while streams may write to them; a list of what a forked child must close, with a fork handler. A file has one page and two file descriptors, an import one file descriptor; on Windows a file has one handle, an import two, and a file of another process one more for the process | three for each file, one for each imported line, one for each list | the one of completions, while a stream waits for another process, and while a signal of a shared timeline is pending |
//! | [`TimelineMemory`], [`TimelineHandle`], [`OpenedTimeline`] | 2 MiB of device memory for 63 timelines; for the process, pages of pinned host memory for what it copies, with 64 lines each, of which an opened timeline takes one for ever; an opened timeline has two streams | one for each opened timeline | the one of completions, while points are pending, and a short one for what was dropped before |

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
