//! Marks in the queues of streams, and what others ask about the engine.

use std::sync::Arc;
use std::thread::JoinHandle;

use crate::engine::channel::Channels;
use crate::engine::deadlock::Values;
use crate::engine::point::Point;
use crate::engine::work::{Queued, Task};
use crate::engine::{Engine, Running};

impl Running<'_> {
    /// Puts a point after all that a stream has now. It is no work of the device, so no channel
    /// holds it back.
    pub(crate) fn push_mark(&mut self, stream: u32, point: Arc<Point>) {
        let at = self.streams[stream].queue.back().map_or(0, |last| last.at);
        self.push_at(stream, Queued { at, task: Task::Complete(point) });
    }

    /// Points that are done when the streams have done what they have now, to wait for.
    pub(crate) fn marks(&mut self, streams: impl IntoIterator<Item = u32>) -> Vec<Arc<Point>> {
        let mark = |stream| {
            let point = self.engine.new_point(false, None);
            point.want();
            self.push_mark(stream, point.clone());
            point
        };
        streams.into_iter().map(mark).collect()
    }

    /// A point after the task at this index of the stream's queue.
    pub(crate) fn mark_after(&mut self, stream: u32, index: usize) -> Arc<Point> {
        let point = self.engine.new_point(false, None);
        let queue = &mut self.streams[stream].queue;
        let at = queue.get(index).map_or(0, |queued| queued.at);
        queue.insert(index + 1, Queued { at, task: Task::Complete(point.clone()) });
        point
    }

    /// Takes the waits and writes of a stream out of the channels and the search for deadlocks, as
    /// it ends with its context.
    pub(crate) fn forget_values(&mut self, stream: u32) {
        let Some(entry) = self.streams.get(stream) else { return };
        for queued in &entry.queue {
            match &queued.task {
                Task::WaitValue(..) => {
                    let held = self.engine.channels.pass((entry.context, entry.channel), queued.at);
                    self.engine.ready.extend(held);
                    self.engine.values.passed(queued.at);
                }
                Task::WriteValue(write, _) => self.engine.values.written(queued.at, write),
                _ => {}
            }
        }
    }
}

impl Engine {
    pub(crate) fn set_channels(&mut self, count: u32) {
        self.channel_count = count;
    }

    /// The deadlocks that were found, in words.
    pub(crate) fn deadlocks(&self) -> &[String] {
        &self.deadlocks
    }

    /// How many threads wait for streams to have no work, to end a context or memory.
    pub(crate) fn waiting_for_idle(&self) -> usize {
        self.idle_waiters
    }

    /// Whether a thread does a job, which may be a function of the program.
    pub(crate) fn does_a_job(&self) -> bool {
        self.running > 0
    }

    /// Whether a thread does a job, or waits in a call.
    pub(crate) fn has_threads_inside(&self) -> bool {
        self.running > 0 || self.waiters > 0
    }

    /// Drops all work that no thread has begun. The driver's own threads.
    pub(crate) fn abandon(&mut self) -> Vec<JoinHandle<()>> {
        self.ready.clear();
        self.parked.clear();
        self.shared_waits.clear();
        self.value_waits.clear();
        self.channels = Channels::new();
        self.values = Values::new();
        self.host_queue.clear();
        self.pool_queue.clear();
        self.busy.clear();
        core::mem::take(&mut self.threads)
    }
}
