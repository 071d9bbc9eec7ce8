//! What a span is from its begin until it is collected: open, ended, ready.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use cuda_events::ext::PooledEvent;
use cuda_events::sys::{CUresult, Function};
use cuda_events::{Error, EventRef, Result};
use cuda_timelines::Completion;

use crate::clock::{Clock, Elapsed, Place, Stamp, between};
use crate::stream_id::StreamId;
use crate::thread::Thread;
use crate::trace::Args;

/// Threads spread over these, so they seldom share one.
pub(super) const SHARDS: usize = 16;

/// The spans of the threads whose numbers have the same remainder.
#[derive(Default)]
pub(super) struct Shard {
    /// The open spans. A `Span` keeps its index here.
    pub(super) open: Vec<Option<Open>>,
    pub(super) free: Vec<usize>,
    pub(super) ended: Vec<Ended>,
    /// Events of collected spans, for the next spans of the same threads. The pool is shared by all
    /// threads, and is slower if it has more events than slots.
    pub(super) spare: Vec<PooledEvent>,
    /// When an anchor may be due. None if that is not known.
    pub(super) due: Option<Instant>,
}

/// A span that was begun.
pub(super) struct Open {
    pub(super) name: Cow<'static, str>,
    pub(super) stream: StreamId,
    pub(super) thread: Thread,
    pub(super) begun: Instant,
    pub(super) start: Start,
    pub(super) labels: Option<Box<Labels>>,
}

/// What a span was given besides its name. Few spans have any.
#[derive(Default)]
pub(super) struct Labels {
    pub(super) category: Option<Cow<'static, str>>,
    pub(super) args: Args,
}

pub(super) enum Start {
    Recorded(PooledEvent),
    /// The start, if it was placed before the span's end, so no anchor is kept for it.
    Known(Box<(Stamp, Place)>),
}

impl Shard {
    pub(super) const fn new() -> Self {
        Self { open: Vec::new(), free: Vec::new(), ended: Vec::new(), spare: Vec::new(), due: None }
    }

    /// Stores an open span, and returns its index.
    #[inline]
    pub(super) fn open(&mut self, open: Open) -> usize {
        if let Some(place) = self.free.pop()
            && let Some(free) = self.open.get_mut(place)
        {
            *free = Some(open);
            return place;
        }
        self.open.push(Some(open));
        self.open.len() - 1
    }

    #[inline]
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.due.is_none_or(|due| now >= due)
    }

    #[inline]
    pub(super) fn close(&mut self, place: usize) -> Option<Open> {
        let open = self.open.get_mut(place)?.take()?;
        self.free.push(place);
        Some(open)
    }
}

/// Returns the shard of a thread's spans.
#[inline]
pub(super) fn shard_of(thread: &Thread) -> usize {
    thread.number() as usize % SHARDS
}

/// A span that was ended. Its work may be pending.
pub(super) struct Ended {
    pub(super) open: Open,
    pub(super) ended: Instant,
    pub(super) end: End,
}

pub(super) enum End {
    Own(PooledEvent),
    /// A share is with a future, if one waits for the span.
    Shared(Arc<PooledEvent>),
}

/// A span whose work is done, and which waits for an anchor after it.
pub(super) struct Ready {
    pub(super) name: Cow<'static, str>,
    pub(super) stream: StreamId,
    pub(super) thread: Thread,
    pub(super) begun: Instant,
    pub(super) ended: Instant,
    pub(super) times: Times,
    pub(super) labels: Option<Box<Labels>>,
}

pub(super) struct Times {
    pub(super) start: Stamp,
    /// The start's place on the host's axis, if it is known.
    pub(super) placed: Option<Place>,
    pub(super) end: Stamp,
    pub(super) duration: Elapsed,
}

impl End {
    #[inline]
    pub(super) fn event(&self) -> &EventRef {
        match self {
            Self::Own(event) => event,
            Self::Shared(event) => event,
        }
    }
}

impl Ended {
    #[inline]
    pub(super) fn times(&self, clock: &mut Clock) -> Result<Times> {
        // There is an anchor from the first on: see `Tracer::with`.
        let none = || Error::Driver {
            function: Function::cuEventElapsedTime,
            code: CUresult::CUDA_ERROR_NOT_FOUND,
        };
        let event = self.end.event();
        let (start, placed, near) = match &self.open.start {
            Start::Recorded(start) => {
                // The first question is also whether it is done.
                let milliseconds = start.elapsed_ms(event)?;
                let start = clock.stamp(start)?.ok_or_else(none)?;
                (start, None, clock.after(start, milliseconds))
            }
            Start::Known(known) => (known.0, Some(known.1), None),
        };
        let (end, duration) = match near {
            Some(near) => near,
            None => {
                let end = clock.stamp(event)?.ok_or_else(none)?;
                (end, between(start, end))
            }
        };
        if duration.ns < 0.0 {
            Err(Error::EndBeforeStart)
        } else {
            Ok(Times { start, placed, end, duration })
        }
    }

    /// Gives the events to the spare ones of the thread's shard.
    pub(super) fn into_ready(self, times: Times, spare: &mut [Vec<PooledEvent>; SHARDS]) -> Ready {
        let Self { open: Open { name, stream, thread, begun, start, labels }, ended, end } = self;
        if let Some(spare) = spare.get_mut(shard_of(&thread)) {
            if let Start::Recorded(event) = start {
                spare.push(event);
            }
            if let End::Own(event) = end {
                spare.push(event);
            }
        }
        Ready { name, stream, thread, begun, ended, times, labels }
    }

    /// Returns a future for the span's end. The two share the end's event.
    pub(super) fn wait(self) -> (Self, Completion<Arc<PooledEvent>>) {
        let Self { open, ended, end } = self;
        let event = match end {
            End::Own(event) => Arc::new(event),
            End::Shared(event) => event,
        };
        (Self { open, ended, end: End::Shared(Arc::clone(&event)) }, Completion::new(event))
    }

    /// Drops the span's events, and does not give them to another span, because the driver returned
    /// an error for them.
    pub(super) fn discard(self) {
        if let Start::Recorded(event) = self.open.start {
            event.discard();
        }
        match self.end {
            End::Own(event) => event.discard(),
            End::Shared(event) => {
                if let Some(event) = Arc::into_inner(event) {
                    event.discard();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use crate::Tracer;
    use crate::thread::lock;
    use cuda_events::{Context, Device, Stream, StreamOptions};
    use cuda_soft_driver::SoftDriver;

    /// However many spans there were, and whether they were ended or dropped.
    #[test]
    fn places_are_used_again() {
        let soft = SoftDriver::new();
        let context = Context::primary(Device::new(soft.driver(), 0).unwrap()).unwrap();
        let stream = Stream::new(&context, StreamOptions::new()).unwrap();
        let tracer = Tracer::new(&context).unwrap();
        for _ in 0..20 {
            tracer.span(&stream, "ended").unwrap().end(&stream).unwrap();
            drop(tracer.span(&stream, "dropped").unwrap());
        }
        let places: usize = tracer.0.shards.iter().map(|shard| lock(shard).open.len()).sum();
        assert_eq!(places, 1);
        assert_eq!(tracer.finish(Duration::from_secs(60)).spans.len(), 20);
    }
}
