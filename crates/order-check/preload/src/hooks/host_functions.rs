//! Host functions, and destructors of user objects.

use core::ffi::{c_uint, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, TryLockError};

use cuda_events::sys::CUDA_HOST_NODE_PARAMS;

use crate::call::{Call, Code, Function, Handle, OK, read, thread};
use crate::guard;
use crate::model::graphs::NodePlace;
use crate::model::host_functions::apply_posted;
use crate::model::host_functions::state::{
    Callback, Destructor, HAVE_POSTED, Host, Keeper, Kept, NodeParams, POSTED, Posted, Runs,
};
use crate::model::launch::Node;
use crate::model::nodes::{GraphQuestions, ask};
use crate::model::pinned::settle_copies;
use crate::model::under_way::state::Visible;
use crate::pinned::faults::Inside;
use crate::walk::{after_success, begin_call, caught_up, locked};
use crate::watch::{WATCH, Watch};

/// Runs what the program has given.
///
/// # Safety
///
/// `data` is what [`submit`] or [`in_node`] gave to the driver, which calls it as often as it is
/// submitted.
pub(crate) unsafe fn run(data: *mut c_void, function: impl FnOnce(&Host)) {
    let raw = data.cast_const().cast::<Host>();
    // SAFETY: as the caller says; the driver has a reference until the last execution begins.
    let host = unsafe {
        Arc::increment_strong_count(raw);
        Arc::from_raw(raw)
    };
    let id = {
        let mut runs = host.runs();
        let id = runs.ids.pop_front();
        if id.is_some() && runs.last && runs.ids.is_empty() {
            // SAFETY: the driver's reference, which it will not use again.
            unsafe { Arc::decrement_strong_count(raw) };
        }
        id
    };
    if let Some(id) = id {
        post(Posted::Begins(id));
    }
    function(&host);
    if let Some(id) = id {
        post(Posted::Ends(id));
    }
}

/// Tells something without waiting for the watch's lock. The driver may have a lock of its own while
/// it calls a function of the program, and another thread may ask the driver with the watch's.
pub(crate) fn post(posted: Posted) {
    let _inside = Inside::new();
    let thread = thread();
    guard::own(|| match WATCH.try_lock() {
        Ok(mut watch) => {
            if let Some(watch) = &mut *watch {
                watch.catch_up();
                apply_posted(watch, thread, posted);
                settle_copies(watch);
            }
        }
        Err(TryLockError::WouldBlock) => {
            let mut all = POSTED.lock().unwrap_or_else(PoisonError::into_inner);
            all.push((thread, posted));
            HAVE_POSTED.store(true, Ordering::Release);
        }
        // An error has switched the checker off.
        Err(TryLockError::Poisoned(_)) => {}
    });
}

/// In the place of the program's host function.
pub(crate) unsafe extern "C" fn run_host(data: *mut c_void) {
    let function = |host: &Host| {
        let data = core::ptr::with_exposed_provenance_mut(host.data);
        if let Some(function) = host.function {
            // SAFETY: the program's function with its own data.
            unsafe { function(data) };
        }
    };
    // SAFETY: what `submit` or `in_node` has given.
    unsafe { run(data, function) };
}

/// In the place of the program's callback.
pub(crate) unsafe extern "C" fn run_callback(stream: Handle, status: Code, data: *mut c_void) {
    let function = |host: &Host| {
        let data = core::ptr::with_exposed_provenance_mut(host.data);
        if let Some(callback) = host.callback {
            // SAFETY: the program's function with its own data.
            unsafe { callback(stream, status, data) };
        }
    };
    // SAFETY: what `submit` has given.
    unsafe { run(data, function) };
}

