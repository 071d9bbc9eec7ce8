//! Where an exported object comes from.

use crate::context::Context;
use crate::device::Uuid;
use crate::driver::process::Identity;
use crate::error::Result;

/// The device and the process of an exported object, which an importer checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Origin {
    pub(crate) pid: u32,
    pub(crate) device: Uuid,
    pub(crate) process: Identity,
}

impl Origin {
    /// The origin of this process's objects in a context.
    pub(crate) fn of(context: &Context) -> Result<Self> {
        let (device, process) = context.device_and_process()?;
        Ok(Self { pid: std::process::id(), device, process })
    }
}
