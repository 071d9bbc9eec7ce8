//! Waits for values: the channels that streams share, and the deadlocks that come of it.

use crate::common;

use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use common::*;
use cuda_events::sys::*;
use cuda_events_test_support::child::{command, full_name, how_it_failed, own_binary, role};
use cuda_soft_driver::{Builder, OnDeadlock, SoftDriver};

const LAUNCH_TIMEOUT: u32 = 702;
const NON_BLOCKING: u32 = 1;

/// Words of pinned host memory, by number.
struct Words(CUdeviceptr);

impl Words {
    fn new(raw: &Raw) -> Self {
        let mut memory = null_mut();
        assert_eq!(unsafe { (raw.cuMemHostAlloc)(&mut memory, 4096, 1) }.0, OK);
        Self(memory.expose_provenance() as u64)
    }

    fn at(&self, index: usize) -> CUdeviceptr {
        assert!(index < 512);
        self.0 + 8 * index as u64
    }

    fn word(&self, index: usize) -> &AtomicU64 {
        unsafe {
            AtomicU64::from_ptr(std::ptr::with_exposed_provenance_mut(self.at(index) as usize))
        }
    }
}

fn write(raw: &Raw, stream: CUstream, address: CUdeviceptr, value: u64) -> u32 {
    unsafe { raw.cuStreamWriteValue64_v2.unwrap()(stream, address, value, 0) }.0
}

fn wait(raw: &Raw, stream: CUstream, address: CUdeviceptr, value: u64) -> u32 {
    unsafe { raw.cuStreamWaitValue64_v2.unwrap()(stream, address, value, CU_STREAM_WAIT_VALUE_GEQ) }
        .0
}

fn streams(raw: &Raw, count: usize) -> Vec<CUstream> {
    (0..count).map(|_| raw.stream(NON_BLOCKING)).collect()
}

/// A driver that hangs as a real one does.
fn hanging(builder: Builder) -> Raw {
    Raw::with(builder.on_deadlock(OnDeadlock::Hang))
}

/// As many streams wait for a value, and one more is given the write. How many deadlocks are told.
fn waiting_streams(raw: &Raw, count: usize) -> usize {
    let words = Words::new(raw);
    let waiting = streams(raw, count);
    for stream in &waiting {
        assert_eq!(wait(raw, *stream, words.at(0), 1), OK);
    }
    let last = raw.stream(NON_BLOCKING);
    assert_eq!(raw.soft.deadlocks(), [""; 0], "no write was submitted that could be held back");
    assert_eq!(write(raw, last, words.at(0), 1), OK);
    let told = raw.soft.deadlocks().len();
    if told > 0 {
        assert!(waiting.iter().all(|stream| raw.busy(*stream)));
        // The host releases all of them.
        words.word(0).store(1, Ordering::Release);
    }
    for stream in waiting.into_iter().chain([last]) {
        raw.sync(stream);
    }
    assert_eq!(raw.soft.deadlocks().len(), told);
    told
}

#[test]
fn a_write_behind_waiting_streams_deadlocks() {
    apart("a_write_behind_waiting_streams_deadlocks", || {
        for (channels, counts) in
            [(None, [1, 7, 8, 31]), (Some(32), [1, 31, 32, 255]), (Some(1), [1, 2, 3, 4])]
        {
            for count in counts {
                let builder = SoftDriver::builder();
                let builder = channels
                    .into_iter()
                    .fold(builder, |builder, channels| builder.connections(channels));
                let told = waiting_streams(&hanging(builder), count);
                let limit = channels.unwrap_or(8) as usize;
                assert_eq!(
                    told,
                    usize::from(count >= limit),
                    "{count} streams, {channels:?} channels"
                );
            }
        }
    });
}

/// Each stream waits for the next one's value and then writes its own; the last one has nothing to
/// wait for.
fn backwards(raw: &Raw, count: usize) -> usize {
    let words = Words::new(raw);
    let streams = streams(raw, count);
    for (at, stream) in streams.iter().enumerate() {
        if at + 1 < count {
            assert_eq!(wait(raw, *stream, words.at(at + 1), 1), OK);
        }
        assert_eq!(write(raw, *stream, words.at(at), 1), OK);
    }
    let told = raw.soft.deadlocks().len();
    if told > 0 {
        (0..count).for_each(|at| words.word(at).store(1, Ordering::Release));
    }
    streams.into_iter().for_each(|stream| raw.sync(stream));
    told
}

