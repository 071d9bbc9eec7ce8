//! The command `cuda-driver-rules`, on libraries that differ and on files that are none.

#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::Output;

use cuda_test_harness::child::starting;
use cuda_test_harness::{beside, shared_library};
use serde_json::Value;

/// The status and the report; `settings` are the software driver's.
fn report(settings: &str, library: &Path, options: &[&str]) -> (Option<i32>, String, String) {
    let mut command = starting(Path::new(env!("CARGO_BIN_EXE_cuda-driver-rules")));
    command.arg("--library").arg(library).args(options).env("CUDA_SOFT_DRIVER", settings);
    let Output { status, stdout, stderr } = command.output().expect("it starts");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (status.code(), text(stdout), text(stderr))
}

#[test]
fn the_software_driver_is_the_same() {
    let (code, text, errors) = report("", &shared_library(), &["--only", "elapsed"]);
    assert_eq!((code, &*errors), (Some(0), ""), "{text}");
    assert!(text.contains(": CUDA 13.0, CUDA software driver (no GPU) (of 1)\n"), "{text}");
    assert!(text.contains("\nelapsed           14 same\n"), "{text}");
    assert!(text.ends_with("\n14 rules: 14 same, 0 differ, 0 not asked\n"), "{text}");
    // It is set up for a rule, and asked what cards leave undefined.
    for rule in ["devices.elapsed-across-devices", "undefined.query-of-a-made-up-event"] {
        let (code, text, _) = report("", &shared_library(), &["--only", rule, "--json"]);
        let report: Value = serde_json::from_str(&text).expect("JSON");
        let counts = ["same", "differs", "not_asked"].map(|count| report[count].as_u64());
        assert_eq!((code, counts), (Some(0), [Some(1), Some(0), Some(0)]), "{text}");
        assert_eq!(report["rules"][0]["result"], "same", "{text}");
    }
}

#[test]
fn what_differs_is_named() {
    let library = shared_library();
    let only = ["--only", "events.never-recorded"];
    let differs = |settings: &str, parts: &[&str]| {
        let (code, text, errors) = report(settings, &library, &only);
        assert_eq!((code, &*errors), (Some(1), ""), "{text}");
        for part in parts {
            assert!(text.contains(part), "{settings}: no {part}:\n{text}");
        }
    };
    let begin =
        "\n  differs: events.never-recorded\n    An event that was never recorded stands for ";
    let cards = "\n    cards:        success from query, synchronize, wait; ";
    let other = "\n    this library: CUDA_ERROR_INVALID_VALUE (1) from query; ";
    differs(
        "fault=cuEventQuery:code=1",
        &[begin, other, cards, "\n1 rules: 0 same, 1 differs, 0 not asked\n"],
    );
    let killed = "\n    this library: the process ended by signal 9";
    differs("fault=cuEventQuery:kill", &[begin, killed, cards]);
    differs("without=cuEventQuery", &[begin, "this library: there is no cuEventQuery", cards]);
    // A library of an older version is not asked about what came later.
    let (code, text, _) = report("version=12.4", &library, &["--only", "elapsed"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("\n  not asked: 3, since CUDA 12.8, the driver is of 12.4\n"), "{text}");
}

#[test]
fn what_is_no_driver_is_said() {
    let fake = beside("cuda_events_fake_library", "cuda-events-fake-library");
    let text = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    for (library, options, part) in [
        (Path::new("/nowhere/x"), &[][..], "/nowhere/x: No such file"),
        (&text, &[], "cannot be used as a CUDA driver: no driver can be opened: "),
        (&fake, &[], "cannot be used as a CUDA driver: the driver has no "),
        (&fake, &["--only", "nothing"], "no rule begins with `nothing`"),
        (&fake, &["--loud"], "invalid option '--loud'"),
    ] {
        let (code, text, errors) = report("", library, options);
        assert!(code == Some(2) && errors.contains(part), "{part}:\n{errors}");
        assert_eq!(text, "");
    }
}
