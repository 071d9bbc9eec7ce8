//! Copies of rows, pitched and managed memory, copies between contexts, and memory pools.

use std::ffi::c_void;
use std::ptr::null_mut;

use cuda_events::sys::more::*;
use cuda_soft_driver::abi::{
    CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER, CUmemAccessDesc, CUmemAllocationHandleType,
    CUmemAllocationType, CUmemLocation, CUmemLocationType, CUmemPoolProps, CUmemPoolPtrExportData,
    CUmemorytype,
};
use cuda_test_harness::child::{Child, from_hex, read_line, role, say, to_hex};
use cuda_test_harness::soft_settings;

use crate::raw::{NON_BLOCKING, Rig, code_text, must};
use crate::rules;
use crate::rules::do_not_hang;

const HOST: CUmemorytype = CUmemorytype::CU_MEMORYTYPE_HOST;
const DEVICE: CUmemorytype = CUmemorytype::CU_MEMORYTYPE_DEVICE;
const UNIFIED: CUmemorytype = CUmemorytype::CU_MEMORYTYPE_UNIFIED;

/// One side of a copy of rows.
#[derive(Clone, Copy)]
pub struct Side {
    x: usize,
    y: usize,
    kind: CUmemorytype,
    host: *mut u8,
    device: CUdeviceptr,
    pitch: usize,
}

pub fn host(memory: *mut u8, pitch: usize) -> Side {
    Side { x: 0, y: 0, kind: HOST, host: memory, device: 0, pitch }
}

pub fn device(address: CUdeviceptr, pitch: usize) -> Side {
    Side { kind: DEVICE, device: address, ..host(null_mut(), pitch) }
}

pub fn copy_of_rows(from: Side, to: Side, width: usize, height: usize) -> CUDA_MEMCPY2D {
    CUDA_MEMCPY2D {
        srcXInBytes: from.x,
        srcY: from.y,
        srcMemoryType: from.kind,
        srcHost: from.host.cast(),
        srcDevice: from.device,
        srcPitch: from.pitch,
        dstXInBytes: to.x,
        dstY: to.y,
        dstMemoryType: to.kind,
        dstHost: to.host.cast(),
        dstDevice: to.device,
        dstPitch: to.pitch,
        WidthInBytes: width,
        Height: height,
        ..CUDA_MEMCPY2D::default()
    }
}

/// Device memory with this value in each byte.
fn filled(rig: &Rig, bytes: usize, value: u8) -> CUdeviceptr {
    let mut address = 0;
    must!(rig.cuMemAlloc_v2(&mut address, bytes));
    let stream = rig.stream(NON_BLOCKING);
    must!(rig.cuMemsetD8Async(address, value, bytes, stream));
    rig.synchronize(stream);
    address
}

/// The bytes in device memory.
fn bytes(rig: &Rig, address: CUdeviceptr, count: usize) -> Vec<u8> {
    let (mut all, stream) = (vec![0_u8; count], rig.stream(NON_BLOCKING));
    let place = all.as_mut_ptr().cast();
    must!(rig.cuMemcpyDtoHAsync_v2(place, address, count, stream));
    rig.synchronize(stream);
    all
}

fn free(rig: &Rig, address: CUdeviceptr) {
    must!(rig.cuMemFree_v2(address));
}

const FILE_DESCRIPTOR: u32 = 1;

pub fn on_device(id: CUdevice) -> CUmemLocation {
    CUmemLocation { type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id }
}

pub fn props(rig: &Rig, handle_types: u32) -> CUmemPoolProps {
    CUmemPoolProps {
        allocType: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        handleTypes: CUmemAllocationHandleType(handle_types),
        location: on_device(rig.device),
        ..CUmemPoolProps::default()
    }
}

fn pool_attribute(rig: &Rig, pool: CUmemoryPool, attribute: u32) -> u64 {
    let mut value = 0_u64;
    let place = std::ptr::from_mut(&mut value).cast();
    must!(rig.cuMemPoolGetAttribute(pool, CUmemPool_attribute(attribute), place));
    value
}

#[cfg(target_os = "linux")]
unsafe extern "C" {
    fn syscall(number: std::ffi::c_long, ...) -> std::ffi::c_long;
    fn close(descriptor: i32) -> i32;
    fn prctl(option: i32, ...) -> i32;
}

#[cfg(target_os = "linux")]
fn take_descriptor(process: u32, descriptor: i32) -> Option<i32> {
    /// `pidfd_open` and `pidfd_getfd` have these numbers on every machine.
    const PIDFD_OPEN: std::ffi::c_long = 434;
    const PIDFD_GETFD: std::ffi::c_long = 438;
    // SAFETY: the arguments are only numbers; a wrong one returns an error.
    let taken = unsafe {
        let process = syscall(PIDFD_OPEN, process, 0);
        syscall(PIDFD_GETFD, process, descriptor, 0)
    };
    i32::try_from(taken).ok().filter(|taken| *taken >= 0)
}

