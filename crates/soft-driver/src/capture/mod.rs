//! Stream captures: work becomes a graph instead of being done. The captures under way, the marks of
//! events in them, and what each kind of call does to a capture; [`calls`] has the entry points.

pub(crate) mod calls;

use std::collections::BTreeMap;

use cuda_order_check::What;

use crate::abi::*;
use crate::engine::work::HostCall;
use crate::event::EventState;
use crate::graph::NodeKind;
use crate::machine::State;
use crate::machine::call_frame::CallFrame;
use crate::machine::thread;
use crate::memory::work::MemoryWork;

/// The id of a capture, which nothing else of the machine has.
pub(crate) type CaptureKey = u64;

/// Where in a capture an event was recorded.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    pub(crate) capture: CaptureKey,
    pub(crate) nodes: Vec<u32>,
}

/// A capture under way.
pub(crate) struct Capture {
    /// The stream that it began in.
    pub(crate) origin: u32,
    pub(crate) mode: u32,
    pub(crate) thread: u32,
    pub(crate) context: u32,
    pub(crate) graph: u32,
    pub(crate) invalid: bool,
    /// All its streams, with the nodes that their next work depends on.
    pub(crate) streams: BTreeMap<u32, Vec<u32>>,
    /// The nodes that joined streams ended with which were destroyed since: they have to be joined
    /// all the same.
    pub(crate) left: Vec<u32>,
}

/// The captures under way.
pub(crate) struct Captures {
    pub(crate) active: BTreeMap<CaptureKey, Capture>,
    pub(crate) last: CaptureKey,
}

impl Captures {
    pub(crate) const fn new() -> Self {
        Self { active: BTreeMap::new(), last: 0 }
    }

    /// Whether a capture into a graph is under way.
    pub(crate) fn has_graph(&self, graph: u32) -> bool {
        self.active.values().any(|capture| capture.graph == graph)
    }

    pub(crate) fn invalidate(&mut self, key: CaptureKey) {
        if let Some(capture) = self.active.get_mut(&key) {
            capture.invalid = true;
        }
    }
}

const UNSUPPORTED: CUresult = CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;

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

impl State {
    /// Ends a capture: its streams capture no more. The answer is its graph. Unless that is
    /// `wanted` it is destroyed, measured also of one that was there before.
    fn end_capture(&mut self, key: CaptureKey, wanted: bool) -> Option<u32> {
        let capture = self.captures.active.remove(&key)?;
        self.look_who_watches();
        for stream in capture.streams.keys() {
            if let Some(stream) = self.streams.get_mut(*stream) {
                stream.capture = None;
            }
        }
        if !wanted {
            self.remove_graph(capture.graph);
        }
        Some(capture.graph)
    }

    pub(crate) fn end_captures_of(&mut self, context: u32) {
        let keys: Vec<CaptureKey> = self
            .captures
            .active
            .iter()
            .filter(|(_, capture)| capture.context == context)
            .map(|(key, _)| *key)
            .collect();
        for key in keys {
            self.end_capture(key, false);
        }
    }

    /// A stream that is destroyed takes its own capture with it, and leaves another one's. What it
    /// captured there stays.
    pub(crate) fn leave_capture(&mut self, stream: u32) {
        let Some(key) = self.streams[stream].capture else { return };
        let Some(capture) = self.captures.active.get_mut(&key) else { return };
        if capture.origin == stream {
            self.end_capture(key, false);
        } else {
            capture.left.extend(capture.streams.remove(&stream).unwrap_or_default());
        }
    }

    /// The captures in which a call that may block or depend on other work is forbidden to the
    /// calling thread.
    fn forbidding(&self, call: &CallFrame) -> Vec<CaptureKey> {
        let thread = thread::number();
        let mode = thread::with(call.machine.slot, self.epoch, |on| on.capture_mode);
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
        self.captures
            .active
            .iter()
            .filter(|(_, capture)| forbids(capture))
            .map(|(key, _)| *key)
            .collect()
    }

