//! Host functions, and destructors of user objects.

use super::*;

/// `CUstreamCallback`.
pub(crate) type Callback = Option<unsafe extern "C" fn(Handle, Code, *mut c_void)>;

/// A host function of a stream or a graph.
pub(super) struct Host {
    pub(super) function: Function,
    /// In the place of `function`.
    callback: Callback,
    pub(super) data: Handle,
    /// The places of the executions that are submitted.
    pub(super) places: Mutex<VecDeque<u64>>,
    /// Whether a graph has it, which may execute it again.
    captured: bool,
}

/// Runs what the program has given.
///
/// # Safety
///
/// `data` is what [`submit`] gave away: once to a stream, which runs it once, or for ever to a graph.
unsafe fn run(data: *mut c_void, function: impl FnOnce(&Host)) {
    // SAFETY: as the caller says.
    let host = unsafe { Arc::from_raw(data.cast_const().cast::<Host>()) };
    let place = host.places.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    if let Some(place) = place {
        with(|watch| watch.feed.function_begins(place));
    }
    function(&host);
    if let Some(place) = place {
        with(|watch| watch.feed.function_ends(place));
    }
    if host.captured {
        std::mem::forget(host);
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
    let made = begin(call, |watch| {
        let id = watch.stream(call, stream);
        let captured = watch.feed.capture_of(id).is_some();
        let place = watch.new_place();
        let places = Mutex::new((!captured).then_some(place).into_iter().collect());
        let host = Arc::new(Host { function, callback, data, places, captured });
        // It may begin before the real call returns.
        watch.feed.function(id, place);
        if captured {
            // It is one of each launch.
            watch.feed.function_left(place);
            watch.node(id, Node::Host(host.clone()));
        }
        (host, place)
    });
    let Some((host, place)) = made else { return real(None) };
    let raw = Arc::into_raw(host);
    let code = real(Some(raw.expose_provenance()));
    if code != OK {
        // SAFETY: the driver has not taken it.
        drop(unsafe { Arc::from_raw(raw) });
        with(|watch| watch.feed.function_ends(place));
    }
    code
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
    // SAFETY: what a graph has been given for ever, with that function.
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
    if function == 0 || begin(call, |_| ()).is_none() {
        return real(of);
    }
    let function = core::ptr::with_exposed_provenance::<c_void>(function);
    // SAFETY: a function of this type, as the call's description says.
    let function = unsafe { core::mem::transmute::<*const c_void, Function>(function) };
    let host =
        Arc::new(Host { function, callback: None, data, places: Mutex::default(), captured: true });
    let raw = Arc::into_raw(host.clone());
    let function = (run_host as *const c_void).expose_provenance();
    let code = real(&HostParams { function, data: raw.expose_provenance() });
    if code == OK {
        with(|watch| watch.host_node(place, host));
    } else {
        // SAFETY: the driver has not taken it.
        drop(unsafe { Arc::from_raw(raw) });
    }
    code
}

/// The program asks for a node's host function: its own.
pub(crate) fn of_node(_: &Call, real: impl FnOnce() -> Code, of: *mut HostParams) -> Code {
    let code = real();
    // SAFETY: NULL or a place for the description, which a success has written.
    if let (OK, Some(of)) = (code, unsafe { of.as_mut() })
        && let Some(host) = host_of(of)
    {
        let function = host.function.map_or(0, |of| (of as *const c_void).expose_provenance());
        *of = HostParams { function, data: host.data };
    }
    code
}

/// A user object's destructor.
struct Destructor {
    function: Function,
    data: Handle,
    number: u64,
}

/// In the place of the program's destructor.
unsafe extern "C" fn run_destructor(data: *mut c_void) {
    // SAFETY: the box that `create_object` gave away, which the driver gives back once.
    let of = unsafe { Box::from_raw(data.cast::<Destructor>()) };
    with(|watch| {
        watch.feed.object_released(of.number);
        watch.feed.destructor_begins();
    });
    if let Some(function) = of.function {
        // SAFETY: the program's destructor with its own data.
        unsafe { function(core::ptr::with_exposed_provenance_mut(of.data)) };
    }
    with(|watch| watch.feed.destructor_ends());
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
    let raw = Box::into_raw(Box::new(Destructor { function, data, number }));
    let code = real(Some(run_destructor), raw.expose_provenance());
    if code == OK {
        // SAFETY: as the caller says.
        with(|watch| watch.numbers.insert(unsafe { read(object) }, number));
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
