//! Waits for values in memory and writes of values: conditions, order, batches, and what older
//! drivers are asked.

use crate::common::{self, table};

use std::cell::RefCell;
use std::ffi::c_void;
use std::io::Write;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use common::{Gpu, Latch, check, not_run};
use cuda_events::mem_ops::{BarrierScope, MemOp, WaitCondition, WaitValueFlags, WriteValueFlags};
use cuda_events::sys::{
    CU_MEMHOSTALLOC_DEVICEMAP, CUdevice_attribute, CUdeviceptr, CUresult, CUstream,
    CUstreamBatchMemOpParams, CUstreamBatchMemOpType, Function,
};
use cuda_events::{
    Context, Device, Driver, Error, Progress, Stream, StreamOptions, StreamRef, Version,
};

const NO_WAIT: WaitValueFlags = WaitValueFlags::empty();
const NO_WRITE: WriteValueFlags = WriteValueFlags::empty();

/// Eight words of pinned host memory that the device sees too.
struct Words {
    context: Context,
    host: *mut c_void,
    device: CUdeviceptr,
}

impl Words {
    fn new(gpu: &Gpu) -> Self {
        let symbols = gpu.driver.symbols();
        let _current = gpu.context.make_current().expect("the context can be made current");
        let (mut host, mut device) = (null_mut(), 0);
        // SAFETY: places for the two addresses; the context is current.
        unsafe {
            check(
                Function::cuMemHostAlloc,
                (symbols.cuMemHostAlloc)(&mut host, 64, CU_MEMHOSTALLOC_DEVICEMAP),
            );
            let code = (symbols.cuMemHostGetDevicePointer_v2)(&mut device, host, 0);
            check(Function::cuMemHostGetDevicePointer_v2, code);
            host.cast::<u8>().write_bytes(0, 64);
        }
        Self { context: gpu.context.clone(), host, device }
    }

    fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < 8);
        // SAFETY: 64 bytes, aligned to a page; the device reads and writes whole words.
        unsafe { &*self.host.cast::<AtomicU64>().add(index) }
    }

    /// The lower half of a word.
    fn half(&self, index: usize) -> &AtomicU32 {
        assert!(index < 8);
        // SAFETY: as above.
        unsafe { &*self.host.cast::<AtomicU32>().add(2 * index) }
    }

    fn address(&self, index: usize) -> CUdeviceptr {
        self.device + 8 * index as CUdeviceptr
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        let _current = self.context.make_current().expect("the context can be made current");
        let free = self.context.driver().symbols().cuMemFreeHost;
        // SAFETY: allocated above, and the tests wait for their streams.
        check(Function::cuMemFreeHost, unsafe { free(self.host) });
    }
}

/// Whether the device can do it. It says so where it cannot.
fn has(gpu: &Gpu, attribute: CUdevice_attribute) -> bool {
    let has = gpu.device.attribute(attribute).expect("the driver knows the attribute") != 0;
    if !has {
        not_run(&format!("the device lacks {attribute:?}"));
    }
    has
}

/// Whether this driver can do any of this: before CUDA 11.7 a module parameter decides.
fn works(gpu: &Gpu) -> bool {
    common::needs(gpu.driver, Function::cuStreamWaitValue32_v2)
}

fn has_64_bits(gpu: &Gpu) -> bool {
    works(gpu) && has(gpu, CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS)
}

fn conditions(gpu: &Gpu) -> Vec<WaitCondition> {
    let nor = has(gpu, CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR);
    let mut conditions =
        vec![WaitCondition::GreaterOrEqual, WaitCondition::Equal, WaitCondition::And];
    conditions.extend(nor.then_some(WaitCondition::Nor));
    conditions
}

/// The value to wait for, one of memory that does not fulfil the condition, and one that does.
fn sample(condition: WaitCondition) -> (u64, u64, u64) {
    match condition {
        // As signed numbers, and round the corner: half the range below is less.
        WaitCondition::GreaterOrEqual => (5, 4, 5),
        WaitCondition::Equal => (5, 6, 5),
        WaitCondition::And => (0b0110, 0b1001, 0b1010),
        WaitCondition::Nor => (!0b0110, 0b0110, 0b0100),
    }
}

/// Waits, but not forever. Where a wait for a value has gone wrong everything else would wait for
/// ever too: dropping the stream's context, the next test. So the process ends.
#[track_caller]
fn is_done(stream: &StreamRef) {
    let done = stream.synchronize_timeout(Duration::from_secs(20));
    if done != Ok(Progress::Done) {
        let caller = std::panic::Location::caller();
        // Not eprintln, which the test harness keeps to itself.
        let _ = writeln!(std::io::stderr(), "{caller}: the stream is not done: {done:?}");
        std::process::abort();
    }
}

