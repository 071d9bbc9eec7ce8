//! Marks in the queues of streams.

use std::sync::Arc;

use crate::engine::Running;
use crate::engine::point::Point;
use crate::engine::work::{Queued, Task};

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
                    self.engine.value_passed((entry.context, entry.channel), queued.at);
                }
                Task::WriteValue(write, _) => self.engine.values.written(queued.at, write),
                _ => {}
            }
        }
    }
}
