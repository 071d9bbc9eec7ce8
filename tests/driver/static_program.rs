//! A statically linked program: it loads no library, and the software driver that is linked in
//! works. The gate runs this on such a target, where the other tests of loading have nothing to
//! open; elsewhere the file is empty.

#![cfg(all(target_os = "linux", target_feature = "crt-static"))]

use crate::common;

use common::Gpu;
use cuda_events::loader::LoadFailure;
use cuda_events::{Driver, Error, EventFlags};

#[test]
fn no_library_is_opened() {
    // The last one is there. With glibc a static program that opened it would crash.
    for path in [None, Some("libcuda.so.1"), Some("/nowhere/libcuda.so.1"), Some("/bin/sh")] {
        let loaded = path.map_or_else(Driver::load, common::load_from);
        let Err(Error::Load(error)) = loaded else { panic!("{loaded:?}") };
        let failures: Vec<_> = error.attempts().iter().map(|attempt| attempt.failure()).collect();
        assert!(!failures.is_empty(), "{error}");
        for failure in failures {
            assert_eq!(failure, &LoadFailure::StaticProgram);
        }
        let text = error.to_string();
        assert!(text.contains("this program is statically linked"), "{text}");
        assert!(!text.contains("install"), "no driver would help: {text}");
    }
}

#[test]
fn what_is_linked_in_works() {
    let gpu = Gpu::new();
    let stream = gpu.stream();
    let event = stream.record_event(EventFlags::TIMING).expect("a record");
    event.synchronize().expect("idle work");
    assert!(event.query().expect("a query").is_done());
    assert_eq!(gpu.driver.library(), None);
}
