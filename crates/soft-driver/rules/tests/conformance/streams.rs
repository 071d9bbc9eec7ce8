//! Streams: creation, properties, destruction, and waits for values in memory.

use std::collections::BTreeSet;
use std::ptr::null_mut;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;

use cuda_events::sys::*;

use crate::raw::{
    BLOCKING, LEGACY, NO_TIMING, NON_BLOCKING, NULL_STREAM, PER_THREAD, Raw, Word, code_text,
    elsewhere, must,
};
use crate::rules;

fn range(raw: &Raw) -> (i32, i32) {
    let (mut least, mut greatest) = (77, 77);
    must!(raw.cuCtxGetStreamPriorityRange(&mut least, &mut greatest));
    (least, greatest)
}

fn with_priority(raw: &Raw, flags: u32, priority: i32) -> CUstream {
    let mut stream = null_mut();
    must!(raw.cuStreamCreateWithPriority(&mut stream, flags, priority));
    stream
}

fn priority(raw: &Raw, stream: CUstream) -> i32 {
    let mut priority = 77;
    must!(raw.cuStreamGetPriority(stream, &mut priority));
    priority
}

fn flags_of(raw: &Raw, stream: CUstream) -> u32 {
    let mut flags = 77;
    must!(raw.cuStreamGetFlags(stream, &mut flags));
    flags
}

/// The attributes of a stream, with their ids.
const ATTRIBUTES: [(&str, u32); 4] =
    [("policy", 3), ("priority", 8), ("domain map", 9), ("domain", 10)];

fn attribute(raw: &Raw, stream: CUstream, id: u32) -> Result<u32, CUresult> {
    let mut value = CUstreamAttrValue { pad: [0; 64] };
    let code = raw.cuStreamGetAttribute(stream, CUstreamAttrID(id), &mut value);
    // SAFETY: every variant of the union is plain data within these 64 bytes.
    let pad = unsafe { value.pad };
    if code == CUresult::CUDA_SUCCESS {
        Ok(u32::from_le_bytes([pad[0], pad[1], pad[2], pad[3]]))
    } else {
        Err(code)
    }
}

fn set_attribute(raw: &Raw, stream: CUstream, id: u32, word: u32) -> CUresult {
    let mut pad = [0; 64];
    pad[..4].copy_from_slice(&word.to_le_bytes());
    raw.cuStreamSetAttribute(stream, CUstreamAttrID(id), &CUstreamAttrValue { pad })
}

