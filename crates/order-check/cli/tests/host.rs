//! The host's own accesses to pinned memory: programs that touch it too early, and the same
//! programs with the wait that they lack.

#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use std::ffi::{c_int, c_uint, c_void};
use std::fs;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, mpsc};

use cuda_test_harness::child::{command, full_name, own_binary, role};
use cuda_test_harness::{TestDriver, shared_library};

#[macro_use]
mod driver;
#[path = "host/flags.rs"]
mod flags;
#[path = "host/memory.rs"]
mod memory;

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
    cuLaunchKernelEx(config: *const u64, of: usize, values: *const usize, more: *const usize);
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

fn refill(p: &Program) {
    p.upload(0, LARGE);
    p.read(5); // It only reads as well.
    p.wait();
    p.write(5);
}

fn result(p: &Program) {
    p.download(0, LARGE);
    let mut event = 0;
    p.cuda.cuEventCreate(&mut event, 2);
    p.cuda.cuEventRecord(event, p.stream);
    if p.good {
        p.cuda.cuEventSynchronize(event);
        assert_eq!(p.read(LARGE - 1), 7);
    }
    p.read(LARGE - 1);
}

fn small_result(p: &Program) {
    p.write(64);
    p.download(64, 4);
    p.wait();
    p.read(66);
}

/// The driver has read it when the call returns, but only if the stream has nothing to do.
fn small_source(p: &Program) {
    p.upload(0, 512);
    p.wait();
    p.write(5);
}

fn other_thread(p: &Program) {
    p.download(0, LARGE);
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            receiver.recv().expect("the other thread lives");
            p.read(PAGE);
        });
        p.wait();
        sender.send(()).expect("the other thread lives");
    });
}

/// A copy has the first bytes of a page.
fn shared_page(p: &Program) {
    p.download(0, 256);
    p.write(1024);
    assert_eq!(p.read(1024), 9);
    // From here on the page is protected anew.
    p.any_call();
    p.write(2048);
    p.any_call();
    p.wait();
    p.read(255);
}

fn pipe() -> [OwnedFd; 2] {
    let mut files = [0; 2];
    // SAFETY: a place for two descriptors, which nobody else has.
    unsafe {
        assert_eq!(libc::pipe(files.as_mut_ptr()), 0);
        files.map(|file| OwnedFd::from_raw_fd(file))
    }
}

fn written(p: &Program) {
    let [_read, write] = pipe();
    p.download(0, 8192);
    p.wait();
    // SAFETY: pinned memory.
    let written = unsafe { libc::write(write.as_raw_fd(), p.pinned.cast(), 8192) };
    assert_eq!(written, 8192, "{}", std::io::Error::last_os_error());
}

fn read_into(p: &Program) {
    let [read, write] = pipe();
    // SAFETY: so many bytes.
    assert_eq!(unsafe { libc::write(write.as_raw_fd(), [1u8; 100].as_ptr().cast(), 100) }, 100);
    p.upload(0, LARGE);
    p.wait();
    // SAFETY: pinned memory.
    let got = unsafe { libc::read(read.as_raw_fd(), p.pinned.cast(), 8192) };
    assert_eq!(got, 100, "{}", std::io::Error::last_os_error());
    assert_eq!(p.read(99), 1);
}

/// The buffers are in one page with a copy, and none of its bytes.
fn read_beside(p: &Program) {
    let [read, write] = pipe();
    p.download(0, 100);
    let vector = |at: usize| libc::iovec { iov_base: p.at(at).cast(), iov_len: 10 };
    let list = [vector(1000), vector(2000)];
    // SAFETY: pinned memory.
    unsafe {
        assert_eq!(libc::writev(write.as_raw_fd(), list.as_ptr(), 2), 20);
        assert_eq!(libc::readv(read.as_raw_fd(), list.as_ptr(), 2), 20);
        p.any_call();
        assert_eq!(libc::pwritev2(write.as_raw_fd(), list.as_ptr(), 2, -1, 0), 20);
        p.any_call();
        assert_eq!(libc::preadv2(read.as_raw_fd(), list.as_ptr(), 2, -1, 0), 20);
        p.any_call();
        assert_eq!(libc::getrandom(p.at(1000).cast(), 10, 0), 10);
    }
}