#[test]
fn a_stream_waits_for_32_bits_in_memory() {
    let gpu = Gpu::new();
    if !works(&gpu) {
        return;
    }
    let (stream, words) = (gpu.stream(), Words::new(&gpu));
    for condition in conditions(&gpu) {
        let (value, unmet, met) = sample(condition);
        words.half(0).store(unmet as u32, Ordering::SeqCst);
        // SAFETY: the word is there until the stream is done.
        let waiting =
            unsafe { stream.wait_value32(words.address(0), value as u32, condition, NO_WAIT) };
        assert_eq!(waiting, Ok(()));
        assert_eq!(stream.query(), Ok(Progress::Pending), "{condition:?}");
        words.half(0).store(met as u32, Ordering::SeqCst);
        is_done(&stream);
    }
}

#[test]
fn a_stream_waits_for_64_bits_in_memory() {
    let gpu = Gpu::new();
    if !has_64_bits(&gpu) {
        return;
    }
    let (stream, words) = (gpu.stream(), Words::new(&gpu));
    for condition in conditions(&gpu) {
        // In the upper half, where 32 bits would see nothing.
        let (value, unmet, met) = sample(condition);
        let up = |half: u64| {
            if condition == WaitCondition::Nor { (half << 32) | 0xffff_ffff } else { half << 32 }
        };
        words.word(1).store(up(unmet), Ordering::SeqCst);
        // SAFETY: the word is there until the stream is done.
        let waiting =
            unsafe { stream.wait_value64(words.address(1), up(value), condition, NO_WAIT) };
        assert_eq!(waiting, Ok(()));
        assert_eq!(stream.query(), Ok(Progress::Pending), "{condition:?}");
        words.word(1).store(up(met), Ordering::SeqCst);
        is_done(&stream);
    }
}

#[test]
fn greater_or_equal_goes_round_with_the_counter() {
    let gpu = Gpu::new();
    if !works(&gpu) {
        return;
    }
    let (stream, words) = (gpu.stream(), Words::new(&gpu));
    words.half(0).store(u32::MAX, Ordering::SeqCst);
    // SAFETY: the word is there until the stream is done.
    unsafe {
        // The counter stands one before zero, so that three is ahead of it and the value before it
        // is behind.
        let behind = stream.wait_value32(
            words.address(0),
            u32::MAX - 1,
            WaitCondition::GreaterOrEqual,
            NO_WAIT,
        );
        assert_eq!(behind, Ok(()));
        is_done(&stream);
        let ahead =
            stream.wait_value32(words.address(0), 3, WaitCondition::GreaterOrEqual, NO_WAIT);
        assert_eq!((ahead, stream.query()), (Ok(()), Ok(Progress::Pending)));
    }
    words.half(0).store(3, Ordering::SeqCst);
    is_done(&stream);
}

#[test]
fn values_are_written_after_the_work_before_them() {
    let gpu = Gpu::new();
    if !has_64_bits(&gpu) {
        return;
    }
    let (stream, words) = (gpu.stream(), Words::new(&gpu));
    words.word(0).store(u64::MAX, Ordering::SeqCst);
    let latch = Latch::hold(&stream);
    // SAFETY: the words are there until the stream is done.
    unsafe {
        assert_eq!(stream.write_value32(words.address(0), 7, NO_WRITE), Ok(()));
        assert_eq!(stream.write_value64(words.address(1), 8 << 32, NO_WRITE), Ok(()));
    }
    assert_eq!(
        (words.word(0).load(Ordering::SeqCst), words.word(1).load(Ordering::SeqCst)),
        (u64::MAX, 0)
    );
    latch.release();
    is_done(&stream);
    assert_eq!(words.word(0).load(Ordering::SeqCst), 0xffff_ffff_0000_0007, "32 bits and no more");
    assert_eq!(words.word(1).load(Ordering::SeqCst), 8 << 32);
}

#[test]
fn a_value_passes_from_stream_to_stream() {
    let gpu = Gpu::new();
    if !works(&gpu) {
        return;
    }
    let (stream, words) = (gpu.stream(), Words::new(&gpu));
    for (round, default) in
        [StreamRef::per_thread_default(&gpu.context), StreamRef::legacy_default(&gpu.context)]
            .iter()
            .enumerate()
    {
        let round = round as u32 + 1;
        let latch = Latch::hold(&stream);
        // SAFETY: the words are there until the streams are done.
        unsafe {
            assert_eq!(stream.write_value32(words.address(0), round, NO_WRITE), Ok(()));
            let waiting =
                default.wait_value32(words.address(0), round, WaitCondition::Equal, NO_WAIT);
            assert_eq!(waiting, Ok(()));
            assert_eq!(default.write_value32(words.address(1), round, NO_WRITE), Ok(()));
        }
        assert_eq!(default.query(), Ok(Progress::Pending));
        latch.release();
        is_done(default);
        assert_eq!(words.half(1).load(Ordering::SeqCst), round);
    }
}

