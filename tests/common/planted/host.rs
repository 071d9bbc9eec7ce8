//! What the host is after without a call that waits: frees, copies on the host, flags that it
//! polls, and destructors.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};

use cuda_events::sys::*;
use cuda_soft_driver::abi::CUDA_MEMCPY2D;

use super::{Desk, FREED, RACE, Row, word, word_address};
use crate::raw::*;
use crate::rows::{device, host, rows};

/// Memory that is allocated at once, and freed in the course of the program.
pub fn allocated(p: &Desk<'_>, bytes: usize) -> CUdeviceptr {
    let mut address = 0;
    p.number(unsafe { (p.raw.cuMemAlloc_v2)(&mut address, bytes) });
    address
}

fn pooled(p: &Desk<'_>) -> CUdeviceptr {
    let mut address = 0;
    let code =
        call!(p.raw, cuMemAllocAsync(&mut address => *mut u64, 64 => usize, p.a => CUstream));
    assert_eq!(code, OK);
    p.raw.sync(p.a);
    address
}

pub fn frees(p: &Desk<'_>, address: CUdeviceptr) -> u64 {
    p.number(unsafe { (p.raw.cuMemFree_v2)(address) })
}

pub fn frees_in_order(p: &Desk<'_>, address: CUdeviceptr, stream: CUstream) -> u64 {
    let code = call!(p.raw, cuMemFreeAsync(address => u64, stream => CUstream));
    p.number(CUresult(code))
}

/// A copy between addresses of any kind.
fn any_copy(p: &Desk<'_>, to: u64, from: u64, bytes: usize, stream: CUstream) -> u64 {
    let code = call!(p.raw,
        cuMemcpyAsync(to => u64, from => u64, bytes => usize, stream => CUstream));
    p.number(CUresult(code))
}

fn pinned(p: &Desk<'_>) -> u64 {
    p.pinned.addr() as u64
}

/// The stream copies `bytes` bytes that are not zero to the word that the host polls.
pub fn flag(p: &Desk<'_>, stream: CUstream, bytes: usize) -> u64 {
    any_copy(p, word_address(p), p.flag, bytes, stream)
}

/// The device's copy of the flag is set, and the host's is not.
pub fn prepare(p: &Desk<'_>) {
    p.set(p.c, p.flag, 64);
    p.raw.sync(p.c);
    word(p).store(0, Ordering::Release);
}

/// A host that polls. Without its calls the seeded scheduler waits long for it before each step.
pub fn poll(p: &Desk<'_>) {
    poll_until(p, || word(p).load(Ordering::Acquire) != 0);
}

fn poll_until(p: &Desk<'_>, seen: impl Fn() -> bool) {
    while !seen() {
        p.context();
        std::thread::yield_now();
    }
}

