//! The questions about the nodes of a graph, and the work that the answers describe.

use core::ffi::{c_uint, c_void};
use std::sync::Arc;

use cuda_events::sys::CUlaunchAttributeID;
use cuda_events::sys::more::{
    CUDA_KERNEL_NODE_PARAMS_v1, CUDA_KERNEL_NODE_PARAMS_v2, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS,
};
use cuda_order_check_engine::feed::GraphWork;
use cuda_order_check_engine::{Access, AccessKind, EventId};

use crate::call::{Code, Handle, OK};
use crate::code::launch::Sizes;
use crate::code::signals;
use crate::state::blocks::{Block, copied_rows, set_rows};
use crate::state::driver::of_driver;
use crate::state::executions::Host;
use crate::state::kernels::sizes_of;
use crate::state::node::Node;
use crate::state::values::Value;

pub(crate) type Ask = unsafe extern "C" fn(Handle, *mut c_void) -> Code;

pub(crate) type List = unsafe extern "C" fn(Handle, *mut Handle, *mut usize) -> Code;

of_driver! {
    /// The questions about graphs that the driver is asked.
    GraphQuestions {
        nodes: cuGraphGetNodes (Handle, *mut Handle, *mut usize),
        before: cuGraphNodeGetDependencies (Handle, *mut Handle, *mut usize),
        attribute: cuGraphKernelNodeGetAttribute (Handle, c_uint, *mut c_void),
        kind: cuGraphNodeGetType (Handle, *mut c_void),
        kernel: cuGraphKernelNodeGetParams_v2 (Handle, *mut c_void),
        copy: cuGraphMemcpyNodeGetParams (Handle, *mut c_void),
        set: cuGraphMemsetNodeGetParams (Handle, *mut c_void),
        host: cuGraphHostNodeGetParams (Handle, *mut c_void),
        child: cuGraphChildGraphNodeGetGraph (Handle, *mut c_void),
        wait: cuGraphEventWaitNodeGetEvent (Handle, *mut c_void),
        record: cuGraphEventRecordNodeGetEvent (Handle, *mut c_void),
        values: cuGraphBatchMemOpNodeGetParams (Handle, *mut c_void),
    }
}

/// `CUgraphNodeType`, as far as it is modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeKind {
    Kernel,
    Copy,
    Set,
    Host,
    Child,
    Empty,
    Wait,
    Record,
    Values,
    Conditional,
}

impl NodeKind {
    /// The kind that the driver has returned; `None` if it is not modelled.
    pub(crate) fn new(kind: c_uint) -> Option<Self> {
        Some(match kind {
            0 => Self::Kernel,
            1 => Self::Copy,
            2 => Self::Set,
            3 => Self::Host,
            4 => Self::Child,
            5 => Self::Empty,
            6 => Self::Wait,
            7 => Self::Record,
            12 => Self::Values,
            13 => Self::Conditional,
            _ => return None,
        })
    }
}

/// `CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE`: a kernel may change the node.
pub(crate) const CHANGEABLE: CUlaunchAttributeID = CUlaunchAttributeID(13);

impl GraphQuestions {
    /// Whether a kernel may change a node.
    pub(crate) fn is_changeable(&self, node: Handle) -> bool {
        let mut value = [0_u32; 16];
        // SAFETY: a node of the driver, and a place for `CUlaunchAttributeValue`.
        let ask =
            self.attribute.map(|ask| unsafe { ask(node, CHANGEABLE.0, value.as_mut_ptr().cast()) });
        ask == Some(OK) && value[0] != 0
    }
}

/// The driver's answer about a node or a graph.
pub(crate) fn ask<T: Copy + Default>(question: Option<Ask>, handle: Handle) -> Option<T> {
    let mut answer = T::default();
    // SAFETY: a handle that the driver has just given out or taken, and a place for the answer,
    // whose type the callers choose by the function.
    let code = unsafe { question?(handle, (&raw mut answer).cast()) };
    (code == OK).then_some(answer)
}

