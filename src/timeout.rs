//! Waiting with a limit, by repeated queries.

use core::time::Duration;

use crate::clock::HostClock;
use crate::error::Result;
use crate::progress::Progress;

/// For this long it only yields between two queries.
const EAGER: Duration = Duration::from_micros(50);
/// The longest sleep between two queries.
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

/// Queries until the work is done, a query fails, or the time is up by the driver's clock. It
/// queries at least once.
pub(crate) fn poll(
    clock: Option<&dyn HostClock>,
    timeout: Duration,
    query: impl FnMut() -> Result<Progress>,
) -> Result<Progress> {
    poll_until(clock, timeout, || false, query)
}

/// As [`poll`]. It also calls `is_last` before each query; `true` makes this query the last.
pub(crate) fn poll_until(
    clock: Option<&dyn HostClock>,
    timeout: Duration,
    mut is_last: impl FnMut() -> bool,
    mut query: impl FnMut() -> Result<Progress>,
) -> Result<Progress> {
    if let Some(clock) = clock {
        return poll_by(clock, timeout, is_last, query);
    }
    let started = now();
    let mut pause = Duration::from_micros(1);
    loop {
        let last = is_last();
        if query()?.is_done() {
            return Ok(Progress::Done);
        }
        let waited = now() - started;
        if last || waited >= timeout {
            return Ok(Progress::Pending);
        }
        if waited < EAGER {
            let_others_run();
        } else {
            sleep(pause.min(timeout - waited));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

/// The same by another clock than the machine's, which says when it is worth while to query again.
fn poll_by(
    clock: &dyn HostClock,
    timeout: Duration,
    mut is_last: impl FnMut() -> bool,
    mut query: impl FnMut() -> Result<Progress>,
) -> Result<Progress> {
    let until = clock.now().saturating_add(timeout);
    loop {
        let last = is_last();
        if query()?.is_done() {
            return Ok(Progress::Done);
        }
        if last || clock.now() >= until {
            return Ok(Progress::Pending);
        }
        clock.wait(until);
    }
}

#[cfg(not(test))]
pub(crate) use real::*;
#[cfg(test)]
pub(crate) use virtually::*;

#[cfg(not(test))]
mod real {
    pub(crate) use std::thread::{sleep, yield_now as let_others_run};
    use std::time::Instant;

    pub(crate) type Moment = Instant;

    pub(crate) fn now() -> Moment {
        Instant::now()
    }
}

/// A clock for each thread that advances only when the thread sleeps or yields, so tests count
/// instead of waiting.
#[cfg(test)]
mod virtually {
    use core::cell::Cell;
    use core::time::Duration;

    thread_local! {
        static NOW: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    }

    pub(crate) type Moment = Duration;

    pub(crate) fn now() -> Moment {
        NOW.get()
    }

    pub(crate) fn sleep(time: Duration) {
        NOW.set(NOW.get() + time);
    }

    pub(crate) fn let_others_run() {
        sleep(Duration::from_micros(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    /// The times of all queries, for work that is never done.
    fn questions(timeout: Duration) -> Vec<Duration> {
        let (started, mut asked) = (now(), Vec::new());
        let answer = poll(None, timeout, || {
            asked.push(now() - started);
            Ok(Progress::Pending)
        });
        assert_eq!(answer, Ok(Progress::Pending));
        assert_eq!(
            now() - started,
            timeout,
            "it ends when the time is up, not sooner and not later"
        );
        asked
    }

    #[test]
    fn its_pauses_are_those_that_are_documented() {
        let asked = questions(Duration::from_millis(3));
        let gaps: Vec<_> = asked.windows(2).map(|pair| (pair[1] - pair[0]).as_micros()).collect();
        // It yields for 50 microseconds, and then sleeps, twice as long each time.
        let mut expected = vec![1; 50];
        expected.extend([1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000]);
        let rest = 3000 - expected.iter().sum::<u128>();
        expected.push(rest);
        assert_eq!(gaps, expected);
    }

    #[test]
    fn without_time_it_asks_once() {
        assert_eq!(questions(Duration::ZERO).len(), 1);
    }

    #[test]
    fn it_ends_with_the_first_answer() {
        let mut answers = [Ok(Progress::Pending), Ok(Progress::Done)].into_iter();
        assert_eq!(poll(None, Duration::MAX, || answers.next().unwrap()), Ok(Progress::Done));
        assert_eq!(
            poll(None, Duration::MAX, || Err(Error::EndBeforeStart)),
            Err(Error::EndBeforeStart)
        );
    }

    /// Calls `test` with a stream whose work is held until the test ends.
    fn with_held_stream(test: impl FnOnce(&crate::Stream)) {
        let (_soft, driver) = crate::driver::software();
        let context = crate::Device::new(driver, 0).and_then(crate::Context::primary).unwrap();
        let stream = crate::Stream::new(&context, crate::StreamOptions::new()).unwrap();
        let (release, released) = std::sync::mpsc::channel::<()>();
        stream
            .launch_host_function(move || {
                let _ = released.recv();
            })
            .unwrap();
        test(&stream);
        drop(release);
        stream.synchronize().unwrap();
    }

    #[test]
    fn both_wait_until_the_limit() {
        with_held_stream(|stream| {
            let event = stream.record_event(crate::EventFlags::empty()).unwrap();
            for timeout in [Duration::ZERO, Duration::from_millis(20), Duration::from_secs(1)] {
                for wait in [&|| event.synchronize_timeout(timeout), &|| {
                    stream.synchronize_timeout(timeout)
                }] as [&dyn Fn() -> Result<Progress>; 2]
                {
                    let started = now();
                    assert_eq!(wait(), Ok(Progress::Pending));
                    assert_eq!(now() - started, timeout);
                }
            }
        });
    }
}
