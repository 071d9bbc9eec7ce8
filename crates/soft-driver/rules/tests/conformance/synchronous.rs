//! Copies and memsets without a stream: they are operations in the legacy stream, and some of them
//! return before they are done.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use cuda_events::sys::*;

use crate::memory::{copy_of_rows, device, host};
use crate::raw::{LEGACY, Rig, Sent, must};
use crate::rules;
use crate::rules::Saw;

/// More bytes than the driver keeps in a command.
const LARGE: usize = 1 << 20;

/// Memory of each kind for the calls.
struct Memory<'a> {
    rig: &'a Rig,
    device: [CUdeviceptr; 2],
    pinned: *mut c_void,
    ordinary: Vec<u8>,
}

impl<'a> Memory<'a> {
    fn new(rig: &'a Rig) -> Self {
        let device = [0; 2].map(|mut address| {
            must!(rig.cuMemAlloc_v2(&mut address, LARGE));
            address
        });
        let mut pinned = null_mut();
        must!(rig.cuMemHostAlloc(&mut pinned, LARGE, CU_MEMHOSTALLOC_DEVICEMAP));
        Self { rig, device, pinned, ordinary: vec![0; LARGE] }
    }

    fn pinned_on_device(&self) -> CUdeviceptr {
        let mut address = 0;
        must(
            "cuMemHostGetDevicePointer",
            self.rig.cuMemHostGetDevicePointer_v2(&mut address, self.pinned, 0),
        );
        address
    }

    fn ordinary(&self) -> *mut c_void {
        self.ordinary.as_ptr().cast_mut().cast()
    }
}

impl Drop for Memory<'_> {
    fn drop(&mut self) {
        for address in self.device {
            let _ = self.rig.cuMemFree_v2(address);
        }
        let _ = self.rig.cuMemFreeHost(self.pinned);
    }
}

/// Whether a call returns while a stream is held.
fn returns(
    rig: &Rig,
    stream: CUstream,
    call: impl FnOnce() -> CUresult,
    patience: Duration,
) -> bool {
    struct Carry<T>(T);
    // SAFETY: this thread waits until the other one has ended.
    unsafe impl<T> Send for Carry<T> {}
    impl<T> Carry<T> {
        fn open(self) -> T {
            self.0
        }
    }
    let latch = rig.hold(stream);
    let (context, raw) = (Sent::new(rig.context), **rig);
    let call = Carry(call);
    let (done, heard) = channel();
    let before = std::thread::scope(|scope| {
        scope.spawn(move || {
            must!(raw.cuCtxSetCurrent(context.get()));
            must("the call", (call.open())());
            let _ = done.send(());
        });
        let before = heard.recv_timeout(patience);
        latch.release();
        before
    });
    rig.synchronize(stream);
    match before {
        Ok(()) => true,
        Err(RecvTimeoutError::Timeout) => false,
        Err(RecvTimeoutError::Disconnected) => panic!("the call failed"),
    }
}

/// On a busy machine, a call that does not wait returns within this time.
const LONG: Duration = Duration::from_secs(20);
/// The time for which a call that waits is watched.
const WATCHED: Duration = Duration::from_millis(50);

pub type Call<'a> = (&'a str, &'a dyn Fn() -> CUresult);

/// Reports whether calls wait for a stream that is held. The calls of the first list should return,
/// and the calls of the second list should wait.
fn compare(rig: &Rig, saw: &Saw, returning: &[Call<'_>], waiting: &[Call<'_>]) {
    compare_in(rig, saw, LEGACY, returning, waiting);
}

