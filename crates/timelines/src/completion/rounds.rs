//! The thread's work for completions: when it queries the driver, and for which of them.

use core::time::Duration;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use super::entry::Entry;
use crate::sync::lock;
use crate::thread::{LONGEST_PAUSE, Next, PAUSE, Relaxed, Rounds, Seat, pause};
use crate::time::{Moment, now};

/// The share of a core that asking may take, one of this many parts. Waking up comes on top: a
/// tenth in all.
const SHARE: u32 = 12;
/// The longest time that a round queries in vain, for young and old completions together. The
/// longest pause pays for it.
const LONGEST_ROUND: Duration =
    Duration::from_nanos(LONGEST_PAUSE.as_nanos() as u64 / (SHARE as u64 - 1));
/// For how long a completion is young: asked for in every round, if there is time for all that are.
const YOUNG: Duration = Duration::from_millis(10);

/// Completions that have arrived since the last round.
static ARRIVED: Mutex<Vec<Arc<Entry>>> = Mutex::new(Vec::new());
static SEAT: Seat = Seat { make: || Box::new(Poller::new()) };

/// Hands an entry to the thread; whether there is one.
pub(super) fn register(entry: Arc<Entry>) -> bool {
    SEAT.call(|| lock(&ARRIVED).push(entry))
}

impl Rounds for Poller {
    fn round(&mut self, _called: bool) -> Next {
        let arrived = core::mem::take(&mut *lock(&ARRIVED));
        let (rest, pause) = self.take_round(arrived);
        if self.is_idle() { Next::Called } else { Next::In { rest, pause } }
    }

    fn whole_round(&mut self) -> Next {
        let started = now();
        self.accept(core::mem::take(&mut *lock(&ARRIVED)), started);
        self.ask_all();
        if self.is_idle() { Next::Called } else { Next::In { rest: PAUSE, pause: PAUSE } }
    }
}

/// How long to sleep after a round, even if a completion arrives. Sleep pays only for the asking
/// that was in vain, and never more than the longest pause: this thread may have been held up.
fn rest(asked: Asked, time: Duration) -> Duration {
    (asked.in_vain(time) * (SHARE - 1)).clamp(PAUSE, LONGEST_PAUSE)
}

/// How many a round asked for.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Asked {
    over: u32,
    not_yet: u32,
}

impl Asked {
    /// The part of `time`, which all the asking took, that was in vain.
    fn in_vain(self, time: Duration) -> Duration {
        time * self.not_yet / (self.over + self.not_yet).max(1)
    }
}

/// The completions that the poller queries. Most work is short. So each round queries all new
/// completions, and as many older ones as there is time for: a new completion does not wait for
/// thousands of old ones. Half of that time is for the oldest: the work of a stream is done in
/// order, so that the oldest completions of each stream are the next that are over.
struct Poller {
    young: Turns<(Arc<Entry>, Moment)>,
    old: Turns<Arc<Entry>>,
    relaxed: Relaxed,
    /// When a completion last arrived or was over.
    changed: Moment,
}

/// Some that have their turn one after the other, over many rounds.
struct Turns<T> {
    all: VecDeque<T>,
    /// The index of the one that is queried next.
    next: usize,
}

impl<T> Turns<T> {
    fn new() -> Self {
        Self { all: VecDeque::new(), next: 0 }
    }

    /// The completion whose turn it is, without the `first` ones; `None` only if there is none.
    fn current(&mut self, first: usize) -> Option<&T> {
        if self.next < first || self.next >= self.all.len() {
            self.next = first;
        }
        self.all.get(self.next)
    }

    fn go_on(&mut self) {
        self.next += 1;
    }

    /// Removes the current one. The last one takes its place and has its turn.
    fn remove(&mut self) -> Option<T> {
        self.all.swap_remove_back(self.next)
    }

    /// Removes one, and the others stay in order.
    fn remove_in_order(&mut self, index: usize) {
        self.all.remove(index);
        if index < self.next {
            self.next -= 1;
        }
    }
}

impl Poller {
    fn new() -> Self {
        Self { young: Turns::new(), old: Turns::new(), relaxed: Relaxed::default(), changed: now() }
    }

    fn is_idle(&self) -> bool {
        self.young.all.is_empty() && self.old.all.is_empty()
    }

    /// Takes over completions that arrived, and asks. How long to sleep now, and how long to wait
    /// in all until the next round, unless more arrive.
    fn take_round(&mut self, arrived: Vec<Arc<Entry>>) -> (Duration, Duration) {
        let started = now();
        if !arrived.is_empty() {
            self.changed = started;
        }
        let pause = pause(started - self.changed);
        self.accept(arrived, started);
        let asked = self.ask(started, pause / (SHARE - 1));
        if asked.over > 0 {
            self.changed = now();
        }
        (rest(asked, now() - started), pause)
    }

