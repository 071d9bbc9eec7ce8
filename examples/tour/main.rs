//! A tour of cuda-events on real work: timing, and ordering two streams.
//!
//! ```text
//! cargo run --example tour
//! cargo run --example tour -- --mib 4096 --device 1
//! ```
//!
//! Without an NVIDIA driver the tour uses the software driver, and prints that in its first line.
//! If a driver was named, it does not.

mod gpu;
#[path = "../memory/mod.rs"]
mod memory;
mod opened;
mod options;
mod order;
mod report;
mod timing;
mod trace;

use std::io::{self, Write};
use std::process::ExitCode;

use cuda_events::sys::CUresult;
use cuda_events::{Context, Device, Driver};

use crate::opened::Opened;
use crate::options::{HELP, Options};
use crate::report::{Failure, Table};
use crate::trace::{Spans, Trace};

fn main() -> ExitCode {
    let done = Options::parse(lexopt::Parser::from_env()).and_then(|options| match options {
        None => Ok(write!(io::stdout(), "{HELP}")?),
        Some(options) => tour(&options),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn tour(options: &Options) -> Result<(), Failure> {
    let mut out = io::stdout();
    let mut table = Table::new();

    let trace = options.trace.as_deref().map(Trace::new).transpose()?;
    let mut opened = Opened::new(options.driver.as_ref())?;
    if let Some(trace) = &trace {
        opened.driver = trace.observe(opened.driver)?;
    }
    if options.calls {
        opened.driver = opened.driver.observe(|call| eprintln!("{call}"))?;
    }
    let soft = "The tour runs on the software driver,";
    match (&opened.no_native, opened.driver.library()) {
        (Some(error), _) => {
            writeln!(out, "{soft} because no NVIDIA driver can be used: {error}")?;
        }
        (None, Some(library)) => writeln!(out, "The tour runs on {}", library.display())?,
        (None, None) => writeln!(out, "{soft} as --driver asks")?,
    }
    writeln!(out, "1. The driver and the device")?;
    match opened.driver.library() {
        Some(library) => writeln!(out, "   library  {}", library.display())?,
        None => writeln!(out, "   library  the software driver, part of this program")?,
    }
    writeln!(out, "   version  CUDA {}", opened.driver.version())?;
    let device = device(opened.driver, options.device)?;
    let name = device.name()?;
    writeln!(
        out,
        "   device   {}: {name}, {} MiB, {}",
        device.ordinal(),
        device.total_memory()? >> 20,
        device.uuid()?
    )?;
    // The name of its device shows the software driver, even if it was opened by its path.
    if name.contains("software") {
        writeln!(
            out,
            "   No GPU is used: all times and bandwidths are those of this machine's processor and \
             memory."
        )?;
    }

    let context = Context::primary(device)?;
    // The raw memory calls of this tour work in the current context. The crate's own calls need
    // none.
    let _current = context.make_current()?;
    let spans = Spans::new(&context, trace.is_some())?;
    timing::show(&mut out, &mut table, &context, &spans, options.bytes)?;
    order::show(&mut out, &mut table, &context, &spans)?;

    writeln!(out, "\n4. Results: {name}")?;
    write!(out, "{table}")?;
    if let Some(trace) = trace {
        trace.write(&mut out, &spans)?;
    }
    Ok(())
}

fn device(driver: Driver, ordinal: u32) -> Result<Device, Failure> {
    Device::new(driver, ordinal).map_err(|error| match error.code() {
        Some(CUresult::CUDA_ERROR_NO_DEVICE) => {
            Failure::Runtime(format!("{error} (--driver soft runs the tour without a GPU)"))
        }
        _ => error.into(),
    })
}
