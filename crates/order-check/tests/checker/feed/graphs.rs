//! Launches of graphs, captures, host functions, semaphores and user objects.

use crate::feed::{A, B, Caller, DEVICE, EVENT, PINNED, findings};
use cuda_order_check_engine::feed::{Feed, GraphNode, GraphWork, Memory, Semaphore};
use cuda_order_check_engine::{
    Access, Cell, Compare, ContextId, GraphId, HostOrder, Options, StreamId, ThreadId,
};

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

/// What is reported within a launch is the launch's, and no other work of the stream.
#[test]
fn a_launch_has_the_waits_of_its_graph() {
    type Wait<'a> = &'a dyn Fn(&mut Feed<Caller>);
    let program = |within: bool, wait: Wait<'_>| {
        findings(|feed| {
            let after = Vec::new();
            feed.graph(GraphId(1), vec![GraphNode { work: Vec::new(), after }]);
            if within {
                feed.launch(A, GraphId(1));
            }
            wait(feed);
            feed.launched();
            for stream in [A, B] {
                feed.write(stream, None, &[Access::write(DEVICE, 64)]);
            }
        })
    };
    let semaphore = Semaphore::new(false);
    let cell = Cell { address: PINNED, bytes: 8 };
    let waits: [Wait<'_>; 2] = [&|feed| feed.wait_value(A, cell, 1, Compare::Equal), &|feed| {
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

/// Host functions of two contexts run at once, each on a thread of its own. What a thread does in the
/// meantime belongs to its function, and to the thread after the end of that.
#[test]
fn functions_that_run_at_once_have_their_own_accesses() {
    let program = |ends: Option<u64>, reads: u64| {
        let options = Options::new().host_order(HostOrder::Reported);
        let mut feed = Feed::new(options, Caller::default());
        feed.begin("calls", 1, None);
        feed.allocate(PINNED, 4096, Memory::Host);
        for (place, stream) in [(7, A), (8, B)] {
            feed.write(stream, Some(place), &[Access::write(PINNED + 64 * place, 64)]);
            feed.function(stream, place);
        }
        for place in [7, 8] {
            feed.observer_mut().thread = ThreadId(place);
            feed.function_begins(place);
        }
        if let Some(place) = ends {
            feed.observer_mut().thread = ThreadId(place);
            feed.function_ends(place);
        }
        assert_eq!(feed.runs_function(ThreadId(reads)), ends != Some(reads));
        feed.observer_mut().thread = ThreadId(reads);
        feed.begin("load", 2, None);
        feed.host(&[Access::read(PINNED + 64 * reads, 64)]);
        feed.observer().findings.len()
    };
    for reads in [7, 8] {
        assert_eq!(program(None, reads), 0, "{reads} while both run");
        assert_eq!(program(Some(15 - reads), reads), 0, "{reads} after the other one's end");
        assert_eq!(program(Some(reads), reads), 1, "{reads} after its own end");
    }
}

/// A new executable graph may have the handle of one that is gone.
#[test]
fn launches_are_not_after_those_of_a_graph_that_is_gone() {
    for same in [true, false] {
        let found = findings(|feed| {
            let launch = |feed: &mut Feed<Caller>, stream| {
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

/// An update gives an executable graph the nodes of another graph, whatever it had before: a signal of
/// which each launch has its own has these put together anew at the launch.
#[test]
fn an_updated_graph_has_nothing_of_before() {
    for updated in [true, false] {
        let found = findings(|feed| {
            let signal = GraphWork::Signal(Semaphore::new(true), 0);
            let work = vec![signal, GraphWork::Work(vec![Access::write(DEVICE, 64)])];
            feed.graph(GraphId(1), vec![GraphNode { work, after: vec![] }]);
            feed.graph(GraphId(2), vec![]);
            if updated {
                feed.graph_copy(GraphId(2), GraphId(1));
            }
            feed.launch(A, GraphId(1));
            feed.launched();
            feed.write(B, None, &[Access::write(DEVICE, 64)]);
        });
        assert_eq!(found, usize::from(!updated), "updated: {updated}");
    }
}

/// A copy that is captured is no work yet, and none of another context.
#[test]
fn captured_work_is_no_other_contexts() {
    for captured in [true, false] {
        let found = findings(|feed| {
            feed.work(A, &[Access::write(DEVICE, 64)]);
            if captured {
                feed.capture_begin(A);
            }
            feed.contexts_share(&[ContextId(7)], A);
            let awaited = feed.await_contexts(&[ContextId(7)]);
            feed.reached(&awaited);
            feed.host(&[Access::read(DEVICE, 64)]);
        });
        assert_eq!(found, usize::from(captured), "captured: {captured}");
    }
}

/// A capture ends for all streams that it had taken in.
#[test]
fn no_stream_is_captured_after_the_end() {
    for joined in [&[][..], &[B], &[B, StreamId(0xc), StreamId(0xd)]] {
        let mut feed = Feed::new(Options::default(), Caller::default());
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

/// The driver's thread runs one destructor after the other. Each is after the launches of its own
/// object's graphs only.
#[test]
fn a_destructor_is_not_after_what_the_one_before_waited_for() {
    for (objects, expected) in [([7, 7], 0), ([7, 8], 1), ([8, 7], 1)] {
        let options = Options::new().host_order(HostOrder::Reported);
        let mut feed = Feed::new(options, Caller::default());
        feed.begin("calls", 1, None);
        feed.allocate(DEVICE, 4096, Memory::Device);
        let work = vec![GraphWork::Work(vec![Access::write(DEVICE, 64)])];
        feed.graph(GraphId(1), vec![GraphNode { work, after: vec![] }]);
        feed.launch(A, GraphId(1));
        feed.launched();
        for object in objects {
            feed.objects_left(GraphId(1), (object == 7).then_some(7));
            feed.object_released(object);
        }
        feed.observer_mut().thread = ThreadId(9);
        for _ in objects {
            feed.destructor_begins();
            feed.host(&[Access::read(DEVICE, 64)]);
            feed.destructor_ends();
        }
        assert_eq!(feed.observer().findings.len(), expected, "{objects:?}");
    }
}

/// An object whose graphs were never launched has nothing to wait for, and nothing is kept for it.
#[test]
fn an_object_of_no_launch_is_not_remembered() {
    for launched in [true, false] {
        findings(|feed| {
            feed.graph(GraphId(1), vec![GraphNode { work: vec![], after: vec![] }]);
            if launched {
                feed.launch(A, GraphId(1));
                feed.launched();
            }
            let before = feed.size().1;
            feed.graph_destroy(GraphId(1), [7]);
            assert_eq!(feed.size().1 - before, usize::from(launched), "launched: {launched}");
            feed.object_released(7);
            feed.destructor_begins();
            feed.destructor_ends();
            assert_eq!(feed.size().1, before, "launched: {launched}");
        });
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
