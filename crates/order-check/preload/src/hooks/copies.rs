//! Copies and memsets.

use core::ffi::c_uint;

use cuda_events::sys::more::{
    CUDA_ARRAY3D_DESCRIPTOR, CUDA_MEMCPY3D_BATCH_OP, CUDA_MEMCPY3D_PEER, CUextent3D,
    CUmemcpyAttributes,
};
use cuda_order_check_engine::feed::Awaited;
use cuda_order_check_engine::{Access, AccessKind, Cell, ContextId, StreamId};

use crate::call::{Address, Call, Code, Handle, OK, read};
use crate::model::contexts::Contexts;
use crate::model::copies::{
    Block, Extent, OfBatch, Place, Reads, Rows, accesses, array_of, both, element, operand,
    set_rows,
};
use crate::model::under_way::Visible;
use crate::model::values::load;
use crate::model::waiting::Submitted;
use crate::pinned::table;
use crate::watch::Watch;
use crate::watch::copies::{side, wrote};
use crate::watch::walk::{after, around_seen, begin, enter};

pub(crate) fn before_copy(
    watch: &mut Watch,
    call: &Call,
    [to, from]: [Block; 2],
    extent: Extent,
    stream: Handle,
) -> Before {
    let stream = watch.stream(call, stream);
    let places = [to, from].map(|block| side(watch, block.side, block.address));
    let bytes = extent.iter().product::<usize>() as u64;
    let one = extent[1..] == [1, 1];
    if one {
        watch.find_stored(to.address, bytes);
    }
    let flag = watch.before_write(to.address, bytes).filter(|_| one);
    let place = watch.place_of(stream, flag);
    let word = bytes <= 8 && one;
    let is_seen = word
        && place.is_none()
        && matches!(places[0], Place::Managed | Place::Mapped | Place::Pinned)
        && watch.feed.capture_of(stream).is_none();
    let content = match places[1] {
        Place::Pinned if word && watch.pinned.may_be_read(from.address) => {
            Some(load(Cell { address: from.address, bytes: bytes as u8 }))
        }
        // The driver has not looked whether it can be read.
        Place::Pageable if word => table::read(from.address as usize, bytes as usize),
        _ => None,
    };
    let awaited = watch.feed.await_stream(stream);
    Before { stream, places, place, is_seen, content, awaited }
}

/// The devices of the destination and of the source, if they are two.
pub(crate) fn two_devices(watch: &Watch, blocks: [Block; 2]) -> Option<[i32; 2]> {
    /// `CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL`.
    const DEVICE: c_uint = 9;
    if !watch.contexts.of_several_devices() {
        return None;
    }
    let ask = watch.questions.attribute?;
    let device = |of: Block| {
        let mut device = 0_i32;
        // SAFETY: a place for the attribute.
        let code = unsafe { ask((&raw mut device).cast(), DEVICE, of.address) };
        (code == OK && side(watch, of.side, of.address) == Place::Device).then_some(device)
    };
    let [to, from] = blocks.map(device);
    let two = [to?, from?];
    (two[0] != two[1]).then_some(two)
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

pub(crate) fn copied(
    watch: &mut Watch,
    before: &Before,
    [to, from]: [Block; 2],
    extent: Extent,
    (rows, reads): (bool, Reads),
) {
    let Before { stream, places, place, content, .. } = before;
    let mut all = both([to, from], extent, rows);
    if watch.feed.capture_of(*stream).is_none() {
        if reads != Reads::InStream && places[1] != Place::Pageable {
            watch.feed.host(&accesses(from, extent, Access::read));
        }
        if reads == Reads::DuringCall {
            all.retain(|access| access.kind == AccessKind::Write);
        }
        if places[1] == Place::Pageable {
            watch.feed.pageable(&accesses(from, extent, Access::read));
            all.retain(|access| access.kind == AccessKind::Write);
        }
        if places[0] == Place::Pageable {
            watch.feed.pageable(&accesses(to, extent, Access::write));
        }
        if let Some(content) = content {
            let writes = all.iter_mut().filter(|access| access.kind == AccessKind::Write);
            writes.for_each(|write| *write = write.clone().filled(*content));
        }
    }
    wrote(watch, *stream, *place, &all);
}

/// What is in these ranges may be anything from then on.
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
    after(call, real, |watch| {
        let stream = watch.stream(call, stream);
        watch.feed.work(stream, &[]);
        writes.iter().for_each(|write| wrote(watch, stream, None, core::slice::from_ref(write)));
    })
}

pub(crate) fn reached_stream(watch: &mut Watch, stream: StreamId) {
    let awaited = watch.feed.await_stream(stream);
    watch.feed.reached(&awaited);
}

