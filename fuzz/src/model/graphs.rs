//! Graphs: their nodes, executable graphs, and launches.

use std::collections::BTreeSet;

use super::capture::UNSUPPORTED;
use super::work::{Act, Op, Past};
use super::{Answer, INVALID_HANDLE, INVALID_VALUE, Life, Model, SUCCESS, State, misuse, says};

pub struct Graph {
    pub handle: u64,
    /// The handle that was told while it was captured.
    pub told: u64,
    /// A graph that is captured is not alive yet.
    pub life: Life,
}

/// What a node does.
#[derive(Clone, Debug)]
pub enum Deed {
    Act(Act),
    /// A write of a value.
    Value(Act),
    Record(usize),
    Wait(usize),
    /// A signal of external semaphores, or a wait for them.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "there are none"))]
    Semaphore,
}

pub struct Node {
    /// 0 as long as it was not told.
    pub handle: u64,
    pub graph: usize,
    pub after: BTreeSet<usize>,
    pub deed: Deed,
    context: usize,
}

pub struct Exec {
    pub handle: u64,
    pub context: usize,
    pub alive: bool,
    pub graph: usize,
    /// Its nodes, and what they do in it.
    pub deeds: Vec<(usize, Deed)>,
    /// The stream that has a launch that is not done.
    launched: Option<usize>,
    /// The nodes whose event was set here.
    pub(super) set: BTreeSet<usize>,
}

impl Model {
    pub(super) fn new_node(
        &mut self,
        graph: usize,
        after: BTreeSet<usize>,
        deed: Deed,
        context: usize,
    ) -> usize {
        self.nodes.push(Node { handle: 0, graph, after, deed, context });
        self.nodes.len() - 1
    }

    pub(super) fn nodes_of(&self, graph: usize) -> Vec<usize> {
        (0..self.nodes.len()).filter(|node| self.nodes[*node].graph == graph).collect()
    }

    /// Nodes, and all that come before them.
    pub(super) fn up_to(&self, nodes: &BTreeSet<usize>) -> BTreeSet<usize> {
        let (mut all, mut next) = (BTreeSet::new(), Vec::from_iter(nodes.iter().copied()));
        while let Some(node) = next.pop() {
            if all.insert(node) {
                next.extend(&self.nodes[node].after);
            }
        }
        all
    }

    pub(super) fn graph(&self, handle: u64) -> Result<usize, Answer> {
        let alive = |it: &Graph| it.life == Life::Alive && it.handle == handle;
        self.graphs.iter().position(alive).ok_or(says(INVALID_VALUE))
    }

    pub(super) fn exec(&self, handle: u64) -> Result<usize, Answer> {
        let alive = |it: &Exec| it.alive && it.handle == handle;
        self.execs.iter().position(alive).ok_or(says(INVALID_VALUE))
    }

    pub(super) fn launches_are_done(&mut self) {
        self.execs.iter_mut().for_each(|exec| exec.launched = None);
    }

    fn memory_is_gone(&self, act: &Act) -> bool {
        act.spans().any(|span| !self.memory[span.memory].alive)
    }

    /// During a capture its graph is told.
    pub fn told_graph(&mut self, graph: usize, handle: u64) {
        let told = std::mem::replace(&mut self.graphs[graph].told, handle);
        assert!(told == 0 || told == handle, "it was {told:#x}, and now it is {handle:#x}");
    }

    /// The end of a capture gives its graph.
    pub fn captured_graph(&mut self, graph: usize, handle: u64) {
        self.told_graph(graph, handle);
        assert!(self.graph(handle).is_err(), "{handle:#x} is another graph");
        self.graphs[graph].handle = handle;
        self.graphs[graph].life = Life::Alive;
    }

    pub fn graph_destroy(&mut self, handle: u64) -> Answer {
        match self.graph(handle) {
            Ok(graph) => {
                self.graphs[graph].life = Life::Gone;
                says(SUCCESS)
            }
            Err(answer) => answer,
        }
    }

    pub fn instantiate(&self, handle: u64, flags: u64) -> Option<Result<usize, Answer>> {
        // Whether a capture forbids it is open.
        if self.anything_captured() {
            return None;
        }
        // Of two things that are wrong the order is open.
        let known = matches!(flags, 0 | 1 | 4 | 8 | 9 | 12);
        let (context, graph) = match (self.current(), self.graph(handle)) {
            (Ok(context), Ok(graph)) => (context, graph),
            (Ok(_), Err(answer)) => return Some(Err(answer)),
            (Err(answer), Ok(_)) if known => return Some(Err(answer)),
            _ => return None,
        };
        let nodes = self.nodes_of(graph);
        let mut gone = false;
        for node in nodes.iter().map(|node| &self.nodes[*node]) {
            match &node.deed {
                Deed::Act(act) | Deed::Value(act) if self.memory_is_gone(act) => return None,
                Deed::Act(_) | Deed::Value(_) if node.context != context => return None,
                // A semaphore of a node may be destroyed.
                Deed::Semaphore => return None,
                Deed::Record(event) | Deed::Wait(event) => {
                    let event = &self.events[*event];
                    let odd = event.context != context || event.flags & 4 != 0;
                    if odd || event.life == Life::Orphan {
                        return None;
                    }
                    gone |= event.life == Life::Gone;
                }
                _ => {}
            }
        }
        let works = |node: &usize| {
            matches!(self.nodes[*node].deed, Deed::Act(Act::Put(..) | Act::Copy(..)))
        };
        let value = |node: &usize| matches!(self.nodes[*node].deed, Deed::Value(_));
        let good = match flags {
            0 | 1 | 8 | 9 => true,
            4 | 12 if nodes.iter().any(value) => return None,
            4 | 12 => !nodes.is_empty() && nodes.iter().all(works),
            _ => false,
        };
        Some(match (good, gone) {
            (false, true) => return None,
            (false, false) => Err(says(INVALID_VALUE)),
            (true, true) => Err(misuse(INVALID_HANDLE)),
            (true, false) => Ok(graph),
        })
    }

