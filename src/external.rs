//! Semaphores of other APIs: what orders a stream and a queue of Vulkan, say.
//!
//! A graphics API creates a semaphore and exports it as a file descriptor or a handle.
//! [`TimelineSemaphore::import_fd`] and [`BinarySemaphore::import_fd`] make it known to CUDA.
//! Streams signal it and wait for it as queues of the other API do:
//!
//! | | signal | wait |
//! | --- | --- | --- |
//! | a [timeline](TimelineSemaphore) | [`signal_external`](StreamRef::signal_external) | [`wait_external_semaphore`](StreamRef::wait_external_semaphore) |
//! | a [binary semaphore](BinarySemaphore) | [`signal_external_binary`](StreamRef::signal_external_binary) | [`wait_external_binary`](StreamRef::wait_external_binary) |
//! | several at once | [`signal_externals`](StreamRef::signal_externals) | [`wait_externals`](StreamRef::wait_externals) |
//!
//! A timeline semaphore has a value, and a binary one has none: they are two types, so that a value
//! for a binary semaphore does not compile.
//!
//! ```
//! # #[cfg(target_os = "linux")] {
//! use cuda_events::external::TimelineSemaphore;
//! # use cuda_events::{Context, Device, Stream, StreamOptions};
//! # use cuda_soft_driver::{ExternalSemaphore, SemaphoreKind};
//! # let soft = cuda_soft_driver::SoftDriver::new();
//! # let context = Context::primary(Device::new(soft.driver(), 0)?)?;
//! # let stream = Stream::new(&context, StreamOptions::new())?;
//! # let vulkan = ExternalSemaphore::new(SemaphoreKind::Timeline).expect("a semaphore");
//! # let descriptor = vulkan.descriptor().expect("a descriptor");
//! # let device_uuid = context.device().uuid()?;
//! // `descriptor` comes from vkGetSemaphoreFdKHR, `device_uuid` from
//! // VkPhysicalDeviceIDProperties.
//! // SAFETY: the descriptor is one of a timeline semaphore. The semaphore is dropped after the
//! // stream is done with it.
//! let semaphore = unsafe { TimelineSemaphore::import_fd(&context, descriptor, device_uuid) }?;
//! stream.wait_external_semaphore(&semaphore, 1)?; // what the queue signals
//! // ... work that uses what the queue has written ...
//! stream.signal_external(&semaphore, 2)?; // what the queue waits for
//! # vulkan.signal(1);
//! stream.synchronize()?;
//! # }
//! # Ok::<(), cuda_events::Error>(())
//! ```
//!
//! A value for a binary semaphore does not compile, and neither does a timeline without one:
//!
//! ```compile_fail,E0308
//! # use cuda_events::external::BinarySemaphore;
//! # fn f(stream: &cuda_events::StreamRef, binary: &BinarySemaphore) {
//! let _ = stream.signal_external(binary, 1);
//! # }
//! ```
//!
//! ```compile_fail,E0308
//! # use cuda_events::external::TimelineSemaphore;
//! # fn f(stream: &cuda_events::StreamRef, timeline: &TimelineSemaphore) {
//! let _ = stream.signal_external_binary(timeline);
//! # }
//! ```
//!
//! ```compile_fail,E0599
//! # use cuda_events::external::BinarySemaphore;
//! # fn f(binary: &BinarySemaphore) {
//! let _ = binary.at(1);
//! # }
//! ```
//!
//! # Captures
//!
//! In a capturing stream a signal or a wait becomes a node of the graph (CUDA 11.2). Each launch
//! signals, or waits for, the same value again, which a timeline takes once. The semaphore must
//! live as long as the graph and what is made of it, as the Safety section of each import says.
//!
//! # Memory
//!
//! Memory of other APIs is in the raw layer alone: `cuImportExternalMemory`,
//! `cuExternalMemoryGetMappedBuffer` and `cuDestroyExternalMemory` of
//! [`Symbols`](crate::sys::Symbols).

