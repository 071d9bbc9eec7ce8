//! What reports say of the calls.

use crate::feed::{A, B, Caller, DEVICE, EVENT, findings};
use cuda_order_check_engine::feed::{Feed, GraphNode, GraphWork, Memory, Observer};
use cuda_order_check_engine::{
    Access, EventId, Finding, GraphId, HostOrder, Options, Problem, StreamId, ThreadId, Warnings,
};

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

/// A thread may get the number of one that has ended: it begins anew, with a name of its own.
#[test]
fn a_thread_begins_again_after_the_end_of_another() {
    for others in [0, 1, 2] {
        let mut feed = Feed::new(Options::default(), Caller::default());
        let begin = |feed: &mut Feed<Caller>, thread| {
            feed.observer_mut().thread = ThreadId(thread);
            feed.begin("call", 1, None);
        };
        (1..=others).for_each(|other| begin(&mut feed, other));
        for _ in 0..2 {
            assert!(!feed.has_begun(ThreadId(9)), "{others} others");
            begin(&mut feed, 9);
            assert!(feed.has_begun(ThreadId(9)), "{others} others");
            feed.thread_ended(ThreadId(9));
        }
        assert!((1..=others).all(|other| feed.has_begun(ThreadId(other))), "{others} others");
    }
}

/// A thread that has ended, as far as the program knows, is there as long as it makes calls: those of the
/// destructors of its variables. It is after what it did before.
#[test]
fn a_thread_that_makes_a_call_has_not_ended() {
    struct Ended(Caller, usize);
    impl Observer for Ended {
        fn thread(&self) -> ThreadId {
            self.0.thread
        }
        fn thread_name(&self, thread: ThreadId) -> String {
            self.0.thread_name(thread)
        }
        fn ended_threads(&self) -> usize {
            self.1
        }
        fn has_ended(&self, thread: ThreadId) -> bool {
            thread == ThreadId(1) && self.1 > 0
        }
        fn finding(&mut self, finding: Finding) {
            self.0.finding(finding);
        }
    }
    let found = |before: u64, ends: bool, after: u64| {
        let options = Options::new().host_order(HostOrder::Reported);
        let mut feed = Feed::new(options, Ended(Caller::default(), 0));
        for (number, thread) in (1..).zip([2, before, after]) {
            feed.observer_mut().0.thread = ThreadId(thread);
            feed.observer_mut().1 = usize::from(ends && number == 3);
            feed.begin("store", number, None);
            if number > 1 {
                feed.host(&[Access::write(DEVICE, 64)]);
            }
        }
        feed.observer().0.findings.len()
    };
    assert_eq!([false, true].map(|ends| found(1, ends, 1)), [0, 0]);
    assert_eq!([false, true].map(|ends| found(1, ends, 2)), [1, 1]);
}

/// A call that has waited is the current one again, whichever calls came meanwhile.
#[test]
fn a_call_that_goes_on_is_named() {
    for goes_on in [true, false] {
        let mut feed = Feed::new(Options::default(), Caller::default());
        feed.begin("cuMemAlloc_v2", 1, None);
        feed.allocate(DEVICE, 4096, Memory::Device);
        feed.write(A, None, &[Access::write(DEVICE, 64)]);
        feed.begin("cuMemcpyDtoH_v2", 2, None);
        let caller = feed.caller();
        feed.begin("cuEventCreate", 3, None);
        if goes_on {
            feed.resume(caller);
        }
        feed.host(&[Access::read(DEVICE, 64)]);
        let name =
            if goes_on { "call #2 (cuMemcpyDtoH_v2) reads" } else { "(cuEventCreate) reads" };
        assert!(feed.observer().text.contains(name), "{}", feed.observer().text);
    }
}

/// The place of each side in words, as a report in JSON has it.
#[test]
fn the_place_of_an_access_is_in_words() {
    type Call = fn(&mut Feed<Caller>);
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
            let mut feed = Feed::new(Options::default(), Caller::default());
            feed.begin("calls", 1, None);
            feed.allocate(DEVICE, 4096, Memory::Device);
            feed.graph(GraphId(1), graph.clone());
            feed.launch(A, GraphId(1));
            feed.launched();
            other(&mut feed);
            let report = feed.observer().findings[0].report().expect("an error");
            let places = [&report.first, &report.second].map(|side| side.agent.to_string());
            assert_eq!(places, [place, second]);
        }
    }
}

/// A stream has its name in reports whenever that was given, also before the stream is known, and the
/// last one that it had until the report.
#[test]
fn a_stream_has_its_name_whenever_it_was_given() {
    type Call = fn(&mut Feed<Caller>);
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
        let mut feed = Feed::new(Options::default(), Caller::default());
        feed.begin("calls", 1, None);
        feed.allocate(DEVICE, 4096, Memory::Device);
        calls.iter().for_each(|call| call(&mut feed));
        let (count, text) = (feed.observer().findings.len(), &feed.observer().text);
        let found = ["uploads", "downloads"].map(|name| text.contains(name).then_some(name));
        assert_eq!((count, found.into_iter().flatten().next()), (1, name), "{text}");
    }
}

