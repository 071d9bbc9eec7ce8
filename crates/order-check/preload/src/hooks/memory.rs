//! The calls that give memory and take it back: allocations and frees, maps, variables of modules, and
//! memory of other APIs and processes.

use core::ffi::{CStr, c_char, c_uint, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};

use cuda_events::sys::CUDA_EXTERNAL_MEMORY_BUFFER_DESC;
use cuda_order_check_engine::feed::Memory;

use crate::call::{Address, Call, Code, Handle, OK, read};
use crate::model::memory::{
    after_work_with, allocated_in_order, assume_order_of_everything, await_all, forget_gone,
    is_owned, mapped, object_has, opened, owner_ends, unmapped,
};
use crate::model::pinned::pinned_begins;
use crate::walk::{after_success, around, begin_call, locked};
use crate::watch::Watch;

/// Code is unloaded, with its variables. It waits for all work before, as an H200 has shown of
/// modules.
pub(crate) fn unload(call: &Call, real: impl FnOnce() -> Code, owner: Handle) -> Code {
    ends_after_all_work(call, real, |watch| {
        owner_ends(watch, owner);
        watch.kernels.unloaded();
        watch.kernels.images.forget(owner);
    })
}

/// A primary context ends, unless others have it, too.
pub(crate) fn release_context(call: &Call, real: impl FnOnce() -> Code) -> Code {
    ends_after_all_work(call, real, |watch| {
        watch.kernels.unloaded();
        forget_gone(watch);
    })
}

pub(crate) fn ends_after_all_work(
    call: &Call,
    real: impl FnOnce() -> Code,
    f: impl FnOnce(&mut Watch),
) -> Code {
    around(call, assume_order_of_everything, real, |watch, awaited| {
        watch.feed.reached(&awaited);
        f(watch);
    })
}

/// The program may ask a module for the memory of its library.
pub(crate) fn module_of(
    call: &Call,
    real: impl FnOnce() -> Code,
    module: *mut Handle,
    library: Handle,
) -> Code {
    after_success(call, real, |watch| {
        let context = watch.contexts.handle();
        // SAFETY: the place for the handle, which a success has written.
        let module = unsafe { read(module) };
        watch.memory.modules.insert(module, (library, context));
        watch.kernels.images.share(module, library);
    })
}

/// An object has memory, which ends with it. The program may ask for it again and again.
pub(crate) fn owns(call: &Call, owner: Handle, address: Address, bytes: usize) {
    let is_owned = |watch: &mut Watch| is_owned(watch, owner, address, bytes);
    if address == 0 || bytes == 0 || locked(is_owned) == Some(true) {
        return;
    }
    begin_call(call, |watch| object_has(watch, owner, address, bytes));
}

/// A variable of a module or a library. `ask` has the real function, in case the program has asked
/// for the address alone.
pub(crate) fn global(
    call: &Call,
    real: impl FnOnce() -> Code,
    ask: &AtomicPtr<c_void>,
    address: *mut Address,
    bytes: *mut usize,
    owner: Handle,
    name: *const c_char,
) -> Code {
    type Ask = unsafe extern "C" fn(*mut Address, *mut usize, Handle, *const c_char) -> Code;
    let code = real();
    if code == OK && !address.is_null() {
        // SAFETY: the places of the program, which a success has written. It has called the
        // function, which has this type; a place for the number of bytes.
        let (address, bytes) = unsafe {
            let mut own = read(bytes);
            if bytes.is_null() {
                let ask = ask.load(Ordering::Relaxed);
                let ask = core::mem::transmute::<*mut c_void, Ask>(ask);
                ask(core::ptr::null_mut(), &mut own, owner, name);
            }
            (read(address), own)
        };
        owns(call, owner, address, bytes);
        if !name.is_null() && address != 0 {
            // SAFETY: a C string of the program's, by which the driver has just found it.
            let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
            let range = address..address.saturating_add(bytes as u64);
            locked(|watch| {
                // The program need not have used a stream of the context that it asks in.
                watch.kernels.in_one_context &= watch.contexts.are_one();
                watch.kernels.images.has_variable(owner, &name, &range);
            });
        }
    }
    code
}