    /// Refuses what is potentially unsafe while a capture is under way, and spoils the captures
    /// that forbid it.
    pub(crate) fn refuse_unsafe(&mut self, call: &CallFrame) -> Answer {
        if self.captures.active.is_empty() {
            return Ok(());
        }
        let forbidding = self.forbidding(call);
        for key in &forbidding {
            self.captures.invalidate(*key);
        }
        if forbidding.is_empty() { Ok(()) } else { Err(UNSUPPORTED) }
    }

    /// The captures under way that have a stream which the legacy default stream would have to wait
    /// for.
    fn implicated(&self, stream: u32) -> Vec<CaptureKey> {
        if self.captures.active.is_empty() || !self.streams[stream].is_legacy {
            return Vec::new();
        }
        let context = self.streams[stream].context;
        let blocking =
            |stream: &u32| self.streams.get(*stream).is_some_and(|stream| stream.blocking());
        let active = self.captures.active.iter();
        active
            .filter(|(_, capture)| {
                capture.context == context && capture.streams.keys().any(blocking)
            })
            .map(|(key, _)| *key)
            .collect()
    }

    /// Refuses questions about the legacy default stream while such a capture is under way. They do
    /// no harm.
    pub(crate) fn refuse_question(&self, stream: u32) -> Answer {
        if self.implicated(stream).is_empty() { Ok(()) } else { Err(IMPLICIT) }
    }

    /// Refuses use of the legacy default stream while such a capture is under way, and spoils that.
    fn refuse_implicit(&mut self, stream: u32) -> Answer {
        let implicated = self.implicated(stream);
        for key in &implicated {
            self.captures.invalidate(*key);
        }
        if implicated.is_empty() { Ok(()) } else { Err(IMPLICIT) }
    }

    /// The capture that a stream is in, if that is still good. The legacy rule is looked at first.
    fn capture_of(&mut self, stream: u32) -> Result<Option<CaptureKey>, CUresult> {
        self.refuse_implicit(stream)?;
        match self.streams[stream].capture {
            Some(key) if self.captures.active.get(&key).is_some_and(|capture| capture.invalid) => {
                Err(INVALIDATED)
            }
            key => Ok(key),
        }
    }

    pub(crate) fn invalidate_captures_of(&mut self, context: u32) -> Answer {
        let mut refused = false;
        for capture in
            self.captures.active.values_mut().filter(|capture| capture.context == context)
        {
            capture.invalid = true;
            refused = true;
        }
        if refused { Err(UNSUPPORTED) } else { Ok(()) }
    }

    pub(crate) fn refuse_stream_in_capture(&mut self, call: &CallFrame, stream: u32) -> Answer {
        if self.captures.active.is_empty() {
            return Ok(());
        }
        self.refuse_implicit(stream)?;
        // Measured: the answer is the same once the capture is invalidated.
        if let Some(key) = self.streams[stream].capture {
            self.captures.invalidate(key);
            return Err(UNSUPPORTED);
        }
        self.refuse_unsafe(call)
    }

    pub(crate) fn refuse_event_in_capture(&mut self, call: &CallFrame, event: u32) -> Answer {
        if let EventState::Captured(mark) = &self.events[event].state {
            let (key, code) = (mark.capture, self.captured_code(mark));
            self.captures.invalidate(key);
            self.feed(|feed, of| feed.capture_left(What::Event(of.event(event))));
            return Err(code);
        }
        self.refuse_unsafe(call)
    }

    /// What is answered about an event that was recorded in a capture.
    pub(crate) fn captured_code(&self, mark: &Mark) -> CUresult {
        // Measured: the code for captured events is answered only while the capture lasts.
        if self.captures.active.contains_key(&mark.capture) {
            CAPTURED_EVENT
        } else {
            INVALID_VALUE
        }
    }

    /// Refuses what cannot be captured, and spoils the capture.
    pub(crate) fn refuse_in_capture(&mut self, stream: u32) -> Answer {
        match self.capture_of(stream)? {
            Some(key) => {
                self.captures.invalidate(key);
                Err(UNSUPPORTED)
            }
            None => Ok(()),
        }
    }

