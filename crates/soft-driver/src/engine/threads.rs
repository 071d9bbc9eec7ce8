//! The driver's own threads, as far as they were started.

use std::thread::JoinHandle;

use crate::processes::Wait;

/// The threads, and how many there are of each kind.
pub(crate) struct Threads {
    pub(super) handles: Vec<JoinHandle<()>>,
    /// Those that do jobs, as the system numbers them, as far as they have begun.
    pub(super) ids: Vec<i32>,
    pub(super) host: usize,
    /// Those that were started to set and copy memory, and those for other work of the device.
    pub(super) pool: usize,
    pub(super) device: usize,
    pub(super) pool_idle: usize,
    pub(super) ticker: usize,
    pub(super) timer: usize,
    pub(super) listen: Option<Listen>,
}

/// Has a thread listen for another process, and returns the thread if it is a new one.
pub(super) type Listen = Box<dyn Fn(&Wait) -> Option<JoinHandle<()>> + Send>;

impl Threads {
    pub(super) const fn new() -> Self {
        Self {
            handles: Vec::new(),
            ids: Vec::new(),
            host: 0,
            pool: 0,
            device: 0,
            pool_idle: 0,
            ticker: 0,
            timer: 0,
            listen: None,
        }
    }

    /// Has a thread look again, for as long as a stream waits for other processes.
    pub(super) fn listen_for(&mut self, wait: &Wait) {
        if let Some(thread) = self.listen.as_ref().and_then(|listen| listen(wait)) {
            self.handles.retain(|thread| !thread.is_finished());
            self.handles.push(thread);
        }
    }

    /// How many do jobs.
    pub(super) fn for_jobs(&self) -> usize {
        self.host + self.pool + self.device
    }
}
