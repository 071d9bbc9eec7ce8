//! Two processes share an event: one records it, the other waits for it.
//!
//! Use a timeline where a process may be killed or runs in a container: `timeline_containers`.

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use cuda_events::ipc::ExporterProcess;
use cuda_events::{Context, Event, EventFlags, IpcEventDescriptor, Stream, StreamOptions};
use cuda_soft_driver::SoftDriver;

fn main() -> Result<(), Box<dyn Error>> {
    // The first GPU, or the software driver on a machine without one.
    let soft = SoftDriver::new();
    let context = Context::primary(soft.gpu_or_soft()?)?;
    match std::env::args().nth(1) {
        None => exporter(&context),
        Some(descriptor) => importer(&context, descriptor.parse()?),
    }
}

fn exporter(context: &Context) -> Result<(), Box<dyn Error>> {
    println!("on {}", context.device().name()?);
    // Work that ends when the importer has seen that it is pending.
    let stream = Stream::new(context, StreamOptions::new())?;
    let (end, ended) = channel();
    stream.launch_host_function(move || {
        let _ = ended.recv();
    })?;
    let event = stream.record_event(EventFlags::INTERPROCESS)?;

    let mut child = Command::new(std::env::current_exe()?)
        .arg(event.ipc_descriptor()?.to_string())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut said = BufReader::new(child.stdout.take().ok_or("no pipe to the importer")?).lines();
    assert_eq!(said.next().ok_or("the importer has ended")??, "Pending");
    end.send(())?;
    assert_eq!(said.next().ok_or("the importer has ended")??, "Done");
    assert!(child.wait()?.success());
    println!("the importer saw that the exporter's work was done");
    Ok(()) // The event lives until here, after its last use in the importer.
}

fn importer(context: &Context, descriptor: IpcEventDescriptor) -> Result<(), Box<dyn Error>> {
    // SAFETY: the exporter is this program, and keeps its event until this process has ended.
    let event = unsafe { Event::from_ipc_descriptor(context, &descriptor) }?;
    println!("{:?}", event.query()?);
    // `wait_for` also returns if the exporter ends.
    let exporter = ExporterProcess::of(&descriptor);
    println!("{:?}", exporter.wait_for(&event, Duration::from_secs(60))?);
    Ok(())
}
