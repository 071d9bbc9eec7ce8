//! The work of each rank: compute, an all-reduce between two events, and more compute.

use std::error::Error;
use std::time::Duration;

use cuda_events::{Context, Device, Driver, Event, EventFlags, Progress, Stream, StreamOptions};
use cuda_timelines::{Point, Timeline};

use crate::memory::{DeviceBuffer, HostBuffer};
use crate::nccl::Comm;

pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// How often the scratch memory is written before the input is: about a millisecond, in which an
/// all-reduce that does not wait for it would read what was there before.
const WRITES: u32 = 64;
const LONG: Duration = Duration::from_secs(60);

/// The edge of the program that is left out, to show that it is needed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Without {
    Nothing,
    /// The all-reduce does not wait for the compute before it.
    Before,
    /// The work after the all-reduce does not wait for it.
    After,
}

/// The memory of a rank.
struct Memory {
    context: Context,
    input: DeviceBuffer,
    output: DeviceBuffer,
    scratch: DeviceBuffer,
    host: HostBuffer,
    /// The words of each buffer.
    words: usize,
}

impl Memory {
    fn new(context: &Context, words: usize) -> Result<Self> {
        let device = || DeviceBuffer::new(context, 4 * words);
        let (input, output, scratch) = (device()?, device()?, device()?);
        let (host, context) = (HostBuffer::new(context, 4 * words)?, context.clone());
        Ok(Self { context, input, output, scratch, host, words })
    }

    /// How many words of the copy are another value.
    fn others(&self, value: u32) -> usize {
        // SAFETY: no stream writes them while the caller has waited for its point.
        let words = unsafe { self.host.words() };
        words.iter().filter(|word| **word != value).count()
    }
}

/// One GPU, with its two streams.
pub struct Rank {
    number: usize,
    /// Signals after the work of each round. Its stream is the compute stream.
    compute: Timeline,
    communication: Stream,
    /// The input of the round is written.
    written: Event,
    /// The output of the round is reduced.
    reduced: Event,
    // Freed before the context is given up, and after the streams.
    memory: Memory,
}

impl Rank {
    pub fn new(driver: Driver, number: usize, words: usize) -> Result<Self> {
        let context = Context::primary(Device::new(driver, u32::try_from(number)?)?)?;
        let memory = Memory::new(&context, words)?;
        let stream = || Stream::new(&context, StreamOptions::new());
        Ok(Self {
            number,
            compute: Timeline::new(stream()?)?,
            communication: stream()?,
            written: Event::new(&context, EventFlags::empty())?,
            reduced: Event::new(&context, EventFlags::empty())?,
            memory,
        })
    }

    /// The compute before the all-reduce.
    pub fn before(&self, round: u32, without: Without) -> Result<()> {
        let compute = self.compute.stream();
        for write in 0..WRITES {
            self.memory.scratch.fill(write, compute)?;
        }
        self.memory.input.fill(value(round, self.number), compute)?;
        self.written.record(compute)?;
        if without != Without::Before {
            self.communication.wait_event(&self.written)?;
        }
        Ok(())
    }

    pub fn all_reduce(&self, comm: &Comm) -> Result<()> {
        let _current = self.memory.context.make_current()?;
        let Memory { input, output, words, .. } = &self.memory;
        let (input, output) = (input.address(), output.address());
        // SAFETY: memory and stream are of this rank's GPU, and dropping the memory waits.
        Ok(unsafe { comm.all_reduce(input, output, *words, &self.communication) }?)
    }

    /// The work after it, and the point that the host waits for. The group has ended: only then is
    /// the all-reduce in the stream, and an event comes after it.
    pub fn after(&self, without: Without) -> Result<Point> {
        let compute = self.compute.stream();
        self.reduced.record(&self.communication)?;
        if without != Without::After {
            compute.wait_event(&self.reduced)?;
        }
        self.memory.output.download(&self.memory.host, compute)?;
        if without == Without::After {
            // The next round writes what this one's all-reduce reads.
            compute.wait_event(&self.reduced)?;
        }
        Ok(self.compute.signal()?)
    }

    /// How many words of this round's sum are wrong.
    pub fn wrong(&self, round: u32, ranks: usize, point: &Point, comm: &Comm) -> Result<usize> {
        if let Progress::Pending = point.wait_timeout(LONG)? {
            comm.async_error()?;
            return Err(format!("rank {}: round {round} did not end", self.number).into());
        }
        let sum = (0..ranks).fold(0, |sum: u32, rank| sum.wrapping_add(value(round, rank)));
        Ok(self.memory.others(sum))
    }
}

/// The value that a rank adds to the sum of a round.
fn value(round: u32, rank: usize) -> u32 {
    (round + 1).wrapping_mul(1_000_003).wrapping_add(17 * rank as u32)
}
