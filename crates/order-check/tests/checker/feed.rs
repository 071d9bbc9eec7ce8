//! The feed without a driver: what it adds to the checker's operations.

use cuda_order_check_engine::StreamKind::NonBlocking;
use cuda_order_check_engine::feed::{
    Creator, Feed, GraphNode, GraphWork, Memory, Observer, Semaphore,
};
use cuda_order_check_engine::{
    Access, AccessKind, Cell, Compare, ContextId, EventId, Finding, GraphId, HostOrder, Options,
    Problem, StreamId, ThreadId, Warnings,
};

/// How many findings there were, and their texts.
#[derive(Default)]
struct Count(usize, String);

impl Observer for Count {
    fn thread(&self) -> ThreadId {
        ThreadId(1)
    }

    fn thread_name(&self, thread: ThreadId) -> String {
        thread.0.to_string()
    }

    fn finding(&mut self, finding: Finding) {
        self.0 += 1;
        self.1 += &finding.to_string();
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

/// What the host learns without a call is assumed, and said, unless the program reports its order.
#[test]
fn order_that_is_reported_is_not_assumed() {
    for (order, count) in [(HostOrder::Submission, 2), (HostOrder::Reported, 0)] {
        let mut feed = Feed::new(Options::new().host_order(order), Count::default());
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

/// A misuse of an object, and a race, are each reported once for the two calls by their places: in a
/// loop there is one, and of another call, or of another problem, there is another one.
#[test]
fn what_is_found_again_is_reported_once() {
    const DESTROYED: Problem = Problem::UseAfterDestroy;
    const IN_USE: Problem = Problem::DestroyedWhileUsed;
    let misuses = |uses: &[(&'static str, &'static str, Problem)]| {
        findings(|feed| {
            for (at, (destroys, uses, problem)) in uses.iter().enumerate() {
                feed.begin(destroys, 10 + 2 * at as u64, None);
                let earlier = feed.caller();
                feed.begin(uses, 11 + 2 * at as u64, None);
                feed.object_misused(*problem, earlier);
            }
        })
    };
    let (one, two) = (("destroy", "record", DESTROYED), ("destroy", "wait", DESTROYED));
    for (uses, found) in [
        (&[one][..], 1),
        (&[one, one, one], 1),
        (&[one, two, one, two], 2),
        (&[one, ("destroy again", "record", DESTROYED)], 2),
        (&[("synchronize", "destroy", IN_USE), ("synchronize", "destroy", IN_USE)], 1),
    ] {
        assert_eq!(misuses(uses), found, "{uses:?}");
    }
    let races = |names: &[&'static str]| {
        findings(|feed| {
            for (at, name) in names.iter().enumerate() {
                feed.begin(name, 10 + at as u64, None);
                let stream = StreamId(at as u64 % 2 + 0xa);
                feed.write(stream, None, &[Access::write(DEVICE, 64)]);
            }
        })
    };
    assert_eq!(races(&["memset", "copy"]), 1);
    assert_eq!(races(&["memset", "copy", "memset", "copy"]), 1);
    assert_eq!(races(&["memset", "copy", "memset", "other", "memset"]), 2);
}

/// The place of each side in words, as a report in JSON has it.
#[test]
fn the_place_of_an_access_is_in_words() {
    #[derive(Default)]
    struct Places(Vec<String>);

    impl Observer for Places {
        fn thread(&self) -> ThreadId {
            ThreadId(1)
        }

        fn thread_name(&self, thread: ThreadId) -> String {
            thread.0.to_string()
        }

        fn finding(&mut self, finding: Finding) {
            let report = finding.report().expect("an error");
            self.0.extend([&report.first, &report.second].map(|side| side.agent.to_string()));
        }
    }

    type Call = fn(&mut Feed<Places>);
    let node = |work| GraphNode { work, after: Vec::new() };
    let work = || vec![GraphWork::Work(vec![Access::write(DEVICE, 64)])];
    let others = || vec![GraphWork::Work(Vec::new())];
    for (graph, place) in [
        (vec![node(work())], "node 0 of a graph in stream 0xa"),
        (vec![node(others()), node(others()), node(work())], "node 2 of a graph in stream 0xa"),
    ] {
        let others: [(Call, &str); 3] = [
            (|feed| feed.work(B, &[Access::read(DEVICE, 4)]), "stream 0xb"),
            (|feed| feed.host(&[Access::read(DEVICE, 4)]), "thread 1"),
            (
                |feed| {
                    feed.stream_name(B, "copies");
                    feed.write(B, None, &[Access::write(DEVICE, 4)]);
                },
                "stream 0xb \"copies\"",
            ),
        ];
        for (other, second) in others {
            let mut feed = Feed::new(Options::default(), Places::default());
            feed.begin("calls", 1, None);
            feed.allocate(DEVICE, 4096, Memory::Device);
            feed.graph(GraphId(1), graph.clone());
            feed.launch(A, GraphId(1));
            feed.launched();
            other(&mut feed);
            assert_eq!(feed.observer().0, [place, second]);
        }
    }
}

/// A stream has its name in reports whenever that was given, also before the stream is known, and the
/// last one that it had until the report.
#[test]
fn a_stream_has_its_name_whenever_it_was_given() {
    type Call = fn(&mut Feed<Count>);
    let named: Call = |feed| feed.stream_name(A, "uploads");
    let used: Call = |feed| feed.write(A, None, &[Access::write(DEVICE, 64)]);
    let other: Call = |feed| feed.write(B, None, &[Access::write(DEVICE, 64)]);
    let renamed: Call = |feed| feed.stream_name(A, "downloads");
    for (calls, name) in [
        (&[used, other][..], None),
        (&[named, used, other], Some("uploads")),
        (&[used, named, other], Some("uploads")),
        (&[other, named, used], Some("uploads")),
        (&[named, renamed, used, other], Some("downloads")),
        (&[used, other, named], None),
    ] {
        let mut feed = Feed::new(Options::default(), Count::default());
        feed.begin("calls", 1, None);
        feed.allocate(DEVICE, 4096, Memory::Device);
        calls.iter().for_each(|call| call(&mut feed));
        let Count(count, text) = feed.observer();
        let found = ["uploads", "downloads"].map(|of| text.contains(of).then_some(of));
        assert_eq!((*count, found.into_iter().flatten().next()), (1, name), "{text}");
    }
}

/// Other processes may pass on the order from one exported event to another. So what waits for one,
/// or sees its end, may be after the last records of all.
#[test]
fn an_exported_event_may_be_after_the_others() {
    type Order = fn(&mut Feed<Count>);
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

/// A binary semaphore has no value. Each launch that waits is after the signal with its number.
#[test]
fn each_launch_waits_for_a_signal_of_its_own() {
    let program = |binary: bool, signals: usize| {
        findings(|feed| {
            let semaphore = Semaphore::new(binary);
            let node = |work, after: &[usize]| GraphNode { work, after: after.to_vec() };
            let writes = || vec![GraphWork::Write(vec![Access::write(DEVICE, 64)])];
            let signal = vec![GraphWork::Signal(semaphore.clone(), 1)];
            let wait = vec![GraphWork::WaitSemaphore(semaphore, 1)];
            feed.graph(GraphId(1), vec![node(writes(), &[]), node(signal, &[0])]);
            feed.graph(GraphId(2), vec![node(wait, &[]), node(writes(), &[0])]);
            for round in 0..signals {
                feed.launch(A, GraphId(1));
                feed.launched();
                if round + 1 < signals {
                    feed.launch(B, GraphId(2));
                    feed.launched();
                    feed.record(EVENT, B);
                    feed.wait(A, EVENT);
                }
            }
            // It is after the wait in the graph, or is ordered by nothing.
            feed.launch(B, GraphId(2));
            feed.launched();
        })
    };
    for signals in 1..4 {
        assert_eq!(program(true, signals), 0, "{signals} signals");
    }
    // One with a value may have the value of the first signal.
    assert_eq!([program(false, 1), program(false, 2)], [0, 1]);
    // The wait in the graph is for its value, and no earlier one.
    let found = |awaited| {
        findings(|feed| {
            let semaphore = Semaphore::new(false);
            let work = vec![GraphWork::WaitSemaphore(semaphore.clone(), awaited)];
            let signal = |value| GraphWork::Signal(semaphore.clone(), value);
            let write = GraphWork::Work(vec![Access::write(DEVICE, 64)]);
            let signals = vec![signal(1), write, signal(2)];
            for (graph, stream, work) in [(1, A, signals), (2, B, work)] {
                feed.graph(GraphId(graph), vec![GraphNode { work, after: Vec::new() }]);
                feed.launch(stream, GraphId(graph));
                feed.launched();
            }
            feed.write(B, None, &[Access::write(DEVICE, 64)]);
        })
    };
    assert_eq!([found(1), found(2)], [1, 0]);
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
    type End = fn(&mut Feed<Count>);
    let ends: [(&str, End, bool); 5] = [
        ("nothing", |_| (), true),
        (
            "other memory",
            |feed| {
                feed.free(PINNED);
                feed.allocate(PINNED, 4096, Memory::Host);
            },
            false,
        ),
        ("memory beside it", |feed| feed.allocate(PINNED + 4096, 64, Memory::Host), true),
        ("a copy over a part of it", |feed| feed.forget_words(PINNED + 23, 1), false),
        ("a copy behind it", |feed| feed.forget_words(PINNED + 24, 8), true),
    ];
    for (name, end, stays) in ends {
        let cell = Cell { address: PINNED + 16, bytes: 8 };
        let mut loads = 0;
        findings(|feed| {
            feed.word_written(cell, 7);
            end(feed);
            feed.find_stored(cell, || {
                loads += 1;
                7
            });
        });
        assert_eq!(loads, usize::from(stays), "{name}");
    }
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

/// An address is one of the memory that begins last before it, whatever was asked before.
#[test]
fn memory_within_memory_is_the_inner_one() {
    let mut feed = Feed::new(Options::default(), Count::default());
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
    let mut feed = Feed::new(Options::default(), Count::default());
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

/// A bounded number of words is kept, and none where the storing thread would have to be known.
#[test]
fn words_are_kept_where_they_tell_something() {
    const KEPT: u64 = 4096;
    let loads = |options, words: u64| {
        let mut feed = Feed::new(options, Count::default());
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

/// What is told within a launch is the launch's, and no other work of the stream.
#[test]
fn a_launch_has_the_waits_of_its_graph() {
    type Tell<'a> = &'a dyn Fn(&mut Feed<Count>);
    let program = |within: bool, tell: Tell<'_>| {
        findings(|feed| {
            let after = Vec::new();
            feed.graph(GraphId(1), vec![GraphNode { work: Vec::new(), after }]);
            if within {
                feed.launch(A, GraphId(1));
            }
            tell(feed);
            feed.launched();
            for stream in [A, B] {
                feed.write(stream, None, &[Access::write(DEVICE, 64)]);
            }
        })
    };
    let semaphore = Semaphore::new(false);
    let cell = Cell { address: PINNED, bytes: 8 };
    let waits: [Tell<'_>; 2] = [&|feed| feed.wait_value(A, cell, 1, Compare::Equal), &|feed| {
        feed.wait_semaphore(A, &semaphore, 1)
    }];
    for wait in waits {
        // Nothing ends the wait, so what is behind it is not there yet.
        assert_eq!([true, false].map(|within| program(within, wait)), [1, 0]);
    }
}

/// A host function that a graph has is not the one that was submitted while it was captured.
#[test]
fn a_function_that_is_left_does_not_begin() {
    for left in [true, false] {
        let found = findings(|feed| {
            feed.write(A, None, &[Access::write(PINNED, 64)]);
            feed.function(A, 7);
            if left {
                feed.function_left(7);
            }
            feed.function_begins(7);
            feed.host(&[Access::read(PINNED, 64)]);
        });
        assert_eq!(found, usize::from(left), "{left}");
    }
}

/// A flag that something has overwritten since it was polled: a read of the host is no early one,
/// although no call has waited for the stream.
#[test]
fn a_flag_that_is_overwritten_was_not_polled() {
    type Overwrite = fn(&mut Feed<Count>);
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
    type Wait = fn(&mut Feed<Count>);
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

/// The places of a launch's writes are those of the nodes, also where some nodes do nothing, or
/// several things.
#[test]
fn a_node_without_work_has_an_end_as_well() {
    let node = |work: Vec<GraphWork>, after: &[usize]| GraphNode { work, after: after.to_vec() };
    let writes = |address, bytes| GraphWork::Write(vec![Access::write(address, bytes)]);
    let (one, other) = (DEVICE, DEVICE + 512);
    let firsts: [(&str, Vec<GraphWork>); 3] = [
        ("nothing", vec![]),
        ("a kernel", vec![GraphWork::Work(vec![])]),
        ("two", vec![GraphWork::Work(vec![]), GraphWork::Work(vec![])]),
    ];
    for (name, first) in firsts {
        // The host sees the flag, and what is before it, and not what comes after it.
        for (at, expected) in [(one, 0), (other, 1)] {
            let found = findings(|feed| {
                let nodes = vec![
                    node(vec![writes(one, 64)], &[]),
                    node(first.clone(), &[]),
                    node(vec![writes(PINNED, 4)], &[0, 1]),
                    node(vec![writes(other, 64)], &[2]),
                ];
                feed.graph(GraphId(1), nodes);
                feed.launch(A, GraphId(1));
                feed.write(A, Some(1), &[Access::write(one, 64)]);
                feed.write(A, Some(2), &[Access::write(PINNED, 4)]);
                feed.write(A, Some(3), &[Access::write(other, 64)]);
                feed.launched();
                feed.written(2, true);
                feed.write(B, None, &[Access::write(at, 64)]);
            });
            assert_eq!(found, expected, "the first node has {name}, at {at:#x}");
        }
    }
}

/// A new executable graph may have the handle of one that is gone.
#[test]
fn launches_are_not_after_those_of_a_graph_that_is_gone() {
    for same in [true, false] {
        let found = findings(|feed| {
            let launch = |feed: &mut Feed<Count>, stream| {
                let work = vec![GraphWork::Write(vec![Access::write(DEVICE, 64)])];
                feed.graph(GraphId(1), vec![GraphNode { work, after: vec![] }]);
                feed.launch(stream, GraphId(1));
                feed.write(stream, None, &[Access::write(DEVICE, 64)]);
                feed.launched();
            };
            launch(feed, A);
            if !same {
                feed.graph_destroy(GraphId(1), []);
            }
            launch(feed, B);
        });
        assert_eq!(found, usize::from(!same), "the same graph: {same}");
    }
}

/// A capture ends for all streams that it had taken in.
#[test]
fn no_stream_is_captured_after_the_end() {
    for joined in [&[][..], &[B], &[B, StreamId(0xc), StreamId(0xd)]] {
        let mut feed = Feed::new(Options::default(), Count::default());
        feed.begin("calls", 1, None);
        feed.event_create(EVENT, false);
        feed.capture_begin(A);
        feed.record(EVENT, A);
        for &stream in joined {
            feed.wait(stream, EVENT);
        }
        let all = || [A].into_iter().chain(joined.iter().copied());
        assert!(all().all(|stream| feed.capture_of(stream).is_some()), "{joined:?}");
        feed.capture_end(A, Some(GraphId(1)));
        assert!(all().all(|stream| feed.capture_of(stream).is_none()), "{joined:?}");
    }
}

/// A destructor is after the launches of all graphs that have held its object, in whichever order
/// these go.
#[test]
fn a_destructor_is_after_the_launches_of_all_its_graphs() {
    let graphs = [(A, GraphId(1), DEVICE), (B, GraphId(2), DEVICE + 64)];
    for turned in [false, true] {
        for (held, expected) in [(&[0, 1][..], 0), (&[0], 1), (&[1], 1), (&[], 2)] {
            let found = findings(|feed| {
                for (stream, graph, at) in graphs {
                    let work = vec![GraphWork::Write(vec![Access::write(at, 64)])];
                    feed.graph(graph, vec![GraphNode { work, after: vec![] }]);
                    feed.launch(stream, graph);
                    feed.write(stream, None, &[Access::write(at, 64)]);
                    feed.launched();
                }
                for at in if turned { [1, 0] } else { [0, 1] } {
                    let objects = if held.contains(&at) { vec![7] } else { vec![] };
                    feed.graph_destroy(graphs[at].1, objects);
                }
                feed.object_released(7);
                feed.destructor_begins();
                feed.host(&[Access::read(DEVICE, 64)]);
                feed.host(&[Access::read(DEVICE + 64, 64)]);
                feed.destructor_ends();
            });
            assert_eq!(found, expected, "held by {held:?}, turned: {turned}");
        }
    }
}

/// The places of the values of semaphores do not overlap.
#[test]
fn each_semaphore_has_a_place_of_its_own() {
    let mut cells: Vec<Cell> = (0..8).map(|at| Semaphore::new(at % 2 == 0).cell()).collect();
    cells.sort_by_key(|cell| cell.address);
    for pair in cells.windows(2) {
        assert!(pair[0].address + u64::from(pair[0].bytes) <= pair[1].address, "{pair:x?}");
    }
}

/// An access of the host beside a copy is taken to be in order only if the copy waits for the host,
/// and then it is said.
#[test]
fn only_work_that_waits_is_held_back() {
    type Before = fn(&mut Feed<Count>);
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
        let mut feed = Feed::new(Options::default(), Count::default());
        feed.begin("calls", 1, None);
        feed.allocate(DEVICE, 4096, Memory::Device);
        feed.allocate(PINNED, 4096, Memory::Host);
        before(&mut feed);
        feed.write(A, None, &[Access::write(DEVICE, 64)]);
        let awaited = feed.await_stream(A);
        let before = feed.assumed().map(|(_, _, count)| count).sum::<u64>();
        assert_eq!(feed.assume_held_back(&awaited), expected, "behind {what}");
        let said = feed.assumed().map(|(_, _, count)| count).sum::<u64>() - before;
        assert_eq!(said, u64::from(expected), "behind {what}");
    }
}

/// A finding says what there was between its calls, and of much of it the last.
#[test]
fn the_last_calls_between_are_remembered() {
    type Note = fn(&mut Feed<Count>, StreamId);
    let query: Note = |feed, stream| {
        feed.record(EventId(stream.0), stream);
        feed.event_query(EventId(stream.0), false);
    };
    // With how many others it is forgotten, and whether it is of the first one's stream.
    let cases: [(&str, Note, usize, bool, &str); 5] = [
        (
            "cuEventRecord",
            |feed, stream| feed.call_failed(Some(stream), 400),
            64,
            true,
            "error 400",
        ),
        ("cuStreamWaitEvent", |feed, at| feed.call_failed(Some(at), 401), 64, false, "error 401"),
        ("cuEventRecord", |feed, stream| feed.record(EVENT, stream), 128, true, "only the wait"),
        (
            "cuStreamWaitEvent",
            |feed, stream| {
                feed.event_exported(EVENT, None);
                feed.wait(stream, EVENT);
            },
            usize::MAX,
            false,
            "waited for interprocess event",
        ),
        ("cuEventQuery", query, 8, true, "was not done"),
    ];
    for (name, note, most, of_first, text) in cases {
        for (before, after) in [(0, 2), (0, most - 1), (0, most), (most, 0), (2 * most.min(500), 2)]
        {
            if before.max(after) > 1000 {
                continue;
            }
            let options = Options::new().warnings(Warnings::all());
            let mut feed = Feed::new(options, Count::default());
            let mut number = 0;
            let mut begin = |feed: &mut Feed<Count>, name| {
                number += 1;
                feed.begin(name, number, None);
            };
            begin(&mut feed, "cuMemsetD8Async");
            feed.work(A, &[Access::write(DEVICE, 64)]);
            let mut others = (0x100..).map(StreamId);
            for _ in 0..before {
                begin(&mut feed, name);
                note(&mut feed, others.next().expect("one"));
            }
            begin(&mut feed, name);
            note(&mut feed, if of_first { A } else { B });
            for _ in 0..after {
                begin(&mut feed, name);
                note(&mut feed, others.next().expect("one"));
            }
            begin(&mut feed, "read");
            match text {
                "was not done" => feed.host(&[Access::read(DEVICE, 64)]),
                _ => feed.work(B, &[Access::read(DEVICE, 64)]),
            }
            let found = &feed.observer().1;
            let place = format!("{name}, {text}, {before} before and {after} after: {found}");
            assert!(found.contains("read"), "{place}");
            assert_eq!(found.contains(text), after < most, "{place}");
        }
    }
    // Of what a stream waited for and is not known, the last three.
    let mut feed = Feed::new(Options::default(), Count::default());
    for number in 1..=5 {
        feed.begin("cuStreamWaitEvent", number, None);
        feed.event_exported(EVENT, None);
        feed.wait(B, EVENT);
    }
    feed.work(A, &[Access::write(DEVICE, 64)]);
    feed.work(B, &[Access::read(DEVICE, 64)]);
    let named = (1..=5).filter(|at| feed.observer().1.contains(&format!("call #{at} (cuStreamW")));
    assert_eq!(named.collect::<Vec<_>>(), [3, 4, 5], "{}", feed.observer().1);
}
