//! The memory of a program under the library: whatever the program does, and however often, what
//! the library keeps does not grow.
//!
//! `CUDA_EVENTS_TEST_SOAK=SECONDS cargo test -p cuda-order-check --test memory soak --
//! --nocapture` does everything in turn for so long, with the library and with the driver alone. It
//! prints the memory of both processes, twelve times.

#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::fs;
use std::ops::Range;
use std::os::unix::fs::symlink;
use std::ptr::{null, null_mut};
use std::time::{Duration, Instant};

use cuda_test_harness::child::{command, full_name, own_binary, role};
use cuda_test_harness::{TestDriver, say_not_run, shared_library, soft_settings};
use parts::{PARTS, Part, named_streams, plain_threads};

#[macro_use]
mod driver;
#[path = "memory/parts.rs"]
mod parts;

/// The rounds after which the memory of a program is measured. A table that grows with them gets
/// more room at least once between two of these.
const ROUNDS: [u64; 4] = [600, 1200, 2400, 4800];
/// Bytes that the memory may grow from one to the next, more than without the library.
const GROWTH: i64 = 12 << 10;
/// Calls after which the library has forgotten what is over.
const CALLS: usize = 5000;
/// The seconds of a soak.
const SOAK: &str = "CUDA_EVENTS_TEST_SOAK";

type Function = extern "C" fn(*mut c_void);

#[repr(C)]
struct HostParams {
    function: Function,
    data: *mut c_void,
}

