//! External semaphores, as a test sees them in place of a graphics API.

use std::io::{Error, Result};
#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::abi::*;
use crate::processes::semaphore::{Descriptor, Semaphore, SemaphoreKind};

/// A semaphore for tests, which a software driver can import like a semaphore of Vulkan.
///
/// Pass its `descriptor` to `cuImportExternalSemaphore` of any software driver, in this process or
/// in another process that received the descriptor. A binary semaphore has the type
/// `CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD`, a timeline
/// `CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD`. The descriptor belongs to a special
/// memory file: a software driver imports no other descriptors, and no other driver imports these.
/// Linux only.
///
/// The driver checks a waiting stream at least every 2 ms. The wait blocks no other stream. The
/// order checker orders a wait after the signals of the same driver that can have ended the wait.
/// It does not see the signals of other drivers and processes, and reports nothing about them.
///
/// # Misuse
///
/// The driver reports these uses, which NVIDIA or Vulkan forbid, as
/// [`OnMisuse`](crate::OnMisuse) defines:
///
/// * `cuDestroyExternalSemaphore` while a stream has a pending signal or a pending wait of that
///   import.
/// * A launch of a graph with a signal or a wait of a destroyed import. A graph that is never
///   launched again may outlive the import.
/// * A signal of a timeline whose value is not above the current value when the stream executes the
///   signal. The value stays as it is.
/// * A signal of a binary semaphore that is already signalled when the stream executes the signal:
///   no wait has consumed the earlier signal.
///
/// In the last two cases the call that submitted the signal cannot return the error. The report
/// names that call, and the stream goes on. The driver does not see misuse by other drivers and
/// processes, because it sees only the current value.
///
/// # Example
///
/// ```
/// # #[cfg(target_os = "linux")] {
/// use cuda_events::external::TimelineSemaphore;
/// use cuda_events::{Context, Device, Stream, StreamOptions};
/// use cuda_soft_driver::{ExternalSemaphore, SemaphoreKind, SoftDriver};
///
/// let soft = SoftDriver::new();
/// let context = Context::primary(Device::new(soft.driver(), 0)?)?;
/// let stream = Stream::new(&context, StreamOptions::new())?;
/// let theirs = ExternalSemaphore::new(SemaphoreKind::Timeline).expect("Linux has it");
/// let descriptor = theirs.descriptor().expect("a descriptor");
/// let device = context.device().uuid()?;
/// // SAFETY: the descriptor is that of a timeline, and no other code has it.
/// let ours = unsafe { TimelineSemaphore::import_fd(&context, descriptor, device) }?;
///
/// stream.wait_external_semaphore(&ours, 1)?;
/// stream.signal_external(&ours, 2)?;
/// assert!(stream.query()?.is_pending());
/// theirs.signal(1);
/// stream.synchronize()?;
/// assert_eq!(theirs.value(), 2);
/// # }
/// # Ok::<(), cuda_events::Error>(())
/// ```
#[derive(Debug)]
pub struct ExternalSemaphore {
    semaphore: Arc<Semaphore>,
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "there is none"))]
    descriptor: Descriptor,
}

impl ExternalSemaphore {
    /// Creates a semaphore with value 0, or not signalled.
    ///
    /// # Errors
    ///
    /// The system's error. On systems other than Linux, an error of the kind `Unsupported`.
    pub fn new(kind: SemaphoreKind) -> Result<Self> {
        match Semaphore::create(kind) {
            Some((semaphore, descriptor)) => Ok(Self { semaphore, descriptor }),
            None if cfg!(target_os = "linux") => Err(Error::last_os_error()),
            None => Err(Error::from(std::io::ErrorKind::Unsupported)),
        }
    }

    /// Creates the semaphore of a descriptor that came from another process.
    ///
    /// # Errors
    ///
    /// If the descriptor is not the descriptor of an `ExternalSemaphore`.
    #[cfg(target_os = "linux")]
    pub fn from_descriptor(descriptor: OwnedFd) -> Result<Self> {
        use std::os::fd::AsRawFd as _;

        match Semaphore::open(descriptor.as_raw_fd()) {
            Some(semaphore) => Ok(Self { semaphore, descriptor }),
            None => Err(Error::from(std::io::ErrorKind::InvalidInput)),
        }
    }

    /// Duplicates the descriptor. An import takes the duplicate, or you send it to another process.
    ///
    /// # Errors
    ///
    /// The error of the system, which could not duplicate it.
    #[cfg(target_os = "linux")]
    pub fn descriptor(&self) -> Result<OwnedFd> {
        self.descriptor.try_clone()
    }

    /// The kind of the semaphore.
    pub fn kind(&self) -> SemaphoreKind {
        self.semaphore.kind
    }

    /// The current value. A binary semaphore has 1 while it is signalled and no wait has consumed
    /// the signal, and 0 otherwise.
    pub fn value(&self) -> u64 {
        self.semaphore.value()
    }

    /// Signals this value, as a graphics queue would. A binary semaphore ignores the value.
    ///
    /// # Panics
    ///
    /// If a graphics API forbids this signal: `value` is not above the current value of a timeline,
    /// or a binary semaphore is signalled and no wait has consumed the signal. The semaphore stays
    /// as it is.
    #[track_caller]
    pub fn signal(&self, value: u64) {
        if let Err(what) = self.semaphore.signal(value) {
            panic!("{what}: a graphics API forbids this");
        }
    }
}

/// The exported form of a new one: its descriptor, or -1.
#[doc(hidden)]
pub fn external_semaphore_shared_library(timeline: bool) -> i32 {
    let kind = if timeline { SemaphoreKind::Timeline } else { SemaphoreKind::Binary };
    match Semaphore::create(kind) {
        #[cfg(target_os = "linux")]
        Some((_, descriptor)) => std::os::fd::IntoRawFd::into_raw_fd(descriptor),
        #[cfg(not(target_os = "linux"))]
        Some((_, descriptor)) => match descriptor {},
        None => -1,
    }
}

/// The exported form of a signal.
#[doc(hidden)]
pub fn signal_external_semaphore_shared_library(descriptor: i32, value: u64) -> CUresult {
    match Semaphore::open(descriptor) {
        Some(semaphore) if semaphore.signal(value).is_ok() => SUCCESS,
        _ => INVALID_VALUE,
    }
}
