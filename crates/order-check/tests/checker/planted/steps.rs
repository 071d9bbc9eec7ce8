//! The steps of planted programs.

use crate::common::{Do, Step};
use cuda_order_check_engine::{
    Access, By, Cell, Compare, ContextId, EventId, FunctionId, Node, NodeWork, StreamId,
    StreamKind, ThreadId, What,
};

/// A step of a thread: unmarked, or one of the two that are reported; or only in the mended
/// program, or only in the faulty one.
#[derive(Clone)]
pub(super) struct At {
    pub(super) step: Step,
    pub(super) mark: u8,
    pub(super) only: Option<bool>,
    /// It comes after all steps with a lower stage, whichever thread makes them: a barrier that the
    /// driver does not see.
    pub(super) stage: u8,
    /// The same in the faulty program.
    pub(super) faulty_stage: u8,
}

pub(super) fn step(does: Do) -> At {
    At {
        step: Step { by: By::Thread(ThreadId(0)), does },
        mark: 0,
        only: None,
        stage: 0,
        faulty_stage: 0,
    }
}

impl At {
    /// One of the two places of the report.
    pub(super) fn mark(mut self, mark: u8) -> Self {
        self.mark = mark;
        self
    }

    pub(super) fn one(self) -> Self {
        self.mark(1)
    }

    pub(super) fn two(self) -> Self {
        self.mark(2)
    }

    /// What the faulty program lacks.
    pub(super) fn mended(mut self) -> Self {
        self.only = Some(true);
        self
    }

    /// What the mended program lacks.
    pub(super) fn faulty(mut self) -> Self {
        self.only = Some(false);
        self
    }

    pub(super) fn stage(mut self, stage: u8) -> Self {
        (self.stage, self.faulty_stage) = (stage, stage);
        self
    }

    /// A stage that only the mended program needs: nothing keeps the faulty one from being earlier.
    pub(super) fn late(mut self, stage: u8) -> Self {
        (self.stage, self.faulty_stage) = (stage, 1);
        self
    }

    pub(super) fn in_function(mut self, function: u64) -> Self {
        self.step.by = By::Function(FunctionId(function));
        self
    }
}

// Streams A to C are 1 to 3, the legacy default stream of context 0 is 9.
pub(super) const A: u64 = 1;
pub(super) const B: u64 = 2;
pub(super) const C: u64 = 3;
pub(super) const LEGACY: u64 = 9;
/// A buffer of 64 bytes; others follow it.
pub(super) const BUFFER: u64 = 0x1000;
pub(super) const OTHER: u64 = 0x2000;
pub(super) const FLAG: Cell = Cell { address: 0x3000, bytes: 4 };
pub(super) const WIDE: Cell = Cell { address: 0x3000, bytes: 8 };

pub(super) fn writes(stream: u64) -> At {
    step(Do::Work(stream, vec![Access::write(BUFFER, 64)]))
}

pub(super) fn reads(stream: u64) -> At {
    step(Do::Work(stream, vec![Access::read(BUFFER, 64)]))
}

pub(super) fn touches(stream: u64, access: Access) -> At {
    step(Do::Work(stream, vec![access]))
}

pub(super) fn host_reads() -> At {
    step(Do::Host(vec![Access::read(BUFFER, 64)]))
}

pub(super) fn host_writes() -> At {
    step(Do::Host(vec![Access::write(BUFFER, 64)]))
}

pub(super) fn frees() -> At {
    step(Do::Host(vec![Access::free(BUFFER, 64)]))
}

pub(super) fn allocates() -> At {
    step(Do::Host(vec![Access::allocate(BUFFER, 64)]))
}

pub(super) fn record(event: u64, stream: u64) -> At {
    step(Do::Record(event, stream))
}

pub(super) fn wait(stream: u64, event: u64) -> At {
    step(Do::Wait(stream, event))
}

pub(super) fn stream_sync(stream: u64) -> At {
    step(Do::Sync(What::Stream(StreamId(stream))))
}

pub(super) fn event_sync(event: u64) -> At {
    step(Do::Sync(What::Event(EventId(event))))
}

pub(super) fn context_sync(context: u64) -> At {
    step(Do::Sync(What::Context(ContextId(context))))
}

pub(super) fn query(event: u64, done: bool) -> At {
    step(Do::Query(What::Event(EventId(event)), done))
}

pub(super) fn create(stream: u64, kind: StreamKind) -> At {
    step(Do::Create(stream, 0, kind))
}

pub(super) fn in_context(stream: u64, context: u64, kind: StreamKind) -> At {
    step(Do::Create(stream, context, kind))
}

pub(super) fn signal(stream: u64, value: u64) -> At {
    step(Do::Write(stream, FLAG, value))
}

/// A copy or a memset of a value.
pub(super) fn reset(stream: u64) -> At {
    touches(stream, Access::write(FLAG.address, 4))
}

pub(super) fn wait_value(stream: u64, value: u64, compare: Compare) -> At {
    step(Do::WaitValue(stream, FLAG, value, compare))
}

pub(super) fn node(work: NodeWork, after: &[usize]) -> Node {
    Node { work, after: after.to_vec() }
}

pub(super) fn node_writes(after: &[usize]) -> Node {
    node(NodeWork::Work(vec![Access::write(BUFFER, 64)]), after)
}

pub(super) fn node_reads(after: &[usize]) -> Node {
    node(NodeWork::Work(vec![Access::read(BUFFER, 64)]), after)
}

pub(super) fn idle(after: &[usize]) -> Node {
    node(NodeWork::Work(Vec::new()), after)
}

pub(super) fn define(graph: u64, nodes: Vec<Node>) -> At {
    step(Do::Define(graph, nodes))
}

pub(super) fn launch(stream: u64, graph: u64) -> At {
    step(Do::Launch(stream, graph))
}

pub(super) fn does(does: Do) -> At {
    step(does)
}
