//! A producer and a consumer in two processes. The consumer outlives three producers, each of which
//! is killed in the middle of its work.
//!
//! The producer sends the file of its timelines over a Unix socket, and then a line for each
//! signal. The consumer's stream waits for each signal before its own work, and its host checks
//! whether the stream's result is valid. The processes share nothing else, so it works between
//! containers.

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

const USAGE: &str = "\
usage: timeline_processes [--soft]

A consumer process outlives three producer processes. Without an NVIDIA driver, or with --soft, the
software driver is used. Linux only.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments[..] {
        [] => role::consumer(false),
        ["--soft"] => role::consumer(true),
        ["producer", soft] => role::producer(soft == "soft"),
        ["--help" | "-h"] => write!(io::stdout(), "{USAGE}").map_err(Into::into),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of the output has seen enough, like `head`.
        Err(error) if is_closed_pipe(&*error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("timeline_processes: {error}");
            ExitCode::FAILURE
        }
    }
}

fn is_closed_pipe(error: &(dyn Error + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(not(target_os = "linux"))]
mod role {
    use super::*;

    pub fn consumer(_soft: bool) -> Result<(), Box<dyn Error>> {
        Err("processes share timelines on Linux only".into())
    }

    pub fn producer(soft: bool) -> Result<(), Box<dyn Error>> {
        consumer(soft)
    }
}

#[cfg(target_os = "linux")]
mod role {
    use std::io::{BufRead, BufReader, IoSlice, IoSliceMut};
    use std::mem::MaybeUninit;
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
    use std::os::unix::net::UnixStream;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use cuda_events::{Context, Device, Driver, Stream, StreamOptions};
    use cuda_soft_driver::SoftDriver;
    use cuda_timelines::{
        CudaStreamExt, ImportedTimeline, Timeline, TimelineDescriptor, TimelineFile,
    };
    use rustix::net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags,
    };

    use super::*;

    /// The number of signals that the consumer waits for. Then it kills the producer.
    const SIGNALS: usize = 3;

    /// The context, and whether its driver is the software driver.
    fn context(soft: bool) -> Result<(Context, bool), Box<dyn Error>> {
        let real = if soft { None } else { Driver::load().ok() };
        let driver = match real {
            Some(driver) => driver,
            // For the life of the process.
            None => Box::leak(Box::new(SoftDriver::new())).driver(),
        };
        Ok((Context::primary(Device::new(driver, 0)?)?, real.is_none()))
    }

    pub fn consumer(soft: bool) -> Result<(), Box<dyn Error>> {
        let (context, soft) = context(soft)?;
        let mut out = io::stdout();
        let library = context.device().driver().library();
        let driver =
            library.map_or("linked into this program".into(), |path| path.to_string_lossy());
        writeln!(out, "on {}, driver: {driver}", context.device().name()?)?;
        let stream = Stream::new(&context, StreamOptions::new())?;
        for number in 1..=3 {
            let (socket, theirs) = UnixStream::pair()?;
            let mut producer = Command::new(std::env::current_exe()?)
                .args(["producer", if soft { "soft" } else { "real" }])
                // The socket is its standard input.
                .stdin(Stdio::from(OwnedFd::from(theirs)))
                .spawn()?;
            let outlived = outlive(number, &context, &stream, socket, || {
                producer.kill()?;
                producer.wait().map(drop)
            });
            // No process is left, whatever has failed.
            let _ = (producer.kill(), producer.wait());
            outlived?;
        }
        stream.synchronize()?;
        writeln!(out, "the consumer outlived three producers")?;
        Ok(())
    }

    fn outlive(
        number: u32,
        context: &Context,
        stream: &Stream,
        socket: UnixStream,
        kill: impl FnOnce() -> io::Result<()>,
    ) -> Result<(), Box<dyn Error>> {
        let mut out = io::stdout();
        let (file, bytes) = receive(&socket)?;
        let descriptor = TimelineDescriptor::from_bytes(&bytes)?;
        let produced = ImportedTimeline::open(context, file, &descriptor)?;
        let mut lines = BufReader::new(&socket).lines();
        let mut value = || -> Result<u64, Box<dyn Error>> {
            Ok(lines.next().ok_or("the producer has ended")??.parse()?)
        };
        for _ in 0..SIGNALS {
            let point = produced.point(value()?)?;
            stream.wait_point(point)?;
            // ... the consumer's work is put into `stream` ...
            point.wait()?;
            writeln!(out, "producer {number}: value {} was reached", point.value())?;
        }
        // This one is never reached: the producer is killed in the middle of the work before it.
        let point = produced.point(value()?)?;
        stream.wait_point(point)?;
        kill()?;
        match point.wait() {
            Ok(()) => return Err("the producer signalled an impossible value".into()),
            Err(error) => writeln!(out, "producer {number}: value {}: {error}", point.value())?,
        }
        // The stream was released as if the value had come. The error says what its work is worth.
        stream.synchronize()?;
        Ok(())
    }

    pub fn producer(soft: bool) -> Result<(), Box<dyn Error>> {
        let input = io::stdin();
        let socket = UnixStream::from(input.as_fd().try_clone_to_owned()?);
        let (context, _) = context(soft)?;
        let file = TimelineFile::new(&context)?;
        let timeline = Timeline::shared(Stream::new(&context, StreamOptions::new())?, &file)?;
        let descriptor = timeline.descriptor().ok_or("it is shared")?;
        send(&socket, file.as_fd(), &descriptor.to_bytes())?;
        for number in 0..=SIGNALS {
            // The work, of which the last one has no end.
            let time = if number < SIGNALS { Duration::from_millis(5) } else { Duration::MAX };
            timeline.stream().launch_host_function(move || std::thread::sleep(time))?;
            let point = timeline.signal()?;
            // Only now: a process that has the value then waits for a submitted signal.
            writeln!(&socket, "{}", point.value())?;
        }
        // The consumer kills this process.
        std::thread::sleep(Duration::from_secs(60));
        Ok(())
    }

    fn send(socket: &UnixStream, file: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut rights = SendAncillaryBuffer::new(&mut space);
        let files = [file];
        rights.push(SendAncillaryMessage::ScmRights(&files));
        rustix::net::sendmsg(socket, &[IoSlice::new(bytes)], &mut rights, SendFlags::empty())?;
        Ok(())
    }

    fn receive(
        socket: &UnixStream,
    ) -> Result<(OwnedFd, [u8; TimelineDescriptor::FILE_LEN]), Box<dyn Error>> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut rights = RecvAncillaryBuffer::new(&mut space);
        let mut bytes = [0; TimelineDescriptor::FILE_LEN];
        let mut parts = [IoSliceMut::new(&mut bytes)];
        // So short a message comes in one piece.
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::WAITALL;
        rustix::net::recvmsg(socket, &mut parts, &mut rights, flags)?;
        let file = rights.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut files) => files.next(),
            _ => None,
        });
        Ok((file.ok_or("the producer sent no file")?, bytes))
    }
}
