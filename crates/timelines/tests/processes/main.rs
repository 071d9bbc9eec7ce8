//! Timelines that processes share: by files, and by bytes.

use cuda_events_test_support as common;

#[cfg(target_os = "linux")]
mod loss;
#[cfg(target_os = "linux")]
mod opened_timelines;
#[cfg(any(target_os = "linux", windows))]
mod shared_timelines;
#[cfg(target_os = "linux")]
mod untrusted_files;
