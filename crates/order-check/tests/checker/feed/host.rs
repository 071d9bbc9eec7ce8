//! Memory that the host reads without a call, and the words there.

use crate::feed::{A, B, Caller, DEVICE, EVENT, PINNED, findings};
use cuda_order_check_engine::StreamKind::NonBlocking;
use cuda_order_check_engine::feed::{Creator, Feed, Memory};
use cuda_order_check_engine::{Access, AccessKind, Cell, Compare, ContextId, HostOrder, Options};

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

/// A flag that is captured is written by the launches of its graph: until then the host sees nothing of
/// the work before it.
#[test]
fn a_captured_flag_is_not_seen() {
    for (is_captured, place, expected) in
        [(false, None, 0), (true, None, 1), (false, Some(1), 0), (true, Some(1), 1)]
    {
        let found = findings(|feed| {
            feed.write(A, None, &[Access::write(DEVICE, 64)]);
            if is_captured {
                feed.capture_begin(A);
            }
            feed.write(A, place, &[Access::write(PINNED, 4)]);
            place.into_iter().for_each(|place| feed.written(place, true));
            feed.write(B, None, &[Access::write(DEVICE, 64)]);
        });
        assert_eq!(found, expected, "captured: {is_captured}, {place:?}");
    }
}

/// A flag is what one load of the host reads.
#[test]
fn more_than_eight_bytes_are_no_flag() {
    let program = |memory: u64, bytes: u64| {
        findings(|feed| {
            feed.write(A, None, &[Access::write(DEVICE, 64)]);
            feed.write(A, None, &[Access::write(memory, bytes)]);
            feed.write(B, None, &[Access::write(DEVICE, 64)]);
        })
    };
    assert_eq!([1, 4, 7, 8, 9, 16].map(|bytes| program(PINNED, bytes)), [0, 0, 0, 0, 1, 1]);
    assert_eq!([1, 8, 16].map(|bytes| program(DEVICE + 64, bytes)), [1; 3], "nobody sees it");
}

/// To unregister memory is to free it, for the work that uses it; for the program it stays.
#[test]
fn memory_is_unregistered_after_its_uses() {
    for (waits, expected) in [(true, 0), (false, 1)] {
        let found = findings(|feed| {
            feed.work(A, &[Access::write(PINNED, 64)]);
            if waits {
                let awaited = feed.await_stream(A);
                feed.reached(&awaited);
            }
            feed.unregister(PINNED);
            feed.host(&[Access::read(PINNED, 64)]);
            assert_eq!(feed.memory(PINNED), None);
        });
        assert_eq!(found, expected, "it waits: {waits}");
    }
}

/// What a stream has written is no longer there in other memory, and no store is found.
#[test]
fn words_end_with_their_memory() {
    type End = fn(&mut Feed<Caller>);
    // Whether a word of eight bytes stays, and one of four.
    let ends: [(&str, End, [bool; 2]); 7] = [
        ("nothing", |_| (), [true; 2]),
        (
            "other memory",
            |feed| {
                feed.free(PINNED);
                feed.allocate(PINNED, 4096, Memory::Host);
            },
            [false; 2],
        ),
        ("memory beside it", |feed| feed.allocate(PINNED + 4096, 64, Memory::Host), [true; 2]),
        ("a copy over a part of it", |feed| feed.forget_words(PINNED + 23, 1), [false, true]),
        ("a copy over its first half", |feed| feed.forget_words(PINNED + 9, 8), [false; 2]),
        ("a copy over its second half", |feed| feed.forget_words(PINNED + 20, 8), [false, true]),
        ("a copy behind it", |feed| feed.forget_words(PINNED + 24, 8), [true; 2]),
    ];
    for (name, end, stays) in ends {
        for (bytes, stays) in [8, 4].into_iter().zip(stays) {
            let cell = Cell { address: PINNED + 16, bytes };
            let mut loads = 0;
            findings(|feed| {
                feed.word_written(cell, 7);
                end(feed);
                feed.find_stored(cell, || {
                    loads += 1;
                    7
                });
            });
            assert_eq!(loads, usize::from(stays), "{name}, {bytes} bytes");
        }
    }
}

#[test]
fn memory_is_of_the_host_until_it_ends() {
    let mut feed = Feed::new(Options::default(), Caller::default());
    feed.allocate(PINNED, 16, Memory::Host);
    let at = |feed: &Feed<Caller>, address| feed.memory(address);
    assert_eq!(at(&feed, PINNED + 15), Some(Memory::Host));
    assert_eq!(at(&feed, PINNED + 16).or(at(&feed, PINNED - 1)), None);
    assert_eq!([0, 1].map(|byte| feed.bytes_at(PINNED + byte)), [Some(16), None]);
    feed.free(PINNED);
    assert_eq!((at(&feed, PINNED), feed.bytes_at(PINNED)), (None, None));
}

