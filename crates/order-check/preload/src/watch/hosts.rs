//! Host functions, and destructors of user objects.

use super::*;

/// `CUstreamCallback`.
pub(crate) type Callback = Option<unsafe extern "C" fn(Handle, Code, *mut c_void)>;

/// A host function of a stream or a graph. The driver has a reference to it, which ends with the
/// last execution, or with the last graph that has it.
pub(super) struct Host {
    pub(super) function: Function,
    /// In the place of `function`.
    callback: Callback,
    pub(super) data: Handle,
    runs: Mutex<Runs>,
    /// Only an executable graph has it: it was set there.
    of_exec: bool,
    /// The user object by which graphs keep it, or 0.
    object: AtomicUsize,
}

/// The executions of a host function.
#[derive(Default)]
struct Runs {
    /// The places of those that are submitted and have not begun.
    places: VecDeque<u64>,
    /// Whether these are the last ones.
    last: bool,
}

impl Host {
    fn new(function: Function, callback: Callback, data: Handle) -> Self {
        let (runs, object) = (Mutex::default(), AtomicUsize::new(0));
        Self { function, callback, data, runs, of_exec: false, object }
    }

    fn runs(&self) -> MutexGuard<'_, Runs> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An execution with this place is submitted.
    pub(super) fn submitted(&self, place: u64) {
        self.runs().places.push_back(place);
    }

    /// The driver has refused that execution.
    pub(super) fn withdrawn(&self, place: u64) {
        self.runs().places.retain(|of| *of != place);
    }
}

/// Runs what the program has given.
///
/// # Safety
///
/// `data` is what [`submit`] or [`in_node`] gave to the driver, which calls it as often as it is
/// submitted.
unsafe fn run(data: *mut c_void, function: impl FnOnce(&Host)) {
    let raw = data.cast_const().cast::<Host>();
    // SAFETY: as the caller says; the driver has a reference until the last execution begins.
    let host = unsafe {
        Arc::increment_strong_count(raw);
        Arc::from_raw(raw)
    };
    let place = {
        let mut runs = host.runs();
        let place = runs.places.pop_front();
        if place.is_some() && runs.last && runs.places.is_empty() {
            // SAFETY: the driver's reference, which it will not use again.
            unsafe { Arc::decrement_strong_count(raw) };
        }
        place
    };
    if let Some(place) = place {
        tell(Told::Begins(place));
    }
    function(&host);
    if let Some(place) = place {
        tell(Told::Ends(place));
    }
}

/// What the driver's own threads tell.
pub(super) enum Told {
    Begins(u64),
    Ends(u64),
    DestructorBegins(Box<Destructor>),
    DestructorEnds,
}

/// What was told while others had the watch's lock, each with its thread.
static TOLD: Mutex<Vec<(u64, Told)>> = Mutex::new(Vec::new());
static HAVE_TOLD: AtomicBool = AtomicBool::new(false);

/// Tells something without waiting for the watch's lock. The driver may have a lock of its own while
/// it calls a function of the program, and another thread may ask the driver with the watch's.
pub(super) fn tell(told: Told) {
    let _inside = Inside::new();
    let thread = thread();
    guard::own(|| match WATCH.try_lock() {
        Ok(mut watch) => {
            if let Some(watch) = &mut *watch {
                watch.catch_up();
                watch.told(thread, told);
                watch.settle();
            }
        }
        Err(TryLockError::WouldBlock) => {
            let mut all = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
            all.push((thread, told));
            HAVE_TOLD.store(true, Ordering::Release);
        }
        // An error has switched the checker off.
        Err(TryLockError::Poisoned(_)) => {}
    });
}

/// Whether there is something to [`hear`](Watch::hear).
pub(super) fn have_told() -> bool {
    HAVE_TOLD.load(Ordering::Acquire)
}

impl Watch {
    /// What was told since the last call.
    pub(super) fn hear(&mut self) {
        if HAVE_TOLD.swap(false, Ordering::Acquire) {
            let all = std::mem::take(&mut *TOLD.lock().unwrap_or_else(PoisonError::into_inner));
            all.into_iter().for_each(|(thread, told)| self.told(thread, told));
        }
    }

    fn told(&mut self, thread: u64, told: Told) {
        self.feed.observer_mut().told_by = Some(thread);
        match told {
            Told::Begins(place) => {
                self.begins_with(place);
                self.feed.function_begins(place);
            }
            Told::Ends(place) => self.feed.function_ends(place),
            Told::DestructorBegins(of) => {
                self.object_ended(&of);
                self.feed.destructor_begins();
            }
            Told::DestructorEnds => self.feed.destructor_ends(),
        }
        self.feed.observer_mut().told_by = None;
    }
}

/// Whether there was a launch whose host functions have no places.
static UNSEEN: AtomicBool = AtomicBool::new(false);

/// A launch is not seen.
pub(super) fn unseen() {
    UNSEEN.store(true, Ordering::Relaxed);
}

