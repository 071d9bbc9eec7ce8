//! Kinds of memory, and how it ends.

use std::ffi::c_uint;

use super::calls::direct_write;
use super::flags::Flag;
use super::{Cuda, LARGE, PAGE, Program};

/// Four pages, which the software driver can map once more.
pub(super) fn four_pages() -> *mut u8 {
    let flags = libc::MAP_SHARED | libc::MAP_ANON;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: new pages.
    unsafe { libc::mmap(std::ptr::null_mut(), 4 * PAGE, access, flags, -1, 0) }.cast()
}

/// Registered memory: pages that it has for itself.
/// A part of a page, which has other things of the program.
pub(super) fn registered_part(p: &Program) {
    // SAFETY: within the pages.
    let memory = unsafe { four_pages().add(100) };
    p.cuda.cuMemHostRegister_v2(memory, 64, 0);
    p.cuda.cuMemcpyDtoHAsync_v2(memory, p.device, 64, p.stream);
    p.synchronize();
    p.cuda.cuMemHostUnregister(memory);
}

pub(super) fn registered(p: &Program) {
    // SAFETY: within the pages.
    let memory = unsafe { four_pages().add(100) };
    p.cuda.cuMemHostRegister_v2(memory, 3 * PAGE, 0);
    p.cuda.cuMemcpyDtoHAsync_v2(memory, p.device, 3 * PAGE, p.stream);
    // SAFETY: within the pages.
    unsafe {
        // This page is shared with others, and is not protected.
        memory.sub(50).write_volatile(1);
        p.wait();
        memory.add(PAGE).read_volatile();
    }
    p.cuda.cuMemcpyDtoHAsync_v2(memory, p.device, 3 * PAGE, p.stream);
    p.cuda.cuMemHostUnregister(memory);
    assert_eq!(direct_write(memory), 8192, "{}", std::io::Error::last_os_error());
}

/// Memory of the device and the host.
fn of_both(p: &Program) -> *mut u8 {
    let mut memory = std::ptr::null_mut();
    p.cuda.cuMemAllocManaged(&mut memory, LARGE, 1);
    memory
}

pub(super) fn managed(p: &Program) {
    let memory = of_both(p);
    p.cuda.cuMemsetD8Async(memory.expose_provenance() as u64, 5, LARGE / 2, p.stream);
    // SAFETY: within the memory.
    unsafe {
        // Another page, and then one that is written.
        memory.add(LARGE / 2).write_volatile(1);
        p.wait();
        assert!(!p.good || memory.add(100).read_volatile() == 5);
        memory.add(100).read_volatile();
    }
    p.cuda.cuMemFree_v2(memory);
}

pub(super) fn managed_source(p: &Program) {
    let [from, to] = [of_both(p), of_both(p)];
    p.cuda.cuMemcpyAsync(to, from, LARGE, p.stream);
    // SAFETY: within the memory.
    unsafe {
        from.read_volatile();
        p.wait();
        from.add(LARGE - 1).write_volatile(3);
    }
    p.cuda.cuMemFree_v2(from);
    p.cuda.cuMemFree_v2(to);
}

/// A free of memory that a stream uses waits for the stream.
pub(super) fn freed(p: &Program) {
    for _ in 0..3 {
        let mut memory = std::ptr::null_mut();
        p.cuda.cuMemHostAlloc(&mut memory, LARGE, 0);
        p.cuda.cuMemcpyDtoHAsync_v2(memory, p.device, LARGE, p.stream);
        p.cuda.cuMemFreeHost(memory);
    }
    p.wait();
}

/// The end of a context waits, and leaves the program's own pages as they were.
pub(super) fn ended_context(p: &Program) {
    let (mut context, mut stream, mut device) = (0, 0, 0);
    let memory = four_pages();
    p.cuda.cuCtxCreate_v2(&mut context, 0, 0);
    p.cuda.cuStreamCreate(&mut stream, 1);
    p.cuda.cuMemAlloc_v2(&mut device, 3 * PAGE);
    p.cuda.cuMemHostRegister_v2(memory, 4 * PAGE, 0);
    p.cuda.cuMemcpyDtoHAsync_v2(memory, device, 3 * PAGE, stream);
    p.cuda.cuCtxDestroy_v2(context);
    assert_eq!(direct_write(memory), 8192, "{}", std::io::Error::last_os_error());
    p.cuda.cuCtxSetCurrent(p.context);
    is_pageable(p, memory);
}

