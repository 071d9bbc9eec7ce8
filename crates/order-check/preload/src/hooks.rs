//! From names to hooks: look-ups, and the hooks that are not in the table.

use core::cell::Cell;
use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{PoisonError, RwLock};

use cuda_events::sys::CUDA_HOST_NODE_PARAMS;
use host_functions as hosts;
use run::{Argument, run};

use crate::abi::{compare, name};
use crate::call::{Call, Callback, Function};
use crate::lock::{Lock, Rank};
use crate::names::{are_hooked, edited, may_order};
use crate::settings::Settings;
use crate::start;
use crate::state::graphs::NodePlace;
use crate::table::{HOOKED, REAL};
use crate::{callbacks, guard};

pub(crate) mod copies;
pub(crate) mod declare;
mod destroyed;
pub(crate) mod events;
pub(crate) mod graphs;
pub(crate) mod host_functions;
pub(crate) mod kernels;
pub(crate) mod memory;
pub(crate) mod modules;
pub(crate) mod run;
pub(crate) mod streams;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod thunks;
pub(crate) mod unmodelled;
pub(crate) mod user_objects;
pub(crate) mod values;

type Code = c_uint;
type Handle = usize;

/// The hooks that need more of the real function than to be called with the same arguments: those
/// of host functions. Each has the library's own function in the place of the program's.
macro_rules! host_functions {
    ($($name:ident $real:ident | $twin:ident $twin_real:ident
        ($function:ident: $ty:ty $(, $flag:ident: $flag_ty:ty)?) => $run:expr, $both:expr;)*) => {
        $(
            host_functions!(@one $name $real ($function: $ty $(, $flag: $flag_ty)?)
                => $run, $both);
            host_functions!(@one $twin $twin_real ($function: $ty $(, $flag: $flag_ty)?)
                => $run, $both);
            compare!($name unsafe extern "C" fn(Handle, $ty, Handle $(, $flag_ty)?) -> Code);
        )*

        fn host_functions() -> impl Iterator<Item = Special> {
            [$(
                (name!($name), $name as *const (), &$real),
                (name!($twin), $twin as *const (), &$twin_real),
            )*].into_iter()
        }
    };
    (@one $name:ident $real:ident ($function:ident: $ty:ty $(, $flag:ident: $flag_ty:ty)?)
        => $run:expr, $both:expr) => {
        static $real: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

        #[allow(non_snake_case)]
        unsafe extern "C" fn $name(
            stream: Handle,
            $function: $ty,
            data: Handle,
            $($flag: $flag_ty,)?
        ) -> Code {
            type Real = unsafe extern "C" fn(Handle, $ty, Handle, $($flag_ty)?) -> Code;
            // SAFETY: the real function of that name.
            let real = unsafe {
                core::mem::transmute::<*mut c_void, Real>($real.load(Ordering::Relaxed))
            };
            let name = stringify!($name);
            let call = Call { name, per_thread: name.ends_with("_ptsz") };
            let made = Cell::new(None);
            let real = |given: Option<Handle>| {
                let (function, data) = match given {
                    Some(data) => (Some($run as _), data),
                    None => ($function, data),
                };
                // SAFETY: the program's arguments, or the stand-in's own function with its
                // data.
                let code = unsafe { real(stream, function, data, $($flag)?) };
                made.set(Some(code));
                code
            };
            let hook = || hosts::submit(&call, real, stream, $both, data);
            run(name, &made, hook, || real(None), |done, show| {
                show("stream", Some(stream), &|| Argument::show(stream, done));
            })
        }
    };
}

/// A hook that is not in the table: its name, its address, and where the real function's address
/// is.
type Special = (&'static CStr, *const (), &'static AtomicPtr<c_void>);