#[test]
fn a_long_chain_submitted_backwards_deadlocks() {
    apart("a_long_chain_submitted_backwards_deadlocks", || {
        assert_eq!(backwards(&hanging(SoftDriver::builder()), 4), 0);
        assert_eq!(backwards(&hanging(SoftDriver::builder()), 8), 0);
        assert_eq!(backwards(&hanging(SoftDriver::builder()), 16), 1);
        assert_eq!(backwards(&hanging(SoftDriver::builder().connections(32)), 32), 0);
        assert_eq!(backwards(&hanging(SoftDriver::builder().connections(32)), 64), 1);
    });
}

#[test]
fn events_of_idle_streams_are_done_at_once() {
    let raw = hanging(SoftDriver::builder().connections(1));
    let words = Words::new(&raw);
    let (waiting, idle) = (raw.stream(NON_BLOCKING), raw.stream(NON_BLOCKING));
    assert_eq!(wait(&raw, waiting, words.at(0), 1), OK);
    let event = raw.event(CU_EVENT_DISABLE_TIMING);
    raw.record(event, idle);
    assert_eq!((raw.query(event), raw.busy(idle)), (OK, false));
    // What is work waits for its turn.
    assert_eq!(write(&raw, idle, words.at(1), 1), OK);
    raw.record(event, idle);
    assert_eq!((raw.query(event), words.word(1).load(Ordering::Acquire)), (NOT_READY, 0));
    words.word(0).store(1, Ordering::Release);
    raw.sync(idle);
    assert_eq!((raw.query(event), words.word(1).load(Ordering::Acquire)), (OK, 1));
    assert_eq!(raw.soft.deadlocks(), [""; 0]);
}

#[test]
fn waiting_for_a_stream_is_no_work() {
    let raw = hanging(SoftDriver::builder().connections(1));
    let words = Words::new(&raw);
    let (worker, waiting) = (raw.stream(NON_BLOCKING), raw.stream(NON_BLOCKING));
    let latch = raw.latch(worker);
    assert_eq!(wait(&raw, waiting, words.at(0), 1), OK);
    latch.release();
    raw.sync(worker);
    assert!(raw.busy(waiting));
    words.word(0).store(1, Ordering::Release);
    raw.sync(waiting);
}

#[test]
fn host_functions_and_events_hold_back_no_other_stream() {
    let raw = Raw::with(SoftDriver::builder().connections(1));
    let [held, behind, free] = [(); 3].map(|()| raw.stream(NON_BLOCKING));
    let (event, words) = (raw.event(CU_EVENT_DISABLE_TIMING), Words::new(&raw));
    let latch = raw.latch(held);
    raw.record(event, held);
    raw.wait(behind, event);
    assert_eq!(write(&raw, free, words.at(0), 1), OK);
    raw.sync(free);
    assert_eq!(words.word(0).load(Ordering::Acquire), 1);
    latch.release();
    raw.sync(behind);
}

#[test]
fn channels_are_a_contexts_own() {
    let raw = hanging(SoftDriver::builder().connections(1).devices(2));
    let words = Words::new(&raw);
    let waiting = raw.stream(NON_BLOCKING);
    assert_eq!(wait(&raw, waiting, words.at(0), 1), OK);
    let other = raw.retain(1);
    raw.set_current(other);
    assert_eq!(write(&raw, raw.stream(NON_BLOCKING), words.at(0), 1), OK);
    raw.sync(waiting);
    assert_eq!(raw.soft.deadlocks(), [""; 0]);
}

/// Nobody can say that the host will not write it.
#[test]
fn waits_without_a_write_are_no_deadlock() {
    let raw = Raw::new();
    let words = Words::new(&raw);
    // The first waits for the host, all others for what the one before writes behind its own wait.
    let streams = streams(&raw, 20);
    for (at, stream) in streams.iter().enumerate() {
        assert_eq!(wait(&raw, *stream, words.at(at), 1), OK);
        assert_eq!(write(&raw, *stream, words.at(at + 1), 1), OK);
    }
    assert_eq!(raw.soft.deadlocks(), [""; 0]);
    words.word(0).store(1, Ordering::Release);
    streams.into_iter().for_each(|stream| raw.sync(stream));
    assert_eq!(words.word(20).load(Ordering::Acquire), 1);
}

