//! Events that two processes share.
//!
//! The tests tell another process, their peer, what to do with its side; see `peer`.

use crate::common;

use std::time::Duration;

use common::child::{Child, from_hex, read_line, role, say, to_hex};
use common::counting::{calls, counted_context, counting, fail_next};
use common::{Gpu, Latch, Other, TestDriver, current};
use cuda_events::ipc::DescriptorError;
use cuda_events::sys::{CUresult, Function};
use cuda_events::{
    Context, Device, Error, Event, EventFlags, IpcEventDescriptor, Progress, Result, Stream,
    StreamOptions, StreamRef, Uuid,
};
use cuda_soft_driver::SoftDriver;

/// Not a test: the other process. Each line that it hears is one step, which it answers with the
/// result.
#[test]
#[ignore = "the other process, which the tests start: cargo test --test ipc"]
fn peer() {
    assert!(role().is_some(), "this is no test of its own");
    let gpu = Gpu::new();
    let stream = gpu.stream();
    let mut events: Vec<Option<Event>> = Vec::new();
    let mut latch = None;
    loop {
        let line = read_line();
        let mut words = line.split(' ');
        let step = words.next().expect("a step");
        let word = words.next().unwrap_or_default();
        // Most steps are about the event that was made last, or the one of this number.
        let number = word.parse().unwrap_or(events.len().wrapping_sub(1));
        let event = || events[number].as_ref().expect("an event that was not dropped");
        match step {
            "create" => {
                let flags = EventFlags::from_bits(word.parse().expect("bits")).expect("flags");
                events.push(Some(Event::new(&gpu.context, flags).expect("an event")));
                say("created");
            }
            "export" => say(&to_hex(&event().ipc_descriptor().expect("a descriptor").to_bytes())),
            "import" => {
                let descriptor =
                    IpcEventDescriptor::from_bytes(&from_hex(word)).expect("a good descriptor");
                let before = current(gpu.driver);
                let event = import(&gpu.context, &descriptor);
                assert_eq!(current(gpu.driver), before, "the context stack is as it was");
                say(&format!("{:?}", event.as_ref().map(|event| event.flags().bits())));
                events.extend(event.ok().map(Some));
            }
            "imported" => say(&format!("{}", event().is_imported())),
            "hold" => {
                latch = Some(Latch::hold(&stream));
                say("held");
            }
            "release" => {
                latch.take().expect("a held stream").release();
                say("released");
            }
            "record" => answer(event().record(&stream)),
            "query" => answer(event().query()),
            "synchronize" => answer(event().synchronize()),
            "timeout" => answer(event().synchronize_timeout(Duration::from_millis(20))),
            "elapsed" => {
                let own = Event::new(&gpu.context, EventFlags::TIMING).expect("an event");
                own.record(&stream).and_then(|()| own.synchronize()).expect("a record");
                answer(event().elapsed_ms(event()));
                answer(own.elapsed_ms(event()));
                answer(event().elapsed_ms(&own));
            }
            "re-export" => answer(event().ipc_descriptor()),
            "same" => {
                let one = events[0].as_ref().expect("an event that was not dropped");
                say(&format!("{}", one.as_raw() == event().as_raw()));
            }
            "wait" => answer(stream.wait_event(event())),
            "stream-query" => answer(stream.query()),
            "stream-synchronize" => answer(stream.synchronize()),
            "drop" => {
                events[number] = None;
                say("dropped");
            }
            "close" => {
                answer(events[number].take().expect("an event that was not dropped").close())
            }
            // Ends the process as a program ends that has no time to clean up.
            "exit" => std::process::exit(0),
            "end" => break,
            other => panic!("{other:?} is no step"),
        }
    }
}

/// In the peer: says what a call returned.
fn answer<T: std::fmt::Debug>(result: Result<T>) {
    say(&format!("{result:?}"));
}

/// In a test: the other process.
struct Peer(Child);

impl Peer {
    fn start() -> Self {
        Self(Child::start("peer", "peer"))
    }

    /// Lets it take a step that may last.
    fn begin(&mut self, step: &str) {
        self.0.send(step);
    }

    /// Lets it take a step, and gives its answer.
    #[track_caller]
    fn step(&mut self, step: &str) -> String {
        self.0.send(step);
        self.0.receive()
    }

    /// Lets it import, and expects these flags.
    #[track_caller]
    fn import(&mut self, descriptor: &IpcEventDescriptor, flags: EventFlags) {
        let imported = self.step(&format!("import {}", to_hex(&descriptor.to_bytes())));
        assert_eq!(imported, format!("Ok({})", flags.bits()));
    }

