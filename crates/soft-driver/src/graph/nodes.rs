//! For cudarc (clones and uploads) and cuda.core (its graph definitions): lists of nodes, empty
//! nodes; clones, uploads, and instantiation with parameters.

use core::ffi::c_uint;
use std::collections::BTreeSet;

use crate::abi::*;
use crate::arg::{Array, In, Ptr, StreamArg};
use crate::graph::NodeKind;
use crate::graph::calls::add_node_with;
use crate::graph::exec::{
    AUTO_FREE, DEVICE_LAUNCH, NODE_PRIORITY, check_instantiate_flags, instantiate,
};
use crate::machine::State;
use crate::machine::call_frame::CallFrame;

exports! { $ [graph::nodes]
    cuGraphAddEmptyNode => graph_add_empty_node;
    cuGraphGetNodes => graph_get_nodes;
    cuGraphGetRootNodes => graph_get_root_nodes;
    cuGraphNodeGetType => graph_node_get_type;
    cuGraphUpload, cuGraphUpload_ptsz => graph_upload;
    cuGraphInstantiateWithParams, cuGraphInstantiateWithParams_ptsz
        => graph_instantiate_with_params;
    cuGraphGetEdges => graph_get_edges;
    cuGraphGetEdges_v2 => graph_get_edges_v2;
    cuGraphNodeGetDependencies => graph_node_get_dependencies;
    cuGraphNodeGetDependencies_v2 => graph_node_get_dependencies_v2;
    cuGraphNodeGetDependentNodes => graph_node_get_dependent_nodes;
    cuGraphNodeGetDependentNodes_v2 => graph_node_get_dependent_nodes_v2;
    cuGraphClone => graph_clone;
}

/// Hands out handles as the driver does: with no array the count alone, otherwise as many as there is
/// room for, the rest of the room filled with NULL.
fn list(found: &[CUgraphNode], nodes: Array<CUgraphNode>, count: Ptr<usize>) -> Answer {
    count.required()?;
    if nodes.is_null() {
        return count.put(found.len());
    }
    let room = count.get()?;
    // Measured: a list without room is refused, also where there is nothing to list.
    if room == 0 {
        return Err(INVALID_VALUE);
    }
    fill(found, nodes, room);
    count.put(found.len().min(room))
}

fn handles(state: &State, nodes: &[u32]) -> Vec<CUgraphNode> {
    nodes.iter().map(|node| state.graphs.node_handle(*node)).collect()
}

fn fill(found: &[CUgraphNode], nodes: Array<CUgraphNode>, room: usize) {
    for at in 0..room {
        let handle = found.get(at).copied().unwrap_or(core::ptr::null_mut());
        // SAFETY: by the contract of the C call the array has room for as many as its count.
        unsafe { nodes.raw().add(at).write(handle) };
    }
}

/// No edge here carries data: all of it is zero.
fn no_data(edges: Array<CUgraphEdgeData>, room: usize) {
    if !edges.is_null() {
        // SAFETY: by the contract of the C call the array has room for as many as its count; zeros
        // are valid edge data.
        unsafe { edges.raw().write_bytes(0, room) };
    }
}

pub(crate) fn graph_get_nodes(
    call: &CallFrame,
    graph: Ptr<CUgraph_st>,
    nodes: Array<CUgraphNode>,
    count: Ptr<usize>,
) -> Answer {
    let state = call.ready()?;
    let graph = state.graphs.find(graph)?;
    list(&handles(&state, state.graphs.graph(graph).nodes()), nodes, count)
}

pub(crate) fn graph_get_root_nodes(
    call: &CallFrame,
    graph: Ptr<CUgraph_st>,
    nodes: Array<CUgraphNode>,
    count: Ptr<usize>,
) -> Answer {
    let state = call.ready()?;
    let graph = state.graphs.find(graph)?;
    let later: BTreeSet<u32> = state.graphs.edges(graph).map(|(_, to)| to).collect();
    let nodes_of = state.graphs.graph(graph).nodes().iter().copied();
    let roots: Vec<u32> = nodes_of.filter(|node| !later.contains(node)).collect();
    list(&handles(&state, &roots), nodes, count)
}

pub(crate) fn graph_get_edges(
    call: &CallFrame,
    graph: Ptr<CUgraph_st>,
    from: Array<CUgraphNode>,
    to: Array<CUgraphNode>,
    count: Ptr<usize>,
) -> Answer {
    let state = call.ready()?;
    let graph = state.graphs.find(graph)?;
    if from.is_null() != to.is_null() {
        return Err(INVALID_VALUE);
    }
    let (sources, targets): (Vec<u32>, Vec<u32>) = state.graphs.edges(graph).unzip();
    if !to.is_null() {
        fill(&handles(&state, &targets), to, count.get()?);
    }
    list(&handles(&state, &sources), from, count)
}

