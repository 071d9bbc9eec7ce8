//! Copies between two devices that the software driver does not have, in front of a driver that does
//! nothing.

use core::ffi::{CStr, c_uint, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

use cuda_order_check_engine::StreamId;
use cuda_order_check_engine::feed::Memory;

use super::{batch, copy, peer, set};
use crate::call::{Address, Call, Code, Handle, OK};
use crate::hooks::declare::take_findings;
use crate::hooks::streams;
use crate::model::streams::NON_BLOCKING;
use crate::settings::Settings;
use crate::start::start;
use crate::state::blocks::{Block, OfBatch};
use crate::walk::{begin_call, locked};
use crate::watch::Watch;

/// Contexts: two of the first device, and one of the second.
const FIRST: Handle = 0x100;
const OTHER: Handle = 0x102;
const SECOND: Handle = 0x101;
const HERE: Address = 0x1000_0000_0000;
const THERE: Address = 0x7f01_0000_0000;
const BYTES: usize = 4096;
const CALL: Call = Call { name: "cuMemsetD8Async", per_thread: false };

static CURRENT: AtomicUsize = AtomicUsize::new(FIRST);

extern "C" fn current(context: *mut Handle) -> Code {
    // SAFETY: a place for the answer.
    unsafe { *context = CURRENT.load(Ordering::Relaxed) };
    OK
}

extern "C" fn device(device: *mut i32) -> Code {
    // SAFETY: as above.
    unsafe { *device = (CURRENT.load(Ordering::Relaxed) & 1) as i32 };
    OK
}

extern "C" fn attribute(value: *mut u32, which: c_uint, address: Address) -> Code {
    if address < HERE {
        return 1;
    }
    // SAFETY: as above.
    unsafe {
        *value = match which {
            // The memory of a device, and its number.
            2 => 2,
            9 => u32::from(address >= THERE),
            _ => 0,
        }
    };
    OK
}

/// A new watch, with a stream of each context, and memory of both devices.
fn anew() -> [Handle; 3] {
    let resolve = |name: &CStr| match name.to_bytes() {
        b"cuCtxGetCurrent" => current as *mut c_void,
        b"cuCtxGetDevice" => device as *mut c_void,
        b"cuPointerGetAttribute" => attribute as *mut c_void,
        _ => core::ptr::null_mut(),
    };
    start(&resolve, &Settings::from_text("log=/dev/null,stacks=off").expect("it is valid"));
    let all = [(FIRST, 0x201), (OTHER, 0x202), (SECOND, 0x203)];
    for (context, mut stream) in all {
        CURRENT.store(context, Ordering::Relaxed);
        streams::create(&CALL, || OK, &mut stream, NON_BLOCKING);
        let memory = if context == SECOND { THERE } else { HERE };
        begin_call(&CALL, |watch| watch.allocated(memory, BYTES, Memory::Device));
    }
    CURRENT.store(FIRST, Ordering::Relaxed);
    all.map(|(_, stream)| stream)
}

/// All copies of a batch.
fn in_batch(stream: Handle, pairs: &[[Address; 2]]) {
    let call = Call { name: "cuMemcpyBatchAsync", per_thread: false };
    let [to, from] = [0, 1].map(|at| pairs.iter().map(|pair| pair[at]).collect::<Vec<_>>());
    let bytes = vec![64; pairs.len()];
    let none = OfBatch { all: core::ptr::null(), first: core::ptr::null(), count: 0 };
    let sides = [to.as_ptr(), from.as_ptr()];
    batch(&call, || OK, sides, bytes.as_ptr(), pairs.len(), none, stream);
}

/// A wait for the second device, and then work of the first one that nothing else orders.
fn wait_and_write(stream: Handle, waits: bool) -> usize {
    if waits {
        CURRENT.store(SECOND, Ordering::Relaxed);
        streams::context_synchronize(&CALL, || OK, 0);
    }
    CURRENT.store(OTHER, Ordering::Relaxed);
    let (to, one) = (Block::device(HERE), [64, 1]);
    set(&CALL, || OK, to, (0, 1), one, Some(stream));
    take_findings().len()
}

/// As for single copies: without access of peers a copy to the other device is work of that one, too.
#[test]
fn a_batch_is_work_of_both_devices() {
    let _turn = crate::lock::TURN.lock();
    let (copied, beside) = ([THERE, HERE], [HERE + 1024, HERE + 2048]);
    // One among copies within the first device, at each place.
    for pairs in [&[copied][..], &[beside, copied], &[copied, beside]] {
        for waits in [true, false] {
            let [a, other, _] = anew();
            in_batch(a, pairs);
            assert_eq!(wait_and_write(other, waits), usize::from(!waits), "{pairs:x?}, {waits}");
        }
    }
    // Within a device it is not, nor with access.
    let [a, other, _] = anew();
    in_batch(a, &[[HERE + 1024, HERE]]);
    assert_eq!(wait_and_write(other, true), 1);
    let [a, other, _] = anew();
    begin_call(&CALL, |watch| _ = watch.contexts.peers.insert((FIRST, SECOND)));
    in_batch(a, &[copied]);
    assert_eq!(wait_and_write(other, true), 1);
}

/// A copy without a stream is work of both contexts, also of one that has no stream yet.
#[test]
fn a_copy_between_contexts_is_work_of_both() {
    let _turn = crate::lock::TURN.lock();
    let call = Call { name: "cuMemcpyPeer", per_thread: false };
    for (waits, has_stream) in [(true, true), (true, false), (false, true), (false, false)] {
        let [_, other, second] = anew();
        if !has_stream {
            streams::destroy(&CALL, || OK, second);
        }
        let blocks = [THERE, HERE].map(Block::device);
        peer(&call, || OK, blocks, [64, 1, 1], [SECOND, FIRST]);
        let found = wait_and_write(other, waits);
        assert_eq!(found, usize::from(!waits), "{waits}, {has_stream}");
    }
}

/// What two H200s have shown: between which contexts, with which access, a copy of a stream is work of
/// its own device alone. Where that is not known the order is assumed, and counted.
#[test]
fn a_copy_is_work_of_the_other_device_unless_it_has_access() {
    let _turn = crate::lock::TURN.lock();
    let call = Call { name: "cuMemcpyDtoDAsync_v2", per_thread: false };
    let assumed = || {
        let count = |watch: &mut Watch| {
            let mut all = watch.feed.assumed();
            all.find(|assumed| assumed.0 == "a copy is work of the other device, too")
                .map_or(0, |assumed| assumed.2)
        };
        locked(count).expect("it watches")
    };
    for case in 0..16 {
        let [there, back, is_source, is_pool] = [0, 1, 2, 3].map(|at| case >> at & 1 == 1);
        let alone = there && !(is_source && back) && !is_pool;
        for waits in [true, false] {
            let [a, other, _] = anew();
            begin_call(&CALL, |watch| {
                watch.contexts.peers.extend(there.then_some((FIRST, SECOND)));
                watch.contexts.peers.extend(back.then_some((SECOND, FIRST)));
                watch.memory.at.retain(|address, _| !is_pool || *address != THERE);
            });
            let blocks = if is_source { [HERE, THERE] } else { [THERE, HERE] };
            copy(&call, || OK, blocks.map(Block::device), [64, 1, 1], Some(a));
            assert_eq!(assumed(), u64::from(is_pool), "{case:b}");
            let found = wait_and_write(other, waits);
            assert_eq!(found, usize::from(alone || !waits), "{case:b}, {waits}");
        }
    }
    // A stream of a third device: what is assumed is work of both.
    let [_, other, _] = anew();
    let third = 0x204;
    begin_call(&CALL, |watch| {
        watch.contexts.devices.insert(0x104, 2);
        watch.created(third, (0x104, 2), NON_BLOCKING);
        watch.contexts.peers.extend([(0x104, SECOND), (0x104, FIRST)]);
    });
    copy(&call, || OK, [THERE, HERE].map(Block::device), [64, 1, 1], Some(third));
    assert_eq!((assumed(), wait_and_write(other, true)), (1, 0));
}

/// One side of a copy between contexts may be memory of the host, which has none. The copy is also
/// after the work of the current context, once, whichever the others are.
#[test]
fn a_copy_between_contexts_is_after_the_work_of_each() {
    let _turn = crate::lock::TURN.lock();
    let call = Call { name: "cuMemcpyPeer", per_thread: false };
    for (contexts, orders) in [
        ([SECOND, FIRST], [true, true, false]),
        ([SECOND, 0], [true, true, false]),
        ([0, SECOND], [true, true, false]),
        ([SECOND, OTHER], [true, true, true]),
        ([FIRST, FIRST], [true, false, false]),
        ([0, 0], [true, false, false]),
    ] {
        // Streams of the first, the second and the other context, with work before the copy or after.
        for (at, is_ordered) in orders.into_iter().enumerate() {
            for is_before in [true, false] {
                let streams = anew();
                let stream = [streams[0], streams[2], streams[1]][at];
                let work = || {
                    let to = Block::device(if is_before { HERE } else { THERE });
                    set(&CALL, || OK, to, (0, 1), [64, 1], Some(stream));
                };
                if is_before {
                    work();
                }
                let blocks = [THERE, HERE].map(Block::device);
                peer(&call, || OK, blocks, [64, 1, 1], contexts);
                if !is_before {
                    work();
                }
                let expected = usize::from(!is_ordered);
                assert_eq!(take_findings().len(), expected, "{contexts:x?} {at} {is_before}");
            }
        }
    }
}

/// It returns when its stream is done if any of its copies is to ordinary memory.
#[test]
fn a_batch_waits_for_ordinary_memory() {
    let _turn = crate::lock::TURN.lock();
    let [own, to_host] = [[HERE, HERE + 512], [0x1000, HERE + 1024]];
    for (pairs, waits) in [(&[own][..], false), (&[own, to_host], true), (&[to_host, own], true)] {
        let [stream, ..] = anew();
        in_batch(stream, pairs);
        let is_over = locked(|watch| {
            let work = watch.feed.await_stream(StreamId(stream as u64));
            watch.feed.host_is_after(&work)
        });
        assert_eq!(is_over, Some(waits), "{pairs:x?}");
    }
}

/// The answers to CU_POINTER_ATTRIBUTE_MEMORY_TYPE and CU_POINTER_ATTRIBUTE_IS_MANAGED: the last two digits
/// of the address. The one before them is what the driver returns.
extern "C" fn answers(value: *mut u32, which: c_uint, address: Address) -> Code {
    let digit = if which == 8 { address % 10 } else { address / 10 % 10 };
    // SAFETY: a place for the answer.
    unsafe { *value = digit as u32 };
    (address / 100) as Code
}

/// A pool, or a map, may have memory that others see at any time: the driver says which.
#[test]
fn memory_that_is_given_is_where_the_driver_says() {
    use crate::model::copies::{given, location};
    use crate::state::blocks::Location::{Device, Managed, Mapped, Pageable};
    let _turn = crate::lock::TURN.lock();
    let [device, host, managed, refused] = [20, 10, 21, 120];
    for asks in [true, false] {
        let resolve = |name: &CStr| match name.to_bytes() {
            b"cuPointerGetAttribute" if asks => answers as *mut c_void,
            _ => core::ptr::null_mut(),
        };
        start(&resolve, &Settings::from_text("log=/dev/null").expect("it is valid"));
        let found = locked(|watch| {
            let all = [device, host, managed, refused];
            let at = all.map(|at| location(watch, &Block::any(at)));
            assert!(all.iter().all(|at| location(watch, &Block::device(*at)) == Device));
            assert!(all.iter().all(|at| location(watch, &Block::host(*at)) == Pageable));
            (at, all.map(|at| given(watch, at)))
        });
        let (at, all) = found.expect("no error");
        let (device, seen) = (Memory::Device, Memory::Exported);
        if asks {
            assert!(at == [Device, Mapped, Managed, Pageable]);
            assert_eq!(all, [device, seen, seen, seen]);
        } else {
            assert!(at == [Pageable; 4]);
            assert_eq!(all, [device; 4]);
        }
    }
}
