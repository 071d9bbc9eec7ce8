//! Work of a given duration.

use core::time::Duration;

use cuda_events::StreamRef;

use crate::abi::*;
use crate::api::driver::SoftDriver;
use crate::api::shared_library::shared_library;
use crate::arg::Arg;
use crate::calls::busy::busy;
use crate::model::call_frame::{CallFrame, EntryPoint, Id};
use crate::model::machine::Machine;

/// As reports name it. It is no export.
static BUSY: EntryPoint = EntryPoint { id: Id(u16::MAX), name: "busy", per_thread: false };

fn submit(machine: &'static Machine, stream: CUstream, duration: Duration) -> Answer {
    let call =
        CallFrame { machine, of: &BUSY, number: machine.count_call(), epoch: machine.epoch() };
    // SAFETY: a handle value, which is never dereferenced.
    busy(&call, unsafe { Arg::take(stream) }, duration)
}

impl SoftDriver {
    /// Gives a stream work that takes so long, as a kernel would: when the stream comes to it, the
    /// stream is busy for `duration`, and what comes after it in the stream waits. Other streams go
    /// on meanwhile, and any number of them are busy at the same time. In a stream that is captured
    /// it becomes a node of the graph, which looks like an empty one.
    ///
    /// In [virtual time](crate::Time::Virtual) nothing sleeps. The stream is done when
    /// [`advance`](Self::advance) has moved the time so far, or when a thread waits in a call: then
    /// time moves by itself, as soon as nothing else is left to do, to the end of whichever stream
    /// is done next. A query moves no time: a program that only polls needs `advance`. Functions of
    /// the program take no virtual time; one that runs for more than some milliseconds while a
    /// thread waits is left behind.
    ///
    /// It counts as a call, and the shared library exports it as `CUresult
    /// cuda_soft_driver_busy(CUstream stream, uint64_t nanoseconds)`.
    ///
    /// # Panics
    ///
    /// When the stream cannot be worked with, as a launch into it could not.
    #[track_caller]
    pub fn busy(&self, stream: &StreamRef, duration: Duration) {
        if let Err(code) = submit(self.machine(), stream.as_raw(), duration) {
            panic!("nothing can be given to this stream or driver: {}", code.0);
        }
    }
}

/// The exported form.
#[doc(hidden)]
pub fn busy_shared_library(stream: CUstream, nanoseconds: u64) -> CUresult {
    match submit(shared_library().machine(), stream, Duration::from_nanos(nanoseconds)) {
        Ok(()) => SUCCESS,
        Err(code) => code,
    }
}
