//! Launches, in front of a driver that does nothing: the software driver has no kernels.

use core::ffi::{CStr, c_void};

use cuda_events::sys::more::CUlaunchConfig;
use cuda_events::sys::{CUlaunchAttribute, CUlaunchAttributeID, CUlaunchAttributeValue};
use cuda_order_check_engine::feed::Memory;
use cuda_order_check_engine::{Access, Finding, StreamId};

use super::{launch, launch_ex};
use crate::call::{Address, Call, Code, Handle, OK};
use crate::code::launch::Sizes;
use crate::hooks::declare::take_findings;
use crate::hooks::modules::load_kernel;
use crate::hooks::run::{Show, run};
use crate::hooks::{copies, events, memory, streams};
use crate::model::streams::NON_BLOCKING;
use crate::report::regions::{pop_region, push_region};
use crate::settings::Settings;
use crate::start::start;
use crate::state::blocks::{Block, OfBatch};
use crate::walk::{begin_call, locked};
use crate::watch::Watch;

/// A kernel with a structure of 64 bytes at its begin, and an address.
const STRUCTURE: Handle = 1;
/// One with an address, and a number.
const PLAIN: Handle = 2;
/// One that is not launched before the test of loads.
const FRESH: Handle = 3;

/// A grid of one block, with one thread.
const ONE: Sizes = [1; 6];

const MEMORY: Address = 0x1000_0000_0000;
const CALL: Call = Call { name: "cuLaunchKernel", per_thread: false };

extern "C" fn parameter(kernel: Handle, at: usize, offset: *mut usize, size: *mut usize) -> Code {
    let all = if kernel == STRUCTURE { [(0, 64), (64, 8)] } else { [(0, 8), (8, 4)] };
    let Some(parameter) = all.get(at) else { return 1 };
    // SAFETY: places for the answers.
    unsafe { (*offset, *size) = *parameter };
    OK
}

extern "C" fn kernel_name(name: *mut *const core::ffi::c_char, _: Handle) -> Code {
    // SAFETY: a place for the answer.
    unsafe { *name = c"_Z3addPfi".as_ptr() };
    OK
}

extern "C" fn context(context: *mut Handle) -> Code {
    // SAFETY: as above.
    unsafe { *context = 77 };
    OK
}

/// A new watch, with two streams and 4 KiB of memory.
fn anew() -> [Handle; 2] {
    let resolve = |name: &CStr| match name.to_bytes() {
        b"cuKernelGetParamInfo" => parameter as *mut c_void,
        b"cuKernelGetName" => kernel_name as *mut c_void,
        b"cuCtxGetCurrent" => context as *mut c_void,
        _ => core::ptr::null_mut(),
    };
    let settings = Settings::from_text("log=/dev/null,possible=on").expect("it is valid");
    start(&resolve, &settings);
    for mut stream in [100, 101] {
        streams::create(&CALL, || OK, &mut stream, NON_BLOCKING);
    }
    begin_call(&CALL, |watch| watch.allocated(MEMORY, 4096, Memory::Device));
    [100, 101]
}

fn write(stream: Handle) {
    let call = Call { name: "cuMemsetD8Async", per_thread: false };
    begin_call(&call, |watch| {
        watch.feed.work(StreamId(stream as u64), &[Access::write(MEMORY + 256, 256)]);
    });
}

/// An event after the work of one stream, for which another one waits.
fn order(from: Handle, to: Handle) {
    let mut event = 500;
    events::create(&CALL, || OK, &mut event);
    events::record(&CALL, || OK, event, from);
    streams::wait_event(&CALL, || OK, to, event, 0);
    events::destroy(&CALL, || OK, event);
}

fn plain(stream: Handle, address: Address) {
    let number = 3_u32;
    let all = [(&raw const address).expose_provenance(), (&raw const number).expose_provenance()];
    launch(&CALL, || OK, (PLAIN, ONE), stream, all.as_ptr(), core::ptr::null());
}

