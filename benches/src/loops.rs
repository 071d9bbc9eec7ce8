//! The measured operations: each as a loop of the safe layer, of the raw table, of C and of cudarc.
//!
//! Each loop is a function of its own under a plain name, so that callgrind's figures can be told apart.

use core::hint::black_box;
use core::ptr::null_mut;

use cuda_events::sys::{CUevent, CUipcEventHandle, CUresult, CUstream};
use cuda_events::{Event, EventFlags};

use crate::rig::{Handles, Rig, make_current};

/// Makes an operation so many times, and says how many failed.
pub type Loop = fn(&Rig, u64) -> u64;

/// Makes the compiler forget what it knows of what is behind a reference, at the cost of no instruction, so that nothing
/// is moved out of the loop that a program with work between the calls could not have moved. loops.c has the same.
#[inline(always)]
fn hide<T>(reference: &T) -> &T {
    let mut address: *const T = reference;
    // SAFETY: no instruction at all. It is left open what `address` is afterwards; it is what it was.
    unsafe { core::arch::asm!("/* {0} */", inout(reg) address, options(nostack, preserves_flags)) };
    // SAFETY: the reference that it was made of.
    unsafe { &*address }
}

/// `name: |rig| call` is a loop over `call`, a `Result`.
macro_rules! loops {
    ($($name:ident: |$rig:ident| $(let $local:ident = $value:expr;)* $call:expr;)*) => {
        $(
            #[unsafe(no_mangle)]
            #[inline(never)]
            extern "C" fn $name($rig: &Rig, n: u64) -> u64 {
                $(let $local = $value;)*
                let mut failed = 0;
                for _ in 0..n {
                    failed += u64::from($call.is_err());
                }
                failed
            }
        )*
    };
}

loops! {
    safe_record: |rig| let event = &rig.event; let stream = &rig.stream; hide(event).record(hide(stream));
    safe_record_timing: |rig| let event = &rig.end; let stream = &rig.stream; hide(event).record(hide(stream));
    safe_record_default: |rig| let event = &rig.event; let stream = &rig.legacy; hide(event).record(hide(stream));
    safe_query: |rig| let event = &rig.event; pending(hide(event).query());
    safe_synchronize: |rig| let event = &rig.event; hide(event).synchronize();
    safe_wait: |rig| let event = &rig.event; let stream = &rig.other; hide(stream).wait_event(hide(event));
    safe_elapsed: |rig| let start = &rig.start; let end = &rig.end; positive(hide(start).elapsed_ms(hide(end)));
    safe_stream_query: |rig| let stream = &rig.stream; pending(hide(stream).query());
    safe_stream_synchronize: |rig| let stream = &rig.stream; hide(stream).synchronize();
    safe_create_drop: |rig| let context = &rig.context; Event::new(hide(context), EventFlags::empty());
    safe_record_event: |rig| let stream = &rig.stream; hide(stream).record_event(EventFlags::empty());
    safe_wait_stream: |rig| let stream = &rig.stream; let other = &rig.other; hide(stream).wait_stream(hide(other));
    safe_pool: |rig| let pool = &rig.pool; hide(pool).take();
    safe_export: |rig| let event = &rig.shared; black_box(hide(event).ipc_descriptor());
    safe_import_close: |rig| let context = &rig.context; let descriptor = &rig.imported; import(context, descriptor);

    raw_record: |rig| let handles = Raw::of(rig); handles.hidden().record();
    raw_query: |rig| let handles = Raw::of(rig); handles.hidden().query();
    raw_synchronize: |rig| let handles = Raw::of(rig); handles.hidden().synchronize();
    raw_wait: |rig| let handles = Raw::of(rig); handles.hidden().wait();
    raw_elapsed: |rig| let handles = Raw::of(rig); handles.hidden().elapsed();
    raw_stream_query: |rig| let handles = Raw::of(rig); handles.hidden().stream_query();
    raw_stream_synchronize: |rig| let handles = Raw::of(rig); handles.hidden().stream_synchronize();
    raw_create_drop: |rig| let handles = Raw::of(rig); handles.hidden().create_destroy();

    cudarc_record: |rig| let event = &rig.peer.event; let stream = &*rig.peer.stream; hide(event).record(hide(stream));
    cudarc_record_timing: |rig| let event = &rig.peer.end; let stream = &*rig.peer.stream; hide(event).record(hide(stream));
    cudarc_query: |rig| let event = &rig.peer.event; pending(hide(event).try_is_complete());
    cudarc_synchronize: |rig| let event = &rig.peer.event; hide(event).synchronize();
    cudarc_wait: |rig| let event = &rig.peer.event; let stream = &*rig.peer.other; hide(stream).wait(hide(event));
    cudarc_elapsed: |rig| let start = &rig.peer.start; let end = &rig.peer.end; positive(hide(start).elapsed_ms(hide(end)));
    cudarc_stream_synchronize: |rig| let stream = &*rig.peer.stream; hide(stream).synchronize();
    cudarc_create_drop: |rig| let context = &rig.peer.context; hide(context).new_event(None);
    cudarc_record_event: |rig| let stream = &*rig.peer.stream; hide(stream).record_event(None);
    cudarc_wait_stream: |rig| let stream = &*rig.peer.stream; let other = &*rig.peer.other; hide(stream).join(hide(other));
}

