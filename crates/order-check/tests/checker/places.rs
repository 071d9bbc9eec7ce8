//! Which reports are about the same two places.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cuda_order_check_engine::{
    Access, Backtrace, Call, Checker, ContextId, EventId, Finding, Op, StreamId, StreamKind,
    Stride, ThreadId,
};

/// Default streams have one name in all contexts and threads, and are different places.
#[test]
fn default_streams_of_two_contexts_are_two_places() {
    let mut checker = Checker::default();
    let mut number = 0;
    let mut apply = |op: Op<'_>| {
        number += 1;
        checker.apply(Call::new("call", number, ThreadId(1)), op);
    };
    for context in [1, 2] {
        let (stream, context) = (StreamId(context), ContextId(context));
        let name = Some("0x1 (the legacy default stream)");
        apply(Op::StreamCreate { stream, context, kind: StreamKind::Legacy, name });
    }
    let kind = StreamKind::NonBlocking;
    apply(Op::StreamCreate { stream: StreamId(3), context: ContextId(1), kind, name: None });
    // Each of them in a loop, as a program has it.
    for turn in 0..4 {
        for stream in [1, 2] {
            let address = turn << 16 | stream << 12;
            let accesses = &[Access::write(address, 64)];
            apply(Op::Work { stream: StreamId(stream), accesses });
            apply(Op::Work { stream: StreamId(3), accesses });
        }
    }
    let found: Vec<String> = checker.take_findings().iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), 2, "{found:#?}");
}

/// Rows over bytes that were read as a whole, again and again: each row conflicts with each read.
#[test]
fn rows_conflict_with_reads_of_the_whole() {
    const AT: u64 = 0x7000;
    const EVENT: EventId = EventId(0xe);
    let mut checker = Checker::default();
    let mut number = 0;
    let mut apply = |op: Op<'_>| {
        number += 1;
        checker.apply(Call::new("work", number, ThreadId(1)), op);
        checker.take_findings()
    };
    fn work(stream: u64, accesses: &[Access]) -> Op<'_> {
        Op::Work { stream: StreamId(stream), accesses }
    }
    let whole = [Access::read(AT, 256)];
    for at in 0..4 {
        apply(work(1, &[Access::write(AT + 64 * at, 64)]));
    }
    apply(Op::Record { event: EVENT, stream: StreamId(1), external: false });
    for stream in [2, 3, 4] {
        apply(Op::Wait { stream: StreamId(stream), event: EVENT, external: false });
    }
    for stream in [2, 2, 3] {
        assert_eq!(apply(work(stream, &whole)), []);
    }
    apply(Op::Record { event: EVENT, stream: StreamId(2), external: false });
    apply(Op::Wait { stream: StreamId(4), event: EVENT, external: false });
    let rows = Access::write(AT, 16).rows(4, Stride { width: 16, pitch: 64 });
    let found = apply(work(4, &[rows]));
    let shared: Vec<_> =
        found.iter().filter_map(Finding::report).map(|report| report.shared.clone()).collect();
    let all: Vec<_> = (0..4).map(|row| AT + 64 * row..AT + 64 * row + 16).collect();
    assert_eq!(shared, [all], "with the read of stream 3 alone");
}

/// How often the text of backtraces was made.
static MADE: AtomicUsize = AtomicUsize::new(0);

/// A backtrace whose text takes long.
#[derive(Debug)]
struct Slow {
    path: u64,
    text: String,
}

impl fmt::Display for Slow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        MADE.fetch_add(1, Ordering::Relaxed);
        f.write_str(&self.text)
    }
}

impl Backtrace for Slow {
    fn path(&self) -> Option<u64> {
        Some(self.path)
    }
}

/// A program that is wrong in a loop has one report, which says how often. After it neither the
/// frameworks in between nor the kernels that a line launches make another one, and no text is made of
/// backtraces that are known.
#[test]
fn a_pair_of_places_is_one_finding() {
    let mut checker = Checker::default();
    let mut number = 0;
    let mut work = |name: String, stream, line: u64, path: u64| {
        number += 1;
        let text = format!(
            "Python: zero_, at /x/site-packages/torch/t{path}.py:1\nPython: f, at a.py:{line}"
        );
        let mut call = Call::new(name, number, ThreadId(1));
        call.backtrace = Some(Arc::new(Slow { path: line << 8 | path, text }));
        let accesses = &[Access::write(0x1000, 64)];
        checker.apply(call, Op::Work { stream: StreamId(stream), accesses });
        checker.take_findings()
    };
    let mut found = Vec::new();
    for round in 0..1000 {
        found.extend(work("cuMemsetD8Async".into(), 1, 3, round % 4));
        found.extend(work(format!("cuLaunchKernel of f{}", round % 3), 2, 4, round % 5));
    }
    let made = MADE.load(Ordering::Relaxed);
    assert!(made <= 4 + 3 * 5, "{made}");
    let [Finding::Report(report)] = &found[..] else { panic!("{found:?}") };
    // All but the first call find the one before.
    assert_eq!(checker.times(report), 1999);
}
