//! Operations that wait come to the checker with the next call.

use cuda_order_check_engine::feed::Observer as _;
use cuda_order_check_engine::{Call as Made, ThreadId};

use crate::call::{Call, Handle, thread};
use crate::model::copies;
use crate::model::kernels;
use crate::model::pinned::settle_copies;
use crate::report::trace::TRACE;
use crate::state::executions as host_functions;
use crate::state::waiting::{Operation, Submitted, WAITING, Waiting};
use crate::watch::Watch;
use crate::{guard, pinned};

impl Watch {
    /// Whether nothing but the work of the operations that wait is to be brought to the checker.
    pub(crate) fn only_submits(&self) -> bool {
        self.seen.calls > 0
            && self.values.pending.is_empty()
            && self.under_way.is_empty()
            && !guard::has_unseen()
            && !host_functions::have_posted()
            && !pinned::has_more()
            && TRACE.get().is_none()
            && self.feed.has_begun(ThreadId(thread()))
    }

    /// A call has submitted work. It waits, if it may.
    pub(crate) fn defer(
        &mut self,
        call: &Call,
        name: &'static str,
        stream: Handle,
        may_wait: bool,
        work: impl FnOnce(&mut Self) -> Submitted,
    ) {
        let may_wait = may_wait && self.only_submits();
        let seen_stream = if may_wait { self.seen_stream(call, stream) } else { None };
        let (made, stream) = match seen_stream {
            Some(stream) => {
                self.numbered(name);
                let mut made = Made::new(name, self.seen.calls, ThreadId(thread()));
                made.backtrace = self.feed.observer().backtrace();
                (made, stream)
            }
            None => {
                self.catch_up();
                self.call_begins(&Call { name, per_thread: call.per_thread });
                (self.feed.caller(), self.stream(call, stream))
            }
        };
        let work = work(self);
        let operations = &mut self.waiting.operations;
        operations.push(Operation { call: made, stream, work });
        if seen_stream.is_none() || operations.len() == WAITING {
            self.submit_waiting();
        }
        if seen_stream.is_none() {
            settle_copies(self);
        }
    }

    /// The operations that wait come to the checker.
    pub(crate) fn submit_waiting(&mut self) {
        if self.waiting.operations.is_empty() {
            return;
        }
        let Waiting { mut operations, mut values } = std::mem::take(&mut self.waiting);
        let (mut begin, mut accesses) = (0, Vec::new());
        for Operation { call, stream, work } in operations.drain(..) {
            self.feed.resume(call);
            match work {
                Submitted::Launch { function, sizes, end } => {
                    let of_launch = values.get(begin..end).unwrap_or_default();
                    begin = end;
                    let Watch { feed, pinned, kernels, uploads, .. } = self;
                    let is_captured = feed.capture_of(stream).is_some();
                    let of_host = |word| pinned.of_host(word);
                    let of_host = kernels.addresses(
                        feed,
                        &of_host,
                        (function, sizes),
                        of_launch,
                        &mut accesses,
                        (!is_captured).then_some((uploads, stream)),
                    );
                    kernels::submitted(self, stream, function, &accesses, of_host, is_captured);
                }
                Submitted::Write(accesses) => copies::submitted(self, stream, None, &accesses),
            }
        }
        values.clear();
        self.waiting = Waiting { operations, values };
    }
}