pub(crate) fn graph_get_edges_v2(
    call: &CallFrame,
    graph: Ptr<CUgraph_st>,
    from: Array<CUgraphNode>,
    to: Array<CUgraphNode>,
    data: Array<CUgraphEdgeData>,
    count: Ptr<usize>,
) -> Answer {
    no_data(data, count.get()?);
    graph_get_edges(call, graph, from, to, count)
}

pub(crate) fn graph_node_get_dependencies(
    call: &CallFrame,
    node: Ptr<CUgraphNode_st>,
    nodes: Array<CUgraphNode>,
    count: Ptr<usize>,
) -> Answer {
    let state = call.ready()?;
    list(&handles(&state, state.graphs.node(node)?.after()), nodes, count)
}

pub(crate) fn graph_node_get_dependencies_v2(
    call: &CallFrame,
    node: Ptr<CUgraphNode_st>,
    nodes: Array<CUgraphNode>,
    data: Array<CUgraphEdgeData>,
    count: Ptr<usize>,
) -> Answer {
    no_data(data, count.get()?);
    graph_node_get_dependencies(call, node, nodes, count)
}

pub(crate) fn graph_node_get_dependent_nodes(
    call: &CallFrame,
    node: Ptr<CUgraphNode_st>,
    nodes: Array<CUgraphNode>,
    count: Ptr<usize>,
) -> Answer {
    let state = call.ready()?;
    let index = state.graphs.find_node(node.raw())?;
    let edges = state.graphs.edges(state.graphs.node(node)?.graph);
    let later: Vec<u32> = edges.filter(|(from, _)| *from == index).map(|(_, to)| to).collect();
    list(&handles(&state, &later), nodes, count)
}

pub(crate) fn graph_node_get_dependent_nodes_v2(
    call: &CallFrame,
    node: Ptr<CUgraphNode_st>,
    nodes: Array<CUgraphNode>,
    data: Array<CUgraphEdgeData>,
    count: Ptr<usize>,
) -> Answer {
    no_data(data, count.get()?);
    graph_node_get_dependent_nodes(call, node, nodes, count)
}

pub(crate) fn graph_node_get_type(
    call: &CallFrame,
    node: Ptr<CUgraphNode_st>,
    kind: Ptr<c_uint>,
) -> Answer {
    let state = call.ready()?;
    kind.required()?;
    kind.put(state.graphs.node(node)?.kind.number())
}

/// The flag of an instantiation that uploads the graph at once.
const UPLOAD: u64 = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD as u64;

pub(crate) fn graph_instantiate_with_params(
    call: &CallFrame,
    exec: Ptr<CUgraphExec>,
    graph: Ptr<CUgraph_st>,
    params: Ptr<CUDA_GRAPH_INSTANTIATE_PARAMS>,
) -> Answer {
    let mut settings = params.get()?;
    let state = call.ready()?;
    exec.required()?;
    let known = AUTO_FREE | UPLOAD | DEVICE_LAUNCH | NODE_PRIORITY;
    check_instantiate_flags(settings.flags, known)?;
    let done = instantiate(call, state, exec, graph, settings.flags);
    // Documented: what went wrong, and with which node.
    let (result, node) = match done {
        Ok(()) => (CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_SUCCESS, 0),
        Err((_, node)) if node != 0 && settings.flags & DEVICE_LAUNCH != 0 => {
            let result =
                CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED;
            (result, node)
        }
        Err((_, node)) => (CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_ERROR, node),
    };
    settings.hErrNode_out = core::ptr::without_provenance_mut(node as usize);
    settings.result_out = result;
    params.put(settings)?;
    done.map_err(|(code, _)| code)
}

pub(crate) fn graph_add_empty_node(
    call: &CallFrame,
    node: Ptr<CUgraphNode>,
    graph: Ptr<CUgraph_st>,
    dependencies: In<CUgraphNode>,
    count: usize,
) -> Answer {
    add_node_with(call, node, graph, dependencies, count, |_| Ok(NodeKind::Empty))
}

/// Nothing has to be sent ahead to a device that is this machine.
pub(crate) fn graph_upload(
    call: &CallFrame,
    exec: Ptr<CUgraphExec_st>,
    stream: StreamArg,
) -> Answer {
    let mut state = call.ready()?;
    state.graphs.find_exec(exec)?;
    state.stream(call, stream)?;
    Ok(())
}

pub(crate) fn graph_clone(call: &CallFrame, clone: Ptr<CUgraph>, graph: Ptr<CUgraph_st>) -> Answer {
    let mut state = call.ready()?;
    clone.required()?;
    let graph = state.graphs.find(graph)?;
    let State { graphs, engine, .. } = &mut *state;
    let new = graphs.copy_graph(engine, call.number, graph, 0)?;
    clone.put(graphs.graph_handle(new))
}
