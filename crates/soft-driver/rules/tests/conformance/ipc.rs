//! Interprocess events.
//!
//! The rules send steps to another process, their peer, which does its side of the work; see
//! `peer`.

use std::ptr::null_mut;

use cuda_events::sys::*;
use cuda_test_harness::child::{Child, from_hex, read_line, role, say, to_hex};
use cuda_test_harness::{TestDriver, soft_settings};

use crate::raw::{
    INTERPROCESS, NO_TIMING, NON_BLOCKING, NULL_STREAM, Rig, TIMING, code_text, must,
};
use crate::rules;
use crate::rules::{Saw, do_not_hang};

const PEER: &str = "peer";

#[cfg(unix)]
unsafe extern "C" {
    fn setuid(user: u32) -> i32;
    fn geteuid() -> u32;
}

/// Not a rule: the other process. Each line that it reads is one step, and it prints a line with
/// the result.
#[test]
#[ignore = "the other process, which the tests start: cargo test -p cuda-driver-rules"]
fn peer() {
    assert_eq!(role().as_deref(), Some(PEER), "this is no test of its own");
    do_not_hang();
    #[cfg(unix)]
    if std::env::var_os("CONFORMANCE_OTHER_USER").is_some() {
        // SAFETY: this process gives up its rights before it does anything.
        assert_eq!(unsafe { setuid(65534) }, 0, "only root can become somebody else");
    }
    let rig = Rig::new("");
    let stream = rig.stream(NON_BLOCKING);
    let mut events: Vec<CUevent> = Vec::new();
    let mut latch = None;
    loop {
        let line = read_line();
        let mut words = line.split(' ');
        let (step, word) = (words.next().expect("a step"), words.next().unwrap_or_default());
        // Most steps use the last event, or the event with this number.
        let at = word.parse().unwrap_or(events.len().wrapping_sub(1));
        let event = || events[at];
        match step {
            "create" => {
                events.push(rig.event(word.parse().expect("flags")));
                say("created");
            }
            "export" => say(&to_hex(&rig.descriptor(event()))),
            "import" => {
                let (code, imported) = rig.open(from_hex(word).try_into().expect("64 bytes"));
                say(&code_text(code));
                events.extend((code == CUresult::CUDA_SUCCESS).then_some(imported));
            }
            "import-many" => say(&import_many(&rig, from_hex(word).try_into().expect("64 bytes"))),
            "import-flipped" => {
                say(&import_flipped(&rig, from_hex(word).try_into().expect("64 bytes")))
            }
            "hold" => {
                latch = Some(rig.hold(stream));
                say("held");
            }
            "release" => {
                drop(latch.take());
                say("released");
            }
            "record" => say(&code_text(rig.cuEventRecord(event(), stream))),
            "record-idle" => say(&code_text(rig.cuEventRecord(event(), rig.stream(NON_BLOCKING)))),
            "query" => say(&code_text(rig.cuEventQuery(event()))),
            "synchronize" => say(&code_text(rig.cuEventSynchronize(event()))),
            "wait" => say(&code_text(rig.cuStreamWaitEvent(stream, event(), 0))),
            "stream-query" => say(&code_text(rig.cuStreamQuery(stream))),
            "stream-synchronize" => say(&code_text(rig.cuStreamSynchronize(stream))),
            "destroy" => say(&code_text(rig.cuEventDestroy_v2(events.remove(at)))),
            "give-back" => say(&code_text(rig.cuDevicePrimaryCtxRelease_v2(rig.device))),
            "end" => break,
            "exit" => std::process::exit(0),
            other => panic!("{other:?} is no step"),
        }
    }
}

/// The other process.
pub struct Peer(Child);

impl Peer {
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    fn start_with(environment: &[(&str, &str)]) -> Self {
        Self(Child::start_with("peer", PEER, |command| {
            command.env("CUDA_SOFT_DRIVER", soft_settings("")).envs(environment.iter().copied());
        }))
    }

    /// Sends a step to the peer, and returns its result.
    #[track_caller]
    pub fn step(&mut self, step: &str) -> String {
        self.0.send(step);
        self.0.receive()
    }

    #[track_caller]
    fn import(&mut self, descriptor: &[u8; 64]) -> String {
        self.step(&format!("import {}", to_hex(descriptor)))
    }

    /// Makes the peer create an interprocess event, and returns the descriptor.
    #[track_caller]
    pub fn export(&mut self) -> [u8; 64] {
        self.step(&format!("create {INTERPROCESS}"));
        from_hex(&self.step("export")).try_into().expect("64 bytes")
    }

    #[track_caller]
    pub fn end(mut self) {
        self.0.send("end");
        self.0.finish();
    }

