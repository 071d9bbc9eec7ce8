//! Stream capture: work that is put into streams becomes a graph instead of being executed.
//!
//! * [`Capture`] captures a stream, and all streams that it is ordered with by events.
//! * [`record_external`](crate::StreamRef::record_external) and
//!   [`wait_external`](crate::StreamRef::wait_external) put events into the graph that are also
//!   used outside of the graph.
//! * [`CaptureStatus`], [`CaptureInfo`] and [`CaptureDependency`] show captures of any code, and
//!   [`ForeignCapture`](crate::foundation::ForeignCapture) makes one known to this crate.
//!
//! ```
//! use cuda_events::capture::{Capture, CaptureMode, CaptureStatus};
//! use cuda_events::{Context, Device, Stream, StreamOptions};
//!
//! # use cuda_soft_driver::examples::Driver;
//! let driver = Driver::load()?;
//! let context = Context::primary(Device::new(driver, 0)?)?;
//! let stream = Stream::new(&context, StreamOptions::new())?;
//! // SAFETY: no other thread has this stream.
//! let capture = unsafe { Capture::begin(&stream, CaptureMode::ThreadLocal) }?;
//! assert_eq!(stream.capture_status()?, CaptureStatus::Active);
//! // ... put work into the stream: it becomes a graph ...
//! let graph = capture.end()?;
//! graph.instantiate()?.launch(&stream)?;
//! # Ok::<(), cuda_events::Error>(())
//! ```

mod dependencies;
pub(crate) mod external;
pub(crate) mod foreign;
mod guard;
mod registry;

pub use crate::driver::capture_mode::{CaptureMode, ThreadCaptureMode};
pub use crate::event::RecordFlags;
pub use crate::stream::WaitFlags;
pub use crate::stream::capture_info::{CaptureInfo, CaptureStatus};
pub use dependencies::{CaptureDependency, DependencyUpdate};
pub use guard::Capture;