use core::ffi::c_uint;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::mem::ManuallyDrop;
use core::ptr::null_mut;
#[cfg(unix)]
use std::os::fd::{AsRawFd as _, IntoRawFd as _, OwnedFd};
#[cfg(windows)]
use std::os::windows::io::{AsRawHandle as _, BorrowedHandle};

use crate::Version;
use crate::context::Context;
use crate::device::{Device, Uuid};
use crate::driver::call::{Answer, call, entry};
use crate::error::{Error, Result};
use crate::stream::StreamRef;
#[cfg(windows)]
use crate::sys::CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_win32_u;
use crate::sys::{
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC, CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_u,
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS, CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS,
    CUexternalSemaphore, CUexternalSemaphoreHandleType, CUresult, Function,
};

/// The release that knows handles of this type. An older driver would take one for a mistake.
fn since(kind: HandleType) -> Version {
    match kind {
        HandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD
        | HandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_WIN32 => {
            Version::new(11, 2)
        }
        _ => Version::new(10, 0),
    }
}

/// A semaphore of another API that has no value: a wait takes the one signal before it.
///
/// [`import_fd`](Self::import_fd) makes one. [`StreamRef::signal_external_binary`] and
/// [`StreamRef::wait_external_binary`] use it. It is `Send` and `Sync`, holds a share of its
/// context, and dropping it destroys CUDA's hold on the semaphore; the semaphore itself lives on in
/// the other API. In a forked child dropping it does nothing.
#[derive(PartialEq, Eq, Hash)]
pub struct BinarySemaphore(Imported);

/// A semaphore of another API that has a value of 64 bits, which only rises.
///
/// [`import_fd`](Self::import_fd) makes one. [`StreamRef::signal_external`] and
/// [`StreamRef::wait_external_semaphore`] use it. It is `Send` and `Sync`, holds a share of its
/// context, and dropping it destroys CUDA's hold on the semaphore; the semaphore itself lives on in
/// the other API. In a forked child dropping it does nothing.
///
/// It is not a [`Timeline`](crate::ext::Timeline), which CUDA alone makes and the host can read.
#[derive(PartialEq, Eq, Hash)]
pub struct TimelineSemaphore(Imported);

/// What both are.
struct Imported {
    raw: CUexternalSemaphore,
    context: Context,
}

// SAFETY: CUDA's driver API may be called from any thread; the handle is an address that this crate
// never dereferences, and nothing here changes.
#[allow(unsafe_code)]
unsafe impl Send for Imported {}
// SAFETY: as for Send.
#[allow(unsafe_code)]
unsafe impl Sync for Imported {}

/// What one call signals or waits for: a [value of a timeline](TimelineSemaphore::at), or a
/// [binary semaphore](BinarySemaphore::once). Shown at [`StreamRef::signal_externals`].
#[derive(Clone, Copy)]
pub struct SemaphorePoint<'a> {
    semaphore: &'a Imported,
    value: u64,
}

/// Why a semaphore was not imported, with the descriptor: the driver takes that over on success
/// only.
///
/// It becomes an [`Error`] with `?`, which closes the descriptor.
///
/// ```
/// # #[cfg(unix)] {
/// use cuda_events::external::BinarySemaphore;
/// use cuda_events::Error;
/// # use cuda_events::{Context, Device};
/// # let soft = cuda_soft_driver::SoftDriver::new();
/// # let context = Context::primary(Device::new(soft.driver(), 0)?)?;
/// let file = std::fs::File::open("/dev/null").expect("a file");
/// let device_uuid = context.device().uuid()?;
/// // SAFETY: a descriptor that is none of a semaphore; the software driver sees that.
/// let refused = unsafe { BinarySemaphore::import_fd(&context, file.into(), device_uuid) };
/// let (error, descriptor) = refused.unwrap_err().into_parts();
/// assert!(matches!(error, Error::NotASemaphore { .. } | Error::Driver { .. }));
/// drop(descriptor); // it is still the caller's
/// # }
/// # Ok::<(), cuda_events::Error>(())
/// ```
pub struct ImportError<H> {
    error: Error,
    handle: H,
}

impl<H> ImportError<H> {
    /// Why.
    pub fn error(&self) -> &Error {
        &self.error
    }