/// A copy is submitted while a thread waits for data in the same page.
fn read_beside_a_later_copy(p: &Program) {
    let [read, write] = pipe();
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            // SAFETY: it has no preconditions.
            sender.send(unsafe { libc::gettid() }).expect("the other thread lives");
            // SAFETY: pinned memory.
            let got = unsafe { libc::read(read.as_raw_fd(), p.at(1000).cast(), 10) };
            assert_eq!(got, 10, "{}", std::io::Error::last_os_error());
        });
        let thread = receiver.recv().expect("the other thread lives");
        let call = format!("/proc/self/task/{thread}/syscall");
        // "0 ..." is `read`.
        while !fs::read_to_string(&call).is_ok_and(|call| call.starts_with("0 ")) {
            std::thread::yield_now();
        }
        p.download(0, 100);
        // SAFETY: so many bytes.
        assert_eq!(unsafe { libc::write(write.as_raw_fd(), [1u8; 10].as_ptr().cast(), 10) }, 10);
        reader.join().expect("it has read");
    });
}

/// Large parts go around the buffer of a file.
fn stored(p: &Program) {
    p.download(0, LARGE);
    p.wait();
    // SAFETY: a file, and pinned memory.
    unsafe {
        let file = libc::tmpfile();
        assert_eq!(libc::fwrite(p.pinned.cast(), 4, LARGE / 4, file), LARGE / 4);
        assert_eq!(libc::fclose(file), 0);
    }
}

static FAULTS: AtomicUsize = AtomicUsize::new(0);

extern "C" fn own_handler(_: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    FAULTS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the page of the fault, which is the program's.
    unsafe { libc::mprotect((*info).si_addr(), PAGE, libc::PROT_READ | libc::PROT_WRITE) };
}

/// The program protects pages of its own as well.
fn own_faults(p: &Program) {
    // SAFETY: a new page, an action for SIGSEGV, and its place.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANON;
        let page = libc::mmap(std::ptr::null_mut(), PAGE, libc::PROT_NONE, flags, -1, 0);
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = own_handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        assert_eq!(libc::sigaction(libc::SIGSEGV, &action, std::ptr::null_mut()), 0);
        p.download(0, LARGE);
        // Again, now that there is another handler in front of it.
        let mut old: libc::sigaction = std::mem::zeroed();
        assert_eq!(libc::sigaction(libc::SIGSEGV, &action, &mut old), 0);
        assert_eq!(old.sa_sigaction, action.sa_sigaction);
        assert_eq!(old.sa_flags & libc::SA_SIGINFO, libc::SA_SIGINFO);
        page.cast::<u8>().write_volatile(1);
        assert_eq!(FAULTS.load(Ordering::Relaxed), 1);
        p.any_call();
    }
    p.wait();
    p.read(3);
    assert_eq!(FAULTS.load(Ordering::Relaxed), 1);
}

/// A system call that no library is in front of.
fn direct_write(memory: *const u8) -> libc::c_long {
    let [_read, write] = pipe();
    // SAFETY: what is no memory is an error.
    unsafe { libc::syscall(libc::SYS_write, write.as_raw_fd(), memory, 8192) }
}

/// A child has the pages as they would be.
fn forked(p: &Program) {
    p.download(0, LARGE);
    // SAFETY: the child only reads, and ends.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            let written = direct_write(p.pinned);
            p.write(LARGE - 1);
            libc::_exit(if written == 8192 { 3 } else { 4 });
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 3, "{status:#x}");
    }
    p.wait();
    p.read(3);
}

fn block_signals() {
    // SAFETY: a set of signals.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut set);
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
    }
}

