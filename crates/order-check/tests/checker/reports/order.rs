//! What is in order, and so not reported.

use crate::common::{Do, Step};
use crate::reports::{Program, line, read, write};
use cuda_order_check_engine::{
    Access, AccessKind, By, Call, Cell, Checker, Compare, EventId, FunctionId, GraphId, HostOrder,
    Node, NodeWork, Op, Options, StreamId, StreamKind, ThreadId, Warnings, What,
};

/// Each event and each stream is an object of its own.
#[test]
fn objects_do_not_meet() {
    let found = |stream, does: &Do| {
        let mut checker = Checker::new(Options::new().host_order(HostOrder::Reported));
        // Both threads are there before the first one does something.
        (1..3).for_each(|thread| {
            checker.apply(
                Call::new("", thread, ThreadId(thread)),
                Op::Work { stream: StreamId(50), accesses: &[] },
            )
        });
        let used = Do::Record(40, stream);
        for (thread, does) in [(1, &used), (2, does)] {
            checker.apply(Call::new("call", 3, ThreadId(thread)), does.op());
        }
        checker.take_findings().len()
    };
    for stream in 1..4 {
        for other in 0..8 {
            let destroyed = [Do::EventDestroy(other), Do::Destroy(other)];
            let expected = [0, usize::from(stream == other)];
            assert_eq!(destroyed.map(|does| found(stream, &does)), expected, "{stream}, {other}");
        }
    }
}

/// A thread that has seen the end of work by polling is after it, whenever it is heard of first.
#[test]
fn a_thread_that_polls_is_after_the_work() {
    let mut checker = Checker::new(Options::new().host_order(HostOrder::Reported));
    let call = |thread| Call::new("call", thread, ThreadId(thread));
    checker.apply(call(1), write(1).op());
    let flag = Access::write(0x2000, 8);
    checker.apply(call(1), Op::Work { stream: StreamId(1), accesses: &[flag] });
    let mark = checker.mark(What::Stream(StreamId(1)));
    checker.polled(&call(2), &mark, 0x2000..0x2008);
    checker.apply(call(2), Op::Host { accesses: &[Access::read(0x1000, 64)] });
    assert_eq!(checker.take_findings().len(), 0);
    checker.apply(call(3), Op::Host { accesses: &[Access::read(0x1000, 64)] });
    assert_eq!(checker.take_findings().len(), 1, "another one has not");
}

#[test]
fn work_that_was_waited_for_is_over_whatever_it_waited_for() {
    // Another process writes the value: nobody tells that here.
    let cell = Cell { address: 0x3000, bytes: 4 };
    let mut program = Program::new();
    program
        .apply("cuStreamWaitValue32", Do::WaitValue(2, cell, 1, Compare::GreaterOrEqual))
        .apply("cuMemsetD8Async", write(2));
    assert_eq!(program.checker.size().tasks, 2);
    program
        .apply("cuStreamSynchronize", Do::Sync(What::Stream(StreamId(2))))
        .apply("read", Do::Host(vec![Access::read(0x1000, 64)]));
    assert_eq!(program.checker.size().tasks, 0);
    assert!(program.findings().is_empty());
    program.apply("cuMemsetD8Async", write(1)).apply("cuMemcpyDtoHAsync", read(2));
    assert!(
        line(&program.findings()[0], "order")
            .ends_with("in call #1 (cuStreamWaitValue32) for a value that no known write set")
    );

    // A value that a copy may have written is not a missing order.
    let mut program = Program::new();
    program
        .apply("cuStreamWaitValue32", Do::WaitValue(2, cell, 1, Compare::GreaterOrEqual))
        .apply("cuMemcpyDtoHAsync", read(2))
        .apply("cuMemcpyHtoDAsync", write(1))
        .apply("cuMemcpyHtoDAsync", Do::Work(1, vec![Access::write(cell.address, 4)]))
        .apply("cuStreamSynchronize", Do::Sync(What::Stream(StreamId(2))));
    let findings = program.findings();
    assert!(findings.iter().all(|text| line(text, "bytes:") != "0x1000..0x1040"), "{findings:?}");

    // A host function whose end nobody tells.
    let mut program = Program::new();
    program.apply("cuLaunchHostFunc", Do::Function(1, Some(5), vec![Access::write(0x1000, 64)]));
    program
        .apply("cuStreamSynchronize", Do::Sync(What::Stream(StreamId(1))))
        .apply("read", Do::Host(vec![Access::read(0x1000, 64)]));
    assert!(program.findings().is_empty() && program.checker.size().tasks == 0);
    // And one that is reported too late changes nothing.
    let by = By::Function(FunctionId(5));
    for does in [Do::Begin(5), Do::End(5)] {
        let Step { by, does } = Step { by, does };
        let mut call = Call::new("function", 9, ThreadId(1));
        call.by = by;
        program.checker.apply(call, does.op());
    }
    assert!(program.findings().is_empty());
}

