//! The nodes of a graph in an order in which they may run, as the driver has them: for graphs that were
//! built, or changed after their capture.

use core::cmp::Reverse;
use core::ffi::c_uint;
use std::collections::{BinaryHeap, HashMap};

use cuda_events::sys::CUDA_BATCH_MEM_OP_NODE_PARAMS;

use crate::call::Handle;
use crate::code::signals;
use crate::model::host_functions::nodes::host_function;
use crate::state::nodes::{Flat, KernelNode, NodeKind, Work, ask, list};
use crate::state::values::operations_at;
use crate::watch::Watch;

/// The nodes of a graph, each after all that it waits for, and with the nodes of child graphs
/// in their place; `None` if some are of a kind that is not modelled.
pub(crate) fn nodes_of(watch: &mut Watch, graph: Handle) -> Option<Vec<Flat>> {
    let mut all = Vec::new();
    flatten(watch, graph, &[], &mut all)?;
    Some(all)
}

/// The edges of a graph, by the indices of its nodes.
struct Edges {
    /// The nodes that each node waits for.
    before: Vec<Vec<usize>>,
    /// The nodes that wait for each node.
    after: Vec<Vec<usize>>,
}

impl Edges {
    /// `None` if the driver does not say, or says what cannot be.
    fn new(watch: &Watch, nodes: &[Handle]) -> Option<Self> {
        let indices: HashMap<Handle, usize> =
            nodes.iter().enumerate().map(|(at, node)| (*node, at)).collect();
        let mut edges =
            Self { before: Vec::with_capacity(nodes.len()), after: vec![Vec::new(); nodes.len()] };
        for (at, node) in nodes.iter().enumerate() {
            let all = list(watch.graphs.questions.before, *node)?;
            let all: Vec<usize> =
                all.iter().map(|node| indices.get(node).copied()).collect::<Option<_>>()?;
            for earlier in &all {
                edges.after.get_mut(*earlier)?.push(at);
            }
            edges.before.push(all);
        }
        Some(edges)
    }
}

/// Adds the nodes of a graph after others. What comes after all of them.
///
/// It is Kahn's algorithm: a node comes once all that it waits for have come. Of those that may
/// come it is the one that was added to the graph first.
fn flatten(
    watch: &mut Watch,
    graph: Handle,
    before: &[usize],
    all: &mut Vec<Flat>,
) -> Option<Vec<usize>> {
    let nodes = list(watch.graphs.questions.nodes, graph)?;
    let edges = Edges::new(watch, &nodes)?;
    let mut left: Vec<usize> = edges.before.iter().map(Vec::len).collect();
    let ready = left.iter().enumerate().filter(|(_, left)| **left == 0);
    let mut ready: BinaryHeap<Reverse<usize>> = ready.map(|(at, _)| Reverse(at)).collect();
    // The last nodes of each.
    let mut ends: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    let mut count = 0;
    while let Some(Reverse(at)) = ready.pop() {
        count += 1;
        let mut after: Vec<usize> = match edges.before[at].as_slice() {
            [] => before.to_vec(),
            earlier => earlier.iter().flat_map(|node| &ends[*node]).copied().collect(),
        };
        after.sort_unstable();
        after.dedup();
        ends[at] = add(watch, nodes[at], after, all)?;
        for later in &edges.after[at] {
            left[*later] -= 1;
            if left[*later] == 0 {
                ready.push(Reverse(*later));
            }
        }
    }
    // Otherwise they wait for each other.
    (count == nodes.len()).then(|| {
        let last = edges.after.iter().zip(ends).filter(|(after, _)| after.is_empty());
        last.flat_map(|(_, ends)| ends).collect()
    })
}

/// Adds a node, or the nodes of its child graph. The last ones of them.
fn add(
    watch: &mut Watch,
    handle: Handle,
    after: Vec<usize>,
    all: &mut Vec<Flat>,
) -> Option<Vec<usize>> {
    let questions = watch.graphs.questions;
    let work = match NodeKind::new(ask::<c_uint>(questions.kind, handle)?)? {
        NodeKind::Kernel if questions.is_changeable(handle) => {
            watch.seen.changeable += 1;
            Work::Accesses(Vec::new())
        }
        NodeKind::Kernel => {
            let (params, kernels) = (ask(questions.kernel, handle)?, &watch.kernels);
            let has_image = |kernel| kernels.images.image(&watch.questions, kernel).is_some();
            let node = KernelNode::described(params, has_image);
            kernel_work(watch, &node)
        }
        NodeKind::Copy => Work::of_copy(ask(questions.copy, handle)?),
        NodeKind::Set => Work::of_set(&ask(questions.set, handle)?),
        NodeKind::Host => Work::Host(host_function(&questions, handle)?),
        NodeKind::Child => {
            let first = all.len();
            let ends = flatten(watch, ask(questions.child, handle)?, &after, all)?;
            if all.len() > first {
                return Some(ends);
            }
            Work::Accesses(Vec::new())
        }
        // What it has runs or not, as the device decides.
        NodeKind::Conditional => {
            watch.seen.conditional += 1;
            Work::Accesses(Vec::new())
        }
        NodeKind::Empty => Work::Accesses(Vec::new()),
        NodeKind::Wait => Work::Wait(ask(questions.wait, handle)?),
        NodeKind::Record => Work::Record(ask(questions.record, handle)?),
        NodeKind::Values => {
            let batch: CUDA_BATCH_MEM_OP_NODE_PARAMS = ask(questions.values, handle)?;
            Work::Values(operations_at(batch.paramArray, batch.count)?)
        }
    };
    if work.may_set_flag() {
        signals::wrote_few(None);
    }
    all.push(Flat { handle, work, after });
    Some(vec![all.len() - 1])
}

/// The work of a kernel: accesses of the memory that its parameters point to.
pub(crate) fn kernel_work(watch: &mut Watch, node: &KernelNode) -> Work {
    Work::Accesses(watch.kernels.pointed_to(
        &watch.feed,
        &watch.questions,
        node.function,
        node.sizes,
        node.parameters.cast(),
        node.extra.cast(),
    ))
}
