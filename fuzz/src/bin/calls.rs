//! Sequences of calls of the software driver's C entry points.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cuda_events_fuzz::sequences::run(data));
