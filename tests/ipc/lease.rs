//! The exporter's lease and the importer's look at the exporter, between real processes.

use crate::common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use common::child::{self, Child, starts_are_made_up};
use common::counting::{calls, counted_context};
use common::futures::wait_until;
use common::{Gpu, Latch};
use cuda_events::ext::IpcLease;
use cuda_events::ipc::{ExporterProcess, ExporterState};
use cuda_events::sys::Function;
use cuda_events::{Context, Error, Event, EventFlags, IpcEventDescriptor, Progress};

fn import(context: &Context, line: &str) -> (Event, ExporterProcess) {
    let descriptor: IpcEventDescriptor = line.parse().expect("the exporter's descriptor");
    let exporter = ExporterProcess::of(&descriptor);
    assert_eq!(exporter.pid(), descriptor.exporter_pid());
    assert_running(&exporter);
    // SAFETY: the exporter keeps the event until this process says that it is done, or is killed.
    (
        unsafe { Event::from_ipc_descriptor(context, &descriptor) }.expect("the event opens"),
        exporter,
    )
}

/// Longer than anything here takes: for what would go on forever if it went wrong.
const LONG: Duration = Duration::from_secs(60);

/// Waits until something is so.
#[track_caller]
fn until(mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < LONG, "it does not come");
        std::thread::yield_now();
    }
}

#[track_caller]
fn assert_running(exporter: &ExporterProcess) {
    let seen = cfg!(any(target_os = "linux", windows));
    let state = if seen { ExporterState::Running } else { ExporterState::Unknown };
    assert_eq!(exporter.state(), state);
}

#[track_caller]
fn wait_for_end(exporter: &ExporterProcess) {
    until(|| exporter.state() != ExporterState::Running);
    assert_eq!(exporter.state(), ExporterState::Ended);
}

#[test]
fn the_event_lives_as_long_as_a_lease() {
    if starts_are_made_up() {
        return;
    }
    const NAME: &str = "the_event_lives_as_long_as_a_lease";
    if child::role().is_some() {
        let gpu = Gpu::new();
        let (event, exporter) = import(&gpu.context, &child::read_line());
        child::say("opened");
        assert_eq!(child::read_line(), "recorded, and the exporter's own handle dropped");
        event.synchronize().expect("the exporter released the work");
        assert_running(&exporter);
        drop(event);
        child::say("done");
        return;
    }
    let gpu = Gpu::new();
    let stream = gpu.stream();
    let event = Arc::new(Event::new(&gpu.context, EventFlags::INTERPROCESS).expect("an event"));
    let lease = IpcLease::new(Arc::clone(&event)).expect("a lease");
    let mut importer = Child::start(NAME, "importer");
    importer.send(&lease.descriptor().to_string());
    assert_eq!(importer.receive(), "opened");
    let latch = Latch::hold(&stream);
    event.record(&stream).expect("a record");
    let alive = Arc::downgrade(&event);
    drop(event);
    importer.send("recorded, and the exporter's own handle dropped");
    latch.release();
    assert_eq!(importer.receive(), "done");
    assert!(alive.upgrade().is_some(), "the lease keeps it");
    lease.synchronize().expect("the work is done");
    drop(lease);
    assert!(alive.upgrade().is_none());
    importer.finish();
}

#[test]
#[cfg(target_os = "linux")]
fn an_exporter_may_have_any_name() {
    const NAME: &str = "/proc/self/comm";
    let gpu = Gpu::new();
    let event = Event::new(&gpu.context, EventFlags::INTERPROCESS).expect("an event");
    let descriptor = event.ipc_descriptor().expect("a descriptor");
    let exporter = ExporterProcess::of(&descriptor);
    let before = std::fs::read(NAME).expect("a name");
    // Longer names are cut to 15 bytes, which may be within a character.
    for name in [&b"\xff\xfe"[..], b"a) Z 1 (b", "обмен-событиями".as_bytes()] {
        std::fs::write(NAME, name).expect("a process may name itself");
        assert_eq!(exporter.state(), ExporterState::Running, "{name:?}");
        assert_eq!(ExporterProcess::of(&descriptor).state(), ExporterState::Running, "{name:?}");
    }
    std::fs::write(NAME, before).expect("a process may name itself");
}

#[test]
fn only_what_can_be_exported_can_be_lent() {
    let gpu = Gpu::new();
    let event = Arc::new(Event::new(&gpu.context, EventFlags::TIMING).expect("an event"));
    assert_eq!(IpcLease::new(event).err(), Some(Error::NotInterprocess));
}

