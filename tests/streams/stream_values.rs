//! Waits for values in memory and writes of values: what the driver is given, and what older
//! drivers are given. What it does with them is a matter of the driver's rules.

use crate::common::{self, table};

use common::Gpu;
use common::counting::{calls_with_arguments, counted_context, fail_next};
use cuda_events::mem_ops::{BarrierScope, MemOp, WaitCondition, WaitValueFlags, WriteValueFlags};
use cuda_events::sys::{CUresult, Function};
use cuda_events::{Driver, Error, Result, Stream, StreamOptions};

const NO_WAIT: WaitValueFlags = WaitValueFlags::empty();
const FLUSH: WaitValueFlags = WaitValueFlags::FLUSH;
const NO_WRITE: WriteValueFlags = WriteValueFlags::empty();
const UNORDERED: WriteValueFlags = WriteValueFlags::NO_MEMORY_BARRIER;

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

/// Calls each operation of a stream, with the function that the driver is to be called by. The
/// addresses are none, so the driver itself is not called.
fn each(driver: Driver, functions: [Function; 5]) -> [(Result<()>, Vec<u64>); 5] {
    let context = counted_context(driver);
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let mut batch = [MemOp::flush_remote_writes(), MemOp::barrier(BarrierScope::Device)];
    let first = batch.as_ptr().addr() as u64;
    let call = |function, work: &mut dyn FnMut() -> Result<()>| {
        fail_next(function, CUresult::CUDA_SUCCESS);
        let (result, made) = calls_with_arguments(work);
        // Nothing is left for the next, where the driver had no such call.
        fail_next(Function::cuInit, CUresult::CUDA_SUCCESS);
        let arguments = made.into_iter().next().map_or_else(Vec::new, |(made, arguments)| {
            assert_eq!(made, function);
            arguments[1..].iter().map(|word| if *word == first { 0 } else { *word }).collect()
        });
        (result, arguments)
    };
    let [wait32, wait64, write32, write64, together] = functions;
    // SAFETY: the driver is not called.
    unsafe {
        [
            call(wait32, &mut || stream.wait_value32(8, 1, WaitCondition::Equal, FLUSH)),
            call(wait64, &mut || stream.wait_value64(8, 2 << 32, WaitCondition::And, NO_WAIT)),
            call(write32, &mut || stream.write_value32(8, 3, UNORDERED)),
            call(write64, &mut || stream.write_value64(8, 4 << 32, NO_WRITE)),
            call(together, &mut || stream.batch_mem_op(&mut batch)),
        ]
    }
}

#[test]
fn the_newest_entry_points_are_called() {
    let Some(gpu) = Gpu::with(Function::cuStreamWaitValue32_v2) else { return };
    let arguments = [
        vec![8, 1, 0x4000_0001],
        vec![8, 2 << 32, 2],
        vec![8, 3, 1],
        vec![8, 4 << 32, 0],
        vec![2, 0, 0],
    ];
    let expected = arguments.map(|arguments| (Ok(()), arguments));
    assert_eq!(each(gpu.driver, NEW), expected);
    assert_eq!(each(table::hiding(gpu.driver, &NEW), OLD), expected);
}

#[test]
fn a_driver_with_neither_is_unsupported() {
    let gpu = Gpu::new();
    let hidden: Vec<Function> = NEW.into_iter().chain(OLD).collect();
    let driver = table::hiding(gpu.driver, &hidden);
    for ((result, made), function) in each(driver, NEW).into_iter().zip(OLD) {
        let (since, driver) = (function.entry_point().version, driver.version());
        assert_eq!(result, Err(Error::Unsupported { function, since, driver }));
        assert_eq!(made, []);
    }
}

/// The driver's own numbers, in the struct of each operation.
#[test]
fn operations_of_a_batch_have_the_drivers_layout() {
    let greater = WaitCondition::GreaterOrEqual;
    for (operation, kind, address, value, flags) in [
        (MemOp::wait_value32(16, 5, greater, NO_WAIT), 1, 16, 5, 0),
        (MemOp::wait_value64(20, 6 << 32, WaitCondition::Nor, FLUSH), 4, 20, 6 << 32, 0x4000_0003),
        (MemOp::write_value32(24, 7, UNORDERED), 2, 24, 7, 1),
        (MemOp::write_value64(28, 8 << 32, NO_WRITE), 5, 28, 8 << 32, 0),
    ] {
        // SAFETY: a wait and a write have the same layout, and the constructor has written it.
        let raw = unsafe { operation.as_raw().waitValue };
        // SAFETY: as above; the constructor has written all 64 bits.
        let written = unsafe { raw.u.value64 };
        assert_eq!((raw.operation.0, raw.address, written), (kind, address, value));
        assert_eq!(raw.flags, flags, "{operation:?}");
    }
    for (scope, flags) in [(BarrierScope::System, 0), (BarrierScope::Device, 1)] {
        // SAFETY: the constructor has written this part.
        let barrier = unsafe { MemOp::barrier(scope).as_raw().memoryBarrier };
        assert_eq!((barrier.operation.0, barrier.flags), (6, flags), "{scope:?}");
    }
    // SAFETY: every operation begins with its kind.
    assert_eq!(unsafe { MemOp::flush_remote_writes().as_raw().operation.0 }, 3);
}
