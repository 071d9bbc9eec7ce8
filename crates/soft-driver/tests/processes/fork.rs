//! A forked child of a process that uses the driver, and the end of a process that misuses it.

#![cfg(target_os = "linux")]

use crate::common;

use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};

use common::*;
use cuda_events_test_support::child::{full_name, own_binary, starting};
use cuda_events_test_support::{fork, own_process};
use cuda_soft_driver::SoftDriver;

/// Runs `f` in a forked child; what it returns, or the signal that ended it.
fn in_child(f: impl FnOnce() -> i32) -> Result<i32, i32> {
    let (printed, status) = fork::in_child(|| f().to_string());
    if libc::WIFEXITED(status) { Ok(printed.parse().unwrap()) } else { Err(libc::WTERMSIG(status)) }
}

#[test]
fn the_answers_in_a_forked_child() {
    own_process!();
    // The child's misuse ends it, as by default.
    let raw = Raw::with_default_misuse();
    let (event, stream) = (raw.event(0), raw.stream(0));
    raw.record(event, stream);
    raw.host(stream, || {});
    raw.sync(stream);
    // Dropping the driver there does nothing, and does not wait for threads that the child does not
    // have.
    let dropped = in_child(|| {
        // SAFETY: the child ends with `_exit`, so that nothing else drops it there.
        drop(unsafe { std::ptr::read(&raw) });
        0
    });
    assert_eq!(dropped, Ok(0));
    let latch = raw.latch(stream);
    let failed = in_child(|| unsafe {
        let (mut count, mut out, mut context) = (0, null_mut(), null_mut());
        let answers = [
            ((raw.cuInit)(0).0, NOT_INITIALIZED),
            ((raw.cuDeviceGetCount)(&mut count).0, NOT_INITIALIZED),
            ((raw.cuCtxGetCurrent)(&mut context).0, NOT_INITIALIZED),
            ((raw.cuEventCreate)(&mut out, 0).0, NOT_INITIALIZED),
            ((raw.cuDriverGetVersion)(&mut count).0, OK),
            ((raw.cuEventQuery)(event).0, OK),
            ((raw.cuStreamQuery)(stream).0, OK),
            ((raw.cuEventDestroy_v2)(event).0, OK),
        ];
        // The place of the first that is wrong, from 1.
        answers
            .iter()
            .position(|(answer, expected)| answer != expected)
            .map_or(0, |at| at as i32 + 1)
    });
    assert_eq!(failed, Ok(0));
    assert_eq!(
        in_child(|| unsafe { (raw.cuStreamDestroy_v2)(stream) }.0 as i32),
        Err(libc::SIGABRT)
    );
    // The parent goes on unharmed.
    latch.release();
    raw.sync(stream);
    assert_eq!(raw.query(event), OK);
}

#[test]
fn the_same_answers_without_a_fork() {
    let raw = Raw::new();
    let (event, stream) = (raw.event(0), raw.stream(0));
    let latch = raw.latch(stream);
    raw.record(event, stream);
    raw.soft.pretend_forked(true);
    let mut count = 0;
    unsafe {
        assert_eq!((raw.cuDeviceGetCount)(&mut count).0, NOT_INITIALIZED);
        assert_eq!((raw.cuEventQuery)(event).0, OK);
        assert_eq!((raw.cuStreamDestroy_v2)(stream).0, NOT_INITIALIZED);
    }
    assert_eq!(raw.soft.misuses().len(), 1);
    raw.soft.pretend_forked(false);
    assert_eq!(raw.query(event), NOT_READY);
    latch.release();
    raw.sync(stream);
}

#[test]
fn a_child_of_a_process_that_did_not_initialise_may() {
    let raw = Raw::bare(SoftDriver::builder());
    let code = in_child(|| unsafe {
        let mut count = 0;
        let init = (raw.cuInit)(0).0;
        ((raw.cuDeviceGetCount)(&mut count).0 + init) as i32 + count - 1
    });
    assert_eq!(code, Ok(0));
}

#[test]
fn forks_amid_work_leave_no_lock_behind() {
    let raw = Raw::with(SoftDriver::builder().log(10));
    let event = raw.event(0);
    let stop = AtomicBool::new(false);
    let at_work = std::sync::Barrier::new(3);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let (raw, stop, event, at_work) = (&raw, &stop, event.expose_provenance(), &at_work);
            scope.spawn(move || {
                let query = || raw.query(std::ptr::with_exposed_provenance_mut(event));
                query();
                at_work.wait();
                while !stop.load(Ordering::Relaxed) {
                    query();
                }
            });
        }
        at_work.wait();
        for _ in 0..50 {
            let code = in_child(|| {
                let mut version = 0;
                unsafe { (raw.cuDriverGetVersion)(&mut version).0 as i32 }
            });
            assert_eq!(code, Ok(0));
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn misuse_ends_the_process_with_its_history() {
    let output = starting(&own_binary())
        .args(["--exact", &full_name("inner_misuse"), "--ignored", "--nocapture"])
        .output()
        .unwrap();
    use std::os::unix::process::ExitStatusExt as _;
    assert_eq!(output.status.signal(), Some(libc::SIGABRT));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("cuda-soft-driver: cuEventDestroy_v2: event 0x"), "{text}");
    assert!(text.contains("was destroyed by cuEventDestroy_v2, call "), "{text}");
    assert!(text.contains("(thread \"fork::inner_misuse\")"), "{text}");
}

#[test]
#[ignore = "another process, which the tests start: cargo test -p cuda-soft-driver --test \
    processes"]
fn inner_misuse() {
    let soft = SoftDriver::new();
    let driver = soft.driver();
    let symbols = driver.symbols();
    let (mut context, mut event) = (null_mut(), null_mut());
    unsafe {
        (symbols.cuInit)(0);
        (symbols.cuDevicePrimaryCtxRetain)(&mut context, 0);
        (symbols.cuCtxSetCurrent)(context);
        (symbols.cuEventCreate)(&mut event, 0);
        (symbols.cuEventDestroy_v2)(event);
        (symbols.cuEventDestroy_v2)(event);
    }
}
