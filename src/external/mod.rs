//! Semaphores of other APIs: a stream and a Vulkan queue can wait for each other.
//!
//! The other API creates a semaphore and exports it as a file descriptor or a handle.
//! [`TimelineSemaphore`] and [`BinarySemaphore`] import it into CUDA, with `import_fd` or on
//! Windows with `import_win32`. Streams then signal it and wait for it, as queues of the other API
//! do:
//!
//! | | signal | wait |
//! | --- | --- | --- |
//! | a [timeline](TimelineSemaphore) | [`signal_external`](StreamRef::signal_external) | [`wait_external_semaphore`](StreamRef::wait_external_semaphore) |
//! | a [binary semaphore](BinarySemaphore) | [`signal_external_binary`](StreamRef::signal_external_binary) | [`wait_external_binary`](StreamRef::wait_external_binary) |
//! | several at once | [`signal_externals`](StreamRef::signal_externals) | [`wait_externals`](StreamRef::wait_externals) |
//!
//! A timeline semaphore has a value; a binary semaphore has none. They are two types, so a value
//! for a binary semaphore does not compile.
//!
//! ```
//! # #[cfg(target_os = "linux")] {
//! use cuda_events::external::TimelineSemaphore;
//! use cuda_events::{Context, Device, Stream, StreamOptions};
//!
//! # use cuda_soft_driver::{ExternalSemaphore, SemaphoreKind};
//! # let soft = cuda_soft_driver::SoftDriver::new();
//! # let driver = soft.driver();
//! let context = Context::primary(Device::new(driver, 0)?)?;
//! let stream = Stream::new(&context, StreamOptions::new())?;
//! # let vulkan = ExternalSemaphore::new(SemaphoreKind::Timeline).expect("a semaphore");
//! # let descriptor = vulkan.descriptor().expect("a descriptor");
//! # let device_uuid = context.device().uuid()?;
//! // `descriptor` comes from vkGetSemaphoreFdKHR, `device_uuid` from
//! // VkPhysicalDeviceIDProperties.
//! // SAFETY: the descriptor was exported from a timeline semaphore. The semaphore is dropped
//! // after the stream is done with it.
//! let semaphore = unsafe { TimelineSemaphore::import_fd(&context, descriptor, device_uuid) }?;
//! stream.wait_external_semaphore(&semaphore, 1)?; // the queue signals 1
//! // ... work that uses the queue's results ...
//! stream.signal_external(&semaphore, 2)?; // the queue waits for 2
//! # vulkan.signal(1);
//! stream.synchronize()?;
//! # }
//! # Ok::<(), cuda_events::Error>(())
//! ```
//!
//! These three mistakes do not compile:
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
//! signals or waits for the same value again, but a timeline may be signalled with each value only
//! once.
//!
//! The graph and its executable graphs keep CUDA's import of the semaphore alive: the program may
//! drop its [`TimelineSemaphore`] or [`BinarySemaphore`] at any time. The drop of the last of all
//! these destroys the import. This must not happen while a launch is in progress: see the rules of
//! [timelines](TimelineSemaphore#rules) and of [binary semaphores](BinarySemaphore#rules). As long
//! as a [`Capture`](crate::capture::Capture) of this process is in progress, each signal and each
//! wait makes one more driver call, that of [`capture_info`](StreamRef::capture_info). It shows
//! whether the stream takes part in the capture.
//!
//! If other code than this crate's [`Capture`](crate::capture::Capture) began the capture, no graph
//! keeps the semaphore: it must outlive the captured graph and its executable graphs. If a
//! `Capture` of this process is in progress when the signal or the wait is made, this crate leaks
//! the import and its share of the context.
//!
//! # Memory
//!
//! Memory of other APIs is available in the raw layer only: [`cuImportExternalMemory`],
//! [`cuExternalMemoryGetMappedBuffer`] and [`cuDestroyExternalMemory`] of
//! [`Symbols`](crate::sys::Symbols).

use core::ffi::c_uint;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::mem;
use core::ptr::null_mut;
use std::collections::HashSet;
#[cfg(unix)]
use std::os::fd::{AsRawFd as _, IntoRawFd as _, OwnedFd};
#[cfg(windows)]
use std::os::windows::io::{AsRawHandle as _, BorrowedHandle};
use std::sync::Arc;

