//! What reports and warnings say, and what is reported once.

use std::borrow::Cow;
use std::panic::Location;
use std::sync::Arc;

use crate::common::{Do, Step};
use cuda_order_check_engine::{
    Access, By, Call, Cell, Checker, Compare, ContextId, EventId, Finding, FunctionId, GraphId,
    HostOrder, Node, NodeWork, Op, Options, StreamId, StreamKind, ThreadId, Warnings, What,
};

/// Operations of thread 1, each with its name and number.
struct Program {
    checker: Checker,
    number: u64,
}

impl Program {
    fn new() -> Self {
        Self::with(Options::default())
    }

    fn with(options: Options) -> Self {
        let mut checker = Checker::new(options);
        // Without a name, so reports do not name it.
        let main = Call::new("", 0, ThreadId(1));
        checker.apply(main.clone(), Op::ThreadName { thread: ThreadId(1), name: "main" });
        let create = |stream, kind, name| Op::StreamCreate {
            stream,
            context: ContextId(0),
            kind,
            name: Some(name),
        };
        checker.apply(main.clone(), create(StreamId(1), StreamKind::NonBlocking, "copies"));
        checker.apply(main.clone(), create(StreamId(2), StreamKind::Blocking, "work"));
        checker.apply(main, create(StreamId(9), StreamKind::Legacy, "default"));
        Self { checker, number: 0 }
    }

    fn tell(&mut self, name: &'static str, does: Do) -> &mut Self {
        self.number += 1;
        self.checker.apply(Call::new(name, self.number, ThreadId(1)), does.op());
        self
    }

    fn findings(&mut self) -> Vec<String> {
        self.checker.take_findings().iter().map(text).collect()
    }
}

/// The text of a finding, and a line with the order that there is.
fn text(found: &Finding) -> String {
    let order = found.report().map(|report| format!("\n  order    {}", report.order));
    format!("{found}{}", order.unwrap_or_default())
}

fn write(stream: u64) -> Do {
    Do::Work(stream, vec![Access::write(0x1000, 64)])
}

fn read(stream: u64) -> Do {
    Do::Work(stream, vec![Access::read(0x1000, 64)])
}

/// The line of a report that begins with `word`.
fn line(text: &str, word: &str) -> String {
    let found = text.lines().find_map(|line| line.trim_start().strip_prefix(word));
    found.unwrap_or_else(|| panic!("no line {word} in {text}")).trim().to_owned()
}

/// A report names the allocation, and the streams by their names and the calls that created them.
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
    let mut tell = |name, stream, access: Access| {
        number += 1;
        let call = Call::new(name, number, ThreadId(1));
        checker.apply(call, Op::Work { stream: StreamId(stream), accesses: &[access] });
    };
    tell("cuMemAllocAsync", 0xa, Access::allocate(0x1000, 0x200));
    tell("cuMemFreeAsync", 0xa, Access::free(0x1000, 0x200));
    tell("cuMemAllocAsync", 0xa, Access::allocate(0x1000, 0x100));
    tell("cuMemsetD8Async", 0xa, Access::write(0x1010, 64));
    tell("cuMemsetD8Async", 0xb, Access::write(0x1010, 64));
    let text = checker.take_findings()[0].to_string();
    let memory =
        "64 bytes, bytes 16 to 79 of the 256 bytes that call #3 (cuMemAllocAsync) allocated";
    assert_eq!(line(&text, "bytes"), format!("0x1010 to 0x104f, {memory}"));
}