#[test]
fn a_mark_is_what_a_call_waits_for_and_not_what_comes_meanwhile() {
    let mut program = Program::new();
    program.apply("cuMemsetD8Async", write(1));
    let mark = program.checker.mark(What::Stream(StreamId(1)));
    // Another thread submits while the first one waits.
    program.apply("cuMemsetD8Async", Do::Work(1, vec![Access::write(0x2000, 64)]));
    program.checker.reached(&Call::new("cuStreamSynchronize", 3, ThreadId(1)), &mark);
    program.apply("read", Do::Host(vec![Access::read(0x1000, 64)]));
    assert!(program.findings().is_empty());
    program.apply("read", Do::Host(vec![Access::read(0x2000, 64)]));
    assert_eq!(program.findings().len(), 1);
}

#[test]
fn a_copied_graph_has_the_nodes_of_the_original() {
    let node = |access| Node { work: NodeWork::Work(vec![access]), after: Vec::new() };
    let mut program = Program::new();
    program
        .apply("cuGraphAddMemsetNode", Do::Define(1, vec![node(Access::write(0x1000, 64))]))
        .apply("cuGraphInstantiate", Do::Copy(1, 2))
        .apply(
            "cuGraphExecMemsetNodeSetParams",
            Do::Define(1, vec![node(Access::write(0x2000, 64))]),
        );
    let destroy = Op::GraphDestroy { graph: GraphId(1) };
    program.checker.apply(Call::new("cuGraphDestroy", 4, ThreadId(1)), destroy);
    program
        .apply("cuGraphLaunch", Do::Launch(1, 2))
        .apply("read", Do::Work(2, vec![Access::read(0x1000, 0x2000)]));
    let findings = program.checker.take_findings();
    assert_eq!(findings[0].report().unwrap().shared.first(), Some(&(0x1000..0x1040)));
    // An event is a number like others.
    program.apply("cuEventSynchronize", Do::Sync(What::Event(EventId(u64::MAX))));
}

/// A wait that no reported write ended is after what the host is after; one that such a write may
/// have ended is not.
#[test]
fn a_wait_that_the_host_ended_is_after_the_hosts_past() {
    let cell = Cell { address: 0x9000, bytes: 4 };
    let wait =
        || Op::WaitValue { stream: StreamId(1), cell, value: 1, compare: Compare::GreaterOrEqual };
    let work = |stream, accesses| Op::Work { stream: StreamId(stream), accesses };
    let (read, write) = ([Access::read(0x1000, 8)], [Access::write(0x1000, 8)]);
    for (reported, expected) in [(false, 0), (true, 1)] {
        let mut checker = Checker::default();
        let call = |number| Call::new("call", number, ThreadId(1));
        checker.apply(call(1), wait());
        checker.apply(call(2), work(1, &read));
        checker.apply(call(3), work(2, &write));
        let what = What::Stream(StreamId(2));
        if reported {
            // The host waits for it only when the wait may have ended long ago.
            checker.apply(call(4), Op::WriteValue { stream: StreamId(3), cell, value: 1 });
        }
        checker.apply(call(5), Op::Synchronize { what });
        // Another wait, or another value.
        checker.apply(call(6), Op::WaitEnded { call: 2, cell });
        checker.apply(call(6), Op::WaitEnded { call: 1, cell: Cell { address: 0x8000, bytes: 4 } });
        assert_eq!(checker.size().tasks, if reported { 0 } else { 2 });
        checker.apply(call(7), Op::WaitEnded { call: 1, cell });
        assert_eq!(checker.size().tasks, 0);
        let found = checker.take_findings();
        assert_eq!(found.len(), expected, "{found:?}");
    }
}

/// The numbers of a launch are those of its host functions, and what comes after one waits for it.
#[test]
fn a_launch_gives_numbers_to_its_host_functions() {
    let node = |work, after: &[usize]| Node { work, after: after.to_vec() };
    let nodes = [
        node(NodeWork::Function(Vec::new()), &[]),
        node(NodeWork::Work(vec![Access::write(0x1000, 8)]), &[0]),
        node(NodeWork::Function(Vec::new()), &[1]),
    ];
    for functions in [&[FunctionId(1), FunctionId(2)][..], &[]] {
        let mut checker = Checker::default();
        let call = |number| Call::new("call", number, ThreadId(1));
        checker.apply(call(1), Op::GraphDefine { graph: GraphId(1), nodes: &nodes });
        let (stream, graph) = (StreamId(1), GraphId(1));
        checker.apply(call(2), Op::Launch { stream, graph, functions });
        // The function waits for the host, which has touched the memory.
        checker.apply(call(3), Op::Host { accesses: &[Access::read(0x1000, 8)] });
        if functions.is_empty() {
            assert_eq!((checker.size().tasks, checker.take_findings().len()), (0, 1));
            continue;
        }
        assert_eq!(checker.size().tasks, 4);
        for &function in functions {
            checker.apply(call(4), Op::FunctionBegin { function });
            checker.apply(call(4), Op::FunctionEnd { function });
        }
        assert_eq!((checker.size().tasks, checker.take_findings().len()), (0, 0));
    }
}

