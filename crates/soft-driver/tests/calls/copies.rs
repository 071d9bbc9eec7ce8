//! Copies of rows and between devices, as the order checker sees them.

use crate::common;

use std::ffi::c_void;
use std::ptr::null_mut;
use std::time::Instant;

use common::*;
use cuda_events::sys::*;
use cuda_events_test_support::rows::{device, rows};
use cuda_soft_driver::abi::CUDA_MEMCPY2D;
use cuda_soft_driver::{OnMisuse, OrderCheck, SoftDriver};

const NON_BLOCKING: u32 = 1;

fn alloc(raw: &Raw, bytes: usize) -> u64 {
    let mut address = 0;
    assert_eq!(unsafe { (raw.cuMemAlloc_v2)(&mut address, bytes) }.0, OK);
    address
}

/// All the bytes that rows share count, and a report says how many they are.
#[test]
fn a_report_has_the_bytes_of_all_rows() {
    cuda_events_test_support::own_process!();
    let raw = Raw::planting(SoftDriver::builder().check_order(OrderCheck::Report));
    let (memory, other) = (alloc(&raw, 4096), alloc(&raw, 4096));
    for shift in [0, 31] {
        let copy = rows(device(other + 2 * shift, 128), device(memory + shift, 128), 32, 8);
        let stream = raw.stream(NON_BLOCKING);
        let code =
            call!(raw, cuMemcpy2DAsync_v2(&copy => *const CUDA_MEMCPY2D, stream => CUstream));
        assert_eq!(code, OK);
    }
    let found = order_texts(&raw.soft).concat();
    assert!(found.contains("\n  bytes    8 bytes in 8 ranges within 0x"), "{found}");
    assert_eq!(unsafe { (raw.cuCtxSynchronize)() }.0, OK);
}

/// A memset of zero changes its own bytes, from a byte within a page to one within another, and the
/// memory can be written again.
#[test]
fn many_bytes_are_set_to_zero() {
    const BYTES: usize = 512 << 10;
    let (raw, mut all) = (Raw::new(), vec![0_u8; BYTES]);
    let (memory, stream) = (alloc(&raw, BYTES), raw.stream(NON_BLOCKING));
    for (from, bytes) in [(100, BYTES - 300), (0, BYTES), (5000, 65536), (5000, 65535)] {
        unsafe {
            assert_eq!((raw.cuMemsetD8Async)(memory, 7, BYTES, stream).0, OK);
            assert_eq!((raw.cuMemsetD8Async)(memory + from as u64, 0, bytes, stream).0, OK);
            let to = all.as_mut_ptr().cast();
            assert_eq!((raw.cuMemcpyDtoHAsync_v2)(to, memory, BYTES, stream).0, OK);
        }
        raw.sync(stream);
        let zero = from..from + bytes;
        let is_right = |(at, byte): (usize, &u8)| *byte == if zero.contains(&at) { 0 } else { 7 };
        assert!(all.iter().enumerate().all(is_right), "{zero:?}");
    }
    assert_eq!(unsafe { (raw.cuMemFree_v2)(memory) }.0, OK);
}

/// Where the bytes of a copy are: memory of a device, or pinned memory that was allocated with it.
#[derive(Clone, Copy, Debug)]
enum Side {
    Device(usize),
    Pinned(usize),
}

