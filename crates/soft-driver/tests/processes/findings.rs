//! What a program's CI gets of the order checker: a log, JSON lines, suppressions, a summary and an
//! exit status, of the shared library and of a driver in the process.

#![cfg(target_os = "linux")]

use std::process::Output;
use std::ptr::null_mut;

use cuda_events::sys::Symbols;
use cuda_events::{Driver, LoadOptions};
use cuda_events_test_support::child::{full_name, own_binary, starting};
use cuda_events_test_support::shared_library;
use cuda_soft_driver::{Builder, OrderProblem, SoftDriver};

/// Two streams write the same bytes, by two functions.
fn race(symbols: &Symbols) {
    let (mut context, mut memory) = (null_mut(), 0);
    let mut streams = [null_mut(); 2];
    let good = |code: cuda_events::sys::CUresult| assert_eq!(code.0, 0);
    unsafe {
        good((symbols.cuInit)(0));
        good((symbols.cuDevicePrimaryCtxRetain)(&mut context, 0));
        good((symbols.cuCtxSetCurrent)(context));
        for stream in &mut streams {
            good((symbols.cuStreamCreate)(stream, 1));
        }
        good((symbols.cuMemAlloc_v2)(&mut memory, 4096));
        good((symbols.cuMemsetD8Async)(memory + 1024, 1, 512, streams[0]));
        good((symbols.cuMemsetD32Async)(memory + 1280, 1, 64, streams[1]));
    }
}

fn start(test: &str, settings: &str) -> Output {
    starting(&own_binary())
        .args(["--exact", &full_name(test), "--ignored", "--nocapture"])
        .env("CUDA_SOFT_DRIVER", settings)
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A file that nothing else uses, and that is removed.
struct Place(std::path::PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let name = format!("cuda-order-{}-{name}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn text(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
#[ignore = "another process, which the tests start: cargo test -p cuda-soft-driver --test \
    processes"]
fn inner_shared() {
    race(Driver::load_with(&LoadOptions::new().path(shared_library())).unwrap().symbols());
}

#[test]
#[ignore = "another process, which the tests start: cargo test -p cuda-soft-driver --test \
    processes"]
fn inner_built() {
    let settings = std::env::var("CUDA_SOFT_DRIVER").unwrap();
    let soft = Builder::from_text(&settings).unwrap().build();
    race(soft.driver().symbols());
}

#[test]
fn an_error_sets_the_exit_status() {
    for test in ["inner_shared", "inner_built"] {
        for (settings, status, summary) in [
            ("order=report", 0, "order checker: 1 error, 0 warnings\n"),
            ("order=report,order_exitcode=66", 66, "order checker: 1 error, 0 warnings\n"),
            (
                "order=report,order_exitcode=66,order_suppress=call:cuMemsetD32*",
                0,
                "order checker: 0 errors, 0 warnings, 1 suppressed\n",
            ),
        ] {
            let output = start(test, settings);
            let errors = text(&output);
            assert_eq!(output.status.code(), Some(status), "{test}, {settings}: {errors}");
            assert_eq!(errors.matches(summary).count(), 1, "{test}, {settings}: {errors}");
            // What the program has printed is written.
            assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "{test}");
            let shown = errors.contains("missing order");
            assert_eq!(shown, !settings.contains("suppress"), "{test}, {settings}: {errors}");
            let hints = errors.matches("set order_backtraces=on").count();
            assert_eq!(hints, usize::from(shown), "{test}: {errors}");
        }
        // A program without an error is as it was.
        let output = start(test, "order=off");
        assert!(output.status.success() && !text(&output).contains("order checker"), "{test}");
    }
}

#[test]
fn findings_are_written_as_json_lines_to_a_file() {
    for test in ["inner_shared", "inner_built"] {
        let log = Place::new(&format!("{test}.jsonl"));
        let settings = format!("order=report,order_format=json,order_log={}", log.text());
        let output = start(test, &settings);
        assert!(output.status.success() && !text(&output).contains("missing order"), "{test}");
        let written = std::fs::read_to_string(&log.0).unwrap();
        let [error, summary] = written.lines().collect::<Vec<_>>()[..] else {
            panic!("{test}: {written}")
        };
        assert!(error.starts_with(r#"{"severity":"error","kind":"race","first":{"call":"#));
        for part in [
            r#""call":"cuMemsetD8Async","#,
            r#""call":"cuMemsetD32Async","#,
            r#""access":"write","on":"stream 0x"#,
            r#""text":"missing order: two calls touch the same 256 bytes"#,
        ] {
            assert_eq!(error.matches(part).count(), 1 + usize::from(part.contains("access")));
        }
        let counts = r#"{"severity":"summary","errors":1,"warnings":0,"suppressed":0}"#;
        assert_eq!(summary, counts, "{test}");
    }
}

#[test]
fn suppressions_are_read_from_a_file() {
    let file = Place::new("suppressions");
    std::fs::write(&file.0, "# known\n\n  call:cuMemsetD32Async\n").unwrap();
    let output =
        start("inner_shared", &format!("order=report,order_suppress=file:{}", file.text()));
    assert!(text(&output).contains("0 errors, 0 warnings, 1 suppressed"), "{}", text(&output));
    // By a function on the way to the call.
    for (pattern, shown) in [("findings::race", false), ("find*race", false), ("elsewhere", true)] {
        let settings = "order=report,order_backtraces=on,order_suppress=function:";
        let errors = text(&start("inner_built", &format!("{settings}{pattern}")));
        assert_eq!(errors.contains("missing order"), shown, "{pattern}: {errors}");
    }
}

#[test]
fn a_finding_has_both_accesses() {
    let settings = "order=report,order_suppress=call:cuMemFree*,order_warnings=all";
    let soft: SoftDriver = Builder::from_text(settings).unwrap().build();
    race(soft.driver().symbols());
    let findings = soft.order_findings();
    let [found] = &findings[..] else { panic!("{findings:?}") };
    assert_eq!(found.problem, OrderProblem::Race);
    assert_eq!(found.first.call.name, "cuMemsetD8Async");
    assert_eq!(found.second.call.name, "cuMemsetD32Async");
    assert_eq!(found.shared.len(), 1);
    assert_eq!(found.shared[0].end - found.shared[0].start, 256);
    assert_ne!(found.first.agent.stream_id(), found.second.agent.stream_id());
    assert!(found.to_string().starts_with("missing order: "), "{found}");
    assert!(soft.order_warnings().is_empty());
}
