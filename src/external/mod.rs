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
//! # use cuda_soft_driver::examples::Driver;
//! let driver = Driver::load()?;
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
//! # Imports
//!
//! * `import_fd` takes a file descriptor, such as that of a Vulkan semaphore that was exported as
//!   `VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT`. On success the driver owns the descriptor;
//!   on failure the [`ImportError`] returns it. Each import needs its own descriptor.
//! * `import_win32` takes a shared NT handle, such as that of a Vulkan semaphore that was exported
//!   as `VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32_BIT`. The caller keeps ownership of the
//!   handle, may import it more than once, and may close it after the import. For other kinds of
//!   handles, and for names, use the raw layer and `from_raw`.
//!
//! `device_uuid` is `VkPhysicalDeviceIDProperties::deviceUUID`. It equals
//! [`Device::uuid`](crate::Device::uuid) of the same GPU.
//!
//! Driver calls: one for the device's UUID, and [`cuImportExternalSemaphore`] with the calls of
//! [`Context::make_current`](crate::Context::make_current) around it. The drop calls
//! [`cuDestroyExternalSemaphore`] in the same way.
//!
//! An import has these errors:
//!
//! * [`Error::SemaphoreOfOtherDevice`] if `device_uuid` names another device than the context's.
//! * [`Error::ContextMismatch`] for a [green](crate::Context::green) context of this crate. For a
//!   green context of other code the import succeeds, and the driver refuses each use of the
//!   semaphore.
//! * [`Error::NotASemaphore`] if the driver cannot import the handle as that kind of semaphore. One
//!   of the driver's codes for this is `CUDA_ERROR_UNKNOWN`, but a failed context may return the
//!   same code. To distinguish the two, the method then creates and destroys an event
//!   ([`cuEventCreate`], [`cuEventDestroy`]). If that fails too, the method returns that error.
//! * [`Error::Unsupported`] if the driver lacks the call; [`Error::ForkedChild`].
//! * Errors of work that was launched earlier.
//!
//! ## Safety of imports
//!
//! * The handle must come from the export of a semaphore of exactly the kind that is imported, by
//!   an NVIDIA driver, on the device that `device_uuid` names. A file descriptor must not have been
//!   imported before. The driver refuses most files and handles that are no semaphores, but accepts
//!   the descriptor of the other kind; its behaviour with either is not documented.
//! * The rules of [timelines](TimelineSemaphore#rules) or of [binary
//!   semaphores](BinarySemaphore#rules) hold.
//!
//! # Captures
//!
//! In a capturing stream a signal or a wait becomes a node of the graph. This needs CUDA 11.2. Each
//! launch signals the same value again, or waits for it again. But a timeline may be signalled with
//! each value only once.
//!
//! The graph and its executable graphs keep CUDA's import of the semaphore alive: the program may
//! drop its [`TimelineSemaphore`] or [`BinarySemaphore`] at any time. The import is destroyed when
//! the last of these is dropped. This must not happen while a launch is in progress: see the rules
//! of [timelines](TimelineSemaphore#rules) and of [binary semaphores](BinarySemaphore#rules).
//!
//! While a [`Capture`](crate::capture::Capture) is in progress anywhere in the process, each signal
//! and each wait makes one more driver call. It is that of
//! [`capture_info`](StreamRef::capture_info), and shows whether the stream takes part in the
//! capture.
//!
//! If the capture was not begun by this crate's [`Capture`](crate::capture::Capture), no graph
//! keeps the semaphore: it must outlive the captured graph and its executable graphs. If a
//! `Capture` is in progress at the same time, this crate leaks the import and its share of the
//! context.
//!
//! # Memory
//!
//! Memory of other APIs is available in the raw layer only: [`cuImportExternalMemory`],
//! [`cuExternalMemoryGetMappedBuffer`] and [`cuDestroyExternalMemory`] of
//! [`Symbols`](crate::sys::Symbols).

mod binary;
mod error;
mod imported;
mod point;
mod stream;
mod timeline;

pub use binary::BinarySemaphore;
pub use error::ImportError;
pub use point::SemaphorePoint;
pub use timeline::TimelineSemaphore;

#[cfg(doc)]
use crate::error::Error;
#[cfg(doc)]
use crate::stream::StreamRef;
#[cfg(doc)]
use crate::sys::calls::*;

static_assertions::assert_impl_all!(BinarySemaphore: Send, Sync);
static_assertions::assert_impl_all!(TimelineSemaphore: Send, Sync);
static_assertions::assert_not_impl_any!(BinarySemaphore: Clone);
static_assertions::assert_not_impl_any!(TimelineSemaphore: Clone);