host_functions! {
    cuLaunchHostFunc HOST | cuLaunchHostFunc_ptsz HOST_PTSZ (function: Function)
        => callbacks::run_host, (function, None);
    cuLaunchHostFunc_v2 HOST_V2 | cuLaunchHostFunc_v2_ptsz HOST_V2_PTSZ
        (function: Function, mode: c_uint) => callbacks::run_host, (function, None);
    cuStreamAddCallback CALLBACK | cuStreamAddCallback_ptsz CALLBACK_PTSZ
        (function: Callback, flags: c_uint) => callbacks::run_callback, (None, function);
}

static ADD_HOST: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
static SET_HOST: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
static EXEC_HOST: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

/// The call that gives a node its host function.
fn host_node(
    name: &'static str,
    real: impl Fn(*const CUDA_HOST_NODE_PARAMS) -> Code,
    description: *const CUDA_HOST_NODE_PARAMS,
    place: NodePlace,
) -> Code {
    let made = Cell::new(None);
    let once = |description| {
        let code = real(description);
        made.set(Some(code));
        code
    };
    let call = Call { name, per_thread: false };
    let hook = || hosts::in_node(&call, once, description, place);
    run(name, &made, hook, || real(description), |_, _| {})
}

unsafe extern "C" fn add_host_node(
    node: *mut Handle,
    graph: Handle,
    after: *const Handle,
    count: usize,
    description: *const CUDA_HOST_NODE_PARAMS,
) -> Code {
    type Real = unsafe extern "C" fn(
        *mut Handle,
        Handle,
        *const Handle,
        usize,
        *const CUDA_HOST_NODE_PARAMS,
    ) -> Code;
    // SAFETY: the real function of that name.
    let real =
        unsafe { core::mem::transmute::<*mut c_void, Real>(ADD_HOST.load(Ordering::Relaxed)) };
    // SAFETY: the program's arguments, or the stand-in's own function with its data.
    let real = |description| unsafe { real(node, graph, after, count, description) };
    host_node("cuGraphAddHostNode", real, description, NodePlace::Graph(graph))
}

unsafe extern "C" fn set_host_node(
    node: Handle,
    description: *const CUDA_HOST_NODE_PARAMS,
) -> Code {
    type Real = unsafe extern "C" fn(Handle, *const CUDA_HOST_NODE_PARAMS) -> Code;
    // SAFETY: as above.
    let real =
        unsafe { core::mem::transmute::<*mut c_void, Real>(SET_HOST.load(Ordering::Relaxed)) };
    // SAFETY: as above.
    let real = |description| unsafe { real(node, description) };
    host_node("cuGraphHostNodeSetParams", real, description, NodePlace::Node(node))
}

unsafe extern "C" fn set_exec_host_node(
    exec: Handle,
    node: Handle,
    description: *const CUDA_HOST_NODE_PARAMS,
) -> Code {
    type Real = unsafe extern "C" fn(Handle, Handle, *const CUDA_HOST_NODE_PARAMS) -> Code;
    // SAFETY: as above.
    let real =
        unsafe { core::mem::transmute::<*mut c_void, Real>(EXEC_HOST.load(Ordering::Relaxed)) };
    // SAFETY: as above.
    let real = |description| unsafe { real(exec, node, description) };
    host_node("cuGraphExecHostNodeSetParams", real, description, NodePlace::Exec(exec, node))
}

static OBJECT: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

unsafe extern "C" fn create_object(
    object: *mut Handle,
    data: Handle,
    destroy: Function,
    count: c_uint,
    flags: c_uint,
) -> Code {
    type Real = unsafe extern "C" fn(*mut Handle, Handle, Function, c_uint, c_uint) -> Code;
    // SAFETY: the real function of that name.
    let real = unsafe { core::mem::transmute::<*mut c_void, Real>(OBJECT.load(Ordering::Relaxed)) };
    let call = Call { name: "cuUserObjectCreate", per_thread: false };
    let made = Cell::new(None);
    let real = |destroy, data| {
        // SAFETY: the program's arguments, or the stand-in's own function with its data.
        let code = unsafe { real(object, data, destroy, count, flags) };
        made.set(Some(code));
        code
    };
    // SAFETY: the place for the handle.
    let hook = || unsafe { user_objects::create(&call, real, object, destroy, data) };
    run(call.name, &made, hook, || real(destroy, data), |_, _| {})
}

