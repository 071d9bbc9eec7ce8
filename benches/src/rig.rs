//! What the loops work on: the same streams and events for the safe layer, the raw table and C, and
//! cudarc's own.

use core::ffi::c_void;
use std::sync::{Arc, Mutex, OnceLock};

use cuda_events::ext::EventPool;
use cuda_events::sys::{CUcontext, CUresult, Symbols};
use cuda_events::{
    Context, Device, Driver, Event, EventFlags, IpcEventDescriptor, Stream, StreamOptions,
    StreamRef,
};
use cuda_events_trace::Tracer;
use cuda_timelines::{Point, Timeline};
use cudarc::driver::sys::CUevent_flags;
use cudarc::driver::{CudaContext, CudaEvent, CudaStream};

/// The function pointers for C, in the order of `struct calls` in loops.c.
#[repr(C)]
pub struct Calls([*mut c_void; 13]);

impl Calls {
    fn new(symbols: &Symbols) -> Self {
        use cuda_events::sys::functions::*;
        let elapsed = match symbols.cuEventElapsedTime_v2 {
            Some(_) => cuEventElapsedTime_v2,
            None => cuEventElapsedTime,
        };
        let functions = [
            cuEventRecord,
            cuEventQuery,
            cuEventSynchronize,
            elapsed,
            cuEventCreate,
            cuEventDestroy_v2,
            cuStreamWaitEvent,
            cuStreamQuery,
            cuStreamSynchronize,
            cuIpcGetEventHandle,
            cuIpcOpenEventHandle,
            cuCtxGetCurrent,
            cuStreamWriteValue64_v2,
        ];
        Self(functions.map(|function| symbols.address(function)))
    }
}

/// The handles for C, in the order of `struct handles` in loops.c.
#[repr(C)]
pub struct Handles {
    calls: *const Calls,
    stream: *mut c_void,
    other: *mut c_void,
    event: *mut c_void,
    join: *mut c_void,
    start: *mut c_void,
    end: *mut c_void,
    shared: *mut c_void,
    imported: [u8; 64],
}

/// cudarc's objects.
pub struct Peer {
    pub context: Arc<CudaContext>,
    pub stream: Arc<CudaStream>,
    pub other: Arc<CudaStream>,
    pub event: CudaEvent,
    pub start: CudaEvent,
    pub end: CudaEvent,
}

impl Peer {
    fn new(context: &Arc<CudaContext>) -> Self {
        let timing = Some(CUevent_flags::CU_EVENT_DEFAULT);
        let peer = Self {
            context: Arc::clone(context),
            stream: context.new_stream().expect("a stream of cudarc's"),
            other: context.new_stream().expect("a stream of cudarc's"),
            event: context.new_event(None).expect("an event of cudarc's"),
            start: context.new_event(timing).expect("an event of cudarc's"),
            end: context.new_event(timing).expect("an event of cudarc's"),
        };
        for event in [&peer.event, &peer.start, &peer.end] {
            event.record(&peer.stream).expect("cudarc records");
        }
        peer.stream.synchronize().expect("cudarc synchronizes");
        peer
    }
}

pub struct Rig {
    pub handles: Handles,
    pub symbols: &'static Symbols,
    pub stream: Stream,
    pub other: Stream,
    pub event: Event,
    /// For C; the safe layer has its own.
    _join: Event,
    pub start: Event,
    pub end: Event,
    pub shared: Event,
    pub legacy: StreamRef,
    pub pool: EventPool,
    /// What another process exports.
    pub imported: IpcEventDescriptor,
    pub context: Context,
    pub peer: Peer,
    /// Of the loops with spans. Each makes one and leaks it, so that its end is not counted.
    pub tracer: Mutex<Option<&'static Tracer>>,
    /// Of the loops with signals and points.
    pub timeline: OnceLock<(Timeline, Point)>,
    _calls: Box<Calls>,
}

impl Rig {
    /// The context is current on the calling thread from now on.
    pub fn new(context: &Context, peer: &Arc<CudaContext>, imported: IpcEventDescriptor) -> Self {
        let symbols = context.driver().symbols();
        make_current(symbols, context.as_raw());
        let stream = || Stream::new(context, StreamOptions::new()).expect("a stream");
        let event = |flags| Event::new(context, flags).expect("an event");
        let (stream, other) = (stream(), stream());
        let [event, join, start, end, shared] = [
            EventFlags::empty(),
            EventFlags::empty(),
            EventFlags::TIMING,
            EventFlags::TIMING,
            EventFlags::INTERPROCESS,
        ]
        .map(event);
        for event in [&event, &join, &start, &end, &shared] {
            event.record(&stream).expect("a record");
        }
        stream.synchronize().expect("the stream synchronizes");
        shared.ipc_descriptor().expect("an exported event");
        let pool = EventPool::new(context, EventFlags::empty()).expect("a pool");
        pool.reserve(1).expect("an event for the pool");
        // From here on each call of this is a steady one.
        stream.wait_stream(&other).expect("a join");
        let calls = Box::new(Calls::new(symbols));
        let handles = Handles {
            calls: &raw const *calls,
            stream: stream.as_raw().cast(),
            other: other.as_raw().cast(),
            event: event.as_raw().cast(),
            join: join.as_raw().cast(),
            start: start.as_raw().cast(),
            end: end.as_raw().cast(),
            shared: shared.as_raw().cast(),
            imported: imported.to_raw(),
        };
        Self {
            handles,
            symbols,
            legacy: StreamRef::legacy_default(context),
            context: context.clone(),
            peer: Peer::new(peer),
            stream,
            other,
            event,
            _join: join,
            start,
            end,
            shared,
            pool,
            imported,
            tracer: Mutex::default(),
            timeline: OnceLock::new(),
            _calls: calls,
        }
    }

    /// Waits until the driver has done what a loop gave it.
    pub fn settle(&self) {
        for stream in [&*self.stream, &*self.other, &self.legacy] {
            stream.synchronize().expect("the stream synchronizes");
        }
        for stream in [&self.peer.stream, &self.peer.other] {
            stream.synchronize().expect("cudarc synchronizes");
        }
    }
}

/// Makes a context current on the calling thread, or none.
pub fn make_current(symbols: &Symbols, context: CUcontext) {
    // SAFETY: the context is NULL or alive.
    let code = unsafe { (symbols.cuCtxSetCurrent)(context) };
    assert_eq!(code, CUresult::CUDA_SUCCESS, "cuCtxSetCurrent failed");
}

pub fn first_context(driver: Driver) -> Context {
    let context = Device::new(driver, 0).and_then(Context::primary);
    context.unwrap_or_else(|error| {
        crate::fail(&format!("device 0 has no context to measure in: {error}"))
    })
}
