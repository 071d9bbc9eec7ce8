//! Copies that the software driver lacks, in batches and with attributes: they do nothing here, but the
//! stand-in sees them. The rows have what each touches and orders.

use std::ffi::{CStr, c_void};
use std::ptr::null_mut;

use cuda_events::sys::CUstream;
use cuda_events_test_support::aside;
use cuda_events_test_support::planted::{Desk, builder};
use cuda_events_test_support::raw::{Front, OK, Raw, call};
use cuda_order_check_preload as preload;
use cuda_soft_driver::SoftDriver;

use super::front::{FRONT, Program, found};
use super::unknown::{install, summary};

/// Each has an address of its own.
unsafe extern "C" fn done<const N: u32>() -> u32 {
    std::hint::black_box(N) - N
}

/// An array of floats, or of a format that nobody knows.
unsafe extern "C" fn describe(answer: &mut [u32; 10], array: usize) -> u32 {
    *answer = [0; 10];
    (answer[6], answer[7]) = (if array == ARRAY { 0x20 } else { 0x7f }, 1);
    OK
}

const ARRAY: usize = 8;

fn with_arrays(soft: &SoftDriver, name: &CStr) -> *mut c_void {
    match name.to_bytes() {
        b"cuMemcpy3DBatchAsync" => done::<9> as *mut c_void,
        b"cuMemcpy3DBatchAsync_v2" => done::<10> as *mut c_void,
        b"cuMemcpy3DWithAttributesAsync" => done::<11> as *mut c_void,
        b"cuMemcpyBatchAsync" => done::<12> as *mut c_void,
        b"cuMemcpyBatchAsync_v2" => done::<13> as *mut c_void,
        b"cuMemcpyWithAttributesAsync" => done::<14> as *mut c_void,
        b"cuArray3DGetDescriptor_v2" => describe as *mut c_void,
        _ => soft.resolve(name),
    }
}

const WITH_ARRAYS: Front = Front {
    install: |soft| install(&|name| with_arrays(soft, name)),
    resolve: |soft, name| preload::target(name, &|name| with_arrays(soft, name)),
    declare: FRONT.declare,
};

fn good(code: u32) {
    assert_eq!(code, OK);
}

/// `CUDA_MEMCPY3D_BATCH_OP`, with sixteen elements in each of two rows.
#[repr(C)]
struct Op {
    from: [usize; 5],
    to: [usize; 5],
    extent: [usize; 3],
    settings: [u32; 2],
}

/// An address, and rows that follow each other after so many elements.
fn at(address: u64, row: usize) -> [usize; 5] {
    [1, address as usize, row, 0, 0]
}

fn op(to: [usize; 5], from: [usize; 5]) -> Op {
    Op { from, to, extent: [16, 2, 1], settings: [0; 2] }
}

fn batch(p: &Desk<'_>, op: &Op, stream: CUstream) {
    good(call!(p.raw, cuMemcpy3DBatchAsync_v2(1 => usize, op => *const Op, 0 => u64,
        stream => CUstream)));
}

const BATCHES: [(&str, Program); 3] = [
    ("a batch: rows that follow each other", |p| {
        batch(p, &op(at(p.other, 0), at(p.buffer, 32)), p.a);
        p.get(p.b, p.other + if p.mended { 32 } else { 31 }, 16);
    }),
    ("a batch: an array's elements have four bytes", |p| {
        let op = op([2, ARRAY, 0, 0, 0], at(p.buffer, 32));
        good(call!(p.raw, cuMemcpy3DBatchAsync(1 => usize, &op => *const Op,
            null_mut() => *mut usize, 0 => u64, p.a => CUstream)));
        p.set(p.b, p.buffer + if p.mended { 64 } else { 128 + 60 }, 4);
    }),
    ("a batch: and so have those of one that is read", |p| {
        let op = op(at(p.buffer, 32), [2, ARRAY, 0, 0, 0]);
        batch(p, &op, p.a);
        p.get(p.b, p.buffer + if p.mended { 64 } else { 128 + 60 }, 4);
    }),
];

/// `CU_MEMCPY_SRC_ACCESS_ORDER_STREAM` and the two others.
const IN_STREAM: u32 = 1;
const DURING_CALL: u32 = 2;
const ANY_TIME: u32 = 3;

