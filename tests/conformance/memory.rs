//! Copies of rows.

use std::ptr::null_mut;

use cuda_events::sys::*;
use cuda_soft_driver::abi::{Copy2D, Side2D};

use crate::raw::{NON_BLOCKING, Rig, must};
use crate::rules;

const HOST: u32 = 1;
const DEVICE: u32 = 2;
const UNIFIED: u32 = 4;

fn host(memory: *mut u8, pitch: usize) -> Side2D {
    let array = null_mut();
    Side2D { x: 0, y: 0, memory_type: HOST, host: memory.cast(), device: 0, array, pitch }
}

fn device(address: CUdeviceptr, pitch: usize) -> Side2D {
    Side2D { memory_type: DEVICE, device: address, ..host(null_mut(), pitch) }
}

/// Device memory of which each byte is this.
fn filled(rig: &Rig, bytes: usize, value: u8) -> CUdeviceptr {
    let mut address = 0;
    must("cuMemAlloc", rig.cuMemAlloc_v2(&mut address, bytes));
    let stream = rig.stream(NON_BLOCKING);
    must("cuMemsetD8Async", rig.cuMemsetD8Async(address, value, bytes, stream));
    rig.synchronize(stream);
    address
}

/// What is in device memory.
fn bytes(rig: &Rig, address: CUdeviceptr, count: usize) -> Vec<u8> {
    let (mut all, stream) = (vec![0_u8; count], rig.stream(NON_BLOCKING));
    let place = all.as_mut_ptr().cast();
    must("cuMemcpyDtoHAsync", rig.cuMemcpyDtoHAsync_v2(place, address, count, stream));
    rig.synchronize(stream);
    all
}

fn free(rig: &Rig, address: CUdeviceptr) {
    must("cuMemFree", rig.cuMemFree_v2(address));
}

