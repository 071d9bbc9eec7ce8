//! A trace as rows, slices and arrows: what both forms of output show.

use core::ops::Range;
use std::collections::BTreeMap;
use std::time::Instant;

use crate::host::{Edge, Marker};
use crate::stream_id::StreamId;
use crate::thread::Thread;
use crate::trace::{Args, Trace};

/// All times are nanoseconds since the first thing in the trace.
pub(crate) struct Picture {
    pub(crate) groups: Vec<String>,
    pub(crate) rows: Vec<Row>,
    pub(crate) arrows: Vec<Arrow>,
    /// From the innermost slice in which the host began a span, if there is one, to the span.
    pub(crate) launches: Vec<Arrow>,
    pub(crate) markers: Vec<Point>,
    pub(crate) counters: Vec<Counter>,
    pub(crate) missing: String,
    /// The start and the end of what the page shows first.
    pub(crate) shown_first: Option<(u64, u64)>,
}

/// A marker in the row of its thread.
pub(crate) struct Point {
    pub(crate) row: usize,
    pub(crate) at: u64,
    pub(crate) name: String,
}

pub(crate) struct Counter {
    pub(crate) name: String,
    /// Times and finite values, in the order of the times.
    pub(crate) values: Vec<(u64, f64)>,
}

pub(crate) struct Row {
    /// The index of the row's group.
    pub(crate) group: usize,
    pub(crate) name: String,
    /// The index of the first row of the same stream or thread.
    pub(crate) first: usize,
    /// In the order of their starts; an outer slice comes before the slices inside it.
    pub(crate) slices: Vec<Slice>,
}

pub(crate) struct Slice {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) category: Option<String>,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The number of slices of the row that enclose this slice.
    pub(crate) depth: usize,
    /// The index of the innermost of them.
    pub(crate) parent: Option<usize>,
    /// What this crate says of the slice.
    pub(crate) details: Vec<(&'static str, String)>,
    /// The arguments that the program gave.
    pub(crate) args: Args,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Gpu,
    Host,
    Call,
    FailedCall,
}

/// An arrow between two slices.
pub(crate) struct Arrow {
    pub(crate) from: End,
    pub(crate) to: End,
}

/// An end of an arrow: its row, the index of the slice there, and the time.
#[derive(Clone, Copy)]
pub(crate) struct End {
    pub(crate) row: usize,
    pub(crate) slice: usize,
    pub(crate) at: u64,
}

/// The place of a slice: its row, its index there, its start and end.
#[derive(Clone, Copy, Default)]
struct Shown {
    row: usize,
    slice: usize,
    start: u64,
    end: u64,
}

impl Shown {
    fn at(self, at: u64) -> End {
        End { row: self.row, slice: self.slice, at }
    }
}

impl Picture {
    pub(crate) fn of(trace: &Trace) -> Self {
        let gpu = trace.spans.iter().map(|span| span.start);
        let host = trace.host_spans.iter().map(|span| span.start);
        let calls = trace.calls.iter().map(|call| call.start);
        let markers = trace.markers.iter().map(|marker| marker.at);
        let counters = trace.counters.iter().map(|counter| counter.at);
        let origin = gpu.chain(host).chain(calls).chain(markers).chain(counters).min();
        let since = |at: Instant| {
            origin.map_or(0, |origin| at.saturating_duration_since(origin).as_nanos() as u64)
        };

        let mut picture = Self {
            groups: Vec::new(),
            rows: Vec::new(),
            arrows: Vec::new(),
            launches: Vec::new(),
            markers: Vec::new(),
            counters: Vec::new(),
            missing: trace.missing(),
            shown_first: trace.shown_first.as_ref().map(|all| (since(all.start), since(all.end))),
        };
        let spans = picture.add_streams(trace, &since);
        let (calls, threads) = picture.add_threads(trace, &since);
        picture.add_arrows(trace, &spans, &calls);
        picture.add_launches(trace, &spans, &threads, &since);
        picture.add_counters(trace, &since);
        picture
    }

