//! For cudarc, numba-cuda and cuda.core: modules, libraries and their functions, which are the
//! kernels that the test has registered, and those of the image; the profiler, tables of other
//! exports.

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::path::PathBuf;

use crate::abi::*;
use crate::allocation;
use crate::arg::{Array, In, Memory, Ptr};
use crate::context::all_streams::after_work_of;
use crate::device::check;
use crate::kernel::Kernel;
use crate::kernel::images::{self, Image, Source};
use crate::machine::Locked;
use crate::machine::call_frame::CallFrame;

exports! { $ [kernel::modules]
    cuGetExportTable => get_export_table;
    cuModuleGetLoadingMode => module_get_loading_mode;
    cuProfilerStart => profiler_switch;
    cuProfilerStop => profiler_switch;
    cuKernelGetName => function_name;
    cuFuncGetName => function_name;
    cuModuleLoad => module_load;
    cuModuleLoadData => module_load_data;
    cuModuleLoadDataEx => module_load_data_ex;
    cuModuleLoadFatBinary => module_load_data;
    cuModuleUnload => module_unload;
    cuModuleGetFunction => (get_function::<false>);
    cuLibraryLoadData => library_load_data;
    cuLibraryLoadFromFile => library_load_from_file;
    cuLibraryUnload => library_unload;
    cuLibraryGetKernel => (get_function::<true>);
    cuLibraryGetModule => library_get_module;
    cuModuleGetFunctionCount => (function_count::<false>);
    cuModuleEnumerateFunctions => (enumerate_functions::<false>);
    cuLibraryGetKernelCount => (function_count::<true>);
    cuLibraryEnumerateKernels => (enumerate_functions::<true>);
    cuKernelGetFunction => kernel_get_function;
    cuKernelGetLibrary => function_get_module;
    cuFuncGetModule => function_get_module;
    cuFuncIsLoaded => function_is_loaded;
    cuFuncLoad => function_load;
    cuFuncGetParamCount => parameter_count;
    cuKernelGetParamCount => parameter_count;
    cuFuncGetParamInfo => parameter_info;
    cuKernelGetParamInfo => parameter_info;
    cuFuncGetAttribute => function_get_attribute;
    cuFuncSetAttribute => function_set_attribute;
    cuKernelGetAttribute => kernel_get_attribute;
    cuKernelSetAttribute => kernel_set_attribute;
    cuFuncSetCacheConfig => function_set_config;
    cuFuncSetSharedMemConfig => function_set_config;
    cuKernelSetCacheConfig => kernel_set_cache_config;
}

/// Handles of modules and libraries, and of functions and kernels, are opaque.
type Handle = *mut c_void;

/// Documented: lazy, unless the environment asks for the other.
pub(crate) fn module_get_loading_mode(call: &CallFrame, mode: Ptr<c_uint>) -> Answer {
    drop(call.ready()?);
    mode.put(match is_eager() {
        true => CUmoduleLoadingMode::CU_MODULE_EAGER_LOADING.0,
        false => CUmoduleLoadingMode::CU_MODULE_LAZY_LOADING.0,
    })
}

fn is_eager() -> bool {
    std::env::var_os("CUDA_MODULE_LOADING").is_some_and(|mode| mode == "EAGER")
}

/// What puts code on a device, or takes it away, waits for the work of the device. Measured.
fn after_work_of_current(call: &CallFrame, state: Locked) -> Result<Locked, CUresult> {
    let context = state.current(call)?;
    let device = allocation::owner(&state, context).device;
    after_work_of(call, state, device)
}

/// Loads a function, if it is not. Measured: the first kernel of a library waits for the work of the
/// device then, and a function of a module does not.
pub(super) fn load_function(
    call: &CallFrame,
    mut state: Locked,
    function: u32,
) -> Result<Locked, CUresult> {
    let Some(entry) = state.modules.functions.get_mut(function) else { return Ok(state) };
    entry.loaded = true;
    let module = entry.module;
    load_module(call, state, module)
}