#[test]
fn a_batch_is_done_in_its_order() {
    let gpu = Gpu::new();
    if !has_64_bits(&gpu) {
        return;
    }
    let (stream, words) = (gpu.stream(), Words::new(&gpu));
    words.word(0).store(u64::MAX, Ordering::SeqCst);
    let mut operations = [
        MemOp::write_value32(words.address(0), 1, NO_WRITE),
        MemOp::barrier(BarrierScope::System),
        MemOp::wait_value32(words.address(1), 2, WaitCondition::Equal, NO_WAIT),
        MemOp::write_value64(words.address(2), 3 << 32, NO_WRITE),
        MemOp::wait_value64(words.address(2), 3 << 32, WaitCondition::GreaterOrEqual, NO_WAIT),
        MemOp::barrier(BarrierScope::Device),
        MemOp::write_value32(words.address(3), 4, NO_WRITE),
    ];
    // SAFETY: the words are there until the stream is done.
    assert_eq!(unsafe { stream.batch_mem_op(&mut operations) }, Ok(()));
    // Not by time: the wait in the middle keeps the rest back until the host has written.
    assert_eq!(stream.query(), Ok(Progress::Pending));
    assert_eq!(
        (words.word(2).load(Ordering::SeqCst), words.half(3).load(Ordering::SeqCst)),
        (0, 0)
    );
    words.half(1).store(2, Ordering::SeqCst);
    is_done(&stream);
    assert_eq!(words.word(0).load(Ordering::SeqCst), 0xffff_ffff_0000_0001, "32 bits and no more");
    assert_eq!(
        (words.word(2).load(Ordering::SeqCst), words.half(3).load(Ordering::SeqCst)),
        (3 << 32, 4)
    );
}

#[test]
fn a_batch_has_at_most_255_operations() {
    let gpu = Gpu::new();
    if !works(&gpu) {
        return;
    }
    let (stream, words) = (gpu.stream(), Words::new(&gpu));
    let mut operations = vec![MemOp::write_value32(words.address(0), 1, NO_WRITE); 256];
    // SAFETY: the word is there until the stream is done.
    let (fits, too_many) = unsafe {
        (stream.batch_mem_op(&mut operations[1..]), stream.batch_mem_op(&mut operations))
    };
    assert_eq!(fits, Ok(()));
    assert_eq!(
        too_many.err().and_then(|error| error.code()),
        Some(CUresult::CUDA_ERROR_INVALID_VALUE)
    );
    is_done(&stream);
}

/// The driver's numbers: the whole system is 0, one device is 1.
#[test]
fn a_barrier_reaches_as_far_as_it_says() {
    for (scope, flags) in [(BarrierScope::System, 0), (BarrierScope::Device, 1)] {
        // SAFETY: the constructor has written this part.
        let barrier = unsafe { MemOp::barrier(scope).as_raw().memoryBarrier };
        assert_eq!(barrier.operation, CUstreamBatchMemOpType::CU_STREAM_MEM_OP_BARRIER);
        assert_eq!(barrier.flags, flags, "{scope:?}");
    }
}

#[test]
fn operations_print_as_their_kind() {
    let operation = MemOp::flush_remote_writes();
    // SAFETY: the constructor has written it.
    let kind = unsafe { operation.as_raw().operation };
    assert_eq!(kind, CUstreamBatchMemOpType::CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES);
    assert_eq!(format!("{operation:?}"), format!("MemOp({kind:?})"));
}

/// What a driver was asked: the call, the address, the value, and its flags.
type Asked = (Function, CUdeviceptr, u64, u32);

thread_local! {
    static ASKED: RefCell<Vec<Asked>> = const { RefCell::new(Vec::new()) };
}

fn asked() -> Vec<Asked> {
    ASKED.take()
}

macro_rules! stubs {
    ($($function:ident: $value:ty),*) => {
        /// Stands in for the entry point, and notes what it was asked.
        fn stub(function: Function) -> Option<*mut c_void> {
            $({
                extern "C" fn call(_: CUstream, address: CUdeviceptr, value: $value, flags: u32)
                    -> CUresult {
                    ASKED.with_borrow_mut(|asked|
                        asked.push((Function::$function, address, value.into(), flags)));
                    CUresult::CUDA_SUCCESS
                }
                if function == Function::$function {
                    return Some(call as *mut c_void);
                }
            })*
            extern "C" fn old(_: CUstream, count: u32, first: *mut CUstreamBatchMemOpParams,
                flags: u32) -> CUresult {
                note(Function::cuStreamBatchMemOp, count, first, flags)
            }
            extern "C" fn new(_: CUstream, count: u32, first: *mut CUstreamBatchMemOpParams,
                flags: u32) -> CUresult {
                note(Function::cuStreamBatchMemOp_v2, count, first, flags)
            }
            match function {
                Function::cuStreamBatchMemOp => Some(old as *mut c_void),
                Function::cuStreamBatchMemOp_v2 => Some(new as *mut c_void),
                _ => None,
            }
        }
    };
}

