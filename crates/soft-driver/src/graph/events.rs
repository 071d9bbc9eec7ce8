//! Nodes of graphs that have an event: records and waits.

use crate::abi::*;
use crate::arg::{EventArg, In, Ptr};
use crate::event;
use crate::graph::calls::add_node_with;
use crate::graph::{NodeEvent, NodeKind};
use crate::machine::State;
use crate::machine::call_frame::CallFrame;
use crate::machine::handles::Kind;

exports! { $ [graph::events]
    cuGraphAddEventRecordNode => (graph_add_event_node::<true>);
    cuGraphAddEventWaitNode => (graph_add_event_node::<false>);
    cuGraphEventRecordNodeGetEvent => (graph_event_node_get_event::<true>);
    cuGraphEventRecordNodeSetEvent => (graph_event_node_set_event::<true>);
    cuGraphEventWaitNodeGetEvent => (graph_event_node_get_event::<false>);
    cuGraphEventWaitNodeSetEvent => (graph_event_node_set_event::<false>);
    cuGraphExecEventRecordNodeSetEvent => (graph_exec_event_node_set_event::<true>);
    cuGraphExecEventWaitNodeSetEvent => (graph_exec_event_node_set_event::<false>);
}

/// Refuses an event that is gone, itself or with its context.
pub(crate) fn event_is_there(state: &State, call: &CallFrame, event: NodeEvent) -> Answer {
    match event.find(&state.events) {
        Ok(index) if state.events[index].is_orphan() => {
            Err(event::orphaned(state, call, event.handle))
        }
        Ok(_) => Ok(()),
        Err(bad) => Err(state.misuses.bad_handle(call, Kind::Event, event.handle, bad)),
    }
}

fn node_event(state: &State, call: &CallFrame, event: EventArg) -> Result<NodeEvent, CUresult> {
    if event.is_null() {
        return Err(INVALID_VALUE);
    }
    Ok(NodeEvent::new(&state.events, state.event(call, event)?))
}

pub(crate) fn graph_add_event_node<const RECORD: bool>(
    call: &CallFrame,
    node: Ptr<CUgraphNode>,
    graph: Ptr<CUgraph_st>,
    dependencies: In<CUgraphNode>,
    count: usize,
    event: EventArg,
) -> Answer {
    add_node_with(call, node, graph, dependencies, count, |state| {
        let event = node_event(state, call, event)?;
        Ok(if RECORD { NodeKind::Record(event) } else { NodeKind::Wait(event) })
    })
}

/// Whether both are of one kind, of those that have an event.
fn event_of(kind: &NodeKind, record: bool) -> Option<NodeEvent> {
    match kind {
        NodeKind::Record(event) if record => Some(*event),
        NodeKind::Wait(event) if !record => Some(*event),
        _ => None,
    }
}

pub(crate) fn graph_event_node_get_event<const RECORD: bool>(
    call: &CallFrame,
    node: Ptr<CUgraphNode_st>,
    event: Ptr<CUevent>,
) -> Answer {
    let state = call.ready()?;
    event.required()?;
    let found = event_of(&state.graphs.node(node)?.kind, RECORD).ok_or(INVALID_VALUE)?;
    event.put(core::ptr::without_provenance_mut(found.handle as usize))
}

pub(crate) fn graph_event_node_set_event<const RECORD: bool>(
    call: &CallFrame,
    node: Ptr<CUgraphNode_st>,
    event: EventArg,
) -> Answer {
    let mut state = call.ready()?;
    state.graphs.node(node)?;
    let event = node_event(&state, call, event)?;
    let node = state.graphs.node_mut(node)?;
    event_of(&node.kind, RECORD).ok_or(INVALID_VALUE)?;
    node.kind = if RECORD { NodeKind::Record(event) } else { NodeKind::Wait(event) };
    Ok(())
}

pub(crate) fn graph_exec_event_node_set_event<const RECORD: bool>(
    call: &CallFrame,
    exec: Ptr<CUgraphExec_st>,
    node: Ptr<CUgraphNode_st>,
    event: EventArg,
) -> Answer {
    let mut state = call.ready()?;
    let exec = state.graphs.find_exec(exec)?;
    let event = node_event(&state, call, event)?;
    let node = state.graphs.exec_node(exec, node)?;
    event_of(&node.kind, RECORD).ok_or(INVALID_VALUE)?;
    node.kind = if RECORD { NodeKind::Record(event) } else { NodeKind::Wait(event) };
    node.set = true;
    let State { graphs, feed, .. } = &mut *state;
    graphs.feed_exec(feed.as_deref_mut(), exec);
    Ok(())
}
