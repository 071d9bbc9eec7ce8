//! What is still to be read by subject.

pub(crate) mod order;
