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

    /// The object ends, with its memory. All work before is over.
    pub(super) fn owner_ends(&mut self, owner: Handle) {
        self.modules.retain(|module, (library, _)| ![*module, *library].contains(&owner));
        self.owned_by(owner).into_iter().for_each(|address| self.ends(address));
    }

    /// A stream unmaps a graphics resource, with its memory.
    pub(super) fn unmapped(&mut self, stream: StreamId, resource: Handle) {
        for address in self.owned_by(resource) {
            self.owned.remove(&address);
            self.forget(address, true);
            self.feed.free_async(stream, address);
        }
    }

    fn owned_by(&self, owner: Handle) -> Vec<Address> {
        let all = self.owned.iter().filter(|(_, objects)| objects.contains(&owner));
        all.map(|(address, _)| *address).collect()
    }

    /// A context ends, with the memory that it has. Its work is over.
    pub(super) fn context_ends(&mut self, context: Handle) {
        self.stop_watching_copies();
        self.stop_looking();
        self.unloaded();
        self.modules.retain(|_, (_, of)| *of != context);
        let awaited = self.feed.await_contexts(&[ContextId(context as u64)]);
        self.feed.reached(&awaited);
        let of = self.devices.iter().filter(|(_, of)| of.context == context);
        let all: Vec<Address> = of.map(|(address, _)| *address).collect();
        all.into_iter().for_each(|address| self.ends(address));
    }

    /// Memory ends with something else. The host's is the program's again, as far as it is there.
    fn ends(&mut self, address: Address) {
        self.owned.remove(&address);
        self.unpinned(address);
        self.forget(address, true);
        match self.feed.memory(address) {
            Some(Memory::Host) => self.feed.registration_ends(address),
            _ => self.feed.free(address),
        }
    }

    /// Other memory is here: what was here has ended with its object, though nobody saw that.
    pub(super) fn replaced(&mut self, address: Address, bytes: usize) {
        let end = address.saturating_add(bytes as u64);
        while let Some((&before, _)) = self.owned.range(..end).next_back() {
            let bytes = self.devices.get(&before).map_or(0, |of| of.bytes as u64);
            if bytes > 0 && before.saturating_add(bytes) <= address {
                break;
            }
            self.ends(before);
        }
    }

    /// Memory ends by a call that waits for the work of its device. Measured on two H200s: for that
    /// of another device a free of device memory waits only if it is a copy, and not even for each
    /// of those; what gives back memory of the host does not.
    fn after_work_with(&mut self, address: Address) {
        self.unpinned(address);
        let Some(of) = self.forget(address, false) else { return };
        let device = match self.feed.memory(address) {
            Some(Memory::Host) => self.contexts.get(&of.context).copied(),
            _ => None,
        };
        let awaited = self.feed.await_contexts(&self.all_contexts(device));
        self.feed.reached(&awaited);
    }

    /// A primary context may have ended: the driver says what is no memory any longer. It may not
    /// say so to a thread without a context.
    pub(super) fn forget_gone(&mut self) {
        /// `CUDA_ERROR_INVALID_VALUE`.
        const NONE: Code = 1;
        let Some(ask) = self.questions.attribute else { return };
        let mut gone = Vec::new();
        for address in self.devices.keys() {
            let mut kind: u32 = 0;
            // SAFETY: a place for CU_POINTER_ATTRIBUTE_MEMORY_TYPE.
            match unsafe { ask((&raw mut kind).cast(), 2, *address) } {
                OK => {}
                NONE => gone.push(*address),
                _ => return self.may_be_gone = true,
            }
        }
        self.may_be_gone = false;
        gone.into_iter().for_each(|address| self.ends(address));
    }
}

/// Memory of an allocation, a registration, or an object.
pub(super) struct Allocation {
    pub(super) bytes: usize,
    /// With which it ends, or 0.
    pub(super) context: Handle,
}

/// Code is unloaded, with its variables. It waits for all work before, as an H200 has shown of
/// modules.
pub(crate) fn unload(call: &Call, real: impl FnOnce() -> Code, owner: Handle) -> Code {
    ends_after_all_work(call, real, |watch| {
        watch.owner_ends(owner);
        watch.unloaded();
    })
}

/// A primary context ends, unless others have it, too.
pub(crate) fn release_context(call: &Call, real: impl FnOnce() -> Code) -> Code {
    ends_after_all_work(call, real, |watch| {
        watch.unloaded();
        watch.forget_gone();
    })
}

fn ends_after_all_work(
    call: &Call,
    real: impl FnOnce() -> Code,
    f: impl FnOnce(&mut Watch),
) -> Code {
    let before = |watch: &mut Watch| {
        watch.order_everything();
        watch.note_captures();
        watch.feed.await_contexts(&watch.all_contexts(None))
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
    after(call, real, |watch| {
        let context = watch.context();
        // SAFETY: the place for the handle, which a success has written.
        watch.modules.insert(unsafe { read(module) }, (library, context));
    })
}

/// An object has memory, which ends with it. The program may ask for it again and again.
fn owns(call: &Call, owner: Handle, address: Address, bytes: usize) {
    let has_bytes =
        |watch: &Watch| watch.devices.get(&address).is_some_and(|known| known.bytes == bytes);
    let is_known = |watch: &mut Watch| {
        let of = watch.owned.get(&address);
        of.is_some_and(|objects| objects.contains(&owner)) && has_bytes(watch)
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
        let memory = if managed == 0 { Memory::Device } else { Memory::Managed };
        // It may be the same as before, by another handle.
        if !has_bytes(watch) || watch.feed.memory(address) != Some(memory) {
            watch.allocated(address, bytes, memory);
        }
        if let Some(of) = watch.devices.get_mut(&address).filter(|_| context != 0) {
            of.context = context;
        }
        let library = watch.modules.get(&owner).map_or(owner, |(library, _)| *library);
        watch.owned.insert(address, [owner, library]);
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
        watch.after_work_with(address);
        watch.feed.unregister(address);
    });
    real()
}

pub(crate) fn free(call: &Call, real: impl FnOnce() -> Code, address: Address) -> Code {
    begin(call, |watch| {
        watch.after_work_with(address);
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
    begin(call, |watch| {
        let range = address..address.saturating_add(bytes as u64);
        let parts: Vec<Address> = watch.devices.range(range).map(|(part, _)| *part).collect();
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
    after(call, real, |watch| {
        watch.allocated(address, bytes, watch.given(address));
        if let Some(of) = watch.devices.get_mut(&address) {
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
    after(call, real, |watch| {
        let stream = watch.stream(call, stream);
        // SAFETY: the place for the address, which a success has written.
        let address = unsafe { read(address) };
        watch.replaced(address, bytes);
        watch.feed.allocate_async(stream, address, bytes as u64);
        if pool.is_some() && watch.given(address) == Memory::Exported {
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