/// In the exporter: an event that is pending, behind a latch.
fn export(gpu: &Gpu) -> (Event, Latch) {
    let stream = gpu.stream();
    let event = Event::new(&gpu.context, EventFlags::INTERPROCESS).expect("an event");
    let latch = Latch::hold(&stream);
    event.record(&stream).expect("a record");
    child::say(&event.ipc_descriptor().expect("a descriptor").to_string());
    (event, latch)
}

#[test]
#[cfg(any(target_os = "linux", windows))]
fn an_importer_sees_that_the_exporter_was_killed() {
    if starts_are_made_up() {
        return;
    }
    const NAME: &str = "an_importer_sees_that_the_exporter_was_killed";
    if child::role().is_some() {
        let gpu = Gpu::new();
        let _pending = export(&gpu);
        // Until it is killed.
        child::read_line();
        unreachable!("the parent kills this process");
    }
    let gpu = Gpu::new();
    let context = counted_context(gpu.driver);
    let mut exporter_process = Child::start(NAME, "exporter");
    let sent = exporter_process.receive();
    let (event, exporter) = import(&context, &sent);
    assert_eq!(exporter.pid(), Some(exporter_process.id()));
    assert_eq!(event.query(), Ok(Progress::Pending));
    let (waited, made) = calls(|| exporter.wait_for(&event, Duration::ZERO));
    assert_eq!((waited, made), (Ok(Progress::Pending), vec![Function::cuEventQuery]));
    assert_running(&exporter);

    // A wait ends with the exporter.
    let waited = std::thread::scope(|scope| {
        scope.spawn(|| exporter_process.kill_only());
        exporter.wait_for(&event, LONG)
    });
    assert_eq!(waited, Err(Error::ExporterGone));
    // It has ended, and is a zombie.
    assert_eq!(exporter.state(), ExporterState::Ended);
    // Also for one who looks only now, once the last thread has ended: a real driver has some.
    let late: IpcEventDescriptor = sent.parse().expect("a descriptor");
    wait_until("the last thread ends", || {
        ExporterProcess::of(&late).state() == ExporterState::Ended
    });
    exporter_process.kill();
    assert_eq!(exporter.state(), ExporterState::Ended);
    let (waited, made) = calls(|| exporter.wait_for(&event, LONG));
    assert_eq!(
        (waited, made),
        (Err(Error::ExporterGone), vec![Function::cuEventQuery]),
        "one look, and no wait"
    );
    assert_eq!(
        event.synchronize_timeout(Duration::from_millis(10)),
        Ok(Progress::Pending),
        "nobody completes it"
    );
    // A process that is not seen may be hidden. Its number may have been given away meanwhile.
    assert!(matches!(
        ExporterProcess::of(&late).state(),
        ExporterState::Unknown | ExporterState::Ended
    ));
}

/// A descriptor that says that a process of this number exported it.
#[cfg(target_os = "linux")]
fn of_process(pid: u32) -> IpcEventDescriptor {
    use std::os::unix::fs::MetadataExt;

    let namespace = |kind: &str| {
        let file = std::fs::metadata(format!("/proc/self/ns/{kind}"));
        file.map_or(0, |file| u32::try_from(file.ino()).expect("32 bits")).to_le_bytes()
    };
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .expect("a boot id")
        .replace('-', "");
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it is there");
    let (_, fields) = status.rsplit_once(") ").expect("a name");
    let started: u64 = fields.split(' ').nth(19).expect("field 22").parse().expect("a number");
    let raw = IpcEventDescriptor::from_raw([0; 64], false);
    let descriptor = changed(&raw, |bytes| {
        bytes[6] = 2;
        bytes[8..12].copy_from_slice(&pid.to_le_bytes());
        bytes[28..36].copy_from_slice(&started.to_le_bytes());
        bytes[36..40].copy_from_slice(&namespace("pid"));
        bytes[40..44].copy_from_slice(&namespace("time"));
        bytes[44..60]
            .copy_from_slice(&u128::from_str_radix(boot.trim(), 16).expect("a UUID").to_be_bytes());
    });
    assert_eq!(descriptor.exporter_pid(), Some(pid));
    descriptor
}

