//! Semaphores with a value.

use core::fmt;
#[cfg(unix)]
use std::os::fd::OwnedFd;
#[cfg(windows)]
use std::os::windows::io::BorrowedHandle;
use std::sync::Arc;

use crate::context::Context;
#[cfg(windows)]
use crate::device::Device;
#[cfg(any(unix, windows))]
use crate::device::Uuid;
#[cfg(windows)]
use crate::driver::call::call;
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

/// A semaphore of another API with a 64-bit value that only rises.
///
/// Create it with `import_fd`, on Windows with `import_win32`. Use it with
/// [`StreamRef::signal_external`] and [`StreamRef::wait_external_semaphore`]. It is `Send` and
/// `Sync`, and holds a share of its context. Dropping it destroys CUDA's import, unless a graph has
/// [captured](crate::external#captures) it. The semaphore itself lives on in the other API. In a
/// forked child the drop does nothing.
///
/// A `Timeline` of the crate `cuda-timelines` is different: that crate creates it, and the host can
/// read it.
///
/// ```
/// # #[cfg(target_os = "linux")] {
/// use cuda_events::external::TimelineSemaphore;
/// use cuda_events::{Context, Device, Stream, StreamOptions};
///
/// # use cuda_soft_driver::{ExternalSemaphore, SemaphoreKind};
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let stream = Stream::new(&context, StreamOptions::new())?;
/// # let vulkan = ExternalSemaphore::new(SemaphoreKind::Timeline).expect("a semaphore");
/// # let descriptor = vulkan.descriptor().expect("a descriptor");
/// # let device_uuid = context.device().uuid()?;
/// // `descriptor` and `device_uuid` come from Vulkan.
/// // SAFETY: the descriptor was exported from a timeline semaphore, and each wait has a signal.
/// // The stream is done with the semaphore before it is closed.
/// let semaphore = unsafe { TimelineSemaphore::import_fd(&context, descriptor, device_uuid) }?;
/// assert_eq!(semaphore.context(), &context);
/// stream.signal_external(&semaphore, 1)?;
/// stream.wait_external_semaphore(&semaphore, 1)?; // or a queue of Vulkan waits
/// stream.synchronize()?;
///
/// // Another binding takes the handle, and gives it back.
/// let raw = semaphore.into_raw();
/// // SAFETY: the handle is alive, was imported in this context, and nothing else owns it.
/// let semaphore = unsafe { TimelineSemaphore::from_raw(&context, raw) };
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
/// * The value must only rise, in both APIs together.
/// * Each awaited value must be signalled eventually. A wait without a signal never ends, and the
///   [last drop](Context#dropping-the-last-share) of the context then blocks.
///
/// The driver checks none of these rules.
#[derive(PartialEq, Eq, Hash)]
pub struct TimelineSemaphore(pub(super) Arc<Imported>);

impl TimelineSemaphore {
    /// Imports a timeline semaphore by a file descriptor: see [imports](crate::external#imports).
    /// Needs CUDA 11.2.
    ///
    /// # Errors
    ///
    /// [The errors of imports](crate::external#imports).
    ///
    /// # Safety
    ///
    /// [That of imports](crate::external#safety-of-imports), for a *timeline* semaphore.
    #[doc(alias = "cuImportExternalSemaphore")]
    #[doc(alias = "CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD")]
    #[cfg(unix)]
    #[allow(unsafe_code)]
    pub unsafe fn import_fd(
        context: &Context,
        fd: OwnedFd,
        device_uuid: Uuid,
    ) -> Result<Self, ImportError<OwnedFd>> {
        let kind = HandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD;
        // SAFETY: as the caller says.
        unsafe { Imported::import_fd(context, fd, device_uuid, kind) }.map(Self)
    }

    /// Imports a timeline semaphore by a shared NT handle: see [imports](crate::external#imports).
    /// Needs CUDA 11.2.
    ///
    /// # Errors
    ///
    /// [The errors of imports](crate::external#imports).
    ///
    /// # Safety
    ///
    /// [That of imports](crate::external#safety-of-imports), for a *timeline* semaphore.
    #[doc(alias = "CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_WIN32")]
    #[cfg(windows)]
    #[allow(unsafe_code)]
    pub unsafe fn import_win32(
        context: &Context,
        handle: BorrowedHandle<'_>,
        device_uuid: Uuid,
    ) -> Result<Self> {
        let kind = HandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_WIN32;
        // SAFETY: as the caller says.
        unsafe { Imported::import_win32(context, handle, has_uuid(device_uuid), kind) }.map(Self)
    }

    /// Imports a Direct3D 12 fence: a shared NT handle from `ID3D12Device::CreateSharedHandle`.
    ///
    /// It works as [`import_win32`](Self::import_win32), but takes the LUID by which Direct3D names
    /// a device. `device_luid` is the `LUID` that `ID3D12Device::GetAdapterLuid` returns: `LowPart`
    /// and then `HighPart`, each in little-endian order.
    ///
    /// # Errors
    ///
    /// [The errors of imports](crate::external#imports), by the LUID ([`cuDeviceGetLuid`]). The driver
    /// returns an error for a device without a LUID, which Direct3D cannot use either.
    ///
    /// # Safety
    ///
    /// The handle must be that of a fence on the device that `device_luid` names. [The rules of the
    /// type](Self#rules) hold.
    #[doc(alias = "CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D12_FENCE")]
    #[cfg(windows)]
    #[allow(unsafe_code)]
    pub unsafe fn import_d3d12_fence(
        context: &Context,
        handle: BorrowedHandle<'_>,
        device_luid: [u8; 8],
    ) -> Result<Self> {
        let kind = HandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D12_FENCE;
        let is_its = |device| Ok(luid(device)? == device_luid);
        // SAFETY: as the caller says.
        unsafe { Imported::import_win32(context, handle, is_its, kind) }.map(Self)
    }

    /// Returns a point for one value of this semaphore, for [`StreamRef::signal_externals`] and
    /// [`StreamRef::wait_externals`].
    ///
    /// [`StreamRef::signal_externals`] has an example.
    #[inline]
    pub fn at(&self, value: u64) -> SemaphorePoint<'_> {
        SemaphorePoint { semaphore: &self.0, value: Some(value) }
    }

    shared_methods!("a timeline semaphore or a fence", "with a");
}

/// The name of a device in Windows.
#[cfg(windows)]
#[allow(unsafe_code)]
fn luid(device: Device) -> Result<[u8; 8]> {
    let (driver, raw) = (device.driver(), device.as_raw());
    let (mut luid, mut nodes) = ([0; 8], 0);
    // SAFETY: places for the eight bytes and for the mask of nodes.
    unsafe { call!(driver, cuDeviceGetLuid?(luid.as_mut_ptr().cast(), &mut nodes, raw)) }?
        .check()?;
    Ok(luid)
}

impl fmt::Debug for TimelineSemaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.show("TimelineSemaphore", f)
    }
}
