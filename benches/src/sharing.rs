//! Timelines between two processes, beside C: from a signal of this process's stream to its host's
//! sight of the answer, which a stream of the other process gives. It waits for the signal and
//! signals itself, and was told to before.

use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::AtomicU64;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::process::{Child, ChildStdin, ChildStdout, ExitCode};
use std::time::Instant;

use cuda_events::mem_ops::{WaitCondition, WaitValueFlags, WriteValueFlags};
use cuda_events::sys::{CUdeviceptr, CUipcMemHandle, CUresult};
use cuda_events::{Context, Driver, Stream, StreamOptions};
use cuda_timelines::{
    CudaStreamExt, ImportedTimeline, Point, Timeline, TimelineDescriptor, TimelineFile,
    TimelineMemory,
};
use serde_json::{Value, json};

use crate::rounds::{percentile, rounded};
use crate::{processes, rig};

type WriteCall = unsafe extern "C" fn(*mut c_void, u64, u64, u32) -> u32;

unsafe extern "C" {
    fn c_round_trips(
        write: WriteCall,
        stream: *mut c_void,
        address: u64,
        seen: *const AtomicU64,
        value: u64,
        n: u64,
        nanoseconds: *mut f64,
    ) -> u64;
}

/// The verb by which this program starts the other process.
pub const ECHO: &str = "child-echo";

/// How many answers are made ready at once: fewer than a queue of the driver's holds.
const BATCH: u64 = 16;
const PAGE: usize = 4096;
/// The driver shares device memory in blocks of this size.
const BLOCK: usize = 2 << 20;

/// What is measured, and what it is compared with.
pub const WAYS: [(&str, &str); 6] = [
    ("C, host memory", ""),
    ("C, device memory", ""),
    ("C, device memory, mirrored", "C, device memory"),
    ("file", "C, host memory"),
    ("file, relayed", "C, host memory"),
    ("handle", "C, device memory"),
];

pub fn measure(context: &Context, samples: usize, report: &mut impl FnMut(Value)) {
    if context.driver().symbols().cuStreamWaitValue64_v2.is_none() {
        return;
    }
    for (way, beside) in WAYS {
        let mut times = Vec::new();
        let mut peer = match way {
            "C, host memory" => raw_host(context),
            "C, device memory" | "C, device memory, mirrored" => raw_device(context, way),
            "file" => by_file(context, way),
            "file, relayed" => by_file(context, way),
            _ => by_handle(context),
        };
        // The first ones warm up.
        for _ in 0..samples.div_ceil(BATCH as usize) + 1 {
            let first = peer.next;
            peer.next += BATCH;
            (peer.prepare)(first);
            writeln!(peer.input, "{first}").expect("the other process lives");
            assert_eq!(line(&mut peer.output), "ready");
            let batch = (peer.signal)(first);
            if first > 1 {
                times.extend(batch);
            }
        }
        drop(peer.input);
        let status = peer.process.wait().expect("it has ended");
        assert!(status.success(), "the other process failed: {way}");
        times.sort_by(f64::total_cmp);
        let share = |share| rounded(percentile(&times, share) / 1000.0);
        report(json!({
            "kind": "sharing", "way": way, "beside": beside,
            "p50_us": share(0.5), "p90_us": share(0.9), "p99_us": share(0.99),
        }));
    }
}

/// The other process, and this side of a way. Values begin with 1.
struct Peer<'a> {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: u64,
    /// What is put into streams here before a batch, of which this is the first value.
    prepare: Box<dyn FnMut(u64) + 'a>,
    /// Signals a batch, one after the other's answer: nanoseconds of each.
    signal: Box<dyn FnMut(u64) -> Vec<f64> + 'a>,
}

fn line(from: &mut impl BufRead) -> String {
    let mut line = String::new();
    from.read_line(&mut line).expect("text");
    line.trim().to_owned()
}

/// Starts the other process; what it says of its own side.
fn start(arguments: &[&str]) -> (Child, ChildStdin, BufReader<ChildStdout>, String) {
    let mut process =
        processes::child(ECHO).args(arguments).spawn().expect("the program starts again");
    let input = process.stdin.take().expect("a pipe");
    let mut output = BufReader::new(process.stdout.take().expect("a pipe"));
    let first_line = line(&mut output);
    (process, input, output, first_line)
}