    /// Ends the peer without any cleanup.
    #[track_caller]
    fn exit(mut self) {
        self.0.send("exit");
        self.0.finish();
    }
}

/// Opens 3000 damaged and made-up descriptors, and returns the codes.
fn import_many(rig: &Rig, good: [u8; 64]) -> String {
    let mut seed = 0x9E37_79B9_7F4A_7C15_u64;
    let mut random = move || {
        // A xorshift: the same descriptors each time.
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let mut codes: Vec<CUresult> = Vec::new();
    for number in 0..3000 {
        let mut bytes = good;
        if number % 3 == 0 {
            bytes.fill_with(|| random() as u8);
        } else {
            for _ in 0..=number % 3 {
                bytes[random() as usize % 64] = random() as u8;
            }
        }
        if process(&bytes) == std::process::id() {
            // That has another result; see `opening_ones_own`.
            continue;
        }
        // An event that opens is not used: it may name a place outside the exporter's memory.
        let (code, _) = rig.open(bytes);
        if !codes.contains(&code) {
            codes.push(code);
        }
    }
    codes.sort_by_key(|code| code.0);
    codes.into_iter().map(code_text).collect::<Vec<_>>().join(", ")
}

/// Opens a descriptor once for each byte, with one bit of the byte changed. Returns the code for
/// each range of bytes.
fn import_flipped(rig: &Rig, good: [u8; 64]) -> String {
    let mut ranges: Vec<(CUresult, usize, usize)> = Vec::new();
    for at in 0..64 {
        let flipped = |bit: u32| {
            let mut bytes = good;
            bytes[at] ^= 0x80 >> bit;
            bytes
        };
        // The process must be another one, and must have no events.
        let other = |pid| pid != std::process::id() && files_of(pid).is_empty();
        let bytes = (0..8).map(flipped).find(|bytes| at > 3 || other(process(bytes)));
        // An event that opens is not used, as above.
        let (code, _) = rig.open(bytes.expect("a process without events"));
        match ranges.last_mut() {
            Some((last, _, to)) if *last == code => *to = at,
            _ => ranges.push((code, at, at)),
        }
    }
    let range = |(code, from, to): &(CUresult, usize, usize)| {
        format!("bytes {from} to {to} {}", code_text(*code))
    };
    ranges.iter().map(range).collect::<Vec<_>>().join(", ")
}

/// The process that a descriptor names.
fn process(descriptor: &[u8; 64]) -> u32 {
    u32::from_le_bytes([descriptor[0], descriptor[1], descriptor[2], descriptor[3]])
}

/// A descriptor that names another event of its context: the place is the word at byte 16.
fn at_place(mut descriptor: [u8; 64], place: u32) -> [u8; 64] {
    descriptor[16..20].copy_from_slice(&place.to_le_bytes());
    descriptor
}

fn place(descriptor: &[u8; 64]) -> u32 {
    u32::from_le_bytes([descriptor[16], descriptor[17], descriptor[18], descriptor[19]])
}

/// An event of the peer, opened here.
fn imported(rig: &Rig, peer: &mut Peer) -> CUevent {
    let (code, event) = rig.open(peer.export());
    must("cuIpcOpenEventHandle", code);
    event
}

/// The files in shared memory that are named after a process.
fn files_of(process: u32) -> Vec<std::path::PathBuf> {
    let names = [format!("{process}"), format!("{process:x}")];
    let files = std::fs::read_dir("/dev/shm")
        .map(|files| files.flatten().map(|file| file.path()).collect::<Vec<_>>());
    let is_exporters = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with("cuda")
            && name.split('.').any(|part| names.iter().any(|name| name == part))
    };
    files.unwrap_or_default().into_iter().filter(is_exporters).collect()
}

/// Like [`files_of`], for a process that starts later. The files of a killed process that had the
/// same number do not count.
fn files_of_new() -> impl Fn(u32) -> Vec<std::path::PathBuf> {
    let shared =
        || std::fs::read_dir("/dev/shm").into_iter().flatten().flatten().map(|file| file.path());
    let before: Vec<_> = shared().collect();
    move |process| files_of(process).into_iter().filter(|file| !before.contains(file)).collect()
}

/// The result of an importer that opens an event whose exporter has ended.
fn opened_late(when: &str, importer: &mut Peer, descriptor: &[u8; 64]) -> String {
    let opened = importer.import(descriptor);
    if opened == code_text(CUresult::CUDA_SUCCESS) {
        format!("{when} {opened}, query {}", importer.step("query"))
    } else {
        format!("{when} {opened}")
    }
}

/// The software driver reports what NVIDIA leaves undefined.
fn the_use_of_stale_imports() -> Result<(), String> {
    match TestDriver::chosen() {
        TestDriver::Native => Ok(()),
        _ => Err("misuse in the software driver".to_owned()),
    }
}

