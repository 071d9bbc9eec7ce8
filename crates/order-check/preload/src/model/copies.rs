//! Copies and memsets: where their memory is, what the host may see of them, and which work is over
//! when the call returns.

use core::ffi::c_uint;

use cuda_events::sys::more::{CUDA_ARRAY3D_DESCRIPTOR, CUDA_MEMCPY3D_BATCH_OP, CUextent3D};
use cuda_order_check_engine::feed::{Awaited, Memory};
use cuda_order_check_engine::{Access, AccessKind, Cell, ContextId, StreamId};

use crate::call::{Address, Call, Handle, OK};
use crate::code::signals;
use crate::model::pinned::watch_copies;
use crate::model::uploads::{overwritten, uploaded};
use crate::pinned::bytes;
use crate::state::blocks::{
    Block, Extent, Location, Reads, Side, Transfer, accesses, array_of, element, operand,
};
use crate::state::contexts::Contexts;
use crate::state::node::Node;
use crate::state::under_way::Visible;
use crate::state::values::load;
use crate::watch::Watch;

/// Where the memory of one side of a copy is: as the model has it, or as the function's name says,
/// or as the driver answers.
pub(crate) fn location(watch: &Watch, block: &Block) -> Location {
    match (watch.feed.memory(block.address), block.side) {
        (Some(Memory::Host), _) => Location::Pinned,
        (Some(Memory::Managed), _) => Location::Managed,
        (Some(Memory::Exported), _) => asked(watch, block.address).unwrap_or(Location::Device),
        (Some(_), _) | (None, Side::Device | Side::Array) => Location::Device,
        (None, Side::Host) => Location::Pageable,
        (None, Side::Any) => asked(watch, block.address).unwrap_or(Location::Pageable),
    }
}

/// Where the driver says that an address is; `None` if it does not know the address.
fn asked(watch: &Watch, address: Address) -> Option<Location> {
    /// `CU_MEMORYTYPE_HOST`.
    const HOST: u32 = 1;
    let ask = watch.questions.attribute?;
    let (mut kind, mut managed): (u32, u32) = (0, 0);
    // SAFETY: places for CU_POINTER_ATTRIBUTE_IS_MANAGED and CU_POINTER_ATTRIBUTE_MEMORY_TYPE.
    let code = unsafe {
        ask((&raw mut managed).cast(), 8, address);
        ask((&raw mut kind).cast(), 2, address)
    };
    (code == OK).then_some(match kind {
        _ if managed != 0 => Location::Managed,
        HOST => Location::Mapped,
        _ => Location::Device,
    })
}

/// Who can read memory that a pool or a map has given. What is not plainly of a device counts
/// as memory that others see at any time, and each copy asks anew where it is.
pub(crate) fn given(watch: &Watch, address: Address) -> Memory {
    match asked(watch, address) {
        None if watch.questions.attribute.is_none() => Memory::Device,
        Some(Location::Device) => Memory::Device,
        _ => Memory::Exported,
    }
}

/// Whether the host has no part in it, and nothing else has to come first.
pub(crate) fn may_wait(watch: &Watch, blocks: &[Block]) -> bool {
    watch.only_submits() && blocks.iter().all(|block| location(watch, block) == Location::Device)
}

/// A copy or a memset before its real call, with what can be found out only then.
pub(crate) struct Prepared {
    pub(crate) stream: StreamId,
    pub(crate) locations: [Location; 2],
    /// The feed's number of the write, if it is looked at the bytes until they change.
    pub(crate) id: Option<u64>,
    /// Whether it writes a word that counts as seen at once.
    pub(crate) is_seen: bool,
    /// The value that it writes to a word.
    pub(crate) content: Option<u64>,
    /// The stream's work before it.
    pub(crate) awaited: Awaited,
}

impl Prepared {
    pub(crate) fn visible(&self) -> Visible {
        let ids = self.id.into_iter().collect();
        Visible { stream: self.stream, ids, at_once: self.is_seen }
    }
}