    pub fn instantiated(&mut self, graph: usize, handle: u64) {
        let context = self.current().expect("it was asked");
        let nodes = self.nodes_of(graph);
        let deeds = nodes.iter().map(|node| (*node, self.nodes[*node].deed.clone())).collect();
        self.execs.push(Exec {
            handle,
            context,
            alive: true,
            graph,
            deeds,
            launched: None,
            set: BTreeSet::new(),
        });
    }

    pub fn exec_destroy(&mut self, handle: u64) -> Answer {
        match self.exec(handle) {
            Ok(exec) => {
                self.execs[exec].alive = false;
                says(SUCCESS)
            }
            Err(answer) => answer,
        }
    }

    /// Whether the rules say what a launch does.
    fn is_open(&self, exec: usize, stream: usize) -> bool {
        let (exec, queue) = (&self.execs[exec], &self.streams[stream]);
        if exec.context != queue.context
            || exec.launched.is_some_and(|it| it != stream)
            || !self.is_plain(stream)
            || (exec.deeds.is_empty() && self.is_legacy(stream))
        {
            return true;
        }
        let recorded = |event: usize| {
            exec.deeds.iter().any(|(_, deed)| matches!(deed, Deed::Record(it) if *it == event))
        };
        exec.deeds.iter().any(|(node, deed)| match deed {
            Deed::Act(act) | Deed::Value(act) => self.memory_is_gone(act),
            _ if exec.set.contains(node) && self.is_gone(deed) => false,
            Deed::Record(event) => {
                let part = self.events[*event].part.as_ref();
                part.is_some_and(|part| self.fate(part) != super::capture::Fate::Over)
            }
            Deed::Semaphore => true,
            Deed::Wait(event) => {
                let entry = &self.events[*event];
                entry.part.is_some() || entry.life != Life::Alive || recorded(*event)
            }
        })
    }

    pub fn graph_launch(&mut self, exec: u64, stream: u64) -> Option<Answer> {
        let both = self.exec(exec).and_then(|exec| Ok((exec, self.stream(stream)?)));
        let (exec, stream) = match both {
            Ok(both) => both,
            Err(answer) => return Some(answer),
        };
        if let Some(part) = self.streams[stream].part.clone() {
            if self.fate(&part) != super::capture::Fate::Active {
                return None;
            }
            self.break_one(part.capture);
            return Some(says(UNSUPPORTED));
        }
        if self.is_open(exec, stream) {
            return None;
        }
        let exec_set = &self.execs[exec].set;
        let gone = |it: &&(usize, Deed)| exec_set.contains(&it.0) && self.is_gone(&it.1);
        if self.execs[exec].deeds.iter().any(|it| gone(&it)) {
            return Some(misuse(INVALID_HANDLE));
        }
        let base = self.would_wait(stream);
        let deeds = self.execs[exec].deeds.clone();
        // Of each node, whether it is pending, and what comes before its end.
        let mut done: Vec<(usize, bool, Past)> = Vec::new();
        let mut before = self.streams[stream].past.clone();
        before.extend(self.joins(stream).iter().flat_map(|it| self.streams[*it].past.clone()));
        let (mut ops, mut records) = (Vec::new(), Vec::new());
        for (node, deed) in &deeds {
            let (mut pending, mut past) = (base, before.clone());
            for earlier in done.iter().filter(|it| self.nodes[*node].after.contains(&it.0)) {
                pending |= earlier.1;
                past.extend(&earlier.2);
            }
            match deed {
                Deed::Act(act) | Deed::Value(act) => {
                    pending |= matches!(act, Act::Call(_));
                    let id = self.ops.len() + ops.len();
                    ops.push(Op { act: act.clone(), past: past.clone() });
                    past.insert(id);
                }
                Deed::Record(event) => records.push((*event, pending, past.clone())),
                Deed::Semaphore => {}
                Deed::Wait(event) => {
                    pending |= self.events[*event].state == State::Pending;
                    past.extend(&self.events[*event].past);
                }
            }
            done.push((*node, pending, past));
        }
        let pending = base || done.iter().any(|it| it.1);
        // What does not wait for the work that is held may be done at any time.
        let waits = |at: usize| done[at].1 || matches!(deeds[at].1, Deed::Wait(_));
        if pending && !(0..deeds.len()).all(waits) {
            return None;
        }
        self.join(stream);
        if pending {
            self.ops.append(&mut ops);
            self.streams[stream].pending = true;
            self.streams[stream].past.extend(done.iter().flat_map(|it| &it.2));
            self.execs[exec].launched = Some(stream);
        } else {
            let first = self.ops.len();
            for op in &mut ops {
                op.past = op.past.iter().map(|at| at - first).collect();
            }
            self.apply(&ops);
        }
        for (event, pending, past) in records {
            let entry = &mut self.events[event];
            entry.part = None;
            entry.state = if pending { State::Pending } else { State::Done };
            entry.past = if pending { past } else { Past::new() };
        }
        Some(says(SUCCESS))
    }
}
