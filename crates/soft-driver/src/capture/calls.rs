//! The entry points of captures: begin, end, and what is asked of one under way.

use std::collections::{BTreeMap, BTreeSet};

use cuda_order_check::What;

use crate::abi::*;
use crate::arg::{Array, In, Ptr, StreamArg};
use crate::capture::{
    Capture, CaptureKey, GLOBAL, INVALIDATED, RELAXED, UNJOINED, UNMATCHED, UNSUPPORTED,
    WRONG_THREAD,
};
use crate::machine::State;
use crate::machine::call_frame::CallFrame;
use crate::machine::thread;

impl State {
    fn begin_capture(
        &mut self,
        call: &CallFrame,
        stream: StreamArg,
        mode: u32,
        onto: Option<(u32, Vec<u32>)>,
    ) -> Answer {
        if mode > RELAXED {
            return Err(INVALID_VALUE);
        }
        let stream = self.stream(call, stream)?;
        // Measured: the default stream of a green context captures as any other stream does.
        if self.streams[stream].is_legacy && !self.contexts[self.streams[stream].context].green {
            return Err(UNSUPPORTED);
        }
        if self.streams[stream].capture.is_some() {
            return Err(ILLEGAL_STATE);
        }
        let (graph, after) = match onto {
            Some((graph, _)) if self.captures.has_graph(graph) => return Err(ILLEGAL_STATE),
            Some(onto) => onto,
            None => (self.new_graph()?.0, Vec::new()),
        };
        self.captures.last += 1;
        let key = self.captures.last;
        let context = self.streams[stream].context;
        let streams = BTreeMap::from([(stream, after)]);
        let thread = thread::number();
        let capture = Capture {
            origin: stream,
            mode,
            thread,
            context,
            graph,
            invalid: false,
            streams,
            left: Vec::new(),
        };
        self.captures.active.insert(key, capture);
        self.look_who_watches();
        self.streams[stream].capture = Some(key);
        Ok(())
    }

    /// Whether a forked stream's work was left behind: the origin's next work would not depend on
    /// it.
    /// The streams with work that its first stream would not wait for. One that is destroyed is no
    /// more, and its first stream stands for it.
    fn unjoined(&self, capture: &Capture) -> Vec<u32> {
        let mut reached = BTreeSet::new();
        let mut left: Vec<u32> = capture.streams.get(&capture.origin).cloned().unwrap_or_default();
        while let Some(node) = left.pop() {
            if reached.insert(node)
                && let Some(node) = self.graphs.nodes.get(node)
            {
                left.extend(&node.after);
            }
        }
        let out = |nodes: &[u32]| nodes.iter().any(|node| !reached.contains(node));
        let streams = capture.streams.iter().filter(|(_, nodes)| out(nodes));
        let left = out(&capture.left).then_some(capture.origin);
        streams.map(|(stream, _)| *stream).chain(left).collect()
    }

    /// The capture that a stream is in, while it is good: its id, its graph, and what the stream's
    /// next work depends on.
    pub(crate) fn good_capture(&self, stream: u32) -> Option<(CaptureKey, u32, Vec<u32>)> {
        let key = self.streams[stream].capture?;
        let capture = self.captures.active.get(&key).filter(|capture| !capture.invalid)?;
        Some((key, capture.graph, capture.streams.get(&stream).cloned().unwrap_or_default()))
    }
}

impl State {
    pub(crate) fn capture_status(&self, stream: u32) -> CUstreamCaptureStatus {
        match self.streams[stream].capture.and_then(|key| self.captures.active.get(&key)) {
            None => CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE,
            Some(Capture { invalid: true, .. }) => {
                CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_INVALIDATED
            }
            Some(_) => CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE,
        }
    }
}

pub(crate) fn stream_begin_capture(
    call: &CallFrame,
    stream: StreamArg,
    mode: CUstreamCaptureMode,
) -> Answer {
    call.ready()?.begin_capture(call, stream, mode.0, None)
}

