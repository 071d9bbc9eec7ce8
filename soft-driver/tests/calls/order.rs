//! Small programs of real calls with one planted error each, and the same programs mended: the
//! order checker reports the two calls on each of a hundred seeds of the random scheduler, and is
//! silent about the mended program.

use crate::common;

use std::ffi::c_void;
use std::ptr::null_mut;

use common::*;
use cuda_events::sys::*;
use cuda_events_test_support::child::{command, full_name, own_binary, role};
use cuda_soft_driver::{OrderCheck, Scheduler, SoftDriver, Time};

const SEEDS: u64 = 100;
const NON_BLOCKING: u32 = 1;

/// One run of a program: its streams, events and memory.
struct Desk<'a> {
    raw: &'a Raw,
    mended: bool,
    a: CUstream,
    b: CUstream,
    c: CUstream,
    e: [CUevent; 3],
    /// The buffer that it is about, of 64 bytes with room around it.
    buffer: CUdeviceptr,
    /// Another one.
    other: CUdeviceptr,
    /// Words that streams write and wait for.
    flag: CUdeviceptr,
    memory: CUdeviceptr,
    /// 64 bytes of pinned memory.
    pinned: *mut c_void,
    /// Where reads copy to, each to a place of its own.
    scratch: std::cell::Cell<CUdeviceptr>,
    freed: std::cell::Cell<bool>,
}

const ROOM: usize = 1 << 16;

impl<'a> Desk<'a> {
    fn new(raw: &'a Raw, mended: bool) -> Self {
        let (mut memory, mut pinned) = (0, null_mut());
        unsafe {
            assert_eq!((raw.cuMemAlloc_v2)(&mut memory, ROOM).0, OK);
            assert_eq!((raw.cuMemHostAlloc)(&mut pinned, 4096, 0).0, OK);
        }
        let stream = || raw.stream(NON_BLOCKING);
        let event = || raw.event(0);
        Self {
            raw,
            mended,
            a: stream(),
            b: stream(),
            c: stream(),
            e: [event(), event(), event()],
            buffer: memory + 1024,
            other: memory + 8192,
            flag: memory + 12288,
            memory,
            pinned,
            scratch: (memory + 16384).into(),
            freed: false.into(),
        }
    }

    fn number(&self, code: CUresult) -> u64 {
        assert_eq!(code.0, OK);
        self.raw.soft.calls()
    }

    fn end(self) {
        unsafe {
            assert_eq!((self.raw.cuCtxSynchronize)().0, OK);
            for stream in [self.a, self.b, self.c] {
                (self.raw.cuStreamDestroy_v2)(stream);
            }
            for event in self.e {
                (self.raw.cuEventDestroy_v2)(event);
            }
            if !self.freed.get() {
                assert_eq!((self.raw.cuMemFree_v2)(self.memory).0, OK);
            }
            assert_eq!((self.raw.cuMemFreeHost)(self.pinned).0, OK);
        }
    }

    fn set(&self, stream: CUstream, address: CUdeviceptr, bytes: usize) -> u64 {
        self.number(unsafe { (self.raw.cuMemsetD8Async)(address, 1, bytes, stream) })
    }

    fn get(&self, stream: CUstream, address: CUdeviceptr, bytes: usize) -> u64 {
        let to = self.scratch.get();
        self.scratch.set(to + 4096);
        self.copy(stream, to, address, bytes)
    }

    fn copy(&self, stream: CUstream, to: CUdeviceptr, from: CUdeviceptr, bytes: usize) -> u64 {
        self.number(unsafe { (self.raw.cuMemcpyDtoDAsync_v2)(to, from, bytes, stream) })
    }

    fn writes(&self, stream: CUstream) -> u64 {
        self.set(stream, self.buffer, 64)
    }

    fn reads(&self, stream: CUstream) -> u64 {
        self.get(stream, self.buffer, 64)
    }

    fn upload(&self, stream: CUstream) -> u64 {
        let from = self.pinned;
        self.number(unsafe { (self.raw.cuMemcpyHtoDAsync_v2)(self.buffer, from, 64, stream) })
    }

    fn download(&self, stream: CUstream) -> u64 {
        let to = self.pinned;
        self.number(unsafe { (self.raw.cuMemcpyDtoHAsync_v2)(to, self.buffer, 64, stream) })
    }

    fn record(&self, event: usize, stream: CUstream) -> u64 {
        self.raw.record(self.e[event], stream);
        self.raw.soft.calls()
    }

    fn wait(&self, stream: CUstream, event: usize) -> u64 {
        self.raw.wait(stream, self.e[event]);
        self.raw.soft.calls()
    }

    /// `one` is before `two` from here on.
    fn joined(&self, one: CUstream, two: CUstream) {
        self.record(2, one);
        self.wait(two, 2);
    }

    fn event_sync(&self, event: usize) {
        self.number(unsafe { (self.raw.cuEventSynchronize)(self.e[event]) });
    }

    fn signal(&self, stream: CUstream, value: u32) -> u64 {
        let write = self.raw.cuStreamWriteValue32_v2.unwrap();
        self.number(unsafe { write(stream, self.flag, value, 0) })
    }

    fn await_value(&self, stream: CUstream, value: u32, flags: u32) -> u64 {
        let wait = self.raw.cuStreamWaitValue32_v2.unwrap();
        self.number(unsafe { wait(stream, self.flag, value, flags) })
    }