#[test]
fn two_streams_that_wait_for_each_other_are_a_deadlock() {
    apart("two_streams_that_wait_for_each_other_are_a_deadlock", || {
        let raw = hanging(SoftDriver::builder());
        let words = Words::new(&raw);
        let (one, two) = (raw.stream(NON_BLOCKING), raw.stream(NON_BLOCKING));
        for _ in 0..2 {
            let before = raw.soft.deadlocks().len();
            let value = before as u64 + 1;
            assert_eq!(
                [wait(&raw, one, words.at(1), value), write(&raw, one, words.at(0), value)],
                [OK; 2]
            );
            assert_eq!(wait(&raw, two, words.at(0), value), OK);
            assert_eq!(raw.soft.deadlocks().len(), before);
            assert_eq!(write(&raw, two, words.at(1), value), OK);
            assert_eq!(raw.soft.deadlocks().len(), before + 1);
            // What comes while it lasts is a part of it.
            assert_eq!(
                [wait(&raw, two, words.at(3), value), write(&raw, one, words.at(3), value)],
                [OK; 2]
            );
            assert_eq!(raw.soft.deadlocks().len(), before + 1);
            words.word(0).store(value, Ordering::Release);
            raw.sync(one);
            raw.sync(two);
        }
    });
}

#[test]
fn a_deadlock_through_an_event_and_one_in_a_batch() {
    apart("a_deadlock_through_an_event_and_one_in_a_batch", || {
        let raw = hanging(SoftDriver::builder());
        let words = Words::new(&raw);
        let (one, two, event) = (
            raw.stream(NON_BLOCKING),
            raw.stream(NON_BLOCKING),
            raw.event(CU_EVENT_DISABLE_TIMING),
        );
        assert_eq!(wait(&raw, one, words.at(0), 1), OK);
        raw.record(event, one);
        raw.wait(two, event);
        assert_eq!(write(&raw, two, words.at(0), 1), OK);
        assert_eq!(raw.soft.deadlocks().len(), 1);
        assert!(
            raw.soft.deadlocks()[0].contains("a wait for an event"),
            "{:?}",
            raw.soft.deadlocks()
        );
        words.word(0).store(1, Ordering::Release);
        raw.sync(two);

        type Kind = CUstreamBatchMemOpType;
        let mut operations = [CUstreamBatchMemOpParams { pad: [0; 6] }; 2];
        operations[0].waitValue.operation = Kind::CU_STREAM_MEM_OP_WAIT_VALUE_64;
        operations[0].waitValue.address = words.at(1);
        operations[0].waitValue.u.value64 = 1;
        operations[1] = operations[0];
        operations[1].writeValue.operation = Kind::CU_STREAM_MEM_OP_WRITE_VALUE_64;
        let batch = raw.cuStreamBatchMemOp_v2.unwrap();
        assert_eq!(unsafe { batch(one, 2, operations.as_mut_ptr(), 0) }.0, OK);
        assert_eq!(raw.soft.deadlocks().len(), 2);
        words.word(1).store(1, Ordering::Release);
        raw.sync(one);
    });
}

#[test]
fn as_an_error_it_fails_the_contexts_and_hangs_nothing() {
    apart("as_an_error_it_fails_the_contexts_and_hangs_nothing", || {
        let raw = Raw::with(SoftDriver::builder().connections(1));
        let words = Words::new(&raw);
        let (waiting, other) = (raw.stream(NON_BLOCKING), raw.stream(NON_BLOCKING));
        assert_eq!(wait(&raw, waiting, words.at(5), 9), OK);
        assert_eq!(
            write(&raw, other, words.at(5), 9),
            LAUNCH_TIMEOUT,
            "the call that closes the circle"
        );
        assert_eq!(unsafe { (raw.cuStreamSynchronize)(waiting) }.0, LAUNCH_TIMEOUT);
        assert_eq!(unsafe { (raw.cuStreamQuery)(other) }.0, LAUNCH_TIMEOUT);
        assert_eq!(words.word(5).load(Ordering::Acquire), 0, "a failed context writes nothing");
        let told = raw.soft.misuses();
        assert_eq!(told, raw.soft.deadlocks());
        assert_eq!(raw.soft.control("deadlocks").unwrap(), format!("{}\n", told[0]));
        for part in [
            "deadlock: 1 stream waits for values",
            &format!("stream {:#x} (channel 0 of 1 in context", waiting.addr()),
            &format!(
                "waits for at least 9 at {:#x}, where 0 is: cuStreamWaitValue64_v2, call ",
                words.at(5)
            ),
            &format!("stream {:#x} (channel 0 of 1 in context", other.addr()),
            "writes 9 there: cuStreamWriteValue64_v2, call ",
            "which has the same channel",
        ] {
            assert!(told[0].contains(part), "{part:?} in {}", told[0]);
        }
        // Dropping the driver, and so the last release, waits for nothing.
    });
}