/// A launch whose structure has this word at byte 16.
fn structured(stream: Handle, word: Address) {
    let structure = [1, 2, word, 3, 4, 5, 6, 7_u64];
    let last = 0_u64;
    let all = [structure.as_ptr().expose_provenance(), (&raw const last).expose_provenance()];
    launch(&CALL, || OK, (STRUCTURE, ONE), stream, all.as_ptr(), core::ptr::null());
}

/// The names of both calls of each finding.
fn found() -> Vec<String> {
    let all = take_findings();
    let reports = all.iter().filter_map(Finding::report);
    reports
        .map(|report| format!("{} | {}", report.first.call.name, report.second.call.name))
        .collect()
}

/// One test, as there is one watch in a process.
#[test]
fn what_a_launch_reads() {
    let _turn = crate::lock::TURN.lock();
    // An address among the parameters.
    let [a, b] = anew();
    write(a);
    plain(b, MEMORY + 256);
    assert_eq!(found(), ["cuMemsetD8Async | cuLaunchKernel of add(float*, int)"]);
    order(a, b);
    plain(b, MEMORY + 256);
    order(b, a);
    write(a);
    assert_eq!(found(), [""; 0]);
    // Addresses of other bytes, and of no known memory.
    for address in [MEMORY, MEMORY + 255, MEMORY + 512, MEMORY + 4096, 0] {
        plain(b, address);
    }
    assert_eq!(found(), [""; 0]);

    // All parameters in one buffer.
    let buffer = [MEMORY + 256, 0];
    let extra = [1, buffer.as_ptr().expose_provenance(), 2, 0, 0];
    launch(&CALL, || OK, (PLAIN, ONE), b, core::ptr::null(), extra.as_ptr());
    assert_eq!(found().len(), 1);

    // A launch that fails reads nothing.
    let [a, b] = anew();
    write(a);
    let address = MEMORY + 256;
    let all = [(&raw const address).expose_provenance(); 2];
    launch(&CALL, || 1, (PLAIN, ONE), b, all.as_ptr(), core::ptr::null());
    assert_eq!(found(), [""; 0]);

    // A word of a structure is one, at each launch.
    let [a, b] = anew();
    write(a);
    structured(b, MEMORY);
    structured(b, 0);
    assert_eq!(found(), [""; 0]);
    structured(b, MEMORY + 256);
    assert_eq!(found(), ["cuMemsetD8Async | cuLaunchKernel of add(float*, int)"]);

    // Without its code nobody knows whether the kernel accesses the byte.
    let [a, b] = anew();
    locked(|watch| watch.feed.observer_mut().settings.possible = false);
    write(a);
    (0..3).for_each(|_| plain(b, MEMORY + 256));
    assert_eq!(found(), [""; 0]);
    let lines = locked(|watch| watch.feed.observer().lines_of_possible());
    assert_eq!(
        lines.expect("it watches"),
        [
            "1 possible finding was not reported: --possible",
            "possible, 1 time: add(float*, int): its image was not seen",
        ]
    );

    // An event that a launch records.
    let [a, b] = anew();
    plain(a, MEMORY + 256);
    let mut event = 500;
    events::create(&CALL, || OK, &mut event);
    let mut records = attribute(7, event as u64);
    let config = with_attribute(a, &mut records);
    launch_ex(&CALL, || OK, &config, PLAIN, all.as_ptr(), core::ptr::null());
    streams::wait_event(&CALL, || OK, b, event, 0);
    write(b);
    assert_eq!(found(), [""; 0]);

    // The first load of a kernel waits, as on a card; later ones do not.
    let [a, b] = anew();
    write(a);
    load_kernel(&CALL, || OK, core::ptr::null_mut(), FRESH);
    plain(b, MEMORY + 256);
    assert_eq!(found(), [""; 0]);
    order(b, a);
    write(a);
    load_kernel(&CALL, || OK, core::ptr::null_mut(), FRESH);
    plain(b, MEMORY + 256);
    assert_eq!(found().len(), 1);

    // What has this handle after code was unloaded is another kernel, and its load waits.
    order(b, a);
    memory::unload(&CALL, || OK, 0);
    write(a);
    load_kernel(&CALL, || OK, core::ptr::null_mut(), FRESH);
    plain(b, MEMORY + 256);
    assert_eq!(found(), [""; 0]);

    assumed_orders_are_counted();
    nodes_have_addresses();
    what_waits();
    handles_come_again();
}