    fn host_reads(&self) -> u64 {
        self.raw.soft.host_reads(self.pinned, 64);
        self.raw.soft.calls()
    }

    fn host_writes(&self) -> u64 {
        self.raw.soft.host_writes(self.pinned, 64);
        self.raw.soft.calls()
    }

    fn legacy_operation(&self) -> u64 {
        self.get(legacy(), self.other, 1)
    }

    fn context_record(&self, context: CUcontext, event: usize) {
        self.number(unsafe { self.raw.cuCtxRecordEvent.unwrap()(context, self.e[event]) });
    }

    fn context_wait(&self, context: CUcontext, event: usize) {
        self.number(unsafe { self.raw.cuCtxWaitEvent.unwrap()(context, self.e[event]) });
    }

    fn context(&self) -> CUcontext {
        let mut context = null_mut();
        self.number(unsafe { (self.raw.cuCtxGetCurrent)(&mut context) });
        context
    }

    /// Runs something in another context.
    fn elsewhere<R>(&self, run: impl FnOnce(CUcontext) -> R) -> R {
        let (mut context, mut popped) = (null_mut(), null_mut());
        unsafe {
            self.number((self.raw.cuCtxCreate_v2)(&mut context, 0, 0));
            let result = run(context);
            // The error is reported by now, or there is none.
            self.number((self.raw.cuCtxSynchronize)());
            self.number((self.raw.cuCtxPopCurrent_v2)(&mut popped));
            self.number((self.raw.cuCtxSynchronize)());
            self.number((self.raw.cuCtxDestroy_v2)(context));
            result
        }
    }

    fn capture(&self, stream: CUstream) {
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        self.number(unsafe { (self.raw.cuStreamBeginCapture_v2)(stream, mode) });
    }

    fn end_capture(&self, stream: CUstream) -> CUgraphExec {
        let (mut graph, mut exec) = (null_mut(), null_mut());
        unsafe {
            self.number((self.raw.cuStreamEndCapture)(stream, &mut graph));
            self.number(self.raw.cuGraphInstantiateWithFlags.unwrap()(&mut exec, graph, 0));
            self.number((self.raw.cuGraphDestroy)(graph));
        }
        exec
    }

    fn captured(&self, body: impl FnOnce()) -> CUgraphExec {
        self.capture(self.c);
        body();
        self.end_capture(self.c)
    }

    fn launch(&self, exec: CUgraphExec, stream: CUstream) -> u64 {
        self.number(unsafe { (self.raw.cuGraphLaunch)(exec, stream) })
    }
}

