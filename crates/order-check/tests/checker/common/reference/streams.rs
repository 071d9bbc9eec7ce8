//! Streams, events, contexts, captures and graphs.

use std::collections::HashMap;

use super::{Act, Capture, Event, Reference, Stream, one};
use cuda_order_check_engine::{AccessKind, By, EventId, Node, NodeWork, StreamKind};

impl Reference {
    pub(super) fn destroy_context(&mut self, by: By, context: u64) {
        for stream in self.streams_of(context) {
            self.object(by, false, stream, AccessKind::Write);
            self.streams.remove(&stream);
        }
        self.gone.retain(|gone| gone.0 != context);
        self.entry.remove(&context);
    }

    pub(super) fn record(&mut self, by: By, event: u64, stream: u64, external: bool) {
        self.object(by, true, event, AccessKind::AtomicWrite);
        self.object(by, false, stream, AccessKind::Read);
        let capture = self.streams.get(&stream).and_then(|state| state.capture);
        match (capture, external) {
            (Some(capture), true) => {
                self.captured(capture, stream, NodeWork::Record(EventId(event)))
            }
            (Some(capture), false) => {
                let front = self.captures[capture].fronts.get(&stream).cloned().unwrap_or_default();
                self.events.entry(event).or_default().captured = Some((capture, front));
            }
            (None, _) => {
                let node = self.in_stream(by, stream, Act::Nothing, &[]);
                self.set_record(event, node);
            }
        }
    }

    pub(super) fn wait(&mut self, by: By, stream: u64, event: u64, external: bool) {
        self.object(by, true, event, AccessKind::Read);
        self.object(by, false, stream, AccessKind::Read);
        self.ensure(stream);
        let inside = self.streams[&stream].capture;
        let (record, captured) = self
            .events
            .get(&event)
            .map_or((None, None), |state| (state.record, state.captured.clone()));
        if let (Some(inside), true) = (inside, external) {
            self.captured(inside, stream, NodeWork::Wait(EventId(event)));
            return;
        }
        match captured {
            Some((capture, nodes)) => {
                let live = !self.captures[capture].over;
                if live && inside.is_none_or(|inside| inside == capture) {
                    self.captures[capture].fronts.entry(stream).or_default().extend(nodes);
                    self.streams.get_mut(&stream).unwrap().capture = Some(capture);
                } else if inside.is_none() {
                    self.in_stream(by, stream, Act::Nothing, &[]);
                }
            }
            // One that was never recorded is no operation.
            None if inside.is_none() && record.is_some() => {
                self.in_stream(by, stream, Act::Nothing, record.as_slice());
            }
            None => {}
        }
    }

    pub(super) fn context_wait(&mut self, by: By, context: u64, event: u64) {
        self.object(by, true, event, AccessKind::Read);
        let Some(Event { record: Some(record), captured: None }) = self.events.get(&event) else {
            return;
        };
        let record = *record;
        self.entry.entry(context).or_default().push(record);
        for stream in self.streams_of(context) {
            let mut before: Vec<usize> = self.streams[&stream].tail.into_iter().collect();
            before.push(record);
            let tail = self.submit(before, Act::Nothing);
            self.streams.get_mut(&stream).unwrap().tail = Some(tail);
        }
    }

    pub(super) fn begin_capture(&mut self, stream: u64) {
        self.ensure(stream);
        let fronts = HashMap::from([(stream, Vec::new())]);
        self.captures.push(Capture { origin: stream, nodes: Vec::new(), fronts, over: false });
        self.streams.get_mut(&stream).unwrap().capture = Some(self.captures.len() - 1);
    }

    pub(super) fn end_capture(&mut self, stream: u64, graph: u64) {
        let Some(capture) = self.streams.get(&stream).and_then(|state| state.capture) else {
            return;
        };
        for state in self.streams.values_mut().filter(|state| state.capture == Some(capture)) {
            state.capture = None;
        }
        assert_eq!(self.captures[capture].origin, stream);
        self.captures[capture].over = true;
        self.graphs.insert(graph, self.captures[capture].nodes.clone());
    }

    pub(super) fn define(&mut self, graph: u64, nodes: &[Node]) {
        let mut flat: Vec<Node> = Vec::new();
        let mut ends: Vec<Vec<usize>> = Vec::new();
        for node in nodes {
            let after: Vec<usize> =
                node.after.iter().flat_map(|node| ends[*node].clone()).collect();
            let NodeWork::Child(child) = node.work else {
                flat.push(Node { work: node.work.clone(), after });
                ends.push(one(flat.len() - 1));
                continue;
            };
            ends.push(append(
                &mut flat,
                self.graphs.get(&child.0).map_or(&[], Vec::as_slice),
                &after,
            ));
        }
        self.graphs.insert(graph, flat);
    }

    pub(super) fn ensure(&mut self, stream: u64) {
        if !self.streams.contains_key(&stream) {
            let tail = self.entry.get(&0).cloned().map(|entry| self.submit(entry, Act::Nothing));
            let state =
                Stream { context: 0, kind: Some(StreamKind::Blocking), tail, capture: None };
            self.streams.insert(stream, state);
        }
    }

    pub(super) fn destroy(&mut self, stream: u64) {
        if let Some(state) = self.streams.remove(&stream) {
            self.gone.push((state.context, state.kind.unwrap(), state.tail));
        }
    }

