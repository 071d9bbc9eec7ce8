//! Interprocess events between real processes. The child is this test binary again, in one of the
//! roles below.

#![cfg(any(target_os = "linux", windows))]

use crate::common;

use std::ptr::null_mut;

use common::*;
use cuda_events::sys::*;
use cuda_events_test_support::child::{Child, from_hex, read_line, role, say, to_hex};
use cuda_events_test_support::own_process;
use cuda_soft_driver::{OrderCheck, Rules, SoftDriver};

const IPC: u32 = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING;

fn export(raw: &Raw, event: CUevent) -> CUipcEventHandle {
    let mut handle = CUipcEventHandle { reserved: [0; 64] };
    assert_eq!(unsafe { (raw.cuIpcGetEventHandle)(&mut handle, event) }.0, OK);
    handle
}

fn open(raw: &Raw, handle: CUipcEventHandle) -> Result<CUevent, u32> {
    let mut event = null_mut();
    match unsafe { (raw.cuIpcOpenEventHandle)(&mut event, handle) }.0 {
        OK => Ok(event),
        code => Err(code),
    }
}

fn to_text(handle: &CUipcEventHandle) -> String {
    to_hex(&handle.reserved)
}

fn from_text(text: &str) -> CUipcEventHandle {
    CUipcEventHandle { reserved: from_hex(text).try_into().expect("a handle is of 64 bytes") }
}

/// A child process that does what `child` does in this role.
fn peer(role: &str) -> Child {
    Child::start("child", role)
}

/// What the child processes do.
#[test]
#[ignore = "another process, which the tests start: cargo test -p cuda-soft-driver --test \
    processes"]
fn child() {
    let role = role().expect("this is no test of its own");
    let rules =
        if std::env::var_os("SOFT_STRICT").is_some() { Rules::Strict } else { Rules::Faithful };
    let raw = Raw::with(SoftDriver::builder().rules(rules));
    let stream = raw.stream(1);
    match role.as_str() {
        // Tries descriptors until there are no more; says each result.
        "open" => loop {
            let line = read_line();
            if line.is_empty() {
                break;
            }
            match open(&raw, from_text(&line)) {
                Ok(event) => {
                    let code = raw.query(event);
                    assert_eq!(unsafe { (raw.cuEventDestroy_v2)(event) }.0, OK);
                    say(&format!("open {code}"));
                }
                Err(code) => say(format!("{code} {}", raw.soft.misuses().join("; ")).trim_end()),
            }
        },
        // Keeps imports, and says after each how many files are open.
        #[cfg(target_os = "linux")]
        "files" => loop {
            let line = read_line();
            if line.is_empty() {
                break;
            }
            open(&raw, from_text(&line)).unwrap();
            say(&held().to_string());
        },
        // Keeps one import and says what it shows, again and again.
        "keep" => {
            let event = open(&raw, from_text(&read_line())).unwrap();
            loop {
                say(&raw.query(event).to_string());
                if read_line().is_empty() {
                    break;
                }
            }
        }
        // Imports an event and makes the calls that it is sent; says each code, and the misuse.
        "uses" => {
            let event = open(&raw, from_text(&read_line())).unwrap();
            say("open");
            loop {
                let code = match read_line().as_str() {
                    "" => break,
                    "query" => raw.query(event),
                    "wait" => unsafe { (raw.cuStreamWaitEvent)(stream, event, 0) }.0,
                    "record" => unsafe { (raw.cuEventRecord)(event, stream) }.0,
                    "synchronize" => unsafe { (raw.cuEventSynchronize)(event) }.0,
                    "destroy" => unsafe { (raw.cuEventDestroy_v2)(event) }.0,
                    call => panic!("no call {call}"),
                };
                let misuse = raw.soft.misuses().pop().filter(|_| code == INVALID_HANDLE);
                say(format!("{code} {}", misuse.unwrap_or_default()).trim_end());
            }
        }
        // Exports an event that is never done, and waits to be killed.
        "export" => {
            let event = raw.event(IPC);
            let _latch = raw.latch(stream);
            raw.record(event, stream);
            say(&to_text(&export(&raw, event)));
            read_line();
        }
        // Has its stream wait for an event of somebody else, and records one of its own after that.
        "relay" => {
            let event = open(&raw, from_text(&read_line())).unwrap();
            let own = raw.event(IPC);
            say(&to_text(&export(&raw, own)));
            read_line();
            raw.wait(stream, event);
            raw.record(own, stream);
            say("relayed");
            read_line();
        }
        _ => panic!("no role {role}"),
    }
}