/// A stream gets a host function, or a callback. `real` makes the call: with the program's own, or
/// with [`run_host`] or [`run_callback`] and this data.
pub(crate) fn submit(
    call: &Call,
    real: impl FnOnce(Option<Handle>) -> Code,
    stream: Handle,
    (function, callback): (Function, Callback),
    data: Handle,
) -> Code {
    if function.is_none() && callback.is_none() {
        return real(None);
    }
    let handle = if stream == 0 && call.per_thread { 2 } else { stream };
    // A function of which only the name is known may have begun a capture. The legacy stream has
    // none.
    let unknown = |watch: &mut Watch| {
        let known = watch.known_stream(call, stream);
        known
            .and_then(|id| watch.feed.capture_of(id))
            .is_none()
            .then_some(watch.host_functions.keeper)
    };
    let asked = if handle > 1 { locked(unknown).flatten() } else { None };
    let unseen = asked.is_some_and(|keeper| keeper.captured(handle) != 0);
    let made = begin_call(call, |watch| {
        let stream = watch.stream(call, stream);
        let is_captured = watch.feed.capture_of(stream).is_some();
        let captured = is_captured || unseen;
        let id = watch.next_id();
        let host = Arc::new(Host::new(function, callback, data));
        let number = (is_captured || !captured).then(|| {
            // It may begin before the real call returns.
            let visible = Visible { stream, ids: vec![id], at_once: false };
            let host = host.clone();
            watch.submission_begins(visible, move |watch| {
                watch.feed.function(stream, id);
                if is_captured {
                    // It is one of each launch.
                    watch.feed.function_left(id);
                    watch.graphs.add(&watch.feed, stream, Node::Host(host));
                }
            })
        });
        if !captured {
            *host.runs() = Runs { ids: [id].into(), last: true };
        }
        (host, number, captured.then_some(watch.host_functions.keeper))
    });
    let Some((host, number, keeper)) = made else { return real(None) };
    let raw = Arc::into_raw(host);
    let code = real(Some(raw.expose_provenance()));
    if let Some(number) = number {
        caught_up(|watch| watch.submission_returned(number, code));
    }
    if code != OK {
        // SAFETY: the driver has not taken it.
        drop(unsafe { Arc::from_raw(raw) });
    } else if let Some(keeper) = keeper {
        // SAFETY: the driver has it now, for a node of the graph that is captured.
        unsafe { keeper.give(keeper.captured(handle), raw) };
    }
    code
}

/// What is asked of the driver about a node, without the lock.
#[derive(Clone, Copy)]
pub(crate) struct OfNode(Keeper, GraphQuestions);

impl OfNode {
    pub(crate) fn new(watch: &mut Watch) -> Self {
        Self(watch.host_functions.keeper, watch.graphs.questions)
    }

    /// The graph of a node. Drivers before CUDA 13.1 do not say which it is.
    pub(crate) fn graph(&self, node: Handle) -> Option<Handle> {
        let mut graph = 0;
        // SAFETY: a node of the program, and a place for its graph.
        let code = unsafe { self.0.graph?(node, &mut graph) };
        (code == OK).then_some(graph)
    }

    /// What keeps the host function of a graph's node.
    pub(crate) fn kept(&self, graph: Handle, node: Handle) -> Option<Kept> {
        let object = host_function(&self.1, node)?.object.load(Ordering::Relaxed);
        Some(Kept { keeper: self.0, graph, object })
    }
}

/// The host function of a node, if the node has [`run_host`] in its place.
pub(crate) fn host_of(of: &CUDA_HOST_NODE_PARAMS) -> Option<Arc<Host>> {
    if of.fn_.is_none_or(|function| function as usize != run_host as *const c_void as usize) {
        return None;
    }
    let host: *const Host = of.userData.cast_const().cast();
    // SAFETY: what a graph has been given with that function, and has a reference to.
    unsafe {
        Arc::increment_strong_count(host);
        Some(Arc::from_raw(host))
    }
}

/// A host function becomes that of a node: a new one of a graph, one of a graph, or one of an
/// executable graph.
pub(crate) fn in_node(
    call: &Call,
    real: impl FnOnce(*const CUDA_HOST_NODE_PARAMS) -> Code,
    of: *const CUDA_HOST_NODE_PARAMS,
    place: NodePlace,
) -> Code {
    // SAFETY: NULL or the program's description.
    let CUDA_HOST_NODE_PARAMS { fn_: function, userData: data } = unsafe { read(of) };
    let Some(asks) = begin_call(call, OfNode::new).filter(|_| function.is_some()) else {
        return real(of);
    };
    let keeper = match place {
        NodePlace::Graph(graph) => Some((graph, None)),
        NodePlace::Node(node) => asks.graph(node).and_then(|graph| {
            let kept = asks.kept(graph, node)?;
            Some((graph, Some(kept)))
        }),
        NodePlace::Exec(..) => None,
    };
    let of_exec = matches!(place, NodePlace::Exec(..));
    let host = Arc::new(Host { of_exec, ..Host::new(function, None, data.expose_provenance()) });
    let raw = Arc::into_raw(host.clone());
    let given = CUDA_HOST_NODE_PARAMS { fn_: Some(run_host), userData: raw.cast_mut().cast() };
    let code = real(&given);
    if code != OK {
        // SAFETY: the driver has not taken it.
        drop(unsafe { Arc::from_raw(raw) });
        return code;
    }
    if let Some((graph, former)) = keeper {
        // SAFETY: the node has it now, and is one of this graph.
        let kept = unsafe { asks.0.give(graph, raw) };
        former.filter(|_| kept).iter().for_each(Kept::take);
    }
    caught_up(|watch| watch.graphs.host_node(place, host));
    code
}