/// A thread blocks all signals.
fn blocked(p: &Program) {
    p.download(0, LARGE);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            block_signals();
            p.wait();
            p.read(0);
        });
    });
}

static HANDLED: AtomicUsize = AtomicUsize::new(0);

/// Reads the byte whose address it finds.
extern "C" fn reads_in_handler(_: c_int) {
    let at: *const u8 = std::ptr::with_exposed_provenance(HANDLED.load(Ordering::Relaxed));
    // SAFETY: pinned memory.
    unsafe { at.read_volatile() };
}

/// A handler that blocks all signals has a fault like any other code.
fn full_mask(p: &Program) {
    HANDLED.store(p.pinned.expose_provenance(), Ordering::Relaxed);
    p.download(0, LARGE);
    p.wait();
    // SAFETY: an action for a signal, and a call of its handler.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = reads_in_handler as *const () as usize;
        libc::sigfillset(&mut action.sa_mask);
        assert_eq!(libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()), 0);
        assert_eq!(libc::raise(libc::SIGUSR1), 0);
    }
}

/// Of the buffers of a call only those are touched that its bytes reach.
fn short_read(p: &Program) {
    let [read, write] = pipe();
    p.download(0, 100);
    let vector = |at: usize, bytes| libc::iovec { iov_base: p.at(at).cast(), iov_len: bytes };
    let list = [vector(1000, 10), vector(200, 10), vector(50, 10)];
    for bytes in [10, 15] {
        // SAFETY: pinned memory.
        unsafe {
            assert_eq!(
                libc::write(write.as_raw_fd(), [1u8; 20].as_ptr().cast(), bytes),
                bytes as isize
            );
            assert_eq!(libc::readv(read.as_raw_fd(), list.as_ptr(), 3), bytes as isize);
        }
        p.any_call();
    }
}

/// The same, and one byte more than the call may write.
fn long_read(p: &Program) {
    let [read, write] = pipe();
    p.download(0, 100);
    p.wait();
    let vector = |at: usize, bytes| libc::iovec { iov_base: p.at(at).cast(), iov_len: bytes };
    let list = [vector(1000, 10), vector(50, 10)];
    // SAFETY: pinned memory.
    unsafe {
        assert_eq!(libc::write(write.as_raw_fd(), [1u8; 20].as_ptr().cast(), 11), 11);
        assert_eq!(libc::readv(read.as_raw_fd(), list.as_ptr(), 2), 11);
    }
}

/// Many threads fault at the same pages at the same time.
fn crowd(p: &Program) {
    let barrier = Barrier::new(4);
    for _ in 0..50 {
        p.download(0, LARGE);
        p.wait();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    barrier.wait();
                    (0..LARGE).step_by(PAGE).for_each(|at| _ = p.read(at));
                });
            }
        });
        p.synchronize();
    }
}

/// Threads with streams of their own, and buffers that share pages.
fn neighbours(p: &Program) {
    let rounds = std::env::var("ROUNDS").map_or(30, |rounds| rounds.parse().expect("a number"));
    let barrier = Barrier::new(4);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let barrier = &barrier;
            scope.spawn(move || {
                let (mut stream, bytes) = (0, 3 * PAGE - 1000);
                let own = thread * bytes;
                let device = p.device + own as u64;
                p.cuda.cuCtxSetCurrent(p.context);
                p.cuda.cuStreamCreate(&mut stream, 1);
                barrier.wait();
                for round in 0..rounds {
                    let size = if round % 3 == 0 { 20 } else { bytes };
                    p.cuda.cuMemcpyDtoHAsync_v2(p.at(own), device, size, stream);
                    p.cuda.cuStreamSynchronize(stream);
                    (0..size).step_by(700).for_each(|at| _ = p.read(own + at));
                    (0..bytes).step_by(900).for_each(|at| p.write(own + at));
                    p.cuda.cuMemcpyHtoDAsync_v2(device, p.at(own), size, stream);
                    (0..size).step_by(500).for_each(|at| _ = p.read(own + at));
                    p.cuda.cuStreamSynchronize(stream);
                }
            });
        }
    });
}