fn load_module(call: &CallFrame, mut state: Locked, module: u32) -> Result<Locked, CUresult> {
    let was_loaded = std::mem::replace(&mut state.modules.modules[module].loaded, true);
    if was_loaded { Ok(state) } else { after_work_of_current(call, state) }
}

/// There is no profiler to start or stop, and that is no error.
pub(crate) fn profiler_switch(call: &CallFrame) -> Answer {
    let mut state = call.ready()?;
    state.current(call)?;
    state.captures.refuse_unsafe()
}

/// Tables of what is not exported by name. Measured: one that the driver does not know is an
/// invalid value, before `cuInit` too; this one knows none.
pub(crate) fn get_export_table(
    call: &CallFrame,
    _table: Ptr<*const c_void>,
    _id: In<CUuuid>,
) -> Answer {
    call.lock()?.misuses.say_unsupported(call, call.name());
    Err(INVALID_VALUE)
}

/// The machine's state, for a call that only makes sense with kernels.
pub(super) fn ready(call: &CallFrame) -> Result<Locked, CUresult> {
    let state = call.ready()?;
    if state.modules.in_use || images::READ { Ok(state) } else { Err(NOT_SUPPORTED) }
}

/// A handle that C is given.
fn handle(number: u64) -> Handle {
    core::ptr::without_provenance_mut(number as usize)
}

/// The module or library of a handle.
fn module(state: &Locked, module: Memory, library: bool) -> Result<u32, CUresult> {
    let index = state.modules.modules.find(module.addr()).map_err(|_| INVALID_HANDLE)?;
    let is_library = state.modules.modules[index].context.is_none();
    if is_library == library { Ok(index) } else { Err(INVALID_HANDLE) }
}

/// The function of a handle, if its module's context is still there.
pub(super) fn function(state: &Locked, function: Memory) -> Result<u32, CUresult> {
    let index = state.modules.functions.find(function.addr()).map_err(|_| INVALID_HANDLE)?;
    usable(state, state.modules.functions[index].module)?;
    Ok(index)
}

/// The module or library of a handle, if its context is still there.
fn container(state: &Locked, given: Memory, library: bool) -> Result<u32, CUresult> {
    let found = match module(state, given, library) {
        // The module of a library is the library itself.
        Err(_) if !library => module(state, given, true)?,
        found => found?,
    };
    usable(state, found)?;
    Ok(found)
}

fn usable(state: &Locked, module: u32) -> Answer {
    match state.modules.modules[module].context {
        Some((context, id)) => match state.contexts.get(context) {
            Some(entry) if entry.id == id && entry.alive => state.usable(context),
            // Measured: its modules and their functions are gone with it.
            _ => Err(INVALID_HANDLE),
        },
        None => Ok(()),
    }
}

// Loading. Whatever the image is, it has all kernels that are registered.

/// The image of a call. Once a kernel is registered, what is none is one without kernels of its own.
fn image(call: &CallFrame, source: Source<'_>) -> Result<Image, CUresult> {
    let state = ready(call)?;
    let (lenient, checked) = (state.modules.in_use, state.feed.is_some());
    // The rest is long, and needs nothing of it.
    drop(state);
    match Image::read(&source, checked) {
        Err(_) if lenient => Ok(Image::default()),
        Err((code, why)) => {
            crate::say!("{}: {why}", call.name());
            call.lock()?.misuses.log.add(call.name(), &why, code);
            Err(code)
        }
        image => image.map_err(|(code, _)| code),
    }
}

fn load(call: &CallFrame, out: Ptr<Handle>, source: Option<Source<'_>>) -> Answer {
    let state = ready(call)?;
    out.required()?;
    let source = source.ok_or(INVALID_VALUE)?;
    let context = state.current(call)?;
    let id = state.contexts[context].id;
    drop(state);
    let image = image(call, source)?;
    let mut state = after_work_of_current(call, ready(call)?)?;
    let module = state.modules.load(call.number, Some((context, id)), is_eager(), image)?;
    out.put(handle(module))
}

