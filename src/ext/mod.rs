//! Conveniences that CUDA does not have, built on the rest of this crate.
//!
//! Like the rest of the crate, they start no thread.
//!
//! | for | use |
//! | --- | --- |
//! | many short-lived events | [`EventPool`] |
//! | an event that is created when it is first needed, as in PyTorch | [`LazyEvent`] |
//! | a current stream for each thread, as in PyTorch | [`StreamScope`], [`current_stream()`] |
//! | the time that work in a stream takes | [`Timer`] |
//! | keeping an interprocess event while importers use it | [`IpcLease`] |
//!
//! `docs/architecture.md` in the source tree lists the state that each item keeps for the process or
//! for a thread.
//!
//! ```
//! use cuda_events::ext::{EventPool, Timer};
//! use cuda_events::{Context, Device, EventFlags, Stream, StreamOptions};
//!
//! # use cuda_soft_driver::examples::Driver;
//! let driver = Driver::load()?;
//! let context = Context::primary(Device::new(driver, 0)?)?;
//! let stream = Stream::new(&context, StreamOptions::new())?;
//! let pool = EventPool::new(&context, EventFlags::empty())?;
//! let timer = Timer::start(&stream)?;
//! // ... work is put into `stream` ...
//! let timing = timer.stop()?; // records the end
//! let time = timing.synchronize()?; // waits, and returns the time
//! println!("the work took {time:?}");
//! let event = pool.record_event(&stream)?;
//! event.synchronize()?;
//! drop(event); // it goes back to the pool
//! # Ok::<(), cuda_events::Error>(())
//! ```

mod current_stream;
mod event_pool;
mod ipc_lease;
mod lazy_event;
mod timer;

pub use current_stream::{CurrentStream, StreamScope, current_stream};
pub use event_pool::{EventPool, PooledEvent};
pub use ipc_lease::IpcLease;
pub use lazy_event::{LazyEvent, LazyState};
pub use timer::{Timer, Timing};
