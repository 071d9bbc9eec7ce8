//! Part 3: one stream waits for another, and the data proves it.
//!
//! The producer is held before it writes. Meanwhile two streams copy the buffer. The one that does
//! not wait reads the old data. The one that waits for the producer's event reads the new data,
//! although it was queued first.

use std::io::Write;

use cuda_events::{Context, Event, EventFlags, Stream, StreamOptions};

use crate::gpu::{Latch, finish};
use crate::memory::{DeviceBuffer, HostBuffer};
use crate::report::{Failure, Table};
use crate::trace::Spans;

const BYTES: usize = 1 << 20;
const OLD: u32 = 0x1111_1111;
const NEW: u32 = 0x2222_2222;

pub(crate) fn show(
    out: &mut impl Write,
    table: &mut Table,
    context: &Context,
    spans: &Spans,
) -> Result<(), Failure> {
    writeln!(out, "\n3. Ordering: one stream waits for an event of another")?;
    let buffer = DeviceBuffer::new(context, BYTES)?;
    let (with_wait, without_wait) =
        (HostBuffer::new(context, BYTES)?, HostBuffer::new(context, BYTES)?);
    let new_stream = || Stream::new(context, StreamOptions::new());
    let (producer, consumer, careless) = (new_stream()?, new_stream()?, new_stream()?);
    spans.name(&producer, "3. producer");
    spans.name(&consumer, "3. consumer, waits");
    spans.name(&careless, "3. careless, does not wait");
    spans.show(&producer, "memset, old", || buffer.fill(OLD, &producer))?;
    finish(&producer.record_event(EventFlags::empty())?)?;

    let latch = Latch::hold(&producer)?;
    spans.show(&producer, "memset, new", || buffer.fill(NEW, &producer))?;
    let written = Event::new(context, EventFlags::empty())?;
    written.record(&producer)?;

    consumer.wait_event(&written)?;
    spans.show(&consumer, "copy", || buffer.download(&with_wait, &consumer))?;
    let read = consumer.record_event(EventFlags::empty())?;

    spans.show(&careless, "copy", || buffer.download(&without_wait, &careless))?;
    finish(&careless.record_event(EventFlags::empty())?)?;
    // SAFETY: the event after the copy is done, and nothing else writes there.
    let old = the_one_value(unsafe { without_wait.words() })?;
    let done_early = read.query()?.is_done();
    writeln!(
        out,
        "   The producer is held before its memset. A copy that does not wait is done: it read \
         {old:#010x}."
    )?;
    writeln!(
        out,
        "   The copy that waits was queued before that one, and is {}.",
        if done_early { "done" } else { "pending" }
    )?;

    latch.release();
    finish(&read)?;
    // SAFETY: the event after the copy is done, and nothing else writes there.
    let new = the_one_value(unsafe { with_wait.words() })?;
    writeln!(
        out,
        "   The producer is released. The copy that waits is done: it read {new:#010x}."
    )?;

    if done_early || old != OLD || new != NEW {
        return Err(Failure::Runtime(format!(
            "the streams were not ordered: expected {OLD:#010x} without the wait and {NEW:#010x} \
             with it"
        )));
    }
    table.row("copy that does not wait", "", "", &format!("{old:#010x}, old data"));
    table.row("copy that waits for the event", "", "", &format!("{new:#010x}, new data"));
    Ok(())
}

/// The value that all words have.
fn the_one_value(words: &[u32]) -> Result<u32, Failure> {
    match words {
        [first, rest @ ..] if rest.iter().all(|word| word == first) => Ok(*first),
        _ => Err(Failure::Runtime(
            "a copy holds different values, which no part of the tour wrote".to_owned(),
        )),
    }
}
