//! The driver that the tour runs on.

use cuda_events::loader::DRIVER_VARIABLE;
use cuda_events::{Driver, Error};
use cuda_soft_driver::SoftDriver;

use super::options::Choice;
use super::report::Failure;

/// A driver, and why it is no native one.
pub(crate) struct Opened {
    pub(crate) driver: Driver,
    /// The reason why there is no native driver, if none was chosen and none was found.
    pub(crate) no_native: Option<Error>,
    /// Keeps the software driver alive.
    _soft: Option<SoftDriver>,
}

impl Opened {
    /// Opens the chosen driver. Without a choice it opens the native driver, or the software driver
    /// on a machine without one. If a driver named by the option or by the variable cannot be
    /// opened, that is an error.
    pub(crate) fn new(choice: Option<&Choice>) -> Result<Self, Failure> {
        let driver = match choice {
            None => match Driver::load() {
                Err(error) if !is_named() => return Ok(Self::soft(Some(error))),
                found => found?,
            },
            Some(Choice::Soft) => return Ok(Self::soft(None)),
            Some(Choice::Native) => Driver::load()?,
            // SAFETY: whoever starts this program names a driver.
            Some(Choice::Path(path)) => unsafe { Driver::load_from(path) }?,
        };
        Ok(Self { driver, no_native: None, _soft: None })
    }

    fn soft(no_native: Option<Error>) -> Self {
        let soft = SoftDriver::new();
        Self { driver: soft.driver(), no_native, _soft: Some(soft) }
    }
}

fn is_named() -> bool {
    std::env::var_os(DRIVER_VARIABLE).is_some_and(|path| !path.is_empty())
}