fn stream(context: &Context) -> Stream {
    Stream::new(context, StreamOptions::new()).expect("a stream")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2)
        .map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).expect("digits"))
        .collect()
}

/// Children that are started from now on have the file under this number.
fn inherit(file: RawFd) -> String {
    // SAFETY: an open file of this process.
    assert_eq!(unsafe { libc::fcntl(file, libc::F_SETFD, 0) }, 0);
    file.to_string()
}

fn timed(timeline: &Timeline, point: Point) -> f64 {
    let started = Instant::now();
    timeline.signal().expect("a signal");
    while !point.is_done() {
        core::hint::spin_loop();
    }
    started.elapsed().as_nanos() as f64
}

fn by_file<'a>(context: &Context, way: &str) -> Peer<'a> {
    let file = TimelineFile::writable(context).expect("a file");
    let timeline = Timeline::shared(stream(context), &file).expect("a timeline");
    let descriptor = hex(&timeline.descriptor().expect("it is shared").to_bytes());
    let number = inherit(file.as_fd().as_raw_fd());
    let (process, input, output, first_line) = start(&[way, &number, &descriptor]);
    let (path, theirs) = first_line.split_once(' ').expect("a path and a descriptor");
    let descriptor = TimelineDescriptor::from_bytes(&bytes(theirs)).expect("a descriptor");
    // The host looks at it, for which reading is enough.
    let opened = OwnedFd::from(File::open(path).expect("the other process's file"));
    let answers = ImportedTimeline::open(context, opened, &descriptor).expect("an import");
    let signal = move |first| {
        let _file = &file;
        let point = |value| answers.point(value).expect("a point");
        (first..first + BATCH).map(|value| timed(&timeline, point(value))).collect()
    };
    let (prepare, signal) = (Box::new(|_| ()), Box::new(signal));
    Peer { process, input, output, next: 1, prepare, signal }
}

fn by_handle<'a>(context: &Context) -> Peer<'a> {
    let memory = TimelineMemory::new(context).expect("memory");
    let timeline = Timeline::in_memory(stream(context), &memory).expect("a timeline");
    // It may go on from where another one ended.
    let base = timeline.submitted().expect("a value");
    let handle = hex(&timeline.descriptor().expect("it is in memory").to_bytes());
    let (process, input, output, first_line) = start(&["handle", &base.to_string(), &handle]);
    let (theirs, handle) = first_line.split_once(' ').expect("a value and a handle");
    let theirs: u64 = theirs.parse().expect("a value");
    let handle = TimelineDescriptor::from_bytes(&bytes(handle)).expect("a handle");
    // SAFETY: the other process keeps it until its input ends.
    let answers =
        unsafe { ImportedTimeline::open_memory(context, &handle) }.expect("it can be opened");
    let answers = std::rc::Rc::new(answers);
    let asked = answers.clone();
    let prepare = move |first: u64| {
        for value in first..first + BATCH {
            let _ = asked.point(theirs + value).expect("a point");
        }
    };
    let signal = move |first: u64| {
        let _memory = &memory;
        let point = |value| answers.point(theirs + value).expect("it was asked for");
        (first..first + BATCH).map(|value| timed(&timeline, point(value))).collect()
    };
    let (prepare, signal) = (Box::new(prepare), Box::new(signal));
    Peer { process, input, output, next: 1, prepare, signal }
}

/// A page that two processes have, registered.
fn page(context: &Context, file: RawFd) -> &'static [AtomicU64] {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping, which stays.
    let memory = unsafe { libc::mmap(null_mut(), PAGE, protection, libc::MAP_SHARED, file, 0) };
    assert_ne!(memory, libc::MAP_FAILED);
    let symbols = context.driver().symbols();
    // SAFETY: a page that stays; the context is current. For all contexts, and for devices.
    let code = unsafe { (symbols.cuMemHostRegister_v2)(memory, PAGE, 3) };
    assert_eq!(code, CUresult::CUDA_SUCCESS, "cuMemHostRegister failed");
    // SAFETY: so many words, which nothing but atomics and devices change.
    unsafe { core::slice::from_raw_parts(memory.cast(), PAGE / 8) }
}

/// Its address for devices, which is the host's for registered memory.
fn address(word: &AtomicU64) -> CUdeviceptr {
    word.as_ptr().expose_provenance() as CUdeviceptr
}

