//! What `cuda-events` binds and neither list has: that of `exports.rs` nor that of `foreign.rs`.
//!
//! Each is exported and answers `CUDA_ERROR_NOT_SUPPORTED`, whatever its arguments are. There is no
//! third list: an entry point that is bound is here from then on, and goes when one of the two
//! lists gets it.

use core::ffi::c_int;

use cuda_events::sys::Function;

use crate::front::export::Export;
use crate::front::foreign::for_each_foreign;

/// Defines a macro that gives what follows a name, or nothing if the name is listed.
macro_rules! define_unless {
    ($unless:ident, ($dollar:tt), $($listed:ident)*) => {
        #[macro_export]
        #[doc(hidden)]
        macro_rules! $unless {
            $(($listed $dollar($dollar _given:tt)*) => {};)*
            ($dollar name:ident $dollar($dollar given:tt)*) => { $dollar($dollar given)* };
        }
    };
}

macro_rules! supported {
    ($($name:ident $version:literal $(, $twin:ident $twin_version:literal)?
        => $body:ident $arguments:tt;)*) => {
        define_unless!(unless_supported, ($), $($name)*);
    };
}

macro_rules! foreign {
    ($($name:ident $version:literal;)*) => {
        define_unless!(unless_foreign, ($), $($name)*);
    };
}

crate::for_each_export!(supported);
for_each_foreign!(foreign);

/// Room for all: each may have a twin.
const MOST: usize = 2 * cuda_events::sys::ENTRY_POINTS.len();

macro_rules! define {
    ($($need:ident $function:ident $typedef:ident $($twin:ident)? $(, $creates:ident)?;)*) => {
        /// What an export stands for, its description, and how many there are.
        const FOUND: ([Option<(Function, Export)>; MOST], usize) = {
            let mut found = [None; MOST];
            let mut count = 0;
            $(unless_supported! { $function unless_foreign! { $function
                found[count] = Some((Function::$function,
                    legacy(Function::$function, stringify!($function))));
                count += 1;
                $(
                    let name = concat!(stringify!($function), "_ptsz");
                    found[count] = Some((Function::$function,
                        per_thread(Function::$function, name, stringify!($twin))));
                    count += 1;
                )?
            } })*
            (found, count)
        };
    };
}

const fn legacy(function: Function, name: &'static str) -> Export {
    Export::new(name, function.entry_point().version.as_raw() as c_int, false).unsupported()
}

/// The twin's typedef is not looked at: its version is in the list.
const fn per_thread(function: Function, name: &'static str, _typedef: &'static str) -> Export {
    match function.entry_point().per_thread_version {
        Some(version) => Export::new(name, version.as_raw() as c_int, true).unsupported(),
        None => panic!("a line with a twin has the twin's version"),
    }
}

cuda_events::for_each_entry_point!(define);

/// What is found as exports.
pub(crate) const UNLISTED: &[Export] = &{
    let mut all = [Export::new("", 0, false); FOUND.1];
    let mut at = 0;
    while at < all.len() {
        if let Some((_, export)) = FOUND.0[at] {
            all[at] = export;
        }
        at += 1;
    }
    all
};

/// The place of an entry point, or of its per-thread twin, among those found.
///
/// # Panics
///
/// If one of the lists has it.
pub const fn index(function: Function, per_thread: bool) -> usize {
    let mut at = 0;
    while at < UNLISTED.len() {
        if let Some((found, export)) = FOUND.0[at]
            && found as u8 == function as u8
            && export.per_thread == per_thread
        {
            return at;
        }
        at += 1;
    }
    panic!("a list has it")
}
