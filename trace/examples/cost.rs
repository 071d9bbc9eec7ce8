//! Compares the cost of a span with two bare timing records. The bare records call the driver's
//! function pointers, as a C program does.
//!
//! ```text
//! cargo run --release --package cuda-events-trace --example cost [-- --soft]
//! ```
//!
//! Each round times the three loops one after the other, over the same number of spans. The ratios
//! are those of single rounds; the printed ones are medians.

use std::time::Instant;

use cuda_events::sys::CUresult;
use cuda_events::{Context, Device, Driver, Event, EventFlags, Stream, StreamOptions};
use cuda_events_trace::Tracer;
use cuda_soft_driver::SoftDriver;

const ROUNDS: usize = 51;
const SPANS: usize = 2000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let soft = std::env::args().any(|argument| argument == "--soft").then(SoftDriver::new);
    let driver = match &soft {
        Some(soft) => soft.driver(),
        None => Driver::load()?,
    };
    let device = Device::new(driver, 0)?;
    let context = Context::primary(device)?;
    let stream = Stream::new(&context, StreamOptions::new())?;
    let event = || Event::new(&context, EventFlags::TIMING);
    let (start, end) = (event()?, event()?);
    let tracer = Tracer::new(&context)?;
    tracer.reserve(SPANS + 10)?;

    let record = driver.symbols().cuEventRecord;
    let each = |began: Instant| began.elapsed().as_nanos() as f64 / SPANS as f64;
    let mut rows: [Vec<f64>; 5] = Default::default();
    for round in 0..ROUNDS + 1 {
        let (mut bare, mut recorded, mut drained) = (0.0, 0.0, 0.0);
        // The one and the other first.
        for part in [round % 2, 1 - round % 2] {
            stream.synchronize()?;
            let began = Instant::now();
            if part == 0 {
                for _ in 0..SPANS {
                    for event in [&start, &end] {
                        // SAFETY: event and stream are alive.
                        let code = unsafe { record(event.as_raw(), stream.as_raw()) };
                        if code != CUresult::CUDA_SUCCESS {
                            return Err(format!("cuEventRecord: {code}").into());
                        }
                    }
                }
                bare = each(began);
            } else {
                for _ in 0..SPANS {
                    tracer.span(&stream, "span")?.end(&stream)?;
                }
                recorded = each(began);
                stream.synchronize()?;
                let began = Instant::now();
                let spans = tracer.drain_ready()?.len();
                drained = each(began);
                if spans != SPANS {
                    // An anchor that came late: this round tells nothing.
                    tracer.finish(std::time::Duration::from_secs(10));
                    drained = f64::NAN;
                }
            }
        }
        // The first one warms up.
        if round > 0 && drained.is_finite() {
            let ratios = [recorded / bare, (recorded + drained) / bare];
            for (row, value) in
                rows.iter_mut().zip([bare, recorded, drained].into_iter().chain(ratios))
            {
                row.push(value);
            }
        }
    }
    println!(
        "{}, CUDA {}; ns per span, medians of {} rounds",
        device.name()?,
        driver.version(),
        rows[0].len()
    );
    let names = [
        "two bare timing records",
        "a span, recorded",
        "a span, drained",
        "recorded, x bare",
        "recorded and drained, x bare",
    ];
    for (name, mut row) in names.into_iter().zip(rows) {
        row.sort_by(f64::total_cmp);
        let at = |part: usize| row.get(row.len() * part / 10).copied().unwrap_or(f64::NAN);
        println!("{name:30} {:9.2} ({:.2} .. {:.2})", at(5), at(1), at(9));
    }
    Ok(())
}
