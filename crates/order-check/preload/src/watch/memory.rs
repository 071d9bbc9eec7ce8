//! Allocations, and frees.

use super::*;

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
        let (mut base, mut bytes) = (0, 0);
        if let Some(ask) = watch.questions.range {
            // SAFETY: places for the answers.
            unsafe { ask(&mut base, &mut bytes, address) };
        }
        // The driver may have opened it before.
        if watch.feed.memory(address).is_none() {
            watch.feed.allocate(address, bytes as u64, Memory::Exported);
        }
    })
}

pub(crate) fn closed(call: &Call, real: impl FnOnce() -> Code, address: Address) -> Code {
    let code = real();
    begin(call, |watch| {
        // It may be open still.
        let (mut base, mut bytes) = (0, 0);
        // SAFETY: places for the answers.
        let mut ask = |ask: RangeOf| unsafe { ask(&mut base, &mut bytes, address) };
        if code == OK && watch.questions.range.is_none_or(|of| ask(of) != OK) {
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