/// A graphics resource of another API, until it is unmapped.
pub(crate) fn map_resource(
    call: &Call,
    real: impl FnOnce() -> Code,
    address: *mut Address,
    bytes: *mut usize,
    resource: Handle,
) -> Code {
    let code = real();
    if code == OK {
        // SAFETY: the places of the program, which a success has written.
        let (address, mut bytes) = unsafe { (read(address), read(bytes)) };
        if bytes == 0 {
            bytes = locked(|watch| watch.questions.bytes_at(address)).flatten().unwrap_or(1);
        }
        owns(call, resource, address, bytes);
    }
    code
}

/// A part of another API's memory: its offset and its bytes. The program frees it.
pub(crate) fn map_external(
    call: &Call,
    real: impl FnOnce() -> Code,
    address: *mut Address,
    part: *const CUDA_EXTERNAL_MEMORY_BUFFER_DESC,
) -> Code {
    after_success(call, real, |watch| {
        // SAFETY: the place of the program, which a success has written, and its description.
        let (address, part) = unsafe { (read(address), read(part)) };
        watch.allocated(address, part.size as usize, Memory::Exported);
    })
}

pub(crate) fn allocate(
    call: &Call,
    real: impl FnOnce() -> Code,
    address: *mut Address,
    bytes: usize,
    memory: Memory,
) -> Code {
    after_success(call, real, |watch| {
        // SAFETY: the place for the address, which a success has written.
        let address = unsafe { read(address) };
        watch.allocated(address, bytes, memory);
        if matches!(memory, Memory::Host | Memory::Managed) {
            pinned_begins(watch, address, bytes, false, memory == Memory::Managed);
        }
    })
}

pub(crate) fn register(
    call: &Call,
    real: impl FnOnce() -> Code,
    address: Address,
    bytes: usize,
    flags: c_uint,
) -> Code {
    /// `CU_MEMHOSTREGISTER_IOMEMORY` and `CU_MEMHOSTREGISTER_READ_ONLY`.
    const UNUSUAL: c_uint = 4 | 8;
    after_success(call, real, |watch| {
        watch.allocated(address, bytes, Memory::Host);
        if flags & UNUSUAL == 0 {
            pinned_begins(watch, address, bytes, true, false);
        }
    })
}

pub(crate) fn unregister(call: &Call, real: impl FnOnce() -> Code, address: Address) -> Code {
    begin_call(call, |watch| {
        after_work_with(watch, address);
        watch.feed.unregister(address);
    });
    real()
}

pub(crate) fn free(call: &Call, real: impl FnOnce() -> Code, address: Address) -> Code {
    begin_call(call, |watch| {
        after_work_with(watch, address);
        watch.feed.free(address);
    });
    real()
}

/// Memory is no longer at these addresses, which the program keeps. It counts as a free of each
/// part that was mapped, and waits for nothing: measured on an H200.
pub(crate) fn unmap(
    call: &Call,
    real: impl FnOnce() -> Code,
    address: Address,
    bytes: usize,
) -> Code {
    begin_call(call, |watch| unmapped(watch, address, bytes));
    real()
}

pub(crate) fn map(
    call: &Call,
    real: impl FnOnce() -> Code,
    address: Address,
    bytes: usize,
) -> Code {
    after_success(call, real, |watch| mapped(watch, address, bytes))
}

/// A pool that the program names may have other memory than that of a device.
pub(crate) fn allocate_async(
    call: &Call,
    real: impl FnOnce() -> Code,
    address: *mut Address,
    bytes: usize,
    pool: Option<Handle>,
    stream: Handle,
) -> Code {
    after_success(call, real, |watch| {
        let stream = watch.stream(call, stream);
        // SAFETY: the place for the address, which a success has written.
        let address = unsafe { read(address) };
        allocated_in_order(watch, stream, address, bytes, pool.is_some());
    })
}

