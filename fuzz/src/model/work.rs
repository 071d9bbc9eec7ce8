//! Work in streams: which comes before which, and the bytes that it leaves.

use std::collections::BTreeSet;

use super::capture::Way;
use super::graphs::Deed;
use super::memory::Span;
use super::{Answer, Model, SUCCESS, says};

/// Pending work, by its place in the list.
pub type Past = BTreeSet<usize>;

#[derive(Clone, Debug)]
pub enum Act {
    /// The call of the host function of this number.
    Call(u32),
    Put(Span, Vec<u8>),
    /// To the first from the second.
    Copy(Span, Span),
}

impl Act {
    fn writes(&self) -> Option<Span> {
        match self {
            Self::Call(_) => None,
            Self::Put(span, _) | Self::Copy(span, _) => Some(*span),
        }
    }

    fn reads(&self) -> Option<Span> {
        match self {
            Self::Copy(_, from) => Some(*from),
            _ => None,
        }
    }

    pub(super) fn spans(&self) -> impl Iterator<Item = Span> {
        self.writes().into_iter().chain(self.reads())
    }

    fn uses(&self, memory: usize) -> bool {
        self.spans().any(|span| span.memory == memory)
    }
}

/// A piece of work, and all that comes before it.
pub struct Op {
    pub act: Act,
    pub past: Past,
}

impl Model {
    /// Gives work to a stream, or to the graph that it captures. `None`: the rules leave it open.
    pub fn submit(&mut self, stream: usize, deed: Deed) -> Option<Answer> {
        match self.way(stream) {
            Way::ToTheStream => {}
            Way::ToTheGraph => {
                self.capture_node(stream, deed);
                return Some(says(SUCCESS));
            }
            Way::Refused(answer) => return Some(answer),
            Way::Open => return None,
        }
        if let Deed::Act(act) | Deed::Value(act) = deed {
            self.work(stream, act);
        }
        Some(says(SUCCESS))
    }

    /// A host function is held; other work is done at once, unless the stream has to wait.
    fn work(&mut self, stream: usize, act: Act) {
        self.join(stream);
        let queue = &mut self.streams[stream];
        queue.pending |= matches!(act, Act::Call(_));
        let op = Op { act, past: queue.past.clone() };
        if queue.pending {
            queue.past.insert(self.ops.len());
            self.ops.push(op);
        } else {
            self.apply(&[op]);
        }
    }

    /// Whether pending work uses some memory.
    pub fn in_use(&self, memory: usize) -> bool {
        self.ops.iter().any(|op| op.act.uses(memory))
    }

    /// Pending work is done.
    pub(super) fn all_done(&mut self, called: &[u32]) {
        let ops = std::mem::take(&mut self.ops);
        self.apply(&ops);
        let numbers = |op: &Op| match op.act {
            Act::Call(number) => Some(number),
            _ => None,
        };
        let mut expected: Vec<u32> = ops.iter().filter_map(numbers).collect();
        let place = |number| called.iter().position(|it| *it == number);
        let once = |number| expected.iter().filter(|it| **it == number).count() == 1;
        for op in &ops {
            // Of what is called more than once it is open which call is which.
            let Some(number) = numbers(op).filter(|it| once(*it)) else { continue };
            for earlier in op.past.iter().filter_map(|it| numbers(&ops[*it])).filter(|it| once(*it))
            {
                assert!(place(earlier) < place(number), "{earlier}, then {number}: {called:?}");
            }
        }
        let mut called = called.to_vec();
        called.sort_unstable();
        expected.sort_unstable();
        assert_eq!(called, expected, "the functions that were called");
    }

    /// Does work in the order in which it was submitted. Bytes become unknown where the order of
    /// two pieces of work is open.
    pub(super) fn apply(&mut self, ops: &[Op]) {
        for (at, op) in ops.iter().enumerate() {
            let Some(to) = op.act.writes() else { continue };
            let beside: Vec<&Op> = (0..ops.len())
                .filter(|other| *other != at)
                .filter(|other| !op.past.contains(other) && !ops[*other].past.contains(&at))
                .map(|other| &ops[other])
                .collect();
            let open = |span: Span, offset: usize| {
                let written = |it: &&Op| it.act.writes().is_some_and(|it| it.holds(span, offset));
                beside.iter().any(written)
            };
            let bytes: Vec<Option<u8>> = (0..to.bytes)
                .map(|offset| match &op.act {
                    _ if open(to, offset) => None,
                    Act::Put(_, bytes) => Some(bytes[offset]),
                    Act::Copy(_, from) if open(*from, offset) => None,
                    Act::Copy(_, from) => self.memory[from.memory].bytes[from.start + offset],
                    Act::Call(_) => None,
                })
                .collect();
            self.memory[to.memory].bytes[to.start..][..to.bytes].copy_from_slice(&bytes);
        }
    }
}
