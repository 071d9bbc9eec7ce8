//! A Vulkan queue and a CUDA stream wait for each other on the GPU.
//!
//! In each round the queue fills a buffer and signals a timeline semaphore. The stream waits for
//! it, writes the first half of the buffer, and signals. The queue waits for that, and copies the
//! buffer to the host. The two halves prove the order: if the stream did not wait, the fill would
//! overwrite its data; if the queue did not wait, the copy would contain only the fill.
//!
//! `--without cuda` or `--without vulkan` omits the wait of one side. The data must then be wrong:
//! the program ends with 0 if it is.

mod cost;
mod cuda;
mod vulkan;

use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

use cuda_events::external::{BinarySemaphore, TimelineSemaphore};
use cuda_events::{Context, Device, Driver, Event, EventFlags, Stream, StreamOptions};

use crate::cuda::SharedMemory;
use crate::vulkan::{Result, Vulkan};

const USAGE: &str = "\
usage: vulkan [--rounds N] [--without cuda|vulkan] [--cost N]

In N rounds (default: 10000) a Vulkan queue and a CUDA stream pass a buffer back and forth with a
timeline semaphore. --without omits the wait of one side and expects wrong data.

--cost N measures N round trips of the semaphore alone, and compares them with the same loop in C.

It needs Vulkan 1.2 (libvulkan.so.1) with VK_KHR_external_semaphore_fd on CUDA's device 0.

exit code: 0 the data is as expected, 1 it is not, or a call failed, 2 a bad option
";

/// 4 MiB.
const WORDS: usize = 1 << 20;
/// In so many rounds each side is held, and it is seen that the other one waits.
const HELD: u64 = 8;
/// For how long a side that must wait is watched.
const WATCHED: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Without {
    Nothing,
    Cuda,
    Vulkan,
}

struct Options {
    rounds: u64,
    without: Without,
    cost: Option<u64>,
}

impl Options {
    fn parse(
        mut arguments: impl Iterator<Item = String>,
    ) -> std::result::Result<Self, &'static str> {
        let mut options = Self { rounds: 10_000, without: Without::Nothing, cost: None };
        while let Some(argument) = arguments.next() {
            let value = arguments.next();
            let number = || value.as_ref().and_then(|text| text.parse().ok());
            match (&*argument, value.as_deref()) {
                ("--rounds", _) => options.rounds = number().ok_or("--rounds needs a number")?,
                ("--cost", _) => options.cost = Some(number().ok_or("--cost needs a number")?),
                ("--without", Some("cuda")) => options.without = Without::Cuda,
                ("--without", Some("vulkan")) => options.without = Without::Vulkan,
                ("--without", _) => return Err("--without needs cuda or vulkan"),
                _ => return Err("unknown option"),
            }
        }
        Ok(options)
    }
}

/// Both sides, and all that crosses between them.
struct Pair {
    vulkan: Vulkan,
    semaphore: ash::vk::Semaphore,
    /// Of Vulkan alone: the copies that are done.
    copied: ash::vk::Semaphore,
    buffer: ash::vk::Buffer,
    staging: ash::vk::Buffer,
    words: *const u32,
    fill: ash::vk::CommandBuffer,
    copy: ash::vk::CommandBuffer,

    stream: Stream,
    changed: Event,
    shared: TimelineSemaphore,
    memory: SharedMemory,
}

impl Pair {
    fn new(context: &Context) -> Result<Self> {
        let uuid = context.device().uuid()?;
        let vulkan = Vulkan::new(*uuid.as_bytes())?;
        println!("{}, CUDA {}", vulkan.name, context.driver().version());
        let bytes = 4 * WORDS as u64;
        let (semaphore, fd) = vulkan.timeline()?;
        // SAFETY: it is the descriptor of a timeline semaphore, and lives as long as this struct.
        let shared = unsafe { TimelineSemaphore::import_fd(context, fd, uuid) }?;
        let (buffer, fd, size) = vulkan.shared_buffer(bytes)?;
        let memory = SharedMemory::import(context, fd, size, bytes)?;
        let (staging, words) = vulkan.host_buffer(bytes)?;
        Ok(Self {
            semaphore,
            copied: vulkan.timeline()?.0,
            buffer,
            staging,
            words,
            fill: vulkan.command_buffer()?,
            copy: vulkan.command_buffer()?,
            vulkan,
            stream: Stream::new(context, StreamOptions::new())?,
            changed: Event::new(context, EventFlags::empty())?,
            shared,
            memory,
        })
    }

