//! The host functions of nodes, as the driver has them.

use core::ffi::c_void;
use core::sync::atomic::Ordering;
use std::sync::Arc;

use cuda_events::sys::CUDA_HOST_NODE_PARAMS;

use crate::call::{Handle, OK};
use crate::callbacks::run_host;
use crate::state::executions::{Host, Keeper, NodeReference};
use crate::state::nodes::{GraphQuestions, ask};
use crate::watch::Watch;

/// The questions about a node that the driver is asked without the lock.
#[derive(Clone, Copy)]
pub(crate) struct NodeQuestions {
    pub(crate) keeper: Keeper,
    graphs: GraphQuestions,
}

impl NodeQuestions {
    pub(crate) fn new(watch: &mut Watch) -> Self {
        Self { keeper: watch.graphs.keeper, graphs: watch.graphs.questions }
    }

    /// The graph of a node. Drivers before CUDA 13.1 do not say which it is.
    pub(crate) fn graph(&self, node: Handle) -> Option<Handle> {
        let mut graph = 0;
        // SAFETY: a node of the program, and a place for its graph.
        let code = unsafe { self.keeper.graph?(node, &mut graph) };
        (code == OK).then_some(graph)
    }

    /// The graph's reference to the host function of a node.
    pub(crate) fn reference(&self, graph: Handle, node: Handle) -> Option<NodeReference> {
        let object = host_function(&self.graphs, node)?.object.load(Ordering::Relaxed);
        Some(NodeReference { keeper: self.keeper, graph, object })
    }
}

/// The host function of a node, if the node has [`run_host`] in its place.
pub(crate) fn host_in(description: &CUDA_HOST_NODE_PARAMS) -> Option<Arc<Host>> {
    if description
        .fn_
        .is_none_or(|function| function as usize != run_host as *const c_void as usize)
    {
        return None;
    }
    let host: *const Host = description.userData.cast_const().cast();
    // SAFETY: what a graph has been given with that function, and has a reference to.
    unsafe {
        Arc::increment_strong_count(host);
        Some(Arc::from_raw(host))
    }
}

/// The host function of a node, if it is one that this library has given.
pub(crate) fn host_function(asks: &GraphQuestions, node: Handle) -> Option<Arc<Host>> {
    host_in(&ask::<CUDA_HOST_NODE_PARAMS>(asks.host, node)?)
}
