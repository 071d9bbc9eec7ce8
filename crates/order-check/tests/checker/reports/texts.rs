//! What reports say.

use std::borrow::Cow;
use std::panic::Location;
use std::sync::Arc;

use crate::common::Do;
use crate::reports::{Program, line, read, write};
use cuda_order_check_engine::{
    Access, Call, Checker, ContextId, Finding, HostOrder, Node, NodeWork, Op, Options, StreamId,
    StreamKind, ThreadId, What,
};

/// A name with the end of a line in it does not break the line of a report.
#[test]
fn a_name_stays_in_its_line() {
    let mut checker = Checker::default();
    let call = |number| Call::new("cuMemsetD8Async", number, ThreadId(1));
    let accesses = &[Access::write(0x1010, 64)];
    checker.apply(call(1), Op::Work { stream: StreamId(0xa), accesses });
    checker.apply(call(2), Op::StreamName { stream: StreamId(0xa), name: "up\n\"x\"" });
    checker.apply(call(3), Op::Work { stream: StreamId(0xb), accesses });
    let text = checker.take_findings()[0].to_string();
    assert!(line(&text, "writes").contains(r#"in stream `up\n\"x\"`,"#), "{text}");
}

/// Memory of a pool begins in the order of a stream.
#[test]
fn a_report_names_an_allocation_in_stream_order() {
    let mut checker = Checker::default();
    let mut number = 0;
    let mut apply = |name, stream, access: Access| {
        number += 1;
        let call = Call::new(name, number, ThreadId(1));
        checker.apply(call, Op::Work { stream: StreamId(stream), accesses: &[access] });
    };
    apply("cuMemAllocAsync", 0xa, Access::allocate(0x1000, 0x200));
    apply("cuMemFreeAsync", 0xa, Access::free(0x1000, 0x200));
    apply("cuMemAllocAsync", 0xa, Access::allocate(0x1000, 0x100));
    apply("cuMemsetD8Async", 0xa, Access::write(0x1010, 64));
    apply("cuMemsetD8Async", 0xb, Access::write(0x1010, 64));
    let text = checker.take_findings()[0].to_string();
    let memory =
        "64 bytes, bytes 16 to 79 of the 256 bytes that call #3 (cuMemAllocAsync) allocated";
    assert_eq!(line(&text, "bytes"), format!("0x1010 to 0x104f, {memory}"));
}

/// A report names the allocation, and the streams by their names and the calls that created them.
#[test]
fn a_report_names_the_allocation_and_the_streams() {
    let mut checker = Checker::default();
    let mut number = 0;
    let mut apply = |name, op: Op<'_>| {
        number += 1;
        checker.apply(Call::new(name, number, ThreadId(1)), op);
    };
    let create = |stream| Op::StreamCreate {
        stream: StreamId(stream),
        context: ContextId(0),
        kind: StreamKind::NonBlocking,
        name: None,
    };
    apply("cuStreamCreate", create(0xa));
    apply("cuStreamCreate", create(0xb));
    apply("cuMemAlloc_v2", Op::Allocate { address: 0xf00, bytes: 0x100 });
    apply("cuMemAlloc_v2", Op::Allocate { address: 0x1000, bytes: 0x200 });
    let accesses = &[Access::write(0x1010, 64)];
    apply("cuMemsetD8Async", Op::Work { stream: StreamId(0xa), accesses });
    // The name is that of the stream, whenever it was given.
    apply("name", Op::StreamName { stream: StreamId(0xa), name: "first \"try\"" });
    apply("name", Op::StreamName { stream: StreamId(0xa), name: "copies" });
    apply("cuMemsetD8Async", Op::Work { stream: StreamId(0xb), accesses });
    // The bytes of memory that is allocated anew are of the new one only.
    apply("cuMemFree_v2", Op::Host { accesses: &[Access::free(0x1000, 0x200)] });
    let findings = checker.take_findings();
    let text = findings[0].to_string();
    let memory = "64 bytes, bytes 16 to 79 of the 512 bytes that call #4 (cuMemAlloc_v2) allocated";
    assert_eq!(line(&text, "bytes"), format!("0x1010 to 0x104f, {memory}"));
    assert!(line(&text, "writes").contains("in stream `copies`,"), "{text}");
    let report = findings[0].report().unwrap();
    let allocation = report.allocation.as_ref().unwrap();
    assert_eq!((allocation.range.clone(), allocation.call.number), (0x1000..0x1200, 4));
    assert_eq!(report.second.agent.stream_created().unwrap().number, 2);
    let json = findings[0].to_json();
    for part in [
        r#""stream":"0xa","stream_name":"copies","stream_created":{"call":"cuStreamCreate","number":1}}"#,
        r#""bytes":[["0x1010","0x1050"]],"allocation":{"call":"cuMemAlloc_v2","number":4,"address":"0x1000","size":512,"offset":16}"#,
    ] {
        assert!(json.contains(part), "{json}");
    }
    // Of a use after the free, too; but not if the bytes are something else now.
    let read = |checker: &mut Checker, number| {
        let call = Call::new("cuMemcpyDtoH_v2", number, ThreadId(1));
        checker.apply(call, Op::Host { accesses: &[Access::read(0x1000, 8)] });
        let findings = checker.take_findings();
        findings.last().and_then(Finding::report).map(|report| report.allocation.is_some())
    };
    assert_eq!(read(&mut checker, 20), Some(true));
    let again = Op::Host { accesses: &[Access::allocate(0x1000, 4), Access::free(0x1000, 4)] };
    checker.apply(Call::new("again", 21, ThreadId(1)), again);
    assert_eq!(read(&mut checker, 22), Some(false));
}

#[test]
fn a_report_shows_the_order_and_the_missing_edge() {
    let mut program = Program::new();
    program
        .apply("cuMemsetD8Async", Do::Work(1, vec![Access::write(0x2000, 4)]))
        .apply("cuEventRecord", Do::Record(7, 1))
        .apply("cuMemcpyHtoDAsync", write(1))
        .apply("cuStreamWaitEvent", Do::Wait(2, 7))
        .apply("cuMemcpyDtoHAsync", read(2));
    assert_eq!(
        program.findings(),
        ["\
error: missing order: call #5 (cuMemcpyDtoHAsync) reads what call #3 (cuMemcpyHtoDAsync) writes, \
         and nothing makes it wait [certain]
  bytes    0x1000 to 0x103f, 64 bytes
  writes   cuMemcpyHtoDAsync in stream `copies`, call #3
  reads    cuMemcpyDtoHAsync in stream `work`, call #5
  to mend  after call #3 (cuMemcpyHtoDAsync): cuEventRecord(event, copies); \
         before call #5 (cuMemcpyDtoHAsync): cuStreamWaitEvent(work, event, 0)
           `work` waits for `copies` up to call #1 (cuMemsetD8Async), which is before \
         call #3 (cuMemcpyHtoDAsync): a later event is needed
  order    stream work is after call #1 (cuMemsetD8Async) on stream copies, \
         which is before call #3 (cuMemcpyHtoDAsync)"]
    );
}

#[test]
fn the_missing_order_depends_on_who_they_are() {
    let mut program = Program::new();
    program
        .apply("cuMemsetD8Async", write(1))
        .apply("read", Do::Host(vec![Access::read(0x1000, 64)]));
    let findings = program.findings();
    assert_eq!(
        line(&findings[0], "to mend"),
        "after call #1 (cuMemsetD8Async) and before call #2 (read): cuStreamSynchronize(copies)"
    );
    assert_eq!(line(&findings[0], "reads"), "read on thread main, call #2");

    let mut program = Program::new();
    program.apply("cuMemsetD8Async", write(1)).apply("cuMemcpyDtoH", read(9));
    assert_eq!(
        line(&program.findings()[0], "order"),
        "stream default is not after any call on stream copies; stream copies is non-blocking, so \
         the legacy default stream does not order it"
    );

    let nodes = [Access::write(0x1000, 64), Access::read(0x1020, 64)]
        .map(|access| Node { work: NodeWork::Work(vec![access]), after: Vec::new() });
    let mut program = Program::new();
    program
        .apply("cuGraphInstantiate", Do::Define(1, nodes.to_vec()))
        .apply("cuGraphLaunch", Do::Launch(2, 1));
    let findings = program.findings();
    assert_eq!(
        line(&findings[0], "to mend"),
        "add an edge from node 0 to node 1 to the graph of call #2 (cuGraphLaunch)"
    );
    assert_eq!(
        line(&findings[0], "order"),
        "the two are nodes of one launch, and no path of edges joins them"
    );
    assert_eq!(
        line(&findings[0], "writes"),
        "cuGraphLaunch in node 0 of a graph in stream `work`, call #2"
    );

    let mut program = Program::new();
    let free = Do::Host(vec![Access::free(0x1000, 64)]);
    program.apply("cuMemFree", free).apply("cuMemsetD8Async", write(2));
    let findings = program.findings();
    assert!(
        findings[0].starts_with("error: use after free: call #2 (cuMemsetD8Async) writes what call #1 (cuMemFree) freed ["),
        "{}",
        findings[0]
    );
    assert_eq!(
        line(&findings[0], "order"),
        "call #2 (cuMemsetD8Async) is after call #1 (cuMemFree)"
    );
    assert_eq!(
        line(&findings[0], "to mend"),
        "free the memory after call #2 (cuMemsetD8Async), or stop using it after the free"
    );

    let mut program = Program::with(Options::new().host_order(HostOrder::Reported));
    let other = ThreadId(2);
    program.apply("spawn", Do::Start(2)).apply("store", Do::Host(vec![Access::write(0x1000, 64)]));
    program.checker.apply(Call::new("cuMemcpyHtoDAsync", 9, other), read(2).op());
    assert_eq!(
        line(&program.findings()[0], "to mend"),
        "synchronize thread main with thread 2, which makes call #9 (cuMemcpyHtoDAsync), after \
         call #2 (store) and before that call"
    );
}

/// Only nodes of one launch have an edge between them.
#[test]
fn the_nodes_of_two_launches_need_an_event() {
    let node = Node { work: NodeWork::Work(vec![Access::write(0x1000, 64)]), after: Vec::new() };
    let mut program = Program::new();
    program
        .apply("cuGraphInstantiate", Do::Define(1, vec![node]))
        .apply("cuGraphLaunch", Do::Launch(1, 1))
        .apply("cuGraphLaunch", Do::Launch(2, 1));
    let findings = program.findings();
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(line(&findings[0], "to mend").contains("cuEventRecord(event, copies)"), "{findings:?}");
    assert!(!findings[0].contains("nodes of one launch"), "{findings:?}");
}

/// The use of memory that is freed comes after the free, whichever call was made first.
#[test]
fn a_use_that_was_held_back_is_after_the_free() {
    let mut program = Program::new();
    program
        .apply("cuLaunchHostFunc", Do::Function(1, Some(5), Vec::new()))
        .apply("cuMemcpyDtoHAsync", read(1))
        .apply("cuMemFree", Do::Host(vec![Access::free(0x1000, 64)]))
        .apply("begin", Do::Begin(5))
        .apply("end", Do::End(5));
    let findings = program.findings();
    let head = "error: use after free: call #2 (cuMemcpyDtoHAsync) reads what call #3 (cuMemFree)";
    assert!(findings.len() == 1 && findings[0].starts_with(head), "{findings:?}");
    let order = "call #2 (cuMemcpyDtoHAsync) is after call #3 (cuMemFree)";
    assert_eq!(line(&findings[0], "order"), order);
}

/// The last call that is waited for is named, also if it is over for all by now.
#[test]
fn the_last_call_before_is_remembered() {
    for others in [0, 64] {
        let mut program = Program::with(Options::new().retire_every(1));
        program
            .apply("cuMemsetD8Async", Do::Work(1, vec![Access::write(0x2000, 4)]))
            .apply("cuStreamSynchronize", Do::Sync(What::Stream(StreamId(1))));
        (0..others).for_each(|_| _ = program.apply("other", Do::Work(9, Vec::new())));
        program.apply("cuMemcpyHtoDAsync", write(1)).apply("cuMemcpyDtoHAsync", read(2));
        let order = line(&program.findings()[0], "order");
        let first =
            "stream work is after call #1 (cuMemsetD8Async) on stream copies, which is before";
        assert!(order.starts_with(first), "{others}: {order}");
    }
}

#[test]
fn a_report_has_the_bytes_that_are_shared_and_no_more() {
    let mut program = Program::new();
    let pieces = (0..5).map(|piece| Access::write(0x1000 + piece * 32, 16)).collect();
    program
        .apply("scatter", Do::Work(1, pieces))
        .apply("cuMemcpyDtoHAsync", Do::Work(2, vec![Access::read(0x1008, 200)]));
    let findings = program.checker.take_findings();
    let shared = &findings[0].report().unwrap().shared;
    assert_eq!(
        shared[..],
        [0x1008..0x1010, 0x1020..0x1030, 0x1040..0x1050, 0x1060..0x1070, 0x1080..0x1090]
    );
    let text = findings[0].to_string();
    assert_eq!(line(&text, "bytes"), "72 bytes in 5 ranges within 0x1008 to 0x108f");
}

/// Two copies of rows share one column: that is one access of each, and all of its bytes count.
#[test]
fn the_bytes_of_all_rows_are_shared() {
    let rows = |access: fn(u64, u64) -> Access, column: u64| {
        (0..8).rev().map(move |row| access(0x1000 + row * 256 + column, 65))
    };
    let copy = |stream, column, from: u64| {
        let read = (0..8).map(|row| Access::read(from + row * 256, 65));
        Do::Work(stream, rows(Access::write, column).chain(read).collect())
    };
    let mut program = Program::new();
    program
        .apply("cuMemcpy2DAsync", copy(1, 0, 0x9000))
        .apply("cuMemcpy2DAsync", copy(2, 64, 0xA000));
    let findings = program.checker.take_findings();
    assert_eq!(findings.len(), 1);
    let column: Vec<_> = (0..8).map(|row| 0x1040 + row * 256).map(|at| at..at + 1).collect();
    assert_eq!(findings[0].report().unwrap().shared, column);
    let text = findings[0].to_string();
    assert_eq!(line(&text, "bytes"), "8 bytes in 8 ranges within 0x1040 to 0x1740");
    // The same of what the host touches.
    let mut program = Program::new();
    program
        .apply("cuMemcpy2DAsync", copy(1, 0, 0x9000))
        .apply("read", Do::Host(rows(Access::read, 64).collect()));
    let findings = program.checker.take_findings();
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].report().unwrap().shared, column);
}

