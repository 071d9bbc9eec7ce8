//! For cuda.core (its graph definitions): changes of graphs: edges, nodes that end, child graphs.

use crate::abi::*;
use crate::arg::{In, Ptr};
use crate::capture::calls::plain_edges;
use crate::graph::NodeKind;
use crate::graph::exec::NODE_PRIORITY;
use crate::machine::call_frame::CallFrame;
use crate::machine::{Locked, State};

exports! { $ [graph::edits]
    cuGraphAddDependencies => (graph_change_dependencies::<true>);
    cuGraphAddDependencies_v2 => (graph_change_dependencies_v2::<true>);
    cuGraphRemoveDependencies => (graph_change_dependencies::<false>);
    cuGraphRemoveDependencies_v2 => (graph_change_dependencies_v2::<false>);
    cuGraphDestroyNode => graph_destroy_node;
    cuGraphAddChildGraphNode => graph_add_child_graph_node;
    cuGraphChildGraphNodeGetGraph => graph_child_graph_node_get_graph;
    cuGraphExecGetFlags => graph_exec_get_flags;
}

/// The edges that a call names, all of nodes of this graph.
fn pairs(
    state: &State,
    graph: u32,
    from: In<CUgraphNode>,
    to: In<CUgraphNode>,
    count: usize,
) -> Result<Vec<(u32, u32)>, CUresult> {
    let (from, to) =
        (state.graphs.nodes_of(graph, from, count)?, state.graphs.nodes_of(graph, to, count)?);
    let pairs: Vec<(u32, u32)> = from.into_iter().zip(to).collect();
    let twice = |(at, pair): (usize, &(u32, u32))| pairs[..at].contains(pair);
    if pairs.iter().enumerate().any(twice) { Err(INVALID_VALUE) } else { Ok(pairs) }
}

/// Adds edges or removes them. Measured: an edge that is there already, one that is not there to be
/// removed, one of a node to itself, and one to another graph's node are invalid values. A circle is
/// found when the graph is instantiated.
fn change_edges(
    mut state: Locked,
    graph: Ptr<CUgraph_st>,
    (from, to, count): (In<CUgraphNode>, In<CUgraphNode>, usize),
    adds: bool,
) -> Answer {
    let graph = state.graphs.find(graph)?;
    let pairs = pairs(&state, graph, from, to, count)?;
    let fits = |(from, to): &(u32, u32)| from != to && state.graphs.has_edge(*from, *to) != adds;
    if !pairs.iter().all(fits) {
        return Err(INVALID_VALUE);
    }
    match adds {
        true => state.graphs.add_edges(pairs),
        false => state.graphs.remove_edges(pairs),
    }
    Ok(())
}

pub(crate) fn graph_change_dependencies<const ADDS: bool>(
    call: &CallFrame,
    graph: Ptr<CUgraph_st>,
    from: In<CUgraphNode>,
    to: In<CUgraphNode>,
    count: usize,
) -> Answer {
    change_edges(call.ready()?, graph, (from, to, count), ADDS)
}

pub(crate) fn graph_change_dependencies_v2<const ADDS: bool>(
    call: &CallFrame,
    graph: Ptr<CUgraph_st>,
    from: In<CUgraphNode>,
    to: In<CUgraphNode>,
    edges: In<CUgraphEdgeData>,
    count: usize,
) -> Answer {
    let state = call.ready()?;
    plain_edges(edges, count)?;
    change_edges(state, graph, (from, to, count), ADDS)
}

/// The node's edges go with it; executable graphs stay as they are.
pub(crate) fn graph_destroy_node(call: &CallFrame, node: Ptr<CUgraphNode_st>) -> Answer {
    let mut state = call.ready()?;
    let index = state.graphs.find_node(node.raw())?;
    // What is captured next may depend on it.
    if state.captures.has_graph(state.graphs.node(node)?.graph) {
        return Err(ILLEGAL_STATE);
    }
    let State { graphs, engine, feed, .. } = &mut *state;
    engine.objects.release_all(&mut engine.jobs, feed.as_deref_mut(), graphs.remove_node(index));
    Ok(())
}

/// The node has a copy of the graph, as it is now.
pub(crate) fn graph_add_child_graph_node(
    call: &CallFrame,
    out: Ptr<CUgraphNode>,
    graph: Ptr<CUgraph_st>,
    dependencies: In<CUgraphNode>,
    count: usize,
    child: Ptr<CUgraph_st>,
) -> Answer {
    let mut state = call.ready()?;
    out.required()?;
    let graph = state.graphs.find(graph)?;
    let after = state.graphs.nodes_of(graph, dependencies, count)?;
    let child = state.graphs.find(child)?;
    let State { graphs, engine, .. } = &mut *state;
    let copy = graphs.copy_graph(engine, call.number, child, 1)?;
    let node = graphs.add_node(call.number, graph, after, NodeKind::Child(copy))?;
    graphs.graph_mut(copy).parent = Some(node);
    out.put(graphs.node_handle(node))
}

pub(crate) fn graph_child_graph_node_get_graph(
    call: &CallFrame,
    node: Ptr<CUgraphNode_st>,
    graph: Ptr<CUgraph>,
) -> Answer {
    let state = call.ready()?;
    graph.required()?;
    let NodeKind::Child(inner) = state.graphs.node(node)?.kind else {
        return Err(INVALID_VALUE);
    };
    graph.put(state.graphs.graph_handle(inner))
}

pub(crate) fn graph_exec_get_flags(
    call: &CallFrame,
    exec: Ptr<CUgraphExec_st>,
    flags: Ptr<cuuint64_t>,
) -> Answer {
    let state = call.ready()?;
    flags.required()?;
    // Measured: that nodes have priorities is not read again.
    flags.put(state.graphs.execs[state.graphs.find_exec(exec)?].flags & !NODE_PRIORITY)
}