    /// Adds a node to the capture that a stream is in, after what is there of that stream. Whether
    /// it is in one.
    pub(crate) fn captured(&mut self, stream: u32, kind: NodeKind) -> Result<bool, CUresult> {
        let Some(key) = self.capture_of(stream)? else { return Ok(false) };
        let Some(capture) = self.captures.active.get(&key) else { return Ok(false) };
        let (graph, after) =
            (capture.graph, capture.streams.get(&stream).cloned().unwrap_or_default());
        let node = self.add_node(graph, after, kind)?;
        self.graphs.nodes[node].context = Some(self.streams[stream].context);
        if let Some(capture) = self.captures.active.get_mut(&key) {
            capture.streams.insert(stream, vec![node]);
        }
        Ok(true)
    }

    pub(crate) fn captured_host(&mut self, stream: u32, host: HostCall) -> Result<bool, CUresult> {
        self.captured(stream, NodeKind::Host(host))
    }

    pub(crate) fn captured_memory(
        &mut self,
        stream: u32,
        work: &MemoryWork,
    ) -> Result<bool, CUresult> {
        if self.captures.active.is_empty() {
            return Ok(false);
        }
        self.captured(stream, NodeKind::Memory(work.clone()))
    }

    pub(crate) fn captured_record(
        &mut self,
        stream: u32,
        event: u32,
        external: bool,
    ) -> Result<bool, CUresult> {
        if self.captures.active.is_empty() {
            return Ok(false);
        }
        let Some(key) = self.capture_of(stream)? else { return Ok(false) };
        if external {
            return self.captured(stream, NodeKind::Record(self.events.handle(event)));
        }
        if self.events[event].flags & CU_EVENT_INTERPROCESS != 0 {
            return Err(UNSUPPORTED);
        }
        let nodes = self
            .captures
            .active
            .get(&key)
            .and_then(|capture| capture.streams.get(&stream))
            .cloned();
        let mark = Mark { capture: key, nodes: nodes.unwrap_or_default() };
        self.events[event].state = EventState::Captured(Box::new(mark));
        Ok(true)
    }

    /// A wait that has to do with a capture: in a capturing stream, or for an event that was
    /// recorded in one.
    pub(crate) fn captured_wait(
        &mut self,
        stream: u32,
        event: u32,
        external: bool,
    ) -> Result<bool, CUresult> {
        let own = if self.captures.active.is_empty() { None } else { self.capture_of(stream)? };
        let mark = match &self.events[event].state {
            EventState::Captured(mark) => Some((**mark).clone()),
            _ => None,
        };
        match (own, mark) {
            (None, None) => Ok(false),
            (None, Some(mark)) => {
                if external {
                    return Err(ILLEGAL_STATE);
                }
                let is_legacy = self.streams[stream].is_legacy;
                if !self.captures.active.contains_key(&mark.capture) {
                    self.feed(|feed, of| feed.capture_left(What::Event(of.event(event))));
                }
                // Measured: an invalidated capture can be joined no more than one that has ended.
                let capture =
                    self.captures.active.get_mut(&mark.capture).filter(|capture| !capture.invalid);
                let capture = capture.ok_or(INVALID_VALUE)?;
                if is_legacy {
                    capture.invalid = true;
                    return Err(IMPLICIT);
                }
                // The waiting stream joins the capture.
                capture.streams.insert(stream, mark.nodes);
                self.streams[stream].capture = Some(mark.capture);
                Ok(true)
            }
            (Some(_), _) if external => {
                self.captured(stream, NodeKind::Wait(self.events.handle(event)))
            }
            (Some(key), Some(mark)) if mark.capture == key => {
                if let Some(nodes) = self
                    .captures
                    .active
                    .get_mut(&key)
                    .and_then(|capture| capture.streams.get_mut(&stream))
                {
                    nodes.extend(mark.nodes);
                    nodes.sort_unstable();
                    nodes.dedup();
                }
                Ok(true)
            }
            (Some(key), Some(mark)) => {
                self.captures.invalidate(key);
                if !self.captures.active.contains_key(&mark.capture) {
                    return Err(INVALID_VALUE);
                }
                self.captures.invalidate(mark.capture);
                Err(MERGE)
            }
            (Some(_), None) if matches!(self.events[event].state, EventState::Never) => Ok(true),
            (Some(key), None) => {
                self.captures.invalidate(key);
                Err(ISOLATION)
            }
        }
    }

    /// How many captures are under way.
    pub(crate) fn live_captures(&self) -> usize {
        self.captures.active.len()
    }
}
