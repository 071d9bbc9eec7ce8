//! What the courtesy asks of a device.

use super::Device;

impl Device {
    /// All retains of the primary context are taken.
    pub(crate) fn reset(&mut self) {
        self.retains = 0;
    }

    /// The primary context has other flags; the one that has them now, if it is retained.
    pub(crate) fn set_flags(&mut self, flags: u32) -> Option<u32> {
        self.flags = flags;
        self.primary.filter(|_| self.retains > 0)
    }
}