pub(crate) fn prepare_copy(
    watch: &mut Watch,
    call: &Call,
    [to, from]: [Block; 2],
    extent: Extent,
    stream: Handle,
) -> Prepared {
    let stream = watch.stream(call, stream);
    let locations = [to, from].map(|block| location(watch, &block));
    let bytes = extent.iter().product::<usize>() as u64;
    let is_one_row = extent[1..] == [1, 1];
    if is_one_row {
        watch.find_stored_word(to.address, bytes);
    }
    let written = watch.before_write(to.address, bytes).filter(|_| is_one_row);
    let id = watch.expect_write(stream, written);
    let is_word = bytes <= 8 && is_one_row;
    let is_seen = is_word
        && id.is_none()
        && matches!(locations[0], Location::Managed | Location::Mapped | Location::Pinned)
        && watch.feed.capture_of(stream).is_none();
    let content = match locations[1] {
        Location::Pinned if is_word && watch.pinned.may_be_read(from.address) => {
            Some(load(Cell { address: from.address, bytes: bytes as u8 }))
        }
        // The driver has not looked whether it can be read.
        Location::Pageable if is_word => bytes::read(from.address as usize, bytes as usize),
        _ => None,
    };
    let awaited = watch.feed.await_stream(stream);
    Prepared { stream, locations, id, is_seen, content, awaited }
}

/// The driver has accepted a copy: its accesses, of the stream, and of the host as far as the call
/// itself makes them.
pub(crate) fn copied(watch: &mut Watch, prepared: &Prepared, copy: &Transfer) {
    let Prepared { stream, locations, id, content, .. } = prepared;
    let [to, from] = copy.blocks;
    let mut all = copy.accesses();
    if watch.feed.capture_of(*stream).is_none() {
        if copy.reads != Reads::InStream && locations[1] != Location::Pageable {
            watch.feed.host(&accesses(from, copy.extent, Access::read));
        }
        if copy.reads == Reads::DuringCall {
            all.retain(|access| access.kind == AccessKind::Write);
        }
        if locations[1] == Location::Pageable {
            watch.feed.pageable(&accesses(from, copy.extent, Access::read));
            all.retain(|access| access.kind == AccessKind::Write);
        }
        if locations[0] == Location::Pageable {
            watch.feed.pageable(&accesses(to, copy.extent, Access::write));
        }
        if let Some(content) = content {
            let writes = all.iter_mut().filter(|access| access.kind == AccessKind::Write);
            writes.for_each(|write| *write = write.clone().filled(*content));
        }
    }
    submitted(watch, *stream, *id, &all);
    if locations[0] == Location::Device {
        uploaded(watch, *stream, locations[1], copy);
    }
}

/// The accesses of a copy or a memset come to the feed.
pub(crate) fn submitted(watch: &mut Watch, stream: StreamId, id: Option<u64>, all: &[Access]) {
    watch.seen.copies += 1;
    overwritten(watch, all);
    if let Some(write) = all.iter().find(|access| access.kind == AccessKind::Write) {
        let range = &write.range;
        watch.feed.forget_words(range.start, range.end - range.start);
        watch.graphs.add(&watch.feed, stream, Node::Write(write.clone()));
    }
    if signals::may_set_flag(all) {
        wrote_few(watch, stream);
    }
    watch.feed.write(stream, id, all);
    watch_copies(watch, stream, all);
}

/// A stream writes what may be a flag.
pub(crate) fn wrote_few(watch: &Watch, stream: StreamId) {
    let is_captured = watch.feed.capture_of(stream).is_some();
    signals::wrote_few((!is_captured).then(|| (stream, watch.feed.call_number())));
}

/// The call has returned: which work is over by then.
pub(crate) fn returned(watch: &mut Watch, prepared: &Prepared, has_stream: bool) {
    use Location::{Device, Pageable};
    if watch.feed.capture_of(prepared.stream).is_some() {
        return;
    }
    let on_host = prepared.locations.into_iter().all(Location::is_on_host);
    match prepared.locations {
        [Pageable, _] => reached_stream(watch, prepared.stream),
        _ if on_host => reached_stream(watch, prepared.stream),
        _ if has_stream => {}
        [Device, Device] => {}
        // The source was read, and the copy itself may go on.
        [Device, Pageable] => watch.feed.reached(&prepared.awaited),
        _ => reached_stream(watch, prepared.stream),
    }
}

pub(crate) fn reached_stream(watch: &mut Watch, stream: StreamId) {
    let awaited = watch.feed.await_stream(stream);
    watch.feed.reached(&awaited);
}

