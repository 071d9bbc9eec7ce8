//! Timelines, points and futures in one process.

use cuda_events_test_support as common;

mod completions;
mod drops;
mod errors;
mod host_order;
mod observed;
mod poller;
mod poller_errors;
mod timeline_captures;
mod timeline_failures;
mod timeline_futures;
mod timeline_graphs;
mod timeline_pages;
mod timeline_programs;
mod timelines;
mod two_drivers;
