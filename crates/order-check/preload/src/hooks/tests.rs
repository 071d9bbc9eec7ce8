use core::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use cuda_events::sys::CUDA_EXTERNAL_MEMORY_BUFFER_DESC;
use cuda_order_check_engine::feed::Memory;
use cuda_order_check_engine::{Access, ThreadId};

use crate::call::{Address, Call, Code, Handle, OK, thread};
use crate::callbacks::post;
use crate::hooks::{copies, memory, streams};
use crate::lock::TURN;
use crate::model::pinned::{host_accesses, pinned_begins};
use crate::model::threads::{ENDED, HAVE_ENDED};
use crate::model::values::operations_begin;
use crate::pinned::faults::note;
use crate::settings::Settings;
use crate::start::start;
use crate::state::blocks::Block;
use crate::state::executions::{Posted, have_posted};
use crate::state::values::Value;
use crate::walk::{begin_call, caught_up, locked};
use crate::watch::{WATCH, Watch};

mod order;

/// A signal handler may make the call, on the thread that is about to note its end.
#[test]
fn a_call_does_not_wait_for_a_thread_that_ends() {
    let _turn = TURN.lock();
    start(&|_| core::ptr::null_mut(), &Settings::default());
    let call = || _ = begin_call(&Call { name: "cuInit", per_thread: false }, |_| ());
    let ends = ENDED.lock().expect("nobody panics with it");
    HAVE_ENDED.store(true, Ordering::Release);
    let (sender, receiver) = mpsc::channel();
    let other = std::thread::spawn(move || {
        call();
        let _ = sender.send(());
    });
    let came = receiver.recv_timeout(Duration::from_secs(5)).is_ok();
    assert!(came && HAVE_ENDED.load(Ordering::Acquire), "the call waits: {came}");
    drop(ends);
    other.join().expect("it has ended, and noted that");
    call();
    assert!(!HAVE_ENDED.load(Ordering::Acquire), "the end is noted by the next call");
}

/// The driver may call it with a lock, for which another thread waits with the watch's.
#[test]
fn a_host_function_does_not_wait_for_a_call_that_asks_the_driver() {
    let _turn = TURN.lock();
    start(&|_| core::ptr::null_mut(), &Settings::default());
    let call = Call { name: "cuLaunchHostFunc", per_thread: false };
    let submitted = begin_call(&call, |watch| {
        let stream = watch.stream(&call, 0x100);
        watch.feed.function(stream, 7);
        watch.feed.await_stream(stream)
    });
    let work = submitted.expect("it is seen");
    let asks = WATCH.lock().expect("nobody panics with it");
    let (sender, receiver) = mpsc::channel();
    let function = std::thread::spawn(move || {
        post(Posted::Begins(7));
        post(Posted::Ends(7));
        let _ = sender.send(());
    });
    let came = receiver.recv_timeout(Duration::from_secs(5)).is_ok();
    assert!(came && have_posted(), "the function waits: {came}");
    drop(asks);
    function.join().expect("it has ended");
    let after = locked(|watch| {
        let before = watch.feed.host_is_after(&work);
        watch.catch_up();
        (before, watch.feed.host_is_after(&work), watch.feed.caller().by)
    });
    let (before, after, by) = after.expect("it is seen");
    assert!(!before && after && !have_posted(), "it counts with the next call");
    let own = cuda_order_check_engine::By::Thread(ThreadId(thread()));
    assert!(by != own, "the function has run on a thread of its own");
}

