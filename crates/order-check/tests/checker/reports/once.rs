//! What is reported once.

use std::borrow::Cow;
use std::sync::Arc;

use crate::common::Do;
use crate::reports::{Program, read, write};
use cuda_order_check_engine::{Access, Call, Node, NodeWork, Op, StreamId, ThreadId, What};

#[test]
fn each_pair_of_places_is_reported_once() {
    let mut program = Program::new();
    for _ in 0..50 {
        program.apply("cuMemcpyHtoDAsync", write(1)).apply("cuMemcpyDtoHAsync", read(2));
    }
    assert_eq!(program.findings().len(), 1);
    // Other calls, or the same ones in other streams, are other places.
    program.apply("cuMemsetD8Async", write(2));
    assert_eq!(program.findings().len(), 1);
    program.apply("cuMemcpyDtoHAsync", read(3));
    let findings = program.findings();
    assert_eq!(findings.len(), 2, "{findings:?}");
    // And so are other lines.
    for number in 0..3 {
        let at = cuda_order_check_engine::Location {
            file: Cow::Borrowed("a.rs"),
            line: 1 + number % 2,
            column: 1,
        };
        program
            .checker
            .apply(Call::new("cuMemcpyDtoHAsync", 1000, ThreadId(1)).at(at), read(4).op());
    }
    assert_eq!(program.findings().len(), 4);
}

/// A pair that was found is found again by less than its text, but by all that its text is made of.
#[test]
fn a_pair_that_was_found_before_is_the_same_only_if_all_of_it_is() {
    let mut program = Program::new();
    let mut found = |name: Option<&str>, [one, two]: [&'static str; 2], stream| {
        if let Some(name) = name {
            let call = Call::new("", 0, ThreadId(1));
            program.checker.apply(call, Op::StreamName { stream: StreamId(2), name });
        }
        (0..3).for_each(|_| _ = program.apply(one, write(1)).apply(two, write(stream)));
        let number = program.findings().len();
        // The next pair meets no call of this one.
        program.apply("cuStreamSynchronize", Do::Sync(What::Stream(StreamId(1))));
        program.apply("cuStreamSynchronize", Do::Sync(What::Stream(StreamId(stream))));
        number
    };
    assert_eq!(found(None, ["a", "b"], 2), 1);
    assert_eq!(found(None, ["a", "b"], 2), 0);
    assert_eq!(found(None, ["a", "other"], 2), 1, "another function");
    assert_eq!(found(None, ["a", "b"], 3), 1, "another stream");
    assert_eq!(found(Some("one"), ["a", "b"], 2), 1, "a name");
    assert_eq!(found(Some("two"), ["a", "b"], 2), 1, "another name");
    assert_eq!(found(None, ["a", "b"], 2), 0);
    assert_eq!(found(Some("one"), ["a", "b"], 2), 0, "a name that it had");
}

/// Each node of a launch is a place of its own.
#[test]
fn the_nodes_of_a_launch_are_several_places() {
    let node = |at| Node { work: NodeWork::Work(vec![Access::write(at, 8)]), after: Vec::new() };
    let mut program = Program::new();
    for round in 0..3 {
        program
            .apply("define", Do::Define(1, vec![node(0x1000), node(0x1010)]))
            .apply("cuGraphLaunch", Do::Launch(1, 1))
            .apply("cuMemcpyDtoHAsync", read(2));
        let findings = program.findings();
        assert_eq!(findings.len(), if round == 0 { 2 } else { 0 }, "{findings:?}");
    }
}

/// With backtraces a place is how the program came to the call, whatever the stream.
#[test]
fn backtraces_distinguish_places() {
    let races = |traces: &[[&'static str; 2]]| {
        let mut program = Program::new();
        for (round, [one, two]) in (0..).zip(traces) {
            // Streams that nothing else orders, and memory for each round.
            let (a, b, at) = (20 + 2 * round, 21 + 2 * round, 0x10_000 * (round + 1));
            let both = [(a, Access::write(at, 8), one), (b, Access::read(at, 8), two)];
            for (side, (stream, access, trace)) in (1..).zip(both) {
                let mut call = Call::new("copy", 2 * round + side, ThreadId(1));
                call.backtrace = Some(Arc::new(*trace));
                program.checker.apply(call, Do::Work(stream, vec![access]).op());
            }
        }
        program.findings().len()
    };
    assert_eq!(races(&[["upload", "download"]; 5]), 1);
    assert_eq!(races(&[["upload", "download"], ["upload", "other"], ["more", "download"]]), 3);
    // Without names of functions the stream counts too.
    assert_eq!(races(&[["<unknown>", "<unknown>"]; 5]), 5);

    // The same two streams, and more places than are distinguished.
    let mut program = Program::new();
    for round in 0..200 {
        for (side, does) in (1..).zip([write(1), read(2)]) {
            let mut call = Call::new("copy", 2 * round + side, ThreadId(1));
            call.backtrace = Some(Arc::new(round.to_string()));
            program.checker.apply(call, does.op());
        }
    }
    let findings = program.findings().len();
    assert!((64..=128).contains(&findings), "{findings}");
}
