//! What the order checker is given of tasks.

use cuda_order_check_engine::StreamId;

use crate::engine::Running;
use crate::engine::work::Task;
use crate::order::Feed;

impl Running<'_> {
    /// Gives the feed something, if the order is checked.
    #[inline]
    pub(super) fn feed(&mut self, give: impl FnOnce(&mut Feed)) {
        if let Some(feed) = self.feed.as_deref_mut() {
            give(feed);
        }
    }

    /// A task is given to a stream, at this place in the order of submission.
    pub(super) fn feed_task(&mut self, stream: u32, place: u64, task: &Task) {
        let stream = StreamId(self.streams.handle(stream));
        self.feed(|feed| {
            let at = Some(place);
            match task {
                Task::Memory(work) => {
                    if let Some(word) = work.word() {
                        feed.find_stored(word.cell(), || word.load());
                    }
                    let content = work.copied_content(feed);
                    work.accesses(content, |all| feed.write(stream, at, all));
                }
                Task::Device(work) => feed.work(stream, work.accesses().unwrap_or_default()),
                Task::Busy(_) => feed.work(stream, &[]),
                Task::Host(_) => feed.function(stream, place),
                Task::WaitValue(wait, _) => {
                    let cell = wait.word.cell();
                    feed.find_stored(cell, || wait.word.load());
                    feed.wait_value(stream, cell, wait.value, wait.compare());
                }
                Task::WriteValue(write, _) => {
                    let cell = write.word.cell();
                    feed.find_stored(cell, || write.word.load());
                    feed.write_value(stream, at, cell, write.value);
                }
                Task::WaitSemaphore(point, _) => {
                    feed.wait_semaphore(stream, &point.semaphore.order, point.value);
                }
                Task::SignalSemaphore(point, _) => {
                    feed.signal(stream, at, &point.semaphore.order, point.value);
                }
                Task::Free(region) => feed.free_async(stream, region.base as u64),
                Task::Complete(_) | Task::Wait(_) | Task::WaitShared(_) | Task::Running => {}
            }
        });
    }
}
