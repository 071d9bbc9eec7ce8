//! Observing every driver call, for traces, profiles and checkers.
//!
//! ```
//! use std::sync::mpsc::channel;
//!
//! use cuda_events::Device;
//! use cuda_events::observer::Call;
//! use cuda_events::sys::Function;
//!
//! # let _ = || {
//! let driver = cuda_events::Driver::load()?;
//! # Ok::<_, cuda_events::Error>(driver) };
//! # let soft = cuda_soft_driver::SoftDriver::new();
//! # let driver = soft.driver();
//! let (sender, receiver) = channel();
//! let observed = driver.observe(move |call: &Call| drop(sender.send(call.function)))?;
//! Device::new(observed, 0)?.name()?;
//! assert!(receiver.try_iter().any(|function| function == Function::cuDeviceGetName));
//! observed.stop_observing();
//! # Ok::<(), cuda_events::Error>(())
//! ```

pub use super::observing::Call;
