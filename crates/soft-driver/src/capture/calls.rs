//! The entry points of captures: begin, end, and what is asked of one under way.

use std::collections::BTreeMap;

use cuda_order_check_engine::What;

use crate::abi::*;
use crate::arg::{Array, In, Ptr, StreamArg};
use crate::capture::{
    Capture, CaptureKey, Captures, INVALIDATED, RELAXED, UNJOINED, UNMATCHED, UNSUPPORTED,
    WRONG_THREAD,
};
use crate::graph::Graphs;
use crate::machine::call_frame::CallFrame;
use crate::machine::{Locked, State};
use crate::threads;

exports! { $ [capture::calls]
    cuStreamBeginCapture_v2, cuStreamBeginCapture_v2_ptsz => stream_begin_capture;
    cuStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph_ptsz
        => stream_begin_capture_to_graph;
    cuStreamEndCapture, cuStreamEndCapture_ptsz => stream_end_capture;
    cuStreamIsCapturing, cuStreamIsCapturing_ptsz => stream_is_capturing;
    cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_ptsz => stream_get_capture_info_v1;
    cuStreamGetCaptureInfo_v2, cuStreamGetCaptureInfo_v2_ptsz => stream_get_capture_info_v2;
    cuStreamGetCaptureInfo_v3, cuStreamGetCaptureInfo_v3_ptsz => stream_get_capture_info_v3;
    cuStreamUpdateCaptureDependencies, cuStreamUpdateCaptureDependencies_ptsz
        => stream_update_capture_dependencies;
    cuStreamUpdateCaptureDependencies_v2, cuStreamUpdateCaptureDependencies_v2_ptsz
        => stream_update_capture_dependencies_v2;
    cuThreadExchangeStreamCaptureMode => thread_exchange_stream_capture_mode;
    cuStreamBeginCapture, cuStreamBeginCapture_ptsz => stream_begin_capture_v1;
}

fn begin_capture(
    call: &CallFrame,
    mut state: Locked,
    stream: StreamArg,
    mode: u32,
    onto: Option<(u32, Vec<u32>)>,
) -> Answer {
    if mode > RELAXED {
        return Err(INVALID_VALUE);
    }
    let stream = state.stream(call, stream)?;
    let context = state.streams[stream].context;
    // Measured: the default stream of a green context captures as any other stream does.
    if state.streams[stream].is_legacy && !state.contexts[context].green {
        return Err(UNSUPPORTED);
    }
    if state.captures.is_capturing(stream) {
        return Err(ILLEGAL_STATE);
    }
    let (graph, after) = match onto {
        Some((graph, _)) if state.captures.has_graph(graph) => return Err(ILLEGAL_STATE),
        Some(onto) => onto,
        None => (state.graphs.new_graph(call.number)?, Vec::new()),
    };
    state.captures.begin(stream, context, mode, graph, after);
    Ok(())
}

impl Captures {
    fn begin(&mut self, stream: u32, context: u32, mode: u32, graph: u32, after: Vec<u32>) {
        self.last += 1;
        let capture = Capture {
            origin: stream,
            mode,
            thread: threads::number(),
            context,
            graph,
            invalid: false,
            streams: BTreeMap::from([(stream, after)]),
            left: Vec::new(),
        };
        self.active.insert(self.last, capture);
    }

    /// The streams with work that the capture's first stream would not wait for. One that is
    /// destroyed is no more, and the first stream stands for it.
    fn unjoined(&self, graphs: &Graphs, capture: &Capture) -> Vec<u32> {
        let ends = capture.streams.get(&capture.origin).cloned().unwrap_or_default();
        let reached = graphs.reached_from(ends);
        let out = |nodes: &[u32]| nodes.iter().any(|node| !reached.contains(node));
        let streams = capture.streams.iter().filter(|(_, nodes)| out(nodes));
        let left = out(&capture.left).then_some(capture.origin);
        streams.map(|(stream, _)| *stream).chain(left).collect()
    }

