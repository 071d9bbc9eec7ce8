//! For cudarc, numba-cuda and cuda.core: which streams use a piece of memory that is freed in
//! stream order, or is registered no longer.

use std::sync::Arc;

use crate::engine::Running;
use crate::engine::point::Point;
use crate::engine::stream::Stream;
use crate::engine::work::{Task, Work};
use crate::memory::Region;

impl Running<'_> {
    /// Points that are done when no stream uses a piece of memory any more: after the last use in
    /// each stream.
    pub(crate) fn marks_after_uses(&mut self, region: &Arc<Region>) -> Vec<Arc<Point>> {
        let last_use =
            |stream: &Stream| stream.queue.iter().rposition(|queued| queued.task.uses(region));
        let uses: Vec<(u32, usize)> = self
            .streams
            .iter()
            .filter_map(|(stream, entry)| Some((stream, last_use(entry)?)))
            .collect();
        let mut points = Vec::new();
        for (stream, last) in uses {
            points.push(self.mark_after(stream, last));
        }
        points
    }
}

impl Task {
    /// Whether it reads or writes a piece of memory.
    pub(crate) fn uses(&self, region: &Arc<Region>) -> bool {
        match self {
            Self::Memory(work) | Self::Running(Some(Work::Memory(work))) => work.uses(region),
            Self::Device(work) | Self::Running(Some(Work::Device(work))) => {
                let end = (region.base + region.bytes) as u64;
                let begin = region.base as u64;
                // Work that declares nothing may use any memory.
                work.accesses().is_none_or(|accesses| {
                    let mut ranges = accesses.iter().map(|access| &access.range);
                    ranges.any(|range| range.start < end && begin < range.end)
                })
            }
            Self::WaitValue(wait, _) => wait.word.place.is_in(region),
            Self::WriteValue(write, _) => write.word.place.is_in(region),
            _ => false,
        }
    }
}
