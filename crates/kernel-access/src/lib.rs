#![doc = include_str!("../README.md")]
#![warn(missing_docs)]
#![forbid(unsafe_code)]

mod bytes;
mod callees;
pub mod code;
pub mod container;
pub mod decode;
mod division;
mod evaluate;
pub mod execute;
mod facts;
pub mod flow;
mod form;
mod fractions;
mod instruction;
mod live;
pub mod load;
pub mod parameters;
mod polls;
pub mod ptx;
mod symbols;
mod tensor;
pub mod threads;
pub mod touch;
mod variables;
mod words;
