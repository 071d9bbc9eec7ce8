//! For cuda.core (its graph definitions): changes of graphs and executable graphs: edges, nodes of
//! memory work, child graphs.

use core::ffi::c_uint;

use crate::abi::*;
use crate::arg::{ContextArg, In, Ptr};
use crate::capture::calls::plain_edges;
use crate::copy::rows;
use crate::copy::rows::{CopyOfRows, MEMORY_DEVICE, MEMORY_HOST, Rows, Side};
use crate::graph::calls::add_node_of;
use crate::graph::exec::NODE_PRIORITY;
use crate::graph::{NodeKind, NodeParams};
use crate::machine::call_frame::CallFrame;
use crate::machine::{Locked, State};
use crate::memory::blocks::{Block, Extent};
use crate::memory::work::MemoryWork;
use crate::memory::{Keeper, Place};

exports! { $ [graph::edits]
    cuGraphAddDependencies => (graph_change_dependencies::<true>);
    cuGraphAddDependencies_v2 => (graph_change_dependencies_v2::<true>);
    cuGraphRemoveDependencies => (graph_change_dependencies::<false>);
    cuGraphRemoveDependencies_v2 => (graph_change_dependencies_v2::<false>);
    cuGraphDestroyNode => graph_destroy_node;
    cuGraphAddMemsetNode => graph_add_memset_node;
    cuGraphMemsetNodeGetParams => graph_memset_node_get_params;
    cuGraphMemsetNodeSetParams => graph_memset_node_set_params;
    cuGraphExecMemsetNodeSetParams => graph_exec_memset_node_set_params;
    cuGraphAddMemcpyNode => graph_add_memcpy_node;
    cuGraphMemcpyNodeGetParams => graph_memcpy_node_get_params;
    cuGraphMemcpyNodeSetParams => graph_memcpy_node_set_params;
    cuGraphExecMemcpyNodeSetParams => graph_exec_memcpy_node_set_params;
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

/// The context in which a node works. Measured of new copies and memsets, and of a change of a memset:
/// with none the call succeeds.
fn check_context(state: &State, call: &CallFrame, context: ContextArg) -> Answer {
    if context.is_null() {
        return Ok(());
    }
    let context = state.context(call, context)?;
    state.usable(context)
}

/// A node of memory work, and what it was made with.
type Made = (NodeKind, NodeParams);

fn memset_kind(
    state: &State,
    call: &CallFrame,
    params: In<CUDA_MEMSET_NODE_PARAMS>,
) -> Result<Made, CUresult> {
    let given = params.get()?;
    let CUDA_MEMSET_NODE_PARAMS { dst: address, pitch, value, elementSize: element, width, height } =
        given;
    if !matches!(element, 1 | 2 | 4) {
        return Err(INVALID_VALUE);
    }
    let element = element as usize;
    let rows = Rows { address, pitch, value, element, width, height };
    let work = rows::set_of_rows(state, call, rows)?.map(|(work, _)| work);
    Ok((NodeKind::Memory(work.ok_or(INVALID_VALUE)?), NodeParams::Set(given)))
}

fn copy_kind(state: &State, call: &CallFrame, params: In<CUDA_MEMCPY3D>) -> Result<Made, CUresult> {
    let given = params.get()?;
    let rows = rows::copy_of_rows(state, call, &given.into())?.ok_or(INVALID_VALUE)?;
    let work = MemoryWork::CopyRows(Box::new(rows));
    Ok((NodeKind::Memory(work), NodeParams::Copy(given)))
}

fn add_memory_node(
    call: &CallFrame,
    out: Ptr<CUgraphNode>,
    graph: Ptr<CUgraph_st>,
    dependencies: In<CUgraphNode>,
    count: usize,
    made: impl FnOnce(&State) -> Result<Made, CUresult>,
) -> Answer {
    add_node_of(call, out, graph, dependencies, count, |state| {
        made(state).map(|(kind, params)| (kind, Some(params)))
    })
}

pub(crate) fn graph_add_memset_node(
    call: &CallFrame,
    node: Ptr<CUgraphNode>,
    graph: Ptr<CUgraph_st>,
    dependencies: In<CUgraphNode>,
    count: usize,
    params: In<CUDA_MEMSET_NODE_PARAMS>,
    context: ContextArg,
) -> Answer {
    add_memory_node(call, node, graph, dependencies, count, |state| {
        check_context(state, call, context)?;
        memset_kind(state, call, params)
    })
}

pub(crate) fn graph_add_memcpy_node(
    call: &CallFrame,
    node: Ptr<CUgraphNode>,
    graph: Ptr<CUgraph_st>,
    dependencies: In<CUgraphNode>,
    count: usize,
    params: In<CUDA_MEMCPY3D>,
    context: ContextArg,
) -> Answer {
    add_memory_node(call, node, graph, dependencies, count, |state| {
        check_context(state, call, context)?;
        copy_kind(state, call, params)
    })
}

/// What a captured node would have been made with.
fn memset_params(work: &MemoryWork) -> Option<CUDA_MEMSET_NODE_PARAMS> {
    match work {
        MemoryWork::Set { to, value, width, count } => Some(CUDA_MEMSET_NODE_PARAMS {
            dst: to.address as u64,
            pitch: 0,
            value: *value,
            elementSize: *width as c_uint,
            width: *count,
            height: 1,
        }),
        MemoryWork::SetRows(rows) => Some(CUDA_MEMSET_NODE_PARAMS {
            dst: rows.to.place.address as u64,
            pitch: rows.to.pitch,
            value: rows.value,
            elementSize: rows.element as c_uint,
            width: rows.extent.width / rows.element,
            height: rows.extent.height,
        }),
        MemoryWork::Copy { .. } | MemoryWork::CopyRows(_) => None,
    }
}

/// One side of a captured copy.
fn side(state: &State, place: &Place, pitch: usize, height: usize) -> Side {
    let address = place.address as u64;
    let known = state.memory.addresses.around(address);
    let of_host = known.is_none_or(|(_, allocation)| allocation.kind.is_host())
        || !matches!(place.keeper, Keeper::Region(_));
    let nowhere = core::ptr::null_mut();
    let (memory_type, host, device) = match of_host {
        true => (MEMORY_HOST, core::ptr::with_exposed_provenance_mut(place.address), 0),
        false => (MEMORY_DEVICE, nowhere, address),
    };
    Side { x: 0, y: 0, z: 0, memory_type, host, device, array: nowhere.cast(), pitch, height }
}

fn copy_params(state: &State, work: &MemoryWork) -> Option<CUDA_MEMCPY3D> {
    let copy = match work {
        MemoryWork::Copy { to, from, bytes } => CopyOfRows {
            from: side(state, from, *bytes, 1),
            to: side(state, to, *bytes, 1),
            extent: Extent { width: *bytes, height: 1, depth: 1 },
        },
        MemoryWork::CopyRows(rows) => {
            let side_of =
                |block: &Block| side(state, &block.place, block.pitch, block.slice / block.pitch);
            CopyOfRows { from: side_of(&rows.from), to: side_of(&rows.to), extent: rows.extent }
        }
        MemoryWork::Set { .. } | MemoryWork::SetRows(_) => return None,
    };
    Some(copy.into())
}

pub(crate) fn graph_memset_node_get_params(
    call: &CallFrame,
    node: Ptr<CUgraphNode_st>,
    params: Ptr<CUDA_MEMSET_NODE_PARAMS>,
) -> Answer {
    let state = call.ready()?;
    params.required()?;
    let node = state.graphs.node(node)?;
    match (&node.kind, node.params) {
        (_, Some(NodeParams::Set(given))) => params.put(given),
        (NodeKind::Memory(work), _) => params.put(memset_params(work).ok_or(INVALID_VALUE)?),
        _ => Err(INVALID_VALUE),
    }
}

pub(crate) fn graph_memcpy_node_get_params(
    call: &CallFrame,
    node: Ptr<CUgraphNode_st>,
    params: Ptr<CUDA_MEMCPY3D>,
) -> Answer {
    let state = call.ready()?;
    params.required()?;
    let node = state.graphs.node(node)?;
    match (&node.kind, node.params) {
        (_, Some(NodeParams::Copy(given))) => params.put(given),
        (NodeKind::Memory(work), _) => params.put(copy_params(&state, work).ok_or(INVALID_VALUE)?),
        _ => Err(INVALID_VALUE),
    }
}

/// Gives a node other work of its kind.
fn set_memory(
    mut state: Locked,
    node: Ptr<CUgraphNode_st>,
    made: impl FnOnce(&State) -> Result<Made, CUresult>,
) -> Answer {
    state.graphs.node(node)?;
    let (kind, params) = made(&state)?;
    let node = state.graphs.node_mut(node)?;
    if node.kind.number() != kind.number() {
        return Err(INVALID_VALUE);
    }
    (node.kind, node.params) = (kind, Some(params));
    Ok(())
}

pub(crate) fn graph_memset_node_set_params(
    call: &CallFrame,
    node: Ptr<CUgraphNode_st>,
    params: In<CUDA_MEMSET_NODE_PARAMS>,
) -> Answer {
    set_memory(call.ready()?, node, |state| memset_kind(state, call, params))
}

pub(crate) fn graph_memcpy_node_set_params(
    call: &CallFrame,
    node: Ptr<CUgraphNode_st>,
    params: In<CUDA_MEMCPY3D>,
) -> Answer {
    set_memory(call.ready()?, node, |state| copy_kind(state, call, params))
}

/// Whether work may take the place of other work in an executable graph. Documented: work of one
/// row alone changes, and stays in the memory of its device.
pub(crate) fn may_replace(old: &NodeKind, new: &NodeKind) -> bool {
    match (old, new) {
        (NodeKind::Memory(old), NodeKind::Memory(new)) => {
            old.is_like(new) || (old.is_one_row() && new.is_one_row())
        }
        (NodeKind::Values(old), NodeKind::Values(new)) => old.is_like(new),
        _ => true,
    }
}

/// Gives the node of an executable graph other work of its kind.
fn set_exec(
    mut state: Locked,
    exec: Ptr<CUgraphExec_st>,
    node: Ptr<CUgraphNode_st>,
    kind: impl FnOnce(&State) -> Result<NodeKind, CUresult>,
) -> Answer {
    let exec = state.graphs.find_exec(exec)?;
    let kind = kind(&state)?;
    let found = state.graphs.exec_node(exec, node)?;
    if found.kind.number() != kind.number() || !may_replace(&found.kind, &kind) {
        return Err(INVALID_VALUE);
    }
    found.kind = kind;
    let State { graphs, feed, .. } = &mut *state;
    graphs.feed_exec(feed.as_deref_mut(), exec);
    Ok(())
}

pub(crate) fn graph_exec_memset_node_set_params(
    call: &CallFrame,
    exec: Ptr<CUgraphExec_st>,
    node: Ptr<CUgraphNode_st>,
    params: In<CUDA_MEMSET_NODE_PARAMS>,
    context: ContextArg,
) -> Answer {
    set_exec(call.ready()?, exec, node, |state| {
        check_context(state, call, context)?;
        memset_kind(state, call, params).map(|made| made.0)
    })
}

pub(crate) fn graph_exec_memcpy_node_set_params(
    call: &CallFrame,
    exec: Ptr<CUgraphExec_st>,
    node: Ptr<CUgraphNode_st>,
    params: In<CUDA_MEMCPY3D>,
    context: ContextArg,
) -> Answer {
    set_exec(call.ready()?, exec, node, |state| {
        check_context(state, call, context)?;
        copy_kind(state, call, params).map(|made| made.0)
    })
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
