//! Calls that wait for all work of their device, and calls like them that do not. NVIDIA documents
//! few of them. A stream is held meanwhile, with which the calls have nothing to do.

use std::cell::Cell;
use std::ffi::{CStr, c_void};
use std::ptr::null_mut;

use cuda_events::sys::more::*;

use crate::raw::{NON_BLOCKING, Rig, must};
use crate::rules;
use crate::synchronous::compare_in;

/// Two kernels that do nothing, as PTX. The software driver takes any image, and runs what a test
/// has registered.
const IMAGE: &CStr = c".version 7.0 .target sm_75 .address_size 64 \
    .visible .entry one() { ret; } .visible .entry two() { ret; }";

/// Registers the kernels where the driver is the software driver.
fn kernels() -> Result<(), String> {
    match cuda_test_harness::TestDriver::chosen() {
        cuda_test_harness::TestDriver::Shared => {
            Err("kernels of the software driver are registered within the process".to_owned())
        }
        _ => Ok(()),
    }
}

fn register(rig: &Rig) {
    if let Some(soft) = rig.soft() {
        for name in ["one", "two"] {
            soft.kernel(name, |_| {});
        }
    }
}

fn module(rig: &Rig) -> CUmodule {
    let mut module = null_mut();
    must!(rig.cuModuleLoadData(&mut module, IMAGE.as_ptr().cast()));
    module
}

fn function(rig: &Rig, name: &CStr) -> CUfunction {
    let mut function = null_mut();
    must!(rig.cuModuleGetFunction(&mut function, module(rig), name.as_ptr()));
    function
}

fn load_library(rig: &Rig, library: *mut CUlibrary) -> CUresult {
    let (none, no_value) = (null_mut(), null_mut());
    let code = IMAGE.as_ptr().cast();
    rig.cuLibraryLoadData(library, code, none, no_value, 0, null_mut(), no_value, 0)
}

fn library(rig: &Rig) -> CUlibrary {
    let mut library = null_mut();
    must("cuLibraryLoadData", load_library(rig, &mut library));
    library
}

fn kernel(rig: &Rig) -> CUkernel {
    kernel_of(rig, library(rig), c"one")
}

fn kernel_of(rig: &Rig, library: CUlibrary, name: &CStr) -> CUkernel {
    let mut kernel = null_mut();
    let code = rig.cuLibraryGetKernel(&mut kernel, library, name.as_ptr());
    must("cuLibraryGetKernel", code);
    kernel
}

fn launch(rig: &Rig, function: CUfunction, stream: CUstream) -> CUresult {
    rig.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, null_mut(), null_mut())
}

/// An address of the driver's own memory.
fn allocated(rig: &Rig) -> CUdeviceptr {
    let mut address = 0;
    must!(rig.cuMemAlloc_v2(&mut address, 64));
    address
}

fn pinned(rig: &Rig) -> *mut c_void {
    let mut memory = null_mut();
    must!(rig.cuMemHostAlloc(&mut memory, 64, 0));
    memory
}

