//! Contexts as the engine has them: what the streams of each share. Which of them have work, waits
//! of the whole context, and the context's failure.

use core::ops::{Index, IndexMut};
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::abi::*;
use crate::engine::point::Point;
use crate::engine::stream::Stream;
use crate::engine::work::Task;
use crate::processes;

/// A wait of a whole context (`cuCtxWaitEvent`).
#[derive(Clone)]
pub(crate) enum ContextWait {
    Point(Arc<Point>),
    Shared(processes::Wait),
}

impl ContextWait {
    pub(crate) fn is_done(&self) -> bool {
        match self {
            Self::Point(point) => point.is_done(),
            Self::Shared(wait) => wait.is_done(),
        }
    }

    #[cfg_attr(
        not(any(target_os = "linux", windows)),
        allow(unreachable_code, reason = "elsewhere there is no such wait")
    )]
    pub(crate) fn task(&self) -> Task {
        match self {
            Self::Point(point) => Task::Wait(point.clone()),
            Self::Shared(wait) => Task::WaitShared(wait.clone()),
        }
    }
}

/// A context as the engine has it.
#[derive(Default)]
pub(crate) struct ContextWork {
    pub(super) handle: u64,
    /// The primary context of a green one; any other is its own. They fail together.
    primary: u32,
    ended: bool,
    /// The error that calls about it return from now on.
    pub(super) failed: Option<CUresult>,
    /// Its legacy default stream, once it was used.
    pub(super) legacy: Option<u32>,
    /// Streams with work.
    pub(super) busy: BTreeSet<u32>,
    /// The ends of launches with work of the context in streams of other contexts.
    elsewhere: Vec<Arc<Point>>,
    /// The ends of copies that its device makes for streams of other devices.
    copies: Vec<Arc<Point>>,
    /// What every stream of the context waits for from its next operation on, in the order in which
    /// that came.
    pub(super) waits: Vec<(u64, ContextWait)>,
    pub(super) last_wait: u64,
    /// How many streams it has had: each begins in the next channel.
    streams_made: u32,
}

/// The contexts, which are numbered one after the other.
pub(crate) struct Contexts(Vec<ContextWork>);

impl Index<u32> for Contexts {
    type Output = ContextWork;

    fn index(&self, context: u32) -> &ContextWork {
        &self.0[context as usize]
    }
}

impl IndexMut<u32> for Contexts {
    fn index_mut(&mut self, context: u32) -> &mut ContextWork {
        &mut self.0[context as usize]
    }
}

impl Contexts {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    /// A new context, with its handle.
    pub(crate) fn add(&mut self, context: u32, handle: u64) {
        self.0.push(ContextWork { handle, primary: context, ..ContextWork::default() });
    }

    /// A context stands for a green one, which is the primary one with other resources.
    pub(crate) fn set_primary(&mut self, context: u32, primary: u32) {
        self[context].primary = primary;
    }

    /// A context ends with all of its streams.
    pub(crate) fn end(&mut self, context: u32) {
        let entry = &mut self[context];
        entry.ended = true;
        entry.legacy = None;
        entry.busy.clear();
        entry.elsewhere.clear();
        entry.copies.clear();
        entry.waits.clear();
    }

    /// A primary context is retained again after its end.
    pub(crate) fn revive(&mut self, context: u32) {
        self[context].ended = false;
    }

    /// Why a context failed, if it did.
    pub(crate) fn failure(&self, context: u32) -> Option<CUresult> {
        self[context].failed
    }

    /// Marks a context as failed, with the green contexts of its device. Whether it was not before.
    pub(super) fn fail_with(&mut self, context: u32, code: CUresult) -> bool {
        let Some(entry) = self.0.get(context as usize) else { return false };
        if entry.failed.is_some() || entry.ended {
            return false;
        }
        let primary = entry.primary;
        for entry in self.0.iter_mut().filter(|entry| entry.primary == primary && !entry.ended) {
            entry.failed = Some(code);
        }
        true
    }

    /// The streams of a context with work.
    pub(crate) fn busy_in(&self, context: u32) -> impl Iterator<Item = u32> {
        self[context].busy.iter().copied()
    }

    pub(crate) fn is_busy(&self, context: u32, stream: u32) -> bool {
        self[context].busy.contains(&stream)
    }

    /// The context's legacy default stream, once it was used.
    pub(crate) fn legacy_stream(&self, context: u32) -> Option<u32> {
        self[context].legacy
    }

    pub(crate) fn set_legacy_stream(&mut self, context: u32, stream: u32) {
        self[context].legacy = Some(stream);
    }

    /// A launch in a stream of another context has work of this one: the end of this waits for it.
    pub(crate) fn add_launch_elsewhere(&mut self, context: u32, end: &Arc<Point>) {
        let elsewhere = &mut self[context].elsewhere;
        elsewhere.retain(|end| !end.is_done());
        elsewhere.push(end.clone());
    }

    /// Its device makes a copy for a stream of another one.
    pub(crate) fn add_copy_elsewhere(&mut self, context: u32, end: &Arc<Point>) {
        let copies = &mut self[context].copies;
        copies.retain(|end| !end.is_done());
        copies.push(end.clone());
    }

    /// The copies that the devices of these contexts make for others.
    pub(crate) fn copies_elsewhere(&self, contexts: &[u32]) -> Vec<Arc<Point>> {
        let all = contexts.iter().flat_map(|context| &self[*context].copies);
        all.inspect(|end| end.want()).cloned().collect()
    }

