//! The output for the user: findings, a line for each call, and the summary at the end.

pub(crate) mod counts;
pub(crate) mod output;
pub(crate) mod regions;
pub(crate) mod trace;
pub(crate) mod unsettled;
