//! Graphs in an order that keeps their dependencies, with the nodes of child graphs in their place.

use std::collections::{BTreeMap, BTreeSet};

use crate::engine::user_object::References;
use crate::graph::{ExecNode, Graphs, NodeKind};

impl Graphs {
    /// The nodes of a graph, each after all that it depends on, by Kahn's algorithm. Otherwise
    /// writes of values come first, because on a GPU no other branch holds them up; the rest is in
    /// the order in which it was added. None if the edges go in a circle.
    fn sorted(&self, graph: u32) -> Option<Vec<u32>> {
        let nodes = &self.all[graph].nodes;
        let places: BTreeMap<u32, usize> =
            nodes.iter().enumerate().map(|(place, node)| (*node, place)).collect();
        let mut left: Vec<usize> = Vec::with_capacity(nodes.len());
        let mut later: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
        for (place, node) in nodes.iter().enumerate() {
            let after = self.nodes[*node].after.iter();
            let before: Vec<usize> = after.filter_map(|node| places.get(node).copied()).collect();
            left.push(before.len());
            for other in before {
                later[other].push(place);
            }
        }
        let rank = |place: usize| (!self.nodes[nodes[place]].kind.is_write_of_values(), place);
        let ready = left.iter().enumerate().filter(|(_, left)| **left == 0);
        let mut ready: BTreeSet<_> = ready.map(|(place, _)| rank(place)).collect();
        let mut sorted = Vec::with_capacity(nodes.len());
        while let Some((_, place)) = ready.pop_first() {
            sorted.push(nodes[place]);
            for other in &later[place] {
                left[*other] -= 1;
                if left[*other] == 0 {
                    ready.insert(rank(*other));
                }
            }
        }
        (sorted.len() == nodes.len()).then_some(sorted)
    }

    /// The user objects that a graph and the graphs of its nodes keep.
    pub(crate) fn objects_within(&self, graph: u32) -> References {
        let mut all = self.all[graph].objects.clone();
        for node in &self.all[graph].nodes {
            if let NodeKind::Child(inner) = self.nodes[*node].kind {
                all.extend(self.objects_within(inner));
            }
        }
        all
    }

    /// The nodes of a graph as an executable one has them: in an order that keeps all dependencies,
    /// and with the nodes of child graphs in their place. None if edges go in a circle.
    pub(crate) fn flattened(&self, graph: u32) -> Option<Vec<ExecNode>> {
        let mut nodes = Vec::new();
        self.flatten(graph, 0, &[], &mut nodes)?;
        Some(nodes)
    }

    /// Adds the nodes of a graph after others. What comes after all of them.
    fn flatten(
        &self,
        graph: u32,
        depth: u32,
        before: &[usize],
        flat: &mut Vec<ExecNode>,
    ) -> Option<Vec<usize>> {
        let mut ends: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        let mut open: BTreeSet<u32> = BTreeSet::new();
        for index in self.sorted(graph)? {
            let node = &self.nodes[index];
            let mut after: Vec<usize> =
                node.after.iter().filter_map(|other| ends.get(other)).flatten().copied().collect();
            if node.after.is_empty() {
                after = before.to_vec();
            }
            after.sort_unstable();
            after.dedup();
            for other in &node.after {
                open.remove(other);
            }
            open.insert(index);
            let original = self.nodes.handle(index);
            let context = node.context;
            let (enabled, set) = (true, false);
            let plain =
                |kind, after| ExecNode { original, kind, context, after, enabled, set, depth };
            let end = match &node.kind {
                NodeKind::Child(inner) if !self.all[*inner].nodes.is_empty() => {
                    self.flatten(*inner, depth + 1, &after, flat)?
                }
                NodeKind::Child(_) => {
                    flat.push(plain(NodeKind::Empty, after));
                    vec![flat.len() - 1]
                }
                kind => {
                    flat.push(plain(kind.clone(), after));
                    vec![flat.len() - 1]
                }
            };
            ends.insert(index, end);
        }
        Some(open.iter().filter_map(|node| ends.get(node)).flatten().copied().collect())
    }
}
