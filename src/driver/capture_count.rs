//! The number of captures in progress. Waits of streams, which are below captures, ask for it.

use core::sync::atomic::{AtomicUsize, Ordering};

/// The number of captures in progress of this crate, and of
/// [`ForeignCapture`](crate::foundation::ForeignCapture).
static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);

/// Whether an event that this thread has may have been recorded in a capture that has not ended, or
/// a stream that this thread uses may take part in one.
///
/// Why a relaxed load is enough:
///
/// 1. [`add`] counts the capture when the driver has begun it, before an event can be recorded in
///    it.
/// 2. A record in the capture happens after that.
///    [`Capture::begin`](crate::capture::Capture::begin) demands that no two threads use the stream
///    and its events at once, so the recording thread is that of step 1, or synchronized with it.
/// 3. The thread that calls this has the event from the thread that recorded it. So step 1 happens
///    before this load, which sees that count or a later one: 0 only if the capture has ended
///    since.
///
/// For a stream, step 2 is its wait that joins the capture, or its begin: as step 2 says, a
/// thread that uses the stream afterwards is synchronized with that thread.
#[inline(always)]
pub(crate) fn under_way() -> bool {
    UNDER_WAY.load(Ordering::Relaxed) != 0
}

/// Counts a capture that the driver has begun.
pub(crate) fn add() {
    UNDER_WAY.fetch_add(1, Ordering::Relaxed);
}

/// A capture that was counted has ended.
pub(crate) fn subtract() {
    UNDER_WAY.fetch_sub(1, Ordering::Relaxed);
}
