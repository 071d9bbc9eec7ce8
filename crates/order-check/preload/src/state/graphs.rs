//! The graphs of the program, and what their nodes do at a launch.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use cuda_order_check_engine::StreamId;
use cuda_order_check_engine::feed::Feed;

use crate::call::Handle;
use crate::names::Edited;
use crate::report::output::Output;
use crate::state::executions::{self as host_functions, Host, Keeper};
use crate::state::node::Node;
use crate::state::nodes::{Flat, GraphQuestions, Work, list};

/// An executable graph whose nodes the driver was asked for.
pub(crate) struct Built {
    pub(crate) nodes: Vec<Flat>,
    /// The place of each node in `nodes`.
    pub(crate) indices: HashMap<Handle, usize>,
    /// Those that do nothing, by their places.
    pub(crate) disabled: HashSet<usize>,
    /// Whether the checker does not have them as they are.
    pub(crate) changed: bool,
}

impl Built {
    pub(crate) fn new(nodes: Vec<Flat>) -> Self {
        let indices = nodes.iter().enumerate().map(|(at, node)| (node.handle, at)).collect();
        Self { nodes, indices, disabled: HashSet::new(), changed: true }
    }

    /// A node is disabled or enabled. `None` if it is not known.
    pub(crate) fn enable(&mut self, node: Handle, is_enabled: bool) -> Option<()> {
        let at = *self.indices.get(&node)?;
        self.changed |= match is_enabled {
            true => self.disabled.remove(&at),
            false => self.disabled.insert(at),
        };
        Some(())
    }

    /// The work of a node, which gets other work.
    pub(crate) fn node(&mut self, node: Handle) -> Option<&mut Work> {
        self.changed = true;
        Some(&mut self.nodes.get_mut(*self.indices.get(&node)?)?.work)
    }
}

/// How many changed nodes are remembered.
pub(crate) const CHANGED: usize = 1 << 16;

/// Where a node is that a call adds or sets.
#[derive(Clone, Copy)]
pub(crate) enum NodePlace {
    /// It is added to this graph.
    Graph(Handle),
    Node(Handle),
    /// In an executable graph, the node of this one.
    Exec(Handle, Handle),
}

/// The graphs of the program, and what their nodes do at a launch.
pub(crate) struct Graphs {
    pub(crate) questions: GraphQuestions,
    pub(crate) keeper: Keeper,
    /// The nodes of captures, by their numbers.
    pub(crate) in_capture: HashMap<u64, Vec<Node>>,
    /// The nodes of graphs that were captured.
    pub(crate) of_graph: HashMap<Handle, Vec<Node>>,
    /// The nodes of executable graphs.
    pub(crate) of_exec: HashMap<Handle, Vec<Node>>,
    /// The graphs that executable ones were made from whose nodes the driver was not asked for.
    pub(crate) captured: HashMap<Handle, Handle>,
    /// The executable graphs whose nodes the driver was asked for.
    pub(crate) built: HashMap<Handle, Built>,
    /// How often the checker was given the nodes of one: a measure of time.
    pub(crate) defined: u64,
    /// Captures of which some nodes are not here: into graphs that have nodes already, or of
    /// calls that are not modelled.
    pub(crate) partial: HashSet<u64>,
    /// Nodes that a call has changed, so captures no longer say what they do.
    pub(crate) changed: HashSet<Handle>,
}

impl Graphs {
    pub(crate) fn new(questions: GraphQuestions, keeper: Keeper) -> Self {
        Self {
            questions,
            keeper,
            in_capture: HashMap::new(),
            of_graph: HashMap::new(),
            of_exec: HashMap::new(),
            captured: HashMap::new(),
            built: HashMap::new(),
            defined: 0,
            partial: HashSet::new(),
            changed: HashSet::new(),
        }
    }

    /// An operation is a node, if its stream is captured.
    pub(crate) fn add(&mut self, feed: &Feed<Output>, stream: StreamId, node: Node) {
        if let Some(capture) = feed.capture_of(stream) {
            self.in_capture.entry(capture).or_default().push(node);
        }
    }

    /// The nodes of a graph are not all here: an instantiation asks the driver, a launch orders
    /// everything.
    ///
    /// The functions that were set in an executable graph are kept for ever, as the driver may
    /// still call them, and launches from here on have no numbers that would show when it is done.
    pub(crate) fn unknown(&mut self, graph: Handle) {
        self.of_graph.remove(&graph);
        self.of_exec.remove(&graph);
        self.built.remove(&graph);
        self.captured.retain(|exec, from| *exec != graph && *from != graph);
    }

    /// A node of an executable graph has other work.
    pub(crate) fn set_node(&mut self, exec: Handle, node: Handle, work: Work) {
        let built = self.built.get_mut(&exec);
        let Some(former) = built.and_then(|built| built.node(node)) else {
            return self.unknown(exec);
        };
        if let Work::Host(host) = std::mem::replace(former, work) {
            host_functions::left(&host);
        }
    }

    /// An executable graph ends, or gets other nodes.
    pub(crate) fn leave(&mut self, exec: Handle) {
        for node in self.built.remove(&exec).into_iter().flat_map(|built| built.nodes) {
            if let Work::Host(host) = node.work {
                host_functions::left(&host);
            }
        }
    }