use crate::Version;
use crate::capture;
use crate::context::{Context, Owned};
use crate::device::{Device, Uuid};
use crate::driver::call::{Answer, call, entry};
use crate::error::{Error, Result};
use crate::event::{Event, EventFlags};
use crate::graph::kept::Captured;
use crate::stream::StreamRef;
use crate::sync::{AtomicBool, Ordering};
#[cfg(windows)]
use crate::sys::CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_win32_u;
use crate::sys::{
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC, CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_u,
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS, CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS,
    CUexternalSemaphore, CUexternalSemaphoreHandleType, CUresult, Function,
};

#[cfg(doc)]
use crate::sys::calls::*;

/// The first release with handles of this type. An older driver would return a misleading error.
fn since(kind: HandleType) -> Version {
    match kind {
        HandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD
        | HandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_WIN32 => {
            Version::new(11, 2)
        }
        _ => Version::new(10, 0),
    }
}

/// A semaphore of another API, without a value: each wait consumes the one signal before it.
///
/// Create it with `import_fd`, on Windows with `import_win32`. Use it with
/// [`StreamRef::signal_external_binary`] and [`StreamRef::wait_external_binary`]. It is `Send` and
/// `Sync`, and holds a share of its context. Dropping it destroys CUDA's import, unless a graph has
/// [captured](self#captures) it; the semaphore itself lives on in the other API. In a forked child
/// the drop does nothing.
///
/// ```
/// # #[cfg(target_os = "linux")] {
/// use cuda_events::external::BinarySemaphore;
/// use cuda_events::{Context, Device, Stream, StreamOptions};
///
/// # use cuda_soft_driver::{ExternalSemaphore, SemaphoreKind};
/// # let soft = cuda_soft_driver::SoftDriver::new();
/// # let driver = soft.driver();
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
/// * Do not drop or close the semaphore while a stream still has a pending signal of it or a
///   pending wait for it. If a graph has [captured](self#captures) it, this semaphore, the graph
///   and its executable graphs share CUDA's import of it: do not drop the last of these while a
///   launch is in progress. If other code began the capture, the semaphore must outlive that graph
///   and its executable graphs. The driver does not check this.
/// * Each wait must have exactly one signal before it, from either API, and two signals must
///   have a wait between them. A wait without a signal never ends, and the [last
///   drop](Context#dropping-the-last-share) of the context then blocks.
#[derive(PartialEq, Eq, Hash)]
pub struct BinarySemaphore(Arc<Imported>);

/// A semaphore of another API with a 64-bit value that only rises.
///
/// Create it with `import_fd`, on Windows with `import_win32`. Use it with
/// [`StreamRef::signal_external`] and [`StreamRef::wait_external_semaphore`]. It is `Send` and
/// `Sync`, and holds a share of its context. Dropping it destroys CUDA's import, unless a graph has
/// [captured](self#captures) it; the semaphore itself lives on in the other API. In a forked child
/// the drop does nothing.
///
/// A `Timeline` of the crate `cuda-timelines` is different: that crate creates it, and the host can read
/// it.
///
/// ```
/// # #[cfg(target_os = "linux")] {
/// use cuda_events::external::TimelineSemaphore;
/// use cuda_events::{Context, Device, Stream, StreamOptions};
///
/// # use cuda_soft_driver::{ExternalSemaphore, SemaphoreKind};
/// # let soft = cuda_soft_driver::SoftDriver::new();
/// # let driver = soft.driver();
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
/// * Do not drop or close the semaphore while a stream still has a pending signal of it or a
///   pending wait for it. If a graph has [captured](self#captures) it, this semaphore, the graph
///   and its executable graphs share CUDA's import of it: do not drop the last of these while a
///   launch is in progress. If other code began the capture, the semaphore must outlive that graph
///   and its executable graphs. The driver does not check this.
/// * Its value must only rise, in both APIs together, and each awaited value must be signalled
///   eventually. A wait without a signal never ends, and the [last
///   drop](Context#dropping-the-last-share) of the context then blocks.
#[derive(PartialEq, Eq, Hash)]
pub struct TimelineSemaphore(Arc<Imported>);

/// The contents of both types, which graphs share.
struct Imported {
    raw: CUexternalSemaphore,
    context: Context,
    /// Whether the last share destroys the handle. Once false, it stays so. Relaxed accesses are
    /// enough, because the share that writes it is dropped afterwards, and the drop of the last
    /// share happens after the drops of all others.
    owned: AtomicBool,
}

// SAFETY: CUDA's driver API may be called from any thread; the handle is an address that this crate
// never dereferences, and only the flag changes.
#[allow(unsafe_code)]
unsafe impl Send for Imported {}
// SAFETY: as for Send.
#[allow(unsafe_code)]
unsafe impl Sync for Imported {}

