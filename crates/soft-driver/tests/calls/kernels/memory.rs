//! Memory that kernels may not touch, or that is freed under them.

use crate::common;

use std::ffi::c_void;
#[cfg(target_os = "linux")]
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use common::*;
use cuda_events::sys::*;
#[cfg(target_os = "linux")]
use cuda_soft_driver::{OrderCheck, SoftDriver};

#[cfg(target_os = "linux")]
use super::LAUNCH_FAILED;
use super::{Handle, ILLEGAL_ADDRESS, NON_BLOCKING, function, launch};

/// Memory of the host stays registered while a kernel may use it.
/// Memory that was registered for reading alone, in both forms of a kernel's access.
#[test]
fn kernels_cannot_write_read_only_memory() {
    #[repr(align(4096))]
    struct Page([u8; 4096]);
    const MAPPED: u32 = 2;
    const READ_ONLY: u32 = 8;
    for (flags, writes, expected) in [
        (MAPPED, true, OK),
        (MAPPED, false, OK),
        (MAPPED | READ_ONLY, false, OK),
        (MAPPED | READ_ONLY, true, ILLEGAL_ADDRESS),
    ] {
        let raw = Raw::new();
        let page = Box::leak(Box::new(Page([3; 4096])));
        let memory: Handle = page.0.as_mut_ptr().cast();
        let code = call!(raw, cuMemHostRegister_v2(memory => Handle, 4096 => usize, flags => u32));
        assert_eq!(code, OK);
        let kernel = raw.soft.kernel("uses", move |launch| {
            let last: u64 = launch.parameter::<u64>(0) + 4095;
            match writes {
                true => launch.write(last, &[7_u8]),
                false => assert_eq!(launch.read::<u8>(last, 1), [3]),
            }
        });
        kernel.parameters(&[8, 4]);
        let address = memory.expose_provenance() as u64;
        assert_eq!(launch(&raw, function(&raw, c"uses"), legacy(), address, 0), OK);
        let code = unsafe { (raw.cuStreamSynchronize)(legacy()) }.0;
        assert_eq!(code, expected, "flags {flags}, writes {writes}");
        assert_eq!(page.0[4095], if writes && expected == OK { 7 } else { 3 });
    }
}

/// The error that programs are tested for must be found, and not end the test.
#[test]
fn memory_that_another_stream_frees_under_a_kernel() {
    const BYTES: usize = 8 << 20;
    const ROUNDS: usize = 3;
    for writes in [false, true] {
        let raw = Raw::new();
        let entered = Arc::new(AtomicU32::new(0));
        let enters = Arc::clone(&entered);
        let values = vec![7_u8; BYTES];
        let kernel = raw.soft.kernel("long", move |launch| {
            let address = launch.parameter(0);
            enters.fetch_add(1, Ordering::SeqCst);
            if writes {
                launch.write(address, &values);
            } else {
                launch.read::<u8>(address, BYTES);
            }
        });
        kernel.parameters(&[8, 4]);
        let long = function(&raw, c"long");
        let (kernels, frees) = (raw.stream(NON_BLOCKING), raw.stream(NON_BLOCKING));
        for round in 1..=ROUNDS as u32 {
            let mut address = 0;
            let code = call!(raw, cuMemAllocAsync(&mut address => *mut u64, BYTES => usize,
                frees => CUstream));
            assert_eq!(code, OK);
            raw.sync(frees);
            assert_eq!(launch(&raw, long, kernels, address, 0), OK);
            while entered.load(Ordering::SeqCst) < round {
                std::thread::yield_now();
            }
            assert_eq!(call!(raw, cuMemFreeAsync(address => u64, frees => CUstream)), OK);
            raw.sync(frees);
            // The kernel ends as it would have, unless it was late: then its context fails.
            if unsafe { (raw.cuStreamSynchronize)(kernels) }.0 != OK {
                break;
            }
        }
    }
}

#[test]
fn memory_is_unregistered_after_kernels() {
    #[repr(align(4096))]
    struct Page([u8; 4096]);
    type Unregister = unsafe extern "C" fn(*mut c_void) -> u32;
    let raw = Raw::new();
    let open = Arc::new(AtomicU32::new(0));
    let gate = open.clone();
    let stays = move |launch: &cuda_soft_driver::Launch| {
        while gate.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        launch.write(launch.parameter(0), &[7_u32]);
    };
    raw.soft.kernel("stays", stays).parameters(&[8, 4]);
    let unregister = raw.resolve(c"cuMemHostUnregister");
    let unregister: Unregister = unsafe { std::mem::transmute(unregister) };
    let stream = raw.stream(NON_BLOCKING);
    let [page, other] = [(); 2].map(|()| Box::leak(Box::new(Page([0; 4096]))).0.as_mut_ptr());
    let register = |page: *mut u8| {
        let code = call!(raw, cuMemHostRegister_v2(page.cast() => Handle, 4096 => usize,
            0 => u32));
        assert_eq!(code, OK);
    };
    register(page);
    register(other);
    let used = page.expose_provenance();
    for page in [other.expose_provenance(), used] {
        open.store(0, Ordering::SeqCst);
        assert_eq!(launch(&raw, function(&raw, c"stays"), stream, used as u64, 0), OK);
        let unregistered =
            begin(move || unsafe { unregister(std::ptr::with_exposed_provenance_mut(page)) });
        while raw.soft.waiting_for_work() == 0 {
            assert!(!unregistered.is_finished());
            std::thread::yield_now();
        }
        open.store(1, Ordering::SeqCst);
        assert_eq!(unregistered.join(), OK);
        raw.sync(stream);
    }
}

/// A call that unregisters memory waits for its own device alone. On two H200s a copy failed that
/// used the memory afterwards.
#[test]
#[cfg(target_os = "linux")]
fn memory_that_is_registered_no_longer_fails_its_users_on_other_devices() {
    for waits in [false, true] {
        let raw = Raw::with(SoftDriver::builder().devices(2).check_order(OrderCheck::Off));
        let contexts = [raw.retain(0), raw.retain(1)];
        raw.set_current(contexts[0]);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let page = unsafe { libc::mmap(null_mut(), 4096, access, flags, -1, 0) };
        let registered =
            call!(raw, cuMemHostRegister_v2(page => *mut c_void, 4096 => usize, 3 => u32));
        assert_eq!(registered, OK);
        raw.set_current(contexts[1]);
        let (stream, address) = (raw.stream(NON_BLOCKING), page.expose_provenance() as u64);
        raw.soft.hold_host_functions(true);
        if waits {
            let wait = raw.cuStreamWaitValue64_v2.unwrap();
            let flags = CU_STREAM_WAIT_VALUE_GEQ;
            assert_eq!(unsafe { wait(stream, address, 1, flags) }.0, OK);
        } else {
            raw.host(stream, || {});
            let mut memory = 0;
            assert_eq!(unsafe { (raw.cuMemAlloc_v2)(&mut memory, 4096) }.0, OK);
            let copied = unsafe { (raw.cuMemcpyHtoDAsync_v2)(memory, page, 4096, stream) };
            assert_eq!(copied.0, OK);
        }
        assert_eq!(call!(raw, cuMemHostUnregister(page => *mut c_void)), OK);
        assert_eq!(unsafe { libc::munmap(page, 4096) }, 0);
        raw.soft.hold_host_functions(false);
        assert_eq!(unsafe { (raw.cuStreamSynchronize)(stream) }.0, LAUNCH_FAILED, "{waits}");
        raw.set_current(contexts[0]);
        raw.sync(raw.stream(NON_BLOCKING));
    }
}
