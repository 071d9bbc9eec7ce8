//! Copies of rows and layers, and what sets rows.

use crate::common;

use std::ptr::null_mut;

use common::*;
use cuda_events::sys::*;
use cuda_soft_driver::abi::{Copy2D, Copy3D, Location, Side2D, Side3D};
use cuda_soft_driver::{OrderCheck, SoftDriver};

const HOST: u32 = 1;
const DEVICE: u32 = 2;
const ARRAY: u32 = 3;
const UNIFIED: u32 = 4;
const NON_BLOCKING: u32 = 1;

fn host(memory: *mut u8, pitch: usize) -> Side2D {
    Side2D {
        x: 0,
        y: 0,
        memory_type: HOST,
        host: memory.cast(),
        device: 0,
        array: null_mut(),
        pitch,
    }
}

fn device(address: u64, pitch: usize) -> Side2D {
    Side2D { memory_type: DEVICE, device: address, ..host(null_mut(), pitch) }
}

fn alloc(raw: &Raw, bytes: usize) -> u64 {
    let mut address = 0;
    assert_eq!(unsafe { (raw.cuMemAlloc_v2)(&mut address, bytes) }.0, OK);
    address
}

/// What is in device memory: it is the host's, at the same address.
fn bytes(address: u64, count: usize) -> Vec<u8> {
    let pointer = std::ptr::with_exposed_provenance(address as usize);
    unsafe { std::slice::from_raw_parts(pointer, count) }.to_vec()
}

fn copy(raw: &Raw, source: Side2D, destination: Side2D, width: usize, height: usize) -> u32 {
    let copy = Copy2D { source, destination, width, height };
    let code = call!(raw, cuMemcpy2D_v2(&copy => *const Copy2D));
    assert_eq!(call!(raw, cuMemcpy2DUnaligned_v2(&copy => *const Copy2D)), code);
    code
}

/// A frame goes to the device with another distance between rows, and comes back bit for bit. What
/// is between the rows stays as it was.
/// Calls that are about memory of the device alone return before it is done.
fn done(raw: &Raw) {
    assert_eq!(unsafe { (raw.cuCtxSynchronize)() }.0, OK);
}

#[test]
fn a_frame_there_and_back() {
    let raw = Raw::new();
    const WIDTH: usize = 100;
    const HEIGHT: usize = 17;
    let mut frame: Vec<u8> = (0..WIDTH * HEIGHT).map(|at| (at * 7 % 251) as u8).collect();
    let memory = alloc(&raw, 512 * 20);
    assert_eq!(unsafe { (raw.cuMemsetD32Async)(memory, 0xEEEE_EEEE, 512 * 5, null_mut()) }.0, OK);
    // Two rows and eight bytes into the memory.
    let there = Side2D { x: 8, y: 2, ..device(memory, 512) };
    assert_eq!(copy(&raw, host(frame.as_mut_ptr(), WIDTH), there, WIDTH, HEIGHT), OK);
    let all = bytes(memory, 512 * 20);
    for (row, line) in all.chunks(512).enumerate() {
        let (before, rest) = line.split_at(8);
        let (within, after) = rest.split_at(WIDTH);
        assert!(before.iter().chain(after).all(|byte| *byte == 0xEE), "beside row {row}");
        match row.checked_sub(2) {
            Some(at) if at < HEIGHT => assert_eq!(within, &frame[at * WIDTH..][..WIDTH]),
            _ => assert!(within.iter().all(|byte| *byte == 0xEE), "row {row}"),
        }
    }
    // Back through a unified address, into every other row.
    let mut back = vec![0_u8; 2 * WIDTH * HEIGHT];
    let from = Side2D { memory_type: UNIFIED, ..there };
    assert_eq!(copy(&raw, from, host(back.as_mut_ptr(), 2 * WIDTH), WIDTH, HEIGHT), OK);
    for (line, row) in back.chunks(2 * WIDTH).zip(frame.chunks(WIDTH)) {
        assert_eq!(line, [row, &[0; WIDTH]].concat());
    }
    // Without a distance the rows follow each other; and within the device.
    let dense = alloc(&raw, WIDTH * HEIGHT);
    assert_eq!(copy(&raw, there, device(dense, 0), WIDTH, HEIGHT), OK);
    done(&raw);
    assert_eq!(bytes(dense, WIDTH * HEIGHT), frame);
}

