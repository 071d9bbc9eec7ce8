//! The native part of the Python package `cuda_timelines`: [`cuda_timelines`] for streams of
//! PyTorch, `cuda.core` and other libraries.
//!
//! Each method converts its arguments, and makes one call of `cuda_timelines` with the GIL
//! released: a driver call can block until another thread of Python acts. The stubs in
//! `_native.pyi` have the types.

// The wheel is for Linux. Elsewhere the workspace compiles without it.
#![cfg(target_os = "linux")]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod awaiting;
mod error;
mod events;
mod foreign;
mod guard;
mod handover;
mod host;
mod point;
mod shared;
mod timeline;
mod users;
mod watched;

#[pyo3::pymodule(name = "_native")]
mod native {
    #[pymodule_export]
    use crate::awaiting::Notifier;
    #[pymodule_export]
    use crate::events::TimelineEvent;
    #[pymodule_export]
    use crate::host::HostTimeline;
    #[pymodule_export]
    use crate::point::Point;
    #[pymodule_export]
    use crate::shared::{ImportedTimeline, TimelineFile, TimelineMemory};
    #[pymodule_export]
    use crate::timeline::Timeline;
}
