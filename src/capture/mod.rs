//! Stream capture: work that is put into streams becomes a graph instead of being executed.

mod dependencies;
mod external;
mod guard;
mod mode;
mod registry;

pub use crate::order::{RecordFlags, WaitFlags};
pub use crate::stream::capture_info::{CaptureInfo, CaptureStatus};
pub use dependencies::{CaptureDependency, DependencyUpdate};
pub use guard::Capture;
pub(crate) use guard::under_way;
pub use mode::{CaptureMode, ThreadCaptureMode};