    /// The descriptor.
    pub fn into_handle(self) -> H {
        self.handle
    }

    /// Both.
    pub fn into_parts(self) -> (Error, H) {
        (self.error, self.handle)
    }
}

impl<H> fmt::Display for ImportError<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.error, f)
    }
}

impl<H> fmt::Debug for ImportError<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.error, f)
    }
}

// No `source`: its text is the error's own.
impl<H> std::error::Error for ImportError<H> {}

impl<H> From<ImportError<H>> for Error {
    fn from(error: ImportError<H>) -> Self {
        error.error
    }
}

type HandleType = CUexternalSemaphoreHandleType;

impl BinarySemaphore {
    /// Makes a binary semaphore of another API known to CUDA: one of Vulkan that was exported as
    /// `VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT`.
    ///
    /// The driver takes the descriptor over; the [`ImportError`] gives it back. Each import needs a
    /// descriptor of its own. `device_uuid` is
    /// `VkPhysicalDeviceIDProperties::deviceUUID`, which equals [`Device::uuid`] of the same GPU.
    ///
    /// Driver calls: one for the device's UUID, and `cuImportExternalSemaphore` between those of
    /// [`Context::make_current`]; `cuDestroyExternalSemaphore` between those when the result is
    /// dropped.
    /// CUDA 10.0.
    ///
    /// # Errors
    ///
    /// [`Error::SemaphoreOfOtherDevice`]; [`Error::NotASemaphore`]; what else the driver returns;
    /// [`Error::Unsupported`]; [`Error::ForkedChild`].
    ///
    /// # Safety
    ///
    /// * The descriptor must come from the export of a *binary* semaphore of this type, by a driver
    ///   of NVIDIA on the device that `device_uuid` names, and must not have been imported before.
    ///   What the driver does with another descriptor is not documented; it refuses most.
    /// * The result must not be dropped or closed while a stream still has a signal of it or a wait
    ///   for it before it, nor while a graph has one that was captured, or an executable graph that
    ///   was made of such a graph: the driver does not guard it.
    /// * Each wait must have one signal before it, of whichever API, and no two signals may come
    ///   without a wait between them. A wait without a signal never ends, and the
    ///   [last drop](Context#dropping-the-last-share) of the context then blocks.
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

    /// As [`import_fd`](Self::import_fd), for a semaphore of Vulkan that was exported as
    /// `VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32_BIT`, a shared NT handle.
    ///
    /// The driver does not take the handle over: it stays the caller's, who may close it
    /// afterwards. Other kinds of handles, and names, can be imported through the raw layer and
    /// [`from_raw`](Self::from_raw).
    ///
    /// Driver calls and errors as [`import_fd`](Self::import_fd).
    ///
    /// # Safety
    ///
    /// As for [`import_fd`](Self::import_fd); the handle may be imported more than once.
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
        unsafe { Imported::import_win32(context, handle, Some(device_uuid), kind) }.map(Self)
    }

    /// The semaphore, for [`StreamRef::signal_externals`] and [`StreamRef::wait_externals`].
    #[inline]
    pub fn once(&self) -> SemaphorePoint<'_> {
        SemaphorePoint { semaphore: &self.0, value: 0 }
    }

    /// The context that it was imported in.
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// The driver's handle, for other bindings. It is valid as long as the semaphore is.
    pub fn as_raw(&self) -> CUexternalSemaphore {
        self.0.raw
    }

    /// Takes ownership of a binary semaphore that other code imported in `context`.
    ///
    /// # Safety
    ///
    /// `raw` must be a live external semaphore of `context` that has no value, and nobody else may
    /// destroy it. What [`import_fd`](Self::import_fd) says of use and of the end holds.
    #[allow(unsafe_code)]
    pub unsafe fn from_raw(context: &Context, raw: CUexternalSemaphore) -> Self {
        Self(Imported { raw, context: context.clone() })
    }

    /// Gives up ownership: the caller destroys the semaphore (`cuDestroyExternalSemaphore`), and
    /// keeps its context alive until then.
    pub fn into_raw(self) -> CUexternalSemaphore {
        self.0.into_raw()
    }

    /// Ends CUDA's hold on the semaphore and returns what the driver returns.
    ///
    /// Driver calls: `cuDestroyExternalSemaphore` between those of [`Context::make_current`].
    ///
    /// # Errors
    ///
    /// What the driver returns; [`Error::ForkedChild`]. Whatever it is, do not use the handle
    /// again.
    #[doc(alias = "cuDestroyExternalSemaphore")]
    pub fn close(self) -> Result<()> {
        self.0.close()
    }
}

