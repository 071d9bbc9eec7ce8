//! A drop during a capture: it harms no capture, in any mode, and the object is destroyed.

use crate::common::Gpu;

#[cfg(target_os = "linux")]
use std::collections::BTreeSet;
#[cfg(target_os = "linux")]
use std::path::Path;
use std::sync::Arc;

use cuda_events::capture::{Capture, CaptureStatus};
use cuda_events::ext::{EventPool, IpcLease, LazyEvent, StreamScope, Timer};
use cuda_events::foundation::deferring_observers;
use cuda_events::graph::Graph;
use cuda_events::{Context, Event, EventFlags, Stream, StreamOptions};

use crate::capture::MODES;

/// Drops what it is given during a capture.
type During<'a> = &'a dyn Fn(&mut dyn FnMut());

fn drops<T>(during: During<'_>, object: T) {
    let mut object = Some(object);
    during(&mut || drop(object.take()));
}

fn event(gpu: &Gpu, flags: EventFlags) -> Event {
    Event::new(&gpu.context, flags).expect("an event")
}

/// A driver function that this driver may lack makes no object.
fn offered<T>(during: During<'_>, object: cuda_events::Result<T>) {
    if let Ok(object) = object {
        drops(during, object);
    }
}

type Row = (&'static str, fn(&Gpu, During<'_>));

/// By the name of the type that has the destructor.
const ROWS: &[Row] = &[
    ("Event", |gpu, during| drops(during, event(gpu, EventFlags::empty()))),
    ("Event", |gpu, during| {
        let made = event(gpu, EventFlags::TIMING);
        made.record(&gpu.stream()).expect("a record");
        drops(during, made);
    }),
    ("Event", |gpu, during| {
        offered(during, Event::new(&gpu.context, EventFlags::INTERPROCESS));
    }),
    ("Event", |gpu, during| {
        if let Ok(made) = Event::new(&gpu.context, EventFlags::INTERPROCESS) {
            drops(during, IpcLease::new(Arc::new(made)).expect("a lease"));
        }
    }),
    ("Event", |gpu, during| {
        let lazy = LazyEvent::new(EventFlags::empty()).expect("a lazy event");
        lazy.record(&gpu.stream()).expect("a record");
        drops(during, lazy);
    }),
    ("Event", |gpu, during| {
        let stream = gpu.stream();
        drops(during, Timer::start(&stream).and_then(Timer::stop).expect("a timing"));
    }),
    ("Stream", |gpu, during| drops(during, gpu.stream())),
    ("Stream", |gpu, during| {
        let (one, other) = (gpu.stream(), gpu.stream());
        one.wait_stream(&other).expect("a wait");
        drops(during, (one, other));
    }),
    ("Graph", |gpu, during| drops(during, Graph::new(&gpu.context).expect("a graph"))),
    ("GraphExec", |gpu, during| {
        let graph = Graph::new(&gpu.context).expect("a graph");
        let exec = graph.instantiate().expect("an executable graph");
        exec.launch(&gpu.stream()).expect("a launch");
        drops(during, exec);
    }),
    ("GraphExec", |gpu, during| {
        let graph = Graph::new(&gpu.context).expect("a graph");
        let mut exec = Some(graph.instantiate().expect("an executable graph"));
        during(&mut || {
            if let Some(exec) = exec.take() {
                assert_eq!(exec.close(), Ok(()));
            }
        });
    }),
    ("Inner", |gpu, during| {
        drops(during, Context::primary(gpu.device).expect("the primary context"));
    }),
    ("Inner", |gpu, during| {
        let Ok(split) = gpu.device.sm_resource().and_then(|all| all.split_by_count(1, 16)) else {
            return;
        };
        let parts: Vec<_> = split.groups.iter().collect();
        // SAFETY: this thread alone uses it.
        let context = unsafe { Context::green(gpu.device, &parts) }.expect("a green context");
        let (one, other) = (&context, &gpu.stream());
        let stream = Stream::new(one, StreamOptions::new()).expect("a stream");
        other.wait_stream(&stream).expect("a wait");
        drop(stream);
        drops(during, context);
    }),
    ("CurrentContext", |gpu, during| {
        drops(during, gpu.context.make_current().expect("it is current"));
    }),
    ("Handle", |gpu, during| {
        let pool = EventPool::new(&gpu.context, EventFlags::empty()).expect("a pool");
        pool.reserve(40).expect("events");
        drops(during, pool);
    }),
    ("PooledEvent", |gpu, during| {
        let pool = EventPool::new(&gpu.context, EventFlags::empty()).expect("a pool");
        drops(during, pool.record_event(&gpu.stream()).expect("a record"));
    }),
    ("StreamScope", |gpu, during| drops(during, StreamScope::enter(Arc::new(gpu.stream())))),
    #[cfg(target_os = "linux")]
    ("Imported", |gpu, during| {
        use cuda_events::external::BinarySemaphore;
        use cuda_soft_driver::{ExternalSemaphore, SemaphoreKind};
        if gpu.soft().is_none() {
            return;
        }
        let made = ExternalSemaphore::new(SemaphoreKind::Binary).expect("a semaphore");
        let descriptor = made.descriptor().expect("a descriptor");
        let uuid = gpu.device.uuid().expect("the device has one");
        // SAFETY: a descriptor of such a semaphore, for this one import.
        let imported = unsafe { BinarySemaphore::import_fd(&gpu.context, descriptor, uuid) };
        offered(during, imported.map_err(|refused| refused.into_parts().0));
    }),
    ("DeferringObservers", |_, during| drops(during, deferring_observers(()))),
];

/// Those that have no row.
#[cfg(target_os = "linux")]
const WITHOUT: &[(&str, &str)] = &[
    ("Capture", "it ends a capture, as tests of captures show"),
    ("ForeignCapture", "it makes no call"),
    ("Guarded", "within one call"),
    ("Pushed", "within one call, if that panics"),
    ("ThreadCaptureMode", "it changes what is asked here"),
    ("Buffer", "of a documentation's example"),
];

#[test]
fn no_drop_harms_a_capture() {
    let gpu = Gpu::new();
    for mode in MODES {
        for (name, row) in ROWS {
            row(&gpu, &|dropped| {
                let stream = gpu.stream();
                // SAFETY: no other thread has this stream.
                let capture = unsafe { Capture::begin(&stream, mode) }.expect("a capture");
                dropped();
                let status = stream.capture_status();
                assert_eq!(status, Ok(CaptureStatus::Active), "{name} in mode {mode:?}");
                capture.end().unwrap_or_else(|error| panic!("{name} in mode {mode:?}: {error}"));
            });
        }
    }
    // The software driver looks for leaks now.
}

/// So a new destructor gets a row. One of them has its row on Linux only.
#[cfg(target_os = "linux")]
#[test]
fn each_destructor_has_a_row() {
    fn destructors(folder: &Path, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).expect("a folder of sources") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                destructors(&path, found);
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("a source");
            let impls =
                text.lines().filter_map(|line| line.split_once(" Drop for ")).map(|found| found.1);
            let name = |line: &str| {
                line.split(|part: char| !part.is_alphanumeric()).next().map(str::to_owned)
            };
            found.extend(impls.filter_map(name));
        }
    }
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    if !sources.exists() {
        // The packed tests come without them.
        return crate::common::not_run("there are no sources");
    }
    let mut found = BTreeSet::new();
    destructors(&sources, &mut found);
    let known = ROWS.iter().map(|row| row.0).chain(WITHOUT.iter().map(|row| row.0));
    assert_eq!(found, known.map(str::to_owned).collect());
}
