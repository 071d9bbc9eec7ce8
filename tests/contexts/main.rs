//! Contexts: the thread's stack, whole contexts as objects of records and waits, green ones.

use cuda_events_test_support as common;

mod context_events;
mod contexts;
mod green;
mod thread_end;
