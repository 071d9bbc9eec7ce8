//! The thread behind completions: when it asks, and for which of them.

use core::time::Duration;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

use super::{Entry, lock};
use crate::capture::{CaptureMode, ThreadCaptureMode};
use crate::driver::Driver;
use crate::error::Result;

/// How long the poller sleeps between two rounds at the least; it is what a completion waits for on average twice over.
const PAUSE: Duration = Duration::from_micros(25);
/// How long it sleeps at the most, when nothing has completed for long.
const LONGEST_PAUSE: Duration = Duration::from_millis(1);
/// The share of a core that asking may take, one of this many parts. Waking up comes on top: a tenth in all.
const SHARE: u32 = 12;
/// For how long a completion is asked for in every round.
const YOUNG: Duration = Duration::from_millis(10);

/// The poller's inbox.
struct Inbox {
    arrived: Vec<Arc<Entry>>,
    started: bool,
    asleep: bool,
}

static INBOX: Mutex<Inbox> = Mutex::new(Inbox { arrived: Vec::new(), started: false, asleep: false });
static ARRIVAL: Condvar = Condvar::new();

/// Hands an entry to the poller; whether there is one.
pub(super) fn register(entry: Arc<Entry>) -> bool {
    let mut inbox = lock(&INBOX);
    if !inbox.started {
        let thread = std::thread::Builder::new().name("cuda-events".to_owned()).spawn(poll_for_ever);
        inbox.started = thread.is_ok();
        if !inbox.started {
            return false;
        }
    }
    inbox.arrived.push(entry);
    if core::mem::take(&mut inbox.asleep) {
        ARRIVAL.notify_one();
    }
    true
}

fn poll_for_ever() {
    sleep_precisely();
    let mut poller = Poller::default();
    let mut changed = Instant::now();
    loop {
        let mut inbox = lock(&INBOX);
        while poller.is_idle() && inbox.arrived.is_empty() {
            inbox.asleep = true;
            inbox = ARRIVAL.wait(inbox).unwrap_or_else(PoisonError::into_inner);
        }
        let arrived = core::mem::take(&mut inbox.arrived);
        drop(inbox);
        let started = Instant::now();
        if !arrived.is_empty() {
            changed = started;
        }
        let pause = pause(started - changed);
        poller.accept(arrived, started);
        let (over, not_yet) = poller.ask(started, pause / (SHARE - 1));
        let asked = started.elapsed();
        if over > 0 {
            changed = Instant::now();
        }
        if !poller.is_idle() {
            let rest = rest(asked, over, not_yet);
            std::thread::sleep(rest);
            wait_for_arrival(pause.saturating_sub(rest));
        }
    }
}

/// How long to wait between two rounds, when nothing has come or completed for so long. What has
/// been quiet for long may be told a little later, in proportion.
fn pause(quiet: Duration) -> Duration {
    (quiet / 2000).clamp(PAUSE, LONGEST_PAUSE)
}

/// How long to sleep after a round that took so long, in which so many were over and so many not
/// yet, even if a completion arrives. Sleep pays only for the asking that was in vain, and never
/// more than the longest pause: this thread may have been held up.
fn rest(asked: Duration, over: u32, not_yet: u32) -> Duration {
    let in_vain = asked * not_yet / (over + not_yet).max(1);
    (in_vain * (SHARE - 1)).clamp(PAUSE, LONGEST_PAUSE)
}

/// Sleeps until a completion arrives, or so long.
fn wait_for_arrival(time: Duration) {
    let mut inbox = lock(&INBOX);
    if inbox.arrived.is_empty() && !time.is_zero() {
        inbox.asleep = true;
        let waited = ARRIVAL.wait_timeout(inbox, time);
        waited.unwrap_or_else(PoisonError::into_inner).0.asleep = false;
    }
}

/// What the poller asks for. Most work is short: what has just come is asked in every round, and of what has been pending for
/// longer as much as there is time for, so that a new completion does not wait for thousands of old ones.
#[derive(Default)]
struct Poller {
    young: Vec<(Arc<Entry>, Instant)>,
    old: Vec<Arc<Entry>>,
    /// Which of the old ones is next.
    next: usize,
    /// The drivers that have this thread's queries leave other threads' captures alone.
    relaxed: Vec<Driver>,
}