/// The function begins, accesses memory that is written before and after it, and ends, while others
/// have the lock.
#[test]
fn an_access_in_a_host_function_is_between_its_begin_and_its_end() {
    const BYTES: [usize; 2] = [0x7000, 0x7100];
    let _turn = TURN.lock();
    start(&|_| core::ptr::null_mut(), &Settings::default());
    let call = Call { name: "cuLaunchHostFunc", per_thread: false };
    let submitted = begin_call(&call, |watch| {
        let stream = watch.stream(&call, 0x100);
        watch.feed.work(stream, &[Access::write(0x7000, 0x100)]);
        watch.feed.function(stream, 8);
        watch.feed.work(stream, &[Access::write(0x7000, 0x100)]);
        watch.feed.observer().reported()
    });
    let asks = WATCH.lock().expect("nobody panics with it");
    std::thread::spawn(|| {
        post(Posted::Begins(8));
        note(BYTES, false, "a load", 0);
        post(Posted::Ends(8));
    })
    .join()
    .expect("it ends");
    drop(asks);
    let found = locked(|watch| {
        host_accesses(watch);
        watch.feed.observer().reported()
    });
    assert!(found.is_some() && found == submitted, "{found:?}, and {submitted:?} before");
}

/// The stream writes a value after the function, and the program has accessed other memory before, while
/// others have the lock. The value is there when all of that is taken.
#[test]
fn an_access_in_a_host_function_is_before_a_value_that_is_written_after_its_end() {
    let _turn = TURN.lock();
    start(&|_| core::ptr::null_mut(), &Settings::default());
    let pages = Box::leak(Box::new([0_u64; 3 * 512]));
    let [value, bytes, other] = [0, 512, 1024].map(|at| (&raw mut pages[at]).expose_provenance());
    let call = Call { name: "cuLaunchHostFunc", per_thread: false };
    begin_call(&call, |watch| {
        watch.allocated(value as Address, 3 * 4096, Memory::Host);
        pinned_begins(watch, value as Address, 3 * 4096, false, false);
    });
    let submitted = begin_call(&call, |watch| {
        let stream = watch.stream(&call, 0x100);
        watch.feed.function(stream, 8);
        operations_begin(watch, stream, &[Value::write(value as Address, 4, 1)])
    });
    caught_up(|watch| watch.submission_returned(submitted.expect("it watches"), OK));
    begin_call(&call, |watch| {
        let stream = watch.stream(&call, 0x100);
        watch.feed.work(stream, &[Access::write(bytes as u64, 0x100)]);
    });
    let asks = WATCH.lock().expect("nobody panics with it");
    note([other, other + 8], true, "a store", 0);
    std::thread::spawn(move || {
        post(Posted::Begins(8));
        note([bytes, bytes + 8], false, "a load", 0);
        post(Posted::Ends(8));
    })
    .join()
    .expect("it ends");
    note([other, other + 8], true, "a store", 0);
    let place: *mut u32 = core::ptr::with_exposed_provenance_mut(value);
    // SAFETY: memory of this test.
    unsafe { place.write_volatile(1) };
    drop(asks);
    let left = |watch: &mut Watch| (watch.feed.observer().reported(), watch.values.pending.len());
    assert_eq!(locked(|watch| left(watch)), Some((0, 1)));
    let found = locked(|watch| {
        host_accesses(watch);
        left(watch)
    });
    assert_eq!(found, Some((0, 0)), "the program has seen the value before its last access");
}

unsafe extern "C" fn context(context: *mut Handle) -> Code {
    // SAFETY: a place for the answer.
    unsafe { *context = 77 };
    OK
}

unsafe extern "C" fn device(device: *mut i32) -> Code {
    // SAFETY: as above.
    unsafe { *device = 0 };
    OK
}

/// Begins to watch, with a current context.
pub(crate) fn with_context() {
    let resolve = |name: &CStr| match name.to_bytes() {
        b"cuCtxGetCurrent" => context as *mut c_void,
        b"cuCtxGetDevice" => device as *mut c_void,
        _ => core::ptr::null_mut(),
    };
    start(&resolve, &Settings::from_text("log=/dev/null").expect("it is valid"));
}

const CALL: Call = Call { name: "cuMemsetD8Async_ptsz", per_thread: true };