/// Each launch of a graph is recorded, so that the next one comes after it: that is no record of the
/// program, which only needs a wait.
#[test]
fn a_launch_is_no_record_of_an_event() {
    for records in [false, true] {
        let mut feed = Feed::new(Options::default(), Caller::default());
        feed.begin("cuGraphInstantiate", 1, None);
        let work = vec![GraphWork::Work(vec![Access::write(DEVICE, 64)])];
        feed.graph(GraphId(1), vec![GraphNode { work, after: Vec::new() }]);
        feed.begin("cuGraphLaunch", 2, None);
        feed.launch(A, GraphId(1));
        feed.launched();
        feed.begin("cuEventRecord", 3, None);
        if records {
            feed.record(EVENT, A);
        }
        feed.begin("cuMemsetD8Async", 4, None);
        feed.write(B, None, &[Access::write(DEVICE, 64)]);
        let text = &feed.observer().text;
        assert_eq!(text.contains("an event was recorded"), records, "{text}");
        assert_eq!(text.contains("(cuEventRecord): only the wait"), records, "{text}");
    }
}

/// What is said of the calls between two that have no order: what of it is of the two streams, and the last.
#[test]
fn what_was_between_is_of_the_two_streams() {
    const C: StreamId = StreamId(0xc);
    const OTHER: EventId = EventId(0xf);
    type Between = fn(&mut Feed<Caller>);
    let cases: [(&str, Between, &[&str], &[&str]); 7] = [
        ("nothing", |_| (), &[], &["recorded", "failed"]),
        (
            "two failed records",
            |feed| {
                feed.call_failed(Some(A), 400);
                feed.call_failed(Some(A), 401);
            },
            &["failed with error 401"],
            &["error 400"],
        ),
        ("a failed record of the other one", |feed| feed.call_failed(Some(B), 400), &[], &["400"]),
        (
            "a wait of a third one",
            |feed| {
                feed.record(EVENT, A);
                feed.wait(C, EVENT);
            },
            &["an event was recorded in stream 0xa", "stream 0xc waits for it"],
            &[],
        ),
        (
            "a wait of a third one for another event",
            |feed| {
                feed.record(EVENT, A);
                feed.record(OTHER, C);
                feed.wait(C, OTHER);
            },
            &["an event was recorded in stream 0xa", "only the wait is missing"],
            &["waits for it"],
        ),
        (
            "a wait for the event, which something else has recorded anew",
            |feed| {
                feed.record(EVENT, A);
                feed.record(EVENT, C);
                feed.wait(B, EVENT);
            },
            &["an event was recorded in stream 0xa", "only the wait is missing"],
            &["waits for it"],
        ),
        ("a record of a third one", |feed| feed.record(EVENT, C), &[], &["recorded"]),
    ];
    for (name, between, parts, others) in cases {
        let mut feed = Feed::new(Options::default(), Caller::default());
        feed.begin("cuMemsetD8Async", 1, None);
        feed.work(A, &[Access::write(DEVICE, 64)]);
        feed.begin("cuEventRecord", 2, None);
        between(&mut feed);
        feed.begin("cuMemcpyDtoHAsync_v2", 3, None);
        feed.work(B, &[Access::read(DEVICE, 64)]);
        let text = &feed.observer().text;
        assert!(text.contains("reads"), "{name}: {text}");
        assert!(parts.iter().all(|part| text.contains(part)), "{name}: {text}");
        assert!(!others.iter().any(|part| text.contains(part)), "{name}: {text}");
    }
    // No order mends the use of memory that is freed.
    let mut feed = Feed::new(Options::default(), Caller::default());
    feed.allocate(DEVICE, 64, Memory::Device);
    feed.begin("cuMemFreeAsync", 1, None);
    feed.free_async(A, DEVICE);
    feed.begin("cuEventRecord", 2, None);
    feed.call_failed(Some(A), 400);
    feed.begin("cuMemcpyDtoHAsync_v2", 3, None);
    feed.work(A, &[Access::read(DEVICE, 64)]);
    let text = &feed.observer().text;
    assert!(text.contains("or stop using it after the free") && !text.contains("400"), "{text}");
}

/// A finding says what there was between its calls, and of much of it the last.
#[test]
fn the_last_calls_between_are_remembered() {
    type Note = fn(&mut Feed<Caller>, StreamId);
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
            let mut feed = Feed::new(options, Caller::default());
            let mut number = 0;
            let mut begin = |feed: &mut Feed<Caller>, name| {
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
            let found = &feed.observer().text;
            let place = format!("{name}, {text}, {before} before and {after} after: {found}");
            assert!(found.contains("read"), "{place}");
            assert_eq!(found.contains(text), after < most, "{place}");
        }
    }
    // Of what a stream waited for and is not known, the last three.
    let mut feed = Feed::new(Options::default(), Caller::default());
    for number in 1..=5 {
        feed.begin("cuStreamWaitEvent", number, None);
        feed.event_exported(EVENT, None);
        feed.wait(B, EVENT);
    }
    feed.work(A, &[Access::write(DEVICE, 64)]);
    feed.work(B, &[Access::read(DEVICE, 64)]);
    let named =
        (1..=5).filter(|at| feed.observer().text.contains(&format!("call #{at} (cuStreamW")));
    assert_eq!(named.collect::<Vec<_>>(), [3, 4, 5], "{}", feed.observer().text);
}