/// A copy of a batch in bytes, if it is known how many an element has.
pub(crate) fn in_bytes(
    watch: &Watch,
    of: &CUDA_MEMCPY3D_BATCH_OP,
) -> Option<([Block; 2], Extent, Reads)> {
    let bytes = match array_of(&of.dst).or(array_of(&of.src)) {
        None => 1,
        Some(array) => {
            let mut answer = CUDA_ARRAY3D_DESCRIPTOR::default();
            // SAFETY: an array of the program's, and a place for the answer.
            let code = unsafe { watch.questions.array?(&mut answer, array) };
            element(&answer).filter(|_| code == OK)?
        }
    };
    let CUextent3D { width, height, depth } = of.extent;
    let blocks = [of.dst, of.src].map(|side| operand(&side, bytes, [width, height, depth]));
    let extent = [width.saturating_mul(bytes), height, depth];
    Some((blocks, extent, Reads::new(of.srcAccessOrder)))
}

/// A copy or a memset that is about to be made.
pub(crate) struct Before {
    pub(crate) stream: StreamId,
    pub(crate) places: [Place; 2],
    /// Of what the host may see.
    pub(crate) place: Option<u64>,
    /// Whether it writes a word that counts as seen at once.
    pub(crate) is_seen: bool,
    /// The value that it writes to a word.
    pub(crate) content: Option<u64>,
    pub(crate) awaited: Awaited,
}

impl Before {
    pub(crate) fn seen(&self) -> Visible {
        let places = self.place.into_iter().collect();
        Visible { stream: self.stream, places, at_once: self.is_seen }
    }
}

pub(crate) fn copy(
    call: &Call,
    real: impl FnOnce() -> Code,
    blocks: [Block; 2],
    extent: Extent,
    stream: Option<Handle>,
) -> Code {
    submit(call, real, blocks, (extent, false), stream)
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
    if reads == Reads::InStream {
        return copy(call, real, blocks, [bytes, 1, 1], Some(stream));
    }
    submit_all(call, real, vec![(blocks, [bytes, 1, 1], reads)], false, stream)
}

/// Whether the host has no part in it.
fn only_on_device(watch: &mut Watch, blocks: &[Block]) -> bool {
    let is = |of: &Block| side(watch, of.side, of.address) == Place::Device;
    watch.only_submits() && blocks.iter().all(is)
}

pub(crate) fn later(
    call: &Call,
    real: impl FnOnce() -> Code,
    stream: Handle,
    accesses: impl FnOnce() -> Vec<Access>,
) -> Code {
    let code = real();
    if code == OK {
        enter(|watch| watch.later(call, call.name, stream, true, |_| Submitted::Write(accesses())));
    }
    code
}

pub(crate) fn submit(
    call: &Call,
    real: impl FnOnce() -> Code,
    blocks: [Block; 2],
    (extent, rows): (Extent, bool),
    stream: Option<Handle>,
) -> Code {
    if extent.contains(&0) {
        return real();
    }
    let handle = stream.unwrap_or(0);
    let is_legacy = handle <= 1 && call.thread_of_default(handle) == 0;
    let look = |watch: &mut Watch| {
        (two_devices(watch, blocks), stream.is_some() && only_on_device(watch, &blocks))
    };
    let (devices, on_device) = enter(look).unwrap_or((None, false));
    if on_device && devices.is_none() {
        return later(call, real, handle, || both(blocks, extent, rows));
    }
    let before = |watch: &mut Watch| before_copy(watch, call, blocks, extent, handle);
    around_seen(call, before, real, Before::seen, move |watch, before| {
        // It is in the legacy streams of both devices, as two H200s have shown.
        let (_, own) = watch.contexts.current();
        let others = devices.filter(|_| is_legacy).into_iter().flatten();
        let others: Vec<Handle> =
            others.filter(|of| *of != own).flat_map(|of| watch.contexts.named(of)).collect();
        let others: Vec<StreamId> =
            others.into_iter().map(|context| watch.legacy_stream(context)).collect();
        for legacy in &others {
            watch.feed.stream_waits_for_stream(before.stream, *legacy);
        }
        copied(watch, &before, blocks, extent, (rows, Reads::InStream));
        for legacy in &others {
            watch.feed.stream_waits_for_stream(*legacy, before.stream);
        }
        if let Some(devices) = devices {
            shared(watch, (before.stream, handle), blocks, devices);
        }
        if watch.feed.capture_of(before.stream).is_some() {
            return;
        }
        let on_host = before.places.into_iter().all(Place::is_on_host);
        let waits = before.places[0] == Place::Pageable || on_host;
        match before.places {
            _ if waits => reached_stream(watch, before.stream),
            _ if stream.is_some() => {}
            [Place::Device, Place::Device] => {}
            [Place::Device, Place::Pageable] => watch.feed.reached(&before.awaited),
            _ => reached_stream(watch, before.stream),
        }
    })
}

pub(crate) fn rows<T: Copy + Default + Into<Rows>>(
    call: &Call,
    real: impl FnOnce() -> Code,
    of: *const T,
    stream: Option<Handle>,
) -> Code {
    // SAFETY: NULL or the program's description.
    let Rows { blocks, extent, .. } = unsafe { read(of) }.into();
    submit(call, real, blocks, (extent, true), stream)
}

/// Copies of a batch.
pub(crate) type Copies = Vec<([Block; 2], Extent, Reads)>;

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
        let [to, from, bytes] =
            unsafe { [to.add(at).read(), from.add(at).read(), bytes.add(at).read() as u64] };
        // SAFETY: as above.
        let reads = unsafe { attributes.reads(at) };
        ([Block::any(to), Block::any(from)], [bytes as usize, 1, 1], reads)
    };
    submit_all(call, real, (0..count).map(copy).collect(), false, stream)
}

