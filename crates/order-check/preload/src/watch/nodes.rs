//! The nodes of a graph, as the driver has them: for graphs that were built, or changed after their
//! capture.

use cuda_order_check::feed::GraphWork;

use super::copies::{Copy3D, copied_rows, set_rows};
use super::hosts::{HostParams, host_of};
use super::*;

type Of = unsafe extern "C" fn(Handle, *mut c_void) -> Code;
type List = unsafe extern "C" fn(Handle, *mut Handle, *mut usize) -> Code;

of_driver! {
    /// What is asked of the driver about graphs.
    Questions {
        nodes: c"cuGraphGetNodes" (Handle, *mut Handle, *mut usize),
        before: c"cuGraphNodeGetDependencies" (Handle, *mut Handle, *mut usize),
        attribute: c"cuGraphKernelNodeGetAttribute" (Handle, c_uint, *mut c_void),
        kind: c"cuGraphNodeGetType" (Handle, *mut c_void),
        kernel: c"cuGraphKernelNodeGetParams_v2" (Handle, *mut c_void),
        copy: c"cuGraphMemcpyNodeGetParams" (Handle, *mut c_void),
        set: c"cuGraphMemsetNodeGetParams" (Handle, *mut c_void),
        host: c"cuGraphHostNodeGetParams" (Handle, *mut c_void),
        child: c"cuGraphChildGraphNodeGetGraph" (Handle, *mut c_void),
        wait: c"cuGraphEventWaitNodeGetEvent" (Handle, *mut c_void),
        record: c"cuGraphEventRecordNodeGetEvent" (Handle, *mut c_void),
        values: c"cuGraphBatchMemOpNodeGetParams" (Handle, *mut c_void),
    }
}

/// `CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE`: a kernel may change the node.
pub(super) const CHANGEABLE: c_uint = 13;

impl Questions {
    /// Whether a kernel may change a node.
    fn is_changeable(&self, node: Handle) -> bool {
        let mut value = [0_u32; 16];
        // SAFETY: a node of the driver, and a place for `CUlaunchAttributeValue`.
        let ask =
            self.attribute.map(|ask| unsafe { ask(node, CHANGEABLE, value.as_mut_ptr().cast()) });
        ask == Some(OK) && value[0] != 0
    }

    /// The host function of a node, if it is one that this library has given.
    pub(super) fn host_function(&self, node: Handle) -> Option<Arc<Host>> {
        host_of(&ask::<HostParams>(self.host, node)?)
    }
}

/// The driver's answer about a node or a graph.
fn ask<T: Copy + Default>(question: Option<Of>, of: Handle) -> Option<T> {
    let mut answer = T::default();
    // SAFETY: a handle that the driver has just given out or taken, and a place for the answer,
    // whose type the callers choose by the function.
    let code = unsafe { question?(of, (&raw mut answer).cast()) };
    (code == OK).then_some(answer)
}

fn list(question: Option<List>, of: Handle) -> Option<Vec<Handle>> {
    let mut count = 0;
    // SAFETY: as above; without a list the driver gives its length.
    if unsafe { question?(of, core::ptr::null_mut(), &mut count) } != OK {
        return None;
    }
    let mut all = vec![0; count];
    if count > 0 {
        // SAFETY: as above, with so many places.
        let code = unsafe { question?(of, all.as_mut_ptr(), &mut count) };
        all.truncate(count);
        (code == OK).then_some(())?;
    }
    Some(all)
}

/// `CUDA_MEMSET_NODE_PARAMS`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct SetParams {
    to: Address,
    pitch: usize,
    value: c_uint,
    element: c_uint,
    width: usize,
    height: usize,
}

/// `CUDA_KERNEL_NODE_PARAMS_v1`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct OldKernelParams {
    function: Handle,
    sizes: [c_uint; 7],
    parameters: Handle,
    extra: Handle,
}

impl From<OldKernelParams> for KernelParams {
    fn from(of: OldKernelParams) -> Self {
        let OldKernelParams { function, sizes, parameters, extra } = of;
        Self { function, sizes, parameters, extra, ..Self::default() }
    }
}

/// `CUDA_KERNEL_NODE_PARAMS_v2`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct KernelParams {
    function: Handle,
    sizes: [c_uint; 7],
    parameters: Handle,
    extra: Handle,
    kernel: Handle,
    context: Handle,
}

/// `CUDA_BATCH_MEM_OP_NODE_PARAMS`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct ValueParams {
    context: Handle,
    count: c_uint,
    operations: Handle,
    flags: c_uint,
}

const _: () = assert!(
    size_of::<KernelParams>() == 72
        && size_of::<OldKernelParams>() == 56
        && size_of::<SetParams>() == 40
);

/// A node of an executable graph.
#[derive(Clone)]
pub(super) struct Flat {
    /// Of the graph that it was made from.
    pub(super) handle: Handle,
    pub(super) work: Work,
    pub(super) after: Vec<usize>,
}

/// What a node does.
#[derive(Clone)]
pub(super) enum Work {
    Accesses(Vec<Access>),
    Write(Vec<Access>),
    Host(Arc<Host>),
    Record(Handle),
    Wait(Handle),
    Values(Vec<values::Value>),
}

impl Work {
    pub(super) fn of_copy(copy: &Copy3D) -> Self {
        Self::Write(copied_rows(copy))
    }

