//! The checker by its public interface. One binary: each would link the checker again.
#![allow(missing_docs)]

mod bounds;
mod candidates;
mod common;
mod costs;
mod feed;
mod form;
mod launches;
mod machines;
mod nearby;
mod places;
mod planted;
mod random;
mod reports;
mod values;