/// A call that has nothing to read, and so does not write the buffer, is no access.
fn nothing_to_read(p: &Program) {
    let [read, _write] = pipe();
    // SAFETY: a descriptor of this program.
    unsafe { libc::fcntl(read.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
    p.download(0, LARGE);
    p.wait();
    // SAFETY: pinned memory.
    assert_eq!(unsafe { libc::read(read.as_raw_fd(), p.pinned.cast(), 8192) }, -1);
    p.any_call();
    p.read(5);
}

/// Each copy is protected and lifted by one call each.
fn ten_copies(p: &Program) {
    for _ in 0..5 {
        p.download(0, LARGE);
        p.synchronize();
        p.read(0);
        p.upload(0, LARGE);
        p.synchronize();
        p.write(0);
    }
}

impl Program {
    fn graph(&self, captured: impl FnOnce()) -> usize {
        let (mut graph, mut exec) = (0, 0);
        self.cuda.cuStreamBeginCapture_v2(self.stream, 2);
        captured();
        self.cuda.cuStreamEndCapture(self.stream, &mut graph);
        self.cuda.cuGraphInstantiateWithFlags(&mut exec, graph, 0);
        exec
    }
}

/// The second launch still reads it.
fn refill_of_a_graph(p: &Program) {
    let exec = p.graph(|| p.upload(0, 512));
    p.write(5);
    p.cuda.cuGraphLaunch(exec, p.stream);
    p.synchronize();
    p.write(5);
    p.cuda.cuGraphLaunch(exec, p.stream);
    p.wait();
    p.write(5);
}

fn result_of_a_graph(p: &Program) {
    let exec = p.graph(|| p.download(0, LARGE));
    p.read(5);
    p.cuda.cuGraphLaunch(exec, p.stream);
    p.wait();
    p.read(5);
}

extern "C" fn reads(byte: *mut c_void) {
    // SAFETY: pinned memory, which the copy before this function has written.
    assert_eq!(unsafe { byte.cast::<u8>().read_volatile() }, 7);
}

/// A host function comes after the copy, also in a graph.
fn host_function(p: &Program) {
    let both = || {
        p.download(0, LARGE);
        p.cuda.cuLaunchHostFunc(p.stream, reads, p.at(PAGE).cast());
    };
    both();
    p.synchronize();
    p.cuda.cuGraphLaunch(p.graph(both), p.stream);
}

/// An event that a thread waits for is destroyed.
fn destroyed_while_awaited(p: &Program) {
    let goes_on = flags::Flag::new(p, 0);
    goes_on.holds();
    let mut event = 0;
    // CU_EVENT_BLOCKING_SYNC
    p.cuda.cuEventCreate(&mut event, 1);
    p.cuda.cuEventRecord(event, p.stream);
    let thread = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            p.cuda.cuCtxSetCurrent(p.context);
            // SAFETY: it has no preconditions.
            thread.store(unsafe { libc::gettid() } as usize, Ordering::SeqCst);
            // SAFETY: an event that lives at the begin of the call.
            unsafe { (p.cuda.cuEventSynchronize)(event) };
        });
        let sleeps = || {
            let path = format!("/proc/self/task/{}/stat", thread.load(Ordering::SeqCst));
            fs::read_to_string(path).is_ok_and(|text| text.contains(") S "))
        };
        while !sleeps() {
            std::thread::yield_now();
        }
        if p.good {
            goes_on.store(1);
            waits.join().expect("it has waited");
        }
        p.cuda.cuEventDestroy_v2(event);
        goes_on.store(1);
    });
}

