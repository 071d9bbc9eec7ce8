//! Errors of default streams, contexts, values, graphs and what the program tells.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::Ordering;

use cuda_events::sys::*;

use super::desk::{Desk, kernel_touches};
use super::{EQ, GEQ, NON_BLOCKING, Pair, RACE, Row, word, word_address};
use crate::raw::*;

fn await_at(p: &Desk<'_>, stream: CUstream, word: CUdeviceptr) {
    let wait = p.raw.cuStreamWaitValue32_v2.unwrap();
    p.number(unsafe { wait(stream, word, 1, GEQ) });
}

/// Four bytes of ordinary memory, in the first stream.
fn upload(p: &Desk<'_>, word: CUdeviceptr, value: u32) -> u64 {
    let from = std::ptr::from_ref(&value).cast();
    p.number(unsafe { (p.raw.cuMemcpyHtoDAsync_v2)(word, from, 4, p.a) })
}

/// A flag is used twice, and may not be reset between.
fn twice(
    p: &Desk<'_>,
    flag: CUdeviceptr,
    sets: &dyn Fn() -> u64,
    resets: &dyn Fn() -> u64,
) -> Pair {
    let round = || {
        let one = p.writes(p.a);
        sets();
        await_at(p, p.b, flag);
        (one, p.reads(p.b))
    };
    resets();
    p.raw.sync(p.a);
    round();
    p.raw.sync(p.b);
    if p.mended {
        resets();
        p.raw.sync(p.a);
    }
    round()
}

/// The same for a flag that the host resets by a store.
fn stored(p: &Desk<'_>, sets: &dyn Fn() -> u64) -> Pair {
    let resets = || {
        word(p).store(0, Ordering::Release);
        0
    };
    twice(p, word_address(p), sets, &resets)
}

#[rustfmt::skip] // A row in few lines.
pub const ROWS: &[Row] = &[
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

    // Their words are waited for once: what was copied there before counts from then on.
    ("a flag in a larger copy, before the work", RACE, |p| {
        let word = p.flag + if p.mended { 1024 } else { 1536 };
        p.set(p.a, p.other, 64);
        let copies = || p.copy(p.a, word - 32, p.other, 64);
        if !p.mended { copies(); }
        let one = p.writes(p.c);
        p.joined(p.c, p.a);
        if p.mended { copies(); }
        await_at(p, p.b, word);
        (one, p.reads(p.b))
    }),
    ("a flag in a larger memset, before the work", RACE, |p| {
        let word = p.flag + if p.mended { 2048 } else { 2560 };
        let sets = || p.set(p.a, word - 32, 256);
        if !p.mended { sets(); }
        let one = p.writes(p.a);
        if p.mended { sets(); }
        await_at(p, p.b, word);
        (one, p.reads(p.b))
    }),

    // Values from before.
    ("a value that a stream wrote is not reset", RACE, |p| {
        twice(p, p.flag, &|| p.signal(p.a, 1), &|| p.signal(p.a, 0))
    }),
    ("a value that a memset wrote is not reset", RACE, |p| {
        twice(p, p.flag, &|| p.set(p.a, p.flag, 4), &|| p.signal(p.a, 0))
    }),
    ("a value in a larger memset is not reset", RACE, |p| {
        twice(p, p.flag, &|| p.set(p.a, p.flag - 32, 64), &|| upload(p, p.flag, 0))
    }),
    ("a value that was uploaded is not reset", RACE, |p| {
        twice(p, p.flag, &|| upload(p, p.flag, 1), &|| upload(p, p.flag, 0))
    }),
    ("a value that was uploaded from pinned memory is not reset", RACE, |p| {
        let one: *mut u32 = p.pinned.wrapping_byte_add(1024).cast();
        unsafe { one.write(1) };
        let copy = || p.number(unsafe {
            (p.raw.cuMemcpyHtoDAsync_v2)(p.flag, one.cast(), 4, p.a)
        });
        twice(p, p.flag, &copy, &|| p.signal(p.a, 0))
    }),
    ("the host does not reset a value in pinned memory", RACE, |p| {
        let write = p.raw.cuStreamWriteValue32_v2.unwrap();
        stored(p, &|| p.number(unsafe { write(p.a, word_address(p), 1, 0) }))
    }),
    ("the host does not reset a value in pinned memory that a memset wrote", RACE, |p| {
        stored(p, &|| p.set(p.a, word_address(p), 4))
    }),
    ("the host does not reset a value in pinned memory that a graph writes", RACE, |p| {
        let write = p.raw.cuStreamWriteValue32_v2.unwrap();
        let exec = p.captured(|| { p.number(unsafe { write(p.c, word_address(p), 1, 0) }); });
        stored(p, &|| p.launch(exec, p.a))
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
        (one, kernel_touches(p, p.b, false))
    }),
    ("a kernel writes", RACE, |p| {
        let one = kernel_touches(p, p.a, true);
        if p.mended { p.joined(p.a, p.b); }
        (one, p.download(p.b))
    }),
    ("two kernels", RACE, |p| {
        let one = kernel_touches(p, p.a, true);
        if p.mended { p.joined(p.a, p.b); }
        (one, kernel_touches(p, p.b, false))
    }),
    ("a kernel in a graph", RACE, |p| {
        let exec = p.captured(|| { kernel_touches(p, p.c, true); });
        let one = p.launch(exec, p.a);
        if p.mended { p.joined(p.a, p.b); }
        (one, p.reads(p.b))
    }),
    ("the host writes while a kernel reads", RACE, |p| {
        let one = p.upload(p.a);
        p.record(0, p.a);
        kernel_touches(p, p.a, false);
        p.event_sync(usize::from(!p.mended));
        (one, p.host_writes())
    }),
];
