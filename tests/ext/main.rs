//! What CUDA does not have, made of the thin layer: `cuda_events::ext`.

use cuda_events_test_support as common;

mod current_stream;
mod lazy_events;
mod pool;
mod pool_and_captures;
mod timers;
