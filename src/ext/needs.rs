//! The parts of the crate beyond its public API that `ext` needs, and the reasons. Nothing else in
//! `ext` uses more.

/// A pool destroys an event that is given back during a capture, and a timeline checks whether its
/// stream captures. They get no notice of captures, and the driver can be asked about one stream
/// only.
pub(super) use crate::capture::under_way as capture_under_way;

/// A graph keeps what its captured waits for points depend on: the context of the page, and the
/// import. `own_capture` and `keeping` of a stream put it there.
pub(super) use crate::graph::kept::{Captured, Prepare};

/// The poller and the locks of the parent are not in a forked child. All that is public says so by
/// an error of a driver call; a drop, and a call that is answered without the driver, need to know
/// it beforehand.
pub(super) use crate::driver::fork::forked;

/// Code with an ordering argument is checked with loom's atomics and locks in place of std's.
pub(super) use crate::sync;

/// The descriptors that forked children must close are in a list without a lock: `add`, `items`.
#[cfg(target_os = "linux")]
pub(super) use crate::list::List;

/// Wakers are the caller's code on this crate's thread.
pub(super) use crate::driver::panics::contain;

/// The poller asks for events that it holds no share of. An `EventRef` would hold one of the
/// context, and dropping the last one can block.
pub(super) use crate::event::query as query_handle;

/// Observers are the caller's code, too, and must not run under a lock. A lock that is held over a
/// driver call is wrapped in this.
pub(super) use crate::driver::observer::deferring_observers;

/// Pooled events and current streams compare, hash and print as the handles that they are. It is
/// written once for all forms.
pub(super) use crate::forms::form_of;

/// The pauses of the poller and of waits for a point are tested in virtual time, with the clock of
/// waits with a timeout.
pub(super) use crate::timeout::{Moment, let_others_run, now, sleep};

/// With a driver that has its own time, waits and futures take part in it.
pub(super) use crate::clock::{TaskWait, is_any_attached};

/// A page of timelines must not keep its context: it is kept for the next one. So it asks whether
/// the context still lives: `upgrade`, `is_held`, `is_same`.
pub(super) use crate::context::WeakContext;

/// Handles of contexts are compared where a stream waits for a point. With two driver libraries in
/// the process two contexts may have the same, and in a forked child none is one.
pub(super) use crate::driver::flag::unusual;

/// Descriptors and handles of timelines travel as those of events do: `seal`, `unseal`, `take`,
/// `take_origin`.
pub(super) use crate::ipc::envelope::{Damage, Envelope, origin_bytes};
pub(super) use crate::ipc::origin::Origin;

/// A handle of a timeline contains its process and device.
pub(super) fn origin(context: &crate::Context) -> crate::Result<Origin> {
    Origin::of(context)
}

/// Whether the maker of such a timeline lives.
pub(super) fn process_of(origin: Origin) -> crate::ipc::ExporterProcess {
    crate::ipc::ExporterProcess::of_origin(Some(origin))
}

/// The maker of a file of timelines is watched where the system gives no lock that ends with it:
/// `find`, `has_ended`.
#[cfg(windows)]
pub(super) use crate::driver::process::Watched;

/// The start time of this process, which distinguishes it from others with the same process id.
#[cfg(windows)]
pub(super) fn own_start() -> u64 {
    crate::driver::process::Identity::own().started
}

/// An error of a lazy event without a driver object names the call that an event would have made.
pub(super) fn elapsed_function(event: &crate::EventRef) -> crate::sys::Function {
    event.elapsed_function()
}

/// The future queries by the bare handle; the event's pool must learn of an error.
pub(super) fn note_failure(event: &crate::EventRef) {
    event.note_failure();
}

/// An event that returned an error through any reference is not reused.
#[inline(always)]
pub(super) fn has_failed(event: &crate::EventRef) -> bool {
    event.has_failed()
}

pub(super) fn downgrade(context: &crate::Context) -> WeakContext {
    context.downgrade()
}

/// Dropping a timeline and waiting for a point must not block where they end a wait between two
/// contexts: of the last share of a context that is none of theirs, this is the rest.
pub(super) fn give_back(context: crate::Context) -> Option<impl Send + 'static> {
    context.give_back()
}

/// Whether a share of the context keeps it alive, so the crate's thread may query with a share of
/// its own. This depends on the context's `owned`.
pub(super) fn keeps(context: &crate::Context) -> bool {
    !matches!(context.owned(), crate::context::Owned::Nothing)
}

/// The device, if the context is its primary context or a green one. The driver registers memory for
/// these in the primary context. For a context that other code owns this is not known.
pub(super) fn registers_for(context: &crate::Context) -> Option<crate::Device> {
    keeps(context)
        .then(|| context.owned())
        .filter(|owned| !matches!(owned, crate::context::Owned::KeptBy(_)))
        .map(|_| context.device())
}

/// A page is registered in a driver library, whichever of its tables a context was made by.
pub(super) fn is_same_library(one: crate::Driver, other: crate::Driver) -> bool {
    one.is_same_library(other)
}

/// Memory is registered with the context current, by driver calls that no method makes; `check`
/// makes an error of the answer.
pub(super) use crate::driver::call::{ask, call, entry};

/// A refusal to restore the context that was current is an error, as in every other method.
pub(super) fn with_current<T>(
    context: &crate::Context,
    f: impl FnOnce(crate::Driver) -> crate::Result<T>,
) -> crate::Result<T> {
    context.with_current(|| f(context.driver()))
}
