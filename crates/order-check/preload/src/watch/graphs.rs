//! Executable graphs.

use cuda_order_check::feed::GraphNode;

use super::nodes::{Flat, KernelParams, SetParams, Work};
use super::*;
use crate::names::Edited;

#[derive(Clone)]
pub(super) enum Node {
    Host(Arc<Host>),
    Write(Access),
    WriteValue(Cell, u64),
    WaitValue(Cell),
    /// Work that the host does not poll, and that writes.
    Work,
}

/// An executable graph whose nodes the driver was asked for.
pub(super) struct Built {
    nodes: Vec<Flat>,
    /// Where each of them is.
    places: HashMap<Handle, usize>,
    /// Whether the checker does not have them as they are.
    changed: bool,
}

impl Built {
    fn new(nodes: Vec<Flat>) -> Self {
        let places = nodes.iter().enumerate().map(|(at, of)| (of.handle, at)).collect();
        Self { nodes, places, changed: true }
    }

    /// The work of a node, which gets other work.
    fn node(&mut self, node: Handle) -> Option<&mut Work> {
        self.changed = true;
        Some(&mut self.nodes.get_mut(*self.places.get(&node)?)?.work)
    }
}

/// How many changed nodes are remembered.
const CHANGED: usize = 1 << 16;

/// Where a node is.
#[derive(Clone, Copy)]
pub(crate) enum NodePlace {
    /// It is added to this graph.
    Graph(Handle),
    Node(Handle),
    /// In an executable graph, the node of this one.
    Exec(Handle, Handle),
}

impl Watch {
    /// An executable graph has the nodes of a graph.
    fn instantiated(&mut self, graph: Handle, exec: Handle) {
        let captured = self.graphs.get(&graph).cloned();
        self.leave(exec);
        if let Some(nodes) = captured.filter(|_| !self.was_changed(graph)) {
            self.feed.graph_copy(GraphId(graph as u64), GraphId(exec as u64));
            self.execs.insert(exec, nodes);
            return;
        }
        match self.nodes_of(graph) {
            Some(nodes) => _ = self.built.insert(exec, Built::new(nodes)),
            None => self.unknown(exec),
        }
    }

    /// The nodes that an executable graph has at its launch. Programs set its nodes one by one, so
    /// the checker has all of them only now.
    fn nodes_of_launch(&mut self, exec: Handle) -> Option<Vec<Node>> {
        let built = self.built.get_mut(&exec);
        if let Some(Built { nodes, changed, .. }) = built.filter(|of| of.changed) {
            *changed = false;
            self.defined += 1;
            let node = |of: &Flat| GraphNode { work: of.work.parts(), after: of.after.clone() };
            self.feed.graph(GraphId(exec as u64), nodes.iter().map(node).collect());
            self.execs.insert(exec, nodes.iter().flat_map(|of| of.work.nodes()).collect());
        }
        self.execs.get(&exec).cloned()
    }

    /// What is in a graph is not known: an instantiation asks the driver, a launch orders
    /// everything.
    ///
    /// The functions that were set in an executable graph are kept for ever, as the driver may
    /// still call them, and launches from here on have no places which would tell when it is done.
    fn unknown(&mut self, graph: Handle) {
        self.graphs.remove(&graph);
        self.execs.remove(&graph);
        self.built.remove(&graph);
    }

    /// A node of an executable graph has other work.
    fn set_node(&mut self, exec: Handle, node: Handle, work: Work) {
        let built = self.built.get_mut(&exec);
        let Some(of) = built.and_then(|of| of.node(node)) else { return self.unknown(exec) };
        if let Work::Host(host) = std::mem::replace(of, work) {
            hosts::left(&host);
        }
    }

    /// An executable graph ends, or gets other nodes.
    fn leave(&mut self, exec: Handle) {
        for of in self.built.remove(&exec).into_iter().flat_map(|of| of.nodes) {
            if let Work::Host(host) = of.work {
                hosts::left(&host);
            }
        }
    }

    /// A node has a host function.
    pub(super) fn host_node(&mut self, place: NodePlace, host: Arc<Host>) {
        match place {
            NodePlace::Graph(graph) => self.unknown(graph),
            NodePlace::Node(node) => self.changed(node),
            NodePlace::Exec(exec, node) => self.set_node(exec, node, Work::Host(host)),
        }
    }