/// It is not registered any longer: the driver reads it within the call.
pub(super) fn is_pageable(p: &Program, memory: *mut u8) {
    p.cuda.cuMemcpyHtoDAsync_v2(p.device, memory, 4 * PAGE, p.stream);
    // SAFETY: within the pages.
    unsafe { memory.add(PAGE).write_volatile(1) };
}

/// Registers of a device are not read by anybody else.
pub(super) fn io_memory(p: &Program) {
    /// `CU_MEMHOSTREGISTER_IOMEMORY`.
    const IO: c_uint = 4;
    let (memory, goes_on) = (four_pages(), Flag::new(p, 0));
    p.cuda.cuMemHostRegister_v2(memory, PAGE, IO);
    let access = |to| {
        // SAFETY: a page of this program, which nobody uses before it is open again.
        assert_eq!(unsafe { libc::mprotect(memory.cast(), PAGE, to) }, 0);
    };
    goes_on.holds();
    access(libc::PROT_NONE);
    p.cuda.cuStreamWriteValue64_v2(p.stream, memory.expose_provenance() as u64, 1, 0);
    p.any_call();
    access(libc::PROT_READ | libc::PROT_WRITE);
    goes_on.store(1);
    p.synchronize();
}

/// A copy reads pages that the program cannot write, and has registered as such. It is over when the
/// program stores there.
pub(super) fn read_only(p: &Program) {
    /// `CU_MEMHOSTREGISTER_READ_ONLY`.
    const READ_ONLY: c_uint = 8;
    let memory = four_pages();
    // SAFETY: pages of this program.
    assert_eq!(unsafe { libc::mprotect(memory.cast(), 4 * PAGE, libc::PROT_READ) }, 0);
    p.cuda.cuMemHostRegister_v2(memory, 4 * PAGE, READ_ONLY);
    p.cuda.cuMemcpyHtoDAsync_v2(p.device, memory, 4 * PAGE, p.stream);
    p.synchronize();
    p.any_call();
    // SAFETY: the fault is the subject of the test.
    unsafe { memory.add(PAGE).write_volatile(1) };
}

/// The driver looks at the arguments.
pub(super) fn refused(p: &Program) {
    // SAFETY: a source that is none.
    let copy = |bytes| unsafe {
        (p.cuda.cuMemcpyHtoDAsync_v2)(p.device, std::ptr::null(), bytes, p.stream)
    };
    assert!([4, 8, 64].iter().all(|bytes| copy(*bytes) != 0));
}

/// The memory of a primary context ends with the last reference to it.
pub(super) fn released_context(p: &Program) {
    let memory = four_pages();
    p.cuda.cuMemHostRegister_v2(memory, 4 * PAGE, 0);
    let (mut context, mut stream, mut device) = (0, 0, 0);
    p.cuda.cuDevicePrimaryCtxRelease_v2(0);
    p.cuda.cuDevicePrimaryCtxRetain(&mut context, 0);
    p.cuda.cuCtxSetCurrent(context);
    p.cuda.cuStreamCreate(&mut stream, 1);
    p.cuda.cuMemAlloc_v2(&mut device, 4 * PAGE);
    is_pageable(&Program { cuda: Cuda::load(), stream, device, ..*p }, memory);
    // The stream of the program has ended.
    std::process::exit(0);
}

/// The default streams of three contexts are three streams, also after one of them has ended.
pub(super) fn default_streams(p: &Program) {
    let contexts = [(); 3].map(|()| std::cell::Cell::new(0));
    let begin = |at: usize| {
        let (mut context, mut device) = (0, 0);
        p.cuda.cuCtxCreate_v2(&mut context, 0, 0);
        p.cuda.cuMemAlloc_v2(&mut device, LARGE);
        p.cuda.cuMemsetD8Async(device, 7, LARGE, 0);
        p.cuda.cuCtxSynchronize();
        contexts[at].set(context);
        device
    };
    begin(0);
    let device = begin(1);
    p.cuda.cuCtxDestroy_v2(contexts[0].get());
    begin(2);
    p.cuda.cuCtxSetCurrent(contexts[1].get());
    p.cuda.cuMemcpyDtoHAsync_v2(p.at(0), device, LARGE, 0);
    p.cuda.cuCtxSynchronize();
    p.read(5);
    p.cuda.cuCtxSetCurrent(p.context);
}
