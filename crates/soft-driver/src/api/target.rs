//! The stream that a report or other helper of a test is about.

use core::ptr::without_provenance_mut;

use cuda_events::StreamRef;

use crate::abi::*;
use crate::arg::{Arg, StreamArg};
use crate::machine::Machine;
use crate::machine::call_frame::{CallFrame, EntryPoint};

/// A stream, and the context that a default stream belongs to.
#[derive(Clone, Copy)]
pub(super) struct Target {
    stream: CUstream,
    /// The handle of the context; without one it is the thread's current context, as in a call of
    /// the driver.
    context: Option<u64>,
}

impl Target {
    /// The stream of a test in Rust, whichever context is current. NULL may mean either default
    /// stream to its driver, so the handle says which.
    pub(super) fn of(stream: &StreamRef) -> Self {
        let (_, handle) = stream.cuda_stream();
        let context = stream.context().as_raw().addr() as u64;
        Self { stream: without_provenance_mut(handle), context: Some(context) }
    }

    /// A handle of another language.
    pub(super) fn of_current(stream: CUstream) -> Self {
        Self { stream, context: None }
    }

    /// A call about the stream.
    pub(super) fn call(self, entry: &'static EntryPoint, machine: &'static Machine) -> CallFrame {
        let Self { context, .. } = self;
        CallFrame { machine, entry, number: machine.count_call(), epoch: machine.epoch(), context }
    }

    pub(super) fn argument(self) -> StreamArg {
        // SAFETY: a handle value, which is never dereferenced.
        unsafe { Arg::take(self.stream) }
    }
}
