//! Streams: order, flags, attributes, memory operations, host functions, streams of other
//! libraries.

use cuda_events_test_support as common;

mod attributes;
#[cfg(target_os = "linux")]
mod external;
#[cfg(windows)]
mod external_windows;
mod foreign_streams;
mod host_functions;
mod stream_flags;
mod stream_values;
mod streams;