impl Poller {
    fn is_idle(&self) -> bool {
        self.young.is_empty() && self.old.is_empty()
    }

    /// Takes over completions that arrived by `now`.
    fn accept(&mut self, arrived: Vec<Arc<Entry>>, now: Instant) {
        self.young.extend(arrived.into_iter().map(|entry| (entry, now)));
    }

    /// One round, which asks for the old ones about as long as for the young ones, and for `time` at the least. How many
    /// are over, and how many were asked and are not.
    fn ask(&mut self, started: Instant, time: Duration) -> (u32, u32) {
        let (mut over, mut not_yet) = (0, 0);
        let mut at = 0;
        while let Some((entry, arrived)) = self.young.get(at) {
            let is_over = entry.ask(relax(&mut self.relaxed, entry.driver));
            let is_young = started - *arrived < YOUNG;
            if is_over {
                over += 1;
            } else {
                not_yet += 1;
            }
            if !is_over && is_young {
                at += 1;
                continue;
            }
            let (entry, _) = self.young.swap_remove(at);
            if !is_over {
                self.old.push(entry);
            }
        }
        let until = started + time.max(started.elapsed() * 2);
        for _ in 0..self.old.len() {
            if self.next >= self.old.len() {
                self.next = 0;
            }
            let Some(entry) = self.old.get(self.next) else { break };
            if entry.ask(relax(&mut self.relaxed, entry.driver)) {
                over += 1;
                self.old.swap_remove(self.next);
                // The next one may be over, too, and is not asked in vain.
                continue;
            }
            not_yet += 1;
            self.next += 1;
            if Instant::now() >= until {
                break;
            }
        }
        (over, not_yet)
    }
}

/// Has this thread's queries leave other threads' captures alone. It is never set back.
fn relax(relaxed: &mut Vec<Driver>, driver: Driver) -> Result<()> {
    if !relaxed.contains(&driver) {
        core::mem::forget(ThreadCaptureMode::exchange(driver, CaptureMode::Relaxed)?);
        relaxed.push(driver);
    }
    Ok(())
}

/// Makes short sleeps of this thread as short as they are asked to be; Linux adds 50 us else.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn sleep_precisely() {
    use core::ffi::{c_int, c_ulong};
    const PR_SET_TIMERSLACK: c_int = 29;
    unsafe extern "C" {
        fn prctl(option: c_int, ...) -> c_int;
    }
    // SAFETY: the option takes one number and concerns this thread only. Without it completions are told later.
    unsafe { prctl(PR_SET_TIMERSLACK, 1000 as c_ulong) };
}

