//! What must not grow unnoticed: allocations, driver calls and sizes. None of it depends on the
//! time that anything takes.
//!
//! The instructions of each operation are guarded by tools/guard-instructions.

#![allow(non_upper_case_globals, reason = "patterns have the driver's names")]

use crate::common;

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::{null_mut, without_provenance_mut};
use std::time::Duration;

use common::Gpu;
use common::allocations::{Counted, allocations as allocated};
use cuda_events::ext::{EventPool, PooledEvent};
use cuda_events::foundation::call;
use cuda_events::graph::Graph;
use cuda_events::sys::functions::*;
use cuda_events::sys::*;
use cuda_events::{
    Context, Device, Driver, Error, Event, EventFlags, EventRef, IpcEventDescriptor, LoadOptions,
    Stream, StreamOptions, StreamRef, Version,
};
use cuda_timelines::Completion;

#[global_allocator]
static ALLOCATOR: Counted = Counted;

/// How often `work` allocates on this thread.
fn allocations<T>(work: impl FnOnce() -> T) -> usize {
    let before = allocated();
    // What comes back is dropped here too.
    drop(work());
    allocated() - before
}

/// A driver whose functions succeed and allocate nothing, so that what is counted is this crate's.
/// It passes for the library that `real` is of.
fn stub(real: Driver) -> Driver {
    const CONTEXT: CUcontext = without_provenance_mut(0x10);

    /// A function of the type that the entry point's field has, as an address.
    macro_rules! function {
        (|$($argument:ident: $type:ty),*| $($result:expr)?) => {{
            unsafe extern "C" fn function($($argument: $type),*) -> CUresult {
                $(let _ = $argument;)*
                $(
                    // SAFETY: the driver's contract: a pointer is a place for the result.
                    unsafe { $result };
                )?
                CUresult::CUDA_SUCCESS
            }
            function as unsafe extern "C" fn($($type),*) -> CUresult as *mut c_void
        }};
    }

    fn resolve(real: Driver, name: &CStr) -> *mut c_void {
        let Some(entry) = ENTRY_POINTS.iter().find(|entry| entry.name == name) else {
            return null_mut();
        };
        match entry.function {
            cuGetProcAddress | cuGetProcAddress_v2 => null_mut(),
            cuDriverGetVersion => real.symbols().address(cuDriverGetVersion),
            cuInit => function!(|flags: u32|),
            cuDeviceGetCount => function!(|count: *mut c_int| *count = 1),
            cuDeviceGet => function!(|device: *mut CUdevice, ordinal: c_int| *device = 0),
            cuDeviceGetUuid | cuDeviceGetUuid_v2 => {
                function!(|uuid: *mut CUuuid, device: CUdevice| uuid.write_bytes(1, 1))
            }
            cuDevicePrimaryCtxRetain => {
                function!(|context: *mut CUcontext, device: CUdevice| *context = CONTEXT)
            }
            // Never the one that is asked for, so that the longer way is taken.
            cuCtxGetCurrent => function!(|context: *mut CUcontext| *context = null_mut()),
            cuCtxPushCurrent_v2 => function!(|context: CUcontext|),
            cuCtxPopCurrent_v2 => function!(|context: *mut CUcontext| *context = CONTEXT),
            cuEventCreate => {
                function!(|event: *mut CUevent, flags: u32| *event = without_provenance_mut(0x20))
            }
            cuEventDestroy_v2 | cuEventQuery | cuEventSynchronize => function!(|event: CUevent|),
            cuEventRecord => function!(|event: CUevent, stream: CUstream|),
            cuEventElapsedTime | cuEventElapsedTime_v2 => {
                function!(|ms: *mut f32, start: CUevent, end: CUevent| *ms = 1.0)
            }
            cuIpcGetEventHandle => {
                function!(|handle: *mut CUipcEventHandle, event: CUevent| handle.write_bytes(1, 1))
            }
            cuStreamCreate => {
                function!(|made: *mut CUstream, flags: u32| *made = without_provenance_mut(0x30))
            }
            cuStreamDestroy_v2 | cuStreamQuery | cuStreamSynchronize => {
                function!(|stream: CUstream|)
            }
            cuStreamWaitEvent => function!(|stream: CUstream, event: CUevent, flags: u32|),
            cuDevicePrimaryCtxRelease_v2 => function!(|device: CUdevice|),
            cuGraphCreate => {
                function!(|graph: *mut CUgraph, flags: u32| *graph = without_provenance_mut(0x40))
            }
            cuGraphDestroy => function!(|graph: CUgraph|),
            cuGraphInstantiate_v2 => {
                function!(|exec: *mut CUgraphExec,
                           graph: CUgraph,
                           node: *mut CUgraphNode,
                           text: *mut c_char,
                           room: usize| *exec =
                    without_provenance_mut(0x50))
            }
            cuGraphInstantiateWithFlags => {
                function!(|exec: *mut CUgraphExec, graph: CUgraph, flags: u64| *exec =
                    without_provenance_mut(0x50))
            }
            cuGraphLaunch => function!(|exec: CUgraphExec, stream: CUstream|),
            cuGraphExecDestroy => function!(|exec: CUgraphExec|),
            // The others are not called here.
            _ if entry.required => function!(| |),
            _ => null_mut(),
        }
    }

    // SAFETY: the functions that are called have the types of their entry points.
    unsafe { Driver::from_resolver(&mut |name| resolve(real, name), &LoadOptions::new()) }
        .expect("everything required is there")
}