    pub(super) fn of_set(of: &SetParams) -> Self {
        let to = Block::rows(of.to, of.pitch);
        let extent = [of.element as usize * of.width, of.height, 1];
        Self::Write(set_rows(to, extent, (of.value, of.element as usize)))
    }

    /// For the feed.
    pub(super) fn parts(&self) -> Vec<GraphWork> {
        match self {
            Self::Accesses(accesses) if accesses.is_empty() => Vec::new(),
            Self::Accesses(accesses) => vec![GraphWork::Work(accesses.clone())],
            Self::Write(accesses) => vec![GraphWork::Write(accesses.clone())],
            Self::Host(_) => vec![GraphWork::Function],
            Self::Record(event) => vec![GraphWork::Record(EventId(*event as u64))],
            Self::Wait(event) => vec![GraphWork::Wait(EventId(*event as u64))],
            Self::Values(all) => all.iter().map(values::Value::work).collect(),
        }
    }

    /// For launches.
    pub(super) fn nodes(&self) -> Vec<Node> {
        match self {
            Self::Accesses(_) | Self::Record(_) | Self::Wait(_) => Vec::new(),
            Self::Write(accesses) => {
                let write = accesses.iter().find(|of| of.kind == AccessKind::Write);
                vec![write.map_or(Node::Work, |write| Node::Write(write.clone()))]
            }
            Self::Host(host) => vec![Node::Host(host.clone())],
            Self::Values(all) => all.iter().map(values::Value::node).collect(),
        }
    }
}

impl Watch {
    /// The nodes of a graph, each after all that it waits for, and with the nodes of child graphs
    /// in their place; `None` if some are of a kind that is not modelled.
    pub(super) fn nodes_of(&mut self, graph: Handle) -> Option<Vec<Flat>> {
        let mut all = Vec::new();
        self.flatten(graph, &[], &mut all)?;
        Some(all)
    }

    /// Whether one of a graph's own nodes was changed.
    pub(super) fn was_changed(&self, graph: Handle) -> bool {
        !self.changed.is_empty()
            && list(self.graph_questions.nodes, graph)
                .is_none_or(|nodes| nodes.iter().any(|node| self.changed.contains(node)))
    }

    /// Adds the nodes of a graph after others. What comes after all of them.
    fn flatten(
        &mut self,
        graph: Handle,
        before: &[usize],
        all: &mut Vec<Flat>,
    ) -> Option<Vec<usize>> {
        let of = self.graph_questions;
        let nodes = list(of.nodes, graph)?;
        let mut all_before = Vec::with_capacity(nodes.len());
        for node in &nodes {
            all_before.push(list(of.before, *node)?);
        }
        let waited: HashSet<Handle> = all_before.iter().flatten().copied().collect();
        // The last nodes of each.
        let mut ends: HashMap<Handle, Vec<usize>> = HashMap::new();
        let mut first = 0;
        loop {
            while nodes.get(first).is_some_and(|node| ends.contains_key(node)) {
                first += 1;
            }
            if first == nodes.len() {
                break;
            }
            // In the order in which they were added, as far as their edges allow.
            let is_ready = |(handle, earlier): &(&Handle, &Vec<Handle>)| {
                !ends.contains_key(*handle) && earlier.iter().all(|of| ends.contains_key(of))
            };
            let mut open = nodes.iter().zip(&all_before).skip(first);
            let (&handle, earlier) = open.find(is_ready)?;
            let ended = earlier.iter().filter_map(|of| ends.get(of));
            let mut after: Vec<usize> = ended.flatten().copied().collect();
            if earlier.is_empty() {
                after = before.to_vec();
            }
            after.sort_unstable();
            after.dedup();
            let from = all.len();
            let work = match ask::<c_uint>(of.kind, handle)? {
                0 if of.is_changeable(handle) => {
                    self.seen.changeable += 1;
                    Work::Accesses(Vec::new())
                }
                0 => self.kernel_work(&ask(of.kernel, handle)?),
                1 => Work::of_copy(&ask(of.copy, handle)?),
                2 => Work::of_set(&ask(of.set, handle)?),
                3 => Work::Host(of.host_function(handle)?),
                4 => {
                    let end = self.flatten(ask(of.child, handle)?, &after, all)?;
                    if all.len() > from {
                        ends.insert(handle, end);
                        continue;
                    }
                    Work::Accesses(Vec::new())
                }
                5 => Work::Accesses(Vec::new()),
                6 => Work::Wait(ask(of.wait, handle)?),
                7 => Work::Record(ask(of.record, handle)?),
                12 => {
                    let of: ValueParams = ask(of.values, handle)?;
                    let first = core::ptr::with_exposed_provenance(of.operations);
                    Work::Values(values::operations(first, of.count)?)
                }
                _ => return None,
            };
            all.push(Flat { handle, work, after });
            ends.insert(handle, vec![all.len() - 1]);
        }
        let last = nodes.iter().filter(|node| !waited.contains(node));
        Some(last.filter_map(|of| ends.get(of)).flatten().copied().collect())
    }

    /// What a kernel's parameters point to.
    pub(super) fn kernel_work(&mut self, of: &KernelParams) -> Work {
        let function = if of.function == 0 { of.kernel } else { of.function };
        let [parameters, extra] = [of.parameters, of.extra].map(core::ptr::with_exposed_provenance);
        let (mut all, open) = self.pointed_to(function, parameters, extra);
        all.extend(open.into_iter().filter(|of| of.likely).map(|of| of.access));
        Work::Accesses(all)
    }
}
