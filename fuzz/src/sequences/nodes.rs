//! The calls on nodes of events.

use std::ptr::{null_mut, without_provenance_mut};

use cuda_events::sys::*;

use super::{Bytes, Run, SUCCESS, at};

impl Run {
    fn node(&self, bytes: &mut Bytes<'_>) -> u64 {
        let all = self.model.nodes.iter().map(|it| it.handle).filter(|handle| *handle != 0);
        self.one_of(bytes, &all.collect::<Vec<_>>())
    }

    // SAFETY of the blocks below: as of the other calls.
    #[allow(clippy::undocumented_unsafe_blocks)]
    pub(super) fn nodes(&mut self, operation: u8, bytes: &mut Bytes<'_>) {
        let records = bytes.byte() & 1 == 0;
        match operation {
            0 => {
                let mut graph = null_mut();
                let code = unsafe { (self.table.graph_create)(&mut graph, 0) };
                self.expect("cuGraphCreate", code, (SUCCESS, false));
                self.model.graph_created(graph.addr() as u64);
            }
            1 | 2 => {
                let (graph, event) = (self.graph(bytes), self.handle(bytes, 2));
                let after: Vec<u64> =
                    (0..[0, 0, 1, 1, 2][bytes.below(5)]).map(|_| self.node(bytes)).collect();
                let made = self.model.add_node(graph, &after, records, event);
                let Some(expected) = made else { return };
                let nodes: Vec<CUgraphNode> = after.iter().map(|it| at(*it)).collect();
                let (mut node, count) = (null_mut(), nodes.len());
                let (nodes, graph, event) = (nodes.as_ptr(), at(graph), at(event));
                let code = unsafe {
                    if records {
                        (self.table.add_record)(&mut node, graph, nodes, count, event)
                    } else {
                        (self.table.add_wait)(&mut node, graph, nodes, count, event)
                    }
                };
                match expected {
                    Ok(made) => {
                        self.expect("cuGraphAddEventNode", code, (SUCCESS, false));
                        self.model.node_added(made, node.addr() as u64);
                    }
                    Err(answer) => self.expect("cuGraphAddEventNode", code, answer),
                }
            }
            3 => {
                let node = self.node(bytes);
                let Some((expected, event)) = self.model.get_event(node, records) else { return };
                let mut found = without_provenance_mut(77);
                let code = unsafe {
                    if records {
                        (self.table.get_record)(at(node), &mut found)
                    } else {
                        (self.table.get_wait)(at(node), &mut found)
                    }
                };
                self.expect("cuGraphEventNodeGetEvent", code, expected);
                assert!(code.0 != SUCCESS || found.addr() as u64 == event, "{found:?}");
            }
            4 => {
                let (node, event) = (self.node(bytes), self.handle(bytes, 2));
                let Some(expected) = self.model.set_event(node, records, event) else { return };
                let code = unsafe {
                    if records {
                        (self.table.set_record)(at(node), at(event))
                    } else {
                        (self.table.set_wait)(at(node), at(event))
                    }
                };
                self.expect("cuGraphEventNodeSetEvent", code, expected);
            }
            _ => {
                let (exec, node, event) =
                    (self.exec(bytes), self.node(bytes), self.handle(bytes, 2));
                let expected = self.model.exec_set_event(exec, node, records, event);
                let Some(expected) = expected else { return };
                let code = unsafe {
                    if records {
                        (self.table.exec_set_record)(at(exec), at(node), at(event))
                    } else {
                        (self.table.exec_set_wait)(at(exec), at(node), at(event))
                    }
                };
                self.expect("cuGraphExecEventNodeSetEvent", code, expected);
            }
        }
    }
}