/// Copies that are submitted together. They count as one after the other, so a conflict between two
/// of them is not seen.
pub(crate) fn submit_all(
    call: &Call,
    real: impl FnOnce() -> Code,
    mut all: Copies,
    rows: bool,
    stream: Handle,
) -> Code {
    all.retain(|(_, extent, _)| !extent.contains(&0));
    let before = |watch: &mut Watch| -> Vec<(Before, [Block; 2], Extent, Reads)> {
        let before = |(blocks, extent, reads): &([Block; 2], Extent, Reads)| {
            (before_copy(watch, call, *blocks, *extent, stream), *blocks, *extent, *reads)
        };
        let mut all: Vec<_> = all.iter().map(before).collect();
        for (before, ..) in &mut all {
            let had = before.place.is_some();
            watch.values.keep_pending(&mut before.place);
            before.is_seen |= had && before.place.is_none();
        }
        all
    };
    let seen = |all: &Vec<(Before, [Block; 2], Extent, Reads)>| Visible {
        stream: all.first().map_or(StreamId(0), |(before, ..)| before.stream),
        places: all.iter().filter_map(|(before, ..)| before.place).collect(),
        at_once: all.iter().any(|(before, ..)| before.is_seen),
    };
    around_seen(call, before, real, seen, move |watch, all| {
        if all.len() > 1 {
            watch.feed.assume("the copies of a batch come one after the other");
        }
        for (before, blocks, extent, reads) in &all {
            copied(watch, before, *blocks, *extent, (rows, *reads));
            if let Some(devices) = two_devices(watch, *blocks) {
                shared(watch, (before.stream, stream), *blocks, devices);
            }
        }
        let waits = all.iter().find(|(of, ..)| of.places[0] == Place::Pageable);
        if let Some((Before { stream, .. }, ..)) = waits
            && watch.feed.capture_of(*stream).is_none()
        {
            reached_stream(watch, *stream);
        }
    })
}

pub(crate) fn batch_rows(
    call: &Call,
    real: impl FnOnce() -> Code,
    first: *const CUDA_MEMCPY3D_BATCH_OP,
    count: usize,
    stream: Handle,
) -> Code {
    let count = if first.is_null() { 0 } else { count };
    let copies = |watch: &mut Watch| -> Option<Copies> {
        // SAFETY: the program's list, of so many.
        (0..count).map(|at| in_bytes(watch, &unsafe { first.add(at).read() })).collect()
    };
    if let Some(all) = enter(copies).flatten() {
        return submit_all(call, real, all, true, stream);
    }
    begin(call, |watch| {
        watch.seen.formats += 1;
        watch.order_everything();
        watch.note_captures();
    });
    real()
}

/// It comes after all work of the contexts, and before all their later work.
pub(crate) fn peer(
    call: &Call,
    real: impl FnOnce() -> Code,
    blocks: [Block; 2],
    extent: Extent,
    [to, from]: [Handle; 2],
) -> Code {
    let before = |watch: &mut Watch| {
        (before_copy(watch, call, blocks, extent, 0), watch.contexts.current().0)
    };
    let seen = |(before, _): &(Before, Handle)| before.seen();
    around_seen(call, before, real, seen, move |watch, (before, current)| {
        // A side that is memory of the host has none, which is no context of any work.
        let mut contexts = vec![to, from, current];
        contexts.sort_unstable();
        contexts.dedup();
        let contexts: Vec<_> = contexts.iter().map(|of| ContextId(*of as u64)).collect();
        watch.feed.assume("it is after all work of its contexts, and before their later work");
        watch.feed.stream_waits_for_contexts(before.stream, &contexts);
        copied(watch, &before, blocks, extent, (true, Reads::InStream));
        watch.feed.contexts_wait_for_stream(&contexts, before.stream);
        watch.feed.contexts_share(&contexts, before.stream);
        if before.places.into_iter().any(Place::is_on_host) {
            reached_stream(watch, before.stream);
        }
    })
}

pub(crate) fn peer_rows(
    call: &Call,
    real: impl FnOnce() -> Code,
    of: *const CUDA_MEMCPY3D_PEER,
) -> Code {
    // SAFETY: NULL or the program's description.
    let Rows { blocks, extent, contexts } = unsafe { read(of) }.into();
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
    if let Some(stream) = stream
        && enter(|watch| only_on_device(watch, &[to])).unwrap_or(false)
    {
        return later(call, real, stream, || set_rows(to, extent, (value, element)));
    }
    let before =
        |watch: &mut Watch| before_copy(watch, call, [to, to], extent, stream.unwrap_or(0));
    around_seen(call, before, real, Before::seen, move |watch, before| {
        wrote(watch, before.stream, before.place, &set_rows(to, extent, (value, element)));
        if stream.is_none() && before.places[0] != Place::Device {
            reached_stream(watch, before.stream);
        }
    })
}

#[cfg(test)]
mod tests;
