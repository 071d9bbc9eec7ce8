//! A latch that holds a stream, and waits with a limit.

use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use cuda_events::{Error, Event, StreamRef};

use crate::report::Failure;

/// The tour's work takes much less. Work that takes longer will never end.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// Waits for the event for at most [`TIMEOUT`].
pub(crate) fn finish(event: &Event) -> Result<(), Failure> {
    if event.synchronize_timeout(TIMEOUT)?.is_done() {
        Ok(())
    } else {
        Err(Failure::Runtime(format!(
            "the work on the device was not done after {} s",
            TIMEOUT.as_secs()
        )))
    }
}

/// Holds a stream: later work in it does not run before the latch is released or dropped.
///
/// In a function that creates a latch, declare it after the buffers: their drop waits for the work
/// that the latch holds.
pub(crate) struct Latch(#[expect(dead_code, reason = "dropping it releases the work")] Sender<()>);

impl Latch {
    pub(crate) fn hold(stream: &StreamRef) -> Result<Self, Error> {
        let (release, released) = channel::<()>();
        // Nothing is ever sent: the wait ends when the sender is dropped.
        stream.launch_host_function(move || {
            let _ = released.recv();
        })?;
        Ok(Self(release))
    }

    pub(crate) fn release(self) {}
}