/// Runs a test in a process of its own, so that what the driver says of deadlocks, which are meant,
/// is seen only when it fails.
#[track_caller]
fn apart(test: &str, body: impl FnOnce()) {
    if role().is_some() {
        return body();
    }
    let output = command(&own_binary(), &full_name(test), "apart").output().unwrap();
    let said = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (said(&output.stdout), said(&output.stderr));
    assert!(output.status.success() && out.contains("1 passed"), "{out}\n{err}");
}

/// The process that the next test starts, and nothing without one.
#[test]
fn child() {
    let raw = match role().as_deref() {
        None => return,
        Some("abort") => Raw::with_default_misuse(),
        Some(_) => hanging(SoftDriver::builder()),
    };
    let told = waiting_streams(&raw, 3);
    println!("told {told}");
}

#[test]
fn the_environment_says_how_many_channels_there_are() {
    let run = |child: &str, channels: &str| {
        command(&own_binary(), &full_name("child"), child)
            .env("CUDA_DEVICE_MAX_CONNECTIONS", channels)
            .output()
            .unwrap()
    };
    // Three streams wait.
    for (channels, told) in
        [("1", 1), ("3", 1), ("4", 0), ("", 0), ("0", 0), ("many", 0), ("99", 0)]
    {
        let output = run("hang", channels);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.contains(&format!("told {told}\n")), "{channels:?}: {said}");
    }
    let output = run("abort", "1");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(how_it_failed(output.status).as_deref(), Some("aborted"), "{said}");
    assert!(said.contains("deadlock: 1 stream") && said.contains("waits here forever"), "{said}");
}

/// A program of signals and waits, each for what was submitted before it, in streams that share few
/// channels, while a latch holds the first of them for a while. With one wait ahead of its write
/// put in, where that is asked for.
fn random_program(seed: u64, ahead: bool) -> usize {
    const STREAMS: usize = 64;
    const STEPS: usize = 400;
    let raw = hanging(SoftDriver::builder());
    let words = Words::new(&raw);
    let streams = streams(&raw, STREAMS);
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as usize % below
    };
    let latch = raw.latch(streams[random(STREAMS)]);
    let release_at = random(STEPS);
    let mut latch = Some(latch);
    let mut signalled = [0_u64; STREAMS];
    let mut planted = None;
    for step in 0..STEPS {
        if step == release_at {
            latch.take();
        }
        if ahead && step == STEPS / 2 {
            // Each waits for what the other one writes after its wait.
            let (one, two) = (random(8), 8 + random(56));
            assert_eq!(wait(&raw, streams[one], words.at(two), signalled[two] + 1), OK);
            signalled[one] += 1;
            assert_eq!(write(&raw, streams[one], words.at(one), signalled[one]), OK);
            assert_eq!(wait(&raw, streams[two], words.at(one), signalled[one]), OK);
            signalled[two] += 1;
            assert_eq!(write(&raw, streams[two], words.at(two), signalled[two]), OK);
            planted = Some((two, signalled[two]));
        }
        let (stream, of) = (random(STREAMS), random(STREAMS));
        if random(2) == 0 || signalled[of] == 0 {
            signalled[stream] += 1;
            assert_eq!(write(&raw, streams[stream], words.at(stream), signalled[stream]), OK);
        } else {
            assert_eq!(
                wait(
                    &raw,
                    streams[stream],
                    words.at(of),
                    1 + random(signalled[of] as usize) as u64
                ),
                OK
            );
        }
    }
    drop(latch.take());
    let told = raw.soft.deadlocks().len();
    // The host does what the write cannot, until the wait has seen it: earlier writes may come in
    // between.
    while let Some((word, value)) = planted
        && streams.iter().any(|stream| raw.busy(*stream))
    {
        words.word(word).fetch_max(value, Ordering::AcqRel);
        std::thread::yield_now();
    }
    for stream in streams {
        raw.sync(stream);
    }
    assert_eq!(raw.soft.deadlocks().len(), told);
    told
}

