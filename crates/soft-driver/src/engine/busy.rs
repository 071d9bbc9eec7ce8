//! Work of a given duration: a stream is busy until a time, and does nothing else meanwhile. Any
//! number of streams are at the same time.

use core::time::Duration;
use std::collections::BTreeMap;

use crate::abi::*;
use crate::arg::StreamArg;
use crate::engine::work::Task;
use crate::graph::NodeKind;
use crate::machine::call_frame::CallFrame;
use crate::machine::config::Time;

/// The streams that are busy, by the time at which each is done and by the order of their begin.
pub(crate) struct Busy {
    pub(crate) until: BTreeMap<(u64, u64), (u32, u64)>,
    pub(crate) begun: u64,
}

/// Whether virtual time may go on while a thread of the program waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Passing {
    /// Nothing else is left to do.
    Now,
    /// Only functions of the program run. They may take as long as they like, or wait for the very
    /// thread that waits.
    Soon,
    /// Work that takes no time in this sense is left, or nothing is busy.
    No,
}

impl Busy {
    pub(crate) const fn new() -> Self {
        Self { until: BTreeMap::new(), begun: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.until.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.until.clear();
    }

    /// When the next one is done.
    pub(crate) fn next(&self) -> Option<u64> {
        self.until.first_key_value().map(|(key, _)| key.0)
    }
}

/// The stream is busy for so long once it comes to this. While it is captured that is a node.
pub(crate) fn busy(call: &CallFrame, stream: StreamArg, duration: Duration) -> Answer {
    let mut state = call.ready()?;
    let stream = state.stream(call, stream)?;
    if state.config.time == Time::Real {
        state.ensure_timer_thread(call.machine)?;
    }
    let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    if !state.captured(stream, NodeKind::Busy(ns))? {
        state.submit(call.machine, stream, Task::Busy(ns));
    }
    Ok(())
}
