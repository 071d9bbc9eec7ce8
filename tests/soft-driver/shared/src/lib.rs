//! The software CUDA driver as a shared library: the driver's exported names in front of one machine of
//! `cuda-soft-driver`.
//!
//! The environment variable `CUDA_SOFT_DRIVER` configures it when the first function is called; see
//! `cuda_soft_driver::Builder::from_text` for what it can say.

#![allow(non_snake_case, missing_docs, clippy::missing_safety_doc)]

use core::ffi::{c_int, c_uchar, c_uint, c_ulonglong, c_ushort, c_void};

use cuda_soft_driver::abi::*;
use cuda_soft_driver::exports::functions;
use cuda_soft_driver::{for_each_export, start_shared_library};

macro_rules! function {
    ($name:ident ($($argument:ident: $ty:ty),*)) => {
        /// # Safety
        ///
        /// The arguments are what the driver's C declaration says.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $ty),*) -> CUresult {
            start_shared_library();
            // SAFETY: the same arguments, for which the caller answers.
            unsafe { functions::$name::<0>($($argument),*) }
        }
    };
}

macro_rules! export {
    (
        supported { $($name:ident $version:literal $(, $twin:ident $twin_version:literal)? => $body:ident $arguments:tt;)* }
        unsupported { $($absent:ident $absent_version:literal $(, $absent_twin:ident $absent_twin_version:literal)?;)* }
    ) => {
        $(
            function!($name $arguments);
            $(function!($twin $arguments);)?
        )*
        $(
            function!($absent ());
            $(function!($absent_twin ());)?
        )*
    };
}

for_each_export!(export);