#[test]
fn one_byte_is_a_byte() {
    let byte = |stream, access: fn(u64, u64) -> Access| Do::Work(stream, vec![access(0x1000, 1)]);
    let mut program = Program::new();
    program.apply("set", byte(1, Access::write)).apply("get", byte(2, Access::read));
    let findings = program.findings();
    assert!(findings[0].contains("\n  bytes    0x1000, 1 byte\n"), "{}", findings[0]);
    let mut program = Program::new();
    let free = Do::Host(vec![Access::free(0x1000, 1)]);
    program.apply("cuMemFree", free).apply("set", byte(1, Access::write));
    let findings = program.findings();
    assert!(findings[0].contains("\n  bytes    0x1000, 1 byte\n"), "{}", findings[0]);
}

/// The first call's stream is held back, so that the checker comes to the second call first. An
/// event of a later call could not be waited for by an earlier one.
#[test]
fn the_missing_order_follows_the_calls() {
    let held = |order, by: [u64; 2]| {
        let mut program = Program::with(Options::new().host_order(order));
        program.apply("cuLaunchHostFunc", Do::Function(1, Some(5), Vec::new()));
        for (number, name, does, by) in
            [(2, "cuMemsetD8Async", write(1), by[0]), (3, "cuMemcpyDtoHAsync", read(2), by[1])]
        {
            program.checker.apply(Call::new(name, number, ThreadId(by)), does.op());
        }
        program.checker.apply(Call::new("end", 9, ThreadId(1)), Do::End(5).op());
        let findings = program.findings();
        assert_eq!(findings.len(), 1);
        findings[0].clone()
    };
    for (order, by) in [
        (HostOrder::Submission, [1, 1]),
        (HostOrder::Submission, [1, 2]),
        (HostOrder::Reported, [1, 1]),
    ] {
        let findings = held(order, by);
        assert_eq!(
            line(&findings, "to mend"),
            "after call #2 (cuMemsetD8Async): cuEventRecord(event, copies); before call #3 \
             (cuMemcpyDtoHAsync): cuStreamWaitEvent(work, event, 0)"
        );
        let head = "call #3 (cuMemcpyDtoHAsync) reads what call #2 (cuMemsetD8Async) writes,";
        assert!(findings.contains(head), "{findings}");
        assert_eq!(
            line(&findings, "order"),
            "stream work is not after call #2 (cuMemsetD8Async) on stream copies; stream copies is \
             not after any call on stream work"
        );
    }
    // The calls of two threads have no order, where none is reported.
    let findings = held(HostOrder::Reported, [1, 2]);
    assert!(
        findings.contains(
            "call #2 (cuMemsetD8Async) overwrites what call #3 (cuMemcpyDtoHAsync) reads"
        ),
        "{findings}"
    );
}

