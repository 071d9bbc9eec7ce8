//! Work of a given duration.

use core::time::Duration;

use cuda_events::StreamRef;

use crate::abi::*;
use crate::api::driver::SoftDriver;
use crate::api::shared_library::shared_library;
use crate::api::target::Target;
use crate::arg::StreamArg;
use crate::engine::work::Task;
use crate::graph::NodeKind;
use crate::machine::call_frame::{CallFrame, EntryPoint, Id};
use crate::machine::config::Time;
use crate::machine::{Machine, State};

/// As reports name it. It is no export.
static BUSY: EntryPoint = EntryPoint { id: Id(u16::MAX), name: "busy", per_thread: false };

fn submit(machine: &'static Machine, stream: Target, duration: Duration) -> Answer {
    busy(&stream.call(&BUSY, machine), stream.argument(), duration)
}

/// The stream is busy for so long once it comes to this. While it is captured that is a node.
fn busy(call: &CallFrame, stream: StreamArg, duration: Duration) -> Answer {
    let mut state = call.ready()?;
    let stream = state.stream(call, stream)?;
    if state.config.work.time == Time::Real {
        state.engine.threads.ensure_timer(call.machine)?;
    }
    let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    let State { captures, streams, graphs, .. } = &mut *state;
    if !captures.add(streams, graphs, call.number, stream, || NodeKind::Busy(ns))? {
        state.running().submit(stream, Task::Busy(ns));
    }
    Ok(())
}

/// # Work that takes time
impl SoftDriver {
    /// Keeps a stream busy for `duration`, as a kernel would.
    ///
    /// When the stream reaches this work, it is busy, and its later work waits. Other streams go
    /// on, and any number of streams can be busy at the same time. In a capturing stream the work
    /// becomes an empty node of the graph.
    ///
    /// In [virtual time](Time::Virtual) nothing sleeps. The stream is done when
    /// [`advance`](Self::advance) has moved the time far enough. Time also moves by itself when
    /// everything waits; [`Time::Virtual`] has the rules.
    ///
    /// This method counts as a driver call. C programs call it as `CUresult
    /// cuda_soft_driver_busy(CUstream stream, uint64_t nanoseconds)`.
    ///
    /// # Panics
    ///
    /// If a kernel launch in this stream would fail, for example because the context has failed.
    #[track_caller]
    pub fn busy(&self, stream: &StreamRef, duration: Duration) {
        if let Err(code) = submit(self.machine(), Target::of(stream), duration) {
            panic!("this stream or driver accepts no work: {}", code.0);
        }
    }
}

/// The exported form.
#[doc(hidden)]
pub fn busy_shared_library(stream: CUstream, nanoseconds: u64) -> CUresult {
    let stream = Target::of_current(stream);
    match submit(shared_library().machine(), stream, Duration::from_nanos(nanoseconds)) {
        Ok(()) => SUCCESS,
        Err(code) => code,
    }
}
