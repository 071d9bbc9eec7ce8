//! Who does the work of streams, and in which order.

use crate::machine::config::Scheduler;
use crate::random;

/// The prompt scheduler, or a seeded one.
pub(crate) struct Schedule {
    /// Whether an idle stream does its work at once; otherwise a seeded scheduler does.
    pub(super) prompt: bool,
    /// Streams whose first task may run.
    pub(super) ready: Vec<u32>,
    /// The seeded scheduler's state.
    seed: u64,
    /// The thread that called last, where a seeded scheduler asks for that.
    pub(super) caller: i32,
    /// Whether a call waits for what a seeded step began.
    pub(super) stepping: bool,
}

impl Schedule {
    pub(super) const fn new() -> Self {
        Self { prompt: true, ready: Vec::new(), seed: 0, caller: 0, stepping: false }
    }

    pub(super) fn start(&mut self, scheduler: Scheduler) {
        self.prompt = true;
        if let Scheduler::Seeded(seed) = scheduler {
            (self.prompt, self.seed) = (false, seed);
        }
    }

    /// Whether a seeded scheduler has something to do.
    pub(super) fn has_steps(&self) -> bool {
        !self.prompt && !self.ready.is_empty()
    }

    /// A number below `bound`, from the seed.
    pub(super) fn draw(&mut self, bound: usize) -> usize {
        (random::next(&mut self.seed) % bound.max(1) as u64) as usize
    }
}