    /// Lets it create an event of these flags, and imports that here.
    #[track_caller]
    fn export(&mut self, flags: EventFlags) -> IpcEventDescriptor {
        assert_eq!(self.step(&format!("create {}", flags.bits())), "created");
        IpcEventDescriptor::from_bytes(&from_hex(&self.step("export"))).expect("a good descriptor")
    }

    #[track_caller]
    fn end(mut self) {
        self.begin("end");
        self.0.finish();
    }
}

fn import(context: &Context, descriptor: &IpcEventDescriptor) -> Result<Event> {
    // SAFETY: the descriptors of these tests come from processes that these tests started, which
    // keep their events, or are made to be refused.
    unsafe { Event::from_ipc_descriptor(context, descriptor) }
}

fn interprocess(gpu: &Gpu) -> Event {
    Event::new(&gpu.context, EventFlags::INTERPROCESS).expect("an event")
}

fn descriptor(event: &Event) -> IpcEventDescriptor {
    event.ipc_descriptor().expect("a descriptor")
}

const PENDING: &str = "Ok(Pending)";
const DONE: &str = "Ok(Done)";
const FINE: &str = "Ok(())";

// Waiting, in both roles.

#[test]
fn an_importers_stream_waits() {
    let gpu = Gpu::new();
    let stream = gpu.stream();
    let event = interprocess(&gpu);
    let latch = Latch::hold(&stream);
    event.record(&stream).expect("a record");
    let mut peer = Peer::start();
    peer.import(&descriptor(&event), EventFlags::INTERPROCESS);
    assert_eq!(peer.step("query"), PENDING);
    assert_eq!(peer.step("timeout"), PENDING);
    assert_eq!(peer.step("stream-query"), DONE);
    assert_eq!(peer.step("wait"), FINE);
    assert_eq!(peer.step("stream-query"), PENDING);
    latch.release();
    assert_eq!(peer.step("stream-synchronize"), FINE);
    assert_eq!(peer.step("query"), DONE);
    assert_eq!(peer.step("timeout"), DONE);
    peer.end();
}

#[test]
fn the_test_imports_what_its_child_exports() {
    let gpu = Gpu::new();
    let stream = gpu.stream();
    let mut peer = Peer::start();
    let descriptor = peer.export(EventFlags::INTERPROCESS);
    assert_eq!(descriptor.exporter_pid(), Some(peer.0.id()));
    assert_eq!(descriptor.device_uuid(), gpu.device.uuid().ok());
    let event = import(&gpu.context, &descriptor).expect("an import");
    assert!(event.is_imported());
    assert_eq!(event.context(), &gpu.context);

    assert_eq!(peer.step("hold"), "held");
    assert_eq!(peer.step("record"), FINE);
    assert_eq!(event.query(), Ok(Progress::Pending));
    assert_eq!(stream.wait_event(&event), Ok(()));
    assert_eq!(stream.query(), Ok(Progress::Pending));
    assert_eq!(peer.step("release"), "released");
    assert_eq!(stream.synchronize(), Ok(()));
    assert_eq!(event.synchronize(), Ok(()));

    // And the other way round, through the same event.
    let latch = Latch::hold(&stream);
    event.record(&stream).expect("a record");
    assert_eq!(peer.step("wait"), FINE);
    assert_eq!(peer.step("stream-query"), PENDING);
    latch.release();
    assert_eq!(peer.step("stream-synchronize"), FINE);
    drop(event);
    peer.end();
}

// What a descriptor carries.

#[test]
fn the_blocking_flag_is_carried() {
    let gpu = Gpu::new();
    let mut peer = Peer::start();
    for flags in [EventFlags::INTERPROCESS, EventFlags::INTERPROCESS | EventFlags::BLOCKING_SYNC] {
        let event = Event::new(&gpu.context, flags).expect("an event");
        let descriptor = descriptor(&event);
        assert_eq!(descriptor.is_blocking_sync(), flags.contains(EventFlags::BLOCKING_SYNC));
        peer.import(&descriptor, flags);
        assert_eq!(peer.step("imported"), "true");
        // Nothing but the handle and what the sender says beside it.
        let raw = IpcEventDescriptor::from_raw(descriptor.to_raw(), descriptor.is_blocking_sync());
        peer.import(&raw, flags);
        // The driver knows nothing of the flag: it is what the sender says.
        peer.import(
            &IpcEventDescriptor::from_raw(descriptor.to_raw(), false),
            EventFlags::INTERPROCESS,
        );
        let imported = import(&gpu.context, &peer.export(flags)).expect("an import");
        assert_eq!(imported.flags(), flags);
    }
    peer.end();
}

