//! Sequences of safe calls of the crate, from three threads at once.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cuda_events_fuzz::safe::run(data));
