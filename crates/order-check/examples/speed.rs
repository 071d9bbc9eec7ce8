//! How many operations a second the checker takes:
//! `cargo run --package cuda-order-check --example speed`
//! --example speed`

use std::fs;
use std::time::Duration;

use cuda_order_check::{
    Access, Call, Checker, ContextId, EventId, Op, StreamId, StreamKind, ThreadId, What,
};

/// The processor's time of this thread: others may want the processor, too. Linux only.
fn used() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

const ROUNDS: u64 = 200_000;

fn checker(streams: u64) -> Checker {
    let mut checker = Checker::default();
    for stream in 0..streams {
        let kind = StreamKind::NonBlocking;
        let create =
            Op::StreamCreate { stream: StreamId(stream), context: ContextId(0), kind, name: None };
        checker.apply(Call::new("cuStreamCreate", 0, ThreadId(1)), create);
    }
    checker
}

fn measure(what: &str, streams: u64, round: impl Fn(u64, &mut dyn FnMut(Op<'_>))) {
    let mut checker = checker(streams);
    let (mut number, start) = (0, used());
    for turn in 0..ROUNDS {
        round(turn, &mut |op| {
            number += 1;
            checker.apply(Call::new("call", number, ThreadId(1)), op);
        });
    }
    let elapsed = used() - start;
    assert!(checker.take_findings().is_empty());
    let nanoseconds = elapsed.as_nanos() as f64 / number as f64;
    println!(
        "{what:50} {nanoseconds:7.0} ns an operation, {:6.2} million a second",
        1000.0 / nanoseconds
    );
}

fn main() {
    let work = |stream, access, tell: &mut dyn FnMut(Op<'_>)| {
        tell(Op::Work { stream: StreamId(stream), accesses: &[access] });
    };
    let record = |event, stream, tell: &mut dyn FnMut(Op<'_>)| {
        tell(Op::Record { event: EventId(event), stream: StreamId(stream), external: false });
    };
    let wait = |stream, event, tell: &mut dyn FnMut(Op<'_>)| {
        tell(Op::Wait { stream: StreamId(stream), event: EventId(event), external: false });
    };
    measure("records of one stream", 1, |_, tell| record(1, 0, tell));
    measure("queries that say no", 1, |turn, tell| {
        if turn == 0 {
            record(1, 0, tell);
        }
        tell(Op::Query { what: What::Event(EventId(1)), done: false });
    });
    measure("record, wait in another stream", 2, |turn, tell| {
        record(1, turn % 2, tell);
        wait((turn + 1) % 2, 1, tell);
    });
    for streams in [2, 8, 64, 512] {
        measure(
            &format!("write, record, wait, read: a ring of {streams} streams"),
            streams,
            |turn, tell| {
                let (stream, next) = (turn % streams, (turn + 1) % streams);
                work(stream, Access::write(stream << 16, 4096), tell);
                record(stream, stream, tell);
                wait(next, stream, tell);
                work(next, Access::read((stream << 16) + 512, 1024), tell);
            },
        );
    }
    measure("the same, and the host waits each time", 8, |turn, tell| {
        let (stream, next) = (turn % 8, (turn + 1) % 8);
        work(stream, Access::write(stream << 16, 4096), tell);
        record(stream, stream, tell);
        wait(next, stream, tell);
        work(next, Access::read((stream << 16) + 512, 1024), tell);
        tell(Op::Synchronize { what: What::Stream(StreamId(next)) });
    });
}