/// The descriptor with other bytes and the check value that fits.
#[cfg(any(target_os = "linux", windows))]
fn changed(descriptor: &IpcEventDescriptor, change: impl FnOnce(&mut [u8])) -> IpcEventDescriptor {
    let mut bytes = descriptor.to_bytes();
    let (body, check) = bytes.split_last_chunk_mut::<4>().expect("it is longer");
    change(body);
    *check = crc32fast::hash(body).to_le_bytes();
    IpcEventDescriptor::from_bytes(&bytes).expect("the check value fits")
}

/// This process stands for one that has got the number of an exporter that ended.
#[test]
#[cfg(any(target_os = "linux", windows))]
fn a_later_process_with_the_number_is_another_one() {
    let gpu = Gpu::new();
    let context = counted_context(gpu.driver);
    let stream = gpu.stream();
    let event = Event::new(&context, EventFlags::INTERPROCESS).expect("an event");
    let latch = Latch::hold(&stream);
    event.record(&stream).expect("a record");
    let own = event.ipc_descriptor().expect("a descriptor");
    for by in [1, -1, 1 << 40] {
        let earlier = changed(&own, |bytes| {
            let started = &mut bytes[28..36];
            let ticks = i64::from_le_bytes(started.try_into().expect("eight bytes"));
            started.copy_from_slice(&(ticks + by).to_le_bytes());
        });
        let exporter = ExporterProcess::of(&earlier);
        assert_eq!(
            (exporter.pid(), exporter.state()),
            (Some(std::process::id()), ExporterState::Ended),
            "{by}"
        );
        let (waited, made) = calls(|| exporter.wait_for(&event, LONG));
        assert_eq!(
            (waited, made),
            (Err(Error::ExporterGone), vec![Function::cuEventQuery]),
            "one look, and no wait"
        );
    }
    latch.release();
}

/// There the number means another process, or none, and the start time another moment.
#[test]
#[cfg(any(target_os = "linux", windows))]
fn an_exporter_elsewhere_has_no_state() {
    let gpu = Gpu::new();
    let event = Event::new(&gpu.context, EventFlags::INTERPROCESS).expect("an event");
    let own = event.ipc_descriptor().expect("a descriptor");
    assert_eq!(ExporterProcess::of(&own).state(), ExporterState::Running);
    for (what, byte) in
        [("the pid namespace", 36), ("the time namespace", 40), ("the boot", 44), ("the boot", 59)]
    {
        let elsewhere = changed(&own, |bytes| bytes[byte] ^= 1);
        assert_eq!(ExporterProcess::of(&elsewhere).state(), ExporterState::Unknown, "{what}");
        // Whatever its start time.
        let elsewhere = changed(&elsewhere, |bytes| bytes[28] ^= 1);
        assert_eq!(ExporterProcess::of(&elsewhere).state(), ExporterState::Unknown, "{what}");
    }
    let unknown = changed(&own, |bytes| bytes[28..36].fill(0));
    assert_eq!(
        ExporterProcess::of(&unknown).state(),
        ExporterState::Unknown,
        "the exporter could not tell"
    );
}

#[test]
#[cfg(any(target_os = "linux", windows))]
fn what_an_exporter_completed_is_done_after_its_end() {
    if starts_are_made_up() {
        return;
    }
    const NAME: &str = "what_an_exporter_completed_is_done_after_its_end";
    if child::role().is_some() {
        let gpu = Gpu::new();
        let (event, latch) = export(&gpu);
        child::read_line();
        latch.release();
        event.synchronize().expect("the work is released");
        // Its event is not destroyed before the importer has looked.
        std::process::exit(0);
    }
    let gpu = Gpu::new();
    let mut exporter_process = Child::start(NAME, "exporter");
    let (event, exporter) = import(&gpu.context, &exporter_process.receive());
    assert_eq!(event.query(), Ok(Progress::Pending));
    exporter_process.send("complete, and end");
    wait_for_end(&exporter);
    assert_eq!(exporter.wait_for(&event, Duration::ZERO), Ok(Progress::Done));
    exporter_process.finish();
}

