//! The result of a query: done or pending.

/// Whether work is done.
///
/// Queries and waits with a limit return `Progress` instead of a `bool`. So the compiler warns if a
/// program ignores the result and relies on work that is still pending.
///
/// ```
/// use std::time::Duration;
///
/// use cuda_events::{Context, Device, Event, EventFlags, Progress, Stream, StreamOptions};
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let stream = Stream::new(&context, StreamOptions::new())?;
/// let event = stream.record_event(EventFlags::empty())?;
/// while event.query()?.is_pending() {
///     // ... other work on the host ...
/// }
/// match event.synchronize_timeout(Duration::from_secs(1))? {
///     Progress::Done => println!("the work is done"),
///     Progress::Pending => println!("the work takes longer than a second"),
/// }
/// assert!(event.query()?.is_done());
/// # Ok::<(), cuda_events::Error>(())
/// ```
///
/// The compiler warns if the value, or the result of one of its methods, is not used:
///
/// ```compile_fail
/// #![deny(unused_must_use)]
/// # use cuda_events::{Event, Result};
/// # fn wait(event: &Event) -> Result<()> {
/// event.query()?;
/// # Ok(())
/// # }
/// ```
///
/// ```compile_fail
/// #![deny(unused_must_use)]
/// # use cuda_events::{Event, Result};
/// # fn wait(event: &Event) -> Result<()> {
/// event.query()?.is_done();
/// # Ok(())
/// # }
/// ```
///
/// ```compile_fail
/// #![deny(unused_must_use)]
/// # use cuda_events::{Event, Result};
/// # fn wait(event: &Event) -> Result<()> {
/// event.query()?.is_pending();
/// # Ok(())
/// # }
/// ```
#[must_use = "the work may still be pending"]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Progress {
    /// The work is done.
    Done,
    /// The work is not done.
    Pending,
}

impl Progress {
    /// Returns whether the work is done.
    #[must_use = "the work may still be pending"]
    #[inline]
    pub const fn is_done(self) -> bool {
        matches!(self, Self::Done)
    }

    /// Returns whether the work is still pending.
    #[must_use = "the work may still be pending"]
    #[inline]
    pub const fn is_pending(self) -> bool {
        matches!(self, Self::Pending)
    }
}
