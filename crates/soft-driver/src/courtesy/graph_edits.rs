//! Changes of graphs and executable graphs: edges, nodes of memory work, child graphs.
//!
//! For cuda.core (its graph definitions).

use core::ffi::c_uint;

use crate::abi::*;
use crate::arg::{ContextArg, In, Ptr};
use crate::capture::calls::plain_edges;
use crate::courtesy::graph_nodes::host_kind;
use crate::courtesy::rows::Rows;
use crate::graph::{NodeKind, NodeParams, add_node_of};
use crate::machine::call_frame::CallFrame;
use crate::machine::{Locked, State};
use crate::memory::blocks::Block;
use crate::memory::work::MemoryWork;
use crate::memory::{Keeper, Place};

/// The edges that a call names, all of nodes of this graph.
fn pairs(
    state: &State,
    graph: u32,
    from: In<CUgraphNode>,
    to: In<CUgraphNode>,
    count: usize,
) -> Result<Vec<(u32, u32)>, CUresult> {
    let (from, to) = (state.nodes_of(graph, from, count)?, state.nodes_of(graph, to, count)?);
    let pairs: Vec<(u32, u32)> = from.into_iter().zip(to).collect();
    let twice = |(at, pair): (usize, &(u32, u32))| pairs[..at].contains(pair);
    if pairs.iter().enumerate().any(twice) { Err(INVALID_VALUE) } else { Ok(pairs) }
}

/// Measured: an edge that is there already, one of a node to itself, and one to another graph's
/// node are invalid values. A circle is found when the graph is instantiated.
pub(crate) fn graph_add_dependencies(
    call: &CallFrame,
    graph: Ptr<CUgraph_st>,
    from: In<CUgraphNode>,
    to: In<CUgraphNode>,
    count: usize,
) -> Answer {
    add_edges(call.ready()?, graph, from, to, count)
}

fn add_edges(
    mut state: Locked,
    graph: Ptr<CUgraph_st>,
    from: In<CUgraphNode>,
    to: In<CUgraphNode>,
    count: usize,
) -> Answer {
    let graph = state.graph(graph)?;
    let pairs = pairs(&state, graph, from, to, count)?;
    let there =
        |(from, to): &(u32, u32)| from == to || state.graphs.nodes[*to].after.contains(from);
    if pairs.iter().any(there) {
        return Err(INVALID_VALUE);
    }
    for (from, to) in pairs {
        state.graphs.nodes[to].after.push(from);
    }
    Ok(())
}

pub(crate) fn graph_add_dependencies_v2(
    call: &CallFrame,
    graph: Ptr<CUgraph_st>,
    from: In<CUgraphNode>,
    to: In<CUgraphNode>,
    edges: In<CUgraphEdgeData>,
    count: usize,
) -> Answer {
    let state = call.ready()?;
    plain_edges(edges, count)?;
    add_edges(state, graph, from, to, count)
}

/// Measured: an edge that is not there is an invalid value.
pub(crate) fn graph_remove_dependencies(
    call: &CallFrame,
    graph: Ptr<CUgraph_st>,
    from: In<CUgraphNode>,
    to: In<CUgraphNode>,
    count: usize,
) -> Answer {
    remove_edges(call.ready()?, graph, from, to, count)
}

fn remove_edges(
    mut state: Locked,
    graph: Ptr<CUgraph_st>,
    from: In<CUgraphNode>,
    to: In<CUgraphNode>,
    count: usize,
) -> Answer {
    let graph = state.graph(graph)?;
    let pairs = pairs(&state, graph, from, to, count)?;
    if pairs.iter().any(|(from, to)| !state.graphs.nodes[*to].after.contains(from)) {
        return Err(INVALID_VALUE);
    }
    for (from, to) in pairs {
        state.graphs.nodes[to].after.retain(|node| *node != from);
    }
    Ok(())
}