/// An executable graph no longer has this function, and all of its launches so far were seen.
pub(super) fn left(host: &Arc<Host>) {
    if !host.of_exec || UNSEEN.load(Ordering::Relaxed) {
        return;
    }
    let mut runs = host.runs();
    if !std::mem::replace(&mut runs.last, true) && runs.places.is_empty() {
        // SAFETY: the driver's reference: nobody else had the function, no launch is left, and no
        // other one will come. What runs just now has a reference of its own.
        unsafe { Arc::decrement_strong_count(Arc::as_ptr(host)) };
    }
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
        known.and_then(|id| watch.feed.capture_of(id)).is_none().then_some(watch.keeper)
    };
    let asked = if handle > 1 { enter(unknown).flatten() } else { None };
    let unseen = asked.is_some_and(|keeper| keeper.captured(handle) != 0);
    let made = begin(call, |watch| {
        let id = watch.stream(call, stream);
        let known = watch.feed.capture_of(id).is_some();
        let captured = known || unseen;
        let place = watch.new_place();
        let host = Arc::new(Host::new(function, callback, data));
        if known || !captured {
            // It may begin before the real call returns.
            watch.feed.function(id, place);
        }
        if known {
            // It is one of each launch.
            watch.feed.function_left(place);
            watch.node(id, Node::Host(host.clone()));
        }
        if !captured {
            *host.runs() = Runs { places: [place].into(), last: true };
        }
        (host, place, captured.then_some(watch.keeper))
    });
    let Some((host, place, keeper)) = made else { return real(None) };
    let raw = Arc::into_raw(host);
    let code = real(Some(raw.expose_provenance()));
    if code != OK {
        // SAFETY: the driver has not taken it.
        drop(unsafe { Arc::from_raw(raw) });
        with(|watch| watch.feed.function_ends(place));
    } else if let Some(keeper) = keeper {
        // SAFETY: the driver has it now, for a node of the graph that is captured.
        unsafe { keeper.give(keeper.captured(handle), raw) };
    }
    code
}

of_driver! {
    /// The functions of the driver by which a graph keeps its host functions: each is a user object
    /// of the graph. So it has a reference wherever the driver may call it: clones, executable
    /// graphs and launches have references to the objects of the graphs that they come from.
    ///
    /// A capture is its status, its number, its graph and the last nodes. The later version has
    /// their edges, too.
    Keeper {
        create: c"cuUserObjectCreate" (*mut Handle, *const Host, Function, c_uint, c_uint),
        retain: c"cuGraphRetainUserObject" (Handle, Handle, c_uint, c_uint),
        release: c"cuGraphReleaseUserObject" (Handle, Handle, c_uint),
        capture: c"cuStreamGetCaptureInfo_v2" (
            Handle, *mut c_uint, *mut u64, *mut Handle, *mut Handle, *mut usize
        ),
        capture_of_edges: c"cuStreamGetCaptureInfo_v3" (
            Handle, *mut c_uint, *mut u64, *mut Handle, *mut Handle, *mut Handle, *mut usize
        ),
        graph: c"cuGraphNodeGetContainingGraph" (Handle, *mut Handle),
    }
}

impl Keeper {
    /// The graph into which a stream is captured, or 0.
    fn captured(&self, stream: Handle) -> Handle {
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
        // CU_STREAM_CAPTURE_STATUS_ACTIVE.
        if code == OK && status == 1 { graph } else { 0 }
    }

    /// The driver's reference to a host function becomes an object of a graph. Where that is not
    /// possible, it remains a reference for ever. Says which it is.
    ///
    /// # Safety
    ///
    /// The driver must have this reference, and a node of the graph.
    unsafe fn give(&self, graph: Handle, host: *const Host) -> bool {
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
            let kept = retain(graph, object, 1, ONLY) == OK;
            if !kept {
                (*host).object.store(0, Ordering::Relaxed);
            }
            kept
        }
    }
}

/// What keeps the host function of a node.
pub(super) struct Kept {
    keeper: Keeper,
    graph: Handle,
    object: Handle,
}

impl Kept {
    /// The node is gone, or has another function. What was made of the graph before has references
    /// of its own.
    pub(super) fn take(&self) {
        if let Some(release) = self.keeper.release.filter(|_| self.object != 0) {
            // SAFETY: the graph of a node that had the function, so it has the object.
            unsafe { release(self.graph, self.object, 1) };
        }
    }
}

/// What is asked of the driver about a node, without the lock.
#[derive(Clone, Copy)]
pub(super) struct OfNode(Keeper, nodes::Questions);

impl OfNode {
    pub(super) fn new(watch: &mut Watch) -> Self {
        Self(watch.keeper, watch.graph_questions)
    }

    /// The graph of a node. Drivers before CUDA 13.1 do not say which it is.
    pub(super) fn graph(&self, node: Handle) -> Option<Handle> {
        let mut graph = 0;
        // SAFETY: a node of the program, and a place for its graph.
        let code = unsafe { self.0.graph?(node, &mut graph) };
        (code == OK).then_some(graph)
    }

