//! What a program tells of its own accesses, and what the order checker found.

use core::panic::Location;

use cuda_events::StreamRef;
use cuda_order_check::Access;

use crate::abi::*;
use crate::api::driver::SoftDriver;
use crate::api::shared_library::shared_library;
use crate::arg::{Arg, StreamArg};
use crate::calls::order::tell_access;
use crate::model::call_frame::{CallFrame, EntryPoint, Id};
use crate::model::machine::Machine;

macro_rules! told {
    ($($name:ident = $text:literal;)*) => {$(
        /// As reports name it. It is no export.
        static $name: EntryPoint =
            EntryPoint { id: Id(u16::MAX), name: $text, per_thread: false };
    )*};
}

told! {
    READS = "reads";
    WRITES = "writes";
    HOST_READS = "host_reads";
    HOST_WRITES = "host_writes";
}

fn tell(
    machine: &'static Machine,
    stream: Option<CUstream>,
    (address, bytes): (u64, usize),
    write: bool,
    location: Option<&'static Location<'static>>,
) -> Answer {
    let of = match (stream.is_some(), write) {
        (true, false) => &READS,
        (true, true) => &WRITES,
        (false, false) => &HOST_READS,
        (false, true) => &HOST_WRITES,
    };
    let call = CallFrame { machine, of, number: machine.count_call(), epoch: machine.epoch() };
    let access = if write { Access::write } else { Access::read }(address, bytes as u64);
    // SAFETY: a handle value, which is never dereferenced.
    let stream: Option<StreamArg> = stream.map(|stream| unsafe { Arg::take(stream) });
    tell_access(&call, stream, access, location)
}

/// What no driver sees: the accesses of kernels, and the host's own. Where the
/// [order checker](crate::OrderCheck) is off these do nothing. Each counts as a call, so that
/// reports can number it.
impl SoftDriver {
    /// Tells the order checker that a kernel, or other work that the program puts into a stream now,
    /// reads `bytes` bytes from `address` on. In a stream that is captured it becomes a node of the
    /// graph, which looks like an empty one.
    ///
    /// # Panics
    ///
    /// When the stream cannot be worked with, as a launch into it could not.
    #[track_caller]
    pub fn reads(&self, stream: &StreamRef, address: CUdeviceptr, bytes: usize) {
        self.told(Some(stream.as_raw()), (address, bytes), false);
    }

    /// As [`reads`](Self::reads), of bytes that are written.
    ///
    /// # Panics
    ///
    /// When the stream cannot be worked with, as a launch into it could not.
    #[track_caller]
    pub fn writes(&self, stream: &StreamRef, address: CUdeviceptr, bytes: usize) {
        self.told(Some(stream.as_raw()), (address, bytes), true);
    }

    /// Tells the order checker that the host itself reads `bytes` bytes of pinned memory from
    /// `memory` on, at this place in the sequence of its calls.
    #[track_caller]
    pub fn host_reads<T>(&self, memory: *const T, bytes: usize) {
        self.told(None, (memory.addr() as u64, bytes), false);
    }

    /// As [`host_reads`](Self::host_reads), of bytes that the host writes.
    #[track_caller]
    pub fn host_writes<T>(&self, memory: *const T, bytes: usize) {
        self.told(None, (memory.addr() as u64, bytes), true);
    }

    #[track_caller]
    fn told(&self, stream: Option<CUstream>, range: (u64, usize), write: bool) {
        let here = Location::caller();
        if let Err(code) = tell(self.machine(), stream, range, write, Some(here)) {
            panic!("nothing can be told of this stream or driver: {}", code.0);
        }
    }
}

/// The exported forms: in stream order where a stream is given, else of the host itself.
#[doc(hidden)]
pub fn tell_shared_library(
    stream: Option<CUstream>,
    address: CUdeviceptr,
    bytes: usize,
    write: bool,
) -> CUresult {
    match tell(shared_library().machine(), stream, (address, bytes), write, None) {
        Ok(()) => SUCCESS,
        Err(code) => code,
    }
}
