//! A timeline between two containers: the consumer waits for the work of the exporter.
//!
//! The consumer runs in its own namespaces, if `unshare` can create them. It gets the file
//! descriptor as its standard input. `timeline_processes` sends it over a Unix socket, and kills
//! exporters. Linux only.

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use std::os::fd::AsFd;
    use std::path::Path;
    use std::process::{Command, Stdio};

    use cuda_events::{Context, Stream, StreamOptions};
    use cuda_timelines::{
        CudaStreamExt, ImportedTimeline, Timeline, TimelineDescriptor, TimelineFile,
    };

    // The first GPU, or the software driver on a machine without one.
    let soft = cuda_soft_driver::SoftDriver::new();
    let context = Context::primary(soft.gpu_or_soft()?)?;
    let stream = Stream::new(&context, StreamOptions::new())?;

    if let [value, descriptor @ ..] = &*std::env::args().skip(1).collect::<Vec<_>>() {
        // This process was started as the consumer.
        let bytes: Vec<u8> =
            descriptor.iter().map(|byte| byte.parse()).collect::<Result<_, _>>()?;
        let file = std::io::stdin().as_fd().try_clone_to_owned()?;
        let descriptor = TimelineDescriptor::from_bytes(&bytes)?;
        let timeline = ImportedTimeline::open(&context, file, &descriptor)?;
        let point = timeline.point(value.parse()?)?;
        stream.wait_point(point)?;
        // ... work on the result of the exporter is put into `stream` ...
        point.wait()?; // An error if the exporter is killed.
        println!("process {}: value {} was reached", std::process::id(), point.value());
        return Ok(stream.synchronize()?);
    }

    println!("on {}, process {}", context.device().name()?, std::process::id());
    let file = TimelineFile::new(&context)?;
    let timeline = Timeline::shared(stream, &file)?; // Work goes into `timeline.stream()`.
    let point = timeline.signal()?;

    let options = ["--user", "--map-root-user", "--pid", "--fork", "--ipc", "--mount-proc"];
    let unshare = |program: &Path| {
        let mut command = Command::new("unshare");
        command.args(options).arg(program);
        command
    };
    let tried = unshare(Path::new("true")).stderr(Stdio::null()).status();
    let namespaces = tried.is_ok_and(|status| status.success());
    println!("the consumer runs in its own namespaces: {namespaces}");
    let program = std::env::current_exe()?;
    let mut consumer = if namespaces { unshare(&program) } else { Command::new(program) };
    consumer.arg(point.value().to_string());
    consumer.args(timeline.descriptor().ok_or("unshared")?.to_bytes().iter().map(u8::to_string));
    assert!(consumer.stdin(file.as_fd().try_clone_to_owned()?).status()?.success());
    Ok(())
}
