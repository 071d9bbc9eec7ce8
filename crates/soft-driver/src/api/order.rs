//! The program's reports of its own accesses, and the findings of the order checker.

use core::ffi::{CStr, c_char};
use core::panic::Location;

use cuda_events::StreamRef;

use crate::abi::*;
use crate::api::accesses::{access, hand, name_stream, saw};
use crate::api::driver::SoftDriver;
use crate::api::shared_library::shared_library;
use crate::api::target::Target;

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
        report(self, Some(Target::of(stream)), (address, bytes), false);
    }

    /// Like [`reads`](Self::reads), for a write.
    ///
    /// # Panics
    ///
    /// In the cases of [`reads`](Self::reads).
    #[track_caller]
    pub fn writes(&self, stream: &StreamRef, address: CUdeviceptr, bytes: usize) {
        report(self, Some(Target::of(stream)), (address, bytes), true);
    }

    /// Reports that the host reads memory now. `memory` and `bytes` are its start and its size. The
    /// memory may be pinned or not.
    ///
    /// [`hand_over`](Self::hand_over) has an example.
    #[track_caller]
    pub fn host_reads<T>(&self, memory: *const T, bytes: usize) {
        report(self, None, (memory.addr() as u64, bytes), false);
    }

    /// Like [`host_reads`](Self::host_reads), for a write.
    ///
    /// [`hand_over`](Self::hand_over) has an example.
    #[track_caller]
    pub fn host_writes<T>(&self, memory: *const T, bytes: usize) {
        report(self, None, (memory.addr() as u64, bytes), true);
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
    /// assert!(findings[0].to_string().contains("in stream `uploads`"));
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// In the cases of [`reads`](Self::reads).
    #[track_caller]
    pub fn name_stream(&self, stream: &StreamRef, name: &str) {
        good(name_stream(self.machine(), Target::of(stream), name));
    }
}

#[track_caller]
fn report(soft: &SoftDriver, stream: Option<Target>, range: (u64, usize), write: bool) {
    good(access(soft.machine(), stream, range, write, Some(Location::caller())));
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
pub fn access_shared_library(
    stream: Option<CUstream>,
    address: CUdeviceptr,
    bytes: usize,
    write: bool,
) -> CUresult {
    let stream = stream.map(Target::of_current);
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
    code(name_stream(shared_library().machine(), Target::of_current(stream), &name))
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
                let (stream, range) = (Target::of_current(stream), (address + 64 * at, 64));
                access(machine, Some(stream), range, write, None).expect("given");
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
