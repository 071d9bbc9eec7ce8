//! The driver's functions that are exchanged: the program gets ours by its linker, by `dlsym` and by
//! `cuGetProcAddress`.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use crate::driver::{Code, Handle, real, symbol};
use crate::experiment::{self, Launched};
use crate::{images, memory};

type Pointers = *mut *mut c_void;

/// Captures that are under way: nothing may wait then.
pub static CAPTURES: AtomicUsize = AtomicUsize::new(0);

/// One fewer, unless none is known: the program may end one whose begin was not seen.
fn capture_ended() {
    let order = Ordering::Relaxed;
    let mut captures = CAPTURES.load(order);
    while let Some(fewer) = captures.checked_sub(1) {
        match CAPTURES.compare_exchange_weak(captures, fewer, order, order) {
            Ok(_) => return,
            Err(now) => captures = now,
        }
    }
}

const NOT_FOUND: Code = 500;

/// A hook by the name that programs ask for, and one by that of its twin for the default stream of
/// each thread.
macro_rules! hooks {
    ($($name:ident $twin:ident $exported:literal $exported_twin:literal
        ($($argument:ident: $type:ty),*) |$next:ident| $body:expr;)*) => {
        $(
            #[unsafe(export_name = $exported)]
            unsafe extern "C" fn $name($($argument: $type),*) -> Code {
                static REAL: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
                let found = real_of(&REAL, $exported);
                if found.is_null() {
                    return NOT_FOUND;
                }
                // SAFETY: the driver's function of that name has this type.
                let $next = unsafe {
                    std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($type),*) -> Code>(found)
                };
                $body
            }
            #[unsafe(export_name = $exported_twin)]
            unsafe extern "C" fn $twin($($argument: $type),*) -> Code {
                static REAL: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
                let found = real_of(&REAL, $exported_twin);
                if found.is_null() {
                    return NOT_FOUND;
                }
                // SAFETY: the same.
                let $next = unsafe {
                    std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($type),*) -> Code>(found)
                };
                $body
            }
        )*

        fn hook(name: &[u8]) -> Option<*mut c_void> {
            $(
                if name == $exported.as_bytes() {
                    return Some($name as *mut c_void);
                }
                if name == $exported_twin.as_bytes() {
                    return Some($twin as *mut c_void);
                }
            )*
            None
        }
    };
}

fn real_of(known: &AtomicPtr<c_void>, name: &str) -> *mut c_void {
    let mut found = known.load(Ordering::Relaxed);
    if found.is_null()
        && let Ok(name) = std::ffi::CString::new(name)
    {
        found = real(&name);
        known.store(found, Ordering::Relaxed);
    }
    found
}

/// Calls the driver, and goes on if that did not fail.
macro_rules! after {
    ($call:expr, $then:expr) => {{
        // SAFETY: the caller's arguments.
        let code = unsafe { $call };
        if code == 0 {
            $then
        }
        code
    }};
}

/// What a pointer that the driver filled in has.
fn at(place: *mut Handle) -> Handle {
    // SAFETY: the driver wrote there.
    unsafe { *place }
}

fn at_address(place: *mut u64) -> u64 {
    // SAFETY: the driver wrote there.
    unsafe { *place }
}

#[repr(C)]
struct Configuration {
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared: c_uint,
    stream: Handle,
    attributes: *const Attribute,
    count: c_uint,
}

#[repr(C)]
struct Attribute {
    kind: c_uint,
    pad: c_uint,
    value: [u32; 16],
}

