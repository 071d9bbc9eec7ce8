//! Makes one call many times, for `tools/guard-soft-driver` to count instructions.
//!
//! `loops OPERATION CALLS [SETTINGS]`, with settings as in `CUDA_SOFT_DRIVER`.

use std::hint::black_box;
use std::ptr::null_mut;

use cuda_events::sys::{CUevent, CUresult, CUstream, Symbols};
use cuda_soft_driver::Builder;

fn good(code: CUresult) {
    assert_eq!(code, CUresult::CUDA_SUCCESS);
}

struct Desk {
    symbols: Symbols,
    stream: CUstream,
    other: CUstream,
    event: CUevent,
    memory: u64,
}

impl Desk {
    fn call(&self, operation: &str, calls: u32) {
        let Self { symbols, stream, other, event, memory } = self;
        for _ in 0..calls {
            // SAFETY: handles and memory that the driver gave out, and that are kept.
            unsafe {
                match black_box(operation) {
                    "record" => good((symbols.cuEventRecord)(*event, *stream)),
                    "query" => good((symbols.cuEventQuery)(*event)),
                    "wait" => good((symbols.cuStreamWaitEvent)(*other, *event, 0)),
                    "synchronize" => good((symbols.cuEventSynchronize)(*event)),
                    "stream_query" => good((symbols.cuStreamQuery)(*stream)),
                    "hand_over" => {
                        good((symbols.cuMemsetD8Async)(*memory, 1, 64, *stream));
                        good((symbols.cuEventRecord)(*event, *stream));
                        good((symbols.cuStreamWaitEvent)(*other, *event, 0));
                        good((symbols.cuMemsetD8Async)(*memory, 2, 64, *other));
                        good((symbols.cuEventRecord)(*event, *other));
                        good((symbols.cuStreamWaitEvent)(*stream, *event, 0));
                        good((symbols.cuEventSynchronize)(*event));
                    }
                    operation => panic!("there is no operation {operation}"),
                }
            }
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, operation, calls, settings @ ..] = &arguments[..] else {
        panic!("loops OPERATION CALLS [SETTINGS]");
    };
    let soft = Builder::from_text(&settings.concat()).expect("settings").build();
    let symbols = *soft.driver().symbols();
    let (mut context, mut event) = (null_mut(), null_mut());
    let (mut stream, mut other, mut memory) = (null_mut(), null_mut(), 0);
    // SAFETY: places for the handles.
    unsafe {
        good((symbols.cuInit)(0));
        good((symbols.cuDevicePrimaryCtxRetain)(&mut context, 0));
        good((symbols.cuCtxSetCurrent)(context));
        good((symbols.cuStreamCreate)(&mut stream, 1));
        good((symbols.cuStreamCreate)(&mut other, 1));
        good((symbols.cuEventCreate)(&mut event, 2));
        good((symbols.cuMemAlloc_v2)(&mut memory, 64));
        good((symbols.cuEventRecord)(event, stream));
    }
    let desk = Desk { symbols, stream, other, event, memory };
    desk.call(operation, calls.parse().expect("a number"));
}
