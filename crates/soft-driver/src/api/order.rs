//! The program's reports of its own accesses, and the findings of the order checker.

use core::ffi::{CStr, c_char};
use core::panic::Location;

use cuda_events::StreamRef;
use cuda_order_check::{Access, Cell, TokenId};

use crate::abi::*;
use crate::api::driver::SoftDriver;
use crate::api::shared_library::shared_library;
use crate::arg::{Arg, StreamArg};
use crate::graph::NodeKind;
use crate::machine::call_frame::{CallFrame, EntryPoint, Id};
use crate::machine::{Machine, State};
use crate::order::Feed;

macro_rules! reports {
    ($($name:ident = $text:literal;)*) => {$(
        /// The name in reports. It is not an exported function.
        static $name: EntryPoint =
            EntryPoint { id: Id(u16::MAX), name: $text, per_thread: false };
    )*};
}

reports! {
    READS = "reads";
    WRITES = "writes";
    HOST_READS = "host_reads";
    HOST_WRITES = "host_writes";
    HAND_OVER = "hand_over";
    TAKE_OVER = "take_over";
    HOST_SAW = "host_saw";
    NAME_STREAM = "name_stream";
}

fn call(of: &'static EntryPoint, machine: &'static Machine) -> CallFrame {
    CallFrame { machine, of, number: machine.count_call(), epoch: machine.epoch() }
}

/// Makes a report, if the order is checked.
fn report(
    call: &CallFrame,
    location: Option<&'static Location<'static>>,
    make: impl FnOnce(&mut State) -> Answer,
) -> Answer {
    let mut state = call.ready()?;
    let location = location.map(Into::into);
    let begun = state.feed(|feed, _| feed.begin(call.name(), call.number, location));
    if begun.is_some() { make(&mut state) } else { Ok(()) }
}

/// Bytes are accessed in stream order, or by the host itself. An access of a stream that is
/// captured is a node of the graph, which looks like an empty one.
fn access_of(
    call: &CallFrame,
    location: Option<&'static Location<'static>>,
    stream: Option<StreamArg>,
    access: Access,
) -> Answer {
    report(call, location, |state| {
        let Some(stream) = stream else {
            state.feed(|feed, _| feed.host(&[access]));
            return Ok(());
        };
        let stream = state.stream(call, stream)?;
        let State { captures, streams, graphs, .. } = &mut *state;
        let node = || NodeKind::Declared(vec![access.clone()]);
        if !captures.add(streams, graphs, call, stream, node)? {
            state.feed(|feed, of| feed.work(of.stream(stream), &[access]));
        }
        Ok(())
    })
}

fn access(
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
    let access = if write { Access::write } else { Access::read }(address, bytes as u64);
    // SAFETY: a handle value, which is never dereferenced.
    let stream: Option<StreamArg> = stream.map(|stream| unsafe { Arg::take(stream) });
    access_of(&call(of, machine), location, stream, access)
}

/// A report about the host alone.
fn host(
    machine: &'static Machine,
    of: &'static EntryPoint,
    location: Option<&'static Location<'static>>,
    give: impl FnOnce(&mut Feed),
) -> Answer {
    report(&call(of, machine), location, |state| {
        state.feed(|feed, _| give(feed));
        Ok(())
    })
}

fn hand(
    machine: &'static Machine,
    token: u64,
    over: bool,
    location: Option<&'static Location<'static>>,
) -> Answer {
    let token = TokenId(token);
    match over {
        true => host(machine, &HAND_OVER, location, |feed| feed.hand_over(token)),
        false => host(machine, &TAKE_OVER, location, |feed| feed.take_over(token)),
    }
}

fn saw(
    machine: &'static Machine,
    (address, bytes): (u64, usize),
    value: u64,
    location: Option<&'static Location<'static>>,
) -> Answer {
    let bytes = match bytes {
        4 | 8 => bytes as u8,
        _ => return Err(INVALID_VALUE),
    };
    let cell = Cell { address, bytes };
    host(machine, &HOST_SAW, location, |feed| feed.saw_value(cell, value))
}

/// A crate on top of `cuda-events` has read a word that streams write, on this thread.
pub(super) fn read(machine: &'static Machine, epoch: u64, address: usize, value: u64) {
    // The driver may have ended, and another one have taken its place.
    if machine.epoch() == epoch {
        let _ = saw(machine, (address as u64, 8), value, None);
    }
}

fn name_stream(machine: &'static Machine, stream: CUstream, name: &str) -> Answer {
    // SAFETY: a handle value, which is never dereferenced.
    let stream: StreamArg = unsafe { Arg::take(stream) };
    let call = call(&NAME_STREAM, machine);
    report(&call, None, |state| {
        let stream = state.stream(&call, stream)?;
        state.feed(|feed, of| feed.stream_name(of.stream(stream), name));
        Ok(())
    })
}

