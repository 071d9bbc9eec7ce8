//! What a program's CI gets of the order checker: a log, JSON lines, suppressions, a summary and an
//! exit status, of the shared library and of a driver in the process.

#![cfg(target_os = "linux")]

use std::process::Output;
use std::ptr::null_mut;
use std::sync::{Arc, Barrier};

use cuda_events::Driver;
use cuda_events::sys::{CUstream, Symbols};
use cuda_events_test_support::child::{full_name, is_emulated, own_binary, starting};
use cuda_events_test_support::shared_library;
use cuda_soft_driver::{Builder, OrderProblem, SoftDriver};

/// Two streams write the same bytes, by two functions. The first one may get a name.
fn race(symbols: &Symbols, name: impl FnOnce(CUstream)) {
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
        name(streams[0]);
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

/// A file or folder that nothing else uses, and that is removed.
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
        let _ = std::fs::remove_file(&self.0).or_else(|_| std::fs::remove_dir_all(&self.0));
    }
}

#[test]
#[ignore = "another process, which the tests start: cargo test -p cuda-soft-driver --test \
    processes"]
fn inner_shared() {
    let driver =
        Driver::load_with(&cuda_events_test_support::options_of(shared_library())).unwrap();
    let path = std::ffi::CString::new(shared_library().to_str().unwrap()).unwrap();
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
    let name = unsafe { libc::dlsym(library, c"cuda_soft_driver_name_stream".as_ptr()) };
    assert!(!name.is_null());
    let name: unsafe extern "C" fn(CUstream, *const libc::c_char) -> u32 =
        unsafe { std::mem::transmute(name) };
    race(driver.symbols(), |stream| unsafe {
        assert_eq!(name(stream, c"copies".as_ptr()), 0);
        assert_eq!(name(stream, std::ptr::null()), 1);
    });
}

#[test]
#[ignore = "another process, which the tests start: cargo test -p cuda-soft-driver --test \
    processes"]
