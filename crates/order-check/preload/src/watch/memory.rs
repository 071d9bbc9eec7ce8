//! Memory: allocations, frees, and what else has an address.

use core::ffi::c_char;
use core::sync::atomic::AtomicPtr;

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
        for address in self.owned.remove(&owner).unwrap_or_default() {
            self.forget(address);
            self.feed.free(address);
        }
    }
}

/// An object has memory, which ends with it. The program may ask for it again and again.
fn owns(call: &Call, owner: Handle, address: Address, bytes: usize) {
    let is_known =
        |watch: &mut Watch| watch.devices.get(&address).is_some_and(|(known, _)| *known == bytes);
    if address == 0 || bytes == 0 || enter(is_known) == Some(true) {
        return;
    }
    begin(call, |watch| {
        let mut managed: u32 = 0;
        if let Some(ask) = watch.questions.attribute {
            // SAFETY: a place for CU_POINTER_ATTRIBUTE_IS_MANAGED.
            unsafe { ask((&raw mut managed).cast(), 8, address) };
        }
        let memory = if managed == 0 { Memory::Device } else { Memory::Managed };
        watch.allocated(address, bytes, memory);
        watch.owned.entry(owner).or_default().push(address);
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
        watch.feed.allocate_async(stream, unsafe { read(address) }, bytes as u64);
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
