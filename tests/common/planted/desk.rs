//! One run of a program: what it has, and the words that programs are made of.

use std::ffi::c_void;
use std::ptr::null_mut;

use cuda_events::sys::*;

use super::NON_BLOCKING;
use crate::raw::*;

/// One run of a program: its streams, events and memory.
pub struct Desk<'a> {
    pub raw: &'a Raw,
    pub mended: bool,
    pub a: CUstream,
    pub b: CUstream,
    pub c: CUstream,
    pub e: [CUevent; 3],
    /// The buffer that it is about, of 64 bytes with room around it.
    pub buffer: CUdeviceptr,
    /// Another one.
    pub other: CUdeviceptr,
    /// Words that streams write and wait for.
    pub flag: CUdeviceptr,
    pub memory: CUdeviceptr,
    /// 64 bytes of pinned memory.
    pub pinned: *mut c_void,
    /// Where reads copy to, each to a place of its own.
    pub scratch: std::cell::Cell<CUdeviceptr>,
    pub freed: std::cell::Cell<bool>,
}

pub const ROOM: usize = 1 << 16;

impl<'a> Desk<'a> {
    pub fn new(raw: &'a Raw, mended: bool) -> Self {
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

    pub fn number(&self, code: CUresult) -> u64 {
        assert_eq!(code.0, OK);
        self.raw.soft.calls()
    }

    pub fn end(self) {
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

    pub fn set(&self, stream: CUstream, address: CUdeviceptr, bytes: usize) -> u64 {
        self.number(unsafe { (self.raw.cuMemsetD8Async)(address, 1, bytes, stream) })
    }

    pub fn get(&self, stream: CUstream, address: CUdeviceptr, bytes: usize) -> u64 {
        let to = self.scratch.get();
        self.scratch.set(to + 4096);
        self.copy(stream, to, address, bytes)
    }

    pub fn copy(&self, stream: CUstream, to: CUdeviceptr, from: CUdeviceptr, bytes: usize) -> u64 {
        self.number(unsafe { (self.raw.cuMemcpyDtoDAsync_v2)(to, from, bytes, stream) })
    }

    pub fn writes(&self, stream: CUstream) -> u64 {
        self.set(stream, self.buffer, 64)
    }

    pub fn reads(&self, stream: CUstream) -> u64 {
        self.get(stream, self.buffer, 64)
    }

    pub fn upload(&self, stream: CUstream) -> u64 {
        let from = self.pinned;
        self.number(unsafe { (self.raw.cuMemcpyHtoDAsync_v2)(self.buffer, from, 64, stream) })
    }

    pub fn download(&self, stream: CUstream) -> u64 {
        let to = self.pinned;
        self.number(unsafe { (self.raw.cuMemcpyDtoHAsync_v2)(to, self.buffer, 64, stream) })
    }

    pub fn record(&self, event: usize, stream: CUstream) -> u64 {
        self.raw.record(self.e[event], stream);
        self.raw.soft.calls()
    }

    pub fn wait(&self, stream: CUstream, event: usize) -> u64 {
        self.raw.wait(stream, self.e[event]);
        self.raw.soft.calls()
    }

    /// `one` is before `two` from here on.
    pub fn joined(&self, one: CUstream, two: CUstream) {
        self.record(2, one);
        self.wait(two, 2);
    }

    pub fn event_sync(&self, event: usize) {
        self.number(unsafe { (self.raw.cuEventSynchronize)(self.e[event]) });
    }

    pub fn signal(&self, stream: CUstream, value: u32) -> u64 {
        let write = self.raw.cuStreamWriteValue32_v2.unwrap();
        self.number(unsafe { write(stream, self.flag, value, 0) })
    }

    pub fn await_value(&self, stream: CUstream, value: u32, flags: u32) -> u64 {
        let wait = self.raw.cuStreamWaitValue32_v2.unwrap();
        self.number(unsafe { wait(stream, self.flag, value, flags) })
    }

    pub fn host_reads(&self) -> u64 {
        self.raw.host_access(self.pinned, 64, false)
    }

    pub fn host_writes(&self) -> u64 {
        self.raw.host_access(self.pinned, 64, true)
    }

    pub fn legacy_operation(&self) -> u64 {
        self.get(legacy(), self.other, 1)
    }

    pub fn context_record(&self, context: CUcontext, event: usize) {
        self.number(unsafe { self.raw.cuCtxRecordEvent.unwrap()(context, self.e[event]) });
    }

    pub fn context_wait(&self, context: CUcontext, event: usize) {
        self.number(unsafe { self.raw.cuCtxWaitEvent.unwrap()(context, self.e[event]) });
    }

    pub fn context(&self) -> CUcontext {
        let mut context = null_mut();
        self.number(unsafe { (self.raw.cuCtxGetCurrent)(&mut context) });
        context
    }

    /// Runs something in another context.
    pub fn elsewhere<R>(&self, run: impl FnOnce(CUcontext) -> R) -> R {
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

    pub fn capture(&self, stream: CUstream) {
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        self.number(unsafe { (self.raw.cuStreamBeginCapture_v2)(stream, mode) });
    }

    pub fn end_capture(&self, stream: CUstream) -> CUgraphExec {
        let (mut graph, mut exec) = (null_mut(), null_mut());
        unsafe {
            self.number((self.raw.cuStreamEndCapture)(stream, &mut graph));
            self.number(self.raw.cuGraphInstantiateWithFlags.unwrap()(&mut exec, graph, 0));
            self.number((self.raw.cuGraphDestroy)(graph));
        }
        exec
    }

    pub fn captured(&self, body: impl FnOnce()) -> CUgraphExec {
        self.capture(self.c);
        body();
        self.end_capture(self.c)
    }

    pub fn launch(&self, exec: CUgraphExec, stream: CUstream) -> u64 {
        self.number(unsafe { (self.raw.cuGraphLaunch)(exec, stream) })
    }
}

pub fn synchronous_copy(
    p: &Desk<'_>,
) -> unsafe extern "C" fn(*mut c_void, CUdeviceptr, usize) -> CUresult {
    unsafe { std::mem::transmute(p.raw.resolve(c"cuMemcpyDtoH_v2")) }
}

pub fn synchronous_memset(
    p: &Desk<'_>,
) -> unsafe extern "C" fn(CUdeviceptr, u8, usize) -> CUresult {
    unsafe { std::mem::transmute(p.raw.resolve(c"cuMemsetD8_v2")) }
}

/// A kernel in this stream touches the buffer.
pub fn kernel_touches(p: &Desk<'_>, stream: CUstream, write: bool) -> u64 {
    p.raw.work(stream, p.buffer, 64, write)
}
