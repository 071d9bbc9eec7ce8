//! Captures, graphs and their launches.

use std::borrow::Cow;
use std::sync::Arc;

use crate::checker::{Checker, is_stream};
use crate::clock::{Clock, Slot};
use crate::graph::append;
use crate::op::{AccessKind, Call, FunctionId, GraphId, Node, NodeWork, StreamId, What};
use crate::report::{Agent, Part, Warning, Who};
use crate::task::{Action, Job, Point};

impl Checker {
    pub(super) fn end_capture(
        &mut self,
        call: &Arc<Call>,
        stream: StreamId,
        graph: Option<GraphId>,
    ) {
        let Some(id) = self.streams.get(&stream).and_then(|of| of.capture) else { return };
        let Some(capture) = self.captures.remove(&id) else { return };
        for of in self.streams.values_mut() {
            if of.capture == Some(id) {
                of.capture = None;
            }
        }
        if self.options.warnings.capture_leak {
            for stream in capture.unjoined() {
                self.left_a_capture(call, What::Stream(stream));
            }
        }
        if let Some(graph) = graph {
            self.graphs.insert(graph, capture.nodes.into());
        }
    }

    /// Something has work in a graph only, and is used or left outside it.
    pub(super) fn left_a_capture(&mut self, call: &Arc<Call>, what: What) {
        if !self.options.warnings.capture_leak {
            return;
        }
        let what = match what {
            What::Event(event) => format!("event {}", self.event_name(event)),
            What::Stream(stream) => format!("stream {}", self.stream_name(stream)),
            What::Context(context) => format!("context {:#x}", context.0),
        };
        self.warn(call, call, Warning::CaptureLeak { call: call.clone(), what });
    }

    /// Nodes without children.
    pub(super) fn flatten(&self, nodes: &[Node]) -> Vec<Node> {
        let mut flat = Vec::with_capacity(nodes.len());
        // The last nodes of each.
        let mut ends: Vec<Vec<usize>> = Vec::with_capacity(nodes.len());
        for node in nodes {
            let after: Vec<usize> =
                node.after.iter().filter_map(|&node| ends.get(node)).flatten().copied().collect();
            let end = match &node.work {
                NodeWork::Child(graph) => {
                    let child = self.graphs.get(graph).cloned().unwrap_or_default();
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

    pub(super) fn launch(
        &mut self,
        call: &Arc<Call>,
        stream: StreamId,
        graph: GraphId,
        functions: &[FunctionId],
    ) {
        let mut functions = functions.iter();
        self.object(call, is_stream(stream), AccessKind::Read);
        self.stream(stream);
        self.launched.clear();
        let nodes = self.graphs.get(&graph).cloned().unwrap_or_default();
        let captured = self.streams.get(&stream).and_then(|of| of.capture);
        if let Some(capture) = captured.and_then(|id| self.captures.get_mut(&id)) {
            let front = capture.fronts.entry(stream).or_default();
            *front = append(&mut capture.nodes, &nodes, front);
            return;
        }
        self.in_stream(call, stream, Action::Nothing, Vec::new());
        let start = self.tail(stream);
        let Some(of) = self.streams.get(&stream) else { return };
        let (name, slot) = (of.name.clone(), of.slot);
        // A branch goes on where a node waits for its last one. The first branch is the stream
        // itself.
        let mut branches: Vec<(Slot, Option<usize>)> = vec![(slot, None)];
        let mut points: Vec<Point> = Vec::with_capacity(nodes.len());
        for (index, node) in nodes.iter().enumerate() {
            let mut after: Vec<Point> =
                node.after.iter().filter_map(|&node| points.get(node).cloned()).collect();
            if after.is_empty() {
                after.push(start.clone());
            }
            let goes_on = |last: &Option<usize>| last.is_none_or(|last| node.after.contains(&last));
            let branch = match branches.iter().position(|(_, last)| goes_on(last)) {
                Some(branch) => branch,
                None => {
                    branches.push((self.branch(stream, branches.len() - 1), None));
                    branches.len() - 1
                }
            };
            let Some(branch) = branches.get_mut(branch) else { continue };
            branch.1 = Some(index);
            let slot = branch.0;
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
                NodeWork::WaitValue(cell, value, compare) => {
                    Action::WaitValue(*cell, *value, *compare)
                }
                NodeWork::Wait(event) => {
                    after.extend(self.recorded(call, *event, Some(stream)));
                    Action::Nothing
                }
                NodeWork::Record(_) | NodeWork::Child(_) => Action::Nothing,
            };
            let agent = Agent(Who::Stream(name.clone(), Part::Node(index)));
            let point = self.submit(
                Job { agent, slot, action, call: call.clone() },
                Clock::default(),
                after,
            );
            if let NodeWork::Record(event) = node.work {
                self.set_record(call, event, point.clone());
            }
            if let (Some(&function), Point::Pending(unfinished)) = (function, &point) {
                self.functions.insert(function, unfinished.task);
            }
            points.push(point);
        }
        self.launched.clone_from(&points);
        points.push(start);
        let agent = Agent(Who::Stream(name, Part::Work));
        let job = Job { agent, slot, action: Action::Nothing, call: call.clone() };
        let tail = self.submit(job, Clock::default(), points);
        if let Some(of) = self.streams.get_mut(&stream) {
            of.tail = tail;
        }
    }

    /// The slot of a stream's branch.
    pub(super) fn branch(&mut self, stream: StreamId, index: usize) -> Slot {
        if let Some(&slot) = self.streams.get(&stream).and_then(|of| of.branches.get(index)) {
            return slot;
        }
        let slot = self.new_slot();
        if let Some(of) = self.streams.get_mut(&stream) {
            of.branches.push(slot);
        }
        slot
    }
}
