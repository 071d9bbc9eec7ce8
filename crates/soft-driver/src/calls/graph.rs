//! Graph calls: nodes for events, instantiation, launch, update of events, clone.

use core::ffi::{c_uchar, c_uint, c_ulonglong};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::abi::*;
use crate::arg::{EventArg, Ptr, StreamArg};
use crate::memory::Place;
use crate::model::call_frame::CallFrame;
use crate::model::graph::{Exec, ExecNode, Graph, Node, NodeKind, NodeParams};
use crate::model::handles::Kind;
use crate::model::machine::{Locked, State};
use crate::model::point::Point;
use crate::model::work::Task;

impl State {
    pub(crate) fn new_graph(&mut self) -> Result<(u32, u64), CUresult> {
        self.graph_ids += 1;
        let new = Graph { id: self.graph_ids, ..Graph::default() };
        self.graphs.insert(self.call_number, new).ok_or(OUT_OF_MEMORY)
    }

    pub(crate) fn graph_handle(&self, graph: u32) -> CUgraph {
        core::ptr::without_provenance_mut(self.graphs.handle(graph) as usize)
    }

    /// Measured: these handles are checked, and a bad one is an invalid value.
    pub(crate) fn graph(&self, graph: Ptr<CUgraph_st>) -> Result<u32, CUresult> {
        self.graphs.find(graph.addr()).map_err(|_| INVALID_VALUE)
    }

    pub(crate) fn node(&self, node: CUgraphNode) -> Result<u32, CUresult> {
        self.nodes.find(node.addr() as u64).map_err(|_| INVALID_VALUE)
    }

    pub(crate) fn exec(&self, exec: Ptr<CUgraphExec_st>) -> Result<u32, CUresult> {
        self.execs.find(exec.addr()).map_err(|_| INVALID_VALUE)
    }

    /// The nodes of an array argument, which must be of that graph.
    pub(crate) fn nodes_of(
        &self,
        graph: u32,
        nodes: Ptr<CUgraphNode>,
        count: usize,
    ) -> Result<Vec<u32>, CUresult> {
        let nodes = nodes.read_array(count)?.into_iter().map(|node| {
            let node = self.node(node)?;
            if self.nodes[node].graph == graph { Ok(node) } else { Err(INVALID_VALUE) }
        });
        nodes.collect()
    }

    pub(crate) fn add_node(
        &mut self,
        graph: u32,
        after: Vec<u32>,
        kind: NodeKind,
    ) -> Result<u32, CUresult> {
        let id = self.graphs[graph].nodes_made;
        let new = Node { graph, after, kind, context: None, id, clone_of: 0, params: None };
        let (node, _) = self.nodes.insert(self.call_number, new).ok_or(OUT_OF_MEMORY)?;
        let graph = &mut self.graphs[graph];
        graph.nodes.push(node);
        graph.nodes_made += 1;
        Ok(node)
    }

    /// Removes a node, and the graph that is its own. Its graph still has it in its list.
    pub(crate) fn remove_node(&mut self, node: u32) {
        if let Some(Node { kind: NodeKind::Child(inner), .. }) = self.nodes.remove(node) {
            self.remove_graph(inner);
        }
    }

    /// Refuses a copy of a graph and `more` nodes if there are not enough handles. A copy that
    /// failed halfway would have to be taken back.
    pub(crate) fn room_for_copy(&self, graph: u32, more: usize) -> Answer {
        let (mut graphs, mut nodes, mut left) = (0, more, vec![graph]);
        while let Some(graph) = left.pop() {
            graphs += 1;
            nodes += self.graphs[graph].nodes.len();
            left.extend(self.graphs[graph].nodes.iter().filter_map(|node| {
                match self.nodes[*node].kind {
                    NodeKind::Child(inner) => Some(inner),
                    _ => None,
                }
            }));
        }
        let fits = self.graphs.room() >= graphs && self.nodes.room() >= nodes;
        if fits { Ok(()) } else { Err(OUT_OF_MEMORY) }
    }