#[test]
fn a_descriptor_names_its_exporter() {
    let gpu = Gpu::new();
    let event = interprocess(&gpu);
    assert!(!event.is_imported());
    let descriptor = descriptor(&event);
    assert_eq!(descriptor.exporter_pid(), Some(std::process::id()));
    assert_eq!(descriptor.device_uuid(), gpu.device.uuid().ok());
    assert_eq!(event.ipc_descriptor(), Ok(descriptor));
    assert_ne!(interprocess(&gpu).ipc_descriptor(), Ok(descriptor));
}

// What is refused.

#[test]
fn an_import_is_not_timed_and_not_exported_again() {
    let gpu = Gpu::new();
    let event = interprocess(&gpu);
    let mut peer = Peer::start();
    peer.import(&descriptor(&event), EventFlags::INTERPROCESS);
    let function = if gpu.driver.symbols().cuEventElapsedTime_v2.is_some() {
        Function::cuEventElapsedTime_v2
    } else {
        Function::cuEventElapsedTime
    };
    let refused =
        Error::TimingDisabled { function, code: Some(CUresult::CUDA_ERROR_INVALID_HANDLE) };
    peer.begin("elapsed");
    for _ in 0..3 {
        assert_eq!(peer.0.receive(), format!("Err({refused:?})"));
    }
    assert_eq!(peer.step("re-export"), format!("Err({:?})", Error::ExportOfImport));
    peer.end();
}

#[test]
fn only_an_interprocess_event_is_exported() {
    let gpu = Gpu::new();
    let driver = counting(gpu.driver);
    let context =
        Context::primary(Device::new(driver, 0).expect("device 0")).expect("the primary context");
    for flags in [EventFlags::empty(), EventFlags::TIMING, EventFlags::BLOCKING_SYNC] {
        let event = Event::new(&context, flags).expect("an event");
        let (exported, made) = calls(|| event.ipc_descriptor());
        assert_eq!(exported, Err(Error::NotInterprocess), "{flags:?}");
        assert_eq!(made, [], "the driver was asked");
    }
}

#[test]
fn the_exporting_process_cannot_import() {
    let gpu = Gpu::new();
    let event = interprocess(&gpu);
    let descriptor = descriptor(&event);
    let pid = std::process::id();
    let refused = import(&gpu.context, &descriptor).expect_err("it is our own");
    assert_eq!(refused, DescriptorError::SameProcess { pid }.into());
    assert_eq!(refused.code(), Some(CUresult::CUDA_ERROR_INVALID_CONTEXT));
    // The driver's own bytes do not say who exported them.
    let raw = IpcEventDescriptor::from_raw(descriptor.to_raw(), false);
    let refused = import(&gpu.context, &raw).expect_err("it is our own");
    let code = CUresult::CUDA_ERROR_INVALID_CONTEXT;
    assert_eq!(refused, Error::Driver { function: Function::cuIpcOpenEventHandle, code });
    assert!(refused.to_string().contains("probably this process exported the event"), "{refused}");
    assert!(current(gpu.driver).is_null());
    // The event is none the worse for it.
    assert_eq!(event.query(), Ok(Progress::Done));
}

#[test]
fn only_201_is_an_event_of_this_process() {
    const OPEN: Function = Function::cuIpcOpenEventHandle;
    let gpu = Gpu::new();
    let context = counted_context(gpu.driver);
    let mut peer = Peer::start();
    let (own, theirs) = (descriptor(&interprocess(&gpu)), peer.export(EventFlags::INTERPROCESS));
    // Another process's, refused with that code for another reason; and this one's, refused with
    // another code.
    for (descriptor, code) in [
        (theirs, CUresult::CUDA_ERROR_INVALID_CONTEXT),
        (own, CUresult::CUDA_ERROR_MAP_FAILED),
        (own, CUresult(4242)),
    ] {
        fail_next(OPEN, code);
        let refused = import(&context, &descriptor).map(drop);
        assert_eq!(refused, Err(Error::Driver { function: OPEN, code }));
    }
    peer.end();
}

/// The descriptor, with another device's UUID in it and the check value that fits.
fn of_device(descriptor: &IpcEventDescriptor, uuid: [u8; 16]) -> IpcEventDescriptor {
    let mut bytes = descriptor.to_bytes();
    bytes[12..28].copy_from_slice(&uuid);
    let (body, check) = bytes.split_last_chunk_mut::<4>().expect("it is longer");
    *check = crc32fast::hash(body).to_le_bytes();
    let forged = IpcEventDescriptor::from_bytes(&bytes).expect("the check value fits");
    assert_eq!(forged.device_uuid(), Some(Uuid::from_bytes(uuid)));
    forged
}