#[test]
fn nothing_on_the_way_allocates() {
    let gpu = &Gpu::with_virtual_time();
    let context = Context::primary(Device::new(stub(gpu.driver), 0).expect("device 0"))
        .expect("the primary context");
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let other = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let legacy = StreamRef::legacy_default(&context);
    let event = Event::new(&context, EventFlags::empty()).expect("an event");
    let shared = Event::new(&context, EventFlags::INTERPROCESS).expect("an event");
    let exec =
        Graph::new(&context).and_then(|graph| graph.instantiate()).expect("a graph of nothing");
    let pool = EventPool::new(&context, EventFlags::empty()).expect("a pool");
    // The first of each may.
    pool.reserve(1).expect("an event for the pool");
    stream.wait_stream(&other).expect("a join");
    shared.ipc_descriptor().expect("a descriptor");

    assert_eq!(allocations(|| Box::new(1)), 1, "the allocator does not count");
    let counts = [
        ("record", allocations(|| event.record(&stream))),
        ("record on a default stream", allocations(|| event.record(&legacy))),
        ("query", allocations(|| event.query())),
        ("synchronize", allocations(|| event.synchronize())),
        ("synchronize_timeout", allocations(|| event.synchronize_timeout(Duration::from_secs(1)))),
        ("elapsed_ms", allocations(|| event.elapsed_ms(&event))),
        ("wait_event", allocations(|| stream.wait_event(&event))),
        ("wait_stream", allocations(|| stream.wait_stream(&other))),
        ("launch", allocations(|| exec.launch(&stream))),
        ("stream query", allocations(|| stream.query())),
        ("stream synchronize", allocations(|| stream.synchronize())),
        ("create and drop", allocations(|| Event::new(&context, EventFlags::empty()))),
        ("record_event and drop", allocations(|| stream.record_event(EventFlags::empty()))),
        ("stream, create and drop", allocations(|| Stream::new(&context, StreamOptions::new()))),
        ("make_current", allocations(|| context.make_current().is_ok())),
        ("clone a context", allocations(|| context.clone())),
        ("pool take and return", allocations(|| pool.take())),
        ("ipc_descriptor", allocations(|| shared.ipc_descriptor())),
        ("an error", allocations(|| event.ipc_descriptor())),
    ];
    let allocating: Vec<_> = counts.iter().filter(|(_, count)| *count != 0).collect();
    assert!(allocating.is_empty(), "{allocating:?}");
}

/// However many functions the program has asked for.
#[test]
fn a_call_of_a_function_that_was_asked_for_allocates_nothing() {
    type Capability = unsafe extern "C" fn(*mut c_int, *mut c_int, CUdevice) -> CUresult;
    let gpu = &Gpu::with_virtual_time();
    let driver = gpu.driver;
    let (name, version) = (c"cuDeviceComputeCapability", Version::new(2, 0));
    // SAFETY: NVIDIA's type of this function.
    let found = unsafe { driver.entry_point::<Capability>(name, version) };
    // Drivers before CUDA 11.3 do not find it.
    let Ok(capability) = found else { return assert!(driver.version() < Version::new(11, 3)) };
    let (mut major, mut minor) = (0, 0);
    let mut ask = || {
        // SAFETY: places for the numbers.
        allocations(|| unsafe { call!(driver, (capability)(&mut major, &mut minor, 0)) })
    };
    // The first one starts the driver's thread of work.
    ask();
    assert_eq!([ask(), ask()], [0; 2]);
    assert_eq!(major, 9);
}

#[test]
fn the_public_types_are_small() {
    let word = size_of::<usize>();
    let sizes = [
        ("Driver", size_of::<Driver>(), word),
        ("Device", size_of::<Device>(), 2 * word),
        ("Context", size_of::<Context>(), word),
        ("Option<Context>", size_of::<Option<Context>>(), word),
        ("Event", size_of::<Event>(), 4 * word),
        ("Option<Event>", size_of::<Option<Event>>(), 4 * word),
        ("EventRef", size_of::<EventRef>(), 4 * word),
        ("PooledEvent", size_of::<PooledEvent>(), word),
        ("EventPool", size_of::<EventPool>(), word),
        ("Completion", size_of::<Completion>(), 4 * word),
        ("Stream", size_of::<Stream>(), 8 * word),
        ("StreamRef", size_of::<StreamRef>(), 8 * word),
        ("EventFlags", size_of::<EventFlags>(), 4),
        ("IpcEventDescriptor", size_of::<IpcEventDescriptor>(), IpcEventDescriptor::LEN + word),
        ("Error", size_of::<Error>(), 16),
        ("Result<()>", size_of::<cuda_events::Result<()>>(), 16),
        ("Result<bool>", size_of::<cuda_events::Result<bool>>(), 16),
        ("Result<Event>", size_of::<cuda_events::Result<Event>>(), 4 * word),
    ];
    let grown: Vec<_> = sizes.iter().filter(|(_, size, most)| size > most).collect();
    assert!(grown.is_empty(), "{grown:?}");
}
