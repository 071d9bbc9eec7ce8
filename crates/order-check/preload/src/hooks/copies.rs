//! Copies and memsets: what their arguments are, and the walk of each. What they mean is in
//! [`model::copies`](crate::model::copies).

use cuda_events::sys::more::{CUDA_MEMCPY3D_BATCH_OP, CUDA_MEMCPY3D_PEER, CUmemcpyAttributes};
use cuda_order_check_engine::{Access, StreamId};

use crate::call::{Address, Call, Code, Handle, read};
use crate::model::copies::{
    Prepared, copied, copied_between, in_bytes, legacy_streams_beside, may_wait, prepare_copy,
    reached_stream, returned, shared, submitted, two_devices,
};
use crate::state::blocks::{Block, Extent, Location, OfBatch, Reads, Rows, Transfer, set_rows};
use crate::state::under_way::Visible;
use crate::state::waiting::Submitted;
use crate::walk::{after_success, around_or_defer, around_submission, begin_call, locked};
use crate::watch::Watch;

/// A copy of bytes. Without a stream it is in the default one, and the call may wait for it.
pub(crate) fn copy(
    call: &Call,
    real: impl FnOnce() -> Code,
    blocks: [Block; 2],
    extent: Extent,
    stream: Option<Handle>,
) -> Code {
    submit(call, real, Transfer::of_bytes(blocks, extent), stream)
}

/// A copy of rows, which a structure describes.
pub(crate) fn rows<T: Copy + Default + Into<Rows>>(
    call: &Call,
    real: impl FnOnce() -> Code,
    description: *const T,
    stream: Option<Handle>,
) -> Code {
    // SAFETY: NULL or the program's description.
    let Rows { blocks, extent, .. } = unsafe { read(description) }.into();
    submit(call, real, Transfer::of_rows(blocks, extent), stream)
}

/// A copy that does not only wait goes through here.
fn submit(
    call: &Call,
    real: impl FnOnce() -> Code,
    copy: Transfer,
    stream: Option<Handle>,
) -> Code {
    if copy.extent.contains(&0) {
        return real();
    }
    let handle = stream.unwrap_or(0);
    let is_legacy = handle <= 1 && call.thread_of_default(handle) == 0;
    let waits = |watch: &Watch| {
        stream.is_some()
            && may_wait(watch, &copy.blocks)
            && two_devices(watch, copy.blocks).is_none()
    };
    let defer = |watch: &mut Watch| {
        watch.defer(call, call.name, handle, true, |_| Submitted::Write(copy.accesses()));
    };
    let before = |watch: &mut Watch| {
        let devices = two_devices(watch, copy.blocks);
        (prepare_copy(watch, call, copy.blocks, copy.extent, handle), devices)
    };
    let visible = |(prepared, _): &(Prepared, Option<[i32; 2]>)| prepared.visible();
    around_or_defer(
        call,
        (waits, defer),
        before,
        real,
        visible,
        move |watch, (prepared, devices)| {
            let others = devices.filter(|_| is_legacy);
            let others = others.map_or(vec![], |devices| legacy_streams_beside(watch, devices));
            for legacy in &others {
                watch.feed.stream_waits_for_stream(prepared.stream, *legacy);
            }
            copied(watch, &prepared, &copy);
            for legacy in &others {
                watch.feed.stream_waits_for_stream(*legacy, prepared.stream);
            }
            if let Some(devices) = devices {
                shared(watch, (prepared.stream, handle), copy.blocks, devices);
            }
            returned(watch, &prepared, stream.is_some());
        },
    )
}

/// A copy with attributes.
pub(crate) fn with_attributes(
    call: &Call,
    real: impl FnOnce() -> Code,
    blocks: [Block; 2],
    bytes: usize,
    attributes: *const CUmemcpyAttributes,
    stream: Handle,
) -> Code {
    // SAFETY: NULL or the program's description.
    let reads = Reads::new(unsafe { read(attributes) }.srcAccessOrder);
    let copy = Transfer { reads, ..Transfer::of_bytes(blocks, [bytes, 1, 1]) };
    match reads {
        Reads::InStream => submit(call, real, copy, Some(stream)),
        _ => submit_all(call, real, vec![copy], stream),
    }
}

pub(crate) fn batch(
    call: &Call,
    real: impl FnOnce() -> Code,
    [to, from]: [*const Address; 2],
    bytes: *const usize,
    count: usize,
    attributes: OfBatch,
    stream: Handle,
) -> Code {
    let count = if to.is_null() || from.is_null() || bytes.is_null() { 0 } else { count };
    let copy = |at: usize| {
        // SAFETY: the program's lists, of so many.
        let (to, from, bytes) =
            unsafe { (to.add(at).read(), from.add(at).read(), bytes.add(at).read()) };
        // SAFETY: as above.
        let reads = unsafe { attributes.reads(at) };
        Transfer { reads, ..Transfer::of_bytes([Block::any(to), Block::any(from)], [bytes, 1, 1]) }
    };
    submit_all(call, real, (0..count).map(copy).collect(), stream)
}