/// # Accesses
///
/// These methods tell the [order checker](crate::OrderCheck) about accesses that a driver cannot
/// see: those of kernels, and the host's own. While the checker is off they record nothing. Each
/// counts as a driver call, and a finding gives the number of the call.
impl SoftDriver {
    /// Reports a read by a kernel or other work that the program submits to the stream now.
    /// `address` and `bytes` are the start and the size of the memory.
    ///
    /// In a capturing stream the report becomes an empty node of the graph.
    ///
    /// # Panics
    ///
    /// If a kernel launch in this stream would fail, for example because the context has failed.
    /// The use of a destroyed stream is a misuse: see [`OnMisuse`](crate::OnMisuse).
    #[track_caller]
    pub fn reads(&self, stream: &StreamRef, address: CUdeviceptr, bytes: usize) {
        self.access(Some(stream.as_raw()), (address, bytes), false);
    }

    /// Like [`reads`](Self::reads), for a write.
    ///
    /// # Panics
    ///
    /// In the cases of [`reads`](Self::reads).
    #[track_caller]
    pub fn writes(&self, stream: &StreamRef, address: CUdeviceptr, bytes: usize) {
        self.access(Some(stream.as_raw()), (address, bytes), true);
    }

    /// Reports that the host reads memory now. `memory` and `bytes` are its start and its size. The
    /// memory may be pinned or not.
    ///
    /// [`hand_over`](Self::hand_over) has an example.
    #[track_caller]
    pub fn host_reads<T>(&self, memory: *const T, bytes: usize) {
        self.access(None, (memory.addr() as u64, bytes), false);
    }

    /// Like [`host_reads`](Self::host_reads), for a write.
    ///
    /// [`hand_over`](Self::hand_over) has an example.
    #[track_caller]
    pub fn host_writes<T>(&self, memory: *const T, bytes: usize) {
        self.access(None, (memory.addr() as u64, bytes), true);
    }

    /// Reports that the calling thread or host function is about to unlock a lock, to send a
    /// message, or to end.
    ///
    /// Another thread then locks the lock, receives the message, or joins the thread. Afterwards it
    /// calls [`take_over`](Self::take_over) with the same number. For the checker, everything before
    /// `hand_over` then comes before everything after `take_over`. The program chooses the number,
    /// for example the address of the lock or the channel. The call has an effect only with
    /// [`HostOrder::Reported`](crate::HostOrder::Reported).
    ///
    /// ```
    /// use cuda_events::{Context, Device};
    /// use cuda_soft_driver::{HostOrder, OrderCheck, SoftDriver};
    ///
    /// let builder = SoftDriver::builder().check_order(OrderCheck::Report);
    /// let soft = builder.order_host(HostOrder::Reported).build();
    /// let context = Context::primary(Device::new(soft.driver(), 0)?)?;
    /// let words = [0_u32; 16];
    /// std::thread::scope(|scope| {
    ///     let writer = scope.spawn(|| {
    ///         soft.host_writes(&words, 64);
    ///         soft.hand_over(1); // before the thread ends
    ///     });
    ///     writer.join().unwrap();
    ///     soft.take_over(1); // after it was joined
    ///     soft.host_reads(&words, 64);
    /// });
    /// // Without `hand_over` and `take_over` the checker cannot see that the join orders the two.
    /// assert!(soft.order_findings().is_empty());
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    #[track_caller]
    pub fn hand_over(&self, token: u64) {
        good(hand(self.machine(), token, true, Some(Location::caller())));
    }

    /// Reports that the calling thread or host function has locked a lock, received a message, or
    /// joined a thread. `token` is the number that was passed to [`hand_over`](Self::hand_over).
    ///
    /// [`hand_over`](Self::hand_over) has an example.
    #[track_caller]
    pub fn take_over(&self, token: u64) {
        good(hand(self.machine(), token, false, Some(Location::caller())));
    }

    /// Reports that the host has read `value` at `memory`, where a stream writes values
    /// (`cuStreamWriteValue32` and `64`).
    ///
    /// The checker then knows that the stream had come to the write of this value. The call has an effect only with [`HostOrder::Reported`](crate::HostOrder::Reported).
    ///
    /// # Panics
    ///
    /// If the size of `T` is not 4 or 8 bytes.
    #[track_caller]
    pub fn host_saw<T>(&self, memory: *const T, value: u64) {
        let word = (memory.addr() as u64, size_of::<T>());
        good(saw(self.machine(), word, value, Some(Location::caller())));
    }

    /// Gives a stream a name, which reports of the [order checker](crate::OrderCheck) show beside
    /// its handle. A later name replaces it.
    ///
    /// ```
    /// use cuda_events::{Context, Device, Stream, StreamOptions};
    /// use cuda_soft_driver::{OrderCheck, SoftDriver};
    ///
    /// let soft = SoftDriver::builder().check_order(OrderCheck::Report).build();
    /// let context = Context::primary(Device::new(soft.driver(), 0)?)?;
    /// let uploads = Stream::new(&context, StreamOptions::new())?;
    /// let work = Stream::new(&context, StreamOptions::new())?;
    /// soft.name_stream(&uploads, "uploads");
    /// soft.writes(&uploads, 0x7000, 256);
    /// soft.reads(&work, 0x7000, 256);
    ///
    /// let findings = soft.order_findings();
    /// assert_eq!(findings[0].first.agent.stream_name().as_deref(), Some("uploads"));
    /// assert!(findings[0].to_string().contains("\"uploads\" was created by call #"));
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// In the cases of [`reads`](Self::reads).
    #[track_caller]
    pub fn name_stream(&self, stream: &StreamRef, name: &str) {
        good(name_stream(self.machine(), stream.as_raw(), name));
    }

