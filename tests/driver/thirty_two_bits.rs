//! A 32-bit program: there is no driver for it, however it is named. The gate runs this on a 32-bit
//! target, where it is all that can be tested; elsewhere the file is empty.

#![cfg(target_pointer_width = "32")]

use crate::common;

use cuda_events::loader::LoadFailure;
use cuda_events::{Driver, Error, LoadError, LoadOptions};

fn refused(loaded: Result<Driver, Error>) -> LoadError {
    let error = loaded.expect_err("there is no driver for 32-bit programs");
    let text = error.to_string();
    assert!(text.contains("this is a 32-bit program"), "{text}");
    assert!(text.ends_with("build it for a 64-bit target"), "{text}");
    let Error::Load(error) = error else { panic!("{error}") };
    error
}

#[test]
fn there_is_no_driver() {
    // The usual places are none.
    assert_eq!(refused(Driver::load()).attempts(), []);
    // A library that is there is not opened, by whatever name.
    for path in ["/lib/libc.so.6", "libcuda.so.1", "./libcuda.so.1"] {
        let error = refused(common::load_from(path));
        let failures: Vec<_> = error.attempts().iter().map(|attempt| attempt.failure()).collect();
        assert_eq!(failures, [&LoadFailure::Platform]);
    }
    // A function is not asked.
    let asked = &mut |name: &std::ffi::CStr| panic!("asked for {name:?}");
    // SAFETY: it gives no address at all.
    let error = refused(unsafe { Driver::from_resolver(asked, &LoadOptions::new()) });
    assert_eq!(error.attempts()[0].failure(), &LoadFailure::Platform);
}