#[test]
fn what_a_copy_of_rows_refuses() {
    let raw = Raw::new();
    let memory = alloc(&raw, 4096);
    let mut here = [0_u8; 256];
    let good = host(here.as_mut_ptr(), 16);
    let refused = |source: Side2D, destination: Side2D| copy(&raw, source, destination, 16, 16);
    assert_eq!(refused(good, device(memory, 256)), OK, "the last row is the last there is");
    assert_eq!(refused(good, device(memory + 1, 256)), OK);
    for (why, source, destination, code) in [
        ("past the end", good, device(memory + 241, 256), INVALID_VALUE),
        ("an address that is nobody's", good, device(1 << 50, 256), INVALID_VALUE),
        ("rows that overlap", good, device(memory, 15), INVALID_VALUE),
        ("a row with what is before it", good, Side2D { x: 1, ..device(memory, 16) }, 1),
        ("further than the device can", good, device(memory, 1 << 31), INVALID_VALUE),
        ("no memory", host(null_mut(), 16), device(memory, 256), INVALID_VALUE),
        ("no address", Side2D { memory_type: UNIFIED, ..good }, device(memory, 256), 1),
        ("no such kind", Side2D { memory_type: 9, ..good }, device(memory, 256), INVALID_VALUE),
        ("an array", Side2D { memory_type: ARRAY, ..good }, device(memory, 256), NOT_SUPPORTED),
        ("an overflow", Side2D { y: usize::MAX / 2, ..good }, device(memory, 256), 1),
    ] {
        assert_eq!(refused(source, destination), code, "{why}");
    }
    // Nothing is copied, and nothing looked at.
    assert_eq!(copy(&raw, good, device(1 << 50, 0), 0, 16), OK);
    assert_eq!(copy(&raw, good, device(1 << 50, 0), 16, 0), OK);
    assert_eq!(call!(raw, cuMemcpy2D_v2(std::ptr::null() => *const Copy2D)), INVALID_VALUE);
    let copy = Copy2D { source: good, destination: device(memory, 256), width: 1, height: 1 };
    raw.set_current(null_mut());
    assert_eq!(call!(raw, cuMemcpy2D_v2(&copy => *const Copy2D)), INVALID_CONTEXT);
}