static LOOK_UP: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
static LOOK_UP_V2: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
static LOOK_UP_V2_PTSZ: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

/// The exports of the stand-in, by the addresses of the real functions. Some of these have two
/// names; then it is the first.
static EXPORTED: RwLock<BTreeMap<usize, usize>> = RwLock::new(BTreeMap::new());

/// The stand-in exports a real function at `own`, which look-ups then return.
pub fn exported(real: *const c_void, own: *const c_void) {
    let mut all = EXPORTED.write().unwrap_or_else(PoisonError::into_inner);
    let own = own.expose_provenance();
    all.entry(real.addr()).or_insert(own);
    // A real library may see the symbols of this one instead of its own, and return these.
    all.insert(own, own);
}

/// Functions that were looked up, and that the stand-in does not export.
static UNLISTED: Lock<BTreeSet<String>> = Lock::new(Rank::Unlisted, BTreeSet::new());

/// The names of the functions that were looked up, and that the stand-in does not export.
pub(crate) fn unlisted() -> BTreeSet<String> {
    UNLISTED.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// What was looked up is the export of the real function, or what is in front of it.
///
/// # Safety
///
/// A C string, and a place for the address, which the real function has written.
unsafe fn looked_up(code: Code, name: *const c_char, function: *mut *mut c_void) {
    // SAFETY: as the caller says.
    let (Some(function), 0) = (unsafe { function.as_mut() }, code) else { return };
    if function.is_null() || name.is_null() {
        return;
    }
    // No lock is held while others are taken.
    let (own, is_listed) = {
        let all = EXPORTED.read().unwrap_or_else(PoisonError::into_inner);
        (all.get(&function.addr()).copied(), !all.is_empty())
    };
    *function = match own {
        Some(own) => core::ptr::with_exposed_provenance_mut(own),
        // Also in a child of a fork, in which nobody gives the locks back that its parent's threads
        // had.
        None if guard::off() => *function,
        None => {
            // SAFETY: as the caller says.
            let name = unsafe { CStr::from_ptr(name) };
            let front = front_of(name, *function);
            if is_listed && hook_of(*function).is_none() {
                let name = name.to_string_lossy().into_owned();
                UNLISTED.lock().unwrap_or_else(PoisonError::into_inner).insert(name);
            }
            front
        }
    };
}

unsafe extern "C" fn look_up(
    name: *const c_char,
    function: *mut *mut c_void,
    version: c_int,
    flags: u64,
) -> Code {
    type Real = unsafe extern "C" fn(*const c_char, *mut *mut c_void, c_int, u64) -> Code;
    // SAFETY: the real function with the program's arguments.
    unsafe {
        let real = core::mem::transmute::<*mut c_void, Real>(LOOK_UP.load(Ordering::Relaxed));
        let code = real(name, function, version, flags);
        guard::caught(|| looked_up(code, name, function));
        code
    }
}

type LookUpV2 =
    unsafe extern "C" fn(*const c_char, *mut *mut c_void, c_int, u64, *mut c_uint) -> Code;

unsafe extern "C" fn look_up_v2(
    name: *const c_char,
    function: *mut *mut c_void,
    version: c_int,
    flags: u64,
    status: *mut c_uint,
) -> Code {
    // SAFETY: as above.
    unsafe {
        let real =
            core::mem::transmute::<*mut c_void, LookUpV2>(LOOK_UP_V2.load(Ordering::Relaxed));
        let code = real(name, function, version, flags, status);
        guard::caught(|| looked_up(code, name, function));
        code
    }
}

unsafe extern "C" fn look_up_v2_ptsz(
    name: *const c_char,
    function: *mut *mut c_void,
    version: c_int,
    flags: u64,
    status: *mut c_uint,
) -> Code {
    // SAFETY: as above.
    unsafe {
        let real =
            core::mem::transmute::<*mut c_void, LookUpV2>(LOOK_UP_V2_PTSZ.load(Ordering::Relaxed));
        let code = real(name, function, version, flags, status);
        guard::caught(|| looked_up(code, name, function));
        code
    }
}

fn others() -> [Special; 7] {
    [
        (c"cuGraphAddHostNode", add_host_node as *const (), &ADD_HOST),
        (c"cuGraphHostNodeSetParams", set_host_node as *const (), &SET_HOST),
        (c"cuGraphExecHostNodeSetParams", set_exec_host_node as *const (), &EXEC_HOST),
        (c"cuUserObjectCreate", create_object as *const (), &OBJECT),
        (c"cuGetProcAddress", look_up as *const (), &LOOK_UP),
        (c"cuGetProcAddress_v2", look_up_v2 as *const (), &LOOK_UP_V2),
        (c"cuGetProcAddress_v2_ptsz", look_up_v2_ptsz as *const (), &LOOK_UP_V2_PTSZ),
    ]
}

compare!(cuGraphAddHostNode is add_host_node as unsafe extern "C" fn(_, _, _, _, _) -> _);
compare!(cuGraphHostNodeSetParams is set_host_node as unsafe extern "C" fn(_, _) -> _);
compare!(cuGraphExecHostNodeSetParams is set_exec_host_node as unsafe extern "C" fn(_, _, _) -> _);
compare!(cuUserObjectCreate is create_object as unsafe extern "C" fn(_, _, _, _, _) -> _);
compare!(cuGetProcAddress is look_up as unsafe extern "C" fn(_, _, _, _) -> _);
compare!(cuGetProcAddress_v2 is look_up_v2 as unsafe extern "C" fn(_, _, _, _, _) -> _);
// The type of a twin is that of its function.
compare!(cuGetProcAddress_v2 is look_up_v2_ptsz as unsafe extern "C" fn(_, _, _, _, _) -> _);

/// The hooks that are not in the table.
fn special() -> impl Iterator<Item = Special> {
    host_functions().chain(others())
}

/// Every hook: its name, its address, and where the real function's address is.
fn all() -> impl Iterator<Item = (&'static CStr, *mut c_void, &'static AtomicPtr<c_void>)> {
    let plain =
        HOOKED.iter().zip(&REAL).map(|((name, hook), real)| (*name, *hook as *const (), real));
    plain.chain(special()).map(|(name, hook, real)| (name, hook.cast_mut().cast(), real))
}

/// The names of the hooked functions.
pub fn names() -> impl Iterator<Item = &'static CStr> {
    all().map(|(name, ..)| name)
}