#[test]
fn the_drivers_drop_ends_a_wait_for_the_killed() {
    let mut peer = peer("export");
    let handle = from_text(&peer.receive());
    let raw = Raw::new();
    let (stream, event) = (raw.stream(1), open(&raw, handle).unwrap());
    peer.kill();
    raw.wait(stream, event);
    let release = raw.cuDevicePrimaryCtxRelease_v2;
    let released = begin(move || unsafe { release(0) }.0);
    while raw.soft.waiting_for_work() == 0 {
        assert!(!released.is_finished(), "it did not wait");
        std::thread::yield_now();
    }
    drop(raw);
    assert_eq!(released.join(), DEINITIALIZED);
}

/// What an importer of the default rules gets from a driver of another process, after the exporter
/// has destroyed the event.
#[test]
fn an_import_of_a_destroyed_event_is_misuse() {
    let raw = Raw::new();
    let first = raw.event(IPC);
    let handle = export(&raw, first);
    let [mut query, mut wait, mut late] = [peer("uses"), peer("uses"), peer("uses")];
    for peer in [&mut query, &mut wait] {
        peer.send(&to_text(&handle));
        assert_eq!(peer.receive(), "open");
        peer.send("query");
        assert_eq!(peer.receive(), OK.to_string());
    }
    assert_eq!(unsafe { (raw.cuEventDestroy_v2)(first) }.0, OK);
    let named = format!(
        "is an import of slot 4095 of context {} of process {}, whose event the exporter \
         destroyed; the slot",
        handle.reserved[8],
        std::process::id()
    );
    let refused = |peer: &mut Child, call: &str, taken: &str| {
        peer.send(call);
        let printed = peer.receive();
        assert!(printed.starts_with("400 cu"), "{printed}");
        assert!(printed.ends_with(&format!("{named} {taken} now")), "{printed}");
    };
    refused(&mut query, "query", "is free");
    // In its slot there is another event, whose descriptor has the same bytes.
    let second = raw.event(IPC);
    assert_eq!(export(&raw, second).reserved, handle.reserved);
    refused(&mut query, "query", "has another event");
    for call in ["wait", "record", "synchronize"] {
        refused(&mut wait, call, "has another event");
    }
    late.send(&to_text(&handle));
    assert_eq!(late.receive(), "open");
    late.send("query");
    assert_eq!(late.receive(), OK.to_string(), "it is an import of the second event");
    // Each of them can be destroyed.
    for mut peer in [query, wait] {
        peer.send("destroy");
        assert_eq!(peer.receive(), OK.to_string());
        peer.send("");
        peer.finish();
    }
    // After the exporter's context has ended in peace, the event is done: this was measured.
    assert_eq!(unsafe { (raw.cuEventDestroy_v2)(second) }.0, OK);
    assert_eq!(unsafe { (raw.cuDevicePrimaryCtxRelease_v2)(0) }.0, OK);
    late.send("query");
    assert_eq!(late.receive(), OK.to_string());
    late.send("");
    late.finish();
}

/// An import of a slot that is free is of the next event there.
#[test]
fn an_import_of_a_free_slot_has_its_next_event() {
    let raw = Raw::new();
    let event = raw.event(IPC);
    let handle = export(&raw, event);
    assert_eq!(unsafe { (raw.cuEventDestroy_v2)(event) }.0, OK);
    let mut peer = peer("uses");
    peer.send(&to_text(&handle));
    assert_eq!(peer.receive(), "open");
    let next = raw.event(IPC);
    assert_eq!(export(&raw, next).reserved, handle.reserved);
    let (stream, ask) = (raw.stream(1), |peer: &mut Child| {
        peer.send("query");
        peer.receive()
    });
    assert_eq!(ask(&mut peer), OK.to_string());
    let latch = raw.latch(stream);
    raw.record(next, stream);
    assert_eq!(ask(&mut peer), NOT_READY.to_string());
    latch.release();
    raw.sync(stream);
    assert_eq!(ask(&mut peer), OK.to_string());
    peer.send("");
    peer.finish();
}

