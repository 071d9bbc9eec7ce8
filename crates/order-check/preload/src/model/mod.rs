//! What a call means, by subject: to what is remembered ([`state`](crate::state)), and to the feed.
//!
//! Nothing here knows of the lock, or of the real call: that is the [walk](crate::walk).

pub(crate) mod copies;
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
