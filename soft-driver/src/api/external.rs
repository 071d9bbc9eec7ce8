//! External semaphores, as the other side of one has it: what stands for a graphics API in tests.

use std::io::{Error, Result};
#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::abi::*;
use crate::model::external::{Descriptor, Semaphore, SemaphoreKind};

/// A semaphore that a software driver can import, as it would be one of Vulkan: the other side of
/// it, for tests.
///
/// Its [descriptor](Self::descriptor) goes into `cuImportExternalSemaphore` of any software driver,
/// in this process or in another one that got the descriptor. A binary one is
/// `CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD`, a timeline
/// `CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD`. It is a file of memory of its own
/// kind: no driver takes any other descriptor, and no other driver takes this one. Linux only.
///
/// A stream that waits for one is looked at now and then: every 2 ms at least. It holds back no
/// other stream. To the order checker a wait is behind the signals of the same driver that can have
/// ended it; of the signals of others it knows nothing, and says nothing.
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
/// // SAFETY: the descriptor is one of a timeline, and nobody else has it.
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
    /// A new one, of value 0 or not signalled.
    ///
    /// # Errors
    ///
    /// What the system answers; where it is not Linux, that it is not supported.
    pub fn new(kind: SemaphoreKind) -> Result<Self> {
        match Semaphore::create(kind) {
            Some((semaphore, descriptor)) => Ok(Self { semaphore, descriptor }),
            None if cfg!(target_os = "linux") => Err(Error::last_os_error()),
            None => Err(Error::from(std::io::ErrorKind::Unsupported)),
        }
    }

    /// The one of a descriptor that came from another process.
    ///
    /// # Errors
    ///
    /// The descriptor is not one of such a semaphore.
    #[cfg(target_os = "linux")]
    pub fn from_descriptor(descriptor: OwnedFd) -> Result<Self> {
        use std::os::fd::AsRawFd as _;

        match Semaphore::open(descriptor.as_raw_fd()) {
            Some(semaphore) => Ok(Self { semaphore, descriptor }),
            None => Err(Error::from(std::io::ErrorKind::InvalidInput)),
        }
    }

    /// Another descriptor of it: for one import, which takes it, or for another process.
    ///
    /// # Errors
    ///
    /// What the system answers.
    #[cfg(target_os = "linux")]
    pub fn descriptor(&self) -> Result<OwnedFd> {
        self.descriptor.try_clone()
    }

    /// Which kind it is.
    pub fn kind(&self) -> SemaphoreKind {
        self.semaphore.kind
    }

    /// Its value now. A binary one has 1 while it is signalled and no wait has taken that, and 0
    /// otherwise.
    pub fn value(&self) -> u64 {
        self.semaphore.value()
    }

    /// Gives it this value, as a graphics queue would. A binary one is signalled, whatever the
    /// value.
    pub fn signal(&self, value: u64) {
        self.semaphore.signal(value);
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
        Some(semaphore) => {
            semaphore.signal(value);
            SUCCESS
        }
        None => INVALID_VALUE,
    }
}
