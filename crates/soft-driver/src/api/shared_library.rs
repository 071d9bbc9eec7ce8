//! The one driver of the C library, from the first call to the end of the process.

use std::ffi::OsString;
use std::sync::OnceLock;

use crate::api::builder::Builder;
use crate::api::driver::{self, SoftDriver};
use crate::front::exit;
use crate::front::exports::EXPORTS;
use crate::front::fork;
use crate::front::functions::exported_as;
use crate::processes;

/// The one machine of a shared library, set up by the environment when it is first called.
static SHARED: OnceLock<SoftDriver> = OnceLock::new();

/// Starts the shared library's machine, once. `addresses` gives those of its exports, in the order
/// of the list.
#[doc(hidden)]
pub fn start_shared_library(addresses: fn() -> Vec<usize>) {
    if SHARED.get().is_none() {
        fork::whole(|| {
            exported_as(addresses());
            shared_library();
        });
    }
}

/// The settings of the environment. A program with the rights of another user has none: who starts
/// it must not choose what it writes.
fn settings() -> OsString {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    // SAFETY: it has no preconditions.
    let privileged = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let privileged = false;
    if privileged {
        OsString::new()
    } else {
        std::env::var_os("CUDA_SOFT_DRIVER").unwrap_or_default()
    }
}

/// The shared library's machine.
pub(crate) fn shared_library() -> &'static SoftDriver {
    SHARED.get().unwrap_or_else(|| fork::whole(|| SHARED.get_or_init(make)))
}

fn make() -> SoftDriver {
    let text = settings();
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
    config.devices.visible_from_environment.get_or_insert(true);
    // Where the library has a handler for the end of the process.
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    exit::leave_to_library();
    let mut driver = driver::take(config, faults);
    // The library's driver lasts until the process ends: nothing drops it.
    driver.owned = false;
    driver
}

/// From now on streams access this pinned or managed memory by a mapping of their own, as a device
/// does, so that the program may protect its pages. `false` if that is not possible.
#[doc(hidden)]
pub fn alias_shared_library(address: usize) -> bool {
    let Some(driver) = SHARED.get() else { return false };
    let state = driver.machine().lock();
    let allocation = state.memory.addresses.starting_at(address as u64);
    allocation.is_some_and(|allocation| {
        let is_the_hosts =
            allocation.kind.is_host() || allocation.kind == crate::memory::Kind::Managed;
        is_the_hosts && allocation.region.make_alias()
    })
}

/// Ends the shared library's driver at the end of the process: every later call returns that the
/// driver is gone.
#[doc(hidden)]
pub fn end_shared_library() {
    if let Some(driver) = SHARED.get() {
        driver::print_the_end(driver);
        driver.shut_down();
        processes::tidy_up();
        exit::leave();
    }
}

/// The exported names that the driver of `CUDA_SOFT_DRIVER` lacks: those of later versions, and
/// those removed by its settings.
#[doc(hidden)]
pub fn shared_library_lacks() -> Vec<&'static str> {
    let text = settings().into_string().unwrap_or_default();
    let (config, _) = Builder::from_text(&text).unwrap_or_default().into_parts();
    let lacked = EXPORTS
        .iter()
        .filter(|export| export.version > config.version || config.lacks(export.name));
    lacked.map(|export| export.name).collect()
}