driver! {
    cuInit(flags: c_uint);
    cuDevicePrimaryCtxRetain(context: *mut usize, device: c_int);
    cuCtxSetCurrent(context: usize);
    cuCtxCreate_v2(context: *mut usize, flags: c_uint, device: c_int);
    cuCtxDestroy_v2(context: usize);
    cuCtxSynchronize();
    cuCtxRecordEvent(context: usize, event: usize);
    cuCtxWaitEvent(context: usize, event: usize);
    cuStreamCreate(stream: *mut usize, flags: c_uint);
    cuStreamDestroy_v2(stream: usize);
    cuStreamSynchronize(stream: usize);
    cuStreamSynchronize_ptsz(stream: usize);
    cuStreamWaitEvent(stream: usize, event: usize, flags: c_uint);
    cuStreamWriteValue32_v2(stream: usize, address: u64, value: u32, flags: c_uint);
    cuStreamWaitValue32_v2(stream: usize, address: u64, value: u32, flags: c_uint);
    cuStreamAddCallback(stream: usize, function: extern "C" fn(usize, c_uint, *mut c_void),
        data: *mut c_void, flags: c_uint);
    cuStreamBeginCapture_v2(stream: usize, mode: c_uint);
    cuStreamEndCapture(stream: usize, graph: *mut usize);
    cuEventCreate(event: *mut usize, flags: c_uint);
    cuEventDestroy_v2(event: usize);
    cuEventRecord(event: usize, stream: usize);
    cuEventRecord_ptsz(event: usize, stream: usize);
    cuEventSynchronize(event: usize);
    cuIpcGetEventHandle(descriptor: *mut [u8; 64], event: usize);
    cuIpcGetMemHandle(descriptor: *mut [u8; 64], address: u64);
    cuMemAlloc_v2(address: *mut u64, bytes: usize);
    cuMemAllocManaged(address: *mut u64, bytes: usize, flags: c_uint);
    cuMemFree_v2(address: u64);
    cuMemAllocAsync(address: *mut u64, bytes: usize, stream: usize);
    cuMemAllocFromPoolAsync(address: *mut u64, bytes: usize, pool: usize, stream: usize);
    cuMemFreeAsync(address: u64, stream: usize);
    cuMemPoolCreate(pool: *mut usize, properties: *const [u32; 22]);
    cuMemPoolDestroy(pool: usize);
    cuMemHostAlloc(memory: *mut *mut u8, bytes: usize, flags: c_uint);
    cuMemFreeHost(memory: *mut u8);
    cuMemHostRegister_v2(memory: *mut u8, bytes: usize, flags: c_uint);
    cuMemHostUnregister(memory: *mut u8);
    cuMemcpyHtoDAsync_v2(to: u64, from: *const u8, bytes: usize, stream: usize);
    cuMemcpyDtoHAsync_v2(to: *mut u8, from: u64, bytes: usize, stream: usize);
    cuMemcpyDtoHAsync_v2_ptsz(to: *mut u8, from: u64, bytes: usize, stream: usize);
    cuMemsetD8Async(to: u64, value: u8, bytes: usize, stream: usize);
    cuMemsetD8Async_ptsz(to: u64, value: u8, bytes: usize, stream: usize);
    cuLaunchHostFunc(stream: usize, function: Function, data: *mut c_void);
    cuLaunchHostFunc_ptsz(stream: usize, function: Function, data: *mut c_void);
    cuModuleLoadData(module: *mut usize, code: *const c_void);
    cuModuleUnload(module: usize);
    cuModuleGetFunction(function: *mut usize, module: usize, name: *const c_char);
    cuLibraryLoadData(library: *mut usize, code: *const c_void, options: *mut c_uint,
        values: *mut *mut c_void, count: c_uint, others: *mut c_uint,
        their_values: *mut *mut c_void, their_count: c_uint);
    cuLibraryUnload(library: usize);
    cuLibraryGetKernel(kernel: *mut usize, library: usize, name: *const c_char);
    cuKernelGetFunction(function: *mut usize, kernel: usize);
    cuLaunchKernel(function: usize, x: c_uint, y: c_uint, z: c_uint, block_x: c_uint,
        block_y: c_uint, block_z: c_uint, shared: c_uint, stream: usize,
        parameters: *const *const c_void, extra: *const c_void);
    cuGraphCreate(graph: *mut usize, flags: c_uint);
    cuGraphClone(clone: *mut usize, graph: usize);
    cuGraphDestroy(graph: usize);
    cuGraphAddHostNode(node: *mut usize, graph: usize, after: *const usize, count: usize,
        params: *const HostParams);
    cuGraphAddChildGraphNode(node: *mut usize, graph: usize, after: *const usize, count: usize,
        child: usize);
    cuGraphDestroyNode(node: usize);
    cuGraphHostNodeSetParams(node: usize, params: *const HostParams);
    cuGraphInstantiateWithFlags(exec: *mut usize, graph: usize, flags: u64);
    cuGraphExecHostNodeSetParams(exec: usize, node: usize, params: *const HostParams);
    cuGraphExecUpdate_v2(exec: usize, graph: usize, result: *mut [usize; 3]);
    cuGraphExecDestroy(exec: usize);
    cuGraphLaunch(exec: usize, stream: usize);
    cuUserObjectCreate(object: *mut usize, data: *mut c_void, destroy: Function, count: c_uint,
        flags: c_uint);
    cuUserObjectRelease(object: usize, count: c_uint);
    cuGraphRetainUserObject(graph: usize, object: usize, count: c_uint, flags: c_uint);
    cuGraphReleaseUserObject(graph: usize, object: usize, count: c_uint);
}

extern "C" fn nothing(_: *mut c_void) {}

extern "C" fn called(_: usize, _: c_uint, _: *mut c_void) {}

const HOST: HostParams = HostParams { function: nothing, data: null_mut() };

/// What a call writes to the place that it is given.
fn new<T: Default>(call: impl FnOnce(&mut T)) -> T {
    let mut made = T::default();
    call(&mut made);
    made
}

/// `cuStreamBeginCapture_v2`.
type BeginCapture = unsafe extern "C" fn(usize, c_uint) -> c_uint;

/// A program: its streams, its memory, and what it has made in a round before.
struct Program {
    cuda: Cuda,
    /// The driver's own function, whose calls the library does not see.
    begin_unseen: BeginCapture,
    context: usize,
    streams: [usize; 2],
    memory: u64,
    pinned: *mut u8,
    /// Of a graph with one host function.
    graph: usize,
    node: usize,
    exec: usize,
    object: usize,
}

