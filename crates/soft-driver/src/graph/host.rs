//! Nodes of graphs that call a function of the host.

use crate::abi::*;
use crate::arg::{In, Ptr};
use crate::engine::work::{HostCall, UserData};
use crate::graph::NodeKind;
use crate::graph::calls::add_node_with;
use crate::machine::State;
use crate::machine::call_frame::CallFrame;

exports! { $ [graph::host]
    cuGraphAddHostNode => graph_add_host_node;
    cuGraphHostNodeGetParams => graph_host_node_get_params;
    cuGraphHostNodeSetParams => graph_host_node_set_params;
    cuGraphExecHostNodeSetParams => graph_exec_host_node_set_params;
}

fn host_kind(params: In<CUDA_HOST_NODE_PARAMS>) -> Result<NodeKind, CUresult> {
    let params = params.get()?;
    let function = params.fn_.ok_or(INVALID_VALUE)?;
    Ok(NodeKind::Host(HostCall::Function(function, UserData(params.userData))))
}

pub(crate) fn graph_add_host_node(
    call: &CallFrame,
    node: Ptr<CUgraphNode>,
    graph: Ptr<CUgraph_st>,
    dependencies: In<CUgraphNode>,
    count: usize,
    params: In<CUDA_HOST_NODE_PARAMS>,
) -> Answer {
    add_node_with(call, node, graph, dependencies, count, |_| host_kind(params))
}

pub(crate) fn graph_host_node_get_params(
    call: &CallFrame,
    node: Ptr<CUgraphNode_st>,
    params: Ptr<CUDA_HOST_NODE_PARAMS>,
) -> Answer {
    let state = call.ready()?;
    match state.graphs.node(node)?.kind {
        NodeKind::Host(HostCall::Function(function, data)) => {
            params.put(CUDA_HOST_NODE_PARAMS { fn_: Some(function), userData: data.0 })
        }
        _ => Err(INVALID_VALUE),
    }
}

pub(crate) fn graph_host_node_set_params(
    call: &CallFrame,
    node: Ptr<CUgraphNode_st>,
    params: In<CUDA_HOST_NODE_PARAMS>,
) -> Answer {
    let mut state = call.ready()?;
    let node = state.graphs.node_mut(node)?;
    if !matches!(node.kind, NodeKind::Host(_)) {
        return Err(INVALID_VALUE);
    }
    node.kind = host_kind(params)?;
    Ok(())
}

pub(crate) fn graph_exec_host_node_set_params(
    call: &CallFrame,
    exec: Ptr<CUgraphExec_st>,
    node: Ptr<CUgraphNode_st>,
    params: In<CUDA_HOST_NODE_PARAMS>,
) -> Answer {
    let mut state = call.ready()?;
    let exec = state.graphs.find_exec(exec)?;
    let kind = host_kind(params)?;
    let node = state.graphs.exec_node(exec, node)?;
    if !matches!(node.kind, NodeKind::Host(_)) {
        return Err(INVALID_VALUE);
    }
    node.kind = kind;
    let State { graphs, feed, .. } = &mut *state;
    graphs.feed_exec(feed.as_deref_mut(), exec);
    Ok(())
}