rules! {
    /// The handle of a destroyed object comes back: that of a stream with the next stream, that of
    /// another object a little later.
    // Another thread could take the handle.
    [since(11, 4), alone]
    fn handles_that_come_back(rig, saw) = "the next stream has it; 1000 of each have fewer than 10: \
        events, graphs, executable graphs" {
        let stream = rig.stream(NON_BLOCKING);
        must!(rig.cuStreamDestroy_v2(stream));
        let next = rig.stream(NON_BLOCKING);
        saw.text(if next == stream { "the next stream has it" } else { "the next stream has another" });
        let mut graph = null_mut();
        must!(rig.cuGraphCreate(&mut graph, 0));
        let event = || {
            let event = rig.event(NO_TIMING);
            must!(rig.cuEventDestroy_v2(event));
            event.addr()
        };
        let other = || {
            let mut other = null_mut();
            must!(rig.cuGraphCreate(&mut other, 0));
            must!(rig.cuGraphDestroy(other));
            other.addr()
        };
        let exec = || {
            let exec = crate::graphs::instantiate(rig, graph);
            must!(rig.cuGraphExecDestroy(exec));
            exec.addr()
        };
        let made: [(&str, &dyn Fn() -> usize); 3] =
            [("events", &event), ("graphs", &other), ("executable graphs", &exec)];
        let few = |make: &dyn Fn() -> usize| {
            (0..1000).map(|_| make()).collect::<std::collections::BTreeSet<_>>().len() < 10
        };
        let names: Vec<_> = made.iter().filter(|(_, make)| few(make)).map(|kind| kind.0).collect();
        saw.text(format_args!("1000 of each have fewer than 10: {}", names.join(", ")));
    }

    /// A stream is blocking or non-blocking. All other flags return `CUDA_ERROR_INVALID_VALUE`.
    fn flags(rig, saw) = "success from 0, 1; CUDA_ERROR_INVALID_VALUE (1) from 2, 3, 0x80000000, \
        all bits" {
        let create = |flags| {
            let mut stream = null_mut();
            rig.cuStreamCreate(&mut stream, flags)
        };
        saw.codes(&[
            ("0", create(0)),
            ("1", create(1)),
            ("2", create(2)),
            ("3", create(3)),
            ("0x80000000", create(0x8000_0000)),
            ("all bits", create(u32::MAX)),
        ]);
    }

    /// `cuStreamCreateWithPriority` accepts the same flags as `cuStreamCreate`.
    fn flags_with_a_priority(rig, saw) = "success from 0, 1; CUDA_ERROR_INVALID_VALUE (1) from 2, \
        all bits" {
        let create = |flags| {
            let mut stream = null_mut();
            rig.cuStreamCreateWithPriority(&mut stream, flags, 0)
        };
        saw.codes(&[
            ("0", create(0)),
            ("1", create(1)),
            ("2", create(2)),
            ("all bits", create(u32::MAX)),
        ]);
    }

    /// If the place for a required result is NULL, the call returns `CUDA_ERROR_INVALID_VALUE`.
    fn no_place_for_the_result(rig, saw) =
        "CUDA_ERROR_INVALID_VALUE (1) from cuStreamCreate, cuStreamCreateWithPriority, \
         cuStreamGetFlags, cuStreamGetPriority, cuStreamGetCtx, cuStreamIsCapturing"
    {
        let stream = rig.stream(NON_BLOCKING);
        saw.codes(&[
            ("cuStreamCreate", rig.cuStreamCreate(null_mut(), 0)),
            ("cuStreamCreateWithPriority", rig.cuStreamCreateWithPriority(null_mut(), 0, 0)),
            ("cuStreamGetFlags", rig.cuStreamGetFlags(stream, null_mut())),
            ("cuStreamGetPriority", rig.cuStreamGetPriority(stream, null_mut())),
            ("cuStreamGetCtx", rig.cuStreamGetCtx(stream, null_mut())),
            ("cuStreamIsCapturing", rig.cuStreamIsCapturing(stream, null_mut())),
        ]);
    }

    /// Priorities range from the least, 0, to the greatest, -5: a lower number is a higher
    /// priority.
    fn the_range_of_priorities(rig, saw) = "least 0, greatest -5" {
        let (least, greatest) = range(rig);
        saw.text(format_args!("least {least}, greatest {greatest}"));
    }

    /// Each of the two places for the range of priorities may be NULL.
    fn no_place_for_the_range(rig, saw) = "success from neither, least, greatest" {
        let mut end = 0;
        saw.codes(&[
            ("neither", rig.cuCtxGetStreamPriorityRange(null_mut(), null_mut())),
            ("least", rig.cuCtxGetStreamPriorityRange(&mut end, null_mut())),
            ("greatest", rig.cuCtxGetStreamPriorityRange(null_mut(), &mut end)),
        ]);
    }

    /// A priority outside the range is clamped to it. `cuStreamGetPriority` returns the clamped
    /// priority.
    fn priorities_are_clamped(rig, saw) = "each inside as asked; above the greatest: greatest; \
        below the least: least" {
        let (least, greatest) = range(rig);
        let inside = (greatest..=least)
            .all(|asked| priority(rig, with_priority(rig, NON_BLOCKING, asked)) == asked);
        saw.holds("each inside as asked", inside);
        let names = |given: i32| match given {
            given if given == greatest => "greatest".to_owned(),
            given if given == least => "least".to_owned(),
            given => given.to_string(),
        };
        let clamped = |asked| names(priority(rig, with_priority(rig, NON_BLOCKING, asked)));
        saw.text(format_args!("above the greatest: {}", clamped(greatest - 10)));
        saw.text(format_args!("below the least: {}", clamped(least + 10)));
    }

    /// A stream without a priority has priority 0.
    fn the_usual_priority(rig, saw) = "0" {
        saw.text(priority(rig, rig.stream(NON_BLOCKING)));
    }

    /// `cuStreamGetFlags` returns the flags with which the stream was created.
    fn a_stream_tells_its_flags(rig, saw) =
        "blocking 0; non-blocking 1; blocking with a priority 0; non-blocking with a priority 1"
    {
        saw.text(format_args!("blocking {}", flags_of(rig, rig.stream(BLOCKING))));
        saw.text(format_args!("non-blocking {}", flags_of(rig, rig.stream(NON_BLOCKING))));
        saw.text(format_args!(
            "blocking with a priority {}",
            flags_of(rig, with_priority(rig, BLOCKING, -1))
        ));
        saw.text(format_args!(
            "non-blocking with a priority {}",
            flags_of(rig, with_priority(rig, NON_BLOCKING, -1))
        ));
    }

    /// The attributes of a new stream have the listed values. In the domain map, the first byte is
    /// for the default domain, and the second byte is for the remote domain.
    [since(12, 0)]
    fn attributes_of_a_new_stream(rig, saw) = "policy 4294967295; priority 0; domain map 0x100; \
        domain 0" {
        let stream = rig.stream(NON_BLOCKING);
        for (name, id) in ATTRIBUTES {
            match attribute(rig, stream, id) {
                Ok(word) if id == 9 => saw.text(format_args!("{name} {word:#x}")),
                Ok(word) => saw.text(format_args!("{name} {word}")),
                Err(code) => saw.text(format_args!("{name} {}", code_text(code))),
            }
        }
    }

    /// A stream accepts only some values for its attributes. An accepted value can be read back,
    /// and an accepted priority is clamped to the range.
    [since(12, 0)]
    fn values_of_attributes(rig, saw) =
        "policy 0 CUDA_ERROR_INVALID_VALUE (1); policy 1 success, 1; policy 4 success, 4; policy 5 \
         CUDA_ERROR_INVALID_VALUE (1); policy 77 CUDA_ERROR_INVALID_VALUE (1); priority 77 \
         success, 0; priority 4294967219 success, 4294967291; domain 1 success, 1; domain 2 \
         CUDA_ERROR_INVALID_VALUE (1); domain 77 CUDA_ERROR_INVALID_VALUE (1)"
    {
        for (name, id, words) in [
            ("policy", 3, &[0, 1, 4, 5, 77][..]),
            ("priority", 8, &[77, -77_i32 as u32]),
            ("domain", 10, &[1, 2, 77]),
        ] {
            for &word in words {
                let stream = rig.stream(NON_BLOCKING);
                let code = set_attribute(rig, stream, id, word);
                let back = if code == CUresult::CUDA_SUCCESS {
                    attribute(rig, stream, id).ok()
                } else {
                    None
                };
                match back {
                    Some(back) => saw.text(format_args!("{name} {word} {}, {back}", code_text(code))),
                    None => saw.text(format_args!("{name} {word} {}", code_text(code))),
                }
            }
        }
    }

    /// A stream still works after an attempt to set an attribute returned an error.
    [since(12, 0)]
    fn after_a_refused_attribute(rig, saw) =
        "CUDA_ERROR_INVALID_VALUE (1) from policy 0, policy 77, domain 77; success from record, \
         host function, query of the event, synchronize"
    {
        let (stream, event) = (rig.stream(NON_BLOCKING), rig.event(NO_TIMING));
        saw.codes(&[
            ("policy 0", set_attribute(rig, stream, 3, 0)),
            ("policy 77", set_attribute(rig, stream, 3, 77)),
            ("domain 77", set_attribute(rig, stream, 10, 77)),
            ("record", rig.cuEventRecord(event, stream)),
            ("host function", rig.host(stream, || {})),
            ("query of the event", rig.settled(event)),
            ("synchronize", rig.cuStreamSynchronize(stream)),
        ]);
    }

    /// Reading or setting an attribute that streams do not have returns `CUDA_ERROR_INVALID_VALUE`.
    fn attributes_that_no_stream_has(rig, saw) =
        "CUDA_ERROR_INVALID_VALUE (1) from get 0, set 0, get 2, set 2, get 77, set 77, get -1, set \
            -1"
    {
        let stream = rig.stream(NON_BLOCKING);
        let mut codes = Vec::new();
        for (get, set, id) in [
            ("get 0", "set 0", 0),
            ("get 2", "set 2", 2),
            ("get 77", "set 77", 77),
            ("get -1", "set -1", u32::MAX),
        ] {
            codes.push((
                get,
                attribute(rig, stream, id).map_or_else(|code| code, |_| CUresult::CUDA_SUCCESS),
            ));
            codes.push((set, set_attribute(rig, stream, id, 0)));
        }
        saw.codes(&codes);
    }

    /// The default streams have no flags and priority 0.
    fn the_default_streams(rig, saw) =
        "NULL: flags 0, priority 0; legacy: flags 0, priority 0; per-thread: flags 0, priority 0"
    {
        for (name, stream) in
            [("NULL", NULL_STREAM), ("legacy", LEGACY), ("per-thread", PER_THREAD)]
        {
            saw.text(format_args!(
                "{name}: flags {}, priority {}",
                flags_of(rig, stream),
                priority(rig, stream)
            ));
        }
    }

    /// NULL and the legacy handle name one stream, which is the same in all threads. The per-thread
    /// handle names another stream in each thread, and the same stream each time in one thread.
    [since(12, 0)]
    fn ids_of_the_default_streams(rig, saw) =
        "NULL is legacy; per-thread is another; it stays; it is another in each thread; legacy is \
            one for all threads"
    {
        let (null, legacy, per_thread) = (rig.id(NULL_STREAM), rig.id(LEGACY), rig.id(PER_THREAD));
        saw.holds("NULL is legacy", null == legacy);
        saw.holds("per-thread is another", per_thread != legacy);
        saw.holds("it stays", per_thread == rig.id(PER_THREAD));
        let (theirs, their_legacy) = elsewhere(|| {
            must!(rig.cuCtxSetCurrent(rig.context));
            (rig.id(PER_THREAD), rig.id(LEGACY))
        });
        saw.holds("it is another in each thread", theirs != per_thread);
        saw.holds("legacy is one for all threads", their_legacy == legacy);
    }

    /// Each stream has its own id, which is unique across contexts. The id of a destroyed stream is
    /// not used again.
    [since(12, 0)]
    fn ids_are_unique(rig, saw) = "203 streams, 203 ids" {
        let other = rig.new_context();
        let mut ids = BTreeSet::from([
            rig.id(LEGACY),
            rig.id(PER_THREAD),
            rig.within(other, || rig.id(LEGACY)),
        ]);
        for context in [rig.context, other] {
            rig.within(context, || {
                for _ in 0..100 {
                    let stream = rig.stream(NON_BLOCKING);
                    ids.insert(rig.id(stream));
                    must!(rig.cuStreamDestroy_v2(stream));
                }
            });
        }
        saw.text(format_args!("203 streams, {} ids", ids.len()));
    }

    /// The context of a stream is the context in which it was created. The context of a default
    /// stream is the current context.
    fn the_context_of_a_stream(rig, saw) =
        "its own; NULL: the current one; legacy: the current one; per-thread: the current one"
    {
        let (stream, other) = (rig.stream(NON_BLOCKING), rig.new_context());
        let context_of = |stream| {
            let mut context = null_mut();
            must!(rig.cuStreamGetCtx(stream, &mut context));
            context
        };
        rig.within(other, || {
            saw.holds("its own", context_of(stream) == rig.context);
            for (name, stream) in
                [("NULL", NULL_STREAM), ("legacy", LEGACY), ("per-thread", PER_THREAD)]
            {
                let current =
                    if context_of(stream) == other { "the current one" } else { "another" };
                saw.text(format_args!("{name}: {current}"));
            }
        });
    }

    /// `cuStreamGetDevice` returns the device of a stream. It also accepts the NULL stream.
    [since(12, 8)]
    fn the_device_of_a_stream(rig, saw) = "its own; NULL's success" {
        let mut device = 77;
        must!(rig.cuStreamGetDevice(rig.stream(NON_BLOCKING), &mut device));
        saw.holds("its own", device == rig.device);
        saw.code("NULL's", rig.cuStreamGetDevice(NULL_STREAM, &mut device));
    }

    /// The default streams cannot be destroyed.
    fn destroying_a_default_stream(rig, saw) = "CUDA_ERROR_INVALID_HANDLE (400) from NULL, legacy, \
        per-thread" {
        saw.codes(&[
            ("NULL", rig.cuStreamDestroy_v2(NULL_STREAM)),
            ("legacy", rig.cuStreamDestroy_v2(LEGACY)),
            ("per-thread", rig.cuStreamDestroy_v2(PER_THREAD)),
        ]);
    }

    /// Destroying a stream that has work returns at once. The work still completes.
    fn destroying_a_busy_stream(rig, saw) =
        "destroy success; event CUDA_ERROR_NOT_READY (600); then success; its host function ran"
    {
        let stream = rig.stream(NON_BLOCKING);
        let latch = rig.hold(stream);
        let (ran, run) = channel();
        must("cuLaunchHostFunc", rig.host(stream, move || ran.send(()).expect("the rule waits")));
        let event = rig.recorded(stream);
        saw.code("destroy", rig.cuStreamDestroy_v2(stream));
        saw.code("event", rig.cuEventQuery(event));
        latch.release();
        saw.code("then", rig.cuEventSynchronize(event));
        saw.holds("its host function ran", run.try_recv().is_ok());
    }

    /// A stream is ready when its work is done.
    fn busy_and_ready(rig, saw) = "new success; busy CUDA_ERROR_NOT_READY (600); synchronize \
        success; query success" {
        let stream = rig.stream(NON_BLOCKING);
        saw.code("new", rig.cuStreamQuery(stream));
        let latch = rig.hold(stream);
        saw.code("busy", rig.cuStreamQuery(stream));
        latch.release();
        saw.code("synchronize", rig.cuStreamSynchronize(stream));
        saw.code("query", rig.cuStreamQuery(stream));
    }

    /// Non-blocking streams do not wait for each other.
    fn streams_are_independent(rig, saw) = "the other stream's event success" {
        let (held, other) = (rig.stream(NON_BLOCKING), rig.stream(NON_BLOCKING));
        let latch = rig.hold(held);
        saw.code("the other stream's event", rig.settled(rig.recorded(other)));
        latch.release();
        rig.synchronize(held);
    }

    /// Thousands of streams can be alive at once.
    fn many_streams(rig, saw) = "4000 created and destroyed" {
        let streams: Vec<CUstream> = (0..4000).map(|_| rig.stream(NON_BLOCKING)).collect();
        let gone = streams
            .iter()
            .filter(|stream| rig.cuStreamDestroy_v2(**stream) == CUresult::CUDA_SUCCESS)
            .count();
        saw.text(format_args!("{gone} created and destroyed"));
    }

    /// A wait for a value in memory holds the stream until the host writes the value.
    [since(11, 7)]
    fn a_wait_for_a_value(rig, saw) = "wait success; CUDA_ERROR_NOT_READY (600); written success" {
        let (stream, word) = (rig.stream(NON_BLOCKING), Word::new(rig));
        saw.code(
            "wait",
            rig.cuStreamWaitValue32_v2(stream, word.device, 5, CU_STREAM_WAIT_VALUE_EQ),
        );
        saw.text(code_text(rig.cuStreamQuery(stream)));
        word.word().store(5, Ordering::SeqCst);
        saw.code("written", rig.cuStreamSynchronize(stream));
    }

    /// A write of a value in one stream releases another stream that waits for the value.
    [since(11, 7)]
    fn a_write_of_a_value(rig, saw) = "waiting CUDA_ERROR_NOT_READY (600); write success; then \
        success; the word 9" {
        let (waiting, writing, word) =
            (rig.stream(NON_BLOCKING), rig.stream(NON_BLOCKING), Word::new(rig));
        must!(rig.cuStreamWaitValue32_v2(waiting, word.device, 9, CU_STREAM_WAIT_VALUE_GEQ));
        saw.code("waiting", rig.cuStreamQuery(waiting));
        saw.code("write", rig.cuStreamWriteValue32_v2(writing, word.device, 9, 0));
        saw.code("then", rig.cuStreamSynchronize(waiting));
        saw.text(format_args!("the word {}", word.word().load(Ordering::SeqCst)));
    }

    /// A wait for a value has four comparisons: at least (as a signed difference), equal, a common
    /// bit, and a bit that is clear in both.
    [since(11, 7)]
    fn comparisons_with_a_value(rig, saw) =
        "at least: success; equal: success; a common bit: success; a clear bit: success; not at \
         least: CUDA_ERROR_NOT_READY (600)"
    {
        let (stream, word) = (rig.stream(NON_BLOCKING), Word::new(rig));
        word.word().store(6, Ordering::SeqCst);
        let cases = [
            ("at least", 5, CU_STREAM_WAIT_VALUE_GEQ),
            ("equal", 6, CU_STREAM_WAIT_VALUE_EQ),
            ("a common bit", 2, CU_STREAM_WAIT_VALUE_AND),
            ("a clear bit", 6, CU_STREAM_WAIT_VALUE_NOR),
        ];
        for (name, value, flags) in cases {
            must!(rig.cuStreamWaitValue32_v2(stream, word.device, value, flags));
            saw.text(format_args!("{name}: {}", code_text(rig.cuStreamSynchronize(stream))));
        }
        must!(rig.cuStreamWaitValue32_v2(stream, word.device, 7, CU_STREAM_WAIT_VALUE_GEQ));
        saw.text(format_args!("not at least: {}", code_text(rig.cuStreamQuery(stream))));
        word.word().store(7, Ordering::SeqCst);
        rig.synchronize(stream);
    }

    /// The comparison "at least" of a wait takes the difference as a signed number, whether the
    /// value has 32 or 64 bits: a value that has gone through its end is at least one before the
    /// end.
    [since(11, 7), alone]
    fn comparisons_are_cyclic(rig, saw) = "32 bits: success, then CUDA_ERROR_NOT_READY (600); 64 \
        bits: success" {
        let (stream, word) = (rig.stream(NON_BLOCKING), Word::new(rig));
        word.word().store(1, Ordering::SeqCst);
        let at_least = |value| {
            let flags = CU_STREAM_WAIT_VALUE_GEQ;
            must("wait", rig.cuStreamWaitValue32_v2(stream, word.device, value, flags));
            code_text(rig.cuStreamQuery(stream))
        };
        must("wait", rig.cuStreamWaitValue32_v2(stream, word.device, u32::MAX,
            CU_STREAM_WAIT_VALUE_GEQ));
        let passed = code_text(rig.settled(rig.recorded(stream)));
        saw.text(format_args!("32 bits: {passed}, then {}", at_least(2)));
        word.word().store(2, Ordering::SeqCst);
        rig.synchronize(stream);
        let mut wide = 0;
        must!(rig.cuMemAlloc_v2(&mut wide, 8));
        must!(rig.cuMemsetD8Async(wide, 0, 8, stream));
        must("wait", rig.cuStreamWaitValue64_v2(stream, wide, u64::MAX, CU_STREAM_WAIT_VALUE_GEQ));
        saw.text(format_args!("64 bits: {}", code_text(rig.settled(rig.recorded(stream)))));
        must!(rig.cuMemFree_v2(wide));
    }
}
