//! Conveniences that CUDA does not have, built on the rest of this crate.
//!
//! Like the rest of the crate, they start no thread. Besides [the crate's own
//! list](crate#process-wide-state) they keep this state:
//!
//! | item | for each thread | in each object | locks |
//! | --- | --- | --- | --- |
//! | [`EventPool`], [`PooledEvent`] | a number, if it uses a pool | the pool's free events | one for each pool, for events that do not fit into its slots |
//! | [`LazyEvent`] | nothing | its event, once it is created | none |
//! | [`StreamScope`], [`CurrentStream`], [`current_stream()`] | a list of the scopes it is in, with a share of each stream | nothing | none |
//! | [`Timer`], [`Timing`] | nothing | two events | none |
//! | [`IpcLease`] | nothing | a share of the event | none |
//!
//! ```
//! use cuda_events::ext::{EventPool, Timer};
//! use cuda_events::{Context, Device, EventFlags, Stream, StreamOptions};
//!
//! # let _ = || {
//! let driver = cuda_events::Driver::load()?;
//! # Ok::<_, cuda_events::Error>(driver) };
//! # let soft = cuda_soft_driver::SoftDriver::new();
//! # let driver = soft.driver();
//! let context = Context::primary(Device::new(driver, 0)?)?;
//! let stream = Stream::new(&context, StreamOptions::new())?;
//! let pool = EventPool::new(&context, EventFlags::empty())?;
//! let timer = Timer::start(&stream)?;
//! // ... work is put into `stream` ...
//! println!("the work took {:?}", timer.stop()?.synchronize()?);
//! assert!(pool.record_event(&stream)?.synchronize().is_ok());
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