/// The streams are few, however many threads there were.
#[test]
fn default_streams_end_with_their_threads() {
    let _turn = TURN.lock();
    with_context();
    for _ in 0..3 {
        let used = || begin_call(&CALL, |watch| _ = watch.stream(&CALL, 0));
        std::thread::spawn(used).join().expect("it ends");
    }
    let left = begin_call(&CALL, |watch| watch.streams.defaults.len());
    assert_eq!(left, Some(0));
}

/// A context may have the handle of one that is gone, and has streams of its own.
#[test]
fn default_streams_end_with_their_context() {
    let _turn = TURN.lock();
    with_context();
    let stream = || begin_call(&CALL, |watch| [0, 1].map(|stream| watch.stream(&CALL, stream)));
    let (first, same) = (stream(), stream());
    assert!(first.is_some() && first == same, "{first:?} {same:?}");
    streams::context_destroy(&CALL, || OK, 77);
    assert_eq!(locked(|watch| watch.contexts.devices.len()), Some(0));
    let [first, other] = [first, stream()].map(|stream| stream.expect("it is seen"));
    assert!(first.iter().all(|stream| !other.contains(stream)), "{first:?} {other:?}");
}

/// Memory that belongs to an object ends where other memory begins in it, and not beside it.
#[test]
fn memory_of_an_object_ends_where_other_memory_begins() {
    let _turn = TURN.lock();
    const FIRST: Address = 0x1000_0000_0000;
    // Three variables of modules, side by side, and what is left of them after an allocation.
    let left = |[first, end]: [Address; 2]| {
        with_context();
        for owner in 0..3 {
            memory::owns(&CALL, 50 + owner, FIRST + 256 * owner as u64, 256);
        }
        let left = begin_call(&CALL, |watch| {
            watch.allocated(FIRST + first, (end - first) as usize, Memory::Device);
            [0, 256, 512].map(|at| watch.memory.owned.contains_key(&(FIRST + at)))
        });
        left.expect("it is seen")
    };
    for within in [[256, 512], [256, 257], [511, 512], [300, 301]] {
        assert_eq!(left(within), [true, false, true], "{within:?}");
    }
    assert_eq!(left([255, 512]), [false, false, true]);
    assert_eq!(left([256, 513]), [true, false, false]);
    assert_eq!(left([768, 1024]), [true; 3]);
}

/// Addresses are unmapped part by part, or several at once: all parts that begin there end.
#[test]
fn what_is_unmapped_is_no_memory() {
    let _turn = TURN.lock();
    const FIRST: Address = 0x1000_0000_0000;
    const PART: Address = 2 << 20;
    let left = |[first, end]: [Address; 2]| {
        with_context();
        (0..4).for_each(|part| {
            memory::map(&CALL, || OK, FIRST + PART * part, PART as usize);
        });
        memory::unmap(&CALL, || OK, FIRST + PART * first, (PART * (end - first)) as usize);
        let known = |watch: &mut crate::watch::Watch| {
            [0, 1, 2, 3].map(|part| {
                let (at, last) = (FIRST + PART * part, FIRST + PART * (part + 1) - 1);
                let known = watch.memory.at.contains_key(&at);
                assert_eq!([at, last].map(|at| watch.feed.memory(at).is_some()), [known; 2]);
                known
            })
        };
        begin_call(&CALL, known).expect("it is seen")
    };
    assert_eq!(left([0, 4]), [false; 4]);
    assert_eq!(left([1, 4]), [true, false, false, false]);
    assert_eq!(left([0, 3]), [false, false, false, true]);
    assert_eq!(left([1, 2]), [true, false, true, true]);
    assert_eq!(left([4, 8]), [true; 4]);
}

/// What the driver says of memory that was opened: 4096 bytes at this address, as long as it is
/// open.
const OPENED: Address = 0x7e00_0000_0000;
static IS_OPEN: AtomicBool = AtomicBool::new(false);