    /// The capture that a stream is in, while it is good: its id, its graph, and what the stream's
    /// next work depends on.
    fn good(&self, stream: u32) -> Option<(CaptureKey, u32, &[u32])> {
        let key = self.key_of(stream)?;
        let capture = self.active.get(&key).filter(|capture| !capture.invalid)?;
        Some((key, capture.graph, capture.streams.get(&stream)?))
    }

    fn status(&self, stream: u32) -> CUstreamCaptureStatus {
        match self.key_of(stream).and_then(|key| self.active.get(&key)) {
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
    begin_capture(call, call.ready()?, stream, mode.0, None)
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
    let state = call.ready()?;
    let graph = state.graphs.find(graph)?;
    let after = state.graphs.nodes_of(graph, dependencies, count)?;
    plain_edges(edges, count)?;
    begin_capture(call, state, stream, mode.0, Some((graph, after)))
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
    let State { captures, graphs, engine, feed, .. } = &mut *state;
    let key = captures.key_of(stream).ok_or(ILLEGAL_STATE)?;
    let capture = captures.active.get_mut(&key).ok_or(ILLEGAL_STATE)?;
    if capture.origin != stream {
        capture.invalid = true;
        return Err(UNMATCHED);
    }
    let mut unjoined = Vec::new();
    let failure = if capture.mode != RELAXED && capture.thread != threads::number() {
        Some(WRONG_THREAD)
    } else if capture.invalid {
        Some(INVALIDATED)
    } else {
        unjoined = captures.unjoined(graphs, &captures.active[&key]);
        (!unjoined.is_empty()).then_some(UNJOINED)
    };
    let Some(code) = failure else {
        let made = captures.end(key).ok_or(ILLEGAL_STATE)?;
        graph.put_if(graphs.graph_handle(made));
        return Ok(());
    };
    captures.abandon(key, graphs, engine, feed.as_deref_mut());
    state.feed(|feed, ids| {
        unjoined.iter().for_each(|stream| feed.capture_left(What::Stream(ids.stream(*stream))));
    });
    Err(code)
}

pub(crate) fn stream_is_capturing(
    call: &CallFrame,
    stream: StreamArg,
    status: Ptr<CUstreamCaptureStatus>,
) -> Answer {
    let mut state = call.ready()?;
    status.required()?;
    let stream = state.stream(call, stream)?;
    state.captures.refuse_question(&state.streams, stream)?;
    status.put(state.captures.status(stream))
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
    let State { captures, graphs, streams, .. } = &mut *state;
    let key = captures.capture_of(streams, stream)?.ok_or(ILLEGAL_STATE)?;
    let capture = captures.active.get_mut(&key).ok_or(ILLEGAL_STATE)?;
    let new = graphs.nodes_of(capture.graph, dependencies, count)?;
    plain_edges(edges, count)?;
    if flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES {
        capture.streams.insert(stream, Vec::new());
    }
    captures.depend(key, stream, new.into_iter());
    Ok(())
}

pub(crate) fn thread_exchange_stream_capture_mode(
    call: &CallFrame,
    mode: Ptr<CUstreamCaptureMode>,
) -> Answer {
    let state = call.ready()?;
    if mode.is_null() {
        return Err(state.misuses.undefined(
            call,
            "NULL, which the real driver dereferences",
            INVALID_VALUE,
        ));
    }
    // Measured: numbers that are no mode are taken too.
    let new = mode.get()?.0;
    let old = threads::with(call.machine.slot, state.life.epoch, |on| {
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
    let State { captures, graphs, streams, .. } = &mut *state;
    captures.refuse_question(streams, stream)?;
    status.put(captures.status(stream))?;
    let Some((id, graph, nodes)) = captures.good(stream) else { return Ok(None) };
    let graph = graphs.graph_handle(graph);
    let handles: Vec<CUgraphNode> = nodes.iter().map(|node| graphs.node_handle(*node)).collect();
    let view = captures.views.entry(stream).or_default();
    *view = handles;
    let dependencies = (view.as_ptr(), view.len());
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

/// The form of CUDA 10.0, whose captures are global.
pub(crate) fn stream_begin_capture_v1(call: &CallFrame, stream: StreamArg) -> Answer {
    stream_begin_capture(call, stream, CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL)
}
