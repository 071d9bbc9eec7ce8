//! Kernels as closures: loading, launching, capturing, and what the order checker finds of them.

use crate::common;

use std::ffi::{CStr, c_void};
use std::ptr::null_mut;

use common::*;
use cuda_events::sys::*;
use cuda_soft_driver::{Fault, OrderCheck, SoftDriver};

mod captured;
mod closures;
mod code;
mod memory;
mod scheduling;

const NON_BLOCKING: u32 = 1;
const WORDS: usize = 64;
const NOT_FOUND: u32 = 500;
const COOPERATIVE_LAUNCH_TOO_LARGE: u32 = 720;
const ILLEGAL_ADDRESS: u32 = 700;
const LAUNCH_OUT_OF_RESOURCES: u32 = 701;
const MISALIGNED_ADDRESS: u32 = 716;
const LAUNCH_FAILED: u32 = 719;

type Handle = *mut c_void;

fn load(raw: &Raw) -> Handle {
    let mut module = null_mut();
    let code = call!(raw, cuModuleLoadData(&mut module => *mut Handle,
        c"anything".as_ptr().cast() => *const c_void));
    assert_eq!(code, OK);
    module
}

fn find(raw: &Raw, module: Handle, name: &CStr) -> Result<Handle, u32> {
    let mut function = null_mut();
    let code = call!(raw, cuModuleGetFunction(&mut function => *mut Handle, module => Handle,
        name.as_ptr().cast() => *const c_void));
    if code == OK { Ok(function) } else { Err(code) }
}

/// The function of a registered kernel.
fn function(raw: &Raw, name: &CStr) -> Handle {
    find(raw, load(raw), name).unwrap()
}