    /// A node has a host function.
    pub(crate) fn host_node(&mut self, place: NodePlace, host: Arc<Host>) {
        match place {
            NodePlace::Graph(graph) => self.unknown(graph),
            NodePlace::Node(node) => self.node_changed(node),
            NodePlace::Exec(exec, node) => self.set_node(exec, node, Work::Host(host)),
        }
    }

    /// A call changes a graph, an executable graph or a node, by a function of which only the name
    /// is known here.
    pub(crate) fn edited(&mut self, what: Edited, arguments: &[Handle; 6]) {
        match what {
            Edited::Graph(at) => self.unknown(arguments.get(at).copied().unwrap_or_default()),
            Edited::Node(at) => self.node_changed(arguments.get(at).copied().unwrap_or_default()),
        }
    }

    /// A node has other work than at its capture.
    pub(crate) fn node_changed(&mut self, node: Handle) {
        if self.changed.len() >= CHANGED {
            // Every graph that was captured so far may be one that was changed.
            self.changed.clear();
            self.of_graph.clear();
        }
        self.changed.insert(node);
    }

    /// Whether one of a graph's own nodes was changed.
    pub(crate) fn was_changed(&self, graph: Handle) -> bool {
        !self.changed.is_empty()
            && list(self.questions.nodes, graph)
                .is_none_or(|nodes| nodes.iter().any(|node| self.changed.contains(node)))
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::Ordering;
    use std::sync::Arc;

    use super::{Built, CHANGED, Flat, Graphs, Work};
    use crate::state::executions::{Host, Keeper, UNSEEN};
    use crate::state::nodes::GraphQuestions;

    /// The driver's reference to a function of an executable graph ends when its node gets other work,
    /// or with the graph. A launch that is not seen may call it later, whatever becomes of the node.
    #[test]
    fn a_function_that_was_set_ends_with_its_node() {
        let _turn = crate::lock::TURN.lock();
        let before = UNSEEN.swap(false, Ordering::Relaxed);
        type End = fn(&mut Graphs);
        let ends: [End; 2] =
            [|all| all.set_node(1, 7, Work::Accesses(Vec::new())), |all| all.leave(1)];
        for (end, unseen) in ends.into_iter().flat_map(|end| [(end, false), (end, true)]) {
            let none = |_: &core::ffi::CStr| core::ptr::null_mut();
            let mut graphs = Graphs::new(GraphQuestions::new(&none), Keeper::new(&none));
            let host = Arc::new(Host { of_exec: true, ..Host::new(None, None, 0) });
            let of_driver = Arc::into_raw(host.clone());
            let node = Flat { handle: 7, work: Work::Host(host.clone()), after: Vec::new() };
            graphs.built.insert(1, Built::new(vec![node]));
            UNSEEN.store(unseen, Ordering::Relaxed);
            end(&mut graphs);
            assert_eq!(Arc::strong_count(&host), if unseen { 2 } else { 1 });
            if unseen {
                // SAFETY: the driver's reference, which nobody has ended.
                drop(unsafe { Arc::from_raw(of_driver) });
            }
        }
        UNSEEN.store(before, Ordering::Relaxed);
    }

    /// Graph 1 has nodes 5 and 6, and the driver says of no other one which it has.
    unsafe extern "C" fn nodes(graph: usize, all: *mut usize, count: *mut usize) -> u32 {
        // SAFETY: places for the answers, as many as this function has said.
        unsafe {
            *count = 2;
            (0..2).filter(|_| !all.is_null()).for_each(|at| *all.add(at) = 5 + at);
        }
        u32::from(graph != 1)
    }

    /// One node is enough, and a graph of which nothing is known may have it.
    #[test]
    fn a_graph_is_changed_by_each_of_its_nodes() {
        let resolve = |name: &core::ffi::CStr| match name.to_bytes() {
            b"cuGraphGetNodes" => nodes as *mut core::ffi::c_void,
            _ => core::ptr::null_mut(),
        };
        for (changed, expected) in
            [(None, [false, false]), (Some(6), [true; 2]), (Some(7), [false, true])]
        {
            let mut graphs = Graphs::new(GraphQuestions::new(&resolve), Keeper::new(&resolve));
            changed.into_iter().for_each(|node| graphs.node_changed(node));
            assert_eq!([1, 2].map(|graph| graphs.was_changed(graph)), expected, "{changed:?}");
        }
    }

    /// When nodes are no longer remembered, each graph so far counts as changed: the driver is asked
    /// for it.
    #[test]
    fn what_is_not_remembered_counts_as_changed() {
        let mut graphs = {
            let none = |_: &core::ffi::CStr| core::ptr::null_mut();
            Graphs::new(GraphQuestions::new(&none), Keeper::new(&none))
        };
        graphs.of_graph.insert(1, Vec::new());
        (0..CHANGED).for_each(|node| graphs.node_changed(node + 100));
        assert_eq!((graphs.of_graph.len(), graphs.changed.len()), (1, CHANGED));
        graphs.node_changed(7);
        assert_eq!((graphs.of_graph.len(), graphs.changed.len()), (0, 1));
        graphs.of_graph.insert(2, Vec::new());
        graphs.node_changed(8);
        assert_eq!((graphs.of_graph.len(), graphs.changed.len()), (1, 2));
    }
}
