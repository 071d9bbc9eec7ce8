//! Graphs and their launches.

use std::borrow::Cow;
use std::sync::Arc;

use crate::agent::{Agent, Part, StreamName, Who};
use crate::checker::accesses::is_stream;
use crate::checker::events::Events;
use crate::clock::{Clock, Slot};
use crate::graph::append;
use crate::map::Map;
use crate::op::{AccessKind, Call, FunctionId, GraphId, Node, NodeWork, StreamId};
use crate::task::{Action, Actor, Mark, Point};

#[derive(Debug, Default)]
pub(super) struct Graphs {
    graphs: Map<GraphId, Arc<[Node]>>,
    /// The ends of the nodes of the last launch.
    launched: Vec<Point>,
}

/// A stream and the branches of a graph in it. A branch goes on where a node waits for its last one.
struct Branches {
    stream: StreamId,
    name: Arc<StreamName>,
    /// Each with its last node. The first branch is the stream itself.
    all: Vec<(Slot, Option<usize>)>,
}

impl Branches {
    fn next(&mut self, events: &mut Events, index: usize, after: &[usize]) -> Slot {
        let goes_on = |last: &Option<usize>| last.is_none_or(|last| after.contains(&last));
        if let Some((slot, last)) = self.all.iter_mut().find(|(_, last)| goes_on(last)) {
            *last = Some(index);
            return *slot;
        }
        let slot = events.streams.branch(self.stream, self.all.len() - 1);
        self.all.push((slot, Some(index)));
        slot
    }

    /// Submits a node. Returns its end.
    fn submit(
        &mut self,
        events: &mut Events,
        call: &Arc<Call>,
        (index, node): (usize, &Node),
        mut after: Vec<Point>,
        functions: &mut std::slice::Iter<'_, FunctionId>,
    ) -> Point {
        let slot = self.next(events, index, &node.after);
        let mut function = None;
        let action = match &node.work {
            NodeWork::Work(accesses) => Action::Work(Cow::Borrowed(accesses)),
            NodeWork::Function(accesses) => {
                function = functions.next();
                match function {
                    Some(_) => Action::Function(Cow::Borrowed(accesses)),
                    None => Action::Work(Cow::Borrowed(accesses)),
                }
            }
            NodeWork::WriteValue(cell, value) => Action::WriteValue(*cell, *value),
            NodeWork::WaitValue(cell, value, compare) => Action::WaitValue(*cell, *value, *compare),
            NodeWork::Wait(event) => {
                after.extend(events.recorded(call, *event, Some(self.stream)));
                Action::Nothing
            }
            NodeWork::Record(_) | NodeWork::Child(_) => Action::Nothing,
        };
        let agent = Agent(Who::Stream(self.name.clone(), Part::Node(index)));
        let actor = Actor { agent, slot, call: call.clone() };
        let point = events.streams.tasks.submit(actor, action, Clock::default(), after);
        if let NodeWork::Record(event) = node.work {
            events.set_record(call, event, point.clone());
        }
        if let Some(&function) = function {
            events.streams.tasks.queue.is_function(function, &point);
        }
        point
    }
}

impl Graphs {
    pub(super) fn nodes(&self, graph: GraphId) -> Option<&Arc<[Node]>> {
        self.graphs.get(&graph)
    }

    pub(super) fn insert(&mut self, graph: GraphId, nodes: Vec<Node>) {
        self.graphs.insert(graph, nodes.into());
    }

    pub(super) fn launched(&mut self) -> Vec<Mark> {
        std::mem::take(&mut self.launched).into_iter().map(|point| Mark(vec![point])).collect()
    }

    /// The nodes, with those of child graphs in the places of these.
    fn flatten(&self, nodes: &[Node]) -> Vec<Node> {
        let mut flat = Vec::with_capacity(nodes.len());
        // The last nodes of each.
        let mut ends: Vec<Vec<usize>> = Vec::with_capacity(nodes.len());
        for node in nodes {
            let after: Vec<usize> =
                node.after.iter().filter_map(|&node| ends.get(node)).flatten().copied().collect();
            let end = match &node.work {
                NodeWork::Child(graph) => {
                    let child = self.nodes(*graph).cloned().unwrap_or_default();
                    append(&mut flat, &child, &after)
                }
                work => {
                    flat.push(Node { work: work.clone(), after });
                    vec![flat.len() - 1]
                }
            };
            ends.push(end);
        }
        flat
    }
}

/// One method for each operation of graphs.
impl Graphs {
    pub(super) fn graph_define(&mut self, graph: GraphId, nodes: &[Node]) {
        self.insert(graph, self.flatten(nodes));
    }

    pub(super) fn graph_copy(&mut self, from: GraphId, to: GraphId) {
        if let Some(nodes) = self.graphs.get(&from).cloned() {
            self.graphs.insert(to, nodes);
        }
    }

    pub(super) fn graph_destroy(&mut self, graph: GraphId) {
        self.graphs.remove(&graph);
    }

    pub(super) fn launch(
        &mut self,
        events: &mut Events,
        call: &Arc<Call>,
        stream: StreamId,
        graph: GraphId,
        functions: &[FunctionId],
    ) {
        events.streams.tasks.accesses.object(call, is_stream(stream), AccessKind::Read);
        events.streams.ensure(stream);
        self.launched.clear();
        let nodes = self.graphs.get(&graph).cloned().unwrap_or_default();
        if let Some((_, capture)) = events.streams.capture_mut(stream) {
            let front = capture.fronts.entry(stream).or_default();
            *front = append(&mut capture.nodes, &nodes, front);
            return;
        }
        events.streams.in_stream(call, stream, Action::Nothing, Vec::new());
        let start = events.streams.tail(stream);
        let Some((name, slot)) = events.streams.agent(stream) else { return };
        let mut branches = Branches { stream, name, all: vec![(slot, None)] };
        let mut functions = functions.iter();
        let mut points: Vec<Point> = Vec::with_capacity(nodes.len());
        for (index, node) in nodes.iter().enumerate() {
            let mut after: Vec<Point> =
                node.after.iter().filter_map(|&node| points.get(node).cloned()).collect();
            if after.is_empty() {
                after.push(start.clone());
            }
            points.push(branches.submit(events, call, (index, node), after, &mut functions));
        }
        self.launched.clone_from(&points);
        points.push(start);
        events.streams.join_in(call, stream, points);
    }
}