fn at(image: In<c_void>) -> Option<Source<'static>> {
    (!image.is_null()).then(|| Source::Memory(image.addr()))
}

pub(crate) fn module_load_data(call: &CallFrame, out: Ptr<Handle>, image: In<c_void>) -> Answer {
    load(call, out, at(image))
}

pub(crate) fn module_load_data_ex(
    call: &CallFrame,
    out: Ptr<Handle>,
    image: In<c_void>,
    _count: c_uint,
    _options: In<c_uint>,
    _values: In<*mut c_void>,
) -> Answer {
    load(call, out, at(image))
}

/// The path of a file that is there.
fn file(call: &CallFrame, path: In<c_char>) -> Result<PathBuf, CUresult> {
    drop(ready(call)?);
    path.required()?;
    let path = PathBuf::from(String::from_utf8_lossy(path.text()).into_owned());
    if path.is_file() { Ok(path) } else { Err(CUresult::CUDA_ERROR_FILE_NOT_FOUND) }
}

pub(crate) fn module_load(call: &CallFrame, out: Ptr<Handle>, path: In<c_char>) -> Answer {
    load(call, out, Some(Source::File(&file(call, path)?)))
}

pub(crate) fn module_unload(call: &CallFrame, container: Memory) -> Answer {
    let mut state = ready(call)?;
    let module = module(&state, container, false)?;
    // Measured: it stays in a context that has failed.
    usable(&state, module)?;
    // Measured on an H200: a capture in global mode refuses it, as it does other unsafe calls.
    state.captures.refuse_unsafe()?;
    state = after_work_of_current(call, state)?;
    if state.modules.modules.get(module).is_some() {
        state.modules.unload(module);
    }
    Ok(())
}

/// The options of a library: for its compiler, and for itself.
type Options = In<c_uint>;
type Values = In<*mut c_void>;

fn load_library(call: &CallFrame, out: Ptr<Handle>, source: Option<Source<'_>>) -> Answer {
    drop(ready(call)?);
    out.required()?;
    let image = image(call, source.ok_or(INVALID_VALUE)?)?;
    let mut state = ready(call)?;
    let eager = is_eager();
    if eager {
        state = after_work_of_current(call, state)?;
    }
    let library = state.modules.load(call.number, None, eager, image)?;
    out.put(handle(library))
}

#[expect(clippy::too_many_arguments, reason = "the driver's")]
pub(crate) fn library_load_data(
    call: &CallFrame,
    out: Ptr<Handle>,
    code: In<c_void>,
    _: Options,
    _: Values,
    _: c_uint,
    _: Options,
    _: Values,
    _: c_uint,
) -> Answer {
    load_library(call, out, at(code))
}

#[expect(clippy::too_many_arguments, reason = "the driver's")]
pub(crate) fn library_load_from_file(
    call: &CallFrame,
    out: Ptr<Handle>,
    path: In<c_char>,
    _: Options,
    _: Values,
    _: c_uint,
    _: Options,
    _: Values,
    _: c_uint,
) -> Answer {
    load_library(call, out, Some(Source::File(&file(call, path)?)))
}

pub(crate) fn library_unload(call: &CallFrame, library: Memory) -> Answer {
    let mut state = ready(call)?;
    let library = module(&state, library, true)?;
    state.captures.refuse_unsafe()?;
    // Measured: one of which no function came to the device waits for nothing.
    if state.modules.is_used(library) && state.current(call).is_ok() {
        state = after_work_of_current(call, state)?;
    }
    state.modules.unload(library);
    Ok(())
}

/// A name that is not there is not found, and the message lists what is registered.
pub(super) fn not_registered(call: &CallFrame, state: &Locked, name: &CStr) -> CUresult {
    let registered = state.modules.names();
    let what = format!("no kernel {name:?} is registered with this driver, but {registered}");
    crate::say!("{}: {what}", call.name());
    state.misuses.log.add(call.name(), &what, NOT_FOUND);
    NOT_FOUND
}

