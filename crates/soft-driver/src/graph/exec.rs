//! Executable graphs: instantiating and launching.

use core::ffi::{c_char, c_ulonglong};
use std::collections::BTreeSet;
use std::sync::Arc;

use cuda_order_check_engine::feed::GraphNode;
use cuda_order_check_engine::{GraphId, StreamId};

use crate::abi::*;
use crate::arg::{Array, Ptr, StreamArg};
use crate::copy;
use crate::engine::point::Point;
use crate::engine::work::Task;
use crate::external_semaphore;
use crate::graph::events;
use crate::graph::{Exec, ExecNode, Graphs, NodeKind};
use crate::machine::call_frame::CallFrame;
use crate::machine::handles::{Bad, Kind};
use crate::machine::{Locked, State};
use crate::memory::Place;
use crate::memory::word::ValueOperation;
use crate::order::Feed;
use crate::values;

exports! { $ [graph::exec]
    cuGraphInstantiate_v2 => graph_instantiate;
    cuGraphInstantiateWithFlags => graph_instantiate_with_flags;
    cuGraphLaunch, cuGraphLaunch_ptsz => graph_launch;
    cuGraphExecDestroy => graph_exec_destroy;
    cuGraphInstantiate => graph_instantiate;
}

/// Refuses a launch over what is gone: an event that was set in the executable graph, an
/// external semaphore, which must not be used once it is destroyed, or memory, which a card
/// writes even if it has a new owner. Instantiation checks its events; the measurements do not
/// cover an event that was set later.
fn refuse_gone(state: &State, call: &CallFrame, exec: u32) -> Answer {
    for node in state.graphs.execs[exec].nodes.iter().filter(|node| node.enabled) {
        match &node.kind {
            NodeKind::Record(event) | NodeKind::Wait(event) if node.set => {
                events::event_is_there(state, call, *event)?;
            }
            NodeKind::Semaphores(batch) => {
                for point in &batch.points {
                    let index = external_semaphore::find_semaphore(state, call, point.handle)?;
                    // Another import may have the handle now.
                    if !Arc::ptr_eq(&state.semaphores[index].semaphore, &point.semaphore) {
                        let kind = Kind::Semaphore;
                        return Err(state.misuses.bad_handle(call, kind, point.handle, Bad::Stale));
                    }
                }
            }
            NodeKind::Memory(work) => memory_is_there(state, call, work.places())?,
            NodeKind::Values(batch) => memory_is_there(state, call, batch.places())?,
            _ => {}
        }
    }
    Ok(())
}

/// Refuses memory that is gone.
fn memory_is_there<'a>(
    state: &State,
    call: &CallFrame,
    mut places: impl Iterator<Item = &'a Place>,
) -> Answer {
    let Some(gone) = places.find(|place| state.memory.addresses.is_gone(place)) else {
        return Ok(());
    };
    let what = format!(
        "a node of the graph uses {:#x}, memory that was freed or has ended with its context \
         since the node was made",
        gone.address
    );
    Err(state.misuses.undefined(call, &what, INVALID_VALUE))
}

/// Refuses nodes of events that are gone, themselves or with their contexts.
pub(crate) fn refuse_nodes_of_gone_events(
    state: &State,
    call: &CallFrame,
    nodes: &[ExecNode],
) -> Result<(), AtFault> {
    for node in nodes {
        if let NodeKind::Record(event) | NodeKind::Wait(event) = node.kind {
            events::event_is_there(state, call, event).map_err(|code| (code, node.original))?;
        }
    }
    Ok(())
}

/// A launch of work of other contexts than the stream's: their ends wait for it.
fn note_launch_elsewhere(state: &mut State, exec: u32, stream: u32, end: &Arc<Point>) {
    let own = state.streams[stream].context;
    let exec = &state.graphs.execs[exec];
    let nodes = exec.nodes.iter().filter_map(|node| node.context);
    let contexts: BTreeSet<u32> =
        nodes.chain([exec.context]).filter(|context| *context != own).collect();
    for context in contexts {
        state.engine.contexts.add_launch_elsewhere(context, end);
    }
}

