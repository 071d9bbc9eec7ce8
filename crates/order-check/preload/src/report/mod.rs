//! The output for the user: findings, a line for each call, and the summary at the end.

pub(crate) mod candidates;
pub(crate) mod counts;
pub(crate) mod output;
pub(crate) mod summary;
pub(crate) mod trace;
