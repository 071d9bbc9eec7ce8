//! Waits for values: the channels that streams share, and the deadlocks that come of it.

use crate::common;

use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};

use common::*;
use cuda_events::sys::*;
use cuda_events_test_support::cases;
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
    let reported = raw.soft.deadlocks().len();
    if reported > 0 {
        assert!(waiting.iter().all(|stream| raw.busy(*stream)));
        // The host releases all of them.
        words.word(0).store(1, Ordering::Release);
    }
    for stream in waiting.into_iter().chain([last]) {
        raw.sync(stream);
    }
    assert_eq!(raw.soft.deadlocks().len(), reported);
    reported
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
                let reported = waiting_streams(&hanging(builder), count);
                let limit = channels.unwrap_or(8) as usize;
                assert_eq!(
                    reported,
                    usize::from(count >= limit),
                    "{count} streams, {channels:?} channels"
                );
            }
        }
    });
}

/// A wait for an event that is done holds nothing back, whatever stands before it.
#[test]
fn a_wait_for_an_event_that_is_done_is_no_deadlock() {
    let raw = hanging(SoftDriver::builder());
    let words = Words::new(&raw);
    let [first, second, holds, writes] = [NON_BLOCKING; 4].map(|flags| raw.stream(flags));
    let (event, latch) = (raw.event(CU_EVENT_DISABLE_TIMING), raw.latch(holds));
    raw.record(event, holds);
    assert_eq!(wait(&raw, first, words.at(0), 1), OK);
    raw.wait(first, event);
    assert_eq!(write(&raw, first, words.at(1), 1), OK);
    assert_eq!(wait(&raw, second, words.at(1), 1), OK);
    latch.release();
    raw.sync(holds);
    let latch = raw.latch(writes);
    assert_eq!(write(&raw, writes, words.at(0), 1), OK);
    assert_eq!(raw.soft.deadlocks(), [""; 0]);
    latch.release();
    [first, second, writes].into_iter().for_each(|stream| raw.sync(stream));
    assert_eq!(raw.soft.deadlocks(), [""; 0]);
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
    let reported = raw.soft.deadlocks().len();
    if reported > 0 {
        (0..count).for_each(|at| words.word(at).store(1, Ordering::Release));
    }
    streams.into_iter().for_each(|stream| raw.sync(stream));
    reported
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

/// The streams are more than the channels. One that gets work takes a channel in which none waits.
#[test]
fn a_stream_with_nothing_to_do_takes_a_free_channel() {
    let raw = hanging(SoftDriver::builder().connections(2));
    let (words, all) = (Words::new(&raw), streams(&raw, 4));
    let mut value = 0;
    for (at, waiting) in all.iter().enumerate() {
        for last in all.iter().enumerate().filter(|other| other.0 != at).map(|other| other.1) {
            value += 1;
            assert_eq!(wait(&raw, *waiting, words.at(0), value), OK);
            assert_eq!(write(&raw, *last, words.at(0), value), OK);
            assert_eq!(raw.soft.deadlocks(), [""; 0]);
            [waiting, last].into_iter().for_each(|stream| raw.sync(*stream));
        }
    }
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
        let reported = raw.soft.misuses();
        assert_eq!(reported, raw.soft.deadlocks());
        assert_eq!(raw.soft.control("deadlocks").unwrap(), format!("{}\n", reported[0]));
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
            assert!(reported[0].contains(part), "{part:?} in {}", reported[0]);
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
    let printed = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (printed(&output.stdout), printed(&output.stderr));
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
    let reported = waiting_streams(&raw, 3);
    println!("told {reported}");
}

#[test]
fn the_environment_sets_the_number_of_channels() {
    let run = |child: &str, channels: &str| {
        command(&own_binary(), &full_name("child"), child)
            .env("CUDA_DEVICE_MAX_CONNECTIONS", channels)
            .output()
            .unwrap()
    };
    // Three streams wait for values, more than some numbers of channels allow.
    for (channels, reported) in
        [("1", 1), ("3", 1), ("4", 0), ("", 0), ("0", 0), ("many", 0), ("99", 0)]
    {
        let output = run("hang", channels);
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(printed.contains(&format!("told {reported}\n")), "{channels:?}: {printed}");
    }
    let output = run("abort", "1");
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(how_it_failed(output.status).as_deref(), Some("aborted"), "{printed}");
    assert!(
        printed.contains("deadlock: 1 stream") && printed.contains("waits here forever"),
        "{printed}"
    );
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
        let (stream, word) = (random(STREAMS), random(STREAMS));
        if random(2) == 0 || signalled[word] == 0 {
            signalled[stream] += 1;
            assert_eq!(write(&raw, streams[stream], words.at(stream), signalled[stream]), OK);
        } else {
            assert_eq!(
                wait(
                    &raw,
                    streams[stream],
                    words.at(word),
                    1 + random(signalled[word] as usize) as u64
                ),
                OK
            );
        }
    }
    drop(latch.take());
    let reported = raw.soft.deadlocks().len();
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
    assert_eq!(raw.soft.deadlocks().len(), reported);
    reported
}