#[cfg(not(target_os = "linux"))]
fn sleep_precisely() {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ext::Completion;
    use crate::sys::Function;

    const MICROSECOND: Duration = Duration::from_micros(1);

    /// The documentation promises the figures.
    #[test]
    fn pauses_grow_with_the_quiet_to_a_millisecond() {
        for (quiet, micros) in [(0, 25), (10_000, 25), (50_000, 25), (100_000, 50), (1_000_000, 500)] {
            assert_eq!(pause(MICROSECOND * quiet), MICROSECOND * micros, "{quiet}");
        }
        for quiet in [2, 10, 1_000_000] {
            assert_eq!(pause(Duration::from_secs(quiet)), Duration::from_millis(1));
        }
    }

    /// A stream that is held until the sender is dropped, completions of it that are pending, and
    /// which events were asked for.
    struct Held {
        _soft: cuda_soft_driver::SoftDriver,
        stream: crate::Stream,
        release: std::sync::mpsc::Sender<()>,
        pending: Vec<Completion>,
        asked: Arc<Mutex<Vec<u64>>>,
    }

    impl Held {
        fn new(pending: usize) -> Self {
            let soft = cuda_soft_driver::SoftDriver::new();
            let options = crate::LoadOptions::new();
            // SAFETY: the software driver has the driver's ABI, and its functions are part of this
            // program.
            #[allow(unsafe_code)]
            let driver = unsafe { Driver::from_resolver(&mut |name| soft.resolve(name), &options) };
            let asked = Arc::new(Mutex::new(Vec::new()));
            let note = Arc::clone(&asked);
            let driver = driver.unwrap().observe(move |call| {
                if call.function == Function::cuEventQuery {
                    lock(&note).push(call.arguments[0]);
                }
            });
            let device = crate::Device::new(driver.unwrap(), 0);
            let context = device.and_then(crate::Context::primary).unwrap();
            let stream = crate::Stream::new(&context, crate::StreamOptions::new()).unwrap();
            let (release, released) = std::sync::mpsc::channel::<()>();
            let hold = move || {
                let _ = released.recv();
            };
            stream.launch_host_function(hold).unwrap();
            let pending = (0..pending).map(|_| stream.completion().unwrap()).collect();
            Self { _soft: soft, stream, release, pending, asked }
        }

        fn entries(&self) -> Vec<Arc<Entry>> {
            self.pending.iter().map(|completion| Arc::clone(&completion.entry)).collect()
        }

        fn handles(&self) -> Vec<u64> {
            self.pending.iter().map(|future| future.event.as_raw().addr() as u64).collect()
        }

        fn asked(&self) -> Vec<u64> {
            core::mem::take(&mut *lock(&self.asked))
        }
    }

    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn a_round_asks_for_as_many_old_ones_as_it_has_time_for_and_goes_on_where_it_stopped() {
        const OLD: usize = 40;
        let held = Held::new(OLD);
        let all = held.handles();
        let mut poller = Poller::default();
        poller.old.extend(held.entries());

        // With time for all, all are asked once.
        assert_eq!(poller.ask(Instant::now(), LONG), (0, OLD as u32));
        assert_eq!(held.asked(), all);
        // Without time, one after the other, round by round. A round that is held up may ask for
        // more.
        let mut fewest = u32::MAX;
        let mut told = Vec::new();
        while told.len() < 3 * OLD {
            let (over, not_yet) = poller.ask(Instant::now(), Duration::ZERO);
            assert!(over == 0 && not_yet > 0);
            fewest = fewest.min(not_yet);
            told.append(&mut held.asked());
        }
        assert!(fewest < 5, "{fewest} in each round");
        let expected = all.iter().cycle();
        assert!(told.iter().zip(expected).all(|(told, expected)| told == expected), "in turn");
        // Those that are over leave, and no other is left out.
        drop(held.release);
        held.stream.synchronize().unwrap();
        assert_eq!(poller.ask(Instant::now(), LONG), (OLD as u32, 0));
        assert!(poller.is_idle());
    }

    /// So that a new completion does not wait for thousands of old ones.
    #[test]
    fn a_new_completion_is_asked_for_in_every_round_before_the_old_ones() {
        const OLD: usize = 40;
        let held = Held::new(OLD + 1);
        let (mut entries, all) = (held.entries(), held.handles());
        let new = entries.pop().unwrap();
        let arrival = Instant::now();
        let mut poller = Poller::default();
        poller.old.extend(entries);
        poller.accept(vec![new], arrival);

        // Each round begins when the new one has just arrived, and has no time for the old ones.
        for round in 0..20 {
            poller.ask(arrival, Duration::ZERO);
            let asked = held.asked();
            assert_eq!(asked.first(), all.last(), "round {round}");
            assert!(asked.len() > 1, "an old one has its turn in round {round}");
        }
        // It is new until ten milliseconds are over.
        poller.ask(arrival + YOUNG - MICROSECOND, Duration::ZERO);
        assert_eq!(poller.young.len(), 1);
        poller.ask(arrival + YOUNG, Duration::ZERO);
        assert_eq!((poller.young.len(), poller.old.len()), (0, OLD + 1));
        drop(held.release);
    }

    #[test]
    fn only_asking_in_vain_is_paid_for_with_sleep() {
        // A tenth of a core: eleven times as long as it took.
        assert_eq!(rest(MICROSECOND * 10, 0, 100), MICROSECOND * 110);
        assert_eq!(rest(MICROSECOND * 10, 50, 50), MICROSECOND * 55);
        for (asked, over, not_yet) in [(10, 100, 0), (1, 0, 1), (0, 0, 0)] {
            assert_eq!(rest(MICROSECOND * asked, over, not_yet), PAUSE, "{asked} {over} {not_yet}");
        }
        // The thread was held up, for an hour even.
        for seconds in [1, 3600] {
            assert_eq!(rest(Duration::from_secs(seconds), 0, 10_000), LONGEST_PAUSE);
        }
    }
}
