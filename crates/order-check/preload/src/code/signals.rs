//! Orders that kernels make through memory. A kernel sets a flag that the host polls: the host is after all
//! work before it then, of any stream. Or a kernel polls a flag that the host, a copy or another kernel sets:
//! work behind it is after what is before that.

use core::sync::atomic::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;

use cuda_order_check_engine::{Access, AccessKind, Launched, StreamId};

use crate::code::evaluated::Waits;
use crate::code::kernel::KernelCode;
use crate::code::launch::Values;
use crate::code::launches::{ANY_TIME, LISTED, Launches, NEW, TOO_MANY};
use crate::code::time::CANDIDATES;
use crate::lock::{Lock, Rank};

/// Of so many kernels it is known where they were launched first and last.
const KERNELS: usize = 4096;
/// So many may be of modules that are gone before it is looked for them.
const GONE: usize = 64;

/// A copy or memset of so many bytes may set a flag, and one of at most a word may be how the host polls one.
const FLAG: u64 = 64;
pub(crate) const WORD: u64 = 8;

/// Whether a copy or a memset writes there what may be a flag.
pub(crate) fn may_set_flag(all: &[Access]) -> bool {
    let mut written = all.iter().filter(|access| access.kind == AccessKind::Write);
    written.any(|access| access.range.end - access.range.start <= FLAG)
}

const SIGNALS: &str = "the host may see in memory how far it is, and such an order is not seen";

const HOLDS: &str =
    "a kernel before it may wait for the host through memory, and such an order is not seen";

const WAITED: &str =
    "a kernel may wait for it through memory before the other one, and such an order is not seen";

/// What may have a part in such an order.
struct Seen {
    codes: Vec<Arc<KernelCode>>,
    /// As many kernels as there are before it is looked for those that are gone.
    look_at: usize,
    /// Of the launches before this call not all are in the list.
    gone_before: u64,
    /// Whether there were more kernels.
    are_more: bool,
    /// The streams of copies and memsets that may set a flag, with the last call of each.
    writes: Vec<(Option<u64>, u64)>,
    /// Launches with a flag, and copies by which the host may have polled it.
    polled: VecDeque<[u64; 2]>,
    /// The last accesses of the host to memory that is watched, in rising order, and the last one before.
    touched: VecDeque<u64>,
    touched_before: u64,
    /// Whether some such memory could not be watched.
    is_unwatched: bool,
}

const NOTHING: Seen = Seen {
    codes: Vec::new(),
    look_at: GONE,
    gone_before: 0,
    are_more: false,
    writes: Vec::new(),
    polled: VecDeque::new(),
    touched: VecDeque::new(),
    touched_before: 0,
    is_unwatched: false,
};

static SEEN: Lock<Seen> = Lock::new(Rank::Code, NOTHING);

impl Seen {
    /// Lists a kernel that is launched by this call, if there is room.
    fn list(&mut self, code: &Arc<KernelCode>, number: u64) -> bool {
        if self.codes.len() >= self.look_at && number != ANY_TIME {
            let before = self.codes.len();
            self.codes.retain(|code| !is_gone(code));
            // What is gone was over when its module was unloaded, and orders nothing that comes later.
            if self.codes.len() < before {
                self.gone_before = number;
            }
            self.look_at = GONE.max(2 * self.codes.len());
        }
        self.are_more |= self.codes.len() >= KERNELS;
        if !self.are_more {
            self.codes.push(code.clone());
        }
        !self.are_more
    }
}

/// Whether nobody but the list and the last launch has a kernel: its module is unloaded. A graph may launch
/// its kernels at any time.
fn is_gone(code: &Arc<KernelCode>) -> bool {
    let Ok(mut last) = code.launches.last.lock() else { return false };
    let in_graph = code.launches.elsewhere.last.load(Ordering::Relaxed) == ANY_TIME;
    let is_gone = !in_graph && Arc::strong_count(code) == 1 + usize::from(last.is_some());
    if is_gone {
        // The launch has the kernel, too.
        *last = None;
    }
    is_gone
}

