//! What the driver exports.
//!
//! The names are those of `cuda_events::__for_each_export`. Each module with bodies has a list of its
//! entry points, which `exports!` begins: the exported name, its per-thread-default-stream twin where
//! there is one, and the body, a function of that module, with its generic arguments if it has some:
//! entry points that differ in one word have one body. The parameters of the body are those of the C
//! function, whose type is compared with them when this compiles. A name without a body returns
//! `CUDA_ERROR_NOT_SUPPORTED`: a program that is linked against it, or looks all of them up when it
//! starts, has to find it. The C functions, the table that `cuGetProcAddress` and
//! [`resolve`](crate::SoftDriver::resolve) look in, the exports of the shared library and the names
//! in the call log all come from these lists.

use crate::front::export::Export;
pub use crate::machine::call_frame::Id;

/// Calls `$callback!` with the list of each module.
macro_rules! for_each_body {
    ($callback:ident) => {
        crate::init::exported!($callback);
        crate::driver_log::exported!($callback);
        crate::front::functions::exported!($callback);
        crate::device::exported!($callback);
        crate::context::primary::exported!($callback);
        crate::context::exported!($callback);
        crate::context::all_streams::exported!($callback);
        crate::event::exported!($callback);
        crate::ipc::event::exported!($callback);
        crate::ipc::memory::exported!($callback);
        crate::stream::exported!($callback);
        crate::host_function::exported!($callback);
        crate::capture::calls::exported!($callback);
        crate::values::exported!($callback);
        crate::external_semaphore::exported!($callback);
        crate::allocation::exported!($callback);
        crate::copy::exported!($callback);
        crate::graph::calls::exported!($callback);
        crate::graph::exec::exported!($callback);
        crate::graph::events::exported!($callback);
        crate::graph::parameters::exported!($callback);
        crate::green_context::exported!($callback);
        crate::kernel::modules::exported!($callback);
        crate::kernel::launches::exported!($callback);
        crate::context::settings::exported!($callback);
        crate::device::bus::exported!($callback);
        crate::allocation::host::exported!($callback);
        crate::allocation::advice::exported!($callback);
        crate::copy::synchronous::exported!($callback);
        crate::allocation::pools::exported!($callback);
        crate::copy::rows::exported!($callback);
        crate::graph::edits::exported!($callback);
        crate::allocation::virtual_memory::exported!($callback);
        crate::graph::updates::exported!($callback);
        crate::graph::nodes::exported!($callback);
        crate::graph::user_objects::exported!($callback);
    };
}

pub(crate) use for_each_body;

macro_rules! define {
    ($($name:ident $($version:literal)?),*) => {
        #[allow(non_camel_case_types)]
        #[repr(u16)]
        enum Place { $($name,)* }

        #[allow(non_upper_case_globals, missing_docs)]
        impl Id {
            $(pub const $name: Self = Self(Place::$name as u16);)*
        }

        /// The number of exported functions.
        pub const COUNT: usize = [$(stringify!($name)),*].len();

        const LIST: [Export; COUNT] = [$(
            Export::new(stringify!($name), &[$($version)?], HAS_BODY[Place::$name as usize]),
        )*];
    };
}

cuda_events::__for_each_export!(define);

/// Whether each exported function has a body.
pub(crate) const HAS_BODY: [bool; COUNT] = {
    let mut has_body = [false; COUNT];
    macro_rules! mark {
        ($module:tt $($name:ident $(, $twin:ident)? => $body:tt;)*) => {$(
            has_body[Id::$name.place()] = true;
            $(has_body[Id::$twin.place()] = true;)?
        )*};
    }
    for_each_body!(mark);
    has_body
};

/// The newest CUDA version that a software driver can have. It is this crate's own: the list comes
/// from any compatible `cuda-events`, which may know functions that are newer.
pub const NEWEST: (u32, u32) = (13, 5);

/// All exported functions.
pub static EXPORTS: &[Export] = &LIST;
