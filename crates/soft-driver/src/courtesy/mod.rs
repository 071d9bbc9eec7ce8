//! Entry points that exist for other programs; `cuda-events` binds none of them. The feature
//! `courtesy` adds them: nothing else knows this module, which the list of exports names. Each file
//! begins with the programs that call its entry points, as of cudarc 0.19, numba-cuda 0.30 and
//! cuda.core 1.2. What has no body is exported for all programs that are linked with a name, or
//! look all of them up when they start.

pub(crate) mod allocations;
pub(crate) mod captures;
pub(crate) mod contexts;
pub(crate) mod copies;
pub(crate) mod devices;
mod exports;
pub(crate) mod graph_edits;
pub(crate) mod graph_nodes;
pub(crate) mod graph_updates;
pub(crate) mod kernels;
pub(crate) mod launches;
pub(crate) mod managed;
pub(crate) mod modules;
pub(crate) mod pools;
pub(crate) mod rows;
pub(crate) mod user_objects;