hooks! {
    launch launch_twin "cuLaunchKernel" "cuLaunchKernel_ptsz" (
        function: Handle, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint,
        shared: c_uint, stream: Handle, parameters: Pointers, extra: Pointers
    ) |next| experiment::launched(
        &Launched { function, grid: [gx, gy, gz], block: [bx, by, bz], parameters, extra, cluster: [0; 3] },
        // SAFETY: the program's own arguments.
        &|| unsafe { next(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra) },
    );
    cooperative cooperative_twin "cuLaunchCooperativeKernel" "cuLaunchCooperativeKernel_ptsz" (
        function: Handle, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint,
        shared: c_uint, stream: Handle, parameters: Pointers
    ) |next| experiment::launched(
        &Launched {
            function, grid: [gx, gy, gz], block: [bx, by, bz], parameters,
            extra: std::ptr::null_mut(), cluster: [0; 3],
        },
        // SAFETY: the program's own arguments.
        &|| unsafe { next(function, gx, gy, gz, bx, by, bz, shared, stream, parameters) },
    );
    launch_ex launch_ex_twin "cuLaunchKernelEx" "cuLaunchKernelEx_ptsz" (
        configuration: *const Configuration, function: Handle, parameters: Pointers, extra: Pointers
    ) |next| {
        // SAFETY: the program's configuration, which the driver reads, too.
        let launched = unsafe { launched(configuration, function, parameters, extra) };
        // SAFETY: the program's own arguments.
        experiment::launched(&launched, &|| unsafe { next(configuration, function, parameters, extra) })
    };
    module_load module_load_twin "cuModuleLoad" "cuModuleLoad_ptsz" (module: *mut Handle, path: *const c_char)
    |next| after!(next(module, path), {
        // SAFETY: the driver read it just now.
        images::loaded_file(unsafe { CStr::from_ptr(path) }, at(module))
    });
    load_data load_data_twin "cuModuleLoadData" "cuModuleLoadData_ptsz" (module: *mut Handle, image: *const c_void)
    |next| after!(next(module, image), {
        // SAFETY: the driver read the image just now.
        unsafe { images::loaded(image.cast(), at(module)) }
    });
    load_data_ex load_data_ex_twin "cuModuleLoadDataEx" "cuModuleLoadDataEx_ptsz" (
        module: *mut Handle, image: *const c_void, count: c_uint, options: *mut c_int, values: Pointers
    ) |next| after!(next(module, image, count, options, values), {
        // SAFETY: the driver read the image just now.
        unsafe { images::loaded(image.cast(), at(module)) }
    });
    load_fat load_fat_twin "cuModuleLoadFatBinary" "cuModuleLoadFatBinary_ptsz" (module: *mut Handle, image: *const c_void)
    |next| after!(next(module, image), {
        // SAFETY: the driver read the image just now.
        unsafe { images::loaded(image.cast(), at(module)) }
    });
    library_data library_data_twin "cuLibraryLoadData" "cuLibraryLoadData_ptsz" (
        library: *mut Handle, image: *const c_void, options: Pointers, values: Pointers, count: c_uint,
        library_options: Pointers, library_values: Pointers, library_count: c_uint
    ) |next| after!(
        next(library, image, options, values, count, library_options, library_values, library_count), {
            // SAFETY: the driver read the image just now.
            unsafe { images::loaded(image.cast(), at(library)) }
        }
    );
    library_file library_file_twin "cuLibraryLoadFromFile" "cuLibraryLoadFromFile_ptsz" (
        library: *mut Handle, path: *const c_char, options: Pointers, values: Pointers, count: c_uint,
        library_options: Pointers, library_values: Pointers, library_count: c_uint
    ) |next| after!(
        next(library, path, options, values, count, library_options, library_values, library_count), {
            // SAFETY: the driver read it just now.
            images::loaded_file(unsafe { CStr::from_ptr(path) }, at(library))
        }
    );
    library_module library_module_twin "cuLibraryGetModule" "cuLibraryGetModule_ptsz" (module: *mut Handle, library: Handle)
    |next| after!(next(module, library), images::same_module(library, at(module)));
    library_kernel library_kernel_twin "cuLibraryGetKernel" "cuLibraryGetKernel_ptsz" (
        kernel: *mut Handle, library: Handle, name: *const c_char
    ) |next| after!(next(kernel, library, name), {
        // SAFETY: the driver read the name just now.
        unsafe { images::function(library, name, at(kernel)) }
    });
    module_function module_function_twin "cuModuleGetFunction" "cuModuleGetFunction_ptsz" (
        function: *mut Handle, module: Handle, name: *const c_char
    ) |next| after!(next(function, module, name), {
        // SAFETY: the driver read the name just now.
        unsafe { images::function(module, name, at(function)) }
    });
    kernel_function kernel_function_twin "cuKernelGetFunction" "cuKernelGetFunction_ptsz" (function: *mut Handle, kernel: Handle)
    |next| after!(next(function, kernel), images::same_function(kernel, at(function)));
    allocate allocate_twin "cuMemAlloc_v2" "cuMemAlloc_v2_ptsz" (place: *mut u64, size: usize)
    |next| after!(next(place, size), memory::allocated(at_address(place), size as u64));
    managed managed_twin "cuMemAllocManaged" "cuMemAllocManaged_ptsz" (place: *mut u64, size: usize, flags: c_uint)
    |next| after!(next(place, size, flags), memory::allocated(at_address(place), size as u64));
    in_order in_order_twin "cuMemAllocAsync" "cuMemAllocAsync_ptsz" (place: *mut u64, size: usize, stream: Handle)
    |next| after!(next(place, size, stream), memory::allocated(at_address(place), size as u64));
    from_pool from_pool_twin "cuMemAllocFromPoolAsync" "cuMemAllocFromPoolAsync_ptsz" (
        place: *mut u64, size: usize, pool: Handle, stream: Handle
    ) |next| after!(next(place, size, pool, stream), memory::allocated(at_address(place), size as u64));
    free free_twin "cuMemFree_v2" "cuMemFree_v2_ptsz" (address: u64)
    |next| {
        memory::freed(address);
        // SAFETY: the program's own arguments.
        unsafe { next(address) }
    };
    free_in_order free_in_order_twin "cuMemFreeAsync" "cuMemFreeAsync_ptsz" (address: u64, stream: Handle)
    |next| {
        memory::freed(address);
        // SAFETY: the program's own arguments.
        unsafe { next(address, stream) }
    };
    begin begin_twin "cuStreamBeginCapture_v2" "cuStreamBeginCapture_v2_ptsz" (stream: Handle, mode: c_int)
    |next| after!(next(stream, mode), { CAPTURES.fetch_add(1, Ordering::Relaxed); });
    begin_into begin_into_twin "cuStreamBeginCaptureToGraph" "cuStreamBeginCaptureToGraph_ptsz" (
        stream: Handle, graph: Handle, nodes: Pointers, data: Pointers, count: usize, mode: c_int
    ) |next| after!(next(stream, graph, nodes, data, count, mode), { CAPTURES.fetch_add(1, Ordering::Relaxed); });
    end end_twin "cuStreamEndCapture" "cuStreamEndCapture_ptsz" (stream: Handle, graph: *mut Handle)
    |next| {
        capture_ended();
        // SAFETY: the program's own arguments.
        unsafe { next(stream, graph) }
    };
}

