//! How graphs are made and destroyed, and how a call adds a node.

use core::ffi::c_uint;

use crate::abi::*;
use crate::arg::{In, Ptr};
use crate::graph::{NodeKind, NodeParams};
use crate::machine::State;
use crate::machine::call_frame::CallFrame;

exports! { $ [graph::calls]
    cuGraphCreate => graph_create;
    cuGraphDestroy => graph_destroy;
}

pub(crate) fn graph_create(call: &CallFrame, graph: Ptr<CUgraph>, flags: c_uint) -> Answer {
    let mut state = call.ready()?;
    graph.required()?;
    if flags != 0 {
        return Err(INVALID_VALUE);
    }
    let new = state.graphs.new_graph(call.number)?;
    graph.put(state.graphs.graph_handle(new))
}

pub(crate) fn graph_destroy(call: &CallFrame, graph: Ptr<CUgraph_st>) -> Answer {
    let mut state = call.ready()?;
    let index = state.graphs.find(graph)?;
    if state.captures.has_graph(index) {
        return Err(ILLEGAL_STATE);
    }
    // Documented: it goes with its node.
    if state.graphs.graph(index).parent.is_some() {
        return Err(INVALID_VALUE);
    }
    let State { graphs, engine, feed, .. } = &mut *state;
    engine.objects.release_all(&mut engine.jobs, feed.as_deref_mut(), graphs.remove_graph(index));
    Ok(())
}

pub(crate) fn add_node_with(
    call: &CallFrame,
    out: Ptr<CUgraphNode>,
    graph: Ptr<CUgraph_st>,
    dependencies: In<CUgraphNode>,
    count: usize,
    kind: impl FnOnce(&State) -> Result<NodeKind, CUresult>,
) -> Answer {
    add_node_of(call, out, graph, dependencies, count, |state| Ok((kind(state)?, None)))
}

/// As [`add_node_with`], for a node that shows the parameters it was made with.
pub(crate) fn add_node_of(
    call: &CallFrame,
    out: Ptr<CUgraphNode>,
    graph: Ptr<CUgraph_st>,
    dependencies: In<CUgraphNode>,
    count: usize,
    made: impl FnOnce(&State) -> Result<(NodeKind, Option<NodeParams>), CUresult>,
) -> Answer {
    let mut state = call.ready()?;
    out.required()?;
    let graph = state.graphs.find(graph)?;
    let after = state.graphs.nodes_of(graph, dependencies, count)?;
    let (kind, params) = made(&state)?;
    let node = state.graphs.add_node(call.number, graph, after, kind)?;
    state.graphs.set_params(node, params);
    out.put(state.graphs.node_handle(node))
}