#[test]
fn reports_have_source_lines_and_backtraces() {
    let here = Location::caller();
    let mut checker = Checker::default();
    let mut one = Call::new("cuMemsetD8Async", 1, ThreadId(1)).at(here);
    one.backtrace = Some(Arc::new("fill\nmain"));
    let place =
        cuda_order_check_engine::Location { file: Cow::Borrowed("worker.c"), line: 12, column: 0 };
    checker.apply(one, write(1).op());
    checker.apply(Call::new("cuMemsetD8Async", 2, ThreadId(1)).at(place), write(2).op());
    let text = checker.take_findings()[0].to_string();
    // The begin of a long path is left out.
    let place = format!("checker/reports/texts.rs:{}", here.line());
    assert!(text.contains("worker.c:12 overwrites what "), "{text}");
    assert!(text.contains(&format!("{place} writes [")), "{text}");
    let at = format!("{place}, called by fill, main\n");
    assert!(text.contains(&at) && text.contains("at worker.c:12\n"), "{text}");
}

#[test]
fn a_report_names_unmodelled_calls_that_may_order_it() {
    let mut program = Program::new();
    program
        .apply("cuIpcOpenEventHandle", Do::Event(7, true))
        .apply("cuMemsetD8Async", write(1))
        .apply("cuStreamWaitEvent", Do::Wait(2, 7))
        .apply("cuMemcpyDtoHAsync", read(2));
    let order = line(&program.findings()[0], "order");
    assert_eq!(
        order,
        "stream work is not after any call on stream copies; stream work waited for interprocess \
         event 0x7 in call #3 (cuStreamWaitEvent), whose records by other processes are unknown \
         here"
    );
}

