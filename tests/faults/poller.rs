//! Calls that others make for the program: the poller's for completions, and those that an observer
//! is told of.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context as TaskContext, Poll, Waker};

use cuda_events::sys::{CUresult, Function};
use cuda_events::{
    Context, Device, Error, Event, EventFlags, IpcEventDescriptor, Result, Stream, StreamOptions,
};
use cuda_soft_driver::Fault;
use cuda_timelines::Completion;

use crate::common::futures::block_on;
use crate::exhaustive::{CODES, soft_driver};
use crate::harness::{Failure, Mode, attempt};
use crate::scenarios::{Run, Scenario};

/// The name of the thread that asks for completions.
const POLLER: &str = "cuda-events";

/// A query of the poller's that fails ends the wait with its error; "not ready" does not. A capture
/// mode that could not be changed ends it too: queries in another one would break captures.
#[test]
fn every_call_of_the_poller_fails() {
    let mut runs = 0;
    for &code in CODES {
        for (function, from_then_on) in [
            ("cuEventQuery", false),
            ("cuEventQuery", true),
            ("cuThreadExchangeStreamCaptureMode", true),
        ] {
            if from_then_on && code == CUresult::CUDA_ERROR_NOT_READY {
                // Then it is not ready, as long as it lasts.
                continue;
            }
            let failed = match function {
                "cuEventQuery" => Function::cuEventQuery,
                _ => Function::cuThreadExchangeStreamCaptureMode,
            };
            for nth in 1..=3 {
                if failed != Function::cuEventQuery && nth > 1 {
                    break;
                }
                let soft = soft_driver((13, 0));
                let driver = soft.driver();
                {
                    let context = Context::primary(Device::new(driver, 0).expect("device 0"))
                        .expect("a context");
                    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
                    soft.hold_host_functions(true);
                    stream.launch_host_function(|| ()).expect("a host function");
                    let event = stream.record_event(EventFlags::empty()).expect("an event");
                    let fault = Fault::on(function).in_thread(POLLER).nth(nth).answer(code);
                    soft.inject(if from_then_on { fault.from_then_on() } else { fault.once() });
                    let mut completion = Completion::new(event);
                    let polled = std::pin::Pin::new(&mut completion)
                        .poll(&mut TaskContext::from_waker(Waker::noop()));
                    assert_eq!(polled, Poll::Pending);
                    // The stream is held, so the poller asks until it is told something else than
                    // "not ready".
                    let started = std::time::Instant::now();
                    while soft.injected() == 0 {
                        assert!(
                            started.elapsed() < std::time::Duration::from_secs(60),
                            "{function}: nobody asks"
                        );
                        std::thread::yield_now();
                    }
                    soft.hold_host_functions(false);
                    let result = block_on(completion);
                    if failed == Function::cuEventQuery && code == CUresult::CUDA_ERROR_NOT_READY {
                        assert_eq!(result, Ok(()), "{function} {code}");
                    } else {
                        assert_eq!(result, Err(Error::Driver { function: failed, code }));
                    }
                    runs += 1;
                }
                soft.clear_faults();
                // At once: the poller has nothing that it could drop later.
                soft.assert_no_leaks();
                assert!(soft.misuses().is_empty(), "{:?}", soft.misuses());
            }
        }
    }
    println!("{runs:6} injected runs of the poller");
    assert!(runs > 70);
}

fn observed(run: &Run) -> Result<()> {
    let context = Context::primary(Device::new(run.driver, 0)?)?;
    let stream = Stream::new(&context, StreamOptions::new())?;
    let event = Event::new(&context, EventFlags::TIMING)?;
    event.record(&stream)?;
    event.synchronize()?;
    event.elapsed_ms(&event)?;
    context.synchronize()?;
    event.close()
}

/// The same rules hold behind an observer, which sees the calls that fail as it sees the others. A
/// process has few places for observers, so that one driver is used for all runs.
#[test]
fn every_observed_call_fails() {
    let soft = soft_driver((13, 0));
    let [told, refused] = [Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0))];
    let driver = soft.driver().observe({
        let (told, refused) = (told.clone(), refused.clone());
        move |call| {
            told.fetch_add(1, Ordering::Relaxed);
            refused.fetch_add(u64::from(call.result == CUresult(4242)), Ordering::Relaxed);
        }
    });
    let driver = driver.expect("the first observer of this process");
    let scenario = Scenario { name: "observed", run: observed, closes: &[], silent: &[] };
    let import = IpcEventDescriptor::from_raw([0; 64], false);
    let mut runs = 0;
    for mode in [Mode::Once, Mode::FromThenOn] {
        for &code in CODES {
            for nth in 1.. {
                let before = (
                    soft.injected(),
                    soft.calls(),
                    told.load(Ordering::Relaxed),
                    refused.load(Ordering::Relaxed),
                );
                let failure = Failure { nth, code, mode };
                let seen = attempt(&soft, driver, &scenario, true, import, Some(failure));
                let seen = seen.unwrap_or_else(|what| panic!("{failure:?}: {what}"));
                if !seen.struck {
                    break;
                }
                assert_eq!(
                    told.load(Ordering::Relaxed) - before.2,
                    soft.calls() - before.1,
                    "calls and tellings"
                );
                if code == CUresult(4242) {
                    assert_eq!(
                        refused.load(Ordering::Relaxed) - before.3,
                        soft.injected() - before.0
                    );
                }
                runs += 1;
            }
        }
    }
    println!("{runs:6} injected runs of observed calls");
    assert!(runs > 300);
}
