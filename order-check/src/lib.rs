//! Finds missing order in programs that use CUDA streams.
//!
//! Two streams that touch the same memory need an order: an event that one records and the other
//! waits for, say. Without it a program passes every test until one day it does not. This crate
//! reads the sequence of a program's operations and reports each two accesses to the same bytes, at
//! least one of them a write, that nothing orders. It does not matter which of the two happened
//! first in the run that is looked at: between streams that only events order, a missing order is
//! found on every run. For threads of the host see [`HostOrder`].
//!
//! It knows no driver. Whoever sees the calls tells them: a driver in software, or an observer in
//! front of a real one.
//!
//! # Example
//!
//! ```
//! use cuda_order_check::{Access, Call, Checker, EventId, Op, StreamId, ThreadId};
//!
//! let (a, b, event) = (StreamId(0xa), StreamId(0xb), EventId(1));
//! let main = ThreadId(1);
//! let mut checker = Checker::default();
//!
//! // Stream A writes a buffer, and stream B reads the second half of it.
//! let upload = Call::new("cuMemcpyHtoDAsync", 1, main);
//! checker.apply(upload, Op::Work { stream: a, accesses: &[Access::write(0x7000, 256)] });
//! let download = Call::new("cuMemcpyDtoHAsync", 2, main);
//! checker.apply(download, Op::Work { stream: b, accesses: &[Access::read(0x7080, 128)] });
//!
//! let findings = checker.take_findings();
//! assert_eq!(
//!     findings[0].to_string(),
//!     "\
//! error: missing order: two calls touch the same 128 bytes, and nothing orders them
//!   first:   call #1 (cuMemcpyHtoDAsync) writes them on stream 0xa, submitted by thread 1
//!   second:  call #2 (cuMemcpyDtoHAsync) reads them on stream 0xb, submitted by thread 1
//!   bytes:   0x7080..0x7100
//!   order:   stream 0xb is after no call on stream 0xa
//!   missing: record an event on stream 0xa after call #1 (cuMemcpyHtoDAsync), and have \
//! stream 0xb wait for it before call #2 (cuMemcpyDtoHAsync)"
//! );
//!
//! // The same with the event.
//! let mut checker = Checker::default();
//! let mut number = 0;
//! let mut tell = |name, op: Op<'_>| {
//!     number += 1;
//!     checker.apply(Call::new(name, number, main), op);
//! };
//! tell("cuMemcpyHtoDAsync", Op::Work { stream: a, accesses: &[Access::write(0x7000, 256)] });
//! tell("cuEventRecord", Op::Record { event, stream: a, external: false });
//! tell("cuStreamWaitEvent", Op::Wait { stream: b, event, external: false });
//! tell("cuMemcpyDtoHAsync", Op::Work { stream: b, accesses: &[Access::read(0x7080, 128)] });
//! assert!(checker.take_findings().is_empty());
//! ```
//!
//! # What to tell
//!
//! Tell each operation once, with [`Checker::apply`], in the order in which the driver got the
//! calls, and only calls that the driver accepted. Tell a call that waits when it has returned.
//! [`Op`] lists the operations. The feeder chooses the numbers: handles are good ones, as long as
//! no two objects that live at the same time have the same number.
//!
//! * Host memory and the memory of all devices are one address space, as in CUDA itself.
//! * A stream's work has its accesses: the source and the target of a copy, the range of a memset.
//!   What a kernel touches no driver sees. Tell the kernel without accesses, or with those that the
//!   program names.
//! * A stream that waits for a value goes on when a write of that value is told, and a host
//!   function is over when that is told. Until then the checker holds back what comes after them.
//!   If a thread has waited for such work, then it is over, and the checker goes on.
//!
//! # What orders
//!
//! * Work in a stream is in order, and comes after all that the submitting thread is after.
//! * A wait for an event is after the work before the last record that was submitted before the
//!   wait. The same holds for records and waits of a whole context.
//! * The legacy default stream waits for the blocking streams of its context, and they wait for it.
//! * A thread that has synchronized, or whose query said that the work is done, is after that work.
//! * A wait for a value is after the write that ended it. If several writes may have done that, it
//!   is after what all of them are after.
//!   If no write of a value can have done it, a copy has, or somebody whom nobody told of: it is
//!   after all copies to it. So a wait is no race with a copy to its value.
//! * A graph's nodes are in the order of its edges, and a launch is an operation of its stream.
//! * Threads: see [`HostOrder`].
//! * A wait for an interprocess event is after what was recorded here. What other processes
//!   recorded nobody knows here, so a report on that stream names the wait.
//!
//! # What it does not find
//!
//! * Accesses that nobody told: those of kernels, of other processes, and the program's own loads
//!   and stores.
//! * A race that a waiting thread hides: with [`HostOrder::Submission`], work that one thread
//!   waited for is before all later calls of all threads.
//! * A second race behind a reported one. Between two accesses that are in order with each other
//!   only the later one is compared with what comes next, as whoever is after it is after both. So
//!   a report names the nearest access. Mend it, and run again.
//!
//! # Cost
//!
//! Memory is kept for the ranges of bytes and the accesses that some thread is not after yet, and
//! for live objects. An operation costs a few look-ups, and a part that grows with the number of
//! streams whose work its stream is after and the host is not.
#![forbid(unsafe_code)]
#![deny(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

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
    Access, AccessKind, Backtrace, By, Call, Cell, Compare, ContextId, EventId, FunctionId,
    GraphId, Location, Node, NodeWork, Op, StreamId, StreamKind, ThreadId, TokenId, What,
};
pub use report::{Agent, Finding, Problem, Report, Side, Warning};

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