// SAFETY: of its threads only one is at work at a time.
unsafe impl Sync for Program {}

impl Program {
    fn new() -> Self {
        let cuda = Cuda::load();
        cuda.cuInit(0);
        let mut p = Self {
            cuda,
            // SAFETY: its type.
            begin_unseen: unsafe { own("cuStreamBeginCapture_v2") },
            context: 0,
            streams: [0; 2],
            memory: 0,
            pinned: null_mut(),
            graph: 0,
            node: 0,
            exec: 0,
            object: 0,
        };
        p.begin();
        p
    }

    /// What it has in the context.
    fn begin(&mut self) {
        self.cuda.cuDevicePrimaryCtxRetain(&mut self.context, 0);
        self.cuda.cuCtxSetCurrent(self.context);
        self.streams = [(); 2].map(|()| new(|stream| self.cuda.cuStreamCreate(stream, 1)));
        self.memory = self.allocated();
        self.cuda.cuMemHostAlloc(&mut self.pinned, 1 << 16, 0);
        self.graph = self.built();
        self.node = self.host_node(self.graph);
        self.exec = self.instantiated(self.graph);
        self.object = self.new_object();
    }

    fn allocated(&self) -> u64 {
        new(|address| self.cuda.cuMemAlloc_v2(address, 1 << 16))
    }

    fn set(&self, address: u64, stream: usize) {
        self.cuda.cuMemsetD8Async(address, 1, 256, stream);
    }

    fn synchronize(&self) {
        self.streams.iter().for_each(|stream| self.cuda.cuStreamSynchronize(*stream));
    }

    /// Waits, also for the destructors of what was destroyed: a thread of the driver runs them, and
    /// host functions, in their order.
    fn settle(&self) {
        self.cuda.cuLaunchHostFunc(self.streams[0], nothing, null_mut());
        self.cuda.cuCtxSynchronize();
    }

    fn built(&self) -> usize {
        new(|graph| self.cuda.cuGraphCreate(graph, 0))
    }

    fn host_node(&self, graph: usize) -> usize {
        new(|node| self.cuda.cuGraphAddHostNode(node, graph, null(), 0, &HOST))
    }

    /// A graph of a memset and a host function.
    fn captured(&self) -> usize {
        self.captured_by(self.cuda.cuStreamBeginCapture_v2)
    }

    fn captured_by(&self, begin: BeginCapture) -> usize {
        let stream = self.streams[0];
        // SAFETY: a stream that lives.
        assert_eq!(unsafe { begin(stream, 2) }, 0);
        self.set(self.memory, stream);
        self.cuda.cuLaunchHostFunc(stream, nothing, null_mut());
        new(|graph| self.cuda.cuStreamEndCapture(stream, graph))
    }

    fn instantiated(&self, graph: usize) -> usize {
        new(|exec| self.cuda.cuGraphInstantiateWithFlags(exec, graph, 0))
    }

    fn launch(&self, exec: usize) {
        self.cuda.cuGraphLaunch(exec, self.streams[0]);
    }

    /// A launch of what this graph is, which then ends, before the launch does.
    fn launched_once(&self, graph: usize) {
        let exec = self.instantiated(graph);
        self.launch(exec);
        self.cuda.cuGraphExecDestroy(exec);
        self.cuda.cuGraphDestroy(graph);
    }

    fn new_object(&self) -> usize {
        new(|object| self.cuda.cuUserObjectCreate(object, null_mut(), nothing, 1, 1))
    }

    fn in_thread(&self, work: impl FnOnce() + Send) {
        let work = || {
            self.cuda.cuCtxSetCurrent(self.context);
            work();
            // The software driver keeps what it has of a thread with a context.
            self.cuda.cuCtxSetCurrent(0);
        };
        std::thread::scope(|scope| scope.spawn(work).join().expect("it ends"));
    }

    fn launch_kernel(&self, function: usize) {
        let parameters = [(&raw const self.memory).cast::<c_void>()];
        let (stream, parameters) = (self.streams[0], parameters.as_ptr());
        self.cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, null());
    }
}

