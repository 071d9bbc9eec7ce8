use std::collections::BTreeSet;
use cuda_events::sys::Function;
pub fn assert_all_reached(_: &BTreeSet<Function>) {}