/// A driver's own wait orders as the program's does, and is no useless one; a wait for an event
/// that was never recorded is no operation of the legacy default stream.
#[test]
fn waits_that_the_program_did_not_make() {
    let event = |program: &mut Program, op: Op<'_>| {
        program.number += 1;
        program.checker.apply(Call::new("call", program.number, ThreadId(1)), op);
    };
    let mut program = Program::with(Options::new().warnings(Warnings::all()));
    program.apply("write", write(1)).apply("record", Do::Record(1, 1));
    let join = Op::Join { stream: StreamId(2), event: EventId(1) };
    event(&mut program, join.clone());
    event(&mut program, join);
    program.apply("read", read(2));
    // The first record was waited for, so that it is not lost.
    program.apply("write", Do::Work(3, vec![Access::write(0x2000, 64)]));
    program.apply("record", Do::Record(1, 3)).apply("wait", Do::Wait(1, 1));
    assert_eq!(program.findings(), [""; 0]);

    // Nor is one that another thread has asked about.
    for (asked, lost) in [(true, 0), (false, 1)] {
        let (host_order, warnings) = (HostOrder::Reported, Warnings::all());
        let mut program = Program::with(Options::new().host_order(host_order).warnings(warnings));
        program.apply("start", Do::Start(2)).apply("write", write(1));
        program.apply("record", Do::Record(1, 1));
        if asked {
            let query = Op::Query { what: What::Event(EventId(1)), done: true };
            program.checker.apply(Call::new("query", 9, ThreadId(2)), query);
        }
        program.apply("record", Do::Record(1, 3)).apply("wait", Do::Wait(4, 1));
        let findings = program.findings();
        let lost_ones =
            findings.iter().filter(|findings| findings.contains("does not wait for the work"));
        assert_eq!(lost_ones.count(), lost, "{findings:?}");
    }

    let mut program = Program::new();
    program.apply("write", write(2)).apply("wait", Do::Wait(9, 7)).apply("read", read(1));
    assert_eq!(program.findings().len(), 1);
    // Another process may have recorded this one, so that the wait is an operation.
    for (interprocess, reports) in [(false, 1), (true, 0)] {
        let mut program = Program::new();
        program.apply("create", Do::Create(3, 0, StreamKind::Blocking));
        program.apply("create", Do::Event(7, interprocess));
        program.apply("write", write(2)).apply("wait", Do::Wait(9, 7)).apply("read", read(3));
        assert_eq!(program.findings().len(), reports);
    }
}

/// What a host function accesses it accesses once, also if the host has waited for its end before
/// that was reported: the memory may be another one's by then.
#[test]
fn a_host_function_that_is_waited_for_does_nothing_again() {
    let flag = Cell { address: 0x3000, bytes: 4 };
    for held_back in [false, true] {
        let mut program = Program::new();
        if held_back {
            program.apply("wait", Do::WaitValue(1, flag, 1, Compare::Equal));
        }
        program.apply("function", Do::Function(1, Some(5), vec![Access::read(0x1000, 64)]));
        if held_back {
            program.apply("signal", Do::HostWrite(flag, 1));
        }
        program
            .apply("other memory", Do::Host(vec![Access::new(AccessKind::Forget, 0x1000, 64)]))
            .apply("write", write(2))
            .apply("synchronize", Do::Sync(What::Stream(StreamId(1))));
        assert_eq!(program.findings(), [""; 0], "held back: {held_back}");
    }
}

/// The marks are those of the last launch, and a launch into a captured stream has none.
#[test]
fn a_captured_launch_has_no_marks() {
    for captured in [false, true] {
        let mut program = Program::new();
        let nodes = [1, 2].map(|_| Node { work: NodeWork::Work(Vec::new()), after: Vec::new() });
        program.apply("define", Do::Define(1, nodes.to_vec())).apply("launch", Do::Launch(2, 1));
        if captured {
            program.apply("capture", Do::Capture(1)).apply("launch", Do::Launch(1, 1));
        }
        let marks = [0, 1].map(|_| program.checker.launched().len());
        assert_eq!(marks, [if captured { 0 } else { 2 }, 0], "captured: {captured}");
    }
}