/// In its stream: after what is before it, and with the bytes of ordinary memory that were there at
/// the call.
#[test]
fn rows_are_copied_in_stream_order() {
    let raw = Raw::new();
    let stream = raw.stream(NON_BLOCKING);
    let memory = alloc(&raw, 1024);
    assert_eq!(unsafe { (raw.cuMemsetD32Async)(memory, 0, 256, null_mut()) }.0, OK);
    raw.sync(null_mut());
    let mut rows = vec![5_u8; 40];
    let latch = raw.latch(stream);
    let copy = Copy2D {
        source: host(rows.as_mut_ptr(), 10),
        destination: device(memory, 256),
        width: 10,
        height: 4,
    };
    let asynchronous =
        || call!(raw, cuMemcpy2DAsync_v2(&copy => *const Copy2D, stream => CUstream));
    assert_eq!(asynchronous(), OK);
    rows.fill(9);
    assert!(raw.busy(stream));
    assert_eq!(bytes(memory, 10), [0; 10]);
    latch.release();
    raw.sync(stream);
    for row in 0..4 {
        assert_eq!(bytes(memory + row * 256, 11), [[5; 10].as_slice(), &[0]].concat());
    }
    assert_eq!(
        call!(raw, cuMemcpy2DAsync_v2_ptsz(&copy => *const Copy2D, null_mut() => CUstream)),
        OK
    );
    raw.sync(per_thread());
    // While a stream captures, it is a node.
    let legacy_capture = raw.stream(0);
    unsafe {
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
        assert_eq!((raw.cuStreamBeginCapture_v2)(legacy_capture, mode).0, OK);
        let node = call!(
            raw,
            cuMemcpy2DAsync_v2(&copy => *const Copy2D, legacy_capture => CUstream)
        );
        assert_eq!(node, OK);
        let mut graph = null_mut();
        assert_eq!((raw.cuStreamEndCapture)(legacy_capture, &mut graph).0, OK);
        let (mut count, mut node) = (1, null_mut());
        assert_eq!(
            call!(raw, cuGraphGetNodes(graph => CUgraph, &mut node => *mut CUgraphNode,
                &mut count => *mut usize)),
            OK
        );
        let mut kind = 77;
        let code = call!(raw, cuGraphNodeGetType(node => CUgraphNode, &mut kind => *mut u32));
        assert_eq!((code, count, kind), (OK, 1, 1), "a copy");
        rows.fill(3);
        let exec = raw.cuGraphInstantiateWithFlags.unwrap();
        let mut launched = null_mut();
        assert_eq!(exec(&mut launched, graph, 0).0, OK);
        assert_eq!((raw.cuGraphLaunch)(launched, stream).0, OK);
        raw.sync(stream);
        assert_eq!(bytes(memory + 256, 10), [3; 10]);
    }
}

#[test]
fn layers() {
    let raw = Raw::new();
    let side = |side: Side2D, height| Side3D {
        x: side.x,
        y: side.y,
        z: 0,
        lod: 0,
        memory_type: side.memory_type,
        host: side.host,
        device: side.device,
        array: side.array,
        reserved: null_mut(),
        pitch: side.pitch,
        height,
    };
    let mut box_of = (0..2 * 3 * 4).collect::<Vec<u8>>();
    let memory = alloc(&raw, 4096);
    assert_eq!(unsafe { (raw.cuMemsetD32Async)(memory, 0, 1024, null_mut()) }.0, OK);
    let destination = Side3D { z: 1, y: 1, x: 2, ..side(device(memory, 16), 8) };
    let copy = Copy3D {
        source: side(host(box_of.as_mut_ptr(), 4), 3),
        destination,
        width: 4,
        height: 3,
        depth: 2,
    };
    assert_eq!(call!(raw, cuMemcpy3D_v2(&copy => *const Copy3D)), OK);
    let all = bytes(memory, 4096);
    let mut there = Vec::new();
    for (at, byte) in all.iter().enumerate().filter(|(_, byte)| **byte != 0) {
        there.push((at, *byte));
    }
    let expected = (1..24).map(|at: u8| {
        let (x, y, z) = (at as usize % 4, at as usize / 4 % 3, at as usize / 12);
        ((z + 1) * 128 + (y + 1) * 16 + x + 2, at)
    });
    assert_eq!(there, expected.collect::<Vec<_>>());
    let low = Copy3D { destination: Side3D { height: 2, ..destination }, ..copy };
    assert_eq!(call!(raw, cuMemcpy3D_v2(&low => *const Copy3D)), INVALID_VALUE, "layers overlap");
}

#[test]
fn rows_are_set() {
    let raw = Raw::new();
    let memory = alloc(&raw, 1024);
    assert_eq!(unsafe { (raw.cuMemsetD32Async)(memory, 0, 256, null_mut()) }.0, OK);
    let set = |address: u64, pitch: usize, value: u16, width: usize, height: usize| {
        call!(raw, cuMemsetD2D16_v2(address => u64, pitch => usize, value => u16, width => usize,
            height => usize))
    };
    assert_eq!(set(memory, 64, 0x1234, 3, 4), OK);
    done(&raw);
    for row in 0..4 {
        let line = [0x34, 0x12, 0x34, 0x12, 0x34, 0x12, 0, 0];
        assert_eq!(bytes(memory + row * 64, 8), line);
    }
    assert_eq!(bytes(memory + 4 * 64, 8), [0; 8]);
    assert_eq!(set(memory + 1, 64, 1, 3, 4), INVALID_VALUE, "unaligned");
    assert_eq!(set(memory, 4, 1, 3, 4), INVALID_VALUE, "rows overlap");
    assert_eq!(set(memory + 1008, 64, 1, 3, 2), INVALID_VALUE, "past the end");
    assert_eq!(set(memory, 0, 1, 512, 1), OK, "one row");
    assert_eq!(set(memory, 64, 1, 0, 4), OK);
}

