//! What the stand-in for the driver's library finds, in front of the software driver.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "each calls the raw table with handles that it gave out and places on the stack"
)]
#![allow(unused_unsafe, reason = "some calls by name are within blocks of calls of the table")]

mod arrays;
mod calls;
mod flags;
mod front;
mod graphs;
mod host;
mod host_functions;
mod memory;
mod rows;
mod unknown;