pub(crate) fn list(question: Option<List>, handle: Handle) -> Option<Vec<Handle>> {
    let mut count = 0;
    // SAFETY: as above; without a list the driver gives its length.
    if unsafe { question?(handle, core::ptr::null_mut(), &mut count) } != OK {
        return None;
    }
    let mut all = vec![0; count];
    if count > 0 {
        // SAFETY: as above, with so many places.
        let code = unsafe { question?(handle, all.as_mut_ptr(), &mut count) };
        all.truncate(count);
        (code == OK).then_some(())?;
    }
    Some(all)
}

/// The child graph of a node that has one.
pub(crate) fn child(questions: &GraphQuestions, node: Handle) -> Option<Handle> {
    let kind = ask(questions.kind, node).and_then(NodeKind::new);
    kind.filter(|kind| *kind == NodeKind::Child).and_then(|_| ask(questions.child, node))
}

/// The child graphs of a graph's nodes; `None` if the driver does not say which they are, as for
/// conditional nodes.
pub(crate) fn children(questions: &GraphQuestions, graph: Handle) -> Option<Vec<Handle>> {
    let mut all = Vec::new();
    for node in list(questions.nodes, graph)? {
        match NodeKind::new(ask(questions.kind, node)?) {
            Some(NodeKind::Child) => all.push(ask(questions.child, node)?),
            Some(NodeKind::Conditional) => return None,
            _ => {}
        }
    }
    Some(all)
}

/// The launch of a node, in either form.
pub(crate) struct KernelNode {
    pub(crate) function: Handle,
    pub(crate) sizes: Sizes,
    pub(crate) parameters: *const *mut c_void,
    pub(crate) extra: *const *mut c_void,
}

macro_rules! kernel_nodes {
    ($($params:ident $kernel:expr;)*) => {$(
        impl From<$params> for KernelNode {
            fn from(node: $params) -> Self {
                let kernel: fn(&$params) -> Handle = $kernel;
                let grid = [node.gridDimX, node.gridDimY, node.gridDimZ];
                let block = [node.blockDimX, node.blockDimY, node.blockDimZ];
                Self {
                    function: if node.func.is_null() { kernel(&node) } else { node.func.addr() },
                    sizes: sizes_of(grid, block),
                    parameters: node.kernelParams,
                    extra: node.extra,
                }
            }
        }
    )*};
}

kernel_nodes! {
    CUDA_KERNEL_NODE_PARAMS_v1 |_| 0;
    CUDA_KERNEL_NODE_PARAMS_v2 |node| node.kern.addr();
}

impl KernelNode {
    /// The launch of a node as the driver describes it. Of a library's kernel it says both the kernel
    /// and the function that it made of it in a context, which the program may not have seen: the one
    /// counts that has an image.
    pub(crate) fn described(
        node: CUDA_KERNEL_NODE_PARAMS_v2,
        has_image: impl FnOnce(Handle) -> bool,
    ) -> Self {
        let kernel = node.kern.addr();
        let node = Self::from(node);
        let is_kernel = kernel != 0 && has_image(kernel);
        Self { function: if is_kernel { kernel } else { node.function }, ..node }
    }
}

/// A node of an executable graph.
#[derive(Clone)]
pub(crate) struct Flat {
    /// Of the graph that it was made from.
    pub(crate) handle: Handle,
    pub(crate) work: Work,
    pub(crate) after: Vec<usize>,
}

/// The work of a node.
#[derive(Clone)]
pub(crate) enum Work {
    Accesses(Vec<Access>),
    Write(Vec<Access>),
    Host(Arc<Host>),
    Record(Handle),
    Wait(Handle),
    Values(Vec<Value>),
}

impl Work {
    pub(crate) fn of_copy(copy: CUDA_MEMCPY3D) -> Self {
        Self::Write(copied_rows(&copy.into()))
    }

    pub(crate) fn of_set(set: &CUDA_MEMSET_NODE_PARAMS) -> Self {
        let to = Block::rows(set.dst, set.pitch);
        let extent = [set.elementSize as usize * set.width, set.height, 1];
        Self::Write(set_rows(to, extent, (set.value, set.elementSize as usize)))
    }

    /// Whether it writes what may be a flag.
    pub(crate) fn may_set_flag(&self) -> bool {
        match self {
            Self::Write(accesses) => signals::may_set_flag(accesses),
            Self::Values(_) => true,
            _ => false,
        }
    }