/// Two streams may write what is between each other's rows; one and the same byte is an error.
#[test]
fn the_order_checker_sees_rows() {
    // Its reports are for nobody.
    cuda_events_test_support::own_process!();
    for (shift, reports) in [(0, 1), (31, 1), (32, 0), (64, 0)] {
        let raw = Raw::planting(SoftDriver::builder().check_order(OrderCheck::Report));
        let (memory, other) = (alloc(&raw, 4096), alloc(&raw, 4096));
        let (a, b) = (raw.stream(NON_BLOCKING), raw.stream(NON_BLOCKING));
        for (stream, shift) in [(a, 0), (b, shift)] {
            let copy = Copy2D {
                source: device(other, 128),
                destination: device(memory + shift, 128),
                width: 32,
                height: 8,
            };
            let code = call!(raw, cuMemcpy2DAsync_v2(&copy => *const Copy2D, stream => CUstream));
            assert_eq!(code, OK);
        }
        raw.sync(a);
        raw.sync(b);
        let findings = order_texts(&raw.soft);
        assert_eq!(findings.len(), reports, "{shift} bytes apart: {findings:?}");
        if let Some(finding) = findings.first() {
            assert!(finding.contains("cuMemcpy2DAsync_v2"), "{finding}");
        }
    }
}

/// The same of rows that are read, and of rows that are set.
#[test]
fn the_order_checker_sees_rows_that_are_read_and_set() {
    // Its reports are for nobody.
    cuda_events_test_support::own_process!();
    const ROWS: usize = 8;
    for row in 0..ROWS as u64 {
        for (column, reports) in [(0, 1), (31, 1), (32, 0), (96, 0)] {
            let raw = Raw::planting(SoftDriver::builder().check_order(OrderCheck::Report));
            let (memory, other) = (alloc(&raw, 4096), alloc(&raw, 4096));
            let (a, b) = (raw.stream(NON_BLOCKING), raw.stream(NON_BLOCKING));
            let byte = memory + row * 128 + column;
            let sets = |stream: CUstream| {
                assert_eq!(unsafe { (raw.cuMemsetD8Async)(byte, 1, 1, stream) }.0, OK);
            };
            let copy = Copy2D {
                source: device(memory, 128),
                destination: device(other, 128),
                width: 32,
                height: ROWS,
            };
            let code = call!(raw, cuMemcpy2DAsync_v2(&copy => *const Copy2D, a => CUstream));
            assert_eq!(code, OK);
            sets(b);
            let findings = order_texts(&raw.soft);
            assert_eq!(findings.len(), reports, "({row}, {column}) is read: {findings:?}");
            raw.sync(a);
            raw.sync(b);
            let code = call!(raw, cuMemsetD2D8Async(memory => u64, 128 => usize, 1 => u8,
                32 => usize, ROWS => usize, a => CUstream));
            assert_eq!(code, OK);
            sets(b);
            let findings = order_texts(&raw.soft);
            assert_eq!(findings.len(), 2 * reports, "({row}, {column}) is set: {findings:?}");
            raw.sync(a);
            raw.sync(b);
        }
    }
}