impl TimelineSemaphore {
    /// Makes a timeline semaphore of another API known to CUDA: one of Vulkan that was exported as
    /// `VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT`.
    ///
    /// The driver takes the descriptor over; the [`ImportError`] gives it back. Each import needs a
    /// descriptor of its own. `device_uuid` is
    /// `VkPhysicalDeviceIDProperties::deviceUUID`, which equals [`Device::uuid`] of the same GPU.
    ///
    /// Driver calls: one for the device's UUID, and `cuImportExternalSemaphore` between those of
    /// [`Context::make_current`]; `cuDestroyExternalSemaphore` between those when the result is
    /// dropped.
    /// CUDA 11.2.
    ///
    /// # Errors
    ///
    /// [`Error::SemaphoreOfOtherDevice`]; [`Error::NotASemaphore`]; what else the driver returns;
    /// [`Error::Unsupported`]; [`Error::ForkedChild`].
    ///
    /// # Safety
    ///
    /// * The descriptor must come from the export of a *timeline* semaphore, by a driver of NVIDIA
    ///   on the device that `device_uuid` names, and must not have been imported before. What the
    ///   driver does with another descriptor is not documented; it refuses most.
    /// * The result must not be dropped or closed while a stream still has a signal of it or a wait
    ///   for it before it, nor while a graph has one that was captured, or an executable graph that
    ///   was made of such a graph: the driver does not guard it.
    /// * Its value must only rise, whoever signals it, and each value that is waited for must be
    ///   signalled some day. A wait without a signal never ends, and the
    ///   [last drop](Context#dropping-the-last-share) of the context then blocks.
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

    /// As [`import_fd`](Self::import_fd), for a timeline semaphore of Vulkan that was exported as
    /// `VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32_BIT`, a shared NT handle.
    ///
    /// The driver does not take the handle over: it stays the caller's, who may close it
    /// afterwards. Other kinds of handles, and names, can be imported through the raw layer and
    /// [`from_raw`](Self::from_raw).
    ///
    /// Driver calls and errors as [`import_fd`](Self::import_fd).
    ///
    /// # Safety
    ///
    /// As for [`import_fd`](Self::import_fd); the handle may be imported more than once.
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
        unsafe { Imported::import_win32(context, handle, Some(device_uuid), kind) }.map(Self)
    }

    /// As [`import_win32`](Self::import_win32), for a fence of Direct3D 12: a shared NT handle that
    /// `ID3D12Device::CreateSharedHandle` gave. Direct3D names a device by its LUID, so that no
    /// UUID is compared. CUDA 10.0.
    ///
    /// Driver calls: `cuImportExternalSemaphore` between those of [`Context::make_current`];
    /// `cuDestroyExternalSemaphore` between those when the result is dropped. Errors as
    /// [`import_fd`](Self::import_fd).
    ///
    /// # Safety
    ///
    /// The handle must be one of a fence of the context's device. Of its end and its values the
    /// rules of [`import_fd`](Self::import_fd) hold.
    #[doc(alias = "CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D12_FENCE")]
    #[cfg(windows)]
    #[allow(unsafe_code)]
    pub unsafe fn import_d3d12_fence(
        context: &Context,
        handle: BorrowedHandle<'_>,
    ) -> Result<Self> {
        let kind = HandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D12_FENCE;
        // SAFETY: as the caller says.
        unsafe { Imported::import_win32(context, handle, None, kind) }.map(Self)
    }

    /// A value of the semaphore, for [`StreamRef::signal_externals`] and
    /// [`StreamRef::wait_externals`].
    #[inline]
    pub fn at(&self, value: u64) -> SemaphorePoint<'_> {
        SemaphorePoint { semaphore: &self.0, value }
    }

    /// The context that it was imported in.
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// The driver's handle, for other bindings. It is valid as long as the semaphore is.
    pub fn as_raw(&self) -> CUexternalSemaphore {
        self.0.raw
    }

    /// Takes ownership of a timeline semaphore, or of a fence, that other code imported in
    /// `context`.
    ///
    /// # Safety
    ///
    /// `raw` must be a live external semaphore of `context` that has a value, and nobody else may
    /// destroy it. What [`import_fd`](Self::import_fd) says of use and of the end holds.
    #[allow(unsafe_code)]
    pub unsafe fn from_raw(context: &Context, raw: CUexternalSemaphore) -> Self {
        Self(Imported { raw, context: context.clone() })
    }

    /// Gives up ownership: the caller destroys the semaphore (`cuDestroyExternalSemaphore`), and
    /// keeps its context alive until then.
    pub fn into_raw(self) -> CUexternalSemaphore {
        self.0.into_raw()
    }

    /// Ends CUDA's hold on the semaphore and returns what the driver returns.
    ///
    /// Driver calls: `cuDestroyExternalSemaphore` between those of [`Context::make_current`].
    ///
    /// # Errors
    ///
    /// What the driver returns; [`Error::ForkedChild`]. Whatever it is, do not use the handle
    /// again.
    #[doc(alias = "cuDestroyExternalSemaphore")]
    pub fn close(self) -> Result<()> {
        self.0.close()
    }
}

