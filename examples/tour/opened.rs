//! The driver that the tour runs on.

use cuda_events::loader::DRIVER_VARIABLE;
use cuda_events::{Driver, Error};
use cuda_soft_driver::SoftDriver;

use super::options::Choice;
use super::report::Failure;

/// A driver, and what led to it.
pub(crate) struct Opened {
    pub(crate) driver: Driver,
    /// What a child process must be told to open the same.
    pub(crate) choice: Choice,
    /// Why there is no native one, where none was chosen and there is none.
    pub(crate) no_native: Option<Error>,
    /// The machine in software lives as long as this.
    _soft: Option<SoftDriver>,
}

impl Opened {
    /// Without a choice the native driver, or the one in software where there is none. A driver
    /// that was named, by the option or by the variable, is opened or is an error: nothing takes
    /// its place.
    pub(crate) fn new(choice: Option<&Choice>) -> Result<Self, Failure> {
        let (driver, choice) = match choice {
            None => match Driver::load() {
                Ok(driver) => (driver, Choice::Native),
                Err(error) if is_named() => return Err(error.into()),
                Err(error) => return Ok(Self::soft(Some(error))),
            },
            Some(Choice::Soft) => return Ok(Self::soft(None)),
            Some(Choice::Native) => (Driver::load()?, Choice::Native),
            Some(Choice::Path(path)) => (Driver::load_from(path)?, Choice::Path(path.clone())),
        };
        Ok(Self { driver, choice, no_native: None, _soft: None })
    }

    fn soft(no_native: Option<Error>) -> Self {
        let soft = SoftDriver::new();
        Self { driver: soft.driver(), choice: Choice::Soft, no_native, _soft: Some(soft) }
    }
}

fn is_named() -> bool {
    std::env::var_os(DRIVER_VARIABLE).is_some_and(|path| !path.is_empty())
}