    /// Adds the rows of the streams. Returns the place of each span of the trace.
    fn add_streams(&mut self, trace: &Trace, since: &impl Fn(Instant) -> u64) -> Vec<Shown> {
        // By the stream, and by which of its names it had then: a name that comes later is for what
        // came before it, too, unless there is an earlier one.
        let mut streams: BTreeMap<(StreamId, usize), Vec<usize>> = BTreeMap::new();
        for (index, span) in trace.spans.iter().enumerate() {
            let names = trace.stream_names.get(&span.stream).map_or(&[][..], Vec::as_slice);
            let name = names.partition_point(|(at, _)| *at <= span.begun).saturating_sub(1);
            streams.entry((span.stream, name)).or_default().push(index);
        }
        let mut shown = vec![Shown::default(); trace.spans.len()];
        let mut group = None;
        for ((stream, name), indices) in streams {
            if group != Some(stream.device) {
                group = Some(stream.device);
                self.groups.push(format!("GPU {}", stream.device));
            }
            let name = match trace.stream_names.get(&stream).and_then(|names| names.get(name)) {
                Some((_, name)) => name.clone(),
                None => stream.to_string(),
            };
            let slices = indices.into_iter().filter_map(|index| {
                let span = trace.spans.get(index)?;
                let microseconds =
                    |time: core::time::Duration| format!("{:.3} µs", time.as_nanos() as f64 / 1e3);
                let details = vec![
                    ("duration on the device", microseconds(span.duration)),
                    ("placement error", microseconds(span.error)),
                    ("begun by", span.thread.to_string()),
                    ("begun at", format!("{:.3} µs", since(span.begun) as f64 / 1e3)),
                    ("ended at", format!("{:.3} µs", since(span.ended) as f64 / 1e3)),
                ];
                let slice = Slice {
                    name: span.name.to_string(),
                    kind: Kind::Gpu,
                    category: span.category.as_deref().map(str::to_owned),
                    start: since(span.start),
                    end: since(span.end),
                    depth: 0,
                    parent: None,
                    details,
                    args: span.args.clone(),
                };
                Some((index, slice))
            });
            let slices = slices.collect();
            for (index, place) in self.add_rows(&name, slices) {
                if let Some(shown) = shown.get_mut(index) {
                    *shown = place;
                }
            }
        }
        shown
    }

    /// Adds the rows of the threads. Returns the place of each call of the trace, and the rows of
    /// each thread.
    fn add_threads(
        &mut self,
        trace: &Trace,
        since: &impl Fn(Instant) -> u64,
    ) -> (Vec<Shown>, BTreeMap<u64, Range<usize>>) {
        let mut rows = BTreeMap::new();
        // The name, slices and markers of each thread.
        type Slices = Vec<(usize, Slice)>;
        let mut threads: BTreeMap<u64, (String, Slices, Vec<&Marker>)> = BTreeMap::new();
        let row_of = |thread: &Thread| (thread.to_string(), Slices::new(), Vec::new());
        let calls = trace.calls.len();
        for (index, call) in trace.calls.iter().enumerate() {
            let failed = call.result != cuda_events::sys::CUresult::CUDA_SUCCESS
                && call.result != cuda_events::sys::CUresult::CUDA_ERROR_NOT_READY;
            let slice = Slice {
                name: call.function.name().to_owned(),
                kind: if failed { Kind::FailedCall } else { Kind::Call },
                category: None,
                start: since(call.start),
                end: since(call.end),
                depth: 0,
                parent: None,
                details: vec![("call", call.to_string())],
                args: Args::new(),
            };
            let thread = &call.thread;
            let row = threads.entry(thread.number()).or_insert_with(|| row_of(thread));
            row.1.push((index, slice));
        }
        for span in &trace.host_spans {
            let slice = Slice {
                name: span.name.to_string(),
                kind: Kind::Host,
                category: span.category.as_deref().map(str::to_owned),
                start: since(span.start),
                end: since(span.end),
                depth: 0,
                parent: None,
                details: Vec::new(),
                args: span.args.clone(),
            };
            let thread = &span.thread;
            let row = threads.entry(thread.number()).or_insert_with(|| row_of(thread));
            row.1.push((calls, slice));
        }
        for marker in &trace.markers {
            let thread = &marker.thread;
            let row = threads.entry(thread.number()).or_insert_with(|| row_of(thread));
            row.2.push(marker);
        }
        let mut shown = vec![Shown::default(); calls];
        if !threads.is_empty() {
            self.groups.push("Host".to_owned());
        }
        for (number, (name, slices, markers)) in threads {
            let row = self.rows.len();
            if slices.is_empty() {
                let group = self.groups.len().saturating_sub(1);
                self.rows.push(Row { group, name: name.clone(), first: row, slices: Vec::new() });
            }
            self.markers.extend(markers.into_iter().map(|marker| Point {
                row,
                at: since(marker.at),
                name: marker.name.to_string(),
            }));
            for (index, place) in self.add_rows(&name, slices) {
                if let Some(shown) = shown.get_mut(index) {
                    *shown = place;
                }
            }
            rows.insert(number, row..self.rows.len());
        }
        (shown, rows)
    }

