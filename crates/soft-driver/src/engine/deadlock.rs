//! The search for deadlocks: waits for values whose writes are queued after them.
//!
//! A write may be queued after a wait in its own stream or, on a card, in the channel that its
//! stream shares with others. The search simulates the future: everything that was submitted is
//! done as soon as its turn can come, host functions return, other processes do their part, and
//! whatever no submitted write is for, the host writes. Waits that are left then, each with a write
//! that was submitted for it and is not reached, can only be ended from outside.
//!
//! A program that submits each write before the waits for it has none: the order of submission is
//! one in which all can be done. So the search runs only where a wait was submitted ahead of its
//! write, and there is nothing to pay elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use crate::abi::*;
use crate::engine::channel::ChannelKey;
use crate::engine::stream::Stream;
use crate::engine::work::{Origin, Queued, Task};
use crate::engine::{Engine, Running};
use crate::machine::config::{OnDeadlock, OnMisuse};
use crate::machine::handles::Table;
use crate::memory::word::{ValueWait, WordKey};

const TIMEOUT: CUresult = CUresult::CUDA_ERROR_LAUNCH_TIMEOUT;

/// A simulation of what the streams will do.
struct Ahead<'a> {
    engine: &'a Engine,
    streams: &'a Table<Stream>,
    /// How far each stream with work got.
    reached: BTreeMap<u32, usize>,
    done: BTreeSet<u64>,
    written: BTreeMap<WordKey, Vec<u64>>,
    /// The writes that are not reached.
    to_write: BTreeMap<WordKey, BTreeMap<u64, u64>>,
    waits: BTreeMap<ChannelKey, BTreeMap<u64, u32>>,
}

impl<'a> Ahead<'a> {
    fn run(engine: &'a Engine, streams: &'a Table<Stream>) -> Self {
        let busy = streams.iter().filter(|(_, entry)| !entry.queue.is_empty());
        let mut ahead = Self {
            engine,
            streams,
            reached: busy.map(|(stream, _)| (stream, 0)).collect(),
            done: BTreeSet::new(),
            written: BTreeMap::new(),
            to_write: engine.values.to_write(),
            waits: engine.channels.waits(),
        };
        let reached: Vec<u32> = ahead.reached.keys().copied().collect();
        loop {
            let mut moved = false;
            for stream in &reached {
                while ahead.step(*stream) {
                    moved = true;
                }
            }
            if !moved {
                return ahead;
            }
        }
    }

    /// The task that a stream got to.
    fn task(&self, stream: u32) -> Option<&'a Queued> {
        self.streams[stream].queue.get(*self.reached.get(&stream)?)
    }

    fn channel(&self, stream: u32) -> ChannelKey {
        let entry = &self.streams[stream];
        (entry.context, entry.channel)
    }

    /// The wait that holds back what a stream got to.
    fn held_by(&self, stream: u32) -> Option<u32> {
        let task = self.task(stream).filter(|queued| queued.task.takes_turns())?;
        let (at, holder) = self.waits.get(&self.channel(stream))?.first_key_value()?;
        (*at < task.at).then_some(*holder)
    }

    /// Does the next task of a stream, if it can be done.
    fn step(&mut self, stream: u32) -> bool {
        let Some(Queued { at, task }) = self.task(stream) else { return false };
        let key = self.channel(stream);
        let failed = self.engine.contexts.failure(key.0).is_some();
        if !failed && self.held_by(stream).is_some() {
            return false;
        }
        match task {
            Task::Wait(point) if !failed && !point.is_done() && !self.done.contains(&point.id) => {
                return false;
            }
            Task::Complete(point) => {
                self.done.insert(point.id);
            }
            Task::WriteValue(write, _) => {
                let word = write.word.key();
                self.written.entry(word).or_default().push(write.value);
                self.to_write.entry(word).or_default().remove(at);
            }
            Task::WaitValue(wait, _) => {
                let word = wait.word.key();
                let written = self
                    .written
                    .get(&word)
                    .is_some_and(|values| values.iter().any(|v| wait.is_met_by(*v)));
                let to_come = self
                    .to_write
                    .get(&word)
                    .is_some_and(|writes| writes.values().any(|v| wait.is_met_by(*v)));
                if !failed && !written && !wait.is_done() && to_come {
                    return false;
                }
                if let Some(waits) = self.waits.get_mut(&key) {
                    waits.remove(at);
                }
            }
            _ => {}
        }
        *self.reached.entry(stream).or_default() += 1;
        true
    }

    /// The waits that are left, with their streams.
    fn left(&self) -> Vec<(u32, u64, &'a ValueWait, Origin)> {
        let at_wait = |stream: &u32| match self.task(*stream)? {
            Queued { at, task: Task::WaitValue(wait, origin) }
                if self.held_by(*stream).is_none() =>
            {
                Some((*stream, *at, wait, *origin))
            }
            _ => None,
        };
        self.reached.keys().filter_map(at_wait).collect()
    }

    /// The writes that a wait is left for, with their streams.
    fn writes_for(&self, wait: &ValueWait) -> Vec<(u32, u64, Origin)> {
        let mut found = Vec::new();
        for (stream, reached) in &self.reached {
            for queued in self.streams[*stream].queue.iter().skip(*reached) {
                if let Task::WriteValue(write, origin) = &queued.task
                    && write.word.key() == wait.word.key()
                    && wait.is_met_by(write.value)
                {
                    found.push((*stream, write.value, *origin));
                }
            }
        }
        found
    }

    fn named(&self, stream: u32) -> String {
        let entry = &self.streams[stream];
        let context = self.engine.contexts[entry.context].handle;
        let name = if entry.is_legacy {
            "the default stream".to_owned()
        } else {
            format!("stream {:#x}", self.streams.handle(stream))
        };
        format!(
            "{name} (channel {} of {} in context {context:#x})",
            entry.channel, self.engine.channels.per_context
        )
    }

    /// What keeps a stream from what is queued after the task that it got to.
    fn obstacle(&self, stream: u32) -> String {
        let own = match self.task(stream) {
            Some(Queued { task: Task::WaitValue(_, origin), .. }) => {
                format!("that stream's own wait, {}", call(*origin))
            }
            _ => "a wait for an event that is queued after one of these waits".to_owned(),
        };
        match self.held_by(stream) {
            Some(holder) => {
                format!("the wait of {}, which has the same channel", self.named(holder))
            }
            None => own,
        }
    }
}

