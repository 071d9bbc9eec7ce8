//! Memory: allocations, frees, and what else has an address.

use core::ffi::{c_char, c_uint, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};

use cuda_events::sys::CUDA_EXTERNAL_MEMORY_BUFFER_DESC;
use cuda_order_check_engine::feed::Memory;

use crate::call::{Address, Call, Code, Handle, OK, read};
use crate::model::copies::given;
use crate::model::memory::{after_work_with, await_all, forget_gone, owner_ends};
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
    let before = |watch: &mut Watch| {
        let awaited = watch.feed.await_contexts(&watch.contexts.on_device(None));
        // A library that was not used does not wait, nor does a release that is not the last one.
        if !watch.feed.host_is_after(&awaited) {
            watch.feed.assume("it orders everything");
        }
        watch.order_everything();
        watch.note_captures();
        watch.feed.await_contexts(&watch.contexts.on_device(None))
    };
    around(call, before, real, |watch, awaited| {
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
    let has_bytes =
        |watch: &Watch| watch.memory.at.get(&address).is_some_and(|known| known.bytes == bytes);
    let is_known = |watch: &mut Watch| {
        let of = watch.memory.owned.get(&address);
        of.is_some_and(|objects| objects.contains(&owner)) && has_bytes(watch)
    };
    if address == 0 || bytes == 0 || locked(is_known) == Some(true) {
        return;
    }
    begin_call(call, |watch| {
        let (mut managed, mut context): (u32, _) = (0, 0_usize);
        if let Some(ask) = watch.questions.attribute {
            // SAFETY: places for CU_POINTER_ATTRIBUTE_IS_MANAGED and CU_POINTER_ATTRIBUTE_CONTEXT.
            unsafe {
                ask((&raw mut managed).cast(), 8, address);
                ask((&raw mut context).cast(), 1, address);
            }
        }
        let memory = if managed == 0 { Memory::Device } else { Memory::Managed };
        // It may be the same as before, by another handle.
        if !has_bytes(watch) || watch.feed.memory(address) != Some(memory) {
            watch.allocated(address, bytes, memory);
            if memory == Memory::Managed {
                // Other variables are beside it.
                pinned_begins(watch, address, bytes, true, true);
            }
        }
        if let Some(of) = watch.memory.at.get_mut(&address).filter(|_| context != 0) {
            of.context = context;
        }
        let library = watch.memory.modules.get(&owner).map_or(owner, |(library, _)| *library);
        watch.memory.owned.insert(address, [owner, library]);
    });
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
    begin_call(call, |watch| {
        let range = address..address.saturating_add(bytes as u64);
        let parts: Vec<Address> = watch.memory.at.range(range).map(|(part, _)| *part).collect();
        for part in parts {
            watch.forget(part, false);
            watch.feed.free(part);
        }
    });
    real()
}

pub(crate) fn map(
    call: &Call,
    real: impl FnOnce() -> Code,
    address: Address,
    bytes: usize,
) -> Code {
    after_success(call, real, |watch| {
        watch.allocated(address, bytes, given(watch, address));
        if let Some(of) = watch.memory.at.get_mut(&address) {
            of.context = 0;
        }
    })
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
        watch.replaced(address, bytes);
        watch.feed.allocate_async(stream, address, bytes as u64);
        if pool.is_some() && given(watch, address) == Memory::Exported {
            watch.feed.memory_exported(address);
        }
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
        watch.replaced(address, 1);
        // The driver may have opened it before.
        if watch.feed.memory(address).is_none() {
            let bytes = watch.questions.bytes_at(address).unwrap_or(1);
            watch.feed.allocate(address, bytes as u64, Memory::Exported);
        }
    })
}

/// It waits as a free does, as an H200 has shown.
pub(crate) fn closed(call: &Call, real: impl FnOnce() -> Code, address: Address) -> Code {
    around(call, await_all, real, |watch, awaited| {
        // It may be open still.
        if watch.questions.bytes_at(address).is_none() {
            awaited.reached(watch);
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
