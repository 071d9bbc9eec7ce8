//! The feed without a driver: what it adds to the checker's operations.

use cuda_order_check::StreamKind::NonBlocking;
use cuda_order_check::feed::{Creator, Feed, Memory, Observer};
use cuda_order_check::{Access, ContextId, EventId, Finding, GraphId, Options, StreamId, ThreadId};

#[derive(Default)]
struct Count(usize);

impl Observer for Count {
    fn thread(&self) -> ThreadId {
        ThreadId(1)
    }

    fn thread_name(&self, thread: ThreadId) -> String {
        thread.0.to_string()
    }

    fn finding(&mut self, _finding: Finding) {
        self.0 += 1;
    }
}

const A: StreamId = StreamId(0xa);
const B: StreamId = StreamId(0xb);
const EVENT: EventId = EventId(0xe);
const DEVICE: u64 = 0x7000;
const PINNED: u64 = 0x9000;

/// How many findings a program has: its calls, with device memory and a pinned page.
fn findings(calls: impl FnOnce(&mut Feed<Count>)) -> usize {
    let mut feed = Feed::new(Options::default(), Count::default());
    feed.begin("calls", 1, None);
    feed.allocate(DEVICE, 4096, Memory::Device);
    feed.allocate(PINNED, 4096, Memory::Host);
    feed.event_create(EVENT, false);
    calls(&mut feed);
    feed.observer().0
}

#[test]
fn the_record_of_an_exported_event_waits_for_the_last_one() {
    for exported in [true, false] {
        let found = findings(|feed| {
            if exported {
                feed.event_exported(EVENT, None);
            }
            feed.write(A, None, &[Access::write(DEVICE, 64)]);
            feed.record(EVENT, A);
            feed.record(EVENT, B);
            feed.write(B, None, &[Access::write(DEVICE, 64)]);
        });
        assert_eq!(found, usize::from(!exported), "exported: {exported}");
    }
}

/// A stream sets a flag in pinned memory behind its work; the next call is in another stream.
#[test]
fn the_host_may_have_seen_a_flag_once_it_is_written() {
    let program = |place: Option<u64>, written: Option<bool>| {
        findings(|feed| {
            feed.write(A, place, &[Access::write(DEVICE, 64)]);
            feed.write(A, place.map(|place| place + 1), &[Access::write(PINNED, 4)]);
            if let Some(changes) = written {
                feed.written(2, changes);
            }
            feed.write(B, None, &[Access::write(DEVICE, 64)]);
        })
    };
    assert_eq!(program(Some(1), None), 1, "it is not written yet");
    assert_eq!(program(Some(1), Some(false)), 1, "the same value was there before");
    assert_eq!(program(Some(1), Some(true)), 0);
    assert_eq!(program(None, None), 0, "nobody will say when it is written");
}

#[test]
fn memory_is_of_the_host_until_it_ends() {
    let mut feed = Feed::new(Options::default(), Count::default());
    feed.allocate(PINNED, 16, Memory::Host);
    let at = |feed: &Feed<Count>, address| feed.memory(address);
    assert_eq!(at(&feed, PINNED + 15), Some(Memory::Host));
    assert_eq!(at(&feed, PINNED + 16).or(at(&feed, PINNED - 1)), None);
    assert_eq!([0, 1].map(|byte| feed.bytes_at(PINNED + byte)), [Some(16), None]);
    feed.free(PINNED);
    assert_eq!((at(&feed, PINNED), feed.bytes_at(PINNED)), (None, None));
}

#[test]
fn a_barrier_orders_everything() {
    type Program = fn(&mut Feed<Count>);
    let programs: [(&str, Program, Program); 4] = [
        (
            "streams",
            |feed| feed.write(A, None, &[Access::write(DEVICE, 64)]),
            |feed| {
                feed.work(B, &[Access::read(DEVICE, 64)]);
            },
        ),
        (
            "the host",
            |feed| feed.write(A, None, &[Access::write(PINNED, 64)]),
            |feed| {
                feed.host(&[Access::read(PINNED, 64)]);
            },
        ),
        (
            "a later stream of another context",
            |feed| {
                feed.stream_create(StreamId(1), (ContextId(7), 0), NonBlocking, Creator::Call);
                feed.write(A, None, &[Access::write(DEVICE, 64)]);
            },
            |feed| {
                feed.stream_create(StreamId(2), (ContextId(7), 0), NonBlocking, Creator::Call);
                feed.work(StreamId(2), &[Access::read(DEVICE, 64)]);
            },
        ),
        (
            "nodes of a capture",
            |feed| {
                feed.capture_begin(A);
                feed.record(EVENT, A);
                feed.wait(B, EVENT);
                feed.write(A, None, &[Access::write(DEVICE, 64)]);
            },
            |feed| {
                feed.work(B, &[Access::read(DEVICE, 64)]);
                feed.record(EVENT, B);
                feed.wait(A, EVENT);
                feed.capture_end(A, Some(GraphId(1)));
                feed.launch(A, GraphId(1));
            },
        ),
    ];
    for (what, before, after) in programs {
        for barrier in [true, false] {
            let found = findings(|feed| {
                before(feed);
                if barrier {
                    feed.barrier();
                }
                after(feed);
            });
            assert_eq!(found, usize::from(!barrier), "{what}, with a barrier: {barrier}");
        }
    }
}

/// A program protects the memory of a copy until then.
#[test]
fn the_host_is_after_a_copy_once_a_call_has_waited_or_seen_its_end() {
    type Order = fn(&mut Feed<Count>);
    let orders: [(&str, Order, bool); 6] = [
        ("no call", |_| (), false),
        ("a wait for another stream", |feed| feed.reached(&feed.await_stream(B)), false),
        ("a query that has failed", |feed| feed.event_query(EVENT, false), false),
        ("a wait for the stream", |feed| feed.reached(&feed.await_stream(A)), true),
        ("a query that has succeeded", |feed| feed.event_query(EVENT, true), true),
        (
            "a wait for a stream that waits",
            |feed| {
                feed.wait(B, EVENT);
                feed.reached(&feed.await_stream(B));
            },
            true,
        ),
    ];
    for (name, order, is_after) in orders {
        let mut feed = Feed::new(Options::default(), Count::default());
        feed.begin("calls", 1, None);
        feed.allocate(PINNED, 4096, Memory::Host);
        feed.event_create(EVENT, false);
        for stream in [A, B] {
            feed.stream_create(stream, (ContextId(7), 0), NonBlocking, Creator::Call);
        }
        feed.write(B, None, &[Access::write(DEVICE, 64)]);
        feed.write(A, None, &[Access::write(PINNED, 64)]);
        let (copy, both) = (feed.await_stream(A), feed.await_contexts(&[ContextId(7)]));
        feed.record(EVENT, A);
        order(&mut feed);
        assert_eq!(feed.host_is_after(&copy), is_after, "{name}");
        assert_eq!(feed.host_is_after(&both), name.ends_with("that waits"), "{name}: of both");
    }
}
