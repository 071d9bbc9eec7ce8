//! What is still to be read by subject.

pub(crate) mod busy;
pub(crate) mod order;
