//! Changes of graphs that exist, and questions about them: nodes and edges that come and go, clones,
//! updates.

use std::collections::BTreeMap;

use crate::abi::*;
use crate::engine::Engine;
use crate::engine::user_object::References;
use crate::graph::{Graph, Graphs, Node, NodeKind};

impl Node {
    /// The nodes that it depends on.
    pub(crate) fn after(&self) -> &[u32] {
        &self.after
    }
}

impl Graph {
    pub(crate) fn nodes(&self) -> &[u32] {
        &self.nodes
    }
}

impl NodeKind {
    /// The number that the driver has for a kind of node.
    pub(crate) fn number(&self) -> u32 {
        match self {
            Self::Device(_) => 0,
            Self::Memory(work) if work.is_copy() => 1,
            Self::Memory(_) => 2,
            Self::Host(_) => 3,
            Self::Child(_) => 4,
            Self::Empty | Self::Declared(_) | Self::Busy(_) => 5,
            Self::Wait(_) => 6,
            Self::Record(_) => 7,
            Self::Semaphores(batch) if batch.signals => 8,
            Self::Semaphores(_) => 9,
            Self::Values(_) => 12,
        }
    }
}

impl Graphs {
    pub(crate) fn graph_mut(&mut self, graph: u32) -> &mut Graph {
        &mut self.all[graph]
    }

    /// Removes a node, its edges, and the graph that is its own. The user objects that are let go.
    pub(crate) fn remove_node(&mut self, node: u32) -> References {
        let graph = self.nodes[node].graph;
        self.all[graph].nodes.retain(|other| *other != node);
        for other in &self.all[graph].nodes {
            self.nodes[*other].after.retain(|before| *before != node);
        }
        self.take_node(node)
    }

    /// Refuses a copy of a graph and `more` nodes if there are not enough handles. A copy that
    /// failed halfway would have to be taken back.
    fn room_for_copy(&self, graph: u32, more: usize) -> Answer {
        let (mut graphs, mut nodes, mut left) = (0, more, vec![graph]);
        while let Some(graph) = left.pop() {
            graphs += 1;
            nodes += self.all[graph].nodes.len();
            left.extend(self.all[graph].nodes.iter().filter_map(
                |node| match self.nodes[*node].kind {
                    NodeKind::Child(inner) => Some(inner),
                    _ => None,
                },
            ));
        }
        let fits = self.all.room() >= graphs && self.nodes.room() >= nodes;
        if fits { Ok(()) } else { Err(OUT_OF_MEMORY) }
    }

    /// A copy of a graph and of the graphs of its nodes, where there is room for it and for `more`
    /// nodes. The copy keeps the same user objects.
    pub(crate) fn copy_graph(
        &mut self,
        engine: &mut Engine,
        born: u64,
        graph: u32,
        more: usize,
    ) -> Result<u32, CUresult> {
        self.room_for_copy(graph, more)?;
        self.copy_within(engine, born, graph, None)
    }

    fn copy_within(
        &mut self,
        engine: &mut Engine,
        born: u64,
        graph: u32,
        parent: Option<u32>,
    ) -> Result<u32, CUresult> {
        let new = self.new_graph(born)?;
        self.all[new].parent = parent;
        let mut copies = BTreeMap::new();
        let nodes = self.all[graph].nodes.clone();
        for node in &nodes {
            let copy = self.add_node(born, new, Vec::new(), self.nodes[*node].kind.clone())?;
            copies.insert(*node, copy);
            self.nodes[copy].clone_of = self.nodes.handle(*node);
            self.nodes[copy].params = self.nodes[*node].params;
            self.nodes[copy].context = self.nodes[*node].context;
            if let NodeKind::Child(inner) = self.nodes[*node].kind {
                let inner = self.copy_within(engine, born, inner, Some(copy))?;
                self.nodes[copy].kind = NodeKind::Child(inner);
            }
        }
        // An edge may come from a node that was added later.
        for node in &nodes {
            let after = self.nodes[*node].after.iter();
            self.nodes[copies[node]].after =
                after.filter_map(|other| copies.get(other).copied()).collect();
        }
        self.all[new].objects = engine.objects.share(&self.all[graph].objects);
        Ok(new)
    }

    /// Adds edges: from, and to.
    pub(crate) fn add_edges(&mut self, edges: Vec<(u32, u32)>) {
        for (from, to) in edges {
            self.nodes[to].after.push(from);
        }
    }

    pub(crate) fn remove_edges(&mut self, edges: Vec<(u32, u32)>) {
        for (from, to) in edges {
            self.nodes[to].after.retain(|node| *node != from);
        }
    }

    pub(crate) fn has_edge(&self, from: u32, to: u32) -> bool {
        self.nodes[to].after.contains(&from)
    }

    /// All edges of a graph.
    pub(crate) fn edges(&self, graph: u32) -> impl Iterator<Item = (u32, u32)> {
        let nodes = self.all[graph].nodes.iter();
        nodes.flat_map(|to| self.nodes[*to].after.iter().map(|from| (*from, *to)))
    }

    /// The node of a graph that was cloned from another graph's.
    pub(crate) fn clone_of(&self, graph: u32, original: u64) -> Option<u32> {
        let mut nodes = self.all[graph].nodes.iter().copied();
        nodes.find(|node| self.nodes[*node].clone_of == original)
    }
}

#[cfg(test)]
mod tests {
    use core::ptr::null_mut;
    use std::ffi::{CStr, c_void};

    use super::*;
    use crate::SoftDriver;

    /// A copy of a graph for which there are too few handles leaves no graphs and no nodes.
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
