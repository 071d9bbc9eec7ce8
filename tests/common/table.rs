//! A driver's table with other functions in the place of some.

use std::ffi::c_void;
use std::ptr::null_mut;

use cuda_events::sys::{ENTRY_POINTS, Function};
use cuda_events::{Driver, LoadOptions};

/// `real` as it is, but for the entry points that `replace` has an address for; NULL hides one.
pub fn replaced(real: Driver, replace: impl Fn(Function) -> Option<*mut c_void>) -> Driver {
    let mut resolve = |name: &std::ffi::CStr| {
        // Without cuGetProcAddress every entry point is asked for by its exported name.
        if name.to_bytes().starts_with(b"cuGetProcAddress") {
            return null_mut();
        }
        match ENTRY_POINTS.iter().find(|entry| entry.name == name) {
            Some(entry) => {
                replace(entry.function).unwrap_or_else(|| real.symbols().address(entry.function))
            }
            None => null_mut(),
        }
    };
    // SAFETY: each address is one of `real`'s table, or the test vouches for it.
    unsafe { Driver::from_resolver(&mut resolve, &LoadOptions::new()) }
        .expect("nothing required is hidden")
}

/// `real` without some entry points.
pub fn hiding(real: Driver, hidden: &[Function]) -> Driver {
    replaced(real, |function| hidden.contains(&function).then_some(null_mut()))
}
