//! Stream captures: work becomes a graph instead of being done. The captures under way, the marks
//! of events in them, and what each kind of call does to a capture; [`calls`] has the entry points.

pub(crate) mod calls;
pub(crate) mod mark;

use std::collections::BTreeMap;

use crate::abi::*;
use crate::capture::mark::{CaptureKey, Mark};
use crate::engine::Engine;
use crate::engine::stream::Stream;
use crate::graph::{Graphs, NodeKind};
use crate::machine::handles::Table;
use crate::order::Feed;
use crate::threads;

struct Capture {
    /// The stream that it began in.
    origin: u32,
    mode: u32,
    thread: u32,
    context: u32,
    graph: u32,
    invalid: bool,
    /// All its streams, with the nodes that their next work depends on.
    streams: BTreeMap<u32, Vec<u32>>,
    /// The nodes that joined streams ended with which were destroyed since: they have to be joined
    /// all the same.
    left: Vec<u32>,
}

pub(crate) struct Captures {
    /// Whose threads have a capture mode: the machine's slot, and its epoch.
    slot: usize,
    epoch: u64,
    active: BTreeMap<CaptureKey, Capture>,
    last: CaptureKey,
    /// By stream, the node handles that a query of its capture last pointed to.
    views: BTreeMap<u32, Vec<CUgraphNode>>,
}

// SAFETY: the pointers are handles, which are never dereferenced.
unsafe impl Send for Captures {}

pub(crate) const UNSUPPORTED: CUresult = CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;

const INVALIDATED: CUresult = CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;

const MERGE: CUresult = CUresult::CUDA_ERROR_STREAM_CAPTURE_MERGE;

const UNMATCHED: CUresult = CUresult::CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;

const UNJOINED: CUresult = CUresult::CUDA_ERROR_STREAM_CAPTURE_UNJOINED;

const ISOLATION: CUresult = CUresult::CUDA_ERROR_STREAM_CAPTURE_ISOLATION;

const IMPLICIT: CUresult = CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;

const CAPTURED_EVENT: CUresult = CUresult::CUDA_ERROR_CAPTURED_EVENT;

const WRONG_THREAD: CUresult = CUresult::CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;

const GLOBAL: u32 = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL.0;

const RELAXED: u32 = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED.0;

impl Captures {
    pub(crate) const fn new(slot: usize, epoch: u64) -> Self {
        Self { slot, epoch, active: BTreeMap::new(), last: 0, views: BTreeMap::new() }
    }

    /// Whether no capture is under way.
    pub(crate) fn is_empty(&self) -> bool {
        self.active.is_empty()
    }

    /// How many captures are under way.
    pub(crate) fn len(&self) -> usize {
        self.active.len()
    }

    /// Whether a capture into a graph is under way.
    pub(crate) fn has_graph(&self, graph: u32) -> bool {
        self.active.values().any(|capture| capture.graph == graph)
    }

    /// Whether a stream is in a capture, good or not.
    pub(crate) fn is_capturing(&self, stream: u32) -> bool {
        self.key_of(stream).is_some()
    }

    fn key_of(&self, stream: u32) -> Option<CaptureKey> {
        let mut active = self.active.iter();
        active.find(|(_, capture)| capture.streams.contains_key(&stream)).map(|(key, _)| *key)
    }

    fn invalidate(&mut self, key: CaptureKey) {
        if let Some(capture) = self.active.get_mut(&key) {
            capture.invalid = true;
        }
    }

    /// Ends a capture: its streams capture no more. Returns its graph.
    fn end(&mut self, key: CaptureKey) -> Option<u32> {
        self.active.remove(&key).map(|capture| capture.graph)
    }

    /// Ends a capture without returning its graph. Measured: the graph is destroyed, also if it
    /// existed before the capture.
    fn abandon(
        &mut self,
        key: CaptureKey,
        graphs: &mut Graphs,
        engine: &mut Engine,
        feed: Option<&mut Feed>,
    ) {
        if let Some(graph) = self.end(key) {
            engine.objects.release_all(&mut engine.jobs, feed, graphs.remove_graph(graph));
        }
    }

    /// A context takes the captures that began in it with it.
    pub(crate) fn end_of_context(
        &mut self,
        context: u32,
        graphs: &mut Graphs,
        engine: &mut Engine,
        mut feed: Option<&mut Feed>,
    ) {
        let theirs = self.active.iter().filter(|(_, capture)| capture.context == context);
        let theirs: Vec<CaptureKey> = theirs.map(|(key, _)| *key).collect();
        for key in theirs {
            self.abandon(key, graphs, engine, feed.as_deref_mut());
        }
    }

