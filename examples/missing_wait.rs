//! Finds a missing wait: two streams use the same bytes, and nothing orders them.
//!
//! It runs on the software driver, on every machine. `check_order` does the same on a GPU.

use cuda_events::{Context, Device, Event, EventFlags, Result, Stream, StreamOptions};
use cuda_soft_driver::{OrderCheck, SoftDriver};

const BUFFER: u64 = 0x7000;

/// One stream writes a buffer, another one reads it.
fn pass_on(soft: &SoftDriver, waits: bool) -> Result<()> {
    let context = Context::primary(Device::new(soft.driver(), 0)?)?;
    let uploads = Stream::new(&context, StreamOptions::new())?;
    let work = Stream::new(&context, StreamOptions::new())?;
    let ready = Event::new(&context, EventFlags::empty())?;

    // The checker sees copies. The test reports the accesses of kernels.
    soft.writes(&uploads, BUFFER, 256);
    ready.record(&uploads)?;
    if waits {
        work.wait_event(&ready)?;
    }
    soft.reads(&work, BUFFER, 256);

    // A test that only runs cannot tell the two apart: both end with the same bytes.
    uploads.synchronize()?;
    work.synchronize()
}

fn main() -> Result<()> {
    let soft = SoftDriver::builder().check_order(OrderCheck::Report).build();

    pass_on(&soft, false)?;
    let findings = soft.order_findings();
    assert_eq!(findings.len(), 1);
    assert!(findings[0].to_string().contains("missing order"), "{findings:?}");

    let soft = SoftDriver::builder().check_order(OrderCheck::Report).build();
    pass_on(&soft, true)?;
    assert!(soft.order_findings().is_empty());
    println!("without the wait there is a report; with the wait there is no report");
    Ok(())
}