unsafe extern "C" fn range(base: *mut Address, bytes: *mut usize, address: Address) -> Code {
    if address != OPENED || !IS_OPEN.load(Ordering::Relaxed) {
        return 1;
    }
    // SAFETY: places for the answers.
    unsafe { (*base, *bytes) = (OPENED, 4096) };
    OK
}

/// Memory of another process may be opened several times, and ends with the last close.
#[test]
fn memory_of_others_ends_with_the_last_close() {
    let _turn = TURN.lock();
    let resolve = |name: &CStr| match name.to_bytes() {
        b"cuCtxGetCurrent" => context as *mut c_void,
        b"cuCtxGetDevice" => device as *mut c_void,
        b"cuMemGetAddressRange_v2" => range as *mut c_void,
        _ => core::ptr::null_mut(),
    };
    start(&resolve, &Settings::default());
    let ends = || {
        let known = |watch: &mut crate::watch::Watch| {
            assert_eq!(watch.feed.memory(OPENED + 4096), None);
            [0, 4095].map(|at| watch.feed.memory(OPENED + at).is_some())
        };
        begin_call(&CALL, known).expect("it is seen")
    };
    IS_OPEN.store(true, Ordering::Relaxed);
    for _ in 0..2 {
        memory::imported(&CALL, || OK, &mut { OPENED });
        assert_eq!(ends(), [true; 2]);
    }
    memory::closed(&CALL, || OK, OPENED);
    assert_eq!(ends(), [true; 2], "it is open still");
    let close = || {
        IS_OPEN.store(false, Ordering::Relaxed);
        OK
    };
    memory::closed(&CALL, close, OPENED);
    assert_eq!(ends(), [false; 2]);
}

/// Memory of a module ends where other memory takes one of its bytes, by whichever call: the end of the
/// module is not the end of that.
#[test]
fn other_memory_takes_the_place_of_a_modules() {
    let _turn = TURN.lock();
    const OWNED: Address = 0x1000_0000_0000;
    const BYTES: usize = 64;
    type Give = fn(&mut Address);
    let gives: [(&str, Give); 7] = [
        ("allocate", |at| _ = memory::allocate(&CALL, || OK, at, BYTES, Memory::Device)),
        ("allocate_rows", |at| _ = memory::allocate_rows(&CALL, || OK, at, &mut 16, 4)),
        ("allocate_async", |at| _ = memory::allocate_async(&CALL, || OK, at, BYTES, None, 0x100)),
        ("register", |at| _ = memory::register(&CALL, || OK, *at, BYTES, 4)),
        ("map", |at| _ = memory::map(&CALL, || OK, *at, BYTES)),
        ("map_external", |at| {
            let mut part = CUDA_EXTERNAL_MEMORY_BUFFER_DESC::default();
            part.size = BYTES as u64;
            memory::map_external(&CALL, || OK, at, &part);
        }),
        ("imported", |at| _ = memory::imported(&CALL, || OK, at)),
    ];
    for (name, give) in gives {
        // Of an import the first byte is known alone, as this driver does not say how many it has.
        let ends = if name == "imported" { 1 } else { BYTES as u64 };
        for (at, replaces) in [
            (OWNED, true),
            (OWNED + BYTES as u64 - 1, true),
            (OWNED + BYTES as u64, false),
            (OWNED - ends + 1, true),
            (OWNED - ends, false),
        ] {
            with_context();
            memory::owns(&CALL, 50, OWNED, BYTES);
            give(&mut { at });
            let is_owned =
                |watch: &mut crate::watch::Watch| watch.memory.owned.contains_key(&OWNED);
            assert_eq!(begin_call(&CALL, is_owned), Some(!replaces), "{name} {at:#x}");
            memory::unload(&CALL, || OK, 50);
            let is_there = |watch: &mut crate::watch::Watch| {
                (watch.feed.memory(at).is_some(), watch.feed.memory(OWNED).is_some())
            };
            let expected = (true, replaces && at <= OWNED);
            assert_eq!(begin_call(&CALL, is_there), Some(expected), "{name} {at:#x}");
        }
    }
}