pub(super) fn call(origin: Origin) -> String {
    format!("{}, call {}", origin.call, origin.number)
}

pub(super) fn condition(wait: &ValueWait) -> String {
    match wait.condition {
        CU_STREAM_WAIT_VALUE_GEQ => format!("at least {}", wait.value),
        CU_STREAM_WAIT_VALUE_EQ => format!("{}", wait.value),
        CU_STREAM_WAIT_VALUE_AND => format!("a bit of {:#x}", wait.value),
        _ => format!("a bit that is clear here and in {:#x}", wait.value),
    }
}

/// How many waits of a deadlock a report has, and how many writes for each.
const LISTED: usize = 8;

fn report(ahead: &Ahead, left: &[(u32, u64, &ValueWait, Origin)]) -> String {
    let count = left.len();
    let mut text = format!(
        "deadlock: {count} stream{} wait{} for values, and the writes of those values are queued \
         after the waits",
        if count == 1 { "" } else { "s" },
        if count == 1 { "s" } else { "" },
    );
    for (stream, _, wait, origin) in left.iter().take(LISTED) {
        text.push_str(&format!(
            "\n  {} waits for {} at {:#x}, where {} is: {}",
            ahead.named(*stream),
            condition(wait),
            wait.word.place.address,
            wait.word.load(),
            call(*origin),
        ));
        for (writer, value, origin) in ahead.writes_for(wait).into_iter().take(LISTED) {
            text.push_str(&format!(
                "\n    {} writes {value} there: {}, queued after {}",
                ahead.named(writer),
                call(origin),
                ahead.obstacle(writer),
            ));
        }
    }
    if count > LISTED {
        text.push_str(&format!("\n  and {} more", count - LISTED));
    }
    text
}

impl Running<'_> {
    /// Looks for a deadlock, reports it, and does what is configured. The error is the answer of
    /// the call, where there is one.
    pub(crate) fn look_for_deadlock(&mut self) -> Answer {
        if !self.engine.values.suspicious() {
            return Ok(());
        }
        let ahead = Ahead::run(self.engine, self.streams);
        let left = ahead.left();
        if left.is_empty() {
            return Ok(());
        }
        let text = report(&ahead, &left);
        let waits: BTreeSet<u64> = left.iter().map(|(_, at, ..)| *at).collect();
        let contexts: BTreeSet<u32> =
            left.iter().map(|(stream, ..)| self.streams[*stream].context).collect();
        crate::say!("{text}");
        self.engine.values.report(waits, text.clone());
        match (self.engine.values.reaction, self.misuses.on_misuse()) {
            (OnDeadlock::Hang, _) => {
                crate::say!(
                    "this driver now waits, as a real one does, until the host writes the value"
                );
                Ok(())
            }
            (OnDeadlock::Misuse, OnMisuse::Abort) => {
                crate::say!(
                    "a real driver waits here forever, so the process ends; with misuse=error it \
                     is an error, with deadlock=hang it waits"
                );
                std::process::abort();
            }
            (OnDeadlock::Misuse, OnMisuse::Error) => {
                self.misuses.report(text);
                for context in contexts {
                    self.fail(context, TIMEOUT);
                }
                Err(TIMEOUT)
            }
        }
    }
}
