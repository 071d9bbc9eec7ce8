//! Nodes that are made with a structure: memory work, functions of the host, and batches of values.

use core::ffi::c_uint;

use crate::abi::*;
use crate::arg::{ContextArg, In, Ptr};
use crate::copy::rows;
use crate::copy::rows::{CopyOfRows, MEMORY_DEVICE, MEMORY_HOST, Rows, Side};
use crate::graph::calls::add_node_of;
use crate::graph::{NodeKind, NodeParams};
use crate::machine::State;
use crate::machine::call_frame::CallFrame;
use crate::memory::blocks::{Block, Extent};
use crate::memory::work::MemoryWork;
use crate::memory::{Keeper, Place};

exports! { $ [graph::parameters]
    cuGraphAddMemsetNode => (graph_add_memory_node::<CUDA_MEMSET_NODE_PARAMS>);
    cuGraphMemsetNodeGetParams => (graph_node_get_params::<CUDA_MEMSET_NODE_PARAMS>);
    cuGraphMemsetNodeSetParams => (graph_node_set_params::<CUDA_MEMSET_NODE_PARAMS>);
    cuGraphExecMemsetNodeSetParams => (graph_exec_memory_node_set_params::<CUDA_MEMSET_NODE_PARAMS>);
    cuGraphAddMemcpyNode => (graph_add_memory_node::<CUDA_MEMCPY3D>);
    cuGraphMemcpyNodeGetParams => (graph_node_get_params::<CUDA_MEMCPY3D>);
    cuGraphMemcpyNodeSetParams => (graph_node_set_params::<CUDA_MEMCPY3D>);
    cuGraphExecMemcpyNodeSetParams => (graph_exec_memory_node_set_params::<CUDA_MEMCPY3D>);
    cuGraphAddHostNode => (graph_add_node::<CUDA_HOST_NODE_PARAMS>);
    cuGraphHostNodeGetParams => (graph_node_get_params::<CUDA_HOST_NODE_PARAMS>);
    cuGraphHostNodeSetParams => (graph_node_set_params::<CUDA_HOST_NODE_PARAMS>);
    cuGraphExecHostNodeSetParams => (graph_exec_node_set_params::<CUDA_HOST_NODE_PARAMS>);
    cuGraphAddBatchMemOpNode => (graph_add_node::<CUDA_BATCH_MEM_OP_NODE_PARAMS>);
    cuGraphBatchMemOpNodeGetParams => (graph_node_get_params::<CUDA_BATCH_MEM_OP_NODE_PARAMS>);
    cuGraphBatchMemOpNodeSetParams => (graph_node_set_params::<CUDA_BATCH_MEM_OP_NODE_PARAMS>);
    cuGraphExecBatchMemOpNodeSetParams
        => (graph_exec_node_set_params::<CUDA_BATCH_MEM_OP_NODE_PARAMS>);
}

/// A node, and the parameters that it shows as they were given.
pub(crate) type Made = (NodeKind, Option<NodeParams>);

/// The structure that a kind of node is made with.
pub(crate) trait Parameters: Copy {
    fn make(self, state: &State, call: &CallFrame) -> Result<Made, CUresult>;