rules! {
    /// A module that is loaded or unloaded waits. Its functions do not wait, at their first launch
    /// either. A library waits when something of it is first needed on the device, and its end does
    /// if a function of it was.
    [needs(kernels), since(12, 0), environment("CUDA_MODULE_LOADING", "")]
    fn code(rig, saw) =
        "these return: cuModuleGetFunction, the first launch of a module's function, \
         cuLibraryLoadData, cuLibraryGetKernel, cuLibraryUnload; of the others: none; these \
         return: the second one, of another kernel, cuLibraryUnload after cuLibraryGetModule; of \
         the others: none"
    {
        register(rig);
        let (stream, other) = (rig.stream(NON_BLOCKING), rig.stream(NON_BLOCKING));
        let (loaded, of_module, of_library) = (module(rig), function(rig, c"one"), library(rig));
        let (used, another, mut place) = (library(rig), library(rig), null_mut::<c_void>());
        let [first, second] = [c"one", c"two"].map(|name| kernel_of(rig, used, name));
        let place = Cell::from_mut(&mut place);
        compare_in(rig, saw, stream, &[
            ("cuModuleGetFunction", &|| {
                rig.cuModuleGetFunction(place.as_ptr().cast(), loaded, c"two".as_ptr())
            }),
            ("the first launch of a module's function", &|| launch(rig, of_module, other)),
            ("cuLibraryLoadData", &|| load_library(rig, place.as_ptr().cast())),
            ("cuLibraryGetKernel", &|| {
                rig.cuLibraryGetKernel(place.as_ptr().cast(), of_library, c"one".as_ptr())
            }),
            ("cuLibraryUnload", &|| rig.cuLibraryUnload(of_library)),
        ], &[
            ("cuModuleLoadData", &|| {
                rig.cuModuleLoadData(place.as_ptr().cast(), IMAGE.as_ptr().cast())
            }),
            ("cuModuleUnload", &|| rig.cuModuleUnload(loaded)),
            ("the first cuKernelGetFunction", &|| rig.cuKernelGetFunction(place.as_ptr().cast(), first)),
            ("cuLibraryGetModule", &|| rig.cuLibraryGetModule(place.as_ptr().cast(), another)),
        ]);
        compare_in(rig, saw, stream, &[
            ("the second one", &|| rig.cuKernelGetFunction(place.as_ptr().cast(), first)),
            ("of another kernel", &|| rig.cuKernelGetFunction(place.as_ptr().cast(), second)),
            ("cuLibraryUnload after cuLibraryGetModule", &|| rig.cuLibraryUnload(another)),
        ], &[("cuLibraryUnload after cuKernelGetFunction", &|| rig.cuLibraryUnload(used))]);
    }

    /// Where modules are loaded eagerly, so are libraries.
    [needs(kernels), since(12, 0), environment("CUDA_MODULE_LOADING", "EAGER")]
    fn eager_code(rig, saw) =
        "these return: the first cuKernelGetFunction; of the others: none"
    {
        register(rig);
        let stream = rig.stream(NON_BLOCKING);
        let (first, mut place) = (kernel(rig), null_mut::<c_void>());
        let place = Cell::from_mut(&mut place);
        compare_in(rig, saw, stream, &[
            ("the first cuKernelGetFunction", &|| rig.cuKernelGetFunction(place.as_ptr().cast(), first)),
        ], &[
            ("cuModuleLoadData", &|| {
                rig.cuModuleLoadData(place.as_ptr().cast(), IMAGE.as_ptr().cast())
            }),
        ]);
    }

    /// What gives memory back waits, and what allocates it does not; asynchronous memory, pools and
    /// maps do neither.
    [since(11, 2)]
    fn memory(rig, saw) =
        "these return: cuMemAlloc, cuMemAllocManaged, cuMemHostAlloc, cuMemFree of NULL, \
         cuMemAllocAsync, cuMemFreeAsync, cuMemFree of asynchronous memory; of the others: \
         none"
    {
        let (stream, other) = (rig.stream(NON_BLOCKING), rig.stream(NON_BLOCKING));
        let mut asynchronous = [0; 2];
        for address in &mut asynchronous {
            must!(rig.cuMemAllocAsync(address, 64, other));
        }
        rig.synchronize(other);
        let (freed, host) = (allocated(rig), pinned(rig));
        compare_in(rig, saw, stream, &[
            ("cuMemAlloc", &|| rig.cuMemAlloc_v2(&mut 0, 64)),
            ("cuMemAllocManaged", &|| rig.cuMemAllocManaged(&mut 0, 64, 1)),
            ("cuMemHostAlloc", &|| rig.cuMemHostAlloc(&mut null_mut(), 64, 0)),
            ("cuMemFree of NULL", &|| rig.cuMemFree_v2(0)),
            ("cuMemAllocAsync", &|| rig.cuMemAllocAsync(&mut 0, 64, other)),
            ("cuMemFreeAsync", &|| rig.cuMemFreeAsync(asynchronous[0], other)),
            ("cuMemFree of asynchronous memory", &|| rig.cuMemFree_v2(asynchronous[1])),
        ], &[
            ("cuMemFree", &|| rig.cuMemFree_v2(freed)),
            ("cuMemFreeHost", &|| rig.cuMemFreeHost(host)),
        ]);
    }

    /// What makes or ends graphs, streams and events does not wait. The end of a context waits, and
    /// so does a change of the size of stacks.
    [since(11, 4)]
    fn objects(rig, saw) =
        "these return: cuGraphInstantiate, cuGraphLaunch, cuGraphExecDestroy, cuStreamCreate, \
         cuStreamDestroy, cuCtxSetLimit of another limit; of the others: none"
    {
        let (stream, other) = (rig.stream(NON_BLOCKING), rig.stream(NON_BLOCKING));
        let mut graph = null_mut();
        must!(rig.cuGraphCreate(&mut graph, 0));
        let exec = crate::graphs::instantiate(rig, graph);
        let context = rig.new_context();
        compare_in(rig, saw, stream, &[
            ("cuGraphInstantiate", &|| {
                rig.cuGraphInstantiateWithFlags(&mut null_mut(), graph, 0)
            }),
            ("cuGraphLaunch", &|| rig.cuGraphLaunch(exec, other)),
            ("cuGraphExecDestroy", &|| rig.cuGraphExecDestroy(exec)),
            ("cuStreamCreate", &|| rig.cuStreamCreate(&mut null_mut(), NON_BLOCKING)),
            ("cuStreamDestroy", &|| rig.cuStreamDestroy_v2(other)),
            ("cuCtxSetLimit of another limit", &|| rig.cuCtxSetLimit(CUlimit(2), 16 << 20)),
        ], &[
            ("cuCtxSetLimit", &|| rig.cuCtxSetLimit(CUlimit(0), 8192)),
            ("cuCtxDestroy", &|| rig.destroy_context(context)),
        ]);
    }

    /// A new green context waits.
    [since(12, 4)]
    fn green_contexts(rig, saw) = "these return: ; of the others: none" {
        let stream = rig.stream(NON_BLOCKING);
        compare_in(rig, saw, stream, &[], &[("cuGreenCtxCreate", &|| {
            crate::green::one(rig);
            CUresult::CUDA_SUCCESS
        })]);
    }
}
