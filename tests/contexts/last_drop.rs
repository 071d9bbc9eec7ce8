//! The last share of a context: what its drop waits for, and the way out when that never comes.
//!
//! All of it is done by other processes, which may hang: an exporter that is killed, and one that
//! drops.

#![cfg(any(unix, windows))]

use crate::common::{self, table};

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use common::child::{Child, end_after, hear, role, say};
use common::{Gpu, Latch};
use cuda_events::ipc::ExporterProcess;
use cuda_events::sys::{CUdevice, CUresult, Function};
use cuda_events::{
    Context, Device, Driver, Error, Event, EventFlags, IpcEventDescriptor, Progress,
};

/// Longer than anything here takes that does not hang.
const LONG: u32 = 60;

/// Whether the release of the primary context was called, and whether it has returned.
static CALLED: AtomicBool = AtomicBool::new(false);
static RETURNED: AtomicBool = AtomicBool::new(false);

/// The driver, with a release that is watched.
fn watched(real: Driver) -> Driver {
    static REAL: OnceLock<Driver> = OnceLock::new();
    unsafe extern "C" fn release(device: CUdevice) -> CUresult {
        let real = REAL.get().expect("it was set before anything was released");
        CALLED.store(true, Ordering::SeqCst);
        // SAFETY: the caller's argument, passed on.
        let code = unsafe { (real.symbols().cuDevicePrimaryCtxRelease_v2)(device) };
        RETURNED.store(true, Ordering::SeqCst);
        code
    }
    REAL.set(real).expect("each process watches one driver");
    table::replaced(real, |function| {
        let release: unsafe extern "C" fn(CUdevice) -> CUresult = release;
        (function == Function::cuDevicePrimaryCtxRelease_v2).then_some(release as *mut _)
    })
}

/// Not a test: the other processes.
#[test]
#[ignore = "the other processes, which the tests start: cargo test --test contexts"]
fn process() {
    // A call that hangs ends the process, and the test fails.
    end_after(LONG);
    let mut gpu = Gpu::new();
    let driver = watched(gpu.driver);
    let context = Device::new(driver, 0).and_then(Context::primary).expect("the primary context");
    // The last share is to be one of `context`'s.
    drop(std::mem::replace(&mut gpu.context, context.clone()));
    assert!(!CALLED.load(Ordering::SeqCst), "that share was of the driver that is not watched");
    match role().as_deref() {
        Some("exporter") => export(&gpu),
        Some("importer") => {
            import(&gpu);
            end(gpu, context);
        }
        Some("locker") => {
            static LOCK: Mutex<()> = Mutex::new(());
            let _held = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
            let stream = gpu.stream();
            let lock = || drop(LOCK.lock().unwrap_or_else(PoisonError::into_inner));
            stream.launch_host_function(lock).expect("a host function");
            assert_eq!(stream.query(), Ok(Progress::Pending));
            assert_eq!(stream.close(), Ok(()));
            end(gpu, context);
        }
        other => panic!("{other:?} is no role"),
    }
}

/// Records an event that is never done, and waits to be killed.
fn export(gpu: &Gpu) {
    let stream = gpu.stream();
    let event = Event::new(&gpu.context, EventFlags::INTERPROCESS).expect("an event");
    let _latch = Latch::hold(&stream);
    event.record(&stream).expect("a record");
    say(&event.ipc_descriptor().expect("a descriptor").to_string());
    hear();
    unreachable!("the parent kills this process");
}

/// Has a stream wait for the event of an exporter that is killed then.
fn import(gpu: &Gpu) {
    let descriptor: IpcEventDescriptor = hear().parse().expect("the exporter's descriptor");
    let exporter = ExporterProcess::of(&descriptor);
    // SAFETY: the exporter keeps the event until it is killed.
    let event =
        unsafe { Event::from_ipc_descriptor(&gpu.context, &descriptor) }.expect("the event opens");
    let stream = gpu.stream();
    stream.wait_event(&event).expect("a wait");
    assert_eq!(stream.query(), Ok(Progress::Pending));
    say("a stream waits");
    assert_eq!(hear(), "the exporter is dead");
    // Elsewhere nobody can tell.
    let tells = cfg!(any(target_os = "linux", windows));
    let limit = if tells { u64::from(LONG) / 2 } else { 1 };
    let expected = if tells { Err(Error::ExporterGone) } else { Ok(Progress::Pending) };
    assert_eq!(exporter.wait_for(&event, Duration::from_secs(limit)), expected);
    assert_eq!(stream.synchronize_timeout(Duration::from_millis(10)), Ok(Progress::Pending));
    assert_eq!(event.close(), Ok(()));
    assert_eq!(stream.close(), Ok(()));
}

/// Ends with the context, as the parent says.
fn end(gpu: Gpu, context: Context) {
    say("events and streams are closed");
    match hear().as_str() {
        "drop" => {
            std::thread::spawn(|| {
                loop {
                    hear();
                    say(&format!("called {CALLED:?}, returned {RETURNED:?}"));
                }
            });
            drop(context);
            // The last one, in this thread, which may hold what a host function needs.
            drop(gpu);
            say("dropped");
        }
        "abandon" => {
            // What others have retained is not stuck either.
            let other = Context::primary(context.device()).expect("the primary context");
            let clone = context.clone();
            context.abandon();
            assert!(!CALLED.load(Ordering::SeqCst), "it makes no call");
            drop(clone);
            assert!(!CALLED.load(Ordering::SeqCst), "none of its clones is released");
            drop(other);
            assert!(RETURNED.load(Ordering::SeqCst), "another value is released");
            say("abandoned");
            match hear().as_str() {
                "exit" => std::process::exit(0),
                "return" => {}
                step => panic!("{step:?} is no step"),
            }
        }
        step => panic!("{step:?} is no step"),
    }
}

fn start(role: &str) -> Child {
    Child::start("process", role)
}

/// An importer whose stream waits for the event of an exporter that was killed.
fn importer() -> Child {
    let (mut exporter, mut importer) = (start("exporter"), start("importer"));
    importer.send(&exporter.receive());
    assert_eq!(importer.receive(), "a stream waits");
    exporter.kill();
    importer.send("the exporter is dead");
    assert_eq!(importer.receive(), "events and streams are closed");
    importer
}

fn locker() -> Child {
    let mut locker = start("locker");
    assert_eq!(locker.receive(), "events and streams are closed");
    locker
}

/// Abandons the context, and ends as told.
fn abandon(mut child: Child, end: &str) {
    child.send("abandon");
    assert_eq!(child.receive(), "abandoned");
    child.send(end);
    child.finish();
}

/// Drops the last share, and shows that the drop does not return: it has not when all of another
/// process, from its start to its end, has come after it.
fn blocks(mut child: Child, another: impl FnOnce()) {
    child.send("drop");
    let mut ask = || {
        child.send("where are you?");
        child.receive()
    };
    while ask() == "called false, returned false" {}
    another();
    assert_eq!(ask(), "called true, returned false");
    child.kill();
}

#[test]
fn the_last_drop_waits_for_a_killed_exporter() {
    blocks(importer(), || abandon(importer(), "exit"));
}

#[test]
fn the_last_drop_waits_for_a_host_function() {
    blocks(locker(), || abandon(locker(), "exit"));
}

#[test]
fn an_abandoned_context_does_not_block() {
    // Its process ends, in the middle or when all is dropped, and with a host function that does
    // not return.
    abandon(importer(), "exit");
    abandon(importer(), "return");
    abandon(locker(), "exit");
}