#[cfg(not(target_os = "linux"))]
fn take_descriptor(_process: u32, _descriptor: i32) -> Option<i32> {
    None
}

#[cfg(not(target_os = "linux"))]
fn descriptors_between_processes() -> Result<(), String> {
    Err("this system has no such descriptors".to_owned())
}

/// A process can take a descriptor from another process only if the system allows it.
#[cfg(target_os = "linux")]
fn descriptors_between_processes() -> Result<(), String> {
    // SAFETY: the call allows any process of this user to trace this one.
    unsafe { prctl(0x5961_6D61, u64::MAX, 0_u64, 0_u64, 0_u64) };
    match take_descriptor(std::process::id(), 0) {
        Some(own) => {
            // SAFETY: the descriptor was just taken, and no other code has it.
            unsafe { close(own) };
            Ok(())
        }
        None => Err("the system lets no process take a descriptor".to_owned()),
    }
}

const IMPORTER: &str = "importer";

/// Not a rule: a process that opens a pool and memory of the pool.
#[test]
#[ignore = "another process, which a rule starts: cargo test -p cuda-driver-rules"]
fn importer() {
    assert_eq!(role().as_deref(), Some(IMPORTER), "this is no test of its own");
    do_not_hang();
    let rig = Rig::new("");
    let line = read_line();
    let words: Vec<&str> = line.split(' ').collect();
    let (process, number) = (words[0].parse().expect("a process"), words[1].parse());
    let descriptor = take_descriptor(process, number.expect("a descriptor")).expect("it is taken");
    let mut pool = null_mut();
    let handle = std::ptr::without_provenance_mut(descriptor as usize);
    let code = rig.cuMemPoolImportFromShareableHandle(
        &mut pool,
        handle,
        CUmemAllocationHandleType(FILE_DESCRIPTOR),
        0,
    );
    say(&format!("pool {}", code_text(code)));
    let mut data =
        CUmemPoolPtrExportData { reserved: from_hex(words[2]).try_into().expect("64 bytes") };
    let mut address = 0;
    say(&format!(
        "memory {}",
        code_text(rig.cuMemPoolImportPointer(&mut address, pool, &mut data))
    ));
    let same = bytes(&rig, address, 64) == [5; 64];
    say(if same { "the same bytes" } else { "other bytes" });
    let (stream, mut none) = (rig.stream(NON_BLOCKING), 0);
    let allocating = rig.cuMemAllocFromPoolAsync(&mut none, 64, pool, stream);
    say(&format!("allocating {}", code_text(allocating)));
    let freed = code_text(rig.cuMemFreeAsync(address, stream));
    rig.synchronize(stream);
    say(&format!("closed {freed}, {}", code_text(rig.cuMemPoolDestroy(pool))));
}

