//! What a driver is: its devices, contexts, streams, events, graphs and memory, and the engine that
//! moves work on.

pub(crate) mod call_frame;
pub(crate) mod config;
pub(crate) mod findings;
pub(crate) mod handles;
pub(crate) mod machine;
pub(crate) mod misuse;
pub(crate) mod order;
pub(crate) mod places;
pub(crate) mod switches;
pub(crate) mod thread;
pub(crate) mod trace;