/// An event and a stream are used after their end.
fn used_after_destroy(p: &Program) {
    let (mut event, mut stream) = (0, 0);
    p.cuda.cuEventCreate(&mut event, 2);
    p.cuda.cuStreamCreate(&mut stream, 1);
    p.cuda.cuEventDestroy_v2(event);
    p.cuda.cuStreamDestroy_v2(stream);
    // Another event gets another handle, and another stream would get this one.
    let mut others = [0; 2];
    p.cuda.cuEventCreate(&mut others[0], 2);
    if p.good {
        p.cuda.cuStreamCreate(&mut others[1], 1);
        (event, stream) = (others[0], others[1]);
    }
    // `CUlaunchConfig`: a grid and a block of one, and the stream.
    let config = [1 | 1 << 32, 1 | 1 << 32, 1 | 1 << 32, 0, stream as u64, 0, 0];
    // SAFETY: undefined for a real driver. The software driver looks at handles first.
    let codes = unsafe {
        [
            (p.cuda.cuEventQuery)(event),
            (p.cuda.cuEventDestroy_v2)(event),
            (p.cuda.cuStreamQuery)(stream),
            // There is no such kernel either.
            (p.cuda.cuLaunchKernelEx)(config.as_ptr(), 0, std::ptr::null(), std::ptr::null()),
            // No event, so nobody has destroyed it.
            (p.cuda.cuEventDestroy_v2)(1),
            (p.cuda.cuEventQuery)(1),
        ]
    };
    assert_eq!(codes.map(|code| code == 0), [p.good, p.good, p.good, false, false, false]);
}

/// A name, a program, and what its log has.
type Role<const PARTS: usize> = (&'static str, fn(&Program), [&'static str; PARTS]);

const LOAD: &str = "  reads    a load on thread";
const STORE: &str = "  writes   a store on thread";
const TO_DEVICE: &str = "  reads    cuMemcpyHtoDAsync_v2 in stream";
const TO_HOST: &str = "  writes   cuMemcpyDtoHAsync_v2 in stream";

/// Programs without the wait have one finding, about these.
const PLANTED: &[Role<2>] = &[
    ("refill", refill, [TO_DEVICE, STORE]),
    ("result", result, [TO_HOST, LOAD]),
    ("small_source", small_source, [TO_DEVICE, STORE]),
    ("small_result", small_result, [TO_HOST, LOAD]),
    ("other_thread", other_thread, [TO_HOST, LOAD]),
    ("shared_page", shared_page, [TO_HOST, LOAD]),
    ("written", written, [TO_HOST, "  reads    write on thread"]),
    ("read_into", read_into, [TO_DEVICE, "  writes   read on thread"]),
    ("stored", stored, [TO_HOST, "  reads    fwrite on thread"]),
    ("own_faults", own_faults, [TO_HOST, LOAD]),
    ("forked", forked, [TO_HOST, LOAD]),
    ("blocked", blocked, [TO_HOST, LOAD]),
    ("full_mask", full_mask, [TO_HOST, LOAD]),
    ("long_read", long_read, [TO_HOST, "  writes   readv on thread"]),
    ("crowd", crowd, [TO_HOST, LOAD]),
    ("refill_of_a_graph", refill_of_a_graph, ["  reads    cuGraphLaunch ", STORE]),
    ("result_of_a_graph", result_of_a_graph, ["  writes   cuGraphLaunch in node", LOAD]),
    ("registered", memory::registered, [TO_HOST, LOAD]),
    ("managed", memory::managed, ["  writes   cuMemsetD8Async in stream", LOAD]),
    ("managed_source", memory::managed_source, ["  reads    cuMemcpyAsync in stream", STORE]),
    ("value_not_polled", flags::value_not_polled, [TO_HOST, LOAD]),
    ("counter", flags::counter, [TO_HOST, LOAD]),
    ("nothing_to_read", nothing_to_read, [TO_HOST, LOAD]),
    ("flag_beside_the_result", flags::flag_beside_the_result, [TO_HOST, LOAD]),
    (
        "destroyed_while_awaited",
        destroyed_while_awaited,
        ["  uses     cuEventSynchronize on thread 2", "  destroys cuEventDestroy_v2 on thread 1"],
    ),
];