    /// What keeps the host function of a graph's node.
    pub(super) fn kept(&self, graph: Handle, node: Handle) -> Option<Kept> {
        let object = self.1.host_function(node)?.object.load(Ordering::Relaxed);
        Some(Kept { keeper: self.0, graph, object })
    }
}

/// The destructor of a host function's object.
unsafe extern "C" fn end(data: *mut c_void) {
    // SAFETY: the driver's reference, which it gives back once.
    drop(unsafe { Arc::from_raw(data.cast_const().cast::<Host>()) });
}

/// `CUDA_HOST_NODE_PARAMS`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct HostParams {
    function: usize,
    data: Handle,
}

/// The host function of a node, if the node has [`run_host`] in its place.
pub(super) fn host_of(of: &HostParams) -> Option<Arc<Host>> {
    if of.function != (run_host as *const c_void).addr() {
        return None;
    }
    let host: *const Host = core::ptr::with_exposed_provenance(of.data);
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
    real: impl FnOnce(*const HostParams) -> Code,
    of: *const HostParams,
    place: NodePlace,
) -> Code {
    // SAFETY: NULL or the program's description.
    let HostParams { function, data } = unsafe { read(of) };
    let Some(asks) = begin(call, OfNode::new).filter(|_| function != 0) else { return real(of) };
    let keeper = match place {
        NodePlace::Graph(graph) => Some((graph, None)),
        NodePlace::Node(node) => asks.graph(node).and_then(|graph| {
            let kept = asks.kept(graph, node)?;
            Some((graph, Some(kept)))
        }),
        NodePlace::Exec(..) => None,
    };
    let function = core::ptr::with_exposed_provenance::<c_void>(function);
    // SAFETY: a function of this type, as the call's description says.
    let function = unsafe { core::mem::transmute::<*const c_void, Function>(function) };
    let of_exec = matches!(place, NodePlace::Exec(..));
    let host = Arc::new(Host { of_exec, ..Host::new(function, None, data) });
    let raw = Arc::into_raw(host.clone());
    let function = (run_host as *const c_void).expose_provenance();
    let code = real(&HostParams { function, data: raw.expose_provenance() });
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
    with(|watch| watch.host_node(place, host));
    code
}

/// The begin of `CUgraphNodeParams` of a host node, which begins with its kind.
#[repr(C)]
pub(crate) struct NodeParams {
    kind: c_uint,
    reserved: [c_uint; 3],
    /// In a union: only a host node has it.
    host: HostParams,
}

const _: () = assert!(core::mem::offset_of!(NodeParams, host) == 16);

/// The program asks for a node's host function: its own.
pub(crate) fn of_node(_: &Call, real: impl FnOnce() -> Code, of: *mut HostParams) -> Code {
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
fn give_back(of: &mut HostParams) {
    if let Some(host) = host_of(of) {
        let function = host.function.map_or(0, |of| (of as *const c_void).expose_provenance());
        *of = HostParams { function, data: host.data };
    }
}

/// A user object's destructor.
pub(super) struct Destructor {
    function: Function,
    data: Handle,
    number: u64,
    object: AtomicUsize,
}

impl Watch {
    /// The last reference to an object is gone. Its handle may be that of another one.
    fn object_ended(&mut self, of: &Destructor) {
        let object = of.object.load(Ordering::Relaxed);
        if self.numbers.get(&object) == Some(&of.number) {
            self.numbers.remove(&object);
        }
        self.objects.values_mut().for_each(|all| _ = all.remove(&of.number));
        self.feed.object_released(of.number);
    }
}

/// In the place of the program's destructor.
unsafe extern "C" fn run_destructor(data: *mut c_void) {
    // SAFETY: the box that `create_object` gave away, which the driver gives back once.
    let of = unsafe { Box::from_raw(data.cast::<Destructor>()) };
    let (function, data) = (of.function, of.data);
    tell(Told::DestructorBegins(of));
    if let Some(function) = function {
        // SAFETY: the program's destructor with its own data.
        unsafe { function(core::ptr::with_exposed_provenance_mut(data)) };
    }
    tell(Told::DestructorEnds);
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
    let number = begin(call, Watch::new_place).unwrap_or_default();
    let of = Destructor { function, data, number, object: AtomicUsize::new(0) };
    let raw = Box::into_raw(Box::new(of));
    let code = real(Some(run_destructor), raw.expose_provenance());
    if code == OK {
        // SAFETY: as the caller says.
        let object = unsafe { read(object) };
        // SAFETY: the program has the only references, and does not know of them yet.
        unsafe { (*raw).object.store(object, Ordering::Relaxed) };
        with(|watch| watch.numbers.insert(object, number));
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
    after(call, real, |watch| {
        let number = watch.numbers.get(&object).copied();
        watch.objects.entry(graph).or_default().extend(number);
    })
}
