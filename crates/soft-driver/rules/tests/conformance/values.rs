//! Stream memory operations: waits for values, writes of values, the memory of these values, and
//! other processes that share it.
//!
//! A rule that could hang a real driver runs alone in its process, which has a time limit.

use std::ffi::c_void;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use cuda_events::sys::more::*;
use cuda_test_harness::child::{Child, from_hex, is_emulated, read_line, role, say, to_hex};
use cuda_test_harness::memory::{self, Mapping, PAGE, Shared};
use cuda_test_harness::{TestDriver, soft_settings};

use crate::capture::{RELAXED, capturing, end};
use crate::green;
use crate::raw::{
    INTERPROCESS, LONG, NO_TIMING, NON_BLOCKING, Raw, Rig, SHORT, beside_a_wait, code_text, must,
};
use crate::rules;
use crate::rules::do_not_hang;

const PEER: &str = "values-peer";
const PORTABLE: u32 = 1;
const MAPPED: u32 = 2;
const READ_ONLY: u32 = 8;

unsafe extern "C" {
    fn unshare(flags: i32) -> i32;
    fn mount(
        source: *const std::ffi::c_char,
        target: *const std::ffi::c_char,
        kind: *const std::ffi::c_char,
        flags: u64,
        data: *const c_void,
    ) -> i32;
}

fn wait(raw: &Raw, stream: CUstream, address: CUdeviceptr, value: u64) -> CUresult {
    raw.cuStreamWaitValue64_v2(stream, address, value, CU_STREAM_WAIT_VALUE_GEQ)
}

fn write(raw: &Raw, stream: CUstream, address: CUdeviceptr, value: u64) -> CUresult {
    raw.cuStreamWriteValue64_v2(stream, address, value, 0)
}

/// Pinned host memory that the device can access too, as words.
struct Words<'a> {
    raw: &'a Raw,
    host: *mut c_void,
}

impl<'a> Words<'a> {
    const BYTES: usize = 1 << 20;

    fn new(raw: &'a Raw) -> Self {
        let mut host = null_mut();
        must!(raw.cuMemHostAlloc(&mut host, Self::BYTES, PORTABLE | MAPPED));
        // SAFETY: the memory has so many bytes, and nothing uses them yet.
        unsafe { host.cast::<u8>().write_bytes(0, Self::BYTES) };
        Self { raw, host }
    }

    fn word(&self, index: usize) -> &AtomicU64 {
        word(self.host, index)
    }

    /// The device's address is the host's address (measured).
    fn at(&self, index: usize) -> CUdeviceptr {
        (self.host.expose_provenance() + 8 * index) as CUdeviceptr
    }
}

impl Drop for Words<'_> {
    fn drop(&mut self) {
        let _ = self.raw.cuMemFreeHost(self.host);
    }
}

/// A word of memory that the caller has.
fn word<'a>(memory: *mut c_void, index: usize) -> &'a AtomicU64 {
    // SAFETY: the callers pass memory that exists while they use it, and use all of it as atomics.
    unsafe { AtomicU64::from_ptr(memory.cast::<u64>().add(index)) }
}

fn device_memory(raw: &Raw, bytes: usize) -> CUdeviceptr {
    let mut address = 0;
    must!(raw.cuMemAlloc_v2(&mut address, bytes));
    address
}

/// Whether the work of all these streams completes within the limit. The limit is long if that is
/// expected, and short otherwise.
fn come_to_an_end(raw: &Raw, streams: &[CUstream], limit: Duration) -> bool {
    let begun = Instant::now();
    loop {
        if streams.iter().all(|stream| raw.cuStreamQuery(*stream) == CUresult::CUDA_SUCCESS) {
            return true;
        }
        if begun.elapsed() > limit {
            return false;
        }
        std::thread::sleep(BETWEEN);
    }
}

/// Between two looks, so that a wait for what does not come takes no processor.
const BETWEEN: Duration = Duration::from_micros(500);
/// Without a call that returns, after which the next one is taken to block: on a busy machine a
/// thread may not run for long.
const QUIET: Duration = Duration::from_secs(3);

fn streams(raw: &Raw, count: usize) -> Vec<CUstream> {
    (0..count).map(|_| raw.stream(NON_BLOCKING)).collect()
}

/// Streams of a new context wait for a value, and one more stream writes it. Returns whether the
/// write released them. Otherwise the host releases them.
fn released(rig: &Rig, count: usize, limit: Duration) -> (bool, CUresult) {
    rig.within(rig.new_context(), || {
        let words = Words::new(rig);
        let mut streams = streams(rig, count + 1);
        let last = streams[count];
        for stream in &streams[..count] {
            must("cuStreamWaitValue64", wait(rig, *stream, words.at(0), 1));
        }
        let event = rig.event(NO_TIMING);
        rig.record(event, last);
        let idle = rig.settled(event);
        must("cuStreamWriteValue64", write(rig, last, words.at(0), 1));
        let released = come_to_an_end(rig, &streams, limit);
        words.word(0).store(1, Ordering::SeqCst);
        assert!(come_to_an_end(rig, &streams, LONG), "the host's store releases them");
        streams.drain(..).for_each(|stream| must!(rig.cuStreamDestroy_v2(stream)));
        (released, idle)
    })
}

/// The numbers of waiting streams that a later write releases. If the streams should be released,
/// the limit is long.
fn table(rig: &Rig, channels: usize, counts: &[usize]) -> String {
    let (mut these, mut others) = (Vec::new(), Vec::new());
    for count in counts {
        let limit = if *count < channels { LONG } else { SHORT };
        let list = if released(rig, *count, limit).0 { &mut these } else { &mut others };
        list.push(count.to_string());
    }
    let listed =
        |list: &[String]| if list.is_empty() { "none".to_owned() } else { list.join(", ") };
    format!("released {}; held back {}", listed(&these), listed(&others))
}

