//! Nodes of graphs that wait for values and write them.

use core::ffi::c_uint;

use crate::abi::*;
use crate::arg::{Arg, Ptr};
use crate::graph::NodeKind;
use crate::graph::parameters::{Made, Parameters};
use crate::machine::State;
use crate::machine::call_frame::CallFrame;
use crate::values;
use crate::values::TOO_MANY;

impl Parameters for CUDA_BATCH_MEM_OP_NODE_PARAMS {
    fn make(self, state: &State, call: &CallFrame) -> Result<Made, CUresult> {
        if self.flags != 0 || self.count == 0 || self.count >= TOO_MANY {
            return Err(INVALID_VALUE);
        }
        let context = self.ctx.expose_provenance() as u64;
        state.contexts.find(context).map_err(|_| INVALID_VALUE)?;
        // SAFETY: an array of so many, by the contract of the C call.
        let operations: Ptr<CUstreamBatchMemOpParams> = unsafe { Arg::take(self.paramArray) };
        let operations = operations.read_array(self.count as usize)?;
        Ok((NodeKind::Values(values::checked_batch(state, call, context, &operations)?), None))
    }

    /// The operations that the program reads are the node's own, until it is changed or destroyed.
    fn shown(state: &mut State, node: Ptr<CUgraphNode_st>) -> Result<Self, CUresult> {
        let NodeKind::Values(batch) = &mut state.graphs.node_mut(node)?.kind else {
            return Err(INVALID_VALUE);
        };
        Ok(Self {
            ctx: core::ptr::without_provenance_mut(batch.context as usize),
            count: batch.given.len() as c_uint,
            paramArray: batch.given.as_mut_ptr().cast(),
            flags: 0,
        })
    }
}