/// Memory ends with its context, except for what is mapped: that is of no context.
#[test]
fn what_is_mapped_outlives_the_context() {
    let _turn = TURN.lock();
    with_context();
    const ROWS: Address = 0x1000_0000_0000;
    const MAPPED: Address = 0x7d00_0000_0000;
    memory::allocate_rows(&CALL, || OK, &mut { ROWS }, &mut 512, 3);
    memory::map(&CALL, || OK, MAPPED, 2 << 20);
    let known = || {
        let places = [ROWS, ROWS + 3 * 512 - 1, ROWS + 3 * 512, MAPPED, MAPPED + (2 << 20) - 1];
        let known =
            |watch: &mut crate::watch::Watch| places.map(|at| watch.feed.memory(at).is_some());
        begin_call(&CALL, known).expect("it is seen")
    };
    assert_eq!(known(), [true, true, false, true, true], "the rows have a pitch");
    streams::context_destroy(&CALL, || OK, 77);
    assert_eq!(known(), [false, false, false, true, true]);
}

/// A call of which only the name is known may add nodes to each capture, also to one in a default
/// stream.
#[test]
fn captures_in_all_streams_are_asked_for() {
    let _turn = TURN.lock();
    with_context();
    let mut created = 0x100;
    streams::create(&CALL, || OK, &mut created, 1);
    for (stream, other) in [(created, 2), (2, created)] {
        streams::capture_begin(&CALL, || OK, stream);
        let partial = begin_call(&CALL, |watch| {
            let [own, other] = [stream, other].map(|stream| watch.stream(&CALL, stream));
            let capture = watch.feed.capture_of(own).expect("it is captured");
            assert_eq!(watch.feed.capture_of(other), None);
            let before = watch.graphs.partial.contains(&capture);
            watch.note_captures();
            (before, watch.graphs.partial.contains(&capture))
        });
        assert_eq!(partial, Some((false, true)), "{stream:#x}");
        streams::capture_end(&CALL, || OK, stream, &mut 0x500);
    }
}

/// A copy between contexts is over when the call returns if the host has one side of it.
#[test]
fn a_copy_between_contexts_waits_for_the_host() {
    let _turn = TURN.lock();
    const DEVICE: Address = 0x1000_0000_0000;
    const PINNED: Address = 0x7c00_0000_0000;
    let call = Call { name: "cuMemcpyPeer", per_thread: false };
    let is_over = |sides: [Address; 2]| {
        with_context();
        begin_call(&call, |watch| {
            watch.allocated(DEVICE, 4096, Memory::Device);
            watch.allocated(PINNED, 4096, Memory::Host);
        });
        let block = |address| match address {
            PINNED => Block::host(address),
            _ => Block::device(address),
        };
        copies::peer(&call, || OK, sides.map(block), [64, 1, 1], [77, 77]);
        let is_over = begin_call(&call, |watch| {
            let stream = watch.stream(&call, 0);
            let awaited = watch.feed.await_stream(stream);
            watch.feed.host_is_after(&awaited)
        });
        is_over.expect("it is seen")
    };
    assert!(!is_over([DEVICE, DEVICE + 64]));
    for sides in [[PINNED, DEVICE], [DEVICE, PINNED], [PINNED, PINNED + 64]] {
        assert!(is_over(sides), "{sides:x?}");
    }
}