/// All the bytes that rows share count, and a report says how many they are.
#[test]
fn a_report_has_the_bytes_of_all_rows() {
    cuda_events_test_support::own_process!();
    let raw = Raw::planting(SoftDriver::builder().check_order(OrderCheck::Report));
    let (memory, other) = (alloc(&raw, 4096), alloc(&raw, 4096));
    for shift in [0, 31] {
        let (source, destination) = (device(other + 2 * shift, 128), device(memory + shift, 128));
        let copy = Copy2D { source, destination, width: 32, height: 8 };
        let stream = raw.stream(NON_BLOCKING);
        let code = call!(raw, cuMemcpy2DAsync_v2(&copy => *const Copy2D, stream => CUstream));
        assert_eq!(code, OK);
    }
    let found = order_texts(&raw.soft).concat();
    assert!(found.contains("two calls touch the same 8 bytes, and"), "{found}");
    assert_eq!(unsafe { (raw.cuCtxSynchronize)() }.0, OK);
}

/// Of two contexts, one of which is detached as often as it was attached and created.
#[test]
fn a_context_ends_with_its_last_detach() {
    let raw = Raw::new();
    let (mut created, mut attached) = (null_mut(), null_mut());
    assert_eq!(unsafe { (raw.cuCtxCreate_v2)(&mut created, 0, 0) }.0, OK);
    let mut attach = || call!(raw, cuCtxAttach(&mut attached => *mut CUcontext, 0 => u32));
    let detach = || call!(raw, cuCtxDetach(created => CUcontext));
    assert_eq!((attach(), attach()), (OK, OK));
    assert_eq!((detach(), detach()), (OK, OK));
    assert_eq!(raw.soft.live().contexts, 1);
    assert_eq!(detach(), OK);
    assert_eq!(raw.soft.live().contexts, 0);
    // A primary context has its retains: what was attached is detached, and no more.
    let primary = raw.retain(0);
    raw.set_current(primary);
    let mut attached = null_mut();
    assert_eq!(call!(raw, cuCtxAttach(&mut attached => *mut CUcontext, 0 => u32)), OK);
    assert_eq!(call!(raw, cuCtxDetach(primary => CUcontext)), OK);
    assert_eq!(call!(raw, cuCtxDetach(primary => CUcontext)), INVALID_CONTEXT);
    assert_eq!(unsafe { (raw.cuCtxSynchronize)() }.0, OK);
}

/// The requested size counts, not what the device makes of it; and it is no memory of the host's
/// to free.
#[test]
fn managed_memory_and_rows_are_freed_as_device_memory() {
    let raw = Raw::new();
    let (mut managed, mut rows, mut pitch) = (0, 0, 0);
    let managed_code = call!(raw, cuMemAllocManaged(&mut managed => *mut u64, 100 => usize,
        1 => u32));
    let rows_code = call!(raw, cuMemAllocPitch_v2(&mut rows => *mut u64, &mut pitch => *mut usize,
        100 => usize, 7 => usize, 8 => u32));
    assert_eq!((managed_code, rows_code, pitch), (OK, OK, 512));
    let (mut base, mut size) = (0, 0);
    fn range(raw: &Raw, of: u64, base: &mut u64, size: &mut usize) -> u32 {
        call!(raw, cuMemGetAddressRange_v2(base => *mut u64, size => *mut usize, of => u64))
    }
    assert_eq!(range(&raw, rows + 7 * 512 - 1, &mut base, &mut size), OK);
    assert_eq!((base, size), (rows, 7 * 512));
    assert_eq!(raw.soft.live().allocations, 2);
    let host = std::ptr::with_exposed_provenance_mut(managed as usize);
    assert_eq!(unsafe { (raw.cuMemFreeHost)(host) }.0, INVALID_VALUE);
    for address in [managed, rows] {
        assert_eq!(unsafe { (raw.cuMemFree_v2)(address) }.0, OK);
        assert_eq!(unsafe { (raw.cuMemFree_v2)(address) }.0, INVALID_VALUE);
    }
    assert_eq!(raw.soft.live().allocations, 0);
}

