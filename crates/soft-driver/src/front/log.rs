//! The call log.

use core::fmt;
use core::time::Duration;
use std::collections::VecDeque;
use std::time::Instant;

use crate::abi::CUresult;
use crate::front::exports::Id;
use crate::machine::call_frame::{CallFrame, Words};
use crate::threads;

/// One logged call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallRecord {
    /// The number of the call on its driver, from 1, in the order in which calls began.
    pub number: u64,
    /// The exported name.
    pub function: &'static str,
    /// The arguments as numbers; pointers and handles as addresses.
    pub arguments: Vec<u64>,
    /// The result.
    pub result: CUresult,
    /// The handle or address that a creating call returned: of an event, a stream, a context, a
    /// graph or node, or memory.
    pub given: Option<u64>,
    /// The name of the calling thread.
    pub thread: String,
    /// The time at which it began, since the driver's start.
    pub at: Duration,
    /// The duration of the call.
    pub took: Duration,
    /// Whether a fault was injected into the call.
    pub injected: bool,
}

impl fmt::Display for CallRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}] {}(", self.number, self.thread, self.function)?;
        for (at, argument) in self.arguments.iter().enumerate() {
            let separator = if at == 0 { "" } else { ", " };
            match argument {
                0..=0xFFFF => write!(f, "{separator}{argument}")?,
                _ => write!(f, "{separator}{argument:#x}")?,
            }
        }
        write!(f, ") = {}", self.result.0)?;
        if let Some(given) = self.given {
            write!(f, ", gave {given:#x}")?;
        }
        if self.injected { f.write_str(" (injected)") } else { Ok(()) }
    }
}

/// The stored part of a call, until the log is read.
struct Entry {
    number: u64,
    name: &'static str,
    words: Words,
    result: (CUresult, Option<u64>),
    thread: u32,
    began: Instant,
    ended: Instant,
    injected: bool,
}

/// Whether a call only looks entry points up.
fn looks_up(id: Id) -> bool {
    matches!(id, Id::cuGetProcAddress | Id::cuGetProcAddress_v2 | Id::cuGetProcAddress_v2_ptsz)
}

pub(crate) struct Log {
    entries: VecDeque<Entry>,
    room: usize,
    /// Whether calls that look a function up are logged.
    lookups: bool,
    start: Option<Instant>,
}

impl Log {
    pub(crate) const fn new() -> Self {
        Self { entries: VecDeque::new(), room: 0, lookups: false, start: None }
    }

    pub(crate) fn start(&mut self, room: usize, lookups: bool) {
        *self = Self { entries: VecDeque::new(), room, lookups, start: Some(Instant::now()) };
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }

    pub(crate) fn add(
        &mut self,
        call: &CallFrame,
        words: Words,
        result: (CUresult, Option<u64>),
        began: Instant,
        injected: bool,
    ) {
        if looks_up(call.id()) && !self.lookups && !injected {
            return;
        }
        if self.entries.len() >= self.room {
            self.entries.pop_front();
        }
        self.entries.push_back(Entry {
            number: call.number,
            name: call.name(),
            words,
            result,
            thread: threads::number(),
            began,
            ended: Instant::now(),
            injected,
        });
    }

    pub(crate) fn records(&self) -> Vec<CallRecord> {
        self.entries.iter().map(|entry| self.record(entry)).collect()
    }

    /// The call of that number, if it is still there.
    pub(crate) fn find(&self, number: u64) -> Option<CallRecord> {
        let found = self.entries.iter().find(|entry| entry.number == number);
        found.map(|entry| self.record(entry))
    }

    fn record(&self, entry: &Entry) -> CallRecord {
        let since = |start| entry.began.saturating_duration_since(start);
        CallRecord {
            number: entry.number,
            function: entry.name,
            arguments: entry.words.0[..entry.words.1].to_vec(),
            result: entry.result.0,
            given: entry.result.1,
            thread: threads::name(entry.thread),
            at: self.start.map_or(Duration::ZERO, since),
            took: entry.ended.saturating_duration_since(entry.began),
            injected: entry.injected,
        }
    }
}
