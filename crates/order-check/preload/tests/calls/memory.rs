//! Memory that no call allocates: what modules, libraries and other APIs have. The software driver
//! has none of it, so its functions are replaced.

use std::ffi::{CStr, c_void};
use std::ptr::{null, null_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use cuda_events::sys::CUstream;
use cuda_events_test_support::aside;
use cuda_events_test_support::planted::desk::synchronous_copy;
use cuda_events_test_support::planted::{Desk, builder};
use cuda_events_test_support::pools::{Pool, alloc_from, create, destroy, props};
use cuda_events_test_support::raw::{Front, INVALID_VALUE, OK, Raw, call, legacy};
use cuda_order_check_engine::Problem;
use cuda_order_check_preload as preload;
use cuda_soft_driver::SoftDriver;

use super::front::{FRONT, Seen, WITH_KERNELS, found, launch_of, seen, settings, with_kernels};

/// The address that the driver gives out.
const AT: u64 = 0x7_1000_0000;

static BYTES: AtomicUsize = AtomicUsize::new(64);

/// Each has an address of its own.
unsafe extern "C" fn give<const N: u32>(address: *mut u64, bytes: *mut usize) -> u32 {
    unsafe {
        if !address.is_null() {
            *address = AT;
        }
        if N > 0 && !bytes.is_null() {
            *bytes = BYTES.load(Ordering::Relaxed);
        }
    }
    std::hint::black_box(N) - N
}

/// Which attributes of pointers the driver knows: none, or all.
static KNOWN: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn attribute(_: *mut c_void, _: u32, _: u64) -> u32 {
    if KNOWN.load(Ordering::Relaxed) == 0 { INVALID_VALUE } else { OK }
}

unsafe extern "C" fn module(module: *mut usize, library: usize) -> u32 {
    unsafe { *module = library + 1 };
    OK
}

unsafe extern "C" fn done<const N: u32>() -> u32 {
    std::hint::black_box(N) - N
}

fn with_memory(soft: &SoftDriver, name: &CStr) -> *mut c_void {
    match name.to_bytes() {
        b"cuModuleGetGlobal_v2" => give::<1> as *mut c_void,
        b"cuLibraryGetGlobal" => give::<2> as *mut c_void,
        b"cuLibraryGetManaged" => give::<3> as *mut c_void,
        b"cuGraphicsResourceGetMappedPointer_v2" => give::<4> as *mut c_void,
        // The second argument is no place.
        b"cuExternalMemoryGetMappedBuffer" => external as *mut c_void,
        b"cuMemPoolImportPointer" => imported as *mut c_void,
        b"cuPointerGetAttribute" => attribute as *mut c_void,
        b"cuLibraryGetModule" => module as *mut c_void,
        b"cuLibraryUnload" => done::<1> as *mut c_void,
        b"cuDevicePrimaryCtxRelease_v2" => done::<3> as *mut c_void,
        b"cuMemMap" => done::<4> as *mut c_void,
        b"cuGraphicsUnmapResources" => done::<2> as *mut c_void,
        _ => with_kernels(soft, name),
    }
}

unsafe extern "C" fn external(address: *mut u64) -> u32 {
    unsafe { give::<0>(address, null_mut()) }
}

unsafe extern "C" fn imported(address: *mut u64) -> u32 {
    unsafe { give::<1>(address, null_mut()) }
}

const WITH_MEMORY: Front = Front {
    install: |soft| preload::install(&|name| with_memory(soft, name), &settings()),
    resolve: |soft, name| preload::target(name, &|name| with_memory(soft, name)),
    declare: FRONT.declare,
};

fn good(code: u32) {
    assert_eq!(code, OK);
}

/// A place for the number of bytes, or none.
fn place(p: &Desk<'_>, bytes: &mut usize) -> *mut usize {
    if p.mended { bytes } else { null_mut() }
}

/// How a program gets an address, and how the memory ends.
type Kind = (&'static str, fn(&Desk<'_>), fn(&Desk<'_>));

#[rustfmt::skip] // A row in few lines.
const KINDS: [Kind; 6] = [
    ("a variable of a module", |p| {
        let (mut address, mut bytes) = (0, 0);
        let bytes = place(p, &mut bytes);
        good(call!(p.raw, cuModuleGetGlobal_v2(&mut address => *mut u64,
            bytes => *mut usize, 8 => usize, null() => *const c_void)));
        // A program may ask for the size alone.
        good(call!(p.raw, cuModuleGetGlobal_v2(null_mut() => *mut u64,
            bytes => *mut usize, 8 => usize, null() => *const c_void)));
    }, |p| good(call!(p.raw, cuModuleUnload(8 => usize)))),
    ("a variable of a library", |p| {
        let (mut address, mut bytes) = (0, 0);
        good(call!(p.raw, cuLibraryGetGlobal(&mut address => *mut u64,
            place(p, &mut bytes) => *mut usize, 8 => usize, null() => *const c_void)));
    }, |p| good(call!(p.raw, cuLibraryUnload(8 => usize)))),
    ("managed memory of a library", |p| {
        let (mut address, mut bytes) = (0, 0);
        good(call!(p.raw, cuLibraryGetManaged(&mut address => *mut u64,
            place(p, &mut bytes) => *mut usize, 8 => usize, null() => *const c_void)));
    }, |p| good(call!(p.raw, cuLibraryUnload(8 => usize)))),
    ("a graphics resource", |p| {
        let (mut address, mut bytes) = (0, 0);
        good(call!(p.raw, cuGraphicsResourceGetMappedPointer_v2(&mut address => *mut u64,
            &mut bytes => *mut usize, 8 => usize)));
    }, |p| {
        let resources = [16_usize, 8];
        good(call!(p.raw, cuGraphicsUnmapResources(2 => u32,
            resources.as_ptr() => *const usize, p.b => CUstream)));
    }),
    ("memory of another API", |p| {
        let mut address = 0;
        // An offset and a size, and what is reserved.
        let mut part = [0; 11];
        part[1] = 64;
        good(call!(p.raw, cuExternalMemoryGetMappedBuffer(&mut address => *mut u64,
            8 => usize, part.as_ptr() => *const u64)));
    }, |p| _ = unsafe { (p.raw.cuMemFree_v2)(AT) }),
    ("memory of another process's pool", |p| {
        let mut address = 0;
        good(call!(p.raw, cuMemPoolImportPointer(&mut address => *mut u64, 8 => usize,
            null() => *const c_void)));
    }, |p| _ = call!(p.raw, cuMemFreeAsync(AT => u64, p.a => CUstream))),
];

#[test]
fn memory_that_no_call_allocates_is_known() {
    aside!();
    for (what, gets, _) in KINDS {
        for mended in [true, false] {
            let raw = Raw::behind(builder(0), WITH_MEMORY);
            let p = Desk::new(&raw, mended);
            gets(&p);
            launch_of(&raw, 1, p.a, AT, 0);
            // The same again, as in a loop, is no new memory. (Another API's can be mapped
            // anew.)
            if what != "memory of another API" {
                gets(&p);
            }
            if mended {
                p.joined(p.a, p.b);
            }
            (FRONT.declare)(Some(p.b), AT, 4, true);
            p.end();
            assert_eq!(found().len(), usize::from(!mended), "{what}, mended: {mended}");
        }
    }
}

#[test]
fn memory_that_no_call_allocates_ends() {
    aside!();
    for (what, gets, ends) in KINDS {
        let raw = Raw::behind(builder(0), WITH_MEMORY);
        let p = Desk::new(&raw, true);
        gets(&p);
        ends(&p);
        p.raw.sync(p.a);
        (FRONT.declare)(Some(p.b), AT, 4, true);
        let problems: Vec<_> = found().into_iter().map(|report| report.0).collect();
        assert_eq!(problems, [Problem::UseAfterFree], "{what}");
        // Other memory is there now.
        gets(&p);
        (FRONT.declare)(Some(p.b), AT, 4, true);
        p.end();
        assert_eq!(found(), [], "{what}");
    }
}

/// A report has the call and its stack. To ask again costs no number of a call, and no stack.
#[test]
fn the_first_call_that_gives_an_address_is_reported() {
    aside!();
    let front = Front {
        install: |soft| {
            let settings = preload::Settings::from_text("possible=on").expect("it is valid");
            preload::install(&|name| with_memory(soft, name), &settings);
        },
        ..WITH_MEMORY
    };
    let number = |repeats| {
        let raw = Raw::behind(builder(0), front);
        let p = Desk::new(&raw, false);
        (0..repeats).for_each(|_| KINDS[1].1(&p));
        launch_of(&raw, 1, p.a, AT, 0);
        (FRONT.declare)(Some(p.b), AT, 4, true);
        p.end();
        let found = preload::take_findings();
        let text = found[0].to_string();
        let memory = text.lines().find(|line| line.starts_with("  bytes ")).expect(&text);
        // With lines of files, the place is where the macro that makes the call stands.
        let here =
            ["calls::memory", "tests/calls/", "src/hooks/"].iter().any(|at| memory.contains(at));
        assert!(memory.contains("that ") && here, "{text}");
        let report = found[0].report().expect("an error");
        let allocation = report.allocation.as_ref().expect("it is known");
        assert_eq!(allocation.call.name, "cuLibraryGetGlobal");
        report.second.call.number
    };
    assert_eq!(number(1), number(5));
}

/// It ended with a library that nobody saw end.
#[test]
fn a_variable_of_another_size_is_other_memory() {
    aside!();
    let raw = Raw::behind(builder(0), WITH_MEMORY);
    let p = Desk::new(&raw, false);
    let [(_, of_module, _), (_, of_library, _), ..] = KINDS;
    of_module(&p);
    BYTES.store(128, Ordering::Relaxed);
    of_library(&p);
    launch_of(&raw, 1, p.a, AT + 100, 0);
    (FRONT.declare)(Some(p.b), AT + 100, 4, true);
    p.end();
    assert_eq!(found().len(), 1);
}

fn is_over(p: &Desk<'_>) -> bool {
    (FRONT.declare)(Some(p.b), AT, 4, true);
    let found = found();
    assert!(found.iter().all(|report| report.0 == Problem::UseAfterFree), "{found:?}");
    !found.is_empty()
}

/// A primary context may have other users, and another context has no part in the memory.
#[test]
fn memory_of_objects_ends_with_their_context() {
    aside!();
    let release = |p: &Desk<'_>| {
        good(call!(p.raw, cuDevicePrimaryCtxRelease_v2(0 => i32)));
        p.raw.sync(p.a);
    };
    for (known, is_gone) in [(1, false), (0, true)] {
        KNOWN.store(known, Ordering::Relaxed);
        let raw = Raw::behind(builder(0), WITH_MEMORY);
        let p = Desk::new(&raw, true);
        KINDS[0].1(&p);
        p.elsewhere(|_| ());
        assert!(!is_over(&p), "another context has ended");
        release(&p);
        assert_eq!(is_over(&p), is_gone, "known to the driver: {known}");
        // In both cases the module has it afterwards, and its unload ends it.
        KINDS[0].1(&p);
        KINDS[0].2(&p);
        assert!(is_over(&p), "known to the driver: {known}");
        p.end();
    }
    let raw = Raw::behind(builder(0), WITH_MEMORY);
    let p = Desk::new(&raw, true);
    p.elsewhere(|_| KINDS[0].1(&p));
    assert!(is_over(&p), "its context has ended");
    p.end();
}

/// The program has asked the library's module for it.
#[test]
fn memory_of_a_module_ends_with_its_library() {
    aside!();
    let raw = Raw::behind(builder(0), WITH_MEMORY);
    let p = Desk::new(&raw, true);
    let mut module = 0;
    good(call!(raw, cuLibraryGetModule(&mut module => *mut usize, 7 => usize)));
    assert_eq!(module, 8);
    KINDS[0].1(&p);
    good(call!(raw, cuLibraryUnload(7 => usize)));
    assert!(is_over(&p));
    p.end();
}

/// An unload waits for work that a host function holds up. The one here only says so.
#[test]
fn a_variable_ends_after_all_work() {
    aside!();
    let raw = Raw::behind(builder(0), WITH_MEMORY);
    let p = Desk::new(&raw, true);
    KINDS[0].1(&p);
    let (goes_on, waits) = std::sync::mpsc::channel::<()>();
    p.raw.host(p.a, move || _ = waits.recv());
    (FRONT.declare)(Some(p.a), AT, 4, true);
    KINDS[0].2(&p);
    drop(goes_on);
    p.raw.sync(p.a);
    p.end();
    assert_eq!(found(), []);
}

/// Memory that is no longer there, though nobody saw its end, hides nothing of other memory, by
/// whichever call that comes.
#[test]
fn other_memory_replaces_that_of_objects() {
    unsafe extern "C" fn around(address: *mut u64) -> u32 {
        unsafe { *address = AT - 64 };
        OK
    }
    fn with_other(soft: &SoftDriver, name: &CStr) -> *mut c_void {
        match name.to_bytes() {
            b"cuMemAllocManaged" | b"cuMemAllocAsync" | b"cuMemAllocFromPoolAsync" => {
                around as *mut c_void
            }
            _ => with_memory(soft, name),
        }
    }
    let front = Front {
        install: |soft| preload::install(&|name| with_other(soft, name), &settings()),
        resolve: |soft, name| preload::target(name, &|name| with_other(soft, name)),
        ..WITH_MEMORY
    };
    let calls: [fn(&Desk<'_>) -> u32; 4] = [
        |p| call!(p.raw, cuMemMap(AT - 64 => u64, 4096 => usize, 0 => usize, 0 => u64, 0 => u64)),
        |p| call!(p.raw, cuMemAllocManaged(&mut 0 => *mut u64, 4096 => usize, 1 => u32)),
        |p| call!(p.raw, cuMemAllocAsync(&mut 0 => *mut u64, 4096 => usize, p.a => CUstream)),
        |p| {
            call!(p.raw, cuMemAllocFromPoolAsync(&mut 0 => *mut u64, 4096 => usize, 8 => usize,
                p.a => CUstream))
        },
    ];
    aside!();
    for (at, gives) in calls.into_iter().enumerate() {
        // The last byte of the object is in it, and the one before the object.
        for place in [AT - 1, AT + 63, AT + 64] {
            let found = [true, false].map(|there_was_one| {
                let raw = Raw::behind(builder(0), front);
                let p = Desk::new(&raw, true);
                if there_was_one {
                    KINDS[0].1(&p);
                }
                good(gives(&p));
                p.joined(p.a, p.b);
                // The end of the object is none of the other memory.
                KINDS[0].2(&p);
                launch_of(&raw, 1, p.a, place, 0);
                (FRONT.declare)(Some(p.b), place, 1, true);
                p.end();
                found()
            });
            assert_eq!((found[0].len(), &found[0]), (1, &found[1]), "{at}, {place:#x}");
        }
    }
}

/// Memory of a pool of another process: the pool here, and there, and the address here.
fn shared(here: &Raw, there: &Raw, bytes: usize) -> ([Pool; 2], u64) {
    const FILE_DESCRIPTOR: u32 = 1;
    let theirs = create(there, &props(FILE_DESCRIPTOR)).expect("a pool");
    let memory = alloc_from(there, bytes, theirs, legacy()).expect("memory");
    let (mut file, mut data, mut ours, mut address) = (-1, [0_u64; 8], null_mut(), 0);
    good(call!(there, cuMemPoolExportToShareableHandle(&mut file => *mut i32, theirs => Pool,
        FILE_DESCRIPTOR => u32, 0 => u64)));
    good(call!(there, cuMemPoolExportPointer(&mut data => *mut [u64; 8], memory => u64)));
    good(call!(here, cuMemPoolImportFromShareableHandle(&mut ours => *mut Pool,
        file as usize => usize, FILE_DESCRIPTOR => u32, 0 => u64)));
    good(call!(here, cuMemPoolImportPointer(&mut address => *mut u64, ours => Pool,
        &data => *const [u64; 8])));
    ([ours, theirs], address)
}

/// The other process may see a word in it, and tell the host. The driver judges it in the same way.
#[test]
fn words_in_memory_of_another_process_may_be_reported() {
    aside!();
    for mended in [true, false] {
        let there = Raw::with(builder(0));
        there.set_current(there.retain(0));
        let raw = Raw::behind(builder(0), FRONT);
        let p = Desk::new(&raw, mended);
        let (pools, address) = shared(&raw, &there, 64);
        p.writes(p.a);
        let word = if mended { address } else { p.other };
        p.set(p.a, word, 4);
        // The other process sees it.
        let word = unsafe { AtomicU32::from_ptr(word as *mut u32) };
        while word.load(Ordering::Acquire) != 0x0101_0101 {
            std::thread::yield_now();
        }
        p.reads(p.b);
        good(call!(raw, cuMemFreeAsync(address => u64, p.a => CUstream)));
        p.raw.sync(p.a);
        assert_eq!([destroy(&raw, pools[0]), destroy(&there, pools[1])], [OK; 2]);
        p.end();
        let own: Vec<Seen> = raw.soft.order_findings().iter().map(seen).collect();
        assert_eq!(own, found(), "mended: {mended}");
        assert_eq!(own.len(), usize::from(!mended), "mended: {mended}");
    }
}

/// A kernel that gets the first address of a pool may access all of it, wherever it is from.
#[test]
fn pools_are_memory_of_all_kinds() {
    aside!();
    const BYTES: usize = 32 << 20;
    let there = Raw::with(builder(0));
    there.set_current(there.retain(0));
    for classes in ["", "class=+pools"] {
        let raw = Raw::behind(builder(0), WITH_KERNELS);
        let settings = format!("stacks=off,possible=on,{classes}");
        let settings = preload::Settings::from_text(&settings).expect("it is valid");
        preload::install(&|name| with_kernels(&raw.soft, name), &settings);
        let p = Desk::new(&raw, false);
        let mut address = 0;
        good(call!(raw, cuMemAllocAsync(&mut address => *mut u64, BYTES => usize,
            p.a => CUstream)));
        let own = create(&raw, &props(0)).expect("a pool");
        let of_pool = alloc_from(&raw, BYTES, own, p.a).expect("memory");
        let small = alloc_from(&raw, BYTES - 1, own, p.a).expect("memory");
        let (pools, theirs) = shared(&raw, &there, BYTES);
        let all = [address, of_pool, theirs, small];
        raw.sync(p.a);
        for (kernel, memory) in (1..).zip(all) {
            launch_of(&raw, kernel, p.a, memory, 0);
            p.set(p.c, memory + (1 << 20), 64);
            raw.sync(p.c);
            raw.sync(p.a);
            let wanted = usize::from(!classes.is_empty() && memory != small);
            assert_eq!(found().len(), wanted, "kernel {kernel}, {classes}");
        }
        for memory in all {
            good(call!(raw, cuMemFreeAsync(memory => u64, p.a => CUstream)));
        }
        raw.sync(p.a);
        let ends = [(&raw, own), (&raw, pools[0]), (&there, pools[1])];
        assert_eq!(ends.map(|(raw, pool)| destroy(raw, pool)), [OK; 3]);
        p.end();
    }
}

/// Pinned memory stands for memory of the host from a pool, or from a map: the driver says the same
/// of it.
static PIN: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn pin(address: *mut u64, bytes: usize) -> u32 {
    type Real = unsafe extern "C" fn(*mut u64, usize, u32) -> u32;
    unsafe {
        let real = std::ptr::with_exposed_provenance::<c_void>(PIN.load(Ordering::Relaxed));
        std::mem::transmute::<*const c_void, Real>(real)(address, bytes, 0)
    }
}

fn with_host_memory(soft: &SoftDriver, name: &CStr) -> *mut c_void {
    PIN.store(soft.resolve(c"cuMemHostAlloc").expose_provenance(), Ordering::Relaxed);
    match name.to_bytes() {
        b"cuMemAllocFromPoolAsync" => pin as *mut c_void,
        b"cuMemMap" => done::<5> as *mut c_void,
        b"cuMemUnmap" => done::<6> as *mut c_void,
        b"cuMemFreeAsync" => done::<7> as *mut c_void,
        _ => soft.resolve(name),
    }
}

const WITH_HOST_MEMORY: Front = Front {
    install: |soft| preload::install(&|name| with_host_memory(soft, name), &settings()),
    resolve: |soft, name| preload::target(name, &|name| with_host_memory(soft, name)),
    declare: FRONT.declare,
};

/// What a program does with memory, and how many findings that makes.
type Tried = (fn(&Desk<'_>, u64), usize);

/// Copies between it and the device are those of memory of the host, and the host can poll a word
/// there.
#[test]
fn pools_and_maps_may_have_memory_of_the_host() {
    aside!();
    let of_pool = |p: &Desk<'_>| alloc_from(p.raw, 64, null_mut(), p.a).expect("memory");
    let mapped = |p: &Desk<'_>| {
        let mut address = 0;
        good(unsafe { pin(&mut address, 64) });
        good(call!(p.raw, cuMemMap(address => u64, 64 => usize, 0 => usize, 0 => u64,
            0 => u64)));
        address
    };
    let kinds: [fn(&Desk<'_>) -> u64; 2] = [of_pool, mapped];
    let programs: [Tried; 5] = [
        (
            |p, memory| {
                let to = std::ptr::with_exposed_provenance_mut(memory as usize);
                good(unsafe { synchronous_copy(p)(to, p.buffer, 64) }.0);
                p.writes(p.b);
            },
            0,
        ),
        (
            |p, memory| {
                p.copy(p.a, memory, p.buffer, 64);
                p.writes(p.b);
            },
            1,
        ),
        // Documented: a copy from memory of the host to memory of the host waits.
        (
            |p, memory| {
                let copy = call!(p.raw, cuMemcpyAsync(p.pinned.addr() as u64 => u64,
                    memory => u64, 64 => usize, p.a => CUstream));
                good(copy);
                p.host_reads();
            },
            0,
        ),
        (
            |p, memory| {
                p.writes(p.a);
                good(unsafe { p.raw.cuStreamWriteValue32_v2.unwrap()(p.a, memory, 1, 0) }.0);
                let word = std::ptr::with_exposed_provenance_mut(memory as usize);
                while unsafe { AtomicU32::from_ptr(word) }.load(Ordering::Acquire) != 1 {
                    std::thread::yield_now();
                }
                p.reads(p.b);
            },
            0,
        ),
        // It ends like memory of a device.
        (
            |p, memory| {
                good(call!(p.raw, cuMemFreeAsync(memory => u64, p.a => CUstream)));
                good(call!(p.raw, cuMemUnmap(memory => u64, 64 => usize)));
                (FRONT.declare)(Some(p.b), memory, 4, true);
            },
            1,
        ),
    ];
    for (at, gets) in kinds.iter().enumerate() {
        for (program, expected) in programs {
            let raw = Raw::behind(builder(0), WITH_HOST_MEMORY);
            let p = Desk::new(&raw, true);
            let memory = gets(&p);
            p.raw.sync(p.a);
            program(&p, memory);
            p.end();
            let found = found();
            assert_eq!(found.len(), expected, "{at}: {found:?}");
        }
    }
}

/// A page that the host must not touch now.
fn closed() -> u64 {
    static PAGE: OnceLock<u64> = OnceLock::new();
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let new = || unsafe { libc::mmap(null_mut(), 4096, libc::PROT_NONE, flags, -1, 0) };
    *PAGE.get_or_init(|| new().expose_provenance() as u64)
}

unsafe extern "C" fn give_closed(address: *mut u64) -> u32 {
    unsafe { *address = closed() };
    OK
}

/// The driver knows that the page is of the host.
unsafe extern "C" fn of_host(kind: *mut u32, attribute: u32, _: u64) -> u32 {
    unsafe { *kind = u32::from(attribute == 2) };
    OK
}

fn with_closed(soft: &SoftDriver, name: &CStr) -> *mut c_void {
    match name.to_bytes() {
        b"cuMemAllocManaged" | b"cuMemAllocFromPoolAsync" => give_closed as *mut c_void,
        b"cuPointerGetAttribute" => of_host as *mut c_void,
        b"cuMemsetD32Async" => done::<8> as *mut c_void,
        b"cuMemcpyAsync" => done::<9> as *mut c_void,
        b"cuStreamWriteValue32_v2" => done::<10> as *mut c_void,
        b"cuStreamWaitValue32_v2" => done::<11> as *mut c_void,
        _ => soft.resolve(name),
    }
}

const WITH_CLOSED: Front = Front {
    install: |soft| preload::install(&|name| with_closed(soft, name), &settings()),
    resolve: |soft, name| preload::target(name, &|name| with_closed(soft, name)),
    declare: FRONT.declare,
};

/// Managed memory is closed to the host while the device is busy, where the device cannot share it;
/// elsewhere a load moves it. Memory of the host from a pool may not be open to the host.
#[test]
fn memory_that_is_not_pinned_is_never_loaded() {
    aside!();
    let managed = |p: &Desk<'_>| {
        let mut address = 0;
        good(call!(p.raw, cuMemAllocManaged(&mut address => *mut u64, 64 => usize, 1 => u32)));
        address
    };
    let of_pool = |p: &Desk<'_>| alloc_from(p.raw, 64, null_mut(), p.a).expect("memory");
    let kinds: [fn(&Desk<'_>) -> u64; 2] = [managed, of_pool];
    let set = |p: &Desk<'_>, word| {
        good(call!(p.raw, cuMemsetD32Async(word => u64, 1 => u32, 1 => usize,
            p.a => CUstream)));
    };
    let write = |p: &Desk<'_>, word| {
        good(call!(p.raw, cuStreamWriteValue32_v2(p.a => CUstream, word => u64, 1 => u32,
            0 => u32)));
    };
    // The host may have seen what the stream has come to.
    let programs: [Tried; 4] = [
        (|_, _| (), 1),
        (set, 0),
        (write, 0),
        (
            |p, word| {
                for (to, from) in [(word, p.other), (p.other, word)] {
                    good(call!(p.raw, cuMemcpyAsync(to => u64, from => u64, 4 => usize,
                        p.a => CUstream)));
                }
                good(call!(p.raw, cuStreamWaitValue32_v2(p.a => CUstream, word => u64,
                    1 => u32, 0 => u32)));
            },
            0,
        ),
    ];
    for (at, gets) in kinds.iter().enumerate() {
        for (program, expected) in programs {
            let raw = Raw::behind(builder(0), WITH_CLOSED);
            let p = Desk::new(&raw, true);
            let word = gets(&p);
            p.writes(p.a);
            program(&p, word);
            p.reads(p.b);
            // What it reads after a wait is no error.
            p.raw.sync(p.a);
            (FRONT.declare)(None, word, 4, false);
            p.end();
            let found = found();
            assert_eq!(found.len(), expected, "{at}: {found:?}");
        }
    }
}

/// A stream waits for a word in pinned memory that was freed.
#[test]
fn a_word_in_memory_that_has_ended_is_not_loaded() {
    aside!();
    let raw = Raw::behind(builder(0), WITH_CLOSED);
    let p = Desk::new(&raw, true);
    let mut memory = null_mut();
    good(unsafe { (raw.cuMemHostAlloc)(&mut memory, 1 << 20, 0) }.0);
    let word = memory.expose_provenance() as u64;
    good(call!(raw, cuStreamWriteValue32_v2(p.a => CUstream, word => u64, 1 => u32,
        0 => u32)));
    // The word gets the value that the stream writes.
    unsafe { memory.cast::<u32>().write_volatile(1) };
    p.raw.sync(p.a);
    good(unsafe { (raw.cuMemFreeHost)(memory) }.0);
    good(call!(raw, cuStreamWaitValue32_v2(p.a => CUstream, word => u64, 1 => u32, 0 => u32)));
    p.end();
    let problems: Vec<_> = found().into_iter().map(|report| report.0).collect();
    assert_eq!(problems, [Problem::UseAfterFree]);
}
