//! What a driver is: its devices, contexts, streams, events, graphs and memory, and the engine that moves work on.

pub(crate) mod clock;
pub(crate) mod config;
pub(crate) mod engine;
pub(crate) mod handles;
pub(crate) mod ipc;
pub(crate) mod machine;
pub(crate) mod places;
pub(crate) mod thread;
pub(crate) mod workers;
