//! Host functions of streams and graphs: their executions, and the references that the driver has.

use core::ffi::{c_uint, c_void};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};

use cuda_events::sys::CUDA_HOST_NODE_PARAMS;
use cuda_events::sys::more::CUgraphNodeParams;

use crate::abi::PassedAs;
use crate::call::{Callback, Code, Function, Handle, OK};
use crate::lock::{Guard, Lock, Rank};
use crate::state::driver::of_driver;
use crate::state::user_objects::Destructor;

/// A host function of a stream or a graph. The driver has a reference to it, which ends with the
/// last execution, or with the last graph that has it.
pub(crate) struct Host {
    pub(crate) function: Function,
    /// In the place of `function`.
    pub(crate) callback: Callback,
    pub(crate) data: Handle,
    pub(crate) runs: Lock<Runs>,
    /// Only an executable graph has it: it was set there.
    pub(crate) of_exec: bool,
    /// The user object by which graphs keep it, or 0.
    pub(crate) object: AtomicUsize,
}

/// The executions of a host function.
#[derive(Default)]
pub(crate) struct Runs {
    /// The numbers of those that are submitted and have not begun.
    pub(crate) ids: VecDeque<u64>,
    /// Whether these are the last ones.
    pub(crate) last: bool,
}

impl Host {
    pub(crate) fn new(function: Function, callback: Callback, data: Handle) -> Self {
        let (runs, object) = (Lock::new(Rank::Executions, Runs::default()), AtomicUsize::new(0));
        Self { function, callback, data, runs, of_exec: false, object }
    }

    pub(crate) fn runs(&self) -> Guard<'_, Runs> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An execution with this number is submitted.
    pub(crate) fn submitted(&self, id: u64) {
        self.runs().ids.push_back(id);
    }

    /// The driver has refused that execution.
    pub(crate) fn withdrawn(&self, id: u64) {
        self.runs().ids.retain(|other| *other != id);
    }
}

/// The begin or the end of a function on one of the driver's own threads.
pub(crate) enum Posted {
    Begins(u64),
    Ends(u64),
    DestructorBegins(Box<Destructor>),
    DestructorEnds,
}

/// A post, with its number among the accesses of the host, and its thread.
pub(crate) struct Post {
    pub(crate) order: u64,
    pub(crate) thread: u64,
    pub(crate) posted: Posted,
}

/// The posts of the time in which others had the checker's lock.
pub(crate) static POSTED: Lock<Vec<Post>> = Lock::new(Rank::Posted, Vec::new());

pub(crate) static HAVE_POSTED: AtomicBool = AtomicBool::new(false);

/// Whether [`host_accesses`](crate::model::pinned::host_accesses) has posts to take.
pub(crate) fn have_posted() -> bool {
    HAVE_POSTED.load(Ordering::Acquire)
}

/// Whether there was a launch whose host functions have no numbers.
pub(crate) static UNSEEN: AtomicBool = AtomicBool::new(false);

/// A launch is not seen.
pub(crate) fn unseen() {
    UNSEEN.store(true, Ordering::Relaxed);
}

/// An executable graph no longer has this function, and all of its launches so far were seen.
pub(crate) fn left(host: &Arc<Host>) {
    if !host.of_exec || UNSEEN.load(Ordering::Relaxed) {
        return;
    }
    let mut runs = host.runs();
    if !std::mem::replace(&mut runs.last, true) && runs.ids.is_empty() {
        // SAFETY: the driver's reference: nobody else had the function, no launch is left, and no
        // other one will come. What runs just now has a reference of its own.
        unsafe { Arc::decrement_strong_count(Arc::as_ptr(host)) };
    }
}

of_driver! {
    /// The functions of the driver by which a graph keeps its host functions: each is a user object
    /// of the graph. So it has a reference wherever the driver may call it: clones, executable
    /// graphs and launches have references to the objects of the graphs that they come from.
    ///
    /// A capture is its status, its number, its graph and the last nodes. The later version has
    /// their edges, too.
    Keeper {
        create: cuUserObjectCreate (*mut Handle, *const Host, Function, c_uint, c_uint),
        retain: cuGraphRetainUserObject (Handle, Handle, c_uint, c_uint),
        release: cuGraphReleaseUserObject (Handle, Handle, c_uint),
        capture: cuStreamGetCaptureInfo_v2 (
            Handle, *mut c_uint, *mut u64, *mut Handle, *mut Handle, *mut usize
        ),
        capture_of_edges: cuStreamGetCaptureInfo_v3 (
            Handle, *mut c_uint, *mut u64, *mut Handle, *mut Handle, *mut Handle, *mut usize
        ),
        graph: cuGraphNodeGetContainingGraph (Handle, *mut Handle),
    }
}

impl Keeper {
    /// The graph into which a stream is captured, or 0.
    pub(crate) fn captured(&self, stream: Handle) -> Handle {
        let (mut status, mut number, mut graph, mut count) = (0, 0, 0, 0);
        let (mut nodes, mut edges) = (0, 0);
        // SAFETY: a stream of the program, and places for the answers.
        let code = unsafe {
            match (self.capture_of_edges, self.capture) {
                (Some(ask), _) => ask(
                    stream,
                    &mut status,
                    &mut number,
                    &mut graph,
                    &mut nodes,
                    &mut edges,
                    &mut count,
                ),
                (None, Some(ask)) => {
                    ask(stream, &mut status, &mut number, &mut graph, &mut nodes, &mut count)
                }
                (None, None) => return 0,
            }
        };
        // 1 is `CU_STREAM_CAPTURE_STATUS_ACTIVE`.
        if code == OK && status == 1 { graph } else { 0 }
    }

