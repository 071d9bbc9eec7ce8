//! Pages that must say what the code says.

mod coverage;
mod examples;
mod guides;
mod parity;
