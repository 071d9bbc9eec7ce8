//! What the host is after without a call that waits, in programs without an error.

use std::ffi::c_void;
use std::ptr::null_mut;

use cuda_events::sys::*;
use cuda_events_test_support::aside;
use cuda_events_test_support::planted::host::*;
use cuda_events_test_support::planted::*;

use crate::common::*;

/// A free waits for the work before it: none of these programs is wrong.
#[test]
fn work_before_a_free_is_no_report() {
    aside!();
    let raw = checked(0);
    let programs: [fn(&Desk<'_>); 7] = [
        |p| {
            // An upload of ordinary memory, and a memset, both without a stream.
            let (from, address) = ([0_u8; 64], allocated(p, 64));
            p.number(CUresult(call!(p.raw, cuMemcpyHtoD_v2(address => u64,
                from.as_ptr().cast() => *const c_void, 64 => usize))));
            frees(p, address);
            let address = allocated(p, 64);
            p.number(CUresult(call!(p.raw,
                cuMemsetD8_v2(address => u64, 1 => u8, 64 => usize))));
            frees(p, address);
        },
        |p| {
            // Work of several streams, and of a graph.
            let address = allocated(p, 64);
            p.set(p.a, address, 64);
            p.joined(p.a, p.b);
            p.get(p.b, address, 64);
            let exec = p.captured(|| {
                p.get(p.c, address, 64);
            });
            p.joined(p.a, p.c);
            p.launch(exec, p.c);
            frees(p, address);
        },
        |p| {
            // The host reads pinned memory that a copy writes.
            let mut memory = null_mut();
            p.number(unsafe { (p.raw.cuMemHostAlloc)(&mut memory, 64, 0) });
            p.number(unsafe { (p.raw.cuMemcpyDtoHAsync_v2)(memory, p.buffer, 64, p.a) });
            p.number(unsafe { (p.raw.cuMemFreeHost)(memory) });
        },
        |p| {
            // The host uses managed memory that a stream uses.
            let mut managed = 0;
            p.number(CUresult(call!(p.raw,
                cuMemAllocManaged(&mut managed => *mut u64, 64 => usize, 1 => u32))));
            p.set(p.a, managed, 64);
            frees(p, managed);
        },
        |p| {
            // The host is after all work of the device from then on.
            let address = allocated(p, 64);
            p.download(p.a);
            p.set(p.b, p.other, 64);
            frees(p, address);
            p.host_reads();
            p.get(p.c, p.other, 64);
        },
        |p| {
            // The memory of another context of the device.
            let address = allocated(p, 64);
            p.elsewhere(|_| {
                let stream = p.raw.stream(NON_BLOCKING);
                p.set(stream, address, 64);
                frees(p, address);
            });
        },
        |p| {
            // A new allocation may have the same address.
            for _ in 0..8 {
                let address = allocated(p, 4096);
                p.set(p.a, address, 4096);
                frees(p, address);
            }
        },
    ];
    for (index, program) in programs.into_iter().enumerate() {
        let desk = Desk::new(&raw, true);
        program(&desk);
        desk.end();
        assert_eq!(order_texts(&raw.soft), [""; 0], "program {index}");
    }
}

/// An event with the interprocess flag orders as others do until its handle is taken. From then on
/// another process may have recorded it after any of the events that it may wait for.
#[test]
#[cfg(target_os = "linux")]
fn an_events_flag_alone_orders_nothing() {
    type Program = fn(&Desk<'_>, [CUevent; 2]);
    const SHARED: u32 = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING;
    aside!();
    let raw = checked(0);
    let mut programs: Vec<(usize, Program)> = Vec::new();
    // Another event, the same one recorded anew, a wait of the host for another one.
    programs.push((1, |p, [one, other]| {
        p.writes(p.a);
        p.raw.record(one, p.a);
        p.raw.record(other, p.c);
        p.raw.wait(p.b, other);
        p.reads(p.b);
    }));
    programs.push((1, |p, [one, _]| {
        p.writes(p.a);
        p.raw.record(one, p.a);
        p.raw.record(one, p.c);
        p.raw.wait(p.b, one);
        p.reads(p.b);
    }));
    programs.push((1, |p, [one, other]| {
        p.download(p.a);
        p.raw.record(one, p.a);
        p.raw.record(other, p.c);
        p.number(unsafe { (p.raw.cuEventSynchronize)(other) });
        p.host_reads();
    }));
    programs.push((0, |p, [one, _]| {
        p.writes(p.a);
        p.raw.record(one, p.a);
        p.raw.wait(p.b, one);
        p.reads(p.b);
    }));
    for (index, (reports, program)) in programs.into_iter().enumerate() {
        for taken in [false, true] {
            let desk = Desk::new(&raw, true);
            let events = [raw.event(SHARED), raw.event(SHARED)];
            for event in events.iter().filter(|_| taken) {
                let mut handle = CUipcEventHandle::default();
                desk.number(unsafe { (raw.cuIpcGetEventHandle)(&mut handle, *event) });
            }
            let before = order_texts(&raw.soft).len();
            program(&desk, events);
            desk.end();
            let found = order_texts(&raw.soft).split_off(before);
            let expected = if taken { 0 } else { reports };
            assert_eq!(found.len(), expected, "program {index}, taken {taken}: {found:?}");
            for event in events {
                assert_eq!(unsafe { (raw.cuEventDestroy_v2)(event) }.0, OK);
            }
        }
    }
}

/// One flag of one host for several streams: each is after what the host has polled.
#[test]
fn a_polled_flag_is_no_report() {
    aside!();
    for seed in 0..5 {
        let raw = checked(seed);
        let desk = Desk::new(&raw, true);
        let p = &desk;
        for round in 0..6 {
            let stream = [p.a, p.b][round % 2];
            prepare(p);
            p.writes(stream);
            p.download(stream);
            flag(p, stream, 4);
            poll(p);
            p.host_reads();
            p.host_writes();
            p.upload(stream);
            p.raw.sync(stream);
        }
        // The same in a graph.
        prepare(p);
        let exec = p.captured(|| {
            p.writes(p.c);
            flag(p, p.c, 4);
        });
        p.launch(exec, p.a);
        poll(p);
        p.reads(p.b);
        desk.end();
        assert_eq!(order_texts(&raw.soft), [""; 0], "seed {seed}");
    }
}
