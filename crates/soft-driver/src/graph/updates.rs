//! For cuda.core (its graph definitions): updates of executable graphs by graphs of the same shape;
//! the numbers of graphs and nodes.

use core::ffi::{c_uint, c_ulonglong};

use crate::abi::*;
use crate::arg::Ptr;
use crate::graph::exec;
use crate::graph::parameters::may_replace;
use crate::graph::{ExecNode, NodeKind};
use crate::machine::call_frame::CallFrame;
use crate::machine::{Locked, State};

exports! { $ [graph::updates]
    cuGraphExecUpdate => graph_exec_update;
    cuGraphExecUpdate_v2 => graph_exec_update_v2;
    cuGraphNodeSetEnabled => graph_node_set_enabled;
    cuGraphNodeGetEnabled => graph_node_get_enabled;
    cuGraphNodeFindInClone => graph_node_find_in_clone;
    cuGraphGetId => graph_get_id;
    cuGraphExecGetId => graph_exec_get_id;
    cuGraphNodeGetLocalId => graph_node_get_local_id;
    cuGraphNodeGetToolsId => graph_node_get_tools_id;
    cuGraphNodeGetContainingGraph => graph_node_get_containing_graph;
}

const UPDATED: CUgraphExecUpdateResult = CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_SUCCESS;

/// Why an update did not happen: nodes or edges changed, a node is of another kind, a node has
/// parameters that it cannot have.
const TOPOLOGY_CHANGED: CUgraphExecUpdateResult =
    CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
const NODE_TYPE_CHANGED: CUgraphExecUpdateResult =
    CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
const PARAMETERS_CHANGED: CUgraphExecUpdateResult =
    CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;

/// What keeps an executable graph from being updated, and the new graph's node that does.
fn update_refused(old: &[ExecNode], new: &[ExecNode]) -> Option<(CUgraphExecUpdateResult, u64)> {
    if old.len() != new.len() {
        return Some((TOPOLOGY_CHANGED, 0));
    }
    old.iter().zip(new).find_map(|(old, new)| {
        if old.kind.number() != new.kind.number() || old.depth != new.depth {
            Some((NODE_TYPE_CHANGED, new.original))
        } else if old.after != new.after {
            Some((TOPOLOGY_CHANGED, new.original))
        } else if !may_replace(&old.kind, &new.kind) {
            Some((PARAMETERS_CHANGED, new.original))
        } else {
            None
        }
    })
}

/// An executable graph gets the work of a graph with the same topology.
fn update(
    call: &CallFrame,
    mut state: Locked,
    exec: Ptr<CUgraphExec_st>,
    graph: Ptr<CUgraph_st>,
) -> Result<Option<(CUgraphExecUpdateResult, u64)>, CUresult> {
    let exec = state.graphs.find_exec(exec)?;
    let graph = state.graphs.find(graph)?;
    // Measured: a circle is another topology.
    let Some(new) = state.graphs.flattened(graph) else { return Ok(Some((TOPOLOGY_CHANGED, 0))) };
    if let Some(refused) = update_refused(&state.graphs.execs[exec].nodes, &new) {
        return Ok(Some(refused));
    }
    exec::refuse_nodes_of_gone_events(&state, call, &new).map_err(|(code, _)| code)?;
    for (old, new) in state.graphs.execs[exec].nodes.iter_mut().zip(new) {
        (old.kind, old.set) = (new.kind, false);
    }
    let State { graphs, engine, feed, .. } = &mut *state;
    let objects = engine.objects.share(&graphs.objects_within(graph));
    graphs.execs[exec].objects.extend(objects);
    graphs.feed_exec(feed.as_deref_mut(), exec);
    Ok(None)
}

pub(crate) fn graph_exec_update_v2(
    call: &CallFrame,
    exec: Ptr<CUgraphExec_st>,
    graph: Ptr<CUgraph_st>,
    info: Ptr<CUgraphExecUpdateResultInfo>,
) -> Answer {
    let state = call.ready()?;
    let refused = update(call, state, exec, graph)?;
    let (result, node) = refused.unwrap_or((UPDATED, 0));
    let error_node = core::ptr::without_provenance_mut(node as usize);
    info.put_if(CUgraphExecUpdateResultInfo {
        result,
        errorNode: error_node,
        errorFromNode: core::ptr::null_mut(),
    });
    if refused.is_some() { Err(UPDATE_FAILURE) } else { Ok(()) }
}