pub(crate) fn batch_rows(
    call: &Call,
    real: impl FnOnce() -> Code,
    first: *const CUDA_MEMCPY3D_BATCH_OP,
    count: usize,
    stream: Handle,
) -> Code {
    let count = if first.is_null() { 0 } else { count };
    let copies = |watch: &mut Watch| -> Option<Vec<Transfer>> {
        // SAFETY: the program's list, of so many.
        (0..count).map(|at| in_bytes(watch, &unsafe { first.add(at).read() })).collect()
    };
    if let Some(all) = locked(copies).flatten() {
        return submit_all(call, real, all, stream);
    }
    begin_call(call, |watch| {
        watch.seen.formats += 1;
        watch.order_everything();
        watch.note_captures();
    });
    real()
}

/// Copies that are submitted together. They count as one after the other, so a conflict between two
/// of them is not seen.
fn submit_all(
    call: &Call,
    real: impl FnOnce() -> Code,
    mut all: Vec<Transfer>,
    stream: Handle,
) -> Code {
    all.retain(|copy| !copy.extent.contains(&0));
    let before = |watch: &mut Watch| -> Vec<(Prepared, Transfer)> {
        let prepare =
            |copy: Transfer| (prepare_copy(watch, call, copy.blocks, copy.extent, stream), copy);
        let mut all: Vec<_> = all.into_iter().map(prepare).collect();
        for (prepared, _) in &mut all {
            let had = prepared.id.is_some();
            watch.values.clear_unless_pending(&mut prepared.id);
            prepared.is_seen |= had && prepared.id.is_none();
        }
        all
    };
    let visible = |all: &Vec<(Prepared, Transfer)>| Visible {
        stream: all.first().map_or(StreamId(0), |(prepared, _)| prepared.stream),
        ids: all.iter().filter_map(|(prepared, _)| prepared.id).collect(),
        at_once: all.iter().any(|(prepared, _)| prepared.is_seen),
    };
    around_submission(call, before, real, visible, move |watch, all| {
        if all.len() > 1 {
            watch.feed.assume("the copies of a batch come one after the other");
        }
        for (prepared, copy) in &all {
            copied(watch, prepared, copy);
            if let Some(devices) = two_devices(watch, copy.blocks) {
                shared(watch, (prepared.stream, stream), copy.blocks, devices);
            }
        }
        let waits = all.iter().find(|(prepared, _)| prepared.locations[0] == Location::Pageable);
        if let Some((Prepared { stream, .. }, _)) = waits
            && watch.feed.capture_of(*stream).is_none()
        {
            reached_stream(watch, *stream);
        }
    })
}

/// A copy between contexts.
pub(crate) fn peer(
    call: &Call,
    real: impl FnOnce() -> Code,
    blocks: [Block; 2],
    extent: Extent,
    [to, from]: [Handle; 2],
) -> Code {
    let before = |watch: &mut Watch| {
        (prepare_copy(watch, call, blocks, extent, 0), watch.contexts.current().0)
    };
    let visible = |(prepared, _): &(Prepared, Handle)| prepared.visible();
    around_submission(call, before, real, visible, move |watch, (prepared, current)| {
        let copy = Transfer::of_rows(blocks, extent);
        copied_between(watch, &prepared, &copy, vec![to, from, current]);
    })
}

pub(crate) fn peer_rows(
    call: &Call,
    real: impl FnOnce() -> Code,
    description: *const CUDA_MEMCPY3D_PEER,
) -> Code {
    // SAFETY: NULL or the program's description.
    let Rows { blocks, extent, contexts } = unsafe { read(description) }.into();
    peer(call, real, blocks, extent, contexts)
}

pub(crate) fn set(
    call: &Call,
    real: impl FnOnce() -> Code,
    to: Block,
    (value, element): (u32, usize),
    [count, height]: [usize; 2],
    stream: Option<Handle>,
) -> Code {
    let extent = [element.saturating_mul(count), height, 1];
    if extent.contains(&0) {
        return real();
    }
    let handle = stream.unwrap_or(0);
    let writes = move || set_rows(to, extent, (value, element));
    let waits = |watch: &Watch| stream.is_some() && may_wait(watch, &[to]);
    let defer = |watch: &mut Watch| {
        watch.defer(call, call.name, handle, true, |_| Submitted::Write(writes()));
    };
    let before = |watch: &mut Watch| prepare_copy(watch, call, [to, to], extent, handle);
    let visible = Prepared::visible;
    around_or_defer(call, (waits, defer), before, real, visible, move |watch, prepared| {
        let writes = writes();
        submitted(watch, prepared.stream, prepared.id, &writes);
        if stream.is_none() && prepared.locations[0] != Location::Device {
            reached_stream(watch, prepared.stream);
        }
    })
}

/// The contents of these ranges may be anything from then on.
pub(crate) fn discard(
    call: &Call,
    real: impl FnOnce() -> Code,
    addresses: *const Address,
    sizes: *const usize,
    count: usize,
    stream: Handle,
) -> Code {
    let count = if addresses.is_null() || sizes.is_null() { 0 } else { count };
    // SAFETY: the program's lists, of so many.
    let range = |at| unsafe { (addresses.add(at).read(), sizes.add(at).read() as u64) };
    let writes: Vec<Access> = (0..count)
        .map(range)
        .filter(|(_, bytes)| *bytes > 0)
        .map(|(first, bytes)| Access::write(first, bytes))
        .collect();
    after_success(call, real, |watch| {
        let stream = watch.stream(call, stream);
        watch.feed.work(stream, &[]);
        for write in &writes {
            submitted(watch, stream, None, core::slice::from_ref(write));
        }
    })
}

#[cfg(test)]
mod tests;