/// A copy to another device is ordered like every other one, and must be waited for.
#[test]
fn the_order_checker_sees_copies_between_devices() {
    // Its reports are for nobody.
    cuda_events_test_support::own_process!();
    for mended in [false, true] {
        let checked = SoftDriver::builder().devices(2).check_order(OrderCheck::Report);
        let raw = Raw::planting(checked);
        let here = raw.retain(0);
        let there = raw.retain(1);
        let (a, from) = (raw.stream(NON_BLOCKING), alloc(&raw, 64));
        raw.set_current(there);
        let (b, to) = (raw.stream(NON_BLOCKING), alloc(&raw, 64));
        raw.set_current(here);
        let event = raw.event(2);
        let copied = call!(raw, cuMemcpyPeerAsync(to => u64, there => CUcontext, from => u64,
            here => CUcontext, 64 => usize, a => CUstream));
        assert_eq!(copied, OK);
        raw.record(event, a);
        if mended {
            raw.wait(b, event);
        }
        assert_eq!(unsafe { (raw.cuMemsetD32Async)(to, 0, 16, b) }.0, OK);
        raw.sync(a);
        raw.sync(b);
        let findings = order_texts(&raw.soft);
        assert_eq!(findings.len(), usize::from(!mended), "{findings:?}");
        assert!(mended || findings[0].contains("cuMemcpyPeerAsync"));
    }
}

/// What is said of managed memory is checked, and changes nothing that a program could see.
#[test]
fn what_is_said_of_managed_memory() {
    let raw = Raw::new();
    let stream = raw.stream(NON_BLOCKING);
    let (mut managed, plain) = (0, alloc(&raw, 64));
    let made = call!(raw, cuMemAllocManaged(&mut managed => *mut u64, 64 => usize, 2 => u32));
    assert_eq!(made, OK);
    let on = |kind: u32, id: i32| Location { kind, id };
    let prefetch = |address: u64, bytes: usize, device: i32| {
        let goal = if device == -1 { on(2, 0) } else { on(1, device) };
        let code = call!(raw, cuMemPrefetchAsync_v2(address => u64, bytes => usize,
            goal => Location, 0 => u32, stream => CUstream));
        let older = call!(raw, cuMemPrefetchAsync(address => u64, bytes => usize,
            device => i32, stream => CUstream));
        assert_eq!(code, older);
        code
    };
    assert_eq!((prefetch(managed, 64, 0), prefetch(managed + 8, 8, -1)), (OK, OK));
    assert_eq!((prefetch(managed, 65, 0), prefetch(plain, 64, 0)), (INVALID_VALUE, INVALID_VALUE));
    assert_eq!((prefetch(managed, 0, 0), prefetch(managed, 64, 7)), (INVALID_VALUE, 101));
    let advise = |address: u64, advice: u32, device: i32| {
        let bytes = 64;
        call!(raw, cuMemAdvise(address => u64, bytes => usize, advice => u32, device => i32))
    };
    assert_eq!((advise(managed, 1, 77), advise(managed, 3, -1)), (OK, OK));
    assert_eq!((advise(managed, 3, 7), advise(managed, 0, 0)), (101, INVALID_VALUE));
    assert_eq!((advise(managed, 7, 0), advise(plain, 1, 0)), (INVALID_VALUE, INVALID_VALUE));
    let attach = |stream: CUstream, address: u64, bytes: usize, flags: u32| {
        call!(raw, cuStreamAttachMemAsync(stream => CUstream, address => u64, bytes => usize,
            flags => u32))
    };
    for flags in [1, 2, 4] {
        assert_eq!(attach(stream, managed, 0, flags), OK);
    }
    assert_eq!(attach(stream, managed, 64, 1), OK);
    for (stream, address, bytes, flags) in [
        (stream, managed, 32, 1),
        (stream, managed + 8, 0, 1),
        (stream, plain, 0, 1),
        (stream, managed, 0, 3),
        (null_mut(), managed, 0, 4),
    ] {
        assert_eq!(attach(stream, address, bytes, flags), INVALID_VALUE, "{bytes} {flags}");
    }
}