/// The two calls of a report.
type Pair = (u64, u64);
type Program = fn(&Desk<'_>) -> Pair;

/// A kind of error, how the report of it begins, and the program.
type Row = (&'static str, &'static str, Program);

const RACE: &str = "error: missing order: ";
const FREED: &str = "error: use after free: ";

const GEQ: u32 = CU_STREAM_WAIT_VALUE_GEQ;
const EQ: u32 = CU_STREAM_WAIT_VALUE_EQ;

#[rustfmt::skip] // A row in few lines.
const TABLE: &[Row] = &[
    // Two streams.
    ("write and read", RACE, |p| {
        let one = p.writes(p.a);
        if p.mended { p.joined(p.a, p.b); }
        (one, p.reads(p.b))
    }),
    ("read and write", RACE, |p| {
        let one = p.reads(p.a);
        if p.mended { p.joined(p.a, p.b); }
        (one, p.writes(p.b))
    }),
    ("write and write", RACE, |p| {
        let one = p.writes(p.a);
        if p.mended { p.joined(p.a, p.b); }
        (one, p.writes(p.b))
    }),
    ("recorded too early", RACE, |p| {
        if !p.mended { p.record(0, p.a); }
        let one = p.writes(p.a);
        if p.mended { p.record(0, p.a); }
        p.wait(p.b, 0);
        (one, p.reads(p.b))
    }),
    ("waited too late", RACE, |p| {
        let one = p.writes(p.a);
        p.record(0, p.a);
        if p.mended { p.wait(p.b, 0); }
        let two = p.reads(p.b);
        p.wait(p.b, 0);
        (one, two)
    }),
    ("waited in the wrong stream", RACE, |p| {
        let one = p.writes(p.a);
        p.record(0, p.a);
        p.wait(if p.mended { p.b } else { p.c }, 0);
        (one, p.reads(p.b))
    }),
    ("recorded in the wrong stream", RACE, |p| {
        let one = p.writes(p.a);
        p.record(0, if p.mended { p.a } else { p.c });
        p.wait(p.b, 0);
        (one, p.reads(p.b))
    }),
    ("waited for the wrong event", RACE, |p| {
        p.record(1, p.a);
        let one = p.writes(p.a);
        p.record(0, p.a);
        p.wait(p.b, usize::from(!p.mended));
        (one, p.reads(p.b))
    }),
    ("the event was recorded anew elsewhere", RACE, |p| {
        let one = p.writes(p.a);
        p.record(0, p.a);
        if !p.mended { p.record(0, p.c); }
        p.wait(p.b, 0);
        (one, p.reads(p.b))
    }),
    ("a wait keeps the record that it saw", RACE, |p| {
        p.record(0, p.a);
        if !p.mended { p.wait(p.b, 0); }
        let one = p.writes(p.a);
        p.record(0, p.a);
        if p.mended { p.wait(p.b, 0); }
        (one, p.reads(p.b))
    }),
    ("an event that was never recorded", RACE, |p| {
        let one = p.writes(p.a);
        if p.mended { p.record(0, p.a); }
        p.wait(p.b, 0);
        (one, p.reads(p.b))
    }),
    ("an event that was created anew", RACE, |p| {
        let mut event = p.raw.event(0);
        let one = p.writes(p.a);
        p.raw.record(event, p.a);
        if !p.mended {
            p.number(unsafe { (p.raw.cuEventDestroy_v2)(event) });
            event = p.raw.event(0);
        }
        p.raw.wait(p.b, event);
        (one, p.reads(p.b))
    }),
    ("the last byte is shared", RACE, |p| {
        let one = p.writes(p.a);
        (one, p.get(p.b, p.buffer + if p.mended { 64 } else { 63 }, 16))
    }),
    ("the first byte is shared", RACE, |p| {
        let one = p.writes(p.a);
        (one, p.get(p.b, p.buffer - if p.mended { 16 } else { 15 }, 16))
    }),
    ("one range is in the other", RACE, |p| {
        let one = p.set(p.a, p.buffer, 4096);
        if p.mended { p.joined(p.a, p.b); }
        (one, p.get(p.b, p.buffer + 1000, 8))
    }),
    ("a memset of four bytes each", RACE, |p| {
        let one = p.number(unsafe { (p.raw.cuMemsetD32Async)(p.buffer, 1, 16, p.a) });
        (one, p.get(p.b, p.buffer + if p.mended { 64 } else { 60 }, 4))
    }),
    ("a copy's source is overwritten", RACE, |p| {
        let one = p.copy(p.a, p.other, p.buffer, 64);
        if p.mended { p.joined(p.a, p.b); }
        (one, p.writes(p.b))
    }),
    ("a copy's target is read", RACE, |p| {
        let one = p.copy(p.a, p.buffer, p.other, 64);
        if p.mended { p.joined(p.a, p.b); }
        (one, p.reads(p.b))
    }),
    ("halves of a buffer, and one byte more", RACE, |p| {
        let one = p.set(p.a, p.buffer, if p.mended { 32 } else { 33 });
        (one, p.set(p.b, p.buffer + 32, 32))
    }),
    ("an upload, and a copy", RACE, |p| {
        let one = p.upload(p.a);
        if p.mended { p.joined(p.a, p.b); }
        (one, p.reads(p.b))
    }),
    ("a download, and the next round", RACE, |p| {
        let one = p.download(p.a);
        if p.mended { p.joined(p.a, p.b); }
        (one, p.writes(p.b))
    }),
    ("two downloads to one place", RACE, |p| {
        let one = p.download(p.a);
        if p.mended { p.joined(p.a, p.b); }
        (one, p.download(p.b))
    }),
    ("through a third stream, one hop missing", RACE, |p| {
        let one = p.writes(p.a);
        p.record(0, p.a);
        if p.mended { p.wait(p.c, 0); }
        p.record(1, p.c);
        p.wait(p.b, 1);
        (one, p.reads(p.b))
    }),
    ("through a third stream, the second hop missing", RACE, |p| {
        let one = p.writes(p.a);
        p.joined(p.a, p.c);
        p.record(1, p.c);
        if p.mended { p.wait(p.b, 1); }
        (one, p.reads(p.b))
    }),
    ("a ring of two buffers, used a third time", RACE, |p| {
        p.writes(p.a);
        p.joined(p.a, p.b);
        let one = p.reads(p.b);
        p.record(0, p.b);
        p.set(p.a, p.other, 64);
        p.joined(p.a, p.b);
        p.get(p.b, p.other, 64);
        if p.mended { p.wait(p.a, 0); }
        (one, p.writes(p.a))
    }),
    ("one of two readers is not waited for", RACE, |p| {
        p.writes(p.a);
        p.joined(p.a, p.b);
        p.joined(p.a, p.c);
        p.reads(p.b);
        let one = p.reads(p.c);
        p.joined(p.b, p.a);
        if p.mended { p.joined(p.c, p.a); }
        (one, p.writes(p.a))
    }),
    ("an event of one stream does not order another", RACE, |p| {
        p.set(p.a, p.other, 64);
        let one = p.writes(p.b);
        p.joined(p.a, p.c);
        if p.mended { p.joined(p.b, p.c); }
        (one, p.reads(p.c))
    }),
    ("a stream that is destroyed with work", RACE, |p| {
        let stream = p.raw.stream(NON_BLOCKING);
        let one = p.writes(stream);
        if p.mended { p.joined(stream, p.b); }
        p.number(unsafe { (p.raw.cuStreamDestroy_v2)(stream) });
        (one, p.reads(p.b))
    }),

    // The host.
    ("the host reads too early", RACE, |p| {
        let one = p.download(p.a);
        if p.mended { p.raw.sync(p.a); }
        (one, p.host_reads())
    }),
    ("the host writes too early", RACE, |p| {
        let one = p.upload(p.a);
        if p.mended { p.raw.sync(p.a); }
        (one, p.host_writes())
    }),
    ("the host waits for the wrong stream", RACE, |p| {
        let one = p.download(p.a);
        p.raw.sync(if p.mended { p.a } else { p.b });
        (one, p.host_reads())
    }),
    ("the host waits for an event before the work", RACE, |p| {
        p.record(0, p.a);
        let one = p.download(p.a);
        if p.mended { p.record(0, p.a); }
        p.event_sync(0);
        (one, p.host_reads())
    }),
    ("the host waits before the work", RACE, |p| {
        p.raw.sync(p.a);
        let one = p.download(p.a);
        if p.mended { p.raw.sync(p.a); }
        (one, p.host_reads())
    }),
    ("a query about another stream", RACE, |p| {
        let one = p.download(p.a);
        while p.raw.busy(if p.mended { p.a } else { p.b }) {}
        (one, p.host_reads())
    }),
    ("a query about a record before the work", RACE, |p| {
        p.record(0, p.a);
        let one = p.download(p.a);
        if p.mended { p.record(0, p.a); }
        while p.raw.query(p.e[0]) != OK {}
        (one, p.host_reads())
    }),
    ("the time between other events", RACE, |p| {
        p.record(0, p.a);
        p.event_sync(0);
        let one = p.download(p.a);
        p.record(1, p.a);
        let to = usize::from(p.mended);
        while p.raw.elapsed(p.e[0], p.e[to]) == Err(NOT_READY) {}
        (one, p.host_reads())
    }),
    ("another context is synchronized", RACE, |p| {
        let one = p.download(p.a);
        if p.mended { p.number(unsafe { (p.raw.cuCtxSynchronize)() }); }
        let two = p.elsewhere(|_| {
            p.number(unsafe { (p.raw.cuCtxSynchronize)() });
            p.host_reads()
        });
        (one, two)
    }),
    ("the host's wait orders other streams that it submits to", RACE, |p| {
        let one = p.writes(p.a);
        if p.mended { p.raw.sync(p.a); }
        (one, p.reads(p.b))
    }),
    ("the host waits after it submitted", RACE, |p| {
        let one = p.writes(p.a);
        if p.mended { p.raw.sync(p.a); }
        let two = p.reads(p.b);
        p.raw.sync(p.a);
        (one, two)
    }),
    ("a synchronous copy beside a stream", RACE, |p| {
        let one = p.writes(p.a);
        if p.mended { p.raw.sync(p.a); }
        let mut bytes = [0_u8; 64];
        let to = bytes.as_mut_ptr().cast();
        (one, p.number(unsafe { synchronous_copy(p)(to, p.buffer, 64) }))
    }),
    ("a synchronous memset beside a stream", RACE, |p| {
        let one = p.reads(p.a);
        if p.mended { p.raw.sync(p.a); }
        (one, p.number(unsafe { synchronous_memset(p)(p.buffer, 1, 64) }))
    }),
    ("ordinary memory is uploaded to what is read", RACE, |p| {
        let one = p.reads(p.a);
        if p.mended { p.joined(p.a, p.b); }
        let from = [0_u8; 64];
        let from = from.as_ptr().cast();
        (one, p.number(unsafe { (p.raw.cuMemcpyHtoDAsync_v2)(p.buffer, from, 64, p.b) }))
    }),

    // Frees.
    ("freed while it is read", RACE, |p| {
        let one = p.reads(p.a);
        if p.mended { p.raw.sync(p.a); }
        p.freed.set(true);
        (one, p.number(unsafe { (p.raw.cuMemFree_v2)(p.memory) }))
    }),
    ("freed while it is written", RACE, |p| {
        let one = p.writes(p.a);
        if p.mended { p.raw.sync(p.a); }
        p.freed.set(true);
        (one, p.number(unsafe { (p.raw.cuMemFree_v2)(p.memory) }))
    }),
    ("pinned memory is freed while it is copied", RACE, |p| {
        let mut memory = null_mut();
        p.number(unsafe { (p.raw.cuMemHostAlloc)(&mut memory, 64, 0) });
        let one =
            p.number(unsafe { (p.raw.cuMemcpyHtoDAsync_v2)(p.buffer, memory, 64, p.a) });
        if p.mended { p.raw.sync(p.a); }
        (one, p.number(unsafe { (p.raw.cuMemFreeHost)(memory) }))
    }),
    ("a graph uses what was freed", FREED, |p| {
        let mut memory = 0;
        p.number(unsafe { (p.raw.cuMemAlloc_v2)(&mut memory, 64) });
        let exec = p.captured(|| { p.set(p.c, memory, 64); });
        let launch = if p.mended { p.launch(exec, p.a) } else { 0 };
        p.raw.sync(p.a);
        let one = p.number(unsafe { (p.raw.cuMemFree_v2)(memory) });
        (one, if p.mended { launch } else { p.launch(exec, p.a) })
    }),

    // The default streams.
    ("a non-blocking stream and the legacy default stream", RACE, |p| {
        let stream = p.raw.stream(u32::from(!p.mended));
        let one = p.writes(stream);
        (one, p.reads(legacy()))
    }),
    ("the legacy default stream and a non-blocking stream", RACE, |p| {
        let stream = p.raw.stream(u32::from(!p.mended));
        let one = p.writes(legacy());
        (one, p.reads(stream))
    }),
    ("the legacy default stream of another context", RACE, |p| {
        let stream = p.raw.stream(0);
        if p.mended {
            let one = p.writes(stream);
            return (one, p.reads(legacy()));
        }
        let one = p.writes(stream);
        (one, p.elsewhere(|_| p.reads(legacy())))
    }),
    ("no legacy operation between two blocking streams", RACE, |p| {
        let (one, two) = (p.raw.stream(0), p.raw.stream(0));
        let first = p.writes(one);
        if p.mended { p.legacy_operation(); }
        (first, p.reads(two))
    }),
    ("the legacy default stream waits for an event that was never recorded", RACE, |p| {
        // That is no operation.
        let (one, two) = (p.raw.stream(0), p.raw.stream(0));
        let first = p.writes(one);
        if p.mended { p.record(0, p.c); }
        p.wait(legacy(), 0);
        (first, p.reads(two))
    }),
    ("a legacy operation before the work", RACE, |p| {
        let (one, two) = (p.raw.stream(0), p.raw.stream(0));
        if !p.mended { p.legacy_operation(); }
        let first = p.writes(one);
        if p.mended { p.legacy_operation(); }
        (first, p.reads(two))
    }),
    ("a legacy operation, and then one stream is not blocking", RACE, |p| {
        let (one, two) = (p.raw.stream(0), p.raw.stream(u32::from(!p.mended)));
        let first = p.writes(one);
        p.legacy_operation();
        (first, p.reads(two))
    }),
    ("the legacy default stream is synchronized, a non-blocking one works", RACE, |p| {
        let stream = p.raw.stream(u32::from(!p.mended));
        let one = p.download(stream);
        p.raw.sync(legacy());
        (one, p.host_reads())
    }),
    ("a blocking stream is synchronized after a legacy operation", RACE, |p| {
        let stream = p.raw.stream(0);
        let one = p.download(legacy());
        p.raw.sync(if p.mended { legacy() } else { stream });
        (one, p.host_reads())
    }),
    ("a blocking stream that is destroyed", RACE, |p| {
        let stream = p.raw.stream(u32::from(!p.mended));
        let one = p.writes(stream);
        p.number(unsafe { (p.raw.cuStreamDestroy_v2)(stream) });
        (one, p.reads(legacy()))
    }),
    ("the per-thread default stream and another one", RACE, |p| {
        let one = p.writes(per_thread());
        if p.mended { p.joined(per_thread(), p.b); }
        (one, p.reads(p.b))
    }),

    // Whole contexts.
    ("a context's record is before the work", RACE, |p| {
        if !p.mended { p.context_record(p.context(), 0); }
        let one = p.writes(p.a);
        if p.mended { p.context_record(p.context(), 0); }
        p.wait(p.b, 0);
        (one, p.reads(p.b))
    }),
    ("a context's record is of another context", RACE, |p| {
        let one = p.writes(p.a);
        if p.mended {
            p.context_record(p.context(), 0);
            p.wait(p.b, 0);
        }
        let two = p.elsewhere(|context| {
            let event = p.raw.event(0);
            p.number(unsafe { p.raw.cuCtxRecordEvent.unwrap()(context, event) });
            p.raw.wait(p.b, event);
            p.reads(p.b)
        });
        (one, two)
    }),
    ("a context's wait is after the work", RACE, |p| {
        let one = p.writes(p.a);
        p.record(0, p.a);
        if p.mended { p.context_wait(p.context(), 0); }
        let two = p.reads(p.b);
        p.context_wait(p.context(), 0);
        (one, two)
    }),
    ("a context's wait, and a stream that is created later", RACE, |p| {
        let one = p.writes(p.a);
        p.record(0, p.a);
        if p.mended { p.context_wait(p.context(), 0); }
        let stream = p.raw.stream(NON_BLOCKING);
        (one, p.reads(stream))
    }),
    ("a context's wait for another event", RACE, |p| {
        let one = p.writes(p.a);
        p.record(0, p.a);
        p.record(1, p.c);
        p.context_wait(p.context(), usize::from(!p.mended));
        (one, p.reads(p.b))
    }),

    // Values.
    ("a value that is not waited for", RACE, |p| {
        let one = p.writes(p.a);
        p.signal(p.a, 1);
        if p.mended { p.await_value(p.b, 1, GEQ); }
        (one, p.reads(p.b))
    }),
    ("a value is written before the work", RACE, |p| {
        if !p.mended { p.signal(p.a, 1); }
        let one = p.writes(p.a);
        if p.mended { p.signal(p.a, 1); }
        p.await_value(p.b, 1, GEQ);
        (one, p.reads(p.b))
    }),
    ("an earlier value suffices", RACE, |p| {
        p.signal(p.a, 1);
        let one = p.writes(p.a);
        p.signal(p.a, 2);
        p.await_value(p.b, if p.mended { 2 } else { 1 }, GEQ);
        (one, p.reads(p.b))
    }),
    ("a value is waited for before it is written", RACE, |p| {
        p.await_value(p.b, 1, GEQ);
        let two = p.reads(p.b);
        if !p.mended { p.signal(p.a, 1); }
        let one = p.writes(p.a);
        if p.mended { p.signal(p.a, 1); }
        (one, two)
    }),
    ("two streams write the value", RACE, |p| {
        let one = p.writes(p.a);
        p.signal(p.a, 1);
        if !p.mended { p.signal(p.c, 1); }
        p.await_value(p.b, 1, EQ);
        (one, p.reads(p.b))
    }),
    ("a flag goes to and fro, and once it is not waited for", RACE, |p| {
        p.writes(p.a);
        p.signal(p.a, 1);
        p.await_value(p.b, 1, EQ);
        let one = p.reads(p.b);
        p.signal(p.b, 0);
        if p.mended { p.await_value(p.a, 0, EQ); }
        (one, p.writes(p.a))
    }),
    ("a batch writes the value first", RACE, |p| {
        let batch = |stream| {
            let mut given = CUstreamBatchMemOpParams { pad: [0; 6] };
            given.writeValue = CUstreamMemOpWriteValueParams {
                operation: CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WRITE_VALUE_32,
                address: p.flag,
                u: CUstreamMemOpWriteValueParams_u { value64: 1 },
                flags: 0,
                alias: 0,
            };
            let batch = p.raw.cuStreamBatchMemOp_v2.unwrap();
            p.number(unsafe { batch(stream, 1, &mut given, 0) });
        };
        if !p.mended { batch(p.a); }
        let one = p.writes(p.a);
        if p.mended { batch(p.a); }
        p.await_value(p.b, 1, GEQ);
        (one, p.reads(p.b))
    }),
    ("a value is copied over", RACE, |p| {
        p.signal(p.a, 1);
        p.joined(p.a, p.c);
        let one = p.set(p.c, p.flag, 4);
        if p.mended { p.joined(p.c, p.a); }
        (one, p.signal(p.a, 2))
    }),

    // Graphs.
    ("a captured graph forks, and its branches race", RACE, |p| {
        let exec = p.captured(|| {
            p.joined(p.c, p.b);
            p.writes(p.c);
            if p.mended { p.joined(p.c, p.b); }
            p.reads(p.b);
            p.joined(p.b, p.c);
        });
        let launch = p.launch(exec, p.a);
        (launch, launch)
    }),
    ("a captured stream goes on before it has joined", RACE, |p| {
        let exec = p.captured(|| {
            p.set(p.c, p.other, 4);
            p.joined(p.c, p.b);
            p.writes(p.b);
            p.record(0, p.b);
            if p.mended { p.wait(p.c, 0); }
            p.reads(p.c);
            p.wait(p.c, 0);
        });
        let launch = p.launch(exec, p.a);
        (launch, launch)
    }),
    ("a graph and another stream", RACE, |p| {
        let exec = p.captured(|| { p.writes(p.c); });
        let one = p.launch(exec, p.a);
        if p.mended { p.joined(p.a, p.b); }
        (one, p.reads(p.b))
    }),
    ("another stream and a graph", RACE, |p| {
        let exec = p.captured(|| { p.reads(p.c); });
        let one = p.writes(p.b);
        if p.mended { p.joined(p.b, p.a); }
        (one, p.launch(exec, p.a))
    }),
    ("two graphs in two streams", RACE, |p| {
        let execs = [p.captured(|| { p.writes(p.c); }), p.captured(|| { p.reads(p.c); })];
        let one = p.launch(execs[0], p.a);
        if p.mended { p.joined(p.a, p.b); }
        (one, p.launch(execs[1], p.b))
    }),
    ("a graph's record comes too early", RACE, |p| {
        let external = CU_EVENT_RECORD_EXTERNAL;
        let record = || {
            let record = p.raw.cuEventRecordWithFlags.unwrap();
            p.number(unsafe { record(p.e[0], p.c, external) });
        };
        let exec = p.captured(|| {
            if !p.mended { record(); }
            p.writes(p.c);
            if p.mended { record(); }
        });
        let one = p.launch(exec, p.a);
        p.wait(p.b, 0);
        (one, p.reads(p.b))
    }),
    ("a graph's wait comes too late", RACE, |p| {
        let wait = || p.number(unsafe {
            (p.raw.cuStreamWaitEvent)(p.c, p.e[0], CU_EVENT_WAIT_EXTERNAL)
        });
        let exec = p.captured(|| {
            if p.mended { wait(); }
            p.reads(p.c);
            if !p.mended { wait(); }
        });
        let one = p.writes(p.a);
        p.record(0, p.a);
        (one, p.launch(exec, p.b))
    }),
    ("a graph's value is not waited for", RACE, |p| {
        let exec = p.captured(|| {
            p.writes(p.c);
            p.signal(p.c, 1);
        });
        let one = p.launch(exec, p.a);
        if p.mended { p.await_value(p.b, 1, GEQ); }
        (one, p.reads(p.b))
    }),
    ("captured work does not run", RACE, |p| {
        let one = p.writes(p.a);
        p.captured(|| {
            p.get(p.c, p.other, 4);
        });
        if p.mended { p.joined(p.a, p.b); }
        (one, p.reads(p.b))
    }),
    ("a graph's host function is no order for another stream", RACE, |p| {
        let exec = p.captured(|| {
            p.set(p.c, p.other, 4);
            unsafe extern "C" fn nothing(_: *mut c_void) {}
            let code = unsafe { (p.raw.cuLaunchHostFunc)(p.c, Some(nothing), null_mut()) };
            p.number(code);
            p.writes(p.c);
        });
        let one = p.launch(exec, p.a);
        if p.mended { p.joined(p.a, p.b); }
        (one, p.reads(p.b))
    }),

    // What the program tells.
    ("a kernel reads", RACE, |p| {
        let one = p.upload(p.a);
        if p.mended { p.joined(p.a, p.b); }
        (one, tell(p, p.b, false))
    }),
    ("a kernel writes", RACE, |p| {
        let one = tell(p, p.a, true);
        if p.mended { p.joined(p.a, p.b); }
        (one, p.download(p.b))
    }),
    ("two kernels", RACE, |p| {
        let one = tell(p, p.a, true);
        if p.mended { p.joined(p.a, p.b); }
        (one, tell(p, p.b, false))
    }),
    ("a kernel in a graph", RACE, |p| {
        let exec = p.captured(|| { tell(p, p.c, true); });
        let one = p.launch(exec, p.a);
        if p.mended { p.joined(p.a, p.b); }
        (one, p.reads(p.b))
    }),
    ("the host writes while a kernel reads", RACE, |p| {
        let one = p.upload(p.a);
        p.record(0, p.a);
        tell(p, p.a, false);
        p.event_sync(usize::from(!p.mended));
        (one, p.host_writes())
    }),
];

fn synchronous_copy(
    p: &Desk<'_>,
) -> unsafe extern "C" fn(*mut c_void, CUdeviceptr, usize) -> CUresult {
    unsafe { std::mem::transmute(p.raw.soft.resolve(c"cuMemcpyDtoH_v2")) }
}

fn synchronous_memset(p: &Desk<'_>) -> unsafe extern "C" fn(CUdeviceptr, u8, usize) -> CUresult {
    unsafe { std::mem::transmute(p.raw.soft.resolve(c"cuMemsetD8_v2")) }
}

/// A kernel in this stream touches the buffer.
fn tell(p: &Desk<'_>, stream: CUstream, write: bool) -> u64 {
    let driver = p.raw.soft.driver();
    let context = unsafe { cuda_events::Context::from_raw(driver, p.context()) }.unwrap();
    let stream = unsafe { cuda_events::StreamRef::from_raw(&context, stream) };
    if write {
        p.raw.soft.writes(&stream, p.buffer, 64);
    } else {
        p.raw.soft.reads(&stream, p.buffer, 64);
    }
    let number = p.raw.soft.calls();
    drop(stream);
    number
}

fn checked(seed: u64) -> Raw {
    let builder = SoftDriver::builder().version(13, 0).time(Time::Virtual);
    Raw::planting(builder.scheduler(Scheduler::Seeded(seed)).check_order(OrderCheck::Report))
}

fn each(raw: &Raw, seed: u64, (kind, begins, program): &Row) {
    for mended in [true, false] {
        let before = raw.soft.order_findings().len();
        let desk = Desk::new(raw, mended);
        let (one, two) = program(&desk);
        desk.end();
        let found = raw.soft.order_findings();
        let found = &found[before..];
        if mended {
            assert_eq!(found, [""; 0], "{kind}, mended, seed {seed}");
            continue;
        }
        let [found] = found else { panic!("{kind}, seed {seed}: {} reports", found.len()) };
        assert!(found.starts_with(begins), "{kind}, seed {seed}:\n{found}");
        let calls: Vec<&str> = found
            .lines()
            .filter(|line| line.starts_with("  first:") || line.starts_with("  second:"))
            .collect();
        let mut expected = [one, two].map(|number| format!("call #{number} "));
        if !calls[0].contains(&expected[0]) {
            expected.reverse();
        }
        let right = calls.len() == 2 && (0..2).all(|at| calls[at].contains(&expected[at]));
        assert!(right, "{kind}, seed {seed}, calls {one} and {two}:\n{found}");
    }
}

/// Runs a test in a process of its own, whose reports nobody has to read.
fn aside(test: &str, run: impl FnOnce()) {
    if role().is_some() {
        run();
        println!("it is through");
        return;
    }
    let output = command(&own_binary(), &full_name(test), "aside")
        .output()
        .expect("the test's own program runs");
    let text = String::from_utf8_lossy(&output.stdout);
    if !(output.status.success() && text.contains("it is through")) {
        let said = String::from_utf8_lossy(&output.stderr);
        let end: Vec<&str> = said.lines().rev().take(60).collect();
        let end: Vec<&str> = end.into_iter().rev().collect();
        panic!("{text}\n{}", end.join("\n"));
    }
}

#[test]
fn each_planted_error_is_reported_on_every_seed() {
    aside("each_planted_error_is_reported_on_every_seed", || {
        assert!(TABLE.len() >= 60, "{} kinds", TABLE.len());
        for seed in 0..SEEDS {
            let raw = checked(seed);
            for row in TABLE {
                each(&raw, seed, row);
            }
        }
    });
}

/// What orders programs and is not told: each of these is good, and nothing is reported.
#[test]
fn what_orders_without_a_call_is_no_report() {
    aside("what_orders_without_a_call_is_no_report", || {
        for seed in 0..2 {
            let raw = checked(seed);
            let programs: [fn(&Desk<'_>); 5] = [
                host_signals,
                host_polls,
                host_function_waits,
                host_function_tells,
                one_graph_in_two_streams,
            ];
            for program in programs {
                let desk = Desk::new(&raw, true);
                program(&desk);
                desk.end();
            }
            assert_eq!(raw.soft.order_findings(), [""; 0], "seed {seed}");
        }
    });
}

fn word<'a>(p: &'a Desk<'_>) -> &'a std::sync::atomic::AtomicU32 {
    unsafe { std::sync::atomic::AtomicU32::from_ptr(p.pinned.cast::<u32>().add(512)) }
}

fn word_address(p: &Desk<'_>) -> CUdeviceptr {
    std::ptr::from_ref(word(p)).addr() as u64
}

/// Launches of one executable graph come one after the other, in whatever streams.
fn one_graph_in_two_streams(p: &Desk<'_>) {
    let exec = p.captured(|| {
        p.writes(p.c);
    });
    p.launch(exec, p.a);
    p.launch(exec, p.b);
}

/// A stream waits for a value that the host stores when it has waited for another stream.
fn host_signals(p: &Desk<'_>) {
    let wait = p.raw.cuStreamWaitValue32_v2.unwrap();
    p.number(unsafe { wait(p.b, word_address(p), 1, GEQ) });
    p.reads(p.b);
    p.writes(p.a);
    p.raw.sync(p.a);
    word(p).store(1, std::sync::atomic::Ordering::Release);
    p.raw.sync(p.b);
}

/// The host polls a value that a stream writes, and then goes on in another stream.
fn host_polls(p: &Desk<'_>) {
    let write = p.raw.cuStreamWriteValue32_v2.unwrap();
    p.writes(p.a);
    p.number(unsafe { write(p.a, word_address(p), 1, 0) });
    let exec = p.captured(|| {
        p.set(p.c, p.other, 64);
        p.number(unsafe { write(p.c, word_address(p) + 4, 1, 0) });
    });
    p.launch(exec, p.a);
    let next = unsafe { std::sync::atomic::AtomicU32::from_ptr(word(p).as_ptr().add(1)) };
    for word in [word(p), next] {
        while word.load(std::sync::atomic::Ordering::Acquire) == 0 {
            std::thread::yield_now();
        }
    }
    p.reads(p.b);
    p.get(p.b, p.other, 64);
}

/// A stream is held by a host function until the host has waited for another stream; and so is a
/// graph.
fn host_function_waits(p: &Desk<'_>) {
    let latch = p.raw.latch(p.a);
    p.reads(p.a);
    p.writes(p.b);
    p.raw.sync(p.b);
    latch.release();
    p.raw.sync(p.a);

    let latch = std::cell::OnceCell::new();
    let exec = p.captured(|| {
        let _ = latch.set(p.raw.latch(p.c));
        p.reads(p.c);
    });
    p.launch(exec, p.a);
    p.writes(p.b);
    p.raw.sync(p.b);
    latch.into_inner().expect("it was captured").release();
    p.raw.sync(p.a);
}

/// A host function tells the host that the work before it is done, and ends much later.
fn host_function_tells(p: &Desk<'_>) {
    use std::sync::mpsc::channel;
    let ((tell, hear), (end, ended)) = (channel(), channel());
    p.writes(p.a);
    p.raw.host(p.a, move || {
        tell.send(()).expect("somebody hears");
        let _ = ended.recv();
    });
    hear.recv().expect("it is told");
    p.reads(p.b);
    drop::<std::sync::mpsc::Sender<()>>(end);
    p.raw.sync(p.a);

    let ((tell, hear), (end, ended)) = (channel(), channel());
    let exec = p.captured(|| {
        p.set(p.c, p.other, 64);
        p.raw.host(p.c, move || {
            tell.send(()).expect("somebody hears");
            let _ = ended.recv();
        });
    });
    p.launch(exec, p.a);
    hear.recv().expect("it is told");
    p.get(p.b, p.other, 64);
    drop::<std::sync::mpsc::Sender<()>>(end);
    p.raw.sync(p.a);
}

/// The parts of a report, where all of them are known.
#[test]
fn a_report_has_all_its_parts() {
    aside("a_report_has_all_its_parts", || {
        let raw = checked(1);
        let desk = Desk::new(&raw, false);
        let exec = desk.captured(|| {
            desk.set(desk.c, desk.other, 4);
            desk.upload(desk.c);
        });
        let one = desk.launch(exec, legacy());
        let (line, two) = (line!() + 3, raw.soft.calls() + 1);
        // It is reported once for each pair of places.
        for _ in 0..2 {
            raw.soft.host_writes(desk.pinned.cast::<u8>().wrapping_byte_add(8), 1000);
        }
        assert_eq!(raw.soft.order_findings().len(), 1);
        let found = raw.soft.order_findings().concat();
        let (first, last) = (desk.pinned.addr() + 8, desk.pinned.addr() + 64);
        let thread = std::thread::current().name().unwrap_or("main").to_owned();
        let stream = "stream 0x1 (the legacy default stream)";
        for part in [
            "error: missing order: two calls touch the same 56 bytes, and nothing orders them\n",
            &format!(
                "  first:   call #{one} (cuGraphLaunch) reads them on node 1 of a graph in \
                 {stream}, submitted by thread {thread}\n"
            ),
            &format!("  second:  call #{two} (host_writes) writes them on thread {thread}, at "),
            &format!("order.rs:{line}:"),
            &format!("  bytes:   {first:#x}..{last:#x}\n"),
            "  order:   ",
            &format!("  missing: have thread {thread} synchronize with {stream}"),
        ] {
            assert!(found.contains(part), "{part}\n{found}");
        }
        desk.end();
    });
}
