//! What CUDA does not have, made of the thin layer: `cuda_events::ext`.

use cuda_events_test_support as common;

mod completions;
mod current_stream;
mod lazy_events;
mod observed;
mod poller;
mod pool;
mod pool_and_captures;
mod safe_sequences;
mod timeline_captures;
mod timeline_failures;
mod timeline_futures;
mod timeline_pages;
mod timeline_programs;
mod timelines;
mod timers;
