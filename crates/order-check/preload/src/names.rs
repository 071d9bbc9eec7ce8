//! The names of the driver's functions.

/// The names that the stand-in exports.
pub const NAMES: &str = include_str!("names.txt");
