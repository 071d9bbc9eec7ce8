//! The raw layer: the driver's C declarations and the table of its entry points.
//!
//! The declarations are generated from `wrapper.h` and checked against NVIDIA's headers of CUDA
//! 11.8 to 13.5. Every enum that the driver can return is an open newtype ([`CUresult`],
//! [`CUstreamCaptureStatus`]), so numbers that no current header lists are valid values too. Flags
//! are plain integers.
//!
//! CUDA puts new fields into reserved bytes, so the structures that have some are
//! `#[non_exhaustive]`: make a `default()` and set its fields. For a pointer to one in an `extern`
//! block of your own the compiler warns of `improper_ctypes`; the layout is C's all the same.
//!
//! [`Driver::symbols`](crate::Driver::symbols) returns the resolved table of a loaded driver. A
//! call through it costs only the driver's own call:
//!
//! ```
//! # use cuda_soft_driver::examples::Driver;
//! let driver = Driver::load()?;
//! let symbols = driver.symbols();
//! let mut version = 0;
//! // SAFETY: the driver writes only the integer.
//! let code = unsafe { (symbols.cuDriverGetVersion)(&mut version) };
//! assert_eq!(code, cuda_events::sys::CUresult::CUDA_SUCCESS);
//! # Ok::<(), cuda_events::Error>(())
//! ```

#[allow(
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unsafe_code,
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    clippy::indexing_slicing
)]
mod bindings {
    #[cfg(not(feature = "bindgen"))]
    include!("bindings.rs");
    #[cfg(feature = "bindgen")]
    include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
}

mod abi;
#[cfg(feature = "__abi")]
mod exports;
#[cfg(feature = "__abi")]
#[doc(hidden)]
pub mod more;
mod padded;
mod result;
#[allow(unsafe_code)]
mod symbols;
mod version;

pub use bindings::*;
#[cfg(doc)]
pub(crate) use symbols::calls;
pub use symbols::{ENTRY_POINTS, EntryPoint, EntryPointType, Function, Symbols, functions};
pub use version::Version;
