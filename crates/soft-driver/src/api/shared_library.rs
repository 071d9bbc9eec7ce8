//! The one driver of the C library, from the first call to the end of the process.

use std::sync::OnceLock;

use crate::api::builder::Builder;
use crate::api::driver::SoftDriver;
use crate::front::exports::EXPORTS;
use crate::front::functions::exported_as;
use crate::order::findings::exit;
use crate::processes;

/// The one machine of a shared library, set up by the environment when it is first called.
static SHARED: OnceLock<SoftDriver> = OnceLock::new();

/// Starts the shared library's machine, once. `addresses` gives those of its exports, in the order
/// of the list.
#[doc(hidden)]
pub fn start_shared_library(addresses: fn() -> Vec<usize>) {
    if SHARED.get().is_none() {
        exported_as(addresses());
        shared_library();
    }
}

/// The shared library's machine.
pub(crate) fn shared_library() -> &'static SoftDriver {
    SHARED.get_or_init(|| {
        let text = std::env::var_os("CUDA_SOFT_DRIVER").unwrap_or_default();
        let text = text
            .to_str()
            .ok_or_else(|| "it is not UTF-8: use name=value, separated by commas".to_owned());
        let (mut config, faults) = match text.and_then(Builder::from_text) {
            Ok(builder) => builder.into_parts(),
            Err(what) => {
                // There is nobody to return it to, and to go on as if nothing had been asked for
                // would be silent.
                crate::say!("CUDA_SOFT_DRIVER: {what}");
                std::process::abort();
            }
        };
        config.visible_from_environment.get_or_insert(true);
        // Where the library has a handler for the end of the process.
        #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
        exit::leave_to_library();
        SoftDriver::take(config, faults).keep()
    })
}

/// From now on streams access this pinned memory by a mapping of their own, as a device does, so
/// that the program may protect its pages. `false` if that is not possible.
#[doc(hidden)]
pub fn alias_shared_library(address: usize) -> bool {
    let Some(driver) = SHARED.get() else { return false };
    let state = driver.machine().lock();
    let of = state.memory.starting_at(address as u64);
    of.is_some_and(|of| of.kind.is_host() && of.region.make_alias())
}

/// Ends the shared library's driver at the end of the process: every later call returns that the
/// driver is gone.
#[doc(hidden)]
pub fn end_shared_library() {
    if let Some(driver) = SHARED.get() {
        driver.print_the_end();
        driver.shut_down();
        processes::tidy_up();
        exit::leave();
    }
}

/// The exported names that the driver of `CUDA_SOFT_DRIVER` lacks: those of later versions, and
/// those removed by its settings.
#[doc(hidden)]
pub fn shared_library_lacks() -> Vec<&'static str> {
    let text = std::env::var("CUDA_SOFT_DRIVER").unwrap_or_default();
    let (config, _) = Builder::from_text(&text).unwrap_or_default().into_parts();
    let lacked = EXPORTS
        .iter()
        .filter(|export| export.version > config.version || config.lacks(export.name));
    lacked.map(|export| export.name).collect()
}
