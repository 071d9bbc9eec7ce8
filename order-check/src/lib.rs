//! Finds missing order.
#![forbid(unsafe_code)]
#![deny(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod checker;
mod clock;
mod graph;
mod op;
mod report;
mod shadow;
mod task;
mod values;

pub use checker::{Checker, HostOrder, Mark, Options, Size, Warnings};
pub use op::{
    Access, AccessKind, By, Call, Cell, Compare, ContextId, EventId, FunctionId, GraphId, Location, Node, NodeWork, Op,
    StreamId, StreamKind, ThreadId, TokenId, What,
};
pub use report::{Agent, Finding, Problem, Report, Side, Warning};