/// A kernel is launched by the call with this number, or at any time by a graph. `of_host`: with memory that
/// the host may access, too.
pub(crate) fn launched(
    code: &Arc<KernelCode>,
    call: Option<(StreamId, u64)>,
    launch: Option<&Launched>,
    of_host: bool,
) {
    let Launches { place_in_list, with_host, with_host_before, last, .. } = &code.launches;
    let number = call.map_or(ANY_TIME, |(_, number)| number);
    code.launches.place(call.map(|(stream, _)| stream.0)).add(number);
    if of_host {
        with_host_before.store(with_host.last.load(Ordering::Relaxed), Ordering::Relaxed);
        with_host.add(number);
    }
    if place_in_list.load(Ordering::Relaxed) == NEW
        && let Ok(mut seen) = SEEN.lock()
    {
        let place = if seen.list(code, number) { LISTED } else { TOO_MANY };
        place_in_list.store(place, Ordering::Relaxed);
    }
    if place_in_list.load(Ordering::Relaxed) == LISTED
        && let Some(launch) = launch
        && let Ok(mut last) = last.lock()
    {
        *last = Some(launch.clone());
    }
}

/// A copy or a memset writes a few bytes, or a stream a value, which may be a flag that a kernel polls.
pub(crate) fn wrote_few(call: Option<(StreamId, u64)>) {
    let Ok(mut seen) = SEEN.lock() else { return };
    let call = call.filter(|_| seen.writes.len() < KERNELS);
    let (stream, number) = call.map_or((None, ANY_TIME), |(stream, at)| (Some(stream.0), at));
    match seen.writes.iter_mut().find(|(other, _)| *other == stream) {
        Some((_, last)) => *last = number.max(*last),
        None => seen.writes.push((stream, number)),
    }
}

/// The host has accessed memory that a kernel or a copy may still use.
pub(crate) fn touched(number: u64) {
    if let Ok(mut seen) = SEEN.lock() {
        seen.touched.push_back(number);
        if seen.touched.len() > KERNELS {
            seen.touched_before = seen.touched.pop_front().unwrap_or(u64::MAX);
        }
    }
}

/// Memory of a kernel could not be watched, so the host may have polled there.
pub(crate) fn unwatched() {
    if let Ok(mut seen) = SEEN.lock() {
        seen.is_unwatched = true;
    }
}

/// A launch has a flag that a copy reads, which the host may wait for.
pub(crate) fn polled(launch: u64, copy: u64) {
    if let Ok(mut seen) = SEEN.lock() {
        seen.polled.push_back([launch, copy]);
        if seen.polled.len() > KERNELS {
            seen.polled.pop_front();
        }
    }
}

/// Whether any kernel was launched.
pub(crate) fn any() -> bool {
    SEEN.lock().map_or(true, |seen| !seen.codes.is_empty())
}

/// One of the two sides of a finding.
#[derive(Clone, Copy)]
pub(crate) struct Side<'a> {
    /// `None` for the host.
    pub(crate) stream: Option<u64>,
    pub(crate) number: u64,
    pub(crate) launch: Option<&'a Values>,
}

/// Why the host may be in an order with the work on this side, which it may have had before it came to the
/// other side. The code of kernels may be decoded for it.
pub(crate) fn may_order(work: Side<'_>, other: Side<'_>) -> Option<&'static str> {
    let (codes, touched, is_polled) = {
        let seen = SEEN.lock().ok()?;
        let mut polled = seen.polled.iter();
        let is_polled = polled.any(|[launch, copy]| *launch >= work.number && *copy < other.number);
        // What the host has seen after the other side was no reason to come to it.
        let is_touched =
            |number: &u64| (work.number.saturating_add(1)..other.number).contains(number);
        let touched = seen.is_unwatched
            || seen.touched_before > work.number
            || seen.touched.iter().any(is_touched);
        if seen.are_more || work.number.min(other.number) <= seen.gone_before {
            return Some(SIGNALS);
        }
        (seen.codes.clone(), touched, is_polled)
    };
    if is_polled {
        return Some(SIGNALS);
    }
    // Behind a kernel that waits is the work, or what the host does before it sets the flag.
    let held = if other.stream.is_some() { work.number.max(other.number) } else { work.number };
    codes.iter().find_map(|code| {
        let Launches { with_host, with_host_before, .. } = &code.launches;
        let [first, last] = with_host.numbers()?;
        let flags = || code.has_flags(CANDIDATES);
        if last >= work.number && flags().signals {
            return Some(SIGNALS);
        }
        // A store is a signal once its kernel has ended, if the host has looked there meanwhile.
        let before = with_host_before.load(Ordering::Relaxed);
        let is_other = |number: u64| number > work.number && number != other.number;
        let is_between = is_other(last) || is_other(before);
        if touched && is_between && flags().writes {
            return Some(SIGNALS);
        }
        (first < held && flags().waits).then_some(HOLDS)
    })
}