/// Looks whether a semaphore is of the context's device.
fn check_device(context: &Context, device_uuid: Uuid, function: Function) -> Result<()> {
    let device = context.device();
    if device.uuid()? == device_uuid {
        Ok(())
    } else {
        Err(other_device(device, device_uuid, function))
    }
}

#[cold]
fn other_device(device: Device, given: Uuid, function: Function) -> Error {
    let ordinal = |device: Device| u16::try_from(device.ordinal()).unwrap_or(u16::MAX);
    let visible = Device::all(device.driver()).ok();
    let semaphore = visible.and_then(|mut all| all.find(|device| device.uuid() == Ok(given)));
    Error::SemaphoreOfOtherDevice {
        function,
        semaphore: semaphore.map(ordinal),
        context: ordinal(device),
    }
}

/// The driver refuses what is no semaphore of that kind in several ways.
#[cold]
fn import_error(answer: Answer) -> Error {
    let Answer { function, code } = answer;
    match code {
        CUresult::CUDA_ERROR_INVALID_VALUE
        | CUresult::CUDA_ERROR_INVALID_HANDLE
        | CUresult::CUDA_ERROR_OPERATING_SYSTEM
        | CUresult::CUDA_ERROR_UNKNOWN => Error::NotASemaphore { function, code: Some(code) },
        _ => answer.error(),
    }
}

#[allow(unsafe_code)]
impl Imported {
    /// # Safety
    ///
    /// The handle must be one of that type, of the context's device.
    unsafe fn import(
        context: &Context,
        kind: HandleType,
        handle: Option<CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_u>,
        device_uuid: Option<Uuid>,
    ) -> Result<Self> {
        let driver = context.driver();
        let import = entry!(driver, cuImportExternalSemaphore?)?;
        let function = import.function;
        driver.check_fork(function)?;
        let (since, driver) = (since(kind), driver.version());
        if driver < since {
            return Err(Error::Unsupported { function, since, driver });
        }
        let Some(handle) = handle else {
            return Err(Error::NotASemaphore { function, code: None });
        };
        if let Some(device_uuid) = device_uuid {
            check_device(context, device_uuid, function)?;
        }
        // The reserved words are zero.
        let description =
            CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC { type_: kind, handle, ..Default::default() };
        // By the guard, whose end has nobody to tell: once the driver has taken the descriptor
        // over, no error may give that back.
        let _current = context.make_current()?;
        let mut raw = null_mut();
        // SAFETY: a place for the handle, and a description that lives for the call; the context is
        // current, and the caller vouches for the handle.
        let answer =
            import.ask(context.driver(), |import| unsafe { import(&mut raw, &description) })?;
        if answer.is_success() {
            Ok(Self { raw, context: context.clone() })
        } else {
            Err(import_error(answer))
        }
    }

