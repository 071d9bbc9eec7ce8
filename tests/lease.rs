//! The exporter's lease and the importer's look at the exporter, between real processes.

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::child::{self, Child};
use common::{Gpu, Latch};
use cuda_events::{Error, Event, EventFlags, ExporterProcess, IpcEventDescriptor, IpcLease, Progress};

fn import(gpu: &Gpu, line: &str) -> (Event, ExporterProcess) {
    let descriptor: IpcEventDescriptor = line.parse().expect("the exporter's descriptor");
    let exporter = ExporterProcess::of(&descriptor).expect("the exporter is running");
    assert_eq!(Some(exporter.pid()), descriptor.exporter_pid());
    // SAFETY: the exporter keeps the event until this process says that it is done, or is killed.
    (unsafe { Event::from_ipc_descriptor(&gpu.context, &descriptor) }.expect("the event opens"), exporter)
}

#[test]
fn the_event_lives_as_long_as_a_lease() {
    const NAME: &str = "the_event_lives_as_long_as_a_lease";
    if child::role().is_some() {
        let gpu = Gpu::new();
        let (event, exporter) = import(&gpu, &child::hear());
        child::say("opened");
        assert_eq!(child::hear(), "recorded, and the exporter's own handle dropped");
        event.synchronize().expect("the exporter released the work");
        assert!(exporter.is_alive());
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
    let exporter = ExporterProcess::of(&descriptor).expect("this process is running");
    let before = std::fs::read(NAME).expect("a name");
    // Longer names are cut to 15 bytes, which may be within a character.
    for name in [&b"\xff\xfe"[..], b"a) Z 1 (b", "обмен-событиями".as_bytes()] {
        std::fs::write(NAME, name).expect("a process may name itself");
        assert!(exporter.is_alive(), "{name:?}");
        assert_eq!(ExporterProcess::of(&descriptor), Some(exporter));
    }
    std::fs::write(NAME, before).expect("a process may name itself");
}

#[test]
fn only_what_can_be_exported_can_be_lent() {
    let gpu = Gpu::new();
    let event = Arc::new(Event::new(&gpu.context, EventFlags::TIMING).expect("an event"));
    assert_eq!(IpcLease::new(event).err(), Some(Error::NotInterprocess));
}

#[test]
fn an_importer_sees_that_the_exporter_was_killed() {
    const NAME: &str = "an_importer_sees_that_the_exporter_was_killed";
    if child::role().is_some() {
        let gpu = Gpu::new();
        let stream = gpu.stream();
        let event = Event::new(&gpu.context, EventFlags::INTERPROCESS).expect("an event");
        let _latch = Latch::hold(&stream);
        event.record(&stream).expect("a record");
        child::say(&event.ipc_descriptor().expect("a descriptor").to_string());
        // Until it is killed.
        child::hear();
        unreachable!("the parent kills this process");
    }
    let gpu = Gpu::new();
    let mut exporter_process = Child::start(NAME, "exporter");
    let (event, exporter) = import(&gpu, &exporter_process.receive());
    assert_eq!(exporter.pid(), exporter_process.id());
    assert!(exporter.is_alive());
    assert_eq!(event.query(), Ok(Progress::Pending));
    exporter_process.kill_only();
    // It ends at once, and is a zombie from then on, which is not alive.
    while exporter.is_alive() {
        std::thread::yield_now();
    }
    exporter_process.kill();
    assert!(!exporter.is_alive());
    assert_eq!(event.synchronize_timeout(Duration::from_millis(10)), Ok(Progress::Pending), "nobody completes it");
}

#[test]
fn a_raw_handle_says_nothing_of_its_exporter() {
    assert_eq!(ExporterProcess::of(&IpcEventDescriptor::from_raw([0; 64], false)), None);
}
