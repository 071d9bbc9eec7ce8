//! Semaphores without a value.

use core::fmt;
#[cfg(unix)]
use std::os::fd::OwnedFd;
#[cfg(windows)]
use std::os::windows::io::BorrowedHandle;
use std::sync::Arc;

use crate::context::Context;
#[cfg(any(unix, windows))]
use crate::device::Uuid;
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
#[cfg(unix)]
use crate::external::error::ImportError;
#[cfg(any(unix, windows))]
use crate::external::imported::HandleType;
#[cfg(windows)]
use crate::external::imported::has_uuid;
use crate::external::imported::{Imported, shared_methods};
use crate::external::point::SemaphorePoint;
use crate::sync::Ordering;
use crate::sys::CUexternalSemaphore;

#[cfg(doc)]
use crate::stream::StreamRef;
#[cfg(doc)]
use crate::sys::calls::*;

/// A semaphore of another API, without a value: each wait consumes the one signal before it.
///
/// Create it with `import_fd`, on Windows with `import_win32`. Use it with
/// [`StreamRef::signal_external_binary`] and [`StreamRef::wait_external_binary`]. It is `Send` and
/// `Sync`, and holds a share of its context. Dropping it destroys CUDA's import, unless a graph has
/// [captured](crate::external#captures) it. The semaphore itself lives on in the other API. In a
/// forked child the drop does nothing.
///
/// ```
/// # #[cfg(target_os = "linux")] {
/// use cuda_events::external::BinarySemaphore;
/// use cuda_events::{Context, Device, Stream, StreamOptions};
///
/// # use cuda_soft_driver::{ExternalSemaphore, SemaphoreKind};
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let stream = Stream::new(&context, StreamOptions::new())?;
/// # let vulkan = ExternalSemaphore::new(SemaphoreKind::Binary).expect("a semaphore");
/// # let descriptor = vulkan.descriptor().expect("a descriptor");
/// # let device_uuid = context.device().uuid()?;
/// // `descriptor` and `device_uuid` come from Vulkan.
/// // SAFETY: the descriptor was exported from a binary semaphore, and each wait has a signal.
/// // The stream is done with the semaphore before it is closed.
/// let semaphore = unsafe { BinarySemaphore::import_fd(&context, descriptor, device_uuid) }?;
/// assert_eq!(semaphore.context(), &context);
/// stream.signal_external_binary(&semaphore)?;
/// stream.wait_external_binary(&semaphore)?; // or a queue of Vulkan waits
/// stream.synchronize()?;
///
/// // Another binding takes the handle, and gives it back.
/// let raw = semaphore.into_raw();
/// // SAFETY: the handle is alive, was imported in this context, and nothing else owns it.
/// let semaphore = unsafe { BinarySemaphore::from_raw(&context, raw) };
/// assert_eq!(semaphore.as_raw(), raw);
/// semaphore.close()?; // a drop would ignore an error
/// # }
/// # Ok::<(), cuda_events::Error>(())
/// ```
///
/// # Rules
///
/// The Safety sections of the constructors require these rules:
///
/// * Do not drop or close the semaphore while a stream has a pending signal of it or a pending wait
///   for it.
/// * If a graph has [captured](crate::external#captures) the semaphore, this value, the graph and
///   its executable graphs share CUDA's import of it. Do not drop the last of these while a launch
///   is in progress. If other code began the capture, the semaphore must outlive the graph and its
///   executable graphs.
/// * Each wait must have exactly one signal before it, from either API, and two signals must have a
///   wait between them. A wait without a signal never ends, and the [last
///   drop](Context#dropping-the-last-share) of the context then blocks.
///
/// The driver checks none of these rules.
#[derive(PartialEq, Eq, Hash)]
pub struct BinarySemaphore(pub(super) Arc<Imported>);

impl BinarySemaphore {
    /// Imports a binary semaphore by a file descriptor: see [imports](crate::external#imports).
    ///
    /// # Errors
    ///
    /// [The errors of imports](crate::external#imports).
    ///
    /// # Safety
    ///
    /// [That of imports](crate::external#safety-of-imports), for a *binary* semaphore.
    #[doc(alias = "cuImportExternalSemaphore")]
    #[doc(alias = "CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD")]
    #[cfg(unix)]
    #[allow(unsafe_code)]
    pub unsafe fn import_fd(
        context: &Context,
        fd: OwnedFd,
        device_uuid: Uuid,
    ) -> Result<Self, ImportError<OwnedFd>> {
        let kind = HandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD;
        // SAFETY: as the caller says.
        unsafe { Imported::import_fd(context, fd, device_uuid, kind) }.map(Self)
    }

    /// Imports a binary semaphore by a shared NT handle: see [imports](crate::external#imports).
    ///
    /// # Errors
    ///
    /// [The errors of imports](crate::external#imports).
    ///
    /// # Safety
    ///
    /// [That of imports](crate::external#safety-of-imports), for a *binary* semaphore.
    #[doc(alias = "CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32")]
    #[cfg(windows)]
    #[allow(unsafe_code)]
    pub unsafe fn import_win32(
        context: &Context,
        handle: BorrowedHandle<'_>,
        device_uuid: Uuid,
    ) -> Result<Self> {
        let kind = HandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32;
        // SAFETY: as the caller says.
        unsafe { Imported::import_win32(context, handle, has_uuid(device_uuid), kind) }.map(Self)
    }

    /// Returns a point for one signal of this semaphore or one wait for it, for
    /// [`StreamRef::signal_externals`] and [`StreamRef::wait_externals`].
    ///
    /// [`StreamRef::signal_externals`] has an example.
    #[inline]
    pub fn once(&self) -> SemaphorePoint<'_> {
        SemaphorePoint { semaphore: &self.0, value: None }
    }

    shared_methods!("a binary semaphore", "without a");
}

impl fmt::Debug for BinarySemaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.show("BinarySemaphore", f)
    }
}
