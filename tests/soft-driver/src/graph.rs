//! Graphs.

pub(crate) struct Graph {}
pub(crate) struct Node {}
pub(crate) struct Exec {}