pub(crate) fn graph_remove_dependencies_v2(
    call: &CallFrame,
    graph: Ptr<CUgraph_st>,
    from: In<CUgraphNode>,
    to: In<CUgraphNode>,
    edges: In<CUgraphEdgeData>,
    count: usize,
) -> Answer {
    let state = call.ready()?;
    plain_edges(edges, count)?;
    remove_edges(state, graph, from, to, count)
}

/// The node's edges go with it; executable graphs stay as they are.
pub(crate) fn graph_destroy_node(call: &CallFrame, node: Ptr<CUgraphNode_st>) -> Answer {
    let mut state = call.ready()?;
    let node = state.node(node.raw())?;
    let graph = state.graphs.nodes[node].graph;
    // What is captured next may depend on it.
    if state.captures.has_graph(graph) {
        return Err(ILLEGAL_STATE);
    }
    state.graphs.all[graph].nodes.retain(|other| *other != node);
    for other in state.graphs.all[graph].nodes.clone() {
        state.graphs.nodes[other].after.retain(|before| *before != node);
    }
    state.remove_node(node);
    Ok(())
}

/// The context in which a node works.
fn check_context(state: &State, call: &CallFrame, context: ContextArg) -> Answer {
    if context.is_null() {
        return Err(INVALID_VALUE);
    }
    let context = state.context(call, context)?;
    state.usable(context)
}

/// A node of memory work, and what it was made with.
type Made = (NodeKind, NodeParams);

fn memset_kind(
    state: &State,
    call: &CallFrame,
    params: In<MemsetParams>,
) -> Result<Made, CUresult> {
    let given = params.get()?;
    let MemsetParams { address, pitch, value, element, width, height } = given;
    if !matches!(element, 1 | 2 | 4) {
        return Err(INVALID_VALUE);
    }
    let element = element as usize;
    let rows = Rows { address, pitch, value, element, width, height };
    let work = state.set_of_rows(call, rows)?.map(|(work, _)| work);
    Ok((NodeKind::Memory(work.ok_or(INVALID_VALUE)?), NodeParams::Set(given)))
}

fn copy_kind(state: &State, call: &CallFrame, params: In<Copy3D>) -> Result<Made, CUresult> {
    let given = params.get()?;
    let rows = state.copy_of_rows(call, &given)?.ok_or(INVALID_VALUE)?;
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
    params: In<MemsetParams>,
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
    params: In<Copy3D>,
    context: ContextArg,
) -> Answer {
    add_memory_node(call, node, graph, dependencies, count, |state| {
        check_context(state, call, context)?;
        copy_kind(state, call, params)
    })
}

/// What a captured node would have been made with.
fn memset_params(work: &MemoryWork) -> Option<MemsetParams> {
    match work {
        MemoryWork::Set { to, value, width, count } => Some(MemsetParams {
            address: to.address as u64,
            pitch: 0,
            value: *value,
            element: *width as c_uint,
            width: *count,
            height: 1,
        }),
        MemoryWork::SetRows(rows) => Some(MemsetParams {
            address: rows.to.place.address as u64,
            pitch: rows.to.pitch,
            value: rows.value,
            element: rows.element as c_uint,
            width: rows.extent.width / rows.element,
            height: rows.extent.height,
        }),
        MemoryWork::Copy { .. } | MemoryWork::CopyRows(_) => None,
    }
}

/// One side of a captured copy.
fn side(state: &State, place: &Place, pitch: usize, height: usize) -> Side3D {
    let address = place.address as u64;
    let known = state.memory.around(address);
    let of_host = known.is_none_or(|(_, allocation)| allocation.kind.is_host())
        || !matches!(place.keeper, Keeper::Region(_));
    let nowhere = core::ptr::null_mut();
    let (memory_type, host, device) = match of_host {
        true => (MEMORY_HOST, core::ptr::with_exposed_provenance_mut(place.address), 0),
        false => (MEMORY_DEVICE, nowhere, address),
    };
    let (array, reserved) = (nowhere, nowhere);
    Side3D { x: 0, y: 0, z: 0, lod: 0, memory_type, host, device, array, reserved, pitch, height }
}