    /// A call changes a graph, an executable graph or a node, by a function of which only the name
    /// is known here.
    pub(super) fn edited(&mut self, what: Edited, arguments: &[Handle; 6]) {
        match what {
            Edited::Graph(at) => self.unknown(arguments.get(at).copied().unwrap_or_default()),
            Edited::Node(at) => self.changed(arguments.get(at).copied().unwrap_or_default()),
        }
    }

    fn changed(&mut self, node: Handle) {
        if self.changed.len() >= CHANGED {
            // Every graph that was captured so far may be one that was changed.
            self.changed.clear();
            self.graphs.clear();
        }
        self.changed.insert(node);
    }

    /// Before the real call of a launch. The number of the call, and the places of its host
    /// functions.
    fn launch_begins(
        &mut self,
        stream: StreamId,
        graph: GraphId,
        nodes: Vec<Node>,
    ) -> (u64, Vec<(Arc<Host>, u64)>) {
        for node in &nodes {
            match node {
                Node::WriteValue(cell, _) | Node::WaitValue(cell) => {
                    self.feed.find_stored(*cell, || load(*cell));
                }
                Node::Write(access) => {
                    let range = &access.range;
                    self.find_stored(range.start, range.end - range.start);
                }
                Node::Host(_) | Node::Work => {}
            }
        }
        let with_place = |node| {
            let place = match &node {
                Node::Host(host) => {
                    let place = self.new_place();
                    host.submitted(place);
                    Some(place)
                }
                Node::Write(Access { range, .. }) => {
                    let flag = self.before_write(range.start, range.end - range.start);
                    self.place_of(stream, flag)
                }
                Node::WriteValue(cell, value) => {
                    let flag = self.flag(stream, *cell, *value);
                    self.place_of_value(flag.map(values::Flag::of_graph))
                }
                Node::WaitValue(_) | Node::Work => None,
            };
            (node, place)
        };
        let mut nodes: Vec<_> = nodes.into_iter().map(with_place).collect();
        let mut hosts = Vec::new();
        for (node, place) in &mut nodes {
            match (node, place) {
                (Node::Host(host), Some(place)) => hosts.push((host.clone(), *place)),
                (_, place) => self.keep_pending(place),
            }
        }
        let places = nodes.iter().filter_map(|(_, place)| *place).collect();
        let is_seen =
            |(node, place): &(Node, Option<u64>)| place.is_none() && self.is_visible(node);
        let at_once = nodes.iter().any(is_seen);
        let visible = Visible { stream, places, at_once };
        let number = self.under_way(visible, move |watch| watch.launch(stream, graph, nodes));
        (number, hosts)
    }

    /// Whether a node writes a word that others than streams can see.
    fn is_visible(&self, node: &Node) -> bool {
        let address = match node {
            Node::WriteValue(cell, _) => cell.address,
            Node::Write(access) if access.range.end - access.range.start <= 8 => access.range.start,
            _ => return false,
        };
        !matches!(self.feed.memory(address), None | Some(Memory::Device))
    }

    /// The driver has accepted a launch of these nodes, with the places of host functions and of
    /// what the host may see.
    fn launch(&mut self, stream: StreamId, graph: GraphId, nodes: Vec<(Node, Option<u64>)>) {
        self.feed.launch(stream, graph);
        for (node, place) in nodes {
            match node {
                Node::Host(_) => {
                    place.into_iter().for_each(|place| self.feed.function(stream, place));
                }
                Node::Write(access) => {
                    let range = &access.range;
                    self.feed.forget_words(range.start, range.end - range.start);
                    self.feed.write(stream, place, &[access]);
                }
                Node::WriteValue(cell, value) => {
                    self.feed.write_value(stream, place, cell, value);
                }
                Node::WaitValue(_) => {}
                Node::Work => self.feed.write(stream, None, &[]),
            }
        }
        self.feed.launched();
        self.launched(stream, graph);
    }
}

/// `settings` begin with the flags.
pub(crate) fn instantiate_with(
    call: &Call,
    real: impl FnOnce() -> Code,
    exec: *mut Handle,
    graph: Handle,
    settings: *const u64,
) -> Code {
    // SAFETY: NULL or the program's settings.
    instantiate(call, real, exec, graph, unsafe { read(settings) })
}

pub(crate) fn instantiate(
    call: &Call,
    real: impl FnOnce() -> Code,
    exec: *mut Handle,
    graph: Handle,
    flags: u64,
) -> Code {
    /// `CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH`.
    const DEVICE_LAUNCH: u64 = 4;
    after(call, real, |watch| {
        watch.seen.launchable += u64::from(flags & DEVICE_LAUNCH != 0);
        // SAFETY: the place for the handle, which a success has written.
        let exec = unsafe { read(exec) };
        watch.instantiated(graph, exec);
        let objects = watch.objects.get(&graph).cloned().unwrap_or_default();
        watch.objects.insert(exec, objects);
    })
}