/// Done and not done are both answers, as they are to the C loop.
#[inline(always)]
fn pending<E>(answer: Result<bool, E>) -> Result<(), E> {
    answer.map(|_| ())
}

#[inline(always)]
fn positive<E>(milliseconds: Result<f32, E>) -> Result<(), ()> {
    if milliseconds.is_ok_and(|milliseconds| milliseconds >= 0.0) { Ok(()) } else { Err(()) }
}

#[inline(always)]
fn import(
    context: &cuda_events::Context,
    descriptor: &cuda_events::IpcEventDescriptor,
) -> cuda_events::Result<Event> {
    // SAFETY: the process that exported it keeps the event until this program has ended.
    unsafe { Event::from_ipc_descriptor(hide(context), hide(descriptor)) }
}

/// The raw table, and handles that are in registers as they are in C.
#[derive(Clone, Copy)]
struct Raw {
    symbols: &'static cuda_events::sys::Symbols,
    stream: CUstream,
    other: CUstream,
    event: CUevent,
    start: CUevent,
    end: CUevent,
}

#[inline(always)]
fn ok(code: CUresult) -> Result<(), CUresult> {
    if code == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(code) }
}

#[inline(always)]
fn ready(code: CUresult) -> Result<(), CUresult> {
    if code == CUresult::CUDA_ERROR_NOT_READY { Ok(()) } else { ok(code) }
}

impl Raw {
    fn of(rig: &Rig) -> Self {
        Self {
            symbols: rig.symbols,
            stream: rig.stream.as_raw(),
            other: rig.other.as_raw(),
            event: rig.event.as_raw(),
            start: rig.start.as_raw(),
            end: rig.end.as_raw(),
        }
    }

    #[inline(always)]
    fn hidden(self) -> Self {
        Self { symbols: hide(self.symbols), ..self }
    }

    #[inline(always)]
    fn record(self) -> Result<(), CUresult> {
        // SAFETY: the rig's objects are alive, here and in the methods below.
        ok(unsafe { (self.symbols.cuEventRecord)(self.event, self.stream) })
    }

    #[inline(always)]
    fn query(self) -> Result<(), CUresult> {
        // SAFETY: as for record.
        ready(unsafe { (self.symbols.cuEventQuery)(self.event) })
    }

    #[inline(always)]
    fn synchronize(self) -> Result<(), CUresult> {
        // SAFETY: as for record.
        ok(unsafe { (self.symbols.cuEventSynchronize)(self.event) })
    }

    #[inline(always)]
    fn wait(self) -> Result<(), CUresult> {
        // SAFETY: as for record.
        ok(unsafe { (self.symbols.cuStreamWaitEvent)(self.other, self.event, 0) })
    }

    #[inline(always)]
    fn elapsed(self) -> Result<(), ()> {
        let elapsed = self.symbols.cuEventElapsedTime_v2.unwrap_or(self.symbols.cuEventElapsedTime);
        let mut milliseconds = 0.0;
        // SAFETY: as for record; a place for the one number.
        let code = unsafe { elapsed(&mut milliseconds, self.start, self.end) };
        positive(ok(code).map(|()| milliseconds))
    }

    #[inline(always)]
    fn stream_query(self) -> Result<(), CUresult> {
        // SAFETY: as for record.
        ready(unsafe { (self.symbols.cuStreamQuery)(self.stream) })
    }

    #[inline(always)]
    fn stream_synchronize(self) -> Result<(), CUresult> {
        // SAFETY: as for record.
        ok(unsafe { (self.symbols.cuStreamSynchronize)(self.stream) })
    }