/// A green context is on the device that it was made for, which need not be the current context's: a
/// wait for the contexts of one device is none for those of another.
#[test]
fn green_contexts_are_on_their_own_device() {
    let _turn = TURN.lock();
    for device in [0, 1] {
        with_context();
        let mut green = 0x900;
        streams::green(&CALL, || OK, &mut green, device);
        streams::create_green(&CALL, || OK, &mut 0x901, green, 1);
        let seen = begin_call(&CALL, |watch| {
            let mut waited_for = watch.contexts.waited_for(77);
            waited_for.sort_unstable();
            (watch.contexts.named(device), waited_for, watch.contexts.of_several_devices())
        });
        let (named, waited_for, several) = seen.expect("it is seen");
        match device {
            0 => assert_eq!((named, waited_for.len(), several), (vec![77, green], 2, false)),
            _ => assert_eq!((named, waited_for.len(), several), (vec![green], 1, true)),
        }
    }
}

/// Each call that may end code has kernels looked up anew, and a context takes the modules of its
/// libraries with it. What was submitted to it is over.
#[test]
fn code_ends_with_its_module_and_its_context() {
    let _turn = TURN.lock();
    type End = fn();
    let ends: [(&str, End, u64, bool); 4] = [
        ("a module", || _ = memory::unload(&CALL, || OK, 50), 1, true),
        ("a primary context", || _ = memory::release_context(&CALL, || OK), 1, true),
        ("the context", || _ = streams::context_destroy(&CALL, || OK, 77), 1, false),
        ("another context", || _ = streams::context_destroy(&CALL, || OK, 78), 1, true),
    ];
    for (what, end, unloads, stays) in ends {
        with_context();
        memory::module_of(&CALL, || OK, &mut 61, 60);
        let mut stream = 0x100;
        streams::create(&CALL, || OK, &mut stream, 1);
        let work = begin_call(&CALL, |watch| {
            let stream = watch.stream(&CALL, stream);
            watch.feed.work(stream, &[]);
            let before = watch.kernels.unloads;
            (before, watch.feed.await_stream(stream))
        });
        let (before, work) = work.expect("it is seen");
        end();
        let after = begin_call(&CALL, |watch| {
            let is_over = watch.feed.host_is_after(&work);
            (watch.kernels.unloads - before, watch.memory.modules.contains_key(&61), is_over)
        });
        let is_over = what != "another context";
        assert_eq!(after, Some((unloads, stays, is_over)), "the end of {what}");
    }
}

/// Each copy and each memset counts as one, captured or not, and one of nothing as none.
#[test]
fn copies_are_counted_once() {
    let _turn = TURN.lock();
    const MEMORY: Address = 0x1000_0000_0000;
    with_context();
    begin_call(&CALL, |watch| watch.allocated(MEMORY, 4096, Memory::Device));
    let copy = |bytes| {
        let blocks = [MEMORY, MEMORY + 2048].map(Block::device);
        copies::copy(&CALL, || OK, blocks, [bytes, 1, 1], Some(2));
    };
    let set = |count| {
        copies::set(&CALL, || OK, Block::device(MEMORY), (0, 4), [count, 1], Some(2));
    };
    let count = || begin_call(&CALL, |watch| watch.seen.copies).expect("it is seen");
    let steps: [(&dyn Fn(), u64); 6] = [
        (&|| copy(64), 1),
        (&|| copy(0), 1),
        (&|| set(16), 2),
        (&|| set(0), 2),
        (&|| _ = streams::capture_begin(&CALL, || OK, 2), 2),
        (&|| copy(64), 3),
    ];
    for (at, (step, expected)) in steps.into_iter().enumerate() {
        step();
        assert_eq!(count(), expected, "step {at}");
    }
}

/// A look-up returns what the stand-in exports of a function: by whichever name it was exported
/// first, and also if the real library gives that itself.
#[test]
fn a_function_is_looked_up_as_it_is_exported() {
    let _turn = TURN.lock();
    let [real, own, alias] = [0x1000, 0x2000, 0x3000].map(core::ptr::without_provenance::<c_void>);
    super::exported(real, own);
    super::exported(real, alias);
    let all = super::EXPORTED.read().expect("nobody panics with it");
    let own_of = |function: *const c_void| all.get(&function.addr()).copied();
    assert_eq!([real, own, alias].map(own_of), [Some(0x2000), Some(0x2000), Some(0x3000)]);
    drop(all);
    super::EXPORTED.write().expect("nobody panics with it").clear();
}