/// The same for any stream.
pub fn compare_in(
    rig: &Rig,
    saw: &Saw,
    stream: CUstream,
    returning: &[Call<'_>],
    waiting: &[Call<'_>],
) {
    let results = |calls: &[Call<'_>], patience| {
        let kept = calls.iter().filter(|(_, call)| returns(rig, stream, call, patience));
        kept.map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    };
    let (first, second) = (results(returning, LONG), results(waiting, WATCHED));
    saw.text(format_args!("these return: {first}"));
    saw.text(format_args!("of the others: {}", if second.is_empty() { "none" } else { &second }));
}

rules! {
    /// A memset or a copy without a stream returns before it is done if all its memory is device
    /// memory.
    fn memory_of_the_device(rig, saw) =
        "these return: a memset, a copy, a copy of rows, a copy between contexts; of the others: \
         none"
    {
        let memory = Memory::new(rig);
        let ([to, from], mapped) = (memory.device, memory.pinned_on_device());
        let rows = copy_of_rows(device(from, 64), device(to, 64), 64, 4);
        compare(rig, saw, &[
            ("a memset", &|| rig.cuMemsetD8_v2(to, 1, LARGE)),
            ("a copy", &|| rig.cuMemcpyDtoD_v2(to, from, LARGE)),
            ("a copy of rows", &|| rig.cuMemcpy2D_v2(&rows)),
            ("a copy between contexts", &|| {
                rig.cuMemcpyPeer(to, rig.context, from, rig.context, LARGE)
            }),
        ], &[
            ("a memset of pinned memory", &|| rig.cuMemsetD8_v2(mapped, 1, 64)),
            ("a copy from pinned memory", &|| rig.cuMemcpyDtoD_v2(to, mapped, LARGE)),
        ]);
    }

    /// A copy without a stream to or from host memory waits for the legacy stream, even if it is a
    /// copy of a few bytes of ordinary memory.
    fn memory_of_the_host(rig, saw) = "these return: ; of the others: none" {
        let memory = Memory::new(rig);
        let ([to, from], pinned, ordinary) = (memory.device, memory.pinned, memory.ordinary());
        let copy_rows = |source, destination| {
            rig.cuMemcpy2D_v2(&copy_of_rows(source, destination, 64, 4))
        };
        let on_device = |address| device(address, 64);
        let on_host = |place: *mut c_void| host(place.cast(), 64);
        compare(rig, saw, &[], &[
            ("a few bytes to the device", &|| rig.cuMemcpyHtoD_v2(to, ordinary, 64)),
            ("many bytes to the device", &|| rig.cuMemcpyHtoD_v2(to, ordinary, LARGE)),
            ("pinned to the device", &|| rig.cuMemcpyHtoD_v2(to, pinned, 64)),
            ("a few bytes back", &|| rig.cuMemcpyDtoH_v2(ordinary, from, 64)),
            ("many bytes back", &|| rig.cuMemcpyDtoH_v2(ordinary, from, LARGE)),
            ("back to pinned", &|| rig.cuMemcpyDtoH_v2(pinned, from, LARGE)),
            ("rows to the device", &|| copy_rows(on_host(ordinary), on_device(to))),
            ("rows back", &|| copy_rows(on_device(from), on_host(ordinary))),
        ]);
    }

    /// With a stream, a copy from ordinary host memory returns before it is done. A copy to
    /// ordinary host memory waits until it is done.
    fn ordinary_memory_with_a_stream(rig, saw) =
        "these return: a few bytes to the device, many bytes to the device; of the others: none"
    {
        let memory = Memory::new(rig);
        let ([to, from], ordinary) = (memory.device, memory.ordinary());
        compare(rig, saw, &[
            ("a few bytes to the device", &|| rig.cuMemcpyHtoDAsync_v2(to, ordinary, 64, LEGACY)),
            ("many bytes to the device", &|| {
                rig.cuMemcpyHtoDAsync_v2(to, ordinary, LARGE, LEGACY)
            }),
        ], &[
            ("a few bytes back", &|| rig.cuMemcpyDtoHAsync_v2(ordinary, from, 64, LEGACY)),
            ("many bytes back", &|| rig.cuMemcpyDtoHAsync_v2(ordinary, from, LARGE, LEGACY)),
        ]);
    }

    /// With a stream, a copy from host memory to host memory waits until it is done, whichever of
    /// the two is pinned.
    fn host_to_host_with_a_stream(rig, saw) = "these return: ; of the others: none" {
        let memory = Memory::new(rig);
        let (mapped, ordinary) = (memory.pinned_on_device(), memory.ordinary());
        let half = LARGE / 2;
        let other_half = ordinary.wrapping_byte_add(half);
        let unified = |place: *mut c_void| place.addr() as u64;
        let pinned = memory.pinned.cast::<u8>();
        let rows = copy_of_rows(host(pinned.wrapping_add(half), 64), host(pinned, 64), 64, 4);
        compare(rig, saw, &[], &[
            ("a few bytes of pinned to pinned", &|| {
                rig.cuMemcpyAsync(mapped, mapped + half as u64, 64, LEGACY)
            }),
            ("pinned to pinned", &|| {
                rig.cuMemcpyAsync(mapped, mapped + half as u64, half, LEGACY)
            }),
            ("pinned to pinned, as if it were an upload", &|| {
                let from = memory.pinned.wrapping_byte_add(half);
                rig.cuMemcpyHtoDAsync_v2(mapped, from, half, LEGACY)
            }),
            ("pinned to ordinary", &|| {
                rig.cuMemcpyDtoHAsync_v2(ordinary, mapped, LARGE, LEGACY)
            }),
            ("ordinary to pinned", &|| {
                rig.cuMemcpyHtoDAsync_v2(mapped, ordinary, LARGE, LEGACY)
            }),
            ("ordinary to ordinary", &|| {
                rig.cuMemcpyAsync(unified(ordinary), unified(other_half), half, LEGACY)
            }),
            ("rows of pinned to pinned", &|| rig.cuMemcpy2DAsync_v2(&rows, LEGACY)),
        ]);
    }

    /// `cuMemFree` and `cuMemFreeHost` wait for the work of the device, also for work that does not
    /// use the memory. `cuMemFree` of memory of a pool does not wait.
    [since(11, 2)]
    fn frees_wait_for_the_device(rig, saw) =
        "these return: memory of a pool; of the others: none"
    {
        let mut device = 0;
        must!(rig.cuMemAlloc_v2(&mut device, LARGE));
        let mut pinned = null_mut();
        must!(rig.cuMemHostAlloc(&mut pinned, LARGE, CU_MEMHOSTALLOC_DEVICEMAP));
        let mut pooled = 0;
        must!(rig.cuMemAllocAsync(&mut pooled, LARGE, LEGACY));
        rig.synchronize(LEGACY);
        compare(rig, saw, &[
            ("memory of a pool", &|| rig.cuMemFree_v2(pooled)),
        ], &[
            ("memory of the device", &|| rig.cuMemFree_v2(device)),
            ("pinned memory", &|| rig.cuMemFreeHost(pinned)),
        ]);
    }
}
