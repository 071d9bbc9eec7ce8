//! Work of a given duration, which no real driver has: what a kernel is to a scheduler.

use core::time::Duration;

use crate::abi::*;
use crate::arg::StreamArg;
use crate::graph::NodeKind;
use crate::model::call_frame::CallFrame;
use crate::model::config::Time;
use crate::model::work::Task;

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