    /// Those of a node of the kind.
    fn shown(state: &mut State, node: Ptr<CUgraphNode_st>) -> Result<Self, CUresult>;
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

pub(crate) fn graph_add_node<P: Parameters>(
    call: &CallFrame,
    node: Ptr<CUgraphNode>,
    graph: Ptr<CUgraph_st>,
    dependencies: In<CUgraphNode>,
    count: usize,
    params: In<P>,
) -> Answer {
    graph_add_memory_node(call, node, graph, dependencies, count, params, Ptr::NULL)
}

pub(crate) fn graph_add_memory_node<P: Parameters>(
    call: &CallFrame,
    node: Ptr<CUgraphNode>,
    graph: Ptr<CUgraph_st>,
    dependencies: In<CUgraphNode>,
    count: usize,
    params: In<P>,
    context: ContextArg,
) -> Answer {
    add_node_of(call, node, graph, dependencies, count, |state| {
        check_context(state, call, context)?;
        params.get()?.make(state, call)
    })
}

pub(crate) fn graph_node_get_params<P: Parameters>(
    call: &CallFrame,
    node: Ptr<CUgraphNode_st>,
    params: Ptr<P>,
) -> Answer {
    let mut state = call.ready()?;
    params.required()?;
    params.put(P::shown(&mut state, node)?)
}

/// Gives a node other work of its kind.
pub(crate) fn graph_node_set_params<P: Parameters>(
    call: &CallFrame,
    node: Ptr<CUgraphNode_st>,
    params: In<P>,
) -> Answer {
    let mut state = call.ready()?;
    state.graphs.node(node)?;
    let (kind, params) = params.get()?.make(&state, call)?;
    let node = state.graphs.node_mut(node)?;
    if node.kind.number() != kind.number() {
        return Err(INVALID_VALUE);
    }
    (node.kind, node.params) = (kind, params);
    Ok(())
}

pub(crate) fn graph_exec_node_set_params<P: Parameters>(
    call: &CallFrame,
    exec: Ptr<CUgraphExec_st>,
    node: Ptr<CUgraphNode_st>,
    params: In<P>,
) -> Answer {
    graph_exec_memory_node_set_params(call, exec, node, params, Ptr::NULL)
}

/// Gives the node of an executable graph other work of its kind.
pub(crate) fn graph_exec_memory_node_set_params<P: Parameters>(
    call: &CallFrame,
    exec: Ptr<CUgraphExec_st>,
    node: Ptr<CUgraphNode_st>,
    params: In<P>,
    context: ContextArg,
) -> Answer {
    let mut state = call.ready()?;
    let exec = state.graphs.find_exec(exec)?;
    check_context(&state, call, context)?;
    let (kind, _) = params.get()?.make(&state, call)?;
    let found = state.graphs.exec_node(exec, node)?;
    if found.kind.number() != kind.number() || !may_replace(&found.kind, &kind) {
        return Err(INVALID_VALUE);
    }
    found.kind = kind;
    let State { graphs, feed, .. } = &mut *state;
    graphs.feed_exec(feed.as_deref_mut(), exec);
    Ok(())
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

impl Parameters for CUDA_MEMSET_NODE_PARAMS {
    fn make(self, state: &State, call: &CallFrame) -> Result<Made, CUresult> {
        let Self { dst: address, pitch, value, elementSize: element, width, height } = self;
        if !matches!(element, 1 | 2 | 4) {
            return Err(INVALID_VALUE);
        }
        let element = element as usize;
        let rows = Rows { address, pitch, value, element, width, height };
        let work = rows::set_of_rows(state, call, rows)?.map(|(work, _)| work);
        Ok((NodeKind::Memory(work.ok_or(INVALID_VALUE)?), Some(NodeParams::Set(self))))
    }

    fn shown(state: &mut State, node: Ptr<CUgraphNode_st>) -> Result<Self, CUresult> {
        let node = state.graphs.node(node)?;
        match (&node.kind, node.params) {
            (_, Some(NodeParams::Set(given))) => Ok(given),
            (NodeKind::Memory(work), _) => memset_params(work).ok_or(INVALID_VALUE),
            _ => Err(INVALID_VALUE),
        }
    }
}

impl Parameters for CUDA_MEMCPY3D {
    fn make(self, state: &State, call: &CallFrame) -> Result<Made, CUresult> {
        let rows = rows::copy_of_rows(state, call, &self.into())?.ok_or(INVALID_VALUE)?;
        let work = MemoryWork::CopyRows(Box::new(rows));
        Ok((NodeKind::Memory(work), Some(NodeParams::Copy(self))))
    }

    fn shown(state: &mut State, node: Ptr<CUgraphNode_st>) -> Result<Self, CUresult> {
        let node = state.graphs.node(node)?;
        match (&node.kind, node.params) {
            (_, Some(NodeParams::Copy(given))) => Ok(given),
            (NodeKind::Memory(work), _) => copy_params(state, work).ok_or(INVALID_VALUE),
            _ => Err(INVALID_VALUE),
        }
    }
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