    #[track_caller]
    fn access(&self, stream: Option<CUstream>, range: (u64, usize), write: bool) {
        good(access(self.machine(), stream, range, write, Some(Location::caller())));
    }
}

#[track_caller]
fn good(answer: Answer) {
    if let Err(code) = answer {
        panic!("this stream, value or driver accepts no report: {}", code.0);
    }
}

fn code(answer: Answer) -> CUresult {
    answer.err().unwrap_or(SUCCESS)
}

/// The exported forms: in stream order where a stream is given, otherwise of the host itself.
#[doc(hidden)]
pub fn tell_shared_library(
    stream: Option<CUstream>,
    address: CUdeviceptr,
    bytes: usize,
    write: bool,
) -> CUresult {
    code(access(shared_library().machine(), stream, (address, bytes), write, None))
}

/// The exported forms of `hand_over` and `take_over`.
#[doc(hidden)]
pub fn hand_shared_library(token: u64, over: bool) -> CUresult {
    code(hand(shared_library().machine(), token, over, None))
}

/// The exported form of `name_stream`.
///
/// # Safety
///
/// `name` must be NULL or a C string.
#[doc(hidden)]
pub unsafe fn name_stream_shared_library(stream: CUstream, name: *const c_char) -> CUresult {
    if name.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: a C string, as the caller promises.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    code(name_stream(shared_library().machine(), stream, &name))
}

/// The exported form of `host_saw`.
#[doc(hidden)]
pub fn saw_shared_library(address: CUdeviceptr, value: u64, bytes: usize) -> CUresult {
    code(saw(shared_library().machine(), (address, bytes), value, None))
}

#[cfg(test)]
mod tests {
    use core::ffi::c_void;
    use core::ptr::null_mut;

    use super::*;
    use crate::{OnMisuse, OrderCheck};

    unsafe extern "C" fn nothing(_: *mut c_void) {}

    /// Many operations: accesses, records, waits, values that the host can see, and host
    /// functions. The host waits now and then.
    #[test]
    fn many_operations_are_forgotten() {
        const ROUNDS: u64 = 10_000;
        let builder = SoftDriver::builder().on_misuse(OnMisuse::Error);
        let soft = builder.check_order(OrderCheck::Report).build();
        let symbols = *soft.driver().symbols();
        let (mut context, mut memory) = (null_mut(), null_mut());
        let (mut streams, mut event) = ([null_mut(); 2], null_mut());
        let good = |code: CUresult| assert_eq!(code, SUCCESS);
        // SAFETY: places for the handles, and handles that the driver gave out; the function needs
        // nothing.
        unsafe {
            good((symbols.cuInit)(0));
            good((symbols.cuDevicePrimaryCtxRetain)(&mut context, 0));
            good((symbols.cuCtxSetCurrent)(context));
            good((symbols.cuMemHostAlloc)(&mut memory, 4096, 0));
            for stream in &mut streams {
                good((symbols.cuStreamCreate)(stream, 1));
            }
            let address = memory.addr() as u64;
            let write = symbols.cuStreamWriteValue32_v2.expect("it is there");
            let wait = symbols.cuStreamWaitValue32_v2.expect("it is there");
            let machine = soft.machine();
            let work = |stream, at: u64, write| {
                access(machine, Some(stream), (address + 64 * at, 64), write, None).expect("given");
            };
            for round in 0..ROUNDS {
                for (one, other) in [(streams[0], streams[1]), (streams[1], streams[0])] {
                    // An event for each hand-over, which is then gone.
                    good((symbols.cuEventCreate)(&mut event, 2));
                    work(one, 1, true);
                    good((symbols.cuEventRecord)(event, one));
                    good((symbols.cuStreamWaitEvent)(other, event, 0));
                    work(other, 1, false);
                    good((symbols.cuEventDestroy_v2)(event));
                }
                if round % 100 == 0 {
                    let value = round as u32 + 1;
                    good(write(streams[0], address, value, 0));
                    good(wait(streams[1], address, value, CU_STREAM_WAIT_VALUE_GEQ));
                    good((symbols.cuLaunchHostFunc)(streams[1], Some(nothing), null_mut()));
                }
                if round % 10_000 == 9_999 {
                    good((symbols.cuStreamSynchronize)(streams[1]));
                    let size = soft.machine().lock().feed(|feed, _| feed.size());
                    let (size, here) = size.expect("it is on");
                    assert!(size.ranges < 16 && size.agents < 16, "{size:?}, round {round}");
                    assert_eq!((size.tasks, here), (0, 0), "after {round} rounds");
                }
            }
            assert!(soft.calls() > 10 * ROUNDS);
        }
        assert!(soft.order_findings().is_empty());
    }
}