/// The devices of the destination and of the source, if they are two.
pub(crate) fn two_devices(watch: &Watch, blocks: [Block; 2]) -> Option<[i32; 2]> {
    /// `CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL`.
    const DEVICE: c_uint = 9;
    if !watch.contexts.of_several_devices() {
        return None;
    }
    let ask = watch.questions.attribute?;
    let device = |block: Block| {
        let mut device = 0_i32;
        // SAFETY: a place for the attribute.
        let code = unsafe { ask((&raw mut device).cast(), DEVICE, block.address) };
        (code == OK && location(watch, &block) == Location::Device).then_some(device)
    };
    let [to, from] = blocks.map(device);
    let two = [to?, from?];
    (two[0] != two[1]).then_some(two)
}

/// The legacy default streams of the devices that are not the current one: a copy in the current
/// one's is in those, too, as two H200s have shown.
pub(crate) fn legacy_streams_beside(watch: &mut Watch, devices: [i32; 2]) -> Vec<StreamId> {
    let (_, own) = watch.contexts.current();
    let others = devices.into_iter().filter(|device| *device != own);
    let others: Vec<Handle> = others.flat_map(|device| watch.contexts.named(device)).collect();
    others.into_iter().map(|context| watch.legacy_stream(context)).collect()
}

/// A stream has got a copy between two devices, which may also be work of the other device. Two
/// H200s have shown that it is not if the stream's context has peer access to the other, and that
/// one is the destination or has no access itself.
pub(crate) fn shared(
    watch: &mut Watch,
    (stream, handle): (StreamId, Handle),
    blocks: [Block; 2],
    devices: [i32; 2],
) {
    let own = watch.streams.created.get(&handle).copied();
    let own = own.unwrap_or_else(|| watch.contexts.current().0);
    let Contexts { devices: all, peers, .. } = &watch.contexts;
    let device = all.get(&own).copied();
    let mut assumed = false;
    for [at, beside] in [[0, 1], [1, 0]] {
        let of_context = watch.memory.context_at(blocks[at].address);
        let direct = of_context.is_some_and(|other| {
            let is_source = at == 1;
            device == Some(devices[beside])
                && peers.contains(&(own, other))
                && !(is_source && peers.contains(&(other, own)))
        });
        if Some(devices[at]) != device && !direct {
            // Memory of pools and maps, and copies of a third device, were not asked.
            assumed |= of_context.is_none() || device != Some(devices[beside]);
            let contexts = watch.contexts.on_device(Some(devices[at]));
            watch.feed.contexts_share(&contexts, stream);
        }
    }
    if assumed {
        watch.feed.assume("a copy is work of the other device, too");
    }
}

/// A copy between contexts is accepted. It comes after all work of the contexts, and before all their
/// later work.
pub(crate) fn copied_between(
    watch: &mut Watch,
    prepared: &Prepared,
    copy: &Transfer,
    mut contexts: Vec<Handle>,
) {
    // A side that is memory of the host has no context: 0, which no work is of.
    contexts.sort_unstable();
    contexts.dedup();
    let contexts: Vec<_> = contexts.iter().map(|context| ContextId(*context as u64)).collect();
    watch.feed.assume("it is after all work of its contexts, and before their later work");
    watch.feed.stream_waits_for_contexts(prepared.stream, &contexts);
    copied(watch, prepared, copy);
    watch.feed.contexts_wait_for_stream(&contexts, prepared.stream);
    watch.feed.contexts_share(&contexts, prepared.stream);
    if prepared.locations.into_iter().any(Location::is_on_host) {
        reached_stream(watch, prepared.stream);
    }
}

/// A copy of a batch in bytes; `None` if the bytes of an element cannot be found out.
pub(crate) fn in_bytes(watch: &Watch, operation: &CUDA_MEMCPY3D_BATCH_OP) -> Option<Transfer> {
    let bytes = match array_of(&operation.dst).or(array_of(&operation.src)) {
        None => 1,
        Some(array) => {
            let mut answer = CUDA_ARRAY3D_DESCRIPTOR::default();
            // SAFETY: an array of the program's, and a place for the answer.
            let code = unsafe { watch.questions.array?(&mut answer, array) };
            element(&answer).filter(|_| code == OK)?
        }
    };
    let CUextent3D { width, height, depth } = operation.extent;
    let blocks =
        [operation.dst, operation.src].map(|side| operand(&side, bytes, [width, height, depth]));
    let extent = [width.saturating_mul(bytes), height, depth];
    let reads = Reads::new(operation.srcAccessOrder);
    Some(Transfer { blocks, extent, reads, writes_first: true })
}
