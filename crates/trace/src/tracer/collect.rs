//! Collecting: the spans whose work is done, with their places on the host's clock.

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use std::sync::MutexGuard;

use cuda_events::Error;
use cuda_events::ext::PooledEvent;

use crate::clock::{Clock, Place, Stamp};
use crate::stream_id::StreamId;
use crate::thread::{Quiet, lock};
use crate::trace::GpuSpan;
use crate::tracer::Inner;
use crate::tracer::states::{Ended, Labels, Open, Ready, SHARDS, Start, Times};

/// The start of a span that is open longer than this is looked at before its end.
const LONG: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct Collected {
    /// For each stream in the order in which the spans were ended, which is also the order in which
    /// their work is done.
    pub(super) pending: BTreeMap<StreamId, VecDeque<Ended>>,
    pub(super) ready: Vec<Ready>,
    /// Empty, and as long as what a drain has taken in: the next drain gives it to a shard.
    pub(super) taken: Vec<Ended>,
    pub(super) failed: usize,
    /// The first error that no drain has returned.
    pub(super) error: Option<Error>,
}

impl Inner {
    /// Takes in what threads have ended, in the order of the ends. `taken` is empty before.
    fn take_in(&self, taken: &mut Vec<Ended>) {
        for shard in &self.shards {
            let mut shard = lock(shard);
            if taken.is_empty() && !shard.ended.is_empty() {
                // Nothing is moved, and the shard has room for as many.
                core::mem::swap(taken, &mut shard.ended);
            } else {
                taken.append(&mut shard.ended);
            }
        }
        // Several threads, or one shard in which threads overtook each other.
        if !taken.is_sorted_by_key(|span| span.ended) {
            taken.sort_by_key(|span| span.ended);
        }
    }

    /// Takes in what threads have ended, and lets all of it wait.
    pub(super) fn queue(&self, collected: &mut Collected) {
        let Collected { pending, taken, .. } = collected;
        self.take_in(taken);
        for span in taken.drain(..) {
            pending.entry(span.open.stream).or_default().push_back(span);
        }
    }

    /// The spans that are done, and whose place on the host's axis is known.
    pub(super) fn collect(&self, collected: &mut Collected) -> Vec<GpuSpan> {
        let _quiet = Quiet::new();
        let _relaxed = self.relaxed();
        let Collected { pending, ready, taken, failed, error } = collected;
        self.take_in(taken);
        let mut drain = Drain {
            inner: self,
            clock: lock(&self.clock),
            anchored: Anchored::NotTried,
            given: Vec::with_capacity(ready.len() + taken.len()),
            ready: Vec::new(),
            spare: Default::default(),
            failed,
            error,
        };
        // All times of this drain are seen from the anchors that are done now.
        if let Err(error) = drain.clock.settle(|| self.now()) {
            drain.note(error);
        }
        for ready in ready.drain(..) {
            drain.give(ready);
        }
        for queue in pending.values_mut() {
            while let Some(span) = queue.pop_front() {
                if let Some(span) = drain.look(span) {
                    queue.push_front(span);
                    break;
                }
            }
        }
        pending.retain(|_, queue| !queue.is_empty());
        for span in taken.drain(..) {
            let stream = span.open.stream;
            // The spans that are still in the queue come before it.
            match pending.get_mut(&stream) {
                Some(queue) => queue.push_back(span),
                None => {
                    if let Some(span) = drain.look(span) {
                        pending.entry(stream).or_default().push_back(span);
                    }
                }
            }
        }
        let Drain { mut clock, given, ready: later, spare, .. } = drain;
        *ready = later;
        for (shard, mut spare) in self.shards.iter().zip(spare) {
            if !spare.is_empty() {
                lock(shard).spare.append(&mut spare);
            }
        }
        self.look_at_long_ones(&mut clock, pending);
        clock.forget();
        given
    }

    #[inline]
    fn place(&self, clock: &mut Clock, ready: Ready) -> GpuSpan {
        let Ready { name, stream, thread, begun, ended, times, labels } = ready;
        let Labels { category, args } = labels.map_or_else(Labels::default, |labels| *labels);
        let Times { start, placed, end, duration } = times;
        let start = placed.unwrap_or_else(|| clock.place(start));
        let (end, error) = end_of(start, clock.place(end));
        let at = |ns: f64| self.origin + nanoseconds(ns);
        GpuSpan {
            name,
            category,
            args,
            stream,
            thread,
            begun,
            ended,
            start: at(start.ns),
            end: at(end),
            error: not_below(error),
            duration: nanoseconds(duration.ns),
            duration_error: not_below(duration.error),
        }
    }

