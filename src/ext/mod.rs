//! Conveniences that CUDA does not have, made of the rest of this crate.
//!
//! The root of the crate has no thread and tracks nothing behind your back. An item here may: each says what it keeps.
//!
//! | item | what it keeps | thread |
//! | --- | --- | --- |
//! | [`Completion`] | the pending completions of the process | one for the process, started by the first completion that is polled while its work is pending; it sleeps while nothing is pending |
//! | [`EventPool`], [`PooledEvent`] | the pool's free events | none |
//! | [`LazyEvent`] | its event, once it is created | none |
//! | [`StreamScope`], [`CurrentStream`], [`current_stream()`] | a list of each thread's scopes | none |
//! | [`Timer`], [`Timing`] | two events | none |
//! | [`IpcLease`] | a share of the event | none |

mod completion;
mod current_stream;
mod event_pool;
mod ipc_lease;
mod lazy_event;
mod timer;

pub use completion::Completion;
pub use current_stream::{CurrentStream, StreamScope, current_stream};
pub use event_pool::{EventPool, PooledEvent};
pub use ipc_lease::IpcLease;
pub use lazy_event::{LazyEvent, LazyState};
pub use timer::{Timer, Timing};