    /// Whether a context has no work, in its own streams or elsewhere.
    pub(crate) fn is_drained(&mut self, context: u32) -> bool {
        let entry = &mut self[context];
        for elsewhere in [&mut entry.elsewhere, &mut entry.copies] {
            elsewhere.retain(|end| !end.is_done());
            elsewhere.iter().for_each(|end| end.want());
        }
        entry.busy.is_empty() && entry.elsewhere.is_empty() && entry.copies.is_empty()
    }

    /// All streams of a context wait for these from their next operations on.
    pub(crate) fn add_waits(&mut self, context: u32, waits: impl Iterator<Item = ContextWait>) {
        let entry = &mut self[context];
        entry.waits.retain(|(_, wait)| !wait.is_done());
        for wait in waits {
            entry.last_wait += 1;
            entry.waits.push((entry.last_wait, wait));
        }
    }

    /// A stream of a context, in the channel after that of the context's last one.
    pub(crate) fn new_stream(
        &mut self,
        context: u32,
        id: u64,
        (flags, priority): (u32, i32),
        is_legacy: bool,
        channels: u32,
    ) -> Stream {
        let entry = &mut self[context];
        let channel = entry.streams_made % channels;
        entry.streams_made = entry.streams_made.wrapping_add(1);
        Stream::new(context, id, (flags, priority), is_legacy, channel)
    }

    /// A stream that only collects work. It has none that a wait of the whole context would be for,
    /// and takes no channel.
    pub(crate) fn new_collector(&self, context: u32, id: u64) -> Stream {
        let mut stream = Stream::new(context, id, (CU_STREAM_NON_BLOCKING, 0), false, u32::MAX);
        stream.context_waits_seen = self[context].last_wait;
        stream
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::Ordering::Relaxed;

    use super::*;
    use crate::engine::Engine;

    fn point() -> Arc<Point> {
        Engine::new(0).new_point(false, None)
    }

    fn one() -> Contexts {
        let mut all = Contexts::new();
        all.add(0, 0x10);
        all
    }

    /// Whatever is left of a context's work, in its streams or elsewhere, who waits is woken by it. A
    /// primary context that is retained again has nothing of its last life.
    #[test]
    fn what_a_context_had_ends_with_it() {
        let has: [fn(&mut Contexts, &Arc<Point>); 3] = [
            |all, _| _ = all[0].busy.insert(3),
            |all, end| all.add_launch_elsewhere(0, end),
            |all, end| all.add_copy_elsewhere(0, end),
        ];
        for (what, has) in has.into_iter().enumerate() {
            let (mut all, end) = (one(), point());
            assert!(all.is_drained(0));
            has(&mut all, &end);
            assert!(!all.is_drained(0), "{what}");
            assert_eq!(end.wanted.load(Relaxed), what > 0);
            all.end(0);
            all.revive(0);
            assert!(all.is_drained(0), "{what}");
        }
        let mut all = one();
        all.set_legacy_stream(0, 3);
        all.add_waits(0, core::iter::once(ContextWait::Point(point())));
        all.end(0);
        all.revive(0);
        assert!(all.legacy_stream(0).is_none() && all[0].waits.is_empty());
    }

    /// They fail once, with those that are in the same primary context; what has ended does not.
    #[test]
    fn contexts_fail_together() {
        let (trap, fault) = (CUresult(719), CUresult(700));
        let mut all = Contexts::new();
        for (context, primary) in [(0, 0), (1, 0), (2, 2), (3, 0)] {
            all.add(context, 0x10);
            all.set_primary(context, primary);
        }
        all.end(3);
        let failures = |all: &Contexts| [0, 1, 2, 3].map(|context| all.failure(context));
        assert!(all.fail_with(1, trap) && !all.fail_with(0, fault) && !all.fail_with(9, fault));
        assert_eq!(failures(&all), [Some(trap), Some(trap), None, None]);
        all.end(2);
        assert!(!all.fail_with(2, fault));
        all.revive(2);
        assert!(all.fail_with(2, fault));
        assert_eq!(failures(&all), [Some(trap), Some(trap), Some(fault), None]);
    }

    /// What is done is let go with the next that comes.
    #[test]
    fn points_that_are_done_are_not_kept() {
        let (mut all, done) = (one(), point());
        for again in 0..2 {
            all.add_launch_elsewhere(0, &done);
            all.add_copy_elsewhere(0, &done);
            all.add_waits(0, core::iter::once(ContextWait::Point(done.clone())));
            let kept = [all[0].elsewhere.len(), all[0].copies.len(), all[0].waits.len()];
            assert_eq!(kept, [1; 3], "{again}");
            let wanted = all.copies_elsewhere(&[0]);
            assert_eq!((wanted.len(), wanted[0].wanted.load(Relaxed)), (1, true));
            done.done.store(true, Relaxed);
        }
        // A stream is after the waits of its context, and one that only collects work is not.
        let [stream, collector] = [all.new_stream(0, 7, (0, 0), false, 2), all.new_collector(0, 8)];
        assert_eq!((stream.context_waits_seen, collector.context_waits_seen), (0, 2));
        let channels = [(); 3].map(|()| all.new_stream(0, 7, (0, 0), false, 2).channel);
        assert_eq!((stream.channel, channels), (0, [1, 0, 1]), "one after the other");
    }
}
