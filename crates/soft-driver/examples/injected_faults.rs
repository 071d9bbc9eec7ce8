//! Tests a function by failing each driver call that it makes, one after the other.
//!
//! It runs on the software driver, on every machine: a GPU does not fail on request.

use cuda_events::sys::CUresult;
use cuda_events::{Context, Device, Driver, Event, EventFlags, Result, Stream, StreamOptions};
use cuda_soft_driver::{Fault, SoftDriver};

/// The function under test: two streams, the second after the first.
fn under_test(driver: Driver) -> Result<()> {
    let context = Context::primary(Device::new(driver, 0)?)?;
    let first = Stream::new(&context, StreamOptions::new())?;
    let second = Stream::new(&context, StreamOptions::new())?;
    let event = Event::new(&context, EventFlags::empty())?;
    event.record(&first)?;
    second.wait_event(&event)?;
    second.synchronize()
}

fn main() {
    // Each call in turn, until no call is left to fail.
    let mut failed = 0;
    for call in 1.. {
        let soft = SoftDriver::new();
        let driver = soft.driver();
        soft.inject(Fault::on("cu*").nth(call).answer(CUresult::CUDA_ERROR_OUT_OF_MEMORY));
        let result = under_test(driver);
        if soft.injected() == 0 {
            assert!(result.is_ok(), "nothing failed: {result:?}");
            break;
        }
        match result {
            Err(error) => println!("call {call}: {error}"),
            Ok(()) => println!("call {call}: made by a drop, which returns no error"),
        }
        failed += 1;
    }
    assert!(failed > 10, "{failed} calls");

    // One call, by its name: the error is the driver's, and everything is given back.
    let soft = SoftDriver::new();
    soft.inject(Fault::on("cuStreamWaitEvent*").answer(CUresult::CUDA_ERROR_LAUNCH_FAILED));
    let error = under_test(soft.driver()).unwrap_err();
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_LAUNCH_FAILED));
    assert!(error.is_sticky());
    soft.assert_no_leaks();
    println!("{failed} calls failed: each returned an error, or was made by a drop");
}