#[test]
fn programs_that_wait_for_the_submitted_never_deadlock() {
    apart("programs_that_wait_for_the_submitted_never_deadlock", || {
        for seed in 1..=cases(40, 400) {
            assert_eq!(random_program(seed, false), 0, "seed {seed}");
            assert_eq!(
                random_program(seed, true),
                1,
                "seed {seed}, with a wait ahead of its write"
            );
        }
    });
}

/// What a stream of a small program gets.
#[derive(Clone, Copy, Debug)]
enum Step {
    Write(usize, u64),
    Wait(usize, u64, u32),
    /// The event, and which of its records in the program this is.
    Record(usize),
    WaitFor(usize, Option<usize>),
}

/// Whether some wait cannot end, as each stream does what it can: what no write is for, the host
/// writes. This is the meaning of the word, by brute force.
fn is_deadlock(streams: &[Vec<Step>]) -> bool {
    let meets = |value: u64, wanted: u64, condition: u32| match condition {
        CU_STREAM_WAIT_VALUE_GEQ => value >= wanted,
        CU_STREAM_WAIT_VALUE_EQ => value == wanted,
        _ => value & wanted != 0,
    };
    let mut reached = vec![0; streams.len()];
    let is_there = |reached: &[usize], step: Step| {
        let all = streams.iter().zip(reached);
        let (mut written, mut to_come, mut recorded) = (false, false, false);
        for (at, found, reached) in
            all.flat_map(|(all, to)| all.iter().enumerate().map(move |(at, step)| (at, *step, *to)))
        {
            match (found, step) {
                (Step::Write(word, value), Step::Wait(waited, wanted, condition))
                    if word == waited =>
                {
                    let met = meets(value, wanted, condition);
                    written |= met && at < reached;
                    to_come |= met && at >= reached;
                }
                (Step::Record(one), Step::WaitFor(_, Some(other))) if one == other => {
                    recorded |= at < reached;
                }
                _ => {}
            }
        }
        match step {
            Step::Wait(..) => written || !to_come,
            Step::WaitFor(_, Some(_)) => recorded,
            _ => true,
        }
    };
    loop {
        let next = (0..streams.len()).find(|at| {
            streams[*at].get(reached[*at]).is_some_and(|step| is_there(&reached, *step))
        });
        match next {
            Some(at) => reached[at] += 1,
            None => break,
        }
    }
    let mut left = streams.iter().zip(&reached).filter_map(|(all, at)| all.get(*at));
    left.any(|step| matches!(step, Step::Wait(..)))
}

/// A deadlock is said with the call that makes it one, and no other is said to be one.
#[test]
fn small_programs_deadlock_as_by_brute_force() {
    apart("small_programs_deadlock_as_by_brute_force", || {
        let mut found = 0;
        for seed in 1..=cases(300_u64, 3000) {
            let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
            let mut random = |below: u64| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 33) % below
            };
            let raw = hanging(SoftDriver::builder().connections(32));
            let words = Words::new(&raw);
            let [gate, all @ ..] = [(); 4].map(|()| raw.stream(NON_BLOCKING));
            let [open, events @ ..] = [(); 3].map(|()| raw.event(CU_EVENT_DISABLE_TIMING));
            // Nothing is done while the program is submitted.
            let latch = raw.latch(gate);
            raw.record(open, gate);
            all.iter().for_each(|stream| raw.wait(*stream, open));
            let (mut steps, mut last) = (vec![Vec::new(); all.len()], [None; 2]);
            let mut is_one = false;
            for at in 0..12 {
                let (to, which) = (random(3) as usize, random(2) as usize);
                let (stream, value) = (all[to], 1 + random(3));
                let step = match random(5) {
                    0 | 1 => Step::Write(which, value),
                    2 | 3 => Step::Wait(which, value, random(3) as u32),
                    _ if random(2) == 0 => Step::Record(at),
                    _ => Step::WaitFor(which, last[which]),
                };
                match step {
                    Step::Write(word, value) => {
                        assert_eq!(write(&raw, stream, words.at(word), value), OK);
                    }
                    Step::Wait(word, value, condition) => {
                        let wait = raw.cuStreamWaitValue64_v2.unwrap();
                        let code = unsafe { wait(stream, words.at(word), value, condition) };
                        assert_eq!(code.0, OK);
                    }
                    Step::Record(_) => {
                        raw.record(events[which], stream);
                        last[which] = Some(at);
                    }
                    Step::WaitFor(event, _) => raw.wait(stream, events[event]),
                }
                steps[to].push(step);
                is_one |= is_deadlock(&steps);
                let said = !raw.soft.deadlocks().is_empty();
                assert_eq!(said, is_one, "seed {seed}, after {at}: {steps:?}");
            }
            found += usize::from(is_one);
            drop(latch);
        }
        assert!(found > 30, "{found} are too few");
    });
}

#[cfg(target_os = "linux")]
mod memory {
    //! Memory that is shared with other processes: misuse, and handles that no driver made.