pub(crate) fn duplicate(
    call: &Call,
    real: impl FnOnce() -> Code,
    clone: *mut Handle,
    graph: Handle,
) -> Code {
    after(call, real, |watch| {
        // SAFETY: as above.
        let clone = unsafe { read(clone) };
        let nodes = watch.graphs.get(&graph).cloned();
        match nodes.filter(|_| !watch.was_changed(graph)) {
            Some(nodes) => {
                watch.feed.graph_copy(GraphId(graph as u64), GraphId(clone as u64));
                watch.graphs.insert(clone, nodes);
            }
            // Its instantiation asks the driver.
            None => watch.unknown(clone),
        }
        let objects = watch.objects.get(&graph).cloned().unwrap_or_default();
        watch.objects.insert(clone, objects);
    })
}

pub(crate) fn set_kernel<T: Copy + Default + Into<KernelParams>>(
    call: &Call,
    real: impl FnOnce() -> Code,
    exec: Handle,
    node: Handle,
    of: *const T,
) -> Code {
    after(call, real, |watch| {
        // SAFETY: NULL or the program's description.
        let work = watch.kernel_work(&unsafe { read(of) }.into());
        watch.set_node(exec, node, work);
    })
}

pub(crate) fn set_copy(
    call: &Call,
    real: impl FnOnce() -> Code,
    exec: Handle,
    node: Handle,
    of: *const Copy3D,
) -> Code {
    // SAFETY: as above.
    after(call, real, |watch| watch.set_node(exec, node, Work::of_copy(&unsafe { read(of) })))
}

pub(crate) fn set_memset(
    call: &Call,
    real: impl FnOnce() -> Code,
    exec: Handle,
    node: Handle,
    of: *const SetParams,
) -> Code {
    // SAFETY: as above.
    after(call, real, |watch| watch.set_node(exec, node, Work::of_set(&unsafe { read(of) })))
}

pub(crate) fn destroy_node(call: &Call, real: impl FnOnce() -> Code, node: Handle) -> Code {
    let kept = begin(call, hosts::OfNode::new).and_then(|asks| {
        let graph = asks.graph(node);
        with(|watch| match graph {
            Some(graph) => watch.unknown(graph),
            // No graph has the node any longer. So any that was captured may have had it.
            None => watch.graphs.clear(),
        });
        asks.kept(graph?, node)
    });
    let code = real();
    if let (OK, Some(kept)) = (code, kept) {
        kept.take();
    }
    code
}

pub(crate) fn destroy(call: &Call, real: impl FnOnce() -> Code, graph: Handle) -> Code {
    begin(call, |watch| {
        let objects = watch.objects.remove(&graph).unwrap_or_default();
        watch.feed.graph_destroy(GraphId(graph as u64), objects);
        watch.leave(graph);
        watch.unknown(graph);
    });
    real()
}

pub(crate) fn launch(
    call: &Call,
    real: impl FnOnce() -> Code,
    exec: Handle,
    stream: Handle,
) -> Code {
    let begun = begin(call, |watch| {
        watch.seen.graphs += 1;
        let stream = watch.stream(call, stream);
        if watch.feed.capture_of(stream).is_some() {
            // The driver refuses it, and the capture with it.
            return None;
        }
        let Some(nodes) = watch.nodes_of_launch(exec) else {
            watch.seen.unknown += 1;
            watch.order_everything();
            return None;
        };
        Some(watch.launch_begins(stream, GraphId(exec as u64), nodes))
    });
    if begun.is_none() {
        hosts::unseen();
    }
    let code = real();
    if let Some((number, hosts)) = begun.flatten() {
        if code != OK {
            hosts.iter().for_each(|(host, place)| host.withdrawn(*place));
        }
        with(|watch| watch.returned(number, code));
    }
    code
}

pub(crate) fn update(
    call: &Call,
    real: impl FnOnce() -> Code,
    exec: Handle,
    graph: Handle,
) -> Code {
    after(call, real, |watch| {
        watch.instantiated(graph, exec);
        let former = watch.objects.get(&exec).cloned().unwrap_or_default();
        watch.feed.objects_left(GraphId(exec as u64), former);
        let objects = watch.objects.get(&graph).cloned().unwrap_or_default();
        watch.objects.entry(exec).or_default().extend(objects);
    })
}

#[cfg(test)]
mod tests;