/// A semaphore to signal or to wait for: a [value of a timeline](TimelineSemaphore::at) or a
/// [binary semaphore](BinarySemaphore::once).
///
/// [`StreamRef::signal_externals`] has an example.
#[derive(Clone, Copy)]
pub struct SemaphorePoint<'a> {
    semaphore: &'a Arc<Imported>,
    /// `None` for a binary semaphore.
    value: Option<u64>,
}

/// The error of a failed import.
///
/// It returns the descriptor to the caller: the driver takes ownership only on success.
///
/// The operator `?` converts it into an [`Error`] and closes the descriptor.
///
/// ```
/// # #[cfg(unix)] {
/// use cuda_events::external::BinarySemaphore;
/// use cuda_events::{Context, Device, Error};
///
/// # let soft = cuda_soft_driver::SoftDriver::new();
/// # let driver = soft.driver();
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let file = std::fs::File::open("/dev/null").expect("a file");
/// let device_uuid = context.device().uuid()?;
/// // SAFETY: this descriptor is not a semaphore's; the software driver detects that.
/// let refused = unsafe { BinarySemaphore::import_fd(&context, file.into(), device_uuid) };
/// let refused = refused.unwrap_err();
/// assert!(matches!(refused.error(), Error::NotASemaphore { .. } | Error::Driver { .. }));
/// let descriptor = refused.into_handle(); // it still belongs to the caller
///
/// // SAFETY: as above.
/// let refused = unsafe { BinarySemaphore::import_fd(&context, descriptor, device_uuid) };
/// let (error, descriptor) = refused.unwrap_err().into_parts(); // both at once
/// drop(descriptor);
/// println!("{error}");
/// # }
/// # Ok::<(), cuda_events::Error>(())
/// ```
pub struct ImportError<H> {
    error: Error,
    handle: H,
}

impl<H> ImportError<H> {
    /// Returns the reason why the import failed.
    pub fn error(&self) -> &Error {
        &self.error
    }

    /// Returns the descriptor or handle that was not imported.
    pub fn into_handle(self) -> H {
        self.handle
    }

    /// Returns the reason why the import failed, and the descriptor or handle.
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

/// The methods that both types share. `$kind` and `$has` describe the type in `from_raw`.
macro_rules! shared_methods {
    ($kind:literal, $has:literal) => {
        /// Returns the context that the semaphore was imported in.
        pub fn context(&self) -> &Context {
            &self.0.context
        }

        /// Returns the driver's handle, for other bindings. It is valid as long as the semaphore
        /// is.
        pub fn as_raw(&self) -> CUexternalSemaphore {
            self.0.raw
        }

        #[doc = concat!(
            "Takes ownership of ", $kind, " that other code imported in `context`.\n\n",
            "# Safety\n\n",
            "`raw` must be a live external semaphore of `context` ", $has, " value, and no ",
            "other code may destroy it. If a green context was current at its import, `context` ",
            "is the primary context of the device. [The rules of the type](Self#rules) hold."
        )]
        #[allow(unsafe_code)]
        pub unsafe fn from_raw(context: &Context, raw: CUexternalSemaphore) -> Self {
            Self(Imported::new(context, raw))
        }

        /// Gives up ownership of the handle.
        ///
        /// The caller must destroy it with [`cuDestroyExternalSemaphore`], and must keep its
        /// context alive until then. If a graph has [captured](self#captures) it, the handle must
        /// outlive the graph and the executable graphs made of it.
        pub fn into_raw(self) -> CUexternalSemaphore {
            self.0.owned.store(false, Ordering::Relaxed);
            self.0.raw
        }

        /// Destroys CUDA's import of the semaphore, and returns the driver's result.
        ///
        /// If a graph has [captured](self#captures) it, this call only gives up the program's
        /// share, and succeeds.
        ///
        /// Driver calls: [`cuDestroyExternalSemaphore`] with the calls of [`Context::make_current`]
        /// around it.
        ///
        /// # Errors
        ///
        /// Errors of work that was launched earlier; [`Error::ForkedChild`]. After any error, do
        /// not use the handle again.
        #[doc(alias = "cuDestroyExternalSemaphore")]
        pub fn close(self) -> Result<()> {
            Arc::into_inner(self.0).map_or(Ok(()), Imported::close)
        }
    };
}

