//! The part of NCCL that the example calls, for the software driver. The real NCCL consists of
//! kernels, which do not run there.
//!
//! An all-reduce consists of host functions that add, between events. The order checker gets
//! reports of the accesses that a kernel would make. The ranks are all in one process.

#![allow(clippy::missing_safety_doc, reason = "the contract of each is NCCL's own")]

use std::cell::{Cell, RefCell};
use std::ffi::{c_char, c_int, c_void};

use cuda_events::sys::{CUdeviceptr, CUresult, CUstream};
use cuda_events::{Driver, Event, EventFlags, StreamRef};

const SUCCESS: c_int = 0;
const UNHANDLED_CUDA_ERROR: c_int = 1;
const INVALID_ARGUMENT: c_int = 4;
const INVALID_USAGE: c_int = 5;

type Tell = unsafe extern "C" fn(CUstream, CUdeviceptr, usize) -> CUresult;

/// One rank. The handle of a communicator is its address.
pub struct Comm {
    ranks: usize,
}

/// The request of a rank in a group.
struct Asked {
    ranks: usize,
    from: usize,
    to: usize,
    words: usize,
    stream: CUstream,
}

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    static GROUP: RefCell<Vec<Asked>> = const { RefCell::new(Vec::new()) };
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclGetVersion(version: *mut c_int) -> c_int {
    // SAFETY: the caller's place.
    unsafe { version.write(0) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclGetErrorString(code: c_int) -> *const c_char {
    let text = match code {
        SUCCESS => c"no error",
        UNHANDLED_CUDA_ERROR => c"unhandled cuda error",
        INVALID_ARGUMENT => c"invalid argument",
        _ => c"invalid usage",
    };
    text.as_ptr()
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclGetLastError(_comm: *mut Comm) -> *const c_char {
    c"".as_ptr()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommInitAll(
    comms: *mut *mut Comm,
    ranks: c_int,
    _devices: *const c_int,
) -> c_int {
    let Ok(ranks) = usize::try_from(ranks) else { return INVALID_ARGUMENT };
    for rank in 0..ranks {
        // SAFETY: the caller has so many places.
        unsafe { comms.add(rank).write(Box::into_raw(Box::new(Comm { ranks }))) };
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommDestroy(comm: *mut Comm) -> c_int {
    // SAFETY: it is from a function above, and not used again.
    drop(unsafe { Box::from_raw(comm) });
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommAbort(comm: *mut Comm) -> c_int {
    // SAFETY: the same.
    unsafe { ncclCommDestroy(comm) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommGetAsyncError(_comm: *const Comm, code: *mut c_int) -> c_int {
    // SAFETY: the caller's place.
    unsafe { code.write(SUCCESS) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclGroupStart() -> c_int {
    DEPTH.set(DEPTH.get() + 1);
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclGroupEnd() -> c_int {
    DEPTH.set(DEPTH.get().saturating_sub(1));
    if DEPTH.get() > 0 { SUCCESS } else { start(GROUP.take()) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclAllReduce(
    from: *const c_void,
    to: *mut c_void,
    words: usize,
    kind: c_int,
    operation: c_int,
    comm: *const Comm,
    stream: CUstream,
) -> c_int {
    // Sums of uint32.
    if (kind, operation) != (3, 0) {
        return INVALID_ARGUMENT;
    }
    // SAFETY: it is from a function above.
    let Comm { ranks } = unsafe { &*comm };
    let asked = Asked { ranks: *ranks, from: from.addr(), to: to.addr(), words, stream };
    GROUP.with_borrow_mut(|group| group.push(asked));
    if DEPTH.get() > 0 { SUCCESS } else { start(GROUP.take()) }
}

/// Starts what a group has asked for: each rank once, all with as many words.
fn start(group: Vec<Asked>) -> c_int {
    let Some(first) = group.first() else { return SUCCESS };
    if group.len() != first.ranks || group.iter().any(|asked| asked.words != first.words) {
        return INVALID_USAGE;
    }
    match all_reduce(&group) {
        Ok(()) => SUCCESS,
        Err(error) => {
            eprintln!("fake NCCL: {error}");
            UNHANDLED_CUDA_ERROR
        }
    }
}

fn all_reduce(group: &[Asked]) -> Result<(), Box<dyn std::error::Error>> {
    // The one that the program has as well: both follow CUDA_EVENTS_DRIVER.
    let driver = Driver::load()?;
    let library = driver.library().ok_or("the driver has no library")?.to_owned();
    // SAFETY: it is loaded already.
    let library = unsafe { libloading::Library::new(library) }?;
    // SAFETY: the software driver's own functions, which exist on no other driver.
    let [reads, writes]: [Tell; 2] = unsafe {
        [*library.get(b"cuda_soft_driver_reads\0")?, *library.get(b"cuda_soft_driver_writes\0")?]
    };
    let streams = group.iter().map(|asked| {
        // SAFETY: the caller's stream, which lives until the operation has ended.
        unsafe { StreamRef::from_foreign(driver, asked.stream) }
    });
    let streams = streams.collect::<Result<Vec<_>, _>>()?;
    let (Some(first), words) = (streams.first(), group.first().map_or(0, |asked| asked.words))
    else {
        return Ok(());
    };
    // First the earlier work of all ranks, then the sum in the first one's stream, then their later
    // work.
    let arrive = |stream: &StreamRef, waits: &StreamRef| -> cuda_events::Result<()> {
        let event = Event::new(stream.context(), EventFlags::empty())?;
        event.record(stream)?;
        waits.wait_event(&event)
    };
    streams.iter().skip(1).try_for_each(|stream| arrive(stream, first))?;
    for asked in group {
        for (declare, address) in [(reads, asked.from), (writes, asked.to)] {
            // SAFETY: no pointer is dereferenced.
            unsafe { declare(first.as_raw(), address as CUdeviceptr, 4 * words) };
        }
    }
    let addresses: Vec<(usize, usize)> = group.iter().map(|asked| (asked.from, asked.to)).collect();
    first.launch_host_function(move || {
        let at = std::ptr::with_exposed_provenance_mut::<u32>;
        for word in 0..words {
            // The software driver's device memory is the process's own.
            let sum = addresses.iter().fold(0_u32, |sum, (from, _)| {
                // SAFETY: the ranks' buffers have so many words.
                sum.wrapping_add(unsafe { at(*from).add(word).read() })
            });
            for (_, to) in &addresses {
                // SAFETY: the same.
                unsafe { at(*to).add(word).write(sum) };
            }
        }
    })?;
    streams.iter().skip(1).try_for_each(|stream| arrive(first, stream))?;
    Ok(())
}