    /// A copy of a graph and of the graphs of its nodes, for which there is
    /// [room](Self::room_for_copy).
    pub(crate) fn copy_graph(&mut self, graph: u32, parent: Option<u32>) -> Result<u32, CUresult> {
        let (new, _) = self.new_graph()?;
        self.graphs[new].parent = parent;
        let mut copies = BTreeMap::new();
        let nodes = self.graphs[graph].nodes.clone();
        for node in &nodes {
            let copy = self.add_node(new, Vec::new(), self.nodes[*node].kind.clone())?;
            copies.insert(*node, copy);
            self.nodes[copy].clone_of = self.nodes.handle(*node);
            self.nodes[copy].params = self.nodes[*node].params;
            self.nodes[copy].context = self.nodes[*node].context;
            if let NodeKind::Child(inner) = self.nodes[*node].kind {
                self.nodes[copy].kind = NodeKind::Child(self.copy_graph(inner, Some(copy))?);
            }
        }
        // An edge may come from a node that was added later.
        for node in &nodes {
            let after = self.nodes[*node].after.iter();
            self.nodes[copies[node]].after =
                after.filter_map(|other| copies.get(other).copied()).collect();
        }
        let objects = self.graphs[graph].objects.clone();
        self.graphs[new].objects = self.share_objects(&objects);
        Ok(new)
    }

    pub(crate) fn remove_graph(&mut self, graph: u32) {
        if let Some(graph) = self.graphs.remove(graph) {
            for node in graph.nodes {
                self.remove_node(node);
            }
            self.release_objects(graph.objects);
        }
    }

