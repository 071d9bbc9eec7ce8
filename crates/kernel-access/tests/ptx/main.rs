//! PTX that is written here, against what its instructions are said to do.

mod accesses;
mod arithmetic;
#[path = "../common/mod.rs"]
mod common;
mod compiled;
#[path = "../common/shapes.rs"]
mod shapes;
mod text;
mod unknown;
mod ways;
