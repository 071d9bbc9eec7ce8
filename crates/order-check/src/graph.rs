//! Graphs, and the captures that make them.

use std::collections::HashMap;

use crate::op::{Node, NodeWork, StreamId};

/// The nodes of `graph`, with those of another graph behind `after`. Returns the nodes of that
/// graph that nothing in it waits for.
pub(crate) fn append(graph: &mut Vec<Node>, child: &[Node], after: &[usize]) -> Vec<usize> {
    if child.is_empty() {
        graph.push(Node { work: NodeWork::Work(Vec::new()), after: after.to_vec() });
        return vec![graph.len() - 1];
    }
    let first = graph.len();
    let mut last: Vec<bool> = vec![true; child.len()];
    for node in child {
        for &earlier in &node.after {
            if let Some(last) = last.get_mut(earlier) {
                *last = false;
            }
        }
        let after = if node.after.is_empty() {
            after.to_vec()
        } else {
            node.after.iter().map(|earlier| first + earlier).collect()
        };
        graph.push(Node { work: node.work.clone(), after });
    }
    (first..).zip(last).filter(|node| node.1).map(|node| node.0).collect()
}

#[derive(Debug)]
pub(crate) struct Capture {
    pub(crate) origin: StreamId,
    pub(crate) nodes: Vec<Node>,
    /// For each stream in it, the nodes that its next one waits for.
    pub(crate) fronts: HashMap<StreamId, Vec<usize>>,
}

impl Capture {
    pub(crate) fn push(&mut self, stream: StreamId, work: NodeWork) {
        let front = self.fronts.entry(stream).or_default();
        self.nodes.push(Node { work, after: std::mem::take(front) });
        front.push(self.nodes.len() - 1);
    }

    pub(crate) fn join(&mut self, stream: StreamId, nodes: &[usize]) {
        let front = self.fronts.entry(stream).or_default();
        for node in nodes {
            if !front.contains(node) {
                front.push(*node);
            }
        }
    }

    /// The streams with work that the origin's next node would not wait for.
    pub(crate) fn unjoined(&self) -> Vec<StreamId> {
        let mut joined = vec![false; self.nodes.len()];
        let mut open: Vec<usize> = self.fronts.get(&self.origin).cloned().unwrap_or_default();
        while let Some(node) = open.pop() {
            if let Some(seen @ false) = joined.get_mut(node) {
                *seen = true;
                open.extend(self.nodes.get(node).iter().flat_map(|node| &node.after));
            }
        }
        let out = |front: &Vec<usize>| front.iter().any(|&node| joined.get(node) == Some(&false));
        let mut streams: Vec<_> =
            self.fronts.iter().filter(|entry| out(entry.1)).map(|entry| *entry.0).collect();
        streams.sort_unstable();
        streams
    }
}