fn copy_params(state: &State, work: &MemoryWork) -> Option<Copy3D> {
    match work {
        MemoryWork::Copy { to, from, bytes } => Some(Copy3D {
            source: side(state, from, *bytes, 1),
            destination: side(state, to, *bytes, 1),
            width: *bytes,
            height: 1,
            depth: 1,
        }),
        MemoryWork::CopyRows(rows) => {
            let of =
                |block: &Block| side(state, &block.place, block.pitch, block.slice / block.pitch);
            Some(Copy3D {
                source: of(&rows.from),
                destination: of(&rows.to),
                width: rows.extent.width,
                height: rows.extent.height,
                depth: rows.extent.depth,
            })
        }
        MemoryWork::Set { .. } | MemoryWork::SetRows(_) => None,
    }
}

pub(crate) fn graph_memset_node_get_params(
    call: &CallFrame,
    node: Ptr<CUgraphNode_st>,
    params: Ptr<MemsetParams>,
) -> Answer {
    let state = call.ready()?;
    params.required()?;
    let node = &state.graphs.nodes[state.node(node.raw())?];
    match (&node.kind, node.params) {
        (_, Some(NodeParams::Set(given))) => params.put(given),
        (NodeKind::Memory(work), _) => params.put(memset_params(work).ok_or(INVALID_VALUE)?),
        _ => Err(INVALID_VALUE),
    }
}

pub(crate) fn graph_memcpy_node_get_params(
    call: &CallFrame,
    node: Ptr<CUgraphNode_st>,
    params: Ptr<Copy3D>,
) -> Answer {
    let state = call.ready()?;
    params.required()?;
    let node = &state.graphs.nodes[state.node(node.raw())?];
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
    let node = state.node(node.raw())?;
    let (kind, params) = made(&state)?;
    if state.graphs.nodes[node].kind.number() != kind.number() {
        return Err(INVALID_VALUE);
    }
    let node = &mut state.graphs.nodes[node];
    (node.kind, node.params) = (kind, Some(params));
    Ok(())
}

pub(crate) fn graph_memset_node_set_params(
    call: &CallFrame,
    node: Ptr<CUgraphNode_st>,
    params: In<MemsetParams>,
) -> Answer {
    set_memory(call.ready()?, node, |state| memset_kind(state, call, params))
}

pub(crate) fn graph_memcpy_node_set_params(
    call: &CallFrame,
    node: Ptr<CUgraphNode_st>,
    params: In<Copy3D>,
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
    let exec = state.exec(exec)?;
    state.node(node.raw())?;
    let kind = kind(&state)?;
    let mut nodes = state.graphs.execs[exec].nodes.iter_mut();
    let found = nodes.find(|found| found.of == node.addr()).ok_or(INVALID_VALUE)?;
    if found.kind.number() != kind.number() || !may_replace(&found.kind, &kind) {
        return Err(INVALID_VALUE);
    }
    found.kind = kind;
    state.feed_graph(exec);
    Ok(())
}

pub(crate) fn graph_exec_memset_node_set_params(
    call: &CallFrame,
    exec: Ptr<CUgraphExec_st>,
    node: Ptr<CUgraphNode_st>,
    params: In<MemsetParams>,
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
    params: In<Copy3D>,
    context: ContextArg,
) -> Answer {
    set_exec(call.ready()?, exec, node, |state| {
        check_context(state, call, context)?;
        copy_kind(state, call, params).map(|made| made.0)
    })
}

pub(crate) fn graph_exec_host_node_set_params(
    call: &CallFrame,
    exec: Ptr<CUgraphExec_st>,
    node: Ptr<CUgraphNode_st>,
    params: In<HostNodeParams>,
) -> Answer {
    set_exec(call.ready()?, exec, node, |_| host_kind(params))
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
    let graph = state.graph(graph)?;
    let after = state.nodes_of(graph, dependencies, count)?;
    let child = state.graph(child)?;
    state.room_for_copy(child, 1)?;
    let copy = state.copy_graph(child, None)?;
    let node = state.add_node(graph, after, NodeKind::Child(copy))?;
    state.graphs.all[copy].parent = Some(node);
    out.put(core::ptr::without_provenance_mut(state.graphs.nodes.handle(node) as usize))
}

