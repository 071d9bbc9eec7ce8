//! The place of a record in a capture.

/// The id of a capture, which nothing else of the machine has.
pub(super) type CaptureKey = u64;

/// Where in a capture an event was recorded.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    pub(super) capture: CaptureKey,
    pub(super) nodes: Vec<u32>,
}
