//! What is remembered of the program's objects, by subject.
//!
//! Each is a field of the checker as a whole ([`Watch`](crate::watch::Watch)) or a part of one, and knows
//! nothing of it.

pub(crate) mod allocations;
pub(crate) mod blocks;
pub(crate) mod contexts;
pub(crate) mod destroyed;
pub(crate) mod driver;
pub(crate) mod executions;
pub(crate) mod graphs;
pub(crate) mod kernels;
pub(crate) mod node;
pub(crate) mod nodes;
pub(crate) mod pinned;
pub(crate) mod streams;
pub(crate) mod under_way;
pub(crate) mod uploads;
pub(crate) mod user_objects;
pub(crate) mod values;
pub(crate) mod waiting;
