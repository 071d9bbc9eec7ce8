//! Small programs of real calls with one planted error each, and the same programs mended: the
//! order checker reports the two calls on each seed of the random scheduler, and is
//! silent about the mended program.

mod host;
#[cfg(target_os = "linux")]
mod mapped;
mod reported;
mod warnings;

use std::collections::BTreeSet;
use std::ffi::c_void;
use std::ptr::null_mut;

use crate::common::*;
use cuda_events::sys::*;
use cuda_events_test_support::aside;
use cuda_events_test_support::planted::*;
use cuda_events_test_support::rows::{device, host, rows};
use cuda_soft_driver::abi::CUDA_MEMCPY2D;

fn each(raw: &Raw, seed: u64, kind: &str, begins: &str, program: impl Fn(&Desk<'_>) -> Pair) {
    for mended in [true, false] {
        let before = raw.soft.order_findings().len();
        let desk = Desk::new(raw, mended);
        let (one, two) = program(&desk);
        desk.end();
        let found = raw.soft.order_findings().split_off(before);
        let found: Vec<_> = found.iter().map(|found| format!("error: {found}")).collect();
        if mended {
            assert_eq!(found, [""; 0], "{kind}, mended, seed {seed}");
            continue;
        }
        let [found] = &found[..] else { panic!("{kind}, seed {seed}: {} reports", found.len()) };
        assert!(found.starts_with(begins), "{kind}, seed {seed}:\n{found}");
        let calls: Vec<&str> = found
            .lines()
            .filter(|line| !line.starts_with("   "))
            .filter_map(|line| line.split_once(", call #"))
            .map(|(_, number)| number.split(',').next().unwrap_or(number))
            .collect();
        let mut expected = [one, two].map(|number| number.to_string());
        if calls[0] != expected[0] {
            expected.reverse();
        }
        let right = calls == expected;
        assert!(right, "{kind}, seed {seed}, calls {one} and {two}:\n{found}");
    }
}

#[test]
fn each_planted_error_is_reported_on_every_seed() {
    aside!();
    let kinds: BTreeSet<_> = table().map(|row| row.0).collect();
    assert!(kinds.len() >= 60 && kinds.len() == table().count(), "{} kinds", kinds.len());
    for seed in 0..SEEDS {
        let raw = checked(seed);
        for (kind, begins, program) in table() {
            each(&raw, seed, kind, begins, program);
        }
    }
}

/// What orders programs and is not told: each of these is good, and nothing is reported.
#[test]
fn what_orders_without_a_call_is_no_report() {
    aside!();
    for seed in 0..2 {
        let raw = checked(seed);
        let programs: [fn(&Desk<'_>); 6] = [
            host_signals,
            host_takes_signals_back,
            host_polls,
            host_function_waits,
            host_function_tells,
            one_graph_in_two_streams,
        ];
        for program in programs {
            let desk = Desk::new(&raw, true);
            program(&desk);
            desk.end();
        }
        assert_eq!(order_texts(&raw.soft), [""; 0], "seed {seed}");
    }
}

/// Launches of one executable graph come one after the other, in whatever streams.
fn one_graph_in_two_streams(p: &Desk<'_>) {
    let exec = p.captured(|| {
        p.writes(p.c);
    });
    p.launch(exec, p.a);
    p.launch(exec, p.b);
}

/// A stream waits for a value that the host stores when it has waited for another stream.
fn host_signals(p: &Desk<'_>) {
    let wait = p.raw.cuStreamWaitValue32_v2.unwrap();
    p.number(unsafe { wait(p.b, word_address(p), 1, GEQ) });
    p.reads(p.b);
    p.writes(p.a);
    p.raw.sync(p.a);
    word(p).store(1, std::sync::atomic::Ordering::Release);
    p.raw.sync(p.b);
}

/// In each round a stream waits for a value that another one writes, in any way, and the host sets it
/// back after that: the wait of the next round is none for the write of the last one.
fn host_takes_signals_back(p: &Desk<'_>) {
    use std::sync::atomic::Ordering;
    let (wait, write) = (p.raw.cuStreamWaitValue32_v2, p.raw.cuStreamWriteValue32_v2);
    let (wait, write) = (wait.expect("it has it"), write.expect("it has it"));
    // A word of pinned memory that is 1.
    let one = unsafe { std::sync::atomic::AtomicU32::from_ptr(word(p).as_ptr().add(1)) };
    one.store(1, Ordering::Release);
    for way in 0..3 {
        for _ in 0..2 {
            p.number(unsafe { wait(p.b, word_address(p), 1, GEQ) });
            p.reads(p.b);
            p.writes(p.a);
            p.number(unsafe {
                match way {
                    0 => write(p.a, word_address(p), 1, 0),
                    1 => (p.raw.cuMemsetD32Async)(word_address(p), 1, 1, p.a),
                    _ => (p.raw.cuMemcpyHtoDAsync_v2)(word_address(p), one.as_ptr().cast(), 4, p.a),
                }
            });
            p.raw.sync(p.b);
            p.raw.sync(p.a);
            word(p).store(0, Ordering::Release);
        }
    }
}

/// The host polls a value that a stream writes, and then goes on in another stream.
fn host_polls(p: &Desk<'_>) {
    let write = p.raw.cuStreamWriteValue32_v2.unwrap();
    p.writes(p.a);
    p.number(unsafe { write(p.a, word_address(p), 1, 0) });
    let exec = p.captured(|| {
        p.set(p.c, p.other, 64);
        p.number(unsafe { write(p.c, word_address(p) + 4, 1, 0) });
    });
    p.launch(exec, p.a);
    let next = unsafe { std::sync::atomic::AtomicU32::from_ptr(word(p).as_ptr().add(1)) };
    for word in [word(p), next] {
        while word.load(std::sync::atomic::Ordering::Acquire) == 0 {
            std::thread::yield_now();
        }
    }
    p.reads(p.b);
    p.get(p.b, p.other, 64);
}

/// A stream is held by a host function until the host has waited for another stream; and so is a
/// graph.
fn host_function_waits(p: &Desk<'_>) {
    let latch = p.raw.latch(p.a);
    p.reads(p.a);
    p.writes(p.b);
    p.raw.sync(p.b);
    latch.release();
    p.raw.sync(p.a);

    let latch = std::cell::OnceCell::new();
    let exec = p.captured(|| {
        let _ = latch.set(p.raw.latch(p.c));
        p.reads(p.c);
    });
    p.launch(exec, p.a);
    p.writes(p.b);
    p.raw.sync(p.b);
    latch.into_inner().expect("it was captured").release();
    p.raw.sync(p.a);
}

/// A host function tells the host that the work before it is done, and ends much later.
fn host_function_tells(p: &Desk<'_>) {
    use std::sync::mpsc::channel;
    let ((sender, receiver), (end, ended)) = (channel(), channel());
    p.writes(p.a);
    p.raw.host(p.a, move || {
        sender.send(()).expect("somebody hears");
        let _ = ended.recv();
    });
    receiver.recv().expect("it is told");
    p.reads(p.b);
    drop::<std::sync::mpsc::Sender<()>>(end);
    p.raw.sync(p.a);

    let ((sender, receiver), (end, ended)) = (channel(), channel());
    let exec = p.captured(|| {
        p.set(p.c, p.other, 64);
        p.raw.host(p.c, move || {
            sender.send(()).expect("somebody hears");
            let _ = ended.recv();
        });
    });
    p.launch(exec, p.a);
    receiver.recv().expect("it is told");
    p.get(p.b, p.other, 64);
    drop::<std::sync::mpsc::Sender<()>>(end);
    p.raw.sync(p.a);
}

/// The parts of a report, where all of them are known.
#[test]
fn a_report_has_all_its_parts() {
    aside!();
    let raw = checked(1);
    let desk = Desk::new(&raw, false);
    let exec = desk.captured(|| {
        desk.set(desk.c, desk.other, 4);
        desk.upload(desk.c);
    });
    let one = desk.launch(exec, legacy());
    let (line, two) = (line!() + 3, raw.soft.calls() + 1);
    // It is reported once for each pair of places.
    for _ in 0..2 {
        raw.soft.host_writes(desk.pinned.cast::<u8>().wrapping_byte_add(8), 1000);
    }
    assert_eq!(order_texts(&raw.soft).len(), 1);
    let found = order_texts(&raw.soft).concat();
    let (first, last) = (desk.pinned.addr() + 8, desk.pinned.addr() + 64);
    let thread = std::thread::current().name().unwrap_or("main").to_owned();
    let place = format!("{}:{line}", file!());
    let context = desk.context().addr();
    let stream =
        format!("stream 0x1 (the legacy default stream of context {context:#x}, device 0)");
    for part in [
        &format!(
            "error: missing order: {place} overwrites what call #{one} (cuGraphLaunch) reads \
             [certain]\n"
        ),
        &format!("  bytes    {first:#x} to {:#x}, 56 bytes, bytes 8 to 63 of the ", last - 1),
        &format!("  reads    cuGraphLaunch in node 1 of a graph in {stream}, call #{one}\n"),
        &format!("  writes   host_writes on thread {thread}, call #{two}\n           at {place}\n"),
        &format!(
            "  to mend  after call #{one} (cuGraphLaunch) and before {place}: \
             cuStreamSynchronize(CU_STREAM_LEGACY)"
        ),
    ] {
        assert!(found.contains(part), "{part}\n{found}");
    }
    desk.end();
}

/// A record of a context is one of the green contexts in it too.
#[test]
fn a_contexts_record_is_of_its_green_contexts() {
    aside!();
    let raw = checked(3);
    let (mut all, mut description) = (CUdevResource::default(), null_mut());
    let (mut green, mut stream) = (null_mut(), null_mut());
    let sm = CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM;
    unsafe {
        let resource = raw.cuDeviceGetDevResource.unwrap();
        assert_eq!(resource(0, &mut all, sm).0, OK);
        let describe = raw.cuDevResourceGenerateDesc.unwrap();
        assert_eq!(describe(&mut description, &mut all, 1).0, OK);
        assert_eq!(raw.cuGreenCtxCreate.unwrap()(&mut green, description, 0, 1).0, OK);
        let create = raw.cuGreenCtxStreamCreate.unwrap();
        assert_eq!(create(&mut stream, green, NON_BLOCKING, 0).0, OK);
    }
    for recorded in [true, false] {
        let desk = Desk::new(&raw, true);
        // Both before either is waited for.
        desk.set(desk.a, desk.buffer, 64);
        desk.set(stream, desk.other, 64);
        if recorded {
            desk.context_record(desk.context(), 0);
            desk.wait(desk.c, 0);
        }
        desk.get(desk.c, desk.buffer, 64);
        desk.get(desk.c, desk.other, 64);
        desk.end();
        let found = order_texts(&raw.soft);
        assert_eq!(found.len(), if recorded { 0 } else { 2 }, "{found:?}");
    }
    unsafe {
        assert_eq!((raw.cuStreamDestroy_v2)(stream).0, OK);
        assert_eq!(raw.cuGreenCtxDestroy.unwrap()(green).0, OK);
    }
}

/// Ordinary memory that a copy writes was anything before: nothing of that is an access.
#[test]
fn ordinary_memory_begins_with_each_copy() {
    aside!();
    let raw = checked(4);
    let desk = Desk::new(&raw, true);
    let mut bytes = [0_u8; 64];
    let to: *mut c_void = bytes.as_mut_ptr().cast();
    // A kernel that a program tells of had it, and so had the rows.
    kernel_writes(&desk, desk.a, to.addr() as u64);
    desk.number(unsafe { (raw.cuMemcpyDtoHAsync_v2)(to, desk.buffer, 64, desk.b) });
    kernel_writes(&desk, desk.a, to.addr() as u64);
    let copy = rows(device(desk.buffer, 16), host(to, 16), 16, 4);
    let code = call!(raw, cuMemcpy2DAsync_v2(&copy => *const CUDA_MEMCPY2D, desk.b => CUstream));
    assert_eq!(code, OK);
    desk.end();
    assert_eq!(order_texts(&raw.soft), [""; 0]);
}

/// What a context waited for ends with it: its streams of a later life are after nothing of that.
#[test]
fn a_context_that_ends_waits_for_nothing() {
    aside!();
    let builder = builder(5).devices(2);
    let raw = Raw::planting(builder);
    let first = raw.retain(0);
    let second = raw.retain(1);
    let (mut address, ended) = (0, |code: CUresult| assert_eq!(code.0, OK));
    raw.set_current(second);
    unsafe { ended((raw.cuMemAlloc_v2)(&mut address, 4096)) };
    let (stream, event) = (raw.stream(NON_BLOCKING), raw.event(0));
    unsafe { ended((raw.cuMemsetD8Async)(address, 1, 64, stream)) };
    raw.record(event, stream);
    raw.set_current(first);
    ended(unsafe { raw.cuCtxWaitEvent.unwrap()(first, event) });
    assert_eq!(call!(raw, cuDevicePrimaryCtxReset_v2(0 => i32)), OK);
    let again = raw.retain(0);
    raw.set_current(again);
    let other = raw.stream(NON_BLOCKING);
    unsafe { ended((raw.cuMemcpyDtoDAsync_v2)(address + 1024, address, 64, other)) };
    let found = order_texts(&raw.soft);
    assert!(found.len() == 1 && found[0].starts_with(RACE), "{found:?}");
}
