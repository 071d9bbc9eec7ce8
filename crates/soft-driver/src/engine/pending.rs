//! What the streams wait for, in words: for whoever looks at a program that hangs.

use crate::engine::Engine;
use crate::engine::deadlock::{call, condition};
use crate::engine::point::Point;
use crate::engine::stream::Stream;
use crate::engine::work::{Queued, Task};
use crate::machine::handles::Table;

/// A line for each stream with work, in the order of their handles' numbers.
pub(crate) fn describe(engine: &Engine, streams: &Table<Stream>) -> Vec<String> {
    let named = |stream: u32| {
        let entry = &streams[stream];
        let context = engine.contexts[entry.context].handle;
        match entry.is_legacy {
            true => format!("the default stream of context {context:#x}"),
            false => format!("stream {:#x}", streams.handle(stream)),
        }
    };
    // Who completes a point: a record, or the end of what the legacy default stream waits for.
    let completes = |point: &Point| {
        streams.iter().find_map(|(stream, entry)| {
            let at = entry.queue.iter().position(
                |queued| matches!(&queued.task, Task::Complete(other) if other.id == point.id),
            )?;
            Some(format!("an event that {} records behind {at} tasks", named(stream)))
        })
    };
    let line = |(stream, entry): (u32, &Stream)| {
        let Queued { task, .. } = entry.queue.front()?;
        let waits = match task {
            Task::Wait(point) => format!(
                "waits for {}",
                completes(point).unwrap_or_else(|| "an event that was recorded".to_owned())
            ),
            Task::WaitShared(_) => "waits for an event of another process".to_owned(),
            Task::WaitValue(wait, origin) => format!(
                "waits for {} at {:#x}, where {} is: {}",
                condition(wait),
                wait.word.place.address,
                wait.word.load(),
                call(*origin)
            ),
            Task::WaitSemaphore(_, origin) => {
                format!("waits for an external semaphore: {}", call(*origin))
            }
            Task::Running => "has work that runs".to_owned(),
            _ => "has work that can run".to_owned(),
        };
        Some(format!("{} {waits}; {} tasks are behind that", named(stream), entry.queue.len() - 1))
    };
    streams.iter().filter_map(line).collect()
}
