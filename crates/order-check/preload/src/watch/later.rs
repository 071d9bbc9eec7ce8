//! Work of the device that the checker does not know of yet.
//!
//! Programs make many launches in a row, and between two of them their own work takes the checker
//! out of the processor's caches: to bring it back for each one takes several times as long as what
//! it does. So launches wait, and copies and memsets that the host has no part in. The next other
//! call, or the last one that there is a place for, brings all of them to the checker, in the order
//! of their calls. Nothing changes in between that they depend on: what changes is a call.

use cuda_order_check::feed::Observer as _;

use super::*;

/// How many operations wait, at most.
const WAITING: usize = 64;

pub(super) enum Work {
    /// The words of its parameters end at `end` among those of all launches that wait.
    Launch { name: &'static str, function: Handle, end: usize },
    /// A copy or a memset.
    Write(Vec<Access>),
}

struct Operation {
    call: Made,
    stream: StreamId,
    work: Work,
}

/// The operations that wait.
#[derive(Default)]
pub(super) struct Waiting {
    operations: Vec<Operation>,
    /// The words of the launches' parameters.
    pub(super) values: Vec<u64>,
}

impl Watch {
    /// Whether a call that only submits work has nothing else to bring to the checker.
    pub(super) fn only_submits(&self) -> bool {
        self.calls > 0
            && self.pending.is_empty()
            && self.under_way.is_empty()
            && !guard::has_unseen()
            && !hosts::have_told()
            && !table::waiting()
            && TRACE.get().is_none()
            && self.feed.has_begun(ThreadId(thread()))
    }

    /// A call has submitted work. It waits, if it may.
    pub(super) fn later(
        &mut self,
        call: &Call,
        name: &'static str,
        stream: Handle,
        may_wait: bool,
        work: impl FnOnce(&mut Self) -> Work,
    ) {
        let may_wait = may_wait && self.only_submits();
        let known = if may_wait { self.known_stream(call, stream) } else { None };
        let (made, stream) = match known {
            Some(stream) => {
                self.numbered(name);
                let mut made = Made::new(name, self.calls, ThreadId(thread()));
                made.backtrace = self.feed.observer().backtrace();
                (made, stream)
            }
            None => {
                self.catch_up();
                self.begin(&Call { name, per_thread: call.per_thread });
                (self.feed.caller(), self.stream(call, stream))
            }
        };
        let work = work(self);
        let operations = &mut self.waiting.operations;
        operations.push(Operation { call: made, stream, work });
        if known.is_none() || operations.len() == WAITING {
            self.submit_waiting();
        }
        if known.is_none() {
            self.settle();
        }
    }

    /// What waits comes to the checker.
    pub(super) fn submit_waiting(&mut self) {
        if self.waiting.operations.is_empty() {
            return;
        }
        let Waiting { mut operations, mut values } = std::mem::take(&mut self.waiting);
        let mut begin = 0;
        for Operation { call, stream, work } in operations.drain(..) {
            self.feed.resume(call);
            match work {
                Work::Launch { name, function, end } => {
                    let of_launch = values.get(begin..end).unwrap_or_default();
                    begin = end;
                    let (accesses, open) = self.addresses(function, of_launch, true);
                    if !open.is_empty() {
                        self.open_words(name, stream, open);
                    }
                    self.kernel_part(stream, &accesses);
                }
                Work::Write(accesses) => self.wrote(stream, None, &accesses),
            }
        }
        values.clear();
        self.waiting = Waiting { operations, values };
    }
}
