//! Finds missing order between streams on a real GPU: an observer of the driver reports the
//! program's calls to the order checker (`cuda-order-check-engine`).
//!
//! The program is that of the tour's part about order: a producer writes a buffer, and a consumer
//! copies it to the host. First the consumer does not wait, which is the planted error. Then it
//! waits for an event of the producer. The program ends with code 1 unless the checker reports
//! exactly the first case.
//!
//! Without an NVIDIA driver it runs on the software driver, and prints that. The software driver
//! can also check order itself, and sees more: `SoftDriver::builder().check_order(..)`.

use std::error::Error;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use cuda_events::sys::{CUresult, Function};
use cuda_events::{Context, Device, Driver, Event, EventFlags, Stream, StreamOptions, observer};
use cuda_order_check_engine::{
    Access, Call, Checker, ContextId, EventId, Finding, Op, StreamId, StreamKind, ThreadId, What,
};
use cuda_soft_driver::SoftDriver;
use memory::{DeviceBuffer, HostBuffer};

mod memory;

/// The checker, and the number of the call.
#[derive(Default)]
struct Feeder {
    checker: Checker,
    calls: u64,
}

impl Feeder {
    /// Reports a call to the checker. It handles only the calls that this program makes: for any
    /// program, it would also need host functions, values, graphs and the default streams.
    fn report(&mut self, call: &observer::Call<'_>) {
        self.calls += 1;
        if call.result != CUresult::CUDA_SUCCESS {
            return;
        }
        let argument = |at: usize| call.arguments.get(at).copied().unwrap_or_default();
        let (stream, event) = (|at| StreamId(argument(at)), |at| EventId(argument(at)));
        let created = call.created.unwrap_or_default();
        let mut accesses = Vec::new();
        let op = match call.function {
            Function::cuStreamCreate | Function::cuStreamCreateWithPriority => Op::StreamCreate {
                stream: StreamId(created),
                context: ContextId(0),
                kind: if argument(1) & 1 == 0 {
                    StreamKind::Blocking
                } else {
                    StreamKind::NonBlocking
                },
                name: None,
            },
            Function::cuStreamDestroy_v2 => Op::StreamDestroy { stream: stream(0) },
            Function::cuEventCreate => {
                Op::EventCreate { event: EventId(created), interprocess: false, name: None }
            }
            Function::cuEventDestroy_v2 => Op::EventDestroy { event: event(0) },
            Function::cuEventRecord => {
                Op::Record { event: event(0), stream: stream(1), external: false }
            }
            Function::cuStreamWaitEvent => {
                Op::Wait { stream: stream(0), event: event(1), external: false }
            }
            Function::cuEventSynchronize => Op::Synchronize { what: What::Event(event(0)) },
            Function::cuStreamSynchronize => Op::Synchronize { what: What::Stream(stream(0)) },
            Function::cuCtxSynchronize => Op::Synchronize { what: What::Context(ContextId(0)) },
            Function::cuMemsetD32Async => {
                accesses.push(Access::write(argument(0), 4 * argument(2)));
                Op::Work { stream: stream(3), accesses: &accesses }
            }
            Function::cuMemcpyDtoHAsync_v2 => {
                accesses.push(Access::read(argument(1), argument(2)));
                accesses.push(Access::write(argument(0), argument(2)));
                Op::Work { stream: stream(3), accesses: &accesses }
            }
            _ => return,
        };
        self.checker.apply(Call::new(call.function.name(), self.calls, ThreadId(1)), op);
    }
}

const BYTES: usize = 1 << 20;

/// A producer and a consumer, which waits for the producer or does not.
fn pass_on(context: &Context, waits: bool) -> cuda_events::Result<()> {
    let (device, host) = (DeviceBuffer::new(context, BYTES)?, HostBuffer::new(context, BYTES)?);
    let producer = Stream::new(context, StreamOptions::new())?;
    let consumer = Stream::new(context, StreamOptions::new())?;
    let written = Event::new(context, EventFlags::empty())?;
    device.fill(0x2222_2222, &producer)?;
    written.record(&producer)?;
    if waits {
        consumer.wait_event(&written)?;
    }
    device.download(&host, &consumer)?;
    consumer.synchronize()?;
    producer.synchronize()
}

fn run() -> Result<bool, Box<dyn Error>> {
    let soft;
    let driver = match Driver::load() {
        Ok(driver) => driver,
        Err(error) => {
            println!("No NVIDIA driver was found ({error}); this run uses the software driver.");
            soft = SoftDriver::new();
            soft.driver()
        }
    };
    let mut feeder = Feeder::default();
    let thread = ThreadId(1);
    feeder.checker.apply(Call::new("", 0, thread), Op::ThreadName { thread, name: "main" });
    let feeder = Arc::new(Mutex::new(feeder));
    let fed = feeder.clone();
    let report = move |call: &observer::Call<'_>| {
        fed.lock().unwrap_or_else(PoisonError::into_inner).report(call);
    };
    let driver = driver.observe(report)?;
    let device = Device::new(driver, 0)?;
    println!("{}, CUDA {}", device.name()?, driver.version());
    let context = Context::primary(device)?;
    let _current = context.make_current()?;

    let findings = |waits: bool| -> cuda_events::Result<Vec<Finding>> {
        pass_on(&context, waits)?;
        Ok(feeder.lock().unwrap_or_else(PoisonError::into_inner).checker.take_findings())
    };
    println!("\nThe consumer does not wait:");
    let planted = findings(false)?;
    for finding in &planted {
        println!("{finding}");
    }
    println!("\nThe consumer waits:");
    let mended = findings(true)?;
    for finding in &mended {
        println!("{finding}");
    }
    if mended.is_empty() {
        println!("no report");
    }
    Ok(matches!(planted.as_slice(), [Finding::Report(_)]) && mended.is_empty())
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("check_order: expected a report of the planted error only");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("check_order: {error}");
            ExitCode::from(2)
        }
    }
}