/// What the order checker is given.
impl Graphs {
    /// The nodes of an executable graph, as they are now.
    pub(crate) fn feed_exec(&self, feed: Option<&mut Feed>, exec: u32) {
        let Some(feed) = feed else { return };
        let nodes = self.execs[exec].nodes.iter();
        let node = |node: &ExecNode| {
            let work = if node.enabled { node.kind.work() } else { Vec::new() };
            GraphNode { work, after: node.after.clone() }
        };
        feed.graph(GraphId(self.execs.handle(exec)), nodes.map(node).collect());
    }

    /// An executable graph is launched, whose nodes are then submitted one after the other.
    fn feed_launch(&self, feed: Option<&mut Feed>, exec: u32, stream: StreamId) {
        let Some(feed) = feed else { return };
        // What the host has stored before is before the whole launch.
        let batches = self.execs[exec].nodes.iter().filter_map(|node| match &node.kind {
            NodeKind::Values(batch) => Some(&batch.operations),
            _ => None,
        });
        for word in batches.flatten().filter_map(ValueOperation::word) {
            feed.find_stored(word.cell(), || word.load());
        }
        feed.launch(stream, GraphId(self.execs.handle(exec)));
    }
}

/// The flags of an instantiation: memory that nodes allocate is freed at each launch, the graph can
/// be launched from the device, each node has its priority.
pub(crate) const AUTO_FREE: u64 = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH as u64;
pub(crate) const DEVICE_LAUNCH: u64 = CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH as u64;
pub(crate) const NODE_PRIORITY: u64 = CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY as u64;

