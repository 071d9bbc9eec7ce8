//! A context as the engine has it, which its streams share: which of them have work, waits of the
//! whole context, and the context's failure.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::abi::*;
use crate::engine::Engine;
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
pub(super) struct ContextWork {
    /// The context's handle.
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
    /// What every stream of the context waits for from its next operation on, in the order in which
    /// that came.
    pub(super) waits: Vec<(u64, ContextWait)>,
    pub(super) last_wait: u64,
    /// How many streams it has had: each begins in the next channel.
    streams_made: u32,
}

impl Engine {
    /// A new context, with its handle. Contexts are numbered one after the other.
    pub(crate) fn add_context(&mut self, context: u32, handle: u64) {
        self.contexts.push(ContextWork {
            handle,
            primary: context,
            ended: false,
            failed: None,
            legacy: None,
            busy: BTreeSet::new(),
            elsewhere: Vec::new(),
            waits: Vec::new(),
            last_wait: 0,
            streams_made: 0,
        });
    }

    /// A context stands for a green one, which is the primary one with other resources.
    pub(crate) fn set_primary(&mut self, context: u32, primary: u32) {
        self.contexts[context as usize].primary = primary;
    }

    /// A context ends with all of its streams.
    pub(crate) fn end_context(&mut self, context: u32) {
        let of = &mut self.contexts[context as usize];
        of.ended = true;
        of.legacy = None;
        of.busy.clear();
        of.elsewhere.clear();
        of.waits.clear();
    }

    /// A primary context is retained again after its end.
    pub(crate) fn revive_context(&mut self, context: u32) {
        self.contexts[context as usize].ended = false;
    }

    /// Why a context failed, if it did.
    pub(crate) fn failure(&self, context: u32) -> Option<CUresult> {
        self.contexts[context as usize].failed
    }

    /// Marks a context as failed, with the green contexts of its device. Whether it was not before.
    pub(super) fn fail_contexts_with(&mut self, context: u32, code: CUresult) -> bool {
        let Some(of) = self.contexts.get(context as usize) else { return false };
        if of.failed.is_some() || of.ended {
            return false;
        }
        let primary = of.primary;
        for of in self.contexts.iter_mut().filter(|of| of.primary == primary && !of.ended) {
            of.failed = Some(code);
        }
        true
    }

    /// The streams of a context with work.
    pub(crate) fn busy_in(&self, context: u32) -> impl Iterator<Item = u32> {
        self.contexts[context as usize].busy.iter().copied()
    }

    pub(crate) fn is_busy(&self, context: u32, stream: u32) -> bool {
        self.contexts[context as usize].busy.contains(&stream)
    }

    /// The context's legacy default stream, once it was used.
    pub(crate) fn legacy_stream(&self, context: u32) -> Option<u32> {
        self.contexts[context as usize].legacy
    }

    pub(crate) fn set_legacy_stream(&mut self, context: u32, stream: u32) {
        self.contexts[context as usize].legacy = Some(stream);
    }

    /// A launch in a stream of another context has work of this one: the end of this waits for it.
    pub(crate) fn add_launch_elsewhere(&mut self, context: u32, end: &Arc<Point>) {
        let elsewhere = &mut self.contexts[context as usize].elsewhere;
        elsewhere.retain(|end| !end.is_done());
        elsewhere.push(end.clone());
    }

    /// Whether a context has no work, in its own streams or elsewhere.
    pub(crate) fn is_drained(&mut self, context: u32) -> bool {
        let of = &mut self.contexts[context as usize];
        of.elsewhere.retain(|end| !end.is_done());
        of.elsewhere.iter().for_each(|end| end.want());
        of.busy.is_empty() && of.elsewhere.is_empty()
    }

    /// All streams of a context wait for these from their next operations on.
    pub(crate) fn add_context_waits(
        &mut self,
        context: u32,
        waits: impl Iterator<Item = ContextWait>,
    ) {
        let of = &mut self.contexts[context as usize];
        of.waits.retain(|(_, wait)| !wait.is_done());
        for wait in waits {
            of.last_wait += 1;
            of.waits.push((of.last_wait, wait));
        }
    }

    /// A stream of a context, in the channel after that of the context's last one.
    pub(crate) fn new_stream(
        &mut self,
        context: u32,
        id: u64,
        (flags, priority): (u32, i32),
        is_legacy: bool,
    ) -> Stream {
        let of = &mut self.contexts[context as usize];
        let channel = of.streams_made % self.channel_count;
        of.streams_made = of.streams_made.wrapping_add(1);
        Stream::new(context, id, (flags, priority), is_legacy, channel)
    }

    /// A stream that only collects work. It has none that a wait of the whole context would be for,
    /// and takes no channel.
    pub(crate) fn new_collector(&self, context: u32, id: u64) -> Stream {
        let mut stream = Stream::new(context, id, (CU_STREAM_NON_BLOCKING, 0), false, u32::MAX);
        stream.context_waits_seen = self.contexts[context as usize].last_wait;
        stream
    }
}