    /// Refuses a launch over what is gone: an event that was set in the executable graph, an
    /// external semaphore, which must not be used once it is destroyed, or memory, which a card
    /// writes even if it has a new owner. Instantiation checks events, so that what is measured of
    /// those says nothing about one that came later.
    fn refuse_gone(&self, call: &CallFrame, exec: u32) -> Answer {
        for node in &self.execs[exec].nodes {
            match &node.kind {
                NodeKind::Record(event) | NodeKind::Wait(event) if node.set => {
                    self.event_is_there(call, *event)?;
                }
                NodeKind::Semaphores(of) => {
                    for point in &of.points {
                        self.semaphore(call, point.handle)?;
                    }
                }
                NodeKind::Memory(work) => self.memory_is_there(call, work.places())?,
                NodeKind::Values(batch) => self.memory_is_there(call, batch.places())?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Refuses memory that is gone.
    fn memory_is_there<'a>(
        &self,
        call: &CallFrame,
        mut places: impl Iterator<Item = &'a Place>,
    ) -> Answer {
        let Some(gone) = places.find(|place| self.memory.is_gone(place)) else { return Ok(()) };
        let what = format!(
            "a node of the graph uses {:#x}, memory that was freed or has ended with its context \
             since the node was made",
            gone.address
        );
        Err(self.misuse(call, &what, INVALID_VALUE))
    }

    /// Refuses an event that is gone, itself or with its context.
    fn event_is_there(&self, call: &CallFrame, event: u64) -> Answer {
        match self.events.find(event) {
            Ok(index) if self.events[index].orphan => Err(self.orphaned(call, event)),
            Ok(_) => Ok(()),
            Err(bad) => Err(self.bad_handle(call, Kind::Event, event, bad)),
        }
    }

    fn event_handle(&self, call: &CallFrame, event: EventArg) -> Result<u64, CUresult> {
        if event.is_null() {
            return Err(INVALID_VALUE);
        }
        self.event(call, event)?;
        Ok(event.addr())
    }
}

pub(crate) fn graph_create(call: &CallFrame, graph: Ptr<CUgraph>, flags: c_uint) -> Answer {
    let mut state = call.ready()?;
    graph.required()?;
    if flags != 0 {
        return Err(INVALID_VALUE);
    }
    let (new, _) = state.new_graph()?;
    graph.put(state.graph_handle(new))
}

pub(crate) fn graph_destroy(call: &CallFrame, graph: Ptr<CUgraph_st>) -> Answer {
    let mut state = call.ready()?;
    let index = state.graph(graph)?;
    if state.captures.has_graph(index) {
        return Err(ILLEGAL_STATE);
    }
    // Documented: it goes with its node.
    if state.graphs[index].parent.is_some() {
        return Err(INVALID_VALUE);
    }
    state.remove_graph(index);
    Ok(())
}

/// How a graph can be instantiated, bit by bit: memory that nodes allocate is freed at each launch,
/// the graph is sent to the device at once, it can be launched from the device, each node has its
/// priority.
const AUTO_FREE: u64 = 1;
const UPLOAD: u64 = 2;
const DEVICE_LAUNCH: u64 = 4;
const NODE_PRIORITY: u64 = 8;

/// Of [`InstantiateParams::result`]: the call failed for another reason than the graph's nodes, or
/// because of a node that cannot be in such a graph.
const INSTANTIATE_ERROR: u32 = 1;
const NODE_NOT_SUPPORTED: u32 = 3;

/// Measured: all but `DEVICE_LAUNCH`, which goes with no `AUTO_FREE`.
fn check_instantiate_flags(flags: u64, known: u64) -> Answer {
    let both = AUTO_FREE | DEVICE_LAUNCH;
    if flags & !known != 0 || flags & both == both { Err(INVALID_VALUE) } else { Ok(()) }
}

pub(crate) fn graph_instantiate_with_flags(
    call: &CallFrame,
    exec: Ptr<CUgraphExec>,
    graph: Ptr<CUgraph_st>,
    flags: c_ulonglong,
) -> Answer {
    let state = call.ready()?;
    exec.required()?;
    // Measured: to send it ahead takes a stream, which only the other form has.
    check_instantiate_flags(flags, AUTO_FREE | DEVICE_LAUNCH | NODE_PRIORITY)?;
    instantiate(call, state, exec, graph, flags).map_err(|(code, _)| code)
}

/// The failure, and the handle of the node that is at fault, or 0.
type AtFault = (CUresult, u64);

/// Measured: a graph that the device launches has memory work, and no host, event or empty node;
/// one without nodes is none.
fn refuse_device_launch(nodes: &[ExecNode]) -> Result<(), AtFault> {
    let memory = |node: &&ExecNode| matches!(node.kind, NodeKind::Memory(_));
    match nodes.iter().find(|node| !memory(node)) {
        Some(node) => Err((INVALID_VALUE, node.of)),
        None if nodes.is_empty() => Err((INVALID_VALUE, 0)),
        None => Ok(()),
    }
}

impl State {
    /// Refuses nodes of events that are gone, themselves or with their contexts.
    pub(crate) fn refuse_nodes_of_gone_events(
        &self,
        call: &CallFrame,
        nodes: &[ExecNode],
    ) -> Result<(), AtFault> {
        for node in nodes {
            if let NodeKind::Record(event) | NodeKind::Wait(event) = node.kind {
                self.event_is_there(call, event).map_err(|code| (code, node.of))?;
            }
        }
        Ok(())
    }
}

impl State {
    /// A launch of work of other contexts than the stream's: their ends wait for it.
    fn note_elsewhere(&mut self, exec: u32, stream: u32, end: &Arc<Point>) {
        let own = self.streams[stream].context;
        let exec = &self.execs[exec];
        let nodes = exec.nodes.iter().filter_map(|node| node.context);
        let contexts: BTreeSet<u32> =
            nodes.chain([exec.context]).filter(|context| *context != own).collect();
        for context in contexts {
            let elsewhere = &mut self.contexts[context].elsewhere;
            elsewhere.retain(|end| !end.is_done());
            elsewhere.push(end.clone());
        }
    }
}

fn instantiate(
    call: &CallFrame,
    mut state: Locked,
    exec: Ptr<CUgraphExec>,
    graph: Ptr<CUgraph_st>,
    flags: u64,
) -> Result<(), AtFault> {
    let alone = |code| (code, 0);
    let graph = state.graph(graph).map_err(alone)?;
    let context = state.current(call).map_err(alone)?;
    // Measured: edges that go in a circle are found here.
    let nodes = state.flattened(graph).ok_or((INVALID_VALUE, 0))?;
    if flags & DEVICE_LAUNCH != 0 {
        refuse_device_launch(&nodes)?;
    }
    state.refuse_nodes_of_gone_events(call, &nodes)?;
    let objects = state.objects_within(graph);
    let objects = state.share_objects(&objects);
    state.graph_ids += 1;
    let (born, id) = (state.call_number, state.graph_ids);
    let new = Exec { context, nodes, last: None, objects, id, flags };
    let (index, handle) = state.execs.insert(born, new).ok_or((OUT_OF_MEMORY, 0))?;
    state.feed_graph(index);
    exec.put(core::ptr::without_provenance_mut(handle as usize)).map_err(alone)
}

pub(crate) fn graph_instantiate(
    call: &CallFrame,
    exec: Ptr<CUgraphExec>,
    graph: Ptr<CUgraph_st>,
    error_node: Ptr<CUgraphNode>,
    log: Ptr<c_uchar>,
    log_size: usize,
) -> Answer {
    error_node.put_if(core::ptr::null_mut());
    if !log.is_null() && log_size > 0 {
        log.put_if(0);
    }
    graph_instantiate_with_flags(call, exec, graph, 0)
}

pub(crate) fn graph_instantiate_with_params(
    call: &CallFrame,
    exec: Ptr<CUgraphExec>,
    graph: Ptr<CUgraph_st>,
    params: Ptr<InstantiateParams>,
) -> Answer {
    let mut settings = params.get()?;
    let state = call.ready()?;
    exec.required()?;
    let known = AUTO_FREE | UPLOAD | DEVICE_LAUNCH | NODE_PRIORITY;
    check_instantiate_flags(settings.flags, known)?;
    let done = instantiate(call, state, exec, graph, settings.flags);
    // Documented: what went wrong, and with which node.
    let (result, node) = match done {
        Ok(()) => (0, 0),
        Err((_, node)) if node != 0 && settings.flags & DEVICE_LAUNCH != 0 => {
            (NODE_NOT_SUPPORTED, node)
        }
        Err((_, node)) => (INSTANTIATE_ERROR, node),
    };
    settings.error_node = core::ptr::without_provenance_mut(node as usize);
    settings.result = result;
    params.put(settings)?;
    done.map_err(|(code, _)| code)
}

pub(crate) fn graph_exec_destroy(call: &CallFrame, exec: Ptr<CUgraphExec_st>) -> Answer {
    let mut state = call.ready()?;
    let index = state.exec(exec)?;
    let objects: Vec<u64> =
        state.execs[index].objects.iter().map(|(object, _)| u64::from(*object)).collect();
    state.feed(|feed, of| feed.graph_destroy(of.graph(index), objects));
    if let Some(exec) = state.execs.remove(index) {
        match exec.last {
            Some(last) if !last.is_done() => state.engine.deferred.push((last, exec.objects)),
            _ => state.release_objects(exec.objects),
        }
    }
    Ok(())
}

pub(crate) fn graph_launch(
    call: &CallFrame,
    exec: Ptr<CUgraphExec_st>,
    stream: StreamArg,
) -> Answer {
    let mut state = call.ready()?;
    let exec = state.exec(exec)?;
    let stream = state.stream(call, stream)?;
    let nodes: Vec<NodeKind> =
        state.execs[exec].nodes.iter().map(|node| node.kind.clone()).collect();
    state.refuse_in_capture(stream)?;
    state.refuse_gone(call, exec)?;
    // Whatever its nodes are, threads are there before the first is submitted: a launch happens
    // whole or not at all.
    state.ensure_host_thread(call.machine)?;
    state.ensure_pool_thread(call.machine)?;
    state.ensure_ticker_thread(call.machine)?;
    if let Some(last) = state.execs[exec].last.take()
        && !last.is_done()
    {
        state.submit(call.machine, stream, Task::Wait(last));
    }
    state.feed_launch(exec, stream);
    for kind in nodes {
        match kind {
            NodeKind::Empty | NodeKind::Declared(_) | NodeKind::Child(_) => {}
            NodeKind::Host(host) => state.submit(call.machine, stream, Task::Host(host)),
            NodeKind::Memory(work) => state.submit(call.machine, stream, Task::Memory(work)),
            NodeKind::Busy(ns) => state.submit(call.machine, stream, Task::Busy(ns)),
            NodeKind::Values(batch) => {
                state.submit_values(call.machine, stream, batch, call.origin())
            }
            NodeKind::Semaphores(of) => {
                state.submit_semaphores(call.machine, stream, of, call.origin());
            }
            // Measured: events that were destroyed since the instantiation are no trouble. Nobody
            // can see such a record any more.
            NodeKind::Record(event) => {
                if let Ok(event) = state.events.find(event) {
                    state.record(call.machine, event, stream);
                }
            }
            NodeKind::Wait(event) => {
                if let Ok(event) = state.events.find(event) {
                    state.wait_for(call.machine, stream, event);
                }
            }
        }
    }
    let end = state.new_point(false, None);
    state.execs[exec].last = Some(end.clone());
    state.note_elsewhere(exec, stream, &end);
    state.feed(|feed, _| feed.launched());
    state.submit(call.machine, stream, Task::Complete(end));
    state.look_for_deadlock(call.machine)
}

pub(crate) fn add_node_with(
    call: &CallFrame,
    out: Ptr<CUgraphNode>,
    graph: Ptr<CUgraph_st>,
    dependencies: Ptr<CUgraphNode>,
    count: usize,
    kind: impl FnOnce(&State) -> Result<NodeKind, CUresult>,
) -> Answer {
    add_node_of(call, out, graph, dependencies, count, |state| Ok((kind(state)?, None)))
}

/// As [`add_node_with`], for a node that shows the parameters it was made with.
pub(crate) fn add_node_of(
    call: &CallFrame,
    out: Ptr<CUgraphNode>,
    graph: Ptr<CUgraph_st>,
    dependencies: Ptr<CUgraphNode>,
    count: usize,
    made: impl FnOnce(&State) -> Result<(NodeKind, Option<NodeParams>), CUresult>,
) -> Answer {
    let mut state = call.ready()?;
    out.required()?;
    let graph = state.graph(graph)?;
    let after = state.nodes_of(graph, dependencies, count)?;
    let (kind, params) = made(&state)?;
    let node = state.add_node(graph, after, kind)?;
    state.nodes[node].params = params;
    out.put(core::ptr::without_provenance_mut(state.nodes.handle(node) as usize))
}

pub(crate) fn graph_add_event_record_node(
    call: &CallFrame,
    node: Ptr<CUgraphNode>,
    graph: Ptr<CUgraph_st>,
    dependencies: Ptr<CUgraphNode>,
    count: usize,
    event: EventArg,
) -> Answer {
    add_node_with(call, node, graph, dependencies, count, |state| {
        Ok(NodeKind::Record(state.event_handle(call, event)?))
    })
}

pub(crate) fn graph_add_event_wait_node(
    call: &CallFrame,
    node: Ptr<CUgraphNode>,
    graph: Ptr<CUgraph_st>,
    dependencies: Ptr<CUgraphNode>,
    count: usize,
    event: EventArg,
) -> Answer {
    add_node_with(call, node, graph, dependencies, count, |state| {
        Ok(NodeKind::Wait(state.event_handle(call, event)?))
    })
}

pub(crate) fn graph_add_empty_node(
    call: &CallFrame,
    node: Ptr<CUgraphNode>,
    graph: Ptr<CUgraph_st>,
    dependencies: Ptr<CUgraphNode>,
    count: usize,
) -> Answer {
    add_node_with(call, node, graph, dependencies, count, |_| Ok(NodeKind::Empty))
}

/// Whether both are of one kind, of those that have an event.
fn event_of(kind: &NodeKind, record: bool) -> Option<u64> {
    match kind {
        NodeKind::Record(event) if record => Some(*event),
        NodeKind::Wait(event) if !record => Some(*event),
        _ => None,
    }
}

fn get_event(
    call: &CallFrame,
    node: Ptr<CUgraphNode_st>,
    event: Ptr<CUevent>,
    record: bool,
) -> Answer {
    let state = call.ready()?;
    event.required()?;
    let node = state.node(node.raw())?;
    let found = event_of(&state.nodes[node].kind, record).ok_or(INVALID_VALUE)?;
    event.put(core::ptr::without_provenance_mut(found as usize))
}

fn set_event(call: &CallFrame, node: Ptr<CUgraphNode_st>, event: EventArg, record: bool) -> Answer {
    let mut state = call.ready()?;
    let node = state.node(node.raw())?;
    let event = state.event_handle(call, event)?;
    event_of(&state.nodes[node].kind, record).ok_or(INVALID_VALUE)?;
    state.nodes[node].kind = if record { NodeKind::Record(event) } else { NodeKind::Wait(event) };
    Ok(())
}

fn set_exec_event(
    call: &CallFrame,
    exec: Ptr<CUgraphExec_st>,
    node: Ptr<CUgraphNode_st>,
    event: EventArg,
    record: bool,
) -> Answer {
    let mut state = call.ready()?;
    let exec = state.exec(exec)?;
    let event = state.event_handle(call, event)?;
    let wanted = node.addr();
    state.node(node.raw())?;
    let node =
        state.execs[exec].nodes.iter_mut().find(|node| node.of == wanted).ok_or(INVALID_VALUE)?;
    event_of(&node.kind, record).ok_or(INVALID_VALUE)?;
    node.kind = if record { NodeKind::Record(event) } else { NodeKind::Wait(event) };
    node.set = true;
    state.feed_graph(exec);
    Ok(())
}

pub(crate) fn graph_event_record_node_get_event(
    call: &CallFrame,
    node: Ptr<CUgraphNode_st>,
    event: Ptr<CUevent>,
) -> Answer {
    get_event(call, node, event, true)
}

pub(crate) fn graph_event_wait_node_get_event(
    call: &CallFrame,
    node: Ptr<CUgraphNode_st>,
    event: Ptr<CUevent>,
) -> Answer {
    get_event(call, node, event, false)
}

pub(crate) fn graph_event_record_node_set_event(
    call: &CallFrame,
    node: Ptr<CUgraphNode_st>,
    event: EventArg,
) -> Answer {
    set_event(call, node, event, true)
}

pub(crate) fn graph_event_wait_node_set_event(
    call: &CallFrame,
    node: Ptr<CUgraphNode_st>,
    event: EventArg,
) -> Answer {
    set_event(call, node, event, false)
}

pub(crate) fn graph_exec_event_record_node_set_event(
    call: &CallFrame,
    exec: Ptr<CUgraphExec_st>,
    node: Ptr<CUgraphNode_st>,
    event: EventArg,
) -> Answer {
    set_exec_event(call, exec, node, event, true)
}

pub(crate) fn graph_exec_event_wait_node_set_event(
    call: &CallFrame,
    exec: Ptr<CUgraphExec_st>,
    node: Ptr<CUgraphNode_st>,
    event: EventArg,
) -> Answer {
    set_exec_event(call, exec, node, event, false)
}

/// Nothing has to be sent ahead to a device that is this machine.
pub(crate) fn graph_upload(
    call: &CallFrame,
    exec: Ptr<CUgraphExec_st>,
    stream: StreamArg,
) -> Answer {
    let mut state = call.ready()?;
    state.exec(exec)?;
    state.stream(call, stream)?;
    Ok(())
}

pub(crate) fn graph_clone(call: &CallFrame, clone: Ptr<CUgraph>, graph: Ptr<CUgraph_st>) -> Answer {
    let mut state = call.ready()?;
    clone.required()?;
    let graph = state.graph(graph)?;
    state.room_for_copy(graph, 0)?;
    let new = state.copy_graph(graph, None)?;
    clone.put(state.graph_handle(new))
}