fn inner_built() {
    let settings = std::env::var("CUDA_SOFT_DRIVER").unwrap();
    let soft = Builder::from_text(&settings).unwrap().build();
    race(soft.driver().symbols(), |_| ());
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
#[ignore = "another process, which the tests start: cargo test -p cuda-soft-driver --test \
    processes"]
fn inner_exit() {
    let settings = std::env::var("CUDA_SOFT_DRIVER").unwrap();
    let soft = Builder::from_text(&settings).unwrap().build();
    race(soft.driver().symbols(), |_| ());
    // Other threads use the driver, and have its lock, until the very end.
    let at_work = Arc::new(Barrier::new(4));
    for _ in 0..3 {
        let (symbols, at_work) = (soft.driver().symbols(), Arc::clone(&at_work));
        std::thread::spawn(move || unsafe {
            let (mut context, mut event) = (null_mut(), null_mut());
            (symbols.cuDevicePrimaryCtxRetain)(&mut context, 0);
            (symbols.cuCtxSetCurrent)(context);
            at_work.wait();
            while (symbols.cuEventCreate)(&mut event, 0).0 == 0 {
                (symbols.cuEventRecord)(event, null_mut());
            }
        });
    }
    at_work.wait();
    // They are in their loops then, mostly: a test that finds a lost summary in most of its runs.
    std::thread::sleep(std::time::Duration::from_millis(5));
    std::process::exit(3);
}

/// The driver of a program that ends by `exit` is not dropped.
#[test]
fn the_summary_comes_at_the_exit() {
    for (settings, status) in [("order=report", 3), ("order=report,order_exitcode=66", 66)] {
        let output = start("inner_exit", settings);
        let errors = text(&output);
        assert_eq!(output.status.code(), Some(status), "{errors}");
        let summary = "order checker: 1 error, 0 warnings\n";
        assert_eq!(errors.matches(summary).count(), 1, "{errors}");
    }
}

/// It is that of the driver that works: the library parses its settings twice.
#[test]
fn a_random_seed_is_printed_once() {
    for test in ["inner_shared", "inner_built"] {
        let errors = text(&start(test, "seed=random"));
        assert_eq!(errors.matches("with the seed ").count(), 1, "{test}: {errors}");
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
        assert!(
            error.starts_with(r#"{"severity":"error","kind":"race","head":"missing order: call #"#)
        );
        let name = r#""stream_name":"copies","stream_created""#;
        for (part, count) in [
            (r#""call":"cuMemsetD8Async","#, 1),
            (r#""call":"cuMemsetD32Async","#, 1),
            (r#""access":"write","on":"stream 0x"#, 2),
            (name, usize::from(test == "inner_shared")),
            (r#""stream_created":{"call":"cuStreamCreate","number":"#, 2),
            (r#""size":4096,"offset":1280}"#, 1),
            (r#""text":"missing order: call #"#, 1),
            (r#","first":{"call":"cuMemsetD8Async","number":"#, 1),
        ] {
            assert_eq!(error.matches(part).count(), count, "{test}, {part}: {error}");
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
    race(soft.driver().symbols(), |_| ());
    let findings = soft.order_findings();
    let [found] = &findings[..] else { panic!("{findings:?}") };
    assert_eq!(found.problem, OrderProblem::Race);
    assert_eq!(found.first.call.name, "cuMemsetD8Async");
    assert_eq!(found.second.call.name, "cuMemsetD32Async");
    assert_eq!(found.shared.len(), 1);
    assert_eq!(found.shared[0].end - found.shared[0].start, 256);
    assert_ne!(found.first.agent.stream_id(), found.second.agent.stream_id());
    assert!(found.to_string().starts_with("missing order: "), "{found}");
    let allocation = found.allocation.as_ref().unwrap();
    assert_eq!(allocation.call.name, "cuMemAlloc_v2");
    assert_eq!(allocation.range.end - allocation.range.start, 4096);
    assert_eq!(found.shared[0].start - allocation.range.start, 1280);
    let created = [&found.first, &found.second].map(|side| side.agent.stream_created().unwrap());
    assert_eq!(created[1].number, created[0].number + 1);
    assert_eq!(created[0].name, "cuStreamCreate");
    assert!(soft.order_warnings().is_empty());
}

/// Whether the machine's own programs can open the shared library: one for another C library or
/// another processor they cannot.
fn other_programs_open_it() -> bool {
    let is_native = cfg!(target_env = "gnu") && !is_emulated();
    if !is_native {
        println!("the library is not for the programs of this machine");
    }
    is_native
}

fn c_compiler() -> Option<&'static str> {
    let found = ["cc", "gcc", "clang"].into_iter().find(|name| {
        std::process::Command::new(name)
            .arg("--version")
            .output()
            .is_ok_and(|it| it.status.success())
    });
    if found.is_none() {
        println!("there is no C compiler here");
    }
    found
}

/// A C program that includes the header links with the library, and the functions do what it says.
#[test]
fn the_header_declares_what_the_library_exports() {
    if !other_programs_open_it() {
        return;
    }
    let Some(compiler) = c_compiler() else { return };
    let folder = Place::new("header");
    std::fs::create_dir(&folder.0).unwrap();
    std::fs::write(folder.0.join("cuda_soft_driver.h"), HEADER).unwrap();
    std::fs::write(folder.0.join("program.c"), INCLUDES).unwrap();
    let program = folder.0.join("program");
    let built = std::process::Command::new(compiler)
        .args(["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-o"])
        .args([&program, &folder.0.join("program.c"), &shared_library()])
        .status();
    assert!(built.unwrap().success());
    let output = std::process::Command::new(&program)
        .env("LD_PRELOAD", shared_library())
        .env("CUDA_SOFT_DRIVER", "order=report,leaks=ignore")
        .output()
        .unwrap();
    let errors = text(&output);
    assert!(output.status.success(), "{} {errors}", output.status);
    assert_eq!(errors.matches("missing order: ").count(), 1, "{errors}");
    assert!(errors.contains(" in stream `uploads`"), "{errors}");
}

const HEADER: &str = include_str!("../../shared/cuda_soft_driver.h");

const INCLUDES: &str = r#"
#include "cuda_soft_driver.h"
#include <string.h>
int cuInit(unsigned), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *);
int cuStreamCreate(void **, unsigned), cuCtxSynchronize(void);
#define MUST(call) if ((call) != 0) return __LINE__
static int run(const cuda_soft_driver_launch *launch, void *user) {
    uint32_t word = 1;
    (void)user;
    return cuda_soft_driver_kernel_load(launch, 0, &word, 4) +
        cuda_soft_driver_kernel_store(launch, 0, &word, 4);
}
static int accesses(const cuda_soft_driver_launch *launch, void *user) {
    (void)user;
    return cuda_soft_driver_kernel_reads(launch, *(const uint64_t *)launch->parameters[0], 4) +
        cuda_soft_driver_kernel_writes(launch, launch->grid[0], launch->shared_bytes);
}
int main(void) {
    void *context, *one, *two;
    size_t sizes[] = {8};
    uint64_t word = 0;
    char answer[64] = "";
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    MUST(cuStreamCreate(&one, 1));
    MUST(cuStreamCreate(&two, 1));
    MUST(cuda_soft_driver_name_stream(one, "uploads"));
    MUST(cuda_soft_driver_busy(one, 1000));
    MUST(cuda_soft_driver_writes(one, 0x7000, 64));
    MUST(cuda_soft_driver_reads(two, 0x7000, 64));
    MUST(cuCtxSynchronize());
    MUST(cuda_soft_driver_host_reads(&word, 8));
    MUST(cuda_soft_driver_host_writes(&word, 8));
    MUST(cuda_soft_driver_hand_over(7));
    MUST(cuda_soft_driver_take_over(7));
    MUST(cuda_soft_driver_host_saw(&word, word, 8));
    MUST(cuda_soft_driver_kernel("name", sizes, 1, run, accesses, NULL));
    MUST(cuda_soft_driver_kernel("name", NULL, 0, NULL, NULL, NULL));
    MUST(cuda_soft_driver_signal_external_semaphore(-1, 1) != 1);
    MUST(cuda_soft_driver_external_semaphore(1) < 0);
    MUST(cuda_soft_driver_alias(&word));
    MUST(cuda_soft_driver_control("nonsense", answer, sizeof answer) != 1);
    return strstr(answer, "there is no command `nonsense`") == NULL;
}
"#;

/// Frames of code without symbols have the module and the offset. With them each call site of a
/// program without symbols has its own report.
#[test]
fn a_frame_without_a_symbol_has_its_module() {
    if !other_programs_open_it() {
        return;
    }
    let Some(compiler) = c_compiler() else { return };
    let (source, program) = (Place::new("race.c"), Place::new("race"));
    std::fs::write(&source.0, STRIPPED).unwrap();
    let built = std::process::Command::new(compiler)
        .args(["-s", "-O0", "-o"])
        .args([&program.0, &source.0])
        .arg("-ldl")
        .status();
    assert!(built.unwrap().success());
    let output = std::process::Command::new(&program.0)
        .arg(shared_library())
        .env("CUDA_SOFT_DRIVER", "order=report,order_backtraces=on")
        .output()
        .unwrap();
    let errors = text(&output);
    let frame = format!("{}+0x", program.text());
    assert!(output.status.success() && errors.matches(&frame).count() >= 4, "{errors}");
    assert!(!errors.contains("<unknown>"), "{errors}");
    // Two call sites of one function in the same two streams.
    assert_eq!(errors.matches("missing order: ").count(), 2, "{errors}");
}

const STRIPPED: &str = r#"
#include <dlfcn.h>
#include <stddef.h>
typedef int (*one)(unsigned);
typedef int (*make)(void *, unsigned long);
typedef int (*retain)(void *, int);
typedef int (*current)(void *);
typedef int (*set)(unsigned long long, unsigned char, size_t, void *);
static void first(set s, unsigned long long m, void *t) { s(m, 1, 64, t); }
static void second(set s, unsigned long long m, void *t) { s(m, 2, 64, t); }
static void third(set s, unsigned long long m, void *t) { s(m, 2, 64, t); }
int main(int count, char **names) {
    void *cuda = dlopen(names[1], RTLD_NOW), *context, *a, *b;
    unsigned long long m;
    set s = (set)dlsym(cuda, "cuMemsetD8Async");
    ((one)dlsym(cuda, "cuInit"))(0);
    ((retain)dlsym(cuda, "cuDevicePrimaryCtxRetain"))(&context, 0);
    ((current)dlsym(cuda, "cuCtxSetCurrent"))(context);
    ((make)dlsym(cuda, "cuStreamCreate"))(&a, 1);
    ((make)dlsym(cuda, "cuStreamCreate"))(&b, 1);
    ((make)dlsym(cuda, "cuMemAlloc_v2"))(&m, 4096);
    first(s, m, a);
    second(s, m, b);
    first(s, m + 1024, a);
    third(s, m + 1024, b);
    return count - 2;
}
"#;

/// Python's own lines are in the backtraces, if the interpreter can tell them without its lock.
#[test]
fn a_python_program_sees_its_own_lines() {
    if !other_programs_open_it() {
        return;
    }
    let source = Place::new("race.py");
    std::fs::write(&source.0, PYTHON).unwrap();
    let run = std::process::Command::new("python3")
        .arg(&source.0)
        .arg(shared_library())
        .env("CUDA_SOFT_DRIVER", "order=report,order_backtraces=on")
        .output();
    let Ok(output) = run else {
        println!("there is no Python here");
        return;
    };
    let errors = text(&output);
    if String::from_utf8_lossy(&output.stdout).contains("no traceback") {
        println!("this Python does not export the function");
        return;
    }
    assert!(output.status.success(), "{errors}");
    for line in [":6 (upload) writes", ":8 (clear) overwrites what "] {
        assert!(errors.contains(line), "{line}: {errors}");
    }
    assert!(errors.contains(&format!("{}:6", source.text())), "{errors}");
    assert!(!errors.contains("_PyEval_"), "{errors}");
    // Two lines of Python are two places.
    assert_eq!(errors.matches("missing order: ").count(), 2, "{errors}");
}

const PYTHON: &str = r#"import ctypes, sys
if not hasattr(ctypes.pythonapi, "_Py_DumpTraceback"):
    print("no traceback")
cuda = ctypes.CDLL(sys.argv[1])
def upload(at, stream):
    return cuda.cuMemsetD8Async(ctypes.c_uint64(at), 1, ctypes.c_size_t(64), stream)
def clear(at, stream):
    cuda.cuMemsetD8Async(ctypes.c_uint64(at), 0, ctypes.c_size_t(64), stream)
context, a, b, m = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
cuda.cuStreamCreate(ctypes.byref(a), 1)
cuda.cuStreamCreate(ctypes.byref(b), 1)
cuda.cuMemAlloc_v2(ctypes.byref(m), ctypes.c_size_t(4096))
assert upload(m.value, a) == 0
clear(m.value, b)
upload(m.value + 1024, a)
clear(m.value + 1024, b)
"#;