    /// A stream that is destroyed takes its own capture with it, and leaves another one's. What it
    /// captured there stays.
    pub(crate) fn leave(
        &mut self,
        stream: u32,
        graphs: &mut Graphs,
        engine: &mut Engine,
        feed: Option<&mut Feed>,
    ) {
        self.views.remove(&stream);
        let Some(key) = self.key_of(stream) else { return };
        let Some(capture) = self.active.get_mut(&key) else { return };
        if capture.origin == stream {
            self.abandon(key, graphs, engine, feed);
        } else {
            capture.left.extend(capture.streams.remove(&stream).unwrap_or_default());
        }
    }

    /// The captures in which a call that may block or depend on other work is forbidden to the
    /// calling thread.
    fn forbidding(&self) -> Vec<CaptureKey> {
        let thread = threads::number();
        let mode = threads::with(self.slot, self.epoch, |on| on.capture_mode);
        if mode == RELAXED {
            return Vec::new();
        }
        // Measured: whatever context and device the call is about.
        let forbids = |capture: &Capture| {
            if capture.thread == thread {
                capture.mode != RELAXED
            } else {
                mode == GLOBAL && capture.mode == GLOBAL
            }
        };
        self.active.iter().filter(|(_, capture)| forbids(capture)).map(|(key, _)| *key).collect()
    }

    /// Refuses what is potentially unsafe while a capture is under way, and invalidates the
    /// captures that forbid it.
    pub(crate) fn refuse_unsafe(&mut self) -> Answer {
        if self.active.is_empty() {
            return Ok(());
        }
        let forbidding = self.forbidding();
        for key in &forbidding {
            self.invalidate(*key);
        }
        if forbidding.is_empty() { Ok(()) } else { Err(UNSUPPORTED) }
    }

    /// The captures under way that have a stream which the legacy default stream would have to wait
    /// for.
    fn implicated(&self, streams: &Table<Stream>, stream: u32) -> Vec<CaptureKey> {
        if self.active.is_empty() || !streams[stream].is_legacy {
            return Vec::new();
        }
        let context = streams[stream].context;
        let blocking = |stream: &u32| streams.get(*stream).is_some_and(|stream| stream.blocking());
        let active = self.active.iter();
        active
            .filter(|(_, capture)| {
                capture.context == context && capture.streams.keys().any(blocking)
            })
            .map(|(key, _)| *key)
            .collect()
    }

    /// Refuses questions about the legacy default stream while such a capture is under way. They do
    /// no harm.
    fn refuse_question(&self, streams: &Table<Stream>, stream: u32) -> Answer {
        if self.implicated(streams, stream).is_empty() { Ok(()) } else { Err(IMPLICIT) }
    }

    /// Refuses use of the legacy default stream while such a capture is under way, and invalidates
    /// that.
    pub(crate) fn refuse_implicit(&mut self, streams: &Table<Stream>, stream: u32) -> Answer {
        let implicated = self.implicated(streams, stream);
        for key in &implicated {
            self.invalidate(*key);
        }
        if implicated.is_empty() { Ok(()) } else { Err(IMPLICIT) }
    }

    /// The capture that a stream is in, if that is still good. The legacy rule is looked at first.
    fn capture_of(
        &mut self,
        streams: &Table<Stream>,
        stream: u32,
    ) -> Result<Option<CaptureKey>, CUresult> {
        if self.active.is_empty() {
            return Ok(None);
        }
        self.refuse_implicit(streams, stream)?;
        match self.key_of(stream) {
            Some(key) if self.active.get(&key).is_some_and(|capture| capture.invalid) => {
                Err(INVALIDATED)
            }
            key => Ok(key),
        }
    }

    /// Refuses a call about all streams of a context while one of them is captured, and invalidates
    /// the captures.
    pub(crate) fn refuse_in_context(&mut self, context: u32) -> Answer {
        let mut refused = false;
        for capture in self.active.values_mut().filter(|capture| capture.context == context) {
            capture.invalid = true;
            refused = true;
        }
        if refused { Err(UNSUPPORTED) } else { Ok(()) }
    }

    /// Refuses a query or a synchronization of a stream that is captured, and invalidates the
    /// capture.
    pub(crate) fn refuse_wait_for_stream(
        &mut self,
        streams: &Table<Stream>,
        stream: u32,
    ) -> Answer {
        self.refuse_captured(streams, stream)?;
        self.refuse_unsafe()
    }

    /// Refuses a call that waits in a stream while that is captured, and invalidates the capture.
    /// Measured: in other streams such a call is safe.
    pub(crate) fn refuse_captured(&mut self, streams: &Table<Stream>, stream: u32) -> Answer {
        if self.active.is_empty() {
            return Ok(());
        }
        self.refuse_implicit(streams, stream)?;
        // Measured: the code is the same once the capture is invalidated.
        if let Some(key) = self.key_of(stream) {
            self.invalidate(key);
            return Err(UNSUPPORTED);
        }
        Ok(())
    }