/// The next stream with a handle, or with a place in the clocks, is another one.
#[test]
fn a_report_says_nothing_of_a_stream_that_is_gone() {
    let mut program = Program::new();
    program
        .apply("cuIpcOpenEventHandle", Do::Event(7, true))
        .apply("cuStreamWaitEvent", Do::Wait(2, 7))
        .apply("cuStreamDestroy", Do::Destroy(2))
        .apply("cuStreamCreate", Do::Create(2, 0, StreamKind::NonBlocking))
        .apply("cuMemsetD8Async", write(1))
        .apply("cuMemcpyDtoHAsync", read(2));
    let order = line(&program.findings()[0], "order");
    assert_eq!(order, "stream 0x2 is not after any call on stream copies");

    let mut program = Program::with(Options::new().retire_every(1));
    program
        .apply("cuMemsetD8Async", write(1))
        .apply("cuStreamSynchronize", Do::Sync(What::Stream(StreamId(1))))
        .apply("cuStreamDestroy", Do::Destroy(1));
    let before = program.checker.size().agents;
    for _ in 0..64 {
        program.apply("cuLaunchKernel", Do::Work(2, Vec::new()));
    }
    program.apply("cuStreamCreate", Do::Create(3, 0, StreamKind::NonBlocking));
    assert_eq!(program.checker.size().agents, before, "the place comes back");
    program.apply("cuMemsetD8Async", write(3)).apply("cuMemcpyDtoHAsync", read(2));
    let order = line(&program.findings()[0], "order");
    assert_eq!(order, "stream work is not after any call on stream 0x3");
}