/// Measured: all but `DEVICE_LAUNCH`, which goes with no `AUTO_FREE`.
pub(crate) fn check_instantiate_flags(flags: u64, known: u64) -> Answer {
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
pub(crate) type AtFault = (CUresult, u64);

/// Measured: a graph that the device launches has kernels or memory work, and no host, event or empty node;
/// one without nodes is none.
fn refuse_device_launch(nodes: &[ExecNode]) -> Result<(), AtFault> {
    let fits = |node: &&ExecNode| matches!(node.kind, NodeKind::Memory(_) | NodeKind::Device(_));
    match nodes.iter().find(|node| !fits(node)) {
        Some(node) => Err((INVALID_VALUE, node.original)),
        None if nodes.is_empty() => Err((INVALID_VALUE, 0)),
        None => Ok(()),
    }
}

pub(crate) fn instantiate(
    call: &CallFrame,
    mut state: Locked,
    exec: Ptr<CUgraphExec>,
    graph: Ptr<CUgraph_st>,
    flags: u64,
) -> Result<(), AtFault> {
    let alone = |code| (code, 0);
    let graph = state.graphs.find(graph).map_err(alone)?;
    let context = state.current(call).map_err(alone)?;
    state.captures.refuse_unsafe().map_err(alone)?;
    // Measured: edges that go in a circle are found here.
    let nodes = state.graphs.flattened(graph).ok_or((INVALID_VALUE, 0))?;
    if flags & DEVICE_LAUNCH != 0 {
        refuse_device_launch(&nodes)?;
    }
    refuse_nodes_of_gone_events(&state, call, &nodes)?;
    let State { graphs, engine, feed, .. } = &mut *state;
    let objects = engine.objects.share(&graphs.objects_within(graph));
    let id = graphs.next_id();
    let new = Exec { context, nodes, last: None, objects, id, flags };
    let (index, handle) = graphs.execs.insert(call.number, new).ok_or((OUT_OF_MEMORY, 0))?;
    graphs.feed_exec(feed.as_deref_mut(), index);
    exec.put(core::ptr::without_provenance_mut(handle as usize)).map_err(alone)
}

pub(crate) fn graph_instantiate(
    call: &CallFrame,
    exec: Ptr<CUgraphExec>,
    graph: Ptr<CUgraph_st>,
    error_node: Ptr<CUgraphNode>,
    log: Array<c_char>,
    log_size: usize,
) -> Answer {
    error_node.put_if(core::ptr::null_mut());
    if !log.is_null() && log_size > 0 {
        log.put_if(0);
    }
    graph_instantiate_with_flags(call, exec, graph, 0)
}

pub(crate) fn graph_exec_destroy(call: &CallFrame, exec: Ptr<CUgraphExec_st>) -> Answer {
    let mut state = call.ready()?;
    let index = state.graphs.find_exec(exec)?;
    // Measured: unlike the end of a graph, this is forbidden where queries are.
    state.captures.refuse_unsafe()?;
    let objects: Vec<u64> =
        state.graphs.execs[index].objects.iter().map(|(object, _)| u64::from(*object)).collect();
    state.feed(|feed, ids| feed.graph_destroy(ids.graph(index), objects));
    let State { graphs, engine, feed, .. } = &mut *state;
    if let Some(exec) = graphs.execs.remove(index) {
        engine.objects.release_after(
            &mut engine.jobs,
            feed.as_deref_mut(),
            exec.last,
            exec.objects,
        );
    }
    Ok(())
}

/// Submits the nodes to the stream, one after the other. Launches of one executable graph do not
/// overlap: this one waits for the last one, in whatever stream that was.
pub(crate) fn graph_launch(
    call: &CallFrame,
    exec: Ptr<CUgraphExec_st>,
    stream: StreamArg,
) -> Answer {
    let mut state = call.ready()?;
    let exec = state.graphs.find_exec(exec)?;
    let stream = state.stream(call, stream)?;
    let nodes = state.graphs.execs[exec].nodes.iter().filter(|node| node.enabled);
    let nodes: Vec<NodeKind> = nodes.map(|node| node.kind.clone()).collect();
    let State { captures, streams, .. } = &mut *state;
    captures.refuse_in(streams, stream)?;
    refuse_gone(&state, call, exec)?;
    // Whatever its nodes are, threads are there before the first is submitted: a launch happens
    // whole or not at all.
    state.engine.threads.ensure_host(call.machine)?;
    state.engine.threads.ensure_pool(call.machine)?;
    if nodes.iter().any(|kind| matches!(kind, NodeKind::Device(_))) {
        let streams = state.streams.len();
        state.engine.threads.ensure_device(call.machine, streams)?;
    }
    state.engine.threads.ensure_ticker(call.machine)?;
    if let Some(last) = state.graphs.execs[exec].last.take()
        && !last.is_done()
    {
        state.running().submit(stream, Task::Wait(last));
    }
    let id = StreamId(state.streams.handle(stream));
    let State { graphs, feed, .. } = &mut *state;
    graphs.feed_launch(feed.as_deref_mut(), exec, id);
    let mut shared = Vec::new();
    for kind in nodes {
        if let NodeKind::Memory(work) = &kind {
            shared.extend(copy::shared_with(&state, stream, work));
        }
        match kind {
            NodeKind::Empty | NodeKind::Declared(_) | NodeKind::Child(_) => {}
            NodeKind::Host(host) => state.running().submit(stream, Task::Host(host)),
            NodeKind::Memory(work) => state.running().submit(stream, Task::Memory(work)),
            NodeKind::Device(work) => state.running().submit(stream, Task::Device(work)),
            NodeKind::Busy(ns) => state.running().submit(stream, Task::Busy(ns)),
            NodeKind::Values(batch) => {
                values::submit_values(&mut state, stream, batch, call.origin())
            }
            NodeKind::Semaphores(batch) => {
                external_semaphore::submit_semaphores(&mut state, stream, batch, call.origin());
            }
            // Measured: events that were destroyed since the instantiation are no trouble. Nobody
            // can see such a record any more.
            NodeKind::Record(event) => {
                if let Ok(event) = event.find(&state.events) {
                    state.record(event, stream);
                }
            }
            NodeKind::Wait(event) => {
                if let Ok(event) = event.find(&state.events) {
                    state.wait_for(stream, event);
                }
            }
        }
    }
    let end = state.engine.new_point(false, None);
    state.graphs.execs[exec].last = Some(end.clone());
    note_launch_elsewhere(&mut state, exec, stream, &end);
    state.feed(|feed, _| feed.launched());
    state.running().submit(stream, Task::Complete(end));
    shared.sort_unstable();
    shared.dedup();
    copy::share(&mut state, stream, shared);
    state.running().look_for_deadlock()
}