fn memfd() -> OwnedFd {
    // SAFETY: a C string; then the new file is nobody else's.
    unsafe {
        let file = libc::memfd_create(c"sharing".as_ptr(), 0);
        assert!(file >= 0 && libc::ftruncate(file, PAGE as libc::off_t) == 0);
        OwnedFd::from_raw_fd(file)
    }
}

fn round_trips(stream: &Stream, at: CUdeviceptr, seen: &AtomicU64, first: u64) -> Vec<f64> {
    let write = stream.context().driver().symbols().cuStreamWriteValue64_v2;
    let write = write.expect("looked at before") as *const ();
    // SAFETY: the handle is a pointer, and the code an unsigned number of 32 bits.
    let write = unsafe { core::mem::transmute::<*const (), WriteCall>(write) };
    let mut times = vec![0.0; BATCH as usize];
    // SAFETY: the stream and both words are alive; so many places.
    let left = unsafe {
        let (raw, times) = (stream.as_raw().cast(), times.as_mut_ptr());
        c_round_trips(write, raw, at, seen, first - 1, BATCH, times)
    };
    assert_eq!(left, 0);
    times
}

fn wait(stream: &Stream, at: CUdeviceptr, value: u64) {
    let (condition, flags) = (WaitCondition::GreaterOrEqual, WaitValueFlags::empty());
    // SAFETY: 8 bytes that stay until the process ends.
    unsafe { stream.wait_value64(at, value, condition, flags) }.expect("a wait");
}

fn write(stream: &Stream, at: CUdeviceptr, value: u64) {
    // SAFETY: as for the wait.
    unsafe { stream.write_value64(at, value, WriteValueFlags::empty()) }.expect("a write");
}

fn copy(stream: &Stream, from: CUdeviceptr, to: &AtomicU64) {
    let copy = stream.context().driver().symbols().cuMemcpyDtoHAsync_v2;
    // SAFETY: 8 bytes on both sides, which stay.
    let code = unsafe { copy(to.as_ptr().cast(), from, 8, stream.as_raw()) };
    assert_eq!(code, CUresult::CUDA_SUCCESS, "cuMemcpyDtoHAsync failed");
}

fn raw_host<'a>(context: &Context) -> Peer<'a> {
    let (file, stream) = (memfd(), stream(context));
    let words = page(context, file.as_raw_fd());
    let number = inherit(file.as_raw_fd());
    let (process, input, output, _) = start(&["C, host memory", &number, ""]);
    let signal = move |first| round_trips(&stream, address(&words[0]), &words[8], first);
    let (prepare, signal) = (Box::new(|_| ()), Box::new(signal));
    Peer { process, input, output, next: 1, prepare, signal }
}

/// Memory of the device, zero, and its handle.
fn device_memory(context: &Context) -> (CUdeviceptr, String) {
    let symbols = context.driver().symbols();
    let (mut at, mut handle) = (0, CUipcMemHandle { reserved: [0; 64] });
    let set = stream(context);
    // SAFETY: places for both; the context is current, and the stream is waited for.
    unsafe {
        assert_eq!((symbols.cuMemAlloc_v2)(&mut at, BLOCK), CUresult::CUDA_SUCCESS);
        let code = (symbols.cuMemsetD8Async)(at, 0, BLOCK, set.as_raw());
        assert_eq!(code, CUresult::CUDA_SUCCESS);
        assert_eq!((symbols.cuIpcGetMemHandle)(&mut handle, at), CUresult::CUDA_SUCCESS);
    }
    set.synchronize().expect("it is set");
    (at, hex(&handle.reserved))
}

fn open_memory(driver: Driver, handle: &str) -> CUdeviceptr {
    let reserved = bytes(handle).try_into().expect("64 bytes");
    let open = driver.symbols().cuIpcOpenMemHandle_v2.expect("CUDA 11");
    let mut at = 0;
    // SAFETY: a place for the address; the context is current.
    let code = unsafe { open(&mut at, CUipcMemHandle { reserved }, 1) };
    assert_eq!(code, CUresult::CUDA_SUCCESS, "cuIpcOpenMemHandle failed");
    at
}