    /// One round; whether the data is as the order demands.
    fn round(&self, round: u64, without: Without) -> Result<bool> {
        let (filled, written) = (2 * round + 1, 2 * round + 2);
        // Both change each round, so that nothing that was left there passes.
        let nth = (round & 0xFFFF) as u32;
        let (cuda, fill) = (0xC0DA_0000 | nth, 0x7A11_0000 | nth);
        let held = round < HELD || without != Without::Nothing;

        // The stream's part is submitted first: it waits for a signal that Vulkan submits later.
        if without != Without::Cuda {
            self.stream.wait_external_semaphore(&self.shared, filled)?;
        }
        let (release, latch) = mpsc::channel::<()>();
        self.memory.set(cuda, WORDS / 2, &self.stream)?;
        self.changed.record(&self.stream)?;
        if without == Without::Cuda {
            self.stream.wait_external_semaphore(&self.shared, filled)?;
        }
        if held {
            let watched = self.changed.synchronize_timeout(WATCHED)?;
            if watched.is_done() != (without == Without::Cuda) {
                return Err(format!("round {round}: the stream did not wait for Vulkan").into());
            }
        }
        if held {
            // Until it is released: after the write, before the signal.
            self.stream.launch_host_function(move || _ = latch.recv())?;
        }
        self.stream.signal_external(&self.shared, written)?;

        self.vulkan.fill(self.fill, self.buffer, fill)?;
        self.vulkan.submit(Some(self.fill), None, Some((self.semaphore, filled)))?;
        self.vulkan.copy(self.copy, self.buffer, self.staging, 4 * WORDS as u64)?;
        let wait = (without != Without::Vulkan).then_some((self.semaphore, written));
        self.vulkan.submit(Some(self.copy), wait, Some((self.copied, round + 1)))?;
        if held {
            let copied = self.vulkan.reached(self.copied, round + 1, WATCHED)?;
            if copied != (without == Without::Vulkan) {
                return Err(format!("round {round}: the queue did not wait for CUDA").into());
            }
            drop(release);
        }
        if !self.vulkan.reached(self.copied, round + 1, LONG)? {
            return Err(format!("round {round} did not end").into());
        }
        self.stream.synchronize()?;
        // SAFETY: that many words of mapped memory. The copy has written them; no code writes now.
        let words = unsafe { std::slice::from_raw_parts(self.words, WORDS) };
        let (first, second) = words.split_at(WORDS / 2);
        Ok(first.iter().all(|word| *word == cuda) && second.iter().all(|word| *word == fill))
    }

    /// A binary semaphore, once in each direction.
    fn binary(&self) -> Result<()> {
        let context = self.stream.context();
        let uuid = context.device().uuid()?;
        let import = || -> Result<_> {
            let (semaphore, fd) = self.vulkan.binary()?;
            // SAFETY: it is the descriptor of a binary semaphore.
            let imported = unsafe { BinarySemaphore::import_fd(context, fd, uuid) }?;
            Ok((semaphore, imported))
        };
        let done = self.vulkan.timeline()?.0;
        let (semaphore, imported) = import()?;
        self.stream.signal_external_binary(&imported)?;
        self.vulkan.submit(None, Some((semaphore, 0)), Some((done, 1)))?;
        if !self.vulkan.reached(done, 1, LONG)? {
            return Err("the queue did not see the signal of CUDA's binary semaphore".into());
        }
        let (semaphore, imported_back) = import()?;
        self.vulkan.submit(None, None, Some((semaphore, 0)))?;
        self.stream.wait_external_binary(&imported_back)?;
        self.stream.synchronize()?;
        imported.close()?;
        Ok(imported_back.close()?)
    }
}

/// In how many rounds the data was wrong.
fn rounds(pair: &Pair, options: &Options) -> Result<u64> {
    if let Some(count) = options.cost {
        cost::measure(pair, count)?;
        return Ok(0);
    }
    pair.binary()?;
    let mut wrong = 0;
    for round in 0..options.rounds {
        wrong += u64::from(!pair.round(round, options.without)?);
    }
    println!("{} rounds, {wrong} with wrong data", options.rounds);
    Ok(wrong)
}

fn run(options: &Options) -> Result<bool> {
    let context = Context::primary(Device::new(Driver::load()?, 0)?)?;
    let pair = Pair::new(&context)?;
    let wrong = match rounds(&pair, options) {
        Ok(wrong) => wrong,
        Err(error) => {
            // The streams may wait for a signal that never comes, and so would the end of `pair`.
            eprintln!("vulkan: {error}");
            std::process::exit(1);
        }
    };
    Ok(match options.without {
        Without::Nothing => wrong == 0,
        Without::Cuda | Without::Vulkan => wrong == options.rounds,
    })
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).peekable();
    if arguments.peek().is_some_and(|first| first == "--help" || first == "-h") {
        print!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let options = match Options::parse(arguments) {
        Ok(options) => options,
        Err(what) => {
            eprint!("vulkan: {what}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("vulkan: the data was not as expected");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("vulkan: {error}");
            ExitCode::FAILURE
        }
    }
}
