//! What the streams of a context share: the legacy default stream, which all blocking streams wait for
//! and which waits for them, waits of the whole context, and the context's failure.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::abi::*;
use crate::engine::point::Point;
use crate::engine::stream::Stream;
use crate::engine::work::Task;
use crate::engine::{Engine, Running};
use crate::processes;

/// What a whole context waits for.
#[derive(Clone)]
pub(crate) enum Gate {
    Point(Arc<Point>),
    Shared(processes::Wait),
}

impl Gate {
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
pub(super) struct Lane {
    /// The context's handle.
    pub(super) handle: u64,
    /// The primary context of a green one; any other is its own. They fail together.
    family: u32,
    ended: bool,
    /// The error that everything in it returns from now on.
    pub(super) failed: Option<CUresult>,
    legacy: Option<u32>,
    /// Streams with work.
    pub(super) busy: BTreeSet<u32>,
    /// The ends of launches with work of the context in streams of other contexts.
    elsewhere: Vec<Arc<Point>>,
    /// What every stream of the context waits for from its next operation on, in the order in which
    /// that came.
    gates: Vec<(u64, Gate)>,
    last_gate: u64,
    /// How many streams it has had: each begins in the next channel.
    streams_made: u32,
}

impl Engine {
    /// A new context, with its handle. Contexts are numbered one after the other.
    pub(crate) fn add_lane(&mut self, context: u32, handle: u64) {
        self.lanes.push(Lane {
            handle,
            family: context,
            ended: false,
            failed: None,
            legacy: None,
            busy: BTreeSet::new(),
            elsewhere: Vec::new(),
            gates: Vec::new(),
            last_gate: 0,
            streams_made: 0,
        });
    }

    /// A context stands for a green one, which is the primary one with other resources.
    pub(crate) fn join_family(&mut self, context: u32, primary: u32) {
        self.lanes[context as usize].family = primary;
    }

    /// A context ends with all of its streams.
    pub(crate) fn end_lane(&mut self, context: u32) {
        let lane = &mut self.lanes[context as usize];
        lane.ended = true;
        lane.legacy = None;
        lane.busy.clear();
        lane.elsewhere.clear();
        lane.gates.clear();
    }

    /// A primary context is retained again after its end.
    pub(crate) fn revive_lane(&mut self, context: u32) {
        self.lanes[context as usize].ended = false;
    }

    /// Why a context failed, if it did.
    pub(crate) fn failure(&self, context: u32) -> Option<CUresult> {
        self.lanes[context as usize].failed
    }

    /// Has a context fail, and what is of the same device. Whether it had not before.
    pub(super) fn fail_lanes(&mut self, context: u32, code: CUresult) -> bool {
        let Some(lane) = self.lanes.get(context as usize) else { return false };
        if lane.failed.is_some() || lane.ended {
            return false;
        }
        let family = lane.family;
        for lane in self.lanes.iter_mut().filter(|lane| lane.family == family && !lane.ended) {
            lane.failed = Some(code);
        }
        true
    }

    /// The streams of a context with work.
    pub(crate) fn busy_in(&self, context: u32) -> impl Iterator<Item = u32> {
        self.lanes[context as usize].busy.iter().copied()
    }

    pub(crate) fn is_busy(&self, context: u32, stream: u32) -> bool {
        self.lanes[context as usize].busy.contains(&stream)
    }

    /// The context's legacy default stream, once it was used.
    pub(crate) fn legacy_stream(&self, context: u32) -> Option<u32> {
        self.lanes[context as usize].legacy
    }

    pub(crate) fn set_legacy_stream(&mut self, context: u32, stream: u32) {
        self.lanes[context as usize].legacy = Some(stream);
    }

    /// A launch in a stream of another context has work of this one: the end of this waits for it.
    pub(crate) fn add_elsewhere(&mut self, context: u32, end: &Arc<Point>) {
        let elsewhere = &mut self.lanes[context as usize].elsewhere;
        elsewhere.retain(|end| !end.is_done());
        elsewhere.push(end.clone());
    }