/// A program protects the memory of a copy until then.
#[test]
fn the_host_is_after_a_copy_once_a_call_has_waited_or_seen_its_end() {
    type Order = fn(&mut Feed<Caller>);
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
        let mut feed = Feed::new(Options::default(), Caller::default());
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

/// An address is one of the memory that begins last before it, whatever was asked before.
#[test]
fn memory_within_memory_is_the_inner_one() {
    let mut feed = Feed::new(Options::default(), Caller::default());
    feed.allocate(DEVICE, 4096, Memory::Device);
    feed.allocate(DEVICE + 1024, 16, Memory::Host);
    let mut found = [0, 1023, 1024, 1039, 1040].map(|at| {
        assert_eq!(feed.memory(DEVICE), Some(Memory::Device));
        feed.memory(DEVICE + at)
    });
    let (device, host) = (Some(Memory::Device), Some(Memory::Host));
    assert_eq!(found, [device, device, host, host, None]);
    feed.free(DEVICE + 1024);
    found = [0, 1023, 1024, 1039, 1040].map(|at| feed.memory(DEVICE + at));
    assert_eq!(found, [device; 5], "the inner one has ended");
}

/// The host stores words of the size that it waits for.
#[test]
fn a_word_of_another_size_is_not_compared() {
    let mut feed = Feed::new(Options::default(), Caller::default());
    feed.begin("calls", 1, None);
    feed.allocate(PINNED, 4096, Memory::Host);
    for (address, written, awaited) in [(PINNED, 8, 4), (PINNED + 16, 4, 8), (PINNED + 32, 8, 8)] {
        feed.word_written(Cell { address, bytes: written }, 1 << 32 | 7);
        let mut loads = 0;
        feed.find_stored(Cell { address, bytes: awaited }, || {
            loads += 1;
            7
        });
        assert_eq!(loads, usize::from(written == awaited), "{written} bytes, and {awaited}");
    }
}

/// A word of four bytes is the same whatever the caller has beside them: the host has stored another
/// one, for which a stream waits, or none.
#[test]
fn a_word_has_no_more_than_its_bytes() {
    let cell = Cell { address: PINNED, bytes: 4 };
    for (now, expected) in [(7, 0), (8, 1)] {
        let found = findings(|feed| {
            feed.write(A, None, &[Access::write(DEVICE, 64)]);
            feed.word_written(cell, 1 << 32 | 7);
            feed.find_stored(cell, || now);
            feed.wait_value(B, cell, now, Compare::Equal);
            feed.write(B, None, &[Access::write(DEVICE, 64)]);
        });
        assert_eq!(found, expected, "{now}");
    }
}

/// A bounded number of words is kept, and none where the storing thread would have to be known.
#[test]
fn words_are_kept_where_they_tell_something() {
    const KEPT: u64 = 4096;
    let loads = |options, words: u64| {
        let mut feed = Feed::new(options, Caller::default());
        feed.begin("calls", 1, None);
        feed.allocate(PINNED, 1 << 16, Memory::Host);
        let cell = |at| Cell { address: PINNED + at * 8, bytes: 8 };
        (0..words).for_each(|at| feed.word_written(cell(at), 1));
        let mut loads = 0;
        (0..words).for_each(|at| {
            feed.find_stored(cell(at), || {
                loads += 1;
                2
            });
        });
        loads
    };
    let submission = Options::default;
    assert_eq!([0, 1].map(|more| loads(submission(), KEPT + more)), [KEPT, 1]);
    assert_eq!(loads(submission().host_order(HostOrder::Reported), 8), 0);
}

/// A flag that something has overwritten since it was polled: a read of the host is no early one,
/// although no call has waited for the stream.
#[test]
fn a_flag_that_is_overwritten_was_not_polled() {
    type Overwrite = fn(&mut Feed<Caller>);
    let cases: [(&str, Overwrite, usize); 6] = [
        ("not at all", |_| (), 1),
        ("by the host", |feed| feed.host(&[Access::write(PINNED, 4)]), 0),
        ("by the host, in part", |feed| feed.host(&[Access::write(PINNED + 3, 1)]), 0),
        ("beside it", |feed| feed.host(&[Access::write(PINNED + 4, 4)]), 1),
        ("not, as it is read", |feed| feed.host(&[Access::read(PINNED, 4)]), 1),
        // The read is too early for the kernel, and only for it.
        ("by a kernel", |feed| feed.work(A, &[Access::write(PINNED, 4)]), 1),
    ];
    for (how, overwrite, expected) in cases {
        let found = findings(|feed| {
            feed.write(A, None, &[Access::write(PINNED, 4)]);
            overwrite(feed);
            feed.host(&[Access::read(PINNED, 4)]);
        });
        assert_eq!(found, expected, "overwritten {how}");
    }
}

/// An atomic read is the poll itself, as often as it comes.
#[test]
fn an_atomic_read_is_no_early_one() {
    for (kind, expected) in [(AccessKind::AtomicRead, 0), (AccessKind::Read, 1)] {
        let found = findings(|feed| {
            feed.write(A, None, &[Access::write(PINNED, 4)]);
            feed.host(&[Access::new(AccessKind::AtomicRead, PINNED, 4)]);
            feed.host(&[Access::new(kind, PINNED, 4)]);
        });
        assert_eq!(found, expected, "{kind:?}");
    }
}

/// Only a value shows that a flag was polled. A read of the host is in order once a call has waited
/// for the flag's write, or has seen that it is done.
#[test]
fn a_flag_that_was_waited_for_is_read() {
    type Wait = fn(&mut Feed<Caller>);
    let cases: [(&str, Wait, usize); 7] = [
        ("nothing", |_| (), 1),
        ("a wait for the stream", |feed| feed.reached(&feed.await_stream(A)), 0),
        ("a wait for another stream", |feed| feed.reached(&feed.await_stream(B)), 1),
        ("a query of the stream", |feed| feed.stream_query(A, true), 0),
        ("a query that says that it runs", |feed| feed.stream_query(A, false), 1),
        ("a query of another stream", |feed| feed.stream_query(B, true), 1),
        ("a query of its event", |feed| feed.event_query(EVENT, true), 0),
    ];
    for (how, wait, expected) in cases {
        let found = findings(|feed| {
            feed.work(B, &[]);
            feed.write(A, None, &[Access::write(PINNED, 4)]);
            feed.record(EVENT, A);
            wait(feed);
            feed.host(&[Access::read(PINNED, 4)]);
        });
        assert_eq!(found, expected, "{how}");
    }
}