    #[inline(always)]
    fn create_destroy(self) -> Result<(), CUresult> {
        const DISABLE_TIMING: u32 = 2;
        let mut event = null_mut();
        // SAFETY: a place for the handle; the context is current.
        ok(unsafe { (self.symbols.cuEventCreate)(&mut event, DISABLE_TIMING) })?;
        // SAFETY: it was made above, and is destroyed once.
        ok(unsafe { (self.symbols.cuEventDestroy_v2)(event) })
    }
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn raw_export(rig: &Rig, n: u64) -> u64 {
    let mut failed = 0;
    for _ in 0..n {
        let mut handle = CUipcEventHandle { reserved: [0; 64] };
        // SAFETY: a place for the 64 bytes; the event is alive, and its context current.
        let code = unsafe { (hide(rig.symbols).cuIpcGetEventHandle)(&mut handle, rig.shared.as_raw()) };
        failed += u64::from(code != CUresult::CUDA_SUCCESS);
        black_box(&handle);
    }
    failed
}

macro_rules! c_loops {
    ($($name:ident)*) => {
        mod c {
            use super::Handles;
            unsafe extern "C" {
                $(pub(super) fn $name(handles: &Handles, n: u64) -> u64;)*
            }
        }
        $(
            fn $name(rig: &Rig, n: u64) -> u64 {
                // SAFETY: the declaration is that of loops.c, and so are the layouts; the rig's objects are alive.
                unsafe { c::$name(&rig.handles, n) }
            }
        )*
    };
}

c_loops! {
    c_record c_record_timing c_record_default c_query c_synchronize c_wait c_elapsed c_stream_query c_stream_synchronize
    c_create_drop c_record_event c_wait_stream c_export c_import_close
}

/// Without a current context, which is restored.
fn elsewhere(rig: &Rig, n: u64, run: extern "C" fn(&Rig, u64) -> u64) -> u64 {
    make_current(rig.symbols, null_mut());
    let failed = run(rig, n);
    make_current(rig.symbols, rig.context.as_raw());
    failed
}

/// One operation, and who can do it.
pub struct Operation {
    /// What it is called in reports.
    pub name: &'static str,
    /// What its loops' functions are called, after `safe_`, `raw_`, `c_` and `cudarc_`.
    pub function: &'static str,
    pub loops: &'static [(Implementation, Loop)],
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Implementation {
    C,
    Safe,
    Raw,
    Cudarc,
}

impl Implementation {
    pub fn name(self) -> &'static str {
        match self {
            Self::C => "C",
            Self::Safe => "safe",
            Self::Raw => "raw",
            Self::Cudarc => "cudarc",
        }
    }
}

macro_rules! operation {
    ($name:literal, $function:ident, $($implementation:ident $run:expr),*) => {
        Operation {
            name: $name,
            function: stringify!($function),
            loops: &[$((Implementation::$implementation, |rig, n| $run(rig, n))),*],
        }
    };
}

/// The C loop is the first of each.
pub const OPERATIONS: &[Operation] = &[
    operation!("record", record, C c_record, Safe safe_record, Raw raw_record, Cudarc cudarc_record),
    operation!("query, done", query, C c_query, Safe safe_query, Raw raw_query, Cudarc cudarc_query),
    operation!("synchronize, done", synchronize, C c_synchronize, Safe safe_synchronize, Raw raw_synchronize, Cudarc cudarc_synchronize),
    operation!("stream wait", wait, C c_wait, Safe safe_wait, Raw raw_wait, Cudarc cudarc_wait),
    operation!("elapsed", elapsed, C c_elapsed, Safe safe_elapsed, Raw raw_elapsed, Cudarc cudarc_elapsed),
    operation!("stream query", stream_query, C c_stream_query, Safe safe_stream_query, Raw raw_stream_query),
    operation!("stream synchronize, idle", stream_synchronize, C c_stream_synchronize, Safe safe_stream_synchronize, Raw raw_stream_synchronize, Cudarc cudarc_stream_synchronize),
    operation!("record, timing", record_timing, C c_record_timing, Safe safe_record_timing, Cudarc cudarc_record_timing),
    operation!("create + drop", create_drop, C c_create_drop, Safe safe_create_drop, Raw raw_create_drop, Cudarc cudarc_create_drop),
    operation!("record_event + drop", record_event, C c_record_event, Safe safe_record_event, Cudarc cudarc_record_event),
    operation!("wait_stream", wait_stream, C c_wait_stream, Safe safe_wait_stream, Cudarc cudarc_wait_stream),
    operation!("pool take + return", pool, C c_create_drop, Safe safe_pool),
    operation!("record, default stream", record_default, C c_record_default, Safe safe_record_default),
    operation!("IPC export, again", export, C c_export, Safe safe_export, Raw raw_export),
    operation!("IPC import + close", import_close, C c_import_close, Safe safe_import_close),
    // With no context current for the safe layer; C needs one.
    operation!("create + drop, not current", create_drop, C c_create_drop, Safe (|rig, n| elsewhere(rig, n, safe_create_drop))),
    operation!("record, default stream, not current", record_default, C c_record_default, Safe (|rig, n| elsewhere(rig, n, safe_record_default))),
];