/// Each stream waits for the next one's value and then writes its own; all are submitted in this
/// order.
fn backwards(rig: &Rig, count: usize, limit: Duration) -> bool {
    rig.within(rig.new_context(), || {
        let (words, streams) = (Words::new(rig), streams(rig, count));
        for (at, stream) in streams.iter().enumerate() {
            if at + 1 < count {
                must("cuStreamWaitValue64", wait(rig, *stream, words.at(8 * (at + 1)), 1));
            }
            must("cuStreamWriteValue64", write(rig, *stream, words.at(8 * at), 1));
        }
        let ran = come_to_an_end(rig, &streams, limit);
        (0..count).for_each(|at| words.word(8 * at).store(1, Ordering::SeqCst));
        assert!(come_to_an_end(rig, &streams, LONG), "the host's stores release them");
        ran
    })
}

/// A page of a file. It stays mapped until the process ends, because the driver may use it.
#[derive(Clone, Copy)]
struct Page(Mapping);

impl Page {
    fn of(file: &Shared) -> Self {
        Self(Mapping::new(file, PAGE).expect("the file is mapped"))
    }

    fn for_reading(file: &Shared) -> Self {
        Self(Mapping::for_reading(file, PAGE).expect("the file is mapped"))
    }

    fn register(self, rig: &Rig, flags: u32) -> CUresult {
        rig.cuMemHostRegister_v2(self.0.as_ptr(), PAGE, flags)
    }

    fn unregister(self, rig: &Rig) -> CUresult {
        rig.cuMemHostUnregister(self.0.as_ptr())
    }

    fn word(&self) -> &AtomicU64 {
        &self.0.words()[0]
    }

    fn at(self) -> CUdeviceptr {
        self.0.address()
    }

    fn unmap(self) {
        // SAFETY: the caller has unregistered the page, and no longer uses it.
        unsafe { self.0.unmap() };
    }
}

/// The last release of the primary context, while a stream of another context waits for the first
/// word.
fn released_beside_a_wait(rig: &Rig, other: CUcontext, words: &Words) -> String {
    let (raw, device) = (**rig, rig.device);
    let call = move || raw.cuDevicePrimaryCtxRelease_v2(device);
    rig.within(other, || {
        beside_a_wait(rig, SHORT, call, || words.word(0).store(1, Ordering::SeqCst))
    })
}

/// Ends a capture; an executable graph of it.
fn instantiated(rig: &Rig, stream: CUstream) -> CUgraphExec {
    let (code, graph) = end(rig, stream);
    must("cuStreamEndCapture", code);
    let mut exec = null_mut();
    must("cuGraphInstantiate", rig.cuGraphInstantiateWithFlags(&mut exec, graph, 0));
    must!(rig.cuGraphDestroy(graph));
    exec
}

fn mem_handle(rig: &Rig, address: CUdeviceptr) -> (CUresult, [u8; 64]) {
    let mut handle = CUipcMemHandle { reserved: [0; 64] };
    (rig.cuIpcGetMemHandle(&mut handle, address), handle.reserved)
}

fn open_mem_handle(rig: &Rig, handle: [u8; 64], flags: u32) -> (CUresult, CUdeviceptr) {
    let mut address = 0;
    let handle = CUipcMemHandle { reserved: handle };
    (rig.cuIpcOpenMemHandle_v2(&mut address, handle, flags), address)
}

/// Not a rule: the other process. Each line that it reads is one step, and it prints a line with
/// the result.
#[test]
#[ignore = "the other process, which the tests start: cargo test -p cuda-driver-rules"]
fn peer() {
    assert_eq!(role().as_deref(), Some(PEER), "this is no test of its own");
    do_not_hang();
    let rig = Rig::new("");
    let stream = rig.stream(NON_BLOCKING);
    let (mut address, mut page) = (0, None::<Page>);
    loop {
        let line = read_line();
        let mut words = line.split(' ');
        let (step, given) = (words.next().expect("a step"), words.next().unwrap_or_default());
        let value = || given.parse().expect("a number");
        match step {
            "event" => say(&code_text(rig.open(from_hex(given).try_into().expect("64 bytes")).0)),
            "memory" => {
                let (code, opened) =
                    open_mem_handle(&rig, from_hex(given).try_into().expect("64 bytes"), 1);
                address = opened;
                say(&code_text(code));
            }
            "export" => {
                let device = device_memory(&rig, 4096);
                must!(rig.cuMemsetD32Async(device, 0, 1024, stream));
                must("cuStreamWriteValue64", write(&rig, stream, device, 7));
                rig.synchronize(stream);
                let (code, handle) = mem_handle(&rig, device);
                must("cuIpcGetMemHandle", code);
                say(&to_hex(&handle));
            }
            "file" | "reading-file" => {
                let file = memory::at(given);
                let mapped =
                    if step == "file" { Page::of(&file) } else { Page::for_reading(&file) };
                let flags = if step == "file" { 0 } else { READ_ONLY };
                address = mapped.at();
                page = Some(mapped);
                say(&code_text(mapped.register(&rig, PORTABLE | MAPPED | flags)));
            }
            "wait" => say(&code_text(wait(&rig, stream, address, value()))),
            "write" => say(&code_text(write(&rig, stream, address, value()))),
            "store" => {
                page.expect("a file").word().store(value(), Ordering::SeqCst);
                say("stored");
            }
            "query" => say(&code_text(rig.cuStreamQuery(stream))),
            "synchronize" => say(&code_text(rig.cuStreamSynchronize(stream))),
            "close" => say(&code_text(rig.cuIpcCloseMemHandle(address))),
            "end" => break,
            other => panic!("{other:?} is no step"),
        }
    }
}

/// The other process, with which memory is shared.
struct Peer(Child);

impl Peer {
    fn start() -> Self {
        Self::start_with(|_| {})
    }

    fn start_with(configure: impl FnOnce(&mut Command)) -> Self {
        Self(Child::start_with("peer", PEER, |command| {
            command.env("CUDA_SOFT_DRIVER", soft_settings(""));
            configure(command);
        }))
    }

    #[track_caller]
    fn step(&mut self, step: &str) -> String {
        self.0.send(step);
        self.0.receive()
    }

    #[track_caller]
    fn end(mut self) {
        self.0.send("end");
        self.0.finish();
    }

    fn kill(mut self) {
        self.0.kill();
    }
}

