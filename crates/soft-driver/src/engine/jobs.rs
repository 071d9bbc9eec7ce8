//! Jobs: the work that threads do for streams. One thread does those of the program's host
//! functions, and some do those of memory and other work of the device.

use std::collections::VecDeque;

use crate::engine::wake::Wake;
use crate::engine::work::{Job, Work};

/// The jobs that no thread has begun, and how many are under way.
pub(crate) struct Jobs {
    wake: &'static Wake,
    pub(super) host: VecDeque<Job>,
    pub(super) pool: VecDeque<Job>,
    /// Host functions do not start while this is set.
    pub(super) host_held: bool,
    /// Jobs that a thread is doing.
    pub(super) running: usize,
    /// Those of them that run functions of the program.
    pub(super) in_host: usize,
    /// And those that do other work of the device than to set and copy memory.
    pub(super) in_device: usize,
}

impl Jobs {
    pub(super) const fn new(wake: &'static Wake) -> Self {
        Self {
            wake,
            host: VecDeque::new(),
            pool: VecDeque::new(),
            host_held: false,
            running: 0,
            in_host: 0,
            in_device: 0,
        }
    }

    /// For the thread of the host functions.
    pub(super) fn give_host(&mut self, job: Job) {
        self.host.push_back(job);
        self.wake.host.notify_one();
    }

    /// For the threads that set and copy memory, or do other work of the device.
    pub(super) fn give_pool(&mut self, job: Job) {
        self.pool.push_back(job);
        self.wake.pool.notify_one();
    }

    /// Whether a thread does a job, which may be a function of the program.
    pub(crate) fn are_under_way(&self) -> bool {
        self.running > 0
    }

    /// Whether a thread has yet to take a job, or is at one.
    pub(super) fn are_left(&self) -> bool {
        self.running > 0 || !self.pool.is_empty() || !self.host.is_empty()
    }

    /// Drops those that no thread has begun.
    pub(super) fn clear(&mut self) {
        self.host.clear();
        self.pool.clear();
    }

    /// What one of `device_threads` threads does next, or one of those for memory. Other work of
    /// the device leaves the threads for memory free, as it may wait for that.
    pub(super) fn next_of_pool(&mut self, device_threads: usize) -> Option<Job> {
        if self.in_device < device_threads {
            return self.pool.pop_front();
        }
        let copies = |job: &Job| !matches!(job.work, Work::Device(_));
        let at = self.pool.iter().position(copies)?;
        self.pool.remove(at)
    }
}