rules! {
    /// A copy of rows (`cuMemcpy2D`) to or from the device accepts any distance between the rows.
    /// The bytes between the rows stay as they were.
    [since(11, 4)]
    fn copies_of_rows(rig, saw) =
        "to the device as it should be; back as it should be; by an address that says whose it is \
         as it should be; without a distance as it should be; as one captures it as it should be"
    {
        let frame: Vec<u8> = (0..30_u8).collect();
        let memory = filled(rig, 64 * 5, 0xEE);
        let there = Side { x: 3, y: 1, ..device(memory, 64) };
        let own = host(frame.as_ptr().cast_mut(), 10);
        let copy = |source, destination| copy_of_rows(source, destination, 10, 3);
        must!(rig.cuMemcpy2D_v2(&copy(own, there)));
        // A call without a stream may return before it is done; another rule tests that.
        must("the wait", rig.cuCtxSynchronize());
        let mut expected = vec![0xEE; 64 * 5];
        for row in 0..3 {
            expected[(row + 1) * 64 + 3..][..10].copy_from_slice(&frame[row * 10..][..10]);
        }
        let good = "as it should be";
        saw.holds(&format!("to the device {good}"), bytes(rig, memory, 64 * 5) == expected);
        let mut rows = [0xEE_u8; 64];
        let back = host(rows.as_mut_ptr(), 16);
        must!(rig.cuMemcpy2D_v2(&copy(there, back)));
        let mut expected = [0xEE; 64];
        for row in 0..3 {
            expected[row * 16..][..10].copy_from_slice(&frame[row * 10..][..10]);
        }
        saw.holds(&format!("back {good}"), rows == expected);
        rows.fill(0xEE);
        let unified = Side { kind: UNIFIED, ..there };
        must!(rig.cuMemcpy2DUnaligned_v2(&copy(unified, back)));
        saw.holds(&format!("by an address that says whose it is {good}"), rows == expected);
        let mut dense = [0xEE_u8; 30];
        let without = host(dense.as_mut_ptr(), 0);
        must!(rig.cuMemcpy2D_v2(&copy(there, without)));
        saw.holds(&format!("without a distance {good}"), dense == *frame);
        let other = filled(rig, 64, 0xEE);
        let stream = crate::capture::capturing(rig, crate::capture::RELAXED);
        let captured = copy(there, device(other, 16));
        must!(rig.cuMemcpy2DAsync_v2(&captured, stream));
        let (code, graph) = crate::capture::end(rig, stream);
        must("cuStreamEndCapture", code);
        let mut exec = null_mut();
        must("cuGraphInstantiate", rig.cuGraphInstantiateWithFlags(&mut exec, graph, 0));
        must!(rig.cuGraphLaunch(exec, stream));
        rig.synchronize(stream);
        saw.holds(&format!("as one captures it {good}"), bytes(rig, other, 64) == expected);
        must!(rig.cuGraphExecDestroy(exec));
        must!(rig.cuGraphDestroy(graph));
        free(rig, memory);
        free(rig, other);
    }

    /// A copy of rows returns `CUDA_ERROR_INVALID_VALUE` for rows past the end of the memory, for
    /// rows that overlap, for memory that is not allocated, for NULL as host memory, for an unknown
    /// kind of memory, and for NULL as the description. It succeeds for a row distance that is too
    /// long for the device. With no bytes or no rows it succeeds and copies nothing.
    fn copies_of_rows_refused(rig, saw) =
        "CUDA_ERROR_INVALID_VALUE (1) from past the end, rows that overlap, a row and what is \
         before it, nobody's, no host memory, no kind, no copy; success from a distance too long, \
         no bytes, no rows"
    {
        let mut here = [0_u8; 256];
        let memory = filled(rig, 4096, 0);
        let own = host(here.as_mut_ptr(), 16);
        let there = device(memory, 256);
        let copied = |source, destination, width, height| {
            rig.cuMemcpy2D_v2(&copy_of_rows(source, destination, width, height))
        };
        let copy = |source, destination| copied(source, destination, 16, 16);
        saw.codes(&[
            ("past the end", copy(own, device(memory, 512))),
            ("rows that overlap", copy(own, device(memory, 15))),
            ("a row and what is before it", copy(own, Side { x: 1, ..device(memory, 16) })),
            ("a distance too long", copied(own, device(memory, 1 << 31), 16, 1)),
            ("nobody's", copy(own, device(16, 256))),
            ("no host memory", copy(host(null_mut(), 16), there)),
            ("no kind", copy(Side { kind: CUmemorytype(9), ..own }, there)),
            ("no copy", rig.cuMemcpy2D_v2(std::ptr::null())),
            ("no bytes", copied(own, there, 0, 16)),
            ("no rows", copied(own, there, 16, 0)),
        ]);
        must("the wait", rig.cuCtxSynchronize());
        free(rig, memory);
    }

    /// A memset of rows (`cuMemsetD2D16`) sets elements of its own size. The bytes between the rows
    /// stay as they were.
    fn setting_rows(rig, saw) =
        "as it should be; CUDA_ERROR_INVALID_VALUE (1) from unaligned, rows that overlap, past the \
         end"
    {
        let memory = filled(rig, 64 * 3, 0xEE);
        must!(rig.cuMemsetD2D16_v2(memory + 2, 64, 0x1234, 2, 3));
        must("the wait", rig.cuCtxSynchronize());
        let row = [&[0xEE, 0xEE, 0x34, 0x12, 0x34, 0x12][..], &[0xEE; 58]].concat();
        saw.holds("as it should be", bytes(rig, memory, 64 * 3) == row.repeat(3));
        saw.codes(&[
            ("unaligned", rig.cuMemsetD2D16_v2(memory + 1, 64, 1, 2, 3)),
            ("rows that overlap", rig.cuMemsetD2D16_v2(memory, 2, 1, 2, 3)),
            ("past the end", rig.cuMemsetD2D16_v2(memory, 64, 1, 2, 64)),
        ]);
        free(rig, memory);
    }

    /// A copy of layers (`cuMemcpy3D`) begins at any layer, row and byte. Layers must not overlap.
    fn copies_of_layers(rig, saw) =
        "as it should be; CUDA_ERROR_INVALID_VALUE (1) from layers that overlap, past the end"
    {
        let own: Vec<u8> = (1..=24).collect();
        let memory = filled(rig, 4096, 0xEE);
        let copy = CUDA_MEMCPY3D {
            srcMemoryType: HOST,
            srcHost: own.as_ptr().cast(),
            srcPitch: 4,
            srcHeight: 3,
            dstXInBytes: 2,
            dstY: 1,
            dstZ: 1,
            dstMemoryType: DEVICE,
            dstDevice: memory,
            dstPitch: 16,
            dstHeight: 8,
            WidthInBytes: 4,
            Height: 3,
            Depth: 2,
            ..CUDA_MEMCPY3D::default()
        };
        must!(rig.cuMemcpy3D_v2(&copy));
        must("the wait", rig.cuCtxSynchronize());
        let mut expected = vec![0xEE; 4096];
        for (row, bytes) in own.chunks(4).enumerate() {
            expected[(1 + row / 3) * 128 + (1 + row % 3) * 16 + 2..][..4].copy_from_slice(bytes);
        }
        saw.holds("as it should be", bytes(rig, memory, 4096) == expected);
        saw.codes(&[
            ("layers that overlap", rig.cuMemcpy3D_v2(&CUDA_MEMCPY3D { dstHeight: 2, ..copy })),
            ("past the end", rig.cuMemcpy3D_v2(&CUDA_MEMCPY3D { dstZ: 40, ..copy })),
        ]);
        free(rig, memory);
    }

    /// A copy of layers between contexts is as one within a context.
    fn layers_between_contexts(rig, saw) = "success from now, in a stream; as it should be" {
        let (from, to) = (filled(rig, 4096, 6), filled(rig, 4096, 1));
        let copy = CUDA_MEMCPY3D_PEER {
            srcMemoryType: DEVICE,
            srcDevice: from,
            srcContext: rig.context,
            srcPitch: 8,
            srcHeight: 4,
            dstMemoryType: DEVICE,
            dstDevice: to,
            dstContext: rig.context,
            dstPitch: 4,
            dstHeight: 4,
            WidthInBytes: 4,
            Height: 4,
            Depth: 4,
            ..CUDA_MEMCPY3D_PEER::default()
        };
        let stream = rig.stream(NON_BLOCKING);
        saw.codes(&[
            ("now", rig.cuMemcpy3DPeer(&copy)),
            ("in a stream", rig.cuMemcpy3DPeerAsync(&copy, stream)),
        ]);
        must("the wait", rig.cuCtxSynchronize());
        let mut expected = vec![1; 4096];
        expected[..64].fill(6);
        saw.holds("as it should be", bytes(rig, to, 4096) == expected);
        free(rig, from);
        free(rig, to);
    }

    /// A stream does its memsets and copies in order, whatever the size of their elements. A copy
    /// from ordinary host memory copies the bytes that were there at the call.
    fn memsets_and_copies_in_a_stream(rig, saw) =
        "nothing before its turn; 9 9 9 9 1 2 3 4; the bytes of the call; the rows of the call; CUDA_ERROR_INVALID_VALUE \
         (1) from a copy past the end, a memset past the end, unaligned"
    {
        let (from, to) = (filled(rig, 64, 0), filled(rig, 64, 0));
        let (stream, mut own, mut pinned) = (rig.stream(NON_BLOCKING), vec![5_u8; 64], null_mut());
        must!(rig.cuMemHostAlloc(&mut pinned, 64, 0));
        let place = pinned.cast::<u8>();
        // SAFETY: 64 bytes that were just allocated.
        unsafe { place.write_bytes(0, 64) };
        // SAFETY: as above, and the stream writes them only while it is waited for.
        let first = || unsafe { std::slice::from_raw_parts(place, 8) }.to_vec();
        let latch = rig.hold(stream);
        must!(rig.cuMemsetD32Async(from, 0x0403_0201, 16, stream));
        must!(rig.cuMemsetD8Async(from, 9, 4, stream));
        must!(rig.cuMemcpyDtoDAsync_v2(to, from, 64, stream));
        must!(rig.cuMemcpyDtoHAsync_v2(pinned, to, 64, stream));
        must!(rig.cuMemcpyHtoDAsync_v2(from, own.as_ptr().cast(), 64, stream));
        let rows = copy_of_rows(host(own.as_mut_ptr(), 8), device(to, 16), 8, 4);
        must!(rig.cuMemcpy2DAsync_v2(&rows, stream));
        own.fill(7);
        saw.holds("nothing before its turn", first() == [0; 8]);
        latch.release();
        rig.synchronize(stream);
        let values = first().iter().map(u8::to_string).collect::<Vec<_>>();
        saw.text(values.join(" "));
        saw.holds("the bytes of the call", bytes(rig, from, 64) == [5; 64]);
        let row = [[5; 8], [1, 2, 3, 4, 1, 2, 3, 4]].concat();
        saw.holds("the rows of the call", bytes(rig, to, 64) == row.repeat(4));
        saw.codes(&[
            ("a copy past the end", rig.cuMemcpyDtoDAsync_v2(to, from, 1 << 40, stream)),
            ("a memset past the end", rig.cuMemsetD8Async(from, 0, 1 << 40, stream)),
            ("unaligned", rig.cuMemsetD32Async(from + 1, 0, 1, stream)),
        ]);
        must!(rig.cuMemFreeHost(pinned));
        free(rig, from);
        free(rig, to);
    }

    /// The driver knows the allocation of an address, its kind and its size. Several attributes can
    /// be asked for at once: for an address that it does not know, they have default values.
    fn what_is_known_of_an_address(rig, saw) =
        "device memory 2; host memory 1; the range from within; with rows 3584; nobody's \
         CUDA_ERROR_INVALID_VALUE (1), no such attribute CUDA_ERROR_INVALID_VALUE (1); several of \
         nobody's success, 0, -2"
    {
        let (memory, mut pinned) = (filled(rig, 100, 0), null_mut());
        must!(rig.cuMemHostAlloc(&mut pinned, 100, 0));
        let kind = |address| {
            let mut kind = 77_u32;
            let place = std::ptr::from_mut(&mut kind).cast();
            (rig.cuPointerGetAttribute(place, CUpointer_attribute(2), address), kind)
        };
        saw.text(format_args!("device memory {}", kind(memory + 5).1));
        saw.text(format_args!("host memory {}", kind(pinned.expose_provenance() as u64).1));
        let range = |address| {
            let (mut base, mut size) = (0, 0);
            must!(rig.cuMemGetAddressRange_v2(&mut base, &mut size, address));
            (base, size)
        };
        saw.holds("the range from within", range(memory + 99) == (memory, 100));
        let (mut rows, mut pitch) = (0, 0);
        must!(rig.cuMemAllocPitch_v2(&mut rows, &mut pitch, 100, 7, 8));
        saw.text(format_args!("with rows {}", range(rows + 7 * 512 - 1).1));
        let mut value = 0_u64;
        let other = rig.cuPointerGetAttribute(std::ptr::from_mut(&mut value).cast(), CUpointer_attribute(99), memory);
        let nobodys = code_text(kind(16).0);
        saw.text(format_args!("nobody's {nobodys}, no such attribute {}", code_text(other)));
        let (mut kind, mut ordinal, mut which) = (77_u32, 77_i32, [2, 9].map(CUpointer_attribute));
        let mut places: [*mut c_void; 2] = [(&raw mut kind).cast(), (&raw mut ordinal).cast()];
        let code = rig.cuPointerGetAttributes(2, which.as_mut_ptr(), places.as_mut_ptr(), 0x1000);
        saw.text(format_args!("several of nobody's {}, {kind}, {ordinal}", code_text(code)));
        must!(rig.cuMemFreeHost(pinned));
        free(rig, rows);
        free(rig, memory);
    }

    /// In memory from `cuMemAllocPitch`, each row begins at a multiple of 512 bytes.
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

    /// The host and the device can both use managed memory. At first it is attached to every stream
    /// or to none.
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
        must!(rig.cuMemAllocManaged(&mut address, 64, 1));
        let stream = rig.stream(NON_BLOCKING);
        must!(rig.cuMemsetD8Async(address, 5, 64, stream));
        rig.synchronize(stream);
        let host = std::ptr::with_exposed_provenance_mut::<u8>(address as usize);
        // SAFETY: 64 bytes of memory that the host may access, and nothing else uses them now.
        let seen = unsafe { std::slice::from_raw_parts(host, 64) } == [5; 64];
        saw.holds("set by the device, read by the host", seen);
        // SAFETY: as above.
        unsafe { host.write_bytes(7, 64) };
        saw.holds("written by the host, copied by the device", bytes(rig, address, 64) == [7; 64]);
        let attribute = |which| {
            let mut value = 77_u32;
            let place = std::ptr::from_mut(&mut value).cast();
            must!(rig.cuPointerGetAttribute(place, CUpointer_attribute(which), address));
            // A bool is only one byte.
            value & 0xFF
        };
        saw.holds("managed", attribute(8) == 1);
        saw.text(format_args!("kind of memory {}", attribute(2)));
        free(rig, address);
    }

    /// Managed memory can be prefetched, and accepts advice. Ordinary device memory has neither.
    fn advice_on_managed_memory(rig, saw) =
        "success from to the device, to the host, read mostly; CUDA_ERROR_INVALID_VALUE (1) from \
         no bytes, past the end, no such advice; CUDA_ERROR_INVALID_DEVICE (101) from no such \
         device"
    {
        let (mut address, stream) = (0, rig.stream(NON_BLOCKING));
        must!(rig.cuMemAllocManaged(&mut address, 4096, 1));
        let send = |bytes, device| rig.cuMemPrefetchAsync(address, bytes, device, stream);
        saw.codes(&[
            ("to the device", send(4096, rig.device)),
            ("to the host", send(4096, -1)),
            ("read mostly", rig.cuMemAdvise(address, 4096, CUmem_advise(1), rig.device)),
            ("no bytes", send(0, rig.device)),
            ("past the end", send(1 << 40, rig.device)),
            ("no such advice", rig.cuMemAdvise(address, 4096, CUmem_advise(99), rig.device)),
            ("no such device", send(4096, rig.device_count())),
        ]);
        rig.synchronize(stream);
        free(rig, address);
    }

    /// Managed memory can be attached to all streams, to the host or to one stream, as a whole.
    /// NULL is no stream to attach it to.
    [since(12, 2)]
    fn attaching_managed_memory(rig, saw) =
        "success from all, host, one stream, by its size, prefetched by its place; \
         CUDA_ERROR_INVALID_VALUE (1) from a part, from within, other memory, no such flags, the \
         NULL stream"
    {
        let (mut address, stream) = (0, rig.stream(NON_BLOCKING));
        must!(rig.cuMemAllocManaged(&mut address, 4096, 1));
        let other = filled(rig, 4096, 0);
        let attach = |stream, address, bytes, flags| {
            rig.cuStreamAttachMemAsync(stream, address, bytes, flags)
        };
        let here = on_device(rig.device);
        saw.codes(&[
            ("all", attach(stream, address, 0, 1)),
            ("host", attach(stream, address, 0, 2)),
            ("one stream", attach(stream, address, 0, 4)),
            ("by its size", attach(stream, address, 4096, 1)),
            ("prefetched by its place", rig.cuMemPrefetchAsync_v2(address, 4096, here, 0, stream)),
            ("a part", attach(stream, address, 2048, 1)),
            ("from within", attach(stream, address + 8, 0, 1)),
            ("other memory", attach(stream, other, 0, 1)),
            ("no such flags", attach(stream, address, 0, 3)),
            ("the NULL stream", attach(null_mut(), address, 0, 4)),
        ]);
        rig.synchronize(stream);
        free(rig, address);
        free(rig, other);
    }

    /// In a copy between contexts (`cuMemcpyPeer`), either context may be NULL. Within one context
    /// it is an ordinary copy.
    fn a_copy_between_contexts(rig, saw) =
        "success from in a context, in a stream, of nothing; copied; success from no destination, \
         no source; CUDA_ERROR_INVALID_VALUE (1) from past the end"
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
        // Such a copy does not make the host wait.
        must("the wait", rig.cuCtxSynchronize());
        free(rig, from);
        free(rig, to);
    }

    /// Each device has a default memory pool from the beginning, which cannot be destroyed. It is
    /// the current pool until another pool is set. Destroying that other pool makes the default
    /// pool current again.
    [since(11, 2), alone]
    fn pools_of_a_device(rig, saw) =
        "the default one is current; attributes 1, 1, 1, 0, 0, 0, 0, 0; destroying it \
         CUDA_ERROR_INVALID_VALUE (1); another one success, success, current; destroyed success; \
         the default one is current"
    {
        let pool_of = |get: &dyn Fn(*mut CUmemoryPool) -> CUresult| {
            let mut pool = null_mut();
            must("the device's pool", get(&mut pool));
            pool
        };
        let default = pool_of(&|place| rig.cuDeviceGetDefaultMemPool(place, rig.device));
        let current = || pool_of(&|place| rig.cuDeviceGetMemPool(place, rig.device));
        saw.holds("the default one is current", current() == default);
        let attributes = (1..=8).map(|which| pool_attribute(rig, default, which).to_string());
        saw.text(format_args!("attributes {}", attributes.collect::<Vec<_>>().join(", ")));
        saw.code("destroying it", rig.cuMemPoolDestroy(default));
        let mut pool = null_mut();
        let created = code_text(rig.cuMemPoolCreate(&mut pool, &props(rig, 0)));
        let set = code_text(rig.cuDeviceSetMemPool(rig.device, pool));
        let is = if current() == pool { "current" } else { "not current" };
        saw.text(format_args!("another one {created}, {set}, {is}"));
        saw.code("destroyed", rig.cuMemPoolDestroy(pool));
        saw.holds("the default one is current", current() == default);
    }

    /// `cuMemFree` and `cuMemFreeHost` need no current context, and free nothing without complaint.
    /// `cuMemHostGetFlags` and `cuMemGetAddressRange` need one.
    [since(11, 0)]
    fn freed_without_a_context(rig, saw) =
        "success from cuMemFree, cuMemFree of nothing, cuMemFreeHost, cuMemFreeHost of nothing; \
         CUDA_ERROR_INVALID_CONTEXT (201) from cuMemHostGetFlags, cuMemGetAddressRange"
    {
        let (mut device, mut host) = (0, null_mut());
        must!(rig.cuMemAlloc_v2(&mut device, 64));
        must!(rig.cuMemHostAlloc(&mut host, 64, 0));
        must("no context", rig.cuCtxSetCurrent(null_mut()));
        let flags = rig.cuMemHostGetFlags(&mut 0, host);
        let range = rig.cuMemGetAddressRange_v2(&mut 0, &mut 0, device);
        let codes = [
            ("cuMemFree", rig.cuMemFree_v2(device)),
            ("cuMemFree of nothing", rig.cuMemFree_v2(0)),
            ("cuMemFreeHost", rig.cuMemFreeHost(host)),
            ("cuMemFreeHost of nothing", rig.cuMemFreeHost(null_mut())),
            ("cuMemHostGetFlags", flags),
            ("cuMemGetAddressRange", range),
        ];
        must!(rig.cuCtxSetCurrent(rig.context));
        saw.codes(&codes);
    }

    /// Memory of a pool is allocated and freed in stream order. It can also be freed at once, with
    /// `cuMemFree`, and `cuMemFreeAsync` also frees other memory.
    [since(11, 2), alone]
    fn memory_in_stream_order(rig, saw) =
        "allocated success; used 4096; freed success; used 0; of nothing success, NULL; freed at \
         once success; other memory success; success from freeing nothing; \
         CUDA_ERROR_INVALID_VALUE (1) from freeing what is nobody's, no place"
    {
        let stream = rig.stream(NON_BLOCKING);
        let mut default = null_mut();
        must("the pool", rig.cuDeviceGetDefaultMemPool(&mut default, rig.device));
        let mut address = 0;
        saw.code("allocated", rig.cuMemAllocAsync(&mut address, 4096, stream));
        must!(rig.cuMemsetD8Async(address, 1, 4096, stream));
        saw.text(format_args!("used {}", pool_attribute(rig, default, 7)));
        saw.code("freed", rig.cuMemFreeAsync(address, stream));
        rig.synchronize(stream);
        saw.text(format_args!("used {}", pool_attribute(rig, default, 7)));
        let mut nothing = 77;
        let code = code_text(rig.cuMemAllocAsync(&mut nothing, 0, stream));
        let what = if nothing == 0 { "NULL" } else { "an address" };
        saw.text(format_args!("of nothing {code}, {what}"));
        must!(rig.cuMemAllocAsync(&mut address, 4096, stream));
        rig.synchronize(stream);
        saw.code("freed at once", rig.cuMemFree_v2(address));
        must!(rig.cuMemAlloc_v2(&mut address, 4096));
        saw.code("other memory", rig.cuMemFreeAsync(address, stream));
        rig.synchronize(stream);
        saw.codes(&[
            ("freeing nothing", rig.cuMemFreeAsync(0, stream)),
            ("freeing what is nobody's", rig.cuMemFreeAsync(16, stream)),
            ("no place", rig.cuMemAllocAsync(null_mut(), 16, stream)),
        ]);
    }

    /// `cuMemPoolCreate` returns an error for a kind of memory, a location or a handle type that
    /// does not exist, and for a device that does not exist. The attributes for reserved and used
    /// memory cannot be set, except that their highest values can be reset to 0.
    [since(11, 2)]
    fn pools_refused(rig, saw) =
        "CUDA_ERROR_INVALID_VALUE (1) from no kind of memory, no place, no such handle, reserved \
         now, used now, reserved high, used high, no such attribute, no such device; success from \
         threshold, reserved high of 0, used high of 0"
    {
        let made = |props: CUmemPoolProps| {
            let mut pool = null_mut();
            let code = rig.cuMemPoolCreate(&mut pool, &props);
            if code == CUresult::CUDA_SUCCESS {
                must!(rig.cuMemPoolDestroy(pool));
            }
            code
        };
        let plain = props(rig, 0);
        let mut pool = null_mut();
        must!(rig.cuMemPoolCreate(&mut pool, &plain));
        let set = |attribute, mut value: u64| {
            let place = std::ptr::from_mut(&mut value).cast();
            rig.cuMemPoolSetAttribute(pool, CUmemPool_attribute(attribute), place)
        };
        let on = |location| CUmemPoolProps { location, ..plain };
        let nothing = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_INVALID;
        let no_place = CUmemLocation {
            type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_INVALID,
            id: 0,
        };
        saw.codes(&[
            ("no kind of memory", made(CUmemPoolProps { allocType: nothing, ..plain })),
            ("no place", made(on(no_place))),
            ("no such handle", made(props(rig, 16))),
            ("reserved now", set(5, 0)),
            ("used now", set(7, 0)),
            ("reserved high", set(6, 1)),
            ("used high", set(8, 1)),
            ("no such attribute", set(99, 0)),
            ("no such device", made(on(on_device(rig.device_count())))),
            ("threshold", set(4, u64::MAX)),
            ("reserved high of 0", set(6, 0)),
            ("used high of 0", set(8, 0)),
        ]);
        must!(rig.cuMemPoolDestroy(pool));
    }

    /// A pool gives memory that was freed back to the device, except as much as its threshold, and
    /// `cuMemPoolTrimTo` gives that back, too.
    [since(11, 2), alone]
    fn what_a_pool_keeps(rig, saw) =
        "used 4096, more is reserved; freed: used 0, reserved 0, at most 4096; with a threshold: \
         reserved; trimmed success, reserved 0"
    {
        let (mut pool, stream, mut address) = (null_mut(), rig.stream(NON_BLOCKING), 0);
        must!(rig.cuMemPoolCreate(&mut pool, &props(rig, 0)));
        let value = |which| pool_attribute(rig, pool, which);
        let mut use_once = || {
            must!(rig.cuMemAllocFromPoolAsync(&mut address, 4096, pool, stream));
            let (used, reserved) = (value(7), value(5));
            must!(rig.cuMemFreeAsync(address, stream));
            rig.synchronize(stream);
            (used, reserved)
        };
        let (used, reserved) = use_once();
        let more = if reserved >= used { "more" } else { "less" };
        saw.text(format_args!("used {used}, {more} is reserved"));
        saw.text(format_args!("freed: used {}, reserved {}, at most {}", value(7), value(5), value(8)));
        let mut all = u64::MAX;
        let place = std::ptr::from_mut(&mut all).cast();
        must!(rig.cuMemPoolSetAttribute(pool, CUmemPool_attribute(4), place));
        use_once();
        saw.holds("with a threshold: reserved", value(5) > 0);
        let code = code_text(rig.cuMemPoolTrimTo(pool, 0));
        saw.text(format_args!("trimmed {code}, reserved {}", value(5)));
        must!(rig.cuMemPoolDestroy(pool));
    }

    /// A pool that is destroyed lives as long as its memory.
    [since(11, 2), alone]
    fn a_destroyed_pool_with_memory(rig, saw) =
        "the memory is of the pool; destroyed success; the memory: success, success"
    {
        let (mut pool, stream, mut address) = (null_mut(), rig.stream(NON_BLOCKING), 0);
        must!(rig.cuMemPoolCreate(&mut pool, &props(rig, 0)));
        let code = rig.cuMemAllocFromPoolAsync(&mut address, 4096, pool, stream);
        must("cuMemAllocFromPoolAsync", code);
        let mut owner: CUmemoryPool = null_mut();
        let place = std::ptr::from_mut(&mut owner).cast();
        must!(rig.cuPointerGetAttribute(place, CUpointer_attribute(17), address));
        saw.holds("the memory is of the pool", owner == pool);
        saw.code("destroyed", rig.cuMemPoolDestroy(pool));
        let set = code_text(rig.cuMemsetD8Async(address, 1, 4096, stream));
        saw.text(format_args!("the memory: {set}, {}", code_text(rig.cuMemFreeAsync(address, stream))));
        rig.synchronize(stream);
    }

    /// Another device has no access to a pool's memory until it is given. The pool's own device
    /// always has.
    [since(11, 2), two_devices]
    fn access_to_a_pool(rig, saw) =
        "at first 3, 0; given success, 3; taken success, 0; CUDA_ERROR_INVALID_VALUE (1) from its \
         own taken, no such access; CUDA_ERROR_INVALID_DEVICE (101) from no such device; of another \
         device CUDA_ERROR_INVALID_VALUE (1)"
    {
        let mut pool = null_mut();
        must!(rig.cuMemPoolCreate(&mut pool, &props(rig, 0)));
        let give = |id, flags| {
            rig.cuMemPoolSetAccess(pool, &CUmemAccessDesc { location: on_device(id), flags }, 1)
        };
        let access = |id| {
            let mut flags = 77;
            must("access", rig.cuMemPoolGetAccess(&mut flags, pool, &mut on_device(id)));
            flags
        };
        saw.text(format_args!("at first {}, {}", access(0), access(1)));
        let given = code_text(give(1, 3));
        saw.text(format_args!("given {given}, {}", access(1)));
        let taken = code_text(give(1, 0));
        saw.text(format_args!("taken {taken}, {}", access(1)));
        saw.codes(&[
            ("its own taken", give(0, 0)),
            ("no such access", give(1, 2)),
            ("no such device", give(rig.device_count(), 3)),
        ]);
        saw.code("of another device", rig.cuDeviceSetMemPool(1, pool));
        must!(rig.cuMemPoolDestroy(pool));
    }

    /// Another process can open a pool by a file descriptor, and memory of the pool by exported
    /// data that names it. It cannot allocate memory in that pool.
    [since(11, 2), needs(descriptors_between_processes)]
    fn a_pool_of_another_process(rig, saw) =
        "pool success; memory success; the same bytes; allocating CUDA_ERROR_INVALID_VALUE (1); \
         closed success, success; without a handle CUDA_ERROR_INVALID_VALUE (1)"
    {
        let mut pool = null_mut();
        must!(rig.cuMemPoolCreate(&mut pool, &props(rig, FILE_DESCRIPTOR)));
        let (stream, mut address) = (rig.stream(NON_BLOCKING), 0);
        must!(rig.cuMemAllocFromPoolAsync(&mut address, 64, pool, stream));
        must!(rig.cuMemsetD8Async(address, 5, 64, stream));
        rig.synchronize(stream);
        let (mut descriptor, as_file) = (-1, CUmemAllocationHandleType(FILE_DESCRIPTOR));
        let place = std::ptr::from_mut(&mut descriptor).cast();
        must!(rig.cuMemPoolExportToShareableHandle(place, pool, as_file, 0));
        let mut data = CUmemPoolPtrExportData { reserved: [0; 64] };
        must!(rig.cuMemPoolExportPointer(&mut data, address));
        let mut other = Child::start_with("importer", IMPORTER, |command| {
            command.env("CUDA_SOFT_DRIVER", soft_settings(""));
        });
        // Linux allows a process to take the descriptors of its parent if it may trace it.
        other.send(&format!("{} {descriptor} {}", std::process::id(), to_hex(&data.reserved)));
        for _ in 0..5 {
            saw.text(other.receive());
        }
        other.finish();
        must!(rig.cuMemFreeAsync(address, stream));
        rig.synchronize(stream);
        must!(rig.cuMemPoolDestroy(pool));
        let mut plain = null_mut();
        must!(rig.cuMemPoolCreate(&mut plain, &props(rig, 0)));
        let code = rig.cuMemPoolExportToShareableHandle(place, plain, as_file, 0);
        saw.code("without a handle", code);
        must!(rig.cuMemPoolDestroy(plain));
    }
}