/// An attribute of this kind whose value begins with a word.
fn attribute(id: u32, word: u64) -> CUlaunchAttribute {
    let mut attribute = CUlaunchAttribute::default();
    let mut pad = [0; 64];
    pad[..8].copy_from_slice(&word.to_ne_bytes());
    (attribute.id, attribute.value) = (CUlaunchAttributeID(id), CUlaunchAttributeValue { pad });
    attribute
}

/// A launch in a stream with one attribute.
fn with_attribute(stream: Handle, attribute: &mut CUlaunchAttribute) -> CUlaunchConfig {
    let stream = core::ptr::without_provenance_mut(stream);
    CUlaunchConfig { hStream: stream, attrs: attribute, numAttrs: 1, ..CUlaunchConfig::default() }
}

/// Launches and batches that the driver may begin, or end, in another order.
fn assumed_orders_are_counted() {
    let [a, _] = anew();
    let ex = |id, word: u64| {
        let mut attribute = attribute(id, word);
        let config = with_attribute(a, &mut attribute);
        launch_ex(&CALL, || OK, &config, FRESH, core::ptr::null(), core::ptr::null());
    };
    // No attribute of these kinds, one that is off, one that is on, and two kinds of early events.
    [(1, 1), (6, 0), (6, 1), (7, 600), (12, 601)].into_iter().for_each(|(id, word)| ex(id, word));
    let call = Call { name: "cuMemcpyBatchAsync", per_thread: false };
    let (from, to, bytes) = ([MEMORY; 2], [MEMORY + 64, MEMORY + 128], [8; 2]);
    let none = OfBatch { all: core::ptr::null(), first: core::ptr::null(), count: 0 };
    for count in [1, 2] {
        let sides = [to.as_ptr(), from.as_ptr()];
        copies::batch(&call, || OK, sides, bytes.as_ptr(), count, none, a);
    }
    // A call that comes in the midst of another one.
    crate::guard::own(|| crate::guard::own(|| ()));
    begin_call(&Call { name: "cuCtxGetDevice", per_thread: false }, |_| ());
    // The first unload comes beside work, the second one does not.
    let call = Call { name: "cuLibraryUnload", per_thread: false };
    write(a);
    memory::unload(&call, || OK, 0);
    memory::unload(&call, || OK, 0);
    let all = begin_call(&CALL, |watch| {
        let assumed = watch.feed.assumed();
        assumed.map(|(what, after, count)| format!("{what}: {after} {count}")).collect::<Vec<_>>()
    });
    assert_eq!(
        all.expect("it is seen"),
        [
            "a kernel that may begin early begins after the one before it: cuLaunchKernel of \
             add(float*, int) 1",
            "an event that a kernel records early is recorded at its end: cuLaunchKernel of \
             add(float*, int) 2",
            "calls that were not seen before it have ordered everything: cuCtxGetDevice 1",
            "it orders everything: cuLibraryUnload 1",
            "the copies of a batch come one after the other: cuMemcpyBatchAsync 1",
        ]
    );
}

/// A graph's node has the addresses that a launch would have, and is none.
fn nodes_have_addresses() {
    let [_, _] = anew();
    let node = |word: Address| {
        let structure = [0, 0, word, 0, 0, 0, 0, 0_u64];
        let all = [structure.as_ptr().expose_provenance(); 2];
        let reads = |watch: &mut Watch| {
            watch.kernels.pointed_to(
                &watch.feed,
                &watch.questions,
                STRUCTURE,
                ONE,
                all.as_ptr(),
                core::ptr::null(),
            )
        };
        let call = Call { name: "cuGraphInstantiateWithFlags", per_thread: false };
        let all = begin_call(&call, reads).expect("it watches");
        all.into_iter().map(|access| (access.range.start, access.launch().is_some())).collect()
    };
    let (none, one): (Vec<_>, Vec<_>) = (node(0), node(MEMORY + 256));
    assert_eq!((none, one), (vec![], vec![(MEMORY + 256, true)]));
    assert_eq!(locked(|watch| watch.seen.kernels), Some(0));
}

