//! Captures: which calls they forbid, which calls break them, and the nodes that they make.

use std::collections::BTreeSet;

use super::graphs::{Deed, Graph};
use super::{Answer, ILLEGAL_STATE, INVALID_VALUE, Life, Model, SUCCESS, says};

pub const UNSUPPORTED: u32 = 900;
pub const INVALIDATED: u32 = 901;
pub const MERGE: u32 = 902;
pub const UNMATCHED: u32 = 903;
pub const UNJOINED: u32 = 904;
pub const ISOLATION: u32 = 905;
pub const IMPLICIT: u32 = 906;
pub const CAPTURED_EVENT: u32 = 907;

const RELAXED: u32 = 2;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    Active,
    /// Broken, and not ended.
    Invalid,
    Over,
}

pub struct Capture {
    /// The stream in which it began.
    pub origin: usize,
    mode: u32,
    pub fate: Fate,
    pub graph: usize,
}

/// A stream's or an event's part of a capture: the nodes that what comes next depends on.
#[derive(Clone, Debug)]
pub struct Part {
    pub capture: usize,
    pub nodes: BTreeSet<usize>,
}

/// Where work goes that is given to a stream.
pub enum Way {
    ToTheStream,
    ToTheGraph,
    Refused(Answer),
    /// The rules leave it open.
    Open,
}

impl Model {
    fn break_all(&mut self, which: impl Fn(usize, &Capture) -> bool) {
        let all = self.captures.iter_mut().enumerate();
        for (_, capture) in all.filter(|(at, it)| it.fate == Fate::Active && which(*at, it)) {
            capture.fate = Fate::Invalid;
        }
    }

    pub(super) fn break_one(&mut self, capture: usize) {
        self.break_all(|at, _| at == capture);
    }

    pub fn anything_captured(&self) -> bool {
        self.captures.iter().any(|it| it.fate != Fate::Over)
    }

    /// The captures that may forbid this thread to query and to synchronize.
    fn forbids(&self) -> Vec<usize> {
        let forbids = |it: &Capture| it.fate != Fate::Over && it.mode != RELAXED;
        let all = self.captures.iter().enumerate().filter(|(_, it)| forbids(it));
        if self.thread_mode == RELAXED { Vec::new() } else { all.map(|(at, _)| at).collect() }
    }

    /// A call that captures may forbid. Whether a broken one forbids it is open.
    pub(super) fn unsafe_call(&mut self) -> Option<Result<(), Answer>> {
        let forbids = self.forbids();
        if forbids.is_empty() {
            return Some(Ok(()));
        }
        if forbids.iter().all(|at| self.captures[*at].fate == Fate::Invalid) {
            return None;
        }
        self.break_all(|at, _| forbids.contains(&at));
        Some(Err(says(UNSUPPORTED)))
    }

    /// A query or a synchronization that breaks a capture of its own, whatever the mode. What it
    /// does to others that forbid it is open.
    fn breaking_call(&mut self, capture: usize, code: u32) -> Option<Answer> {
        if self.forbids().iter().any(|at| *at != capture) {
            return None;
        }
        self.break_one(capture);
        Some(says(code))
    }

    pub(super) fn fate(&self, part: &Part) -> Fate {
        self.captures[part.capture].fate
    }

    /// Whether an event can be queried and synchronized.
    pub(super) fn asks_event(&mut self, event: usize) -> Option<Result<(), Answer>> {
        let Some(part) = self.events[event].part.clone() else { return self.unsafe_call() };
        match self.fate(&part) {
            Fate::Active => self.breaking_call(part.capture, CAPTURED_EVENT).map(Err),
            Fate::Over if self.forbids().is_empty() => Some(Err(says(INVALID_VALUE))),
            Fate::Over | Fate::Invalid => None,
        }
    }

    /// Whether a stream can be queried and synchronized.
    pub(super) fn asks_stream(&mut self, stream: usize) -> Option<Result<(), Answer>> {
        if let Some(part) = self.streams[stream].part.clone() {
            return self.breaking_call(part.capture, UNSUPPORTED).map(Err);
        }
        let beside = self.beside(stream);
        if beside.is_empty() {
            return self.unsafe_call();
        }
        if self.forbids().iter().any(|at| !beside.contains(at)) {
            return None;
        }
        self.refused_beside(&beside).map(Err)
    }

