//! The host's own accesses to pinned memory: programs that touch it too early, and the same
//! programs with the wait that they lack.

#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use std::ffi::{c_int, c_uint, c_void};
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::Ordering;
use std::sync::mpsc;

use cuda_test_harness::child::{command, full_name, own_binary, role};
use cuda_test_harness::{TestDriver, shared_library};

#[macro_use]
mod driver;
#[path = "host/calls.rs"]
mod calls;
#[path = "host/flags.rs"]
mod flags;
#[path = "host/graphs.rs"]
mod graphs;
#[path = "host/memory.rs"]
mod memory;
#[path = "host/objects.rs"]
mod objects;
#[path = "host/pages.rs"]
mod pages;
#[path = "host/signals.rs"]
mod signals;

const PAGE: usize = 4096;
/// So much that the driver does not read it within the call.
const LARGE: usize = 64 << 10;

driver! {
    cuInit(flags: c_uint);
    cuDevicePrimaryCtxRetain(context: *mut usize, device: c_int);
    cuDevicePrimaryCtxRelease_v2(device: c_int);
    cuCtxSetCurrent(context: usize);
    cuCtxCreate_v2(context: *mut usize, flags: c_uint, device: c_int);
    cuCtxDestroy_v2(context: usize);
    cuCtxSynchronize();
    cuStreamWriteValue64_v2(stream: usize, address: u64, value: u64, flags: c_uint);
    cuStreamWaitValue64_v2(stream: usize, address: u64, value: u64, flags: c_uint);
    cuStreamBatchMemOp_v2(stream: usize, count: c_uint, batch: *mut [[u64; 6]; 3], flags: c_uint);
    cuStreamCreate(stream: *mut usize, flags: c_uint);
    cuStreamSynchronize(stream: usize);
    cuEventCreate(event: *mut usize, flags: c_uint);
    cuEventRecord(event: usize, stream: usize);
    cuEventSynchronize(event: usize);
    cuEventQuery(event: usize);
    cuEventDestroy_v2(event: usize);
    cuStreamQuery(stream: usize);
    cuLaunchKernelEx(config: *const u64, function: usize, values: *const usize, more: *const usize);
    cuStreamDestroy_v2(stream: usize);
    cuMemAlloc_v2(address: *mut u64, bytes: usize);
    cuMemHostAlloc(memory: *mut *mut u8, bytes: usize, flags: c_uint);
    cuMemAllocManaged(memory: *mut *mut u8, bytes: usize, flags: c_uint);
    cuMemFree_v2(memory: *mut u8);
    cuMemcpyAsync(to: *mut u8, from: *const u8, bytes: usize, stream: usize);
    cuMemFreeHost(memory: *mut u8);
    cuMemHostRegister_v2(memory: *mut u8, bytes: usize, flags: c_uint);
    cuMemHostUnregister(memory: *mut u8);
    cuMemcpyHtoDAsync_v2(to: u64, from: *const u8, bytes: usize, stream: usize);
    cuMemcpyDtoHAsync_v2(to: *mut u8, from: u64, bytes: usize, stream: usize);
    cuMemsetD8Async(to: u64, value: u8, bytes: usize, stream: usize);
    cuLaunchHostFunc(stream: usize, function: extern "C" fn(*mut c_void), data: *mut c_void);
    cuStreamBeginCapture_v2(stream: usize, mode: c_uint);
    cuStreamEndCapture(stream: usize, graph: *mut usize);
    cuGraphInstantiateWithFlags(exec: *mut usize, graph: usize, flags: u64);
    cuGraphLaunch(exec: usize, stream: usize);
}

/// A program: a stream, device memory and pinned memory.
struct Program {
    cuda: Cuda,
    stream: usize,
    device: u64,
    pinned: *mut u8,
    context: usize,
    good: bool,
}

// SAFETY: the threads of a program take care of their accesses, or are wrong on purpose.
unsafe impl Sync for Program {}