/// What a look-up of the driver means: a name, the address that it has given, and what it returned.
#[test]
fn what_was_looked_up_is_in_front_of_the_function() {
    let _turn = TURN.lock();
    let at = core::ptr::without_provenance_mut::<c_void>;
    let [real, own, hooked, other] = [0x1000, 0x2000, 0x3000, 0x4000].map(at);
    let place = &crate::table::REAL[0];
    let before = place.swap(hooked, Ordering::Relaxed);
    let hook = super::hook_of(hooked).expect("it is hooked");
    let unlisted = |name: &CStr| super::unlisted().contains(name.to_str().expect("it is text"));
    let looked_up = |code: Code, name: Option<&CStr>, given: *mut c_void| {
        let mut function = given;
        let name = name.map_or(core::ptr::null(), CStr::as_ptr);
        // SAFETY: NULL or a C string, and a place for the address.
        unsafe { super::looked_up(code, name, &mut function) };
        function
    };
    // Without exports nothing is known of those that are missing.
    let first = c"cuTestGetFirst";
    assert_eq!((looked_up(0, Some(first), other), unlisted(first)), (other, false));
    super::exported(real, own);
    for (name, code, given, expected, is_unlisted) in [
        (c"cuTestGetExported", 0, real, own, false),
        (c"cuTestGetRefused", 1, real, real, false),
        (c"cuTestGetNothing", 0, core::ptr::null_mut(), core::ptr::null_mut(), false),
        (c"cuTestGetHooked", 0, hooked, hook, false),
        (c"cuTestGetOther", 0, other, other, true),
    ] {
        assert_eq!(looked_up(code, Some(name), given), expected, "{name:?}");
        assert_eq!(unlisted(name), is_unlisted, "{name:?}");
    }
    assert_eq!(looked_up(0, None, other), other);
    // Nothing is in front of what the driver lacks, hooked or not.
    for name in [c"cuMemAlloc_v2", c"cuTestFrobnicate"] {
        assert!(super::target(name, &|_| core::ptr::null_mut()).is_null(), "{name:?}");
    }
    place.store(before, Ordering::Relaxed);
    super::EXPORTED.write().expect("nobody panics with it").clear();
}

/// What the driver has refused is no copy, whether it would have waited for the next call or not.
#[test]
fn a_refused_copy_is_none() {
    let _turn = TURN.lock();
    const MEMORY: Address = 0x1000_0000_0000;
    with_context();
    let mut stream = 0x100;
    streams::create(&CALL, || OK, &mut stream, 1);
    begin_call(&CALL, |watch| watch.allocated(MEMORY, 4096, Memory::Device));
    let pageable = [0_u8; 64];
    let there = core::ptr::from_ref(&pageable).expose_provenance() as Address;
    for (from, code, copies) in [
        (Block::device(MEMORY + 256), 1, 0),
        (Block::host(there), 1, 0),
        (Block::device(MEMORY + 256), OK, 1),
        (Block::host(there), OK, 2),
    ] {
        let blocks = [Block::device(MEMORY), from];
        copies::copy(&CALL, || code, blocks, [64, 1, 1], Some(stream));
        let seen = begin_call(&CALL, |watch| watch.seen.copies);
        assert_eq!(seen, Some(copies), "{code}");
    }
}

/// What the driver says of each address.
static ANSWER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(OK);

extern "C" fn answers(_: *mut c_void, _: u32, _: Address) -> Code {
    ANSWER.load(Ordering::Relaxed)
}

extern "C" fn forty_bytes(base: *mut Address, bytes: *mut usize, address: Address) -> Code {
    // SAFETY: places for the answers.
    unsafe { (*base, *bytes) = (address - 24, 64) };
    OK
}