pub(crate) fn get_function<const LIBRARY: bool>(
    call: &CallFrame,
    out: Ptr<Handle>,
    given: Memory,
    name: In<c_char>,
) -> Answer {
    let mut state = ready(call)?;
    out.required()?;
    name.required()?;
    let module = container(&state, given, LIBRARY)?;
    // SAFETY: a C string, by the contract of the C call.
    let name = unsafe { CStr::from_ptr(name.raw().cast()) };
    let found = state.modules.function(call.number, module, name)?;
    match found {
        Some(function) => out.put(handle(function)),
        None => Err(not_registered(call, &state, name)),
    }
}

pub(crate) fn function_count<const LIBRARY: bool>(
    call: &CallFrame,
    out: Ptr<c_uint>,
    given: Memory,
) -> Answer {
    let state = ready(call)?;
    out.required()?;
    let module = container(&state, given, LIBRARY)?;
    out.put(state.modules.names_in(module).len() as c_uint)
}

/// Documented: the first so many.
pub(crate) fn enumerate_functions<const LIBRARY: bool>(
    call: &CallFrame,
    out: Array<Handle>,
    most: c_uint,
    given: Memory,
) -> Answer {
    let mut state = ready(call)?;
    if most > 0 && out.is_null() {
        return Err(INVALID_VALUE);
    }
    let module = container(&state, given, LIBRARY)?;
    let names = state.modules.names_in(module);
    for (index, name) in names.into_iter().take(most as usize).enumerate() {
        if let Some(function) = state.modules.function(call.number, module, &name)? {
            out.put_at(index, handle(function));
        }
    }
    Ok(())
}

/// A library is its own module in each context.
pub(crate) fn library_get_module(call: &CallFrame, out: Ptr<Handle>, library: Memory) -> Answer {
    let state = ready(call)?;
    let index = module(&state, library, true)?;
    state.current(call)?;
    drop(load_module(call, state, index)?);
    out.put(library.raw())
}

/// A kernel is its own function in each context.
pub(crate) fn kernel_get_function(call: &CallFrame, out: Ptr<Handle>, kernel: Memory) -> Answer {
    let state = ready(call)?;
    let index = function(&state, kernel)?;
    state.current(call)?;
    drop(load_function(call, state, index)?);
    out.put(kernel.raw())
}

pub(crate) fn function_get_module(call: &CallFrame, out: Ptr<Handle>, func: Memory) -> Answer {
    let state = ready(call)?;
    let module = state.modules.functions[function(&state, func)?].module;
    out.put(handle(state.modules.modules.handle(module)))
}

/// The name of a kernel or a function.
pub(crate) fn function_name(call: &CallFrame, name: Ptr<*const c_char>, func: Memory) -> Answer {
    if name.is_null() || func.is_null() {
        return call.refuse(INVALID_VALUE);
    }
    let state = ready(call)?;
    let function = function(&state, func)?;
    // It stays where it is until the module is unloaded, as documented.
    name.put(state.modules.functions[function].name.as_ptr().cast())
}

pub(crate) fn function_is_loaded(call: &CallFrame, loaded: Ptr<c_uint>, func: Memory) -> Answer {
    let state = ready(call)?;
    let function = function(&state, func)?;
    loaded.put(state.modules.functions[function].loaded.into())
}

pub(crate) fn function_load(call: &CallFrame, func: Memory) -> Answer {
    let state = ready(call)?;
    let function = function(&state, func)?;
    load_function(call, state, function).map(drop)
}

/// The kernel that a function is.
fn with_kernel<R>(
    call: &CallFrame,
    func: Memory,
    look: impl FnOnce(&Kernel) -> Result<R, CUresult>,
) -> Result<R, CUresult> {
    let state = ready(call)?;
    let kernel = state.modules.kernel_of(function(&state, func)?);
    look(kernel.ok_or(NOT_FOUND)?)
}