fn strict(role: &str) -> Child {
    Child::start_with("child", role, |command| {
        command.env("SOFT_STRICT", "1");
    })
}

#[test]
fn strict_rules_distinguish_the_events_of_a_slot() {
    let raw = Raw::with(SoftDriver::builder().rules(Rules::Strict));
    let first = raw.event(IPC);
    let handle = export(&raw, first);
    let mut peer = strict("keep");
    peer.send(&to_text(&handle));
    assert_eq!(peer.receive(), "0");
    assert_eq!(unsafe { (raw.cuEventDestroy_v2)(first) }.0, OK);
    peer.send("?");
    assert_eq!(peer.receive(), INVALID_HANDLE.to_string(), "destroyed, and nothing in its place");
    let second = raw.event(IPC);
    assert_ne!(export(&raw, second).reserved, handle.reserved);
    peer.send("?");
    assert_eq!(peer.receive(), INVALID_HANDLE.to_string());
    peer.send("");
    peer.finish();

    // A descriptor that comes late is told of, like an import that went stale.
    let mut late = strict("open");
    late.send(&to_text(&handle));
    let named =
        format!("slot 4095 of context {} of process {}", handle.reserved[8], std::process::id());
    let gone = "whose event the exporter destroyed; the slot";
    assert_eq!(
        late.receive(),
        format!(
            "400 cuIpcOpenEventHandle: the descriptor names {named}, {gone} has another event now"
        )
    );
    late.send(&to_text(&export(&raw, second)));
    assert_eq!(late.receive(), "open 0");
    late.send("");
    late.finish();
    let handle = export(&raw, second);
    assert_eq!(unsafe { (raw.cuEventDestroy_v2)(second) }.0, OK);
    let mut late = strict("open");
    late.send(&to_text(&handle));
    assert!(late.receive().ends_with(&format!("{gone} is free now")));
    late.send("");
    late.finish();
}

#[test]
fn strict_rules_find_a_stale_import() {
    let raw = Raw::with(SoftDriver::builder().rules(Rules::Strict));
    let mut event = raw.event(IPC);
    let handle = export(&raw, event);
    let mut peer = strict("keep");
    peer.send(&to_text(&handle));
    assert_eq!(peer.receive(), "0");
    let (mut asked, mut late) = (Vec::new(), strict("open"));
    for reuse in 1..=65_537_u32 {
        assert_eq!(unsafe { (raw.cuEventDestroy_v2)(event) }.0, OK);
        event = raw.event(IPC);
        // Where a counter of 15 or 16 bits would come round.
        if [32_767, 32_768, 65_535, 65_536].contains(&reuse) {
            peer.send("?");
            late.send(&to_text(&handle));
            asked.push((peer.receive(), late.receive().starts_with("400 cuIpcOpenEventHandle")));
        }
    }
    assert_eq!(asked, vec![(INVALID_HANDLE.to_string(), true); 4]);
    for mut peer in [peer, late] {
        peer.send("");
        peer.finish();
    }
}

#[test]
fn a_damaged_descriptor_opens_and_is_reported() {
    let raw = Raw::new();
    let mut handle = export(&raw, raw.event(IPC));
    // Nothing but process, context and slot counts.
    handle.reserved[4..8].fill(0xA5);
    handle.reserved[20..].fill(0xA5);
    let mut peer = peer("open");
    peer.send(&to_text(&handle));
    assert_eq!(peer.receive(), "open 0");
    // Of the strict rules everything counts.
    let mut strict = strict("open");
    strict.send(&to_text(&handle));
    assert_eq!(strict.receive(), "205");
    // A slot that the exporter's memory does not have.
    handle.reserved[17] ^= 0x80;
    peer.send(&to_text(&handle));
    assert_eq!(peer.receive(), "open 400");
    for mut peer in [peer, strict] {
        peer.send("");
        peer.finish();
    }
}

#[test]
fn slots_are_as_many_as_configured() {
    let mut event = null_mut();
    let few = Raw::with(SoftDriver::builder().ipc_slots(2));
    few.event(IPC);
    few.event(IPC);
    assert_eq!(unsafe { (few.cuEventCreate)(&mut event, IPC) }.0, OUT_OF_MEMORY);
    let none = Raw::with(SoftDriver::builder().ipc(false));
    assert_eq!(unsafe { (none.cuEventCreate)(&mut event, IPC) }.0, NOT_SUPPORTED);
}