/// The form of CUDA 10.0, whose captures are global.
pub(crate) fn stream_begin_capture_v1(call: &CallFrame, stream: StreamArg) -> Answer {
    call.ready()?.begin_capture(call, stream, GLOBAL, None)
}

pub(crate) fn stream_begin_capture_to_graph(
    call: &CallFrame,
    stream: StreamArg,
    graph: Ptr<CUgraph_st>,
    dependencies: In<CUgraphNode>,
    edges: In<CUgraphEdgeData>,
    count: usize,
    mode: CUstreamCaptureMode,
) -> Answer {
    let mut state = call.ready()?;
    let graph = state.graph(graph)?;
    let after = state.nodes_of(graph, dependencies, count)?;
    plain_edges(edges, count)?;
    state.begin_capture(call, stream, mode.0, Some((graph, after)))
}

pub(crate) fn stream_end_capture(
    call: &CallFrame,
    stream: StreamArg,
    graph: Ptr<CUgraph>,
) -> Answer {
    let mut state = call.ready()?;
    // NULL is taken: a program that asked for the graph while it was being made has it already.
    graph.put_if(core::ptr::null_mut());
    let stream = state.stream(call, stream)?;
    let key = state.streams[stream].capture.ok_or(ILLEGAL_STATE)?;
    let capture = state.captures.active.get_mut(&key).ok_or(ILLEGAL_STATE)?;
    if capture.origin != stream {
        capture.invalid = true;
        return Err(UNMATCHED);
    }
    let failure = if capture.mode != RELAXED && capture.thread != thread::number() {
        Some(WRONG_THREAD)
    } else if capture.invalid {
        Some(INVALIDATED)
    } else {
        let capture = &state.captures.active[&key];
        let unjoined = state.unjoined(capture);
        state.feed(|feed, of| {
            unjoined.iter().for_each(|stream| feed.capture_left(What::Stream(of.stream(*stream))));
        });
        (!unjoined.is_empty()).then_some(UNJOINED)
    };
    let made = state.end_capture(key, failure.is_none()).ok_or(ILLEGAL_STATE)?;
    match failure {
        Some(code) => Err(code),
        None => {
            graph.put_if(state.graph_handle(made));
            Ok(())
        }
    }
}

pub(crate) fn stream_is_capturing(
    call: &CallFrame,
    stream: StreamArg,
    status: Ptr<CUstreamCaptureStatus>,
) -> Answer {
    let mut state = call.ready()?;
    status.required()?;
    let stream = state.stream(call, stream)?;
    state.refuse_question(stream)?;
    status.put(state.capture_status(stream))
}

/// Refuses edges that carry data: those are of kernel nodes, which there are none of here. NULL is
/// taken for plain edges.
pub(crate) fn plain_edges(edges: In<CUgraphEdgeData>, count: usize) -> Answer {
    let data = if edges.is_null() { Vec::new() } else { edges.read_array(count)? };
    if data.iter().all(|edge| *edge == CUgraphEdgeData::default()) {
        Ok(())
    } else {
        Err(INVALID_VALUE)
    }
}

pub(crate) fn stream_update_capture_dependencies(
    call: &CallFrame,
    stream: StreamArg,
    dependencies: Array<CUgraphNode>,
    count: usize,
    flags: u32,
) -> Answer {
    stream_update_capture_dependencies_v2(call, stream, dependencies, Ptr::NULL, count, flags)
}