    /// Whether a context can be synchronized: not beside captures in it, whatever their mode.
    pub(super) fn asks_context(&mut self, context: usize) -> Option<Result<(), Answer>> {
        let of = |it: &super::Stream| Some((it.part.as_ref()?.capture, it.context));
        let parts: Vec<_> = self.streams.iter().filter_map(of).collect();
        let mut ours: Vec<usize> =
            parts.iter().filter(|it| it.1 == context).map(|it| it.0).collect();
        ours.dedup();
        if ours.is_empty() {
            return Some(Ok(()));
        }
        // What a capture in several contexts does is open, and what a broken one does.
        if parts.iter().any(|it| it.1 != context && ours.contains(&it.0))
            || ours.iter().any(|it| self.captures[*it].fate != Fate::Active)
        {
            return None;
        }
        self.break_all(|at, _| ours.contains(&at));
        Some(Err(says(UNSUPPORTED)))
    }

    /// The captures of blocking streams that the legacy stream would have to wait for.
    fn beside(&self, stream: usize) -> Vec<usize> {
        if !self.is_legacy(stream) {
            return Vec::new();
        }
        let joins = self.joins(stream).into_iter();
        joins.filter_map(|it| self.streams[it].part.as_ref().map(|part| part.capture)).collect()
    }

    fn refused_beside(&mut self, beside: &[usize]) -> Option<Answer> {
        // Whether a broken capture refuses it, too, is open.
        if beside.iter().any(|at| self.captures[*at].fate != Fate::Active) {
            return None;
        }
        self.break_all(|at, _| beside.contains(&at));
        Some(says(IMPLICIT))
    }

    /// Where work of a stream goes. Work of the legacy stream breaks captures.
    pub(super) fn way(&mut self, stream: usize) -> Way {
        if let Some(part) = &self.streams[stream].part {
            return match self.fate(part) {
                Fate::Active => Way::ToTheGraph,
                _ => Way::Refused(says(INVALIDATED)),
            };
        }
        let beside = self.beside(stream);
        if beside.is_empty() {
            return Way::ToTheStream;
        }
        self.refused_beside(&beside).map_or(Way::Open, Way::Refused)
    }

    /// Whether all that is given to a stream is done as outside captures.
    pub fn is_plain(&self, stream: usize) -> bool {
        self.streams[stream].part.is_none() && self.beside(stream).is_empty()
    }

    /// A node of a capturing stream's graph.
    pub(super) fn capture_node(&mut self, stream: usize, deed: Deed) {
        let Some(part) = self.streams[stream].part.clone() else { return };
        let (graph, context) = (self.captures[part.capture].graph, self.streams[stream].context);
        let node = self.new_node(graph, part.nodes, deed, context);
        let nodes = BTreeSet::from([node]);
        self.streams[stream].part = Some(Part { nodes, ..part });
    }

    /// A plain wait for an event in a stream that captures, or for an event that was captured.
    /// `None` within: this is an ordinary wait.
    pub(super) fn captured_wait(&mut self, stream: usize, event: usize) -> Option<Option<Answer>> {
        let (own, theirs) = (self.streams[stream].part.clone(), self.events[event].part.clone());
        let never = theirs.is_none() && self.events[event].state == super::State::Never;
        let fates = (own.as_ref().map(|it| self.fate(it)), theirs.as_ref().map(|it| self.fate(it)));
        match (own, theirs, fates) {
            (Some(_), None, (Some(Fate::Invalid), _)) => Some(Some(says(INVALIDATED))),
            (Some(own), None, _) => {
                if never {
                    return Some(Some(says(SUCCESS)));
                }
                self.break_one(own.capture);
                Some(Some(says(ISOLATION)))
            }
            (Some(own), Some(theirs), (Some(Fate::Active), Some(Fate::Active))) => {
                if own.capture != theirs.capture {
                    self.break_one(own.capture);
                    self.break_one(theirs.capture);
                    return Some(Some(says(MERGE)));
                }
                let nodes = own.nodes.union(&theirs.nodes).copied().collect();
                self.streams[stream].part = Some(Part { nodes, ..own });
                Some(Some(says(SUCCESS)))
            }
            (Some(own), Some(_), (Some(Fate::Active), Some(Fate::Over))) => {
                self.break_one(own.capture);
                Some(Some(says(INVALID_VALUE)))
            }
            (Some(_), Some(_), _) => None,
            (None, Some(theirs), (_, Some(fate))) => {
                let (beside, queue) = (self.beside(stream), &self.streams[stream]);
                let origin = self.captures[theirs.capture].origin;
                let foreign = self.streams[origin].context != queue.context;
                match fate {
                    _ if !beside.is_empty() => None,
                    // What the legacy stream of another context does to a capture is open, also
                    // that of a blocking stream which joins.
                    Fate::Active if foreign && (queue.blocking || self.is_legacy(stream)) => None,
                    Fate::Active if self.is_legacy(stream) => {
                        self.break_one(theirs.capture);
                        Some(Some(says(IMPLICIT)))
                    }
                    Fate::Active => {
                        self.streams[stream].part = Some(theirs);
                        Some(Some(says(SUCCESS)))
                    }
                    Fate::Invalid | Fate::Over => Some(Some(says(INVALID_VALUE))),
                }
            }
            (None, _, _) => match self.way(stream) {
                Way::ToTheStream => Some(None),
                Way::Refused(answer) => Some(Some(answer)),
                _ => None,
            },
        }
    }