/// On Windows a section has no file, and goes with its last handle.
#[cfg(windows)]
fn files_of(_process: u32) -> [std::path::PathBuf; 0] {
    []
}

#[cfg(target_os = "linux")]
fn files_of(process: u32) -> Vec<std::path::PathBuf> {
    let prefix = format!("cuda-soft-driver.{process}.");
    let files = std::fs::read_dir("/dev/shm").unwrap().map(|file| file.unwrap().path());
    files.filter(|file| file.file_name().unwrap().to_str().unwrap().starts_with(&prefix)).collect()
}

/// How many files of exporters this process has open.
#[cfg(target_os = "linux")]
fn held() -> usize {
    let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let open = open.filter_map(|file| std::fs::read_link(file.path()).ok());
    open.filter(|file| file.to_str().unwrap().contains("/cuda-soft-driver.")).count()
}

/// The events of one exporter are in one file, which an importer opens once.
#[cfg(target_os = "linux")]
#[test]
fn an_importer_opens_an_exporters_file_once() {
    let raw = Raw::new();
    let mut peer = peer("files");
    for event in [raw.event(IPC), raw.event(IPC)] {
        for _ in 0..2 {
            peer.send(&to_text(&export(&raw, event)));
            assert_eq!(peer.receive(), "1");
        }
    }
    peer.send("");
    peer.finish();
}

/// A process that lives long and imports from one short one after the other.
#[cfg(target_os = "linux")]
#[test]
fn an_importer_keeps_few_files_of_dead_exporters() {
    own_process!();
    const MOST: usize = 17;
    let raw = Raw::new();
    let mut killed = Vec::new();
    for number in 1..=MOST + 3 {
        let mut peer = peer("export");
        let handle = from_text(&peer.receive());
        let mut event = null_mut();
        assert_eq!(unsafe { (raw.cuIpcOpenEventHandle)(&mut event, handle) }.0, OK);
        assert_eq!(unsafe { (raw.cuEventDestroy_v2)(event) }.0, OK);
        assert!(held() <= number.min(MOST), "{} files after {number}", held());
        killed.push(peer.id());
        peer.kill();
    }
    assert_eq!(held(), MOST);
    // What it still has open is removed at its end; what the others left, by the next process an
    // hour later.
    drop(raw);
    let left = |killed: &[u32]| killed.iter().filter(|id| !files_of(**id).is_empty()).count();
    assert_eq!(left(&killed[3..]), 0);
    for file in killed.iter().flat_map(|id| files_of(*id)) {
        std::fs::remove_file(file).unwrap();
    }
}

/// A file that is old enough, and nobody's: nobody holds its lock.
#[cfg(target_os = "linux")]
fn stale(name: &str) -> std::path::PathBuf {
    let left = std::path::Path::new("/dev/shm").join(name);
    make_old(&std::fs::File::create(&left).unwrap());
    left
}

