//! What the host is after, if it has seen a part of a launch.

use cuda_order_check_engine::{
    Access, Call, Checker, GraphId, Node, NodeWork, Op, StreamId, ThreadId,
};

/// A launch of three nodes in a row, of which the host has seen the end of one.
fn finds(seen: usize, reads: u64) -> usize {
    let mut checker = Checker::default();
    let call = |number| Call::new("call", number, ThreadId(1));
    let node = |index: usize| Node {
        work: NodeWork::Work(vec![Access::write(0x1000 * index as u64, 64)]),
        after: (0..index).rev().take(1).collect(),
    };
    let nodes = [node(0), node(1), node(2)];
    let (graph, stream) = (GraphId(1), StreamId(1));
    checker.apply(call(1), Op::GraphDefine { graph, nodes: &nodes });
    checker.apply(call(2), Op::Launch { stream, graph, functions: &[] });
    let ends = checker.launched();
    assert_eq!((ends.len(), checker.launched().len()), (3, 0));
    checker.reached(&call(3), &ends[seen]);
    checker.apply(call(4), Op::Host { accesses: &[Access::read(reads, 64)] });
    checker.take_findings().len()
}

#[test]
fn the_end_of_a_node_is_after_the_nodes_before_it() {
    let found = [0, 1, 2].map(|seen| [0, 0x1000, 0x2000].map(|reads| finds(seen, reads)));
    assert_eq!(found, [[0, 1, 1], [0, 0, 1], [0, 0, 0]]);
}
