//! Both ends of an interprocess event's life: the exporter keeps it while importers use it, and importers see whether the
//! exporter is still there.

use core::ops::Deref;
use std::sync::Arc;

use crate::error::Result;
use crate::event::Event;
use crate::ipc::IpcEventDescriptor;

/// An interprocess event that is lent to an importer: as long as the lease lives, the event does.
///
/// A descriptor is 64 bytes that look as if they were enough, and are not: once the exporter's event is destroyed, its
/// place goes to the next interprocess event of the context, and what the importer holds means that one, silently. The
/// hand-shake that keeps it from happening:
///
/// 1. The exporter makes a lease for the importer, and sends [`descriptor`](Self::descriptor).
/// 2. The importer opens it ([`Event::from_ipc_descriptor`]), uses it, and waits until its work that depends on the event
///    is done.
/// 3. The importer drops what it opened, and says so.
/// 4. The exporter drops the lease.
///
/// One lease for each importer; the event goes with the last one and with the `Arc` that the exporter itself holds. If an
/// importer dies without a word, its lease can be dropped as soon as the process is gone: nobody is left to be misled.
///
/// ```
/// use std::sync::Arc;
///
/// use cuda_events::{Event, EventFlags, IpcLease};
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

/// The process that exported an event, for the importer to see whether it is still there.
///
/// A record of a process that ended before it completed stays pending for ever. Whoever waits for an imported event can
/// look now and then:
///
/// ```
/// # use std::time::Duration;
/// use cuda_events::{EventRef, ExporterProcess, IpcEventDescriptor};
///
/// /// Whether the work is done; it never will be if the exporter has died before.
/// fn wait(event: &EventRef, exporter: Option<&ExporterProcess>) -> cuda_events::Result<bool> {
///     while event.synchronize_timeout(Duration::from_millis(100))?.is_pending() {
///         // None is one that is gone, or that this process cannot see: not to be waited for without end.
///         if !exporter.is_some_and(ExporterProcess::is_alive) {
///             return Ok(false);
///         }
///     }
///     Ok(true)
/// }
/// # use cuda_events::{Context, Device, Event, EventFlags};
/// # let soft = cuda_soft_driver::SoftDriver::new();
/// # let context = Context::primary(Device::new(soft.driver(), 0)?)?;
/// # let event = Event::new(&context, EventFlags::INTERPROCESS)?;
/// # let descriptor = event.ipc_descriptor()?;
///
/// // Before the descriptor is opened:
/// let exporter = ExporterProcess::of(&descriptor);
/// assert!(wait(&event, exporter.as_ref())?);
/// # Ok::<(), cuda_events::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExporterProcess {
    pid: u32,
    /// When it started, by the system's clock ticks: what tells it from a later process of the same number.
    started: u64,
}

impl ExporterProcess {
    /// The descriptor's exporter, if it is running now.
    ///
    /// None if it is gone, if the descriptor does not say who it was ([`IpcEventDescriptor::from_raw`]), or on a platform
    /// other than Linux. So none is not "alive": wait with a limit then. Ask before opening the descriptor: from then on a
    /// later process that gets the same number is told apart.
    ///
    /// The number is looked up in this process's own pid namespace. If the exporter is in another one, such as another
    /// container, it names no process here, or an unrelated one, whose life then says nothing of the exporter. Nothing
    /// tells the two apart: across pid namespaces do not ask, but wait with a limit.
    pub fn of(descriptor: &IpcEventDescriptor) -> Option<Self> {
        let pid = descriptor.exporter_pid()?;
        let started = start_of(pid)?;
        Some(Self { pid, started })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether it is still running. It reads a line of `/proc`, which takes some microseconds.
    pub fn is_alive(&self) -> bool {
        start_of(self.pid) == Some(self.started)
    }
}

/// When the process of this number started, if it runs.
fn start_of(pid: u32) -> Option<u64> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may hold any bytes; the fields are behind the last one.
    let fields = stat.rsplitn(2, |&byte| byte == b')').next()?;
    let mut fields = core::str::from_utf8(fields).ok()?.split_ascii_whitespace();
    let ended = match fields.next()? {
        // Not waited for yet, and so still listed; or its first thread has ended, and others run.
        "Z" => std::fs::read_dir(format!("/proc/{pid}/task")).ok()?.count() < 2,
        state => state == "X",
    };
    // The start is field 22; the state is field 3.
    if ended { None } else { fields.nth(18)?.parse().ok() }
}
