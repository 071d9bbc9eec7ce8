//! What this crate does not bind, and other crates of the project call or stand in for: the
//! declarations of `wrapper-more.h`, and the types of functions by their exported names.

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
    include!("more_bindings.rs");
    #[cfg(feature = "bindgen")]
    include!(concat!(env!("OUT_DIR"), "/more_bindings.rs"));
}

pub use bindings::*;

pub use super::exports::NEWEST;
use super::symbols::parse_typedef;

macro_rules! more {
    ($($function:ident $typedef:ident $($twin:ident)?;)*) => {
        /// The type of each function by its exported name. That of a twin is the same.
        #[allow(missing_docs, non_camel_case_types)]
        pub mod types {
            use crate::sys::CUresult;
            pub use crate::sys::symbols::types::*;

            $(pub type $function = super::$typedef;)*

            // NVIDIA has them in a header of their own.
            pub type cuProfilerStart = Option<unsafe extern "C" fn() -> CUresult>;
            pub type cuProfilerStop = cuProfilerStart;
        }

        $($(const _: fn($typedef) -> $twin = |pointer| pointer;)?)*

        /// The exported names, each with the version that introduced it and that of its twin.
        pub const VERSIONS: &[(&str, crate::sys::Version, Option<crate::sys::Version>)] = &[$((
            stringify!($function),
            const { parse_typedef(stringify!($typedef)).1 },
            const {
                let twins: &[&'static str] = &[$(stringify!($twin))?];
                match twins {
                    [twin, ..] => Some(parse_typedef(twin).1),
                    [] => None,
                }
            },
        ),)*];
    };
}

bindings::for_each_other_function!(more);

/// Defines the traits by which a crate shows that its own functions are called as the driver's are.
/// Their types may be others than those of the headers, such as a number for a handle, if they are
/// passed in the same way. `$code` is what they return.
///
/// Each crate has the traits for itself, as it has types of its own that are passed as others. The
/// macro never defines more: what is new goes to the crates, which might have it already.
#[doc(hidden)]
#[macro_export]
macro_rules! __passing {
    (returns $code:ty) => {
        /// A value of this type is passed as one of `T`; behind a pointer the two have one layout.
        #[diagnostic::on_unimplemented(
            message = "`{Self}` is not passed as the driver's `{T}`",
            note = "if the type is new here, and is passed so, add it to `__passing!` in this crate"
        )]
        pub(crate) trait PassedAs<T> {}

        /// A function that can be called as one of the type `F`.
        #[diagnostic::on_unimplemented(message = "`{Self}` is not called as the driver's `{F}`")]
        pub(crate) trait CalledAs<F> {}

        pub(crate) const fn is_called_as<H: CalledAs<F>, F>() {}

        pub(crate) const fn is<H: CalledAs<F> + Copy, F>(_: H) {}

        impl<O: PassedAs<T>, T> PassedAs<*mut T> for *mut O {}
        impl<O: PassedAs<T>, T> PassedAs<*const T> for *const O {}
        /// The own function only reads what the driver may write.
        impl<O: PassedAs<T>, T> PassedAs<*mut T> for *const O {}
        /// No matter what is there.
        impl<T> PassedAs<T> for core::ffi::c_void {}

        $crate::__passing! { types
            u8: u8, u16: u16, u32: u32, i32: i32, u64: u64, usize: usize, f32: f32,
            i8: i8, $code: $crate::sys::CUresult,
            u32: $crate::sys::CUdevice_attribute, u32: $crate::sys::CUdriverProcAddressQueryResult,
            u32: $crate::sys::CUlaunchAttributeID, u32: $crate::sys::CUstreamCaptureMode,
            u32: $crate::sys::CUstreamCaptureStatus, u32: $crate::sys::more::CUfunction_attribute,
            u32: $crate::sys::more::CUfunc_cache, u32: $crate::sys::more::CUfunctionLoadingState,
            u32: $crate::sys::more::CUgraphExecUpdateResult,
            u32: $crate::sys::more::CUgraphNodeType, u32: $crate::sys::more::CUjit_option,
            u32: $crate::sys::more::CUlibraryOption, u32: $crate::sys::more::CUlimit,
            u32: $crate::sys::more::CUmemAllocationHandleType,
            u32: $crate::sys::more::CUmemAllocationType, u32: $crate::sys::more::CUmem_advise,
            u32: $crate::sys::more::CUmemPool_attribute,
            u32: $crate::sys::more::CUmoduleLoadingMode,
            u32: $crate::sys::more::CUpointer_attribute, u32: $crate::sys::more::CUsharedconfig,
            u32: $crate::sys::more::CUdevice_P2PAttribute,
        }
        $crate::__passing!(functions $code; A1 B1 A2 B2 A3 B3 A4 B4 A5 B5 A6 B6 A7 B7 A8 B8 A9 B9
            A10 B10 A11 B11);
    };
    (types $($own:ty: $their:ty),* $(,)?) => {$(
        impl PassedAs<$their> for $own {}
        const _: () = assert!(
            size_of::<$own>() == size_of::<$their>() && align_of::<$own>() == align_of::<$their>()
        );
    )*};
    // Each is passed as itself.
    (structures $($name:ident),* $(,)?) => { $crate::__passing! { types $($name: $name),* } };
    (functions $code:ty;) => { $crate::__passing!(function $code;); };
    (functions $code:ty; $own:ident $their:ident $($rest:ident)*) => {
        $crate::__passing!(function $code; $own $their $($rest)*);
        $crate::__passing!(functions $code; $($rest)*);
    };
    (function $code:ty; $($own:ident $their:ident)*) => {
        impl<$($own: PassedAs<$their>, $their),*>
            CalledAs<Option<unsafe extern "C" fn($($their),*) -> $crate::sys::CUresult>>
            for unsafe extern "C" fn($($own),*) -> $code {}
    };
}
