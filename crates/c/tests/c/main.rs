//! The library from C and from C++: the programs of this folder and the examples, built by `cc` and
//! `c++` against the library and the software driver.
//!
//! `CUDA_EVENTS_TEST_DRIVER=native` runs them on the machine's driver. `CC` and `CXX` name other
//! compilers. For a machine without one, `CUDA_TIMELINES_C_PROGRAMS` names a folder that has the
//! programs, and the library, already.

#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Read;
use std::os::fd::{IntoRawFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use cuda_events::Progress;
use cuda_events_test_support as common;
use cuda_timelines::{CudaStreamExt, Error, ImportedTimeline, TimelineDescriptor};

use common::child::{is_emulated, starting};
use common::handover::Handover;
use common::timelines::{PATIENCE, gpu, idle};
use common::{beside, say_not_run};

const HERE: &str = env!("CARGO_MANIFEST_DIR");
const CANNOT_START_ITSELF: &str = "the program starts itself again, which needs no emulator";

/// A folder with the libraries under the names that programs ask for.
struct Programs(PathBuf);

impl Programs {
    /// Each test has a folder of its own, so that they may run at once. `None` where there is
    /// neither the source nor what was built from it.
    fn of(test: &str) -> Option<Self> {
        if let Some(folder) = env::var_os("CUDA_TIMELINES_C_PROGRAMS") {
            return Some(Self(folder.into()));
        }
        if !Path::new(HERE).is_dir() {
            say_not_run("the programs in C are not here; set CUDA_TIMELINES_C_PROGRAMS");
            return None;
        }
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("c").join(test);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("soft")).expect("a folder");
        let link = |file: &Path, name: &str| symlink(file, folder.join(name)).expect("a link");
        link(&beside("cuda_timelines_c", "cuda-timelines-c"), "libcuda_timelines.so");
        let driver = beside("cuda_soft_driver_shared", "cuda-soft-driver-shared");
        link(&driver, "soft/libcuda.so.1");
        link(&driver, "soft/libcuda.so");
        Some(Self(folder))
    }

    /// Builds a program, and has it run with the driver under test.
    fn command(&self, source: &str) -> Command {
        let source = Path::new(HERE).join(source);
        let program = self.0.join(source.file_stem().expect("a name"));
        if env::var_os("CUDA_TIMELINES_C_PROGRAMS").is_none() {
            let (compiler, standard) = match source.extension().and_then(|it| it.to_str()) {
                Some("c") => (compiler("CC", "cc"), "-std=gnu11"),
                _ => (compiler("CXX", "c++"), "-std=c++11"),
            };
            let folder = self.0.display();
            let mut command = Command::new(compiler);
            command.args([standard, "-Wall", "-Wextra", "-Werror", "-pthread", "-I"]);
            command.arg(Path::new(HERE).join("include")).arg(&source).arg("-o").arg(&program);
            command.args([format!("-L{folder}"), format!("-L{folder}/soft")]);
            run(command.args(["-lcuda_timelines", "-lcuda"]));
        }
        let mut libraries = self.0.display().to_string();
        if env::var("CUDA_EVENTS_TEST_DRIVER").as_deref() != Ok("native") {
            libraries += &format!(":{libraries}/soft");
        }
        let mut command = starting(&program);
        command.env("LD_LIBRARY_PATH", libraries).env_remove("CUDA_EVENTS_DRIVER");
        command
    }
}

fn compiler(variable: &str, usual: &str) -> OsString {
    env::var_os(variable).filter(|name| !name.is_empty()).unwrap_or_else(|| usual.into())
}

/// What it prints. Whatever it reports is in the message of the failure.
#[track_caller]
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{errors}", output.status);
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn every_call_from_c() {
    let Some(programs) = Programs::of("every_call_from_c") else { return };
    assert_eq!(run(&mut programs.command("tests/c/calls.c")), "all calls are right\n");
    let mut without = programs.command("tests/c/calls.c");
    without.arg("no-driver").env("CUDA_EVENTS_DRIVER", "/nowhere/libcuda.so.1");
    assert_eq!(run(&mut without), "there is no driver\n");
}

#[test]
fn the_example_in_c() {
    let Some(programs) = Programs::of("the_example_in_c") else { return };
    let output = run(&mut programs.command("examples/streams.c"));
    let lines: BTreeSet<_> = output.lines().collect();
    assert!(lines.contains("callback: CUTL_OK"), "{output}");
    assert!(lines.contains("stages: 2, is done: CUTL_OK"), "{output}");
    assert!(output.contains("\nCUTL_ERROR_HANDLE: there is no cutl_timeline"), "{output}");
}

