//! Whether the threads of this process wait: virtual time moves only while none of them runs that
//! could give the driver work.

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use crate::sync::lock;
use crate::threads::processor_time::this_thread;

/// For how long a thread may run without a call before time stops waiting for it: it may be one
/// that never calls again, or that waits for a value in memory.
const SILENCE: Duration = Duration::from_secs(1);
/// The same for a thread that has not called this driver yet.
const SILENCE_OF_STRANGERS: Duration = Duration::from_millis(100);

/// How often a look gives way to a servant that runs.
const YIELDS: usize = 8;

/// The machines that each thread has used, a bit for each slot, and `OWN`.
static USED: Mutex<BTreeMap<i32, u32>> = Mutex::new(BTreeMap::new());
/// A thread that this crate started.
const OWN: u32 = 1 << 31;

fn used() -> MutexGuard<'static, BTreeMap<i32, u32>> {
    lock(&USED)
}

/// Holds the table, for a fork.
#[cfg(all(unix, not(miri)))]
pub(crate) fn hold() -> impl Sized + 'static {
    used()
}

/// The calling thread uses a machine.
pub(crate) fn uses(slot: usize) {
    *used().entry(this_thread()).or_default() |= 1 << slot;
}

/// The calling thread is one of this crate's, which has no work of its own.
pub(crate) fn is_own() {
    *used().entry(this_thread()).or_default() |= OWN;
}

pub(crate) fn ends() {
    used().remove(&this_thread());
}

/// A thread of the program, as one look found it.
struct Seen {
    /// How long it has run, and how often it began to.
    ran: (u64, u64),
    /// Whether the thread waited at the last look.
    waits: bool,
    /// Its calls so far, and how long it had run when the last one was first seen.
    calls: (u64, u64),
}

/// What the looks have found so far.
pub(crate) struct Quiet(BTreeMap<i32, Seen>);

/// What a look asks about: the calls of each thread of the program, and which threads are left out
/// because they wait for the driver or serve others.
pub(crate) struct Question {
    pub(crate) slot: usize,
    pub(crate) calls: BTreeMap<i32, u64>,
    pub(crate) left_out: Vec<i32>,
    pub(crate) servants: Vec<i32>,
}

impl Quiet {
    pub(crate) const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// A number that stands for all that the other threads have done so far, if all of them wait.
    ///
    /// Each thread is looked at twice, unless none has run since the look before. One that waited
    /// both times and has not run in between has waited all that time. So if all do, there is a
    /// moment, between the first round and the second, at which all of them waited. All have the
    /// second round: one that had waited until the first may have been woken by one that ran then.
    ///
    /// A servant often wakes up to look, so it is only looked at in between: one that runs may hold
    /// a lock for which a thread of the program seems to sleep.
    pub(crate) fn look(&mut self, question: &Question) -> Option<u64> {
        let used = used().clone();
        let counts = |thread: &i32| {
            let machines = used.get(thread).copied().unwrap_or_default();
            let elsewhere = machines != 0 && machines & (1 << question.slot) == 0;
            machines & OWN == 0 && !elsewhere && !question.left_out.contains(thread)
        };
        let list = || -> Vec<i32> { system::threads().into_iter().filter(counts).collect() };
        let threads = list();
        self.0.retain(|thread, _| threads.contains(thread));
        let mut all_waited = true;
        for thread in &threads {
            match self.look_at(*thread, question) {
                Look::Silent | Look::Waited => {}
                Look::Waits => all_waited = false,
                Look::Runs => return None,
            }
        }
        let runs = |thread: &i32| system::state(*thread).is_some_and(|(_, waits)| !waits);
        for servant in &question.servants {
            // On a machine with much to do it needs a processor to come to its end.
            if runs(servant)
                && !(0..YIELDS).any(|_| {
                    std::thread::yield_now();
                    !runs(servant)
                })
            {
                return None;
            }
        }
        // One that ran at first may have started another before it waited.
        if !all_waited && list() != threads {
            return None;
        }
        if !all_waited {
            for thread in &threads {
                if !matches!(self.look_at(*thread, question), Look::Silent | Look::Waited) {
                    return None;
                }
            }
        }
        Some(self.0.iter().fold(0, |sum: u64, (thread, seen)| {
            let ran = if seen.waits { seen.ran.1 } else { seen.calls.0 };
            let one = (*thread as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ ran;
            sum.wrapping_mul(0x0100_0000_01B3).wrapping_add(one)
        }))
    }

    fn look_at(&mut self, thread: i32, question: &Question) -> Look {
        let Some((ran, waits)) = system::state(thread) else {
            self.0.remove(&thread);
            return Look::Silent;
        };
        let calls = question.calls.get(&thread).copied().unwrap_or_default();
        let before = self.0.get(&thread);
        let waited = waits && before.is_some_and(|before| before.waits && before.ran == ran);
        let since = match before {
            Some(before) if before.calls.0 == calls => before.calls.1,
            _ => ran.0,
        };
        self.0.insert(thread, Seen { ran, waits, calls: (calls, since) });
        let silence = if calls > 0 { SILENCE } else { SILENCE_OF_STRANGERS };
        match waits {
            true if waited => Look::Waited,
            true => Look::Waits,
            false if u128::from(ran.0.saturating_sub(since)) > silence.as_nanos() => Look::Silent,
            false => Look::Runs,
        }
    }
}

enum Look {
    /// It waits, and has not run since the look before.
    Waited,
    Waits,
    Runs,
    /// It has run for long without a call.
    Silent,
}

#[cfg(target_os = "linux")]
mod system {
    use std::fs;

    /// The threads of this process; none where they cannot be seen.
    pub(super) fn threads() -> Vec<i32> {
        let Ok(names) = fs::read_dir("/proc/self/task") else { return Vec::new() };
        names.filter_map(|name| name.ok()?.file_name().to_str()?.parse().ok()).collect()
    }

    /// How long a thread has run and how often it began to, and whether it waits. None if it has
    /// ended.
    pub(super) fn state(thread: i32) -> Option<((u64, u64), bool)> {
        let read = |name| fs::read_to_string(format!("/proc/self/task/{thread}/{name}"));
        let ran = read("schedstat").unwrap_or_default();
        let mut ran = ran.split_ascii_whitespace().filter_map(|number| number.parse().ok());
        let ran = (ran.next().unwrap_or_default(), ran.nth(1).unwrap_or_default());
        let stat = read("stat").ok()?;
        // The name before it may have any character.
        let state = stat.rsplit(')').next()?.trim_start().chars().next()?;
        Some((ran, matches!(state, 'S' | 'T' | 't' | 'Z' | 'X')))
    }
}

/// Elsewhere threads cannot be seen, and time moves as soon as one of them waits.
#[cfg(not(target_os = "linux"))]
mod system {
    pub(super) fn threads() -> Vec<i32> {
        Vec::new()
    }

    pub(super) fn state(_thread: i32) -> Option<((u64, u64), bool)> {
        None
    }
}
