//! What is put into a stream before an operation: the waits of the legacy default stream's rule,
//! and those of the whole context.

use crate::engine::Running;
use crate::engine::work::Task;

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
        self.wait_for_context_waits(stream);
        let entry = &self.streams[stream];
        let context = entry.context;
        if entry.is_legacy {
            let others: Vec<u32> =
                self.engine.contexts.busy_in(context).filter(|k| *k != stream).collect();
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
            && let Some(legacy) = self.engine.contexts[context].legacy
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

    /// Before an operation, a stream waits for what its whole context waits for.
    fn wait_for_context_waits(&mut self, stream: u32) {
        let (context, seen) =
            (self.streams[stream].context, self.streams[stream].context_waits_seen);
        if self.engine.contexts[context].last_wait == seen {
            return;
        }
        self.streams[stream].context_waits_seen = self.engine.contexts[context].last_wait;
        let waits = &self.engine.contexts[context].waits;
        let tasks: Vec<Task> = waits
            .iter()
            .filter(|(at, wait)| *at > seen && !wait.is_done())
            .map(|(_, wait)| wait.task())
            .collect();
        for task in tasks {
            self.push(stream, task);
        }
    }
}
