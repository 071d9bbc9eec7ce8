//! Leases: the exporter keeps an interprocess event while importers use it.

use core::ops::Deref;
use std::sync::Arc;

use crate::{Event, IpcEventDescriptor, Result};

/// A lease that keeps an interprocess event alive while an importer uses it.
///
/// An importer holds no share of the exporter's event. When the exporter destroys the event, the
/// driver gives its place to the next interprocess event of the context. The importer's handle then
/// names that next event, and no call returns an error. This protocol prevents the mistake:
///
/// 1. The exporter creates a lease for the importer, and sends [`descriptor`](Self::descriptor).
/// 2. The importer opens the event ([`Event::from_ipc_descriptor`]) and uses it. It then waits
///    until its work that depends on the event is done.
/// 3. The importer drops the opened event, and notifies the exporter.
/// 4. The exporter drops the lease.
///
/// Create one lease for each importer. The event is destroyed with the last lease and the
/// exporter's own `Arc`. If an importer ends without notifying the exporter, drop the importer's
/// lease as soon as its process has ended.
///
/// ```
/// use std::sync::Arc;
///
/// use cuda_events::ext::IpcLease;
/// use cuda_events::{Context, Device, Event, EventFlags};
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
///
/// let event = Arc::new(Event::new(&context, EventFlags::INTERPROCESS)?);
/// let lease = IpcLease::new(Arc::clone(&event))?;
/// assert!(Arc::ptr_eq(lease.event(), &event));
/// let line_for_the_importer = lease.descriptor().to_string();
/// // ... the importer reports that it is done ...
/// drop(lease);
/// # let _ = line_for_the_importer;
/// # Ok::<(), cuda_events::Error>(())
/// ```
///
/// The compiler warns if the lease is dropped at once:
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
    /// Lends the event to one importer.
    ///
    /// Driver calls: those of [`ipc_descriptor`](crate::EventRef::ipc_descriptor).
    ///
    /// # Errors
    ///
    /// The errors of [`ipc_descriptor`](crate::EventRef::ipc_descriptor).
    pub fn new(event: Arc<Event>) -> Result<Self> {
        let descriptor = event.ipc_descriptor()?;
        Ok(Self { event, descriptor })
    }

    /// Returns the descriptor to send to the importer.
    pub fn descriptor(&self) -> &IpcEventDescriptor {
        &self.descriptor
    }

    /// Returns the event that this lease keeps alive.
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