/// A copy in a legacy stream is also in the other device's, if it is from one device to another;
/// host memory is of none, whichever context was current when it was allocated.
#[test]
fn which_copies_in_the_legacy_stream_wait_for_another_device() {
    use Side::{Device, Pinned};
    let raw = Raw::with(SoftDriver::builder().devices(2));
    let contexts = [raw.retain(0), raw.retain(1)];
    let memory = contexts.map(|context| {
        raw.set_current(context);
        let mut pinned = null_mut();
        assert_eq!(unsafe { (raw.cuMemHostAlloc)(&mut pinned, 64, 0) }.0, OK);
        (alloc(&raw, 128), pinned.addr() as u64)
    });
    let address = |side, offset| match side {
        Device(device) => memory[device].0 + offset,
        Pinned(device) => memory[device].1,
    };
    for (to, from, waits) in [
        (Device(0), Device(0), false),
        (Device(1), Device(1), false),
        (Device(0), Device(1), true),
        (Device(1), Device(0), true),
        (Device(0), Pinned(0), false),
        (Device(0), Pinned(1), false),
        (Pinned(1), Device(0), false),
        (Device(1), Pinned(1), false),
        (Pinned(1), Device(1), false),
    ] {
        raw.set_current(contexts[1]);
        let latch = raw.latch(legacy());
        latch.reached();
        raw.set_current(contexts[0]);
        let (to_address, from_address) = (address(to, 64), address(from, 0));
        let copied = call!(raw, cuMemcpyAsync(to_address => u64, from_address => u64,
            64 => usize, legacy() => CUstream));
        assert_eq!(copied, OK, "{to:?} from {from:?}");
        let after = raw.event(2);
        raw.record(after, legacy());
        if waits {
            // What does not wait is done by now: a copy that was submitted later is.
            let other = raw.stream(NON_BLOCKING);
            let copied = call!(raw, cuMemcpyAsync(memory[0].0 => u64, memory[0].1 => u64,
                64 => usize, other => CUstream));
            assert_eq!(copied, OK);
            raw.sync(other);
            assert_eq!(raw.query(after), NOT_READY, "{to:?} from {from:?}");
        } else {
            let began = Instant::now();
            while raw.query(after) != OK {
                assert!(began.elapsed().as_secs() < 60, "it waits: {to:?} from {from:?}");
                std::thread::yield_now();
            }
        }
        latch.release();
        assert_eq!(unsafe { (raw.cuEventSynchronize)(after) }.0, OK);
    }
}

/// `cuMemcpyPeer` is after all work of three contexts, and before their later work: of both sides
/// and of the current one.
#[test]
fn a_peer_copy_is_ordered_with_the_current_context_too() {
    // Its reports are for nobody.
    cuda_events_test_support::own_process!();
    for first in [false, true] {
        for (with, reports) in [(0, 0), (1, 0), (2, 0), (3, 1)] {
            let builder = SoftDriver::builder().devices(4).check_order(OrderCheck::Report);
            let raw = Raw::planting(builder);
            let contexts = [0, 1, 2, 3].map(|device| raw.retain(device));
            let memory = contexts.map(|context| {
                raw.set_current(context);
                alloc(&raw, 64)
            });
            raw.set_current(contexts[with]);
            let stream = raw.stream(NON_BLOCKING);
            // A kernel that the test reports: it writes what the copy reads.
            let other = || raw.work(stream, memory[1], 64, true);
            if first {
                other();
            }
            raw.set_current(contexts[2]);
            let copied = call!(raw, cuMemcpyPeer(memory[0] => u64, contexts[0] => CUcontext,
                memory[1] => u64, contexts[1] => CUcontext, 64 => usize));
            assert_eq!(copied, OK);
            raw.set_current(contexts[with]);
            if !first {
                other();
            }
            let findings = order_texts(&raw.soft);
            assert_eq!(findings.len(), reports, "context {with}, first {first}: {findings:?}");
        }
    }
}

/// A graph keeps the address of the program's memory: it may be registered again, and may not be
/// gone.
#[test]
fn a_graph_uses_memory_that_was_registered_again() {
    #[repr(align(4096))]
    struct Page([u8; 4096]);
    for again in [false, true] {
        let raw = Raw::with(SoftDriver::builder().on_misuse(OnMisuse::Error));
        let page = Box::leak(Box::new(Page([5; 4096])));
        let memory: *mut c_void = page.0.as_mut_ptr().cast();
        let register = || {
            let code = call!(raw, cuMemHostRegister_v2(memory => *mut c_void, 4096 => usize,
                0 => u32));
            assert_eq!(code, OK);
        };
        register();
        let (stream, to) = (raw.stream(NON_BLOCKING), alloc(&raw, 64));
        let (mut graph, mut exec) = (null_mut(), null_mut());
        unsafe {
            let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
            assert_eq!((raw.cuStreamBeginCapture_v2)(stream, mode).0, OK);
            assert_eq!((raw.cuMemcpyHtoDAsync_v2)(to, memory, 64, stream).0, OK);
            assert_eq!((raw.cuStreamEndCapture)(stream, &mut graph).0, OK);
        }
        let code = call!(raw, cuGraphInstantiateWithFlags(&mut exec => *mut CUgraphExec,
            graph => CUgraph, 0 => u64));
        assert_eq!(code, OK);
        assert_eq!(call!(raw, cuMemHostUnregister(memory => *mut c_void)), OK);
        if again {
            register();
        }
        let launched = call!(raw, cuGraphLaunch(exec => CUgraphExec, stream => CUstream));
        assert_eq!((launched == OK, raw.soft.misuses().is_empty()), (again, again), "{launched}");
        if again {
            raw.sync(stream);
        }
    }
}