/// Queries an event, and reports the code with its occasion.
fn query(saw: &Saw, when: &str, rig: &Rig, event: CUevent) {
    saw.code(when, rig.cuEventQuery(event));
}

rules! {
    /// The attribute of the device for interprocess events is 1.
    [since(12, 0)]
    fn the_attribute(rig, saw) = "success, 1" {
        let mut value = 77;
        let attribute = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED;
        let code = rig.cuDeviceGetAttribute(&mut value, attribute, rig.device);
        saw.text(format_args!("{}, {value}", code_text(code)));
    }

    /// Only an interprocess event can be exported.
    fn exporting_an_ordinary_event(rig, saw) = "CUDA_ERROR_INVALID_HANDLE (400) from timing, no \
        timing, blocking" {
        let export = |flags| {
            rig.cuIpcGetEventHandle(&mut CUipcEventHandle { reserved: [0; 64] }, rig.event(flags))
        };
        saw.codes(&[
            ("timing", export(TIMING)),
            ("no timing", export(NO_TIMING)),
            ("blocking", export(3)),
        ]);
    }

    /// An export needs an event, and a place for the descriptor. If either is NULL, it returns
    /// `CUDA_ERROR_INVALID_VALUE`.
    fn exporting_nothing(rig, saw) = "CUDA_ERROR_INVALID_VALUE (1) from no place, NULL event" {
        saw.codes(&[
            ("no place", rig.cuIpcGetEventHandle(null_mut(), rig.event(INTERPROCESS))),
            (
                "NULL event",
                rig.cuIpcGetEventHandle(&mut CUipcEventHandle { reserved: [0; 64] }, null_mut()),
            ),
        ]);
    }

    /// An event has the same descriptor each time. No other event has that descriptor.
    fn descriptors(rig, saw) = "the same each time; another event's is another" {
        let (event, other) = (rig.event(INTERPROCESS), rig.event(INTERPROCESS));
        saw.holds("the same each time", rig.descriptor(event) == rig.descriptor(event));
        saw.holds("another event's is another", rig.descriptor(event) != rig.descriptor(other));
    }

    /// An interprocess event that also has the blocking flag can be exported.
    fn exporting_a_blocking_event(rig, saw) = "success" {
        let event = rig.event(INTERPROCESS | CU_EVENT_BLOCKING_SYNC);
        saw.text(code_text(rig.cuIpcGetEventHandle(&mut CUipcEventHandle { reserved: [0; 64] }, event)));
    }

    /// The exporting process cannot open its own descriptor.
    fn opening_ones_own(rig, saw) = "CUDA_ERROR_INVALID_CONTEXT (201)" {
        saw.text(code_text(rig.open(rig.descriptor(rig.event(INTERPROCESS))).0));
    }

    /// A descriptor of zeros cannot be opened: the call returns `CUDA_ERROR_MAP_FAILED`.
    fn opening_zeroes(rig, saw) = "CUDA_ERROR_MAP_FAILED (205)" {
        saw.text(code_text(rig.open([0; 64]).0));
    }

    /// A descriptor that names the wrong process cannot be opened: the call returns
    /// `CUDA_ERROR_MAP_FAILED`.
    fn opening_the_wrong_process(rig, saw) = "CUDA_ERROR_MAP_FAILED (205)" {
        let mut peer = Peer::start();
        let mut descriptor = peer.export();
        // No process has this number.
        descriptor[..4].copy_from_slice(&0x7FFF_FFF1_u32.to_le_bytes());
        saw.text(code_text(rig.open(descriptor).0));
        peer.end();
    }

    /// If the place for the imported event is NULL, the call returns `CUDA_ERROR_INVALID_VALUE`.
    fn opening_without_a_place(rig, saw) = "CUDA_ERROR_INVALID_VALUE (1)" {
        let mut peer = Peer::start();
        let handle = CUipcEventHandle { reserved: peer.export() };
        saw.text(code_text(rig.cuIpcOpenEventHandle(null_mut(), handle)));
        peer.end();
    }

    /// Opening a descriptor twice gives two events. Each of them is destroyed separately.
    fn opening_twice(rig, saw) =
        "success, success; two handles; destroy success; the other query success, destroy success"
    {
        let mut peer = Peer::start();
        let descriptor = peer.export();
        let [(first, one), (second, two)] = [rig.open(descriptor), rig.open(descriptor)];
        saw.text(format_args!("{}, {}", code_text(first), code_text(second)));
        saw.holds("two handles", one != two);
        saw.code("destroy", rig.cuEventDestroy_v2(one));
        saw.text(format_args!(
            "the other query {}, destroy {}",
            code_text(rig.cuEventQuery(two)),
            code_text(rig.cuEventDestroy_v2(two))
        ));
        peer.end();
    }

    /// An importer sees the exporter's record: the event is pending until the exporter's work is
    /// done.
    fn an_importer_sees_the_exporters_record(rig, saw) =
        "never recorded success; recorded CUDA_ERROR_NOT_READY (600); released success"
    {
        let mut peer = Peer::start();
        let event = imported(rig, &mut peer);
        query(saw, "never recorded", rig, event);
        peer.step("hold");
        peer.step("record");
        query(saw, "recorded", rig, event);
        peer.step("release");
        saw.code("released", rig.cuEventSynchronize(event));
        peer.end();
    }

    /// An importer's stream waits for the exporter's record.
    fn an_importers_stream_waits(rig, saw) = "wait success; CUDA_ERROR_NOT_READY (600); then \
        success" {
        let mut peer = Peer::start();
        let event = imported(rig, &mut peer);
        let stream = rig.stream(NON_BLOCKING);
        peer.step("hold");
        peer.step("record");
        saw.code("wait", rig.cuStreamWaitEvent(stream, event, 0));
        saw.text(code_text(rig.cuStreamQuery(stream)));
        peer.step("release");
        saw.code("then", rig.cuStreamSynchronize(stream));
        peer.end();
    }

    /// The exporter and other importers see an importer's record.
    fn an_importer_records(rig, saw) =
        "record success; the exporter CUDA_ERROR_NOT_READY (600), another importer \
         CUDA_ERROR_NOT_READY (600); released: the exporter success, another importer success"
    {
        let (mut peer, mut third) = (Peer::start(), Peer::start());
        let descriptor = peer.export();
        let (code, event) = rig.open(descriptor);
        must("cuIpcOpenEventHandle", code);
        third.import(&descriptor);
        let stream = rig.stream(NON_BLOCKING);
        let latch = rig.hold(stream);
        saw.code("record", rig.cuEventRecord(event, stream));
        saw.text(format_args!(
            "the exporter {}, another importer {}",
            peer.step("query"),
            third.step("query")
        ));
        latch.release();
        rig.synchronize(stream);
        saw.text(format_args!(
            "released: the exporter {}, another importer {}",
            peer.step("synchronize"),
            third.step("synchronize")
        ));
        third.end();
        peer.end();
    }

    /// The exporter's stream waits for an importer's record.
    fn the_exporters_stream_waits(rig, saw) = "wait success; CUDA_ERROR_NOT_READY (600); then \
        success" {
        let mut peer = Peer::start();
        let event = imported(rig, &mut peer);
        let stream = rig.stream(NON_BLOCKING);
        let latch = rig.hold(stream);
        rig.record(event, stream);
        saw.text(format_args!("wait {}", peer.step("wait")));
        saw.text(peer.step("stream-query"));
        latch.release();
        saw.text(format_args!("then {}", peer.step("stream-synchronize")));
        peer.end();
    }

    /// An imported event belongs to the context in which it was opened. It can be recorded only in
    /// streams of that context.
    fn an_import_is_of_a_context(rig, saw) =
        "in its context's stream success; in another's CUDA_ERROR_INVALID_HANDLE (400)"
    {
        let mut peer = Peer::start();
        let (event, other) = (imported(rig, &mut peer), rig.new_context());
        let theirs = rig.within(other, || rig.stream(NON_BLOCKING));
        saw.code("in its context's stream", rig.cuEventRecord(event, rig.stream(NON_BLOCKING)));
        saw.code("in another's", rig.cuEventRecord(event, theirs));
        peer.end();
    }

    /// An imported event can be recorded in the NULL stream.
    fn an_import_in_the_null_stream(rig, saw) = "record success; synchronize success" {
        let mut peer = Peer::start();
        let event = imported(rig, &mut peer);
        saw.code("record", rig.cuEventRecord(event, NULL_STREAM));
        saw.code("synchronize", rig.cuEventSynchronize(event));
        peer.end();
    }

    /// An imported event has no elapsed time.
    fn timing_an_import(rig, saw) = "CUDA_ERROR_INVALID_HANDLE (400) from twice, from, to" {
        let mut peer = Peer::start();
        let (event, own, stream) =
            (imported(rig, &mut peer), rig.event(TIMING), rig.stream(NON_BLOCKING));
        rig.record(event, stream);
        rig.record(own, stream);
        rig.synchronize(stream);
        saw.codes(&[
            ("twice", rig.elapsed_code(event, event)),
            ("from", rig.elapsed_code(event, own)),
            ("to", rig.elapsed_code(own, event)),
        ]);
        peer.end();
    }

    /// An imported event cannot be exported again.
    fn exporting_an_import(rig, saw) = "CUDA_ERROR_INVALID_HANDLE (400)" {
        let mut peer = Peer::start();
        let event = imported(rig, &mut peer);
        saw.text(code_text(rig.cuIpcGetEventHandle(&mut CUipcEventHandle { reserved: [0; 64] }, event)));
        peer.end();
    }

    /// Destroying an imported event does not change the exporter's event.
    fn destroying_an_import(rig, saw) = "destroy success; the exporter CUDA_ERROR_NOT_READY (600), \
        then success" {
        let mut peer = Peer::start();
        let event = imported(rig, &mut peer);
        peer.step("hold");
        peer.step("record");
        saw.code("destroy", rig.cuEventDestroy_v2(event));
        let pending = peer.step("query");
        peer.step("release");
        saw.text(format_args!("the exporter {pending}, then {}", peer.step("synchronize")));
        peer.end();
    }

    /// A context can have 4096 interprocess events. Creating one more returns
    /// `CUDA_ERROR_OUT_OF_MEMORY`.
    fn the_limit(rig, saw) = "4096, then CUDA_ERROR_OUT_OF_MEMORY (2); after one was destroyed \
        success" {
        let mut events = Vec::new();
        let code = loop {
            let mut event = null_mut();
            match rig.cuEventCreate(&mut event, INTERPROCESS) {
                CUresult::CUDA_SUCCESS => events.push(event),
                code => break code,
            }
            assert!(events.len() < 100_000, "there is no limit");
        };
        saw.text(format_args!("{}, then {}", events.len(), code_text(code)));
        must!(rig.cuEventDestroy_v2(events[0]));
        saw.code("after one was destroyed", rig.cuEventCreate(&mut events[0], INTERPROCESS));
        events.into_iter().for_each(|event| must!(rig.cuEventDestroy_v2(event)));
    }

    /// The limit of interprocess events applies to each context: when one context has no room for
    /// more, another context has.
    fn the_limit_is_of_a_context(rig, saw) = "in another context success" {
        let mut events = Vec::new();
        loop {
            let mut event = null_mut();
            if rig.cuEventCreate(&mut event, INTERPROCESS) != CUresult::CUDA_SUCCESS
                || events.len() > 100_000
            {
                break;
            }
            events.push(event);
        }
        let other = rig.new_context();
        saw.code(
            "in another context",
            rig.within(other, || rig.cuEventCreate(&mut null_mut(), INTERPROCESS)),
        );
        events.into_iter().for_each(|event| must!(rig.cuEventDestroy_v2(event)));
    }

    /// The place of a destroyed event goes to the next event, which then has the same descriptor.
    /// An earlier import then refers to the new event. NVIDIA leaves its use undefined.
    [needs(the_use_of_stale_imports)]
    fn a_place_is_used_again(rig, saw) =
        "the same descriptor; the old import, while the new event is pending CUDA_ERROR_NOT_READY \
            (600); then success"
    {
        let mut peer = Peer::start();
        let descriptor = peer.export();
        let (code, event) = rig.open(descriptor);
        must("cuIpcOpenEventHandle", code);
        peer.step("destroy");
        saw.holds("the same descriptor", peer.export() == descriptor);
        peer.step("hold");
        peer.step("record");
        query(saw, "the old import, while the new event is pending", rig, event);
        peer.step("release");
        peer.step("synchronize");
        query(saw, "then", rig, event);
        peer.end();
    }

    /// Damaged and made-up descriptors open or return `CUDA_ERROR_MAP_FAILED`. Opening them does no
    /// harm.
    fn damaged_descriptors(rig, saw) = "success, CUDA_ERROR_MAP_FAILED (205); afterwards success" {
        let mut peer = Peer::start();
        let event = rig.event(INTERPROCESS);
        saw.text(peer.step(&format!("import-many {}", to_hex(&rig.descriptor(event)))));
        let imported = peer.import(&rig.descriptor(event));
        saw.text(format_args!("afterwards {imported}"));
        peer.exit();
    }

    /// The driver uses the process, the context and the place in a descriptor. It checks the
    /// process and the context. A descriptor opens with any place, and with any values in the other
    /// bytes.
    fn changed_bits(rig, saw) =
        "bytes 0 to 3 CUDA_ERROR_MAP_FAILED (205), bytes 4 to 7 success, bytes 8 to 15 \
         CUDA_ERROR_MAP_FAILED (205), bytes 16 to 63 success"
    {
        let mut peer = Peer::start();
        saw.text(
            peer.step(&format!(
                "import-flipped {}",
                to_hex(&rig.descriptor(rig.event(INTERPROCESS)))
            )),
        );
        peer.exit();
    }

    /// A descriptor that has the place of another event names that event.
    fn the_place_of_another_event(rig, saw) =
        "success; the other event pending: by its place CUDA_ERROR_NOT_READY (600), without \
            success; then success"
    {
        let mut peer = Peer::start();
        let (one, two) = (peer.export(), peer.export());
        let ((_, plain), (code, mixed)) = (rig.open(one), rig.open(at_place(one, place(&two))));
        saw.text(code_text(code));
        peer.step("hold");
        peer.step("record");
        let codes = [mixed, plain].map(|event| code_text(rig.cuEventQuery(event)));
        saw.text(format_args!(
            "the other event pending: by its place {}, without {}",
            codes[0], codes[1]
        ));
        peer.step("release");
        saw.code("then", rig.cuEventSynchronize(mixed));
        peer.end();
    }

    /// An importer can record an event that was never exported, with a made-up descriptor.
    fn recording_by_a_made_up_descriptor(rig, saw) =
        "open success; record success; the exporter's events CUDA_ERROR_NOT_READY (600), success; \
            then success"
    {
        let mut peer = Peer::start();
        let exported = peer.export();
        peer.step(&format!("create {INTERPROCESS}"));
        // The driver assigns places from the last to the first.
        let (code, event) = rig.open(at_place(exported, place(&exported) - 1));
        saw.code("open", code);
        let stream = rig.stream(NON_BLOCKING);
        let latch = rig.hold(stream);
        saw.code("record", rig.cuEventRecord(event, stream));
        saw.text(format_args!(
            "the exporter's events {}, {}",
            peer.step("query 1"),
            peer.step("query 0")
        ));
        latch.release();
        rig.synchronize(stream);
        saw.text(format_args!("then {}", peer.step("synchronize 1")));
        peer.end();
    }

    /// If an exporter is killed, its unfinished record stays pending forever. Its descriptor can
    /// still be opened.
    fn a_killed_exporter(rig, saw) =
        "query CUDA_ERROR_NOT_READY (600); the stream that waits CUDA_ERROR_NOT_READY (600); \
         opened again success, CUDA_ERROR_NOT_READY (600)"
    {
        let mut peer = Peer::start();
        let descriptor = peer.export();
        // This needs a separate importer, because its stream never completes.
        let mut importer = Peer::start();
        importer.import(&descriptor);
        peer.step("hold");
        peer.step("record");
        importer.step("wait");
        peer.0.kill();
        saw.text(format_args!("query {}", importer.step("query")));
        saw.text(format_args!("the stream that waits {}", importer.step("stream-query")));
        let (code, again) = rig.open(descriptor);
        saw.text(format_args!("opened again {}, {}", code_text(code), code_text(rig.cuEventQuery(again))));
        importer.0.kill();
        // The killed processes left these files.
        for process in [peer.0.id(), importer.0.id()] {
            files_of(process).into_iter().for_each(|file| drop(std::fs::remove_file(file)));
        }
    }

    /// If an exporter destroyed its event, released its context and ended, a process that never had
    /// the event open cannot open it. A process that had the event open before can open it, even if
    /// that import was destroyed. The event is then done.
    fn an_exporter_that_ended_in_peace(rig, saw) =
        "never open CUDA_ERROR_MAP_FAILED (205); destroyed before success, query success; still \
         open success, query success"
    {
        let _ = rig;
        let mut peer = Peer::start();
        let descriptor = peer.export();
        let [mut never, mut destroyed, mut open] = [(); 3].map(|()| Peer::start());
        for importer in [&mut destroyed, &mut open] {
            assert_eq!(importer.import(&descriptor), code_text(CUresult::CUDA_SUCCESS));
        }
        assert_eq!(destroyed.step("destroy"), code_text(CUresult::CUDA_SUCCESS));
        for step in ["record", "synchronize", "destroy"] {
            assert_eq!(peer.step(step), code_text(CUresult::CUDA_SUCCESS), "{step}");
        }
        // When the peer ends, its rig releases the primary context for the last time.
        peer.end();
        saw.text(format_args!("never open {}", never.import(&descriptor)));
        for (when, importer) in [("destroyed before", &mut destroyed), ("still open", &mut open)] {
            let opened = importer.import(&descriptor);
            let query = if opened == code_text(CUresult::CUDA_SUCCESS) {
                importer.step("query")
            } else {
                String::new()
            };
            saw.text(format_args!("{when} {opened}, query {query}"));
        }
        [never, destroyed, open].into_iter().for_each(Peer::end);
    }

    /// If an exporter ended normally, a process that had one of its events open can open its other
    /// events, too, even if that import was destroyed. The opened event is done.
    fn other_events_after_a_peaceful_end(rig, saw) =
        "another was open success, query success; another is open success, query success; two \
         were open success, query success"
    {
        let _ = rig;
        let mut peer = Peer::start();
        let [wanted, another, third] = [(); 3].map(|()| peer.export());
        let [mut was, mut is, mut two] = [(); 3].map(|()| Peer::start());
        for importer in [&mut was, &mut is, &mut two] {
            assert_eq!(importer.import(&another), code_text(CUresult::CUDA_SUCCESS));
        }
        assert_eq!(two.import(&third), code_text(CUresult::CUDA_SUCCESS));
        for (importer, count) in [(&mut was, 1), (&mut two, 2)] {
            for _ in 0..count {
                assert_eq!(importer.step("destroy"), code_text(CUresult::CUDA_SUCCESS));
            }
        }
        for at in 0..3 {
            for step in ["record", "synchronize"] {
                let step = format!("{step} {at}");
                assert_eq!(peer.step(&step), code_text(CUresult::CUDA_SUCCESS), "{step}");
            }
        }
        for _ in 0..3 {
            assert_eq!(peer.step("destroy"), code_text(CUresult::CUDA_SUCCESS));
        }
        peer.end();
        let importers =
            [("another was open", was), ("another is open", is), ("two were open", two)];
        for (when, mut importer) in importers {
            saw.text(opened_late(when, &mut importer, &wanted));
            importer.end();
        }
    }

    /// If an exporter exits without the last release of its context, or is killed, its file in
    /// shared memory stays. Its events can then be opened in every process, and records that were
    /// complete are done.
    fn exporters_that_did_not_release(rig, saw) =
        "exit: never open success, query success; was open success, query success; is open \
         success, query success; killed: never open success, query success; was open success, \
         query success; is open success, query success"
    {
        let _ = rig;
        for end in ["exit", "killed"] {
            let mut peer = Peer::start();
            let descriptor = peer.export();
            let [never, mut was, mut is] = [(); 3].map(|()| Peer::start());
            for importer in [&mut was, &mut is] {
                assert_eq!(importer.import(&descriptor), code_text(CUresult::CUDA_SUCCESS));
            }
            assert_eq!(was.step("destroy"), code_text(CUresult::CUDA_SUCCESS));
            for step in ["record", "synchronize"] {
                assert_eq!(peer.step(step), code_text(CUresult::CUDA_SUCCESS), "{step}");
            }
            let process = peer.0.id();
            if end == "exit" {
                peer.exit();
            } else {
                peer.0.kill();
            }
            let importers = [("never open", never), ("was open", was), ("is open", is)];
            let output = importers.map(|(when, mut importer)| {
                let output = opened_late(when, &mut importer, &descriptor);
                importer.end();
                output
            });
            saw.text(format_args!("{end}: {}", output.join("; ")));
            // The killed processes left these files.
            files_of(process).into_iter().for_each(|file| drop(std::fs::remove_file(file)));
        }
    }

    /// For importers, an exporter that released its context and continues to run is the same as an
    /// exporter that has ended.
    fn an_exporter_that_released_and_goes_on(rig, saw) =
        "never open CUDA_ERROR_MAP_FAILED (205); was open success, query success; is open success, \
         query success"
    {
        let _ = rig;
        let mut peer = Peer::start();
        let descriptor = peer.export();
        let [never, mut was, mut is] = [(); 3].map(|()| Peer::start());
        for importer in [&mut was, &mut is] {
            assert_eq!(importer.import(&descriptor), code_text(CUresult::CUDA_SUCCESS));
        }
        assert_eq!(was.step("destroy"), code_text(CUresult::CUDA_SUCCESS));
        for step in ["record", "synchronize", "destroy", "give-back"] {
            assert_eq!(peer.step(step), code_text(CUresult::CUDA_SUCCESS), "{step}");
        }
        for (when, mut importer) in [("never open", never), ("was open", was), ("is open", is)] {
            saw.text(opened_late(when, &mut importer, &descriptor));
            importer.end();
        }
        peer.exit();
    }

    /// An importer's record does not replace the unfinished record of a killed exporter: the
    /// importer's stream waits for that record forever.
    fn recording_after_a_killed_exporter(rig, saw) =
        "record success; query CUDA_ERROR_NOT_READY (600); stream CUDA_ERROR_NOT_READY (600)"
    {
        let _ = rig;
        // Both are killed: the importer's stream would keep its context from being released.
        let (mut peer, mut importer) = (Peer::start(), Peer::start());
        importer.import(&peer.export());
        peer.step("hold");
        peer.step("record");
        peer.0.kill();
        for step in ["record", "query"] {
            saw.text(format_args!("{step} {}", importer.step(step)));
        }
        saw.text(format_args!("stream {}", importer.step("stream-query")));
        importer.0.kill();
        for process in [peer.0.id(), importer.0.id()] {
            files_of(process).into_iter().for_each(|file| drop(std::fs::remove_file(file)));
        }
    }

    /// An importer's record does not replace the unfinished record of a running exporter: the
    /// importer's stream waits for that record.
    fn recording_beside_the_exporter(rig, saw) =
        "record success; query CUDA_ERROR_NOT_READY (600); stream CUDA_ERROR_NOT_READY (600); \
         released: success, success"
    {
        let mut peer = Peer::start();
        let event = imported(rig, &mut peer);
        peer.step("hold");
        peer.step("record");
        let stream = rig.stream(NON_BLOCKING);
        saw.code("record", rig.cuEventRecord(event, stream));
        query(saw, "query", rig, event);
        saw.code("stream", rig.cuStreamQuery(stream));
        peer.step("release");
        let after = [rig.cuStreamSynchronize(stream), rig.cuEventSynchronize(event)].map(code_text);
        saw.text(format_args!("released: {}", after.join(", ")));
        peer.end();
    }

    /// The shared memory is a file that only its user can open. It exists from the first
    /// interprocess event on, and stays after a normal exit. The last release of the primary
    /// context removes it.
    #[cfg(target_os = "linux")]
    fn the_file(rig, saw) = "one file, mode 600; after exit one file; after the last release no \
        file" {
        use std::os::unix::fs::PermissionsExt;
        let _ = rig;
        let listed = |files: &[std::path::PathBuf]| match files.len() {
            0 => "no file".to_owned(),
            1 => "one file".to_owned(),
            count => format!("{count} files"),
        };
        let files_of = files_of_new();
        let mut peer = Peer::start();
        let process = peer.0.id();
        peer.export();
        let files = files_of(process);
        let mode = files
            .first()
            .and_then(|file| file.metadata().ok())
            .map_or(0, |file| file.permissions().mode() & 0o777);
        saw.text(format_args!("{}, mode {mode:o}", listed(&files)));
        peer.exit();
        let left = files_of(process);
        saw.text(format_args!("after exit {}", listed(&left)));
        left.into_iter().for_each(|file| drop(std::fs::remove_file(file)));

        let files_of = files_of_new();
        let mut peer = Peer::start();
        let process = peer.0.id();
        peer.export();
        // When the peer ends, its rig releases the primary context.
        peer.end();
        saw.text(format_args!("after the last release {}", listed(&files_of(process))));
    }

    /// The file in shared memory is created with the first interprocess event, before an export.
    #[cfg(target_os = "linux")]
    fn the_file_comes_with_the_event(rig, saw) =
        "before no file; an ordinary event no file; an interprocess event one file"
    {
        let _ = rig;
        let files_of = files_of_new();
        let mut peer = Peer::start();
        let process = peer.0.id();
        let counted = |count: usize| {
            if count == 0 {
                "no file".to_owned()
            } else {
                format!("{} file", if count == 1 { "one" } else { "more than one" })
            }
        };
        // After any result the peer has its context.
        peer.step("stream-query");
        saw.text(format_args!("before {}", counted(files_of(process).len())));
        peer.step(&format!("create {NO_TIMING}"));
        saw.text(format_args!("an ordinary event {}", counted(files_of(process).len())));
        peer.step(&format!("create {INTERPROCESS}"));
        saw.text(format_args!("an interprocess event {}", counted(files_of(process).len())));
        peer.end();
    }

    /// A process of another user cannot open a descriptor: the call returns
    /// `CUDA_ERROR_MAP_FAILED`.
    #[cfg(unix)]
    fn another_user(rig, saw) = "CUDA_ERROR_MAP_FAILED (205)" {
        // SAFETY: the call only reads the user id.
        if unsafe { geteuid() } != 0 {
            saw.text("not run: only root can become another user");
            return;
        }
        let event = rig.event(INTERPROCESS);
        let mut peer = Peer::start_with(&[("CONFORMANCE_OTHER_USER", "1")]);
        saw.text(peer.import(&rig.descriptor(event)));
        peer.end();
    }

    /// The exporter can continue to use its event after all importers have ended or were killed.
    fn importers_that_are_gone(rig, saw) = "record success; synchronize success" {
        let (event, stream) = (rig.event(INTERPROCESS), rig.stream(NON_BLOCKING));
        let descriptor = rig.descriptor(event);
        let (mut ended, mut killed) = (Peer::start(), Peer::start());
        ended.import(&descriptor);
        ended.end();
        killed.import(&descriptor);
        killed.0.kill();
        saw.code("record", rig.cuEventRecord(event, stream));
        saw.code("synchronize", rig.cuEventSynchronize(event));
    }
}