rules! {
    /// Rows are copied to and from the device with any distance between them; what is between them
    /// stays as it was.
    fn copies_of_rows(rig, saw) =
        "to the device as it should be; back as it should be; by an address that says whose it is \
         as it should be; without a distance as it should be; as one captures it as it should be"
    {
        let frame: Vec<u8> = (0..30_u8).collect();
        let memory = filled(rig, 64 * 5, 0xEE);
        let there = Side2D { x: 3, y: 1, ..device(memory, 64) };
        let own = host(frame.as_ptr().cast_mut(), 10);
        let copy =
            |source, destination| Copy2D { source, destination, width: 10, height: 3 };
        must("cuMemcpy2D", rig.cuMemcpy2D_v2(&copy(own, there)));
        let mut expected = vec![0xEE; 64 * 5];
        for row in 0..3 {
            expected[(row + 1) * 64 + 3..][..10].copy_from_slice(&frame[row * 10..][..10]);
        }
        let good = "as it should be";
        saw.holds(&format!("to the device {good}"), bytes(rig, memory, 64 * 5) == expected);
        let mut rows = [0xEE_u8; 64];
        let back = host(rows.as_mut_ptr(), 16);
        must("cuMemcpy2D", rig.cuMemcpy2D_v2(&copy(there, back)));
        let mut expected = [0xEE; 64];
        for row in 0..3 {
            expected[row * 16..][..10].copy_from_slice(&frame[row * 10..][..10]);
        }
        saw.holds(&format!("back {good}"), rows == expected);
        rows.fill(0xEE);
        let unified = Side2D { memory_type: UNIFIED, ..there };
        must("cuMemcpy2DUnaligned", rig.cuMemcpy2DUnaligned_v2(&copy(unified, back)));
        saw.holds(&format!("by an address that says whose it is {good}"), rows == expected);
        let mut dense = [0xEE_u8; 30];
        let without = host(dense.as_mut_ptr(), 0);
        must("cuMemcpy2D", rig.cuMemcpy2D_v2(&copy(there, without)));
        saw.holds(&format!("without a distance {good}"), dense == *frame);
        let other = filled(rig, 64, 0xEE);
        let stream = crate::capture::capturing(rig, crate::capture::RELAXED);
        let captured = copy(there, device(other, 16));
        must("cuMemcpy2DAsync", rig.cuMemcpy2DAsync_v2(&captured, stream));
        let (code, graph) = crate::capture::end(rig, stream);
        must("cuStreamEndCapture", code);
        let mut exec = null_mut();
        must("cuGraphInstantiate", rig.cuGraphInstantiateWithFlags(&mut exec, graph, 0));
        must("cuGraphLaunch", rig.cuGraphLaunch(exec, stream));
        rig.synchronize(stream);
        saw.holds(&format!("as one captures it {good}"), bytes(rig, other, 64) == expected);
        must("cuGraphExecDestroy", rig.cuGraphExecDestroy(exec));
        must("cuGraphDestroy", rig.cuGraphDestroy(graph));
        free(rig, memory);
        free(rig, other);
    }

    /// What a copy of rows refuses: what is past the end, rows that overlap, a distance that is too
    /// long for the device, memory that is nobody's, places that are none, and kinds of memory that
    /// there are not. Of nothing it is no copy.
    fn copies_of_rows_refused(rig, saw) =
        "CUDA_ERROR_INVALID_VALUE (1) from past the end, rows that overlap, a row and what is \
         before it, a distance too long, nobody's, no host memory, no kind, no copy; success from \
         no bytes, no rows"
    {
        let mut here = [0_u8; 256];
        let memory = filled(rig, 4096, 0);
        let own = host(here.as_mut_ptr(), 16);
        let there = device(memory, 256);
        let copied = |source, destination, width, height| {
            rig.cuMemcpy2D_v2(&Copy2D { source, destination, width, height })
        };
        let copy = |source, destination| copied(source, destination, 16, 16);
        saw.codes(&[
            ("past the end", copy(own, device(memory, 512))),
            ("rows that overlap", copy(own, device(memory, 15))),
            ("a row and what is before it", copy(own, Side2D { x: 1, ..device(memory, 16) })),
            ("a distance too long", copied(own, device(memory, 1 << 31), 16, 1)),
            ("nobody's", copy(own, device(16, 256))),
            ("no host memory", copy(host(null_mut(), 16), there)),
            ("no kind", copy(Side2D { memory_type: 9, ..own }, there)),
            ("no copy", rig.cuMemcpy2D_v2(std::ptr::null())),
            ("no bytes", copied(own, there, 0, 16)),
            ("no rows", copied(own, there, 16, 0)),
        ]);
        free(rig, memory);
    }

    /// Rows are set as well, elements of their own size; what is between them stays.
    fn setting_rows(rig, saw) =
        "as it should be; CUDA_ERROR_INVALID_VALUE (1) from unaligned, rows that overlap, past the \
         end"
    {
        let memory = filled(rig, 64 * 3, 0xEE);
        must("cuMemsetD2D16", rig.cuMemsetD2D16_v2(memory + 2, 64, 0x1234, 2, 3));
        let row = [&[0xEE, 0xEE, 0x34, 0x12, 0x34, 0x12][..], &[0xEE; 58]].concat();
        saw.holds("as it should be", bytes(rig, memory, 64 * 3) == row.repeat(3));
        saw.codes(&[
            ("unaligned", rig.cuMemsetD2D16_v2(memory + 1, 64, 1, 2, 3)),
            ("rows that overlap", rig.cuMemsetD2D16_v2(memory, 2, 1, 2, 3)),
            ("past the end", rig.cuMemsetD2D16_v2(memory, 64, 1, 2, 64)),
        ]);
        free(rig, memory);
    }

    /// Rows of memory that is made for them begin at multiples of 512 bytes.
    fn rows_of_memory(rig, saw) =
        "rows of 1, 100, 512 bytes: 512; 513 bytes: 1024; success from element of 4, element of 8, \
         element of 16; CUDA_ERROR_INVALID_VALUE (1) from element of 1, element of 3, no width, no \
         height, no place, no place for the pitch"
    {
        let made = |width, height, element| {
            let (mut address, mut pitch) = (0, 0);
            let code = rig.cuMemAllocPitch_v2(&mut address, &mut pitch, width, height, element);
            if code == CUresult::CUDA_SUCCESS {
                free(rig, address);
            }
            (code, pitch)
        };
        let pitch = |width| {
            let (code, pitch) = made(width, 3, 4);
            must("cuMemAllocPitch", code);
            pitch
        };
        if [1, 100, 512].map(pitch) == [512; 3] {
            saw.text("rows of 1, 100, 512 bytes: 512");
        }
        saw.text(format_args!("513 bytes: {}", pitch(513)));
        let (mut address, mut place) = (0, 0);
        saw.codes(&[
            ("element of 4", made(1, 3, 4).0),
            ("element of 8", made(1, 3, 8).0),
            ("element of 16", made(1, 3, 16).0),
            ("element of 1", made(1, 3, 1).0),
            ("element of 3", made(1, 3, 3).0),
            ("no width", made(0, 3, 4).0),
            ("no height", made(1, 0, 4).0),
            ("no place", rig.cuMemAllocPitch_v2(null_mut(), &mut place, 1, 3, 4)),
            ("no place for the pitch", rig.cuMemAllocPitch_v2(&mut address, null_mut(), 1, 3, 4)),
        ]);
    }

    /// Managed memory is of the host and the device alike, for every stream or for none at first.
    fn managed_memory(rig, saw) =
        "success from global, host; CUDA_ERROR_INVALID_VALUE (1) from no flags, both, single, no \
         bytes, no place; set by the device, read by the host; written by the host, copied by the \
         device; managed; kind of memory 2"
    {
        let made = |bytes, flags| {
            let mut address = 0;
            let code = rig.cuMemAllocManaged(&mut address, bytes, flags);
            if code == CUresult::CUDA_SUCCESS {
                free(rig, address);
            }
            code
        };
        saw.codes(&[
            ("global", made(64, 1)),
            ("host", made(64, 2)),
            ("no flags", made(64, 0)),
            ("both", made(64, 3)),
            ("single", made(64, 4)),
            ("no bytes", made(0, 1)),
            ("no place", rig.cuMemAllocManaged(null_mut(), 64, 1)),
        ]);
        let mut address = 0;
        must("cuMemAllocManaged", rig.cuMemAllocManaged(&mut address, 64, 1));
        let stream = rig.stream(NON_BLOCKING);
        must("cuMemsetD8Async", rig.cuMemsetD8Async(address, 5, 64, stream));
        rig.synchronize(stream);
        let host = std::ptr::with_exposed_provenance_mut::<u8>(address as usize);
        // SAFETY: 64 bytes of memory that the host may touch, and nothing else does now.
        let seen = unsafe { std::slice::from_raw_parts(host, 64) } == [5; 64];
        saw.holds("set by the device, read by the host", seen);
        // SAFETY: as above.
        unsafe { host.write_bytes(7, 64) };
        saw.holds("written by the host, copied by the device", bytes(rig, address, 64) == [7; 64]);
        let attribute = |which| {
            let mut value = 77_u32;
            let place = std::ptr::from_mut(&mut value).cast();
            must("cuPointerGetAttribute", rig.cuPointerGetAttribute(place, which, address));
            // A bool is one byte of it.
            value & 0xFF
        };
        saw.holds("managed", attribute(8) == 1);
        saw.text(format_args!("kind of memory {}", attribute(2)));
        free(rig, address);
    }

    /// A copy between contexts names both; of one context it is an ordinary copy.
    fn a_copy_between_contexts(rig, saw) =
        "success from in a context, in a stream, of nothing; copied; \
         CUDA_ERROR_INVALID_CONTEXT (201) from no destination, no source; \
         CUDA_ERROR_INVALID_VALUE (1) from past the end"
    {
        let (from, to) = (filled(rig, 64, 3), filled(rig, 64, 0));
        let (own, none) = (rig.context, null_mut());
        let stream = rig.stream(NON_BLOCKING);
        saw.codes(&[
            ("in a context", rig.cuMemcpyPeer(to, own, from, own, 32)),
            ("in a stream", rig.cuMemcpyPeerAsync(to + 32, own, from, own, 32, stream)),
            ("of nothing", rig.cuMemcpyPeer(to, own, from, own, 0)),
        ]);
        rig.synchronize(stream);
        saw.holds("copied", bytes(rig, to, 64) == [3; 64]);
        saw.codes(&[
            ("no destination", rig.cuMemcpyPeer(to, none, from, own, 32)),
            ("no source", rig.cuMemcpyPeer(to, own, from, none, 32)),
            ("past the end", rig.cuMemcpyPeer(to, own, from, own, 1 << 40)),
        ]);
        free(rig, from);
        free(rig, to);
    }
}
