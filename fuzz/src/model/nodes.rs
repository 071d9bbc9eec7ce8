//! Nodes of graphs that record an event or wait for one.

use std::collections::BTreeSet;

use super::capture::Fate;
use super::graphs::{Deed, Graph};
use super::{Answer, INVALID_VALUE, Life, Model, SUCCESS, says};

impl Deed {
    fn of(records: bool, event: usize) -> Self {
        if records { Self::Record(event) } else { Self::Wait(event) }
    }

    fn event(&self, records: bool) -> Option<usize> {
        match self {
            Self::Record(event) if records => Some(*event),
            Self::Wait(event) if !records => Some(*event),
            _ => None,
        }
    }
}

impl Model {
    /// Whether a node is about an event that was destroyed.
    pub(super) fn is_gone(&self, deed: &Deed) -> bool {
        let event = deed.event(true).or(deed.event(false));
        event.is_some_and(|event| self.events[event].life == Life::Gone)
    }

    /// During a capture its nodes are told.
    pub fn told_node(&mut self, node: usize, handle: u64) {
        let told = std::mem::replace(&mut self.nodes[node].handle, handle);
        assert!(told == 0 || told == handle, "it was {told:#x}, and now it is {handle:#x}");
    }

    /// A node of a graph that is alive, or is captured; the rules leave open what becomes of a
    /// graph whose capture is broken.
    fn node(&self, handle: u64) -> Option<Result<usize, Answer>> {
        let found = self.nodes.iter().rposition(|it| it.handle == handle && handle != 0);
        let Some(node) = found else { return Some(Err(says(INVALID_VALUE))) };
        let graph = self.nodes[node].graph;
        if self.graphs[graph].life == Life::Alive {
            return Some(Ok(node));
        }
        match self.captures.iter().rfind(|it| it.graph == graph).map(|it| it.fate) {
            Some(Fate::Active) => Some(Ok(node)),
            Some(Fate::Invalid) => None,
            Some(Fate::Over) | None => Some(Err(says(INVALID_VALUE))),
        }
    }

    /// A node of this kind.
    fn node_of(&self, handle: u64, records: bool) -> Option<Result<(usize, usize), Answer>> {
        Some(self.node(handle)?.and_then(|node| {
            let event = self.nodes[node].deed.event(records).ok_or(says(INVALID_VALUE))?;
            Ok((node, event))
        }))
    }

    /// The event of a node. The rules have no events of a context that ended.
    fn nodes_event(&self, handle: u64) -> Option<Result<usize, Answer>> {
        match self.event(handle) {
            Err((_, false)) => None,
            answer => Some(answer),
        }
    }

    // The calls.

    pub fn graph_created(&mut self, handle: u64) {
        assert!(self.graph(handle).is_err(), "{handle:#x} is another graph");
        self.graphs.push(Graph { handle, told: handle, life: Life::Alive });
    }

    /// A new node: of which graph, after which nodes, and what it does.
    #[allow(clippy::type_complexity, reason = "what a node is made of")]
    pub fn add_node(
        &self,
        graph: u64,
        after: &[u64],
        records: bool,
        event: u64,
    ) -> Option<Result<(usize, BTreeSet<usize>, Deed), Answer>> {
        let graph = self.graph(graph);
        // Of a node of no kind there is no rule.
        let mut nodes = BTreeSet::new();
        let mut wrong = usize::from(graph.is_err());
        for handle in after {
            let node = self.node(*handle)?.ok();
            match node.filter(|it| graph.is_ok_and(|graph| self.nodes[*it].graph == graph)) {
                Some(node) => wrong += usize::from(!nodes.insert(node)) * 2,
                None => wrong += 1,
            }
        }
        let event = match event {
            0 => Err(says(INVALID_VALUE)),
            event => self.nodes_event(event)?,
        };
        // Which of two things it names is open.
        match (wrong, graph, event) {
            (0, Ok(graph), Ok(event)) => Some(Ok((graph, nodes, Deed::of(records, event)))),
            (0, Ok(_), Err(answer)) => Some(Err(answer)),
            (1, _, Ok(_)) => Some(Err(says(INVALID_VALUE))),
            _ => None,
        }
    }

    pub fn node_added(&mut self, made: (usize, BTreeSet<usize>, Deed), handle: u64) {
        let (graph, after, deed) = made;
        let (Deed::Record(event) | Deed::Wait(event)) = deed else { return };
        let node = self.new_node(graph, after, deed, self.events[event].context);
        self.nodes[node].handle = handle;
    }

    /// Beside the answer, the event.
    pub fn get_event(&self, node: u64, records: bool) -> Option<(Answer, u64)> {
        match self.node_of(node, records)? {
            Ok((_, event)) if self.events[event].life != Life::Alive => None,
            Ok((_, event)) => Some((says(SUCCESS), self.events[event].handle)),
            Err(answer) => Some((answer, 0)),
        }
    }

    pub fn set_event(&mut self, node: u64, records: bool, event: u64) -> Option<Answer> {
        match (self.node_of(node, records)?, self.nodes_event(event)?) {
            (Ok((node, _)), Ok(event)) => {
                self.nodes[node].deed = Deed::of(records, event);
                Some(says(SUCCESS))
            }
            (Ok(_), Err(answer)) | (Err(answer), Ok(_)) => Some(answer),
            _ => None,
        }
    }

    pub fn exec_set_event(
        &mut self,
        exec: u64,
        node: u64,
        records: bool,
        event: u64,
    ) -> Option<Answer> {
        let event = self.nodes_event(event)?;
        let both = match (self.exec(exec), self.node_of(node, records)?) {
            (Ok(exec), Ok((node, _))) => Ok((exec, node)),
            (Ok(_), Err(answer)) | (Err(answer), Ok(_)) => Err(answer),
            _ => return None,
        };
        let ((exec, node), event) = match (both, event) {
            (Ok(both), Ok(event)) => (both, event),
            (Ok((exec, node)), Err(answer)) => {
                let has = self.execs[exec].deeds.iter().any(|it| it.0 == node);
                return has.then_some(answer);
            }
            (Err(answer), Ok(_)) => return Some(answer),
            _ => return None,
        };
        let (entry, of) = (&self.execs[exec], self.nodes[node].graph);
        if !entry.deeds.iter().any(|it| it.0 == node) {
            // A node that its graph got later is not in the rules.
            let later = entry.graph == of;
            return (!later).then_some(says(INVALID_VALUE));
        }
        let (given, is) = (&self.events[event], entry.context);
        if given.context != is || given.flags & 4 != 0 {
            return None;
        }
        let entry = &mut self.execs[exec];
        entry.set.insert(node);
        for deed in entry.deeds.iter_mut().filter(|it| it.0 == node) {
            deed.1 = Deed::of(records, event);
        }
        Some(says(SUCCESS))
    }
}