#[test]
fn programs_that_wait_for_the_submitted_never_deadlock() {
    apart("programs_that_wait_for_the_submitted_never_deadlock", || {
        for seed in 1..=100 {
            assert_eq!(random_program(seed, false), 0, "seed {seed}");
            assert_eq!(
                random_program(seed, true),
                1,
                "seed {seed}, with a wait ahead of its write"
            );
        }
    });
}

#[test]
fn a_value_is_seen_soon_and_after_a_long_time() {
    let raw = Raw::new();
    let (stream, words) = (raw.stream(NON_BLOCKING), Words::new(&raw));
    for (value, pause) in [(1, 0), (2, 50)] {
        assert_eq!(wait(&raw, stream, words.at(0), value), OK);
        std::thread::sleep(Duration::from_millis(pause));
        assert!(raw.busy(stream));
        words.word(0).store(value, Ordering::Release);
        raw.sync(stream);
    }
}

/// A file of memory, mapped and registered.
#[cfg(target_os = "linux")]
struct Page<'a> {
    raw: &'a Raw,
    memory: *mut std::ffi::c_void,
}

#[cfg(target_os = "linux")]
impl<'a> Page<'a> {
    const BYTES: usize = 4096;

    fn file() -> std::os::fd::OwnedFd {
        use std::os::fd::{AsRawFd as _, FromRawFd as _};
        let descriptor = unsafe { libc::memfd_create(c"page".as_ptr(), libc::MFD_CLOEXEC) };
        assert!(descriptor >= 0);
        let file = unsafe { std::os::fd::OwnedFd::from_raw_fd(descriptor) };
        assert_eq!(unsafe { libc::ftruncate(file.as_raw_fd(), Self::BYTES as i64) }, 0);
        file
    }

    fn map(raw: &'a Raw, file: &std::os::fd::OwnedFd, protection: i32) -> Self {
        use std::os::fd::AsRawFd as _;
        let (flags, file) = (libc::MAP_SHARED, file.as_raw_fd());
        let memory = unsafe { libc::mmap(null_mut(), Self::BYTES, protection, flags, file, 0) };
        assert_ne!(memory, libc::MAP_FAILED);
        Self { raw, memory }
    }

    fn register(&self, flags: u32) -> u32 {
        type Register = unsafe extern "C" fn(*mut std::ffi::c_void, usize, u32) -> CUresult;
        let register = self.raw.soft.resolve(c"cuMemHostRegister_v2");
        unsafe {
            std::mem::transmute::<*mut std::ffi::c_void, Register>(register)(
                self.memory,
                Self::BYTES,
                flags,
            )
        }
        .0
    }

    fn unregister(&self) -> impl FnOnce() -> u32 + Send + use<> {
        type Unregister = unsafe extern "C" fn(*mut std::ffi::c_void) -> CUresult;
        let unregister = self.raw.soft.resolve(c"cuMemHostUnregister");
        let unregister =
            unsafe { std::mem::transmute::<*mut std::ffi::c_void, Unregister>(unregister) };
        let memory = self.memory.expose_provenance();
        move || unsafe { unregister(std::ptr::with_exposed_provenance_mut(memory)) }.0
    }

    fn word(&self) -> &AtomicU64 {
        unsafe { AtomicU64::from_ptr(self.memory.cast()) }
    }

    fn address(&self) -> CUdeviceptr {
        self.memory.expose_provenance() as u64
    }
}

#[cfg(target_os = "linux")]
impl Drop for Page<'_> {
    fn drop(&mut self) {
        assert_eq!(unsafe { libc::munmap(self.memory, Self::BYTES) }, 0);
    }
}

#[cfg(target_os = "linux")]
mod registered {
    use cuda_events_test_support::child::is_emulated;
    use cuda_events_test_support::say_not_run;
    use libc::{PROT_READ, PROT_WRITE};

    use super::*;

    const MAPPED: u32 = 1 | 2;
    const READ_ONLY: u32 = 8;
    const ALREADY: u32 = 712;
    const NOT_REGISTERED: u32 = 713;

