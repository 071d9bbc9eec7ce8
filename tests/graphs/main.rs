//! Stream capture and graphs.

use cuda_events_test_support as common;

mod capture;
mod capture_info;
mod drops;
mod graphs;
mod retained;
