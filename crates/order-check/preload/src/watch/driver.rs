//! What is asked of the driver.

use super::*;

/// Functions of the driver by their names, each with its parameters. `None` if the driver has it
/// not.
macro_rules! of_driver {
    ($(#[$about:meta])* $table:ident { $($field:ident: $name:literal ($($of:ty),*),)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy)]
        pub(super) struct $table {
            $($field: Option<unsafe extern "C" fn($($of),*) -> Code>,)*
        }

        impl $table {
            pub(super) fn new(resolve: &dyn Fn(&CStr) -> *mut c_void) -> Self {
                // SAFETY: NULL, or the driver's functions of these names, with these parameters.
                unsafe {
                    Self {
                        $($field: core::mem::transmute::<
                            *mut c_void,
                            Option<unsafe extern "C" fn($($of),*) -> Code>,
                        >(resolve($name)),)*
                    }
                }
            }
        }
    };
}
pub(super) use of_driver;

pub(super) type ParamInfo = unsafe extern "C" fn(Handle, usize, *mut usize, *mut usize) -> Code;
pub(super) type NameOf = unsafe extern "C" fn(*mut *const c_char, Handle) -> Code;
