//! What a driver is: its devices, contexts, streams, events, graphs and memory, and the engine that
//! moves work on.

pub(crate) mod busy;
pub(crate) mod call_frame;
pub(crate) mod channel;
pub(crate) mod clock;
pub(crate) mod config;
pub(crate) mod deadlock;
pub(crate) mod ends;
pub(crate) mod engine;
pub(crate) mod findings;
pub(crate) mod handles;
pub(crate) mod machine;
pub(crate) mod misuse;
pub(crate) mod order;
mod patience;
pub(crate) mod places;
pub(crate) mod point;
pub(crate) mod quiet;
pub(crate) mod switches;
pub(crate) mod thread;
pub(crate) mod time;
pub(crate) mod trace;
pub(crate) mod waits;
pub(crate) mod work;
pub(crate) mod workers;