/// The program asks for a node's host function: its own.
pub(crate) fn of_node(
    _: &Call,
    real: impl FnOnce() -> Code,
    of: *mut CUDA_HOST_NODE_PARAMS,
) -> Code {
    let code = real();
    // SAFETY: NULL or a place for the description, which a success has written.
    if let (OK, Some(of)) = (code, unsafe { of.as_mut() }) {
        give_back(of);
    }
    code
}

/// The same by the function for nodes of all kinds.
pub(crate) fn of_any_node(_: &Call, real: impl FnOnce() -> Code, of: *mut NodeParams) -> Code {
    /// `CU_GRAPH_NODE_TYPE_HOST`.
    const HOST: c_uint = 3;
    let code = real();
    // SAFETY: as above; what is read is a part of every kind's description.
    if let (OK, Some(of)) = (code, unsafe { of.as_mut() })
        && of.kind == HOST
    {
        give_back(&mut of.host);
    }
    code
}

/// The program's own function, in the place of [`run_host`].
pub(crate) fn give_back(of: &mut CUDA_HOST_NODE_PARAMS) {
    if let Some(host) = host_of(of) {
        let data = core::ptr::with_exposed_provenance_mut(host.data);
        *of = CUDA_HOST_NODE_PARAMS { fn_: host.function, userData: data };
    }
}

/// In the place of the program's destructor.
pub(crate) unsafe extern "C" fn run_destructor(data: *mut c_void) {
    // SAFETY: the box that `create_object` gave away, which the driver gives back once.
    let of = unsafe { Box::from_raw(data.cast::<Destructor>()) };
    let (function, data) = (of.function, of.data);
    post(Posted::DestructorBegins(of));
    if let Some(function) = function {
        // SAFETY: the program's destructor with its own data.
        unsafe { function(core::ptr::with_exposed_provenance_mut(data)) };
    }
    post(Posted::DestructorEnds);
}

/// # Safety
///
/// `object` must be NULL or a place for a handle, which a success has written.
pub(crate) unsafe fn create_object(
    call: &Call,
    real: impl FnOnce(Function, Handle) -> Code,
    object: *mut Handle,
    function: Function,
    data: Handle,
) -> Code {
    let number = begin_call(call, |watch| watch.next_id()).unwrap_or_default();
    let of = Destructor { function, data, number, object: AtomicUsize::new(0) };
    let raw = Box::into_raw(Box::new(of));
    let code = real(Some(run_destructor), raw.expose_provenance());
    if code == OK {
        // SAFETY: as the caller says.
        let object = unsafe { read(object) };
        // SAFETY: the program has the only references, and does not know of them yet.
        unsafe { (*raw).object.store(object, Ordering::Relaxed) };
        caught_up(|watch| watch.host_functions.numbers.insert(object, number));
    } else {
        // SAFETY: the driver has not taken it.
        drop(unsafe { Box::from_raw(raw) });
    }
    code
}

pub(crate) fn retain_object(
    call: &Call,
    real: impl FnOnce() -> Code,
    graph: Handle,
    object: Handle,
) -> Code {
    after_success(call, real, |watch| {
        let number = watch.host_functions.numbers.get(&object).copied();
        watch.host_functions.objects.entry(graph).or_default().extend(number);
    })
}

/// The host function of a node, if it is one that this library has given.
pub(crate) fn host_function(asks: &GraphQuestions, node: Handle) -> Option<Arc<Host>> {
    host_of(&ask::<CUDA_HOST_NODE_PARAMS>(asks.host, node)?)
}