#[test]
#[cfg(target_os = "linux")]
fn an_exporter_that_becomes_another_program_has_ended() {
    if starts_are_made_up() {
        return;
    }
    use std::os::unix::process::CommandExt;

    const NAME: &str = "an_exporter_that_becomes_another_program_has_ended";
    match child::role().as_deref() {
        Some("exporter") => {
            let gpu = Gpu::new();
            let _pending = export(&gpu);
            child::read_line();
            // The very same program, with the same arguments and as much of an environment.
            let mut command =
                child::command(&child::own_binary(), &child::full_name(NAME), "replaced");
            panic!("{}", command.exec());
        }
        Some(_) => {
            child::say("replaced");
            child::read_line();
            return;
        }
        None => {}
    }
    let mut exporter_process = Child::start(NAME, "exporter");
    let descriptor: IpcEventDescriptor = exporter_process.receive().parse().expect("a descriptor");
    let exporter = ExporterProcess::of(&descriptor);
    assert_eq!(exporter.state(), ExporterState::Running);
    exporter_process.send("exec");
    assert_eq!(exporter_process.receive(), "replaced");
    // The memory that it had is gone when the last part of the system has let go of it: on a busy
    // machine with two cards that was seen to be after the new program's first line.
    wait_for_end(&exporter);
    // It is the process that it was, by its number.
    assert_eq!(ExporterProcess::of(&descriptor).state(), ExporterState::Running);
    exporter_process.send("end");
    exporter_process.finish();
    assert_eq!(exporter.state(), ExporterState::Ended);
}

#[test]
#[cfg(target_os = "linux")]
fn an_exporter_whose_first_thread_has_ended_is_running() {
    const NAME: &str = "an_exporter_whose_first_thread_has_ended_is_running";
    if child::role().is_some() {
        return end_the_first_thread();
    }
    let mut exporter_process = Child::start(NAME, "exporter");
    let descriptor = of_process(exporter_process.id());
    assert_eq!(exporter_process.receive(), "two threads");
    let before = ExporterProcess::of(&descriptor);
    assert_eq!(before.state(), ExporterState::Running);
    exporter_process.send("end the first thread");
    // The system says that the process is a zombie.
    let status = format!("/proc/{}/stat", exporter_process.id());
    until(|| std::fs::read_to_string(&status).expect("it is there").contains(") Z "));
    let after = ExporterProcess::of(&descriptor);
    assert_eq!([before.state(), after.state()], [ExporterState::Running; 2]);
    // The other thread says so.
    exporter_process.send("are you there?");
    assert_eq!(exporter_process.receive(), "yes");
    assert_eq!([before.state(), after.state()], [ExporterState::Running; 2]);
    exporter_process.kill_only();
    for exporter in [&before, &after] {
        wait_for_end(exporter);
    }
    exporter_process.kill();
    assert_eq!([before.state(), after.state()], [ExporterState::Ended; 2]);
}

/// Ends the thread that the process began with, when the parent says so, and goes on in this one.
#[cfg(target_os = "linux")]
fn end_the_first_thread() {
    use std::ffi::{c_int, c_long};

    unsafe extern "C" {
        fn syscall(number: c_long, ...) -> c_long;
        fn signal(signal: c_int, handler: extern "C" fn(c_int)) -> usize;
    }
    const USER_SIGNAL: c_int = 10;
    const EXIT: c_long = if cfg!(target_arch = "x86_64") { 60 } else { 93 };
    const TGKILL: c_long = if cfg!(target_arch = "x86_64") { 234 } else { 131 };
    extern "C" fn end_this_thread(_signal: c_int) {
        // SAFETY: what is on the thread's stack stays as it is, and nobody waits for the thread.
        unsafe { syscall(EXIT, 0) };
    }
    child::say("two threads");
    child::read_line();
    let process = c_long::from(std::process::id());
    // SAFETY: the handler makes one system call. The first thread has the process's number; it is
    // the harness's, which waits for this one.
    unsafe {
        signal(USER_SIGNAL, end_this_thread);
        assert_eq!(syscall(TGKILL, process, process, c_long::from(USER_SIGNAL)), 0);
    }
    child::read_line();
    child::say("yes");
    child::read_line();
}

#[test]
fn a_raw_handle_has_no_exporter() {
    let exporter = ExporterProcess::of(&IpcEventDescriptor::from_raw([0; 64], false));
    assert_eq!((exporter.pid(), exporter.state()), (None, ExporterState::Unknown));
    // Such an event is waited for until it is done or the time is up.
    let gpu = Gpu::new();
    let stream = gpu.stream();
    let event = Event::new(&gpu.context, EventFlags::INTERPROCESS).expect("an event");
    let latch = Latch::hold(&stream);
    event.record(&stream).expect("a record");
    assert_eq!(exporter.wait_for(&event, Duration::from_millis(10)), Ok(Progress::Pending));
    latch.release();
    assert_eq!(exporter.wait_for(&event, LONG), Ok(Progress::Done));
}