    /// The end of a capture, in any way.
    pub(super) fn over(&mut self, capture: usize) {
        self.captures[capture].fate = Fate::Over;
        for stream in &mut self.streams {
            if stream.part.as_ref().is_some_and(|it| it.capture == capture) {
                stream.part = None;
            }
        }
    }

    /// A stream is destroyed: its capture ends with it, if it began there.
    pub(super) fn leaves(&mut self, stream: usize) {
        let Some(part) = self.streams[stream].part.take() else { return };
        if self.captures[part.capture].origin == stream {
            self.over(part.capture);
        }
    }

    // The calls.

    pub fn begin_capture(&mut self, handle: u64, mode: u32) -> Option<Answer> {
        let stream = match self.stream(handle) {
            Ok(stream) => stream,
            // Of two things that are wrong the order is open.
            Err(answer) => return (mode <= RELAXED).then_some(answer),
        };
        let legacy = self.is_legacy(stream);
        match &self.streams[stream].part {
            None if mode > RELAXED && !legacy => return Some(says(INVALID_VALUE)),
            _ if mode > RELAXED => return None,
            None if legacy => return Some(says(UNSUPPORTED)),
            None => {}
            Some(part) if self.fate(part) == Fate::Active => return Some(says(ILLEGAL_STATE)),
            Some(_) => return None,
        }
        let (graph, capture) = (self.graphs.len(), self.captures.len());
        self.graphs.push(Graph { handle: 0, told: 0, life: Life::Gone });
        self.captures.push(Capture { origin: stream, mode, fate: Fate::Active, graph });
        self.streams[stream].part = Some(Part { capture, nodes: BTreeSet::new() });
        Some(says(SUCCESS))
    }

    /// Beside the answer, the graph that it gives.
    pub fn end_capture(&mut self, handle: u64) -> Option<(Answer, Option<usize>)> {
        let stream = match self.stream(handle) {
            Ok(stream) => stream,
            Err(answer) => return Some((answer, None)),
        };
        if !self.beside(stream).is_empty() {
            return None;
        }
        let Some(part) = self.streams[stream].part.clone() else {
            return Some((says(ILLEGAL_STATE), None));
        };
        let fate = self.fate(&part);
        if self.captures[part.capture].origin != stream {
            if fate == Fate::Invalid {
                return None;
            }
            self.break_one(part.capture);
            return Some((says(UNMATCHED), None));
        }
        self.over(part.capture);
        let graph = self.captures[part.capture].graph;
        if fate == Fate::Invalid {
            return Some((says(INVALIDATED), None));
        }
        let joined = self.up_to(&part.nodes);
        let nodes = self.nodes_of(graph);
        if nodes.into_iter().any(|node| !joined.contains(&node)) {
            return Some((says(UNJOINED), None));
        }
        Some((says(SUCCESS), Some(graph)))
    }

    /// The number of a stream's status.
    pub fn is_capturing(&self, handle: u64) -> Option<Result<u32, Answer>> {
        let stream = match self.stream(handle) {
            Ok(stream) => stream,
            Err(answer) => return Some(Err(answer)),
        };
        let beside = self.beside(stream);
        if beside.iter().any(|at| self.captures[*at].fate == Fate::Invalid) {
            return None;
        }
        if !beside.is_empty() {
            return Some(Err(says(IMPLICIT)));
        }
        Some(Ok(match self.streams[stream].part.as_ref().map(|part| self.fate(part)) {
            None | Some(Fate::Over) => 0,
            Some(Fate::Active) => 1,
            Some(Fate::Invalid) => 2,
        }))
    }

    /// The number and the graph of the capture of a stream, and the nodes that its next work
    /// depends on, if that is not open.
    pub fn capture_info(&self, handle: u64) -> Option<(u64, usize, Option<Vec<usize>>)> {
        let part = self.streams[self.stream(handle).ok()?].part.as_ref()?;
        // A node that another one depends on may be left out.
        let apart = |node: &usize| {
            let others = part.nodes.iter().filter(|other| *other != node);
            !self.up_to(&others.copied().collect()).contains(node)
        };
        let nodes = part.nodes.iter().all(apart).then(|| part.nodes.iter().copied().collect());
        Some((part.capture as u64 + 1, self.captures[part.capture].graph, nodes))
    }

    /// Sets this thread's mode. The one before.
    pub fn exchange(&mut self, mode: u32) -> u32 {
        std::mem::replace(&mut self.thread_mode, mode)
    }
}
