//! Calls without a stream that are over when they return.

use std::ffi::c_void;

use cuda_events::sys::*;
use cuda_events_test_support::planted::desk::{synchronous_copy, synchronous_memset};
use cuda_events_test_support::planted::synchronous::done;
use cuda_events_test_support::planted::*;

use crate::common::*;

/// The other calls are over when they return, or order more than others do.
#[test]
fn calls_that_wait_are_no_report() {
    aside("calls_that_wait_are_no_report", || {
        let raw = checked(0);
        let programs: [fn(&Desk<'_>); 6] = [
            |p| {
                // A copy from pinned memory.
                done(
                    p,
                    call!(p.raw, cuMemcpyHtoD_v2(p.buffer => u64,
                    p.pinned.cast_const() => *const c_void, 64 => usize)),
                );
                p.reads(p.b);
                p.host_writes();
            },
            |p| {
                // To pinned memory, and to ordinary memory.
                let copy = synchronous_copy(p);
                let mut bytes = [0_u8; 64];
                for to in [p.pinned, bytes.as_mut_ptr().cast()] {
                    p.number(unsafe { copy(to, p.buffer, 64) });
                }
                p.host_reads();
                p.writes(p.b);
            },
            |p| {
                // Of pinned memory, and of managed memory.
                let set = synchronous_memset(p);
                p.number(unsafe { set(p.pinned.addr() as u64, 1, 64) });
                p.host_reads();
                let mut managed = 0;
                done(
                    p,
                    call!(p.raw, cuMemAllocManaged(&mut managed => *mut u64, 64 => usize,
                    1 => u32)),
                );
                p.number(unsafe { set(managed, 1, 64) });
                p.get(p.b, managed, 64);
                p.raw.sync(p.b);
                p.number(unsafe { (p.raw.cuMemFree_v2)(managed) });
            },
            |p| {
                // An upload of ordinary memory waits for the stream first.
                p.download(legacy());
                let from = [0_u8; 64];
                done(
                    p,
                    call!(p.raw, cuMemcpyHtoD_v2(p.other => u64,
                    from.as_ptr().cast() => *const c_void, 64 => usize)),
                );
                p.host_reads();
            },
            |p| {
                // Work of all streams is before a peer copy, and after it.
                let (to, from, context) = (p.buffer, p.other, p.context());
                p.writes(p.a);
                done(
                    p,
                    call!(p.raw, cuMemcpyPeer(to => u64, context => CUcontext, from => u64,
                    context => CUcontext, 64 => usize)),
                );
                p.reads(p.b);
            },
            |p| {
                // The default stream has an order of its own.
                p.number(unsafe { synchronous_memset(p)(p.buffer, 1, 64) });
                p.reads(legacy());
                let stream = p.raw.stream(0);
                p.reads(stream);
            },
        ];
        for (index, program) in programs.into_iter().enumerate() {
            let desk = Desk::new(&raw, true);
            program(&desk);
            desk.end();
            assert_eq!(order_texts(&raw.soft), [""; 0], "program {index}");
        }
    });
}
