//! `CUDA_SOFT_DRIVER=order=abort` turns the order checker on for every test, through either door:
//! what the gate's step `unordered` relies on.

use crate::common;

use std::process::Output;

use common::child::{command, full_name, own_binary, role};
use common::{Gpu, TestDriver};
use cuda_events::{Event, EventFlags};

/// Two streams write the same memory.
fn two_writes(ordered: bool) {
    let gpu = Gpu::new();
    let symbols = gpu.driver.symbols();
    let (one, two) = (gpu.stream(), gpu.stream());
    let event = Event::new(&gpu.context, EventFlags::empty()).expect("an event");
    let _current = gpu.context.make_current().expect("it is current");
    let mut memory = 0;
    // SAFETY: a place for the address; memory of that size, which is freed when nothing uses it.
    unsafe {
        assert_eq!((symbols.cuMemAlloc_v2)(&mut memory, 64).0, 0);
        assert_eq!((symbols.cuMemsetD8Async)(memory, 1, 64, one.as_raw()).0, 0);
        event.record(&one).expect("recorded");
        if ordered {
            two.wait_event(&event).expect("it waits");
        }
        assert_eq!((symbols.cuMemsetD8Async)(memory, 2, 64, two.as_raw()).0, 0);
        gpu.context.synchronize().expect("all is done");
        assert_eq!((symbols.cuMemFree_v2)(memory).0, 0);
    }
    println!("it went on");
}

#[test]
fn an_error_is_found_on_the_driver_under_test() {
    match role().as_deref() {
        Some(role) => return two_writes(role == "ordered"),
        // The checker is the software driver's.
        None if TestDriver::chosen() == TestDriver::Native => return,
        None => {}
    }
    let test = full_name("an_error_is_found_on_the_driver_under_test");
    let run = |role: &str, settings: &str| -> (bool, String) {
        let mut command = command(&own_binary(), &test, role);
        let Output { status, stdout, stderr } =
            command.env("CUDA_SOFT_DRIVER", settings).output().expect("it starts");
        let text = [stdout, stderr].concat();
        (status.success(), String::from_utf8_lossy(&text).into_owned())
    };
    const REPORT: &str = " 64 bytes";
    let (went_on, text) = run("planted", "order=abort");
    assert!(!went_on && text.contains(REPORT) && !text.contains("it went on"), "{text}");
    let (went_on, text) = run("planted", "order=report");
    assert!(went_on && text.contains(REPORT) && text.contains("it went on"), "{text}");
    for (role, settings) in [("planted", "order=off"), ("ordered", "order=abort")] {
        let (went_on, text) = run(role, settings);
        assert!(went_on && !text.contains(REPORT) && text.contains("it went on"), "{text}");
    }
}
