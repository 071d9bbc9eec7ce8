//! Finds missing order in programs that use CUDA streams.
//!
//! Two streams that access the same memory need an order: for example, one stream records an event,
//! and the other stream waits for it. Without an order a program may pass every test and still fail
//! one day. This crate reads the sequence of a program's operations. It reports two accesses to the
//! same bytes if at least one is a write or a free, and nothing orders them. It does not matter
//! which access came first in this run. In a program that orders its streams by events only, each
//! missing order is found on every run. For threads of the host see [`HostOrder`].
//!
//! # What it computes
//!
//! The checker is a race detector by *happens-before*, Lamport's partial order, with vector clocks.
//! An *agent* is whatever does one thing after another: a stream, a branch of a graph, a thread of
//! the host, or a host function. Operation *a* happens before operation *b* if one agent did *a*
//! and then *b*, if *b* waited for *a* by one of the [sources of order](#sources-of-order) below, or
//! by a chain of these. Two accesses are a *race* if
//!
//! * they touch a common byte,
//! * at least one of them is a write, an allocation or a free, and not both are atomic, and
//! * neither happens before the other.
//!
//! Each agent has a slot in all clocks, and counts its operations. An access is kept as the slot
//! and the count of its agent, which FastTrack calls an *epoch*. The clock of an operation has for
//! each slot the highest count that happens before it. So an earlier access happens before the
//! operation if the clock has at least the access's count in the access's slot: one look-up and no
//! comparison of whole clocks. Slots of agents that are gone are used again; `src/clock.rs` proves
//! that this neither hides a race nor invents one.
//!
//! * L. Lamport: Time, Clocks, and the Ordering of Events in a Distributed System. Communications
//!   of the ACM 21(7), 1978.
//! * F. Mattern: Virtual Time and Global States of Distributed Systems. Parallel and Distributed
//!   Algorithms, 1989. C. Fidge has published vector clocks at the same time (1988).
//! * C. Flanagan, S. Freund: FastTrack: Efficient and Precise Dynamic Race Detection. PLDI 2009.
//!
//! The crate contains no driver. Another program sees the calls and reports them to the checker: a
//! software driver, or an observer of a real driver.
//!
//! # Example
//!
//! ```
//! use cuda_order_check_engine::{Access, Call, Checker, EventId, Op, StreamId, ThreadId};
//!
//! let (a, b, event) = (StreamId(0xa), StreamId(0xb), EventId(1));
//! let main = ThreadId(1);
//! let mut checker = Checker::default();
//!
//! // Stream A writes a buffer; stream B reads the second half of it.
//! let upload = Call::new("cuMemcpyHtoDAsync", 1, main);
//! checker.apply(upload, Op::Work { stream: a, accesses: &[Access::write(0x7000, 256)] });
//! let download = Call::new("cuMemcpyDtoHAsync", 2, main);
//! checker.apply(download, Op::Work { stream: b, accesses: &[Access::read(0x7080, 128)] });
//!
//! let findings = checker.take_findings();
//! assert_eq!(
//!     findings[0].to_string(),
//!     "\
//! error: missing order: call #2 (cuMemcpyDtoHAsync) reads what call #1 (cuMemcpyHtoDAsync) writes, \
//! and nothing makes it wait [certain]
//!   bytes    0x7080 to 0x70ff, 128 bytes
//!   writes   cuMemcpyHtoDAsync in stream 0xa, call #1
//!   reads    cuMemcpyDtoHAsync in stream 0xb, call #2
//!   to mend  after call #1 (cuMemcpyHtoDAsync): cuEventRecord(event, <stream 0xa>); before call \
//! #2 (cuMemcpyDtoHAsync): cuStreamWaitEvent(<stream 0xb>, event, 0)"
//! );
//!
//! // With the event there is no finding.
//! let mut checker = Checker::default();
//! let mut number = 0;
//! let mut apply = |name, op: Op<'_>| {
//!     number += 1;
//!     checker.apply(Call::new(name, number, main), op);
//! };
//! apply("cuMemcpyHtoDAsync", Op::Work { stream: a, accesses: &[Access::write(0x7000, 256)] });
//! apply("cuEventRecord", Op::Record { event, stream: a, external: false });
//! apply("cuStreamWaitEvent", Op::Wait { stream: b, event, external: false });
//! apply("cuMemcpyDtoHAsync", Op::Work { stream: b, accesses: &[Access::read(0x7080, 128)] });
//! assert!(checker.take_findings().is_empty());
//! ```
//!
//! # How to feed it
//!
//! [`feed`] takes a CUDA driver's calls. If you observe something else, report operations: call
//! [`Checker::apply`] once for each operation, in the order in which the driver got the calls, and
//! only for calls that the driver accepted. Report a call that waits after its return. [`Op`] lists
//! the operations. You choose the numbers of objects. Handles work well, as long as two objects
//! that live at the same time have different numbers.
//!
//! * Host memory and the memory of all devices are one address space, as in CUDA itself.
//! * A stream's work has accesses: the source and the target of a copy, the range of a memset. A
//!   driver cannot see the accesses of a kernel. Report the kernel without accesses, or with those
//!   that the program declares.
//! * A stream that waits for a value goes on when a write of that value is reported. A host
//!   function is over when its end is reported. Until then the checker holds back the work that
//!   comes after the wait or the host function. If a thread has waited for such work, the work is
//!   done, and the checker no longer holds it back.
//!
//! # Sources of order
//!
//! * Work in a stream is in order. It comes after everything that the submitting thread is ordered
//!   after.
//! * A wait for an event is ordered after the work before the event's last record that was
//!   submitted before the wait. The same holds for records and waits of a whole context.
//! * The legacy default stream waits for the blocking streams of its context, and they wait for it.
//! * A thread is ordered after the work for which it has synchronized, or for which its query
//!   returned that the work is done.
//! * A wait for a value is ordered after the write that ended it. If several writes may have ended
//!   the wait, it is ordered after everything that all of them are ordered after. If no reported
//!   write can have ended the wait, a copy or an unreported writer did. The wait is then ordered
//!   after all copies to the value, so it does not race with a copy.
//! * A graph's nodes are in the order of its edges, and a launch is an operation of its stream.
//! * Threads: see [`HostOrder`].
//! * A wait for an interprocess event is after the records of this process. Records of other
//!   processes are not known here, so a report on that stream names the wait.
//!
//! # Limits
//!
//! The checker misses:
//!
//! * accesses that nobody reports: those of kernels and of other processes, and the program's own
//!   loads and stores;
//! * a race that a waiting thread hides: with [`HostOrder::Submission`], work that one thread
//!   waited for is ordered before all later calls of all threads;
//! * a second race after a reported one. If two accesses are in order, the checker compares only
//!   the later one with the next access. So a report names the nearest access. Fix this error, and
//!   run again.
//!
//! # Cost
//!
//! The checker keeps live objects. It also keeps byte ranges and their accesses until all threads
//! are ordered after them. An operation costs a few look-ups. The cost grows with the number of
//! streams whose work the operation's stream is ordered after, and the host is not yet.
#![cfg_attr(not(feature = "process"), forbid(unsafe_code))]
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