    pub(super) fn context_work(&self, context: u64) -> Vec<usize> {
        let live = self
            .streams
            .values()
            .filter(|state| state.context == context)
            .filter_map(|state| state.tail);
        live.chain(self.gone.iter().filter(|gone| gone.0 == context).filter_map(|gone| gone.2))
            .collect()
    }

    /// The blocking streams of a context, those that are gone too.
    pub(super) fn blocking(&self, context: u64) -> Vec<usize> {
        let live =
            self.streams.values().map(|state| (state.context, state.kind.unwrap(), state.tail));
        let all = live.chain(self.gone.iter().copied());
        all.filter(|state| state.0 == context && state.1 == StreamKind::Blocking)
            .filter_map(|state| state.2)
            .collect()
    }

    pub(super) fn captured(&mut self, capture: usize, stream: u64, work: NodeWork) {
        let state = &mut self.captures[capture];
        let after = state.fronts.get(&stream).cloned().unwrap_or_default();
        state.nodes.push(Node { work, after });
        state.fronts.insert(stream, one(state.nodes.len() - 1));
    }

    pub(super) fn stream_work(&mut self, by: By, stream: u64, act: Act) {
        self.object(by, false, stream, AccessKind::Read);
        if let Some(capture) = self.streams.get(&stream).and_then(|state| state.capture) {
            let work = match act {
                Act::Nothing => NodeWork::Work(Vec::new()),
                Act::Work(accesses) | Act::Function(accesses) => NodeWork::Work(accesses),
                Act::Write(cell, value) => NodeWork::WriteValue(cell, value),
                Act::Wait(cell, value, compare) => NodeWork::WaitValue(cell, value, compare),
            };
            self.captured(capture, stream, work);
        } else {
            self.in_stream(by, stream, act, &[]);
        }
    }

    pub(super) fn in_stream(&mut self, by: By, stream: u64, act: Act, also: &[usize]) -> usize {
        self.ensure(stream);
        let (context, kind, tail) = {
            let state = &self.streams[&stream];
            (state.context, state.kind.unwrap(), state.tail)
        };
        let mut before: Vec<usize> = tail.into_iter().chain(also.iter().copied()).collect();
        before.extend(self.past(by));
        match kind {
            StreamKind::NonBlocking => {}
            StreamKind::Blocking => {
                let legacy = |state: &&Stream| {
                    state.context == context && state.kind == Some(StreamKind::Legacy)
                };
                before.extend(self.streams.values().filter(legacy).filter_map(|state| state.tail));
            }
            StreamKind::Legacy => before.extend(self.blocking(context)),
        }
        let node = self.submit(before, act);
        self.streams.get_mut(&stream).unwrap().tail = Some(node);
        node
    }

    pub(super) fn set_record(&mut self, event: u64, node: usize) {
        let state = self.events.entry(event).or_default();
        *state = Event { record: Some(node), captured: None };
    }

    pub(super) fn launch(&mut self, by: By, stream: u64, graph: u64) {
        self.object(by, false, stream, AccessKind::Read);
        self.ensure(stream);
        let nodes = self.graphs.get(&graph).cloned().unwrap_or_default();
        if let Some(capture) = self.streams[&stream].capture {
            let state = &mut self.captures[capture];
            let front = state.fronts.get(&stream).cloned().unwrap_or_default();
            let front = append(&mut state.nodes, &nodes, &front);
            state.fronts.insert(stream, front);
            return;
        }
        let start = self.in_stream(by, stream, Act::Nothing, &[]);
        let mut all = one(start);
        for node in &nodes {
            let mut before: Vec<usize> = node.after.iter().map(|node| all[node + 1]).collect();
            before.push(start);
            let act = match &node.work {
                NodeWork::Work(accesses) | NodeWork::Function(accesses) => {
                    Act::Work(accesses.clone())
                }
                NodeWork::WriteValue(cell, value) => Act::Write(*cell, *value),
                NodeWork::WaitValue(cell, value, compare) => Act::Wait(*cell, *value, *compare),
                NodeWork::Wait(event) => {
                    if let Some(Event { record: Some(record), captured: None }) =
                        self.events.get(&event.0)
                    {
                        before.push(*record);
                    }
                    Act::Nothing
                }
                NodeWork::Record(_) => Act::Nothing,
                // These programs have no graphs in graphs.
                _ => unreachable!(),
            };
            let task = self.submit(before, act);
            if let NodeWork::Record(event) = node.work {
                self.set_record(event.0, task);
            }
            all.push(task);
        }
        let end = self.submit(all, Act::Nothing);
        self.streams.get_mut(&stream).unwrap().tail = Some(end);
    }

    fn streams_of(&self, context: u64) -> Vec<u64> {
        let inside = |stream: &(&u64, &Stream)| stream.1.context == context;
        self.streams.iter().filter(inside).map(|stream| *stream.0).collect()
    }
}

fn append(graph: &mut Vec<Node>, child: &[Node], after: &[usize]) -> Vec<usize> {
    let first = graph.len();
    if child.is_empty() {
        graph.push(Node { work: NodeWork::Work(Vec::new()), after: after.to_vec() });
        return one(first);
    }
    for node in child {
        let inner = node.after.iter().map(|node| node + first);
        let after = if node.after.is_empty() { after.to_vec() } else { inner.collect() };
        graph.push(Node { work: node.work.clone(), after });
    }
    let waited = |node: &usize| graph[first..].iter().any(|other| other.after.contains(node));
    (first..graph.len()).filter(|node| !waited(node)).collect()
}
