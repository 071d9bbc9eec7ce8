//! Memory begins and ends: by itself, with a call that waits, with its context, or with another object.

use cuda_order_check_engine::feed::{Awaited, Memory};
use cuda_order_check_engine::{ContextId, StreamId};

use crate::call::{Address, Code, Handle, OK};
use crate::model::copies::given;
use crate::model::pinned::{pinned_begins, pinned_ends, stop_watching_copies};
use crate::state::allocations::Allocation;
use crate::state::values::Pending;
use crate::watch::Watch;

impl Watch {
    /// Memory ends with something else. The host's is the program's again, as far as it is there.
    pub(crate) fn ends(&mut self, address: Address) {
        if let Some(owners) = self.memory.owned.remove(&address) {
            self.kernels.images.ends_variable(owners, address);
        }
        pinned_ends(self, address);
        self.forget(address, true);
        match self.feed.memory(address) {
            Some(Memory::Host) => self.feed.registration_ends(address),
            _ => self.feed.free(address),
        }
    }

    /// Other memory is here: what was here has ended with its object, though nobody saw that.
    pub(crate) fn replaced(&mut self, address: Address, bytes: usize) {
        let end = address.saturating_add(bytes as u64);
        while let Some((&before, _)) = self.memory.owned.range(..end).next_back() {
            let bytes = self.memory.at.get(&before).map_or(0, |allocation| allocation.bytes as u64);
            if bytes > 0 && before.saturating_add(bytes) <= address {
                break;
            }
            self.ends(before);
        }
    }
}

/// The object ends, with its memory. All work before is over.
pub(crate) fn owner_ends(watch: &mut Watch, owner: Handle) {
    watch.memory.modules.retain(|module, (library, _)| ![*module, *library].contains(&owner));
    watch.memory.owned_by(owner).into_iter().for_each(|address| watch.ends(address));
}

/// A stream unmaps a graphics resource, with its memory.
pub(crate) fn resource_unmapped(watch: &mut Watch, stream: StreamId, resource: Handle) {
    for address in watch.memory.owned_by(resource) {
        watch.memory.owned.remove(&address);
        watch.forget(address, true);
        watch.feed.free_async(stream, address);
    }
}

/// A context ends, with the memory that it has. Its work is over.
pub(crate) fn context_ends(watch: &mut Watch, context: Handle) {
    stop_watching_copies(watch);
    watch.kernels.unloaded();
    watch.kernels.images.context_ends(context);
    watch.memory.modules.retain(|_, (_, own)| *own != context);
    let awaited = watch.feed.await_contexts(&[ContextId(context as u64)]);
    watch.feed.reached(&awaited);
    let all = watch.memory.at.iter().filter(|(_, allocation)| allocation.context == context);
    let all: Vec<Address> = all.map(|(address, _)| *address).collect();
    all.into_iter().for_each(|address| watch.ends(address));
}

/// Memory ends by a call that waits for the work of its device, with the copies that this makes for
/// streams of others, as two H200s have shown. For which device managed memory waits was not asked.
pub(crate) fn after_work_with(watch: &mut Watch, address: Address) {
    pinned_ends(watch, address);
    let Some(allocation) = watch.forget(address, false) else { return };
    let device = match watch.feed.memory(address) {
        Some(Memory::Managed) => None,
        _ => watch.contexts.devices.get(&allocation.context).copied(),
    };
    if device.is_none() && watch.contexts.of_several_devices() {
        watch.feed.assume("it waits for the work of all devices");
    }
    let awaited = watch.feed.await_contexts(&watch.contexts.on_device(device));
    watch.feed.reached(&awaited);
}

/// All work before, for a call that waits for it with one device. With several, this was not asked.
pub(crate) fn await_all(watch: &mut Watch) -> AwaitedOfAll {
    let (_, own) = watch.contexts.current();
    let is_over =
        |contexts: &[ContextId]| watch.feed.host_is_after(&watch.feed.await_contexts(contexts));
    let others = watch.contexts.beside(own);
    AwaitedOfAll {
        others: !is_over(&others),
        work: watch.feed.await_contexts(&watch.contexts.on_device(None)),
    }
}

/// All work before a call.
pub(crate) struct AwaitedOfAll {
    /// Whether work of other devices may not be over.
    others: bool,
    work: Awaited,
}

impl AwaitedOfAll {
    /// The call has waited for it.
    pub(crate) fn reached(&self, watch: &mut Watch) {
        if self.others {
            watch.feed.assume("it waits for the work of all devices");
        }
        watch.feed.reached(&self.work);
    }
}