impl BinarySemaphore {
    /// Imports a binary semaphore of another API, such as a Vulkan semaphore that was exported as
    /// `VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT`.
    ///
    /// On success the driver owns the descriptor; on failure the [`ImportError`] returns it. Each
    /// import needs its own descriptor. `device_uuid` is
    /// `VkPhysicalDeviceIDProperties::deviceUUID`, which equals [`Device::uuid`] of the same GPU.
    ///
    /// Driver calls: one for the device's UUID, and [`cuImportExternalSemaphore`] with the calls of
    /// [`Context::make_current`] around it. The drop calls [`cuDestroyExternalSemaphore`] in the
    /// same way. The [type](Self) has an example.
    ///
    /// # Errors
    ///
    /// * [`Error::SemaphoreOfOtherDevice`] if `device_uuid` names another device than the
    ///   context's.
    /// * [`Error::ContextMismatch`] for a [green](Context::green) context. One that other code
    ///   created is not detected: the driver then refuses each use.
    /// * [`Error::NotASemaphore`] if the driver cannot import the descriptor as a binary semaphore.
    ///   One of the driver's codes for this is `CUDA_ERROR_UNKNOWN`, but a failed context may
    ///   return the same code. To distinguish the two, the method then creates an event
    ///   ([`cuEventCreate`], [`cuEventDestroy`]). If that fails too, the method returns the error
    ///   of that call.
    /// * [`Error::Unsupported`] if the driver lacks the call; [`Error::ForkedChild`].
    /// * Errors of work that was launched earlier.
    ///
    /// # Safety
    ///
    /// * The descriptor must come from the export of a *binary* semaphore of this type, by an
    ///   NVIDIA driver, on the device that `device_uuid` names. It must not have been imported
    ///   before. The driver refuses most files that are no semaphores, but accepts the descriptor
    ///   of a timeline semaphore; its behaviour with either is not documented.
    /// * [The rules of the type](Self#rules) hold.
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

    /// Imports a Vulkan semaphore that was exported as
    /// `VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32_BIT`, a shared NT handle.
    ///
    /// The caller keeps ownership of the handle and may close it after the import. For other kinds
    /// of handles, and for names, use the raw layer and [`from_raw`](Self::from_raw).
    ///
    /// Driver calls: one for the device's UUID, and [`cuImportExternalSemaphore`] with the calls of
    /// [`Context::make_current`] around it. The drop calls [`cuDestroyExternalSemaphore`] in the
    /// same way.
    ///
    /// # Errors
    ///
    /// * [`Error::SemaphoreOfOtherDevice`] if `device_uuid` names another device than the
    ///   context's.
    /// * [`Error::ContextMismatch`] for a [green](Context::green) context. One that other code
    ///   created is not detected: the driver then refuses each use.
    /// * [`Error::NotASemaphore`] if the driver cannot import the handle as a binary semaphore.
    /// * [`Error::Unsupported`] if the driver lacks the call; [`Error::ForkedChild`].
    ///
    /// # Safety
    ///
    /// * The handle must come from the export of a *binary* semaphore of this type, by an NVIDIA
    ///   driver, on the device that `device_uuid` names. It may be imported more than once. The
    ///   driver refuses most other handles, but its behaviour with them is not documented.
    /// * [The rules of the type](Self#rules) hold.
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

impl TimelineSemaphore {
    /// Imports a timeline semaphore of another API, such as a Vulkan semaphore that was exported as
    /// `VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT`.
    ///
    /// On success the driver owns the descriptor; on failure the [`ImportError`] returns it. Each
    /// import needs its own descriptor. `device_uuid` is
    /// `VkPhysicalDeviceIDProperties::deviceUUID`, which equals [`Device::uuid`] of the same GPU.
    ///
    /// Driver calls: one for the device's UUID, and [`cuImportExternalSemaphore`] with the calls of
    /// [`Context::make_current`] around it. The drop calls [`cuDestroyExternalSemaphore`] in the
    /// same way. CUDA 11.2. The [type](Self) has an example.
    ///
    /// # Errors
    ///
    /// * [`Error::SemaphoreOfOtherDevice`] if `device_uuid` names another device than the
    ///   context's.
    /// * [`Error::ContextMismatch`] for a [green](Context::green) context. One that other code
    ///   created is not detected: the driver then refuses each use.
    /// * [`Error::NotASemaphore`] if the driver cannot import the descriptor as a timeline
    ///   semaphore. [`BinarySemaphore::import_fd`] describes `CUDA_ERROR_UNKNOWN`.
    /// * [`Error::Unsupported`] on a driver before CUDA 11.2; [`Error::ForkedChild`].
    /// * Errors of work that was launched earlier.
    ///
    /// # Safety
    ///
    /// * The descriptor must come from the export of a *timeline* semaphore, by an NVIDIA driver,
    ///   on the device that `device_uuid` names. It must not have been imported before. The driver
    ///   refuses most files that are no semaphores, but accepts the descriptor of a binary
    ///   semaphore; its behaviour with either is not documented.
    /// * [The rules of the type](Self#rules) hold.
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