/// Kernels that the second side may be behind, and that may wait for what comes after the first one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Waiting {
    /// The first side is this one of the finding.
    at: usize,
    /// The call of the first side, and the stream of the second one: behind what is there, no signal comes.
    after: u64,
    other: Option<u64>,
    /// The streams of the kernels, `None` for any.
    streams: Vec<Option<u64>>,
    /// Whether the first side is a signal, too.
    is_signal: bool,
}

/// Whether one of the sides may be before the other one so. The code of kernels may be decoded for it.
pub(crate) fn waiting(sides: [Side<'_>; 2]) -> Vec<Waiting> {
    let Ok((codes, are_more, gone_before)) =
        SEEN.lock().map(|seen| (seen.codes.clone(), seen.are_more, seen.gone_before))
    else {
        return Vec::new();
    };
    let [one, two] = sides;
    let of = |(at, first, second): (usize, Side<'_>, Side<'_>)| {
        let mut streams: Vec<Option<u64>> = Vec::new();
        for code in &codes {
            // What is in the stream of the first side is before or after both.
            let may_wait = |(stream, [begin, _]): &(Option<u64>, [u64; 2])| {
                (stream.is_none() || *stream != first.stream) && *begin < second.number
            };
            let mut all = code.launches.all().filter(may_wait).map(|(stream, _)| stream).peekable();
            if all.peek().is_some() && may_wait_for_others(code) {
                streams.extend(all);
            }
        }
        streams.extend((are_more || first.number <= gone_before).then_some(None));
        streams.sort_unstable();
        streams.dedup();
        let signals = |launch: &Values| launch.code.has_flags(CANDIDATES).signals;
        (!streams.is_empty()).then(|| Waiting {
            at,
            after: first.number,
            other: second.stream,
            streams,
            is_signal: first.launch.is_some_and(signals),
        })
    };
    [(0, one, two), (1, two, one)].into_iter().filter_map(of).collect()
}

/// Whether a kernel may wait for other work than its own blocks, as far as it was launched last.
fn may_wait_for_others(code: &KernelCode) -> bool {
    if !code.has_flags(CANDIDATES).waits {
        return false;
    }
    let last = code.launches.last.lock().ok().and_then(|last| last.clone());
    let Some(values) = last.as_ref().and_then(|last| last.get::<Values>()) else { return true };
    match values.evaluate(CANDIDATES) {
        Ok(found) => match &found.waits {
            Waits::None => false,
            Waits::Itself(table) => found.is_shared(values, table),
            Waits::Any => true,
        },
        Err(_) => true,
    }
}

impl Waiting {
    /// Why the first side may be before the second one, with what was submitted so far.
    pub(crate) fn ordered(&self) -> Option<(usize, &'static str)> {
        // What is in the stream of the kernel that waits, or behind it, comes too late.
        let counts = |stream: Option<u64>, last: u64| {
            let is_apart = |other: &Option<u64>| stream.is_none() || *other != stream;
            last >= self.after
                && (stream.is_none() || self.other != stream)
                && self.streams.iter().any(is_apart)
        };
        let seen = SEEN.lock().ok()?;
        let of_kernels = || {
            let launches = seen.codes.iter().flat_map(|code| code.launches.all());
            launches
                .into_iter()
                .any(|(stream, [_, last])| last > self.after && counts(stream, last))
        };
        let of_writes = || seen.writes.iter().any(|(stream, last)| counts(*stream, *last));
        let is_unknown = || seen.are_more || self.after <= seen.gone_before;
        (self.is_signal || is_unknown() || of_writes() || of_kernels()).then_some((self.at, WAITED))
    }
}

/// For tests: calls are counted anew.
#[cfg(test)]
pub(crate) fn forget() {
    *SEEN.lock().expect("no panic") = NOTHING;
}

#[cfg(test)]
mod tests;