mod agent;
mod allocations;
mod checker;
mod clock;
#[cfg(feature = "process")]
#[doc(hidden)]
pub mod exit;
pub mod feed;
#[doc(hidden)]
pub mod files;
pub mod findings;
mod form;
mod frames;
mod graph;
#[cfg(all(feature = "process", target_os = "linux", target_pointer_width = "64"))]
#[doc(hidden)]
pub mod hide;
mod json;
#[doc(hidden)]
pub mod map;
#[cfg(all(
    feature = "process",
    target_os = "linux",
    target_pointer_width = "64",
    target_endian = "little"
))]
mod object;
mod op;
#[cfg(all(feature = "process", target_os = "linux"))]
#[doc(hidden)]
pub mod own_memory;
#[cfg(all(feature = "process", target_os = "linux"))]
#[doc(hidden)]
pub mod pipe;
mod report;
mod sarif;
mod shadow;
#[cfg(all(feature = "process", target_os = "linux", target_arch = "x86_64"))]
mod stack;
#[cfg(all(feature = "process", target_os = "linux"))]
#[doc(hidden)]
pub mod stand_in;
mod task;
#[cfg(feature = "process")]
#[doc(hidden)]
pub mod trace;
mod values;

pub use agent::Agent;
pub use allocations::Allocation;
pub use checker::{Checker, HostOrder, Options, Size, Warnings};
pub use op::{
    Access, AccessKind, Backtrace, By, Call, Cell, Compare, ContextId, EventId, FunctionId,
    GraphId, Launch, Launched, Location, Node, NodeWork, Op, Other, StreamId, StreamKind, Stride,
    ThreadId, TokenId, What,
};
pub use report::{Finding, Problem, Report, Side, Warning};
pub use task::Mark;

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
