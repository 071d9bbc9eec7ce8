//! Entry points that exist for other people's programs. The core imports nothing of them; only the list
//! of exports names them.

pub(crate) mod allocations;
pub(crate) mod contexts;
pub(crate) mod copies;
pub(crate) mod devices;
pub(crate) mod graph_edits;
pub(crate) mod graph_nodes;
pub(crate) mod managed;
pub(crate) mod modules;
pub(crate) mod pools;
pub(crate) mod rows;
pub(crate) mod user_objects;
pub(crate) mod value_nodes;