/// The bytes of the process that are in use. The library forgets what is over after so many calls.
fn live(p: &Program) -> i64 {
    for call in 0..CALLS {
        p.set(p.memory, p.streams[0]);
        if call.is_multiple_of(50) {
            p.cuda.cuStreamSynchronize(p.streams[0]);
        }
    }
    p.settle();
    // SAFETY: it has no preconditions.
    let info = unsafe { libc::mallinfo2() };
    (info.uordblks + info.hblkhd) as i64
}

/// A function of the software driver, whose calls the library does not see.
///
/// # Safety
///
/// `F` must be the function's type.
unsafe fn own<F: Copy>(name: &str) -> F {
    let library = shared_library().into_os_string().into_encoded_bytes();
    let [library, name] = [library, name.into()].map(|it| CString::new(it).expect("without a 0"));
    // SAFETY: as the caller says; it is not null.
    unsafe {
        let library = libc::dlopen(library.as_ptr(), libc::RTLD_NOW);
        let function = libc::dlsym(library, name.as_ptr());
        assert!(!function.is_null(), "{name:?}");
        std::mem::transmute_copy(&function)
    }
}

/// One kernel, which does nothing.
fn register_kernel() {
    type Run = extern "C" fn(*const c_void, *mut c_void) -> c_uint;
    type Register = unsafe extern "C" fn(
        *const c_char,
        *const usize,
        usize,
        Run,
        Option<Run>,
        *mut c_void,
    ) -> c_uint;
    extern "C" fn run(_: *const c_void, _: *mut c_void) -> c_uint {
        0
    }
    // SAFETY: its type; a name, the size of a parameter, and a function that does nothing.
    let code = unsafe {
        let register: Register = own("cuda_soft_driver_kernel");
        register(c"own".as_ptr(), [8].as_ptr(), 1, run, None, null_mut())
    };
    assert_eq!(code, 0);
}

/// Repeats a part, and prints how many bytes more are in use after some rounds than before. Tables
/// reach their last size at different times, and the order in which their entries go decides when.
/// So the least growth counts: a leak grows each time.
fn repeat(part: Part) {
    register_kernel();
    let mut p = Program::new();
    let repeated = |p: &mut Program, rounds: Range<u64>| {
        for round in rounds {
            part(p, round);
            // The driver's own lists grow with what waits.
            if round.is_multiple_of(8) {
                p.settle();
            }
        }
    };
    // What the library keeps of the last ones: allocations that were freed, for reports, and
    // streams and threads, until it forgets what is over.
    for round in 0..1500 {
        p.cuda.cuMemFree_v2(p.allocated());
        named_streams(&mut p, round);
        plain_threads(&mut p, round);
    }
    let mut begin = 0;
    let live = ROUNDS.map(|end| {
        repeated(&mut p, begin..end);
        begin = end;
        live(&p)
    });
    let grown = live.windows(2).map(|pair| pair[1] - pair[0]).min().expect("there are several");
    println!("\nin use: {live:?}\ngrown: {grown}");
}

/// Does everything in turn, and prints the process's memory.
fn soak(seconds: u64) {
    const SAMPLES: u32 = 12;
    register_kernel();
    let mut p = Program::new();
    let (begun, mut round) = (Instant::now(), 0_u64);
    println!();
    for sample in 1..=SAMPLES {
        let end = Duration::from_secs(seconds) * sample / SAMPLES;
        loop {
            // The software driver itself keeps a kilobyte of the threads and contexts of a round.
            let rare = !round.is_multiple_of(64);
            for (name, part) in PARTS {
                if !(rare && ["contexts", "threads", "plain_threads"].contains(name)) {
                    part(&mut p, round);
                }
            }
            p.synchronize();
            round += 1;
            if begun.elapsed() >= end {
                break;
            }
        }
        let status = fs::read_to_string("/proc/self/status").expect("the system has it");
        let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let memory = memory.expect("it is there").trim();
        let (seconds, live) = (begun.elapsed().as_secs(), live(&p));
        println!("soak: {seconds} s, {round} rounds, {memory}, {live} bytes in use");
    }
}

