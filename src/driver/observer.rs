//! Observing every driver call, for traces, profiles and checkers; with the feature `observe`.
//!
//! [`Driver::observe`](crate::Driver::observe) returns a second driver, and has the rules for an
//! observer. Objects that are made with that driver are observed; all others cost no more than
//! before. The crate `cuda-events-trace` draws the calls on a time axis, and
//! `cuda-order-check-engine` looks for missing waits.
//!
//! ```
//! use std::sync::mpsc::channel;
//!
//! use cuda_events::Device;
//! use cuda_events::observer::Call;
//! use cuda_events::sys::Function;
//!
//! # use cuda_soft_driver::examples::Driver;
//! let driver = Driver::load()?;
//! let (sender, receiver) = channel();
//! let observed = driver.observe(move |call: &Call| drop(sender.send(call.function)))?;
//! Device::new(observed, 0)?.name()?;
//! assert!(receiver.try_iter().any(|function| function == Function::cuDeviceGetName));
//! observed.stop_observing();
//! # Ok::<(), cuda_events::Error>(())
//! ```

pub use super::observing::Call;