    /// # Safety
    ///
    /// The descriptor must be one of that type, of the context's device.
    #[cfg(unix)]
    unsafe fn import_fd(
        context: &Context,
        fd: OwnedFd,
        device_uuid: Uuid,
        kind: HandleType,
    ) -> Result<Self, ImportError<OwnedFd>> {
        let handle = CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_u { fd: fd.as_raw_fd() };
        // SAFETY: as the caller says.
        match unsafe { Self::import(context, kind, Some(handle), Some(device_uuid)) } {
            Ok(imported) => {
                // It is the driver's now.
                let _ = fd.into_raw_fd();
                Ok(imported)
            }
            Err(error) => Err(ImportError { error, handle: fd }),
        }
    }

    /// # Safety
    ///
    /// The handle must be one of that type, of the context's device.
    #[cfg(windows)]
    unsafe fn import_win32(
        context: &Context,
        handle: BorrowedHandle<'_>,
        device_uuid: Option<Uuid>,
        kind: HandleType,
    ) -> Result<Self> {
        let handle = handle.as_raw_handle();
        // NULL stands for no handle, and the other one for this process.
        let is_one = !handle.is_null() && handle.addr() != usize::MAX;
        let win32 = CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_win32_u { handle, name: null_mut() };
        let handle = is_one.then_some(CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_u { win32 });
        // SAFETY: as the caller says.
        unsafe { Self::import(context, kind, handle, device_uuid) }
    }

    fn destroy(&self) -> Result<()> {
        // Where the context cannot be made current, the driver may know it by the handle.
        let current = self.context.make_current();
        let driver = self.context.driver();
        // SAFETY: the semaphore is owned, and not used afterwards; whoever imported it has promised
        // that nothing refers to it any more.
        let destroyed = unsafe { call!(driver, cuDestroyExternalSemaphore?(self.raw)) };
        current.map(drop).and(destroyed)
    }

    fn close(self) -> Result<()> {
        let this = ManuallyDrop::new(self);
        let destroyed = this.destroy();
        // SAFETY: the field is read once, and `this` is neither used nor dropped afterwards.
        drop(unsafe { core::ptr::read(&this.context) });
        destroyed
    }

    fn into_raw(self) -> CUexternalSemaphore {
        let this = ManuallyDrop::new(self);
        // SAFETY: as in `close`.
        drop(unsafe { core::ptr::read(&this.context) });
        this.raw
    }
}

impl Drop for Imported {
    fn drop(&mut self) {
        // What it answers cannot be acted on here: the driver may be shutting down with the
        // process, or the context broken by failed work.
        let _ = self.destroy();
    }
}

/// How many points one call has without an allocation.
const FEW: usize = 8;

