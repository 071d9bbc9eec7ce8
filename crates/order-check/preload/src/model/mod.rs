//! The program's objects, by subject: what is remembered of them, and what a call means to them.
//!
//! A subject of several files is a folder. What the checker as a whole ([`Watch`](crate::watch::Watch))
//! has as a field is in a file that knows nothing of it, such as [`memory::allocations`]; `mod.rs` has
//! what needs other subjects as well, such as the feed. Nothing here knows of the lock, or of the real
//! call: that is the [walk](crate::walk).

pub(crate) mod contexts;
pub(crate) mod copies;
pub(crate) mod destroyed;
pub(crate) mod driver;
pub(crate) mod graphs;
pub(crate) mod host_functions;
pub(crate) mod kernels;
pub(crate) mod memory;
pub(crate) mod pinned;
pub(crate) mod streams;
pub(crate) mod threads;
pub(crate) mod under_way;
pub(crate) mod uploads;
pub(crate) mod user_objects;
pub(crate) mod values;
pub(crate) mod waiting;
