//! Events of other processes, and order that counts as one.

use crate::feed::{A, B, Caller, DEVICE, EVENT, PINNED, findings};
use cuda_order_check_engine::StreamKind::NonBlocking;
use cuda_order_check_engine::feed::{Creator, Feed, Memory};
use cuda_order_check_engine::{
    Access, Cell, Compare, ContextId, EventId, GraphId, HostOrder, Options, StreamId, ThreadId,
};

#[test]
fn the_record_of_an_exported_event_waits_for_the_last_one() {
    for (exported, destroyed) in [(true, false), (false, false), (true, true)] {
        let found = findings(|feed| {
            if exported {
                feed.event_exported(EVENT, None);
            }
            // Another one has its handle then, which no other process has.
            if destroyed {
                feed.event_destroy(EVENT);
                feed.event_create(EVENT, false);
            }
            feed.write(A, None, &[Access::write(DEVICE, 64)]);
            feed.record(EVENT, A);
            feed.record(EVENT, B);
            feed.write(B, None, &[Access::write(DEVICE, 64)]);
        });
        let expected = usize::from(!exported || destroyed);
        assert_eq!(found, expected, "exported: {exported}, destroyed: {destroyed}");
    }
}

/// A host function may wait for the host, by a lock, say: what comes behind it is after what the host has
/// done before its end.
#[test]
fn what_is_behind_a_function_is_after_the_host_until_its_end() {
    for ends in [true, false] {
        let found = findings(|feed| {
            feed.function(A, 7);
            feed.work(A, &[Access::read(DEVICE, 64)]);
            feed.observer_mut().thread = ThreadId(9);
            feed.function_begins(7);
            let end = |feed: &mut Feed<Caller>| {
                feed.observer_mut().thread = ThreadId(9);
                feed.function_ends(7);
                feed.observer_mut().thread = ThreadId(1);
                feed.begin("later", 3, None);
            };
            if !ends {
                end(feed);
            }
            feed.observer_mut().thread = ThreadId(1);
            feed.begin("store", 2, None);
            feed.host(&[Access::write(DEVICE, 64)]);
            if ends {
                end(feed);
            }
        });
        assert_eq!(found, usize::from(!ends), "it ends after the store: {ends}");
    }
}

/// What the host learns without a call is assumed, and said, unless the program reports its order.
#[test]
fn order_that_is_reported_is_not_assumed() {
    for (order, count) in [(HostOrder::Submission, 2), (HostOrder::Reported, 0)] {
        let mut feed = Feed::new(Options::new().host_order(order), Caller::default());
        feed.begin("cuMemHostAlloc", 1, None);
        feed.allocate(PINNED, 4096, Memory::Host);
        feed.begin("cuLaunchHostFunc", 2, None);
        feed.function(A, 7);
        feed.function_begins(7);
        feed.function_ends(7);
        feed.begin("cuStreamWriteValue32_v2", 3, None);
        feed.write_value(B, None, Cell { address: PINNED + 64, bytes: 4 }, 1);
        feed.begin("cuMemcpyHtoDAsync_v2", 4, None);
        assert_eq!(feed.assumed().count(), count, "{order:?}");
    }
}

/// Other processes may pass on the order from one exported event to another. So what waits for one,
/// or sees its end, may be after the last records of all.
#[test]
fn an_exported_event_may_be_after_the_others() {
    type Order = fn(&mut Feed<Caller>);
    let orders: [(&str, Order, bool); 5] = [
        ("no call", |_| (), false),
        ("a wait of the stream", |feed| feed.wait(B, EVENT), true),
        (
            "a wait of the host",
            |feed| {
                let awaited = feed.await_event(EVENT);
                feed.reached(&awaited);
            },
            true,
        ),
        ("a query that has succeeded", |feed| feed.event_query(EVENT, true), true),
        ("a query that has failed", |feed| feed.event_query(EVENT, false), false),
    ];
    for (name, order, orders) in orders {
        for exported in [[true, true], [true, false], [false, true], [false, false]] {
            let found = findings(|feed| {
                let beside = EventId(0xf);
                feed.event_create(beside, false);
                for (event, exported) in [EVENT, beside].into_iter().zip(exported) {
                    if exported {
                        feed.event_exported(event, None);
                    }
                }
                feed.write(A, None, &[Access::write(DEVICE, 64)]);
                feed.record(beside, A);
                feed.record(EVENT, StreamId(0xc));
                order(feed);
                feed.write(B, None, &[Access::write(DEVICE, 64)]);
            });
            let expected = usize::from(!(orders && exported == [true, true]));
            assert_eq!(found, expected, "{name}, exported: {exported:?}");
        }
    }
}

#[test]
fn a_barrier_orders_everything() {
    type Program = fn(&mut Feed<Caller>);
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

/// The feed makes events for order between streams and contexts, and leaves none.
#[test]
fn no_event_of_the_feed_is_left() {
    type Order = fn(&mut Feed<Caller>);
    let orders: [(&str, Order); 3] = [
        ("a stream after a stream", |feed| feed.stream_waits_for_stream(A, B)),
        ("a stream after contexts", |feed| {
            feed.stream_waits_for_contexts(A, &[ContextId(0), ContextId(1)]);
        }),
        ("contexts after a stream", |feed| {
            feed.contexts_wait_for_stream(&[ContextId(0), ContextId(1)], A);
        }),
    ];
    for (name, order) in orders {
        findings(|feed| {
            let before = feed.size().0.events;
            order(feed);
            assert_eq!(feed.size().0.events, before, "{name}");
        });
    }
}

/// An access of the host beside a copy is taken to be in order only if the copy waits for the host,
/// and then it is said.
#[test]
fn only_work_that_waits_is_held_back() {
    type Before = fn(&mut Feed<Caller>);
    let cases: [(&str, Before, bool); 5] = [
        ("nothing", |_| (), false),
        ("a host function", |feed| feed.function(A, 7), true),
        ("another stream's host function", |feed| feed.function(B, 7), false),
        (
            "a value",
            |feed| {
                let cell = Cell { address: PINNED, bytes: 4 };
                feed.wait_value(A, cell, 1, Compare::Equal);
            },
            true,
        ),
        ("other work", |feed| feed.write(A, None, &[Access::write(DEVICE + 64, 64)]), false),
    ];
    for (what, before, expected) in cases {
        let mut feed = Feed::new(Options::default(), Caller::default());
        feed.begin("calls", 1, None);
        feed.allocate(DEVICE, 4096, Memory::Device);
        feed.allocate(PINNED, 4096, Memory::Host);
        before(&mut feed);
        feed.write(A, None, &[Access::write(DEVICE, 64)]);
        let awaited = feed.await_stream(A);
        let before = feed.assumed().map(|(_, _, count)| count).sum::<u64>();
        assert_eq!(feed.assume_held_back(&awaited), expected, "behind {what}");
        let assumed = feed.assumed().map(|(_, _, count)| count).sum::<u64>() - before;
        assert_eq!(assumed, u64::from(expected), "behind {what}");
    }
}
