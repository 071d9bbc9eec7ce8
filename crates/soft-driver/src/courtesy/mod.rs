//! Entry points that exist for other people's programs; `cuda-events` binds none of them. The subjects
//! import nothing from here: only the list of exports names these bodies. Each file says which
//! programs call them, as of cudarc 0.19, numba-cuda 0.30 and cuda.core 1.2.

pub(crate) mod allocations;
pub(crate) mod contexts;
pub(crate) mod copies;
pub(crate) mod devices;
mod exports;
pub(crate) mod graph_edits;
pub(crate) mod graph_nodes;
pub(crate) mod graph_updates;
pub(crate) mod managed;
pub(crate) mod modules;
pub(crate) mod pools;
pub(crate) mod rows;
pub(crate) mod user_objects;