impl Program {
    fn new(good: bool) -> Self {
        let cuda = Cuda::load();
        let (mut context, mut stream, mut device) = (0, 0, 0);
        let mut pinned = std::ptr::null_mut();
        cuda.cuInit(0);
        cuda.cuDevicePrimaryCtxRetain(&mut context, 0);
        cuda.cuCtxSetCurrent(context);
        cuda.cuStreamCreate(&mut stream, 1);
        cuda.cuMemAlloc_v2(&mut device, 2 * LARGE);
        cuda.cuMemsetD8Async(device, 7, 2 * LARGE, stream);
        cuda.cuStreamSynchronize(stream);
        cuda.cuMemHostAlloc(&mut pinned, 2 * LARGE, 0);
        Self { cuda, stream, device, pinned, context, good }
    }

    fn upload(&self, at: usize, bytes: usize) {
        self.cuda.cuMemcpyHtoDAsync_v2(self.device, self.at(at), bytes, self.stream);
    }

    fn download(&self, at: usize, bytes: usize) {
        self.cuda.cuMemcpyDtoHAsync_v2(self.at(at), self.device, bytes, self.stream);
    }

    fn synchronize(&self) {
        self.cuda.cuStreamSynchronize(self.stream);
    }

    /// What only the good program does.
    fn wait(&self) {
        if self.good {
            self.synchronize();
        }
    }

    /// A call that orders nothing.
    fn any_call(&self) {
        let mut event = 0;
        self.cuda.cuEventCreate(&mut event, 2);
    }

    fn at(&self, at: usize) -> *mut u8 {
        assert!(at < 2 * LARGE);
        // SAFETY: within the pinned memory.
        unsafe { self.pinned.add(at) }
    }

    fn read(&self, at: usize) -> u8 {
        // SAFETY: pinned memory; what the device does there is the subject of the test.
        unsafe { self.at(at).read_volatile() }
    }

    fn write(&self, at: usize) {
        // SAFETY: as above.
        unsafe { self.at(at).write_volatile(9) }
    }
}

/// A name, a program, and what its log has.
type Role<const PARTS: usize> = (&'static str, fn(&Program), [&'static str; PARTS]);

const LOAD: &str = "  reads    a load on thread";
const STORE: &str = "  writes   a store on thread";
const TO_DEVICE: &str = "  reads    cuMemcpyHtoDAsync_v2 in stream";
const TO_HOST: &str = "  writes   cuMemcpyDtoHAsync_v2 in stream";

/// Programs without the wait have one finding, about these.
#[rustfmt::skip] // A row in few lines.
const PLANTED: &[Role<2>] = &[
    ("refill", pages::refill, [TO_DEVICE, STORE]),
    ("result", pages::result, [TO_HOST, LOAD]),
    ("small_source", pages::small_source, [TO_DEVICE, STORE]),
    ("small_result", pages::small_result, [TO_HOST, LOAD]),
    ("other_thread", pages::other_thread, [TO_HOST, "  reads    a load on thread 2"]),
    ("last_access", pages::last_access, [TO_HOST, LOAD]),
    ("shared_page", pages::shared_page, [TO_HOST, LOAD]),
    ("written", calls::written, [TO_HOST, "  reads    write on thread"]),
    (
        "read_into_a_later_copy",
        calls::read_into_a_later_copy,
        [TO_DEVICE, "  writes   read on thread"],
    ),
    ("read_into", calls::read_into, [TO_DEVICE, "  writes   read on thread"]),
    ("stored", calls::stored, [TO_HOST, "  reads    fwrite on thread"]),
    ("own_faults", signals::own_faults, [TO_HOST, LOAD]),
    ("forked", signals::forked, [TO_HOST, LOAD]),
    ("blocked", signals::blocked, [TO_HOST, LOAD]),
    ("full_mask", signals::full_mask, [TO_HOST, LOAD]),
    ("long_read", calls::long_read, [TO_HOST, "  writes   readv on thread"]),
    ("crowd", pages::crowd, [TO_HOST, LOAD]),
    ("handle_in_pinned_memory", pages::handle_in_pinned_memory, [TO_HOST, LOAD]),
    ("refill_of_a_graph", graphs::refill_of_a_graph, ["  reads    cuGraphLaunch ", STORE]),
    ("result_of_a_graph", graphs::result_of_a_graph, ["  writes   cuGraphLaunch in node", LOAD]),
    ("registered", memory::registered, [TO_HOST, LOAD]),
    ("managed", memory::managed, ["  writes   cuMemsetD8Async in stream", LOAD]),
    ("managed_source", memory::managed_source, ["  reads    cuMemcpyAsync in stream", STORE]),
    ("value_not_polled", flags::value_not_polled, [TO_HOST, LOAD]),
    ("counter", flags::counter, [TO_HOST, LOAD]),
    ("nothing_to_read", pages::nothing_to_read, [TO_HOST, LOAD]),
    ("flag_beside_the_result", flags::flag_beside_the_result, [TO_HOST, LOAD]),
    ("destroyed_while_awaited", objects::destroyed_while_awaited,
        ["  uses     cuEventSynchronize on thread 2", "  destroys cuEventDestroy_v2 on thread 1"]),
];