#[cfg(target_os = "linux")]
fn make_old(file: &std::fs::File) {
    let then = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    file.set_modified(then).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn what_dead_exporters_left_is_swept_up() {
    own_process!();
    let recent = std::path::Path::new("/dev/shm/cuda-soft-driver.1.0.recent");
    std::fs::File::create(recent).unwrap();
    // A killed exporter's file, as it is an hour later.
    let mut killed = peer("export");
    let handle = killed.receive();
    killed.kill();
    let [of_killed] = &files_of(killed.id())[..] else { panic!("one file") };
    make_old(&std::fs::File::options().append(true).open(of_killed).unwrap());

    // By who makes one, each time.
    let raw = Raw::new();
    for name in ["cuda-soft-driver.1.0.first", "cuda-soft-driver.1.0.second"] {
        let left = stale(name);
        let mut context = null_mut();
        unsafe {
            assert_eq!((raw.cuCtxCreate_v2)(&mut context, 0, 0).0, OK);
            raw.event(IPC);
            assert_eq!((raw.cuCtxDestroy_v2)(context).0, OK);
        }
        assert!(!left.exists(), "{name}");
    }
    // It was alive or young.
    assert!(recent.exists());
    assert!(!of_killed.exists());

    // By who only opens one, or finds none.
    let left = stale("cuda-soft-driver.1.0.third");
    let mut importer = peer("open");
    importer.send(&handle);
    assert_eq!(importer.receive(), "205");
    assert!(!left.exists());
    let left = stale("cuda-soft-driver.1.0.fourth");
    let event = raw.event(IPC);
    importer.send(&to_text(&export(&raw, event)));
    assert_eq!(importer.receive(), format!("open {OK}"));
    assert!(!left.exists());
    // The living exporter's own file is as old, and stays.
    let nonce: String =
        export(&raw, event).reserved[32..48].iter().map(|byte| format!("{byte:02x}")).collect();
    let mine = files_of(std::process::id());
    let mine = mine.iter().find(|file| file.to_str().unwrap().ends_with(&nonce)).unwrap();
    make_old(&std::fs::File::options().append(true).open(mine).unwrap());
    importer.send(&handle);
    assert_eq!(importer.receive(), "205");
    assert!(mine.exists());
    importer.send("");
    importer.finish();
    std::fs::remove_file(recent).unwrap();
}

/// Another process can make an order, of which only its two ends are seen here: nothing is reported
/// that it may have ordered. What it cannot have ordered is, and the report says what is not known.
#[test]
fn the_order_of_another_process_is_taken_for_order() {
    own_process!();
    let (mut near, mut far) = (peer("relay"), peer("export"));
    let raw = Raw::planting(SoftDriver::builder().check_order(OrderCheck::Report));
    let [one, two, three] = [(); 3].map(|()| raw.stream(1));
    let event = raw.event(IPC);
    near.send(&to_text(&export(&raw, event)));
    let relayed = open(&raw, from_text(&near.receive())).unwrap();
    let mut memory = 0;
    assert_eq!(unsafe { (raw.cuMemAlloc_v2)(&mut memory, 8192) }.0, OK);
    let set = |stream, at: u64| {
        assert_eq!(unsafe { (raw.cuMemsetD8Async)(memory + at, 1, 64, stream) }.0, OK);
        raw.soft.calls()
    };
    let found = || order_texts(&raw.soft);

    // From here to there and back: the other process's stream has waited.
    // While the function runs the host is after nothing that comes after it.
    let latch = raw.latch(one);
    set(one, 0);
    set(one, 2048);
    raw.record(event, one);
    near.send("go on");
    assert_eq!(near.receive(), "relayed");
    raw.wait(two, relayed);
    let waited = raw.soft.calls();
    set(two, 0);
    // What is done after the record, no other process orders.
    let first = set(one, 4096);
    let second = set(two, 4096);
    // A stream that has not waited for the other process is told nothing of it.
    let third = set(three, 2048);
    latch.release();
    assert_eq!(unsafe { (raw.cuCtxSynchronize)() }.0, OK);
    let reports = found();
    assert_eq!(reports.len(), 2, "{reports:?}");
    let report_of = |number: u64| {
        let call = format!(", call #{number}\n");
        reports.iter().find(|report| report.contains(&call)).expect("it is reported")
    };
    for part in [
        &format!("call #{first} (cuMemsetD8Async) writes") as &str,
        &format!("waited for interprocess event {:#x} in call #{waited} (", relayed.addr()),
        "whose records by other processes are unknown here",
    ] {
        assert_eq!(report_of(second).matches("interprocess").count(), 1, "{}", report_of(second));
        assert!(report_of(second).contains(part), "{part}\n{}", report_of(second));
    }
    assert!(!report_of(third).contains("interprocess"), "{}", report_of(third));

    // The host waits for the other process: then it is after what was recorded here.
    let [one, two] = [(); 2].map(|()| raw.stream(1));
    set(one, 2048);
    raw.record(event, one);
    assert_eq!(unsafe { (raw.cuEventSynchronize)(relayed) }.0, OK);
    set(two, 2048);
    assert_eq!(found().len(), 2);
    near.send("");
    near.finish();

    // A peer that was killed has ordered nothing by itself: its import was never recorded here.
    let dead = open(&raw, from_text(&far.receive())).unwrap();
    far.kill();
    set(one, 6144);
    raw.wait(two, dead);
    set(two, 6144);
    assert_eq!(found().len(), 3);
    for file in files_of(far.id()) {
        std::fs::remove_file(file).unwrap();
    }
}
