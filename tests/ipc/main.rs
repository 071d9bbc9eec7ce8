//! Events that processes share: the descriptor, export and import, the look at the exporter.

use cuda_events_test_support as common;

mod descriptor;
mod descriptor_text;
mod interprocess;
mod lease;