/// Gives a new process its own `/dev/shm`.
fn isolate() -> std::io::Result<()> {
    let (new_mounts, recursive, private) = (0x0002_0000, 1 << 14, 1 << 18);
    let (none, nothing) = (std::ptr::null(), std::ptr::null());
    // SAFETY: the arguments are C strings or NULL, and only this process's mounts change.
    let done = unsafe {
        unshare(new_mounts) == 0
            && mount(none, c"/".as_ptr(), none, recursive | private, nothing) == 0
            && mount(c"tmpfs".as_ptr(), c"/dev/shm".as_ptr(), c"tmpfs".as_ptr(), 0, nothing) == 0
    };
    if done { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

fn isolated(command: &mut Command) {
    // SAFETY: it makes system calls only.
    unsafe { command.pre_exec(isolate) };
}

fn looks_at_pages() -> Result<(), String> {
    let blind = is_emulated() && TestDriver::chosen() != TestDriver::Native;
    if blind {
        Err("an emulator does not tell whether a page can be written".to_owned())
    } else {
        Ok(())
    }
}

fn can_isolate() -> Result<(), String> {
    let mut command = Command::new("true");
    isolated(&mut command);
    command
        .status()
        .map(|_| ())
        .map_err(|error| format!("no process can have mounts of its own here: {error}"))
}

rules! {
    /// If a stream copies to host memory and then writes a value, the copied bytes are in host
    /// memory when the host sees the value.
    [since(11, 7)]
    fn earlier_copies_are_seen(rig, saw) = "all bytes, 50 times" {
        let (words, stream, device) =
            (Words::new(rig), rig.stream(NON_BLOCKING), device_memory(rig, Words::BYTES - 64));
        let mut whole = 0;
        for round in 1..=50_u64 {
            let (pattern, count) = (round as u32 * 0x0101_0101, (Words::BYTES - 64) / 4);
            must!(rig.cuMemsetD32Async(device, pattern, count, stream));
            let to = std::ptr::with_exposed_provenance_mut(words.at(8) as usize);
            must!(rig.cuMemcpyDtoHAsync_v2(to, device, Words::BYTES - 64, stream));
            must("cuStreamWriteValue64", write(rig, stream, words.at(0), round));
            while words.word(0).load(Ordering::Acquire) < round {
                std::hint::spin_loop();
            }
            let wanted = u64::from(pattern) << 32 | u64::from(pattern);
            whole += u32::from(
                (8..Words::BYTES / 8).all(|at| words.word(at).load(Ordering::Relaxed) == wanted),
            );
        }
        saw.text(format_args!("all bytes, {whole} times"));
        must!(rig.cuMemFree_v2(device));
    }

    /// A copy after a wait for a value copies the bytes that were in memory when the value was
    /// stored.
    [since(11, 7)]
    fn later_copies_see_what_was_stored(rig, saw) = "the bytes of the round, 50 times" {
        let (words, stream, device) =
            (Words::new(rig), rig.stream(NON_BLOCKING), device_memory(rig, 4096));
        let mut right = 0;
        for round in 1..=50_u64 {
            must("cuStreamWaitValue64", wait(rig, stream, words.at(0), round));
            let address = |at: u64| {
                std::ptr::with_exposed_provenance_mut::<c_void>(words.at(at as usize) as usize)
            };
            must!(rig.cuMemcpyHtoDAsync_v2(device, address(512), 4096, stream));
            must!(rig.cuMemcpyDtoHAsync_v2(address(1024), device, 4096, stream));
            (512..1024).for_each(|at| words.word(at).store(round, Ordering::Relaxed));
            words.word(0).store(round, Ordering::Release);
            rig.synchronize(stream);
            right +=
                u32::from((1024..1536).all(|at| words.word(at).load(Ordering::Relaxed) == round));
        }
        saw.text(format_args!("the bytes of the round, {right} times"));
        must!(rig.cuMemFree_v2(device));
    }

    /// The host sees the values that a stream writes in the order of the writes.
    [since(11, 7)]
    fn values_come_in_order(rig, saw) = "never back; the last 1000" {
        let (words, stream) = (Words::new(rig), rig.stream(NON_BLOCKING));
        for value in 1..=1000 {
            must("cuStreamWriteValue64", write(rig, stream, words.at(0), value));
        }
        let (mut last, mut back) = (0, 0);
        while last < 1000 {
            let now = words.word(0).load(Ordering::Acquire);
            back += u32::from(now < last);
            last = now;
        }
        saw.holds("never back", back == 0);
        saw.text(format_args!("the last {last}"));
    }

    /// Streams can wait for a value in device memory and write it, as in host memory.
    [since(11, 7)]
    fn a_value_in_device_memory(rig, saw) = "waiting CUDA_ERROR_NOT_READY (600); written success" {
        let (device, [waiting, writing]) =
            (device_memory(rig, 64), [(); 2].map(|()| rig.stream(NON_BLOCKING)));
        must!(rig.cuMemsetD32Async(device, 0, 16, writing));
        rig.synchronize(writing);
        must("cuStreamWaitValue64", wait(rig, waiting, device, 5));
        saw.code("waiting", rig.cuStreamQuery(waiting));
        must("cuStreamWriteValue64", write(rig, writing, device, 5));
        saw.code("written", rig.cuStreamSynchronize(waiting));
        must!(rig.cuMemFree_v2(device));
    }

    /// A wait or a write of a value returns `CUDA_ERROR_INVALID_VALUE` for memory that was not
    /// allocated by the driver or registered with it, and for a word that is not aligned.
    [since(11, 7)]
    fn words_are_checked(rig, saw) =
        "CUDA_ERROR_INVALID_VALUE (1) from wait for ordinary memory, write to ordinary memory, \
         wait not aligned, write not aligned, wait for NULL"
    {
        let (words, stream) = (Words::new(rig), rig.stream(NON_BLOCKING));
        let ordinary = Box::new(AtomicU64::new(0));
        let ordinary = std::ptr::from_ref(&*ordinary).expose_provenance() as CUdeviceptr;
        saw.codes(&[
            ("wait for ordinary memory", wait(rig, stream, ordinary, 0)),
            ("write to ordinary memory", write(rig, stream, ordinary, 0)),
            ("wait not aligned", wait(rig, stream, words.at(0) + 4, 0)),
            ("write not aligned", write(rig, stream, words.at(0) + 4, 0)),
            ("wait for NULL", wait(rig, stream, 0, 0)),
        ]);
    }

    /// While streams wait for values, other calls return at once, even in the same context.
    [since(11, 7)]
    fn calls_beside_waiting_streams(rig, saw) =
        "success from cuMemAlloc, cuStreamCreate, cuEventCreate, cuEventRecord in an idle stream, \
         cuEventQuery of it; waiting CUDA_ERROR_NOT_READY (600)"
    {
        let (words, waiting, idle) = (Words::new(rig), streams(rig, 4), rig.stream(NON_BLOCKING));
        for stream in &waiting {
            must("cuStreamWaitValue64", wait(rig, *stream, words.at(0), 1));
        }
        let (mut address, mut stream, mut event) = (0, null_mut(), null_mut());
        saw.codes(&[
            ("cuMemAlloc", rig.cuMemAlloc_v2(&mut address, 4096)),
            ("cuStreamCreate", rig.cuStreamCreate(&mut stream, NON_BLOCKING)),
            ("cuEventCreate", rig.cuEventCreate(&mut event, NO_TIMING)),
            ("cuEventRecord in an idle stream", rig.cuEventRecord(event, idle)),
            ("cuEventQuery of it", rig.settled(event)),
        ]);
        saw.code("waiting", rig.cuStreamQuery(waiting[0]));
        words.word(0).store(1, Ordering::SeqCst);
        assert!(come_to_an_end(rig, &waiting, LONG));
        must!(rig.cuMemFree_v2(address));
    }

    /// Streams share eight channels. If eight streams wait for a value, a write of the value that
    /// is submitted after these waits never runs. A store by the host releases all of them.
    [since(11, 7), settings("deadlock=hang"), environment("CUDA_DEVICE_MAX_CONNECTIONS", "")]
    fn waiting_streams_hold_back_the_write(rig, saw) = "released 1, 2, 3, 4, 5, 6, 7; held back 8, \
        9, 12, 31" {
        saw.text(table(rig, 8, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 31]));
    }

    /// `CUDA_DEVICE_MAX_CONNECTIONS` sets the number of channels.
    [since(11, 7), settings("deadlock=hang"), environment("CUDA_DEVICE_MAX_CONNECTIONS", "32")]
    fn thirty_two_channels(rig, saw) = "released 1, 8, 31; held back 32, 40" {
        saw.text(table(rig, 32, &[1, 8, 31, 32, 40]));
    }

    /// With one channel, each wait holds back every write that is submitted after it.
    [since(11, 7), settings("deadlock=hang"), environment("CUDA_DEVICE_MAX_CONNECTIONS", "1")]
    fn one_channel(rig, saw) = "released none; held back 1, 2" {
        saw.text(table(rig, 1, &[1, 2]));
    }

    /// A record in a stream without work is done at once, even if the stream's channel is held
    /// back.
    [since(11, 7), settings("deadlock=hang"), environment("CUDA_DEVICE_MAX_CONNECTIONS", "")]
    fn a_record_in_a_channel_that_is_held_back(rig, saw) = "8 waiting: success" {
        let (_, idle) = released(rig, 8, SHORT);
        saw.code("8 waiting:", idle);
    }

    /// In a chain of streams that is submitted backwards, each stream waits for the next stream's
    /// value before it writes its own. The chain completes if each stream has its own channel.
    [since(11, 7), settings("deadlock=hang"), environment("CUDA_DEVICE_MAX_CONNECTIONS", "")]
    fn a_chain_that_is_submitted_backwards(rig, saw) = "4 runs; 16 NOT runs" {
        for (count, limit) in [(4, LONG), (16, SHORT)] {
            let ran = backwards(rig, count, limit);
            saw.text(format_args!("{count}{} runs", if ran { "" } else { " NOT" }));
        }
    }

    /// The assignment of streams to channels is not fixed. If as many streams wait as there are
    /// channels, they hold back all other streams. If fewer streams wait, the result depends on
    /// other work.
    [since(11, 7), settings("deadlock=hang"), environment("CUDA_DEVICE_MAX_CONNECTIONS", "")]
    fn which_streams_share_a_channel(rig, saw) =
        "of 24 are held back: 24 beside 8 that wait"
    {
        let held = [8].map(|waiting| {
            rig.within(rig.new_context(), || {
                let (words, streams) = (Words::new(rig), streams(rig, waiting + 24));
                for (at, stream) in streams.iter().enumerate().take(waiting) {
                    must("cuStreamWaitValue64", wait(rig, *stream, words.at(8 * at), 1));
                }
                for (at, stream) in streams.iter().enumerate().skip(waiting) {
                    must("cuStreamWriteValue64", write(rig, *stream, words.at(8 * at), 1));
                }
                let is_held = |at: &usize| words.word(8 * at).load(Ordering::Acquire) == 0;
                let held = || (waiting..waiting + 24).filter(is_held).count();
                let (begun, limit) = (Instant::now(), if waiting < 8 { LONG } else { SHORT });
                while held() > 0 && begun.elapsed() < limit {
                    std::thread::sleep(BETWEEN);
                }
                let held = held();
                for at in 0..waiting {
                    words.word(8 * at).store(1, Ordering::SeqCst);
                }
                assert!(come_to_an_end(rig, &streams, LONG));
                held
            })
        });
        let [eight] = held;
        saw.text(format_args!("of 24 are held back: {eight} beside 8 that wait"));
    }

    /// The device can register host memory as read-only.
    fn the_attribute_for_reading_alone(rig, saw) = "success, 1" {
        let mut value = 77;
        saw.text(format_args!("{}, {value}", {
            let code = rig.cuDeviceGetAttribute(&mut value, CUdevice_attribute(113), rig.device);
            code_text(code)
        }));
    }

    /// One file can be mapped and registered twice, and also as read-only. A value that is written
    /// through one mapping is visible through the others. Memory that is not writable must be
    /// registered as read-only.
    [since(11, 7), alone, needs(looks_at_pages)]
    fn one_file_registered_more_than_once(rig, saw) =
        "success from first, second, for reading; CUDA_ERROR_INVALID_VALUE (1) from not writable; \
         CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED (712) from first again; released; success from \
         unregister first, unregister second, unregister the one for reading"
    {
        let (file, flags) = (memory::plain(PAGE), PORTABLE | MAPPED);
        let (first, second, reading, other) =
            (Page::of(&file), Page::of(&file), Page::for_reading(&file), Page::for_reading(&file));
        saw.codes(&[
            ("first", first.register(rig, flags)),
            ("second", second.register(rig, flags)),
            ("for reading", reading.register(rig, flags | READ_ONLY)),
            ("not writable", other.register(rig, flags)),
            ("first again", first.register(rig, flags)),
        ]);
        let streams = streams(rig, 3);
        must("cuStreamWaitValue64", wait(rig, streams[0], second.at(), 3));
        must("cuStreamWaitValue64", wait(rig, streams[1], reading.at(), 3));
        must("cuStreamWriteValue64", write(rig, streams[2], first.at(), 3));
        saw.holds("released", come_to_an_end(rig, &streams, LONG));
        saw.codes(&[
            ("unregister first", first.unregister(rig)),
            ("unregister second", second.unregister(rig)),
            ("unregister the one for reading", reading.unregister(rig)),
        ]);
        [first, second, reading, other].into_iter().for_each(Page::unmap);
    }

    /// Memory that is registered in a green context is registered in the primary context, and stays
    /// so after the end of the green one.
    [since(12, 4)]
    fn registered_in_a_green_context(rig, saw) =
        "registered success; after the end CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED (712); \
         unregistered success"
    {
        let page = Page::of(&memory::plain(PAGE));
        let green = green::one(rig);
        saw.code("registered", rig.within(green.context, || page.register(rig, PORTABLE | MAPPED)));
        green::destroy(rig, green);
        saw.code("after the end", page.register(rig, PORTABLE | MAPPED));
        saw.code("unregistered", page.unregister(rig));
    }

    /// If a stream waits for a value in registered memory, unregistering the memory waits for that
    /// stream.
    [since(11, 7), alone]
    fn unregistering_while_a_stream_waits(rig, saw) = "waits, then success" {
        let (page, stream) = (Page::of(&memory::plain(PAGE)), rig.stream(NON_BLOCKING));
        must("cuMemHostRegister", page.register(rig, PORTABLE | MAPPED));
        must("cuStreamWaitValue64", wait(rig, stream, page.at(), 1));
        let (raw, memory) = (**rig, crate::raw::Sent::new(page.0.as_ptr()));
        let call = move || raw.cuMemHostUnregister(memory.get());
        saw.text(beside_a_wait(rig, SHORT, call, || page.word().store(1, Ordering::SeqCst)));
        page.word().store(1, Ordering::SeqCst);
        std::process::exit(0);
    }

    /// Unregistering memory waits for the work of the device, also for work that does not use the
    /// memory.
    fn unregistering_waits_for_the_device(rig, saw) = "waits, then success" {
        let page = Page::of(&memory::plain(PAGE));
        must("cuMemHostRegister", page.register(rig, PORTABLE | MAPPED));
        let (raw, memory) = (**rig, crate::raw::Sent::new(page.0.as_ptr()));
        let call = move || raw.cuMemHostUnregister(memory.get());
        let latch = rig.hold(rig.stream(NON_BLOCKING));
        saw.text(beside_a_wait(rig, SHORT, call, || latch.release()));
    }

    /// Unregistering memory does not wait for the work of another device.
    [two_devices]
    fn unregistering_beside_another_device(rig, saw) = "returns at once, success" {
        let (mut second, mut context) = (0, null_mut());
        must!(rig.cuDeviceGet(&mut second, 1));
        must!(rig.cuDevicePrimaryCtxRetain(&mut context, second));
        let page = Page::of(&memory::plain(PAGE));
        must("cuMemHostRegister", page.register(rig, PORTABLE | MAPPED));
        let (raw, memory) = (**rig, crate::raw::Sent::new(page.0.as_ptr()));
        let call = move || raw.cuMemHostUnregister(memory.get());
        let latch = rig.within(context, || rig.hold(rig.stream(NON_BLOCKING)));
        saw.text(beside_a_wait(rig, LONG, call, || latch.release()));
    }

    /// If a stream waits for a value in pinned memory, freeing the memory waits for that stream.
    // The order checker would report the free as an access without an order. Here the call waits,
    // but a program must not rely on that.
    [since(11, 7), settings("order=off"), alone]
    fn freeing_while_a_stream_waits(rig, saw) = "waits, then success" {
        let (words, stream) =
            (std::mem::ManuallyDrop::new(Words::new(rig)), rig.stream(NON_BLOCKING));
        must("cuStreamWaitValue64", wait(rig, stream, words.at(0), 1));
        let (raw, memory) = (**rig, crate::raw::Sent::new(words.host));
        let call = move || raw.cuMemFreeHost(memory.get());
        saw.text(beside_a_wait(rig, SHORT, call, || words.word(0).store(1, Ordering::SeqCst)));
        std::process::exit(0);
    }

    /// If a graph of a primary context was launched in a stream of another context, the last
    /// release of the primary context waits for that launch, even if the executable graph was
    /// destroyed.
    [since(12, 0), alone]
    fn a_launch_elsewhere(rig, saw) = "waits, then success" {
        let other = rig.new_context();
        let (words, launched) = rig.within(other, || {
            (std::mem::ManuallyDrop::new(Words::new(rig)), rig.stream(NON_BLOCKING))
        });
        let stream = capturing(rig, RELAXED);
        must("cuStreamWaitValue64", wait(rig, stream, words.at(0), 1));
        let exec = instantiated(rig, stream);
        must!(rig.cuGraphLaunch(exec, launched));
        must!(rig.cuGraphExecDestroy(exec));
        saw.text(released_beside_a_wait(rig, other, &words));
        std::process::exit(0);
    }

    /// If a stream of a primary context has joined a capture of another context, the last release
    /// of the primary context waits for a launch of that graph in a stream of the other context.
    [since(12, 0), alone]
    fn captured_elsewhere(rig, saw) = "waits, then success" {
        let (other, joins) = (rig.new_context(), rig.stream(NON_BLOCKING));
        let (words, launched, stream) = rig.within(other, || {
            let words = std::mem::ManuallyDrop::new(Words::new(rig));
            (words, rig.stream(NON_BLOCKING), capturing(rig, RELAXED))
        });
        let fork = rig.within(other, || rig.recorded(stream));
        must!(rig.cuStreamWaitEvent(joins, fork, 0));
        must("cuStreamWaitValue64", wait(rig, joins, words.at(0), 1));
        let join = rig.recorded(joins);
        rig.within(other, || {
            must!(rig.cuStreamWaitEvent(stream, join, 0));
            let exec = instantiated(rig, stream);
            must!(rig.cuGraphLaunch(exec, launched));
            must!(rig.cuGraphExecDestroy(exec));
        });
        saw.text(released_beside_a_wait(rig, other, &words));
        std::process::exit(0);
    }

    /// A stream holds 1021 waits for values that are not over. The call for the next one blocks
    /// until one is over. Other calls return meanwhile, even in the same context.
    [since(11, 7), alone]
    fn waits_that_fill_a_stream(rig, saw) =
        "1021, then one blocks; cuEventQuery returns; after the store 1100"
    {
        const CALLS: usize = 1100;
        let (words, stream) =
            (std::mem::ManuallyDrop::new(Words::new(rig)), rig.stream(NON_BLOCKING));
        let (event, other) = (rig.event(NO_TIMING), rig.stream(NON_BLOCKING));
        rig.record(event, other);
        let raw = **rig;
        let sent = (words.at(0), crate::raw::Sent::new(stream), crate::raw::Sent::new(event));
        let (address, stream, event) = sent;
        let (submitted, submits) = channel();
        std::thread::spawn(move || {
            for _ in 0..CALLS {
                let _ = submitted.send(wait(&raw, stream.get(), address, 1));
            }
        });
        let mut count = 0;
        while let Ok(code) = submits.recv_timeout(QUIET) {
            must("cuStreamWaitValue64", code);
            count += 1;
        }
        saw.text(format_args!("{count}, then one blocks"));
        let (asked, answers) = channel();
        std::thread::spawn(move || {
            let _ = asked.send(raw.cuEventQuery(event.get()));
        });
        let returns = answers.recv_timeout(LONG).is_ok();
        saw.text(format_args!("cuEventQuery {}", if returns { "returns" } else { "blocks" }));
        words.word(0).store(1, Ordering::SeqCst);
        while count < CALLS && submits.recv_timeout(LONG).is_ok() {
            count += 1;
        }
        saw.text(format_args!("after the store {count}"));
        std::process::exit(0);
    }

    /// Writes of values behind a wait take room in the stream, too.
    [since(11, 7), alone]
    fn writes_that_fill_a_stream(rig, saw) = "510 waits with a write each, then one blocks" {
        const CALLS: usize = 600;
        let (words, stream) =
            (std::mem::ManuallyDrop::new(Words::new(rig)), rig.stream(NON_BLOCKING));
        let (raw, stream) = (**rig, crate::raw::Sent::new(stream));
        let (awaited, written) = (words.at(0), words.at(1));
        let (submitted, submits) = channel();
        std::thread::spawn(move || {
            for _ in 0..CALLS {
                let awaited = wait(&raw, stream.get(), awaited, 1);
                let _ = submitted.send([awaited, write(&raw, stream.get(), written, 1)]);
            }
        });
        let mut count = 0;
        while let Ok(codes) = submits.recv_timeout(QUIET) {
            codes.into_iter().for_each(|code| must("a wait and a write", code));
            count += 1;
        }
        saw.text(format_args!("{count} waits with a write each, then one blocks"));
        std::process::exit(0);
    }

    /// Portable memory works for all devices: a stream of one device can wait for a value that a
    /// stream of another device writes.
    [since(11, 7), two_devices]
    fn between_two_devices(rig, saw) = "released, in pinned and in registered memory" {
        let (mut second, mut context) = (0, null_mut());
        must!(rig.cuDeviceGet(&mut second, 1));
        must!(rig.cuDevicePrimaryCtxRetain(&mut context, second));
        let (words, page) = (Words::new(rig), Page::of(&memory::plain(PAGE)));
        must("cuMemHostRegister", page.register(rig, PORTABLE | MAPPED));
        let (writing, theirs) =
            (rig.stream(NON_BLOCKING), rig.within(context, || rig.stream(NON_BLOCKING)));
        let mut released = true;
        for address in [words.at(0), page.at()] {
            must("cuStreamWaitValue64", wait(rig, theirs, address, 1));
            must("cuStreamWriteValue64", write(rig, writing, address, 1));
            released &= come_to_an_end(rig, &[theirs, writing], LONG);
        }
        saw.holds("released, in pinned and in registered memory", released);
        must("cuMemHostUnregister", page.unregister(rig));
        page.unmap();
        must!(rig.cuDevicePrimaryCtxRelease_v2(second));
    }

    /// In each capture mode, a captured wait for a value and a captured write become nodes of
    /// stream memory operations.
    [since(11, 7)]
    fn captured_values(rig, saw) = "each mode: 2 nodes of the types 12, 12; two launches write 5, \
        5" {
        type Mode = CUstreamCaptureMode;
        let modes = [
            Mode::CU_STREAM_CAPTURE_MODE_GLOBAL,
            Mode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
            Mode::CU_STREAM_CAPTURE_MODE_RELAXED,
        ];
        let answers = modes.map(|mode| {
            let (words, stream, mut graph) =
                (Words::new(rig), rig.stream(NON_BLOCKING), null_mut());
            must!(rig.cuStreamBeginCapture_v2(stream, mode));
            must("cuStreamWaitValue64", wait(rig, stream, words.at(0), 1));
            must("cuStreamWriteValue64", write(rig, stream, words.at(1), 5));
            must!(rig.cuStreamEndCapture(stream, &mut graph));
            let (mut nodes, mut count) = ([null_mut(); 8], 8);
            must!(rig.cuGraphGetNodes(graph, nodes.as_mut_ptr(), &mut count));
            let kind = |node: &CUgraphNode| {
                let mut kind = CUgraphNodeType(0);
                must!(rig.cuGraphNodeGetType(*node, &mut kind));
                kind.0.to_string()
            };
            let kinds: Vec<String> = nodes[..count].iter().map(kind).collect();
            let mut exec = null_mut();
            must("cuGraphInstantiate", rig.cuGraphInstantiateWithFlags(&mut exec, graph, 0));
            let written = [(); 2].map(|()| {
                words.word(0).store(1, Ordering::SeqCst);
                words.word(1).store(0, Ordering::SeqCst);
                must!(rig.cuGraphLaunch(exec, stream));
                rig.synchronize(stream);
                words.word(1).load(Ordering::SeqCst).to_string()
            });
            must!(rig.cuGraphExecDestroy(exec));
            must!(rig.cuGraphDestroy(graph));
            format!(
                "{count} nodes of the types {}; two launches write {}",
                kinds.join(", "),
                written.join(", ")
            )
        });
        let same = answers.iter().all(|answer| *answer == answers[0]);
        saw.text(if same { format!("each mode: {}", answers[0]) } else { answers.join(" | ") });
    }

    /// The parameters of a node of a stream memory operation can be read. In an executable graph,
    /// the value and the address can be set, but not the kind of operation.
    [since(11, 7)]
    fn parameters_of_a_captured_value(rig, saw) =
        "count 1, flags 0, a write of 5, the stream's context; set 6 success, launched 6; set 7 \
         success, launched 7; another kind CUDA_ERROR_INVALID_VALUE (1); two operations \
         CUDA_ERROR_INVALID_VALUE (1)"
    {
        let (words, stream, mut graph, mut exec) =
            (Words::new(rig), rig.stream(NON_BLOCKING), null_mut(), null_mut());
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        must!(rig.cuStreamBeginCapture_v2(stream, mode));
        must("cuStreamWriteValue64", write(rig, stream, words.at(0), 5));
        must!(rig.cuStreamEndCapture(stream, &mut graph));
        let (mut node, mut count) = (null_mut(), 1);
        let mut params =
            CUDA_BATCH_MEM_OP_NODE_PARAMS { count: 9, flags: 9, ..CUDA_BATCH_MEM_OP_NODE_PARAMS::default() };
        must!(rig.cuGraphGetNodes(graph, &mut node, &mut count));
        must!(rig.cuGraphBatchMemOpNodeGetParams(node, &mut params));
        // SAFETY: the operations are the node's while it lives.
        let mut operation = unsafe { *params.paramArray };
        // SAFETY: all that is read is plain numbers.
        let (kind, value) = unsafe { (operation.operation, operation.writeValue.u.value64) };
        let is_write = kind == CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WRITE_VALUE_64;
        saw.text(format_args!(
            "count {}, flags {}, {} of {value}, {} context",
            params.count,
            params.flags,
            if is_write { "a write" } else { "NOT a write" },
            if params.ctx == rig.context { "the stream's" } else { "another" },
        ));
        must("cuGraphInstantiate", rig.cuGraphInstantiateWithFlags(&mut exec, graph, 0));
        for value in [6, 7] {
            operation.writeValue.u.value64 = value;
            params.paramArray = &mut operation;
            let code = rig.cuGraphExecBatchMemOpNodeSetParams(exec, node, &params);
            must!(rig.cuGraphLaunch(exec, stream));
            rig.synchronize(stream);
            saw.text(format_args!(
                "set {value} {}, launched {}",
                code_text(code),
                words.word(0).load(Ordering::SeqCst)
            ));
        }
        let mut two = [operation; 2];
        params.paramArray = two.as_mut_ptr();
        two[0].writeValue.operation = CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WAIT_VALUE_64;
        params.paramArray = two.as_mut_ptr();
        saw.code("another kind", rig.cuGraphExecBatchMemOpNodeSetParams(exec, node, &params));
        two[0] = operation;
        (params.count, params.paramArray) = (2, two.as_mut_ptr());
        saw.code("two operations", rig.cuGraphExecBatchMemOpNodeSetParams(exec, node, &params));
        must!(rig.cuGraphExecDestroy(exec));
        must!(rig.cuGraphDestroy(graph));
    }

    /// A new value for a node of an executable graph is that of the next launch. A launch that is
    /// pending has its own.
    [since(11, 7)]
    fn next_value_of_a_node(rig, saw) = "the pending launch wrote 6, the next one 7" {
        let (words, stream, mut graph) = (Words::new(rig), rig.stream(NON_BLOCKING), null_mut());
        // A copy between two places of host memory would wait for the stream.
        let target = device_memory(rig, 64);
        let mut operation = CUstreamBatchMemOpParams { pad: [0; 6] };
        operation.writeValue = CUstreamMemOpWriteValueParams {
            operation: CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WRITE_VALUE_64,
            address: target,
            ..Default::default()
        };
        let params = CUDA_BATCH_MEM_OP_NODE_PARAMS {
            ctx: rig.context,
            count: 1,
            paramArray: &mut operation,
            flags: 0,
        };
        let (mut node, mut exec) = (null_mut(), null_mut());
        must!(rig.cuGraphCreate(&mut graph, 0));
        must!(rig.cuGraphAddBatchMemOpNode(&mut node, graph, null(), 0, &params));
        must("cuGraphInstantiate", rig.cuGraphInstantiateWithFlags(&mut exec, graph, 0));
        let latch = rig.hold(stream);
        for (at, value) in [(1, 6), (2, 7)] {
            operation.writeValue.u.value64 = value;
            let params = CUDA_BATCH_MEM_OP_NODE_PARAMS { paramArray: &mut operation, ..params };
            must!(rig.cuGraphExecBatchMemOpNodeSetParams(exec, node, &params));
            must!(rig.cuGraphLaunch(exec, stream));
            let place = words.word(at).as_ptr().cast();
            must!(rig.cuMemcpyDtoHAsync_v2(place, target, 8, stream));
        }
        latch.release();
        rig.synchronize(stream);
        let [pending, next] = [1, 2].map(|at| words.word(at).load(Ordering::SeqCst));
        saw.text(format_args!("the pending launch wrote {pending}, the next one {next}"));
        must!(rig.cuGraphExecDestroy(exec));
        must!(rig.cuGraphDestroy(graph));
        must!(rig.cuMemFree_v2(target));
    }

    /// A page of a file that two processes register can order the streams of both, without a handle
    /// from the driver.
    [since(11, 7), alone]
    fn a_file_between_processes(rig, saw) =
        "register success; waiting CUDA_ERROR_NOT_READY (600); written success; and back: \
         released; for reading alone: success, then success"
    {
        let (file, stream) = (memory::plain(PAGE), rig.stream(NON_BLOCKING));
        let page = Page::of(&file);
        must("cuMemHostRegister", page.register(rig, PORTABLE | MAPPED));
        let (mut peer, mut reader) = (Peer::start(), Peer::start());
        saw.text(format_args!("register {}", peer.step(&format!("file {}", memory::path(&file)))));
        peer.step("wait 1");
        saw.text(format_args!("waiting {}", peer.step("query")));
        must("cuStreamWriteValue64", write(rig, stream, page.at(), 1));
        saw.text(format_args!("written {}", peer.step("synchronize")));
        must("cuStreamWaitValue64", wait(rig, stream, page.at(), 2));
        peer.step("write 2");
        saw.holds("and back: released", come_to_an_end(rig, &[stream], LONG));
        let registered = reader.step(&format!("reading-file {}", memory::path(&file)));
        reader.step("wait 3");
        must("cuStreamWriteValue64", write(rig, stream, page.at(), 3));
        saw.text(format_args!(
            "for reading alone: {registered}, then {}",
            reader.step("synchronize")
        ));
        peer.end();
        reader.end();
    }

    /// If the process that should write a value is killed, the host of another process can write
    /// it, and the waiting stream continues.
    [since(11, 7), alone]
    fn a_killed_writer(rig, saw) = "waiting CUDA_ERROR_NOT_READY (600); released" {
        let (file, stream) = (memory::plain(PAGE), rig.stream(NON_BLOCKING));
        let page = Page::of(&file);
        must("cuMemHostRegister", page.register(rig, PORTABLE | MAPPED));
        let mut peer = Peer::start();
        peer.step(&format!("file {}", memory::path(&file)));
        must("cuStreamWaitValue64", wait(rig, stream, page.at(), 7));
        peer.kill();
        saw.code("waiting", rig.cuStreamQuery(stream));
        page.word().store(7, Ordering::SeqCst);
        saw.holds("released", come_to_an_end(rig, &[stream], LONG));
    }

    /// Another process can open device memory by its handle, once or more. The memory then orders
    /// the streams of both processes.
    [since(11, 7), alone]
    fn device_memory_between_processes(rig, saw) =
        "handle success; open success; again success; waiting CUDA_ERROR_NOT_READY (600); written \
         success; close success; in the same process CUDA_ERROR_INVALID_CONTEXT (201)"
    {
        let (device, stream) = (device_memory(rig, 4096), rig.stream(NON_BLOCKING));
        must!(rig.cuMemsetD32Async(device, 0, 1024, stream));
        rig.synchronize(stream);
        let (code, handle) = mem_handle(rig, device);
        saw.code("handle", code);
        let mut peer = Peer::start();
        saw.text(format_args!("open {}", peer.step(&format!("memory {}", to_hex(&handle)))));
        saw.text(format_args!("again {}", peer.step(&format!("memory {}", to_hex(&handle)))));
        peer.step("wait 1");
        saw.text(format_args!("waiting {}", peer.step("query")));
        must("cuStreamWriteValue64", write(rig, stream, device, 1));
        saw.text(format_args!("written {}", peer.step("synchronize")));
        saw.text(format_args!("close {}", peer.step("close")));
        peer.end();
        saw.code("in the same process", open_mem_handle(rig, handle, 1).0);
        must!(rig.cuMemFree_v2(device));
    }

    /// The device memory of a killed process stays valid in a process that has it open. A stream
    /// that waits for a value there continues when another stream writes the highest byte of the
    /// value.
    [since(11, 7), alone]
    fn device_memory_of_a_killed_process(rig, saw) =
        "open success; waiting CUDA_ERROR_NOT_READY (600); copied 7; one byte success; released; \
         copied 4611686018427387911; close success"
    {
        let mut peer = Peer::start();
        let handle = from_hex(&peer.step("export")).try_into().expect("64 bytes");
        let (code, address) = open_mem_handle(rig, handle, 1);
        saw.code("open", code);
        let (waiting, stream) = (rig.stream(NON_BLOCKING), rig.stream(NON_BLOCKING));
        must("cuStreamWaitValue64", wait(rig, waiting, address, 8));
        peer.kill();
        saw.code("waiting", rig.cuStreamQuery(waiting));
        let copied = || {
            let mut word = 0_u64;
            let to = (&raw mut word).cast();
            must!(rig.cuMemcpyDtoHAsync_v2(to, address, 8, stream));
            rig.synchronize(stream);
            word
        };
        saw.text(format_args!("copied {}", copied()));
        saw.code("one byte", rig.cuMemsetD8Async(address + 7, 0x40, 1, stream));
        let released = come_to_an_end(rig, &[waiting, stream], LONG);
        saw.holds("released", released);
        saw.text(format_args!("copied {}", copied()));
        saw.code("close", rig.cuIpcCloseMemHandle(address));
        if !released {
            // Only the end of the process ends the wait.
            std::process::exit(0);
        }
    }

    /// A process with its own `/dev/shm` cannot open interprocess events. It can open device
    /// memory, and a file that it gets from another process.
    [since(11, 7), alone, needs(can_isolate)]
    fn a_dev_shm_of_its_own(rig, saw) =
        "event CUDA_ERROR_MAP_FAILED (205); memory success, then success; file success, then \
            success"
    {
        let (device, stream, file) =
            (device_memory(rig, 4096), rig.stream(NON_BLOCKING), memory::plain(PAGE));
        let page = Page::of(&file);
        must("cuMemHostRegister", page.register(rig, PORTABLE | MAPPED));
        must!(rig.cuMemsetD32Async(device, 0, 1024, stream));
        rig.synchronize(stream);
        let mut peer = Peer::start_with(isolated);
        let event = rig.descriptor(rig.event(INTERPROCESS));
        saw.text(format_args!("event {}", peer.step(&format!("event {}", to_hex(&event)))));
        let (code, handle) = mem_handle(rig, device);
        must("cuIpcGetMemHandle", code);
        for (what, given, address) in
            [("memory", to_hex(&handle), device), ("file", memory::path(&file), page.at())]
        {
            let opened = peer.step(&format!("{what} {given}"));
            peer.step("wait 1");
            must("cuStreamWriteValue64", write(rig, stream, address, 1));
            saw.text(format_args!("{what} {opened}, then {}", peer.step("synchronize")));
        }
        peer.end();
        must!(rig.cuMemFree_v2(device));
    }
}