#[test]
fn a_host_function_is_named_as_such() {
    let mut program = Program::new();
    program
        .apply("cuLaunchHostFunc", Do::Function(1, Some(5), vec![Access::write(0x1000, 64)]))
        .apply("cuMemcpyDtoHAsync", read(2));
    let text = &program.findings()[0];
    assert_eq!(
        line(text, "writes"),
        "cuLaunchHostFunc in a host function in stream `copies`, call #1"
    );
    let mends = "after call #1 (cuLaunchHostFunc): cuEventRecord(event, copies); before ";
    assert!(line(text, "to mend").starts_with(mends), "{text}");
}

/// Each side has the place in the source that its call has, and the order names both threads.
#[test]
fn both_sides_have_their_places() {
    let at =
        |line| cuda_order_check_engine::Location { file: "program.py".into(), line, column: 0 };
    for places in [[Some(7), Some(8)], [Some(7), None], [None, Some(8)], [None, None]] {
        let mut checker = Checker::new(Options::new().host_order(HostOrder::Reported));
        let started = Op::ThreadStart { thread: ThreadId(2) };
        checker.apply(Call::new("start", 1, ThreadId(1)), started);
        for (thread, place) in [ThreadId(1), ThreadId(2)].into_iter().zip(places) {
            let mut call = Call::new("uses", 10 + thread.0, thread);
            call.location = place.map(at);
            checker.apply(call, Op::Host { accesses: &[Access::write(0x1000, 4)] });
        }
        let findings = checker.take_findings();
        let (text, json) = (findings[0].to_string(), findings[0].to_json());
        for (line, place) in [7, 8].into_iter().zip(places) {
            let place = place.is_some();
            assert_eq!(text.contains(&format!("program.py:{line}")), place, "{text}");
            let field = format!(r#""location":"program.py:{line}""#);
            assert_eq!(json.contains(&field), place, "{json}");
        }
        let order = &findings[0].report().unwrap().order;
        let names = [1, 2].map(|thread| order.contains(&format!("thread {thread}")));
        assert_eq!(names, [true; 2], "{order}");
    }
}