#[rustfmt::skip] // A row in few lines.
pub const ROWS: &[Row] = &[
    // Frees.
    ("memory of a pool is freed at once, and a stream uses it", RACE, |p| {
        let address = pooled(p);
        let one = p.set(p.b, address, 64);
        if p.mended { p.raw.sync(p.b); }
        (one, frees(p, address))
    }),
    ("memory is freed in the order of another stream", RACE, |p| {
        let address = allocated(p, 64);
        let one = p.set(p.b, address, 64);
        let two = if p.mended { frees(p, address) } else { frees_in_order(p, address, p.a) };
        p.raw.sync(p.a);
        (one, two)
    }),
    ("a kernel uses memory that is freed", FREED, |p| {
        let address = allocated(p, 64);
        let uses = || p.raw.work(p.a, address, 64, true);
        // A free waits for the work before it, and for no later work.
        if p.mended {
            let one = uses();
            return (one, frees(p, address));
        }
        let one = frees(p, address);
        (one, uses())
    }),
    ("a free of pool memory is waited for by nobody", RACE, |p| {
        let address = pooled(p);
        let one = p.download(p.b);
        frees(p, address);
        if p.mended { p.raw.sync(p.b); }
        (one, p.host_reads())
    }),

    // Copies on the host.
    ("the host reads what a copy writes, and a copy on the host is over", RACE, |p| {
        let from = if p.mended { pinned(p) + 1024 } else { p.buffer };
        let one = any_copy(p, pinned(p), from, 64, p.a);
        (one, p.host_reads())
    }),
    ("the host writes what a copy reads, and a copy on the host is over", RACE, |p| {
        let to = if p.mended { pinned(p) + 1024 } else { p.buffer };
        let one = any_copy(p, to, pinned(p), 64, p.a);
        (one, p.host_writes())
    }),
    ("rows that are copied on the host", RACE, |p| {
        let source = if p.mended {
            host(p.pinned.wrapping_byte_add(1024), 16)
        } else {
            device(p.buffer, 16)
        };
        let copy = rows(source, host(p.pinned, 16), 16, 4);
        let one = p.number(CUresult(call!(p.raw,
            cuMemcpy2DAsync_v2(&copy => *const CUDA_MEMCPY2D, p.a => CUstream))));
        (one, p.host_reads())
    }),
    ("a copy on the host in a graph", RACE, |p| {
        let exec = p.captured(|| { any_copy(p, pinned(p), pinned(p) + 1024, 64, p.c); });
        let one = p.launch(exec, p.a);
        if p.mended { p.raw.sync(p.a); }
        (one, p.host_reads())
    }),

    // Flags that the host polls.
    ("a flag is copied to the host before the data", RACE, |p| {
        prepare(p);
        if !p.mended { flag(p, p.a, 4); }
        let one = p.download(p.a);
        if p.mended { flag(p, p.a, 4); }
        poll(p);
        (one, p.host_reads())
    }),
    ("a flag is copied to the host in another stream", RACE, |p| {
        prepare(p);
        let one = p.download(p.a);
        if p.mended { p.joined(p.a, p.b); }
        flag(p, p.b, 8);
        poll(p);
        (one, p.host_reads())
    }),
    ("a flag in pinned memory is set before the data", RACE, |p| {
        prepare(p);
        let sets = || p.set(p.a, word_address(p), 4);
        if !p.mended { sets(); }
        let one = p.download(p.a);
        if p.mended { sets(); }
        poll(p);
        (one, p.host_reads())
    }),
    ("a flag is polled, and the next stream uses the data", RACE, |p| {
        prepare(p);
        if !p.mended { flag(p, p.a, 4); }
        let one = p.writes(p.a);
        if p.mended { flag(p, p.a, 4); }
        poll(p);
        (one, p.reads(p.b))
    }),
    ("a graph copies a flag to the host before the data", RACE, |p| {
        prepare(p);
        let exec = p.captured(|| {
            if !p.mended { flag(p, p.c, 4); }
            p.download(p.c);
            if p.mended { flag(p, p.c, 4); }
        });
        let one = p.launch(exec, p.a);
        poll(p);
        (one, p.host_reads())
    }),
    ("a graph writes a value for the host before the data", RACE, |p| {
        prepare(p);
        let write = p.raw.cuStreamWriteValue32_v2.unwrap();
        let signal = || p.number(unsafe { write(p.c, word_address(p), 1, 0) });
        let exec = p.captured(|| {
            if !p.mended { signal(); }
            p.download(p.c);
            if p.mended { signal(); }
        });
        let one = p.launch(exec, p.a);
        poll(p);
        (one, p.host_reads())
    }),
    ("a graph's four bytes are read that no call has waited for", RACE, |p| {
        prepare(p);
        let exec = p.captured(|| { flag(p, p.c, 4); });
        let one = p.launch(exec, p.a);
        poll(p);
        if p.mended { p.raw.sync(p.a); }
        (one, p.raw.host_access(std::ptr::from_ref(word(p)), 4, false))
    }),
    ("a flag that the host polls is not reset", RACE, |p| {
        prepare(p);
        p.writes(p.a);
        flag(p, p.a, 4);
        poll(p);
        p.raw.sync(p.a);
        if p.mended { word(p).store(0, Ordering::Release); }
        let one = p.writes(p.a);
        flag(p, p.a, 4);
        poll(p);
        (one, p.reads(p.b))
    }),
    ("a value in pinned memory is not reset", RACE, |p| {
        prepare(p);
        let write = p.raw.cuStreamWriteValue32_v2.unwrap();
        let signal = || p.number(unsafe { write(p.a, word_address(p), 1, 0) });
        signal();
        poll(p);
        p.raw.sync(p.a);
        if p.mended { word(p).store(0, Ordering::Release); }
        let one = p.writes(p.a);
        signal();
        poll(p);
        (one, p.reads(p.b))
    }),
    ("four bytes are read that no call has waited for", RACE, |p| {
        prepare(p);
        let one = flag(p, p.a, 4);
        poll(p);
        if p.mended { p.raw.sync(p.a); }
        (one, p.raw.host_access(std::ptr::from_ref(word(p)), 4, false))
    }),

    // Destructors.
    ("a graph's user object is destroyed after its launches", RACE, |p| {
        let gone: &'static AtomicBool = Box::leak(Box::default());
        let (mut graph, mut exec, mut object) = (null_mut(), null_mut(), null_mut());
        let mut one;
        unsafe {
            p.capture(p.c);
            if p.mended { p.download(p.c); } else { p.set(p.c, p.other, 64); }
            p.number((p.raw.cuStreamEndCapture)(p.c, &mut graph));
            let data = std::ptr::from_ref(gone).cast_mut().cast();
            p.number(CUresult(call!(p.raw, cuUserObjectCreate(
                &mut object => *mut *mut c_void, data => *mut c_void,
                store as Destroy => Destroy,
                1 => u32, 1 => u32))));
            p.number(CUresult(call!(p.raw, cuGraphRetainUserObject(
                graph => CUgraph, object => *mut c_void, 1 => u32, 1 => u32))));
            p.number(p.raw.cuGraphInstantiateWithFlags.unwrap()(&mut exec, graph, 0));
            p.number((p.raw.cuGraphDestroy)(graph));
            one = p.launch(exec, p.a);
            p.number((p.raw.cuGraphExecDestroy)(exec));
        }
        // Work that comes later is nothing that a destructor waits for.
        if !p.mended { one = p.download(p.a); }
        poll_until(p, || gone.load(Ordering::Acquire));
        (one, p.host_reads())
    }),
];

type Destroy = unsafe extern "C" fn(*mut c_void);

unsafe extern "C" fn store(gone: *mut c_void) {
    unsafe { &*gone.cast::<AtomicBool>() }.store(true, Ordering::Release);
}