/// # Safety
///
/// A configuration as the driver takes it.
unsafe fn launched(
    configuration: *const Configuration,
    function: Handle,
    parameters: Pointers,
    extra: Pointers,
) -> Launched {
    const CLUSTER: c_uint = 4;
    // SAFETY: as the caller says.
    let Some(asked) = (unsafe { configuration.as_ref() }) else {
        return Launched {
            function,
            grid: [0; 3],
            block: [0; 3],
            parameters,
            extra,
            cluster: [0; 3],
        };
    };
    let mut cluster = [0; 3];
    if !asked.attributes.is_null() {
        // SAFETY: there are so many attributes.
        let all = unsafe { std::slice::from_raw_parts(asked.attributes, asked.count as usize) };
        for one in all.iter().filter(|one| one.kind == CLUSTER) {
            cluster = [one.value[0], one.value[1], one.value[2]];
        }
    }
    Launched { function, grid: asked.grid, block: asked.block, parameters, extra, cluster }
}

/// Ours instead of the driver's, if there is one.
fn exchanged(name: &CStr, found: *mut c_void) -> *mut c_void {
    if found.is_null() || !name.to_bytes().starts_with(b"cu") {
        return found;
    }
    match name.to_bytes() {
        b"cuGetProcAddress" => get_proc_address as *mut c_void,
        b"cuGetProcAddress_v2" => get_proc_address_v2 as *mut c_void,
        other => hook(other).unwrap_or(found),
    }
}

/// # Safety
///
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void {
    // SAFETY: a text that ends.
    let name = unsafe { CStr::from_ptr(name) };
    exchanged(name, symbol(library, name))
}

/// The versions of a name that programs get today: the newest.
fn asked(name: &CStr, version: c_int, flags: u64, found: *mut c_void) -> *mut c_void {
    const PER_THREAD: u64 = 2;
    let text = name.to_bytes();
    if text == b"cuGetProcAddress" {
        return match version {
            12000.. => get_proc_address_v2 as *mut c_void,
            _ => get_proc_address as *mut c_void,
        };
    }
    for version in [&b""[..], b"_v2"] {
        let mut versioned = [text, version].concat();
        if flags & PER_THREAD != 0 {
            versioned.extend(b"_ptsz");
            // Of many there is no twin.
            let Ok(twin) = std::ffi::CString::new(versioned.clone()) else { return found };
            if real(&twin).is_null() {
                versioned.truncate(versioned.len() - 5);
            }
        }
        if let Some(ours) = hook(&versioned) {
            return ours;
        }
    }
    found
}

#[unsafe(export_name = "cuGetProcAddress")]
unsafe extern "C" fn get_proc_address(
    name: *const c_char,
    place: Pointers,
    version: c_int,
    flags: u64,
) -> Code {
    type Real = unsafe extern "C" fn(*const c_char, Pointers, c_int, u64) -> Code;
    static REAL: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
    let found = real_of(&REAL, "cuGetProcAddress");
    if found.is_null() {
        return NOT_FOUND;
    }
    // SAFETY: that is its type, and the arguments are the caller's.
    let code =
        unsafe { std::mem::transmute::<*mut c_void, Real>(found)(name, place, version, flags) };
    if code == 0 {
        // SAFETY: the driver read the name and wrote the place.
        unsafe { *place = asked(CStr::from_ptr(name), version, flags, *place) };
    }
    code
}

#[unsafe(export_name = "cuGetProcAddress_v2")]
unsafe extern "C" fn get_proc_address_v2(
    name: *const c_char,
    place: Pointers,
    version: c_int,
    flags: u64,
    status: *mut c_int,
) -> Code {
    type Real = unsafe extern "C" fn(*const c_char, Pointers, c_int, u64, *mut c_int) -> Code;
    static REAL: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
    let found = real_of(&REAL, "cuGetProcAddress_v2");
    if found.is_null() {
        return NOT_FOUND;
    }
    // SAFETY: that is its type, and the arguments are the caller's.
    let code = unsafe {
        std::mem::transmute::<*mut c_void, Real>(found)(name, place, version, flags, status)
    };
    // SAFETY: the driver read the name and wrote the place.
    unsafe {
        if code == 0 && !place.is_null() && !(*place).is_null() {
            *place = asked(CStr::from_ptr(name), version, flags, *place);
        }
    }
    code
}