#[test]
fn a_report_names_the_allocation_and_the_streams() {
    let mut checker = Checker::default();
    let mut number = 0;
    let mut tell = |name, op: Op<'_>| {
        number += 1;
        checker.apply(Call::new(name, number, ThreadId(1)), op);
    };
    let create = |stream| Op::StreamCreate {
        stream: StreamId(stream),
        context: ContextId(0),
        kind: StreamKind::NonBlocking,
        name: None,
    };
    tell("cuStreamCreate", create(0xa));
    tell("cuStreamCreate", create(0xb));
    tell("cuMemAlloc_v2", Op::Allocate { address: 0xf00, bytes: 0x100 });
    tell("cuMemAlloc_v2", Op::Allocate { address: 0x1000, bytes: 0x200 });
    let accesses = &[Access::write(0x1010, 64)];
    tell("cuMemsetD8Async", Op::Work { stream: StreamId(0xa), accesses });
    // The name is that of the stream, whenever it was given.
    tell("name", Op::StreamName { stream: StreamId(0xa), name: "first \"try\"" });
    tell("name", Op::StreamName { stream: StreamId(0xa), name: "copies" });
    tell("cuMemsetD8Async", Op::Work { stream: StreamId(0xb), accesses });
    // The bytes of memory that is allocated anew are of the new one only.
    tell("cuMemFree_v2", Op::Host { accesses: &[Access::free(0x1000, 0x200)] });
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
        findings.last().and_then(Finding::report).map(|of| of.allocation.is_some())
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
        .tell("cuMemsetD8Async", Do::Work(1, vec![Access::write(0x2000, 4)]))
        .tell("cuEventRecord", Do::Record(7, 1))
        .tell("cuMemcpyHtoDAsync", write(1))
        .tell("cuStreamWaitEvent", Do::Wait(2, 7))
        .tell("cuMemcpyDtoHAsync", read(2));
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
        .tell("cuMemsetD8Async", write(1))
        .tell("read", Do::Host(vec![Access::read(0x1000, 64)]));
    let findings = program.findings();
    assert_eq!(
        line(&findings[0], "to mend"),
        "after call #1 (cuMemsetD8Async) and before call #2 (read): cuStreamSynchronize(copies)"
    );
    assert_eq!(line(&findings[0], "reads"), "read on thread main, call #2");

    let mut program = Program::new();
    program.tell("cuMemsetD8Async", write(1)).tell("cuMemcpyDtoH", read(9));
    assert_eq!(
        line(&program.findings()[0], "order"),
        "stream default is not after any call on stream copies; stream copies is non-blocking, so \
         the legacy default stream does not order it"
    );

    let nodes = [Access::write(0x1000, 64), Access::read(0x1020, 64)]
        .map(|access| Node { work: NodeWork::Work(vec![access]), after: Vec::new() });
    let mut program = Program::new();
    program
        .tell("cuGraphInstantiate", Do::Define(1, nodes.to_vec()))
        .tell("cuGraphLaunch", Do::Launch(2, 1));
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
    program.tell("cuMemFree", free).tell("cuMemsetD8Async", write(2));
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
    program.tell("spawn", Do::Start(2)).tell("store", Do::Host(vec![Access::write(0x1000, 64)]));
    program.checker.apply(Call::new("cuMemcpyHtoDAsync", 9, other), read(2).op());
    assert_eq!(
        line(&program.findings()[0], "to mend"),
        "synchronize thread main with thread 2, which makes call #9 (cuMemcpyHtoDAsync), after \
         call #2 (store) and before that call"
    );
}

#[test]
fn a_report_has_the_bytes_that_are_shared_and_no_more() {
    let mut program = Program::new();
    let pieces = (0..5).map(|piece| Access::write(0x1000 + piece * 32, 16)).collect();
    program
        .tell("scatter", Do::Work(1, pieces))
        .tell("cuMemcpyDtoHAsync", Do::Work(2, vec![Access::read(0x1008, 200)]));
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
        .tell("cuMemcpy2DAsync", copy(1, 0, 0x9000))
        .tell("cuMemcpy2DAsync", copy(2, 64, 0xA000));
    let findings = program.checker.take_findings();
    assert_eq!(findings.len(), 1);
    let column: Vec<_> = (0..8).map(|row| 0x1040 + row * 256).map(|at| at..at + 1).collect();
    assert_eq!(findings[0].report().unwrap().shared, column);
    let text = findings[0].to_string();
    assert_eq!(line(&text, "bytes"), "8 bytes in 8 ranges within 0x1040 to 0x1740");
    // The same of what the host touches.
    let mut program = Program::new();
    program
        .tell("cuMemcpy2DAsync", copy(1, 0, 0x9000))
        .tell("read", Do::Host(rows(Access::read, 64).collect()));
    let findings = program.checker.take_findings();
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].report().unwrap().shared, column);
}