#[test]
fn the_example_in_cpp() {
    if is_emulated() {
        return say_not_run(CANNOT_START_ITSELF);
    }
    let Some(programs) = Programs::of("the_example_in_cpp") else { return };
    let output = run(&mut programs.command("examples/processes.cpp"));
    let lines: Vec<_> = output.lines().collect();
    assert_eq!(lines[..2], ["the first signal came", "after 10 ms: pending"], "{output}");
    assert!(lines[2].starts_with("CUTL_ERROR_EXPORTER_GONE: the process"), "{output}");
    assert_eq!(lines[3..], ["the stream is released"], "{output}");
}

#[test]
fn peers_that_exchange_bytes_only() {
    if is_emulated() {
        return say_not_run(CANNOT_START_ITSELF);
    }
    let Some(programs) = Programs::of("peers_that_exchange_bytes_only") else { return };
    assert_eq!(run(&mut programs.command("tests/c/peers.cpp")), "both ends are seen\n");
}

#[test]
fn the_header_for_cpp() {
    let Some(programs) = Programs::of("the_header_for_cpp") else { return };
    assert_eq!(run(&mut programs.command("tests/c/header.cpp")), "the header is right\n");
}

/// The program in the README, with the examples' declarations as `cuda.h`.
#[test]
fn the_readme_compiles() {
    let Some(Programs(folder)) = Programs::of("the_readme_compiles") else { return };
    let Ok(page) = fs::read_to_string(Path::new(HERE).join("README.md")) else { return };
    let code = page.split("```c\n").nth(1).and_then(|rest| rest.split("```").next());
    let source = folder.join("readme.c");
    fs::write(&source, code.expect("a program")).expect("a file");
    symlink(Path::new(HERE).join("examples/driver.h"), folder.join("cuda.h")).expect("a link");
    let mut command = Command::new(compiler("CC", "cc"));
    command.args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I"]).arg(&folder);
    run(command.arg("-I").arg(Path::new(HERE).join("include")).arg(source));
}

/// The producer is the example in C++, and the consumer this test.
#[test]
fn a_producer_in_cpp_is_killed() {
    let Some(gpu) = gpu() else { return };
    let Some(programs) = Programs::of("a_producer_in_cpp_is_killed") else { return };
    let (mut ours, theirs) = UnixStream::pair().expect("a socket");
    let mut command = programs.command("examples/processes.cpp");
    // The socket is its standard input.
    command.args(["producer", "0"]).stdin(Stdio::from(OwnedFd::from(theirs)));
    let mut producer = command.spawn().expect("a process");
    let handover = ours.try_clone().expect("a copy").into_raw_fd();
    let file = Handover::of_role(&handover.to_string()).take();
    let mut bytes = [0; TimelineDescriptor::FILE_LEN];
    ours.read_exact(&mut bytes).expect("a descriptor");
    let descriptor = TimelineDescriptor::from_bytes(&bytes).expect("it is whole");
    let imported = ImportedTimeline::open(&gpu.context, file, &descriptor).expect("it opens");
    let mut next = || {
        let mut value = [0; 8];
        ours.read_exact(&mut value).expect("a value");
        imported.point(u64::from_ne_bytes(value)).expect("a point")
    };
    let stream = gpu.stream();
    let comes = next();
    stream.wait_point(comes).expect("a wait");
    assert_eq!(comes.wait_timeout(PATIENCE), Ok(Progress::Done));
    idle(&stream);
    let never = next();
    stream.wait_point(never).expect("a wait");
    assert_eq!(never.query(), Ok(Progress::Pending));
    assert_eq!(stream.query(), Ok(Progress::Pending));
    producer.kill().expect("it runs");
    producer.wait().expect("it ends");
    assert_eq!(never.wait_timeout(PATIENCE), Err(Error::ExporterGone));
    idle(&stream);
    assert!(comes.is_done());
}

/// The header has every function that the library exports, and the library every one of the header.
#[test]
fn the_symbols_are_those_of_the_header() {
    let Some(_) = Programs::of("the_symbols_are_those_of_the_header") else { return };
    if env::var_os("CUDA_TIMELINES_C_PROGRAMS").is_some() {
        return;
    }
    let header = fs::read_to_string(Path::new(HERE).join("include/cuda_timelines.h"));
    let header = header.expect("the header");
    let code = header.lines().filter(|line| !line.trim_start().starts_with("//"));
    let declared: BTreeSet<_> = code
        .filter_map(|line| line.split_once('(').map(|(before, _)| before))
        .filter_map(|before| before.rsplit([' ', '*']).next())
        .filter(|name| name.starts_with("cutl_"))
        .map(str::to_owned)
        .collect();
    let library = beside("cuda_timelines_c", "cuda-timelines-c");
    let exported = run(Command::new("nm").args(["-D", "--defined-only"]).arg(library));
    let exported: BTreeSet<_> =
        exported.lines().filter_map(|line| line.rsplit(' ').next()).map(str::to_owned).collect();
    assert_eq!(declared, exported);
    assert_eq!(exported.len(), 42);
}
