//! Numbers at random from a seed: enough for tests, and the same on every machine.

/// The next number of a seed's sequence (SplitMix64).
pub(crate) fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    /// A seed that a failed test printed finds the same failure with each later version.
    #[test]
    fn a_seed_has_its_sequence() {
        // As the authors of the generator publish it.
        let mut state = 1_234_567;
        let numbers = [(); 3].map(|()| super::next(&mut state));
        let expected =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(numbers, expected);
    }
}