pub(crate) fn stream_update_capture_dependencies_v2(
    call: &CallFrame,
    stream: StreamArg,
    dependencies: Array<CUgraphNode>,
    edges: In<CUgraphEdgeData>,
    count: usize,
    flags: u32,
) -> Answer {
    let mut state = call.ready()?;
    if flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES {
        return Err(INVALID_VALUE);
    }
    let stream = state.stream(call, stream)?;
    let key = state.capture_of(stream)?.ok_or(ILLEGAL_STATE)?;
    let graph =
        state.captures.active.get(&key).map(|capture| capture.graph).ok_or(ILLEGAL_STATE)?;
    let new = state.nodes_of(graph, dependencies, count)?;
    plain_edges(edges, count)?;
    if let Some(nodes) =
        state.captures.active.get_mut(&key).and_then(|capture| capture.streams.get_mut(&stream))
    {
        if flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES {
            nodes.clear();
        }
        nodes.extend(new);
        nodes.sort_unstable();
        nodes.dedup();
    }
    Ok(())
}

pub(crate) fn thread_exchange_stream_capture_mode(
    call: &CallFrame,
    mode: Ptr<CUstreamCaptureMode>,
) -> Answer {
    let state = call.ready()?;
    if mode.is_null() {
        return Err(state.misuse(call, "NULL, which the real driver dereferences", INVALID_VALUE));
    }
    // Measured: numbers that are no mode are taken too.
    let new = mode.get()?.0;
    let old = thread::with(call.machine.slot, state.epoch, |on| {
        core::mem::replace(&mut on.capture_mode, new)
    });
    mode.put(CUstreamCaptureMode(old))
}

struct Info {
    id: u64,
    graph: CUgraph,
    /// Kept with the stream, as long as its next call.
    dependencies: (*const CUgraphNode, usize),
}

fn capture_info(
    call: &CallFrame,
    stream: StreamArg,
    status: Ptr<CUstreamCaptureStatus>,
) -> Result<Option<Info>, CUresult> {
    let mut state = call.ready()?;
    status.required()?;
    let stream = state.stream(call, stream)?;
    state.refuse_question(stream)?;
    let now = state.capture_status(stream);
    status.put(now)?;
    let Some((id, graph, nodes)) = state.good_capture(stream) else { return Ok(None) };
    let graph = state.graph_handle(graph);
    let handles: Vec<usize> =
        nodes.into_iter().map(|node| state.graphs.nodes.handle(node) as usize).collect();
    let view = &mut state.streams[stream].capture_view;
    *view = handles;
    let dependencies = (view.as_ptr().cast(), view.len());
    Ok(Some(Info { id, graph, dependencies }))
}

pub(crate) fn stream_get_capture_info_v1(
    call: &CallFrame,
    stream: StreamArg,
    status: Ptr<CUstreamCaptureStatus>,
    id: Ptr<cuuint64_t>,
) -> Answer {
    stream_get_capture_info_v2(call, stream, status, id, Ptr::NULL, Ptr::NULL, Ptr::NULL)
}

pub(crate) fn stream_get_capture_info_v2(
    call: &CallFrame,
    stream: StreamArg,
    status: Ptr<CUstreamCaptureStatus>,
    id: Ptr<cuuint64_t>,
    graph: Ptr<CUgraph>,
    dependencies: Ptr<*const CUgraphNode>,
    count: Ptr<usize>,
) -> Answer {
    stream_get_capture_info_v3(call, stream, status, id, graph, dependencies, Ptr::NULL, count)
}

#[allow(clippy::too_many_arguments)]
pub(crate) fn stream_get_capture_info_v3(
    call: &CallFrame,
    stream: StreamArg,
    status: Ptr<CUstreamCaptureStatus>,
    id: Ptr<cuuint64_t>,
    graph: Ptr<CUgraph>,
    dependencies: Ptr<*const CUgraphNode>,
    edges: Ptr<*const CUgraphEdgeData>,
    count: Ptr<usize>,
) -> Answer {
    if let Some(info) = capture_info(call, stream, status)? {
        id.put_if(info.id);
        graph.put_if(info.graph);
        dependencies.put_if(info.dependencies.0);
        // No edge here carries data.
        edges.put_if(core::ptr::null());
        count.put_if(info.dependencies.1);
    }
    Ok(())
}
