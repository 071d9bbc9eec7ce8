//! The work of each rank: compute, an all-reduce between two events, and more compute.

use std::error::Error;
use std::ffi::c_void;
use std::time::Duration;

use cuda_events::sys::{CUdeviceptr, CUresult, Function};
use cuda_events::{
    Context, Device, Driver, Event, EventFlags, Progress, Stream, StreamOptions, StreamRef,
};
use cuda_timelines::{Point, Timeline};

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

fn check(function: Function, code: CUresult) -> cuda_events::Result<()> {
    if code == CUresult::CUDA_SUCCESS {
        Ok(())
    } else {
        Err(cuda_events::Error::Driver { function, code })
    }
}

/// The memory of a rank, freed when its context has no work.
struct Memory {
    context: Context,
    input: CUdeviceptr,
    output: CUdeviceptr,
    scratch: CUdeviceptr,
    host: *mut c_void,
    /// Of each.
    words: usize,
}

impl Memory {
    fn new(context: &Context, words: usize) -> Result<Self> {
        let symbols = context.driver().symbols();
        let _current = context.make_current()?;
        let (mut memory, mut host) = ([0; 3], std::ptr::null_mut());
        for address in &mut memory {
            // SAFETY: a place for the address; the context is current.
            let code = unsafe { (symbols.cuMemAlloc_v2)(address, 4 * words) };
            check(Function::cuMemAlloc_v2, code)?;
        }
        // SAFETY: the same.
        let code = unsafe { (symbols.cuMemHostAlloc)(&mut host, 4 * words, 0) };
        check(Function::cuMemHostAlloc, code)?;
        let [input, output, scratch] = memory;
        Ok(Self { context: context.clone(), input, output, scratch, host, words })
    }

    fn set(&self, at: CUdeviceptr, value: u32, stream: &StreamRef) -> Result<()> {
        let set = self.context.driver().symbols().cuMemsetD32Async;
        let _current = self.context.make_current()?;
        // SAFETY: one of this memory's addresses, which has so many words; `drop` waits before it
        // frees them.
        let code = unsafe { set(at, value, self.words, stream.as_raw()) };
        Ok(check(Function::cuMemsetD32Async, code)?)
    }

    fn copy_to_host(&self, stream: &StreamRef) -> Result<()> {
        let copy = self.context.driver().symbols().cuMemcpyDtoHAsync_v2;
        let _current = self.context.make_current()?;
        // SAFETY: both have so many bytes, and `drop` waits before it frees them.
        let code = unsafe { copy(self.host, self.output, 4 * self.words, stream.as_raw()) };
        Ok(check(Function::cuMemcpyDtoHAsync_v2, code)?)
    }

    /// How many words of the copy are another value.
    fn others(&self, value: u32) -> usize {
        // SAFETY: so many words, which no stream writes while the caller has waited for its point.
        let words = unsafe { std::slice::from_raw_parts(self.host.cast::<u32>(), self.words) };
        words.iter().filter(|word| **word != value).count()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let symbols = self.context.driver().symbols();
        // An error cannot be acted on here.
        let _ = self.context.synchronize();
        let Ok(_current) = self.context.make_current() else { return };
        // SAFETY: all are owned, and no work uses them any more.
        unsafe {
            for address in [self.input, self.output, self.scratch] {
                (symbols.cuMemFree_v2)(address);
            }
            (symbols.cuMemFreeHost)(self.host);
        }
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

    pub fn context(&self) -> &Context {
        &self.memory.context
    }

    /// The compute before the all-reduce.
    pub fn before(&self, round: u32, without: Without) -> Result<()> {
        let compute = self.compute.stream();
        for write in 0..WRITES {
            self.memory.set(self.memory.scratch, write, compute)?;
        }
        self.memory.set(self.memory.input, value(round, self.number), compute)?;
        self.written.record(compute)?;
        if without != Without::Before {
            self.communication.wait_event(&self.written)?;
        }
        Ok(())
    }

    pub fn all_reduce(&self, comm: &Comm) -> Result<()> {
        let _current = self.memory.context.make_current()?;
        let Memory { input, output, words, .. } = self.memory;
        // SAFETY: memory and stream are of this rank's GPU, and dropping the memory waits.
        Ok(unsafe { comm.all_reduce(input, output, words, &self.communication) }?)
    }

    /// The work after it, and the point that the host waits for. The group has ended: only then is
    /// the all-reduce in the stream, and an event comes after it.
    pub fn after(&self, without: Without) -> Result<Point> {
        let compute = self.compute.stream();
        self.reduced.record(&self.communication)?;
        if without != Without::After {
            compute.wait_event(&self.reduced)?;
        }
        self.memory.copy_to_host(compute)?;
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
