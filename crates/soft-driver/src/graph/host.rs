//! Nodes of graphs that call a function of the host.

use crate::abi::*;
use crate::arg::Ptr;
use crate::engine::work::{HostCall, UserData};
use crate::graph::NodeKind;
use crate::graph::parameters::{Made, Parameters};
use crate::machine::State;
use crate::machine::call_frame::CallFrame;

impl Parameters for CUDA_HOST_NODE_PARAMS {
    fn make(self, _: &State, _: &CallFrame) -> Result<Made, CUresult> {
        let function = self.fn_.ok_or(INVALID_VALUE)?;
        Ok((NodeKind::Host(HostCall::Function(function, UserData(self.userData))), None))
    }

    fn shown(state: &mut State, node: Ptr<CUgraphNode_st>) -> Result<Self, CUresult> {
        match state.graphs.node(node)?.kind {
            NodeKind::Host(HostCall::Function(function, data)) => {
                Ok(Self { fn_: Some(function), userData: data.0 })
            }
            _ => Err(INVALID_VALUE),
        }
    }
}