/// Programs without a finding, and a line of their summary.
#[rustfmt::skip] // A row in few lines.
const CORRECT: &[Role<1>] = &[
    ("read_beside", calls::read_beside, ["order check: 0 findings"]),
    ("short_read", calls::short_read,
        ["1 copies and kernels with memory of the host were watched"]),
    ("host_function", graphs::host_function,
        ["2 copies and kernels with memory of the host were watched"]),
    ("read_beside_a_later_copy", calls::read_beside_a_later_copy, ["order check: 0 findings"]),
    ("neighbours", pages::neighbours, ["order check: 0 findings"]),
    ("next_bytes", pages::next_bytes, ["4 copies and kernels with memory of the host"]),
    ("ended_context", memory::ended_context,
        ["1 copies and kernels with memory of the host were watched"]),
    ("io_memory", memory::io_memory, ["order check: 0 findings"]),
    ("refused", memory::refused, ["order check: 0 findings"]),
    ("released_context", memory::released_context, ["order check: 0 findings"]),
    ("default_streams", memory::default_streams,
        ["1 copies and kernels with memory of the host were watched"]),
    ("polled_value", flags::polled_value,
        ["1 copies and kernels with memory of the host were watched"]),
    ("flags_set_back", flags::flags_set_back,
        ["3 copies and kernels with memory of the host were watched"]),
    ("flag_set_back_by_another_mapping", flags::flag_set_back_by_another_mapping,
        ["2 copies and kernels with memory of the host were watched"]),
    ("flag_set_back_by_the_stream", flags::flag_set_back_by_the_stream, ["1 copies and kernels"]),
    ("flag_set_back_in_a_batch", flags::flag_set_back_in_a_batch, ["1 copies and kernels"]),
    ("flag_for_another_stream", flags::flag_for_another_stream, ["order check: 0 findings"]),
    ("flag_without_news", flags::flag_without_news, ["2 copies and kernels"]),
    ("too_many_copies", pages::too_many_copies,
        ["4 times a copy or kernel was not watched: 256 were watched, or mprotect has failed"]),
    ("released", flags::released, ["2 copies and kernels with memory of the host were watched"]),
    ("many_values", flags::many_values, ["6 values that streams write counted as seen at once"]),
    ("freed", memory::freed, ["3 copies and kernels with memory of the host were watched"]),
    ("same_copy", pages::same_copy,
        ["10 copies and kernels with memory of the host were watched, with 2 calls of mprotect"]),
    ("registered_part", memory::registered_part,
        ["1 time a copy or kernel was not watched: the pages of registered memory have other"]),
    ("handler_of_faults_reads", signals::handler_of_faults_reads, ["1 copies and kernels"]),
    ("ten_copies", pages::ten_copies,
        ["10 copies and kernels with memory of the host were watched, with 20 calls of mprotect"]),
];