/// Starts a role under the library, or with the driver alone. Returns what it prints, and the
/// library's log.
fn start(test: &str, role: &str, checked: bool) -> [String; 2] {
    let name = format!("order-check-{role}-{checked}-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    fs::create_dir_all(&folder).expect("a folder");
    let (log, library) = (folder.join("log"), shared_library());
    let mut command = command(&own_binary(), &full_name(test), role);
    // One arena, and no memory of threads: so the count of what is in use is right.
    command
        .env("MALLOC_ARENA_MAX", "1")
        // What is freed is overwritten: a use after the free would not go well.
        .env("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0:glibc.malloc.perturb=85")
        // Since CUDA 13.1 a node's graph is known.
        .env("CUDA_SOFT_DRIVER", soft_settings("version=13.1"));
    if checked {
        let settings = format!("log={},library={}", log.display(), library.display());
        command.env("CUDA_ORDER_CHECK", settings);
        command.env("LD_PRELOAD", env!("CARGO_BIN_EXE_cuda-order-check"));
    } else {
        symlink(&library, folder.join("libcuda.so.1")).expect("a link");
        command.env("LD_LIBRARY_PATH", &folder);
    }
    let output = command.output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{role}: {text}\n{errors}");
    let summary = fs::read_to_string(&log).unwrap_or_default();
    fs::remove_dir_all(folder).expect("it was made here");
    [text, summary]
}

fn is_native() -> bool {
    let native = TestDriver::chosen() == TestDriver::Native;
    if native {
        say_not_run("the driver's own memory is not known to be constant");
    }
    native
}

#[test]
#[ignore = "half a minute of processor time, in the step memory: cargo test -p cuda-order-check \
            --test memory -- --ignored"]
fn what_is_repeated_takes_no_more_memory() {
    let test = "what_is_repeated_takes_no_more_memory";
    if let Some(role) = role() {
        let (_, part) = PARTS.iter().find(|(name, _)| *name == role).expect("it is in the list");
        return repeat(*part);
    }
    if is_native() {
        return;
    }
    let measured = |name: &str, checked| -> i64 {
        let [text, log] = start(test, name, checked);
        assert!(!checked || log.contains("order check: 0 findings"), "{name}: {log}");
        let line = text.lines().find_map(|line| line.strip_prefix("grown: "));
        line.expect("it prints this").parse().expect("a number")
    };
    let more = |(name, _): &(&'static str, Part)| {
        let more = measured(name, true);
        if more <= GROWTH {
            return None;
        }
        // The driver's own part differs a little each time.
        let own = measured(name, false);
        (more > GROWTH + own + own / 10).then_some((*name, more - own))
    };
    let more: Vec<_> = std::thread::scope(|scope| {
        let those = |some: &'static [_]| some.iter().filter_map(more).collect::<Vec<_>>();
        let some = PARTS.chunks(PARTS.len().div_ceil(4));
        let some: Vec<_> = some.map(|some| scope.spawn(move || those(some))).collect();
        some.into_iter().flat_map(|thread| thread.join().expect("they end")).collect()
    });
    assert!(more.is_empty(), "bytes that the library has more: {more:?}");
}

#[test]
fn everything_in_turn_is_a_soak() {
    let test = "everything_in_turn_is_a_soak";
    if role().is_some() {
        let seconds = std::env::var(SOAK).map_or(0, |text| text.parse().expect("seconds"));
        return soak(seconds);
    }
    if is_native() {
        return;
    }
    std::thread::scope(|scope| {
        for checked in [true, false] {
            scope.spawn(move || {
                let [text, log] = start(test, "everything", checked);
                assert!(!checked || log.contains("order check: 0 findings"), "{log}");
                let lines: Vec<_> = text.lines().filter(|line| line.starts_with("soak")).collect();
                assert!(!lines.is_empty(), "{text}");
                println!("with the library: {checked}\n{}\n{log}", lines.join("\n"));
            });
        }
    });
}
