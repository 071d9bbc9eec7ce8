//! Programs as data: what the tables and the random programs are made of.
#![allow(missing_docs)]

pub mod reference;

use cuda_order_check_engine::{
    Access, By, Call, Cell, Checker, Compare, ContextId, EventId, Finding, FunctionId, GraphId,
    Location, Node, Op, StreamId, StreamKind, ThreadId, TokenId, What,
};

/// An operation that owns what it has. The numbers are those of the handles.
#[derive(Clone, Debug)]
pub enum Do {
    Create(u64, u64, StreamKind),
    Destroy(u64),
    Event(u64, bool),
    EventDestroy(u64),
    Work(u64, Vec<Access>),
    Record(u64, u64),
    RecordExternal(u64, u64),
    /// The stream, and the event that it waits for.
    Wait(u64, u64),
    WaitExternal(u64, u64),
    ContextRecord(u64, u64),
    ContextWait(u64, u64),
    /// The context, and the stream that it shares.
    ContextShares(u64, u64),
    ContextDestroy(u64),
    Write(u64, Cell, u64),
    WaitValue(u64, Cell, u64, Compare),
    Function(u64, Option<u64>, Vec<Access>),
    Begin(u64),
    End(u64),
    Capture(u64),
    EndCapture(u64, u64),
    Define(u64, Vec<Node>),
    Copy(u64, u64),
    Launch(u64, u64),
    Host(Vec<Access>),
    HostWrite(Cell, u64),
    HostSaw(Cell, u64),
    Sync(What),
    Query(What, bool),
    HandOver(u64),
    TakeOver(u64),
    Start(u64),
    Join(u64),
    EndThread,
}

/// A call: who makes it, and what it does.
#[derive(Clone, Debug)]
pub struct Step {
    pub by: By,
    pub does: Do,
}

impl Do {
    pub fn op(&self) -> Op<'_> {
        let (s, e, c, f, g) = (StreamId, EventId, ContextId, FunctionId, GraphId);
        match self {
            Do::Create(stream, context, kind) => Op::StreamCreate {
                stream: s(*stream),
                context: c(*context),
                kind: *kind,
                name: None,
            },
            Do::Destroy(stream) => Op::StreamDestroy { stream: s(*stream) },
            Do::Event(event, interprocess) => {
                Op::EventCreate { event: e(*event), interprocess: *interprocess, name: None }
            }
            Do::EventDestroy(event) => Op::EventDestroy { event: e(*event) },
            Do::Work(stream, accesses) => Op::Work { stream: s(*stream), accesses },
            Do::Record(event, stream) => {
                Op::Record { event: e(*event), stream: s(*stream), external: false }
            }
            Do::RecordExternal(event, stream) => {
                Op::Record { event: e(*event), stream: s(*stream), external: true }
            }
            Do::Wait(stream, event) => {
                Op::Wait { stream: s(*stream), event: e(*event), external: false }
            }
            Do::WaitExternal(stream, event) => {
                Op::Wait { stream: s(*stream), event: e(*event), external: true }
            }
            Do::ContextRecord(context, event) => {
                Op::ContextRecord { context: c(*context), event: e(*event) }
            }
            Do::ContextWait(context, event) => {
                Op::ContextWait { context: c(*context), event: e(*event) }
            }
            Do::ContextShares(context, stream) => {
                Op::ContextShares { context: c(*context), stream: s(*stream) }
            }
            Do::ContextDestroy(context) => Op::ContextDestroy { context: c(*context) },
            Do::Write(stream, cell, value) => {
                Op::WriteValue { stream: s(*stream), cell: *cell, value: *value }
            }
            Do::WaitValue(stream, cell, value, compare) => {
                Op::WaitValue { stream: s(*stream), cell: *cell, value: *value, compare: *compare }
            }
            Do::Function(stream, function, accesses) => {
                Op::Function { stream: s(*stream), function: function.map(f), accesses }
            }
            Do::Begin(function) => Op::FunctionBegin { function: f(*function) },
            Do::End(function) => Op::FunctionEnd { function: f(*function) },
            Do::Capture(stream) => Op::CaptureBegin { stream: s(*stream) },
            Do::EndCapture(stream, graph) => {
                Op::CaptureEnd { stream: s(*stream), graph: Some(g(*graph)) }
            }
            Do::Define(graph, nodes) => Op::GraphDefine { graph: g(*graph), nodes },
            Do::Copy(from, to) => Op::GraphCopy { from: g(*from), to: g(*to) },
            Do::Launch(stream, graph) => {
                Op::Launch { stream: s(*stream), graph: g(*graph), functions: &[] }
            }
            Do::Host(accesses) => Op::Host { accesses },
            Do::HostWrite(cell, value) => Op::HostWriteValue { cell: *cell, value: *value },
            Do::HostSaw(cell, value) => Op::HostSawValue { cell: *cell, value: *value },
            Do::Sync(what) => Op::Synchronize { what: *what },
            Do::Query(what, done) => Op::Query { what: *what, done: *done },
            Do::HandOver(token) => Op::HandOver { token: TokenId(*token) },
            Do::TakeOver(token) => Op::TakeOver { token: TokenId(*token) },
            Do::Start(thread) => Op::ThreadStart { thread: ThreadId(*thread) },
            Do::Join(thread) => Op::ThreadJoin { thread: ThreadId(*thread) },
            Do::EndThread => Op::ThreadEnd,
        }
    }
}

/// Applies a step under the line `line`, which is also its number.
pub fn apply(checker: &mut Checker, line: usize, step: &Step) {
    let mut call = Call::new("call", line as u64, ThreadId(1));
    call.by = step.by;
    call.location = Some(Location { file: "program".into(), line: line as u32, column: 0 });
    checker.apply(call, step.does.op());
}

pub fn line_of(call: &Call) -> usize {
    call.location.as_ref().map_or(0, |location| location.line as usize)
}

/// The lines of a report, the smaller first.
pub fn lines(finding: &Finding) -> Option<(usize, usize)> {
    let report = finding.report()?;
    let (one, two) = (line_of(&report.first.call), line_of(&report.second.call));
    Some((one.min(two), one.max(two)))
}

/// Numbers at random from a seed (SplitMix64).
#[derive(Clone)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub fn chance(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }
}
