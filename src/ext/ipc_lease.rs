//! Leases: the exporter keeps an interprocess event while importers use it.

use core::ops::Deref;
use std::sync::Arc;

use crate::{Event, IpcEventDescriptor, Result};

/// An interprocess event that is lent to an importer: as long as the lease lives, the event does.
///
/// A descriptor is 64 bytes that look as if they were enough, and are not: once the exporter's
/// event is destroyed, its place goes to the next interprocess event of the context, and what the
/// importer holds means that one, silently. The hand-shake that keeps it from happening:
///
/// 1. The exporter makes a lease for the importer, and sends [`descriptor`](Self::descriptor).
/// 2. The importer opens it ([`Event::from_ipc_descriptor`]), uses it, and waits until its work
///    that depends on the event is done.
/// 3. The importer drops what it opened, and says so.
/// 4. The exporter drops the lease.
///
/// One lease for each importer; the event goes with the last one and with the `Arc` that the
/// exporter itself holds. If an importer dies without a word, its lease can be dropped as soon as
/// the process is gone: nobody is left to be misled.
///
/// ```
/// use std::sync::Arc;
///
/// use cuda_events::{Event, EventFlags};
/// use cuda_events::ext::IpcLease;
/// # use cuda_events::{Context, Device};
/// # let soft = cuda_soft_driver::SoftDriver::new();
/// # let driver = soft.driver();
/// # let context = Context::primary(Device::new(driver, 0)?)?;
///
/// let event = Arc::new(Event::new(&context, EventFlags::INTERPROCESS)?);
/// let lease = IpcLease::new(Arc::clone(&event))?;
/// let line_for_the_importer = lease.descriptor().to_string();
/// // … the importer has said that it is done.
/// drop(lease);
/// # let _ = line_for_the_importer;
/// # Ok::<(), cuda_events::Error>(())
/// ```
///
/// The compiler warns where a lease is made and dropped at once:
///
/// ```compile_fail
/// #![deny(unused_must_use)]
/// # use cuda_events::ext::IpcLease;
/// # use cuda_events::{Event, Result};
/// # fn lend(event: std::sync::Arc<Event>) -> Result<()> {
/// IpcLease::new(event)?;
/// # Ok(())
/// # }
/// ```
#[must_use = "the event is lent only as long as the lease lives"]
#[derive(Clone, Debug)]
pub struct IpcLease {
    event: Arc<Event>,
    descriptor: IpcEventDescriptor,
}

impl IpcLease {
    /// Lends the event.
    ///
    /// Driver calls: those of [`ipc_descriptor`](crate::EventRef::ipc_descriptor).
    ///
    /// # Errors
    ///
    /// Those of [`ipc_descriptor`](crate::EventRef::ipc_descriptor).
    pub fn new(event: Arc<Event>) -> Result<Self> {
        let descriptor = event.ipc_descriptor()?;
        Ok(Self { event, descriptor })
    }

    /// What to send to the importer.
    pub fn descriptor(&self) -> &IpcEventDescriptor {
        &self.descriptor
    }

    /// The event that is lent.
    pub fn event(&self) -> &Arc<Event> {
        &self.event
    }
}

impl Deref for IpcLease {
    type Target = Event;

    fn deref(&self) -> &Event {
        &self.event
    }
}
