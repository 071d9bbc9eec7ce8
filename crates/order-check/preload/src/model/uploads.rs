//! What copies from the host put into memory of a device, and what writes there.

use cuda_order_check_engine::feed::Memory;
use cuda_order_check_engine::{Access, AccessKind, StreamId};

use crate::code::launch::Upload;
use crate::pinned::bytes;
use crate::state::blocks::{Location, Transfer};
use crate::state::uploads::BYTES;
use crate::watch::Watch;

/// A copy from the host is accepted: what it puts into memory of a device.
pub(crate) fn uploaded(watch: &mut Watch, stream: StreamId, from: Location, copy: &Transfer) {
    let ([to, source], [size, 1, 1]) = (copy.blocks, copy.extent) else { return };
    let size = size as u64;
    let range = to.address..to.address.saturating_add(size);
    let is_read = match from {
        Location::Pageable => true,
        Location::Pinned => {
            let end = source.address.saturating_add(size);
            let last = end.saturating_sub(1);
            // To read it takes long, and with one stream there is nothing to be found.
            !watch.streams.created.is_empty()
                && watch.uploads.is_ready(&(source.address..end))
                && watch.pinned.may_be_read(source.address)
                && watch.pinned.may_be_read(last)
        }
        _ => false,
    };
    if !is_read
        || !(4..=BYTES).contains(&size)
        || watch.feed.memory(range.start) != Some(Memory::Device)
        || watch.feed.capture_of(stream).is_some()
    {
        return;
    }
    let Some(memory) = watch.feed.memory_around(range.start) else { return };
    let Some(bytes) = bytes::read_all(source.address as usize, size as usize) else { return };
    watch.uploads.add(Upload::new(range, memory, bytes.into()), stream);
}

/// What a stream's work writes for certain.
pub(crate) fn overwritten(watch: &mut Watch, accesses: &[Access]) {
    let writes = accesses.iter().filter(|access| access.kind == AccessKind::Write);
    for Access { range, .. } in writes {
        watch.uploads.written(range);
        if watch.feed.memory(range.start).is_some_and(|memory| memory != Memory::Device) {
            watch.uploads.write_host(range);
        }
    }
}