    #[test]
    fn one_file_twice_and_for_reading_alone() {
        if is_emulated() {
            return say_not_run("an emulator does not tell whether a page can be written");
        }
        let raw = Raw::new();
        let (file, streams) = (Page::file(), streams(&raw, 3));
        let page = Page::map(&raw, &file, PROT_READ | PROT_WRITE);
        let again = Page::map(&raw, &file, PROT_READ | PROT_WRITE);
        let reading = Page::map(&raw, &file, PROT_READ);
        assert_eq!(
            [page.register(MAPPED), again.register(MAPPED), page.register(MAPPED)],
            [OK, OK, ALREADY]
        );
        assert_eq!(reading.register(MAPPED), INVALID_VALUE, "it cannot be pinned for writing");
        assert_eq!(reading.register(MAPPED | READ_ONLY), OK);
        assert_eq!(
            [
                wait(&raw, streams[0], again.address(), 3),
                wait(&raw, streams[1], reading.address(), 3)
            ],
            [OK; 2]
        );
        assert_eq!(write(&raw, streams[2], page.address(), 3), OK);
        streams.iter().for_each(|stream| raw.sync(*stream));
        assert_eq!(reading.word().load(Ordering::Acquire), 3);
        assert_eq!(raw.soft.misuses(), [""; 0]);
        // A card would fail.
        assert_eq!(write(&raw, streams[2], reading.address(), 4), INVALID_VALUE);
        assert!(
            raw.soft.misuses()[0].contains("registered as read-only"),
            "{:?}",
            raw.soft.misuses()
        );
        for page in [&page, &again, &reading] {
            assert_eq!(page.unregister()(), OK);
        }
        assert_eq!(page.unregister()(), NOT_REGISTERED);
        assert_eq!(raw.soft.live().allocations, 0);
    }

    #[test]
    fn what_is_cut_short_cannot_be_registered() {
        if is_emulated() {
            return say_not_run("an emulator does not tell whether a page can be written");
        }
        let raw = Raw::new();
        let file = Page::file();
        let page = Page::map(&raw, &file, PROT_READ | PROT_WRITE);
        let descriptor = std::os::fd::AsRawFd::as_raw_fd(&file);
        assert_eq!(unsafe { libc::ftruncate(descriptor, 0) }, 0);
        assert_eq!(page.register(MAPPED), INVALID_VALUE);
    }

    #[test]
    fn unregistering_waits_for_streams() {
        let raw = Raw::new();
        let file = Page::file();
        let (page, other) = (Page::map(&raw, &file, PROT_READ | PROT_WRITE), Words::new(&raw));
        let [stream, elsewhere] = [(); 2].map(|()| raw.stream(NON_BLOCKING));
        assert_eq!(page.register(MAPPED), OK);
        assert_eq!(
            [wait(&raw, stream, page.address(), 1), wait(&raw, stream, other.at(0), 1)],
            [OK; 2]
        );
        assert_eq!(wait(&raw, elsewhere, other.at(1), 1), OK);
        let unregistering = begin(page.unregister());
        while raw.soft.waiting_for_work() == 0 {
            assert!(!unregistering.is_finished(), "it does not wait");
            std::thread::yield_now();
        }
        page.word().store(1, Ordering::Release);
        assert_eq!(unregistering.join(), OK);
        assert!(raw.busy(stream) && raw.busy(elsewhere));
        (0..2).for_each(|at| other.word(at).store(1, Ordering::Release));
        raw.sync(stream);
        raw.sync(elsewhere);
    }
}

/// The entry point of a name, which the raw table does not have.
unsafe fn export<F: Copy>(raw: &Raw, name: &std::ffi::CStr) -> F {
    let address = raw.soft.resolve(name);
    assert!(!address.is_null(), "{name:?}");
    assert_eq!(size_of::<F>(), size_of_val(&address));
    unsafe { std::mem::transmute_copy(&address) }
}

#[cfg(target_os = "linux")]
type Handle = [u8; 64];

#[cfg(target_os = "linux")]
#[repr(C)]
#[derive(Clone, Copy)]
struct ByValue(Handle);

#[cfg(target_os = "linux")]
fn mem_alloc(raw: &Raw, bytes: usize) -> CUdeviceptr {
    let mut address = 0;
    assert_eq!(unsafe { (raw.cuMemAlloc_v2)(&mut address, bytes) }.0, OK);
    address
}