/// Programs without a finding, and a line of their summary.
const CORRECT: &[Role<1>] = &[
    ("read_beside", read_beside, ["order check: 0 findings"]),
    ("short_read", short_read, ["1 copies and kernels with memory of the host were watched"]),
    ("host_function", host_function, ["2 copies and kernels with memory of the host were watched"]),
    ("read_beside_a_later_copy", read_beside_a_later_copy, ["order check: 0 findings"]),
    ("neighbours", neighbours, ["order check: 0 findings"]),
    (
        "ended_context",
        memory::ended_context,
        ["1 copies and kernels with memory of the host were watched"],
    ),
    ("io_memory", memory::io_memory, ["order check: 0 findings"]),
    ("refused", memory::refused, ["order check: 0 findings"]),
    ("released_context", memory::released_context, ["order check: 0 findings"]),
    (
        "default_streams",
        memory::default_streams,
        ["1 copies and kernels with memory of the host were watched"],
    ),
    (
        "polled_value",
        flags::polled_value,
        ["1 copies and kernels with memory of the host were watched"],
    ),
    (
        "flags_set_back",
        flags::flags_set_back,
        ["3 copies and kernels with memory of the host were watched"],
    ),
    (
        "flag_set_back_by_another_mapping",
        flags::flag_set_back_by_another_mapping,
        ["2 copies and kernels with memory of the host were watched"],
    ),
    ("flag_set_back_by_the_stream", flags::flag_set_back_by_the_stream, ["1 copies and kernels"]),
    ("flag_set_back_in_a_batch", flags::flag_set_back_in_a_batch, ["1 copies and kernels"]),
    ("flag_for_another_stream", flags::flag_for_another_stream, ["order check: 0 findings"]),
    ("flag_without_news", flags::flag_without_news, ["1 copies and kernels"]),
    ("released", flags::released, ["2 copies and kernels with memory of the host were watched"]),
    ("many_values", flags::many_values, ["6 values that streams write counted as seen at once"]),
    ("freed", memory::freed, ["3 copies and kernels with memory of the host were watched"]),
    (
        "ten_copies",
        ten_copies,
        ["10 copies and kernels with memory of the host were watched, with 20 calls of mprotect"],
    ),
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
        for (_, program, _) in PLANTED.iter().filter(|of| good || of.0 == role) {
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
        let has = |second: &str| second.contains(file) || second.contains(&format!("host::{name}"));
        assert!(second.is_some_and(has), "{name}: {log}");
    }
    let log = start(test, MENDED, |_| ()).succeeded().log;
    assert!(log.contains("order check: 0 findings"), "{log}");
    assert!(log.contains("with memory of the host were watched"), "{log}");
}

#[test]
fn correct_programs_have_no_finding() {
    if let Some(role) = role() {
        let (_, program, _) = CORRECT.iter().find(|of| of.0 == role).expect("it is in the list");
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
                    action.sa_sigaction = own_handler as *const () as usize;
                    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESETHAND;
                    libc::sigaction(libc::SIGSEGV, &action, std::ptr::null_mut());
                    page.cast::<u8>().write_volatile(1);
                    p.read(0);
                    let mut now: libc::sigaction = std::mem::zeroed();
                    libc::sigaction(libc::SIGSEGV, std::ptr::null(), &mut now);
                    let calls = FAULTS.load(Ordering::Relaxed);
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
    for role in ["null", "raised", "once", "registered", "read-only"] {
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
            assert_eq!(direct_write(p.pinned), 8192, "{}", std::io::Error::last_os_error());
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
        return used_after_destroy(&Program::new(role == MENDED));
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
        assert!(parts.iter().all(|part| part.contains("host::used_after_destroy")), "{report}");
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
        assert_eq!(direct_write(p.pinned), -1, "it is protected");
        p.any_call();
        assert_eq!(direct_write(p.pinned), 8192, "{}", std::io::Error::last_os_error());
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
            block_signals();
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
