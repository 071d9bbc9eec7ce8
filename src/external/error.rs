//! The error of an import.

use core::fmt;

use crate::error::Error;

/// The error of a failed import.
///
/// It returns the descriptor to the caller, because the driver takes ownership only on success. The
/// operator `?` converts it into an [`Error`] and closes the descriptor.
///
/// ```
/// # #[cfg(unix)] {
/// use cuda_events::external::BinarySemaphore;
/// use cuda_events::{Context, Device, Error};
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
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
    pub(super) error: Error,
    pub(super) handle: H,
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
