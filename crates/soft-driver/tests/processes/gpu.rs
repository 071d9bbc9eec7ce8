//! The device of an example: a GPU, or the software driver where there is none.

use cuda_events_test_support::child::{full_name, own_binary, starting};
use cuda_events_test_support::say_not_run;
use cuda_soft_driver::SoftDriver;

#[test]
#[ignore = "another process, which the tests start: cargo test -p cuda-soft-driver --test \
    processes"]
fn inner_gpu_or_soft() {
    let soft = SoftDriver::new();
    println!("on {}", soft.gpu_or_soft().unwrap().name().unwrap());
}

#[test]
fn a_wrong_path_of_a_driver_is_not_hidden() {
    let start = |path: &str| {
        let test = full_name("inner_gpu_or_soft");
        starting(&own_binary())
            .args(["--exact", &test, "--ignored", "--nocapture"])
            .env("CUDA_EVENTS_DRIVER", path)
            .output()
            .unwrap()
    };
    // An empty variable is none.
    let output = start("");
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("on "), "{output:?}");
    if cfg!(windows) {
        return say_not_run("an elevated process ignores the variable, as each is in wine");
    }
    let output = start("/nowhere/libcuda.so.1");
    assert!(!output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("/nowhere/libcuda.so.1"));
}
