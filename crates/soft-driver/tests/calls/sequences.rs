//! Random sequences of calls agree with a slow model: a part of what `tools/fuzz calls` does, whose
//! files this takes.

#[path = "../../../../fuzz/src/bytes.rs"]
#[expect(dead_code, reason = "the fuzzer's file, of which this takes a part")]
mod bytes;
#[path = "../../../../fuzz/src/model/mod.rs"]
mod model;
#[path = "../../../../fuzz/src/sequences/mod.rs"]
#[expect(clippy::module_inception, reason = "the fuzzer's file")]
mod sequences;

use cuda_events_test_support::watch;

/// SplitMix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// `CUDA_SOFT_SEQUENCES` is how many, from a seed of today's; without it the same few each time.
#[test]
fn every_answer_is_the_models() {
    let many = std::env::var("CUDA_SOFT_SEQUENCES").ok().map(|text| text.parse().expect("a count"));
    let mut seed = many.map_or(1, |_: u64| {
        std::time::UNIX_EPOCH.elapsed().map_or(1, |since| since.as_nanos() as u64)
    });
    for number in 0..many.unwrap_or(200) {
        if number % 100 == 0 {
            watch::alive();
        }
        let start = seed;
        let length = next(&mut seed) % 400;
        let input: Vec<u8> = (0..length).map(|_| next(&mut seed) as u8).collect();
        let run = || sequences::run(&input);
        if let Err(panic) = std::panic::catch_unwind(run) {
            eprintln!("the sequence of the seed {start:#x}");
            std::panic::resume_unwind(panic);
        }
    }
}