    /// What the feed is told of the node when the graph is instantiated.
    pub(crate) fn parts(&self) -> Vec<GraphWork> {
        match self {
            Self::Accesses(accesses) if accesses.is_empty() => Vec::new(),
            Self::Accesses(accesses) => vec![GraphWork::Work(accesses.clone())],
            Self::Write(accesses) => vec![GraphWork::Write(accesses.clone())],
            Self::Host(_) => vec![GraphWork::Function],
            Self::Record(event) => vec![GraphWork::Record(EventId(*event as u64))],
            Self::Wait(event) => vec![GraphWork::Wait(EventId(*event as u64))],
            Self::Values(all) => all.iter().map(Value::work).collect(),
        }
    }

    /// What each launch of the graph does besides.
    pub(crate) fn nodes(&self) -> Vec<Node> {
        match self {
            Self::Accesses(_) | Self::Record(_) | Self::Wait(_) => Vec::new(),
            Self::Write(accesses) => {
                let write = accesses.iter().find(|access| access.kind == AccessKind::Write);
                vec![write.map_or(Node::Work, |write| Node::Write(write.clone()))]
            }
            Self::Host(host) => vec![Node::Host(host.clone())],
            Self::Values(all) => all.iter().map(Value::node).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use core::ffi::c_uint;

    use cuda_events::sys::more::CUDA_KERNEL_NODE_PARAMS_v2;

    use super::{GraphQuestions, KernelNode, list};
    use crate::call::{Code, Handle};

    /// The program gives one of the two; the driver says both of a library's kernel, and the image is
    /// the library's, if that was seen: 2 is one of it, and 3 is not.
    #[test]
    fn a_node_is_of_the_kernel_that_the_program_knows() {
        for (func, kern, given, described) in
            [(1, 0, 1, 1), (0, 2, 2, 2), (1, 2, 1, 2), (0, 3, 3, 3), (1, 3, 1, 1)]
        {
            let [func, kern] = [func, kern].map(core::ptr::without_provenance_mut::<u8>);
            let (func, kern) = (func.cast(), kern.cast());
            let params = || CUDA_KERNEL_NODE_PARAMS_v2 { func, kern, ..Default::default() };
            assert_eq!(KernelNode::from(params()).function, given, "{func:?} {kern:?}");
            let has_image = |kernel| kernel == 2;
            let node = KernelNode::described(params(), has_image);
            assert_eq!(node.function, described, "{func:?} {kern:?}");
        }
    }

    /// It has four nodes, and one fewer when it is asked for them; graph 1 is refused.
    unsafe extern "C" fn nodes(graph: Handle, all: *mut Handle, count: *mut usize) -> Code {
        let all = (!all.is_null()).then_some(all);
        // SAFETY: as the callers of a driver promise: a place for the number, and so many nodes.
        unsafe {
            *count = if all.is_some() { 3 } else { 4 };
            (0..3).for_each(|at| all.into_iter().for_each(|all| *all.add(at) = 0x10 + at));
        }
        Code::from(graph == 1)
    }

    #[test]
    fn a_list_is_as_long_as_the_driver_says_last() {
        assert_eq!(list(Some(nodes), 2), Some(vec![0x10, 0x11, 0x12]));
        assert_eq!((list(Some(nodes), 1), list(None, 2)), (None, None));
    }

    /// The first digit of a node is what the driver returns, the second one is the attribute.
    unsafe extern "C" fn attribute(node: Handle, _: c_uint, value: *mut core::ffi::c_void) -> Code {
        // SAFETY: a place for an attribute.
        unsafe { value.cast::<u32>().write((node % 10) as u32) };
        (node / 10) as Code
    }

    #[test]
    fn a_node_may_be_changed_if_the_driver_says_so() {
        let new = |name: &core::ffi::CStr| match name.to_bytes() {
            b"cuGraphKernelNodeGetAttribute" => attribute as *mut core::ffi::c_void,
            _ => core::ptr::null_mut(),
        };
        let all = [0, 1, 2, 10, 11].map(|node| GraphQuestions::new(&new).is_changeable(node));
        assert_eq!(all, [false, true, true, false, false]);
        assert!(!GraphQuestions::new(&|_| core::ptr::null_mut()).is_changeable(1));
    }
}
