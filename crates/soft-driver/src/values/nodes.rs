//! Nodes of graphs that wait for values and write them.

use core::ffi::c_uint;

use crate::abi::*;
use crate::arg::{Arg, In, Ptr};
use crate::graph::NodeKind;
use crate::graph::calls::add_node_with;
use crate::machine::State;
use crate::machine::call_frame::CallFrame;
use crate::memory::word::Batch;
use crate::values;
use crate::values::TOO_MANY;

exports! { $ [values::nodes]
    cuGraphAddBatchMemOpNode => graph_add_batch_mem_op_node;
    cuGraphBatchMemOpNodeGetParams => graph_batch_mem_op_node_get_params;
    cuGraphBatchMemOpNodeSetParams => graph_batch_mem_op_node_set_params;
    cuGraphExecBatchMemOpNodeSetParams => graph_exec_batch_mem_op_node_set_params;
}

/// The batch that the parameters of a node describe.
fn batch_of(
    state: &State,
    call: &CallFrame,
    params: In<CUDA_BATCH_MEM_OP_NODE_PARAMS>,
) -> Result<Batch, CUresult> {
    let params = params.get()?;
    if params.flags != 0 || params.count == 0 || params.count >= TOO_MANY {
        return Err(INVALID_VALUE);
    }
    let context = params.ctx.expose_provenance() as u64;
    state.contexts.find(context).map_err(|_| INVALID_VALUE)?;
    // SAFETY: an array of so many, by the contract of the C call.
    let operations: Ptr<CUstreamBatchMemOpParams> = unsafe { Arg::take(params.paramArray) };
    let operations = operations.read_array(params.count as usize)?;
    values::checked_batch(state, call, context, &operations)
}

pub(crate) fn graph_add_batch_mem_op_node(
    call: &CallFrame,
    node: Ptr<CUgraphNode>,
    graph: Ptr<CUgraph_st>,
    dependencies: In<CUgraphNode>,
    count: usize,
    params: In<CUDA_BATCH_MEM_OP_NODE_PARAMS>,
) -> Answer {
    add_node_with(call, node, graph, dependencies, count, |state| {
        Ok(NodeKind::Values(batch_of(state, call, params)?))
    })
}

/// The operations that the program reads are the node's own, until it is changed or destroyed.
pub(crate) fn graph_batch_mem_op_node_get_params(
    call: &CallFrame,
    node: Ptr<CUgraphNode_st>,
    params: Ptr<CUDA_BATCH_MEM_OP_NODE_PARAMS>,
) -> Answer {
    let mut state = call.ready()?;
    params.required()?;
    let NodeKind::Values(batch) = &mut state.graphs.node_mut(node)?.kind else {
        return Err(INVALID_VALUE);
    };
    params.put(CUDA_BATCH_MEM_OP_NODE_PARAMS {
        ctx: core::ptr::without_provenance_mut(batch.context as usize),
        count: batch.given.len() as c_uint,
        paramArray: batch.given.as_mut_ptr().cast(),
        flags: 0,
    })
}

pub(crate) fn graph_batch_mem_op_node_set_params(
    call: &CallFrame,
    node: Ptr<CUgraphNode_st>,
    params: In<CUDA_BATCH_MEM_OP_NODE_PARAMS>,
) -> Answer {
    let mut state = call.ready()?;
    state.graphs.node(node)?;
    let new = batch_of(&state, call, params)?;
    let NodeKind::Values(batch) = &mut state.graphs.node_mut(node)?.kind else {
        return Err(INVALID_VALUE);
    };
    *batch = new;
    Ok(())
}

/// Documented: addresses, values and flags may change, and not the context, the number of
/// operations, or their kinds.
pub(crate) fn graph_exec_batch_mem_op_node_set_params(
    call: &CallFrame,
    exec: Ptr<CUgraphExec_st>,
    node: Ptr<CUgraphNode_st>,
    params: In<CUDA_BATCH_MEM_OP_NODE_PARAMS>,
) -> Answer {
    let mut state = call.ready()?;
    let exec = state.graphs.find_exec(exec)?;
    let new = batch_of(&state, call, params)?;
    let node = state.graphs.exec_node(exec, node)?;
    match &mut node.kind {
        NodeKind::Values(batch) if batch.is_like(&new) => *batch = new,
        _ => return Err(INVALID_VALUE),
    }
    let State { graphs, feed, .. } = &mut *state;
    graphs.feed_exec(feed.as_deref_mut(), exec);
    Ok(())
}