    /// Takes over completions that arrived by `now`.
    fn accept(&mut self, arrived: Vec<Arc<Entry>>, now: Moment) {
        self.young.all.extend(arrived.into_iter().map(|entry| (entry, now)));
    }

    /// Queries each completion once.
    fn ask_all(&mut self) {
        let Self { young, old, relaxed, .. } = self;
        young.all.retain(|(entry, _)| !entry.ask(relaxed.with(entry.driver)));
        old.all.retain(|entry| !entry.ask(relaxed.with(entry.driver)));
    }

    /// One round. It queries the old completions about as long as the young ones, and for at least
    /// `time`. If it queries in vain, it takes at most [`LONGEST_ROUND`].
    fn ask(&mut self, started: Moment, time: Duration) -> Asked {
        let mut asked = Asked::default();
        for _ in 0..self.young.all.len() {
            let Some((entry, arrived)) = self.young.current(0) else { break };
            let is_over = entry.ask(self.relaxed.with(entry.driver));
            let is_young = started - *arrived < YOUNG;
            if is_over {
                asked.over += 1;
                self.young.remove();
                // The next one may be over, too, and is not asked in vain.
                continue;
            }
            asked.not_yet += 1;
            if is_young {
                self.young.go_on();
            } else if let Some((entry, _)) = self.young.remove() {
                self.old.all.push_back(entry);
            }
            if asked.in_vain(now() - started) >= LONGEST_ROUND / 2 {
                break;
            }
        }
        let young = asked.in_vain(now() - started);
        let most = time.max(young * 2).min(LONGEST_ROUND);
        let half = young + most.saturating_sub(young) / 2;
        let mut first = 0;
        while let Some(entry) = self.old.all.get(first) {
            if asked.in_vain(now() - started) >= half {
                break;
            }
            if entry.ask(self.relaxed.with(entry.driver)) {
                asked.over += 1;
                self.old.remove_in_order(first);
            } else {
                asked.not_yet += 1;
                first += 1;
            }
        }
        for _ in first..self.old.all.len() {
            let Some(entry) = self.old.current(first) else { break };
            if entry.ask(self.relaxed.with(entry.driver)) {
                asked.over += 1;
                self.old.remove_in_order(self.old.next);
                continue;
            }
            asked.not_yet += 1;
            self.old.go_on();
            if asked.in_vain(now() - started) >= most {
                break;
            }
        }
        asked
    }
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use super::*;
    use cuda_events::Driver;

    use crate::time::sleep;
    use crate::{Completion, CudaStreamExt};
    use cuda_events::sys::Function;

    /// Each has its turn in its order, whichever go, and whether the others keep their places.
    #[test]
    fn turns_go_round() {
        let mut turns = Turns::new();
        turns.all.extend(0..6);
        let turn = |turns: &mut Turns<u32>, first| {
            let whose = turns.current(first).copied();
            turns.go_on();
            whose
        };
        assert_eq!([(); 7].map(|()| turn(&mut turns, 0)), [0, 1, 2, 3, 4, 5, 0].map(Some));
        // One before the next, the next one itself, and one behind it.
        turns.remove_in_order(0);
        assert_eq!(turn(&mut turns, 0), Some(1));
        turns.remove_in_order(1);
        assert_eq!(turn(&mut turns, 0), Some(3));
        turns.remove_in_order(3);
        assert_eq!(turn(&mut turns, 0), Some(4));
        assert_eq!(turn(&mut turns, 1), Some(3), "without the first one");
        assert_eq!(turns.remove(), Some(4));
        assert_eq!((turns.remove(), turn(&mut turns, 0)), (None, Some(1)));
        // The last one takes the place of the one that goes.
        turns.all.extend([7, 8]);
        assert_eq!((turns.remove(), turn(&mut turns, 0)), (Some(3), Some(8)));
        assert_eq!((turn(&mut turns, 2), turn(&mut turns, 3)), (Some(7), None));
    }

    const MICROSECOND: Duration = Duration::from_micros(1);

    thread_local! {
        /// How much of this thread's time, which goes on only by itself, a query takes.
        static COST: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    }

    /// A stream that is held until the sender is dropped, completions of it that are pending, and
    /// which events were asked for.
    struct Held {
        _observed: Observed,
        _soft: cuda_soft_driver::SoftDriver,
        stream: cuda_events::Stream,
        release: std::sync::mpsc::Sender<()>,
        pending: Vec<Completion>,
        asked: Arc<Mutex<Vec<u64>>>,
    }

    /// Gives back the place of the observer: a process has sixteen.
    struct Observed(Driver);

    impl Drop for Observed {
        fn drop(&mut self) {
            self.0.stop_observing();
        }
    }

