//! How much processor time a thread has had for something. By the clock, a thread on a loaded
//! machine would seem slow although it was not let run.

use core::time::Duration;

/// The time between two looks at what threads have run.
pub(crate) const LOOK: Duration = Duration::from_millis(1);

/// The calling thread, as the system numbers it.
#[cfg(target_os = "linux")]
pub(crate) fn this_thread() -> i32 {
    // SAFETY: it has no preconditions.
    unsafe { libc::gettid() }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn this_thread() -> i32 {
    0
}

/// Whether the system lets it run, or would if there was room.
#[cfg(target_os = "linux")]
fn is_runnable(thread: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat"));
    // The name before it may have any character.
    stat.is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" R")))
}

/// How long it has run.
#[cfg(target_os = "linux")]
fn has_run(thread: i32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?;
    Some(Duration::from_nanos(stat.split(' ').next()?.parse().ok()?))
}

#[cfg(not(target_os = "linux"))]
fn is_runnable(_thread: i32) -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
fn has_run(_thread: i32) -> Option<Duration> {
    None
}

/// The time that some threads have had.
pub(crate) struct Patience {
    ran: Option<Duration>,
    asleep: Duration,
}

impl Patience {
    pub(crate) fn with(threads: &[i32]) -> Self {
        Self { ran: threads.iter().copied().map(has_run).sum(), asleep: Duration::ZERO }
    }

    /// What they have had, run or slept, as [`LOOK`] is over once more. Where the system does not
    /// show it, they count as having had the time.
    pub(crate) fn look(&mut self, threads: &[i32]) -> Duration {
        let ran: Option<Duration> = threads.iter().copied().map(has_run).sum();
        let ran = self.ran.zip(ran).map(|(before, now)| now.saturating_sub(before));
        if ran.is_none() || !threads.iter().any(|thread| is_runnable(*thread)) {
            self.asleep += LOOK;
        }
        self.asleep + ran.unwrap_or_default()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    /// One that sleeps has had the time, and so has one that runs; what has not begun has not.
    #[test]
    fn sleep_and_work_are_time() {
        let ((sender, receiver), (end, ended)) = (channel(), channel::<()>());
        let sleeper = std::thread::spawn(move || {
            sender.send(this_thread()).unwrap();
            let _ = ended.recv();
        });
        let thread = receiver.recv().unwrap();
        while is_runnable(thread) {
            std::thread::yield_now();
        }
        let mut patience = Patience::with(&[thread]);
        assert!((1..=20).map(|_| patience.look(&[thread])).last() >= Some(20 * LOOK));
        drop(end);
        sleeper.join().unwrap();

        let own = this_thread();
        let mut patience = Patience::with(&[own]);
        // It runs, as it looks.
        assert!(is_runnable(own));
        while patience.look(&[own]) < 5 * LOOK {}
        assert_eq!(patience.asleep, Duration::ZERO);
        // None of the program's is there.
        assert_eq!(Patience::with(&[i32::MAX]).look(&[i32::MAX]), LOOK);
    }
}