fn raw_device<'a>(context: &Context, way: &str) -> Peer<'a> {
    let (own, handle) = device_memory(context);
    let (process, input, output, theirs) = start(&[way, "", &handle]);
    let theirs = open_memory(context.driver(), &theirs);
    let (file, sends, follows) = (memfd(), stream(context), stream(context));
    // What the host sees.
    let words = page(context, file.as_raw_fd());
    let prepare = move |first| {
        for value in first..first + BATCH {
            wait(&follows, theirs, value);
            copy(&follows, theirs, &words[0]);
        }
    };
    let signal = move |first| round_trips(&sends, own, &words[0], first);
    let (prepare, signal) = (Box::new(prepare), Box::new(signal));
    Peer { process, input, output, next: 1, prepare, signal }
}

/// The other process: answers signals, in batches that it is told.
pub fn echo(arguments: &[String]) -> ExitCode {
    let [way, first, second] = arguments else { return ExitCode::from(2) };
    let context = rig::first_context(crate::load());
    rig::make_current(context.driver().symbols(), context.as_raw());
    let answers = stream(&context);
    // Each answers one value.
    let mut answer: Box<dyn FnMut(u64)> = match way.as_str() {
        "C, host memory" => {
            let words = page(&context, first.parse().expect("a number"));
            println!("there");
            Box::new(move |value| {
                wait(&answers, address(&words[0]), value);
                write(&answers, address(&words[8]), value);
            })
        }
        "C, device memory" => {
            let theirs = open_memory(context.driver(), second);
            let (own, handle) = device_memory(&context);
            println!("{handle}");
            Box::new(move |value| {
                wait(&answers, theirs, value);
                write(&answers, own, value);
            })
        }
        // As a timeline in memory does it, so that a killed maker's waits can be ended by the host.
        "C, device memory, mirrored" => {
            let theirs = open_memory(context.driver(), second);
            let (own, handle) = device_memory(&context);
            let (file, follows) = (memfd(), stream(&context));
            let words = page(&context, file.as_raw_fd());
            println!("{handle}");
            Box::new(move |value| {
                wait(&follows, theirs, value);
                copy(&follows, theirs, &words[0]);
                wait(&answers, address(&words[0]), value);
                write(&answers, own, value);
                write(&answers, address(&words[8]), value);
            })
        }
        "handle" => {
            let base: u64 = first.parse().expect("a value");
            let handle = TimelineDescriptor::from_bytes(&bytes(second)).expect("a handle");
            // SAFETY: the other process keeps it until it closes the input.
            let theirs =
                unsafe { ImportedTimeline::open_memory(&context, &handle) }.expect("it opens");
            let memory = TimelineMemory::new(&context).expect("memory");
            let own = Timeline::in_memory(answers, &memory).expect("a timeline");
            let handle = hex(&own.descriptor().expect("it is in memory").to_bytes());
            println!("{} {handle}", own.submitted().expect("a value"));
            Box::new(move |value| {
                let _memory = &memory;
                let point = theirs.point(base + value).expect("a point");
                own.stream().wait_point(point).expect("a wait");
                own.signal().expect("a signal");
            })
        }
        _ => {
            let number: RawFd = first.parse().expect("a number");
            let given = if way == "file" {
                // SAFETY: the parent has left it to this process.
                unsafe { OwnedFd::from_raw_fd(number) }
            } else {
                let path = format!("/proc/self/fd/{number}");
                OwnedFd::from(File::open(path).expect("the parent has left it"))
            };
            let descriptor = TimelineDescriptor::from_bytes(&bytes(second)).expect("a descriptor");
            let theirs = ImportedTimeline::open(&context, given, &descriptor).expect("an import");
            let file = TimelineFile::writable(&context).expect("a file");
            let own = Timeline::shared(answers, &file).expect("a timeline");
            let descriptor = hex(&own.descriptor().expect("it is shared").to_bytes());
            let number = file.as_fd().as_raw_fd();
            println!("/proc/{}/fd/{number} {descriptor}", std::process::id());
            Box::new(move |value| {
                let _file = &file;
                let point = theirs.point(value).expect("a point");
                own.stream().wait_point(point).expect("a wait");
                own.signal().expect("a signal");
            })
        }
    };
    let mut input = BufReader::new(std::io::stdin());
    loop {
        let first_line = line(&mut input);
        let Ok(first) = first_line.parse::<u64>() else { break };
        (first..first + BATCH).for_each(&mut answer);
        println!("ready");
    }
    // Whatever it still waits for goes with the process.
    ExitCode::SUCCESS
}