#[test]
fn one_byte_is_a_byte() {
    let byte = |stream, access: fn(u64, u64) -> Access| Do::Work(stream, vec![access(0x1000, 1)]);
    let mut program = Program::new();
    program.tell("set", byte(1, Access::write)).tell("get", byte(2, Access::read));
    let findings = program.findings();
    assert!(findings[0].contains("\n  bytes    0x1000, 1 byte\n"), "{}", findings[0]);
    let mut program = Program::new();
    let free = Do::Host(vec![Access::free(0x1000, 1)]);
    program.tell("cuMemFree", free).tell("set", byte(1, Access::write));
    let findings = program.findings();
    assert!(findings[0].contains("\n  bytes    0x1000, 1 byte\n"), "{}", findings[0]);
}

/// The first call's stream is held back, so that the checker comes to the second call first. An
/// event of a later call could not be waited for by an earlier one.
#[test]
fn the_missing_order_follows_the_calls() {
    let held = |order, by: [u64; 2]| {
        let mut program = Program::with(Options::new().host_order(order));
        program.tell("cuLaunchHostFunc", Do::Function(1, Some(5), Vec::new()));
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
    let head = format!("worker.c:12 overwrites what {}:{} writes", here.file(), here.line());
    assert!(text.contains(&head), "{text}");
    let at = format!("at {}:{}, called by fill, main\n", here.file(), here.line());
    assert!(text.contains(&at) && text.contains("at worker.c:12\n"), "{text}");
}

#[test]
fn each_pair_of_places_is_reported_once() {
    let mut program = Program::new();
    for _ in 0..50 {
        program.tell("cuMemcpyHtoDAsync", write(1)).tell("cuMemcpyDtoHAsync", read(2));
    }
    assert_eq!(program.findings().len(), 1);
    // Other calls, or the same ones in other streams, are other places.
    program.tell("cuMemsetD8Async", write(2));
    assert_eq!(program.findings().len(), 1);
    program.tell("cuMemcpyDtoHAsync", read(3));
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

/// As many pairs of places are kept as documented, of warnings as well.
#[test]
fn warnings_are_bounded() {
    let mut checker = Checker::new(Options::new().warnings(Warnings::all()));
    let wait = |checker: &mut Checker, line| {
        let file = Cow::Borrowed("a.rs");
        let at = cuda_order_check_engine::Location { file, line, column: 1 };
        let wait = Op::Wait { stream: StreamId(1), event: EventId(1), external: false };
        checker.apply(Call::new("wait", 1, ThreadId(1)).at(at), wait);
    };
    (0..(1 << 16) + 8).for_each(|line| wait(&mut checker, line));
    assert_eq!(checker.take_findings().len(), 1 << 16);
}

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

/// A record that replaces an earlier one in the same stream covers it. Only a wait of the host, of a
/// third thread, may mean the earlier one.
#[test]
fn a_record_that_is_covered_is_lost_to_a_thread_that_waits() {
    for (threads, waits, found) in [
        ([1, 1, 2], Do::Sync(What::Event(EventId(1))), 1),
        ([1, 2, 3], Do::Sync(What::Event(EventId(1))), 1),
        ([1, 2, 1], Do::Sync(What::Event(EventId(1))), 0),
        ([1, 2, 2], Do::Sync(What::Event(EventId(1))), 0),
        ([1, 1, 3], Do::Wait(2, 1), 0),
        ([1, 2, 3], Do::Wait(2, 1), 0),
    ] {
        let mut warnings = Warnings::default();
        warnings.lost_record = true;
        let mut checker = Checker::new(Options::new().warnings(warnings));
        let mut tell = |number, thread, does: Do| {
            checker.apply(Call::new("call", number, ThreadId(thread)), does.op());
        };
        tell(1, threads[0], write(1));
        tell(2, threads[0], Do::Record(1, 1));
        tell(3, threads[1], write(1));
        tell(4, threads[1], Do::Record(1, 1));
        tell(5, threads[2], waits);
        assert_eq!(checker.take_findings().len(), found, "{threads:?}");
    }
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
        (0..3).for_each(|_| _ = program.tell(one, write(1)).tell(two, write(stream)));
        let number = program.findings().len();
        // The next pair meets no call of this one.
        program.tell("cuStreamSynchronize", Do::Sync(What::Stream(StreamId(1))));
        program.tell("cuStreamSynchronize", Do::Sync(What::Stream(StreamId(stream))));
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

#[test]
fn a_report_names_unmodelled_calls_that_may_order_it() {
    let mut program = Program::new();
    program
        .tell("cuIpcOpenEventHandle", Do::Event(7, true))
        .tell("cuMemsetD8Async", write(1))
        .tell("cuStreamWaitEvent", Do::Wait(2, 7))
        .tell("cuMemcpyDtoHAsync", read(2));
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
        .tell("cuIpcOpenEventHandle", Do::Event(7, true))
        .tell("cuStreamWaitEvent", Do::Wait(2, 7))
        .tell("cuStreamDestroy", Do::Destroy(2))
        .tell("cuStreamCreate", Do::Create(2, 0, StreamKind::NonBlocking))
        .tell("cuMemsetD8Async", write(1))
        .tell("cuMemcpyDtoHAsync", read(2));
    let order = line(&program.findings()[0], "order");
    assert_eq!(order, "stream 0x2 is not after any call on stream copies");

    let mut program = Program::with(Options::new().retire_every(1));
    program
        .tell("cuMemsetD8Async", write(1))
        .tell("cuStreamSynchronize", Do::Sync(What::Stream(StreamId(1))))
        .tell("cuStreamDestroy", Do::Destroy(1));
    let before = program.checker.size().agents;
    for _ in 0..64 {
        program.tell("cuLaunchKernel", Do::Work(2, Vec::new()));
    }
    program.tell("cuStreamCreate", Do::Create(3, 0, StreamKind::NonBlocking));
    assert_eq!(program.checker.size().agents, before, "the place comes back");
    program.tell("cuMemsetD8Async", write(3)).tell("cuMemcpyDtoHAsync", read(2));
    let order = line(&program.findings()[0], "order");
    assert_eq!(order, "stream work is not after any call on stream 0x3");
}

#[test]
fn work_that_was_waited_for_is_over_whatever_it_waited_for() {
    // Another process writes the value: nobody tells that here.
    let cell = Cell { address: 0x3000, bytes: 4 };
    let mut program = Program::new();
    program
        .tell("cuStreamWaitValue32", Do::WaitValue(2, cell, 1, Compare::GreaterOrEqual))
        .tell("cuMemsetD8Async", write(2));
    assert_eq!(program.checker.size().tasks, 2);
    program
        .tell("cuStreamSynchronize", Do::Sync(What::Stream(StreamId(2))))
        .tell("read", Do::Host(vec![Access::read(0x1000, 64)]));
    assert_eq!(program.checker.size().tasks, 0);
    assert!(program.findings().is_empty());
    program.tell("cuMemsetD8Async", write(1)).tell("cuMemcpyDtoHAsync", read(2));
    assert!(
        line(&program.findings()[0], "order")
            .ends_with("in call #1 (cuStreamWaitValue32) for a value that no known write set")
    );

    // A value that a copy may have written is not a missing order.
    let mut program = Program::new();
    program
        .tell("cuStreamWaitValue32", Do::WaitValue(2, cell, 1, Compare::GreaterOrEqual))
        .tell("cuMemcpyDtoHAsync", read(2))
        .tell("cuMemcpyHtoDAsync", write(1))
        .tell("cuMemcpyHtoDAsync", Do::Work(1, vec![Access::write(cell.address, 4)]))
        .tell("cuStreamSynchronize", Do::Sync(What::Stream(StreamId(2))));
    let findings = program.findings();
    assert!(findings.iter().all(|text| line(text, "bytes:") != "0x1000..0x1040"), "{findings:?}");

    // A host function whose end nobody tells.
    let mut program = Program::new();
    program.tell("cuLaunchHostFunc", Do::Function(1, Some(5), vec![Access::write(0x1000, 64)]));
    program
        .tell("cuStreamSynchronize", Do::Sync(What::Stream(StreamId(1))))
        .tell("read", Do::Host(vec![Access::read(0x1000, 64)]));
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
fn a_host_function_is_named_as_such() {
    let mut program = Program::new();
    program
        .tell("cuLaunchHostFunc", Do::Function(1, Some(5), vec![Access::write(0x1000, 64)]))
        .tell("cuMemcpyDtoHAsync", read(2));
    let text = &program.findings()[0];
    assert_eq!(
        line(text, "writes"),
        "cuLaunchHostFunc in a host function in stream `copies`, call #1"
    );
    let mends = "after call #1 (cuLaunchHostFunc): cuEventRecord(event, copies); before ";
    assert!(line(text, "to mend").starts_with(mends), "{text}");
}

#[test]
fn a_mark_is_what_a_call_waits_for_and_not_what_comes_meanwhile() {
    let mut program = Program::new();
    program.tell("cuMemsetD8Async", write(1));
    let mark = program.checker.mark(What::Stream(StreamId(1)));
    // Another thread submits while the first one waits.
    program.tell("cuMemsetD8Async", Do::Work(1, vec![Access::write(0x2000, 64)]));
    program.checker.reached(&Call::new("cuStreamSynchronize", 3, ThreadId(1)), &mark);
    program.tell("read", Do::Host(vec![Access::read(0x1000, 64)]));
    assert!(program.findings().is_empty());
    program.tell("read", Do::Host(vec![Access::read(0x2000, 64)]));
    assert_eq!(program.findings().len(), 1);
}

/// A program that is wrong in each way that there is a warning for.
fn doubtful(warnings: Warnings) -> Vec<String> {
    let mut program = Program::with(Options::new().warnings(warnings));
    program
        .tell("never", Do::Wait(2, 1))
        .tell("work", write(1))
        .tell("lost", Do::Record(2, 1))
        .tell("work", Do::Work(2, vec![Access::write(0x2000, 64)]))
        .tell("again", Do::Record(2, 2))
        .tell("late", Do::Wait(3, 2))
        .tell("useless", Do::Wait(2, 2))
        .tell("query", Do::Query(What::Stream(StreamId(1)), false))
        .tell("capture", Do::Capture(2))
        .tell("captured", Do::Record(4, 2))
        .tell("captured", Do::EndCapture(2, 1))
        .tell("leak", Do::Wait(3, 4))
        .tell("read", Do::Host(vec![Access::read(0x1000, 64)]));
    let warning =
        |finding: &Finding| matches!(finding, Finding::Warning(_)).then(|| finding.to_string());
    program.checker.take_findings().iter().filter_map(warning).collect()
}

#[test]
fn each_warning_has_its_switch_and_its_sentence() {
    assert!(doubtful(Warnings::default()).is_empty());
    let never = "warning: call #1 (never) waits for nothing: event 0x1 was never recorded";
    let lost = "warning: call #6 (late) does not wait for the work before call #3 (lost): call #5 \
                (again) recorded event 0x2 again while that work was pending and before anything \
                had waited for it";
    let useless = "warning: call #7 (useless) adds no order: its stream is already after the work \
                   that event 0x2 recorded";
    let leak = "warning: call #12 (leak) leaves a capture: event 0x4 has work in a graph only, and \
        orders nothing outside it";
    let query =
        "warning: call #13 (read) touches the result of work that was not done at call #8 (query)";
    assert_eq!(doubtful(Warnings::all()), [never, lost, useless, leak, query]);
    let only = |enable: fn(&mut Warnings)| {
        let mut warnings = Warnings::NONE;
        enable(&mut warnings);
        doubtful(warnings)
    };
    assert_eq!(only(|warnings| warnings.never_recorded = true), [never]);
    assert_eq!(only(|warnings| warnings.lost_record = true), [lost]);
    assert_eq!(only(|warnings| warnings.useless_wait = true), [useless]);
    assert_eq!(only(|warnings| warnings.capture_leak = true), [leak]);
    assert_eq!(only(|warnings| warnings.ignored_query = true), [query]);
}

#[test]
fn a_copied_graph_has_the_nodes_of_the_original() {
    let node = |access| Node { work: NodeWork::Work(vec![access]), after: Vec::new() };
    let mut program = Program::new();
    program
        .tell("cuGraphAddMemsetNode", Do::Define(1, vec![node(Access::write(0x1000, 64))]))
        .tell("cuGraphInstantiate", Do::Copy(1, 2))
        .tell(
            "cuGraphExecMemsetNodeSetParams",
            Do::Define(1, vec![node(Access::write(0x2000, 64))]),
        );
    let destroy = Op::GraphDestroy { graph: GraphId(1) };
    program.checker.apply(Call::new("cuGraphDestroy", 4, ThreadId(1)), destroy);
    program
        .tell("cuGraphLaunch", Do::Launch(1, 2))
        .tell("read", Do::Work(2, vec![Access::read(0x1000, 0x2000)]));
    let findings = program.checker.take_findings();
    assert_eq!(findings[0].report().unwrap().shared.first(), Some(&(0x1000..0x1040)));
    // An event is a number like others.
    program.tell("cuEventSynchronize", Do::Sync(What::Event(EventId(u64::MAX))));
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
    program.tell("write", write(1)).tell("record", Do::Record(1, 1));
    let join = Op::Join { stream: StreamId(2), event: EventId(1) };
    event(&mut program, join.clone());
    event(&mut program, join);
    program.tell("read", read(2));
    // The first record was waited for, so that it is not lost.
    program.tell("write", Do::Work(3, vec![Access::write(0x2000, 64)]));
    program.tell("record", Do::Record(1, 3)).tell("wait", Do::Wait(1, 1));
    assert_eq!(program.findings(), [""; 0]);

    // Nor is one that another thread has asked about.
    for (asked, lost) in [(true, 0), (false, 1)] {
        let (host_order, warnings) = (HostOrder::Reported, Warnings::all());
        let mut program = Program::with(Options::new().host_order(host_order).warnings(warnings));
        program.tell("start", Do::Start(2)).tell("write", write(1));
        program.tell("record", Do::Record(1, 1));
        if asked {
            let query = Op::Query { what: What::Event(EventId(1)), done: true };
            program.checker.apply(Call::new("query", 9, ThreadId(2)), query);
        }
        program.tell("record", Do::Record(1, 3)).tell("wait", Do::Wait(4, 1));
        let findings = program.findings();
        let lost_ones =
            findings.iter().filter(|findings| findings.contains("does not wait for the work"));
        assert_eq!(lost_ones.count(), lost, "{findings:?}");
    }

    let mut program = Program::new();
    program.tell("write", write(2)).tell("wait", Do::Wait(9, 7)).tell("read", read(1));
    assert_eq!(program.findings().len(), 1);
    // Another process may have recorded this one, so that the wait is an operation.
    for (interprocess, reports) in [(false, 1), (true, 0)] {
        let mut program = Program::new();
        program.tell("create", Do::Create(3, 0, StreamKind::Blocking));
        program.tell("create", Do::Event(7, interprocess));
        program.tell("write", write(2)).tell("wait", Do::Wait(9, 7)).tell("read", read(3));
        assert_eq!(program.findings().len(), reports);
    }
}

/// A call that waits for long is warned about as one that is reported at its end.
#[test]
fn a_wait_that_begins_is_warned_about() {
    let mut program = Program::with(Options::new().warnings(Warnings::all()));
    program.tell("create", Do::Event(1, false));
    let wait = Call::new("wait", 7, ThreadId(1));
    let mark = program.checker.begin_wait(wait.clone(), What::Event(EventId(1)));
    program.checker.reached(&wait, &mark);
    assert_eq!(
        program.findings(),
        ["warning: call #7 (wait) waits for nothing: event 0x1 was never recorded"]
    );
    // It has waited for the first record, which is therefore not lost.
    program.tell("write", write(1)).tell("record", Do::Record(1, 1));
    program.checker.begin_wait(wait, What::Event(EventId(1)));
    program.tell("record", Do::Record(1, 1)).tell("wait", Do::Wait(2, 1));
    assert_eq!(program.findings(), [""; 0]);
}

/// Where a driver refuses what leaves a capture, it says so.
#[test]
fn a_refused_use_of_captured_work_is_a_warning() {
    for (warnings, expected) in [(Warnings::default(), 0), (Warnings::all(), 2)] {
        let mut program = Program::with(Options::new().warnings(warnings));
        for what in [What::Event(EventId(1)), What::Stream(StreamId(1))] {
            let call = Call::new("cuStreamEndCapture", 3, ThreadId(1));
            program.checker.apply(call, Op::CaptureLeft { what });
        }
        let findings = program.findings();
        assert_eq!(findings.len(), expected);
        if let [event, stream] = &findings[..] {
            assert!(event.contains("leaves a capture: event 0x1 has work in a graph only"));
            assert!(stream.contains("leaves a capture: stream copies has work"), "{stream}");
        }
    }
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