    /// Puts slices into as few rows as possible, so the slices of one row nest. Returns the place
    /// of each slice.
    fn add_rows(&mut self, name: &str, mut slices: Vec<(usize, Slice)>) -> Vec<(usize, Shown)> {
        slices.sort_by_key(|(_, slice)| (slice.start, core::cmp::Reverse(slice.end)));
        let first = self.rows.len();
        let group = self.groups.len().saturating_sub(1);
        // The end and the index of what is under way in each row, the innermost last.
        let mut under_way: Vec<Vec<(u64, usize)>> = Vec::new();
        let mut shown = Vec::with_capacity(slices.len());
        for (index, mut slice) in slices {
            let fits = |outer: &mut Vec<(u64, usize)>| {
                while outer.last().is_some_and(|(end, _)| *end <= slice.start) {
                    outer.pop();
                }
                outer.last().is_none_or(|(end, _)| slice.end <= *end)
            };
            let lane = under_way.iter_mut().position(fits).unwrap_or(under_way.len());
            if lane == under_way.len() {
                under_way.push(Vec::new());
                let name =
                    if lane == 0 { name.to_owned() } else { format!("{name} ({})", lane + 1) };
                self.rows.push(Row { group, name, first, slices: Vec::new() });
            }
            let row = first + lane;
            let mut place = Shown { row, slice: 0, start: slice.start, end: slice.end };
            if let (Some(outer), Some(row)) = (under_way.get_mut(lane), self.rows.get_mut(row)) {
                place.slice = row.slices.len();
                slice.depth = outer.len();
                slice.parent = outer.last().map(|(_, index)| *index);
                outer.push((slice.end, place.slice));
                row.slices.push(slice);
            }
            shown.push((index, place));
        }
        shown
    }

    fn add_launches(
        &mut self,
        trace: &Trace,
        spans: &[Shown],
        threads: &BTreeMap<u64, Range<usize>>,
        since: &impl Fn(Instant) -> u64,
    ) {
        for (span, shown) in trace.spans.iter().zip(spans) {
            let begun = since(span.begun);
            let innermost = |row: usize| {
                let slices = self.rows.get(row)?.slices.as_slice();
                let mut next = slices.partition_point(|slice| slice.start <= begun).checked_sub(1);
                // If the last that began before is done, then only what encloses it can be under way.
                while let Some(index) = next {
                    let slice = slices.get(index)?;
                    if begun < slice.end {
                        return Some(End { row, slice: index, at: begun });
                    }
                    next = slice.parent;
                }
                None
            };
            let threads = threads.get(&span.thread.number()).cloned();
            if let Some(from) = threads.and_then(|mut rows| rows.find_map(innermost)) {
                self.launches.push(Arrow { from, to: shown.at(shown.start) });
            }
        }
    }

    fn add_counters(&mut self, trace: &Trace, since: &impl Fn(Instant) -> u64) {
        let mut counters: BTreeMap<&str, Vec<(u64, f64)>> = BTreeMap::new();
        for counter in trace.counters.iter().filter(|counter| counter.value.is_finite()) {
            let values = counters.entry(&counter.name).or_default();
            values.push((since(counter.at), counter.value));
        }
        for (name, mut values) in counters {
            values.sort_by_key(|(at, _)| *at);
            self.counters.push(Counter { name: name.to_owned(), values });
        }
    }

    /// Adds an arrow for each wait of a stream for an event that was recorded in another stream.
    fn add_arrows(&mut self, trace: &Trace, spans: &[Shown], calls: &[Shown]) {
        // The spans of each stream by when the host ended and began them.
        let mut ended: BTreeMap<StreamId, Vec<(Instant, Shown)>> = BTreeMap::new();
        let mut begun: BTreeMap<StreamId, Vec<(Instant, Shown)>> = BTreeMap::new();
        for (span, shown) in trace.spans.iter().zip(spans) {
            let stream = without_device(span.stream);
            ended.entry(stream).or_default().push((span.ended, *shown));
            begun.entry(stream).or_default().push((span.begun, *shown));
        }
        for list in ended.values_mut().chain(begun.values_mut()) {
            list.sort_by_key(|(at, _)| *at);
        }
        let mut edges: Vec<_> = trace
            .calls
            .iter()
            .zip(calls)
            .filter_map(|(call, shown)| Some((call.start, call.edge()?, *shown)))
            .collect();
        edges.sort_by_key(|(at, ..)| *at);
        let mut records: BTreeMap<u64, (Instant, StreamId, Shown)> = BTreeMap::new();
        for (at, Edge { is_wait, event, stream }, call) in edges {
            if !is_wait {
                records.insert(event, (at, stream, call));
                continue;
            }
            // Nothing is waited for without a record, and a stream is in order anyway.
            let Some((recorded, producer, record)) = records.get(&event) else { continue };
            if *producer == stream {
                continue;
            }
            let before = ended.get(producer).and_then(|list| {
                let after = list.partition_point(|(at, _)| at <= recorded);
                list.get(after.checked_sub(1)?)
            });
            let after = begun
                .get(&stream)
                .and_then(|list| list.get(list.partition_point(|(begun, _)| *begun < at)));
            let (from, to) = match (before, after) {
                (Some((_, before)), Some((_, after))) => (*before, *after),
                _ => (*record, call),
            };
            self.arrows.push(Arrow { from: from.at(from.end), to: to.at(to.start) });
        }
    }
}