/// All of them with their waits, in one process.
const MENDED: &str = "mended";

/// The role of a program that is started without the class.
const OFF: &str = "off";

struct Run {
    output: Output,
    log: String,
}

/// Starts a role, with the library preloaded unless `set` takes that away.
fn start(test: &str, role: &str, set: impl FnOnce(&mut Command)) -> Run {
    let folder = std::env::temp_dir().join(format!("order-check-{test}-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let log = folder.join(role.replace(' ', "-"));
    let mut command = command(&own_binary(), &full_name(test), role);
    let mut settings = format!("log={}", log.display());
    if TestDriver::chosen() != TestDriver::Native {
        settings += &format!(",library={}", shared_library().display());
    }
    if role == OFF {
        settings += ",class=-host";
    }
    command.env("CUDA_ORDER_CHECK", settings).env("LD_PRELOAD", stand_in());
    set(&mut command);
    let output = command.output().expect("the test's own program runs");
    let log = fs::read_to_string(log).unwrap_or_default();
    fs::remove_dir_all(folder).expect("it was made here");
    Run { output, log }
}

fn stand_in() -> PathBuf {
    env!("CARGO_BIN_EXE_cuda-order-check").into()
}

impl Run {
    fn succeeded(self) -> Self {
        let Self { output, log } = &self;
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}\n{text}\n{log}", output.status);
        self
    }
}

#[test]
fn early_accesses_are_found_and_ordered_ones_are_not() {
    let test = "early_accesses_are_found_and_ordered_ones_are_not";
    if let Some(role) = role() {
        let good = role == MENDED;
        for (_, program, _) in PLANTED.iter().filter(|row| good || row.0 == role) {
            let p = Program::new(good);
            program(&p);
            p.synchronize();
        }
        return;
    }
    for (name, _, parts) in PLANTED {
        let log = start(test, name, |_| ()).succeeded().log;
        assert!(log.contains("order check: 1 finding"), "{name}: {log}");
        for part in parts {
            assert!(log.contains(part), "{name}: {part}: {log}");
        }
        // The stack of the access has this program's frames.
        let second = log.split(parts[1]).nth(1).and_then(|rest| rest.split("to mend").next());
        let file = own_binary();
        let file = file.file_name().expect("a name").to_str().expect("it is text");
        let has = |second: &str| second.contains(file) || second.contains(&format!("::{name}"));
        assert!(second.is_some_and(has), "{name}: {log}");
    }
    let log = start(test, MENDED, |_| ()).succeeded().log;
    assert!(log.contains("order check: 0 findings"), "{log}");
    assert!(log.contains("with memory of the host were watched"), "{log}");
}

#[test]
fn correct_programs_have_no_finding() {
    if let Some(role) = role() {
        let (_, program, _) = CORRECT.iter().find(|row| row.0 == role).expect("it is in the list");
        let p = Program::new(true);
        program(&p);
        return p.synchronize();
    }
    for (name, _, [line]) in CORRECT {
        let log = start("correct_programs_have_no_finding", name, |_| ()).succeeded().log;
        assert!(log.contains("order check: 0 findings") && log.contains(line), "{name}: {log}");
    }
}

/// The end of a program by a fault of its own.
#[test]
fn a_crash_is_a_crash() {
    if let Some(role) = role() {
        let p = Program::new(false);
        p.download(0, LARGE);
        // SAFETY: the system's default, or what the role wants.
        unsafe {
            libc::signal(libc::SIGSEGV, libc::SIG_DFL);
            match &*role {
                "null" => std::ptr::without_provenance_mut::<u8>(16).write_volatile(1),
                "raised" => _ = libc::raise(libc::SIGSEGV),
                // The system ignores only what is sent.
                "ignored fault" => {
                    libc::signal(libc::SIGSEGV, libc::SIG_IGN);
                    std::ptr::without_provenance_mut::<u8>(16).write_volatile(1);
                }
                "ignored" => {
                    libc::signal(libc::SIGSEGV, libc::SIG_IGN);
                    libc::raise(libc::SIGSEGV);
                    p.read(0);
                    libc::_exit(17);
                }
                // The program's handler is called once, and then the system's.
                "once" => {
                    let flags = libc::MAP_PRIVATE | libc::MAP_ANON;
                    let page = libc::mmap(std::ptr::null_mut(), PAGE, 0, flags, -1, 0);
                    let mut action: libc::sigaction = std::mem::zeroed();
                    action.sa_sigaction = signals::own_handler as *const () as usize;
                    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESETHAND;
                    libc::sigaction(libc::SIGSEGV, &action, std::ptr::null_mut());
                    page.cast::<u8>().write_volatile(1);
                    p.read(0);
                    let mut now: libc::sigaction = std::mem::zeroed();
                    libc::sigaction(libc::SIGSEGV, std::ptr::null(), &mut now);
                    let calls = signals::FAULTS.load(Ordering::Relaxed);
                    assert_eq!((calls, now.sa_sigaction), (1, libc::SIG_DFL));
                    libc::mprotect(page, PAGE, libc::PROT_NONE);
                    page.cast::<u8>().write_volatile(1);
                }
                // Memory that is registered for reading is that still.
                "registered" => memory::read_only(&p),
                // Read-only memory of the program.
                _ => std::ptr::from_ref(&PAGE).cast_mut().write_volatile(1),
            }
        }
        unreachable!("it has ended");
    }
    for role in ["null", "raised", "once", "registered", "ignored fault", "read-only"] {
        let status = start("a_crash_is_a_crash", role, |_| ()).output.status;
        assert_eq!(status.signal(), Some(libc::SIGSEGV), "{role}: {status}");
    }
    let status = start("a_crash_is_a_crash", "ignored", |_| ()).output.status;
    assert_eq!(status.code(), Some(17), "{status}");
}

/// Where the library cannot do what the class takes, the class is off, and says so.
#[test]
fn the_class_is_off_where_it_would_break_a_program() {
    let test = "the_class_is_off_where_it_would_break_a_program";
    if let Some(role) = role() {
        let p = Program::new(false);
        if role == "deep" {
            p.download(0, LARGE);
            // SAFETY: a name, and flags of the call.
            let library = unsafe {
                libc::dlopen(c"libm.so.6".as_ptr(), libc::RTLD_NOW | libc::RTLD_DEEPBIND)
            };
            assert!(!library.is_null());
            assert_eq!(calls::direct_write(p.pinned), 8192, "{}", std::io::Error::last_os_error());
        }
        if role == "taken" {
            // SAFETY: the system's form of an action: SIG_DFL.
            let code = unsafe {
                libc::syscall(libc::SYS_rt_sigaction, libc::SIGSEGV, [0u64; 4].as_ptr(), 0, 8)
            };
            assert_eq!(code, 0);
        }
        p.download(0, LARGE);
        if role == "taken" {
            p.synchronize();
            // SAFETY: as above.
            unsafe {
                libc::syscall(libc::SYS_rt_sigaction, libc::SIGSEGV, [0u64; 4].as_ptr(), 0, 8);
            }
            p.download(0, LARGE);
        }
        p.read(0);
        return p.synchronize();
    }
    let folder = std::env::temp_dir().join(format!("order-check-off-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let link = folder.join("libcuda.so.1");
    symlink(stand_in(), &link).expect("a link in it");
    let no_preload = |command: &mut Command| {
        command.env_remove("LD_PRELOAD").env("LD_LIBRARY_PATH", &folder);
    };
    let runs = [
        (start(test, "path", no_preload), "the library was not loaded by LD_PRELOAD"),
        (start(test, OFF, |_| ()), "the class `host` is off"),
        (start(test, "deep", |_| ()), "a library was opened with RTLD_DEEPBIND"),
        (start(test, "taken", |_| ()), "the program has a handler of SIGSEGV that cannot be kept"),
    ];
    fs::remove_dir_all(folder).expect("it was made here");
    for (run, reason) in runs {
        let log = run.succeeded().log;
        let line = format!("host: accesses of the host are not checked: {reason}");
        assert!(log.contains("order check: 0 findings") && log.contains(&line), "{log}");
    }
}

#[test]
fn objects_that_are_used_after_their_end_are_found() {
    let test = "objects_that_are_used_after_their_end_are_found";
    if let Some(role) = role() {
        return objects::used_after_destroy(&Program::new(role == MENDED));
    }
    let log = start(test, "planted", |command| {
        command.env("CUDA_SOFT_DRIVER", "misuse=error");
    });
    let log = log.succeeded().log;
    assert!(log.contains("order check: 4 findings"), "{log}");
    for (report, names) in log.split("error: ").skip(1).zip([
        ["cuEventDestroy_v2", "cuEventQuery"],
        ["cuEventDestroy_v2", "cuEventDestroy_v2"],
        ["cuStreamDestroy_v2", "cuStreamQuery"],
        ["cuStreamDestroy_v2", "cuLaunchKernelEx"],
    ]) {
        let [first, second] = names;
        let parts = report.split("  uses     ").collect::<Vec<_>>();
        assert!(report.starts_with("use after destroy: "), "{report}");
        assert!(parts[0].contains(&format!("  destroys {first} on thread 1")), "{report}");
        assert!(parts[1].starts_with(&format!("{second} on thread 1")), "{report}");
        assert!(parts[1].contains("class    objects"), "{report}");
        assert!(
            parts.iter().all(|part| part.contains("host::objects::used_after_destroy")),
            "{report}"
        );
    }
    let mended = start(test, MENDED, |command| {
        command.env("CUDA_SOFT_DRIVER", "misuse=error");
    });
    let log = mended.succeeded().log;
    assert!(log.contains("order check: 0 findings"), "{log}");
}

/// After an error inside the library nothing would lift the protection.
#[test]
fn nothing_is_protected_after_an_error_inside() {
    if role().is_some() {
        let p = Program::new(false);
        p.download(0, LARGE);
        assert_eq!(calls::direct_write(p.pinned), -1, "it is protected");
        p.any_call();
        assert_eq!(calls::direct_write(p.pinned), 8192, "{}", std::io::Error::last_os_error());
        return p.synchronize();
    }
    let run = start("nothing_is_protected_after_an_error_inside", "panics", |command| {
        command.env("CUDA_ORDER_CHECK_PLANT", "cuEventCreate");
    });
    let log = run.succeeded().log;
    assert!(log.contains("an error inside the checker: planted"), "{log}");
}

/// The library starts when the program asks for the driver.
#[test]
fn a_thread_may_have_blocked_signals_before_the_start() {
    if role().is_some() {
        let (sender, receiver) = mpsc::channel::<usize>();
        let (blocked, is_blocked) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            signals::block_signals();
            blocked.send(()).expect("the other thread lives");
            let memory: *const u8 =
                std::ptr::with_exposed_provenance(receiver.recv().expect("the other thread lives"));
            // SAFETY: pinned memory.
            unsafe { memory.read_volatile() };
        });
        is_blocked.recv().expect("the other thread lives");
        let p = Program::new(false);
        p.download(0, LARGE);
        sender.send(p.pinned.expose_provenance()).expect("the other thread lives");
        thread.join().expect("it has read");
        return p.synchronize();
    }
    let test = "a_thread_may_have_blocked_signals_before_the_start";
    let log = start(test, "blocks", |_| ()).succeeded().log;
    assert!(log.contains("order check: 1 finding"), "{log}");
}
