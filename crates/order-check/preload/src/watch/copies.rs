//! Copies and memsets.

use cuda_order_check_engine::feed::Memory;
use cuda_order_check_engine::{Access, AccessKind, StreamId};

use crate::call::{Address, OK};
use crate::model::copies::{Place, Side};
use crate::model::launch::Node;
use crate::watch::Watch;
use crate::watch::pinned::watch_copies;

pub(crate) fn side(watch: &Watch, side: Side, address: Address) -> Place {
    match (watch.feed.memory(address), side) {
        (Some(Memory::Host), _) => Place::Pinned,
        (Some(Memory::Managed), _) => Place::Managed,
        (Some(Memory::Exported), _) => asked(watch, address).unwrap_or(Place::Device),
        (Some(_), _) | (None, Side::Device | Side::Array) => Place::Device,
        (None, Side::Host) => Place::Pageable,
        (None, Side::Any) => asked(watch, address).unwrap_or(Place::Pageable),
    }
}

/// Where the driver says that an address is; `None` if it does not know the address.
pub(crate) fn asked(watch: &Watch, address: Address) -> Option<Place> {
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
        _ if managed != 0 => Place::Managed,
        HOST => Place::Mapped,
        _ => Place::Device,
    })
}

/// Who can read memory that a pool or a map has given. What is not plainly of a device counts
/// as memory that others see at any time, and each copy asks anew where it is.
pub(crate) fn given(watch: &Watch, address: Address) -> Memory {
    match asked(watch, address) {
        None if watch.questions.attribute.is_none() => Memory::Device,
        Some(Place::Device) => Memory::Device,
        _ => Memory::Exported,
    }
}

/// A copy or a memset is submitted.
pub(crate) fn wrote(watch: &mut Watch, stream: StreamId, place: Option<u64>, all: &[Access]) {
    watch.seen.copies += 1;
    if let Some(write) = all.iter().find(|access| access.kind == AccessKind::Write) {
        let range = &write.range;
        watch.feed.forget_words(range.start, range.end - range.start);
        watch.graphs.add(&watch.feed, stream, Node::Write(write.clone()));
    }
    watch.feed.write(stream, place, all);
    watch_copies(watch, stream, all);
}
