//! Errors between streams, with the host, and of frees.

use super::desk::{synchronous_copy, synchronous_memset};
use super::host::frees_in_order;
use super::{FREED, NON_BLOCKING, RACE, Row};
use crate::raw::*;

#[rustfmt::skip] // A row in few lines.
pub const ROWS: &[Row] = &[
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
        if p.mended { p.joined(p.a, p.b); }
        p.freed.set(true);
        (one, frees_in_order(p, p.memory, p.b))
    }),
    ("freed while it is written", RACE, |p| {
        let one = p.writes(p.a);
        if p.mended { p.joined(p.a, p.b); }
        p.freed.set(true);
        (one, frees_in_order(p, p.memory, p.b))
    }),
    ("a graph uses what was freed", FREED, |p| {
        let mut memory = 0;
        p.number(unsafe { (p.raw.cuMemAlloc_v2)(&mut memory, 64) });
        // A kernel: of copies and memsets the driver itself sees it.
        let exec = p.captured(|| { super::kernel_writes(p, p.c, memory); });
        let launch = if p.mended { p.launch(exec, p.a) } else { 0 };
        p.raw.sync(p.a);
        let one = p.number(unsafe { (p.raw.cuMemFree_v2)(memory) });
        (one, if p.mended { launch } else { p.launch(exec, p.a) })
    }),
];
