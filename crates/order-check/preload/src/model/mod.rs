//! What is known of the program's objects, by subject. Nothing here knows of the lock, or of calls.

pub(crate) mod contexts;
pub(crate) mod copies;
pub(crate) mod driver;
pub(crate) mod graphs;
pub(crate) mod host_functions;
pub(crate) mod kernels;
pub(crate) mod launch;
pub(crate) mod memory;
pub(crate) mod nodes;
pub(crate) mod objects;
pub(crate) mod pinned;
pub(crate) mod streams;
pub(crate) mod under_way;
pub(crate) mod values;
pub(crate) mod waiting;
