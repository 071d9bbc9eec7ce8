//! Random sequences of safe calls, from three threads: a part of what `tools/fuzz safe` does, whose
//! files this takes.

#[path = "../../fuzz/src/bytes.rs"]
#[expect(dead_code, reason = "the fuzzer's file, of which this takes a part")]
mod bytes;
#[path = "../../fuzz/src/safe.rs"]
mod safe;

use crate::common::{self, watch};

/// `CUDA_EVENTS_TEST_SEQUENCES` is how many, from a seed of now; without it the same few each time.
#[test]
fn safe_calls_are_safe() {
    // Its drivers stay until the process ends.
    common::own_process!();
    let many = std::env::var("CUDA_EVENTS_TEST_SEQUENCES").ok();
    let many: Option<u64> = many.map(|text| text.parse().expect("a count"));
    let now = || std::time::UNIX_EPOCH.elapsed().map_or(1, |since| since.as_nanos() as u64);
    let mut seed = many.map_or(1, |_| now());
    let mut next = || {
        // SplitMix64.
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    for _ in 0..many.unwrap_or(100) {
        watch::alive();
        let length = next() % 900;
        let input: Vec<u8> = (0..length).map(|_| next() as u8).collect();
        safe::run(&input);
    }
}