pub(crate) fn free_async(
    call: &Call,
    real: impl FnOnce() -> Code,
    address: Address,
    stream: Handle,
) -> Code {
    begin_call(call, |watch| {
        let stream = watch.stream(call, stream);
        watch.uploads.forget();
        watch.feed.free_async(stream, address);
    });
    real()
}

pub(crate) fn exported(call: &Call, real: impl FnOnce() -> Code, address: Address) -> Code {
    after_success(call, real, |watch| watch.feed.memory_exported(address))
}

pub(crate) fn imported(call: &Call, real: impl FnOnce() -> Code, address: *mut Address) -> Code {
    after_success(call, real, |watch| {
        // SAFETY: the place for the address, which a success has written.
        let address = unsafe { read(address) };
        opened(watch, address);
    })
}

/// It waits as a free does, as an H200 has shown.
pub(crate) fn closed(call: &Call, real: impl FnOnce() -> Code, address: Address) -> Code {
    around(call, await_all, real, |watch, awaited| {
        // It may be open still.
        if watch.questions.bytes_at(address).is_none() {
            awaited.reached(watch);
            watch.uploads.forget();
            watch.feed.free(address);
        }
    })
}

pub(crate) fn allocate_rows(
    call: &Call,
    real: impl FnOnce() -> Code,
    address: *mut Address,
    pitch: *mut usize,
    height: usize,
) -> Code {
    after_success(call, real, |watch| {
        // SAFETY: the places for the address and the pitch, which a success has written.
        let (address, pitch) = unsafe { (read(address), read(pitch)) };
        watch.allocated(address, pitch * height, Memory::Device);
    })
}

#[cfg(test)]
mod tests {
    use core::ffi::{CStr, c_uint, c_void};
    use std::sync::atomic::{AtomicI32, Ordering};

    use cuda_order_check_engine::feed::Memory;

    use super::{allocate, register};
    use crate::call::{Address, Call, Code, OK};
    use crate::settings::Settings;
    use crate::start::start;
    use crate::walk::locked;

    const CALL: Call = Call { name: "cuMemAllocManaged", per_thread: false };

    static CONCURRENT: AtomicI32 = AtomicI32::new(0);

    extern "C" fn device(device: *mut i32) -> Code {
        // SAFETY: a place for the answer.
        unsafe { *device = 0 };
        OK
    }

    extern "C" fn attribute(value: *mut i32, attribute: c_uint, _: i32) -> Code {
        /// `CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS`.
        const OF_MANAGED: c_uint = 89;
        let concurrent = CONCURRENT.load(Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { *value = i32::from(attribute != OF_MANAGED || concurrent == 1) };
        OK
    }

    /// Where the host must not touch managed memory while the device is busy, the system sees to it.
    /// Other memory of the host is watched unless it is unusual: a load or a store there may do more.
    #[test]
    fn memory_of_the_host_is_watched() {
        let _turn = crate::lock::TURN.lock();
        let resolve = |name: &CStr| match name.to_bytes() {
            b"cuCtxGetDevice" => device as *mut c_void,
            b"cuDeviceGetAttribute" => attribute as *mut c_void,
            _ => core::ptr::null_mut(),
        };
        const AT: Address = 0x1000_0000_0000;
        for concurrent in [0, 1] {
            CONCURRENT.store(concurrent, Ordering::Relaxed);
            let watched = |gives: &dyn Fn()| {
                start(&resolve, &Settings::from_text("log=/dev/null").expect("it is valid"));
                gives();
                locked(|watch| watch.pinned.regions.len()).expect("it watches")
            };
            let given = |memory| watched(&|| _ = allocate(&CALL, || OK, &mut { AT }, 64, memory));
            let all = [Memory::Device, Memory::Host, Memory::Managed].map(given);
            assert_eq!(all, [0, 1, concurrent as usize]);
            // Portable, mapped, of an I/O space, and for reading alone.
            let registered = [1, 2, 4, 8, 1 | 8]
                .map(|flags| watched(&|| _ = register(&CALL, || OK, AT, 64, flags)));
            assert_eq!(registered, [1, 1, 0, 0, 0]);
        }
    }
}
