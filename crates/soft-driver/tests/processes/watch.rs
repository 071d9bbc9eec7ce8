//! The limit that each test has: see `cuda_events_test_support::watch`.

use std::io::Write as _;
use std::os::unix::process::ExitStatusExt;
use std::process::Output;
use std::time::Duration;

use cuda_events_test_support::child::{command, full_name, own_binary, role};
use cuda_events_test_support::raw::Raw;
use cuda_events_test_support::watch::{LIMIT_VARIABLE, alive, without_limit};

/// Starts the test in a role, with a limit of a second.
#[track_caller]
fn run(test: &str, role: &str) -> (Output, String) {
    // A child has half of it.
    let output =
        command(&own_binary(), &full_name(test), role).env(LIMIT_VARIABLE, "2").output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, printed)
}

#[test]
fn a_test_that_hangs_is_named_and_ended() {
    let Some(role) = role() else {
        for role in ["at once", "later"] {
            let (output, printed) = run("a_test_that_hangs_is_named_and_ended", role);
            assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{printed}");
            assert!(
                printed.contains("HUNG: test watch::a_test_that_hangs_is_named_and_ended has"),
                "{printed}"
            );
        }
        return;
    };
    let raw = Raw::new();
    if role == "later" {
        // Others that ended are none of its business.
        std::thread::Builder::new().name("other".to_owned()).spawn(alive).unwrap().join().unwrap();
    }
    let held = raw.stream(1);
    let _latch = raw.latch(held);
    raw.sync(held);
}

#[test]
fn a_test_may_take_long_that_goes_on() {
    if role().is_none() {
        let (output, printed) = run("a_test_may_take_long_that_goes_on", "lives");
        assert!(output.status.success(), "{printed}");
        return;
    }
    for _ in 0..25 {
        alive();
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Nor one that waits for a child with a limit. Afterwards it has its own again.
#[test]
fn a_test_may_wait_for_another() {
    const NAME: &str = "a_test_may_wait_for_another";
    match role() {
        None => {
            let (output, printed) = run(NAME, "waits, then hangs");
            assert!(printed.contains("it has waited"), "{printed}");
            assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{printed}");
        }
        Some(_) => {
            alive();
            without_limit(|| {
                alive();
                std::thread::sleep(Duration::from_millis(2500));
            });
            let _ = writeln!(std::io::stderr(), "it has waited");
            std::thread::sleep(Duration::from_secs(60));
        }
    }
}