/// The hook of a real function's address.
fn hook_of(real: *mut c_void) -> Option<*mut c_void> {
    if real.is_null() {
        return None;
    }
    let is_it = |function: &AtomicPtr<c_void>| function.load(Ordering::Relaxed) == real;
    let hook = match REAL.iter().position(is_it) {
        Some(at) => HOOKED[at].1 as *const (),
        None => special().find(|(_, _, function)| is_it(function))?.1,
    };
    Some(hook.cast_mut().cast())
}

/// What the program calls in the place of a real function.
fn front_of(name: &CStr, real: *mut c_void) -> *mut c_void {
    hook_of(real).unwrap_or_else(|| match name.to_str() {
        Ok(_) if real.is_null() => real,
        Ok(name) if may_order(name) || edited(name).is_some() => thunks::entry(name, real),
        _ => real,
    })
}

/// Looks up the real functions, and begins to watch.
pub fn install(resolve: &dyn Fn(&CStr) -> *mut c_void, settings: &Settings) {
    are_hooked(names());
    all().for_each(|(name, _, real)| real.store(resolve(name), Ordering::Relaxed));
    start::start(resolve, settings);
}

/// The address of a name in the stand-in: a hook, or the real function, or an entry in front of it,
/// or NULL where the real library has none.
pub fn target(name: &CStr, resolve: &dyn Fn(&CStr) -> *mut c_void) -> *mut c_void {
    front_of(name, resolve(name))
}