/// Calls `give` with the handles of the points, their parameters, and how many they are; where
/// there are none it is not called.
#[inline]
fn with_points<P: Copy + Default>(
    points: &[SemaphorePoint<'_>],
    params: impl Fn(u64) -> P,
    give: impl FnOnce(*const CUexternalSemaphore, *const P, c_uint) -> Result<Answer>,
) -> Result<()> {
    let answer = match points {
        [] => return Ok(()),
        [point] => give(&point.semaphore.raw, &params(point.value), 1),
        _ if points.len() <= FEW => {
            let (mut raws, mut all) = ([null_mut(); FEW], [P::default(); FEW]);
            for (point, (raw, place)) in points.iter().zip(raws.iter_mut().zip(&mut all)) {
                (*raw, *place) = (point.semaphore.raw, params(point.value));
            }
            give(raws.as_ptr(), all.as_ptr(), points.len() as c_uint)
        }
        _ => {
            let raws: Vec<_> = points.iter().map(|point| point.semaphore.raw).collect();
            let all: Vec<_> = points.iter().map(|point| params(point.value)).collect();
            // More than can be counted do not fit into memory.
            let count = c_uint::try_from(points.len()).unwrap_or(c_uint::MAX);
            give(raws.as_ptr(), all.as_ptr(), count)
        }
    };
    answer?.check()
}

fn signal_params(value: u64) -> CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS {
    let mut params = CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS::default();
    params.params.fence.value = value;
    params
}

fn wait_params(value: u64) -> CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS {
    let mut params = CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS::default();
    params.params.fence.value = value;
    params
}

/// Signals of semaphores of other APIs, and waits for them. The stream and the semaphore must
/// belong to one context, where the primary context of a device and its
/// [green](crate::Context::green) ones count as one. CUDA 10.0.
#[allow(unsafe_code)]
impl StreamRef {
    /// Gives the semaphore this value after all work that is in the stream now. Who waits for the
    /// value, in whatever API, sees what that work has written.
    ///
    /// One driver call: `cuSignalExternalSemaphoresAsync`.
    ///
    /// # Errors
    ///
    /// [`Error::ContextMismatch`]; [`Error::DriverMismatch`]; what the driver returns;
    /// [`Error::Unsupported`]; [`Error::ForkedChild`].
    #[doc(alias = "cuSignalExternalSemaphoresAsync")]
    #[inline]
    pub fn signal_external(&self, semaphore: &TimelineSemaphore, value: u64) -> Result<()> {
        self.signal_externals(&[semaphore.at(value)])
    }

    /// Makes all work that is put into this stream from now on wait until the semaphore has this
    /// value or a higher one; the calling thread does not wait. The signal may be submitted later.
    ///
    /// One driver call: `cuWaitExternalSemaphoresAsync`.
    ///
    /// # Errors
    ///
    /// As [`signal_external`](Self::signal_external).
    #[doc(alias = "cuWaitExternalSemaphoresAsync")]
    #[inline]
    pub fn wait_external_semaphore(&self, semaphore: &TimelineSemaphore, value: u64) -> Result<()> {
        self.wait_externals(&[semaphore.at(value)])
    }

    /// Signals the semaphore after all work that is in the stream now, for one wait.
    ///
    /// One driver call: `cuSignalExternalSemaphoresAsync`.
    ///
    /// # Errors
    ///
    /// As [`signal_external`](Self::signal_external).
    #[doc(alias = "cuSignalExternalSemaphoresAsync")]
    #[inline]
    pub fn signal_external_binary(&self, semaphore: &BinarySemaphore) -> Result<()> {
        self.signal_externals(&[semaphore.once()])
    }

    /// Makes all work that is put into this stream from now on wait until the semaphore is
    /// signalled, and takes that signal; the calling thread does not wait. Vulkan wants the signal
    /// of a binary semaphore to be submitted before the wait.
    ///
    /// One driver call: `cuWaitExternalSemaphoresAsync`.
    ///
    /// # Errors
    ///
    /// As [`signal_external`](Self::signal_external).
    #[doc(alias = "cuWaitExternalSemaphoresAsync")]
    #[inline]
    pub fn wait_external_binary(&self, semaphore: &BinarySemaphore) -> Result<()> {
        self.wait_externals(&[semaphore.once()])
    }

    /// Signals several semaphores after all work that is in the stream now. Up to eight take no
    /// allocation.
    ///
    /// One driver call, `cuSignalExternalSemaphoresAsync`, or none where there are no points.
    ///
    /// # Errors
    ///
    /// As [`signal_external`](Self::signal_external); then nothing is signalled.
    ///
    /// ```
    /// # #[cfg(target_os = "linux")] {
    /// # use cuda_events::external::{BinarySemaphore, TimelineSemaphore};
    /// # use cuda_events::{Context, Device, Stream, StreamOptions};
    /// # use cuda_soft_driver::{ExternalSemaphore, SemaphoreKind};
    /// # let soft = cuda_soft_driver::SoftDriver::new();
    /// # let context = Context::primary(Device::new(soft.driver(), 0)?)?;
    /// # let stream = Stream::new(&context, StreamOptions::new())?;
    /// # let uuid = context.device().uuid()?;
    /// # let made = [SemaphoreKind::Timeline, SemaphoreKind::Binary].map(|kind| {
    /// #     ExternalSemaphore::new(kind).and_then(|made| made.descriptor()).expect("a descriptor")
    /// # });
    /// # let [one, other] = made;
    /// # // SAFETY: descriptors of these kinds, for the one import; the stream is done at the end.
    /// # let (timeline, binary) = unsafe {
    /// #     (TimelineSemaphore::import_fd(&context, one, uuid)?,
    /// #         BinarySemaphore::import_fd(&context, other, uuid)?)
    /// # };
    /// stream.signal_externals(&[timeline.at(3), binary.once()])?;
    /// stream.wait_externals(&[timeline.at(3), binary.once()])?;
    /// stream.synchronize()?;
    /// # }
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    #[doc(alias = "cuSignalExternalSemaphoresAsync")]
    pub fn signal_externals(&self, points: &[SemaphorePoint<'_>]) -> Result<()> {
        let signal = entry!(self, cuSignalExternalSemaphoresAsync?)?;
        self.check_points(points, signal.function)?;
        with_points(points, signal_params, |raws, params, count| {
            // SAFETY: both are arrays of so many; the stream is alive as long as `self` is, and the
            // semaphores as long as the points are.
            signal.ask(self, |signal| unsafe { signal(raws, params, count, self.as_raw()) })
        })
    }

    /// Makes all work that is put into this stream from now on wait for several semaphores. Up to
    /// eight take no allocation. It is shown at [`signal_externals`](Self::signal_externals).
    ///
    /// One driver call, `cuWaitExternalSemaphoresAsync`, or none where there are no points.
    ///
    /// # Errors
    ///
    /// As [`signal_external`](Self::signal_external); then the stream waits for none of them.
    #[doc(alias = "cuWaitExternalSemaphoresAsync")]
    pub fn wait_externals(&self, points: &[SemaphorePoint<'_>]) -> Result<()> {
        let wait = entry!(self, cuWaitExternalSemaphoresAsync?)?;
        self.check_points(points, wait.function)?;
        with_points(points, wait_params, |raws, params, count| {
            // SAFETY: as in `signal_externals`.
            wait.ask(self, |wait| unsafe { wait(raws, params, count, self.as_raw()) })
        })
    }

    /// Looks whether this stream may use all of them: to the driver a handle of another context or
    /// library is an arbitrary address.
    #[inline]
    fn check_points(&self, points: &[SemaphorePoint<'_>], function: Function) -> Result<()> {
        self.driver().check_fork(function)?;
        points.iter().try_for_each(|point| {
            let own = &point.semaphore.context;
            self.driver().check_same(own.driver(), function)?;
            if own.as_raw() == self.context().as_raw() {
                return Ok(());
            }
            check_contexts(own, self.context(), function)
        })
    }
}

#[cold]
#[inline(never)]
fn check_contexts(own: &Context, other: &Context, function: Function) -> Result<()> {
    if own.shares_events(other) {
        return Ok(());
    }
    let devices = [own, other].map(|context| context.device().ordinal());
    Err(Error::context_mismatch(function, None, devices))
}

/// By handle and driver library. A handle may be used again once its semaphore is destroyed.
impl PartialEq for Imported {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw && self.context.driver().is_same_library(other.context.driver())
    }
}

impl Eq for Imported {}

impl Hash for Imported {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.raw.hash(state);
    }
}

impl Imported {
    fn show(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(name).field("raw", &self.raw).field("context", &self.context).finish()
    }
}

impl fmt::Debug for BinarySemaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.show("BinarySemaphore", f)
    }
}

impl fmt::Debug for TimelineSemaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.show("TimelineSemaphore", f)
    }
}

impl fmt::Debug for SemaphorePoint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SemaphorePoint")
            .field("raw", &self.semaphore.raw)
            .field("value", &self.value)
            .finish()
    }
}

static_assertions::assert_impl_all!(BinarySemaphore: Send, Sync);
static_assertions::assert_impl_all!(TimelineSemaphore: Send, Sync);
static_assertions::assert_not_impl_any!(BinarySemaphore: Clone);
static_assertions::assert_not_impl_any!(TimelineSemaphore: Clone);