stubs! {
    cuStreamWaitValue32: u32, cuStreamWaitValue32_v2: u32, cuStreamWaitValue64: u64,
    cuStreamWaitValue64_v2: u64,
    cuStreamWriteValue32: u32, cuStreamWriteValue32_v2: u32, cuStreamWriteValue64: u64,
    cuStreamWriteValue64_v2: u64
}

fn note(
    function: Function,
    count: u32,
    first: *mut CUstreamBatchMemOpParams,
    flags: u32,
) -> CUresult {
    // SAFETY: the driver is given that many operations and may change them.
    let operations = unsafe { std::slice::from_raw_parts_mut(first, count as usize) };
    ASKED.with_borrow_mut(|asked| asked.push((function, 0, count.into(), flags)));
    for operation in operations {
        // SAFETY: the tests pass waits for 32 bits here.
        let wait = unsafe { operation.waitValue };
        // SAFETY: as above.
        let value = unsafe { wait.u.value };
        ASKED.with_borrow_mut(|asked| {
            asked.push((function, wait.address, value.into(), wait.flags))
        });
    }
    CUresult::CUDA_SUCCESS
}

const NEW: [Function; 5] = [
    Function::cuStreamWaitValue32_v2,
    Function::cuStreamWaitValue64_v2,
    Function::cuStreamWriteValue32_v2,
    Function::cuStreamWriteValue64_v2,
    Function::cuStreamBatchMemOp_v2,
];
const OLD: [Function; 5] = [
    Function::cuStreamWaitValue32,
    Function::cuStreamWaitValue64,
    Function::cuStreamWriteValue32,
    Function::cuStreamWriteValue64,
    Function::cuStreamBatchMemOp,
];

/// One of each operation, with all the flags that there are.
fn each(driver: Driver) -> [cuda_events::Result<()>; 5] {
    let context = Device::new(driver, 0).and_then(Context::primary).expect("a context");
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let (flush, unordered) = (WaitValueFlags::FLUSH, WriteValueFlags::NO_MEMORY_BARRIER);
    let mut batch = [
        MemOp::wait_value32(16, 5, WaitCondition::Equal, NO_WAIT),
        MemOp::wait_value32(20, 6, WaitCondition::Nor, flush),
    ];
    // SAFETY: no driver sees the addresses: the calls go to the stubs.
    unsafe {
        [
            stream.wait_value32(8, 1, WaitCondition::Equal, flush),
            stream.wait_value64(8, 2 << 32, WaitCondition::And, NO_WAIT),
            stream.write_value32(8, 3, unordered),
            stream.write_value64(8, 4 << 32, NO_WRITE),
            stream.batch_mem_op(&mut batch),
        ]
    }
}

fn expected(functions: [Function; 5]) -> Vec<Asked> {
    let [wait32, wait64, write32, write64, batch] = functions;
    vec![
        (wait32, 8, 1, 0x4000_0001),
        (wait64, 8, 2 << 32, 2),
        (write32, 8, 3, 1),
        (write64, 8, 4 << 32, 0),
        (batch, 0, 2, 0),
        (batch, 16, 5, 1),
        (batch, 20, 6, 0x4000_0003),
    ]
}

#[test]
fn the_newest_entry_points_are_asked() {
    let gpu = Gpu::new();
    if !common::needs(gpu.driver, cuda_events::sys::Function::cuStreamWaitValue32_v2) {
        return;
    }
    assert_eq!(each(table::replaced(gpu.driver, stub)), [const { Ok(()) }; 5]);
    assert_eq!(asked(), expected(NEW));
    let older = table::replaced(gpu.driver, |function| match NEW.contains(&function) {
        true => Some(null_mut()),
        false => stub(function),
    });
    assert_eq!(each(older), [const { Ok(()) }; 5]);
    assert_eq!(asked(), expected(OLD));
}

#[test]
fn a_driver_with_neither_says_so() {
    let gpu = Gpu::new();
    let hidden: Vec<Function> = NEW.into_iter().chain(OLD).collect();
    let driver = table::hiding(gpu.driver, &hidden);
    for (result, function) in each(driver).into_iter().zip(NEW) {
        let expected =
            Error::Unsupported { function, since: Version::new(11, 7), driver: driver.version() };
        assert_eq!(result, Err(expected));
    }
}