pub(crate) fn graph_child_graph_node_get_graph(
    call: &CallFrame,
    node: Ptr<CUgraphNode_st>,
    graph: Ptr<CUgraph>,
) -> Answer {
    let state = call.ready()?;
    graph.required()?;
    let NodeKind::Child(inner) = state.graphs.nodes[state.node(node.raw())?].kind else {
        return Err(INVALID_VALUE);
    };
    graph.put(state.graph_handle(inner))
}

pub(crate) fn graph_exec_get_flags(
    call: &CallFrame,
    exec: Ptr<CUgraphExec_st>,
    flags: Ptr<cuuint64_t>,
) -> Answer {
    let state = call.ready()?;
    flags.required()?;
    // Measured: that nodes have priorities is not read again.
    const PRIORITIES: u64 = 8;
    flags.put(state.graphs.execs[state.exec(exec)?].flags & !PRIORITIES)
}

#[cfg(test)]
mod tests {
    use core::ptr::null_mut;
    use std::ffi::{CStr, c_void};

    use super::*;
    use crate::SoftDriver;

    /// A copy of a graph that handles do not suffice for leaves neither graphs nor nodes behind.
    #[test]
    fn a_copy_without_room_leaves_nothing() {
        type Add = unsafe extern "C" fn(
            *mut CUgraphNode,
            CUgraph,
            *const CUgraphNode,
            usize,
            CUgraph,
        ) -> CUresult;
        type Clone = unsafe extern "C" fn(*mut CUgraph, CUgraph) -> CUresult;
        let soft = SoftDriver::new();
        let symbols = *soft.driver().symbols();
        let find = |name: &CStr| soft.resolve(name);
        // SAFETY: the types are those of the C declarations.
        let (add, clone) = unsafe {
            (
                core::mem::transmute::<*mut c_void, Add>(find(c"cuGraphAddChildGraphNode")),
                core::mem::transmute::<*mut c_void, Clone>(find(c"cuGraphClone")),
            )
        };
        let live = || {
            let state = soft.machine().lock();
            (state.graphs.all.len(), state.graphs.nodes.len())
        };
        let leave = |graphs: usize, nodes: usize| {
            let mut state = soft.machine().lock();
            state.graphs.all.places = state.graphs.all.len() + graphs;
            state.graphs.nodes.places = state.graphs.nodes.len() + nodes;
        };
        let (mut inner, mut outer, mut node) = (null_mut(), null_mut(), null_mut());
        // SAFETY: places for handles, and handles that the driver gave out.
        unsafe {
            assert_eq!((symbols.cuInit)(0).0, 0);
            assert_eq!((symbols.cuGraphCreate)(&mut inner, 0).0, 0);
            assert_eq!((symbols.cuGraphCreate)(&mut outer, 0).0, 0);
            let mut leaf = null_mut();
            assert_eq!((symbols.cuGraphCreate)(&mut leaf, 0).0, 0);
            // Two nodes, each with a graph.
            for _ in 0..2 {
                assert_eq!(add(&mut node, inner, null_mut(), 0, leaf), SUCCESS);
            }
            let before = live();
            // A copy takes three graphs and two nodes; the node that has it is a third one.
            for (graphs, nodes) in [(0, 9), (1, 9), (2, 9), (9, 0), (9, 1), (9, 2)] {
                leave(graphs, nodes);
                let refused = add(&mut node, outer, null_mut(), 0, inner);
                assert_eq!((refused, live()), (OUT_OF_MEMORY, before), "{graphs} {nodes}");
            }
            let mut copy = null_mut();
            for (graphs, nodes) in [(2, 9), (9, 1)] {
                leave(graphs, nodes);
                assert_eq!((clone(&mut copy, inner), live()), (OUT_OF_MEMORY, before));
            }
            leave(3, 3);
            assert_eq!(add(&mut node, outer, null_mut(), 0, inner), SUCCESS);
            assert_eq!(live(), (before.0 + 3, before.1 + 3));
        }
    }
}