fn launch_with(
    raw: &Raw,
    function: Handle,
    stream: CUstream,
    (grid, block, shared): ([u32; 3], [u32; 3], u32),
    parameters: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> u32 {
    call!(raw, cuLaunchKernel(function => Handle,
        grid[0] => u32, grid[1] => u32, grid[2] => u32,
        block[0] => u32, block[1] => u32, block[2] => u32,
        shared => u32, stream => CUstream, parameters => *mut *mut c_void,
        extra => *mut *mut c_void))
}

/// One block, with these parameters: addresses and numbers.
fn launch(raw: &Raw, function: Handle, stream: CUstream, address: u64, value: u32) -> u32 {
    let (mut address, mut value) = (address, value);
    let mut parameters =
        [std::ptr::from_mut(&mut address).cast(), std::ptr::from_mut(&mut value).cast()];
    let one = ([1; 3], [1; 3], 0);
    launch_with(raw, function, stream, one, parameters.as_mut_ptr(), null_mut())
}

fn memory(raw: &Raw) -> u64 {
    let mut address = 0;
    assert_eq!(unsafe { (raw.cuMemAlloc_v2)(&mut address, 4 * WORDS) }.0, OK);
    assert_eq!(unsafe { (raw.cuMemsetD32Async)(address, 1, WORDS, legacy()) }.0, OK);
    raw.sync(legacy());
    address
}

fn contents(raw: &Raw, address: u64) -> Vec<u32> {
    let mut words = vec![0_u32; WORDS];
    let to = words.as_mut_ptr().cast();
    let code = unsafe { (raw.cuMemcpyDtoHAsync_v2)(to, address, 4 * WORDS, legacy()) };
    assert_eq!(code.0, OK);
    raw.sync(legacy());
    words
}

/// Registers a kernel that adds a number to each word.
fn register_add(soft: &SoftDriver) {
    let add = soft.kernel("add", |launch| {
        let (address, value): (u64, u32) = (launch.parameter(0), launch.parameter(1));
        let mut words = launch.read::<u32>(address, WORDS);
        words.iter_mut().for_each(|word| *word += value);
        launch.write(address, &words);
    });
    add.parameters(&[8, 4]).accesses(|launch, accesses| {
        accesses.reads(launch.parameter(0), 4 * WORDS);
        accesses.writes(launch.parameter(0), 4 * WORDS);
    });
}

#[test]
fn a_kernel_runs_with_its_parameters() {
    let raw = Raw::new();
    register_add(&raw.soft);
    let (add, address) = (function(&raw, c"add"), memory(&raw));
    let stream = raw.stream(NON_BLOCKING);
    assert_eq!(launch(&raw, add, stream, address, 41), OK);
    raw.sync(stream);
    assert_eq!(contents(&raw, address), [42; WORDS]);

    // The other form: a buffer, in which each parameter is aligned to its size.
    let mut buffer = [0_u8; 12];
    buffer[..8].copy_from_slice(&address.to_ne_bytes());
    buffer[8..].copy_from_slice(&8_u32.to_ne_bytes());
    let extra = |size: &mut usize, buffer: &mut [u8]| {
        let name = |name: usize| std::ptr::without_provenance_mut(name);
        let (buffer, size) = (buffer.as_mut_ptr().cast(), std::ptr::from_mut(size).cast());
        let mut extra: [*mut c_void; 5] = [name(1), buffer, name(2), size, name(0)];
        let one = ([1; 3], [1; 3], 0);
        launch_with(&raw, add, stream, one, null_mut(), extra.as_mut_ptr())
    };
    assert_eq!(extra(&mut 12, &mut buffer), OK);
    raw.sync(stream);
    assert_eq!(contents(&raw, address), [50; WORDS]);
    // On an H200 a buffer that is too short is no error, and one that is too long is one.
    assert_eq!(extra(&mut 8, &mut buffer), OK);
    raw.sync(stream);
    assert_eq!(contents(&raw, address), [50; WORDS]);
    assert_eq!(extra(&mut 64, &mut [0; 64]), LAUNCH_OUT_OF_RESOURCES);
    // A structure of C may have padding at its end.
    let mut padded = [0; 17];
    padded[..12].copy_from_slice(&buffer);
    assert_eq!(extra(&mut 16, &mut padded), OK);
    assert_eq!(extra(&mut 17, &mut padded), LAUNCH_OUT_OF_RESOURCES);
    raw.sync(stream);
    assert_eq!(contents(&raw, address), [58; WORDS]);

    let (mut offset, mut size) = (0_usize, 0_usize);
    let mut info = |index: usize| {
        let code = call!(raw, cuFuncGetParamInfo(add => Handle, index => usize,
            &mut offset => *mut usize, &mut size => *mut usize));
        (code, offset, size)
    };
    assert_eq!([info(0), info(1)], [(OK, 0, 8), (OK, 8, 4)]);
    assert_eq!(info(2).0, INVALID_VALUE);
    assert_eq!(unsafe { (raw.cuMemFree_v2)(address) }.0, OK);
}

/// Parameters of several sizes, in an array and in a buffer, as a C compiler lays out a structure.
#[test]
fn parameters_are_aligned() {
    #[repr(C)]
    struct All {
        byte: u8,
        float: f64,
        short: u16,
        words: [u32; 3],
        last: u8,
    }
    let raw = Raw::new();
    let (send, receive) = std::sync::mpsc::channel();
    let kernel = raw.soft.kernel("all", move |launch| {
        let words = launch.parameter_bytes(3).to_vec();
        let (byte, float): (u8, f64) = (launch.parameter(0), launch.parameter(1));
        let (short, last): (u16, i8) = (launch.parameter(2), launch.parameter(4));
        send.send((byte, float, short, words, last)).unwrap();
    });
    kernel.parameters(&[1, 8, 2, 12, 1]);
    let all = function(&raw, c"all");
    let mut values = All { byte: 1, float: 2.5, short: 3, words: [4, 5, 6], last: 0xFF };
    let mut each: [*mut c_void; 5] = [
        std::ptr::from_mut(&mut values.byte).cast(),
        std::ptr::from_mut(&mut values.float).cast(),
        std::ptr::from_mut(&mut values.short).cast(),
        std::ptr::from_mut(&mut values.words).cast(),
        std::ptr::from_mut(&mut values.last).cast(),
    ];
    let one = ([1; 3], [1; 3], 0);
    let code = launch_with(&raw, all, legacy(), one, each.as_mut_ptr(), null_mut());
    assert_eq!(code, OK);
    let name = |name: usize| std::ptr::without_provenance_mut(name);
    let mut size = std::mem::size_of::<All>();
    let (buffer, bytes) =
        (std::ptr::from_mut(&mut values).cast(), std::ptr::from_mut(&mut size).cast());
    let mut extra = [name(2), bytes, name(1), buffer, name(0)];
    let code = launch_with(&raw, all, legacy(), one, null_mut(), extra.as_mut_ptr());
    assert_eq!(code, OK);
    // Both forms at once are none.
    let code = launch_with(&raw, all, legacy(), one, each.as_mut_ptr(), extra.as_mut_ptr());
    assert_eq!(code, INVALID_VALUE);
    raw.sync(legacy());
    let words: Vec<u8> = values.words.into_iter().flat_map(u32::to_ne_bytes).collect();
    for _ in 0..2 {
        assert_eq!(receive.try_recv(), Ok((1, 2.5, 3, words.clone(), -1)));
    }
    assert!(receive.try_recv().is_err());
}

#[test]
fn a_kernel_sees_its_configuration() {
    let raw = Raw::new();
    let (send, receive) = std::sync::mpsc::channel();
    raw.soft.kernel("_Z4sizev", move |launch| {
        send.send((launch.grid(), launch.block(), launch.shared_bytes())).unwrap();
    });
    let size = function(&raw, c"_Z4sizev");
    let run = |grid, block, shared| {
        launch_with(&raw, size, legacy(), (grid, block, shared), null_mut(), null_mut())
    };
    assert_eq!(run([1, 2, 3], [32, 4, 2], 100), OK);
    raw.sync(legacy());
    assert_eq!(receive.try_recv(), Ok(([1, 2, 3], [32, 4, 2], 100)));
    // No parameters, in the form of an array that ends at once.
    let mut none: [*mut c_void; 1] = [null_mut()];
    let one = ([1; 3], [1; 3], 0);
    assert_eq!(launch_with(&raw, size, legacy(), one, null_mut(), none.as_mut_ptr()), OK);
    raw.sync(legacy());
    assert_eq!(receive.try_recv(), Ok(([1; 3], [1; 3], 0)));
    for (grid, block, shared) in [
        ([0, 1, 1], [1; 3], 0),
        ([1, 65_536, 1], [1; 3], 0),
        ([1; 3], [0, 1, 1], 0),
        ([1; 3], [1025, 1, 1], 0),
        ([1; 3], [33, 32, 1], 0),
        ([1; 3], [1, 1, 65], 0),
        // Their products do not fit into 64 and 32 bits.
        ([1; 3], [u32::MAX; 3], 0),
        ([1; 3], [1 << 11, 1 << 11, 1 << 11], 0),
        ([1 << 31, 1, 1], [1; 3], 0),
        ([1, 1, 65_536], [1; 3], 0),
        ([1; 3], [1; 3], 49_153),
    ] {
        assert_eq!(run(grid, block, shared), INVALID_VALUE, "{grid:?} {block:?} {shared}");
    }
    // A program that raises the limit has more.
    let set = |value| call!(raw, cuFuncSetAttribute(size => Handle, 8 => u32, value => i32));
    assert_eq!((set(60_000), set(1 << 20)), (OK, INVALID_VALUE));
    assert_eq!(run([1; 3], [1; 3], 49_153), OK);
    raw.sync(legacy());
    assert_eq!(receive.try_recv(), Ok(([1; 3], [1; 3], 49_153)));
}

/// Two streams, of which the second one waits for the first one or does not.
#[test]
fn the_order_checker_sees_a_kernel() {
    for ordered in [true, false] {
        let raw = Raw::planting(SoftDriver::builder().check_order(OrderCheck::Report));
        register_add(&raw.soft);
        let (add, address) = (function(&raw, c"add"), memory(&raw));
        let (one, two) = (raw.stream(NON_BLOCKING), raw.stream(NON_BLOCKING));
        assert_eq!(launch(&raw, add, one, address, 1), OK);
        let event = raw.event(2);
        raw.record(event, one);
        if ordered {
            raw.wait(two, event);
        }
        let last = address + 4 * (WORDS as u64 - 1);
        assert_eq!(unsafe { (raw.cuMemsetD32Async)(last, 7, 1, two) }.0, OK);
        raw.sync(two);
        let findings = raw.soft.order_findings();
        assert_eq!(findings.len(), usize::from(!ordered), "{findings:?}");
        for finding in &findings {
            let text = finding.to_string();
            assert!(text.contains("(cuLaunchKernel)") && text.contains("4 bytes"), "{text}");
        }
        // Bytes that it does not access are nobody's concern.
        let beside = memory(&raw);
        assert_eq!(launch(&raw, add, one, address, 1), OK);
        assert_eq!(unsafe { (raw.cuMemsetD32Async)(beside, 7, 1, two) }.0, OK);
        raw.sync(one);
        assert_eq!(raw.soft.order_findings().len(), findings.len());
    }
}

/// What a wrong kernel does to its context.
#[test]
fn a_kernel_that_fails() {
    for (name, code) in [
        (c"panics", LAUNCH_FAILED),
        (c"outside", ILLEGAL_ADDRESS),
        (c"beyond", ILLEGAL_ADDRESS),
        (c"misaligned", MISALIGNED_ADDRESS),
        (c"no parameter", LAUNCH_FAILED),
        (c"a parameter of another size", LAUNCH_FAILED),
    ] {
        let raw = Raw::new();
        let kernels = [
            raw.soft.kernel("panics", |_| panic!("as planned")),
            raw.soft.kernel("outside", |launch| {
                launch.read::<u8>(16, 1);
            }),
            raw.soft.kernel("beyond", |launch| {
                launch.write(launch.parameter(0), &[0_u32; WORDS + 1]);
            }),
            raw.soft.kernel("misaligned", |launch| {
                launch.read::<u32>(launch.parameter::<u64>(0) + 2, 1);
            }),
            raw.soft.kernel("no parameter", |launch| {
                launch.parameter_bytes(2);
            }),
            raw.soft.kernel("a parameter of another size", |launch| {
                launch.parameter::<u32>(0);
            }),
        ];
        for kernel in kernels {
            kernel.parameters(&[8, 4]);
        }
        let (address, function) = (memory(&raw), function(&raw, name));
        assert_eq!(launch(&raw, function, legacy(), address, 1), OK);
        let synchronized = unsafe { (raw.cuStreamSynchronize)(legacy()) }.0;
        assert_eq!(synchronized, code, "{name:?}");
        assert_eq!(launch(&raw, function, legacy(), address, 1), code, "{name:?}");
    }
}

#[test]
fn parameters_that_are_missing() {
    let raw = Raw::new();
    register_add(&raw.soft);
    raw.soft.kernel("declares", |_| ()).parameters(&[8, 4]).accesses(|_, _| panic!("as planned"));
    let add = function(&raw, c"add");
    let one = ([1; 3], [1; 3], 0);
    assert_eq!(launch_with(&raw, add, legacy(), one, null_mut(), null_mut()), INVALID_VALUE);
    let mut number = 0_u64;
    let mut parameters = [std::ptr::from_mut(&mut number).cast(), null_mut()];
    let code = launch_with(&raw, add, legacy(), one, parameters.as_mut_ptr(), null_mut());
    assert_eq!(code, INVALID_VALUE);
    // A declaration that panics fails the launch, and nothing else.
    let declares = function(&raw, c"declares");
    assert_eq!(launch(&raw, declares, legacy(), 0, 0), LAUNCH_FAILED);
    raw.sync(legacy());
}

#[test]
fn kernels_that_are_not_checked_are_named() {
    let log = std::env::temp_dir().join(format!("unchecked-kernels-{}", std::process::id()));
    let builder = SoftDriver::builder().check_order(OrderCheck::Report);
    let raw = Raw::with(builder.order_log(log.to_str().expect("UTF-8")));
    register_add(&raw.soft);
    for name in ["silent", "unused"] {
        raw.soft.kernel(name, |_| ()).parameters(&[8, 4]);
    }
    let address = memory(&raw);
    for name in [c"add", c"silent", c"silent"] {
        assert_eq!(launch(&raw, function(&raw, name), legacy(), address, 1), OK);
    }
    raw.sync(legacy());
    drop(raw);
    let text = std::fs::read_to_string(&log).expect("the driver wrote its summary");
    let _ = std::fs::remove_file(log);
    let named = "kernels without `accesses` were launched and not checked: \"silent\" 2 times\n";
    assert_eq!(text, format!("{named}order checker: 0 errors, 0 warnings\n"));
}

/// The arrays of a launch are the program's, and a fault that leaves garbage leaves them alone.
#[test]
fn garbage_in_results_is_not_in_parameters() {
    let raw = Raw::new();
    register_add(&raw.soft);
    let add = function(&raw, c"add");
    raw.soft.inject(Fault::on("cuLaunch*").poison());
    raw.soft.inject(Fault::on("cuModuleLoadDataEx").poison());
    raw.soft.inject(Fault::on("cuLibraryLoadData").poison());
    let (mut number, mut options, nothing) = (1_u64, [1_u32; 4], null_mut::<c_void>);
    let value = std::ptr::from_mut(&mut number).cast::<c_void>();
    let (mut each, mut extra) = ([value; 2], [value; 5]);
    let one = ([1; 3], [1; 3], 0);
    let code = launch_with(&raw, add, legacy(), one, each.as_mut_ptr(), extra.as_mut_ptr());
    assert_ne!(code, OK);
    let code = call!(raw, cuLaunchCooperativeKernel(add => Handle, 1 => u32, 1 => u32, 1 => u32,
        1 => u32, 1 => u32, 1 => u32, 0 => u32, legacy() => CUstream,
        each.as_mut_ptr() => *mut Handle));
    assert_ne!(code, OK);
    let code = call!(raw, cuLaunchKernelEx(nothing() => Handle, add => Handle,
        each.as_mut_ptr() => *mut Handle, extra.as_mut_ptr() => *mut Handle));
    assert_ne!(code, OK);
    let mut module = null_mut();
    let (image, values) = (c"x".as_ptr().cast(), each.as_mut_ptr());
    let code = call!(raw, cuModuleLoadDataEx(&mut module => *mut Handle,
        image => *const c_void, 2 => u32, options.as_mut_ptr() => *mut u32,
        values => *mut Handle));
    assert_ne!(code, OK);
    let code = call!(raw, cuLibraryLoadData(&mut module => *mut Handle, image => *const c_void,
        options.as_mut_ptr() => *mut u32, values => *mut Handle, 2 => u32,
        options.as_mut_ptr() => *mut u32, values => *mut Handle, 2 => u32));
    assert_ne!(code, OK);
    assert_eq!((each, extra, options), ([value; 2], [value; 5], [1; 4]));
    assert_eq!(raw.soft.injected(), 5);
}

/// The attributes of a launch, and a cooperative one.
#[test]
fn launches_with_attributes() {
    #[repr(C)]
    struct Config {
        grid: [u32; 3],
        block: [u32; 3],
        shared: u32,
        stream: CUstream,
        attributes: *const [u64; 9],
        count: u32,
    }
    let raw = Raw::new();
    let (send, receive) = std::sync::mpsc::channel();
    raw.soft.kernel("grid", move |launch| send.send(launch.grid()).unwrap());
    let (grid, stream) = (function(&raw, c"grid"), raw.stream(NON_BLOCKING));
    let run = |attribute: u64| {
        let attributes = [[attribute, 1, 0, 0, 0, 0, 0, 0, 0]];
        let (one, attributes) = ([1; 3], attributes.as_ptr());
        let config =
            Config { grid: [2, 3, 4], block: one, shared: 0, stream, attributes, count: 1 };
        call!(raw, cuLaunchKernelEx(&config => *const Config, grid => Handle,
            null_mut() => Handle, null_mut() => Handle))
    };
    // Cooperative; and an event of the launch, which nothing here would record.
    assert_eq!((run(2), run(7)), (OK, NOT_SUPPORTED));
    let code = call!(raw, cuLaunchCooperativeKernel(grid => Handle, 5 => u32, 6 => u32, 7 => u32,
        1 => u32, 1 => u32, 1 => u32, 0 => u32, stream => CUstream, null_mut() => Handle));
    assert_eq!(code, OK);
    raw.sync(stream);
    assert_eq!(receive.try_iter().collect::<Vec<_>>(), [[2, 3, 4], [5, 6, 7]]);

    // The blocks of a cooperative launch run at the same time, or it is refused: 2 of 1 024 threads
    // fit on each of the 132 multiprocessors, and 1 with half of their shared memory.
    let resident = |shared: usize| {
        let mut blocks = -1;
        let code = call!(raw, cuOccupancyMaxActiveBlocksPerMultiprocessor(
            &mut blocks => *mut i32, grid => Handle, 1024 => i32, shared => usize));
        assert_eq!(code, OK);
        blocks
    };
    // More than the function may have does not fit.
    assert_eq!([0, 48 << 10, 120_000].map(resident), [2, 2, 0]);
    let code = call!(raw, cuFuncSetAttribute(grid => Handle, 8 => u32, 232_448 => i32));
    assert_eq!(code, OK);
    assert_eq!([0, 120_000, 232_449].map(resident), [2, 1, 0]);
    for value in [-2, 101] {
        let code = call!(raw, cuFuncSetAttribute(grid => Handle, 9 => u32, value => i32));
        assert_eq!(code, INVALID_VALUE, "a carve-out of {value} per cent");
    }
    let cooperative = |blocks: u32| {
        call!(raw, cuLaunchCooperativeKernel(grid => Handle, blocks => u32, 1 => u32, 1 => u32,
            1024 => u32, 1 => u32, 1 => u32, 120_000 => u32, stream => CUstream,
            null_mut() => Handle))
    };
    assert_eq!((cooperative(132), cooperative(133)), (OK, COOPERATIVE_LAUNCH_TOO_LARGE));
    raw.sync(stream);
}

/// The limit counts the gaps that alignment leaves.
#[test]
fn parameters_that_no_kernel_can_have() {
    let raw = Raw::new();
    let refused = |sizes: &[usize]| {
        let kernel = raw.soft.kernel("kernel", |_| ());
        let described = std::panic::AssertUnwindSafe(|| drop(kernel.parameters(sizes)));
        std::panic::catch_unwind(described).is_err()
    };
    assert!(!refused(&[32_764]));
    assert!(!refused(&[1; 32_764]));
    assert!(refused(&[32_765]));
    assert!(refused(&[32_760, 1, 4]));
    assert!(refused(&[1, 8].repeat(2048)), "18 432 bytes, which take 32 768");
    assert!(refused(&[usize::MAX]));
    assert!(refused(&[usize::MAX - 15, 32]), "their sum wraps");
}
