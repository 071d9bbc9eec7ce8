//! CUDA versions in the driver's form.

use core::fmt;

use super::padded::padded;

/// A CUDA version in the driver's own form: `1000 * major + 10 * minor`, so 12.8 is 12080.
///
/// Versions compare by major, then minor. `Display` and `Debug` print `12.8`.
///
/// ```
/// use cuda_events::Version;
///
/// assert!(Version::new(12, 8) < Version::new(13, 0));
/// let version = Version::from_raw(12080);
/// assert_eq!(version.to_string(), "12.8");
/// assert_eq!((version.major(), version.minor(), version.as_raw()), (12, 8, 12080));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Version(u32);

impl Version {
    /// Makes the version `major.minor`, or the largest possible one if the numbers are too large.
    pub const fn new(major: u32, minor: u32) -> Self {
        Self(major.saturating_mul(1000).saturating_add(minor.saturating_mul(10)))
    }

    /// Makes a version from the driver's number, such as 12080.
    pub const fn from_raw(raw: u32) -> Self {
        Self(raw)
    }

    /// Returns the driver's number, such as 12080.
    pub const fn as_raw(self) -> u32 {
        self.0
    }

    /// Returns the major version: 12 of 12.8.
    pub const fn major(self) -> u32 {
        self.0 / 1000
    }

    /// Returns the minor version: 8 of 12.8.
    pub const fn minor(self) -> u32 {
        self.0 % 1000 / 10
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        padded(f, format_args!("{}.{}", self.major(), self.minor()))
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