    /// The driver's reference to a host function becomes an object of a graph. Where that is not
    /// possible, it remains a reference for ever. Says which it is.
    ///
    /// # Safety
    ///
    /// The driver must have this reference, and a node of the graph.
    pub(crate) unsafe fn give(&self, graph: Handle, host: *const Host) -> bool {
        /// `CU_USER_OBJECT_NO_DESTRUCTOR_SYNC` and `CU_GRAPH_USER_OBJECT_MOVE`.
        const ONLY: c_uint = 1;
        let (Some(create), Some(retain)) = (self.create, self.retain) else { return false };
        let mut object = 0;
        // SAFETY: a place for the object, whose destructor gets the reference once, and a graph
        // that the driver has just given out or taken. Before the graph has the object, nobody ends
        // the reference.
        unsafe {
            if graph == 0 || create(&mut object, host, Some(end), 1, ONLY) != OK {
                return false;
            }
            (*host).object.store(object, Ordering::Relaxed);
            let retained = retain(graph, object, 1, ONLY) == OK;
            if !retained {
                (*host).object.store(0, Ordering::Relaxed);
            }
            retained
        }
    }
}

/// The reference of a graph to the host function of a node.
pub(crate) struct NodeReference {
    pub(crate) keeper: Keeper,
    pub(crate) graph: Handle,
    pub(crate) object: Handle,
}

impl NodeReference {
    /// The node is gone, or has another function. What was made of the graph before has references
    /// of its own.
    pub(crate) fn release(&self) {
        if let Some(release) = self.keeper.release.filter(|_| self.object != 0) {
            // SAFETY: the graph of a node that had the function, so it has the object.
            unsafe { release(self.graph, self.object, 1) };
        }
    }
}

/// The destructor of a host function's object.
pub(crate) unsafe extern "C" fn end(data: *mut c_void) {
    // SAFETY: the driver's reference, which it gives back once.
    drop(unsafe { Arc::from_raw(data.cast_const().cast::<Host>()) });
}

/// The begin of `CUgraphNodeParams` of a host node, which begins with its kind.
#[repr(C)]
pub(crate) struct NodeParams {
    pub(crate) kind: c_uint,
    pub(crate) reserved: [c_uint; 3],
    /// In a union: only a host node has it.
    pub(crate) host: CUDA_HOST_NODE_PARAMS,
}

const _: () = assert!(core::mem::offset_of!(NodeParams, host) == 16);

// Hooks read only the begins of the driver's structures.
impl PassedAs<c_void> for Host {}
impl PassedAs<CUgraphNodeParams> for NodeParams {}

#[cfg(test)]
mod tests {
    use core::ffi::{c_uint, c_void};
    use core::sync::atomic::{AtomicUsize, Ordering};

    use super::{Host, Keeper, NodeReference};
    use crate::call::{Code, Handle, OK};

    /// The first digit of a stream is what the driver returns, the second one is the status.
    unsafe extern "C" fn capture(
        stream: Handle,
        status: *mut c_uint,
        _: *mut u64,
        graph: *mut Handle,
    ) -> Code {
        // SAFETY: two places.
        unsafe { (*status, *graph) = ((stream % 10) as c_uint, 7) };
        (stream / 10) as Code
    }

    unsafe extern "C" fn create(object: *mut Handle) -> Code {
        // SAFETY: a place.
        unsafe { *object = 9 };
        OK
    }

    static RELEASED: AtomicUsize = AtomicUsize::new(0);

    /// The last digit of a graph is what the driver returns.
    unsafe extern "C" fn retain(graph: Handle) -> Code {
        (graph % 10) as Code
    }

    unsafe extern "C" fn release(graph: Handle, object: Handle, count: c_uint) -> Code {
        RELEASED.fetch_add(graph + object * count as usize, Ordering::Relaxed);
        OK
    }

    #[test]
    fn a_graph_keeps_what_the_driver_accepts() {
        let none = Keeper::new(&|_| core::ptr::null_mut());
        let keeper = Keeper::new(&|name| match name.to_bytes() {
            b"cuStreamGetCaptureInfo_v2" => capture as *mut c_void,
            b"cuUserObjectCreate" => create as *mut c_void,
            b"cuGraphRetainUserObject" => retain as *mut c_void,
            b"cuGraphReleaseUserObject" => release as *mut c_void,
            _ => core::ptr::null_mut(),
        });
        assert_eq!([0, 1, 2, 11].map(|stream| keeper.captured(stream)), [0, 7, 0, 0]);
        assert_eq!(none.captured(1), 0);
        for (keeper, graph, given) in
            [(keeper, 10, true), (keeper, 11, false), (keeper, 0, false), (none, 10, false)]
        {
            let host = Host::new(None, None, 0);
            // SAFETY: the driver of this test ends no reference.
            assert_eq!(unsafe { keeper.give(graph, &host) }, given, "{graph}");
            assert_eq!(host.object.load(Ordering::Relaxed), if given { 9 } else { 0 });
        }
        for object in [0, 9] {
            NodeReference { keeper, graph: 10, object }.release();
            assert_eq!(RELEASED.load(Ordering::Relaxed), if object == 0 { 0 } else { 19 });
        }
    }
}