    /// Finds the start of spans that are open for long or whose work takes long, so no anchors are
    /// kept for them.
    fn look_at_long_ones(
        &self,
        clock: &mut Clock,
        pending: &mut BTreeMap<StreamId, VecDeque<Ended>>,
    ) {
        let now = self.host.now();
        let mut look = |open: &mut Open| {
            if let Start::Recorded(event) = &open.start
                && now.saturating_duration_since(open.begun) >= LONG
                // An error is met again at the end.
                && let Ok(Some(start)) = clock.stamp(event)
                && clock.newest().is_some_and(|newest| start.device <= newest)
            {
                open.start = Start::Known(Box::new((start, clock.place(start))));
            }
        };
        for shard in &self.shards {
            lock(shard).open.iter_mut().flatten().for_each(&mut look);
        }
        pending.values_mut().flatten().for_each(|ended| look(&mut ended.open));
    }
}

/// What one drain works with.
struct Drain<'a> {
    inner: &'a Inner,
    clock: MutexGuard<'a, Clock>,
    anchored: Anchored,
    given: Vec<GpuSpan>,
    /// The spans without a done anchor after them, and those behind them in their streams. The next
    /// drain looks at them first.
    ready: Vec<Ready>,
    spare: [Vec<PooledEvent>; SHARDS],
    failed: &'a mut usize,
    error: &'a mut Option<Error>,
}

/// Whether this drain has recorded an anchor.
#[derive(Clone, Copy, PartialEq)]
enum Anchored {
    NotTried,
    Tried,
    /// It failed, and no later one will be better.
    Failed,
}

impl Drain<'_> {
    /// Gives a span back if its work is pending.
    #[inline]
    fn look(&mut self, span: Ended) -> Option<Ended> {
        match span.times(&mut self.clock) {
            Err(Error::NotReady { .. }) => return Some(span),
            Ok(times) => {
                let ready = span.into_ready(times, &mut self.spare);
                self.give(ready);
            }
            Err(error) => {
                *self.failed += 1;
                span.discard();
                self.note(error);
            }
        }
        None
    }

    #[cold]
    fn note(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }

    /// Places a span, if there is an anchor after it and none of its stream is kept back.
    #[inline]
    fn give(&mut self, ready: Ready) {
        if self.is_anchored(ready.times.end)
            && !self.ready.iter().any(|kept| kept.stream == ready.stream)
        {
            let span = self.inner.place(&mut self.clock, ready);
            self.given.push(span);
        } else {
            self.ready.push(ready);
        }
    }

    #[inline]
    fn is_anchored(&mut self, end: Stamp) -> bool {
        self.clock.newest().is_some_and(|newest| end.device <= newest) || self.anchor(end)
    }

    /// All that was done before this drain comes before an anchor that the drain records.
    #[cold]
    #[inline(never)]
    fn anchor(&mut self, end: Stamp) -> bool {
        if self.anchored == Anchored::NotTried {
            self.anchored = Anchored::Tried;
            let (inner, clock) = (self.inner, &mut self.clock);
            // One that is pending may be stamped before the spans.
            let done = clock.settle(|| inner.now()).and_then(|settled| {
                let done = inner.anchor(clock)?;
                if done && !settled { inner.anchor(clock) } else { Ok(done) }
            });
            if let Err(error) = done {
                self.note(error);
                self.anchored = Anchored::Failed;
            }
        }
        self.anchored == Anchored::Failed
            || self.clock.newest().is_some_and(|newest| end.device <= newest)
    }
}

/// The end of a span, and the error of its places. Start and end may be placed by different
/// anchors, so the end may come out before the start.
#[inline]
fn end_of(start: Place, end: Place) -> (f64, f64) {
    (end.ns.max(start.ns), start.error.max(end.error))
}

/// The nearest whole number of nanoseconds. `f64::round` is a slow call on many targets.
fn nanoseconds(ns: f64) -> Duration {
    Duration::from_nanos((ns.max(0.0) + 0.5) as u64)
}

/// The next whole number of nanoseconds.
fn not_below(ns: f64) -> Duration {
    let whole = ns as u64;
    Duration::from_nanos(whole.saturating_add(u64::from((whole as f64) < ns)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_does_not_end_before_its_start() {
        let place = |ns, error| Place { ns, error };
        assert_eq!(end_of(place(10.0, 1.0), place(15.0, 2.0)), (15.0, 2.0));
        assert_eq!(end_of(place(10.0, 3.0), place(15.0, 2.0)), (15.0, 3.0));
        assert_eq!(end_of(place(10.0, 1.0), place(9.0, 2.0)), (10.0, 2.0));
    }

    #[test]
    fn times_are_rounded_and_bounds_are_rounded_up() {
        for (ns, nearest, bound) in [
            (-7.0, 0, 0),
            (0.0, 0, 0),
            (0.25, 0, 1),
            (0.5, 1, 1),
            (41.0, 41, 41),
            (41.5, 42, 42),
            (1e15 + 0.25, 1_000_000_000_000_000, 1_000_000_000_000_001),
            (f64::INFINITY, u64::MAX, u64::MAX),
        ] {
            assert_eq!(nanoseconds(ns), Duration::from_nanos(nearest), "{ns}");
            assert_eq!(not_below(ns), Duration::from_nanos(bound), "{ns}");
        }
    }
}
