//! Questions about a capture under way.

use crate::abi::*;
use crate::arg::{Ptr, StreamArg};
use crate::model::call_frame::CallFrame;

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
        nodes.into_iter().map(|node| state.nodes.handle(node) as usize).collect();
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
