//! The calls that load code: modules, libraries, and the kernels in them.

use core::ffi::{CStr, c_char};

use crate::call::{Call, Code, Handle, OK, read};
use crate::code::image::Image;
use crate::model::memory::await_all;
use crate::walk::{around, locked};
use crate::watch::Watch;

/// The load of a module waits for all work before, as an H200 has shown, and libraries seem to rely
/// on it.
pub(crate) fn load_module(
    call: &Call,
    real: impl FnOnce() -> Code,
    module: *mut Handle,
    image: &dyn Fn() -> Image,
) -> Code {
    let mut loaded = None;
    let real = || {
        let code = real();
        loaded = (code == OK).then(image);
        code
    };
    let code = around(call, await_all, real, |watch, awaited| awaited.reached(watch));
    keep(module, loaded, true);
    code
}

/// The load of a library orders nothing.
pub(crate) fn load_library(
    _: &Call,
    real: impl FnOnce() -> Code,
    library: *mut Handle,
    image: &dyn Fn() -> Image,
) -> Code {
    let code = real();
    keep(library, (code == OK).then(image), false);
    code
}

/// The image of what a call has loaded. A module is one of the current context.
fn keep(owner: *mut Handle, image: Option<Image>, is_module: bool) {
    if let Some(image) = image {
        // SAFETY: the place for the handle, which a success has written.
        let owner = unsafe { read(owner) };
        if owner == 0 {
            return;
        }
        locked(|watch| {
            let context = if is_module { watch.contexts.handle() } else { 0 };
            watch.kernels.images.load(owner, context, image);
        });
    }
}

/// An image in this file.
pub(crate) fn file(path: *const c_char) -> Image {
    // SAFETY: a C string of the program's, from which the driver has just loaded.
    Image::file(if path.is_null() { c"" } else { unsafe { CStr::from_ptr(path) } })
}

/// The program has asked a module for a function, or a library for a kernel.
pub(crate) fn take(
    _: &Call,
    real: impl FnOnce() -> Code,
    function: *mut Handle,
    owner: Handle,
) -> Code {
    let code = real();
    if code == OK {
        // SAFETY: the place for the handle, which a success has written.
        let function = unsafe { read(function) };
        locked(|watch| watch.kernels.images.take(function, owner));
    }
    code
}

/// The first time it loads the kernel, and waits as the load of a module does. The load of a
/// library does neither.
pub(crate) fn load_kernel(
    call: &Call,
    real: impl FnOnce() -> Code,
    function: *mut Handle,
    kernel: Handle,
) -> Code {
    // The runtime asks anew at each launch.
    let is_loaded = locked(|watch| {
        let is_loaded = watch.only_submits()
            && watch.kernels.loaded.contains(&(watch.contexts.handle(), kernel));
        if is_loaded {
            watch.numbered(call.name);
        }
        is_loaded
    });
    if is_loaded == Some(true) {
        return real();
    }
    let before = |watch: &mut Watch| {
        let key = (watch.contexts.current().0, kernel);
        watch.kernels.loaded.insert(key).then(|| await_all(watch))
    };
    around(call, before, real, |watch, awaited| {
        if let Some(awaited) = awaited {
            awaited.reached(watch);
        }
        // SAFETY: the place for the handle, which a success has written.
        watch.kernels.images.take(unsafe { read(function) }, kernel);
    })
}

#[cfg(test)]
mod tests;
