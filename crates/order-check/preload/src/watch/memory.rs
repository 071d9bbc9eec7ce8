//! Memory: allocations, frees, and what else has an address.

use core::ffi::c_char;
use core::sync::atomic::AtomicPtr;
use std::cell::Cell as Local;

use super::*;

impl Watch {
    /// The driver's number of bytes from an address on, of which the program has asked for none.
    fn bytes_at(&self, address: Address) -> Option<usize> {
        let (mut base, mut bytes) = (0, 0);
        // SAFETY: places for the answers.
        let code = unsafe { self.questions.range?(&mut base, &mut bytes, address) };
        (code == OK).then(|| bytes.saturating_sub(address.wrapping_sub(base) as usize))
    }

    /// The object ends.
    pub(super) fn owner_ends(&mut self, owner: Handle) {
        self.modules.retain(|module, (library, _)| ![*module, *library].contains(&owner));
        let of = self.owned_by(|of| of.objects.contains(&owner));
        of.into_iter().for_each(|address| self.owned_ends(address));
    }

    /// A context ends. Its work is over.
    pub(super) fn owners_end_with(&mut self, context: Handle) {
        self.modules.retain(|_, (_, of)| *of != context);
        let of = self.owned_by(|of| of.context == context);
        if !of.is_empty() {
            let awaited = self.feed.await_contexts(&[ContextId(context as u64)]);
            self.feed.reached(&awaited);
        }
        of.into_iter().for_each(|address| self.owned_ends(address));
    }

    fn owned_by(&self, is_it: impl Fn(&Owner) -> bool) -> Vec<Address> {
        let all = self.owned.iter().filter(|(_, of)| is_it(of));
        all.map(|(address, _)| *address).collect()
    }

    fn owned_ends(&mut self, address: Address) {
        self.owned.remove(&address);
        self.forget(address);
        self.feed.free(address);
    }

    /// Other memory is here: what was here has ended with its object, though nobody saw that.
    pub(super) fn replaced(&mut self, address: Address, bytes: usize) {
        let end = address.saturating_add(bytes as u64);
        while let Some((&before, _)) = self.owned.range(..end).next_back() {
            let bytes = self.devices.get(&before).map_or(0, |(bytes, _)| *bytes as u64);
            if bytes > 0 && before.saturating_add(bytes) <= address {
                break;
            }
            self.owned_ends(before);
        }
    }

    /// A primary context may have ended: the driver says what is no memory any longer.
    pub(super) fn forget_ended(&mut self) {
        /// `CUDA_ERROR_INVALID_VALUE`.
        const NONE: Code = 1;
        let Some(ask) = self.questions.attribute else { return };
        let is_gone = |address: &Address| {
            let mut kind: u32 = 0;
            // SAFETY: a place for CU_POINTER_ATTRIBUTE_MEMORY_TYPE.
            unsafe { ask((&raw mut kind).cast(), 2, *address) == NONE }
        };
        let gone: Vec<Address> = self.owned.keys().copied().filter(is_gone).collect();
        gone.into_iter().for_each(|address| self.owned_ends(address));
    }
}

/// What memory ends with.
pub(super) struct Owner {
    /// The object that the program has asked, and the library that it is a module of, or the same.
    objects: [Handle; 2],
    context: Handle,
}

thread_local!(static MAY_HAVE_ENDED: Local<bool> = const { Local::new(false) });

/// The call under way may end a primary context, unless others have it, too.
pub(super) fn may_end() {
    let _ = MAY_HAVE_ENDED.try_with(|of| of.set(true));
}

/// Whether the thread's call before may have ended one.
pub(super) fn may_have_ended() -> bool {
    MAY_HAVE_ENDED.try_with(Local::take).unwrap_or(false)
}

/// The program may ask a module for the memory of its library.
pub(crate) fn module_of(
    call: &Call,
    real: impl FnOnce() -> Code,
    module: *mut Handle,
    library: Handle,
) -> Code {
    after(call, real, |watch| {
        let context = watch.context();
        // SAFETY: the place for the handle, which a success has written.
        watch.modules.insert(unsafe { read(module) }, (library, context));
    })
}

