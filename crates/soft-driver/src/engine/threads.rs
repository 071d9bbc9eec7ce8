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
            self.keep(thread);
        }
    }

    /// Keeps a new thread, and no longer those that have ended.
    fn keep(&mut self, thread: JoinHandle<()>) {
        self.handles.retain(|thread| !thread.is_finished());
        self.handles.push(thread);
    }

    /// How many threads run copies and kernels.
    pub(super) fn for_jobs(&self) -> usize {
        self.host + self.pool + self.device
    }
}

#[cfg(test)]
mod tests {
    use super::Threads;

    /// A step of a seeded scheduler waits until all of them have begun.
    #[test]
    fn all_kinds_of_threads_do_jobs() {
        let mut threads = Threads::new();
        (threads.host, threads.pool, threads.device) = (1, 20, 300);
        (threads.ticker, threads.timer, threads.pool_idle) = (1, 1, 1);
        assert_eq!(threads.for_jobs(), 321);
    }

    /// The threads that have ended are let go when another one begins.
    #[test]
    fn threads_that_listen_are_kept_while_they_run() {
        let mut threads = Threads::new();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let over = std::thread::spawn(|| ());
        while !over.is_finished() {
            std::thread::yield_now();
        }
        let (runs, last) =
            (std::thread::spawn(move || _ = ended.recv()), std::thread::spawn(|| ()));
        let expected = [runs.thread().id(), last.thread().id()];
        threads.handles = vec![over, runs];
        threads.keep(last);
        let kept: Vec<_> = threads.handles.iter().map(|thread| thread.thread().id()).collect();
        drop(end);
        assert_eq!(kept, expected);
        threads.handles.into_iter().for_each(|thread| thread.join().expect("it ends"));
    }
}
