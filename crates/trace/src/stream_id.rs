//! Streams, as rows of a trace.

use core::fmt;

use cuda_events::StreamRef;

use crate::thread::Thread;

/// The driver's number for the legacy default stream, which NULL means too.
const LEGACY: usize = 1;
/// The driver's number for the default stream of the calling thread.
const PER_THREAD: usize = 2;

/// Identifies the stream of a span: the device, and the driver's handle.
///
/// It does not keep the stream alive. The driver may give the handle to another stream later.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StreamId {
    pub(crate) device: u32,
    pub(crate) raw: usize,
    /// For a per-thread default stream: the number of its thread.
    pub(crate) thread: u64,
}

impl StreamId {
    /// The stream that `stream` means on this thread.
    pub(crate) fn of(stream: &StreamRef, thread: &Thread) -> Self {
        let device = stream.device().ordinal();
        let per_thread = stream.context().driver().is_per_thread_default_stream();
        Self::named(device, stream.as_raw().addr(), per_thread, thread)
    }

    pub(crate) fn named(device: u32, raw: usize, per_thread: bool, thread: &Thread) -> Self {
        let raw = match raw {
            0 if per_thread => PER_THREAD,
            0 => LEGACY,
            raw => raw,
        };
        Self { device, raw, thread: if raw == PER_THREAD { thread.number() } else { 0 } }
    }

    /// The ordinal of the stream's device.
    pub fn device(self) -> u32 {
        self.device
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.raw {
            LEGACY => write!(f, "default stream"),
            PER_THREAD => write!(f, "default stream of thread {}", self.thread),
            raw => write!(f, "stream {raw:#x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NULL is one of the two default streams, and of one of them each thread has its own.
    #[test]
    fn default_streams_have_one_name() {
        let (one, other) = (Thread::current(), std::thread::spawn(Thread::current).join().unwrap());
        let named = |raw, per_thread| {
            [&one, &other].map(|thread| StreamId::named(3, raw, per_thread, thread))
        };
        for per_thread in [false, true] {
            let [legacy, same] = named(LEGACY, per_thread);
            let [own, others] = named(PER_THREAD, per_thread);
            assert!(legacy == same && own != others && legacy.device() == 3);
            assert_eq!(named(0, per_thread), if per_thread { [own, others] } else { [legacy; 2] });
            let thread = format!("default stream of thread {}", other.number());
            assert_eq!((legacy.to_string(), others.to_string()), ("default stream".into(), thread));
        }
        let [handle, same] = named(4096, true);
        assert!(handle == same && handle.to_string() == "stream 0x1000");
    }
}