/// A primary context may have ended: the driver says what is no memory any longer. It may not
/// say so to a thread without a context.
pub(crate) fn forget_gone(watch: &mut Watch) {
    /// `CUDA_ERROR_INVALID_VALUE`.
    const NONE: Code = 1;
    let Some(ask) = watch.questions.attribute else { return };
    let mut gone = Vec::new();
    for address in watch.memory.at.keys() {
        let mut kind: u32 = 0;
        // SAFETY: a place for CU_POINTER_ATTRIBUTE_MEMORY_TYPE.
        match unsafe { ask((&raw mut kind).cast(), 2, *address) } {
            OK => {}
            NONE => gone.push(*address),
            _ => return watch.memory.context_may_have_ended = true,
        }
    }
    watch.memory.context_may_have_ended = false;
    gone.into_iter().for_each(|address| watch.ends(address));
}

impl Watch {
    /// The memory ends: nobody looks there any longer. What is pending counts as seen, or can be
    /// seen no longer.
    pub(crate) fn forget(&mut self, address: Address, seen: bool) -> Option<Allocation> {
        self.uploads.forget();
        let allocation = self.memory.at.remove(&address)?;
        let range = address..address.saturating_add(allocation.bytes as u64);
        let is_there = |pending: &mut Pending| range.contains(&pending.cell.address);
        let gone: Vec<_> = self.values.pending.extract_if(.., is_there).collect();
        gone.into_iter().for_each(|pending| self.ends_looking(pending, seen));
        Some(allocation)
    }

    pub(crate) fn allocated(&mut self, address: Address, bytes: usize, memory: Memory) {
        self.replaced(address, bytes);
        let (context, _) = self.contexts.current();
        self.memory.at.insert(address, Allocation { bytes, context });
        self.feed.allocate(address, bytes as u64, memory);
    }
}

/// A call may wait for all work before it. It counts as one that does.
pub(crate) fn assume_order_of_everything(watch: &mut Watch) -> Awaited {
    let awaited = watch.feed.await_contexts(&watch.contexts.on_device(None));
    // A library that was not used does not wait, nor does a release that is not the last one.
    if !watch.feed.host_is_after(&awaited) {
        watch.feed.assume("it orders everything");
    }
    watch.order_everything();
    watch.note_captures();
    watch.feed.await_contexts(&watch.contexts.on_device(None))
}

fn has_bytes(watch: &Watch, address: Address, bytes: usize) -> bool {
    watch.memory.at.get(&address).is_some_and(|allocation| allocation.bytes == bytes)
}

/// Whether the program has asked an object for this memory before.
pub(crate) fn is_owned(watch: &Watch, owner: Handle, address: Address, bytes: usize) -> bool {
    let objects = watch.memory.owned.get(&address);
    objects.is_some_and(|objects| objects.contains(&owner)) && has_bytes(watch, address, bytes)
}

/// An object has this memory, which ends with it.
pub(crate) fn object_has(watch: &mut Watch, owner: Handle, address: Address, bytes: usize) {
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
    if !has_bytes(watch, address, bytes) || watch.feed.memory(address) != Some(memory) {
        watch.allocated(address, bytes, memory);
        if memory == Memory::Managed {
            // Other variables are beside it.
            pinned_begins(watch, address, bytes, true, true);
        }
    }
    if let Some(allocation) = watch.memory.at.get_mut(&address).filter(|_| context != 0) {
        allocation.context = context;
    }
    let library = watch.memory.modules.get(&owner).map_or(owner, |(library, _)| *library);
    watch.memory.owned.insert(address, [owner, library]);
}

/// Memory of a pool is at these addresses. A pool that the program names may have other memory than
/// that of a device.
pub(crate) fn allocated_in_order(
    watch: &mut Watch,
    stream: StreamId,
    address: Address,
    bytes: usize,
    is_named: bool,
) {
    watch.replaced(address, bytes);
    watch.feed.allocate_async(stream, address, bytes as u64);
    if is_named && given(watch, address) == Memory::Exported {
        watch.feed.memory_exported(address);
    }
}

/// Memory is at these addresses, which the program has had before.
pub(crate) fn mapped(watch: &mut Watch, address: Address, bytes: usize) {
    watch.replaced(address, bytes);
    watch.memory.at.insert(address, Allocation { bytes, context: 0 });
    let memory = given(watch, address);
    watch.feed.map_memory(address, bytes as u64, memory);
}

/// It is there no longer.
pub(crate) fn unmapped(watch: &mut Watch, address: Address, bytes: usize) {
    let range = address..address.saturating_add(bytes as u64);
    let parts: Vec<Address> = watch.memory.at.range(range).map(|(part, _)| *part).collect();
    for part in parts {
        watch.forget(part, false);
        watch.feed.free(part);
    }
}

/// Memory of another process is here. The driver may have opened it before.
pub(crate) fn opened(watch: &mut Watch, address: Address) {
    watch.replaced(address, 1);
    if watch.feed.memory(address).is_none() {
        let bytes = watch.questions.bytes_at(address).unwrap_or(1);
        watch.feed.allocate(address, bytes as u64, Memory::Exported);
    }
}
