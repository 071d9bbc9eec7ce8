//! Kernels that are registered in C, in the shared library.

#![cfg(target_os = "linux")]

use std::ffi::{CStr, c_char, c_void};
use std::ptr::{null, null_mut};

use cuda_events::sys::*;
use cuda_events::{Context, Device, Stream, StreamOptions};
use cuda_events_test_support::shared_library;

use crate::shared::{load, run};

/// A launch, as a C program would declare it.
#[repr(C)]
struct Launch {
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    parameter_count: u32,
    parameters: *const *const c_void,
}

type Kernel = unsafe extern "C" fn(*const Launch, *mut c_void) -> CUresult;
type Register = unsafe extern "C" fn(
    *const c_char,
    *const usize,
    usize,
    Option<Kernel>,
    Option<Kernel>,
    *mut c_void,
) -> u32;
type Load = unsafe extern "C" fn(*const Launch, u64, *mut c_void, usize) -> CUresult;
type Store = unsafe extern "C" fn(*const Launch, u64, *const c_void, usize) -> CUresult;
type Declare = unsafe extern "C" fn(*const Launch, u64, usize) -> CUresult;

/// The functions of the library, which a kernel calls. It is the pointer that each gets.
#[derive(Clone, Copy)]
struct Functions {
    load: Load,
    store: Store,
    reads: Declare,
    writes: Declare,
}

const WORDS: usize = 16;

/// The parameters: where the words are, and what is added to each.
unsafe fn parameters(launch: *const Launch) -> (u64, u32) {
    unsafe {
        assert_eq!((*launch).parameter_count, 2);
        let parameters = (*launch).parameters;
        ((*parameters).cast::<u64>().read(), (*parameters.add(1)).cast::<u32>().read())
    }
}

unsafe extern "C" fn add(launch: *const Launch, user: *mut c_void) -> CUresult {
    unsafe {
        let functions = *user.cast::<Functions>();
        let (address, more) = parameters(launch);
        let of_threads = (*launch).block[0] + (*launch).grid[1] + (*launch).shared_bytes;
        let mut words = [0_u32; WORDS];
        let code = (functions.load)(launch, address, words.as_mut_ptr().cast(), 4 * WORDS);
        if code.0 != 0 {
            return code;
        }
        words.iter_mut().for_each(|word| *word += more + of_threads);
        // Nothing is declared any more once it runs.
        assert_eq!((functions.reads)(launch, address, 4).0, 800);
        (functions.store)(launch, address, words.as_ptr().cast(), 4 * WORDS)
    }
}

unsafe extern "C" fn declare(launch: *const Launch, user: *mut c_void) -> CUresult {
    unsafe {
        let functions = *user.cast::<Functions>();
        let (address, _) = parameters(launch);
        assert_eq!((functions.reads)(launch, address, 4 * WORDS).0, 0);
        (functions.writes)(launch, address, 4 * WORDS)
    }
}

/// Does not look at what the driver returns.
unsafe extern "C" fn careless(launch: *const Launch, user: *mut c_void) -> CUresult {
    unsafe {
        let functions = *user.cast::<Functions>();
        let (address, value) = parameters(launch);
        (functions.store)(launch, address, std::ptr::from_ref(&value).cast(), 4);
        (functions.store)(launch, address + 1, std::ptr::from_ref(&value).cast(), 4);
    }
    CUresult(0)
}

#[test]
fn kernels_in_c() {
    let errors = run("inner_kernels", "order=report,devices=2");
    let findings: Vec<&str> =
        errors.lines().filter(|line| line.contains("missing order: ")).collect();
    assert_eq!(findings.len(), 1, "{errors}");
    assert!(errors.contains("  writes   cuLaunchKernel in stream"), "{errors}");
    assert!(errors.contains("no kernel \"sub\" is registered"), "{errors}");
    assert!(errors.contains("cuLaunchKernel: no kernel \"add\" is registered"), "{errors}");
    assert!(errors.contains("\"many\" cannot have these parameters"), "{errors}");
    assert!(errors.contains("with CUDA_ERROR_ILLEGAL_ADDRESS: it may not read 64 bytes at 0x10"));
}

#[test]
#[ignore = "another process, which the tests start: cargo test -p cuda-soft-driver --test \
    processes"]
