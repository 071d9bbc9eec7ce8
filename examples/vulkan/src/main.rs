//! A Vulkan queue and a CUDA stream wait for each other on the GPU.
//!
//! In each round the queue fills a buffer and signals a timeline semaphore. The stream waits for
//! it, writes the first half of the buffer, and signals. The queue waits for that, and copies the
//! buffer to the host. The two halves prove the order: if the stream did not wait, the fill would
//! overwrite its data; if the queue did not wait, the copy would contain only the fill.
//!
//! `--without cuda` or `--without vulkan` omits the wait of one side. The data must then be wrong:
//! the program ends with 0 if it is.

mod cuda;
mod options;
mod vulkan;

use std::mem::ManuallyDrop;
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

use cuda_events::external::{BinarySemaphore, TimelineSemaphore};
use cuda_events::{Context, Device, Driver, Event, EventFlags, Stream, StreamOptions};

use crate::cuda::SharedMemory;
use crate::options::{Options, Without};
use crate::vulkan::{Result, Vulkan};

/// 4 MiB.
const WORDS: usize = 1 << 20;
/// The number of rounds in which the program holds one side, and checks that the other side waits.
const HELD: u64 = 8;
/// How long the program watches a side that must wait.
const WATCHED: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_secs(10);

/// Both sides, and the objects that they share. The fields are dropped in this order: CUDA's
/// imports end before Vulkan destroys the exported objects.
struct Pair {
    stream: Stream,
    changed: Event,
    shared: TimelineSemaphore,
    memory: SharedMemory,

    semaphore: ash::vk::Semaphore,
    /// A semaphore of Vulkan alone, which counts the copies that are done.
    copied: ash::vk::Semaphore,
    buffer: ash::vk::Buffer,
    staging: ash::vk::Buffer,
    words: *const u32,
    fill: ash::vk::CommandBuffer,
    copy: ash::vk::CommandBuffer,
    vulkan: Vulkan,
}

impl Pair {
    fn new(context: &Context) -> Result<Self> {
        let uuid = context.device().uuid()?;
        // If anything below fails, the variables are dropped in the reverse order, this one last.
        let vulkan = Vulkan::new(*uuid.as_bytes())?;
        println!("{}, CUDA {}", vulkan.name, context.driver().version());
        let bytes = 4 * WORDS as u64;
        let (semaphore, fd) = vulkan.timeline()?;
        let (copied, _) = vulkan.timeline()?;
        let (buffer, memory_fd, size) = vulkan.shared_buffer(bytes)?;
        let (staging, words) = vulkan.host_buffer(bytes)?;
        let (fill, copy) = (vulkan.command_buffer()?, vulkan.command_buffer()?);
        let memory = SharedMemory::import(context, memory_fd, size, bytes)?;
        // SAFETY: it is the descriptor of a timeline semaphore, and lives as long as this struct.
        let shared = unsafe { TimelineSemaphore::import_fd(context, fd, uuid) }?;
        let changed = Event::new(context, EventFlags::empty())?;
        let stream = Stream::new(context, StreamOptions::new())?;
        Ok(Self {
            stream,
            changed,
            shared,
            memory,
            semaphore,
            copied,
            buffer,
            staging,
            words,
            fill,
            copy,
            vulkan,
        })
    }

    /// Runs one round. Returns whether the data is right.
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
        let there = || -> Result<()> {
            self.stream.signal_external_binary(&imported)?;
            self.vulkan.submit(None, Some((semaphore, 0)), Some((done, 1)))?;
            if !self.vulkan.reached(done, 1, LONG)? {
                return Err("the queue did not see the signal of CUDA's binary semaphore".into());
            }
            Ok(())
        };
        let there = there();
        let closed = self.close(imported);
        there.and(closed)?;
        let (semaphore, imported) = import()?;
        let back = || -> Result<()> {
            self.vulkan.submit(None, None, Some((semaphore, 0)))?;
            Ok(self.stream.wait_external_binary(&imported)?)
        };
        let back = back();
        let closed = self.close(imported);
        back.and(closed)
    }

    /// Destroys an import once the stream is done with it. If the stream does not end, or fails,
    /// the import is left to the end of the process.
    fn close(&self, imported: BinarySemaphore) -> Result<()> {
        let imported = ManuallyDrop::new(imported);
        if self.stream.synchronize_timeout(LONG)?.is_done() {
            Ok(ManuallyDrop::into_inner(imported).close()?)
        } else {
            Err("the stream is not done with a binary semaphore".into())
        }
    }
}

/// Runs the rounds. Returns a description of the fault, if one was found.
fn judge(pair: &Pair, options: &Options) -> Result<Option<String>> {
    pair.binary()?;
    let (rounds, mut wrong) = (options.rounds, 0);
    for round in 0..rounds {
        wrong += u64::from(!pair.round(round, options.without)?);
    }
    println!("{rounds} rounds, {wrong} with wrong data");
    let expected = if options.without == Without::Nothing { 0 } else { rounds };
    Ok((wrong != expected).then(|| format!("{wrong} rounds had wrong data, not {expected}")))
}

fn run(options: &Options) -> Result<Option<String>> {
    let context = Context::primary(Device::new(Driver::load()?, 0)?)?;
    let pair = Pair::new(&context)?;
    let judged = judge(&pair, options);
    if let Err(error) = &judged {
        // The streams may wait for a signal that never comes, and so would the end of `pair`.
        eprintln!("vulkan: {error}");
        std::process::exit(1);
    }
    judged
}

fn main() -> ExitCode {
    let options = match Options::parse(lexopt::Parser::from_env()) {
        Ok(Some(options)) => options,
        Ok(None) => {
            print!("{}", options::USAGE);
            return ExitCode::SUCCESS;
        }
        Err(what) => {
            eprint!("vulkan: {what}\n{}", options::USAGE);
            return ExitCode::from(2);
        }
    };
    let wrong = match run(&options) {
        Ok(None) => return ExitCode::SUCCESS,
        Ok(Some(wrong)) => wrong,
        Err(error) => error.to_string(),
    };
    eprintln!("vulkan: {wrong}");
    ExitCode::FAILURE
}