/// An object has memory, which ends with it. The program may ask for it again and again.
fn owns(call: &Call, owner: Handle, address: Address, bytes: usize) {
    let has_bytes =
        |watch: &Watch| watch.devices.get(&address).is_some_and(|(known, _)| *known == bytes);
    let is_known = |watch: &mut Watch| {
        let of = watch.owned.get(&address);
        of.is_some_and(|of| of.objects.contains(&owner)) && has_bytes(watch)
    };
    if address == 0 || bytes == 0 || enter(is_known) == Some(true) {
        return;
    }
    begin(call, |watch| {
        let (mut managed, mut context): (u32, _) = (0, 0_usize);
        if let Some(ask) = watch.questions.attribute {
            // SAFETY: places for CU_POINTER_ATTRIBUTE_IS_MANAGED and CU_POINTER_ATTRIBUTE_CONTEXT.
            unsafe {
                ask((&raw mut managed).cast(), 8, address);
                ask((&raw mut context).cast(), 1, address);
            }
        }
        if context == 0 {
            context = watch.context();
        }
        let memory = if managed == 0 { Memory::Device } else { Memory::Managed };
        // It may be the same as before, by another handle.
        if !has_bytes(watch) || watch.feed.memory(address) != Some(memory) {
            watch.allocated(address, bytes, memory);
        }
        let library = watch.modules.get(&owner).map_or(owner, |(library, _)| *library);
        watch.owned.insert(address, Owner { objects: [owner, library], context });
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
            bytes = enter(|watch| watch.bytes_at(address)).flatten().unwrap_or(1);
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
    part: *const [u64; 2],
) -> Code {
    after(call, real, |watch| {
        // SAFETY: the place of the program, which a success has written, and its description.
        let (address, [_, bytes]) = unsafe { (read(address), read(part)) };
        watch.allocated(address, bytes as usize, Memory::Exported);
    })
}

pub(crate) fn allocate(
    call: &Call,
    real: impl FnOnce() -> Code,
    address: *mut Address,
    bytes: usize,
    memory: Memory,
) -> Code {
    after(call, real, |watch| {
        // SAFETY: the place for the address, which a success has written.
        let address = unsafe { read(address) };
        watch.allocated(address, bytes, memory);
        if memory == Memory::Host {
            watch.pinned(address, bytes, false);
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
    after(call, real, |watch| {
        watch.allocated(address, bytes, Memory::Host);
        if flags & UNUSUAL == 0 {
            watch.pinned(address, bytes, true);
        }
    })
}

pub(crate) fn unregister(call: &Call, real: impl FnOnce() -> Code, address: Address) -> Code {
    begin(call, |watch| {
        watch.unpinned(address);
        watch.forget(address);
        watch.feed.unregister(address);
    });
    real()
}

/// A free waits for the work before, of the memory's device or of all devices.
pub(crate) fn free(call: &Call, real: impl FnOnce() -> Code, address: Address) -> Code {
    begin(call, |watch| {
        watch.unpinned(address);
        if let Some((_, device)) = watch.forget(address) {
            let contexts = watch.all_contexts(device);
            let awaited = watch.feed.await_contexts(&contexts);
            watch.feed.reached(&awaited);
        }
        watch.feed.free(address);
    });
    real()
}

/// Memory is no longer at these addresses, which the program keeps. It counts as a free of each
/// part that was mapped; no documentation says that it waits.
pub(crate) fn unmap(
    call: &Call,
    real: impl FnOnce() -> Code,
    address: Address,
    bytes: usize,
) -> Code {
    begin(call, |watch| {
        let range = address..address.saturating_add(bytes as u64);
        let parts: Vec<Address> =
            watch.devices.keys().copied().filter(|part| range.contains(part)).collect();
        let awaited = watch.feed.await_contexts(&watch.all_contexts(None));
        watch.feed.reached(&awaited);
        for part in parts {
            watch.forget(part);
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
    after(call, real, |watch| watch.allocated(address, bytes, Memory::Device))
}

pub(crate) fn allocate_async(
    call: &Call,
    real: impl FnOnce() -> Code,
    address: *mut Address,
    bytes: usize,
    stream: Handle,
) -> Code {
    after(call, real, |watch| {
        let stream = watch.stream(call, stream);
        // SAFETY: the place for the address, which a success has written.
        let address = unsafe { read(address) };
        watch.replaced(address, bytes);
        watch.feed.allocate_async(stream, address, bytes as u64);
    })
}

pub(crate) fn free_async(
    call: &Call,
    real: impl FnOnce() -> Code,
    address: Address,
    stream: Handle,
) -> Code {
    begin(call, |watch| {
        let stream = watch.stream(call, stream);
        watch.feed.free_async(stream, address);
    });
    real()
}

pub(crate) fn exported(call: &Call, real: impl FnOnce() -> Code, address: Address) -> Code {
    after(call, real, |watch| watch.feed.memory_exported(address))
}

pub(crate) fn imported(call: &Call, real: impl FnOnce() -> Code, address: *mut Address) -> Code {
    after(call, real, |watch| {
        // SAFETY: the place for the address, which a success has written.
        let address = unsafe { read(address) };
        watch.replaced(address, 1);
        // The driver may have opened it before.
        if watch.feed.memory(address).is_none() {
            let bytes = watch.bytes_at(address).unwrap_or(1);
            watch.feed.allocate(address, bytes as u64, Memory::Exported);
        }
    })
}

pub(crate) fn closed(call: &Call, real: impl FnOnce() -> Code, address: Address) -> Code {
    let code = real();
    begin(call, |watch| {
        // It may be open still.
        if code == OK && watch.bytes_at(address).is_none() {
            watch.feed.free(address);
        }
    });
    code
}

pub(crate) fn allocate_rows(
    call: &Call,
    real: impl FnOnce() -> Code,
    address: *mut Address,
    pitch: *mut usize,
    height: usize,
) -> Code {
    after(call, real, |watch| {
        // SAFETY: the places for the address and the pitch, which a success has written.
        let (address, pitch) = unsafe { (read(address), read(pitch)) };
        watch.allocated(address, pitch * height, Memory::Device);
    })
}