    /// Invalidates the capture that an event was recorded in, as the host cannot wait for it.
    /// Returns the error code.
    pub(crate) fn invalidate_by(&mut self, mark: &Mark) -> CUresult {
        self.invalidate(mark.capture);
        self.code_of(mark)
    }

    /// The error code for an event that was recorded in a capture.
    pub(crate) fn code_of(&self, mark: &Mark) -> CUresult {
        // Measured: the code for captured events is returned only while the capture lasts.
        if self.is_over(mark) { INVALID_VALUE } else { CAPTURED_EVENT }
    }

    /// Whether the capture that an event was recorded in has ended.
    pub(crate) fn is_over(&self, mark: &Mark) -> bool {
        !self.active.contains_key(&mark.capture)
    }

    /// Refuses what cannot be captured, and invalidates the capture.
    pub(crate) fn refuse_in(&mut self, streams: &Table<Stream>, stream: u32) -> Answer {
        match self.capture_of(streams, stream) {
            Ok(None) => Ok(()),
            Ok(Some(key)) => {
                self.invalidate(key);
                Err(UNSUPPORTED)
            }
            // It is refused for what it is, whatever the state of the capture.
            Err(INVALIDATED) => Err(UNSUPPORTED),
            Err(other) => Err(other),
        }
    }

    /// Adds a node to the capture that a stream is in, after what is there of that stream. Returns
    /// whether it is in one.
    pub(crate) fn add(
        &mut self,
        streams: &Table<Stream>,
        graphs: &mut Graphs,
        born: u64,
        stream: u32,
        kind: impl FnOnce() -> NodeKind,
    ) -> Result<bool, CUresult> {
        let Some(key) = self.capture_of(streams, stream)? else { return Ok(false) };
        let Some(capture) = self.active.get_mut(&key) else { return Ok(false) };
        let after = capture.streams.get(&stream).cloned().unwrap_or_default();
        let node = graphs.add_node(born, capture.graph, after, kind())?;
        graphs.set_context(node, streams[stream].context);
        capture.streams.insert(stream, vec![node]);
        Ok(true)
    }

    /// The place that a record has in the capture that its stream is in; none if it is in none.
    pub(crate) fn mark(
        &mut self,
        streams: &Table<Stream>,
        stream: u32,
    ) -> Result<Option<Mark>, CUresult> {
        let Some(capture) = self.capture_of(streams, stream)? else { return Ok(None) };
        let nodes =
            self.active.get(&capture).and_then(|capture| capture.streams.get(&stream)).cloned();
        Ok(Some(Mark { capture, nodes: nodes.unwrap_or_default() }))
    }

    /// A wait of a stream for an event with this mark, or for one that was recorded outside of all
    /// captures, or `never`. Whether the wait has become a part of a capture.
    pub(crate) fn wait(
        &mut self,
        streams: &Table<Stream>,
        stream: u32,
        mark: Option<&Mark>,
        never: bool,
    ) -> Result<bool, CUresult> {
        match (self.capture_of(streams, stream)?, mark) {
            (None, None) => Ok(false),
            (None, Some(mark)) => {
                // Measured: an invalidated capture can be joined no more than one that has ended.
                let capture = self.active.get_mut(&mark.capture).filter(|capture| !capture.invalid);
                let capture = capture.ok_or(INVALID_VALUE)?;
                if streams[stream].is_legacy {
                    capture.invalid = true;
                    return Err(IMPLICIT);
                }
                // The waiting stream joins the capture.
                capture.streams.insert(stream, mark.nodes.clone());
                Ok(true)
            }
            (Some(key), Some(mark)) if mark.capture == key => {
                self.depend(key, stream, mark.nodes.iter().copied());
                Ok(true)
            }
            (Some(key), Some(mark)) => {
                self.invalidate(key);
                if self.is_over(mark) {
                    return Err(INVALID_VALUE);
                }
                self.invalidate(mark.capture);
                Err(MERGE)
            }
            (Some(_), None) if never => Ok(true),
            (Some(key), None) => {
                self.invalidate(key);
                Err(ISOLATION)
            }
        }
    }

    /// The next work of a stream depends on these nodes, too.
    fn depend(&mut self, key: CaptureKey, stream: u32, more: impl Iterator<Item = u32>) {
        if let Some(nodes) =
            self.active.get_mut(&key).and_then(|capture| capture.streams.get_mut(&stream))
        {
            nodes.extend(more);
            nodes.sort_unstable();
            nodes.dedup();
        }
    }
}