    use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

    use cuda_events_test_support::child::is_emulated;
    use cuda_events_test_support::say_not_run;

    use super::*;

    const BYTES: usize = 4096;

    /// A write of a value to memory that is registered as read-only: a card would fail.
    #[test]
    fn a_write_to_memory_for_reading() {
        if is_emulated() {
            return say_not_run("an emulator does not tell whether a page can be written");
        }
        const MAPPED_FOR_READING: u32 = 1 | 2 | 8;
        let raw = Raw::new();
        let descriptor = unsafe { libc::memfd_create(c"page".as_ptr(), libc::MFD_CLOEXEC) };
        assert!(descriptor >= 0);
        let file = unsafe { OwnedFd::from_raw_fd(descriptor) };
        assert_eq!(unsafe { libc::ftruncate(file.as_raw_fd(), BYTES as libc::off_t) }, 0);
        let (shared, file) = (libc::MAP_SHARED, file.as_raw_fd());
        let page = unsafe { libc::mmap(null_mut(), BYTES, libc::PROT_READ, shared, file, 0) };
        assert_ne!(page, libc::MAP_FAILED);
        let register = || {
            call!(raw, cuMemHostRegister_v2(page => *mut std::ffi::c_void, BYTES => usize,
                MAPPED_FOR_READING => u32))
        };
        // What is cut short cannot be registered.
        assert_eq!(unsafe { libc::ftruncate(file, 0) }, 0);
        assert_eq!(register(), INVALID_VALUE);
        assert_eq!(unsafe { libc::ftruncate(file, BYTES as libc::off_t) }, 0);
        assert_eq!(register(), OK);
        let address = page.expose_provenance() as u64;
        assert_eq!(write(&raw, raw.stream(NON_BLOCKING), address, 4), INVALID_VALUE);
        let misuses = raw.soft.misuses();
        assert!(misuses[0].contains("registered as read-only"), "{misuses:?}");
        drop(raw);
        assert_eq!(unsafe { libc::munmap(page, BYTES) }, 0);
    }

    fn mem_alloc(raw: &Raw, bytes: usize) -> CUdeviceptr {
        let mut address = 0;
        assert_eq!(unsafe { (raw.cuMemAlloc_v2)(&mut address, bytes) }.0, OK);
        address
    }

    fn handle_of(raw: &Raw, address: CUdeviceptr) -> (u32, CUipcMemHandle) {
        let mut handle = CUipcMemHandle { reserved: [0; 64] };
        let code = call!(raw, cuIpcGetMemHandle(&mut handle => *mut CUipcMemHandle,
            address => CUdeviceptr));
        (code, handle)
    }

    fn open(raw: &Raw, handle: CUipcMemHandle) -> (u32, CUdeviceptr) {
        let mut address = 0;
        let code = call!(raw, cuIpcOpenMemHandle_v2(&mut address => *mut CUdeviceptr,
            handle => CUipcMemHandle, 1 => u32));
        (code, address)
    }

    /// Between two drivers, as between two processes.
    #[test]
    fn handles_that_are_made_up() {
        let (exporter, importer) = (Raw::new(), Raw::new());
        exporter.set_current(exporter.retain(0));
        let (code, handle) = handle_of(&exporter, mem_alloc(&exporter, 1 << 20));
        assert_eq!(code, OK);
        importer.set_current(importer.retain(0));
        let (code, theirs) = open(&importer, handle);
        assert_eq!((code, importer.soft.live().allocations), (OK, 1));
        assert_eq!(handle_of(&importer, theirs).0, INVALID_VALUE, "an import is not exported");
        assert_eq!(call!(importer, cuIpcCloseMemHandle(theirs => CUdeviceptr)), OK);
        assert_eq!(importer.soft.live().allocations, 0);
        // Another exporter, and what reaches beyond the memory that is there.
        for (at, byte) in [(0, 1), (9, 1), (30, 0x7f), (38, 0x7f), (37, 0x7f)] {
            let mut damaged = handle;
            damaged.reserved[at] ^= byte;
            assert_eq!(open(&importer, damaged).0, INVALID_VALUE, "byte {at}");
        }
        drop(exporter);
        assert_eq!(open(&importer, handle).0, INVALID_VALUE, "its exporter is gone");
        let without = Raw::with(SoftDriver::builder().ipc(false));
        assert_eq!(handle_of(&without, mem_alloc(&without, 8)).0, NOT_SUPPORTED);
    }

    #[test]
    fn memory_given_back_is_nowhere_and_new_memory_is_zero() {
        let raw = Raw::new();
        for _ in 0..3 {
            let address = mem_alloc(&raw, 1 << 20);
            let word = std::ptr::with_exposed_provenance_mut(address as usize);
            assert_eq!(unsafe { AtomicU64::from_ptr(word) }.swap(7, Ordering::AcqRel), 0);
            assert_eq!(unsafe { (raw.cuMemFree_v2)(address) }.0, OK);
        }
    }
}
