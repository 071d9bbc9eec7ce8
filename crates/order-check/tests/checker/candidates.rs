//! Launches of which only candidates for accesses are known.

use std::ops::Range;
use std::sync::Arc;

use cuda_order_check_engine::findings::{Findings, Suppression};
use cuda_order_check_engine::{
    Access, Call, Checker, EventId, Finding, GraphId, Launch, Launched, Node, NodeWork, Op, Other,
    Report, StreamId, ThreadId,
};

const BASE: u64 = 0x7000;

/// A launch with a number, of which it may be known that it accesses nothing.
#[derive(Debug)]
struct Kernel {
    number: u64,
    apart: bool,
}

impl Launch for Kernel {
    fn number(&self) -> u64 {
        self.number
    }

    fn kernel(&self) -> Option<String> {
        Some(format!("kernel_{}", self.number))
    }

    fn is_apart(&self, shared: &[Range<u64>], other: &Other<'_>) -> bool {
        assert_eq!(shared.first().map(|bytes| bytes.start), Some(BASE));
        // The other side is known as a whole.
        if other.launch.is_none() {
            assert_eq!(other.accesses, [Access::new(other.kind, BASE, 256)]);
        }
        self.apart
    }
}

#[derive(Default)]
struct Run {
    checker: Checker,
    calls: u64,
}

impl Run {
    fn work(&mut self, stream: u64, name: &'static str, access: Access) -> Vec<Report> {
        self.calls += 1;
        let call = Call::new(name, self.calls, ThreadId(1));
        self.checker.apply(call, Op::Work { stream: StreamId(stream), accesses: &[access] });
        let all = self.checker.take_findings().into_iter();
        all.filter_map(|finding| match finding {
            Finding::Report(report) => Some(report),
            _ => None,
        })
        .collect()
    }

    fn launch(&mut self, stream: u64, number: u64, apart: bool) -> Vec<Report> {
        let launch = Launched::new(Arc::new(Kernel { number, apart }));
        self.work(stream, "cuLaunchKernel", Access::read(BASE, 1).of_launch(launch))
    }

    fn copy(&mut self, stream: u64) -> Vec<Report> {
        self.work(stream, "cuMemcpyHtoDAsync", Access::write(BASE, 256))
    }

    fn read(&mut self, stream: u64) -> Vec<Report> {
        self.work(stream, "cuMemcpyDtoHAsync", Access::read(BASE, 256))
    }
}

/// The numbers of the launches that the reports are about.
fn numbers(reports: &[Report]) -> Vec<u64> {
    let sides = reports.iter().flat_map(|report| [&report.first, &report.second]);
    let launches = sides.filter_map(|side| side.launch());
    launches.filter_map(|launch| Some(launch.get::<Kernel>()?.number)).collect()
}

#[test]
fn a_launch_stands_for_no_other_one() {
    let mut run = Run::default();
    for number in [1, 2, 2, 3, 2] {
        assert_eq!(run.launch(1, number, number == 3), []);
    }
    let found = run.copy(2);
    assert_eq!(numbers(&found), [1, 2], "once each, and not the one that is apart");
    let other = &found[0].second;
    assert_eq!((other.accesses(), other.launch()), (&[Access::write(BASE, 256)][..], None));
    assert!(found[0].first.accesses().is_empty());
}

/// What an exact access is in conflict with is not forgotten because of a launch after it.
#[test]
fn a_launch_stands_for_no_copy() {
    let mut run = Run::default();
    run.read(1);
    run.launch(1, 1, true);
    let found = run.copy(2);
    assert_eq!((found.len(), numbers(&found).len()), (1, 0));
    let shared = found[0].shared.iter().map(|bytes| (bytes.start, bytes.end));
    assert_eq!(Vec::from_iter(shared), [(BASE, BASE + 256)], "the launch's byte as well");
    // A copy does stand for what was before it.
    let mut run = Run::default();
    run.launch(1, 1, false);
    run.copy(1);
    let found = run.copy(2);
    assert_eq!((found.len(), numbers(&found).len()), (1, 0));
}

#[test]
fn candidates_come_until_one_is_confirmed() {
    let mut run = Run::default();
    let event = EventId(5);
    for round in 0..4 {
        run.launch(1, round, false);
        let found = run.copy(2);
        assert_eq!(numbers(&found), if round < 3 { vec![round] } else { Vec::new() }, "{round}");
        if round == 2 {
            assert!(run.checker.confirm(&found[0]) && !run.checker.confirm(&found[0]));
        }
        // The next round is after this one.
        let call = |number| Call::new("order", number, ThreadId(1));
        for stream in [2, 1] {
            let (stream, other) = (StreamId(stream), StreamId(3 - stream));
            run.checker.apply(call(run.calls), Op::Record { event, stream, external: false });
            let wait = Op::Wait { stream: other, event, external: false };
            run.checker.apply(call(run.calls), wait);
        }
    }
}

/// The call of a graph does not say which kernels it has.
#[test]
fn a_kernel_in_a_graph_is_named() {
    let mut checker = Checker::default();
    let node = |number| {
        let launch = Launched::new(Arc::new(Kernel { number, apart: false }));
        let access = Access::write(BASE, 1).of_launch(launch);
        Node { work: NodeWork::Work(vec![access]), after: Vec::new() }
    };
    let (graph, nodes) = (GraphId(1), [node(7), node(8)]);
    let call = |name, number| Call::new(name, number, ThreadId(1));
    checker.apply(call("cuGraphInstantiate", 1), Op::GraphDefine { graph, nodes: &nodes });
    checker
        .apply(call("cuGraphLaunch", 2), Op::Launch { stream: StreamId(1), graph, functions: &[] });
    let found = checker.take_findings();
    let text = found[0].to_string();
    for (index, kernel) in [(0, "kernel_7"), (1, "kernel_8")] {
        let side = format!("cuGraphLaunch in node {index} of a graph (kernel {kernel}) in stream");
        assert!(text.contains(&side), "{text}");
        for (pattern, covers) in [(kernel, true), ("cuGraphLaunch", false)] {
            let suppressed = Suppression::from_text(&format!("kernel:{pattern}"));
            let mut findings = Findings::new(Vec::new(), suppressed.into_iter().collect());
            assert_eq!(findings.add_with(found[0].clone(), "race", None), !covers, "{pattern}");
        }
    }
}

/// Of two launches either one may know that they need no order.
#[test]
fn either_launch_may_know_that_it_is_apart() {
    for apart in [[false, false], [true, false], [false, true], [true, true]] {
        let mut run = Run::default();
        let found = [1, 2].map(|stream| {
            let apart = apart[stream as usize - 1];
            let launch = Launched::new(Arc::new(Kernel { number: stream, apart }));
            run.work(stream, "cuLaunchKernel", Access::write(BASE, 1).of_launch(launch)).len()
        });
        assert_eq!(found, [0, usize::from(apart == [false; 2])], "{apart:?}");
    }
}

/// Of the launches before a launch so many are kept, the last ones.
#[test]
fn the_last_launches_are_kept() {
    let mut run = Run::default();
    for number in 0..100 {
        run.launch(1, number, false);
    }
    assert_eq!(numbers(&run.copy(2)), Vec::from_iter(92..100));
}