    /// Whether a context has no work, in its own streams or elsewhere.
    pub(crate) fn is_drained(&mut self, context: u32) -> bool {
        let lane = &mut self.lanes[context as usize];
        lane.elsewhere.retain(|end| !end.is_done());
        lane.elsewhere.iter().for_each(|end| end.want());
        lane.busy.is_empty() && lane.elsewhere.is_empty()
    }

    /// Has all streams of a context wait from their next operations on.
    pub(crate) fn add_gates(&mut self, context: u32, gates: impl Iterator<Item = Gate>) {
        let lane = &mut self.lanes[context as usize];
        lane.gates.retain(|(_, gate)| !gate.is_done());
        for gate in gates {
            lane.last_gate += 1;
            lane.gates.push((lane.last_gate, gate));
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
        let lane = &mut self.lanes[context as usize];
        let channel = lane.streams_made % self.channel_count;
        lane.streams_made = lane.streams_made.wrapping_add(1);
        Stream::new(context, id, (flags, priority), is_legacy, channel)
    }

    /// A stream that only collects work. It has none that a wait of the whole context would be for,
    /// and takes no channel.
    pub(crate) fn new_collector(&self, context: u32, id: u64) -> Stream {
        let mut stream = Stream::new(context, id, (CU_STREAM_NON_BLOCKING, 0), false, u32::MAX);
        stream.gates_seen = self.lanes[context as usize].last_gate;
        stream
    }
}

impl Running<'_> {
    /// Before an operation is put into a stream: what the legacy default stream's rule, and waits
    /// of the whole context, put before it.
    pub(crate) fn begin_operation(&mut self, stream: u32) {
        self.join_default(stream);
        self.streams[stream].submitted += 1;
    }

    /// The legacy default stream's rule: its operations first wait for all blocking streams of the
    /// context, and later work of those waits for it.
    fn join_default(&mut self, stream: u32) {
        self.pass_gates(stream);
        let entry = &self.streams[stream];
        let context = entry.context;
        if entry.is_legacy {
            let others: Vec<u32> = self.engine.busy_in(context).filter(|k| *k != stream).collect();
            for other in others {
                let entry = &mut self.streams[other];
                // The legacy stream is in order: it waits once for each other stream's state, not
                // once an operation.
                if !entry.blocking() || entry.joined == Some(entry.submitted) {
                    continue;
                }
                entry.joined = Some(entry.submitted);
                let point = self.engine.new_point(false, None);
                self.push_mark(other, point.clone());
                self.push(stream, Task::Wait(point));
            }
        } else if entry.blocking()
            && let Some(legacy) = self.engine.lanes[context as usize].legacy
            && !self.streams[legacy].queue.is_empty()
        {
            let seen = self.streams[legacy].submitted;
            if self.streams[stream].legacy_seen == Some(seen) {
                return;
            }
            self.streams[stream].legacy_seen = Some(seen);
            let point = self.engine.new_point(false, None);
            self.push_mark(legacy, point.clone());
            self.push(stream, Task::Wait(point));
        }
    }

    /// Has a stream wait for what its whole context waits for, before an operation.
    fn pass_gates(&mut self, stream: u32) {
        let (context, seen) = (self.streams[stream].context, self.streams[stream].gates_seen);
        if self.engine.lanes[context as usize].last_gate == seen {
            return;
        }
        self.streams[stream].gates_seen = self.engine.lanes[context as usize].last_gate;
        let gates = &self.engine.lanes[context as usize].gates;
        let tasks: Vec<Task> = gates
            .iter()
            .filter(|(at, gate)| *at > seen && !gate.is_done())
            .map(|(_, gate)| gate.task())
            .collect();
        for task in tasks {
            self.push(stream, task);
        }
    }
}