fn inner_kernels() {
    let path = std::ffi::CString::new(shared_library().to_str().unwrap()).unwrap();
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
    let find = |name: &CStr| {
        let found = unsafe { libc::dlsym(library, name.as_ptr()) };
        assert!(!found.is_null(), "{name:?}");
        found
    };
    macro_rules! find {
        ($name:literal, $type:ty) => {
            unsafe { std::mem::transmute::<*mut c_void, $type>(find($name)) }
        };
    }
    let register = find!(c"cuda_soft_driver_kernel", Register);
    let mut functions = Functions {
        load: find!(c"cuda_soft_driver_kernel_load", Load),
        store: find!(c"cuda_soft_driver_kernel_store", Store),
        reads: find!(c"cuda_soft_driver_kernel_reads", Declare),
        writes: find!(c"cuda_soft_driver_kernel_writes", Declare),
    };
    type Lookup = unsafe extern "C" fn(*mut *mut c_void, *mut c_void, *const c_char) -> u32;
    type Image = unsafe extern "C" fn(*mut *mut c_void, *const c_void) -> u32;
    type Launcher = unsafe extern "C" fn(
        *mut c_void,
        u32,
        u32,
        u32,
        u32,
        u32,
        u32,
        u32,
        CUstream,
        *mut *mut c_void,
        *mut *mut c_void,
    ) -> u32;
    let load_image = find!(c"cuModuleLoadData", Image);
    let lookup = find!(c"cuModuleGetFunction", Lookup);
    let launcher = find!(c"cuLaunchKernel", Launcher);

    let user = std::ptr::from_mut(&mut functions).cast();
    let sizes = [8, 4];
    unsafe {
        let code = register(c"add".as_ptr(), sizes.as_ptr(), 2, Some(add), Some(declare), user);
        assert_eq!(code, 0);
        assert_eq!(register(null(), null(), 0, Some(add), None, user), 1);
        assert_eq!(register(c"add".as_ptr(), null(), 2, Some(add), None, user), 1);
        let too_large = [usize::MAX, 8];
        let code = register(c"large".as_ptr(), too_large.as_ptr(), 2, Some(add), None, user);
        assert_eq!(code, 1);
        // Nobody has so many, so nothing may be read.
        let code =
            register(c"many".as_ptr(), sizes.as_ptr(), usize::MAX / 8, Some(add), None, user);
        assert_eq!(code, 1);
        assert_eq!(register(c"sub".as_ptr(), null(), 0, None, None, user), 500);
    }
    let failed = unsafe {
        assert_eq!(
            register(c"careless".as_ptr(), sizes.as_ptr(), 2, Some(careless), None, user),
            0
        );
        let context = Context::primary(Device::new(load().unwrap(), 1).unwrap()).unwrap();
        let _current = context.make_current().unwrap();
        let stream = Stream::new(&context, StreamOptions::new()).unwrap();
        let (mut module, mut function) = (null_mut(), null_mut());
        assert_eq!(load_image(&mut module, c"x".as_ptr().cast()), 0);
        assert_eq!(lookup(&mut function, module, c"careless".as_ptr()), 0);
        let (mut address, mut value) = (0x10_u64, 1_u32);
        let mut given =
            [std::ptr::from_mut(&mut address).cast(), std::ptr::from_mut(&mut value).cast()];
        let (given, to) = (given.as_mut_ptr(), stream.as_raw());
        assert_eq!(launcher(function, 1, 1, 1, 1, 1, 1, 0, to, given, null_mut()), 0);
        stream.synchronize()
    };
    // The context fails with the first access that was refused, though the kernel returned success.
    assert_eq!(failed.unwrap_err().code().unwrap().0, 700);
    let context = Context::primary(Device::new(load().unwrap(), 0).unwrap()).unwrap();
    let _current = context.make_current().unwrap();
    let stream = || Stream::new(&context, StreamOptions::new()).unwrap();
    let (one, two) = (stream(), stream());
    let symbols = *load().unwrap().symbols();
    let (mut module, mut function, mut address) = (null_mut(), null_mut(), 0_u64);
    unsafe {
        assert_eq!((symbols.cuMemAlloc_v2)(&mut address, 4 * WORDS).0, 0);
        assert_eq!(load_image(&mut module, c"x".as_ptr().cast()), 0);
        assert_eq!(lookup(&mut function, module, c"sub".as_ptr()), 500);
        assert_eq!(lookup(&mut function, module, c"add".as_ptr()), 0);
        assert_eq!((symbols.cuMemsetD32Async)(address, 1, WORDS, one.as_raw()).0, 0);
    }
    let launch = |stream: &Stream, mut address: u64| {
        let mut more = 10_u32;
        let mut given =
            [std::ptr::from_mut(&mut address).cast(), std::ptr::from_mut(&mut more).cast()];
        let parameters = given.as_mut_ptr();
        let stream = stream.as_raw();
        unsafe { launcher(function, 1, 200, 1, 32, 1, 1, 1000, stream, parameters, null_mut()) }
    };
    assert_eq!(launch(&one, address), 0);
    let mut words = [0_u32; WORDS];
    let to = words.as_mut_ptr().cast();
    unsafe {
        assert_eq!((symbols.cuMemcpyDtoHAsync_v2)(to, address, 4 * WORDS, one.as_raw()).0, 0);
    }
    one.synchronize().unwrap();
    assert_eq!(words, [1 + 10 + 32 + 200 + 1000; WORDS]);
    // A kernel and a memset of the same word in two streams, without an order.
    assert_eq!(launch(&one, address), 0);
    unsafe {
        assert_eq!((symbols.cuMemsetD32Async)(address, 1, 1, two.as_raw()).0, 0);
    }
    one.synchronize().unwrap();
    two.synchronize().unwrap();
    // A launch of one that was removed.
    unsafe {
        assert_eq!(register(c"add".as_ptr(), null(), 0, None, None, null_mut()), 0);
        assert_eq!(launch(&one, address), 500);
        let code = register(c"add".as_ptr(), sizes.as_ptr(), 2, Some(add), Some(declare), user);
        assert_eq!(code, 0);
    }
    // A kernel that returns an error fails its context.
    assert_eq!(launch(&one, 0x10), 0);
    assert_eq!(one.synchronize().unwrap_err().code().unwrap().0, 700);
    unsafe { assert_eq!(register(c"add".as_ptr(), null(), 0, None, None, null_mut()), 0) };
}
