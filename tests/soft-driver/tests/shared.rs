//! The shared library, opened as a program would open the real driver. One library has one machine, so these tests run
//! each in a process of their own.

#![cfg(target_os = "linux")]

use std::path::PathBuf;
use std::process::Command;

use cuda_events::sys::*;
use cuda_events::{Driver, LoadOptions};

fn library() -> PathBuf {
    std::env::current_exe().unwrap().with_file_name("libcuda_soft_driver_shared.so")
}

fn load() -> cuda_events::Result<Driver> {
    Driver::load_with(&LoadOptions::new().path(library()))
}

/// Runs one of the ignored tests below in its own process, configured by `text`.
fn run(test: &str, text: &str) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env("CUDA_SOFT_DRIVER", text)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn it_is_a_driver() {
    run("inner_use", "");
    run("inner_use", "version=13.0,devices=2");
}

#[test]
#[ignore = "only started by another test"]
fn inner_use() {
    let driver = load().unwrap();
    let symbols = driver.symbols();
    assert_eq!(driver.version().to_string(), "13.0");
    let mut stream = std::ptr::null_mut();
    let mut context = std::ptr::null_mut();
    unsafe {
        assert_eq!((symbols.cuInit)(0).0, 0);
        assert_eq!((symbols.cuDevicePrimaryCtxRetain)(&mut context, 0).0, 0);
        assert_eq!((symbols.cuCtxSetCurrent)(context).0, 0);
        assert_eq!((symbols.cuStreamCreate)(&mut stream, 0).0, 0);
        assert_eq!((symbols.cuStreamQuery)(stream).0, 0);
        let mut count = 0;
        assert_eq!((symbols.cuDeviceGetCount)(&mut count).0, 0);
        let two = std::env::var("CUDA_SOFT_DRIVER").unwrap().contains("devices=2");
        assert_eq!(count, if two { 2 } else { 1 });
    }
}