/// A stream as calls name it. Calls do not name a device.
fn without_device(stream: StreamId) -> StreamId {
    StreamId { device: 0, ..stream }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::host::HostSpan;
    use crate::trace::GpuSpan;

    const STREAM: StreamId = StreamId { device: 0, raw: 4096, thread: 0 };

    fn span(name: &'static str, begun: Instant, start: Instant, end: Instant) -> GpuSpan {
        GpuSpan {
            name: name.into(),
            category: None,
            args: Args::new(),
            stream: STREAM,
            thread: Thread::current(),
            begun,
            ended: begun,
            start,
            end,
            error: Duration::ZERO,
            duration: end - start,
            duration_error: Duration::ZERO,
        }
    }

    /// The rows of spans of one stream, each with its slices' names and depths.
    fn rows(spans: &[(&'static str, u64, u64)]) -> Vec<Vec<(String, usize)>> {
        let origin = Instant::now();
        let at = |nanoseconds| origin + Duration::from_nanos(nanoseconds);
        let mut trace = Trace::new();
        let spans = spans.iter().map(|&(name, start, end)| span(name, origin, at(start), at(end)));
        trace.spans.extend(spans);
        let slices = |row: Row| row.slices.into_iter().map(|slice| (slice.name, slice.depth));
        Picture::of(&trace).rows.into_iter().map(|row| slices(row).collect()).collect()
    }

    fn row(slices: &[(&str, usize)]) -> Vec<(String, usize)> {
        slices.iter().map(|(name, depth)| ((*name).to_owned(), *depth)).collect()
    }

    /// The usual case: in a stream one piece of work begins when the one before it ends.
    #[test]
    fn spans_back_to_back_share_a_row() {
        let spans = [("a", 0, 10), ("b", 10, 20), ("empty", 20, 20), ("c", 20, 30)];
        let expected = row(&[("a", 0), ("b", 0), ("c", 0), ("empty", 1)]);
        let in_order = rows(&spans);
        assert_eq!(in_order, [expected]);
        // In any order, as threads collect them.
        let reversed: Vec<_> = spans.iter().rev().copied().collect();
        assert_eq!(rows(&reversed), in_order);
        assert_eq!(rows(&[("inner", 5, 10), ("next", 10, 15), ("outer", 5, 15)]).len(), 1);
    }

    /// An outer span begins with its first inner one, or ends with its last.
    /// What begins at the same time as its cause, or as its stream's name, has them.
    #[test]
    fn a_time_belongs_to_what_begins_then() {
        let now = Instant::now();
        let mut trace = Trace::new();
        trace.spans.push(span("work", now, now, now + Duration::from_nanos(5)));
        let earlier = now.checked_sub(Duration::from_nanos(9)).unwrap_or(now);
        let names = [(earlier, "old".to_owned()), (now, "new".to_owned())];
        trace.stream_names.insert(STREAM, names.into());
        let outer = HostSpan {
            name: "outer".into(),
            category: None,
            args: Args::new(),
            thread: Thread::current(),
            start: now,
            end: now + Duration::from_nanos(10),
        };
        trace.host_spans.push(outer);
        let picture = Picture::of(&trace);
        assert_eq!(picture.rows[0].name, "new");
        assert_eq!(picture.launches.len(), 1);
    }

    #[test]
    fn nested_spans_may_share_a_begin_and_an_end() {
        let nested = row(&[("outer", 0), ("inner", 1), ("last", 1)]);
        assert_eq!(rows(&[("inner", 0, 5), ("last", 5, 10), ("outer", 0, 10)]), [nested]);
        // One that ends later than what it began in takes another row.
        let apart = [row(&[("one", 0)]), row(&[("two", 0)])];
        assert_eq!(rows(&[("one", 0, 10), ("two", 9, 11)]), apart);
    }
}