pub(crate) fn parameter_count(call: &CallFrame, func: Memory, count: Ptr<usize>) -> Answer {
    count.put(with_kernel(call, func, |kernel| Ok(kernel.parameters.len()))?)
}

pub(crate) fn parameter_info(
    call: &CallFrame,
    func: Memory,
    index: usize,
    offset: Ptr<usize>,
    size: Ptr<usize>,
) -> Answer {
    let range = with_kernel(call, func, |kernel| {
        kernel.parameters.get(index).cloned().ok_or(INVALID_VALUE)
    })?;
    offset.put(range.start)?;
    size.put_if(range.len());
    Ok(())
}

// Attributes, which a program can set without an effect, except for the limit of shared memory.

pub(super) const MAX_DYNAMIC_SHARED: u32 =
    CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES.0;
const CARVEOUT: u32 = CUfunction_attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT.0;
const ATTRIBUTES: u32 = 16;
const MAX_SHARED: i32 = 232_448;

/// Whether a program can set the attribute to a value: these, the size of clusters, whether that
/// may be one that not all devices have, and how clusters are scheduled.
fn can_set(attribute: u32, value: c_int) -> bool {
    match attribute {
        MAX_DYNAMIC_SHARED => (0..=MAX_SHARED).contains(&value),
        // Documented: the share of shared memory in per cent, or -1 for the driver's choice.
        CARVEOUT => (-1..=100).contains(&value),
        11..=13 => value >= 0,
        14 => (0..=1).contains(&value),
        15 => (0..=2).contains(&value),
        _ => false,
    }
}

/// An attribute that was not set: threads of a block, registers, versions, shared memory.
pub(super) fn default_attribute(attribute: u32) -> i32 {
    match attribute {
        0 => 1024,
        4 => 32,
        5 | 6 => 90,
        MAX_DYNAMIC_SHARED => 49_152,
        CARVEOUT => -1,
        _ => 0,
    }
}

pub(crate) fn function_get_attribute(
    call: &CallFrame,
    value: Ptr<c_int>,
    attribute: c_uint,
    func: Memory,
) -> Answer {
    let state = ready(call)?;
    let function = function(&state, func)?;
    if attribute >= ATTRIBUTES {
        return Err(INVALID_VALUE);
    }
    let set = state.modules.functions[function].attributes.get(&attribute);
    value.put(set.copied().unwrap_or_else(|| default_attribute(attribute)))
}

pub(crate) fn function_set_attribute(
    call: &CallFrame,
    func: Memory,
    attribute: c_uint,
    value: c_int,
) -> Answer {
    let mut state = ready(call)?;
    let function = function(&state, func)?;
    if !can_set(attribute, value) {
        return Err(INVALID_VALUE);
    }
    state.modules.functions[function].attributes.insert(attribute, value);
    Ok(())
}

fn check_device(call: &CallFrame, device: CUdevice) -> Answer {
    let state = ready(call)?;
    check(&state, device).map(drop)
}

pub(crate) fn kernel_get_attribute(
    call: &CallFrame,
    value: Ptr<c_int>,
    attribute: c_uint,
    func: Memory,
    device: CUdevice,
) -> Answer {
    check_device(call, device)?;
    function_get_attribute(call, value, attribute, func)
}

pub(crate) fn kernel_set_attribute(
    call: &CallFrame,
    attribute: c_uint,
    value: c_int,
    func: Memory,
    device: CUdevice,
) -> Answer {
    check_device(call, device)?;
    let state = ready(call)?;
    let index = function(&state, func)?;
    drop(load_function(call, state, index)?);
    function_set_attribute(call, func, attribute, value)
}

/// How shared memory is used, which changes nothing here.
pub(crate) fn function_set_config(call: &CallFrame, func: Memory, _: c_uint) -> Answer {
    function_load(call, func)
}

pub(crate) fn kernel_set_cache_config(
    call: &CallFrame,
    func: Memory,
    _: c_uint,
    device: CUdevice,
) -> Answer {
    check_device(call, device)?;
    function_load(call, func)
}