pub(crate) fn graph_exec_update(
    call: &CallFrame,
    exec: Ptr<CUgraphExec_st>,
    graph: Ptr<CUgraph_st>,
    node: Ptr<CUgraphNode>,
    result: Ptr<c_uint>,
) -> Answer {
    let state = call.ready()?;
    result.required()?;
    let refused = update(call, state, exec, graph)?;
    let (why, at_fault) = refused.unwrap_or((UPDATED, 0));
    node.put_if(core::ptr::without_provenance_mut(at_fault as usize));
    result.put(why.0)?;
    if refused.is_some() { Err(UPDATE_FAILURE) } else { Ok(()) }
}

const UPDATE_FAILURE: CUresult = CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;

/// The node of a clone that was made of a node.
pub(crate) fn graph_node_find_in_clone(
    call: &CallFrame,
    node: Ptr<CUgraphNode>,
    original: Ptr<CUgraphNode_st>,
    clone: Ptr<CUgraph_st>,
) -> Answer {
    let state = call.ready()?;
    node.required()?;
    state.graphs.node(original)?;
    let clone = state.graphs.find(clone)?;
    let found = state.graphs.clone_of(clone, original.addr()).ok_or(INVALID_VALUE)?;
    node.put(state.graphs.node_handle(found))
}

pub(crate) fn graph_get_id(call: &CallFrame, graph: Ptr<CUgraph_st>, id: Ptr<c_uint>) -> Answer {
    let state = call.ready()?;
    id.required()?;
    id.put(state.graphs.graph(state.graphs.find(graph)?).id)
}

pub(crate) fn graph_exec_get_id(
    call: &CallFrame,
    exec: Ptr<CUgraphExec_st>,
    id: Ptr<c_uint>,
) -> Answer {
    let state = call.ready()?;
    id.required()?;
    id.put(state.graphs.execs[state.graphs.find_exec(exec)?].id)
}

pub(crate) fn graph_node_get_local_id(
    call: &CallFrame,
    node: Ptr<CUgraphNode_st>,
    id: Ptr<c_uint>,
) -> Answer {
    let state = call.ready()?;
    id.required()?;
    id.put(state.graphs.node(node)?.id)
}

/// One number of a node among those of all graphs.
pub(crate) fn graph_node_get_tools_id(
    call: &CallFrame,
    node: Ptr<CUgraphNode_st>,
    id: Ptr<c_ulonglong>,
) -> Answer {
    let state = call.ready()?;
    id.required()?;
    let node = state.graphs.node(node)?;
    id.put(u64::from(state.graphs.graph(node.graph).id) << 32 | u64::from(node.id))
}

pub(crate) fn graph_node_get_containing_graph(
    call: &CallFrame,
    node: Ptr<CUgraphNode_st>,
    graph: Ptr<CUgraph>,
) -> Answer {
    let state = call.ready()?;
    graph.required()?;
    graph.put(state.graphs.graph_handle(state.graphs.node(node)?.graph))
}

/// The place of a node in an executable graph that can be left out of launches. Measured: of other
/// kinds that is an invalid value.
fn switchable(
    state: &mut State,
    exec: Ptr<CUgraphExec_st>,
    node: Ptr<CUgraphNode_st>,
) -> Result<(u32, &mut ExecNode), CUresult> {
    let exec = state.graphs.find_exec(exec)?;
    let node = state.graphs.exec_node(exec, node)?;
    match node.kind {
        NodeKind::Memory(_) | NodeKind::Device(_) => Ok((exec, node)),
        _ => Err(INVALID_VALUE),
    }
}

pub(crate) fn graph_node_set_enabled(
    call: &CallFrame,
    exec: Ptr<CUgraphExec_st>,
    node: Ptr<CUgraphNode_st>,
    enabled: c_uint,
) -> Answer {
    let mut state = call.ready()?;
    let (exec, node) = switchable(&mut state, exec, node)?;
    node.enabled = enabled != 0;
    let State { graphs, feed, .. } = &mut *state;
    graphs.feed_exec(feed.as_deref_mut(), exec);
    Ok(())
}

pub(crate) fn graph_node_get_enabled(
    call: &CallFrame,
    exec: Ptr<CUgraphExec_st>,
    node: Ptr<CUgraphNode_st>,
    enabled: Ptr<c_uint>,
) -> Answer {
    let mut state = call.ready()?;
    enabled.required()?;
    let (_, node) = switchable(&mut state, exec, node)?;
    enabled.put(u32::from(node.enabled))
}