    /// Imports a Vulkan timeline semaphore that was exported as
    /// `VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32_BIT`, a shared NT handle.
    ///
    /// The caller keeps ownership of the handle and may close it after the import. For other kinds
    /// of handles, and for names, use the raw layer and [`from_raw`](Self::from_raw).
    ///
    /// Driver calls: one for the device's UUID, and [`cuImportExternalSemaphore`] with the calls of
    /// [`Context::make_current`] around it. The drop calls [`cuDestroyExternalSemaphore`] in the
    /// same way. CUDA 11.2.
    ///
    /// # Errors
    ///
    /// * [`Error::SemaphoreOfOtherDevice`] if `device_uuid` names another device than the
    ///   context's.
    /// * [`Error::ContextMismatch`] for a [green](Context::green) context. One that other code
    ///   created is not detected: the driver then refuses each use.
    /// * [`Error::NotASemaphore`] if the driver cannot import the handle as a timeline semaphore.
    /// * [`Error::Unsupported`] on a driver before CUDA 11.2; [`Error::ForkedChild`].
    ///
    /// # Safety
    ///
    /// * The handle must come from the export of a *timeline* semaphore of this type, by an NVIDIA
    ///   driver, on the device that `device_uuid` names. It may be imported more than once. The
    ///   driver refuses most other handles, but its behaviour with them is not documented.
    /// * [The rules of the type](Self#rules) hold.
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
    /// It works as [`import_win32`](Self::import_win32), but Direct3D names a device by its LUID.
    /// `device_luid` is the `LUID` that `ID3D12Device::GetAdapterLuid` returns: `LowPart` and then
    /// `HighPart`, each in little-endian order.
    ///
    /// Driver calls: one for the device's LUID ([`cuDeviceGetLuid`]), and
    /// [`cuImportExternalSemaphore`] with the calls of [`Context::make_current`] around it. The
    /// drop calls [`cuDestroyExternalSemaphore`] in the same way.
    ///
    /// # Errors
    ///
    /// * [`Error::SemaphoreOfOtherDevice`] if `device_luid` names another device than the
    ///   context's. The driver returns an error for a device without a LUID, which Direct3D cannot
    ///   use either.
    /// * [`Error::ContextMismatch`] for a [green](Context::green) context. One that other code
    ///   created is not detected: the driver then refuses each use.
    /// * [`Error::NotASemaphore`] if the driver cannot import the handle as a fence. After
    ///   `CUDA_ERROR_UNKNOWN` this method creates an event, to tell this from a failed context.
    /// * [`Error::Unsupported`] if the driver lacks the call.
    /// * Errors of work that was launched earlier.
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

/// Whether a device is the one that the semaphore belongs to.
fn has_uuid(uuid: Uuid) -> impl Fn(Device) -> Result<bool> {
    move |device| Ok(device.uuid()? == uuid)
}

/// The name of a device in Windows.
#[cfg(windows)]
#[allow(unsafe_code)]
fn luid(device: Device) -> Result<[u8; 8]> {
    let (driver, raw) = (device.driver(), device.as_raw());
    let (mut luid, mut nodes) = ([0; 8], 0);
    // SAFETY: places for the eight bytes and for the mask of nodes.
    unsafe { call!(driver, cuDeviceGetLuid?(luid.as_mut_ptr(), &mut nodes, raw)) }?;
    Ok(luid)
}

/// Checks that a semaphore belongs to the context's device.
fn check_device(
    context: &Context,
    is_its: impl Fn(Device) -> Result<bool>,
    function: Function,
) -> Result<()> {
    let device = context.device();
    if is_its(device)? { Ok(()) } else { Err(other_device(device, is_its, function)) }
}

#[cold]
fn other_device(
    device: Device,
    is_its: impl Fn(Device) -> Result<bool>,
    function: Function,
) -> Error {
    let ordinal = |device: Device| u16::try_from(device.ordinal()).unwrap_or(u16::MAX);
    let visible = Device::all(device.driver()).ok();
    let semaphore = visible.and_then(|mut all| all.find(|device| is_its(*device) == Ok(true)));
    Error::SemaphoreOfOtherDevice {
        function,
        semaphore: semaphore.map(ordinal),
        context: ordinal(device),
    }
}

/// Translates the driver's several refusals of a handle that is not such a semaphore.
#[cold]
fn import_error(context: &Context, answer: Answer) -> Error {
    let Answer { function, code } = answer;
    // Also the error of a context that failed with this code. In such a context nothing can be
    // created, so another creation tells. It does not wait, and disturbs no capture.
    if code == CUresult::CUDA_ERROR_UNKNOWN
        && let Err(error) = Event::new(context, EventFlags::empty())
    {
        return error;
    }
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
    fn new(context: &Context, raw: CUexternalSemaphore) -> Arc<Self> {
        Arc::new(Self { raw, context: context.clone(), owned: AtomicBool::new(true) })
    }

    /// # Safety
    ///
    /// The handle must be of that type, on the context's device.
    unsafe fn import(
        context: &Context,
        kind: HandleType,
        handle: Option<CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_u>,
        is_its_device: impl Fn(Device) -> Result<bool>,
    ) -> Result<Arc<Self>> {
        let driver = context.driver();
        let import = entry!(driver, cuImportExternalSemaphore?)?;
        let function = import.function;
        driver.check(driver, function)?;
        let (since, driver) = (since(kind), driver.version());
        if driver < since {
            return Err(Error::Unsupported { function, since, driver });
        }
        let Some(handle) = handle else {
            return Err(Error::NotASemaphore { function, code: None });
        };
        check_device(context, is_its_device, function)?;
        // The driver would import it into the primary context.
        if matches!(context.owned(), Owned::Green(_)) {
            return Err(mismatch(context, context, function));
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
            Ok(Self::new(context, raw))
        } else {
            Err(import_error(context, answer))
        }
    }

    /// # Safety
    ///
    /// The descriptor must be of that type, on the context's device.
    #[cfg(unix)]
    unsafe fn import_fd(
        context: &Context,
        fd: OwnedFd,
        device_uuid: Uuid,
        kind: HandleType,
    ) -> Result<Arc<Self>, ImportError<OwnedFd>> {
        let handle = CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_u { fd: fd.as_raw_fd() };
        // SAFETY: as the caller says.
        match unsafe { Self::import(context, kind, Some(handle), has_uuid(device_uuid)) } {
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
    /// The handle must be of that type, on the context's device.
    #[cfg(windows)]
    unsafe fn import_win32(
        context: &Context,
        handle: BorrowedHandle<'_>,
        is_its_device: impl Fn(Device) -> Result<bool>,
        kind: HandleType,
    ) -> Result<Arc<Self>> {
        let handle = handle.as_raw_handle();
        // NULL stands for no handle, and the other one for this process.
        let is_one = !handle.is_null() && handle.addr() != usize::MAX;
        let win32 = CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_win32_u { handle, name: null_mut() };
        let handle = is_one.then_some(CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_u { win32 });
        // SAFETY: as the caller says.
        unsafe { Self::import(context, kind, handle, is_its_device) }
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

    fn close(mut self) -> Result<()> {
        self.destroy_owned()
    }

    fn destroy_owned(&mut self) -> Result<()> {
        // The first call destroys it, so that a drop after `close` does not.
        if mem::replace(self.owned.get_mut(), false) { self.destroy() } else { Ok(()) }
    }
}

impl Drop for Imported {
    fn drop(&mut self) {
        // An error cannot be handled here: the driver may be shutting down with the process, or
        // failed work may have broken the context.
        let _ = self.destroy_owned();
    }
}

/// The number of points that one call takes without an allocation.
const FEW: usize = 8;

/// Calls `give` with the handles of the points, their parameters and their number. With no points
/// it does not call it.
#[inline]
fn with_points<P: Copy + Default>(
    points: &[SemaphorePoint<'_>],
    params: impl Fn(Option<u64>) -> P,
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

/// Whether one binary semaphore is there twice.
fn is_binary_twice(points: &[SemaphorePoint<'_>]) -> bool {
    let binary = || points.iter().filter(|point| point.value.is_none());
    let mut raws = binary().map(|point| point.semaphore.raw);
    if points.len() > FEW {
        let mut known = HashSet::with_capacity(points.len());
        return raws.any(|raw| !known.insert(raw));
    }
    while let Some(raw) = raws.next() {
        if raws.clone().any(|other| other == raw) {
            return true;
        }
    }
    false
}

fn signal_params(value: Option<u64>) -> CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS {
    let mut params = CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS::default();
    // The driver ignores the value of a binary semaphore.
    params.params.fence.value = value.unwrap_or(0);
    params
}

fn wait_params(value: Option<u64>) -> CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS {
    let mut params = CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS::default();
    // The driver ignores the value of a binary semaphore.
    params.params.fence.value = value.unwrap_or(0);
    params
}

/// Signals of semaphores of other APIs, and waits for them. The stream and the semaphore must
/// belong to one context. Streams of a [green](crate::Context::green) context cannot use
/// semaphores: use a stream of the primary context, and order it and the green context's stream
/// with events.
#[allow(unsafe_code)]
impl StreamRef {
    /// Sets the semaphore to this value after all work that is in the stream now.
    ///
    /// A waiter for the value, in either API, sees the writes of that work.
    ///
    /// One driver call: [`cuSignalExternalSemaphoresAsync`]. One more while a
    /// [capture](crate::external#captures) is in progress. [`TimelineSemaphore`] has an example.
    ///
    /// # Errors
    ///
    /// * [`Error::ContextMismatch`] if the semaphore was imported in another context.
    /// * [`Error::DriverMismatch`] if it belongs to another driver library.
    /// * [`Error::Unsupported`] if the driver lacks the call; [`Error::ForkedChild`].
    /// * Errors of work that was launched earlier. While a capture is in progress, also those of
    ///   [`capture_info`](Self::capture_info).
    #[doc(alias = "cuSignalExternalSemaphoresAsync")]
    #[inline]
    pub fn signal_external(&self, semaphore: &TimelineSemaphore, value: u64) -> Result<()> {
        self.signal_externals(&[semaphore.at(value)])
    }

    /// Makes all later work in this stream wait until the semaphore has this value or a higher one.
    ///
    /// The calling thread does not wait. The signal may be submitted later.
    ///
    /// One driver call: [`cuWaitExternalSemaphoresAsync`]. One more while a
    /// [capture](crate::external#captures) is in progress. [`TimelineSemaphore`] has an example.
    ///
    /// # Errors
    ///
    /// Those of [`signal_external`](Self::signal_external).
    #[doc(alias = "cuWaitExternalSemaphoresAsync")]
    #[inline]
    pub fn wait_external_semaphore(&self, semaphore: &TimelineSemaphore, value: u64) -> Result<()> {
        self.wait_externals(&[semaphore.at(value)])
    }

    /// Signals the semaphore for one wait, after all work that is in the stream now.
    ///
    /// One driver call: [`cuSignalExternalSemaphoresAsync`]. One more while a
    /// [capture](crate::external#captures) is in progress. [`BinarySemaphore`] has an example.
    ///
    /// # Errors
    ///
    /// Those of [`signal_external`](Self::signal_external).
    #[doc(alias = "cuSignalExternalSemaphoresAsync")]
    #[inline]
    pub fn signal_external_binary(&self, semaphore: &BinarySemaphore) -> Result<()> {
        self.signal_externals(&[semaphore.once()])
    }

    /// Makes all later work in this stream wait until the semaphore is signalled, and consumes that
    /// signal.
    ///
    /// The calling thread does not wait. Vulkan requires the signal of a binary semaphore to be
    /// submitted before the wait.
    ///
    /// One driver call: [`cuWaitExternalSemaphoresAsync`]. One more while a
    /// [capture](crate::external#captures) is in progress. [`BinarySemaphore`] has an example.
    ///
    /// # Errors
    ///
    /// Those of [`signal_external`](Self::signal_external).
    #[doc(alias = "cuWaitExternalSemaphoresAsync")]
    #[inline]
    pub fn wait_external_binary(&self, semaphore: &BinarySemaphore) -> Result<()> {
        self.wait_externals(&[semaphore.once()])
    }

    /// Signals several semaphores after all work that is in the stream now.
    ///
    /// Up to eight points need no allocation. One driver call, [`cuSignalExternalSemaphoresAsync`],
    /// and one more while a [capture](crate::external#captures) is in progress; none if `points` is
    /// empty.
    ///
    /// ```
    /// # #[cfg(target_os = "linux")] {
    /// # use cuda_events::external::{BinarySemaphore, TimelineSemaphore};
    /// use cuda_events::{Context, Device, Stream, StreamOptions};
    ///
    /// # use cuda_soft_driver::{ExternalSemaphore, SemaphoreKind};
    /// # let soft = cuda_soft_driver::SoftDriver::new();
    /// # let driver = soft.driver();
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let stream = Stream::new(&context, StreamOptions::new())?;
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
    /// // `timeline` and `binary` are imported semaphores: see their `import_fd`.
    /// stream.signal_externals(&[timeline.at(3), binary.once()])?;
    /// stream.wait_externals(&[timeline.at(3), binary.once()])?;
    /// stream.synchronize()?;
    /// # }
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`signal_external`](Self::signal_external), and [`Error::NotASemaphore`] if
    /// `points` has one [`BinarySemaphore`] twice: its two signals would have no wait between them.
    /// Nothing is signalled then. This crate compares the imports only, so it does not detect two
    /// imports of one semaphore.
    #[doc(alias = "cuSignalExternalSemaphoresAsync")]
    pub fn signal_externals(&self, points: &[SemaphorePoint<'_>]) -> Result<()> {
        let signal = entry!(self, cuSignalExternalSemaphoresAsync?)?;
        self.check_points(points, signal.function)?;
        self.keeping_points(points, signal.function, || {
            with_points(points, signal_params, |raws, params, count| {
                // SAFETY: both are arrays of so many; the stream is alive as long as `self` is, and
                // the semaphores as long as the points are, and as long as the graph in a capture.
                signal.ask(self, |signal| unsafe { signal(raws, params, count, self.as_raw()) })
            })
        })
    }

    /// Makes all later work in this stream wait for several semaphores.
    ///
    /// Up to eight points need no allocation. [`signal_externals`](Self::signal_externals) has an
    /// example. One driver call, [`cuWaitExternalSemaphoresAsync`], and one more while a
    /// [capture](crate::external#captures) is in progress; none if `points` is empty.
    ///
    /// # Errors
    ///
    /// Those of [`signal_externals`](Self::signal_externals). The stream then waits for none of
    /// them.
    #[doc(alias = "cuWaitExternalSemaphoresAsync")]
    pub fn wait_externals(&self, points: &[SemaphorePoint<'_>]) -> Result<()> {
        let wait = entry!(self, cuWaitExternalSemaphoresAsync?)?;
        self.check_points(points, wait.function)?;
        self.keeping_points(points, wait.function, || {
            with_points(points, wait_params, |raws, params, count| {
                // SAFETY: as in `signal_externals`.
                wait.ask(self, |wait| unsafe { wait(raws, params, count, self.as_raw()) })
            })
        })
    }

    /// Makes a call; if the stream is capturing, the graph keeps the semaphores.
    #[inline]
    fn keeping_points(
        &self,
        points: &[SemaphorePoint<'_>],
        function: Function,
        call: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        if capture::under_way() && !points.is_empty() {
            self.capture_points(points, function, call)
        } else {
            call()
        }
    }

    #[cold]
    fn capture_points(
        &self,
        points: &[SemaphorePoint<'_>],
        function: Function,
        call: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let Some(capture) = self.active_capture()? else { return call() };
        let kept: Vec<_> =
            points.iter().map(|point| Captured::Other(point.semaphore.clone())).collect();
        self.keeping(capture, function, &kept, call)
    }

    /// Checks that this stream may use all of them: to the driver, a handle of another library is
    /// an arbitrary address. It refuses one of another context, with a code that does not say so.
    #[inline]
    fn check_points(&self, points: &[SemaphorePoint<'_>], function: Function) -> Result<()> {
        self.driver().check(self.driver(), function)?;
        points.iter().try_for_each(|point| {
            let own = &point.semaphore.context;
            self.driver().check(own.driver(), function)?;
            if own == self.context() {
                Ok(())
            } else {
                Err(mismatch(own, self.context(), function))
            }
        })?;
        if points.len() > 1 && is_binary_twice(points) {
            return Err(Error::NotASemaphore { function, code: None });
        }
        Ok(())
    }
}

#[cold]
#[inline(never)]
fn mismatch(own: &Context, other: &Context, function: Function) -> Error {
    let devices = [own, other].map(|context| context.device().ordinal());
    Error::context_mismatch(function, None, devices)
}

/// By handle and driver library. The driver may use a handle again after its semaphore is
/// destroyed.
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
        let mut shown = f.debug_struct("SemaphorePoint");
        shown.field("raw", &self.semaphore.raw);
        if let Some(value) = &self.value {
            shown.field("value", value);
        }
        shown.finish()
    }
}

static_assertions::assert_impl_all!(BinarySemaphore: Send, Sync);
static_assertions::assert_impl_all!(TimelineSemaphore: Send, Sync);
static_assertions::assert_not_impl_any!(BinarySemaphore: Clone);
static_assertions::assert_not_impl_any!(TimelineSemaphore: Clone);