/// A copy of 64 bytes whose source is read in this order, by one of the functions that say so.
fn ordered(p: &Desk<'_>, by: usize, order: u32, from: u64, stream: CUstream) {
    // The attributes of a copy before it, and of those from it on.
    let before = if order == IN_STREAM { DURING_CALL } else { IN_STREAM };
    let attributes = [[before, 0, 0, 0, 0, 0], [order, 0, 0, 0, 0, 0]];
    let one = &attributes[1..];
    let elsewhere = p.other + 512;
    let (to, sources) = ([elsewhere, p.other], [elsewhere + 64, from]);
    let (bytes, first) = ([4_usize, 64], [0_usize, 1]);
    let (to, sources, bytes) = (to.as_ptr(), sources.as_ptr(), bytes.as_ptr());
    let (all, first) = (attributes.as_ptr(), first.as_ptr());
    good(match by {
        0 => call!(p.raw, cuMemcpyBatchAsync_v2(to => *const u64, sources => *const u64,
            bytes => *const usize, 2 => usize, all => *const [u32; 6], first => *const usize,
            2 => usize, stream => CUstream)),
        1 => call!(p.raw, cuMemcpyBatchAsync(to => *const u64, sources => *const u64,
            bytes => *const usize, 2 => usize, all => *const [u32; 6], first => *const usize,
            2 => usize, null_mut() => *mut usize, stream => CUstream)),
        2 => call!(p.raw, cuMemcpyWithAttributesAsync(p.other => u64, from => u64, 64 => usize,
            one.as_ptr() => *const [u32; 6], stream => CUstream)),
        _ => {
            let op = Op { settings: [order, 0], ..op(at(p.other, 0), at(from, 0)) };
            let op = Op { extent: [64, 1, 1], ..op };
            match by {
                3 => call!(p.raw, cuMemcpy3DBatchAsync_v2(1 => usize, &op => *const Op, 0 => u64,
                    stream => CUstream)),
                _ => call!(p.raw, cuMemcpy3DWithAttributesAsync(&op => *const Op, 0 => u64,
                    stream => CUstream)),
            }
        }
    });
}

type Ordered = fn(&Desk<'_>, usize, u32);

/// Programs with a copy in an order, and whether each of the three is an error.
#[rustfmt::skip] // A row in few lines.
const ORDERS: [(&str, Ordered, [bool; 3]); 6] = [
    ("another stream writes the source afterwards", |p, by, order| {
        ordered(p, by, order, p.buffer, p.a);
        p.writes(p.b);
    }, [true, false, true]),
    ("the host writes the source afterwards", |p, by, order| {
        ordered(p, by, order, p.pinned as u64, p.a);
        p.host_writes();
    }, [true, false, true]),
    ("the host writes the source after a wait", |p, by, order| {
        ordered(p, by, order, p.pinned as u64, p.a);
        p.raw.sync(p.a);
        p.host_writes();
    }, [false, false, false]),
    ("the stream has written the source before", |p, by, order| {
        p.writes(p.a);
        ordered(p, by, order, p.buffer, p.a);
    }, [false, true, true]),
    ("the stream has written the source before, and is waited for", |p, by, order| {
        p.writes(p.a);
        p.raw.sync(p.a);
        ordered(p, by, order, p.buffer, p.a);
    }, [false, false, false]),
    // The destination is written in the stream's order, whenever the source is read.
    ("another stream reads the destination afterwards", |p, by, order| {
        ordered(p, by, order, p.buffer, p.a);
        p.get(p.b, p.other + 32, 4);
    }, [true, true, true]),
];

#[test]
fn sources_are_read_when_the_attributes_say() {
    aside!();
    for (what, program, wrong) in ORDERS {
        for by in 0..5 {
            for (order, wrong) in [IN_STREAM, DURING_CALL, ANY_TIME].into_iter().zip(wrong) {
                let raw = Raw::behind(builder(0), WITH_ARRAYS);
                let desk = Desk::new(&raw, false);
                program(&desk, by, order);
                desk.end();
                let found = found();
                assert_eq!(!found.is_empty(), wrong, "{what}, {by}, {order}: {found:x?}");
            }
        }
    }
}

#[test]
fn batches_of_rows_have_their_bytes() {
    aside!();
    for (what, program) in BATCHES {
        for mended in [true, false] {
            let raw = Raw::behind(builder(0), WITH_ARRAYS);
            let desk = Desk::new(&raw, mended);
            program(&desk);
            desk.end();
            let found = found();
            assert_eq!(found.len(), usize::from(!mended), "{what}, {mended}: {found:x?}");
        }
    }
    let text = summary();
    assert!(!text.contains("ordering everything: cuMemcpy"), "{text}");
}

#[test]
fn a_batch_with_an_unknown_format_orders_everything() {
    aside!();
    let raw = Raw::behind(builder(0), WITH_ARRAYS);
    let p = Desk::new(&raw, false);
    p.writes(p.a);
    batch(&p, &op([2, ARRAY + 8, 0, 0, 0], at(p.other, 0)), p.a);
    p.reads(p.b);
    p.end();
    assert_eq!(found(), []);
    let text = summary();
    let line = "each counts as ordering everything: 1 batch of copies of arrays";
    assert!(text.contains(line), "{text}");
}