fn with_answers() {
    let resolve = |name: &CStr| match name.to_bytes() {
        b"cuCtxGetCurrent" => context as *mut c_void,
        b"cuCtxGetDevice" => device as *mut c_void,
        b"cuPointerGetAttribute" => answers as *mut c_void,
        b"cuMemGetAddressRange_v2" => forty_bytes as *mut c_void,
        _ => core::ptr::null_mut(),
    };
    start(&resolve, &Settings::from_text("log=/dev/null").expect("it is valid"));
}

/// After the release of a primary context the driver may not say at once whether memory is gone: it is
/// asked with each call until it does.
#[test]
fn memory_is_gone_once_the_driver_says_so() {
    let _turn = TURN.lock();
    const MEMORY: Address = 0x1000_0000_0000;
    const NOT_INITIALIZED: Code = 3;
    const NO_MEMORY: Code = 1;
    for (last, left) in [(OK, 1), (NO_MEMORY, 0)] {
        with_answers();
        begin_call(&CALL, |watch| watch.allocated(MEMORY, 4096, Memory::Device));
        ANSWER.store(NOT_INITIALIZED, Ordering::Relaxed);
        memory::release_context(&CALL, || OK);
        let count = || begin_call(&CALL, |watch| watch.memory.at.len());
        assert_eq!(count(), Some(1));
        ANSWER.store(last, Ordering::Relaxed);
        assert_eq!(count(), Some(left));
        // It is asked no longer.
        ANSWER.store(NO_MEMORY, Ordering::Relaxed);
        assert_eq!(count(), Some(left));
    }
    ANSWER.store(OK, Ordering::Relaxed);
}

/// An object has the bytes that the call says, or else those that the driver says; none is no memory.
#[test]
fn memory_of_an_object_has_its_bytes() {
    let _turn = TURN.lock();
    const MEMORY: Address = 0x1000_0000_0000;
    with_answers();
    let bytes = || {
        let bytes = |watch: &mut crate::watch::Watch| Some(watch.memory.at.get(&MEMORY)?.bytes);
        begin_call(&CALL, bytes).flatten()
    };
    memory::owns(&CALL, 50, MEMORY, 0);
    memory::owns(&CALL, 50, 0, 64);
    assert_eq!(bytes(), None);
    memory::map_resource(&CALL, || OK, &mut { MEMORY }, &mut 256, 60);
    assert_eq!(bytes(), Some(256));
    memory::map_resource(&CALL, || OK, &mut { MEMORY }, core::ptr::null_mut(), 61);
    assert_eq!(bytes(), Some(40));
}

/// A free waits for the device of its memory, if that is known, and nothing is assumed then.
#[test]
fn a_free_assumes_only_what_is_not_known() {
    let _turn = TURN.lock();
    const MEMORY: Address = 0x1000_0000_0000;
    for (kind, assumed) in [(Memory::Device, 0), (Memory::Managed, 1)] {
        with_answers();
        begin_call(&CALL, |watch| {
            watch.contexts.devices.insert(78, 1);
            watch.allocated(MEMORY, 4096, kind);
        });
        memory::free(&CALL, || OK, MEMORY);
        let count = begin_call(&CALL, |watch| watch.feed.assumed().count());
        assert_eq!(count, Some(assumed), "{kind:?}");
    }
}

/// A program may ask for the context of a green one again and again.
#[test]
fn a_context_stands_for_a_green_one_once() {
    let _turn = TURN.lock();
    const GREEN: Handle = 0x500;
    with_context();
    streams::green(&CALL, || OK, &mut { GREEN }, 0);
    for (context, count) in [(0x600, 1), (0x600, 1), (0x700, 2)] {
        streams::context_from_green(&CALL, || OK, &mut { context }, GREEN);
        let all = begin_call(&CALL, |watch| watch.contexts.greens[&GREEN].1.len());
        assert_eq!(all, Some(count));
    }
}