#[cfg(target_os = "linux")]
fn handle_of(raw: &Raw, address: CUdeviceptr) -> Result<Handle, u32> {
    let mut handle = [0; 64];
    let get: unsafe extern "C" fn(*mut Handle, CUdeviceptr) -> CUresult =
        unsafe { export(raw, c"cuIpcGetMemHandle") };
    match unsafe { get(&mut handle, address) }.0 {
        OK => Ok(handle),
        code => Err(code),
    }
}

#[cfg(target_os = "linux")]
fn open(raw: &Raw, handle: Handle, flags: u32) -> Result<CUdeviceptr, u32> {
    type Open = unsafe extern "C" fn(*mut CUdeviceptr, ByValue, u32) -> CUresult;
    let open: Open = unsafe { export(raw, c"cuIpcOpenMemHandle_v2") };
    let mut address = 0;
    match unsafe { open(&mut address, ByValue(handle), flags) }.0 {
        OK => Ok(address),
        code => Err(code),
    }
}

#[cfg(target_os = "linux")]
fn close(raw: &Raw, address: CUdeviceptr) -> u32 {
    let close: unsafe extern "C" fn(CUdeviceptr) -> CUresult =
        unsafe { export(raw, c"cuIpcCloseMemHandle") };
    unsafe { close(address) }.0
}

/// Between two drivers, as between two processes.
#[cfg(target_os = "linux")]
#[test]
fn device_memory_is_opened_by_others() {
    let exporter = Raw::new();
    let importer = Raw::new();
    let current = |raw: &Raw| raw.set_current(raw.retain(0));
    current(&exporter);
    let (first, second) = (mem_alloc(&exporter, 100), mem_alloc(&exporter, 1 << 20));
    let handle = handle_of(&exporter, second).unwrap();
    assert_eq!(handle_of(&exporter, second), Ok(handle));
    assert_ne!(handle_of(&exporter, first), Ok(handle));
    assert_eq!(handle_of(&exporter, 8), Err(INVALID_VALUE));
    assert_eq!(open(&exporter, handle, 1), Err(INVALID_CONTEXT), "one's own");

    current(&importer);
    let theirs = open(&importer, handle, 1).unwrap();
    assert_eq!(open(&importer, handle, 1), Ok(theirs), "again, it is the same");
    assert_eq!(open(&importer, handle, 2), Err(INVALID_VALUE));
    assert_eq!(unsafe { (importer.cuMemFree_v2)(theirs) }.0, INVALID_VALUE);
    assert_eq!(handle_of(&importer, theirs), Err(INVALID_VALUE), "an import is not exported");
    // The last word of it, in both directions.
    let (stream, at) = (importer.stream(NON_BLOCKING), (1 << 20) - 8);
    assert_eq!(wait(&importer, stream, theirs + at, 7), OK);
    current(&exporter);
    let other = exporter.stream(NON_BLOCKING);
    assert_eq!(
        [write(&exporter, other, second + at, 7), wait(&exporter, other, second, 9)],
        [OK; 2]
    );
    importer.sync(stream);
    current(&importer);
    assert_eq!(write(&importer, stream, theirs, 9), OK);
    exporter.sync(other);

    assert_eq!(importer.soft.live().allocations, 1);
    assert_eq!(
        [close(&importer, theirs), close(&importer, theirs), close(&importer, theirs)],
        [OK, OK, INVALID_VALUE]
    );
    assert_eq!(importer.soft.live().allocations, 0);
    // What was made up, and what reaches beyond the memory that is there.
    for (at, byte) in [(0, 1), (9, 1), (30, 0x7f), (38, 0x7f), (37, 0x7f)] {
        let mut damaged = handle;
        damaged[at] ^= byte;
        assert_eq!(open(&importer, damaged, 1), Err(INVALID_VALUE), "byte {at}");
    }
    drop(exporter);
    assert_eq!(open(&importer, handle, 1), Err(INVALID_VALUE), "its exporter is gone");
    let without = Raw::with(SoftDriver::builder().ipc(false));
    assert_eq!(handle_of(&without, mem_alloc(&without, 8)), Err(NOT_SUPPORTED));
}

