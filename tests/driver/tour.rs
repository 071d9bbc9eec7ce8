//! The tour's command line, and the driver that it opens by it: its own source files, without its
//! program.

#![cfg(target_os = "linux")]
#![allow(dead_code)]

use crate::common;
#[path = "../../examples/tour/opened.rs"]
mod opened;
#[path = "../../examples/tour/options.rs"]
mod options;
#[path = "../../examples/tour/report.rs"]
mod report;

use std::path::{Path, PathBuf};

use common::child::{Child, role, say};
use common::{fake_library, shared_library};
use cuda_events::loader::DRIVER_VARIABLE;
use opened::Opened;
use options::{CHILD, Choice, Options};
use report::Failure;

/// The options by this command line, none for a call for help, or the text of the refusal.
fn parse(arguments: &[&str]) -> Result<Option<Options>, String> {
    Options::parse(arguments.iter().map(Into::into)).map_err(usage)
}

/// The text of a failure that is the user's, so that the tour ends with code 2.
fn usage(failure: Failure) -> String {
    match failure {
        Failure::Usage(text) => text,
        Failure::Runtime(text) => panic!("the exit code would be 1: {text}"),
        Failure::OutputClosed => panic!("nothing was written"),
    }
}

#[test]
fn values_are_given_apart_or_attached() {
    for arguments in [
        &[
            "--mib",
            "16",
            "--device",
            "3",
            "--driver",
            "/a=b/c.so",
            "--calls",
            "--trace",
            "t=.html",
            CHILD,
            "/tmp/x",
        ][..],
        &[
            "--mib=16",
            "--device=3",
            "--driver=/a=b/c.so",
            "--calls",
            "--trace=t=.html",
            &format!("{CHILD}=/tmp/x"),
        ],
    ] {
        let options = parse(arguments).expect("they are good").expect("no call for help");
        assert_eq!((options.bytes, options.device, options.calls), (16 << 20, 3, true));
        assert_eq!(options.trace.as_deref(), Some(Path::new("t=.html")));
        assert!(
            matches!(&options.driver, Some(Choice::Path(path)) if path == Path::new("/a=b/c.so"))
        );
        assert_eq!(options.child.as_deref(), Some(Path::new("/tmp/x")));
    }
    assert!(matches!(
        parse(&["--driver=soft"]),
        Ok(Some(Options { driver: Some(Choice::Soft), .. }))
    ));
    assert!(matches!(parse(&["--help"]), Ok(None)));
    for (arguments, text) in [
        (&["--mib"][..], "--mib needs a value"),
        (&["--mib="], "--mib needs a value"),
        (&["--mib=0"], "--mib needs a number of MiB"),
        (&["--mib=x"], "--mib needs a number of MiB"),
        (&["--device=-1"], "--device needs a device's number"),
        (&["--driver=relative.so"], "--driver needs native, soft or an absolute path"),
        (&["--calls=yes"], "--calls takes no value"),
        (&["--trace"], "--trace needs a value"),
        (&["--help=yes"], "--help takes no value"),
        (&["--nothing=1"], "\"--nothing=1\" is not an option"),
        (&["=16"], "\"=16\" is not an option"),
    ] {
        let refused = parse(arguments).err().expect("it is bad");
        assert!(refused.starts_with(text), "{refused}");
    }
}

#[test]
fn a_driver_that_is_named_is_opened_or_refused() {
    const TEST: &str = "a_driver_that_is_named_is_opened_or_refused";
    /// What `--driver` is given.
    const CHOSEN: &str = "CUDA_EVENTS_TEST_CHOSEN";
    if let Some(role) = role() {
        let chosen = std::env::var_os(CHOSEN).map(|path| Choice::Path(path.into()));
        let opened = Opened::new(chosen.as_ref());
        match (&*role, opened) {
            ("good", Ok(opened)) => {
                assert!(opened.no_native.is_none() && matches!(opened.choice, Choice::Native));
                assert_eq!(
                    opened.driver.library(),
                    shared_library().canonicalize().ok().as_deref()
                );
            }
            ("bad", Err(failure)) => {
                let text = usage(failure);
                assert!(text.contains("CUDA_EVENTS_DRIVER names "), "{text}");
            }
            ("chosen", Err(failure)) => {
                let path = std::env::var(CHOSEN).expect("its path");
                let text = usage(failure);
                assert!(text.contains(&path), "{text}");
            }
            ("lacking", Err(failure)) => {
                let text = usage(failure);
                assert!(text.contains("cuEventCreate"), "{text}");
            }
            // An empty variable names nothing.
            ("unnamed", Ok(opened)) => {
                assert_eq!(opened.no_native.is_some(), matches!(opened.choice, Choice::Soft))
            }
            (role, Ok(opened)) => panic!("{role}: {:?}", opened.driver),
            (role, Err(failure)) => panic!("{role}: {}", usage(failure)),
        }
        return say("done");
    }
    let lacking = |command: &mut std::process::Command| {
        command.env("CUDA_SOFT_DRIVER", "without=cuEventCreate");
    };
    for variable in [DRIVER_VARIABLE, CHOSEN] {
        let mut child = Child::start_with(TEST, "lacking", |command| {
            command.env(variable, shared_library());
            lacking(command);
        });
        assert_eq!(child.receive(), "done");
        child.finish();
    }
    for path in ["libm.so.6".into(), "/tmp".into(), "/nowhere/x.so".into(), fake_library()] {
        let mut child = Child::start_with(TEST, "chosen", |command| {
            command.env(CHOSEN, &path);
        });
        assert_eq!(child.receive(), "done", "{}", path.display());
        child.finish();
    }
    let bad: [PathBuf; 6] = [
        "relative.so".into(),
        "libm.so.6".into(),
        "/tmp".into(),
        "/nowhere/x.so".into(),
        fake_library(),
        "./x".into(),
    ];
    let roles = bad.map(|path| ("bad", path)).into_iter();
    for (role, path) in roles.chain([("good", shared_library()), ("unnamed", PathBuf::new())]) {
        let mut child = Child::start_with(TEST, role, |command| {
            command.env(DRIVER_VARIABLE, &path);
        });
        assert_eq!(child.receive(), "done", "{}", path.display());
        child.finish();
    }
}