/// A handle that was destroyed may be a new object's, and others may see it fail.
fn handles_come_again() {
    let [mut stream, _] = anew();
    let mut event = 500;
    let fail = |name, argument, handle| {
        let made = core::cell::Cell::new(None);
        let show = |_: bool, show: &mut Show<'_>| {
            show(argument, Some(handle), &String::new);
        };
        run(name, &made, || 400, || 400, show);
        take_findings().len()
    };
    let fails = |event, stream| {
        [fail("cuEventQuery", "event", event), fail("cuStreamQuery", "stream", stream)]
    };
    for created in [true, false] {
        events::create(&CALL, || OK, &mut event);
        events::destroy(&CALL, || OK, event);
        streams::destroy(&CALL, || OK, stream);
        if created {
            events::create(&CALL, || OK, &mut event);
            streams::create(&CALL, || OK, &mut stream, 0);
        }
        assert_eq!(fails(event, stream), if created { [0, 0] } else { [1, 1] });
    }
    assert_eq!(fail("cuMemAlloc_v2", "bytes", event), 0, "another argument");
    events::record(&CALL, || OK, event, 101);
    assert_eq!(fail("cuEventElapsedTime_v2", "start", event), 0, "it is there all the same");
}

/// How many findings there were, without a call that everything comes before.
fn reported() -> usize {
    locked(|watch| watch.feed.observer().reported()).unwrap_or_default()
}

/// Launches, and writes of device memory, come to the checker with a later call, as what they were.
fn what_waits() {
    let set = |stream, address| {
        let call = Call { name: "cuMemsetD8Async", per_thread: false };
        let to = Block::device(address);
        copies::set(&call, || OK, to, (0, 1), [256, 1], Some(stream));
    };
    // After as many as can wait, without another call.
    let [a, b] = anew();
    write(a);
    plain(b, MEMORY + 256);
    for _ in 1..63 {
        plain(b, 0);
    }
    assert_eq!(reported(), 0);
    plain(b, 0);
    assert_eq!(reported(), 1);
    assert_eq!(found().len(), 1);

    // In the order of the calls, with their numbers, threads and regions, and as in a capture.
    let [a, b] = anew();
    push_region("upload");
    set(a, MEMORY);
    pop_region();
    let other = std::thread::Builder::new().name("loader".to_owned()).spawn(move || {
        plain(b, 0);
        plain(b, MEMORY);
        set(b, MEMORY + 512);
    });
    other.expect("it starts").join().expect("it ends");
    plain(a, MEMORY + 512);
    assert_eq!(reported(), 0);
    let all = take_findings();
    let texts: Vec<String> = all.iter().map(ToString::to_string).collect();
    assert_eq!(texts.len(), 2, "{texts:?}");
    for text in [
        "  writes   cuMemsetD8Async in stream 0x64, call #4,",
        "           in region upload\n",
        "  reads    kernel add in stream 0x65, call #6,",
    ] {
        assert!(texts[0].contains(text), "{text}: {}", texts[0]);
    }
    assert!(!texts[1].contains("region"), "{}", texts[1]);
    let thread = |text: &str| text.matches(", by thread loader").count();
    assert_eq!((thread(&texts[0]), thread(&texts[1])), (1, 1), "{texts:?}");

    // What the host has seen comes after what waited, and a copy that it has a part in waits for
    // nothing.
    let [a, b] = anew();
    set(a, MEMORY);
    let synchronized = Call { name: "cuStreamSynchronize", per_thread: false };
    streams::synchronize(&synchronized, || OK, a);
    set(b, MEMORY);
    assert_eq!(found(), [""; 0]);
    set(a, MEMORY);
    assert_eq!(found().len(), 1);
}
