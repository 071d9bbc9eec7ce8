//! What must not grow unnoticed: driver calls, allocations, sizes.

use cuda_events_test_support as common;

mod guards;
mod hot_path;
