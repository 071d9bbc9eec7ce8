//! What the examples in documentation load, so that they are run and read as on a GPU.

use crate::SoftDriver;

/// Stands in for `cuda_events::Driver` in an example.
pub struct Driver;

impl Driver {
    /// A software driver of its own, which is never freed.
    ///
    /// # Errors
    ///
    /// None: the result is there for the `?` of the examples.
    pub fn load() -> cuda_events::Result<cuda_events::Driver> {
        let soft: &'static SoftDriver = Box::leak(Box::new(SoftDriver::new()));
        Ok(soft.driver())
    }
}