    impl Held {
        fn new(pending: usize) -> Self {
            let soft = cuda_soft_driver::SoftDriver::new();
            let options = cuda_events::LoadOptions::new();
            // SAFETY: the software driver has the driver's ABI, and its functions are part of this
            // program.
            #[allow(unsafe_code)]
            let driver = unsafe { Driver::from_resolver(&mut |name| soft.resolve(name), &options) };
            let asked = Arc::new(Mutex::new(Vec::new()));
            let note = Arc::clone(&asked);
            let observed = driver.unwrap().observe(move |call| {
                if call.function == Function::cuEventQuery {
                    lock(&note).push(call.arguments[0]);
                    sleep(COST.get());
                }
            });
            let driver = observed.unwrap();
            let device = cuda_events::Device::new(driver, 0);
            let context = device.and_then(cuda_events::Context::primary).unwrap();
            let stream =
                cuda_events::Stream::new(&context, cuda_events::StreamOptions::new()).unwrap();
            let (release, released) = std::sync::mpsc::channel::<()>();
            let hold = move || {
                let _ = released.recv();
            };
            stream.launch_host_function(hold).unwrap();
            let pending = (0..pending).map(|_| stream.completion().unwrap()).collect();
            Self { _observed: Observed(driver), _soft: soft, stream, release, pending, asked }
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

    /// Also of a single question.
    #[test]
    fn what_was_in_vain_is_a_part_of_the_time() {
        let time = MICROSECOND * 60;
        let parts = [(0, 0, 0), (1, 0, 0), (0, 1, 60), (1, 1, 30), (2, 1, 20), (0, 7, 60)];
        for (over, not_yet, part) in parts {
            assert_eq!(asked(over, not_yet).in_vain(time), MICROSECOND * part, "{over}, {not_yet}");
        }
    }

    /// What comes and what ends makes it quick again.
    #[test]
    fn news_begin_the_pauses_anew() {
        let held = Held::new(3);
        let (mut entries, quick) = (held.entries(), MICROSECOND * 25);
        let mut poller = Poller::new();
        let quiet_round = |poller: &mut Poller, arrived| {
            sleep(Duration::from_secs(1));
            poller.take_round(arrived).1
        };
        assert_eq!(quiet_round(&mut poller, vec![entries.remove(0), entries.remove(0)]), quick);
        assert_eq!(quiet_round(&mut poller, vec![]), MICROSECOND * 500);
        assert_eq!(quiet_round(&mut poller, vec![entries.remove(0)]), quick, "one has arrived");
        assert_eq!(quiet_round(&mut poller, vec![]), MICROSECOND * 500);
        let mut pending = held.pending;
        drop(pending.pop());
        // It is over in this round, and the next one is quick.
        assert_eq!(quiet_round(&mut poller, vec![]), Duration::from_millis(1));
        assert_eq!(poller.take_round(vec![]).1, quick, "one is over");
        drop(held.release);
    }

    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn rounds_go_on_where_they_stop() {
        const OLD: usize = 40;
        let held = Held::new(OLD);
        let all = held.handles();
        let mut poller = Poller::new();
        poller.old.all.extend(held.entries());

        // With time for all, all are asked once.
        assert_eq!(poller.ask(now(), LONG), asked(0, OLD as u32));
        assert_eq!(held.asked(), all);
        // Without time, one after the other, round by round.
        let mut seen = Vec::new();
        for _ in 0..3 * OLD {
            assert_eq!(poller.ask(now(), Duration::ZERO), asked(0, 1));
            seen.append(&mut held.asked());
        }
        let expected: Vec<_> = all.iter().cycle().take(3 * OLD).copied().collect();
        assert_eq!(seen, expected, "in turn");
        // With time for some, some.
        COST.set(MICROSECOND);
        assert_eq!(poller.ask(now(), MICROSECOND * 7), asked(0, 7));
        // Those that are over leave, and no other is left out.
        drop(held.release);
        held.stream.synchronize().unwrap();
        assert_eq!(poller.ask(now(), Duration::ZERO), asked(OLD as u32, 0));
        assert!(poller.is_idle());
    }

    /// So that a new completion does not wait for thousands of old ones.
    #[test]
    fn new_ones_are_asked_for_first() {
        const OLD: usize = 40;
        let held = Held::new(OLD + 1);
        let (mut entries, all) = (held.entries(), held.handles());
        let new = entries.pop().unwrap();
        let mut poller = Poller::new();
        poller.old.all.extend(entries);
        poller.accept(vec![new], now());

        // Each round begins when the new one has just arrived, and has no time for the old ones.
        for round in 0..20 {
            poller.ask(now(), Duration::ZERO);
            let asked = held.asked();
            assert_eq!(
                (asked.len(), asked.first()),
                (2, all.last()),
                "an old one has its turn in round {round}"
            );
        }
        // It is new until ten milliseconds are over.
        sleep(YOUNG - MICROSECOND);
        poller.ask(now(), Duration::ZERO);
        assert_eq!(poller.young.all.len(), 1);
        sleep(MICROSECOND);
        poller.ask(now(), Duration::ZERO);
        assert_eq!((poller.young.all.len(), poller.old.all.len()), (0, OLD + 1));
        drop(held.release);
    }

    /// The next of a stream is found in the round after it is over, however many wait behind it.
    #[test]
    fn the_oldest_are_asked_for_in_each_round() {
        const OLD: usize = 100;
        let mut held = Held::new(0);
        let (release, released) = std::sync::mpsc::channel::<()>();
        let released = Arc::new(Mutex::new(released));
        for _ in 0..OLD {
            let released = Arc::clone(&released);
            let hold = move || {
                let _ = lock(&released).recv();
            };
            held.stream.launch_host_function(hold).unwrap();
            held.pending.push(held.stream.completion().unwrap());
        }
        let mut poller = Poller::new();
        poller.old.all.extend(held.entries());
        drop(core::mem::replace(&mut held.release, std::sync::mpsc::channel().0));
        for next in &held.pending[..20] {
            release.send(()).unwrap();
            next.event.synchronize().unwrap();
            COST.set(MICROSECOND);
            assert_eq!(poller.ask(now(), MICROSECOND * 10), asked(1, 10));
            COST.set(Duration::ZERO);
        }
        drop(release);
    }

    fn asked(over: u32, not_yet: u32) -> Asked {
        Asked { over, not_yet }
    }

    /// Rounds of the poller with so many that arrive at once, until so much time is over, as if the
    /// poller's thread had never to wait for the machine. How much of it was asking, and which were
    /// asked.
    fn rounds(pending: usize, cost: Duration, time: Duration) -> (Duration, Duration, Vec<u64>) {
        let held = Held::new(pending);
        let mut poller = Poller::new();
        let mut arrived = held.entries();
        COST.set(cost);
        let (started, mut asking) = (now(), Duration::ZERO);
        while now() - started < time {
            let before = now();
            let (rest, pause) = poller.take_round(core::mem::take(&mut arrived));
            asking += now() - before;
            sleep(rest.max(pause));
        }
        COST.set(Duration::ZERO);
        drop(held.release);
        (asking, now() - started, lock(&held.asked).clone())
    }

    /// However many are pending, young or old. A tenth is promised, of which waking up takes some.
    #[test]
    fn it_takes_a_twelfth_of_a_core() {
        // Some that are all young until the end, and some that are old for long.
        for time in [YOUNG - MICROSECOND, YOUNG * 6] {
            for (pending, cost) in
                [(1, 100), (30, 100), (1000, 100), (1000, 1000), (4000, 200), (200, 20_000)]
            {
                let (asking, whole, _) = rounds(pending, Duration::from_nanos(cost), time);
                let share = asking.as_secs_f64() / whole.as_secs_f64();
                // A round ends with the query in which its time is over.
                assert!(share < 1.0 / 11.0, "{pending} of {cost} ns: {share}");
                // Where there is much to ask, the time for it is used.
                assert!(share > 1.0 / 13.0 || pending < 30, "{pending} of {cost} ns: {share}");
            }
        }
    }

    /// With more young ones than a round has time for.
    #[test]
    fn many_young_ones_take_turns() {
        const YOUNG_ONES: usize = 2000;
        let (.., asked) = rounds(YOUNG_ONES, Duration::from_nanos(100), YOUNG - MICROSECOND);
        assert!(asked.len() > 3 * YOUNG_ONES, "{}", asked.len());
        for turn in asked.chunks(YOUNG_ONES) {
            let each: std::collections::HashSet<_> = turn.iter().collect();
            assert_eq!(each.len(), turn.len(), "one was asked twice before all had their turn");
        }
    }

    #[test]
    fn asking_in_vain_costs_sleep() {
        // A tenth of a core: eleven times as long as it took.
        assert_eq!(rest(asked(0, 100), MICROSECOND * 10), MICROSECOND * 110);
        assert_eq!(rest(asked(50, 50), MICROSECOND * 10), MICROSECOND * 55);
        for (time, over, not_yet) in [(10, 100, 0), (1, 0, 1), (0, 0, 0)] {
            assert_eq!(
                rest(asked(over, not_yet), MICROSECOND * time),
                PAUSE,
                "{time} {over} {not_yet}"
            );
        }
        // The thread was held up, for an hour even.
        for seconds in [1, 3600] {
            assert_eq!(rest(asked(0, 10_000), Duration::from_secs(seconds)), LONGEST_PAUSE);
        }
    }
}
