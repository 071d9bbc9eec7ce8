//! The poller's own calls, with each of them failing.

use crate::common;

use std::pin::Pin;
use std::task::{Context as TaskContext, Poll, Waker};

use common::futures::{block_on, wait_until};
use cuda_events::sys::{CUresult, Function};
use cuda_events::{Context, Device, Error, EventFlags, Stream, StreamOptions};
use cuda_soft_driver::{Fault, OnMisuse, SoftDriver};
use cuda_timelines::Completion;

/// The name of the thread that asks for completions.
const POLLER: &str = "cuda-events";

/// A query of the poller's that fails ends the wait with its error; "not ready" does not. A capture
/// mode that could not be changed ends it too: queries in another one would break captures.
#[test]
fn every_call_of_the_poller_fails() {
    let (query, exchange) = (Function::cuEventQuery, Function::cuThreadExchangeStreamCaptureMode);
    let not_ready = CUresult::CUDA_ERROR_NOT_READY;
    for code in [CUresult::CUDA_ERROR_LAUNCH_FAILED, not_ready, CUresult(4242)] {
        for (function, nth, from_then_on) in
            [(query, 1, false), (query, 2, false), (query, 1, true), (exchange, 1, true)]
        {
            // Then it is not ready, as long as it lasts.
            if from_then_on && code == not_ready {
                continue;
            }
            let soft = SoftDriver::builder().on_misuse(OnMisuse::Error).build();
            {
                let context = Device::new(soft.driver(), 0).and_then(Context::primary);
                let context = context.expect("the context");
                let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
                soft.hold_host_functions(true);
                stream.launch_host_function(|| ()).expect("a host function");
                let event = stream.record_event(EventFlags::empty()).expect("an event");
                let fault = Fault::on(function.name()).in_thread(POLLER).nth(nth).answer(code);
                soft.inject(if from_then_on { fault.from_then_on() } else { fault.once() });
                let mut completion = Completion::new(event);
                let mut task = TaskContext::from_waker(Waker::noop());
                assert_eq!(Pin::new(&mut completion).poll(&mut task), Poll::Pending);
                // The stream is held, so the poller asks until the answer is not "not ready".
                wait_until("the poller asks", || soft.injected() > 0);
                soft.hold_host_functions(false);
                let expected = match (function, code) {
                    (Function::cuEventQuery, code) if code == not_ready => Ok(()),
                    _ => Err(Error::Driver { function, code }),
                };
                assert_eq!(block_on(completion), expected);
            }
            soft.clear_faults();
            // At once: the poller has nothing that it could drop later.
            soft.assert_no_leaks();
            assert!(soft.misuses().is_empty(), "{:?}", soft.misuses());
        }
    }
}