#[cfg(target_os = "linux")]
#[test]
fn memory_given_back_is_nowhere_and_new_memory_is_zero() {
    let raw = Raw::new();
    for _ in 0..3 {
        let address = mem_alloc(&raw, 1 << 20);
        let word =
            unsafe { AtomicU64::from_ptr(std::ptr::with_exposed_provenance_mut(address as usize)) };
        assert_eq!(word.swap(7, Ordering::AcqRel), 0);
        assert_eq!(unsafe { (raw.cuMemFree_v2)(address) }.0, OK);
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
struct NodeParams {
    context: CUcontext,
    count: u32,
    operations: *mut CUstreamBatchMemOpParams,
    flags: u32,
}

#[test]
fn captured_values_are_nodes_that_can_be_set() {
    let raw = Raw::new();
    let (stream, words) = (raw.stream(NON_BLOCKING), Words::new(&raw));
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
    let (mut graph, mut exec) = (null_mut(), null_mut());
    assert_eq!(unsafe { (raw.cuStreamBeginCapture_v2)(stream, mode) }.0, OK);
    assert_eq!([wait(&raw, stream, words.at(0), 1), write(&raw, stream, words.at(1), 5)], [OK; 2]);
    assert_eq!(unsafe { (raw.cuStreamEndCapture)(stream, &mut graph) }.0, OK);

    let mut nodes = [null_mut(); 3];
    let mut count = 3;
    type Get = unsafe extern "C" fn(CUgraphNode, *mut NodeParams) -> CUresult;
    type Set = unsafe extern "C" fn(CUgraphNode, *const NodeParams) -> CUresult;
    type SetExec = unsafe extern "C" fn(CUgraphExec, CUgraphNode, *const NodeParams) -> CUresult;
    let get: Get = unsafe { export(&raw, c"cuGraphBatchMemOpNodeGetParams") };
    let set: Set = unsafe { export(&raw, c"cuGraphBatchMemOpNodeSetParams") };
    let set_exec: SetExec = unsafe { export(&raw, c"cuGraphExecBatchMemOpNodeSetParams") };
    unsafe {
        type Nodes = unsafe extern "C" fn(CUgraph, *mut CUgraphNode, *mut usize) -> CUresult;
        let get_nodes: Nodes = export(&raw, c"cuGraphGetNodes");
        assert_eq!((get_nodes(graph, nodes.as_mut_ptr(), &mut count).0, count), (OK, 2));
        type Type = unsafe extern "C" fn(CUgraphNode, *mut u32) -> CUresult;
        let get_type: Type = export(&raw, c"cuGraphNodeGetType");
        let mut kind = 0;
        assert_eq!((get_type(nodes[0], &mut kind).0, kind), (OK, 12));

        let mut params =
            NodeParams { context: null_mut(), count: 0, operations: null_mut(), flags: 9 };
        assert_eq!(get(nodes[1], &mut params).0, OK);
        assert_eq!((params.context, params.count, params.flags), (raw.retain(0), 1, 0));
        let mut operation = *params.operations;
        assert_eq!(operation.operation, CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WRITE_VALUE_64);
        assert_eq!(
            (operation.writeValue.address, operation.writeValue.u.value64),
            (words.at(1), 5)
        );

        let instantiate = raw.cuGraphInstantiateWithFlags.unwrap();
        assert_eq!(instantiate(&mut exec, graph, 0).0, OK);
        // Each launch writes what was set last.
        for value in 5..8 {
            operation.writeValue.u.value64 = value;
            params.operations = &mut operation;
            assert_eq!(set_exec(exec, nodes[1], &params).0, OK);
            assert_eq!((raw.cuGraphLaunch)(exec, stream).0, OK);
            words.word(0).store(1, Ordering::Release);
            raw.sync(stream);
            assert_eq!(words.word(1).load(Ordering::Acquire), value);
        }
        // Its kind, its number and its address are looked at.
        assert_eq!(set_exec(exec, nodes[0], &params).0, INVALID_VALUE);
        let two = &mut [operation; 2];
        let many = NodeParams { count: 2, operations: two.as_mut_ptr(), ..params };
        assert_eq!(set_exec(exec, nodes[1], &many).0, INVALID_VALUE);
        assert_eq!(set(nodes[1], &many).0, OK);
        operation.writeValue.address = 8;
        params.operations = &mut operation;
        assert_eq!(set_exec(exec, nodes[1], &params).0, INVALID_VALUE);
        assert_eq!(get(nodes[1], &mut params).0, OK);
        assert_eq!(params.count, 2);
        assert_eq!((raw.cuGraphExecDestroy)(exec).0, OK);
        assert_eq!((raw.cuGraphDestroy)(graph).0, OK);
    }
}
