//! What tests need that is not about CUDA's types: which driver they run on, child processes, a
//! limit for each test, forks, and memory that processes share. It depends on no CUDA crate.
//!
//! `CUDA_EVENTS_TEST_DRIVER` chooses the driver: `soft` (the default), the software driver linked
//! into the test; `shared`, the same as a shared library through dlopen; `native`, the machine's
//! own; the absolute path of a driver library, which counts as native; or `shared:PATH`, the software
//! driver at this path.

#![allow(
    clippy::not_unsafe_ptr_arg_deref,
    reason = "tests hand handles on, and know that they are good"
)]

pub mod child;
#[cfg(unix)]
pub mod fork;
#[cfg(any(target_os = "linux", windows))]
pub mod memory;
pub mod watch;

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::io::Write;
use std::path::{Path, PathBuf};

/// How a line begins that says that something did not run.
pub const NOT_RUN: &str = "NOT RUN";

/// The variable that chooses the driver.
pub const DRIVER_VARIABLE: &str = "CUDA_EVENTS_TEST_DRIVER";

/// How the variable begins that has the path of the software driver.
pub const SHARED_AT: &str = "shared:";

/// How many cases a test has: some of them, or all if `CUDA_EVENTS_TEST_CASES` is `all`.
pub fn cases<T>(some: T, all: T) -> T {
    if std::env::var_os("CUDA_EVENTS_TEST_CASES").is_some_and(|cases| cases == "all") {
        all
    } else {
        some
    }
}

/// Which driver the tests run on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TestDriver {
    /// The software driver, linked into the test.
    Soft,
    /// The software driver as a shared library.
    Shared,
    /// The machine's own, or [`named_library`].
    Native,
}

impl TestDriver {
    /// The one that the environment chooses.
    pub fn chosen() -> Self {
        match std::env::var(DRIVER_VARIABLE).as_deref() {
            Err(_) | Ok("soft") => Self::Soft,
            Ok("shared") => Self::Shared,
            Ok(path) if path.starts_with(SHARED_AT) => Self::Shared,
            Ok("native") => Self::Native,
            Ok(path) if Path::new(path).is_absolute() => Self::Native,
            Ok(other) => panic!(
                "{DRIVER_VARIABLE} is {other:?}; it takes soft, shared, native or an absolute path"
            ),
        }
    }
}

/// The library that the environment names as the driver; `None` for the machine's own.
pub fn named_library() -> Option<PathBuf> {
    std::env::var_os(DRIVER_VARIABLE).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// The software driver as a shared library.
pub fn shared_library() -> PathBuf {
    let chosen = std::env::var(DRIVER_VARIABLE).unwrap_or_default();
    if let Some(path) = chosen.strip_prefix(SHARED_AT) {
        return path.into();
    }
    beside("cuda_soft_driver_shared", "cuda-soft-driver-shared")
}

/// A library that cargo and the packed test folder put beside the test binaries.
pub fn beside(name: &str, package: &str) -> PathBuf {
    let name = format!("{DLL_PREFIX}{name}{DLL_SUFFIX}");
    let binary = std::env::current_exe().expect("the test binary has a path");
    let library = binary.with_file_name(name);
    assert!(library.is_file(), "{} is not there; build the package {package}", library.display());
    library
}

/// What the environment says beside `settings`, which are in the form of `CUDA_SOFT_DRIVER`: what
/// both say counts once.
pub fn soft_settings(settings: &str) -> String {
    let ambient = std::env::var("CUDA_SOFT_DRIVER").unwrap_or_default();
    let name = |pair: &str| pair.split('=').next().map(str::to_owned);
    let set: Vec<_> = settings.split(',').map(name).collect();
    let ambient = ambient.split(',').filter(|pair| !set.contains(&name(pair)));
    ambient.chain([settings]).filter(|text| !text.is_empty()).collect::<Vec<_>>().join(",")
}

/// Says that a test, or a part of one, cannot run here.
pub fn say_not_run(why: &str) {
    let test = watch::test().unwrap_or_else(|| "a test".to_owned());
    // Past the harness, which keeps to itself what a test prints that passes.
    let _ = writeln!(std::io::stderr(), "{NOT_RUN}: {test}: {why}");
}