#[test]
fn an_event_of_another_device_is_refused() {
    let gpu = Gpu::new();
    let mut peer = Peer::start();
    let descriptor = peer.export(EventFlags::INTERPROCESS);
    // One that this process does not see.
    let elsewhere = of_device(&descriptor, [0xee; 16]);
    let refused = import(&gpu.context, &elsewhere).expect_err("no device here has that UUID");
    assert_eq!(refused, DescriptorError::DeviceMismatch { exported: None, context: 0 }.into());
    // Undoctored it opens.
    assert!(
        import(
            &gpu.context,
            &of_device(&descriptor, *gpu.device.uuid().expect("a UUID").as_bytes())
        )
        .is_ok()
    );
    peer.end();
}

#[test]
fn another_visible_device_is_reported() {
    // The software driver in the process can have as many devices as a test needs.
    let soft = (TestDriver::chosen() == TestDriver::Soft)
        .then(|| SoftDriver::builder().devices(2).build());
    let gpu = soft.is_none().then(Gpu::new);
    let driver = match (&soft, &gpu) {
        (Some(soft), _) => soft.driver(),
        (_, Some(gpu)) => gpu.driver,
        (None, None) => unreachable!("one of the two is there"),
    };
    let devices: Vec<_> = Device::all(driver).expect("devices").take(2).collect();
    let [one, two] = devices[..] else {
        return common::not_run("there is only one device");
    };
    let contexts = [one, two].map(|device| Context::primary(device).expect("the primary context"));
    let uuids = [one, two].map(|device| *device.uuid().expect("a UUID").as_bytes());
    assert_ne!(uuids[0], uuids[1]);
    for (own, other) in [(0, 1), (1, 0)] {
        let event = Event::new(&contexts[own], EventFlags::INTERPROCESS).expect("an event");
        let refusal =
            |exported, context| Err(DescriptorError::DeviceMismatch { exported, context }.into());
        let refused = import(&contexts[other], &descriptor(&event)).map(drop);
        assert_eq!(refused, refusal(Some(own as u16), other as u16));
        let refused =
            import(&contexts[own], &of_device(&descriptor(&event), uuids[other])).map(drop);
        assert_eq!(refused, refusal(Some(other as u16), own as u16));
        // A stream of the other device cannot wait for it either; for an ordinary event it can.
        let stream = Stream::new(&contexts[other], StreamOptions::new()).expect("a stream");
        let (device, other_device) = (own as u16, other as u16);
        let function = Function::cuStreamWaitEvent;
        let refused = Err(Error::ContextMismatch { function, code: None, device, other_device });
        assert_eq!(stream.wait_event(&event), refused);
        let ordinary = Event::new(&contexts[own], EventFlags::empty()).expect("an event");
        assert_eq!(stream.wait_event(&ordinary), Ok(()));
    }
}

// An exporter that is killed.

// Threads and contexts.

#[test]
fn an_import_belongs_to_the_named_context() {
    let Some(gpu) = Gpu::with(Function::cuCtxWaitEvent) else { return };
    let mut peer = Peer::start();
    let descriptor = peer.export(EventFlags::INTERPROCESS);
    let other = Other::new(&gpu);
    {
        // The other context is current, and the primary one is named.
        let _current = other.make_current().expect("the other context");
        let event = import(&gpu.context, &descriptor).expect("an import");
        assert_eq!(current(gpu.driver), other.as_raw());
        assert_eq!(event.record(&gpu.stream()), Ok(()));
        let foreign = Stream::new(&other, StreamOptions::new()).expect("a stream");
        let code = CUresult::CUDA_ERROR_INVALID_HANDLE;
        let function = Function::cuEventRecord;
        let refused =
            Error::ContextMismatch { function, code: Some(code), device: 0, other_device: 0 };
        assert_eq!(event.record(&foreign), Err(refused));
        // Drivers crash over such a wait, so they are not asked.
        for event in [event, interprocess(&gpu)] {
            let refused = |function| {
                Err(Error::ContextMismatch { function, code: None, device: 0, other_device: 0 })
            };
            assert_eq!(foreign.wait_event(&event), refused(Function::cuStreamWaitEvent));
            let default = StreamRef::legacy_default(&other);
            assert_eq!(default.wait_event(&event), refused(Function::cuStreamWaitEvent));
            assert_eq!(other.wait_event(&event), refused(Function::cuCtxWaitEvent));
            // The way that the error names.
            let own = gpu.stream();
            assert_eq!(own.wait_event(&event), Ok(()));
            assert_eq!(foreign.wait_stream(&own), Ok(()));
            assert_eq!(foreign.synchronize(), Ok(()));
        }
    }
    drop(other);
    peer.end();
}
